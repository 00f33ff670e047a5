//! `Statistics`: tickers and histograms, which RocksJava gives by the numbers of its own enumerations.
//!
//! Those numbers differ from version to version; the names do not. So the constant's name is asked for.

use crate::env::{Env, jni};
use crate::glue::{Answer, Thrown, handle, illegal, object};
use jni_sys::{jbyte, jlong, jobject, jvalue};
use outcrop::{HistogramData, HistogramKind, Statistics, StatsLevel, Ticker};
use std::sync::Arc;

/// `Statistics`, and the histograms that it leaves out.
struct Own {
    shared: Arc<Statistics>,
    left_out: Vec<HistogramKind>,
}

pub(crate) fn handle_of(shared: Arc<Statistics>) -> jlong {
    handle(Own { shared, left_out: Vec::new() })
}

pub(crate) fn create(other: Option<jlong>) -> Answer<jlong> {
    Ok(handle_of(match other {
        Some(other) if other != 0 => shared(other),
        _ => Arc::default(),
    }))
}

/// Without the histograms whose numbers `left_out` has. The engine counts them, and nobody sees it.
pub(crate) fn create_without(env: Env, left_out: jobject, other: Option<jlong>) -> Answer<jlong> {
    let numbers = env.all_bytes(left_out)?;
    let left_out: Answer<Vec<_>> = numbers.iter().map(|number| histogram(env, *number as jbyte)).collect();
    let statistics = create(other)?;
    object::<Own>(statistics).left_out = left_out?.into_iter().flatten().collect();
    Ok(statistics)
}

pub(crate) fn shared(statistics: jlong) -> Arc<Statistics> {
    object::<Own>(statistics).shared.clone()
}

pub(crate) fn of<'a>(statistics: jlong) -> &'a Statistics {
    &object::<Own>(statistics).shared
}

pub(crate) fn destroy(statistics: jlong) -> Answer<()> {
    crate::glue::dispose::<Own>(statistics)
}

/// The name of a constant of RocksJava's `class`, by its number.
fn constant(env: Env, class: &str, getter: &std::ffi::CStr, number: jbyte) -> Answer<String> {
    let own = env.class(class)?;
    let signature = std::ffi::CString::new(format!("(B)L{class};")).unwrap_or_default();
    let method = jni!(env, GetStaticMethodID, own, getter.as_ptr(), signature.as_ptr());
    if method.is_null() {
        return Err(Thrown::Pending);
    }
    let constant = jni!(env, CallStaticObjectMethodA, own, method, [jvalue { b: number }].as_ptr());
    env.check()?;
    env.text(env.call(constant, "name", "()Ljava/lang/String;", &[])?)
}

/// `BLOCK_CACHE_MISS` and `BlockCacheMiss` are the same; digits and short words are written in more than one way.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// `None` for one that this engine does not have: it counts nothing.
pub(crate) fn ticker(env: Env, number: jbyte) -> Answer<Option<Ticker>> {
    let name = letters(&constant(env, "org/rocksdb/TickerType", c"getTickerType", number)?);
    Ok(Ticker::ALL.iter().copied().find(|ticker| letters(&format!("{ticker:?}")) == name))
}

/// The same of histograms: nothing is in it.
fn histogram(env: Env, number: jbyte) -> Answer<Option<HistogramKind>> {
    let name = letters(&constant(env, "org/rocksdb/HistogramType", c"getHistogramType", number)?);
    Ok(HistogramKind::ALL.iter().copied().find(|kind| letters(&format!("{kind:?}")) == name))
}

pub(crate) fn count(env: Env, statistics: jlong, number: jbyte) -> Answer<u64> {
    Ok(ticker(env, number)?.map_or(0, |ticker| of(statistics).ticker(ticker)))
}

/// The count of a ticker, which begins anew.
pub(crate) fn take(env: Env, statistics: jlong, number: jbyte) -> Answer<u64> {
    Ok(ticker(env, number)?.map_or(0, |ticker| of(statistics).take_ticker(ticker)))
}

/// The values of a histogram: none if it is left out, or not there.
fn values(env: Env, statistics: jlong, number: jbyte) -> Answer<HistogramData> {
    let left_out = &object::<Own>(statistics).left_out;
    let kind = histogram(env, number)?.filter(|kind| !left_out.contains(kind));
    Ok(kind.map_or(HistogramData::default(), |kind| of(statistics).histogram(kind)))
}

pub(crate) fn histogram_text(env: Env, statistics: jlong, number: jbyte) -> Answer<String> {
    Ok(values(env, statistics, number)?.to_string())
}

/// All tickers and histograms, a line each.
pub(crate) fn text(statistics: jlong) -> Answer<String> {
    let left_out: Vec<String> =
        object::<Own>(statistics).left_out.iter().map(|kind| format!("{} P50", kind.name())).collect();
    let is_left_out = |line: &&str| left_out.iter().any(|start| line.starts_with(start.as_str()));
    Ok(of(statistics)
        .text()
        .lines()
        .filter(|line| !is_left_out(line))
        .map(|line| format!("{line}\n"))
        .collect())
}

pub(crate) fn data(env: Env, statistics: jlong, number: jbyte) -> Answer<jobject> {
    let data = values(env, statistics, number)?;
    let arguments = [
        jvalue { d: data.percentile(50.0) },
        jvalue { d: data.percentile(95.0) },
        jvalue { d: data.percentile(99.0) },
        jvalue { d: data.average() },
        jvalue { d: data.standard_deviation() },
        jvalue { d: data.max() as f64 },
        jvalue { j: data.count() as jlong },
        jvalue { j: data.sum() as jlong },
        jvalue { d: data.min() as f64 },
    ];
    env.new_object("org/rocksdb/HistogramData", "(DDDDDDJJD)V", &arguments)
}

/// RocksJava's numbers of `StatsLevel`.
const LEVELS: [(jbyte, StatsLevel); 3] =
    [(0, StatsLevel::ExceptDetailedTimers), (1, StatsLevel::ExceptTimeForMutex), (2, StatsLevel::All)];

pub(crate) fn level(statistics: jlong) -> Answer<jbyte> {
    let own = of(statistics).level();
    let found = LEVELS.iter().find(|(_, level)| *level == own);
    found
        .map(|(number, _)| *number)
        .ok_or_else(|| illegal("a level of statistics that RocksJava has no name for"))
}

pub(crate) fn set_level(statistics: jlong, number: jbyte) -> Answer<()> {
    let found = LEVELS.iter().find(|(known, _)| *known == number);
    let level = found.ok_or_else(|| illegal(format!("no level of statistics {number}")))?.1;
    of(statistics).set_level(level);
    Ok(())
}

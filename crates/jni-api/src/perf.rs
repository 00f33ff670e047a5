//! `PerfContext` and `PerfLevel`: the counters of the calling thread.

use crate::glue::{Answer, not_implemented};
use jni_sys::{jbyte, jlong};
use outcrop::{PerfContext, PerfMetric};

/// RocksJava's object has a handle, which stands for whichever thread calls.
pub(crate) fn context() -> Answer<jlong> {
    PerfContext::enable();
    Ok(1)
}

/// The counter of a getter: its name in words, with or without its `get_`.
pub(crate) fn metric(name: &str) -> Answer<u64> {
    let metric = PerfMetric::by_name(name).or_else(|| PerfMetric::by_name(name.strip_prefix("get_")?));
    match metric {
        Some(metric) => Ok(PerfContext::get(metric)),
        None => not_implemented(&format!("PerfContext: {name}")),
    }
}

pub(crate) fn level() -> Answer<jbyte> {
    Ok(PerfContext::level().0 as jbyte)
}

pub(crate) fn reset() -> Answer<()> {
    PerfContext::reset();
    Ok(())
}

/// As in RocksDB, counters with their names.
pub(crate) fn text(without_zeros: bool) -> Answer<String> {
    Ok(PerfContext::text(without_zeros))
}

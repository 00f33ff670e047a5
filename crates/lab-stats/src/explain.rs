//! The parts of a difference: counters of the process, ranked by what their change costs.
//!
//! ```text
//! time of an operation     base 1000 ns, target 1300 ns          to be explained: 300 ns
//! counter                  change per operation   price          cost
//! load_cpu_us/o            +0.25 us               1000 ns        250 ns   -> "more processor time"
//! back_cpu_us/o            -0.10 us, at the rate per second it had before -> restates speed, costs nothing
//! vcs/o                    +0.01                  2000 ns         20 ns   -> too little to be named
//! proc_wKB/o               +30 %, at the rate per second it had before    -> restates speed, costs nothing
//! ```
//! Counters are per operation, one value per session and block, paired like the metric itself. Ratios do not rank them: any
//! constant background rate, divided by operations, moves exactly as speed does and explains nothing. So a counter counts if
//! its change costs time (change times price), is certain among so many counters, and is not what a rate that stayed the same
//! gives when operations become more or fewer. Counters of the processor (instructions, misses) are parts of its time: they
//! say why it rose, beside it.
//!
//! It names what costs as much; it does not prove the cause. Where nothing does, it says so.

use crate::error::{Error, Result, check_not_negative, check_pair, check_positive};
use crate::interval::{Interval, t_interval, t_test};
use crate::multiple::benjamini_hochberg;
use crate::paired::{PairedRatio, Settings, estimate, log_ratios, relative};
use crate::rank::differences;
use crate::summary::mean;
use crate::verdict::Better;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of each counter, one per block, by the name of the counter.
pub type Counters = BTreeMap<String, Vec<f64>>;

/// Share of the difference that a counter must certainly cost to be named.
const LEAST_SHARE: f64 = 0.1;
/// Share of the difference that named costs must reach, or the rest is said not to be explained.
const ENOUGH: f64 = 0.5;
/// Relative change below which a counter of the processor is the same.
const LEAST_CHANGE: f64 = 0.01;
/// Counters a sentence mentions.
const MENTIONED: usize = 3;

/// The cause that a counter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Processor time.
    Cpu,
    /// Switches to other threads: a proxy for contention.
    Contention,
    /// Reads of the process from the device.
    Reads,
    /// Writes of the process to the device.
    Writes,
    /// Waiting time per request of the device.
    DeviceLatency,
    /// Page faults.
    Memory,
    /// Stalled time.
    Stalls,
    /// A part of processor time: instructions, cycles, misses.
    Processor,
    /// A counter without a price.
    Other,
}

/// How a counter moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Movement {
    /// It rose.
    Up,
    /// It fell.
    Down,
    /// It is the same in all blocks, or its change is certainly too small to matter.
    Unchanged,
    /// The data do not tell.
    Unclear,
}

/// The change of one counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterChange {
    /// Its name.
    pub name: String,
    /// Mean of the base.
    pub base: f64,
    /// Mean of the target.
    pub target: f64,
    /// Target over base: geometric over pairs, of means where zeros occur; `None` if the base is 0.
    pub ratio: Option<f64>,
    /// p-value of no change, adjusted for the number of counters; `None` for one pair.
    pub q_value: Option<f64>,
    /// How it moved.
    pub movement: Movement,
    /// The price of a unit of it, in nanoseconds; `None` if that is not known.
    pub price_ns: Option<f64>,
    /// The cost of its change for an operation, in nanoseconds; below 0 where it saves. 0 without a price. Of work that may go on in the
    /// background at a rate of its own, where that rate changed: of what the base's rate would not have brought in the same time.
    pub cost_ns: f64,
    /// Cost over the difference to be explained: 1 if it is all of it.
    pub share: Option<f64>,
    /// No change of its rate per second is shown: it may only say again what operations per second say.
    pub restates_speed: bool,
    /// It is a reason for the difference, as far as was counted.
    pub explains: bool,
    /// The cause that it stands for.
    pub cause: Cause,
}

/// The parts of a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Nanoseconds that an operation of the target takes more than one of the base.
    pub difference_ns: f64,
    /// All counters both sides have: what explains first, by cost.
    pub counters: Vec<CounterChange>,
    /// Counters only one side has.
    pub not_compared: Vec<String>,
    /// The cause that the first counter stands for; `None` if none explains the difference or the metric did
    /// not change.
    pub cause: Option<Cause>,
    /// The finding in one sentence.
    pub sentence: String,
}

/// The difference to explain, and the counters.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Name of the metric.
    pub metric: &'a str,
    /// Its change.
    pub change: &'a PairedRatio,
    /// Which way it should go.
    pub better: Better,
    /// Nanoseconds of an operation in its thread, by block, of the base and of the target.
    pub time_ns: (&'a [f64], &'a [f64]),
    /// Counters of the base, per operation.
    pub base: &'a Counters,
    /// Counters of the target, per operation.
    pub target: &'a Counters,
    /// Prices that were measured, in nanoseconds a unit; they stand before those of [`PRICES`].
    pub prices: &'a BTreeMap<String, f64>,
    /// Nothing is written meanwhile: then what is read is read for an operation, which waits for it.
    pub only_reads: bool,
}

/// Whose work a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// An operation that has it waits for it.
    Operations,
    /// As [`Whose::Operations`] where nothing is written; else as [`Whose::Anybody`]: compaction reads as well.
    Readers,
    /// That of operations and of a server's own threads, which it does not tell apart. Most of it is that of operations.
    Server,
    /// It may go on in the background, at a rate of its own.
    Anybody,
}

/// The facts known of a counter by its name.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    /// Its name.
    pub name: &'static str,
    /// The cause that it stands for.
    pub cause: Cause,
    /// Nanoseconds a unit; `None` where it must be measured.
    pub ns: Option<f64>,
    /// Whose work it counts.
    pub whose: Whose,
    /// Its name, in words that fit "more" and "less".
    pub words: &'static str,
}

const fn price(
    name: &'static str,
    cause: Cause,
    ns: Option<f64>,
    whose: Whose,
    words: &'static str,
) -> Price {
    Price { name, cause, ns, whose, words }
}

impl Price {
    /// Whether it counts only if its rate per second changed.
    fn has_own_rate(&self, only_reads: bool) -> bool {
        match self.whose {
            Whose::Operations | Whose::Server => false,
            Whose::Readers => !only_reads,
            Whose::Anybody => true,
        }
    }

    /// Its name in a sentence, which says what is in it that no operation waits for.
    fn said(&self, only_reads: bool) -> String {
        let others = matches!(self.whose, Whose::Readers | Whose::Server) && !only_reads;
        format!("{}{}", self.words, if others { ", work in the background included" } else { "" })
    }
}

/// Counters that can explain time, and what a unit of them usually costs on machines of the 2020s: a switch to another thread
/// and back 2 us, a page fault 0.5 us, a kilobyte read 25 us (4 KiB in 0.1 ms) unless the device's own latency is given, a
/// kilobyte written 0.5 us (2 GB/s). Factors of two do not matter to an order by cost.
pub const PRICES: [Price; 14] = [
    price("load_cpu_us/o", Cause::Cpu, Some(1_000.0), Whose::Operations, "processor time"),
    price("back_cpu_us/o", Cause::Cpu, Some(1_000.0), Whose::Anybody, "processor time in the background"),
    // Of a process in which nothing but the counted threads works.
    price("proc_cpu_us/o", Cause::Cpu, Some(1_000.0), Whose::Operations, "processor time"),
    price("server_cpu_us/o", Cause::Cpu, Some(1_000.0), Whose::Server, "processor time of the server"),
    price("client_cpu_us/o", Cause::Cpu, Some(1_000.0), Whose::Operations, "processor time of the clients"),
    price("stalled_us/o", Cause::Stalls, Some(1_000.0), Whose::Operations, "stalling"),
    price("proc_rKB/o", Cause::Reads, Some(25_000.0), Whose::Readers, "reading from the device"),
    price("read_await", Cause::DeviceLatency, None, Whose::Operations, "waiting for each read of the device"),
    price("proc_wKB/o", Cause::Writes, Some(500.0), Whose::Anybody, "writing to the device"),
    price(
        "vcs/o",
        Cause::Contention,
        Some(2_000.0),
        Whose::Anybody,
        "switches to wait, which suggests contention or IO",
    ),
    price(
        "server_vcs/o",
        Cause::Contention,
        Some(2_000.0),
        Whose::Anybody,
        "switches of the server to wait, which suggests contention or IO",
    ),
    price(
        "server_ivcs/o",
        Cause::Contention,
        Some(2_000.0),
        Whose::Anybody,
        "switches of the server that others forced",
    ),
    price("ivcs/o", Cause::Contention, Some(2_000.0), Whose::Anybody, "switches that others forced"),
    price("fault/o", Cause::Memory, Some(500.0), Whose::Anybody, "page faults"),
];

/// Parts of processor time, in the order they are said beside it. Cycles are not among them: they are that time again.
const PROCESSOR: [&str; 3] = ["instr/o", "cachemiss/o", "tlbmiss/o"];

/// Ranks the counters by what their change costs, and says what the difference of a metric is made of.
///
/// Counters must be per operation: totals over the step divided by its operations, never means of ratios.
///
/// # Errors
/// Sides that differ in length or have no values, a counter that is not finite or below 0, or a time not above 0.
pub fn explain(observed: &Observed<'_>, settings: &Settings) -> Result<Explanation> {
    let Observed { change, better, base, target, .. } = observed;
    let (base_time, target_time) = observed.time_ns;
    check_pair("times of base and target", base_time, target_time)?;
    check_positive("time of base", base_time, 1)?;
    check_positive("time of target", target_time, 1)?;
    let difference_ns = mean(target_time) - mean(base_time);
    let worse = (change.ratio < 1.0) == (*better == Better::Higher);
    let changed = !change.interval.contains(1.0);
    let mut found = Vec::new();
    for (name, base) in *base {
        if let Some(target) = target.get(name) {
            found.push(compare(observed, name, base, target, settings)?);
        }
    }
    correct(&mut found, 1.0 - settings.level)?;
    for CounterFinding { change: counter, certain_ns } in &mut found {
        counter.share = (changed && difference_ns != 0.0 && counter.price_ns.is_some())
            .then(|| counter.cost_ns / difference_ns);
        let moved = matches!(counter.movement, Movement::Up | Movement::Down);
        let fits = (counter.cost_ns > 0.0) == (difference_ns > 0.0);
        let enough = certain_ns.abs() >= LEAST_SHARE * difference_ns.abs();
        counter.explains = changed && moved && fits && enough && !counter.restates_speed;
    }
    // Names break ties, so that a report is the same each time it is made.
    found.sort_by(|a, b| {
        let key = |found: &CounterFinding| (found.change.explains, found.change.cost_ns.abs());
        let ((a_explains, a_cost), (b_explains, b_cost)) = (key(a), key(b));
        b_explains
            .cmp(&a_explains)
            .then(b_cost.total_cmp(&a_cost))
            .then_with(|| a.change.name.cmp(&b.change.name))
    });
    let counters: Vec<CounterChange> = found.into_iter().map(|found| found.change).collect();
    let one_sided = |name: &&String| base.contains_key(*name) != target.contains_key(*name);
    let not_compared = base.keys().chain(target.keys()).filter(one_sided).cloned().collect();
    let cause = counters.first().filter(|counter| counter.explains).map(|counter| counter.cause);
    let sentence = sentence(observed, changed, worse, difference_ns, &counters);
    Ok(Explanation { difference_ns, counters, not_compared, cause, sentence })
}

/// A counter's change, and what is certain of its cost.
struct CounterFinding {
    change: CounterChange,
    certain_ns: f64,
}

fn known(name: &str) -> Option<&'static Price> {
    PRICES.iter().find(|known| known.name == name)
}

/// Adjusts the p-values and takes back what does not stand among so many counters.
fn correct(found: &mut [CounterFinding], alpha: f64) -> Result<()> {
    let p_values: Vec<f64> = found.iter().filter_map(|found| found.change.q_value).collect();
    let mut adjusted = benjamini_hochberg(&p_values)?.into_iter();
    for CounterFinding { change, .. } in found {
        change.q_value = change.q_value.and_then(|_| adjusted.next());
        let moved = matches!(change.movement, Movement::Up | Movement::Down);
        if moved && change.q_value.is_none_or(|q_value| q_value > alpha) {
            change.movement = Movement::Unclear;
        }
    }
    Ok(())
}

/// The change of one counter with its own p-value.
fn compare(
    observed: &Observed<'_>,
    name: &str,
    base: &[f64],
    target: &[f64],
    settings: &Settings,
) -> Result<CounterFinding> {
    let named = |error: Error| Error { context: format!("{name}: {}", error.context), ..error };
    check_pair("base and target", base, target).map_err(named)?;
    check_not_negative("base", base, 1).map_err(named)?;
    check_not_negative("target", target, 1).map_err(named)?;
    check_pair("counter and time", base, observed.time_ns.0).map_err(named)?;
    let (base_mean, target_mean) = (mean(base), mean(target));
    let positive = base.iter().chain(target).all(|value| *value > 0.0);
    let ratio = if positive && base.len() > 1 {
        Some(estimate(&log_ratios(target, base)?, settings)?.ratio)
    } else {
        relative(target_mean, base_mean)
    };
    let known = known(name);
    let price_ns = observed.prices.get(name).copied().or_else(|| known.and_then(|known| known.ns));
    let per_unit = price_ns.unwrap_or(0.0);
    let (movement, p_value, certain) =
        if base.len() < 2 { (Movement::Unclear, None, 0.0) } else { moved(base, target, ratio, settings)? };
    let beyond_rate = match known {
        Some(known) if known.has_own_rate(observed.only_reads) && base.len() > 1 => {
            Some(beyond_rate(observed, base, target, settings)?)
        }
        _ => None,
    };
    let restates_speed = beyond_rate.as_ref().is_some_and(|beyond| !beyond.is_shown);
    let (units, certain) = match beyond_rate {
        Some(beyond) if beyond.is_shown => (beyond.units, beyond.certain),
        _ => (target_mean - base_mean, certain),
    };
    let cause = match known {
        Some(known) => known.cause,
        None if PROCESSOR.contains(&name) || name == "cycles/o" => Cause::Processor,
        None => Cause::Other,
    };
    let change = CounterChange {
        name: name.to_string(),
        base: base_mean,
        target: target_mean,
        ratio,
        q_value: p_value,
        movement,
        price_ns,
        cost_ns: units * per_unit,
        share: None,
        restates_speed,
        explains: false,
        cause,
    };
    Ok(CounterFinding { change, certain_ns: certain * per_unit })
}

/// How a counter moved, its p-value, and what is certain of the change.
fn moved(
    base: &[f64],
    target: &[f64],
    ratio: Option<f64>,
    settings: &Settings,
) -> Result<(Movement, Option<f64>, f64)> {
    let change = differences(target, base)?;
    let (p_value, interval): (f64, Interval) = (t_test(&change)?, t_interval(&change, settings.level)?);
    let small = ratio.is_some_and(|ratio| ratio > 0.0 && ratio.ln().abs() < LEAST_CHANGE);
    let movement = match mean(&change) {
        0.0 => Movement::Unchanged,
        _ if small => Movement::Unchanged,
        _ if interval.contains(0.0) => Movement::Unclear,
        rise if rise > 0.0 => Movement::Up,
        _ => Movement::Down,
    };
    Ok((movement, Some(p_value), interval.certain_distance()))
}

/// The part of a counter's change that the base's rate per second would not have brought by itself.
struct BeyondRate {
    /// Units of an operation.
    units: f64,
    /// As many of them as are certain.
    certain: f64,
    /// A change of the rate is shown at all.
    is_shown: bool,
}

/// A count of something in the background says more than speed does only where it is not that of the base's rate, in the time that an operation takes.
fn beyond_rate(
    observed: &Observed<'_>,
    base: &[f64],
    target: &[f64],
    settings: &Settings,
) -> Result<BeyondRate> {
    let (base_time, target_time) = observed.time_ns;
    let times = target_time.iter().zip(base_time).map(|(after, before)| after / before);
    let same_rate: Vec<f64> = base.iter().zip(times).map(|(count, slower)| count * slower).collect();
    let beyond = differences(target, &same_rate)?;
    let interval = t_interval(&beyond, settings.level)?;
    let is_shown = t_test(&beyond)? <= 1.0 - settings.level;
    Ok(BeyondRate { units: mean(&beyond), certain: interval.certain_distance(), is_shown })
}

fn sentence(
    observed: &Observed<'_>,
    changed: bool,
    worse: bool,
    difference_ns: f64,
    counters: &[CounterChange],
) -> String {
    let Interval { low, high, .. } = observed.change.interval;
    let head = format!("{} {:.3}x [{low:.3}, {high:.3}]", observed.metric, observed.change.ratio);
    if !changed {
        return format!("{head}: no difference to explain.");
    }
    let more = if worse { "more" } else { "less" };
    let head = format!("{head}: {} {more} per operation", nanoseconds(difference_ns));
    let explaining = counters.iter().filter(|counter| counter.explains);
    let parts: Vec<String> =
        explaining.clone().take(MENTIONED).map(|counter| part(observed, counter, more, counters)).collect();
    if parts.is_empty() {
        return format!("{head}, not explained by what was counted{}.", following(counters));
    }
    // Also those that are not mentioned.
    let explained: f64 = explaining.map(|counter| counter.cost_ns).sum();
    let rest = if explained / difference_ns < ENOUGH {
        format!("; {} of it are not explained by what was counted", nanoseconds(difference_ns - explained))
    } else {
        String::new()
    };
    format!("{head}: {}{rest}.", parts.join(", "))
}

/// A named cost in words, with the processor's own counters beside its time.
fn part(observed: &Observed<'_>, counter: &CounterChange, more: &str, all: &[CounterChange]) -> String {
    let words = known(&counter.name).map_or(String::new(), |known| known.said(observed.only_reads));
    let beside = if counter.cause == Cause::Cpu { processor(all) } else { String::new() };
    format!(
        "{} by {more} {words} ({} {} to {}{beside})",
        nanoseconds(counter.cost_ns),
        counter.name,
        digits(counter.base),
        digits(counter.target)
    )
}

/// How instructions and misses moved, where they were counted.
fn processor(all: &[CounterChange]) -> String {
    let said = |name: &&str| {
        let counter = all.iter().find(|counter| counter.name == **name)?;
        match (counter.movement, counter.ratio) {
            (Movement::Unclear, _) | (_, None) => None,
            (Movement::Unchanged, _) => Some(format!("; {name} unchanged")),
            (_, Some(ratio)) => Some(format!("; {name} {ratio:.2}x")),
        }
    };
    PROCESSOR.iter().filter_map(said).collect()
}

/// Counters that moved and may say nothing but speed again.
fn following(counters: &[CounterChange]) -> String {
    let names: Vec<&str> = counters
        .iter()
        .filter(|counter| counter.restates_speed && matches!(counter.movement, Movement::Up | Movement::Down))
        .map(|counter| counter.name.as_str())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("; {} moved with operations: no change of the rate per second is shown", names.join(", "))
}

fn nanoseconds(ns: f64) -> String {
    let ns = ns.abs();
    match ns {
        _ if ns >= 1e6 => format!("{:.2} ms", ns / 1e6),
        _ if ns >= 10_000.0 => format!("{:.1} us", ns / 1e3),
        _ if ns >= 10.0 => format!("{ns:.0} ns"),
        _ => format!("{ns:.1} ns"),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_string(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

//! Which counter moved with the metric: the sentence a person writes under a relative table, as a rule.
//!
//! Counters are costs per operation, one value per session and block, paired like the metric itself. They are ranked
//! by what is certain of their change (the end of the interval next to 1), so a counter that is merely noisy ranks
//! last. With twenty counters one moves by chance: their p-values are corrected for their number. A change too small to cost time (a hundredth of a context switch) does not count, however large its ratio.
//!
//! It names what moved together; it does not prove the cause.

use crate::error::{Error, Result, check_not_negative, check_pair};
use crate::interval::{Interval, t_test};
use crate::multiple::benjamini_hochberg;
use crate::paired::{PairedRatio, Settings, estimate, log_ratios, relative};
use crate::rank::differences;
use crate::summary::mean;
use crate::verdict::Better;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of each counter, one per block, by the name of the counter.
pub type Counters = BTreeMap<String, Vec<f64>>;

/// Relative change below which a counter counts as unchanged even if its interval excludes 1.
const LEAST_CHANGE: f64 = 0.01;

/// Counters shown as a contrast if they did not move.
const HEADLINES: [&str; 3] = ["cpu_us/o", "r/o", "cs/o"];

/// Counters a sentence mentions.
const MENTIONED: usize = 3;

/// What a counter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// CPU time or instructions.
    Cpu,
    /// Context switches: a proxy for contention.
    Contention,
    /// Reads from the device.
    Reads,
    /// Writes to the device.
    Writes,
    /// Waiting time per request of the device.
    DeviceLatency,
    /// Page faults and cache misses.
    Memory,
    /// Stalled time.
    Stalls,
    /// A counter this table does not know.
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
    /// It did not change by as much as matters.
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
    /// Interval of the ratio; `None` where zeros occur or there is one pair.
    pub interval: Option<Interval>,
    /// p-value of no change, adjusted for the number of counters; `None` for one pair.
    pub q_value: Option<f64>,
    /// How it moved.
    pub movement: Movement,
    /// It moved the way that fits the metric: a cost up with a regression, down with an improvement.
    pub agrees: bool,
    /// ln(ratio) over ln(ratio of the metric), in absolute value: 1 if it changed by as much as the metric.
    pub share: Option<f64>,
    /// What it stands for.
    pub cause: Cause,
}

/// What moved with a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// All counters both sides have, what moved most certainly first.
    pub counters: Vec<CounterChange>,
    /// Counters only one side has.
    pub not_compared: Vec<String>,
    /// What the first counter stands for; `None` if none moved with the metric or the metric did not change.
    pub cause: Option<Cause>,
    /// The finding in one sentence.
    pub sentence: String,
}

/// What is known of a counter by its name.
struct Known {
    name: &'static str,
    cause: Cause,
    /// Absolute change below which no operation gets slower: about 0.1 us at the usual price of the event.
    least_difference: f64,
    /// More is better, unlike a cost.
    gain: bool,
}

const fn cost(name: &'static str, cause: Cause, least_difference: f64) -> Known {
    Known { name, cause, least_difference, gain: false }
}

/// The lab's names of derived metrics.
const KNOWN: [Known; 21] = [
    cost("cpu_us/o", Cause::Cpu, 0.001),
    cost("server_cpu_us/o", Cause::Cpu, 0.001),
    cost("client_cpu_us/o", Cause::Cpu, 0.001),
    cost("instr/o", Cause::Cpu, 10.0),
    cost("cycles/o", Cause::Cpu, 10.0),
    Known { name: "ipc", cause: Cause::Cpu, least_difference: 0.01, gain: true },
    cost("cs/o", Cause::Contention, 0.02),
    cost("vcs/o", Cause::Contention, 0.02),
    cost("ivcs/o", Cause::Contention, 0.02),
    cost("r/o", Cause::Reads, 0.001),
    cost("rKB/o", Cause::Reads, 0.01),
    cost("w/o", Cause::Writes, 0.001),
    cost("wKB/o", Cause::Writes, 0.01),
    cost("d/o", Cause::Writes, 0.001),
    cost("flush/o", Cause::Writes, 0.001),
    cost("write_amp_device", Cause::Writes, 0.05),
    cost("read_await", Cause::DeviceLatency, 0.005),
    cost("write_await", Cause::DeviceLatency, 0.005),
    cost("fault/o", Cause::Memory, 0.01),
    cost("cachemiss/o", Cause::Memory, 0.5),
    cost("stalled_seconds", Cause::Stalls, 0.5),
];

/// Ranks the counters by how certainly they moved with `metric`, whose own ratio is `change`.
///
/// Counters must be per operation: totals over the step divided by its operations, never means of ratios.
///
/// # Errors
/// A counter whose two sides differ in length or have no values, or a value that is not finite or below 0.
pub fn explain(
    metric: &str,
    change: &PairedRatio,
    better: Better,
    base: &Counters,
    target: &Counters,
    settings: &Settings,
) -> Result<Explanation> {
    let worse = (change.ratio < 1.0) == (better == Better::Higher);
    let changed = !change.interval.contains(1.0);
    let mut ranked = Vec::new();
    for (name, base) in base {
        if let Some(target) = target.get(name) {
            ranked.push(compare(name, base, target, settings)?);
        }
    }
    correct(&mut ranked, 1.0 - settings.level)?;
    for (counter, _) in &mut ranked {
        counter.agrees = changed && counter.fits(worse);
        let own = counter.ratio.filter(|ratio| *ratio > 0.0);
        counter.share = own.filter(|_| changed).map(|ratio| (ratio.ln() / change.ratio.ln()).abs());
    }
    // Names break ties, so that a report is the same each time it is made.
    let rank = |(counter, certain): &(CounterChange, f64)| (counter.agrees, counter.moved(), *certain);
    ranked.sort_by(|a, b| {
        let ((a_agrees, a_moved, a_certain), (b_agrees, b_moved, b_certain)) = (rank(a), rank(b));
        b_agrees
            .cmp(&a_agrees)
            .then(b_moved.cmp(&a_moved))
            .then(b_certain.total_cmp(&a_certain))
            .then_with(|| a.0.name.cmp(&b.0.name))
    });
    let counters: Vec<CounterChange> = ranked.into_iter().map(|(counter, _)| counter).collect();
    let one_sided = |name: &&String| base.contains_key(*name) != target.contains_key(*name);
    let not_compared = base.keys().chain(target.keys()).filter(one_sided).cloned().collect();
    let cause = if changed { cause(&counters) } else { None };
    let sentence = sentence(metric, change, changed, worse, cause, &counters);
    Ok(Explanation { counters, not_compared, cause, sentence })
}

impl CounterChange {
    fn moved(&self) -> bool {
        matches!(self.movement, Movement::Up | Movement::Down)
    }

    fn fits(&self, worse: bool) -> bool {
        let costs_more = (self.movement == Movement::Up) != known(&self.name).is_some_and(|known| known.gain);
        self.moved() && costs_more == worse
    }
}

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Adjusts the p-values and takes back what does not stand among so many counters.
fn correct(ranked: &mut [(CounterChange, f64)], alpha: f64) -> Result<()> {
    let p_values: Vec<f64> = ranked.iter().filter_map(|(counter, _)| counter.q_value).collect();
    let mut adjusted = benjamini_hochberg(&p_values)?.into_iter();
    for (counter, certain) in ranked {
        counter.q_value = counter.q_value.and_then(|_| adjusted.next());
        if counter.moved() && counter.q_value.is_none_or(|q_value| q_value > alpha) {
            counter.movement = Movement::Unclear;
            *certain = 0.0;
        }
    }
    Ok(())
}

/// The change of one counter with its own p-value, and the absolute log ratio that is certain of it.
fn compare(name: &str, base: &[f64], target: &[f64], settings: &Settings) -> Result<(CounterChange, f64)> {
    let named = |error: Error| Error { context: format!("{name}: {}", error.context), ..error };
    check_pair("base and target", base, target).map_err(named)?;
    check_not_negative("base", base, 1).map_err(named)?;
    check_not_negative("target", target, 1).map_err(named)?;
    let (base_mean, target_mean) = (mean(base), mean(target));
    let matters = (target_mean - base_mean).abs() >= known(name).map_or(0.0, |known| known.least_difference);
    let (ratio, interval, p_value, movement, certain) = if base.len() < 2 {
        (relative(target_mean, base_mean), None, None, Movement::Unclear, 0.0)
    } else if base.iter().chain(target).all(|value| *value > 0.0) {
        let change = estimate(&log_ratios(target, base)?, settings)?;
        let certain = change.interval.ln().certain_distance();
        (
            Some(change.ratio),
            Some(change.interval),
            Some(change.p_value),
            movement_of(&change, matters),
            certain,
        )
    } else {
        movement_with_zeros(base, target, matters, settings.level)?
    };
    let cause = known(name).map_or(Cause::Other, |known| known.cause);
    let change = CounterChange {
        name: name.to_string(),
        base: base_mean,
        target: target_mean,
        ratio,
        interval,
        q_value: p_value,
        movement,
        agrees: false,
        share: None,
        cause,
    };
    Ok((change, certain))
}

fn movement_of(estimate: &PairedRatio, matters: bool) -> Movement {
    let interval = &estimate.interval;
    let within = interval.low > 1.0 - LEAST_CHANGE && interval.high < 1.0 + LEAST_CHANGE;
    if within || !matters {
        Movement::Unchanged
    } else if interval.contains(1.0) || estimate.ratio.ln().abs() < LEAST_CHANGE {
        Movement::Unclear
    } else if estimate.ratio > 1.0 {
        Movement::Up
    } else {
        Movement::Down
    }
}

type Moved = (Option<f64>, Option<Interval>, Option<f64>, Movement, f64);

/// Where zeros occur there are no log ratios: the differences decide, and the ratio is that of the means.
fn movement_with_zeros(base: &[f64], target: &[f64], matters: bool, level: f64) -> Result<Moved> {
    let (base_mean, target_mean) = (mean(base), mean(target));
    let ratio = relative(target_mean, base_mean);
    let p_value = t_test(&differences(target, base)?)?;
    let movement = if !matters || base_mean == target_mean {
        Movement::Unchanged
    } else if p_value > 1.0 - level {
        Movement::Unclear
    } else if target_mean > base_mean {
        Movement::Up
    } else {
        Movement::Down
    };
    // From or to nothing at all ranks before every finite ratio.
    let certain = match (movement, ratio) {
        (Movement::Up | Movement::Down, Some(ratio)) if ratio > 0.0 => ratio.ln().abs(),
        (Movement::Up | Movement::Down, _) => f64::INFINITY,
        _ => 0.0,
    };
    Ok((ratio, None, Some(p_value), movement, certain))
}

fn cause(counters: &[CounterChange]) -> Option<Cause> {
    let with_metric = || counters.iter().filter(|counter| counter.agrees);
    let first = with_metric().next()?.cause;
    // A read or a synced write blocks and so switches: where IO moved too, switches are its shadow.
    let io = with_metric()
        .map(|counter| counter.cause)
        .find(|cause| matches!(cause, Cause::Reads | Cause::Writes));
    Some(if first == Cause::Contention { io.unwrap_or(first) } else { first })
}

fn sentence(
    metric: &str,
    change: &PairedRatio,
    changed: bool,
    worse: bool,
    cause: Option<Cause>,
    counters: &[CounterChange],
) -> String {
    let Interval { low, high, .. } = change.interval;
    let head = format!("{metric} {:.3}x [{low:.3}, {high:.3}]", change.ratio);
    if !changed {
        return format!("{head}: no difference to explain.");
    }
    let mut mentioned: Vec<&CounterChange> =
        counters.iter().filter(|counter| counter.agrees).take(MENTIONED).collect();
    if mentioned.len() < MENTIONED {
        let contrast = |counter: &&CounterChange| {
            counter.movement == Movement::Unchanged && HEADLINES.contains(&counter.name.as_str())
        };
        let room = MENTIONED - mentioned.len();
        mentioned.extend(counters.iter().filter(contrast).take(room));
    }
    let details: Vec<String> = mentioned.into_iter().map(describe).collect();
    let details = if details.is_empty() { String::new() } else { format!("{}: ", details.join(", ")) };
    match cause {
        Some(cause) => format!("{head}: {details}{}.", phrase(cause, worse, counters)),
        None => format!("{head}: {details}no counter moved with it."),
    }
}

fn describe(counter: &CounterChange) -> String {
    let name = &counter.name;
    match (counter.movement, counter.ratio) {
        (Movement::Unchanged, _) => format!("{name} unchanged"),
        (_, None) => format!("{name} from 0 to {:.3}", counter.target),
        (_, Some(ratio)) => format!("{name} {ratio:.2}x"),
    }
}

fn phrase(cause: Cause, worse: bool, counters: &[CounterChange]) -> String {
    let more = if worse { "more" } else { "less" };
    match cause {
        Cause::Cpu => format!("{more} CPU per operation"),
        Cause::Contention if worse => "more context switches, which suggests contention".to_string(),
        Cause::Contention => "fewer context switches, which suggests less contention".to_string(),
        Cause::Reads => format!("{more} reading from the device per operation"),
        Cause::Writes => format!("{more} writing to the device per operation"),
        Cause::DeviceLatency => format!("the device answers {}", if worse { "later" } else { "sooner" }),
        Cause::Memory if worse => "more page faults or cache misses per operation".to_string(),
        Cause::Memory => "fewer page faults or cache misses per operation".to_string(),
        Cause::Stalls => format!("{more} stalling"),
        Cause::Other => {
            let name = counters.first().map_or("", |counter| counter.name.as_str());
            format!("{name} moved with it")
        }
    }
}

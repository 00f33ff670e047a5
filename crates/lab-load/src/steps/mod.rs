//! The steps: what each thread does, for how long, and what is measured.
//!
//! ```text
//! run_step -> threads: worker.rs (operations, measured), writer.rs (the writer beside them) -> StepResult
//!                      pace.rs (when an operation starts), limit.rs (rates of writers), upkeep.rs (shapes of the tree)
//! ```
//! In a closed loop a latency sample is the time since the previous completion in the same thread: it includes making
//! the key and any pause of the client. In an open loop operations are due at their times, and the time since then, the
//! response time, is kept beside the service time. The background writer of the "whilewriting" steps is held to a rate
//! and counted apart.

mod limit;
mod pace;
mod upkeep;
mod worker;
mod writer;

pub use outcrop_lab_stats::open_loop::Spacing;
pub use pace::{Arrival, OpenLoopResult};
pub use upkeep::wait_for_compaction;

use crate::Database;
use crate::counters::Counters;
use crate::database::Durability;
use crate::keys::KeyLayout;
use crate::mixgraph::MixParameters;
use crate::multi_get::Way;
use crate::process::ProcessUsage;
use crate::rng::Mt19937_64;
use crate::transactions::{Concurrency, TransactionDatabase};
use crate::values::{Redundancy, ValueSizes, Values};
use hdrhistogram::Histogram;
use limit::{Limiter, RateReport};
use pace::Schedule;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use worker::{Common, Operate, ThreadResult, Transactions, Worker};

/// What one operation of a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Writes the next key in order.
    FillSeq,
    /// Writes a random key; as many as there are keys leave 63.2 % of them written.
    FillRandom,
    /// Writes every key once, in random order.
    FillUniqueRandom,
    /// Writes a random key of a loaded database.
    Overwrite,
    /// Writes random keys, then flushes and waits for compaction, outside the measured time.
    OverwriteAndWait,
    /// Looks up a random key.
    ReadRandom,
    /// Looks up a random key that no load wrote.
    ReadMissing,
    /// Looks up several random keys in one call.
    MultiRead,
    /// Gets, puts and scans, of hot and cold keys.
    MixGraph,
    /// Increments counters of several sets under transactions.
    RandomTransaction,
    /// Seeks to a random key and moves on.
    Range {
        /// Moves backward.
        reverse: bool,
    },
    /// Looks up a random key, then writes it.
    Update,
    /// Adds an operand to a random key.
    Merge,
    /// Adds an operand to a random key, or looks one up.
    ReadOrMerge,
    /// Looks up a random key and writes its value with another one behind it.
    Append,
    /// Deletes a random key.
    Delete,
    /// Reads everything once.
    ReadSeq,
    /// Flushes, compacts L0 into the level below and waits for compaction.
    Settle,
    /// Flushes memtables.
    Flush,
    /// Flushes memtables and waits for compaction.
    FlushAndWait,
    /// Flushes memtables and sleeps ten seconds.
    FlushAndPause,
    /// Compacts everything.
    Compact,
    /// Compacts L0 into the first level below it that has tables.
    Compact0,
    /// Compacts the first level below L0 that has tables into the next one that has.
    Compact1,
    /// Flushes, compacts L0, the first level below and then everything, with quiet between.
    CompactLevels,
    /// Waits until no compaction runs or is due.
    WaitForCompaction,
}

impl StepKind {
    /// Whether it brings the tree into a shape, once, and measures nothing but the time that takes.
    pub fn is_upkeep(self) -> bool {
        use StepKind::{
            Compact, Compact0, Compact1, CompactLevels, Flush, FlushAndPause, FlushAndWait, Settle,
            WaitForCompaction,
        };
        matches!(
            self,
            Settle
                | Flush
                | FlushAndWait
                | FlushAndPause
                | Compact
                | Compact0
                | Compact1
                | CompactLevels
                | WaitForCompaction
        )
    }

    /// Whether its operations are writes of whole batches, which a rate can limit.
    pub fn is_put(self) -> bool {
        use StepKind::{FillRandom, FillSeq, FillUniqueRandom, Overwrite, OverwriteAndWait};
        matches!(self, FillSeq | FillRandom | FillUniqueRandom | Overwrite | OverwriteAndWait)
    }

    /// Whether it looks up keys that a load wrote, or tries to, and nothing else.
    pub fn is_lookup(self) -> bool {
        matches!(self, StepKind::ReadRandom | StepKind::ReadMissing | StepKind::MultiRead)
    }
}

/// One step of a sequence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    /// Name in reports.
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// A rate-limited writer runs beside it.
    pub while_writing: bool,
    /// Readers or writers.
    pub threads: u32,
    /// Operations of each thread; `None`: the time decides.
    pub ops: Option<u64>,
    /// Seconds, if the time decides.
    pub seconds: f64,
    /// How writes are made durable.
    pub durability: Durability,
    /// Moves of a range query.
    pub seek_nexts: u32,
    /// Keys in the database.
    pub num: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// How numbers become keys.
    #[serde(default)]
    pub layout: KeyLayout,
    /// How much more often lookups ask for some keys than for others, [`crate::keys::exponential`]; 0: not at all.
    #[serde(default)]
    pub exp_range: f64,
    /// Bytes of a value; the mean if sizes are drawn.
    pub value_size: usize,
    /// How sizes scatter; `None`: not at all.
    #[serde(default)]
    pub value_sizes: Option<ValueSizes>,
    /// What compression can make of values.
    #[serde(default)]
    pub redundancy: Redundancy,
    /// Base of the threads' seeds.
    pub seed: u64,
    /// Bytes per second of the background writer; 0: as fast as it can.
    pub writer_rate: u64,
    /// Bytes per second that the counted threads write at most, all together, if they put; 0: no limit.
    #[serde(default)]
    pub write_rate: u64,
    /// Keys the background writer chooses from.
    pub writer_num: u64,
    /// The background writer merges instead of putting.
    #[serde(default)]
    pub writer_merges: bool,
    /// Merge operator the database is opened with; empty: none.
    #[serde(default)]
    pub merge_operator: String,
    /// Of a hundred operations of [`StepKind::ReadOrMerge`], those that merge.
    #[serde(default = "seventy")]
    pub merge_percent: u32,
    /// Keys of one call, for steps that write or look up several.
    #[serde(default = "one")]
    pub batch_size: u32,
    /// Whether several keys are looked up in the way that pins values, if the library has it.
    #[serde(default)]
    pub batched: bool,
    /// When operations are due; `None`: as soon as the last has ended.
    #[serde(default)]
    pub arrival: Option<Arrival>,
    /// The mix, if the step is one.
    #[serde(default)]
    pub mix: MixParameters,
    /// Sets of counters that a transaction increments.
    #[serde(default = "five")]
    pub transaction_sets: u32,
    /// How transactions find conflicts.
    #[serde(default = "pessimistic")]
    pub concurrency: Concurrency,
    /// Share of each operation's time that is burnt in addition, to see whether it is found.
    #[serde(default)]
    pub planted: f64,
}

impl Step {
    /// Whether it needs a merge operator.
    pub fn merges(&self) -> bool {
        self.writer_merges || matches!(self.kind, StepKind::Merge | StepKind::ReadOrMerge)
    }

    /// Values for one thread.
    fn values(&self, seed: u64) -> Values {
        let redundancy = self.redundancy;
        match self.value_sizes {
            None => Values::new(redundancy, self.value_size),
            Some(sizes) => Values::drawn(redundancy, sizes, seed),
        }
        .with_room_for(redundancy, self.mix.mix_max_value_size as usize)
    }
}

fn seventy() -> u32 {
    70
}
fn one() -> u32 {
    1
}
fn five() -> u32 {
    5
}
fn pessimistic() -> Concurrency {
    Concurrency::Pessimistic
}

/// News from a running step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Operations so far.
    pub ops: u64,
    /// Seconds so far.
    pub seconds: f64,
}

/// What a step gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepResult {
    /// Operations of the counted threads.
    pub ops: u64,
    /// Seconds from the first start to the last finish.
    pub seconds: f64,
    /// Mean microseconds one thread spends per operation.
    pub micros_per_op: f64,
    /// Key and value bytes of the operations.
    pub bytes: u64,
    /// Lookups that found something.
    pub found: u64,
    /// p50, p99, p99.9, p99.99 and the maximum, microseconds of service time.
    pub percentiles: [f64; 5],
    /// Operations in each second.
    pub per_second: Vec<u64>,
    /// The longest operation that ended in each second, in microseconds, from when it was due where operations are; 0:
    /// none ended. The last second may be cut short.
    #[serde(default)]
    pub longest_per_second: Vec<u64>,
    /// Longest time without a completion in any one thread, milliseconds.
    pub longest_gap_ms: f64,
    /// The rate of the background writer, or of counted writes with a limit, over what was asked; 1 without one.
    pub writer_achieved: f64,
    /// The longest time such writes were behind a line of that rate, milliseconds.
    #[serde(default)]
    pub writer_lag_ms: f64,
    /// Response times, if operations were due at their times.
    #[serde(default)]
    pub open: Option<OpenLoopResult>,
    /// What was done otherwise than asked.
    #[serde(default)]
    pub note: Option<String>,
    /// What the engine did meanwhile.
    pub counters: Counters,
    /// CPU time used meanwhile, and memory at the end.
    pub usage: ProcessUsage,
    /// All samples, nanoseconds.
    #[serde(skip, default = "new_histogram")]
    pub samples: Histogram<u64>,
    /// All response times of an open loop, nanoseconds.
    #[serde(skip, default = "new_histogram")]
    pub responses: Histogram<u64>,
}

impl StepResult {
    /// The result of a step that did nothing.
    pub fn nothing() -> StepResult {
        summarize(&[])
    }

    fn set_rate(&mut self, report: RateReport) {
        self.writer_achieved = report.achieved;
        self.writer_lag_ms = report.longest_lag.as_secs_f64() * 1e3;
    }
}

/// Counters the threads share, each touched rarely.
struct Board {
    ops: AtomicU64,
    stop: AtomicBool,
    error: Mutex<Option<String>>,
    start: Instant,
}

impl Board {
    fn new() -> Board {
        Board {
            ops: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            error: Mutex::new(None),
            start: Instant::now(),
        }
    }

    /// Keeps the first error.
    fn fail(&self, error: String) {
        self.error.lock().expect("no thread panics with it").get_or_insert(error);
    }
}

/// Runs `step` on `db`; `observe` is called about fifty times a second. `thread_counter` numbers the threads of a
/// process from 1 and is not reset between steps: it gives each its own seed, as in db_bench.
///
/// # Errors
/// The engine's message, on the first operation that fails.
pub fn run_step(
    db: &Database,
    step: &Step,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
) -> Result<StepResult, String> {
    let before = Counters::read(db);
    let start = Instant::now();
    let way = (step.kind == StepKind::MultiRead).then(|| Way::of(db, step.batched).note(step.batched));
    let common = Common {
        start,
        limiter: Limiter::new(if step.kind.is_put() { step.write_rate } else { 0 }),
        notes: way.flatten().into_iter().collect::<Vec<_>>().into(),
    };
    let writer = step.while_writing.then_some(db);
    let worker = |seed| Worker::new(db, step, seed, &common);
    let ending = || {
        if step.kind == StepKind::OverwriteAndWait {
            db.flush()?;
            wait_for_compaction(db)?;
        }
        Ok(())
    };
    let mut result = run_threads(step, thread_counter, observe, writer, worker, ending)?;
    result.counters = Counters::read(db).since(&before);
    if let Some(limiter) = &common.limiter {
        result.set_rate(limiter.report((step.key_size + step.value_size) as f64));
    }
    let notes = common.notes.into_inner().expect("no thread panics with it");
    result.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(result)
}

/// Runs a step of transactions, and checks that none was lost.
///
/// # Errors
/// The engine's message, or that the sums of the sets differ.
pub fn run_transactions(
    db: &TransactionDatabase,
    step: &Step,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
) -> Result<StepResult, String> {
    let conflicts = AtomicU64::new(0);
    let worker = |seed| Transactions { db, step, rng: Mt19937_64::new(seed), conflicts: &conflicts };
    let mut result = run_threads(step, thread_counter, observe, None, worker, || Ok(()))?;
    let sums = db.sums(step.transaction_sets)?;
    if sums.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("a transaction was lost or torn: the sets sum up to {sums:?}"));
    }
    let conflicts = conflicts.into_inner();
    result.note = (conflicts > 0).then(|| {
        let all = conflicts + result.ops;
        format!("{conflicts} of {all} transactions met another one and were rolled back")
    });
    Ok(result)
}

/// Runs the threads of `step`, each with what `worker` makes of its seed; `ending` belongs to the step, but not to its
/// time.
fn run_threads<O: Operate>(
    step: &Step,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
    writer: Option<&Database>,
    worker: impl Fn(u64) -> O + Sync,
    ending: impl FnOnce() -> Result<(), String>,
) -> Result<StepResult, String> {
    let usage_before = ProcessUsage::read();
    let board = Board::new();
    let writer_seed = step.seed.wrapping_add(*thread_counter + 1);
    let first_seed = *thread_counter + 1 + u64::from(step.while_writing);
    *thread_counter += u64::from(step.threads) + u64::from(step.while_writing);
    let mut per_second = Vec::new();
    let (threads, report) = std::thread::scope(|scope| {
        let writer = writer.map(|db| {
            scope.spawn({
                let board = &board;
                move || writer::background_writer(db, step, writer_seed, board)
            })
        });
        let workers: Vec<_> = (0..step.threads)
            .map(|index| {
                let seed = step.seed.wrapping_add(first_seed + u64::from(index));
                let (board, worker) = (&board, &worker);
                scope.spawn(move || {
                    let operations = worker(seed);
                    let schedule = schedule(step, index, seed, Instant::now());
                    worker::measure(operations, step, board, schedule)
                })
            })
            .collect();
        watch(&board, &workers, &mut per_second, observe);
        let threads: Vec<ThreadResult> =
            workers.into_iter().map(|worker| worker.join().expect("a load thread does not panic")).collect();
        // Relaxed: only says when to end.
        board.stop.store(true, Ordering::Relaxed);
        let report =
            writer.map_or(RateReport::NONE, |writer| writer.join().expect("the writer does not panic"));
        (threads, report)
    });
    if let Some(error) = board.error.lock().ok().and_then(|mut error| error.take()) {
        return Err(error);
    }
    let mut result = summarize(&threads);
    result.open = open_loop(step, &threads, &mut result.responses);
    result.per_second = per_second;
    result.set_rate(report);
    ending()?;
    let usage = ProcessUsage::read();
    result.usage = ProcessUsage {
        user_seconds: usage.user_seconds - usage_before.user_seconds,
        system_seconds: usage.system_seconds - usage_before.system_seconds,
        rss_bytes: usage.rss_bytes,
        voluntary_switches: usage.voluntary_switches - usage_before.voluntary_switches,
        involuntary_switches: usage.involuntary_switches - usage_before.involuntary_switches,
    };
    Ok(result)
}

/// The schedule of one thread, if operations are due at their times.
fn schedule(step: &Step, thread: u32, seed: u64, start: Instant) -> Option<Schedule> {
    /// Where operations decide, time does not.
    const ENDLESS: f64 = 1e9;
    let seconds = if step.ops.is_some() { ENDLESS } else { step.seconds };
    step.arrival.map(|arrival| Schedule::new(arrival, thread, step.threads, seconds, seed, start))
}

/// The response times of all threads.
fn open_loop(
    step: &Step,
    threads: &[ThreadResult],
    responses: &mut Histogram<u64>,
) -> Option<OpenLoopResult> {
    let arrival = step.arrival?;
    let schedules = || threads.iter().filter_map(|thread| thread.schedule.as_ref());
    schedules().for_each(|schedule| responses.add(&schedule.response).expect("histograms are alike"));
    Some(OpenLoopResult {
        rate: arrival.rate,
        percentiles: percentiles(responses),
        late: schedules().map(|schedule| schedule.late).sum(),
        unserved: schedules().map(|schedule| schedule.unserved).sum(),
    })
}

/// Reports progress and notes the operations of each second until all workers are done.
fn watch(
    board: &Board,
    workers: &[std::thread::ScopedJoinHandle<'_, ThreadResult>],
    per_second: &mut Vec<u64>,
    observe: &mut dyn FnMut(Progress),
) {
    let mut noted = 0;
    while !workers.iter().all(|worker| worker.is_finished()) {
        std::thread::sleep(Duration::from_millis(20));
        let (ops, seconds) = (board.ops.load(Ordering::Relaxed), board.start.elapsed().as_secs_f64());
        while per_second.len() < seconds as usize {
            per_second.push(ops - noted);
            noted = ops;
        }
        observe(Progress { ops, seconds });
    }
}

fn summarize(threads: &[ThreadResult]) -> StepResult {
    let mut histogram = new_histogram();
    threads.iter().for_each(|thread| histogram.add(&thread.histogram).expect("histograms are alike"));
    let ops: u64 = threads.iter().map(|thread| thread.ops).sum();
    let thread_seconds: f64 =
        threads.iter().map(|thread| (thread.span[1] - thread.span[0]).as_secs_f64()).sum();
    let first = threads.iter().map(|thread| thread.span[0]).min().unwrap_or_default();
    let last = threads.iter().map(|thread| thread.span[1]).max().unwrap_or_default();
    StepResult {
        ops,
        seconds: (last - first).as_secs_f64(),
        micros_per_op: thread_seconds * 1e6 / ops.max(1) as f64,
        bytes: threads.iter().map(|thread| thread.bytes).sum(),
        found: threads.iter().map(|thread| thread.found).sum(),
        percentiles: percentiles(&histogram),
        per_second: Vec::new(),
        longest_per_second: longest_per_second(threads),
        longest_gap_ms: threads.iter().map(|t| t.longest_gap.as_secs_f64() * 1e3).fold(0.0, f64::max),
        writer_achieved: 1.0,
        writer_lag_ms: 0.0,
        open: None,
        note: None,
        counters: Counters::default(),
        usage: ProcessUsage::default(),
        samples: histogram,
        responses: new_histogram(),
    }
}

/// The longest operation of any thread in each second, in microseconds.
fn longest_per_second(threads: &[ThreadResult]) -> Vec<u64> {
    let seconds = threads.iter().map(|thread| thread.longest_by_second.len()).max().unwrap_or(0);
    let longest = |second: usize| {
        let all = threads.iter().filter_map(|thread| thread.longest_by_second.get(second));
        all.max().map_or(0, |nanos| nanos.div_ceil(1000))
    };
    (0..seconds).map(longest).collect()
}

/// p50, p99, p99.9, p99.99 and the maximum of a histogram of nanoseconds, in microseconds.
fn percentiles(histogram: &Histogram<u64>) -> [f64; 5] {
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
    [at(0.5), at(0.99), at(0.999), at(0.9999), micros(histogram.max())]
}

/// An empty histogram of nanoseconds up to an hour, exact to three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts to the step's operations and notes its seed.
    struct Counting<'a>(u64, &'a Mutex<Vec<u64>>);

    impl Operate for Counting<'_> {
        fn operate(&mut self, ops: u64) -> Result<worker::Done, String> {
            if ops == 0 {
                self.1.lock().unwrap().push(self.0);
            }
            Ok(worker::Done { ops: 1, found: 1, bytes: 100 })
        }
    }

    fn step(threads: u32, ops: u64) -> Step {
        let text = format!(
            r#"{{"name": "t", "kind": "ReadRandom", "while_writing": false, "threads": {threads}, "ops": {ops},
                "seconds": 0.0, "durability": "Wal", "seek_nexts": 0, "num": 10, "key_size": 16, "value_size": 84,
                "seed": 1000, "writer_rate": 0, "writer_num": 10}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn threads_take_seeds_in_turn_over_all_steps_and_do_their_operations_each() {
        let (seeds, mut counter) = (Mutex::new(Vec::new()), 0);
        let mut run = |step: &Step| {
            let worker = |seed| Counting(seed, &seeds);
            run_threads(step, &mut counter, &mut |_| (), None, worker, || Ok(())).unwrap()
        };
        let first = run(&step(2, 5));
        assert_eq!((first.ops, first.bytes, first.found), (10, 1000, 10), "operations are not divided");
        run(&step(1, 1));
        let mut seeds = seeds.into_inner().unwrap();
        seeds.sort_unstable();
        assert_eq!(seeds, [1001, 1002, 1003], "the count of threads goes on");
    }

    #[test]
    fn a_step_lasts_from_the_first_start_to_the_last_finish() {
        let thread = |from: u64, to: u64, ops| ThreadResult {
            ops,
            found: 0,
            bytes: 0,
            span: [from, to].map(Duration::from_millis),
            histogram: new_histogram(),
            longest_gap: Duration::ZERO,
            longest_by_second: Vec::new(),
            schedule: None,
        };
        let result = summarize(&[thread(0, 1000, 10), thread(500, 2000, 15)]);
        assert_eq!((result.ops, result.seconds), (25, 2.0));
        assert_eq!(result.micros_per_op, 100_000.0, "a second and a half-longer one, over 25 operations");
    }
}

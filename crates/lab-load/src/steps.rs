//! The steps: what each thread does, for how long, and what is measured.
//!
//! A latency sample is the time since the previous completion in the same thread: it includes making the key
//! and any pause of the client (closed loop). The background writer of the "whilewriting" steps is held to a
//! rate and counted apart.

use crate::Database;
use crate::counters::Counters;
use crate::database::Durability;
use crate::keys::write_key;
use crate::process::ProcessUsage;
use crate::rng::Mt19937_64;
use crate::values::Values;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one operation of a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepKind {
    /// Writes the next key in order.
    FillSeq,
    /// Writes a random key.
    Overwrite,
    /// Writes random keys, then flushes and waits for compaction, outside the measured time.
    OverwriteAndWait,
    /// Looks up a random key.
    ReadRandom,
    /// Looks up a random key that no load wrote.
    ReadMissing,
    /// Seeks to a random key and moves on.
    Range {
        /// Moves backward.
        reverse: bool,
    },
    /// Looks up a random key, then writes it.
    Update,
    /// Deletes a random key.
    Delete,
    /// Reads everything once.
    ReadSeq,
    /// Flushes, merges L0 away and waits for compaction.
    Settle,
    /// Flushes memtables.
    Flush,
    /// Compacts everything.
    Compact,
    /// Waits until no compaction runs or is due.
    WaitForCompaction,
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
    /// Bytes of a value.
    pub value_size: usize,
    /// Base of the threads' seeds.
    pub seed: u64,
    /// Bytes per second of the background writer.
    pub writer_rate: u64,
    /// Keys the background writer chooses from.
    pub writer_num: u64,
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
    /// Longest time without a completion in any one thread, milliseconds.
    pub longest_gap_ms: f64,
    /// The background writer's rate over what was asked; 1 without one.
    pub writer_achieved: f64,
    /// What the engine did meanwhile.
    pub counters: Counters,
    /// CPU time used meanwhile, and memory at the end.
    pub usage: ProcessUsage,
    /// All samples, nanoseconds.
    #[serde(skip, default = "new_histogram")]
    pub samples: Histogram<u64>,
}

/// Operations between looks at the clock for the end of the step; at 1000 ns each, far below 10 ms.
const CHECK_EVERY: u64 = 128;
/// Counters the threads share, each touched rarely.
struct Board {
    ops: AtomicU64,
    stop: AtomicBool,
    error: Mutex<Option<String>>,
    start: Instant,
}

/// What one thread measured.
struct ThreadResult {
    ops: u64,
    found: u64,
    bytes: u64,
    seconds: f64,
    histogram: Histogram<u64>,
    longest_gap: Duration,
}

/// Runs `step` on `db`; `observe` is called about ten times a second. `thread_counter` numbers the threads of a
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
    let (before, usage_before) = (Counters::read(db), ProcessUsage::read());
    let board = Board {
        ops: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        error: Mutex::new(None),
        start: Instant::now(),
    };
    let writer_seed = step.seed.wrapping_add(*thread_counter + 1);
    let first_seed = *thread_counter + 1 + u64::from(step.while_writing);
    *thread_counter += u64::from(step.threads) + u64::from(step.while_writing);
    let mut per_second = Vec::new();
    let (threads, writer_achieved) = std::thread::scope(|scope| {
        let writer =
            step.while_writing.then(|| scope.spawn(|| background_writer(db, step, writer_seed, &board)));
        let workers: Vec<_> = (0..u64::from(step.threads))
            .map(|index| {
                let (board, seed) = (&board, step.seed.wrapping_add(first_seed + index));
                scope.spawn(move || worker(db, step, seed, board))
            })
            .collect();
        watch(&board, &workers, &mut per_second, observe);
        let threads: Vec<ThreadResult> =
            workers.into_iter().map(|worker| worker.join().expect("a load thread does not panic")).collect();
        // Relaxed: only says when to end.
        board.stop.store(true, Ordering::Relaxed);
        let achieved = writer.map_or(1.0, |writer| writer.join().expect("the writer does not panic"));
        (threads, achieved)
    });
    if let Some(error) = board.error.lock().ok().and_then(|mut error| error.take()) {
        return Err(error);
    }
    let mut result = summarize(&threads);
    result.per_second = per_second;
    result.writer_achieved = writer_achieved;
    if step.kind == StepKind::OverwriteAndWait {
        db.flush()?;
        wait_for_compaction(db)?;
    }
    result.counters = Counters::read(db).since(&before);
    let usage = ProcessUsage::read();
    result.usage = ProcessUsage {
        user_seconds: usage.user_seconds - usage_before.user_seconds,
        system_seconds: usage.system_seconds - usage_before.system_seconds,
        rss_bytes: usage.rss_bytes,
    };
    Ok(result)
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
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    let ops: u64 = threads.iter().map(|thread| thread.ops).sum();
    let thread_seconds: f64 = threads.iter().map(|thread| thread.seconds).sum();
    let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
    StepResult {
        ops,
        seconds: threads.iter().map(|thread| thread.seconds).fold(0.0, f64::max),
        micros_per_op: thread_seconds * 1e6 / ops.max(1) as f64,
        bytes: threads.iter().map(|thread| thread.bytes).sum(),
        found: threads.iter().map(|thread| thread.found).sum(),
        percentiles: [at(0.5), at(0.99), at(0.999), at(0.9999), micros(histogram.max())],
        per_second: Vec::new(),
        longest_gap_ms: threads.iter().map(|t| t.longest_gap.as_secs_f64() * 1e3).fold(0.0, f64::max),
        writer_achieved: 1.0,
        counters: Counters::default(),
        usage: ProcessUsage::default(),
        samples: histogram,
    }
}

/// An empty histogram of nanoseconds up to an hour, exact to three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds are valid")
}

/// One counted thread.
fn worker(db: &Database, step: &Step, seed: u64, board: &Board) -> ThreadResult {
    let mut rng = Mt19937_64::new(seed);
    let mut values = Values::new(0.5, step.value_size);
    let mut key = vec![0; step.key_size];
    let mut result = ThreadResult {
        ops: 0,
        found: 0,
        bytes: 0,
        seconds: 0.0,
        histogram: new_histogram(),
        longest_gap: Duration::ZERO,
    };
    let start = Instant::now();
    let mut last = start;
    let limit = step.ops.unwrap_or(u64::MAX);
    let pair = (step.key_size + step.value_size) as u64;
    while result.ops < limit {
        let number = if step.kind == StepKind::FillSeq { result.ops } else { rng.next_u64() % step.num };
        write_key(number, &mut key);
        let outcome = match step.kind {
            StepKind::FillSeq | StepKind::Overwrite | StepKind::OverwriteAndWait => {
                db.put(step.durability, &key, values.next(step.value_size)).map(|()| true)
            }
            StepKind::ReadRandom => db.get(&key),
            StepKind::ReadMissing => {
                // The last byte of a loaded key is '0'.
                *key.last_mut().expect("keys are not empty") = b'1';
                db.get(&key)
            }
            StepKind::Range { reverse } => db.range(&key, step.seek_nexts, reverse),
            StepKind::Update => db.get(&key).and_then(|found| {
                db.put(step.durability, &key, values.next(step.value_size)).map(|()| found)
            }),
            StepKind::Delete => db.delete(step.durability, &key).map(|()| true),
            StepKind::ReadSeq => db.scan().map(|rows| {
                // One operation per row; the sample is that of the whole scan.
                result.ops += rows.saturating_sub(1);
                result.bytes += rows.saturating_sub(1) * pair;
                true
            }),
            StepKind::Settle => settle(db).map(|()| true),
            StepKind::Flush => db.flush().map(|()| true),
            StepKind::Compact => {
                db.compact();
                Ok(true)
            }
            StepKind::WaitForCompaction => wait_for_compaction(db).map(|()| true),
        };
        match outcome {
            Ok(found) => result.found += u64::from(found),
            Err(error) => {
                board.error.lock().expect("no thread panics with it").get_or_insert(error);
                break;
            }
        }
        result.ops += 1;
        result.bytes += pair;
        let now = Instant::now();
        let sample = now - last;
        result.histogram.saturating_record(sample.as_nanos() as u64);
        result.longest_gap = result.longest_gap.max(sample);
        last = now;
        if result.ops.is_multiple_of(CHECK_EVERY) {
            board.ops.fetch_add(CHECK_EVERY, Ordering::Relaxed);
            if step.ops.is_none() && (now - start).as_secs_f64() >= step.seconds {
                break;
            }
        }
    }
    result.seconds = (last - start).as_secs_f64();
    result
}

/// Flush, then L0 into the level below, then quiet.
///
/// The C API has no call for compacting L0 alone; a full `compact_range` also merges L0 away, and leaves both
/// engines with the same known shape.
fn settle(db: &Database) -> Result<(), String> {
    db.flush()?;
    wait_for_compaction(db)?;
    db.compact();
    wait_for_compaction(db)
}

/// Waits until nothing runs and nothing is due.
pub fn wait_for_compaction(db: &Database) -> Result<(), String> {
    const NAMES: [&str; 4] = [
        "rocksdb.num-running-compactions",
        "rocksdb.num-running-flushes",
        "rocksdb.compaction-pending",
        "rocksdb.mem-table-flush-pending",
    ];
    let deadline = Instant::now() + Duration::from_secs(600);
    let mut quiet = 0;
    while quiet < 10 {
        let busy = NAMES.iter().any(|name| db.property_int(name).unwrap_or(0) != 0);
        quiet = if busy { 0 } else { quiet + 1 };
        if Instant::now() > deadline {
            return Err("compaction was not done after 600 s".to_string());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    match db.property_int("rocksdb.background-errors") {
        Some(errors) if errors > 0 => Err("the engine reports a background error".to_string()),
        _ => Ok(()),
    }
}

/// Writes random keys at the step's rate until told to stop; gives achieved over asked.
fn background_writer(db: &Database, step: &Step, seed: u64, board: &Board) -> f64 {
    const SLICE: Duration = Duration::from_millis(10);
    let mut rng = Mt19937_64::new(seed);
    let mut values = Values::new(0.5, step.value_size);
    let mut key = vec![0; step.key_size];
    let pair = (step.key_size + step.value_size) as f64;
    let start = Instant::now();
    let mut written = 0u64;
    while !board.stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * step.writer_rate as f64 / pair) as u64;
        while written < due && !board.stop.load(Ordering::Relaxed) {
            write_key(rng.next_u64() % step.writer_num, &mut key);
            if let Err(error) = db.put(Durability::Wal, &key, values.next(step.value_size)) {
                board.error.lock().expect("no thread panics with it").get_or_insert(error);
                return 0.0;
            }
            written += 1;
        }
        std::thread::sleep(SLICE);
    }
    let asked = start.elapsed().as_secs_f64() * step.writer_rate as f64 / pair;
    if asked < 1.0 { 1.0 } else { written as f64 / asked }
}

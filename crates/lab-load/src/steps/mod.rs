//! The steps: the work of each thread, for how long, and the measurements.
//!
//! ```text
//! run_step -> threads: measure.rs, worker.rs (operations, measured), writer.rs, scanner.rs (the thread beside them) -> StepResult
//!                      pace.rs (when an operation starts), limit.rs (rates of writers), upkeep.rs (shapes of the tree)
//! definition.rs: what a step is          result.rs: what it gave, beside.rs: what threads beside it did, kinds.rs: how often each operation
//! ```
//! In a closed loop a latency sample is the time since the previous completion in the same thread: it includes making
//! the key and any pause of the client. In an open loop operations are due at their times, and the time since then, the
//! response time, is kept beside the service time. The background writer of the "whilewriting" steps is held to a rate
//! and counted apart; so is the scan of "readwhilescanning", which goes as fast as it can.

pub mod beside;
mod definition;
mod kinds;
mod limit;
mod measure;
mod pace;
mod result;
mod scanner;
mod upkeep;
mod worker;
mod writer;

pub use definition::{Step, StepKind};
pub use kinds::KindCounts;
pub use measure::{Done, Operate};
pub use outcrop_lab_stats::open_loop::Spacing;
pub use pace::{Arrival, OpenLoopResult};
pub use result::{StatementPlan, StepResult, new_histogram};
pub use upkeep::wait_for_compaction;

use crate::Database;
use crate::counters::Counters;
use crate::multi_get::Way;
use crate::process::ProcessUsage;
use crate::transactions::TransactionDatabase;
use hdrhistogram::Histogram;
use limit::{Limiter, RateReport};
use measure::ThreadResult;
use pace::Schedule;
use result::{percentiles, summarize};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use worker::{Common, Transactions, Worker};

/// News from a running step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Operations so far.
    pub ops: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Operations of each thread since the last pause.
    #[serde(skip)]
    pub threads: Vec<u64>,
    /// Writes of the writer beside them, or rows of the scan, if there is one.
    #[serde(skip)]
    pub beside: Option<u64>,
}

/// Counters the threads share, each touched rarely.
struct Board {
    /// Operations of each thread.
    ops: Vec<AtomicU64>,
    /// Writes of the writer beside them, or rows of the scan.
    beside: AtomicU64,
    stop: AtomicBool,
    error: Mutex<Option<String>>,
    start: Instant,
    /// The part of the step that was done before a pause.
    before: Before,
}

/// The part of a step that was done before a pause.
#[derive(Clone, Copy, Default)]
struct Before {
    ops: u64,
    time: Duration,
    /// Whole seconds of it, and the operations in them.
    noted: (usize, u64),
}

impl Before {
    fn of(so_far: Option<&StepResult>) -> Before {
        so_far.map_or(Before::default(), |so_far| Before {
            ops: so_far.ops,
            time: Duration::from_secs_f64(so_far.seconds),
            noted: (so_far.per_second.len(), so_far.per_second.iter().sum()),
        })
    }
}

impl Board {
    fn new(before: Before, threads: u32) -> Board {
        Board {
            ops: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            beside: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            error: Mutex::new(None),
            start: Instant::now(),
            before,
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
    run_slice(db, step, None, thread_counter, observe)
}

/// As [`run_step`], for the part of a step that takes `step.seconds` and comes after `so_far`, with any pause between. Gives the
/// result of all parts so far: operations and times are added up, and seconds counted on, as if there had been no pause.
///
/// # Errors
/// As [`run_step`].
pub fn run_slice(
    db: &Database,
    step: &Step,
    so_far: Option<StepResult>,
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
        kinds: Mutex::default(),
    };
    let beside = (step.threads_beside() > 0).then_some(db);
    let worker = |seed| Worker::new(db, step, seed, &common);
    let ending = || {
        if step.kind == StepKind::OverwriteAndWait {
            db.flush()?;
            wait_for_compaction(db)?;
        }
        Ok(())
    };
    let done = Before::of(so_far.as_ref());
    let mut result = run_threads(step, done, thread_counter, observe, beside, worker, ending)?;
    result.counters = Counters::read(db).since(&before);
    if let Some(limiter) = &common.limiter {
        result.set_rate(limiter.report((step.key_size + step.value_size) as f64));
    }
    let kinds = common.kinds.into_inner().expect("no thread panics with it");
    result.kinds = step.kind.has_several().then_some(kinds);
    let notes = common.notes.into_inner().expect("no thread panics with it");
    result.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(match so_far {
        None => result,
        Some(so_far) => so_far.followed_by(result),
    })
}

/// Runs a step on a database that is open for transactions, and checks that no transaction was lost.
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
    let sets = if step.kind == StepKind::RandomTransaction { step.transaction_sets } else { 0 };
    let before = db.sums(sets)?;
    let worker = |seed| Transactions::new(db, step, seed, &conflicts);
    let mut result = run_threads(step, Before::default(), thread_counter, observe, None, worker, || Ok(()))?;
    check_sums(&before, &db.sums(sets)?)?;
    let conflicts = conflicts.into_inner();
    result.kinds = step.kind.has_several().then(|| KindCounts { aborts: conflicts, ..KindCounts::default() });
    result.note = (conflicts > 0).then(|| {
        let all = conflicts + result.ops;
        format!("{conflicts} of {all} transactions met another one and were rolled back")
    });
    Ok(result)
}

/// Whether each set grew by the same from `before` on: earlier steps may have had other sets.
fn check_sums(before: &[u64], after: &[u64]) -> Result<(), String> {
    let grew: Vec<i128> =
        before.iter().zip(after).map(|(before, after)| i128::from(*after) - i128::from(*before)).collect();
    if grew.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("a transaction was lost or torn: the sums of the sets grew by {grew:?}"));
    }
    Ok(())
}

/// As [`run_slice`], for operations that are no engine's: each thread does what `worker` makes of its seed.
///
/// # Errors
/// The first error of any thread.
pub fn run_operations<O: Operate>(
    step: &Step,
    so_far: Option<StepResult>,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
    worker: impl Fn(u64) -> O + Sync,
) -> Result<StepResult, String> {
    let before = Before::of(so_far.as_ref());
    let result = run_threads(step, before, thread_counter, observe, None, worker, || Ok(()))?;
    Ok(match so_far {
        None => result,
        Some(so_far) => so_far.followed_by(result),
    })
}

/// Runs the threads of `step`, each with what `worker` makes of its seed, and one on `beside` that writes or scans; `ending` belongs to
/// the step, but not to its time.
fn run_threads<O: Operate>(
    step: &Step,
    before: Before,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
    beside: Option<&Database>,
    worker: impl Fn(u64) -> O + Sync,
    ending: impl FnOnce() -> Result<(), String>,
) -> Result<StepResult, String> {
    let usage_before = ProcessUsage::read();
    let board = Board::new(before, step.threads);
    let beside_seed = step.seed.wrapping_add(*thread_counter + 1);
    let first_seed = *thread_counter + 1 + u64::from(step.threads_beside());
    *thread_counter += u64::from(step.threads) + u64::from(step.threads_beside());
    let mut per_second = Vec::new();
    let (threads, report) = std::thread::scope(|scope| {
        let beside = beside.map(|db| {
            let board = &board;
            scope.spawn(move || {
                if step.kind == StepKind::ReadWhileScanning {
                    scanner::background_scan(db, step, beside_seed, board);
                    return RateReport::NONE;
                }
                writer::background_writer(db, step, beside_seed, board)
            })
        });
        let workers: Vec<_> = (0..step.threads)
            .map(|index| {
                let seed = step.seed.wrapping_add(first_seed + u64::from(index));
                let (board, worker) = (&board, &worker);
                scope.spawn(move || {
                    let operations = worker(seed);
                    let schedule = schedule(step, index, seed, Instant::now());
                    measure::measure(operations, step, board, index, schedule)
                })
            })
            .collect();
        let mut observe = |progress: Progress| {
            // Relaxed: a number to be shown.
            let done = beside.as_ref().map(|_| board.beside.load(Ordering::Relaxed));
            observe(Progress { beside: done, ..progress });
        };
        watch(&board, &workers, &mut per_second, &mut observe);
        let threads: Vec<ThreadResult> =
            workers.into_iter().map(|worker| worker.join().expect("a load thread does not panic")).collect();
        // Relaxed: only says when to end.
        board.stop.store(true, Ordering::Relaxed);
        let report = beside
            .map_or(RateReport::NONE, |thread| thread.join().expect("the thread beside does not panic"));
        (threads, report)
    });
    if let Some(error) = board.error.lock().ok().and_then(|mut error| error.take()) {
        return Err(error);
    }
    let mut result = summarize(&threads);
    result.open = open_loop(step, &threads, &mut result.responses);
    result.per_second = per_second;
    result.set_rate(report);
    result.scanned_rows = (step.kind == StepKind::ReadWhileScanning).then(|| board.beside.into_inner());
    ending()?;
    result.usage = ProcessUsage::read().since(&usage_before);
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
    let unserved = schedules().map(|schedule| schedule.unserved).sum();
    let passed: u64 = schedules().map(|schedule| schedule.passed).sum();
    Some(OpenLoopResult {
        rate: arrival.rate,
        percentiles: percentiles(responses),
        late: schedules().map(|schedule| schedule.late).sum(),
        unserved,
        served: responses.len() - unserved,
        due: responses.len() + passed,
    })
}

/// Reports progress and notes the operations of each second until all workers are done.
fn watch(
    board: &Board,
    workers: &[std::thread::ScopedJoinHandle<'_, ThreadResult>],
    per_second: &mut Vec<u64>,
    observe: &mut dyn FnMut(Progress),
) {
    /// Between two looks; and soon after the start, for steps that are short.
    const PERIOD: Duration = Duration::from_millis(20);
    let (mut whole, mut noted) = board.before.noted;
    while !workers.iter().all(|worker| worker.is_finished()) {
        std::thread::sleep((board.start.elapsed() / 50).clamp(Duration::from_millis(1), PERIOD));
        let threads: Vec<u64> = board.ops.iter().map(|ops| ops.load(Ordering::Relaxed)).collect();
        let ops = board.before.ops + threads.iter().sum::<u64>();
        let seconds = (board.before.time + board.start.elapsed()).as_secs_f64();
        while whole < seconds as usize {
            per_second.push(ops - noted);
            (whole, noted) = (whole + 1, ops);
        }
        observe(Progress { ops, seconds, threads, beside: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts to the step's operations and notes its seed.
    struct Counting<'a>(u64, &'a Mutex<Vec<u64>>);

    impl Operate for Counting<'_> {
        fn operate(&mut self, ops: u64) -> Result<measure::Done, String> {
            if ops == 0 {
                self.1.lock().unwrap().push(self.0);
            }
            Ok(measure::Done { ops: 1, found: 1, bytes: 100 })
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
    fn seconds_are_counted_on_after_a_pause() {
        let (seeds, mut counter) = (Mutex::new(Vec::new()), 0);
        let mut run = |so_far: Option<StepResult>| {
            let timed = Step { ops: None, seconds: 0.6, ..step(1, 0) };
            let slow = |seed| Slow(Counting(seed, &seeds));
            let before = Before::of(so_far.as_ref());
            let result =
                run_threads(&timed, before, &mut counter, &mut |_| (), None, slow, || Ok(())).unwrap();
            match so_far {
                None => result,
                Some(so_far) => so_far.followed_by(result),
            }
        };
        let first = run(None);
        assert!(first.per_second.is_empty(), "no whole second yet");
        let ops = first.ops;
        let both = run(Some(first));
        assert!((1.15..5.0).contains(&both.seconds), "{}", both.seconds);
        assert!(both.per_second[0] > ops && both.per_second.iter().sum::<u64>() < both.ops, "{both:?}");
        assert!(both.longest_per_second.len() >= 2 && both.longest_per_second.iter().all(|us| *us >= 1000));
        assert_eq!((both.samples.len(), both.bytes), (both.ops, both.ops * 100));
        assert_eq!(*seeds.lock().unwrap(), [1001, 1002], "the second part asks for other keys");
    }

    /// Takes a millisecond for each operation.
    struct Slow<'a>(Counting<'a>);

    impl Operate for Slow<'_> {
        fn operate(&mut self, ops: u64) -> Result<measure::Done, String> {
            std::thread::sleep(Duration::from_millis(1));
            self.0.operate(ops)
        }
    }

    #[test]
    fn sets_of_counters_must_grow_alike_whatever_earlier_steps_left_in_them() {
        assert_eq!(check_sums(&[0; 5], &[70; 5]), Ok(()));
        assert_eq!(check_sums(&[70, 70, 0, 0], &[75, 75, 5, 5]), Ok(()), "two sets before, four now");
        let error = check_sums(&[70, 70, 0], &[75, 74, 5]).unwrap_err();
        assert!(error.contains("grew by [5, 4, 5]"), "{error}");
        assert!(check_sums(&[9, 9], &[8, 9]).is_err(), "lost from before");
    }

    /// The open loop of a step of two threads at 1000 operations a second, each of which takes `time`.
    fn due_at_times(step: &Step, time: Duration) -> (u64, OpenLoopResult) {
        struct Sleeping(Duration);
        impl Operate for Sleeping {
            fn operate(&mut self, _ops: u64) -> Result<measure::Done, String> {
                std::thread::sleep(self.0);
                Ok(measure::Done { ops: 1, found: 1, bytes: 1 })
            }
        }
        let arrival = Some(Arrival { rate: 1000.0, spacing: Spacing::Grid });
        let step = Step { arrival, ..step.clone() };
        let worker = |_| Sleeping(time);
        let result =
            run_threads(&step, Before::default(), &mut 0, &mut |_| (), None, worker, || Ok(())).unwrap();
        assert_eq!(result.responses.len(), result.ops + result.open.as_ref().unwrap().unserved);
        (result.ops, result.open.unwrap())
    }

    #[test]
    fn operations_that_fall_due_while_one_spans_the_end_of_the_step_are_counted() {
        let timed = Step { ops: None, seconds: 0.05, ..step(2, 0) };
        let (ops, open) = due_at_times(&timed, Duration::from_millis(80));
        // A busy machine may begin a thread only after the end.
        assert!(ops <= 2, "{ops}");
        assert_eq!((ops + open.unserved, open.served, open.due), (50, ops, 50));
        assert!(open.percentiles[4] >= 49_000.0, "{open:?}");
    }

    #[test]
    fn of_a_step_that_its_number_of_operations_ends_none_is_left_out_but_more_may_have_been_due() {
        let (ops, open) = due_at_times(&step(2, 3), Duration::from_millis(20));
        assert_eq!((ops, open.unserved, open.served), (6, 0, 6));
        assert!(open.due >= 55, "sixty milliseconds at a thousand a second: {open:?}");
    }

    /// Burns processor time in its own thread, and as much in another one.
    struct Burning;

    impl Operate for Burning {
        fn operate(&mut self, _ops: u64) -> Result<measure::Done, String> {
            let burn = || {
                (0..2_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
            };
            burn();
            std::thread::spawn(burn).join().unwrap();
            Ok(measure::Done { ops: 1, found: 1, bytes: 1 })
        }
    }

    #[test]
    fn processor_time_of_counted_threads_is_told_from_that_of_others() {
        let worker = |_| Burning;
        let result =
            run_threads(&step(2, 5), Before::default(), &mut 0, &mut |_| (), None, worker, || Ok(()));
        let result = result.unwrap();
        let own = result.load_cpu_seconds.unwrap();
        // Other tests run in this process, so of the whole only a lower bound is known: the other threads did as much.
        let all = result.usage.user_seconds + result.usage.system_seconds;
        assert!(own > 0.0 && all > 1.3 * own, "{own} of {all}");
    }

    #[test]
    fn threads_take_seeds_in_turn_over_all_steps_and_do_their_operations_each() {
        let (seeds, mut counter) = (Mutex::new(Vec::new()), 0);
        let mut run = |step: &Step| {
            let worker = |seed| Counting(seed, &seeds);
            run_threads(step, Before::default(), &mut counter, &mut |_| (), None, worker, || Ok(())).unwrap()
        };
        let first = run(&step(2, 5));
        assert_eq!((first.ops, first.bytes, first.found), (10, 1000, 10), "operations are not divided");
        run(&step(1, 1));
        let mut seeds = seeds.into_inner().unwrap();
        seeds.sort_unstable();
        assert_eq!(seeds, [1001, 1002, 1003], "the count of threads goes on");
    }
}

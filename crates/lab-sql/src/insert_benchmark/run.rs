//! The roles of each step: which are counted, and which run beside them.
//!
//! ```text
//! l.i0   inserter*                       l.x    rows, then indexes*
//! l.i1   inserter* | deleter, in step    qr100  querier* | inserter and deleter, in step and both held to a rate
//! ```
//! The counted role (*) gives the step's operations, times and histogram; the others are counted by the second.
//! A rate is kept second by second: rows that did not fit into a second are not made up for. Of a step's last second, which is a part of one, a part is due.
//! Invariant: the inserter and the deleter of a table are never more than a few statements apart, in no step.

use super::lockstep::{Lockstep, Side, Turn};
use super::roles::{Deleter, Inserter, Querier};
use super::{Phase, Queries, rows, table_name};
use crate::pool::Pool;
use outcrop_lab_load::steps::beside::BesideResult;
use outcrop_lab_load::steps::{Done, Operate, run_operations};
use outcrop_lab_load::{Progress, Step, StepResult};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A step of the benchmark, beside what every step has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertStep {
    /// Its work.
    pub phase: Phase,
    /// Rows of a transaction that inserts or deletes.
    pub batch: u32,
}

/// Rows that the step of the indexes inserts first.
const ROWS_BEFORE_INDEX: u32 = 100;

/// The state that the threads of a step share.
struct Common<'a> {
    pool: &'a Pool,
    engine: &'a str,
    step: &'a InsertStep,
    /// Rows of a table before the indexes are made.
    rows: u64,
    /// Tables that were given to counted threads.
    given: AtomicU32,
    lockstep: Vec<Lockstep>,
    /// Keys below which rows of each table are gone.
    cursors: Vec<AtomicI64>,
    over: AtomicBool,
    /// Seconds that the step is to take.
    seconds: f64,
    /// Seed of the first table's threads; that of each other table is by its number.
    seed: u64,
    /// The work of threads that are not counted: those that insert, and those that delete.
    beside: [Beside; 2],
    /// Nanoseconds that deleters spent looking for the oldest row.
    searched: AtomicU64,
    error: Mutex<Option<String>>,
}

/// Rows, and the time they took.
struct Beside {
    rows: AtomicU64,
    statements: Mutex<BesideResult>,
    /// From the start of the first thread to the end of the last, since the beginning of the step.
    span: Mutex<Option<[Duration; 2]>>,
    begun: Instant,
}

impl Beside {
    fn new(begun: Instant) -> Beside {
        let statements = Mutex::new(BesideResult::default());
        Beside { rows: AtomicU64::new(0), statements, span: Mutex::new(None), begun }
    }

    /// Notes a statement on `rows` rows that has just ended and `took` so long.
    fn add(&self, rows: u64, took: Duration) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.statements.lock().expect("nobody panics with it").note(self.begun.elapsed(), rows, took);
    }

    /// Runs a thread of this kind, whose connection is there, and notes when.
    fn timed<T>(&self, role: impl FnOnce() -> T) -> T {
        let from = self.begun.elapsed();
        let done = role();
        let to = self.begun.elapsed();
        let mut span = self.span.lock().expect("nobody panics with it");
        *span = Some(span.map_or([from, to], |[first, last]| [first.min(from), last.max(to)]));
        done
    }

    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Seconds in which its threads were at work.
    fn seconds(&self) -> Option<f64> {
        let span = *self.span.lock().expect("nobody panics with it");
        span.map(|[first, last]| (last - first).as_secs_f64())
    }
}

impl Common<'_> {
    fn fail(&self, error: String) {
        self.error.lock().expect("nobody panics with it").get_or_insert(error);
        self.end();
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.lockstep.iter().for_each(Lockstep::end);
    }

    fn error(&self) -> Option<String> {
        self.error.lock().expect("nobody panics with it").clone()
    }

    /// Refuses a counted operation once a thread beside it has failed: the step is over.
    fn goes_on(&self) -> Result<(), String> {
        match self.over.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.error().unwrap_or_else(|| "the step is over".to_string())),
        }
    }
}

/// Does `step` with one table a client; the counted threads are as many as there are clients.
///
/// # Errors
/// The server's words, of any role.
pub fn run(
    pool: &Pool,
    step: &Step,
    insert: &InsertStep,
    (rows, engine): (u64, &str),
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
) -> Result<StepResult, String> {
    let clients = step.threads as usize;
    let begun = Instant::now();
    let common = Common {
        pool,
        engine,
        step: insert,
        rows,
        given: AtomicU32::new(0),
        lockstep: (0..clients).map(|_| Lockstep::default()).collect(),
        cursors: (0..clients).map(|_| AtomicI64::new(0)).collect(),
        over: AtomicBool::new(false),
        seconds: step.seconds,
        seed: step.seed,
        beside: [Beside::new(begun), Beside::new(begun)],
        searched: AtomicU64::new(0),
        error: Mutex::new(None),
    };
    let mut result = std::thread::scope(|scope| {
        for number in 1..=step.threads {
            let common = &common;
            let seed = step.seed.wrapping_add(500_000 + u64::from(number));
            match insert.phase {
                Phase::Fill | Phase::Index => {}
                Phase::Churn => _ = scope.spawn(move || beside(common, || delete_in_step(common, number))),
                Phase::Query(_, rate) => {
                    scope.spawn(move || beside(common, || insert_at(common, number, rate, seed)));
                    scope.spawn(move || beside(common, || delete_at(common, number, rate)));
                }
            }
        }
        let worker = |_| Counted::new(&common);
        let result = run_operations(step, None, thread_counter, observe, worker);
        common.end();
        result
    })
    .map_err(|error| common.error().unwrap_or(error))?;
    if let Some(error) = common.error() {
        return Err(error);
    }
    let [inserted, deleted] = [0, 1].map(|of: usize| common.beside[of].rows());
    // Those that are not counted begin earlier and end later than those that are.
    let seconds = [0, 1].map(|of: usize| common.beside[of].seconds().unwrap_or(result.seconds));
    result.row_seconds = Some(seconds);
    let done = common
        .beside
        .each_ref()
        .map(|beside| std::mem::take(&mut *beside.statements.lock().expect("nobody panics with it")));
    result.beside = done.iter().any(|done| !done.is_empty()).then_some(done);
    let deletes = matches!(insert.phase, Phase::Churn | Phase::Query(..));
    result.search_seconds = deletes.then(|| common.searched.load(Ordering::Relaxed) as f64 / 1e9);
    result.rows = Some(match insert.phase {
        Phase::Fill | Phase::Churn => [result.ops, deleted],
        Phase::Index => [u64::from(ROWS_BEFORE_INDEX * step.threads), 0],
        Phase::Query(..) => [inserted, deleted],
    });
    if let Phase::Query(_, rate) = insert.phase {
        let [inserted, deleted] = [inserted as f64, deleted as f64];
        let wanted = f64::from(rate) * f64::from(step.threads);
        result.writer_achieved = inserted / expected_rows(wanted, seconds[0], insert.batch, step.threads);
        result.note = Some(format!(
            "{:.0} rows inserted and {:.0} deleted a second beside it, of {wanted:.0} that were asked for",
            inserted / seconds[0],
            deleted / seconds[1]
        ));
    }
    Ok(result)
}

/// Rows that are due after so many seconds: a second's rows come at its beginning, in whole transactions.
fn expected_rows(wanted: f64, seconds: f64, batch: u32, clients: u32) -> f64 {
    // A step of less than a second owes what was begun in it.
    (wanted * seconds).max(f64::from(batch * clients))
}

/// Runs a role that is not counted; its error ends the step.
fn beside(common: &Common<'_>, role: impl FnOnce() -> Result<(), String>) {
    if let Err(error) = role() {
        common.fail(error);
    }
}

fn delete_in_step(common: &Common<'_>, number: u32) -> Result<(), String> {
    let lockstep = &common.lockstep[number as usize - 1];
    let mut deleter = Deleter::new(common.pool, number, common.step.batch)?;
    common.beside[1].timed(|| {
        while lockstep.wait(Side::Delete) != Turn::Over {
            delete(common, &mut deleter)?;
            lockstep.done(Side::Delete);
        }
        Ok(())
    })
}

fn insert_at(common: &Common<'_>, number: u32, rate: u32, seed: u64) -> Result<(), String> {
    let batch = common.step.batch;
    let mut inserter = Inserter::new(common.pool, number, batch, seed)?;
    common.beside[0].timed(|| {
        at_rate(common, (number, Side::Insert), rate / batch, || {
            let begun = Instant::now();
            inserter.insert()?;
            common.beside[0].add(u64::from(batch), begun.elapsed());
            Ok(())
        })
    })
}

fn delete_at(common: &Common<'_>, number: u32, rate: u32) -> Result<(), String> {
    let batch = common.step.batch;
    let mut deleter = Deleter::new(common.pool, number, batch)?;
    common.beside[1].timed(|| {
        at_rate(common, (number, Side::Delete), rate / batch, || {
            delete(common, &mut deleter)?;
            common.cursors[number as usize - 1].store(deleter.cursor(), Ordering::Relaxed);
            Ok(())
        })
    })
}

/// One statement of a deleter that is not counted.
fn delete(common: &Common<'_>, deleter: &mut Deleter<'_>) -> Result<(), String> {
    let (begun, before) = (Instant::now(), deleter.searching);
    let rows = deleter.delete()?;
    let searched = deleter.searching - before;
    common.beside[1].add(rows, begun.elapsed().saturating_sub(searched));
    common.searched.fetch_add(searched.as_nanos() as u64, Ordering::Relaxed);
    Ok(())
}

/// Does so many statements in each second, as soon as the second begins and the other side of the table is not too far
/// behind, until the step is over.
///
/// Source: the published client, where one generator fills the queues of both, of 8 statements each.
fn at_rate(
    common: &Common<'_>,
    (number, side): (u32, Side),
    statements: u32,
    mut statement: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    const NAP: Duration = Duration::from_millis(5);
    let over = || common.over.load(Ordering::Relaxed);
    let lockstep = &common.lockstep[number as usize - 1];
    let begun = Instant::now();
    let mut second = begun;
    while !over() {
        let passed = second.saturating_duration_since(begun).as_secs_f64();
        for _ in 0..due(statements, passed, common.seconds) {
            if lockstep.wait(side) == Turn::Over {
                return Ok(());
            }
            statement()?;
            lockstep.done(side);
        }
        second = next_second(second, Instant::now());
        while !over() && Instant::now() < second {
            std::thread::sleep(NAP.min(second.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}

/// Statements of the second that begins when `passed` seconds of `all` are over. One at least at the begin of a step.
fn due(statements: u32, passed: f64, all: f64) -> u32 {
    let share = (all - passed).clamp(0.0, 1.0);
    let due = (f64::from(statements) * share).round() as u32;
    if passed == 0.0 { due.max(1) } else { due }
}

/// When the statements of the next second begin, after those of the one that began at `second` were done at `now`: at once if they
/// took longer than that. Nothing is made up for, and there is no grid that a late second would have to wait for.
///
/// Source: the published client, which sleeps only if less than 0.95 s have passed.
fn next_second(second: Instant, now: Instant) -> Instant {
    (second + Duration::from_secs(1)).max(now)
}

/// The counted role of one client.
struct Counted<'a> {
    common: &'a Common<'a>,
    /// Number of its table.
    number: u32,
    role: Result<Role<'a>, String>,
    /// This operation's turn was waited for already, or cannot be had.
    turn: Option<Turn>,
}

enum Role<'a> {
    Insert(Inserter<'a>),
    Index(Inserter<'a>),
    Query(Querier<'a>),
}

impl<'a> Counted<'a> {
    fn new(common: &'a Common<'a>) -> Counted<'a> {
        let number = common.given.fetch_add(1, Ordering::Relaxed) + 1;
        // By its table: which thread is given which table differs from run to run.
        let seed = common.seed.wrapping_add(u64::from(number));
        Counted { common, number, role: Self::role(common, number, seed), turn: None }
    }

    fn role(common: &'a Common<'a>, number: u32, seed: u64) -> Result<Role<'a>, String> {
        let (pool, batch) = (common.pool, common.step.batch);
        Ok(match common.step.phase {
            Phase::Fill => {
                make_table(common, number)?;
                Role::Insert(Inserter::new(pool, number, batch, seed)?)
            }
            Phase::Churn => Role::Insert(Inserter::new(pool, number, batch, seed)?),
            Phase::Index => Role::Index(Inserter::new(pool, number, ROWS_BEFORE_INDEX, seed)?),
            Phase::Query(kind, _) => Role::Query(Querier::new(pool, number, kind, seed)?),
        })
    }
}

fn make_table(common: &Common<'_>, number: u32) -> Result<(), String> {
    let (mut client, table) = (common.pool.take()?, table_name(number));
    let product = client.connection.product();
    client.connection.run(&format!("DROP TABLE IF EXISTS {table}"))?;
    rows::create(product, &table, common.engine).iter().try_for_each(|sql| client.connection.run(sql))
}

impl Operate for Counted<'_> {
    /// Work outside the time of operations: the wait for a deleter, and the greatest key of a table.
    fn pause(&mut self, _ops: u64) -> bool {
        let common = self.common;
        match &mut self.role {
            Ok(Role::Insert(_)) if common.step.phase == Phase::Churn => {
                let turn = common.lockstep[self.number as usize - 1].wait(Side::Insert);
                self.turn = Some(turn);
                turn == Turn::Waited
            }
            Ok(Role::Query(querier)) if querier.is_due() => {
                if let Err(why) = querier.read_edge() {
                    self.role = Err(why);
                }
                true
            }
            _ => false,
        }
    }

    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        let common = self.common;
        common.goes_on()?;
        let at = self.number as usize - 1;
        let role = self.role.as_mut().map_err(|why| why.clone())?;
        match role {
            Role::Insert(inserter) => {
                let churns = common.step.phase == Phase::Churn;
                if self.turn.take() == Some(Turn::Over) {
                    return Err("the deleter failed".to_string());
                }
                let bytes = inserter.insert()?;
                if churns {
                    common.lockstep[at].done(Side::Insert);
                }
                let rows = u64::from(common.step.batch);
                Ok(Done { ops: rows, found: rows, bytes })
            }
            Role::Index(inserter) => {
                let bytes = inserter.insert()?;
                let table = table_name(self.number);
                inserter.run(&rows::create_indexes(inserter.product(), &table, common.engine))?;
                let rows = common.rows + u64::from(ROWS_BEFORE_INDEX);
                Ok(Done { ops: rows, found: rows, bytes })
            }
            Role::Query(querier) => {
                // In an open loop nothing is done before an operation is due.
                if querier.is_due() {
                    querier.read_edge()?;
                }
                querier.move_up(common.cursors[at].load(Ordering::Relaxed));
                let (found, bytes) = querier.ask()?;
                Ok(Done { ops: 1, found, bytes })
            }
        }
    }
}

/// Whether a step of this kind has queries as its operations.
pub fn asks(phase: Phase) -> Option<Queries> {
    match phase {
        Phase::Query(kind, _) => Some(kind),
        _ => None,
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    /// The shared state of threads, on a server that nobody asks.
    fn common<'a>(pool: &'a Pool, step: &'a InsertStep) -> Common<'a> {
        let begun = Instant::now();
        Common {
            pool,
            engine: "",
            step,
            rows: 10,
            given: AtomicU32::new(0),
            lockstep: vec![Lockstep::default()],
            cursors: vec![AtomicI64::new(0)],
            over: AtomicBool::new(false),
            seconds: 1e6,
            seed: 1,
            beside: [Beside::new(begun), Beside::new(begun)],
            searched: AtomicU64::new(0),
            error: Mutex::new(None),
        }
    }

    fn nowhere() -> Pool {
        Pool::new(crate::Address {
            product: crate::Product::Postgres,
            socket: None,
            host: "127.0.0.1".into(),
            port: 1,
            user: "u".into(),
            password: None,
            database: "d".into(),
        })
    }

    #[test]
    fn an_error_of_a_writer_ends_what_is_counted_with_its_words() {
        let step = InsertStep { phase: Phase::Query(Queries::Range, 100), batch: 50 };
        let pool = nowhere();
        let common = common(&pool, &step);
        assert_eq!(common.goes_on(), Ok(()));
        beside(&common, || Err("disk full".to_string()));
        assert_eq!(common.goes_on(), Err("disk full".to_string()));
        let mut querier = Counted { common: &common, number: 1, role: Err("not asked".into()), turn: None };
        assert_eq!(querier.operate(0).err(), Some("disk full".to_string()), "and nothing is asked");
    }

    #[test]
    fn writers_beside_queries_are_never_more_than_a_few_statements_apart() {
        const STATEMENTS: u64 = 100;
        let step = InsertStep { phase: Phase::Query(Queries::Range, 1000), batch: 1 };
        let pool = nowhere();
        let common = common(&pool, &step);
        let done = [AtomicU64::new(0), AtomicU64::new(0)];
        let most = AtomicU64::new(0);
        let statement = |side: Side| {
            let own = done[side as usize].fetch_add(1, Ordering::SeqCst) + 1;
            let other = done[1 - side as usize].load(Ordering::SeqCst);
            most.fetch_max(own.saturating_sub(other), Ordering::SeqCst);
            own
        };
        std::thread::scope(|scope| {
            // All of its statements are due at once.
            scope.spawn(|| {
                at_rate(&common, (1, Side::Insert), 10_000, || {
                    statement(Side::Insert);
                    Ok(())
                })
            });
            let deleted = at_rate(&common, (1, Side::Delete), 10_000, || {
                // A slow one: the other gets on as far as it may.
                std::thread::sleep(Duration::from_micros(100));
                if statement(Side::Delete) == STATEMENTS {
                    common.end();
                }
                Ok(())
            });
            assert_eq!(deleted, Ok(()));
        });
        assert!((1..=8).contains(&most.load(Ordering::SeqCst)), "{most:?} statements apart");
    }

    #[test]
    fn writers_have_seconds_of_their_own() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let writers = Beside::new(begun);
        assert_eq!((writers.rows(), writers.seconds()), (0, None));
        *writers.span.lock().unwrap() = Some([Duration::from_secs(2), Duration::from_secs(5)]);
        writers.timed(|| writers.add(7, Duration::from_millis(1)));
        // From 2 s to now, which is 10 s or later.
        assert!(writers.seconds().unwrap() >= 8.0 && writers.rows() == 7);
    }

    #[test]
    fn a_second_that_was_too_short_is_followed_at_once() {
        let second = Instant::now();
        let after = |millis: u64| {
            let now = second + Duration::from_millis(millis);
            next_second(second, now) - second
        };
        assert_eq!([300, 1000, 1050, 2400].map(|ms| after(ms).as_millis()), [1000, 1000, 1050, 2400]);
    }

    #[test]
    fn of_a_part_of_a_second_a_part_is_due() {
        let of_step = |seconds: f64| -> u32 {
            (0..seconds.ceil() as u32).map(|second| due(20, f64::from(second), seconds)).sum()
        };
        assert_eq!([0.01, 0.5, 1.0, 2.45, 30.0].map(of_step), [1, 10, 20, 49, 600]);
        assert_eq!(due(20, 3.2, 3.0), 0, "the step is over");
        assert_eq!(due(2, 0.0, f64::INFINITY), 2);
    }

    #[test]
    fn a_short_step_owes_the_transactions_that_were_begun_in_it() {
        assert_eq!(expected_rows(100.0, 0.5, 50, 1), 50.0);
        assert_eq!(expected_rows(100.0, 0.2, 50, 2), 100.0);
        assert_eq!(expected_rows(1000.0, 30.0, 50, 1), 30_000.0);
    }
}

//! The roles of each step: which are counted, and which run beside them.
//!
//! ```text
//! l.i0   inserter*                       l.x    rows, then indexes*
//! l.i1   inserter* | deleter, in step    qr100  querier* | inserter and deleter, both held to a rate
//! ```
//! The counted role (*) gives the step's operations, times and histogram; the others are counted by the second.
//! A rate is kept second by second: what a second did not have room for is not made up for.

use super::lockstep::{Lockstep, Side};
use super::roles::{Deleter, Inserter, Querier};
use super::{Phase, Queries, rows, table_name};
use crate::pool::Pool;
use outcrop_lab_load::steps::{Done, Operate, run_operations};
use outcrop_lab_load::{Progress, Step, StepResult};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A step of the benchmark, beside what every step has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertStep {
    /// What it does.
    pub phase: Phase,
    /// Rows of a transaction that inserts or deletes.
    pub batch: u32,
}

/// Rows that the step of the indexes inserts first.
const ROWS_BEFORE_INDEX: u32 = 100;

/// What the threads of a step share.
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
    /// Inserted and deleted rows of threads that are not counted.
    beside: [AtomicU64; 2],
    error: Mutex<Option<String>>,
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
    let common = Common {
        pool,
        engine,
        step: insert,
        rows,
        given: AtomicU32::new(0),
        lockstep: (0..clients).map(|_| Lockstep::default()).collect(),
        cursors: (0..clients).map(|_| AtomicI64::new(0)).collect(),
        over: AtomicBool::new(false),
        beside: [AtomicU64::new(0), AtomicU64::new(0)],
        error: Mutex::new(None),
    };
    let begun = Instant::now();
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
        let worker = |seed| Counted::new(&common, seed);
        let result = run_operations(step, None, thread_counter, observe, worker);
        common.end();
        result
    })
    .map_err(|error| common.error().unwrap_or(error))?;
    if let Some(error) = common.error() {
        return Err(error);
    }
    let [inserted, deleted] = [0, 1].map(|of: usize| common.beside[of].load(Ordering::Relaxed));
    result.rows = Some(match insert.phase {
        Phase::Fill | Phase::Churn => [result.ops, deleted],
        Phase::Index => [u64::from(ROWS_BEFORE_INDEX * step.threads), 0],
        Phase::Query(..) => [inserted, deleted],
    });
    if let Phase::Query(_, rate) = insert.phase {
        let seconds = begun.elapsed().as_secs_f64();
        let [inserted, deleted] = [inserted as f64, deleted as f64];
        let wanted = f64::from(rate) * f64::from(step.threads);
        result.writer_achieved = inserted / expected_rows(wanted, seconds, insert.batch, step.threads);
        result.note = Some(format!(
            "{:.0} rows inserted and {:.0} deleted a second beside it, of {wanted:.0} that were asked for",
            inserted / seconds,
            deleted / seconds
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
    while lockstep.wait(Side::Delete) {
        let rows = deleter.delete()?;
        common.beside[1].fetch_add(rows, Ordering::Relaxed);
        lockstep.done(Side::Delete);
    }
    Ok(())
}

fn insert_at(common: &Common<'_>, number: u32, rate: u32, seed: u64) -> Result<(), String> {
    let batch = common.step.batch;
    let mut inserter = Inserter::new(common.pool, number, batch, seed)?;
    at_rate(common, rate / batch, || {
        inserter.insert()?;
        common.beside[0].fetch_add(u64::from(batch), Ordering::Relaxed);
        Ok(())
    })
}

fn delete_at(common: &Common<'_>, number: u32, rate: u32) -> Result<(), String> {
    let batch = common.step.batch;
    let mut deleter = Deleter::new(common.pool, number, batch)?;
    at_rate(common, rate / batch, || {
        let rows = deleter.delete()?;
        common.beside[1].fetch_add(rows, Ordering::Relaxed);
        common.cursors[number as usize - 1].store(deleter.cursor(), Ordering::Relaxed);
        Ok(())
    })
}

/// Does so many statements in each second, as soon as the second begins, until the step is over.
fn at_rate(
    common: &Common<'_>,
    statements: u32,
    mut statement: impl FnMut() -> Result<(), String>,
) -> Result<(), String> {
    const NAP: Duration = Duration::from_millis(5);
    let over = || common.over.load(Ordering::Relaxed);
    let mut second = Instant::now();
    while !over() {
        for _ in 0..statements.max(1) {
            if over() {
                return Ok(());
            }
            statement()?;
        }
        // The next whole second that has not begun yet: nothing is made up for.
        while second <= Instant::now() {
            second += Duration::from_secs(1);
        }
        while !over() && Instant::now() < second {
            std::thread::sleep(NAP.min(second.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}

/// The counted role of one client.
struct Counted<'a> {
    common: &'a Common<'a>,
    /// Number of its table.
    number: u32,
    role: Result<Role<'a>, String>,
}

enum Role<'a> {
    Insert(Inserter<'a>),
    Index(Inserter<'a>),
    Query(Querier<'a>),
}

impl<'a> Counted<'a> {
    fn new(common: &'a Common<'a>, seed: u64) -> Counted<'a> {
        let number = common.given.fetch_add(1, Ordering::Relaxed) + 1;
        Counted { common, number, role: Self::role(common, number, seed) }
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
    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        let common = self.common;
        let at = self.number as usize - 1;
        let role = self.role.as_mut().map_err(|why| why.clone())?;
        match role {
            Role::Insert(inserter) => {
                let churns = common.step.phase == Phase::Churn;
                if churns && !common.lockstep[at].wait(Side::Insert) {
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
                let (mut client, table) = (common.pool.take()?, table_name(self.number));
                let product = client.connection.product();
                let indexes = rows::create_indexes(product, &table, common.engine);
                indexes.iter().try_for_each(|sql| client.connection.run(sql))?;
                let rows = common.rows + u64::from(ROWS_BEFORE_INDEX);
                Ok(Done { ops: rows, found: rows, bytes })
            }
            Role::Query(querier) => {
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

    #[test]
    fn a_short_step_owes_the_transactions_that_were_begun_in_it() {
        assert_eq!(expected_rows(100.0, 0.5, 50, 1), 50.0);
        assert_eq!(expected_rows(100.0, 0.2, 50, 2), 100.0);
        assert_eq!(expected_rows(1000.0, 30.0, 50, 1), 30_000.0);
    }
}

//! A step on a server, done by threads of `outcrop-lab-load`.

use crate::insert_benchmark::Phase;
use crate::insert_benchmark::run::{self, InsertStep};
use crate::pool::Pool;
use crate::sysbench::{self, client, load};
use crate::upkeep;
use outcrop_lab_load::steps::{Done, Operate, run_operations};
use outcrop_lab_load::{Progress, Step, StepResult};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The load of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Load {
    /// Makes sysbench's tables and fills them.
    SysbenchLoad,
    /// One of sysbench's tests, by name.
    Sysbench(String),
    /// Brings the tables to rest; takes no less than so many seconds.
    Postwrite(f64),
    /// A step of the Insert Benchmark.
    Insert(InsertStep),
}

/// A step beside what every step has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlStep {
    /// The load.
    pub load: Load,
    /// Tables.
    pub tables: u32,
    /// Rows of each.
    pub rows: u64,
    /// Engine of MySQL's tables; empty: the server's own choice.
    #[serde(default)]
    pub engine: String,
}

impl SqlStep {
    /// The test it is, if it is one of sysbench's.
    pub fn test(&self) -> Option<&'static sysbench::Test> {
        match &self.load {
            Load::Sysbench(name) => sysbench::find(name),
            _ => None,
        }
    }

    /// Whether its operations read and never write.
    pub fn only_reads(&self) -> bool {
        self.test().is_some_and(|test| test.shape.only_reads())
    }

    /// Whether its operations are the rows that a scan goes over.
    pub fn scans(&self) -> bool {
        self.test().is_some_and(|test| test.shape == sysbench::tests::Shape::Scan)
    }

    /// Connections that each of its clients has at once.
    pub fn connections_of_a_client(&self) -> u32 {
        match &self.load {
            Load::Insert(insert) => match insert.phase {
                Phase::Fill | Phase::Index => 1,
                Phase::Churn => 2,
                Phase::Query(..) => 3,
            },
            _ => 1,
        }
    }

    /// Whether it fills an empty database.
    pub fn is_load(&self) -> bool {
        match &self.load {
            Load::SysbenchLoad => true,
            Load::Insert(insert) => insert.phase == Phase::Fill,
            _ => false,
        }
    }

    /// Whether it ends once it has done its work, and not when its time is over.
    pub fn ends_itself(&self) -> bool {
        match &self.load {
            Load::Sysbench(_) => false,
            Load::Insert(insert) => run::asks(insert.phase).is_none(),
            _ => true,
        }
    }
}

/// Does a part of `step` on the server of `pool` after `so_far`; see [`outcrop_lab_load::run_slice`].
///
/// # Errors
/// The server's words, on the first statement that fails.
pub fn run_slice(
    pool: &Pool,
    step: &Step,
    sql: &SqlStep,
    so_far: Option<StepResult>,
    thread_counter: &mut u64,
    observe: &mut dyn FnMut(Progress),
) -> Result<StepResult, String> {
    match &sql.load {
        Load::SysbenchLoad => {
            let taken = AtomicU32::new(0);
            let (tables, rows, engine) = (sql.tables, sql.rows, sql.engine.as_str());
            let common = load::Common { pool, tables, rows, engine, seed: step.seed, taken: &taken };
            let worker = |_| load::Loader::new(&common);
            run_operations(step, so_far, thread_counter, observe, worker)
        }
        Load::Sysbench(name) => {
            let test = sysbench::find(name).ok_or_else(|| format!("there is no test {name}"))?;
            let met = AtomicU64::new(0);
            let common = client::Common { pool, test, tables: sql.tables, rows: sql.rows, met: &met };
            let worker = |seed| client::Worker::new(&common, seed);
            let mut result = run_operations(step, so_far, thread_counter, observe, worker)?;
            let met = met.load(Ordering::Relaxed);
            if met > 0 {
                result.note = Some(format!("{met} events met others and were done again"));
            }
            Ok(result)
        }
        Load::Postwrite(seconds) => {
            let once = |_| Once(|| upkeep::rest(pool.address(), *seconds));
            run_operations(step, so_far, thread_counter, observe, once)
        }
        Load::Insert(insert) => {
            let tables = (sql.rows, sql.engine.as_str());
            run::run(pool, step, insert, tables, thread_counter, observe)
        }
    }
}

/// An operation that a step does once.
struct Once<F>(F);

impl<F: FnMut() -> Result<(), String>> Operate for Once<F> {
    fn operate(&mut self, _ops: u64) -> Result<Done, String> {
        (self.0)()?;
        Ok(Done { ops: 1, found: 1, bytes: 0 })
    }
}

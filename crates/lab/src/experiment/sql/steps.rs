//! From an experiment on servers to steps: everything decided but seeds.

use super::{SqlExperiment, SqlKind, SqlStepChange, SqlWorkload};
use crate::experiment::steps::{PlannedStep, Sizes};
use outcrop_lab_load::Step;
use outcrop_lab_load::steps::{Arrival, Spacing};
use outcrop_lab_sql::insert_benchmark::{self, Phase, run::InsertStep};
use outcrop_lab_sql::{Load, SqlStep, sysbench, upkeep};

/// Rows per second that a load is thought to reach, on two cores of 2025.
const LOAD_RATE: f64 = 40_000.0;
/// Rows per second of the Insert Benchmark's inserts beside deletions.
const CHURN_RATE: f64 = 15_000.0;
/// Bytes of a row of sysbench: two numbers and two texts.
const SYSBENCH_ROW: usize = 8 + 120 + 60;
/// Bytes of a row of the Insert Benchmark with its indexes.
const INSERT_ROW: usize = 120;

/// The load of a step of this name, but for its sizes. `postwrite.2` is another `postwrite`.
pub fn find(benchmark: SqlKind, kind: &str) -> Option<Load> {
    if kind.split('.').next() == Some("postwrite") {
        return Some(Load::Postwrite(0.0));
    }
    match benchmark {
        SqlKind::Sysbench if kind == "load" => Some(Load::SysbenchLoad),
        SqlKind::Sysbench => sysbench::find(kind).map(|test| Load::Sysbench(test.name.to_string())),
        SqlKind::InsertBenchmark => insert_benchmark::find(kind)
            .map(|row| Load::Insert(InsertStep { phase: row.phase, batch: row.batch })),
    }
}

/// Whether time ends a step of this name.
pub fn is_timed(benchmark: SqlKind, kind: &str) -> bool {
    let empty = |load| SqlStep { load, tables: 1, rows: 1, engine: String::new() };
    find(benchmark, kind).is_some_and(|load| !empty(load).ends_itself())
}

/// Words that name a step: names, and of tests what comes before `_range=` where that will do.
pub fn names(benchmark: SqlKind) -> Vec<&'static str> {
    let own: Vec<&str> = match benchmark {
        SqlKind::Sysbench => {
            let names = sysbench::TESTS.iter().map(|test| test.name);
            let short = names.clone().filter_map(|name| Some(name.split_once("_range=")?.0));
            let short = short.filter(|word| sysbench::find(word).is_some());
            std::iter::once("load").chain(names).chain(short).collect()
        }
        SqlKind::InsertBenchmark => insert_benchmark::STEPS.iter().map(|row| row.name).collect(),
    };
    own.into_iter().chain(["postwrite"]).collect()
}

/// The order of a published run.
fn standard(benchmark: SqlKind) -> Vec<&'static str> {
    match benchmark {
        SqlKind::Sysbench => sysbench::tests::STANDARD.to_vec(),
        SqlKind::InsertBenchmark => {
            let mut names: Vec<&str> = insert_benchmark::STEPS.iter().map(|row| row.name).collect();
            // The pause after the last of the loads.
            names.insert(4, "postwrite");
            names
        }
    }
}

impl SqlExperiment {
    /// Names of the steps, in order.
    pub fn step_names(&self) -> Vec<String> {
        let usual = || standard(self.workload.kind).iter().map(ToString::to_string).collect();
        self.steps.clone().unwrap_or_else(usual)
    }

    /// Sizes as reports show them.
    pub fn sizes(&self, memory: u64) -> Sizes {
        let rows = self.workload.all_rows();
        let row = match self.workload.kind {
            SqlKind::Sysbench => SYSBENCH_ROW,
            SqlKind::InsertBenchmark => INSERT_ROW,
        };
        Sizes {
            keys: rows,
            key_size: 8,
            value_size: row - 8,
            // Bytes that a server may cache; but never more than it has.
            cache: (rows * row as u64 * 2).min(memory / 2) as usize,
            seconds: self.workload.seconds,
            threads: self.workload.clients,
            subcompactions: 1,
            ..Sizes::default()
        }
    }

    /// The steps, on a machine with `cores`. Seeds are 0: a session sets its own.
    pub fn planned_steps(&self, cores: usize) -> Vec<PlannedStep> {
        let none = SqlStepChange::default();
        let names = self.step_names().into_iter();
        let planned = names.filter_map(|name| {
            let change = self.step.get(&name).unwrap_or(&none);
            let load = find(self.workload.kind, change.kind.as_ref().unwrap_or(&name))?;
            Some(planned_step(name, load, change, &self.workload, cores))
        });
        planned.collect()
    }
}

/// Share of a reading step's time that the scans take which warm caches: 60 of 600 seconds of published runs.
const WARMING_SCAN: f64 = 0.1;

/// Threads, operations of each if they end it, and seconds that it takes or is thought to take.
fn extent(sql: &SqlStep, clients: u32, workload: &SqlWorkload) -> (u32, Option<u64>, f64) {
    let all = workload.all_rows() as f64;
    let write_seconds = workload.write_seconds.unwrap_or(workload.seconds * 1.5);
    let write_rows = workload.write_rows.unwrap_or(workload.rows + workload.rows / 4).max(5);
    match &sql.load {
        Load::SysbenchLoad => (clients.min(sql.tables), Some(u64::MAX), all / LOAD_RATE),
        Load::Postwrite(seconds) => (1, Some(1), *seconds),
        // Published runs give the first of the writing tests, which is there for what it leaves, the time of a reading one.
        Load::Sysbench(test) if test.starts_with("write-only") => (clients, None, workload.seconds),
        Load::Sysbench(test) if test.starts_with("scan.warm") => {
            (clients, None, workload.seconds * WARMING_SCAN)
        }
        Load::Sysbench(_) if sql.only_reads() => (clients, None, workload.seconds),
        Load::Sysbench(_) => (clients, None, write_seconds),
        Load::Insert(insert) => match insert.phase {
            Phase::Fill => (clients, Some(workload.rows), all / LOAD_RATE),
            Phase::Index => (clients, Some(1), all / LOAD_RATE),
            Phase::Churn => {
                let last = write_rows / 5;
                let rows = if insert.batch < 10 { last } else { write_rows - last };
                (clients, Some(rows), (rows * u64::from(clients)) as f64 / CHURN_RATE)
            }
            Phase::Query(..) => (clients, None, workload.seconds),
        },
    }
}

fn planned_step(
    name: String,
    load: Load,
    change: &SqlStepChange,
    workload: &SqlWorkload,
    cores: usize,
) -> PlannedStep {
    let load = match load {
        Load::Postwrite(_) => {
            let usual = || upkeep::usual_wait(workload.all_rows());
            Load::Postwrite(workload.postwrite_seconds.unwrap_or_else(usual))
        }
        other => other,
    };
    let engine = workload.engine.clone();
    let sql = SqlStep { load, tables: workload.tables(), rows: workload.rows, engine };
    // Tables of the Insert Benchmark are its clients'.
    let own = change.clients.filter(|_| workload.kind == SqlKind::Sysbench);
    let (threads, ops, seconds) = extent(&sql, own.unwrap_or(workload.clients), workload);
    let connections = sql.connections_of_a_client();
    let seconds = if ops.is_none() { change.seconds.unwrap_or(seconds) } else { seconds };
    let mut step = Step::of_statements(&name, threads, ops, seconds);
    step.num = workload.rows;
    step.writer_num = u64::MAX;
    step.while_writing = connections == 3;
    step.arrival = change.arrival_rate.map(|rate| Arrival {
        rate,
        spacing: match change.arrival_spacing.as_deref() {
            Some("poisson") => Spacing::Poisson,
            _ => Spacing::Grid,
        },
    });
    let reported = match &sql.load {
        Load::Sysbench(_) => sql.test().is_some_and(|test| test.reported),
        Load::Postwrite(_) => false,
        Load::SysbenchLoad | Load::Insert(_) => true,
    };
    PlannedStep {
        step,
        report: change.report.unwrap_or(reported),
        options: String::new(),
        loaded: Some(1.0),
        oversubscribed: (threads * connections) as usize >= cores.max(2),
        vector_memtable: false,
        sql: Some(sql),
    }
}

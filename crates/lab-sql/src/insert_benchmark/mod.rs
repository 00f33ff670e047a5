//! The Insert Benchmark: tables that grow in the order of their keys, three secondary indexes, deletions of the oldest rows, and
//! queries beside all of it.
//!
//! ```text
//! rows.rs (schema, contents) -> roles.rs: inserter, deleter, querier, one connection each
//!     -> run.rs: which roles a step has, which of them is counted          lockstep.rs: what keeps two of them together
//! ```
//! Source: the scripts of the published reports, `bench/ibench`.

mod lockstep;
mod roles;
pub mod rows;
pub mod run;

use serde::{Deserialize, Serialize};

/// The rows that queries of a step ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Queries {
    /// Ten rows of a covering secondary index, from a random place on.
    Range,
    /// Ten rows by their keys.
    Point,
}

/// The work of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Makes the tables and inserts rows in the order of keys.
    Fill,
    /// Makes the secondary indexes.
    Index,
    /// Inserts and deletes at the same rate, as fast as both can.
    Churn,
    /// Queries, beside so many inserted and deleted rows a second.
    Query(Queries, u32),
}

/// A step of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name in experiments and reports.
    pub name: &'static str,
    /// Its work.
    pub phase: Phase,
    /// Rows of a transaction that inserts or deletes.
    pub batch: u32,
    /// Connections of a client.
    pub connections: u32,
}

const fn row(name: &'static str, phase: Phase, batch: u32, connections: u32) -> Row {
    Row { name, phase, batch, connections }
}

/// The steps, in order. The published names of the last six end in `.L1` to `.L6`.
pub const STEPS: [Row; 10] = [
    row("l.i0", Phase::Fill, 100, 1),
    row("l.x", Phase::Index, 100, 1),
    row("l.i1", Phase::Churn, 50, 2),
    row("l.i2", Phase::Churn, 5, 2),
    row("qr100", Phase::Query(Queries::Range, 100), 50, 3),
    row("qp100", Phase::Query(Queries::Point, 100), 50, 3),
    row("qr500", Phase::Query(Queries::Range, 500), 50, 3),
    row("qp500", Phase::Query(Queries::Point, 500), 50, 3),
    row("qr1000", Phase::Query(Queries::Range, 1000), 50, 3),
    row("qp1000", Phase::Query(Queries::Point, 1000), 50, 3),
];

/// The step that a name means; `qr100.L1` is `qr100`.
pub fn find(name: &str) -> Option<&'static Row> {
    let plain = match name.split_once(".L") {
        Some((plain, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    };
    STEPS.iter().find(|row| row.name == plain)
}

/// Share of the rate that writers beside queries must reach: below it the step's queries are not comparable.
pub const SLA: f64 = 0.95;

/// Name of the table of client `number`, from 1.
pub fn table_name(number: u32) -> String {
    format!("pi{number}")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn steps_are_found_by_their_published_names() {
        assert_eq!(find("qp1000.L6").map(|row| row.phase), Some(Phase::Query(Queries::Point, 1000)));
        assert_eq!(find("l.i2").map(|row| (row.batch, row.connections)), Some((5, 2)));
        assert!(find("l.i3").is_none() && find("qr100.Lx").is_none());
    }
}

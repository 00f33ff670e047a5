//! An experiment on SQL servers, as its file says it. It has the design of any experiment, and words of its own for the rest.
//!
//! ```text
//! [workload] kind = "sysbench"     [[target]] server = "postgres@18.x"     [config.x10a] file = "servers/x10a.conf"
//! ```
//! Next: `steps.rs` for its steps, `planning/sql.rs` for what is made of it.

mod check;
pub(crate) mod embedded;
pub(crate) use check::MOST_ROWS;
pub mod steps;
#[cfg(test)]
mod tests;

use super::Design;
use super::parse::explain;
use crate::targets::servers::Runner;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One experiment on servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlExperiment {
    /// The title in reports.
    pub title: String,
    /// The question it answers.
    #[serde(default)]
    pub question: String,
    /// Name of the target everything is divided by; the first target if absent.
    pub base: Option<String>,
    /// Names of steps, in order; the benchmark's own order if absent.
    pub steps: Option<Vec<String>>,
    /// Data and load.
    pub workload: SqlWorkload,
    /// How often and in what order.
    #[serde(default)]
    pub design: Design,
    /// The targets to compare.
    #[serde(alias = "targets")]
    pub target: Vec<ServerSet>,
    /// Embedded engines to compare with them, in the steps for which they have an operation.
    #[serde(default)]
    pub embedded: Vec<EmbeddedSet>,
    /// Named sets of settings, chosen by targets.
    #[serde(default)]
    pub config: BTreeMap<String, ServerConfig>,
    /// Changes to single steps, by name.
    #[serde(default)]
    pub step: BTreeMap<String, SqlStepChange>,
}

/// Which benchmark it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SqlKind {
    /// sysbench's microbenchmarks.
    Sysbench,
    /// The Insert Benchmark.
    InsertBenchmark,
}

/// Data and load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlWorkload {
    /// The benchmark.
    pub kind: SqlKind,
    /// Tables; of the Insert Benchmark each client has one.
    pub tables: Option<u32>,
    /// Rows of each table.
    #[serde(default = "default_rows")]
    pub rows: u64,
    /// Rows of each table that are inserted and deleted once it has its indexes, by default a quarter more than it has
    /// rows: four fifths in large transactions, one fifth in small ones. Of the Insert Benchmark.
    pub write_rows: Option<u64>,
    /// Clients; of the Insert Benchmark each has up to three connections.
    #[serde(default = "one")]
    pub clients: u32,
    /// Seconds of a step that reads.
    #[serde(default = "default_seconds")]
    pub seconds: f64,
    /// Seconds of a step that writes; by default half as long again as one that reads.
    pub write_seconds: Option<f64>,
    /// Seconds that a load and its upkeep are given to come to rest; by default what published runs give.
    pub postwrite_seconds: Option<f64>,
    /// Engine of MySQL's tables; by default the server's own choice.
    #[serde(default)]
    pub engine: String,
    /// Share of the machine's memory that settings of servers are scaled to; by default all of it.
    pub memory_share: Option<f64>,
}

/// Targets: a server in configurations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSet {
    /// `postgres@18.1`, `postgres@18.x` for the newest 18 there is, or with `basedir` or `url` a name alone.
    pub server: String,
    /// Directory of an own build or installation, with `bin`.
    pub basedir: Option<PathBuf>,
    /// `postgres://user@host:port/database` of a server that runs; the lab makes a database of its own there.
    pub url: Option<String>,
    /// Port of the loopback device to listen on; by default a socket.
    pub port: Option<u16>,
    /// The client: the lab itself, or `sysbench`, whose stock scripts have some of the tests.
    #[serde(default)]
    pub runner: Runner,
    /// The name of this build; of targets with another client that client's, if absent.
    pub build: Option<String>,
    /// Names of configurations; the server's defaults if empty.
    #[serde(default)]
    pub configs: Vec<String>,
}

/// Targets: an embedded engine beside servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddedSet {
    /// `outcrop`, or `rocksdb@11.8.1`.
    pub engine: String,
    /// How durable a write is when it is answered; a target each.
    #[serde(default = "synced")]
    pub commit: Vec<Commit>,
}

/// The place that a write of an embedded engine has reached when it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Commit {
    /// It is on the device.
    Synced,
    /// It is with the kernel.
    Unsynced,
}

fn synced() -> Vec<Commit> {
    vec![Commit::Synced]
}

/// A named set of settings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// A file of settings, beside the experiment's.
    pub file: Option<PathBuf>,
    /// Settings as lines, after those of the file.
    #[serde(default)]
    pub settings: String,
    /// Share of each event's time that is burnt in addition: a regression of known size, for testing the lab.
    pub planted: Option<f64>,
}

/// Changes to one step.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlStepChange {
    /// Which test or upkeep it is, if its name is its own.
    pub kind: Option<String>,
    /// Clients.
    pub clients: Option<u32>,
    /// Seconds.
    pub seconds: Option<f64>,
    /// Events per second that are due, over all clients: an open loop.
    pub arrival_rate: Option<f64>,
    /// `fixed` or `poisson`: how they are spread.
    pub arrival_spacing: Option<String>,
    /// Whether it is in reports.
    pub report: Option<bool>,
}

impl SqlWorkload {
    /// Tables.
    pub fn tables(&self) -> u32 {
        match self.kind {
            SqlKind::Sysbench => self.tables.unwrap_or(1),
            SqlKind::InsertBenchmark => self.clients,
        }
    }

    /// Rows of all tables.
    pub fn all_rows(&self) -> u64 {
        self.rows * u64::from(self.tables())
    }
}

fn one() -> u32 {
    1
}
fn default_rows() -> u64 {
    1_000_000
}
fn default_seconds() -> f64 {
    60.0
}

/// Whether the text of an experiment is one on servers. A text with mistakes in it is taken for what it looks like.
pub fn is_sql(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Looks {
        workload: Option<toml::Table>,
        #[serde(alias = "targets")]
        target: Option<Vec<toml::Table>>,
    }
    let Ok(looks) = toml::from_str::<Looks>(text) else { return false };
    let kind = looks.workload.and_then(|workload| workload.get("kind")?.as_str().map(str::to_string));
    let servers = looks.target.is_some_and(|all| all.iter().any(|one| one.contains_key("server")));
    servers || kind.is_some_and(|kind| KINDS.contains(&kind.as_str()))
}

/// Names of [`SqlKind`].
const KINDS: [&str; 2] = ["sysbench", "insert-benchmark"];

/// Parses the experiment `text`; `file` is its name in messages.
///
/// # Errors
/// One sentence that names the place.
pub fn parse(file: &str, text: &str) -> Result<SqlExperiment, String> {
    let experiment: SqlExperiment = toml::from_str(text).map_err(|error| explain(file, text, &error))?;
    match check::check(&experiment) {
        Ok(()) => Ok(experiment),
        Err(mistake) => Err(super::parse::wrong(file, text, &mistake)),
    }
}

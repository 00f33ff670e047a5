//! The rows of the record.

use crate::analysis::labels::Label;
use crate::host::Host;
use crate::host::canary::Canary;
use crate::planning::plan::Plan;
use crate::probe::Reading;
use crate::probe::derive::Metrics;
use outcrop_lab_load::StepResult;
use serde::{Deserialize, Serialize};

/// Whether an experiment is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not finished; runs, or was stopped.
    Open,
    /// Finished.
    Done,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every step was measured.
    Done,
    /// The engine failed; steps before that count.
    Failed,
    /// Not run, since its target failed too often.
    Skipped,
}

impl Outcome {
    pub(super) fn text(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
        }
    }
}

/// An experiment as recorded.
#[derive(Clone, Debug, Serialize)]
pub struct ExperimentRow {
    /// Its number.
    pub id: i64,
    /// When it was begun, RFC 3339 in UTC.
    pub created: String,
    /// Name of its file.
    pub file: String,
    /// Text of its file.
    pub text: String,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub host: Host,
    /// Version of this program.
    pub lab_version: String,
    /// Whether it is finished.
    pub status: Status,
}

/// A session that counts.
#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    /// Its number.
    pub id: i64,
    /// Block; -1 for what is thrown away.
    pub block: i64,
    /// Place in the block.
    pub position: usize,
    /// Target.
    pub target: usize,
    /// How it ended: `done`, `failed` or `skipped`.
    pub outcome: String,
    /// Why it failed or was skipped.
    pub error: Option<String>,
    /// Whole seconds from its begin to its end, the turns of other sessions included that took turns with it.
    pub seconds: Option<f64>,
    /// How fast the machine was before it.
    pub canary: Canary,
    /// Version the engine said it is.
    pub engine_version: Option<String>,
    /// The first ten characters of the hash of its source, if it said one.
    pub engine_git_sha: Option<String>,
}

impl SessionRow {
    /// The engine's identity in its own words: its version and the hash of its source, as far as it gives
    /// them.
    pub fn engine(&self) -> String {
        let version = self.engine_version.as_deref().unwrap_or("");
        match &self.engine_git_sha {
            Some(hash) => format!("{version} ({hash})").trim_start().to_string(),
            None => version.to_string(),
        }
    }
}

/// Which source an engine says it was made from.
#[derive(Clone, Debug, Default)]
pub struct EngineIdentity {
    /// Its version.
    pub version: Option<String>,
    /// The first ten characters of the hash of its source.
    pub git_sha: Option<String>,
}

/// A measured step.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    /// Its number.
    pub id: i64,
    /// The session's number.
    pub session: i64,
    /// Block of the session.
    pub block: i64,
    /// Target of the session.
    pub target: usize,
    /// Name.
    pub name: String,
    /// When it ended.
    pub date: String,
    /// The measurements of the load generator.
    pub result: StepResult,
    /// Numbers derived from it.
    pub metrics: Metrics,
    /// Remarks.
    pub labels: Vec<Label>,
}

/// The values that are recorded of a step when it ends.
pub struct StepRecord<'a> {
    /// Place in the plan.
    pub number: usize,
    /// Name.
    pub name: &'a str,
    /// When it ended.
    pub date: &'a str,
    /// The measurements of the load generator.
    pub result: &'a StepResult,
    /// Numbers derived from it.
    pub metrics: &'a Metrics,
    /// Remarks.
    pub labels: &'a [Label],
    /// Samples, with both edges.
    pub readings: &'a [Reading],
    /// Service times: nanoseconds and how often.
    pub histogram: &'a [(u64, u64)],
    /// Response times of an open loop, likewise; empty for a closed one.
    pub responses: &'a [(u64, u64)],
}

//! The record: one SQLite file with every experiment, session, step, metric, sample and histogram.
//!
//! ```text
//! experiment 1-n session (a block's place, one attempt) 1-n step 1-n metric, series, histogram
//!                        session 1-1 engine_log
//! archive: an experiment of other people, imported
//! ```
//! Invariants: a step is written in one transaction, when it ended, with everything about it. A place in a plan
//! has at most one session that counts ("done", "failed", "skipped"); attempts that were interrupted stay and
//! do not count. Raw numbers are never changed; figures derived from several sessions are not stored.
//!
//! Samples are columns compressed inside the file rather than Parquet files beside it: writing them took 100
//! further crates and minutes of building, for about 10 MB a day.
//! Next: `rows.rs` for what is in it, `schema.rs` for the tables, `blobs.rs` for the columns.

mod archives;
pub mod blobs;
mod engine_logs;
mod profiles;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

pub use archives::ArchiveRow;
pub use engine_logs::EngineLog;
pub use rows::{EngineIdentity, ExperimentRow, Outcome, SessionRow, Status, StepRecord, StepRow};

use crate::analysis::labels::Label;
use crate::host::Host;
use crate::host::canary::Canary;
use crate::planning::plan::{Plan, Slot};
use crate::probe::{Reading, SERIES, sources};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The record.
pub struct Store {
    db: Connection,
}

/// Why the store cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// The device is full: mend that and resume.
    Full(String),
    /// Anything else.
    Other(String),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StoreError::Full(text) | StoreError::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        let text = format!("store: {error}");
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(text),
            _ => StoreError::Other(text),
        }
    }
}

impl From<StoreError> for String {
    fn from(error: StoreError) -> String {
        error.to_string()
    }
}

/// Operations per second by step, target and block.
pub type Rates = BTreeMap<(String, usize, i64), f64>;

type Result<T> = std::result::Result<T, StoreError>;

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data serialises")
}

fn from_json<T: for<'de> Deserialize<'de>>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| StoreError::Other(format!("store: {what}: {error}")))
}

impl Store {
    /// Opens the record at `path`, creating or upgrading it.
    ///
    /// # Errors
    /// If it cannot be opened, is no record, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Store> {
        let failed = |error: StoreError| match error {
            StoreError::Full(text) => StoreError::Full(format!("{}: {text}", path.display())),
            StoreError::Other(text) => StoreError::Other(format!("{}: {text}", path.display())),
        };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir)
                .map_err(|error| StoreError::Other(format!("{}: {error}", dir.display())))?;
        }
        let db = Connection::open(path).map_err(|error| failed(error.into()))?;
        schema::prepare(&db).map_err(failed)?;
        Ok(Store { db })
    }

    /// As [`Store::open`], but never creates one.
    pub fn open_existing(path: &Path) -> Result<Store> {
        if path.exists() {
            return Store::open(path);
        }
        let hint = "nothing was run yet, or name it with --store";
        Err(StoreError::Other(format!("{}: no such record; {hint}", path.display())))
    }

    /// Records a new experiment.
    pub fn begin(&self, created: &str, file: &str, text: &str, plan: &Plan, host: &Host) -> Result<i64> {
        self.db.execute(
            "INSERT INTO experiment (id, created, file, text, title, plan, host, lab_version, status)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'open')",
            params![
                self.next_id()?,
                created,
                file,
                text,
                plan.title,
                json(plan),
                json(host),
                env!("CARGO_PKG_VERSION")
            ],
        )?;
        Ok(self.db.last_insert_rowid())
    }

    /// The latest unfinished experiment whose file had this text.
    pub fn unfinished(&self, text: &str) -> Result<Option<ExperimentRow>> {
        let id = self
            .db
            .query_row(
                "SELECT id FROM experiment WHERE text = ?1 AND status = 'open' ORDER BY id DESC LIMIT 1",
                [text],
                |row| row.get::<_, i64>(0),
            )
            .optional()?;
        id.map(|id| self.experiment(id)).transpose()
    }

    /// Marks an experiment as finished.
    pub fn finish(&self, id: i64) -> Result<()> {
        self.db.execute("UPDATE experiment SET status = 'done' WHERE id = ?1", [id])?;
        Ok(())
    }

    /// One experiment.
    ///
    /// # Errors
    /// If there is none of that number.
    pub fn experiment(&self, id: i64) -> Result<ExperimentRow> {
        let row = self
            .db
            .query_row(
                "SELECT id, created, file, text, plan, host, lab_version, status FROM experiment WHERE id = ?1",
                [id],
                |row| {
                    let texts: [String; 7] = [
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                        row.get(5)?,
                        row.get(6)?,
                        row.get(7)?,
                    ];
                    Ok((row.get(0)?, texts))
                },
            )
            .optional()?;
        let Some((id, [created, file, text, plan, host, lab_version, status])) = row else {
            let why = match self.archive(id)? {
                None => format!("there is no experiment {id}; outcrop lab list shows them"),
                Some(_) => format!(
                    "experiment {id} was imported, and one run of each target is no verdict; \
                     outcrop lab report {id} -o DIRECTORY shows it"
                ),
            };
            return Err(StoreError::Other(why));
        };
        Ok(ExperimentRow {
            id,
            created,
            file,
            text,
            plan: from_json("plan", &plan)?,
            host: from_json("host", &host)?,
            lab_version,
            status: if status == "done" { Status::Done } else { Status::Open },
        })
    }

    /// Numbers of all experiments, oldest first.
    pub fn experiments(&self) -> Result<Vec<i64>> {
        let mut statement = self.db.prepare("SELECT id FROM experiment ORDER BY id")?;
        let ids = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(ids)
    }

    /// Begins a session. Attempts at the same place that did not end become interrupted.
    pub fn begin_session(&self, experiment: i64, slot: Slot, date: &str, canary: &Canary) -> Result<i64> {
        self.db.execute(
            "UPDATE session SET status = 'interrupted'
             WHERE experiment = ?1 AND block = ?2 AND position = ?3 AND status = 'running'",
            params![experiment, slot.block, slot.position as i64],
        )?;
        self.db.execute(
            "INSERT INTO session (experiment, block, position, target, status, started, canary)
             VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6)",
            params![experiment, slot.block, slot.position as i64, slot.target as i64, date, json(canary)],
        )?;
        Ok(self.db.last_insert_rowid())
    }

    /// Ends a session.
    pub fn end_session(
        &self,
        session: i64,
        outcome: Outcome,
        date: &str,
        error: Option<&str>,
        engine: &EngineIdentity,
    ) -> Result<()> {
        self.db.execute(
            "UPDATE session SET status = ?2, ended = ?3, error = ?4, engine_version = ?5, engine_git_sha = ?6
             WHERE id = ?1",
            params![session, outcome.text(), date, error, engine.version, engine.git_sha],
        )?;
        Ok(())
    }

    /// Does `work`, and keeps all that it records here or, if it fails, nothing.
    pub fn all_or_nothing<E: From<StoreError>>(
        &self,
        work: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let transaction = self.db.unchecked_transaction().map_err(StoreError::from)?;
        work()?;
        Ok(transaction.commit().map_err(StoreError::from)?)
    }

    /// Records a step, whole or not at all.
    pub fn record_step(&mut self, session: i64, step: &StepRecord<'_>) -> Result<()> {
        let transaction = self.db.transaction()?;
        transaction.execute(
            "INSERT INTO step (session, number, name, ended, result, labels) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![session, step.number as i64, step.name, step.date, json(step.result), json(&step.labels)],
        )?;
        let id = transaction.last_insert_rowid();
        {
            let mut insert =
                transaction.prepare("INSERT INTO metric (step, name, value) VALUES (?1, ?2, ?3)")?;
            for (name, value) in step.metrics {
                insert.execute(params![id, name, value])?;
            }
            let mut insert =
                transaction.prepare("INSERT INTO series (step, name, data) VALUES (?1, ?2, ?3)")?;
            for (name, column) in columns(step.readings) {
                insert.execute(params![id, name, blobs::pack(&column)])?;
            }
        }
        let flat = |histogram: &[(u64, u64)]| {
            let numbers = histogram.iter().flat_map(|(value, count)| [*value as i64, *count as i64]);
            blobs::pack(&numbers.collect::<Vec<_>>())
        };
        transaction.execute(
            "INSERT INTO histogram (step, data) VALUES (?1, ?2)",
            params![id, flat(step.histogram)],
        )?;
        if !step.responses.is_empty() {
            transaction.execute(
                "INSERT INTO response (step, data) VALUES (?1, ?2)",
                params![id, flat(step.responses)],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Keeps the options a target resolved to, as the engine wrote them; the first time only.
    pub fn record_options(&self, experiment: i64, target: usize, text: &str) -> Result<()> {
        self.db.execute(
            "INSERT OR IGNORE INTO options (experiment, target, text) VALUES (?1, ?2, ?3)",
            params![experiment, target as i64, text],
        )?;
        Ok(())
    }

    /// The options of each target that said them.
    pub fn options(&self, experiment: i64) -> Result<Vec<(usize, String)>> {
        let mut statement =
            self.db.prepare("SELECT target, text FROM options WHERE experiment = ?1 ORDER BY target")?;
        let rows =
            statement.query_map([experiment], |row| Ok((row.get::<_, i64>(0)? as usize, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Notes something that happened.
    pub fn event(&self, experiment: i64, date: &str, text: &str) -> Result<()> {
        self.db.execute(
            "INSERT INTO event (experiment, date, text) VALUES (?1, ?2, ?3)",
            params![experiment, date, text],
        )?;
        Ok(())
    }

    /// Events in order.
    pub fn events(&self, experiment: i64) -> Result<Vec<(String, String)>> {
        let mut statement =
            self.db.prepare("SELECT date, text FROM event WHERE experiment = ?1 ORDER BY id")?;
        let rows = statement.query_map([experiment], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Sessions that count, in the order of the plan.
    pub fn sessions(&self, experiment: i64) -> Result<Vec<SessionRow>> {
        let mut statement = self.db.prepare(
            "SELECT id, block, position, target, status, error, canary, engine_version, engine_git_sha,
                    CAST(strftime('%s', ended) - strftime('%s', started) AS REAL) FROM session
             WHERE experiment = ?1 AND status IN ('done', 'failed', 'skipped') ORDER BY block, position",
        )?;
        let rows = statement.query_map([experiment], |row| {
            let canary: String = row.get(6)?;
            Ok(SessionRow {
                id: row.get(0)?,
                block: row.get(1)?,
                position: row.get::<_, i64>(2)? as usize,
                target: row.get::<_, i64>(3)? as usize,
                outcome: row.get(4)?,
                error: row.get(5)?,
                seconds: row.get(9)?,
                canary: serde_json::from_str(&canary).unwrap_or_default(),
                engine_version: row.get(7)?,
                engine_git_sha: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Steps of sessions that count, in the order of the plan.
    pub fn steps(&self, experiment: i64) -> Result<Vec<StepRow>> {
        let mut statement = self.db.prepare(
            "SELECT step.id, session.id, block, target, name, step.ended, result, labels
             FROM step JOIN session ON session.id = step.session
             WHERE experiment = ?1 AND status IN ('done', 'failed') ORDER BY block, position, number",
        )?;
        let mut metrics = self.db.prepare("SELECT name, value FROM metric WHERE step = ?1 ORDER BY name")?;
        let mut rows = statement.query([experiment])?;
        let mut steps = Vec::new();
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let (result, labels): (String, String) = (row.get(6)?, row.get(7)?);
            let pairs = metrics.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            steps.push(StepRow {
                id,
                session: row.get(1)?,
                block: row.get(2)?,
                target: row.get::<_, i64>(3)? as usize,
                name: row.get(4)?,
                date: row.get(5)?,
                result: from_json("result", &result)?,
                metrics: pairs.collect::<rusqlite::Result<_>>()?,
                labels: from_json("labels", &labels)?,
            });
        }
        Ok(steps)
    }

    /// Throughput by step, target and block of the sessions that count and ended before `before`, or of all; without
    /// what must not be compared.
    pub fn rates(&self, experiment: i64, before: Option<&str>) -> Result<Rates> {
        let mut statement = self.db.prepare(
            "SELECT name, target, block, labels, (SELECT value FROM metric WHERE step = step.id AND name = 'ops_sec')
             FROM step JOIN session ON session.id = step.session
             WHERE experiment = ?1 AND status = 'done' AND block >= 0 AND session.ended < coalesce(?2, '9999')",
        )?;
        let mut rows = statement.query(params![experiment, before])?;
        let mut rates = Rates::new();
        while let Some(row) = rows.next()? {
            let labels: Vec<Label> = from_json("labels", &row.get::<_, String>(3)?)?;
            let rate: Option<f64> = row.get(4)?;
            let compared = !labels.iter().any(|label| label.invalid);
            if let Some(rate) = rate.filter(|rate| compared && *rate > 0.0) {
                rates.insert((row.get(0)?, row.get::<_, i64>(1)? as usize, row.get(2)?), rate);
            }
        }
        Ok(rates)
    }

    /// Samples of one series of a step; empty if it was not sampled.
    pub fn series(&self, step: i64, name: &str) -> Result<Vec<i64>> {
        let data: Option<Vec<u8>> = self
            .db
            .query_row("SELECT data FROM series WHERE step = ?1 AND name = ?2", params![step, name], |row| {
                row.get(0)
            })
            .optional()?;
        unpack(data)
    }

    /// Service times of a step: nanoseconds and how often.
    pub fn histogram(&self, step: i64) -> Result<Vec<(u64, u64)>> {
        self.latencies("SELECT data FROM histogram WHERE step = ?1", step)
    }

    /// Response times of a step, likewise; none if its loop was closed.
    pub fn responses(&self, step: i64) -> Result<Vec<(u64, u64)>> {
        self.latencies("SELECT data FROM response WHERE step = ?1", step)
    }

    fn latencies(&self, query: &str, step: i64) -> Result<Vec<(u64, u64)>> {
        let data: Option<Vec<u8>> = self.db.query_row(query, [step], |row| row.get(0)).optional()?;
        Ok(unpack(data)?.chunks_exact(2).map(|pair| (pair[0] as u64, pair[1] as u64)).collect())
    }
}

fn unpack(data: Option<Vec<u8>>) -> Result<Vec<i64>> {
    let numbers = data.map_or(Ok(Vec::new()), |data| blobs::unpack(&data));
    numbers.map_err(|error| StoreError::Other(format!("store: {error}")))
}

/// One column for the times, in milliseconds, and one for each series that was known throughout.
fn columns(readings: &[Reading]) -> Vec<(&'static str, Vec<i64>)> {
    let times = readings.iter().map(|reading| (reading.at * 1000.0) as i64).collect();
    let series = SERIES.iter().enumerate().map(|(index, row)| {
        (row.name, readings.iter().map(|reading| reading.values[index]).collect::<Vec<_>>())
    });
    let known = series.filter(|(_, column)| !column.contains(&sources::ABSENT));
    std::iter::once(("time_ms", times)).chain(known).collect()
}

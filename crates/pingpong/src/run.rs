//! Plays a case: one directory, engines in turn, every answer compared with the model.
//!
//! ```text
//! for each phase: list column families, open, compare every row    (after SIGKILL: find the point of the log)
//!                 operations, each answer compared
//!                 close, or SIGKILL
//! ```
//! RocksDB's current versions open a tree they find illegal as empty and delete its files without an error, so
//! success alone says nothing; rows are compared after every opening, and a copy of the directory as it was
//! before is kept until then.
//!
//! Next: `model.rs` for what must be there, `shrink.rs` for what happens to a case that fails.

use crate::again::{Before, is_excused, live, lost_a_wal_to_a_flush};
use crate::case::{Case, End, Phase};
use crate::child::{Child, Lost};
use crate::choices::{ALWAYS, name};
use crate::features::OUTCROP;
use crate::mistake::{Mistake, Opening, class_of};
use crate::model::{Model, Row, difference};
use crate::operation::{Durability, Ending, Key, Operation, Record, View};
use crate::rules::admits;
use crate::worker::{Answer, OpenRequest, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The kind of a failure: a shrunk case must still fail in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Rows or answers are not what the model says.
    Wrong,
    /// The engine reports an error where there is no reason for one.
    Error,
    /// The process ended.
    Died,
    /// The process does not answer.
    Hangs,
}

/// Where and how a case failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// Which phase.
    pub phase: usize,
    /// Which operation of the phase; none: opening or closing.
    pub operation: Option<usize>,
    /// The engine that failed.
    pub engine: String,
    /// The error in words.
    pub message: String,
}

impl Failure {
    /// The signature that a smaller case must share with this failure: the kind, of an error its words up to the
    /// first number, of a panic its place.
    pub fn signature(&self) -> (Kind, String) {
        let words = match self.kind {
            Kind::Error => {
                self.message.chars().take_while(|c| !c.is_ascii_digit() && *c != '/').take(50).collect()
            }
            Kind::Died => self
                .message
                .split("panicked at ")
                .nth(1)
                .and_then(|at| at.lines().next())
                .unwrap_or_default()
                .into(),
            Kind::Wrong | Kind::Hangs => String::new(),
        };
        (self.kind, words)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in phase {} ({})", self.kind, self.phase, self.engine)?;
        if let Some(operation) = self.operation {
            write!(f, ", operation {operation}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The counts of what was exercised.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Times a directory changed hands (an opening of what another phase left).
    pub swaps: u64,
    /// Operations done.
    pub operations: u64,
    /// SIGKILLs.
    pub kills: u64,
    /// Phases played again because a process of RocksDB had died of itself, or lost a file to itself.
    pub again: u64,
    /// Operations by name.
    pub by_name: BTreeMap<&'static str, u64>,
    /// Swaps by who opened the directory.
    pub by_engine: BTreeMap<String, u64>,
    /// Swaps by the options of who left the directory, and how.
    pub by_feature: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Tally) {
        self.swaps += other.swaps;
        self.operations += other.operations;
        self.kills += other.kills;
        self.again += other.again;
        for (name, count) in &other.by_name {
            *self.by_name.entry(name).or_default() += count;
        }
        for (mine, others) in
            [(&mut self.by_engine, &other.by_engine), (&mut self.by_feature, &other.by_feature)]
        {
            for (name, count) in others {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
    }

    /// Counts that `engine` opens what a phase has left in which these column families exist.
    fn count_swap(&mut self, engine: &str, left: &Phase, families: &[usize]) {
        self.swaps += 1;
        *self.by_engine.entry(engine.to_string()).or_default() += 1;
        let of_families = families.iter().flat_map(|family| &left.family_options[*family]);
        let mut features: BTreeSet<&str> =
            left.options.iter().chain(of_families).map(String::as_str).collect();
        features.retain(|feature| !ALWAYS.contains(feature));
        features.insert(if left.end == End::Close { "close" } else { "SIGKILL" });
        for feature in features {
            *self.by_feature.entry(feature.to_string()).or_default() += 1;
        }
    }
}

/// The libraries under test, and a running worker of each that is in use.
pub struct Pool {
    program: PathBuf,
    libraries: BTreeMap<String, PathBuf>,
    children: BTreeMap<String, Child>,
}

impl Pool {
    /// `program` is this crate's binary.
    pub fn new(program: &Path, libraries: &BTreeMap<String, PathBuf>) -> Pool {
        Pool { program: program.to_path_buf(), libraries: libraries.clone(), children: BTreeMap::new() }
    }

    /// The engine's worker, started if it is not running.
    ///
    /// # Errors
    /// There is no such engine, or it does not start.
    pub fn child(&mut self, engine: &str) -> Result<&mut Child, String> {
        if !self.children.contains_key(engine) {
            let library = self.libraries.get(engine).ok_or_else(|| format!("no library for {engine}"))?;
            let child = Child::start(&self.program, library)?;
            self.children.insert(engine.to_string(), child);
        }
        Ok(self.children.get_mut(engine).expect("it was just started"))
    }

    /// Ends the engine's worker by SIGKILL; gives the answers that were not waited for.
    pub fn kill(&mut self, engine: &str) -> Vec<Answer> {
        self.children.remove(engine).map_or_else(Vec::new, |mut child| child.kill())
    }
}

/// Why an operation failed, before it is known where.
struct Problem(Kind, String);

type Outcome<T> = Result<T, Problem>;

fn wrong(message: impl Into<String>) -> Problem {
    Problem(Kind::Wrong, message.into())
}

/// One case being played.
struct Game<'g> {
    case: &'g Case,
    pool: &'g mut Pool,
    dir: &'g Path,
    state: State,
    /// The engine whose process died last.
    died: Option<String>,
}

/// The rows that must be there, and counts of the operations so far.
#[derive(Clone)]
struct State {
    model: Model,
    tally: Tally,
    after_kill: bool,
    /// Backups in the shared directory, by id, with what was there when they were made.
    backups: Vec<(u32, Model)>,
}

/// Plays `case` in `dir`, a directory that is empty or can be made. In any case no worker has a database open
/// afterwards.
///
/// # Errors
/// The first failure. `dir/before` then holds the database as it was before the phase that failed.
pub fn play(case: &Case, pool: &mut Pool, dir: &Path) -> Result<Tally, Failure> {
    let model = Model::new(&case.families, &case.initial);
    let _ = std::fs::create_dir_all(dir);
    let state = State { model, tally: Tally::default(), after_kill: false, backups: Vec::new() };
    let mut game = Game { case, pool, dir, state, died: None };
    for (index, phase) in case.phases.iter().enumerate() {
        game.phase_or_again(index, phase)?;
    }
    Ok(game.state.tally)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Game<'_> {
    fn db(&self) -> PathBuf {
        self.dir.join("db")
    }

    fn ask(&mut self, engine: &str, request: &Request) -> Outcome<Answer> {
        let child = self.pool.child(engine).map_err(|error| Problem(Kind::Died, error))?;
        let answer = child.ask(request);
        answer.map_err(|lost| match lost {
            Lost::Died(how) => {
                self.died = Some(engine.to_string());
                Problem(Kind::Died, how)
            }
            Lost::Hangs(printed) => Problem(Kind::Hangs, format!("no answer to {request:?}; {printed}")),
        })
    }

    /// Asks for something that must work.
    fn must(&mut self, engine: &str, request: &Request) -> Outcome<Answer> {
        match self.ask(engine, request)? {
            Answer::Error(error) if error.starts_with("family ") => Err(wrong(error)),
            Answer::Error(error) => Err(Problem(Kind::Error, error)),
            answer => Ok(answer),
        }
    }

    /// Plays a phase, and again if a process of RocksDB dies of itself or loses a file to itself.
    fn phase_or_again(&mut self, index: usize, phase: &Phase) -> Result<(), Failure> {
        let failed = |(at, Problem(kind, message)): (Option<usize>, Problem)| Failure {
            kind,
            phase: index,
            operation: at,
            engine: phase.engine.clone(),
            message,
        };
        let ours = |error| failed((None, Problem(Kind::Error, error)));
        let state = self.state.clone();
        let before = Before::of(&self.db(), &self.dir.join("before")).map_err(ours)?;
        let backups =
            Before::of(Path::new(&self.backups_dir()), &self.dir.join("backups-before")).map_err(ours)?;
        let again = live(
            self,
            |game| {
                let mut at = None;
                game.phase(index, phase, &mut at).map_err(|problem| {
                    // Databases that the workers have open are of no use any more.
                    for engine in game.case.phases.iter().map(|phase| &phase.engine) {
                        game.pool.kill(engine);
                    }
                    failed((at, problem))
                })
            },
            |game, failure| {
                let died = game.died.as_deref().filter(|_| failure.kind == Kind::Died);
                let is_error = failure.kind == Kind::Error;
                let excused = died.is_some_and(|engine| is_excused(engine, &failure.message))
                    || is_error && lost_a_wal_to_a_flush(&failure.engine, &failure.message);
                if excused {
                    eprintln!("pingpong: seed {}, played again: {failure}", game.case.seed);
                }
                excused
            },
            |game| {
                game.state = state.clone();
                before.restore().and_then(|()| backups.restore()).map_err(ours)
            },
        )?;
        self.state.tally.again += again;
        Ok(())
    }

    fn phase(&mut self, index: usize, phase: &Phase, at: &mut Option<usize>) -> Outcome<()> {
        self.open(index, phase)?;
        let engine = &phase.engine;
        let in_flight = match phase.end {
            End::KillWriting { writes, .. } => self.in_flight(phase, writes),
            _ => 0,
        };
        let (calm, hurried) = phase.operations.split_at(phase.operations.len() - in_flight);
        for (number, operation) in calm.iter().enumerate() {
            *at = Some(number);
            self.operation(index, phase, operation)?;
        }
        *at = None;
        match &phase.end {
            // Data that is in no WAL must survive, so such a phase ends in order.
            _ if self.state.model.has_unlogged() => self.close(engine, phase),
            End::Close => self.close(engine, phase),
            End::Kill => {
                self.pool.kill(engine);
                self.killed();
                Ok(())
            }
            End::KillWriting { after_micros, .. } => self.kill_writing(engine, hurried, *after_micros),
        }
    }

    /// How many operations at the end are writes that may be in flight.
    fn in_flight(&self, phase: &Phase, writes: usize) -> usize {
        let logged = |operation: &&Operation| matches!(operation, Operation::Write { durability, .. } if *durability != Durability::Unlogged);
        phase.operations.iter().rev().take(writes).take_while(logged).count()
    }

    fn killed(&mut self) {
        self.state.after_kill = true;
        self.state.tally.kills += 1;
    }

    fn close(&mut self, engine: &str, phase: &Phase) -> Outcome<()> {
        // RocksDB forgets that there is unlogged data once a flush of it was asked for, and may close before that ends.
        let forgets = engine != OUTCROP || phase.has("avoid_flush_during_shutdown=true");
        if forgets && self.state.model.has_unflushed() {
            for family in self.state.model.existing() {
                self.must(engine, &Request::Do(Operation::Flush { family, wait: true }))?;
            }
        }
        self.must(engine, &Request::Close)?;
        self.state.model.close();
        Ok(())
    }

    /// Sends writes without waiting, and kills.
    fn kill_writing(&mut self, engine: &str, operations: &[Operation], after_micros: u64) -> Outcome<()> {
        let mut sent = Vec::new();
        let mut ahead = self.state.model.clone();
        let child = self.pool.child(engine).map_err(|error| Problem(Kind::Died, error))?;
        for operation in operations.iter().filter(|operation| {
            let admitted = admits(&ahead, operation);
            if admitted {
                ahead.apply(operation);
            }
            admitted
        }) {
            child.send(&Request::Do(operation.clone()));
            sent.push(operation);
        }
        std::thread::sleep(Duration::from_micros(after_micros));
        let answers = self.pool.kill(engine);
        for (number, operation) in sent.iter().enumerate() {
            match answers.get(number) {
                Some(Answer::Done) => self.state.model.apply(operation),
                Some(other) => return Err(Problem(Kind::Error, format!("{other:?} to {operation:?}"))),
                None => self.state.model.apply_unanswered(operation),
            }
            self.count(operation);
        }
        self.killed();
        Ok(())
    }

    fn count(&mut self, operation: &Operation) {
        self.state.tally.operations += 1;
        for name in names(operation) {
            *self.state.tally.by_name.entry(name).or_default() += 1;
        }
    }

    fn open_request(&self, phase: &Phase, path: &Path) -> OpenRequest {
        let families = self.case.families.iter().cloned().zip(phase.family_options.iter().cloned()).collect();
        OpenRequest {
            path: text(path),
            access: self.case.access,
            ttls: Vec::new(),
            options: phase.options.clone(),
            families,
            existing: self.state.model.existing(),
        }
    }

    fn open(&mut self, index: usize, phase: &Phase) -> Outcome<()> {
        let (engine, db) = (&phase.engine, self.db());
        if index > 0 {
            self.state.tally.count_swap(engine, &self.case.phases[index - 1], &self.state.model.existing());
            self.check_family_names(engine, &db)?;
            let left = &self.case.phases[index - 1];
            self.load_options(engine, left)?;
            for opening in phase.openings.iter().filter(|opening| opening.survived(engine, left)) {
                self.open_wrongly(phase, opening)?;
            }
        }
        self.must(engine, &Request::Open(self.open_request(phase, &db)))?;
        if std::mem::take(&mut self.state.after_kill) {
            let mut found = BTreeMap::new();
            for family in self.state.model.existing() {
                found.insert(family, self.rows(engine, family)?);
            }
            self.state.model.recover(&found).map_err(|error| wrong(format!("after SIGKILL: {error}")))?;
        } else {
            self.compare_all(engine)?;
        }
        self.check_prepared(engine)?;
        self.state.model.open(phase);
        Ok(())
    }

    /// The transactions that the engine has found prepared are those that were left so.
    fn check_prepared(&mut self, engine: &str) -> Outcome<()> {
        let Answer::Names(found) = self.must(engine, &Request::Prepared)? else {
            return Err(wrong("no list of prepared transactions"));
        };
        let expected: Vec<String> = self.state.model.prepared().keys().cloned().collect();
        if found == expected {
            Ok(())
        } else {
            Err(wrong(format!("prepared transactions {found:?}, not {expected:?}")))
        }
    }

    fn check_family_names(&mut self, engine: &str, db: &Path) -> Outcome<()> {
        let Answer::Names(mut names) = self.must(engine, &Request::ListFamilies(text(db)))? else {
            return Err(wrong("no list of column families"));
        };
        let existing = self.state.model.existing();
        let mut expected: Vec<String> =
            existing.iter().map(|&family| self.case.families[family].name.clone()).collect();
        names.sort();
        expected.sort();
        if names == expected {
            Ok(())
        } else {
            Err(wrong(format!("column families {names:?}, not {expected:?}")))
        }
    }

    /// Loads the OPTIONS file that the last phase left. Names that are new to the engine it may pass over, but there are none
    /// where all options are defaults.
    fn load_options(&mut self, engine: &str, left: &Phase) -> Outcome<()> {
        if left.engine != OUTCROP {
            return Ok(());
        }
        let by_default =
            |option: &String| ALWAYS.contains(&option.as_str()) || name(option) == "write_buffer_size";
        let lenient = !left.options.iter().chain(left.family_options.iter().flatten()).all(by_default);
        let count = self.state.model.existing().len();
        match self.must(engine, &Request::LoadOptions { path: text(&self.db()), lenient })? {
            Answer::Count(loaded) if loaded == count => Ok(()),
            other => Err(wrong(format!("{other:?} of {count} column families in OPTIONS"))),
        }
    }

    fn rows(&mut self, engine: &str, family: usize) -> Outcome<Vec<Row>> {
        match self.must(engine, &Request::Rows { family, keys: Vec::new() })? {
            Answer::Rows(rows, _) => Ok(rows),
            other => Err(wrong(format!("{other:?} instead of rows"))),
        }
    }

    /// Compares every row of every column family, and looks up keys that are gone.
    fn compare_all(&mut self, engine: &str) -> Outcome<()> {
        for family in self.state.model.existing() {
            let keys: Vec<Key> = self.state.model.absent_keys(family, 100);
            match self.must(engine, &Request::Rows { family, keys: keys.clone() })? {
                Answer::Rows(rows, values) => {
                    if let Some(text) = difference(&self.state.model.shown_rows(family, u64::MAX), &rows) {
                        return Err(wrong(format!("family {family}: {text}")));
                    }
                    let risen = keys.iter().zip(values).find_map(|(key, value)| Some((key, value?)));
                    if let Some((key, value)) = risen {
                        return Err(wrong(format!(
                            "family {family}: {key:?} is gone, but get finds {value}"
                        )));
                    }
                }
                other => return Err(wrong(format!("{other:?} instead of rows"))),
            }
        }
        Ok(())
    }

    fn operation(&mut self, index: usize, phase: &Phase, operation: &Operation) -> Outcome<()> {
        if !admits(&self.state.model, operation) {
            return Ok(());
        }
        self.count(operation);
        let engine = &phase.engine;
        match operation {
            Operation::CompareAll => return self.compare_all(engine),
            Operation::Ingest { family, records, move_file, by_other } => {
                self.ingest(index, phase, *family, records, *move_file, *by_other)?;
            }
            Operation::Checkpoint { log_size_for_flush } => {
                self.checkpoint(index, phase, *log_size_for_flush)?
            }
            Operation::Backup { flush } => self.backup(index, phase, *flush)?,
            Operation::Restore { nth, by_other } => self.restore(index, phase, *nth, *by_other)?,
            Operation::PurgeBackups { keep, by_other } => self.purge(index, phase, *keep, *by_other)?,
            Operation::OpenTwice => self.open_twice(index)?,
            Operation::Mistake(mistake) => return self.mistake(phase, mistake),
            // Outcrop flushes all whichever is named.
            Operation::Flush { wait, .. } if phase.unlogged && engine != OUTCROP => {
                self.must(engine, &Request::FlushTogether { wait: *wait })?;
            }
            _ => {
                let answer = self.must(engine, &Request::Do(operation.clone()))?;
                self.check(operation, answer)?;
            }
        }
        self.state.model.apply(operation);
        Ok(())
    }

    fn check(&mut self, operation: &Operation, answer: Answer) -> Outcome<()> {
        let expected = match operation {
            Operation::Get { view, keys, .. } => Answer::Values(self.state.model.values(view, keys)),
            Operation::Walk { view, moves } => Answer::Positions(self.state.model.walk(view, moves)),
            Operation::MoveIterator { slot, moves } => {
                Answer::Positions(self.state.model.move_iterator(*slot, moves))
            }
            _ => Answer::Done,
        };
        if answer == expected { Ok(()) } else { Err(wrong(explain(&expected, &answer))) }
    }

    /// Another engine of the case, preferably the one that works next, and its phase.
    fn other(&self, index: usize) -> Option<&Phase> {
        let phases = &self.case.phases;
        let after = phases[index + 1..].iter().chain(phases[..index].iter().rev());
        after.into_iter().find(|phase| phase.engine != phases[index].engine)
    }

    fn ingest(
        &mut self,
        index: usize,
        phase: &Phase,
        family: usize,
        records: &[Record],
        move_file: bool,
        by_other: bool,
    ) -> Outcome<()> {
        let path = text(&self.dir.join("ingested.sst"));
        let writer = self.other(index).filter(|_| by_other).unwrap_or(phase);
        let request = Request::WriteTable {
            path: path.clone(),
            family: self.case.families[family].clone(),
            options: writer.family_options[family].clone(),
            records: records.to_vec(),
        };
        let writer = writer.engine.clone();
        self.must(&writer, &request)?;
        self.must(&phase.engine, &Request::IngestTable { family, path: path.clone(), move_file })?;
        let _ = std::fs::remove_file(path);
        Ok(())
    }

    fn checkpoint(&mut self, index: usize, phase: &Phase, log_size_for_flush: u64) -> Outcome<()> {
        let path = self.dir.join("checkpoint");
        let _ = std::fs::remove_dir_all(&path);
        self.must(&phase.engine, &Request::Checkpoint { path: text(&path), log_size_for_flush })?;
        if let Some(other) = self.other(index).cloned() {
            self.compare_copy(&other, &path, "checkpoint")?;
        }
        let _ = std::fs::remove_dir_all(&path);
        Ok(())
    }

    /// Opens a copy of the database as another phase would, and compares it with the model.
    fn compare_copy(&mut self, phase: &Phase, path: &Path, what: &str) -> Outcome<()> {
        let mut phase = phase.clone();
        // RocksDB finds a checkpoint without WAL suspicious under this option, its own too.
        phase.options.retain(|option| option != "track_and_verify_wals=true");
        let engine = &phase.engine;
        self.must(engine, &Request::Open(self.open_request(&phase, path)))?;
        let said = |Problem(kind, text)| Problem(kind, format!("{what}, opened by {engine}: {text}"));
        self.compare_all(engine).map_err(said)?;
        self.check_prepared(engine).map_err(said)?;
        self.must(engine, &Request::Close)?;
        Ok(())
    }

    fn backups_dir(&self) -> String {
        text(&self.dir.join("backups"))
    }

    /// The engine that may do something with the shared directory of backups.
    fn keeper(&self, index: usize, phase: &Phase, by_other: bool) -> String {
        let other = self.other(index).filter(|_| by_other);
        other.unwrap_or(phase).engine.clone()
    }

    fn backup(&mut self, index: usize, phase: &Phase, flush: bool) -> Outcome<()> {
        let dir = self.backups_dir();
        self.must(&phase.engine, &Request::Backup { dir: dir.clone(), flush })?;
        let id = self.state.backups.last().map_or(0, |(id, _)| *id) + 1;
        self.state.backups.push((id, self.state.model.clone()));
        self.verify_backups(&self.keeper(index, phase, true))?;
        let excused = self.case.phases.iter().any(|phase| NAME_BY_CHECKSUM.contains(&&*phase.engine));
        shared_twice(Path::new(&dir), excused)
            .map_or(Ok(()), |names| Err(wrong(format!("shared twice: {names}"))))
    }

    /// The backups are those that were made and not deleted, and whole.
    fn verify_backups(&mut self, engine: &str) -> Outcome<()> {
        let expected: Vec<u32> = self.state.backups.iter().map(|(id, _)| *id).collect();
        match self.must(engine, &Request::VerifyBackups(self.backups_dir()))? {
            Answer::Ids(ids) if ids == expected => Ok(()),
            other => Err(wrong(format!("{engine} sees backups {other:?}, not {expected:?}"))),
        }
    }

    fn restore(&mut self, index: usize, phase: &Phase, nth: usize, by_other: bool) -> Outcome<()> {
        let Some(place) = self.state.backups.len().checked_sub(nth + 1) else { return Ok(()) };
        let (id, kept) = self.state.backups[place].clone();
        let path = self.dir.join("restored");
        let _ = std::fs::remove_dir_all(&path);
        let keeper = self.keeper(index, phase, by_other);
        self.must(&keeper, &Request::Restore { dir: self.backups_dir(), id, to: text(&path) })?;
        if let Some(other) = self.other(index).cloned() {
            let now = std::mem::replace(&mut self.state.model, kept);
            let compared = self.compare_copy(&other, &path, &format!("backup {id}, restored by {keeper}"));
            self.state.model = now;
            compared?;
        }
        let _ = std::fs::remove_dir_all(&path);
        Ok(())
    }

    fn purge(&mut self, index: usize, phase: &Phase, keep: usize, by_other: bool) -> Outcome<()> {
        if self.state.backups.is_empty() {
            return Ok(());
        }
        let keeper = self.keeper(index, phase, by_other);
        self.must(&keeper, &Request::PurgeBackups { dir: self.backups_dir(), keep: keep as u32 })?;
        self.state.backups.drain(..self.state.backups.len().saturating_sub(keep));
        self.verify_backups(&self.keeper(index, phase, !by_other))
    }

    /// Makes a mistake; nothing is to change.
    fn mistake(&mut self, phase: &Phase, mistake: &Mistake) -> Outcome<()> {
        let Some(class) = mistake.class(&phase.engine).filter(|_| mistake.fits(phase)) else { return Ok(()) };
        let scratch = self.empty_dir("mistake")?;
        let request = Request::Mistake { mistake: mistake.clone(), scratch: text(&scratch) };
        self.must_fail(&phase.engine, &request, class)
    }

    /// Opens the database in a way that fails; nothing is to change.
    fn open_wrongly(&mut self, phase: &Phase, opening: &Opening) -> Outcome<()> {
        let engine = &phase.engine;
        let Some(class) = opening.class(engine).filter(|_| opening.admitted(&self.state.model.existing()))
        else {
            return Ok(());
        };
        *self.state.tally.by_name.entry("opening that fails").or_default() += 1;
        let request = Request::OpenWrongly {
            request: self.open_request(phase, &self.db()),
            opening: opening.clone(),
            empty: text(&self.empty_dir("mistake")?),
        };
        self.must_fail(engine, &request, class)
    }

    fn must_fail(&mut self, engine: &str, request: &Request, class: &str) -> Outcome<()> {
        match self.ask(engine, request)? {
            Answer::Refused(error) if class_of(&error) == class => Ok(()),
            Answer::Error(error) => Err(Problem(Kind::Error, error)),
            answer => Err(wrong(format!("{answer:?} to {request:?}, the class must be {class:?}"))),
        }
    }

    fn empty_dir(&self, name: &str) -> Outcome<PathBuf> {
        let dir = self.dir.join(name);
        let _ = std::fs::remove_dir_all(&dir);
        let made = std::fs::create_dir_all(&dir);
        made.map_err(|error| {
            Problem(Kind::Error, format!("the harness cannot make {}: {error}", dir.display()))
        })?;
        Ok(dir)
    }

    fn open_twice(&mut self, index: usize) -> Outcome<()> {
        let Some(other) = self.other(index).cloned() else { return Ok(()) };
        let request = Request::Open(self.open_request(&other, &self.db()));
        match self.ask(&other.engine, &request)? {
            Answer::Error(error)
                if error.starts_with("IO error: ") && error.to_lowercase().contains("lock") =>
            {
                Ok(())
            }
            answer => Err(wrong(format!("{} opens what is open already: {answer:?}", other.engine))),
        }
    }
}

/// RocksDB that names some tables in backups by their checksum, though their properties have a session. The other side's backup of
/// the same table is then a file of its own: it takes space, and nothing is lost.
const NAME_BY_CHECKSUM: [&str; 2] = ["6.29.5", "7.10.2"];

/// Two names of one table among the shared files of backups, if there are some: then the sides do not share them.
///
/// `by_checksum`: one of them may be a name by checksum, which has no session.
fn shared_twice(backups: &Path, by_checksum: bool) -> Option<String> {
    let mut seen: BTreeMap<(String, u64), Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(backups.join("shared_checksum")).ok()?.flatten() {
        let (path, len) = (entry.path(), entry.metadata().ok()?.len());
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.split('_').next().unwrap_or_default().to_string();
        let others = seen.entry((number, len)).or_default();
        let content = std::fs::read(&path).ok()?;
        let has_session = |path: &Path| path.to_string_lossy().contains("_s");
        let twice = |other: &&PathBuf| {
            let excused = by_checksum
                && has_session(other.file_name().map_or(Path::new(""), Path::new))
                    != has_session(Path::new(&name));
            !excused && std::fs::read(other).is_ok_and(|read| read == content)
        };
        if let Some(other) = others.iter().find(twice) {
            return Some(format!("{} and {}", other.display(), path.display()));
        }
        others.push(path);
    }
    None
}

/// The first place where two answers differ.
fn explain(expected: &Answer, found: &Answer) -> String {
    match (expected, found) {
        (Answer::Values(a), Answer::Values(b)) if a.len() == b.len() => {
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or_default();
            format!("key {at}: {:?} expected, {:?} found", a[at], b[at])
        }
        (Answer::Positions(a), Answer::Positions(b)) if a.len() == b.len() => {
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or_default();
            format!("after move {at}: {:?} expected, {:?} found", a[at], b[at])
        }
        _ => format!("{expected:?} expected, {found:?} found"),
    }
}

/// The names of an operation in the tally; a write counts its kinds of records.
fn names(operation: &Operation) -> Vec<&'static str> {
    match operation {
        Operation::Write { records, .. } => {
            let mut names: Vec<&str> = records.iter().map(record_name).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
        Operation::Get { .. } => vec!["get"],
        Operation::Walk { view: View { same_prefix: true, .. }, .. } => vec!["prefix walk"],
        Operation::Walk { .. } => vec!["walk"],
        Operation::OpenIterator { .. } => vec!["iterator"],
        Operation::TakeSnapshot { .. } => vec!["snapshot"],
        Operation::Flush { .. } => vec!["flush"],
        Operation::FlushWal { .. } => vec!["flush wal"],
        Operation::CompactRange { .. } => vec!["compact range"],
        Operation::Ingest { by_other: true, .. } => vec!["ingest other's"],
        Operation::Ingest { .. } => vec!["ingest"],
        Operation::Checkpoint { .. } => vec!["checkpoint"],
        Operation::Transact { end: Ending::Prepare, .. } => vec!["prepare"],
        Operation::Transact { .. } => vec!["transaction"],
        Operation::Resolve { commit: true, .. } => vec!["commit prepared"],
        Operation::Resolve { .. } => vec!["roll back prepared"],
        Operation::Backup { .. } => vec!["backup"],
        Operation::Restore { by_other: true, .. } => vec!["restore by other"],
        Operation::Restore { .. } => vec!["restore"],
        Operation::PurgeBackups { .. } => vec!["purge backups"],
        Operation::CreateFamily { .. } => vec!["create family"],
        Operation::DropFamily { .. } => vec!["drop family"],
        Operation::SetOptions { .. } => vec!["set options"],
        Operation::OpenTwice => vec!["open twice"],
        Operation::Mistake(_) => vec!["mistake"],
        _ => Vec::new(),
    }
}

fn record_name(record: &Record) -> &'static str {
    match record {
        Record::Put(..) => "put",
        Record::Delete(..) => "delete",
        Record::SingleDelete(..) => "single delete",
        Record::Merge(..) => "merge",
        Record::DeleteRange(..) => "delete range",
        Record::PutEntity(..) => "put entity",
        Record::Fill { .. } => "fill",
        Record::LogData(_) => "log data",
    }
}

//! As `crash.rs` for writes, for everything else a database does: power is lost, or one operation fails, at every
//! point of a script per feature.
//!
//! ```text
//! script -> steps; each acknowledged step is a state, some make all before them durable
//! power lost at change N   -> opened again: a state from the last durable one on, and the step under way whole or not
//! change N fails once      -> an error, resume, go on; then power lost: for each key its last durable value or a later one
//! changes N to N+k fail    -> errors, until the database has resumed by itself; then as before
//! ```
//! Recovery is interrupted as well, and a secondary looks at what a failed primary has left.
//!
//! By default every few points are taken, others for each seed; `OUTCROP_CRASH=all` takes every one. With
//! `OUTCROP_CRASH_SCRIPT=TEXT` only scripts whose names contain the text are run.

use crate::harness::{
    LEAST_MEMTABLE, Rng, StopOnDrop, active_entries, contents, creating, descriptor, seed, work_done,
};
use outcrop::*;
use outcrop_env::clock::ManualClock;
use outcrop_env::faulty::{EIO, EMFILE, ENOSPC, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// (column family, key) to value.
type State = BTreeMap<RowKey, Value>;
/// A column family and a key in it.
type RowKey = (String, Vec<u8>);
/// A value, of which several states have a share.
type Value = Arc<[u8]>;
/// The changes that a step makes.
type Changes = Vec<(RowKey, Option<Value>)>;

const MAIN: &str = "default";
const SIDE: &str = "side";

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many values into a column family; the last write is synced.
    Put(&'static str, u64),
    /// As `Put`, but nothing is synced.
    PutUnsynced(&'static str, u64),
    /// As `Put`, past the WAL.
    PutPastWal(&'static str, u64),
    /// One key, synced.
    Delete(&'static str),
    /// A few keys, synced.
    DeleteRange(&'static str),
    /// Into both column families, synced.
    Batch,
    /// All column families.
    Flush,
    /// Everything, to the last level.
    Compact(&'static str),
    /// The tables of the first level that has any, one level down.
    CompactFiles,
    /// A file with some of the keys.
    Ingest {
        moved: bool,
    },
    /// To a directory of its own.
    Checkpoint,
    CreateSide,
    DropSide,
    SyncWal,
}
use Step::*;

struct Script {
    what: &'static str,
    /// The bytes of a value are up to 69 times this: so many that memtables fill between the flushes that are asked for.
    size: u64,
    /// At least so many memtables are filled by writes.
    fills: u64,
    /// At least so many compactions write or move tables.
    compactions: u64,
    db: DbOptions,
    options: ColumnFamilyOptions,
    steps: Vec<Step>,
}

/// Every script, or those that were asked for.
fn scripts() -> Vec<Script> {
    let mut scripts = all_scripts();
    if let Ok(wanted) = std::env::var("OUTCROP_CRASH_SCRIPT") {
        scripts.retain(|script| script.what.contains(&wanted));
    }
    scripts
}

fn all_scripts() -> Vec<Script> {
    let options = ColumnFamilyOptions {
        write_buffer_size: LEAST_MEMTABLE,
        target_file_size_base: 2 << 10,
        max_bytes_for_level_base: 4 << 10,
        level0_file_num_compaction_trigger: 3,
        ..ColumnFamilyOptions::default()
    };
    let with = |change: fn(&mut ColumnFamilyOptions)| {
        let mut options = options.clone();
        change(&mut options);
        options
    };
    let rounds = |round: &[Step], times: usize| round.repeat(times);
    let writes = [Put(MAIN, 12), Delete(MAIN), PutUnsynced(MAIN, 6), Flush, DeleteRange(MAIN), Put(MAIN, 5)];
    vec![
        Script {
            what: "blob files",
            size: 150,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: with(|o| {
                o.enable_blob_files = true;
                o.min_blob_size = 2000;
                o.blob_file_size = 40_000;
                o.enable_blob_garbage_collection = true;
                o.blob_garbage_collection_age_cutoff = 1.0;
            }),
            steps: rounds(&[&writes[..], &[Compact(MAIN)]].concat(), 3),
        },
        Script {
            what: "recycled and compressed WALs",
            size: 180,
            fills: 3,
            compactions: 1,
            db: DbOptions { recycle_log_file_num: 2, wal_compression: CompressionType::Zstd, ..creating() },
            options: options.clone(),
            steps: rounds(&[Put(MAIN, 9), PutUnsynced(MAIN, 9), Flush, PutUnsynced(MAIN, 4), SyncWal], 4),
        },
        Script {
            what: "recycled WALs",
            size: 180,
            fills: 3,
            compactions: 1,
            db: DbOptions { recycle_log_file_num: 2, ..creating() },
            options: options.clone(),
            steps: rounds(&[Put(MAIN, 9), PutUnsynced(MAIN, 9), Flush, PutUnsynced(MAIN, 4), SyncWal], 4),
        },
        Script {
            what: "universal compaction",
            size: 150,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: with(|o| o.compaction_style = CompactionStyle::Universal),
            steps: rounds(&writes, 6),
        },
        Script {
            what: "FIFO",
            size: 150,
            fills: 3,
            compactions: 0,
            db: creating(),
            options: with(|o| o.compaction_style = CompactionStyle::Fifo),
            steps: rounds(&writes, 4),
        },
        Script {
            what: "compact_files",
            size: 220,
            fills: 3,
            compactions: 4,
            db: creating(),
            options: with(|o| o.disable_auto_compactions = true),
            steps: rounds(&[Put(MAIN, 12), Flush, Delete(MAIN), Flush, CompactFiles, Put(MAIN, 3)], 4),
        },
        Script {
            what: "ingestion",
            size: 650,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: rounds(
                &[Put(MAIN, 7), Ingest { moved: false }, Put(MAIN, 4), Flush, Ingest { moved: true }],
                3,
            ),
        },
        Script {
            what: "ingestion after unsynced writes",
            size: 650,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: [
                vec![CreateSide],
                rounds(
                    &[
                        PutUnsynced(SIDE, 9),
                        Ingest { moved: false },
                        PutUnsynced(MAIN, 6),
                        PutUnsynced(SIDE, 2),
                        Ingest { moved: true },
                    ],
                    4,
                ),
            ]
            .concat(),
        },
        Script {
            what: "checkpoints",
            size: 500,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: rounds(&[Put(MAIN, 9), Checkpoint, Delete(MAIN), Flush, Put(MAIN, 2), Checkpoint], 2),
        },
        Script {
            what: "column families come and go",
            size: 450,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: rounds(
                &[Put(MAIN, 3), CreateSide, Put(SIDE, 8), Batch, Flush, Batch, Put(SIDE, 2), DropSide],
                3,
            ),
        },
        Script {
            what: "two column families, flushed apart",
            size: 45,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: [
                vec![CreateSide],
                rounds(&[Batch, PutUnsynced(SIDE, 40), Batch, PutUnsynced(MAIN, 5), Batch], 6),
            ]
            .concat(),
        },
        Script {
            what: "past the WAL",
            size: 260,
            fills: 3,
            compactions: 1,
            db: creating(),
            options: options.clone(),
            steps: rounds(&[Put(MAIN, 5), PutPastWal(MAIN, 7), Flush, Put(MAIN, 2)], 4),
        },
    ]
}

/// A script under way.
struct Run<'s> {
    script: &'s Script,
    env: Env,
    db: Option<Db>,
    rng: Rng,
    number: u64,
    files: u64,
    has_side: bool,
    /// The changes of each step, those that failed included.
    steps: Vec<Changes>,
    /// Of them, by number, those that were refused.
    failed: BTreeSet<usize>,
    /// So many steps are durable.
    durable: usize,
    /// Memtables that were full when a put came.
    filled: u64,
    /// Checkpoints that were acknowledged, and what must be in them.
    checkpoints: Vec<(PathBuf, usize)>,
}

impl<'s> Run<'s> {
    fn new(script: &'s Script, fs: &FaultyFs) -> Run<'s> {
        Run {
            script,
            env: Env::with_file_system(Arc::new(fs.clone())),
            db: None,
            rng: Rng::new(1),
            number: 0,
            files: 0,
            has_side: false,
            steps: Vec::new(),
            failed: BTreeSet::new(),
            durable: 0,
            filled: 0,
            checkpoints: Vec::new(),
        }
    }

    fn open(&mut self) -> Result<()> {
        self.env.fs.create_dir_all(Path::new("/out"))?;
        self.db = Some(open(&self.env, "/db", self.script)?);
        Ok(())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("it was opened")
    }

    fn cf(&self, name: &str) -> ColumnFamilyHandle {
        self.db().column_family(name).expect("it exists")
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:02}", self.rng.below(25)).into_bytes()
    }

    fn value(&mut self) -> Value {
        self.number += 1;
        let len = self.number * 13 % 70 * self.script.size;
        format!("{:05}-{}", self.number, "x".repeat(len as usize)).into_bytes().into()
    }

    /// Runs the script to its end, or to the first error unless `on` says what to do about it.
    fn run(&mut self, mut on: impl FnMut(&mut Run<'s>) -> bool) {
        for &step in &self.script.steps {
            let needs_side =
                matches!(step, Put(SIDE, _) | PutUnsynced(SIDE, _) | PutPastWal(SIDE, _) | Batch | DropSide);
            // A creation or drop that failed leaves a script that does not fit.
            if needs_side != self.has_side && (needs_side || matches!(step, CreateSide)) {
                continue;
            }
            if self.step(step).is_err() && !on(self) {
                return;
            }
        }
    }

    fn step(&mut self, step: Step) -> Result<()> {
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        match step {
            Put(family, count) => {
                self.puts(family, count - 1, &WriteOptions::default())?;
                self.puts(family, 1, &synced)
            }
            PutUnsynced(family, count) => self.puts(family, count, &WriteOptions::default()),
            PutPastWal(family, count) => {
                self.puts(family, count, &WriteOptions { disable_wal: true, ..WriteOptions::default() })
            }
            Delete(family) => {
                let key = self.key();
                let cf = self.cf(family);
                let changes = vec![((family.to_string(), key.clone()), None)];
                self.attempt(changes, true, |run| run.db().delete_cf_with(&cf, &key, &synced))
            }
            DeleteRange(family) => {
                let from = self.rng.below(20);
                let keys = |number: u64| format!("key{number:02}").into_bytes();
                let cf = self.cf(family);
                let changes = (from..from + 4).map(|n| ((family.to_string(), keys(n)), None)).collect();
                self.attempt(changes, true, |run| {
                    run.db().delete_range_cf_with(&cf, keys(from), keys(from + 4), &synced)
                })
            }
            Batch => {
                let mut batch = WriteBatch::new();
                let mut changes = Changes::new();
                for family in [MAIN, SIDE] {
                    let (key, value) = (self.key(), self.value());
                    batch.put_cf(&self.cf(family), &key, &value);
                    changes.push(((family.to_string(), key), Some(value)));
                }
                self.attempt(changes, true, |run| run.db().write_with(&mut batch, &synced))
            }
            Flush => {
                let families = self.db().column_families();
                self.attempt(Changes::new(), true, |run| run.db().flush_cfs(&families, Wait::UntilDone))
            }
            Compact(family) => {
                let cf = self.cf(family);
                let force = BottommostLevelCompaction::Force;
                self.attempt(Changes::new(), false, |run| {
                    run.db().compact_range_cf_with(&cf, None, None, &force.into())
                })
            }
            CompactFiles => {
                let files = self.db().live_files();
                let level = files.iter().map(|file| file.level).min().unwrap_or(0);
                let of_level = files.iter().filter(|file| file.level == level);
                let numbers: Vec<u64> = of_level.map(|file| file.number).collect();
                let cf = self.cf(MAIN);
                self.attempt(Changes::new(), false, |run| match numbers.as_slice() {
                    [] => Ok(()),
                    numbers => run.db().compact_files_cf(&cf, numbers, (level + 1).min(6)).map(drop),
                })
            }
            Ingest { moved } => self.ingest(moved),
            Checkpoint => {
                self.files += 1;
                let path = PathBuf::from(format!("/checkpoint{}", self.files));
                self.attempt(Changes::new(), false, |run| run.db().create_checkpoint(&path))?;
                self.checkpoints.push((path, self.steps.len()));
                Ok(())
            }
            CreateSide => {
                let family = descriptor(SIDE, &self.script.options);
                let created = self
                    .attempt(Changes::new(), true, |run| run.db().create_column_family(&family).map(drop));
                self.has_side = self.db().column_family(SIDE).is_some();
                created
            }
            DropSide => {
                let cf = self.cf(SIDE);
                let keys: BTreeSet<_> = self.steps.iter().flatten().map(|(place, _)| place.clone()).collect();
                let changes =
                    keys.into_iter().filter(|(family, _)| family == SIDE).map(|place| (place, None));
                let changes = changes.collect();
                let dropped = self.attempt(changes, true, |run| run.db().drop_column_family(&cf));
                self.has_side = self.db().column_family(SIDE).is_some();
                if !self.has_side {
                    // The failure may be that of the OPTIONS file, which is written after it.
                    self.failed.remove(&(self.steps.len() - 1));
                }
                dropped
            }
            SyncWal => self.attempt(Changes::new(), true, |run| run.db().sync_wal()),
        }
    }

    fn puts(&mut self, family: &str, count: u64, options: &WriteOptions) -> Result<()> {
        let cf = self.cf(family);
        for _ in 0..count {
            let (key, value) = (self.key(), self.value());
            let changes = vec![((family.to_string(), key.clone()), Some(value.clone()))];
            let before = active_entries(self.db(), &cf);
            self.attempt(changes, options.sync, |run| run.db().put_cf_with(&cf, &key, &value, options))?;
            self.filled += u64::from(active_entries(self.db(), &cf) <= before);
        }
        Ok(())
    }

    /// Writes a file, and takes it in: earlier writes, synced or not, are durable with it.
    fn ingest(&mut self, moved: bool) -> Result<()> {
        self.files += 1;
        let path = PathBuf::from(format!("/out/{}.sst", self.files));
        let keys: BTreeSet<Vec<u8>> = (0..4).map(|_| self.key()).collect();
        let rows: Vec<(Vec<u8>, Value)> = keys.into_iter().map(|key| (key, self.value())).collect();
        let changes = rows.iter().map(|(key, value)| ((MAIN.to_string(), key.clone()), Some(value.clone())));
        let changes = changes.collect();
        let cf = self.cf(MAIN);
        self.attempt(changes, true, |run| {
            let mut writer = SstFileWriter::create(&path, &run.env, &descriptor(MAIN, &run.script.options))?;
            rows.iter().try_for_each(|(key, value)| writer.put(key, value))?;
            writer.finish()?;
            let options =
                IngestExternalFileOptions { move_files: moved, ..IngestExternalFileOptions::default() };
            run.db().ingest_external_files_cf_with(&cf, std::slice::from_ref(&path), &options)
        })
    }

    /// One step that is acknowledged or refused as a whole; `durable`: with all before it, once acknowledged.
    fn attempt(
        &mut self,
        changes: Changes,
        durable: bool,
        act: impl FnOnce(&Run<'s>) -> Result<()>,
    ) -> Result<()> {
        let outcome = act(self);
        if outcome.is_err() {
            self.failed.insert(self.steps.len());
        }
        self.steps.push(changes);
        if outcome.is_ok() && durable {
            self.durable = self.steps.len();
        }
        outcome
    }

    /// The state after so many steps, those that failed counted only if `with_failed`.
    fn state(&self, steps: usize, with_failed: bool) -> State {
        let mut state = State::new();
        let counts = |number: &usize| with_failed || !self.failed.contains(number);
        for (place, value) in (0..steps).filter(counts).flat_map(|number| &self.steps[number]) {
            match value {
                Some(value) => drop(state.insert(place.clone(), value.clone())),
                None => drop(state.remove(place)),
            }
        }
        state
    }

    /// Every state from step `from` on is legal.
    fn check_prefix(&self, state: &State, from: usize, what: &str) {
        let legal = (from..=self.steps.len()).any(|steps| self.state(steps, true) == *state);
        let told =
            || state.iter().map(|(place, value)| (place.clone(), number_of(value))).collect::<Vec<_>>();
        assert!(
            legal,
            "{what}: {} rows are no state from {from} to {}: {:?}",
            state.len(),
            self.steps.len(),
            told()
        );
    }

    /// Each key has its last durable value, or one of a later step.
    fn check_each_key(&self, state: &State, what: &str) {
        let mut legal: BTreeMap<RowKey, Vec<Option<Value>>> = BTreeMap::new();
        for (number, changes) in self.steps.iter().enumerate() {
            for (place, value) in changes {
                let values = legal.entry(place.clone()).or_insert_with(|| vec![None]);
                if number < self.durable && !self.failed.contains(&number) {
                    values.clear();
                }
                values.push(value.clone());
            }
        }
        for (place, values) in &legal {
            let found = state.get(place).cloned();
            let said = |value: &Option<Value>| value.as_ref().map(|value| number_of(value));
            let legal = || values.iter().map(said).collect::<Vec<_>>();
            assert!(
                values.contains(&found),
                "{what}: {place:?} is {:?}, legal are {:?}",
                said(&found),
                legal()
            );
        }
        assert!(state.keys().all(|place| legal.contains_key(place)), "{what}: a key nobody wrote");
    }
}

fn open(env: &Env, path: &str, script: &Script) -> Result<Db> {
    let families = match env.fs.exists(&Path::new(path).join("CURRENT"))? {
        true => Db::list_column_families_in(path, env)?,
        false => vec![MAIN.to_string()],
    };
    let families = families.iter().map(|name| descriptor(name, &script.options));
    Db::builder(path).options(script.db.clone()).env(env.clone()).column_families(families).open()
}

/// The start of a value: its number.
fn number_of(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(5)]).into_owned()
}

/// All rows of a database.
fn state_of(db: &Db) -> State {
    let mut state = State::new();
    for cf in db.column_families() {
        let rows = contents(db, &cf, &ReadOptions::default());
        state.extend(rows.into_iter().map(|(key, value)| ((cf.name().to_string(), key), value.into())));
    }
    state
}

/// Changes of a whole run without a fault, in which memtables fill and are compacted.
fn count(script: &Script) -> u64 {
    let fs = FaultyFs::new(MemoryFs::new());
    let mut run = Run::new(script, &fs);
    run.open().unwrap();
    run.run(|run| panic!("{}: step {} fails without a fault", run.script.what, run.steps.len()));
    assert!(run.durable > run.steps.len() / 2, "{}", script.what);
    let changes = fs.faults().changes();
    let work = work_done(run.db(), &run.env, "/db");
    println!("{}: {changes} changes, {} memtables filled, {work:?}", script.what, run.filled);
    assert!(run.filled >= script.fills, "{}: {} memtables filled", script.what, run.filled);
    assert!(work.memtables >= run.filled, "{}: {work:?}", script.what);
    assert!(work.compactions >= script.compactions, "{}: {work:?}", script.what);
    changes
}

/// The points to take of `total`.
fn points(total: u64, most: u64, rng: &mut Rng) -> Vec<u64> {
    let stride = match std::env::var("OUTCROP_CRASH").is_ok_and(|value| value == "all") {
        true => 1,
        false => (total / most).max(1),
    };
    let points: Vec<u64> = (rng.below(stride)..total + 5).step_by(stride as usize).collect();
    println!("{} cases", points.len());
    points
}

#[test]
fn power_lost_at_any_point_of_any_feature_leaves_what_was_durable() {
    let mut rng = Rng::new(seed("crash of features", 21));
    for script in scripts() {
        for point in points(count(&script), 40, &mut rng) {
            let what = format!("{}: power lost at change {point}", script.what);
            let fs = FaultyFs::new(MemoryFs::new());
            let mut run = Run::new(&script, &fs);
            fs.faults().fail_at(point, EIO, true);
            if run.open().is_ok() {
                run.run(|_| false);
            }
            drop(run.db.take());
            check_secondary(&run, &fs, &what);
            if rng.one_in(2) {
                fs.memory().crash_torn(rng.next())
            } else {
                fs.memory().crash()
            }
            // Recovery is interrupted too.
            fs.faults().fail_at(fs.faults().changes() + rng.below(25), EIO, true);
            drop(open(&run.env, "/db", &script));
            fs.memory().crash();
            fs.faults().heal();
            let db = open(&run.env, "/db", &script).unwrap_or_else(|error| panic!("{what}: {error}"));
            run.check_prefix(&state_of(&db), run.durable, &what);
            db.put(b"after", b"crash").unwrap();
            drop(db);
            check_checkpoints(&run, &what);
        }
    }
}

/// Before power is lost: a reader beside the failed writer finds the acknowledged rows.
fn check_secondary(run: &Run<'_>, fs: &FaultyFs, what: &str) {
    fs.faults().heal();
    let Ok(names) = Db::list_column_families_in("/db", &run.env) else { return };
    let families = names.iter().map(|name| descriptor(name, &run.script.options));
    let db = Db::builder("/db")
        .options(run.script.db.clone())
        .env(run.env.clone())
        .column_families(families)
        .open_secondary()
        .unwrap_or_else(|error| panic!("{what}: secondary: {error}"));
    db.try_catch_up_with_primary().unwrap_or_else(|error| panic!("{what}: secondary: {error}"));
    // The last step may have failed, and what was past the WAL is seen only in tables.
    let past_wal = run.script.steps.iter().any(|step| matches!(step, PutPastWal(..)));
    let from = if past_wal { run.durable } else { run.steps.len().saturating_sub(1) };
    run.check_prefix(&state_of(&db), from, &format!("{what}: secondary"));
}

fn check_checkpoints(run: &Run<'_>, what: &str) {
    for (path, steps) in &run.checkpoints {
        let db = open(&run.env, path.to_str().unwrap(), run.script)
            .unwrap_or_else(|error| panic!("{what}: {}: {error}", path.display()));
        assert!(state_of(&db) == run.state(*steps, false), "{what}: {} has other rows", path.display());
    }
}

#[test]
fn one_failure_at_any_point_of_any_feature_is_an_error_and_loses_nothing_durable() {
    let mut rng = Rng::new(seed("fault in features", 22));
    for script in scripts() {
        for point in points(count(&script), 40, &mut rng) {
            let errno = rng.pick(&[EIO, ENOSPC]);
            let what = format!("{}: change {point} fails with {errno}", script.what);
            let fs = FaultyFs::new(MemoryFs::new());
            let mut run = Run::new(&script, &fs);
            fs.faults().fail_at(point, errno, false);
            if run.open().is_err() {
                run.open().unwrap_or_else(|error| panic!("{what}: opened again: {error}"));
            }
            run.run(|run| {
                // One failure, which is over: the refused operation may be tried again.
                run.db().resume().unwrap_or_else(|error| panic!("{what}: resume: {error}"));
                true
            });
            // Failed changes are not there, and all others are.
            assert_eq!(state_of(run.db()), run.state(run.steps.len(), false), "{what}: before the crash");
            drop(run.db.take());
            fs.faults().heal();
            if rng.one_in(2) {
                fs.memory().crash_torn(rng.next())
            } else {
                fs.memory().crash()
            }
            let db = open(&run.env, "/db", &script).unwrap_or_else(|error| panic!("{what}: {error}"));
            run.check_each_key(&state_of(&db), &what);
            drop(db);
            check_checkpoints(&run, &what);
        }
    }
}

/// The rows of a replica that has applied all updates since the first.
fn replica_of(db: &Db, what: &str) -> State {
    let names: BTreeMap<CfId, String> =
        db.column_families().iter().map(|cf| (cf.id(), cf.name().to_string())).collect();
    let mut state = State::new();
    let mut updates = db.updates_since(SeqNum(1)).unwrap_or_else(|error| panic!("{what}: {error}"));
    while let Some((first, batch)) = updates.next_batch().unwrap_or_else(|error| panic!("{what}: {error}")) {
        for record in batch.iter() {
            let Record { cf, op } = record.unwrap_or_else(|error| panic!("{what}: {first}: {error}"));
            // It was dropped.
            let Some(name) = names.get(&cf) else { continue };
            let place = |key: &[u8]| (name.clone(), key.to_vec());
            match op {
                Op::Put { key, value } => drop(state.insert(place(key), value.into())),
                Op::Delete { key } => drop(state.remove(&place(key))),
                Op::DeleteRange { begin, end } => {
                    state.retain(|(family, key), _| family != name || &key[..] < begin || &key[..] >= end)
                }
                other => panic!("{what}: {first}: {other:?}"),
            }
        }
    }
    state
}

#[test]
fn a_replica_has_no_write_that_failed_and_all_others() {
    let mut rng = Rng::new(seed("updates", 24));
    for mut script in scripts() {
        if script.steps.iter().any(|step| matches!(step, PutPastWal(..) | Ingest { .. })) {
            continue;
        }
        script.db.wal_ttl_seconds = 1000;
        for point in points(count_only(&script, Some(".log")), 20, &mut rng) {
            let errno = rng.pick(&[EIO, ENOSPC]);
            let what = format!("{}: change {point} of WALs fails with {errno}", script.what);
            let fs = FaultyFs::new(MemoryFs::new());
            let mut run = Run::new(&script, &fs);
            fs.faults().only(Some(".log"));
            fs.faults().fail_at(point, errno, false);
            if run.open().is_err() {
                run.open().unwrap_or_else(|error| panic!("{what}: opened again: {error}"));
            }
            run.run(|run| {
                run.db().resume().unwrap_or_else(|error| panic!("{what}: resume: {error}"));
                true
            });
            let rows = state_of(run.db());
            assert_eq!(rows, run.state(run.steps.len(), false), "{what}");
            assert!(replica_of(run.db(), &what) == rows, "{what}: a replica has other rows");
        }
    }
}

/// Lets simulated seconds pass, and has upkeep look at the clock.
fn tick(db: &Db, clock: &ManualClock) {
    clock.advance(Duration::from_secs(1));
    db.continue_background_work();
    std::thread::yield_now();
}

/// Lets time pass while `act` runs.
fn ticking<R>(db: &Db, clock: &ManualClock, act: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = StopOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                tick(db, clock);
            }
        });
        act()
    })
}

/// The application resumes as long as it takes; then the time comes that the next attempt was planned for.
fn resume_before_the_next_attempt(db: &Db, clock: &ManualClock) {
    while let Err(error) = db.resume() {
        assert_ne!(error.kind(), ErrorKind::Aborted, "nothing resumes from a panic: {error}");
    }
    for _ in 0..10 {
        tick(db, clock);
    }
}

/// Waits until the database has resumed by itself.
fn wait_until_resumed(db: &Db, clock: &ManualClock) {
    while let Some(error) = db.background_error() {
        assert_ne!(error.kind(), ErrorKind::Aborted, "nothing resumes from a panic: {error}");
        tick(db, clock);
    }
}

#[test]
fn errors_that_pass_are_over_without_a_word_and_nothing_acknowledged_is_lost() {
    let mut rng = Rng::new(seed("errors that pass", 23));
    let mut resumed = 0;
    for script in scripts() {
        for only in [None, Some(".log"), Some("MANIFEST"), Some("dbtmp"), Some(".sst"), Some(".blob")] {
            let total = count_only(&script, only);
            for point in points(total, 4, &mut rng) {
                let (errno, times) = (rng.pick(&[EIO, ENOSPC, EMFILE]), 1 + rng.below(9));
                let opens = if errno == EMFILE { rng.below(4) } else { 0 };
                let what = format!("{}: {only:?} {point}: {times} fail with {errno}", script.what);
                let fs = FaultyFs::new(MemoryFs::new());
                let clock = Arc::new(ManualClock::at(1_700_000_000_000_000));
                let mut run = Run::new(&script, &fs);
                run.env.clock = clock.clone();
                run.open().unwrap();
                fs.faults().only(only);
                fs.faults().fail_range(fs.faults().changes() + point, times, errno);
                fs.faults().fail_opens(opens, errno);
                // The application may be quicker than the next attempt, and then changes fail again.
                let mut helps = rng.one_in(3);
                run.run(|run| {
                    resumed += u32::from(run.db().background_error().is_some());
                    if std::mem::take(&mut helps) {
                        resume_before_the_next_attempt(run.db(), &clock);
                        let next = fs.faults().changes() + rng.below(30);
                        fs.faults().fail_range(next, times, errno);
                    }
                    wait_until_resumed(run.db(), &clock);
                    true
                });
                let db = run.db();
                wait_until_resumed(db, &clock);
                // Errors that were planned and not yet met fail compactions.
                let settled = ticking(db, &clock, || {
                    loop {
                        match db.wait_for_compact(&WaitForCompactOptions::default()) {
                            Err(_) => wait_until_resumed(db, &clock),
                            Ok(()) => break db.background_error(),
                        }
                    }
                });
                assert!(settled.is_none(), "{what}: {settled:?}");
                fs.faults().heal();
                db.put_with(b"key99", b"last", &WriteOptions { sync: true, ..WriteOptions::default() })
                    .unwrap_or_else(|error| panic!("{what}: after all: {error}"));
                db.delete(b"key99").unwrap();
                assert_eq!(state_of(db), run.state(run.steps.len(), false), "{what}: before the crash");
                // These two may have filled a memtable.
                let settled = ticking(db, &clock, || db.wait_for_compact(&WaitForCompactOptions::default()));
                settled.unwrap_or_else(|error| panic!("{what}: after all: {error}"));
                let live: BTreeSet<u64> = db.live_files().iter().map(|file| file.number).collect();
                drop(run.db.take());
                // Closing flushes what is in no WAL.
                let flushes = script.steps.iter().any(|step| matches!(step, PutPastWal(..)));
                if matches!(only, Some("MANIFEST" | "dbtmp")) && !flushes {
                    run.check_tables(&live, &what);
                }
                fs.faults().heal();
                if rng.one_in(2) {
                    fs.memory().crash_torn(rng.next())
                } else {
                    fs.memory().crash()
                }
                let db = open(&run.env, "/db", &script).unwrap_or_else(|error| panic!("{what}: {error}"));
                let mut state = state_of(&db);
                state.remove(&(MAIN.to_string(), b"key99".to_vec()));
                run.check_each_key(&state, &what);
                drop(db);
                check_checkpoints(&run, &what);
            }
        }
    }
    println!("{resumed} times it resumed by itself");
    assert!(resumed > 50, "{resumed}");
}

/// Changes of a run without a fault to files whose names contain `only`, after it was opened.
fn count_only(script: &Script, only: Option<&str>) -> u64 {
    let fs = FaultyFs::new(MemoryFs::new());
    let mut run = Run::new(script, &fs);
    run.open().unwrap();
    fs.faults().only(only);
    let before = fs.faults().changes();
    run.run(|run| panic!("{}: step {} fails without a fault", run.script.what, run.steps.len()));
    fs.faults().changes() - before
}

impl Run<'_> {
    /// Every table that there is belongs to the database: as only writes of the MANIFEST failed, each obsolete one was removed.
    fn check_tables(&self, live: &BTreeSet<u64>, what: &str) {
        let names = self.env.fs.list(Path::new("/db")).unwrap();
        let tables = names.iter().filter_map(|name| name.strip_suffix(".sst")?.parse::<u64>().ok());
        let obsolete: Vec<u64> = tables.filter(|number| !live.contains(number)).collect();
        assert!(obsolete.is_empty(), "{what}: tables left behind: {obsolete:?}");
    }
}

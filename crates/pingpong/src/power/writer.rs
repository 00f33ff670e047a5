//! The process that writes on a file system whose disk is recorded, and its parent's end.
//!
//! ```text
//! parent --the plan, one line of JSON--> child
//! disk's log <--two bytes, one write(2)-- child   each of `Told`: a write begins, is acknowledged, a checkpoint is made ..
//! parent <--a line----------------------- child   it has done all of it; then it is killed
//! ```

use super::mounts::Mounted;
use super::scenarios::{Made, Plan, Upkeep};
use super::told::Told;
use crate::backups;
use crate::batch::{self, Batch};
use crate::database::{Database, Handle, Ingestion};
use crate::history::{Change, FAMILIES, Write};
use crate::library::Api;
use crate::options::Options;
use crate::progress::{Patience, Watchdog};
use crate::rows::{close, open};
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The patience with a writer between two records of its disk. A history takes seconds.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(120), work: Duration::from_secs(600) };

/// Runs a writer to its end in the mounted file system `dir`; `records` counts what its disk was asked for.
///
/// # Errors
/// It fails, or does not get on.
pub fn run(
    program: &Path,
    library: &Path,
    plan: &Plan,
    (dir, mounted): (&Path, &Mounted),
    (marks, records): (&Path, &dyn Fn() -> u64),
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut errors = tempfile::tempfile().map_err(failed)?;
    let mut child = Command::new(program)
        .args([Path::new("power-writer"), Path::new("--library"), library, Path::new("--dir"), dir])
        .args([Path::new("--marks"), marks])
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let mut input = child.stdin.take().expect("piped above");
    let output = child.stdout.take().expect("piped above");
    let line = serde_json::to_string(plan).expect("a plan is plain data");
    // A child that is gone is noticed below.
    let _ = writeln!(input, "{line}");
    let (tell, told) = channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
    });
    let mut dog = Watchdog::new(child.id(), PATIENCE);
    let mut hangs = None;
    let mut random = Random::new(plan.shape.seed);
    let ended = loop {
        // The moments at which the system writes back are drawn.
        match told.recv_timeout(Duration::from_millis(5 + random.below(100))) {
            Ok(line) => break Some(line),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                hangs = dog.look(records());
                if hangs.is_some() {
                    break None;
                }
                if plan.written_back {
                    mounted.write_back();
                }
            }
        }
    };
    let _ = child.kill();
    let status = child.wait().map_err(failed)?;
    let _ = reader.join();
    let mut printed = String::new();
    let _ = errors.seek(SeekFrom::Start(0)).and_then(|_| errors.read_to_string(&mut printed));
    if ended.is_none() || printed.contains("panicked at") {
        let how = hangs.unwrap_or_else(|| format!("it ended by itself: {status}"));
        return Err(format!("the writer: {how}; {printed}"));
    }
    Ok(())
}

/// The child.
///
/// # Errors
/// The library cannot be loaded, or a call fails.
pub fn serve(library: &Path, dir: &Path, marks: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("power-writer: {error}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(failed)?;
    let plan: Plan = serde_json::from_str(&line).map_err(|error| format!("power-writer: {error}"))?;
    let api = Api::load(library)?;
    let marks = File::options().write(true).open(marks).map_err(failed)?;
    let two_phases = plan.made == Made::TwoPhases;
    let (database, handles) = open(&api, &plan.options, "kPointInTimeRecovery", &dir.join("db"), two_phases)?;
    if two_phases {
        database.roll_back_prepared()?;
    }
    Told::Opened.tell(&marks)?;
    let writing =
        Writing { api: &api, database: &database, handles: &handles, plan: &plan, dir, marks: &marks };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.threads)
            .map(|thread| (thread, &writing))
            .map(|(t, w)| scope.spawn(move || w.thread(t)))
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"))
    })?;
    if plan.closes {
        close(database, &handles)?;
    }
    println!("done");
    // Until the kill, or the end of a parent that is gone.
    let _ = std::io::stdin().read_line(&mut line);
    Ok(())
}

struct Writing<'w, 'a> {
    api: &'a Api,
    database: &'w Database<'a>,
    handles: &'w [Handle],
    plan: &'w Plan,
    dir: &'w Path,
    marks: &'w File,
}

impl Writing<'_, '_> {
    fn thread(&self, thread: usize) -> Result<(), String> {
        let mut family = None;
        for index in 0..self.plan.writes {
            let write = self.plan.shape.draw(thread, index);
            Told::Begun(thread as u8).tell(self.marks)?;
            self.write(thread, index, &write)
                .map_err(|error| format!("write {index} of {thread}: {error}"))?;
            Told::Done(thread as u8).tell(self.marks)?;
            if thread == 0 && (index + 1).is_multiple_of(self.plan.upkeep_every) {
                let number = (index / self.plan.upkeep_every) as u8;
                self.keep_up(number, &mut family)
                    .map_err(|error| format!("{:?} {number}: {error}", self.plan.upkeep))?;
            }
        }
        if let Some(handle) = family {
            self.database.destroy_handle(handle)?;
        }
        Ok(())
    }

    fn write(&self, thread: usize, index: u64, write: &Write) -> Result<(), String> {
        let simple = |change: &Change| !matches!(change, Change::DeleteRange(..));
        if self.plan.made == Made::TwoPhases && write.changes.iter().all(simple) {
            let changes: Vec<_> = write.changes.iter().map(|change| self.change(change)).collect();
            return self.database.write_in_two_phases(&format!("t{thread}-{index}"), &changes, write.sync);
        }
        if self.plan.made == Made::Ingested
            && index % 4 == 3
            && let Some((family, rows)) = of_one_family(write)
        {
            return self.ingest(thread, index, family, &rows);
        }
        let mut batch = Batch::new(self.api)?;
        for change in &write.changes {
            let (handle, change) = self.change(change);
            batch.add(handle, change)?;
        }
        self.database.write(&batch, write.sync, true)
    }

    fn change<'c>(&self, change: &'c Change) -> (Handle, batch::Change<'c>) {
        match change {
            Change::Put(family, key, value) => (self.handles[*family], batch::Change::Put(key, value)),
            Change::Merge(family, key, operand) => {
                (self.handles[*family], batch::Change::Merge(key, operand))
            }
            Change::Delete(family, key) => (self.handles[*family], batch::Change::Delete(key)),
            Change::DeleteRange(family, begin, end) => {
                (self.handles[*family], batch::Change::DeleteRange(begin, end))
            }
        }
    }

    fn ingest(&self, thread: usize, index: u64, family: usize, rows: &TableRows<'_>) -> Result<(), String> {
        let path = self.dir.join(format!("{}-{thread}-{index}.sst", self.plan.shape.cycle));
        let path = path.to_string_lossy();
        let options = Options::new(self.api, &self.plan.options)?;
        let changes = rows.iter().map(|(key, value)| batch::Change::Put(key, value));
        batch::write_table(self.api, &path, &options, changes)?;
        let how = Ingestion { move_files: index % 8 == 3, ..Ingestion::default() };
        self.database.ingest(self.handles[family], &[&path], &how)
    }

    fn keep_up(&self, number: u8, family: &mut Option<Handle>) -> Result<(), String> {
        let database = self.database;
        let cycle = self.plan.shape.cycle;
        match self.plan.upkeep {
            Upkeep::None => Ok(()),
            Upkeep::Flush => database.flush_together(self.handles, true),
            Upkeep::SyncWal => database.flush_wal(true),
            Upkeep::Compact => {
                let handle = self.handles[usize::from(number) % FAMILIES.len()];
                let bottommost = if number % 3 == 2 { 2 } else { 1 };
                database.compact_range(handle, None, None, bottommost, true)
            }
            Upkeep::Checkpoint => {
                Told::CheckpointBegun(number).tell(self.marks)?;
                let path = self.dir.join(format!("checkpoint-{cycle}-{number}"));
                // With a size the WAL is copied in place of a flush.
                database.checkpoint(
                    &path.to_string_lossy(),
                    if number.is_multiple_of(2) { 0 } else { u64::MAX },
                )?;
                Told::CheckpointMade(number).tell(self.marks)
            }
            Upkeep::Backup => {
                Told::BackupBegun(number).tell(self.marks)?;
                let path = self.dir.join(format!("backups-{cycle}"));
                backups::create(database, &path.to_string_lossy(), number.is_multiple_of(2), 2)?;
                Told::BackupMade(number).tell(self.marks)
            }
            Upkeep::Families => {
                if let Some(handle) = family.take() {
                    Told::FamilyBegun(number - 1).tell(self.marks)?;
                    database.drop_family(handle)?;
                    database.destroy_handle(handle)?;
                    Told::FamilyDropped(number - 1).tell(self.marks)?;
                }
                let options = Options::new(self.api, &self.plan.options)?;
                Told::FamilyBegun(number).tell(self.marks)?;
                let handle = database.create_family(&format!("family-{cycle}-{number}"), options)?;
                Told::FamilyMade(number).tell(self.marks)?;
                *family = Some(handle);
                (0..5).try_for_each(|row: u64| {
                    let put = batch::Change::Put(&row.to_be_bytes(), b"a row of a family that goes");
                    database.write_one(handle, put, row == 3, true)
                })
            }
            Upkeep::Options => {
                let (name, value) = [
                    ("write_buffer_size", "32768"),
                    ("disable_auto_compactions", "true"),
                    ("level0_file_num_compaction_trigger", "2"),
                    ("disable_auto_compactions", "false"),
                    ("compression", "kLZ4Compression"),
                    ("write_buffer_size", "65536"),
                ][usize::from(number) % 6];
                database.set_options(self.handles[usize::from(number) % FAMILIES.len()], name, value)
            }
        }
    }
}

/// Rows of a table, in their order.
type TableRows<'w> = BTreeMap<&'w [u8], &'w [u8]>;

/// The rows of a write that only puts, into one column family.
fn of_one_family(write: &Write) -> Option<(usize, TableRows<'_>)> {
    let mut rows = TableRows::new();
    let mut of = None;
    for change in &write.changes {
        let Change::Put(family, key, value) = change else { return None };
        if of.is_some_and(|of| of != *family) {
            return None;
        }
        of = Some(*family);
        rows.insert(&key[..], &value[..]);
    }
    Some((of?, rows))
}

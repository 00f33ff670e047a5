//! Checkpoints and backups, made while threads write: each, opened, has to be a state that all threads went through.
//!
//! They are opened on the disk without its faults: what a copy has cannot be excused by them.

use crate::application::{Application, Step, lock};
use crate::blame::Told;
use crate::counts::Count;
use crate::opened::{more_families, rows_of};
use crate::races::{Activity, during};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_pingpong::history::FAMILIES;
use std::path::Path;

/// Where copies are.
const DIR: &str = "/copies";

/// How a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A checkpoint.
    Checkpoint,
    /// A backup, which is restored.
    Backup,
}

impl Application<'_> {
    /// Makes a copy and judges it.
    pub fn copy(&mut self, kind: Kind) -> Step {
        // A backup takes a flipped bit along.
        if kind == Kind::Backup && self.shared.cycle.trouble.bit_flips_one_in > 0 {
            return Ok(true);
        }
        let number = {
            let mut copies = lock(&self.shared.copies);
            *copies += 1;
            *copies
        };
        let dir = format!("{DIR}/c{}-{number}", self.shared.cycle.shape.cycle);
        let (log, families) = (lock(&self.shared.log).clone(), lock(&self.shared.coming).clone());
        let began = self.shared.surroundings.disk.moment();
        let copying = during(match kind {
            Kind::Checkpoint => Activity::Checkpoint,
            Kind::Backup => Activity::Backup,
        });
        let made = match kind {
            Kind::Checkpoint => self.checkpoint(&dir),
            Kind::Backup => self.back_up(&dir),
        };
        drop(copying);
        let stable = families.stable(&lock(&self.shared.coming));
        let after = lock(&self.shared.log).clone();
        let judged = match made {
            Err(error) => {
                let excused = self.excuse(&format!("{kind:?}"), &error, Told::Changing, began);
                self.clean(&dir);
                return excused.map(|_| true);
            }
            Ok(()) => self.read_copy(&dir).map_err(|error| format!("reading it: {error}")).and_then(
                |(rows, more)| {
                    let there = self.judge_moment(rows, &log, after)?;
                    stable.judge(self.shared.cycle.shape.cycle, &more, &there)
                },
            ),
        };
        self.clean(&dir);
        self.shared.count(Count::Copies);
        judged.map(|()| true).map_err(|why| format!("{kind:?}: {why}"))
    }

    fn checkpoint(&mut self, dir: &str) -> Result<()> {
        self.shared.surroundings.disk.memory().create_dir_all(Path::new(DIR))?;
        let log_size_for_flush = self.more.pick(&[0, 20_000, u64::MAX]);
        self.shared.opened.db().create_checkpoint_with(dir, log_size_for_flush)
    }

    fn back_up(&mut self, dir: &str) -> Result<()> {
        let surroundings = &self.shared.surroundings;
        surroundings.disk.memory().create_dir_all(Path::new(DIR))?;
        let backups = format!("{dir}-backup");
        let flush_before_backup = self.more.one_in(2);
        let engine = BackupEngine::open(BackupEngineOptions::new(&backups), &surroundings.env())?;
        let options = CreateBackupOptions { flush_before_backup, ..CreateBackupOptions::default() };
        engine.create_backup_with(self.shared.opened.db(), &options)?;
        drop(engine);
        let engine = BackupEngine::open(BackupEngineOptions::new(&backups), &surroundings.calm_env())?;
        engine.restore_latest_backup(dir, dir)
    }

    fn read_copy(&mut self, dir: &str) -> Result<Contents> {
        let surroundings = &self.shared.surroundings;
        let builder = surroundings.builder(Path::new(dir), surroundings.calm_env(), &self.shared.cycle)?;
        let db = if self.more.one_in(2) { builder.open_read_only()? } else { builder.open()? };
        let families: Vec<_> =
            FAMILIES.iter().map(|name| db.column_family(name).expect("it was opened with them")).collect();
        let rows = rows_of(&db, &families, &ReadOptions::default())?;
        Ok((rows, more_families(&db)?))
    }

    /// Removes a copy, so that the disk does not grow.
    fn clean(&self, dir: &str) {
        let memory = self.shared.surroundings.disk.memory();
        for (path, _) in memory.files() {
            if path.starts_with(dir) || path.starts_with(format!("{dir}-backup")) {
                // What is gone already needs no removal.
                let _ = memory.remove_file(&path);
            }
        }
    }
}

/// The rows of the column families that are always there, and of the others.
type Contents =
    (outcrop_pingpong::history::Rows, std::collections::BTreeMap<String, crate::opened::FamilyRows>);

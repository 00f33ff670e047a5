//! `outcrop ldb` verbs that copy a database: backups and checkpoints.

use super::LdbArguments;
use crate::wal_dir;
use outcrop::{BackupEngine, BackupEngineOptions, Env, Error};
use std::path::PathBuf;

/// Flags of these verbs.
#[derive(clap::Args)]
#[command(rename_all = "snake_case")]
pub struct CopyArguments {
    /// Directory of backups, for backup, restore, list_backups, verify_backup and purge_backups.
    #[arg(long)]
    backup_dir: Option<PathBuf>,
    /// Files that backup, restore and verify_backup copy or read at the same time.
    #[arg(long, default_value_t = 1)]
    num_threads: usize,
    /// The backup for restore, the newest one that is whole if not given; for verify_backup, all if not given.
    #[arg(long)]
    backup_id: Option<u32>,
    /// List files by name.
    #[arg(long)]
    pub(super) sort_by_filename: bool,
    /// Directory that checkpoint makes.
    #[arg(long)]
    checkpoint_dir: Option<PathBuf>,
}

impl CopyArguments {
    fn backups(&self) -> Result<BackupEngineOptions, Error> {
        let missing = || Error::invalid_argument("--backup_dir: missing directory of backups");
        let dir = self.backup_dir.clone().ok_or_else(missing)?;
        let max_background_operations = self.num_threads.max(1);
        Ok(BackupEngineOptions { max_background_operations, ..BackupEngineOptions::new(dir) })
    }

    /// To look and to restore: nothing in the directory of backups is changed.
    fn open_to_read(&self) -> Result<BackupEngine, Error> {
        BackupEngine::open_read_only(self.backups()?, &Env::posix())
    }

    /// The backup to restore. Says on standard error which newer ones cannot be.
    fn chosen(&self, engine: &BackupEngine) -> Result<u32, Error> {
        if let Some(id) = self.backup_id {
            return Ok(id);
        }
        let newest = engine.latest_backup();
        for (id, error) in engine.corrupted_backups() {
            if newest.is_none_or(|newest| id > newest) {
                eprintln!("backup {id} is damaged and passed over: {error}");
            }
        }
        newest.ok_or_else(|| Error::not_found("Backup not found"))
    }
}

impl LdbArguments {
    pub(super) fn backup(&self) -> Result<(), Error> {
        let options = self.copies.backups()?;
        let (db, cf) = self.open()?;
        drop(cf);
        println!("open db OK");
        let engine = BackupEngine::open(options, &Env::posix())?;
        println!("open backup engine OK");
        engine.create_backup(&db)?;
        println!("create new backup OK");
        db.close()
    }

    pub(super) fn restore(&self) -> Result<(), Error> {
        let engine = self.copies.open_to_read()?;
        println!("open restore engine OK");
        let wal_dir = self.restored_wal_dir()?;
        engine.restore_backup(self.copies.chosen(&engine)?, self.dir()?, wal_dir)?;
        println!("restore from backup OK");
        Ok(())
    }

    /// Where the WALs of what is restored go: beside its tables, unless `--wal_dir` says otherwise. RocksDB's tool knows no other place.
    ///
    /// # Errors
    /// InvalidArgument if the database that is replaced has WALs elsewhere: its application would replay them over what was restored.
    fn restored_wal_dir(&self) -> Result<PathBuf, Error> {
        if let Some(dir) = &self.options.wal_dir {
            return Ok(dir.clone());
        }
        let (env, dir) = (Env::posix(), self.dir()?);
        let stored = self.stored_options(&env)?.db.wal_dir;
        match stored.filter(|stored| wal_dir::has_wals_elsewhere(&env, dir, stored).unwrap_or(true)) {
            Some(stored) => Err(Error::invalid_argument(format!(
                "the OPTIONS file in {} says that WALs are in {}, where there are some: say with --wal_dir where those of the restored \
                 database are to be",
                dir.display(),
                stored.display()
            ))),
            None => Ok(dir.to_path_buf()),
        }
    }

    /// One line for each backup, and for each that is damaged why.
    pub(super) fn list_backups(&self) -> Result<(), Error> {
        let engine = self.copies.open_to_read()?;
        for backup in engine.backup_infos() {
            println!(
                "{} time {} sequence {} bytes {} files {}",
                backup.id, backup.timestamp, backup.sequence_number, backup.size, backup.number_files
            );
        }
        for (id, error) in engine.corrupted_backups() {
            println!("{id} damaged: {error}");
        }
        Ok(())
    }

    /// Reads every byte of a backup; of all backups, damaged ones too, if none is named. Prints a line for each.
    pub(super) fn verify_backup(&self) -> Result<(), Error> {
        let engine = self.copies.open_to_read()?;
        let mut ids: Vec<u32> = match self.copies.backup_id {
            Some(id) => vec![id],
            None => {
                let damaged = engine.corrupted_backups().into_iter().map(|(id, _)| id);
                engine.backup_infos().iter().map(|backup| backup.id).chain(damaged).collect()
            }
        };
        ids.sort_unstable();
        if ids.is_empty() {
            return Err(Error::not_found("there is no backup"));
        }
        let mut verdict = Ok(());
        for id in ids {
            match engine.verify_backup(id) {
                Ok(()) => println!("backup {id}: OK"),
                Err(error) => {
                    println!("backup {id}: {error}");
                    verdict = verdict.and(Err(error.within(format!("backup {id}"))));
                }
            }
        }
        verdict
    }

    /// Deletes all but the newest `keep` backups.
    pub(super) fn purge_backups(&self, keep: &str) -> Result<(), Error> {
        let keep = keep
            .parse()
            .map_err(|_| Error::invalid_argument(format!("{keep} is no number of backups to keep")))?;
        // Opened to write, a directory that is not there would be made.
        self.copies.open_to_read()?;
        BackupEngine::open(self.copies.backups()?, &Env::posix())?.purge_old_backups(keep)?;
        println!("OK");
        Ok(())
    }

    pub(super) fn checkpoint(&self) -> Result<(), Error> {
        let missing = || Error::invalid_argument("--checkpoint_dir: missing directory to make");
        let target = self.copies.checkpoint_dir.as_ref().ok_or_else(missing)?;
        let (db, _) = self.open()?;
        db.create_checkpoint(target)?;
        println!("OK");
        db.close()
    }
}

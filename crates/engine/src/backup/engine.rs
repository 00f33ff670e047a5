//! [`BackupEngine`]: its methods, and what they share.

use super::directory::{Backups, create_dirs};
use super::info::BackupInfo;
use super::options::{BackupEngineOptions, CreateBackupOptions, RestoreOptions};
use super::store::Store;
use super::{collect, create, restore, verify};
use crate::db::Db;
use outcrop_base::{Error, Result};
use outcrop_env::{Env, FileLock};
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Makes, lists, verifies, restores and deletes backups of databases in one directory, whose format is RocksDB's. May be used from
/// several threads; one call runs at a time.
///
/// ```
/// use outcrop::{BackupEngine, BackupEngineOptions, Db, Env};
///
/// let env = Env::memory();
/// let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// let engine = BackupEngine::open(BackupEngineOptions::new("/backups"), &env)?;
/// let first = engine.create_backup(&db)?;
/// db.put("apple", "eaten")?;
/// engine.create_backup(&db)?;
/// db.close()?;
///
/// engine.verify_backup(first)?;
/// engine.restore_backup(first, "/db", "/db")?;
/// let db = Db::builder("/db").env(env).open()?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
///
/// engine.purge_old_backups(1)?;
/// assert_eq!(engine.backup_infos().len(), 1);
/// # outcrop::Result::Ok(())
/// ```
pub struct BackupEngine {
    store: Store,
    read_only: bool,
    backups: Mutex<Backups>,
}

impl BackupEngine {
    /// Opens the directory, and creates it if it does not exist. `env` is that of the databases that are backed up and restored to;
    /// the directory is there too unless the options have another. Backups that are damaged are set aside:
    /// [`BackupEngine::corrupted_backups`].
    ///
    /// # Errors
    /// InvalidArgument for a `schema_version` of 0, NotSupported for one above 2; IoError.
    pub fn open(options: BackupEngineOptions, env: &Env) -> Result<BackupEngine> {
        let engine = BackupEngine::new(options, env, false)?;
        create_dirs(&engine.store.layout, engine.store.shared_dir(), engine.store.options.sync)?;
        if engine.store.options.destroy_old_data {
            let (mut backups, _lock) = engine.exclusive()?;
            collect::destroy_all(&engine.store, &mut backups)?;
        } else {
            *engine.backups.lock() = Backups::load(&engine.store.layout, usize::MAX)?;
        }
        for (id, error) in engine.corrupted_backups() {
            engine.store.options.log(&Err::<(), _>(error), |_| format!("loading backup {id}"));
        }
        Ok(engine)
    }

    /// Opens the directory for looking, verifying and restoring. Nothing in it is changed.
    ///
    /// # Errors
    /// InvalidArgument with `destroy_old_data`; IoError, NotFound if there are no backups.
    pub fn open_read_only(options: BackupEngineOptions, env: &Env) -> Result<BackupEngine> {
        if options.destroy_old_data {
            return Err(Error::invalid_argument("Can't destroy old data with ReadOnly BackupEngine"));
        }
        let engine = BackupEngine::new(options, env, true)?;
        let meta = engine.store.layout.path("meta");
        if !engine.store.layout.fs.exists(&meta)? {
            return Err(Error::not_found(format!("{} is missing", meta.display())));
        }
        *engine.backups.lock() =
            Backups::load(&engine.store.layout, engine.store.options.max_valid_backups_to_open)?;
        Ok(engine)
    }

    fn new(options: BackupEngineOptions, db_env: &Env, read_only: bool) -> Result<BackupEngine> {
        Ok(BackupEngine { store: Store::new(options, db_env)?, read_only, backups: Mutex::default() })
    }

    /// [`BackupEngine::create_backup_with`], under default options.
    ///
    /// # Errors
    /// As there.
    pub fn create_backup(&self, db: &Db) -> Result<u32> {
        self.create_backup_with(db, &CreateBackupOptions::default())
    }

    /// Makes a backup of `db` as it is now and gives its id, one above the highest there is. Writers wait only until it is known which
    /// files belong to it, and for a flush where one is needed; tables that are written or removed meanwhile are no part of it and stay
    /// until it is done. It is complete, and with [`BackupEngineOptions::sync`] durable, on return.
    ///
    /// A table that an earlier backup has is not copied again; that it is intact is checked as
    /// [`BackupEngineOptions::shared_file_check`] says. One that is damaged is replaced by the database's, which mends the
    /// earlier backups too.
    ///
    /// # Errors
    /// Incomplete after [`BackupEngine::stop_backup`]; InvalidArgument for app metadata above 1 MiB, or an exclusion with schema 1;
    /// Corruption for a damaged file of the database; Aborted for a callback that panics; NotSupported for an engine or a database that
    /// is only read; IoError, also while another engine changes the directory; NoSpace. Files written so far are
    /// removed then.
    pub fn create_backup_with(&self, db: &Db, options: &CreateBackupOptions) -> Result<u32> {
        let (mut backups, _lock) = self.exclusive()?;
        let made = create::create(&self.store, &mut backups, db, options);
        let of = db.path().display();
        self.store.options.log(&made, |id| match id {
            Some(id) => format!("backup {id} of {of} is made"),
            None => format!("a backup of {of}"),
        });
        made
    }

    /// Ends the backup that is being made, and every later one of this engine, with Incomplete. Does not wait for it.
    pub fn stop_backup(&self) {
        // Relaxed: looked at again and again, and publishes nothing.
        self.store.stop.store(true, Ordering::Relaxed);
    }

    /// All backups that are whole, as far as the sizes of their files tell, oldest first.
    pub fn backup_infos(&self) -> Vec<BackupInfo> {
        let backups = self.backups.lock();
        let info = |(id, backup): (&u32, &_)| BackupInfo::of(*id, backup, self.store.layout.meta(*id));
        backups.valid.iter().map(info).collect()
    }

    /// The backup `id`.
    ///
    /// # Errors
    /// NotFound if there is none; what is wrong with it.
    pub fn backup_info(&self, id: u32) -> Result<BackupInfo> {
        let backups = self.backups.lock();
        Ok(BackupInfo::of(id, backups.get(id)?, self.store.layout.meta(id)))
    }

    /// The newest backup that is whole.
    pub fn latest_backup(&self) -> Option<u32> {
        self.backups.lock().newest()
    }

    /// Backups that cannot be restored, with the reason. They and what they have stay until they are deleted one by one.
    pub fn corrupted_backups(&self) -> Vec<(u32, Error)> {
        let backups = self.backups.lock();
        backups.corrupt.iter().map(|(id, backup)| (*id, backup.error.clone())).collect()
    }

    /// Reads every file of a backup and compares its checksum, within `backup_rate_limit`. All files are looked at.
    ///
    /// # Errors
    /// Corruption or NotFound naming the first file that is damaged or missing; NotFound without a text if there is no such
    /// backup; what is wrong with one that was set aside; IoError.
    pub fn verify_backup(&self, id: u32) -> Result<()> {
        let verified = verify::verify(&self.store, &*self.refreshed(id)?, id, verify::How::Checksums);
        self.store.options.log(&verified, |_| format!("verification of backup {id}"));
        verified
    }

    /// As [`BackupEngine::verify_backup`], but only that every file is there and has its size: damage within a file is not found.
    ///
    /// # Errors
    /// As there.
    pub fn verify_backup_sizes(&self, id: u32) -> Result<()> {
        verify::verify(&self.store, &*self.refreshed(id)?, id, verify::How::Sizes)
    }

    /// Deletes a backup, damaged or not, and the files that no other one needs.
    ///
    /// # Errors
    /// NotFound if there is none; IoError, in which case it is there still or what is left of it goes with
    /// [`BackupEngine::garbage_collect`].
    pub fn delete_backup(&self, id: u32) -> Result<()> {
        let (mut backups, _lock) = self.exclusive()?;
        let deleted = collect::delete(&self.store, &mut backups, id);
        self.store.options.log(&deleted, |_| format!("deletion of backup {id}"));
        deleted
    }

    /// Deletes all but the newest `keep` whole backups. Damaged ones are not counted and stay.
    ///
    /// # Errors
    /// As [`BackupEngine::delete_backup`]; the others are still deleted.
    pub fn purge_old_backups(&self, keep: usize) -> Result<()> {
        let (mut backups, _lock) = self.exclusive()?;
        let purged = collect::purge(&self.store, &mut backups, keep);
        self.store.options.log(&purged, |_| format!("deletion of all backups but the newest {keep}"));
        purged
    }

    /// Removes what no backup needs: what is left of backups that were not completed or not wholly deleted. Files that
    /// cannot be of a backup stay.
    ///
    /// # Errors
    /// IoError of what could not be removed; the rest was.
    pub fn garbage_collect(&self) -> Result<()> {
        let (backups, _lock) = self.exclusive()?;
        collect::collect_garbage(&self.store, &backups)
    }

    /// [`BackupEngine::restore_backup_with`], under default options and without other engines.
    ///
    /// # Errors
    /// As there.
    pub fn restore_backup(&self, id: u32, db_dir: impl AsRef<Path>, wal_dir: impl AsRef<Path>) -> Result<()> {
        self.restore_backup_with(id, db_dir, wal_dir, &RestoreOptions::default(), &[])
    }

    /// [`BackupEngine::restore_backup`] of the newest whole backup.
    ///
    /// # Errors
    /// As there.
    pub fn restore_latest_backup(&self, db_dir: impl AsRef<Path>, wal_dir: impl AsRef<Path>) -> Result<()> {
        let Some(id) = self.latest_backup() else { return Err(Error::not_found("Backup not found")) };
        self.restore_backup(id, db_dir, wal_dir)
    }

    /// Makes the database in `db_dir`, with its WALs in `wal_dir`, what the backup `id` is. The directories are created; what a
    /// database was in them before is removed, other files stay. Files that were left out of the backup come from `others`, which
    /// must have them.
    ///
    /// First every file of the backup is looked for and its size compared: a backup that is not whole leaves the old database as
    /// it is. Checksums are compared while files are copied; CURRENT comes last, so that what is not complete cannot be opened.
    ///
    /// # Errors
    /// NotFound if there is no such backup, or a file of it is missing; Corruption naming a damaged file; InvalidArgument if
    /// no engine has a file that was left out; IoError, also if the database is open.
    pub fn restore_backup_with(
        &self,
        id: u32,
        db_dir: impl AsRef<Path>,
        wal_dir: impl AsRef<Path>,
        options: &RestoreOptions,
        others: &[&BackupEngine],
    ) -> Result<()> {
        // One engine's after the other: two at once would be in each other's way.
        let engines = std::iter::once(self).chain(others.iter().copied());
        let sources: Vec<_> = engines.map(BackupEngine::as_alternate).collect();
        let backups = self.refreshed(id)?;
        let target = restore::Target { db_dir: db_dir.as_ref(), wal_dir: wal_dir.as_ref() };
        let restored = restore::restore(&self.store, backups.get(id)?, target, options, &sources);
        self.store
            .options
            .log(&restored, |_| format!("restoring backup {id} to {}", db_dir.as_ref().display()));
        restored
    }

    /// The files of this engine that another engine's restore can take.
    fn as_alternate(&self) -> restore::Alternate {
        restore::Alternate::new(self.store.layout.clone(), &self.backups.lock())
    }

    /// The backups, of which `id` is as it is now.
    fn refreshed(&self, id: u32) -> Result<MutexGuard<'_, Backups>> {
        let mut backups = self.backups.lock();
        backups.refresh(&self.store.layout, id)?;
        Ok(backups)
    }

    /// The backups as they are now, with other engines kept from changing them.
    fn exclusive(&self) -> Result<(MutexGuard<'_, Backups>, Box<dyn FileLock>)> {
        if self.read_only {
            return Err(Error::not_supported("the engine was opened read-only"));
        }
        // HOLDS backups across IO: one call after the other is what the engine promises.
        let mut backups = self.backups.lock();
        let lock = self.store.layout.fs.lock(&self.store.layout.path("LOCK"))?;
        // Another engine may have been here, and ids do not tell: one that was opened after the newest backup was deleted gives its id again.
        let latest = backups.latest;
        *backups = Backups::load(&self.store.layout, usize::MAX)?;
        backups.latest = backups.latest.max(latest);
        Ok((backups, lock))
    }
}

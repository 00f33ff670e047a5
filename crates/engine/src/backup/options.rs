//! How backups are made, kept and restored.

use crate::info_log::{LogLevel, Logger};
use outcrop_base::Result;
use outcrop_env::{Env, RateLimiter};
use std::path::PathBuf;
use std::sync::Arc;

/// How tables and blob files that backups share are named.
///
/// ```
/// use outcrop::{BackupEngineOptions, SharedFileNaming};
///
/// assert_eq!(BackupEngineOptions::new("/backups").naming, SharedFileNaming::SessionIdAndSize);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedFileNaming {
    /// `NUMBER_CRC_SIZE.sst`: each file of the database is read to know its name.
    Checksum,
    /// `NUMBER_sSESSION.sst`. Files without a session (blob files, tables of old versions) as with `Checksum`.
    SessionId,
    /// `NUMBER_sSESSION_SIZE.sst`, else as `SessionId`. The default.
    #[default]
    SessionIdAndSize,
}

/// How files that an earlier backup has are checked before a new one relies on them.
///
/// ```
/// use outcrop::{BackupEngineOptions, SharedFileCheck};
///
/// // Of backups that are verified by other means.
/// let options = BackupEngineOptions { shared_file_check: SharedFileCheck::Size, ..BackupEngineOptions::new("/backups") };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedFileCheck {
    /// They are read and their checksums compared: a backup never begins on a damaged file. Costs as much reading as the backup
    /// has bytes, within `backup_rate_limit`. The default.
    #[default]
    Checksum,
    /// Their sizes are compared; RocksDB does not even do that.
    Size,
}

/// Settings of a [`crate::BackupEngine`].
///
/// ```
/// use outcrop::BackupEngineOptions;
///
/// let options = BackupEngineOptions { backup_rate_limit: 64 << 20, ..BackupEngineOptions::new("/backups") };
/// assert!(options.sync && options.share_table_files);
/// ```
#[derive(Clone)]
pub struct BackupEngineOptions {
    /// Where backups are. Created if it does not exist.
    pub backup_dir: PathBuf,
    /// The files and the clock that backups are kept with; `None`: those of the database. Default `None`.
    pub backup_env: Option<Env>,
    /// Tables and blob files are kept once for all backups that have them. Default true; otherwise each backup has its own.
    pub share_table_files: bool,
    /// Shared files are named by what they are. Default true. Otherwise by their number alone, which is of use with old versions only:
    /// a database that was restored from a backup gives the same numbers to other files, and then no backup of it can be made
    /// there (Corruption).
    pub share_files_with_checksum: bool,
    /// How they are named then. Default [`SharedFileNaming::SessionIdAndSize`].
    pub naming: SharedFileNaming,
    /// How files that are there already are checked. Default [`SharedFileCheck::Checksum`].
    pub shared_file_check: SharedFileCheck,
    /// A backup, and what was restored, survives a loss of power once it is done. Default true.
    pub sync: bool,
    /// Delete the backups there are when the engine is opened. Default false.
    pub destroy_old_data: bool,
    /// WALs are part of backups. Default true. Without them a backup has what was in tables: use it with
    /// [`CreateBackupOptions::flush_before_backup`].
    pub backup_log_files: bool,
    /// Bytes per second that making and verifying backups may write or, where they only read, read; 0: no limit. Default 0.
    pub backup_rate_limit: u64,
    /// The same for restoring.
    pub restore_rate_limit: u64,
    /// In place of `backup_rate_limit`, one that others may share. Default `None`.
    pub backup_rate_limiter: Option<Arc<RateLimiter>>,
    /// In place of `restore_rate_limit`. Default `None`.
    pub restore_rate_limiter: Option<Arc<RateLimiter>>,
    /// Files copied or read at the same time, each by a thread of its own. Default 1; 0 is 1.
    pub max_background_operations: usize,
    /// The progress callback is called each time this many bytes were copied; 0: never. Default 4 MiB.
    pub callback_trigger_interval_size: u64,
    /// Of an engine that only reads: how many of the newest backups that are whole it opens. Default: all.
    pub max_valid_backups_to_open: usize,
    /// Bytes copied at a time; 0: as many as suit. Default 0.
    pub io_buffer_size: usize,
    /// How meta files are written: 1, which every version of RocksDB reads, or 2, which excluded files need. Default 1.
    pub schema_version: u32,
    /// Takes a line for each backup that is made, verified, restored or deleted, or why it was not, and for each that is found damaged as the
    /// engine is opened. Default `None`.
    pub info_log: Option<Arc<dyn Logger>>,
}

impl BackupEngineOptions {
    /// The defaults, for backups in `backup_dir`.
    pub fn new(backup_dir: impl Into<PathBuf>) -> BackupEngineOptions {
        BackupEngineOptions {
            backup_dir: backup_dir.into(),
            backup_env: None,
            share_table_files: true,
            share_files_with_checksum: true,
            naming: SharedFileNaming::default(),
            shared_file_check: SharedFileCheck::default(),
            sync: true,
            destroy_old_data: false,
            backup_log_files: true,
            backup_rate_limit: 0,
            restore_rate_limit: 0,
            backup_rate_limiter: None,
            restore_rate_limiter: None,
            max_background_operations: 1,
            callback_trigger_interval_size: 4 << 20,
            max_valid_backups_to_open: usize::MAX,
            io_buffer_size: 0,
            schema_version: 1,
            info_log: None,
        }
    }

    /// Hands a line to [`BackupEngineOptions::info_log`] if its level asks for it: what was done, or that it failed.
    pub(super) fn log<T>(&self, done: &Result<T>, what: impl FnOnce(Option<&T>) -> String) {
        let Some(logger) = &self.info_log else { return };
        let level = if done.is_ok() { LogLevel::Info } else { LogLevel::Error };
        if level >= logger.level() {
            let text = what(done.as_ref().ok());
            match done {
                Ok(_) => logger.log(level, &text),
                Err(error) => logger.log(level, &format!("{text} failed: {error}")),
            }
        }
    }
}

/// Is called while files are copied, from one thread at a time.
///
/// ```
/// use outcrop::{CreateBackupOptions, Progress};
/// use std::sync::Arc;
///
/// let told: Progress = Arc::new(|| eprint!("."));
/// let options = CreateBackupOptions { progress: Some(told), ..CreateBackupOptions::default() };
/// # (options.progress.unwrap())();
/// ```
pub type Progress = Arc<dyn Fn() + Send + Sync>;

/// Is asked of shared files that would have to be copied, by their names below the directory of backups: true leaves one out.
///
/// ```
/// use outcrop::{CreateBackupOptions, ExcludeFile};
/// use std::sync::Arc;
///
/// let blobs: ExcludeFile = Arc::new(|name| name.ends_with(".blob"));
/// let options = CreateBackupOptions { exclude_file: Some(blobs), ..CreateBackupOptions::default() };
/// # assert!((options.exclude_file.unwrap())("shared/1.blob"));
/// ```
pub type ExcludeFile = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How one backup is made.
///
/// ```
/// use outcrop::{BackupEngine, BackupEngineOptions, CreateBackupOptions, Db, Env};
///
/// let env = Env::memory();
/// let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// let engine = BackupEngine::open(BackupEngineOptions::new("/backups"), &env)?;
/// let options = CreateBackupOptions {
///     flush_before_backup: true,
///     app_metadata: b"before the upgrade".to_vec(),
///     ..CreateBackupOptions::default()
/// };
/// let id = engine.create_backup_with(&db, &options)?;
/// assert_eq!(engine.backup_info(id)?.app_metadata, b"before the upgrade");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Default)]
pub struct CreateBackupOptions {
    /// Flush memtables first rather than copy the WALs. Default false. Data that is in no WAL is flushed in any
    /// case.
    pub flush_before_backup: bool,
    /// Kept with the backup; 1 MiB at most. Default empty.
    pub app_metadata: Vec<u8>,
    /// Called as bytes are copied; must not use the engine, but for [`crate::BackupEngine::stop_backup`]. If it panics, the backup
    /// fails with Aborted. Default `None`.
    pub progress: Option<Progress>,
    /// Leaves files out that the application has elsewhere. Needs `schema_version` 2. Default `None`.
    pub exclude_file: Option<ExcludeFile>,
}

/// How a restore treats the tables that are already in its target directory.
///
/// ```
/// use outcrop::{RestoreMode, RestoreOptions};
///
/// assert_eq!(RestoreOptions::default().mode, RestoreMode::PurgeAllFiles);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestoreMode {
    /// Tables with the number, session and size that the backup names are kept unread. For a database that is known to be whole.
    KeepLatestDbSessionIdFiles,
    /// Tables and blob files that have the checksum that the backup names are kept.
    VerifyChecksum,
    /// All are removed. The default.
    #[default]
    PurgeAllFiles,
}

/// How a backup is restored.
///
/// ```
/// use outcrop::{RestoreMode, RestoreOptions};
///
/// // Most tables are there still: they are read, not copied.
/// let options = RestoreOptions { mode: RestoreMode::VerifyChecksum, ..RestoreOptions::default() };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// WALs of the database stay, and archived ones come back from `archive`: for backups that were made without WALs.
    /// Default false.
    pub keep_log_files: bool,
    /// Which tables stay. Default: none.
    pub mode: RestoreMode,
}

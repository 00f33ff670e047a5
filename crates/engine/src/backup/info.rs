//! A backup as an engine describes it.

use super::directory::Backup;
use std::path::PathBuf;

/// A file of a backup.
///
/// ```
/// # use outcrop::{BackupEngine, BackupEngineOptions, Db, Env};
/// # let env = Env::memory();
/// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// # let engine = BackupEngine::open(BackupEngineOptions::new("/backups"), &env)?;
/// let id = engine.create_backup(&db)?;
/// let info = engine.backup_info(id)?;
/// assert!(info.files.iter().any(|file| file.name == "private/1/CURRENT" && file.database_name == "CURRENT"));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// Its name below the directory of backups.
    pub name: String,
    /// Its name in the database.
    pub database_name: String,
    /// Its size in bytes.
    pub size: u64,
    /// CRC-32C of its contents, if the backup has it.
    pub crc: Option<u32>,
}

/// A backup: [`crate::BackupEngine::backup_infos`].
///
/// ```
/// # use outcrop::{BackupEngine, BackupEngineOptions, Db, Env};
/// # let env = Env::memory();
/// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// # let engine = BackupEngine::open(BackupEngineOptions::new("/backups"), &env)?;
/// # engine.create_backup(&db)?;
/// for backup in engine.backup_infos() {
///     println!("{}: {} bytes in {} files", backup.id, backup.size, backup.number_files);
/// }
/// # assert_eq!(engine.backup_infos().len(), 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// Its number, from 1.
    pub id: u32,
    /// When it was made, seconds since the epoch.
    pub timestamp: i64,
    /// Bytes of its files, shared ones included.
    pub size: u64,
    /// How many files it has, shared ones included.
    pub number_files: u32,
    /// Metadata that the application gave with it.
    pub app_metadata: Vec<u8>,
    /// Sequence number of the last write in it.
    pub sequence_number: u64,
    /// Its files.
    pub files: Vec<BackupFile>,
    /// Files that were left out of it.
    pub excluded_files: Vec<String>,
    /// Where its meta file is.
    pub meta_path: PathBuf,
}

impl BackupInfo {
    pub(super) fn of(id: u32, backup: &Backup, meta_path: PathBuf) -> BackupInfo {
        let files = backup.files.iter().map(|file| BackupFile {
            name: file.meta.name.clone(),
            database_name: file.meta.database_name(),
            size: file.size,
            crc: file.meta.crc,
        });
        BackupInfo {
            id,
            timestamp: backup.timestamp,
            size: backup.files.iter().map(|file| file.size).sum(),
            number_files: backup.files.len() as u32,
            app_metadata: backup.app_metadata.clone(),
            sequence_number: backup.sequence_number,
            files: files.collect(),
            excluded_files: backup.excluded.clone(),
            meta_path,
        }
    }
}

//! The list of WAL files, those of the archive included.
//!
//! Source: RocksDB `db/wal_manager.cc`, `GetSortedWalFiles`.

use super::updates::open_wal;
use crate::batch::codec::{self, HEADER_LEN};
use crate::core::Core;
use crate::wal_archive;
use outcrop_base::{Result, SeqNum};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_record::ReadOutcome;
use std::path::PathBuf;

/// One WAL file: [`crate::Db::wal_files`].
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// let files = db.wal_files()?;
/// assert_eq!(files[0].number, db.current_wal_file()?.number);
/// assert!(!files[0].is_archived && files[0].size_bytes > 0);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalFile {
    /// Its number.
    pub number: u64,
    /// Where it is.
    pub path: PathBuf,
    /// It is in the archive: not needed, and kept for readers of updates.
    pub is_archived: bool,
    /// The sequence number of its first record; 0 where it was not asked for.
    pub start_sequence: SeqNum,
    /// Bytes in it.
    pub size_bytes: u64,
}

/// See [`crate::Db::wal_files`].
pub fn list(core: &Core) -> Result<Vec<WalFile>> {
    // First those in use: one that is archived meanwhile is found in the archive.
    let live = live(core);
    let numbers: Vec<FileNumber> = live.iter().map(|file| FileNumber(file.number)).collect();
    let archived = wal_archive::numbers(&core.ctx, &numbers)?;
    let last_archived = archived.last().copied().unwrap_or_default();
    let dirs = [core.ctx.wal_dir.clone(), wal_archive::dir(&core.ctx.wal_dir)];
    let mut files = Vec::new();
    for number in archived {
        let mut found = None;
        for path in dirs.iter().map(|dir| file_name::wal(dir, number)) {
            match core.ctx.env.fs.file_size(&path) {
                // It was moved, or was too old.
                Err(error) if error.is_missing_file() => continue,
                size => found = Some((path, size?)),
            }
        }
        let Some((path, size_bytes)) = found else { continue };
        files.extend(with_start(
            core,
            WalFile { number: number.0, path, is_archived: true, start_sequence: SeqNum::ZERO, size_bytes },
        )?);
    }
    for file in live.into_iter().filter(|file| file.number > last_archived.0) {
        files.extend(with_start(core, file)?);
    }
    Ok(files)
}

/// See [`crate::Db::current_wal_file`].
pub fn current(core: &Core) -> WalFile {
    live(core).pop().expect("a WAL is being written")
}

/// Those in the WAL directory, ascending.
fn live(core: &Core) -> Vec<WalFile> {
    let written = {
        let writing = core.commit.exclude_writers();
        (writing.wal.number(), writing.wal.len())
    };
    let mut wals: Vec<(FileNumber, u64)> = {
        let state = core.versions.state.lock();
        state
            .live_wals
            .iter()
            .map(|wal| (wal.number, wal.size_bytes))
            .filter(|wal| wal.0 < written.0)
            .collect()
    };
    wals.push(written);
    let file = |(number, size_bytes): (FileNumber, u64)| WalFile {
        number: number.0,
        path: file_name::wal(&core.ctx.wal_dir, number),
        is_archived: false,
        start_sequence: SeqNum::ZERO,
        size_bytes,
    };
    wals.into_iter().map(file).collect()
}

/// The file with the number of its first record; `None` if it has none, or is gone.
fn with_start(core: &Core, file: WalFile) -> Result<Option<WalFile>> {
    let mut reader = match open_wal(&core.ctx, FileNumber(file.number)) {
        Err(error) if error.is_missing_file() => return Ok(None),
        opened => opened?,
    };
    Ok(match reader.next()? {
        ReadOutcome::Record(bytes, _) if bytes.len() >= HEADER_LEN => {
            Some(WalFile { start_sequence: codec::sequence_of(bytes), ..file })
        }
        _ => None,
    })
}

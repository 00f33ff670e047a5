//! The MANIFEST's facts about blob files, and which of them a version still needs.
//!
//! Each table names the oldest blob file it refers to; compactions report how much of a file they left unreferenced
//! (its garbage). A file is needed while it is not all garbage and no older than the oldest that any table names.
//! Source: RocksDB `db/version_builder.cc`, `SaveBlobFilesTo`.

use crate::{FileNumber, file_name};
use outcrop_base::{Error, Result};
use outcrop_table::blob::BlobReader;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// One blob file, shared by all versions that hold it.
#[derive(Default)]
pub struct BlobFile {
    /// Its number.
    pub number: FileNumber,
    /// Blobs in it.
    pub total_count: u64,
    /// Bytes of their records.
    pub total_bytes: u64,
    /// Its directory; `None`: the database's. Not written down.
    pub dir: Option<Arc<Path>>,
    /// Name and value of the whole file's checksum, as read; empty if there is none.
    pub checksum: (Vec<u8>, Vec<u8>),
    /// The open file.
    pub reader: OnceLock<Arc<BlobReader>>,
    /// Its part of block cache keys.
    pub cache_file_id: OnceLock<u64>,
    /// Dropped when nobody holds the file any more, after everything else of it: an object that tells so.
    pub at_end: OnceLock<Box<dyn Send + Sync>>,
}

impl BlobFile {
    /// The file, of a database in `db_dir`.
    pub fn path(&self, db_dir: &Path) -> PathBuf {
        file_name::blob(self.dir.as_deref().unwrap_or(db_dir), self.number)
    }

    /// True if the MANIFEST says the same of both.
    pub(crate) fn is_same(&self, other: &BlobFile) -> bool {
        let facts = |file: &BlobFile| (file.number, file.total_count, file.total_bytes);
        facts(self) == facts(other) && self.dir == other.dir && self.checksum == other.checksum
    }

    /// The same file in another directory, not open yet.
    pub(crate) fn located(&self, dir: &Arc<Path>) -> BlobFile {
        BlobFile {
            number: self.number,
            total_count: self.total_count,
            total_bytes: self.total_bytes,
            checksum: self.checksum.clone(),
            dir: Some(dir.clone()),
            ..BlobFile::default()
        }
    }
}

impl fmt::Debug for BlobFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob {} ({} blobs, {} bytes)", self.number.0, self.total_count, self.total_bytes)
    }
}

/// Blobs of a file that nothing refers to any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// How many.
    pub count: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// A blob file as one version sees it.
#[derive(Clone, Debug)]
pub struct BlobFileState {
    /// The file.
    pub file: Arc<BlobFile>,
    /// The part of it that is garbage.
    pub garbage: Garbage,
}

/// The blob files of a version, by number.
pub type BlobFiles = BTreeMap<FileNumber, BlobFileState>;

/// Adds a file.
pub(crate) fn add(files: &mut BlobFiles, file: &Arc<BlobFile>) -> Result<()> {
    let state = BlobFileState { file: file.clone(), garbage: Garbage::default() };
    match files.insert(file.number, state) {
        None => Ok(()),
        Some(_) => Err(Error::corruption(format!("blob file {} is added twice", file.number.0))),
    }
}

/// Adds to the garbage of a file.
pub(crate) fn add_garbage(files: &mut BlobFiles, number: FileNumber, more: Garbage) -> Result<()> {
    let broken = |what: &str| Error::corruption(format!("garbage of blob file {}: {what}", number.0));
    let state = files.get_mut(&number).ok_or_else(|| broken("there is no such file"))?;
    let garbage = Garbage {
        count: state.garbage.count.saturating_add(more.count),
        bytes: state.garbage.bytes.saturating_add(more.bytes),
    };
    if garbage.count > state.file.total_count || garbage.bytes > state.file.total_bytes {
        return Err(broken("it is more than the file holds"));
    }
    state.garbage = garbage;
    Ok(())
}

/// Leaves the files that are needed, given the oldest that any table names.
pub(crate) fn retain_needed(files: &mut BlobFiles, oldest_named: Option<FileNumber>) {
    match oldest_named {
        None => files.clear(),
        Some(oldest) => {
            files.retain(|number, state| *number >= oldest && state.garbage.count < state.file.total_count)
        }
    }
}

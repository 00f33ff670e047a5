//! The WALs a MANIFEST keeps track of (`track_and_verify_wals_in_manifest`).
//!
//! Invariant: a WAL that is tracked with a synced size is there, and at least that long, until the MANIFEST says that it
//! is not needed: a thread that removes a WAL file writes that down first.
//! Source: RocksDB `db/wal_edit.cc`.

use crate::edit::WalAddition;
use crate::{FileNumber, VersionEdit, file_name};
use outcrop_base::{Error, Result};
use outcrop_env::FileSystem;
use std::collections::BTreeMap;
use std::path::Path;

/// The WALs that are tracked, with the bytes of each that are durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalSet {
    synced: BTreeMap<FileNumber, Option<u64>>,
    /// WALs below are not needed, whatever comes later.
    first_kept: FileNumber,
}

impl WalSet {
    /// Takes over what `edit` says.
    ///
    /// # Errors
    /// Corruption if a WAL is created twice.
    pub fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        edit.wal_additions.iter().try_for_each(|wal| self.add(wal))?;
        if let Some(first) = edit.wal_deletion {
            self.delete_before(first);
        }
        Ok(())
    }

    fn add(&mut self, wal: &WalAddition) -> Result<()> {
        if wal.number < self.first_kept {
            return Ok(());
        }
        match self.synced.get_mut(&wal.number) {
            None => {
                self.synced.insert(wal.number, wal.synced_bytes);
            }
            Some(_) if wal.synced_bytes.is_none() => {
                return Err(Error::corruption(format!("WAL {:06}.log is created twice", wal.number)));
            }
            Some(known) => *known = (*known).max(wal.synced_bytes),
        }
        Ok(())
    }

    /// WALs below `first` are tracked no more.
    pub fn delete_before(&mut self, first: FileNumber) {
        self.first_kept = self.first_kept.max(first);
        self.synced = self.synced.split_off(&self.first_kept);
    }

    /// False of a WAL that is not needed, whatever comes later.
    pub fn keeps(&self, number: FileNumber) -> bool {
        number >= self.first_kept
    }

    /// True if a WAL below `first` is tracked.
    pub fn tracks_before(&self, first: FileNumber) -> bool {
        self.synced.range(..first).next().is_some()
    }

    /// The edit that says all of this at the start of a MANIFEST; `None` if there is nothing to say.
    pub fn snapshot(&self) -> Option<VersionEdit> {
        let additions = self.synced.iter();
        let wal_additions: Vec<WalAddition> =
            additions.map(|(&number, &synced_bytes)| WalAddition { number, synced_bytes }).collect();
        (!wal_additions.is_empty()).then(|| VersionEdit { wal_additions, ..VersionEdit::default() })
    }

    /// Checks that the tracked WALs are in `wal_dir` and as long as they should be.
    ///
    /// # Errors
    /// Corruption naming the file that is missing or too short; IO errors.
    pub fn verify(&self, fs: &dyn FileSystem, wal_dir: &Path) -> Result<()> {
        for (&number, synced) in &self.synced {
            let Some(synced) = *synced else { continue };
            let path = file_name::wal(wal_dir, number);
            let actual = match fs.file_size(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.is_missing_file() => {
                    return Err(Error::corruption(format!(
                        "{}: this WAL is missing; by the MANIFEST {synced} bytes of it were synced",
                        path.display()
                    )));
                }
                Err(error) => return Err(error),
            };
            if actual < synced {
                return Err(Error::corruption(format!(
                    "{}: this WAL has {actual} bytes; by the MANIFEST {synced} bytes of it were synced",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

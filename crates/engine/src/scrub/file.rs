//! A file of the database that can be verified: a table or a blob file.

use super::plan::Candidate;
use crate::column_family::ColumnFamily;
use outcrop_manifest::{BlobFile, FileNumber, TableFile};
use std::sync::{Arc, Weak};

/// A file of the newest versions.
pub enum File {
    /// A table, with its column family and its level.
    Table(Arc<ColumnFamily>, usize, Arc<TableFile>),
    /// A blob file, with its column family.
    Blobs(Arc<ColumnFamily>, Arc<BlobFile>),
}

/// The same, which may be gone: to know it keeps no file from being removed.
pub enum KnownFile {
    /// A table, with its column family and its level.
    Table(Weak<ColumnFamily>, usize, Weak<TableFile>),
    /// A blob file, with its column family.
    Blobs(Weak<ColumnFamily>, Weak<BlobFile>),
}

impl File {
    /// Its number.
    pub fn number(&self) -> FileNumber {
        match self {
            File::Table(_, _, file) => file.number,
            File::Blobs(_, file) => file.number,
        }
    }

    /// Its part in the order of turns.
    pub fn candidate(&self) -> Candidate {
        match self {
            File::Table(_, _, file) => Candidate { written: file.creation_time, number: file.number },
            File::Blobs(_, file) => Candidate { written: 0, number: file.number },
        }
    }

    /// The same without a hold on it.
    pub fn known(&self) -> KnownFile {
        match self {
            File::Table(cf, level, file) => {
                KnownFile::Table(Arc::downgrade(cf), *level, Arc::downgrade(file))
            }
            File::Blobs(cf, file) => KnownFile::Blobs(Arc::downgrade(cf), Arc::downgrade(file)),
        }
    }
}

impl KnownFile {
    /// The file, unless no version has it any more.
    pub fn get(&self) -> Option<File> {
        Some(match self {
            KnownFile::Table(cf, level, file) => File::Table(cf.upgrade()?, *level, file.upgrade()?),
            KnownFile::Blobs(cf, file) => File::Blobs(cf.upgrade()?, file.upgrade()?),
        })
    }
}

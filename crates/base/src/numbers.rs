//! Numbers with names: each is a word, and no other word passes for it. Files and the C API, where they are plain words, are
//! where they are made and taken apart.

use std::fmt;

/// The number of a file; tables, blob files, WALs, MANIFESTs and OPTIONS files of a database draw from one counter.
///
/// Larger is newer. [`FileNumber::NONE`] is the number of no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct FileNumber(pub u64);

impl FileNumber {
    /// Before every file.
    pub const NONE: FileNumber = FileNumber(0);
    /// After every file.
    pub const MAX: FileNumber = FileNumber(u64::MAX);

    /// The number after it.
    #[must_use]
    pub fn next(self) -> FileNumber {
        FileNumber(self.0 + 1)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a column family: a database gives each its own, and none twice.
///
/// [`CfId::DEFAULT`] is that of the column family that every database has. Files of RocksDB's format hold it as a varint or a
/// fixed 32-bit word.
///
/// ```
/// # use outcrop_base::CfId;
/// assert!(CfId::DEFAULT < CfId(1));
/// assert_eq!(CfId(7).to_string(), "7");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CfId(pub u32);

impl CfId {
    /// The column family `default`.
    pub const DEFAULT: CfId = CfId(0);
    /// That of tables whose writer does not know where they will be ingested.
    ///
    /// Source: RocksDB `TablePropertiesCollectorFactory::Context::kUnknownColumnFamily`.
    pub const UNKNOWN: CfId = CfId(0x7FFF_FFFF);
}

impl fmt::Display for CfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

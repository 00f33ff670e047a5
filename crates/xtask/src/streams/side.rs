//! The two libraries that a program is run on.

use std::path::Path;

/// Which library a JVM runs on.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    /// Ours.
    Outcrop,
    /// The one that the jar carries.
    RocksDb,
}

impl Side {
    /// Its name in output and in names of directories.
    pub fn name(self) -> &'static str {
        match self {
            Side::Outcrop => "outcrop",
            Side::RocksDb => "rocksdb",
        }
    }

    /// The directory of its library, which is `ours`; none for the one that the jar carries.
    pub fn natives(self, ours: &Path) -> Option<&Path> {
        (self == Side::Outcrop).then_some(ours)
    }
}

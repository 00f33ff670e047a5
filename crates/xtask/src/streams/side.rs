//! The two libraries that a program is run on.

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
}

//! The purposes for which threads read files.

use std::cell::Cell;

thread_local! {
    static PURPOSE: Cell<Purpose> = const { Cell::new(Purpose::Get) };
}

/// The purpose of reads of tables by one thread. A thread that has not named one looks a key up.
///
/// ```
/// use outcrop_monitor::Purpose;
///
/// let reading = Purpose::Compaction.begin();
/// let step = Purpose::Iterate.begin_if_none();
/// assert_eq!(Purpose::current(), Purpose::Compaction);
/// drop((step, reading));
/// assert_eq!(Purpose::current(), Purpose::Get);
/// ```
///
/// Source: RocksDB `include/rocksdb/env.h`, `Env::IOActivity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A lookup.
    Get,
    /// A lookup of several keys together.
    Multiget,
    /// A step or seek of an iterator.
    Iterate,
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// Opening a database.
    Open,
}

impl Purpose {
    /// That of the calling thread.
    pub fn current() -> Purpose {
        PURPOSE.get()
    }

    /// The calling thread reads for this until the guard is dropped.
    pub fn begin(self) -> ForPurpose {
        ForPurpose { before: PURPOSE.replace(self) }
    }

    /// The same, if it has not said before what it reads for: a job also has iterators.
    pub fn begin_if_none(self) -> ForPurpose {
        let before = Purpose::current();
        if before == Purpose::Get { self.begin() } else { ForPurpose { before } }
    }
}

/// The calling thread reads for a [`Purpose`] until this is dropped.
#[must_use]
pub struct ForPurpose {
    before: Purpose,
}

impl Drop for ForPurpose {
    fn drop(&mut self) {
        PURPOSE.set(self.before);
    }
}

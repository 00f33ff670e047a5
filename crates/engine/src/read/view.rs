//! The view of one read.

use super::blob;
use super::options::ReadOptions;
use super::value::PinnedValue;
use crate::column_family::ColumnFamily;
use crate::superversion::SuperVersion;
use crate::table_cache::TableCache;
use outcrop_base::{Result, SeqNum};
use outcrop_monitor::{Counting, Watch, Watching};
use outcrop_table::Reading;

/// The sources of a column family as of one sequence number, and what opens them. Reads need nothing else of a database.
#[derive(Clone, Copy)]
pub struct ReadView<'v> {
    /// Opens tables and blob files.
    pub tables: &'v TableCache,
    /// The column family.
    pub cf: &'v ColumnFamily,
    /// Its memtables and tables.
    pub sources: &'v SuperVersion,
    /// Newer entries are not seen.
    pub seq: SeqNum,
    /// How it is read; the moment is `seq`.
    pub options: &'v ReadOptions,
    /// Where it is counted what the read finds.
    pub counting: Counting<'v>,
    /// Whether somebody measures its steps.
    pub watch: Watch<'v>,
}

impl<'v> ReadView<'v> {
    /// True if keys have user-defined timestamps, or the options say so.
    #[inline]
    pub(super) fn is_stamped(&self) -> bool {
        self.cf.has_timestamps() | self.options.timestamp.is_some()
    }

    /// How blocks are read.
    #[inline]
    pub(super) fn reading(&self) -> Reading<'v> {
        Reading { loading: self.options.loading(), counting: self.counting }
    }

    /// The watchers of the rare events of the read: none if nobody counts it.
    pub(super) fn watching(&self) -> Option<Watching<'v>> {
        if self.counting.is_on() { self.tables.monitor().begin() } else { None }
    }

    /// The value of `user_key` that `index` refers to.
    pub(super) fn fetch(&self, user_key: &[u8], index: &[u8]) -> Result<PinnedValue> {
        let files = &self.sources.version.blob_files;
        blob::fetch(self.tables, self.cf, files, user_key, index, self.options.loading())
    }
}

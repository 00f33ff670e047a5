//! How a read is done.

use crate::snapshots::{Snapshot, SnapshotList};
use outcrop_base::{Result, SeqNum, Timestamp};
use outcrop_env::IoPriority;
use outcrop_table::{Loading, TableProperties};
use std::fmt;
use std::sync::Arc;

/// Says of a table, by its properties, whether a scan looks into it: [`ReadOptions::table_filter`].
///
/// ```
/// use outcrop::{Db, Env, ReadOptions, TableFilter};
///
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// db.flush()?;
/// let large = TableFilter::new(|table| table.num_entries > 1000);
/// let options = ReadOptions { table_filter: Some(large), ..ReadOptions::default() };
/// assert_eq!(db.iter_with(&options).count(), 0);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct TableFilter(Arc<dyn Fn(&TableProperties) -> bool + Send + Sync>);

impl TableFilter {
    /// Asked on the thread that makes the iterator, once for each table.
    pub fn new(filter: impl Fn(&TableProperties) -> bool + Send + Sync + 'static) -> TableFilter {
        TableFilter(Arc::new(filter))
    }

    /// True if a scan looks into the table.
    pub(crate) fn takes(&self, properties: &TableProperties) -> bool {
        (self.0)(properties)
    }
}

impl fmt::Debug for TableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableFilter")
    }
}

/// The sources that a read may ask, and the effort that it may make.
///
/// ```
/// use outcrop::{Db, Env, ErrorKind, ReadOptions, ReadTier};
///
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// db.flush()?;
/// let cached = ReadOptions { tier: ReadTier::Cached, ..ReadOptions::default() };
/// assert_eq!(db.get_with("a", &cached).unwrap_err().kind(), ErrorKind::Incomplete);
/// db.get("a")?; // Loads the block.
/// assert!(db.get_with("a", &cached)?.is_some());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadTier {
    /// Anything.
    #[default]
    All = 0,
    /// Look into memory alone: a block that is neither in a memtable nor in the cache ends the read, or the scan, with Incomplete. With
    /// `max_open_files` of 0 or more a table that is not open is opened, which reads its file.
    Cached,
    /// Look for what is durable, or will be once WALs are synced: as soon as anything was written without a WAL since the database was opened,
    /// lookups pass over memtables. Iterators are refused with NotSupported.
    Persisted,
    /// Iterators look into memtables alone; lookups look everywhere.
    MemTables,
}

/// How a read is done: the moment, the bounds of a scan, and what it leaves in the cache.
///
/// ```
/// # use outcrop::{Db, Env, ReadOptions};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("a", "1")?;
/// // A long scan that does not push the blocks of others out of the cache.
/// let options = ReadOptions { fill_cache: false, ..ReadOptions::at(&db.snapshot()) };
/// assert_eq!(db.iter_with(&options).count(), 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The moment to read at; `None`: the present. Options own their snapshot, so it lives at least as long as they do.
    pub snapshot: Option<Snapshot>,
    /// Blocks read from tables are kept in the block cache; default true. Long scans may turn it off.
    pub fill_cache: bool,
    /// The checksum of each data block, and of each value in a blob file, that is read from a file is compared; default true. Without it damage
    /// may be taken for data: only bytes that do not decode are an error. Such blocks are not kept in the cache, where reads that verify
    /// would trust them (RocksDB keeps them). Checksums of indexes and filters are compared in any case, and a block that is cached was verified.
    pub verify_checksums: bool,
    /// Smallest user key an iterator returns.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// An iterator ends before this user key.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// An iterator ends where the prefix of the key it was positioned by ends; needs a prefix extractor. Default false. A
    /// [`Cursor`](crate::Cursor) is positioned by the target of a seek, or by the row that it finds at an end. An [`Iter`](crate::Iter)
    /// has the prefix of its range's first key, or of its first row where that is unbounded, from both ends; `Db::prefix` passes over this.
    pub prefix_same_as_start: bool,
    /// Seeks ask no filters of prefixes. The result is the same: with a prefix extractor, a seek leaves out tables
    /// that by their filters hold no key with the prefix of its target, and takes them in once the walk leaves the
    /// prefix. Default false.
    pub total_order_seek: bool,
    /// Bytes an iterator reads ahead; 0: it grows on its own while access is sequential.
    pub readahead_size: usize,
    /// The sources that the read may ask, and its effort. Default [`ReadTier::All`].
    pub tier: ReadTier,
    /// When the read must be over: microseconds since the Unix epoch, by the clock of the environment. After that nothing is read from a file: what
    /// is not in memory is TimedOut, and so are all keys of a `multi_get` that begins later. A read of a file that is under way is
    /// not given up, nor is opening a table (`max_open_files` of 0 or more). Default 0: never.
    pub deadline: u64,
    /// Bytes of values after which a `multi_get` reads no more: the value that goes beyond it is still given, and keys after it, in the order of
    /// the column family, are Aborted. Of several column families each begins with nothing; after one that goes beyond it, those of higher ids are
    /// Aborted. Default [`u64::MAX`]: no limit.
    pub value_size_soft_limit: u64,
    /// Range tombstones count for nothing: keys that they delete may be found. Default false.
    pub ignore_range_deletions: bool,
    /// A positioning call of an iterator that passes over more entries than this, deleted or hidden ones, ends with Incomplete; the iterator can
    /// be positioned again. Entries that range tombstones hide are not counted. Default 0: no limit.
    pub max_skippable_internal_keys: u64,
    /// Iterators leave out tables that it does not take; their range tombstones count, and lookups of single keys ask it
    /// nothing. Default `None`: all are looked into.
    pub table_filter: Option<TableFilter>,
    /// Blocks and blobs that are read from files wait for tokens of the database's rate limiter, at this priority, if the limiter is one of reads
    /// ([`RateLimiterMode`](crate::RateLimiterMode)). Default `None`: the limiter is not asked.
    pub rate_limiter_priority: Option<IoPriority>,
    /// With user-defined timestamps, which reads then need: versions newer than this are not seen. Default `None`.
    pub timestamp: Option<Timestamp>,
    /// A cursor shows every version with a timestamp from this to `timestamp`, deletions too, newest first of each key:
    /// [`Cursor::timestamp`](crate::Cursor::timestamp). Default `None`: the newest of each key.
    pub iter_start_timestamp: Option<Timestamp>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions::DEFAULT
    }
}

impl ReadOptions {
    /// Those of reads without options: none are made, nor dropped, for each.
    #[inline]
    pub(crate) fn by_default() -> &'static ReadOptions {
        static DEFAULT: ReadOptions = ReadOptions::DEFAULT;
        &DEFAULT
    }

    const DEFAULT: ReadOptions = ReadOptions {
        snapshot: None,
        fill_cache: true,
        verify_checksums: true,
        iterate_lower_bound: None,
        iterate_upper_bound: None,
        prefix_same_as_start: false,
        total_order_seek: false,
        readahead_size: 0,
        tier: ReadTier::All,
        deadline: 0,
        value_size_soft_limit: u64::MAX,
        ignore_range_deletions: false,
        max_skippable_internal_keys: 0,
        table_filter: None,
        rate_limiter_priority: None,
        timestamp: None,
        iter_start_timestamp: None,
    };

    /// The sequence number to read at: the snapshot's, or else what `latest` says. Asked for after the views to read were taken: a
    /// flush in between could otherwise drop what this number must see.
    ///
    /// # Errors
    /// InvalidArgument if the snapshot was released, or is not of the database that has the list `snapshots`.
    #[inline]
    pub(crate) fn seq(
        &self,
        snapshots: &Arc<SnapshotList>,
        latest: impl FnOnce() -> SeqNum,
    ) -> Result<SeqNum> {
        match &self.snapshot {
            None => Ok(latest()),
            Some(snapshot) => snapshot.readable(snapshots),
        }
    }

    /// `max_skippable_internal_keys`, as a number that is never reached where there is no limit.
    pub(crate) fn most_skipped(&self) -> u64 {
        match self.max_skippable_internal_keys {
            0 => u64::MAX,
            most => most,
        }
    }

    /// `fill_cache`, `verify_checksums`, `tier`, `deadline` and `rate_limiter_priority`, as tables take them.
    #[inline]
    pub(crate) fn loading(&self) -> Loading {
        // Without a branch for each: this is asked by every lookup.
        let special = self.deadline | self.tier as u64 | u64::from(!self.verify_checksums);
        if special != 0 || self.rate_limiter_priority.is_some() {
            return self.limited();
        }
        self.unlimited()
    }

    #[inline]
    fn unlimited(&self) -> Loading {
        if self.fill_cache { Loading::Kept } else { Loading::NotKept }
    }

    #[cold]
    fn limited(&self) -> Loading {
        let loading = match self.tier {
            ReadTier::All | ReadTier::Persisted | ReadTier::MemTables => self.unlimited(),
            ReadTier::Cached => Loading::Never,
        };
        let loading = if self.verify_checksums { loading } else { loading.unverified() };
        let loading = loading.until(self.deadline);
        self.rate_limiter_priority.map_or(loading, |priority| loading.paced(priority))
    }

    /// Default options reading as of `timestamp`, of a column family with user-defined timestamps.
    pub fn at_timestamp(timestamp: Timestamp) -> ReadOptions {
        ReadOptions { timestamp: Some(timestamp), ..ReadOptions::default() }
    }

    /// Default options reading as of `snapshot`, of which they keep a clone.
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() }
    }
}

//! A column family: an independent key space with its own options, sharing the WAL with the others.

use crate::collectors::TablePropertiesCollectorFactory;
use crate::partitioner::SstPartitionerFactory;
use crate::stats::ColumnFamilyStats;
use crate::superversion::{SuperVersion, SuperVersionCell};
use arc_swap::{ArcSwap, ArcSwapOption};
use outcrop_base::timestamp::{TIMESTAMP_LEN, stored_key};
use outcrop_base::{
    CfId, CompactionFilter, CompactionFilterFactory, Comparator, Error, ErrorKind, MergeOperator,
    PrefixExtractor, Result, Timestamp,
};
use outcrop_cache::Cache;
use outcrop_memtable::{MemTable, MemTablePool};
use outcrop_options::ColumnFamilyOptions;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Name of the column family every database has.
pub const DEFAULT_COLUMN_FAMILY: &str = "default";

/// The objects with behaviour a column family uses; options are plain data and live elsewhere.
///
/// ```
/// use outcrop::{Cache, CacheOptions, ColumnFamilyDescriptor, ColumnFamilyOptions, ColumnFamilyParts};
///
/// let cache = Cache::new(CacheOptions { capacity: 64 << 20, estimated_entry_charge: 0 });
/// let parts = ColumnFamilyParts { block_cache: Some(cache), ..ColumnFamilyParts::default() };
/// let default = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts);
/// # assert_eq!(default.name, "default");
/// ```
#[derive(Clone, Default)]
pub struct ColumnFamilyParts {
    /// Key order; must be the one the column family was created with.
    pub comparator: Comparator,
    /// Rule for merge operands; needed if the data holds any.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The filter that decides about each key a compaction writes.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Makes a filter for each compaction; used if `compaction_filter` is not set.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// Collectors, which see each entry of each table that is written.
    pub collectors: Vec<Arc<dyn TablePropertiesCollectorFactory>>,
    /// Where compactions end tables besides.
    pub sst_partitioner: Option<Arc<dyn SstPartitionerFactory>>,
    /// Block cache; `None`: a private one of 32 MiB, unless `no_block_cache` is set.
    pub block_cache: Option<Arc<Cache>>,
    /// Cache of values in blob files; `None`: they are in the block cache. Source: `blob_cache`.
    pub blob_cache: Option<Arc<Cache>>,
}

/// A column family to open or create.
///
/// ```
/// use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, Comparator};
///
/// let newest_first = ColumnFamilyDescriptor::new("log")
///     .with_options(ColumnFamilyOptions { write_buffer_size: 8 << 20, ..ColumnFamilyOptions::default() })
///     .with_comparator(Comparator::ReverseBytewise);
/// assert_eq!(newest_first.name, "log");
/// ```
#[derive(Clone, Default)]
pub struct ColumnFamilyDescriptor {
    /// Its name.
    pub name: String,
    /// Its settings.
    pub options: ColumnFamilyOptions,
    /// Its objects.
    pub parts: ColumnFamilyParts,
}

impl ColumnFamilyDescriptor {
    /// A column family of that name under default settings.
    pub fn new(name: impl Into<String>) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor { name: name.into(), ..ColumnFamilyDescriptor::default() }
    }

    /// The default column family under `options`.
    pub fn default_with(options: ColumnFamilyOptions, parts: ColumnFamilyParts) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor { name: DEFAULT_COLUMN_FAMILY.to_string(), options, parts }
    }

    /// The same column family as `later` has it: its settings unless they are the defaults, and each object it brings. Objects that are
    /// known by name only stay known.
    pub(crate) fn changed_by(self, later: ColumnFamilyDescriptor) -> ColumnFamilyDescriptor {
        let (old, new) = (self.parts, later.parts);
        let mut options = self.options;
        let brought = match &later.options.prefix_extractor {
            Some(user @ PrefixExtractor::User(_)) => Some(user.clone()),
            _ => None,
        };
        let settings = ColumnFamilyOptions { prefix_extractor: None, ..later.options.clone() };
        if brought.is_some() && settings == ColumnFamilyOptions::default() {
            options.prefix_extractor = brought;
        } else if later.options != ColumnFamilyOptions::default() {
            let names = (options.comparator.take(), options.merge_operator.take());
            options = later.options;
            options.comparator = options.comparator.or(names.0);
            options.merge_operator = options.merge_operator.or(names.1);
        }
        let parts = ColumnFamilyParts {
            comparator: if new.comparator.is_bytewise() { old.comparator } else { new.comparator },
            merge_operator: new.merge_operator.or(old.merge_operator),
            compaction_filter: new.compaction_filter.or(old.compaction_filter),
            compaction_filter_factory: new.compaction_filter_factory.or(old.compaction_filter_factory),
            collectors: if new.collectors.is_empty() { old.collectors } else { new.collectors },
            sst_partitioner: new.sst_partitioner.or(old.sst_partitioner),
            block_cache: new.block_cache.or(old.block_cache),
            blob_cache: new.blob_cache.or(old.blob_cache),
        };
        ColumnFamilyDescriptor { name: self.name, options, parts }
    }

    /// Under these settings.
    pub fn with_options(mut self, options: ColumnFamilyOptions) -> ColumnFamilyDescriptor {
        self.options = options;
        self
    }

    /// In this key order, which must be the one it was created with.
    pub fn with_comparator(mut self, comparator: Comparator) -> ColumnFamilyDescriptor {
        self.parts.comparator = comparator;
        self
    }

    /// With this rule for merge operands.
    pub fn with_merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> ColumnFamilyDescriptor {
        self.parts.merge_operator = Some(operator);
        self
    }

    /// With this rule for the prefixes of its keys, in place of that of its settings: the way to bring one of the application's own.
    ///
    /// ```
    /// use outcrop::{ColumnFamilyDescriptor, Db, Env, PrefixExtractor, ReadOptions, UserPrefixExtractor};
    /// use std::sync::Arc;
    ///
    /// /// The tenant: what comes before the first slash, and the slash.
    /// struct Tenant;
    ///
    /// impl UserPrefixExtractor for Tenant {
    ///     fn name(&self) -> &str {
    ///         "example.tenant"
    ///     }
    ///
    ///     fn in_domain(&self, key: &[u8]) -> bool {
    ///         key.contains(&b'/')
    ///     }
    ///
    ///     fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
    ///         let end = key.iter().position(|&byte| byte == b'/').map_or(key.len(), |slash| slash + 1);
    ///         &key[..end]
    ///     }
    /// }
    ///
    /// let tenants = ColumnFamilyDescriptor::new("default")
    ///     .with_prefix_extractor(PrefixExtractor::User(Arc::new(Tenant)));
    /// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(tenants).open()?;
    /// for key in ["acme/1", "acme/2", "zoo/1"] {
    ///     db.put(key, "")?;
    /// }
    /// let within = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    /// let mut cursor = db.cursor_with(&within)?;
    /// cursor.seek(b"acme/2");
    /// assert_eq!(cursor.key(), b"acme/2");
    /// cursor.next();
    /// assert!(!cursor.valid()); // The next key is of another tenant.
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn with_prefix_extractor(mut self, extractor: PrefixExtractor) -> ColumnFamilyDescriptor {
        self.options.prefix_extractor = Some(extractor);
        self
    }

    /// With this filter for its compactions.
    pub fn with_compaction_filter(mut self, filter: Arc<dyn CompactionFilter>) -> ColumnFamilyDescriptor {
        self.parts.compaction_filter = Some(filter);
        self
    }

    /// With this block cache, which others may share.
    pub fn with_block_cache(mut self, cache: Arc<Cache>) -> ColumnFamilyDescriptor {
        self.parts.block_cache = Some(cache);
        self
    }

    /// With this cache for its values in blob files, which would otherwise take room from blocks of tables. Others may share it.
    ///
    /// ```
    /// use outcrop::{Cache, CacheOptions, ColumnFamilyDescriptor, ColumnFamilyOptions, Db, Env};
    ///
    /// let values = Cache::new(CacheOptions { capacity: 64 << 20, estimated_entry_charge: 0 });
    /// let options = ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 1000, ..Default::default() };
    /// let photos = ColumnFamilyDescriptor::new("default").with_options(options).with_blob_cache(values.clone());
    /// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(photos).open()?;
    /// db.put("sunset", [7; 4000])?;
    /// db.flush()?;
    /// db.get("sunset")?;
    /// assert_eq!(values.entry_count(), 1);
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn with_blob_cache(mut self, cache: Arc<Cache>) -> ColumnFamilyDescriptor {
        self.parts.blob_cache = Some(cache);
        self
    }
}

impl From<&str> for ColumnFamilyDescriptor {
    fn from(name: &str) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor::new(name)
    }
}

impl From<String> for ColumnFamilyDescriptor {
    fn from(name: String) -> ColumnFamilyDescriptor {
        ColumnFamilyDescriptor::new(name)
    }
}

impl From<&ColumnFamilyDescriptor> for ColumnFamilyDescriptor {
    fn from(descriptor: &ColumnFamilyDescriptor) -> ColumnFamilyDescriptor {
        descriptor.clone()
    }
}

/// One open column family. Handed to callers as [`ColumnFamilyHandle`].
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let users = db.create_column_family("users")?;
/// assert_eq!(users.name(), "users");
/// db.put_cf(&users, "7", "ann")?;
/// db.drop_column_family(&users)?;
/// assert!(users.is_dropped());
/// # outcrop::Result::Ok(())
/// ```
pub struct ColumnFamily {
    id: CfId,
    name: String,
    /// Order of stored keys.
    pub comparator: Comparator,
    /// Order of the rows that stored keys belong to: where keys have timestamps, another one.
    pub(crate) rows: Comparator,
    /// Order of keys as callers give them.
    pub(crate) keys: Comparator,
    /// Versions with timestamps below this may be gone, but for the newest of each key.
    pub(crate) full_history_low: ArcSwapOption<Timestamp>,
    /// Rule for merge operands.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The filter that decides about each key a compaction writes.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Makes a filter for each compaction.
    pub compaction_filter_factory: Option<Arc<dyn CompactionFilterFactory>>,
    /// Collectors, which see each entry of each table that is written.
    pub collectors: Vec<Arc<dyn TablePropertiesCollectorFactory>>,
    /// Where compactions end tables besides.
    pub sst_partitioner: Option<Arc<dyn SstPartitionerFactory>>,
    /// Cache of its tables' blocks.
    pub block_cache: Option<Arc<Cache>>,
    /// Cache of its values in blob files, if they have one of their own.
    pub blob_cache: Option<Arc<Cache>>,
    /// Current settings; replaced as a whole by `set_options`, one call after the other.
    pub(crate) options: ArcSwap<ColumnFamilyOptions>,
    pub(crate) superversion: SuperVersionCell,
    pub(crate) stats: ColumnFamilyStats,
    /// Where its memtables come from. Each opening of a database has one of its own, so it says whose column family this is.
    pub(crate) memtable_pool: Arc<MemTablePool>,
    /// Why writes need a second look: [`DROPPED`], [`STAMPED`]; 0: they do not.
    caution: AtomicU8,
}

/// The column family was dropped.
const DROPPED: u8 = 1;
/// Its keys end with timestamps.
const STAMPED: u8 = 2;

/// A caller's reference to a column family; stays usable until the database closes, except that
/// writes to a dropped column family fail. It belongs to one opening of one database: methods of any other [`crate::Db`] refuse it
/// with InvalidArgument.
///
/// ```
/// # use outcrop::ColumnFamilyHandle;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let handle: ColumnFamilyHandle = db.default_column_family().clone();
/// db.put_cf(&handle, "a", "1")?;
/// # outcrop::Result::Ok(())
/// ```
pub type ColumnFamilyHandle = Arc<ColumnFamily>;

/// An empty memtable under `options`.
pub(crate) fn new_memtable(
    options: &ColumnFamilyOptions,
    comparator: &Comparator,
    pool: &Arc<MemTablePool>,
) -> Arc<MemTable> {
    let memtable = MemTable::new(comparator.clone(), options.write_buffer_size, pool)
        .with_max_range_deletions(options.max_range_deletions());
    let bytes = (options.write_buffer_size as f64 * options.memtable_prefix_bloom_size_ratio) as usize;
    Arc::new(match &options.prefix_extractor {
        Some(extractor) if bytes > 0 => memtable.with_prefix_bloom(extractor.clone(), bytes),
        _ => memtable,
    })
}

impl ColumnFamily {
    pub(crate) fn new(
        id: CfId,
        descriptor: &ColumnFamilyDescriptor,
        superversion: Arc<SuperVersion>,
        memtable_pool: &Arc<MemTablePool>,
    ) -> Arc<ColumnFamily> {
        let parts = &descriptor.parts;
        Arc::new(ColumnFamily {
            id,
            name: descriptor.name.clone(),
            comparator: parts.comparator.clone(),
            rows: parts.comparator.rows(),
            keys: parts.comparator.keys(),
            full_history_low: ArcSwapOption::empty(),
            merge_operator: parts.merge_operator.clone(),
            compaction_filter: parts.compaction_filter.clone(),
            compaction_filter_factory: parts.compaction_filter_factory.clone(),
            collectors: parts.collectors.clone(),
            sst_partitioner: parts.sst_partitioner.clone(),
            block_cache: parts.block_cache.clone(),
            blob_cache: parts.blob_cache.clone(),
            stats: ColumnFamilyStats::new(descriptor.options.num_levels as usize),
            options: ArcSwap::from_pointee(descriptor.options.clone()),
            superversion: SuperVersionCell::new(superversion),
            memtable_pool: memtable_pool.clone(),
            caution: AtomicU8::new(if parts.comparator.timestamp_len() > 0 { STAMPED } else { 0 }),
        })
    }

    /// Where its values in blob files are cached.
    pub(crate) fn cache_of_blobs(&self) -> Option<&Arc<Cache>> {
        self.blob_cache.as_ref().or(self.block_cache.as_ref())
    }

    /// Its caches. One that is both comes twice.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &Arc<Cache>> {
        self.block_cache.iter().chain(&self.blob_cache)
    }

    /// The first stored key of the row of `stored`.
    pub(crate) fn row_start(&self, mut stored: Vec<u8>) -> Vec<u8> {
        if self.has_timestamps() {
            stored.truncate(stored.len().saturating_sub(TIMESTAMP_LEN));
            stored.extend_from_slice(Timestamp::MAX.as_bytes());
        }
        stored
    }

    /// The first stored key of the row of `key`, which a caller gave.
    pub(crate) fn stored_bound<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self.has_timestamps() {
            true => Cow::Owned(stored_key(key, Timestamp::MAX)),
            false => Cow::Borrowed(key),
        }
    }

    /// The id records carry in the WAL and the MANIFEST.
    pub fn id(&self) -> CfId {
        self.id
    }

    /// The name it was created under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its settings as they are now. [`crate::Db::set_options`] changes them, and does not change what this gave.
    pub fn options(&self) -> Arc<ColumnFamilyOptions> {
        self.options.load_full()
    }

    /// True after [`crate::Db::drop_column_family`].
    pub fn is_dropped(&self) -> bool {
        // Acquire: pairs with the Release in mark_dropped; a writer that sees it refuses the write.
        self.caution.load(Ordering::Acquire) & DROPPED != 0
    }

    /// True if its keys have user-defined timestamps.
    #[inline]
    pub fn has_timestamps(&self) -> bool {
        // Relaxed: it never changes.
        self.caution.load(Ordering::Relaxed) & STAMPED != 0
    }

    /// The timestamp of these bytes, for a write in this column family.
    ///
    /// # Errors
    /// InvalidArgument if its keys have no timestamps, or theirs are of another length.
    pub fn timestamp(&self, bytes: &[u8]) -> Result<Timestamp> {
        if self.has_timestamps() { Timestamp::from_bytes(bytes) } else { Err(no_timestamps(self)) }
    }

    /// True if it was not dropped, and its keys have no timestamps: what most writes have to know, at the price of one look.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        // Acquire: as in is_dropped.
        self.caution.load(Ordering::Acquire) == 0
    }

    /// Requests to a column family itself, not to its rows, fail in a class of their own.
    pub(crate) fn refuse_if_dropped(&self) -> Result<()> {
        match self.is_dropped() {
            true => Err(Error::new(ErrorKind::ColumnFamilyDropped, self.name().to_string())),
            false => Ok(()),
        }
    }

    pub(crate) fn mark_dropped(&self) {
        // Release: pairs with the Acquire in is_dropped.
        self.caution.fetch_or(DROPPED, Ordering::Release);
    }
}
/// The error of a method without a timestamp on a column family that has them.
pub(crate) fn enables_timestamp(cf: &ColumnFamily) -> Error {
    let name = cf.name();
    Error::invalid_argument(format!("cannot call this method on column family {name} that enables timestamp"))
}

/// The error of a method with a timestamp on a column family that has none.
pub(crate) fn no_timestamps(cf: &ColumnFamily) -> Error {
    let name = cf.name();
    Error::invalid_argument(format!(
        "cannot call this method on column family {name} that does not enable timestamp"
    ))
}

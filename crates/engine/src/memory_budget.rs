//! One limit for the memory of all databases that are opened with it.
//!
//! ```text
//! budget | 1/16 descriptors of the cache, allocator
//!        | memtables: writers wait over 1/4, fail over 3/8    write_buffer_manager.rs
//!        | iterators, the blocks they are on: up to 3/8       outcrop_cache::Charge
//!        | flushes and compactions: over 1/8 one at a time
//!        | open tables
//!        | blocks, indexes, filters, values of blob files     what the others leave
//! ```
//! All of it is one cache's: who needs memory charges the cache, which evicts blocks and gives their memory back to the operating system.
//! Memtables then take memory as entries come and return it when they are dropped; compactions end a table that has gathered too
//! much; what the allocator keeps is returned after each flush and compaction, and once a second. Figures: `docs/design/0046`.

use crate::column_family::ColumnFamilyDescriptor;
use crate::write_buffer_manager::WriteBufferManager;
use outcrop_base::{Error, Result};
use outcrop_cache::{Cache, CacheOptions, Role};
use std::sync::Arc;

/// The smallest budget, in bytes.
const LEAST: u64 = 16 << 20;

/// Limits the memory that databases use: that of their blocks, memtables, open tables, iterators, flushes and compactions together.
///
/// Give it to each of them by [`DbObjects::memory_budget`](crate::DbObjects::memory_budget). They share one block cache and one account of
/// memtables, both made by the budget: a cache or a write buffer manager of their own is refused. Memory goes where it is used; the
/// resident memory of the process grows by no more than 1.1 times the budget.
///
/// At the limit blocks make room first. Writers wait for flushes while memtables take a quarter of the budget. Three eighths are for
/// iterators, which fail beyond that, and as much for memtables together with those that iterators keep of the past, beyond which writes
/// fail: with Aborted ("Memory limit reached"). Close iterators, or raise the budget. A read fails so if all blocks are in use, and a
/// write of more than an eighth of the budget, and 1 MiB.
///
/// Not counted are what a call returns and works with while it runs, values and batches of the application among it; indexed batches and
/// transactions that are not committed; the metadata of a great many files beyond 4 KiB for each table; the stacks of threads; WALs that
/// are replayed by opening a database, or by one that is only read; repair, salvage, backups and ingestion while they run; the
/// page cache of the operating system.
///
/// ```
/// use outcrop::{Db, DbObjects, Env, MemoryBudget};
///
/// let budget = MemoryBudget::new(64 << 20)?;
/// let objects = DbObjects { memory_budget: Some(budget.clone()), ..Default::default() };
/// // Together they take that much.
/// let one = Db::builder("/one").env(Env::memory()).objects(objects.clone()).create_if_missing(true).open()?;
/// let two = Db::builder("/two").env(Env::memory()).objects(objects).create_if_missing(true).open()?;
/// one.put("a", "1")?;
/// assert!(budget.usage().memtables > 0 && budget.usage().total() <= budget.bytes());
/// # outcrop::Result::Ok(())
/// ```
pub struct MemoryBudget {
    bytes: u64,
    cache: Arc<Cache>,
    memtables: Arc<WriteBufferManager>,
}

/// The memory that counts against a [`MemoryBudget`], by what it is for, in bytes.
///
/// ```
/// let budget = outcrop::MemoryBudget::new(64 << 20)?;
/// assert_eq!(budget.usage().total(), 0);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Blocks, indexes, filters, and values of blob files.
    pub blocks: u64,
    /// Memtables, in parts of 256 KiB.
    pub memtables: u64,
    /// The rest of open tables.
    pub tables: u64,
    /// Iterators, and what they read ahead.
    pub iterators: u64,
    /// Flushes and compactions.
    pub jobs: u64,
}

impl MemoryUsage {
    /// All of it.
    pub fn total(&self) -> u64 {
        let MemoryUsage { blocks, memtables, tables, iterators, jobs } = self;
        blocks + memtables + tables + iterators + jobs
    }

    /// Each part, by name.
    pub(crate) fn parts(&self) -> [(&'static str, u64); 5] {
        let MemoryUsage { blocks, memtables, tables, iterators, jobs } = *self;
        [
            ("blocks", blocks),
            ("memtables", memtables),
            ("tables", tables),
            ("iterators", iterators),
            ("jobs", jobs),
        ]
    }
}

impl MemoryBudget {
    /// A limit of `bytes`, at least 16 MiB; each flush and compaction takes 2 MiB or more of it. Memory is taken as it is needed.
    ///
    /// # Errors
    /// InvalidArgument if it is less, or more than this machine can address.
    pub fn new(bytes: u64) -> Result<Arc<MemoryBudget>> {
        let capacity = usize::try_from(bytes - bytes / 16).ok().filter(|_| bytes >= LEAST);
        let Some(capacity) = capacity else {
            return Err(Error::invalid_argument(format!("memory_budget: {bytes} bytes, at least {LEAST}")));
        };
        let cache = Cache::charging(CacheOptions { capacity, estimated_entry_charge: 0 });
        let memtables = WriteBufferManager::of_budget(bytes / 4, bytes / 8 * 3, cache.clone());
        Ok(Arc::new(MemoryBudget { bytes, cache, memtables: Arc::new(memtables) }))
    }

    /// The limit, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory in use.
    pub fn usage(&self) -> MemoryUsage {
        let of = |role| self.cache.reserved_by(role) as u64;
        MemoryUsage {
            blocks: self.cache.memory_of_blocks() as u64,
            memtables: of(Role::Memtables),
            tables: of(Role::Tables),
            iterators: of(Role::Iterators),
            jobs: of(Role::Jobs),
        }
    }

    /// True if flushes and compactions take so much that no other compaction is to begin beside them.
    pub(crate) fn is_short_for_jobs(&self) -> bool {
        self.cache.reserved_by(Role::Jobs) > self.cache.capacity() / 8
    }

    /// The account of memtables.
    pub(crate) fn write_buffer_manager(&self) -> &Arc<WriteBufferManager> {
        &self.memtables
    }

    /// Has the column family use its cache.
    ///
    /// # Errors
    /// InvalidArgument naming a setting that asks for other memory.
    pub(crate) fn govern(&self, family: &mut ColumnFamilyDescriptor) -> Result<()> {
        let parts = &mut family.parts;
        let foreign =
            |cache: &Option<Arc<Cache>>| cache.as_ref().is_some_and(|cache| !Arc::ptr_eq(cache, &self.cache));
        let refused = if foreign(&parts.block_cache) || family.options.table.block_cache_bytes.is_some() {
            Some("block_cache")
        } else if family.options.table.no_block_cache {
            Some("no_block_cache")
        } else if foreign(&parts.blob_cache) || family.options.blob_cache_bytes().is_some() {
            Some("blob_cache")
        } else {
            None
        };
        if let Some(setting) = refused {
            return Err(contradicts(&format!("{setting} of column family {}", family.name)));
        }
        parts.block_cache = Some(self.cache.clone());
        Ok(())
    }
}

/// The refusal of a setting that asks for memory beside a budget.
pub(crate) fn contradicts(setting: &str) -> Error {
    Error::invalid_argument(format!("{setting} contradicts memory_budget, which has its own"))
}

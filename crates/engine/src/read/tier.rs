//! The sources of reads that may not ask all: `ReadTier::Persisted` and `ReadTier::MemTables`.
//!
//! Source: RocksDB `db/db_impl/db_impl_sync_and_async.h`, `skip_memtable`, and `DBImpl::NewIterator`.

use super::options::{ReadOptions, ReadTier};
use crate::column_family::{ColumnFamily, new_memtable};
use crate::context::DbContext;
use crate::superversion::SuperVersion;
use outcrop_base::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The sources of lookups under `options`, if they are not all of `view`.
#[inline]
pub fn of_lookups(
    ctx: &DbContext,
    cf: &ColumnFamily,
    view: &SuperVersion,
    options: &ReadOptions,
) -> Option<SuperVersion> {
    if options.tier == ReadTier::Persisted { persisted(ctx, cf, view) } else { None }
}

#[cold]
fn persisted(ctx: &DbContext, cf: &ColumnFamily, view: &SuperVersion) -> Option<SuperVersion> {
    // Relaxed: a write that returned before the read began is seen, as its number is.
    if !ctx.has_unlogged.load(Ordering::Relaxed) {
        return None;
    }
    let empty = new_memtable(&cf.options.load(), &cf.comparator, &ctx.memtable_pool);
    Some(view.without_memtables(empty))
}

/// The sources of an iterator under `options`.
///
/// # Errors
/// NotSupported if it is to see what is durable alone.
#[inline]
pub fn of_iterators(view: Arc<SuperVersion>, options: &ReadOptions) -> Result<Arc<SuperVersion>> {
    match options.tier {
        ReadTier::All | ReadTier::Cached => Ok(view),
        ReadTier::MemTables => Ok(Arc::new(view.without_tables())),
        ReadTier::Persisted => {
            Err(Error::not_supported("ReadTier::kPersistedData is not yet supported in iterators."))
        }
    }
}

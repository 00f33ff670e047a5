//! Whether a job has read as many entries as its input has. Were one passed by, it would be in no output, and gone once the input is.

use crate::compaction::job::CompactionJob;
use crate::context::DbContext;
use crate::info_log::{LogLevel, log_at};
use crate::table_cache::TableCache;
use outcrop_base::{Error, Result};
use outcrop_memtable::MemTable;
use std::sync::Arc;

/// A flush has read `read` entries of `memtables`, range tombstones aside.
///
/// # Errors
/// Corruption if other than were inserted, unless `flush_verify_memtable_count` is off: then only LOG says so.
/// Source: RocksDB `FlushJob::WriteLevel0Table`.
pub fn check_flush(ctx: &DbContext, memtables: &[&Arc<MemTable>], read: u64) -> Result<()> {
    let inserted: u64 = memtables.iter().map(|memtable| memtable.num_entries()).sum();
    let tombstones: u64 = memtables.iter().map(|memtable| memtable.num_range_deletions()).sum();
    let expected = inserted.saturating_sub(tombstones);
    let is_error = ctx.options.kept.flag("flush_verify_memtable_count", true);
    compare(ctx, ("entries in memtables", expected, read), is_error)
}

/// A compaction has read `read` entries of its tables, range tombstones aside.
///
/// # Errors
/// Corruption if its tables say that they have another number, unless `compaction_verify_record_count` is off: then only LOG says so.
/// Source: RocksDB `CompactionJob::VerifyInputRecordCount`.
pub fn check_compaction(ctx: &DbContext, job: &CompactionJob, read: u64) -> Result<()> {
    let Some(expected) = entries_of_tables(&ctx.tables, job)? else { return Ok(()) };
    let is_error = ctx.options.kept.flag("compaction_verify_record_count", true);
    compare(ctx, ("entries in the tables of a compaction", expected, read), is_error)
}

/// The sum of what the tables say of themselves; `None` if one has no properties to say it with.
fn entries_of_tables(tables: &TableCache, job: &CompactionJob) -> Result<Option<u64>> {
    let mut sum = 0;
    for file in job.compaction.input_files() {
        let table = tables.open(&job.cf, file)?;
        let properties = table.properties();
        if properties.num_entries == 0 {
            return Ok(None);
        }
        sum += properties.num_entries.saturating_sub(properties.num_range_deletions);
    }
    Ok(Some(sum))
}

fn compare(ctx: &DbContext, (entries, expected, read): (&str, u64, u64), is_error: bool) -> Result<()> {
    if read == expected {
        return Ok(());
    }
    let message = format!("Expected {expected} {entries}, but read {read}");
    log_at!(ctx, LogLevel::Error, "{message}");
    if is_error { Err(Error::corruption(message)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::Parts;
    use outcrop_base::{CfId, ErrorKind};
    use outcrop_options::{DbOptions, kept::DB_KEPT};

    #[test]
    fn a_flush_that_passes_an_entry_by_fails_unless_that_is_switched_off() {
        for verifies in [true, false] {
            let mut options = DbOptions { create_if_missing: true, ..DbOptions::default() };
            options.kept.set(DB_KEPT, "flush_verify_memtable_count", &verifies.to_string()).unwrap();
            let parts = Parts::of_db(options);
            parts.put("a", "1");
            parts.put("a", "2");
            parts.delete("b");
            parts.write(|batch| batch.delete_range("c", "d")).unwrap();
            let state = parts.versions.state.lock();
            let memtable = state.column_families[&CfId(0)].memtable.clone();
            drop(state);
            let check = |read| check_flush(&parts.ctx, &[&memtable], read);
            check(3).unwrap();
            for read in [2, 4] {
                assert_eq!(
                    check(read).err().map(|error| error.kind()),
                    verifies.then_some(ErrorKind::Corruption)
                );
            }
        }
    }
}

//! Settings that RocksDB refuses to open with together, among those that the engine keeps only for their getters.
//!
//! Nothing here would go wrong with them. They are refused so that a program meets the same error whichever library it
//! has, and can go back to RocksDB with the settings that it has. The engine checks its own settings (`engine/src/open.rs`).
//!
//! Source: RocksDB `db/db_impl/db_impl_open.cc`, `ValidateOptions`; each was tried on 6.29.5 to 11.8.1.

use crate::options::rocksdb_options_t;
use crate::settings::Flag;
use outcrop::options::CompactionStyle;
use outcrop::{Error, Result};

fn is_set(options: &rocksdb_options_t, name: &'static str, default: u8) -> bool {
    options.settings.kept::<Flag>(name, Flag(default)).is_set()
}

/// Checks settings of the database.
///
/// # Errors
/// What RocksDB's are: InvalidArgument, NotSupported where it is about IO.
pub(crate) fn of_database(options: &rocksdb_options_t) -> Result<()> {
    let [pipelined, unordered, mmap_reads, mmap_writes] =
        ["enable_pipelined_write", "unordered_write", "allow_mmap_reads", "allow_mmap_writes"]
            .map(|name| is_set(options, name, 0));
    let concurrent = is_set(options, "allow_concurrent_memtable_write", 1);
    let refused = [
        (options.db.atomic_flush && pipelined, "atomic_flush does not go with enable_pipelined_write"),
        (unordered && pipelined, "unordered_write does not go with enable_pipelined_write"),
        (unordered && !concurrent, "unordered_write needs allow_concurrent_memtable_write"),
    ];
    if let Some((_, why)) = refused.iter().find(|(is, _)| *is) {
        return Err(Error::invalid_argument(*why));
    }
    if mmap_reads && options.db.use_direct_reads {
        return Err(Error::not_supported("allow_mmap_reads does not go with use_direct_reads"));
    }
    if mmap_writes && options.db.use_direct_io_for_flush_and_compaction {
        return Err(Error::not_supported(
            "allow_mmap_writes does not go with use_direct_io_for_flush_and_compaction",
        ));
    }
    of_both(options, options)
}

/// Checks settings of a column family, as far as that goes without those of its database.
///
/// # Errors
/// NotSupported: the number of bytes of a check is one that RocksDB does not have.
pub(crate) fn of_family(options: &rocksdb_options_t) -> Result<()> {
    let per_key = [
        (
            "memtable_protection_bytes_per_key",
            u64::from(options.settings.kept::<u32>("memtable_protection_bytes_per_key", 0)),
        ),
        (
            "block_protection_bytes_per_key",
            u64::from(options.settings.kept::<u8>("block_protection_bytes_per_key", 0)),
        ),
    ];
    match per_key.iter().find(|(_, bytes)| !matches!(bytes, 0 | 1 | 2 | 4 | 8)) {
        Some((name, bytes)) => {
            Err(Error::not_supported(format!("{name} is {bytes}, can be 0, 1, 2, 4 or 8")))
        }
        None => Ok(()),
    }
}

/// Checks settings of a column family with those of its database.
///
/// # Errors
/// NotSupported for FIFO compaction with limited open files, InvalidArgument otherwise.
pub(crate) fn of_both(database: &rocksdb_options_t, family: &rocksdb_options_t) -> Result<()> {
    if family.cf.compaction_style == CompactionStyle::Fifo
        && database.db.max_open_files != -1
        && family.cf.ttl > 0
    {
        return Err(Error::not_supported("FIFO compaction needs max_open_files=-1"));
    }
    if is_set(database, "unordered_write", 0) && family.cf.max_successive_merges > 0 {
        return Err(Error::invalid_argument("unordered_write does not go with max_successive_merges"));
    }
    if is_set(database, "allow_concurrent_memtable_write", 1) && is_set(family, "inplace_update_support", 0) {
        return Err(Error::invalid_argument(
            "inplace_update_support does not go with allow_concurrent_memtable_write",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::KeptTexts;
    use outcrop::ErrorKind;

    fn refusal(settings: &[(&str, &str)], change: fn(&mut rocksdb_options_t)) -> Option<ErrorKind> {
        let mut options = rocksdb_options_t::default();
        change(&mut options);
        for (name, value) in settings {
            assert_eq!(options.keep_text(name, value), Some(true), "{name}");
        }
        of_database(&options).and_then(|()| of_family(&options)).err().map(|error| error.kind())
    }

    #[test]
    fn what_rocksdb_opens_with_is_taken_and_the_rest_refused_in_its_class() {
        let (invalid, missing) = (Some(ErrorKind::InvalidArgument), Some(ErrorKind::NotSupported));
        let pipelined = ("enable_pipelined_write", "true");
        let unordered = ("unordered_write", "true");
        let serial = ("allow_concurrent_memtable_write", "false");
        let in_place = ("inplace_update_support", "true");
        assert_eq!(refusal(&[pipelined], |_| {}), None);
        assert_eq!(refusal(&[pipelined], |o| o.db.atomic_flush = true), invalid);
        assert_eq!(refusal(&[unordered], |_| {}), None);
        assert_eq!(refusal(&[unordered, serial], |_| {}), invalid);
        assert_eq!(refusal(&[unordered, pipelined], |_| {}), invalid);
        assert_eq!(refusal(&[unordered], |o| o.cf.max_successive_merges = 1), invalid);
        assert_eq!(refusal(&[in_place], |_| {}), invalid);
        assert_eq!(refusal(&[in_place, serial], |_| {}), None);
        assert_eq!(refusal(&[("allow_mmap_reads", "1")], |o| o.db.use_direct_reads = true), missing);
        assert_eq!(refusal(&[("block_protection_bytes_per_key", "3")], |_| {}), missing);
        let fifo = |o: &mut rocksdb_options_t| {
            o.cf.compaction_style = CompactionStyle::Fifo;
            o.db.max_open_files = 100;
        };
        assert_eq!(refusal(&[], fifo), missing);
    }

    #[test]
    fn names_and_values_that_are_none_are_told_apart() {
        let mut options = rocksdb_options_t::default();
        assert_eq!(options.keep_text("no_such_option", "1"), None);
        assert_eq!(options.keep_text("unordered_write", "maybe"), Some(false));
        assert_eq!(options.keep_text("best_efforts_recovery", "true"), Some(true));
        assert_eq!(options.settings.check().unwrap_err().kind(), ErrorKind::NotSupported);
    }
}

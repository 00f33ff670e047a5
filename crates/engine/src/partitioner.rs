//! Partitioners: where compactions must end a table, whatever its size.
//!
//! Source: RocksDB `include/rocksdb/sst_partitioner.h`, `db/sst_partitioner.cc`.

/// Makes a partitioner for each compaction: [`crate::ColumnFamilyParts::sst_partitioner`]. Flushes are not partitioned, and neither are
/// compactions that write to L0, where each table is a sorted run.
///
/// ```
/// use outcrop::{PartitionerContext, SstPartitioner, SstPartitionerFactory};
///
/// /// A table for each first byte, on the last levels.
/// struct ByFirstByte;
///
/// impl SstPartitionerFactory for ByFirstByte {
///     fn name(&self) -> &str {
///         "example.first_byte"
///     }
///     fn create(&self, context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
///         (context.output_level > 1).then(|| Box::new(FirstByte) as _)
///     }
/// }
///
/// struct FirstByte;
///
/// impl SstPartitioner for FirstByte {
///     fn must_end(&mut self, last: &[u8], next: &[u8], _file_size: u64) -> bool {
///         last.first() != next.first()
///     }
/// }
/// # assert!(FirstByte.must_end(b"a", b"b", 0));
/// ```
pub trait SstPartitionerFactory: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Its name and its settings as the OPTIONS file has them. Default: the name.
    fn options_text(&self) -> String {
        self.name().to_string()
    }

    /// The partitioner of one compaction, or of one part of it; `None`: tables end by their size alone. Called also while a compaction
    /// is picked, with the state of the database locked: it must not wait, nor call the database.
    fn create(&self, context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>>;
}

/// Asked between the keys that a compaction writes. Range tombstones are no keys: one begins or ends no table, and is cut where a table
/// ends, so that one table can hold those of several parts if no key that stays lies between them. RocksDB asks at their starts as well.
///
/// ```
/// use outcrop::SstPartitioner;
///
/// /// Every key has a table of its own.
/// struct Alone;
///
/// impl SstPartitioner for Alone {
///     fn must_end(&mut self, _: &[u8], _: &[u8], _: u64) -> bool {
///         true
///     }
/// }
/// # assert!(!Alone.may_move(b"a", b"b"));
/// ```
pub trait SstPartitioner: Send {
    /// True if a table of about `file_size` bytes whose last user key is `last` must end before `next`.
    fn must_end(&mut self, last: &[u8], next: &[u8], file_size: u64) -> bool;

    /// True if a table with these first and last user keys may be moved to its next level as it is, the last one as well. Default: if it
    /// need not end between them. Called with the state of the database locked: it must not wait, nor call the database.
    fn may_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        !self.must_end(smallest, largest, 0)
    }
}

/// The facts about the output for which a partitioner is made.
///
/// ```
/// let context = outcrop::PartitionerContext { is_full_compaction: true, is_manual_compaction: true, output_level: 6 };
/// assert!(context.output_level > 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionerContext {
    /// The compaction reads everything of the column family.
    pub is_full_compaction: bool,
    /// Somebody asked for it.
    pub is_manual_compaction: bool,
    /// Where the tables go.
    pub output_level: usize,
}

/// A table for each prefix of this many bytes. Shorter keys are compared as a whole.
///
/// ```
/// use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, ColumnFamilyParts, Db, Env, FixedPrefixPartitioner};
/// use std::sync::Arc;
///
/// let parts = ColumnFamilyParts {
///     sst_partitioner: Some(Arc::new(FixedPrefixPartitioner(1))),
///     ..ColumnFamilyParts::default()
/// };
/// let family = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts);
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(family).open()?;
/// for key in ["a1", "a2", "b1"] {
///     db.put(key, "")?;
/// }
/// db.compact_range(None, None)?;
/// assert_eq!(db.live_files().len(), 2);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedPrefixPartitioner(pub usize);

impl SstPartitionerFactory for FixedPrefixPartitioner {
    fn name(&self) -> &str {
        "SstPartitionerFixedPrefixFactory"
    }

    fn options_text(&self) -> String {
        outcrop_options::kept::fixed_prefix_partitioner(self.0)
    }

    fn create(&self, _: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
        Some(Box::new(*self))
    }
}

impl SstPartitioner for FixedPrefixPartitioner {
    fn must_end(&mut self, last: &[u8], next: &[u8], _: u64) -> bool {
        let prefix = |key: &[u8]| key.len().min(self.0);
        last[..prefix(last)] != next[..prefix(next)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_compared_as_a_whole() {
        let ends =
            |last: &str, next: &str| FixedPrefixPartitioner(2).must_end(last.as_bytes(), next.as_bytes(), 0);
        assert!(!ends("aa1", "aa2") && !ends("aa", "aa1"));
        assert!(ends("aa", "ab") && ends("a", "aa") && ends("", "a"));
        assert!(!FixedPrefixPartitioner(0).must_end(b"a", b"b", 0));
        assert!(
            FixedPrefixPartitioner(1).may_move(b"a1", b"a9")
                && !FixedPrefixPartitioner(1).may_move(b"a", b"b")
        );
    }
}

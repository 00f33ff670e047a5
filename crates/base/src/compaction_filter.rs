//! The application's say in what compaction keeps.
//!
//! A filter is asked about the newest version of each key that a compaction reads, whether or not a snapshot sees it.
//! Source: RocksDB `include/rocksdb/compaction_filter.h`.

use std::sync::Arc;

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays.
    Keep,
    /// The key is deleted, as if by a delete at the value's place in history.
    Remove,
    /// It becomes this value.
    ChangeValue(Vec<u8>),
}

/// Asked by compactions, each from its own thread; a filter set on a column family may be asked by several at once.
pub trait CompactionFilter: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// What becomes of `value` of `key`, which the compaction writes to `level`.
    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;

    /// True if the merge operand `operand` of `key` goes.
    fn removes_merge_operand(&self, level: usize, key: &[u8], operand: &[u8]) -> bool {
        let _ = (level, key, operand);
        false
    }
}

/// What a factory is told of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterContext {
    /// It reads everything of the column family.
    pub is_full_compaction: bool,
    /// Somebody asked for it.
    pub is_manual_compaction: bool,
    /// Of this column family.
    pub column_family_id: u32,
}

/// Makes a filter for each compaction.
pub trait CompactionFilterFactory: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The filter of one compaction; `None`: it goes unfiltered.
    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>>;
}

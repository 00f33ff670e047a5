//! Compaction filters: the application decides about each key that a compaction writes.
//!
//! A filter is asked about the newest version of each key that a compaction reads, whether or not a snapshot sees it; of merge operands about
//! each that no snapshot sees.
//! Source: RocksDB `include/rocksdb/compaction_filter.h`.

use std::sync::Arc;

/// The fate of a value, or of a merge operand.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::FilterDecision;
///
/// fn without_empty_values(value: &[u8]) -> FilterDecision {
///     if value.is_empty() { FilterDecision::Remove } else { FilterDecision::Keep }
/// }
/// # assert_eq!(without_empty_values(b""), FilterDecision::Remove);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterDecision {
    /// It stays.
    Keep,
    /// The key is deleted, as if by a delete at the value's place in history. Of operands only this one goes.
    Remove,
    /// It becomes this value, or this operand.
    ChangeValue(Vec<u8>),
}

/// Asked by compactions, each from its own thread; a filter set on a column family may be asked by several at once.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::{CompactionFilter, FilterDecision};
///
/// /// Values begin with the second since the epoch at which they expire, big-endian.
/// struct Expiry(u64);
///
/// impl CompactionFilter for Expiry {
///     fn name(&self) -> &str {
///         "example.expiry"
///     }
///
///     fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
///         match value.first_chunk() {
///             Some(expires) if u64::from_be_bytes(*expires) < self.0 => FilterDecision::Remove,
///             _ => FilterDecision::Keep,
///         }
///     }
/// }
/// # assert_eq!(Expiry(7).filter(0, b"", &[0; 8]), FilterDecision::Remove);
/// ```
pub trait CompactionFilter: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Decides about `value` of `key`, which the compaction writes to `level`.
    fn filter(&self, level: usize, key: &[u8], value: &[u8]) -> FilterDecision;

    /// True if the merge operand `operand` of `key` goes.
    fn removes_merge_operand(&self, level: usize, key: &[u8], operand: &[u8]) -> bool {
        let _ = (level, key, operand);
        false
    }

    /// Decides about the merge operand `operand` of `key`; for a filter that can say more than [`CompactionFilter::removes_merge_operand`],
    /// which is not asked then.
    fn filter_merge_operand(&self, level: usize, key: &[u8], operand: &[u8]) -> FilterDecision {
        match self.removes_merge_operand(level, key, operand) {
            true => FilterDecision::Remove,
            false => FilterDecision::Keep,
        }
    }
}

/// The facts that a factory learns about a compaction.
///
/// ```
/// # use outcrop_base as outcrop;
/// # use outcrop::FilterContext;
/// # let context = FilterContext { is_full_compaction: true, is_manual_compaction: false, column_family_id: 0 };
/// // A filter that must see every version of a key is only right when everything is read.
/// let filter = context.is_full_compaction.then_some("a filter");
/// # assert!(filter.is_some());
/// ```
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
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::{CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision};
/// use std::sync::Arc;
///
/// struct Nothing;
/// impl CompactionFilter for Nothing {
///     fn name(&self) -> &str {
///         "example.nothing"
///     }
///     fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
///         FilterDecision::Remove
///     }
/// }
///
/// /// Empties the column family when somebody asks for a full compaction.
/// struct OnRequest;
/// impl CompactionFilterFactory for OnRequest {
///     fn name(&self) -> &str {
///         "example.on_request"
///     }
///     fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>> {
///         (context.is_manual_compaction && context.is_full_compaction).then(|| Arc::new(Nothing) as _)
///     }
/// }
/// # let context = FilterContext { is_full_compaction: true, is_manual_compaction: true, column_family_id: 0 };
/// # assert!(OnRequest.create(context).is_some());
/// ```
pub trait CompactionFilterFactory: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The filter of one compaction; `None`: it goes unfiltered.
    fn create(&self, context: FilterContext) -> Option<Arc<dyn CompactionFilter>>;
}

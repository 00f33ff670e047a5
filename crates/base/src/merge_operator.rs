//! The application's rule for combining merge operands.

/// Combines a key's existing value with the operands written by `merge`.
///
/// Source: RocksDB `include/rocksdb/merge_operator.h`.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::MergeOperator;
///
/// /// Joins operands with commas.
/// struct Join;
///
/// impl MergeOperator for Join {
///     fn name(&self) -> &str {
///         "example.join"
///     }
///
///     fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
///         Some(existing.iter().chain(operands).copied().collect::<Vec<_>>().join(&b','))
///     }
///
///     fn partial_merge(&self, _key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
///         Some(operands.join(&b','))
///     }
/// }
///
/// assert_eq!(Join.full_merge(b"key", Some(b"a"), &[b"b", b"c"]), Some(b"a,b,c".to_vec()));
/// ```
pub trait MergeOperator: Send + Sync {
    /// The name stored in table properties and OPTIONS.
    fn name(&self) -> &str;

    /// The value that results from applying `operands`, oldest first, to `existing` (`None`: no value).
    /// `None` reports that the operands cannot be applied; the read or compaction then fails as corrupt.
    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// Combines adjacent operands, oldest first, into one operand; `None` if that is not possible, and
    /// all are then kept.
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

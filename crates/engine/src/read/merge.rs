//! Applying a merge operator to what a read or a compaction collected.

use crate::column_family::ColumnFamily;
use outcrop_base::{Error, MergeOperator, Result, ValueType, wide_columns};

/// The value of `key` after applying `newest_first` operands to `base`.
///
/// # Errors
/// InvalidArgument without an operator; Corruption if the operator refuses. The texts are RocksDB's.
pub fn full_merge(
    operator: Option<&dyn MergeOperator>,
    key: &[u8],
    base: Option<&[u8]>,
    newest_first: &[Vec<u8>],
) -> Result<Vec<u8>> {
    let operator = operator.ok_or_else(missing_operator)?;
    let operands: Vec<&[u8]> = newest_first.iter().rev().map(Vec::as_slice).collect();
    operator.full_merge(key, base, &operands).ok_or_else(|| Error::corruption("Merge operator failed"))
}

/// The entity `entity`, which has its values in it, with `merge` applied to its default column.
pub fn merge_entity(entity: &[u8], merge: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let columns = wide_columns::decode(entity)?;
    let default =
        columns.first().filter(|column| column.name.is_empty()).map_or(&[][..], |column| column.value);
    let merged = merge(Some(default))?;
    let mut pairs: Vec<(&[u8], &[u8])> = vec![(b"", &merged)];
    pairs.extend(columns.iter().filter(|column| !column.name.is_empty()).map(|c| (c.name, c.value)));
    let mut out = Vec::new();
    wide_columns::encode(&pairs, &mut out)?;
    Ok(out)
}

/// The error of a merge without an operator. Nothing is lost: with the operator the key can be read.
///
/// Source: RocksDB `db/merge_helper.cc`.
fn missing_operator() -> Error {
    Error::invalid_argument("merge_operator is not properly initialized.")
}

/// The same, met by an iterator. Source: RocksDB `db/db_iter.cc`.
pub fn missing_operator_of_iterator() -> Error {
    Error::invalid_argument("merge_operator_ must be set.")
}

/// The operator of a column family.
pub fn operator_of(cf: &ColumnFamily) -> Option<&dyn MergeOperator> {
    cf.merge_operator.as_deref()
}

/// The error for an entry type this engine does not implement.
pub fn unsupported_type(value_type: ValueType) -> Error {
    Error::not_supported(format!("a table entry has type {value_type:?}, which this engine cannot read"))
}

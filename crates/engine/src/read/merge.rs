//! Applying a merge operator to what a read or a compaction collected.

use crate::column_family::ColumnFamily;
use outcrop_base::{Error, ErrorKind, MergeOperator, Result, wide_columns};

/// The value of `key` after applying `newest_first` operands to `base`.
///
/// # Errors
/// MergeInProgress without an operator; Corruption if the operator refuses.
pub fn full_merge(
    operator: Option<&dyn MergeOperator>,
    key: &[u8],
    base: Option<&[u8]>,
    newest_first: &[Vec<u8>],
) -> Result<Vec<u8>> {
    let operator = operator.ok_or_else(missing_operator)?;
    let operands: Vec<&[u8]> = newest_first.iter().rev().map(Vec::as_slice).collect();
    operator.full_merge(key, base, &operands).ok_or_else(|| {
        Error::corruption(format!(
            "merge operator {} cannot merge {} operands of a key of {} bytes",
            operator.name(),
            operands.len(),
            key.len()
        ))
    })
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

/// The error of a merge without an operator.
pub fn missing_operator() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "the data holds merge operands; open the column family with its merge_operator",
    )
}

/// The operator of a column family.
pub fn operator_of(cf: &ColumnFamily) -> Option<&dyn MergeOperator> {
    cf.merge_operator.as_deref()
}

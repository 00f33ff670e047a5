//! The first and the last internal key of a table, read from the table itself.

use outcrop_base::{Comparator, Error, RangeTombstone, Result};
use outcrop_table::{Loading, TableIterOptions, TableReader};
use std::sync::Arc;

/// First and last internal key, range tombstones included.
///
/// # Errors
/// InvalidArgument for a table without entries; of reading it.
pub fn boundaries(table: &Arc<TableReader>, comparator: &Comparator) -> Result<(Vec<u8>, Vec<u8>)> {
    let keys: Vec<Vec<u8>> = point_boundaries(table)?.into_iter().flat_map(|(a, b)| [a, b]).collect();
    let tombstones = table.range_tombstones();
    let order = |a: &Vec<u8>, b: &Vec<u8>| comparator.compare_internal(a, b);
    let smallest = keys.iter().cloned().chain(tombstones.iter().map(RangeTombstone::start_key)).min_by(order);
    let largest = keys.iter().cloned().chain(tombstones.iter().map(RangeTombstone::end_key)).max_by(order);
    smallest.zip(largest).ok_or_else(|| Error::invalid_argument("the file has no entries"))
}

/// First and last internal key but for range tombstones; `None` if there is nothing else.
///
/// # Errors
/// Of reading it.
pub fn point_boundaries(table: &Arc<TableReader>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut iter = table.iter(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 0,
        ..TableIterOptions::default()
    });
    iter.seek_to_first();
    if !iter.valid() {
        iter.status()?;
        return Ok(None);
    }
    let first = iter.key().to_vec();
    iter.seek_to_last();
    if !iter.valid() {
        iter.status()?;
        return Err(Error::corruption("a table has a first key and no last one"));
    }
    Ok(Some((first, iter.key().to_vec())))
}

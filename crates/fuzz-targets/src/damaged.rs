//! Reads all that is whole of a table that may be damaged, and compares it with what the reader of whole tables shows.

use crate::bytes_file::file;
use crate::checks::{Rows, named, rows_in_order};
use outcrop_base::{Comparator, Result};
use outcrop_table::{DamagedTable, ExpectedTable, TablePart};

/// Bytes of data that are searched for blocks, where the index is damaged: the work grows with their third power.
const SEARCHED: u64 = 400;

/// A whole table, of which a MANIFEST says nothing, and one of which it says where data ends.
pub fn damaged_table(input: &[u8]) {
    let ends_early =
        ExpectedTable { tail_size: (input.len() as u64).saturating_sub(SEARCHED).max(1), seqs: None };
    for expected in [ExpectedTable::default(), ends_early] {
        match salvage(input, expected) {
            Ok(Some(rows)) => {
                if let Some(read) = rows_in_order(input) {
                    assert!(
                        rows == read,
                        "nothing is damaged, and {} of {} rows come over",
                        rows.len(),
                        read.len()
                    );
                }
            }
            Ok(None) => {}
            Err(error) => named(&error),
        }
    }
}

/// All rows, if nothing of the table is damaged.
fn salvage(input: &[u8], expected: ExpectedTable) -> Result<Option<Rows>> {
    let order = Comparator::Bytewise;
    let table = DamagedTable::open(file(input), order.clone(), expected)?;
    let mut rows = Rows::new();
    let mut whole = table.damage().is_empty() && !table.lost_tombstones();
    table.each_part(|part| {
        match part {
            TablePart::Whole(entries) => {
                for (key, value) in entries.iter() {
                    let after = rows.last().is_none_or(|(last, _)| order.compare_internal(last, key).is_lt());
                    assert!(after, "an entry is not after the one before");
                    rows.push((key.to_vec(), value.to_vec()));
                }
            }
            TablePart::Damaged { offset, bytes, .. } => {
                whole = false;
                assert!(bytes > 0 || offset > 0 || input.is_empty(), "damage of nothing");
            }
        }
        Ok(())
    })?;
    Ok(whole.then_some(rows))
}

//! The offset that a session shares: one for all tests of a block, estimated and taken out before cells are
//! judged.
//!
//! ```text
//!            block 1  block 2  block 3                   log ratio = overall + test + block + rest
//! readrandom  -0.010   -0.021   -0.009
//! overwrite   -0.052   -0.061   -0.048   <- stands out   offset of a block = overall + block
//! seekrandom  -0.011   -0.019   -0.012                   what is judged    = log ratio - offset
//! ```
//! Runs have an offset of 0.1 to 2 % in common over all their tests. Without this step one cause makes 29 of 32 cells
//! blink. The offset is a row of its own in the report ("this build is 1.0 % slower on everything"), so nothing is
//! hidden: a change that more than half of the tests share is there, and what remains is what is special to a test.
//!
//! The offset of a block is the median of its log ratios over the tests that all blocks have: a test that did change must not pull it. The level of each test is not taken out
//! first. Median polish (Tukey) does that, and with an odd number of blocks each row has a cell that is its median, nothing is left of it, and the medians of columns stick
//! there: of noise alone all blocks have one offset, to the digit. Means of rows in place of medians do not stick, but their error is the same in all blocks, and in no interval.

use crate::error::{ErrorKind, Result, check, error};
use crate::paired::{PairedRatio, Settings, estimate};
use crate::summary::median;
use serde::{Deserialize, Serialize};

/// Fewest tests, measured in all blocks, from which an offset can be told from a change of a test.
pub const MIN_TESTS: usize = 5;

/// The offset of each block and what remains of each test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionOffset {
    /// Log ratio shared by all tests of a block, in block order.
    pub blocks: Vec<f64>,
    /// The row "everything": ratio of the offset over blocks. `None` for a single block.
    pub everything: Option<PairedRatio>,
    /// Log ratios without the offset, one row per test; `None` where nothing was measured.
    pub log_ratios: Vec<Vec<Option<f64>>>,
}

/// Estimates and removes the offset from `log_ratios`: one row per test, one column per block.
///
/// # Errors
/// Fewer than [`MIN_TESTS`] tests that were measured in all blocks, rows of different lengths, a test never measured, a value that
/// is not finite, or settings outside their domain.
pub fn remove_session_offset(log_ratios: &[Vec<Option<f64>>], settings: &Settings) -> Result<SessionOffset> {
    check_table(log_ratios)?;
    let complete: Vec<&Vec<Option<f64>>> =
        log_ratios.iter().filter(|row| row.iter().all(Option::is_some)).collect();
    if complete.len() < MIN_TESTS {
        let context = format!("all blocks have {} tests, {MIN_TESTS} are needed", complete.len());
        return Err(error(ErrorKind::TooFewValues, context));
    }
    let of_block = |block: usize| median(&complete.iter().filter_map(|row| row[block]).collect::<Vec<_>>());
    let blocks: Vec<f64> = (0..log_ratios[0].len()).map(of_block).collect();
    let without_offset = |row: &Vec<Option<f64>>| {
        row.iter().zip(&blocks).map(|(value, offset)| value.map(|value| value - offset)).collect()
    };
    Ok(SessionOffset {
        everything: if blocks.len() < 2 { None } else { Some(estimate(&blocks, settings)?) },
        log_ratios: log_ratios.iter().map(without_offset).collect(),
        blocks,
    })
}

fn column(table: &[Vec<Option<f64>>], index: usize) -> Vec<f64> {
    table.iter().filter_map(|row| row[index]).collect()
}

fn check_table(table: &[Vec<Option<f64>>]) -> Result<()> {
    let columns = table.first().map_or(0, Vec::len);
    if columns == 0 {
        return Err(error(ErrorKind::TooFewValues, "the table has no cells"));
    }
    for (index, row) in table.iter().enumerate() {
        if row.len() != columns {
            let context = format!("row {index} has {} columns, the first has {columns}", row.len());
            return Err(error(ErrorKind::LengthMismatch, context));
        }
        check(&format!("row {index}"), &row.iter().flatten().copied().collect::<Vec<_>>(), 1)?;
    }
    (0..columns).try_for_each(|index| check(&format!("column {index}"), &column(table, index), 1))
}

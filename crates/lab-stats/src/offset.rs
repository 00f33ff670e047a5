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
//! Median polish (Tukey) rather than means: a test that did change must not pull the offset.

use crate::error::{ErrorKind, Result, check, error};
use crate::paired::{PairedRatio, Settings, estimate};
use crate::summary::median;
use serde::{Deserialize, Serialize};

/// Fewest tests of a block from which an offset can be told from a change of a test.
pub const MIN_TESTS: usize = 5;

/// An additive decomposition of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MedianPolish {
    /// The level that all cells share.
    pub overall: f64,
    /// The addition of each row.
    pub rows: Vec<f64>,
    /// The addition of each column.
    pub columns: Vec<f64>,
    /// The residuals, row by row; `None` where nothing was measured.
    pub residuals: Vec<Vec<Option<f64>>>,
}

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
/// Fewer than [`MIN_TESTS`] measured tests in a block, rows of different lengths, a test never measured, a value that
/// is not finite, or settings outside their domain.
pub fn remove_session_offset(log_ratios: &[Vec<Option<f64>>], settings: &Settings) -> Result<SessionOffset> {
    let polish = median_polish(log_ratios)?;
    for block in 0..polish.columns.len() {
        let tests = column(log_ratios, block).len();
        if tests < MIN_TESTS {
            let context = format!("block {block} has {tests} tests, {MIN_TESTS} are needed");
            return Err(error(ErrorKind::TooFewValues, context));
        }
    }
    let blocks: Vec<f64> = polish.columns.iter().map(|column| polish.overall + column).collect();
    let without_offset = |row: &Vec<Option<f64>>| {
        row.iter().zip(&blocks).map(|(value, offset)| value.map(|value| value - offset)).collect()
    };
    Ok(SessionOffset {
        everything: if blocks.len() < 2 { None } else { Some(estimate(&blocks, settings)?) },
        log_ratios: log_ratios.iter().map(without_offset).collect(),
        blocks,
    })
}

/// Splits a table into overall, row and column effects by alternately subtracting medians.
///
/// # Errors
/// No cells, rows of different lengths, a row or column without a value, or a value that is not finite.
pub fn median_polish(table: &[Vec<Option<f64>>]) -> Result<MedianPolish> {
    /// Sweeps; the error after so many is below the noise of a median.
    const SWEEPS: usize = 100;
    check_table(table)?;
    let columns = table[0].len();
    let mut polish = MedianPolish {
        overall: 0.0,
        rows: vec![0.0; table.len()],
        columns: vec![0.0; columns],
        residuals: table.to_vec(),
    };
    for _ in 0..SWEEPS {
        let moved = polish.sweep_rows() + polish.sweep_columns();
        if moved < 1e-14 {
            break;
        }
    }
    Ok(polish)
}

impl MedianPolish {
    /// Moves row medians out of the residuals; returns how much was moved.
    fn sweep_rows(&mut self) -> f64 {
        let mut moved = 0.0;
        for (row, effect) in self.residuals.iter_mut().zip(&mut self.rows) {
            let centre = median(&row.iter().flatten().copied().collect::<Vec<_>>());
            row.iter_mut().flatten().for_each(|value| *value -= centre);
            *effect += centre;
            moved += centre.abs();
        }
        let shared = median(&self.rows);
        self.rows.iter_mut().for_each(|effect| *effect -= shared);
        self.overall += shared;
        moved
    }

    /// Moves column medians out of the residuals; returns how much was moved.
    fn sweep_columns(&mut self) -> f64 {
        let mut moved = 0.0;
        for (index, effect) in self.columns.iter_mut().enumerate() {
            let centre = median(&column(&self.residuals, index));
            self.residuals
                .iter_mut()
                .filter_map(|row| row[index].as_mut())
                .for_each(|value| *value -= centre);
            *effect += centre;
            moved += centre.abs();
        }
        let shared = median(&self.columns);
        self.columns.iter_mut().for_each(|effect| *effect -= shared);
        self.overall += shared;
        moved
    }
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

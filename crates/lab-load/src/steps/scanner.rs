//! The scan beside the measured threads: not counted, as fast as it can.

use super::{Board, Step};
use crate::Database;
use crate::rng::Mt19937_64;
use std::sync::atomic::Ordering;

/// Reads rows in key order from a random key on, and from the first again after the last, until told to stop. Each round sees the
/// database as it is when the round begins.
///
/// Source: RocksDB `tools/db_bench_tool.cc`, `ReadWhileScanning`, whose scan begins at the first row, ends after so many rows as a thread
/// does lookups, and is counted with them.
pub(super) fn background_scan(db: &Database, step: &Step, seed: u64, board: &Board) {
    db.api.count_nothing_in_this_thread();
    let mut key = vec![0; step.key_size];
    step.layout.write(Mt19937_64::new(seed).next_u64() % step.num.max(step.writer_num), &mut key);
    let mut rows = db.rows_from(&key);
    loop {
        match rows.next_row() {
            Ok(Some(_)) => {
                // Relaxed: a number to be shown.
                board.beside.fetch_add(1, Ordering::Relaxed);
            }
            Ok(None) => rows = db.rows(),
            Err(error) => return board.fail(error),
        }
        // Relaxed: only says when to end.
        if board.stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

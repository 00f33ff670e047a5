//! What is not measured: bringing a database to rest, and the writer beside the measured threads.

use super::{Board, Step};
use crate::Database;
use crate::database::Durability;
use crate::keys::write_key;
use crate::rng::Mt19937_64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Flush, then L0 into the level below, then quiet.
///
/// The C API has no call for compacting L0 alone; a full `compact_range` also merges L0 away, and leaves both
/// engines with the same known shape.
pub(super) fn settle(db: &Database) -> Result<(), String> {
    db.flush()?;
    wait_for_compaction(db)?;
    db.compact();
    wait_for_compaction(db)
}

/// Waits until nothing runs and nothing is due.
pub fn wait_for_compaction(db: &Database) -> Result<(), String> {
    const NAMES: [&str; 4] = [
        "rocksdb.num-running-compactions",
        "rocksdb.num-running-flushes",
        "rocksdb.compaction-pending",
        "rocksdb.mem-table-flush-pending",
    ];
    let deadline = Instant::now() + Duration::from_secs(600);
    let mut quiet = 0;
    while quiet < 10 {
        let busy = NAMES.iter().any(|name| db.property_int(name).unwrap_or(0) != 0);
        quiet = if busy { 0 } else { quiet + 1 };
        if Instant::now() > deadline {
            return Err("compaction was not done after 600 s".to_string());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    match db.property_int("rocksdb.background-errors") {
        Some(errors) if errors > 0 => Err("the engine reports a background error".to_string()),
        _ => Ok(()),
    }
}

/// How a rate-limited writer did.
#[derive(Clone, Copy)]
pub(super) struct WriterReport {
    /// Achieved over asked.
    pub achieved: f64,
    /// The longest time a write was behind its schedule.
    pub longest_lag: Duration,
}

impl WriterReport {
    /// No writer was asked for.
    pub const NONE: WriterReport = WriterReport { achieved: 1.0, longest_lag: Duration::ZERO };
}

/// Writes random keys at the step's rate until told to stop.
pub(super) fn background_writer(db: &Database, step: &Step, seed: u64, board: &Board) -> WriterReport {
    const SLICE: Duration = Duration::from_millis(10);
    let mut rng = Mt19937_64::new(seed);
    let mut values = step.values(seed);
    let mut key = vec![0; step.key_size];
    let rate = step.writer_rate.max(1) as f64;
    let start = Instant::now();
    // Bytes: sizes of values may differ.
    let (mut written, mut longest_lag) = (0u64, Duration::ZERO);
    let due_at = |written: u64| Duration::from_secs_f64(written as f64 / rate);
    while !board.stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate) as u64;
        while written < due && !board.stop.load(Ordering::Relaxed) {
            write_key(rng.next_u64() % step.writer_num, &mut key);
            let value = values.next_value();
            let done = if step.writer_merges {
                db.merge(Durability::Wal, &key, value)
            } else {
                db.put(Durability::Wal, &key, value)
            };
            written += (key.len() + value.len()) as u64;
            if let Err(error) = done {
                board.fail(error);
                return WriterReport { achieved: 0.0, longest_lag };
            }
            longest_lag = longest_lag.max(start.elapsed().saturating_sub(due_at(written)));
        }
        std::thread::sleep(SLICE);
    }
    let asked = start.elapsed().as_secs_f64() * rate;
    let pair = (step.key_size + step.value_size) as f64;
    WriterReport { achieved: if asked < pair { 1.0 } else { written as f64 / asked }, longest_lag }
}

//! The writer beside the measured threads: not counted, held to a rate.

use super::limit::{Limiter, RateReport};
use super::{Board, Step};
use crate::Database;
use crate::rng::Mt19937_64;
use std::sync::atomic::Ordering;

/// Writes random keys at the step's rate until told to stop.
pub(super) fn background_writer(db: &Database, step: &Step, seed: u64, board: &Board) -> RateReport {
    db.api.count_nothing_in_this_thread();
    let mut rng = Mt19937_64::new(seed);
    let mut values = step.values(seed);
    let mut key = vec![0; step.key_size];
    let mut batch = db.batch();
    let limiter = Limiter::new(step.writer_rate);
    // Relaxed: only says when to end.
    let over = || board.stop.load(Ordering::Relaxed);
    while !over() {
        step.layout.write(rng.next_u64() % step.writer_num, &mut key);
        let value = values.next_value();
        let bytes = (key.len() + value.len()) as u64;
        let done = if step.writer_merges {
            db.merge(step.durability, &key, value)
        } else {
            batch.put(&key, value);
            db.write(step.durability, &mut batch)
        };
        if let Err(error) = done {
            board.fail(error);
            return RateReport { achieved: 0.0, ..RateReport::NONE };
        }
        // Relaxed: a number to be shown.
        board.beside.fetch_add(1, Ordering::Relaxed);
        if let Some(limiter) = &limiter {
            limiter.take(bytes, over);
        }
    }
    limiter.map_or(RateReport::NONE, |limiter| limiter.report((step.key_size + step.value_size) as f64))
}

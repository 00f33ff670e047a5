//! `rocksdb_ratelimiter_*`: a limit on bytes per second that databases share.

use crate::memory::{give_back, hand_out};
use crate::options::rocksdb_options_t;
use libc::c_int;
use outcrop::{RateLimiter, RateLimiterMode, RateLimiterOptions};
use std::sync::Arc;

pub struct rocksdb_ratelimiter_t(pub Arc<RateLimiter>);

/// A limiter; a rate that is not above 0 becomes 1, as RocksDB's answer to it is undefined.
fn create(
    rate: i64,
    period: i64,
    fairness: i32,
    mode: c_int,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    let positive = |value: i64| u64::try_from(value).unwrap_or(1).max(1);
    hand_out(rocksdb_ratelimiter_t(Arc::new(RateLimiter::new(RateLimiterOptions {
        bytes_per_second: positive(rate),
        refill_period_micros: positive(period),
        fairness: fairness.clamp(1, 100) as u32,
        mode: match mode {
            0 => RateLimiterMode::ReadsOnly,
            2 => RateLimiterMode::All,
            _ => RateLimiterMode::WritesOnly,
        },
        auto_tuned,
    }))))
}

/// RocksDB's number of the mode that limits writes alone.
const WRITES_ONLY: c_int = 1;

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    boundary!(create(rate_bytes_per_sec, refill_period_us, fairness, WRITES_ONLY, false))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_auto_tuned(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
) -> *mut rocksdb_ratelimiter_t {
    boundary!(create(rate_bytes_per_sec, refill_period_us, fairness, WRITES_ONLY, true))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ratelimiter_create_with_mode(
    rate_bytes_per_sec: i64,
    refill_period_us: i64,
    fairness: i32,
    mode: c_int,
    auto_tuned: bool,
) -> *mut rocksdb_ratelimiter_t {
    boundary!(create(rate_bytes_per_sec, refill_period_us, fairness, mode, auto_tuned))
}

/// Databases and options that have it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_ratelimiter_destroy(limiter: *mut rocksdb_ratelimiter_t) {
    boundary!(give_back(limiter))
}

/// Null takes it away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_options_set_ratelimiter(
    options: *mut rocksdb_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    boundary!({
        (*options).objects.rate_limiter = limiter.as_ref().map(|limiter| limiter.0.clone());
    })
}

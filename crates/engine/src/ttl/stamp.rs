//! The time at the end of a stored value.

use outcrop_base::{Error, Result};
use outcrop_env::Clock;
use std::sync::atomic::{AtomicI32, Ordering};

/// Bytes of a stamp.
pub const STAMP_LEN: usize = 4;

/// No value was stamped before: May 2013, when RocksDB began to.
const FIRST: i32 = 1_368_146_402;

/// How many seconds values of a column family live; it can change at any time.
pub struct Ttl(AtomicI32);

impl Ttl {
    /// `seconds`; 0 and less: for ever.
    pub fn new(seconds: i32) -> Ttl {
        Ttl(AtomicI32::new(seconds))
    }

    pub fn get(&self) -> i32 {
        // Relaxed: a number by itself; a compaction may see it change on its way.
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, seconds: i32) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    /// True if `stored` was written so long ago that it may go. A value without a stamp stays.
    pub fn has_expired(&self, stored: &[u8], clock: &dyn Clock) -> bool {
        let ttl = self.get();
        let Some((_, stamp)) = stored.split_last_chunk::<STAMP_LEN>() else { return false };
        ttl > 0 && i64::from(u32::from_le_bytes(*stamp)) + i64::from(ttl) < seconds(clock)
    }
}

fn seconds(clock: &dyn Clock) -> i64 {
    (clock.now_micros() / 1_000_000) as i64
}

/// The stamp of what is written now.
pub fn now(clock: &dyn Clock) -> [u8; STAMP_LEN] {
    (seconds(clock) as i32).to_le_bytes()
}

/// `value` as it is stored.
pub fn stamped(value: &[u8], stamp: [u8; STAMP_LEN]) -> Vec<u8> {
    [value, &stamp].concat()
}

/// Takes a value of a [`crate::TtlDb`] apart, as the plain database below it stores it: the application's bytes, and the second since the
/// epoch when it was written.
///
/// ```
/// assert_eq!(outcrop::split_ttl_value(b"one\x00\x00\x00\x6a")?, (&b"one"[..], 0x6a00_0000));
/// assert!(outcrop::split_ttl_value(b"one").is_err());
/// # outcrop::Result::Ok(())
/// ```
///
/// # Errors
/// Corruption if it has no stamp, or one from before databases with TTL were: it was written past the layer.
///
/// Source: RocksDB `DBWithTTLImpl::SanityCheckTimestamp`.
pub fn split_ttl_value(stored: &[u8]) -> Result<(&[u8], i32)> {
    let Some((value, stamp)) = stored.split_last_chunk::<STAMP_LEN>() else {
        return Err(Error::corruption("Error: value's length less than timestamp's\n"));
    };
    let time = i32::from_le_bytes(*stamp);
    if time < FIRST {
        return Err(Error::corruption("Error: Timestamp < ttl feature release time!\n"));
    }
    Ok((value, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::clock::ManualClock;

    #[test]
    fn a_value_expires_after_its_time_and_not_with_it() {
        let stored = stamped(b"v", 1_500_000_000i32.to_le_bytes());
        let expired =
            |ttl: i32, at: u64| Ttl::new(ttl).has_expired(&stored, &ManualClock::at(at * 1_000_000));
        assert!(!expired(10, 1_500_000_009));
        assert!(!expired(10, 1_500_000_010));
        assert!(expired(10, 1_500_000_011));
        assert!(!expired(0, 1_600_000_000));
        assert!(!expired(-1, 1_600_000_000));
        assert!(!expired(i32::MAX, 3_000_000_000));
        assert!(!Ttl::new(1).has_expired(b"abc", &ManualClock::at(u64::MAX / 1000)), "no stamp");
    }

    #[test]
    fn stamps_are_checked() {
        let text = |stored: &[u8]| split_ttl_value(stored).unwrap_err().to_string();
        assert_eq!(text(b"abc"), "Corruption: Error: value's length less than timestamp's\n");
        assert_eq!(
            text(b"abcd\x00\x00\x00\x10"),
            "Corruption: Error: Timestamp < ttl feature release time!\n"
        );
        assert_eq!(text(b"\xff\xff\xff\xff"), "Corruption: Error: Timestamp < ttl feature release time!\n");
        assert_eq!(split_ttl_value(&FIRST.to_le_bytes()).unwrap(), (&b""[..], FIRST));
    }
}

//! User-defined timestamps: bytes after each user key, which say when a version of it holds.
//!
//! ```text
//! stored user key:  | key as the user gave it | timestamp, 8 bytes |
//! ```
//! A column family has them if its comparator says so ([`UserComparator::timestamp_len`]). Its stored keys are ordered by key,
//! then newest timestamp first, so that the versions of a key lie together. Three orders follow from one comparator:
//! of stored keys ([`Comparator`] itself), of the rows that stored keys belong to ([`Comparator::rows`]), and of keys
//! as users give them ([`Comparator::keys`]). Bytes: `docs/format/keys.md`.

use crate::comparator::{Comparator, UserComparator};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Length of a timestamp, in bytes. Other lengths are not supported.
pub const TIMESTAMP_LEN: usize = 8;

/// A user-defined timestamp: 8 bytes that the column family's comparator orders. The built-in comparators take them for a
/// little-endian number.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::Timestamp;
///
/// let noon = Timestamp::from(1_200);
/// assert_eq!(noon.number(), 1_200);
/// assert_eq!(Timestamp::from_bytes(noon.as_bytes())?, noon);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Timestamp([u8; TIMESTAMP_LEN]);

impl Timestamp {
    /// Not newer than any other.
    pub const MIN: Timestamp = Timestamp([0; TIMESTAMP_LEN]);
    /// Not older than any other.
    pub const MAX: Timestamp = Timestamp([0xFF; TIMESTAMP_LEN]);

    /// The timestamp of these bytes.
    ///
    /// # Errors
    /// InvalidArgument if they are not 8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Timestamp> {
        let given = bytes.len();
        let sizes = || format!("Timestamp sizes mismatch: expect {TIMESTAMP_LEN}, {given} given");
        bytes.try_into().map(Timestamp).map_err(|_| Error::invalid_argument(sizes()))
    }

    /// Its bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The number that the built-in comparators take it for.
    pub fn number(self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

impl From<u64> for Timestamp {
    fn from(number: u64) -> Timestamp {
        Timestamp(number.to_le_bytes())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({})", self.number())
    }
}

/// Splits a stored user key into the user's key and its timestamp; `None` if it is too short for one.
#[inline]
pub fn split_timestamp(stored: &[u8]) -> Option<(&[u8], Timestamp)> {
    let (key, timestamp) = stored.split_last_chunk::<TIMESTAMP_LEN>()?;
    Some((key, Timestamp(*timestamp)))
}

/// The stored user key of `key` at `timestamp`.
pub fn stored_key(key: &[u8], timestamp: Timestamp) -> Vec<u8> {
    [key, timestamp.as_bytes()].concat()
}

/// The key before the timestamp. Of bytes that are too short, which only damage can bring, nothing is left.
fn without(stored: &[u8]) -> &[u8] {
    &stored[..stored.len().saturating_sub(TIMESTAMP_LEN)]
}

/// The key of bytes that may end with a timestamp.
fn key_of((bytes, stored): (&[u8], bool)) -> &[u8] {
    if stored { without(bytes) } else { bytes }
}

/// The timestamp at the end; of bytes that are too short all of them.
fn timestamp_of(stored: &[u8]) -> &[u8] {
    &stored[stored.len().saturating_sub(TIMESTAMP_LEN)..]
}

/// Little-endian; missing bytes are 0.
fn number_of(timestamp: &[u8]) -> u64 {
    timestamp.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The built-in orders with timestamps: bytewise or its reverse, then newest first.
///
/// Source: RocksDB `util/comparator.cc`, `ComparatorWithU64TsImpl`.
struct U64Timestamps {
    reverse: bool,
}

impl UserComparator for U64Timestamps {
    fn name(&self) -> &str {
        match self.reverse {
            false => "leveldb.BytewiseComparator.u64ts",
            true => "rocksdb.ReverseBytewiseComparator.u64ts",
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let newest_first = || number_of(timestamp_of(b)).cmp(&number_of(timestamp_of(a)));
        self.compare_without_timestamps((a, true), (b, true)).then_with(newest_first)
    }

    fn timestamp_len(&self) -> usize {
        TIMESTAMP_LEN
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        number_of(a).cmp(&number_of(b))
    }

    fn timestamp_text(&self, timestamp: &[u8]) -> String {
        number_of(timestamp).to_string()
    }

    fn compare_without_timestamps(&self, a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
        let (a, b) = (key_of(a), key_of(b));
        let order = a.cmp(b);
        if self.reverse { order.reverse() } else { order }
    }
}

/// The order of the rows that stored keys belong to, or of keys without timestamps.
struct Passing {
    order: Arc<dyn UserComparator>,
    /// The keys end with timestamps.
    stored: bool,
}

impl UserComparator for Passing {
    fn name(&self) -> &str {
        self.order.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.order.compare_without_timestamps((a, self.stored), (b, self.stored))
    }
}

impl Comparator {
    /// Bytewise, with timestamps that are numbers: `leveldb.BytewiseComparator.u64ts`.
    ///
    /// ```
    /// # use outcrop_base as outcrop;
    /// use outcrop::Comparator;
    ///
    /// assert_eq!(Comparator::bytewise_with_timestamps().timestamp_len(), 8);
    /// ```
    pub fn bytewise_with_timestamps() -> Comparator {
        Comparator::User(Arc::new(U64Timestamps { reverse: false }))
    }

    /// The reverse of the bytewise order, with timestamps that are numbers: `rocksdb.ReverseBytewiseComparator.u64ts`.
    pub fn reverse_bytewise_with_timestamps() -> Comparator {
        Comparator::User(Arc::new(U64Timestamps { reverse: true }))
    }

    /// Length of the timestamps that stored keys end with, in bytes; 0 if they have none.
    #[inline]
    pub fn timestamp_len(&self) -> usize {
        match self {
            Comparator::User(user) => user.timestamp_len(),
            _ => 0,
        }
    }

    /// The order of the rows that stored keys belong to: the same one, without a look at timestamps.
    pub fn rows(&self) -> Comparator {
        self.passing(true)
    }

    /// The order of keys as users give them, which have no timestamps.
    pub fn keys(&self) -> Comparator {
        match self.name() {
            _ if self.timestamp_len() == 0 => self.clone(),
            "leveldb.BytewiseComparator.u64ts" => Comparator::Bytewise,
            "rocksdb.ReverseBytewiseComparator.u64ts" => Comparator::ReverseBytewise,
            _ => self.passing(false),
        }
    }

    fn passing(&self, stored: bool) -> Comparator {
        match self {
            Comparator::User(order) if order.timestamp_len() > 0 => {
                Comparator::User(Arc::new(Passing { order: order.clone(), stored }))
            }
            _ => self.clone(),
        }
    }

    /// Compares two timestamps, older first. Without timestamps all are equal.
    pub fn compare_timestamps(&self, a: Timestamp, b: Timestamp) -> Ordering {
        match self {
            Comparator::User(user) => user.compare_timestamps(a.as_bytes(), b.as_bytes()),
            _ => Ordering::Equal,
        }
    }
}

impl Comparator {
    /// A timestamp as errors show it.
    pub fn timestamp_text(&self, timestamp: Timestamp) -> String {
        match self {
            Comparator::User(user) => user.timestamp_text(timestamp.as_bytes()),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_key_lie_together_newest_first() {
        for (order, keys) in [
            (Comparator::bytewise_with_timestamps(), ["", "a", "a\0", "b"]),
            (Comparator::reverse_bytewise_with_timestamps(), ["b", "a\0", "a", ""]),
        ] {
            let mut sorted = Vec::new();
            for key in keys {
                for timestamp in [u64::MAX, 256, 255, 1, 0] {
                    sorted.push(stored_key(key.as_bytes(), timestamp.into()));
                }
            }
            assert!(sorted.is_sorted_by(|a, b| order.compare(a, b).is_lt()), "{order:?}");
            let rows = order.rows();
            assert!(rows.same(&sorted[5], &sorted[9]) && rows.compare(&sorted[4], &sorted[5]).is_lt());
            assert_eq!(rows.timestamp_len(), 0);
            assert!(order.keys().compare(keys[0].as_bytes(), keys[1].as_bytes()).is_lt());
        }
    }

    #[test]
    fn names_give_the_built_in_orders() {
        for order in [Comparator::bytewise_with_timestamps(), Comparator::reverse_bytewise_with_timestamps()]
        {
            let named = Comparator::by_name(order.name()).expect("it is built in");
            assert_eq!((named.name(), named.timestamp_len()), (order.name(), 8));
        }
        assert_eq!(Comparator::Bytewise.timestamp_len(), 0);
    }

    #[test]
    fn damaged_keys_are_ordered_without_a_panic() {
        let order = Comparator::bytewise_with_timestamps();
        let keys: [&[u8]; 4] = [b"", b"abc", b"12345678", b"x12345678"];
        for a in keys {
            for b in keys {
                assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
            }
        }
        assert!(split_timestamp(b"1234567").is_none());
    }

    #[test]
    fn timestamps_of_another_length_are_refused_in_rocksdbs_words() {
        let error = Timestamp::from_bytes(b"1234").unwrap_err();
        assert_eq!(error.to_string(), "Invalid argument: Timestamp sizes mismatch: expect 8, 4 given");
    }
}

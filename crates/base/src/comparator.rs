//! Key order: a built-in bytewise comparator that compiles to memcmp, its reverse, and user-supplied ones.

use crate::keys::{Trailer, prefix_u64, split};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A total order on user keys supplied by the application.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::{Comparator, UserComparator};
/// use std::cmp::Ordering;
/// use std::sync::Arc;
///
/// /// Shorter keys first.
/// struct ByLength;
///
/// impl UserComparator for ByLength {
///     fn name(&self) -> &str {
///         "example.by_length"
///     }
///
///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
///         a.len().cmp(&b.len()).then_with(|| a.cmp(b))
///     }
/// }
///
/// let order = Comparator::User(Arc::new(ByLength));
/// assert!(order.compare(b"z", b"aa").is_lt());
/// ```
pub trait UserComparator: Send + Sync {
    /// The name stored in the MANIFEST; a database opens only under the same name.
    fn name(&self) -> &str;
    /// Compares two user keys, with their timestamps if there are some. Must be a total order and must never change for a database.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// Length of the timestamp that each stored key ends with, in bytes: 0 (none; the default) or 8. With one the two methods below
    /// are needed, and `compare` must order keys by [`UserComparator::compare_without_timestamps`], then newest timestamp first.
    fn timestamp_len(&self) -> usize {
        0
    }

    /// Compares two timestamps, older first.
    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    /// A timestamp as errors show it. Default: nothing, as in RocksDB.
    fn timestamp_text(&self, timestamp: &[u8]) -> String {
        let _ = timestamp;
        String::new()
    }

    /// Compares two keys without a look at timestamps, which each may end with: the second of each pair says so.
    fn compare_without_timestamps(&self, a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
        self.compare(a.0, b.0)
    }
}

/// The order of user keys of one column family.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::Comparator;
///
/// assert!(Comparator::ReverseBytewise.compare(b"b", b"a").is_lt());
/// assert_eq!(Comparator::default().name(), "leveldb.BytewiseComparator");
/// ```
#[derive(Clone, Default)]
pub enum Comparator {
    /// Lexicographic by unsigned bytes: RocksDB's default.
    #[default]
    Bytewise,
    /// The reverse of [`Comparator::Bytewise`].
    ReverseBytewise,
    /// The application's own order.
    User(Arc<dyn UserComparator>),
}

impl fmt::Debug for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Comparator {
    /// The name as RocksDB stores it.
    pub fn name(&self) -> &str {
        match self {
            Comparator::Bytewise => "leveldb.BytewiseComparator",
            Comparator::ReverseBytewise => "rocksdb.ReverseBytewiseComparator",
            Comparator::User(user) => user.name(),
        }
    }

    /// The built-in order of that name.
    pub fn by_name(name: &str) -> Option<Comparator> {
        let stamped =
            [Comparator::bytewise_with_timestamps(), Comparator::reverse_bytewise_with_timestamps()];
        let plain = [Comparator::Bytewise, Comparator::ReverseBytewise];
        plain.into_iter().chain(stamped).find(|known| known.name() == name)
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Comparator::Bytewise => a.cmp(b),
            Comparator::ReverseBytewise => b.cmp(a),
            Comparator::User(user) => user.compare(a, b),
        }
    }

    /// Compares two internal keys: user key ascending, then newest first.
    #[inline]
    pub fn compare_internal(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((a_key, a_trailer), (b_key, b_trailer)) = (split(a), split(b));
        self.compare(a_key, b_key).then_with(|| b_trailer.cmp(&a_trailer))
    }

    /// Compares (user key, trailer) pairs: user key ascending, then newest first.
    #[inline]
    pub fn compare_parts(&self, a: (&[u8], Trailer), b: (&[u8], Trailer)) -> Ordering {
        self.compare(a.0, b.0).then_with(|| b.1.cmp(&a.1))
    }

    /// A number that orders user keys as far as it can: `a` before `b` implies `prefix(a) <= prefix(b)`.
    ///
    /// Equal prefixes decide nothing; a user-supplied order gives 0 for every key.
    #[inline]
    pub fn prefix(&self, user_key: &[u8]) -> u64 {
        match self {
            Comparator::Bytewise => prefix_u64(user_key),
            Comparator::ReverseBytewise => !prefix_u64(user_key),
            Comparator::User(_) => 0,
        }
    }

    /// Whether two user keys are the same key, which a user-supplied order may say of different bytes.
    #[inline]
    pub fn same(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            Comparator::User(_) => a == b || self.compare(a, b).is_eq(),
            // Neighbours in a table mostly differ in their last byte: looked at first, it saves a call.
            _ => a.last() == b.last() && a == b,
        }
    }

    /// True for the default order, on which the fast paths are built.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, Comparator::Bytewise)
    }

    /// True for an order that takes a call to the application.
    #[inline]
    pub fn is_user(&self) -> bool {
        matches!(self, Comparator::User(_))
    }

    /// A short user key `k` with `start <= k < limit`, to keep index blocks small.
    ///
    /// Source: RocksDB `util/comparator.cc`, `FindShortestSeparator`.
    pub fn shortest_separator(&self, start: &[u8], limit: &[u8]) -> Vec<u8> {
        match self {
            Comparator::Bytewise => bytewise_separator(start, limit),
            // RocksDB's reverse order only cuts a common prefix; leaving the key whole is equally valid.
            Comparator::ReverseBytewise | Comparator::User(_) => start.to_vec(),
        }
    }

    /// The separator between two neighbouring internal keys: `start <= separator < limit`.
    ///
    /// A shortened user key carries the largest trailer, so that it sorts before every real version of it.
    pub fn internal_separator(&self, start: &[u8], limit: &[u8]) -> Vec<u8> {
        let (start_user, limit_user) =
            (&start[..start.len() - Trailer::LEN], &limit[..limit.len() - Trailer::LEN]);
        let mut separator = self.shortest_separator(start_user, limit_user);
        if separator.len() < start_user.len() && self.compare(start_user, &separator) == Ordering::Less {
            separator.extend_from_slice(&SEPARATOR_FOOTER);
            return separator;
        }
        start.to_vec()
    }

    /// A short internal key at or after `key`: its user key cut after the first byte that can be raised, with
    /// the largest trailer. `key` itself where there is no shorter one.
    ///
    /// Source: RocksDB `util/comparator.cc`, `FindShortSuccessor`.
    pub fn internal_successor(&self, key: &[u8]) -> Vec<u8> {
        let user_key = &key[..key.len() - Trailer::LEN];
        match user_key.iter().position(|&byte| byte != 0xFF) {
            Some(at) if self.is_bytewise() && at + 1 < user_key.len() => {
                let mut successor = user_key[..=at].to_vec();
                successor[at] += 1;
                successor.extend_from_slice(&SEPARATOR_FOOTER);
                successor
            }
            _ => key.to_vec(),
        }
    }
}

/// Maximum sequence number and the seek type, little-endian.
const SEPARATOR_FOOTER: [u8; 8] = [0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];

fn bytewise_separator(start: &[u8], limit: &[u8]) -> Vec<u8> {
    let common = start.iter().zip(limit).take_while(|(a, b)| a == b).count();
    if common >= start.len() || common >= limit.len() || start[common] >= limit[common] {
        return start.to_vec();
    }
    if common + 1 < limit.len() || start[common] + 1 < limit[common] {
        let mut separator = start[..=common].to_vec();
        separator[common] += 1;
        return separator;
    }
    // Raising this byte would reach the limit: raise the first later byte that can be raised.
    match start[common + 1..].iter().position(|&byte| byte != 0xFF) {
        Some(offset) => {
            let raised = common + 1 + offset;
            let mut separator = start[..=raised].to_vec();
            separator[raised] += 1;
            separator
        }
        None => start.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{SeqNum, ValueType, internal_key};

    #[test]
    fn successors_are_short_and_not_before_the_key() {
        let successor = |user_key: &[u8]| {
            let key = internal_key(user_key, SeqNum(7), ValueType::Value);
            let successor = Comparator::Bytewise.internal_successor(&key);
            assert!(Comparator::Bytewise.compare_internal(&key, &successor).is_le());
            successor[..successor.len() - Trailer::LEN].to_vec()
        };
        assert_eq!(successor(b"abc"), b"b");
        assert_eq!(successor(b"\xff\xffab"), b"\xff\xffb");
        assert_eq!(successor(b"a"), b"a");
        assert_eq!(successor(b"\xff\xff"), b"\xff\xff");
        assert_eq!(successor(b""), b"");
    }

    #[test]
    fn separators_lie_between_their_neighbours() {
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"abcdef", b"abzz", b"abd"),
            (b"abc", b"abd", b"abc"),
            (b"abcq", b"abd", b"abcr"),
            (b"abc\xff\xff1", b"abd", b"abc\xff\xff2"),
            (b"abc", b"abcdef", b"abc"),
            (b"a", b"c", b"b"),
        ];
        for (start, limit, expected) in cases {
            let separator = Comparator::Bytewise.shortest_separator(start, limit);
            assert_eq!(separator, expected);
            assert!(start <= separator.as_slice() && separator.as_slice() < limit);
        }
    }

    #[test]
    fn internal_order_puts_newer_versions_first() {
        let newer = internal_key(b"k", SeqNum(9), ValueType::Value);
        let older = internal_key(b"k", SeqNum(3), ValueType::Value);
        assert_eq!(Comparator::Bytewise.compare_internal(&newer, &older), Ordering::Less);
    }

    #[test]
    fn reverse_prefix_orders_reversed() {
        let reverse = Comparator::ReverseBytewise;
        assert_eq!(reverse.compare(b"b", b"a"), Ordering::Less);
        assert!(reverse.prefix(b"b") < reverse.prefix(b"a"));
    }
}

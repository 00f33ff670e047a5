//! Ranges of user keys, as callers write them.

use outcrop_base::{Comparator, Error, Result};
use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Where a range of keys begins and ends.
///
/// ```
/// use outcrop::{KeyBounds, KeyRange};
/// use std::ops::Bound;
///
/// let bounds: KeyBounds = ("a"..="b").into_bounds();
/// assert_eq!(bounds, (Bound::Included(b"a".to_vec()), Bound::Included(b"b".to_vec())));
/// ```
pub type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A range of keys: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, or a pair of [`Bound`]s, of anything that is bytes. The order is that of
/// the column family; a range that ends before it begins is empty.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # for key in ["a", "ab", "b"] { db.put(key, "")?; }
/// assert_eq!(db.range("a".."b").count(), 2);
/// assert_eq!(db.range(b"ab"..).count(), 2);
/// assert_eq!(db.range(..=vec![b'a']).count(), 1);
/// # outcrop::Result::Ok(())
/// ```
pub trait KeyRange {
    /// Where it begins and ends. The bytes of the keys are copied once for the whole scan.
    fn into_bounds(self) -> KeyBounds;
}

fn owned(key: impl AsRef<[u8]>) -> Vec<u8> {
    key.as_ref().to_vec()
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Included(owned(self.start)), Bound::Excluded(owned(self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn into_bounds(self) -> KeyBounds {
        let (start, end) = self.into_inner();
        (Bound::Included(owned(start)), Bound::Included(owned(end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Included(owned(self.start)), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, Bound::Excluded(owned(self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, Bound::Included(owned(self.end)))
    }
}

impl KeyRange for RangeFull {
    fn into_bounds(self) -> KeyBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn into_bounds(self) -> KeyBounds {
        (self.0.map(owned), self.1.map(owned))
    }
}

/// The range of all keys that begin with `prefix`.
///
/// # Errors
/// NotSupported under an order of the application's own: such keys need not lie together.
pub fn of_prefix(prefix: &[u8], comparator: &Comparator) -> Result<KeyBounds> {
    let first = prefix.to_vec();
    let after = successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    match comparator {
        Comparator::Bytewise => Ok((Bound::Included(first), after)),
        // In the reverse order the prefix itself is the last of its keys.
        Comparator::ReverseBytewise => Ok((after, Bound::Included(first))),
        Comparator::User(user) => Err(Error::not_supported(format!(
            "under the order {} keys with one prefix need not lie together",
            user.name()
        ))),
    }
}

/// The first bytes after all that begin with `prefix`; `None` if there are none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_its_last_byte_that_can_be_raised_is_raised() {
        assert_eq!(successor(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(successor(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xFF"), None);
        assert_eq!(successor(b""), None);
    }
}

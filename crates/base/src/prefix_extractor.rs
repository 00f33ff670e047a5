//! Prefix extractors: the part of a user key that prefix filters and hash indexes hold.
//!
//! A table names the extractor it was built with; a filter of prefixes is asked only by a reader with the same.
//! Source: RocksDB `util/slice.cc`.

use std::borrow::Cow;

/// One of RocksDB's built-in prefix extractors.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::PrefixExtractor;
///
/// let tenant = PrefixExtractor::Fixed(4);
/// assert_eq!(tenant.transform(b"0007/users/ann"), Some(&b"0007"[..]));
/// assert_eq!(tenant.transform(b"7"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixExtractor {
    /// The first `n` bytes; shorter keys have no prefix.
    Fixed(usize),
    /// The first `n` bytes, or the whole key if it is shorter.
    Capped(usize),
    /// The whole key.
    Noop,
}

impl PrefixExtractor {
    /// The name, as RocksDB stores it in tables and OPTIONS.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            PrefixExtractor::Fixed(n) => format!("rocksdb.FixedPrefix.{n}").into(),
            PrefixExtractor::Capped(n) => format!("rocksdb.CappedPrefix.{n}").into(),
            PrefixExtractor::Noop => "rocksdb.Noop".into(),
        }
    }

    /// The extractor with this name, or with one of the short names RocksDB's options take (`fixed:8`,
    /// `capped:8`); `None` for any other.
    pub fn parse(name: &str) -> Option<PrefixExtractor> {
        let number = |prefixes: [&str; 2]| {
            let digits = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
            digits.parse::<usize>().ok()
        };
        if name == "rocksdb.Noop" {
            return Some(PrefixExtractor::Noop);
        }
        number(["rocksdb.FixedPrefix.", "fixed:"])
            .map(PrefixExtractor::Fixed)
            .or_else(|| number(["rocksdb.CappedPrefix.", "capped:"]).map(PrefixExtractor::Capped))
    }

    /// True if `user_key` has a prefix.
    #[inline]
    pub fn in_domain(self, user_key: &[u8]) -> bool {
        match self {
            PrefixExtractor::Fixed(n) => user_key.len() >= n,
            PrefixExtractor::Capped(_) | PrefixExtractor::Noop => true,
        }
    }

    /// The prefix of `user_key`; `None` if it has none.
    #[inline]
    pub fn transform(self, user_key: &[u8]) -> Option<&[u8]> {
        match self {
            PrefixExtractor::Fixed(n) => user_key.get(..n),
            PrefixExtractor::Capped(n) => Some(&user_key[..n.min(user_key.len())]),
            PrefixExtractor::Noop => Some(user_key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for extractor in [PrefixExtractor::Fixed(8), PrefixExtractor::Capped(3), PrefixExtractor::Noop] {
            assert_eq!(PrefixExtractor::parse(&extractor.name()), Some(extractor));
        }
        assert_eq!(PrefixExtractor::Fixed(8).name(), "rocksdb.FixedPrefix.8");
        assert_eq!(PrefixExtractor::parse("fixed:4"), Some(PrefixExtractor::Fixed(4)));
        assert_eq!(PrefixExtractor::parse("capped:4"), Some(PrefixExtractor::Capped(4)));
        assert_eq!(PrefixExtractor::parse("rocksdb.FixedPrefix"), None);
        assert_eq!(PrefixExtractor::parse("mine"), None);
    }

    #[test]
    fn prefixes_of_short_keys() {
        assert_eq!(PrefixExtractor::Fixed(3).transform(b"ab"), None);
        assert!(!PrefixExtractor::Fixed(3).in_domain(b"ab"));
        assert_eq!(PrefixExtractor::Fixed(3).transform(b"abcd"), Some(&b"abc"[..]));
        assert_eq!(PrefixExtractor::Capped(3).transform(b"ab"), Some(&b"ab"[..]));
        assert_eq!(PrefixExtractor::Capped(3).transform(b"abcd"), Some(&b"abc"[..]));
        assert_eq!(PrefixExtractor::Noop.transform(b"ab"), Some(&b"ab"[..]));
    }
}

//! Prefix extractors: the part of a user key that prefix filters and hash indexes hold.
//!
//! A table names the extractor it was built with; a filter of prefixes is asked only by a reader with the same.
//! Source: RocksDB `util/slice.cc`, `include/rocksdb/slice_transform.h`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A rule of the application's own for the prefixes of keys.
///
/// Tables, memtables and the OPTIONS file know it by its name alone: whoever changes what it gives must change the name as well. A
/// table whose extractor has another name than the one in force is read without its filter of prefixes.
///
/// For the keys in its domain the engine relies on what RocksDB relies on: a key begins with its prefix; keys in ascending order have
/// prefixes in ascending order; a prefix has itself as its prefix; and no key outside of the domain lies between two keys with the same
/// prefix. Where that does not hold, seeks without `total_order_seek` and iterators with `prefix_same_as_start` may leave rows
/// out; everything else stays right.
///
/// Concurrency: called from any thread, by several at once, by readers, writers, flushes and compactions, and for any bytes: keys, bounds and
/// targets of seeks. A panic in it is one of the call that met it, or the failure of its write group, flush or compaction.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::{PrefixExtractor, UserPrefixExtractor};
/// use std::sync::Arc;
///
/// /// The tenant: what comes before the first slash, and the slash.
/// struct Tenant;
///
/// impl UserPrefixExtractor for Tenant {
///     fn name(&self) -> &str {
///         "example.tenant"
///     }
///
///     fn in_domain(&self, key: &[u8]) -> bool {
///         key.contains(&b'/')
///     }
///
///     fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
///         let end = key.iter().position(|&byte| byte == b'/').map_or(key.len(), |slash| slash + 1);
///         &key[..end]
///     }
/// }
///
/// let tenant = PrefixExtractor::User(Arc::new(Tenant));
/// assert_eq!(tenant.transform(b"acme/users/ann"), Some(&b"acme/"[..]));
/// assert_eq!(tenant.transform(b"acme"), None);
/// ```
///
/// Source: RocksDB `include/rocksdb/slice_transform.h`, `SliceTransform`; `options.h`, `prefix_extractor`.
pub trait UserPrefixExtractor: Send + Sync {
    /// The name that tables and the OPTIONS file store. Never that of one of RocksDB's own.
    fn name(&self) -> &str;
    /// True if `key` has a prefix.
    fn in_domain(&self, key: &[u8]) -> bool;
    /// The prefix of `key`, which is in the domain.
    fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8];
}

/// One of RocksDB's built-in prefix extractors, or the application's.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::PrefixExtractor;
///
/// let tenant = PrefixExtractor::Fixed(4);
/// assert_eq!(tenant.transform(b"0007/users/ann"), Some(&b"0007"[..]));
/// assert_eq!(tenant.transform(b"7"), None);
/// ```
#[derive(Clone)]
pub enum PrefixExtractor {
    /// The first `n` bytes; shorter keys have no prefix.
    Fixed(usize),
    /// The first `n` bytes, or the whole key if it is shorter.
    Capped(usize),
    /// The whole key.
    Noop,
    /// The application's own.
    User(Arc<dyn UserPrefixExtractor>),
}

/// Those of one name give the same prefixes.
impl PartialEq for PrefixExtractor {
    fn eq(&self, other: &PrefixExtractor) -> bool {
        match (self, other) {
            (PrefixExtractor::Fixed(a), PrefixExtractor::Fixed(b))
            | (PrefixExtractor::Capped(a), PrefixExtractor::Capped(b)) => a == b,
            (PrefixExtractor::Noop, PrefixExtractor::Noop) => true,
            (PrefixExtractor::User(a), PrefixExtractor::User(b)) => Arc::ptr_eq(a, b) || a.name() == b.name(),
            _ => false,
        }
    }
}

impl Eq for PrefixExtractor {}

impl fmt::Debug for PrefixExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl PrefixExtractor {
    /// The name, as RocksDB stores it in tables and OPTIONS.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            PrefixExtractor::Fixed(n) => format!("rocksdb.FixedPrefix.{n}").into(),
            PrefixExtractor::Capped(n) => format!("rocksdb.CappedPrefix.{n}").into(),
            PrefixExtractor::Noop => "rocksdb.Noop".into(),
            PrefixExtractor::User(user) => user.name().into(),
        }
    }

    /// The built-in extractor with this name, or with one of the short names RocksDB's options take (`fixed:8`,
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
    pub fn in_domain(&self, user_key: &[u8]) -> bool {
        match self {
            PrefixExtractor::Fixed(n) => user_key.len() >= *n,
            PrefixExtractor::Capped(_) | PrefixExtractor::Noop => true,
            PrefixExtractor::User(user) => user.in_domain(user_key),
        }
    }

    /// The prefix of `user_key`; `None` if it has none.
    #[inline]
    pub fn transform<'k>(&'k self, user_key: &'k [u8]) -> Option<&'k [u8]> {
        match self {
            PrefixExtractor::Fixed(n) => user_key.get(..*n),
            PrefixExtractor::Capped(n) => Some(&user_key[..(*n).min(user_key.len())]),
            PrefixExtractor::Noop => Some(user_key),
            PrefixExtractor::User(user) => user.in_domain(user_key).then(|| user.transform(user_key)),
        }
    }

    /// The length at which a prefix is whole, so that all keys which begin with it have it; `None` if that cannot be told.
    pub fn full_len(&self) -> Option<usize> {
        match self {
            PrefixExtractor::Fixed(n) | PrefixExtractor::Capped(n) => Some(*n),
            PrefixExtractor::Noop | PrefixExtractor::User(_) => None,
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

    /// Up to the first colon.
    struct UpToColon(&'static str);

    impl UserPrefixExtractor for UpToColon {
        fn name(&self) -> &str {
            self.0
        }

        fn in_domain(&self, key: &[u8]) -> bool {
            key.contains(&b':')
        }

        fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
            &key[..=key.iter().position(|&byte| byte == b':').expect("in the domain")]
        }
    }

    #[test]
    fn prefixes_of_the_application() {
        let user = |name| PrefixExtractor::User(Arc::new(UpToColon(name)));
        assert_eq!(user("a").transform(b"x:y:z"), Some(&b"x:"[..]));
        assert_eq!(user("a").transform(b"xyz"), None);
        assert_eq!((user("a").in_domain(b"x:"), user("a").in_domain(b"x")), (true, false));
        assert_eq!((user("a").name(), format!("{:?}", user("a"))), ("a".into(), "a".to_string()));
        assert_eq!(user("a"), user("a"));
        assert_ne!(user("a"), user("b"));
        assert_ne!(user("rocksdb.Noop"), PrefixExtractor::Noop);
    }
}

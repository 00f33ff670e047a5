//! Internal keys: the form in which user keys are stored.
//!
//! ```text
//! | user key bytes | trailer: u64 little-endian: sequence number << 8 | value type |
//! ```
//! Order: user key ascending by the comparator, then the trailer descending, so the newest version
//! of a key comes first. Bytes and table of types: `docs/format/keys.md`.

use crate::error::{Error, Result};
use crate::xxph3::xxph3_64;
use std::fmt;

/// A sequence number: the position of one write in the history of the database, 0 to 2^56 - 1.
///
/// ```
/// # use outcrop_base as outcrop;
/// use outcrop::SeqNum;
///
/// assert!(SeqNum(7) < SeqNum(7).plus(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNum(pub u64);

impl SeqNum {
    /// The largest sequence number a key can carry.
    pub const MAX: SeqNum = SeqNum((1 << 56) - 1);
    /// Below every write; also what compaction gives to keys that no snapshot can tell apart.
    pub const ZERO: SeqNum = SeqNum(0);

    /// The sequence number `count` writes later.
    #[must_use]
    pub fn plus(self, count: u64) -> SeqNum {
        SeqNum(self.0 + count)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type byte of an internal key, as persisted in tables (the WAL has its own tags).
///
/// Source: RocksDB `db/dbformat.h`, `ValueType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// The key does not exist from here on.
    Deletion = 0x00,
    /// The key has this value.
    Value = 0x01,
    /// An operand for the merge operator.
    Merge = 0x02,
    /// Deletes exactly one earlier `Value`.
    SingleDeletion = 0x07,
    /// Begin of a range tombstone; the value is the exclusive end.
    RangeDeletion = 0x0F,
    /// The value is a reference into a blob file.
    BlobIndex = 0x11,
    /// A deletion that carries a user-defined timestamp.
    DeletionWithTimestamp = 0x14,
    /// The value is a set of named columns.
    WideColumnEntity = 0x16,
    /// A value with a preferred sequence number (`TimedPut`).
    ValuePreferredSeqno = 0x18,
}

impl ValueType {
    /// The type that sorts first among equal user keys and sequence numbers; used in seek keys.
    pub const FOR_SEEK: ValueType = ValueType::ValuePreferredSeqno;
    /// The type that sorts last; used in keys for backward seeks.
    pub const FOR_SEEK_BACKWARD: ValueType = ValueType::Deletion;

    /// Decodes a type byte found in a table; `None` for a byte no table may hold.
    pub fn from_byte(byte: u8) -> Option<ValueType> {
        Some(match byte {
            0x00 => ValueType::Deletion,
            0x01 => ValueType::Value,
            0x02 => ValueType::Merge,
            0x07 => ValueType::SingleDeletion,
            0x0F => ValueType::RangeDeletion,
            0x11 => ValueType::BlobIndex,
            0x14 => ValueType::DeletionWithTimestamp,
            0x16 => ValueType::WideColumnEntity,
            0x18 => ValueType::ValuePreferredSeqno,
            _ => return None,
        })
    }
}

/// Sequence number and type of an entry, packed as they are stored after its user key.
///
/// They order by sequence number, then by type: of two entries of one user key the one with the greater trailer is newer,
/// and stands first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Trailer(u64);

impl Trailer {
    /// Its length after a user key, in bytes.
    pub const LEN: usize = 8;
    /// Before all entries of a user key; no entry has it.
    pub const MAX: Trailer = Trailer(u64::MAX);
    /// After all entries of a user key, or at a deletion with sequence number 0.
    pub const MIN: Trailer = Trailer(0);

    /// The trailer of an entry.
    #[inline]
    pub fn new(seq: SeqNum, value_type: ValueType) -> Trailer {
        debug_assert!(seq <= SeqNum::MAX);
        Trailer((seq.0 << 8) | value_type as u64)
    }

    /// Before all entries of a user key that were written at `seq` or earlier, after those that were written later.
    #[inline]
    pub fn as_of(seq: SeqNum) -> Trailer {
        Trailer((seq.0 << 8) | 0xFF)
    }

    /// When the entry was written.
    #[inline]
    pub fn seq(self) -> SeqNum {
        SeqNum(self.0 >> 8)
    }

    /// The type of the entry; `None` if its byte is that of no type a table may hold.
    #[inline]
    pub fn value_type(self) -> Option<ValueType> {
        ValueType::from_byte(self.type_byte())
    }

    /// The byte of the type, whatever it is.
    #[inline]
    pub fn type_byte(self) -> u8 {
        self.0 as u8
    }

    /// The number that is stored, in little-endian order.
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The bytes that are stored.
    #[inline]
    pub fn to_bytes(self) -> [u8; Trailer::LEN] {
        self.0.to_le_bytes()
    }

    /// The trailer of the stored bytes; any bytes are one.
    #[inline]
    pub fn from_bytes(bytes: [u8; Trailer::LEN]) -> Trailer {
        Trailer(u64::from_le_bytes(bytes))
    }
}

/// Appends the internal key of (`user_key`, `trailer`) to `out`.
#[inline]
pub fn append_internal_key(out: &mut Vec<u8>, user_key: &[u8], trailer: Trailer) {
    out.reserve(user_key.len() + Trailer::LEN);
    out.extend_from_slice(user_key);
    out.extend_from_slice(&trailer.to_bytes());
}

/// The internal key of (`user_key`, `seq`, `value_type`) as an owned buffer.
pub fn internal_key(user_key: &[u8], seq: SeqNum, value_type: ValueType) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + Trailer::LEN);
    append_internal_key(&mut out, user_key, Trailer::new(seq, value_type));
    out
}

/// Splits an internal key into user key and trailer.
///
/// # Panics
/// If `ikey` is shorter than a trailer: callers have checked bytes from disk with [`ParsedKey::parse`]
/// or the block decoder before.
#[inline]
pub fn split(ikey: &[u8]) -> (&[u8], Trailer) {
    let (user_key, trailer) = ikey.split_at(ikey.len() - Trailer::LEN);
    (user_key, Trailer::from_bytes(trailer.try_into().expect("a trailer is 8 bytes")))
}

/// The user key inside an internal key. Panics like [`split`].
#[inline]
pub fn user_key(ikey: &[u8]) -> &[u8] {
    &ikey[..ikey.len() - Trailer::LEN]
}

/// An internal key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The key as the user gave it.
    pub user_key: &'a [u8],
    /// When it was written.
    pub seq: SeqNum,
    /// The type of the entry.
    pub value_type: ValueType,
}

impl<'a> ParsedKey<'a> {
    /// Takes `ikey` apart.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corruption`] if it is too short or its type byte is unknown.
    #[inline]
    pub fn parse(ikey: &'a [u8]) -> Result<ParsedKey<'a>> {
        if ikey.len() < Trailer::LEN {
            return Err(Error::corruption(format!(
                "internal key of {} bytes is shorter than its trailer",
                ikey.len()
            )));
        }
        let (user_key, trailer) = split(ikey);
        match trailer.value_type() {
            Some(value_type) => Ok(ParsedKey { user_key, seq: trailer.seq(), value_type }),
            None => {
                let byte = trailer.type_byte();
                Err(Error::corruption(format!("internal key has unknown value type {byte:#04x}")))
            }
        }
    }
}

/// A user key prepared once for a point lookup: memtables, filters and indexes all reuse the hash and prefix.
#[derive(Clone, Copy, Debug)]
pub struct LookupKey<'a> {
    /// The key as the user gave it.
    pub user_key: &'a [u8],
    /// [`xxph3_64`] of the user key: the number that filters store and the memtable's hash index uses.
    pub hash: u64,
}

impl<'a> LookupKey<'a> {
    /// Prepares `user_key`.
    #[inline]
    pub fn new(user_key: &'a [u8]) -> LookupKey<'a> {
        LookupKey { user_key, hash: xxph3_64(user_key) }
    }
}

/// The first 8 bytes of `key` as a big-endian number, zero-padded: compares like the bytes do, except
/// that equal numbers decide nothing.
#[inline]
pub fn prefix_u64(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0u8; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_key_round_trips() {
        let ikey = internal_key(b"apple", SeqNum(1), ValueType::Value);
        assert_eq!(ikey, b"apple\x01\x01\0\0\0\0\0\0");
        let parsed = ParsedKey::parse(&ikey).unwrap();
        assert_eq!(parsed, ParsedKey { user_key: b"apple", seq: SeqNum(1), value_type: ValueType::Value });
    }

    #[test]
    fn short_keys_and_unknown_types_are_corruption() {
        assert!(ParsedKey::parse(b"1234567").is_err());
        assert!(ParsedKey::parse(b"\x03\0\0\0\0\0\0\0").is_err());
    }

    #[test]
    fn prefix_orders_like_bytes_up_to_ties() {
        let keys: [&[u8]; 6] = [b"", b"a", b"a\0", b"ab", b"abcdefgh", b"abcdefghi"];
        for pair in keys.windows(2) {
            assert!(prefix_u64(pair[0]) <= prefix_u64(pair[1]), "{pair:?}");
        }
    }
}

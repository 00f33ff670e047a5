//! Filters: which keys are certainly not in a table.
//!
//! ```text
//! filter block = bits | 5 bytes that say which kind it is
//! ```
//! Kinds of filters this reader does not know say "may contain", as RocksDB's own reader does.
//!
//! A filter holds whole user keys, prefixes, or both; it is one block, or partitions found by key through an
//! index of their own.
//! Next: `writer.rs` collects keys, `reader.rs` asks; the kinds are `bloom.rs`, `ribbon.rs` and
//! `legacy_bloom.rs`. Bytes: `docs/format/filters.md`.

mod bloom;
mod legacy_bloom;
mod reader;
mod ribbon;
mod writer;

pub use reader::{FilterContents, Residence, TableFilter};
pub use writer::{FilterOutput, FilterWriter};

use outcrop_base::coding::fixed32_at;
use outcrop_base::xxph3::xxph3_64;

/// The name that all built-in filters share.
pub const FILTER_NAME: &str = "rocksdb.BuiltinBloomFilter";
/// Bytes after the filter bits.
const METADATA_LEN: usize = 5;

/// How a filter block is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// It excludes everything: there are no keys.
    Empty,
    /// It excludes nothing, or is of a kind unknown here.
    PassAll,
    /// FastLocalBloom of `lines` lines with `probes` probes.
    Bloom {
        /// Lines of 64 bytes.
        lines: u32,
        /// Bits tested per key.
        probes: u8,
    },
    /// Ribbon.
    Ribbon(ribbon::Shape),
    /// The bloom filter of old formats. It knows keys by another hash.
    Legacy {
        /// Lines.
        lines: u32,
        /// Bytes of a line, a power of two.
        line_len: u32,
        /// Bits tested per key.
        probes: u8,
    },
}

impl FilterKind {
    /// The kind of the filter block `bytes`.
    pub fn of(bytes: &[u8]) -> FilterKind {
        let Some(len) = bytes.len().checked_sub(METADATA_LEN).filter(|len| *len > 0) else {
            return FilterKind::Empty;
        };
        let metadata = &bytes[len..];
        let known = match metadata[0] {
            0xFF => bloom_of(len, metadata),
            0xFE => {
                let blocks = u32::from_le_bytes([metadata[2], metadata[3], metadata[4], 0]);
                ribbon::Shape::of(len, metadata[1], blocks).map(FilterKind::Ribbon)
            }
            1..=127 => legacy_of(len, metadata),
            _ => None,
        };
        known.unwrap_or(FilterKind::PassAll)
    }

    /// Offset of the first bytes that are looked at for a key with this hash.
    #[inline]
    pub fn offset(self, hash: u64) -> Option<usize> {
        match self {
            FilterKind::Bloom { lines, .. } => Some(bloom::line_offset(lines, hash)),
            FilterKind::Ribbon(shape) => Some(shape.offset(hash)),
            _ => None,
        }
    }

    /// False if the key with this [`xxph3_64`] is certainly not in the table whose filter block is `bytes`.
    #[inline]
    pub fn may_contain(self, bytes: &[u8], hash: u64) -> bool {
        match self {
            FilterKind::Bloom { lines, probes } => bloom::may_contain(bytes, lines, probes, hash),
            FilterKind::Ribbon(shape) => shape.may_contain(bytes, hash),
            FilterKind::Empty => false,
            FilterKind::PassAll | FilterKind::Legacy { .. } => true,
        }
    }

    /// As [`FilterKind::may_contain`], for filters of any kind.
    #[inline]
    pub fn may_contain_key(self, bytes: &[u8], key: &[u8]) -> bool {
        match self {
            FilterKind::Legacy { lines, line_len, probes } => {
                legacy_bloom::may_contain(bytes, lines, line_len, probes, legacy_bloom::hash(key))
            }
            _ => self.may_contain(bytes, xxph3_64(key)),
        }
    }
}

fn bloom_of(len: usize, metadata: &[u8]) -> Option<FilterKind> {
    let probes = metadata[2] & 0x1F;
    let known = metadata[1] == 0
        && metadata[2] >> 5 == 0
        && metadata[3..] == [0, 0]
        && (1..=30).contains(&probes)
        && len.is_multiple_of(bloom::LINE);
    let lines = u32::try_from(len / bloom::LINE).ok()?;
    known.then_some(FilterKind::Bloom { lines, probes })
}

fn legacy_of(len: usize, metadata: &[u8]) -> Option<FilterKind> {
    let (probes, lines) = (metadata[0], fixed32_at(metadata, 1));
    let line_len = u32::try_from(len).ok()?.checked_div(lines)?;
    let known = line_len.is_power_of_two()
        && u64::from(line_len) * u64::from(lines) == len as u64
        && line_len < 1 << 28;
    known.then_some(FilterKind::Legacy { lines, line_len, probes })
}

#[cfg(test)]
mod tests;

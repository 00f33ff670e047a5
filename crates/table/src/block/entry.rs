//! The contents of a block: its entries, restart points and feature bits.

use outcrop_base::coding::{fixed32_at, get_varint32};
use outcrop_base::{Error, Result};

/// Feature bits of a block's last word.
pub const HASH_INDEX_BIT: u32 = 1 << 31;
const RESERVED_BIT: u32 = 1 << 30;
const UNIFORM_BIT: u32 = 1 << 29;
pub const SEPARATED_BIT: u32 = 1 << 28;

/// The last word of a block: number of restart points and feature bits.
#[inline]
pub fn packed_word(block: &[u8]) -> Option<u32> {
    block.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// One decoded entry header.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Bytes of the key shared with the entry before.
    pub shared: usize,
    /// Where the rest of the key is.
    pub suffix: (usize, usize),
    /// Where the value is.
    pub value: (usize, usize),
}

/// Decodes the entry at `at` of `entries`; `None` if it does not fit.
#[inline]
pub fn decode_entry(entries: &[u8], at: usize) -> Option<Entry> {
    let bytes = entries.get(at..)?;
    let (shared, non_shared, value_len, header) = match bytes {
        [a, b, c, ..] if (a | b | c) < 0x80 => (u32::from(*a), u32::from(*b), u32::from(*c), 3),
        [a, b, c, d, ..] if (a | b | d) < 0x80 => {
            (u32::from(*a), u32::from(*b), u32::from(*c & 0x7F) | u32::from(*d) << 7, 4)
        }
        _ => {
            let (shared, n1) = get_varint32(bytes)?;
            let (non_shared, n2) = get_varint32(&bytes[n1..])?;
            let (value_len, n3) = get_varint32(&bytes[n1 + n2..])?;
            (shared, non_shared, value_len, n1 + n2 + n3)
        }
    };
    let suffix = at + header;
    let value = suffix.checked_add(non_shared as usize)?;
    let end = value.checked_add(value_len as usize)?;
    if end > entries.len() {
        return None;
    }
    Some(Entry { shared: shared as usize, suffix: (suffix, value), value: (value, end) })
}

/// The parts of a block's contents.
pub struct Contents<'a> {
    /// The entries.
    pub entries: &'a [u8],
    /// The restart array.
    pub restarts: &'a [u8],
}

impl<'a> Contents<'a> {
    /// Takes a block apart.
    ///
    /// # Errors
    /// Corruption, or NotSupported for a block feature this reader lacks.
    pub fn parse(block: &'a [u8]) -> Result<Contents<'a>> {
        let broken = |what: &str| Error::corruption(format!("block of {} bytes: {what}", block.len()));
        let Some(packed_at) = block.len().checked_sub(4) else { return Err(broken("too short")) };
        let packed = fixed32_at(block, packed_at);
        if packed & RESERVED_BIT != 0 {
            return Err(broken("a reserved feature bit is set"));
        }
        if packed & SEPARATED_BIT != 0 {
            return Err(broken("keys and values apart, which only data blocks have"));
        }
        let count = (packed & !(HASH_INDEX_BIT | UNIFORM_BIT)) as usize;
        let mut end = packed_at;
        if packed & HASH_INDEX_BIT != 0 {
            // Bucket bytes and their number stand after the restart array; a search needs neither.
            let at = end.checked_sub(2).ok_or_else(|| broken("no room for its hash index"))?;
            let buckets = usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
            end = at.checked_sub(buckets).ok_or_else(|| broken("no room for its hash index"))?;
        }
        let restarts_at = count
            .checked_mul(4)
            .and_then(|len| end.checked_sub(len))
            .ok_or_else(|| broken("no room for its restart points"))?;
        if count == 0 {
            return Err(broken("no restart point"));
        }
        // Going back looks for the last restart point before an entry: there must be one.
        if restarts_at > 0 && fixed32_at(block, restarts_at) != 0 {
            return Err(broken("its first entry is no restart point"));
        }
        Ok(Contents { entries: &block[..restarts_at], restarts: &block[restarts_at..end] })
    }

    /// Number of restart points.
    pub fn num_restarts(&self) -> usize {
        self.restarts.len() / 4
    }

    /// Offset of restart point `index`.
    pub fn restart(&self, index: usize) -> usize {
        fixed32_at(self.restarts, index * 4) as usize
    }
}

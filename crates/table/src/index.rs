//! The index of an open table: which block holds a key, found without decoding.
//!
//! ```text
//! frame = header: 4 x u32 | prefix: u64 ... | block offset: u64 ... | block size: u32 ...
//!         | separator end: u32 ... | common prefix | separators
//! ```
//! Built once when the table is opened, from the index block or from all partitions of a two-level index.
//! Separator `i` is at or after the last key of block `i` and before the first key of block `i + 1`.
//! Separators are user keys, or internal keys if two blocks share a user key; one table has one kind.

use crate::block::{Contents, decode_entry};
use crate::block_builder::shared_prefix;
use crate::format::BlockHandle;
use crate::prefixes::{Place, Prefixes, place};
use outcrop_base::coding::{Decoder, fixed32_at, fixed64_at};
use outcrop_base::keys::{Trailer, prefix_u64, split};
use outcrop_base::{Comparator, Error, Result};
use std::cmp::Ordering;

const HEADER_LEN: usize = 16;

/// How index blocks of a table are coded.
#[derive(Clone, Copy, Debug)]
pub struct IndexCoding {
    /// Separators are user keys.
    pub key_is_user_key: bool,
    /// Handles are delta-encoded and have no length.
    pub value_is_delta: bool,
    /// Each value ends with the block's first key.
    pub has_first_key: bool,
}

/// Separators and handles, being collected.
#[derive(Default)]
pub struct IndexEntries {
    separators: Vec<u8>,
    ends: Vec<u32>,
    handles: Vec<BlockHandle>,
}

impl IndexEntries {
    /// Adds the entries of one index block.
    ///
    /// # Errors
    /// Corruption if it does not decode.
    pub fn add_block(&mut self, block: &[u8], coding: IndexCoding) -> Result<()> {
        let contents = Contents::parse(block)?;
        let mut key: Vec<u8> = Vec::new();
        let mut previous = BlockHandle::default();
        let mut at = 0;
        while at < contents.entries.len() {
            let broken = || Error::corruption(format!("index entry at byte {at} does not decode"));
            let (shared, suffix, handle, end) =
                decode_index_entry(contents.entries, at, coding, previous).ok_or_else(broken)?;
            if shared > key.len() {
                return Err(broken());
            }
            key.truncate(shared);
            key.extend_from_slice(suffix);
            if !coding.key_is_user_key && key.len() < Trailer::LEN {
                return Err(broken());
            }
            self.separators.extend_from_slice(&key);
            self.ends.push(u32::try_from(self.separators.len()).map_err(|_| broken())?);
            self.handles.push(handle);
            previous = handle;
            at = end;
        }
        Ok(())
    }

    /// The blocks in order.
    pub fn handles(&self) -> &[BlockHandle] {
        &self.handles
    }

    fn separator(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.separators[start..self.ends[index] as usize]
    }

    /// Bytes of the frame and length of the common prefix.
    fn layout(&self, key_is_user_key: bool) -> (usize, usize) {
        let count = self.handles.len();
        let common = match count {
            0 => 0,
            _ => {
                let user_key = |index| user_part(self.separator(index), key_is_user_key);
                shared_prefix(user_key(0), user_key(count - 1))
            }
        };
        (HEADER_LEN + count * (8 + 8 + 4 + 4) + common + self.separators.len(), common)
    }

    /// Bytes of the frame.
    pub fn frame_len(&self, key_is_user_key: bool) -> usize {
        self.layout(key_is_user_key).0
    }

    /// Writes the frame.
    pub fn write_frame(&self, key_is_user_key: bool, comparator: &Comparator, frame: &mut [u8]) {
        let count = self.handles.len();
        let (_, common) = self.layout(key_is_user_key);
        let bytewise = comparator.is_bytewise();
        let header = [count, usize::from(key_is_user_key), usize::from(bytewise), common];
        for (index, field) in header.into_iter().enumerate() {
            frame[index * 4..index * 4 + 4].copy_from_slice(&(field as u32).to_le_bytes());
        }
        let layout = Layout::new(count);
        for (index, handle) in self.handles.iter().enumerate() {
            let user_key = user_part(self.separator(index), key_is_user_key);
            let prefix = if bytewise { prefix_u64(user_key.get(common..).unwrap_or(&[])) } else { 0 };
            let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
            put(HEADER_LEN + index * 8, &prefix.to_le_bytes());
            put(layout.offsets + index * 8, &handle.offset.to_le_bytes());
            put(layout.sizes + index * 4, &(handle.size as u32).to_le_bytes());
            put(layout.ends + index * 4, &self.ends[index].to_le_bytes());
        }
        if count > 0 {
            let first = user_part(self.separator(0), key_is_user_key);
            frame[layout.common..layout.common + common].copy_from_slice(&first[..common]);
        }
        frame[layout.common + common..].copy_from_slice(&self.separators);
    }
}

fn user_part(separator: &[u8], key_is_user_key: bool) -> &[u8] {
    if key_is_user_key { separator } else { &separator[..separator.len() - Trailer::LEN] }
}

/// Decodes one entry: (shared, key suffix, handle, end).
fn decode_index_entry(
    entries: &[u8],
    at: usize,
    coding: IndexCoding,
    previous: BlockHandle,
) -> Option<(usize, &[u8], BlockHandle, usize)> {
    if !coding.value_is_delta {
        let entry = decode_entry(entries, at)?;
        let mut value = Decoder::new(&entries[entry.value.0..entry.value.1]);
        let handle = BlockHandle::decode(&mut value)?;
        return Some((entry.shared, &entries[entry.suffix.0..entry.suffix.1], handle, entry.value.1));
    }
    let mut decoder = Decoder::new(entries.get(at..)?);
    let shared = decoder.varint32()? as usize;
    let non_shared = decoder.varint32()? as usize;
    let suffix = decoder.bytes(non_shared)?;
    let handle = if shared == 0 {
        BlockHandle::decode(&mut decoder)?
    } else {
        let size = previous.size.checked_add_signed(decoder.zigzag64()?)?;
        BlockHandle { offset: previous.end()?, size }
    };
    if coding.has_first_key {
        decoder.length_prefixed()?;
    }
    Some((shared, suffix, handle, entries.len() - decoder.rest().len()))
}

/// Where the arrays of a frame with `count` entries are.
struct Layout {
    offsets: usize,
    sizes: usize,
    ends: usize,
    common: usize,
}

impl Layout {
    #[inline]
    fn new(count: usize) -> Layout {
        let offsets = HEADER_LEN + count * 8;
        let sizes = offsets + count * 8;
        let ends = sizes + count * 4;
        Layout { offsets, sizes, ends, common: ends + count * 4 }
    }
}

/// A view of an index frame.
#[derive(Clone, Copy)]
pub struct IndexView<'a> {
    frame: &'a [u8],
    count: usize,
}

impl<'a> IndexView<'a> {
    /// A view of `frame`, written by [`IndexEntries::write_frame`].
    #[inline]
    pub fn new(frame: &'a [u8]) -> IndexView<'a> {
        IndexView { frame, count: fixed32_at(frame, 0) as usize }
    }

    /// Number of blocks.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if separators are user keys: no two blocks share one.
    #[inline]
    pub fn key_is_user_key(&self) -> bool {
        fixed32_at(self.frame, 4) != 0
    }

    /// Where block `index` is.
    #[inline]
    pub fn handle(&self, index: usize) -> BlockHandle {
        let layout = Layout::new(self.count);
        BlockHandle {
            offset: fixed64_at(self.frame, layout.offsets + index * 8),
            size: u64::from(fixed32_at(self.frame, layout.sizes + index * 4)),
        }
    }

    /// The separator after block `index`.
    pub fn separator(&self, index: usize) -> &'a [u8] {
        let layout = Layout::new(self.count);
        let end = |index: usize| fixed32_at(self.frame, layout.ends + index * 4) as usize;
        let start = if index == 0 { 0 } else { end(index - 1) };
        let base = layout.common + fixed32_at(self.frame, 12) as usize;
        &self.frame[base + start..base + end(index)]
    }

    /// The first block that may hold a key at or after (`user_key`, `trailer`); the number of blocks if none.
    #[inline]
    pub fn find(&self, comparator: &Comparator, user_key: &[u8], trailer: Trailer) -> usize {
        let (mut low, mut high) = (0, self.count);
        if fixed32_at(self.frame, 8) != 0 {
            let layout = Layout::new(self.count);
            let common_len = fixed32_at(self.frame, 12) as usize;
            let common = &self.frame[layout.common..layout.common + common_len];
            let number = match place(common, user_key) {
                Place::Before => return 0,
                Place::After => return self.count,
                Place::Among(number) => number,
            };
            let ties = Prefixes::new(&self.frame[HEADER_LEN..], self.count).equal_range(number);
            (low, high) = (ties.start, ties.end);
        }
        let user_keys = self.key_is_user_key();
        while low < high {
            let mid = (low + high) / 2;
            let separator = self.separator(mid);
            let order = if user_keys {
                comparator.compare(separator, user_key)
            } else {
                comparator.compare_parts(split(separator), (user_key, trailer))
            };
            if order == Ordering::Less { low = mid + 1 } else { high = mid }
        }
        low
    }
}

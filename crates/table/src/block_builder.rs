//! Builds a block: sorted entries, each sharing a prefix with the one before.
//!
//! ```text
//! entry = v32 shared | v32 non_shared | v32 value length | key suffix | value
//! block = entries | u32 restart offset ... | [hash index] | u32 number of restarts and feature bits
//! ```
//! Data blocks can hold keys and values apart instead; `rewrite.rs` has the layout.
//! Source: RocksDB `table/block_based/block_builder.cc`.

use crate::block::{HASH_INDEX_BIT, SEPARATED_BIT};
use crate::hash_index::HashIndexBuilder;
use outcrop_base::coding::{put_varint32, varint_len};
use outcrop_base::keys::user_key;

/// A block under construction.
pub struct BlockBuilder {
    restart_interval: u32,
    contents: Vec<u8>,
    restarts: Vec<u32>,
    /// Entries since the last restart point.
    since_restart: u32,
    last_key: Vec<u8>,
    entries: u32,
    /// Entries leave out what they share with the one before.
    share_prefixes: bool,
    hash_index: Option<HashIndexBuilder>,
    /// The values so far, if they stand apart from the keys.
    values: Option<Vec<u8>>,
}

/// The form of data blocks.
pub struct DataBlockForm {
    /// Entries between restart points.
    pub restart_interval: u32,
    /// Entries leave out what they share with the one before.
    pub share_prefixes: bool,
    /// Values stand after all keys.
    pub separate_values: bool,
    /// A hash table of user keys stands after the restart points.
    pub hash_index: Option<HashIndexBuilder>,
}

impl BlockBuilder {
    /// A block with a restart point every `restart_interval` entries.
    pub fn new(restart_interval: u32) -> BlockBuilder {
        BlockBuilder {
            restart_interval: restart_interval.max(1),
            contents: Vec::new(),
            restarts: vec![0],
            since_restart: 0,
            last_key: Vec::new(),
            entries: 0,
            share_prefixes: true,
            hash_index: None,
            values: None,
        }
    }

    /// A block of internal keys of this form.
    pub fn for_data(form: DataBlockForm) -> BlockBuilder {
        BlockBuilder {
            share_prefixes: form.share_prefixes,
            hash_index: form.hash_index,
            values: form.separate_values.then(Vec::new),
            ..BlockBuilder::new(form.restart_interval)
        }
    }

    /// Appends an entry; keys come in ascending order.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = self.start_entry(key);
        put_varint32(&mut self.contents, shared as u32);
        put_varint32(&mut self.contents, (key.len() - shared) as u32);
        put_varint32(&mut self.contents, value.len() as u32);
        match &mut self.values {
            None => self.finish_entry(key, shared, value),
            Some(values) => {
                // Restart points say where their value is; the others' follow.
                if self.since_restart == 0 {
                    put_varint32(&mut self.contents, values.len() as u32);
                }
                values.extend_from_slice(value);
                self.finish_entry(key, shared, &[]);
            }
        }
        if let Some(hash_index) = &mut self.hash_index {
            hash_index.add(user_key(key), self.restarts.len() - 1);
        }
    }

    /// Appends an entry of an index block with delta-encoded values: no value length is stored. `value` is
    /// told whether the entry shares nothing with the one before, and gives the value to store. Unless it
    /// `may_share`, it does not.
    pub fn add_index(&mut self, key: &[u8], may_share: bool, value: impl FnOnce(bool) -> Vec<u8>) {
        let shared = self.start_entry(key);
        let shared = if may_share { shared } else { 0 };
        put_varint32(&mut self.contents, shared as u32);
        put_varint32(&mut self.contents, (key.len() - shared) as u32);
        self.finish_entry(key, shared, &value(shared == 0));
    }

    /// How many bytes the entry shares with the one before; a restart point shares none.
    #[inline]
    fn start_entry(&mut self, key: &[u8]) -> usize {
        if self.since_restart < self.restart_interval {
            return if self.share_prefixes { shared_prefix(&self.last_key, key) } else { 0 };
        }
        self.restarts.push(self.contents.len() as u32);
        self.since_restart = 0;
        0
    }

    #[inline]
    fn finish_entry(&mut self, key: &[u8], shared: usize, value: &[u8]) {
        self.contents.extend_from_slice(&key[shared..]);
        self.contents.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.since_restart += 1;
        self.entries += 1;
    }

    /// Size of the finished block as it is now, in bytes.
    #[inline]
    pub fn size(&self) -> usize {
        let hash_index = self.hash_index.as_ref().map_or(0, HashIndexBuilder::size);
        let values = self.values.as_ref().map_or(0, |values| values.len() + 4);
        self.contents.len() + values + 4 * self.restarts.len() + hash_index + 4
    }

    /// The [`BlockBuilder::size`] that the block has with the entry, by RocksDB's estimate: blocks are then cut where its
    /// are.
    #[inline]
    pub fn size_after(&self, key: &[u8], value: &[u8]) -> usize {
        let restart = if self.since_restart >= self.restart_interval { 4 } else { 0 };
        let lengths = 4 + varint_len(key.len() as u64) + varint_len(value.len() as u64);
        self.size() + restart + lengths + key.len() + value.len()
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Completes the block. It stays readable until [`BlockBuilder::reset`].
    pub fn finish(&mut self) -> &[u8] {
        let size = self.size();
        let values_at = self.contents.len() as u32;
        if let Some(values) = &self.values {
            self.contents.extend_from_slice(values);
        }
        for restart in &self.restarts {
            self.contents.extend_from_slice(&restart.to_le_bytes());
        }
        let mut packed = self.restarts.len() as u32;
        if self.hash_index.as_ref().is_some_and(|index| index.append(size, &mut self.contents)) {
            packed |= HASH_INDEX_BIT;
        }
        if self.values.is_some() {
            packed |= SEPARATED_BIT;
            self.contents.extend_from_slice(&values_at.to_le_bytes());
        }
        self.contents.extend_from_slice(&packed.to_le_bytes());
        &self.contents
    }

    /// Starts a new block, keeping the memory.
    pub fn reset(&mut self) {
        self.contents.clear();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
        self.last_key.clear();
        self.entries = 0;
        if let Some(hash_index) = &mut self.hash_index {
            hash_index.reset();
        }
        if let Some(values) = &mut self.values {
            values.clear();
        }
    }
}

/// Number of leading bytes `a` and `b` have in common.
#[inline]
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= len {
        let x = u64::from_le_bytes(a[at..at + 8].try_into().expect("8 bytes"));
        let y = u64::from_le_bytes(b[at..at + 8].try_into().expect("8 bytes"));
        if x != y {
            return at + ((x ^ y).trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

//! The read path: point lookups ([`get`]) and iterators ([`iter`]) over memtables and tables.
//!
//! ```text
//! get:  SuperVersion -> memtable -> sealed memtables -> L0 newest first -> L1 .. Ln (one file each)
//! iter: the same sources, merged in key order (merging_iter.rs), versions resolved (iter.rs)
//! ```

pub mod blob;
pub mod get;
pub mod hiding_ranges;
pub mod iter;
pub mod level_iter;
pub mod merge;
pub mod merging_iter;
pub mod multi_get;
pub mod one_moment;
pub mod table_cache;

use crate::snapshots::Snapshot;
use outcrop_base::{Result, SeqNum, wide_columns};
use outcrop_cache::Pinned;
use outcrop_table::FillCache;
use std::ops::Deref;

/// How a read is done.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Read as of this sequence number, which a live [`Snapshot`] must hold; `None`: the latest.
    pub snapshot: Option<SeqNum>,
    /// Blocks read from tables are kept in the block cache; default true. Long scans may turn it off.
    pub fill_cache: bool,
    /// Smallest user key an iterator returns.
    pub iterate_lower_bound: Option<Vec<u8>>,
    /// An iterator ends before this user key.
    pub iterate_upper_bound: Option<Vec<u8>>,
    /// An iterator ends where the prefix of the key it was positioned by ends; needs a prefix extractor. Default false.
    pub prefix_same_as_start: bool,
    /// Seeks ask no filters of prefixes. What is found is the same: with a prefix extractor, a seek leaves out tables that
    /// by their filters hold no key with the prefix of its target, and takes them in once the walk leaves the prefix.
    /// Default false.
    pub total_order_seek: bool,
    /// Bytes an iterator reads ahead; 0: it grows on its own while access is sequential.
    pub readahead_size: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            snapshot: None,
            fill_cache: true,
            iterate_lower_bound: None,
            iterate_upper_bound: None,
            prefix_same_as_start: false,
            total_order_seek: false,
            readahead_size: 0,
        }
    }
}

impl ReadOptions {
    /// `fill_cache`, as tables take it.
    pub(crate) fn fill_cache(&self) -> FillCache {
        if self.fill_cache { FillCache::Yes } else { FillCache::No }
    }

    /// Default options reading as of `snapshot`.
    pub fn at(snapshot: &Snapshot) -> ReadOptions {
        ReadOptions { snapshot: Some(snapshot.sequence()), ..ReadOptions::default() }
    }
}

/// The columns of a wide-column entity, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WideColumns {
    columns: Vec<(Vec<u8>, Vec<u8>)>,
}

impl WideColumns {
    /// A plain value: the column with the empty name.
    pub(crate) fn plain(value: &[u8]) -> WideColumns {
        WideColumns { columns: vec![(Vec::new(), value.to_vec())] }
    }

    /// Decodes an entity that has its values in it.
    pub(crate) fn decode(entity: &[u8]) -> Result<WideColumns> {
        let columns = wide_columns::decode(entity)?;
        let columns = columns.iter().map(|column| (column.name.to_vec(), column.value.to_vec())).collect();
        Ok(WideColumns { columns })
    }

    /// (name, value) of each, in order of the names; the default column has the empty name and comes first.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.columns.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// A value that was read. It stays valid, and the block holding it stays in memory, until dropped.
#[derive(Clone)]
pub struct PinnedValue(Storage);

#[derive(Clone)]
enum Storage {
    /// Inside a cached block.
    Block { block: Pinned, start: u32, len: u32 },
    /// A copy.
    Owned(Vec<u8>),
}

impl PinnedValue {
    /// A copied or computed value.
    pub(crate) fn owned(value: Vec<u8>) -> PinnedValue {
        PinnedValue(Storage::Owned(value))
    }

    /// `value`, which lies inside `block`.
    #[inline]
    pub(crate) fn in_block(block: &Pinned, value: &[u8]) -> PinnedValue {
        let start = value.as_ptr() as usize - block.as_ptr() as usize;
        debug_assert!(start + value.len() <= block.len());
        PinnedValue(Storage::Block { block: block.clone(), start: start as u32, len: value.len() as u32 })
    }

    /// `part` of the value, which keeps the same memory.
    pub(crate) fn part(&self, part: &[u8]) -> PinnedValue {
        if part.is_empty() {
            return PinnedValue::owned(Vec::new());
        }
        let start = part.as_ptr() as usize - self.as_ptr() as usize;
        debug_assert!(start + part.len() <= self.len());
        match &self.0 {
            Storage::Block { block, start: outer, .. } => PinnedValue(Storage::Block {
                block: block.clone(),
                start: outer + start as u32,
                len: part.len() as u32,
            }),
            Storage::Owned(value) => PinnedValue::owned(value[start..start + part.len()].to_vec()),
        }
    }

    /// The value as a buffer of its own.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Storage::Owned(value) => value,
            Storage::Block { .. } => self.to_vec(),
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Block { block, start, len } => &block[*start as usize..(*start + *len) as usize],
            Storage::Owned(value) => value,
        }
    }
}

impl std::fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", &**self)
    }
}

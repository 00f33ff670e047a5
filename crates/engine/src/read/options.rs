//! How a read is done.

use crate::snapshots::Snapshot;
use outcrop_base::SeqNum;
use outcrop_table::FillCache;

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

//! Walking a table block by block in the order of the file's index, as those do that verify it: from the file, not from the cache,
//! and past a block that is damaged.

use crate::format::BlockHandle;
use crate::index::IndexView;
use crate::reader::{Loading, TableReader};
use outcrop_base::Result;
use outcrop_cache::Pinned;
use std::sync::Arc;

/// The data blocks of a table, one after the other.
pub struct BlockWalk {
    index: Pinned,
    next: usize,
    /// The last field: it may hold the cache that the index is pinned in.
    table: Arc<TableReader>,
}

impl TableReader {
    /// Its data blocks from the first. Of a table that was opened with a cache, blocks that are in it are not read: open one without.
    ///
    /// # Errors
    /// Those of reading the index.
    pub fn walk(self: &Arc<Self>) -> Result<BlockWalk> {
        Ok(BlockWalk { index: self.pin_index(Loading::NotKept.into())?, next: 0, table: self.clone() })
    }
}

impl BlockWalk {
    /// Reads the next block and verifies it: its checksum, that it decompresses, and that its entries decode and are in order. Gives its
    /// bytes in the file and what is wrong with it; `None` after the last. Goes on after a damaged one.
    pub fn verify_next(&mut self) -> Option<(u64, Result<()>)> {
        let view = IndexView::new(&self.index);
        if self.next >= view.len() {
            return None;
        }
        let handle = view.handle(self.next);
        self.next += 1;
        Some((handle.size, self.verify(handle)))
    }

    /// Reads the block again that [`BlockWalk::verify_next`] gave last.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify_again(&self) -> Result<()> {
        match self.next.checked_sub(1) {
            Some(last) => self.verify(IndexView::new(&self.index).handle(last)),
            None => Ok(()),
        }
    }

    fn verify(&self, handle: BlockHandle) -> Result<()> {
        self.table.load_block(handle, Loading::NotKept.into()).map(drop)
    }
}

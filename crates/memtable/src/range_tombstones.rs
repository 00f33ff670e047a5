//! The range tombstones of a memtable.
//!
//! They are few, so they lie in a list; readers want fragments, which the first reader after an insert makes and
//! the next ones share.
//!
//! Concurrency: a memtable without range tombstones costs a reader one load of a word that is never written. With
//! some, the lock is held for a moment, and for the making of fragments after an insert.

use crate::sync::{AtomicUsize, Mutex, Ordering};
use outcrop_base::{Comparator, Fragments, RangeTombstone};
use std::sync::Arc;

/// What each tombstone takes besides its keys, about, in bytes.
const OVERHEAD: usize = 128;

/// See the module documentation.
#[derive(Default)]
pub struct RangeTombstones {
    /// Bytes of all tombstones, about; 0 if there are none.
    bytes: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    list: Vec<RangeTombstone>,
    /// Of the whole list, if made since the last insert.
    fragments: Option<Arc<Fragments>>,
}

impl RangeTombstones {
    /// Adds one.
    pub fn insert(&self, tombstone: RangeTombstone) {
        let bytes = OVERHEAD + tombstone.begin.len() + tombstone.end.len();
        let mut inner = self.inner.lock();
        inner.list.push(tombstone);
        inner.fragments = None;
        // Release: pairs with the Acquire in `fragments`: who sees the count finds the list.
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// Fragments of all; `None` if there are none.
    #[inline]
    pub fn fragments(&self, comparator: &Comparator) -> Option<Arc<Fragments>> {
        // Acquire: pairs with the Release in `insert`.
        if self.bytes.load(Ordering::Acquire) == 0 { None } else { Some(self.made(comparator)) }
    }

    #[cold]
    fn made(&self, comparator: &Comparator) -> Arc<Fragments> {
        let mut inner = self.inner.lock();
        let Inner { list, fragments } = &mut *inner;
        fragments.get_or_insert_with(|| Arc::new(Fragments::new(list, comparator))).clone()
    }

    /// All of them, in order of arrival.
    pub fn list(&self) -> Vec<RangeTombstone> {
        self.inner.lock().list.clone()
    }

    /// Bytes of all tombstones, about.
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

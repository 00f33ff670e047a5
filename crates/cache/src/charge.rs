//! Memory beside the blocks that counts as the cache's: who uses it, and how much.
//!
//! A cache that is made with [`Cache::charging`] is asked for such memory by the tables, iterators and jobs that use it; any other is
//! not, and they pay nothing.

use crate::cache::Cache;
use std::sync::Arc;

/// The user of memory that a cache is charged for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Memtables.
    Memtables,
    /// Open tables: what they keep beside their blocks.
    Tables,
    /// Iterators: their own state and what they read ahead.
    Iterators,
    /// Flushes and compactions: what they read ahead, and tables and filters under construction.
    Jobs,
}

impl Role {
    /// All, in the order of their numbers.
    pub const ALL: [Role; 4] = [Role::Memtables, Role::Tables, Role::Iterators, Role::Jobs];
}

/// Eighths of the capacity that iterators may take with their own state and the blocks that they are on.
const OF_ITERATORS: usize = 3;
/// Eighths up to which they read ahead.
const OF_READAHEAD: usize = 1;

/// Bytes that a cache is charged for as long as this lives.
pub struct Charge {
    cache: Arc<Cache>,
    role: Role,
    bytes: usize,
    /// Bytes of a block in the cache that the holder keeps pinned.
    pinned: usize,
}

impl Charge {
    /// Nothing yet, of a cache that is charged; `None` of any other.
    pub fn of(cache: &Arc<Cache>, role: Role) -> Option<Charge> {
        cache.is_charged().then(|| Charge { cache: cache.clone(), role, bytes: 0, pinned: 0 })
    }

    /// The cache that is charged.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges `bytes` in all from now on, whatever room there is: blocks make it.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.cache.change_reserved(self.role, self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// The same for what the holder needs. False, and nothing is charged, if it is an iterator and iterators take too much.
    #[must_use]
    pub fn try_set(&mut self, bytes: usize) -> bool {
        self.try_set_within(OF_ITERATORS, bytes)
    }

    /// The same for what the holder could do without.
    #[must_use]
    pub fn try_set_spare(&mut self, bytes: usize) -> bool {
        self.try_set_within(OF_READAHEAD, bytes)
    }

    fn try_set_within(&mut self, eighths: usize, bytes: usize) -> bool {
        let fits = self.fits(bytes.saturating_sub(self.bytes), eighths);
        if fits {
            self.set(bytes);
        }
        fits
    }

    /// The holder pins a block of `bytes` in the cache, in place of the one before. False if it is an iterator and iterators take too
    /// much: it is not to keep it.
    #[must_use]
    pub fn try_pin(&mut self, bytes: usize) -> bool {
        let fits = self.fits(bytes.saturating_sub(self.pinned), OF_ITERATORS);
        self.pin(if fits { bytes } else { 0 });
        fits
    }

    fn pin(&mut self, bytes: usize) {
        if self.role == Role::Iterators {
            self.cache.change_iterator_pins(self.pinned, bytes);
            self.pinned = bytes;
        }
    }

    fn fits(&self, more: usize, eighths: usize) -> bool {
        let used = self.cache.reserved_by(Role::Iterators) + self.cache.iterator_pins();
        self.role != Role::Iterators || more == 0 || used + more <= self.cache.capacity() / 8 * eighths
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
        self.pin(0);
    }
}

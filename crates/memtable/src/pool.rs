//! Recycles the memory of dropped memtables for new ones.
//!
//! A fresh mapping costs a page fault at each first touch, on the writer's thread: 5 to 30 ms for a memtable of
//! 16 MiB where the host is slow to give memory, more than filling it takes. So mappings go around: when a
//! memtable dies its memory comes here as it is, and a background thread makes the next set ready when the current one
//! is nearly full ([`MemTablePool::prepare`]): resident, and zeroed where that is needed. By then the memtable before has
//! mostly been flushed, so that two sets go around where a third would be resident in between. A set that nobody took
//! for a while goes back to the operating system, and once nobody writes any more, also the sets that are ready and
//! the unused parts of the memtables in use. Writers then fault memory in.
//!
//! Concurrency: the lock is never held while memory is zeroed, mapped or unmapped.

use crate::memtable::mapping_sizes;
use outcrop_env::{Mapping, populate};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps an account of the memory of memtables, over all databases that share it.
pub trait MemoryAccount: Send + Sync {
    /// Bytes that a memtable should not grow beyond, whatever its write buffer size is.
    fn budget(&self) -> u64;

    /// A memtable that takes writes has grown by so many bytes.
    fn grew(&self, bytes: u64);

    /// One of so many bytes takes no more writes.
    fn sealed(&self, bytes: u64);

    /// One of so many bytes, which took no more writes, is in tables: it stays for those who read it.
    fn flushed(&self, bytes: u64);

    /// One of so many bytes, which took no more writes, is dropped. `flushed`: it was in tables.
    fn freed(&self, bytes: u64, flushed: bool);
}

/// Memory of one database's memtables.
pub struct MemTablePool {
    limit_bytes: usize,
    idle: Mutex<Vec<Idle>>,
    /// Calls of [`MemTablePool::trim_idle`] since something came or went.
    rests: AtomicU32,
    /// The same, since somebody wrote.
    quiet: AtomicU32,
    /// The argument of the last call of [`MemTablePool::trim_idle`].
    last_write: AtomicU64,
    account: Option<Arc<dyn MemoryAccount>>,
    /// Bytes of the chunks of a memtable, if it is to take no more memory than its entries.
    chunk_bytes: Option<usize>,
}

/// The smallest chunk of a memtable that takes no more memory than its entries, and such chunks that its account's budget would fill: each
/// memtable can have sixteen times as many.
const LEAST_CHUNK: usize = 256 << 10;
const CHUNKS_OF_BUDGET: u64 = 16;

/// Calls of [`MemTablePool::trim_idle`] after which memory goes that nobody came for.
const PATIENCE: u32 = 2;

struct Idle {
    mapping: Mapping,
    /// Bytes from the start that may not be zero.
    dirty: usize,
    /// Made ready for the next memtable.
    ready: bool,
}

/// The largest mapping that is held or made ready: what one of a memtable of 1 GiB has. The index of a larger one would be gigabytes
/// of resident memory for a memtable that nobody may fill.
const LARGEST_HELD: usize = 128 << 20;

impl MemTablePool {
    /// A pool that holds on to at most `memtables` unused memtables of `write_buffer_size` bytes.
    pub fn for_memtables(write_buffer_size: u64, memtables: usize) -> MemTablePool {
        let set: usize = mapping_sizes(write_buffer_size).into_iter().map(Mapping::rounded).sum();
        MemTablePool::new(set.saturating_mul(memtables))
    }

    /// With an account, which is told of the memtables that are made with this pool.
    pub fn with_account(mut self, account: Option<Arc<dyn MemoryAccount>>) -> MemTablePool {
        self.account = account;
        self
    }

    /// The account of its memtables.
    pub fn account(&self) -> Option<&Arc<dyn MemoryAccount>> {
        self.account.as_ref()
    }

    /// A pool that holds on to nothing and makes nothing ready: the memory of its memtables is what the account is told of. They take it from
    /// the operating system in small parts as entries come, at a page fault each time.
    pub fn exact(account: Arc<dyn MemoryAccount>) -> MemTablePool {
        let chunk = usize::try_from(account.budget() / CHUNKS_OF_BUDGET).unwrap_or(usize::MAX);
        let pool = MemTablePool::new(0).with_account(Some(account));
        MemTablePool { chunk_bytes: Some(chunk.clamp(LEAST_CHUNK, LARGEST_HELD)), ..pool }
    }

    /// Bytes of the chunks of a memtable, if they do not follow from its size.
    pub(crate) fn chunk_bytes(&self) -> Option<usize> {
        self.chunk_bytes
    }

    /// A pool that holds on to at most `limit_bytes` that nobody uses.
    pub fn new(limit_bytes: usize) -> MemTablePool {
        MemTablePool {
            limit_bytes,
            idle: Mutex::default(),
            rests: AtomicU32::new(0),
            quiet: AtomicU32::new(0),
            last_write: AtomicU64::new(0),
            account: None,
            chunk_bytes: None,
        }
    }

    /// A mapping of `len` bytes, rounded up as [`Mapping::new`] does, and how many of them, from the start, are resident.
    /// Its contents mean nothing. If it is new, its first `lean` bytes have ordinary pages: a memtable may stay nearly empty.
    pub(crate) fn take(&self, len: usize, lean: usize) -> (Mapping, usize) {
        match self.find(len) {
            Some(Idle { mapping, ready: true, .. }) => {
                let resident = mapping.len();
                (mapping, resident)
            }
            Some(Idle { mapping, dirty, .. }) => (mapping, dirty),
            None => (Mapping::lean(len, lean), 0),
        }
    }

    /// As [`MemTablePool::take`], and all zeros.
    pub(crate) fn take_zeroed(&self, len: usize, lean: usize) -> Mapping {
        match self.find(len) {
            Some(Idle { mut mapping, dirty, .. }) => {
                mapping.zero(dirty);
                mapping
            }
            None => Mapping::lean(len, lean),
        }
    }

    /// An unused mapping, one that was made ready if there is one.
    fn find(&self, len: usize) -> Option<Idle> {
        let len = Mapping::rounded(len);
        // Relaxed: a call more or less does not matter.
        self.rests.store(0, Ordering::Relaxed);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |idle: &Idle| idle.mapping.len() == len;
        let ready = idle.iter().position(|idle| fits(idle) && idle.ready);
        ready.or_else(|| idle.iter().position(fits)).map(|index| idle.swap_remove(index))
    }

    /// Takes a mapping back whose first `dirty` bytes were used. A lean one goes back to the operating system: little of it was.
    pub(crate) fn give(&self, mapping: Mapping, dirty: usize) {
        // Relaxed: as in `find`.
        self.rests.store(0, Ordering::Relaxed);
        self.hold(Idle { mapping, dirty, ready: false });
    }

    fn hold(&self, new: Idle) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = idle.iter().map(|idle| idle.mapping.len()).sum();
        if !new.mapping.is_lean()
            && new.mapping.len() <= LARGEST_HELD
            && held + new.mapping.len() <= self.limit_bytes
        {
            idle.push(new);
            return;
        }
        drop(idle);
        drop(new);
    }

    /// Makes sure that the next memtable of `write_buffer_size` bytes finds its memory resident, and zeroed where it
    /// asks for that.
    pub fn prepare(&self, write_buffer_size: u64) {
        if self.chunk_bytes.is_some() {
            return;
        }
        let [arena, index] = mapping_sizes(write_buffer_size);
        self.prepare_one(arena, false);
        self.prepare_one(index, true);
    }

    fn prepare_one(&self, len: usize, zeroed: bool) {
        if Mapping::rounded(len) > LARGEST_HELD {
            return;
        }
        let (mapping, dirty) = match self.find(len) {
            Some(Idle { mut mapping, dirty, .. }) if zeroed => {
                mapping.zero(dirty);
                (mapping, 0)
            }
            Some(Idle { mapping, dirty, .. }) => {
                populate(mapping.as_ptr(), mapping.len());
                (mapping, dirty)
            }
            None => {
                let mut mapping = Mapping::new(len);
                mapping.prefault();
                (mapping, 0)
            }
        };
        self.hold(Idle { mapping, dirty, ready: true });
    }

    /// Called about once a second with a number that each write changes: gives back memory that nobody came for in the
    /// last calls. True once after the last write: the memtables in use may then give back what they do not use.
    pub fn trim_idle(&self, last_write: u64) -> bool {
        // Relaxed, here and below: a call more or less does not matter.
        let wrote = self.last_write.swap(last_write, Ordering::Relaxed) != last_write;
        let quiet = if wrote { 0 } else { self.quiet.load(Ordering::Relaxed).saturating_add(1) };
        self.quiet.store(quiet, Ordering::Relaxed);
        let unused = self.rests.fetch_add(1, Ordering::Relaxed) >= PATIENCE;
        if unused || quiet == PATIENCE {
            self.drop_idle(quiet < PATIENCE);
        }
        quiet == PATIENCE
    }

    fn drop_idle(&self, keeps_ready: bool) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, unused) = idle.drain(..).partition::<Vec<_>, _>(|idle| idle.ready && keeps_ready);
        *idle = kept;
        drop(idle);
        drop(unused);
    }

    /// Bytes held that nobody uses.
    pub fn idle_bytes(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|idle| idle.mapping.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mapping: &Mapping) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes that nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(mapping.as_ptr(), mapping.len()) }
    }

    #[test]
    fn nothing_is_held_or_made_ready_of_a_memtable_that_is_too_large() {
        let pool = MemTablePool::for_memtables(64 << 30, 4);
        pool.prepare(64 << 30);
        let [arena, index] = mapping_sizes(64 << 30);
        let held: usize = pool.idle.lock().unwrap().iter().map(|idle| idle.mapping.len()).sum();
        assert!(index > LARGEST_HELD && held <= Mapping::rounded(arena), "{held}");
        pool.give(Mapping::new(index), index);
        assert_eq!(
            pool.idle.lock().unwrap().iter().filter(|idle| idle.mapping.len() > LARGEST_HELD).count(),
            0
        );
    }

    #[test]
    fn memory_comes_back_as_it_is_asked_for_and_within_the_limit() {
        let pool = MemTablePool::new(3 << 20);
        let (first, second) = (pool.take(2 << 20, 0).0, pool.take(2 << 20, 0).0);
        let address = first.as_ptr();
        // SAFETY: within the mapping, which nobody else uses.
        unsafe { std::ptr::write_bytes(address, 7, 1000) };
        pool.give(first, 1000);
        pool.give(second, 0);
        assert_eq!(pool.idle_bytes(), 2 << 20);
        assert_eq!(pool.take(4096, 0).0.len(), 4096);
        let (again, resident) = pool.take(2 << 20, 0);
        assert_eq!(resident, 1000);
        assert_eq!(again.as_ptr(), address);
        assert_eq!(bytes(&again)[..1000], [7; 1000], "as it is");
        pool.give(again, 1000);
        let again = pool.take_zeroed(2 << 20, 0);
        assert_eq!(again.as_ptr(), address);
        assert!(bytes(&again).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn preparing_twice_holds_one_set() {
        let pool = MemTablePool::new(64 << 20);
        pool.prepare(8 << 20);
        let held = pool.idle_bytes();
        assert!(held >= 8 << 20);
        pool.prepare(8 << 20);
        assert_eq!(pool.idle_bytes(), held);
        let [arena, index] = mapping_sizes(8 << 20);
        let mut table = pool.take_zeroed(index, 0);
        // SAFETY: within the mapping, which nobody else uses.
        unsafe { std::ptr::write_bytes(table.as_ptr(), 7, 100) };
        pool.give(table, 100);
        pool.prepare(8 << 20);
        table = pool.take_zeroed(index, 0);
        assert!(bytes(&table).iter().all(|byte| *byte == 0));
        let (taken, resident) = pool.take(arena, 0);
        assert!(taken.len() >= arena && resident == taken.len());
        assert_eq!(pool.idle_bytes(), 0);
    }

    #[test]
    fn what_nobody_comes_for_goes_and_what_is_ready_once_nobody_writes() {
        let pool = MemTablePool::new(64 << 20);
        pool.prepare(8 << 20);
        let ready = pool.idle_bytes();
        pool.give(Mapping::new(4096), 10);
        let mut writes = 0..;
        for write in writes.by_ref().take(PATIENCE as usize) {
            assert!(!pool.trim_idle(write));
            assert_eq!(pool.idle_bytes(), ready + 4096, "not yet");
        }
        for write in writes.by_ref().take(10) {
            assert!(!pool.trim_idle(write));
            assert_eq!(pool.idle_bytes(), ready, "somebody writes");
        }
        let last = writes.start;
        assert!(!pool.trim_idle(last), "one more write");
        for _ in 1..PATIENCE {
            assert!(!pool.trim_idle(last));
            assert_eq!(pool.idle_bytes(), ready);
        }
        assert!(pool.trim_idle(last));
        assert_eq!(pool.idle_bytes(), 0);
        assert!(!pool.trim_idle(last), "once");
    }
}

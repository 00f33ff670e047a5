//! One account of the memory of memtables, for all databases that share it.
//!
//! ```text
//! writer -> memtables grew -> the account: active (take writes), used (all, until they are dropped)
//!        -> active over 7/8 of the size, or half of it while all is used: the writer's database flushes its oldest memtable
//!        -> used over the size, and writers may be stalled: the writer waits until memtables are dropped
//! ```
//! Within a memory budget there are two limits: writers wait for flushes over the first, and fail over the second, which only memtables
//! that are flushed and that readers keep can reach.
//! Source: RocksDB `memtable/write_buffer_manager.cc`; `db/db_impl/db_impl_write.cc`, `HandleWriteBufferManagerFlush`.

use outcrop_base::{Error, ErrorKind, Result};
use outcrop_cache::{Cache, Role};
use outcrop_memtable::MemoryAccount;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

/// Memory is charged to a cache in parts of so many bytes. Source: RocksDB `cache/cache_reservation_manager.h`.
const CHARGED_PART: u64 = 256 << 10;
/// A writer that waits for memory looks this often whether its database has failed or closes.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// So often it looks whether readers still keep flushed memtables before it fails.
const LOOKS_FOR_READERS: u32 = 20;

/// Limits the memory of memtables of all databases that are opened with it.
///
/// ```
/// use outcrop::{Db, DbObjects, Env, WriteBufferManager};
/// use std::sync::Arc;
///
/// let manager = Arc::new(WriteBufferManager::new(64 << 20));
/// let objects = DbObjects { write_buffer_manager: Some(manager.clone()), ..Default::default() };
/// let db = Db::builder("/db").env(Env::memory()).objects(objects).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// assert!(manager.memory_usage() > 0);
/// # outcrop::Result::Ok(())
/// ```
pub struct WriteBufferManager {
    size: AtomicU64,
    /// Of all memtables.
    used: AtomicU64,
    /// Of those that take writes.
    active: AtomicU64,
    /// Of those that are flushed and that somebody reads.
    flushed: AtomicU64,
    /// Bytes that even these may not grow beyond, if there is such a limit. Writers then wait for flushes alone.
    most: Option<u64>,
    allow_stall: AtomicBool,
    /// Nobody holds it for long: it pairs with `freed`.
    waiting: Mutex<()>,
    freed: Condvar,
    charge: Option<Charge>,
}

/// Memory of memtables that counts as memory of a cache.
struct Charge {
    cache: Arc<Cache>,
    /// Bytes charged. Changed by the holder of `changing`.
    charged: AtomicU64,
    changing: Mutex<()>,
}

impl Charge {
    /// Bytes charged.
    fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// The bytes to charge for `used` bytes. Less than now only once a quarter of that is unused, as use goes up and
    /// down.
    fn wanted(&self, used: u64) -> u64 {
        let charged = self.charged();
        let fits = used <= charged && used >= charged / 4 * 3;
        if fits { charged } else { used.div_ceil(CHARGED_PART) * CHARGED_PART }
    }
}

impl WriteBufferManager {
    /// A limit of `size` bytes; 0: none, though memory is counted.
    pub fn new(size: u64) -> WriteBufferManager {
        WriteBufferManager {
            size: AtomicU64::new(size),
            used: AtomicU64::new(0),
            active: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            most: None,
            allow_stall: AtomicBool::new(false),
            waiting: Mutex::new(()),
            freed: Condvar::new(),
            charge: None,
        }
    }

    /// The same; the memory of memtables is taken from the capacity of `cache`, in parts of 256 KiB.
    pub fn with_cache(size: u64, cache: Arc<Cache>) -> WriteBufferManager {
        let charge = Charge { cache, charged: AtomicU64::new(0), changing: Mutex::new(()) };
        WriteBufferManager { charge: Some(charge), ..WriteBufferManager::new(size) }
    }

    /// Of a memory budget: writers wait for flushes while those who take writes, or wait for their flush, have `size` bytes, and fail once
    /// together with flushed ones that readers keep it is `most`.
    pub(crate) fn of_budget(size: u64, most: u64, cache: Arc<Cache>) -> WriteBufferManager {
        let manager = WriteBufferManager { most: Some(most), ..WriteBufferManager::with_cache(size, cache) };
        manager.set_allow_stall(true);
        manager
    }

    /// The limit, in bytes.
    pub fn buffer_size(&self) -> u64 {
        // Relaxed, here and below: numbers that order nothing.
        self.size.load(Ordering::Relaxed)
    }

    /// Changes the limit, for databases that are open, too.
    pub fn set_buffer_size(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
        self.wake();
    }

    /// True if writers may be stalled.
    pub fn allow_stall(&self) -> bool {
        self.allow_stall.load(Ordering::Relaxed)
    }

    /// Whether writers wait while all is used. Default false: memtables are flushed, and more is used meanwhile.
    pub fn set_allow_stall(&self, allow: bool) {
        self.allow_stall.store(allow, Ordering::Relaxed);
        self.wake();
    }

    /// Bytes of all memtables that are not dropped yet: those that take writes, that wait for their flush, and that readers or
    /// transactions keep.
    pub fn memory_usage(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes of memtables that take writes.
    pub fn mutable_memtable_memory_usage(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// True if a cache is charged.
    pub fn costs_to_cache(&self) -> bool {
        self.charge.is_some()
    }

    /// Bytes charged to the cache.
    pub fn charged_to_cache(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::charged)
    }

    /// True if the database that is written to should flush something.
    #[inline]
    pub(crate) fn should_flush(&self) -> bool {
        let (size, active) = (self.buffer_size(), self.mutable_memtable_memory_usage());
        let full = || self.memory_usage() >= size && active >= size / 2;
        // Seven eighths, rounded down.
        size > 0 && (active > size - size.div_ceil(8) || full())
    }

    /// True if writers wait.
    #[inline]
    pub(crate) fn should_stall(&self) -> bool {
        let size = self.buffer_size();
        size > 0 && self.allow_stall() && (self.awaited() >= size || self.is_kept_from_writers())
    }

    /// Bytes that writers wait for.
    fn awaited(&self) -> u64 {
        match self.most {
            None => self.memory_usage(),
            Some(_) => self.memory_usage().saturating_sub(self.flushed.load(Ordering::Relaxed)),
        }
    }

    /// True if there is no memory, and no flush will free any.
    fn is_kept_from_writers(&self) -> bool {
        self.most.is_some_and(|most| self.memory_usage() >= most && self.awaited() < self.buffer_size())
    }

    /// Refuses writes of `bytes` at once that are more than a memtable has room for.
    #[inline]
    pub(crate) fn is_too_large(&self, bytes: u64) -> bool {
        self.most.is_some() && bytes > self.largest_write()
    }

    /// Bytes of the largest write within a memory budget: half of what memtables have, and a group of small ones.
    pub(crate) fn largest_write(&self) -> u64 {
        self.buffer_size() / 2 + (1 << 20)
    }

    /// Waits until memory was freed, or `given_up`.
    ///
    /// # Errors
    /// Aborted if readers keep it for a second.
    pub(crate) fn wait_for_memory(&self, given_up: impl Fn() -> bool) -> Result<()> {
        let mut waiting = self.waiting.lock();
        let mut looks = 0;
        while self.should_stall() && !given_up() {
            looks = if self.is_kept_from_writers() { looks + 1 } else { 0 };
            if looks > LOOKS_FOR_READERS {
                return Err(Error::new(
                    ErrorKind::Aborted,
                    format!(
                        "Memory limit reached: iterators keep {} bytes of memtables that are flushed",
                        self.flushed.load(Ordering::Relaxed)
                    ),
                ));
            }
            // The memory may be another database's, and the error this one's: both are looked at.
            self.freed.wait_for(&mut waiting, LOOK_AGAIN);
        }
        Ok(())
    }

    fn wake(&self) {
        if !self.should_stall() {
            // With the lock: a writer that is about to wait has not looked yet, or waits.
            drop(self.waiting.lock());
            self.freed.notify_all();
        }
    }

    /// Has the cache know how much is used. Mostly that fits what is charged, and nothing is locked.
    fn charge(&self) {
        let Some(charge) = &self.charge else { return };
        loop {
            // SeqCst: of a thread that has changed `used` and looks here, and of one that has stored `charged` and looks again, at least
            // one sees what the other did.
            fence(Ordering::SeqCst);
            if charge.wanted(self.memory_usage()) == charge.charged() {
                return;
            }
            let _changing = charge.changing.lock();
            let (charged, wanted) = (charge.charged(), charge.wanted(self.memory_usage()));
            if wanted != charged {
                charge.cache.change_reserved(Role::Memtables, charged as usize, wanted as usize);
                charge.charged.store(wanted, Ordering::Relaxed);
            }
        }
    }
}

impl MemoryAccount for WriteBufferManager {
    fn budget(&self) -> u64 {
        match (self.buffer_size(), self.most) {
            (0, _) => u64::MAX,
            (size, None) => size,
            // One is flushed while the next one fills.
            (size, Some(_)) => size / 2,
        }
    }

    fn grew(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.active.fetch_add(bytes, Ordering::Relaxed);
        self.charge();
    }

    fn sealed(&self, bytes: u64) {
        self.active.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn flushed(&self, bytes: u64) {
        self.flushed.fetch_add(bytes, Ordering::Relaxed);
        if self.allow_stall() {
            self.wake();
        }
    }

    fn freed(&self, bytes: u64, flushed: bool) {
        if flushed {
            self.flushed.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.charge();
        if self.allow_stall() {
            self.wake();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.cache.change_reserved(Role::Memtables, self.charged() as usize, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_cache::CacheOptions;

    #[test]
    fn flushes_come_at_seven_eighths_or_at_half_while_all_is_used() {
        let odd = WriteBufferManager::new(807);
        odd.grew(706);
        assert!(!odd.should_flush(), "of 807: 706 and a bit");
        odd.grew(1);
        assert!(odd.should_flush());
        let manager = WriteBufferManager::new(800);
        manager.grew(700);
        assert!(!manager.should_flush());
        manager.grew(1);
        assert!(manager.should_flush());
        manager.sealed(302);
        assert!(!manager.should_flush(), "399 take writes, 701 are used");
        manager.grew(99);
        assert!(manager.should_flush(), "498 of 800, and all is used");
        manager.freed(100, false);
        assert!(!manager.should_flush());
        assert_eq!((manager.memory_usage(), manager.mutable_memtable_memory_usage()), (700, 498));
    }

    #[test]
    fn writers_stall_where_it_is_allowed_until_memory_is_freed() {
        let manager = WriteBufferManager::new(100);
        manager.grew(100);
        assert!(!manager.should_stall());
        manager.set_allow_stall(true);
        assert!(manager.should_stall());
        std::thread::scope(|scope| {
            scope.spawn(|| manager.wait_for_memory(|| false).unwrap());
            manager.freed(1, false);
        });
        manager.grew(1);
        manager.wait_for_memory(|| true).unwrap();
        manager.set_buffer_size(1000);
        manager.wait_for_memory(|| false).unwrap();
    }

    #[test]
    fn within_a_budget_writers_wait_for_flushes_and_fail_for_readers() {
        let cache = Cache::charging(CacheOptions { capacity: 8 << 20, estimated_entry_charge: 0 });
        let manager = WriteBufferManager::of_budget(1000, 2000, cache);
        assert_eq!(manager.budget(), 500);
        manager.grew(1200);
        manager.sealed(1200);
        assert!(manager.should_stall(), "a flush is awaited");
        std::thread::scope(|scope| {
            scope.spawn(|| manager.wait_for_memory(|| false).unwrap());
            manager.flushed(1200);
        });
        assert!(!manager.should_stall(), "readers keep it");
        manager.grew(800);
        let error = manager.wait_for_memory(|| false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Aborted);
        assert!(error.to_string().contains("1200 bytes"), "{error}");
        manager.freed(1200, true);
        assert!(!manager.should_stall());
        assert_eq!((manager.memory_usage(), manager.awaited()), (800, 800));
        assert!(manager.is_too_large(501 + (1 << 20)) && !manager.is_too_large(500));
        assert!(!WriteBufferManager::new(1).is_too_large(u64::MAX));
    }

    #[test]
    fn a_cache_is_charged_in_parts_and_given_back_late() {
        let cache = Cache::new(CacheOptions { capacity: 8 << 20, estimated_entry_charge: 0 });
        let manager = WriteBufferManager::with_cache(0, cache.clone());
        manager.grew(1);
        assert_eq!((manager.charged_to_cache(), cache.usage()), (256 << 10, 256 << 10));
        manager.grew((1 << 20) - 1);
        assert_eq!(cache.usage(), 1 << 20);
        manager.freed(200 << 10, false);
        assert_eq!(cache.usage(), 1 << 20, "it may be wanted again");
        manager.freed(600 << 10, false);
        assert_eq!(cache.usage(), 256 << 10);
        drop(manager);
        assert_eq!(cache.usage(), 0);
    }

    #[test]
    fn of_threads_that_use_and_free_memory_at_once_the_last_leaves_the_right_charge() {
        const PART: u64 = 300 << 10;
        let cache = Cache::new(CacheOptions { capacity: 64 << 20, estimated_entry_charge: 0 });
        let manager = WriteBufferManager::with_cache(0, cache.clone());
        let start = std::sync::Barrier::new(3);
        for round in 0..2000 {
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        start.wait();
                        manager.grew(PART);
                        manager.grew(PART);
                        manager.freed(2 * PART, false);
                    });
                }
            });
            assert_eq!(
                (manager.memory_usage(), manager.charged_to_cache(), cache.usage()),
                (0, 0, 0),
                "{round}"
            );
        }
    }
}

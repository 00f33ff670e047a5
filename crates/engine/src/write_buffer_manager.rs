//! One account of the memory of memtables, for all databases that share it.
//!
//! ```text
//! writer -> memtables grew -> the account: active (take writes), used (all, until they are dropped)
//!        -> active over 7/8 of the size, or half of it while all is used: the writer's database flushes its oldest memtable
//!        -> used over the size, and writers may be stalled: the writer waits until memtables are dropped
//! ```
//! Source: RocksDB `memtable/write_buffer_manager.cc`; `db/db_impl/db_impl_write.cc`, `HandleWriteBufferManagerFlush`.

use outcrop_cache::Cache;
use outcrop_memtable::MemoryAccount;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

/// Memory is charged to a cache in parts of so many bytes. Source: RocksDB `cache/cache_reservation_manager.h`.
const CHARGED_PART: u64 = 256 << 10;
/// A writer that waits for memory looks this often whether its database has failed or closes.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

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
        size > 0 && self.allow_stall() && self.memory_usage() >= size
    }

    /// Waits until memory was freed, or `given_up`.
    pub(crate) fn wait_for_memory(&self, given_up: impl Fn() -> bool) {
        let mut waiting = self.waiting.lock();
        while self.should_stall() && !given_up() {
            // The memory may be another database's, and the error this one's: both are looked at.
            self.freed.wait_for(&mut waiting, LOOK_AGAIN);
        }
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
                charge.cache.change_reserved(charged as usize, wanted as usize);
                charge.charged.store(wanted, Ordering::Relaxed);
            }
        }
    }
}

impl MemoryAccount for WriteBufferManager {
    fn budget(&self) -> u64 {
        match self.buffer_size() {
            0 => u64::MAX,
            size => size,
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

    fn freed(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.charge();
        if self.allow_stall() {
            self.wake();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.cache.change_reserved(self.charged() as usize, 0);
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
        manager.freed(100);
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
            scope.spawn(|| manager.wait_for_memory(|| false));
            manager.freed(1);
        });
        manager.grew(1);
        manager.wait_for_memory(|| true);
        manager.set_buffer_size(1000);
        manager.wait_for_memory(|| false);
    }

    #[test]
    fn a_cache_is_charged_in_parts_and_given_back_late() {
        let cache = Cache::new(CacheOptions { capacity: 8 << 20, estimated_entry_charge: 0 });
        let manager = WriteBufferManager::with_cache(0, cache.clone());
        manager.grew(1);
        assert_eq!((manager.charged_to_cache(), cache.usage()), (256 << 10, 256 << 10));
        manager.grew((1 << 20) - 1);
        assert_eq!(cache.usage(), 1 << 20);
        manager.freed(200 << 10);
        assert_eq!(cache.usage(), 1 << 20, "it may be wanted again");
        manager.freed(600 << 10);
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
                        manager.freed(2 * PART);
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

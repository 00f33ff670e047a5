//! Ties one open database to the threads of its environment: wakes them, and collects the requests made of
//! upkeep.
//!
//! ```text
//! readers, writers, caches -> lists here -> upkeep (scheduler/upkeep.rs): drops memory and views, removes files,
//!                                           makes memory ready
//! ```
//! Concurrency: asking takes one of the locks here for a moment, and wakes the lane for upkeep. Nothing here knows the
//! structure of the database or what jobs do.

use crate::obsolete_file::ObsoleteFile;
use crate::superversion::SuperVersion;
use outcrop_cache::{Cache, GrowthListener};
use outcrop_env::RetiredWindow;
use outcrop_env::scheduler::{Lane, Membership};
use outcrop_manifest::{BlobFile, TableFile};
use outcrop_memtable::{MemTable, PrefaultRange};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The part of one database that deals with the background threads.
#[derive(Default)]
pub struct Background {
    membership: Arc<OnceLock<Membership>>,
    requests: Arc<Requests>,
    /// Bytes of the tables that are obsolete and not removed yet.
    obsolete_table_bytes: AtomicU64,
    /// Watch the growth of each cache in use.
    listeners: Mutex<Vec<(Weak<Cache>, Arc<GrowthListener>)>>,
    /// When the next timed check is due, by the monotonic clock. Set under the state lock.
    next_check_nanos: AtomicU64,
    /// When something that failed is to be tried again, by the monotonic clock; 0: nothing. Set under the state lock.
    next_retry_nanos: AtomicU64,
}

/// Requests of readers and writers to upkeep, kept without the state lock.
#[derive(Default)]
struct Requests {
    /// Caches that want memory to grow by.
    caches: Mutex<Vec<Arc<Cache>>>,
    /// Objects that only wait to be dropped.
    dropped: Mutex<Dropped>,
    /// Memory that writers will need.
    memory: Mutex<WantedMemory>,
}

/// Objects that upkeep drops, since unmapping and unlinking take milliseconds.
#[derive(Default)]
struct Dropped {
    windows: Vec<RetiredWindow>,
    views: Vec<Arc<SuperVersion>>,
    /// Files that nobody holds any more.
    files: Vec<ObsoleteFile>,
}

/// Puts an obsolete file into the list of those to remove when its last holder lets go of it.
struct AtEnd {
    file: Option<ObsoleteFile>,
    requests: Arc<Requests>,
    membership: Arc<OnceLock<Membership>>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.requests.dropped.lock().files.extend(self.file.take());
        if let Some(membership) = self.membership.get() {
            membership.wake(Lane::Upkeep);
        }
    }
}

#[derive(Default)]
struct WantedMemory {
    /// Write buffer sizes of memtables that will be needed soon.
    memtables: Vec<u64>,
    /// Memory that the writers of these memtables will soon reach, if the memtables are still there.
    ahead: Vec<(Weak<MemTable>, PrefaultRange)>,
}

impl Background {
    /// The database has joined the threads of its environment; once.
    pub fn joined(&self, membership: Membership) {
        // It is started once.
        let _ = self.membership.set(membership);
    }

    /// Lets the threads of all lanes but the one for resuming look for work.
    pub fn wake(&self) {
        self.wake_lane(Lane::Flush);
        self.wake_lane(Lane::Compaction);
        self.wake_lane(Lane::Upkeep);
    }

    /// Lets the threads of `lane` look for work.
    pub fn wake_lane(&self, lane: Lane) {
        if let Some(membership) = self.membership.get() {
            membership.wake(lane);
        }
    }

    /// True from [`Background::joined`] to [`Background::leave`].
    pub fn is_running(&self) -> bool {
        self.membership.get().is_some_and(Membership::is_member)
    }

    /// Waits for the jobs to end, and has none start again; the state must say that the database shuts down.
    pub fn leave(&self) {
        self.listeners.lock().clear();
        if let Some(membership) = self.membership.get() {
            membership.leave();
        }
    }

    /// Has upkeep drop `memory`.
    #[inline]
    pub fn defer_drop(&self, memory: Option<RetiredWindow>) {
        if let Some(memory) = memory {
            self.requests.dropped.lock().windows.push(memory);
            self.wake_lane(Lane::Upkeep);
        }
    }

    /// Drops a view. If it is the last to hold memtables and tables, upkeep does.
    pub fn release_view(&self, view: Arc<SuperVersion>) {
        if Arc::strong_count(&view) == 1 && self.is_running() {
            self.requests.dropped.lock().views.push(view);
            self.wake_lane(Lane::Upkeep);
        }
    }

    /// True if there is memory of [`Background::defer_drop`] to drop.
    pub fn has_windows(&self) -> bool {
        !self.requests.dropped.lock().windows.is_empty()
    }

    /// Drops what [`Background::defer_drop`] was given.
    pub fn drop_windows(&self) {
        let windows = std::mem::take(&mut self.requests.dropped.lock().windows);
        drop(windows);
    }

    /// True if there are views to drop.
    pub fn has_views(&self) -> bool {
        !self.requests.dropped.lock().views.is_empty()
    }

    /// Takes the views to drop.
    pub fn take_views(&self) -> Vec<Arc<SuperVersion>> {
        std::mem::take(&mut self.requests.dropped.lock().views)
    }

    /// Notes that no version that is installed has the table any more: upkeep removes it when nobody holds it.
    pub fn mark_obsolete_table(&self, table: &TableFile) {
        // Relaxed: a figure for people.
        self.obsolete_table_bytes.fetch_add(table.size, Ordering::Relaxed);
        let cache_file_id = *table.runtime.cache_file_id.get_or_init(Cache::new_file_id);
        let file = ObsoleteFile {
            number: table.number,
            dir: table.dir.clone(),
            table_size: Some(table.size),
            cache_file_id,
        };
        let _ = table.runtime.at_end.set(Box::new(self.at_end(file)));
    }

    /// As [`Background::mark_obsolete_table`], of a blob file.
    pub fn mark_obsolete_blob(&self, blob: &BlobFile) {
        let cache_file_id = *blob.cache_file_id.get_or_init(Cache::new_file_id);
        let file =
            ObsoleteFile { number: blob.number, dir: blob.dir.clone(), table_size: None, cache_file_id };
        let _ = blob.at_end.set(Box::new(self.at_end(file)));
    }

    fn at_end(&self, file: ObsoleteFile) -> AtEnd {
        AtEnd { file: Some(file), requests: self.requests.clone(), membership: self.membership.clone() }
    }

    /// True if there are obsolete files that nobody holds.
    pub fn has_released_files(&self) -> bool {
        !self.requests.dropped.lock().files.is_empty()
    }

    /// Takes the obsolete files that nobody holds, for the caller to remove.
    pub fn take_released_files(&self) -> Vec<ObsoleteFile> {
        let files = std::mem::take(&mut self.requests.dropped.lock().files);
        let bytes = files.iter().filter_map(|file| file.table_size).sum();
        self.obsolete_table_bytes.fetch_sub(bytes, Ordering::Relaxed);
        files
    }

    /// Bytes of the tables that are obsolete and not removed yet.
    pub fn obsolete_table_bytes(&self) -> u64 {
        self.obsolete_table_bytes.load(Ordering::Relaxed)
    }

    /// Has upkeep make the memory ready for a memtable of that write buffer size.
    #[cold]
    pub fn want_memtable(&self, write_buffer_size: u64) {
        self.requests.memory.lock().memtables.push(write_buffer_size);
        self.wake_lane(Lane::Upkeep);
    }

    /// Has upkeep make the memory ready that writers of `memtable` come to next.
    #[cold]
    pub fn want_prefault(&self, memtable: &Arc<MemTable>, ahead: PrefaultRange) {
        self.requests.memory.lock().ahead.push((Arc::downgrade(memtable), ahead));
        self.wake_lane(Lane::Upkeep);
    }

    /// Takes a cache that wants memory to grow by.
    pub fn take_growing_cache(&self) -> Option<Arc<Cache>> {
        self.requests.caches.lock().pop()
    }

    /// Takes a request of [`Background::want_prefault`] whose memtable is still there.
    pub fn take_prefault(&self) -> Option<(Arc<MemTable>, PrefaultRange)> {
        let mut memory = self.requests.memory.lock();
        std::iter::from_fn(|| memory.ahead.pop())
            .find_map(|(memtable, ahead)| memtable.upgrade().map(|memtable| (memtable, ahead)))
    }

    /// Takes a request of [`Background::want_memtable`].
    pub fn take_wanted_memtable(&self) -> Option<u64> {
        self.requests.memory.lock().memtables.pop()
    }

    /// Has upkeep make the memory ready by which `cache` will grow.
    pub fn watch_growth(&self, cache: &Arc<Cache>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|(cache, _)| cache.strong_count() > 0);
        if listeners.iter().any(|(known, _)| known.as_ptr() == Arc::as_ptr(cache)) {
            return;
        }
        let (requests, growing) = (self.requests.clone(), Arc::downgrade(cache));
        let membership = self.membership.clone();
        let listener: Arc<GrowthListener> = Arc::new(move || {
            let Some(cache) = growing.upgrade() else { return };
            let mut caches = requests.caches.lock();
            if !caches.iter().any(|waiting| Arc::ptr_eq(waiting, &cache)) {
                caches.push(cache);
            }
            drop(caches);
            if let Some(membership) = membership.get() {
                membership.wake(Lane::Upkeep);
            }
        });
        cache.add_growth_listener(&listener);
        listeners.push((Arc::downgrade(cache), listener));
    }

    /// When upkeep has to look next, by the monotonic clock.
    pub fn next_look_nanos(&self) -> u64 {
        // Relaxed: a thread that changes them wakes upkeep.
        let check = self.next_check_nanos.load(Ordering::Relaxed);
        match self.next_retry_nanos.load(Ordering::Relaxed) {
            0 => check,
            retry => check.min(retry),
        }
    }

    /// True if the timed check is due at `now`, which the caller then does; the next one is at `following`. With the state
    /// locked.
    pub fn take_check(&self, now: u64, following: u64) -> bool {
        // Relaxed: set under the state lock, which is held.
        let due = self.next_check_nanos.load(Ordering::Relaxed) <= now;
        if due {
            self.next_check_nanos.store(following, Ordering::Relaxed);
        }
        due
    }

    /// True if something that failed is to be tried again at `now`, which the caller then does. With the state locked.
    pub fn take_retry(&self, now: u64) -> bool {
        // Relaxed: set under the state lock, which is held.
        let retry = self.next_retry_nanos.load(Ordering::Relaxed);
        let due = retry != 0 && retry <= now;
        if due {
            self.next_retry_nanos.store(0, Ordering::Relaxed);
        }
        due
    }

    /// Has upkeep look at what failed at that time; 0: never. With the state locked.
    pub fn set_retry(&self, nanos: u64) {
        // Relaxed: set under the state lock; a thread that waits is woken to read it.
        self.next_retry_nanos.store(nanos, Ordering::Relaxed);
        self.wake_lane(Lane::Upkeep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::Comparator;
    use outcrop_cache::CacheOptions;
    use outcrop_manifest::Version;
    use outcrop_memtable::MemTablePool;

    #[test]
    fn timed_work_is_taken_once_when_it_is_due() {
        let background = Background::default();
        assert!(background.take_check(5, 100));
        assert!(!background.take_check(99, 300));
        assert_eq!(background.next_look_nanos(), 100);
        assert!(!background.take_retry(u64::MAX), "nothing failed");
        background.set_retry(50);
        assert_eq!(background.next_look_nanos(), 50);
        assert!(!background.take_retry(49));
        assert!(background.take_retry(50));
        assert!(!background.take_retry(50), "it was taken");
        assert_eq!(background.next_look_nanos(), 100);
    }

    #[test]
    fn memory_for_a_memtable_that_is_gone_is_not_made_ready() {
        let background = Background::default();
        let pool = Arc::new(MemTablePool::new(0));
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 1 << 16, &pool));
        let gone = Arc::downgrade(&memtable);
        drop(memtable);
        assert!(gone.upgrade().is_none());
        background.want_memtable(7);
        background.want_memtable(8);
        assert_eq!(background.take_wanted_memtable(), Some(8));
        assert_eq!(background.take_wanted_memtable(), Some(7));
        assert_eq!(background.take_wanted_memtable(), None);
        assert!(background.take_prefault().is_none());
    }

    #[test]
    fn a_view_is_dropped_at_once_where_no_thread_works() {
        let background = Background::default();
        let pool = Arc::new(MemTablePool::new(0));
        let memtable = Arc::new(MemTable::new(Comparator::Bytewise, 0, &pool));
        let view = Arc::new(SuperVersion::new(memtable, Vec::new(), Arc::new(Version::empty(1))));
        let weak = Arc::downgrade(&view);
        background.release_view(view);
        assert!(weak.upgrade().is_none() && !background.has_views());
        assert!(!background.is_running());
        background.wake();
        background.leave();
    }

    #[test]
    fn a_cache_is_watched_once() {
        let background = Background::default();
        let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        background.watch_growth(&cache);
        background.watch_growth(&cache);
        assert_eq!(background.listeners.lock().len(), 1);
        drop(cache);
        let other = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        background.watch_growth(&other);
        assert_eq!(background.listeners.lock().len(), 1, "that of a cache that is gone is forgotten");
    }
}

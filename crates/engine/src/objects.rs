//! Objects that an application makes once and gives to the databases that it opens: limits that they share.

use crate::info_log::Logger;
use crate::memory_budget::{MemoryBudget, contradicts};
use crate::sst_file_manager::SstFileManager;
use crate::write_buffer_manager::WriteBufferManager;
use outcrop_base::Result;
use outcrop_env::{
    Clock, IoKind, IoPriority, Pace, PaceObserver, RateLimiter, RateLimiterOptions, WriteFile,
};
use outcrop_memtable::MemoryAccount;
use outcrop_options::DbOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Objects with behaviour that a database is opened with, beside its plain [`DbOptions`]. Cloning shares them.
///
/// ```
/// use outcrop::{Db, DbObjects, Env, RateLimiter, RateLimiterOptions};
/// use std::sync::Arc;
///
/// let limit = RateLimiterOptions { bytes_per_second: 256 << 20, ..Default::default() };
/// let objects = DbObjects { rate_limiter: Some(Arc::new(RateLimiter::new(limit))), ..Default::default() };
/// // Together they write no faster than that.
/// let one = Db::builder("/one").env(Env::memory()).objects(objects.clone()).create_if_missing(true).open()?;
/// let two = Db::builder("/two").env(Env::memory()).objects(objects).create_if_missing(true).open()?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Default)]
pub struct DbObjects {
    /// Limits what flushes and compactions write, and read if its mode says so. Default: none, or one of
    /// `rate_limiter_bytes_per_sec`.
    pub rate_limiter: Option<Arc<RateLimiter>>,
    /// Takes what would be written to LOG, of which there is no file then. Default: none.
    pub logger: Option<Arc<dyn Logger>>,
    /// Limits the memory of memtables. Default: none, or one of `db_write_buffer_size` for this database alone.
    pub write_buffer_manager: Option<Arc<WriteBufferManager>>,
    /// Limits the memory of the database, in place of a write buffer manager and of block caches. It counts for a database that is only
    /// read, too. Default: none.
    pub memory_budget: Option<Arc<MemoryBudget>>,
    /// Counts and limits the space of tables and blob files, and removes them slowly. Default: none.
    pub sst_file_manager: Option<Arc<SstFileManager>>,
}

impl DbObjects {
    /// Notes in `options` what RocksDB derives from objects, before the options are corrected.
    pub(crate) fn tell(&self, options: &mut DbOptions) {
        if let Some(limiter) = &self.rate_limiter {
            let rate = limiter.bytes_per_second().to_string();
            let known = options.kept.set(outcrop_options::kept::DB_KEPT, "rate_limiter_bytes_per_sec", &rate);
            debug_assert!(matches!(known, Ok(true)));
        }
    }

    /// Refuses an account of memtables beside a memory budget, which has its own.
    ///
    /// # Errors
    /// InvalidArgument naming it.
    pub(crate) fn check_budget(&self, options: &DbOptions) -> Result<()> {
        match self.memory_budget {
            Some(_) if self.write_buffer_manager.is_some() => Err(contradicts("write_buffer_manager")),
            Some(_) if options.db_write_buffer_size > 0 => Err(contradicts("db_write_buffer_size")),
            _ => Ok(()),
        }
    }

    /// Makes the objects that options in the form of text ask for; they pace IO by `clock`.
    pub(crate) fn complete(mut self, options: &DbOptions, clock: &Arc<dyn Clock>) -> DbObjects {
        let asked = options.kept.number("rate_limiter_bytes_per_sec").filter(|rate| *rate > 0);
        if let (None, Some(bytes_per_second)) = (&self.rate_limiter, asked) {
            let options = RateLimiterOptions { bytes_per_second, ..RateLimiterOptions::default() };
            self.rate_limiter = Some(Arc::new(RateLimiter::with_clock(options, clock.clone())));
        }
        if let Some(budget) = &self.memory_budget {
            self.write_buffer_manager = Some(budget.write_buffer_manager().clone());
        }
        if self.write_buffer_manager.is_none() && options.db_write_buffer_size > 0 {
            self.write_buffer_manager = Some(Arc::new(WriteBufferManager::new(options.db_write_buffer_size)));
        }
        self
    }

    /// The account that memtables are counted in.
    pub(crate) fn memory_account(&self) -> Option<Arc<dyn MemoryAccount>> {
        self.write_buffer_manager.clone().map(|manager| manager as Arc<dyn MemoryAccount>)
    }
}

/// Paces the IO of one database.
#[derive(Clone, Default)]
pub struct Pacing {
    /// The limiter, if there is one.
    pub limiter: Option<Arc<RateLimiter>>,
    /// Writers are held back: the IO of flushes and compactions is urgent. Set by `WriteStall`.
    pub urgent: Arc<AtomicBool>,
    /// Counts what was granted.
    pub observer: Option<Arc<dyn PaceObserver>>,
}

impl Pacing {
    /// How work of that priority asks for its tokens; `None` if it need not.
    pub fn of(&self, priority: IoPriority) -> Option<Pace> {
        let limiter = self.limiter.clone()?;
        Some(Pace { limiter, priority, urgent: self.urgent.clone(), observer: self.observer.clone() })
    }

    /// How a compaction may read; `None` if reads are not limited.
    pub fn reads(&self) -> Option<Arc<Pace>> {
        let pace = self.of(IoPriority::Low).filter(|pace| pace.limiter.limits(IoKind::Read));
        pace.map(Arc::new)
    }

    /// `file` as a job that writes tables of `level` may write it; flushes write tables of level -1.
    /// Source: RocksDB `FlushJob::GetRateLimiterPriority`, `CompactionJob::GetRateLimiterPriority`.
    pub fn file(&self, file: Box<dyn WriteFile>, level: i32) -> Box<dyn WriteFile> {
        Pace::file(self.of(if level < 0 { IoPriority::High } else { IoPriority::Low }), file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::clock::ManualClock;

    #[test]
    fn a_limiter_that_options_ask_for_goes_by_the_clock_of_the_database() {
        let mut options = DbOptions::default();
        let rows = outcrop_options::kept::DB_KEPT;
        assert!(options.kept.set(rows, "rate_limiter_bytes_per_sec", "1000000").unwrap());
        let manual = Arc::new(ManualClock::at(1_000_000));
        let clock: Arc<dyn Clock> = manual.clone();
        let limiter = DbObjects::default().complete(&options, &clock).rate_limiter.expect("one is asked for");
        let before = manual.monotonic_nanos();
        limiter.request(300_000, IoPriority::High, IoKind::Write);
        // Three refills of 100 ms, the first of which is there at once.
        assert_eq!(manual.monotonic_nanos() - before, 200_000_000);
    }
}

//! The checks that only time makes due.

use crate::core::Core;
use crate::jobs::JobContext;
use crate::obsolete_files::drop_kept_wals;
use crate::options_file;
use crate::properties::dump_stats_if_due;
use crate::wal_archive;
use outcrop_env::scheduler::Lane;
use outcrop_memtable::MemTable;
use outcrop_options::offpeak;
use std::sync::Arc;

/// Looks at everything that nobody announces.
pub fn timed_check(core: &Core) {
    check_marks(&core.jobs);
    trim_memory(&core.jobs);
    keep_within_budget(core);
    core.ctx.empty_trash();
    dump_stats_if_due(core);
    options_file::note_if_outdated(core);
    wal_archive::purge(&core.ctx);
    if core.ctx.scrub.is_due(|| core.ctx.env.clock.monotonic_nanos()) {
        core.ctx.background.wake_lane(Lane::Compaction);
    }
}

/// Gives back memory that no writer comes for, and the WAL that none writes over.
fn trim_memory(jobs: &JobContext) {
    if jobs.ctx.memtable_pool.trim_idle(jobs.versions.visible_seq().0) {
        drop_kept_wals(jobs);
        let active: Vec<Arc<MemTable>> = {
            let state = jobs.versions.state.lock();
            state.column_families.values().map(|cf| cf.memtable.clone()).collect()
        };
        active.iter().for_each(|memtable| memtable.give_back_unused());
    }
}

/// Flushes memtables that nobody writes to for those who wait for their memory, and returns what the allocator keeps.
fn keep_within_budget(core: &Core) {
    if core.ctx.objects.memory_budget.is_some() {
        // An error of the flush is told to who writes next.
        let _ = core.commit.flush_for_others();
        core.ctx.trim_heap();
    }
}

/// Looks which tables reached their age limit, or hold garbage that no snapshot keeps any more.
fn check_marks(jobs: &JobContext) {
    let mut state = jobs.versions.state.lock();
    let now = jobs.ctx.env.clock.now_micros() / 1_000_000;
    let offpeak =
        offpeak::seconds_ahead(jobs.ctx.live.load().kept.get("daily_offpeak_time_utc").unwrap_or(""), now);
    let oldest_snapshot = jobs.snapshots.oldest().unwrap_or_else(|| jobs.versions.visible_seq());
    let mut found = false;
    for cf in state.column_families.values_mut() {
        cf.refresh_marks(now, offpeak, oldest_snapshot);
        found |= cf.debt.needs_compaction;
    }
    if found {
        jobs.versions.wake(&mut state);
    }
}

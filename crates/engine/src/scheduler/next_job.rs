//! The only place that decides what runs next in the background.
//!
//! Order for compaction threads: manual requests, then what the compaction style of any column family wants most, then a step of the
//! scrubber.
//! Upkeep drops replaced views and obsolete files, then makes memory ready: for the caches that grow, which readers wait
//! for, ahead of writers in memtables whose memory is not there, and for the memtables to come.
//! Once a second it looks for what time alone makes due: statistics, tables that reached their age limit or
//! that no snapshot needs any more, obsolete files that a reader has released, and memory that no memtable took or uses.
//! After a background error no flush, compaction or step of the scrubber starts until it is cleared (`stopping.rs`); upkeep and
//! resuming go on.
//!
//! Concurrency: with the state locked; the memtables or tables of a picked job are marked before the lock is released.

use super::job::Job;
use crate::compaction::job::{self as compaction_job, CompactionJob};
use crate::compaction::manual::{self, ManualPick};
use crate::compaction::pick;
use crate::context::DbContext;
use crate::flush::job as flush;
use crate::obsolete_files::may_purge;
use crate::state::{CfState, DbState};
use crate::version_set::VersionSet;
use outcrop_env::scheduler::{Lane, WantedThreads};
use outcrop_options::DbOptions;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a thread looks for what time alone makes due.
pub const TIMED_CHECK: Duration = Duration::from_secs(1);

/// Threads at most, whatever `max_background_jobs` says: more would wait for each other, and the system has others to
/// run.
const MOST_THREADS: i32 = 256;

/// How the jobs of one database are divided. Source: RocksDB `DBImpl::GetBGJobLimits`.
///
/// Where `max_background_flushes` or `max_background_compactions` is set, both count, and what is not set is 1.
pub fn wanted_threads(options: &DbOptions) -> WantedThreads {
    let kept = |name: &str| options.kept.get(name).and_then(|text| text.parse::<i32>().ok());
    let (flushes, compactions) = (kept("max_background_flushes"), kept("max_background_compactions"));
    if flushes.is_some() || compactions.is_some() {
        let limit = |asked: Option<i32>| asked.unwrap_or(-1).clamp(1, MOST_THREADS) as usize;
        return WantedThreads { flushes: limit(flushes), compactions: limit(compactions) };
    }
    let jobs = options.max_background_jobs.clamp(1, MOST_THREADS) as usize;
    let flushes = (jobs / 4).max(1);
    WantedThreads { flushes, compactions: jobs.saturating_sub(flushes).max(1) }
}

/// The next job of `lane`; `None` if there is none now.
pub fn next_job(versions: &VersionSet, lane: Lane) -> Option<Job> {
    let options = &versions.ctx.options;
    let threads = wanted_threads(&versions.ctx.live.load());
    let mut state = versions.state.lock();
    if state.shutting_down {
        return None;
    }
    match lane {
        Lane::Upkeep => {
            next_upkeep(&versions.ctx, &mut state).or_else(|| next_timed(&versions.ctx, &mut state))
        }
        Lane::Resume => versions.next_resume(&mut state).then_some(Job::Resume),
        _ if state.background_error.is_some() => None,
        Lane::Flush if state.running_flushes >= threads.flushes || state.flush_pause.is_some() => None,
        Lane::Flush => {
            let atomic = options.atomic_flush || state.resuming;
            flush::pick(&mut state, atomic).map(Job::Flush)
        }
        Lane::Compaction if state.pool_compactions >= threads.compactions => None,
        Lane::Compaction if state.paused > 0 => None,
        Lane::Compaction => next_compaction(versions, &mut state).or_else(|| next_scrub(&versions.ctx)),
    }
}

/// How long until upkeep has something to check. For a database that stops there is nothing, and it gets no job any more: were a check due, the
/// thread would ask again and again.
pub fn until_next_check(ctx: &DbContext) -> Duration {
    const LATER: Duration = Duration::from_secs(3600);
    // Relaxed: a thread that finds it late looks once more.
    if ctx.closing.load(Ordering::Relaxed) {
        return LATER;
    }
    let now = ctx.env.clock.monotonic_nanos();
    Duration::from_nanos(ctx.background.next_look_nanos().saturating_sub(now))
}

/// The next check that time has made due.
fn next_timed(ctx: &DbContext, _state: &mut DbState) -> Option<Job> {
    let now = ctx.env.clock.monotonic_nanos();
    if ctx.background.take_retry(now) {
        return Some(Job::LookForRetry);
    }
    let following = now + TIMED_CHECK.as_nanos() as u64;
    ctx.background.take_check(now, following).then_some(Job::TimedCheck)
}

/// A step of the scrubber, for a thread that no compaction wants.
fn next_scrub(ctx: &DbContext) -> Option<Job> {
    ctx.scrub.take_step(|| ctx.env.clock.monotonic_nanos()).then_some(Job::Scrub)
}

/// Short work comes first. Purging is ahead of making memory ready: the memory of memtables that are gone is what those to
/// come get.
fn next_upkeep(ctx: &DbContext, state: &mut DbState) -> Option<Job> {
    if ctx.background.has_windows() {
        return Some(Job::DropWindows);
    }
    if may_purge(ctx, state) {
        return Some(Job::Purge);
    }
    if let Some(cache) = ctx.background.take_growing_cache() {
        return Some(Job::PrepareSlabs(cache));
    }
    if let Some((memtable, ahead)) = ctx.background.take_prefault() {
        return Some(Job::Prefault(memtable, ahead));
    }
    ctx.background.take_wanted_memtable().map(Job::PrepareMemtable)
}

fn next_compaction(versions: &VersionSet, state: &mut DbState) -> Option<Job> {
    let live = versions.ctx.live.load();
    let max_subcompactions = live.max_subcompactions;
    let threads = wanted_threads(&live);
    if state.compaction_pause.is_some_and(|pause| pause.of_picking) {
        return None;
    }
    // The compactions that run wake this lane when they end.
    let budget = versions.ctx.objects.memory_budget.as_ref();
    if state.pool_compactions > 0 && budget.is_some_and(|budget| budget.is_short_for_jobs()) {
        return None;
    }
    loop {
        match manual::pick(state, max_subcompactions) {
            ManualPick::Run(request, job) => {
                compaction_job::start(state, &job);
                state.pool_compactions += 1;
                return Some(Job::Compaction(job, Some(request)));
            }
            ManualPick::Finished => {
                versions.state_changed.notify_all();
            }
            ManualPick::Nothing => break,
        }
    }
    if state.compaction_pause.is_some() {
        return None;
    }
    let may_start = |cf: &&CfState| {
        let held_back = || state.manual.iter().any(|request| request.holds_back(cf.cf.id()));
        cf.debt.needs_compaction && cf.ingesting == 0 && !held_back()
    };
    let job = state.column_families.values().filter(may_start).find_map(|cf| {
        let options = cf.cf.options.load();
        let compaction = pick::pick(&cf.pick_input(&options))?;
        let idle = threads.compactions.saturating_sub(state.pool_compactions + 1);
        let extra = pick::round_robin::extra_subcompactions(&compaction, max_subcompactions, idle);
        Some(CompactionJob::new(compaction, cf, max_subcompactions.saturating_add(extra)))
    })?;
    compaction_job::start(state, &job);
    state.pool_compactions += 1;
    Some(Job::Compaction(Box::new(job), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::Parts;

    #[test]
    fn a_quarter_of_the_jobs_may_be_flushes_and_each_kind_has_one() {
        let of = |jobs: i32| {
            let wanted = wanted_threads(&DbOptions { max_background_jobs: jobs, ..DbOptions::default() });
            (wanted.flushes, wanted.compactions)
        };
        assert_eq!(of(-5), (1, 1));
        assert_eq!(of(1), (1, 1));
        assert_eq!(of(2), (1, 1));
        assert_eq!(of(4), (1, 3));
        assert_eq!(of(8), (2, 6));
        assert_eq!(of(i32::MAX), (64, 192));
    }

    #[test]
    fn a_database_that_stops_has_nothing_to_check() {
        let parts = Parts::new();
        parts.ctx.background.set_retry(1);
        assert_eq!(until_next_check(&parts.ctx), Duration::ZERO, "it is due");
        parts.versions.state.lock().shutting_down = true;
        parts.ctx.closing.store(true, Ordering::Relaxed);
        assert!(next_job(&parts.versions, Lane::Upkeep).is_none());
        assert!(until_next_check(&parts.ctx) > Duration::ZERO, "or the thread would not rest");
    }

    #[test]
    fn the_older_options_count_where_one_is_set() {
        let of = |flushes: &str, compactions: &str| {
            let mut options = DbOptions { max_background_jobs: 16, ..DbOptions::default() };
            for (name, value) in
                [("max_background_flushes", flushes), ("max_background_compactions", compactions)]
            {
                options.kept.set(outcrop_options::kept::DB_KEPT, name, value).unwrap();
            }
            let wanted = wanted_threads(&options);
            (wanted.flushes, wanted.compactions)
        };
        assert_eq!(of("-1", "-1"), (4, 12));
        assert_eq!(of("3", "-1"), (3, 1));
        assert_eq!(of("-1", "5"), (1, 5));
        assert_eq!(of("2", "0"), (2, 1));
    }
}

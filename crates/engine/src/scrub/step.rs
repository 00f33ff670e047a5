//! A step of the scrubber: some MiB of one file are read and verified.
//!
//! A block that fails to verify is read a second time, as a read may fail once by itself. Damage that both reads show is told to listeners, LOG
//! and the figures, and stops nothing. Without `paranoid_checks` a damaged table is put into quarantine.

use super::file::File;
use super::options::ScrubOptions;
use super::plan::{Candidate, Turns};
use super::scrubber::{Current, Scrubber, Work};
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::events::Event;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::jobs::JobContext;
use crate::quarantine::find as quarantine;
use outcrop_base::{Error, ErrorKind};
use outcrop_env::{IoKind, IoPriority};
use outcrop_manifest::{FileNumber, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of a step: so long a compaction waits for the thread.
const STEP: u64 = 4 << 20;
/// How soon new files are looked for if none is due.
const LOOK: Duration = Duration::from_secs(10);

/// Runs a step that the scheduler took.
pub fn step(jobs: &JobContext) {
    let ctx = &jobs.ctx;
    let Some(options) = ctx.scrub.options() else {
        ctx.scrub.end_without_step();
        return;
    };
    let _ending = SwitchedOffByPanic(&ctx.scrub);
    let work = &mut *ctx.scrub.work.lock();
    let now = ctx.env.clock.monotonic_nanos();
    work.budget.accrue(now, options.bytes_per_second);
    let pause = match work.budget.is_left() {
        true => read_some(jobs, &options, work, now),
        false => 0,
    };
    let wait = pause.max(work.budget.left_in(options.bytes_per_second));
    // Closed or switched off while it ran: no file stays open.
    if ctx.check_open().is_err() || ctx.scrub.options().is_none() {
        work.current = None;
    }
    ctx.scrub.end_step(options, ctx.env.clock.monotonic_nanos().saturating_add(wait));
}

/// A comparator of the application that panics would do so in each step: the first switches the scrubber off. LOG has the panic.
struct SwitchedOffByPanic<'s>(&'s Scrubber);

impl Drop for SwitchedOffByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(None);
            self.0.end_without_step();
        }
    }
}

/// Reads up to a step; gives the nanoseconds until there is something to read.
fn read_some(jobs: &JobContext, options: &ScrubOptions, work: &mut Work, now: u64) -> u64 {
    let ctx = &jobs.ctx;
    // One that a compaction has replaced meanwhile is not held open.
    if let Some(Current { number, .. }) = work.current
        && now.saturating_sub(work.looked_nanos) >= LOOK.as_nanos() as u64
    {
        work.looked_nanos = now;
        if files(jobs).iter().all(|file| file.number() != number) {
            work.current = None;
        }
    }
    if work.current.is_none() {
        let look = LOOK.as_nanos() as u64;
        if work.turns.is_empty() || work.listed_nanos.is_none_or(|at| now.saturating_sub(at) >= look) {
            list(jobs, options, work, now);
        }
        // Relaxed: a figure for people.
        ctx.scrub.figures.missing.store(work.never as u64, Ordering::Relaxed);
        let Some(next) = work.turns.pop_front() else {
            return work.next_nanos.map_or(look, |at| at.saturating_sub(now).min(look));
        };
        work.never = work.never.saturating_sub(1);
        // One that is gone since all were looked at has no turn.
        let Some(file) = next.get() else { return 0 };
        let number = file.number();
        match file.open(ctx) {
            Ok(rest) => (work.current, work.looked_nanos) = (Some(Current { number, rest }), now),
            Err(error) => {
                // A second look, as at blocks.
                let error = file.open(ctx).err().unwrap_or(error);
                found(jobs, number, &error);
                work.plan.verified(number, now);
                return 0;
            }
        }
    }
    let Some(current) = &mut work.current else { return 0 };
    let pace = ctx.pacing.of(IoPriority::Low).filter(|pace| pace.limiter.limits(IoKind::Read));
    let mut read = 0;
    while read < STEP && work.budget.is_left() && ctx.check_open().is_ok() {
        let (bytes, verified) = match current.rest.verify_next() {
            Some(verified) => verified,
            None => {
                end(ctx, work);
                ctx.scrub.figures.files.fetch_add(1, Ordering::Relaxed);
                return 0;
            }
        };
        read += bytes;
        work.budget.spend(bytes);
        ctx.scrub.figures.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(pace) = &pace {
            pace.request(bytes, IoKind::Read);
        }
        if let Err(error) = verified {
            match current.rest.verify_again() {
                Ok(()) => log_line!(ctx, "scrub: a second read of what follows is whole: {error}"),
                Err(error) => {
                    found(jobs, current.number, &error);
                    end(ctx, work);
                    return 0;
                }
            }
        }
    }
    0
}

/// Looks at all files, and puts them in the order of their turns.
fn list(jobs: &JobContext, options: &ScrubOptions, work: &mut Work, now: u64) {
    let files = files(jobs);
    let candidates: Vec<Candidate> = files.iter().map(File::candidate).collect();
    let Turns { due, never, next_in } = work.plan.turns(&candidates, now, options.period);
    let by_number: BTreeMap<FileNumber, &File> = files.iter().map(|file| (file.number(), file)).collect();
    work.turns = due.iter().filter_map(|number| by_number.get(number).map(|file| file.known())).collect();
    (work.never, work.next_nanos) = (never, next_in.map(|nanos| now.saturating_add(nanos)));
    work.listed_nanos = Some(now);
}

/// The file had its turn.
fn end(ctx: &DbContext, work: &mut Work) {
    if let Some(current) = work.current.take() {
        work.plan.verified(current.number, ctx.env.clock.monotonic_nanos());
    }
}

/// Tells of a file that is damaged, or cannot be read. One that is gone by now is neither.
fn found(jobs: &JobContext, number: FileNumber, error: &Error) {
    let ctx = &jobs.ctx;
    let Some(file) = files(jobs).into_iter().find(|file| file.number() == number) else { return };
    if error.kind() != ErrorKind::Corruption {
        ctx.scrub.figures.failed.fetch_add(1, Ordering::Relaxed);
        log_at!(ctx, LogLevel::Warn, "scrub: {} cannot be read: {error}", file.path(ctx).display());
        if ctx.listens() {
            ctx.tell(Event::UnreadableFound(&file.damage(ctx, error)));
        }
        quarantine::after_scrub(jobs, &file, error);
        return;
    }
    ctx.scrub.figures.damaged.fetch_add(1, Ordering::Relaxed);
    log_at!(ctx, LogLevel::Error, "scrub: damage in {}: {error}", file.path(ctx).display());
    quarantine::after_scrub(jobs, &file, error);
    if ctx.listens() {
        ctx.tell(Event::DamageFound(&file.damage(ctx, error)));
    }
}

/// All files of the newest versions.
fn files(jobs: &JobContext) -> Vec<File> {
    let versions: Vec<(Arc<ColumnFamily>, Arc<Version>)> = {
        let state = jobs.versions.state.lock();
        state.column_families.values().map(|cf| (cf.cf.clone(), cf.version.clone())).collect()
    };
    let mut files = Vec::new();
    for (cf, version) in versions {
        files.extend(version.files().map(|(level, file)| File::Table(cf.clone(), level, file.clone())));
        files.extend(version.blob_files.values().map(|blob| File::Blobs(cf.clone(), blob.file.clone())));
    }
    files
}

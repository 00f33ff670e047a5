//! A step of the scrubber: some MiB of one file are read and verified.
//!
//! A block that fails to verify is read a second time, as a read may fail once by itself. Damage that both reads show is told to listeners, LOG
//! and the figures, and stops nothing.

use super::options::{DamageInfo, ScrubOptions};
use super::plan::{Candidate, Next};
use super::scrubber::{Current, Rest, Scrubber, Work};
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::events::Event;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::jobs::JobContext;
use outcrop_base::keys::user_key;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::{Access, DirectIo, IoKind, IoPriority, OpenRead};
use outcrop_manifest::{BlobFile, FileNumber, TableFile, Version};
use outcrop_table::blob::{self, BlobReader};
use outcrop_table::{TableReader, TableReaderOptions};
use std::path::PathBuf;
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
        let files = files(jobs);
        let candidates: Vec<Candidate> = files.iter().map(File::candidate).collect();
        let (next, missing) = work.plan.next(&candidates, now, options.period);
        // Relaxed: a figure for people.
        ctx.scrub.figures.missing.store(missing, Ordering::Relaxed);
        let number = match next {
            Next::File(number) => number,
            Next::In(nanos) => return nanos.unwrap_or(u64::MAX).min(LOOK.as_nanos() as u64),
        };
        let file = files.into_iter().find(|file| file.number() == number).expect("it is one of them");
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
        return;
    }
    ctx.scrub.figures.damaged.fetch_add(1, Ordering::Relaxed);
    log_at!(ctx, LogLevel::Error, "scrub: damage in {}: {error}", file.path(ctx).display());
    if ctx.listens() {
        ctx.tell(Event::DamageFound(&file.damage(ctx, error)));
    }
}

/// A file of the newest versions.
enum File {
    Table(Arc<ColumnFamily>, usize, Arc<TableFile>),
    Blobs(Arc<ColumnFamily>, Arc<BlobFile>),
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

impl File {
    fn number(&self) -> FileNumber {
        match self {
            File::Table(_, _, file) => file.number,
            File::Blobs(_, file) => file.number,
        }
    }

    fn candidate(&self) -> Candidate {
        match self {
            File::Table(_, _, file) => Candidate { written: file.creation_time, number: file.number },
            File::Blobs(_, file) => Candidate { written: 0, number: file.number },
        }
    }

    fn path(&self, ctx: &DbContext) -> PathBuf {
        match self {
            File::Table(_, _, file) => file.path(&ctx.path),
            File::Blobs(_, file) => file.path(&ctx.path),
        }
    }

    /// Opens it beside the table cache: what is open there was verified when it was opened, not now.
    fn open(&self, ctx: &DbContext) -> Result<Rest> {
        let path = self.path(ctx);
        let open = OpenRead { io: DirectIo::Buffered, access: Access::Sequential };
        let opened = ctx.env.fs.open_read(&path, open)?;
        let expected = match self {
            File::Table(_, _, file) => file.size,
            File::Blobs(_, file) => blob::file_len(file.total_bytes),
        };
        if opened.size() != expected {
            let (size, path) = (opened.size(), path.display());
            return Err(Error::corruption(format!(
                "{path}: size is {size} bytes, the MANIFEST says {expected}"
            )));
        }
        match self {
            File::Table(cf, _, file) => {
                let table = Arc::new(TableReader::open(opened, reader_options(cf, file))?);
                Ok(Rest::Table(table.walk()?))
            }
            File::Blobs(cf, _) => Ok(Rest::Blobs(BlobReader::open(opened, cf.id().0)?, BlobReader::FIRST)),
        }
    }

    fn damage(&self, ctx: &DbContext, error: &Error) -> DamageInfo {
        let (cf, level, range) = match self {
            File::Table(cf, level, file) => {
                let range = (user_key(&file.smallest).to_vec(), user_key(&file.largest).to_vec());
                (cf, Some(*level), Some(range))
            }
            File::Blobs(cf, _) => (cf, None, None),
        };
        DamageInfo {
            cf_name: cf.name().to_string(),
            path: self.path(ctx),
            number: self.number().0,
            level,
            range,
            error: error.clone(),
        }
    }
}

/// How a table is opened whose blocks come from the file.
pub fn reader_options(cf: &ColumnFamily, file: &TableFile) -> TableReaderOptions {
    TableReaderOptions {
        expected_unique_id: file.unique_id,
        largest_seqno: file.largest_seq,
        ..TableReaderOptions::uncached(cf.comparator.clone())
    }
}

impl Rest {
    /// The bytes of the next block or record, and what is wrong with it; `None` at the end.
    fn verify_next(&mut self) -> Option<(u64, Result<()>)> {
        match self {
            Rest::Table(walk) => walk.verify_next(),
            Rest::Blobs(reader, offset) => match reader.verify_record(*offset) {
                Ok(None) => None,
                Ok(Some(end)) => {
                    let bytes = end - *offset;
                    *offset = end;
                    Some((bytes, Ok(())))
                }
                Err(error) => Some((0, Err(error))),
            },
        }
    }

    /// Reads what was read last again.
    fn verify_again(&mut self) -> Result<()> {
        match self {
            Rest::Table(walk) => walk.verify_again(),
            Rest::Blobs(reader, offset) => match reader.verify_record(*offset)? {
                Some(end) => {
                    *offset = end;
                    Ok(())
                }
                None => Ok(()),
            },
        }
    }
}

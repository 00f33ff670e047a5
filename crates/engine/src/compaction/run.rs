//! One compaction: read the inputs, write the outputs, install both changes in one edit.
//!
//! A large one is cut by key range into parts that run on threads of their own (`subcompaction.rs`); the edit is still
//! one. Outputs have the smallest epoch of the inputs: they are as old as the oldest of them.

use super::counts;
use super::job::CompactionJob;
use super::outcome::Ran;
use super::subcompaction::{Written, write_parts};
use super::{Compaction, LevelFiles, Work};
use crate::context::DbContext;
use crate::event_log;
use crate::events::compaction::ReportedCompaction;
use crate::info_log::log_line;
use crate::input_counts;
use crate::jobs::JobContext;
use crate::panic::caught;
use crate::paths;
use crate::pending_outputs::PendingOutputs;
use crate::stats::LevelStats;
use crate::table_cache;
use crate::version_set::VersionSet;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_manifest::{TableFile, VersionEdit};
use outcrop_monitor::{Purpose, Ticker};
use outcrop_options::Prepopulate;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs `job` and installs its result. Inputs stay marked; the caller releases them. Listeners are told of its parts alone.
///
/// # Errors
/// CompactionTooLarge, and nothing was done, if an [`crate::SstFileManager`] leaves no room for what it may write; those of
/// reading, writing and installing.
pub fn run(jobs: &JobContext, job: &CompactionJob) -> Result<Ran> {
    with_room(jobs, job, || run_numbered(jobs, job))
}

/// Gives `job` its number and lets `act` run it, if there is room for what it may write.
fn with_room(jobs: &JobContext, job: &CompactionJob, act: impl FnOnce() -> Result<Ran>) -> Result<Ran> {
    // Relaxed: read by the threads that this one starts.
    job.job_id.store(jobs.ctx.new_job_id(), Ordering::Relaxed);
    let Some(manager) = &jobs.ctx.objects.sst_file_manager else { return act() };
    let Some(_room) = manager.reserve(job.compaction.input_bytes()) else {
        log_line!(jobs.ctx, "[{}] Cancelled compaction because not enough room", job.cf.name());
        jobs.ctx.count(Ticker::CompactionCancelled, 1);
        return Err(Error::new(ErrorKind::CompactionTooLarge, ""));
    };
    act()
}

fn run_numbered(jobs: &JobContext, job: &CompactionJob) -> Result<Ran> {
    caught("compaction", || match job.compaction.work {
        Work::Merge => run_merge(jobs, job),
        Work::Move => run_move(jobs, job),
        Work::Drop => run_drop(jobs, job).map(|()| Ran::default()),
    })
}

/// [`run`], of which listeners are told the begin and the end too.
///
/// # Errors
/// As there.
pub fn run_telling(jobs: &JobContext, job: &CompactionJob) -> Result<Ran> {
    with_room(jobs, job, || {
        let told = ReportedCompaction::begin(jobs, job);
        let result = run_numbered(jobs, job);
        if let Some(told) = told {
            told.completed(jobs, job, &result);
        }
        result
    })
}

fn run_merge(jobs: &JobContext, job: &CompactionJob) -> Result<Ran> {
    let _reading = Purpose::Compaction.begin();
    let start = jobs.ctx.env.clock.monotonic_nanos();
    // Relaxed: this thread, or the one that started it, gave it.
    let number = job.job_id.load(Ordering::Relaxed) as u64;
    event_log::compaction_started(&jobs.ctx, number, job);
    let pending = Arc::new(PendingOutputs::new(&jobs.ctx));
    let mut written = write_parts(jobs, job, &pending)?;
    input_counts::check_compaction(&jobs.ctx, job, written.records.records_in)?;
    let outputs = open_outputs(&jobs.ctx, job, std::mem::take(&mut written.tables))?;
    let compaction = &job.compaction;
    let (records_in, records_out) = (written.records.records_in, written.records.records_out);
    let (from, into): (Vec<_>, Vec<_>) = compaction
        .inputs
        .iter()
        .partition(|level| level.level != compaction.output_level || compaction.inputs.len() == 1);
    let bytes = |levels: &[&LevelFiles]| {
        levels.iter().flat_map(|level| &level.files).map(|file| file.size).sum::<u64>()
    };
    let stats = LevelStats {
        count: 1,
        micros: (jobs.ctx.env.clock.monotonic_nanos() - start) / 1000,
        cpu_micros: written.cpu_nanos / 1000,
        bytes_read: bytes(&from),
        bytes_read_output_level: bytes(&into),
        bytes_written: outputs.iter().map(|file| file.size).sum::<u64>()
            + written.blob_files.iter().map(|file| file.total_bytes).sum::<u64>(),
        bytes_moved: 0,
        records_in,
        records_dropped: records_in.saturating_sub(records_out),
    };
    for table in &outputs {
        event_log::table_created(&jobs.ctx, number, job.cf.name(), table.number.0, table.size);
    }
    let counts = counts::CompactionCounts {
        records: written.records,
        parts: written.parts,
        bytes_read: written.bytes_read,
    };
    let ran = Ran {
        tables: outputs.clone(),
        blob_files: written.blob_files.clone(),
        blob_garbage: written.blob_garbage.iter().map(|(number, garbage)| (*number, *garbage)).collect(),
        records: written.records,
        blobs_fetched: written.blobs_fetched,
        micros: stats.micros,
        cpu_micros: stats.cpu_micros,
        write_nanos: written.write_nanos,
    };
    pending.install_or_remove(|| install_merge(&jobs.versions, job, outputs, written))?;
    job.cf.stats.record(compaction.output_level, &stats);
    counts::compacted(&jobs.ctx, job, &stats, &counts);
    let version = job.cf.superversion.load().version.clone();
    let written = (job.cf.name(), compaction.output_level);
    event_log::compaction_finished(&jobs.ctx, number, written, (&stats, &ran), &version);
    log_line!(
        jobs.ctx,
        "[{}] compacted {compaction}: {} -> {} bytes, {} of {} records dropped, {} us",
        job.cf.name(),
        compaction.input_bytes(),
        stats.bytes_written,
        stats.records_dropped,
        stats.records_in,
        stats.micros
    );
    Ok(ran)
}

fn open_outputs(ctx: &DbContext, job: &CompactionJob, tables: Vec<TableFile>) -> Result<Vec<Arc<TableFile>>> {
    let (options, path_id) = (job.cf.options.load(), job.path_id);
    ctx.env.fs.sync_dir(&paths::directory_of(ctx, &job.cf, path_id))?;
    if path_id != 0 && options.enable_blob_files {
        // Blob files are in the first path in any case.
        ctx.env.fs.sync_dir(&paths::directory_of(ctx, &job.cf, 0))?;
    }
    let tables: Vec<Arc<TableFile>> = tables.into_iter().map(Arc::new).collect();
    let prepopulate = job.cf.options.load().table.prepopulate_block_cache;
    for file in &tables {
        // Opened before it is installed, so that no reader pays for it.
        let table = ctx.tables.open(&job.cf, file)?;
        if prepopulate == Prepopulate::FlushAndCompaction {
            table_cache::warm(&table)?;
        }
    }
    Ok(tables)
}

fn install_merge(
    versions: &VersionSet,
    job: &CompactionJob,
    outputs: Vec<Arc<TableFile>>,
    written: Written,
) -> Result<()> {
    let compaction = &job.compaction;
    let mut edit = deletion_edit(compaction);
    let level = compaction.output_level as u32;
    edit.new_files = outputs.iter().map(|file| (level, file.clone())).collect();
    edit.new_blob_files = written.blob_files;
    edit.blob_garbage = written.blob_garbage.into_iter().collect();
    versions.log_and_apply(vec![edit], |state| {
        let Some(cf) = state.column_families.get_mut(&compaction.cf_id) else { return };
        if compaction.bottommost {
            let held = outputs.iter().filter(|file| file.largest_seq > written.oldest_snapshot);
            cf.held_back.extend(held.map(|file| file.number));
        }
    })
}

/// Relinks the inputs into the output level: one edit, no data is read or written.
fn run_move(jobs: &JobContext, job: &CompactionJob) -> Result<Ran> {
    let compaction = &job.compaction;
    let mut edit = deletion_edit(compaction);
    let level = compaction.output_level as u32;
    edit.new_files = compaction.input_files().map(|file| (level, file.clone())).collect();
    jobs.versions.log_and_apply(vec![edit], |_| {})?;
    let moved = compaction.input_bytes();
    let stats = LevelStats { bytes_moved: moved, ..LevelStats::default() };
    job.cf.stats.record(compaction.output_level, &stats);
    log_line!(jobs.ctx, "[{}] moved {compaction}: {moved} bytes", job.cf.name());
    Ok(Ran { tables: compaction.input_files().cloned().collect(), ..Ran::default() })
}

/// Deletes the inputs with the data in them.
fn run_drop(jobs: &JobContext, job: &CompactionJob) -> Result<()> {
    let compaction = &job.compaction;
    jobs.versions.log_and_apply(vec![deletion_edit(compaction)], |_| {})?;
    counts::dropped(&jobs.ctx, compaction.reason);
    log_line!(jobs.ctx, "[{}] dropped {compaction}: {} bytes", job.cf.name(), compaction.input_bytes());
    Ok(())
}

/// The edit that takes the inputs away.
fn deletion_edit(compaction: &Compaction) -> VersionEdit {
    let mut edit = VersionEdit::for_column_family(compaction.cf_id);
    for LevelFiles { level, files } in &compaction.inputs {
        edit.deleted_files.extend(files.iter().map(|file| (*level as u32, file.number)));
    }
    let cursor = compaction.next_cursor.clone();
    edit.compact_cursors.extend(cursor.map(|key| (compaction.start_level() as u32, key)));
    edit
}

#[cfg(test)]
mod tests;

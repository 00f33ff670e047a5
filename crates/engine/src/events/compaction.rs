//! Compactions and their parts, as listeners and callers of `compact_files` are told of them.

use super::Event;
use super::flush::blob_addition;
use super::info::{
    BlobFileGarbageInfo, CompactionFileInfo, CompactionJobInfo, CompactionJobStats, SubcompactionJobInfo,
};
use super::reasons::CompactionReason;
use crate::compaction::blobs::Fetched;
use crate::compaction::job::CompactionJob;
use crate::compaction::outcome::Ran;
use crate::compaction::stream::StreamStats;
use crate::compaction::{Reason, Work};
use crate::context::DbContext;
use crate::jobs::JobContext;
use crate::paths::directory_of;
use outcrop_base::keys::user_key;
use outcrop_base::{Error, Result};
use outcrop_env::WriteNanos;
use outcrop_manifest::{TableFile, file_name};
use outcrop_table::TableProperties;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a key that figures show. Source: RocksDB `CompactionJobStats::kMaxPrefixLength`.
const PREFIX_LEN: usize = 8;

/// A compaction that was told to begin.
pub struct ReportedCompaction(CompactionJobInfo);

impl ReportedCompaction {
    /// Tells that `job` begins. `None` if nobody listens, if it was canceled before it began, and if tables are only shifted for a caller.
    pub fn begin(jobs: &JobContext, job: &CompactionJob) -> Option<ReportedCompaction> {
        // Relaxed: it is looked at again and again.
        let canceled = job.canceled.as_ref().is_some_and(|canceled| canceled.load(Ordering::Relaxed));
        if !jobs.ctx.listens() || canceled || job.compaction.reason == Reason::Refit {
            return None;
        }
        let info =
            CompactionJobInfo { num_l0_files: job.version.levels[0].files.len(), ..info_of(&jobs.ctx, job) };
        jobs.ctx.tell(Event::CompactionBegin(&info));
        Some(ReportedCompaction(info))
    }

    /// Tells how it ended.
    pub fn completed(mut self, jobs: &JobContext, job: &CompactionJob, result: &Result<Ran>) {
        self.0.num_l0_files = l0_files(jobs, job);
        ended(&jobs.ctx, job, &mut self.0, result.as_ref());
        jobs.ctx.tell(Event::CompactionCompleted(&self.0));
    }
}

/// The report to a caller of `compact_files` about `job`, whose result is `ran`.
pub fn told_to_caller(jobs: &JobContext, job: &CompactionJob, ran: &Ran) -> CompactionJobInfo {
    let mut info = info_of(&jobs.ctx, job);
    ended(&jobs.ctx, job, &mut info, Ok(ran));
    info
}

fn l0_files(jobs: &JobContext, job: &CompactionJob) -> usize {
    let state = jobs.versions.state.lock();
    state.column_families.get(&job.cf.id()).map_or(0, |cf| cf.version.levels[0].files.len())
}

/// The facts about `job` that are known before it runs.
fn info_of(ctx: &DbContext, job: &CompactionJob) -> CompactionJobInfo {
    let compaction = &job.compaction;
    let options = job.cf.options.load();
    let mut info = CompactionJobInfo {
        cf_id: job.cf.id(),
        cf_name: job.cf.name().to_string(),
        thread_id: ctx.thread_id(),
        job_id: job.job_id.load(Ordering::Relaxed),
        base_input_level: compaction.start_level(),
        output_level: compaction.output_level,
        reason: CompactionReason::of(compaction.reason),
        compression: compaction.compression,
        blob_compression: options.blob_compression_type,
        ..CompactionJobInfo::default()
    };
    for level in &compaction.inputs {
        for file in &level.files {
            info.input_files.push(file.path(&ctx.path));
            info.input_file_infos.push(file_info(level.level, file));
            add_properties(ctx, job, file, &mut info.table_properties);
        }
    }
    info.stats = input_stats(job, &info.table_properties);
    info
}

fn file_info(level: usize, file: &TableFile) -> CompactionFileInfo {
    CompactionFileInfo {
        level,
        file_number: file.number.0,
        oldest_blob_file_number: file.oldest_blob_file.map_or(0, |number| number.0),
    }
}

/// A table that cannot be opened is left out: the job will say so.
fn add_properties(
    ctx: &DbContext,
    job: &CompactionJob,
    file: &TableFile,
    all: &mut BTreeMap<PathBuf, Arc<TableProperties>>,
) {
    if let Ok(table) = ctx.tables.open(&job.cf, file) {
        all.insert(file.path(&ctx.path), Arc::new(table.properties().clone()));
    }
}

fn input_stats(
    job: &CompactionJob,
    properties: &BTreeMap<PathBuf, Arc<TableProperties>>,
) -> CompactionJobStats {
    let compaction = &job.compaction;
    let num_input_files = compaction.input_files().count();
    let mut stats = CompactionJobStats { num_input_files, ..CompactionJobStats::default() };
    if compaction.work != Work::Merge {
        return stats;
    }
    stats.is_full_compaction = num_input_files == job.version.num_files();
    stats.is_manual_compaction = compaction.reason == Reason::Manual;
    let at_output = compaction.inputs.iter().filter(|level| level.level == compaction.output_level);
    stats.num_input_files_at_output_level = at_output.map(|level| level.files.len()).sum();
    stats.total_input_bytes = compaction.input_bytes();
    for table in properties.values() {
        stats.total_input_raw_key_bytes += table.raw_key_size;
        stats.total_input_raw_value_bytes += table.raw_value_size;
        stats.num_input_deletion_records += table.num_deletions.saturating_sub(table.num_range_deletions);
    }
    stats
}

fn ended(
    ctx: &DbContext,
    job: &CompactionJob,
    info: &mut CompactionJobInfo,
    result: std::result::Result<&Ran, &Error>,
) {
    let ran = match result {
        Ok(ran) => ran,
        Err(error) => {
            info.status = Some(error.clone());
            return;
        }
    };
    let level = job.compaction.output_level;
    for file in &ran.tables {
        info.output_files.push(file.path(&ctx.path));
        info.output_file_infos.push(file_info(level, file));
        add_properties(ctx, job, file, &mut info.table_properties);
    }
    info.blob_files = ran.blob_files.iter().map(|file| blob_addition(ctx, file)).collect();
    info.blob_garbage = ran
        .blob_garbage
        .iter()
        .map(|(number, garbage)| BlobFileGarbageInfo {
            path: file_name::blob(&directory_of(ctx, &job.cf, 0), *number),
            number: number.0,
            garbage_blob_count: garbage.count,
            garbage_blob_bytes: garbage.bytes,
        })
        .collect();
    match job.compaction.work {
        Work::Merge => merge_stats(&mut info.stats, ran),
        Work::Move => info.stats.num_input_files_trivially_moved = ran.tables.len(),
        Work::Drop => {}
    }
}

fn merge_stats(stats: &mut CompactionJobStats, ran: &Ran) {
    stats.elapsed_micros = ran.micros;
    stats.cpu_micros = ran.cpu_micros;
    add_records(stats, &ran.records);
    add_fetched(stats, ran.blobs_fetched);
    add_write_nanos(stats, ran.write_nanos);
    stats.num_output_records = ran.records.records_out;
    stats.num_output_files = ran.tables.len();
    stats.num_output_files_blob = ran.blob_files.len();
    stats.total_output_bytes = ran.tables.iter().map(|file| file.size).sum();
    stats.total_output_bytes_blob = ran.blob_files.iter().map(|file| file.total_bytes).sum();
    let prefix = |key: &[u8]| user_key(key)[..user_key(key).len().min(PREFIX_LEN)].to_vec();
    stats.smallest_output_key_prefix =
        ran.tables.first().map(|file| prefix(&file.smallest)).unwrap_or_default();
    stats.largest_output_key_prefix = ran.tables.last().map(|file| prefix(&file.largest)).unwrap_or_default();
}

fn add_records(stats: &mut CompactionJobStats, records: &StreamStats) {
    stats.num_input_records = records.records_in;
    stats.num_records_replaced = records.dropped_hidden;
    stats.num_expired_deletion_records = records.dropped_obsolete;
    stats.num_single_del_fallthru = records.single_deletions_alone;
    stats.num_single_del_mismatch = records.single_deletions_mismatched;
}

/// The report about part number `part` of `job`; `None` if nobody listens.
pub fn subcompaction(ctx: &DbContext, job: &CompactionJob, part: usize) -> Option<SubcompactionJobInfo> {
    if !ctx.listens() || job.compaction.reason == Reason::Refit {
        return None;
    }
    let compaction = &job.compaction;
    let options = job.cf.options.load();
    Some(SubcompactionJobInfo {
        cf_id: job.cf.id(),
        cf_name: job.cf.name().to_string(),
        job_id: job.job_id.load(Ordering::Relaxed),
        subcompaction_job_id: part as i32,
        base_input_level: compaction.start_level(),
        output_level: compaction.output_level,
        reason: CompactionReason::of(compaction.reason),
        compression: compaction.compression,
        blob_compression: options.blob_compression_type,
        ..SubcompactionJobInfo::default()
    })
}

/// The figures of a part that has ended.
pub struct PartFigures<'a> {
    /// Entries read and written.
    pub records: &'a StreamStats,
    /// Values read from blob files.
    pub blobs_fetched: Fetched,
    /// Processor time of its thread.
    pub cpu_nanos: u64,
    /// Times of writing files, if the options ask for them.
    pub write_nanos: Option<WriteNanos>,
}

fn add_fetched(stats: &mut CompactionJobStats, fetched: Fetched) {
    stats.num_blobs_read = fetched.count;
    stats.total_blob_bytes_read = fetched.bytes;
}

fn add_write_nanos(stats: &mut CompactionJobStats, nanos: Option<WriteNanos>) {
    let nanos = nanos.unwrap_or_default();
    stats.file_write_nanos = nanos.write;
    stats.file_range_sync_nanos = nanos.range_sync;
    stats.file_fsync_nanos = nanos.sync;
}

/// Tells the end of a part, with its figures or what it met.
pub fn end_subcompaction(
    ctx: &DbContext,
    mut info: SubcompactionJobInfo,
    figures: Option<PartFigures<'_>>,
    error: Option<&Error>,
) {
    if let Some(figures) = figures {
        add_records(&mut info.stats, figures.records);
        add_fetched(&mut info.stats, figures.blobs_fetched);
        info.stats.cpu_micros = figures.cpu_nanos / 1000;
        add_write_nanos(&mut info.stats, figures.write_nanos);
    }
    info.status = error.cloned();
    ctx.tell(Event::SubcompactionCompleted(&info));
}

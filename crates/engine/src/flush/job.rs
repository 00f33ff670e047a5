//! One flush: all sealed memtables of a column family, oldest first, become one L0 table.
//!
//! The same stream and output as compaction do the work. The result is installed together with the new log
//! number, so that after a crash the data comes either from the WAL or from the table, never from neither.
//!
//! With `atomic_flush` one job has the memtables of all column families, and its tables are installed by one group of
//! the MANIFEST's edits, which recovery takes whole or not at all. Memtables are then sealed together (`write/switch.rs`),
//! so any state of the MANIFEST has the rows of all column families up to one point of time.

use super::decided::{FlushJob, FlushPart};
use crate::column_family::ColumnFamily;
use crate::compaction::blobs::BlobPlan;
use crate::compaction::output::{OutputPlan, write_tables, write_times};
use crate::compaction::stamps::StampRules;
use crate::compaction::stream::{CompactionStream, DropRules};
use crate::context::DbContext;
use crate::event_log;
use crate::events::flush::{Flushed, ReportedFlush};
use crate::events::reasons::FlushReason;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::input_counts;
use crate::jobs::JobContext;
use crate::paths;
use crate::pending_outputs::PendingOutputs;
use crate::read::merging_iter::MergingIter;
use crate::read::source::Source;
use crate::snapshots::LiveSnapshots;
use crate::state::{CfState, DbState};
use crate::stats::LevelStats;
use crate::table_cache;
use crate::version_set::VersionSet;
use outcrop_base::keys::Trailer;
use outcrop_base::{CfId, Error, Fragment, Fragments, Result};
use outcrop_env::WriteNanos;
use outcrop_manifest::{BlobFile, FileNumber, TableFile, VersionEdit};
use outcrop_memtable::MemTable;
use outcrop_monitor::{HistogramKind, Purpose, Ticker, Watch};
use outcrop_options::{Prepopulate, derive};
use outcrop_table::TableProperties;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Takes the next flush to run, if any is due, and marks it as running. If it is `atomic`, nothing else is flushed meanwhile.
pub fn pick(state: &mut DbState, atomic: bool) -> Option<FlushJob> {
    if atomic && state.running_flushes > 0 {
        return None;
    }
    let due = state.column_families.values().find(|cf| cf.wants_flush())?.cf.id();
    let taken = |cf: &&mut CfState| cf.cf.id() == due || (atomic && !cf.sealed.is_empty());
    let parts = state.column_families.values_mut().filter(taken).map(take).collect();
    state.running_flushes += 1;
    Some(FlushJob { parts })
}

fn take(cf: &mut CfState) -> FlushPart {
    cf.flush_running = true;
    cf.flush_requested = false;
    let epoch = cf.next_epoch;
    cf.next_epoch += 1;
    FlushPart { cf: cf.cf.clone(), memtables: cf.sealed.clone(), epoch }
}

/// Runs `job` and installs its tables.
pub fn run(jobs: &JobContext, job: &FlushJob) -> Result<()> {
    let outputs = PendingOutputs::new(&jobs.ctx);
    let numbers: Vec<FileNumber> = job.parts.iter().map(|_| outputs.reserve()).collect();
    let job_id = jobs.ctx.new_job_id();
    let told = ReportedFlush::begin(jobs, job, &numbers, job_id);
    let written = job
        .parts
        .iter()
        .zip(numbers)
        .map(|(part, number)| write_part(jobs, part, &outputs, number, job_id as u64))
        .collect::<Result<Vec<_>>>()?;
    let (written, stats): (Vec<FlushedFiles>, Vec<LevelStats>) = written.into_iter().unzip();
    if jobs.versions.needs_synced_wals() {
        // A batch may span column families: the entries that this flush makes durable must not survive a crash
        // that takes the other half, which is still in a closed WAL. So is what was prepared and not decided.
        jobs.closed_wals.sync_and_track(&jobs.versions).map_err(|error| jobs.versions.fail_writes(error))?;
    }
    let write_nanos: Vec<_> = written.iter().map(|files| files.write_nanos).collect();
    let flushed = |files: &FlushedFiles| Flushed {
        table: files.tables.first().cloned(),
        blob_files: files.blob_files.clone(),
    };
    let told = told.map(|told| (told, written.iter().map(flushed).collect()));
    // Before it is installed: a caller that waits for the flush finds writes stopped.
    let no_space = jobs.versions.space_error();
    outputs.install_or_remove(|| install(&jobs.versions, job, written, no_space.as_ref()))?;
    for (part, (stats, nanos)) in job.parts.iter().zip(stats.iter().zip(write_nanos)) {
        log_finished(&jobs.ctx, part, (stats, nanos), job_id as u64);
    }
    if let Some((told, flushed)) = told {
        told.completed(jobs, job, flushed);
    }
    if let Some(error) = no_space {
        log_at!(jobs.ctx, LogLevel::Error, "writes stop: {error}");
    }
    Ok(())
}

/// Writes the table of one column family, which gets `number`. It is counted before it is installed: a caller that waits for the flush
/// finds it in the counters.
fn write_part(
    jobs: &JobContext,
    part: &FlushPart,
    outputs: &PendingOutputs,
    number: FileNumber,
    job_id: u64,
) -> Result<(FlushedFiles, LevelStats)> {
    let start = jobs.ctx.env.clock.monotonic_nanos();
    let cpu_start = jobs.ctx.env.clock.thread_cpu_nanos();
    let _reading = Purpose::Flush.begin();
    let memtables: Vec<&Arc<MemTable>> = part.memtables.iter().map(|sealed| &sealed.memtable).collect();
    event_log::flush_started(&jobs.ctx, job_id, part.cf.name(), &memtables);
    // The table is the first file to be numbered.
    let first = Cell::new(Some(number));
    let reserve = || first.take().unwrap_or_else(|| outputs.reserve());
    let snapshots = jobs.snapshots.live();
    let written =
        write_l0(&jobs.ctx, &part.cf, &memtables, snapshots, (part.epoch, job_id as i32), &reserve)?;
    let bytes = written.bytes();
    for table in &written.tables {
        event_log::table_created(&jobs.ctx, job_id, part.cf.name(), table.number.0, table.size);
    }
    let clock = &jobs.ctx.env.clock;
    let stats = LevelStats {
        count: 1,
        micros: (clock.monotonic_nanos() - start) / 1000,
        cpu_micros: (clock.thread_cpu_nanos() - cpu_start) / 1000,
        bytes_written: bytes,
        records_in: memtables.iter().map(|memtable| memtable.num_entries()).sum(),
        ..LevelStats::default()
    };
    part.cf.stats.record_flush(&stats);
    let reason = part.memtables.last().map(|sealed| sealed.reason).unwrap_or_default();
    count(&jobs.ctx, &memtables, reason, &stats, written.payload);
    Ok((written, stats))
}

/// The table of `part` is installed.
fn log_finished(
    ctx: &DbContext,
    part: &FlushPart,
    (stats, write_nanos): (&LevelStats, Option<WriteNanos>),
    job_id: u64,
) {
    event_log::flush_finished(
        ctx,
        job_id,
        part.cf.name(),
        (stats, write_nanos),
        &part.cf.superversion.load().version,
    );
    log_line!(
        ctx,
        "[{}] wrote {} memtables to L0, {} bytes, {} us",
        part.cf.name(),
        part.memtables.len(),
        stats.bytes_written,
        stats.micros
    );
}

fn count(
    ctx: &DbContext,
    memtables: &[&Arc<MemTable>],
    reason: FlushReason,
    stats: &LevelStats,
    payload: Payload,
) {
    let watching = ctx.monitor.begin();
    let Some(counted) = Watch::from(&watching).stats() else { return };
    counted.count(Ticker::FlushWriteBytes, stats.bytes_written);
    counted.count(Ticker::MemtablePayloadBytesAtFlush, payload.bytes);
    counted.count(Ticker::MemtableGarbageBytesAtFlush, payload.garbage);
    counted.record_time(HistogramKind::FlushTime, stats.micros);
    let sum = |of: fn(&MemTable) -> u64| memtables.iter().map(|memtable| of(memtable)).sum();
    let memory = sum(|memtable| memtable.memory_usage() as u64);
    counted.record(HistogramKind::FlushMemtableMemoryBytes, memory);
    match reason {
        FlushReason::WriteBufferFull => {
            counted.count(Ticker::FlushReasonWriteBufferFull, 1);
            counted.record(HistogramKind::FlushWriteBufferFullMemtableMemoryBytes, memory);
        }
        FlushReason::WriteBufferManager => {
            counted.count(Ticker::FlushReasonWriteBufferManager, 1);
            counted.record(HistogramKind::FlushWriteBufferManagerMemtableMemoryBytes, memory);
        }
        FlushReason::MemtableMaxRangeDeletions => {
            counted.count(Ticker::FlushReasonMemtableMaxRangeDeletions, 1);
        }
        _ => {}
    }
    counted.record(HistogramKind::FlushMemtableTotalDataSize, sum(MemTable::data_size));
}

fn install(
    versions: &VersionSet,
    job: &FlushJob,
    written: Vec<FlushedFiles>,
    no_space: Option<&Error>,
) -> Result<()> {
    let last_seq = job.parts.iter().filter_map(|part| Some(part.memtables.last()?.last_seq)).max();
    let needed = Cell::new(FileNumber::NONE);
    let edits = || {
        // With the MANIFEST locked: what it has been told of WALs meanwhile counts.
        let min_wal = min_wal_after_flush(versions, job);
        needed.set(min_wal);
        let edits = job.parts.iter().zip(written).map(|(part, written)| {
            let mut edit = VersionEdit::for_column_family(part.cf.id());
            edit.log_number = part.memtables.last().map(|sealed| sealed.next_wal);
            edit.min_log_number_to_keep = Some(min_wal);
            edit.new_files = written.tables.into_iter().map(|file| (0, file)).collect();
            edit.new_blob_files = written.blob_files;
            edit
        });
        Ok((edits.collect(), last_seq.unwrap_or_default()))
    };
    versions.log_prepared(edits, |state| {
        for part in &job.parts {
            if let Some(cf) = state.column_families.get_mut(&part.cf.id()) {
                cf.retire_sealed(part.memtables.len());
            }
        }
        state.prepared.leave_before(needed.get());
        // Also without a table: the WAL of a memtable whose records took each other away is not needed any more.
        state.purge_wanted = true;
        if let Some(error) = no_space {
            versions.stop_writes_without_space(state, error);
        }
    })
}

/// The oldest WAL still needed once the job's memtables are in tables. With the MANIFEST locked, so that no other flush is installed
/// before it is written down.
fn min_wal_after_flush(versions: &VersionSet, job: &FlushJob) -> FileNumber {
    let state = versions.state.lock();
    let current = versions.current_wal();
    let of_job = |id: CfId| job.parts.iter().any(|part| part.cf.id() == id);
    let flushed = |memtable: &Arc<MemTable>| {
        job.parts.iter().flat_map(|part| &part.memtables).any(|part| Arc::ptr_eq(&part.memtable, memtable))
    };
    let prepared = state.column_families.values().map(|cf| cf.oldest_prepared_wal(|m| !flushed(m))).min();
    let prepared = prepared.unwrap_or(FileNumber::MAX);
    let others =
        state.column_families.iter().filter(|(id, _)| !of_job(**id)).map(|(_, cf)| {
            if cf.sealed.is_empty() && cf.memtable.is_empty() { current } else { cf.log_number }
        });
    // A job that resumes has all that is in memory, and nothing was written since: at once no column family needs a WAL whose tail
    // is unknown.
    let own =
        |part: &FlushPart| if state.resuming { Some(current) } else { Some(part.memtables.last()?.next_wal) };
    let in_memory = others.chain(job.parts.iter().filter_map(own)).min().unwrap_or(current).min(current);
    state.prepared.oldest_needed(in_memory.min(prepared))
}

/// The files that a flush wrote.
pub struct FlushedFiles {
    /// At most one table.
    pub tables: Vec<Arc<TableFile>>,
    /// Blob files it refers to.
    pub blob_files: Vec<Arc<BlobFile>>,
    payload: Payload,
    /// Times of writing them, if the options ask for them.
    write_nanos: Option<WriteNanos>,
}

/// Bytes of keys and values that memtables had, where somebody counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Payload {
    bytes: u64,
    /// Those that are not in the table.
    garbage: u64,
}

impl Payload {
    /// Of memtables that `stream` has read and that became a table. None where the table has more than they had, as merged values may.
    ///
    /// Source: RocksDB `db/builder.cc`, `BuildTable`.
    fn of(stream: &CompactionStream, table: &TableProperties) -> Payload {
        let Some(entries) = stream.payload else { return Payload::default() };
        let of_range =
            |range: &Fragment| range.seqs.len() * (range.begin.len() + Trailer::LEN + range.end.len());
        let bytes = entries + stream.kept_tombstones().iter().map(of_range).sum::<usize>() as u64;
        let garbage = bytes.checked_sub(table.raw_key_size + table.raw_value_size);
        garbage.map_or(Payload::default(), |garbage| Payload { bytes, garbage })
    }
}

impl FlushedFiles {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let tables: u64 = self.tables.iter().map(|file| file.size).sum();
        tables + self.blob_files.iter().map(|file| file.total_bytes).sum::<u64>()
    }
}

/// Writes memtables into at most one new L0 table, with blob files, and opens it. Recovery uses it too.
pub fn write_l0(
    ctx: &Arc<DbContext>,
    cf: &Arc<ColumnFamily>,
    memtables: &[&Arc<MemTable>],
    snapshots: LiveSnapshots,
    (epoch, job_id): (u64, i32),
    reserve: &dyn Fn() -> FileNumber,
) -> Result<FlushedFiles> {
    let sources = memtables.iter().map(|memtable| Source::Mem(memtable.iter())).collect();
    let input = MergingIter::new(cf.comparator.clone(), sources);
    let tombstones: Vec<_> = memtables.iter().flat_map(|memtable| memtable.range_tombstones()).collect();
    let tombstones = Fragments::union(tombstones.iter().map(|set| &**set), &cf.comparator);
    let stamps = StampRules::of(cf, None);
    let monitor = ctx.monitor.clone();
    let rules = DropRules { stamps, monitor, ..DropRules::for_flush(snapshots, tombstones) };
    let mut stream = CompactionStream::new(input, cf.comparator.clone(), cf.merge_operator.clone(), rules);
    stream.payload = ctx.monitor.is_asked().then_some(0);
    let options = cf.options.load();
    let times = write_times(&options);
    let plan = OutputPlan {
        epoch,
        compression: derive::compression_for_level(&options, 0, false),
        compression_opts: options.compression_opts.clone(),
        table: options.table.clone(),
        prefix_extractor: options.prefix_extractor.clone(),
        level: -1,
        path_id: 0,
        dir: paths::directory(&options, 0),
        blobs: BlobPlan::new(&options, -1),
        version: None,
        paranoid_checks: options.paranoid_file_checks,
        omit_filter: false,
        oldest_ancestor_time: ctx.env.clock.now_micros() / 1_000_000,
        target_file_size: u64::MAX,
        grandparents: None,
        partitioner: None,
        canceled: None,
        write_times: times.clone(),
        job_id,
    };
    let outputs = write_tables(ctx, cf, plan, &mut stream, reserve)?;
    let write_nanos = times.map(|times| times.nanos());
    input_counts::check_flush(ctx, memtables, stream.stats.records_in)?;
    let tables: Vec<Arc<TableFile>> = outputs.tables.into_iter().map(Arc::new).collect();
    ctx.env.fs.sync_dir(&paths::directory_of(ctx, cf, 0))?;
    let mut payload = Payload::default();
    for file in &tables {
        file.runtime.from_flush.store(true, Ordering::Relaxed);
        let table = ctx.tables.open(cf, file)?;
        payload = Payload::of(&stream, table.properties());
        if options.table.prepopulate_block_cache != Prepopulate::Disable {
            table_cache::warm(&table)?;
        }
    }
    Ok(FlushedFiles { tables, blob_files: outputs.blob_files, payload, write_nanos })
}

#[cfg(test)]
mod tests;

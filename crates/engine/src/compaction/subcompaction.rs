//! One compaction on several threads: each merges a part of the key range into tables of its own.
//!
//! ```text
//! keys      a ........ g | g ........ p | p ........ z      cut at user keys that split the input bytes evenly
//! threads     this job's |   spawned    |   spawned         joined before anything is installed
//! ```
//! Invariants: all versions of a user key are in one part; a range tombstone is cut at the same keys, so each part is
//! a compaction like any other. The parts share their snapshots and the number of every output.

use super::Work;
use super::blobs::Fetched;
use super::inputs::{compaction_stream, input_tombstones, output_plan};
use super::job::CompactionJob;
use super::output::{OutputPlan, Outputs, write_tables};
use super::stream::{CompactionStream, KeyRange, StreamStats};
use crate::context::DbContext;
use crate::events::Event;
use crate::events::compaction::{self as events, PartFigures};
use crate::events::info::SubcompactionJobInfo;
use crate::jobs::{JobContext, OnJob};
use crate::panic::caught;
use crate::pending_outputs::PendingOutputs;
use crate::table_cache::TableCache;
use outcrop_base::keys::user_key;
use outcrop_base::{Comparator, Error, ErrorKind, Result, SeqNum};
use outcrop_env::WriteNanos;
use outcrop_manifest::{BlobFile, FileNumber, Garbage, TableFile};
use outcrop_monitor::{IoStats, Purpose};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys looked at in each input table to find where to cut. Source: RocksDB `ApproximateKeyAnchors`.
const ANCHORS_PER_TABLE: usize = 128;

/// The result of all parts of a compaction.
pub struct Written {
    /// The tables, in key order.
    pub tables: Vec<TableFile>,
    /// New blob files.
    pub blob_files: Vec<Arc<BlobFile>>,
    /// Garbage in older blob files.
    pub blob_garbage: BTreeMap<FileNumber, Garbage>,
    /// Entries read and written.
    pub records: StreamStats,
    /// Values read from blob files.
    pub blobs_fetched: Fetched,
    /// Bytes that all threads read of tables, from files and not from the cache.
    pub bytes_read: u64,
    /// Parts that it was cut into.
    pub parts: u64,
    /// CPU time of all threads, nanoseconds.
    pub cpu_nanos: u64,
    /// Times of writing files, if the options ask for them.
    pub write_nanos: Option<WriteNanos>,
    /// Every snapshot that was respected sees what is at or below this.
    pub oldest_snapshot: SeqNum,
}

/// One part, ready to run on any thread.
struct Part {
    stream: CompactionStream,
    plan: OutputPlan,
    /// The report about it, if somebody listens.
    told: Option<SubcompactionJobInfo>,
}

/// Where the thread of a part leaves what it wrote.
type Slot = Arc<Mutex<Option<Result<PartOutput>>>>;

struct PartOutput {
    files: Outputs,
    records: StreamStats,
    blobs_fetched: Fetched,
    cpu_nanos: u64,
    bytes_read: u64,
    write_nanos: Option<WriteNanos>,
}

/// Threads that one compaction is split over at most, whatever `max_subcompactions` says.
const MOST_PARTS: u32 = 64;

/// Merges the inputs of `job` into tables, in as many parts as options and size allow.
pub fn write_parts(jobs: &JobContext, job: &CompactionJob, pending: &Arc<PendingOutputs>) -> Result<Written> {
    // Opening tables and the first blocks of each part are read here.
    let io = IoStats::get();
    let snapshots = jobs.snapshots.live();
    let tombstones = input_tombstones(&jobs.ctx.tables, job)?;
    let mut parts = Vec::new();
    for (number, range) in ranges(boundaries(&jobs.ctx.tables, job)?).into_iter().enumerate() {
        let stream = compaction_stream(&jobs.ctx, job, range, &tombstones, &snapshots)?;
        let told = events::subcompaction(&jobs.ctx, job, number);
        parts.push(Part { stream, plan: output_plan(&jobs.ctx, job), told });
    }
    let mut written = Written {
        tables: Vec::new(),
        blob_files: Vec::new(),
        blob_garbage: BTreeMap::new(),
        records: StreamStats::default(),
        blobs_fetched: Fetched::default(),
        bytes_read: IoStats::get().bytes_read.wrapping_sub(io.bytes_read),
        parts: 0,
        cpu_nanos: 0,
        write_nanos: None,
        oldest_snapshot: snapshots.sequences.first().copied().unwrap_or(SeqNum::MAX),
    };
    for output in run_parts(&jobs.ctx, job, parts, pending)? {
        written.tables.extend(output.files.tables);
        written.blob_files.extend(output.files.blob_files);
        for (number, garbage) in output.files.blob_garbage {
            let sum = written.blob_garbage.entry(number).or_default();
            sum.count += garbage.count;
            sum.bytes += garbage.bytes;
        }
        written.records.add(&output.records);
        written.blobs_fetched.add(output.blobs_fetched);
        written.parts += 1;
        written.bytes_read += output.bytes_read;
        written.cpu_nanos += output.cpu_nanos;
        if let Some(nanos) = output.write_nanos {
            written.write_nanos.get_or_insert_default().add(nanos);
        }
    }
    Ok(written)
}

/// The user keys at which `job` is cut; none if it runs as a whole.
///
/// Source: RocksDB `CompactionJob::GenSubcompactionBoundaries`.
fn boundaries(tables: &TableCache, job: &CompactionJob) -> Result<Vec<Vec<u8>>> {
    let compaction = &job.compaction;
    // Several tables of one job on L0 would be several sorted runs.
    if compaction.work != Work::Merge || compaction.output_level == 0 {
        return Ok(Vec::new());
    }
    let outputs = compaction.input_bytes() / compaction.target_file_size.max(1);
    let parts = u64::from(job.max_subcompactions.min(MOST_PARTS)).min(outputs) as usize;
    if parts < 2 {
        return Ok(Vec::new());
    }
    let mut anchors: Vec<(Vec<u8>, u64)> = Vec::new();
    for file in compaction.input_files() {
        let keys = tables.open(&job.cf, file)?.anchors(ANCHORS_PER_TABLE)?;
        let weight = file.size / (keys.len() as u64 + 1);
        anchors.extend(keys.into_iter().map(|key| (key, weight)));
        anchors.push((user_key(&file.largest).to_vec(), weight));
    }
    let cuts = cut_evenly(anchors, parts, &job.cf.rows);
    // All versions of a row go into one part.
    Ok(cuts.into_iter().map(|cut| job.cf.row_start(cut)).collect())
}

/// At most `parts` - 1 keys that split the weights evenly, ascending.
fn cut_evenly(mut anchors: Vec<(Vec<u8>, u64)>, parts: usize, comparator: &Comparator) -> Vec<Vec<u8>> {
    anchors.sort_by(|a, b| comparator.compare(&a.0, &b.0));
    let total: u64 = anchors.iter().map(|(_, weight)| weight).sum();
    let mut cuts: Vec<Vec<u8>> = Vec::new();
    let mut passed = 0;
    // Nothing lies after the last anchor: it would only cut off an empty part.
    let last = anchors.last().map(|(key, _)| key.clone()).unwrap_or_default();
    for (key, weight) in anchors {
        passed += weight;
        let due = total * (cuts.len() as u64 + 1) / parts as u64;
        let is_new = cuts.last().is_none_or(|cut| comparator.compare(cut, &key).is_lt());
        if cuts.len() + 1 < parts && passed >= due && is_new && comparator.compare(&key, &last).is_lt() {
            cuts.push(key);
        }
    }
    cuts
}

/// The ranges between `cuts`, from the first key to the last.
fn ranges(cuts: Vec<Vec<u8>>) -> Vec<KeyRange> {
    let begins = std::iter::once(None).chain(cuts.iter().cloned().map(Some));
    let ends = cuts.iter().cloned().map(Some).chain(std::iter::once(None));
    begins.zip(ends).map(|(begin, end)| KeyRange { begin, end }).collect()
}

/// Runs the first part here and each other one on a thread of its own; returns when all have ended, in key order.
fn run_parts(
    ctx: &Arc<DbContext>,
    job: &CompactionJob,
    parts: Vec<Part>,
    pending: &Arc<PendingOutputs>,
) -> Result<Vec<PartOutput>> {
    let mut parts = parts.into_iter();
    let first = parts.next();
    let mut slots: Vec<Slot> = Vec::new();
    let mut threads = Vec::new();
    let mut refused = Ok(());
    for part in parts {
        let slot = Slot::default();
        let (ctx_of_thread, cf, pending) = (ctx.clone(), job.cf.clone(), pending.clone());
        let result = slot.clone();
        let task = Box::new(move || {
            let (_on_job, _reading) = (OnJob::of(&ctx_of_thread), Purpose::Compaction.begin());
            let output = caught("subcompaction", || part.run(&ctx_of_thread, &cf, &pending));
            *result.lock() = Some(output);
        });
        match ctx.env.threads.spawn("outcrop:sub", task) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Err(error);
                break;
            }
        }
        slots.push(slot);
    }
    let mut outputs = Vec::new();
    if let Some(first) = first.filter(|_| refused.is_ok()) {
        // A panic, too, must wait for the others: it would unmark inputs that they read.
        outputs.push(caught("subcompaction", || first.run(ctx, &job.cf, pending)));
    }
    // All threads end before the caller may remove what they write.
    for thread in threads {
        let joined = thread.join();
        refused = refused.and(joined);
    }
    refused?;
    for slot in slots {
        let output = slot.lock().take();
        outputs.push(
            output.unwrap_or_else(|| Err(Error::new(ErrorKind::Aborted, "a subcompaction ended early"))),
        );
    }
    outputs.into_iter().collect()
}

impl Part {
    /// Runs it, and tells its begin and its end.
    fn run(
        mut self,
        ctx: &DbContext,
        cf: &crate::column_family::ColumnFamily,
        pending: &PendingOutputs,
    ) -> Result<PartOutput> {
        let told = self.told.take().map(|info| SubcompactionJobInfo { thread_id: ctx.thread_id(), ..info });
        if let Some(info) = &told {
            ctx.tell(Event::SubcompactionBegin(info));
        }
        let result = caught("subcompaction", || self.write(ctx, cf, pending));
        if let Some(info) = told {
            let figures = result.as_ref().ok().map(|output| PartFigures {
                records: &output.records,
                blobs_fetched: output.blobs_fetched,
                cpu_nanos: output.cpu_nanos,
                write_nanos: output.write_nanos,
            });
            events::end_subcompaction(ctx, info, figures, result.as_ref().err());
        }
        result
    }

    fn write(
        mut self,
        ctx: &DbContext,
        cf: &crate::column_family::ColumnFamily,
        pending: &PendingOutputs,
    ) -> Result<PartOutput> {
        let times = self.plan.write_times.clone();
        let (start, io) = (ctx.env.clock.thread_cpu_nanos(), IoStats::get());
        let files = write_tables(ctx, cf, self.plan, &mut self.stream, &|| pending.reserve())?;
        let cpu_nanos = ctx.env.clock.thread_cpu_nanos() - start;
        let bytes_read = IoStats::get().bytes_read.wrapping_sub(io.bytes_read);
        let write_nanos = times.map(|times| times.nanos());
        let (records, blobs_fetched) = (self.stream.stats, self.stream.blobs_fetched());
        Ok(PartOutput { files, records, blobs_fetched, cpu_nanos, bytes_read, write_nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(keys: &[(&str, u64)], parts: usize) -> Vec<String> {
        let anchors = keys.iter().map(|(key, weight)| (key.as_bytes().to_vec(), *weight)).collect();
        let cuts = cut_evenly(anchors, parts, &Comparator::Bytewise);
        cuts.into_iter().map(|key| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn parts_get_even_shares() {
        let keys = [("a", 1), ("d", 1), ("b", 1), ("c", 1), ("e", 1), ("f", 1)];
        assert_eq!(cuts(&keys, 3), ["b", "d"]);
        assert_eq!(cuts(&keys, 2), ["c"]);
        assert_eq!(cuts(&[("a", 1), ("a", 1), ("a", 1)], 3), [""; 0]);
        assert_eq!(cuts(&[("a", 9), ("b", 1), ("c", 1)], 3), ["a", "b"]);
    }
}

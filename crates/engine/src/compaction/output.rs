//! The tables a flush or compaction writes: where each is cut, and what the MANIFEST will say of it.
//!
//! Invariant: all versions of a user key go into one table, so that tables of a level never share a key.

use super::blobs::{BlobOutput, BlobPlan};
use super::counts;
use super::stream::CompactionStream;
use crate::collectors::Collectors;
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::events::reasons::TableFileCreationReason;
use crate::events::table_files::ReportedTable;
use crate::file_checksum::{FileChecksum, WrittenChecksum, while_written};
use crate::info_log::{LogLevel, log_at};
use crate::partitioner::SstPartitioner;
use crate::table_cache;
use outcrop_base::hash::xxh3_64;
use outcrop_base::keys::{Trailer, append_internal_key, split, user_key};
use outcrop_base::{
    Comparator, Error, ErrorKind, Fragment, PrefixExtractor, Result, SeqNum, ValueType, wide_columns,
};
use outcrop_cache::{Charge, Role};
use outcrop_env::{DirectIo, OpenWrite, WriteTimes};
use outcrop_manifest::{BlobFile, FileNumber, Garbage, TableFile, Version, file_name};
use outcrop_monitor::{HistogramKind, Watch};
use outcrop_options::{BlockBasedTableOptions, ColumnFamilyOptions, CompressionOptions, CompressionType};
use outcrop_table::{NEWEST_TIMESTAMP, OLDEST_TIMESTAMP, TableProperties, TableWriter, TableWriterOptions};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

/// Settings that all tables of one job share.
pub struct OutputPlan {
    /// Epoch of the new tables.
    pub epoch: u64,
    /// Codec of their blocks.
    pub compression: CompressionType,
    /// Settings of the codec.
    pub compression_opts: CompressionOptions,
    /// Table settings.
    pub table: BlockBasedTableOptions,
    /// Which part of a key prefix filters are about.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Level the tables are for; -1 for flush.
    pub level: i32,
    /// Which of the column family's paths they go to.
    pub path_id: u32,
    /// The directory of that path; `None`: the database's.
    pub dir: Option<Arc<Path>>,
    /// Where large values go.
    pub blobs: Option<BlobPlan>,
    /// Has the blob files that entries refer to; `None` for a flush, whose entries refer to none.
    pub version: Option<Arc<Version>>,
    /// Each table is read again and compared with what was written.
    pub paranoid_checks: bool,
    /// No filter is written.
    pub omit_filter: bool,
    /// Time the oldest data in the tables was first written, seconds since the epoch.
    pub oldest_ancestor_time: u64,
    /// Size at which a table is cut; `u64::MAX`: never.
    pub target_file_size: u64,
    /// Where tables are cut besides.
    pub grandparents: Option<GrandparentCuts>,
    /// Where the application has them cut.
    pub partitioner: Option<Box<dyn SstPartitioner>>,
    /// Set by a caller who no longer wants them.
    pub canceled: Option<Arc<AtomicBool>>,
    /// Where the times of writing files are added, if the options ask for them.
    pub write_times: Option<Arc<WriteTimes>>,
    /// The number of the job, for listeners.
    pub job_id: i32,
}

/// Where a job over column family `options` has the times of its file calls added, if they are asked for.
pub fn write_times(options: &ColumnFamilyOptions) -> Option<Arc<WriteTimes>> {
    options.report_bg_io_stats.then(Arc::default)
}

/// The error for a caller whose compaction was canceled or may not begin, in RocksDB's words
/// (`Status::SubCode::kManualCompactionPaused`).
pub fn canceled_error() -> Error {
    Error::new(ErrorKind::Incomplete, "Manual compaction paused")
}

/// Incomplete once a caller has set `canceled`.
pub fn check_wanted(canceled: Option<&AtomicBool>) -> Result<()> {
    // Relaxed: asked again and again.
    match canceled.is_some_and(|canceled| canceled.load(atomic::Ordering::Relaxed)) {
        true => Err(canceled_error()),
        false => Ok(()),
    }
}

/// Reserves a file number that the scan for obsolete files must leave alone.
pub type ReserveFile<'a> = &'a dyn Fn() -> FileNumber;

/// The files that a job wrote.
#[derive(Default)]
pub struct Outputs {
    /// Tables, in key order.
    pub tables: Vec<TableFile>,
    /// Blob files.
    pub blob_files: Vec<Arc<BlobFile>>,
    /// Values that the job left unreferenced in older blob files.
    pub blob_garbage: Vec<(FileNumber, Garbage)>,
}

/// Writes everything `stream` shows into tables, and large values into blob files.
///
/// The files are synced and closed, their directory entries are not. On an error, what was written so far
/// is left behind as files nobody refers to; the caller removes them.
pub fn write_tables(
    ctx: &DbContext,
    cf: &ColumnFamily,
    mut plan: OutputPlan,
    stream: &mut CompactionStream,
    reserve: ReserveFile<'_>,
) -> Result<Outputs> {
    let mut blobs = BlobOutput::new(ctx, cf, plan.blobs.take(), plan.version.take());
    blobs.write_times = plan.write_times.clone();
    let tables = write_entries(ctx, cf, plan, stream, reserve, &mut blobs)?;
    let (blob_files, blob_garbage) = blobs.finish(stream.blobs_read())?;
    if !blob_files.is_empty() {
        counts::blob_files_written(Watch::from(&ctx.monitor.begin()), &blob_files);
    }
    Ok(Outputs { tables, blob_files, blob_garbage })
}

/// Takes an entry: internal key and value.
pub type TakeEntry<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Writes the entries that `fill` gives, and range tombstones, into the table `number` as they are: nothing is dropped, and no value leaves
/// for a blob file.
///
/// # Errors
/// Those of `fill`, and of writing; the file is the caller's then.
pub fn write_as_is(
    ctx: &DbContext,
    cf: &ColumnFamily,
    plan: &OutputPlan,
    number: FileNumber,
    tombstones: Vec<Fragment>,
    fill: &mut dyn FnMut(TakeEntry<'_>) -> Result<()>,
) -> Result<TableFile> {
    let mut blobs = BlobOutput::new(ctx, cf, None, None);
    let mut table = OpenTable::create(ctx, cf, plan, number)?;
    fill(&mut |key, value| table.add(key, value, &mut blobs, &|| number))?;
    RangeOutput::new(tombstones).write_until(&cf.comparator, &mut table, None);
    table.finish(ctx, cf, plan)
}

/// Rows that a compaction goes on for once the database closes.
const ROWS_PER_LOOK: u32 = 256;

fn write_entries(
    ctx: &DbContext,
    cf: &ColumnFamily,
    plan: OutputPlan,
    stream: &mut CompactionStream,
    reserve: ReserveFile<'_>,
    blobs: &mut BlobOutput<'_>,
) -> Result<Vec<TableFile>> {
    let mut open: Option<OpenTable> = None;
    let written = write_cut(ctx, cf, plan, stream, reserve, (blobs, &mut open));
    if let (Err(error), Some(told)) = (&written, open.and_then(|table| table.told)) {
        told.ended(ctx, Err(error.clone()));
    }
    written
}

/// The same; a table that is not ended stays in `open`.
fn write_cut(
    ctx: &DbContext,
    cf: &ColumnFamily,
    mut plan: OutputPlan,
    stream: &mut CompactionStream,
    reserve: ReserveFile<'_>,
    (blobs, open): (&mut BlobOutput<'_>, &mut Option<OpenTable>),
) -> Result<Vec<TableFile>> {
    let mut done = Vec::new();
    let mut last_user_key: Vec<u8> = Vec::new();
    let mut ranges = RangeOutput::new(stream.kept_tombstones());
    // A flush is not given up: its entries may be in no WAL.
    let may_end = plan.level >= 0;
    let mut rows = 0u32;
    while stream.advance()? {
        rows = rows.wrapping_add(1);
        if may_end && rows.is_multiple_of(ROWS_PER_LOOK) {
            ctx.check_open()?;
            check_wanted(plan.canceled.as_deref())?;
        }
        let key = stream.key();
        if let Some(table) = &*open {
            let new_key = !cf.rows.same(user_key(key), &last_user_key);
            if new_key && should_cut(&mut plan, &cf.comparator, table, &last_user_key, key) {
                let mut table = open.take().expect("checked above");
                ranges.write_until(&cf.comparator, &mut table, Some(user_key(key)));
                done.push(table.finish(ctx, cf, &plan)?);
            }
        }
        let table = match open {
            Some(table) => table,
            None => {
                if let Some(cuts) = &mut plan.grandparents {
                    cuts.start_table(&cf.comparator, key);
                }
                open.insert(OpenTable::create(ctx, cf, &plan, reserve())?)
            }
        };
        table.add(key, stream.value(), blobs, reserve)?;
        last_user_key.clear();
        last_user_key.extend_from_slice(user_key(key));
    }
    if open.is_none() && !ranges.is_done() {
        *open = Some(OpenTable::create(ctx, cf, &plan, reserve())?);
    }
    if let Some(mut table) = open.take() {
        ranges.write_until(&cf.comparator, &mut table, None);
        done.push(table.finish(ctx, cf, &plan)?);
    }
    Ok(done)
}

fn should_cut(
    plan: &mut OutputPlan,
    comparator: &Comparator,
    table: &OpenTable,
    last_user_key: &[u8],
    next_key: &[u8],
) -> bool {
    let size = table.writer.estimated_size();
    if let Some(partitioner) = &mut plan.partitioner
        && partitioner.must_end(last_user_key, user_key(next_key), size)
    {
        return true;
    }
    // Tables of a flush, and of level 0, are cut nowhere.
    if size >= plan.target_file_size || plan.level > 0 && table.is_heavy() {
        return true;
    }
    let target = plan.target_file_size;
    plan.grandparents.as_mut().is_some_and(|cuts| cuts.cut_before(comparator, next_key, size, target))
}

/// The range tombstones to write. Each table gets those between its first user key and the next table's, so that
/// none acts on a key another table holds.
struct RangeOutput {
    fragments: VecDeque<Fragment>,
}

impl RangeOutput {
    fn new(fragments: Vec<Fragment>) -> RangeOutput {
        RangeOutput { fragments: fragments.into() }
    }

    fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Writes what lies before `end` (`None`: everything left) to the table that ends there.
    fn write_until(&mut self, comparator: &Comparator, table: &mut OpenTable, end: Option<&[u8]>) {
        while let Some(first) = self.fragments.front_mut() {
            if end.is_some_and(|end| comparator.compare(&first.begin, end).is_ge()) {
                return;
            }
            match end.filter(|end| comparator.compare(&first.end, end).is_gt()) {
                Some(end) => {
                    first.seqs.iter().for_each(|seq| table.add_range_tombstone(&first.begin, *seq, end));
                    first.begin = end.into();
                    return;
                }
                None => {
                    first
                        .seqs
                        .iter()
                        .for_each(|seq| table.add_range_tombstone(&first.begin, *seq, &first.end));
                    self.fragments.pop_front();
                }
            }
        }
    }
}

/// One table being written.
struct OpenTable {
    number: FileNumber,
    writer: TableWriter,
    creation_time: u64,
    oldest_blob_file: Option<FileNumber>,
    /// A key and a value that stand for a value in a blob file; reused.
    reference: (Vec<u8>, Vec<u8>),
    /// The contents of the table, if they will be compared.
    written: Option<EntryDigest>,
    /// The application's collectors, which see its entries.
    collectors: Option<Collectors>,
    /// The checksum of the whole file, if the options ask for it.
    checksum: Option<WrittenChecksum>,
    /// Its memory, if a cache is charged for it, and the part of that which does not grow.
    charge: Option<(Charge, usize)>,
    /// Listeners were told that it begins.
    told: Option<ReportedTable>,
}

/// Memory of a table that is written, beside the buffer of its file: blocks, and the state of their compression. An estimate.
const OUTPUT_BYTES: usize = 1 << 20;
/// The memory of a table is looked at whenever so many entries were added.
const ENTRIES_PER_LOOK: u64 = 256;
/// A table of a compaction ends once what it keeps in memory until then is more than this part of a cache that is charged for it.
const LARGEST_PART: usize = 32;
/// The buffer of its file is at most this part.
const BUFFER_PART: usize = 64;

/// A summary of entries and their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EntryDigest {
    entries: u64,
    hash: u64,
}

impl EntryDigest {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        for part in [key, value] {
            self.hash = self.hash.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ xxh3_64(part);
        }
    }
}

impl OpenTable {
    fn create(
        ctx: &DbContext,
        cf: &ColumnFamily,
        plan: &OutputPlan,
        number: FileNumber,
    ) -> Result<OpenTable> {
        let direct = ctx.options.use_direct_io_for_flush_and_compaction;
        let charge = cf.block_cache.as_ref().and_then(|cache| Charge::of(cache, Role::Jobs));
        let most = charge.as_ref().map_or(usize::MAX, |charge| charge.cache().capacity() / BUFFER_PART);
        let buffer_size = (ctx.live.load().writable_file_max_buffer_size as usize).min(most);
        let options = OpenWrite {
            io: if direct { DirectIo::Direct } else { DirectIo::Buffered },
            buffer_size,
            bytes_per_sync: ctx.live.load().bytes_per_sync,
            ahead: None,
        };
        let path = file_name::table(plan.dir.as_deref().unwrap_or(&ctx.path), number);
        let reason =
            if plan.level < 0 { TableFileCreationReason::Flush } else { TableFileCreationReason::Compaction };
        let told = ReportedTable::begin(ctx, cf, &path, (plan.job_id, reason));
        let mut file = match ctx.env.fs.create(&path, options) {
            Ok(file) => file,
            Err(error) => {
                told.into_iter().for_each(|told| told.ended(ctx, Err(error.clone())));
                return Err(error);
            }
        };
        if let Some(times) = &plan.write_times {
            file.measure(times);
        }
        let file = ctx.pacing.file(file, plan.level);
        let (file, checksum) = while_written(file, ctx.options.file_checksum_gen_factory);
        let creation_time = ctx.env.clock.now_micros() / 1_000_000;
        let writer = TableWriter::new(
            file,
            TableWriterOptions {
                comparator: cf.comparator.clone(),
                table: plan.table.clone(),
                compression: plan.compression,
                compression_opts: plan.compression_opts.clone(),
                column_family_id: cf.id().0,
                column_family_name: cf.name().to_string(),
                merge_operator_name: cf.merge_operator.as_ref().map(|operator| operator.name().to_string()),
                db_id: ctx.db_id.clone(),
                session_id: ctx.session_id.clone(),
                // As long as nobody sets one, tables do not depend on where they were written.
                host_id: ctx.options.kept.get("db_host_id").unwrap_or_default().to_string(),
                file_number: number.0,
                creation_time: plan.oldest_ancestor_time,
                oldest_key_time: 0,
                newest_key_time: 0,
                file_creation_time: creation_time,
                omit_filter: plan.omit_filter,
                prefix_extractor: plan.prefix_extractor.clone(),
                level: Some(plan.level),
                external: false,
            },
        );
        let charge = charge.map(|mut charge| {
            charge.set(OUTPUT_BYTES + buffer_size);
            (charge, OUTPUT_BYTES + buffer_size)
        });
        let reference = (Vec::new(), Vec::new());
        let written = plan.paranoid_checks.then(EntryDigest::default);
        let collectors = Collectors::new(&cf.collectors, cf.id(), Some(plan.level.max(0) as usize));
        Ok(OpenTable {
            number,
            writer,
            creation_time,
            oldest_blob_file: None,
            reference,
            written,
            collectors,
            checksum,
            charge,
            told,
        })
    }

    /// Charges what it keeps in memory.
    fn charge_memory(&mut self) {
        if let Some((charge, buffers)) = &mut self.charge
            && self.writer.num_entries().is_multiple_of(ENTRIES_PER_LOOK)
        {
            charge.set(*buffers + self.writer.memory_usage());
        }
    }

    /// True if it should end for the memory that it takes.
    fn is_heavy(&self) -> bool {
        let heavy = |(charge, buffers): &(Charge, usize)| {
            charge.bytes() > buffers + charge.cache().capacity() / LARGEST_PART
        };
        self.charge.as_ref().is_some_and(heavy)
    }

    /// Adds an entry, its value to a blob file if it is large.
    #[inline]
    fn add(
        &mut self,
        key: &[u8],
        value: &[u8],
        blobs: &mut BlobOutput<'_>,
        reserve: ReserveFile<'_>,
    ) -> Result<()> {
        self.charge_memory();
        let value_type = key[key.len() - Trailer::LEN];
        if value_type == ValueType::BlobIndex as u8 {
            let number = blobs.refer(user_key(key), value)?;
            number.into_iter().for_each(|number| self.refer_to(number));
        } else if value_type == ValueType::WideColumnEntity as u8 {
            wide_columns::each_blob(value, |index| {
                let number = blobs.refer(user_key(key), index)?;
                number.into_iter().for_each(|number| self.refer_to(number));
                Ok(())
            })?;
        } else if value_type == ValueType::Value as u8 && blobs.takes(value.len()) {
            return self.add_to_blob_file(key, value, blobs, reserve);
        }
        if let Some(written) = &mut self.written {
            written.add(key, value);
        }
        self.writer.add(key, value)?;
        if let Some(collectors) = &mut self.collectors {
            collectors.add(key, value, &self.writer);
        }
        Ok(())
    }

    fn add_range_tombstone(&mut self, begin: &[u8], seq: SeqNum, end: &[u8]) {
        self.writer.add_range_tombstone(begin, seq, end);
        if let Some(collectors) = &mut self.collectors {
            collectors.add_range_tombstone(begin, seq, end, &self.writer);
        }
    }

    fn add_to_blob_file(
        &mut self,
        key: &[u8],
        value: &[u8],
        blobs: &mut BlobOutput<'_>,
        reserve: ReserveFile<'_>,
    ) -> Result<()> {
        let (user_key, trailer) = split(key);
        let (reference_key, index) = &mut self.reference;
        let number = blobs.add(user_key, value, reserve, index)?;
        reference_key.clear();
        append_internal_key(reference_key, user_key, Trailer::new(trailer.seq(), ValueType::BlobIndex));
        if let Some(written) = &mut self.written {
            written.add(reference_key, index);
        }
        self.writer.add(reference_key, index)?;
        if let Some(collectors) = &mut self.collectors {
            collectors.add(reference_key, index, &self.writer);
        }
        self.refer_to(number);
        Ok(())
    }

    fn refer_to(&mut self, number: FileNumber) {
        self.oldest_blob_file = Some(self.oldest_blob_file.map_or(number, |oldest| oldest.min(number)));
    }

    fn finish(mut self, ctx: &DbContext, cf: &ColumnFamily, plan: &OutputPlan) -> Result<TableFile> {
        let told = self.told.take();
        let finished = self.end(ctx, cf, plan);
        if let Some(told) = told {
            let made = finished.as_ref().map(|(file, properties)| (file.size, properties.clone()));
            told.ended(ctx, made.map_err(Clone::clone));
        }
        finished.map(|(file, _)| file)
    }

    fn end(
        mut self,
        ctx: &DbContext,
        cf: &ColumnFamily,
        plan: &OutputPlan,
    ) -> Result<(TableFile, TableProperties)> {
        let collectors = self.collectors.take();
        let collected = collectors.map(|collectors| collectors.finish(&mut self.writer)).unwrap_or_default();
        for failure in &collected.failures {
            log_at!(ctx, LogLevel::Warn, "[{}] table {}: {failure}", cf.name(), self.number.0);
        }
        let summary = self.writer.finish()?;
        let watching = ctx.monitor.begin();
        counts::table_written(Watch::from(&watching), &summary.stored);
        let timer = Watch::from(&watching).stats_timer();
        self.writer.sync_and_close(ctx.options.use_fsync)?;
        timer.micros(if plan.level < 0 {
            HistogramKind::TableSyncMicros
        } else {
            HistogramKind::CompactionOutfileSyncMicros
        });
        let mut file = TableFile::new(self.number, summary.file_size, summary.smallest, summary.largest);
        let stamp = |name: &str| summary.properties.others.get(name).cloned();
        if let Some((oldest, newest)) = stamp(OLDEST_TIMESTAMP).zip(stamp(NEWEST_TIMESTAMP)) {
            file.set_timestamps(&oldest, &newest);
        }
        FileChecksum::of_table(self.checksum.map(|sum| sum.finish()).as_ref(), &mut file);
        (file.path_id, file.dir) = (plan.path_id, plan.dir.clone());
        file.smallest_seq = summary.smallest_seq;
        file.largest_seq = summary.largest_seq;
        file.epoch = plan.epoch;
        file.oldest_ancestor_time = plan.oldest_ancestor_time;
        file.creation_time = self.creation_time;
        file.tail_size = summary.tail_size;
        file.unique_id = Some(summary.unique_id);
        file.oldest_blob_file = self.oldest_blob_file;
        file.marked_for_compaction = collected.needs_compaction;
        let levels = plan.version.as_ref().map_or(0, |version| version.levels.len());
        file.runtime.placement.set_in_last_level(plan.level + 1 == levels as i32);
        ctx.file_added(file.path(&ctx.path), file.size);
        if plan.level >= 0 {
            // A flush is installed before writes stop.
            ctx.check_space()?;
        }
        if let Some(written) = self.written {
            compare(ctx, cf, &file, written)?;
        }
        Ok((file, summary.properties))
    }
}

/// Reads the finished table and compares it with what was written.
fn compare(ctx: &DbContext, cf: &ColumnFamily, file: &TableFile, written: EntryDigest) -> Result<()> {
    let table = ctx.tables.open(cf, file)?;
    let mut found = EntryDigest::default();
    table_cache::read_back(&table, |key, value| found.add(key, value))?;
    if found == written {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "{}: paranoid_file_checks: {} entries were written and {} others are found",
        file.path(&ctx.path).display(),
        written.entries,
        found.entries
    )))
}

/// Cuts outputs where the level below has boundaries, so that a later compaction of an output touches few
/// tables it does not need.
///
/// Source: RocksDB `db/compaction/compaction_outputs.cc`, `ShouldStopBefore`.
pub struct GrandparentCuts {
    files: Vec<Arc<TableFile>>,
    /// First grandparent that ends at or after the current key.
    place: usize,
    /// Bytes of grandparents the current table overlaps.
    overlapped: u64,
    /// Boundaries the current table has crossed.
    crossed: usize,
    max_overlap: u64,
}

impl GrandparentCuts {
    /// `files` are sorted and do not overlap.
    pub fn new(files: Vec<Arc<TableFile>>, max_overlap: u64) -> GrandparentCuts {
        GrandparentCuts { files, place: 0, overlapped: 0, crossed: 0, max_overlap }
    }

    /// A new table starts with `key`.
    fn start_table(&mut self, comparator: &Comparator, key: &[u8]) {
        self.advance_to(comparator, key);
        self.crossed = 0;
        self.overlapped = match self.files.get(self.place) {
            Some(file) if covers(comparator, file, key) => file.size,
            _ => 0,
        };
    }

    /// True if the table of `size` bytes should end before `key`.
    fn cut_before(&mut self, comparator: &Comparator, key: &[u8], size: u64, target: u64) -> bool {
        let crossed = self.advance_to(comparator, key);
        if crossed == 0 {
            return false;
        }
        self.crossed += crossed;
        if self.overlapped > self.max_overlap {
            return true;
        }
        // The more boundaries a table has crossed, the fuller it must be to be worth ending here.
        let fullness = 50 + (self.crossed * 5).min(40) as u64;
        size >= target / 100 * fullness
    }

    /// Moves to the first grandparent ending at or after `key`; returns how many boundaries were crossed.
    fn advance_to(&mut self, comparator: &Comparator, key: &[u8]) -> usize {
        let before = self.place;
        while let Some(file) = self.files.get(self.place) {
            if comparator.compare(user_key(key), user_key(&file.largest)) != Ordering::Greater {
                break;
            }
            self.place += 1;
            if let Some(next) = self.files.get(self.place) {
                self.overlapped += next.size;
            }
        }
        self.place - before
    }
}

fn covers(comparator: &Comparator, file: &TableFile, key: &[u8]) -> bool {
    comparator.compare(user_key(key), user_key(&file.smallest)) != Ordering::Less
}

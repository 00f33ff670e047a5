//! One compaction: read the inputs, write the outputs, install both changes in one edit.
//!
//! A large one is cut by key range into parts that run on threads of their own (`subcompaction.rs`); the edit is still
//! one. Outputs have the smallest epoch of the inputs: they are as old as the oldest of them.

use super::blobs::{BlobInput, BlobPlan};
use super::output::{GrandparentCuts, OutputPlan};
use super::pick;
use super::stream::{CompactionStream, DropRules, KeyRange};
use super::subcompaction::{Written, clip};
use super::{Compaction, LevelFiles, Reason, Work};
use crate::column_family::ColumnFamily;
use crate::db::DbInner;
use crate::info_log::log_line;
use crate::obsolete_files::PendingOutputs;
use crate::read::level_iter::LevelIter;
use crate::read::merging_iter::{MergingIter, Source};
use crate::read::table_cache;
use crate::state::{CfState, RunningCompaction};
use crate::stats::LevelStats;
use outcrop_base::{CompactionFilter, FilterContext, Fragments, Result, SeqNum};
use outcrop_manifest::{FileMetaData, FileNumber, Version, VersionEdit};
use outcrop_options::{Prepopulate, derive};
use outcrop_table::{FillCache, TableIterOptions};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A compaction with what it needs to run.
pub struct CompactionJob {
    /// What to do.
    pub compaction: Compaction,
    /// The column family.
    pub cf: Arc<ColumnFamily>,
    /// The version it was picked from; keeps the inputs alive.
    pub version: Arc<Version>,
    /// Threads it may be split over.
    pub max_subcompactions: u32,
    /// What it may write.
    pub running: RunningCompaction,
    /// Set by a caller who no longer wants it.
    pub canceled: Option<Arc<AtomicBool>>,
}

impl CompactionJob {
    /// A job for `compaction`, which was picked from the present version of `cf`. Compares keys; starting and ending the
    /// job does not, so that a comparator that panics leaves nothing half started.
    pub fn new(compaction: Compaction, cf: &CfState, max_subcompactions: u32) -> CompactionJob {
        let inputs: Vec<_> = compaction.input_files().cloned().collect();
        let (begin, end) = pick::key_range(&cf.cf.comparator, &inputs).unwrap_or_default();
        let running = RunningCompaction { output_level: compaction.output_level, begin, end };
        CompactionJob {
            compaction,
            cf: cf.cf.clone(),
            version: cf.version.clone(),
            max_subcompactions,
            running,
            canceled: None,
        }
    }
}

impl DbInner {
    /// Runs `job` and installs its result; gives the tables it put into the output level. Inputs stay marked; the caller
    /// releases them.
    pub fn run_compaction(&self, job: &CompactionJob) -> Result<Vec<FileNumber>> {
        match job.compaction.work {
            Work::Merge => self.run_merge(job),
            Work::Move => self.run_move(job),
            Work::Drop => self.run_drop(job).map(|()| Vec::new()),
        }
    }

    fn run_merge(&self, job: &CompactionJob) -> Result<Vec<FileNumber>> {
        let start = self.ctx.env.clock.monotonic_nanos();
        let pending = Arc::new(PendingOutputs::new(&self.ctx));
        let mut written = self.write_parts(job, &pending)?;
        let outputs = self.open_outputs(job, std::mem::take(&mut written.tables))?;
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
            micros: (self.ctx.env.clock.monotonic_nanos() - start) / 1000,
            cpu_micros: written.cpu_nanos / 1000,
            bytes_read: bytes(&from),
            bytes_read_output_level: bytes(&into),
            bytes_written: outputs.iter().map(|file| file.size).sum::<u64>()
                + written.blob_files.iter().map(|file| file.total_bytes).sum::<u64>(),
            bytes_moved: 0,
            records_in,
            records_dropped: records_in.saturating_sub(records_out),
        };
        let numbers = outputs.iter().map(|file| file.number).collect();
        pending.settle(|| self.install_merge(job, outputs, written))?;
        job.cf.stats.record(compaction.output_level, &stats);
        log_line!(
            self.ctx,
            "[{}] compacted {compaction}: {} -> {} bytes, {} of {} records dropped, {} us",
            job.cf.name(),
            compaction.input_bytes(),
            stats.bytes_written,
            stats.records_dropped,
            stats.records_in,
            stats.micros
        );
        Ok(numbers)
    }

    /// The part of the inputs in `range`, without what `snapshots` let go.
    pub fn compaction_stream(
        &self,
        job: &CompactionJob,
        range: KeyRange,
        tombstones: &Fragments,
        snapshots: &[SeqNum],
    ) -> Result<CompactionStream> {
        let compaction = &job.compaction;
        let options = TableIterOptions {
            fill_cache: FillCache::No,
            readahead_bytes: self.ctx.options.compaction_readahead_size as usize,
        };
        let mut sources = Vec::new();
        for LevelFiles { level, files } in &compaction.inputs {
            if *level == 0 {
                for file in files {
                    let table = table_cache::open(&self.ctx, &job.cf, file)?;
                    sources.push(Source::Table(table.iter(options.clone()), file.largest_seq));
                }
            } else {
                let (ctx, cf) = (self.ctx.clone(), job.cf.clone());
                sources.push(Source::Level(LevelIter::new(ctx, cf, files.clone().into(), options.clone())));
            }
        }
        // What is ingested behind later must stay hidden by what is here now.
        let behind = job.cf.options.load().allow_ingest_behind;
        let rules = DropRules {
            snapshots: snapshots.to_vec(),
            bottommost: compaction.bottommost && !behind,
            drop_deletions: !behind,
            below: below_output(job),
            filter: self.compaction_filter(job),
            blobs: BlobInput::new(&self.ctx, &job.cf, &job.version),
            tombstones: clip(tombstones, &range, &job.cf.comparator),
            range,
        };
        let input = MergingIter::new(job.cf.comparator.clone(), sources);
        Ok(CompactionStream::new(input, job.cf.comparator.clone(), job.cf.merge_operator.clone(), rules))
    }

    /// All range tombstones of the inputs.
    pub fn input_tombstones(&self, job: &CompactionJob) -> Result<Fragments> {
        let mut tombstones = Vec::new();
        for file in job.compaction.input_files() {
            tombstones.extend(table_cache::range_tombstones(&self.ctx, &job.cf, file)?.cloned());
        }
        Ok(Fragments::union(tombstones.iter().map(|set| &**set), &job.cf.comparator))
    }

    /// The filter to ask, and the level it is told.
    fn compaction_filter(&self, job: &CompactionJob) -> Option<(Arc<dyn CompactionFilter>, usize)> {
        let compaction = &job.compaction;
        let context = FilterContext {
            is_full_compaction: compaction.input_files().count() == job.version.num_files(),
            is_manual_compaction: compaction.reason == Reason::Manual,
            column_family_id: job.cf.id(),
        };
        let made = || job.cf.compaction_filter_factory.as_ref()?.create(context);
        let filter = job.cf.compaction_filter.clone().or_else(made)?;
        Some((filter, compaction.start_level()))
    }

    /// How the outputs are written.
    pub fn output_plan(&self, job: &CompactionJob) -> OutputPlan {
        let compaction = &job.compaction;
        let options = job.cf.options.load();
        let epoch = compaction.input_files().map(|file| file.epoch).min().unwrap_or(0);
        let known_times = compaction.input_files().map(|file| file.oldest_ancestor_time).filter(|t| *t > 0);
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        OutputPlan {
            epoch,
            compression: compaction.compression,
            compression_opts: derive::compression_opts(&options, compaction.bottommost).clone(),
            table: options.table.clone(),
            prefix_extractor: options.prefix_extractor,
            level: compaction.output_level as i32,
            blobs: BlobPlan::new(&options, compaction.output_level as i32),
            paranoid_checks: options.paranoid_file_checks,
            omit_filter: options.optimize_filters_for_hits && compaction.bottommost,
            oldest_ancestor_time: known_times.min().unwrap_or(now),
            target_file_size: compaction.target_file_size,
            grandparents: (!compaction.grandparents.is_empty()).then(|| {
                GrandparentCuts::new(compaction.grandparents.clone(), compaction.max_grandparent_overlap)
            }),
            canceled: job.canceled.clone(),
        }
    }

    fn open_outputs(&self, job: &CompactionJob, tables: Vec<FileMetaData>) -> Result<Vec<Arc<FileMetaData>>> {
        self.ctx.env.fs.sync_dir(&self.ctx.path)?;
        let tables: Vec<Arc<FileMetaData>> = tables.into_iter().map(Arc::new).collect();
        let prepopulate = job.cf.options.load().table.prepopulate_block_cache;
        for file in &tables {
            // Opened before it is installed, so that no reader pays for it.
            let table = table_cache::open(&self.ctx, &job.cf, file)?;
            if prepopulate == Prepopulate::FlushAndCompaction {
                table_cache::warm(&table)?;
            }
        }
        Ok(tables)
    }

    fn install_merge(
        &self,
        job: &CompactionJob,
        outputs: Vec<Arc<FileMetaData>>,
        written: Written,
    ) -> Result<()> {
        let compaction = &job.compaction;
        let mut edit = deletion_edit(compaction);
        let level = compaction.output_level as u32;
        edit.new_files = outputs.iter().map(|file| (level, file.clone())).collect();
        edit.new_blob_files = written.blob_files;
        edit.blob_garbage = written.blob_garbage.into_iter().collect();
        self.log_and_apply(vec![edit], |state| {
            let Some(cf) = state.column_families.get_mut(&compaction.cf_id) else { return };
            if compaction.bottommost {
                let held = outputs.iter().filter(|file| file.largest_seq > written.oldest_snapshot);
                cf.held_back.extend(held.map(|file| file.number));
            }
        })
    }

    /// Relinks the inputs into the output level: one edit, no data is read or written.
    fn run_move(&self, job: &CompactionJob) -> Result<Vec<FileNumber>> {
        let compaction = &job.compaction;
        let mut edit = deletion_edit(compaction);
        let level = compaction.output_level as u32;
        edit.new_files = compaction.input_files().map(|file| (level, file.clone())).collect();
        self.log_and_apply(vec![edit], |_| {})?;
        let moved = compaction.input_bytes();
        let stats = LevelStats { bytes_moved: moved, ..LevelStats::default() };
        job.cf.stats.record(compaction.output_level, &stats);
        log_line!(self.ctx, "[{}] moved {compaction}: {moved} bytes", job.cf.name());
        Ok(compaction.input_files().map(|file| file.number).collect())
    }

    /// Deletes the inputs with the data in them.
    fn run_drop(&self, job: &CompactionJob) -> Result<()> {
        let compaction = &job.compaction;
        self.log_and_apply(vec![deletion_edit(compaction)], |_| {})?;
        log_line!(self.ctx, "[{}] dropped {compaction}: {} bytes", job.cf.name(), compaction.input_bytes());
        Ok(())
    }
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

/// What lies below the outputs, as sorted runs: for outputs to L0 the older tables there too.
///
/// Taken from the version the job was picked from. What other jobs move meanwhile stays within the key ranges of that.
fn below_output(job: &CompactionJob) -> Vec<Arc<[Arc<FileMetaData>]>> {
    let levels = &job.version.levels;
    let output_level = job.compaction.output_level;
    let mut below: Vec<Arc<[Arc<FileMetaData>]>> = Vec::new();
    if let Some(oldest) = job.compaction.input_files().last().filter(|_| output_level == 0) {
        let older = levels[0].files.iter().skip_while(|file| !Arc::ptr_eq(file, oldest)).skip(1);
        below.extend(older.map(|file| Arc::from([file.clone()])));
    }
    below.extend(levels.iter().skip(output_level + 1).map(|level| level.shared_files()));
    below
}

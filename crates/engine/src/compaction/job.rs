//! One compaction: read the inputs, write the outputs, install both changes in one edit.

use super::blobs::{BlobInput, BlobPlan};
use super::output::{GrandparentCuts, OutputPlan, Outputs, write_tables};
use super::pick::leveled;
use super::stream::{CompactionStream, DropRules};
use super::{Compaction, Reason};
use crate::column_family::ColumnFamily;
use crate::db::DbInner;
use crate::info_log::log_line;
use crate::obsolete_files::PendingOutputs;
use crate::read::level_iter::LevelIter;
use crate::read::merging_iter::{MergingIter, Source};
use crate::read::table_cache;
use crate::state::RunningCompaction;
use crate::stats::LevelStats;
use outcrop_base::{CompactionFilter, FilterContext, Fragments, Result};
use outcrop_manifest::{FileMetaData, Version, VersionEdit};
use outcrop_options::derive;
use outcrop_table::{FillCache, TableIterOptions};
use std::sync::Arc;

/// A compaction with what it needs to run.
pub struct CompactionJob {
    /// What to do.
    pub compaction: Compaction,
    /// The column family.
    pub cf: Arc<ColumnFamily>,
    /// The version it was picked from; keeps the inputs alive.
    pub version: Arc<Version>,
}

impl CompactionJob {
    /// What it may write.
    pub fn running(&self) -> RunningCompaction {
        let range = leveled::key_range(
            &self.cf.comparator,
            &self.compaction.input_files().cloned().collect::<Vec<_>>(),
        );
        let (begin, end) = range.unwrap_or_default();
        RunningCompaction { output_level: self.compaction.output_level, begin, end }
    }
}

impl DbInner {
    /// Runs `job` and installs its result. Inputs stay marked; the caller releases them.
    pub fn run_compaction(&self, job: &CompactionJob) -> Result<()> {
        if job.compaction.trivial_move {
            return self.run_trivial_move(job);
        }
        let clock = &self.ctx.env.clock;
        let (start, cpu_start) = (clock.monotonic_nanos(), clock.thread_cpu_nanos());
        let mut stream = self.compaction_stream(job)?;
        let pending = PendingOutputs::new(&self.ctx);
        let reserve = || pending.reserve();
        let mut written = write_tables(&self.ctx, &job.cf, self.output_plan(job), &mut stream, &reserve)?;
        let outputs = self.open_outputs(job, std::mem::take(&mut written.tables))?;
        let compaction = &job.compaction;
        let level_bytes = |index: usize| compaction.inputs[index].iter().map(|file| file.size).sum::<u64>();
        let stats = LevelStats {
            count: 1,
            micros: (clock.monotonic_nanos() - start) / 1000,
            cpu_micros: (clock.thread_cpu_nanos() - cpu_start) / 1000,
            bytes_read: level_bytes(0),
            bytes_read_output_level: level_bytes(1),
            bytes_written: outputs.iter().map(|file| file.size).sum::<u64>()
                + written.blob_files.iter().map(|file| file.total_bytes).sum::<u64>(),
            bytes_moved: 0,
            records_in: stream.stats.records_in,
            records_dropped: stream.stats.records_in.saturating_sub(stream.stats.records_out),
        };
        pending.settle(self.install_compaction(job, outputs, written))?;
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
        Ok(())
    }

    fn compaction_stream(&self, job: &CompactionJob) -> Result<CompactionStream> {
        let compaction = &job.compaction;
        let options = TableIterOptions {
            fill_cache: FillCache::No,
            readahead_bytes: self.ctx.options.compaction_readahead_size as usize,
        };
        let mut sources = Vec::new();
        for (index, files) in compaction.inputs.iter().enumerate().filter(|(_, files)| !files.is_empty()) {
            let level = if index == 0 { compaction.start_level } else { compaction.output_level };
            if level == 0 {
                for file in files {
                    let table = table_cache::open(&self.ctx, &job.cf, file)?;
                    sources.push(Source::Table(table.iter(options.clone()), file.largest_seq));
                }
            } else {
                let (ctx, cf) = (self.ctx.clone(), job.cf.clone());
                sources.push(Source::Level(LevelIter::new(ctx, cf, files.clone().into(), options.clone())));
            }
        }
        let mut tombstones = Vec::new();
        for file in compaction.input_files() {
            tombstones.extend(table_cache::range_tombstones(&self.ctx, &job.cf, file)?.cloned());
        }
        // What is ingested behind later must stay hidden by what is here now.
        let behind = job.cf.options.load().allow_ingest_behind;
        let below = job.version.levels.iter().skip(compaction.output_level + 1);
        let rules = DropRules {
            snapshots: self.snapshots.sequences(),
            bottommost: compaction.bottommost && !behind,
            drop_deletions: compaction.output_level > 0 && !behind,
            below: below.map(|level| level.shared_files()).collect(),
            filter: self.compaction_filter(job),
            blobs: BlobInput::new(&self.ctx, &job.cf, &job.version),
            tombstones: Fragments::union(tombstones.iter().map(|set| &**set), &job.cf.comparator),
        };
        let input = MergingIter::new(job.cf.comparator.clone(), sources);
        Ok(CompactionStream::new(input, job.cf.comparator.clone(), job.cf.merge_operator.clone(), rules))
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
        Some((filter, compaction.start_level))
    }

    fn output_plan(&self, job: &CompactionJob) -> OutputPlan {
        let compaction = &job.compaction;
        let options = job.cf.options.load();
        let epoch = compaction.input_files().map(|file| file.epoch).min().unwrap_or(0);
        let known_times = compaction.input_files().map(|file| file.oldest_ancestor_time).filter(|t| *t > 0);
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        OutputPlan {
            epoch,
            compression: derive::compression_for_level(
                &options,
                compaction.output_level,
                compaction.bottommost,
            ),
            compression_opts: options.compression_opts.clone(),
            table: options.table.clone(),
            prefix_extractor: options.prefix_extractor,
            level: compaction.output_level as i32,
            blobs: BlobPlan::new(&options, compaction.output_level as i32),
            omit_filter: options.optimize_filters_for_hits && compaction.bottommost,
            oldest_ancestor_time: known_times.min().unwrap_or(now),
            target_file_size: compaction.target_file_size,
            grandparents: (!compaction.grandparents.is_empty()).then(|| {
                GrandparentCuts::new(compaction.grandparents.clone(), compaction.max_grandparent_overlap)
            }),
        }
    }

    fn open_outputs(&self, job: &CompactionJob, tables: Vec<FileMetaData>) -> Result<Vec<Arc<FileMetaData>>> {
        self.ctx.env.fs.sync_dir(&self.ctx.path)?;
        let tables: Vec<Arc<FileMetaData>> = tables.into_iter().map(Arc::new).collect();
        for file in &tables {
            // Opened before it is installed, so that no reader pays for it.
            table_cache::open(&self.ctx, &job.cf, file)?;
        }
        Ok(tables)
    }

    fn install_compaction(
        &self,
        job: &CompactionJob,
        outputs: Vec<Arc<FileMetaData>>,
        written: Outputs,
    ) -> Result<()> {
        let compaction = &job.compaction;
        let mut edit = deletion_edit(compaction);
        let level = compaction.output_level as u32;
        edit.new_files = outputs.iter().map(|file| (level, file.clone())).collect();
        edit.new_blob_files = written.blob_files;
        edit.blob_garbage = written.blob_garbage;
        self.log_and_apply(vec![edit], |_| {})
    }

    /// Relinks the inputs into the output level: one edit, no data is read or written.
    fn run_trivial_move(&self, job: &CompactionJob) -> Result<()> {
        let compaction = &job.compaction;
        let mut edit = deletion_edit(compaction);
        let level = compaction.output_level as u32;
        edit.new_files = compaction.inputs[0].iter().map(|file| (level, file.clone())).collect();
        self.log_and_apply(vec![edit], |_| {})?;
        let moved = compaction.input_bytes();
        let stats = LevelStats { bytes_moved: moved, ..LevelStats::default() };
        job.cf.stats.record(compaction.output_level, &stats);
        log_line!(self.ctx, "[{}] moved {compaction}: {moved} bytes", job.cf.name());
        Ok(())
    }
}

/// The edit that takes the inputs away.
fn deletion_edit(compaction: &Compaction) -> VersionEdit {
    let mut edit = VersionEdit::for_column_family(compaction.cf_id);
    let levels = [compaction.start_level, compaction.output_level];
    for (files, level) in compaction.inputs.iter().zip(levels) {
        edit.deleted_files.extend(files.iter().map(|file| (level as u32, file.number)));
    }
    edit
}

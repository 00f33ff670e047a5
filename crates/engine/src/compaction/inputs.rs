//! The inputs of a compaction and how its outputs are written: the stream that it reads and the plan of its tables.

use super::blobs::{BlobInput, BlobPlan};
use super::job::CompactionJob;
use super::output::{GrandparentCuts, OutputPlan, write_times};
use super::stamps::StampRules;
use super::stream::{CompactionStream, DropRules, KeyRange};
use super::{LevelFiles, Reason};
use crate::context::DbContext;
use crate::paths;
use crate::read::level_iter::LevelIter;
use crate::read::merging_iter::MergingIter;
use crate::read::source::Source;
use crate::snapshots::LiveSnapshots;
use crate::table_cache::TableCache;
use outcrop_base::{CompactionFilter, Comparator, FilterContext, Fragments, RangeTombstone, Result};
use outcrop_manifest::TableFile;
use outcrop_options::derive;
use outcrop_table::{Loading, TableIterOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The part of the inputs in `range`, without the entries that no reader at `snapshots` can see.
pub fn compaction_stream(
    ctx: &Arc<DbContext>,
    job: &CompactionJob,
    range: KeyRange,
    tombstones: &Fragments,
    snapshots: &LiveSnapshots,
) -> Result<CompactionStream> {
    let compaction = &job.compaction;
    let options = TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: ctx.live.load().compaction_readahead_size as usize,
        pace: ctx.pacing.reads(),
        for_job: true,
    };
    let mut sources = Vec::new();
    for LevelFiles { level, files } in &compaction.inputs {
        if *level == 0 {
            for file in files {
                let table = ctx.tables.open(&job.cf, file)?;
                sources.push(Source::Table(table.iter(options.clone()), file.largest_seq));
            }
        } else {
            let (tables, cf) = (ctx.tables.clone(), job.cf.clone());
            sources.push(Source::Level(LevelIter::new(tables, cf, files.clone().into(), options.clone())));
        }
    }
    // Files that are ingested behind later must stay hidden by the entries here.
    let behind = job.cf.options.load().allow_ingest_behind;
    let rules = DropRules {
        snapshots: snapshots.clone(),
        bottommost: compaction.bottommost && !behind,
        drop_deletions: !behind,
        below: below_output(job),
        filter: compaction_filter(job),
        blobs: BlobInput::new(&ctx.tables, &job.cf, &job.version, job.blob_collection),
        tombstones: clip(tombstones, &range, &job.cf.comparator),
        range,
        stamps: StampRules::of(&job.cf, job.trim),
        monitor: ctx.monitor.clone(),
    };
    let input = MergingIter::new(job.cf.comparator.clone(), sources);
    Ok(CompactionStream::new(input, job.cf.comparator.clone(), job.cf.merge_operator.clone(), rules))
}

/// All range tombstones of the inputs.
pub fn input_tombstones(tables: &TableCache, job: &CompactionJob) -> Result<Fragments> {
    let mut tombstones = Vec::new();
    for file in job.compaction.input_files() {
        tombstones.extend(tables.range_tombstones(&job.cf, file)?.cloned());
    }
    Ok(Fragments::union(tombstones.iter().map(|set| &**set), &job.cf.comparator))
}

/// The filter to ask, and the level it is told.
fn compaction_filter(job: &CompactionJob) -> Option<(Arc<dyn CompactionFilter>, usize)> {
    let compaction = &job.compaction;
    let context = FilterContext {
        is_full_compaction: compaction.input_files().count() == job.version.num_files(),
        is_manual_compaction: compaction.reason == Reason::Manual,
        column_family_id: job.cf.id().0,
    };
    let made = || job.cf.compaction_filter_factory.as_ref()?.create(context);
    let filter = job.cf.compaction_filter.clone().or_else(made)?;
    Some((filter, compaction.start_level()))
}

/// How the outputs are written.
pub fn output_plan(ctx: &DbContext, job: &CompactionJob) -> OutputPlan {
    let compaction = &job.compaction;
    let options = job.cf.options.load();
    let epoch = compaction.input_files().map(|file| file.epoch).min().unwrap_or(0);
    let known_times = compaction.input_files().map(|file| file.oldest_ancestor_time).filter(|t| *t > 0);
    let now = ctx.env.clock.now_micros() / 1_000_000;
    OutputPlan {
        epoch,
        compression: compaction.compression,
        compression_opts: derive::compression_opts(&options, compaction.bottommost).clone(),
        table: options.table.clone(),
        prefix_extractor: options.prefix_extractor.clone(),
        level: compaction.output_level as i32,
        path_id: job.path_id,
        dir: paths::directory(&options, job.path_id),
        blobs: BlobPlan::new(&options, compaction.output_level as i32),
        version: Some(job.version.clone()),
        paranoid_checks: options.paranoid_file_checks || options.verifies_compactions(),
        omit_filter: options.optimize_filters_for_hits && compaction.bottommost,
        oldest_ancestor_time: known_times.min().unwrap_or(now),
        target_file_size: compaction.target_file_size,
        grandparents: (!compaction.grandparents.is_empty()).then(|| {
            GrandparentCuts::new(compaction.grandparents.clone(), compaction.max_grandparent_overlap)
        }),
        partitioner: job.partitioner(),
        canceled: job.canceled.clone(),
        write_times: write_times(&options),
        // Relaxed: this thread, or the one that started it, gave it.
        job_id: job.job_id.load(Ordering::Relaxed),
    }
}

/// The data below the outputs, as sorted runs: for outputs to L0 the older tables there too.
///
/// Taken from the version the job was picked from. Tables that other jobs move meanwhile stay within the key ranges
/// of that version.
fn below_output(job: &CompactionJob) -> Vec<Arc<[Arc<TableFile>]>> {
    let levels = &job.version.levels;
    let output_level = job.compaction.output_level;
    let mut below: Vec<Arc<[Arc<TableFile>]>> = Vec::new();
    if let Some(oldest) = job.compaction.input_files().last().filter(|_| output_level == 0) {
        let older = levels[0].files.iter().skip_while(|file| !Arc::ptr_eq(file, oldest)).skip(1);
        below.extend(older.map(|file| Arc::from([file.clone()])));
    }
    below.extend(levels.iter().skip(output_level + 1).map(|level| level.shared_files()));
    below
}

/// The part of `tombstones` that lies in `range`.
fn clip(tombstones: &Fragments, range: &KeyRange, comparator: &Comparator) -> Fragments {
    if tombstones.is_empty() || *range == KeyRange::default() {
        return tombstones.clone();
    }
    let clipped = |mut tombstone: RangeTombstone| {
        if let Some(begin) = &range.begin
            && comparator.compare(&tombstone.begin, begin).is_lt()
        {
            tombstone.begin.clone_from(begin);
        }
        if let Some(end) = &range.end
            && comparator.compare(&tombstone.end, end).is_gt()
        {
            tombstone.end.clone_from(end);
        }
        comparator.compare(&tombstone.begin, &tombstone.end).is_lt().then_some(tombstone)
    };
    let inside: Vec<RangeTombstone> = tombstones.tombstones().filter_map(clipped).collect();
    Fragments::new(&inside, comparator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::SeqNum;

    #[test]
    fn tombstones_are_cut_with_the_keys() {
        let tombstone =
            |begin: &str, end: &str| RangeTombstone { begin: begin.into(), end: end.into(), seq: SeqNum(7) };
        let all = Fragments::new(&[tombstone("a", "m"), tombstone("x", "z")], &Comparator::Bytewise);
        let part = |begin: Option<&str>, end: Option<&str>| {
            let range = KeyRange { begin: begin.map(Into::into), end: end.map(Into::into) };
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let clipped = clip(&all, &range, &Comparator::Bytewise);
            clipped.iter().map(|f| format!("{}..{}", text(&f.begin), text(&f.end))).collect::<Vec<_>>()
        };
        assert_eq!(part(None, Some("c")), ["a..c"]);
        assert_eq!(part(Some("c"), Some("y")), ["c..m", "x..y"]);
        assert_eq!(part(Some("y"), None), ["y..z"]);
        assert_eq!(part(Some("m"), Some("x")), [""; 0]);
    }
}

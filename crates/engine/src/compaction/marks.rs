//! Marks tables that should be compacted although no level or run is too large.
//!
//! Computed from time to time by upkeep (`scheduler/upkeep.rs`), because age and released snapshots announce
//! themselves to nobody. A mark may be out of date: pickers look the table up in the version they pick from.
//! Source: RocksDB `db/version_set.cc`, `ComputeExpiredTtlFiles`, `ComputeFilesMarkedForPeriodicCompaction`,
//! `ComputeBottommostFilesMarkedForCompaction`.

use super::level_shape::usable_levels;
use super::stamps::StampRules;
use outcrop_base::keys::user_key;
use outcrop_base::{Comparator, SeqNum};
use outcrop_manifest::{FileNumber, TableFile, Version};
use outcrop_options::{ColumnFamilyOptions, derive, styles};
use std::collections::BTreeSet;

/// The tables of one version that want to be compacted, by the reason why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Their data has reached `ttl`.
    pub expired: BTreeSet<FileNumber>,
    /// They were written `periodic_compaction_seconds` ago.
    pub periodic: BTreeSet<FileNumber>,
    /// On the last level of their key range, with garbage that no snapshot keeps any more.
    pub bottommost: BTreeSet<FileNumber>,
    /// A table collector or a caller asked.
    pub requested: BTreeSet<FileNumber>,
    /// They keep the oldest blob files, of which `blob_garbage_collection_force_threshold` or more is garbage.
    pub blob_garbage: BTreeSet<FileNumber>,
}

/// The facts besides the tables and the options that decide the marks.
pub struct MarkContext<'a> {
    /// Key order.
    pub comparator: &'a Comparator,
    /// Seconds since the epoch.
    pub now: u64,
    /// Periodic compactions are done so many seconds before they are due.
    pub offpeak_seconds: u64,
    /// A compaction filter is set.
    pub has_filter: bool,
    /// Every snapshot sees what is at or below this.
    pub oldest_snapshot: SeqNum,
    /// The rules of keys with timestamps, if it has such.
    pub stamps: Option<&'a StampRules>,
    /// Tables named by `suggest_compact_range`.
    pub suggested: &'a BTreeSet<FileNumber>,
    /// Tables that were written while a snapshot kept garbage in them.
    pub held_back: &'a BTreeSet<FileNumber>,
}

impl Marks {
    /// The marks of `version`.
    pub fn of(version: &Version, options: &ColumnFamilyOptions, context: &MarkContext<'_>) -> Marks {
        let mut marks = Marks::default();
        let ttl = derive::ttl(options);
        let period = derive::periodic_compaction_seconds(options, context.has_filter);
        let leveled = styles::of(options).sized_levels;
        let deepest = version.levels.iter().rposition(|level| !level.files.is_empty()).unwrap_or(0);
        let reached = |time: u64, age: u64| age > 0 && time > 0 && time.saturating_add(age) <= context.now;
        for (level, file) in version.files() {
            // Tables on the last level have no level to move on to. FIFO deletes what was written long ago: of data
            // that was merged, only the table's own time is sure not to be older than the newest of it.
            let since = if leveled { file.oldest_ancestor_time } else { file.creation_time };
            if reached(since, ttl) && (!leveled || level < deepest.max(1)) {
                marks.expired.insert(file.number);
            }
            if reached(file.creation_time, period.saturating_sub(context.offpeak_seconds).max(period.min(1)))
            {
                marks.periodic.insert(file.number);
            }
            if wants_compaction(file, level, deepest) || context.suggested.contains(&file.number) {
                marks.requested.insert(file.number);
            }
            let rested = u64::from(options.bottommost_file_compaction_delay);
            if leveled
                && level > 0
                && !options.allow_ingest_behind
                && file.largest_seq != SeqNum::ZERO
                && file.largest_seq <= context.oldest_snapshot
                && file.creation_time.saturating_add(rested) <= context.now
                && (context.held_back.contains(&file.number) || has_deletions(file))
                && context.stamps.is_none_or(|stamps| is_history(file, stamps))
                && nothing_below(version, options, context.comparator, level, file)
            {
                marks.bottommost.insert(file.number);
            }
        }
        marks
    }
}

/// True if the table on `level` asked to be compacted, and has somewhere to go: tables on the `deepest` level that has tables would only
/// be written again, and ask again.
///
/// Source: RocksDB `VersionStorageInfo::ComputeFilesMarkedForCompaction`.
pub fn wants_compaction(file: &TableFile, level: usize, deepest: usize) -> bool {
    file.marked_for_compaction && (level == 0 || level < deepest)
}

/// The tables that refer to the oldest blob files, if these hold so much garbage that it is worth moving the rest out.
///
/// Blob files are kept by the tables whose oldest reference they are: the oldest one and those after it, up to the next
/// that is some table's oldest, go together. All of them must be within the age cutoff, so that one compaction frees
/// them. Only for leveled compaction, as in RocksDB.
/// Source: RocksDB `db/version_set.cc`, `ComputeFilesMarkedForForcedBlobGC`.
pub fn blob_garbage(version: &Version, options: &ColumnFamilyOptions) -> BTreeSet<FileNumber> {
    let threshold = options.blob_garbage_collection_force_threshold;
    let share = options.blob_garbage_collection_age_cutoff.clamp(0.0, 1.0);
    let eligible = (version.blob_files.len() as f64 * share) as usize;
    let wanted = options.enable_blob_garbage_collection && styles::of(options).sized_levels;
    let Some(oldest) = version.blob_files.keys().next().filter(|_| wanted && threshold < 1.0 && eligible > 0)
    else {
        return BTreeSet::new();
    };
    let starts_batch: BTreeSet<FileNumber> =
        version.files().filter_map(|(_, file)| file.oldest_blob_file).collect();
    let later = version.blob_files.keys().skip(1).take_while(|number| !starts_batch.contains(number));
    let batch = 1 + later.count();
    if batch > eligible {
        return BTreeSet::new();
    }
    let (mut total, mut garbage) = (0, 0);
    for state in version.blob_files.values().take(batch) {
        total += state.file.total_bytes;
        garbage += state.garbage.bytes;
    }
    if (garbage as f64) < threshold * total as f64 {
        return BTreeSet::new();
    }
    let refers = version.files().filter(|(_, file)| file.oldest_blob_file == Some(*oldest));
    refers.map(|(_, file)| file.number).collect()
}

/// True if the table is known to hold deletions: at the bottom, where they hide nothing, they are all garbage.
fn has_deletions(file: &TableFile) -> bool {
    file.runtime.table.get().is_some_and(|table| {
        let properties = table.properties();
        properties.num_deletions > 0 || properties.num_range_deletions > 0
    })
}

/// True if all of the table is known to be history. In others versions stay that a compaction would only write again, and again.
fn is_history(file: &TableFile, stamps: &StampRules) -> bool {
    file.runtime.table.get().is_some_and(|table| stamps.is_all_history(table.properties()))
}

fn nothing_below(
    version: &Version,
    options: &ColumnFamilyOptions,
    comparator: &Comparator,
    level: usize,
    file: &TableFile,
) -> bool {
    version.levels[level + 1..].iter().all(|below| {
        let first = below.files.partition_point(|f| f.ends_before(comparator, user_key(&file.smallest)));
        below.files.get(first).is_none_or(|f| f.starts_after(comparator, user_key(&file.largest)))
    }) && level < usable_levels(version, options)
}

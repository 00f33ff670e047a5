//! The shape that the levels should have, how far they are from it, and the bytes it takes to get there.
//!
//! Pure: computed from a `Version` and the options, by the picker, the stall rules and the properties.
//! Source: RocksDB `db/version_set.cc`, `CalculateBaseBytes`, `ComputeCompactionScore`,
//! `EstimateCompactionBytesNeeded`.

use outcrop_manifest::{FileNumber, Version};
use outcrop_options::{ColumnFamilyOptions, styles};
use std::collections::BTreeSet;

/// Target sizes of the levels of one version.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelShape {
    /// The level L0 is compacted into; 0 where there is none to fill, and tables are merged in L0.
    pub base_level: usize,
    /// Target size of each level in bytes; entry 0 is unused.
    pub max_bytes: Vec<u64>,
}

/// Levels that compaction fills: all, or all but the last if that one is kept for what is ingested behind.
pub fn usable_levels(version: &Version, options: &ColumnFamilyOptions) -> usize {
    (version.levels.len() - usize::from(options.allow_ingest_behind)).max(1)
}

impl LevelShape {
    /// The shape of `version` under `options`.
    pub fn of(version: &Version, options: &ColumnFamilyOptions) -> LevelShape {
        if styles::of(options).sized_levels && options.level_compaction_dynamic_level_bytes {
            LevelShape::dynamic(version, options)
        } else {
            LevelShape::fixed(usable_levels(version, options), options)
        }
    }

    /// L1 has the base size, each further level is larger by the multiplier.
    fn fixed(num_levels: usize, options: &ColumnFamilyOptions) -> LevelShape {
        let mut max_bytes = vec![u64::MAX; num_levels];
        let mut size = options.max_bytes_for_level_base as f64;
        for (level, bytes) in max_bytes.iter_mut().enumerate().skip(1) {
            *bytes = size as u64;
            size *= options.max_bytes_for_level_multiplier * options.additional_multiplier(level);
        }
        LevelShape { base_level: 1.min(num_levels - 1), max_bytes }
    }

    /// The last level has the size it has; each level above it is smaller by the multiplier, down to the
    /// first that is at most [`LARGEST_BASE`] times the base size. Levels above that stay empty.
    fn dynamic(version: &Version, options: &ColumnFamilyOptions) -> LevelShape {
        let num_levels = usable_levels(version, options);
        let mut max_bytes = vec![u64::MAX; num_levels];
        let last = num_levels - 1;
        let largest = version.levels[1..num_levels].iter().map(|level| level.size).max().unwrap_or(0);
        if largest == 0 {
            return LevelShape { base_level: last, max_bytes };
        }
        let multiplier = options.max_bytes_for_level_multiplier;
        let base_max = options.max_bytes_for_level_base;
        let base_min = (base_max as f64 / multiplier) as u64;
        let first = (1..num_levels).find(|&l| !version.levels[l].files.is_empty()).unwrap_or(last);
        let mut size = largest;
        for _ in first..last {
            size = (size as f64 / multiplier) as u64;
        }
        let mut base_level = first;
        let base_size = if size <= base_min {
            base_min.saturating_add(1)
        } else {
            while base_level > 1 && size > base_max.saturating_mul(LARGEST_BASE) {
                base_level -= 1;
                size = (size as f64 / multiplier) as u64;
            }
            if size > base_max.saturating_mul(LARGEST_BASE) { base_max } else { size.max(1) }
        };
        let mut level_size = base_size as f64;
        for bytes in max_bytes.iter_mut().skip(base_level) {
            *bytes = (level_size as u64).max(base_max);
            level_size *= multiplier;
        }
        LevelShape { base_level, max_bytes }
    }

    /// How urgently each level but the last wants a compaction: (score, level), most urgent first. At 1 and
    /// above it should run. Tables that are `busy` do not count.
    pub fn scores(
        &self,
        version: &Version,
        options: &ColumnFamilyOptions,
        busy: &BTreeSet<FileNumber>,
    ) -> Vec<(f64, usize)> {
        let mut scores = vec![(self.l0_score(version, options, busy), 0)];
        let mut moving_down = 0;
        for level in 1..self.max_bytes.len().saturating_sub(1) {
            let resting = bytes_not_compacting(version, level, busy);
            let target = self.max_bytes[level].max(1);
            let score = if resting < target || !options.level_compaction_dynamic_level_bytes {
                resting as f64 / target as f64
            } else {
                // Bytes that move down into the level will have to move on: levels that feed others go
                // first.
                resting as f64 / (target as f64 + moving_down as f64) * SCORE_SCALE
            };
            if resting > target {
                moving_down = resting.saturating_sub(target).saturating_add(moving_down);
            }
            scores.push((score, level));
        }
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        scores
    }

    fn l0_score(&self, version: &Version, options: &ColumnFamilyOptions, busy: &BTreeSet<FileNumber>) -> f64 {
        let idle = version.levels[0].files.iter().filter(|f| !busy.contains(&f.number));
        let (count, bytes) = idle.fold((0u64, 0u64), |(n, b), file| (n + 1, b + file.size));
        // Below 0: their number starts none.
        let trigger = match options.level0_file_num_compaction_trigger {
            0 => 1,
            trigger => trigger,
        };
        let mut score = count as f64 / f64::from(trigger);
        // Their bytes are as many in L0 after a compaction, if that is where they stay.
        if self.base_level > 0 {
            if options.level_compaction_dynamic_level_bytes {
                if bytes >= options.max_bytes_for_level_base {
                    score = score.max(1.01);
                }
                let base_target = self.max_bytes[self.base_level];
                let base_size = version.levels[self.base_level].size;
                if base_target != u64::MAX && bytes > base_size.max(options.max_bytes_for_level_base) {
                    let limit = base_size.max(options.max_bytes_for_level_base);
                    score = score.max(bytes as f64 / limit.max(1) as f64);
                }
                if score > 1.0 {
                    score *= SCORE_SCALE;
                }
            } else {
                score = score.max(bytes as f64 / options.max_bytes_for_level_base.max(1) as f64);
            }
        }
        score
    }

    /// Bytes that compactions must still write until every level is within its target.
    pub fn pending_bytes(&self, version: &Version, options: &ColumnFamilyOptions) -> u64 {
        let num_levels = self.max_bytes.len();
        let mut pending = 0u64;
        let mut incoming = 0u64;
        let l0 = &version.levels[0];
        // Below 0 their number starts none. RocksDB counts L0 then whatever it holds, and writes may stop for ever.
        let trigger = options.level0_file_num_compaction_trigger;
        let l0_due = trigger >= 0 && l0.files.len() as i64 >= i64::from(trigger)
            || l0.size >= options.max_bytes_for_level_base;
        if l0_due && num_levels > 1 {
            incoming = l0.size;
            pending += l0.size + version.levels[self.base_level].size;
        }
        for level in self.base_level..num_levels.saturating_sub(1) {
            let size = version.levels[level].size.saturating_add(incoming);
            incoming = 0;
            let target = self.max_bytes[level];
            if size > target {
                let excess = size - target;
                let next = version.levels[level + 1].size;
                let fan_out = if size == 0 { 0.0 } else { next as f64 / size as f64 };
                pending = pending.saturating_add((excess as f64 * (fan_out + 1.0)) as u64);
                incoming = excess;
            }
        }
        pending
    }
}

/// How much larger than `max_bytes_for_level_base` the base level may be where the last level decides sizes.
///
/// RocksDB's answer is 1: L0 then goes through a level of the base size even if the next is hardly larger. Say L0 brings
/// b bytes at a time, which is the base size, and the next level has k * b. Through a level of size b that costs 2 b, and
/// b + k b / 2 to move on; straight into the next (1 + k) b. Up to k = 4 the latter is less, and there is one level less
/// to read; compactions of L0 are larger, which speaks for somewhat less than 4.
const LARGEST_BASE: u64 = 3;

/// Scores above 1 are scaled, so that every level that is due goes before levels that only feed it.
const SCORE_SCALE: f64 = 10.0;

fn bytes_not_compacting(version: &Version, level: usize, busy: &BTreeSet<FileNumber>) -> u64 {
    let files = version.levels[level].files.iter();
    files.filter(|file| !busy.contains(&file.number)).map(|file| file.size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_manifest::{FileNumber, TableFile};
    use outcrop_options::kept::CF_KEPT;

    #[test]
    fn additional_multipliers_count_from_the_level_above() {
        let mut options = ColumnFamilyOptions {
            level_compaction_dynamic_level_bytes: false,
            max_bytes_for_level_base: 100,
            max_bytes_for_level_multiplier: 10.0,
            ..ColumnFamilyOptions::default()
        };
        let sizes = |options: &ColumnFamilyOptions| LevelShape::fixed(5, options).max_bytes[1..].to_vec();
        assert_eq!(sizes(&options), [100, 1000, 10_000, 100_000]);
        let name = "max_bytes_for_level_multiplier_additional";
        options.kept.set(CF_KEPT, name, "7:2:3").unwrap();
        assert_eq!(sizes(&options), [100, 2000, 60_000, 600_000]);
    }

    #[test]
    fn l0_is_pending_if_a_compaction_of_it_is_due() {
        let mut version = Version::empty(4);
        let tables = (1..=3).map(|number| {
            let file = TableFile::new(FileNumber(number), 100, Vec::new(), Vec::new());
            std::sync::Arc::new(file)
        });
        version.levels[0].files = tables.collect();
        version.levels[0].size = 300;
        let pending = |trigger: i32, base: u64| {
            let options = ColumnFamilyOptions {
                level0_file_num_compaction_trigger: trigger,
                level_compaction_dynamic_level_bytes: false,
                max_bytes_for_level_base: base,
                ..ColumnFamilyOptions::default()
            };
            LevelShape::fixed(4, &options).pending_bytes(&version, &options)
        };
        assert_eq!((pending(4, 1000), pending(3, 1000), pending(0, 1000)), (0, 300, 300));
        assert_eq!(pending(-1, 1000), 0, "their number starts none");
        assert_eq!(pending(-1, 300), 300, "their size does");
    }
}

//! Facts about compaction styles that options and files need, one row for each style. The choice of tables to compact is
//! the engine's.

use crate::{ColumnFamilyOptions, CompactionStyle};

const THIRTY_DAYS: u64 = 30 * 24 * 60 * 60;

/// The row of one style.
#[derive(Clone, Copy, Debug)]
pub struct StyleFacts {
    /// The fewest levels it works with.
    pub least_levels: i32,
    /// The same where data may be ingested behind all other.
    pub least_levels_ingest_behind: i32,
    /// Levels have target sizes, and data moves down through them: where it is says how old it is.
    pub sized_levels: bool,
    /// Ingested tables go as deep as nothing of their range is. False where only L0 is in the order of age.
    pub ingests_below_l0: bool,
    /// Age at which data moves on or is deleted where `ttl` leaves it to the style, in seconds; `None`: `ttl` does not do that here.
    pub default_ttl: Option<u64>,
    /// The same for `periodic_compaction_seconds`: without a compaction filter, and with one.
    pub default_period: Option<[u64; 2]>,
    /// `ttl` and `periodic_compaction_seconds` mean the same; the stricter holds.
    pub ttl_is_period: bool,
    /// The rule by which outputs go to one of `cf_paths`.
    pub placing: Placing,
}

/// The rule by which the outputs of a compaction go to one of `cf_paths`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// The target sizes of the levels.
    ByLevel,
    /// The size of the run.
    ByRun,
    /// The first path has all.
    First,
}

const LEVEL: StyleFacts = StyleFacts {
    least_levels: 2,
    least_levels_ingest_behind: 2,
    sized_levels: true,
    ingests_below_l0: true,
    default_ttl: Some(THIRTY_DAYS),
    default_period: Some([0, THIRTY_DAYS]),
    ttl_is_period: false,
    placing: Placing::ByLevel,
};

const UNIVERSAL: StyleFacts = StyleFacts {
    least_levels: 1,
    least_levels_ingest_behind: 3,
    sized_levels: false,
    ingests_below_l0: true,
    default_ttl: None,
    default_period: Some([THIRTY_DAYS; 2]),
    ttl_is_period: true,
    placing: Placing::ByRun,
};

const FIFO: StyleFacts = StyleFacts {
    least_levels: 1,
    least_levels_ingest_behind: 1,
    sized_levels: false,
    ingests_below_l0: false,
    default_ttl: Some(THIRTY_DAYS),
    default_period: None,
    ttl_is_period: false,
    placing: Placing::First,
};

const NONE: StyleFacts = StyleFacts { ingests_below_l0: true, default_ttl: None, ..FIFO };

/// The row of the style that `options` ask for.
pub fn of(options: &ColumnFamilyOptions) -> &'static StyleFacts {
    match options.compaction_style {
        CompactionStyle::Level => &LEVEL,
        CompactionStyle::Universal => &UNIVERSAL,
        CompactionStyle::Fifo => &FIFO,
        CompactionStyle::None => &NONE,
    }
}

/// Of two ages, of which 0 is none, the one that is reached first.
pub fn stricter(left: u64, right: u64) -> u64 {
    if left == 0 || right == 0 { left.max(right) } else { left.min(right) }
}

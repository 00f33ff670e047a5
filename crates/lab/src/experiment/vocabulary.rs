//! The vocabulary of steps: one row of [`STEPS`] for each.
//!
//! Source: RocksDB `tools/benchmark.sh`, and the scripts of the published reports.
//! Next: `steps.rs` for what an experiment makes of a row.

use outcrop_lab_load::StepKind;

/// One step of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub struct StepRow {
    /// Name in experiments.
    pub name: &'static str,
    /// Its load.
    pub kind: StepKind,
    /// A rate-limited writer runs beside it.
    pub while_writing: bool,
    /// That writer merges instead of putting.
    pub writer_merges: bool,
    /// In reports unless the experiment says otherwise.
    pub report: bool,
    /// Writes without the WAL.
    pub no_wal: bool,
    /// Syncs every write.
    pub sync: bool,
    /// A vector memtable, where the library has one.
    pub vector: bool,
    /// Its own settings in place of the workload's threads, seconds and keys.
    pub own: Own,
    /// Options the engine gets for this step alone.
    pub options: &'static str,
    /// A description for people.
    pub meaning: &'static str,
}

/// The settings of a step of its own.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Threads.
    pub threads: Option<u32>,
    /// Seconds.
    pub seconds: Option<f64>,
    /// Keys it chooses from.
    pub num: Option<u64>,
}

const fn row(name: &'static str, kind: StepKind, report: bool, meaning: &'static str) -> StepRow {
    let (while_writing, writer_merges, no_wal, sync, vector) = (false, false, false, false, false);
    let own = Own { threads: None, seconds: None, num: None };
    StepRow {
        name,
        kind,
        while_writing,
        writer_merges,
        report,
        no_wal,
        sync,
        vector,
        own,
        options: "",
        meaning,
    }
}

/// A step in key order, for which a vector memtable is best.
const fn ascending(name: &'static str, meaning: &'static str) -> StepRow {
    StepRow { vector: true, ..row(name, StepKind::FillSeq, true, meaning) }
}

/// No compaction starts of itself.
const NO_COMPACTION: &str = "disable_auto_compactions=true";

/// As [`NO_COMPACTION`], and L0 may grow without bound.
const ENDLESS_L0: &str = "disable_auto_compactions=true;level0_file_num_compaction_trigger=10485760;\
                          level0_slowdown_writes_trigger=10485760;level0_stop_writes_trigger=10485760";

/// Filters of the last level are not used: every key that is asked for is there.
const NO_LAST_FILTER: &str = "optimize_filters_for_hits=true";

const fn beside_writer(name: &'static str, kind: StepKind, meaning: &'static str) -> StepRow {
    StepRow { while_writing: true, ..row(name, kind, true, meaning) }
}

const fn beside_merger(name: &'static str, kind: StepKind, meaning: &'static str) -> StepRow {
    StepRow { writer_merges: true, ..beside_writer(name, kind, meaning) }
}

/// All steps.
pub const STEPS: &[StepRow] = &[
    StepRow { no_wal: true, ..ascending("fillseq", "load in key order, no WAL") },
    ascending("fillseq_wal", "load in key order, with WAL"),
    StepRow {
        no_wal: true,
        vector: true,
        options: ENDLESS_L0,
        ..row(
            "bulkload",
            StepKind::FillRandom,
            true,
            "load random keys without WAL and compaction; compact follows",
        )
    },
    row("fillrandom", StepKind::FillRandom, true, "load random keys: 63.2 % of them get written"),
    row("filluniquerandom", StepKind::FillUniqueRandom, true, "load every key once, in random order"),
    row("warm", StepKind::ReadSeq, false, "read everything once, to fill caches"),
    row("readseq", StepKind::ReadSeq, true, "read everything once, in key order"),
    row("readrandom", StepKind::ReadRandom, true, "point lookups of random keys"),
    row("readrandom2", StepKind::ReadRandom, true, "readrandom on another shape of the tree"),
    StepRow {
        options: NO_LAST_FILTER,
        ..row("readrandom3", StepKind::ReadRandom, true, "readrandom without the last level's filters")
    },
    row("multireadrandom", StepKind::MultiRead, true, "lookups of ten random keys in one call"),
    StepRow {
        options: NO_LAST_FILTER,
        ..row("multireadrandom3", StepKind::MultiRead, true, "the same without the last level's filters")
    },
    row("readmissing", StepKind::ReadMissing, true, "point lookups of keys that are not there"),
    row("fwdrange", StepKind::Range { reverse: false }, true, "seek to a random key, move forward"),
    row("revrange", StepKind::Range { reverse: true }, true, "seek to a random key, move backward"),
    StepRow {
        own: Own { threads: Some(1), seconds: Some(300.0), num: Some(100) },
        ..row(
            "drain",
            StepKind::Range { reverse: true },
            false,
            "range queries on 100 keys while debt drains",
        )
    },
    row("overwritesome", StepKind::Overwrite, false, "overwrite a tenth of the keys"),
    row(
        "flush_mt_l0",
        StepKind::Settle,
        false,
        "flush, compact L0 into the level below, wait: a known shape",
    ),
    row(
        "flush_mt_wait",
        StepKind::FlushAndWait,
        false,
        "flush, wait: a known shape for universal compaction",
    ),
    row("flush_mt_nowait", StepKind::FlushAndPause, false, "flush, ten seconds: where waiting may never end"),
    row("flush", StepKind::Flush, false, "flush memtables"),
    row("compact", StepKind::Compact, false, "compact everything"),
    row("compact0", StepKind::Compact0, false, "compact L0 into the next level that has tables"),
    row(
        "compact1",
        StepKind::Compact1,
        false,
        "compact the first level below L0 into the next that has tables",
    ),
    StepRow {
        options: NO_COMPACTION,
        ..row(
            "compact_levels",
            StepKind::CompactLevels,
            false,
            "compact L0, the first level, everything, in turn",
        )
    },
    row("waitforcompaction", StepKind::FlushAndWait, false, "flush, wait until no compaction is due"),
    beside_writer("revrangewhilewriting", StepKind::Range { reverse: true }, "revrange beside a writer"),
    beside_writer("fwdrangewhilewriting", StepKind::Range { reverse: false }, "fwdrange beside a writer"),
    beside_writer("readwhilewriting", StepKind::ReadRandom, "readrandom beside a writer"),
    row("readwhilescanning", StepKind::ReadWhileScanning, true, "readrandom beside a scan of everything"),
    row("overwrite", StepKind::Overwrite, true, "overwrite random keys; leaves compaction debt"),
    row("overwriteandwait", StepKind::OverwriteAndWait, true, "overwrite, then wait for compaction"),
    StepRow {
        sync: true,
        ..row("overwritesync", StepKind::Overwrite, true, "overwrite, every write synced")
    },
    row("mixgraph", StepKind::MixGraph, true, "gets, puts and scans of hot and cold keys"),
    StepRow {
        own: Own { threads: Some(5), seconds: None, num: None },
        ..row(
            "randomtransaction",
            StepKind::RandomTransaction,
            true,
            "counters incremented under transactions",
        )
    },
    row(
        "overwritelocked",
        StepKind::OverwriteLocked,
        true,
        "overwrite random keys of a TransactionDB, which locks each",
    ),
    row("updaterandom", StepKind::Update, true, "look up a random key, then write it"),
    row("appendrandom", StepKind::Append, true, "look up a random key, then write it longer"),
    row("mergerandom", StepKind::Merge, true, "add an operand to a random key"),
    row(
        "readrandommergerandom",
        StepKind::ReadOrMerge,
        true,
        "add an operand to a random key, or look it up",
    ),
    beside_merger(
        "revrangewhilemerging",
        StepKind::Range { reverse: true },
        "revrange beside a merging writer",
    ),
    beside_merger(
        "fwdrangewhilemerging",
        StepKind::Range { reverse: false },
        "fwdrange beside a merging writer",
    ),
    beside_merger("readwhilemerging", StepKind::ReadRandom, "readrandom beside a merging writer"),
    row("deleterandom", StepKind::Delete, true, "delete random keys"),
];

/// The sequence of an experiment that names no steps.
pub const STANDARD: &[&str] = &[
    "fillseq",
    "warm",
    "readrandom",
    "fwdrange",
    "revrange",
    "overwritesome",
    "flush_mt_l0",
    "revrangewhilewriting",
    "fwdrangewhilewriting",
    "readwhilewriting",
    "overwriteandwait",
];

/// The row of a name.
pub fn find(name: &str) -> Option<&'static StepRow> {
    STEPS.iter().find(|row| row.name == name)
}

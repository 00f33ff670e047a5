//! A history as a seed draws it, within limits by which a failing one is made smaller.

use crate::disk::Trouble;
use crate::harness::{Rng, any_style, creating, small_options};
use outcrop::options::{ColumnFamilyOptions, CompactionStyle, DbOptions};
use outcrop::{CompressionType, ValidatePolicy};
use outcrop_pingpong::history::{FAMILIES, Lasting, Shape};
use std::time::Duration;

/// Features that a limit takes away, by name. The second half is drawn: no history has all of it.
pub const FEATURES: [&str; 16] = [
    "faults",
    "flips",
    "crashes",
    "reads",
    "work",
    "pauses",
    "clock",
    "options",
    "merges",
    "transactions",
    "shared",
    "checkpoints",
    "backups",
    "families",
    "ingestion",
    "listener",
];

/// A planted mistake, which has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Syncs of WALs do nothing.
    Syncs,
    /// Transactions neither lock nor check the keys that several threads write.
    Locks,
}

impl Plant {
    /// The one of this name.
    pub fn of(name: &str) -> Option<Plant> {
        [Plant::Syncs, Plant::Locks].into_iter().find(|plant| plant.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Plant::Syncs => "syncs",
            Plant::Locks => "locks",
        }
    }
}

/// Bounds of a history. Those of a whole one take nothing away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Decides everything but the order of threads.
    pub seed: u64,
    /// Decides the order of threads, times and faults.
    pub schedule: u64,
    /// Openings and their ends, at most.
    pub cycles: u64,
    /// Threads of the application, at most.
    pub threads: usize,
    /// Writes of each thread in a cycle, at most.
    pub writes: u64,
    /// What of [`FEATURES`] is left out.
    pub without: Vec<String>,
    /// A mistake that is made on purpose.
    pub plant: Option<Plant>,
}

impl Limits {
    /// A whole history.
    pub fn of(seed: u64) -> Limits {
        Limits {
            seed,
            schedule: seed,
            cycles: u64::MAX,
            threads: usize::MAX,
            writes: u64::MAX,
            without: Vec::new(),
            plant: None,
        }
    }

    /// True if the feature is there.
    pub fn has(&self, feature: &str) -> bool {
        debug_assert!(FEATURES.contains(&feature));
        !self.without.iter().any(|without| without == feature)
    }

    /// As options of the command line.
    pub fn arguments(&self) -> Vec<String> {
        let whole = Limits::of(self.seed);
        let mut arguments = vec!["--seed".to_string(), self.seed.to_string()];
        let mut add = |name: &str, value: String| arguments.extend([name.to_string(), value]);
        if self.schedule != whole.schedule {
            add("--schedule", self.schedule.to_string());
        }
        if self.cycles != whole.cycles {
            add("--cycles", self.cycles.to_string());
        }
        if self.threads != whole.threads {
            add("--threads", self.threads.to_string());
        }
        if self.writes != whole.writes {
            add("--writes", self.writes.to_string());
        }
        if !self.without.is_empty() {
            add("--without", self.without.join(","));
        }
        if let Some(plant) = self.plant {
            add("--plant", plant.name().to_string());
        }
        arguments
    }
}

/// How a cycle ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The database is closed.
    Closed,
    /// The process dies: nothing that was handed to the system is lost.
    Killed,
    /// The power goes: of what was not synced a part is there.
    PowerLost,
}

/// How a history's database has transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transactions {
    /// It has none.
    None,
    /// They lock keys.
    Locking,
    /// They are checked when they are committed.
    Optimistic(ValidatePolicy),
}

/// The part of [`FEATURES`] that a history draws, the same for all of its cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Writes have merge operands.
    pub merges: bool,
    /// Its transactions.
    pub transactions: Transactions,
    /// Transactions write keys that all threads write.
    pub shared: bool,
    /// Checkpoints are made and opened.
    pub checkpoints: bool,
    /// Backups are made, restored and opened.
    pub backups: bool,
    /// Column families are created and dropped.
    pub families: bool,
    /// Some writes are tables that are ingested.
    pub ingestion: bool,
    /// The database has a listener.
    pub listener: bool,
}

/// The features that a history draws, of those that its limits leave.
pub fn drawn(limits: &Limits) -> Drawn {
    let mut random = Rng::new(limits.seed ^ 0xFEA7);
    let mut drawn = |feature: &str, one_in: u64| random.one_in(one_in) && limits.has(feature);
    let (merges, shared, checkpoints) = (drawn("merges", 2), !drawn("shared", 4), drawn("checkpoints", 2));
    let (backups, families, ingestion) = (drawn("backups", 4), drawn("families", 2), drawn("ingestion", 3));
    let transactions = random.pick(&[
        Transactions::None,
        Transactions::Locking,
        Transactions::Locking,
        Transactions::Optimistic(ValidatePolicy::Serial),
        Transactions::Optimistic(ValidatePolicy::Parallel),
    ]);
    let transactions = if limits.has("transactions") { transactions } else { Transactions::None };
    let listener = random.one_in(2) && limits.has("listener");
    Drawn {
        merges,
        transactions,
        shared: shared && limits.has("shared") && transactions != Transactions::None,
        checkpoints,
        backups,
        families,
        ingestion,
        listener,
    }
}

/// A cycle.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// The features of its history.
    pub drawn: Drawn,
    /// Options of the database.
    pub db: DbOptions,
    /// Options of each column family.
    pub families: Vec<ColumnFamilyOptions>,
    /// Threads of the application.
    pub threads: usize,
    /// Writes of each.
    pub writes: u64,
    /// The writes.
    pub shape: Shape,
    /// How it ends.
    pub end: End,
    /// Steps after which the end comes, if threads are not done before; none: it waits for them.
    pub ends_after: Option<u64>,
    /// Draws the part that a loss of power leaves.
    pub torn: u64,
    /// What the disk does meanwhile.
    pub trouble: Trouble,
}

impl Cycle {
    /// The writes that are there afterwards, if it ended without an error.
    pub fn lasting(&self) -> Lasting {
        match self.end {
            End::PowerLost => Lasting::Synced,
            End::Killed if self.db.manual_wal_flush => Lasting::Synced,
            End::Killed | End::Closed => Lasting::Acknowledged,
        }
    }

    /// The writes that are there after closing has failed. Other WALs have all that was acknowledged; those that are flushed by hand buffer
    /// it, and what they buffer is lost if they fail, as is the database's memory then.
    pub fn lasting_after_failed_close(&self) -> Lasting {
        if self.db.manual_wal_flush { Lasting::Synced } else { self.lasting() }
    }
}

/// Cycles of a history.
pub fn cycles(limits: &Limits) -> u64 {
    Rng::new(limits.seed ^ 0xC1C1).pick(&[1, 2, 4, 8]).min(limits.cycles)
}

/// One step of threads in so many is a change of threads.
pub fn switch_one_in(limits: &Limits) -> u64 {
    Rng::new(limits.seed ^ 0x5EED).pick(&[1, 3, 10, 40])
}

/// The cycle of a history with this number.
pub fn cycle(limits: &Limits, number: u64) -> Cycle {
    // The same in all cycles: what a database cannot change, or a filter would not find again.
    let mut random = Rng::new(limits.seed);
    let mut families: Vec<ColumnFamilyOptions> =
        FAMILIES.iter().map(|_| small_options(&mut random)).collect();
    if !limits.has("options") {
        let plain = ColumnFamilyOptions {
            write_buffer_size: crate::harness::LEAST_MEMTABLE,
            ..ColumnFamilyOptions::default()
        };
        families = vec![plain; FAMILIES.len()];
    }
    let mut random = Rng::new(limits.seed.wrapping_mul(31).wrapping_add(number + 1));
    for options in &mut families {
        options.compaction_style = any_style(&mut random);
        options.disable_auto_compactions = random.one_in(6);
    }
    let fifo = families.iter().any(|options| options.compaction_style == CompactionStyle::Fifo);
    let mut db = DbOptions {
        max_background_jobs: random.pick(&[1, 2, 4, 8]),
        max_subcompactions: random.pick(&[1, 3]),
        recycle_log_file_num: random.pick(&[0, 0, 2]),
        wal_compression: random.pick(&[CompressionType::None, CompressionType::None, CompressionType::Zstd]),
        max_manifest_file_size: random.pick(&[1 << 30, 500]),
        max_total_wal_size: random.pick(&[0, 0, 100_000]),
        max_open_files: if fifo { -1 } else { random.pick(&[-1, 20]) },
        manual_wal_flush: random.one_in(5),
        atomic_flush: random.one_in(4),
        track_and_verify_wals_in_manifest: random.one_in(3),
        ..creating()
    };
    if !limits.has("options") {
        db = creating();
    }
    let drawn = drawn(limits);
    let end = random.pick(&[End::Closed, End::Killed, End::PowerLost, End::PowerLost]);
    let early = random.one_in(2).then(|| 1 << random.pick(&[6, 9, 12, 14, 16]));
    let rate = random.pick(&[20, 100, 500, 3000]);
    let troubled = |on: bool| if on { rate } else { 0 };
    let shape = Shape {
        cycle: number,
        seed: random.next(),
        sync_one_in: random.pick(&[0, 1, 4, 20]),
        keys: random.pick(&[3, 20, 60]),
        longest: random.pick(&[40, 1000, 8000]),
        merge_one_in: if drawn.merges { 3 } else { 0 },
    };
    let (faults, read_faults, flips) = (random.one_in(3), random.one_in(6), random.one_in(6));
    let slowest = Duration::from_micros(random.pick(&[20, 500, 20_000, 800_000]));
    let threads = random.pick(&[1usize, 1, 2, 3, 5, 8]);
    let writes = random.pick(&[5, 30, 100, 200]);
    let torn = random.next();
    let crashes = limits.has("crashes");
    let end = if crashes { end } else { End::Closed };
    Cycle {
        drawn,
        db,
        families,
        threads: threads.min(limits.threads),
        writes: writes.min(limits.writes),
        shape,
        end,
        ends_after: early.filter(|_| end != End::Closed).map(|steps| steps + torn % steps),
        torn,
        trouble: Trouble {
            change_fails_one_in: troubled(faults && limits.has("faults")),
            read_fails_one_in: troubled(read_faults && limits.has("faults")),
            bit_flips_one_in: troubled(flips && limits.has("flips")),
            power_until: None,
            syncs_lie: limits.plant == Some(Plant::Syncs),
            slowest: if limits.has("pauses") { slowest } else { Duration::from_micros(1) },
        },
    }
}

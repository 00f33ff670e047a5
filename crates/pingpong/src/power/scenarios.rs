//! The histories that lose power: what each does beside writing, and under which options.

use crate::history::Shape;
use outcrop_base::random::SplitMix as Random;
use serde::{Deserialize, Serialize};

/// How writes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// By batches.
    Batches,
    /// Some as a table that is ingested.
    Ingested,
    /// By transactions, prepared and committed.
    TwoPhases,
}

/// The upkeep that the first thread does after each of its pieces of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upkeep {
    /// Nothing.
    None,
    /// Flushes all column families.
    Flush,
    /// Compacts one column family.
    Compact,
    /// Makes a checkpoint.
    Checkpoint,
    /// Makes a backup, and keeps two.
    Backup,
    /// Creates a column family, and drops the one before.
    Families,
    /// Changes options.
    Options,
    /// Makes the WAL durable.
    SyncWal,
}

/// A base history.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Options of the database and each column family, beside those of all.
    pub settings: &'static [&'static str],
    /// How writes are made.
    pub made: Made,
    /// The upkeep beside the writes.
    pub upkeep: Upkeep,
    /// Threads that write.
    pub threads: usize,
    /// Bytes of the longest values.
    pub longest: u64,
}

const fn plain(name: &'static str, settings: &'static [&'static str]) -> Scenario {
    Scenario { name, settings, made: Made::Batches, upkeep: Upkeep::None, threads: 2, longest: 2000 }
}

const fn with(name: &'static str, settings: &'static [&'static str], upkeep: Upkeep) -> Scenario {
    Scenario { upkeep, ..plain(name, settings) }
}

/// Options of every scenario: small memtables and files, so that a short history reaches the levels.
pub const ALL: [&str; 4] = [
    "write_buffer_size=65536",
    "level0_file_num_compaction_trigger=3",
    "max_bytes_for_level_base=262144",
    "target_file_size_base=65536",
];

/// With it no gap is left among unsynced writes either.
pub const NO_GAP: &str = "track_and_verify_wals=true";

/// All base histories.
pub const SCENARIOS: [Scenario; 46] = [
    plain("plain", &[]),
    Scenario { threads: 16, ..plain("many writers", &[]) },
    Scenario { threads: 8, ..plain("pipelined writes", &["enable_pipelined_write=true"]) },
    Scenario { threads: 8, ..plain("one memtable at a time", &["allow_concurrent_memtable_write=false"]) },
    Scenario { longest: 40_000, ..plain("large values", &[]) },
    Scenario { longest: 60, threads: 8, ..plain("small values", &["write_buffer_size=16384"]) },
    plain("recycled WALs", &["recycle_log_file_num=2"]),
    Scenario { threads: 8, ..plain("recycled WALs, many writers", &["recycle_log_file_num=4"]) },
    with("recycled WALs, flushes", &["recycle_log_file_num=1"], Upkeep::Flush),
    plain("compressed WALs", &["wal_compression=kZSTD"]),
    with("WALs flushed by hand", &["manual_wal_flush=true"], Upkeep::SyncWal),
    plain("a limit of WALs", &["max_total_wal_size=100000"]),
    plain("WALs written back early", &["wal_bytes_per_sync=4096"]),
    plain("tables written back early", &["bytes_per_sync=8192", "strict_bytes_per_sync=true"]),
    with("WALs kept", &["WAL_ttl_seconds=3600"], Upkeep::Flush),
    plain("WALs in the MANIFEST", &["track_and_verify_wals_in_manifest=true"]),
    plain("WALs that name each other", &[NO_GAP]),
    with("WALs that name each other, flushes", &[NO_GAP], Upkeep::Flush),
    plain("atomic flush", &["atomic_flush=true"]),
    with("atomic flush by hand", &["atomic_flush=true"], Upkeep::Flush),
    with("flushes", &[], Upkeep::Flush),
    with("compactions", &[], Upkeep::Compact),
    with("compactions of fixed levels", &["level_compaction_dynamic_level_bytes=false"], Upkeep::Compact),
    plain("subcompactions", &["max_subcompactions=4", "max_background_jobs=4"]),
    plain("universal", &["compaction_style=kCompactionStyleUniversal"]),
    with("universal, by hand", &["compaction_style=kCompactionStyleUniversal"], Upkeep::Compact),
    plain("compaction by round robin", &["compaction_pri=kRoundRobin"]),
    plain("blob files", &["enable_blob_files=true", "min_blob_size=200"]),
    with(
        "collected blob files",
        &[
            "enable_blob_files=true",
            "min_blob_size=100",
            "enable_blob_garbage_collection=true",
            "blob_garbage_collection_age_cutoff=1.0",
            "blob_garbage_collection_force_threshold=0.1",
        ],
        Upkeep::Compact,
    ),
    with("blob files, checkpoints", &["enable_blob_files=true", "min_blob_size=200"], Upkeep::Checkpoint),
    with("short MANIFESTs", &["max_manifest_file_size=1000"], Upkeep::Flush),
    plain("files not preallocated", &["allow_fallocate=false"]),
    plain("mapped reads", &["allow_mmap_reads=true"]),
    plain("direct writes", &["use_direct_io_for_flush_and_compaction=true", "use_direct_reads=true"]),
    plain("fsync in place of fdatasync", &["use_fsync=true"]),
    Scenario { made: Made::Ingested, ..plain("ingestion", &[]) },
    Scenario { made: Made::Ingested, ..with("ingestion, compactions", &[], Upkeep::Compact) },
    Scenario { made: Made::Ingested, ..plain("ingestion, recycled WALs", &["recycle_log_file_num=2"]) },
    Scenario { made: Made::TwoPhases, ..plain("two phases", &[]) },
    Scenario { made: Made::TwoPhases, threads: 8, ..with("two phases, flushes", &[], Upkeep::Flush) },
    Scenario { made: Made::TwoPhases, ..plain("two phases, recycled WALs", &["recycle_log_file_num=2"]) },
    with("checkpoints", &[], Upkeep::Checkpoint),
    with("backups", &[], Upkeep::Backup),
    with("backups, blob files", &["enable_blob_files=true", "min_blob_size=200"], Upkeep::Backup),
    with("column families come and go", &[], Upkeep::Families),
    with("options change", &[], Upkeep::Options),
];

/// One history, as its writer is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// How writes are made.
    pub made: Made,
    /// The upkeep beside the writes.
    pub upkeep: Upkeep,
    /// Threads that write.
    pub threads: usize,
    /// The writes.
    pub shape: Shape,
    /// Writes of each thread.
    pub writes: u64,
    /// Writes of the first thread from one piece of upkeep to the next.
    pub upkeep_every: u64,
    /// Options of the database and each column family.
    pub options: Vec<String>,
    /// The database is closed at the end.
    pub closes: bool,
    /// Everything is written back at times, as the system does after seconds.
    pub written_back: bool,
}

impl Scenario {
    /// The history of this scenario with these numbers.
    pub fn plan(&self, seed: u64, cycle: u64) -> Plan {
        let mut random = Random::new(seed.wrapping_mul(64).wrapping_add(cycle));
        let writes = random.pick(&[40, 120, 300]).max(80) / self.threads as u64 + 12;
        Plan {
            made: self.made,
            upkeep: self.upkeep,
            threads: self.threads,
            shape: Shape {
                cycle,
                seed: random.next(),
                sync_one_in: random.pick(&[0, 1, 4, 10, 30]),
                keys: random.pick(&[5, 20, 60]),
                longest: self.longest,
                merge_one_in: 0,
            },
            writes,
            upkeep_every: (writes / random.pick(&[3, 6, 12])).max(3),
            options: ALL.iter().chain(self.settings).map(ToString::to_string).collect(),
            closes: random.one_in(2),
            written_back: random.one_in(2),
        }
    }
}

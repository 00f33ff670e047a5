//! Tests of the whole engine, on file systems in memory and on disk.

mod atomic_flush;
mod basic;
mod beside;
mod blobs;
mod column_family_faults;
mod column_options;
mod compaction_styles;
mod crash;
mod crash_features;
mod damage;
mod every_byte;
mod foreign;
mod full_disk;
mod harness;
mod ingest;
mod kept_wal;
mod kill;
mod made;
mod model;
mod panics;
mod paranoid;
mod resuming;
mod same_keys;
mod stalled;
mod slow_files;
mod wal_tracking;

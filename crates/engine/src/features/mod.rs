//! The features of a database besides writing, reading, flushing and compacting: each in a file of its own, made of
//! the owners in [`crate::core::Core`]. Only `export_import` imports another, to create a column family,
//! and `wal_files`, which opens WALs as `updates` does; `staging` is the directory that checkpoints and exports are built in.

pub mod checkpoint;
pub mod column_families;
pub mod db_options;
pub mod export_import;
pub mod ingest;
pub mod read_only;
mod staging;
pub mod updates;
pub mod waiting;
pub mod wal_files;

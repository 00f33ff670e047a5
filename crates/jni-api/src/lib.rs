//! RocksJava's native library over the Outcrop engine: the jar's classes stay as they are, and find this library by its name.
//!
//! Every native method that a supported jar declares has its symbol here, made by `build.rs` from `natives/` (what the jars
//! declare) and `calls.txt` (what answers). One that nothing answers throws `RocksDBException: Not implemented`.
//!
//! This crate translates and never decides, on top of the C API of `outcrop-capi`, whose objects are behind the handles.
#![allow(missing_docs, reason = "nothing here is called but by the JVM")]

mod args;
mod backups;
mod batch_iterators;
mod batches;
mod callbacks;
mod db;
mod env;
mod files;
mod filters;
mod flink;
mod glue;
mod handlers;
mod iterators;
mod jobs;
mod lent;
mod limits;
mod listeners;
mod metadata;
mod named;
mod natives;
mod objects;
mod option_files;
mod option_lists;
mod options;
mod perf;
mod slices;
mod snapshots;
mod sst_readers;
mod statistics;
mod status;
mod table_configs;
mod tables;
mod threads;
mod transactions;
mod ttl;
mod versions;

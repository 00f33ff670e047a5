//! RocksJava's native library over the Outcrop engine: the jar's classes stay as they are, and find this library by its name.
//!
//! Every native method that a supported jar declares has its symbol here, made by `build.rs` from `natives/` (what the jars
//! declare) and `calls.txt` (what answers). One that nothing answers throws `RocksDBException: Not implemented`.
//!
//! This crate translates and never decides, on top of the C API of `outcrop-capi`, whose objects are behind the handles.
#![allow(missing_docs, reason = "nothing here is called but by the JVM")]

mod args;
mod backups;
mod batches;
mod db;
mod env;
mod files;
mod filter_factories;
mod flink;
mod glue;
mod iterators;
mod natives;
mod objects;
mod options;
mod slices;
mod statistics;
mod status;
mod transactions;
mod ttl;
mod versions;

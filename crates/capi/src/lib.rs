//! RocksDB's C API over the Outcrop engine: same names, same ownership, same errors.
//!
//! Built as a Rust library and as a shared library. The header is `include/rocksdb/c.h`; programs written for
//! RocksDB's own header compile against it as long as they use what it declares.
//!
//! Conventions, as in RocksDB: an object that a `create` or `open` function returns is freed by the matching
//! `destroy` or `close`; strings and values returned without a destroy function are `malloc`ed and freed by
//! `rocksdb_free`; a function that can fail takes `char** errptr` and on failure stores a `malloc`ed message
//! there, freeing one that was there before.
//!
//! This crate translates and never decides. One file per C name prefix.
#![allow(non_camel_case_types, reason = "the names are those of the C API")]
#![allow(clippy::missing_safety_doc, reason = "the contract of every function is RocksDB's C header")]
#![allow(missing_docs, reason = "documented by RocksDB's header; what differs is said in docs/capi.md")]

mod batch;
mod cache;
mod callbacks;
mod checkpoint;
mod compaction_options;
mod db;
mod env;
mod iterator;
mod memory;
mod options;
mod read_write_options;
mod sst_file_writer;
mod table_options;

pub use batch::*;
pub use cache::*;
pub use callbacks::*;
pub use checkpoint::*;
pub use compaction_options::*;
pub use db::*;
pub use env::*;
pub use iterator::*;
pub use memory::*;
pub use options::*;
pub use read_write_options::*;
pub use sst_file_writer::*;
pub use table_options::*;

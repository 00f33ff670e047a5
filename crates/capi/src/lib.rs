//! RocksDB's C API over the Outcrop engine: same names, same ownership, same errors.
//!
//! Built as a Rust library and as a shared library. The header is `include/rocksdb/c.h`; programs written for
//! RocksDB's own header compile against it as long as they use what it declares. Functions that RocksDB has not
//! are in `include/outcrop/c.h`: their names begin with `outcrop_`.
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

#[macro_use]
mod boundary;
#[macro_use]
pub mod settings;

mod backup;
mod batch;
mod batch_iterate;
mod cache;
mod callbacks;
mod checkpoint;
mod collectors;
mod compact_files;
mod compaction_infos;
mod compaction_options;
mod db;
mod env;
mod event_infos;
mod export_import;
mod file_checksums;
mod iterator;
mod kept_texts;
mod listener;
mod live_files_storage;
mod logger;
mod maintenance;
mod memory;
mod memory_budget;
mod metadata;
mod older;
mod opening;
mod options;
mod options_kept;
mod rate_limiter;
mod read_options;
mod reads;
mod refused;
mod resources;
mod sizes;
mod slice_transform;
mod sst_file_manager;
mod sst_file_writer;
mod statistics;
mod table_options;
mod table_properties;
mod timestamps;
mod transaction;
mod transaction_db;
mod transaction_options;
mod ttl;
mod updates;
mod wal_files;
mod write_buffer_manager;
mod write_options;
mod writebatch_wi;
mod writes;

pub use backup::*;
pub use batch::*;
pub use batch_iterate::*;
pub use cache::*;
pub use callbacks::*;
pub use checkpoint::*;
pub use collectors::*;
pub use compact_files::*;
pub use compaction_infos::*;
pub use compaction_options::*;
pub use db::*;
pub use env::*;
pub use event_infos::*;
pub use export_import::*;
pub use file_checksums::*;
pub use iterator::*;
pub use listener::*;
pub use live_files_storage::*;
pub use logger::*;
pub use maintenance::*;
pub use memory::*;
pub use memory_budget::*;
pub use metadata::*;
pub use older::*;
pub use options::*;
pub use options_kept::*;
pub use rate_limiter::*;
pub use read_options::*;
pub use reads::*;
pub use refused::*;
pub use resources::*;
pub use sizes::*;
pub use slice_transform::*;
pub use sst_file_manager::*;
pub use sst_file_writer::*;
pub use statistics::*;
pub use table_options::*;
pub use table_properties::*;
pub use timestamps::*;
pub use transaction::*;
pub use transaction_db::*;
pub use transaction_options::*;
pub use ttl::*;
pub use updates::*;
pub use wal_files::*;
pub use write_buffer_manager::*;
pub use write_options::*;
pub use writebatch_wi::*;
pub use writes::*;

/// Every function that does less than RocksDB's, and why: `docs/capi.md` is made from it.
pub fn notes() -> impl Iterator<Item = &'static settings::Note> {
    const LISTS: &[&[settings::Note]] = &[
        backup::BACKUP_ENGINE_OPTIONS_NOTES,
        backup::CREATE_BACKUP_OPTIONS_NOTES,
        batch::BATCH_NOTES,
        cache::CACHE_NOTES,
        callbacks::CALLBACK_NOTES,
        compact_files::COMPACTION_OPTIONS_NOTES,
        compaction_infos::COMPACTION_STATS_NOTES,
        env::THREAD_NOTES,
        env::POOL_NOTES,
        live_files_storage::LIVEFILES_STORAGE_INFO_OPTIONS_NOTES,
        options_kept::OPTIONS_NOTES,
        options_kept::BOTTOMMOST_NOTES,
        options_kept::SET_NOTES,
        read_options::READ_NOTES,
        read_options::READ_FUNCTION_NOTES,
        read_options::TABLE_INDEX_NOTES,
        resources::RESOURCE_NOTES,
        resources::OBJECT_NOTES,
        resources::LIMIT_NOTES,
        resources::KEPT_NOTES,
        sizes::SIZE_NOTES,
        sst_file_writer::INGEST_NOTES,
        sst_file_writer::ENV_NOTES,
        table_options::TABLE_NOTES,
        table_options::USER_DEFINED_INDEX_NOTES,
        write_options::WRITE_NOTES,
        write_options::FLUSH_NOTES,
        write_options::FLUSH_WAL_NOTES,
        write_options::COMPACT_NOTES,
        write_options::WAIT_NOTES,
        refused::LISTENER_NOTES,
        transaction_options::TRANSACTION_OPTIONS_NOTES,
        transaction_options::TRANSACTIONDB_OPTIONS_NOTES,
        transaction::TRANSACTION_TIMESTAMPS,
        refused::BLOCK_CACHE_TRACE_OPTIONS_OBJECT,
        refused::BLOCK_CACHE_TRACE_OPTIONS_NOTES,
        refused::BLOCK_CACHE_TRACE_WRITER_OPTIONS_OBJECT,
        refused::BLOCK_CACHE_TRACE_WRITER_OPTIONS_NOTES,
        refused::REPLAY_OPTIONS_OBJECT,
        refused::REPLAY_OPTIONS_NOTES,
        refused::TRACE_OPTIONS_OBJECT,
        refused::TRACE_OPTIONS_NOTES,
        refused::TRACES_REFUSED,
        refused::OPEN_AND_COMPACT_OPTIONS_OBJECT,
        refused::OPEN_AND_COMPACT_OPTIONS_NOTES,
        refused::REMOTE_COMPACTION_REFUSED,
        updates::WAL_READOPTIONS_OBJECT,
        updates::WAL_READOPTIONS_NOTES,
        refused::CUCKOO_OPTIONS_OBJECT,
        refused::CUCKOO_OPTIONS_NOTES,
        refused::FIFO_COMPACTION_OPTIONS_NOTES,
        refused::UNIVERSAL_COMPACTION_OPTIONS_NOTES,
    ];
    LISTS.iter().copied().flatten().filter(|note| note.fate != settings::Fate::Acts)
}

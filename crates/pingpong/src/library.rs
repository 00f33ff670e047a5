//! The C functions of an engine: a shared library that exports RocksDB's C API, loaded at run time.
//!
//! Every function is optional: which of them a library has is one half of what it can do (`features.rs` finds
//! the other half out). The crate links no engine; of ours it has the random numbers of `outcrop-base`.

use libc::{c_char, c_int, c_uchar, c_void, size_t};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::Path;

/// An object of the engine.
pub type Object = *mut c_void;
/// Where a function stores its error message.
pub type Errptr = *mut *mut c_char;
/// Bytes passed to the engine.
pub type Bytes = *const c_char;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// A table of RocksDB's C functions, with the signatures of RocksDB's header. `None`: not exported.
        #[allow(missing_docs, non_snake_case, reason = "the names are RocksDB's")]
        pub struct Api {
            $(pub $name: Option<unsafe extern "C" fn($($arg),*) $(-> $ret)?>,)*
            _library: Library,
        }

        impl Api {
            /// Loads the library.
            ///
            /// # Errors
            /// The loader's message.
            #[allow(non_snake_case, reason = "the names are RocksDB's")]
            pub fn load(path: &Path) -> Result<Api, String> {
                let failed = |error: libloading::Error| format!("{}: {error}", path.display());
                // SAFETY: engines run no code of note when loaded, and the functions have the signatures that
                // RocksDB's header gives their names.
                unsafe {
                    let library = Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).map_err(failed)?;
                    $(let $name = library.get(concat!(stringify!($name), "\0").as_bytes()).ok().map(|f| *f);)*
                    Ok(Api { $($name,)* _library: library })
                }
            }

            /// The names of the functions that the library has.
            pub fn names(&self) -> Vec<String> {
                let mut names = Vec::new();
                $(if self.$name.is_some() { names.push(stringify!($name).to_string()); })*
                names
            }
        }
    };
}

functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_options_set_merge_operator: fn(Object, Object);
    rocksdb_mergeoperator_create: fn(*mut c_void, Destructor, FullMerge, PartialMerge, DeleteValue, OperatorName) -> Object;
    rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
    rocksdb_open_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_open_for_read_only_column_families: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, c_uchar, Errptr) -> Object;
    rocksdb_destroy_db: fn(Object, Bytes, Errptr);
    rocksdb_load_latest_options: fn(Bytes, Object, bool, Object, *mut Object, *mut size_t, *mut *mut *mut c_char, *mut *mut Object, Errptr);
    rocksdb_load_latest_options_destroy: fn(Object, *mut *mut c_char, *mut Object, size_t);
    rocksdb_create_default_env: fn() -> Object;
    rocksdb_env_destroy: fn(Object);
    rocksdb_cache_create_lru: fn(size_t) -> Object;
    rocksdb_cache_destroy: fn(Object);
    rocksdb_wait_for_compact_options_create: fn() -> Object;
    rocksdb_wait_for_compact_options_destroy: fn(Object);
    rocksdb_wait_for_compact: fn(Object, Object, Errptr);
    rocksdb_get_latest_sequence_number: fn(Object) -> u64;
    rocksdb_get_updates_since: fn(Object, u64, Object, Errptr) -> Object;
    rocksdb_wal_iter_destroy: fn(Object);
    rocksdb_wal_iter_valid: fn(Object) -> c_uchar;
    rocksdb_wal_iter_next: fn(Object);
    rocksdb_wal_iter_status: fn(Object, Errptr);
    rocksdb_wal_iter_get_batch: fn(Object, *mut u64) -> Object;
    rocksdb_writebatch_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_writebatch_clear: fn(Object);
    rocksdb_writebatch_set_save_point: fn(Object);
    rocksdb_writebatch_rollback_to_save_point: fn(Object, Errptr);
    rocksdb_writebatch_pop_save_point: fn(Object, Errptr);
    rocksdb_put_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_singledelete_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_writebatch_put_cf_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_cf_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_singledelete_cf_with_ts: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_update_timestamps: fn(Object, Bytes, size_t, *mut c_void, TimestampSize, Errptr);
    rocksdb_get_cf_with_ts: fn(Object, Object, Object, Bytes, size_t, *mut size_t, *mut *mut c_char, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_multi_get_cf_with_ts: fn(Object, Object, *const Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_readoptions_set_timestamp: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_iter_start_ts: fn(Object, Bytes, size_t);
    rocksdb_iter_timestamp: fn(Object, *mut size_t) -> Bytes;
    rocksdb_open_and_trim_history: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, *mut c_char, size_t, Errptr) -> Object;
    rocksdb_increase_full_history_ts_low: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_get_full_history_ts_low: fn(Object, Object, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_compactoptions_set_full_history_ts_low: fn(Object, *mut c_char, size_t);
    rocksdb_livefiles: fn(Object) -> Object;
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_column_family_name: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_name: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_level: fn(Object, c_int) -> c_int;
    rocksdb_livefiles_destroy: fn(Object);
    rocksdb_compaction_options_create: fn() -> Object;
    rocksdb_compaction_options_destroy: fn(Object);
    rocksdb_compactionjobinfo_create: fn() -> Object;
    rocksdb_compactionjobinfo_destroy: fn(Object);
    rocksdb_compact_files_cf: fn(Object, Object, Object, *const Bytes, size_t, c_int, c_int, *mut *mut *mut c_char, *mut size_t, Object, Errptr);
    rocksdb_compact_files_output_file_names_destroy: fn(*mut *mut c_char, size_t);
    rocksdb_comparator_with_ts_create: fn(*mut c_void, Destructor, Compare, Compare, CompareWithout, NameOf, size_t) -> Object;
    rocksdb_options_set_comparator: fn(Object, Object);
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno: fn(Object, c_uchar);
    rocksdb_ingestexternalfileoptions_set_ingest_behind: fn(Object, c_uchar);
    rocksdb_list_column_families: fn(Object, Bytes, *mut size_t, Errptr) -> *mut *mut c_char;
    rocksdb_list_column_families_destroy: fn(*mut *mut c_char, size_t);
    rocksdb_create_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_drop_column_family: fn(Object, Object, Errptr);
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_column_family_handle_get_id: fn(Object) -> u32;
    rocksdb_close: fn(Object);
    rocksdb_set_options_cf: fn(Object, Object, c_int, *const Bytes, *const Bytes, Errptr);
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_writeoptions_destroy: fn(Object);
    rocksdb_writeoptions_set_sync: fn(Object, c_uchar);
    rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_readoptions_destroy: fn(Object);
    rocksdb_readoptions_set_snapshot: fn(Object, Object);
    rocksdb_readoptions_set_iterate_lower_bound: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_iterate_upper_bound: fn(Object, Bytes, size_t);
    rocksdb_readoptions_set_total_order_seek: fn(Object, c_uchar);
    rocksdb_readoptions_set_prefix_same_as_start: fn(Object, c_uchar);
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_merge_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_singledelete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_delete_range_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_create_from: fn(Bytes, size_t) -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_merge_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_singledelete_cf: fn(Object, Object, Bytes, size_t);
    rocksdb_writebatch_delete_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_put_log_data: fn(Object, Bytes, size_t);
    rocksdb_write: fn(Object, Object, Object, Errptr);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_get_pinned_cf: fn(Object, Object, Object, Bytes, size_t, Errptr) -> Object;
    rocksdb_pinnableslice_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_pinnableslice_destroy: fn(Object);
    rocksdb_multi_get_cf: fn(Object, Object, *const Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char);
    rocksdb_batched_multi_get_cf: fn(Object, Object, Object, size_t, *const Bytes, *const size_t, *mut Object, *mut *mut c_char, bool);
    rocksdb_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_create_iterators: fn(Object, Object, *const Object, *mut Object, size_t, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_seek_to_last: fn(Object);
    rocksdb_iter_seek: fn(Object, Bytes, size_t);
    rocksdb_iter_seek_for_prev: fn(Object, Bytes, size_t);
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_prev: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_create_snapshot: fn(Object) -> Object;
    rocksdb_release_snapshot: fn(Object, Object);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_flushoptions_destroy: fn(Object);
    rocksdb_flushoptions_set_wait: fn(Object, c_uchar);
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_flush_cfs: fn(Object, Object, *const Object, c_int, Errptr);
    rocksdb_flush_wal: fn(Object, c_uchar, Errptr);
    rocksdb_compactoptions_create: fn() -> Object;
    rocksdb_compactoptions_destroy: fn(Object);
    rocksdb_compactoptions_set_exclusive_manual_compaction: fn(Object, c_uchar);
    rocksdb_compactoptions_set_bottommost_level_compaction: fn(Object, c_uchar);
    rocksdb_compact_range_cf_opt: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_property_int_cf: fn(Object, Object, Bytes, *mut u64) -> c_int;
    rocksdb_envoptions_create: fn() -> Object;
    rocksdb_envoptions_destroy: fn(Object);
    rocksdb_sstfilewriter_create: fn(Object, Object) -> Object;
    rocksdb_sstfilewriter_destroy: fn(Object);
    rocksdb_sstfilewriter_open: fn(Object, Bytes, Errptr);
    rocksdb_sstfilewriter_put: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_merge: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_delete: fn(Object, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_delete_range: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_sstfilewriter_finish: fn(Object, Errptr);
    rocksdb_ingestexternalfileoptions_create: fn() -> Object;
    rocksdb_ingestexternalfileoptions_destroy: fn(Object);
    rocksdb_ingestexternalfileoptions_set_move_files: fn(Object, c_uchar);
    rocksdb_ingest_external_file_cf: fn(Object, Object, *const Bytes, size_t, Object, Errptr);
    rocksdb_checkpoint_object_create: fn(Object, Errptr) -> Object;
    rocksdb_checkpoint_object_destroy: fn(Object);
    rocksdb_checkpoint_create: fn(Object, Bytes, u64, Errptr);
    rocksdb_backup_engine_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_backup_engine_close: fn(Object);
    rocksdb_backup_engine_create_new_backup_flush: fn(Object, Object, c_uchar, Errptr);
    rocksdb_backup_engine_purge_old_backups: fn(Object, u32, Errptr);
    rocksdb_backup_engine_restore_db_from_latest_backup: fn(Object, Bytes, Bytes, Object, Errptr);
    rocksdb_backup_engine_verify_backup: fn(Object, u32, Errptr);
    rocksdb_backup_engine_restore_db_from_backup: fn(Object, Bytes, Bytes, Object, u32, Errptr);
    rocksdb_backup_engine_get_backup_info: fn(Object) -> Object;
    rocksdb_backup_engine_info_count: fn(Object) -> c_int;
    rocksdb_backup_engine_info_backup_id: fn(Object, c_int) -> u32;
    rocksdb_backup_engine_info_destroy: fn(Object);
    rocksdb_open_column_families_with_ttl: fn(Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, *const c_int, Errptr) -> Object;
    rocksdb_create_column_family_with_ttl: fn(Object, Object, Bytes, c_int, Errptr) -> Object;
    rocksdb_restore_options_create: fn() -> Object;
    rocksdb_restore_options_destroy: fn(Object);
    rocksdb_transactiondb_options_create: fn() -> Object;
    rocksdb_transactiondb_options_destroy: fn(Object);
    rocksdb_transactiondb_open_column_families: fn(Object, Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_transactiondb_create_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_transactiondb_get_base_db: fn(Object) -> Object;
    rocksdb_transactiondb_close_base_db: fn(Object);
    rocksdb_transactiondb_close: fn(Object);
    rocksdb_transactiondb_get_prepared_transactions: fn(Object, *mut size_t) -> *mut Object;
    rocksdb_transaction_options_create: fn() -> Object;
    rocksdb_transaction_options_destroy: fn(Object);
    rocksdb_transaction_begin: fn(Object, Object, Object, Object) -> Object;
    rocksdb_transaction_set_name: fn(Object, Bytes, size_t, Errptr);
    rocksdb_transaction_get_name: fn(Object, *mut size_t) -> *mut c_char;
    rocksdb_transaction_merge_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transaction_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transaction_delete_cf: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_transaction_prepare: fn(Object, Errptr);
    rocksdb_transaction_commit: fn(Object, Errptr);
    rocksdb_transaction_rollback: fn(Object, Errptr);
    rocksdb_transaction_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

/// Frees the state of a merge operator.
pub type Destructor = unsafe extern "C" fn(*mut c_void);
/// State, key, existing value or null, operands; gives a malloc'ed value.
pub type FullMerge = unsafe extern "C" fn(
    *mut c_void,
    Bytes,
    size_t,
    Bytes,
    size_t,
    *const Bytes,
    *const size_t,
    c_int,
    *mut c_uchar,
    *mut size_t,
) -> *mut c_char;
/// State, key, operands; gives a malloc'ed operand.
pub type PartialMerge = unsafe extern "C" fn(
    *mut c_void,
    Bytes,
    size_t,
    *const Bytes,
    *const size_t,
    c_int,
    *mut c_uchar,
    *mut size_t,
) -> *mut c_char;
/// Frees what the merge functions gave.
pub type DeleteValue = unsafe extern "C" fn(*mut c_void, Bytes, size_t);
/// State, two keys or two timestamps.
pub type Compare = unsafe extern "C" fn(*mut c_void, Bytes, size_t, Bytes, size_t) -> c_int;
/// State, two keys, each with whether it ends with a timestamp, which does not count.
pub type CompareWithout =
    unsafe extern "C" fn(*mut c_void, Bytes, size_t, c_uchar, Bytes, size_t, c_uchar) -> c_int;
/// State, id of a column family; gives the length of its timestamps.
pub type TimestampSize = unsafe extern "C" fn(*mut c_void, u32) -> size_t;
/// The comparator's name.
pub type NameOf = unsafe extern "C" fn(*mut c_void) -> Bytes;
/// The operator's name.
pub type OperatorName = unsafe extern "C" fn(*mut c_void) -> Bytes;

//! The C functions that load is made of, and how they are found.

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
    (required { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }
     optional { $($opt:ident: fn($($opt_arg:ty),*) $(-> $opt_ret:ty)?;)* }) => {
        /// A table of RocksDB's C functions. Signatures are those of `include/rocksdb/c.h`.
        #[derive(Clone, Copy)]
        #[allow(missing_docs, non_snake_case, reason = "the names are RocksDB's")]
        pub struct RocksApi {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $opt: Option<unsafe extern "C" fn($($opt_arg),*) $(-> $opt_ret)?>,)*
        }

        impl RocksApi {
            /// Fills the table from `find`, which gives the address of the function of a name.
            ///
            /// # Safety
            /// Each address must be that of a C function with the signature RocksDB's header gives the name,
            /// and stay valid as long as the table is used.
            ///
            /// # Errors
            /// The name of the first required function that is missing.
            pub unsafe fn from_symbols(
                mut find: impl FnMut(&str) -> Option<*const ()>,
            ) -> Result<RocksApi, &'static str> {
                Ok(RocksApi {
                    $($name: {
                        let address = find(stringify!($name)).ok_or(stringify!($name))?;
                        // SAFETY: the caller's promise.
                        unsafe {
                            std::mem::transmute::<*const (), unsafe extern "C" fn($($arg),*) $(-> $ret)?>(address)
                        }
                    },)*
                    $($opt: find(stringify!($opt)).map(|address| {
                        // SAFETY: the caller's promise.
                        unsafe {
                            std::mem::transmute::<*const (), unsafe extern "C" fn($($opt_arg),*) $(-> $opt_ret)?>(
                                address,
                            )
                        }
                    }),)*
                })
            }
        }

        /// Names of the functions that a library may lack.
        pub const OPTIONAL: &[&str] = &[$(stringify!($opt)),*];

        /// Calls `$then!` with every function name, so that a crate that links an engine can fill the table.
        #[macro_export]
        macro_rules! for_each_function {
            ($then:ident) => { $then! { $($name,)* $($opt,)* } };
        }
    };
}

functions! {
    required {
        rocksdb_options_create: fn() -> Object;
        rocksdb_options_destroy: fn(Object);
        rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
        rocksdb_options_set_write_buffer_size: fn(Object, size_t);
        rocksdb_options_set_max_write_buffer_number: fn(Object, c_int);
        rocksdb_options_set_target_file_size_base: fn(Object, u64);
        rocksdb_options_set_max_bytes_for_level_base: fn(Object, u64);
        rocksdb_options_set_max_bytes_for_level_multiplier: fn(Object, f64);
        rocksdb_options_set_num_levels: fn(Object, c_int);
        rocksdb_options_set_level0_file_num_compaction_trigger: fn(Object, c_int);
        rocksdb_options_set_level0_slowdown_writes_trigger: fn(Object, c_int);
        rocksdb_options_set_level0_stop_writes_trigger: fn(Object, c_int);
        rocksdb_options_set_level_compaction_dynamic_level_bytes: fn(Object, c_uchar);
        rocksdb_options_set_max_background_jobs: fn(Object, c_int);
        rocksdb_options_set_compression: fn(Object, c_int);
        rocksdb_options_set_bytes_per_sync: fn(Object, u64);
        rocksdb_options_set_use_direct_reads: fn(Object, c_uchar);
        rocksdb_options_set_use_direct_io_for_flush_and_compaction: fn(Object, c_uchar);
        rocksdb_options_set_allow_concurrent_memtable_write: fn(Object, c_uchar);
        rocksdb_options_set_memtable_vector_rep: fn(Object);
        rocksdb_options_set_block_based_table_factory: fn(Object, Object);
        rocksdb_block_based_options_create: fn() -> Object;
        rocksdb_block_based_options_destroy: fn(Object);
        rocksdb_block_based_options_set_block_size: fn(Object, size_t);
        rocksdb_block_based_options_set_block_cache: fn(Object, Object);
        rocksdb_block_based_options_set_filter_policy: fn(Object, Object);
        rocksdb_block_based_options_set_cache_index_and_filter_blocks: fn(Object, c_uchar);
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache: fn(Object, c_uchar);
        // Bits as int up to some 6.x, as double since. Integers and doubles travel in registers of their own on
        // x86-64 and aarch64, so a call with both gives either version what it reads.
        rocksdb_filterpolicy_create_bloom_full: fn(c_int, f64) -> Object;
        rocksdb_cache_create_lru: fn(size_t) -> Object;
        rocksdb_cache_destroy: fn(Object);
        rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
        rocksdb_close: fn(Object);
        rocksdb_destroy_db: fn(Object, Bytes, Errptr);
        rocksdb_writeoptions_create: fn() -> Object;
        rocksdb_writeoptions_destroy: fn(Object);
        rocksdb_writeoptions_set_sync: fn(Object, c_uchar);
        rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
        rocksdb_readoptions_create: fn() -> Object;
        rocksdb_readoptions_destroy: fn(Object);
        rocksdb_delete: fn(Object, Object, Bytes, size_t, Errptr);
        rocksdb_get_pinned: fn(Object, Object, Bytes, size_t, Errptr) -> Object;
        rocksdb_pinnableslice_value: fn(Object, *mut size_t) -> Bytes;
        rocksdb_pinnableslice_destroy: fn(Object);
        rocksdb_create_iterator: fn(Object, Object) -> Object;
        rocksdb_iter_destroy: fn(Object);
        rocksdb_iter_seek: fn(Object, Bytes, size_t);
        rocksdb_iter_seek_to_first: fn(Object);
        rocksdb_iter_next: fn(Object);
        rocksdb_iter_prev: fn(Object);
        rocksdb_iter_valid: fn(Object) -> c_uchar;
        rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
        rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
        rocksdb_iter_get_error: fn(Object, Errptr);
        rocksdb_flushoptions_create: fn() -> Object;
        rocksdb_flushoptions_destroy: fn(Object);
        rocksdb_flush: fn(Object, Object, Errptr);
        rocksdb_compact_range: fn(Object, Bytes, size_t, Bytes, size_t);
        rocksdb_writebatch_create: fn() -> Object;
        rocksdb_writebatch_destroy: fn(Object);
        rocksdb_writebatch_clear: fn(Object);
        rocksdb_writebatch_put: fn(Object, Bytes, size_t, Bytes, size_t);
        rocksdb_write: fn(Object, Object, Object, Errptr);
        rocksdb_property_value: fn(Object, Bytes) -> *mut c_char;
        rocksdb_property_int: fn(Object, Bytes, *mut u64) -> c_int;
        rocksdb_free: fn(*mut c_void);
    }
    optional {
        rocksdb_writebatch_delete: fn(Object, Bytes, size_t);
        rocksdb_iter_seek_to_last: fn(Object);
        rocksdb_verify_checksum: fn(Object, Errptr);
        rocksdb_merge: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
        rocksdb_options_set_uint64add_merge_operator: fn(Object);
        rocksdb_cache_create_hyper_clock: fn(size_t, size_t) -> Object;
        rocksdb_options_set_min_level_to_compress: fn(Object, c_int);
        rocksdb_options_set_bottommost_compression: fn(Object, c_int);
        rocksdb_options_set_prefix_extractor: fn(Object, Object);
        rocksdb_options_set_blob_cache: fn(Object, Object);
        rocksdb_slicetransform_create_fixed_prefix: fn(size_t) -> Object;
        rocksdb_block_based_options_set_index_type: fn(Object, c_int);
        rocksdb_block_based_options_set_partition_filters: fn(Object, c_uchar);
        rocksdb_block_based_options_set_metadata_block_size: fn(Object, u64);
        rocksdb_block_based_options_set_pin_top_level_index_and_filter: fn(Object, c_uchar);
        rocksdb_set_perf_level: fn(c_int);
        rocksdb_set_options: fn(Object, c_int, *const Bytes, *const Bytes, Errptr);
        rocksdb_suggest_compact_range: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
        rocksdb_wait_for_compact: fn(Object, Object, Errptr);
        rocksdb_wait_for_compact_options_create: fn() -> Object;
        rocksdb_wait_for_compact_options_destroy: fn(Object);
        rocksdb_wait_for_compact_options_set_timeout: fn(Object, u64);
        rocksdb_livefiles: fn(Object) -> Object;
        rocksdb_livefiles_count: fn(Object) -> c_int;
        rocksdb_livefiles_name: fn(Object, c_int) -> Bytes;
        rocksdb_livefiles_level: fn(Object, c_int) -> c_int;
        rocksdb_livefiles_destroy: fn(Object);
        rocksdb_compaction_options_create: fn() -> Object;
        rocksdb_compaction_options_destroy: fn(Object);
        rocksdb_compaction_options_set_compression: fn(Object, c_int);
        rocksdb_compaction_options_set_output_file_size_limit: fn(Object, u64);
        rocksdb_compact_files: fn(
            Object, Object, *const Bytes, size_t, c_int, c_int, *mut *mut *mut c_char, *mut size_t, Object, Errptr
        );
        rocksdb_get_options_from_string: fn(Object, Bytes, Object, Errptr);
        rocksdb_multi_get: fn(
            Object, Object, size_t, *const Bytes, *const size_t, *mut *mut c_char, *mut size_t, *mut *mut c_char
        );
        rocksdb_get_default_column_family_handle: fn(Object) -> Object;
        rocksdb_column_family_handle_destroy: fn(Object);
        rocksdb_batched_multi_get_cf: fn(
            Object, Object, Object, size_t, *const Bytes, *const size_t, *mut Object, *mut *mut c_char, bool
        );
        rocksdb_transactiondb_options_create: fn() -> Object;
        rocksdb_transactiondb_options_destroy: fn(Object);
        rocksdb_transactiondb_open: fn(Object, Object, Bytes, Errptr) -> Object;
        rocksdb_transactiondb_close: fn(Object);
        rocksdb_transactiondb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
        rocksdb_transaction_options_create: fn() -> Object;
        rocksdb_transaction_options_destroy: fn(Object);
        rocksdb_transaction_begin: fn(Object, Object, Object, Object) -> Object;
        rocksdb_optimistictransactiondb_open: fn(Object, Bytes, Errptr) -> Object;
        rocksdb_optimistictransactiondb_close: fn(Object);
        rocksdb_optimistictransaction_options_create: fn() -> Object;
        rocksdb_optimistictransaction_options_destroy: fn(Object);
        rocksdb_optimistictransaction_begin: fn(Object, Object, Object, Object) -> Object;
        rocksdb_transaction_get_for_update:
            fn(Object, Object, Bytes, size_t, *mut size_t, c_uchar, Errptr) -> *mut c_char;
        rocksdb_transaction_put: fn(Object, Bytes, size_t, Bytes, size_t, Errptr);
        rocksdb_transaction_commit: fn(Object, Errptr);
        rocksdb_transaction_rollback: fn(Object, Errptr);
        rocksdb_transaction_destroy: fn(Object);
        rocksdb_transaction_create_iterator: fn(Object, Object) -> Object;
    }
}

impl RocksApi {
    /// Loads the library at `path`, which has RocksDB's functions or LevelDB's. It stays loaded until the process
    /// ends.
    ///
    /// # Errors
    /// A sentence naming the library, and the function it lacks.
    pub fn load(path: &Path) -> Result<RocksApi, String> {
        // SAFETY: the user names a library with RocksDB's C API; loading one runs its initialisers.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("cannot load {}: {error}", path.display()))?;
        // SAFETY: the symbols are RocksDB's, with the signatures of its header; the library is never unloaded.
        let api = unsafe {
            let symbol = |name: &str| {
                let symbol = library.get::<*const ()>(name.as_bytes()).ok()?;
                Some(symbol.into_raw().cast::<()>().cast_const())
            };
            if symbol("rocksdb_open").is_none() && symbol("leveldb_open").is_some() {
                RocksApi::from_symbols(|name| crate::leveldb::address(name, &symbol))
            } else {
                RocksApi::from_symbols(symbol)
            }
        };
        let api = api.map_err(|name| format!("{} has no function {name}", path.display()))?;
        std::mem::forget(library);
        Ok(api)
    }

    /// Turns off what RocksDB counts for the calling thread (`perf_context`), which by default are numbers of blocks,
    /// comparisons and the like. Its db_bench does so, and a cached lookup takes a tenth less time without; nobody reads
    /// them here.
    ///
    /// Source: RocksDB `include/rocksdb/perf_level.h`; `tools/db_bench_tool.cc`, `perf_level`.
    pub fn count_nothing_in_this_thread(&self) {
        /// `PerfLevel::kDisable`.
        const DISABLE: c_int = 1;
        if let Some(set) = self.rocksdb_set_perf_level {
            // SAFETY: it stores a number in a variable of this thread.
            unsafe { set(DISABLE) }
        }
    }
}

/// An engine's objects, each used by the calls that RocksDB allows from any thread.
#[derive(Clone, Copy)]
pub struct Shared(pub Object);

// SAFETY: databases, options and caches may be used from any thread, by RocksDB's contract.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static LEVEL: Cell<c_int> = const { Cell::new(0) };
    }

    extern "C" fn set_level(level: c_int) {
        LEVEL.set(level);
    }

    extern "C" fn never_called() {}

    /// A table whose functions are not to be called, except for those that `find` knows.
    fn table(find: impl Fn(&str) -> Option<*const ()>) -> RocksApi {
        let other = |name: &str| (!OPTIONAL.contains(&name)).then_some(never_called as *const ());
        // SAFETY: only what `find` gives is called.
        unsafe { RocksApi::from_symbols(|name| find(name).or_else(|| other(name))) }.unwrap()
    }

    #[test]
    fn counters_of_the_thread_are_turned_off_where_there_are_any() {
        table(|_| None).count_nothing_in_this_thread();
        assert_eq!(LEVEL.get(), 0);
        let api = table(|name| (name == "rocksdb_set_perf_level").then_some(set_level as *const ()));
        std::thread::scope(|scope| scope.spawn(|| api.count_nothing_in_this_thread()).join()).unwrap();
        assert_eq!(LEVEL.get(), 0, "each thread has its own");
        api.count_nothing_in_this_thread();
        assert_eq!(LEVEL.get(), 1, "PerfLevel::kDisable");
    }
}

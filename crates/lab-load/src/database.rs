//! A database of any engine, behind safe calls.

use crate::ffi::{Object, RocksApi, Shared};
use libc::c_int;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

/// How a database is opened: the flags of db_bench that matter for load, under its names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenOptions {
    /// Bytes of block cache.
    pub cache_size: usize,
    /// Bytes of uncompressed data per block.
    pub block_size: usize,
    /// Bits of bloom filter per key; 0: none.
    pub bloom_bits: f64,
    /// Bytes of a memtable.
    pub write_buffer_size: usize,
    /// Memtables at most.
    pub max_write_buffer_number: i32,
    /// Bytes of a table.
    pub target_file_size_base: u64,
    /// Bytes of the base level.
    pub max_bytes_for_level_base: u64,
    /// Growth per level.
    pub max_bytes_for_level_multiplier: f64,
    /// Levels.
    pub num_levels: i32,
    /// L0 tables that start a compaction, slow writes, stop writes.
    pub level0_triggers: [i32; 3],
    /// Background threads.
    pub max_background_jobs: i32,
    /// RocksDB's number of the codec: 0 none, 4 LZ4.
    pub compression: i32,
    /// O_DIRECT for reads, flush and compaction.
    pub direct_io: bool,
    /// RocksDB's vector memtable, for ascending loads.
    pub vector_memtable: bool,
}

/// An open database.
pub struct Database {
    api: RocksApi,
    db: Shared,
    options: Shared,
    cache: Shared,
    read: Shared,
    writes: [Shared; 3],
}

/// How a write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Durability {
    /// Not in the WAL.
    NoWal,
    /// In the WAL, not synced.
    Wal,
    /// In the WAL, synced.
    Sync,
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Database {
    /// Opens or creates the database at `path`.
    ///
    /// # Errors
    /// The engine's message.
    pub fn open(api: RocksApi, path: &Path, settings: &OpenOptions) -> Result<Database, String> {
        Database::open_with(api, path, settings, "")
    }

    /// As [`Database::open`], with further options as `text`, `name=value;name=value`, in RocksDB's words. They
    /// win over `settings`.
    ///
    /// # Errors
    /// The engine's message, or that it does not take options as text.
    pub fn open_with(
        api: RocksApi,
        path: &Path,
        settings: &OpenOptions,
        text: &str,
    ) -> Result<Database, String> {
        let name = CString::new(path.to_string_lossy().as_bytes()).map_err(|_| "path has a NUL byte")?;
        // SAFETY: objects are created here and live until `drop`; strings are NUL-terminated.
        unsafe {
            let cache = match api.rocksdb_cache_create_hyper_clock {
                Some(create) => create(settings.cache_size, 0),
                None => (api.rocksdb_cache_create_lru)(settings.cache_size),
            };
            let options = build_options(&api, settings, cache);
            let mut error = null_mut();
            if let Err(message) = apply_text(&api, options, text) {
                (api.rocksdb_options_destroy)(options);
                (api.rocksdb_cache_destroy)(cache);
                return Err(message);
            }
            let db = (api.rocksdb_open)(options, name.as_ptr(), &raw mut error);
            if let Err(message) = take_error(&api, error) {
                (api.rocksdb_options_destroy)(options);
                (api.rocksdb_cache_destroy)(cache);
                return Err(message);
            }
            let write = |no_wal: i32, sync: u8| {
                let options = (api.rocksdb_writeoptions_create)();
                (api.rocksdb_writeoptions_disable_WAL)(options, no_wal);
                (api.rocksdb_writeoptions_set_sync)(options, sync);
                Shared(options)
            };
            Ok(Database {
                api,
                db: Shared(db),
                options: Shared(options),
                cache: Shared(cache),
                read: Shared((api.rocksdb_readoptions_create)()),
                writes: [write(1, 0), write(0, 0), write(0, 1)],
            })
        }
    }

    /// Removes the database at `path`, if there is one.
    pub fn destroy(api: RocksApi, path: &Path) -> Result<(), String> {
        let name = CString::new(path.to_string_lossy().as_bytes()).map_err(|_| "path has a NUL byte")?;
        let mut error = null_mut();
        // SAFETY: a live object and a NUL-terminated name.
        unsafe {
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_destroy_db)(options, name.as_ptr(), &raw mut error);
            (api.rocksdb_options_destroy)(options);
        }
        take_error(&api, error)
    }

    /// Sets a key.
    #[inline]
    pub fn put(&self, durability: Durability, key: &[u8], value: &[u8]) -> Result<(), String> {
        let mut error = null_mut();
        let options = self.writes[durability as usize].0;
        // SAFETY: live objects and slices.
        unsafe {
            let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
            (self.api.rocksdb_put)(
                self.db.0,
                options,
                key_start,
                key.len(),
                value_start,
                value.len(),
                &raw mut error,
            );
        }
        take_error(&self.api, error)
    }

    /// Deletes a key.
    pub fn delete(&self, durability: Durability, key: &[u8]) -> Result<(), String> {
        let mut error = null_mut();
        let options = self.writes[durability as usize].0;
        // SAFETY: live objects and slices.
        unsafe {
            (self.api.rocksdb_delete)(self.db.0, options, key.as_ptr().cast(), key.len(), &raw mut error);
        }
        take_error(&self.api, error)
    }

    /// True if the key is there; its value is touched.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<bool, String> {
        let mut error = null_mut();
        // SAFETY: live objects and slices; the pinned value is destroyed after its use.
        unsafe {
            let start = key.as_ptr().cast();
            let pinned =
                (self.api.rocksdb_get_pinned)(self.db.0, self.read.0, start, key.len(), &raw mut error);
            take_error(&self.api, error)?;
            if pinned.is_null() {
                return Ok(false);
            }
            let mut len = 0;
            let value = (self.api.rocksdb_pinnableslice_value)(pinned, &raw mut len);
            if len > 0 {
                std::hint::black_box(*value);
            }
            (self.api.rocksdb_pinnableslice_destroy)(pinned);
            Ok(true)
        }
    }

    /// One range query: seeks `key`, then copies a value and moves, `count` times.
    #[inline]
    pub fn range(&self, key: &[u8], count: u32, reverse: bool) -> Result<bool, String> {
        let mut copy = [0u8; 256];
        let mut error = null_mut();
        let found;
        // SAFETY: live objects; values are valid until the iterator moves.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek)(iter, key.as_ptr().cast(), key.len());
            found = (self.api.rocksdb_iter_valid)(iter) != 0;
            for _ in 0..count {
                if (self.api.rocksdb_iter_valid)(iter) == 0 {
                    break;
                }
                let mut len = 0;
                let value = (self.api.rocksdb_iter_value)(iter, &raw mut len);
                let taken = len.min(copy.len());
                std::ptr::copy_nonoverlapping(value.cast(), copy.as_mut_ptr(), taken);
                std::hint::black_box(&mut copy);
                let step = if reverse { self.api.rocksdb_iter_prev } else { self.api.rocksdb_iter_next };
                step(iter);
            }
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
        }
        take_error(&self.api, error).map(|()| found)
    }

    /// Reads everything once; gives the number of rows.
    pub fn scan(&self) -> Result<u64, String> {
        let mut rows = 0;
        let mut error = null_mut();
        // SAFETY: live objects.
        unsafe {
            let iter = (self.api.rocksdb_create_iterator)(self.db.0, self.read.0);
            (self.api.rocksdb_iter_seek_to_first)(iter);
            while (self.api.rocksdb_iter_valid)(iter) != 0 {
                rows += 1;
                (self.api.rocksdb_iter_next)(iter);
            }
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
        }
        take_error(&self.api, error).map(|()| rows)
    }

    /// Writes memtables to tables and waits.
    pub fn flush(&self) -> Result<(), String> {
        let mut error = null_mut();
        // SAFETY: live objects.
        unsafe {
            let options = (self.api.rocksdb_flushoptions_create)();
            (self.api.rocksdb_flush)(self.db.0, options, &raw mut error);
            (self.api.rocksdb_flushoptions_destroy)(options);
        }
        take_error(&self.api, error)
    }

    /// Compacts everything.
    pub fn compact(&self) {
        // SAFETY: live objects; null bounds are unbounded.
        unsafe { (self.api.rocksdb_compact_range)(self.db.0, null(), 0, null(), 0) }
    }

    /// A numeric property.
    pub fn property_int(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).ok()?;
        let mut number = 0;
        // SAFETY: live objects and a NUL-terminated name.
        let status = unsafe { (self.api.rocksdb_property_int)(self.db.0, name.as_ptr(), &raw mut number) };
        (status == 0).then_some(number)
    }

    /// A text property.
    pub fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: live objects; the text is NUL-terminated and malloc'ed.
        unsafe {
            let text = (self.api.rocksdb_property_value)(self.db.0, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.rocksdb_free)(text.cast());
            Some(copy)
        }
    }
}

/// Changes `options` as `text` says.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn apply_text(api: &RocksApi, options: Object, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let from_string = api.rocksdb_get_options_from_string.ok_or("the engine takes no options as text")?;
    let words = CString::new(text).map_err(|_| "options have a NUL byte")?;
    let mut error = null_mut();
    // SAFETY: live objects and a NUL-terminated text. The object is base and result at once: the engine copies
    // the base before it stores the result.
    unsafe { from_string(options, words.as_ptr(), options, &raw mut error) };
    take_error(api, error).map_err(|message| format!("options {text}: {message}"))
}

/// The options object of `settings`.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn build_options(api: &RocksApi, settings: &OpenOptions, cache: Object) -> Object {
    // SAFETY: objects are created here; the filter policy's ownership passes to the table options.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        (api.rocksdb_options_set_write_buffer_size)(options, settings.write_buffer_size);
        (api.rocksdb_options_set_max_write_buffer_number)(options, settings.max_write_buffer_number);
        (api.rocksdb_options_set_target_file_size_base)(options, settings.target_file_size_base);
        (api.rocksdb_options_set_max_bytes_for_level_base)(options, settings.max_bytes_for_level_base);
        (api.rocksdb_options_set_max_bytes_for_level_multiplier)(
            options,
            settings.max_bytes_for_level_multiplier,
        );
        (api.rocksdb_options_set_num_levels)(options, settings.num_levels);
        let [compact, slow, stop] = settings.level0_triggers;
        (api.rocksdb_options_set_level0_file_num_compaction_trigger)(options, compact);
        (api.rocksdb_options_set_level0_slowdown_writes_trigger)(options, slow);
        (api.rocksdb_options_set_level0_stop_writes_trigger)(options, stop);
        (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(options, 1);
        (api.rocksdb_options_set_max_background_jobs)(options, settings.max_background_jobs);
        (api.rocksdb_options_set_compression)(options, settings.compression);
        let direct = u8::from(settings.direct_io);
        (api.rocksdb_options_set_use_direct_reads)(options, direct);
        (api.rocksdb_options_set_use_direct_io_for_flush_and_compaction)(options, direct);
        (api.rocksdb_options_set_bytes_per_sync)(options, if settings.direct_io { 0 } else { 1 << 20 });
        if settings.vector_memtable {
            (api.rocksdb_options_set_memtable_vector_rep)(options);
            (api.rocksdb_options_set_allow_concurrent_memtable_write)(options, 0);
        }
        let table = (api.rocksdb_block_based_options_create)();
        (api.rocksdb_block_based_options_set_block_size)(table, settings.block_size);
        (api.rocksdb_block_based_options_set_block_cache)(table, cache);
        (api.rocksdb_block_based_options_set_cache_index_and_filter_blocks)(table, 1);
        (api.rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(table, 1);
        if settings.bloom_bits > 0.0 {
            let bits = settings.bloom_bits;
            let policy = (api.rocksdb_filterpolicy_create_bloom_full)(bits.round() as c_int, bits);
            (api.rocksdb_block_based_options_set_filter_policy)(table, policy);
        }
        (api.rocksdb_options_set_block_based_table_factory)(options, table);
        (api.rocksdb_block_based_options_destroy)(table);
        options
    }
}

#[allow(unsafe_code, reason = "reads and frees the engine's message")]
#[inline]
fn take_error(api: &RocksApi, error: *mut libc::c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a NUL-terminated message malloc'ed by the engine.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        (api.rocksdb_free)(error.cast());
        Err(text)
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            self.writes.iter().for_each(|options| (self.api.rocksdb_writeoptions_destroy)(options.0));
            (self.api.rocksdb_readoptions_destroy)(self.read.0);
            (self.api.rocksdb_close)(self.db.0);
            (self.api.rocksdb_options_destroy)(self.options.0);
            (self.api.rocksdb_cache_destroy)(self.cache.0);
        }
    }
}

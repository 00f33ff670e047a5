//! The settings that a database is opened with: plain data, and the engine's options object made of them.
//!
//! ```text
//! OpenOptions -> setters of the C API -> `wanted`, each if the library knows it -> merge operator -> the target's text
//! ```
//! Later settings win. Settings that have a setter in every version go by setters; the rest goes as text.
//! Next: `database.rs`.

use crate::database::take_error;
use crate::ffi::{Object, RocksApi};
use libc::c_int;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::ptr::null_mut;

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
    /// O_DIRECT for reads.
    pub direct_io: bool,
    /// O_DIRECT for flush and compaction; `None`: as for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_writes: Option<bool>,
    /// RocksDB's vector memtable, for ascending loads.
    pub vector_memtable: bool,
    /// An LRU block cache even where the library has a better one.
    #[serde(default)]
    pub lru_cache: bool,
    /// Merge operator, by the name RocksDB registers it under; empty: none.
    #[serde(default)]
    pub merge_operator: String,
    /// Sizes of levels follow that of the last one.
    #[serde(default = "yes")]
    pub dynamic_levels: bool,
    /// Where blocks of indexes and filters live.
    #[serde(default)]
    pub index: IndexBlocks,
    /// Levels above this one are not compressed; `None`: all are.
    #[serde(default)]
    pub min_level_to_compress: Option<i32>,
    /// RocksDB's number of the last level's codec; `None`: that of the others.
    #[serde(default)]
    pub bottommost_compression: Option<i32>,
    /// Bytes of the prefix of keys that the engine is told of; 0: none.
    #[serde(default)]
    pub prefix_size: usize,
    /// Values in blob files are cached, in the block cache.
    #[serde(default)]
    pub blob_cache: bool,
    /// Options as text that old libraries do not know; each is left out where it is refused.
    #[serde(default)]
    pub wanted: Vec<String>,
    /// All but the block cache, the merge operator and the target's text is as the engine has it by itself.
    #[serde(default)]
    pub defaults: bool,
}

impl OpenOptions {
    /// Whether flush and compaction go past the page cache.
    pub fn writes_directly(&self) -> bool {
        self.direct_writes.unwrap_or(self.direct_io)
    }
}

fn yes() -> bool {
    true
}

/// Where blocks of indexes and filters live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IndexBlocks {
    /// In the block cache; else each open table keeps its own.
    pub cached: bool,
    /// Those of L0 stay there.
    pub pin_l0: bool,
    /// Bytes of a part, if each is split in parts under an index that stays in the cache.
    pub partition_bytes: Option<u64>,
}

impl Default for IndexBlocks {
    fn default() -> IndexBlocks {
        IndexBlocks { cached: true, pin_l0: true, partition_bytes: None }
    }
}

/// The text of the table option `name`, beside what other options of tables say.
pub fn table_option(name: &str, value: &str) -> String {
    format!("block_based_table_factory={{{name}={value}}}")
}

/// Options and cache of a database that is not open yet; destroyed unless kept.
pub(crate) struct Opening {
    api: RocksApi,
    pub(crate) options: Object,
    cache: Object,
    /// Whether keys can be merged, or why not.
    pub(crate) merges: Result<(), String>,
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Opening {
    pub(crate) fn new(api: RocksApi, settings: &OpenOptions, text: &str) -> Result<Opening, String> {
        // SAFETY: objects are created here; `drop` destroys what is not kept.
        unsafe {
            let cache = match api.rocksdb_cache_create_hyper_clock {
                Some(create) if !settings.lru_cache => {
                    create(settings.cache_size, entry_charge(&api, settings))
                }
                _ => (api.rocksdb_cache_create_lru)(settings.cache_size),
            };
            let merges = Err("no merge operator was asked for".to_string());
            let mut opening = Opening { api, options: build_options(&api, settings, cache), cache, merges };
            for text in settings.wanted.iter().filter(|_| !settings.defaults) {
                // A library that does not know it is measured without it, as RocksDB's scripts do.
                let _ = apply_text(&api, opening.options, text);
            }
            if !settings.merge_operator.is_empty() {
                opening.merges = set_merge_operator(&api, opening.options, &settings.merge_operator);
            }
            apply_text(&api, opening.options, text)?;
            Ok(opening)
        }
    }

    /// The options and the cache, now the caller's.
    pub(crate) fn keep(self) -> (Object, Object) {
        let mut opening = std::mem::ManuallyDrop::new(self);
        drop(std::mem::replace(&mut opening.merges, Ok(())));
        (opening.options, opening.cache)
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Drop for Opening {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once; a database that uses them holds references of its own.
        unsafe {
            (self.api.rocksdb_options_destroy)(self.options);
            (self.api.rocksdb_cache_destroy)(self.cache);
        }
    }
}

/// Whether the engine understands `text` on top of `settings`; nothing is opened.
///
/// # Errors
/// The engine's words.
pub fn check_options(api: RocksApi, settings: &OpenOptions, text: &str) -> Result<(), String> {
    Opening::new(api, settings, text).map(drop)
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

pub(crate) const NO_MERGE: &str = "the library has no function rocksdb_merge";

/// Sets the merge operator of a name: as text, which libraries since about 6.20 take, or by the one function that the C
/// API has for it. The message of a failure says what is lacking: nothing else is wrong then.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn set_merge_operator(api: &RocksApi, options: Object, name: &str) -> Result<(), String> {
    if api.rocksdb_merge.is_none() {
        return Err(NO_MERGE.to_string());
    }
    // SAFETY: the caller's object.
    unsafe {
        match (apply_text(api, options, &format!("merge_operator={name}")), name) {
            (Ok(()), _) => Ok(()),
            (Err(why), "uint64add") => {
                let set = api.rocksdb_options_set_uint64add_merge_operator.ok_or(why)?;
                set(options);
                Ok(())
            }
            (Err(why), _) => Err(format!("no merge operator {name}: {why}")),
        }
    }
}

/// The options object of `settings`.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn build_options(api: &RocksApi, settings: &OpenOptions, cache: Object) -> Object {
    // SAFETY: objects are created here.
    unsafe {
        let options = (api.rocksdb_options_create)();
        (api.rocksdb_options_set_create_if_missing)(options, 1);
        let table = (api.rocksdb_block_based_options_create)();
        (api.rocksdb_block_based_options_set_block_cache)(table, cache);
        if !settings.defaults {
            set_tree(api, options, settings);
            set_table(api, table, settings);
        }
        (api.rocksdb_options_set_block_based_table_factory)(options, table);
        (api.rocksdb_block_based_options_destroy)(table);
        if let Some(set) = api.rocksdb_options_set_blob_cache.filter(|_| settings.blob_cache) {
            set(options, cache);
        }
        options
    }
}

/// Memtables, levels, files.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn set_tree(api: &RocksApi, options: Object, settings: &OpenOptions) {
    // SAFETY: the caller's object.
    unsafe {
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
        (api.rocksdb_options_set_level_compaction_dynamic_level_bytes)(
            options,
            settings.dynamic_levels.into(),
        );
        (api.rocksdb_options_set_max_background_jobs)(options, settings.max_background_jobs);
        set_compression(api, options, settings);
        let direct = settings.writes_directly();
        (api.rocksdb_options_set_use_direct_reads)(options, settings.direct_io.into());
        (api.rocksdb_options_set_use_direct_io_for_flush_and_compaction)(options, direct.into());
        (api.rocksdb_options_set_bytes_per_sync)(options, if direct { 0 } else { 1 << 20 });
        if settings.vector_memtable {
            (api.rocksdb_options_set_memtable_vector_rep)(options);
            (api.rocksdb_options_set_allow_concurrent_memtable_write)(options, 0);
        }
        if let (Some(set), Some(create)) =
            (api.rocksdb_options_set_prefix_extractor, api.rocksdb_slicetransform_create_fixed_prefix)
            && settings.prefix_size > 0
        {
            set(options, create(settings.prefix_size));
        }
    }
}

/// Blocks, indexes, filters.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn set_table(api: &RocksApi, table: Object, settings: &OpenOptions) {
    // SAFETY: the caller's object; the filter policy's ownership passes to it.
    unsafe {
        (api.rocksdb_block_based_options_set_block_size)(table, settings.block_size);
        set_index_blocks(api, table, &settings.index);
        if settings.bloom_bits > 0.0 {
            let bits = settings.bloom_bits;
            let policy = (api.rocksdb_filterpolicy_create_bloom_full)(bits.round() as c_int, bits);
            (api.rocksdb_block_based_options_set_filter_policy)(table, policy);
        }
    }
}

/// Bytes that a hyper clock cache is to expect of an entry; 0: it finds out, which libraries can that also wait for
/// compaction, from RocksDB 8.6 on.
fn entry_charge(api: &RocksApi, settings: &OpenOptions) -> usize {
    if api.rocksdb_wait_for_compact.is_some() { 0 } else { settings.block_size }
}

/// Codecs by level. Text could say this too, but not in the oldest versions.
#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn set_compression(api: &RocksApi, options: Object, settings: &OpenOptions) {
    // SAFETY: the caller's object.
    unsafe {
        (api.rocksdb_options_set_compression)(options, settings.compression);
        // It looks at the codec and the number of levels, which are set by now.
        if let (Some(set), Some(level)) =
            (api.rocksdb_options_set_min_level_to_compress, settings.min_level_to_compress)
        {
            set(options, level.clamp(0, settings.num_levels));
        }
        if let (Some(set), Some(codec)) =
            (api.rocksdb_options_set_bottommost_compression, settings.bottommost_compression)
        {
            set(options, codec);
        }
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
unsafe fn set_index_blocks(api: &RocksApi, table: Object, index: &IndexBlocks) {
    /// `rocksdb_block_based_table_index_type_two_level_index_search`.
    const TWO_LEVELS: c_int = 2;
    // SAFETY: the caller's object.
    unsafe {
        (api.rocksdb_block_based_options_set_cache_index_and_filter_blocks)(table, index.cached.into());
        (api.rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)(
            table,
            index.pin_l0.into(),
        );
        let Some(bytes) = index.partition_bytes else { return };
        if let (Some(set_type), Some(set_filters), Some(set_bytes), Some(pin)) = (
            api.rocksdb_block_based_options_set_index_type,
            api.rocksdb_block_based_options_set_partition_filters,
            api.rocksdb_block_based_options_set_metadata_block_size,
            api.rocksdb_block_based_options_set_pin_top_level_index_and_filter,
        ) {
            set_type(table, TWO_LEVELS);
            set_filters(table, 1);
            set_bytes(table, bytes);
            pin(table, 1);
        }
    }
}

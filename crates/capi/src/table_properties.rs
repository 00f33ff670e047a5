//! `rocksdb_table_properties_*`: the properties of a table, as listeners and table filters get them.
//!
//! Every property is looked up by its name in the table. Properties that have no name of RocksDB's were put there
//! by collectors.

use crate::settings::Flag;
use libc::{c_char, size_t};
use outcrop::TableProperties;
use std::collections::BTreeMap;

/// The properties of one table. Texts it gives live as long as it does.
pub struct rocksdb_table_properties_t {
    all: BTreeMap<String, Vec<u8>>,
    /// Those of collectors, in the order of their names.
    collected: Vec<(Vec<u8>, Vec<u8>)>,
}

impl rocksdb_table_properties_t {
    pub fn new(properties: &TableProperties) -> rocksdb_table_properties_t {
        let all = properties.to_pairs(0);
        let is_collected = |name: &str| !NUMBERS.contains(&name) && !TEXTS.contains(&name);
        let collected = all.iter().filter(|(name, _)| is_collected(name));
        let collected = collected.map(|(name, value)| (name.clone().into_bytes(), value.clone())).collect();
        rocksdb_table_properties_t { all, collected }
    }

    /// No table's: everything is 0 or empty.
    pub(crate) fn none() -> rocksdb_table_properties_t {
        rocksdb_table_properties_t { all: BTreeMap::new(), collected: Vec::new() }
    }

    fn number(&self, name: &str) -> Option<u64> {
        let (mut number, mut shift) = (0u64, 0u32);
        for byte in self.all.get(name)? {
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
        None
    }

    fn text(&self, name: &str) -> &[u8] {
        self.all.get(name).map_or(&[], |text| text)
    }
}

/// Gives `bytes` to C, which owns nothing of them.
pub(crate) unsafe fn lend(bytes: &[u8], size: *mut size_t) -> *const c_char {
    // SAFETY: the caller passes a place for the length, or null.
    if let Some(size) = unsafe { size.as_mut() } {
        *size = bytes.len();
    }
    bytes.as_ptr().cast()
}

/// Numbers: function, name, and what it is where the table does not say.
macro_rules! numbers {
    ($($function:ident $name:literal $default:expr;)*) => {
        /// Names of numbers.
        const NUMBERS: &[&str] = &[$($name),*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(properties: *const rocksdb_table_properties_t) -> u64 {
                boundary!((*properties).number($name).unwrap_or($default))
            }
        )*
    };
}

/// Texts: function and name.
macro_rules! texts {
    ($($function:ident $name:literal;)*) => {
        /// Names of texts.
        const TEXTS: &[&str] = &[$($name),*];

        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(
                properties: *const rocksdb_table_properties_t,
                size: *mut size_t,
            ) -> *const c_char {
                boundary!(lend((*properties).text($name), size))
            }
        )*
    };
}

numbers! {
    rocksdb_table_properties_column_family_id "rocksdb.column.family.id" 0;
    rocksdb_table_properties_creation_time "rocksdb.creation.time" 0;
    rocksdb_table_properties_data_block_restart_interval "rocksdb.data.block.restart.interval" 0;
    rocksdb_table_properties_data_size "rocksdb.data.size" 0;
    rocksdb_table_properties_fast_compression_estimated_data_size "rocksdb.sample_for_compression.fast.data.size" 0;
    rocksdb_table_properties_file_creation_time "rocksdb.file.creation.time" 0;
    rocksdb_table_properties_filter_size "rocksdb.filter.size" 0;
    rocksdb_table_properties_fixed_key_len "rocksdb.fixed.key.length" 0;
    rocksdb_table_properties_format_version "rocksdb.format.version" 0;
    rocksdb_table_properties_index_block_restart_interval "rocksdb.index.block.restart.interval" 0;
    rocksdb_table_properties_index_key_is_user_key "rocksdb.index.key.is.user.key" 0;
    rocksdb_table_properties_index_partitions "rocksdb.index.partitions" 0;
    rocksdb_table_properties_index_size "rocksdb.index.size" 0;
    rocksdb_table_properties_index_value_is_delta_encoded "rocksdb.index.value.is.delta.encoded" 0;
    rocksdb_table_properties_key_largest_seqno "rocksdb.key.largest.seqno" u64::MAX;
    rocksdb_table_properties_key_smallest_seqno "rocksdb.key.smallest.seqno" u64::MAX;
    rocksdb_table_properties_newest_key_time "rocksdb.newest.key.time" 0;
    rocksdb_table_properties_num_data_blocks "rocksdb.num.data.blocks" 0;
    rocksdb_table_properties_num_data_blocks_compression_bypassed "rocksdb.num.data.blocks.compression.bypassed" 0;
    rocksdb_table_properties_num_data_blocks_compression_rejected "rocksdb.num.data.blocks.compression.rejected" 0;
    rocksdb_table_properties_num_deletions "rocksdb.deleted.keys" 0;
    rocksdb_table_properties_num_entries "rocksdb.num.entries" 0;
    rocksdb_table_properties_num_filter_entries "rocksdb.num.filter_entries" 0;
    rocksdb_table_properties_num_merge_operands "rocksdb.merge.operands" 0;
    rocksdb_table_properties_num_range_deletions "rocksdb.num.range-deletions" 0;
    rocksdb_table_properties_num_uniform_blocks "rocksdb.num.uniform.blocks" 0;
    rocksdb_table_properties_oldest_key_time "rocksdb.oldest.key.time" 0;
    rocksdb_table_properties_orig_file_number "rocksdb.original.file.number" 0;
    rocksdb_table_properties_raw_key_size "rocksdb.raw.key.size" 0;
    rocksdb_table_properties_raw_value_size "rocksdb.raw.value.size" 0;
    rocksdb_table_properties_separate_key_value_in_data_block "rocksdb.separate.key.value.in.data.block" 0;
    rocksdb_table_properties_slow_compression_estimated_data_size "rocksdb.sample_for_compression.slow.data.size" 0;
    rocksdb_table_properties_tail_start_offset "rocksdb.tail.start.offset" 0;
    rocksdb_table_properties_top_level_index_size "rocksdb.top-level.index.size" 0;
    rocksdb_table_properties_udi_is_primary_index "rocksdb.udi.is.primary.index" 0;
    rocksdb_table_properties_uncompressed_data_size "rocksdb.uncompressed.data.size" 0;
    rocksdb_table_properties_user_defined_timestamps_persisted "rocksdb.user.defined.timestamps.persisted" 1;
}

texts! {
    rocksdb_table_properties_column_family_name "rocksdb.column.family.name";
    rocksdb_table_properties_comparator_name "rocksdb.comparator";
    rocksdb_table_properties_compression_name "rocksdb.compression";
    rocksdb_table_properties_compression_options "rocksdb.compression_options";
    rocksdb_table_properties_db_host_id "rocksdb.creating.host.identity";
    rocksdb_table_properties_db_id "rocksdb.creating.db.identity";
    rocksdb_table_properties_db_session_id "rocksdb.creating.session.identity";
    rocksdb_table_properties_filter_policy_name "rocksdb.filter.policy";
    rocksdb_table_properties_merge_operator_name "rocksdb.merge.operator";
    rocksdb_table_properties_prefix_extractor_name "rocksdb.prefix.extractor.name";
    rocksdb_table_properties_property_collectors_names "rocksdb.property.collectors";
    rocksdb_table_properties_seqno_to_time_mapping "rocksdb.seqno.time.map";
}

/// Not used by RocksDB's own properties either: a file made for ingestion says its number itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_external_sst_file_global_seqno_offset(
    _properties: *const rocksdb_table_properties_t,
) -> u64 {
    boundary!(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_has_key_largest_seqno(
    properties: *const rocksdb_table_properties_t,
) -> Flag {
    boundary!(Flag::from(
        (*properties).number("rocksdb.key.largest.seqno").is_some_and(|seq| seq != u64::MAX)
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_has_key_smallest_seqno(
    properties: *const rocksdb_table_properties_t,
) -> Flag {
    boundary!(Flag::from(
        (*properties).number("rocksdb.key.smallest.seqno").is_some_and(|seq| seq != u64::MAX)
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_user_collected_properties_count(
    properties: *const rocksdb_table_properties_t,
) -> size_t {
    boundary!((*properties).collected.len())
}

/// The name or the value at `place`; null, of length 0, past the end.
unsafe fn pair_at(
    pairs: &[(Vec<u8>, Vec<u8>)],
    place: size_t,
    size: *mut size_t,
    part: impl Fn(&(Vec<u8>, Vec<u8>)) -> &[u8],
) -> *const c_char {
    // SAFETY: the caller passes a place for the length, or null.
    unsafe {
        match pairs.get(place) {
            Some(pair) => lend(part(pair), size),
            None => {
                lend(&[], size);
                std::ptr::null()
            }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_user_collected_properties_key_at(
    properties: *const rocksdb_table_properties_t,
    place: size_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!(pair_at(&(*properties).collected, place, size, |pair| &pair.0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_user_collected_properties_value_at(
    properties: *const rocksdb_table_properties_t,
    place: size_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!(pair_at(&(*properties).collected, place, size, |pair| &pair.1))
}

/// Collectors here, and those that C programs can write, have nothing for people to read beside their properties.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_readable_properties_count(
    _properties: *const rocksdb_table_properties_t,
) -> size_t {
    boundary!(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_readable_properties_key_at(
    _properties: *const rocksdb_table_properties_t,
    place: size_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!(pair_at(&[], place, size, |pair| &pair.0))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_table_properties_readable_properties_value_at(
    _properties: *const rocksdb_table_properties_t,
    place: size_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!(pair_at(&[], place, size, |pair| &pair.1))
}

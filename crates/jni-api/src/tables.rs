//! `TableProperties`, and the properties of a database's tables.

use crate::env::Env;
use crate::glue::{Answer, bytes_at, object};
use crate::slices::JavaSlice;
use jni_sys::{jlong, jobject, jvalue};
use outcrop::TableProperties;
use outcrop_capi as c;
use outcrop_capi::{rocksdb_column_family_handle_t, rocksdb_table_properties_t};
use std::ptr::null_mut;

/// Numbers of a table, in the order in which RocksJava's class takes them.
const NUMBERS: [unsafe extern "C" fn(*const rocksdb_table_properties_t) -> u64; 22] = [
    c::rocksdb_table_properties_data_size,
    c::rocksdb_table_properties_index_size,
    c::rocksdb_table_properties_index_partitions,
    c::rocksdb_table_properties_top_level_index_size,
    c::rocksdb_table_properties_index_key_is_user_key,
    c::rocksdb_table_properties_index_value_is_delta_encoded,
    c::rocksdb_table_properties_filter_size,
    c::rocksdb_table_properties_raw_key_size,
    c::rocksdb_table_properties_raw_value_size,
    c::rocksdb_table_properties_num_data_blocks,
    c::rocksdb_table_properties_num_entries,
    c::rocksdb_table_properties_num_deletions,
    c::rocksdb_table_properties_num_merge_operands,
    c::rocksdb_table_properties_num_range_deletions,
    c::rocksdb_table_properties_format_version,
    c::rocksdb_table_properties_fixed_key_len,
    c::rocksdb_table_properties_column_family_id,
    c::rocksdb_table_properties_creation_time,
    c::rocksdb_table_properties_oldest_key_time,
    c::rocksdb_table_properties_slow_compression_estimated_data_size,
    c::rocksdb_table_properties_fast_compression_estimated_data_size,
    c::rocksdb_table_properties_external_sst_file_global_seqno_offset,
];

/// The same of its texts, after the column family's name; an empty one is null, as in RocksJava.
const TEXTS: [unsafe extern "C" fn(
    *const rocksdb_table_properties_t,
    *mut usize,
) -> *const std::ffi::c_char; 6] = [
    c::rocksdb_table_properties_filter_policy_name,
    c::rocksdb_table_properties_comparator_name,
    c::rocksdb_table_properties_merge_operator_name,
    c::rocksdb_table_properties_prefix_extractor_name,
    c::rocksdb_table_properties_property_collectors_names,
    c::rocksdb_table_properties_compression_name,
];

/// `org.rocksdb.TableProperties`.
pub(crate) fn properties(env: Env, of: &TableProperties) -> Answer<jobject> {
    let own = rocksdb_table_properties_t::new(of);
    properties_of(env, &own)
}

/// The same of an object of C's.
pub(crate) fn properties_of(env: Env, own: &rocksdb_table_properties_t) -> Answer<jobject> {
    // SAFETY: see `glue`.
    unsafe {
        let text = |get: unsafe extern "C" fn(*const rocksdb_table_properties_t, *mut usize) -> *const _| {
            let mut len = 0;
            let start = get(own, &mut len);
            bytes_at(start, len)
        };
        let mut arguments: Vec<jvalue> =
            NUMBERS.iter().map(|number| jvalue { j: number(own) as jlong }).collect();
        let family = env.new_bytes(text(c::rocksdb_table_properties_column_family_name))?;
        arguments.push(jvalue { l: family });
        for get in TEXTS {
            let text = String::from_utf8_lossy(text(get));
            arguments.push(jvalue { l: if text.is_empty() { null_mut() } else { env.new_text(&text)? } });
        }
        let collected = (0..c::rocksdb_table_properties_user_collected_properties_count(own)).map(|place| {
            let (mut key_len, mut value_len) = (0, 0);
            let key = c::rocksdb_table_properties_user_collected_properties_key_at(own, place, &mut key_len);
            let value =
                c::rocksdb_table_properties_user_collected_properties_value_at(own, place, &mut value_len);
            let text = |start, len| env.new_text(&String::from_utf8_lossy(bytes_at(start, len)));
            Ok((text(key, key_len)?, text(value, value_len)?))
        });
        arguments.push(jvalue { l: env.new_map(collected)? });
        arguments.push(jvalue { l: env.new_map([])? });
        let string = "Ljava/lang/String;".repeat(TEXTS.len());
        let signature = format!("({}[B{string}Ljava/util/Map;Ljava/util/Map;)V", "J".repeat(NUMBERS.len()));
        env.new_object("org/rocksdb/TableProperties", &signature, &arguments)
    }
}

/// The tables of a column family by their paths; of ranges, which are given as handles of slices, begin and end of each.
pub(crate) fn of_family(env: Env, (db, family): (jlong, jlong), ranges: Option<jobject>) -> Answer<jobject> {
    let slices = ranges.map_or(Ok(Vec::new()), |ranges| env.longs(ranges))?;
    let bytes = |slice: jlong| object::<JavaSlice>(slice).bytes();
    let pairs: Vec<(&[u8], &[u8])> =
        slices.chunks_exact(2).map(|pair| (bytes(pair[0]), bytes(pair[1]))).collect();
    let family = &object::<rocksdb_column_family_handle_t>(crate::db::family(db, family) as jlong).0;
    let found = crate::db::engine(db).properties_of_tables_cf(family, ranges.map(|_| &pairs[..]))?;
    env.new_map(
        found
            .iter()
            .map(|(path, table)| Ok((env.new_text(&path.to_string_lossy())?, properties(env, table)?))),
    )
}

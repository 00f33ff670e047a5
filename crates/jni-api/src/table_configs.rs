//! `BlockBasedTableConfig` from options, as `OptionsUtil` puts it beside what an OPTIONS file says.

use crate::env::{Env, jni};
use crate::glue::{Answer, handle, object};
use jni_sys::{jlong, jobject, jvalue};
use outcrop::FilterPolicy;
use outcrop::options::BlockBasedTableOptions;
use outcrop_capi::rocksdb_options_t;
use outcrop_options::kept::TABLE_KEPT;

/// RocksJava's numbers of filters.
const BLOOM: i8 = 1;
const NO_FILTER: i8 = 0;

/// An option that is only kept, with RocksDB's default where it was not set.
fn kept<'a>(table: &'a BlockBasedTableOptions, name: &str) -> &'a str {
    let default = TABLE_KEPT.iter().find(|row| row.name == name).map_or("", |row| row.default);
    table.kept.get(name).unwrap_or(default)
}

/// The config of the table options in an object of `ColumnFamilyOptions`.
pub(crate) fn read(env: Env, options: jlong) -> Answer<jobject> {
    let table = &object::<rocksdb_options_t>(options).cf.table;
    let flag = |name: &str| jvalue { z: kept(table, name) == "true" };
    let number = |name: &str| kept(table, name).parse::<jlong>().unwrap_or(0);
    let (filter, bits) = match table.filter_policy {
        FilterPolicy::Bloom { bits_per_key } | FilterPolicy::LegacyBloom { bits_per_key } => {
            (BLOOM, bits_per_key)
        }
        _ => (NO_FILTER, 0.0),
    };
    let filter_handle = if filter == BLOOM { handle(bits) } else { 0 };
    let start = vec![
        jvalue { z: table.cache_index_and_filter_blocks },
        flag("cache_index_and_filter_blocks_with_high_priority"),
        jvalue { z: table.pin_l0_filter_and_index_blocks_in_cache },
        flag("pin_top_level_index_and_filter"),
        jvalue { b: table.index_type as i8 },
        jvalue { b: table.data_block_index_type as i8 },
        jvalue { d: table.data_block_hash_table_util_ratio },
        jvalue { b: table.checksum as i8 },
        jvalue { z: table.no_block_cache },
        jvalue { j: table.block_size as jlong },
        jvalue { i: table.block_size_deviation },
        jvalue { i: table.block_restart_interval },
        jvalue { i: table.index_block_restart_interval },
        jvalue { j: table.metadata_block_size as jlong },
        jvalue { z: table.partition_filters },
        flag("optimize_filters_for_memory"),
        jvalue { z: table.use_delta_encoding },
        jvalue { z: table.whole_key_filtering },
        jvalue { z: table.verify_compression },
        jvalue { i: table.read_amp_bytes_per_bit as i32 },
        jvalue { i: table.format_version as i32 },
    ];
    let end = [
        jvalue { b: table.index_shortening as i8 },
        jvalue { b: filter },
        jvalue { j: filter_handle },
        jvalue { d: bits },
    ];
    let older = [jvalue { z: table.enable_index_compression }, jvalue { z: table.block_align }];
    let class = "org/rocksdb/BlockBasedTableConfig";
    let arguments: Vec<jvalue> = start.iter().chain(&older).chain(&end).copied().collect();
    let made = env.new_object(class, "(ZZZZBBDBZJIIIJZZZZZIIZZBBJD)V", &arguments);
    if made.is_ok() {
        return made;
    }
    // A jar that came after 10.4 has five options more.
    jni!(env, ExceptionClear);
    let [shortening, rest @ ..] = &end;
    let (searches, search) = (["kBinary", "kInterpolation", "kAuto"], kept(table, "index_block_search_type"));
    let newer = [
        jvalue { z: table.separate_key_value_in_data_block },
        jvalue { d: kept(table, "uniform_cv_threshold").parse().unwrap_or(-1.0) },
        jvalue { z: table.enable_index_compression },
        jvalue { z: table.block_align },
        jvalue { j: number("super_block_alignment_size") },
        jvalue { j: number("super_block_alignment_space_overhead_ratio") },
        *shortening,
        jvalue { b: searches.iter().position(|word| *word == search).unwrap_or(0) as i8 },
    ];
    let arguments: Vec<jvalue> = start.iter().chain(&newer).chain(rest).copied().collect();
    env.new_object(class, "(ZZZZBBDBZJIIIJZZZZZIIZDZZJJBBBJD)V", &arguments)
}

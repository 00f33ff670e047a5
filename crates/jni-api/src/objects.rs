//! Objects that options hold: comparators, merge operators, filters, tables, caches, environments, loggers.

use crate::callbacks::{Global, Method};
use crate::env::{Env, jni};
use crate::glue::{Answer, Thrown, bytes_at, c_text, dispose, handle, illegal, not_implemented, object};
use jni_sys::{jboolean, jbyte, jdouble, jint, jlong, jobject, jvalue};
use outcrop::{
    Cache, CacheOptions, CompactionFilter, Comparator, FilterDecision, Lane, MergeOperator, Scheduler,
    UserComparator,
};
use outcrop_base::builtin_merge::{self, StringAppend};
use outcrop_capi as c;
use outcrop_capi::{rocksdb_cache_t, rocksdb_options_t};
use std::any::Any;
use std::cmp::Ordering;
use std::ffi::{c_char, c_uint, c_void};
use std::sync::Arc;

/// The object behind the handle of a `RocksCallbackObject`: all are disposed by the same native.
pub(crate) type Callback = Box<dyn Any>;

pub(crate) fn dispose_callback(callback: jlong) -> Answer<()> {
    dispose::<Callback>(callback)
}

pub(crate) fn callback<'a, T: 'static>(handle: jlong) -> Answer<&'a T> {
    object::<Callback>(handle).downcast_ref().ok_or_else(|| illegal("an object of another class"))
}

/// `ComparatorOptions`. Buffers are made anew for each comparison, so that how they would be reused is only kept.
#[derive(Clone)]
pub(crate) struct ComparatorOptions {
    pub(crate) synchronisation: jbyte,
    pub(crate) direct: bool,
    pub(crate) max_reused: jint,
}

pub(crate) fn comparator_options() -> Answer<jlong> {
    Ok(handle(ComparatorOptions { synchronisation: 1, direct: true, max_reused: 64 }))
}

struct JavaComparator {
    object: Global,
    name: String,
    compare: Method,
}

impl UserComparator for JavaComparator {
    fn name(&self) -> &str {
        &self.name
    }

    /// # Panics
    /// If the comparator throws: the write group or the job fails then, and not the process.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let compared = self.object.run(|env, comparator| {
            let buffer = |bytes: &[u8]| {
                let start = bytes.as_ptr().cast_mut().cast();
                env.given(jni!(env, NewDirectByteBuffer, start, bytes.len() as jlong))
            };
            self.compare.call_int(env, comparator, &[jvalue { l: buffer(a)? }, jvalue { l: buffer(b)? }])
        });
        match compared {
            Some(compared) => compared.cmp(&0),
            None => panic!("the comparator {} threw an exception, or could not be called", self.name),
        }
    }
}

/// A comparator in Java, and whether its options want direct buffers, which it always gets.
pub(crate) struct Comparing(Arc<JavaComparator>, pub(crate) bool);

pub(crate) fn create_comparator(env: Env, this: jobject, options: jlong) -> Answer<jlong> {
    let name = env.call(this, "name", "()Ljava/lang/String;", &[])?;
    let signature = c"(Ljava/nio/ByteBuffer;Ljava/nio/ByteBuffer;)I";
    let compare = Method::of(env, this, c"compare", signature)?;
    let comparator = JavaComparator { object: Global::new(env, this)?, name: env.text(name)?, compare };
    let direct = object::<ComparatorOptions>(options).direct;
    Ok(handle::<Callback>(Box::new(Comparing(Arc::new(comparator), direct))))
}

/// The comparator behind a handle of kind `kind`, which is 0 for one in Java.
pub(crate) fn comparator(comparator: jlong, kind: jbyte) -> Answer<Comparator> {
    match kind {
        0 => Ok(Comparator::User(callback::<Comparing>(comparator)?.0.clone())),
        _ => not_implemented("NativeComparatorWrapper: comparators in C++"),
    }
}

pub(crate) fn set_comparator(options: jlong, own: jlong, kind: jbyte) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.comparator = comparator(own, kind)?;
    Ok(())
}

/// `BuiltinComparator` by its place.
pub(crate) fn set_builtin_comparator(options: jlong, place: jint) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.comparator =
        if place == 1 { Comparator::ReverseBytewise } else { Comparator::Bytewise };
    Ok(())
}

type Operator = Arc<dyn MergeOperator>;

/// By RocksDB's name; `None` for one that it does not know either.
pub(crate) fn merge_operator(name: &str) -> Answer<jlong> {
    let operator =
        builtin_merge::by_name(name).ok_or_else(|| illegal(format!("no merge operator {name}")))?;
    Ok(handle::<Operator>(operator))
}

/// `StringAppendOperator`. Of a delimiter that is a character RocksJava takes the low byte.
pub(crate) fn string_append(delimiter: Vec<u8>) -> Answer<jlong> {
    Ok(handle::<Operator>(Arc::new(StringAppend::new(delimiter))))
}

pub(crate) fn dispose_merge_operator(operator: jlong) -> Answer<()> {
    dispose::<Operator>(operator)
}

pub(crate) fn set_merge_operator(options: jlong, operator: jlong) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.merge_operator = Some(object::<Operator>(operator).clone());
    Ok(())
}

/// As RocksDB, which takes a name that it does not know for none.
pub(crate) fn set_merge_operator_name(env: Env, options: jlong, name: jobject) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.merge_operator = builtin_merge::by_name(&env.text(name)?);
    Ok(())
}

/// Removes keys whose values are empty.
struct RemoveEmptyValue;

impl CompactionFilter for RemoveEmptyValue {
    fn name(&self) -> &str {
        "RemoveEmptyValueCompactionFilter"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        if value.is_empty() { FilterDecision::Remove } else { FilterDecision::Keep }
    }
}

pub(crate) type Filter = Arc<dyn CompactionFilter>;

pub(crate) fn remove_empty_value() -> Answer<jlong> {
    Ok(handle::<Filter>(Arc::new(RemoveEmptyValue)))
}

pub(crate) fn dispose_filter(filter: jlong) -> Answer<()> {
    dispose::<Filter>(filter)
}

pub(crate) fn set_compaction_filter(options: jlong, filter: jlong) -> Answer<()> {
    object::<rocksdb_options_t>(options).parts.compaction_filter = Some(object::<Filter>(filter).clone());
    Ok(())
}

/// The fields of `BlockBasedTableConfig`, in the order of its native.
pub(crate) struct Table {
    pub(crate) cache_index: (jboolean, jboolean),
    pub(crate) pins: (jboolean, jboolean),
    pub(crate) index: (jbyte, jbyte, jdouble),
    pub(crate) checksum: jbyte,
    /// Whether there is none, its handle, and size and shard bits of one to be made.
    pub(crate) cache: (jboolean, jlong, jlong, jint),
    pub(crate) persistent_cache: jlong,
    pub(crate) block: (jlong, jint, jint, jint, jlong),
    pub(crate) filters: (jboolean, jboolean, jlong, jboolean),
    pub(crate) delta_encoding: jboolean,
    pub(crate) verify_compression: jboolean,
    pub(crate) read_amp: jint,
    pub(crate) format_version: jint,
    pub(crate) enable_index_compression: jboolean,
    pub(crate) block_align: jboolean,
    pub(crate) index_shortening: jbyte,
    pub(crate) newer: Option<Newer>,
}

/// Fields that came after 10.4.
pub(crate) struct Newer {
    pub(crate) separate_key_value: jboolean,
    pub(crate) uniform_cv_threshold: jdouble,
    pub(crate) super_block: (jlong, jlong),
    pub(crate) index_search: jbyte,
}

/// The C object of a table's options.
pub(crate) fn table(table: &Table) -> Answer<jlong> {
    use outcrop_capi::settings::Flag;
    if table.persistent_cache != 0 {
        return not_implemented("PersistentCache");
    }
    let flag = |set: jboolean| Flag(set.into());
    // SAFETY: see `glue`.
    unsafe {
        let own = c::rocksdb_block_based_options_create();
        c::rocksdb_block_based_options_set_cache_index_and_filter_blocks(own, flag(table.cache_index.0));
        c::rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(
            own,
            flag(table.cache_index.1),
        );
        c::rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(own, flag(table.pins.0));
        c::rocksdb_block_based_options_set_pin_top_level_index_and_filter(own, flag(table.pins.1));
        c::rocksdb_block_based_options_set_index_type(own, table.index.0.into());
        c::rocksdb_block_based_options_set_data_block_index_type(own, table.index.1.into());
        c::rocksdb_block_based_options_set_data_block_hash_ratio(own, table.index.2);
        c::rocksdb_block_based_options_set_checksum(own, table.checksum as c_char);
        match table.cache {
            (false, 0, size @ 0.., _) => {
                let cache = c::rocksdb_cache_create_lru(size as usize);
                c::rocksdb_block_based_options_set_block_cache(own, cache);
                c::rocksdb_cache_destroy(cache);
            }
            (true, ..) | (false, 0, ..) => c::rocksdb_block_based_options_set_no_block_cache(own, Flag(1)),
            (false, cache, ..) => c::rocksdb_block_based_options_set_block_cache(own, cache as *mut _),
        }
        c::rocksdb_block_based_options_set_block_size(own, table.block.0 as usize);
        c::rocksdb_block_based_options_set_block_size_deviation(own, table.block.1);
        c::rocksdb_block_based_options_set_block_restart_interval(own, table.block.2);
        c::rocksdb_block_based_options_set_index_block_restart_interval(own, table.block.3);
        c::rocksdb_block_based_options_set_metadata_block_size(own, table.block.4 as u64);
        c::rocksdb_block_based_options_set_partition_filters(own, flag(table.filters.0));
        c::rocksdb_block_based_options_set_optimize_filters_for_memory(own, flag(table.filters.1));
        if table.filters.2 != 0 {
            let bits = *object::<f64>(table.filters.2);
            c::rocksdb_block_based_options_set_filter_policy(own, c::rocksdb_filterpolicy_create_bloom(bits));
        }
        c::rocksdb_block_based_options_set_whole_key_filtering(own, flag(table.filters.3));
        c::rocksdb_block_based_options_set_use_delta_encoding(own, flag(table.delta_encoding));
        c::rocksdb_block_based_options_set_verify_compression(own, flag(table.verify_compression));
        c::rocksdb_block_based_options_set_read_amp_bytes_per_bit(own, table.read_amp as u32);
        c::rocksdb_block_based_options_set_format_version(own, table.format_version);
        c::rocksdb_block_based_options_set_enable_index_compression(
            own,
            flag(table.enable_index_compression),
        );
        c::rocksdb_block_based_options_set_block_align(own, flag(table.block_align));
        c::rocksdb_block_based_options_set_index_shortening(own, table.index_shortening.into());
        if let Some(newer) = &table.newer {
            c::rocksdb_block_based_options_set_separate_key_value_in_data_block(
                own,
                flag(newer.separate_key_value),
            );
            c::rocksdb_block_based_options_set_uniform_cv_threshold(own, newer.uniform_cv_threshold);
            c::rocksdb_block_based_options_set_super_block_alignment_size(own, newer.super_block.0 as usize);
            c::rocksdb_block_based_options_set_super_block_alignment_space_overhead_ratio(
                own,
                newer.super_block.1 as usize,
            );
            c::rocksdb_block_based_options_set_index_block_search_type(own, newer.index_search.into());
        }
        Ok(own as jlong)
    }
}

/// Takes the handle of [`table`] over, as RocksDB's option does.
pub(crate) fn set_table(options: jlong, table: jlong) -> Answer<()> {
    // SAFETY: see `glue`.
    unsafe {
        c::rocksdb_options_set_block_based_table_factory(options as *mut _, table as *mut _);
        c::rocksdb_block_based_options_destroy(table as *mut _);
    }
    Ok(())
}

/// A block cache of any of RocksJava's classes. Sizes are bytes; as in RocksDB they are not negative.
pub(crate) fn cache(capacity: jlong, entry: jlong, strict: jboolean) -> Answer<jlong> {
    let bytes = |size: jlong| usize::try_from(size).map_err(|_| illegal("a size is negative"));
    let options = CacheOptions { capacity: bytes(capacity)?, estimated_entry_charge: bytes(entry)? };
    let cache = Cache::new(options);
    cache.set_strict_capacity_limit(strict);
    Ok(handle(rocksdb_cache_t(cache)))
}

/// As many threads of a pool as there are, or `threads` if that is more.
pub(crate) fn raise_threads(env: jlong, wanted: jint, priority: jbyte) -> Answer<()> {
    if wanted > threads(env, priority)? { set_threads(env, wanted, priority) } else { Ok(()) }
}

/// The lane behind a pool; `priority` is RocksJava's.
fn lane(priority: jbyte) -> Option<Lane> {
    match priority {
        // No thread is of the bottom pool.
        0 => None,
        2 => Some(Lane::Flush),
        _ => Some(Lane::Compaction),
    }
}

fn scheduler<'a>(env: jlong) -> &'a Scheduler {
    &object::<c::rocksdb_env_t>(env).0.scheduler
}

pub(crate) fn lower_cpu_priority(env: jlong, priority: jbyte) -> Answer<()> {
    lane(priority).into_iter().for_each(|lane| scheduler(env).lower_cpu_priority(lane));
    Ok(())
}

pub(crate) fn lower_io_priority(env: jlong, priority: jbyte) -> Answer<()> {
    lane(priority).into_iter().for_each(|lane| scheduler(env).lower_io_priority(lane));
    Ok(())
}

/// Databases that wait for a thread of the pool.
pub(crate) fn waiting(env: jlong, priority: jbyte) -> Answer<usize> {
    Ok(lane(priority).map_or(0, |lane| scheduler(env).waiting(lane)))
}

/// The number of threads of a pool; `priority` is RocksJava's.
pub(crate) fn set_threads(env: jlong, threads: jint, priority: jbyte) -> Answer<()> {
    let env = env as *mut c::rocksdb_env_t;
    // SAFETY: see `glue`.
    unsafe {
        match priority {
            0 => c::rocksdb_env_set_bottom_priority_background_threads(env, threads),
            2 => c::rocksdb_env_set_high_priority_background_threads(env, threads),
            _ => c::rocksdb_env_set_background_threads(env, threads),
        }
    }
    Ok(())
}

pub(crate) fn threads(env: jlong, priority: jbyte) -> Answer<jint> {
    let env = env as *mut c::rocksdb_env_t;
    // SAFETY: see `glue`.
    Ok(unsafe {
        match priority {
            0 => c::rocksdb_env_get_bottom_priority_background_threads(env),
            2 => c::rocksdb_env_get_high_priority_background_threads(env),
            _ => c::rocksdb_env_get_background_threads(env),
        }
    })
}

/// A logger in Java.
pub(crate) struct JavaLogger {
    object: Global,
    level: std::sync::atomic::AtomicI8,
    /// The handle of C's, if it writes to standard error.
    pub(crate) standard: Option<jlong>,
}

pub(crate) fn create_logger(env: Env, this: jobject, level: jlong) -> Answer<jlong> {
    let logger =
        JavaLogger { object: Global::new(env, this)?, level: (level as jbyte).into(), standard: None };
    Ok(handle(Arc::new(logger)))
}

/// At the level that options have.
pub(crate) fn create_logger_of(env: Env, this: jobject, options: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    let level = unsafe { c::rocksdb_options_get_info_log_level(options as *mut _) };
    create_logger(env, this, level.into())
}

pub(crate) fn create_standard_logger(
    env: Env,
    this: jobject,
    level: jbyte,
    prefix: jobject,
) -> Answer<jlong> {
    let prefix = if prefix.is_null() { String::new() } else { env.text(prefix)? };
    // SAFETY: see `glue`.
    let own = unsafe { c::rocksdb_logger_create_stderr_logger(level.into(), c_text(prefix)?.as_ptr()) };
    let logger =
        JavaLogger { object: Global::new(env, this)?, level: level.into(), standard: Some(own as jlong) };
    Ok(handle(Arc::new(logger)))
}

pub(crate) fn logger_level(logger: jlong) -> Answer<jbyte> {
    Ok(object::<Arc<JavaLogger>>(logger).level.load(std::sync::atomic::Ordering::Relaxed))
}

pub(crate) fn set_logger_level(logger: jlong, level: jbyte) -> Answer<()> {
    object::<Arc<JavaLogger>>(logger).level.store(level, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

/// The logger is asked from any thread until the process ends: its Java object stays.
pub(crate) fn dispose_logger(logger: jlong) -> Answer<()> {
    dispose::<Arc<JavaLogger>>(logger)
}

/// The logger of C's. A database may log as long as it is open, and nobody says when the last has closed: the logger's reference stays.
fn c_logger(logger: jlong) -> *mut c::rocksdb_logger_t {
    let logger = object::<Arc<JavaLogger>>(logger).clone();
    match logger.standard {
        Some(own) => own as *mut c::rocksdb_logger_t,
        None => {
            let state = Arc::into_raw(logger).cast_mut().cast();
            c::rocksdb_logger_create_callback_logger(0, Some(log), state)
        }
    }
}

pub(crate) fn set_logger(options: jlong, logger: jlong) -> Answer<()> {
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_options_set_info_log(options as *mut _, c_logger(logger)) };
    Ok(())
}

pub(crate) fn set_backup_logger(options: jlong, logger: jlong) -> Answer<()> {
    // SAFETY: see `glue`.
    let own = unsafe { (*c_logger(logger)).0.clone() };
    object::<c::rocksdb_backup_engine_options_t>(options).info_log = own;
    Ok(())
}

/// RocksJava's constants of `InfoLogLevel`, by RocksDB's numbers.
const LEVELS: [&str; 6] =
    ["DEBUG_LEVEL", "INFO_LEVEL", "WARN_LEVEL", "ERROR_LEVEL", "FATAL_LEVEL", "HEADER_LEVEL"];

unsafe extern "C-unwind" fn log(state: *mut c_void, level: c_uint, message: *mut c_char, len: usize) {
    // SAFETY: `set_logger` gave a logger that stays.
    let logger = unsafe { &*state.cast::<JavaLogger>() };
    if (level as i8) < logger.level.load(std::sync::atomic::Ordering::Relaxed) {
        return;
    }
    let text = String::from_utf8_lossy(bytes_at(message, len)).into_owned();
    logger.object.run(|env, object| {
        let class = jni!(env, GetObjectClass, object);
        let level = LEVELS[(level as usize).min(LEVELS.len() - 1)];
        let level = level_constant(env, class, level)?;
        let signature = c"(Lorg/rocksdb/InfoLogLevel;Ljava/lang/String;)V";
        let method = Method::of(env, object, c"log", signature)?;
        method.call(env, object, &[jvalue { l: level }, jvalue { l: env.new_text(&text)? }])
    });
}

/// A constant of `InfoLogLevel`, which the class loader of the logger's class finds: this may be a thread without one.
fn level_constant(env: Env, logger: jobject, name: &str) -> Answer<jobject> {
    let loader = env.call(logger, "getClassLoader", "()Ljava/lang/ClassLoader;", &[])?;
    let class = jvalue { l: env.new_text("org.rocksdb.InfoLogLevel")? };
    let class = env.call(loader, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;", &[class])?;
    let name = std::ffi::CString::new(name).unwrap_or_default();
    let field = jni!(env, GetStaticFieldID, class, name.as_ptr(), c"Lorg/rocksdb/InfoLogLevel;".as_ptr());
    if field.is_null() {
        return Err(Thrown::Pending);
    }
    env.given(jni!(env, GetStaticObjectField, class, field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_keep_to_a_strict_capacity_if_they_are_told_to() {
        let is_strict = |strict| {
            let made = cache(1 << 20, 0, strict).unwrap_or_default();
            let is_strict = object::<rocksdb_cache_t>(made).0.has_strict_capacity_limit();
            assert!(dispose::<rocksdb_cache_t>(made).is_ok());
            is_strict
        };
        assert_eq!((is_strict(true), is_strict(false)), (true, false));
        assert!(cache(-1, 0, false).is_err());
    }
}

//! Options that are lists, paths, sets of defaults, and those that only their getters want.

use crate::env::{Env, jni};
use crate::glue::{Answer, c_text, handle, illegal, object};
use jni_sys::{jint, jlong, jobject};
use outcrop::options::{BlockBasedTableOptions, CompactionPri, WalRecoveryMode};
use outcrop::{CompactOnDeletion, DbPath, PrefixExtractor, TablePropertiesCollectorFactory};
use outcrop_capi::{rocksdb_cache_t, rocksdb_options_t};
use std::sync::Arc;

fn of<'a>(options: jlong) -> &'a mut rocksdb_options_t {
    object(options)
}

/// The compression of each level, as RocksJava's bytes.
pub(crate) fn compression_per_level(options: jlong) -> Answer<Vec<u8>> {
    Ok(of(options).cf.compression_per_level.iter().map(|kind| *kind as u8).collect())
}

pub(crate) fn level_multipliers(options: jlong) -> Answer<Vec<jint>> {
    // RocksDB's, of seven levels, where there is nothing else.
    let text =
        of(options).cf.kept.get("max_bytes_for_level_multiplier_additional").unwrap_or("1:1:1:1:1:1:1");
    Ok(text.split(':').filter_map(|number| number.parse().ok()).collect())
}

/// The paths of the database, or of the column family.
pub(crate) fn paths<'a>(options: jlong, of_family: bool) -> &'a mut Vec<DbPath> {
    if of_family { &mut of(options).cf.cf_paths } else { &mut of(options).db.db_paths }
}

pub(crate) fn set_paths(env: Env, target: &mut Vec<DbPath>, names: jobject, sizes: jobject) -> Answer<()> {
    let (names, sizes) = (env.texts(names)?, env.longs(sizes)?);
    if names.len() != sizes.len() {
        return Err(illegal("there are not as many sizes as paths"));
    }
    // A size that was beyond Java's numbers is one without an end.
    let size = |size: jlong| u64::try_from(size).unwrap_or(u64::MAX);
    *target = names.iter().zip(sizes).map(|(name, bytes)| DbPath::new(name, size(bytes))).collect();
    Ok(())
}

/// Fills arrays that the jar made of the right length.
pub(crate) fn fill_paths(env: Env, paths: &[DbPath], names: jobject, sizes: jobject) -> Answer<()> {
    for (place, path) in paths.iter().enumerate() {
        let name = env.new_text(&path.path.to_string_lossy())?;
        jni!(env, SetObjectArrayElement, names, place as jint, name);
        env.check()?;
        jni!(env, DeleteLocalRef, name);
    }
    let bytes: Vec<jlong> = paths.iter().map(|path| path.target_size as jlong).collect();
    jni!(env, SetLongArrayRegion, sizes, 0, bytes.len() as jint, bytes.as_ptr());
    env.check()
}

/// The prefix of at most so many bytes of each key.
pub(crate) fn set_capped_prefix(options: jlong, len: jint) -> Answer<()> {
    let len = usize::try_from(len).map_err(|_| illegal("a prefix of negative length"))?;
    of(options).cf.prefix_extractor = Some(PrefixExtractor::Capped(len));
    Ok(())
}

/// As RocksDB's `OptimizeForSmallDb` of column families.
pub(crate) fn small_family(options: jlong, cache: jlong) -> Answer<()> {
    let own = of(options);
    let cf = &mut own.cf;
    cf.write_buffer_size = 2 << 20;
    cf.target_file_size_base = 2 << 20;
    cf.max_bytes_for_level_base = 10 << 20;
    cf.soft_pending_compaction_bytes_limit = 256 << 20;
    cf.hard_pending_compaction_bytes_limit = 1 << 30;
    cf.table = BlockBasedTableOptions {
        cache_index_and_filter_blocks: true,
        index_type: outcrop_options::IndexType::TwoLevel,
        ..BlockBasedTableOptions::default()
    };
    own.parts.block_cache = (cache != 0).then(|| object::<rocksdb_cache_t>(cache).0.clone());
    Ok(())
}

/// The same of databases. RocksDB also lets memtables count against the cache, which only a `WriteBufferManager` does here.
pub(crate) fn small_database(options: jlong) -> Answer<()> {
    of(options).db.max_open_files = 5000;
    Ok(())
}

/// As RocksDB's `OldDefaults`.
pub(crate) fn old_defaults(options: jlong, (major, minor): (jint, jint), database: bool) -> Answer<()> {
    let own = of(options);
    let before = |version: (jint, jint)| (major, minor) < version;
    let cf = &mut own.cf;
    if before((5, 19)) {
        cf.compaction_pri = CompactionPri::ByCompensatedSize;
    }
    if before((4, 7)) {
        cf.write_buffer_size = 4 << 20;
        cf.target_file_size_base = 2 << 20;
        cf.max_bytes_for_level_base = 10 << 20;
        cf.soft_pending_compaction_bytes_limit = 0;
        cf.hard_pending_compaction_bytes_limit = 0;
    }
    if major < 5 {
        cf.level0_stop_writes_trigger = 24;
    } else if before((5, 2)) {
        cf.level0_stop_writes_trigger = 30;
    }
    if database {
        if before((5, 2)) {
            own.db.delayed_write_rate = 2 << 20;
        } else if before((5, 6)) {
            own.db.delayed_write_rate = 16 << 20;
        }
        own.db.max_open_files = 5000;
        own.db.wal_recovery_mode = WalRecoveryMode::TolerateCorruptedTailRecords;
    }
    Ok(())
}

/// The name of a memtable that the engine takes for its own, which is in total order and fast at appending.
pub(crate) fn memtable(name: &'static str) -> Answer<jlong> {
    Ok(handle(name))
}

/// Takes the handle over, as RocksDB's option does.
pub(crate) fn set_memtable(options: jlong, memtable: jlong) -> Answer<()> {
    of(options).texts.insert("memtable_factory", c_text(*object::<&'static str>(memtable))?);
    crate::glue::dispose::<&'static str>(memtable)
}

/// A text that only its getter wants.
pub(crate) fn text(options: jlong, name: &str, default: &str) -> Answer<String> {
    let kept = of(options).texts.get(name);
    Ok(kept.map_or_else(|| default.to_string(), |text| text.to_string_lossy().into_owned()))
}

/// A number that only its getter wants: RocksDB has no such option any more, or it only tunes.
pub(crate) fn number(options: jlong, name: &str, default: jlong) -> Answer<jlong> {
    Ok(text(options, name, "")?.parse().unwrap_or(default))
}

pub(crate) fn set_number(options: jlong, name: &'static str, value: jlong) -> Answer<()> {
    of(options).texts.insert(name, c_text(value.to_string())?);
    Ok(())
}

type Collectors = Arc<dyn TablePropertiesCollectorFactory>;

pub(crate) fn compact_on_deletion(window: jlong, trigger: jlong, ratio: f64) -> Answer<jlong> {
    let size = |number: jlong| usize::try_from(number).unwrap_or(0);
    Ok(handle::<Collectors>(Arc::new(CompactOnDeletion {
        window_size: size(window),
        deletion_trigger: size(trigger),
        deletion_ratio: ratio,
        min_file_size: 0,
    })))
}

pub(crate) fn destroy_collectors(collectors: jlong) -> Answer<()> {
    crate::glue::dispose::<Collectors>(collectors)
}

pub(crate) fn set_collectors(env: Env, options: jlong, collectors: jobject) -> Answer<()> {
    let own = env.longs(collectors)?;
    of(options).parts.collectors = own.into_iter().map(|one| object::<Collectors>(one).clone()).collect();
    Ok(())
}

/// New handles of the collectors.
pub(crate) fn collectors(options: jlong) -> Answer<Vec<jlong>> {
    Ok(of(options).parts.collectors.iter().map(|one| handle(one.clone())).collect())
}

//! Options beyond single numbers: copies, texts, lists, compression, statistics.

use crate::env::Env;
use crate::glue::{Answer, c_text, checked, handle, illegal, object};
use crate::slices::JavaSlice;
use crate::snapshots;
use jni_sys::{jboolean, jbyte, jint, jlong, jobject, jvalue};
use outcrop_capi as c;
use outcrop_capi::{rocksdb_options_t, rocksdb_readoptions_t, rocksdb_writeoptions_t};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// `Options` of a `DBOptions` and a `ColumnFamilyOptions`.
pub(crate) fn combine(db: jlong, family: jlong) -> Answer<jlong> {
    Ok(handle(object::<rocksdb_options_t>(db).combined(object(family))))
}

pub(crate) fn copy(options: jlong) -> Answer<jlong> {
    Ok(handle(object::<rocksdb_options_t>(options).clone()))
}

pub(crate) fn copy_read(options: jlong) -> Answer<jlong> {
    Ok(handle(object::<rocksdb_readoptions_t>(options).clone()))
}

pub(crate) fn copy_write(options: jlong) -> Answer<jlong> {
    Ok(handle(object::<rocksdb_writeoptions_t>(options).clone()))
}

pub(crate) fn new_read(verify: jboolean, fill: jboolean) -> Answer<jlong> {
    // SAFETY: see `glue`.
    unsafe {
        let options = c::rocksdb_readoptions_create();
        c::rocksdb_readoptions_set_verify_checksums(options, crate::glue::to(verify));
        c::rocksdb_readoptions_set_fill_cache(options, crate::glue::to(fill));
        Ok(options as jlong)
    }
}

/// Options of properties as text, `name=value;`: 0 if there is one that nobody knows.
pub(crate) fn parse(env: Env, text: jobject) -> Answer<jlong> {
    let text = c_text(env.text(text)?)?;
    // SAFETY: see `glue`.
    unsafe {
        let base = c::rocksdb_options_create();
        let new = c::rocksdb_options_create();
        let parsed = checked(|error| c::rocksdb_get_options_from_string(base, text.as_ptr(), new, error));
        c::rocksdb_options_destroy(base);
        match parsed {
            Ok(()) => Ok(new as jlong),
            Err(_) => {
                c::rocksdb_options_destroy(new);
                Ok(0)
            }
        }
    }
}

/// The slice's bytes as one of the bounds.
pub(crate) fn set_bound(options: jlong, slice: jlong, upper: bool) -> Answer<()> {
    object::<rocksdb_readoptions_t>(options).given[usize::from(upper)] = slice;
    let bytes = if slice == 0 { &[][..] } else { object::<JavaSlice>(slice).bytes() };
    let start = if slice == 0 { std::ptr::null() } else { bytes.as_ptr().cast() };
    // SAFETY: see `glue`.
    unsafe {
        match upper {
            true => c::rocksdb_readoptions_set_iterate_upper_bound(options as *mut _, start, bytes.len()),
            false => c::rocksdb_readoptions_set_iterate_lower_bound(options as *mut _, start, bytes.len()),
        }
    }
    Ok(())
}

pub(crate) fn set_timestamp(options: jlong, slice: jlong, start: bool) -> Answer<()> {
    object::<rocksdb_readoptions_t>(options).given[2 + usize::from(start)] = slice;
    let bytes = if slice == 0 { &[][..] } else { object::<JavaSlice>(slice).bytes() };
    let at = if slice == 0 { std::ptr::null() } else { bytes.as_ptr().cast() };
    // SAFETY: see `glue`.
    unsafe {
        match start {
            false => c::rocksdb_readoptions_set_timestamp(options as *mut _, at, bytes.len()),
            true => c::rocksdb_readoptions_set_iter_start_ts(options as *mut _, at, bytes.len()),
        }
    }
    Ok(())
}

pub(crate) fn set_snapshot(options: jlong, snapshot: jlong) -> Answer<()> {
    let own = if snapshot == 0 { None } else { Some(snapshots::get(snapshot)?) };
    let options = object::<rocksdb_readoptions_t>(options);
    options.given[4] = snapshot;
    options.options.snapshot = own;
    Ok(())
}

/// The handle that an option of reads was set by, 0 for none: its object is still the caller's, as in RocksJava. The places: lower and upper
/// bound, timestamp and first timestamp, snapshot.
pub(crate) fn given(options: jlong, place: usize) -> Answer<jlong> {
    Ok(object::<rocksdb_readoptions_t>(options).given[place])
}

/// A text option.
pub(crate) fn set_text(
    env: Env,
    options: jlong,
    text: jobject,
    set: unsafe extern "C" fn(*mut rocksdb_options_t, *const std::ffi::c_char),
) -> Answer<()> {
    let text = c_text(env.text(text)?)?;
    // SAFETY: see `glue`.
    unsafe { set(options as *mut _, text.as_ptr()) };
    Ok(())
}

pub(crate) fn set_statistics(options: jlong, statistics: jlong) -> Answer<()> {
    object::<rocksdb_options_t>(options).statistics = Some(crate::statistics::shared(statistics));
    Ok(())
}

/// A new handle of the options' statistics, or 0.
pub(crate) fn statistics(options: jlong) -> Answer<jlong> {
    Ok(object::<rocksdb_options_t>(options).statistics.clone().map_or(0, crate::statistics::handle_of))
}

/// `CompressionOptions`.
#[derive(Clone, Copy)]
pub(crate) struct Compression {
    pub(crate) window_bits: jint,
    pub(crate) level: jint,
    pub(crate) strategy: jint,
    pub(crate) max_dict_bytes: jint,
    pub(crate) zstd_max_train_bytes: jint,
    pub(crate) enabled: bool,
}

pub(crate) fn new_compression() -> Answer<jlong> {
    let default = Compression {
        window_bits: -14,
        level: 32767,
        strategy: 0,
        max_dict_bytes: 0,
        zstd_max_train_bytes: 0,
        enabled: false,
    };
    Ok(handle(default))
}

pub(crate) fn set_compression(options: jlong, compression: jlong, bottommost: bool) -> Answer<()> {
    let of = *object::<Compression>(compression);
    let options = options as *mut rocksdb_options_t;
    // SAFETY: see `glue`.
    unsafe {
        if bottommost {
            let enabled = outcrop_capi::settings::Flag::from(of.enabled);
            c::rocksdb_options_set_bottommost_compression_options(
                options,
                of.window_bits,
                of.level,
                of.strategy,
                of.max_dict_bytes,
                enabled,
            );
            c::rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
                options,
                of.zstd_max_train_bytes,
                enabled,
            );
        } else {
            c::rocksdb_options_set_compression_options(
                options,
                of.window_bits,
                of.level,
                of.strategy,
                of.max_dict_bytes,
            );
            c::rocksdb_options_set_compression_options_zstd_max_train_bytes(options, of.zstd_max_train_bytes);
        }
    }
    Ok(())
}

/// RocksJava's number for "no compression of its own"; RocksDB's is 255, which is no byte of Java's.
const DISABLE_COMPRESSION_OPTION: jbyte = 0x7f;

/// A kind of compression, as RocksJava numbers them.
pub(crate) fn compression(
    options: jlong,
    get: unsafe extern "C" fn(*mut rocksdb_options_t) -> jint,
) -> Answer<jbyte> {
    // SAFETY: see `glue`.
    let kind = unsafe { get(options as *mut _) };
    Ok(jbyte::try_from(kind).unwrap_or(DISABLE_COMPRESSION_OPTION))
}

/// The same the other way round.
pub(crate) fn set_kind_of_compression(
    options: jlong,
    kind: jbyte,
    set: unsafe extern "C" fn(*mut rocksdb_options_t, jint),
) -> Answer<()> {
    // SAFETY: see `glue`.
    unsafe { set(options as *mut _, number_of_kind(kind)) };
    Ok(())
}

/// RocksDB's number of one of RocksJava's.
fn number_of_kind(kind: jbyte) -> jint {
    if kind == DISABLE_COMPRESSION_OPTION { 0xff } else { kind.into() }
}

/// The same of `CompactionOptions`.
pub(crate) fn compression_of_files(options: jlong) -> Answer<jbyte> {
    // SAFETY: see `glue`.
    let kind = unsafe { c::rocksdb_compaction_options_get_compression(options as *mut _) };
    Ok(jbyte::try_from(kind).unwrap_or(DISABLE_COMPRESSION_OPTION))
}

pub(crate) fn set_compression_of_files(options: jlong, kind: jbyte) -> Answer<()> {
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_compaction_options_set_compression(options as *mut _, number_of_kind(kind)) };
    Ok(())
}

/// The compression of each level, from RocksJava's bytes.
pub(crate) fn set_compression_per_level(env: Env, options: jlong, levels: jobject) -> Answer<()> {
    let levels: Vec<jint> =
        env.all_bytes(levels)?.into_iter().map(|byte| number_of_kind(byte as jbyte)).collect();
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_options_set_compression_per_level(options as *mut _, levels.as_ptr(), levels.len()) };
    Ok(())
}

pub(crate) fn set_level_multipliers(env: Env, options: jlong, levels: jobject) -> Answer<()> {
    let mut levels = env.ints(levels)?;
    // SAFETY: see `glue`.
    unsafe {
        c::rocksdb_options_set_max_bytes_for_level_multiplier_additional(
            options as *mut _,
            levels.as_mut_ptr(),
            levels.len(),
        );
    }
    Ok(())
}

/// The prefix of so many bytes of each key.
pub(crate) fn set_fixed_prefix(options: jlong, len: jint) -> Answer<()> {
    let len = usize::try_from(len).map_err(|_| illegal("a prefix of negative length"))?;
    // SAFETY: see `glue`.
    unsafe {
        c::rocksdb_options_set_prefix_extractor(
            options as *mut _,
            c::rocksdb_slicetransform_create_fixed_prefix(len),
        )
    };
    Ok(())
}

/// A text option that the C object keeps.
pub(crate) fn text(
    options: jlong,
    get: unsafe extern "C" fn(*mut rocksdb_options_t, *mut usize) -> *const std::ffi::c_char,
) -> Answer<String> {
    let mut len = 0;
    // SAFETY: see `glue`.
    let text = unsafe { get(options as *mut _, &mut len) };
    Ok(String::from_utf8_lossy(crate::glue::bytes_at(text, len)).into_owned())
}

/// `EnvOptions` as options of a database say.
pub(crate) fn env_options(options: jlong) -> Answer<jlong> {
    let options = options as *mut rocksdb_options_t;
    // SAFETY: see `glue`.
    unsafe {
        let own = c::rocksdb_envoptions_create();
        c::rocksdb_envoptions_set_use_mmap_reads(own, c::rocksdb_options_get_allow_mmap_reads(options));
        c::rocksdb_envoptions_set_use_mmap_writes(own, c::rocksdb_options_get_allow_mmap_writes(options));
        c::rocksdb_envoptions_set_use_direct_reads(own, c::rocksdb_options_get_use_direct_reads(options));
        c::rocksdb_envoptions_set_bytes_per_sync(own, c::rocksdb_options_get_bytes_per_sync(options));
        c::rocksdb_envoptions_set_compaction_readahead_size(
            own,
            c::rocksdb_options_get_compaction_readahead_size(options),
        );
        c::rocksdb_envoptions_set_writable_file_max_buffer_size(
            own,
            c::rocksdb_options_get_writable_file_max_buffer_size(options) as usize,
        );
        Ok(own as jlong)
    }
}

/// The sizes of the files that a `SstFileManager` counts, by their paths.
pub(crate) fn tracked_files(env: Env, manager: jlong) -> Answer<jobject> {
    let files = object::<c::rocksdb_sst_file_manager_t>(manager).0.tracked_files();
    env.new_map(files.iter().map(|(path, bytes)| {
        let size = [jvalue { j: *bytes as jlong }];
        Ok((env.new_text(&path.to_string_lossy())?, env.new_object("java/lang/Long", "(J)V", &size)?))
    }))
}

/// `SstFileManager`, whose logger nobody asks for.
pub(crate) fn file_manager(
    env: jlong,
    _logger: jlong,
    rate: jlong,
    trash: f64,
    chunk: jlong,
) -> Answer<jlong> {
    if chunk != 64 << 20 {
        return crate::glue::not_implemented("SstFileManager with bytesMaxDeleteChunk");
    }
    // SAFETY: see `glue`.
    unsafe {
        let manager = c::rocksdb_sst_file_manager_create(env as *mut _);
        c::rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, rate);
        c::rocksdb_sst_file_manager_set_max_trash_db_ratio(manager, trash);
        Ok(manager as jlong)
    }
}

/// `CompactRangeOptions`: its compactions look at a flag, which another thread may set once they run.
pub(crate) fn new_compaction() -> Answer<jlong> {
    let own = c::rocksdb_compactoptions_create();
    object::<c::rocksdb_compactoptions_t>(own as jlong).canceled = Some(Arc::default());
    Ok(own as jlong)
}

/// The flag of `CompactRangeOptions`.
pub(crate) fn canceled<'a>(options: jlong) -> Answer<&'a AtomicBool> {
    // SAFETY: see `glue`. Shared, as a compaction under these options may run.
    let own = unsafe { &*(options as *const c::rocksdb_compactoptions_t) };
    own.canceled.as_deref().ok_or_else(|| illegal("these options have no such flag"))
}

/// Both numbers, one after the other, as RocksJava passes them.
pub(crate) fn set_history(options: jlong, start: jlong, range: jlong) -> Answer<()> {
    object::<c::rocksdb_compactoptions_t>(options).history = Some((start, range));
    let mut bytes = [start.to_le_bytes(), range.to_le_bytes()].concat();
    let at = bytes.as_mut_ptr().cast();
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_compactoptions_set_full_history_ts_low(options as *mut _, at, bytes.len()) };
    Ok(())
}

/// `CompactRangeOptions.Timestamp`, or null.
pub(crate) fn history(env: Env, options: jlong) -> Answer<jobject> {
    let Some((start, range)) = object::<c::rocksdb_compactoptions_t>(options).history else {
        return Ok(std::ptr::null_mut());
    };
    let arguments = [jvalue { j: start }, jvalue { j: range }];
    env.new_object("org/rocksdb/CompactRangeOptions$Timestamp", "(JJ)V", &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_compression_of_its_own_has_another_number_in_java() {
        assert_eq!([0, 7, 0x7f].map(number_of_kind), [0, 7, 0xff]);
    }
}

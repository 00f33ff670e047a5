//! Databases as files: destruction, names, checkpoints, tables made outside of a database.

use crate::args::{AsC, Bytes};
use crate::db::{JavaDb, Write, engine};
use crate::env::{Env, jni};
use crate::glue::{Answer, Thrown, c_text, checked, object};
use crate::metadata::engine_family;
use crate::slices::JavaSlice;
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};
use outcrop::{RangeEnd, UserKeyRange};
use outcrop_capi as c;
use std::path::Path;

pub(crate) fn destroy(env: Env, path: jobject, options: jlong) -> Answer<()> {
    let path = c_text(env.text(path)?)?;
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_destroy_db(options as *const _, path.as_ptr(), error) })
}

pub(crate) fn name(handle: jlong) -> Answer<String> {
    Ok(object::<JavaDb>(handle).name.clone())
}

pub(crate) fn checkpoint(db: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_checkpoint_object_create(crate::db::db(db), error) as jlong })
}

pub(crate) fn create_checkpoint(env: Env, checkpoint: jlong, path: jobject) -> Answer<()> {
    let dir = env.text(path)?;
    let path = c_text(dir.clone())?;
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_checkpoint_create(checkpoint as *mut _, path.as_ptr(), 0, error) })?;
    if env.class("org/rocksdb/FlinkCompactionFilter").is_ok() {
        return drop_empty_wals(Path::new(&dir)).map_err(Thrown::from);
    }
    jni!(env, ExceptionClear);
    Ok(())
}

/// Takes WALs without a byte out of a checkpoint, as Flink's RocksDB 8 does not have them there: Flink uploads each file, and takes
/// one without a byte for a failed upload. RocksDB has them from version 9 on.
fn drop_empty_wals(checkpoint: &Path) -> outcrop::Result<()> {
    let fs = outcrop::Env::posix().fs;
    // A checkpoint in an environment in memory is not there.
    if !fs.exists(checkpoint)? {
        return Ok(());
    }
    for name in fs.list(checkpoint)? {
        let path = checkpoint.join(&name);
        if name.ends_with(".log") && fs.file_size(&path)? == 0 {
            fs.remove_file(&path)?;
        }
    }
    Ok(())
}

pub(crate) fn open_writer(env: Env, writer: jlong, path: jobject) -> Answer<()> {
    let path = c_text(env.text(path)?)?;
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_sstfilewriter_open(writer as *mut _, path.as_ptr(), error) })
}

/// An entry of a table.
pub(crate) fn write(env: Env, writer: jlong, write: Write, key: Bytes, value: Option<Bytes>) -> Answer<()> {
    let key = key.get(env)?;
    let value = value.map_or(Ok(Default::default()), |value| value.named(env, "value"))?;
    let (writer, (k, kl), (v, vl)) = (writer as *mut _, (key.c(), key.len()), (value.c(), value.len()));
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        match write {
            Write::Merge => c::rocksdb_sstfilewriter_merge(writer, k, kl, v, vl, error),
            Write::Delete | Write::SingleDelete => c::rocksdb_sstfilewriter_delete(writer, k, kl, error),
            Write::DeleteRange => c::rocksdb_sstfilewriter_delete_range(writer, k, kl, v, vl, error),
            Write::Put => c::rocksdb_sstfilewriter_put(writer, k, kl, v, vl, error),
        }
    })
}

pub(crate) fn writer_size(writer: jlong) -> Answer<u64> {
    let mut size = 0;
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_sstfilewriter_file_size(writer as *mut _, &mut size) };
    Ok(size)
}

/// Sizes of ranges, which are given as handles of slices: begin and end of each.
pub(crate) fn approximate_sizes(
    env: Env,
    (db, family): (jlong, jlong),
    ranges: jobject,
    flags: jbyte,
) -> Answer<Vec<jlong>> {
    let slices = env.longs(ranges)?;
    let bytes: Vec<&[u8]> = slices.iter().map(|slice| object::<JavaSlice>(*slice).bytes()).collect();
    let starts: Vec<_> = bytes.iter().step_by(2).map(|bytes| bytes.c()).collect();
    let start_lengths: Vec<_> = bytes.iter().step_by(2).map(|bytes| bytes.len()).collect();
    let ends: Vec<_> = bytes.iter().skip(1).step_by(2).map(|bytes| bytes.c()).collect();
    let end_lengths: Vec<_> = bytes.iter().skip(1).step_by(2).map(|bytes| bytes.len()).collect();
    let mut sizes = vec![0u64; ends.len()];
    // RocksJava's flags are RocksDB's.
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_approximate_sizes_cf_with_flags(
            crate::db::db(db),
            crate::db::family(db, family),
            ends.len() as jint,
            starts.as_ptr(),
            start_lengths.as_ptr(),
            ends.as_ptr(),
            end_lengths.as_ptr(),
            flags as u8,
            sizes.as_mut_ptr(),
            error,
        );
    })?;
    Ok(sizes.into_iter().map(|size| size as jlong).collect())
}

pub(crate) fn updates_since(db: jlong, number: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_get_updates_since(crate::db::db(db), number as u64, std::ptr::null(), error) as jlong
    })
}

/// A batch of the log, with its number.
pub(crate) fn logged_batch(env: Env, iterator: jlong) -> Answer<jobject> {
    let mut number = 0;
    // SAFETY: see `glue`.
    let batch = unsafe { c::rocksdb_wal_iter_get_batch(iterator as *mut _, &mut number) };
    let arguments = [jvalue { j: number as jlong }, jvalue { j: batch as jlong }];
    env.new_object("org/rocksdb/TransactionLogIterator$BatchResult", "(JJ)V", &arguments)
}

/// Removes files in ranges: begin and end of each, null for no end. A file that ends exactly where a range does goes only with `include_end`;
/// C has no word for that, and means it.
pub(crate) fn delete_in_ranges(
    env: Env,
    (db, family): (jlong, jlong),
    ranges: jobject,
    include_end: bool,
) -> Answer<()> {
    let bounds =
        env.each(ranges, |_, key| if key.is_null() { Ok(None) } else { env.all_bytes(key).map(Some) })?;
    let ranges: Vec<UserKeyRange<'_>> =
        bounds.chunks_exact(2).map(|range| (range[0].as_deref(), range[1].as_deref())).collect();
    let end = if include_end { RangeEnd::Inclusive } else { RangeEnd::Exclusive };
    Ok(engine(db).delete_files_in_ranges_cf(engine_family(db, family), &ranges, end)?)
}

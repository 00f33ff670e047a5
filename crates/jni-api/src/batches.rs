//! `WriteBatch` and `WriteBatchWithIndex`.

use crate::args::{AsC, Bytes};
use crate::db::{Write, add};
use crate::env::Env;
use crate::glue::{Answer, Thrown, bytes_at, checked, object, take_bytes};
use crate::lent::{self, Part};
use crate::status::Status;
use jni_sys::{jint, jlong, jobject, jvalue};
use outcrop::{IndexedBatchOptions, Op};
use outcrop_capi as c;
use outcrop_capi::{rocksdb_writebatch_t, rocksdb_writebatch_wi_t};

pub(crate) fn create_from(env: Env, bytes: Bytes) -> Answer<jlong> {
    let bytes = bytes.get(env)?;
    // SAFETY: see `glue`.
    Ok(unsafe { c::rocksdb_writebatch_create_from(bytes.c(), bytes.len()) } as jlong)
}

pub(crate) fn reserve(bytes: jint) -> Answer<jlong> {
    let bytes = usize::try_from(bytes).unwrap_or(0);
    Ok(c::rocksdb_writebatch_create_with_params(bytes, 0, 0, 0) as jlong)
}

/// A write to a plain batch.
pub(crate) fn write(
    env: Env,
    batch: jlong,
    family: jlong,
    write: Write,
    key: Bytes,
    value: Option<Bytes>,
) -> Answer<()> {
    let key = key.get(env)?;
    let value = value.map_or(Ok(Default::default()), |value| value.named(env, "value"))?;
    let own = object::<rocksdb_writebatch_t>(batch);
    let before = own.batch.count();
    add(own, family as *mut _, write, &key, &value);
    // The C functions have no place for an error.
    match own.max_bytes > 0 && own.batch.count() == before {
        true => Err(Thrown::Status(Status::parse("Operation aborted: Memory limit reached"))),
        false => Ok(()),
    }
}

/// A write to a batch with an index.
pub(crate) fn write_indexed(
    env: Env,
    batch: jlong,
    family: jlong,
    write: Write,
    key: Bytes,
    value: Option<Bytes>,
) -> Answer<()> {
    let key = key.get(env)?;
    let value = value.map_or(Ok(Default::default()), |value| value.named(env, "value"))?;
    let batch = indexed(batch);
    let cf = (family != 0).then(|| &object::<c::rocksdb_column_family_handle_t>(family).0);
    let added = match (write, cf) {
        (Write::Put, Some(cf)) => batch.put_cf(cf, key, value),
        (Write::Put, None) => batch.put(key, value),
        (Write::Merge, Some(cf)) => batch.merge_cf(cf, key, value),
        (Write::Merge, None) => batch.merge(key, value),
        (Write::Delete, Some(cf)) => batch.delete_cf(cf, key),
        (Write::Delete, None) => batch.delete(key),
        (Write::SingleDelete, Some(cf)) => batch.single_delete_cf(cf, key),
        (Write::SingleDelete, None) => batch.single_delete(key),
        (Write::DeleteRange, _) => {
            return crate::glue::not_implemented("DeleteRange unsupported in WriteBatchWithIndex");
        }
    };
    Ok(added?)
}

pub(crate) fn put_log_data(env: Env, batch: jlong, bytes: Bytes, indexed: bool) -> Answer<()> {
    let bytes = bytes.get(env)?;
    // SAFETY: see `glue`.
    unsafe {
        match indexed {
            false => c::rocksdb_writebatch_put_log_data(batch as *mut _, bytes.c(), bytes.len()),
            true => c::rocksdb_writebatch_wi_put_log_data(batch as *mut _, bytes.c(), bytes.len()),
        }
    }
    Ok(())
}

pub(crate) fn data<'a>(batch: jlong) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: see `glue`.
    unsafe { bytes_at(c::rocksdb_writebatch_data(batch as *mut _, &mut len), len) }
}

/// A copy of the indexed batch's writes, as RocksJava's class, which owns nothing: the copy goes with the indexed batch.
pub(crate) fn plain(env: Env, batch: jlong) -> Answer<jobject> {
    let mut len = 0;
    // SAFETY: see `glue`.
    let copy = unsafe {
        let bytes = c::rocksdb_writebatch_wi_data(batch as *mut _, &mut len);
        *Box::from_raw(c::rocksdb_writebatch_create_from(bytes, len))
    };
    let own = lent::give(batch, Part::PlainBatch, copy);
    env.new_object("org/rocksdb/WriteBatch", "(J)V", &[jvalue { j: own }])
}

pub(crate) fn destroy_indexed(batch: jlong) -> Answer<()> {
    lent::end(batch);
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_writebatch_wi_destroy(batch as *mut _) };
    Ok(())
}

/// The value of a key in a batch alone.
pub(crate) fn get(
    env: Env,
    batch: jlong,
    options: jlong,
    family: jlong,
    key: Bytes,
) -> Answer<Option<Vec<u8>>> {
    let key = key.get(env)?;
    let mut len = 0;
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        let (batch, options) = (batch as *mut _, options as *const _);
        take_bytes(
            match family {
                0 => c::rocksdb_writebatch_wi_get_from_batch(
                    batch,
                    options,
                    key.c(),
                    key.len(),
                    &mut len,
                    error,
                ),
                cf => c::rocksdb_writebatch_wi_get_from_batch_cf(
                    batch,
                    options,
                    cf as *mut _,
                    key.c(),
                    key.len(),
                    &mut len,
                    error,
                ),
            },
            len,
        )
    })
}

/// The value of a key in a database with the batch laid over it.
pub(crate) fn get_over(
    env: Env,
    batch: jlong,
    (db, options, family): (jlong, jlong, jlong),
    key: Bytes,
) -> Answer<Option<Vec<u8>>> {
    let key = key.get(env)?;
    let mut len = 0;
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        let value = c::rocksdb_writebatch_wi_get_from_batch_and_db_cf(
            batch as *mut _,
            crate::db::db(db),
            options as *const _,
            crate::db::family(db, family),
            key.c(),
            key.len(),
            &mut len,
            error,
        );
        take_bytes(value, len)
    })
}

/// An iterator over another, with the batch laid over it; that one is used up.
pub(crate) fn iterator(batch: jlong, family: jlong, base: jlong, options: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    Ok(unsafe {
        match family {
            0 => c::rocksdb_writebatch_wi_create_iterator_with_base_readopts(
                batch as *mut _,
                base as *mut _,
                options as *const _,
            ),
            cf => c::rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
                batch as *mut _,
                base as *mut _,
                cf as *mut _,
                options as *const _,
            ),
        }
    } as jlong)
}

/// A batch with an index in the order of a comparator in Java, for keys without a column family.
pub(crate) fn create_ordered(comparator: jlong, kind: i8, overwrite_key: bool) -> Answer<jlong> {
    let backup_comparator = crate::objects::comparator(comparator, kind)?;
    let options = IndexedBatchOptions { overwrite_key, backup_comparator, ..IndexedBatchOptions::default() };
    Ok(c::create_indexed(options) as jlong)
}

fn indexed<'a>(batch: jlong) -> &'a outcrop::IndexedBatch {
    // SAFETY: see `glue`.
    unsafe { object::<rocksdb_writebatch_wi_t>(batch).get() }
}

pub(crate) fn pop_save_point(batch: jlong) -> Answer<()> {
    Ok(indexed(batch).pop_save_point()?)
}

pub(crate) fn set_max_bytes(batch: jlong, max_bytes: jlong) -> Answer<()> {
    indexed(batch).set_max_bytes(usize::try_from(max_bytes).unwrap_or(0));
    Ok(())
}

/// Marks the end of what is to be written to the WAL.
pub(crate) fn mark_wal_end(batch: jlong) -> Answer<()> {
    let own = object::<rocksdb_writebatch_t>(batch);
    own.wal_end = Some((own.batch.size_bytes(), own.batch.count()));
    Ok(())
}

/// `WriteBatch.SavePoint` of that place; without one it has zeros.
pub(crate) fn wal_end(env: Env, batch: jlong) -> Answer<jobject> {
    let own = object::<rocksdb_writebatch_t>(batch);
    let (size, count) = own.wal_end.unwrap_or_default();
    let content = content(own.batch.iter().take(count as usize))?;
    let arguments = [jvalue { j: size as jlong }, jvalue { j: count.into() }, jvalue { j: content }];
    env.new_object("org/rocksdb/WriteBatch$SavePoint", "(JJJ)V", &arguments)
}

/// RocksDB's flags of the kinds of records. Source: RocksDB `db/write_batch.cc`, `ContentFlags`.
fn content<'b>(records: impl Iterator<Item = outcrop::Result<outcrop::Record<'b>>>) -> Answer<jlong> {
    let mut flags = 0;
    for record in records {
        flags |= match record?.op {
            Op::Put { .. } => 1 << 1,
            Op::Delete { .. } => 1 << 2,
            Op::SingleDelete { .. } => 1 << 3,
            Op::Merge { .. } => 1 << 4,
            Op::DeleteRange { .. } => 1 << 9,
            Op::PutEntity { .. } => 1 << 12,
        };
    }
    Ok(flags)
}

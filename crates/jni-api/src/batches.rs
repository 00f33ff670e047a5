//! `WriteBatch` and `WriteBatchWithIndex`.

use crate::args::{AsC, Bytes};
use crate::db::{Write, add};
use crate::env::Env;
use crate::glue::{Answer, bytes_at, checked, take_bytes};
use jni_sys::{jint, jlong, jobject, jvalue};
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
    add(batch as *mut rocksdb_writebatch_t, family as *mut _, write, &key, &value);
    Ok(())
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
    let (batch, cf) = (batch as *mut rocksdb_writebatch_wi_t, family as *mut _);
    let ((k, kl), (v, vl)) = ((key.c(), key.len()), (value.c(), value.len()));
    // SAFETY: see `glue`.
    unsafe {
        match (write, family == 0) {
            (Write::Put, false) => c::rocksdb_writebatch_wi_put_cf(batch, cf, k, kl, v, vl),
            (Write::Put, true) => c::rocksdb_writebatch_wi_put(batch, k, kl, v, vl),
            (Write::Merge, false) => c::rocksdb_writebatch_wi_merge_cf(batch, cf, k, kl, v, vl),
            (Write::Merge, true) => c::rocksdb_writebatch_wi_merge(batch, k, kl, v, vl),
            (Write::Delete, false) => c::rocksdb_writebatch_wi_delete_cf(batch, cf, k, kl),
            (Write::Delete, true) => c::rocksdb_writebatch_wi_delete(batch, k, kl),
            (Write::SingleDelete, false) => c::rocksdb_writebatch_wi_singledelete_cf(batch, cf, k, kl),
            (Write::SingleDelete, true) => c::rocksdb_writebatch_wi_singledelete(batch, k, kl),
            (Write::DeleteRange, _) => {
                return crate::glue::not_implemented("DeleteRange unsupported in WriteBatchWithIndex");
            }
        }
    }
    Ok(())
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

/// A copy of the indexed batch's writes, as RocksJava's class.
pub(crate) fn plain(env: Env, batch: jlong) -> Answer<jobject> {
    let mut len = 0;
    // SAFETY: see `glue`.
    let batch = unsafe {
        let bytes = c::rocksdb_writebatch_wi_data(batch as *mut _, &mut len);
        c::rocksdb_writebatch_create_from(bytes, len)
    };
    env.new_object("org/rocksdb/WriteBatch", "(J)V", &[jvalue { j: batch as jlong }])
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

//! Iterators over a `WriteBatchWithIndex` alone.

use crate::args::Bytes;
use crate::env::Env;
use crate::glue::{Answer, handle, object};
use crate::slices::JavaSlice;
use jni_sys::jlong;
use outcrop::{BatchEntries, CfId, Op};
use outcrop_capi::{rocksdb_column_family_handle_t, rocksdb_writebatch_wi_t};

/// Of the default column family for 0.
pub(crate) fn create(batch: jlong, family: jlong) -> Answer<jlong> {
    let id =
        if family == 0 { CfId::DEFAULT } else { object::<rocksdb_column_family_handle_t>(family).0.id() };
    // SAFETY: see `glue`.
    Ok(handle(unsafe { object::<rocksdb_writebatch_wi_t>(batch).get() }.entries(id)))
}

pub(crate) fn seek(env: Env, iterator: jlong, key: Bytes, backward: bool) -> Answer<()> {
    let (key, iterator) = (key.get(env)?, object::<BatchEntries>(iterator));
    match backward {
        false => iterator.seek(&key),
        true => iterator.seek_for_prev(&key),
    }
    Ok(())
}

/// The number of `WBWIRocksIterator.WriteType`, and the handles of key and value, which is 0 if there is none; the jar's class disposes them.
pub(crate) fn entry(iterator: jlong) -> Answer<Vec<jlong>> {
    let entry = object::<BatchEntries>(iterator).with(|record| {
        let number = match record.op {
            Op::Put { .. } | Op::PutEntity { .. } => 0,
            Op::Merge { .. } => 1,
            Op::Delete { .. } => 2,
            Op::SingleDelete { .. } => 3,
            Op::DeleteRange { .. } => 4,
        };
        let slice = |bytes: &[u8]| handle(JavaSlice::of(bytes.to_vec()));
        vec![number, slice(record.op.key()), record.op.value().map_or(0, slice)]
    });
    entry.ok_or_else(|| crate::glue::illegal("the iterator is at no entry"))
}

//! Iterators of all kinds: each is a C iterator.

use crate::args::{AsC, Bytes};
use crate::env::Env;
use crate::glue::{Answer, bytes_at, checked, object};
use crate::snapshots;
use jni_sys::{jint, jlong};
use outcrop_capi as c;
use outcrop_capi::rocksdb_iterator_t;

pub(crate) fn seek(env: Env, iterator: jlong, key: Bytes, backward: bool) -> Answer<()> {
    let key = key.get(env)?;
    let iterator = iterator as *mut rocksdb_iterator_t;
    // SAFETY: see `glue`.
    unsafe {
        match backward {
            false => c::rocksdb_iter_seek(iterator, key.c(), key.len()),
            true => c::rocksdb_iter_seek_for_prev(iterator, key.c(), key.len()),
        }
    }
    Ok(())
}

pub(crate) fn status(iterator: jlong) -> Answer<()> {
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_iter_get_error(iterator as *const _, error) })
}

pub(crate) fn key<'a>(iterator: jlong) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: see `glue`.
    unsafe { bytes_at(c::rocksdb_iter_key(iterator as *const _, &mut len), len) }
}

pub(crate) fn value<'a>(iterator: jlong) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: see `glue`.
    unsafe { bytes_at(c::rocksdb_iter_value(iterator as *const _, &mut len), len) }
}

pub(crate) fn fill(env: Env, target: Bytes, bytes: &[u8]) -> Answer<jint> {
    target.fill(env, bytes)
}

/// Makes the iterator see the moment of a snapshot, the present for 0.
pub(crate) fn refresh(iterator: jlong, snapshot: jlong) -> Answer<()> {
    let snapshot = if snapshot == 0 { None } else { Some(snapshots::get(snapshot)?) };
    // SAFETY: see `glue`.
    Ok(unsafe { object::<rocksdb_iterator_t>(iterator).refresh_at(snapshot) }?)
}

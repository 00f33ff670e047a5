//! `SstFileReader` and its iterator.

use crate::args::Bytes;
use crate::env::Env;
use crate::glue::{Answer, handle, illegal, not_implemented, object};
use crate::{db, tables};
use jni_sys::{jint, jlong, jobject};
use outcrop::{SstFileCursor, SstFileReader};
use outcrop_capi::{rocksdb_options_t, rocksdb_readoptions_t};

/// The options, which hold what they have been given until then, and the open table.
pub(crate) struct JavaReader {
    options: rocksdb_options_t,
    table: Option<SstFileReader>,
}

pub(crate) fn create(options: jlong) -> Answer<jlong> {
    Ok(handle(JavaReader { options: object::<rocksdb_options_t>(options).clone(), table: None }))
}

pub(crate) fn open(env: Env, reader: jlong, path: jobject) -> Answer<()> {
    let own = object::<JavaReader>(reader);
    let files = own.options.env.clone().unwrap_or_else(outcrop::Env::posix);
    own.table = Some(SstFileReader::open(env.text(path)?, &files, &own.options.descriptor("default")?)?);
    Ok(())
}

fn table<'a>(reader: jlong) -> Answer<&'a SstFileReader> {
    object::<JavaReader>(reader).table.as_ref().ok_or_else(|| illegal("the reader has no table open"))
}

pub(crate) fn verify(reader: jlong) -> Answer<()> {
    Ok(table(reader)?.verify_checksums()?)
}

pub(crate) fn properties(env: Env, reader: jlong) -> Answer<jobject> {
    tables::properties(env, table(reader)?.properties())
}

pub(crate) fn iterator(reader: jlong, options: jlong) -> Answer<jlong> {
    let options = object::<rocksdb_readoptions_t>(db::read_options(options) as jlong);
    Ok(handle(table(reader)?.cursor(options.get()?)))
}

pub(crate) fn cursor<'a>(iterator: jlong) -> &'a mut SstFileCursor {
    object(iterator)
}

pub(crate) fn seek(env: Env, iterator: jlong, key: Bytes, backward: bool) -> Answer<()> {
    let key = key.get(env)?;
    match backward {
        false => cursor(iterator).seek(&key),
        true => cursor(iterator).seek_for_prev(&key),
    }
    Ok(())
}

pub(crate) fn fill(env: Env, target: Bytes, bytes: &[u8]) -> Answer<jint> {
    target.fill(env, bytes)
}

/// As in RocksDB.
pub(crate) fn refresh() -> Answer<()> {
    not_implemented("Refresh() is not supported")
}

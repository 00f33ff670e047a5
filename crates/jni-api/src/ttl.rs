//! `TtlDB`: values that expire.

use crate::args::Bytes;
use crate::db::{self, Layer};
use crate::env::Env;
use crate::glue::{Answer, c_text, checked, not_implemented};
use jni_sys::{jboolean, jint, jlong, jobject};
use outcrop_capi as c;

/// RocksJava's way to open one for reading.
const READ_ONLY: &str = "TtlDB.open with readOnly";

pub(crate) fn open(env: Env, options: jlong, path: jobject, ttl: jint, read_only: jboolean) -> Answer<jlong> {
    if read_only {
        return not_implemented(READ_ONLY);
    }
    // SAFETY: see `glue`.
    db::open(env, path, |path, error| unsafe {
        c::rocksdb_open_with_ttl(options as *const _, path, ttl, error)
    })
}

pub(crate) fn open_families(
    env: Env,
    options: jlong,
    path: jobject,
    families: (jobject, jobject),
    ttls: jobject,
    read_only: jboolean,
) -> Answer<Vec<jlong>> {
    if read_only {
        return not_implemented(READ_ONLY);
    }
    let ttls = env.ints(ttls)?;
    db::open_families(env, path, families, |path, count, names, cf_options, handles, error| {
        // SAFETY: see `glue`; RocksJava checks that there is a time for each column family.
        let opened = unsafe {
            c::rocksdb_open_column_families_with_ttl(
                options as *const _,
                path,
                count,
                names,
                cf_options,
                handles,
                ttls.as_ptr(),
                error,
            )
        };
        (opened, Layer::Plain)
    })
}

pub(crate) fn create_family(env: Env, db: jlong, name: Bytes, options: jlong, ttl: jint) -> Answer<jlong> {
    let name = c_text(&*name.get(env)?)?;
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_create_column_family_with_ttl(db::db(db), options as *const _, name.as_ptr(), ttl, error)
            as jlong
    })
}

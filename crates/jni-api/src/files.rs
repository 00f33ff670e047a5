//! Databases as files: destruction, names, checkpoints, tables made outside of a database.

use crate::db::JavaDb;
use crate::env::Env;
use crate::glue::{Answer, c_text, checked, object};
use jni_sys::{jlong, jobject};
use outcrop_capi as c;

pub(crate) fn destroy(env: Env, path: jobject, options: jlong) -> Answer<()> {
    let path = c_text(env.text(path)?)?;
    // SAFETY: see `glue`.
    checked(|error| unsafe { c::rocksdb_destroy_db(options as *const _, path.as_ptr(), error) })
}

pub(crate) fn name(handle: jlong) -> Answer<String> {
    Ok(object::<JavaDb>(handle).name.clone())
}

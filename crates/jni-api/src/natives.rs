//! The symbols that the JVM looks for, made by `build.rs`.
#![allow(non_snake_case, reason = "the names are JNI's")]
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    reason = "made text; the contract is that of `glue`, one for all"
)]
#![allow(
    unused_variables,
    unused_unsafe,
    reason = "the JVM passes more than most need, and some C functions are safe"
)]

use crate::args::{direct, part, slice, start, whole};
use crate::db::db;
use crate::glue::{checked, dispose, enter, handle, not_implemented, object, to};
use crate::{
    backups, batch_iterators, batches, db, files, filters, flink, handlers, iterators, jobs, limits,
    listeners, metadata, named, objects, option_files, option_lists, options, perf, slices, snapshots,
    sst_readers, statistics, table_configs, tables, threads, transactions, ttl, versions,
};
use jni_sys::{JNIEnv, jboolean, jbyte, jchar, jdouble, jint, jlong, jobject};

include!(concat!(env!("OUT_DIR"), "/natives.rs"));

//! `BackupEngine`.

use crate::db::db;
use crate::env::{Env, jni};
use crate::glue::{Answer, c_text, checked, object};
use jni_sys::{jboolean, jint, jlong, jobject, jvalue};
use outcrop::{BackupEngine, CreateBackupOptions};
use outcrop_capi as c;

pub(crate) fn options(env: Env, path: jobject) -> Answer<jlong> {
    let path = c_text(env.text(path)?)?;
    // SAFETY: see `glue`.
    Ok(unsafe { c::rocksdb_backup_engine_options_create(path.as_ptr()) } as jlong)
}

pub(crate) fn directory(options: jlong) -> Answer<Vec<u8>> {
    let mut len = 0;
    // SAFETY: see `glue`.
    let text = unsafe { c::rocksdb_backup_engine_options_get_backup_dir(options as *mut _, &mut len) };
    Ok(crate::glue::bytes_at(text, len).to_vec())
}

pub(crate) fn open(env: jlong, options: jlong) -> Answer<jlong> {
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_backup_engine_open_opts(options as *const _, env as *mut _, error) as jlong
    })
}

pub(crate) fn create(engine: jlong, handle: jlong, flush: jboolean) -> Answer<()> {
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        c::rocksdb_backup_engine_create_new_backup_flush(
            engine as *mut _,
            db(handle),
            crate::glue::to(flush),
            error,
        );
    })
}

/// The list of `BackupInfo`.
#[allow(unused_unsafe, reason = "calls of the JVM are unsafe by themselves")]
pub(crate) fn infos(env: Env, engine: jlong) -> Answer<jobject> {
    let list = env.new_object("java/util/ArrayList", "()V", &[])?;
    // SAFETY: see `glue`.
    unsafe {
        let infos = c::rocksdb_backup_engine_get_backup_info(engine as *mut _);
        let add = |place: jint| {
            let mut len = 0;
            let metadata = c::rocksdb_backup_engine_info_app_metadata(infos, place, &mut len);
            let metadata = crate::glue::bytes_at(metadata, len);
            let metadata = match metadata {
                [] => std::ptr::null_mut(),
                text => env.new_text(&String::from_utf8_lossy(text))?,
            };
            let info = [
                jvalue { i: c::rocksdb_backup_engine_info_backup_id(infos, place) as jint },
                jvalue { j: c::rocksdb_backup_engine_info_timestamp(infos, place) },
                jvalue { j: c::rocksdb_backup_engine_info_size(infos, place) as jlong },
                jvalue { i: c::rocksdb_backup_engine_info_number_files(infos, place) as jint },
                jvalue { l: metadata },
            ];
            let info = env.new_object("org/rocksdb/BackupInfo", "(IJJILjava/lang/String;)V", &info)?;
            let class = jni!(env, GetObjectClass, list);
            let method = jni!(env, GetMethodID, class, c"add".as_ptr(), c"(Ljava/lang/Object;)Z".as_ptr());
            jni!(env, CallBooleanMethodA, list, method, [jvalue { l: info }].as_ptr());
            env.check()
        };
        let added = (0..c::rocksdb_backup_engine_info_count(infos)).try_for_each(add);
        c::rocksdb_backup_engine_info_destroy(infos);
        added.map(|()| list)
    }
}

/// Restores a backup, the newest for none.
pub(crate) fn restore(
    env: Env,
    engine: jlong,
    backup: Option<jint>,
    (db, wal): (jobject, jobject),
    options: jlong,
) -> Answer<()> {
    let (db, wal) = (c_text(env.text(db)?)?, c_text(env.text(wal)?)?);
    let (engine, options) = (engine as *mut _, options as *const _);
    // SAFETY: see `glue`.
    checked(|error| unsafe {
        match backup {
            None => c::rocksdb_backup_engine_restore_db_from_latest_backup(
                engine,
                db.as_ptr(),
                wal.as_ptr(),
                options,
                error,
            ),
            Some(backup) => c::rocksdb_backup_engine_restore_db_from_backup(
                engine,
                db.as_ptr(),
                wal.as_ptr(),
                options,
                backup as u32,
                error,
            ),
        }
    })
}

/// As the application describes it.
pub(crate) fn create_described(
    env: Env,
    engine: jlong,
    handle: jlong,
    metadata: jobject,
    flush: jboolean,
) -> Answer<()> {
    let options = CreateBackupOptions {
        flush_before_backup: flush,
        app_metadata: env.text(metadata)?.into_bytes(),
        ..CreateBackupOptions::default()
    };
    self::engine(engine).create_backup_with(crate::db::engine(handle), &options)?;
    Ok(())
}

fn engine<'a>(handle: jlong) -> &'a BackupEngine {
    &object::<c::rocksdb_backup_engine_t>(handle).0
}

pub(crate) fn corrupted(handle: jlong) -> Answer<Vec<jint>> {
    Ok(engine(handle).corrupted_backups().into_iter().map(|(id, _)| id as jint).collect())
}

pub(crate) fn delete(handle: jlong, backup: jint) -> Answer<()> {
    Ok(engine(handle).delete_backup(backup as u32)?)
}

pub(crate) fn collect_garbage(handle: jlong) -> Answer<()> {
    Ok(engine(handle).garbage_collect()?)
}

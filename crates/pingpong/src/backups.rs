//! Backups of a database, made and restored.

use crate::call::{Outcome, c_string, call, with_error};
use crate::database::Database;
use crate::library::{Api, Object};
use crate::options::Options;

/// Runs `work` with the backups in `dir`.
fn with_backups<T>(api: &Api, dir: &str, work: impl FnOnce(Object) -> Outcome<T>) -> Outcome<T> {
    let options = Options::new(api, &[])?;
    let dir = c_string(dir)?;
    // SAFETY: live objects; the engine is closed after its one use.
    unsafe {
        let engine =
            with_error(api, |e| Ok(call!(api, rocksdb_backup_engine_open(options.object, dir.as_ptr(), e))))?;
        let result = work(engine);
        call!(api, rocksdb_backup_engine_close(engine));
        result
    }
}

/// Backs the database up into `dir`, and keeps the newest `keep` backups.
pub fn create(database: &Database<'_>, dir: &str, flush: bool, keep: u32) -> Outcome<()> {
    let api = database.api;
    with_backups(api, dir, |engine| {
        with_error(api, |e| {
            // SAFETY: live objects.
            unsafe {
                call!(
                    api,
                    rocksdb_backup_engine_create_new_backup_flush(engine, database.object, flush.into(), e)
                );
            }
            Ok(())
        })?;
        with_error(api, |e| {
            // SAFETY: a live object.
            unsafe { call!(api, rocksdb_backup_engine_purge_old_backups(engine, keep, e)) };
            Ok(())
        })
    })
}

/// Restores the newest backup of `dir` as the database `to`.
pub fn restore(api: &Api, dir: &str, to: &str) -> Outcome<()> {
    let to = c_string(to)?;
    with_backups(api, dir, |engine| {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(api, rocksdb_restore_options_create());
            let result = with_error(api, |e| {
                call!(
                    api,
                    rocksdb_backup_engine_restore_db_from_latest_backup(
                        engine,
                        to.as_ptr(),
                        to.as_ptr(),
                        options,
                        e
                    )
                );
                Ok(())
            });
            call!(api, rocksdb_restore_options_destroy(options));
            result
        }
    })
}

//! Backups of a database: made, verified, restored, deleted.

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
    add(database, dir, flush)?;
    purge(database.api, dir, keep)
}

/// Backs the database up into `dir`.
pub fn add(database: &Database<'_>, dir: &str, flush: bool) -> Outcome<()> {
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
        })
    })
}

/// Deletes the oldest backups of `dir` until `keep` are left.
pub fn purge(api: &Api, dir: &str, keep: u32) -> Outcome<()> {
    with_backups(api, dir, |engine| {
        with_error(api, |e| {
            // SAFETY: a live object.
            unsafe { call!(api, rocksdb_backup_engine_purge_old_backups(engine, keep, e)) };
            Ok(())
        })
    })
}

/// Verifies every backup of `dir`; gives their ids.
pub fn verify(api: &Api, dir: &str) -> Outcome<Vec<u32>> {
    with_backups(api, dir, |engine| {
        // SAFETY: live objects; the list is destroyed after its ids are taken.
        let ids: Vec<u32> = unsafe {
            let list = call!(api, rocksdb_backup_engine_get_backup_info(engine));
            let count = call!(api, rocksdb_backup_engine_info_count(list));
            let id = |place| Ok(call!(api, rocksdb_backup_engine_info_backup_id(list, place)));
            let ids = (0..count).map(id).collect::<Outcome<_>>();
            call!(api, rocksdb_backup_engine_info_destroy(list));
            ids?
        };
        for &id in &ids {
            with_error(api, |e| {
                // SAFETY: a live object.
                unsafe { call!(api, rocksdb_backup_engine_verify_backup(engine, id, e)) };
                Ok(())
            })
            .map_err(|error| format!("backup {id}: {error}"))?;
        }
        Ok(ids)
    })
}

/// Restores the newest backup of `dir` as the database `to`.
pub fn restore(api: &Api, dir: &str, to: &str) -> Outcome<()> {
    restore_any(api, dir, to, None)
}

/// Restores the backup `id` of `dir` as the database `to`; none: the newest.
pub fn restore_any(api: &Api, dir: &str, to: &str, id: Option<u32>) -> Outcome<()> {
    let path = c_string(to)?;
    let to = path.as_ptr();
    with_backups(api, dir, |engine| {
        // SAFETY: live objects; the options are destroyed after their one use.
        unsafe {
            let options = call!(api, rocksdb_restore_options_create());
            let result = with_error(api, |e| {
                match id {
                    Some(id) => {
                        call!(
                            api,
                            rocksdb_backup_engine_restore_db_from_backup(engine, to, to, options, id, e)
                        );
                    }
                    None => {
                        call!(
                            api,
                            rocksdb_backup_engine_restore_db_from_latest_backup(engine, to, to, options, e)
                        );
                    }
                }
                Ok(())
            });
            call!(api, rocksdb_restore_options_destroy(options));
            result
        }
    })
}

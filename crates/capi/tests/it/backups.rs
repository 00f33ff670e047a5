//! Backups beside RocksDB's: one directory that both libraries make, list, verify, restore, delete and continue backups in; the same
//! mistakes on both, texts compared; the files of a database at one moment.
//!
//! `OUTCROP_SEED=n` repeats one seed.

use crate::library::{Bytes, Errptr, Object, c_functions, error_of, outcrop_library, reference, succeeding};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_destroy: fn(Object);
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_enable_blob_files: fn(Object, c_uchar);
    rocksdb_options_set_min_blob_size: fn(Object, u64);
    rocksdb_open: fn(Object, Bytes, Errptr) -> Object;
    rocksdb_close: fn(Object);
    rocksdb_put: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flush: fn(Object, Object, Errptr);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_create_iterator: fn(Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_create_default_env: fn() -> Object;
    rocksdb_backup_engine_open_opts: fn(Object, Object, Errptr) -> Object;
    rocksdb_backup_engine_close: fn(Object);
    rocksdb_backup_engine_create_new_backup_with_metadata: fn(Object, Object, Object, Bytes, size_t, *mut u32, Errptr);
    rocksdb_backup_engine_purge_old_backups: fn(Object, u32, Errptr);
    rocksdb_backup_engine_verify_backup: fn(Object, u32, Errptr);
    rocksdb_backup_engine_restore_db_from_backup: fn(Object, Bytes, Bytes, Object, u32, Errptr);
    rocksdb_backup_engine_restore_db_from_latest_backup: fn(Object, Bytes, Bytes, Object, Errptr);
    rocksdb_backup_engine_get_backup_info: fn(Object) -> Object;
    rocksdb_backup_engine_info_count: fn(Object) -> c_int;
    rocksdb_backup_engine_info_timestamp: fn(Object, c_int) -> i64;
    rocksdb_backup_engine_info_backup_id: fn(Object, c_int) -> u32;
    rocksdb_backup_engine_info_size: fn(Object, c_int) -> u64;
    rocksdb_backup_engine_info_number_files: fn(Object, c_int) -> u32;
    rocksdb_backup_engine_info_app_metadata: fn(Object, c_int, *mut size_t) -> Bytes;
    rocksdb_backup_engine_info_destroy: fn(Object);
    rocksdb_backup_engine_stop_backup: fn(Object);
    rocksdb_backup_engine_options_create: fn(Bytes) -> Object;
    rocksdb_backup_engine_options_destroy: fn(Object);
    rocksdb_backup_engine_options_set_schema_version: fn(Object, c_int);
    rocksdb_backup_engine_options_set_max_background_operations: fn(Object, c_int);
    rocksdb_backup_engine_options_set_share_table_files: fn(Object, c_uchar);
    rocksdb_backup_engine_options_set_share_files_with_checksum: fn(Object, c_uchar);
    rocksdb_backup_engine_options_set_share_files_with_checksum_naming: fn(Object, c_int);
    rocksdb_backup_engine_options_get_share_files_with_checksum_naming: fn(Object) -> c_int;
    rocksdb_backup_engine_options_get_callback_trigger_interval_size: fn(Object) -> u64;
    rocksdb_backup_engine_options_get_max_valid_backups_to_open: fn(Object) -> c_int;
    rocksdb_backup_engine_options_get_max_background_operations: fn(Object) -> c_int;
    rocksdb_backup_engine_options_get_schema_version: fn(Object) -> c_int;
    rocksdb_backup_engine_options_get_io_buffer_size: fn(Object) -> u64;
    rocksdb_backup_engine_options_get_sync: fn(Object) -> c_uchar;
    rocksdb_backup_engine_options_get_backup_log_files: fn(Object) -> c_uchar;
    rocksdb_create_backup_options_create: fn() -> Object;
    rocksdb_create_backup_options_destroy: fn(Object);
    rocksdb_create_backup_options_set_flush_before_backup: fn(Object, c_uchar);
    rocksdb_create_backup_options_set_exclude_files_callback: fn(Object, *mut c_void, *const c_void);
    rocksdb_restore_options_create: fn() -> Object;
    rocksdb_restore_options_destroy: fn(Object);
    rocksdb_restore_options_set_mode: fn(Object, c_int);
    rocksdb_restore_options_get_mode: fn(Object) -> c_int;
    rocksdb_livefiles_storage_info_options_create: fn() -> Object;
    rocksdb_livefiles_storage_info_options_destroy: fn(Object);
    rocksdb_livefiles_storage_info_options_set_wal_size_for_flush: fn(Object, u64);
    rocksdb_livefiles_storage_info_options_set_include_checksum_info: fn(Object, c_uchar);
    rocksdb_get_livefiles_storage_info: fn(Object, Object, Errptr) -> Object;
    rocksdb_livefiles_storage_info_count: fn(Object) -> size_t;
    rocksdb_livefiles_storage_info_relative_filename: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_directory: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_file_number: fn(Object, size_t) -> u64;
    rocksdb_livefiles_storage_info_file_type: fn(Object, size_t) -> c_int;
    rocksdb_livefiles_storage_info_temperature: fn(Object, size_t) -> c_int;
    rocksdb_livefiles_storage_info_file_checksum: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_file_checksum_func_name: fn(Object, size_t) -> Bytes;
    rocksdb_livefiles_storage_info_replacement_contents: fn(Object, size_t, *mut size_t) -> Bytes;
    rocksdb_livefiles_storage_info_trim_to_size: fn(Object, size_t) -> c_uchar;
    rocksdb_livefiles_storage_info_size: fn(Object, size_t) -> u64;
    rocksdb_livefiles_storage_info_destroy: fn(Object);
    rocksdb_checkpoint_object_create: fn(Object, Errptr) -> Object;
    rocksdb_checkpoint_object_destroy: fn(Object);
    rocksdb_checkpoint_export_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_create_column_family_with_import: fn(Object, Object, Bytes, Object, Object, Errptr) -> Object;
    rocksdb_import_column_family_options_create: fn() -> Object;
    rocksdb_export_import_files_metadata_create: fn() -> Object;
    rocksdb_export_import_files_metadata_get_db_comparator_name: fn(Object) -> *mut c_char;
    rocksdb_export_import_files_metadata_set_db_comparator_name: fn(Object, Bytes);
    rocksdb_export_import_files_metadata_get_files: fn(Object) -> Object;
    rocksdb_export_import_files_metadata_set_files: fn(Object, Object);
    rocksdb_livefiles_create: fn() -> Object;
    rocksdb_livefiles_add: fn(Object, Object);
    rocksdb_livefiles_count: fn(Object) -> c_int;
    rocksdb_livefiles_name: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_directory: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_column_family_name: fn(Object, c_int) -> Bytes;
    rocksdb_livefiles_level: fn(Object, c_int) -> c_int;
    rocksdb_livefiles_size: fn(Object, c_int) -> size_t;
    rocksdb_livefiles_entries: fn(Object, c_int) -> u64;
    rocksdb_livefiles_smallest_seqno: fn(Object, c_int) -> u64;
    rocksdb_livefiles_largest_seqno: fn(Object, c_int) -> u64;
    rocksdb_livefiles_smallestkey: fn(Object, c_int, *mut size_t) -> Bytes;
    rocksdb_livefiles_largestkey: fn(Object, c_int, *mut size_t) -> Bytes;
    rocksdb_livefile_create: fn() -> Object;
    rocksdb_livefile_set_name: fn(Object, Bytes);
    rocksdb_livefile_set_directory: fn(Object, Bytes);
    rocksdb_livefile_set_level: fn(Object, c_int);
    rocksdb_livefile_set_size: fn(Object, size_t);
    rocksdb_livefile_set_smallest_seqno: fn(Object, u64);
    rocksdb_livefile_set_largest_seqno: fn(Object, u64);
    rocksdb_create_column_family: fn(Object, Object, Bytes, Errptr) -> Object;
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_compact_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_free: fn(*mut c_void);
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn text(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

impl Api {
    /// The text of the error of `call`; empty if it did well.
    fn call(&self, call: impl FnOnce(Errptr)) -> String {
        error_of(self.rocksdb_free, call)
    }

    fn well<T>(&self, call: impl FnOnce(Errptr) -> T) -> T {
        succeeding(self.rocksdb_free, call)
    }

    fn open_db(&self, path: &Path) -> Object {
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (self.rocksdb_options_create)();
            (self.rocksdb_options_set_create_if_missing)(options, 1);
            (self.rocksdb_options_set_enable_blob_files)(options, 1);
            (self.rocksdb_options_set_min_blob_size)(options, 300);
            let db = self.well(|e| (self.rocksdb_open)(options, text(path).as_ptr(), e));
            (self.rocksdb_options_destroy)(options);
            db
        }
    }

    fn put(&self, db: Object, key: &str, value: &[u8]) {
        // SAFETY: live objects and slices.
        self.well(|e| unsafe {
            let options = (self.rocksdb_writeoptions_create)();
            let (key, len) = (key.as_ptr().cast(), key.len());
            (self.rocksdb_put)(db, options, key, len, value.as_ptr().cast(), value.len(), e);
        });
    }

    fn flush(&self, db: Object) {
        // SAFETY: live objects.
        self.well(|e| unsafe { (self.rocksdb_flush)(db, (self.rocksdb_flushoptions_create)(), e) });
    }

    fn rows(&self, db: Object) -> Rows {
        let mut rows = Rows::new();
        // SAFETY: live objects; keys and values are copied before the next step.
        unsafe {
            let iter = (self.rocksdb_create_iterator)(db, (self.rocksdb_readoptions_create)());
            (self.rocksdb_iter_seek_to_first)(iter);
            while (self.rocksdb_iter_valid)(iter) != 0 {
                let mut len = 0;
                let key = (self.rocksdb_iter_key)(iter, &raw mut len);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), len).to_vec();
                let value = (self.rocksdb_iter_value)(iter, &raw mut len);
                rows.insert(key, std::slice::from_raw_parts(value.cast::<u8>(), len).to_vec());
                (self.rocksdb_iter_next)(iter);
            }
            self.well(|e| (self.rocksdb_iter_get_error)(iter, e));
            (self.rocksdb_iter_destroy)(iter);
        }
        rows
    }

    fn rows_at(&self, path: &Path) -> Rows {
        let db = self.open_db(path);
        let rows = self.rows(db);
        // SAFETY: a live object.
        unsafe { (self.rocksdb_close)(db) };
        rows
    }

    fn open_engine(&self, dir: &Path, set: impl FnOnce(Object)) -> Result<Object, String> {
        // SAFETY: live objects and a NUL-terminated path.
        unsafe {
            let options = (self.rocksdb_backup_engine_options_create)(text(dir).as_ptr());
            set(options);
            let env = (self.rocksdb_create_default_env)();
            let mut engine = null_mut();
            let error = self.call(|e| engine = (self.rocksdb_backup_engine_open_opts)(options, env, e));
            (self.rocksdb_backup_engine_options_destroy)(options);
            if error.is_empty() { Ok(engine) } else { Err(error) }
        }
    }

    fn backup(&self, engine: Object, db: Object, flush: bool, metadata: &[u8]) -> Result<u32, String> {
        let mut id = 0;
        // SAFETY: live objects and slices.
        let error = unsafe {
            let options = (self.rocksdb_create_backup_options_create)();
            (self.rocksdb_create_backup_options_set_flush_before_backup)(options, flush.into());
            let (bytes, len) = (metadata.as_ptr().cast(), metadata.len());
            let error = self.call(|e| {
                (self.rocksdb_backup_engine_create_new_backup_with_metadata)(
                    engine,
                    db,
                    options,
                    bytes,
                    len,
                    &raw mut id,
                    e,
                );
            });
            (self.rocksdb_create_backup_options_destroy)(options);
            error
        };
        if error.is_empty() { Ok(id) } else { Err(error) }
    }

    fn restore(&self, engine: Object, id: u32, target: &Path, mode: c_int) -> String {
        let target = text(target);
        // SAFETY: live objects and NUL-terminated paths.
        unsafe {
            let options = (self.rocksdb_restore_options_create)();
            (self.rocksdb_restore_options_set_mode)(options, mode);
            let error = self.call(|e| {
                let (dir, engine) = (target.as_ptr(), engine);
                (self.rocksdb_backup_engine_restore_db_from_backup)(engine, dir, dir, options, id, e);
            });
            (self.rocksdb_restore_options_destroy)(options);
            error
        }
    }

    fn verify(&self, engine: Object, id: u32) -> String {
        // SAFETY: live objects.
        self.call(|e| unsafe { (self.rocksdb_backup_engine_verify_backup)(engine, id, e) })
    }

    /// (id, time, bytes, files, metadata) of each backup.
    fn infos(&self, engine: Object) -> Vec<(u32, i64, u64, u32, Vec<u8>)> {
        // SAFETY: a live object; indexes within the count; metadata is copied before the info goes.
        unsafe {
            let info = (self.rocksdb_backup_engine_get_backup_info)(engine);
            let one = |i| {
                let mut len = 0;
                let metadata = (self.rocksdb_backup_engine_info_app_metadata)(info, i, &raw mut len);
                (
                    (self.rocksdb_backup_engine_info_backup_id)(info, i),
                    (self.rocksdb_backup_engine_info_timestamp)(info, i),
                    (self.rocksdb_backup_engine_info_size)(info, i),
                    (self.rocksdb_backup_engine_info_number_files)(info, i),
                    std::slice::from_raw_parts(metadata.cast::<u8>(), len).to_vec(),
                )
            };
            let infos = (0..(self.rocksdb_backup_engine_info_count)(info)).map(one).collect();
            (self.rocksdb_backup_engine_info_destroy)(info);
            infos
        }
    }

    fn close_engine(&self, engine: Object) {
        // SAFETY: a live object.
        unsafe { (self.rocksdb_backup_engine_close)(engine) }
    }

    fn close_db(&self, db: Object) {
        // SAFETY: a live object.
        unsafe { (self.rocksdb_close)(db) }
    }
}

/// This library and RocksDB 11.8.1; none without the reference.
fn both() -> Option<[Api; 2]> {
    Some([Api::load(&outcrop_library()), Api::load(&reference()?)])
}

/// Backups in one directory, of a database that changes hands: made by either, read, restored, purged and continued by either.
#[test]
fn both_go_on_with_each_others_backups() {
    let Some(sides) = both() else { return };
    let seeds: Vec<u64> = match std::env::var("OUTCROP_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (1..=6).collect(),
    };
    for seed in seeds {
        println!("seed {seed}");
        hand_over(&sides, seed);
    }
}

fn hand_over(sides: &[Api; 2], seed: u64) {
    let mut rng = Rng(seed);
    let dir = tempfile::tempdir().unwrap();
    let (db_dir, backups) = (dir.path().join("db"), dir.path().join("backups"));
    // Each backup with its rows and metadata.
    let mut made: BTreeMap<u32, (Rows, Vec<u8>)> = BTreeMap::new();
    let (mut next, mut made_by) = (1, [0, 0]);
    // Modes that name files by number alone cannot follow a database that was restored.
    let by_number = seed.is_multiple_of(5);
    for step in 0..30 {
        let who = rng.below(2) as usize;
        let api = &sides[who];
        let db = api.open_db(&db_dir);
        for i in 0..rng.below(30) {
            let value = vec![b'a' + rng.below(26) as u8; rng.below(600) as usize];
            api.put(db, &format!("{:02}", rng.below(40)), &value);
            api.put(db, &format!("step{step:02}-{i:02}"), &value);
            if rng.below(20) == 0 {
                api.flush(db);
            }
        }
        let naming = [0x8000_0002_u32.cast_signed(), 2, 1][rng.below(3) as usize];
        let (schema, threads) = (1 + rng.below(2) as c_int, 1 + rng.below(3) as c_int);
        let shared = rng.below(8) > 0;
        // SAFETY: live objects.
        let engine = api.open_engine(&backups, |o| unsafe {
            (api.rocksdb_backup_engine_options_set_schema_version)(o, schema);
            (api.rocksdb_backup_engine_options_set_max_background_operations)(o, threads);
            (api.rocksdb_backup_engine_options_set_share_files_with_checksum_naming)(o, naming);
            (api.rocksdb_backup_engine_options_set_share_files_with_checksum)(o, (!by_number).into());
            (api.rocksdb_backup_engine_options_set_share_table_files)(o, shared.into());
        });
        let engine = engine.unwrap();
        match rng.below(8) {
            0 => {
                let keep = rng.below(6) as u32;
                // SAFETY: live objects.
                api.well(|e| unsafe { (api.rocksdb_backup_engine_purge_old_backups)(engine, keep, e) });
                while made.len() > keep as usize {
                    made.pop_first();
                }
            }
            1..6 => {
                let metadata = vec![rng.below(256) as u8; rng.below(20) as usize];
                let id = api.backup(engine, db, rng.below(3) == 0, &metadata).unwrap();
                assert_eq!(id, next, "seed {seed}, step {step}");
                next += 1;
                made_by[who] += 1;
                made.insert(id, (api.rows(db), metadata));
            }
            _ => {}
        }
        let listed: Vec<_> = api.infos(engine).into_iter().map(|info| (info.0, info.4)).collect();
        let expected: Vec<_> = made.iter().map(|(id, (_, metadata))| (*id, metadata.clone())).collect();
        assert_eq!(listed, expected, "seed {seed}, step {step}");
        if made.is_empty() {
            // Ids begin at 1 again once there is none and the engine is opened anew.
            next = 1;
        }
        api.close_engine(engine);
        api.close_db(db);
        look_from_both(sides, &backups, dir.path(), &made, &mut rng, (seed, step));
        if !by_number
            && rng.below(6) == 0
            && let Some((&id, (rows, _))) = made.iter().nth(rng.below(made.len().max(1) as u64) as usize)
        {
            // The database goes back to an older state, and its files get the same numbers again.
            let api = &sides[rng.below(2) as usize];
            let engine = api.open_engine(&backups, |_| {}).unwrap();
            let mode = [0xffff, 1, 2][rng.below(3) as usize];
            assert_eq!(api.restore(engine, id, &db_dir, mode), "");
            api.close_engine(engine);
            assert!(sides[rng.below(2) as usize].rows_at(&db_dir) == *rows);
        }
    }
    assert!(made_by[0] > 0 && made_by[1] > 0, "seed {seed}: one side made no backup");
}

/// Both libraries see the same backups, whole, and restore what was backed up.
fn look_from_both(
    sides: &[Api; 2],
    backups: &Path,
    scratch: &Path,
    made: &BTreeMap<u32, (Rows, Vec<u8>)>,
    rng: &mut Rng,
    at: (u64, i32),
) {
    let engines = [0, 1].map(|i| sides[i].open_engine(backups, |_| {}).unwrap());
    assert_eq!(sides[0].infos(engines[0]), sides[1].infos(engines[1]), "{at:?}");
    for id in made.keys() {
        for (api, engine) in sides.iter().zip(engines) {
            assert_eq!(api.verify(engine, *id), "", "{at:?}, backup {id}");
        }
    }
    if let Some((id, (rows, _))) = made.iter().nth(rng.below(made.len().max(1) as u64) as usize) {
        let (by, read_by) = (rng.below(2) as usize, rng.below(2) as usize);
        let target = scratch.join("restored");
        assert_eq!(sides[by].restore(engines[by], *id, &target, 0xffff), "", "{at:?}");
        assert!(
            sides[read_by].rows_at(&target) == *rows,
            "{at:?}: backup {id} restored by {by}, read by {read_by}"
        );
    }
    for (api, engine) in sides.iter().zip(engines) {
        api.close_engine(engine);
    }
}

/// RocksDB removes nothing then, and copies over what is there.
#[test]
fn a_restore_mode_that_is_none_is_refused() {
    let api = Api::load(&outcrop_library());
    let dir = tempfile::tempdir().unwrap();
    let (db_dir, backups) = (dir.path().join("db"), dir.path().join("backups"));
    let db = api.open_db(&db_dir);
    api.put(db, "a", b"1");
    let engine = api.open_engine(&backups, |_| {}).unwrap();
    let id = api.backup(engine, db, true, b"").unwrap();
    for mode in [0, 3, -1] {
        let error = api.restore(engine, id, &dir.path().join("target"), mode);
        assert!(error.starts_with(&format!("Invalid argument: {mode} is no restore mode")), "{error}");
    }
    api.close_engine(engine);
    api.close_db(db);
}

/// The errors of both libraries for the same mistakes and the same damage.
#[test]
fn mistakes_and_damage_are_told_in_the_same_words() {
    let Some(sides) = both() else { return };
    let [ours, theirs] = [0, 1].map(|i| answers(&sides[i]));
    for ((what, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        println!("{what}: {theirs}");
        assert_eq!(ours, theirs, "{what}");
    }
    assert_eq!(ours.len(), theirs.len());
}

/// The name of a table says its number, session and size, which differ.
fn without_session(text: &str) -> String {
    match (text.find("shared_checksum/"), text.find(".sst")) {
        (Some(begin), Some(end)) if begin < end => format!("{}TABLE{}", &text[..begin], &text[end..]),
        _ => text.to_string(),
    }
}

fn answers(api: &Api) -> Vec<(&'static str, String)> {
    let dir = tempfile::tempdir().unwrap();
    let (db_dir, backups) = (dir.path().join("db"), dir.path().join("backups"));
    let db = api.open_db(&db_dir);
    for i in 0..10 {
        api.put(db, &format!("{i}"), &[b'v'; 500]);
    }
    api.flush(db);
    let mut answers = Vec::new();
    let mut answer = |what, text: String| {
        answers.push((what, without_session(&text.replace(dir.path().to_str().unwrap(), "DIR"))));
    };
    let engine = api.open_engine(&backups, |_| {}).unwrap();
    let target = dir.path().join("target");
    answer("restore of none", api.restore(engine, 7, &target, 0xffff));
    answer("verify of none", api.verify(engine, 7));
    let latest = text(&target);
    // SAFETY: live objects and NUL-terminated paths.
    answer(
        "restore of the latest of none",
        api.call(|e| unsafe {
            let options = (api.rocksdb_restore_options_create)();
            (api.rocksdb_backup_engine_restore_db_from_latest_backup)(
                engine,
                latest.as_ptr(),
                latest.as_ptr(),
                options,
                e,
            );
        }),
    );
    answer("metadata", format!("{:?}", api.backup(engine, db, false, &vec![1; (1 << 20) + 1])));
    for i in 0..3 {
        answer("backup", format!("{:?}", api.backup(engine, db, i == 1, b"m")));
    }
    let mut file = |what, change: &dyn Fn(&Path)| {
        let private = backups.join("private/2");
        let mut names = std::fs::read_dir(&private).unwrap().flatten().map(|e| e.path());
        let current = names.find(|path| path.ends_with("CURRENT")).unwrap();
        let whole = std::fs::read(&current).unwrap();
        change(&current);
        answer(what, api.verify(engine, 2));
        let again = api.open_engine(&backups, |_| {}).unwrap();
        let ids: Vec<u32> = api.infos(again).iter().map(|info| info.0).collect();
        answer(what, format!("{ids:?} {}", api.restore(again, 2, &target, 0xffff)));
        answer(what, api.verify(again, 2));
        api.close_engine(again);
        std::fs::write(&current, whole).unwrap();
    };
    file("a file is gone", &|path| std::fs::remove_file(path).unwrap());
    let meta = backups.join("meta/2");
    let whole = std::fs::read_to_string(&meta).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let joined = |lines: &[&str]| format!("{}\n", lines.join("\n"));
    let metas = [
        ("no files", joined(&lines[..4])),
        ("one file too few", joined(&lines[..lines.len() - 1])),
        ("not to the end", whole.trim_end().to_string()),
        ("schema", format!("schema_version 3.0\n{whole}")),
        ("hex", whole.replace("metadata 6D", "metadata 6X")),
        ("empty line", whole.replace("metadata 6D", "")),
        ("a field", whole.replace("metadata 6D", "something else")),
        ("a word", whole.replace("metadata 6D", "something")),
        ("checksum's name", whole.replace("crc32", "crc33")),
        ("checksum", whole.replace("crc32 ", "crc32 x")),
        ("more", whole.replace("crc32 ", "crc32 1 crc32 ")),
        ("empty", String::new()),
    ];
    for (what, text) in metas {
        std::fs::write(&meta, text).unwrap();
        let again = api.open_engine(&backups, |_| {}).unwrap();
        let ids: Vec<u32> = api.infos(again).iter().map(|info| info.0).collect();
        answer(what, format!("{ids:?} {}", api.restore(again, 2, &target, 0xffff)));
        api.close_engine(again);
    }
    std::fs::write(&meta, &whole).unwrap();
    for schema in [0, -1, 3] {
        // SAFETY: a live object. RocksDB notices when the first backup is made, this engine when it is opened.
        let opened = api.open_engine(&backups, |o| unsafe {
            (api.rocksdb_backup_engine_options_set_schema_version)(o, schema);
        });
        let made = opened.and_then(|engine| api.backup(engine, db, false, b""));
        answer("schema version", made.unwrap_err());
    }
    extern "C" fn none(_: *mut c_void, _: Bytes, _: size_t) -> c_uchar {
        0
    }
    // SAFETY: live objects; the function has the type of the header.
    answer(
        "exclusion with schema 1",
        api.call(|e| unsafe {
            let options = (api.rocksdb_create_backup_options_create)();
            let function = none as extern "C" fn(*mut c_void, Bytes, size_t) -> c_uchar;
            (api.rocksdb_create_backup_options_set_exclude_files_callback)(
                options,
                null_mut(),
                function as *const c_void,
            );
            (api.rocksdb_backup_engine_create_new_backup_with_metadata)(
                engine,
                db,
                options,
                null(),
                0,
                null_mut(),
                e,
            );
        }),
    );
    // SAFETY: a live object.
    unsafe { (api.rocksdb_backup_engine_stop_backup)(engine) };
    answer("stopped", format!("{:?}", api.backup(engine, db, false, b"")));
    // SAFETY: live objects.
    unsafe {
        let options = (api.rocksdb_backup_engine_options_create)(c"x".as_ptr());
        let numbers = [
            i64::from((api.rocksdb_backup_engine_options_get_share_files_with_checksum_naming)(options)),
            (api.rocksdb_backup_engine_options_get_callback_trigger_interval_size)(options).cast_signed(),
            i64::from((api.rocksdb_backup_engine_options_get_max_valid_backups_to_open)(options)),
            i64::from((api.rocksdb_backup_engine_options_get_max_background_operations)(options)),
            i64::from((api.rocksdb_backup_engine_options_get_schema_version)(options)),
            (api.rocksdb_backup_engine_options_get_io_buffer_size)(options).cast_signed(),
            i64::from((api.rocksdb_backup_engine_options_get_sync)(options)),
            i64::from((api.rocksdb_backup_engine_options_get_backup_log_files)(options)),
            i64::from((api.rocksdb_restore_options_get_mode)((api.rocksdb_restore_options_create)())),
        ];
        answer("defaults", format!("{numbers:?}"));
    }
    api.close_engine(engine);
    api.close_db(db);
    answers
}

/// The files of a database at one moment: the same kinds in the same order, and what is said of each.
#[test]
fn live_files_are_told_alike() {
    let Some(sides) = both() else { return };
    let told = [0, 1].map(|i| live_files(&sides[i]));
    assert_eq!(told[0], told[1]);
}

fn live_files(api: &Api) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let db = api.open_db(dir.path());
    let mut told = Vec::new();
    for (wal_size_for_flush, checksums) in [(u64::MAX, 1), (0, 0), (1 << 30, 1), (0, 1)] {
        for i in 0..20_u64 {
            api.put(db, &format!("{wal_size_for_flush} {i}"), &vec![b'v'; (i * 30) as usize]);
        }
        // SAFETY: live objects; indexes within the count; texts are copied before the info goes.
        unsafe {
            let options = (api.rocksdb_livefiles_storage_info_options_create)();
            (api.rocksdb_livefiles_storage_info_options_set_wal_size_for_flush)(options, wal_size_for_flush);
            (api.rocksdb_livefiles_storage_info_options_set_include_checksum_info)(options, checksums);
            let info = api.well(|e| (api.rocksdb_get_livefiles_storage_info)(db, options, e));
            (api.rocksdb_livefiles_storage_info_options_destroy)(options);
            for i in 0..(api.rocksdb_livefiles_storage_info_count)(info) {
                let c_text = |text| CStr::from_ptr(text).to_str().unwrap().to_string();
                let name = c_text((api.rocksdb_livefiles_storage_info_relative_filename)(info, i));
                let number = (api.rocksdb_livefiles_storage_info_file_number)(info, i);
                let mut len = 0;
                let contents =
                    (api.rocksdb_livefiles_storage_info_replacement_contents)(info, i, &raw mut len);
                let contents = std::slice::from_raw_parts(contents.cast::<u8>(), len);
                let size = (api.rocksdb_livefiles_storage_info_size)(info, i);
                let trimmed = (api.rocksdb_livefiles_storage_info_trim_to_size)(info, i);
                let on_disk = std::fs::metadata(dir.path().join(&name)).unwrap().len();
                assert!(size == on_disk || (trimmed != 0 && size < on_disk), "{name}: {size} of {on_disk}");
                assert_eq!(contents.is_empty(), name != "CURRENT");
                assert_eq!(number == 0, name == "CURRENT");
                let digits: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
                let directory = c_text((api.rocksdb_livefiles_storage_info_directory)(info, i));
                assert_eq!(Path::new(&directory), dir.path());
                told.push(format!(
                    "{digits} {} trim {trimmed} {:?} {} {:?} {:?}",
                    (api.rocksdb_livefiles_storage_info_file_type)(info, i),
                    contents.first(),
                    (api.rocksdb_livefiles_storage_info_temperature)(info, i),
                    c_text((api.rocksdb_livefiles_storage_info_file_checksum_func_name)(info, i)),
                    c_text((api.rocksdb_livefiles_storage_info_file_checksum)(info, i)),
                ));
            }
            (api.rocksdb_livefiles_storage_info_destroy)(info);
        }
    }
    api.close_db(db);
    told
}

/// The facts of an export about its files, in the form that a C program can carry to another database.
#[derive(Clone, Debug, PartialEq)]
struct Carried {
    name: CString,
    directory: CString,
    level: c_int,
    size: size_t,
    seqnos: (u64, u64),
}

/// Exports a column family that `api` writes; gives also what it told of it.
fn exported(api: &Api, dir: &Path) -> (Vec<Carried>, Vec<String>) {
    let db = api.open_db(&dir.join("source"));
    let mut told = Vec::new();
    // SAFETY: live objects, NUL-terminated texts, indexes within the count.
    unsafe {
        let options = (api.rocksdb_options_create)();
        let cf = api.well(|e| (api.rocksdb_create_column_family)(db, options, c"fruit".as_ptr(), e));
        let write = (api.rocksdb_writeoptions_create)();
        for round in 0..3 {
            for i in 0..30 {
                let (key, value) = (format!("k{:02}", i + round * 10), format!("{round}"));
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                api.well(|e| (api.rocksdb_put_cf)(db, write, cf, k, key.len(), v, value.len(), e));
            }
            api.well(|e| (api.rocksdb_flush_cf)(db, (api.rocksdb_flushoptions_create)(), cf, e));
            if round == 0 {
                (api.rocksdb_compact_range_cf)(db, cf, null(), 0, null(), 0);
            }
        }
        let checkpoint = api.well(|e| (api.rocksdb_checkpoint_object_create)(db, e));
        let target = text(&dir.join("export"));
        let export = |e| (api.rocksdb_checkpoint_export_column_family)(checkpoint, cf, target.as_ptr(), e);
        let metadata = api.well(export);
        told.push(api.call(|e| assert!(export(e).is_null())));
        (api.rocksdb_checkpoint_object_destroy)(checkpoint);
        let name = (api.rocksdb_export_import_files_metadata_get_db_comparator_name)(metadata);
        told.push(CStr::from_ptr(name).to_str().unwrap().to_string());
        let files = (api.rocksdb_export_import_files_metadata_get_files)(metadata);
        let mut carried = Vec::new();
        for i in 0..(api.rocksdb_livefiles_count)(files) {
            let key = |of: unsafe extern "C" fn(Object, c_int, *mut size_t) -> Bytes| {
                let mut len = 0;
                let key = of(files, i, &raw mut len);
                String::from_utf8_lossy(std::slice::from_raw_parts(key.cast::<u8>(), len)).into_owned()
            };
            let c_text = |text| CStr::from_ptr(text).to_owned();
            let file = Carried {
                name: c_text((api.rocksdb_livefiles_name)(files, i)),
                directory: c_text((api.rocksdb_livefiles_directory)(files, i)),
                level: (api.rocksdb_livefiles_level)(files, i),
                size: (api.rocksdb_livefiles_size)(files, i),
                seqnos: (
                    (api.rocksdb_livefiles_smallest_seqno)(files, i),
                    (api.rocksdb_livefiles_largest_seqno)(files, i),
                ),
            };
            assert!(file.name.to_bytes().starts_with(b"/"));
            assert_eq!(file.directory, target);
            // Where a compaction moves the table or rewrites it, its numbers may differ.
            let seqnos = (file.level == 0).then_some(file.seqnos);
            told.push(format!(
                "{} {:?} {} {} {seqnos:?} {}",
                file.level,
                c_text((api.rocksdb_livefiles_column_family_name)(files, i)),
                key(api.rocksdb_livefiles_smallestkey),
                key(api.rocksdb_livefiles_largestkey),
                (api.rocksdb_livefiles_entries)(files, i)
            ));
            carried.push(file);
        }
        api.close_db(db);
        (carried, told)
    }
}

/// Imports them; the error, or the values of all keys, joined.
fn imported(api: &Api, db: Object, name: &CStr, comparator: &CStr, files: &[Carried]) -> String {
    // SAFETY: live objects, NUL-terminated texts.
    unsafe {
        let list = (api.rocksdb_livefiles_create)();
        for file in files {
            let one = (api.rocksdb_livefile_create)();
            (api.rocksdb_livefile_set_name)(one, file.name.as_ptr());
            (api.rocksdb_livefile_set_directory)(one, file.directory.as_ptr());
            (api.rocksdb_livefile_set_level)(one, file.level);
            (api.rocksdb_livefile_set_size)(one, file.size);
            (api.rocksdb_livefile_set_smallest_seqno)(one, file.seqnos.0);
            (api.rocksdb_livefile_set_largest_seqno)(one, file.seqnos.1);
            (api.rocksdb_livefiles_add)(list, one);
        }
        let metadata = (api.rocksdb_export_import_files_metadata_create)();
        (api.rocksdb_export_import_files_metadata_set_db_comparator_name)(metadata, comparator.as_ptr());
        (api.rocksdb_export_import_files_metadata_set_files)(metadata, list);
        let (options, import) =
            ((api.rocksdb_options_create)(), (api.rocksdb_import_column_family_options_create)());
        let mut cf = null_mut();
        let error = api.call(|e| {
            cf = (api.rocksdb_create_column_family_with_import)(
                db,
                options,
                name.as_ptr(),
                import,
                metadata,
                e,
            );
        });
        if !error.is_empty() {
            return error;
        }
        let mut values = String::new();
        for i in 0..60 {
            let (key, mut len) = (format!("k{i:02}"), 0);
            let read = (api.rocksdb_readoptions_create)();
            let value = api.well(|e| {
                (api.rocksdb_get_cf)(db, read, cf, key.as_ptr().cast(), key.len(), &raw mut len, e)
            });
            if !value.is_null() {
                values
                    .push_str(&String::from_utf8_lossy(std::slice::from_raw_parts(value.cast::<u8>(), len)));
                (api.rocksdb_free)(value.cast());
            }
        }
        values
    }
}

/// Each library imports what each has exported, with what a C program can carry from one to the other.
#[test]
fn exports_are_imported_by_either() {
    let Some(sides) = both() else { return };
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let exports = [0, 1].map(|i| exported(&sides[i], dirs[i].path()));
    assert_eq!(exports[0].1, exports[1].1, "told of the export");
    let bytewise = c"leveldb.BytewiseComparator";
    for (from, (files, _)) in exports.iter().enumerate() {
        let answers = [0, 1].map(|to| {
            let api = &sides[to];
            let db = api.open_db(&dirs[from].path().join(format!("target{to}")));
            let mut answers = vec![
                imported(api, db, c"a", c"another", files),
                imported(api, db, c"a", bytewise, &[]),
                imported(api, db, c"default", bytewise, files),
                imported(api, db, c"a", bytewise, files),
                imported(api, db, c"a", bytewise, files),
            ];
            let on_one_level: Vec<Carried> =
                files.iter().map(|file| Carried { level: 1, ..file.clone() }).collect();
            let error = imported(api, db, c"b", bytewise, &on_one_level);
            answers.push(error.split(':').take(2).collect());
            api.close_db(db);
            answers
        });
        println!("{answers:?}");
        assert_eq!(answers[0], answers[1], "exported by {from}");
        assert_eq!(answers[0][3].len(), 50);
    }
}

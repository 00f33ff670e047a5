//! Backups: contents, sharing, damage, deletion, crashes and full disks, on file systems in memory.

use crate::harness::{Rng, Rows, StopOnDrop, contents, seed};
use outcrop::*;
use outcrop_env::OpenWrite;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const DIR: &str = "/backups";

fn options() -> BackupEngineOptions {
    BackupEngineOptions::new(DIR)
}

fn open_engine(env: &Env) -> BackupEngine {
    BackupEngine::open(options(), env).unwrap()
}

fn family_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 500,
        disable_auto_compactions: true,
        ..ColumnFamilyOptions::default()
    }
}

fn open_at(env: &Env, path: &str) -> Result<Db> {
    Db::builder(path)
        .env(env.clone())
        .create_if_missing(true)
        .create_missing_column_families(true)
        .default_column_family(family_options())
        .column_family(ColumnFamilyDescriptor::new("side").with_options(family_options()))
        .open()
}

fn rows_of(db: &Db) -> BTreeMap<String, Rows> {
    db.column_families()
        .iter()
        .map(|cf| (cf.name().to_string(), contents(db, cf, &ReadOptions::default())))
        .collect()
}

/// The rows of backup `id`, restored.
fn restored(engine: &BackupEngine, env: &Env, id: u32) -> BTreeMap<String, Rows> {
    engine.restore_backup(id, "/restored", "/restored").unwrap();
    let db = open_at(env, "/restored").unwrap();
    let rows = rows_of(&db);
    db.close().unwrap();
    rows
}

/// Rows small and large, in both column families, in tables and WALs.
fn write_some(db: &Db, round: u64) {
    let side = db.column_family("side").unwrap();
    for i in 0..20 {
        let value = vec![b'a' + (round % 26) as u8; if i % 5 == 0 { 800 } else { 30 }];
        db.put(format!("k{i:03}"), &value).unwrap();
        db.put_cf(&side, format!("s{round:03}-{i:03}"), &value).unwrap();
        if i == 10 {
            db.flush().unwrap();
            db.flush_cf(&side).unwrap();
        }
    }
}

fn names(env: &Env, dir: &str) -> Vec<String> {
    let mut names = env.fs.list(&Path::new(DIR).join(dir)).unwrap();
    names.sort();
    names
}

fn overwrite(env: &Env, path: &Path, bytes: &[u8]) {
    let mut file = env.fs.create(path, OpenWrite::default()).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
}

#[test]
fn each_backup_is_the_database_as_it_was() {
    for (share, checksum, naming, schema, threads) in [
        (true, true, SharedFileNaming::SessionIdAndSize, 1, 1),
        (true, true, SharedFileNaming::SessionId, 2, 3),
        (true, true, SharedFileNaming::Checksum, 2, 2),
        (true, false, SharedFileNaming::Checksum, 1, 1),
        (false, false, SharedFileNaming::Checksum, 1, 4),
    ] {
        let env = Env::memory();
        let db = open_at(&env, "/db").unwrap();
        let engine = BackupEngine::open(
            BackupEngineOptions {
                share_table_files: share,
                share_files_with_checksum: checksum,
                naming,
                schema_version: schema,
                max_background_operations: threads,
                io_buffer_size: 100,
                ..options()
            },
            &env,
        )
        .unwrap();
        let mut states = Vec::new();
        for round in 0..4 {
            write_some(&db, round);
            let flush_before_backup = round % 2 == 1;
            let created = CreateBackupOptions { flush_before_backup, ..CreateBackupOptions::default() };
            states.push((engine.create_backup_with(&db, &created).unwrap(), rows_of(&db)));
            assert_eq!(
                engine.backup_info(states.len() as u32).unwrap().sequence_number,
                db.latest_sequence_number().0
            );
        }
        let ids: Vec<u32> = states.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        for (id, rows) in &states {
            engine.verify_backup(*id).unwrap();
            assert!(restored(&engine, &env, *id) == *rows, "backup {id}");
        }
        engine.purge_old_backups(2).unwrap();
        let again = open_engine(&env);
        assert_eq!(again.backup_infos().iter().map(|info| info.id).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(names(&env, "private"), ["3", "4"]);
        for (id, rows) in &states[2..] {
            again.verify_backup(*id).unwrap();
            assert!(restored(&again, &env, *id) == *rows, "backup {id} after older ones are gone");
        }
        again.delete_backup(4).unwrap();
        again.delete_backup(3).unwrap();
        for dir in ["private", "meta", if checksum { "shared_checksum" } else { "shared" }] {
            if share || dir != "shared" {
                assert_eq!(names(&env, dir), [""; 0], "{dir}");
            }
        }
        assert_eq!(again.delete_backup(3).unwrap_err().to_string(), "NotFound: Backup not found");
        assert_eq!(again.create_backup(&db).unwrap(), 5, "ids are not given twice");
    }
}

#[test]
fn tables_are_copied_once() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    let engine = open_engine(&env);
    write_some(&db, 0);
    db.flush_cfs(&db.column_families(), Wait::UntilDone).unwrap();
    let copied = Arc::new(AtomicU64::new(0));
    let engine =
        BackupEngine::open(BackupEngineOptions { callback_trigger_interval_size: 1, ..options() }, &env)
            .inspect(|_| drop(engine))
            .unwrap();
    let mut bytes = Vec::new();
    for _ in 0..2 {
        let counted = copied.clone();
        let progress: Progress = Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let created = CreateBackupOptions { progress: Some(progress), ..CreateBackupOptions::default() };
        let before = copied.load(Ordering::Relaxed);
        let id = engine.create_backup_with(&db, &created).unwrap();
        bytes.push((copied.load(Ordering::Relaxed) - before, engine.backup_info(id).unwrap().size));
    }
    let shared: u64 = names(&env, "shared_checksum")
        .iter()
        .map(|name| env.fs.file_size(&Path::new(DIR).join("shared_checksum").join(name)).unwrap())
        .sum();
    assert_eq!(bytes[0].0, bytes[0].1, "the first backup copies all of it");
    assert_eq!(bytes[1].0, bytes[1].1 - shared, "the second one its own files");
    assert!(names(&env, "shared_checksum").iter().all(|name| name.contains('_')));
}

/// One writer counts up, each number in both column families by one batch; every backup has all numbers up to one that
/// was current while it was made, and no further one.
#[test]
fn a_backup_beside_writes_is_a_point_that_was_there() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    let engine =
        BackupEngine::open(BackupEngineOptions { max_background_operations: 2, ..options() }, &env).unwrap();
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut backups = Vec::new();
    std::thread::scope(|scope| {
        let _stopping = StopOnDrop(&stop);
        scope.spawn(|| {
            let side = db.column_family("side").unwrap();
            for number in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let mut batch = WriteBatch::new();
                batch.put("last", format!("{number}"));
                batch.put(format!("n{number:08}"), vec![b'v'; (number % 900) as usize]);
                batch.put_cf(&side, "last", format!("{number}"));
                db.write(&mut batch).unwrap();
                written.store(number, Ordering::SeqCst);
                if number % 97 == 0 {
                    db.flush_cfs(&db.column_families(), Wait::No).unwrap();
                }
                if number % 501 == 0 {
                    db.compact_range(None, None).unwrap();
                }
            }
        });
        for round in 0..12 {
            crate::harness::until("a write", || written.load(Ordering::SeqCst) > round * 40);
            let before = written.load(Ordering::SeqCst);
            let flush_before_backup = round % 3 == 0;
            let created = CreateBackupOptions { flush_before_backup, ..CreateBackupOptions::default() };
            let id = engine.create_backup_with(&db, &created).unwrap();
            backups.push((id, before, written.load(Ordering::SeqCst) + 1));
        }
    });
    for (id, before, after) in backups {
        engine.verify_backup(id).unwrap();
        let rows = restored(&engine, &env, id);
        let last = |cf: &str| -> u64 {
            rows[cf].get(&b"last"[..]).map_or(0, |value| String::from_utf8_lossy(value).parse().unwrap())
        };
        let number = last("default");
        assert!((before..=after).contains(&number), "{number} was current between {before} and {after}");
        assert_eq!(last("side"), number);
        let counted = rows["default"].keys().filter(|key| key.starts_with(b"n")).count() as u64;
        assert_eq!(counted, number, "backup {id}");
    }
}

#[test]
fn every_damaged_file_is_found() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let engine = open_engine(&env);
    let id = engine.create_backup(&db).unwrap();
    let rows = rows_of(&db);
    let files = engine.backup_info(id).unwrap().files;
    for kind in [".sst", ".blob", "CURRENT", "MANIFEST", "OPTIONS", ".log"] {
        assert!(files.iter().any(|file| file.name.contains(kind)), "{kind}");
    }
    for file in files {
        let path = Path::new(DIR).join(&file.name);
        let whole = env.fs.read_all(&path).unwrap();
        if whole.is_empty() {
            continue;
        }
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 1;
        overwrite(&env, &path, &changed);
        engine.verify_backup_sizes(id).unwrap();
        let error = engine.verify_backup(id).unwrap_err().to_string();
        assert!(
            error.starts_with("Corruption: File corruption! Checksum mismatch for ")
                && error.contains(&file.name),
            "{error}"
        );
        let error = engine.restore_backup(id, "/restored", "/restored").unwrap_err().to_string();
        assert!(error.starts_with("Corruption: While restoring ") && error.contains(&file.name), "{error}");
        assert!(
            !env.fs.exists(Path::new("/restored/CURRENT")).unwrap(),
            "what was not completed cannot be opened"
        );

        overwrite(&env, &path, &whole[..whole.len() - 1]);
        let error = engine.verify_backup_sizes(id).unwrap_err().to_string();
        assert!(error.starts_with("Corruption: File corrupted: File size mismatch for "), "{error}");
        // A backup that is not whole leaves what is there.
        open_at(&env, "/kept").unwrap().put("here", "1").unwrap();
        engine.restore_backup(id, "/kept", "/kept").unwrap_err();
        assert!(open_at(&env, "/kept").unwrap().get("here").unwrap().is_some());

        env.fs.remove_file(&path).unwrap();
        assert!(engine.verify_backup(id).unwrap_err().to_string().starts_with("NotFound: File missing: "));
        let again = open_engine(&env);
        let corrupted = again.corrupted_backups();
        assert_eq!(corrupted.len(), 1);
        let expected = format!("Corruption: Pathname in meta file not found on disk: {DIR}/{}", file.name);
        assert_eq!(corrupted[0].1.to_string(), expected);
        assert_eq!(again.backup_infos(), []);
        assert_eq!(again.restore_backup(id, "/kept", "/kept").unwrap_err().to_string(), expected);
        // Nothing of a damaged backup goes but with it: the file may come back.
        again.purge_old_backups(0).unwrap();
        again.garbage_collect().unwrap();
        overwrite(&env, &path, &whole);
        open_engine(&env).verify_backup(id).unwrap();
    }
    assert!(restored(&engine, &env, id) == rows);
}

/// A shared file that is damaged, cut or gone is copied again, and the older backup is whole again with it.
#[test]
fn a_backup_does_not_rely_on_a_damaged_file() {
    for damage in ["changed", "cut", "gone"] {
        let env = Env::memory();
        let db = open_at(&env, "/db").unwrap();
        write_some(&db, 0);
        let engine = open_engine(&env);
        engine.create_backup(&db).unwrap();
        for name in names(&env, "shared_checksum") {
            let path = Path::new(DIR).join("shared_checksum").join(name);
            let mut bytes = env.fs.read_all(&path).unwrap();
            match damage {
                "changed" => bytes[10] ^= 0x40,
                "cut" => bytes.truncate(bytes.len() / 2),
                _ => env.fs.remove_file(&path).unwrap(),
            }
            if damage != "gone" {
                overwrite(&env, &path, &bytes);
            }
            // Neither the engine that was open nor a new one.
            for engine in [&engine, &open_engine(&env)] {
                let id = engine.create_backup(&db).unwrap();
                let fresh = open_engine(&env);
                fresh.verify_backup(id).unwrap();
                fresh.verify_backup(1).unwrap();
            }
        }
        assert!(restored(&engine, &env, 1) == rows_of(&db), "{damage}");
    }
}

#[test]
fn a_damaged_table_of_the_database_replaces_no_good_one() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    db.put("a", vec![b'x'; 400]).unwrap();
    db.flush().unwrap();
    let engine = open_engine(&env);
    engine.create_backup(&db).unwrap();
    let table = db.table_path(db.live_files()[0].number);
    let mut bytes = env.fs.read_all(&table).unwrap();
    bytes[5] ^= 1;
    overwrite(&env, &table, &bytes);
    let shared = Path::new(DIR).join("shared_checksum").join(&names(&env, "shared_checksum")[0]);
    let good = env.fs.read_all(&shared).unwrap();
    engine.create_backup(&db).unwrap();
    assert!(env.fs.read_all(&shared).unwrap() == good, "the backup's is good, and stays");
    overwrite(&env, &shared, &bytes[..bytes.len() - 1]);
    let error = engine.create_backup(&db).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("its checksum is"), "{error}");
    assert_eq!(names(&env, "meta"), ["1", "2"]);
}

#[test]
fn only_files_of_a_database_or_of_backups_are_removed() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let engine = open_engine(&env);
    let foreign = [
        "/backups/notes",
        "/backups/shared_checksum/notes.txt",
        "/backups/private/notes",
        "/backups/private/1/notes",
    ];
    engine.create_backup(&db).unwrap();
    for path in foreign {
        overwrite(&env, Path::new(path), b"mine");
    }
    env.fs.create_dir_all(Path::new("/target/archive")).unwrap();
    let kept = ["/target/notes", "/target/000001.sst.bak", "/target/archive/notes"];
    for path in kept {
        overwrite(&env, Path::new(path), b"mine");
    }
    let gone = [
        "/target/000077.sst",
        "/target/000078.log",
        "/target/archive/000079.log",
        "/target/LOG",
        "/target/IDENTITY",
    ];
    for path in gone {
        overwrite(&env, Path::new(path), b"old");
    }
    engine.restore_backup(1, "/target", "/target").unwrap();
    for path in kept {
        assert!(env.fs.exists(Path::new(path)).unwrap(), "{path}");
    }
    for path in gone {
        assert!(!env.fs.exists(Path::new(path)).unwrap(), "{path}");
    }
    engine.create_backup(&db).unwrap();
    engine.purge_old_backups(0).unwrap();
    engine.garbage_collect().unwrap();
    for path in foreign {
        assert!(env.fs.exists(Path::new(path)).unwrap(), "{path}");
    }
}

#[test]
fn an_open_database_is_not_restored_over() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let engine = open_engine(&env);
    engine.create_backup(&db).unwrap();
    assert_eq!(engine.restore_backup(1, "/db", "/db").unwrap_err().kind(), ErrorKind::IoError);
    let rows = rows_of(&db);
    db.close().unwrap();
    engine.restore_latest_backup("/db", "/db").unwrap();
    assert!(rows_of(&open_at(&env, "/db").unwrap()) == rows);
}

#[test]
fn tables_that_are_there_already_stay() {
    for mode in
        [RestoreMode::KeepLatestDbSessionIdFiles, RestoreMode::VerifyChecksum, RestoreMode::PurgeAllFiles]
    {
        let env = Env::memory();
        let db = open_at(&env, "/db").unwrap();
        write_some(&db, 0);
        db.flush_cfs(&db.column_families(), Wait::UntilDone).unwrap();
        let tables: Vec<_> = db.live_files().iter().map(|file| db.table_path(file.number)).collect();
        let engine = open_engine(&env);
        engine.create_backup(&db).unwrap();
        let rows = rows_of(&db);
        write_some(&db, 1);
        db.close().unwrap();
        // A stamp that no checksum of blocks covers shows whether the file was written anew.
        let damaged = &tables[0];
        let mut bytes = env.fs.read_all(damaged).unwrap();
        bytes[0] ^= 1;
        overwrite(&env, damaged, &bytes);
        let options = RestoreOptions { mode, ..RestoreOptions::default() };
        engine.restore_backup_with(1, "/db", "/db", &options, &[]).unwrap();
        let stayed = env.fs.read_all(damaged).unwrap() == bytes;
        assert_eq!(stayed, mode == RestoreMode::KeepLatestDbSessionIdFiles, "{mode:?}");
        if !stayed {
            assert!(rows_of(&open_at(&env, "/db").unwrap()) == rows, "{mode:?}");
        }
    }
}

#[test]
fn without_wals_in_the_backup_those_of_the_database_stay() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    let engine =
        BackupEngine::open(BackupEngineOptions { backup_log_files: false, ..options() }, &env).unwrap();
    engine.create_backup(&db).unwrap();
    db.put("b", "2").unwrap();
    db.close().unwrap();
    let options = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    env.fs.create_dir_all(Path::new("/db/archive")).unwrap();
    let wal = env
        .fs
        .list(Path::new("/db"))
        .unwrap()
        .into_iter()
        .filter(|name| name.ends_with(".log"))
        .max()
        .unwrap();
    env.fs.rename(&Path::new("/db").join(&wal), &Path::new("/db/archive").join(&wal)).unwrap();
    engine.restore_backup_with(1, "/db", "/db", &options, &[]).unwrap();
    let db = open_at(&env, "/db").unwrap();
    assert_eq!((db.get("a").unwrap().is_some(), db.get("b").unwrap().is_some()), (true, true));
}

#[test]
fn writes_past_the_wal_are_in_a_backup() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    db.put_with("a", "1", &WriteOptions { disable_wal: true, ..WriteOptions::default() }).unwrap();
    let engine = open_engine(&env);
    engine.create_backup(&db).unwrap();
    assert!(restored(&engine, &env, 1) == rows_of(&db));
}

#[test]
fn files_that_are_elsewhere_are_left_out() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let whole = BackupEngine::open(BackupEngineOptions::new("/elsewhere"), &env).unwrap();
    whole.create_backup(&db).unwrap();
    let exclude = |schema_version| {
        let engine = BackupEngine::open(BackupEngineOptions { schema_version, ..options() }, &env).unwrap();
        let created = CreateBackupOptions {
            exclude_file: Some(Arc::new(|name| name.ends_with(".sst"))),
            ..CreateBackupOptions::default()
        };
        engine.create_backup_with(&db, &created).map(|_| engine)
    };
    assert_eq!(
        exclude(1).err().unwrap().to_string(),
        "Invalid argument: exclude_files_callback requires schema_version >= 2"
    );
    let engine = exclude(2).unwrap();
    let info = open_engine(&env).backup_info(1).unwrap();
    assert!(!info.excluded_files.is_empty() && info.files.iter().all(|file| !file.name.ends_with(".sst")));
    engine.verify_backup(1).unwrap();
    let error = engine.restore_backup(1, "/restored", "/restored").unwrap_err().to_string();
    assert!(error.starts_with("Invalid argument: Excluded file shared_checksum/"), "{error}");
    let rows = rows_of(&db);
    engine.restore_backup_with(1, "/restored", "/restored", &RestoreOptions::default(), &[&whole]).unwrap();
    assert!(rows_of(&open_at(&env, "/restored").unwrap()) == rows);
    // They are in the database itself.
    db.close().unwrap();
    let options =
        RestoreOptions { mode: RestoreMode::KeepLatestDbSessionIdFiles, ..RestoreOptions::default() };
    engine.restore_backup_with(1, "/db", "/db", &options, &[]).unwrap();
    assert!(rows_of(&open_at(&env, "/db").unwrap()) == rows);
}

#[test]
fn a_stopped_engine_makes_no_backup() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let engine = Arc::new(
        BackupEngine::open(BackupEngineOptions { callback_trigger_interval_size: 100, ..options() }, &env)
            .unwrap(),
    );
    engine.create_backup(&db).unwrap();
    write_some(&db, 1);
    let stopping = Arc::downgrade(&engine);
    let progress: Progress = Arc::new(move || stopping.upgrade().unwrap().stop_backup());
    let created = CreateBackupOptions { progress: Some(progress), ..CreateBackupOptions::default() };
    let stopped = "Result incomplete: Backup stopped";
    assert_eq!(engine.create_backup_with(&db, &created).unwrap_err().to_string(), stopped);
    assert_eq!(engine.create_backup(&db).unwrap_err().to_string(), stopped, "for good");
    assert_eq!((names(&env, "meta"), names(&env, "private")), (vec!["1".to_string()], vec!["1".to_string()]));
    engine.verify_backup(1).unwrap();
    assert_eq!(open_engine(&env).create_backup(&db).unwrap(), 2);
    let panics =
        CreateBackupOptions { progress: Some(Arc::new(|| panic!("no"))), ..CreateBackupOptions::default() };
    let fresh =
        BackupEngine::open(BackupEngineOptions { callback_trigger_interval_size: 1, ..options() }, &env)
            .unwrap();
    assert_eq!(fresh.create_backup_with(&db, &panics).unwrap_err().kind(), ErrorKind::Aborted);
}

#[test]
fn what_comes_with_a_backup_is_kept() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    let engine = open_engine(&env);
    let with = |app_metadata: &[u8]| {
        let app_metadata = app_metadata.to_vec();
        engine
            .create_backup_with(&db, &CreateBackupOptions { app_metadata, ..CreateBackupOptions::default() })
    };
    for bytes in [&b"\0\xff\n"[..], b"", &[7; 1 << 20]] {
        let id = with(bytes).unwrap();
        assert_eq!(open_engine(&env).backup_info(id).unwrap().app_metadata, bytes);
    }
    let error = with(&[7; (1 << 20) + 1]).unwrap_err().to_string();
    assert_eq!(error, "Invalid argument: App metadata too large");
}

#[test]
fn engines_on_one_directory_do_not_undo_each_other() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    let (first, second) = (open_engine(&env), open_engine(&env));
    for round in 0..3 {
        write_some(&db, round);
        assert_eq!(first.create_backup(&db).unwrap(), 2 * round as u32 + 1);
        assert_eq!(second.create_backup(&db).unwrap(), 2 * round as u32 + 2);
    }
    first.purge_old_backups(2).unwrap();
    second.garbage_collect().unwrap();
    let fresh = open_engine(&env);
    assert_eq!(fresh.backup_infos().iter().map(|info| info.id).collect::<Vec<_>>(), [5, 6]);
    fresh.verify_backup(5).unwrap();
    fresh.verify_backup(6).unwrap();
    let reader =
        BackupEngine::open_read_only(BackupEngineOptions { max_valid_backups_to_open: 1, ..options() }, &env)
            .unwrap();
    assert_eq!(reader.backup_infos().len(), 1);
    assert_eq!(reader.create_backup(&db).unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(reader.purge_old_backups(0).unwrap_err().kind(), ErrorKind::NotSupported);
    drop(BackupEngine::open(BackupEngineOptions { destroy_old_data: true, ..options() }, &env).unwrap());
    assert_eq!(names(&env, "meta"), [""; 0]);
    assert_eq!(open_engine(&env).create_backup(&db).unwrap(), 1);
}

/// A third engine, opened after the newest backup was deleted, gives its id again: the ids that another engine knows are those
/// that are there, and yet one is another backup.
#[test]
fn a_backup_that_took_the_place_of_another_is_noticed() {
    for act in ["delete", "create", "purge", "collect", "verify", "restore"] {
        let env = Env::memory();
        let db = open_at(&env, "/db").unwrap();
        let first = open_engine(&env);
        for round in 0..2 {
            write_some(&db, round);
            first.create_backup(&db).unwrap();
        }
        open_engine(&env).delete_backup(2).unwrap();
        write_some(&db, 2);
        db.compact_range(None, None).unwrap();
        let other = open_at(&env, "/other").unwrap();
        write_some(&other, 3);
        assert_eq!(open_engine(&env).create_backup(&other).unwrap(), 2);
        match act {
            "delete" => first.delete_backup(1).unwrap(),
            "create" => drop(first.create_backup(&db).unwrap()),
            "purge" => first.purge_old_backups(1).unwrap(),
            "collect" => first.garbage_collect().unwrap(),
            "verify" => first.verify_backup(2).unwrap(),
            _ => assert!(restored(&first, &env, 2) == rows_of(&other)),
        }
        let fresh = open_engine(&env);
        assert!(fresh.corrupted_backups().is_empty(), "{act}");
        fresh.verify_backup(2).unwrap();
        assert!(restored(&fresh, &env, 2) == rows_of(&other), "{act}");
        first.verify_backup(2).unwrap();
    }
}

/// A backup that is to be durable takes over tables of one that was not.
#[test]
fn tables_of_an_unsynced_backup_are_durable_with_the_next() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let unsynced = BackupEngine::open(BackupEngineOptions { sync: false, ..options() }, &env).unwrap();
    unsynced.create_backup(&db).unwrap();
    let id = open_engine(&env).create_backup(&db).unwrap();
    let rows = rows_of(&db);
    fs.memory().crash();
    let engine = open_engine(&env);
    engine.verify_backup(id).unwrap();
    assert!(restored(&engine, &env, id) == rows);
}

/// The directories that an engine or a restore creates are there after a loss of power, however deep.
#[test]
fn directories_that_were_created_are_durable() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let deep = || BackupEngineOptions::new("/deep/er/backups");
    let engine = BackupEngine::open(deep(), &env).unwrap();
    engine.create_backup(&db).unwrap();
    engine.restore_backup(1, "/far/away/db", "/far/wals/db").unwrap();
    let rows = rows_of(&db);
    fs.memory().crash();
    BackupEngine::open_read_only(deep(), &env).unwrap().verify_backup(1).unwrap();
    let options = DbOptions { wal_dir: Some("/far/wals/db".into()), ..DbOptions::default() };
    let db = Db::builder("/far/away/db")
        .env(env)
        .options(options)
        .default_column_family(family_options())
        .column_family(ColumnFamilyDescriptor::new("side").with_options(family_options()))
        .open()
        .unwrap();
    assert!(rows_of(&db) == rows);
}

/// Tables that stay, and files of another database, are not removed with the WALs.
#[test]
fn of_the_directory_of_wals_only_wals_go() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    let engine = open_engine(&env);
    engine.create_backup(&db).unwrap();
    let rows = rows_of(&db);
    db.close().unwrap();
    env.fs.create_dir_all(Path::new("/wals/archive")).unwrap();
    let (kept, gone) = (
        ["/wals/000099.sst", "/wals/CURRENT", "/wals/archive/000099.sst"],
        ["/wals/000098.log", "/wals/archive/000097.log"],
    );
    for path in kept.into_iter().chain(gone) {
        overwrite(&env, Path::new(path), b"x");
    }
    let keep = RestoreOptions { mode: RestoreMode::VerifyChecksum, ..RestoreOptions::default() };
    engine.restore_backup_with(1, "/db", "/wals", &keep, &[]).unwrap();
    for path in kept {
        assert!(env.fs.exists(Path::new(path)).unwrap(), "{path}");
    }
    for path in gone {
        assert!(!env.fs.exists(Path::new(path)).unwrap(), "{path}");
    }
    // The same directory under another name.
    engine.restore_backup_with(1, "/db", "/db/", &keep, &[]).unwrap();
    assert!(rows_of(&open_at(&env, "/db").unwrap()) == rows);
}

/// A meta file can be whole and yet list no database.
#[test]
fn files_that_make_no_database_are_not_restored() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    write_some(&db, 0);
    open_engine(&env).create_backup(&db).unwrap();
    let path = Path::new(DIR).join("meta/1");
    let text = String::from_utf8(env.fs.read_all(&path).unwrap()).unwrap();
    let files = text.lines().filter(|line| line.contains(" crc32 ")).count();
    for (name, found) in [("CURRENT", "0 CURRENT and 1 MANIFEST"), ("MANIFEST", "1 CURRENT and 0 MANIFEST")] {
        let lines = text.lines().filter(|line| !line.starts_with("private") || !line.contains(name));
        let lines = lines.map(|line| match line.parse::<usize>() {
            Ok(found) if found == files => (files - 1).to_string(),
            _ => line.to_string(),
        });
        let less: Vec<String> = lines.collect();
        overwrite(&env, &path, format!("{}\n", less.join("\n")).as_bytes());
        open_at(&env, "/kept").unwrap().put("here", "1").unwrap();
        let engine = open_engine(&env);
        let error = engine.restore_backup(1, "/kept", "/kept").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(found), "{error}");
        assert!(open_at(&env, "/kept").unwrap().get("here").unwrap().is_some());
    }
}

#[test]
fn damaged_meta_files_are_set_aside() {
    let env = Env::memory();
    let db = open_at(&env, "/db").unwrap();
    let engine = open_engine(&env);
    for round in 0..2 {
        write_some(&db, round);
        engine.create_backup(&db).unwrap();
    }
    let path = Path::new(DIR).join("meta/1");
    let whole = env.fs.read_all(&path).unwrap();
    let mut rng = Rng::new(seed("damaged_meta_files", 1));
    for _ in 0..300 {
        let mut bytes = whole.clone();
        match rng.below(3) {
            0 => bytes.truncate(rng.below(whole.len() as u64) as usize),
            _ => {
                let at = rng.below(whole.len() as u64) as usize;
                bytes[at] = rng.next() as u8;
            }
        }
        overwrite(&env, &path, &bytes);
        let engine = open_engine(&env);
        engine.verify_backup(2).unwrap();
        // Either it is told, or the change is in what nothing else says: time, number, a checksum.
        if engine.corrupted_backups().is_empty() {
            let _ = engine.verify_backup(1);
        }
        engine.garbage_collect().unwrap();
    }
    overwrite(&env, &path, &whole);
    let engine = open_engine(&env);
    engine.verify_backup(1).unwrap();
    engine.verify_backup(2).unwrap();
}

/// Meta files that are directories, and names that no file of the system can have.
#[test]
fn odd_files_of_one_backup_do_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let env = Env::posix();
    let db = open_at(&env, dir.path().join("db").to_str().unwrap()).unwrap();
    write_some(&db, 0);
    let root = dir.path().join("backups");
    let open = || BackupEngine::open(BackupEngineOptions::new(&root), &env).unwrap();
    open().create_backup(&db).unwrap();
    let whole = std::fs::read_to_string(root.join("meta/1")).unwrap();
    let name = whole.lines().find_map(|line| line.strip_prefix("private/1/")).unwrap();
    let name = name.split(' ').next().unwrap();
    std::fs::write(root.join("meta/2"), whole.replacen(name, &"n".repeat(300), 1)).unwrap();
    std::fs::write(root.join("meta/3"), whole.replace("private/1", "private/3")).unwrap();
    std::fs::write(root.join("private/3"), "no directory").unwrap();
    std::fs::create_dir(root.join("meta/4")).unwrap();
    let engine = open();
    let set_aside: Vec<u32> = engine.corrupted_backups().into_iter().map(|(id, _)| id).collect();
    assert_eq!(set_aside, [2, 3, 4]);
    engine.verify_backup(1).unwrap();
    assert_eq!(engine.create_backup(&db).unwrap(), 5);
}

/// A database with two backups, and what they hold; one more is to be made.
struct Scene {
    fs: FaultyFs,
    env: Env,
    db: Db,
    states: Vec<BTreeMap<String, Rows>>,
}

fn scene() -> Scene {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open_at(&env, "/db").unwrap();
    let engine = open_engine(&env);
    let mut states = Vec::new();
    for round in 0..3 {
        write_some(&db, round);
        states.push(rows_of(&db));
        if round < 2 {
            engine.create_backup(&db).unwrap();
        }
    }
    Scene { fs, env, db, states }
}

/// Power is lost, or one operation fails, at every change that `act` makes to the directory of backups: the older backups are
/// whole, and the engine goes on.
fn at_every_change(what: &str, act: fn(&Scene) -> Result<()>, lost: bool, check: fn(&Scene, bool)) {
    let changes = {
        let scene = scene();
        scene.fs.faults().only(Some(DIR));
        let before = scene.fs.faults().changes();
        act(&scene).unwrap();
        scene.fs.faults().changes() - before
    };
    println!("{what}: {changes} changes");
    assert!(changes > 5);
    for change in 0..changes {
        let scene = scene();
        let faults = scene.fs.faults();
        faults.only(Some(DIR));
        faults.fail_at(faults.changes() + change, EIO, lost);
        let acknowledged = act(&scene).is_ok();
        faults.only(None);
        faults.heal();
        if lost {
            scene.fs.memory().crash_torn(change);
        }
        check(&scene, acknowledged);
    }
}

fn older_backups_are_whole(scene: &Scene) -> BackupEngine {
    let env = Env::with_file_system(Arc::new(scene.fs.clone()));
    let engine = open_engine(&env);
    for id in [1, 2] {
        engine.verify_backup(id).unwrap();
    }
    assert!(restored(&engine, &env, 2) == scene.states[1]);
    engine
}

#[test]
fn a_crash_while_a_backup_is_made_leaves_the_others_whole() {
    let act = |scene: &Scene| BackupEngine::open(options(), &scene.env)?.create_backup(&scene.db).map(drop);
    for lost in [true, false] {
        at_every_change("create", act, lost, |scene, acknowledged| {
            let env = Env::with_file_system(Arc::new(scene.fs.clone()));
            let engine = older_backups_are_whole(scene);
            let third = engine.backup_infos().iter().any(|info| info.id == 3);
            assert!(third || !acknowledged, "an acknowledged backup is there");
            assert_eq!(engine.corrupted_backups().len(), 0, "a backup is there whole or not at all");
            if third {
                engine.verify_backup(3).unwrap();
                assert!(restored(&engine, &env, 3) == scene.states[2]);
            }
            let db = open_at(&env, "/other").unwrap();
            write_some(&db, 9);
            let id = engine.create_backup(&db).unwrap();
            engine.verify_backup(id).unwrap();
            assert!(restored(&engine, &env, id) == rows_of(&db));
            let temporary = |dir| names(&env, dir).iter().any(|name| name.starts_with('.'));
            engine.garbage_collect().unwrap();
            assert!(!temporary("meta") && !temporary("shared_checksum"));
            older_backups_are_whole(scene);
        });
    }
}

#[test]
fn a_crash_while_backups_are_deleted_leaves_the_others_whole() {
    let act = |scene: &Scene| {
        let engine = BackupEngine::open(options(), &scene.env)?;
        engine.create_backup(&scene.db)?;
        engine.delete_backup(3)
    };
    for lost in [true, false] {
        at_every_change("delete", act, lost, |scene, _| {
            let engine = older_backups_are_whole(scene);
            let corrupted = engine.corrupted_backups();
            assert!(corrupted.is_empty(), "backups came back without their files: {corrupted:?}");
            engine.garbage_collect().unwrap();
            older_backups_are_whole(scene);
        });
    }
}

#[test]
fn what_was_not_wholly_restored_cannot_be_opened() {
    let restore = |scene: &Scene, id| {
        BackupEngine::open(options(), &scene.env)?.restore_backup(id, "/target", "/target")
    };
    let changes = {
        let scene = scene();
        restore(&scene, 1).unwrap();
        let before = scene.fs.faults().changes();
        restore(&scene, 2).unwrap();
        scene.fs.faults().changes() - before
    };
    for change in 0..changes {
        let scene = scene();
        restore(&scene, 1).unwrap();
        let faults = scene.fs.faults();
        faults.fail_at(faults.changes() + change, EIO, true);
        let acknowledged = restore(&scene, 2).is_ok();
        faults.heal();
        scene.fs.memory().crash_torn(change);
        let env = Env::with_file_system(Arc::new(scene.fs.clone()));
        match open_existing(&env, "/target") {
            Ok(db) => {
                let rows = rows_of(&db);
                assert!(
                    rows == scene.states[1] || (!acknowledged && rows == scene.states[0]),
                    "change {change}"
                );
            }
            Err(_) => assert!(!acknowledged, "change {change}"),
        }
        open_engine(&env).restore_backup(2, "/target", "/target").unwrap();
        assert!(rows_of(&open_existing(&env, "/target").unwrap()) == scene.states[1]);
    }
}

fn open_existing(env: &Env, path: &str) -> Result<Db> {
    Db::builder(path)
        .env(env.clone())
        .default_column_family(family_options())
        .column_family(ColumnFamilyDescriptor::new("side").with_options(family_options()))
        .open()
}

#[test]
fn a_full_disk_is_an_error_and_no_more() {
    for space in [0, 100, 1000, 3000, 5000] {
        let scene = scene();
        let engine = open_engine(&scene.env);
        scene.fs.faults().limit_space(space);
        assert_eq!(engine.create_backup(&scene.db).unwrap_err().kind(), ErrorKind::NoSpace, "{space} bytes");
        scene.fs.faults().heal();
        assert_eq!(
            (names(&scene.env, "meta"), names(&scene.env, "private").len()),
            (vec!["1".into(), "2".into()], 2)
        );
        scene.db.put("after", "1").unwrap();
        assert_eq!(engine.create_backup(&scene.db).unwrap(), 3);
        engine.verify_backup(3).unwrap();
        older_backups_are_whole(&scene);
    }
}

/// The MANIFEST that a backup copies is replaced meanwhile, and options are changed: the files stay until it is done.
#[test]
fn files_that_are_replaced_meanwhile_stay_for_the_backup() {
    let env = Env::memory();
    let db = Arc::new(
        Db::builder("/db")
            .env(env.clone())
            .create_if_missing(true)
            .options(DbOptions { create_if_missing: true, max_manifest_file_size: 1, ..DbOptions::default() })
            .open()
            .unwrap(),
    );
    let engine =
        BackupEngine::open(BackupEngineOptions { callback_trigger_interval_size: 64, ..options() }, &env)
            .unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "2").unwrap();
    let (writer, done) = (db.clone(), Arc::new(AtomicBool::new(false)));
    let once = done.clone();
    let progress: Progress = Arc::new(move || {
        if once.swap(true, Ordering::Relaxed) {
            return;
        }
        for i in 0..6 {
            writer.put("c", format!("{i}")).unwrap();
            writer.flush().unwrap();
            writer.set_options(&[("max_write_buffer_number", &format!("{}", 3 + i))]).unwrap();
        }
        writer.compact_range(None, None).unwrap();
    });
    let created = CreateBackupOptions { progress: Some(progress), ..CreateBackupOptions::default() };
    engine.create_backup_with(&db, &created).unwrap();
    assert!(done.load(Ordering::Relaxed));
    engine.verify_backup(1).unwrap();
    engine.restore_backup(1, "/restored", "/restored").unwrap();
    let restored = Db::builder("/restored").env(env.clone()).open().unwrap();
    let rows = contents(&restored, restored.default_column_family(), &ReadOptions::default());
    assert_eq!(rows, Rows::from([(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())]));
    db.put("d", "1").unwrap();
    db.flush().unwrap();
    db.set_options(&[("max_write_buffer_number", "4")]).unwrap();
    let left = |what: &str| {
        let names = env.fs.list(Path::new("/db")).unwrap();
        names.iter().filter(|name| name.starts_with(what)).count()
    };
    assert_eq!((left("MANIFEST"), left("OPTIONS")), (1, 2), "and go afterwards");
}

/// Takes down the lines of a backup engine.
#[derive(Default)]
struct Lines(Mutex<Vec<(LogLevel, String)>>);

impl Logger for Lines {
    fn log(&self, level: LogLevel, text: &str) {
        self.0.lock().unwrap().push((level, text.to_string()));
    }
}

#[test]
fn a_logger_is_told_what_is_done_and_what_failed() {
    let env = Env::memory();
    let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open().unwrap();
    db.put("a", "1").unwrap();
    let lines = Arc::new(Lines::default());
    let with_log = || BackupEngineOptions { info_log: Some(lines.clone()), ..options() };
    let engine = BackupEngine::open(with_log(), &env).unwrap();
    engine.create_backup(&db).unwrap();
    engine.verify_backup(1).unwrap();
    engine.restore_backup(1, "/restored", "/restored").unwrap();
    engine.delete_backup(7).unwrap_err();
    engine.purge_old_backups(0).unwrap();
    let told = std::mem::take(&mut *lines.0.lock().unwrap());
    let texts: Vec<&str> = told.iter().map(|(_, text)| &text[..]).collect();
    assert_eq!(
        texts[..3],
        ["backup 1 of /db is made", "verification of backup 1", "restoring backup 1 to /restored"]
    );
    assert!(
        told[3].0 == LogLevel::Error && texts[3].starts_with("deletion of backup 7 failed: NotFound"),
        "{texts:?}"
    );
    assert_eq!(told[4], (LogLevel::Info, "deletion of all backups but the newest 0".to_string()));
    assert_eq!(told.len(), 5);
}

//! Tables in several directories: where new ones go, that all are found again, and that nothing is left behind.

use crate::harness::{Rows, contents, creating};
use outcrop::*;
use outcrop_env::OpenWrite;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FAST: &str = "/fast/db";
const LARGE: &str = "/large/db";

fn with_paths(fast_bytes: u64) -> DbOptions {
    let db_paths = vec![DbPath::new(FAST, fast_bytes), DbPath::new(LARGE, u64::MAX)];
    DbOptions { db_paths, ..creating() }
}

fn small(style: CompactionStyle) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        compaction_style: style,
        disable_auto_compactions: true,
        max_bytes_for_level_base: 1 << 20,
        compression: CompressionType::None,
        ..ColumnFamilyOptions::default()
    }
}

fn try_open(env: &Env, options: DbOptions, family: &ColumnFamilyOptions) -> Result<Db> {
    let family = ColumnFamilyDescriptor::default_with(family.clone(), ColumnFamilyParts::default());
    Db::builder("/db").options(options).env(env.clone()).column_family(family).open()
}

fn open(env: &Env, options: DbOptions, family: &ColumnFamilyOptions) -> Db {
    try_open(env, options, family).unwrap()
}

fn fill(db: &Db, value: &str) {
    for i in 0..200 {
        db.put(format!("{i:04}"), value.repeat(20)).unwrap();
    }
    db.flush().unwrap();
}

fn rows(db: &Db) -> Rows {
    contents(db, db.default_column_family(), &ReadOptions::default())
}

/// The directories that tables are in, as the database says.
fn used(db: &Db) -> BTreeSet<PathBuf> {
    db.live_files().into_iter().map(|file| file.directory).collect()
}

fn dirs(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// The data files there are in a directory.
fn data_files(env: &Env, dir: &str) -> Vec<String> {
    let dir = Path::new(dir);
    let names = if env.fs.exists(dir).unwrap() { env.fs.list(dir).unwrap() } else { Vec::new() };
    let mut names: Vec<_> =
        names.into_iter().filter(|name| name.ends_with(".sst") || name.ends_with(".blob")).collect();
    names.sort();
    names
}

/// Every table is where the database says, and none is anywhere else.
fn assert_in_place(env: &Env, db: &Db) {
    db.verify_checksums().unwrap();
    // Obsolete tables are gone then.
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    for dir in ["/db", FAST, LARGE] {
        let mut said: Vec<_> =
            db.live_files().into_iter().filter(|f| f.directory == Path::new(dir)).collect();
        said.sort_by(|a, b| a.name.cmp(&b.name));
        let said: Vec<_> = said.into_iter().map(|file| file.name).collect();
        let tables: Vec<_> = data_files(env, dir).into_iter().filter(|name| name.ends_with(".sst")).collect();
        assert_eq!(tables, said, "{dir}");
    }
}

/// One table on L0 in the first path, and one in the second.
fn in_both(env: &Env, family: &ColumnFamilyOptions) -> Db {
    let db = open(env, with_paths(1 << 30), family);
    fill(&db, "old");
    let second = CompactRangeOptions { target_path_id: 1, ..BottommostLevelCompaction::Force.into() };
    db.compact_range_with(None, None, &second).unwrap();
    fill(&db, "new");
    db
}

#[test]
fn flushes_go_to_the_first_path_and_deep_levels_to_the_next() {
    let env = Env::memory();
    // L0 and L1 have 1 MiB each: the second does not fit.
    let family =
        ColumnFamilyOptions { level0_file_num_compaction_trigger: 1, ..small(CompactionStyle::Level) };
    let db = open(&env, with_paths(1 << 20), &family);
    fill(&db, "old");
    assert_eq!(used(&db), dirs(&[FAST]));
    db.set_options(&[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    // It could have been moved, but to another path it is written.
    assert_eq!(used(&db), dirs(&[LARGE]));
    assert_eq!(db.live_files()[0].level, 1);
    assert_in_place(&env, &db);
    let before = rows(&db);
    db.close().unwrap();
    let db = open(&env, with_paths(1 << 20), &family);
    assert_eq!(rows(&db), before);
    assert_eq!(used(&db), dirs(&[LARGE]));
}

#[test]
fn a_caller_says_where_its_compactions_go() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let env = Env::memory();
        let family = small(style);
        let db = in_both(&env, &family);
        assert_eq!(used(&db), dirs(&[FAST, LARGE]));
        assert_in_place(&env, &db);
        let expected = rows(&db);
        db.close().unwrap();

        let db = open(&env, with_paths(1 << 30), &family);
        assert_eq!(rows(&db), expected);
        assert_in_place(&env, &db);
        // Back to the first path.
        db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        assert_eq!(used(&db), dirs(&[FAST]));
        assert_in_place(&env, &db);
        assert_eq!(rows(&db), expected);
        let none = CompactRangeOptions { target_path_id: 2, ..CompactRangeOptions::default() };
        let error = db.compact_range_with(None, None, &none).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let tables: Vec<u64> = db.live_files().iter().map(|file| file.number).collect();
        let level = db.live_files()[0].level;
        let error = db.compact_files_with(&tables, level, &CompactFilesOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        let second = CompactFilesOptions { output_path_id: Some(1), ..CompactFilesOptions::default() };
        db.compact_files_with(&tables, level, &second).unwrap();
        assert_eq!(used(&db), dirs(&[LARGE]));
        assert_eq!(rows(&db), expected);
    }
}

#[test]
fn a_database_whose_paths_are_not_given_is_refused_by_name() {
    let env = Env::memory();
    let family = small(CompactionStyle::Level);
    let db = in_both(&env, &family);
    let expected = rows(&db);
    db.close().unwrap();
    let before = (data_files(&env, FAST), data_files(&env, LARGE));
    let one = DbOptions { db_paths: vec![DbPath::new(FAST, 1)], ..creating() };
    for options in [creating(), one] {
        let error = try_open(&env, options, &family).err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("db_paths"), "{error}");
    }
    assert_eq!((data_files(&env, FAST), data_files(&env, LARGE)), before);
    assert_eq!(rows(&open(&env, with_paths(1 << 30), &family)), expected);

    let error = Db::builder("/db").options(with_paths(1)).env(env).repair(&RepairOptions::default());
    assert_eq!(error.expect_err("it is refused").kind(), ErrorKind::NotSupported);
}

/// A database that did not know its tables any more would remove them with the next opening.
#[test]
fn repair_and_salvage_without_the_paths_are_refused_and_change_nothing() {
    let family = small(CompactionStyle::Level);
    let one = DbOptions { db_paths: vec![DbPath::new(FAST, u64::MAX)], ..creating() };
    for forgets in [false, true] {
        let env = Env::memory();
        let db = open(&env, one.clone(), &family);
        fill(&db, "a");
        let expected = rows(&db);
        db.close().unwrap();
        if forgets {
            for name in env.fs.list(Path::new("/db")).unwrap() {
                if name.starts_with("OPTIONS-") {
                    env.fs.remove_file(&Path::new("/db").join(name)).unwrap();
                }
            }
        }
        let builder = || Db::builder("/db").env(env.clone());
        let repaired = builder().repair(&RepairOptions::default()).map(|_| ());
        let salvaged = builder().salvage("/new", &SalvageOptions::default()).map(|_| ());
        for error in [repaired, salvaged].map(|outcome| outcome.expect_err("it is refused")) {
            assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
            assert!(error.to_string().contains("db_paths"), "{error}");
            assert_eq!(error.to_string().contains(FAST), !forgets, "{error}");
        }
        assert!(!env.fs.exists(Path::new("/new")).unwrap());
        assert_eq!(rows(&open(&env, one.clone(), &family)), expected);
    }
}

/// Files that are lost are no reason to refuse what is there to mend it.
#[test]
fn repair_goes_on_without_tables_that_are_lost() {
    let env = Env::memory();
    let family = small(CompactionStyle::Level);
    let db = open(&env, creating(), &family);
    fill(&db, "a");
    db.put("later", "1").unwrap();
    drop(db);
    let remove = |is: &dyn Fn(&str) -> bool| {
        for name in env.fs.list(Path::new("/db")).unwrap().iter().filter(|name| is(name)) {
            env.fs.remove_file(&Path::new("/db").join(name)).unwrap();
        }
    };
    remove(&|name| name.ends_with(".sst") || name.starts_with("OPTIONS-"));
    let repair = || Db::builder("/db").env(env.clone()).repair(&RepairOptions::default());
    let error = repair().expect_err("nobody knows where the table is");
    assert!(error.to_string().contains("If they are lost"), "{error}");
    remove(&|name| name == "CURRENT" || name.starts_with("MANIFEST-"));
    repair().unwrap();
    let db = open(&env, creating(), &family);
    assert_eq!(db.get("later").unwrap().as_deref(), Some(&b"1"[..]));
    db.flush().unwrap();
    db.close().unwrap();
    // The OPTIONS file says that there are no other directories.
    remove(&|name| name.ends_with(".sst"));
    let report = repair().unwrap();
    assert!(!report.is_lossless(), "{report}");
}

#[test]
fn values_in_blob_files_and_leftovers_are_in_the_paths_too() {
    let env = Env::memory();
    let blobs =
        ColumnFamilyOptions { enable_blob_files: true, min_blob_size: 10, ..small(CompactionStyle::Level) };
    let db = in_both(&env, &blobs);
    let expected = rows(&db);
    assert!(data_files(&env, FAST).iter().any(|name| name.ends_with(".blob")));
    assert!(data_files(&env, "/db").is_empty());
    db.close().unwrap();
    // A crash left files of numbers that nobody has.
    for dir in [FAST, LARGE] {
        let leftover = Path::new(dir).join("000003.sst");
        env.fs.create(&leftover, OpenWrite::default()).unwrap().close().unwrap();
        let other = Path::new(dir).join("notes.txt");
        env.fs.create(&other, OpenWrite::default()).unwrap().close().unwrap();
    }
    let db = open(&env, with_paths(1 << 30), &blobs);
    assert_eq!(rows(&db), expected);
    assert_in_place(&env, &db);
    assert!(env.fs.exists(&Path::new(LARGE).join("notes.txt")).unwrap());
    db.close().unwrap();

    Db::destroy_in("/db", &with_paths(0), &env).unwrap();
    for dir in ["/db", FAST, LARGE] {
        assert!(data_files(&env, dir).is_empty(), "{dir}");
    }
    assert!(env.fs.exists(&Path::new(LARGE).join("notes.txt")).unwrap());
}

#[test]
fn checkpoints_and_backups_are_in_one_directory() {
    let env = Env::memory();
    let family = small(CompactionStyle::Level);
    let db = in_both(&env, &family);
    let expected = rows(&db);
    db.create_checkpoint("/checkpoint").unwrap();
    let engine = BackupEngine::open(BackupEngineOptions::new("/backups"), &env).unwrap();
    engine.create_backup(&db).unwrap();
    engine.verify_backup(1).unwrap();
    engine.restore_latest_backup("/restored", "/restored").unwrap();
    for dir in ["/checkpoint", "/restored"] {
        let family = ColumnFamilyDescriptor::default_with(family.clone(), ColumnFamilyParts::default());
        let copy = Db::builder(dir).env(env.clone()).column_family(family).open().unwrap();
        assert_eq!(rows(&copy), expected, "{dir}");
        assert_eq!(used(&copy), dirs(&[dir]));
    }
    assert_in_place(&env, &db);
    let exported = db.export_column_family(db.default_column_family(), "/export").unwrap();
    let imported =
        db.create_column_family_with_import("in", ImportColumnFamilyOptions::default(), &[&exported]);
    assert_eq!(contents(&db, &imported.unwrap(), &ReadOptions::default()), expected);
    assert_in_place(&env, &db);
}

#[test]
fn a_column_family_has_paths_of_its_own() {
    let env = Env::memory();
    let family = small(CompactionStyle::Level);
    let own = || {
        let options = ColumnFamilyOptions { cf_paths: vec![DbPath::new("/own", 0)], ..family.clone() };
        ColumnFamilyDescriptor::new("own").with_options(options)
    };
    let db = in_both(&env, &family);
    let cf = db.create_column_family(own()).unwrap();
    db.put_cf(&cf, "a", "1").unwrap();
    db.flush_cf(&cf).unwrap();
    assert_eq!(data_files(&env, "/own").len(), 1);
    db.drop_column_family(&cf).unwrap();
    drop(cf);
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    db.close().unwrap();
    assert!(data_files(&env, "/own").is_empty());
}

#[test]
fn what_has_no_levels_has_one_path() {
    let env = Env::memory();
    let error = try_open(&env, with_paths(1), &small(CompactionStyle::Fifo)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let many = DbOptions { db_paths: vec![DbPath::new(FAST, 1); 5], ..creating() };
    let error = try_open(&env, many, &small(CompactionStyle::Level)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
}

/// All files of the database at `from`, as `cp -r` copies them.
fn copy(env: &Env, from: &str, to: &str) {
    env.fs.create_dir_all(to.as_ref()).unwrap();
    for name in env.fs.list(from.as_ref()).unwrap() {
        let contents = env.fs.read_all(&Path::new(from).join(&name)).unwrap();
        env.fs.replace(&Path::new(to).join(name), &Path::new(to).join("tmp"), &contents).unwrap();
    }
}

fn open_at(path: &str, env: &Env, options: DbOptions) -> Result<Db> {
    let family = small(CompactionStyle::Level);
    let family = ColumnFamilyDescriptor::default_with(family, ColumnFamilyParts::default());
    Db::builder(path).options(options).env(env.clone()).column_family(family).open()
}

#[test]
fn a_copy_with_the_paths_of_its_source_is_refused_and_removes_nothing() {
    let env = Env::memory();
    let db = in_both(&env, &small(CompactionStyle::Level));
    let expected = rows(&db);
    db.create_checkpoint("/checkpoint").unwrap();
    db.close().unwrap();
    copy(&env, "/db", "/copy");
    let db = open_at("/db", &env, with_paths(1 << 30)).unwrap();
    // The copies do not know what the source writes from here on.
    fill(&db, "newer");
    let newer = rows(&db);
    assert_ne!(newer, expected);
    let files = || (data_files(&env, FAST), data_files(&env, LARGE));
    let before = files();
    for path in ["/copy", "/checkpoint"] {
        let error = open_at(path, &env, with_paths(1 << 30)).err().expect("the source has them open");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}");
    }
    db.close().unwrap();
    for path in ["/copy", "/checkpoint", "/new"] {
        let error = open_at(path, &env, with_paths(1 << 30)).err().expect("they are the source's");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}");
        assert!(error.to_string().contains("/db") && error.to_string().contains("OWNER"), "{error}");
        let error = Db::destroy_in(path, &with_paths(0), &env).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{path}");
        assert_eq!(files(), before, "{path}");
    }
    let db = open_at("/checkpoint", &env, creating()).unwrap();
    assert_eq!(rows(&db), expected, "without paths it is whole");
    db.close().unwrap();
    let db = open_at("/db", &env, with_paths(1 << 30)).unwrap();
    assert_eq!(rows(&db), newer);
}

#[test]
fn a_database_that_was_moved_has_its_paths_still() {
    let env = Env::memory();
    let db = in_both(&env, &small(CompactionStyle::Level));
    let expected = rows(&db);
    db.close().unwrap();
    copy(&env, "/db", "/moved");
    for name in env.fs.list("/db".as_ref()).unwrap() {
        env.fs.remove_file(&Path::new("/db").join(name)).unwrap();
    }
    for _ in 0..2 {
        let db = open_at("/moved", &env, with_paths(1 << 30)).unwrap();
        assert_eq!(rows(&db), expected);
        db.close().unwrap();
    }
    // It is the owner now: a database where it was has to have others.
    assert!(open_at("/db", &env, with_paths(1 << 30)).is_err());
    Db::destroy_in("/moved", &with_paths(0), &env).unwrap();
    for dir in [FAST, LARGE] {
        assert!(!env.fs.exists(dir.as_ref()).unwrap(), "{dir} is empty, and gone");
    }
}

/// They were there when the directory was given to the database: RocksDB's, or another's.
#[test]
fn tables_that_were_there_before_the_database_stay() {
    let env = Env::memory();
    env.fs.create_dir_all(FAST.as_ref()).unwrap();
    let table = |number: u64| Path::new(FAST).join(format!("{number:06}.sst"));
    let create = |number| env.fs.create(&table(number), OpenWrite::default()).unwrap().close().unwrap();
    create(3);
    let db = open(&env, with_paths(1 << 30), &small(CompactionStyle::Level));
    fill(&db, "a");
    let newest = db.live_files()[0].number;
    db.close().unwrap();
    // A crash left this one.
    create(newest + 1);
    drop(open(&env, with_paths(1 << 30), &small(CompactionStyle::Level)));
    let exists = |number| env.fs.exists(&table(number)).unwrap();
    assert!(exists(3) && exists(newest) && !exists(newest + 1));
}

/// As above, of a directory that an open database gets with a new column family.
#[test]
fn tables_in_the_directory_of_a_new_family_are_not_written_over() {
    let env = Env::memory();
    env.fs.create_dir_all(FAST.as_ref()).unwrap();
    let table = |number: u64| Path::new(FAST).join(format!("{number:06}.sst"));
    let foreign: Vec<u64> = (1..60).collect();
    for number in &foreign {
        env.fs.create(&table(*number), OpenWrite::default()).unwrap().close().unwrap();
    }
    let family =
        ColumnFamilyOptions { cf_paths: vec![DbPath::new(FAST, u64::MAX)], ..small(CompactionStyle::Level) };
    let named = |family: &ColumnFamilyOptions| ColumnFamilyDescriptor {
        name: "new".into(),
        ..ColumnFamilyDescriptor::default_with(family.clone(), ColumnFamilyParts::default())
    };
    let db = Db::builder("/db").options(creating()).env(env.clone()).open().unwrap();
    let new = db.create_column_family(named(&family)).unwrap();
    for round in 0..5 {
        db.put_cf(&new, "a", format!("{round}")).unwrap();
        db.flush_cf(&new).unwrap();
    }
    drop(new);
    db.close().unwrap();
    for _ in 0..2 {
        let all = [ColumnFamilyDescriptor::new("default"), named(&family)];
        let db = Db::builder("/db").options(creating()).env(env.clone()).column_families(all).open().unwrap();
        let new = db.column_family("new").unwrap();
        assert_eq!(db.get_cf(&new, "a").unwrap().unwrap(), b"4"[..]);
    }
    for number in foreign {
        assert_eq!(env.fs.file_size(&table(number)).unwrap(), 0, "{number:06}.sst is as it was");
    }
}

/// On a file system whose directories have numbers.
#[test]
fn copies_with_their_own_directories_open_and_one_in_the_place_of_its_source_removes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let env = Env::posix();
    let options = |fast: &str, large: &str| {
        let db_paths = vec![DbPath::new(at(fast), 1 << 30), DbPath::new(at(large), u64::MAX)];
        DbOptions { db_paths, ..creating() }
    };
    let open = |path: &str, fast: &str, large: &str| {
        let family =
            ColumnFamilyDescriptor::default_with(small(CompactionStyle::Level), ColumnFamilyParts::default());
        Db::builder(at(path)).options(options(fast, large)).column_family(family).open()
    };
    let db = open("db", "fast", "large").unwrap();
    fill(&db, "a");
    let expected = rows(&db);
    db.close().unwrap();
    for name in ["db", "fast", "large"] {
        copy(&env, at(name).to_str().unwrap(), at(&format!("{name}2")).to_str().unwrap());
    }
    copy(&env, at("db").to_str().unwrap(), at("kept").to_str().unwrap());
    let copied = open("db2", "fast2", "large2").unwrap();
    assert_eq!(rows(&copied), expected, "a copy of everything");
    copied.close().unwrap();
    // The copy does not know these.
    let db = open("db", "fast", "large").unwrap();
    fill(&db, "newer");
    db.close().unwrap();
    let files = || data_files(&env, at("fast").to_str().unwrap());
    let before = files();
    std::fs::rename(at("db"), at("db.broken")).unwrap();
    copy(&env, at("kept").to_str().unwrap(), at("db").to_str().unwrap());
    let restored = open("db", "fast", "large").unwrap();
    assert_eq!(rows(&restored), expected);
    fill(&restored, "other");
    restored.close().unwrap();
    let now = files();
    assert!(before.iter().all(|file| now.contains(file)), "{before:?} and now {now:?}");
}

#[test]
fn a_closed_databases_tables_are_counted_in_no_path() {
    let (env, manager) = (Env::memory(), Arc::new(SstFileManager::default()));
    let objects = DbObjects { sst_file_manager: Some(manager.clone()), ..DbObjects::default() };
    let of_its_own = ColumnFamilyOptions {
        cf_paths: vec![DbPath::new("/own", u64::MAX)],
        ..small(CompactionStyle::Level)
    };
    let families = [("default", small(CompactionStyle::Level)), ("own", of_its_own)]
        .map(|(name, options)| ColumnFamilyDescriptor::new(name).with_options(options));
    let options = DbOptions { create_missing_column_families: true, ..with_paths(1 << 30) };
    let builder = Db::builder("/db").options(options).env(env.clone()).column_families(families);
    let db = builder.objects(objects).open().unwrap();
    fill(&db, "old");
    let own = db.column_family("own").unwrap();
    db.put_cf(&own, "a", "1").unwrap();
    db.flush_cf(&own).unwrap();
    drop(own);
    let tracked: BTreeSet<PathBuf> =
        manager.tracked_files().iter().map(|(path, _)| path.parent().unwrap().to_path_buf()).collect();
    assert_eq!(tracked, dirs(&[FAST, "/own"]));
    db.close().unwrap();
    assert_eq!((manager.total_size(), manager.tracked_files()), (0, Vec::new()));
}

#[test]
fn a_directory_with_a_number_near_the_largest_takes_tables() {
    let env = Env::memory();
    let stray = Path::new(FAST).join("4611686018427387904.sst");
    env.fs.create_dir_all(Path::new(FAST)).unwrap();
    env.fs.create(&stray, OpenWrite::default()).unwrap().close().unwrap();
    for _ in 0..3 {
        let db = open(&env, with_paths(1 << 30), &small(CompactionStyle::Level));
        fill(&db, "old");
        assert!(db.live_files().iter().all(|file| file.number < 1000));
        db.close().unwrap();
        assert!(env.fs.exists(&stray).unwrap(), "it is nobody's");
    }
}

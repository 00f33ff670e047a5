//! Column families that are exported from one database and imported into another.

use crate::harness::{Rows, contents};
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::path::Path;
use std::sync::Arc;

fn open(env: &Env, path: &str) -> Db {
    Db::builder(path).env(env.clone()).create_if_missing(true).open().unwrap()
}

fn rows(db: &Db, cf: &ColumnFamilyHandle) -> Rows {
    contents(db, cf, &ReadOptions::default())
}

/// Three levels with keys from `from`, newer values over older ones, and a range deletion.
fn fill(db: &Db, from: u32) {
    let keys = |range: std::ops::Range<u32>, value: &str| {
        for i in range {
            db.put(format!("{:05}", from + i), value).unwrap();
        }
        db.flush().unwrap();
    };
    keys(0..100, "oldest");
    let deepest =
        CompactRangeOptions { change_level: true, target_level: Some(6), ..CompactRangeOptions::default() };
    db.compact_range_with(None, None, &deepest).unwrap();
    keys(10..60, "middle");
    db.delete_range(format!("{:05}", from + 20), format!("{:05}", from + 30)).unwrap();
    keys(50..70, "newest");
    keys(55..57, "last");
}

fn import(db: &Db, name: &str, exports: &[&ExportedColumnFamily]) -> Result<ColumnFamilyHandle> {
    db.create_column_family_with_import(name, ImportColumnFamilyOptions::default(), exports)
}

#[test]
fn an_imported_column_family_is_the_exported_one() {
    let env = Env::memory();
    let source = open(&env, "/source");
    fill(&source, 0);
    let exported = source.export_column_family(source.default_column_family(), "/export").unwrap();
    let levels: std::collections::BTreeSet<usize> = exported.files.iter().map(|file| file.level).collect();
    assert!(levels.len() > 1, "{levels:?}");
    let expected = rows(&source, source.default_column_family());
    // Later writes are no part of it.
    source.put("later", "1").unwrap();
    source.close().unwrap();
    for move_files in [false, true] {
        let path = format!("/target-{move_files}");
        let target = open(&env, &path);
        target.put("a", "b").unwrap();
        let options = ImportColumnFamilyOptions { move_files };
        let cf = target.create_column_family_with_import("fruit", options, &[&exported]).unwrap();
        assert!(rows(&target, &cf) == expected);
        let there: Vec<usize> = target.live_files_cf(&cf).iter().map(|file| file.level).collect();
        let mut was: Vec<usize> = exported.files.iter().map(|file| file.level).collect();
        was.sort_unstable();
        assert_eq!(there, was, "tables keep their levels");
        assert_eq!(env.fs.list(Path::new("/export")).unwrap().is_empty(), move_files);
        // Newer writes are newer, and hide what was imported.
        target.put_cf(&cf, "00000", "mine").unwrap();
        target.close().unwrap();
        let target = Db::builder(&path).env(env.clone()).column_family("fruit").open().unwrap();
        let cf = target.column_family("fruit").unwrap();
        assert_eq!(target.get_cf(&cf, "00000").unwrap().as_deref(), Some(&b"mine"[..]));
        target.compact_range_cf(&cf, None, None).unwrap();
        let mut with_mine = expected.clone();
        with_mine.insert(b"00000".to_vec(), b"mine".to_vec());
        assert!(rows(&target, &cf) == with_mine);
        target.verify_checksums().unwrap();
    }
}

#[test]
fn several_exports_become_one_column_family() {
    let env = Env::memory();
    let exports: Vec<ExportedColumnFamily> = (0..3)
        .map(|i| {
            let source = open(&env, &format!("/source{i}"));
            fill(&source, i * 1000);
            source.export_column_family(source.default_column_family(), format!("/export{i}")).unwrap()
        })
        .collect();
    let target = open(&env, "/target");
    let refused = import(&target, "twice", &[&exports[0], &exports[0]]).err().unwrap();
    assert_eq!(refused.to_string(), "Invalid argument: CFs have overlapping ranges");
    let cf = import(&target, "all", &exports.iter().collect::<Vec<_>>()).unwrap();
    assert_eq!(rows(&target, &cf).len(), 270);
    target.compact_range_cf(&cf, None, None).unwrap();
    assert_eq!(rows(&target, &cf).len(), 270);
    assert_eq!(target.get_cf(&cf, "01056").unwrap().as_deref(), Some(&b"last"[..]));
}

#[test]
fn what_cannot_be_imported_leaves_nothing() {
    let env = Env::memory();
    let source = open(&env, "/source");
    fill(&source, 0);
    let export = source.export_column_family(source.default_column_family(), "/export").unwrap();
    let error = source.export_column_family(source.default_column_family(), "/export").unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: Specified export_dir exists");
    let target = open(&env, "/target");
    target.create_column_family("there").unwrap();
    let files =
        |env: &Env| env.fs.list(Path::new("/target")).unwrap().iter().filter(|n| n.ends_with(".sst")).count();
    let wrong = |change: &dyn Fn(&mut ExportedColumnFamily)| {
        let mut changed = export.clone();
        change(&mut changed);
        let error = import(&target, "new", &[&changed]).err().expect("it is refused");
        assert!(target.column_family("new").is_none(), "{error}");
        assert_eq!(files(&env), 0, "{error}");
        error
    };
    assert_eq!(wrong(&|e| e.files.clear()).to_string(), "Invalid argument: The list of files is empty");
    assert_eq!(wrong(&|e| e.comparator.clear()).to_string(), "Invalid argument: Comparator name mismatch");
    assert_eq!(wrong(&|e| e.files[0].level = 7).kind(), ErrorKind::InvalidArgument);
    assert_eq!(wrong(&|e| e.files[0].size += 1).kind(), ErrorKind::Corruption);
    assert_eq!(wrong(&|e| e.files[0].name = "none.sst".to_string()).kind(), ErrorKind::IoError);
    assert_eq!(wrong(&|e| e.files[0].largest = e.files[0].smallest.clone()).kind(), ErrorKind::Corruption);
    assert_eq!(wrong(&|e| e.files[0].smallest = vec![1]).kind(), ErrorKind::Corruption);
    let overlapping = wrong(&|e| e.files.iter_mut().for_each(|file| file.level = 1)).to_string();
    assert!(overlapping.starts_with("Corruption: force_consistency_checks"), "{overlapping}");
    let error = import(&target, "there", &[&export]).err().unwrap();
    assert_eq!(error.to_string(), "Invalid argument: Column family already exists");
    import(&target, "new", &[&export]).unwrap();
    let options = ColumnFamilyOptions { enable_blob_files: true, ..ColumnFamilyOptions::default() };
    let blobs =
        source.create_column_family(ColumnFamilyDescriptor::new("blobs").with_options(options)).unwrap();
    source.put_cf(&blobs, "a", "1").unwrap();
    let error = source.export_column_family(&blobs, "/blobs").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(!env.fs.exists(Path::new("/blobs")).unwrap() && !env.fs.exists(Path::new("/blobs.tmp")).unwrap());
}

/// Power is lost at each change of an import: the column family has all of it, nothing, or is not there.
#[test]
fn a_crash_leaves_all_or_nothing_of_an_import() {
    let prepare = || {
        let fs = FaultyFs::new(MemoryFs::new());
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let source = open(&env, "/source");
        fill(&source, 0);
        let export = source.export_column_family(source.default_column_family(), "/export").unwrap();
        let target = open(&env, "/target");
        target.put("a", "b").unwrap();
        target.sync_wal().unwrap();
        (fs, target, export)
    };
    let changes = {
        let (fs, target, export) = prepare();
        let before = fs.faults().changes();
        import(&target, "new", &[&export]).unwrap();
        fs.faults().changes() - before
    };
    for change in 0..changes {
        let (fs, target, export) = prepare();
        fs.faults().fail_at(fs.faults().changes() + change, EIO, true);
        let acknowledged = import(&target, "new", &[&export]).is_ok();
        drop(target);
        fs.faults().heal();
        fs.memory().crash_torn(change);
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let families = Db::list_column_families_in("/target", &env).unwrap();
        let target = Db::builder("/target")
            .env(env)
            .column_families(families.iter().map(String::as_str))
            .open()
            .unwrap();
        assert!(target.get("a").unwrap().is_some());
        let found = target.column_family("new").map(|cf| rows(&target, &cf).len());
        assert!(
            found == Some(90) || (!acknowledged && matches!(found, None | Some(0))),
            "change {change}: {found:?}"
        );
    }
}

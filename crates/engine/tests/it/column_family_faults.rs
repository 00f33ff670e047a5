//! Creating and dropping a column family while an operation of the file system fails: the result tells the truth.

use crate::harness::{contents, creating, descriptor};
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

fn open(env: &Env, names: &[&str]) -> Db {
    let families = names.iter().map(|name| descriptor(name, &ColumnFamilyOptions::default()));
    Db::builder("/db").options(creating()).env(env.clone()).column_families(families).open().unwrap()
}

fn sync() -> WriteOptions {
    WriteOptions { sync: true, ..WriteOptions::default() }
}

/// The names in the newest OPTIONS file.
fn noted(env: &Env) -> Vec<String> {
    let loaded = Db::load_latest_options_in("/db", env).unwrap();
    loaded.families.into_iter().map(|family| family.0).collect()
}

/// Runs `change` on a database with the column family "b", with each of its operations failing in turn: once, or from
/// there on. `check` gets the database, which it may resume, and whether the change was acknowledged; after it, power is
/// lost. Then `names` says which column families there are.
fn with_every_fault(
    change: impl Fn(&Db) -> Result<()>,
    check: impl Fn(&Db, bool),
    names: impl Fn(bool) -> &'static [&'static str],
) {
    for for_good in [false, true] {
        let (mut failures, mut healed) = (0, 0);
        for point in 0.. {
            let fs = FaultyFs::new(MemoryFs::new());
            let env = Env::with_file_system(Arc::new(fs.clone()));
            let db = open(&env, &["default", "b"]);
            db.put_cf_with(&db.column_family("b").unwrap(), b"k", b"v", &sync()).unwrap();
            let before = fs.faults().changes();
            fs.faults().fail_at(before + point, EIO, for_good);
            let changed = change(&db);
            let sprung = fs.faults().changes() > before + point;
            failures += u32::from(changed.is_err());
            healed += u32::from(sprung && changed.is_ok());
            fs.faults().heal();
            check(&db, changed.is_ok());
            let what = format!("operation {point}, for good {for_good}: {changed:?}");
            let expected = names(changed.is_ok());
            fs.memory().crash();
            drop(db);
            fs.memory().crash();
            let mut listed = Db::list_column_families_in("/db", &env).unwrap();
            listed.sort_unstable();
            let mut sorted = expected.to_vec();
            sorted.sort_unstable();
            assert_eq!(listed, sorted, "{what}");
            let db = open(&env, expected);
            assert_eq!(noted(&env).len(), expected.len(), "{what}");
            if let Some(cf) = db.column_family("b") {
                assert_eq!(contents(&db, &cf, &ReadOptions::default()).len(), 1, "{what}");
            }
            if !sprung {
                break;
            }
        }
        assert!(failures > 0 && healed > 0, "{failures} errors, {healed} acknowledged in spite of a fault");
    }
}

#[test]
fn a_drop_that_fails_left_the_column_family_and_one_that_is_acknowledged_did_not() {
    with_every_fault(
        |db| db.drop_column_family(&db.column_family("b").unwrap()),
        |db, dropped| {
            db.resume().unwrap();
            let found = db.column_family("b");
            assert_eq!(found.is_none(), dropped);
            if let Some(cf) = found {
                assert_eq!(db.get_cf(&cf, b"k").unwrap().unwrap().to_vec(), b"v");
                db.put_cf_with(&cf, b"k", b"w", &sync()).unwrap();
            }
        },
        |dropped| if dropped { &["default"] } else { &["default", "b"] },
    );
}

#[test]
fn a_creation_that_fails_left_nothing_and_one_that_is_acknowledged_stays() {
    with_every_fault(
        |db| db.create_column_family(descriptor("c", &ColumnFamilyOptions::default())).map(drop),
        |db, created| {
            db.resume().unwrap();
            assert_eq!(db.column_family("c").is_some(), created);
        },
        |created| if created { &["default", "b", "c"] } else { &["default", "b"] },
    );
}

#[test]
fn an_options_file_that_could_not_be_written_is_written_later() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = open(&env, &["default", "b"]);
    fs.faults().only(Some("OPTIONS"));
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    db.drop_column_family(&db.column_family("b").unwrap()).unwrap();
    assert_eq!(noted(&env), ["default", "b"]);
    fs.faults().heal();
    db.close().unwrap();
    assert_eq!(noted(&env), ["default"]);
}

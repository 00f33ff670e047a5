//! Handles of column families of another database, or of an earlier opening: refused by everything that takes one.
//!
//! Both databases are copies of a third, so that ids and file numbers are the same in both: what is not refused would act on the
//! wrong one and say nothing.

use crate::harness::creating;
use outcrop::*;
use std::path::Path;

const USERS: &str = "users";

/// Two databases with tables of the same numbers, then with different rows.
fn twins(env: &Env) -> (Db, Db) {
    let open = |path: &str| {
        let users = ColumnFamilyDescriptor::new(USERS).with_options(ColumnFamilyOptions {
            merge_operator: Some("stringappend".into()),
            enable_blob_files: true,
            min_blob_size: 10,
            disable_auto_compactions: true,
            ..ColumnFamilyOptions::default()
        });
        let mut options = creating();
        options.create_missing_column_families = true;
        Db::builder(path).env(env.clone()).options(options).column_family(users).open().unwrap()
    };
    let first = open("/first");
    fill(&first, "first");
    drop(first);
    ["/db", "/twin"].iter().for_each(|path| copy(env, "/first", path));
    let (db, twin) = (open("/db"), open("/twin"));
    // Of one length, so that a reference into a blob file of one is one into the other's.
    fill(&db, "values of mine");
    fill(&twin, "those of theirs".split_at(14).0);
    (db, twin)
}

fn copy(env: &Env, from: &str, to: &str) {
    env.fs.create_dir_all(Path::new(to)).unwrap();
    for name in env.fs.list(Path::new(from)).unwrap() {
        let bytes = env.fs.read_all(&Path::new(from).join(&name)).unwrap();
        let path = Path::new(to).join(&name);
        env.fs.replace(&path, &path.with_extension("new"), &bytes).unwrap();
    }
}

fn fill(db: &Db, value: &str) {
    let users = db.column_family(USERS).unwrap();
    db.put_cf(&users, "a", value).unwrap();
    db.put_cf(&users, "b", value.repeat(10)).unwrap();
    db.flush_cf(&users).unwrap();
}

fn rows(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    let users = db.column_family(USERS).unwrap();
    db.iter_cf(&users).map(|row| row.map(|(key, value)| (key, value.into_vec())).unwrap()).collect()
}

fn tables(db: &Db) -> Vec<u64> {
    db.live_files().iter().map(|file| file.number).collect()
}

/// The answer for `cf` of every method that takes a handle.
fn all_answers(db: &Db, cf: &ColumnFamilyHandle) -> Vec<(&'static str, Result<()>)> {
    let (read, write) = (ReadOptions::default(), WriteOptions::default());
    let all = (None, None);
    vec![
        ("put", db.put_cf(cf, "a", "wrong")),
        ("delete", db.delete_cf(cf, "a")),
        ("single_delete", db.single_delete_cf(cf, "a")),
        ("delete_range", db.delete_range_cf_with(cf, "a", "z", &write)),
        ("merge", db.merge_cf(cf, "a", "wrong")),
        ("put_entity", db.put_entity_cf(cf, "a", &[("", "wrong")])),
        ("get", db.get_cf(cf, "a").map(drop)),
        ("get a blob", db.get_cf(cf, "b").map(drop)),
        ("get_entity", db.get_entity_cf(cf, "a").map(drop)),
        ("multi_get", db.multi_get_cf(cf, &["a"]).remove(0).map(drop)),
        ("multi_get_pairs", db.multi_get_pairs(&[(cf, b"a")]).remove(0).map(drop)),
        ("iter", db.iter_cf(cf).next().unwrap().map(drop)),
        ("range, from the back", db.range_cf(cf, "a"..).next_back().unwrap().map(drop)),
        ("prefix", db.prefix_cf_with(cf, "a", &read).next().unwrap().map(drop)),
        ("cursor", db.cursor_cf(cf).map(drop)),
        ("cursors", db.cursors(&[db.default_column_family(), cf]).map(drop)),
        ("flush", db.flush_cf(cf)),
        ("compact_range", db.compact_range_cf(cf, None, None)),
        ("compact_files", db.compact_files_cf(cf, &[], 1).map(drop)),
        ("suggest_compact_range", db.suggest_compact_range_cf(cf, None, None)),
        ("promote_l0", db.promote_l0_cf(cf, 1)),
        ("delete_files_in_ranges", db.delete_files_in_ranges_cf(cf, &[all], RangeEnd::Inclusive)),
        ("set_options", db.set_options_cf(cf, &[("disable_auto_compactions", "false")])),
        ("ingest_external_files", db.ingest_external_files_cf(cf, &["/no-such-file"])),
        (
            "approximate_sizes",
            db.approximate_sizes_cf_with(cf, &[(b"a", b"b")], Default::default()).map(drop),
        ),
        ("drop_column_family", db.drop_column_family(cf)),
    ]
}

fn assert_refused(db: &Db, cf: &ColumnFamilyHandle) {
    let mut accepted = Vec::new();
    for (what, answer) in all_answers(db, cf) {
        match answer {
            Err(error)
                if error.kind() == ErrorKind::InvalidArgument
                    && error.to_string().contains("another database") => {}
            other => accepted.push(format!("{what}: {other:?}")),
        }
    }
    assert!(accepted.is_empty(), "not refused:\n{}", accepted.join("\n"));
    assert_eq!(db.property_cf(cf, "rocksdb.num-files-at-level0"), None);
    assert_eq!(db.property_int_cf(cf, "rocksdb.estimate-num-keys"), None);
    assert!(db.live_files_cf(cf).is_empty());
}

#[test]
fn a_handle_of_another_database_is_refused_and_nothing_is_touched() {
    let env = Env::memory();
    let (db, twin) = twins(&env);
    let before = [rows(&db), rows(&twin)];
    let tables_before = [tables(&db), tables(&twin)];
    assert_ne!(before[0], before[1]);
    assert_eq!(tables_before[0], tables_before[1], "the same numbers, or the test tests little");
    let theirs = twin.column_family(USERS).unwrap();
    assert_refused(&db, &theirs);
    assert!(!theirs.is_dropped());
    assert!(theirs.options().disable_auto_compactions);
    assert_eq!([rows(&db), rows(&twin)], before);
    assert_eq!([tables(&db), tables(&twin)], tables_before);
}

/// A file that one database opened in its own directory and left with the other's metadata would be read from then on.
#[test]
fn a_read_with_the_wrong_handle_leaves_no_file_behind() {
    let env = Env::memory();
    let (db, twin) = twins(&env);
    let expected = rows(&twin);
    drop(twin);
    let twin = Db::builder("/twin").env(env.clone()).stored_options().unwrap().open().unwrap();
    let theirs = twin.column_family(USERS).unwrap();
    let _ = db.get_cf(&theirs, "a");
    let _ = db.get_cf(&theirs, "b");
    db.iter_cf(&theirs).for_each(drop);
    db.live_files_cf(&theirs);
    assert_eq!(rows(&twin), expected);
}

#[test]
fn a_handle_of_an_earlier_opening_is_refused() {
    let env = Env::memory();
    let (db, twin) = twins(&env);
    drop(twin);
    let old = db.column_family(USERS).unwrap();
    let expected = rows(&db);
    drop(db);
    let db = Db::builder("/db").env(env.clone()).stored_options().unwrap().open().unwrap();
    assert_refused(&db, &old);
    assert_eq!(rows(&db), expected);
}

#[test]
fn handles_that_a_secondary_gave_stay_its_own_after_it_caught_up() {
    let env = Env::memory();
    let (db, twin) = twins(&env);
    let open = || Db::builder("/db").env(env.clone()).stored_options().unwrap();
    let secondary = open().open_secondary().unwrap();
    let users = secondary.column_family(USERS).unwrap();
    fill(&db, "newer");
    secondary.try_catch_up_with_primary().unwrap();
    assert_eq!(secondary.get_cf(&users, "a").unwrap().as_deref(), Some(&b"newer"[..]));
    assert!(secondary.get_cf(&db.column_family(USERS).unwrap(), "a").is_err());
    drop(twin);
}

#[test]
fn transactions_refuse_the_handles_of_another_database() {
    let env = Env::memory();
    let open = |path: &str| {
        let builder = Db::builder(path).options(creating()).env(env.clone());
        TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap()
    };
    let (db, other) = (open("/db"), open("/other"));
    let cf = other.db().default_column_family();
    let mut txn = db.begin();
    let answers = [
        ("put", txn.put_cf(cf, "a", "1")),
        ("put_untracked", txn.put_untracked_cf(cf, "a", "1")),
        ("merge", txn.merge_cf(cf, "a", "1")),
        ("delete", txn.delete_cf(cf, "a")),
        ("single_delete", txn.single_delete_cf(cf, "a")),
        ("get", txn.get_cf(cf, "a").map(drop)),
        ("get_for_update", txn.get_for_update_cf(cf, "a", LockMode::Exclusive).map(drop)),
        ("merge_untracked", txn.merge_untracked_cf(cf, "a", "1")),
        ("delete_untracked", txn.delete_untracked_cf(cf, "a")),
        ("put_entity", txn.put_entity_cf(cf, "a", &[("", "1")])),
        ("multi_get", txn.multi_get_cf(cf, &["a"]).remove(0).map(drop)),
        ("multi_get_pairs", txn.multi_get_pairs(&[(cf, b"a")]).remove(0).map(drop)),
        ("multi_get_for_update", txn.multi_get_for_update_cf(cf, &["a"]).remove(0).map(drop)),
        (
            "get_for_update_unvalidated",
            txn.get_for_update_unvalidated_cf(cf, "a", LockMode::Exclusive).map(drop),
        ),
        ("cursor", txn.cursor_cf(cf).map(drop)),
        ("put of the database", db.put_cf(cf, "a", "1")),
        ("merge of the database", db.merge_cf(cf, "a", "1")),
        ("delete of the database", db.delete_cf(cf, "a")),
    ];
    for (what, answer) in answers {
        let error = answer.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
    }
    assert!(db.locks().is_empty());
    txn.commit().unwrap();
    assert_eq!(db.db().latest_sequence_number(), SeqNum(0));
}

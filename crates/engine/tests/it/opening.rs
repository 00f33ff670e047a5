//! How a database is named to the builder: stored options with objects added, and column families named once.

use crate::harness::{Append, creating};
use outcrop::*;
use std::cmp::Ordering;
use std::sync::Arc;

/// Shorter keys first.
struct ByLength;

impl UserComparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        (a.len(), a).cmp(&(b.len(), b))
    }
}

/// As [`Append`], under a name that is not built in.
struct Mine;

impl MergeOperator for Mine {
    fn name(&self) -> &str {
        "test.Mine"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        Append.full_merge(key, existing, operands)
    }
}

fn by_length() -> Comparator {
    Comparator::User(Arc::new(ByLength))
}

fn settings(write_buffer_size: u64) -> ColumnFamilyOptions {
    ColumnFamilyOptions { write_buffer_size, ..ColumnFamilyOptions::default() }
}

/// "default" with an order, and "users" with a merge operator, that no OPTIONS file can bring back.
fn create(env: &Env) {
    let users = ColumnFamilyDescriptor::new("users")
        .with_options(settings(1 << 20))
        .with_merge_operator(Arc::new(Mine));
    let log = ColumnFamilyDescriptor::new("log").with_comparator(Comparator::ReverseBytewise);
    let db = Db::builder("/db")
        .env(env.clone())
        .options(DbOptions { create_missing_column_families: true, ..creating() })
        .default_column_family(settings(2 << 20))
        .comparator(by_length())
        .column_families([users, log])
        .open()
        .unwrap();
    let users = db.column_family("users").unwrap();
    db.merge_cf(&users, "a", "1").unwrap();
    db.merge_cf(&users, "a", "2").unwrap();
    for key in ["bb", "c", "a"] {
        db.put(key, key).unwrap();
    }
}

fn check(db: &Db) {
    let users = db.column_family("users").unwrap();
    assert_eq!(db.get_cf(&users, "a").unwrap().as_deref(), Some(&b"1,2"[..]));
    let keys: Vec<Vec<u8>> = db.iter().map(|row| row.unwrap().0).collect();
    assert_eq!(keys, [&b"a"[..], b"c", b"bb"]);
    assert_eq!(db.column_families().len(), 3);
}

fn stored(env: &Env) -> DbBuilder {
    Db::builder("/db").env(env.clone()).stored_options().unwrap()
}

#[test]
fn objects_are_added_to_stored_options_by_naming_the_column_family_again() {
    let env = Env::memory();
    create(&env);
    let error = stored(&env).open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let with_operator = || ColumnFamilyDescriptor::new("users").with_merge_operator(Arc::new(Mine));
    let db = stored(&env).comparator(by_length()).column_family(with_operator()).open().unwrap();
    check(&db);
    let size_of = |db: &Db, name: &str| db.column_family(name).unwrap().options().write_buffer_size;
    assert_eq!((size_of(&db, "users"), size_of(&db, "default")), (1 << 20, 2 << 20), "as they are stored");
    drop(db);

    // With settings of its own these count; the names of objects it does not bring are the stored ones still.
    let db = stored(&env)
        .column_family(with_operator().with_options(settings(3 << 20)))
        .column_family(ColumnFamilyDescriptor::new("default").with_comparator(by_length()))
        .column_family(ColumnFamilyDescriptor::new("log").with_options(settings(4 << 20)))
        .open()
        .unwrap();
    check(&db);
    assert_eq!((size_of(&db, "users"), size_of(&db, "log")), (3 << 20, 4 << 20));
    assert_eq!(size_of(&db, "default"), 2 << 20);
}

#[test]
fn a_stored_merge_operator_that_nothing_brings_is_refused_by_name() {
    let env = Env::memory();
    create(&env);
    let error = stored(&env).comparator(by_length()).open().err().expect("nothing brings test.Mine");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("test.Mine") && error.to_string().contains("users"), "{error}");
    // Other settings for the column family do not bring it either.
    let users = ColumnFamilyDescriptor::new("users").with_options(settings(3 << 20));
    let error = stored(&env).comparator(by_length()).column_family(users).open().err().unwrap();
    assert!(error.to_string().contains("test.Mine"), "{error}");
}

#[test]
fn what_was_said_of_the_default_column_family_and_its_descriptor_add_up() {
    let env = Env::memory();
    create(&env);
    let families =
        || [ColumnFamilyDescriptor::new("users").with_merge_operator(Arc::new(Mine)), reversed_log()];
    let default = || ColumnFamilyDescriptor::default_with(settings(5 << 20), ColumnFamilyParts::default());
    let builder = || Db::builder("/db").env(env.clone()).column_families(families());
    let before = builder().comparator(by_length()).column_family(default()).open().unwrap();
    check(&before);
    assert_eq!(before.default_column_family().options().write_buffer_size, 5 << 20);
    drop(before);
    let after = builder().column_family(default()).comparator(by_length()).merge_operator(Arc::new(Mine));
    let after = after.open().unwrap();
    check(&after);
    assert_eq!(after.default_column_family().options().write_buffer_size, 5 << 20);
    assert!(after.default_column_family().merge_operator.is_some());
}

fn reversed_log() -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor::new("log").with_comparator(Comparator::ReverseBytewise)
}

#[test]
fn a_column_family_that_the_caller_names_twice_is_refused() {
    let env = Env::memory();
    create(&env);
    let twice = [
        Db::builder("/db").env(env.clone()).column_family("users").column_family("users"),
        Db::builder("/db").env(env.clone()).column_family("default").column_family("default"),
        stored(&env).comparator(by_length()).column_families(["users", "users"]),
        stored(&env).comparator(by_length()).column_families(["default", "default"]),
    ];
    for builder in twice {
        let error = builder.open().err().unwrap();
        assert!(error.to_string().contains("named twice"), "{error}");
    }
}

#[test]
fn the_longest_timeout_there_is_waits_for_ever() {
    let db = Db::builder("/db").env(Env::memory()).options(creating()).open().unwrap();
    db.put("a", "1").unwrap();
    for timeout in [std::time::Duration::MAX, std::time::Duration::from_micros(u64::MAX)] {
        let options =
            WaitForCompactOptions { flush: true, timeout: Some(timeout), ..WaitForCompactOptions::default() };
        db.wait_for_compact(&options).unwrap();
    }
}

/// 4 GiB that nobody reads: pages of zeros, none of them in memory.
fn four_gigabytes() -> Vec<u8> {
    vec![0; 1 << 32]
}

#[test]
fn what_a_batch_cannot_hold_is_an_error_and_leaves_batches_as_they_were() {
    let db = Db::builder("/db").env(Env::memory()).options(creating()).open().unwrap();
    let huge = four_gigabytes();
    let batch = IndexedBatch::default();
    let mut plain = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    plain.put("a", "1");
    let key: &[u8] = &huge[..(u32::MAX as usize) - 7];
    // Each fits, both together do not.
    let half: &[u8] = &huge[..3 << 30];
    let refused = [
        ("put", batch.put(b"a", &huge)),
        ("put, key", batch.put(key, b"1")),
        ("merge", batch.merge(b"a", &huge)),
        ("delete", batch.delete(key)),
        ("single_delete", batch.single_delete(key)),
        ("put_entity", batch.put_entity(b"a", &[(b"c", &huge)])),
        ("put_entity, key", batch.put_entity(key, &[(b"c", b"1")])),
        ("put_entity, name", batch.put_entity(b"a", &[(&huge, b"1")])),
        ("put_entity, sum", batch.put_entity(b"a", &[(b"c", half), (b"d", half)])),
        ("put_log_data", batch.put_log_data(&huge)),
        ("WriteBatch, one column", plain.put_entity("a", &[(&b"c"[..], &huge[..])])),
        ("WriteBatch, sum", plain.put_entity("a", &[(b"c", half), (b"d", half)])),
        ("Db, one column", db.put_entity("a", &[(&b"c"[..], &huge[..])])),
        ("Db, sum", db.put_entity("a", &[(b"c", half), (b"d", half)])),
        ("Db, put", db.put("a", &huge)),
    ];
    for (what, refused) in refused {
        let kind = refused.map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidArgument), "{what}");
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| plain.put_log_data(&huge)));
    assert!(panicked.is_err());
    assert_eq!((batch.count(), plain.count()), (1, 1));
    assert_eq!(batch.batch().as_bytes(), plain.as_bytes());
    batch.put(b"b", b"2").unwrap();
    assert_eq!(batch.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    db.write(&mut plain).unwrap();
    assert_eq!(db.latest_sequence_number(), SeqNum(1));
}

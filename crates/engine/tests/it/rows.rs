//! Iterators of rows: ranges, prefixes, both ends, other orders, errors; snapshots that were released or are another database's.

use crate::harness::*;
use outcrop::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

fn database(comparator: Comparator) -> Db {
    Db::builder("/db").options(creating()).env(Env::memory()).comparator(comparator).open().unwrap()
}

fn keys(rows: impl Iterator<Item = Result<Row>>) -> String {
    rows.map(|row| String::from_utf8(row.unwrap().0).unwrap()).collect::<Vec<_>>().join(" ")
}

/// Bytes in reverse, as an order of the application's own.
struct Backwards;

impl UserComparator for Backwards {
    fn name(&self) -> &str {
        "backwards"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

fn bounds(rng: &mut Rng, key: impl Fn(&mut Rng) -> Vec<u8>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let one = |rng: &mut Rng| match rng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key(rng)),
        _ => Bound::Included(key(rng)),
    };
    (one(rng), one(rng))
}

fn inside(order: &Comparator, key: &[u8], range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    let after_start = match &range.0 {
        Bound::Unbounded => true,
        Bound::Included(start) => order.compare(key, start).is_ge(),
        Bound::Excluded(start) => order.compare(key, start).is_gt(),
    };
    after_start
        && match &range.1 {
            Bound::Unbounded => true,
            Bound::Included(end) => order.compare(key, end).is_le(),
            Bound::Excluded(end) => order.compare(key, end).is_lt(),
        }
}

/// What an iterator asked from a random end each time gives, in order.
fn from_both_ends(mut rows: Iter, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    let prefers = rng.below(4);
    loop {
        let forward = rng.below(3) < prefers;
        let Some(row) = (if forward { rows.next() } else { rows.next_back() }) else { break };
        let (key, value) = row.unwrap();
        if forward { front.push((key, value.into_vec())) } else { back.push((key, value.into_vec())) }
    }
    assert!(rows.next().is_none() && rows.next_back().is_none(), "an end is an end");
    back.reverse();
    front.extend(back);
    front
}

#[test]
fn ranges_and_prefixes_are_those_of_a_sorted_list_from_both_ends_in_every_order() {
    let seed = seed("rows", 11);
    let mut rng = Rng(seed);
    let key = |rng: &mut Rng| {
        let letters = [b'a', b'b', 0xFF, 0];
        (0..rng.below(4)).map(|_| rng.pick(&letters)).collect::<Vec<u8>>()
    };
    for order in [Comparator::Bytewise, Comparator::ReverseBytewise, Comparator::User(Arc::new(Backwards))] {
        let db = database(order.clone());
        let mut model = BTreeMap::new();
        for round in 0..60 {
            for _ in 0..4 {
                let (key, value) = (key(&mut rng), vec![rng.below(256) as u8; rng.below(100) as usize]);
                if rng.one_in(4) {
                    db.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    db.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            if rng.one_in(6) {
                db.flush().unwrap();
            }
            let mut sorted: Vec<(Vec<u8>, Vec<u8>)> =
                model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            sorted.sort_by(|a, b| order.compare(&a.0, &b.0));
            let range = bounds(&mut rng, key);
            let limits = bounds(&mut rng, key);
            let options = ReadOptions {
                iterate_lower_bound: match &limits.0 {
                    Bound::Included(key) => Some(key.clone()),
                    _ => None,
                },
                iterate_upper_bound: match &limits.1 {
                    Bound::Excluded(key) => Some(key.clone()),
                    _ => None,
                },
                ..ReadOptions::default()
            };
            let limits = (
                options.iterate_lower_bound.clone().map_or(Bound::Unbounded, Bound::Included),
                options.iterate_upper_bound.clone().map_or(Bound::Unbounded, Bound::Excluded),
            );
            let mut expected = sorted.clone();
            expected.retain(|(key, _)| inside(&order, key, &range) && inside(&order, key, &limits));
            let what = format!("seed {seed}, round {round}, {order:?}, {range:?} within {limits:?}");
            let rows = db.range_with(range.clone(), &options);
            assert_eq!(from_both_ends(rows, &mut rng), expected, "{what}");

            let prefix = key(&mut rng);
            let mut expected = sorted;
            expected.retain(|(key, _)| key.starts_with(&prefix));
            let mut rows = db.prefix(&prefix);
            if order.is_user() {
                assert_eq!(rows.next().unwrap().unwrap_err().kind(), ErrorKind::NotSupported);
                assert!(rows.next().is_none() && rows.next_back().is_none());
            } else {
                assert_eq!(from_both_ends(rows, &mut rng), expected, "{what}, prefix {prefix:?}");
            }
        }
    }
}

#[test]
fn an_iterator_sees_the_moment_of_its_making_though_it_is_asked_later() {
    let db = database(Comparator::Bytewise);
    db.put("a", "1").unwrap();
    db.put("c", "1").unwrap();
    let rows = db.iter();
    db.put("b", "2").unwrap();
    db.delete("a").unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(keys(rows), "a c");
    assert_eq!(keys(db.iter().rev()), "c b");
}

#[test]
fn values_of_tables_are_pinned_and_stay() {
    let db = database(Comparator::Bytewise);
    for i in 0..1000 {
        db.put(format!("{i:03}"), vec![i as u8; 100]).unwrap();
    }
    db.flush().unwrap();
    let rows: Vec<Row> = db.iter().map(|row| row.unwrap()).collect();
    let backward: Vec<Row> = db.iter().rev().map(|row| row.unwrap()).collect();
    drop(db);
    for (i, (key, value)) in rows.iter().enumerate() {
        assert_eq!((&key[..], &value[..]), (format!("{i:03}").as_bytes(), &vec![i as u8; 100][..]));
    }
    assert!(rows.iter().eq(backward.iter().rev()));
}

#[test]
fn an_error_is_the_last_item() {
    let (db, other) = (database(Comparator::Bytewise), database(Comparator::Bytewise));
    db.put("a", "1").unwrap();
    let foreign = ReadOptions::at(&other.snapshot());
    let mut rows = db.iter_with(&foreign);
    assert_eq!(rows.next().unwrap().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(rows.next().is_none() && rows.next_back().is_none());
}

#[test]
fn reads_at_the_snapshot_of_another_database_are_refused() {
    let (db, other) = (database(Comparator::Bytewise), database(Comparator::Bytewise));
    db.put("a", "1").unwrap();
    let foreign = ReadOptions::at(&other.snapshot());
    let cf = db.default_column_family();
    let refused = [
        db.get_with("a", &foreign).map(drop),
        db.get_entity_with("a", &foreign).map(drop),
        db.multi_get_with(&[b"a"], &foreign).remove(0).map(drop),
        db.multi_get_pairs_with(&[(cf, b"a")], &foreign).remove(0).map(drop),
        db.cursor_with(&foreign).map(drop),
        db.cursors_with(&[cf], &foreign).map(drop),
        db.iter_with(&foreign).next().unwrap().map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("another database"), "{error}");
    }
}

#[test]
fn a_snapshot_lives_as_long_as_options_that_have_it() {
    let db = database(Comparator::Bytewise);
    db.put("a", "old").unwrap();
    let snapshot = db.snapshot();
    let options = ReadOptions::at(&snapshot);
    drop(snapshot);
    db.put("a", "new").unwrap();
    db.flush().unwrap();
    db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    assert_eq!(db.get_with("a", &options).unwrap().unwrap(), b"old");
    assert_eq!(db.property_int("rocksdb.num-snapshots"), Some(1));
    drop(options);
    assert_eq!(db.property_int("rocksdb.num-snapshots"), Some(0));
}

#[test]
fn a_released_snapshot_is_refused_and_what_reads_at_it_goes_on() {
    let db = database(Comparator::Bytewise);
    db.put("a", "old").unwrap();
    let snapshot = db.snapshot();
    let options = ReadOptions::at(&snapshot);
    let rows = db.iter_with(&options);
    snapshot.release();
    db.put("a", "new").unwrap();
    db.flush().unwrap();
    db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    let error = db.get_with("a", &options).unwrap_err();
    assert!(error.to_string().contains("released"), "{error}");
    let values: Vec<Vec<u8>> = rows.map(|row| row.unwrap().1.into_vec()).collect();
    assert_eq!(values, [b"old"]);
}

#[test]
fn a_batch_is_after_a_write_what_it_was_before_also_if_that_failed() {
    let db = database(Comparator::Bytewise);
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    batch.delete("b");
    let records = |batch: &WriteBatch| format!("{:?}", batch.iter().collect::<Vec<_>>());
    let before = records(&batch);
    db.write(&mut batch).unwrap();
    assert_eq!(records(&batch), before);
    let mut merging = batch.clone();
    merging.merge("a", "2");
    assert_eq!(db.write(&mut merging).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(merging.count(), 3);
    let refused = db.write_if(&mut batch, &WriteOptions::default(), |_| Err(Error::invalid_argument("no")));
    assert!(refused.is_err());
    assert_eq!(records(&batch), before);
    db.write(&mut batch).unwrap();
    assert_eq!(db.latest_sequence_number(), SeqNum(4));
}

#[test]
fn a_database_opens_as_its_options_file_says() {
    let env = Env::memory();
    let users = ColumnFamilyDescriptor::new("users")
        .with_options(ColumnFamilyOptions { write_buffer_size: 1 << 20, ..ColumnFamilyOptions::default() })
        .with_comparator(Comparator::ReverseBytewise);
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .default_column_family(ColumnFamilyOptions {
            merge_operator: Some("uint64add".into()),
            ..ColumnFamilyOptions::default()
        })
        .column_family(users)
        .open()
        .unwrap();
    db.put_cf(&db.column_family("users").unwrap(), "a", "1").unwrap();
    drop(db);
    let error = Db::builder("/db").env(env.clone()).open().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let db = Db::builder("/db").env(env).stored_options().unwrap().open().unwrap();
    let users = db.column_family("users").unwrap();
    assert_eq!(users.options().write_buffer_size, 1 << 20);
    db.put_cf(&users, "b", "2").unwrap();
    assert_eq!(keys(db.iter_cf(&users)), "b a");
    db.merge("n", 1u64.to_le_bytes()).unwrap();
    db.merge("n", 2u64.to_le_bytes()).unwrap();
    assert_eq!(db.get("n").unwrap().unwrap(), &3u64.to_le_bytes());
}

//! Iterators of rows: ranges, prefixes, both ends, other orders, errors; snapshots that were released or are another database's.

use crate::harness::*;
use outcrop::*;
use std::cmp::Ordering;
use std::ops::Bound;
use std::path::Path;
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

/// The first byte of a key is its prefix, as the application tells.
struct FirstByte;

impl UserPrefixExtractor for FirstByte {
    fn name(&self) -> &str {
        "test.FirstByte"
    }

    fn in_domain(&self, key: &[u8]) -> bool {
        !key.is_empty()
    }

    fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
        &key[..1]
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A database and the rows it should have, in its order.
struct Modelled {
    db: Db,
    order: Comparator,
    extractor: Option<PrefixExtractor>,
    rows: Pairs,
    /// The rows at the time each was taken.
    snapshots: Vec<(Snapshot, Pairs)>,
}

impl Modelled {
    fn new(order: Comparator, rng: &mut Rng) -> Modelled {
        let drawn = [
            None,
            Some(PrefixExtractor::Fixed(1)),
            Some(PrefixExtractor::Fixed(2)),
            Some(PrefixExtractor::Capped(2)),
            Some(PrefixExtractor::Noop),
            Some(PrefixExtractor::User(Arc::new(FirstByte))),
        ];
        // Keys with one prefix lie together, or there is no extractor.
        let extractor = if order.is_user() { None } else { rng.pick(&drawn) };
        let mut options = ColumnFamilyOptions {
            prefix_extractor: extractor.clone(),
            enable_blob_files: true,
            min_blob_size: 50,
            ..ColumnFamilyOptions::default()
        };
        options.table.block_size = 64;
        let builder = Db::builder("/db").options(creating()).env(Env::memory());
        let builder = builder.default_column_family(options).merge_operator(Arc::new(Append));
        let db = builder.comparator(order.clone()).open().unwrap();
        Modelled { db, order, extractor, rows: Vec::new(), snapshots: Vec::new() }
    }

    fn position(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        self.rows.binary_search_by(|(known, _)| self.order.compare(known, key))
    }

    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        match self.position(&key) {
            Ok(at) => self.rows[at] = (key, value),
            Err(at) => self.rows.insert(at, (key, value)),
        }
    }

    fn change(&mut self, rng: &mut Rng) {
        let (key, value) = (any_key(rng), vec![rng.below(256) as u8; rng.below(100) as usize]);
        match rng.below(8) {
            0 => {
                self.db.delete(&key).unwrap();
                if let Ok(at) = self.position(&key) {
                    self.rows.remove(at);
                }
            }
            1 => {
                let other = any_key(rng);
                let (begin, end) =
                    if self.order.compare(&key, &other).is_le() { (key, other) } else { (other, key) };
                self.db.delete_range(&begin, &end).unwrap();
                let order = &self.order;
                self.rows.retain(|(key, _)| {
                    order.compare(key, &begin).is_lt() || order.compare(key, &end).is_ge()
                });
            }
            2 | 3 => {
                self.db.merge(&key, &value).unwrap();
                let old = self.position(&key).ok().map(|at| self.rows[at].1.clone());
                let merged = Append.full_merge(&key, old.as_deref(), &[&value]).unwrap();
                self.set(key, merged);
            }
            _ => {
                self.db.put(&key, &value).unwrap();
                self.set(key, value);
            }
        }
    }

    fn upkeep(&mut self, rng: &mut Rng) {
        if rng.one_in(6) {
            self.db.flush().unwrap();
        }
        if rng.one_in(15) {
            self.db.compact_range(None, None).unwrap();
        }
        if rng.one_in(10) {
            self.snapshots.push((self.db.snapshot(), self.rows.clone()));
        }
        if self.snapshots.len() > 3 {
            self.snapshots.remove(0);
        }
    }

    /// Of `rows` those of `range`, within the bounds and the prefix that `options` ask for.
    fn expected(&self, mut rows: Pairs, range: &Range, options: &ReadOptions) -> Pairs {
        let order = &self.order;
        let lower = options.iterate_lower_bound.clone().map_or(Bound::Unbounded, Bound::Included);
        let upper = options.iterate_upper_bound.clone().map_or(Bound::Unbounded, Bound::Excluded);
        rows.retain(|(key, _)| {
            inside(order, key, range) && inside(order, key, &(lower.clone(), upper.clone()))
        });
        let extractor = self.extractor.as_ref().filter(|_| options.prefix_same_as_start);
        let first_row = rows.first().map(|(key, _)| key.clone());
        let starts = [&range.0, &lower].into_iter().filter_map(|bound| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key.clone()),
            Bound::Unbounded => None,
        });
        let start = starts.max_by(|a, b| order.compare(a, b)).or(first_row);
        if let (Some(extractor), Some(start)) = (extractor, start)
            && let Some(prefix) = extractor.transform(&start)
        {
            rows.retain(|(key, _)| extractor.transform(key) == Some(prefix));
        }
        rows
    }

    /// Under this order different bytes may be one key: then which of them is shown is nobody's business here.
    fn told_apart(&self, mut rows: Pairs) -> Pairs {
        if self.order.name() == CaseFold.name() {
            rows.iter_mut().for_each(|(key, _)| key.make_ascii_lowercase());
        }
        rows
    }
}

type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn any_key(rng: &mut Rng) -> Vec<u8> {
    let letters = [b'a', b'A', b'b', 0xFF, 0];
    (0..rng.below(4)).map(|_| rng.pick(&letters)).collect()
}

fn bounds(rng: &mut Rng) -> Range {
    let one = |rng: &mut Rng| match rng.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(any_key(rng)),
        _ => Bound::Included(any_key(rng)),
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

/// The rows, in order, of an iterator that is asked from a random end each time.
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
    let mut rng = Rng::new(seed);
    let orders = [
        Comparator::Bytewise,
        Comparator::ReverseBytewise,
        Comparator::User(Arc::new(Backwards)),
        Comparator::User(Arc::new(CaseFold)),
    ];
    for order in orders.iter().cycle().take(16) {
        let mut modelled = Modelled::new(order.clone(), &mut rng);
        for round in 0..50 {
            (0..4).for_each(|_| modelled.change(&mut rng));
            modelled.upkeep(&mut rng);
            let (snapshot, rows) = match modelled.snapshots.len() {
                taken if taken > 0 && rng.one_in(3) => {
                    let (snapshot, rows) = &modelled.snapshots[rng.below(taken as u64) as usize];
                    (Some(snapshot.clone()), rows.clone())
                }
                _ => (None, modelled.rows.clone()),
            };
            let (range, limits) = (bounds(&mut rng), bounds(&mut rng));
            let options = ReadOptions {
                snapshot,
                iterate_lower_bound: match limits.0 {
                    Bound::Included(key) => Some(key),
                    _ => None,
                },
                iterate_upper_bound: match limits.1 {
                    Bound::Excluded(key) => Some(key),
                    _ => None,
                },
                prefix_same_as_start: rng.one_in(2),
                total_order_seek: rng.one_in(4),
                ..ReadOptions::default()
            };
            let extractor = modelled.extractor.clone();
            let what =
                format!("seed {seed}, round {round}, {order:?}, {extractor:?}, {range:?}, {options:?}");
            let expected = modelled.told_apart(modelled.expected(rows.clone(), &range, &options));
            let found = modelled.db.range_with(range.clone(), &options);
            let found = match &extractor {
                // Nothing tells the back where a prefix ends.
                Some(PrefixExtractor::User(_)) if options.prefix_same_as_start => {
                    let mut back = modelled.db.range_with(range, &options).rev();
                    assert_eq!(back.next().unwrap().unwrap_err().kind(), ErrorKind::NotSupported, "{what}");
                    assert!(back.next().is_none());
                    found.map(Result::unwrap).map(|(key, value)| (key, value.into_vec())).collect()
                }
                _ => from_both_ends(found, &mut rng),
            };
            assert_eq!(modelled.told_apart(found), expected, "{what}");

            let prefix = any_key(&mut rng);
            let begins: Range = (Bound::Unbounded, Bound::Unbounded);
            // A scan of a prefix has its own, whatever the options say of the start's.
            let plain = ReadOptions { prefix_same_as_start: false, ..options.clone() };
            let mut expected = modelled.expected(rows, &begins, &plain);
            expected.retain(|(key, _)| key.starts_with(&prefix));
            let mut rows = modelled.db.prefix_with(&prefix, &options);
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
fn the_prefix_of_the_start_holds_from_the_back_too() {
    let options = || ColumnFamilyOptions {
        prefix_extractor: Some(PrefixExtractor::Fixed(1)),
        ..ColumnFamilyOptions::default()
    };
    let builder =
        || Db::builder("/db").options(creating()).env(Env::memory()).default_column_family(options());
    let within = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let fill = |db: &Db| ["a1", "a2", "b1", "b2"].iter().for_each(|key| db.put(key, "").unwrap());
    let db = builder().open().unwrap();
    fill(&db);
    assert_eq!(keys(db.iter_with(&within)), "a1 a2");
    assert_eq!(keys(db.iter_with(&within).rev()), "a2 a1");
    assert_eq!(keys(db.range_with("b".., &within).rev()), "b2 b1");
    assert_eq!(keys(db.range_with("a2".., &within).rev()), "a2");
    assert_eq!(keys(db.range_with("0".., &within).rev()), "");
    let mut both = db.iter_with(&within);
    assert_eq!(both.next_back().unwrap().unwrap().0, b"a2");
    assert_eq!(keys(both), "a1");

    // Where keys of one prefix need not lie together, the end of the prefix cannot be found from the back.
    let db = builder().comparator(Comparator::User(Arc::new(Backwards))).open().unwrap();
    fill(&db);
    assert_eq!(keys(db.iter_with(&within)), "b2 b1");
    let mut rows = db.iter_with(&within);
    assert_eq!(rows.next_back().unwrap().unwrap_err().kind(), ErrorKind::NotSupported);
    assert!(rows.next().is_none() && rows.next_back().is_none());
}

/// A database of 60 rows in small blocks, with one byte in the middle of its file of `kind` turned.
fn damaged_in_the_middle(kind: &str) -> Db {
    let env = Env::memory();
    let mut options = ColumnFamilyOptions {
        compression: CompressionType::None,
        enable_blob_files: kind == "blob",
        ..ColumnFamilyOptions::default()
    };
    options.table.block_size = 100;
    let builder = Db::builder("/db").options(creating()).env(env.clone()).default_column_family(options);
    let db = builder.clone().open().unwrap();
    for i in 0..60 {
        db.put(format!("{i:02}"), [i; 40]).unwrap();
    }
    db.flush().unwrap();
    drop(db);
    let names = env.fs.list(Path::new("/db")).unwrap();
    let name = names.iter().find(|name| name.ends_with(kind)).unwrap();
    let path = Path::new("/db").join(name);
    let mut bytes = env.fs.read_all(&path).unwrap();
    bytes[1200] ^= 0x10;
    env.fs.replace(&path, Path::new("/db/damaged"), &bytes).unwrap();
    builder.open().unwrap()
}

/// Takes rows from the front where `forward` says so, else from the back, to the error; gives how many came from each end.
fn up_to_the_damage(db: &Db, kind: &str, mut forward: impl FnMut() -> bool) -> (usize, usize) {
    let mut rows = db.iter();
    let (mut front, mut back) = (0, 0);
    let error = loop {
        let is_forward = forward();
        let row = if is_forward { rows.next() } else { rows.next_back() };
        match row.expect("the error comes before the end") {
            Err(error) => break error,
            Ok((key, value)) => {
                let at = if is_forward { front } else { 59 - back };
                assert_eq!((&key[..], &value[..]), (format!("{at:02}").as_bytes(), &[at as u8; 40][..]));
                *(if is_forward { &mut front } else { &mut back }) += 1;
            }
        }
    };
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains(kind), "{error}");
    assert!(rows.next().is_none() && rows.next_back().is_none(), "an error is the last item of both ends");
    (front, back)
}

#[test]
fn an_error_in_the_middle_ends_both_ends_after_the_rows_before_it() {
    for kind in ["sst", "blob"] {
        let db = damaged_in_the_middle(kind);
        let (from_front, none) = up_to_the_damage(&db, kind, || true);
        let (nothing, from_back) = up_to_the_damage(&db, kind, || false);
        assert_eq!((none, nothing), (0, 0));
        assert!(
            from_front > 5 && from_back > 5,
            "{kind}: {from_front} rows, then the damage, then {from_back}"
        );
        assert!(from_front + from_back < 60, "{kind}: what is damaged is in no row");
        let mut turns = 0;
        let (front, back) = up_to_the_damage(&db, kind, || {
            turns += 1;
            turns % 2 == 0
        });
        let met = (front == from_front || back == from_back) && front <= from_front && back <= from_back;
        assert!(met, "{kind}: {front} and {back} rows of {from_front} and {from_back}");
    }
}

#[test]
fn a_cursor_that_is_not_valid_has_neither_key_nor_value() {
    for blobs in [false, true] {
        let options = ColumnFamilyOptions { enable_blob_files: blobs, ..ColumnFamilyOptions::default() };
        let builder = Db::builder("/db").options(creating()).env(Env::memory());
        let db = builder.default_column_family(options).open().unwrap();
        db.put_entity("a", &[("", "default"), ("c", "column")]).unwrap();
        db.put("b", "in a table").unwrap();
        db.put_entity("c", &[("", "default"), ("c", "column")]).unwrap();
        db.put("d", "in a table").unwrap();
        db.flush().unwrap();
        for key in ["a", "b", "c", "d"] {
            let mut cursor = db.cursor().unwrap();
            let ends: [fn(&mut Cursor); 2] = [Cursor::next, Cursor::prev];
            for leave in ends {
                cursor.seek(key.as_bytes());
                while cursor.valid() {
                    cursor.value();
                    leave(&mut cursor);
                }
                cursor.status().unwrap();
                let panics = |read: &dyn Fn(&Cursor)| {
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&cursor))).is_err()
                };
                let answers = [
                    panics(&|cursor| drop(cursor.key().to_vec())),
                    panics(&|cursor| drop(cursor.value().to_vec())),
                    panics(&|cursor| drop(cursor.pinned_value())),
                    panics(&|cursor| drop(cursor.columns())),
                ];
                assert_eq!(answers, [true; 4], "blobs {blobs}, after {key}");
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

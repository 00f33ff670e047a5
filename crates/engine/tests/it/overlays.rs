//! Cursors over a database with a batch laid over it: turned anywhere, within bounds and prefixes, over a batch that grows, beside a map.

use crate::harness::Rng;
use outcrop::*;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A row, or a key that is deleted.
type Written = (String, Option<String>);

/// The rows that a cursor has to show.
struct Model {
    reverse: bool,
    /// The rows of the database.
    below: BTreeMap<String, String>,
    /// The keys that the batch has, and what becomes of them.
    batch: BTreeMap<String, Option<String>>,
    lower: Option<String>,
    upper: Option<String>,
    /// The database shows the rows of one prefix only: the first characters of these keys.
    by_prefix: bool,
    prefix: Option<String>,
    forward: bool,
    /// The key where the batch is looked at next: a smaller one that it got since is not seen before a turn.
    stand: Option<String>,
    shown: Option<(String, String)>,
}

impl Model {
    /// `keys` in the order of travel, of those within the bounds the first in `from`, which is a bound to the side that they come from.
    fn first<'m, V>(
        &self,
        keys: impl DoubleEndedIterator<Item = (&'m String, &'m V)>,
        from: &Bound<String>,
    ) -> Option<(&'m String, &'m V)> {
        let before = |a: &str, b: &str| if self.reverse { a > b } else { a < b };
        let ahead = |a: &str, b: &str| if self.forward { before(b, a) } else { before(a, b) };
        let wanted = |key: &str| {
            self.lower.as_ref().is_none_or(|lower| !before(key, lower))
                && self.upper.as_ref().is_none_or(|upper| before(key, upper))
                && match from {
                    Bound::Included(from) => key == from || ahead(key, from),
                    Bound::Excluded(from) => ahead(key, from),
                    Bound::Unbounded => true,
                }
        };
        match self.forward != self.reverse {
            true => keys.into_iter().find(|(key, _)| wanted(key)),
            false => keys.rev().find(|(key, _)| wanted(key)),
        }
    }

    fn first_below(&self, from: &Bound<String>) -> Option<(String, String)> {
        let prefix = self.prefix.clone().unwrap_or_default();
        let keys = self.below.iter().filter(|(key, _)| key.starts_with(&prefix));
        self.first(keys, from).map(|(key, value)| (key.clone(), value.clone()))
    }

    fn first_written(&self, from: &Bound<String>) -> Option<Written> {
        self.first(self.batch.iter(), from).map(|(key, value)| (key.clone(), value.clone()))
    }

    fn bind(&mut self, key: Option<&str>) {
        self.prefix = key.filter(|_| self.by_prefix).map(|key| key[..1].to_string());
    }

    fn seek(&mut self, forward: bool, to: Option<&str>) {
        self.forward = forward;
        let from = to.map_or(Bound::Unbounded, |to| Bound::Included(to.to_string()));
        self.bind(to);
        if to.is_none() {
            let first = self.first_below(&from).map(|(key, _)| key);
            self.bind(first.as_deref());
        }
        self.stand = self.first_written(&from).map(|(key, _)| key);
        self.settle(from);
    }

    fn step(&mut self, forward: bool) {
        let (shown, _) = self.shown.take().unwrap();
        if forward != self.forward {
            // A database that has come to the end of its prefix, or to its own, is asked anew.
            if self.first_below(&Bound::Included(shown.clone())).is_none() {
                self.bind(Some(&shown));
            }
            self.forward = forward;
            self.stand = self.first_written(&Bound::Included(shown.clone())).map(|(key, _)| key);
        }
        if self.stand.as_ref() == Some(&shown) {
            self.stand = self.first_written(&Bound::Excluded(shown.clone())).map(|(key, _)| key);
        }
        self.settle(Bound::Excluded(shown));
    }

    fn settle(&mut self, mut from: Bound<String>) {
        loop {
            let below = self.first_below(&from);
            let Some(stand) = self.stand.clone() else {
                self.shown = below;
                return;
            };
            let is_before = |row: &(String, String)| {
                row.0 != stand && ((row.0 < stand) == (self.forward != self.reverse))
            };
            if below.as_ref().is_some_and(is_before) {
                self.shown = below;
                return;
            }
            if let Some(value) = &self.batch[&stand] {
                self.shown = Some((stand, value.clone()));
                return;
            }
            from = Bound::Excluded(stand);
            self.stand = self.first_written(&from).map(|(key, _)| key);
        }
    }
}

fn key(draw: &mut Rng) -> String {
    format!("{:02}", draw.below(30))
}

/// A database, a batch, and what they hold.
struct Drawn {
    db: Db,
    batch: IndexedBatch,
    model: Model,
}

impl Drawn {
    fn new(draw: &mut Rng) -> Drawn {
        let (reverse, by_prefix) = (draw.one_in(2), draw.one_in(3));
        let options = ColumnFamilyOptions {
            merge_operator: Some("stringappend".into()),
            prefix_extractor: by_prefix.then_some(PrefixExtractor::Fixed(1)),
            ..ColumnFamilyOptions::default()
        };
        let comparator = if reverse { Comparator::ReverseBytewise } else { Comparator::Bytewise };
        let family =
            ColumnFamilyDescriptor::default_with(options, Default::default()).with_comparator(comparator);
        let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
        let db = builder.column_family(family).open().unwrap();
        let mut below = BTreeMap::new();
        for number in 0..draw.below(30) {
            let key = key(draw);
            if draw.one_in(4) {
                db.delete(&key).unwrap();
                below.remove(&key);
            } else {
                db.put(&key, number.to_string()).unwrap();
                below.insert(key, number.to_string());
            }
            if draw.one_in(12) {
                db.flush().unwrap();
            }
        }
        let overwrite_key = draw.one_in(2);
        let batch = IndexedBatch::new(IndexedBatchOptions { overwrite_key, ..Default::default() });
        let model = Model {
            reverse,
            below,
            batch: BTreeMap::new(),
            lower: None,
            upper: None,
            by_prefix,
            prefix: None,
            forward: true,
            stand: None,
            shown: None,
        };
        Drawn { db, batch, model }
    }

    /// The batch grows by one write. Of what is merged beyond a prefix the base is not shown.
    fn grow(&mut self, draw: &mut Rng, number: u64) {
        let (key, cf) = (key(draw), self.db.default_column_family());
        let Model { batch, below, by_prefix, .. } = &mut self.model;
        let written = match draw.below(4) {
            0 => {
                self.batch.delete_cf(cf, &key).unwrap();
                None
            }
            1 if !*by_prefix => {
                self.batch.merge_cf(cf, &key, "more").unwrap();
                let before = batch.get(&key).cloned().unwrap_or_else(|| below.get(&key).cloned());
                Some(before.map_or("more".to_string(), |before| before + ",more"))
            }
            _ => {
                self.batch.put_cf(cf, &key, format!("batch {number}")).unwrap();
                Some(format!("batch {number}"))
            }
        };
        batch.insert(key, written);
    }

    fn walk(&mut self, draw: &mut Rng) -> std::result::Result<(), String> {
        let mut bound = || draw.one_in(3).then(|| key(draw));
        (self.model.lower, self.model.upper) = (bound(), bound());
        let bytes = |bound: &Option<String>| bound.clone().map(String::into_bytes);
        let read = ReadOptions {
            iterate_lower_bound: bytes(&self.model.lower),
            iterate_upper_bound: bytes(&self.model.upper),
            prefix_same_as_start: self.model.by_prefix,
            ..ReadOptions::default()
        };
        self.model.shown = None;
        let mut cursor =
            self.batch.cursor_over_cf_with(&self.db, self.db.default_column_family(), &read).unwrap();
        for number in 0..50 {
            if draw.one_in(4) {
                self.grow(draw, number);
            }
            let to = key(draw);
            match draw.below(10) {
                0..=3 if self.model.shown.is_some() => {
                    cursor.next();
                    self.model.step(true);
                }
                4..=7 if self.model.shown.is_some() => {
                    cursor.prev();
                    self.model.step(false);
                }
                0 | 4 => {
                    cursor.seek_to_first();
                    self.model.seek(true, None);
                }
                1 | 5 => {
                    cursor.seek_to_last();
                    self.model.seek(false, None);
                }
                2 | 6 | 8 => {
                    cursor.seek(to.as_bytes());
                    self.model.seek(true, Some(&to));
                }
                _ => {
                    cursor.seek_for_prev(to.as_bytes());
                    self.model.seek(false, Some(&to));
                }
            }
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let shown = cursor.valid().then(|| (text(cursor.key()), text(cursor.value())));
            if shown != self.model.shown {
                return Err(format!("step {number}: {shown:?}, expected {:?}", self.model.shown));
            }
        }
        Ok(())
    }
}

#[test]
fn walks_over_a_batch_that_grows_are_those_of_a_map() {
    for seed in 0..300 {
        let draw = &mut Rng::new(seed);
        let mut drawn = Drawn::new(draw);
        for number in 0..draw.below(20) {
            drawn.grow(draw, number);
        }
        for walk in 0..6 {
            drawn.walk(draw).unwrap_or_else(|why| panic!("seed {seed}, walk {walk}, {why}"));
        }
    }
}

/// The key that a step leads to.
fn after(cursor: &mut impl RowSource, step: impl FnOnce(&mut dyn RowSource)) -> Option<String> {
    step(cursor);
    cursor.valid().then(|| String::from_utf8(cursor.key().to_vec()).unwrap())
}

#[test]
fn a_transactions_cursor_turns_at_the_key_shown_whatever_was_written_since() {
    let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
    let db = TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap();
    db.put("a", "1").unwrap();
    db.put("b", "1").unwrap();
    for (before, since) in [(None, "z"), (Some("m"), "c"), (Some("m"), "b")] {
        let mut transaction = db.begin();
        before.into_iter().for_each(|key| transaction.put(key, "2").unwrap());
        let mut cursor = transaction.cursor().unwrap();
        assert_eq!(after(&mut cursor, |cursor| cursor.seek(b"b")).as_deref(), Some("b"));
        transaction.put(since, "2").unwrap();
        assert_eq!(after(&mut cursor, |cursor| cursor.prev()).as_deref(), Some("a"), "{since} was put");
    }
}

#[test]
fn a_cursor_turns_within_the_prefix_of_the_key_shown() {
    let options = ColumnFamilyOptions {
        prefix_extractor: Some(PrefixExtractor::Fixed(1)),
        ..ColumnFamilyOptions::default()
    };
    let family = ColumnFamilyDescriptor::default_with(options, Default::default());
    let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
    let db = builder.column_family(family).open().unwrap();
    ["a1", "b1", "c1", "z1"].into_iter().for_each(|key| db.put(key, "1").unwrap());
    let batch = IndexedBatch::default();
    batch.put("a5", "1").unwrap();
    batch.put("c0", "1").unwrap();
    let read = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut cursor = batch.cursor_over_with(&db, &read).unwrap();
    assert_eq!(after(&mut cursor, |cursor| cursor.seek(b"a1")).as_deref(), Some("a1"));
    assert_eq!(after(&mut cursor, |cursor| cursor.next()).as_deref(), Some("a5"));
    assert_eq!(after(&mut cursor, |cursor| cursor.prev()).as_deref(), Some("a1"));
    assert_eq!(after(&mut cursor, |cursor| cursor.seek_for_prev(b"c9")).as_deref(), Some("c1"));
    assert_eq!(after(&mut cursor, |cursor| cursor.prev()).as_deref(), Some("c0"));
    assert_eq!(after(&mut cursor, |cursor| cursor.next()).as_deref(), Some("c1"));
}

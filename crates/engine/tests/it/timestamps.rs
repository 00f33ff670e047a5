//! Column families with user-defined timestamps: drawn histories beside a map of (key, timestamp), and what is refused.

use crate::harness::{Rng, any_style, creating, descriptor, seed, small_options};
use outcrop::*;
use outcrop_base::CfId;
use outcrop_env::memory::MemoryFs;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longer keys first, then bytewise; timestamps are big-endian numbers.
struct ByLength;

impl ByLength {
    fn key((bytes, stored): (&[u8], bool)) -> &[u8] {
        if stored { &bytes[..bytes.len() - 8] } else { bytes }
    }
}

impl UserComparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength.BigEndian"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let newest_first = || self.compare_timestamps(&b[b.len() - 8..], &a[a.len() - 8..]);
        self.compare_without_timestamps((a, true), (b, true)).then_with(newest_first)
    }

    fn timestamp_len(&self) -> usize {
        8
    }

    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn compare_without_timestamps(&self, a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
        let (a, b) = (ByLength::key(a), ByLength::key(b));
        b.len().cmp(&a.len()).then_with(|| a.cmp(b))
    }
}

/// The versions of each key: by timestamp, the value or that it is deleted.
type History = BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>;

/// A row that a cursor shows: key, timestamp, and value unless it is deleted.
type Shown = (Vec<u8>, u64, Option<Vec<u8>>);

struct Run {
    rng: Rng,
    fs: MemoryFs,
    env: Env,
    db: Option<Db>,
    order: Comparator,
    options: ColumnFamilyOptions,
    model: History,
    held: Vec<(Snapshot, History)>,
    now: u64,
    low: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed);
        let fs = MemoryFs::new();
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let options = small_options(&mut rng);
        let order = rng.pick(&[
            Comparator::bytewise_with_timestamps(),
            Comparator::reverse_bytewise_with_timestamps(),
            Comparator::User(Arc::new(ByLength)),
        ]);
        let (model, held) = (History::new(), Vec::new());
        let mut run = Run { rng, fs, env, db: None, order, options, model, held, now: 1000, low: 0 };
        run.reopen(None);
        run
    }

    /// The bytes that the order takes for the timestamp `number`.
    fn stamp(&self, number: u64) -> Timestamp {
        match self.order.name().starts_with("test") {
            true => Timestamp::from(number.swap_bytes()),
            false => Timestamp::from(number),
        }
    }

    fn number(&self, stamp: Timestamp) -> u64 {
        match self.order.name().starts_with("test") {
            true => stamp.number().swap_bytes(),
            false => stamp.number(),
        }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn cf(&self) -> ColumnFamilyHandle {
        self.db().column_family("stamped").unwrap()
    }

    fn reopen(&mut self, trim: Option<u64>) {
        self.held.clear();
        let power_lost = trim.is_none() && self.db.is_some() && self.rng.one_in(2);
        if power_lost {
            self.db().sync_wal().unwrap();
        }
        self.db = None;
        if power_lost {
            self.fs.crash_torn(self.rng.next());
        }
        self.options.compaction_style = any_style(&mut self.rng);
        if self.options.compaction_style == CompactionStyle::Fifo {
            self.options.compaction_style = CompactionStyle::Level;
        }
        let stamped = descriptor("stamped", &self.options).with_comparator(self.order.clone());
        let mut options = creating();
        options.create_missing_column_families = true;
        options.recycle_log_file_num = self.rng.pick(&[0, 0, 2]);
        options.wal_compression = self.rng.pick(&[CompressionType::None, CompressionType::Zstd]);
        options.max_subcompactions = self.rng.pick(&[1, 3]);
        options.max_manifest_file_size = self.rng.pick(&[1 << 30, 500]);
        let builder = Db::builder("/db").options(options).env(self.env.clone());
        let builder = builder.column_families([descriptor("default", &self.options), stamped]);
        self.db = Some(match trim {
            Some(newest) => builder.open_and_trim_history(self.stamp(newest)).unwrap(),
            None => builder.open().unwrap(),
        });
    }

    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.below(60);
        match self.rng.below(3) {
            0 => format!("{n}").into_bytes(),
            1 => format!("a-longer-common-prefix-{n:06}").into_bytes(),
            _ => vec![(n % 5) as u8; (n % 14) as usize],
        }
    }

    fn write(&mut self) {
        let cf = self.cf();
        let mut batch = WriteBatch::new();
        for _ in 0..self.rng.pick(&[1, 1, 5]) {
            self.now += self.rng.below(3);
            let (key, stamp) = (self.key(), self.stamp(self.now));
            let value = (!self.rng.one_in(4)).then(|| vec![b'v'; self.rng.pick(&[0, 10, 300])]);
            let value = value.map(|value| [&self.now.to_be_bytes()[..], &value].concat());
            match &value {
                Some(value) => batch.put_cf_at(&cf, &key, stamp, value),
                None => batch.delete_cf_at(&cf, &key, stamp),
            }
            self.model.entry(key).or_default().insert(self.now, value);
        }
        batch.put("plain", self.now.to_be_bytes());
        self.db().write(&mut batch).unwrap();
    }

    /// The rows that a read at `read` shows of `model`; with `start` all versions from that on. In the order of keys, newest first.
    fn expected(&self, model: &History, read: u64, start: Option<u64>) -> Vec<Shown> {
        let order = self.order.keys();
        let mut keys: Vec<_> = model.iter().collect();
        keys.sort_by(|a, b| order.compare(a.0, b.0));
        let mut rows = Vec::new();
        for (key, versions) in keys {
            let visible = versions.range(start.unwrap_or(0)..=read).rev();
            match start {
                Some(_) => rows.extend(visible.map(|(stamp, value)| (key.clone(), *stamp, value.clone()))),
                None => {
                    let newest = visible.take(1).filter(|(_, value)| value.is_some());
                    rows.extend(newest.map(|(stamp, value)| (key.clone(), *stamp, value.clone())));
                }
            }
        }
        rows
    }

    fn shown(&self, cursor: &Cursor) -> Shown {
        let stamp = self.number(cursor.timestamp().unwrap());
        let value = (!cursor.is_deletion()).then(|| cursor.value().to_vec());
        (cursor.key().to_vec(), stamp, value)
    }

    /// Walks over everything both ways, and seeks.
    fn check_cursor(&mut self, model: &History, read: u64, start: Option<u64>, snapshot: Option<&Snapshot>) {
        let mut expected = self.expected(model, read, start);
        let mut options = ReadOptions {
            timestamp: Some(self.stamp(read)),
            iter_start_timestamp: start.map(|start| self.stamp(start)),
            snapshot: snapshot.cloned(),
            ..ReadOptions::default()
        };
        let order = self.order.keys();
        if self.rng.one_in(3) {
            let (lower, upper) = (self.key(), self.key());
            expected
                .retain(|(key, ..)| order.compare(&lower, key).is_le() && order.compare(key, &upper).is_lt());
            (options.iterate_lower_bound, options.iterate_upper_bound) = (Some(lower), Some(upper));
        }
        let cf = self.cf();
        let mut cursor = self.db().cursor_cf_with(&cf, &options).unwrap();
        let mut found = Vec::new();
        cursor.seek_to_first();
        while cursor.valid() {
            found.push(self.shown(&cursor));
            cursor.next();
        }
        cursor.status().unwrap();
        assert!(
            found == expected,
            "forward at {read} from {start:?}: {} for {}",
            found.len(),
            expected.len()
        );
        found.clear();
        cursor.seek_to_last();
        while cursor.valid() {
            found.push(self.shown(&cursor));
            cursor.prev();
        }
        cursor.status().unwrap();
        found.reverse();
        assert!(
            found == expected,
            "backward at {read} from {start:?}: {} for {}",
            found.len(),
            expected.len()
        );
        for _ in 0..6 {
            let target = self.key();
            let back = self.rng.one_in(2);
            let mut at: Option<usize> = if back {
                cursor.seek_for_prev(&target);
                expected.iter().rposition(|(key, ..)| order.compare(key, &target).is_le())
            } else {
                cursor.seek(&target);
                expected.iter().position(|(key, ..)| order.compare(key, &target).is_ge())
            };
            for _ in 0..5 {
                let shown = cursor.valid().then(|| self.shown(&cursor));
                assert_eq!(
                    shown.as_ref(),
                    at.map(|at| &expected[at]),
                    "around {target:?} at {read} from {start:?}"
                );
                let Some(place) = at else { break };
                if self.rng.one_in(2) {
                    cursor.next();
                    at = Some(place + 1).filter(|next| *next < expected.len());
                } else {
                    cursor.prev();
                    at = place.checked_sub(1);
                }
            }
            cursor.status().unwrap();
        }
    }

    fn check_rows(&self, read: u64) {
        let (cf, options) = (self.cf(), ReadOptions::at_timestamp(self.stamp(read)));
        let expected = self.expected(&self.model, read, None);
        let rows: Vec<_> = self.db().iter_cf_with(&cf, &options).map(|row| row.unwrap()).collect();
        let keys: Vec<&[u8]> = rows.iter().map(|row| &row.0[..]).collect();
        assert_eq!(keys, expected.iter().map(|row| &row.0[..]).collect::<Vec<_>>());
        let mut back: Vec<_> =
            self.db().iter_cf_with(&cf, &options).rev().map(|row| row.unwrap().0).collect();
        back.reverse();
        assert_eq!(back, keys);
    }

    fn check(&mut self) {
        let model = self.model.clone();
        let oldest = self.low.max(990);
        let read = oldest + self.rng.below(self.now + 3 - oldest);
        let cf = self.cf();
        let options = ReadOptions::at_timestamp(self.stamp(read));
        let keys: Vec<Vec<u8>> = (0..20).map(|_| self.key()).collect();
        let mut found = Vec::new();
        for key in &keys {
            let newest = model.get(key).and_then(|versions| versions.range(..=read).next_back());
            let expected = newest.and_then(|(_, value)| value.as_deref());
            let version = self.db().get_version_cf_with(&cf, key, &options).unwrap();
            let shown = version.as_ref().map(|(value, _)| &value[..]);
            assert_eq!(shown, expected, "{key:?} at {read}");
            if let (Some((_, stamp)), Some((expected, _))) = (&version, newest)
                && *expected >= self.low
            {
                assert_eq!(self.number(*stamp), *expected);
            }
            found.push(version.map(|(value, _)| value.to_vec()));
        }
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let many = self.db().multi_get_cf_with(&cf, &slices, &options);
        let many: Vec<_> = many.into_iter().map(|value| value.unwrap().map(|value| value.to_vec())).collect();
        assert_eq!(many, found);
        // A version older than the low may be there or not, or have forgotten its time.
        let start = self.low.max(990) + self.rng.below(read + 1 - oldest);
        self.check_cursor(&model, read, Some(start), None);
        if self.low == 0 {
            self.check_cursor(&model, read, None, None);
            self.check_rows(read);
        }
        for (snapshot, model) in std::mem::take(&mut self.held) {
            self.check_cursor(&model, read, Some(start), Some(&snapshot));
            self.held.push((snapshot, model));
        }
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..60 => self.write(),
            60..66 => self.db().flush_cf(&self.cf()).unwrap(),
            66..70 => {
                let force = BottommostLevelCompaction::Force.into();
                self.db().compact_range_cf_with(&self.cf(), None, None, &force).unwrap();
            }
            70..72 => {
                let (a, b) = (self.key(), self.key());
                let options = CompactRangeOptions::default();
                let cf = self.cf();
                self.db().compact_range_cf_with(&cf, Some(&a), Some(&b), &options).unwrap();
            }
            72..74 => self.reopen(None),
            74..77 => {
                let held = (self.db().snapshot(), self.model.clone());
                self.held.push(held);
            }
            77..80 if !self.held.is_empty() => {
                let index = self.rng.index(self.held.len());
                self.held.swap_remove(index);
            }
            _ => self.check(),
        }
    }
}

#[test]
fn drawn_histories_equal_a_map_of_keys_and_timestamps() {
    let seed = seed("timestamps", 1);
    for seed in seed..seed + 12 {
        println!("history {seed}");
        let mut run = Run::new(seed);
        for _ in 0..250 {
            run.step();
        }
        run.check();
    }
}

#[test]
fn history_below_the_low_timestamp_collapses_and_the_rest_stays() {
    let seed = seed("timestamps_gc", 100);
    for seed in seed..seed + 12 {
        println!("history {seed}");
        let mut run = Run::new(seed);
        for step in 0..250 {
            if step % 40 == 39 {
                // A snapshot of before keeps the versions it sees.
                run.low = run.low.max(run.now - run.rng.below(20));
                let (cf, low) = (run.cf(), run.stamp(run.low));
                if run.rng.one_in(2) {
                    run.db().increase_full_history_low(&cf, low).unwrap();
                } else {
                    let options = CompactRangeOptions {
                        full_history_low: Some(low),
                        ..BottommostLevelCompaction::Force.into()
                    };
                    run.db().compact_range_cf_with(&cf, None, None, &options).unwrap();
                }
                assert_eq!(run.db().full_history_low(&cf).unwrap(), Some(low));
            }
            run.step();
        }
        run.held.clear();
        let force = BottommostLevelCompaction::Force.into();
        let cf = run.cf();
        run.db().flush_cf(&cf).unwrap();
        run.db().compact_range_cf_with(&cf, None, None, &force).unwrap();
        run.check();
        // One version below the low at most, and none that is a deletion.
        let all = ReadOptions {
            timestamp: Some(Timestamp::MAX),
            iter_start_timestamp: Some(Timestamp::MIN),
            ..ReadOptions::default()
        };
        let mut cursor = run.db().cursor_cf_with(&cf, &all).unwrap();
        let mut old: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        cursor.seek_to_first();
        while cursor.valid() {
            let (key, stamp, value) = run.shown(&cursor);
            if stamp < run.low {
                *old.entry(key.clone()).or_default() += 1;
                assert!(value.is_some(), "{key:?} is deleted at {stamp}, below {}", run.low);
            }
            cursor.next();
        }
        assert!(old.values().all(|versions| *versions == 1), "{old:?}");
    }
}

#[test]
fn trimmed_histories_end_at_the_timestamp_asked_for() {
    let seed = seed("timestamps_trim", 200);
    for seed in seed..seed + 8 {
        println!("history {seed}");
        let mut run = Run::new(seed);
        for round in 0..4 {
            for _ in 0..60 {
                run.step();
            }
            let newest = run.now - run.rng.below(30);
            run.reopen(Some(newest));
            for versions in run.model.values_mut() {
                versions.retain(|stamp, _| *stamp <= newest);
            }
            run.model.retain(|_, versions| !versions.is_empty());
            run.now = newest.max(1000);
            let model = run.model.clone();
            run.check_cursor(&model, u64::MAX, Some(0), None);
            println!("round {round}: {} keys up to {newest}", model.len());
        }
    }
}

fn stamped_db() -> Db {
    let default =
        ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    Db::builder("/db").env(Env::memory()).options(creating()).column_family(default).open().unwrap()
}

fn text<T>(result: Result<T>) -> String {
    result.err().expect("it must fail").to_string()
}

#[test]
fn calls_with_and_without_timestamps_are_told_apart_in_rocksdbs_words() {
    let db = stamped_db();
    let enables = "Invalid argument: cannot call this method on column family default that enables timestamp";
    assert_eq!(text(db.put("k", "v")), enables);
    assert_eq!(text(db.delete("k")), enables);
    assert_eq!(text(db.delete_range("a", "b")), enables);
    assert_eq!(text(db.get("k")), enables);
    assert_eq!(text(db.cursor()), enables);
    assert_eq!(text(db.multi_get(&["k"]).remove(0)), enables);
    let plain = db.create_column_family("plain").unwrap();
    let lacks =
        "Invalid argument: cannot call this method on column family plain that does not enable timestamp";
    assert_eq!(text(db.put_cf_at(&plain, "k", 1.into(), "v")), lacks);
    let at = ReadOptions::at_timestamp(1.into());
    assert_eq!(text(db.get_cf_with(&plain, "k", &at)), lacks);
    assert_eq!(text(db.cursor_cf_with(&plain, &at)), lacks);
    assert_eq!(
        text(db.full_history_low(&plain)),
        "Invalid argument: Timestamp is not enabled in this column family"
    );
    let mut batch = WriteBatch::new();
    batch.put("long enough for a timestamp", "v");
    assert_eq!(text(db.write(&mut batch)), "Invalid argument: write batch must have timestamp(s) set");
    batch.clear();
    batch.put_cf_at(&plain, "k", 1.into(), "v");
    assert!(text(db.write(&mut batch)).contains("does not enable timestamp"));
    batch.clear();
    batch.put_at("k", Timestamp::MIN, "v");
    batch.await_timestamps();
    assert_eq!(text(db.write(&mut batch)), "Invalid argument: write batch must have timestamp(s) set");
    batch.update_timestamps(7.into(), |cf| cf == CfId::DEFAULT).unwrap();
    db.write(&mut batch).unwrap();
    let (value, stamp) = db.get_version_with("k", &ReadOptions::at_timestamp(9.into())).unwrap().unwrap();
    assert_eq!((&value[..], stamp), (&b"v"[..], 7.into()));
}

#[test]
fn reads_of_collapsed_history_fail_once_tables_change() {
    let db = stamped_db();
    let cf = db.default_column_family().clone();
    for stamp in [1, 2, 5] {
        db.put_at("k", stamp.into(), format!("v{stamp}")).unwrap();
    }
    assert_eq!(db.full_history_low(&cf).unwrap(), None);
    db.increase_full_history_low(&cf, 4.into()).unwrap();
    assert_eq!(
        text(db.increase_full_history_low(&cf, 2.into())),
        "Invalid argument: Current full_history_ts_low: 4 is higher than provided ts: 2\n"
    );
    let at = |stamp: u64| ReadOptions::at_timestamp(stamp.into());
    assert_eq!(db.get_with("k", &at(1)).unwrap().as_deref(), Some(&b"v1"[..]));
    db.flush().unwrap();
    let refused = "Invalid argument: Read timestamp: 3 is smaller than full_history_ts_low: 4\n";
    assert_eq!(text(db.get_with("k", &at(3))), refused);
    assert_eq!(text(db.cursor_with(&at(3))), refused);
    assert_eq!(db.get_with("k", &at(4)).unwrap().as_deref(), Some(&b"v2"[..]));
    let ranged = CompactRangeOptions { full_history_low: Some(6.into()), ..Default::default() };
    assert_eq!(
        text(db.compact_range_with(Some(b"a"), None, &ranged)),
        "Invalid argument: Cannot specify compaction range with full_history_ts_low"
    );
}

#[test]
fn orders_with_and_without_timestamps_do_not_replace_each_other() {
    let env = Env::memory();
    let open = |order: Comparator| {
        let default = ColumnFamilyDescriptor::new("default").with_comparator(order);
        Db::builder("/db").env(env.clone()).options(creating()).column_family(default).open()
    };
    drop(open(Comparator::bytewise_with_timestamps()).unwrap());
    assert!(text(open(Comparator::ReverseBytewise)).contains("does not match existing comparator"));
    let disable = text(open(Comparator::Bytewise));
    assert!(disable.contains("disable user-defined timestamps feature"), "{disable}");
    let env = Env::memory();
    let open = |order: Comparator| {
        let default = ColumnFamilyDescriptor::new("default").with_comparator(order);
        Db::builder("/db").env(env.clone()).options(creating()).column_family(default).open()
    };
    drop(open(Comparator::Bytewise).unwrap());
    let enable = text(open(Comparator::bytewise_with_timestamps()));
    assert!(enable.contains("enable user-defined timestamps feature"), "{enable}");
}

#[test]
fn values_in_blob_files_are_read_after_their_timestamps_are_forgotten() {
    let options = ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 10,
        enable_blob_garbage_collection: true,
        blob_garbage_collection_age_cutoff: 1.0,
        ..ColumnFamilyOptions::default()
    };
    let family = || {
        let comparator = Comparator::bytewise_with_timestamps();
        ColumnFamilyDescriptor::new("default").with_options(options.clone()).with_comparator(comparator)
    };
    let env = Env::memory();
    let open = || Db::builder("/db").env(env.clone()).create_if_missing(true).column_family(family()).open();
    let mut db = open().unwrap();
    for number in 0..20u64 {
        db.put_at(format!("key{number:02}"), 1.into(), "old".repeat(20)).unwrap();
        db.put_at(format!("key{number:02}"), 2.into(), format!("{number:02}").repeat(20)).unwrap();
    }
    db.flush().unwrap();
    // The first takes timestamps away, the second moves values into a new blob file.
    for low in [5u64, 6] {
        let options = CompactRangeOptions {
            full_history_low: Some(low.into()),
            ..BottommostLevelCompaction::Force.into()
        };
        let cf = db.default_column_family().clone();
        db.compact_range_cf_with(&cf, None, None, &options).unwrap();
        drop(cf);
        drop(db);
        db = open().unwrap();
        let mut cursor = db.cursor_with(&ReadOptions {
            iter_start_timestamp: Some(Timestamp::MIN),
            ..ReadOptions::at_timestamp(10.into())
        });
        for number in 0..20u64 {
            let (key, value) = (format!("key{number:02}"), format!("{number:02}").repeat(20));
            let got = db.get_with(&key, &ReadOptions::at_timestamp(10.into())).unwrap();
            assert_eq!(got.as_deref(), Some(value.as_bytes()));
            let cursor = cursor.as_mut().unwrap();
            if number == 0 {
                cursor.seek_to_first()
            } else {
                cursor.next()
            }
            assert_eq!((cursor.key(), cursor.value()), (key.as_bytes(), value.as_bytes()));
            assert_eq!(cursor.timestamp(), Some(Timestamp::MIN), "it is forgotten");
        }
        drop(cursor);
    }
}

/// Nothing asks for that order; what is written is then found or not, but compactions go on.
#[test]
fn versions_out_of_the_order_of_their_timestamps_are_compacted() {
    // Values that stay, and those that a filter changes.
    for filter in [None, Some(Arc::new(Marking) as Arc<dyn CompactionFilter>)] {
        let parts = ColumnFamilyParts { compaction_filter: filter, ..ColumnFamilyParts::default() };
        let family = ColumnFamilyDescriptor::default_with(ColumnFamilyOptions::default(), parts)
            .with_comparator(Comparator::bytewise_with_timestamps());
        let builder = Db::builder("/db").env(Env::memory()).options(creating()).column_family(family);
        let db = builder.open().unwrap();
        let cf = db.default_column_family();
        db.put_at("k", 5.into(), "five").unwrap();
        let snapshot = db.snapshot();
        db.put_at("k", 3.into(), "three").unwrap();
        db.flush().unwrap();
        db.increase_full_history_low(cf, 7.into()).unwrap();
        let versions = || {
            let all = ReadOptions {
                iter_start_timestamp: Some(Timestamp::MIN),
                ..ReadOptions::at_timestamp(10.into())
            };
            let (mut cursor, mut versions) = (db.cursor_with(&all).unwrap(), Vec::new());
            cursor.seek_to_first();
            while cursor.valid() {
                versions.push((cursor.timestamp().unwrap().number(), cursor.value()[..4].to_vec()));
                cursor.next();
            }
            cursor.status().unwrap();
            versions
        };
        let compact = || db.compact_range_with(None, None, &BottommostLevelCompaction::Force.into());
        compact().unwrap();
        // No read at the low timestamp sees the second, but it is what was written after the snapshot.
        assert_eq!(versions(), [(5, b"five".to_vec()), (3, b"thre".to_vec())]);
        drop(snapshot);
        compact().unwrap();
        assert_eq!(versions(), [(0, b"five".to_vec())]);
        let read = ReadOptions::at_timestamp(10.into());
        assert!(db.get_with("k", &read).unwrap().unwrap().starts_with(b"five"));
        db.put_at("k", 11.into(), "eleven").unwrap();
    }
}

/// Marks every value.
struct Marking;

impl CompactionFilter for Marking {
    fn name(&self) -> &str {
        "test.Marking"
    }

    fn filter(&self, _level: usize, _key: &[u8], value: &[u8]) -> FilterDecision {
        FilterDecision::ChangeValue([value, b"!"].concat())
    }
}

//! Random operations on the database and on sorted maps, under random options: every answer must be equal.
//!
//! The last column family has an order that calls different bytes the same key, also bytes of different lengths. Each
//! call spells its key in some way; the maps have it in one.

use crate::harness::{
    Rng, Rows, active_entries, any_style, contents_with, creating, descriptor, seed, small_options,
};
use outcrop::options::FilterPolicy;
use outcrop::*;
use outcrop_env::memory::MemoryFs;
use std::cmp::Ordering;
use std::sync::Arc;

const FAMILIES: [&str; 3] = ["default", "one", "two"];

/// The column family whose keys can be spelled in several ways.
const SPELLED: usize = 2;

/// Compares ASCII letters without regard to case, and takes no notice of spaces at the end.
struct Fold;

/// The one way in which the maps have a key.
fn folded(key: &[u8]) -> Vec<u8> {
    let len = key.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    key[..len].to_ascii_lowercase()
}

impl UserComparator for Fold {
    fn name(&self) -> &str {
        "test.Fold"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        folded(a).cmp(&folded(b))
    }
}

struct Held {
    snapshot: Snapshot,
    rows: Vec<Rows>,
}

struct Run {
    rng: Rng,
    fs: MemoryFs,
    env: Env,
    db: Option<Db>,
    model: Vec<Rows>,
    held: Vec<Held>,
    options: Vec<ColumnFamilyOptions>,
    /// Memtables that were full when a put came.
    filled: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::new(seed);
        let fs = MemoryFs::new();
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let options = FAMILIES.iter().map(|_| small_options(&mut rng)).collect();
        let mut run =
            Run { rng, fs, env, db: None, model: vec![Rows::new(); 3], held: Vec::new(), options, filled: 0 };
        run.reopen();
        run
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn cf(&self, family: usize) -> ColumnFamilyHandle {
        self.db().column_family(FAMILIES[family]).unwrap()
    }

    fn reopen(&mut self) {
        self.held.clear();
        let power_lost = self.db.is_some() && self.rng.one_in(2);
        if power_lost {
            self.db().sync_wal().unwrap();
            // Writes that are not synced may be there in part; they change no row.
            for _ in 0..self.rng.below(40) {
                let cf = self.cf(0);
                self.db().delete_cf(&cf, b"never written").unwrap();
            }
        }
        self.db = None;
        if power_lost {
            self.fs.crash_torn(self.rng.next());
        }
        for options in &mut self.options {
            options.compaction_style = any_style(&mut self.rng);
            let universal = &mut options.compaction_options_universal;
            universal.allow_trivial_move = self.rng.one_in(2);
            universal.incremental = self.rng.one_in(2);
            universal.size_ratio = self.rng.pick(&[1, 50]);
            universal.max_merge_width = self.rng.pick(&[2, 3, u32::MAX]);
            universal.max_size_amplification_percent = self.rng.pick(&[25, 200]);
            options.compaction_options_fifo.allow_compaction = self.rng.one_in(2);
        }
        let mut families: Vec<_> =
            FAMILIES.iter().zip(&self.options).map(|(name, options)| descriptor(name, options)).collect();
        families[SPELLED].parts.comparator = Comparator::User(Arc::new(Fold));
        // Filters know bytes: under such an order they are the application's mistake, as in RocksDB.
        families[SPELLED].options.table.filter_policy = FilterPolicy::None;
        let mut options = creating();
        options.max_background_jobs = self.rng.pick(&[1, 2, 4]);
        options.recycle_log_file_num = self.rng.pick(&[0, 0, 2]);
        options.wal_compression = self.rng.pick(&[CompressionType::None, CompressionType::Zstd]);
        // FIFO compaction does without a limit, as in RocksDB.
        let limited = self.options.iter().all(|cf| cf.compaction_style != CompactionStyle::Fifo);
        let files = self.rng.pick(&[-1, -1, 30]);
        options.max_open_files = if limited { files } else { -1 };
        options.max_manifest_file_size = self.rng.pick(&[1 << 30, 500]);
        options.max_subcompactions = self.rng.pick(&[1, 3]);
        self.db = Some(
            Db::builder("/db")
                .options(options)
                .env(self.env.clone())
                .column_families(families)
                .open()
                .unwrap(),
        );
    }

    fn key(&mut self) -> Vec<u8> {
        let n = self.rng.below(300);
        match self.rng.below(3) {
            0 => format!("{n}").into_bytes(),
            1 => format!("a-longer-common-prefix-{n:06}").into_bytes(),
            _ => vec![(n % 7) as u8; (n % 20) as usize],
        }
    }

    /// `key` as a call names it.
    fn spelled(&mut self, family: usize, key: &[u8]) -> Vec<u8> {
        let mut key = key.to_vec();
        if family == SPELLED {
            for byte in &mut key {
                if self.rng.one_in(3) {
                    byte.make_ascii_uppercase();
                }
            }
            if self.rng.one_in(3) {
                key.extend(std::iter::repeat_n(b' ', 1 + self.rng.below(3) as usize));
            }
        }
        key
    }

    /// Two keys in order, mostly near each other.
    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let n = self.rng.below(300);
        let width = self.rng.pick(&[0, 1, 5, 40]);
        let (begin, end) = match self.rng.below(5) {
            0 => (self.key(), self.key()),
            1 => (format!("{n}").into_bytes(), format!("{}", n + width).into_bytes()),
            2 => (format!("s{}", n % 12).into_bytes(), format!("s{}", n % 12 + width).into_bytes()),
            _ => (
                format!("a-longer-common-prefix-{n:06}").into_bytes(),
                format!("a-longer-common-prefix-{:06}", n + width).into_bytes(),
            ),
        };
        if begin <= end { (begin, end) } else { (end, begin) }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = self.rng.pick(&[0, 8, 100, 700, 4000, 16_000]);
        vec![self.rng.next() as u8; len]
    }

    fn step(&mut self) {
        let family = self.rng.below(3) as usize;
        let cf = self.cf(family);
        let options = WriteOptions { sync: self.rng.one_in(50), ..WriteOptions::default() };
        match self.rng.below(100) {
            0..4 => {
                let (key, value) = (self.key(), self.value());
                let columns = [(&b"colour"[..], &b"red"[..]), (b"", &value), (b"size", b"7")];
                let spelled = self.spelled(family, &key);
                self.db().put_entity_cf_with(&cf, &spelled, &columns, &options).unwrap();
                self.model[family].insert(key, value);
            }
            4..12 => self.put_or_single_delete(family, &cf, &options),
            12..40 => {
                let (key, value) = (self.key(), self.value());
                let spelled = self.spelled(family, &key);
                let before = active_entries(self.db(), &cf);
                self.db().put_cf_with(&cf, &spelled, &value, &options).unwrap();
                self.filled += u64::from(active_entries(self.db(), &cf) <= before);
                self.model[family].insert(key, value);
            }
            40..52 => {
                let key = self.key();
                let spelled = self.spelled(family, &key);
                self.db().delete_cf_with(&cf, &spelled, &options).unwrap();
                self.model[family].remove(&key);
            }
            52..60 => {
                let (key, operand) = (self.key(), vec![b'a' + (self.rng.next() % 26) as u8]);
                let spelled = self.spelled(family, &key);
                self.db().merge_cf_with(&cf, &spelled, &operand, &options).unwrap();
                self.model[family]
                    .entry(key)
                    .and_modify(|value| {
                        value.push(b',');
                        value.extend_from_slice(&operand);
                    })
                    .or_insert(operand);
            }
            60..66 => self.batch(&options),
            66..68 => {
                let (begin, end) = self.range();
                let spelled = (self.spelled(family, &begin), self.spelled(family, &end));
                self.db().delete_range_cf_with(&cf, &spelled.0, &spelled.1, &options).unwrap();
                self.model[family].retain(|key, _| *key < begin || *key >= end);
            }
            68..84 => {
                let key = self.key();
                let spelled = self.spelled(family, &key);
                let got = self.db().get_cf(&cf, &spelled).unwrap();
                assert_eq!(got.as_deref(), self.model[family].get(&key).map(Vec::as_slice), "get {key:?}");
            }
            84..90 => self.walk(family, &cf),
            90..93 => {
                let snapshot = self.db().snapshot();
                self.held.push(Held { snapshot, rows: self.model.clone() });
                if self.held.len() > 4 {
                    self.held.remove(0);
                }
            }
            93..95 => {
                let wait = if self.rng.one_in(2) { Wait::UntilDone } else { Wait::No };
                self.db().flush_cfs(&[cf], wait).unwrap();
            }
            95 => self.compact(&cf),
            96 if self.rng.one_in(4) => self.reopen(),
            97 => self.check_all(),
            _ => self.multi_get(family, &cf),
        }
    }

    /// One of a few keys that are put only when absent and single-deleted when present, so that many of their
    /// versions meet in flushes and compactions.
    fn put_or_single_delete(&mut self, family: usize, cf: &ColumnFamilyHandle, options: &WriteOptions) {
        let key = format!("s{}", self.rng.below(12)).into_bytes();
        let spelled = self.spelled(family, &key);
        if self.model[family].remove(&key).is_some() {
            self.db().single_delete_cf_with(cf, &spelled, options).unwrap();
        } else {
            let value = self.value();
            self.db().put_cf_with(cf, &spelled, &value, options).unwrap();
            self.model[family].insert(key, value);
        }
    }

    fn batch(&mut self, options: &WriteOptions) {
        let mut batch = WriteBatch::new();
        for _ in 0..1 + self.rng.below(8) {
            let family = self.rng.below(3) as usize;
            let (key, value) = (self.key(), self.value());
            let cf = self.cf(family);
            if self.rng.one_in(12) {
                let (begin, end) = self.range();
                batch.delete_range_cf(&cf, self.spelled(family, &begin), self.spelled(family, &end));
                self.model[family].retain(|key, _| *key < begin || *key >= end);
            } else if self.rng.one_in(4) {
                batch.delete_cf(&cf, self.spelled(family, &key));
                self.model[family].remove(&key);
            } else {
                batch.put_cf(&cf, self.spelled(family, &key), &value);
                self.model[family].insert(key, value);
            }
        }
        self.db().write_with(&mut batch, options).unwrap();
    }

    fn multi_get(&mut self, family: usize, cf: &ColumnFamilyHandle) {
        let most = if self.rng.one_in(4) { 90 } else { 6 };
        let count = self.rng.below(most);
        let keys: Vec<Vec<u8>> = (0..count).map(|_| self.key()).collect();
        let spelled: Vec<Vec<u8>> = keys.iter().map(|key| self.spelled(family, key)).collect();
        let slices: Vec<&[u8]> = spelled.iter().map(Vec::as_slice).collect();
        let got = self.db().multi_get_cf(cf, &slices);
        for (key, value) in keys.iter().zip(got) {
            assert_eq!(value.unwrap().as_deref(), self.model[family].get(key).map(Vec::as_slice));
        }
    }

    fn compact(&mut self, cf: &ColumnFamilyHandle) {
        let (begin, end) = (self.key(), self.key());
        let (begin, end) = if begin <= end { (begin, end) } else { (end, begin) };
        let force = self.rng.pick(&[BottommostLevelCompaction::Skip, BottommostLevelCompaction::Force]);
        let whole = self.rng.one_in(2);
        let bound = |key: Vec<u8>| (!whole).then_some(key);
        let (begin, end) = (bound(begin), bound(end));
        if self.rng.one_in(4) {
            self.db().suggest_compact_range_cf(cf, begin.as_deref(), end.as_deref()).unwrap();
            return;
        }
        let options = CompactRangeOptions {
            bottommost_level_compaction: force,
            exclusive_manual_compaction: self.rng.one_in(4),
            max_subcompactions: self.rng.pick(&[None, Some(4)]),
            ..CompactRangeOptions::default()
        };
        self.db().compact_range_cf_with(cf, begin.as_deref(), end.as_deref(), &options).unwrap();
    }

    /// A few random moves of an iterator, each compared.
    fn walk(&mut self, family: usize, cf: &ColumnFamilyHandle) {
        let held = self.held.last().filter(|_| self.rng.state().is_multiple_of(2));
        let rows = held.map_or(&self.model[family], |held| &held.rows[family]).clone();
        let options = held.map_or(ReadOptions::default(), |held| ReadOptions::at(&held.snapshot));
        let mut iter = self.db().cursor_cf_with(cf, &options).unwrap();
        let mut at: Option<Vec<u8>> = None;
        for _ in 0..12 {
            match (self.rng.below(6), at.take()) {
                (0 | 1, Some(key)) => {
                    iter.next();
                    at = rows.range(key..).nth(1).map(|(k, _)| k.clone());
                }
                (2 | 3, Some(key)) => {
                    iter.prev();
                    at = rows.range(..key).next_back().map(|(k, _)| k.clone());
                }
                (4, _) => {
                    let key = self.key();
                    iter.seek_for_prev(&self.spelled(family, &key));
                    at = rows.range(..=key).next_back().map(|(k, _)| k.clone());
                }
                _ => {
                    let key = self.key();
                    iter.seek(&self.spelled(family, &key));
                    at = rows.range(key..).next().map(|(k, _)| k.clone());
                }
            }
            iter.status().unwrap();
            let shown = iter.valid().then(|| iter.key().to_vec());
            assert_eq!(shown.map(|key| if family == SPELLED { folded(&key) } else { key }), at);
            if let Some(key) = &at {
                assert_eq!(iter.value(), rows[key], "value of {key:?}");
            }
        }
    }

    fn check_all(&mut self) {
        for family in 0..3 {
            let cf = self.cf(family);
            let spell = if family == SPELLED { folded } else { <[u8]>::to_vec };
            let contents = |options: &ReadOptions| contents_with(self.db(), &cf, options, spell);
            assert_eq!(contents(&ReadOptions::default()), self.model[family]);
            for held in &self.held {
                assert_eq!(contents(&ReadOptions::at(&held.snapshot)), held.rows[family]);
            }
        }
    }
}

#[test]
fn random_operations_agree_with_sorted_maps() {
    let first = seed("model", 1);
    let mut filled = 0;
    for seed in first..first + 8 {
        let mut run = Run::new(seed);
        for step in 0..2500 {
            if step % 500 == 499 {
                run.check_all();
            }
            run.step();
        }
        run.reopen();
        run.check_all();
        println!("seed {seed}: {} memtables filled", run.filled);
        filled += run.filled;
    }
    assert!(filled >= 8, "memtables are filled by writes: {filled}");
}

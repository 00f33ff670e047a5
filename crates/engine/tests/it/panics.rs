//! The application's comparator, merge operator, compaction filter, collector or partitioner panics: in the midst of a write group, of a flush, of a
//! compaction, or while a thread chooses what to do next. Nobody hangs, the error is told, and after `resume` there is
//! what was acknowledged and nothing of what was refused.

use crate::harness::{Append, Rng, Rows, contents, creating, seed};
use outcrop::options::{ColumnFamilyOptions, CompactionStyle, DbOptions, FilterPolicy};
use outcrop::*;
use outcrop_base::CfId;
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The threads whose call panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Threads {
    None,
    Foreground,
    Flush,
    Compaction,
}

/// Application code that panics at one of its calls to come.
#[derive(Clone)]
struct Trap(Arc<(AtomicU8, AtomicI64)>);

impl Trap {
    fn new() -> Trap {
        Trap(Arc::new((AtomicU8::new(0), AtomicI64::new(0))))
    }

    /// Lets call number `call` of `threads` panic, counted from 0.
    fn set(&self, threads: Threads, call: u64) {
        self.0.1.store(call as i64, Ordering::SeqCst);
        self.0.0.store(threads as u8, Ordering::SeqCst);
    }

    /// Takes it away; true if it has sprung.
    fn take_away(&self) -> bool {
        self.0.0.store(Threads::None as u8, Ordering::SeqCst);
        self.0.1.load(Ordering::SeqCst) < 0
    }

    fn step(&self) {
        let set = self.0.0.load(Ordering::SeqCst);
        let threads = match std::thread::current().name() {
            Some("outcrop:high") => Threads::Flush,
            Some(name) if name.starts_with("outcrop:") => Threads::Compaction,
            _ => Threads::Foreground,
        };
        if set == threads as u8 && self.0.1.fetch_sub(1, Ordering::SeqCst) == 0 {
            // A panic without the hook's message.
            std::panic::resume_unwind(Box::new("sprung"));
        }
    }
}

impl UserComparator for Trap {
    fn name(&self) -> &str {
        "test.Trap"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        self.step();
        a.cmp(b)
    }
}

impl MergeOperator for Trap {
    fn name(&self) -> &str {
        "StringAppendOperator"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.step();
        Append.full_merge(key, existing, operands)
    }
}

impl CompactionFilter for Trap {
    fn name(&self) -> &str {
        "test.Trap"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        self.step();
        FilterDecision::Keep
    }
}

impl TablePropertiesCollectorFactory for Trap {
    fn name(&self) -> &str {
        "test.Trap"
    }

    fn create(
        &self,
        _column_family: CfId,
        _level: Option<usize>,
    ) -> Option<Box<dyn TablePropertiesCollector>> {
        self.step();
        Some(Box::new(self.clone()))
    }
}

impl TablePropertiesCollector for Trap {
    fn add(&mut self, _: &[u8], _: &[u8], _: EntryKind, _: SeqNum, _: u64) -> Result<()> {
        self.step();
        Ok(())
    }

    fn finish(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        self.step();
        Ok(Vec::new())
    }
}

impl SstPartitionerFactory for Trap {
    fn name(&self) -> &str {
        "test.Trap"
    }

    fn create(&self, _: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
        self.step();
        Some(Box::new(self.clone()))
    }
}

impl SstPartitioner for Trap {
    fn must_end(&mut self, last: &[u8], next: &[u8], _file_size: u64) -> bool {
        self.step();
        last.get(..4) != next.get(..4)
    }
}

impl UserPrefixExtractor for Trap {
    fn name(&self) -> &str {
        "test.Trap"
    }

    fn in_domain(&self, _key: &[u8]) -> bool {
        self.step();
        true
    }

    fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
        self.step();
        &key[..key.len().min(4)]
    }
}

/// The part of the application's code that has the trap.
#[derive(Clone, Copy, Debug)]
enum TrapSite {
    Comparator,
    PrefixExtractor,
    MergeOperator,
    Filter,
    Collector,
    Partitioner,
}

fn open(env: &Env, trap: &Trap, place: TrapSite, compaction_style: CompactionStyle) -> Db {
    let mut parts =
        ColumnFamilyParts { merge_operator: Some(Arc::new(Append)), ..ColumnFamilyParts::default() };
    match place {
        TrapSite::PrefixExtractor => {}
        TrapSite::Comparator => parts.comparator = Comparator::User(Arc::new(trap.clone())),
        TrapSite::MergeOperator => parts.merge_operator = Some(Arc::new(trap.clone())),
        TrapSite::Filter => parts.compaction_filter = Some(Arc::new(trap.clone())),
        TrapSite::Collector => parts.collectors = vec![Arc::new(trap.clone())],
        TrapSite::Partitioner => parts.sst_partitioner = Some(Arc::new(trap.clone())),
    }
    let mut options = ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        target_file_size_base: 2 << 10,
        max_bytes_for_level_base: 8 << 10,
        level0_file_num_compaction_trigger: 2,
        max_successive_merges: 1,
        compaction_style,
        ..ColumnFamilyOptions::default()
    };
    options.compaction_options_universal.allow_trivial_move = true;
    if let TrapSite::PrefixExtractor = place {
        options.prefix_extractor = Some(PrefixExtractor::User(Arc::new(trap.clone())));
        options.memtable_prefix_bloom_size_ratio = 0.1;
        options.table.filter_policy = FilterPolicy::Bloom { bits_per_key: 10.0 };
    }
    let db_options = DbOptions { max_subcompactions: 3, ..creating() };
    Db::builder("/db")
        .options(db_options)
        .env(env.clone())
        .column_family(ColumnFamilyDescriptor::default_with(options, parts))
        .open()
        .unwrap()
}

/// Runs `test` on a thread of its own: a hang is a failure, not a test run without end. On a busy machine it takes minutes.
fn must_end(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if ended.recv_timeout(Duration::from_secs(900)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("somebody waits for ever");
    }
    thread.join().unwrap();
}

/// The keys of batch `id`, spread over the key space.
fn keys_of(id: u64) -> [Vec<u8>; 3] {
    let mut rng = Rng::new(id);
    std::array::from_fn(|_| format!("{:04}-{id:06}", rng.below(10_000)).into_bytes())
}

/// A batch of puts or merges, which leave the same rows.
fn batch_of(id: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (i, key) in keys_of(id).iter().enumerate() {
        let value = id.to_string();
        if i == 1 { batch.merge(key, value) } else { batch.put(key, value) }
    }
    batch
}

fn rows_of(ids: &[u64]) -> Rows {
    ids.iter().flat_map(|id| keys_of(*id).map(|key| (key, id.to_string().into_bytes()))).collect()
}

/// Several threads write batches until one is refused. Those acknowledged, and those refused.
fn write_until_refused(db: &Db, first: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|thread| {
                scope.spawn(move || {
                    let mut written = Vec::new();
                    for id in (first + thread * 100)..(first + thread * 100 + 100) {
                        match db.write(&mut batch_of(id)) {
                            Ok(()) => written.push(id),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
                                assert!(error.to_string().contains("write panicked: sprung"), "{error}");
                                return (written, Some(id));
                            }
                        }
                    }
                    (written, None)
                })
            })
            .collect();
        for writer in writers {
            let (written, failed) = writer.join().unwrap();
            acknowledged.extend(written);
            refused.extend(failed);
        }
    });
    (acknowledged, refused)
}

fn a_panic_fails_the_group(place: TrapSite, calls: u64) {
    let seed = seed("panics", 5);
    let mut rng = Rng::new(seed);
    let (env, trap) = (Env::with_file_system(Arc::new(outcrop_env::memory::MemoryFs::new())), Trap::new());
    let mut db = open(&env, &trap, place, CompactionStyle::Level);
    let (mut there, mut sprung) = (Vec::new(), 0);
    for round in 0..30 {
        trap.set(Threads::Foreground, rng.below(calls));
        let (acknowledged, refused) = write_until_refused(&db, round * 1000);
        if !trap.take_away() {
            there.extend(acknowledged);
            continue;
        }
        sprung += 1;
        assert!(!refused.is_empty(), "a panic is an error of some write");
        there.extend(acknowledged);
        let cf = db.default_column_family().clone();
        let rows = |db: &Db| contents(db, &cf, &ReadOptions::default());
        assert_eq!(rows(&db), rows_of(&there), "before resume, round {round}");
        let mut late = batch_of(999_999);
        assert_eq!(db.write(&mut late).unwrap_err().kind(), ErrorKind::Aborted);
        if round % 2 == 0 {
            db.resume().unwrap();
            let mut next = batch_of(round * 1000 + 999);
            db.write(&mut next).unwrap();
            there.push(round * 1000 + 999);
            assert_eq!(rows(&db), rows_of(&there), "after resume, round {round}");
        }
        db.close().unwrap();
        db = open(&env, &trap, place, CompactionStyle::Level);
        // Where nobody resumed the WAL may have the group that failed: whole, then.
        let cf = db.default_column_family().clone();
        let found = contents(&db, &cf, &ReadOptions::default());
        let came_back = |id: &&u64| keys_of(**id).iter().any(|key| found.contains_key(key));
        there.extend(refused.iter().filter(came_back));
        assert_eq!(found, rows_of(&there), "opened again, round {round}");
    }
    assert!(sprung > 5, "the trap sprang {sprung} times");
}

#[test]
fn a_comparator_that_panics_fails_its_write_group() {
    must_end(|| a_panic_fails_the_group(TrapSite::Comparator, 20_000));
}

#[test]
fn a_prefix_extractor_that_panics_fails_its_write_group() {
    must_end(|| a_panic_fails_the_group(TrapSite::PrefixExtractor, 2_000));
}

#[test]
fn a_prefix_extractor_that_panics_stops_no_thread() {
    must_end(|| {
        let (place, style) = (TrapSite::PrefixExtractor, CompactionStyle::Level);
        a_panic_stops_writes_and_no_thread(place, style, Threads::Flush);
        a_panic_stops_writes_and_no_thread(place, style, Threads::Compaction);
    });
}

#[test]
fn a_merge_operator_that_panics_fails_its_write_group() {
    must_end(|| {
        let (env, trap) =
            (Env::with_file_system(Arc::new(outcrop_env::memory::MemoryFs::new())), Trap::new());
        let db = open(&env, &trap, TrapSite::MergeOperator, CompactionStyle::Level);
        db.put(b"f", b"0").unwrap();
        db.put(b"k", b"1").unwrap();
        db.merge_cf(db.default_column_family(), b"k", b"2").unwrap();
        trap.set(Threads::Foreground, 0);
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"torn");
        batch.delete_range(b"f", b"g");
        batch.merge(b"k", b"3");
        let error = db.write(&mut batch).unwrap_err();
        assert_eq!(error.to_string(), "Operation aborted: write panicked: sprung");
        assert!(trap.take_away());
        db.resume().unwrap();
        db.merge_cf(db.default_column_family(), b"k", b"4").unwrap();
        let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
        let expected = [(b"f".to_vec(), b"0".to_vec()), (b"k".to_vec(), b"1,2,4".to_vec())];
        assert_eq!(rows, Rows::from(expected));
    });
}

/// Writes four overlapping tables and compacts them, until something fails.
fn fill_and_compact(db: &Db) -> (Rows, Result<()>) {
    let cf = db.default_column_family().clone();
    let mut rows = contents(db, &cf, &ReadOptions::default());
    let wait = WaitForCompactOptions::default();
    let mut steps = || -> Result<()> {
        for table in 0..4u64 {
            for i in 0..20 {
                let (key, value) = (format!("key{:03}", i * 7 % 60 + table), vec![table as u8 + b'a'; 150]);
                db.put(key.as_bytes(), &value)?;
                rows.insert(key.into_bytes(), value);
            }
            db.flush_cf(&cf)?;
        }
        db.wait_for_compact(&wait)?;
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into())
    };
    let result = steps();
    (rows, result)
}

/// Lets call after call of `threads` panic.
fn a_panic_stops_writes_and_no_thread(place: TrapSite, style: CompactionStyle, threads: Threads) {
    let mut call = 0;
    loop {
        let fs = outcrop_env::memory::MemoryFs::new();
        let (env, trap) = (Env::with_file_system(Arc::new(fs)), Trap::new());
        let db = open(&env, &trap, place, style);
        fill_and_compact(&db).1.unwrap();
        trap.set(threads, call);
        let (rows, result) = fill_and_compact(&db);
        let what = format!("{place:?}, {style:?}, {threads:?}, call {call}");
        let sprung = trap.take_away();
        let stopped = db.background_error();
        if let Some(error) = &stopped {
            assert!(error.to_string().contains("panicked: sprung"), "{what}: {error}");
        }
        // A panic where the structure changes is put off to the thread that picks next, which may find nothing to panic about.
        assert!(sprung || (result.is_ok() && stopped.is_none()), "{what}: {result:?}, {stopped:?}");
        let rows_now = |db: &Db| contents(db, db.default_column_family(), &ReadOptions::default());
        assert_eq!(rows_now(&db), rows, "{what}");
        db.resume().unwrap_or_else(|error| panic!("{what}: {error}"));
        let (rows, result) = fill_and_compact(&db);
        result.unwrap_or_else(|error| panic!("{what}: after resume: {error}"));
        assert_eq!(rows_now(&db), rows, "{what}: after resume");
        db.close().unwrap();
        assert_eq!(rows_now(&open(&env, &trap, place, style)), rows, "{what}: opened again");
        if !sprung {
            assert!(call > 20, "{what}: hardly a call");
            return;
        }
        // The first calls one by one, then every so often.
        call += 1 + call / 15;
    }
}

#[test]
fn a_comparator_that_panics_stops_no_flush_thread() {
    must_end(|| {
        a_panic_stops_writes_and_no_thread(TrapSite::Comparator, CompactionStyle::Level, Threads::Flush)
    });
}

#[test]
fn a_comparator_that_panics_stops_no_compaction_thread() {
    must_end(|| {
        a_panic_stops_writes_and_no_thread(TrapSite::Comparator, CompactionStyle::Level, Threads::Compaction)
    });
}

/// Here every change of the tables compares keys, to see whether a compaction is due.
#[test]
fn a_comparator_that_panics_leaves_no_change_of_the_tables_half_made() {
    let style = CompactionStyle::Universal;
    must_end(move || a_panic_stops_writes_and_no_thread(TrapSite::Comparator, style, Threads::Flush));
    must_end(move || a_panic_stops_writes_and_no_thread(TrapSite::Comparator, style, Threads::Compaction));
}

#[test]
fn a_compaction_filter_that_panics_stops_no_compaction_thread() {
    must_end(|| {
        a_panic_stops_writes_and_no_thread(TrapSite::Filter, CompactionStyle::Level, Threads::Compaction)
    });
}

#[test]
fn a_collector_that_panics_stops_no_thread() {
    must_end(|| {
        a_panic_stops_writes_and_no_thread(TrapSite::Collector, CompactionStyle::Level, Threads::Flush);
        a_panic_stops_writes_and_no_thread(TrapSite::Collector, CompactionStyle::Level, Threads::Compaction);
    });
}

#[test]
fn a_partitioner_that_panics_stops_no_thread() {
    must_end(|| {
        for style in [CompactionStyle::Level, CompactionStyle::Universal] {
            a_panic_stops_writes_and_no_thread(TrapSite::Partitioner, style, Threads::Compaction);
        }
    });
}

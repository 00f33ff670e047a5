//! Options of column families that change how something is done, and not what is read.

use crate::harness::{Rng, contents, creating, descriptor, seed, until};
use outcrop::options::{CompressionType, FilterPolicy, Prepopulate};
use outcrop::*;
use outcrop_base::PrefixExtractor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn open(env: &Env, options: &ColumnFamilyOptions, parts: ColumnFamilyParts) -> Result<Db> {
    let family = ColumnFamilyDescriptor { name: "default".into(), options: options.clone(), parts };
    Db::builder("/db").options(creating()).env(env.clone()).column_family(family).open()
}

fn plain() -> ColumnFamilyParts {
    ColumnFamilyParts::default()
}

fn flush(db: &Db) {
    db.flush().unwrap();
}

#[test]
fn the_comparator_is_chosen_by_name_and_another_is_refused() {
    let env = Env::memory();
    let named = |name: &str| ColumnFamilyOptions { comparator: Some(name.into()), ..Default::default() };
    let reverse = named("rocksdb.ReverseBytewiseComparator");
    let db = open(&env, &reverse, plain()).unwrap();
    for key in [b"a", b"b", b"c"] {
        db.put(key, b"").unwrap();
    }
    flush(&db);
    let mut iter = db.cursor().unwrap();
    iter.seek_to_first();
    assert_eq!(iter.key(), b"c");
    drop(iter);
    drop(db);
    let loaded = Db::load_latest_options_in("/db", &env).unwrap();
    assert_eq!(loaded.families[0].1.comparator, reverse.comparator);
    for options in [ColumnFamilyOptions::default(), named("leveldb.BytewiseComparator")] {
        let error = open(&env, &options, plain()).err().expect("another order").to_string();
        assert!(error.contains("rocksdb.ReverseBytewiseComparator"), "{error}");
        assert!(error.contains("leveldb.BytewiseComparator"), "{error}");
    }
    let error = open(&env, &named("its.own"), plain()).err().expect("no such order").to_string();
    assert!(error.contains("its.own"), "{error}");
    drop(open(&env, &reverse, plain()).unwrap());
}

#[test]
fn a_family_that_was_dropped_or_is_not_opened_may_have_any_order() {
    let env = Env::memory();
    let family = |name: &str, order: Option<&str>| {
        let options = ColumnFamilyOptions { comparator: order.map(Into::into), ..Default::default() };
        ColumnFamilyDescriptor { name: name.into(), options, parts: plain() }
    };
    let all = |other| vec![family("default", None), family("other", other)];
    let reverse = Some("rocksdb.ReverseBytewiseComparator");
    let db =
        Db::builder("/db").options(creating()).env(env.clone()).column_families(all(reverse)).open().unwrap();
    let other = db.column_family("other").unwrap();
    for key in [b"a", b"b"] {
        db.put_cf(&other, key, b"").unwrap();
        db.flush_cf(&other).unwrap();
    }
    db.compact_range_cf_with(&other, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    drop((other, db));
    let only = vec![family("default", None)];
    let unnamed = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_families(only.clone())
        .open()
        .err()
        .expect("not named");
    assert!(unnamed.to_string().contains("not opened: other"), "{unnamed}");
    drop(
        Db::builder("/db")
            .options(creating())
            .env(env.clone())
            .column_families(only.clone())
            .open_read_only()
            .unwrap(),
    );
    let db =
        Db::builder("/db").options(creating()).env(env.clone()).column_families(all(reverse)).open().unwrap();
    db.drop_column_family(&db.column_family("other").unwrap()).unwrap();
    drop(db);
    // The MANIFEST still says how the family was created.
    drop(Db::builder("/db").options(creating()).env(env).column_families(all(None)).open().unwrap());
}

#[test]
fn operands_wait_for_their_operator() {
    let env = Env::memory();
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(descriptor("default", &Default::default()))
        .open()
        .unwrap();
    db.merge_cf(db.default_column_family(), b"k", b"operand").unwrap();
    flush(&db);
    drop(db);
    let db = open(&env, &Default::default(), plain()).unwrap();
    for key in [b"a", b"z"] {
        db.put(key, b"").unwrap();
    }
    let error = db.get(b"k").unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: merge_operator is not properly initialized.");
    let mut iter = db.cursor().unwrap();
    for backwards in [false, true] {
        if backwards {
            iter.seek_to_last()
        } else {
            iter.seek_to_first()
        }
        assert!(iter.valid());
        if backwards {
            iter.prev()
        } else {
            iter.next()
        }
        assert!(!iter.valid());
        let error = iter.status().unwrap_err();
        assert_eq!(error.to_string(), "Invalid argument: merge_operator_ must be set.");
    }
    drop(iter);
    // Compactions keep what they cannot combine.
    db.compact_range_cf_with(
        db.default_column_family(),
        None,
        None,
        &BottommostLevelCompaction::Force.into(),
    )
    .unwrap();
    drop(db);
    let db = Db::builder("/db")
        .options(creating())
        .env(env.clone())
        .column_family(descriptor("default", &Default::default()))
        .open()
        .unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"operand"[..]));
}

/// Appends, and notes the longest row of operands it was given.
struct Noting(Arc<AtomicUsize>);

impl MergeOperator for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.0.fetch_max(operands.len(), Ordering::Relaxed);
        Some(existing.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().concat())
    }
}

#[test]
fn successive_merges_are_merged_when_written() {
    for (limit, strict, flushed, longest) in
        [(0, false, false, 9), (3, false, false, 3), (3, true, true, 3), (3, false, true, 9)]
    {
        let env = Env::memory();
        let noted = Arc::new(AtomicUsize::new(0));
        let options = ColumnFamilyOptions {
            max_successive_merges: limit,
            strict_max_successive_merges: strict,
            ..Default::default()
        };
        let parts = ColumnFamilyParts { merge_operator: Some(Arc::new(Noting(noted.clone()))), ..plain() };
        let db = open(&env, &options, parts).unwrap();
        let (write, cf) = (WriteOptions::default(), db.default_column_family().clone());
        db.put_with(b"k", b"base:", &write).unwrap();
        if flushed {
            flush(&db);
        }
        for i in 0..9u8 {
            db.merge_cf_with(&cf, b"k", [b'0' + i], &write).unwrap();
        }
        let value = db.get(b"k").unwrap().unwrap();
        assert_eq!(&value[..], b"base:012345678");
        let case = format!("limit {limit}, strict {strict}, flushed {flushed}");
        assert_eq!(noted.load(Ordering::Relaxed), longest, "{case}");
        flush(&db);
        assert_eq!(&db.get(b"k").unwrap().unwrap()[..], b"base:012345678", "{case}");
    }
}

#[test]
fn many_versions_of_a_key_are_passed_in_any_number_of_steps() {
    for max_skip in [0, 1, 8, u64::MAX] {
        let env = Env::memory();
        let options =
            ColumnFamilyOptions { max_sequential_skip_in_iterations: max_skip, ..Default::default() };
        let db = open(&env, &options, plain()).unwrap();
        let write = WriteOptions::default();
        let put = |key: &[u8], n: u32| db.put_with(key, n.to_be_bytes(), &write).unwrap();
        put(b"a", 0);
        let old = db.snapshot();
        for n in 1..40 {
            put(b"a", n);
            put(b"b", n);
            put(format!("new{n}").as_bytes(), n);
        }
        put(b"z", 1);
        let at = ReadOptions::at(&old);
        assert_eq!(contents(&db, db.default_column_family(), &at).len(), 1, "{max_skip}");
        let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
        assert_eq!((rows.len(), &rows[&b"a"[..]][..]), (42, &39u32.to_be_bytes()[..]), "{max_skip}");
    }
}

#[test]
fn what_a_flush_writes_can_be_in_the_cache_at_once() {
    let fill = |options: &ColumnFamilyOptions| {
        let cache = Cache::new(CacheOptions { capacity: 8 << 20, estimated_entry_charge: 0 });
        let parts = ColumnFamilyParts { block_cache: Some(cache.clone()), ..plain() };
        let db = open(&Env::memory(), options, parts).unwrap();
        for i in 0..200u32 {
            db.put(i.to_be_bytes(), [i as u8; 100]).unwrap();
        }
        let before = cache.inserts();
        flush(&db);
        let flushed = cache.inserts() - before;
        let cf = db.default_column_family().clone();
        assert!(
            contents(&db, &cf, &ReadOptions::default()).iter().all(|(key, value)| value[..] == [key[3]; 100])
        );
        let read = cache.inserts() - before - flushed;
        let before = cache.inserts();
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        (flushed, read, cache.inserts() - before)
    };
    let mut options = ColumnFamilyOptions::default();
    options.table.block_size = 1000;
    let (flushed, read, compacted) = fill(&options);
    assert!(flushed < 3 && read > 15 && compacted < 3, "{flushed} {read} {compacted}");
    options.table.prepopulate_block_cache = Prepopulate::FlushOnly;
    let (flushed, read, compacted) = fill(&options);
    assert!(flushed > 15 && read < 3 && compacted < 3, "{flushed} {read} {compacted}");
    options.table.prepopulate_block_cache = Prepopulate::FlushAndCompaction;
    let (flushed, _, compacted) = fill(&options);
    assert!(flushed > 15 && compacted > 15, "{flushed} {compacted}");
    options.table.prepopulate_block_cache = Prepopulate::Disable;
    options.enable_blob_files = true;
    options.prepopulate_blob_cache = Prepopulate::FlushOnly;
    let (flushed, read, _) = fill(&options);
    assert!(flushed >= 200 && read < 100, "{flushed} {read}");
}

#[test]
fn memory_for_a_growing_cache_is_made_ready_in_the_background() {
    const SLAB: usize = 64 << 10;
    let cache = Cache::new(CacheOptions { capacity: 64 * SLAB, estimated_entry_charge: 0 });
    let parts = ColumnFamilyParts { block_cache: Some(cache.clone()), ..plain() };
    let db = open(&Env::memory(), &ColumnFamilyOptions::default(), plain()).unwrap();
    let created = ColumnFamilyDescriptor { name: "created".into(), options: Default::default(), parts };
    let cf = db.create_column_family(&created).unwrap();
    let value = [7; 1000];
    for i in 0..2000u32 {
        db.put_cf(&cf, i.to_be_bytes(), value).unwrap();
    }
    db.flush_cf(&cf).unwrap();
    for i in 0..100u32 {
        assert!(db.get_cf(&cf, i.to_be_bytes()).unwrap().is_some());
    }
    // A request may be missed: the next growth asks again.
    let mut rows = (100..2000u32).cycle();
    until("memory beyond what is used", || {
        db.get_cf(&cf, rows.next().unwrap().to_be_bytes()).unwrap();
        cache.mapped_bytes() / SLAB >= cache.usage().div_ceil(SLAB) + 2
    });
}

#[test]
fn aligned_blocks_and_checked_files_read_the_same() {
    let mut options = ColumnFamilyOptions {
        compression: CompressionType::None,
        paranoid_file_checks: true,
        enable_blob_files: true,
        min_blob_size: 400,
        ..Default::default()
    };
    (options.table.block_align, options.table.block_size) = (true, 1 << 12);
    let env = Env::memory();
    let db = open(&env, &options, plain()).unwrap();
    for i in 0..300u32 {
        db.put(i.to_be_bytes(), vec![i as u8; (i * 2) as usize]).unwrap();
    }
    db.delete_range_cf(db.default_column_family(), [0, 0, 0, 9], [0, 0, 0, 19]).unwrap();
    flush(&db);
    let cf = db.default_column_family().clone();
    for round in 0..2 {
        let rows = contents(&db, &cf, &ReadOptions::default());
        assert_eq!(rows.len(), 290, "{round}");
        assert!(rows.iter().all(|(key, value)| value.iter().all(|byte| *byte == key[3])), "{round}");
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    }
    drop(cf);
    drop(db);
    options.table.block_size = 3000;
    assert!(open(&env, &options, plain()).err().expect("3000").to_string().contains("power of 2"));
    options.table.block_size = 4096;
    options.bottommost_compression = Some(CompressionType::Lz4);
    assert!(open(&env, &options, plain()).err().expect("LZ4").to_string().contains("block_align"));
}

#[test]
fn garbage_above_the_threshold_is_collected_without_being_asked() {
    let run = |threshold: f64| {
        let env = Env::memory();
        let options = ColumnFamilyOptions {
            enable_blob_files: true,
            enable_blob_garbage_collection: true,
            blob_garbage_collection_age_cutoff: 1.0,
            blob_garbage_collection_force_threshold: threshold,
            blob_compaction_readahead_size: 1000,
            ..Default::default()
        };
        let db = open(&env, &options, plain()).unwrap();
        let cf = db.default_column_family().clone();
        let fill = |step: usize, byte: u8| {
            for i in (0..100u32).step_by(step) {
                db.put(i.to_be_bytes(), [byte; 300]).unwrap();
            }
            flush(&db);
        };
        fill(1, 1);
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        fill(2, 2);
        // Half of the first file becomes garbage. Nothing is old enough to be moved by this compaction itself.
        db.set_options_cf(&cf, &[("enable_blob_garbage_collection", "false")]).unwrap();
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        let files = || env.fs.list("/db".as_ref()).unwrap().iter().filter(|n| n.ends_with(".blob")).count();
        // The file that the first compaction emptied is removed in the background.
        until("removing the emptied blob file", || files() == 2);
        db.set_options_cf(&cf, &[("enable_blob_garbage_collection", "true")]).unwrap();
        db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
        let rows = contents(&db, &cf, &ReadOptions::default());
        assert!(rows.iter().all(|(key, value)| value[..] == [if key[3] % 2 == 0 { 2 } else { 1 }; 300]));
        drop(cf);
        drop(db);
        drop(open(&env, &options, plain()).unwrap());
        files()
    };
    assert_eq!(run(1.0), 2, "never");
    assert_eq!(run(0.9), 2, "too little garbage");
    assert_eq!(run(0.2), 1, "what was left is in a new file");
}

/// Seeks that ask prefix filters find what seeks in total order find, wherever the walk goes.
#[test]
fn prefix_filters_change_no_answer() {
    let mut rng = Rng::new(seed("prefix_filters_change_no_answer", 3));
    for round in 0..12 {
        let reverse = round % 3 == 2;
        let mut options = ColumnFamilyOptions {
            prefix_extractor: Some(rng.pick(&[PrefixExtractor::Fixed(2), PrefixExtractor::Capped(2)])),
            comparator: reverse.then(|| "rocksdb.ReverseBytewiseComparator".into()),
            level0_file_num_compaction_trigger: rng.pick(&[3, 100]),
            target_file_size_base: 1000,
            memtable_prefix_bloom_size_ratio: rng.pick(&[0.0, 0.01]),
            max_sequential_skip_in_iterations: rng.pick(&[0, 8]),
            ..Default::default()
        };
        options.table.filter_policy = rng.pick(&[
            FilterPolicy::Bloom { bits_per_key: 20.0 },
            FilterPolicy::Ribbon { bits_per_key: 20.0, bloom_before_level: -1 },
            FilterPolicy::LegacyBloom { bits_per_key: 20.0 },
        ]);
        options.table.whole_key_filtering = rng.one_in(2);
        let db = open(&Env::memory(), &options, plain()).unwrap();
        let cf = db.default_column_family().clone();
        let key = |rng: &mut Rng| {
            let len = rng.below(4) as usize;
            (0..=len).map(|_| b'a' + rng.below(5) as u8).collect::<Vec<u8>>()
        };
        let write = WriteOptions::default();
        let mut snapshot = None;
        for step in 0..160 {
            let (a, b) = (key(&mut rng), key(&mut rng));
            match rng.below(12) {
                0 => db.delete_with(&a, &write).unwrap(),
                1 if (a < b) != reverse => db.delete_range_cf_with(&cf, &a, &b, &write).unwrap(),
                _ => db.put_with(&a, &b, &write).unwrap(),
            }
            if step % 16 == 15 {
                flush(&db);
            }
            if step == 100 {
                snapshot = Some(db.snapshot());
            }
        }
        for _ in 0..150 {
            let mut read = match &snapshot {
                Some(snapshot) if rng.one_in(3) => ReadOptions::at(snapshot),
                _ => ReadOptions::default(),
            };
            read.iterate_upper_bound = rng.one_in(3).then(|| key(&mut rng));
            read.iterate_lower_bound = rng.one_in(4).then(|| key(&mut rng));
            read.prefix_same_as_start = rng.one_in(4);
            let mut filtered = db.cursor_with(&read).unwrap();
            read.total_order_seek = true;
            let mut total = db.cursor_with(&read).unwrap();
            let target = key(&mut rng);
            let mut moves = format!("round {round}: {read:?}: seek {target:?}");
            filtered.seek(&target);
            total.seek(&target);
            for _ in 0..12 {
                assert_eq!(filtered.valid(), total.valid(), "{moves}");
                if !total.valid() {
                    break;
                }
                assert_eq!((filtered.key(), filtered.value()), (total.key(), total.value()), "{moves}");
                match rng.below(6) {
                    0 => {
                        moves += ", prev";
                        filtered.prev();
                        total.prev();
                    }
                    1 => {
                        let target = key(&mut rng);
                        moves += &format!(", seek_for_prev {target:?}");
                        filtered.seek_for_prev(&target);
                        total.seek_for_prev(&target);
                    }
                    _ => {
                        moves += ", next";
                        filtered.next();
                        total.next();
                    }
                }
            }
            filtered.status().unwrap();
        }
    }
}

#[test]
fn the_identity_is_where_the_options_say() {
    let identity = |env: &Env| env.fs.exists(std::path::Path::new("/db/IDENTITY")).unwrap();
    let in_manifest = |env: &Env, id: &str| {
        let path = std::path::Path::new("/db");
        let names = env.fs.list(path).unwrap();
        let manifest = names.iter().find(|name| name.starts_with("MANIFEST-")).unwrap();
        let bytes = env.fs.read_all(&path.join(manifest)).unwrap();
        bytes.windows(id.len()).any(|window| window == id.as_bytes())
    };
    let env = Env::memory();
    let open = |db: outcrop::options::DbOptions| {
        Db::builder("/db")
            .options(db)
            .env(env.clone())
            .column_family(descriptor("default", &ColumnFamilyOptions::default()))
            .open()
    };
    let db = open(outcrop::options::DbOptions { write_dbid_to_manifest: false, ..creating() }).unwrap();
    let id = db.identity().to_string();
    drop(db);
    assert!(identity(&env) && !in_manifest(&env, &id));
    let db = open(creating()).unwrap();
    assert_eq!(db.identity(), id);
    drop(db);
    assert!(identity(&env) && in_manifest(&env, &id));
    let db = open(outcrop::options::DbOptions { write_identity_file: false, ..creating() }).unwrap();
    assert_eq!(db.identity(), id);
    drop(db);
    assert!(!identity(&env) && in_manifest(&env, &id));
    let nowhere = outcrop::options::DbOptions {
        write_dbid_to_manifest: false,
        write_identity_file: false,
        ..creating()
    };
    assert_eq!(open(nowhere).err().expect("no place for it").kind(), ErrorKind::InvalidArgument);
}

/// The reasons of flushes, and how many range deletions each table of theirs has.
#[derive(Default)]
struct Flushes(Mutex<Vec<(FlushReason, u64)>>);

impl EventListener for Flushes {
    fn flush_completed(&self, _: &Arc<Db>, info: &FlushJobInfo) {
        self.0.lock().unwrap().push((info.reason, info.properties.num_range_deletions));
    }
}

#[test]
fn a_memtable_is_flushed_once_it_has_as_many_range_deletions_as_it_may() {
    let told = Arc::new(Flushes::default());
    let mut options =
        ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    options.kept.set(outcrop_options::kept::CF_KEPT, "memtable_max_range_deletions", "4").unwrap();
    let db = Db::builder("/db")
        .env(Env::memory())
        .create_if_missing(true)
        .column_family(ColumnFamilyDescriptor::default_with(options, plain()))
        .listener(told.clone())
        .open()
        .unwrap();
    // Apart from each other: ranges that overlap are more fragments in a table.
    let delete = |row: u32| db.delete_range((row * 9).to_be_bytes(), (row * 9 + 5).to_be_bytes()).unwrap();
    // Each memtable is sealed before the write that comes after. One flush at a time, as two memtables may be flushed together.
    let flushed = |count| until("a flush", || told.0.lock().unwrap().len() == count);
    (0..5).for_each(delete);
    flushed(1);
    (5..9).for_each(delete);
    flushed(2);
    db.set_options(&[("memtable_max_range_deletions", "2")]).unwrap();
    // The memtable that there is goes on as it was made.
    (9..13).for_each(delete);
    flushed(3);
    (13..15).for_each(delete);
    flushed(4);
    let deletions = told.0.lock().unwrap().clone();
    assert_eq!(deletions, [4, 4, 4, 2].map(|count| (FlushReason::MemtableMaxRangeDeletions, count)));
}

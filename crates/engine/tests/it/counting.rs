//! Figures that are easily counted wrongly: levels of hits, bytes of compactions, filters of prefixes, steps of
//! cursors.

use crate::harness::{creating, descriptor};
use outcrop::options::{
    BlockBasedTableOptions, ColumnFamilyOptions, CompressionType, DbOptions, FilterPolicy,
};
use outcrop::{
    ColumnFamilyDescriptor, Comparator, Db, Env, HistogramKind, MergeOperator, PerfContext, PerfLevel,
    PerfMetric, ReadOptions, Statistics, Ticker,
};
use outcrop_base::PrefixExtractor;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::sync::Arc;

/// Tables are compacted when a test says so; there is no cache.
fn plain() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        compression: CompressionType::None,
        disable_auto_compactions: true,
        table: BlockBasedTableOptions {
            no_block_cache: true,
            filter_policy: FilterPolicy::Bloom { bits_per_key: 20.0 },
            ..BlockBasedTableOptions::default()
        },
        ..ColumnFamilyOptions::default()
    }
}

fn open(options: &ColumnFamilyOptions) -> (Db, Arc<Statistics>) {
    let statistics = Arc::new(Statistics::new());
    let db = Db::builder("/db")
        .options(creating())
        .env(Env::memory())
        .column_family(descriptor("default", options))
        .statistics(statistics.clone())
        .open()
        .unwrap();
    (db, statistics)
}

fn key(row: usize) -> String {
    format!("{row:06}")
}

/// Writes `rows` to a table, or several, and has them compacted to `level`.
fn place(db: &Db, rows: impl Iterator<Item = usize>, level: usize) {
    let known = db.live_files();
    rows.for_each(|row| db.put(key(row), [7; 100]).unwrap());
    db.flush().unwrap();
    let all = db.live_files();
    let new: Vec<u64> = all
        .iter()
        .map(|file| file.number)
        .filter(|new| known.iter().all(|file| file.number != *new))
        .collect();
    if level > 0 {
        db.compact_files(&new, level).unwrap();
    }
}

/// Counts of `tickers` that `work` makes.
fn counted<const N: usize>(statistics: &Statistics, tickers: [Ticker; N], work: impl FnOnce()) -> [u64; N] {
    let before = tickers.map(|ticker| statistics.ticker(ticker));
    work();
    std::array::from_fn(|at| statistics.ticker(tickers[at]) - before[at])
}

#[test]
fn hits_are_counted_at_the_level_that_has_the_value() {
    // Several tables for each level below L0, and ranges that lie over each other.
    let options = ColumnFamilyOptions { target_file_size_base: 2000, ..plain() };
    let (db, statistics) = open(&options);
    place(&db, (0..300).filter(|row| row % 5 == 0), 3);
    place(&db, (0..300).filter(|row| row % 5 == 1), 2);
    place(&db, (0..300).filter(|row| row % 5 == 2), 1);
    place(&db, (0..300).filter(|row| row % 5 == 3), 0);
    place(&db, (0..300).filter(|row| row % 5 == 4), 0);
    for level in 1..4 {
        let files = db.property(&format!("rocksdb.num-files-at-level{level}")).unwrap();
        assert!(files.parse::<u32>().unwrap() > 2, "{files} tables at level {level}");
    }
    let hits = [Ticker::GetHitL0, Ticker::GetHitL1, Ticker::GetHitL2AndUp];
    for (class, expected) in
        [(0, [0, 0, 60]), (1, [0, 0, 60]), (2, [0, 60, 0]), (3, [60, 0, 0]), (4, [60, 0, 0])]
    {
        let keys: Vec<String> = (0..300).filter(|row| row % 5 == class).map(key).collect();
        let one_by_one = counted(&statistics, hits, || {
            keys.iter().for_each(|key| assert!(db.get(key).unwrap().is_some()));
        });
        assert_eq!(one_by_one, expected, "gets of class {class}");
        let together = counted(&statistics, hits, || {
            db.multi_get(&keys).into_iter().for_each(|found| assert!(found.unwrap().is_some()));
        });
        assert_eq!(together, expected, "many gets of class {class}");
    }
    assert_eq!(counted(&statistics, hits, || assert!(db.get("none").unwrap().is_none())), [0; 3]);
}

#[test]
fn a_compaction_counts_all_it_reads() {
    // Each table is one block: an input's first read is its only one.
    let (db, statistics) = open(&plain());
    for table in 0..4 {
        place(&db, (0..20).map(|row| row * 4 + table), 0);
    }
    let bytes: u64 = db.live_files().iter().map(|file| file.size).sum();
    let [read] = counted(&statistics, [Ticker::CompactReadBytes], || db.compact_range(None, None).unwrap());
    assert!(read >= 4 * 20 * 100, "the rows alone are more than {read}");
    assert!(read <= bytes, "{read} of {bytes}");
}

#[test]
fn a_flush_counts_what_memtables_had_and_what_newer_entries_hide() {
    let (db, statistics) = open(&plain());
    let tickers = [Ticker::MemtablePayloadBytesAtFlush, Ticker::MemtableGarbageBytesAtFlush];
    // A key has 6 bytes, and 8 more for number and type.
    let flushed = counted(&statistics, tickers, || {
        (0..3).for_each(|_| db.put(key(1), [7; 100]).unwrap());
        db.put(key(2), [7; 50]).unwrap();
        db.delete(key(2)).unwrap();
        db.delete_range(key(5), key(7)).unwrap();
        db.flush().unwrap();
    });
    assert_eq!(flushed, [3 * 114 + 64 + 14 + 20, 2 * 114 + 64]);
    let snapshot = db.snapshot();
    let kept = counted(&statistics, tickers, || {
        db.put(key(1), [7; 10]).unwrap();
        let snapshot = db.snapshot();
        db.put(key(1), [7; 10]).unwrap();
        db.flush().unwrap();
        drop(snapshot);
    });
    assert_eq!(kept, [2 * 24, 0]);
    drop(snapshot);
}

/// Merges nothing.
struct Refusing;

impl MergeOperator for Refusing {
    fn name(&self) -> &str {
        "test.Refusing"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn merges_that_fail_are_counted_of_reads_and_of_jobs() {
    let statistics = Arc::new(Statistics::new());
    let family = descriptor("default", &plain()).with_merge_operator(Arc::new(Refusing));
    let builder = Db::builder("/db").options(creating()).env(Env::memory()).column_family(family);
    let db = builder.statistics(statistics.clone()).open().unwrap();
    db.put(key(1), "base").unwrap();
    db.merge(key(1), "operand").unwrap();
    let failures = |work: &dyn Fn()| counted(&statistics, [Ticker::NumberMergeFailures], work);
    assert_eq!(failures(&|| drop(db.get(key(1)).unwrap_err())), [1]);
    assert_eq!(failures(&|| drop(db.flush().unwrap_err())), [1]);
}

#[test]
fn reads_of_tables_are_measured_by_what_they_are_for() {
    const KINDS: [HistogramKind; 6] = [
        HistogramKind::FileReadGetMicros,
        HistogramKind::FileReadMultigetMicros,
        HistogramKind::FileReadDbIteratorMicros,
        HistogramKind::FileReadFlushMicros,
        HistogramKind::FileReadCompactionMicros,
        HistogramKind::FileReadDbOpenMicros,
    ];
    let statistics = Arc::new(Statistics::new());
    let env = Env::memory();
    let open = || {
        let builder = Db::builder("/db").options(creating()).env(env.clone());
        let family = descriptor("default", &plain());
        builder.column_family(family).statistics(statistics.clone()).open().unwrap()
    };
    let of = |kind| statistics.histogram(kind).count();
    // Which kinds `work` adds to.
    let reads = |work: &dyn Fn()| {
        let before = (KINDS.map(of), of(HistogramKind::SstReadMicros));
        work();
        let more: [u64; 6] = std::array::from_fn(|at| of(KINDS[at]) - before.0[at]);
        assert_eq!(of(HistogramKind::SstReadMicros) - before.1 + more[1], more.iter().sum::<u64>());
        more.map(|reads| reads > 0)
    };
    let db = open();
    assert_eq!(reads(&|| place(&db, 0..400, 0)), [false, false, false, true, false, false]);
    assert_eq!(reads(&|| drop(db.get(key(7)).unwrap())), [true, false, false, false, false, false]);
    assert_eq!(reads(&|| drop(db.multi_get(&[key(1), key(399)]))), [false, true, false, false, false, false]);
    let scan = || {
        let mut cursor = db.cursor().unwrap();
        cursor.seek_to_first();
        while cursor.valid() {
            cursor.next();
        }
    };
    assert_eq!(reads(&scan), [false, false, true, false, false, false]);
    assert!(reads(&|| place(&db, 0..400, 1))[4]);
    drop(db);
    assert_eq!(reads(&|| drop(open())), [false, false, false, false, false, true]);
}

#[test]
fn filters_of_prefixes_count_lookups_and_not_seeks() {
    let table = BlockBasedTableOptions { whole_key_filtering: false, ..plain().table };
    let options = ColumnFamilyOptions { prefix_extractor: Some(PrefixExtractor::Fixed(4)), table, ..plain() };
    let (db, statistics) = open(&options);
    // Prefixes 0000, 0002 and so on to 0018.
    place(&db, (0..2000).filter(|row| row / 100 % 2 == 0).step_by(10), 0);
    let tickers = [
        Ticker::BloomFilterPrefixChecked,
        Ticker::BloomFilterPrefixUseful,
        Ticker::BloomFilterPrefixTruePositive,
        Ticker::BloomFilterFullPositive,
        Ticker::BloomFilterUseful,
    ];
    let get = |key: &str| counted(&statistics, tickers, || drop(db.get(key).unwrap()));
    assert_eq!(get("000210"), [1, 0, 1, 0, 0], "there");
    assert_eq!(get("000211"), [1, 0, 0, 0, 0], "its prefix is there");
    assert_eq!(get("000310"), [1, 1, 0, 0, 0], "its prefix is not");
    assert_eq!(get("001"), [0; 5], "it has no prefix: no filter is asked");
    let together = counted(&statistics, tickers, || drop(db.multi_get(&["000210", "000211", "000310"])));
    assert_eq!(together, [3, 1, 1, 0, 0]);
    let seeks = counted(&statistics, tickers, || {
        let mut cursor = db.cursor_with(&ReadOptions::default()).unwrap();
        for target in ["000210", "000310"] {
            cursor.seek(target.as_bytes());
        }
    });
    assert_eq!(seeks, [0; 5], "RocksDB counts those by level");
}

/// The times of a write's parts and the time of the rest are no more than the write took: none has another's in it.
#[test]
fn times_of_a_write_are_counted_once() {
    let (db, _) = open(&plain());
    PerfContext::set_level(PerfLevel::TIMES_EXCEPT_MUTEX);
    PerfContext::reset();
    let clock = Env::posix().clock;
    let began = clock.monotonic_nanos();
    let value = vec![7; 1 << 20];
    for row in 0..20 {
        db.put(key(row), &value).unwrap();
    }
    let took = clock.monotonic_nanos() - began;
    PerfContext::set_level(PerfLevel::OFF);
    let times = [
        PerfMetric::WriteWalTime,
        PerfMetric::WriteMemtableTime,
        PerfMetric::WriteDelayTime,
        PerfMetric::WritePreAndPostProcessTime,
    ];
    let times = times.map(PerfContext::get);
    assert!(times[0] > 0 && times[1] > 0 && times[3] > 0, "{times:?}");
    assert!(times.iter().sum::<u64>() <= took, "{times:?} of {took}");
}

#[test]
fn versions_that_are_read_are_counted_as_values_are() {
    let statistics = Arc::new(Statistics::new());
    let stamped =
        ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
    let db = builder.statistics(statistics.clone()).column_family(stamped).open().unwrap();
    db.put_at("k", 5.into(), "value").unwrap();
    let options = ReadOptions::at_timestamp(9.into());
    let one = [Ticker::NumberKeysRead, Ticker::BytesRead, Ticker::MemtableHit];
    for key in ["k", "none"] {
        let value = counted(&statistics, one, || drop(db.get_with(key, &options).unwrap()));
        let version = counted(&statistics, one, || drop(db.get_version_with(key, &options).unwrap()));
        assert_eq!(value[0], 1);
        assert_eq!(version, value, "{key}");
    }
    let cf = db.default_column_family();
    let many =
        [Ticker::NumberMultigetCalls, Ticker::NumberMultigetKeysFound, Ticker::NumberMultigetBytesRead];
    let versions = counted(&statistics, many, || {
        db.multi_get_versions_cf_with(cf, &[b"k", b"none"], &options);
    });
    assert_eq!(versions, [1, 1, 5]);
}

#[test]
fn blocks_are_counted_by_how_they_are_stored() {
    let kinds = [
        Ticker::NumberBlockCompressed,
        Ticker::NumberBlockCompressionRejected,
        Ticker::NumberBlockCompressionBypassed,
    ];
    let bytes = [Ticker::BytesCompressedFrom, Ticker::BytesCompressedTo];
    for codec in [CompressionType::None, CompressionType::Snappy] {
        let (db, statistics) = open(&ColumnFamilyOptions { compression: codec, ..plain() });
        let [compressed, _, bypassed] = counted(&statistics, kinds, || place(&db, 0..500, 0));
        // Of 4 KiB, from rows of more than 100 bytes.
        let blocks = 12;
        let [from, to] = bytes.map(|ticker| statistics.ticker(ticker));
        match codec {
            CompressionType::None => {
                assert!(compressed == 0 && to == 0 && bypassed >= blocks, "{bypassed} of {blocks}")
            }
            _ => assert!(compressed >= blocks && bypassed == 0 && from > 2 * to, "{from} to {to}"),
        }
        // Random bytes do not get smaller.
        let mut random = crate::harness::Rng::new(7);
        let mut noise = || -> Vec<u8> { (0..4000).map(|_| random.below(256) as u8).collect() };
        let [_, rejected, _] = counted(&statistics, kinds, || {
            (0..20).for_each(|row| db.put(key(row), noise()).unwrap());
            db.flush().unwrap();
        });
        assert_eq!(rejected >= 20, codec != CompressionType::None, "{rejected}");
    }
}

#[test]
fn reasons_files_and_calls_are_counted() {
    let options = ColumnFamilyOptions { write_buffer_size: crate::harness::LEAST_MEMTABLE, ..plain() };
    let (db, statistics) = open(&options);
    let one = |ticker, work: &dyn Fn()| counted(&statistics, [ticker], work)[0];
    let flushes = one(Ticker::FlushReasonWriteBufferFull, &|| db.flush().unwrap());
    assert_eq!(flushes, 0);
    let flushes = one(Ticker::FlushReasonWriteBufferFull, &|| {
        (0..200).for_each(|row| db.put(key(row), [7; 4000]).unwrap());
        db.flush().unwrap();
    });
    assert!(flushes > 0);
    assert_eq!(one(Ticker::GetUpdatesSinceCalls, &|| drop(db.updates_since(outcrop::SeqNum(1)))), 1);
    let bytes: u64 = db.live_files().iter().map(|file| file.size).sum();
    assert_eq!(one(Ticker::VerifyChecksumReadBytes, &|| db.verify_checksums().unwrap()), bytes);
    let tables = db.live_files().len() as u64;
    assert!(tables > 1);
    let removed = one(Ticker::FilesDeletedImmediately, &|| {
        db.compact_range(None, None).unwrap();
        // Its inputs go when nobody reads them any more.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while statistics.ticker(Ticker::FilesDeletedImmediately) < tables
            && std::time::Instant::now() < deadline
        {
            std::thread::yield_now();
        }
    });
    assert_eq!(removed, tables);
    assert_eq!(statistics.ticker(Ticker::FilesMarkedTrash), 0);
}

#[test]
fn errors_and_attempts_to_resume_are_counted() {
    let fs = FaultyFs::new(MemoryFs::new());
    let statistics = Arc::new(Statistics::new());
    let options = DbOptions { bgerror_resume_retry_interval: 1000, ..creating() };
    let db = Db::builder("/db")
        .options(options)
        .env(Env::with_file_system(Arc::new(fs.clone())))
        .statistics(statistics.clone())
        .open()
        .unwrap();
    db.put("a", "1").unwrap();
    fs.faults().fail_at(fs.faults().changes(), EIO, true);
    db.flush().unwrap_err();
    fs.faults().heal();
    let of = |ticker| statistics.ticker(ticker);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while of(Ticker::ErrorHandlerAutoresumeSuccessCount) == 0 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(of(Ticker::ErrorHandlerAutoresumeSuccessCount), 1);
    assert_eq!(of(Ticker::ErrorHandlerAutoresumeCount), 1);
    assert!(of(Ticker::ErrorHandlerAutoresumeRetryTotalCount) >= 1);
    let errors = [
        Ticker::ErrorHandlerBgErrorCount,
        Ticker::ErrorHandlerBgIoErrorCount,
        Ticker::ErrorHandlerBgRetryableIoErrorCount,
    ];
    let [all, of_io, retryable] = errors.map(of);
    assert!(all >= 1 && of_io == all && retryable == all, "{all} {of_io} {retryable}");
    db.put("b", "2").unwrap();
}

//! Tables written and read back, tables of RocksDB's, and tables with every byte broken.

use crate::{
    FillCache, RangeTombstone, TableIterOptions, TableReader, TableReaderOptions, TableWriter,
    TableWriterOptions,
};
use outcrop_base::checksum::ChecksumType;
use outcrop_base::keys::{internal_key, pack, split};
use outcrop_base::{Comparator, ErrorKind, LookupKey, Result, SeqNum, ValueType};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_env::random::{Random, SeededRandom};
use outcrop_env::{FileSystem, OpenRead, OpenWrite, memory::MemoryFs};
use outcrop_options::{BlockBasedTableOptions, CompressionOptions, CompressionType, FilterPolicy};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn writer_options(table: BlockBasedTableOptions, compression: CompressionType) -> TableWriterOptions {
    TableWriterOptions {
        comparator: Comparator::Bytewise,
        table,
        compression,
        compression_opts: CompressionOptions::default(),
        column_family_id: 0,
        column_family_name: "default".into(),
        merge_operator_name: None,
        db_id: "77f5e21b-adfc-4e28-b5d1-7c2b1a2dbe15".into(),
        session_id: "2OL5WRMQG6CMILA3LYAF".into(),
        file_number: 9,
        creation_time: 1,
        oldest_key_time: 0,
        newest_key_time: 0,
        file_creation_time: 1,
        omit_filter: false,
    }
}

fn put_file(bytes: &[u8]) -> (MemoryFs, PathBuf) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/t")).unwrap();
    let path = PathBuf::from("/t/000009.sst");
    let mut file = fs.create(&path, OpenWrite::default()).unwrap();
    file.append(bytes).unwrap();
    file.close().unwrap();
    (fs, path)
}

fn write_table(rows: &Rows, options: TableWriterOptions) -> Vec<u8> {
    let (fs, path) = put_file(b"");
    let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options);
    for (key, value) in rows {
        writer.add(key, value).unwrap();
    }
    let summary = writer.finish().unwrap();
    writer.sync_and_close(false).unwrap();
    let bytes = fs.read_all(&path).unwrap();
    assert_eq!(summary.file_size, bytes.len() as u64);
    assert_eq!((&summary.smallest, &summary.largest), (&rows[0].0, &rows[rows.len() - 1].0));
    bytes
}

fn open(bytes: &[u8], comparator: Comparator, cache: Option<Arc<Cache>>) -> Result<Arc<TableReader>> {
    let (fs, path) = put_file(bytes);
    let options = TableReaderOptions {
        comparator,
        cache_index_and_filter_blocks: cache.is_some(),
        cache_file_id: cache.as_ref().map_or(0, |cache: &Arc<Cache>| cache.new_file_id()),
        cache,
        hold_in_cache: false,
        expected_unique_id: None,
        largest_seqno: SeqNum::ZERO,
    };
    TableReader::open(fs.open_read(&path, OpenRead::default())?, options).map(Arc::new)
}

fn scan(table: &Arc<TableReader>, options: TableIterOptions) -> Result<Rows> {
    let mut iter = table.iter(options);
    let mut rows = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().map(|()| rows)
}

fn scan_backward(table: &Arc<TableReader>) -> Result<Rows> {
    let mut iter = table.iter(TableIterOptions::default());
    let mut rows = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev();
    }
    rows.reverse();
    iter.status().map(|()| rows)
}

/// Random rows of which some share user keys, sorted.
fn random_rows(comparator: &Comparator, seed: u64, count: usize) -> Rows {
    let random = SeededRandom::new(seed);
    let prefix = ["", "user:", "a-rather-long-common-prefix:"][(random.next_u64() % 3) as usize];
    let value_len = [0, 10, 100, 600][(random.next_u64() % 4) as usize];
    let mut rows: Rows = Vec::new();
    for seq in 1..=count as u64 {
        let number = random.next_u64() % (count as u64 / 2 + 1);
        let tail = "x".repeat((random.next_u64() % 12) as usize);
        let user_key = match random.next_u64() % 8 {
            0 => format!("{prefix}{number}{tail}"),
            1 => format!("{prefix}{number:08}"),
            _ => format!("{prefix}{number:08}{tail}"),
        };
        let value = vec![seq as u8; (random.next_u64() % (value_len * 2 + 1)) as usize];
        rows.push((internal_key(user_key.as_bytes(), SeqNum(seq), ValueType::Value), value));
    }
    rows.sort_by(|a, b| comparator.compare_internal(&a.0, &b.0));
    rows
}

/// What a lookup of `user_key` at `snapshot` must visit first.
fn expected_get<'r>(rows: &'r Rows, user_key: &[u8], snapshot: u64) -> Option<&'r [u8]> {
    rows.iter()
        .find(|(key, _)| split(key).0 == user_key && split(key).1 >> 8 <= snapshot)
        .map(|(_, value)| value.as_slice())
}

fn check_table(rows: &Rows, bytes: &[u8], comparator: &Comparator, cache: Option<Arc<Cache>>, seed: u64) {
    let table = open(bytes, comparator.clone(), cache).unwrap();
    assert_eq!(table.properties().num_entries, rows.len() as u64);
    assert_eq!(&scan(&table, TableIterOptions::default()).unwrap(), rows, "seed {seed}");
    let compaction = TableIterOptions { fill_cache: FillCache::No, readahead_bytes: 10_000 };
    assert_eq!(&scan(&table, compaction).unwrap(), rows, "seed {seed}");
    assert_eq!(&scan_backward(&table).unwrap(), rows, "seed {seed}");

    let random = SeededRandom::new(seed);
    let mut iter = table.iter(TableIterOptions::default());
    for _ in 0..200 {
        let (ikey, _) = &rows[(random.next_u64() % rows.len() as u64) as usize];
        let (mut user_key, mut packed) = (split(ikey).0.to_vec(), split(ikey).1);
        match random.next_u64() % 5 {
            0 => user_key.push(b'0'),
            1 => {
                user_key.pop();
            }
            2 => packed = pack(SeqNum(random.next_u64() % 100), ValueType::FOR_SEEK),
            _ => {}
        }
        let place = rows
            .partition_point(|(key, _)| comparator.compare_parts(split(key), (&user_key, packed)).is_lt());
        iter.seek(&user_key, packed);
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), rows.get(place).map(|(key, _)| key), "seek {user_key:?}, seed {seed}");
        let before = rows
            .partition_point(|(key, _)| comparator.compare_parts(split(key), (&user_key, packed)).is_le());
        iter.seek_for_prev(&user_key, packed);
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), before.checked_sub(1).map(|i| &rows[i].0), "seed {seed}");

        let snapshot = packed >> 8;
        let mut got = None;
        let lookup = LookupKey::new(&user_key);
        if table.may_contain(lookup.hash) {
            table
                .get(&lookup, SeqNum(snapshot), FillCache::Yes, |seq, _, value, block| {
                    assert!(seq.0 <= snapshot);
                    let range = block.as_ptr_range();
                    assert!(value.is_empty() || range.contains(&value.as_ptr()));
                    got = Some(value.to_vec());
                    ControlFlow::Break(())
                })
                .unwrap();
        }
        let expected = expected_get(rows, &user_key, snapshot);
        assert_eq!(got.as_deref(), expected, "get {user_key:?} at {snapshot}, seed {seed}");
    }
}

#[test]
fn tables_of_all_shapes_round_trip() {
    use CompressionType::{BZip2, Lz4, Lz4hc, None as Plain, Snappy, Zlib, Zstd};
    let codecs = [Plain, Snappy, Zlib, BZip2, Lz4, Lz4hc, Zstd, Plain];
    let checksums = [ChecksumType::Xxh3, ChecksumType::Crc32c, ChecksumType::XxHash64, ChecksumType::None];
    for seed in 0..48u64 {
        let random = SeededRandom::new(seed ^ 0xABCD);
        let pick = |n: usize| (random.next_u64() % n as u64) as usize;
        let comparator =
            [Comparator::Bytewise, Comparator::Bytewise, Comparator::ReverseBytewise][pick(3)].clone();
        let rows = random_rows(&comparator, seed, 1 + pick(2000));
        let table = BlockBasedTableOptions {
            block_size: [128, 1024, 4096, 8192][pick(4)],
            block_restart_interval: [1, 2, 16][pick(3)],
            index_block_restart_interval: [1, 1, 8][pick(3)],
            format_version: [2, 3, 4, 5, 5][pick(5)],
            checksum: checksums[pick(4)],
            filter_policy: [FilterPolicy::None, FilterPolicy::Bloom { bits_per_key: 10.0 }][pick(2)],
            ..BlockBasedTableOptions::default()
        };
        let mut options = writer_options(table, codecs[pick(8)]);
        options.comparator = comparator.clone();
        let bytes = write_table(&rows, options);
        let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        check_table(&rows, &bytes, &comparator, [None, Some(cache)][pick(2)].clone(), seed);
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows that most fixtures hold.
fn standard_rows(zero_seq: bool) -> Rows {
    (0..300u64)
        .map(|i| {
            let seq = if zero_seq { 0 } else { i + 1 };
            let key = internal_key(format!("key{i:06}").as_bytes(), SeqNum(seq), ValueType::Value);
            (key, format!("value-{i}").into_bytes())
        })
        .collect()
}

#[test]
fn tables_written_by_rocksdb_are_read_completely() {
    for name in [
        "11.8.1-fv2-bloom10",
        "11.8.1-fv4-bloom10",
        "11.8.1-fv5-bloom10",
        "11.8.1-fv6-bloom10",
        "11.8.1-fv7-bloom10",
        "11.8.1-fv7-lz4",
        "11.8.1-fv5-snappy-xxhash64",
        "11.8.1-fv6-zlib-xxhash",
        "11.8.1-ribbon10",
        "11.8.1-partitioned",
        "11.8.1-first-key-index",
        "11.8.1-data-hash-index",
        "11.8.1-hash-search-index",
    ] {
        let bytes = fixture(&format!("{name}/000009.sst"));
        let table =
            open(&bytes, Comparator::Bytewise, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), standard_rows(false), "{name}");
        check_table(&standard_rows(false), &bytes, &Comparator::Bytewise, None, 1);
    }
}

#[test]
fn basic_tables_of_three_versions_hold_the_same_rows() {
    for version in ["6.29.5", "10.4.2", "11.8.1"] {
        let table =
            open(&fixture(&format!("{version}-basic/000009.sst")), Comparator::Bytewise, None).unwrap();
        let rows = scan(&table, TableIterOptions::default()).unwrap();
        let summary: Vec<(&[u8], u64, u8)> =
            rows.iter().map(|(key, _)| (split(key).0, split(key).1 >> 8, split(key).1 as u8)).collect();
        let expected: [(&[u8], u64, u8); 4] =
            [(b"apple", 1, 1), (b"banana", 4, 0), (b"cherry", 3, 1), (b"count", 5, 2)];
        assert_eq!(summary, expected, "{version}");
        assert_eq!(table.properties().merge_operands, 1);
        assert!(table.may_contain(outcrop_base::xxph3::xxph3_64(b"cherry")));
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (name, feature) in [
        ("11.8.1-fv7-zstd-dict-compacted/000010.sst", "dictionary"),
        ("11.8.1-separated-kv/000009.sst", "separate_key_value"),
    ] {
        let outcome = open(&fixture(name), Comparator::Bytewise, None)
            .and_then(|table| scan(&table, TableIterOptions::default()));
        let error = outcome.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{name}: {error}");
        assert!(error.to_string().contains(feature), "{name}: {error}");
        assert!(error.to_string().contains("000009.sst"), "{name}: {error}");
    }
}

fn tombstone(begin: &str, end: &str, seq: u64) -> RangeTombstone {
    RangeTombstone { begin: begin.into(), end: end.into(), seq: SeqNum(seq) }
}

#[test]
fn range_tombstones_of_rocksdb_are_read() {
    let table = open(&fixture("11.8.1-range-del/000009.sst"), Comparator::Bytewise, None).unwrap();
    let expected = [tombstone("b", "c", 6), tombstone("c", "d", 8), tombstone("d", "z", 8)];
    assert_eq!(table.range_tombstones(), expected);
    assert_eq!(table.properties().num_range_deletions, 3);
    let points = scan(&table, TableIterOptions::default()).unwrap().len() as u64;
    assert_eq!(table.properties().num_entries, points + 3);
}

#[test]
fn range_tombstones_round_trip_and_bound_the_table() {
    let rows: Rows = (5..9u64)
        .map(|i| (internal_key(format!("k{i}").as_bytes(), SeqNum(i), ValueType::Value), b"v".to_vec()))
        .collect();
    for (rows, smallest, largest) in [
        (rows, internal_key(b"k0", SeqNum(20), ValueType::RangeDeletion), b"k9"),
        (Rows::new(), internal_key(b"k0", SeqNum(20), ValueType::RangeDeletion), b"k9"),
    ] {
        let (fs, path) = put_file(b"");
        let options = writer_options(BlockBasedTableOptions::default(), CompressionType::Lz4);
        let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options);
        writer.add_range_tombstone(b"k4", SeqNum(3), b"k9");
        for (key, value) in &rows {
            writer.add(key, value).unwrap();
        }
        writer.add_range_tombstone(b"k0", SeqNum(20), b"k4");
        let summary = writer.finish().unwrap();
        writer.sync_and_close(false).unwrap();
        assert_eq!(summary.smallest, smallest);
        assert_eq!(summary.largest, internal_key(largest, SeqNum::MAX, ValueType::RangeDeletion));
        assert_eq!((summary.smallest_seq, summary.largest_seq), (SeqNum(3), SeqNum(20)));
        let properties = &summary.properties;
        assert_eq!(properties.num_entries, rows.len() as u64 + 2);
        assert_eq!((properties.num_range_deletions, properties.num_deletions), (2, 2));
        let table = open(&fs.read_all(&path).unwrap(), Comparator::Bytewise, None).unwrap();
        assert_eq!(table.range_tombstones(), [tombstone("k0", "k4", 20), tombstone("k4", "k9", 3)]);
        assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), rows);
        assert_eq!(scan_backward(&table).unwrap(), rows);
        let lookup = LookupKey::new(b"k1");
        table.get(&lookup, SeqNum::MAX, FillCache::Yes, |_, _, _, _| panic!("no such key")).unwrap();
    }
}

#[test]
fn a_file_of_another_identity_is_refused() {
    let (fs, path) = put_file(&fixture("11.8.1-basic/000009.sst"));
    let open = |expected| {
        let options = TableReaderOptions {
            comparator: Comparator::Bytewise,
            cache: None,
            cache_index_and_filter_blocks: false,
            cache_file_id: 0,
            hold_in_cache: false,
            expected_unique_id: Some(expected),
            largest_seqno: SeqNum(5),
        };
        TableReader::open(fs.open_read(&path, OpenRead::default()).unwrap(), options)
    };
    let id = [0x9d8c_519b_ac59_bbd7, 0xcb04_3733_db77_1ba7];
    assert!(open(id).is_ok());
    assert_eq!(open([id[0], id[1] ^ 1]).err().unwrap().kind(), ErrorKind::Corruption);
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let rows = random_rows(&Comparator::Bytewise, 5, 60);
    let table = BlockBasedTableOptions {
        block_size: 512,
        filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
        ..BlockBasedTableOptions::default()
    };
    for codec in [CompressionType::None, CompressionType::Lz4] {
        let bytes = write_table(&rows, writer_options(table.clone(), codec));
        let mut noticed = 0;
        for offset in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[offset] ^= 1 << (offset % 8);
            let outcome = open(&broken, Comparator::Bytewise, None)
                .and_then(|table| scan(&table, TableIterOptions::default()));
            match outcome {
                Ok(read) => assert_eq!(read, rows, "byte {offset}"),
                Err(error) => {
                    let named = error.to_string().contains("000009.sst");
                    assert!(named, "byte {offset}: {error}");
                    noticed += 1;
                }
            }
        }
        assert!(noticed > bytes.len() * 95 / 100, "{noticed} of {}", bytes.len());
    }
}

#[test]
fn every_truncation_is_noticed() {
    let rows = random_rows(&Comparator::Bytewise, 6, 30);
    let bytes = write_table(&rows, writer_options(BlockBasedTableOptions::default(), CompressionType::None));
    for len in 0..bytes.len() {
        let outcome = open(&bytes[..len], Comparator::Bytewise, None);
        let error = outcome.err().unwrap_or_else(|| panic!("cut at {len}"));
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported), "{error}");
    }
}

#[test]
fn forged_blocks_with_valid_checksums_never_panic() {
    let rows = random_rows(&Comparator::Bytewise, 9, 80);
    let table = BlockBasedTableOptions {
        block_size: 1024,
        checksum: ChecksumType::None,
        ..BlockBasedTableOptions::default()
    };
    let bytes = write_table(&rows, writer_options(table, CompressionType::None));
    let random = SeededRandom::new(3);
    for round in 0..4000 {
        let mut broken = bytes.clone();
        for _ in 0..1 + round % 3 {
            let offset = (random.next_u64() % bytes.len() as u64) as usize;
            broken[offset] = random.next_u64() as u8;
        }
        let Ok(table) = open(&broken, Comparator::Bytewise, None) else { continue };
        let _ = scan(&table, TableIterOptions::default());
        let _ = scan_backward(&table);
        let _ = scan(&table, TableIterOptions { fill_cache: FillCache::No, readahead_bytes: 4096 });
        for (key, _) in rows.iter().step_by(7) {
            let lookup = LookupKey::new(split(key).0);
            let _ = table.get(&lookup, SeqNum::MAX, FillCache::Yes, |_, _, _, _| ControlFlow::Break(()));
        }
    }
}

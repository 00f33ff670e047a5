//! Tables written and read back, tables of RocksDB's, and tables with every byte broken.

use crate::{
    AutoReadahead, Loading, RangeTombstone, TableIter, TableIterOptions, TableReader, TableReaderOptions,
    TableWriter, TableWriterOptions, check_options,
};
use outcrop_base::checksum::ChecksumType;
use outcrop_base::keys::{Trailer, internal_key, split};
use outcrop_base::{Comparator, ErrorKind, LookupKey, PrefixExtractor, Result, SeqNum, ValueType};
use outcrop_cache::{Cache, CacheOptions};
use outcrop_env::random::{Random, SeededRandom};
use outcrop_env::{FileSystem, OpenRead, OpenWrite, memory::MemoryFs};
use outcrop_options::{BlockBasedTableOptions, CompressionOptions, CompressionType, FilterPolicy};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

pub mod damage;
mod fixtures;
mod readahead;
mod shapes;

pub type Rows = Vec<(Vec<u8>, Vec<u8>)>;

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
        host_id: String::new(),
        file_number: 9,
        creation_time: 1,
        oldest_key_time: 0,
        newest_key_time: 0,
        file_creation_time: 1,
        omit_filter: false,
        prefix_extractor: None,
        level: None,
        external: false,
    }
}

pub fn put_file(bytes: &[u8]) -> (MemoryFs, PathBuf) {
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

fn reader_options(
    comparator: Comparator,
    cache: Option<Arc<Cache>>,
    prefix_extractor: Option<PrefixExtractor>,
) -> TableReaderOptions {
    TableReaderOptions {
        comparator,
        cache_index_and_filter_blocks: cache.is_some(),
        cache_file_id: Cache::new_file_id(),
        cache,
        hold_in_cache: false,
        expected_unique_id: None,
        largest_seqno: SeqNum::ZERO,
        prefix_extractor,
        auto_readahead: AutoReadahead::default(),
        monitor: outcrop_monitor::Monitor::none(),
        placement: Default::default(),
        pace: None,
        read_amp_bytes_per_bit: 0,
    }
}

pub fn open(bytes: &[u8], comparator: Comparator, cache: Option<Arc<Cache>>) -> Result<Arc<TableReader>> {
    open_with(bytes, comparator, cache, None)
}

fn open_with(
    bytes: &[u8],
    comparator: Comparator,
    cache: Option<Arc<Cache>>,
    prefix_extractor: Option<PrefixExtractor>,
) -> Result<Arc<TableReader>> {
    let (fs, path) = put_file(bytes);
    let options = reader_options(comparator, cache, prefix_extractor);
    TableReader::open(fs.open_read(&path, OpenRead::default())?, options).map(Arc::new)
}

pub fn scan(table: &Arc<TableReader>, options: TableIterOptions) -> Result<Rows> {
    let mut iter = table.iter(options);
    let mut rows = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().map(|()| rows)
}

/// A table or an iterator that is the last to hold a cache lets go of its blocks first.
#[test]
fn a_cache_is_freed_with_its_last_table_and_its_last_iterator() {
    let rows: Rows = (0..500_u64)
        .map(|row| (internal_key(&row.to_be_bytes(), SeqNum(1), ValueType::Value), vec![7; 100]))
        .collect();
    let options = writer_options(BlockBasedTableOptions::default(), CompressionType::None);
    let bytes = write_table(&rows, options);
    let opened = || {
        let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        let (left, outlived) = (Arc::downgrade(&cache), cache.outlived());
        (open(&bytes, Comparator::Bytewise, Some(cache)).unwrap(), left, outlived)
    };
    // Relaxed: this thread drops them.
    let is_freed = |left: &Weak<Cache>, outlived: &AtomicBool| {
        left.strong_count() == 0 && !outlived.load(Ordering::Relaxed)
    };
    let (table, left, outlived) = opened();
    assert_eq!(left.strong_count(), 1, "the table is the last to hold it");
    drop(table);
    assert!(is_freed(&left, &outlived));
    let (table, left, outlived) = opened();
    let mut iter = table.iter(TableIterOptions::default());
    drop(table);
    iter.seek_to_first();
    assert!(iter.valid() && left.strong_count() == 1, "the iterator is the last to hold it");
    drop(iter);
    assert!(is_freed(&left, &outlived));
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

/// A seek as one of several is done.
fn seek_in_steps(iter: &mut TableIter, user_key: &[u8], trailer: Trailer) {
    iter.begin_seek(user_key, trailer);
    iter.prefetch_slot();
    if !iter.enter_if_cached() {
        let mut loaded = None;
        if let Some(read) = iter.missing_block() {
            outcrop_env::read_batch(&[read], &mut |_, stored| loaded = iter.loaded_block(stored.unwrap()));
        }
        loaded.into_iter().for_each(|block| iter.take_block(block));
    }
    iter.prefetch_entry(user_key, true);
    iter.finish_seek(user_key, trailer);
}

/// The row that a lookup of `user_key` at `snapshot` must visit first.
fn expected_get<'r>(rows: &'r Rows, user_key: &[u8], snapshot: u64) -> Option<&'r [u8]> {
    rows.iter()
        .find(|(key, _)| split(key).0 == user_key && split(key).1.seq().0 <= snapshot)
        .map(|(_, value)| value.as_slice())
}

fn check_table(rows: &Rows, bytes: &[u8], comparator: &Comparator, cache: Option<Arc<Cache>>, seed: u64) {
    let table = open(bytes, comparator.clone(), cache).unwrap();
    assert_eq!(table.properties().num_entries, rows.len() as u64);
    assert_eq!(&scan(&table, TableIterOptions::default()).unwrap(), rows, "seed {seed}");
    let compaction = TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 10_000,
        ..TableIterOptions::default()
    };
    assert_eq!(&scan(&table, compaction).unwrap(), rows, "seed {seed}");
    assert_eq!(&scan_backward(&table).unwrap(), rows, "seed {seed}");

    let random = SeededRandom::new(seed);
    let mut iter = table.iter(TableIterOptions::default());
    for _ in 0..200 {
        let (ikey, _) = &rows[(random.next_u64() % rows.len() as u64) as usize];
        let (mut user_key, mut trailer) = (split(ikey).0.to_vec(), split(ikey).1);
        match random.next_u64() % 5 {
            0 => user_key.push(b'0'),
            1 => {
                user_key.pop();
            }
            2 => trailer = Trailer::new(SeqNum(random.next_u64() % 100), ValueType::FOR_SEEK),
            _ => {}
        }
        let place = rows
            .partition_point(|(key, _)| comparator.compare_parts(split(key), (&user_key, trailer)).is_lt());
        iter.seek(&user_key, trailer);
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), rows.get(place).map(|(key, _)| key), "seek {user_key:?}, seed {seed}");
        if random.next_u64().is_multiple_of(4) {
            // From somewhere else, or from where it goes.
            iter.seek(split(&rows[0].0).0, Trailer::MAX);
        }
        seek_in_steps(&mut iter, &user_key, trailer);
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), rows.get(place).map(|(key, _)| key), "steps {user_key:?}, seed {seed}");
        let before = rows
            .partition_point(|(key, _)| comparator.compare_parts(split(key), (&user_key, trailer)).is_le());
        iter.seek_for_prev(&user_key, trailer);
        let found = iter.valid().then(|| iter.key().to_vec());
        assert_eq!(found.as_ref(), before.checked_sub(1).map(|i| &rows[i].0), "seed {seed}");

        let snapshot = trailer.seq().0;
        let mut got = None;
        let lookup = LookupKey::new(&user_key);
        if table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF) {
            table
                .get(&lookup, SeqNum(snapshot), Loading::Kept, |seq, _, value, block| {
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

pub fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn tombstone(begin: &str, end: &str, seq: u64) -> RangeTombstone {
    RangeTombstone { begin: begin.into(), end: end.into(), seq: SeqNum(seq) }
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
        table.get(&lookup, SeqNum::MAX, Loading::Kept, |_, _, _, _| panic!("no such key")).unwrap();
    }
}

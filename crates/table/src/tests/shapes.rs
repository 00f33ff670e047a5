//! Tables of every shape, written and read back.

use super::*;
use outcrop_options::{DataBlockIndexType, IndexShortening, IndexType};

const CODECS: [CompressionType; 8] = [
    CompressionType::None,
    CompressionType::None,
    CompressionType::Snappy,
    CompressionType::Zlib,
    CompressionType::BZip2,
    CompressionType::Lz4,
    CompressionType::Lz4hc,
    CompressionType::Zstd,
];
const CHECKSUMS: [ChecksumType; 5] = [
    ChecksumType::Xxh3,
    ChecksumType::Crc32c,
    ChecksumType::XxHash,
    ChecksumType::XxHash64,
    ChecksumType::None,
];
const INDEX_TYPES: [IndexType; 4] = [
    IndexType::BinarySearch,
    IndexType::HashSearch,
    IndexType::TwoLevel,
    IndexType::BinarySearchWithFirstKey,
];
const FILTERS: [FilterPolicy; 4] = [
    FilterPolicy::None,
    FilterPolicy::Bloom { bits_per_key: 10.0 },
    FilterPolicy::Ribbon { bits_per_key: 8.0, bloom_before_level: 0 },
    FilterPolicy::Ribbon { bits_per_key: 12.5, bloom_before_level: -1 },
];
const EXTRACTORS: [Option<PrefixExtractor>; 4] =
    [None, Some(PrefixExtractor::Fixed(5)), Some(PrefixExtractor::Capped(9)), Some(PrefixExtractor::Noop)];

/// A writer's options, chosen at random.
fn random_options(pick: &impl Fn(usize) -> usize) -> TableWriterOptions {
    let table = BlockBasedTableOptions {
        block_size: [128, 1024, 4096, 8192][pick(4)],
        block_restart_interval: [1, 2, 16][pick(3)],
        index_block_restart_interval: [1, 1, 8][pick(3)],
        format_version: [2, 3, 4, 5, 6, 7][pick(6)],
        checksum: CHECKSUMS[pick(5)],
        index_type: INDEX_TYPES[pick(4)],
        index_shortening: [
            IndexShortening::None,
            IndexShortening::Separators,
            IndexShortening::SeparatorsAndSuccessor,
        ][pick(3)],
        metadata_block_size: [64, 256, 4096][pick(3)],
        partition_filters: pick(2) == 0,
        enable_index_compression: pick(3) != 0,
        data_block_index_type: [DataBlockIndexType::BinarySearch, DataBlockIndexType::BinaryAndHash][pick(2)],
        data_block_hash_table_util_ratio: [0.3, 0.75, 1.0][pick(3)],
        use_delta_encoding: pick(4) != 0,
        verify_compression: pick(2) == 0,
        separate_key_value_in_data_block: pick(3) == 0,
        filter_policy: FILTERS[pick(4)],
        whole_key_filtering: pick(3) != 0,
        ..BlockBasedTableOptions::default()
    };
    let mut options = writer_options(table, CODECS[pick(8)]);
    options.compression_opts.max_dict_bytes = [0, 0, 1024][pick(3)];
    options.compression_opts.zstd_max_train_bytes = [0, 20_000][pick(2)];
    options.comparator =
        [Comparator::Bytewise, Comparator::Bytewise, Comparator::ReverseBytewise][pick(3)].clone();
    options.level = [None, Some(-1), Some(0), Some(3)][pick(4)];
    options.prefix_extractor = EXTRACTORS[pick(4)].clone();
    if options.table.index_type == IndexType::HashSearch && options.prefix_extractor.is_none() {
        options.prefix_extractor = Some(PrefixExtractor::Capped(4));
    }
    options
}

#[test]
fn tables_of_all_shapes_round_trip() {
    for seed in 0..120u64 {
        let random = SeededRandom::new(seed ^ 0xABCD);
        let pick = |n: usize| (random.next_u64() % n as u64) as usize;
        let options = random_options(&pick);
        let rows = random_rows(&options.comparator, seed, 1 + pick(2000));
        let bytes = write_table(&rows, options.clone());
        let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
        let cache = [None, Some(cache)][pick(2)].clone();
        check_table(&rows, &bytes, &options.comparator, cache.clone(), seed);
        check_prefixes(&rows, &bytes, &options, cache, seed);
    }
}

/// With the table's own extractor: prefixes of rows are never excluded, and lookups find what they should.
fn check_prefixes(
    rows: &Rows,
    bytes: &[u8],
    options: &TableWriterOptions,
    cache: Option<Arc<Cache>>,
    seed: u64,
) {
    let Some(extractor) = &options.prefix_extractor else { return };
    let table = open_with(bytes, options.comparator.clone(), cache, Some(extractor.clone())).unwrap();
    for (key, value) in rows {
        let (user_key, trailer) = split(key);
        if let Some(prefix) = extractor.transform(user_key) {
            let found = table.may_contain_prefix(extractor, prefix, Loading::Kept);
            assert!(found, "prefix of {user_key:?}, seed {seed}");
        }
        let lookup = LookupKey::new(user_key);
        assert!(table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF), "{user_key:?}, seed {seed}");
        let mut got = None;
        table
            .get(&lookup, SeqNum(trailer.seq().0), Loading::Kept, |_, _, found, _| {
                got = Some(found.to_vec());
                ControlFlow::Break(())
            })
            .unwrap();
        assert_eq!(got.as_ref(), Some(value), "{user_key:?}, seed {seed}");
    }
}

#[test]
fn filters_of_every_kind_exclude_most_strangers() {
    let rows: Rows = (0..4000u64)
        .map(|i| {
            (internal_key(format!("{i:05}-key").as_bytes(), SeqNum(i + 1), ValueType::Value), b"v".to_vec())
        })
        .collect();
    let six = PrefixExtractor::Fixed(6);
    let extractor = Some(six.clone());
    for format_version in [4, 5] {
        for filter_policy in &FILTERS[1..] {
            for partition_filters in [false, true] {
                for whole_key_filtering in [false, true] {
                    let table = BlockBasedTableOptions {
                        format_version,
                        filter_policy: *filter_policy,
                        partition_filters,
                        whole_key_filtering,
                        index_type: IndexType::TwoLevel,
                        metadata_block_size: 512,
                        ..BlockBasedTableOptions::default()
                    };
                    let mut options = writer_options(table, CompressionType::None);
                    options.prefix_extractor = extractor.clone();
                    let bytes = write_table(&rows, options);
                    let table = open_with(&bytes, Comparator::Bytewise, None, extractor.clone()).unwrap();
                    let found =
                        |i: u64| table.may_contain_prefix(&six, format!("{i:05}-").as_bytes(), Loading::Kept);
                    assert!((0..4000).all(found));
                    let strangers = (10_000..14_000).filter(|i| found(*i)).count();
                    assert!(
                        strangers < 200,
                        "{filter_policy:?} {partition_filters}: {strangers} of 4000 prefixes"
                    );
                    assert!(table.properties().num_filter_entries >= 4000);
                    // A reader with another extractor asks nothing of prefixes, nor does one that has another since.
                    let four = PrefixExtractor::Fixed(4);
                    assert!(table.may_contain_prefix(&four, b"none", Loading::Kept));
                    let table = open_with(&bytes, Comparator::Bytewise, None, Some(four.clone())).unwrap();
                    assert!(table.may_contain_prefix(&four, b"none", Loading::Kept));
                }
            }
        }
    }
}

#[test]
fn ribbons_are_for_levels_that_live_long() {
    let rows: Rows = (0..3000u64)
        .map(|i| (internal_key(format!("{i:05}").as_bytes(), SeqNum(1), ValueType::Value), Vec::new()))
        .collect();
    let size = |bloom_before_level, level| {
        let filter_policy = FilterPolicy::Ribbon { bits_per_key: 10.0, bloom_before_level };
        let table = BlockBasedTableOptions { filter_policy, ..BlockBasedTableOptions::default() };
        let mut options = writer_options(table, CompressionType::None);
        options.level = level;
        open(&write_table(&rows, options), Comparator::Bytewise, None).unwrap().properties().filter_size
    };
    let bloom = size(0, Some(-1));
    assert_eq!(size(3, Some(2)), bloom);
    for ribbon in [size(0, Some(0)), size(-1, Some(-1)), size(3, None), size(3, Some(3))] {
        assert!(ribbon * 10 < bloom * 8, "{ribbon} bytes, bloom {bloom}");
    }
}

#[test]
fn dictionaries_make_small_blocks_smaller() {
    let rows: Rows = (0..5000u64)
        .map(|i| {
            let value = format!("{{\"name\":\"person-{}\",\"city\":\"town-{}\"}}", i * 7919 % 5000, i % 97);
            (internal_key(format!("user:{i:06}").as_bytes(), SeqNum(1), ValueType::Value), value.into_bytes())
        })
        .collect();
    for codec in [CompressionType::Zstd, CompressionType::Lz4, CompressionType::Zlib] {
        let size = |max_dict_bytes, zstd_max_train_bytes| {
            let table = BlockBasedTableOptions { block_size: 512, ..BlockBasedTableOptions::default() };
            let mut options = writer_options(table, codec);
            options.compression_opts.max_dict_bytes = max_dict_bytes;
            options.compression_opts.zstd_max_train_bytes = zstd_max_train_bytes;
            let bytes = write_table(&rows, options);
            check_table(&rows, &bytes, &Comparator::Bytewise, None, 3);
            bytes.len()
        };
        let (without, raw, trained) = (size(0, 0), size(8192, 0), size(8192, 100_000));
        assert!(raw < without * 95 / 100, "{codec:?}: {raw} bytes, without {without}");
        assert!(trained < without * 95 / 100, "{codec:?}: {trained} bytes, without {without}");
    }
}

#[test]
fn options_that_cannot_be_written_are_refused() {
    let table = BlockBasedTableOptions { format_version: 8, ..BlockBasedTableOptions::default() };
    assert!(check_options(&table, None).unwrap_err().to_string().contains("format_version 8"));
    let table = BlockBasedTableOptions { index_type: IndexType::HashSearch, ..Default::default() };
    assert!(check_options(&table, None).unwrap_err().to_string().contains("prefix_extractor"));
    assert!(check_options(&table, Some(&PrefixExtractor::Noop)).is_ok());
    let table = BlockBasedTableOptions {
        data_block_index_type: DataBlockIndexType::BinaryAndHash,
        data_block_hash_table_util_ratio: 0.0,
        ..BlockBasedTableOptions::default()
    };
    assert!(check_options(&table, None).unwrap_err().to_string().contains("util_ratio"));
}

#[test]
fn external_tables_take_on_the_sequence_number_of_their_file() {
    let rows: Rows = (0..500u64)
        .map(|i| {
            let kind = if i % 7 == 0 { ValueType::Deletion } else { ValueType::Value };
            (internal_key(format!("{i:05}").as_bytes(), SeqNum::ZERO, kind), vec![b'v'; (i % 50) as usize])
        })
        .collect();
    let stamped: Rows = rows
        .iter()
        .map(|(key, value)| {
            let kind = ValueType::from_byte(split(key).1.type_byte()).unwrap();
            (internal_key(split(key).0, SeqNum(77), kind), value.clone())
        })
        .collect();
    for format_version in [2, 5, 7] {
        let table = BlockBasedTableOptions {
            format_version,
            block_size: 512,
            filter_policy: FILTERS[1],
            ..BlockBasedTableOptions::default()
        };
        let mut options = writer_options(table, CompressionType::Lz4);
        options.external = true;
        let mut bytes = write_table(&rows, options.clone());
        check_table(&rows, &bytes, &Comparator::Bytewise, None, 5);
        let reopen = |bytes: &[u8], largest_seqno| {
            let (fs, path) = put_file(bytes);
            let options =
                TableReaderOptions { largest_seqno, ..reader_options(Comparator::Bytewise, None, None) };
            TableReader::open(fs.open_read(&path, OpenRead::default())?, options).map(Arc::new)
        };
        let table = reopen(&bytes, SeqNum(77)).unwrap();
        assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), stamped);
        assert_eq!(scan_backward(&table).unwrap(), stamped);
        let get = |snapshot| {
            let mut got = None;
            let lookup = LookupKey::new(b"00003");
            table
                .get(&lookup, SeqNum(snapshot), Loading::Kept, |seq, _, _, _| {
                    got = Some(seq);
                    ControlFlow::Break(())
                })
                .unwrap();
            got
        };
        assert_eq!((get(76), get(77)), (None, Some(SeqNum(77))));

        // As old ingestion left files: the number written into the properties, the checksum of before.
        let name = b"global_seqno";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
        bytes[at..at + 8].copy_from_slice(&77u64.to_le_bytes());
        for largest in [SeqNum(77), SeqNum::MAX] {
            let table = reopen(&bytes, largest).unwrap();
            assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), stamped);
        }
        assert_eq!(reopen(&bytes, SeqNum(78)).err().unwrap().kind(), ErrorKind::Corruption);
    }
}

#[test]
fn tables_for_ingestion_have_no_sequence_numbers_of_their_own() {
    let (fs, path) = put_file(b"");
    let mut options = writer_options(BlockBasedTableOptions::default(), CompressionType::None);
    options.external = true;
    let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options);
    writer.add(&internal_key(b"a", SeqNum(1), ValueType::Value), b"").unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn tables_of_tombstones_alone_come_in_every_shape() {
    for seed in 0..80u64 {
        let random = SeededRandom::new(seed ^ 0x7070);
        let pick = |n: usize| (random.next_u64() % n as u64) as usize;
        let options = random_options(&pick);
        let comparator = options.comparator.clone();
        let (fs, path) = put_file(b"");
        let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options.clone());
        let (first, last) = if comparator.compare(b"a", b"z").is_lt() { (b"a", b"z") } else { (b"z", b"a") };
        writer.add_range_tombstone(first, SeqNum(9), last);
        writer.finish().unwrap();
        writer.sync_and_close(false).unwrap();
        let bytes = fs.read_all(&path).unwrap();
        let table = open_with(&bytes, comparator, None, options.prefix_extractor.clone()).unwrap();
        assert_eq!(table.range_tombstones().len(), 1, "seed {seed}");
        assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), Rows::new(), "seed {seed}");
        let five = PrefixExtractor::Fixed(5);
        let _ = table.may_contain_prefix(&five, b"abcde", Loading::Kept);
        let lookup = LookupKey::new(b"key");
        table.get(&lookup, SeqNum::MAX, Loading::Kept, |_, _, _, _| panic!("no rows")).unwrap();
    }
}

//! Tables with every byte broken: noticed or harmless, never other rows, never a panic.

use super::*;
use crate::block::Directory;
use crate::block_builder::BlockBuilder;
use outcrop_base::ErrorKind;
use outcrop_options::{DataBlockIndexType, IndexType};

/// Writers' options for a table of every kind.
pub fn kinds() -> Vec<(&'static str, TableWriterOptions)> {
    let base = BlockBasedTableOptions {
        block_size: 512,
        metadata_block_size: 64,
        filter_policy: FilterPolicy::Bloom { bits_per_key: 10.0 },
        ..BlockBasedTableOptions::default()
    };
    let table = |change: &dyn Fn(&mut BlockBasedTableOptions), codec| {
        let mut table = base.clone();
        change(&mut table);
        writer_options(table, codec)
    };
    let mut kinds = vec![
        ("plain", table(&|_| {}, CompressionType::None)),
        ("lz4", table(&|_| {}, CompressionType::Lz4)),
        ("zlib, fv 2", table(&|table| table.format_version = 2, CompressionType::Zlib)),
        ("bzip2, fv 4", table(&|table| table.format_version = 4, CompressionType::BZip2)),
        ("snappy, fv 6", table(&|table| table.format_version = 6, CompressionType::Snappy)),
        (
            "crc32c, fv 7",
            table(
                &|table| {
                    table.format_version = 7;
                    table.checksum = ChecksumType::Crc32c;
                },
                CompressionType::Zstd,
            ),
        ),
        (
            "partitioned",
            table(
                &|table| {
                    table.index_type = IndexType::TwoLevel;
                    table.partition_filters = true;
                },
                CompressionType::None,
            ),
        ),
        (
            "first keys",
            table(&|table| table.index_type = IndexType::BinarySearchWithFirstKey, CompressionType::None),
        ),
        (
            "hash indexes",
            table(
                &|table| {
                    table.index_type = IndexType::HashSearch;
                    table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
                },
                CompressionType::None,
            ),
        ),
        (
            "values apart",
            table(&|table| table.separate_key_value_in_data_block = true, CompressionType::None),
        ),
        (
            "ribbon",
            table(
                &|table| {
                    table.filter_policy = FilterPolicy::Ribbon { bits_per_key: 10.0, bloom_before_level: -1 };
                },
                CompressionType::None,
            ),
        ),
        ("dictionary", table(&|_| {}, CompressionType::Zstd)),
        ("external", table(&|table| table.format_version = 7, CompressionType::None)),
    ];
    for (name, options) in &mut kinds {
        options.prefix_extractor = Some(PrefixExtractor::Capped(3));
        options.external = *name == "external";
        if *name == "dictionary" {
            options.compression_opts.max_dict_bytes = 600;
        }
    }
    kinds
}

/// The contents of a table: rows, range tombstones.
pub type TableRows = (Rows, Vec<RangeTombstone>);

/// Everything that can be read of a table: rows forwards and backwards, tombstones, rows by lookup.
fn read_all(bytes: &[u8], expected: &TableRows) -> Result<TableRows> {
    let table = open_sample(bytes)?;
    let forwards = scan(&table, TableIterOptions::default())?;
    assert_eq!(scan_backward(&table)?, forwards);
    assert_eq!(
        scan(
            &table,
            TableIterOptions {
                loading: Loading::NotKept,
                readahead_bytes: 4096,
                ..TableIterOptions::default()
            }
        )?,
        forwards
    );
    for (key, value) in expected.0.iter().step_by(5) {
        let (user_key, trailer) = split(key);
        let lookup = LookupKey::new(user_key);
        let mut got = None;
        if table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF) {
            table.get(&lookup, SeqNum(trailer.seq().0), Loading::Kept, |_, _, found, _| {
                got = Some(found.to_vec());
                ControlFlow::Break(())
            })?;
        }
        // A partition of a filter is verified when it is first asked: an error there excludes nothing.
        assert_eq!(got.as_ref(), Some(value), "lookup of {user_key:?}");
    }
    Ok((forwards, table.range_tombstones().to_vec()))
}

/// The number that tables for ingestion are given.
pub const INGESTED: SeqNum = SeqNum(77);

fn open_sample(bytes: &[u8]) -> Result<Arc<TableReader>> {
    let (fs, path) = put_file(bytes);
    let extractor = Some(PrefixExtractor::Capped(3));
    let options = TableReaderOptions {
        largest_seqno: INGESTED,
        ..reader_options(Comparator::Bytewise, None, extractor)
    };
    TableReader::open(fs.open_read(&path, OpenRead::default())?, options).map(Arc::new)
}

/// A table of these options, and what reading it must give.
pub fn sample(options: TableWriterOptions, seed: u64, count: usize) -> (Vec<u8>, TableRows) {
    let tombstones = |seqs: [u64; 2]| {
        [("a", "c", seqs[0]), ("x", "y", seqs[1])]
            .map(|(begin, end, seq)| tombstone(begin, end, seq))
            .to_vec()
    };
    let mut contents = (random_rows(&Comparator::Bytewise, seed, count), tombstones([3, 5]));
    let with_seq = |rows: &Rows, seq| -> Rows {
        let stamp = |key: &[u8]| internal_key(split(key).0, seq, ValueType::Value);
        rows.iter().map(|(key, value)| (stamp(key), value.clone())).collect()
    };
    if options.external {
        contents.0.dedup_by(|a, b| split(&a.0).0 == split(&b.0).0);
        contents = (with_seq(&contents.0, SeqNum::ZERO), tombstones([0, 0]));
    }
    let (fs, path) = put_file(b"");
    let external = options.external;
    let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options);
    contents.1.iter().for_each(|each| writer.add_range_tombstone(&each.begin, each.seq, &each.end));
    contents.0.iter().for_each(|(key, value)| writer.add(key, value).unwrap());
    writer.finish().unwrap();
    writer.sync_and_close(false).unwrap();
    if external {
        contents = (with_seq(&contents.0, INGESTED), tombstones([INGESTED.0, INGESTED.0]));
    }
    (fs.read_all(&path).unwrap(), contents)
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    for (kind, options) in kinds() {
        let (bytes, expected) = sample(options, 5, 60);
        assert_eq!(read_all(&bytes, &expected).unwrap(), expected, "{kind}");
        let mut harmless = 0;
        for offset in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[offset] ^= 1 << (offset % 8);
            match read_all(&broken, &expected) {
                Ok(read) => {
                    assert_eq!(read, expected, "{kind}: byte {offset}");
                    harmless += 1;
                }
                Err(error) => {
                    let named = error.to_string().contains("000009.sst");
                    assert!(named, "{kind}: byte {offset}: {error}");
                }
            }
        }
        // Padding of old footers, and blocks that this reader never reads (prefixes of hash indexes).
        assert!(harmless < bytes.len() * 12 / 100, "{kind}: {harmless} of {} bytes", bytes.len());
    }
}

#[test]
fn every_truncation_is_noticed() {
    for (kind, options) in kinds() {
        let (bytes, _) = sample(options, 6, 30);
        for len in 0..bytes.len() {
            let error = open_sample(&bytes[..len]).err().unwrap_or_else(|| panic!("{kind}: cut at {len}"));
            assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported), "{error}");
        }
    }
}

/// Without checksums every byte reaches the decoders.
#[test]
fn forged_blocks_with_valid_checksums_never_panic() {
    let rows = random_rows(&Comparator::Bytewise, 9, 80);
    let random = SeededRandom::new(3);
    let tables: Vec<Vec<u8>> = kinds()
        .into_iter()
        .map(|(_, mut options)| {
            options.table.checksum = ChecksumType::None;
            sample(options, 9, 80).0
        })
        .collect();
    for bytes in tables {
        let mut opened = 0;
        for round in 0..700 {
            let mut broken = bytes.clone();
            for _ in 0..1 + round % 3 {
                let offset = (random.next_u64() % bytes.len() as u64) as usize;
                broken[offset] = random.next_u64() as u8;
            }
            let Ok(table) = open_sample(&broken) else { continue };
            opened += 1;
            let _ = scan(&table, TableIterOptions::default());
            let _ = scan_backward(&table);
            let _ = scan(
                &table,
                TableIterOptions {
                    loading: Loading::NotKept,
                    readahead_bytes: 4096,
                    ..TableIterOptions::default()
                },
            );
            for (key, _) in rows.iter().step_by(7) {
                let lookup = LookupKey::new(split(key).0);
                let _ = table.may_contain(lookup.hash, outcrop_monitor::Counting::OFF);
                let prefix = &lookup.user_key[..lookup.user_key.len().min(3)];
                let _ = table.may_contain_prefix(&PrefixExtractor::Capped(3), prefix, Loading::Kept);
                let _ = table.get(&lookup, SeqNum::MAX, Loading::Kept, |_, _, _, _| ControlFlow::Break(()));
            }
        }
        assert!(opened > 100, "the decoders after the opening are reached");
    }
}

/// Damage of data blocks that nobody compares checksums of reaches the decoders: rows of some kind, or Corruption.
#[test]
fn unverified_blocks_never_panic() {
    let random = SeededRandom::new(5);
    for (name, options) in kinds() {
        let (bytes, _) = sample(options, 9, 80);
        let data_size = open_sample(&bytes).unwrap().properties().data_size;
        let loading = Loading::Kept.unverified();
        let (mut decoded, mut refused) = (0, 0);
        for round in 0..300 {
            let mut broken = bytes.clone();
            for _ in 0..1 + round % 3 {
                broken[(random.next_u64() % data_size) as usize] = random.next_u64() as u8;
            }
            let table = open_sample(&broken).unwrap();
            let ways = [0, 4096].map(|readahead_bytes| {
                scan(&table, TableIterOptions { loading, readahead_bytes, ..TableIterOptions::default() })
            });
            for way in &ways {
                match way {
                    Ok(_) => decoded += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "{name}: {error}");
                        refused += 1;
                    }
                }
            }
            for (key, _) in random_rows(&Comparator::Bytewise, 9, 80).iter().step_by(7) {
                let lookup = LookupKey::new(split(key).0);
                let _ = table.get(&lookup, SeqNum::MAX, loading, |_, _, _, _| ControlFlow::Break(()));
            }
        }
        assert!(decoded > 0 && refused > 0, "{name}: {decoded} decoded, {refused} were refused");
    }
}

#[test]
fn a_block_whose_first_entry_is_no_restart_point_is_refused() {
    let mut block = Vec::new();
    for key in [b"a", b"b"] {
        block.extend_from_slice(&[0, 9, 0]);
        block.extend_from_slice(&internal_key(key, SeqNum(1), ValueType::Value));
    }
    block.extend_from_slice(&12u32.to_le_bytes());
    block.extend_from_slice(&1u32.to_le_bytes());
    // Going back from the second entry would arrive at the second entry.
    assert!(crate::block::Contents::parse(&block).is_err());
    block[24..28].fill(0);
    assert!(crate::block::Contents::parse(&block).is_ok());
}

#[test]
fn a_block_whose_keys_do_not_ascend_is_refused() {
    let key = |user_key: &str, seq: u64| internal_key(user_key.as_bytes(), SeqNum(seq), ValueType::Value);
    let build = |keys: &[Vec<u8>], comparator: &Comparator| {
        let mut builder = BlockBuilder::new(16);
        keys.iter().for_each(|key| builder.add(key, b"value"));
        Directory::default().build(builder.finish(), comparator).map_err(|error| error.to_string())
    };
    let good = [key("a", 9), key("a", 8), key("ab", 300), key("ab", 7), key("b", 1), key("ba", 9)];
    build(&good, &Comparator::Bytewise).unwrap();
    for (first, second) in [
        (("b", 1), ("a", 1)),
        (("ab", 1), ("a", 9)),
        (("a", 1), ("a", 2)),
        (("a", 300), ("a", 300)),
        (("abc", 5), ("abb", 9)),
    ] {
        let keys = [key("Z", 1), key(first.0, first.1), key(second.0, second.1)];
        let error = build(&keys, &Comparator::Bytewise).unwrap_err();
        assert!(error.contains("not larger"), "{first:?} {second:?}: {error}");
    }
    // The other way round is in order there.
    build(&[key("b", 1), key("ab", 2), key("a", 3)], &Comparator::ReverseBytewise).unwrap();
    build(&[key("a", 1), key("b", 1)], &Comparator::ReverseBytewise).unwrap_err();
}

#[test]
fn a_writer_refuses_keys_out_of_order() {
    let (fs, path) = put_file(b"");
    let (_, options) = kinds().swap_remove(0);
    let mut writer = TableWriter::new(fs.create(&path, OpenWrite::default()).unwrap(), options);
    let key = |user_key: &str| internal_key(user_key.as_bytes(), SeqNum(1), ValueType::Value);
    writer.add(&key("b"), b"").unwrap();
    for refused in ["a", "b"] {
        assert_eq!(writer.add(&key(refused), b"").unwrap_err().kind(), ErrorKind::Corruption);
    }
}

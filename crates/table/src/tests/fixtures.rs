//! Tables that RocksDB wrote.

use super::*;
use crate::block::Contents;
use crate::index::IndexView;
use crate::meta_blocks::MetaBlocks;

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
        "11.8.1-separated-kv",
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
fn a_dictionary_of_rocksdbs_is_used() {
    let bytes = fixture("11.8.1-fv7-zstd-dict-compacted/000010.sst");
    check_table(&standard_rows(true), &bytes, &Comparator::Bytewise, None, 1);
}

#[test]
fn an_ingested_file_has_the_sequence_number_the_manifest_gives_it() {
    let (fs, path) = put_file(&fixture("11.8.1-ingested/000008.sst"));
    let open = |largest_seqno| {
        let options =
            TableReaderOptions { largest_seqno, ..reader_options(Comparator::Bytewise, None, None) };
        TableReader::open(fs.open_read(&path, OpenRead::default()).unwrap(), options).map(Arc::new)
    };
    for seq in [0, 6] {
        let rows: Rows = ["k1", "k3"]
            .map(|key| (internal_key(key.as_bytes(), SeqNum(seq), ValueType::Value), b"NEW".to_vec()))
            .to_vec();
        let table = open(SeqNum(seq)).unwrap();
        assert_eq!(scan(&table, TableIterOptions::default()).unwrap(), rows);
        assert_eq!(
            (table.properties().external_version, table.properties().global_seqno),
            (Some(2), Some(0))
        );
    }
}

#[test]
fn filters_of_rocksdbs_know_its_keys_and_few_others() {
    for name in ["fv2-bloom10", "fv4-bloom10", "fv5-bloom10", "fv7-bloom10", "ribbon10", "partitioned"] {
        let bytes = fixture(&format!("11.8.1-{name}/000009.sst"));
        let table = open(&bytes, Comparator::Bytewise, None).unwrap();
        let filter = table.filter().expect(name);
        let may_contain = |key: String| {
            let (source, comparator) = (table.source(), table.comparator());
            let reading = crate::Loading::Kept.into();
            filter.may_contain_key(source, comparator, key.as_bytes(), reading).expect("it is asked")
        };
        assert!((0..300).all(|i| may_contain(format!("key{i:06}"))), "{name}");
        let strangers = (300..10_300).filter(|i| may_contain(format!("key{i:06}"))).count();
        assert!(strangers < 300, "{name}: {strangers} of 10000");
    }
}

/// Rewrites a table of RocksDB's with the options it was made with: the data blocks must be the same bytes.
fn data_blocks_are_rocksdbs(name: &str, table: BlockBasedTableOptions) {
    let ours = write_table(&standard_rows(false), writer_options(table, CompressionType::None));
    let open = |bytes: &[u8]| open(bytes, Comparator::Bytewise, None).unwrap();
    let (theirs, ours) = (open(&fixture(&format!("{name}/000009.sst"))), open(&ours));
    let (a, b) = (theirs.properties(), ours.properties());
    assert_eq!((a.num_data_blocks, a.data_size), (b.num_data_blocks, b.data_size), "{name}");
    // Partitions of an index are cut by a rule of our own.
    assert!(a.index_size == b.index_size || a.index_type == Some(2), "{name}");
    assert_eq!(a.index_partitions > 1, b.index_partitions > 1, "{name}");
    assert_eq!((a.index_type, a.index_key_is_user_key), (b.index_type, b.index_key_is_user_key), "{name}");
    // Contents without trailers: from format_version 6 on checksums are salted.
    let blocks = |table: &TableReader| -> Vec<Vec<u8>> {
        let index = table.index(crate::Loading::Kept.into()).unwrap();
        let view = IndexView::new(&index);
        (0..view.len())
            .map(|number| table.source().read_meta(view.handle(number), outcrop_monitor::Watch::OFF).unwrap())
            .collect()
    };
    assert!(blocks(&theirs) == blocks(&ours), "{name}: data blocks differ");
}

#[test]
fn what_we_write_is_what_rocksdb_writes() {
    use outcrop_options::{DataBlockIndexType, IndexType};
    let base = BlockBasedTableOptions { format_version: 7, ..BlockBasedTableOptions::default() };
    let small = BlockBasedTableOptions { block_size: 1024, ..base.clone() };
    let fv5 = BlockBasedTableOptions { format_version: 5, ..small.clone() };
    let crc = BlockBasedTableOptions { checksum: ChecksumType::Crc32c, ..fv5 };
    data_blocks_are_rocksdbs("11.8.1-fv5-bloom10", crc.clone());
    data_blocks_are_rocksdbs(
        "11.8.1-fv4-bloom10",
        BlockBasedTableOptions { format_version: 4, ..crc.clone() },
    );
    data_blocks_are_rocksdbs("11.8.1-fv2-bloom10", BlockBasedTableOptions { format_version: 2, ..crc });
    data_blocks_are_rocksdbs(
        "11.8.1-data-hash-index",
        BlockBasedTableOptions { data_block_index_type: DataBlockIndexType::BinaryAndHash, ..small },
    );
    data_blocks_are_rocksdbs(
        "11.8.1-separated-kv",
        BlockBasedTableOptions {
            data_block_index_type: DataBlockIndexType::BinaryAndHash,
            separate_key_value_in_data_block: true,
            block_size: 1024,
            ..base.clone()
        },
    );
    data_blocks_are_rocksdbs(
        "11.8.1-partitioned",
        BlockBasedTableOptions {
            index_type: IndexType::TwoLevel,
            metadata_block_size: 256,
            block_size: 256,
            ..base.clone()
        },
    );
    data_blocks_are_rocksdbs(
        "11.8.1-first-key-index",
        BlockBasedTableOptions {
            index_type: IndexType::BinarySearchWithFirstKey,
            index_block_restart_interval: 4,
            block_size: 512,
            ..base
        },
    );
}

#[test]
fn the_hash_index_of_prefixes_is_rocksdbs() {
    let extractor = PrefixExtractor::Fixed(8);
    for index_block_restart_interval in [1, 5] {
        let table = BlockBasedTableOptions {
            index_type: outcrop_options::IndexType::HashSearch,
            block_size: 512,
            index_block_restart_interval,
            ..BlockBasedTableOptions::default()
        };
        let mut options = writer_options(table, CompressionType::None);
        options.prefix_extractor = Some(extractor.clone());
        let ours = open(&write_table(&standard_rows(false), options), Comparator::Bytewise, None).unwrap();
        let theirs = fixture("11.8.1-hash-search-index/000009.sst");
        let theirs = open(&theirs, Comparator::Bytewise, None).unwrap();
        for name in ["rocksdb.hashindex.prefixes", "rocksdb.hashindex.metadata"] {
            let block = |table: &TableReader| {
                let blocks = MetaBlocks::read(table.source()).unwrap();
                table.source().read_meta(blocks.find(name).unwrap(), outcrop_monitor::Watch::OFF).unwrap()
            };
            assert_eq!(block(&ours), block(&theirs), "{name}");
        }
        // The metadata counts data blocks; RocksDB takes the numbers for those of restart points.
        let index = ours
            .source()
            .read_meta(ours.source().footer.index.unwrap(), outcrop_monitor::Watch::OFF)
            .unwrap();
        let restarts = Contents::parse(&index).unwrap().num_restarts() as u64;
        assert_eq!(restarts, ours.properties().num_data_blocks);
    }
}

#[test]
fn basic_tables_of_three_versions_hold_the_same_rows() {
    for version in ["6.29.5", "10.4.2", "11.8.1"] {
        let table =
            open(&fixture(&format!("{version}-basic/000009.sst")), Comparator::Bytewise, None).unwrap();
        let rows = scan(&table, TableIterOptions::default()).unwrap();
        let parts = |key| -> (&[u8], u64, u8) {
            let (user_key, trailer) = split(key);
            (user_key, trailer.seq().0, trailer.type_byte())
        };
        let summary: Vec<_> = rows.iter().map(|(key, _)| parts(key)).collect();
        let expected: [(&[u8], u64, u8); 4] =
            [(b"apple", 1, 1), (b"banana", 4, 0), (b"cherry", 3, 1), (b"count", 5, 2)];
        assert_eq!(summary, expected, "{version}");
        assert_eq!(table.properties().merge_operands, 1);
        assert!(table.may_contain(outcrop_base::xxph3::xxph3_64(b"cherry"), outcrop_monitor::Counting::OFF));
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let newest = fixture("11.8.1-fv5-bloom10/000009.sst");
    let magic = newest.len() - 8;
    for (at, bytes, feature) in [
        (magic - 4, &8u32.to_le_bytes()[..], "format_version 8"),
        (magic, &0xDB47_7524_8B80_FB57u64.to_le_bytes()[..], "format_version 0"),
        (magic, &0x8242_2296_63BF_9564u64.to_le_bytes()[..], "plain table"),
        (magic, &0x9267_89D0_C5F1_7873u64.to_le_bytes()[..], "cuckoo table"),
    ] {
        let mut other = newest.clone();
        other[at..at + bytes.len()].copy_from_slice(bytes);
        let error = open(&other, Comparator::Bytewise, None).err().expect(feature);
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{feature}: {error}");
        assert!(error.to_string().contains(feature), "{feature}: {error}");
        assert!(error.to_string().contains("000009.sst"), "{feature}: {error}");
    }
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
fn a_file_of_another_identity_is_refused() {
    let (fs, path) = put_file(&fixture("11.8.1-basic/000009.sst"));
    let open = |expected| {
        let options = TableReaderOptions {
            expected_unique_id: Some(expected),
            largest_seqno: SeqNum(5),
            ..TableReaderOptions::uncached(Comparator::Bytewise)
        };
        TableReader::open(fs.open_read(&path, OpenRead::default()).unwrap(), options)
    };
    let id = [0x9d8c_519b_ac59_bbd7, 0xcb04_3733_db77_1ba7];
    assert!(open(id).is_ok());
    assert_eq!(open([id[0], id[1] ^ 1]).err().unwrap().kind(), ErrorKind::Corruption);
}

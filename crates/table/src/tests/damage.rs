//! Tables with every byte broken: noticed or harmless, never other rows, never a panic.

use super::*;

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

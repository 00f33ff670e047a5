//! Tables with every byte broken: all that the damage did not touch is found, and nothing else.

use super::*;
use crate::tests::damage::{INGESTED, kinds, sample};
use crate::tests::{Rows, put_file};
use outcrop_env::{FileSystem, OpenRead};

/// The facts that the MANIFEST has of a sample.
fn expected(bytes: &[u8], external: bool) -> ExpectedTable {
    let seqs = if external { (INGESTED, INGESTED) } else { (SeqNum::ZERO, SeqNum::MAX) };
    let whole = open(bytes, ExpectedTable { seqs: Some(seqs), tail_size: 0 }).unwrap();
    let data_size = whole.properties().unwrap().data_size;
    ExpectedTable { seqs: Some(seqs), tail_size: bytes.len() as u64 - data_size }
}

fn open(bytes: &[u8], expected: ExpectedTable) -> Result<DamagedTable> {
    let (fs, path) = put_file(bytes);
    DamagedTable::open(fs.open_read(&path, OpenRead::default())?, Comparator::Bytewise, expected)
}

/// Its rows, and where it is damaged.
fn read(table: &DamagedTable) -> (Rows, Vec<(u64, u64)>) {
    let (mut rows, mut damage) = (Rows::new(), Vec::new());
    table
        .each_part(|part| {
            match part {
                TablePart::Whole(entries) => {
                    rows.extend(entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
                }
                TablePart::Damaged { offset, bytes, .. } => damage.push((offset, bytes)),
            }
            Ok(())
        })
        .unwrap();
    (rows, damage)
}

#[test]
fn a_whole_table_is_read_whole() {
    for (kind, options) in kinds() {
        let external = options.external;
        let (bytes, contents) = sample(options, 5, 200);
        let table = open(&bytes, expected(&bytes, external)).unwrap();
        assert_eq!(read(&table), (contents.0, Vec::new()), "{kind}");
        assert_eq!((table.range_tombstones(), table.lost_tombstones()), (&contents.1[..], false), "{kind}");
        assert!(table.damage().is_empty(), "{kind}: {:?}", table.damage());
    }
}

#[test]
fn a_broken_byte_costs_its_block_and_no_other() {
    for (kind, options) in kinds() {
        let external = options.external;
        let (bytes, contents) = sample(options, 5, 150);
        let facts = expected(&bytes, external);
        let data_end = bytes.len() as u64 - facts.tail_size;
        let in_data = (0..data_end as usize).step_by(7);
        // Without its dictionary nothing of a table is found, which takes the longest.
        let step = if kind == "dictionary" { 29 } else { 1 };
        for offset in in_data.chain((data_end as usize..bytes.len()).step_by(step)) {
            let mut broken = bytes.clone();
            broken[offset] ^= 1 << (offset % 8);
            let table = match open(&broken, facts) {
                Ok(table) => table,
                Err(error) => {
                    // Nothing can be read where codecs, checksums or sequence numbers are unknown.
                    assert!(offset as u64 >= data_end, "{kind}: byte {offset}: {error}");
                    assert!(bytes.len() - offset <= 53, "{kind}: byte {offset}: {error}");
                    continue;
                }
            };
            let (rows, damage) = read(&table);
            assert!(rows.iter().all(|row| contents.0.contains(row)), "{kind}: byte {offset}: other rows");
            let kept = table.range_tombstones();
            assert!(
                kept == contents.1 || (table.lost_tombstones() && kept.is_empty()),
                "{kind}: byte {offset}"
            );
            if (offset as u64) < data_end {
                assert_eq!(damage.len(), 1, "{kind}: byte {offset}");
                let (at, len) = damage[0];
                assert!((at..at + len).contains(&(offset as u64)), "{kind}: byte {offset}");
                assert!(rows.len() * 3 > contents.0.len(), "{kind}: byte {offset}: {} rows", rows.len());
            } else if kind != "dictionary" {
                assert_eq!(rows, contents.0, "{kind}: byte {offset}: no data was touched");
            }
        }
    }
}

#[test]
fn blocks_are_found_around_damage_without_an_index() {
    for (kind, options) in kinds().into_iter().filter(|(kind, _)| *kind != "dictionary") {
        let external = options.external;
        let (bytes, contents) = sample(options, 7, 150);
        let facts = expected(&bytes, external);
        let data_end = (bytes.len() as u64 - facts.tail_size) as usize;
        let mut broken = bytes.clone();
        // The tail is gone but for the footer, and a byte of data.
        let footer = bytes.len() - 53;
        broken[data_end..footer].fill(0xA5);
        broken[data_end / 2] ^= 8;
        let table = open(&broken, facts).unwrap();
        let (rows, damage) = read(&table);
        assert_eq!(damage.len(), 1, "{kind}");
        assert!(table.lost_tombstones() && table.properties().is_none(), "{kind}");
        assert!(rows.iter().all(|row| contents.0.contains(row)), "{kind}");
        assert!(rows.len() * 3 > contents.0.len(), "{kind}: {} rows", rows.len());
    }
}

#[test]
fn bytes_of_all_kinds_are_no_reason_to_panic() {
    let facts = ExpectedTable { seqs: None, tail_size: 60 };
    for fill in [0u8, 1, 5, 0xFF] {
        for len in [0, 52, 53, 54, 100, 2000] {
            if let Ok(table) = open(&vec![fill; len], facts) {
                assert!(read(&table).0.is_empty());
            }
        }
    }
    let (bytes, contents) = sample(kinds().remove(0).1, 9, 40);
    for len in (0..bytes.len()).step_by(97) {
        if let Ok(table) = open(&bytes[..len], facts) {
            assert!(read(&table).0.iter().all(|row| contents.0.contains(row)), "cut at {len}");
        }
    }
}

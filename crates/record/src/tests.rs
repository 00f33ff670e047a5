//! Round trips, damage of every kind, and logs written by RocksDB.

use crate::{
    BLOCK_SIZE, DamageKind, HEADER_LEN, LogReader, LogWriter, Predecessor, RECYCLABLE_HEADER_LEN, ReadOutcome,
};
use outcrop_base::CfId;
use outcrop_env::{FileSystem, OpenRead, OpenWrite, memory::MemoryFs};
use outcrop_options::WalRecoveryMode::{self, *};
use std::path::{Path, PathBuf};

fn fs_with(bytes: &[u8]) -> (MemoryFs, PathBuf) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/log")).unwrap();
    let path = PathBuf::from("/log/000004.log");
    let mut file = fs.create(&path, OpenWrite::default()).unwrap();
    file.append(bytes).unwrap();
    file.close().unwrap();
    (fs, path)
}

/// The bytes of a log holding `records`.
fn write_log(records: &[Vec<u8>], recyclable: bool) -> Vec<u8> {
    write_log_of(4, records, recyclable)
}

/// The bytes of log `number` holding `records`.
fn write_log_of(number: u64, records: &[Vec<u8>], recyclable: bool) -> Vec<u8> {
    let (fs, path) = fs_with(b"");
    let file = fs.create(&path, OpenWrite { buffer_size: 0, ..OpenWrite::default() }).unwrap();
    let mut writer = LogWriter::new(file, number, recyclable);
    for record in records {
        let (head, tail) = record.split_at(record.len() / 3);
        writer.append_parts(&[head, b"", tail]).unwrap();
    }
    writer.close().unwrap();
    fs.read_all(&path).unwrap()
}

/// The result of reading a log: its records, and the damage reported in between.
fn read_log(bytes: &[u8], mode: WalRecoveryMode) -> (Vec<Vec<u8>>, Vec<DamageKind>) {
    let (fs, path) = fs_with(bytes);
    let file = fs.open_read(&path, OpenRead::default()).unwrap();
    let mut reader = LogReader::new(file, 4, mode);
    let (mut records, mut damage) = (Vec::new(), Vec::new());
    loop {
        match reader.next().unwrap() {
            ReadOutcome::Record(record, _) => records.push(record.to_vec()),
            ReadOutcome::Damaged(found) => {
                assert!(found.error.to_string().contains("000004.log: offset"), "{}", found.error);
                damage.push(found.kind);
            }
            ReadOutcome::End => return (records, damage),
        }
    }
}

fn records_of(lens: &[usize]) -> Vec<Vec<u8>> {
    lens.iter().enumerate().map(|(i, &len)| (0..len).map(|j| (i * 31 + j * 7) as u8).collect()).collect()
}

const MODES: [WalRecoveryMode; 4] =
    [TolerateCorruptedTailRecords, AbsoluteConsistency, PointInTimeRecovery, SkipAnyCorruptedRecords];

#[test]
fn records_of_all_lengths_round_trip_across_blocks() {
    for recyclable in [false, true] {
        for offset in (BLOCK_SIZE - 40)..BLOCK_SIZE {
            let records = records_of(&[offset, 0, 1, 5, BLOCK_SIZE * 3 + 17, 100]);
            let (back, damage) = read_log(&write_log(&records, recyclable), AbsoluteConsistency);
            assert_eq!(back, records, "offset {offset}");
            assert!(damage.is_empty());
        }
    }
}

#[test]
fn bytes_are_those_rocksdb_writes() {
    let log = write_log(&[b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x05apple\x03red".to_vec()], false);
    assert_eq!(&log[..7], b"\xdb\xdc\x71\xe8\x17\x00\x01");
}

#[test]
fn a_torn_tail_is_reported_only_where_the_mode_asks() {
    let records = records_of(&[100, 200, BLOCK_SIZE * 2]);
    let log = write_log(&records, false);
    for cut in [log.len() - 1, log.len() - BLOCK_SIZE, 330, 320, 110] {
        for mode in MODES {
            let (back, damage) = read_log(&log[..cut], mode);
            assert_eq!(back, records[..back.len()]);
            let reports = matches!(mode, AbsoluteConsistency | PointInTimeRecovery);
            assert_eq!(damage == [DamageKind::TornTail], reports, "cut {cut} {mode:?}: {damage:?}");
        }
    }
}

#[test]
fn a_flipped_bit_is_reported_in_every_mode_and_never_gives_wrong_records() {
    let records = records_of(&[10, 20, 30]);
    let log = write_log(&records, false);
    for offset in 0..log.len() {
        for bit in 0..8 {
            let mut broken = log.clone();
            broken[offset] ^= 1 << bit;
            for mode in MODES {
                let (back, _) = read_log(&broken, mode);
                assert!(back.iter().all(|record| records.contains(record)), "offset {offset} bit {bit}");
                assert!(back.len() < 3, "offset {offset} bit {bit}: damage went unseen");
            }
        }
    }
    let mut broken = log.clone();
    broken[12] ^= 1;
    for mode in MODES {
        assert_eq!(read_log(&broken, mode).1, [DamageKind::Checksum], "{mode:?}");
    }
}

#[test]
fn damage_costs_the_rest_of_its_block_only() {
    let records = records_of(&[100, 100, BLOCK_SIZE, 50]);
    let mut log = write_log(&records, false);
    log[150] ^= 1;
    let (back, damage) = read_log(&log, SkipAnyCorruptedRecords);
    assert_eq!(back, [records[0].clone(), records[3].clone()]);
    assert_eq!(damage, [DamageKind::Checksum, DamageKind::Fragments]);
}

#[test]
fn zeros_behind_the_records_are_a_clean_end() {
    let records = records_of(&[100, 200]);
    let mut log = write_log(&records, false);
    log.resize(log.len() + 3 * BLOCK_SIZE, 0);
    for mode in MODES {
        assert_eq!(read_log(&log, mode), (records.clone(), vec![]));
    }
}

#[test]
fn stray_bytes_too_few_for_a_header_are_a_torn_tail() {
    let records = records_of(&[100]);
    let mut log = write_log(&records, false);
    log.extend_from_slice(b"abcd");
    assert_eq!(read_log(&log, AbsoluteConsistency).1, [DamageKind::TornTail]);
    assert_eq!(read_log(&log, TolerateCorruptedTailRecords), (records, vec![]));
}

#[test]
fn records_of_an_earlier_log_end_a_recycled_file() {
    let records = records_of(&[100, 200]);
    let mut log = write_log(&records, true);
    log.extend_from_slice(&write_log_of(99, &records_of(&[300, 300]), true));
    for mode in [TolerateCorruptedTailRecords, AbsoluteConsistency, PointInTimeRecovery] {
        assert_eq!(read_log(&log, mode), (records.clone(), vec![]), "{mode:?}");
    }
}

#[test]
fn a_damaged_log_number_does_not_end_a_recycled_file() {
    let records = records_of(&[100, 200, 300]);
    let log = write_log(&records, true);
    let second = RECYCLABLE_HEADER_LEN + 100;
    for at in second + HEADER_LEN..second + RECYCLABLE_HEADER_LEN {
        let mut broken = log.clone();
        broken[at] ^= 0x10;
        for mode in [AbsoluteConsistency, PointInTimeRecovery, SkipAnyCorruptedRecords] {
            let (back, damage) = read_log(&broken, mode);
            assert_eq!((back.as_slice(), damage), (&records[..1], vec![DamageKind::Checksum]), "{mode:?}");
        }
    }
}

#[test]
fn a_last_record_with_a_damaged_length_is_no_torn_tail() {
    let log = write_log(&records_of(&[100, 200]), false);
    let second = HEADER_LEN + 100;
    for (at, mask) in [(second + 4, 0x01), (second + 4, 0x30), (second + 5, 0x01), (second + 5, 0x80)] {
        let mut broken = log.clone();
        broken[at] ^= mask;
        for mode in MODES {
            let (back, damage) = read_log(&broken, mode);
            assert_eq!((back.len(), damage.len()), (1, 1), "{mode:?}");
            assert_ne!(damage, [DamageKind::TornTail], "{mode:?}");
        }
    }
}

#[test]
fn garbage_ends_a_recycled_file_where_tails_are_tolerated() {
    let mut log = write_log(&records_of(&[100]), true);
    log.extend_from_slice(&[0xAB; 64]);
    let (records, damage) = read_log(&log, TolerateCorruptedTailRecords);
    assert_eq!((records.len(), damage.len()), (1, 0));
}

#[test]
fn unknown_types_are_skipped_only_with_their_high_bit() {
    for (kind, skipped) in [(0x90u8, true), (40, false)] {
        let mut log = write_log(&records_of(&[10]), false);
        let crc = outcrop_base::checksum::mask(outcrop_base::checksum::crc32c(&[kind, b'x']));
        log.extend_from_slice(&crc.to_le_bytes());
        log.extend_from_slice(&[1, 0, kind, b'x']);
        let (records, damage) = read_log(&log, PointInTimeRecovery);
        assert_eq!(records.len(), 1);
        assert_eq!(damage.is_empty(), skipped, "{kind:#x}");
    }
}

#[test]
fn a_recyclable_record_does_not_end_a_log_that_was_never_recycled() {
    let mut log = write_log(&records_of(&[100, 200, 300]), false);
    log[HEADER_LEN + 100 + 6] = 5;
    for mode in [TolerateCorruptedTailRecords, AbsoluteConsistency, PointInTimeRecovery] {
        let (records, damage) = read_log(&log, mode);
        assert_eq!((records.len(), damage), (1, vec![DamageKind::UnknownType]), "{mode:?}");
    }
}

#[test]
fn zeros_are_an_end_only_if_no_record_follows_where_tails_matter() {
    let mut log = write_log(&records_of(&[100, 200, 300]), false);
    log[HEADER_LEN + 100..][..HEADER_LEN].fill(0);
    for mode in [AbsoluteConsistency, PointInTimeRecovery] {
        let (records, damage) = read_log(&log, mode);
        assert_eq!((records.len(), damage), (1, vec![DamageKind::Fragments]), "{mode:?}");
    }
    assert_eq!(read_log(&log, TolerateCorruptedTailRecords), (records_of(&[100]), vec![]));
}

#[test]
fn a_broken_length_does_not_hide_the_rest_of_a_manifest() {
    let records = records_of(&[100, 200, 300]);
    let log = write_log(&records, false);
    let mut broken = log.clone();
    broken[HEADER_LEN + 100 + 5] ^= 0x80;
    let (fs, path) = fs_with(&broken);
    let mut reader = LogReader::of_manifest(fs.open_read(&path, OpenRead::default()).unwrap());
    assert!(matches!(reader.next().unwrap(), ReadOutcome::Record(..)));
    assert!(
        matches!(reader.next().unwrap(), ReadOutcome::Damaged(damage) if damage.kind == DamageKind::Length)
    );
    let (fs, path) = fs_with(&log[..log.len() - 1]);
    let mut reader = LogReader::of_manifest(fs.open_read(&path, OpenRead::default()).unwrap());
    for record in &records[..2] {
        assert!(matches!(reader.next().unwrap(), ReadOutcome::Record(read, _) if read == record));
    }
    assert!(matches!(reader.next().unwrap(), ReadOutcome::End));
}

/// The result of reading a MANIFEST: its records, and the first damage.
fn read_manifest(bytes: &[u8]) -> (usize, Option<DamageKind>, usize) {
    let (fs, path) = fs_with(bytes);
    let mut reader = LogReader::of_manifest(fs.open_read(&path, OpenRead::default()).unwrap());
    let (mut counts, mut damage) = ([0, 0], None);
    loop {
        match reader.next().unwrap() {
            ReadOutcome::Record(..) => counts[usize::from(damage.is_some())] += 1,
            ReadOutcome::Damaged(found) if found.kind == DamageKind::TornWrite => {
                assert!(damage.is_none(), "one damage, then what is intact");
                damage = Some(found.kind);
            }
            ReadOutcome::Damaged(found) => return (counts[0], Some(found.kind), 0),
            ReadOutcome::End => return (counts[0], damage, counts[1]),
        }
    }
}

#[test]
fn a_manifest_tells_a_lost_sector_from_other_damage() {
    let records = records_of(&[100, 700, BLOCK_SIZE, 300, 40]);
    let log = write_log(&records, false);
    let zeroed = |from: usize, to: usize| {
        let mut log = log.clone();
        let to = to.min(log.len());
        log[from..to].fill(0);
        read_manifest(&log)
    };
    let lost = Some(DamageKind::TornWrite);
    // In the second record, of which the header is there; at its start; where the third goes on in the next block.
    assert_eq!(zeroed(512, usize::MAX), (1, lost, 0));
    assert_eq!(zeroed(512, 1024), (1, lost, 2), "the third starts there too");
    assert_eq!(zeroed(HEADER_LEN + 100, 512), (1, lost, 3));
    assert_eq!(zeroed(BLOCK_SIZE, BLOCK_SIZE + 512), (2, lost, 2));
    assert_eq!(zeroed(BLOCK_SIZE, usize::MAX), (2, lost, 0));
    // Zeros that no disk leaves.
    assert_eq!(zeroed(600, 1100).1, Some(DamageKind::Checksum));
    assert_eq!(zeroed(513, 1023).1, Some(DamageKind::Checksum));
    // As the file may be longer than what was written.
    let mut longer = log.clone();
    longer.resize(log.len() + 2 * BLOCK_SIZE, 0);
    let (before, _, after) = read_manifest(&longer);
    assert_eq!((before, after), (5, 0));
}

#[test]
fn a_record_after_lost_pages_is_damage_where_tails_matter() {
    for recyclable in [false, true] {
        let header = if recyclable { RECYCLABLE_HEADER_LEN } else { HEADER_LEN };
        // Frames of 256 bytes, as pages hold a whole number of.
        let records = records_of(&[256 - header; 1278]);
        let mut log = write_log(&records, recyclable);
        for lost in [0..48 * 4096, 4096..8192, BLOCK_SIZE..BLOCK_SIZE + 4096, BLOCK_SIZE - 4096..BLOCK_SIZE] {
            let kept = lost.start / 256;
            let saved = log[lost.clone()].to_vec();
            log[lost.clone()].fill(0);
            for mode in [AbsoluteConsistency, PointInTimeRecovery] {
                let (fs, path) = fs_with(&log);
                let mut reader = LogReader::new(fs.open_read(&path, OpenRead::default()).unwrap(), 4, mode);
                for record in &records[..kept] {
                    assert!(matches!(reader.next().unwrap(), ReadOutcome::Record(read, _) if read == record));
                }
                let next = reader.next().unwrap();
                assert!(
                    matches!(&next, ReadOutcome::Damaged(damage) if damage.kind == DamageKind::Fragments),
                    "{lost:?} {mode:?}: {next:?}"
                );
            }
            log[lost].copy_from_slice(&saved);
        }
    }
}

/// The tail of a block may be too short for the header of a FULL record, not for that of a FIRST one.
#[test]
fn a_record_that_starts_after_the_tail_of_a_block_inside_another_is_damage() {
    let mut log = write_log(&records_of(&[BLOCK_SIZE - 7 - 3, 10]), false);
    log[6] = 2;
    let crc = outcrop_base::checksum::crc32c(&log[6..BLOCK_SIZE - 3]);
    log[..4].copy_from_slice(&outcrop_base::checksum::mask(crc).to_le_bytes());
    for mode in MODES {
        let (records, damage) = read_log(&log, mode);
        assert_eq!((records.len(), damage), (1, vec![DamageKind::Fragments]), "{mode:?}");
    }
}

#[test]
fn a_log_says_whether_it_ended_before_its_file_did() {
    let log = write_log(&records_of(&[100, 200]), true);
    let with = |tail: &[u8]| [log.as_slice(), tail].concat();
    let old = write_log_of(3, &records_of(&[300]), true);
    for (bytes, open) in [
        (log.clone(), false),
        (with(&[0; 3 * 4096]), true),
        (with(&[crate::FILLER; 4096]), true),
        (with(&old), true),
    ] {
        let (fs, path) = fs_with(&bytes);
        let file = fs.open_read(&path, OpenRead::default()).unwrap();
        let mut reader = LogReader::new(file, 4, PointInTimeRecovery);
        while let ReadOutcome::Record(..) = reader.next().unwrap() {}
        assert_eq!(reader.ends_open(), open);
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn logs_written_by_rocksdb_are_read() {
    let (records, damage) = read_log(&fixture("11.8.1-basic-unflushed/000004.log"), AbsoluteConsistency);
    assert_eq!((records.len(), damage.len()), (5, 0));
    let (records, damage) = read_log(&fixture("11.8.1-wal-plain-fragmented/000004.log"), AbsoluteConsistency);
    assert_eq!((records.len(), damage.len()), (2, 0));
    assert!(records[1].len() > 48_000);
    let (compressed, damage) = read_log(&fixture("11.8.1-wal-zstd/000004.log"), AbsoluteConsistency);
    assert!(damage.is_empty());
    assert_eq!(compressed[0][12..], records[0][12..]);
    assert_eq!(compressed[1][12..], records[1][12..]);
}

/// The bytes of a log that names timestamp sizes before the record at `named`.
fn write_stamped_log(records: &[Vec<u8>], named: usize, sizes: &[(CfId, u16)], recyclable: bool) -> Vec<u8> {
    let (fs, path) = fs_with(b"");
    let file = fs.create(&path, OpenWrite { buffer_size: 0, ..OpenWrite::default() }).unwrap();
    let mut writer = LogWriter::new(file, 4, recyclable);
    for (number, record) in records.iter().enumerate() {
        if number == named {
            writer.name_timestamp_sizes(sizes);
        }
        writer.append(record).unwrap();
    }
    writer.close().unwrap();
    fs.read_all(&path).unwrap()
}

#[test]
fn timestamp_sizes_are_those_of_rocksdb() {
    let log = fixture("11.8.1-udt-unflushed/000004.log");
    let (fs, path) = fs_with(&log);
    let mut reader =
        LogReader::new(fs.open_read(&path, OpenRead::default()).unwrap(), 4, AbsoluteConsistency);
    let mut records = Vec::new();
    while let ReadOutcome::Record(record, _) = reader.next().unwrap() {
        records.push(record.to_vec());
        assert_eq!(reader.timestamp_sizes().clone().into_iter().collect::<Vec<_>>(), [(CfId(0), 8)]);
    }
    assert_eq!(records.len(), 4);
    assert_eq!(write_stamped_log(&records, 0, &[(CfId(0), 8)], false), log, "the same bytes");
}

#[test]
fn timestamp_sizes_are_read_wherever_they_come_in_a_block() {
    // Of the first block there is just no room left for them.
    for left in 0..30 {
        let records = records_of(&[BLOCK_SIZE - HEADER_LEN - left, 5, 7]);
        for recyclable in [false, true] {
            let log = write_stamped_log(&records, 1, &[(CfId(3), 8), (CfId(70_000), 16)], recyclable);
            for mode in MODES {
                let (fs, path) = fs_with(&log);
                let mut reader = LogReader::new(fs.open_read(&path, OpenRead::default()).unwrap(), 4, mode);
                let mut found = Vec::new();
                while let ReadOutcome::Record(record, _) = reader.next().unwrap() {
                    found.push(record.to_vec());
                    let named =
                        if found.len() == 1 { Vec::new() } else { vec![(CfId(3), 8), (CfId(70_000), 16)] };
                    assert_eq!(reader.timestamp_sizes().clone().into_iter().collect::<Vec<_>>(), named);
                }
                assert_eq!(found, records, "{left} bytes left, {mode:?}");
            }
        }
    }
}

#[test]
fn timestamp_sizes_that_come_twice_or_are_none_are_damage() {
    for sizes in [&[(CfId(3), 8), (CfId(3), 8)][..], &[(CfId(3), 0)]] {
        let log = write_stamped_log(&records_of(&[5]), 0, sizes, false);
        assert_eq!(read_log(&log, AbsoluteConsistency).1, [DamageKind::Undecodable]);
    }
}

/// The bytes of a log that names the one before it.
fn write_following_log(
    records: &[Vec<u8>],
    before: Predecessor,
    recyclable: bool,
    compressed: bool,
) -> Vec<u8> {
    let (fs, path) = fs_with(b"");
    let file = fs.create(&path, OpenWrite { buffer_size: 0, ..OpenWrite::default() }).unwrap();
    let mut writer = LogWriter::new(file, 4, recyclable);
    if compressed {
        writer = writer.compressed().unwrap();
    }
    writer.name_predecessor(before);
    assert!(writer.is_empty(), "not before there is a record");
    for record in records {
        writer.append(record).unwrap();
    }
    writer.close().unwrap();
    fs.read_all(&path).unwrap()
}

#[test]
fn the_name_of_the_log_before_is_that_of_rocksdb() {
    let log = fixture("11.8.1-wal-predecessor-info/000010.log");
    let (fs, path) = fs_with(&log);
    let mut reader =
        LogReader::new(fs.open_read(&path, OpenRead::default()).unwrap(), 10, AbsoluteConsistency);
    let ReadOutcome::Record(record, _) = reader.next().unwrap() else { panic!("there is a record") };
    let record = record.to_vec();
    let before = Predecessor { number: outcrop_base::FileNumber(8), size_bytes: 59, last_sequence: 3 };
    assert_eq!(reader.take_predecessor(), Some(before));
    assert_eq!((reader.take_predecessor(), reader.end_offset()), (None, 55));
    assert_eq!(write_following_log(&[record], before, false, false), log, "the same bytes");
}

#[test]
fn a_log_names_the_one_before_it_in_every_form() {
    let before = Predecessor { number: outcrop_base::FileNumber(3), size_bytes: 1 << 33, last_sequence: 77 };
    let records = records_of(&[100, BLOCK_SIZE * 2, 0, 7]);
    for (recyclable, compressed) in [(false, false), (true, false), (false, true), (true, true)] {
        let log = write_following_log(&records, before, recyclable, compressed);
        for mode in MODES {
            let (fs, path) = fs_with(&log);
            let mut reader = LogReader::new(fs.open_read(&path, OpenRead::default()).unwrap(), 4, mode);
            let mut found = Vec::new();
            while let ReadOutcome::Record(record, _) = reader.next().unwrap() {
                found.push(record.to_vec());
                assert_eq!(reader.take_predecessor(), (found.len() == 1).then_some(before));
            }
            assert_eq!(found, records, "{recyclable} {compressed} {mode:?}");
            assert_eq!(reader.end_offset(), log.len() as u64);
        }
    }
}

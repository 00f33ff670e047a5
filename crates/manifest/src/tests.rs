//! MANIFESTs of RocksDB's and our own, and broken ones.

use crate::{
    FileNumber, ManifestReader, ManifestWriter, RecoveredManifest, TableFile, Version, VersionBuilder,
    VersionEdit, WalAddition, WalSet, list_column_families, recover,
};
use outcrop_base::keys::{Trailer, internal_key};
use outcrop_base::{CfId, Comparator, ErrorKind, Result, SeqNum, ValueType};
use outcrop_env::{FileSystem, OpenRead, OpenWrite, memory::MemoryFs};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::Path;
use std::sync::Arc;

fn load_fixture(name: &str) -> MemoryFs {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let fs = MemoryFs::new();
    fs.create_dir_all_durably(Path::new("/db")).unwrap();
    for entry in std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let entry = entry.unwrap();
        put(&fs, entry.file_name().to_str().unwrap(), &std::fs::read(entry.path()).unwrap());
    }
    fs
}

fn put(fs: &MemoryFs, name: &str, bytes: &[u8]) {
    let mut file = fs.create(&Path::new("/db").join(name), OpenWrite::default()).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file.close().unwrap();
}

fn read(fs: &MemoryFs) -> Result<crate::RecoveredManifest> {
    recover(fs, Path::new("/db"), &|_| Some(Comparator::Bytewise), &|_| 7, true)
}

fn version(drawing: &str) -> Version {
    Version::parse(drawing, 7)
}

fn table(number: u64, range: &str) -> Arc<TableFile> {
    let drawn = version(&format!("L1: {number}[{range}]"));
    drawn.levels[1].files[0].clone()
}

#[test]
fn rocksdbs_manifests_give_their_tables() {
    for (name, level, number, size) in [
        ("11.8.1-basic", 0, 9, 1499),
        ("10.4.2-basic", 0, 9, 1355),
        ("6.29.5-basic", 0, 9, 1212),
        ("11.8.1-fv7-zstd-dict-compacted", 6, 10, 4069),
        ("11.8.1-partitioned", 0, 9, 9230),
    ] {
        let recovered = read(&load_fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let files: Vec<_> = recovered.column_families[0].version.files().collect();
        assert_eq!(files.len(), 1, "{name}");
        assert_eq!((files[0].0, files[0].1.number.0, files[0].1.size), (level, number, size), "{name}");
        assert_eq!(files[0].1.epoch, 1, "{name}: epochs are given where they lack");
        assert!(recovered.next_file_number.0 > number);
        assert_eq!(recovered.column_families[0].log_number, FileNumber(8), "{name}");
        assert_eq!(recovered.min_log_number_to_keep, FileNumber(8), "{name}");
    }
    let recovered = read(&load_fixture("11.8.1-basic")).unwrap();
    assert_eq!(recovered.db_id.as_deref(), Some("77f5e21b-adfc-4e28-b5d1-7c2b1a2dbe15"));
    assert_eq!(recovered.last_sequence, SeqNum(5));
    let (_, file) = recovered.column_families[0].version.files().next().unwrap();
    assert_eq!(file.unique_id, Some([0x9d8c_519b_ac59_bbd7, 0xcb04_3733_db77_1ba7]));
    assert_eq!((file.smallest_seq, file.largest_seq, file.tail_size), (SeqNum(1), SeqNum(5), 1406));
}

#[test]
fn column_families_of_rocksdb_are_listed() {
    let fs = load_fixture("11.8.1-cf-batch");
    assert_eq!(crate::list_column_families(&fs, Path::new("/db")).unwrap(), ["default", "cf one"]);
    let recovered = read(&fs).unwrap();
    assert_eq!(recovered.max_column_family, CfId(1));
}

#[test]
fn blob_files_of_rocksdb_are_known() {
    let recovered = read(&load_fixture("11.8.1-blob")).unwrap();
    let version = &recovered.column_families[0].version;
    let (_, table) = version.files().next().unwrap();
    let (number, blob) = version.blob_files.first_key_value().unwrap();
    assert_eq!(table.oldest_blob_file, Some(*number));
    // Five values of 100 to 104 bytes under keys of 2, each after a header of 32.
    assert_eq!((blob.file.total_count, blob.file.total_bytes), (5, 5 * 34 + 510));
    assert_eq!(blob.garbage, crate::Garbage::default());
}

#[test]
fn features_this_engine_lacks_are_refused_by_name() {
    let mut bytes = vec![0x88, 0x40];
    // Whether timestamps are persisted (8201 for 8200), and it is written as an edit of its own.
    bytes[0] = 0x89;
    bytes.extend_from_slice(&[1, 0]);
    let edit = VersionEdit::decode(&bytes).unwrap();
    assert_eq!(edit.persist_timestamps, Some(false));
    // A low timestamp of 4 bytes.
    let error = VersionEdit::decode(&[0x86, 0x40, 4, 1, 2, 3, 4]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    assert!(error.to_string().contains("timestamps of 4 bytes"), "{error}");
}

#[test]
fn a_low_timestamp_comes_back() {
    let edit = VersionEdit { full_history_low: Some(77.into()), ..VersionEdit::for_column_family(CfId(3)) };
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    assert_eq!(VersionEdit::decode(&bytes).unwrap().full_history_low, Some(77.into()));
}

#[test]
fn orders_with_timestamps_do_not_open_without() {
    let error = read(&load_fixture("11.8.1-udt")).err().expect("another order must be refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("disable user-defined timestamps"), "{error}");
}

#[test]
fn a_wrong_comparator_is_refused_with_both_names() {
    let fs = load_fixture("11.8.1-basic");
    let outcome = recover(&fs, Path::new("/db"), &|_| Some(Comparator::ReverseBytewise), &|_| 7, true);
    let error = outcome.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let text = error.to_string();
    assert!(text.contains("leveldb.BytewiseComparator") && text.contains("rocksdb.Reverse"), "{text}");
}

#[test]
fn edits_of_rocksdb_keep_their_meaning_when_written_again() {
    for name in ["11.8.1-basic", "10.4.2-basic", "6.29.5-basic", "11.8.1-cf-batch", "11.8.1-ingested"] {
        let fs = load_fixture(name);
        let manifest =
            fs.list(Path::new("/db")).unwrap().into_iter().find(|n| n.starts_with("MANIFEST")).unwrap();
        let file = fs.open_read(&Path::new("/db").join(manifest), OpenRead::default()).unwrap();
        let mut reader = LogReader::new(file, 0, WalRecoveryMode::AbsoluteConsistency);
        while let ReadOutcome::Record(bytes, _) = reader.next().unwrap() {
            let edit = VersionEdit::decode(bytes).unwrap();
            let mut again = Vec::new();
            edit.encode(&mut again);
            let back = VersionEdit::decode(&again).unwrap();
            assert_eq!(format!("{edit:?}"), format!("{back:?}"), "{name}");
        }
    }
}

#[test]
fn a_manifest_round_trips_through_snapshot_edits_and_groups() {
    let fs = MemoryFs::new();
    let dir = Path::new("/db");
    fs.create_dir_all_durably(dir).unwrap();
    let mut snapshot = VersionEdit { db_id: Some("id".into()), ..VersionEdit::default() };
    (snapshot.log_number, snapshot.next_file_number) = (Some(FileNumber(3)), Some(FileNumber(10)));
    snapshot.last_sequence = Some(SeqNum(0));
    snapshot.comparator = Some("leveldb.BytewiseComparator".into());
    let add = VersionEdit {
        column_family: CfId(2),
        column_family_add: Some("two".into()),
        max_column_family: Some(CfId(5)),
        log_number: Some(FileNumber(4)),
        ..VersionEdit::default()
    };
    let mut manifest = ManifestWriter::create(&fs, dir, FileNumber(5), &[snapshot, add]).unwrap();
    let mut first = VersionEdit::for_column_family(CfId::DEFAULT);
    first.new_files = vec![(1, table(7, "a..c")), (1, table(8, "d..f"))];
    let mut second = VersionEdit::for_column_family(CfId(2));
    second.new_files = vec![(0, table(9, "a..z"))];
    second.last_sequence = Some(SeqNum(77));
    manifest.append(&[first, second]).unwrap();
    manifest.sync().unwrap();
    let mut gone = VersionEdit::for_column_family(CfId::DEFAULT);
    gone.deleted_files = vec![(1, FileNumber(7))];
    manifest.append(&[gone]).unwrap();
    manifest.sync().unwrap();
    fs.crash();
    let recovered = read(&fs).unwrap();
    assert_eq!(recovered.column_families[0].version.to_string(), "L1: 8[d..f]@1-1,size=1,epoch=8\n");
    assert_eq!(recovered.column_families[1].name, "two");
    assert_eq!((recovered.max_column_family, recovered.last_sequence), (CfId(5), SeqNum(77)));

    // An atomic group that was cut short is as if it had never been.
    let mut third = VersionEdit::for_column_family(CfId::DEFAULT);
    third.deleted_files = vec![(1, FileNumber(8))];
    let mut manifest = ManifestWriter::create(
        &fs,
        dir,
        FileNumber(6),
        &[VersionEdit {
            log_number: Some(FileNumber(1)),
            next_file_number: Some(FileNumber(20)),
            last_sequence: Some(SeqNum(1)),
            new_files: vec![(1, table(8, "d..f"))],
            ..VersionEdit::default()
        }],
    )
    .unwrap();
    let whole = manifest.size();
    manifest.append(&[third.clone(), third]).unwrap();
    manifest.sync().unwrap();
    let path = dir.join("MANIFEST-000006");
    fs.truncate(&path, whole as usize + 20);
    assert_eq!(read(&fs).unwrap().column_families[0].version.num_files(), 1);
}

/// Everything that a reader can tell.
fn told(recovered: Result<RecoveredManifest>) -> String {
    let recovered = match recovered {
        Ok(recovered) => recovered,
        Err(error) => return error.to_string(),
    };
    let families: Vec<_> =
        recovered.column_families.iter().map(|cf| (cf.id, &cf.name, cf.version.to_string())).collect();
    format!("{} {} {families:?}", recovered.last_sequence.0, recovered.next_file_number)
}

/// A MANIFEST that grows by any number of bytes at a time is, read on, the one that is read from its beginning.
#[test]
fn a_manifest_that_grows_is_read_on() {
    let (fs, dir) = (MemoryFs::new(), Path::new("/db"));
    fs.create_dir_all_durably(dir).unwrap();
    let first = VersionEdit {
        log_number: Some(FileNumber(3)),
        next_file_number: Some(FileNumber(10)),
        last_sequence: Some(SeqNum(0)),
        ..VersionEdit::default()
    };
    let mut manifest = ManifestWriter::create(&fs, dir, FileNumber(5), &[first]).unwrap();
    for round in 0..12 {
        let edit = |place: u64, tables: u64| {
            let mut edit = VersionEdit::for_column_family(CfId::DEFAULT);
            // The last round's are gone, and the new ones stand where those were.
            let numbers =
                |round: u64| (0..tables).map(move |index| 100 + round * 10_000 + place * 2000 + index);
            let key = |index: u64| format!("{place}{index:05}");
            let files = numbers(round).zip(0..);
            edit.new_files =
                files.map(|(number, index)| (1, table(number, &format!("{0}..{0}", key(index))))).collect();
            if round > 0 {
                edit.deleted_files = numbers(round - 1).map(|number| (1, FileNumber(number))).collect();
            }
            edit.last_sequence = Some(SeqNum(round + 1));
            edit
        };
        // One that spans blocks, single ones, and a group.
        manifest.append(&[edit(0, 900)]).unwrap();
        manifest.append(&[edit(1, 3)]).unwrap();
        manifest.append(&[edit(2, 2), edit(3, 40), edit(4, 1)]).unwrap();
    }
    manifest.sync().unwrap();
    let bytes = fs.read_all(&dir.join("MANIFEST-000005")).unwrap();
    assert!(bytes.len() > 10 * 32768, "it spans blocks: {}", bytes.len());

    let order = |_: &str| Some(Comparator::Bytewise);
    let open = |fs: &MemoryFs| {
        let mut reader = ManifestReader::open(fs, dir, &order, &|_| 7, true).unwrap();
        reader.read_on().map(|()| reader)
    };
    for seed in 0..8u64 {
        let fs = MemoryFs::new();
        fs.create_dir_all_durably(dir).unwrap();
        put(&fs, "CURRENT", b"MANIFEST-000005\n");
        let mut growing = fs.create(&dir.join("MANIFEST-000005"), OpenWrite::default()).unwrap();
        let mut from_the_beginning = open(&fs).unwrap();
        let (mut len, mut state) = (0, seed);
        while len < bytes.len() {
            let mut since_the_last = open(&fs).unwrap();
            // Small and large steps, up to several blocks.
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let most = [9, 300, 9000, 90_000][(state >> 62) as usize];
            let next = (len + 1 + (state >> 20) as usize % most).min(bytes.len());
            growing.append(&bytes[len..next]).unwrap();
            len = next;
            from_the_beginning.read_on().unwrap();
            since_the_last.read_on().unwrap();
            assert_eq!(told(since_the_last.finish()), told(read(&fs)), "seed {seed}: {len} bytes");
        }
        assert_eq!(told(from_the_beginning.finish()), told(read(&fs)), "seed {seed}");
    }
}

#[test]
fn every_broken_byte_of_a_manifest_is_noticed_or_at_its_torn_end() {
    let fs = load_fixture("11.8.1-basic");
    let path = Path::new("/db/MANIFEST-000005");
    let bytes = fs.read_all(path).unwrap();
    let rows = |recovered: crate::RecoveredManifest| recovered.column_families[0].version.to_string();
    let whole = rows(read(&fs).unwrap());
    for offset in 0..bytes.len() {
        for mask in [1, 0x80] {
            fs.flip_byte(path, offset, mask);
            match read(&fs) {
                Ok(recovered) => assert!(rows(recovered) == whole || offset >= 0x72, "byte {offset}"),
                Err(error) => {
                    assert!(error.to_string().contains("MANIFEST-000005"), "byte {offset}: {error}")
                }
            }
            fs.flip_byte(path, offset, mask);
        }
    }
    for len in (0..bytes.len()).rev() {
        fs.truncate(path, len);
        if let Err(error) = read(&fs) {
            assert_eq!(error.kind(), ErrorKind::Corruption, "cut at {len}: {error}");
        }
    }
}

#[test]
fn versions_that_break_the_rules_are_refused() {
    let build = |drawing: &str| {
        let mut edit = VersionEdit::default();
        for (level, file) in version(drawing).files() {
            edit.new_files.push((level as u32, file.clone()));
        }
        let mut builder = VersionBuilder::new(&Version::empty(7), &Comparator::Bytewise, 7);
        builder.apply(&edit)?;
        builder.build(true)
    };
    assert!(build("L1: 3[a..f] 4[g..p]").is_ok());
    assert!(build("L0: 8[c..z]@5-9 7[a..m]@1-4").is_ok());
    for (broken, tables) in [
        ("L1: 3[a..g]@1-9 4[g..p]@10-12", ["3[", "4["]),
        ("L0: 8[c..z],epoch=3 7[a..m],epoch=3", ["8[", "7["]),
    ] {
        let error = build(broken).err().unwrap().to_string();
        assert!(tables.iter().all(|table| error.contains(table)), "{error}");
    }
    let base = version("L1: 3[a..f]");
    let mut builder = VersionBuilder::new(&base, &Comparator::Bytewise, 7);
    let mut edit = VersionEdit { deleted_files: vec![(2, FileNumber(3))], ..VersionEdit::default() };
    assert!(builder.apply(&edit).unwrap_err().to_string().contains("level 2"));
    edit = VersionEdit { new_files: vec![(2, table(3, "x..z"))], ..VersionEdit::default() };
    assert!(builder.apply(&edit).unwrap_err().to_string().contains("twice"));
}

#[test]
fn l0_is_newest_first() {
    let mut builder = VersionBuilder::new(&version(""), &Comparator::Bytewise, 7);
    let drawn = version("L0: 7[a..m]@1-10,epoch=1 9[a..z]@21-30,epoch=3 8[c..z]@11-20,epoch=2");
    let edit = VersionEdit {
        new_files: drawn.files().map(|(level, file)| (level as u32, file.clone())).collect(),
        ..VersionEdit::default()
    };
    builder.apply(&edit).unwrap();
    let numbers: Vec<u64> = builder.build(true).unwrap().levels[0].files.iter().map(|f| f.number.0).collect();
    assert_eq!(numbers, [9, 8, 7]);
}

#[test]
fn find_gives_the_first_table_that_ends_at_or_after_a_key() {
    let level = &version("L1: 3[aaaaaaaaa1..aaaaaaaaa3] 4[aaaaaaaaa5..aaaaaaaaa7] 5[b..d]").levels[1];
    for (key, index) in
        [("a", 0), ("aaaaaaaaa3", 0), ("aaaaaaaaa4", 1), ("aaaaaaaaa8", 2), ("d", 2), ("e", 3)]
    {
        assert_eq!(level.find(&Comparator::Bytewise, key.as_bytes(), Trailer::MAX), index, "{key}");
    }
}

#[test]
fn a_group_that_counts_past_its_type_is_corruption() {
    let fs = MemoryFs::new();
    let dir = Path::new("/db");
    fs.create_dir_all_durably(dir).unwrap();
    let edit = |remaining| VersionEdit { remaining_in_group: Some(remaining), ..VersionEdit::default() };
    ManifestWriter::create(&fs, dir, FileNumber(5), &[edit(7), edit(u32::MAX)]).unwrap();
    let error = list_column_families(&fs, dir).unwrap_err();
    assert!(error.to_string().contains("miscounted"), "{error}");
}

#[test]
fn sequence_numbers_beyond_56_bits_are_corruption() {
    let edit = |seq| VersionEdit { last_sequence: Some(SeqNum(seq)), ..VersionEdit::default() };
    let decoded = |seq| {
        let mut bytes = Vec::new();
        edit(seq).encode(&mut bytes);
        VersionEdit::decode(&bytes)
    };
    assert_eq!(decoded(SeqNum::MAX.0).unwrap().last_sequence, Some(SeqNum::MAX));
    assert!(decoded(SeqNum::MAX.0 + 1).unwrap_err().to_string().contains("tag 4"));
}

#[test]
fn tracked_wals_are_added_extended_and_deleted() {
    let add = |number, synced_bytes| VersionEdit {
        wal_additions: vec![WalAddition { number: FileNumber(number), synced_bytes }],
        ..VersionEdit::default()
    };
    let reread = |edit: &VersionEdit| {
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        VersionEdit::decode(&bytes).unwrap()
    };
    let mut wals = WalSet::default();
    assert!(wals.snapshot().is_none());
    for edit in [add(5, None), add(5, Some(100)), add(5, Some(70)), add(7, Some(9)), add(9, None)] {
        wals.apply(&reread(&edit)).unwrap();
    }
    assert!(wals.apply(&add(7, None)).unwrap_err().to_string().contains("000007.log"));
    let known = reread(&wals.snapshot().unwrap()).wal_additions;
    let as_pairs: Vec<_> = known.iter().map(|wal| (wal.number.0, wal.synced_bytes)).collect();
    assert_eq!(as_pairs, [(5, Some(100)), (7, Some(9)), (9, None)]);
    assert!(wals.tracks_before(FileNumber(6)) && !wals.tracks_before(FileNumber(5)));
    let deletion = VersionEdit { wal_deletion: Some(FileNumber(7)), ..VersionEdit::default() };
    wals.apply(&reread(&deletion)).unwrap();
    wals.apply(&add(6, Some(1))).unwrap();
    assert!(!wals.tracks_before(FileNumber(7)), "what comes late for a deleted WAL is passed over");

    let fs = MemoryFs::new();
    fs.create_dir_all_durably(Path::new("/db")).unwrap();
    let missing = wals.verify(&fs, Path::new("/db")).unwrap_err();
    assert!(
        missing.kind() == ErrorKind::Corruption && missing.to_string().contains("000007.log"),
        "{missing}"
    );
    put(&fs, "000007.log", b"12345678");
    let short = wals.verify(&fs, Path::new("/db")).unwrap_err();
    assert!(short.kind() == ErrorKind::Corruption && short.to_string().contains("8 bytes"), "{short}");
    fs.remove_file(Path::new("/db/000007.log")).unwrap();
    put(&fs, "000007.log", b"123456789");
    wals.verify(&fs, Path::new("/db")).unwrap();
}

#[test]
fn wals_tracked_by_rocksdb_are_known() {
    // As RocksDB wrote them before they had a length: WAL 4 with 10 bytes, then the deletion of those below 5.
    let old = VersionEdit::decode(&[0x84, 0x40, 4, 2, 10, 1]).unwrap();
    assert_eq!(old.wal_additions, [WalAddition { number: FileNumber(4), synced_bytes: Some(10) }]);
    assert_eq!(VersionEdit::decode(&[0x85, 0x40, 5]).unwrap().wal_deletion, Some(FileNumber(5)));
    assert!(VersionEdit::decode(&[0x84, 0x40, 4, 3, 10, 1]).is_err(), "a tag that nobody knows");
}

#[test]
fn bounds_are_written_so_that_old_readers_know_their_types() {
    let written = |bound: Vec<u8>| {
        let file = TableFile::new(FileNumber(7), 100, bound, internal_key(b"z", SeqNum(1), ValueType::Value));
        let mut edit = VersionEdit::default();
        edit.new_files.push((1, Arc::new(file)));
        let mut bytes = Vec::new();
        edit.encode(&mut bytes);
        VersionEdit::decode(&bytes).unwrap().new_files[0].1.smallest.to_vec()
    };
    let key = |seq, value_type| internal_key(b"k", seq, value_type);
    for value_type in [ValueType::Deletion, ValueType::RangeDeletion, ValueType::BlobIndex] {
        assert_eq!(written(key(SeqNum(437), value_type)), key(SeqNum(437), value_type));
    }
    // As RocksDB 8.11 writes where a range tombstone goes on from the file before, which ends below the key.
    for unknown in [ValueType::WideColumnEntity, ValueType::FOR_SEEK] {
        let bound = written(key(SeqNum(437), unknown));
        assert_eq!(bound, key(SeqNum(438), ValueType::Deletion));
        let order = Comparator::Bytewise;
        assert!(order.compare_internal(&bound, &key(SeqNum(437), unknown)).is_lt());
        assert!(order.compare_internal(&key(SeqNum::MAX, ValueType::RangeDeletion), &bound).is_lt());
    }
}

#[test]
fn bounds_that_are_written_do_not_make_tables_overlap() {
    // RocksDB ends a table within the versions of a key. An older reader knows the type of neither bound that follows.
    let key = |key: &[u8], seq, value_type| internal_key(key, SeqNum(seq), value_type);
    for last in [ValueType::Deletion, ValueType::Value] {
        for first in [ValueType::WideColumnEntity, ValueType::FOR_SEEK] {
            let tables = [
                (key(b"a", 3, ValueType::Value), key(b"k", 11, last)),
                (key(b"k", 10, first), key(b"z", 4, ValueType::Value)),
            ];
            let tables = tables.into_iter().zip(7..);
            let table =
                |((first, last), number)| (1, Arc::new(TableFile::new(FileNumber(number), 10, first, last)));
            let edit = VersionEdit { new_files: tables.map(table).collect(), ..VersionEdit::default() };
            let mut bytes = Vec::new();
            edit.encode(&mut bytes);
            for edit in [edit, VersionEdit::decode(&bytes).unwrap()] {
                let mut builder = VersionBuilder::new(&Version::empty(7), &Comparator::Bytewise, 7);
                builder.apply(&edit).unwrap();
                assert_eq!(builder.build(true).unwrap().num_files(), 2, "{last:?}, {first:?}");
            }
        }
    }
}

#[test]
fn cursors_of_rounds_are_kept_from_version_to_version() {
    let key = |text: &str| internal_key(text.as_bytes(), SeqNum(7), ValueType::Value);
    let edit = VersionEdit { compact_cursors: vec![(1, key("g")), (3, key("x"))], ..VersionEdit::default() };
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    let read = VersionEdit::decode(&bytes).unwrap();
    assert_eq!(read.compact_cursors, edit.compact_cursors);
    let mut builder = VersionBuilder::new(&Version::empty(7), &Comparator::Bytewise, 7);
    builder.apply(&read).unwrap();
    let first = builder.build(true).unwrap();
    let mut builder = VersionBuilder::new(&first, &Comparator::Bytewise, 7);
    builder.apply(&VersionEdit { compact_cursors: vec![(1, key("j"))], ..VersionEdit::default() }).unwrap();
    let second = builder.build(true).unwrap();
    assert_eq!(second.compact_cursors, [(1, key("j")), (3, key("x"))].into_iter().collect());
    // Too short to be an internal key.
    assert!(VersionEdit::decode(&[5, 1, 3, b'a', b'b', b'c']).is_err());
}

#[test]
fn a_table_keeps_the_number_of_its_path_and_is_found_there() {
    let in_path = |path_id: u32| {
        let key = internal_key(b"a", SeqNum(1), ValueType::Value);
        let mut file = TableFile::new(FileNumber(7), 100, key.clone(), key);
        (file.path_id, file.epoch) = (path_id, 1);
        VersionEdit { new_files: vec![(1, Arc::new(file))], ..VersionEdit::default() }
    };
    let decoded = |path_id: u32| {
        let mut bytes = Vec::new();
        in_path(path_id).encode(&mut bytes);
        VersionEdit::decode(&bytes)
    };
    assert_eq!(decoded(3).unwrap().new_files[0].1.path_id, 3);
    assert_eq!(decoded(4).unwrap_err().kind(), ErrorKind::Corruption);

    let version = |path_id: u32| {
        let mut builder = VersionBuilder::new(&Version::empty(7), &Comparator::Bytewise, 7);
        builder.apply(&in_path(path_id)).unwrap();
        builder.build(true).unwrap()
    };
    let dirs: Vec<Arc<Path>> = ["/one", "/two"].map(|dir| Arc::from(Path::new(dir))).to_vec();
    let located = version(1).located(&dirs, &Comparator::Bytewise).unwrap();
    let (_, file) = located.files().next().unwrap();
    assert_eq!(file.path(Path::new("/db")), Path::new("/two/000007.sst"));
    let own = version(0).located(&[], &Comparator::Bytewise).unwrap();
    assert_eq!(own.files().next().unwrap().1.path(Path::new("/db")), Path::new("/db/000007.sst"));
    for (path_id, dirs) in [(1, &dirs[..1]), (1, &[][..]), (3, &dirs[..])] {
        let error = version(path_id).located(dirs, &Comparator::Bytewise).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

//! Damaged tables without `paranoid_checks`: reads of what is damaged fail, and everything else goes on.

use crate::harness::{creating, until};
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Heard(Mutex<Vec<DamageInfo>>);

impl EventListener for Heard {
    fn damage_found(&self, db: &Arc<Db>, damage: &DamageInfo) {
        assert!(db.quarantined_tables().iter().any(|table| table.number == damage.number));
        self.0.lock().unwrap().push(damage.clone());
    }
}

fn small() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        level0_file_num_compaction_trigger: 2,
        max_bytes_for_level_base: 64 << 10,
        target_file_size_base: 32 << 10,
        ..ColumnFamilyOptions::default()
    }
}

fn builder(fs: &MemoryFs, family: ColumnFamilyOptions, heard: &Arc<Heard>) -> DbBuilder {
    Db::builder("/db")
        .env(Env { fs: Arc::new(fs.clone()), ..Env::memory() })
        .options(DbOptions { paranoid_checks: false, ..creating() })
        .default_column_family(family)
        .listener(heard.clone())
}

fn key(group: char, row: u32) -> String {
    format!("{group}{row:04}")
}

/// One table of each group, where compactions leave it.
fn fill(db: &Db, groups: &str, value: &str) {
    for group in groups.chars() {
        (0..500).for_each(|row| db.put(key(group, row), value.repeat(20)).unwrap());
        db.flush().unwrap();
    }
}

/// Changes a byte of a data block in the middle of the table that begins with `smallest`; gives its number.
fn damage(fs: &MemoryFs, db: &Db, smallest: &str) -> u64 {
    let files = db.live_files();
    let file =
        files.iter().find(|file| file.smallest_key == smallest.as_bytes()).expect("there is such a table");
    let path = Path::new("/db").join(&file.name);
    let mut bytes = fs.read_all(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    let mut writer = fs.create(&path, OpenWrite::default()).unwrap();
    writer.append(&bytes).unwrap();
    writer.close().unwrap();
    file.number
}

fn wait(db: &Db) {
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
}

/// Three groups on the last level, the second of them damaged, and compactions as they come.
fn damaged(fs: &MemoryFs, family: ColumnFamilyOptions, heard: &Arc<Heard>) -> (Db, u64) {
    let manual = ColumnFamilyOptions { disable_auto_compactions: true, ..family.clone() };
    let db = builder(fs, manual, heard).open().unwrap();
    for group in ["a", "b", "c"] {
        fill(&db, group, "old");
        let numbers: Vec<u64> =
            db.live_files().iter().filter(|file| file.level == 0).map(|file| file.number).collect();
        db.compact_files(&numbers, 6).unwrap();
    }
    let number = damage(fs, &db, "b0000");
    drop(db);
    (builder(fs, family, heard).open().unwrap(), number)
}

/// How many rows of a group are `value`, or cannot be read.
fn rows(db: &Db, group: char, value: &str) -> (usize, usize) {
    let (mut found, mut damaged) = (0, 0);
    for row in 0..500 {
        match db.get(key(group, row)) {
            Ok(read) => found += usize::from(read.as_deref() == Some(value.repeat(20).as_bytes())),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption);
                damaged += 1;
            }
        }
    }
    (found, damaged)
}

#[test]
fn compactions_leave_a_damaged_table_alone_and_the_rest_goes_on() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number) = damaged(&fs, small(), &heard);
    assert!(db.quarantined_tables().is_empty(), "nobody has found it");
    for round in 0..10 {
        fill(&db, "abcd", &format!("{round}"));
    }
    wait(&db);
    let held = db.quarantined_tables();
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].number, held[0].level, &*held[0].cf_name), (number, Some(6), "default"));
    assert_eq!(held[0].range.as_ref().unwrap().0, b"b0000");
    assert!(held[0].error.to_string().contains(&format!("{number:06}.sst")), "{}", held[0].error);
    let told: Vec<u64> = heard.0.lock().unwrap().iter().map(|damage| damage.number).collect();
    assert_eq!(told, [number], "once");
    assert!(db.metrics().contains("\noutcrop_quarantined_tables 1\n"));
    let log = String::from_utf8(fs.read_all(Path::new("/db/LOG")).unwrap()).unwrap();
    assert!(log.contains(&format!("quarantine: compactions leave /db/{number:06}.sst alone")), "{log}");
    // Newer rows are read; L0 does not grow, and other tables of the last level were replaced.
    for group in "abcd".chars() {
        assert_eq!(rows(&db, group, "9"), (500, 0));
    }
    let files = db.live_files();
    assert!(files.iter().filter(|file| file.level == 0).count() <= 2, "{files:#?}");
    assert!(files.iter().any(|file| file.number == number));

    // A caller that asks for it hears why not; beside it all is as it was.
    let refused = db.compact_range(Some(b"b"), Some(b"c")).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Corruption && refused.to_string().contains("is damaged"),
        "{refused}"
    );
    db.compact_range(Some(b"d"), Some(b"e")).unwrap();
    let refused = db.compact_files(&[number], 6).unwrap_err();
    assert!(refused.to_string().contains("is damaged"), "{refused}");

    // It is given up, and everything is possible again.
    db.delete_files_in_ranges(&[(Some(b"b"), Some(b"c"))], RangeEnd::Exclusive).unwrap();
    assert!(db.quarantined_tables().is_empty());
    db.compact_range(None, None).unwrap();
    assert_eq!((rows(&db, 'a', "9"), rows(&db, 'c', "9")), ((500, 0), (500, 0)));
}

#[test]
fn reads_of_a_damaged_table_fail_where_the_damage_is() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, _) = damaged(&fs, small(), &heard);
    fill(&db, "ac", "new");
    fill(&db, "ac", "newer");
    db.put("b", "between").unwrap();
    db.put("bz", "between").unwrap();
    db.flush().unwrap();
    wait(&db);
    assert_eq!(db.quarantined_tables().len(), 1);
    let (found, damaged) = rows(&db, 'b', "old");
    assert!(found + damaged == 500 && damaged > 0 && damaged < 250, "{found} rows are whole");
    assert_eq!((rows(&db, 'a', "newer"), rows(&db, 'c', "newer")), ((500, 0), (500, 0)));
}

#[test]
fn a_damaged_table_of_l0_stops_no_writes() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let manual = ColumnFamilyOptions { disable_auto_compactions: true, ..small() };
    let db = builder(&fs, manual, &heard).open().unwrap();
    // They overlap, or compactions would move them unread.
    fill(&db, "aa", "old");
    let number = damage(&fs, &db, "a0000");
    drop(db);
    let stopping =
        ColumnFamilyOptions { level0_slowdown_writes_trigger: 30, level0_stop_writes_trigger: 30, ..small() };
    let db = builder(&fs, stopping, &heard).open().unwrap();
    for round in 0..60 {
        fill(&db, "b", &format!("{round}"));
    }
    wait(&db);
    assert_eq!(db.quarantined_tables().iter().map(|table| table.number).collect::<Vec<_>>(), [number]);
    assert_eq!(rows(&db, 'b', "59"), (500, 0));
}

#[test]
fn resuming_lets_compactions_try_again() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number) = damaged(&fs, small(), &heard);
    let path = format!("/db/{number:06}.sst");
    let damaged = fs.read_all(Path::new(&path)).unwrap();
    fill(&db, "bb", "new");
    wait(&db);
    assert_eq!(db.quarantined_tables().len(), 1);
    // Still damaged: it is found once more.
    db.resume().unwrap();
    assert!(db.quarantined_tables().is_empty());
    assert_eq!(db.compact_range(None, None).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(db.quarantined_tables().len(), 1);
    // Restored, and opened anew: the file that was open is another in this file system.
    drop(db);
    let mut whole = damaged;
    let middle = whole.len() / 2;
    whole[middle] ^= 4;
    let mut writer = fs.create(Path::new(&path), OpenWrite::default()).unwrap();
    writer.append(&whole).unwrap();
    writer.close().unwrap();
    let db = builder(&fs, small(), &heard).open().unwrap();
    db.compact_range(None, None).unwrap();
    assert!(db.quarantined_tables().is_empty());
    assert_eq!((rows(&db, 'a', "old"), rows(&db, 'b', "new")), ((500, 0), (500, 0)));
}

#[test]
fn what_the_scrubber_finds_is_left_alone_before_a_compaction_meets_it() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number) = damaged(&fs, small(), &heard);
    let fast = ScrubOptions { bytes_per_second: 1 << 40, period: Duration::from_secs(100_000) };
    db.set_scrub(Some(fast)).unwrap();
    until("the scrubber finds it", || db.scrub_progress().damaged_files == 1);
    until("listeners are told", || heard.0.lock().unwrap().len() == 1);
    assert_eq!(db.quarantined_tables()[0].number, number);
    db.set_scrub(None).unwrap();
    fill(&db, "abab", "new");
    wait(&db);
    assert_eq!(heard.0.lock().unwrap().len(), 1, "no compaction fails");
    assert_eq!(db.property("rocksdb.background-errors").as_deref(), Some("0"));
}

#[test]
fn a_table_that_is_gone_is_left_alone_too() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number) = damaged(&fs, small(), &heard);
    drop(db);
    fs.remove_file(Path::new(&format!("/db/{number:06}.sst"))).unwrap();
    let db = builder(&fs, small(), &heard).open().unwrap();
    for round in 0..4 {
        fill(&db, "abc", &format!("{round}"));
    }
    wait(&db);
    assert_eq!(db.quarantined_tables()[0].number, number);
    assert_eq!((rows(&db, 'a', "3"), rows(&db, 'b', "3")), ((500, 0), (500, 0)));
}

/// As [`small`], with values in blob files, which compactions move out of all but the newest.
fn with_blobs() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        enable_blob_files: true,
        min_blob_size: 10,
        enable_blob_garbage_collection: true,
        blob_garbage_collection_age_cutoff: 1.0,
        ..small()
    }
}

/// Three groups on the last level, each with its blob file; the value of row 251 of the second is damaged. Gives the number of that
/// group's table, and the blob file.
fn with_damaged_blob(fs: &MemoryFs, heard: &Arc<Heard>) -> (Db, u64, PathBuf) {
    let manual = ColumnFamilyOptions {
        disable_auto_compactions: true,
        enable_blob_garbage_collection: false,
        ..with_blobs()
    };
    let db = builder(fs, manual, heard).open().unwrap();
    for group in ["a", "b", "c"] {
        fill(&db, group, "old");
        let numbers: Vec<u64> =
            db.live_files().iter().filter(|file| file.level == 0).map(|file| file.number).collect();
        db.compact_files(&numbers, 6).unwrap();
    }
    let files = db.live_files();
    let number = files.iter().find(|file| file.smallest_key == b"b0000").expect("it is there").number;
    let mut blobs: Vec<PathBuf> = fs.files().into_iter().map(|(path, _)| path).collect();
    blobs.retain(|path| path.to_string_lossy().ends_with(".blob"));
    blobs.sort();
    assert_eq!(blobs.len(), 3);
    let blob = blobs.swap_remove(1);
    // A header of 30 bytes, then records of 32, the key and the value.
    flip(fs, &blob, 30 + 251 * (32 + 5 + 60) + 32 + 5 + 7);
    drop(db);
    (builder(fs, with_blobs(), heard).open().unwrap(), number, blob)
}

fn flip(fs: &MemoryFs, path: &Path, at: usize) {
    let mut bytes = fs.read_all(path).unwrap();
    bytes[at] ^= 4;
    let mut writer = fs.create(path, OpenWrite::default()).unwrap();
    writer.append(&bytes).unwrap();
    writer.close().unwrap();
}

/// Every other row of each group.
fn fill_half(db: &Db, groups: &str, value: &str) {
    for group in groups.chars() {
        (0..500).step_by(2).for_each(|row| db.put(key(group, row), value.repeat(20)).unwrap());
        db.flush().unwrap();
    }
}

#[test]
fn tables_with_values_in_a_damaged_blob_file_are_left_alone_and_the_rest_goes_on() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number, blob) = with_damaged_blob(&fs, &heard);
    let name = blob.file_name().unwrap().to_str().unwrap();
    for round in 0..10 {
        fill_half(&db, "abcd", &format!("{round}"));
    }
    wait(&db);
    let held = db.quarantined_tables();
    assert_eq!(held.iter().map(|table| (table.number, table.level)).collect::<Vec<_>>(), [(number, Some(6))]);
    assert!(held[0].error.to_string().contains(name), "{}", held[0].error);
    let told: Vec<(u64, String)> =
        heard.0.lock().unwrap().iter().map(|damage| (damage.number, damage.error.to_string())).collect();
    assert!(told.len() == 1 && told[0].0 == number && told[0].1.contains(name), "{told:?}");
    let log = String::from_utf8(fs.read_all(Path::new("/db/LOG")).unwrap()).unwrap();
    let line = log.lines().find(|line| line.contains("quarantine: compactions leave")).expect("LOG tells");
    assert!(line.contains(&format!("{number:06}.sst")) && line.contains(name), "{line}");
    // Half of the rows are new; of the others one cannot be read. L0 does not grow.
    assert_eq!(rows(&db, 'b', "9"), (250, 1));
    assert_eq!(rows(&db, 'b', "old"), (249, 1));
    for group in ['a', 'c'] {
        assert_eq!((rows(&db, group, "9"), rows(&db, group, "old")), ((250, 0), (250, 0)));
    }
    let files = db.live_files();
    assert!(files.iter().filter(|file| file.level == 0).count() <= 2, "{files:#?}");
    let refused = db.compact_range(Some(b"b"), Some(b"c")).unwrap_err();
    assert!(refused.kind() == ErrorKind::Corruption && refused.to_string().contains(name), "{refused}");

    // Restored, and opened anew: the file that was open is another in this file system.
    drop(db);
    flip(&fs, &blob, 30 + 251 * (32 + 5 + 60) + 32 + 5 + 7);
    let db = builder(&fs, with_blobs(), &heard).open().unwrap();
    db.compact_range(None, None).unwrap();
    assert!(db.quarantined_tables().is_empty());
    assert_eq!((rows(&db, 'b', "9"), rows(&db, 'b', "old")), ((250, 0), (250, 0)));
}

#[test]
fn tables_whose_blob_file_is_gone_are_left_alone_too() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, number, blob) = with_damaged_blob(&fs, &heard);
    drop(db);
    fs.remove_file(&blob).unwrap();
    let db = builder(&fs, with_blobs(), &heard).open().unwrap();
    for round in 0..4 {
        fill_half(&db, "abc", &format!("{round}"));
    }
    wait(&db);
    let held = db.quarantined_tables();
    assert_eq!(held.iter().map(|table| table.number).collect::<Vec<_>>(), [number]);
    assert_eq!((rows(&db, 'a', "3"), rows(&db, 'a', "old")), ((250, 0), (250, 0)));
    db.delete_files_in_ranges(&[(Some(b"b"), Some(b"c"))], RangeEnd::Exclusive).unwrap();
    db.compact_range(None, None).unwrap();
    assert!(db.quarantined_tables().is_empty());
    assert_eq!((rows(&db, 'c', "3"), rows(&db, 'c', "old")), ((250, 0), (250, 0)));
}

#[test]
fn with_paranoid_checks_damage_stops_writes() {
    let (fs, heard) = (MemoryFs::default(), Arc::new(Heard::default()));
    let (db, _) = damaged(&fs, small(), &heard);
    drop(db);
    let db = builder(&fs, small(), &heard)
        .options(DbOptions { paranoid_checks: true, ..creating() })
        .open()
        .unwrap();
    let stopped = (0..100).find_map(|round| {
        let write = || db.put(key('b', round), "x").and_then(|()| db.flush());
        write().and_then(|()| db.wait_for_compact(&WaitForCompactOptions::default())).err()
    });
    assert_eq!(stopped.expect("writes stop").kind(), ErrorKind::Corruption);
    assert!(db.quarantined_tables().is_empty());
}

//! Compactions that read other than as many entries as their tables say that they have.

use crate::harness::creating;
use outcrop::options::ChecksumType;
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use outcrop_options::kept::DB_KEPT;
use std::path::Path;
use std::sync::Arc;

fn open(fs: &MemoryFs, verifies: bool) -> Db {
    let mut options = creating();
    options.kept.set(DB_KEPT, "compaction_verify_record_count", &verifies.to_string()).unwrap();
    let mut family = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    // Properties can be changed then, and the table is none the worse for it.
    family.table.checksum = ChecksumType::None;
    Db::builder("/db")
        .env(Env { fs: Arc::new(fs.clone()), ..Env::memory() })
        .options(options)
        .default_column_family(family)
        .open()
        .unwrap()
}

/// Has the table `name` say that it holds one entry more than it does.
fn add_an_entry(fs: &MemoryFs, name: &str, entries: u8) {
    let path = Path::new("/db").join(name);
    let mut bytes = fs.read_all(&path).unwrap();
    // The name begins as the one before, `rocksdb.num.deletions`, does: 12 bytes shared, 7 of its own, and 1 of the value.
    let key = b"\x0c\x07\x01entries";
    let at =
        bytes.windows(key.len()).position(|window| window == key).expect("the property is there") + key.len();
    assert_eq!(bytes[at], entries);
    bytes[at] += 1;
    let mut writer = fs.create(&path, OpenWrite::default()).unwrap();
    writer.append(&bytes).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_compaction_that_passes_an_entry_by_fails_and_keeps_its_tables_unless_that_is_switched_off() {
    for verifies in [true, false] {
        let fs = MemoryFs::new();
        let db = open(&fs, true);
        for key in ["a", "b", "c"] {
            db.put(key, "1").unwrap();
        }
        db.delete_range("x", "z").unwrap();
        db.flush().unwrap();
        db.put("b", "2").unwrap();
        db.flush().unwrap();
        let files = db.live_files();
        let larger = files.iter().find(|file| file.num_entries == 4).expect("the first table").name.clone();
        drop(db);
        add_an_entry(&fs, &larger, 4);
        let db = open(&fs, verifies);
        let compacted = db.compact_range(None, None);
        let rows: Vec<_> =
            db.iter().map(|row| row.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(rows.len(), 3);
        if verifies {
            let error = compacted.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            let expected = "Expected 5 entries in the tables of a compaction, but read 4";
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(db.live_files().len(), 2);
        } else {
            compacted.unwrap();
            assert_eq!(db.live_files().len(), 1);
        }
    }
}

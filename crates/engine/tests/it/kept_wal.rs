//! The WAL that is not needed any more is written over by the next: while somebody writes, and only if nobody else has it.

use crate::harness::{creating, until};
use outcrop::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = std::env::temp_dir().join(format!("outcrop-kept-wal-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn open(&self) -> Db {
        let families = vec![ColumnFamilyDescriptor::default_with(Default::default(), Default::default())];
        Db::builder(&self.0).options(creating()).env(Env::posix()).column_families(families).open().unwrap()
    }

    fn wals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let mut wals: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
        wals.sort();
        wals
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes `rows` rows to a WAL of their own, and waits until it is not needed.
fn fill_a_wal(db: &Db, round: u32, rows: u32) {
    for row in 0..rows {
        let key = format!("{round:04} {row:04}");
        db.put(key.as_bytes(), [round as u8; 400]).unwrap();
    }
    db.flush().unwrap();
}

/// Which file was the WAL of each round.
fn inodes_of_rounds(dir: &Dir, db: &Db, rounds: std::ops::Range<u32>) -> Vec<u64> {
    let inode = |path: &Path| fs::metadata(path).map_or(0, |data| data.ino());
    rounds
        .map(|round| {
            let inode = inode(dir.wals().last().unwrap());
            fill_a_wal(db, round, 50);
            until("the obsolete WAL is kept or gone", || dir.wals().len() <= 2);
            inode
        })
        .collect()
}

#[test]
fn a_wal_is_written_over_and_goes_once_nobody_writes() {
    let dir = Dir::new("over");
    let db = dir.open();
    let inodes = inodes_of_rounds(&dir, &db, 0..12);
    let different: BTreeSet<u64> = inodes.iter().copied().collect();
    assert!(different.len() < inodes.len(), "no file was used again: {inodes:?}");
    until("the WAL that is kept goes", || dir.wals().len() == 1);
    inodes_of_rounds(&dir, &db, 12..16);
    db.close().unwrap();
    assert_eq!(dir.wals().len(), 1, "and when the database is closed");
    let db = dir.open();
    for round in 0..16u32 {
        for row in 0..50u32 {
            let key = format!("{round:04} {row:04}");
            let found = db.get(key.as_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(&[round as u8; 400][..]), "{key}");
        }
    }
}

#[test]
fn a_wal_with_another_name_is_left_alone() {
    let dir = Dir::new("linked");
    let db = dir.open();
    let mut linked = Vec::new();
    for round in 0..8 {
        let wal = dir.wals().pop().unwrap();
        let name = dir.0.join(format!("linked-{round}"));
        fs::hard_link(&wal, &name).unwrap();
        fill_a_wal(&db, round, 50);
        // It ends where its records do.
        linked.push((fs::read(&name).unwrap(), name));
    }
    for (bytes, name) in linked {
        assert!(bytes.len() > 50 * 400);
        assert!(fs::read(&name).unwrap() == bytes, "{}", name.display());
    }
}

#[test]
fn a_wal_is_not_written_over_under_its_reader() {
    let dir = Dir::new("read");
    let db = dir.open();
    // More than a reader takes at a time.
    const ROWS: u32 = 500;
    for row in 0..ROWS {
        let key = format!("first {row:04}");
        db.put(key.as_bytes(), [7; 400]).unwrap();
    }
    let mut updates = db.updates_since(SeqNum(1)).unwrap();
    assert!(updates.next_batch().unwrap().is_some());
    for round in 0..6 {
        fill_a_wal(&db, round, 600);
        until("obsolete WALs are gone", || dir.wals().len() <= 2);
    }
    for row in 1..ROWS {
        let (first, _) = updates.next_batch().unwrap().expect("the file it reads is still there");
        assert_eq!(first, SeqNum(u64::from(row) + 1));
    }
}

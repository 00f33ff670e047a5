//! Real file systems that are full while a WAL is written: an error, and what was acknowledged is there once there is room again.
//!
//! Each is mounted from a file in a namespace of its own, seen by nobody else. Where that is not allowed, or the system cannot
//! make such a file system, the test is skipped with a word.

use crate::harness::{contents, creating, descriptor};
use outcrop::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the child process: the mounted file system, and what is done to the WAL before the disk is full.
const CHILD: &str = "OUTCROP_FULL_DISK";

/// The history of the database before the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Its files are copied so that the copies share their blocks, as backups do it.
    Copied,
}

/// Runs the child on a new file system that `make` makes of the file `image`.
fn on(make: &str, before: Before) {
    let dir = tempfile::tempdir().unwrap();
    let program = make.split(' ').next().unwrap();
    let script = format!(
        "command -v {program} > /dev/null || {{ echo no {program}; exit 77; }}
         truncate -s 320M image && mkdir disk && {make} image > made 2>&1 || {{ cat made; exit 77; }}
         mount -o loop image disk || exit 77
         exec \"$0\" --exact full_disk::child_on_a_full_disk --nocapture --test-threads=1"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, format!("{before:?}"))
        .current_dir(dir.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("skipped: cannot run unshare: {error}"),
    };
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || said.starts_with("unshare:") {
        return println!("skipped: {make}: cannot be mounted here: {said}");
    }
    assert!(output.status.success(), "{make}, {before:?}: {}: {said}", output.status);
    assert!(said.contains("1 passed"), "{said}");
}

fn put(db: &Db, number: u64) -> Result<()> {
    let mut value = vec![0; 1000];
    // Nothing that a file system could compress.
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for byte in &mut value {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
    db.put(number.to_be_bytes(), &value)
}

fn open(dir: &Path) -> Db {
    // The WAL grows by 400 MB before a memtable is full, and no write waits for anything.
    let options = ColumnFamilyOptions { write_buffer_size: 400 << 20, ..ColumnFamilyOptions::default() };
    let path = dir.join("db").to_str().unwrap().to_string();
    Db::builder(path)
        .options(creating())
        .env(Env::posix())
        .column_family(descriptor("default", &options))
        .open()
        .unwrap()
}

/// Writes zeros until there is no room.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    for piece in [1 << 20, 4096, 512] {
        while file.write_all(&vec![0x5A; piece]).is_ok() {}
    }
    // Delayed allocation finds out only now.
    let _ = file.sync_all();
}

fn copy_sharing_blocks(disk: &Path) {
    let copy = Command::new("cp").args(["-r", "--reflink=always", "db", "copy"]).current_dir(disk).status();
    assert!(copy.unwrap().success(), "blocks can be shared");
}

/// Writes to a WAL, in a file of its own and over an earlier one, while the disk becomes full.
#[test]
fn child_on_a_full_disk() {
    let Ok(before) = std::env::var(CHILD) else { return };
    let disk = PathBuf::from("disk");
    let db = open(&disk);
    let mut acknowledged = 0;
    let mut write = |db: &Db, count: u64| {
        for _ in 0..count {
            put(db, acknowledged)?;
            acknowledged += 1;
        }
        Ok::<_, Error>(acknowledged)
    };
    for round in 0..2 {
        write(&db, 3000).unwrap();
        if round == 0 {
            // The next WAL is written over this one.
            db.flush().unwrap();
        }
    }
    if before == format!("{:?}", Before::Copied) {
        copy_sharing_blocks(&disk);
    }
    fill(&disk.join("filler"));
    let error = write(&db, 300_000).expect_err("the disk is full");
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    drop(db);
    fs::remove_file(disk.join("filler")).unwrap();
    let db = open(&disk);
    let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
    assert!(rows.len() as u64 >= acknowledged, "{acknowledged} acknowledged, {} rows", rows.len());
}

#[test]
fn ext4_that_is_full_is_an_error() {
    on("mkfs.ext4 -q -F", Before::Nothing);
}

#[test]
fn btrfs_that_is_full_is_an_error() {
    on("mkfs.btrfs -q", Before::Nothing);
}

#[test]
fn btrfs_that_is_full_after_a_copy_is_an_error() {
    on("mkfs.btrfs -q", Before::Copied);
}

#[test]
fn xfs_that_is_full_is_an_error() {
    on("mkfs.xfs -q -m reflink=0", Before::Nothing);
}

#[test]
fn xfs_that_is_full_after_a_copy_is_an_error() {
    on("mkfs.xfs -q -m reflink=1", Before::Copied);
}

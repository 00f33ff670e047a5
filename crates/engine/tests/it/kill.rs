//! A process is killed while it writes to the real file system; acknowledged writes are there afterwards.

use crate::harness::{contents, creating, descriptor};
use outcrop::*;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Set in the child process: the directory it writes to.
const CHILD: &str = "OUTCROP_KILL_TEST_DIR";

fn options() -> ColumnFamilyOptions {
    ColumnFamilyOptions { write_buffer_size: 64 << 10, ..ColumnFamilyOptions::default() }
}

fn open(dir: &str) -> Db {
    Db::builder(dir)
        .options(creating())
        .env(Env::posix())
        .column_family(descriptor("default", &options()))
        .open()
        .unwrap()
}

/// The child: writes ascending keys and says after each which one was acknowledged.
#[test]
fn child_that_is_killed() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let db = open(&dir);
    for i in 0u64.. {
        db.put(i.to_be_bytes(), [i as u8; 300]).unwrap();
        println!("acknowledged {i}");
    }
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db").to_str().unwrap().to_string();
    let mut last_total = 0;
    for round in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::child_that_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, &dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut acknowledged = None;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..2000 + round * 777 {
            let Some(Ok(line)) = lines.next() else { break };
            if let Some((_, number)) = line.split_once("acknowledged ") {
                acknowledged = number.parse::<u64>().ok();
            }
        }
        child.kill().unwrap();
        for line in lines.map_while(|line| line.ok()) {
            if let Some((_, number)) = line.split_once("acknowledged ") {
                acknowledged = number.parse::<u64>().ok().or(acknowledged);
            }
        }
        child.wait().unwrap();
        let acknowledged = acknowledged.expect("the child wrote something");
        let db = open(&dir);
        let rows = contents(&db, db.default_column_family(), &ReadOptions::default());
        let total = rows.len() as u64;
        assert!(total > acknowledged, "{acknowledged} acknowledged, {total} rows");
        assert!(total >= last_total);
        for (index, (key, value)) in rows.iter().enumerate() {
            assert_eq!(key, &(index as u64).to_be_bytes(), "no hole");
            assert_eq!(value, &[index as u8; 300]);
        }
        last_total = total;
    }
}

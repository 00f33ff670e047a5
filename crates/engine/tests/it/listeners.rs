//! The rights of listeners.

use crate::harness::{creating, descriptor, until};
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Reads in the callbacks that run while nobody else writes, and takes down what it found.
#[derive(Default)]
struct Reads {
    db: OnceLock<Weak<Db>>,
    found: Mutex<Vec<String>>,
}

impl Reads {
    fn read(&self, what: &str) {
        let Some(db) = self.db.get().and_then(Weak::upgrade) else { return };
        let value = db.get("a").unwrap().expect("it was written");
        let rows = db.iter().count();
        self.found.lock().unwrap().push(format!("{what} {} {rows}", String::from_utf8_lossy(&value)));
    }
}

impl EventListener for Reads {
    fn memtable_sealed(&self, _: &MemTableInfo) {
        self.read("sealed");
    }

    fn stall_conditions_changed(&self, stall: &WriteStallInfo) {
        self.read(&format!("{:?}", stall.current));
    }
}

#[test]
fn a_listener_may_read_while_the_line_of_writers_is_held() {
    let listener = Arc::new(Reads::default());
    // One table in L0 slows writes, two stop them.
    let options = ColumnFamilyOptions {
        level0_file_num_compaction_trigger: 1,
        level0_slowdown_writes_trigger: 1,
        level0_stop_writes_trigger: 2,
        ..ColumnFamilyOptions::default()
    };
    let (env, family) = (Env::memory(), descriptor("default", &options));
    let db = Db::builder("/db").options(creating()).env(env.clone()).listener(listener.clone());
    let db = Arc::new(db.column_families(vec![family.clone()]).open().unwrap());
    listener.db.set(Arc::downgrade(&db)).unwrap();
    db.pause_background_work();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    until("the stall is told", || listener.found.lock().unwrap().len() == 2);
    // It goes to L0, above what it hides, with the line of writers held.
    let mut file = SstFileWriter::create("/file.sst", &env, &family).unwrap();
    file.put(b"a", b"2").unwrap();
    file.finish().unwrap();
    db.ingest_external_files(&["/file.sst"]).unwrap();
    let found = std::mem::take(&mut *listener.found.lock().unwrap());
    assert_eq!(found, ["sealed 1 1", "Delayed 1 1", "Stopped 1 1"]);
}

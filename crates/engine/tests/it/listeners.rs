//! The rights of listeners.

use crate::harness::{creating, descriptor, until};
use outcrop::options::ColumnFamilyOptions;
use outcrop::*;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
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

/// Takes down what happens to tables.
#[derive(Default)]
struct Tables(Mutex<Vec<String>>);

impl Tables {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

fn name(path: &std::path::Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

impl EventListener for Tables {
    fn table_file_creation_started(&self, table: &TableFileCreationStartedInfo) {
        assert_eq!((table.db_path.to_str(), &table.cf_name[..]), (Some("/db"), "default"));
        assert!(table.job_id > 0);
        self.note(format!("{:?} begins {}", table.reason, name(&table.file_path)));
    }

    fn table_file_created(&self, table: &TableFileCreationInfo) {
        let entries = table.properties.num_entries;
        let end = match &table.status {
            None => format!("{entries} entries, sized: {}", table.file_size > 0),
            Some(error) => format!("{:?}", error.kind()),
        };
        self.note(format!("{:?} made {}: {end}", table.started.reason, name(&table.started.file_path)));
    }

    fn table_file_deleted(&self, table: &TableFileDeletionInfo) {
        assert_eq!((table.db_path.to_str(), table.status.is_none()), (Some("/db"), true));
        self.note(format!("deleted {}", name(&table.file_path)));
    }
}

#[test]
fn tables_are_told_of_as_they_begin_as_they_are_made_and_as_they_go() {
    let fs = FaultyFs::new(MemoryFs::new());
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let listener = Arc::new(Tables::default());
    let db = Db::builder("/db").options(creating()).env(env).listener(listener.clone()).open().unwrap();
    let told = || std::mem::take(&mut *listener.0.lock().unwrap());
    let mut names = Vec::new();
    for value in ["1", "2"] {
        db.put("a", value).unwrap();
        db.put(value, "").unwrap();
        db.flush().unwrap();
        let tables = told();
        let table = tables[0].strip_prefix("Flush begins ").unwrap().to_string();
        assert_eq!(tables[1..], [format!("Flush made {table}: 2 entries, sized: true")]);
        names.push(table);
    }
    db.compact_range(None, None).unwrap();
    until("both inputs are removed", || listener.0.lock().unwrap().len() == 4);
    let tables = told();
    let table = tables[0].strip_prefix("Compaction begins ").unwrap();
    assert_eq!(tables[1], format!("Compaction made {table}: 3 entries, sized: true"));
    let mut deleted = tables[2..].to_vec();
    deleted.sort();
    assert_eq!(deleted, [format!("deleted {}", names[0]), format!("deleted {}", names[1])]);
    // The file cannot be created; the second write to it fails.
    for fails_at in [0, 1] {
        fs.faults().only(Some(".sst"));
        fs.faults().fail_at(fs.faults().changes() + fails_at, EIO, false);
        db.put("a", "3").unwrap();
        // It may have been tried again before it is asked.
        let _ = db.flush();
        let tables = told();
        let table = tables[0].strip_prefix("Flush begins ").unwrap();
        assert_eq!(tables[1], format!("Flush made {table}: IoError"), "{tables:?}");
        fs.faults().heal();
        db.resume().unwrap();
        db.flush().unwrap();
        told();
    }
}

//! `outcrop ldb` on databases whose tables are elsewhere, as their OPTIONS file says.

use super::{ldb, text};
use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, Db, DbOptions, DbPath, Env};
use std::path::{Path, PathBuf};

/// A database, its tables beside it, and what is made of them.
struct Apart {
    temp: tempfile::TempDir,
}

const ROWS: &str = "a ==> 1\nb ==> 2\n";

impl Apart {
    /// An application has left `a` in a table, and `b` in a WAL; each column family has directories of its own.
    fn new() -> Apart {
        let apart = Apart { temp: tempfile::tempdir().unwrap() };
        let db = apart.open();
        let users = db.column_family("users").unwrap();
        for cf in [db.default_column_family(), &users] {
            db.put_cf(cf, "a", "1").unwrap();
            db.flush_cf(cf).unwrap();
            db.put_cf(cf, "b", "2").unwrap();
        }
        apart
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// As the application opens it.
    fn open(&self) -> Db {
        let options = DbOptions {
            create_if_missing: true,
            create_missing_column_families: true,
            avoid_flush_during_shutdown: true,
            db_paths: vec![DbPath::new(self.path("fast"), 1 << 30), DbPath::new(self.path("db"), u64::MAX)],
            ..DbOptions::default()
        };
        let cf_paths = vec![DbPath::new(self.path("users"), u64::MAX)];
        let users = ColumnFamilyOptions { cf_paths, ..ColumnFamilyOptions::default() };
        let users = ColumnFamilyDescriptor::new("users").with_options(users);
        Db::builder(self.path("db")).options(options).column_family(users).open().unwrap()
    }

    fn ok_on(&self, dir: &Path, arguments: &[&str]) -> String {
        let output = ldb(dir, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.ok_on(&self.path("db"), arguments)
    }

    /// Its complaint; it has to fail.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = ldb(&self.path("db"), arguments);
        assert!(!output.status.success(), "{arguments:?} succeeds: {}", text(&output));
        text(&output)
    }

    fn flag(&self, name: &str, dir: &str) -> String {
        format!("--{name}={}", self.path(dir).display())
    }

    /// As if RocksDB had written it, whose OPTIONS file has no paths.
    fn forget_paths(&self) {
        for file in self.files("db", "OPTIONS-") {
            let text = std::fs::read_to_string(&file).unwrap();
            let lines = text.lines().filter(|line| !line.trim().starts_with('#'));
            std::fs::write(file, lines.collect::<Vec<_>>().join("\n")).unwrap();
        }
    }

    fn files(&self, dir: &str, part: &str) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path(dir)).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.to_string_lossy().contains(part)).collect()
    }

    fn assert_application_has(&self, rows: &[(&str, &str)]) {
        let db = self.open();
        let users = db.column_family("users").unwrap();
        for (key, value) in rows {
            for cf in [db.default_column_family(), &users] {
                assert_eq!(db.get_cf(cf, key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
            }
        }
        db.close().unwrap();
    }
}

#[test]
fn tables_are_read_and_written_where_the_options_file_says() {
    let apart = Apart::new();
    for family in ["default", "users"] {
        let family = format!("--column_family={family}");
        assert_eq!(apart.ok(&[&family, "scan"]), ROWS);
        assert_eq!(apart.ok(&[&family, "put", "c", "3"]), "OK\n");
    }
    assert_eq!(apart.ok(&["compact"]), "");
    assert!(apart.files("db", ".sst").is_empty(), "{:?}", apart.files("db", ".sst"));
    let listed = apart.ok(&["list_live_files_metadata"]);
    for table in [apart.files("fast", ".sst"), apart.files("users", ".sst")].concat() {
        assert!(listed.contains(&table.display().to_string()), "{listed}");
    }
    assert!(apart.ok(&["dump_live_files"]).contains("fast/"));
    assert_eq!(apart.ok(&["checkconsistency"]), "OK\n");
    apart.assert_application_has(&[("a", "1"), ("b", "2"), ("c", "3")]);
}

#[test]
fn copies_are_opened_without_the_directories_of_their_source() {
    let apart = Apart::new();
    apart.ok(&[&apart.flag("backup_dir", "backups"), "backup"]);
    apart.ok_on(&apart.path("restored"), &[&apart.flag("backup_dir", "backups"), "restore"]);
    apart.ok(&[&apart.flag("checkpoint_dir", "checkpoint"), "checkpoint"]);
    for copy in ["restored", "checkpoint"].map(|name| apart.path(name)) {
        assert_eq!(apart.ok_on(&copy, &["scan"]), ROWS);
        assert_eq!(apart.ok_on(&copy, &["put", "c", "3"]), "OK\n");
        assert_eq!(apart.ok_on(&copy, &["repair"]), "OK\n");
        assert_eq!(apart.ok_on(&copy, &["--column_family=users", "scan"]), ROWS);
    }
    apart.assert_application_has(&[("a", "1"), ("b", "2")]);
    assert_eq!(apart.ok(&["get", "c"]), "Key not found\n");
}

#[test]
fn repair_and_salvage_are_refused_and_lose_nothing() {
    for (forget, name) in [(false, "fast"), (true, "none of the 2 tables")] {
        let apart = Apart::new();
        if forget {
            apart.forget_paths();
        }
        for verb in [&["repair"][..], &[&apart.flag("to", "salvaged"), "salvage"]] {
            let complaint = apart.fails(verb);
            assert!(complaint.contains("db_paths") && complaint.contains(name), "{complaint}");
        }
        assert!(!apart.path("salvaged").exists());
        apart.assert_application_has(&[("a", "1"), ("b", "2")]);
    }
    // Without a MANIFEST too, where nobody else knows that there are tables.
    let apart = Apart::new();
    std::fs::remove_file(apart.path("db/CURRENT")).unwrap();
    apart.files("db", "MANIFEST-").iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert!(apart.fails(&["repair"]).contains("fast"));

    // The way that it names.
    let copy = apart.path("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in ["db", "fast", "users"].iter().flat_map(|dir| apart.files(dir, "")) {
        std::fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    apart.ok_on(&copy, &["repair"]);
    for family in ["--column_family=default", "--column_family=users"] {
        assert_eq!(apart.ok_on(&copy, &[family, "scan"]), ROWS);
    }
}

#[test]
fn tables_that_nobody_says_the_place_of_are_refused_by_name() {
    let apart = Apart::new();
    apart.forget_paths();
    let backups = apart.flag("backup_dir", "backups");
    for verb in [&["scan"][..], &["put", "c", "3"], &[&backups, "backup"]] {
        let complaint = apart.fails(verb);
        assert!(complaint.contains("none of its 2 tables") && complaint.contains("db_paths"), "{complaint}");
    }
    apart.assert_application_has(&[("a", "1"), ("b", "2")]);
    // The application's opening has written them.
    assert_eq!(apart.ok(&["scan"]), ROWS);
    assert!(Db::recorded_paths_in(apart.path("db"), &Env::posix()).unwrap().is_some());
}

#[test]
fn compatibility_is_judged_by_the_tables_elsewhere() {
    let apart = Apart::new();
    apart.ok(&["checkcompat", "--with=6.29.5,11.8.1"]);
    let db = apart.open();
    let users = db.column_family("users").unwrap();
    db.put_entity_cf(&users, "c", &[("name", "3")]).unwrap();
    db.flush_cf(&users).unwrap();
    drop((users, db));
    let judged = apart.fails(&["checkcompat", "--with=6.29.5"]);
    assert!(judged.contains("entit") && judged.contains(".sst"), "{judged}");
    assert!(!judged.contains("No such file"), "{judged}");
    apart.forget_paths();
    let complaint = apart.fails(&["checkcompat", "--with=11.8.1"]);
    assert!(complaint.contains("db_paths"), "{complaint}");
}

#[test]
fn tables_that_somebody_moved_into_the_database_are_repaired() {
    let apart = Apart::new();
    for file in ["fast", "users"].iter().flat_map(|dir| apart.files(dir, ".sst")) {
        std::fs::rename(&file, apart.path("db").join(file.file_name().unwrap())).unwrap();
    }
    apart.ok(&["repair"]);
    let db =
        Db::builder(apart.path("db")).column_family(ColumnFamilyDescriptor::new("users")).open().unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

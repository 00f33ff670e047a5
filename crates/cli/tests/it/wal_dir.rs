//! `outcrop ldb` on databases whose WALs are elsewhere, as their OPTIONS file says.

use super::{ldb, text};
use outcrop::{BackupEngine, BackupEngineOptions, Db, DbOptions, Env};
use std::path::{Path, PathBuf};

/// A database, its WALs beside it, and what is made of them.
struct Apart {
    temp: tempfile::TempDir,
}

impl Apart {
    /// An application has left `flushed` in a table and `unflushed` in a WAL.
    fn new() -> Apart {
        Apart::in_use().0
    }

    /// The same, while it is still open.
    fn in_use() -> (Apart, Db) {
        let apart = Apart { temp: tempfile::tempdir().unwrap() };
        let db = apart.open();
        db.put("flushed", "1").unwrap();
        db.flush().unwrap();
        db.put("unflushed", "2").unwrap();
        (apart, db)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// As the application opens it, which flushes nothing when it ends.
    fn open(&self) -> Db {
        let options = DbOptions {
            create_if_missing: true,
            wal_dir: Some(self.path("wals")),
            avoid_flush_during_shutdown: true,
            ..DbOptions::default()
        };
        Db::builder(self.path("db")).options(options).open().unwrap()
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
    fn fails_on(&self, dir: &Path, arguments: &[&str]) -> String {
        let output = ldb(dir, arguments);
        assert!(!output.status.success(), "{arguments:?} succeeds: {}", text(&output));
        text(&output)
    }

    fn assert_application_has(&self, rows: &[(&str, &str)]) {
        let db = self.open();
        for (key, value) in rows {
            assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_bytes()), "{key}");
        }
        db.close().unwrap();
    }
}

const BOTH: &str = "flushed ==> 1\nunflushed ==> 2\n";

#[test]
fn what_was_not_flushed_is_read_from_where_the_wals_are() {
    let apart = Apart::new();
    assert_eq!(apart.ok(&["get", "unflushed"]), "2\n");
    assert_eq!(apart.ok(&["scan"]), BOTH);
    assert_eq!(apart.ok(&["checkconsistency"]), "OK\n");
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2")]);
}

#[test]
fn what_was_not_flushed_survives_a_put() {
    let apart = Apart::new();
    assert_eq!(apart.ok(&["put", "more", "3"]), "OK\n");
    assert_eq!(apart.ok(&["delete", "flushed"]), "OK\n");
    apart.assert_application_has(&[("unflushed", "2"), ("more", "3")]);
    assert_eq!(apart.ok(&["scan"]), "more ==> 3\nunflushed ==> 2\n");
    let beside = std::fs::read_dir(apart.path("db")).unwrap().flatten();
    assert!(beside.map(|entry| entry.path()).all(|path| path.extension().is_none_or(|end| end != "log")));
}

#[test]
fn backups_and_checkpoints_have_what_was_not_flushed() {
    let apart = Apart::new();
    let flag = |name: &str, dir: &str| format!("--{name}={}", apart.path(dir).display());
    apart.ok(&[&flag("backup_dir", "backups"), "backup"]);
    let restored = apart.path("restored");
    apart.ok_on(&restored, &[&flag("backup_dir", "backups"), "restore"]);
    assert_eq!(apart.ok_on(&restored, &["scan"]), BOTH);
    apart.ok(&[&flag("checkpoint_dir", "checkpoint"), "checkpoint"]);
    assert_eq!(apart.ok_on(&apart.path("checkpoint"), &["scan"]), BOTH);
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2")]);
}

/// Its OPTIONS file says that its WALs are where the original's are.
#[test]
fn a_copy_does_not_take_the_wals_of_the_original() {
    let (apart, db) = Apart::in_use();
    let flag = |name: &str, dir: &str| format!("--{name}={}", apart.path(dir).display());
    let copy = apart.path("copy");
    let backups = BackupEngine::open(BackupEngineOptions::new(apart.path("backups")), &Env::posix()).unwrap();
    backups.create_backup(&db).unwrap();
    db.put("later", "4").unwrap();
    drop(db);
    apart.ok_on(&copy, &[&flag("backup_dir", "backups"), "restore"]);
    assert_eq!(apart.ok_on(&copy, &["scan"]), BOTH);
    let complaint = apart.fails_on(&copy, &["put", "mine", "5"]);
    assert!(complaint.contains("--wal_dir"), "{complaint}");
    assert_eq!(apart.ok_on(&copy, &[&flag("wal_dir", "copy"), "put", "mine", "5"]), "OK\n");
    assert_eq!(apart.ok_on(&copy, &[&flag("wal_dir", "copy"), "get", "mine"]), "5\n");
    assert_eq!(apart.ok_on(&copy, &[&flag("wal_dir", "copy"), "get", "later"]), "Key not found\n");
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2"), ("later", "4")]);
}

/// WALs of the database that is replaced have what was written after the backup.
#[test]
fn a_backup_restored_in_place_is_not_mixed_with_what_came_later() {
    let apart = Apart::new();
    let flag = |name: &str, dir: &str| format!("--{name}={}", apart.path(dir).display());
    apart.ok(&[&flag("backup_dir", "backups"), "backup"]);
    let db = apart.open();
    db.put("flushed", "later").unwrap();
    drop(db);
    let complaint = apart.fails_on(&apart.path("db"), &[&flag("backup_dir", "backups"), "restore"]);
    assert!(complaint.contains("--wal_dir") && complaint.contains("wals"), "{complaint}");
    assert_eq!(apart.ok(&["get", "flushed"]), "later\n");
    apart.ok(&[&flag("backup_dir", "backups"), &flag("wal_dir", "wals"), "restore"]);
    assert_eq!(apart.ok(&["scan"]), BOTH);
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2")]);
}

#[test]
fn a_directory_of_wals_that_is_not_there_is_not_made_up() {
    let apart = Apart::new();
    std::fs::rename(apart.path("wals"), apart.path("away")).unwrap();
    let read = ldb(&apart.path("db"), &["scan"]);
    assert!(read.status.success() && text(&read).contains("does not exist"), "{}", text(&read));
    let complaint = apart.fails_on(&apart.path("db"), &["put", "more", "3"]);
    assert!(complaint.contains("does not exist") && complaint.contains("--wal_dir"), "{complaint}");
    std::fs::rename(apart.path("away"), apart.path("wals")).unwrap();
    assert_eq!(apart.ok(&["put", "more", "3"]), "OK\n");
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2"), ("more", "3")]);
}

#[test]
fn an_options_file_that_cannot_be_read_is_not_passed_over() {
    let apart = Apart::new();
    let files = std::fs::read_dir(apart.path("db")).unwrap().flatten().map(|entry| entry.path());
    for path in files.filter(|path| path.to_string_lossy().contains("OPTIONS-")) {
        std::fs::write(path, "[DBOptions]\nwal_dir\n").unwrap();
    }
    for verb in [&["put", "more", "3"][..], &["get", "flushed"], &["scan"]] {
        let complaint = apart.fails_on(&apart.path("db"), verb);
        assert!(complaint.contains("--try_load_options=false"), "{complaint}");
    }
    let wals = format!("--wal_dir={}", apart.path("wals").display());
    assert_eq!(apart.ok(&["--try_load_options=false", &wals, "put", "more", "3"]), "OK\n");
    apart.assert_application_has(&[("flushed", "1"), ("unflushed", "2"), ("more", "3")]);
}

#[test]
fn compatibility_is_judged_by_the_wals_elsewhere_too() {
    let apart = Apart::new();
    let options = DbOptions {
        wal_dir: Some(apart.path("wals")),
        wal_compression: outcrop::CompressionType::Zstd,
        avoid_flush_during_shutdown: true,
        ..DbOptions::default()
    };
    let db = Db::builder(apart.path("db")).options(options).open().unwrap();
    db.put("compressed", "x".repeat(1000)).unwrap();
    drop(db);
    let judged = ldb(&apart.path("db"), &["checkcompat", "--with=6.29.5"]);
    assert!(!judged.status.success() && text(&judged).contains("compressed WAL"), "{}", text(&judged));
}

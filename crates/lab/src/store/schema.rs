//! The tables, and how a record of an older version becomes one of this.
//!
//! `PRAGMA user_version` counts the migrations that were applied. A migration is never changed once released;
//! the next one is appended.

use super::{Result, StoreError};
use rusqlite::Connection;

/// Each brings the record from the version of its place to the next.
const MIGRATIONS: &[&str] = &[
    "CREATE TABLE experiment (
         id INTEGER PRIMARY KEY, created TEXT NOT NULL, file TEXT NOT NULL, text TEXT NOT NULL,
         title TEXT NOT NULL, plan TEXT NOT NULL, host TEXT NOT NULL, lab_version TEXT NOT NULL,
         status TEXT NOT NULL CHECK (status IN ('open', 'done')));
     CREATE TABLE session (
         id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiment (id),
         block INTEGER NOT NULL, position INTEGER NOT NULL, target INTEGER NOT NULL,
         status TEXT NOT NULL CHECK (status IN ('running', 'interrupted', 'done', 'failed', 'skipped')),
         started TEXT NOT NULL, ended TEXT, canary TEXT NOT NULL, error TEXT);
     CREATE UNIQUE INDEX session_that_counts ON session (experiment, block, position)
         WHERE status IN ('done', 'failed', 'skipped');
     CREATE TABLE step (
         id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session (id), number INTEGER NOT NULL,
         name TEXT NOT NULL, ended TEXT NOT NULL, result TEXT NOT NULL, labels TEXT NOT NULL,
         UNIQUE (session, number));
     CREATE TABLE metric (
         step INTEGER NOT NULL REFERENCES step (id), name TEXT NOT NULL, value REAL NOT NULL,
         PRIMARY KEY (step, name)) WITHOUT ROWID;
     CREATE TABLE series (
         step INTEGER NOT NULL REFERENCES step (id), name TEXT NOT NULL, data BLOB NOT NULL,
         PRIMARY KEY (step, name)) WITHOUT ROWID;
     CREATE TABLE histogram (step INTEGER PRIMARY KEY REFERENCES step (id), data BLOB NOT NULL);
     CREATE TABLE event (
         id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiment (id),
         date TEXT NOT NULL, text TEXT NOT NULL);",
    "ALTER TABLE session ADD COLUMN engine_version TEXT;
     CREATE TABLE options (
         experiment INTEGER NOT NULL REFERENCES experiment (id), target INTEGER NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (experiment, target)) WITHOUT ROWID;",
    "CREATE TABLE response (step INTEGER PRIMARY KEY REFERENCES step (id), data BLOB NOT NULL);",
    // Numbers of imported experiments come from one sequence with those of measured ones.
    "CREATE TABLE archive (
         id INTEGER PRIMARY KEY, created TEXT NOT NULL, title TEXT NOT NULL, lab_version TEXT NOT NULL,
         data BLOB NOT NULL);",
    "CREATE TABLE profile (
         experiment INTEGER NOT NULL REFERENCES experiment (id), target INTEGER NOT NULL, step TEXT NOT NULL,
         date TEXT NOT NULL, ops INTEGER NOT NULL, events TEXT NOT NULL, stacks BLOB NOT NULL,
         PRIMARY KEY (experiment, target, step)) WITHOUT ROWID;",
    "ALTER TABLE session ADD COLUMN engine_git_sha TEXT;
     CREATE TABLE engine_log (
         session INTEGER PRIMARY KEY REFERENCES session (id), bytes INTEGER NOT NULL, data BLOB NOT NULL);",
];

/// Tells a record of the lab from other databases: "OCLB".
const APPLICATION: i32 = 0x4f43_4c42;

/// Sets the connection up and brings the tables to this version.
pub fn prepare(db: &Connection) -> Result<()> {
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    let number = |pragma: &str| db.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")? as usize);
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        return Err(StoreError::Other("this is not a record of the lab".to_string()));
    }
    if version > MIGRATIONS.len() {
        return Err(StoreError::Other(format!(
            "this record has version {version}; this program knows {}: use a newer one",
            MIGRATIONS.len()
        )));
    }
    // Each step is durable when it is recorded: a killed run loses the step it was in.
    db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(version) {
        let after = index + 1;
        db.execute_batch(&format!(
            "BEGIN; PRAGMA application_id = {APPLICATION}; {migration} PRAGMA user_version = {after}; COMMIT;"
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_record_is_upgraded_and_keeps_its_rows() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION}; {} PRAGMA user_version = 1;",
            MIGRATIONS[0]
        ))
        .unwrap();
        db.execute_batch(
            "INSERT INTO experiment VALUES (1, 'd', 'f', 't', 'title', '{}', '{}', '0', 'done');
             INSERT INTO session VALUES (1, 1, 0, 0, 0, 'done', 'd', 'd', '{}', NULL);",
        )
        .unwrap();
        prepare(&db).unwrap();
        prepare(&db).unwrap();
        for table in ["archive", "profile", "engine_log"] {
            db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap();
        }
        let (title, version): (String, Option<String>) = db
            .query_row(
                "SELECT title, engine_version FROM experiment JOIN session ON experiment = experiment.id",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .unwrap();
        assert_eq!((title.as_str(), version), ("title", None));
    }

    #[test]
    fn newer_records_and_other_databases_are_refused() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = 99;"))
            .unwrap();
        assert!(prepare(&db).unwrap_err().to_string().contains("version 99"));
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE other (x);").unwrap();
        assert!(prepare(&db).unwrap_err().to_string().contains("not a record"));
    }
}

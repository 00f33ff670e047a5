//! Imported experiments in the record: the tables of an import, whole, as compressed JSON.

use super::{Result, Store, StoreError, from_json, json};
use crate::import::Archive;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use std::io::Read;

/// JSON longer than this is not one of ours: an import reads files of 64 MiB at most.
const MAX_BYTES: u64 = 1 << 30;

/// An imported experiment as recorded.
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveRow {
    /// Its number.
    pub id: i64,
    /// When it was imported, RFC 3339 in UTC.
    pub created: String,
    /// Version of the program that imported it.
    pub lab_version: String,
    /// The imported tables.
    pub archive: Archive,
}

impl Store {
    /// The number of the next experiment, measured or imported.
    pub(super) fn next_id(&self) -> Result<i64> {
        let query = "SELECT 1 + max((SELECT coalesce(max(id), 0) FROM experiment),
                                    (SELECT coalesce(max(id), 0) FROM archive))";
        Ok(self.db.query_row(query, [], |row| row.get(0))?)
    }

    /// Keeps an imported experiment; gives its number.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_archive(&self, created: &str, archive: &Archive) -> Result<i64> {
        let id = self.next_id()?;
        let data =
            zstd::bulk::compress(json(archive).as_bytes(), 3).expect("compressing memory does not fail");
        self.db.execute(
            "INSERT INTO archive (id, created, title, lab_version, data) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id, created, archive.title, env!("CARGO_PKG_VERSION"), data],
        )?;
        Ok(id)
    }

    /// The imported experiment of a number; `None` if no imported one has it.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn archive(&self, id: i64) -> Result<Option<ArchiveRow>> {
        let query = "SELECT created, lab_version, data FROM archive WHERE id = ?1";
        let row = self
            .db
            .query_row(query, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))
            .optional()?;
        let Some((created, lab_version, data)) = row else { return Ok(None) };
        let archive = from_json("archive", &text(&data)?)?;
        Ok(Some(ArchiveRow { id, created, lab_version, archive }))
    }

    /// Number, date and title of all imported experiments, oldest first.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn archives(&self) -> Result<Vec<(i64, String, String)>> {
        let mut statement = self.db.prepare("SELECT id, created, title FROM archive ORDER BY id")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

fn text(data: &[u8]) -> Result<String> {
    let mut text = String::new();
    zstd::stream::Decoder::new(data)
        .and_then(|decoder| decoder.take(MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| StoreError::Other(format!("store: an archive does not decompress: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_and_measured_experiments_are_numbered_together() {
        let (_temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let empty = |title: &str| Archive {
            title: title.to_string(),
            files: Vec::new(),
            groups: Vec::new(),
            notes: Vec::new(),
            rejects: Vec::new(),
            standstills: Vec::new(),
        };
        let first = store.record_archive("2026-01-02T03:04:05Z", &empty("a")).unwrap();
        assert_eq!((first, store.record_archive("d", &empty("b")).unwrap()), (2, 3));
        let kept = store.archive(2).unwrap().unwrap();
        assert_eq!((kept.archive, kept.created.as_str()), (empty("a"), "2026-01-02T03:04:05Z"));
        assert!(store.archive(1).unwrap().is_none());
        assert_eq!(store.archives().unwrap().len(), 2);
        let plan = &store.experiment(1).unwrap();
        assert_eq!(store.begin("d", "f", "t", &plan.plan, &plan.host).unwrap(), 4);
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        assert!(text(b"no archive").is_err());
    }
}

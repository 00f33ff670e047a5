//! Engines' own logs in the record, one for each session that ended, compressed.

use super::{Result, Store, StoreError};
use rusqlite::{OptionalExtension, params};
use std::collections::BTreeMap;

/// The kept part of a log is shorter than this, its marks and replaced bytes included.
const MAX_BYTES: usize = 1 << 25;

/// The lines that an engine wrote into its logs during a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLog {
    /// Bytes it wrote.
    pub bytes: u64,
    /// The kept text: beginning and end, if it is long.
    pub text: String,
}

impl Store {
    /// Keeps the log of a session.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record_engine_log(&self, session: i64, log: &EngineLog) -> Result<()> {
        let data = zstd::bulk::compress(log.text.as_bytes(), 3).expect("compressing memory does not fail");
        self.db.execute(
            "INSERT OR REPLACE INTO engine_log (session, bytes, data) VALUES (?1, ?2, ?3)",
            params![session, log.bytes as i64, data],
        )?;
        Ok(())
    }

    /// The log of a session; `None` if none was kept.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn engine_log(&self, session: i64) -> Result<Option<EngineLog>> {
        let broken = |why: String| StoreError::Other(format!("store: an engine's log: {why}"));
        let row: Option<(i64, Vec<u8>)> = self
            .db
            .query_row("SELECT bytes, data FROM engine_log WHERE session = ?1", [session], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((bytes, data)) = row else { return Ok(None) };
        let text = zstd::bulk::decompress(&data, MAX_BYTES).map_err(|error| broken(error.to_string()))?;
        let text = String::from_utf8(text).map_err(|error| broken(error.to_string()))?;
        Ok(Some(EngineLog { bytes: bytes as u64, text }))
    }

    /// The sessions of an experiment that have a log, each with the bytes that its engine wrote.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn engine_logs(&self, experiment: i64) -> Result<BTreeMap<i64, u64>> {
        let mut statement = self.db.prepare(
            "SELECT session.id, bytes FROM engine_log JOIN session ON session.id = engine_log.session
             WHERE experiment = ?1",
        )?;
        let rows =
            statement.query_map([experiment], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_comes_back_with_its_session_and_damage_is_an_error() {
        let (_temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let sessions = store.sessions(1).unwrap();
        let log = EngineLog { bytes: 1 << 40, text: "opened\n".repeat(1000) };
        store.record_engine_log(sessions[0].id, &log).unwrap();
        assert_eq!(store.engine_log(sessions[0].id).unwrap(), Some(log));
        assert_eq!(store.engine_log(sessions[1].id).unwrap(), None);
        assert_eq!(store.engine_logs(1).unwrap(), BTreeMap::from([(sessions[0].id, 1 << 40)]));
        assert!(store.engine_logs(2).unwrap().is_empty());
        store.db.execute("UPDATE engine_log SET data = x'00'", []).unwrap();
        assert!(store.engine_log(sessions[0].id).is_err());
    }
}

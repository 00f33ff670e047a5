//! A lock file of the user's own, in the cache: the checksum of each artefact that the shipped lock file does not have, as it was when the
//! artefact was first fetched.

use super::maven::ReferenceError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file, and the name of its tables: `[[engine]]`, `[[server]]`.
pub(super) struct OwnLock {
    path: PathBuf,
    table: &'static str,
}

impl OwnLock {
    pub(super) fn new(cache: &Path, file: &str, table: &'static str) -> OwnLock {
        OwnLock { path: cache.join(file), table }
    }

    /// Its rows, in the order in which they were first fetched; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is none of this kind.
    pub(super) fn rows<Row: DeserializeOwned>(&self) -> Result<Vec<Row>, ReferenceError> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed(&error)),
        };
        let mut tables: toml::Table = toml::from_str(&text).map_err(|error| self.failed(&error.message()))?;
        let Some(rows) = tables.remove(self.table) else { return Ok(Vec::new()) };
        rows.try_into().map_err(|error: toml::de::Error| self.failed(&error.message()))
    }

    /// Adds a row, in one write.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn record(&self, row: &impl Serialize) -> Result<(), ReferenceError> {
        let row = toml::to_string(row).expect("plain data serialises");
        let text = format!("[[{}]]\n{row}\n", self.table);
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| self.failed(&error))
    }

    fn failed(&self, why: &dyn fmt::Display) -> ReferenceError {
        ReferenceError::Unavailable(format!("{self}: {why}"))
    }
}

impl fmt::Display for OwnLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_and_another_kind_of_file_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let lock = OwnLock::new(temp.path(), "a.lock.toml", "engine");
        assert_eq!(lock.rows::<toml::Table>().unwrap(), []);
        for version in ["2", "1"] {
            lock.record(&toml::Table::from_iter([("version".to_string(), version.into())])).unwrap();
        }
        let versions = lock.rows::<toml::Table>().unwrap();
        assert_eq!(
            versions.iter().map(|row| row["version"].as_str().unwrap()).collect::<Vec<_>>(),
            ["2", "1"]
        );
        let other = OwnLock::new(temp.path(), "a.lock.toml", "server");
        assert_eq!(other.rows::<toml::Table>().unwrap(), []);
        std::fs::write(temp.path().join("a.lock.toml"), "engine = 1\n").unwrap();
        assert!(lock.rows::<toml::Table>().unwrap_err().to_string().contains("a.lock.toml"));
        std::fs::write(temp.path().join("a.lock.toml"), "engine =\n").unwrap();
        assert!(lock.rows::<toml::Table>().unwrap_err().to_string().contains("a.lock.toml"));
    }
}

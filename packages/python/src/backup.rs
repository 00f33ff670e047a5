//! Backups, in RocksDB's directory of them.

use crate::db::Db;
use crate::errors::{Failure, raised};
use crate::scan::locked_detached;
use outcrop::{BackupEngineOptions, CreateBackupOptions, Env, Error};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::sync::Mutex;

/// A directory of backups, RocksDB's or ours. `with BackupEngine(path) as backups:` closes it at the end.
#[pyclass(frozen, weakref, module = "outcrop")]
pub struct BackupEngine {
    engine: Mutex<Option<outcrop::BackupEngine>>,
}

impl BackupEngine {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&outcrop::BackupEngine) -> outcrop::Result<T> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            let engine = locked_detached(&self.engine);
            Ok(work(engine.as_ref().ok_or(Failure::Closed("backup engine"))?)?)
        });
        Ok(outcome.map_err(|failure: Failure| failure)?)
    }
}

#[pymethods]
impl BackupEngine {
    #[new]
    #[pyo3(signature = (path, *, read_only=false, sync=true))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, sync: bool) -> PyResult<BackupEngine> {
        let options = BackupEngineOptions { sync, ..BackupEngineOptions::new(path) };
        let opened = py.detach(|| match read_only {
            true => outcrop::BackupEngine::open_read_only(options, &Env::posix()),
            false => outcrop::BackupEngine::open(options, &Env::posix()),
        });
        Ok(BackupEngine { engine: Mutex::new(Some(opened.map_err(raised)?)) })
    }

    /// Makes a backup and gives its number. `flush` first writes what is in memory to tables; `metadata` is kept with it.
    #[pyo3(signature = (db, *, flush=false, metadata=None))]
    fn create_backup(
        &self,
        py: Python<'_>,
        db: &Bound<'_, Db>,
        flush: bool,
        metadata: Option<&Bound<'_, PyBytes>>,
    ) -> PyResult<u32> {
        let options = CreateBackupOptions {
            flush_before_backup: flush,
            app_metadata: metadata.map_or_else(Vec::new, |bytes| bytes.as_bytes().to_vec()),
            ..CreateBackupOptions::default()
        };
        let shared = &db.get().shared;
        let made = py.detach(|| {
            shared.with(|open| {
                let engine = locked_detached(&self.engine);
                let engine = engine.as_ref().ok_or(Failure::Closed("backup engine"))?;
                Ok(engine.create_backup_with(open.db(), &options)?)
            })
        })?;
        Ok(made)
    }

    /// What there is, a dict for each, oldest first.
    fn backups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let infos = self.run(py, |engine| Ok(engine.backup_infos()))?;
        let listed: PyResult<Vec<Bound<'py, PyDict>>> = infos
            .iter()
            .map(|info| {
                let shown = PyDict::new(py);
                shown.set_item("id", info.id)?;
                shown.set_item("timestamp", info.timestamp)?;
                shown.set_item("size", info.size)?;
                shown.set_item("number_files", info.number_files)?;
                shown.set_item("metadata", PyBytes::new(py, &info.app_metadata))?;
                Ok(shown)
            })
            .collect();
        PyList::new(py, listed?)
    }

    /// Makes `db_dir` the database as it was at a backup: the newest, if none is named. Whatever is there is replaced.
    #[pyo3(signature = (db_dir, backup_id=None, *, wal_dir=None))]
    fn restore(
        &self,
        py: Python<'_>,
        db_dir: PathBuf,
        backup_id: Option<u32>,
        wal_dir: Option<PathBuf>,
    ) -> PyResult<()> {
        let wal_dir = wal_dir.unwrap_or_else(|| db_dir.clone());
        self.run(py, |engine| {
            let latest = || engine.latest_backup().ok_or_else(|| Error::not_found("there is no backup"));
            engine.restore_backup(backup_id.map_or_else(latest, Ok)?, &db_dir, &wal_dir)
        })
    }

    /// Reads the backup and compares checksums. Corruption names the first file that is damaged.
    fn verify(&self, py: Python<'_>, backup_id: u32) -> PyResult<()> {
        self.run(py, |engine| engine.verify_backup(backup_id))
    }

    /// Deletes a backup.
    fn delete(&self, py: Python<'_>, backup_id: u32) -> PyResult<()> {
        self.run(py, |engine| engine.delete_backup(backup_id))
    }

    /// Deletes all but the newest `keep`.
    fn purge_old(&self, py: Python<'_>, keep: usize) -> PyResult<()> {
        self.run(py, |engine| engine.purge_old_backups(keep))
    }

    /// Closes it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *locked_detached(&self.engine) = None);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}

//! Tables that are written by themselves, to be ingested.

use crate::codec::Codec;
use crate::errors::{Failure, invalid, raised};
use crate::open::new_family;
use crate::scan::locked_detached;
use outcrop::Env;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Mutex;

/// Writes a table by itself, to be taken in by `ColumnFamily.ingest_external_files`.
#[pyclass(frozen, weakref, module = "outcrop")]
pub struct SstFileWriter {
    codec: Codec,
    path: PathBuf,
    writer: Mutex<Option<outcrop::SstFileWriter>>,
}

impl SstFileWriter {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut outcrop::SstFileWriter) -> outcrop::Result<T> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            let mut writer = locked_detached(&self.writer);
            Ok(work(writer.as_mut().ok_or(Failure::Closed("table"))?)?)
        });
        Ok(outcome.map_err(|failure: Failure| failure)?)
    }
}

#[pymethods]
impl SstFileWriter {
    #[new]
    #[pyo3(signature = (path, options=None, *, encoding=None, dumps=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyAny>>,
        encoding: Option<&str>,
        dumps: Option<Py<PyAny>>,
    ) -> PyResult<SstFileWriter> {
        let codec = Codec::named(encoding, dumps, None)?;
        let descriptor = new_family(String::new(), options, None, &codec)?;
        let made = py.detach(|| outcrop::SstFileWriter::create(&path, &Env::posix(), &descriptor));
        Ok(SstFileWriter { codec, path, writer: Mutex::new(Some(made.map_err(raised)?)) })
    }

    /// Adds a row. Keys come in their order.
    fn put(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (self.codec.key(key)?, self.codec.value(value)?);
        self.run(py, |writer| writer.put(&key, &value))
    }

    /// Adds a merge operand.
    fn merge(&self, py: Python<'_>, key: &Bound<'_, PyAny>, operand: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, operand) = (self.codec.key(key)?, self.codec.value(operand)?);
        self.run(py, |writer| writer.merge(&key, &operand))
    }

    /// Adds a deletion.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.codec.key(key)?;
        self.run(py, |writer| writer.delete(&key))
    }

    /// Adds a deletion of the keys from `begin` up to `end`.
    fn delete_range(&self, py: Python<'_>, begin: &Bound<'_, PyAny>, end: &Bound<'_, PyAny>) -> PyResult<()> {
        let (begin, end) = (self.codec.key(begin)?, self.codec.key(end)?);
        self.run(py, |writer| writer.delete_range(&begin, &end))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key)
    }

    /// The bytes written so far.
    fn file_size(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |writer| Ok(writer.file_size()))
    }

    /// Ends the table. Says its path, size, number of entries, first and last key.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let writer = py.detach(|| locked_detached(&self.writer).take());
        let writer = writer.ok_or_else(|| invalid(format!("{}: it is finished", self.path.display())))?;
        let info = py.detach(|| writer.finish()).map_err(raised)?;
        let shown = PyDict::new(py);
        shown.set_item("path", info.path)?;
        shown.set_item("file_size", info.file_size)?;
        shown.set_item("num_entries", info.num_entries)?;
        shown.set_item("smallest_key", self.codec.decode(py, &info.smallest_key)?)?;
        shown.set_item("largest_key", self.codec.decode(py, &info.largest_key)?)?;
        Ok(shown)
    }
}

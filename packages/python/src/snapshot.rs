//! Snapshots: reads as of one moment.

use crate::errors::Failure;
use crate::family::{ColumnFamily, Family, get_any};
use crate::options::{ReadOptions, read_options};
use crate::scan::{Cursor, Part, Range, RowIterator, locked};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::sync::Mutex;

/// A column family as it was at one moment. `with db.snapshot() as moment:` releases it at the end.
#[pyclass(frozen, module = "outcrop", weakref)]
pub struct Snapshot {
    family: Family,
    snapshot: Mutex<Option<outcrop::Snapshot>>,
}

impl Snapshot {
    pub fn new(family: Family, snapshot: outcrop::Snapshot) -> Snapshot {
        Snapshot { family, snapshot: Mutex::new(Some(snapshot)) }
    }

    /// The moment, for options.
    pub fn held(&self, py: Python<'_>) -> PyResult<outcrop::Snapshot> {
        let held = locked(py, &self.snapshot).clone();
        Ok(held.ok_or(Failure::Closed("snapshot"))?)
    }

    fn options(
        &self,
        py: Python<'_>,
        given: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<outcrop::ReadOptions> {
        let mut options = read_options(given, &self.family.shared.codec)?;
        options.snapshot = Some(self.held(py)?);
        Ok(options)
    }

    fn rows(
        &self,
        py: Python<'_>,
        part: Part,
        range: &Range<'_, '_>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        RowIterator::new(py, &self.family, part, range, self.options(py, options)?)
    }
}

#[pymethods]
impl Snapshot {
    /// The number of the last write that it sees.
    #[getter]
    fn sequence_number(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.held(py)?.sequence().0)
    }

    /// Another column family at the same moment.
    fn column_family(&self, py: Python<'_>, column_family: &Bound<'_, ColumnFamily>) -> PyResult<Snapshot> {
        Ok(Snapshot::new(column_family.get().family.clone(), self.held(py)?))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = get_any(py, &self.family, key, &self.options(py, None)?, None)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.family.contains(py, key, &self.options(py, None)?)
    }

    /// As `ColumnFamily.get`, at this moment.
    #[pyo3(signature = (key, default=None, *, options=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let found = get_any(py, &self.family, key, &self.options(py, options)?, default.as_ref())?;
        Ok(found.or(default))
    }

    /// As `ColumnFamily.iter`, at this moment.
    #[pyo3(signature = (options=None))]
    fn iter(&self, py: Python<'_>, options: Option<&Bound<'_, ReadOptions>>) -> PyResult<Cursor> {
        Cursor::of_database(py, &self.family, options, Some(self.held(py)?))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        self.keys(py, false, None, None, None)
    }

    /// As `ColumnFamily.items`, at this moment.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn items(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.rows(py, Part::Items, &Range { backwards, from_key, prefix }, options)
    }

    /// As `ColumnFamily.keys`, at this moment.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn keys(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.rows(py, Part::Keys, &Range { backwards, from_key, prefix }, options)
    }

    /// As `ColumnFamily.values`, at this moment.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn values(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.rows(py, Part::Values, &Range { backwards, from_key, prefix }, options)
    }

    /// Lets what only this moment sees be removed. Scans that began before go on.
    fn release(&self, py: Python<'_>) {
        *locked(py, &self.snapshot) = None;
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.release(py);
    }
}

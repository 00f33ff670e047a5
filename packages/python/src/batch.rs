//! Batches: many writes, all or none.

use crate::engine::Shared;
use crate::errors::invalid;
use crate::family::{ColumnFamily, Family};
use crate::options::{WriteOptions, write_options};
use crate::scan::{locked, locked_detached};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// Writes that are done together, in the order of the calls: all or none. Calls that name no column family mean the one it was made for.
#[pyclass(frozen, module = "outcrop")]
pub struct WriteBatch {
    family: Family,
    batch: Mutex<outcrop::WriteBatch>,
}

impl WriteBatch {
    pub fn of(family: &Family) -> WriteBatch {
        WriteBatch { family: family.clone(), batch: Mutex::new(outcrop::WriteBatch::new()) }
    }

    /// The column family of a call.
    fn family<'f>(&'f self, given: Option<&'f Bound<'_, ColumnFamily>>) -> PyResult<&'f Family> {
        match given {
            None => Ok(&self.family),
            Some(given) => given.get().family.of(&self.family.shared),
        }
    }

    /// Writes it to the database that `shared` is.
    pub fn write(
        &self,
        py: Python<'_>,
        shared: &Arc<Shared>,
        options: &outcrop::WriteOptions,
    ) -> PyResult<()> {
        if !Arc::ptr_eq(shared, &self.family.shared) {
            return Err(invalid("the batch is of another database"));
        }
        shared.run(py, |engine| engine.write(&mut locked_detached(&self.batch), options))
    }
}

#[pymethods]
impl WriteBatch {
    #[new]
    fn new(column_family: &Bound<'_, ColumnFamily>) -> WriteBatch {
        WriteBatch::of(&column_family.get().family)
    }

    /// Will set `key` to `value`.
    #[pyo3(signature = (key, value, column_family=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, codec) = (self.family(column_family)?, &self.family.shared.codec);
        let (key, value) = (codec.key(key)?, codec.value(value)?);
        locked(py, &self.batch).put_cf(&family.cf, key, value);
        Ok(())
    }

    /// Will add `operand` to `key`.
    #[pyo3(signature = (key, operand, column_family=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, codec) = (self.family(column_family)?, &self.family.shared.codec);
        let (key, operand) = (codec.key(key)?, codec.value(operand)?);
        locked(py, &self.batch).merge_cf(&family.cf, key, operand);
        Ok(())
    }

    /// Will delete `key`.
    #[pyo3(signature = (key, column_family=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, key) = (self.family(column_family)?, self.family.shared.codec.key(key)?);
        locked(py, &self.batch).delete_cf(&family.cf, key);
        Ok(())
    }

    /// Will delete a key that was put once: see `ColumnFamily.single_delete`.
    #[pyo3(signature = (key, column_family=None))]
    fn single_delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, key) = (self.family(column_family)?, self.family.shared.codec.key(key)?);
        locked(py, &self.batch).single_delete_cf(&family.cf, key);
        Ok(())
    }

    /// Will delete the keys from `begin` up to `end`, which stays.
    #[pyo3(signature = (begin, end, column_family=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, codec) = (self.family(column_family)?, &self.family.shared.codec);
        let (begin, end) = (codec.key(begin)?, codec.key(end)?);
        locked(py, &self.batch).delete_range_cf(&family.cf, begin, end);
        Ok(())
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        locked(py, &self.batch).count() as usize
    }

    /// The bytes that it adds to the WAL.
    fn size_in_bytes(&self, py: Python<'_>) -> usize {
        locked(py, &self.batch).size_bytes()
    }

    /// Forgets the writes.
    fn clear(&self, py: Python<'_>) {
        locked(py, &self.batch).clear();
    }

    /// Writes it to the database it was made for. It stays as it is.
    #[pyo3(signature = (*, options=None))]
    fn commit(&self, py: Python<'_>, options: Option<&Bound<'_, WriteOptions>>) -> PyResult<()> {
        let shared = &self.family.shared;
        self.write(py, shared, &write_options(options, &shared.write_options))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exc_type, _exc_value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Py<PyAny>>,
        _exc_value: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        match exc_type {
            None => self.commit(py, None),
            Some(_) => Ok(()),
        }
    }
}

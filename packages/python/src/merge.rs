//! Merge operators written in Python.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::Arc;

/// A rule for merge operands.
///
/// `full_merge(key, existing, operands)` gives the value; `existing` is None if there is none, operands are oldest first.
/// `partial_merge(key, operands)` combines operands into one, or gives None if it cannot. They are given bytes as they are stored, and give
/// bytes. They are called by any thread, also those of compactions; an exception goes to sys.unraisablehook, and the read fails with Corruption.
#[pyclass(frozen, module = "outcrop")]
pub struct MergeOperator {
    pub operator: Arc<Functions>,
}

/// The functions, as the engine calls them: from any thread, also those of compactions.
pub struct Functions {
    name: String,
    full: Py<PyAny>,
    partial: Option<Py<PyAny>>,
}

#[pymethods]
impl MergeOperator {
    #[new]
    #[pyo3(signature = (name, full_merge, partial_merge=None))]
    fn new(name: String, full_merge: Py<PyAny>, partial_merge: Option<Py<PyAny>>) -> MergeOperator {
        MergeOperator { operator: Arc::new(Functions { name, full: full_merge, partial: partial_merge }) }
    }

    /// The name that is stored: the database wants an operator of this name again.
    #[getter]
    fn name(&self) -> &str {
        &self.operator.name
    }

    fn __repr__(&self) -> String {
        format!("MergeOperator({:?})", self.operator.name)
    }
}

fn listed<'py>(py: Python<'py>, operands: &[&[u8]]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, operands.iter().map(|operand| PyBytes::new(py, operand)))
}

impl Functions {
    /// The bytes that `call` gives. An exception is written where Python writes those that nobody can catch (`sys.unraisablehook`), as
    /// it may be in a thread of the engine's.
    fn called(
        &self,
        function: &Py<PyAny>,
        call: impl FnOnce(Python<'_>) -> PyResult<Option<Vec<u8>>>,
    ) -> Option<Vec<u8>> {
        // None: the interpreter ends.
        Python::try_attach(|py| {
            call(py).unwrap_or_else(|error| {
                error.write_unraisable(py, Some(function.bind(py)));
                None
            })
        })?
    }
}

impl outcrop::MergeOperator for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.called(&self.full, |py| {
            let existing = existing.map(|value| PyBytes::new(py, value));
            let merged = self.full.call1(py, (PyBytes::new(py, key), existing, listed(py, operands)?))?;
            Ok(Some(merged.bind(py).cast::<PyBytes>()?.as_bytes().to_vec()))
        })
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial.as_ref()?;
        self.called(partial, |py| {
            let merged = partial.call1(py, (PyBytes::new(py, key), listed(py, operands)?))?;
            match merged.is_none(py) {
                true => Ok(None),
                false => Ok(Some(merged.bind(py).cast::<PyBytes>()?.as_bytes().to_vec())),
            }
        })
    }
}

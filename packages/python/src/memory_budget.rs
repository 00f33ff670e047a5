//! One limit for the memory of several databases.

use crate::errors::raised;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One limit, in bytes and at least 16 MiB, for the memory of all databases that are opened with it.
///
/// It counts their blocks, indexes, filters, memtables, open tables, iterators, flushes and compactions together: the resident
/// memory of the process grows by no more than 1.1 times the limit. They share one block cache, which the budget makes: options
/// that ask for another, or for db_write_buffer_size, are refused with InvalidArgument. At the limit blocks make room first and
/// writers wait for flushes; then iterators and writes raise Aborted.
///
///     budget = outcrop.MemoryBudget(64 << 20)
///     users, events = (outcrop.Db(path, memory_budget=budget) for path in ("users", "events"))
#[pyclass(frozen, weakref, module = "outcrop")]
pub struct MemoryBudget {
    pub budget: Arc<outcrop::MemoryBudget>,
}

#[pymethods]
impl MemoryBudget {
    #[new]
    fn new(bytes: u64) -> PyResult<MemoryBudget> {
        Ok(MemoryBudget { budget: outcrop::MemoryBudget::new(bytes).map_err(raised)? })
    }

    /// The limit.
    #[getter]
    fn bytes(&self) -> u64 {
        self.budget.bytes()
    }

    /// The bytes in use, by what they are for: "blocks", "memtables", "tables", "iterators", "jobs", and "total".
    fn usage(&self) -> BTreeMap<&'static str, u64> {
        let usage = self.budget.usage();
        BTreeMap::from([
            ("blocks", usage.blocks),
            ("memtables", usage.memtables),
            ("tables", usage.tables),
            ("iterators", usage.iterators),
            ("jobs", usage.jobs),
            ("total", usage.total()),
        ])
    }

    fn __repr__(&self) -> String {
        format!("MemoryBudget({}), {} in use", self.budget.bytes(), self.budget.usage().total())
    }
}

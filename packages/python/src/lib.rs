//! Outcrop for Python: the module `outcrop._outcrop`, which the package `outcrop` gives its names.
//!
//! ```text
//! db, family, snapshot, batch, transaction, scan, backup, sst, memory_budget   classes of Python, each a few lines that translate
//! engine    the open database that they share, and its end
//! open      arguments and OPTIONS file to a database
//! options   mappings to options      codec   objects to bytes      merge   functions to merge operators      errors
//! ```
//! Invariants: no unsafe code; the engine is called without the interpreter's lock (`engine`); no lock is waited for with it (`scan::locked`).
//! Docstrings stand in `_outcrop.pyi`, where tools look for them, and are given to the classes by `python/outcrop/__init__.py`.
#![forbid(unsafe_code)]

mod backup;
mod batch;
mod codec;
mod db;
mod engine;
mod errors;
mod family;
mod memory_budget;
mod merge;
mod open;
mod options;
mod scan;
mod snapshot;
mod sst;
mod transaction;

use pyo3::prelude::*;

#[pymodule]
fn _outcrop(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<family::ColumnFamily>()?;
    module.add_class::<db::Db>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<batch::WriteBatch>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<scan::RowIterator>()?;
    module.add_class::<scan::Cursor>()?;
    module.add_class::<options::ReadOptions>()?;
    module.add_class::<options::WriteOptions>()?;
    module.add_class::<merge::MergeOperator>()?;
    module.add_class::<backup::BackupEngine>()?;
    module.add_class::<sst::SstFileWriter>()?;
    module.add_class::<memory_budget::MemoryBudget>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let close_all = wrap_pyfunction!(engine::close_all, module)?;
    module.py().import("atexit")?.call_method1("register", (close_all,))?;
    Ok(())
}

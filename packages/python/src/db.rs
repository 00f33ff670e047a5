//! The database: its default column family, and what concerns it as a whole.

use crate::batch::WriteBatch;
use crate::engine::{Engine, Shared};
use crate::errors::raised;
use crate::family::{ColumnFamily, Family};
use crate::memory_budget::MemoryBudget;
use crate::merge::MergeOperator;
use crate::open::{self, Arguments};
use crate::options::{WriteOptions, option_pairs, write_options};
use crate::transaction::{self, Transaction};
use outcrop::{ColumnFamilyHandle, Error, RepairOptions, WaitForCompactOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An open database, and its default column family as a dictionary.
///
/// ```text
/// options           settings of the database and its default column family: a mapping of RocksDB's names, or "name=value;". They change
///                   those that the database was opened with last
/// column_families   settings of others: a mapping of names to options, or names. Those that are not there are created; those
///                   that are there need not be named
/// mode              "read_write"; "read_only"; "secondary", which follows the process that writes
/// merge_operator    one MergeOperator for all column families, or a mapping of names to operators
/// transactions      "pessimistic": they lock keys; "optimistic": they are checked when they are committed
/// ttl               values expire so many seconds after they were written; 0: never
/// encoding          "bytes"; "rocksdict": str, int, float and bool too, as the package rocksdict stores them
/// dumps, loads      with "rocksdict": to and from bytes for values of other types. pickle.loads runs code that the file names
/// write_options     of writes for which none are given
/// statistics        counts, for `statistics()` and `metrics()`
/// memory_budget     a MemoryBudget, which other databases may have too
/// ```
#[pyclass(frozen, extends = ColumnFamily, weakref, module = "outcrop")]
pub struct Db {
    pub shared: Arc<Shared>,
    default: ColumnFamilyHandle,
}

impl Db {
    fn family(&self, cf: ColumnFamilyHandle) -> Family {
        Family { shared: self.shared.clone(), cf }
    }

    fn wrapped(&self, py: Python<'_>, cf: ColumnFamilyHandle) -> PyResult<Py<ColumnFamily>> {
        Py::new(py, ColumnFamily { family: self.family(cf) })
    }

    fn named(&self, py: Python<'_>, name: &str) -> PyResult<ColumnFamilyHandle> {
        self.shared.run(py, |engine| {
            engine.db().column_family(name).ok_or_else(|| {
                let names: Vec<String> =
                    engine.db().column_families().iter().map(|cf| cf.name().to_string()).collect();
                Error::not_found(format!("column family {name}: there are {}", names.join(", ")))
            })
        })
    }
}

#[pymethods]
impl Db {
    #[new]
    #[pyo3(signature = (path, options=None, column_families=None, *, mode="read_write", create_if_missing=true, merge_operator=None, transactions=None, ttl=None, encoding=None, dumps=None, loads=None, write_options=None, statistics=false, memory_budget=None))]
    #[allow(clippy::too_many_arguments)] // They are given by name.
    fn new(
        py: Python<'_>,
        path: PathBuf,
        options: Option<&Bound<'_, PyAny>>,
        column_families: Option<&Bound<'_, PyAny>>,
        mode: &str,
        create_if_missing: bool,
        merge_operator: Option<&Bound<'_, PyAny>>,
        transactions: Option<&str>,
        ttl: Option<i32>,
        encoding: Option<&str>,
        dumps: Option<Py<PyAny>>,
        loads: Option<Py<PyAny>>,
        write_options: Option<&Bound<'_, WriteOptions>>,
        statistics: bool,
        memory_budget: Option<&Bound<'_, MemoryBudget>>,
    ) -> PyResult<PyClassInitializer<Db>> {
        let write_options = crate::options::write_options(write_options, &outcrop::WriteOptions::default());
        let arguments = Arguments {
            path,
            options,
            column_families,
            merge_operator,
            mode,
            create_if_missing,
            transactions,
            ttl,
            encoding,
            dumps,
            loads,
            write_options,
            statistics,
            memory_budget: memory_budget.map(|budget| budget.get().budget.clone()),
        };
        let shared = open::open(py, arguments)?;
        let default = shared.run(py, |engine| Ok(engine.db().default_column_family().clone()))?;
        let family = Family { shared: shared.clone(), cf: default.clone() };
        Ok(PyClassInitializer::from(ColumnFamily { family }).add_subclass(Db { shared, default }))
    }

    /// The directory, as a pathlib.Path.
    #[getter]
    fn path(&self) -> PathBuf {
        self.shared.path.clone()
    }

    /// True once it is closed.
    #[getter]
    fn closed(&self) -> bool {
        !self.shared.is_open()
    }

    /// Closes it. Waits for calls under way in other threads; rolls back transactions; whatever belongs to it raises Closed from then on. Not to be called by a merge operator.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.shared.close()).map_err(raised)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// The column family called `name`, as a dictionary of its own. NotFound if there is none.
    fn column_family(&self, py: Python<'_>, name: &str) -> PyResult<Py<ColumnFamily>> {
        let cf = self.named(py, name)?;
        self.wrapped(py, cf)
    }

    /// The names of the column families, in the order they were created.
    fn column_families(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.shared.run(py, |engine| {
            Ok(engine.db().column_families().iter().map(|cf| cf.name().to_string()).collect())
        })
    }

    /// Creates a column family. `options` are its settings by RocksDB's names. `ttl`: as the default column family, if it is left out.
    #[pyo3(signature = (name, options=None, *, merge_operator=None, ttl=None))]
    fn create_column_family(
        &self,
        py: Python<'_>,
        name: String,
        options: Option<&Bound<'_, PyAny>>,
        merge_operator: Option<&Bound<'_, MergeOperator>>,
        ttl: Option<i32>,
    ) -> PyResult<Py<ColumnFamily>> {
        let descriptor = open::new_family(name, options, merge_operator, &self.shared.codec)?;
        let cf = self.shared.run(py, |engine| match engine {
            Engine::Ttl(db) => {
                let like_default = db.ttl(db.db().default_column_family()).unwrap_or_default();
                db.create_column_family(descriptor, ttl.unwrap_or(like_default))
            }
            _ if ttl.is_some() => Err(Error::not_supported("ttl: the database was opened without it")),
            Engine::Plain(db) => db.create_column_family(descriptor),
            Engine::Optimistic(db) => db.create_column_family(&descriptor),
            Engine::Pessimistic(db) => db.create_column_family(&descriptor),
        })?;
        self.wrapped(py, cf)
    }

    /// Drops the column family called `name`. Whoever holds it may still read it.
    fn drop_column_family(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let cf = self.named(py, name)?;
        self.shared.run(py, |engine| match engine {
            Engine::Pessimistic(db) => db.drop_column_family(&cf),
            other => other.db().drop_column_family(&cf),
        })
    }

    /// An empty batch. `with db.batch() as batch:` writes it at the end, unless there is an exception.
    fn batch(&self) -> WriteBatch {
        WriteBatch::of(&self.family(self.default.clone()))
    }

    /// Writes a batch: all or nothing. The batch stays as it is.
    #[pyo3(signature = (batch, *, options=None))]
    fn write(
        &self,
        py: Python<'_>,
        batch: &Bound<'_, WriteBatch>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        batch.get().write(py, &self.shared, &write_options(options, &self.shared.write_options))
    }

    /// Begins a transaction; `with db.begin() as txn:` commits it at the end, or rolls it back if there is an exception. `snapshot`: keys that others write from now on cannot be touched. Times in milliseconds: `lock_timeout` for each lock (below 0: for ever), `expiration` of the transaction.
    #[pyo3(signature = (*, snapshot=false, lock_timeout=None, deadlock_detect=None, expiration=None, write_options=None))]
    fn begin(
        &self,
        py: Python<'_>,
        snapshot: bool,
        lock_timeout: Option<i64>,
        deadlock_detect: Option<bool>,
        expiration: Option<i64>,
        write_options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<Transaction> {
        let family = self.family(self.default.clone());
        let locking = transaction::locking(lock_timeout, deadlock_detect, expiration);
        Transaction::begin(py, &family, &transaction::beginning(&family, snapshot, locking, write_options))
    }

    /// The transactions that were prepared before the database was closed, or crashed, and are to be decided.
    fn prepared_transactions(&self, py: Python<'_>) -> PyResult<Vec<Transaction>> {
        let found = self.shared.run(py, |engine| match engine {
            Engine::Pessimistic(db) => db.prepared_transactions(),
            _ => Err(Error::not_supported("prepared transactions are of transactions=\"pessimistic\"")),
        })?;
        let family = self.family(self.default.clone());
        Ok(found.into_iter().map(|transaction| Transaction::of(family.clone(), transaction)).collect())
    }

    /// Writes what is in memory of all column families to tables, and waits for it.
    fn flush_all(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.run(py, |engine| engine.db().flush())
    }

    /// Makes all writes so far survive a crash of the machine; with `sync=False`, of the process, where `manual_wal_flush` is set.
    #[pyo3(signature = (*, sync=true))]
    fn flush_wal(&self, py: Python<'_>, sync: bool) -> PyResult<()> {
        self.shared.run(py, |engine| match sync {
            true => engine.db().sync_wal(),
            false => engine.db().flush_wal(),
        })
    }

    /// Waits until there is nothing to compact. TimedOut after `timeout` seconds.
    #[pyo3(signature = (*, flush=false, timeout=None))]
    fn wait_for_compact(&self, py: Python<'_>, flush: bool, timeout: Option<f64>) -> PyResult<()> {
        let timeout = timeout
            .map(|seconds| {
                Duration::try_from_secs_f64(seconds)
                    .map_err(|error| crate::errors::invalid(error.to_string()))
            })
            .transpose()?;
        let options = WaitForCompactOptions { flush, timeout, ..WaitForCompactOptions::default() };
        self.shared.run(py, |engine| engine.db().wait_for_compact(&options))
    }

    /// Makes the directory `path` a copy that opens as a database; its tables are links.
    fn create_checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.shared.run(py, |engine| engine.db().create_checkpoint(&path))
    }

    /// Shows what the writing process has written meanwhile: of a database that was opened with mode="secondary".
    fn try_catch_up_with_primary(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.run(py, |engine| engine.db().try_catch_up_with_primary())
    }

    /// Lets writes go on after an error that stopped them, once its cause is gone.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.run(py, |engine| engine.db().resume())
    }

    /// Reads every block of every table. Corruption names the first that is damaged.
    fn verify_checksums(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.run(py, |engine| engine.db().verify_checksums())
    }

    /// The number of the last write that readers see.
    fn latest_sequence_number(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.run(py, |engine| Ok(engine.db().latest_sequence_number().0))
    }

    /// Figures of the database in the text format of Prometheus.
    fn metrics(&self, py: Python<'_>) -> PyResult<String> {
        self.shared.run(py, |engine| Ok(engine.db().metrics()))
    }

    /// Tickers and histograms in RocksDB's words; None unless it was opened with statistics=True.
    fn statistics(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.shared.run(py, |_| Ok(self.shared.statistics.as_ref().map(|statistics| statistics.text())))
    }

    /// Changes settings of the database as a whole while it is open, by RocksDB's names.
    fn set_db_options(&self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let options = option_pairs(options)?;
        let options: Vec<(&str, &str)> = options.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.shared.run(py, |engine| engine.db().set_db_options(&options))
    }

    /// Its settings by RocksDB's names, in the words of the OPTIONS file.
    fn db_options(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, String>> {
        self.shared.run(py, |engine| Ok(open::shown_db(&engine.db().db_options())))
    }

    /// The tables that it consists of, a dict for each. Keys are as they are stored.
    fn live_files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let files = self.shared.run(py, |engine| Ok(engine.db().live_files()))?;
        let listed: PyResult<Vec<Bound<'py, PyDict>>> = files
            .iter()
            .map(|file| {
                let shown = PyDict::new(py);
                shown.set_item("column_family", &file.column_family)?;
                shown.set_item("name", &file.name)?;
                shown.set_item("directory", &file.directory)?;
                shown.set_item("level", file.level)?;
                shown.set_item("size", file.size)?;
                shown.set_item("num_entries", file.num_entries)?;
                shown.set_item("num_deletions", file.num_deletions)?;
                shown.set_item("smallest_key", PyBytes::new(py, &file.smallest_key))?;
                shown.set_item("largest_key", PyBytes::new(py, &file.largest_key))?;
                Ok(shown)
            })
            .collect();
        PyList::new(py, listed?)
    }

    /// The names of the column families of the database at `path`, which is not opened.
    #[staticmethod]
    fn list_column_families(py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        py.detach(|| outcrop::Db::list_column_families(&path)).map_err(raised)
    }

    /// Removes the files of the database at `path`, which must not be open.
    #[staticmethod]
    fn destroy(py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| outcrop::Db::destroy(&path)).map_err(raised)
    }

    /// Makes a database of what is left of the damaged one at `path`. Says what was done; what is not used any more is in `lost/` beside it.
    #[staticmethod]
    #[pyo3(signature = (path, options=None))]
    fn repair(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let builder = open::repairer(&path, options)?;
        let report = py.detach(|| builder.repair(&RepairOptions::default())).map_err(raised)?;
        Ok(report.to_string())
    }

    fn __repr__(&self) -> String {
        let state = if self.shared.is_open() { "" } else { ", closed" };
        format!("<database {:?}{state}>", self.shared.path)
    }
}

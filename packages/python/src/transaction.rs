//! Transactions: writes that are kept apart until they are committed together.

use crate::engine::{Engine, Shared};
use crate::errors::{Failure, Outcome, invalid};
use crate::family::{ColumnFamily, Family, listed};
use crate::options::{ReadOptions, WriteOptions, read_options, write_options};
use crate::scan::{Cursor, locked_detached, stale};
use outcrop::{LockMode, TakeSnapshot, TransactionOptions, TransactionState};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::sync::{Arc, Mutex, MutexGuard};

/// A transaction, until it or its database is closed.
pub struct Cell {
    state: Mutex<State>,
}

struct State {
    transaction: Option<outcrop::Transaction>,
    /// Grows when cursors over it stop being right.
    epoch: u64,
}

/// A cursor's right to read a transaction.
pub struct Reader {
    cell: Arc<Cell>,
    epoch: u64,
}

/// The transaction, which stays as it is until this is dropped.
pub struct Reading<'c>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'c, State>);

impl Reader {
    /// Unless it was committed or rolled back since the cursor was made.
    pub fn begin(&self) -> Outcome<Reading<'_>> {
        let state = locked_detached(&self.cell.state);
        match state.transaction.is_some() && state.epoch == self.epoch {
            true => Ok(Reading(state)),
            false => Err(stale()),
        }
    }
}

impl Cell {
    /// Drops the transaction; nothing of it happens unless it was committed.
    pub fn end(&self) {
        locked_detached(&self.state).transaction = None;
    }
}

/// Writes that are kept apart until they are committed together, and reads that see them. Made by `Db.begin`. Calls that name no column
/// family mean the default one.
#[pyclass(frozen, module = "outcrop", weakref)]
pub struct Transaction {
    family: Family,
    cell: Arc<Cell>,
}

/// How a transaction is begun.
pub struct Beginning {
    pub snapshot: bool,
    /// Given: options that only locks have.
    pub locking: Option<TransactionOptions>,
    pub write_options: outcrop::WriteOptions,
}

impl Transaction {
    pub fn begin(py: Python<'_>, family: &Family, beginning: &Beginning) -> PyResult<Transaction> {
        let Beginning { snapshot, locking, write_options } = beginning;
        let transaction = family.shared.run(py, |engine| match engine {
            Engine::Optimistic(_) if locking.is_some() => Err(outcrop::Error::invalid_argument(
                "lock_timeout, deadlock_detect and expiration are of transactions=\"pessimistic\"",
            )),
            Engine::Optimistic(db) => {
                let snapshot = if *snapshot { TakeSnapshot::AtBegin } else { TakeSnapshot::No };
                Ok(db.begin_with(write_options, snapshot))
            }
            Engine::Pessimistic(db) => {
                let options =
                    TransactionOptions { set_snapshot: *snapshot, ..locking.clone().unwrap_or_default() };
                Ok(db.begin_with(write_options, &options))
            }
            _ => Err(outcrop::Error::not_supported(
                "transactions: open the database with transactions=\"pessimistic\" or \"optimistic\"",
            )),
        })?;
        Ok(Transaction::of(family.clone(), transaction))
    }

    /// `transaction`, whose calls that name no column family mean `family`.
    pub fn of(family: Family, transaction: outcrop::Transaction) -> Transaction {
        let cell = Arc::new(Cell { state: Mutex::new(State { transaction: Some(transaction), epoch: 0 }) });
        family.shared.watch(&cell);
        Transaction { family, cell }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.family.shared
    }

    fn family<'f>(&'f self, given: Option<&'f Bound<'_, ColumnFamily>>) -> PyResult<&'f Family> {
        given.map_or(Ok(&self.family), |given| given.get().family.of(self.shared()))
    }

    /// Does `work`, without the interpreter's lock: a key may be locked by another thread.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut outcrop::Transaction) -> outcrop::Result<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| {
            self.shared().with(|_| {
                let mut state = locked_detached(&self.cell.state);
                let transaction = state.transaction.as_mut().ok_or(Failure::Closed("transaction"))?;
                Ok(work(transaction)?)
            })
        })?)
    }

    /// The same for calls after which no cursor over it is right any more.
    fn end(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut outcrop::Transaction) -> outcrop::Result<()> + Send,
    ) -> PyResult<()> {
        Ok(py.detach(|| {
            self.shared().with(|_| {
                let mut state = locked_detached(&self.cell.state);
                state.epoch += 1;
                let transaction = state.transaction.as_mut().ok_or(Failure::Closed("transaction"))?;
                Outcome::Ok(work(transaction)?)
            })
        })?)
    }

    fn get_any(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<&Py<PyAny>>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (family, codec) = (self.family(column_family)?, &self.shared().codec);
        let options = read_options(options, codec)?;
        if let Ok(keys) = key.cast::<PyList>() {
            let keys: Vec<Bound<'_, PyAny>> = keys.iter().collect();
            let stored: PyResult<Vec<_>> = keys.iter().map(|key| codec.key(key)).collect();
            let stored = stored?;
            let slices: Vec<&[u8]> = stored.iter().map(|key| &**key).collect();
            let read: Vec<_> = self.run(py, |transaction| {
                transaction.multi_get_cf_with(&family.cf, &slices, &options).into_iter().collect()
            })?;
            return Ok(Some(listed(py, family, &read, default)?.into_any().unbind()));
        }
        let key = codec.key(key)?;
        let read = self.run(py, |transaction| transaction.get_cf_with(&family.cf, &key, &options))?;
        read.map(|value| codec.decode(py, &value)).transpose()
    }
}

#[pymethods]
impl Transaction {
    /// The value of `key`, or `default`, as the transaction would leave it. Of a list of keys the list of values.
    #[pyo3(signature = (key, default=None, *, column_family=None, options=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.get_any(py, key, default.as_ref(), column_family, options)?.or(default))
    }

    /// As `get`, of a key that is about to be written: it is locked, or checked when the transaction is committed. `exclusive=False` lets others lock it so, too.
    #[pyo3(signature = (key, default=None, *, exclusive=true, column_family=None, options=None))]
    fn get_for_update(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        exclusive: bool,
        column_family: Option<&Bound<'_, ColumnFamily>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (family, codec) = (self.family(column_family)?, &self.shared().codec);
        let (key, options) = (codec.key(key)?, read_options(options, codec)?);
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let read =
            self.run(py, |transaction| transaction.get_for_update_cf_with(&family.cf, &key, mode, &options))?;
        Ok(read.map(|value| codec.decode(py, &value)).transpose()?.or(default))
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = self.get_any(py, key, None, None, None)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.shared().codec.key(key)?;
        self.run(py, |transaction| Ok(transaction.get_cf(&self.family.cf, &key)?.is_some()))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    /// Sets `key` to `value`. Busy or TimedOut if another transaction has it.
    #[pyo3(signature = (key, value, *, column_family=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, codec) = (self.family(column_family)?, &self.shared().codec);
        let (key, value) = (codec.key(key)?, codec.value(value)?);
        self.run(py, |transaction| transaction.put_cf(&family.cf, &key, &value))
    }

    /// Adds `operand` to `key`.
    #[pyo3(signature = (key, operand, *, column_family=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, codec) = (self.family(column_family)?, &self.shared().codec);
        let (key, operand) = (codec.key(key)?, codec.value(operand)?);
        self.run(py, |transaction| transaction.merge_cf(&family.cf, &key, &operand))
    }

    /// Deletes `key`.
    #[pyo3(signature = (key, *, column_family=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
    ) -> PyResult<()> {
        let (family, key) = (self.family(column_family)?, self.shared().codec.key(key)?);
        self.run(py, |transaction| transaction.delete_cf(&family.cf, &key))
    }

    /// A cursor over what the transaction would leave. It ends with the transaction.
    #[pyo3(signature = (*, column_family=None, options=None))]
    fn iter(
        &self,
        py: Python<'_>,
        column_family: Option<&Bound<'_, ColumnFamily>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Cursor> {
        let family = self.family(column_family)?;
        let options = read_options(options, &self.shared().codec)?;
        let (cursor, epoch) = py.detach(|| {
            self.shared().with(|_| {
                let state = locked_detached(&self.cell.state);
                let transaction = state.transaction.as_ref().ok_or(Failure::Closed("transaction"))?;
                Ok((transaction.cursor_cf_with(&family.cf, &options)?, state.epoch))
            })
        })?;
        let reader = Arc::new(Reader { cell: self.cell.clone(), epoch });
        Ok(Cursor::of_transaction(self.shared(), cursor, reader))
    }

    /// Keys that others write from now on cannot be touched.
    fn set_snapshot(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| {
            transaction.set_snapshot();
            Ok(())
        })
    }

    /// Marks the present state.
    fn set_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| {
            transaction.set_save_point();
            Ok(())
        })
    }

    /// Takes back what was done since the last mark, and forgets that. NotFound if there is none.
    fn rollback_to_savepoint(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |transaction| transaction.rollback_to_save_point())
    }

    /// Gives it a name, which it needs to be prepared.
    fn set_name(&self, py: Python<'_>, name: &Bound<'_, PyBytes>) -> PyResult<()> {
        let name = name.as_bytes();
        self.run(py, |transaction| transaction.set_name(name))
    }

    /// Its name; empty if it has none.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let name = self.run(py, |transaction| Ok(transaction.name().to_vec()))?;
        Ok(PyBytes::new(py, &name))
    }

    /// How far it has come: "started", "prepared", "committed", "rolled back", ..
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let state = self.run(py, |transaction| Ok(transaction.state()))?;
        Ok(match state {
            TransactionState::Started => "started",
            TransactionState::AwaitingPrepare => "awaiting prepare",
            TransactionState::Prepared => "prepared",
            TransactionState::AwaitingCommit => "awaiting commit",
            TransactionState::Committed => "committed",
            TransactionState::AwaitingRollback => "awaiting rollback",
            TransactionState::RolledBack => "rolled back",
            TransactionState::LocksStolen => "locks stolen",
        })
    }

    /// Writes it to the WAL, undecided: it survives a crash, and is found by `Db.prepared_transactions`.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, |transaction| transaction.prepare())
    }

    /// Makes its writes visible, all at one moment. Busy if an optimistic one meets a key that was written meanwhile: roll it back, and begin again.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |transaction| transaction.commit())
    }

    /// Takes everything back.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, |transaction| transaction.rollback())
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
        let undecided = |state| matches!(state, TransactionState::Started);
        self.end(py, |transaction| match (undecided(transaction.state()), exc_type.is_some()) {
            // It was committed or rolled back by hand, or is prepared and to be decided later.
            (false, _) => Ok(()),
            (true, false) => {
                let committed = transaction.commit();
                if committed.is_err() && undecided(transaction.state()) {
                    // Its locks go; the error says why.
                    let _ = transaction.rollback();
                }
                committed
            }
            (true, true) => transaction.rollback(),
        })
    }
}

/// The options of a transaction that only locks have, if one of them is given.
pub fn locking(
    lock_timeout: Option<i64>,
    deadlock_detect: Option<bool>,
    expiration: Option<i64>,
) -> Option<TransactionOptions> {
    if lock_timeout.is_none() && deadlock_detect.is_none() && expiration.is_none() {
        return None;
    }
    let default = TransactionOptions::default();
    Some(TransactionOptions {
        lock_timeout: lock_timeout.unwrap_or(default.lock_timeout),
        deadlock_detect: deadlock_detect.unwrap_or(default.deadlock_detect),
        expiration: expiration.unwrap_or(default.expiration),
        ..default
    })
}

/// How `begin` begins one.
pub fn beginning(
    family: &Family,
    snapshot: bool,
    locking: Option<TransactionOptions>,
    options: Option<&Bound<'_, WriteOptions>>,
) -> Beginning {
    Beginning { snapshot, locking, write_options: write_options(options, &family.shared.write_options) }
}

/// The kind of transactions that is called `name`.
pub fn kind(name: Option<&str>) -> PyResult<Option<bool>> {
    match name {
        None => Ok(None),
        Some("pessimistic") => Ok(Some(true)),
        Some("optimistic") => Ok(Some(false)),
        Some(other) => {
            Err(invalid(format!("transactions={other:?}: there are \"pessimistic\" and \"optimistic\"")))
        }
    }
}

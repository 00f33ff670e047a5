//! An open database as the objects of Python share it: until it is closed, which waits for the calls that are under way.
//!
//! Rule: the engine is only called without the interpreter's lock ([`Shared::run`]). It may wait for a thread that needs that lock
//! for a merge operator written in Python.

use crate::codec::Codec;
use crate::errors::{Failure, Outcome};
use crate::transaction::Cell;
use outcrop::{
    ColumnFamilyHandle, Db, Error, Iter, KeyBounds, OptimisticTransactionDb, PinnedValue, ReadOptions,
    Result, Row, Statistics, TransactionDb, TransactionOptions, TtlDb, TtlRows, WriteBatch, WriteOptions,
};
use parking_lot::{Mutex, RecursiveRwLock};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A database of one of the kinds that the engine has.
pub enum Engine {
    /// Without transactions: also one that is only read.
    Plain(Db),
    /// Whose transactions are checked when they are committed.
    Optimistic(OptimisticTransactionDb),
    /// Whose transactions lock keys.
    Pessimistic(TransactionDb),
    /// Whose values expire.
    Ttl(TtlDb),
}

/// The rows of a range.
pub enum Rows {
    /// As they are stored.
    Plain(Iter),
    /// Without the times at their ends.
    Ttl(TtlRows),
}

impl Rows {
    /// The next from one end.
    pub fn step(&mut self, backwards: bool) -> Option<Result<Row>> {
        match (self, backwards) {
            (Rows::Plain(rows), false) => rows.next(),
            (Rows::Plain(rows), true) => rows.next_back(),
            (Rows::Ttl(rows), false) => rows.next(),
            (Rows::Ttl(rows), true) => rows.next_back(),
        }
    }
}

impl Engine {
    /// The database below: for all that has no values.
    pub fn db(&self) -> &Db {
        match self {
            Engine::Plain(db) => db,
            Engine::Optimistic(db) => db.db(),
            Engine::Pessimistic(db) => db.db(),
            Engine::Ttl(db) => db.db(),
        }
    }

    /// True if values end with the time they were written.
    pub fn has_stamps(&self) -> bool {
        matches!(self, Engine::Ttl(_))
    }

    /// Closes it; the transactions are gone.
    fn close(self) -> Result<()> {
        let shared = match self {
            Engine::Plain(db) => return db.close(),
            Engine::Optimistic(db) => db.db().clone(),
            Engine::Pessimistic(db) => db.db().clone(),
            Engine::Ttl(db) => db.db().clone(),
        };
        // The layer above was dropped with `self`.
        Arc::into_inner(shared).map_or(Ok(()), Db::close)
    }

    pub fn put(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        match self {
            Engine::Pessimistic(db) => db.put_cf_with(cf, key, value, options),
            Engine::Ttl(db) => db.put_cf_with(cf, key, value, options),
            other => other.db().put_cf_with(cf, key, value, options),
        }
    }

    pub fn put_entity(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        columns: &[(Vec<u8>, Vec<u8>)],
        options: &WriteOptions,
    ) -> Result<()> {
        match self {
            Engine::Pessimistic(db) => {
                let mut one = db.begin_with(options, &TransactionOptions::default());
                one.put_entity_cf(cf, key, columns)?;
                one.commit()
            }
            Engine::Ttl(_) => Err(Error::not_supported("wide columns in a database whose values expire")),
            other => other.db().put_entity_cf_with(cf, key, columns, options),
        }
    }

    pub fn merge(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        operand: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        match self {
            Engine::Pessimistic(db) => db.merge_cf_with(cf, key, operand, options),
            Engine::Ttl(db) => db.merge_cf_with(cf, key, operand, options),
            other => other.db().merge_cf_with(cf, key, operand, options),
        }
    }

    pub fn delete(&self, cf: &ColumnFamilyHandle, key: &[u8], options: &WriteOptions) -> Result<()> {
        match self {
            Engine::Pessimistic(db) => db.delete_cf_with(cf, key, options),
            other => other.db().delete_cf_with(cf, key, options),
        }
    }

    pub fn single_delete(&self, cf: &ColumnFamilyHandle, key: &[u8], options: &WriteOptions) -> Result<()> {
        match self {
            Engine::Pessimistic(db) => {
                let mut one = db.begin_with(options, &TransactionOptions::default());
                one.single_delete_cf(cf, key)?;
                one.commit()
            }
            other => other.db().single_delete_cf_with(cf, key, options),
        }
    }

    pub fn delete_range(
        &self,
        cf: &ColumnFamilyHandle,
        begin: &[u8],
        end: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        match self {
            // No lock covers a range.
            Engine::Pessimistic(_) => {
                Err(Error::not_supported("delete_range in a database whose transactions lock keys"))
            }
            other => other.db().delete_range_cf_with(cf, begin, end, options),
        }
    }

    pub fn write(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        match self {
            Engine::Plain(db) => db.write_with(batch, options),
            Engine::Optimistic(db) => db.write_with(batch, options),
            Engine::Pessimistic(db) => db.write_with(batch, options),
            Engine::Ttl(db) => db.write_with(batch, options),
        }
    }

    pub fn get(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        match self {
            Engine::Ttl(db) => db.get_cf_with(cf, key, options),
            other => other.db().get_cf_with(cf, key, options),
        }
    }

    pub fn multi_get(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Option<PinnedValue>>> {
        let read = match self {
            Engine::Ttl(db) => db.multi_get_cf_with(cf, keys, options),
            other => other.db().multi_get_cf_with(cf, keys, options),
        };
        read.into_iter().collect()
    }

    pub fn rows(&self, cf: &ColumnFamilyHandle, bounds: KeyBounds, options: &ReadOptions) -> Rows {
        match self {
            Engine::Ttl(db) => Rows::Ttl(db.range_cf_with(cf, bounds, options)),
            other => Rows::Plain(other.db().range_cf_with(cf, bounds, options)),
        }
    }

    pub fn rows_of_prefix(&self, cf: &ColumnFamilyHandle, prefix: &[u8], options: &ReadOptions) -> Rows {
        match self {
            Engine::Ttl(db) => Rows::Ttl(db.prefix_cf_with(cf, prefix, options)),
            other => Rows::Plain(other.db().prefix_cf_with(cf, prefix, options)),
        }
    }
}

/// A database that several objects of Python use.
pub struct Shared {
    engine: RecursiveRwLock<Option<Engine>>,
    /// No call may begin any more.
    closing: AtomicBool,
    /// Those that were begun; they hold the database, so they end with it.
    transactions: Mutex<Vec<Weak<Cell>>>,
    pub codec: Codec,
    pub path: PathBuf,
    /// How writes are done for which nothing is said.
    pub write_options: WriteOptions,
    pub statistics: Option<Arc<Statistics>>,
}

/// All that were opened: closed when the interpreter ends.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Shared {
    pub fn new(
        engine: Engine,
        codec: Codec,
        path: PathBuf,
        write_options: WriteOptions,
        statistics: Option<Arc<Statistics>>,
    ) -> Arc<Shared> {
        let shared = Arc::new(Shared {
            engine: RecursiveRwLock::new(Some(engine)),
            closing: AtomicBool::new(false),
            transactions: Mutex::default(),
            codec,
            path,
            write_options,
            statistics,
        });
        let mut open = OPEN.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&shared));
        shared
    }

    /// True until it is closed.
    pub fn is_open(&self) -> bool {
        // Acquire: pairs with the Release in close().
        !self.closing.load(Ordering::Acquire)
    }

    /// Closed, as an exception, unless it is open.
    pub fn check_open(&self) -> PyResult<()> {
        match self.is_open() {
            true => Ok(()),
            false => Err(Failure::Closed("database").into()),
        }
    }

    /// Does `work` on the open database. For threads without the interpreter's lock.
    pub fn with<T>(&self, work: impl FnOnce(&Engine) -> Outcome<T>) -> Outcome<T> {
        if !self.is_open() {
            return Err(Failure::Closed("database"));
        }
        // Recursive: a merge operator in Python may read the database while another thread waits to close it.
        let engine = self.engine.read();
        work(engine.as_ref().ok_or(Failure::Closed("database"))?)
    }

    /// Gives up the interpreter's lock, and does `work` on the open database.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Engine) -> Result<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| self.with(|engine| Ok(work(engine)?)))?)
    }

    /// Keeps `cell` so that it ends with the database.
    pub fn watch(&self, cell: &Arc<Cell>) {
        let mut known = self.transactions.lock();
        // Those that are gone are looked for each time the list has doubled.
        if known.len() == known.capacity() {
            known.retain(|other| other.strong_count() > 0);
        }
        known.push(Arc::downgrade(cell));
    }

    /// Refuses new calls, waits for those under way, ends the transactions and closes. For threads without the interpreter's lock.
    pub fn close(&self) -> Result<()> {
        // Release: pairs with the Acquire in is_open().
        self.closing.store(true, Ordering::Release);
        let Some(engine) = self.engine.write().take() else { return Ok(()) };
        let transactions = std::mem::take(&mut *self.transactions.lock());
        transactions.iter().filter_map(Weak::upgrade).for_each(|cell| cell.end());
        engine.close()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.engine.get_mut().is_none() {
            return;
        }
        // Background threads may need the interpreter to end what they do.
        let closed = Python::try_attach(|py| py.detach(|| self.close()));
        if closed.is_none() {
            // The interpreter has ended, or ends: no thread of this one is waited for by it.
            let _ = self.close();
        }
    }
}

/// Closes what is still open: called when the interpreter ends.
#[pyfunction]
#[pyo3(name = "_close_all")]
pub fn close_all(py: Python<'_>) {
    py.detach(|| {
        let open = std::mem::take(&mut *OPEN.lock());
        for shared in open.iter().filter_map(Weak::upgrade) {
            // What could not be written is in LOG.
            let _ = shared.close();
        }
    });
}

//! Scans: iterators of rows, and cursors for callers that seek.
//!
//! Rows are taken from the engine some at a time, without the interpreter's lock: 1, then twice as many each time, up to [`MOST_ROWS`] or
//! [`MOST_BYTES`]. They are as of the moment the iterator was made, so nobody can tell.

use crate::codec::Codec;
use crate::engine::{Rows, Shared};
use crate::errors::{Failure, Outcome, raised};
use crate::family::Family;
use crate::options::{ReadOptions, read_options};
use crate::transaction::Reader;
use outcrop::{Cursor as EngineCursor, Error, Overlay, PinnedValue, RowSource, split_ttl_value};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::collections::VecDeque;
use std::ops::Bound as End;
use std::sync::{Arc, Mutex, MutexGuard};

const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 256 << 10;

/// The part of each row that an iterator gives.
#[derive(Clone, Copy)]
pub enum Part {
    Items,
    Keys,
    Values,
}

/// Where a scan begins, and which way it goes.
pub struct Range<'r, 'py> {
    pub backwards: bool,
    pub from_key: Option<&'r Bound<'py, PyAny>>,
    pub prefix: Option<&'r Bound<'py, PyAny>>,
}

/// The rows of a range, or a part of each, one after the other.
#[pyclass(frozen, module = "outcrop", name = "Rows")]
pub struct RowIterator {
    shared: Arc<Shared>,
    part: Part,
    backwards: bool,
    state: Mutex<Scan>,
}

struct Scan {
    rows: Option<Rows>,
    ahead: VecDeque<(Vec<u8>, PinnedValue)>,
    /// Comes after what is ahead.
    failed: Option<Error>,
    chunk: usize,
}

impl Scan {
    fn fill(&mut self, backwards: bool) {
        let Some(rows) = &mut self.rows else { return };
        let mut bytes = 0;
        while self.ahead.len() < self.chunk && bytes < MOST_BYTES {
            match rows.step(backwards) {
                Some(Ok((key, value))) => {
                    bytes += key.len() + value.len();
                    self.ahead.push_back((key, value));
                }
                end => {
                    self.failed = end.and_then(Result::err);
                    self.rows = None;
                    return;
                }
            }
        }
        self.chunk = (self.chunk * 2).min(MOST_ROWS);
    }
}

/// Locks, without the interpreter's lock while it waits: the holder may need that.
pub fn locked<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    // A panic with the lock held leaves what an error would leave.
    mutex.lock_py_attached(py).unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The same for threads without it.
pub fn locked_detached<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl RowIterator {
    pub fn new(
        py: Python<'_>,
        family: &Family,
        part: Part,
        range: &Range<'_, '_>,
        options: outcrop::ReadOptions,
    ) -> PyResult<RowIterator> {
        let codec = &family.shared.codec;
        let from = range.from_key.map(|key| codec.key(key).map(|key| key.into_owned())).transpose()?;
        let prefix = range.prefix.map(|key| codec.key(key).map(|key| key.into_owned())).transpose()?;
        let backwards = range.backwards;
        let rows = family.shared.run(py, |engine| match (from, prefix) {
            (Some(_), Some(_)) => Err(Error::invalid_argument("a scan has from_key or prefix, not both")),
            (None, Some(prefix)) => Ok(engine.rows_of_prefix(&family.cf, &prefix, &options)),
            (Some(key), None) if backwards => {
                Ok(engine.rows(&family.cf, (End::Unbounded, End::Included(key)), &options))
            }
            (Some(key), None) => Ok(engine.rows(&family.cf, (End::Included(key), End::Unbounded), &options)),
            (None, None) => Ok(engine.rows(&family.cf, (End::Unbounded, End::Unbounded), &options)),
        })?;
        let state = Scan { rows: Some(rows), ahead: VecDeque::new(), failed: None, chunk: 1 };
        Ok(RowIterator { shared: family.shared.clone(), part, backwards, state: Mutex::new(state) })
    }

    fn converted(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<Py<PyAny>> {
        let codec = &self.shared.codec;
        match self.part {
            Part::Keys => codec.decode(py, key),
            Part::Values => codec.decode(py, value),
            Part::Items => {
                let row = (codec.decode(py, key)?, codec.decode(py, value)?);
                Ok(row.into_pyobject(py)?.into_any().unbind())
            }
        }
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.shared.check_open()?;
        let mut row = locked(py, &self.state).ahead.pop_front();
        if row.is_none() {
            row = py.detach(|| {
                self.shared.with(|_| {
                    let mut state = locked_detached(&self.state);
                    if state.ahead.is_empty() {
                        state.fill(self.backwards);
                    }
                    match state.ahead.pop_front() {
                        Some(row) => Ok(Some(row)),
                        None => state.failed.take().map_or(Ok(None), |error| Err(error.into())),
                    }
                })
            })?;
        }
        row.map(|(key, value)| self.converted(py, &key, &value)).transpose()
    }
}

/// A cursor of a database, or of a transaction.
enum Source {
    Database(Box<EngineCursor>),
    Transaction(Box<Overlay<EngineCursor>>, Arc<Reader>),
}

impl Source {
    fn rows(&mut self) -> &mut dyn RowSource {
        match self {
            Source::Database(cursor) => &mut **cursor,
            Source::Transaction(cursor, _) => &mut **cursor,
        }
    }
}

/// A position among the keys as they were when it was made, for callers that seek. After each move ask `valid`.
#[pyclass(frozen, module = "outcrop")]
pub struct Cursor {
    shared: Arc<Shared>,
    has_stamps: bool,
    state: Mutex<At>,
}

struct At {
    source: Source,
    /// It is on a key.
    valid: bool,
    /// As stored, while it is valid.
    key: Vec<u8>,
    value: Vec<u8>,
}

impl At {
    fn nowhere(source: Source) -> Mutex<At> {
        Mutex::new(At { source, valid: false, key: Vec::new(), value: Vec::new() })
    }

    /// Does `go`, and copies the entry that it leads to.
    fn moved(&mut self, has_stamps: bool, go: impl FnOnce(&mut dyn RowSource)) -> outcrop::Result<()> {
        self.valid = false;
        let rows = self.source.rows();
        go(rows);
        rows.status()?;
        if rows.valid() {
            let value = if has_stamps { split_ttl_value(rows.value())?.0 } else { rows.value() };
            for (copy, bytes) in [(&mut self.key, rows.key()), (&mut self.value, value)] {
                copy.clear();
                copy.extend_from_slice(bytes);
            }
            self.valid = true;
        }
        Ok(())
    }
}

/// The failure of a call that needs a cursor on a key.
fn on_no_key() -> Error {
    Error::invalid_argument("the cursor is on no key: look at valid() first")
}

impl Cursor {
    pub fn of_database(
        py: Python<'_>,
        family: &Family,
        options: Option<&Bound<'_, ReadOptions>>,
        snapshot: Option<outcrop::Snapshot>,
    ) -> PyResult<Cursor> {
        let mut options = read_options(options, &family.shared.codec)?;
        if snapshot.is_some() {
            options.snapshot = snapshot;
        }
        let (source, has_stamps) = family.shared.run(py, |engine| {
            let cursor = engine.db().cursor_cf_with(&family.cf, &options)?;
            Ok((Source::Database(Box::new(cursor)), engine.has_stamps()))
        })?;
        Ok(Cursor { shared: family.shared.clone(), has_stamps, state: At::nowhere(source) })
    }

    pub fn of_transaction(
        shared: &Arc<Shared>,
        cursor: Overlay<EngineCursor>,
        reader: Arc<Reader>,
    ) -> Cursor {
        let source = Source::Transaction(Box::new(cursor), reader);
        Cursor { shared: shared.clone(), has_stamps: false, state: At::nowhere(source) }
    }

    /// Moves it, if it may be `from` where it is.
    fn moved(&self, py: Python<'_>, from: From, go: impl FnOnce(&mut dyn RowSource) + Send) -> PyResult<()> {
        py.detach(|| {
            self.shared.with(|_| {
                let mut state = locked_detached(&self.state);
                let reading = match &state.source {
                    Source::Transaction(_, reader) => Some(reader.clone()),
                    Source::Database(_) => None,
                };
                // The transaction stays as it is meanwhile.
                let _held = reading.as_ref().map(|reader| reader.begin()).transpose()?;
                if from == From::Key && !state.valid {
                    return Err(on_no_key().into());
                }
                Outcome::Ok(state.moved(self.has_stamps, go)?)
            })
        })?;
        Ok(())
    }

    /// The object that one side of the entry is.
    fn shown(&self, py: Python<'_>, side: impl FnOnce(&At) -> &Vec<u8>) -> PyResult<Py<PyAny>> {
        self.shared.check_open()?;
        let (state, codec) = (locked(py, &self.state), &self.shared.codec);
        if !state.valid {
            return Err(raised(on_no_key()));
        }
        if matches!(codec, Codec::Bytes) {
            return codec.decode(py, side(&state));
        }
        // Without the lock: it may call Python, which may come back here.
        let bytes = side(&state).clone();
        drop(state);
        codec.decode(py, &bytes)
    }
}

/// Where a cursor may be when it is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Anywhere,
    Key,
}

#[pymethods]
impl Cursor {
    /// True if it is on a key.
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.check_open()?;
        Ok(locked(py, &self.state).valid)
    }

    /// To the first key.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, From::Anywhere, |rows| rows.seek_to_first())
    }

    /// To the last key.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, From::Anywhere, |rows| rows.seek_to_last())
    }

    /// To the first key that is not before `key`.
    fn seek(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.shared.codec.key(key)?;
        self.moved(py, From::Anywhere, |rows| rows.seek(&key))
    }

    /// To the last key that is not after `key`.
    fn seek_for_prev(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.shared.codec.key(key)?;
        self.moved(py, From::Anywhere, |rows| rows.seek_for_prev(&key))
    }

    /// To the next key. InvalidArgument unless it is on one.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, From::Key, |rows| {
            // Of a transaction the entry may be gone since.
            if rows.valid() {
                rows.next();
            }
        })
    }

    /// To the key before. InvalidArgument unless it is on one.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, From::Key, |rows| {
            // Of a transaction the entry may be gone since.
            if rows.valid() {
                rows.prev();
            }
        })
    }

    /// The key that it is on.
    fn key(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.shown(py, |at| &at.key)
    }

    /// The value of the key that it is on.
    fn value(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.shown(py, |at| &at.value)
    }
}

/// The failure of a cursor whose transaction is not there any more, or was rolled back.
pub fn stale() -> Failure {
    Failure::Closed("cursor, as its transaction was committed or rolled back: it")
}

//! Settings as Python has them: option tables as mappings by RocksDB's names, and the options of single reads and writes.

use crate::codec::Codec;
use crate::errors::{invalid, not_supported, raised};
use crate::snapshot::Snapshot;
use outcrop::{ColumnFamilyOptions, DbOptions, ReadTier};
use outcrop_options::file::set_from_string;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

/// Options as RocksDB writes them: `name={value};`. A mapping is that by its items, a text is taken as it is.
pub fn option_text(options: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = options.cast::<PyString>() {
        return text.extract();
    }
    let mut text = String::new();
    for (name, value) in pairs(options)? {
        text.push_str(&format!("{name}={{{}}};", value_text(&name, &value)?));
    }
    Ok(text)
}

/// Names of options with their values as RocksDB writes them.
pub fn option_pairs(options: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    pairs(options)?.into_iter().map(|(name, value)| Ok((name.clone(), value_text(&name, &value)?))).collect()
}

fn pairs<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let mapping = mapping.cast::<PyMapping>().map_err(|_| {
        PyTypeError::new_err("options are a mapping of names to values, or a text \"name=value;\"")
    })?;
    mapping.items()?.iter().map(|pair| pair.extract()).collect()
}

fn value_text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    // Before int: a bool is one.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if value.cast::<PyInt>().is_ok() || value.cast::<PyFloat>().is_ok() || value.cast::<PyString>().is_ok() {
        return Ok(value.str()?.to_string());
    }
    if value.is_none() {
        return Ok("nullptr".to_string());
    }
    if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
        let parts: PyResult<Vec<String>> = value.try_iter()?.map(|part| value_text(name, &part?)).collect();
        return Ok(parts?.join(":"));
    }
    if value.cast::<PyDict>().is_ok() {
        return option_text(value);
    }
    Err(PyTypeError::new_err(format!(
        "option {name}: a value is bool, int, float, str, None, a list or a dict"
    )))
}

/// Sets options of the database and of its default column family.
pub fn set_all(text: &str, db: &mut DbOptions, cf: &mut ColumnFamilyOptions) -> PyResult<()> {
    set_from_string(db, cf, text).map_err(raised)
}

/// Sets options of a column family; those of the database are refused.
pub fn set_of_family(name: &str, text: &str, cf: &mut ColumnFamilyOptions) -> PyResult<()> {
    let mut db = DbOptions::default();
    set_all(text, &mut db, cf)?;
    match db == DbOptions::default() {
        true => Ok(()),
        false => Err(invalid(format!(
            "the options of column family {name} have some of the database as a whole: pass those as options of Db"
        ))),
    }
}

/// How a write is done. `sync`: it survives a crash of the machine. `disable_wal`: it is lost in any crash before its flush. `no_slowdown`: Incomplete
/// instead of waiting. `low_pri`: it waits while compactions fall behind. `ignore_missing_column_families`: records of a batch that
/// name one that does not exist are passed over.
#[pyclass(frozen, module = "outcrop")]
pub struct WriteOptions {
    pub inner: outcrop::WriteOptions,
}

#[pymethods]
impl WriteOptions {
    #[new]
    #[pyo3(signature = (*, sync=false, disable_wal=false, no_slowdown=false, low_pri=false, ignore_missing_column_families=false))]
    fn new(
        sync: bool,
        disable_wal: bool,
        no_slowdown: bool,
        low_pri: bool,
        ignore_missing_column_families: bool,
    ) -> WriteOptions {
        let inner = outcrop::WriteOptions {
            sync,
            disable_wal,
            no_slowdown,
            low_pri,
            ignore_missing_column_families,
            ..outcrop::WriteOptions::default()
        };
        WriteOptions { inner }
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// The options of a write, or those that hold where none are given.
pub fn write_options(
    given: Option<&Bound<'_, WriteOptions>>,
    default: &outcrop::WriteOptions,
) -> outcrop::WriteOptions {
    given.map_or(*default, |options| options.get().inner)
}

/// How a read is done. `fill_cache=False` keeps a long scan out of the cache. The bounds are those of scans: the lower is part of them, the upper is
/// not. `prefix_same_as_start` and `total_order_seek` matter with a prefix extractor. `readahead_size`: bytes; 0: it grows by itself.
/// `read_tier` 1: memory alone, else Incomplete; 2: lookups pass over memtables once anything was written without a WAL, scans are refused;
/// 3: scans look into memtables alone. `deadline`: microseconds since 1970, then TimedOut. `max_skippable_internal_keys`: Incomplete after
/// so many deleted entries in one step; 0: no limit.
#[pyclass(frozen, module = "outcrop")]
pub struct ReadOptions {
    inner: outcrop::ReadOptions,
    snapshot: Option<Py<Snapshot>>,
    lower: Option<Py<PyAny>>,
    upper: Option<Py<PyAny>>,
}

#[pymethods]
impl ReadOptions {
    #[new]
    #[pyo3(signature = (*, snapshot=None, fill_cache=true, iterate_lower_bound=None, iterate_upper_bound=None, prefix_same_as_start=false, total_order_seek=false, readahead_size=0, read_tier=0, deadline=0, ignore_range_deletions=false, max_skippable_internal_keys=0))]
    #[allow(clippy::too_many_arguments)] // They are RocksDB's options, given by name.
    fn new(
        snapshot: Option<Py<Snapshot>>,
        fill_cache: bool,
        iterate_lower_bound: Option<Py<PyAny>>,
        iterate_upper_bound: Option<Py<PyAny>>,
        prefix_same_as_start: bool,
        total_order_seek: bool,
        readahead_size: usize,
        read_tier: u8,
        deadline: u64,
        ignore_range_deletions: bool,
        max_skippable_internal_keys: u64,
    ) -> PyResult<ReadOptions> {
        let tier = match read_tier {
            0 => ReadTier::All,
            1 => ReadTier::Cached,
            2 => ReadTier::Persisted,
            3 => ReadTier::MemTables,
            other => {
                return Err(not_supported(format!(
                    "read_tier {other}: there are 0 (anything), 1 (memory alone), 2 (what is persisted) and 3 (memtables)"
                )));
            }
        };
        let inner = outcrop::ReadOptions {
            fill_cache,
            prefix_same_as_start,
            total_order_seek,
            readahead_size,
            tier,
            deadline,
            ignore_range_deletions,
            max_skippable_internal_keys,
            ..outcrop::ReadOptions::default()
        };
        Ok(ReadOptions { inner, snapshot, lower: iterate_lower_bound, upper: iterate_upper_bound })
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.inner)
    }
}

/// The options of a read of a database that stores by `codec`.
pub fn read_options(given: Option<&Bound<'_, ReadOptions>>, codec: &Codec) -> PyResult<outcrop::ReadOptions> {
    let Some(given) = given else { return Ok(outcrop::ReadOptions::default()) };
    let (py, given) = (given.py(), given.get());
    let bound = |key: &Option<Py<PyAny>>| {
        key.as_ref().map(|key| codec.key(key.bind(py)).map(|key| key.into_owned())).transpose()
    };
    let snapshot = given.snapshot.as_ref().map(|snapshot| snapshot.get().held(py)).transpose()?;
    Ok(outcrop::ReadOptions {
        snapshot,
        iterate_lower_bound: bound(&given.lower)?,
        iterate_upper_bound: bound(&given.upper)?,
        ..given.inner.clone()
    })
}

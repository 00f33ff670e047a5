//! A column family: the dictionary.

use crate::engine::{Engine, Shared};
use crate::errors::invalid;
use crate::open::shown;
use crate::options::{ReadOptions, WriteOptions, option_pairs, read_options, write_options};
use crate::scan::{Cursor, Part, Range, RowIterator};
use crate::snapshot::Snapshot;
use outcrop::{
    BottommostLevelCompaction, ColumnFamilyHandle, CompactRangeOptions, Error, IngestExternalFileOptions,
    PinnedValue,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// One column family of an open database.
#[derive(Clone)]
pub struct Family {
    pub shared: Arc<Shared>,
    pub cf: ColumnFamilyHandle,
}

/// The value of a key, or the values of a list of keys, of which those that are missing are `default`. `None`: the one key is missing.
pub fn get_any(
    py: Python<'_>,
    family: &Family,
    key: &Bound<'_, PyAny>,
    options: &outcrop::ReadOptions,
    default: Option<&Py<PyAny>>,
) -> PyResult<Option<Py<PyAny>>> {
    let codec = &family.shared.codec;
    if let Ok(keys) = key.cast::<PyList>() {
        let keys: Vec<Bound<'_, PyAny>> = keys.iter().collect();
        let stored: PyResult<Vec<_>> = keys.iter().map(|key| codec.key(key)).collect();
        let stored = stored?;
        let slices: Vec<&[u8]> = stored.iter().map(|key| &**key).collect();
        let read = family.shared.run(py, |engine| engine.multi_get(&family.cf, &slices, options))?;
        return Ok(Some(listed(py, family, &read, default)?.into_any().unbind()));
    }
    let key = codec.key(key)?;
    let read = family.shared.run(py, |engine| engine.get(&family.cf, &key, options))?;
    read.map(|value| codec.decode(py, &value)).transpose()
}

/// The values that were read, as a list.
pub fn listed<'py>(
    py: Python<'py>,
    family: &Family,
    read: &[Option<PinnedValue>],
    default: Option<&Py<PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let values: PyResult<Vec<_>> = read
        .iter()
        .map(|value| match value {
            Some(value) => family.shared.codec.decode(py, value),
            None => Ok(default.map_or_else(|| py.None(), |default| default.clone_ref(py))),
        })
        .collect();
    PyList::new(py, values?)
}

impl Family {
    /// This, if it belongs to `shared`.
    pub fn of(&self, shared: &Arc<Shared>) -> PyResult<&Family> {
        match Arc::ptr_eq(&self.shared, shared) {
            true => Ok(self),
            false => Err(invalid(format!("the column family {} is of another database", self.cf.name()))),
        }
    }

    pub fn contains(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        options: &outcrop::ReadOptions,
    ) -> PyResult<bool> {
        let key = self.shared.codec.key(key)?;
        self.shared.run(py, |engine| Ok(engine.get(&self.cf, &key, options)?.is_some()))
    }

    fn rows(
        &self,
        py: Python<'_>,
        part: Part,
        range: &Range<'_, '_>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        RowIterator::new(py, self, part, range, read_options(options, &self.shared.codec)?)
    }

    fn write_options(&self, given: Option<&Bound<'_, WriteOptions>>) -> outcrop::WriteOptions {
        write_options(given, &self.shared.write_options)
    }

    fn bound(&self, key: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<u8>>> {
        key.map(|key| self.shared.codec.key(key).map(|key| key.into_owned())).transpose()
    }

    /// Keys with their values, of a mapping or of anything that gives pairs.
    fn pairs<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        match rows.cast::<PyMapping>() {
            Ok(mapping) => mapping.items()?.iter().map(|pair| pair.extract()).collect(),
            Err(_) => rows.try_iter()?.map(|pair| pair?.extract()).collect(),
        }
    }
}

/// A column family as a dictionary, in the order of its keys.
///
/// `family[key]` raises KeyError if there is no such key; with a list of keys it gives a list, as `get` does. Keys and values are bytes,
/// unless the database was opened with an encoding.
#[pyclass(frozen, subclass, weakref, module = "outcrop")]
pub struct ColumnFamily {
    pub family: Family,
}

#[pymethods]
impl ColumnFamily {
    /// The name of the column family.
    #[getter]
    fn name(&self) -> &str {
        self.family.cf.name()
    }

    /// The number that its records have in the files.
    #[getter]
    fn id(&self) -> u32 {
        self.family.cf.id().0
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = get_any(py, &self.family, key, &outcrop::ReadOptions::default(), None)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(py, key, value, None)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(py, key, None)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.family.contains(py, key, &outcrop::ReadOptions::default())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        self.keys(py, false, None, None, None)
    }

    /// The value of `key`, or `default`. Of a list of keys the list of values, read together, `default` for each that is missing.
    #[pyo3(signature = (key, default=None, *, options=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let options = read_options(options, &self.family.shared.codec)?;
        let found = get_any(py, &self.family, key, &options, default.as_ref())?;
        Ok(found.or(default))
    }

    /// Sets `key` to `value`. On return it survives a crash of the process; with `WriteOptions(sync=True)`, of the machine.
    #[pyo3(signature = (key, value, *, options=None))]
    fn put(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let (key, value) = (shared.codec.key(key)?, shared.codec.value(value)?);
        shared.run(py, |engine| engine.put(cf, &key, &value, &options))
    }

    /// Adds `operand` to `key`, for the merge operator to combine when the key is read.
    #[pyo3(signature = (key, operand, *, options=None))]
    fn merge(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let (key, operand) = (shared.codec.key(key)?, shared.codec.value(operand)?);
        shared.run(py, |engine| engine.merge(cf, &key, &operand, &options))
    }

    /// Deletes `key`, whether it is there or not.
    #[pyo3(signature = (key, *, options=None))]
    fn delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let key = shared.codec.key(key)?;
        shared.run(py, |engine| engine.delete(cf, &key, &options))
    }

    /// Deletes a key that was put once since it was deleted last: cheaper than `delete`, and wrong for any other key.
    #[pyo3(signature = (key, *, options=None))]
    fn single_delete(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let key = shared.codec.key(key)?;
        shared.run(py, |engine| engine.single_delete(cf, &key, &options))
    }

    /// Deletes the keys from `begin` up to `end`, which stays. NotSupported with `transactions="pessimistic"`.
    #[pyo3(signature = (begin, end, *, options=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        begin: &Bound<'_, PyAny>,
        end: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let (begin, end) = (shared.codec.key(begin)?, shared.codec.key(end)?);
        shared.run(py, |engine| engine.delete_range(cf, &begin, &end, &options))
    }

    /// Puts all rows of a mapping, or of pairs, as one batch: all or none.
    #[pyo3(signature = (rows, *, options=None))]
    fn update(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let mut batch = outcrop::WriteBatch::new();
        for (key, value) in self.family.pairs(rows)? {
            batch.put_cf(cf, shared.codec.key(&key)?, shared.codec.value(&value)?);
        }
        shared.run(py, |engine| engine.write(&mut batch, &options))
    }

    /// Sets `key` to a wide-column entity: a mapping of columns, or pairs.
    #[pyo3(signature = (key, columns, *, options=None))]
    fn put_entity(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<()> {
        let (Family { shared, cf }, options) = (&self.family, self.family.write_options(options));
        let key = shared.codec.key(key)?;
        let stored: PyResult<Vec<(Vec<u8>, Vec<u8>)>> = self
            .family
            .pairs(columns)?
            .iter()
            .map(|(name, value)| {
                Ok((shared.codec.value(name)?.into_owned(), shared.codec.value(value)?.into_owned()))
            })
            .collect();
        let stored = stored?;
        shared.run(py, |engine| engine.put_entity(cf, &key, &stored, &options))
    }

    /// The columns of `key` as a dict, or `default`. A plain value is the column whose name is b"".
    #[pyo3(signature = (key, default=None, *, options=None))]
    fn get_entity(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let Family { shared, cf } = &self.family;
        let (key, options) = (shared.codec.key(key)?, read_options(options, &shared.codec)?);
        let found = shared.run(py, |engine| match engine.has_stamps() {
            true => Err(Error::not_supported("wide columns in a database whose values expire")),
            false => engine.db().get_entity_cf_with(cf, &key, &options),
        })?;
        let Some(columns) = found else { return Ok(default) };
        let entity = PyDict::new(py);
        for (name, value) in columns.iter() {
            let name = match name.is_empty() {
                // The column that a plain value is has no name, in any encoding.
                true => pyo3::types::PyBytes::new(py, b"").into_any().unbind(),
                false => shared.codec.decode(py, name)?,
            };
            entity.set_item(name, shared.codec.decode(py, value)?)?;
        }
        Ok(Some(entity.into_any().unbind()))
    }

    /// A cursor, which is on no key before it seeks.
    #[pyo3(signature = (options=None))]
    fn iter(&self, py: Python<'_>, options: Option<&Bound<'_, ReadOptions>>) -> PyResult<Cursor> {
        Cursor::of_database(py, &self.family, options, None)
    }

    /// Pairs of keys and values in the order of the keys, as of now. From `from_key` on in the direction of the scan, or those whose keys begin with `prefix`.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn items(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.family.rows(py, Part::Items, &Range { backwards, from_key, prefix }, options)
    }

    /// Keys in their order, as of now: see `items`.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn keys(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.family.rows(py, Part::Keys, &Range { backwards, from_key, prefix }, options)
    }

    /// Values in the order of their keys, as of now: see `items`.
    #[pyo3(signature = (backwards=false, from_key=None, *, prefix=None, options=None))]
    fn values(
        &self,
        py: Python<'_>,
        backwards: bool,
        from_key: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, ReadOptions>>,
    ) -> PyResult<RowIterator> {
        self.family.rows(py, Part::Values, &Range { backwards, from_key, prefix }, options)
    }

    /// This column family as it is now.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = self.family.shared.run(py, |engine| Ok(engine.db().snapshot()))?;
        Ok(Snapshot::new(self.family.clone(), snapshot))
    }

    /// Writes what is in memory to a table, and waits for it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |engine| engine.db().flush_cf(cf))
    }

    #[pyo3(signature = (begin=None, end=None, *, force=false, target_level=None, exclusive=false, max_subcompactions=None))]
    #[allow(clippy::too_many_arguments)] // They are given by name.
    /// Compacts the keys from `begin` to `end`, both included; None is the end of all keys. `force` rewrites the last level too; `target_level` moves the result there.
    fn compact_range(
        &self,
        py: Python<'_>,
        begin: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        force: bool,
        target_level: Option<usize>,
        exclusive: bool,
        max_subcompactions: Option<u32>,
    ) -> PyResult<()> {
        let Family { shared, cf } = &self.family;
        let (begin, end) = (self.family.bound(begin)?, self.family.bound(end)?);
        let bottommost_level_compaction =
            if force { BottommostLevelCompaction::Force } else { BottommostLevelCompaction::Skip };
        let options = CompactRangeOptions {
            bottommost_level_compaction,
            change_level: target_level.is_some(),
            target_level,
            exclusive_manual_compaction: exclusive,
            max_subcompactions,
            ..CompactRangeOptions::default()
        };
        shared.run(py, |engine| {
            engine.db().compact_range_cf_with(cf, begin.as_deref(), end.as_deref(), &options)
        })
    }

    #[pyo3(signature = (paths, *, move_files=false, allow_global_seqno=true, allow_blocking_flush=true, ingest_behind=false, verify_checksums=false))]
    #[allow(clippy::too_many_arguments)] // They are given by name.
    /// Takes tables in that `SstFileWriter`, or RocksDB, wrote. `move_files` links them instead of copying.
    fn ingest_external_files(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        move_files: bool,
        allow_global_seqno: bool,
        allow_blocking_flush: bool,
        ingest_behind: bool,
        verify_checksums: bool,
    ) -> PyResult<()> {
        let Family { shared, cf } = &self.family;
        let options = IngestExternalFileOptions {
            move_files,
            allow_global_seqno,
            allow_blocking_flush,
            ingest_behind,
            verify_checksums_before_ingest: verify_checksums,
            ..IngestExternalFileOptions::default()
        };
        shared.run(py, |engine| match engine.has_stamps() {
            true => Err(Error::not_supported(
                "ingestion into a database whose values expire: the files have no times",
            )),
            false => engine.db().ingest_external_files_cf_with(cf, &paths, &options),
        })
    }

    /// The property of that name (`rocksdb.stats`, `rocksdb.num-files-at-level0`, ..) as text; None if there is none.
    fn property(&self, py: Python<'_>, name: &str) -> PyResult<Option<String>> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |engine| Ok(engine.db().property_cf(cf, name)))
    }

    /// The property of that name as a number; None if there is none that is a number.
    fn property_int(&self, py: Python<'_>, name: &str) -> PyResult<Option<u64>> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |engine| Ok(engine.db().property_int_cf(cf, name)))
    }

    /// The property of that name as a dict; None if there is none that is a map.
    fn property_map(&self, py: Python<'_>, name: &str) -> PyResult<Option<BTreeMap<String, String>>> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |engine| Ok(engine.db().property_map_cf(cf, name)))
    }

    /// Changes settings of the column family while it is open, by RocksDB's names.
    fn set_options(&self, py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<()> {
        let Family { shared, cf } = &self.family;
        let options = option_pairs(options)?;
        let options: Vec<(&str, &str)> = options.iter().map(|(name, value)| (&**name, &**value)).collect();
        shared.run(py, |engine| engine.db().set_options_cf(cf, &options))
    }

    /// Its settings, and those of its tables, by RocksDB's names, in the words of the OPTIONS file.
    fn options(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, String>> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |_| Ok(shown(&cf.options())))
    }

    /// Values live so many seconds from now on, also those that are there; 0: for ever. For a database that was opened with `ttl`.
    fn set_ttl(&self, py: Python<'_>, ttl: i32) -> PyResult<()> {
        let Family { shared, cf } = &self.family;
        shared.run(py, |engine| match engine {
            Engine::Ttl(db) => {
                db.set_ttl(cf, ttl);
                Ok(())
            }
            _ => Err(Error::not_supported("set_ttl: the database was opened without ttl")),
        })
    }

    fn __repr__(&self) -> String {
        let state = if self.family.shared.is_open() { "" } else { ", closed" };
        format!("<column family {:?} of {:?}{state}>", self.family.cf.name(), self.family.shared.path)
    }
}

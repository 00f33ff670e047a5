//! Opening: from the arguments of `Db` and the OPTIONS file to a database.
//!
//! Settings begin as the database has them stored, if there is one; those that are given change them. All column families that it has
//! are opened.

use crate::codec::{Codec, ROCKSDICT, rocksdict_order};
use crate::engine::{Engine, Shared};
use crate::errors::{invalid, raised};
use crate::merge::MergeOperator;
use crate::options::{option_text, set_all, set_of_family};
use crate::transaction;
use outcrop::options::LoadedOptions;
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY, Db, DbBuilder, DbObjects, DbOptions,
    ErrorKind, MemoryBudget, OptimisticTransactionDb, OptimisticTransactionDbOptions, Statistics,
    TransactionDb, TransactionDbOptions, TtlDb,
};
use outcrop_options::kept::Kept;
use outcrop_options::rows::{CF_ROWS, DB_ROWS, TABLE_ROWS, printed};
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The arguments.
pub struct Arguments<'a, 'py> {
    pub path: PathBuf,
    pub options: Option<&'a Bound<'py, PyAny>>,
    pub column_families: Option<&'a Bound<'py, PyAny>>,
    pub merge_operator: Option<&'a Bound<'py, PyAny>>,
    pub mode: &'a str,
    pub create_if_missing: bool,
    pub transactions: Option<&'a str>,
    pub ttl: Option<i32>,
    pub encoding: Option<&'a str>,
    pub dumps: Option<Py<PyAny>>,
    pub loads: Option<Py<PyAny>>,
    pub write_options: outcrop::WriteOptions,
    pub statistics: bool,
    pub memory_budget: Option<Arc<MemoryBudget>>,
}

/// The file in which `rocksdict` notes how it stores.
const NOTE: &str = "rocksdict-config.json";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadWrite,
    ReadOnly,
    Secondary,
}

/// Opens the database that `arguments` say.
pub fn open(py: Python<'_>, arguments: Arguments<'_, '_>) -> PyResult<Arc<Shared>> {
    let mode = match arguments.mode {
        "read_write" => Mode::ReadWrite,
        "read_only" => Mode::ReadOnly,
        "secondary" => Mode::Secondary,
        other => {
            return Err(invalid(format!(
                "mode={other:?}: there are \"read_write\", \"read_only\" and \"secondary\""
            )));
        }
    };
    let pessimistic = transaction::kind(arguments.transactions)?;
    if pessimistic.is_some() && mode != Mode::ReadWrite {
        return Err(invalid("a database with transactions is opened with mode=\"read_write\""));
    }
    let ttl = arguments.ttl;
    if ttl.is_some() && (pessimistic.is_some() || mode == Mode::Secondary) {
        return Err(invalid("a database with ttl has no transactions, and does not follow another"));
    }
    let path = &arguments.path;
    check_encoding(path, arguments.encoding)?;
    let codec = Codec::named(arguments.encoding, arguments.dumps, arguments.loads)?;
    let families = Families {
        options: arguments.options.map(option_text).transpose()?,
        named: named(arguments.column_families)?,
        operators: arguments.merge_operator.map(operators).transpose()?.unwrap_or_default(),
        create_if_missing: arguments.create_if_missing,
    };
    let exists = path.join("CURRENT").exists();
    let builder = families.builder(path, exists, &codec)?;
    let statistics = arguments.statistics.then(|| Arc::new(Statistics::new()));
    let objects = DbObjects { memory_budget: arguments.memory_budget, ..DbObjects::default() };
    let builder = builder.statistics(statistics.clone()).objects(objects);
    let opened = py.detach(|| match (mode, pessimistic, ttl) {
        (Mode::ReadOnly, _, Some(_)) => TtlDb::open_read_only(builder).map(Engine::Ttl),
        (Mode::ReadOnly, _, None) => builder.open_read_only().map(Engine::Plain),
        (Mode::Secondary, ..) => builder.open_secondary().map(Engine::Plain),
        (Mode::ReadWrite, Some(true), _) => {
            TransactionDb::open_with(builder, TransactionDbOptions::default()).map(Engine::Pessimistic)
        }
        (Mode::ReadWrite, Some(false), _) => {
            OptimisticTransactionDb::open_with(builder, OptimisticTransactionDbOptions::default())
                .map(Engine::Optimistic)
        }
        (Mode::ReadWrite, None, Some(ttl)) => TtlDb::open(builder, ttl).map(Engine::Ttl),
        (Mode::ReadWrite, None, None) => builder.open().map(Engine::Plain),
    });
    let engine = opened.map_err(raised)?;
    if !exists && matches!(codec, Codec::Rocksdict { .. }) {
        // So that rocksdict finds out by itself.
        std::fs::write(path.join(NOTE), "{\"raw_mode\":false,\"prefix_extractors\":{}}")?;
    }
    Ok(Shared::new(engine, codec, arguments.path, arguments.write_options, statistics))
}

/// Refuses to take a database that `rocksdict` stores in its encoding for one of plain bytes, unless that is asked for.
fn check_encoding(path: &Path, encoding: Option<&str>) -> PyResult<()> {
    let Ok(note) = std::fs::read_to_string(path.join(NOTE)) else { return Ok(()) };
    let note: String = note.chars().filter(|char| !char.is_whitespace()).collect();
    match encoding {
        None if note.contains("\"raw_mode\":false") => Err(invalid(format!(
            "{}: rocksdict stores types with its keys and values: pass encoding=\"rocksdict\", or \"bytes\" for the bytes as they are stored",
            path.display()
        ))),
        Some("rocksdict") if note.contains("\"raw_mode\":true") => Err(invalid(format!(
            "{}: rocksdict opened this with raw_mode: leave encoding out",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Column families with their options as text.
fn named(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<(String, Option<String>)>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    if let Ok(mapping) = given.cast::<PyMapping>() {
        let pairs: PyResult<Vec<(String, Option<Bound<'_, PyAny>>)>> =
            mapping.items()?.iter().map(|pair| pair.extract()).collect();
        return pairs?
            .into_iter()
            .map(|(name, options)| Ok((name, options.as_ref().map(option_text).transpose()?)))
            .collect();
    }
    given.try_iter()?.map(|name| Ok((name?.extract()?, None))).collect()
}

/// Merge operators, each with the name of its column family; `None`: of all.
type Operators = Vec<(Option<String>, Arc<dyn outcrop::MergeOperator>)>;

fn operators(given: &Bound<'_, PyAny>) -> PyResult<Operators> {
    if let Ok(operator) = given.cast::<MergeOperator>() {
        return Ok(vec![(None, operator.get().operator.clone())]);
    }
    let pairs: PyResult<Vec<(String, Bound<'_, MergeOperator>)>> =
        given.cast::<PyMapping>()?.items()?.iter().map(|pair| pair.extract()).collect();
    let with_name = |(name, operator): (String, Bound<'_, MergeOperator>)| {
        let operator: Arc<dyn outcrop::MergeOperator> = operator.get().operator.clone();
        (Some(name), operator)
    };
    Ok(pairs?.into_iter().map(with_name).collect())
}

/// The settings that are given.
struct Families {
    options: Option<String>,
    named: Vec<(String, Option<String>)>,
    operators: Operators,
    create_if_missing: bool,
}

impl Families {
    fn builder(&self, path: &Path, exists: bool, codec: &Codec) -> PyResult<DbBuilder> {
        let mut stored = if exists { stored(path)? } else { LoadedOptions::default() };
        let mut db = DbOptions {
            create_if_missing: self.create_if_missing,
            // Those of the process that wrote them down.
            error_if_exists: false,
            create_missing_column_families: true,
            ..stored.db
        };
        let known: Vec<String> = stored.families.iter().map(|(name, _)| name.clone()).collect();
        for name in [DEFAULT_COLUMN_FAMILY].into_iter().chain(self.named.iter().map(|(name, _)| &**name)) {
            if !stored.families.iter().any(|(known, _)| known == name) {
                stored.families.push((name.to_string(), ColumnFamilyOptions::default()));
            }
        }
        let mut builder = Db::builder(path);
        for (name, mut options) in stored.families {
            if let Some(text) = self.options.as_ref().filter(|_| name == DEFAULT_COLUMN_FAMILY) {
                set_all(text, &mut db, &mut options)?;
            }
            for (_, text) in self.named.iter().filter(|(other, _)| *other == name) {
                set_of_family(&name, text.as_deref().unwrap_or_default(), &mut options)?;
            }
            let operator =
                self.operators.iter().find(|(other, _)| other.as_ref().is_none_or(|other| *other == name));
            let operator = operator.map(|(_, operator)| operator.clone());
            let is_new = !known.contains(&name);
            builder = builder.column_family(descriptor(name, options, operator, is_new, codec));
        }
        Ok(builder.options(db))
    }
}

/// What is written down of the database at `path`.
fn stored(path: &Path) -> PyResult<LoadedOptions> {
    match Db::load_latest_options(path) {
        Ok(loaded) => Ok(loaded),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let names = Db::list_column_families(path).map_err(raised)?;
            let families = names.into_iter().map(|name| (name, ColumnFamilyOptions::default())).collect();
            Ok(LoadedOptions { families, ..LoadedOptions::default() })
        }
        Err(error) => Err(raised(error)),
    }
}

fn descriptor(
    name: String,
    options: ColumnFamilyOptions,
    operator: Option<Arc<dyn outcrop::MergeOperator>>,
    is_new: bool,
    codec: &Codec,
) -> ColumnFamilyDescriptor {
    let order = match options.comparator.as_deref() {
        // Also for those who want to see the bytes as they are stored.
        Some(ROCKSDICT) => Some(rocksdict_order()),
        None if is_new => Some(codec.order()),
        _ => None,
    };
    let mut descriptor = ColumnFamilyDescriptor::new(name).with_options(options);
    if let Some(order) = order {
        descriptor = descriptor.with_comparator(order);
    }
    if let Some(operator) = operator {
        descriptor = descriptor.with_merge_operator(operator);
    }
    descriptor
}

/// A column family that is created in an open database.
pub fn new_family(
    name: String,
    options: Option<&Bound<'_, PyAny>>,
    operator: Option<&Bound<'_, MergeOperator>>,
    codec: &Codec,
) -> PyResult<ColumnFamilyDescriptor> {
    let mut settings = ColumnFamilyOptions::default();
    if let Some(options) = options {
        set_of_family(&name, &option_text(options)?, &mut settings)?;
    }
    let operator =
        operator.map(|operator| -> Arc<dyn outcrop::MergeOperator> { operator.get().operator.clone() });
    Ok(descriptor(name, settings, operator, true, codec))
}

/// Options of a column family and of its tables by RocksDB's names.
pub fn shown(options: &ColumnFamilyOptions) -> BTreeMap<&'static str, String> {
    let tables = printed(TABLE_ROWS, &options.table, "").into_iter().chain(kept(&options.table.kept));
    printed(CF_ROWS, options, "").into_iter().chain(kept(&options.kept)).chain(tables).collect()
}

/// Options of a database by RocksDB's names.
pub fn shown_db(options: &DbOptions) -> BTreeMap<&'static str, String> {
    printed(DB_ROWS, options, "").into_iter().chain(kept(&options.kept)).collect()
}

fn kept(options: &Kept) -> impl Iterator<Item = (&'static str, String)> {
    options.iter().map(|(name, value)| (name, value.to_string()))
}

/// A builder for the database at `path` with the settings that are given: for repairs.
pub fn repairer(path: &Path, options: Option<&Bound<'_, PyAny>>) -> PyResult<DbBuilder> {
    let text = options.map(option_text).transpose()?;
    // An OPTIONS file that cannot be read is part of the damage.
    let loaded = Db::load_latest_options(path).unwrap_or_default();
    let mut db = loaded.db;
    let mut builder = Db::builder(path);
    for (name, mut settings) in loaded.families {
        if let Some(text) = text.as_ref().filter(|_| name == DEFAULT_COLUMN_FAMILY) {
            set_all(text, &mut db, &mut settings)?;
        }
        builder = builder.column_family(descriptor(name, settings, None, false, &Codec::Bytes));
    }
    Ok(builder.options(db))
}

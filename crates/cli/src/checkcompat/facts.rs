//! The features in the files of a database: MANIFEST, tables entry by entry, WALs that would be replayed,
//! OPTIONS.
//!
//! Invariant: a file that cannot be read is a fact too, and never hides the others. Where no table is to be found, that is an error.

use super::rules::Feature;
use super::wal;
use crate::inspect::open_table;
use crate::wal_dir::{self, Purpose};
use outcrop::{Db, DbPath, Env, Error};
use outcrop_base::{SeqNum, ValueType, builtin_merge};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{FileNumber, RecoveredColumnFamily, TableFile, Version};
use outcrop_table::{Loading, TableIterOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Levels of a column family unless it is told otherwise.
const DEFAULT_LEVELS: usize = 7;
const BUILTIN_COMPARATORS: [&str; 2] = ["leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator"];
/// The version byte of entities with columns in blob files.
const ENTITY_WITH_BLOBS: u8 = 2;

/// The features that are there, and in which files or column families.
#[derive(Default)]
pub struct Facts {
    pub features: BTreeMap<Feature, Vec<String>>,
}

impl Facts {
    /// Looks at the database in `db`.
    ///
    /// # Errors
    /// There is none, or its MANIFEST cannot be read, or nothing says where its tables are.
    pub fn gather(db: &Path, env: &Env) -> Result<Facts, Error> {
        let mut facts = Facts::default();
        let manifest = outcrop_manifest::recover(&*env.fs, db, &|_| None, &|_| 64, false)?;
        let paths = Db::recorded_paths_in(db, env)?.unwrap_or_default();
        for family in &manifest.column_families {
            facts.look_at_family(db, env, family, paths.of(&family.name));
        }
        let families = manifest.column_families.iter().map(|family| family.log_number);
        let needed = families.min().unwrap_or_default().max(manifest.min_log_number_to_keep);
        facts.look_at_logs(db, env, needed)?;
        facts.look_at_options(db, env)?;
        Ok(facts)
    }

    fn add(&mut self, feature: Feature, place: impl Into<String>) {
        let places = self.features.entry(feature).or_default();
        let place = place.into();
        if places.last() != Some(&place) {
            places.push(place);
        }
    }

    /// `paths` are the directories that its tables are in; none: that of the database.
    fn look_at_family(&mut self, db: &Path, env: &Env, family: &RecoveredColumnFamily, paths: &[DbPath]) {
        let place = format!("column family {}", family.name);
        if let Some(name) = &family.comparator_name
            && !BUILTIN_COMPARATORS.contains(&name.as_str())
        {
            self.add(Feature::Comparator(name.clone()), &place);
        }
        let used = family.version.levels.iter().rposition(|level| !level.files.is_empty());
        if let Some(last) = used.filter(|last| *last >= DEFAULT_LEVELS) {
            self.add(Feature::Levels(last + 1), &place);
        }
        if has_nested_sequences(&family.version) {
            self.add(Feature::NestedSequences, &place);
        }
        for (_, file) in family.version.files() {
            let dir = paths.get(file.path_id as usize).map_or(db, |dir| &dir.path);
            let path = file_name::table(dir, file.number);
            let place = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match table_features(env, &path, file) {
                Ok(features) => features.into_iter().for_each(|feature| self.add(feature, &place)),
                Err(error) => self.add(Feature::Unreadable(error.to_string()), place),
            }
        }
    }

    /// The logs that an opening replays.
    fn look_at_logs(&mut self, db: &Path, env: &Env, needed: FileNumber) -> Result<(), Error> {
        // Of an OPTIONS file that cannot be read there is nothing to be told here.
        let stored = Db::load_latest_options_in(db, env).ok().and_then(|loaded| loaded.db.wal_dir);
        let dir = wal_dir::locate(env, db, stored, Purpose::Read)?;
        let dir = dir.as_deref().unwrap_or(db);
        let mut names = env.fs.list(dir)?;
        names.sort();
        for name in names {
            let Some(FileKind::Wal(number)) = file_name::parse(&name) else { continue };
            if number < needed {
                continue;
            }
            match wal::features(env, &dir.join(&name), number.0) {
                Ok(features) => features.into_iter().for_each(|feature| self.add(feature, &name)),
                Err(error) => self.add(Feature::Unreadable(error.to_string()), &name),
            }
        }
        Ok(())
    }

    /// The newest OPTIONS file, which is the one that loaders take.
    fn look_at_options(&mut self, db: &Path, env: &Env) -> Result<(), Error> {
        let names = env.fs.list(db)?;
        let numbered = names.iter().filter_map(|name| match file_name::parse(name) {
            Some(FileKind::Options(number)) => Some((number, name)),
            _ => None,
        });
        let Some((_, name)) = numbered.max() else { return Ok(()) };
        let text = String::from_utf8_lossy(&env.fs.read_all(&db.join(name))?).into_owned();
        let version = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
        let mut numbers = version.unwrap_or_default().split('.').map_while(|part| part.parse().ok());
        if let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) {
            self.add(Feature::NewerOptions((major, minor)), name);
        }
        Ok(())
    }
}

/// Whether versions that order L0 by sequence numbers alone refuse it.
///
/// Source: RocksDB 6.29 `db/version_builder.cc`, `CheckConsistencyDetails`.
fn has_nested_sequences(version: &Version) -> bool {
    let Some(level) = version.levels.first() else { return false };
    let mut files: Vec<&Arc<TableFile>> = level.files.iter().collect();
    files.sort_by_key(|file| (file.largest_seq, file.smallest_seq, file.number));
    files.windows(2).any(|pair| {
        let (older, newer) = (pair[0], pair[1]);
        let ingested = older.smallest_seq == older.largest_seq;
        let fits = if ingested {
            older.smallest_seq < newer.largest_seq || older.smallest_seq == SeqNum(0)
        } else {
            newer.smallest_seq > older.smallest_seq
        };
        !fits
    })
}

fn table_features(env: &Env, path: &Path, file: &TableFile) -> Result<BTreeSet<Feature>, Error> {
    let table = open_table(env, path, file.largest_seq)?;
    let mut found = BTreeSet::from([Feature::FormatVersion(table.format_version())]);
    let properties = table.properties();
    if properties.separate_key_value_in_data_block {
        found.insert(Feature::SeparatedKeys);
    }
    let operator = properties.merge_operator_name.as_str();
    if properties.merge_operands > 0 && builtin_merge::by_name(operator).is_none() {
        found.insert(Feature::MergeOperator(operator.to_string()));
    }
    let mut iter = table.iter(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 1 << 20,
        ..TableIterOptions::default()
    });
    iter.seek_to_first();
    while iter.valid() {
        // The type is the first byte of the key's footer.
        let kind = iter.key().len().checked_sub(8).and_then(|at| ValueType::from_byte(iter.key()[at]));
        match kind {
            Some(ValueType::WideColumnEntity) if iter.value().first() == Some(&ENTITY_WITH_BLOBS) => {
                found.insert(Feature::EntityInTable);
                found.insert(Feature::BlobEntityInTable);
            }
            Some(ValueType::WideColumnEntity) => {
                found.insert(Feature::EntityInTable);
            }
            Some(ValueType::ValuePreferredSeqno) => {
                found.insert(Feature::TimedPutInTable);
            }
            _ => {}
        }
        iter.next();
    }
    iter.status()?;
    Ok(found)
}

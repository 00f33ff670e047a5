//! Reading a MANIFEST: CURRENT names it, its edits give the versions.
//!
//! Damage that a crash leaves is ignored: a record cut short at the end, an incomplete atomic group there, and a last
//! write with a sector that reads as zeros, which was never acknowledged. Any other damage is Corruption naming file
//! and offset.
//! Source: RocksDB `db/version_edit_handler.cc`.

use crate::file_name::{self, FileKind, MAX_FILE_NUMBER};
use crate::{FileNumber, TableFile, TableMeta, Version, VersionBuilder, VersionEdit, WalSet};
use outcrop_base::{CfId, Comparator, Error, ErrorKind, Result, SeqNum, Timestamp};
use outcrop_env::{Access, FileSystem, OpenRead};
use outcrop_record::{DamageKind, LogReader, ReadOutcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The MANIFEST's facts about one column family.
pub struct RecoveredColumnFamily {
    /// Its id.
    pub id: CfId,
    /// Its name.
    pub name: String,
    /// Name of its key order; absent in very old databases.
    pub comparator_name: Option<String>,
    /// All its data in older WALs is in tables.
    pub log_number: FileNumber,
    /// Versions with timestamps below this may be gone, but for the newest of each key.
    pub full_history_low: Option<Timestamp>,
    /// Its tables, every one with an epoch.
    pub version: Version,
}

/// The contents of the MANIFEST.
pub struct RecoveredManifest {
    /// The MANIFEST's number.
    pub manifest_number: FileNumber,
    /// Identity of the database, if it is recorded.
    pub db_id: Option<String>,
    /// Above every file number in use.
    pub next_file_number: FileNumber,
    /// At or above every sequence number in tables.
    pub last_sequence: SeqNum,
    /// Older WALs are not needed.
    pub min_log_number_to_keep: FileNumber,
    /// Highest column family id ever given out.
    pub max_column_family: CfId,
    /// WALs that are tracked.
    pub wals: WalSet,
    /// Live column families, by id.
    pub column_families: Vec<RecoveredColumnFamily>,
}

struct Building {
    name: String,
    comparator_name: Option<String>,
    /// Tables have its user-defined timestamps, if there are some.
    persists_timestamps: bool,
    full_history_low: Option<Timestamp>,
    log_number: FileNumber,
    /// The caller's key order.
    comparator: Option<Comparator>,
    builder: VersionBuilder,
}

/// The names of all live column families, in order of their ids.
pub fn list_column_families(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<String>> {
    let recovered = recover(fs, dir, &|_| Some(Comparator::Bytewise), &|_| 7, false)?;
    Ok(recovered.column_families.into_iter().map(|cf| cf.name).collect())
}

/// Reads the MANIFEST of the database in `dir`.
///
/// `comparator_of` and `num_levels_of` give key order and number of levels for a column family's name; without a key
/// order the column family is only named, and its tables are in no order. With `check`, names of key orders must match
/// and the rules of the tree hold, for column families that were not dropped.
///
/// # Errors
/// As the module says; NotSupported naming a feature this engine lacks; InvalidArgument if a key order differs.
pub fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    comparator_of: &dyn Fn(&str) -> Option<Comparator>,
    num_levels_of: &dyn Fn(&str) -> usize,
    check: bool,
) -> Result<RecoveredManifest> {
    let mut reader = ManifestReader::open(fs, dir, comparator_of, num_levels_of, check)?;
    reader.read_on()?;
    reader.finish()
}

/// The MANIFEST of a database, read as far as it goes; more of it can be read when it has grown.
pub struct ManifestReader<'a> {
    number: FileNumber,
    path: PathBuf,
    log: LogReader,
    state: State<'a>,
    /// Edits of an atomic group whose last is not there yet.
    group: Vec<VersionEdit>,
}

impl<'a> ManifestReader<'a> {
    /// Opens the MANIFEST that CURRENT names. Arguments and errors are those of [`recover`].
    pub fn open(
        fs: &dyn FileSystem,
        dir: &Path,
        comparator_of: &'a dyn Fn(&str) -> Option<Comparator>,
        num_levels_of: &'a dyn Fn(&str) -> usize,
        check: bool,
    ) -> Result<ManifestReader<'a>> {
        let number = read_current(fs, dir)?;
        let path = file_name::manifest(dir, number);
        let file = fs.open_read(&path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        let state = State::new(comparator_of, num_levels_of, check);
        Ok(ManifestReader { number, path, log: LogReader::of_manifest(file), state, group: Vec::new() })
    }

    /// Applies every edit that was not yet there at the last call. After an error it is of no use.
    ///
    /// # Errors
    /// Those of [`recover`].
    pub fn read_on(&mut self) -> Result<()> {
        let ManifestReader { path, log, state, group, .. } = self;
        let named = |error: Error, offset: u64| error.within(format!("{}: offset {offset}", path.display()));
        log.resume()?;
        loop {
            match log.next()? {
                ReadOutcome::End => return Ok(()),
                ReadOutcome::Damaged(damage) if damage.kind == DamageKind::TornWrite => {
                    return if rest_is_of_one_write(log)? { Ok(()) } else { Err(damage.error) };
                }
                ReadOutcome::Damaged(damage) => return Err(damage.error),
                ReadOutcome::Record(bytes, offset) => {
                    let edit = VersionEdit::decode(bytes).map_err(|error| named(error, offset))?;
                    let applied = match edit.remaining_in_group {
                        None if group.is_empty() => state.apply(&edit),
                        None => Err(Error::corruption("an edit outside the atomic group interrupts it")),
                        Some(remaining) => state.collect(group, edit, remaining),
                    };
                    applied.map_err(|error| named(error, offset))?;
                }
            }
        }
    }

    /// Contents of what was read. An atomic group that is incomplete is left out.
    ///
    /// # Errors
    /// Those of [`recover`].
    pub fn finish(self) -> Result<RecoveredManifest> {
        // The caller's arguments do not fit: that is no fault of the file.
        let of_file = |error: Error| match error.kind() {
            ErrorKind::InvalidArgument => error,
            _ => error.within(self.path.display()),
        };
        self.state.finish(self.number).map_err(of_file)
    }
}

/// True if the records that follow a torn one were written with it: none, or the last edits of one atomic group.
fn rest_is_of_one_write(reader: &mut LogReader) -> Result<bool> {
    let mut remaining: Option<u32> = None;
    while let ReadOutcome::Record(bytes, _) = reader.next()? {
        let next = VersionEdit::decode(bytes).ok().and_then(|edit| edit.remaining_in_group);
        if next.is_none() || remaining.is_some_and(|before| before.checked_sub(1) != next) {
            return Ok(false);
        }
        remaining = next;
    }
    Ok(remaining.is_none_or(|remaining| remaining == 0))
}

/// The number of the MANIFEST that CURRENT names.
fn read_current(fs: &dyn FileSystem, dir: &Path) -> Result<FileNumber> {
    let path = file_name::current(dir);
    let contents = fs.read_all(&path)?;
    let name = std::str::from_utf8(&contents).ok().and_then(|text| text.strip_suffix('\n'));
    match name.and_then(file_name::parse) {
        Some(FileKind::Manifest(number)) => Ok(number),
        _ => Err(Error::corruption(format!("{}: offset 0: it names no MANIFEST", path.display()))),
    }
}

struct State<'a> {
    comparator_of: &'a dyn Fn(&str) -> Option<Comparator>,
    num_levels_of: &'a dyn Fn(&str) -> usize,
    check: bool,
    column_families: BTreeMap<CfId, Building>,
    db_id: Option<String>,
    saw_log_number: bool,
    next_file_number: Option<FileNumber>,
    last_sequence: Option<SeqNum>,
    min_log_number_to_keep: FileNumber,
    max_column_family: CfId,
    wals: WalSet,
}

impl<'a> State<'a> {
    fn new(
        comparator_of: &'a dyn Fn(&str) -> Option<Comparator>,
        num_levels_of: &'a dyn Fn(&str) -> usize,
        check: bool,
    ) -> State<'a> {
        let mut state = State {
            comparator_of,
            num_levels_of,
            check,
            column_families: BTreeMap::new(),
            db_id: None,
            saw_log_number: false,
            next_file_number: None,
            last_sequence: None,
            min_log_number_to_keep: FileNumber::NONE,
            max_column_family: CfId::DEFAULT,
            wals: WalSet::default(),
        };
        state.add_column_family(CfId::DEFAULT, "default");
        state
    }

    fn add_column_family(&mut self, id: CfId, name: &str) {
        let comparator = (self.comparator_of)(name);
        let num_levels = (self.num_levels_of)(name);
        let order = comparator.clone().unwrap_or_default();
        let builder = VersionBuilder::new(&Version::empty(num_levels), &order, num_levels);
        let name = name.to_string();
        let building = Building {
            name,
            comparator_name: None,
            persists_timestamps: true,
            full_history_low: None,
            log_number: FileNumber::NONE,
            comparator,
            builder,
        };
        self.column_families.insert(id, building);
        self.max_column_family = self.max_column_family.max(id);
    }

    /// Adds an edit to the atomic group, and applies the group when it is complete.
    fn collect(&mut self, group: &mut Vec<VersionEdit>, edit: VersionEdit, remaining: u32) -> Result<()> {
        let expected = group.last().and_then(|last| last.remaining_in_group);
        if expected.is_some_and(|before| remaining.checked_add(1) != Some(before)) {
            return Err(Error::corruption("the edits of an atomic group are miscounted"));
        }
        group.push(edit);
        if remaining > 0 {
            return Ok(());
        }
        std::mem::take(group).iter().try_for_each(|edit| self.apply(edit))
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        let id = edit.column_family;
        if let Some(name) = &edit.column_family_add {
            if self.column_families.contains_key(&id) {
                return Err(Error::corruption(format!("column family {id} ({name}) is added twice")));
            }
            self.add_column_family(id, name);
        }
        self.take_global(edit);
        self.wals.apply(edit)?;
        if edit.column_family_drop {
            // RocksDB that rolls its MANIFEST for the drop writes a snapshot without the column family, then the drop.
            self.column_families.remove(&id);
            return Ok(());
        }
        let cf = self.column_families.get_mut(&id).ok_or_else(|| {
            Error::corruption(format!("an edit is about column family {id}, which does not exist"))
        })?;
        if let Some(name) = &edit.comparator {
            cf.comparator_name = Some(name.clone());
        }
        cf.persists_timestamps = edit.persist_timestamps.unwrap_or(cf.persists_timestamps);
        cf.full_history_low = edit.full_history_low.or(cf.full_history_low);
        if let Some(number) = edit.log_number {
            self.saw_log_number = true;
            cf.log_number = cf.log_number.max(number);
        }
        cf.builder.apply(edit)?;
        Ok(())
    }

    /// Takes over the fields that are about the whole database, whichever column family the edit is about.
    fn take_global(&mut self, edit: &VersionEdit) {
        self.db_id = edit.db_id.clone().or(self.db_id.take());
        self.next_file_number = edit.next_file_number.or(self.next_file_number);
        self.last_sequence = edit.last_sequence.or(self.last_sequence);
        self.max_column_family = self.max_column_family.max(edit.max_column_family.unwrap_or_default());
        let keep = edit.min_log_number_to_keep.unwrap_or_default();
        self.min_log_number_to_keep = self.min_log_number_to_keep.max(keep);
    }

    fn finish(self, manifest_number: FileNumber) -> Result<RecoveredManifest> {
        let missing = |what: &str| Error::corruption(format!("the MANIFEST has no {what}"));
        if !self.saw_log_number {
            return Err(missing("log number"));
        }
        let next_file_number = self.next_file_number.ok_or_else(|| missing("next file number"))?;
        if next_file_number.0 > MAX_FILE_NUMBER {
            return Err(Error::corruption(format!("the MANIFEST says that file {next_file_number} is next")));
        }
        let last_sequence = self.last_sequence.ok_or_else(|| missing("last sequence number"))?;
        let mut column_families = Vec::new();
        for (id, building) in self.column_families {
            column_families.push(finish_column_family(id, building, self.num_levels_of, self.check)?);
        }
        Ok(RecoveredManifest {
            manifest_number,
            db_id: self.db_id,
            next_file_number,
            last_sequence,
            min_log_number_to_keep: self.min_log_number_to_keep,
            max_column_family: self.max_column_family,
            wals: self.wals,
            column_families,
        })
    }
}

/// Ends the names of RocksDB's own orders of keys with timestamps.
const WITH_TIMESTAMPS: &str = ".u64ts";

/// Source: RocksDB `util/udt_util.cc`, `ValidateUserDefinedTimestampsOptions`.
fn check_comparator(stored: &str, given: &Comparator, persisted: bool, check: bool) -> Result<()> {
    let stamped = |name: &str| name.ends_with(WITH_TIMESTAMPS);
    if !persisted && (given.timestamp_len() > 0 || stamped(stored)) {
        let what = "user-defined timestamps that are not persisted";
        return Err(Error::not_supported(format!("{what} (comparator {stored})")));
    }
    if !check || stored == given.name() {
        return Ok(());
    }
    Err(Error::invalid_argument(if given.name().strip_suffix(WITH_TIMESTAMPS) == Some(stored) {
        "Cannot open a column family and enable user-defined timestamps feature without setting \
         persist_user_defined_timestamps flag to false."
            .to_string()
    } else if stored.strip_suffix(WITH_TIMESTAMPS) == Some(given.name()) {
        "Cannot open a column family and disable user-defined timestamps feature if its existing \
         persist_user_defined_timestamps flag is not false."
            .to_string()
    } else {
        format!("{}: does not match existing comparator {stored}", given.name())
    }))
}

fn finish_column_family(
    id: CfId,
    building: Building,
    num_levels_of: &dyn Fn(&str) -> usize,
    check: bool,
) -> Result<RecoveredColumnFamily> {
    let Building {
        name,
        comparator_name,
        persists_timestamps,
        full_history_low,
        log_number,
        comparator,
        builder,
    } = building;
    let Some(comparator) = comparator else {
        let version = builder.build(false)?;
        return Ok(RecoveredColumnFamily {
            id,
            name,
            comparator_name,
            log_number,
            full_history_low,
            version,
        });
    };
    if let Some(stored) = &comparator_name {
        check_comparator(stored, &comparator, persists_timestamps, check)?;
    }
    let num_levels = num_levels_of(&name);
    if check && builder.last_level().is_some_and(|last| last >= num_levels) {
        return Err(Error::invalid_argument(format!(
            "column family {name} has tables on level {}, but num_levels is {num_levels}",
            builder.last_level().unwrap_or(0)
        )));
    }
    let mut version = builder.build(check)?;
    version.levels.truncate(num_levels.max(1));
    let version = with_epochs(version, &comparator)?;
    Ok(RecoveredColumnFamily { id, name, comparator_name, log_number, full_history_low, version })
}

/// Gives every table an epoch if some lack one: levels from the bottom up, then L0 from oldest to newest.
fn with_epochs(version: Version, comparator: &Comparator) -> Result<Version> {
    if version.files().all(|(_, file)| file.epoch != 0) {
        return Ok(version);
    }
    let base = Version {
        blob_files: version.blob_files.clone(),
        compact_cursors: version.compact_cursors.clone(),
        ..Version::empty(version.levels.len())
    };
    let mut builder = VersionBuilder::new(&base, comparator, 0);
    let mut edit = VersionEdit::default();
    let mut epoch = 0;
    for level in (1..version.levels.len()).rev().filter(|&level| !version.levels[level].files.is_empty()) {
        epoch += 1;
        let files = version.levels[level].files.iter();
        edit.new_files.extend(files.map(|file| (level as u32, renumbered(file, epoch))));
    }
    for file in version.levels[0].files.iter().rev() {
        epoch += 1;
        edit.new_files.push((0, renumbered(file, epoch)));
    }
    builder.apply(&edit)?;
    builder.build(true)
}

fn renumbered(file: &TableFile, epoch: u64) -> Arc<TableFile> {
    Arc::new(TableMeta { epoch, ..file.meta.clone() }.into())
}

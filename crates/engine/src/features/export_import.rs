//! Exports the tables of one column family, and imports them as a column family of another database.
//!
//! ```text
//! export: flush -> deletions on hold -> link the tables into DIR.tmp -> rename (staging.rs)
//! import: look at the files -> link or copy them in -> build the version -> create the column family -> one edit with all tables
//! ```
//! Invariant: tables keep their levels and their keys' sequence numbers; the database's last sequence number is at least as high
//! afterwards. If it fails, there is no such column family.
//! Source: RocksDB `CheckpointImpl::ExportColumnFamily`, `db/import_column_family_job.cc`.

use super::column_families;
use super::staging::Staging;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::copy_file::{copy_file, link_or_copy};
use crate::core::Core;
use crate::file_checksum::{FileChecksum, check_function, of_file};
use crate::info_log::log_line;
use crate::live_files::DeletionsOnHold;
use crate::paths;
use crate::pending_outputs::PendingOutputs;
use crate::table_bounds::{boundaries, point_boundaries};
use outcrop_base::keys::{ParsedKey, user_key};
use outcrop_base::{Comparator, Error, ErrorKind, Result, SeqNum};
use outcrop_env::file_system::parent_of;
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{TableFile, Version, VersionBuilder, VersionEdit, file_name};
use outcrop_table::{TableReader, TableReaderOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of an export: [`crate::Db::export_column_family`]. It is nowhere but here: keep it for the import.
///
/// ```
/// # use outcrop::{Db, Env, ImportColumnFamilyOptions};
/// # let env = Env::memory();
/// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// let exported = db.export_column_family(db.default_column_family(), "/export")?;
///
/// let other = Db::builder("/other").env(env).create_if_missing(true).open()?;
/// let fruit =
///     other.create_column_family_with_import("fruit", ImportColumnFamilyOptions::default(), &[&exported])?;
/// assert_eq!(other.get_cf(&fruit, "apple")?.as_deref(), Some(&b"red"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedColumnFamily {
    /// Name of its order of keys.
    pub comparator: String,
    /// Its tables.
    pub files: Vec<ExportedFile>,
}

/// A table of an export.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// # db.put("apple", "red")?;
/// let exported = db.export_column_family(db.default_column_family(), "/export")?;
/// assert_eq!((exported.files[0].level, &exported.files[0].smallest_key[..]), (0, &b"apple"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its name within `directory`.
    pub name: String,
    /// Where it is.
    pub directory: PathBuf,
    /// The level that it is on, and will be.
    pub level: usize,
    /// Its size in bytes; 0: as long as the file is.
    pub size: u64,
    /// Its smallest user key, for the application: an import does not look at it.
    pub smallest_key: Vec<u8>,
    /// Its largest user key, as above.
    pub largest_key: Vec<u8>,
    /// At or before its first internal key; empty: read from the file, which gives the same unless a range deletion was cut there.
    pub smallest: Vec<u8>,
    /// At or after its last internal key, as above.
    pub largest: Vec<u8>,
    /// Smallest sequence number in it.
    pub smallest_seq: u64,
    /// Largest sequence number in it.
    pub largest_seq: u64,
    /// Orders tables of level 0; 0: their sequence numbers do.
    pub epoch: u64,
    /// Its checksum as a whole, if the database had one; kept by the importing database if it keeps checksums.
    pub file_checksum: Option<FileChecksum>,
}

/// How files are imported.
///
/// ```
/// assert!(!outcrop::ImportColumnFamilyOptions::default().move_files);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportColumnFamilyOptions {
    /// Link the files rather than copy them, and remove them where they came from once they are in. Default false.
    pub move_files: bool,
}

/// See [`crate::Db::export_column_family`].
pub fn export(core: &Core, cf: &ColumnFamilyHandle, target: &Path) -> Result<ExportedColumnFamily> {
    let fs = &core.ctx.env.fs;
    let target = &target.components().collect::<PathBuf>();
    if target.file_name().is_none() {
        return Err(Error::invalid_argument("Specified export_dir invalid"));
    }
    if fs.exists(target)? {
        return Err(Error::invalid_argument("Specified export_dir exists"));
    }
    core.ctx.check_owns(cf)?;
    cf.refuse_if_dropped()?;
    core.commit.flush(&[cf.id()], crate::events::reasons::FlushReason::GetLiveFiles, true)?;
    let _hold = DeletionsOnHold::new(&core.jobs);
    let version = cf.superversion.load().version.clone();
    if version.files().any(|(_, table)| table.oldest_blob_file.is_some()) {
        return Err(Error::not_supported(
            "the column family has values in blob files, of which an export has none",
        ));
    }
    let staging = Staging::new(&**fs, target)?;
    link_all(core, &version, staging.dir())?;
    staging.install()?;
    log_line!(core.ctx, "[{}] exported {} tables to {}", cf.name(), version.num_files(), target.display());
    let files = version.files().map(|(level, table)| exported(level, table, target)).collect();
    Ok(ExportedColumnFamily { comparator: cf.comparator.name().to_string(), files })
}

fn link_all(core: &Core, version: &Version, dir: &Path) -> Result<()> {
    for (_, table) in version.files() {
        let target = file_name::table(dir, table.number);
        link_or_copy(&*core.ctx.env.fs, &table.path(&core.ctx.path), &target)?;
    }
    Ok(())
}

fn exported(level: usize, table: &TableFile, dir: &Path) -> ExportedFile {
    ExportedFile {
        name: format!("{:06}.sst", table.number.0),
        directory: dir.to_path_buf(),
        level,
        size: table.size,
        smallest_key: user_key(&table.smallest).to_vec(),
        largest_key: user_key(&table.largest).to_vec(),
        smallest: table.smallest.to_vec(),
        largest: table.largest.to_vec(),
        smallest_seq: table.smallest_seq.0,
        largest_seq: table.largest_seq.0,
        epoch: table.epoch,
        file_checksum: FileChecksum::recorded(table.checksum()),
    }
}

/// A table that was validated.
struct Imported {
    source: PathBuf,
    level: usize,
    /// The sequence numbers that order it among the tables of level 0.
    age: (u64, u64),
    table: TableFile,
}

/// See [`crate::Db::create_column_family_with_import`].
pub fn create_with_import(
    core: &Core,
    family: &ColumnFamilyDescriptor,
    options: ImportColumnFamilyOptions,
    exports: &[&ExportedColumnFamily],
) -> Result<ColumnFamilyHandle> {
    core.ctx.check_not_closed()?;
    let comparator = &family.parts.comparator;
    if exports.iter().any(|export| export.comparator != comparator.name()) {
        return Err(Error::invalid_argument("Comparator name mismatch"));
    }
    if comparator.timestamp_len() > 0 {
        return Err(Error::not_supported("import of a column family with user-defined timestamps"));
    }
    if core.registry.load().values().any(|cf| cf.name() == family.name) {
        return Err(Error::invalid_argument("Column family already exists"));
    }
    let mut family = family.clone();
    if family.options.cf_paths.is_empty() {
        family.options.cf_paths.clone_from(&core.ctx.options.db_paths);
    }
    let family = &family;
    core.ctx.add_data_dirs(&family.options.cf_paths)?;
    let pending = PendingOutputs::new(&core.ctx);
    let mut sets = Vec::new();
    for export in exports {
        if export.files.is_empty() {
            return Err(Error::invalid_argument("The list of files is empty"));
        }
        let files = export.files.iter().map(|file| validate_external(core, family, file, &pending));
        sets.push(files.collect::<Result<Vec<_>>>()?);
    }
    check_ranges(comparator, &sets)?;
    let first_epoch = 1 + u64::from(family.options.allow_ingest_behind);
    let next_epoch = give_epochs(&mut sets, first_epoch);
    let files: Vec<Imported> = sets.into_iter().flatten().collect();
    link_or_copy_files(core, &files, options)?;
    let sources: Vec<PathBuf> = files.iter().map(|file| file.source.clone()).collect();
    let new_files = files.into_iter().map(|file| (file.level as u32, Arc::new(file.table))).collect();
    let mut edit = VersionEdit { new_files, ..VersionEdit::default() };
    // Before there is a column family: tables that do not fit together make none.
    let empty = Arc::new(Version::empty(family.options.num_levels as usize));
    let mut builder = VersionBuilder::new(&empty, comparator, empty.levels.len());
    builder.apply(&edit)?;
    builder.build(true).map_err(|error| error.within("force_consistency_checks"))?;
    let cf = column_families::create(core, family)?;
    edit.column_family = cf.id();
    if let Err(error) = install(core, &cf, edit, next_epoch, pending) {
        // The error is that of the import; a column family that stays is empty.
        let _ = column_families::drop_family(core, &cf);
        return Err(error);
    }
    for source in sources.iter().filter(|_| options.move_files) {
        // Best effort: the file is in; its old name is only in the way.
        let _ = core.ctx.env.fs.remove_file(source);
    }
    log_line!(core.ctx, "[{}] imported {} tables", cf.name(), sources.len());
    Ok(cf)
}

/// Opens and checks a file in its directory, and fills in the facts that the MANIFEST will have of it.
fn validate_external(
    core: &Core,
    family: &ColumnFamilyDescriptor,
    file: &ExportedFile,
    pending: &PendingOutputs,
) -> Result<Imported> {
    let (comparator, levels) = (&family.parts.comparator, family.options.num_levels as usize);
    // Some begin names with a slash.
    let source = file.directory.join(file.name.trim_start_matches('/'));
    let damaged = |what: &str| Error::corruption(format!("{}: {what}", source.display()));
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let opened = core.ctx.env.fs.open_read(&source, read)?;
    let size = opened.size();
    if file.size != 0 && file.size != size {
        return Err(damaged(&format!("it has {size} bytes, not {}", file.size)));
    }
    if file.level >= levels {
        return Err(Error::invalid_argument(format!(
            "{}: there is no level {}",
            source.display(),
            file.level
        )));
    }
    let largest_seq = SeqNum(file.largest_seq.min(SeqNum::MAX.0));
    let table = Arc::new(TableReader::open(
        opened,
        TableReaderOptions { largest_seqno: largest_seq, ..TableReaderOptions::uncached(comparator.clone()) },
    )?);
    let properties = table.properties();
    if properties.num_entries == 0 {
        return Err(Error::invalid_argument("File contain no entries"));
    }
    if properties.comparator_name != comparator.name() {
        return Err(Error::invalid_argument(format!(
            "{}: its comparator is {}, the column family's {}",
            source.display(),
            properties.comparator_name,
            comparator.name()
        )));
    }
    let (smallest, largest) = match file.smallest.is_empty() || file.largest.is_empty() {
        true => boundaries(&table, comparator)?,
        false => (file.smallest.clone(), file.largest.clone()),
    };
    let well_formed = ParsedKey::parse(&smallest).is_ok() && ParsedKey::parse(&largest).is_ok();
    if !well_formed || comparator.compare_internal(&smallest, &largest).is_gt() {
        return Err(damaged("File has corrupted keys"));
    }
    if let Some((first, last)) = point_boundaries(&table)?
        && (comparator.compare(user_key(&first), user_key(&smallest)).is_lt()
            || comparator.compare(user_key(&last), user_key(&largest)).is_gt())
    {
        return Err(damaged("it has keys outside of the range it is said to have"));
    }
    let mut imported = TableFile::new(pending.reserve(), size, smallest, largest);
    imported.dir = paths::directory(&family.options, 0);
    // One that was ingested once has the number that is said; others say themselves what they have at most.
    let own = if properties.external_version.is_some() { 0 } else { properties.largest_seqno };
    imported.largest_seq = SeqNum(largest_seq.0.max(own.min(SeqNum::MAX.0)));
    imported.smallest_seq = SeqNum(file.smallest_seq.min(imported.largest_seq.0));
    imported.unique_id = Some(table.unique_id());
    imported.tail_size = size.saturating_sub(properties.data_size);
    imported.creation_time = core.ctx.env.clock.now_micros() / 1_000_000;
    imported.oldest_ancestor_time = imported.creation_time;
    if let Some(factory) = core.ctx.options.file_checksum_gen_factory {
        let known = file.file_checksum.clone().filter(|known| check_function(factory, known).is_ok());
        let checksum = match known {
            Some(known) => known,
            None => of_file(&*core.ctx.env.fs, &source, size, factory)?,
        };
        FileChecksum::of_table(Some(&checksum), &mut imported);
    }
    Ok(Imported { source, level: file.level, age: (file.epoch, imported.largest_seq.0), table: imported })
}

/// Column families that become one must not overlap.
fn check_ranges(comparator: &Comparator, sets: &[Vec<Imported>]) -> Result<()> {
    let order = |a: &&[u8], b: &&[u8]| comparator.compare(a, b);
    let range = |set: &Vec<Imported>| {
        let first = set.iter().map(|file| user_key(&file.table.smallest)).min_by(order);
        let last = set.iter().map(|file| user_key(&file.table.largest)).max_by(order);
        Some((first?.to_vec(), last?.to_vec()))
    };
    let mut ranges: Vec<(Vec<u8>, Vec<u8>)> = sets.iter().filter_map(range).collect();
    ranges.sort_by(|a, b| comparator.compare(&a.0, &b.0));
    match ranges.windows(2).any(|pair| comparator.compare(&pair[0].1, &pair[1].0).is_ge()) {
        true => Err(Error::invalid_argument("CFs have overlapping ranges")),
        false => Ok(()),
    }
}

/// Gives every table an epoch: each level one, the last first, then the tables of level 0 from the oldest. Gives the next one.
///
/// Source: RocksDB `VersionStorageInfo::RecoverEpochNumbers`.
fn give_epochs(sets: &mut [Vec<Imported>], mut next: u64) -> u64 {
    for set in sets {
        set.sort_by_key(|file| (std::cmp::Reverse(file.level), file.age));
        let mut level = None;
        for file in set {
            if file.level == 0 || level != Some(file.level) {
                next += u64::from(level.is_some());
                level = Some(file.level);
            }
            file.table.epoch = next;
        }
        next += 1;
    }
    next
}

/// Links or copies the files to where tables of the column family are.
fn link_or_copy_files(core: &Core, files: &[Imported], options: ImportColumnFamilyOptions) -> Result<()> {
    let fs = &core.ctx.env.fs;
    for file in files {
        let target = file.table.path(&core.ctx.path);
        match options.move_files {
            true => link_or_copy(&**fs, &file.source, &target).map(|_| ())?,
            false => copy_file(&**fs, &file.source, &target, file.table.size)?,
        }
    }
    // All are in one directory.
    files.first().map_or(Ok(()), |file| fs.sync_dir(parent_of(&file.table.path(&core.ctx.path))))
}

fn install(
    core: &Core,
    cf: &ColumnFamilyHandle,
    edit: VersionEdit,
    next_epoch: u64,
    pending: PendingOutputs,
) -> Result<()> {
    // HOLDS CommitPipeline::core: no write may come between the tables' sequence numbers and their visibility.
    let mut writing = core.commit.exclude_writers();
    core.commit.check_no_error()?;
    if cf.is_dropped() {
        return Err(Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string()));
    }
    // The tables are durable at once, and come after what was written before: a loss of power must not leave them without it.
    core.commit.sync_unsynced_excluded(&mut writing)?;
    let largest = edit.new_files.iter().map(|(_, file)| file.largest_seq).max().unwrap_or_default();
    let last_seq = writing.last_seq.max(largest);
    pending.install_or_remove(|| {
        core.versions.log_prepared(
            || Ok((vec![edit], last_seq)),
            |state| {
                if let Some(cf) = state.column_families.get_mut(&cf.id()) {
                    cf.next_epoch = cf.next_epoch.max(next_epoch);
                }
            },
        )
    })?;
    writing.last_seq = last_seq;
    core.versions.publish(last_seq);
    Ok(())
}

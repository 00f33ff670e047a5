//! From what is on disk to a state in memory: CURRENT, MANIFEST, WALs. Nothing is written here, so that a
//! database can still be refused; [`flush_recovered`] is the first step that writes.
//!
//! Invariant: the replayed batches are a prefix of those written, within what the recovery mode allows: WALs are
//! replayed in order, and after damage only if the sequence numbers show that nothing is missing.
//! Source: RocksDB `db/db_impl/db_impl_open.cc`.

mod opening;

use crate::batch::codec::{self, Item};
use crate::batch::stamps::check_stamped;
use crate::column_family::{ColumnFamilyDescriptor, new_memtable};
use crate::context::DbContext;
use crate::flush::job::write_l0;
use crate::in_force::add_default_cache;
use crate::info_log::{InfoLog, log_line};
use crate::objects::DbObjects;
use crate::paths;
use crate::state::{CfState, DbState};

use outcrop_base::{CfId, Comparator, Error, ErrorKind, Result, SeqNum};
use outcrop_env::{Access, Env, OpenRead, ReadFile};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{
    FileNumber, ManifestReader, RecoveredColumnFamily, RecoveredManifest, TableFile, Version, VersionBuilder,
    VersionEdit, WalSet,
};
use outcrop_memtable::MemTablePool;
use outcrop_monitor::Statistics;
use outcrop_options::{DbOptions, DbPath, WalRecoveryMode};
use outcrop_record::{LogReader, Predecessor, ReadOutcome};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A database in memory, with nothing of it written yet.
pub struct Recovered {
    /// Column families with their tables, and replayed data in memtables.
    pub state: DbState,
    /// Identity.
    pub db_id: String,
    /// The IDENTITY file must be written.
    pub identity_missing: bool,
    /// The last sequence number in use.
    pub last_seq: SeqNum,
    /// WALs that the MANIFEST keeps track of.
    pub wals: WalSet,
    /// Something that WALs have, or had, was left out.
    pub left_out: bool,
    /// The number after the last replayed one, if the last WAL was not cut where it ended: a later replay takes a WAL that goes on with another
    /// number for one that follows a lost one.
    pub goes_on_at: Option<SeqNum>,
    /// WALs there are, with their sizes in bytes, oldest first.
    pub wal_files: Vec<(FileNumber, u64)>,
    /// Above every file number found.
    pub next_file_number: FileNumber,
    /// Column families that were named but do not exist.
    pub to_create: Vec<ColumnFamilyDescriptor>,
}

/// Which column families of the database must be named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// All: a writer must know all.
    All,
    /// Any: the others are not looked at.
    Some,
}

/// How a database is recovered.
#[derive(Clone, Copy)]
pub struct RecoverOptions<'a> {
    /// Which column families must be named.
    pub families: Families,
    /// Objects that the database will share.
    pub objects: &'a DbObjects,
    /// Where what is read is counted.
    pub statistics: Option<&'a Arc<Statistics>>,
    /// Earlier versions, by column family, whose files are open: those that are still there stay open.
    pub open: &'a BTreeMap<CfId, Arc<Version>>,
}

/// The column family in which RocksDB keeps the history of its statistics. It opens it by itself.
/// Source: RocksDB `kPersistentStatsColumnFamilyName`.
const STATISTICS_FAMILY: &str = "___rocksdb_stats_history___";

/// Reads everything and checks that this engine can go on from it.
pub fn recover(
    path: &Path,
    options: &DbOptions,
    env: &Env,
    descriptors: &[ColumnFamilyDescriptor],
    pool: &Arc<MemTablePool>,
    how: RecoverOptions<'_>,
) -> Result<Recovered> {
    let find = |name: &str| descriptors.iter().find(|descriptor| descriptor.name == name);
    let comparator_of = |name: &str| find(name).map(|descriptor| descriptor.parts.comparator.clone());
    let num_levels_of = |name: &str| find(name).map_or(64, |d| d.options.num_levels as usize);
    let (manifest, wals) = read_manifest(path, options, env, &comparator_of, &num_levels_of)?;
    if options.track_and_verify_wals_in_manifest {
        manifest.wals.verify(&*env.fs, options.wal_dir.as_deref().unwrap_or(path))?;
    }
    let to_create = missing_descriptors(descriptors, &manifest.column_families, options)?;
    let (db_id, identity_missing) = identity(path, env, manifest.db_id)?;

    let mut state = DbState::empty();
    state.max_column_family = manifest.max_column_family;
    let mut unnamed = Vec::new();
    for mut cf in manifest.column_families {
        // RocksDB's own, which nobody names: a database under `persist_stats_to_disk` has it.
        let own = (cf.name == STATISTICS_FAMILY && find(&cf.name).is_none()).then(|| {
            let mut descriptor = ColumnFamilyDescriptor::new(STATISTICS_FAMILY);
            add_default_cache(&mut descriptor);
            descriptor
        });
        match find(&cf.name).or(own.as_ref()) {
            Some(descriptor) => {
                let dirs = paths::directories(&descriptor.options);
                let comparator = &descriptor.parts.comparator;
                cf.version = cf.version.located(&dirs, comparator)?;
                if let Some(open) = how.open.get(&cf.id) {
                    cf.version = cf.version.reusing(open, comparator);
                }
                state.column_families.insert(cf.id, column_family_state(descriptor, cf, pool));
            }
            None => unnamed.push(cf.name),
        }
    }
    if !unnamed.is_empty() && how.families == Families::All {
        return Err(Error::invalid_argument(format!("Column families not opened: {}", unnamed.join(", "))));
    }
    let mut recovered = Recovered {
        state,
        db_id,
        identity_missing,
        last_seq: manifest.last_sequence,
        wals: manifest.wals,
        left_out: false,
        goes_on_at: None,
        wal_files: Vec::new(),
        next_file_number: manifest.next_file_number.max(highest_file_number(path, env, descriptors)?.next()),
        to_create,
    };
    // Before the tables are opened, which takes longer: a writer beside writes over the WALs.
    replay_wals(path, options, env, wals, manifest.min_log_number_to_keep, &mut recovered)?;
    open_tables(path, options, env, pool, &recovered, how)?;
    Ok(recovered)
}

/// How often the MANIFEST is read again because it changed meanwhile: each time a flush of the writer fell into less than a
/// millisecond.
const MANIFEST_READS: usize = 100;

/// The contents of the MANIFEST, and the WALs there were when it was read: those it needs are among them.
///
/// A writer beside may remove a WAL once the MANIFEST no longer needs it. Listed before the MANIFEST is read, WALs that were
/// started in between would be missing, listed after it those that were removed: so it must be as it was once they are listed.
fn read_manifest(
    path: &Path,
    options: &DbOptions,
    env: &Env,
    comparator_of: &dyn Fn(&str) -> Option<Comparator>,
    num_levels_of: &dyn Fn(&str) -> usize,
) -> Result<(RecoveredManifest, Vec<FileNumber>)> {
    let mut opened: Option<(Vec<u8>, ManifestReader<'_>)> = None;
    for _ in 0..MANIFEST_READS {
        let before = ManifestStamp::of(path, env)?;
        // Only edits that were added since the last look are read, unless there is a new MANIFEST.
        let mut reader = match opened.take() {
            Some((current, reader)) if current == before.current => reader,
            _ => ManifestReader::open(&*env.fs, path, comparator_of, num_levels_of, true)?,
        };
        reader.read_on()?;
        let wals = wal_numbers(path, options, env)?;
        let after = ManifestStamp::of(path, env)?;
        if after == before {
            return Ok((reader.finish()?, wals));
        }
        opened = (after.current == before.current).then_some((before.current, reader));
    }
    Err(Error::new(ErrorKind::TryAgain, format!("{}: the MANIFEST changes all the time", path.display())))
}

/// Tells whether the structure of a database that another writes has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestStamp {
    /// The contents of CURRENT.
    current: Vec<u8>,
    /// Length of the MANIFEST, in bytes.
    len: u64,
}

impl ManifestStamp {
    /// As it is now.
    ///
    /// # Errors
    /// Of reading CURRENT. A MANIFEST that is not there is told when it is read.
    pub fn of(path: &Path, env: &Env) -> Result<ManifestStamp> {
        let current = env.fs.read_all(&file_name::current(path))?;
        let name = String::from_utf8_lossy(&current).trim_end_matches('\n').to_string();
        let len = match file_name::parse(&name) {
            Some(FileKind::Manifest(_)) => env.fs.file_size(&path.join(name)).unwrap_or(0),
            _ => 0,
        };
        Ok(ManifestStamp { current, len })
    }
}

fn missing_descriptors(
    descriptors: &[ColumnFamilyDescriptor],
    existing: &[RecoveredColumnFamily],
    options: &DbOptions,
) -> Result<Vec<ColumnFamilyDescriptor>> {
    let missing: Vec<_> =
        descriptors.iter().filter(|d| !existing.iter().any(|cf| cf.name == d.name)).cloned().collect();
    match missing.first() {
        Some(first) if !options.create_missing_column_families => Err(Error::invalid_argument(format!(
            "column family not found: {} (create_missing_column_families is false)",
            first.name
        ))),
        _ => Ok(missing),
    }
}

/// The database's identity, and whether its file must be written.
fn identity(path: &Path, env: &Env, recorded: Option<String>) -> Result<(String, bool)> {
    let file = file_name::identity(path);
    let stored = if env.fs.exists(&file)? {
        let text = String::from_utf8_lossy(&env.fs.read_all(&file)?).into_owned();
        Some(text.trim_end_matches('\n').to_string()).filter(|text| !text.is_empty())
    } else {
        None
    };
    Ok(match (recorded, stored) {
        (Some(recorded), stored) => {
            let missing = stored.as_ref() != Some(&recorded);
            (recorded, missing)
        }
        (None, Some(stored)) => (stored, false),
        (None, None) => (crate::identity::new_db_id(env), true),
    })
}

/// The highest number of a file in any directory of the database, of those that may be its own.
fn highest_file_number(path: &Path, env: &Env, descriptors: &[ColumnFamilyDescriptor]) -> Result<FileNumber> {
    let of = |name: &String| match file_name::parse(name)? {
        FileKind::Manifest(n) | FileKind::Table(n) | FileKind::Wal(n) | FileKind::Options(n) => Some(n),
        FileKind::Blob(n) | FileKind::Temp(n) => Some(n),
        _ => None,
    };
    let highest_in = |dir: &Path| -> Result<FileNumber> {
        let numbers = env.fs.list(dir)?;
        let numbers = numbers.iter().filter_map(of).filter(|number| file_name::is_plausible(*number));
        Ok(numbers.max().unwrap_or_default())
    };
    let mut highest = highest_in(path)?;
    for DbPath { path, .. } in descriptors.iter().flat_map(|descriptor| &descriptor.options.cf_paths) {
        if env.fs.exists(path)? {
            highest = highest.max(highest_in(path)?);
        }
    }
    Ok(highest)
}

fn column_family_state(
    descriptor: &ColumnFamilyDescriptor,
    recovered: RecoveredColumnFamily,
    pool: &Arc<MemTablePool>,
) -> CfState {
    let epochs = recovered.version.files().map(|(_, file)| file.epoch);
    // Epoch 1 is kept for what is ingested behind.
    let first = 1 + u64::from(descriptor.options.allow_ingest_behind);
    let next_epoch = (epochs.max().unwrap_or(0) + 1).max(first);
    let mut state = CfState::new(
        recovered.id,
        descriptor,
        Arc::new(recovered.version),
        recovered.log_number,
        next_epoch,
        pool,
    );
    if let Some(low) = recovered.full_history_low {
        state.cf.full_history_low.store(Some(Arc::new(low)));
        state.install_superversion();
        state.retired.clear();
    }
    state
}

/// Opens every table, several at a time: wrong sizes, identities and features are found before anything is written, and no
/// reader pays for it later. Without `paranoid_checks` a damaged table does not keep the rest from being read.
fn open_tables(
    path: &Path,
    options: &DbOptions,
    env: &Env,
    pool: &Arc<MemTablePool>,
    recovered: &Recovered,
    how: RecoverOptions<'_>,
) -> Result<()> {
    let identity = (recovered.db_id.clone(), String::new());
    let log = InfoLog::none(env);
    let ctx = DbContext::new(
        env.clone(),
        path.to_path_buf(),
        options.clone(),
        identity,
        log,
        pool.clone(),
        FileNumber::NONE,
    )
    .with_objects(how.objects.clone())
    .counted_by(how.statistics.cloned());
    let known: HashMap<FileNumber, &Arc<TableFile>> =
        how.open.values().flat_map(|version| version.files()).map(|(_, file)| (file.number, file)).collect();
    let mut tables = Vec::new();
    for cf in recovered.state.column_families.values() {
        for (level, file) in cf.version.files() {
            if known.get(&file.number).is_some_and(|known| Arc::ptr_eq(known, file)) {
                continue;
            }
            file.runtime.from_flush.store(level == 0, Ordering::Relaxed);
            tables.push((cf.cf.clone(), file.clone()));
        }
    }
    opening::open(ctx, tables)
}

/// Numbers of the WAL files there are, ascending.
fn wal_numbers(path: &Path, options: &DbOptions, env: &Env) -> Result<Vec<FileNumber>> {
    let wal_dir = options.wal_dir.as_deref().unwrap_or(path);
    if !env.fs.exists(wal_dir)? {
        return Ok(Vec::new());
    }
    let names = env.fs.list(wal_dir)?.into_iter();
    let mut wals: Vec<FileNumber> = names
        .filter_map(|name| match file_name::parse(&name) {
            Some(FileKind::Wal(number)) if file_name::is_plausible(number) => Some(number),
            _ => None,
        })
        .collect();
    wals.sort_unstable();
    Ok(wals)
}

/// Replays the WALs that are still needed into the memtables.
fn replay_wals(
    path: &Path,
    options: &DbOptions,
    env: &Env,
    wals: Vec<FileNumber>,
    min_log_number_to_keep: FileNumber,
    recovered: &mut Recovered,
) -> Result<()> {
    let wal_dir = options.wal_dir.as_deref().unwrap_or(path);
    let log_numbers = recovered.state.column_families.values().map(|cf| cf.log_number);
    let min_wal = min_log_number_to_keep.max(log_numbers.min().unwrap_or_default());
    if let Some(&last) = wals.last() {
        recovered.next_file_number = recovered.next_file_number.max(last.next());
    }
    let mode = options.wal_recovery_mode;
    let replay = |recovered: &Recovered| Replay {
        mode,
        stopped: None,
        next_seq: None,
        last_in_tables: recovered.last_seq,
        left_out: false,
        ends_open: false,
        needed_from: min_wal,
        oldest: None,
        last_read: None,
        last_file: None,
    };
    // All their writes are in tables. They are there for what was prepared in them, and were durable before those tables:
    // damage after that says nothing about later WALs.
    let mut early = replay(recovered);
    let kept = min_log_number_to_keep.max(FileNumber::NONE.next());
    for wal in
        wals.iter().filter(|wal| (kept..min_wal).contains(wal) && min_log_number_to_keep > FileNumber::NONE)
    {
        early.wal(env, wal_dir, *wal, recovered)?;
    }
    // Of one that was left before its end the length is not known.
    let last_read = early.last_read.filter(|_| early.stopped.is_none());
    let mut replay =
        Replay { last_read, last_file: early.last_file, oldest: early.oldest, ..replay(recovered) };
    for wal in wals.iter().filter(|wal| **wal >= min_wal) {
        replay.wal(env, wal_dir, *wal, recovered)?;
    }
    recovered.left_out = early.left_out || replay.left_out;
    recovered.goes_on_at = replay.next_seq.filter(|_| replay.ends_open);
    for wal in wals {
        // One that a writer beside has removed meanwhile is not this database's.
        let size = env.fs.file_size(&file_name::wal(wal_dir, wal)).unwrap_or(0);
        recovered.wal_files.push((wal, size));
    }
    replay.check_tables_are_not_ahead(recovered)
}

/// Replay of all WALs under way.
struct Replay {
    mode: WalRecoveryMode,
    /// Why the replay stopped, until a record goes on where it did.
    stopped: Option<Stop>,
    /// The sequence number the next batch should have.
    next_seq: Option<SeqNum>,
    /// At or above what tables hold.
    last_in_tables: SeqNum,
    /// A record was left out, or bytes that are none.
    left_out: bool,
    /// The WAL that was read last was not cut where it ended.
    ends_open: bool,
    /// WALs below this number may be gone.
    needed_from: FileNumber,
    /// The WAL that was read first.
    oldest: Option<FileNumber>,
    /// The WAL that was read last, as the one after it should name it.
    last_read: Option<Predecessor>,
    /// Its file, and how long that was when it was opened.
    last_file: Option<(PathBuf, u64)>,
}

/// Why a point-in-time replay stopped.
enum Stop {
    /// Damage in this WAL.
    Damage(FileNumber, Error),
    /// A WAL that was not cut where it ended: the power may have taken its end.
    OpenEnd,
}

impl Replay {
    fn wal(&mut self, env: &Env, dir: &Path, number: FileNumber, recovered: &mut Recovered) -> Result<()> {
        self.oldest.get_or_insert(number);
        let path = file_name::wal(dir, number);
        let file = env.fs.open_read(&path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
        let start = first_header(&*file)?;
        let size = file.size();
        self.records(file.clone(), number, &path, (env, recovered))?;
        self.last_file = Some((path.clone(), size));
        // A writer beside may have started another WAL over this one: then what was read is not all there was.
        if start.as_ref().is_some_and(|start| start.is_of(number)) && start != first_header(&*file)? {
            let what = format!("{}: was written over while it was read", path.display());
            return Err(Error::new(ErrorKind::TryAgain, what));
        }
        Ok(())
    }

    /// Replays the records of one WAL.
    fn records(
        &mut self,
        file: Arc<dyn ReadFile>,
        number: FileNumber,
        path: &Path,
        into: (&Env, &mut Recovered),
    ) -> Result<()> {
        let mut reader = LogReader::new(file, number.0, self.mode);
        let mut last_sequence = 0;
        let done = self.records_of(&mut reader, number, path, &mut last_sequence, into);
        self.last_read = Some(Predecessor { number, size_bytes: reader.end_offset(), last_sequence });
        done
    }

    fn records_of(
        &mut self,
        reader: &mut LogReader,
        number: FileNumber,
        path: &Path,
        last_sequence: &mut u64,
        (env, recovered): (&Env, &mut Recovered),
    ) -> Result<()> {
        // Of the record: what the log says of timestamps is asked for beside it.
        let mut copy = Vec::new();
        loop {
            match reader.next()? {
                ReadOutcome::End => {
                    if let Some((lost, error)) = self.lost_predecessor(reader, path, env)? {
                        self.report(lost, error)?;
                        return Ok(());
                    }
                    self.ends_open = reader.ends_open();
                    if self.mode == WalRecoveryMode::PointInTimeRecovery && self.ends_open {
                        self.stopped.get_or_insert(Stop::OpenEnd);
                    }
                    return Ok(());
                }
                ReadOutcome::Damaged(damage) => {
                    if self.report(number, damage.error)? {
                        return Ok(());
                    }
                }
                ReadOutcome::Record(record, offset) => {
                    copy.clear();
                    copy.extend_from_slice(record);
                    if let Some((lost, error)) = self.lost_predecessor(reader, path, env)?
                        && self.report(lost, error)?
                    {
                        return Ok(());
                    }
                    if copy.len() >= codec::HEADER_LEN {
                        *last_sequence = codec::sequence_of(&copy).0;
                    }
                    let outcome = check_timestamps(&copy, number, reader.timestamp_sizes(), recovered)
                        .and_then(|()| self.record(&copy, number, recovered));
                    if let Err(error) = outcome {
                        let error = error.within(format!("{}: offset {offset}", path.display()));
                        if error.kind() == ErrorKind::NotSupported {
                            return Err(error);
                        }
                        if self.report(number, error)? {
                            return Ok(());
                        }
                    } else if self.stopped.is_some() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The WAL before the one that `reader` reads, and the damage, if this one has just said of it what is not so: that one is gone, or
    /// not as long as it was.
    ///
    /// Source: RocksDB `db/log_reader.cc`, `MaybeVerifyPredecessorWALInfo`.
    ///
    /// # Errors
    /// TryAgain if the one before has another length than when it was read: a writer beside has ended it.
    fn lost_predecessor(
        &self,
        reader: &mut LogReader,
        path: &Path,
        env: &Env,
    ) -> Result<Option<(FileNumber, Error)>> {
        let Some(named) = reader.take_predecessor() else { return Ok(None) };
        if self.stopped.is_some() || self.mode == WalRecoveryMode::SkipAnyCorruptedRecords {
            return Ok(None);
        }
        let what = match self.last_read {
            Some(read) if read == named => return Ok(None),
            None if named.number < self.needed_from => return Ok(None),
            Some(read) if read.number == named.number => format!(
                "the WAL before it, {:06}.log, has {} bytes up to sequence number {}, and had {} up to {}",
                read.number, read.size_bytes, read.last_sequence, named.size_bytes, named.last_sequence
            ),
            _ => format!("the WAL before it, {:06}.log, is missing", named.number),
        };
        if let Some((before, size)) = &self.last_file
            && env.fs.file_size(before).is_ok_and(|now| now != *size)
        {
            let what = format!("{}: was written to while it was read", before.display());
            return Err(Error::new(ErrorKind::TryAgain, what));
        }
        Ok(Some((named.number, Error::corruption(format!("{}: {what}", path.display())))))
    }

    /// The verdict on damage: true if this WAL is over.
    fn report(&mut self, wal: FileNumber, error: Error) -> Result<bool> {
        self.left_out = true;
        match self.mode {
            WalRecoveryMode::TolerateCorruptedTailRecords | WalRecoveryMode::AbsoluteConsistency => {
                Err(error)
            }
            WalRecoveryMode::SkipAnyCorruptedRecords => Ok(false),
            WalRecoveryMode::PointInTimeRecovery => {
                match &self.stopped {
                    Some(Stop::Damage(..)) => {}
                    _ => self.stopped = Some(Stop::Damage(wal, error)),
                }
                Ok(true)
            }
        }
    }

    /// Applies one record. After damage, only one that goes on exactly where the replay stopped; after an end that may be lost, or where tables stop.
    fn record(&mut self, record: &[u8], wal: FileNumber, recovered: &mut Recovered) -> Result<()> {
        if record.len() < codec::HEADER_LEN {
            return Err(Error::corruption(format!("a record of {} bytes is no write batch", record.len())));
        }
        let first = codec::sequence_of(record);
        let end = first.0.checked_add(u64::from(codec::count_of(record)));
        if end.is_none_or(|end| end > SeqNum::MAX.0) {
            return Err(Error::corruption(format!("a write batch has sequence number {first}")));
        }
        if let Some(stop) = &self.stopped {
            let goes_on = match (self.next_seq, stop) {
                (Some(next), Stop::Damage(..)) => next == first,
                // Numbers that the MANIFEST knows are not lost with an end: RocksDB gave them to a file that it ingested, say.
                (Some(next), Stop::OpenEnd) => {
                    next == first || (next..=self.last_in_tables.plus(1)).contains(&first)
                }
                (None, Stop::OpenEnd) => first <= self.last_in_tables.plus(1),
                (None, Stop::Damage(..)) => false,
            };
            if !goes_on {
                self.left_out = true;
                return Ok(());
            }
            self.stopped = None;
        }
        if self.next_seq.is_some_and(|next| first < next) && codec::count_of(record) > 0 {
            return Err(Error::corruption(format!("sequence number {first} is replayed twice")));
        }
        let DbState { column_families, prepared, .. } = &mut recovered.state;
        let column_families = &*column_families;
        let memtable_of = |id: CfId| {
            let cf = column_families.get(&id).filter(|cf| wal >= cf.log_number)?;
            Some(&*cf.memtable)
        };
        check_batch(record)?;
        // Those that were prepared before are in the older WALs, with what was decided there.
        let is_there = self.oldest.is_some_and(|oldest| oldest < wal) && codec::is_prepared_again(record);
        let count = if is_there { 0 } else { prepared.replay(record, first, wal, memtable_of)? };
        let next = first.plus(count);
        self.next_seq = Some(next);
        // A record of nothing has the number of the next one: those before it that are not here were in no WAL.
        recovered.last_seq = recovered.last_seq.max(SeqNum(next.0.saturating_sub(1)));
        Ok(())
    }

    /// With data lost in a WAL, no column family may hold tables newer than the loss: some writes would be
    /// there and earlier ones not.
    fn check_tables_are_not_ahead(&self, recovered: &Recovered) -> Result<()> {
        let Some(Stop::Damage(wal, error)) = &self.stopped else { return Ok(()) };
        let ahead = recovered
            .state
            .column_families
            .values()
            .find(|cf| cf.log_number > *wal && cf.version.num_files() > 0);
        match ahead {
            Some(cf) => Err(error
                .within(format!("column family {} is ahead of the damaged WAL {wal:06}.log", cf.cf.name()))),
            None => Ok(()),
        }
    }
}

/// The header of a WAL's first record, with the WAL's number if it carries one.
fn first_header(file: &dyn ReadFile) -> Result<Option<FirstHeader>> {
    let mut header = [0; outcrop_record::RECYCLABLE_HEADER_LEN];
    let got = file.read_at(0, &mut header)?;
    Ok((got == header.len()).then_some(FirstHeader(header)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct FirstHeader([u8; outcrop_record::RECYCLABLE_HEADER_LEN]);

impl FirstHeader {
    /// False if the WAL `number` has no record yet: its bytes belong to another log, and are about to be written over.
    fn is_of(&self, number: FileNumber) -> bool {
        let [.., a, b, c, d] = self.0;
        !outcrop_record::is_recyclable(self.0[outcrop_record::HEADER_LEN - 1])
            || u32::from_le_bytes([a, b, c, d]) == number.0 as u32
    }
}

/// Checks that the WAL `wal` has timestamps in the keys of the batch where column families have them, and nowhere else.
///
/// # Errors
/// NotSupported if it differs: a RocksDB before 8.4 does not say which keys have them. So it is if a write cannot have one here.
///
/// Source: RocksDB `util/udt_util.cc`, `HandleWriteBatchTimestampSizeDifference`.
fn check_timestamps(
    record: &[u8],
    wal: FileNumber,
    recorded: &BTreeMap<CfId, u16>,
    recovered: &Recovered,
) -> Result<()> {
    let families = &recovered.state.column_families;
    if recorded.is_empty() && !families.values().any(|cf| cf.cf.has_timestamps()) {
        return Ok(());
    }
    let mut records = codec::records(record)?;
    while let Some(item) = records.next_item() {
        // An item that does not decode is reported where it is applied.
        let Ok(Item::Write(write)) = item else { continue };
        let Some(cf) = families.get(&write.cf).filter(|cf| wal >= cf.log_number) else { continue };
        let running = cf.cf.comparator.timestamp_len();
        if recorded.get(&write.cf).map_or(0, |len| usize::from(*len)) != running {
            let what = "WriteBatch contains unrecoverable timestamp size inconsistency.";
            return Err(Error::not_supported(what));
        }
        if running > 0 {
            check_stamped(&cf.cf, &write.op)?;
        }
    }
    Ok(())
}

/// Checks a whole batch before any of it is applied.
fn check_batch(record: &[u8]) -> Result<()> {
    let mut count = 0;
    let mut records = codec::records(record)?;
    while let Some(item) = records.next_item() {
        count += u32::from(matches!(item?, Item::Write(_)));
    }
    if count != codec::count_of(record) {
        return Err(Error::corruption(format!(
            "a write batch says {} records but holds {count}",
            codec::count_of(record)
        )));
    }
    Ok(())
}

/// True if replayed data stays in memtables, and in the WALs it came from: `avoid_flush_during_recovery` asks for it, no memtable is full, and
/// nothing that a later replay of these WALs might take for damage was met, and nothing was prepared in them: no memtable would know of its WAL.
///
/// Source: RocksDB `DBImpl::RecoverLogFiles`, which flushes all if it has flushed one that was full.
fn stays_in_memory(ctx: &DbContext, recovered: &Recovered) -> bool {
    let state = &recovered.state;
    ctx.options.kept.flag("avoid_flush_during_recovery", false)
        && !recovered.left_out
        && !state.prepared.has_any()
        && !state.column_families.values().any(|cf| cf.memtable.should_seal())
}

/// Writes replayed data to L0 tables, so that the WALs it came from are not needed any more; or leaves it where it is, as
/// `avoid_flush_during_recovery` asks. Column families with nothing in memory begin with `new_wal`.
pub fn flush_recovered(ctx: &Arc<DbContext>, recovered: &mut Recovered, new_wal: FileNumber) -> Result<()> {
    let stays = stays_in_memory(ctx, recovered);
    for cf in recovered.state.column_families.values_mut() {
        if !cf.memtable.is_empty() && stays {
            let entries = cf.memtable.num_entries();
            log_line!(ctx, "[{}] {entries} entries from WALs stay in memory", cf.cf.name());
            continue;
        }
        if !cf.memtable.is_empty() {
            let reserve = || ctx.new_file_number();
            let memtable = cf.memtable.clone();
            let epoch = cf.next_epoch;
            let written = write_l0(ctx, &cf.cf, &[&memtable], Default::default(), (epoch, 0), &reserve)?;
            cf.next_epoch += 1;
            log_line!(ctx, "[{}] recovered {} entries from WALs", cf.cf.name(), memtable.num_entries());
            let mut edit = VersionEdit::for_column_family(cf.cf.id());
            edit.new_files = written.tables.into_iter().map(|file| (0, file)).collect();
            edit.new_blob_files = written.blob_files;
            let mut builder = VersionBuilder::new(&cf.version, &cf.cf.comparator, cf.version.levels.len());
            builder.apply(&edit)?;
            cf.version = Arc::new(builder.build(cf.cf.options.load().force_consistency_checks)?);
            let options = cf.cf.options.load();
            cf.memtable = new_memtable(&options, &cf.cf.comparator, &ctx.memtable_pool);
        }
        (cf.log_number, cf.manifest_log_number) = (new_wal, new_wal);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

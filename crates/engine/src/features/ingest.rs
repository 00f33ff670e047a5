//! Taking finished table files into the database.
//!
//! ```text
//! look at the files -> link or copy them in -> exclude writers -> flush what they overlap
//!   -> place each as deep as nothing is in its way, under one new sequence number -> install -> let writers on
//! ```
//! Invariants: an ingested file hides everything written before it and nothing written after. It lands below every
//! table that has keys in its range and every running compaction that touches it, or in L0. It is durable no sooner than what the WALs were given
//! before it.
//!
//! Concurrency: writers wait from the choice of the sequence number until the files are visible. Jobs that run
//! meanwhile install their results before or after, never between choice and installation: the manifest lock is held.
//! Source: RocksDB `db/external_sst_file_ingestion_job.cc`.

use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::compaction::level_shape::LevelShape;
use crate::context::DbContext;
use crate::copy_file::copy_file;
use crate::core::Core;
use crate::events::Event;
use crate::events::info::ExternalFileIngestionInfo;
use crate::events::reasons::FlushReason;
use crate::file_checksum::{FileChecksum, check_function, of_file, verify_file};
use crate::info_log::log_line;
use crate::paths;
use crate::pending_outputs::PendingOutputs;
use crate::sst_file_writer::ExternalFileInfo;
use crate::state::CfState;
use crate::stats::Ingested;
use crate::table_bounds::boundaries;
use crate::version_set::VersionSet;
use crate::write::pipeline::WriteCore;
use outcrop_base::keys::{Trailer, append_internal_key, split, user_key};
use outcrop_base::range_tombstone::is_tombstone_end;
use outcrop_base::{CfId, Comparator, Error, ErrorKind, RangeTombstone, Result, SeqNum};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{FileNumber, TableFile, VersionEdit};
use outcrop_monitor::{HistogramKind, Watch};
use outcrop_options::styles;
use outcrop_table::{Loading, TableIterOptions, TableReader, TableReaderOptions};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files are taken in.
///
/// ```
/// # use outcrop::{ColumnFamilyDescriptor, IngestExternalFileOptions, SstFileWriter};
/// # let env = outcrop::Env::memory();
/// # let db = outcrop::Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// # let mut writer = SstFileWriter::create("/db/new.sst", &env, &ColumnFamilyDescriptor::default())?;
/// # writer.put(b"a", b"1")?;
/// # writer.finish()?;
/// // The file is linked rather than copied, and gone from where it was.
/// let options = IngestExternalFileOptions { move_files: true, ..IngestExternalFileOptions::default() };
/// db.ingest_external_files_with(&["/db/new.sst"], &options)?;
/// assert_eq!(db.get("a")?.as_deref(), Some(&b"1"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngestExternalFileOptions {
    /// Link the files rather than copy them, and remove them where they came from once they are in. Default false.
    pub move_files: bool,
    /// With `move_files`: copy where linking is not possible. Default true.
    pub failed_move_fall_back_to_copy: bool,
    /// Snapshots taken before do not see the files. Default true.
    pub snapshot_consistency: bool,
    /// Files may get a sequence number above 0; otherwise those that need one are refused. Default true.
    pub allow_global_seqno: bool,
    /// Memtables may be flushed while writers wait: those that overlap the files, and any beside which a file goes to L0.
    /// Otherwise that is InvalidArgument; RocksDB takes the second case. Default true.
    pub allow_blocking_flush: bool,
    /// Existing keys hide those of the files: they go to the last level. The column family must have been opened with
    /// `allow_ingest_behind`. Default false.
    pub ingest_behind: bool,
    /// Files that do not fit into the last level are refused. Default false.
    pub fail_if_not_bottommost_level: bool,
    /// Every block of the files is verified first. Default false.
    pub verify_checksums_before_ingest: bool,
    /// Checksums that are given with whole files, by [`crate::Db::ingest_written_files`], are compared with the files; otherwise
    /// they are believed. Default true.
    pub verify_file_checksum: bool,
}

impl Default for IngestExternalFileOptions {
    fn default() -> Self {
        IngestExternalFileOptions {
            move_files: false,
            failed_move_fall_back_to_copy: true,
            snapshot_consistency: true,
            allow_global_seqno: true,
            allow_blocking_flush: true,
            ingest_behind: false,
            fail_if_not_bottommost_level: false,
            verify_checksums_before_ingest: false,
            verify_file_checksum: true,
        }
    }
}

/// Epoch of files ingested behind: older than any other. Source: RocksDB's reserve.
const BEHIND_EPOCH: u64 = 1;

/// A file that was validated.
struct External {
    source: PathBuf,
    size: u64,
    smallest: Vec<u8>,
    largest: Vec<u8>,
    unique_id: [u64; 2],
    tail_size: u64,
    checksum: Option<FileChecksum>,
}

/// A file to take in.
pub struct Candidate {
    path: PathBuf,
    /// Its checksum as a whole, if it came with one.
    checksum: Option<FileChecksum>,
}

impl From<&Path> for Candidate {
    fn from(path: &Path) -> Candidate {
        Candidate { path: path.to_path_buf(), checksum: None }
    }
}

impl From<&ExternalFileInfo> for Candidate {
    fn from(file: &ExternalFileInfo) -> Candidate {
        Candidate { path: file.path.clone(), checksum: file.file_checksum.clone() }
    }
}

/// See [`crate::Db::ingest_external_files`].
pub fn ingest(
    core: &Core,
    cf: &ColumnFamilyHandle,
    candidates: &[Candidate],
    options: &IngestExternalFileOptions,
) -> Result<()> {
    core.ctx.check_not_closed()?;
    core.ctx.check_owns(cf)?;
    if candidates.is_empty() {
        return Err(Error::invalid_argument("no files to ingest"));
    }
    if cf.has_timestamps() {
        let name = cf.name();
        let what = "ingestion into a column family with user-defined timestamps";
        return Err(Error::not_supported(format!("{what} ({name})")));
    }
    if options.ingest_behind && !cf.options.load().allow_ingest_behind {
        return Err(Error::invalid_argument(
            "ingest_behind needs a column family opened with allow_ingest_behind",
        ));
    }
    let watching = core.ctx.monitor.begin();
    let preparing = Watch::from(&watching).stats_timer();
    let comparator = &cf.comparator;
    let mut files = Vec::new();
    for candidate in candidates {
        files.push(validate_external(&core.ctx, cf, candidate, options)?);
    }
    let overlapping = sort_files(comparator, &mut files);
    if overlapping && options.ingest_behind {
        return Err(Error::not_supported("files with overlapping ranges cannot be ingested behind"));
    }
    let pending = PendingOutputs::new(&core.ctx);
    let mut tables = Vec::new();
    for file in &files {
        tables.push(link_or_copy_in(core, cf, file, options, &pending)?);
    }
    core.ctx.env.fs.sync_dir(&paths::directory_of(&core.ctx, cf, 0))?;
    preparing.micros(HistogramKind::IngestExternalFilePrepareTime);
    let running = Watch::from(&watching).stats_timer();
    let installed = place_and_install(core, cf, tables, overlapping, options, pending)?;
    running.micros(HistogramKind::IngestExternalFileRunTime);
    tell_ingested(core, cf, &files, &installed);
    for file in files.iter().filter(|_| options.move_files) {
        // Best effort: the file is in; its old name is only in the way.
        let _ = core.ctx.env.fs.remove_file(&file.source);
    }
    Ok(())
}

/// Tells listeners of each file that was taken in.
fn tell_ingested(core: &Core, cf: &ColumnFamilyHandle, files: &[External], installed: &[Arc<TableFile>]) {
    if !core.ctx.listens() {
        return;
    }
    for (file, table) in files.iter().zip(installed) {
        let opened = core.ctx.tables.open(cf, table);
        core.ctx.tell(Event::FileIngested(&ExternalFileIngestionInfo {
            cf_name: cf.name().to_string(),
            external_file_path: file.source.clone(),
            internal_file_path: table.path(&core.ctx.path),
            global_seqno: table.largest_seq,
            properties: opened.map(|table| Arc::new(table.properties().clone())).unwrap_or_default(),
        }));
    }
}

/// Gives the file a name in the database's directory. Its keys have sequence number 0 still.
fn link_or_copy_in(
    core: &Core,
    cf: &ColumnFamily,
    file: &External,
    options: &IngestExternalFileOptions,
    pending: &PendingOutputs,
) -> Result<TableFile> {
    let number = pending.reserve();
    let mut table = TableFile::new(number, file.size, file.smallest.clone(), file.largest.clone());
    table.dir = paths::directory(&cf.options.load(), 0);
    let target = table.path(&core.ctx.path);
    let fs = &core.ctx.env.fs;
    let linked = match options.move_files {
        true => match fs.hard_link(&file.source, &target) {
            Ok(()) => true,
            Err(error)
                if error.kind() == ErrorKind::NotSupported && options.failed_move_fall_back_to_copy =>
            {
                false
            }
            Err(error) => return Err(error),
        },
        false => false,
    };
    if !linked {
        copy_file(&**fs, &file.source, &target, file.size)?;
    }
    core.ctx.file_added(target, file.size);
    table.unique_id = Some(file.unique_id);
    table.tail_size = file.tail_size;
    FileChecksum::of_table(file.checksum.as_ref(), &mut table);
    table.creation_time = core.ctx.env.clock.now_micros() / 1_000_000;
    table.oldest_ancestor_time = table.creation_time;
    Ok(table)
}

fn place_and_install(
    core: &Core,
    cf: &ColumnFamilyHandle,
    tables: Vec<TableFile>,
    overlapping: bool,
    options: &IngestExternalFileOptions,
    pending: PendingOutputs,
) -> Result<Vec<Arc<TableFile>>> {
    // HOLDS CommitPipeline::core: no write may come between the files' sequence number and their visibility.
    let mut writing = core.commit.exclude_writers();
    core.commit.check_no_error()?;
    if cf.is_dropped() {
        return Err(Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string()));
    }
    flush_before(core, &mut writing, cf, &tables, overlapping, options)?;
    // The files are durable at once, and come after what was written before: a loss of power must not leave them without it.
    core.commit.sync_unsynced_excluded(&mut writing)?;
    // Without numbers the files are visible to whoever finds them: a snapshot that is taken before that would have them later.
    let held_off = if options.snapshot_consistency { core.snapshots.hold_off() } else { None };
    let numbered = options.snapshot_consistency && held_off.is_none();
    let no_compactions = NoNewCompactions::new(&core.versions, cf.id());
    let mut last_seq = writing.last_seq;
    let (mut placed, mut counted) = (Vec::new(), Ingested::default());
    let mut taken_in = Vec::new();
    let prepare = || {
        let with_data = tables_with_data(core, cf, &tables)?;
        let placing = Placing { cf, overlapping, numbered, options, last_seq: writing.last_seq, with_data };
        let (edit, last) = {
            let mut state = core.versions.state.lock();
            let found = state.column_families.get_mut(&cf.id());
            let dropped = || Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string());
            placing.edit(found.ok_or_else(dropped)?, tables)?
        };
        for (level, file) in &edit.new_files {
            let keys = core.ctx.tables.open(cf, file)?.properties().num_entries;
            let l0_files = u64::from(*level == 0);
            counted.add(&Ingested { bytes: file.size, files: 1, l0_files, keys });
            placed.push((*level, file.number.0));
            taken_in.push(file.clone());
        }
        last_seq = last;
        pending.disarm();
        Ok((vec![edit], last))
    };
    let installed = core.versions.log_prepared(prepare, |_| {});
    // Numbers of an ingestion that failed may be in the MANIFEST and are not given out again.
    writing.last_seq = last_seq;
    installed?;
    pending.installed();
    // Readers load their view before the number: until now they found the files and passed over what has a number
    // above theirs.
    core.versions.publish(last_seq);
    // A compaction that takes them has snapshots that see them.
    drop((no_compactions, held_off));
    cf.stats.ingested.lock().add(&counted);
    log_line!(core.ctx, "[{}] ingested files (level, number): {placed:?}", cf.name());
    Ok(taken_in)
}

/// Flushes the column family if its memtables have keys of the files' ranges, or have anything and a file goes to L0:
/// merged with older tables there, its number would put it around what is flushed later, and RocksDB before version 8
/// takes tables of L0 that lie in each other's time for damage.
///
/// Source: RocksDB `FindIntraL0Compaction`, `earliest_mem_seqno`, which leaves such files alone instead.
fn flush_before(
    core: &Core,
    writing: &mut WriteCore,
    cf: &ColumnFamilyHandle,
    tables: &[TableFile],
    overlapping: bool,
    options: &IngestExternalFileOptions,
) -> Result<()> {
    let with_data = tables_with_data(core, cf, tables)?;
    let (touched, beside, refused) = {
        let state = core.versions.state.lock();
        let Some(cf_state) = state.column_families.get(&cf.id()) else { return Ok(()) };
        let places = tables.iter().zip(&with_data);
        let places: Vec<TargetLevel> = places
            .map(|(table, with_data)| place(cf_state, &cf.comparator, table, with_data, options))
            .collect();
        let unflushed = !cf_state.memtable.is_empty() || !cf_state.sealed.is_empty();
        let beside = unflushed && (overlapping || places.iter().any(|place| place.level == 0));
        let refused =
            check_numbers_allowed(options, overlapping || places.iter().any(|place| place.over_data));
        let active = std::iter::once(&cf_state.memtable);
        let memtables: Vec<_> = active.chain(cf_state.sealed.iter().map(|s| &s.memtable)).cloned().collect();
        drop(state);
        let touched = memtables.iter().any(|memtable| {
            tables.iter().any(|table| {
                let (end, included) = table.end();
                memtable.overlaps(user_key(&table.smallest), end, included)
            })
        });
        (touched, beside, refused)
    };
    if !touched && !beside {
        return Ok(());
    }
    if !touched {
        // The flush would be for nothing.
        refused?;
    }
    if !options.allow_blocking_flush {
        return Err(Error::invalid_argument(
            "External file requires flush, but allow_blocking_flush is false",
        ));
    }
    core.commit.flush_excluded(writing, &[cf.id()], FlushReason::ExternalFileIngestion)
}

/// Refuses files that need sequence numbers of their own, as they come over others' keys, where none may be given.
fn check_numbers_allowed(options: &IngestExternalFileOptions, needed: bool) -> Result<()> {
    if needed && !options.ingest_behind && !options.allow_global_seqno {
        return Err(Error::invalid_argument("Global seqno is required, but disabled"));
    }
    Ok(())
}

/// The choice of level and sequence number for each file.
struct Placing<'a> {
    cf: &'a ColumnFamilyHandle,
    /// The files overlap each other.
    overlapping: bool,
    /// Every file gets a number, so that snapshots do not see it.
    numbered: bool,
    options: &'a IngestExternalFileOptions,
    last_seq: SeqNum,
    with_data: WithData,
}

impl Placing<'_> {
    /// The edit that adds the tables, and the last sequence number used.
    fn edit(&self, cf: &mut CfState, tables: Vec<TableFile>) -> Result<(VersionEdit, SeqNum)> {
        let mut edit = VersionEdit::for_column_family(self.cf.id());
        let mut last_seq = self.last_seq;
        for (mut table, with_data) in tables.into_iter().zip(&self.with_data) {
            let mut place = place(cf, &self.cf.comparator, &table, with_data, self.options);
            if self.overlapping {
                // One over the other: each needs its place in history.
                place = TargetLevel { level: 0, over_data: true };
            }
            self.check(cf, &place)?;
            let mut seq = SeqNum::ZERO;
            let needed = place.over_data || self.numbered;
            check_numbers_allowed(self.options, needed)?;
            if needed && !self.options.ingest_behind {
                last_seq = last_seq.plus(1);
                seq = last_seq;
            }
            number_table(&mut table, seq);
            if self.options.ingest_behind {
                table.epoch = BEHIND_EPOCH;
            } else {
                table.epoch = cf.next_epoch;
                cf.next_epoch += 1;
            }
            edit.new_files.push((place.level as u32, Arc::new(table)));
        }
        Ok((edit, last_seq))
    }

    fn check(&self, cf: &CfState, place: &TargetLevel) -> Result<()> {
        if self.options.ingest_behind && place.over_data {
            return Err(Error::invalid_argument(
                "a file cannot be ingested behind: the last level has keys of its range",
            ));
        }
        if self.options.fail_if_not_bottommost_level && place.level + 1 != cf.version.levels.len() {
            return Err(Error::new(
                ErrorKind::TryAgain,
                "a file does not fit into the last level and fail_if_not_bottommost_level is set",
            ));
        }
        Ok(())
    }
}

/// Keeps compactions of a column family from starting while it lives: one that started between the choice of a level
/// and the installation could write a table over the file's range there.
struct NoNewCompactions<'d>(&'d VersionSet, CfId);

impl<'d> NoNewCompactions<'d> {
    fn new(versions: &'d VersionSet, cf: CfId) -> NoNewCompactions<'d> {
        if let Some(cf) = versions.state.lock().column_families.get_mut(&cf) {
            cf.ingesting += 1;
        }
        NoNewCompactions(versions, cf)
    }
}

impl Drop for NoNewCompactions<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if let Some(cf) = state.column_families.get_mut(&self.1) {
            cf.ingesting -= 1;
        }
        self.0.wake(&mut state);
    }
}

/// Opens a file where it is and takes down what the MANIFEST will say of it.
fn validate_external(
    ctx: &DbContext,
    cf: &ColumnFamily,
    candidate: &Candidate,
    options: &IngestExternalFileOptions,
) -> Result<External> {
    let path = &candidate.path;
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let file = ctx.env.fs.open_read(path, read)?;
    let size = file.size();
    let table = Arc::new(TableReader::open(
        file,
        TableReaderOptions {
            largest_seqno: SeqNum::ZERO,
            ..TableReaderOptions::uncached(cf.comparator.clone())
        },
    )?);
    let refuse = |what: String| Err(Error::invalid_argument(format!("{}: {what}", path.display())));
    let properties = table.properties();
    if properties.external_version.is_none() {
        return Err(Error::corruption(format!(
            "{}: it was not made for ingestion (no external SST file version)",
            path.display()
        )));
    }
    if properties.comparator_name != cf.comparator.name() {
        return refuse(format!(
            "its comparator is {}, the column family's {}",
            properties.comparator_name,
            cf.comparator.name()
        ));
    }
    if options.verify_checksums_before_ingest {
        let mut iter = table.iter(TableIterOptions {
            loading: Loading::NotKept,
            readahead_bytes: 1 << 20,
            ..TableIterOptions::default()
        });
        iter.seek_to_first();
        while iter.valid() {
            iter.next();
        }
        iter.status()?;
    }
    let (smallest, largest) = boundaries(&table, &cf.comparator)?;
    Ok(External {
        source: path.to_path_buf(),
        size,
        smallest,
        largest,
        unique_id: table.unique_id(),
        tail_size: size.saturating_sub(properties.data_size),
        checksum: checksum_of(ctx, candidate, size, options)?,
    })
}

/// The checksum that the MANIFEST will have of the file as a whole, if the database keeps such.
///
/// # Errors
/// Corruption if it came with another; InvalidArgument if that is of another function.
fn checksum_of(
    ctx: &DbContext,
    candidate: &Candidate,
    size: u64,
    options: &IngestExternalFileOptions,
) -> Result<Option<FileChecksum>> {
    let (path, fs) = (&candidate.path, &*ctx.env.fs);
    let Some(factory) = ctx.options.file_checksum_gen_factory else { return Ok(None) };
    match &candidate.checksum {
        None => return of_file(fs, path, size, factory).map(Some),
        Some(given) if options.verify_file_checksum => verify_file(fs, path, size, factory, given)?,
        Some(given) => check_function(factory, given)?,
    }
    Ok(candidate.checksum.clone())
}

/// Sorts by first key unless files overlap, which then stay in the order they were given in: true.
fn sort_files(comparator: &Comparator, files: &mut Vec<External>) -> bool {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by(|a, b| comparator.compare_internal(&files[*a].smallest, &files[*b].smallest));
    let overlap = order.windows(2).any(|pair| {
        let (end, next) = (&files[pair[0]].largest, &files[pair[1]].smallest);
        match comparator.compare(user_key(end), user_key(next)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !is_tombstone_end(end),
            std::cmp::Ordering::Greater => true,
        }
    });
    if !overlap {
        let mut sorted: Vec<Option<External>> = std::mem::take(files).into_iter().map(Some).collect();
        files.extend(order.into_iter().filter_map(|index| sorted[index].take()));
    }
    overlap
}

/// Of the tables of one version those that have keys, or delete ranges, between the ends of a file; of each file.
type WithData = Vec<HashSet<FileNumber>>;

/// Looks into every table that reaches into the range of one of `files`. Not with the state locked: it may read.
fn tables_with_data(core: &Core, cf: &ColumnFamilyHandle, files: &[TableFile]) -> Result<WithData> {
    let found = core.versions.state.lock().column_families.get(&cf.id()).map(|state| state.version.clone());
    let Some(version) = found else { return Ok(vec![HashSet::new(); files.len()]) };
    let of_file = |file: &TableFile| {
        let mut with_data = HashSet::new();
        for (_, table) in version.files().filter(|(_, table)| touches(&cf.comparator, file, table)) {
            if has_data(core, cf, file, table)? {
                with_data.insert(table.number);
            }
        }
        Ok(with_data)
    };
    files.iter().map(of_file).collect()
}

/// True if the ranges of the two have a key in common.
fn touches(comparator: &Comparator, file: &TableFile, table: &TableFile) -> bool {
    !is_before(comparator, file.end(), user_key(&table.smallest))
        && !table.ends_before(comparator, user_key(&file.smallest))
}

/// True if what ends at `end`, with or without the key, ends before `key`.
fn is_before(comparator: &Comparator, (end, included): (&[u8], bool), key: &[u8]) -> bool {
    match comparator.compare(end, key) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => !included,
        std::cmp::Ordering::Greater => false,
    }
}

/// True if `table` has a key or part of a deleted range between the ends of `file`.
///
/// Source: RocksDB `Version::OverlapWithLevelIterator`.
fn has_data(core: &Core, cf: &ColumnFamilyHandle, file: &TableFile, table: &TableFile) -> Result<bool> {
    let (begin, comparator) = (user_key(&file.smallest), &cf.comparator);
    let reader = core.ctx.tables.open(cf, table)?;
    let mut iter = reader.iter(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 0,
        ..TableIterOptions::default()
    });
    iter.seek(begin, Trailer::MAX);
    if iter.valid() && !is_before(comparator, file.end(), user_key(iter.key())) {
        return Ok(true);
    }
    iter.status()?;
    let deletes = |range: &RangeTombstone| {
        comparator.compare(&range.end, begin).is_gt() && !is_before(comparator, file.end(), &range.begin)
    };
    Ok(reader.range_tombstones().iter().any(deletes))
}

/// The level that a table can be installed on.
struct TargetLevel {
    level: usize,
    /// Older data of its range is there.
    over_data: bool,
}

/// The deepest level that the table can be on with no key of its range at or above it; `with_data` are the tables that have one.
fn place(
    cf: &CfState,
    comparator: &Comparator,
    table: &TableFile,
    with_data: &HashSet<FileNumber>,
    options: &IngestExternalFileOptions,
) -> TargetLevel {
    let levels = &cf.version.levels;
    let cf_options = cf.cf.options.load();
    let shape = LevelShape::of(&cf.version, &cf_options);
    let (begin, (end, _)) = (user_key(&table.smallest), table.end());
    if options.ingest_behind {
        let last = levels.len() - 1;
        let free = !levels[last].files.iter().any(|file| touches(comparator, table, file));
        return TargetLevel { level: if free { last } else { 0 }, over_data: !free };
    }
    if !styles::of(&cf_options).ingests_below_l0 {
        return TargetLevel { level: 0, over_data: true };
    }
    let mut level = 0;
    for (number, candidate) in levels.iter().enumerate() {
        if number > 0 && number < shape.base_level {
            continue;
        }
        if candidate.files.iter().any(|file| with_data.contains(&file.number)) {
            return TargetLevel { level, over_data: true };
        }
        // A running compaction may put a table over the range there.
        let busy = cf.running.iter().any(|running| running.writes(comparator, number..=number, begin, end));
        if busy {
            // The tables it moves are older; the file must stay above them.
            return TargetLevel { level, over_data: true };
        }
        // Between the keys of a table: it goes below.
        if number == 0 || !candidate.files.iter().any(|file| touches(comparator, table, file)) {
            level = number;
        }
    }
    TargetLevel { level, over_data: false }
}

/// Puts the table's boundaries and history at `seq`.
fn number_table(table: &mut TableFile, seq: SeqNum) {
    let renumbered = |key: &[u8]| {
        if is_tombstone_end(key) {
            return key.into();
        }
        let (user_key, trailer) = split(key);
        let mut out = Vec::with_capacity(key.len());
        let value_type = trailer.value_type().expect("read from a verified table");
        append_internal_key(&mut out, user_key, Trailer::new(seq, value_type));
        out.into_boxed_slice()
    };
    table.smallest = renumbered(&table.smallest);
    table.largest = renumbered(&table.largest);
    table.smallest_seq = seq;
    table.largest_seq = seq;
}

//! The database: public methods, each a few lines that hand over to a walk.

use crate::background::Background;
use crate::column_family::{ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::compaction::manual::{BottommostLevelCompaction, CompactRangeOptions};
use crate::compaction::requests::{CompactFilesOptions, UserKeyRange};
use crate::context::{DbContext, closing_error};
use crate::info_log::log_line;
use crate::ingest::IngestExternalFileOptions;
use crate::read::iter::DbIterator;
use crate::read::{PinnedValue, ReadOptions, WideColumns};
use crate::read_only::{self, Secondary};
use crate::snapshots::{Snapshot, SnapshotList};
use crate::state::DbState;
use crate::stats::DbStats;
use crate::superversion::SuperVersion;
use crate::updates::UpdatesSince;
use crate::versions::Manifest;
use crate::write::batch::{Op, check_sizes};
use crate::write::group::WriteQueue;
use crate::write::stall::WriteStall;
use crate::write::wal::ClosedWals;
use crate::write::{WriteBatch, WriteCore, WriteOptions, with_scratch_batch};
use arc_swap::ArcSwap;
use outcrop_base::{Error, ErrorKind, Result, SeqNum, wide_columns};
use outcrop_env::{Env, FileLock};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_options::DbOptions;
use outcrop_options::file::LoadedOptions;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// An open database. All methods may be called from any number of threads. Dropping it closes it.
pub struct Db {
    inner: Arc<DbInner>,
    default_cf: ColumnFamilyHandle,
    /// Given if it can follow a primary.
    secondary: Option<Secondary>,
}

/// The column families of an open database, by id.
pub(crate) type Registry = BTreeMap<u32, ColumnFamilyHandle>;

/// The shared interior of an open database. Locks and their order are listed in ARCHITECTURE.md.
pub struct DbInner {
    pub(crate) ctx: Arc<DbContext>,
    /// The last sequence number readers see. Alone on its cache line: writers store to it for every group.
    pub(crate) visible_seq: CacheLine<AtomicU64>,
    pub(crate) write_queue: WriteQueue,
    pub(crate) write_core: Mutex<WriteCore>,
    pub(crate) closed_wals: ClosedWals,
    pub(crate) current_wal: AtomicU64,
    /// Who reads WAL files: none is written over meanwhile.
    pub(crate) wal_readers: AtomicUsize,
    /// Writes fail: there is a background error, or the database closes.
    pub(crate) write_refused: AtomicBool,
    /// The OPTIONS file could not be written after a change of the column families.
    pub(crate) options_outdated: AtomicBool,
    pub(crate) stall: WriteStall,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) state: Mutex<DbState>,
    /// Signalled, with the state lock, when a job ended or an error was set.
    pub(crate) state_changed: Condvar,
    pub(crate) background: Background,
    pub(crate) snapshots: Arc<SnapshotList>,
    pub(crate) registry: ArcSwap<Registry>,
    pub(crate) stats: DbStats,
    pub(crate) opened_micros: u64,
    /// Released last: another process may open the database from then on.
    pub(crate) lock: Mutex<Option<Box<dyn FileLock>>>,
}

/// A value with a cache line to itself.
#[repr(align(64))]
pub(crate) struct CacheLine<T>(pub T);

impl<T> std::ops::Deref for CacheLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What [`Db::wait_for_compact`] does besides waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitForCompactOptions {
    /// Return Aborted if background work is paused, rather than wait for it to go on. Default false.
    pub abort_on_pause: bool,
    /// Flush all column families first. Default false.
    pub flush: bool,
    /// Give up with TimedOut after this long; `None`: never.
    pub timeout: Option<Duration>,
}

impl Db {
    /// Opens the database at `path`, or creates it if `options.create_if_missing`.
    ///
    /// `column_families` must name every column family the database has; "default" is added with default
    /// settings if it is not named.
    ///
    /// # Errors
    /// InvalidArgument if the database does not exist, exists against `error_if_exists`, or has column
    /// families that were not named, or a comparator differs; IoError naming the LOCK file if it is open
    /// elsewhere; Corruption naming file and offset; NotSupported naming the feature of a database that uses
    /// one this engine lacks. In all these cases nothing of the database was changed.
    pub fn open(
        path: impl AsRef<Path>,
        options: DbOptions,
        env: Env,
        column_families: Vec<ColumnFamilyDescriptor>,
    ) -> Result<Db> {
        let inner = crate::open::open(path.as_ref(), options, env, column_families)?;
        let default_cf = inner.registry.load().get(&0).expect("the default column family exists").clone();
        Ok(Db { inner, default_cf, secondary: None })
    }

    /// Opens the database at `path` for reading only. Takes no lock and writes nothing, so it can be beside a process
    /// that writes; what that one does later is not seen. Column families that are not named are left out.
    ///
    /// # Errors
    /// As [`Db::open`]; Corruption if a WAL with data exists and `error_if_wal_file_exists` is set.
    pub fn open_for_read_only(
        path: impl AsRef<Path>,
        options: DbOptions,
        env: Env,
        column_families: Vec<ColumnFamilyDescriptor>,
        error_if_wal_file_exists: bool,
    ) -> Result<Db> {
        let opened = read_only::open(path.as_ref(), options, env, column_families, error_if_wal_file_exists)?;
        Ok(Db::read_only(opened.0, None))
    }

    /// Opens the database at `path` for reading, as one that can follow its primary:
    /// [`Db::try_catch_up_with_primary`]. Keep `max_open_files` at -1, so that files the primary removes stay
    /// readable.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_as_secondary(
        path: impl AsRef<Path>,
        options: DbOptions,
        env: Env,
        column_families: Vec<ColumnFamilyDescriptor>,
    ) -> Result<Db> {
        let (inner, secondary) = read_only::open(path.as_ref(), options, env, column_families, false)?;
        Ok(Db::read_only(inner, Some(secondary)))
    }

    pub(crate) fn inner(&self) -> &Arc<DbInner> {
        &self.inner
    }

    fn read_only(inner: Arc<DbInner>, secondary: Option<Secondary>) -> Db {
        let default_cf = inner.registry.load().get(&0).expect("the default column family exists").clone();
        Db { inner, default_cf, secondary }
    }

    /// Shows readers what the primary has written since this was opened or called last. Iterators and values in use
    /// stay as they are.
    ///
    /// # Errors
    /// NotSupported if this was not opened by [`Db::open_as_secondary`]; otherwise those of [`Db::open`], and
    /// readers go on with what they have.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        match &self.secondary {
            Some(secondary) => self.inner.catch_up(secondary),
            None => Err(Error::not_supported("the database was not opened as a secondary")),
        }
    }

    /// The names of the column families of the database at `path`, without opening it.
    pub fn list_column_families(path: impl AsRef<Path>, env: &Env) -> Result<Vec<String>> {
        outcrop_manifest::list_column_families(&*env.fs, path.as_ref())
    }

    /// What the newest OPTIONS file of the database at `path` says.
    ///
    /// # Errors
    /// NotFound if there is none; InvalidArgument naming the line that does not parse.
    pub fn load_latest_options(path: impl AsRef<Path>, env: &Env) -> Result<LoadedOptions> {
        let dir = path.as_ref();
        let names = if env.fs.exists(dir)? { env.fs.list(dir)? } else { Vec::new() };
        let newest = names.into_iter().filter_map(|name| match file_name::parse(&name) {
            Some(FileKind::Options(number)) => Some((number, name)),
            _ => None,
        });
        let Some((_, name)) = newest.max() else {
            return Err(Error::new(ErrorKind::NotFound, format!("{}: no OPTIONS file", dir.display())));
        };
        let text = String::from_utf8_lossy(&env.fs.read_all(&dir.join(&name))?).into_owned();
        outcrop_options::file::parse(&text)
            .map_err(|error| error.within(dir.join(&name).display().to_string()))
    }

    /// Removes the database at `path`: every file in it that a database owns, then the directory if it is
    /// empty. Files of other names stay.
    pub fn destroy(path: impl AsRef<Path>, options: &DbOptions, env: &Env) -> Result<()> {
        crate::open::destroy(path.as_ref(), options, env)
    }

    /// The column family every database has.
    pub fn default_column_family(&self) -> &ColumnFamilyHandle {
        &self.default_cf
    }

    /// The open column family called `name`.
    pub fn column_family(&self, name: &str) -> Option<ColumnFamilyHandle> {
        self.inner.registry.load().values().find(|cf| cf.name() == name && !cf.is_dropped()).cloned()
    }

    /// All open column families, in the order they were created.
    pub fn column_families(&self) -> Vec<ColumnFamilyHandle> {
        self.inner.registry.load().values().cloned().collect()
    }

    /// Creates a column family. On return it is in the MANIFEST and survives a crash.
    ///
    /// # Errors
    /// InvalidArgument if one of that name exists. If the MANIFEST cannot be written, the column family does not exist and
    /// writes are refused until [`Db::resume`]; only after a crash before that it may be there.
    pub fn create_column_family(&self, descriptor: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
        self.inner.create_column_family(descriptor)
    }

    /// Drops a column family. On return that is in the MANIFEST and survives a crash. Handles stay valid for reading until
    /// dropped themselves; its files go with the last of them.
    ///
    /// An OPTIONS file that cannot be written does not undo it, and is no error: that is tried again.
    ///
    /// # Errors
    /// InvalidArgument for the default column family and one that was dropped before. If the MANIFEST cannot be written,
    /// the column family is there as before and writes are refused until [`Db::resume`]; only after a crash before that it
    /// may be gone.
    pub fn drop_column_family(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        self.inner.drop_column_family(cf)
    }

    /// Sets `key` to `value`. When it returns the write is visible; whether it is durable, `options` say.
    pub fn put(&self, options: &WriteOptions, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_cf(&self.default_cf, options, key, value)
    }

    /// [`Db::put`] in column family `cf`.
    pub fn put_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        check_sizes(key, value)?;
        self.inner.check_alive(cf)?;
        with_scratch_batch(|batch| batch.put(cf.id(), key, value), |batch| self.inner.write(options, batch))
    }

    /// Deletes `key`; that it does not exist is no error.
    pub fn delete(&self, options: &WriteOptions, key: &[u8]) -> Result<()> {
        self.delete_cf(&self.default_cf, options, key)
    }

    /// [`Db::delete`] in column family `cf`.
    pub fn delete_cf(&self, cf: &ColumnFamilyHandle, options: &WriteOptions, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        self.inner.check_alive(cf)?;
        with_scratch_batch(|batch| batch.delete(cf.id(), key), |batch| self.inner.write(options, batch))
    }

    /// Deletes the one earlier put of `key` in column family `cf`; see [`WriteBatch::single_delete`].
    pub fn single_delete_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        key: &[u8],
    ) -> Result<()> {
        check_sizes(key, &[])?;
        self.inner.check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.single_delete(cf.id(), key),
            |batch| self.inner.write(options, batch),
        )
    }

    /// Deletes every key from `begin` up to `end`, exclusive, in column family `cf`, in one write whatever the number
    /// of keys.
    ///
    /// # Errors
    /// InvalidArgument if `end` comes before `begin`.
    pub fn delete_range_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        begin: &[u8],
        end: &[u8],
    ) -> Result<()> {
        check_sizes(begin, end)?;
        self.inner.check_alive(cf)?;
        check_range(cf, begin, end)?;
        with_scratch_batch(
            |batch| batch.delete_range(cf.id(), begin, end),
            |batch| self.inner.write(options, batch),
        )
    }

    /// Sets `key` in column family `cf` to a wide-column entity: a set of named columns, (name, value) each. The column
    /// with the empty name is what readers of plain values see.
    ///
    /// # Errors
    /// InvalidArgument if a name comes twice.
    pub fn put_entity_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        key: &[u8],
        columns: &[(&[u8], &[u8])],
    ) -> Result<()> {
        self.inner.check_alive(cf)?;
        let mut batch = WriteBatch::new();
        batch.put_entity(cf.id(), key, columns)?;
        self.inner.write(options, &mut batch)
    }

    /// The columns of `key` in column family `cf`. A plain value is one column with the empty name.
    pub fn get_entity_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<WideColumns>> {
        self.inner.get_entity(cf, options, key)
    }

    /// Adds `operand` to `key` in column family `cf`.
    ///
    /// # Errors
    /// NotSupported if the column family has no merge operator; of a batch it is InvalidArgument, as in RocksDB.
    pub fn merge_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        check_sizes(key, operand)?;
        self.inner.check_alive(cf)?;
        if cf.merge_operator.is_none() {
            return Err(Error::not_supported(needs_merge_operator(cf)));
        }
        with_scratch_batch(
            |batch| batch.merge(cf.id(), key, operand),
            |batch| self.inner.write(options, batch),
        )
    }

    /// Commits `batch` atomically.
    ///
    /// # Errors
    /// InvalidArgument if it names a column family that does not exist; nothing is then written.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        self.inner.check_batch(batch)?;
        self.inner.write(options, batch)
    }

    /// The value of `key`.
    pub fn get(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<PinnedValue>> {
        self.inner.get(&self.default_cf, options, key)
    }

    /// [`Db::get`] in column family `cf`.
    pub fn get_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<PinnedValue>> {
        self.inner.get(cf, options, key)
    }

    /// The values of `keys` in column family `cf`, all as of one moment.
    pub fn multi_get_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.inner.multi_get(cf, options, keys)
    }

    /// The value of each (column family, key), all as of one moment.
    ///
    /// Source: RocksDB `DB::MultiGet` over several column families.
    pub fn multi_get_pairs(
        &self,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.inner.multi_get_pairs(options, pairs)
    }

    /// An iterator over the default column family.
    pub fn iter(&self, options: &ReadOptions) -> Result<DbIterator> {
        self.inner.iter(&self.default_cf, options)
    }

    /// An iterator over column family `cf`. It sees the moment of its creation, or `options.snapshot`.
    pub fn iter_cf(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<DbIterator> {
        self.inner.iter(cf, options)
    }

    /// An iterator over each of `column_families`, all seeing the moment of the call, or `options.snapshot`.
    ///
    /// # Errors
    /// Those of opening a table; there is then no iterator at all.
    /// Source: RocksDB `DB::NewIterators`.
    pub fn iterators(
        &self,
        column_families: &[&ColumnFamilyHandle],
        options: &ReadOptions,
    ) -> Result<Vec<DbIterator>> {
        self.inner.iterators(column_families, options)
    }

    /// A view of the database as it is now, for use in [`ReadOptions`].
    pub fn snapshot(&self) -> Snapshot {
        let now = self.inner.ctx.env.clock.now_micros() / 1_000_000;
        self.inner.snapshots.take(now, || self.inner.visible_seq())
    }

    /// The sequence number of the last write readers see.
    pub fn latest_sequence_number(&self) -> SeqNum {
        self.inner.visible_seq()
    }

    /// Seals the memtables of `column_families`, and with `wait` returns when they are in tables.
    ///
    /// # Errors
    /// ColumnFamilyDropped if one of them was dropped; what writing the tables met.
    pub fn flush(&self, column_families: &[ColumnFamilyHandle], wait: bool) -> Result<()> {
        column_families.iter().try_for_each(refuse_if_dropped)?;
        let ids: Vec<u32> = column_families.iter().map(|cf| cf.id()).collect();
        self.inner.flush(&ids, wait)
    }

    /// [`Db::compact_range_with`] under default options but for `bottommost`.
    pub fn compact_range(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        bottommost: BottommostLevelCompaction,
    ) -> Result<()> {
        let options =
            CompactRangeOptions { bottommost_level_compaction: bottommost, ..CompactRangeOptions::default() };
        self.compact_range_with(cf, begin, end, &options)
    }

    /// Compacts the user keys from `begin` to `end`, both inclusive, `None` unbounded, down to the last level that
    /// holds data of them. Returns when it is done and installed.
    ///
    /// Universal compaction merges everything, whatever the range. FIFO and `CompactionStyle::None` merge nothing on
    /// request: only memtables are flushed.
    ///
    /// # Errors
    /// What the compaction met; NotSupported or Aborted if it went well but `change_level` cannot be done.
    pub fn compact_range_with(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.inner.compact_range(cf, begin, end, options)
    }

    /// Merges the tables numbered `files` into `output_level`, with all others that must come along to keep the levels
    /// in order. Runs on this thread, and is done and installed on return.
    ///
    /// # Errors
    /// InvalidArgument if a table or the level does not exist, or a table is below the level; Aborted if a table is
    /// being compacted already or background work is paused: try again later.
    pub fn compact_files(&self, cf: &ColumnFamilyHandle, files: &[u64], output_level: usize) -> Result<()> {
        self.compact_files_with(cf, files, output_level, &CompactFilesOptions::default()).map(drop)
    }

    /// As [`Db::compact_files`], as `options` say; gives the numbers of the tables that are new on the output level.
    ///
    /// # Errors
    /// As there; Incomplete if it was canceled.
    pub fn compact_files_with(
        &self,
        cf: &ColumnFamilyHandle,
        files: &[u64],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<u64>> {
        let tables = self.inner.compact_files(cf, files, output_level, options)?;
        Ok(tables.into_iter().map(|number| number.0).collect())
    }

    /// Lets tables that overlap `begin` to `end`, both inclusive, be compacted in the background when nothing more
    /// urgent is to do. Forgotten when the database closes.
    pub fn suggest_compact_range(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.inner.suggest_compact_range(cf, begin, end)
    }

    /// Moves the tables of L0 to `target_level` without rewriting them, so that reads look at one table instead of all.
    ///
    /// # Errors
    /// NotSupported if they overlap or a level from L1 to the target is not empty; Aborted if compactions run.
    pub fn promote_l0(&self, cf: &ColumnFamilyHandle, target_level: usize) -> Result<()> {
        self.inner.move_level(cf, 0, Some(target_level))
    }

    /// Deletes the tables below L0 that lie within one of `ranges` as a whole: a fast way to free space, not a way to
    /// delete keys. What is in memtables, in L0, in tables that are being compacted or that reach out of the range
    /// stays, older versions that a deleted table hid may show again, and snapshots are not respected.
    ///
    /// Each range is (begin, end), `None` unbounded; the end belongs to it with `include_end`.
    pub fn delete_files_in_ranges(
        &self,
        cf: &ColumnFamilyHandle,
        ranges: &[UserKeyRange<'_>],
        include_end: bool,
    ) -> Result<()> {
        self.inner.delete_files_in_ranges(cf, ranges, include_end)
    }

    /// Waits until no flush or compaction runs or is due.
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        self.inner.wait_for_compact(options)
    }

    /// Keeps compactions from starting until [`Db::continue_background_work`], and waits for running ones.
    pub fn pause_background_work(&self) {
        let mut state = self.inner.state.lock();
        state.paused += 1;
        while state.running_compactions > 0 {
            self.inner.state_changed.wait(&mut state);
        }
    }

    /// Undoes one [`Db::pause_background_work`].
    pub fn continue_background_work(&self) {
        let mut state = self.inner.state.lock();
        state.paused = state.paused.saturating_sub(1);
        self.inner.background.wake(&mut state);
    }

    /// Stops background work for good: nothing starts any more. With `wait`, returns when none runs.
    pub fn cancel_all_background_work(&self, wait: bool) {
        self.inner.stop_background_work();
        if wait {
            self.inner.background.join();
        }
    }

    /// The batches written since sequence number `since`, from the WALs that are still there: for replication. Writes
    /// with `disable_wal` are not among them.
    ///
    /// # Errors
    /// NotFound if `since` is beyond the last write.
    pub fn updates_since(&self, since: SeqNum) -> Result<UpdatesSince> {
        self.inner.updates_since(since)
    }

    /// Makes every write so far durable.
    pub fn sync_wal(&self) -> Result<()> {
        self.inner.sync_wal()
    }

    /// Hands WAL records buffered under `manual_wal_flush` to the operating system; with `sync`, to the disk.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        if sync { self.inner.sync_wal() } else { self.inner.flush_wal() }
    }

    /// Names of transactions that RocksDB's two-phase commit left prepared, neither committed nor rolled back. Their
    /// writes are not visible; they are kept for whoever opens the database with a TransactionDB.
    pub fn prepared_transactions(&self) -> Vec<Vec<u8>> {
        self.inner.state.lock().prepared.names().map(<[u8]>::to_vec).collect()
    }

    /// Clears a background error and lets writes and background work go on. Errors that may pass, such as of IO or of space, are
    /// cleared by the database itself from time to time (`max_bgerror_resume_count`); this need not be called for them.
    ///
    /// Everything in memory is flushed to tables first and a new WAL started, so that what a failed WAL write
    /// left behind is never replayed over newer data. Of a write that a panic of a comparator or merge operator ended,
    /// nothing is left.
    ///
    /// # Errors
    /// The error that stops it again, if its cause persists; Corruption cannot be resumed from.
    pub fn resume(&self) -> Result<()> {
        self.inner.resume()
    }

    /// The error that stopped writes, if any.
    pub fn background_error(&self) -> Option<Error> {
        self.inner.state.lock().background_error.clone()
    }

    /// A property of column family `cf` as text; `None` if there is no such property.
    pub fn property(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<String> {
        self.inner.property(cf, name)
    }

    /// A property of column family `cf` as a number; `None` if there is no such numeric property.
    pub fn property_int(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<u64> {
        self.inner.property_int(cf, name)
    }

    /// Changes mutable options of column family `cf`, by name and text as in an OPTIONS file.
    ///
    /// # Errors
    /// InvalidArgument if one is unknown, cannot be changed, or has no such value: nothing was changed. IoError if the
    /// OPTIONS file could not be written: they are changed, and the file does not say so.
    pub fn set_options(&self, cf: &ColumnFamilyHandle, options: &[(&str, &str)]) -> Result<()> {
        self.inner.set_options(cf, options)
    }

    /// Makes `target` a database with the contents this one has now: tables are hard-linked (copied if `target` is on
    /// another file system), so it costs little space until one of the two changes. Writers wait meanwhile.
    ///
    /// Memtables are flushed first, unless all live WALs together are smaller than `log_size_for_flush` bytes: then
    /// those are copied instead. 0 always flushes.
    ///
    /// # Errors
    /// InvalidArgument if `target` exists; on any error nothing is left under its name.
    pub fn create_checkpoint(&self, target: impl AsRef<Path>, log_size_for_flush: u64) -> Result<()> {
        self.inner.create_checkpoint(target.as_ref(), log_size_for_flush)
    }

    /// Takes finished table files, made by [`crate::SstFileWriter`], into column family `cf`: atomically, durable and
    /// visible on return. They hide what was written before.
    ///
    /// # Errors
    /// InvalidArgument if a file was not made for this, has another comparator, or the options forbid what it needs;
    /// Corruption naming a damaged file. Nothing was changed then.
    pub fn ingest_external_files(
        &self,
        cf: &ColumnFamilyHandle,
        paths: &[PathBuf],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        self.inner.ingest_external_files(cf, paths, options)
    }

    /// Keeps obsolete files from being removed until [`Db::enable_file_deletions`].
    pub fn disable_file_deletions(&self) {
        self.inner.state.lock().deletions_disabled += 1;
    }

    /// Undoes one [`Db::disable_file_deletions`].
    pub fn enable_file_deletions(&self) {
        let mut state = self.inner.state.lock();
        state.deletions_disabled = state.deletions_disabled.saturating_sub(1);
        drop(state);
        self.inner.purge_obsolete_files();
    }

    /// Closes the database: flushes what is in no WAL (unless `avoid_flush_during_shutdown`), ends
    /// background work, hands the WAL to the operating system and releases the lock. Compactions that run are given up
    /// soon; what they wrote is removed and nothing is lost.
    ///
    /// In a process that was forked from the one that opened the database nothing is done but that: files, lock and threads are
    /// the parent's.
    ///
    /// # Errors
    /// What could not be flushed or written is then lost if it is in no WAL. The database is closed anyway.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }
}

fn check_range(cf: &ColumnFamily, begin: &[u8], end: &[u8]) -> Result<()> {
    if cf.comparator.compare(begin, end).is_gt() {
        return Err(Error::invalid_argument("end key comes before start key"));
    }
    Ok(())
}

impl Drop for Db {
    fn drop(&mut self) {
        if self.inner.ctx.is_forked() {
            // Nothing of it is dropped: locks may be held by threads that are not here, and files are the parent's.
            std::mem::forget(self.inner.clone());
        } else if let Err(error) = self.inner.close() {
            log_line!(self.inner.ctx, "closing failed: {error}");
        }
    }
}

fn needs_merge_operator(cf: &ColumnFamilyHandle) -> String {
    format!("merge needs a merge_operator, and column family {} has none", cf.name())
}

/// What is asked of a column family itself, not of its rows, fails in a class of its own.
pub(crate) fn refuse_if_dropped(cf: &ColumnFamilyHandle) -> Result<()> {
    match cf.is_dropped() {
        true => Err(Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string())),
        false => Ok(()),
    }
}

impl DbInner {
    /// The last sequence number readers see.
    #[inline]
    pub(crate) fn visible_seq(&self) -> SeqNum {
        // Acquire: pairs with the Release in lead(); what it publishes is in the memtables.
        SeqNum(self.visible_seq.load(Ordering::Acquire))
    }

    /// The WAL being written.
    pub(crate) fn current_wal_number(&self) -> u64 {
        self.current_wal.load(Ordering::Relaxed)
    }

    /// True if a batch can span column families.
    pub(crate) fn has_several_column_families(&self) -> bool {
        self.state.lock().column_families.len() > 1
    }

    #[inline]
    fn check_alive(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        if cf.is_dropped() {
            return Err(Error::invalid_argument(format!("column family {} was dropped", cf.name())));
        }
        Ok(())
    }

    fn check_merge(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        if cf.merge_operator.is_none() {
            return Err(Error::invalid_argument(needs_merge_operator(cf)));
        }
        Ok(())
    }

    /// Checks that every column family a batch names exists and can take its records.
    fn check_batch(&self, batch: &WriteBatch) -> Result<()> {
        let registry = self.registry.load();
        for record in batch.iter() {
            let record = record?;
            let Some(cf) = registry.get(&record.cf).filter(|cf| !cf.is_dropped()) else {
                return Err(Error::invalid_argument(format!(
                    "the write batch names column family {}, which does not exist",
                    record.cf
                )));
            };
            match record.op {
                Op::Merge { .. } => self.check_merge(cf)?,
                Op::DeleteRange { begin, end } => check_range(cf, begin, end)?,
                Op::PutEntity { entity, .. } => {
                    wide_columns::decode(entity)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets go of a view. If it is the last to hold memtables and tables, a background thread drops it: unmapping and
    /// unlinking take milliseconds.
    pub(crate) fn release_view(&self, view: Arc<SuperVersion>) {
        if Arc::strong_count(&view) == 1 && self.background.is_running() {
            let mut state = self.state.lock();
            state.released.push(view);
            state.purge_wanted = true;
            self.background.wake(&mut state);
        }
    }

    /// Seals the memtables of `ids`; with `wait`, returns when they are in tables.
    pub(crate) fn flush(&self, ids: &[u32], wait: bool) -> Result<()> {
        let mut ids = ids.to_vec();
        {
            let mut core = self.write_core.lock();
            if self.write_refused.load(Ordering::Relaxed)
                && let Some(error) = &self.state.lock().background_error
            {
                return Err(error.clone());
            }
            if self.ctx.options.atomic_flush && !ids.is_empty() {
                // Those that are named may have nothing to write, and the others have.
                ids = core.targets.ids();
            }
            self.seal(&mut core, &ids)?;
        }
        self.request_flush(&ids);
        if wait { self.wait_for_flush(&ids) } else { Ok(()) }
    }

    pub(crate) fn request_flush(&self, ids: &[u32]) {
        let mut state = self.state.lock();
        for id in ids {
            if let Some(cf) = state.column_families.get_mut(id) {
                cf.flush_requested |= !cf.sealed.is_empty();
            }
        }
        self.background.wake(&mut state);
    }

    /// Waits until the memtables sealed now are in tables.
    pub(crate) fn wait_for_flush(&self, ids: &[u32]) -> Result<()> {
        let mut state = self.state.lock();
        let newest: Vec<_> = ids
            .iter()
            .filter_map(|id| Some((*id, state.column_families.get(id)?.sealed.last()?.memtable.clone())))
            .collect();
        loop {
            let waiting = newest.iter().any(|(id, memtable)| {
                state
                    .column_families
                    .get(id)
                    .is_some_and(|cf| cf.sealed.iter().any(|s| Arc::ptr_eq(&s.memtable, memtable)))
            });
            if !waiting {
                return Ok(());
            }
            self.check_still_working(&state)?;
            self.state_changed.wait(&mut state);
        }
    }

    fn check_still_working(&self, state: &DbState) -> Result<()> {
        if let Some(error) = &state.background_error {
            return Err(error.clone());
        }
        if state.shutting_down { Err(closing_error()) } else { Ok(()) }
    }

    fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        let clock = &self.ctx.env.clock;
        let deadline = options.timeout.map(|timeout| clock.monotonic_nanos() + timeout.as_nanos() as u64);
        if options.flush {
            let ids: Vec<u32> = self.registry.load().keys().copied().collect();
            self.flush(&ids, false)?;
        }
        let mut state = self.state.lock();
        while state.has_work() {
            self.check_still_working(&state)?;
            if state.paused > 0 && options.abort_on_pause {
                return Err(Error::new(ErrorKind::Aborted, "background work is paused"));
            }
            match deadline {
                None => self.state_changed.wait(&mut state),
                Some(deadline) => {
                    let now = clock.monotonic_nanos();
                    if now >= deadline {
                        return Err(Error::new(ErrorKind::TimedOut, "waiting for compaction"));
                    }
                    self.state_changed.wait_for(&mut state, Duration::from_nanos(deadline - now));
                }
            }
        }
        self.check_still_working(&state)
    }
}

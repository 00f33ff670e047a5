//! The database: public methods, each a few lines that hand over to a walk.

use crate::batch::codec::{Op, WriteBatch, check_sizes};
use crate::batch::scratch::with_scratch_batch;
use crate::column_family::{ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::compaction::manual;
use crate::compaction::manual_request::{BottommostLevelCompaction, CompactRangeOptions};
use crate::compaction::requests::{self, CompactFilesOptions, UserKeyRange};
use crate::core::Core;
use crate::features::ingest::{self, IngestExternalFileOptions};
use crate::features::read_only::{self, Secondary};
use crate::features::updates::{self, UpdatesSince};
use crate::features::waiting::{self, WaitForCompactOptions};
use crate::features::{checkpoint, column_families};
use crate::info_log::log_line;
use crate::obsolete_files::purge_obsolete_files;
use crate::options_file;
use crate::properties;
use crate::read::iter::DbIterator;
use crate::read::options::ReadOptions;
use crate::read::value::{PinnedValue, WideColumns};
use crate::read::view::ReadView;
use crate::read::{get, multi_get, one_moment};
use crate::snapshots::Snapshot;
use crate::stopping;
use crate::superversion::SuperVersion;
use crate::write::options::WriteOptions;
use outcrop_base::{Error, ErrorKind, Result, SeqNum, wide_columns};
use outcrop_env::Env;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_options::DbOptions;
use outcrop_options::file::LoadedOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open database. All methods may be called from any number of threads. Dropping it closes it.
pub struct Db {
    core: Arc<Core>,
    default_cf: ColumnFamilyHandle,
    /// Given if it can follow a primary.
    secondary: Option<Secondary>,
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
        let core = crate::open::open(path.as_ref(), options, env, column_families)?;
        Ok(Db::new(core, None))
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
        Ok(Db::new(opened.0, None))
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
        let (core, secondary) = read_only::open(path.as_ref(), options, env, column_families, false)?;
        Ok(Db::new(core, Some(secondary)))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn new(core: Arc<Core>, secondary: Option<Secondary>) -> Db {
        let default_cf = core.column_family(0).expect("the default column family exists");
        Db { core, default_cf, secondary }
    }

    /// The sequence number that a read sees. Asked for after the view of the column family was taken: a flush in between could
    /// otherwise drop what this number must see.
    #[inline]
    fn seq(&self, options: &ReadOptions) -> SeqNum {
        options.snapshot.unwrap_or_else(|| self.core.versions.visible_seq())
    }

    #[inline]
    fn view<'v>(
        &'v self,
        cf: &'v ColumnFamily,
        sources: &'v SuperVersion,
        options: &ReadOptions,
    ) -> ReadView<'v> {
        let (tables, seq) = (&*self.core.ctx.tables, self.seq(options));
        ReadView { tables, cf, sources, seq, fill_cache: options.fill_cache() }
    }

    /// Shows readers what the primary has written since this was opened or called last. Iterators and values in use
    /// stay as they are.
    ///
    /// # Errors
    /// NotSupported if this was not opened by [`Db::open_as_secondary`]; otherwise those of [`Db::open`], and
    /// readers go on with what they have.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        match &self.secondary {
            Some(secondary) => read_only::catch_up(&self.core, secondary),
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
        self.core.registry.load().values().find(|cf| cf.name() == name && !cf.is_dropped()).cloned()
    }

    /// All open column families, in the order they were created.
    pub fn column_families(&self) -> Vec<ColumnFamilyHandle> {
        self.core.registry.load().values().cloned().collect()
    }

    /// Creates a column family. On return it is in the MANIFEST and survives a crash.
    ///
    /// # Errors
    /// InvalidArgument if one of that name exists. If the MANIFEST cannot be written, the column family does not exist and
    /// writes are refused until [`Db::resume`]; only after a crash before that it may be there.
    pub fn create_column_family(&self, descriptor: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
        column_families::create(&self.core, descriptor)
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
        column_families::drop_family(&self.core, cf)
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
        check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.put(cf.id(), key, value),
            |batch| self.core.commit.write(options, batch),
        )
    }

    /// Deletes `key`; that it does not exist is no error.
    pub fn delete(&self, options: &WriteOptions, key: &[u8]) -> Result<()> {
        self.delete_cf(&self.default_cf, options, key)
    }

    /// [`Db::delete`] in column family `cf`.
    pub fn delete_cf(&self, cf: &ColumnFamilyHandle, options: &WriteOptions, key: &[u8]) -> Result<()> {
        check_sizes(key, &[])?;
        check_alive(cf)?;
        with_scratch_batch(|batch| batch.delete(cf.id(), key), |batch| self.core.commit.write(options, batch))
    }

    /// Deletes the one earlier put of `key` in column family `cf`; see [`WriteBatch::single_delete`].
    pub fn single_delete_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &WriteOptions,
        key: &[u8],
    ) -> Result<()> {
        check_sizes(key, &[])?;
        check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.single_delete(cf.id(), key),
            |batch| self.core.commit.write(options, batch),
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
        check_alive(cf)?;
        check_range(cf, begin, end)?;
        with_scratch_batch(
            |batch| batch.delete_range(cf.id(), begin, end),
            |batch| self.core.commit.write(options, batch),
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
        check_alive(cf)?;
        let mut batch = WriteBatch::new();
        batch.put_entity(cf.id(), key, columns)?;
        self.core.commit.write(options, &mut batch)
    }

    /// The columns of `key` in column family `cf`. A plain value is one column with the empty name.
    pub fn get_entity_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<WideColumns>> {
        let sources = cf.superversion.load();
        get::get_entity(&self.view(cf, &sources, options), key)
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
        check_alive(cf)?;
        if cf.merge_operator.is_none() {
            return Err(Error::not_supported(needs_merge_operator(cf)));
        }
        with_scratch_batch(
            |batch| batch.merge(cf.id(), key, operand),
            |batch| self.core.commit.write(options, batch),
        )
    }

    /// Commits `batch` atomically.
    ///
    /// # Errors
    /// InvalidArgument if it names a column family that does not exist; nothing is then written.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<()> {
        check_batch(&self.core, batch)?;
        self.core.commit.write(options, batch)
    }

    /// Commits `batch` atomically, if `admit` lets it in: that is asked when no other write can come between, with the
    /// sequence number of the last write, and before anything of the batch is written. It may read the database, and must
    /// not write to it; other writers wait for it.
    ///
    /// # Errors
    /// As [`Db::write`]; what `admit` says. Nothing is then written.
    ///
    /// Source: RocksDB `DB::WriteWithCallback`.
    pub fn write_if(
        &self,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        admit: impl FnOnce(SeqNum) -> Result<()>,
    ) -> Result<()> {
        check_batch(&self.core, batch)?;
        self.core.commit.write_if(options, batch, |group| admit(group.last_seq))
    }

    /// The value of `key`.
    pub fn get(&self, options: &ReadOptions, key: &[u8]) -> Result<Option<PinnedValue>> {
        self.get_cf(&self.default_cf, options, key)
    }

    /// [`Db::get`] in column family `cf`.
    pub fn get_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        key: &[u8],
    ) -> Result<Option<PinnedValue>> {
        {
            let sources = cf.superversion.load();
            get::get(&self.view(cf, &sources, options), key)
        }
    }

    /// The values of `keys` in column family `cf`, all as of one moment.
    pub fn multi_get_cf(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<PinnedValue>>> {
        {
            let sources = cf.superversion.load();
            multi_get::multi_get(&self.view(cf, &sources, options), keys)
        }
    }

    /// The value of each (column family, key), all as of one moment.
    ///
    /// Source: RocksDB `DB::MultiGet` over several column families.
    pub fn multi_get_pairs(
        &self,
        options: &ReadOptions,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        one_moment::multi_get_pairs(&self.core.versions, options, pairs)
    }

    /// An iterator over the default column family.
    pub fn iter(&self, options: &ReadOptions) -> Result<DbIterator> {
        self.iter_cf(&self.default_cf, options)
    }

    /// An iterator over column family `cf`. It sees the moment of its creation, or `options.snapshot`.
    pub fn iter_cf(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<DbIterator> {
        {
            let view = cf.superversion.load_full();
            DbIterator::new(&self.core.ctx, view, self.seq(options), cf, options)
        }
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
        one_moment::iterators(&self.core.versions, column_families, options)
    }

    /// A view of the database as it is now, for use in [`ReadOptions`].
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// The sequence number of the last write readers see.
    pub fn latest_sequence_number(&self) -> SeqNum {
        self.core.versions.visible_seq()
    }

    /// Seals the memtables of `column_families`, and with `wait` returns when they are in tables.
    ///
    /// # Errors
    /// ColumnFamilyDropped if one of them was dropped; what writing the tables met.
    pub fn flush(&self, column_families: &[ColumnFamilyHandle], wait: bool) -> Result<()> {
        column_families.iter().try_for_each(|cf| cf.refuse_if_dropped())?;
        let ids: Vec<u32> = column_families.iter().map(|cf| cf.id()).collect();
        self.core.commit.flush(&ids, wait)
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
    /// What the compaction met; Incomplete if manual compactions are disabled; NotSupported or Aborted if it went well but
    /// `change_level` cannot be done.
    pub fn compact_range_with(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        manual::compact_range(&self.core, cf, begin, end, options)
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
        let tables = requests::compact_files(&self.core.jobs, cf, files, output_level, options)?;
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
        requests::suggest_compact_range(&self.core.jobs, cf, begin, end)
    }

    /// Moves the tables of L0 to `target_level` without rewriting them, so that reads look at one table instead of all.
    ///
    /// # Errors
    /// NotSupported if they overlap or a level from L1 to the target is not empty; Aborted if compactions run.
    pub fn promote_l0(&self, cf: &ColumnFamilyHandle, target_level: usize) -> Result<()> {
        requests::move_level(&self.core.jobs, cf, 0, Some(target_level))
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
        requests::delete_files_in_ranges(&self.core.jobs, cf, ranges, include_end)
    }

    /// Waits until no flush or compaction runs or is due.
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        waiting::wait_for_compact(&self.core, options)
    }

    /// Keeps compactions from starting until [`Db::continue_background_work`], and waits for running ones.
    pub fn pause_background_work(&self) {
        let mut state = self.core.versions.state.lock();
        state.paused += 1;
        while state.running_compactions > 0 {
            self.core.versions.state_changed.wait(&mut state);
        }
    }

    /// Undoes one [`Db::pause_background_work`].
    pub fn continue_background_work(&self) {
        let mut state = self.core.versions.state.lock();
        state.paused = state.paused.saturating_sub(1);
        self.core.versions.wake(&mut state);
    }

    /// Lets no [`Db::compact_range_with`] start until [`Db::enable_manual_compaction`]; those that wait or run end with
    /// Incomplete, and this returns when they have. What their jobs installed stays. Calls are counted.
    ///
    /// Source: RocksDB `DB::DisableManualCompaction`.
    pub fn disable_manual_compaction(&self) {
        manual::disable(&self.core.versions);
    }

    /// Undoes one [`Db::disable_manual_compaction`].
    pub fn enable_manual_compaction(&self) {
        manual::enable(&self.core.versions);
    }

    /// Stops background work for good: nothing starts any more. With `wait`, returns when none runs.
    pub fn cancel_all_background_work(&self, wait: bool) {
        stopping::stop_background_work(&self.core);
        if wait {
            self.core.ctx.background.leave();
        }
    }

    /// The batches written since sequence number `since`, from the WALs that are still there: for replication. Writes
    /// with `disable_wal` are not among them.
    ///
    /// # Errors
    /// NotFound if `since` is beyond the last write.
    pub fn updates_since(&self, since: SeqNum) -> Result<UpdatesSince> {
        updates::updates_since(&self.core.versions, since)
    }

    /// Makes every write so far durable.
    pub fn sync_wal(&self) -> Result<()> {
        self.core.commit.sync_wal()
    }

    /// Hands WAL records buffered under `manual_wal_flush` to the operating system; with `sync`, to the disk.
    pub fn flush_wal(&self, sync: bool) -> Result<()> {
        if sync { self.core.commit.sync_wal() } else { self.core.commit.flush_wal() }
    }

    /// Names of transactions that RocksDB's two-phase commit left prepared, neither committed nor rolled back. Their
    /// writes are not visible; they are kept for whoever opens the database with a TransactionDB.
    pub fn prepared_transactions(&self) -> Vec<Vec<u8>> {
        self.core.versions.state.lock().prepared.names().map(<[u8]>::to_vec).collect()
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
        stopping::resume(&self.core)
    }

    /// The error that stopped writes, if any.
    pub fn background_error(&self) -> Option<Error> {
        self.core.versions.state.lock().background_error.clone()
    }

    /// A property of column family `cf` as text; `None` if there is no such property.
    pub fn property(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<String> {
        properties::property(&self.core, cf, name)
    }

    /// A property of column family `cf` as a number; `None` if there is no such numeric property.
    pub fn property_int(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<u64> {
        properties::property_int(&self.core, cf, name)
    }

    /// Changes mutable options of column family `cf`, by name and text as in an OPTIONS file.
    ///
    /// # Errors
    /// InvalidArgument if one is unknown, cannot be changed, or has no such value: nothing was changed. IoError if the
    /// OPTIONS file could not be written: they are changed, and the file does not say so.
    pub fn set_options(&self, cf: &ColumnFamilyHandle, options: &[(&str, &str)]) -> Result<()> {
        options_file::set_options(&self.core, cf, options)
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
        checkpoint::create(&self.core, target.as_ref(), log_size_for_flush)
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
        ingest::ingest(&self.core, cf, paths, options)
    }

    /// Keeps obsolete files from being removed until [`Db::enable_file_deletions`].
    pub fn disable_file_deletions(&self) {
        self.core.versions.state.lock().deletions_disabled += 1;
    }

    /// Undoes one [`Db::disable_file_deletions`].
    pub fn enable_file_deletions(&self) {
        let mut state = self.core.versions.state.lock();
        state.deletions_disabled = state.deletions_disabled.saturating_sub(1);
        drop(state);
        purge_obsolete_files(&self.core.jobs);
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
        stopping::close(&self.core)
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
        if self.core.ctx.is_forked() {
            // Nothing of it is dropped: locks may be held by threads that are not here, and files are the parent's.
            std::mem::forget(self.core.clone());
        } else if let Err(error) = stopping::close(&self.core) {
            log_line!(self.core.ctx, "closing failed: {error}");
        }
    }
}

fn needs_merge_operator(cf: &ColumnFamilyHandle) -> String {
    format!("merge needs a merge_operator, and column family {} has none", cf.name())
}

#[inline]
fn check_alive(cf: &ColumnFamilyHandle) -> Result<()> {
    if cf.is_dropped() {
        return Err(Error::invalid_argument(format!("column family {} was dropped", cf.name())));
    }
    Ok(())
}

fn check_merge(cf: &ColumnFamilyHandle) -> Result<()> {
    if cf.merge_operator.is_none() {
        return Err(Error::invalid_argument(needs_merge_operator(cf)));
    }
    Ok(())
}

/// Checks that every column family a batch names exists and can take its records.
pub(crate) fn check_batch(core: &Core, batch: &WriteBatch) -> Result<()> {
    let registry = core.registry.load();
    for record in batch.iter() {
        let record = record?;
        let Some(cf) = registry.get(&record.cf).filter(|cf| !cf.is_dropped()) else {
            return Err(Error::invalid_argument(format!(
                "the write batch names column family {}, which does not exist",
                record.cf
            )));
        };
        match record.op {
            Op::Merge { .. } => check_merge(cf)?,
            Op::DeleteRange { begin, end } => check_range(cf, begin, end)?,
            Op::PutEntity { entity, .. } => {
                wide_columns::decode(entity)?;
            }
            _ => {}
        }
    }
    Ok(())
}

//! Maintenance: flushes, compactions, background work, WALs, options, checkpoints, ingestion.

use super::Db;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::compaction::manual;
use crate::compaction::manual_request::CompactRangeOptions;
use crate::compaction::requests::{self, CompactFilesOptions, RangeEnd, UserKeyRange};
use crate::events::info::CompactionJobInfo;
use crate::events::reasons::FlushReason;
use crate::features::checkpoint;
use crate::features::db_options;
use crate::features::export_import::{self, ExportedColumnFamily, ImportColumnFamilyOptions};
use crate::features::ingest::{self, Candidate, IngestExternalFileOptions};
use crate::features::updates::{self, UpdatesSince};
use crate::features::waiting::{self, Wait, WaitForCompactOptions};
use crate::features::wal_files::{self, WalFile};
use crate::jobs::{OnJob, refuse_on_job};
use crate::obsolete_files::purge_obsolete_files_now;
use crate::options_file;
use crate::properties;
use crate::property_maps;
use crate::sst_file_writer::ExternalFileInfo;
use crate::stopping;
use outcrop_base::{CfId, Error, Result, SeqNum};
use outcrop_options::DbOptions;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// # Maintenance
///
/// A database flushes, compacts and cleans up by itself; these are for callers that want it now, not now, or otherwise. `_cf` and `_with` forms
/// are as for reads and writes; of a column family of another database they fail with InvalidArgument.
impl Db {
    /// Writes what is in memory of the default column family to a table, and returns when it is there: those writes no longer need the WAL.
    ///
    /// # Errors
    /// The error that writing the table met, or an earlier failure that stopped writes: see [`Db::resume`].
    /// ShutdownInProgress.
    pub fn flush(&self) -> Result<()> {
        self.flush_cf(&self.default_cf)
    }

    /// [`Db::flush`] of column family `cf`.
    ///
    /// # Errors
    /// ColumnFamilyDropped if it was dropped; those of [`Db::flush`].
    pub fn flush_cf(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        self.flush_cfs(std::slice::from_ref(cf), Wait::UntilDone)
    }

    /// Seals the memtables of `column_families`, at one moment, and returns at once or when they are in tables.
    ///
    /// # Errors
    /// ColumnFamilyDropped if one of them was dropped; those of [`Db::flush`], as far as they are known on return.
    pub fn flush_cfs(&self, column_families: &[ColumnFamilyHandle], wait: Wait) -> Result<()> {
        column_families.iter().try_for_each(|cf| self.core.ctx.check_owns(cf))?;
        column_families.iter().try_for_each(|cf| cf.refuse_if_dropped())?;
        let ids: Vec<CfId> = column_families.iter().map(|cf| cf.id()).collect();
        self.core.commit.flush(&ids, FlushReason::ManualFlush, wait != Wait::No)?;
        if wait == Wait::UntilTold {
            self.core.versions.wait_for_told_flushes(&ids);
        }
        Ok(())
    }

    /// Compacts the user keys from `begin` to `end` of the default column family under default options:
    /// [`Db::compact_range_cf_with`].
    ///
    /// # Errors
    /// As there.
    pub fn compact_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.compact_range_cf(&self.default_cf, begin, end)
    }

    /// [`Db::compact_range`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn compact_range_cf(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.compact_range_cf_with(cf, begin, end, &CompactRangeOptions::default())
    }

    /// [`Db::compact_range`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn compact_range_with(
        &self,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        self.compact_range_cf_with(&self.default_cf, begin, end, options)
    }

    /// Compacts the user keys of `cf` from `begin` to `end`, both inclusive, `None` unbounded, down to the last level that
    /// holds data of them. Returns when it is done and installed.
    ///
    /// Universal compaction merges everything, whatever the range. FIFO and `CompactionStyle::None` merge nothing on
    /// request: only memtables are flushed.
    ///
    /// # Errors
    /// The error that the compaction met; Incomplete if manual compactions are disabled; NotSupported or Aborted if
    /// it went well but `change_level` cannot be done.
    pub fn compact_range_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) -> Result<()> {
        manual::compact_range(&self.core, cf, begin, end, options, None)
    }

    /// [`Db::compact_range_cf_with`], which ends once `canceled` is set: between two entries that a compaction reads, or within a
    /// fiftieth of a second where it waits for its turn. Tables that were installed until then stay. [`Db::disable_manual_compaction`] sets
    /// it, too.
    ///
    /// # Errors
    /// As there; Incomplete once it is set, also if it was before.
    ///
    /// ```
    /// # use outcrop::{CompactRangeOptions, Db, Env, ErrorKind};
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
    /// let canceled = Arc::new(AtomicBool::new(false));
    /// let (cf, options) = (db.default_column_family(), CompactRangeOptions::default());
    /// db.compact_range_cf_until(cf, None, None, &options, &canceled)?;
    /// canceled.store(true, Ordering::Relaxed);
    /// let ended = db.compact_range_cf_until(cf, None, None, &options, &canceled);
    /// assert_eq!(ended.unwrap_err().kind(), ErrorKind::Incomplete);
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn compact_range_cf_until(
        &self,
        cf: &ColumnFamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
        canceled: &Arc<AtomicBool>,
    ) -> Result<()> {
        manual::compact_range(&self.core, cf, begin, end, options, Some(canceled))
    }

    /// Merges the tables numbered `files` into `output_level`, with all others that must come along to keep the levels
    /// in order. Runs on this thread, and is done and installed on return. Gives the numbers of the tables that are new on the
    /// output level.
    ///
    /// # Errors
    /// InvalidArgument if a table or the level does not exist, or a table is below the level; Aborted if a table is
    /// being compacted already or background work is paused: try again later.
    pub fn compact_files(&self, files: &[u64], output_level: usize) -> Result<Vec<u64>> {
        self.compact_files_cf(&self.default_cf, files, output_level)
    }

    /// [`Db::compact_files`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn compact_files_cf(
        &self,
        cf: &ColumnFamilyHandle,
        files: &[u64],
        output_level: usize,
    ) -> Result<Vec<u64>> {
        self.compact_files_cf_with(cf, files, output_level, &CompactFilesOptions::default())
    }

    /// [`Db::compact_files`] under `options`.
    ///
    /// # Errors
    /// As there; Incomplete if it was canceled.
    pub fn compact_files_with(
        &self,
        files: &[u64],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<u64>> {
        self.compact_files_cf_with(&self.default_cf, files, output_level, options)
    }

    /// [`Db::compact_files`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there; Incomplete if it was canceled.
    pub fn compact_files_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        files: &[u64],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<Vec<u64>> {
        let ran = requests::compact_files(&self.core.jobs, cf, files, output_level, options, false)?;
        Ok(ran.tables.into_iter().map(|number| number.0).collect())
    }

    /// [`Db::compact_files_cf_with`], with all that a listener is told of a compaction. Its `output_file_infos` name the new tables.
    ///
    /// # Errors
    /// As there.
    pub fn compact_files_cf_telling(
        &self,
        cf: &ColumnFamilyHandle,
        files: &[u64],
        output_level: usize,
        options: &CompactFilesOptions,
    ) -> Result<CompactionJobInfo> {
        let ran = requests::compact_files(&self.core.jobs, cf, files, output_level, options, true)?;
        Ok(ran.info.unwrap_or_default())
    }

    /// Lets tables that overlap `begin` to `end`, both inclusive, be compacted in the background when nothing more
    /// urgent is to do. Forgotten when the database closes.
    ///
    /// # Errors
    /// NotSupported if the database was opened to be read; ColumnFamilyDropped.
    pub fn suggest_compact_range(&self, begin: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.suggest_compact_range_cf(&self.default_cf, begin, end)
    }

    /// [`Db::suggest_compact_range`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn suggest_compact_range_cf(
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
    pub fn promote_l0(&self, target_level: usize) -> Result<()> {
        self.promote_l0_cf(&self.default_cf, target_level)
    }

    /// [`Db::promote_l0`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn promote_l0_cf(&self, cf: &ColumnFamilyHandle, target_level: usize) -> Result<()> {
        requests::move_level(&self.core.jobs, cf, 0, Some(target_level))
    }

    /// Deletes the tables below L0 that lie within one of `ranges` as a whole: a fast way to free space, not a way to
    /// delete keys. Entries in memtables, in L0, in tables that are being compacted or that reach out of the range
    /// stay, older versions that a deleted table hid may show again, and snapshots are not respected.
    ///
    /// Each range is (begin, end), `None` unbounded.
    ///
    /// # Errors
    /// NotSupported if the database was opened to be read; ColumnFamilyDropped; the error of writing the MANIFEST.
    pub fn delete_files_in_ranges(&self, ranges: &[UserKeyRange<'_>], range_end: RangeEnd) -> Result<()> {
        self.delete_files_in_ranges_cf(&self.default_cf, ranges, range_end)
    }

    /// [`Db::delete_files_in_ranges`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn delete_files_in_ranges_cf(
        &self,
        cf: &ColumnFamilyHandle,
        ranges: &[UserKeyRange<'_>],
        range_end: RangeEnd,
    ) -> Result<()> {
        requests::delete_files_in_ranges(&self.core.jobs, cf, ranges, range_end)
    }

    /// Waits until no flush or compaction runs or is due, and obsolete files that no reader holds are removed.
    ///
    /// # Errors
    /// The error that stopped background work; Aborted, TimedOut as `options` say; ShutdownInProgress.
    pub fn wait_for_compact(&self, options: &WaitForCompactOptions) -> Result<()> {
        waiting::wait_for_compact(&self.core, options)?;
        if options.close_db { stopping::close(&self.core) } else { Ok(()) }
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
    /// Incomplete, and this returns when they have. Outputs that their jobs installed stay. Calls are counted.
    ///
    /// Source: RocksDB `DB::DisableManualCompaction`.
    pub fn disable_manual_compaction(&self) {
        manual::disable(&self.core.versions);
    }

    /// Undoes one [`Db::disable_manual_compaction`].
    pub fn enable_manual_compaction(&self) {
        manual::enable(&self.core.versions);
    }

    /// Stops background work for good: flushes what is in no WAL (unless `avoid_flush_during_shutdown`), and nothing starts any more.
    /// Returns then, or when none runs. If that flush fails, [`Db::close`] has the error.
    ///
    /// Source: RocksDB `CancelAllBackgroundWork`.
    pub fn cancel_all_background_work(&self, wait: Wait) {
        stopping::cancel_background_work(&self.core);
        if wait != Wait::No {
            self.core.ctx.background.leave();
        }
    }

    /// The batches written since sequence number `since`, from the WALs that are still there: for replication. Writes
    /// with `disable_wal` are not among them. At the first transaction of two phases they end: [`UpdatesSince::next_batch`].
    ///
    /// # Errors
    /// NotFound if `since` is beyond the last write.
    pub fn updates_since(&self, since: SeqNum) -> Result<UpdatesSince> {
        updates::updates_since(&self.core.versions, since)
    }

    /// The WAL files that have records, oldest first, those of the archive included: [`Db::updates_since`] reads these.
    ///
    /// # Errors
    /// IoError, Corruption naming the file.
    pub fn wal_files(&self) -> Result<Vec<WalFile>> {
        wal_files::list(&self.core)
    }

    /// The WAL file that is being written. Its first sequence number is not looked for.
    ///
    /// # Errors
    /// NotSupported if the database was opened to be read.
    pub fn current_wal_file(&self) -> Result<WalFile> {
        self.core.versions.refuse_if_read_only()?;
        Ok(wal_files::current(&self.core))
    }

    /// Makes every write so far durable that is not `disable_wal`, also where a background error that has nothing to do with the
    /// WAL, such as one of a compaction, refuses further writes.
    ///
    /// # Errors
    /// The error that writing or syncing the WAL met: writes are then refused until [`Db::resume`]. NotSupported if
    /// the database is read only.
    pub fn sync_wal(&self) -> Result<()> {
        self.core.commit.sync_wal()
    }

    /// Hands WAL records buffered under `manual_wal_flush` to the operating system: they survive a crash of the process.
    ///
    /// # Errors
    /// As [`Db::sync_wal`].
    pub fn flush_wal(&self) -> Result<()> {
        self.core.commit.flush_wal()
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
    /// The error that stops it again, if its cause persists; Corruption cannot be resumed from. Busy: a listener called this on a thread that
    /// does a job of this database or resumes it, which this would wait for.
    pub fn resume(&self) -> Result<()> {
        refuse_on_job(&self.core.ctx, "resume")?;
        let _on_job = OnJob::of(&self.core.ctx);
        stopping::resume(&self.core)
    }

    /// The error that stopped writes, if any.
    pub fn background_error(&self) -> Option<Error> {
        self.core.versions.state.lock().background_error.clone()
    }

    /// A property of the default column family as text, by RocksDB's name for it; `None` if there is no such property.
    pub fn property(&self, name: &str) -> Option<String> {
        self.property_cf(&self.default_cf, name)
    }

    /// [`Db::property`] in column family `cf`; `None` also if that is of another database.
    pub fn property_cf(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<String> {
        properties::property(&self.core, cf, name)
    }

    /// A property of the default column family as names and texts, in the order of the names; `None` if RocksDB has no such form of it.
    /// Asking for it begins no interval of `rocksdb.cfstats` and `rocksdb.dbstats`.
    ///
    /// ```
    /// # let db = outcrop::Db::builder("/db").env(outcrop::Env::memory()).create_if_missing(true).open()?;
    /// db.put("apple", "red")?;
    /// db.flush()?;
    /// let tables = db.property_map("rocksdb.aggregated-table-properties").expect("it is a map");
    /// assert_eq!(tables["num_entries"], "1");
    /// assert!(db.property_map("rocksdb.sstables").is_none(), "that is a text alone");
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// Source: RocksDB `include/rocksdb/db.h`, `GetMapProperty`.
    pub fn property_map(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.property_map_cf(&self.default_cf, name)
    }

    /// [`Db::property_map`] in column family `cf`; `None` also if that is of another database.
    pub fn property_map_cf(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<BTreeMap<String, String>> {
        property_maps::property_map(&self.core, cf, name)
    }

    /// A property of the default column family as a number; `None` if there is no such numeric property.
    pub fn property_int(&self, name: &str) -> Option<u64> {
        self.property_int_cf(&self.default_cf, name)
    }

    /// [`Db::property_int`] in column family `cf`; `None` also if that is of another database.
    pub fn property_int_cf(&self, cf: &ColumnFamilyHandle, name: &str) -> Option<u64> {
        properties::property_int(&self.core, cf, name)
    }

    /// Changes mutable options of the default column family, by name and text as in an OPTIONS file.
    ///
    /// # Errors
    /// InvalidArgument if one is unknown, cannot be changed, or has no such value: nothing was changed. IoError if the
    /// OPTIONS file could not be written: they are changed, and the file does not say so.
    pub fn set_options(&self, options: &[(&str, &str)]) -> Result<()> {
        self.set_options_cf(&self.default_cf, options)
    }

    /// Changes mutable options of the database as a whole, by name and text as in an OPTIONS file: `max_background_jobs`,
    /// `max_total_wal_size`, `bytes_per_sync` and others. They count from the next job, file or write on. As in RocksDB a
    /// `bytes_per_sync` of 0 becomes 1 MiB.
    ///
    /// # Errors
    /// NotFound if one is unknown or cannot change, InvalidArgument if it has no such value or none is given: nothing was changed.
    /// IoError if the OPTIONS file could not be written: they are changed, and the file does not say so.
    pub fn set_db_options(&self, options: &[(&str, &str)]) -> Result<()> {
        db_options::set(&self.core, options)
    }

    /// The options of the database as a whole, as they are now.
    pub fn db_options(&self) -> Arc<DbOptions> {
        self.core.ctx.live.load_full()
    }

    /// [`Db::set_options`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn set_options_cf(&self, cf: &ColumnFamilyHandle, options: &[(&str, &str)]) -> Result<()> {
        let changed = options_file::set_options(&self.core, cf, options);
        self.core.ctx.tell_stalls();
        changed
    }

    /// Makes the directory `target` a database with the contents this one has now: [`Db::create_checkpoint_with`], memtables flushed.
    ///
    /// # Errors
    /// As there.
    pub fn create_checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.create_checkpoint_with(target, 0)
    }

    /// Makes the directory `target` a database with the contents this one has now: tables are hard-linked (copied if `target` is on
    /// another file system), so it costs little space until one of the two changes. Writers wait meanwhile.
    ///
    /// Memtables are flushed first, unless all live WALs together are smaller than `log_size_for_flush` bytes: then
    /// those are copied instead. 0 always flushes.
    ///
    /// # Errors
    /// InvalidArgument if `target` exists; IoError, also if the directory it is to be in does not exist. On any error nothing is left
    /// under its name.
    pub fn create_checkpoint_with(&self, target: impl AsRef<Path>, log_size_for_flush: u64) -> Result<()> {
        checkpoint::create(&self.core, target.as_ref(), log_size_for_flush)
    }

    /// Flushes column family `cf` and makes the directory `target` of its tables, hard-linked or, on another file
    /// system, copied. The returned metadata is needed to import them: [`Db::create_column_family_with_import`].
    ///
    /// # Errors
    /// InvalidArgument if `target` exists; NotSupported if values are in blob files; ColumnFamilyDropped; those of
    /// [`Db::flush`]; IoError. Nothing is left under its name then.
    pub fn export_column_family(
        &self,
        cf: &ColumnFamilyHandle,
        target: impl AsRef<Path>,
    ) -> Result<ExportedColumnFamily> {
        export_import::export(&self.core, cf, target.as_ref())
    }

    /// Creates a column family of exported tables, which keep their levels and sequence numbers. Several exports become one if their
    /// ranges do not overlap. On return it is durable.
    ///
    /// # Errors
    /// InvalidArgument if there is a column family of that name, the order of keys is another, an export has no files, a file has no
    /// entries, exports overlap or there is no such level; Corruption if tables of a level overlap or a file is damaged; IoError.
    /// There is no such column family then.
    pub fn create_column_family_with_import(
        &self,
        family: impl Into<ColumnFamilyDescriptor>,
        options: ImportColumnFamilyOptions,
        exports: &[&ExportedColumnFamily],
    ) -> Result<ColumnFamilyHandle> {
        export_import::create_with_import(&self.core, &family.into(), options, exports)
    }

    /// Takes finished table files, made by [`crate::SstFileWriter`], into the default column family: atomically, durable and
    /// visible on return. They hide what was written before.
    ///
    /// # Errors
    /// InvalidArgument if a file was not made for this, has another comparator, or the options forbid what it needs;
    /// Corruption naming a damaged file; IoError. Nothing was changed then.
    pub fn ingest_external_files<P: AsRef<Path>>(&self, paths: &[P]) -> Result<()> {
        self.ingest_external_files_cf(&self.default_cf, paths)
    }

    /// [`Db::ingest_external_files`] into column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn ingest_external_files_cf<P: AsRef<Path>>(
        &self,
        cf: &ColumnFamilyHandle,
        paths: &[P],
    ) -> Result<()> {
        self.ingest_external_files_cf_with(cf, paths, &IngestExternalFileOptions::default())
    }

    /// [`Db::ingest_external_files`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn ingest_external_files_with<P: AsRef<Path>>(
        &self,
        paths: &[P],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        self.ingest_external_files_cf_with(&self.default_cf, paths, options)
    }

    /// [`Db::ingest_external_files`] into column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn ingest_external_files_cf_with<P: AsRef<Path>>(
        &self,
        cf: &ColumnFamilyHandle,
        paths: &[P],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        let files: Vec<Candidate> = paths.iter().map(|path| path.as_ref().into()).collect();
        ingest::ingest(&self.core, cf, &files, options)
    }

    /// As [`Db::ingest_external_files_cf_with`], of files as [`crate::SstFileWriter::finish`] told of them: those that were made with a
    /// checksum come with it. Without `file_checksum_gen_factory` the database keeps none, and looks at none.
    ///
    /// # Errors
    /// As there; Corruption if a file does not have its checksum; InvalidArgument if that is of another function.
    pub fn ingest_written_files(
        &self,
        cf: &ColumnFamilyHandle,
        files: &[ExternalFileInfo],
        options: &IngestExternalFileOptions,
    ) -> Result<()> {
        let files: Vec<Candidate> = files.iter().map(Candidate::from).collect();
        ingest::ingest(&self.core, cf, &files, options)
    }

    /// Keeps obsolete files from being removed until [`Db::enable_file_deletions`].
    pub fn disable_file_deletions(&self) {
        self.core.versions.state.lock().deletions_disabled += 1;
        // Nobody need wait for files that stay.
        self.core.versions.state_changed.notify_all();
    }

    /// Undoes one [`Db::disable_file_deletions`]. After the last one, files that were obsolete are gone on return.
    pub fn enable_file_deletions(&self) {
        self.set_file_deletions(|disabled| disabled.saturating_sub(1));
    }

    /// Undoes each [`Db::disable_file_deletions`], whoever made it; what RocksDB did with `force`, as long as it had that.
    pub fn force_enable_file_deletions(&self) {
        self.set_file_deletions(|_| 0);
    }

    /// Sets how often they are disabled by what it was.
    fn set_file_deletions(&self, set: impl FnOnce(usize) -> usize) {
        let mut state = self.core.versions.state.lock();
        state.deletions_disabled = set(state.deletions_disabled);
        drop(state);
        purge_obsolete_files_now(&self.core.jobs);
    }
}

//! Facts about a database beyond properties: its files, their sizes for key ranges, its counters; and reading all
//! of it to see that it is whole.
//!
//! Concurrency: every function works on one view of the structure and takes no lock across IO.
//! Source: RocksDB `include/rocksdb/metadata.h`, `DB::GetApproximateSizes`, `DB::VerifyChecksum`.

use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::context::DbContext;
use crate::core::Core;
use crate::db::Db;
use crate::file_checksum::{FileChecksum, verify_file};
use crate::file_properties::blob_bytes;
use crate::live_files::{self, LiveFiles, LiveFilesOptions};
use crate::quarantine::find as quarantine;
use crate::scrub;
use crate::scrub::options::{DamageInfo, ScrubOptions, ScrubProgress};
use crate::superversion::SuperVersion;
use crate::table_cache::TableCache;
use outcrop_base::keys::{Trailer, split, user_key};
use outcrop_base::{Error, Result, ValueType};
use outcrop_env::scheduler::Lane;
use outcrop_env::{Access, Env, OpenRead};
use outcrop_manifest::{FileNumber, TableFile, file_name};
use outcrop_memtable::MemTable;
use outcrop_monitor::{Ticker, Watch};
use outcrop_table::{Loading, TableIterOptions, TableProperties, TableReader, blob};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// A table of the current version of a column family.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// db.flush()?;
/// let file = &db.live_files()[0];
/// assert_eq!((file.level, &file.smallest_key[..], file.num_entries), (0, &b"a"[..], 1));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct LiveFile {
    /// Column family it belongs to.
    pub column_family: String,
    /// Its level.
    pub level: usize,
    /// Its number.
    pub number: u64,
    /// Its name within `directory`.
    pub name: String,
    /// Where it is.
    pub directory: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Smallest user key in it.
    pub smallest_key: Vec<u8>,
    /// Largest user key in it.
    pub largest_key: Vec<u8>,
    /// Smallest sequence number in it.
    pub smallest_seq: u64,
    /// Largest sequence number in it.
    pub largest_seq: u64,
    /// Entries, deletions included; 0 if the table cannot be opened.
    pub num_entries: u64,
    /// Deletions; 0 if the table cannot be opened.
    pub num_deletions: u64,
    /// Its checksum as a whole, if the MANIFEST has one.
    pub file_checksum: Option<FileChecksum>,
}

/// The parts that [`Db::approximate_sizes_cf_with`] counts.
///
/// ```
/// # use outcrop::SizeApproximation;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// let all = SizeApproximation { include_memtables: true, ..SizeApproximation::default() };
/// let sizes = db.approximate_sizes_cf_with(db.default_column_family(), &[(b"a", b"b")], all)?;
/// assert!(sizes[0] > 0);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeApproximation {
    /// Keys and values in memory. They are walked, so the cost grows with the range.
    pub include_memtables: bool,
    /// Tables, to the precision of a data block.
    pub include_files: bool,
    /// Of the column family's blob files the same share as of its tables: which values lie where is not looked up.
    pub include_blob_files: bool,
}

impl Default for SizeApproximation {
    fn default() -> Self {
        SizeApproximation { include_memtables: false, include_files: true, include_blob_files: false }
    }
}

/// The part of a range that is in memtables: see [`Db::approximate_memtable_stats_cf`].
///
/// ```
/// # use outcrop::{Db, Env, MemTableStats};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// db.delete("pear")?;
/// let stats = db.approximate_memtable_stats_cf(db.default_column_family(), b"a", b"b")?;
/// assert!(matches!(stats, MemTableStats { entries: 1, bytes: 8.. }));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemTableStats {
    /// Entries: each version of a key, deletions included.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Totals since the database was opened, or since [`Db::reset_stats`].
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// let counters = db.counter_source().read().expect("it is open");
/// assert_eq!(counters.keys_written, 1);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Write calls.
    pub writes: u64,
    /// Records written by them.
    pub keys_written: u64,
    /// Bytes of user writes, in batch form.
    pub bytes_written: u64,
    /// Groups of writes that shared a WAL record.
    pub write_groups: u64,
    /// Bytes appended to WALs.
    pub wal_bytes: u64,
    /// Syncs of WALs.
    pub wal_syncs: u64,
    /// Microseconds that writers were held back.
    pub stall_micros: u64,
    /// Bytes written by flushes.
    pub flush_bytes: u64,
    /// Bytes read by compactions.
    pub compaction_bytes_read: u64,
    /// Bytes written by compactions.
    pub compaction_bytes_written: u64,
}

/// Reads the [`Counters`] of a database without keeping it open.
///
/// ```
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let counters = db.counter_source();
/// db.close()?;
/// assert!(counters.read().is_none(), "it keeps nothing open");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct CounterSource(Weak<Core>);

impl CounterSource {
    /// The totals now; `None` once the database is closed.
    pub fn read(&self) -> Option<Counters> {
        self.0.upgrade().map(|core| counters(&core))
    }
}

impl Db {
    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.core().ctx.path
    }

    /// Where the table of a number is; if there is none, where it would be in the database's directory.
    pub fn table_path(&self, number: u64) -> PathBuf {
        let number = FileNumber(number);
        let found = self.column_families().into_iter().find_map(|cf| {
            let view = cf.superversion.load_full();
            let found = view.version.files().find(|(_, file)| file.number == number);
            found.map(|(_, file)| file.path(self.path()))
        });
        found.unwrap_or_else(|| file_name::table(self.path(), number))
    }

    /// The identity it was given when it was created.
    pub fn identity(&self) -> &str {
        &self.core().ctx.db_id
    }

    /// The state of the database as [OpenMetrics](https://openmetrics.io) text: sizes and states by column family,
    /// bytes written, and the tickers and histograms of [`DbBuilder::statistics`](crate::DbBuilder::statistics), if
    /// there are any. `docs/monitoring.md` says which of them answers which question. Looks at every descriptor of
    /// the block caches: about a millisecond for each gigabyte.
    ///
    /// ```
    /// # use outcrop::{Db, Env};
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
    /// db.put("a", "1")?;
    /// let text = db.metrics();
    /// assert!(text.contains("\noutcrop_keys_written_total 1\n"));
    /// assert!(text.ends_with("# EOF\n"));
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn metrics(&self) -> String {
        crate::metrics::metrics(self.core())
    }

    /// Where its counters can be read from.
    pub fn counter_source(&self) -> CounterSource {
        CounterSource(Arc::downgrade(self.core()))
    }

    /// Every table of every column family, by column family and level.
    pub fn live_files(&self) -> Vec<LiveFile> {
        self.column_families().iter().flat_map(|cf| self.live_files_cf(cf)).collect()
    }

    /// Every table of `cf`, by level; none if it is of another database.
    pub fn live_files_cf(&self, cf: &ColumnFamilyHandle) -> Vec<LiveFile> {
        if !self.core().ctx.owns(cf) {
            return Vec::new();
        }
        let view = cf.superversion.load_full();
        view.version.files().map(|(level, file)| live_file(&self.core().ctx, cf, level, file)).collect()
    }

    /// The files that the database consists of now, so that a copy of them is a database with the same contents: at one moment over
    /// all column families, with writers waiting until it is taken down. Between [`Db::disable_file_deletions`] and
    /// [`Db::enable_file_deletions`] they all stay; otherwise any of them may be gone by the time it is looked at.
    ///
    /// # Errors
    /// Those of a flush, and what keeps the database from being written; NotSupported for one that is only read.
    pub fn live_files_storage_info(&self, options: &LiveFilesOptions) -> Result<LiveFiles> {
        live_files::storage_info(self.core(), options)
    }

    /// The properties of the tables of column family `cf`, by path. With `ranges` only those of tables that have keys in one of them, from its
    /// first key to its second, inclusive. Tables that are not open are opened.
    ///
    /// ```
    /// # use outcrop::{Db, Env};
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
    /// db.put("a", "1")?;
    /// db.flush()?;
    /// let tables = db.properties_of_tables_cf(db.default_column_family(), None)?;
    /// assert!(tables.values().all(|table| table.num_entries == 1));
    /// let beyond = db.properties_of_tables_cf(db.default_column_family(), Some(&[(b"b", b"c")]))?;
    /// assert_eq!((tables.len(), beyond.len()), (1, 0));
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// IoError or Corruption if a table cannot be opened; InvalidArgument if the column family is of another database.
    pub fn properties_of_tables_cf(
        &self,
        cf: &ColumnFamilyHandle,
        ranges: Option<&[(&[u8], &[u8])]>,
    ) -> Result<BTreeMap<PathBuf, Arc<TableProperties>>> {
        let ctx = &self.core().ctx;
        ctx.check_owns(cf)?;
        let view = cf.superversion.load_full();
        let (compare, mut found) = (|a: &[u8], b: &[u8]| cf.comparator.compare(a, b), BTreeMap::new());
        for (_, file) in view.version.files() {
            let (smallest, largest) = (user_key(&file.smallest), user_key(&file.largest));
            let overlaps = |range: &(&[u8], &[u8])| {
                compare(largest, range.0).is_ge() && compare(smallest, range.1).is_le()
            };
            if ranges.is_none_or(|ranges| ranges.iter().any(overlaps)) {
                let properties = ctx.tables.open(cf, file)?.properties().clone();
                found.insert(file.path(&ctx.path), Arc::new(properties));
            }
        }
        Ok(found)
    }

    /// The environment that it was opened with.
    pub fn env(&self) -> &Env {
        &self.core().ctx.env
    }

    /// How many levels the default column family has.
    pub fn num_levels(&self) -> usize {
        self.num_levels_cf(self.default_column_family())
    }

    /// [`Db::num_levels`] of column family `cf`.
    pub fn num_levels_cf(&self, cf: &ColumnFamilyHandle) -> usize {
        cf.superversion.load_full().version.levels.len()
    }

    /// Bytes that each range, from its first key up to its second, exclusive, takes in the tables of the default column family.
    ///
    /// # Errors
    /// IoError or Corruption if the index of a table cannot be read.
    pub fn approximate_sizes(&self, ranges: &[(&[u8], &[u8])]) -> Result<Vec<u64>> {
        self.approximate_sizes_cf_with(self.default_column_family(), ranges, SizeApproximation::default())
    }

    /// [`Db::approximate_sizes`] in column family `cf`: as stored in tables, as held in memtables, as `what` says.
    ///
    /// # Errors
    /// As there; InvalidArgument if the column family is of another database.
    pub fn approximate_sizes_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        ranges: &[(&[u8], &[u8])],
        what: SizeApproximation,
    ) -> Result<Vec<u64>> {
        self.core().ctx.check_owns(cf)?;
        let view = cf.superversion.load_full();
        ranges
            .iter()
            .map(|(begin, end)| approximate_size(&self.core().ctx.tables, &view, cf, begin, end, what))
            .collect()
    }

    /// Counts the entries that the memtables of column family `cf`, also those that wait to be written, have of the keys from `begin` up to
    /// `end`, exclusive. They are walked, so the cost grows with the range.
    ///
    /// # Errors
    /// InvalidArgument if the column family is of another database.
    pub fn approximate_memtable_stats_cf(
        &self,
        cf: &ColumnFamilyHandle,
        begin: &[u8],
        end: &[u8],
    ) -> Result<MemTableStats> {
        self.core().ctx.check_owns(cf)?;
        let view = cf.superversion.load_full();
        let memtables = std::iter::once(&view.memtable).chain(&view.sealed);
        Ok(memtables.fold(MemTableStats::default(), |sum, memtable| {
            let part = range_in_memtable(memtable, cf, begin, end);
            MemTableStats { entries: sum.entries + part.entries, bytes: sum.bytes + part.bytes }
        }))
    }

    /// Counts from 0 again what `rocksdb.stats`, `rocksdb.cfstats` and `rocksdb.dbstats` report of all column families, and their uptime.
    /// Statistics objects, which databases may share, are not touched. Waits for the group of writes that is under way.
    pub fn reset_stats(&self) {
        let core = self.core();
        let writers = core.commit.exclude_writers();
        core.commit.stats.reset(core.ctx.env.clock.now_micros());
        core.registry.load().values().for_each(|cf| cf.stats.reset());
        drop(writers);
    }

    /// Reads every block of every table from its file and verifies it.
    ///
    /// # Errors
    /// Corruption naming file and offset of the first damaged block.
    pub fn verify_checksums(&self) -> Result<()> {
        for cf in self.column_families() {
            let view = cf.superversion.load_full();
            for (_, file) in view.version.files() {
                verify_table(&self.core().ctx, &cf, file)?;
                let watching = self.core().ctx.monitor.begin();
                Watch::from(&watching).count(Ticker::VerifyChecksumReadBytes, file.size);
            }
        }
        Ok(())
    }

    /// Changes how files are verified in the background, from here on; `None`: not at all. Each opening begins anew.
    ///
    /// # Errors
    /// InvalidArgument for a rate of 0; NotSupported for a database that is only read.
    pub fn set_scrub(&self, scrub: Option<ScrubOptions>) -> Result<()> {
        scrub.as_ref().map_or(Ok(()), ScrubOptions::check)?;
        self.core().versions.refuse_if_read_only()?;
        let ctx = &self.core().ctx;
        ctx.scrub.set(scrub);
        ctx.background.wake_lane(Lane::Compaction);
        Ok(())
    }

    /// Tables that compactions leave alone because they are damaged: with
    /// [`paranoid_checks`](crate::DbOptions::paranoid_checks) off, damage that a compaction or the scrubber finds stops nothing but reads of
    /// the damaged blocks and compactions that need the table. [`Db::delete_files_in_ranges`] gives such tables up; [`Db::resume`]
    /// lets compactions try them again. Empty while `paranoid_checks` is on, which is the default: there, damage that a compaction finds stops
    /// writes. Each opening begins with none.
    ///
    /// ```
    /// # use outcrop::{Db, Env};
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
    /// for table in db.quarantined_tables() {
    ///     println!("restore {}: {}", table.path.display(), table.error);
    /// }
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn quarantined_tables(&self) -> Vec<DamageInfo> {
        quarantine::tables(self.core())
    }

    /// How files are verified in the background; `None`: not at all.
    pub fn scrub_options(&self) -> Option<ScrubOptions> {
        self.core().ctx.scrub.options()
    }

    /// The figures of verifying in the background since the database was opened.
    pub fn scrub_progress(&self) -> ScrubProgress {
        self.core().ctx.scrub.figures.progress()
    }

    /// Reads every table and blob file that the MANIFEST has a checksum of as a whole, and compares it. It has those of files that
    /// were written under [`DbOptions::file_checksum_gen_factory`](crate::DbOptions::file_checksum_gen_factory); others are
    /// passed over.
    ///
    /// # Errors
    /// Corruption naming the first file that differs; InvalidArgument if the database was opened without that option, or a
    /// checksum is of another function; IoError.
    pub fn verify_file_checksums(&self) -> Result<()> {
        let ctx = &self.core().ctx;
        let factory = ctx.options.file_checksum_gen_factory.ok_or_else(|| {
            Error::invalid_argument(
                "Cannot verify file checksum if options.file_checksum_gen_factory is null",
            )
        })?;
        let verify = |path: PathBuf, len: u64, recorded: (&[u8], &[u8])| {
            FileChecksum::recorded(recorded)
                .map_or(Ok(()), |expected| verify_file(&*ctx.env.fs, &path, len, factory, &expected))
        };
        for cf in self.column_families() {
            // It keeps its files from being removed.
            let view = cf.superversion.load_full();
            for (_, table) in view.version.files() {
                verify(table.path(&ctx.path), table.size, table.checksum())?;
            }
            for blob in view.version.blob_files.values().map(|blob| &blob.file) {
                let (function, checksum) = &blob.checksum;
                let len = blob::file_len(blob.total_bytes);
                verify(blob.path(&ctx.path), len, (function, checksum))?;
            }
        }
        Ok(())
    }
}

fn counters(core: &Core) -> Counters {
    let stats = &core.commit.stats;
    let mut counters = Counters {
        writes: stats.writes.get(),
        keys_written: stats.keys_written.get(),
        bytes_written: stats.bytes_written.get(),
        write_groups: stats.groups.get(),
        wal_bytes: stats.wal_bytes.get(),
        wal_syncs: stats.wal_syncs.get(),
        stall_micros: stats.stall_micros.get(),
        ..Counters::default()
    };
    for cf in core.registry.load().values() {
        let work = cf.stats.work.lock();
        let flushed = work.flushes.bytes_written;
        let written: u64 = work.levels.iter().map(|level| level.bytes_written).sum();
        counters.flush_bytes += flushed;
        counters.compaction_bytes_written += written - flushed;
        counters.compaction_bytes_read +=
            work.levels.iter().map(|level| level.bytes_read + level.bytes_read_output_level).sum::<u64>();
    }
    counters
}

fn live_file(ctx: &DbContext, cf: &ColumnFamily, level: usize, file: &TableFile) -> LiveFile {
    let path = file.path(&ctx.path);
    let table = ctx.tables.open(cf, file).ok();
    let properties = table.as_ref().map(|table| table.properties());
    LiveFile {
        column_family: cf.name().to_string(),
        level,
        number: file.number.0,
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        directory: file.dir.as_deref().unwrap_or(&ctx.path).to_path_buf(),
        size: file.size,
        smallest_key: user_key(&file.smallest).to_vec(),
        largest_key: user_key(&file.largest).to_vec(),
        smallest_seq: file.smallest_seq.0,
        largest_seq: file.largest_seq.0,
        num_entries: properties.map_or(0, |properties| properties.num_entries),
        num_deletions: properties.map_or(0, |properties| properties.num_deletions),
        file_checksum: FileChecksum::recorded(file.checksum()),
    }
}

fn approximate_size(
    tables: &TableCache,
    view: &SuperVersion,
    cf: &ColumnFamily,
    begin: &[u8],
    end: &[u8],
    what: SizeApproximation,
) -> Result<u64> {
    if cf.comparator.compare(begin, end).is_ge() {
        return Ok(0);
    }
    let mut size = 0;
    if what.include_files || what.include_blob_files {
        let (mut in_range, mut of_all) = (0, 0);
        for (_, file) in view.version.files() {
            in_range += size_in_table(tables, cf, file, begin, end)?;
            of_all += file.size;
        }
        size += if what.include_files { in_range } else { 0 };
        if what.include_blob_files && of_all > 0 {
            let blobs = blob_bytes(&view.version).0;
            size += (blobs as f64 * (in_range as f64 / of_all as f64)) as u64;
        }
    }
    if what.include_memtables {
        let memtables = std::iter::once(&view.memtable).chain(&view.sealed);
        size += memtables.map(|memtable| range_in_memtable(memtable, cf, begin, end).bytes).sum::<u64>();
    }
    Ok(size)
}

fn size_in_table(
    tables: &TableCache,
    cf: &ColumnFamily,
    file: &TableFile,
    begin: &[u8],
    end: &[u8],
) -> Result<u64> {
    let comparator = &cf.comparator;
    if file.ends_before(comparator, begin) || comparator.compare(user_key(&file.smallest), end).is_ge() {
        return Ok(0);
    }
    let starts_inside = comparator.compare(begin, user_key(&file.smallest)).is_le();
    let ends_inside = file.ends_before(comparator, end);
    // A table that lies inside counts whole, filter and index included, and is not opened.
    if starts_inside && ends_inside {
        return Ok(file.size);
    }
    let table = tables.open(cf, file)?;
    let from = if starts_inside { 0 } else { table.approximate_offset_of(begin)? };
    let to = if ends_inside { file.size } else { table.approximate_offset_of(end)? };
    Ok(to.saturating_sub(from))
}

/// Reads a table apart from the cache: a block that is cached was verified when it was read, not now.
fn verify_table(ctx: &DbContext, cf: &ColumnFamily, file: &TableFile) -> Result<()> {
    let path = file.path(&ctx.path);
    let open = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let options = scrub::verify::reader_options(cf, file);
    let table = Arc::new(TableReader::open(ctx.env.fs.open_read(&path, open)?, options)?);
    let mut iter = table.iter(TableIterOptions {
        loading: Loading::NotKept,
        readahead_bytes: 1 << 20,
        ..TableIterOptions::default()
    });
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    iter.status()
}

fn range_in_memtable(memtable: &Arc<MemTable>, cf: &ColumnFamily, begin: &[u8], end: &[u8]) -> MemTableStats {
    let mut iter = memtable.iter();
    iter.seek(begin, Trailer::new(outcrop_base::SeqNum::MAX, ValueType::FOR_SEEK));
    let mut stats = MemTableStats::default();
    while iter.valid() && cf.comparator.compare(split(iter.key()).0, end).is_lt() {
        stats.entries += 1;
        stats.bytes += (iter.key().len() + iter.value().len()) as u64;
        iter.next();
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column_family::ColumnFamilyDescriptor;
    use outcrop_env::OpenWrite;
    use outcrop_options::{ColumnFamilyOptions, CompressionType, DbOptions};

    fn database(env: &Env) -> Db {
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let family =
            ColumnFamilyOptions { compression: CompressionType::None, ..ColumnFamilyOptions::default() };
        let families = vec![ColumnFamilyDescriptor::default_with(family, Default::default())];
        Db::builder("/db").options(options).env(env.clone()).column_families(families).open().unwrap()
    }

    fn fill(db: &Db) {
        for i in 0..1000 {
            db.put(format!("{i:04}").as_bytes(), [7; 100]).unwrap();
        }
    }

    #[test]
    fn memtables_tell_what_they_hold_of_a_range_and_counters_begin_anew() {
        let db = database(&Env::memory());
        fill(&db);
        db.delete("0500").unwrap();
        let cf = db.default_column_family();
        let stats = db.approximate_memtable_stats_cf(cf, b"0500", b"0510").unwrap();
        // A key of 4 bytes and 8 more in each.
        assert_eq!(stats, MemTableStats { entries: 11, bytes: 11 * 12 + 10 * 100 });
        db.flush().unwrap();
        assert_eq!(db.approximate_memtable_stats_cf(cf, b"0", b"9").unwrap(), MemTableStats::default());
        let counted = || db.counter_source().read().unwrap();
        assert!(counted().keys_written == 1001 && counted().flush_bytes > 100_000);
        assert!(db.property("rocksdb.stats").unwrap().contains("1001 keys"));
        db.reset_stats();
        assert_eq!(counted(), Counters::default());
        assert!(db.property("rocksdb.stats").unwrap().contains("0 keys"));
        db.put("a", "1").unwrap();
        assert_eq!((counted().writes, counted().keys_written), (1, 1));
    }

    #[test]
    fn sizes_are_those_of_the_range_in_tables_and_in_memory() {
        let db = database(&Env::memory());
        let cf = db.default_column_family().clone();
        fill(&db);
        let ranges: [(&[u8], &[u8]); 4] =
            [(b"0000", b"9999"), (b"0000", b"0500"), (b"x", b"y"), (b"0500", b"0000")];
        let both = SizeApproximation { include_memtables: true, ..Default::default() };
        let in_memory = db.approximate_sizes_cf_with(&cf, &ranges, both).unwrap();
        assert!(in_memory[0] >= 104_000 && in_memory[1] * 2 == in_memory[0], "{in_memory:?}");
        assert_eq!(in_memory[2..], [0, 0]);
        assert_eq!(db.approximate_sizes_cf_with(&cf, &ranges, SizeApproximation::default()).unwrap(), [0; 4]);
        db.flush_cf(&cf).unwrap();
        let in_tables = db.approximate_sizes_cf_with(&cf, &ranges, SizeApproximation::default()).unwrap();
        assert_eq!(in_tables[0], db.live_files()[0].size);
        assert!(in_tables[1].abs_diff(in_tables[0] / 2) < 8192, "{in_tables:?}");
        assert_eq!(in_tables[2..], [0, 0]);
    }

    #[test]
    fn live_files_say_what_is_in_them() {
        let db = database(&Env::memory());
        fill(&db);
        db.delete(b"0001").unwrap();
        assert!(db.live_files().is_empty());
        db.flush().unwrap();
        let files = db.live_files();
        assert_eq!(files.len(), 1);
        let file = &files[0];
        assert_eq!((file.level, &*file.smallest_key, &*file.largest_key), (0, &b"0000"[..], &b"0999"[..]));
        assert_eq!((file.smallest_seq, file.largest_seq), (1, 1001));
        assert_eq!(file.num_deletions, 1);
        assert_eq!(file.name, format!("{:06}.sst", file.number));
        let counters = db.counter_source().read().unwrap();
        assert_eq!((counters.keys_written, counters.flush_bytes), (1001, file.size));
    }

    #[test]
    fn verification_finds_damage_the_cache_hides() {
        let env = Env::memory();
        let db = database(&env);
        fill(&db);
        db.flush().unwrap();
        assert!(db.get(b"0500").unwrap().is_some());
        db.verify_checksums().unwrap();
        let path = Path::new("/db").join(&db.live_files()[0].name);
        let mut bytes = env.fs.read_all(&path).unwrap();
        bytes[100] ^= 1;
        let mut file = env.fs.create(&path, OpenWrite::default()).unwrap();
        file.append(&bytes).unwrap();
        file.close().unwrap();
        assert!(db.verify_checksums().unwrap_err().to_string().contains("Corruption"));
    }
}

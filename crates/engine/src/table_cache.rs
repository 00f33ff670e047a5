//! The table cache: opens tables and blob files, and keeps them open.
//!
//! With `max_open_files` -1 an open table hangs on its metadata and stays open as long as a live version refers to
//! it: a read finds it without a lock or a count. Otherwise the tables used last stay open, in shards of
//! `OpenTables`, each in a lock that is not held across IO.

use crate::column_family::ColumnFamily;
use outcrop_base::{Error, ErrorKind, Fragments, Result};
use outcrop_cache::Cache;
use outcrop_env::{Access, DirectIo, FileSystem, OpenRead, Pace, ReadFile};
use outcrop_manifest::{BlobFile, FileNumber, TableFile};
use outcrop_monitor::{HistogramKind, Monitor, Ticker, Watch};
use outcrop_options::{BlockBasedTableOptions, DbOptions};
use outcrop_table::blob::BlobReader;
use outcrop_table::{AutoReadahead, Loading, TableIterOptions, TableReader, TableReaderOptions};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files the database needs besides tables: `max_open_files` counts them too. Source: RocksDB's reserve.
const OTHER_FILES: i32 = 10;
const SHARDS: usize = 16;
/// Readahead of whoever reads a whole table, in bytes.
const WHOLE_TABLE_READAHEAD: usize = 1 << 20;

/// The tables used last, if `max_open_files` limits them.
struct OpenTables {
    /// `None`: no limit.
    shards: Option<Vec<Mutex<Shard>>>,
    per_shard: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    tables: HashMap<FileNumber, (Arc<TableReader>, u64)>,
    by_use: BTreeMap<u64, FileNumber>,
    uses: u64,
}

impl OpenTables {
    /// None open yet. Each of 16 shards keeps at least one table.
    fn new(max_open_files: i32) -> OpenTables {
        let limited = max_open_files >= 0;
        OpenTables {
            shards: limited.then(|| (0..SHARDS).map(|_| Mutex::default()).collect()),
            per_shard: AtomicUsize::new(OpenTables::per_shard(max_open_files)),
        }
    }

    fn per_shard(max_open_files: i32) -> usize {
        match usize::try_from(max_open_files) {
            Ok(files) => (files.saturating_sub(OTHER_FILES as usize) / SHARDS).max(1),
            Err(_) => usize::MAX,
        }
    }

    /// True if tables may have to be closed while they are in use by a version.
    fn is_limited(&self) -> bool {
        self.shards.is_some()
    }

    fn shard(&self, number: FileNumber) -> Option<&Mutex<Shard>> {
        self.shards.as_ref().map(|shards| &shards[number.0 as usize % SHARDS])
    }

    fn find(&self, number: FileNumber) -> Option<Arc<TableReader>> {
        let mut shard = self.shard(number)?.lock();
        let Shard { tables, by_use, uses } = &mut *shard;
        let (table, used) = tables.get_mut(&number)?;
        by_use.remove(used);
        *uses += 1;
        *used = *uses;
        by_use.insert(*uses, number);
        Some(table.clone())
    }

    fn insert(&self, number: FileNumber, table: &Arc<TableReader>) {
        let Some(shard) = self.shard(number) else { return };
        // Closed outside the lock.
        let mut closing = Vec::new();
        let mut shard = shard.lock();
        shard.uses += 1;
        let now = shard.uses;
        if let Some((replaced, used)) = shard.tables.insert(number, (table.clone(), now)) {
            shard.by_use.remove(&used);
            closing.push(replaced);
        }
        shard.by_use.insert(now, number);
        // Relaxed: a number that orders nothing.
        let most = self.per_shard.load(Ordering::Relaxed);
        while shard.tables.len() > most {
            let Some((_, oldest)) = shard.by_use.pop_first() else { break };
            closing.extend(shard.tables.remove(&oldest).map(|(table, _)| table));
        }
        drop(shard);
    }

    /// Closes a table whose file is about to go.
    fn remove(&self, number: FileNumber) {
        let Some(shard) = self.shard(number) else { return };
        let mut shard = shard.lock();
        if let Some((table, used)) = shard.tables.remove(&number) {
            shard.by_use.remove(&used);
            drop(shard);
            drop(table);
        }
    }
}

/// An open table, for the time it is used.
pub enum TableRef<'f> {
    /// Open for as long as its metadata lives.
    Held(&'f Arc<TableReader>),
    /// Open for as long as this.
    Taken(Arc<TableReader>),
}

impl Deref for TableRef<'_> {
    type Target = Arc<TableReader>;

    #[inline]
    fn deref(&self) -> &Arc<TableReader> {
        match self {
            TableRef::Held(table) => table,
            TableRef::Taken(table) => table,
        }
    }
}

/// Opens the tables and blob files of one database.
pub struct TableCache {
    fs: Arc<dyn FileSystem>,
    /// Where files without a directory of their own are.
    dir: PathBuf,
    how: OpenRead,
    open: OpenTables,
    monitor: Monitor,
    pace: Option<Arc<Pace>>,
}

impl TableCache {
    /// Of the files in `dir`, none of them open.
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path, options: &DbOptions) -> TableCache {
        let io = if options.use_direct_reads { DirectIo::Direct } else { DirectIo::Buffered };
        TableCache {
            fs,
            dir: dir.to_path_buf(),
            how: OpenRead { io, access: Access::Random, mapped: options.allow_mmap_reads },
            open: OpenTables::new(options.max_open_files),
            monitor: Monitor::none(),
            pace: None,
        }
    }

    /// The same, whose opened files are watched.
    pub fn watched_by(mut self, monitor: Monitor) -> TableCache {
        self.monitor = monitor;
        self
    }

    /// The same, of whose opened files reads with a priority wait for tokens of `pace`.
    pub fn paced_by(mut self, pace: Option<Arc<Pace>>) -> TableCache {
        self.pace = pace;
        self
    }

    /// The limiter that reads with a priority at it wait for.
    #[inline]
    pub fn pace(&self) -> Option<&Pace> {
        self.pace.as_deref()
    }

    /// Counts the reads.
    #[inline]
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// Changes how many files are kept open. A database that was opened with all of them open keeps them so, as RocksDB does with those
    /// that it has.
    pub fn set_max_open_files(&self, max_open_files: i32) {
        // Relaxed: as where it is read.
        self.open.per_shard.store(OpenTables::per_shard(max_open_files), Ordering::Relaxed);
    }

    /// Where files without a directory of their own are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The open table of `file`, opening it if nobody has.
    ///
    /// # Errors
    /// Corruption if the file's size or contents are not what the MANIFEST says; NotSupported naming a feature
    /// this engine cannot read.
    #[inline]
    pub fn open<'f>(&self, cf: &ColumnFamily, file: &'f TableFile) -> Result<TableRef<'f>> {
        match file.runtime.table.get() {
            Some(table) => Ok(TableRef::Held(table)),
            None => self.open_new(cf, file),
        }
    }

    #[cold]
    fn open_new<'f>(&self, cf: &ColumnFamily, file: &'f TableFile) -> Result<TableRef<'f>> {
        if !self.open.is_limited() {
            let table = self.open_reader(cf, file)?;
            range_tombstones_of(&table, cf, file);
            return Ok(TableRef::Held(file.runtime.table.get_or_init(|| Arc::new(table))));
        }
        if let Some(table) = self.open.find(file.number) {
            return Ok(TableRef::Taken(table));
        }
        let table = Arc::new(self.open_reader(cf, file)?);
        range_tombstones_of(&table, cf, file);
        self.open.insert(file.number, &table);
        Ok(TableRef::Taken(table))
    }

    /// The range tombstones of `file`, clipped to its boundaries, opening it if nobody has before.
    ///
    /// # Errors
    /// As [`TableCache::open`].
    #[inline]
    pub fn range_tombstones<'f>(
        &self,
        cf: &ColumnFamily,
        file: &'f TableFile,
    ) -> Result<Option<&'f Arc<Fragments>>> {
        match file.runtime.range_tombstones.get() {
            Some(known) => Ok(known.as_ref()),
            None => Ok(range_tombstones_of(&*self.open(cf, file)?, cf, file).as_ref()),
        }
    }

    /// Closes a table whose file is about to go.
    pub fn remove(&self, number: FileNumber) {
        self.open.remove(number);
    }

    /// The open blob file, opening it if nobody has.
    ///
    /// # Errors
    /// Corruption if it is no blob file of the column family.
    pub fn open_blob_file<'f>(&self, cf: &ColumnFamily, file: &'f BlobFile) -> Result<&'f Arc<BlobReader>> {
        if let Some(reader) = file.reader.get() {
            return Ok(reader);
        }
        let opened = self.open_file(&file.path(&self.dir))?;
        let reader = Arc::new(BlobReader::open(opened, cf.id().0)?.ordered_by(cf.rows.clone()));
        Ok(file.reader.get_or_init(|| reader))
    }

    fn open_file(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let watching = self.monitor.begin();
        Watch::from(&watching).count(Ticker::NoFileOpens, 1);
        self.fs.open_read(path, self.how)
    }

    fn open_reader(&self, cf: &ColumnFamily, file: &TableFile) -> Result<TableReader> {
        let watching = self.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let opened = self.open_unwatched(cf, file);
        timer.micros(HistogramKind::TableOpenIoMicros);
        watch.count(Ticker::NoFileErrors, u64::from(opened.is_err()));
        opened
    }

    fn open_unwatched(&self, cf: &ColumnFamily, file: &TableFile) -> Result<TableReader> {
        let path = file.path(&self.dir);
        let read_file = self.open_file(&path)?;
        if read_file.size() != file.size {
            return Err(Error::corruption(format!(
                "{}: size is {} bytes, the MANIFEST says {}",
                path.display(),
                read_file.size(),
                file.size
            )));
        }
        let options = cf.options.load();
        let table_options = &options.table;
        let reader = TableReader::open(
            read_file,
            TableReaderOptions {
                comparator: cf.comparator.clone(),
                cache_file_id: *file.runtime.cache_file_id.get_or_init(Cache::new_file_id),
                cache: cf.block_cache.clone(),
                cache_index_and_filter_blocks: table_options.cache_index_and_filter_blocks,
                // Relaxed: set before the table is opened for the first time.
                hold_in_cache: holds_blocks(table_options, file.runtime.from_flush.load(Ordering::Relaxed)),
                expected_unique_id: file.unique_id,
                largest_seqno: file.largest_seq,
                prefix_extractor: options.prefix_extractor.clone(),
                auto_readahead: AutoReadahead::of(table_options),
                monitor: self.monitor.clone(),
                placement: file.runtime.placement.clone(),
                pace: self.pace.clone(),
                read_amp_bytes_per_bit: table_options.read_amp_bytes_per_bit,
            },
        )?;
        if cf.has_timestamps() && !reader.range_tombstones().is_empty() {
            let what = "range deletions with user-defined timestamps";
            return Err(Error::not_supported(format!("{}: {what}", path.display())));
        }
        Ok(reader)
    }
}

/// Whether index and filter of a table stay pinned in the cache: as `metadata_cache_options` says, or where it says nothing
/// `pin_l0_filter_and_index_blocks_in_cache`. They are one block each here, and pinned if either kind is.
/// Source: RocksDB `table/block_based/block_based_table_reader.cc`, `PrefetchIndexAndFilterBlocks`.
fn holds_blocks(options: &BlockBasedTableOptions, from_flush: bool) -> bool {
    let fields = options.kept.get("metadata_cache_options").unwrap_or_default().trim_matches(['{', '}']);
    let tier = |name: &str| {
        let pairs = fields.split(';').filter_map(|field| field.split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map_or("kFallback", |(_, tier)| tier)
    };
    let holds = |tier: &str| match tier {
        "kAll" => true,
        "kFlushedAndSimilar" => from_flush,
        "kNone" => false,
        _ => options.pin_l0_filter_and_index_blocks_in_cache && from_flush,
    };
    holds(tier("unpartitioned_pinning")) || holds(tier("partition_pinning"))
}

/// Reads all data blocks of a new table into the block cache.
///
/// # Errors
/// Those of the table: it is not what was written.
pub fn warm(table: &Arc<TableReader>) -> Result<()> {
    let options = TableIterOptions {
        loading: Loading::Kept,
        readahead_bytes: WHOLE_TABLE_READAHEAD,
        for_job: true,
        ..TableIterOptions::default()
    };
    match each_entry(table, options, |_, _| ()) {
        // A cache with a strict limit that has no room is no fault of the table's.
        Err(error) if error.kind() == ErrorKind::Aborted => Ok(()),
        read => read,
    }
}

/// Passes every entry of a table, from its file and not from the block cache.
///
/// # Errors
/// Those of the table.
pub fn read_back(table: &Arc<TableReader>, each: impl FnMut(&[u8], &[u8])) -> Result<()> {
    each_entry(
        table,
        TableIterOptions {
            loading: Loading::NotKept,
            readahead_bytes: WHOLE_TABLE_READAHEAD,
            for_job: true,
            ..TableIterOptions::default()
        },
        each,
    )
}

fn each_entry(
    table: &Arc<TableReader>,
    options: TableIterOptions,
    mut each: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    let mut entries = table.iter(options);
    entries.seek_to_first();
    while entries.valid() {
        each(entries.key(), entries.value());
        entries.next();
    }
    entries.status()
}

/// Takes the tombstones down in the file's metadata, where they outlive the open table.
fn range_tombstones_of<'f>(
    table: &TableReader,
    cf: &ColumnFamily,
    file: &'f TableFile,
) -> &'f Option<Arc<Fragments>> {
    file.runtime.range_tombstones.get_or_init(|| {
        let tombstones = table.range_tombstones();
        let clipped = Fragments::clipped(tombstones, &cf.comparator, &file.smallest, &file.largest);
        (!clipped.is_empty()).then(|| Arc::new(clipped))
    })
}

#[cfg(test)]
mod tests;

//! Blob files in flush and compaction: values move into new files, out of old ones, and the garbage in these is counted.
//!
//! ```text
//! input entry --(reference to an old file)--> fetched, so that it moves out     BlobInput
//! value of min_blob_size or more ----------> new blob file, reference instead   BlobOutput
//! garbage of a file = references read - references written                      BlobMeter
//! ```
//! Source: RocksDB `db/blob/blob_file_builder.cc`, `blob_garbage_meter.cc`.

use super::manual_request::{BlobCollection, BlobGarbageCollectionPolicy};
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::file_checksum::{WrittenChecksum, while_written};
use crate::paths;
use crate::read::blob;
use crate::table_cache::TableCache;
use outcrop_base::Result;
use outcrop_cache::{Cache, Priority};
use outcrop_env::{OpenWrite, ReadFile, WriteTimes};
use outcrop_manifest::{BlobFile, FileNumber, Garbage, Version, file_name};
use outcrop_monitor::{HistogramKind, Ticker, Watch};
use outcrop_options::{ColumnFamilyOptions, CompressionOptions, CompressionType, Prepopulate};
use outcrop_table::Loading;
use outcrop_table::blob::{BlobIndex, BlobReader, BlobWriter, BlobWriterOptions, record_len};
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// References to blob files, by file.
#[derive(Clone, Debug, Default)]
pub struct BlobMeter {
    files: BTreeMap<FileNumber, Garbage>,
}

impl BlobMeter {
    /// Counts the reference `index` of `user_key`; gives the file's number.
    pub fn count(&mut self, user_key: &[u8], index: &[u8]) -> Result<FileNumber> {
        let index = BlobIndex::decode(index)?;
        let number = index.file_number;
        let seen = self.files.entry(number).or_default();
        seen.count += 1;
        seen.bytes += record_len(user_key.len(), index.size);
        Ok(number)
    }

    /// The garbage that `self` counts and `kept` does not, by file of `version`: of a file that is lost there is none.
    pub fn without(&self, kept: &BlobMeter, version: &Version) -> Vec<(FileNumber, Garbage)> {
        let left = |(number, seen): (&FileNumber, &Garbage)| {
            let kept = kept.files.get(number).copied().unwrap_or_default();
            let garbage = Garbage {
                count: seen.count.saturating_sub(kept.count),
                bytes: seen.bytes.saturating_sub(kept.bytes),
            };
            let known = version.blob_files.contains_key(number);
            (garbage.count > 0 && known).then_some((*number, garbage))
        };
        self.files.iter().filter_map(left).collect()
    }
}

/// The blob files that a compaction's inputs refer to.
pub struct BlobInput {
    tables: Arc<TableCache>,
    cf: Arc<ColumnFamily>,
    version: Arc<Version>,
    /// Values of files below this number move out.
    cutoff: FileNumber,
    /// Bytes read at a time; 0: one value.
    readahead: usize,
    /// Files that are read ahead.
    ahead: RefCell<BTreeMap<FileNumber, BlobReader>>,
    /// References read so far.
    pub read: BlobMeter,
    fetched: Cell<Fetched>,
}

/// Values that a compaction read from blob files, or from a cache of them: for its filter, to merge over them, or to move them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// How many.
    pub count: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

impl Fetched {
    /// Adds those of another part.
    pub fn add(&mut self, more: Fetched) {
        self.count += more.count;
        self.bytes += more.bytes;
    }
}

impl BlobInput {
    /// Those of `version`, of which values move out as `collection` says; `None` if it has none.
    pub fn new(
        tables: &Arc<TableCache>,
        cf: &Arc<ColumnFamily>,
        version: &Arc<Version>,
        collection: BlobCollection,
    ) -> Option<BlobInput> {
        if version.blob_files.is_empty() {
            return None;
        }
        let options = cf.options.load();
        Some(BlobInput {
            tables: tables.clone(),
            cf: cf.clone(),
            version: version.clone(),
            cutoff: cutoff(version, &options, collection),
            readahead: usize::try_from(options.blob_compaction_readahead_size).unwrap_or(usize::MAX),
            ahead: RefCell::default(),
            read: BlobMeter::default(),
            fetched: Cell::default(),
        })
    }

    /// The value that `index` refers to.
    pub fn fetch(&self, user_key: &[u8], index: &[u8]) -> Result<Vec<u8>> {
        let files = &self.version.blob_files;
        let bytes = record_len(user_key.len(), BlobIndex::decode(index)?.size);
        let mut fetched = self.fetched.get();
        fetched.add(Fetched { count: 1, bytes });
        self.fetched.set(fetched);
        if self.readahead > 0 {
            return self.fetch_ahead(user_key, &BlobIndex::decode(index)?);
        }
        blob::fetch(&self.tables, &self.cf, files, user_key, index, Loading::NotKept)
            .map(|value| value.into_vec())
    }

    /// The values fetched so far.
    pub fn fetched(&self) -> Fetched {
        self.fetched.get()
    }

    /// As [`BlobInput::fetch`], through a buffer of the file: keys come in the order in which their values were
    /// written.
    fn fetch_ahead(&self, user_key: &[u8], index: &BlobIndex) -> Result<Vec<u8>> {
        let number = index.file_number;
        let mut ahead = self.ahead.borrow_mut();
        let reader = match ahead.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let file = blob::find(&self.version.blob_files, number)?;
                let reader = self.tables.open_blob_file(&self.cf, file)?;
                place.insert(reader.reading_from(ReadAhead::of(reader.file(), self.readahead)))
            }
        };
        let mut value = Vec::new();
        reader.get(user_key, index, &mut value)?;
        Ok(value)
    }

    /// True if the value that `index` refers to should move out of its file. One whose file is lost stays as it is.
    pub fn moves_out(&self, index: &[u8]) -> Result<bool> {
        let number = BlobIndex::decode(index)?.file_number;
        Ok(number < self.cutoff && self.version.blob_files.contains_key(&number))
    }
}

/// The first file that garbage collection leaves alone.
///
/// Source: RocksDB `Compaction::Compaction`, `enable_blob_garbage_collection_`.
fn cutoff(version: &Version, options: &ColumnFamilyOptions, asked: BlobCollection) -> FileNumber {
    let enabled = match asked.policy {
        BlobGarbageCollectionPolicy::UseDefault => options.enable_blob_garbage_collection,
        BlobGarbageCollectionPolicy::Force => true,
        BlobGarbageCollectionPolicy::Disable => false,
    };
    if !enabled {
        return FileNumber(0);
    }
    let share = asked.age_cutoff.unwrap_or(options.blob_garbage_collection_age_cutoff).clamp(0.0, 1.0);
    let index = (version.blob_files.len() as f64 * share) as usize;
    version.blob_files.keys().nth(index).copied().unwrap_or(FileNumber(u64::MAX))
}

/// A file with a buffer that holds what comes after the last read.
struct ReadAhead {
    file: Arc<dyn ReadFile>,
    bytes: usize,
    /// Where the buffer starts in the file, and the buffer.
    buffer: Mutex<(u64, Vec<u8>)>,
}

impl ReadAhead {
    fn of(file: &Arc<dyn ReadFile>, bytes: usize) -> Arc<ReadAhead> {
        Arc::new(ReadAhead { file: file.clone(), bytes, buffer: Mutex::default() })
    }
}

impl ReadFile for ReadAhead {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if buf.len() >= self.bytes {
            return self.file.read_at(offset, buf);
        }
        let mut buffer = self.buffer.lock();
        let (start, held) = &mut *buffer;
        let inside = offset >= *start && offset + buf.len() as u64 <= *start + held.len() as u64;
        if !inside {
            let left = self.file.size().saturating_sub(offset);
            held.resize(self.bytes.min(usize::try_from(left).unwrap_or(usize::MAX)), 0);
            *start = offset;
            let got = self.file.read_at(offset, held);
            // Nothing is known of the buffer after an error.
            held.truncate(*got.as_ref().unwrap_or(&0));
            got?;
        }
        let held = &held[(offset - *start) as usize..];
        let got = buf.len().min(held.len());
        buf[..got].copy_from_slice(&held[..got]);
        Ok(got)
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

/// How new blob files are to be written.
#[derive(Clone, Debug)]
pub struct BlobPlan {
    min_size: usize,
    file_size: u64,
    compression: CompressionType,
    compression_opts: CompressionOptions,
    /// Values go to the cache, too.
    warm: bool,
    /// As [`BlobPlan::new`] was given it.
    level: i32,
}

impl BlobPlan {
    /// The plan for outputs to `level`, -1 for flush; `None` if values stay in tables.
    pub fn new(options: &ColumnFamilyOptions, level: i32) -> Option<BlobPlan> {
        (options.enable_blob_files && level.max(0) >= options.blob_file_starting_level).then(|| BlobPlan {
            warm: level < 0 && options.prepopulate_blob_cache == Prepopulate::FlushOnly,
            level,
            // Empty values stay in tables, as in RocksDB.
            min_size: usize::try_from(options.min_blob_size).unwrap_or(usize::MAX).max(1),
            file_size: options.blob_file_size.max(1),
            compression: options.blob_compression_type,
            compression_opts: options.blob_compression_opts.clone(),
        })
    }
}

/// The blob file being written.
struct OpenBlobFile {
    number: FileNumber,
    writer: BlobWriter,
    /// Its part of keys of the cache, if values go there.
    cache_file_id: Option<u64>,
    /// The checksum of the whole file, if the options ask for it.
    checksum: Option<WrittenChecksum>,
}

/// The blob files that a job wrote, and what of those it read is garbage now.
pub type WrittenBlobs = (Vec<Arc<BlobFile>>, Vec<(FileNumber, Garbage)>);

/// The blob files a job writes.
pub struct BlobOutput<'a> {
    ctx: &'a DbContext,
    cf: &'a ColumnFamily,
    plan: Option<BlobPlan>,
    /// Where new files go; `None`: to the database's directory.
    dir: Option<Arc<Path>>,
    open: Option<OpenBlobFile>,
    done: Vec<Arc<BlobFile>>,
    /// Has the older files; a flush needs none.
    version: Option<Arc<Version>>,
    /// References to older files that were written on.
    kept: BlobMeter,
    /// Where the times of writing files are added, if somebody wants them.
    pub write_times: Option<Arc<WriteTimes>>,
}

impl<'a> BlobOutput<'a> {
    /// None yet. `version` has the files that entries refer to.
    pub fn new(
        ctx: &'a DbContext,
        cf: &'a ColumnFamily,
        plan: Option<BlobPlan>,
        version: Option<Arc<Version>>,
    ) -> BlobOutput<'a> {
        let dir = plan.as_ref().and_then(|_| paths::directory(&cf.options.load(), 0));
        let kept = BlobMeter::default();
        BlobOutput { ctx, cf, plan, dir, open: None, done: Vec::new(), version, kept, write_times: None }
    }

    /// Counts the reference `index` of `user_key` as written on; gives the number of its file, unless that is lost.
    pub fn refer(&mut self, user_key: &[u8], index: &[u8]) -> Result<Option<FileNumber>> {
        let number = self.kept.count(user_key, index)?;
        let known = self.version.as_ref().is_some_and(|version| version.blob_files.contains_key(&number));
        Ok(known.then_some(number))
    }

    /// True if a value of `len` bytes goes to a blob file.
    #[inline]
    pub fn takes(&self, len: usize) -> bool {
        self.plan.as_ref().is_some_and(|plan| len >= plan.min_size)
    }

    /// Writes the value; makes `index` what the table stores in its place, and gives the file's number. Only for
    /// values it takes.
    pub fn add(
        &mut self,
        user_key: &[u8],
        value: &[u8],
        reserve: &dyn Fn() -> FileNumber,
        index: &mut Vec<u8>,
    ) -> Result<FileNumber> {
        if self.open.is_none() {
            self.open = Some(self.create(reserve())?);
        }
        let OpenBlobFile { number, writer, cache_file_id, .. } = self.open.as_mut().expect("opened above");
        let number = *number;
        index.clear();
        let reference = writer.add(user_key, value)?;
        reference.encode(index);
        if let (Some(file), Some(cache)) = (*cache_file_id, self.cf.cache_of_blobs())
            && !value.is_empty()
        {
            let key = blob::cache_key(file, reference.offset);
            drop(cache.insert(key, Priority::Low, value.len(), |frame| frame.copy_from_slice(value)));
            let watching = self.ctx.monitor.begin();
            Watch::from(&watching).count(Ticker::BlobDbCacheAdd, 1);
            Watch::from(&watching).count(Ticker::BlobDbCacheBytesWrite, value.len() as u64);
        }
        let full = self.plan.as_ref().is_some_and(|plan| writer.size() >= plan.file_size);
        if full {
            self.finish_open()?;
        }
        Ok(number)
    }

    fn create(&self, number: FileNumber) -> Result<OpenBlobFile> {
        let plan = self.plan.as_ref().expect("only for values it takes");
        let options = OpenWrite {
            buffer_size: self.ctx.live.load().writable_file_max_buffer_size as usize,
            bytes_per_sync: self.ctx.live.load().bytes_per_sync,
            ..OpenWrite::default()
        };
        let dir = self.dir.as_deref().unwrap_or(&self.ctx.path);
        let mut file = self.ctx.env.fs.create(&file_name::blob(dir, number), options)?;
        if let Some(times) = &self.write_times {
            file.measure(times);
        }
        let file = self.ctx.pacing.file(file, plan.level);
        let (file, checksum) = while_written(file, self.ctx.options.file_checksum_gen_factory);
        let options = BlobWriterOptions {
            file_number: number,
            column_family_id: self.cf.id().0,
            compression: plan.compression,
            compression_opts: plan.compression_opts.clone(),
        };
        let cached = plan.warm && self.cf.cache_of_blobs().is_some();
        let cache_file_id = cached.then(Cache::new_file_id);
        Ok(OpenBlobFile { number, writer: BlobWriter::new(file, options)?, cache_file_id, checksum })
    }

    fn finish_open(&mut self) -> Result<()> {
        let Some(OpenBlobFile { number, mut writer, cache_file_id, checksum }) = self.open.take() else {
            return Ok(());
        };
        let summary = writer.finish()?;
        let watching = self.ctx.monitor.begin();
        let timer = Watch::from(&watching).stats_timer();
        writer.sync_and_close(self.ctx.options.use_fsync)?;
        timer.micros(HistogramKind::BlobDbBlobFileSyncMicros);
        Watch::from(&watching).count(Ticker::BlobDbBlobFileSynced, 1);
        let checksum = checksum.map(|sum| sum.finish());
        let file = BlobFile {
            number,
            dir: self.dir.clone(),
            checksum: checksum.map(|sum| (sum.function.into_bytes(), sum.checksum)).unwrap_or_default(),
            total_count: summary.count,
            total_bytes: summary.total_bytes,
            cache_file_id: cache_file_id.map_or_else(OnceLock::new, OnceLock::from),
            ..BlobFile::default()
        };
        self.ctx.file_added(file.path(&self.ctx.path), summary.total_bytes);
        self.done.push(Arc::new(file));
        Ok(())
    }

    /// Completes the last file, durably: the new files, and what of `read` is garbage now. Directory entries are not synced.
    pub fn finish(mut self, read: Option<&BlobMeter>) -> Result<WrittenBlobs> {
        self.finish_open()?;
        let garbage = match (read, &self.version) {
            (Some(read), Some(version)) => read.without(&self.kept, version),
            _ => Vec::new(),
        };
        Ok((self.done, garbage))
    }
}

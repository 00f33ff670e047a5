//! Blob files in flush and compaction: values move into new files, out of old ones, and what is left behind is counted.
//!
//! ```text
//! input entry --(reference to an old file)--> fetched, so that it moves out     BlobInput
//! value of min_blob_size or more ----------> new blob file, reference instead   BlobOutput
//! garbage of a file = references read - references written                      BlobMeter
//! ```
//! Source: RocksDB `db/blob/blob_file_builder.cc`, `blob_garbage_meter.cc`.

use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use crate::read::blob;
use outcrop_base::Result;
use outcrop_env::OpenWrite;
use outcrop_manifest::{BlobFile, FileNumber, Garbage, Version, file_name};
use outcrop_options::{ColumnFamilyOptions, CompressionOptions, CompressionType};
use outcrop_table::FillCache;
use outcrop_table::blob::{BlobIndex, BlobWriter, BlobWriterOptions, record_len};
use std::collections::BTreeMap;
use std::sync::Arc;

/// References to blob files, by file.
#[derive(Clone, Debug, Default)]
pub struct BlobMeter {
    files: BTreeMap<FileNumber, Garbage>,
}

impl BlobMeter {
    /// Counts the reference `index` of `user_key`; gives the file's number.
    pub fn count(&mut self, user_key: &[u8], index: &[u8]) -> Result<FileNumber> {
        let index = BlobIndex::decode(index)?;
        let number = FileNumber(index.file_number);
        let seen = self.files.entry(number).or_default();
        seen.count += 1;
        seen.bytes += record_len(user_key.len(), index.size);
        Ok(number)
    }

    /// What `self` has and `kept` has not, by file.
    pub fn without(&self, kept: &BlobMeter) -> Vec<(FileNumber, Garbage)> {
        let left = |(number, seen): (&FileNumber, &Garbage)| {
            let kept = kept.files.get(number).copied().unwrap_or_default();
            let garbage = Garbage {
                count: seen.count.saturating_sub(kept.count),
                bytes: seen.bytes.saturating_sub(kept.bytes),
            };
            (garbage.count > 0).then_some((*number, garbage))
        };
        self.files.iter().filter_map(left).collect()
    }
}

/// The blob files that a compaction's inputs refer to.
pub struct BlobInput {
    ctx: Arc<DbContext>,
    cf: Arc<ColumnFamily>,
    version: Arc<Version>,
    /// Values of files below this number move out.
    cutoff: FileNumber,
    /// References read so far.
    pub read: BlobMeter,
}

impl BlobInput {
    /// Those of `version`; `None` if it has none.
    pub fn new(ctx: &Arc<DbContext>, cf: &Arc<ColumnFamily>, version: &Arc<Version>) -> Option<BlobInput> {
        if version.blob_files.is_empty() {
            return None;
        }
        let cutoff = cutoff(version, &cf.options.load());
        let (ctx, cf, version) = (ctx.clone(), cf.clone(), version.clone());
        Some(BlobInput { ctx, cf, version, cutoff, read: BlobMeter::default() })
    }

    /// The value that `index` refers to.
    pub fn fetch(&self, user_key: &[u8], index: &[u8]) -> Result<Vec<u8>> {
        let files = &self.version.blob_files;
        blob::fetch(&self.ctx, &self.cf, files, user_key, index, FillCache::No).map(|value| value.into_vec())
    }

    /// True if the value that `index` refers to should move out of its file.
    pub fn moves_out(&self, index: &[u8]) -> Result<bool> {
        Ok(BlobIndex::decode(index)?.file_number < self.cutoff.0)
    }
}

/// The first file that garbage collection leaves alone.
fn cutoff(version: &Version, options: &ColumnFamilyOptions) -> FileNumber {
    if !options.enable_blob_garbage_collection {
        return FileNumber(0);
    }
    let share = options.blob_garbage_collection_age_cutoff.clamp(0.0, 1.0);
    let index = (version.blob_files.len() as f64 * share) as usize;
    version.blob_files.keys().nth(index).copied().unwrap_or(FileNumber(u64::MAX))
}

/// What new blob files are to be like.
#[derive(Clone, Debug)]
pub struct BlobPlan {
    min_size: usize,
    file_size: u64,
    compression: CompressionType,
    compression_opts: CompressionOptions,
}

impl BlobPlan {
    /// The plan for outputs to `level`; `None` if values stay in tables.
    pub fn new(options: &ColumnFamilyOptions, level: i32) -> Option<BlobPlan> {
        (options.enable_blob_files && level >= options.blob_file_starting_level).then(|| BlobPlan {
            min_size: usize::try_from(options.min_blob_size).unwrap_or(usize::MAX),
            file_size: options.blob_file_size.max(1),
            compression: options.blob_compression_type,
            compression_opts: options.compression_opts.clone(),
        })
    }
}

/// The blob files a job writes.
pub struct BlobOutput<'a> {
    ctx: &'a DbContext,
    cf: &'a ColumnFamily,
    plan: Option<BlobPlan>,
    open: Option<(FileNumber, BlobWriter)>,
    done: Vec<Arc<BlobFile>>,
    /// References to older files that were written on.
    pub kept: BlobMeter,
}

impl<'a> BlobOutput<'a> {
    /// None yet.
    pub fn new(ctx: &'a DbContext, cf: &'a ColumnFamily, plan: Option<BlobPlan>) -> BlobOutput<'a> {
        BlobOutput { ctx, cf, plan, open: None, done: Vec::new(), kept: BlobMeter::default() }
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
            let number = reserve();
            self.open = Some((number, self.create(number)?));
        }
        let (number, writer) = self.open.as_mut().expect("opened above");
        let number = *number;
        index.clear();
        writer.add(user_key, value)?.encode(index);
        let full = self.plan.as_ref().is_some_and(|plan| writer.size() >= plan.file_size);
        if full {
            self.finish_open()?;
        }
        Ok(number)
    }

    fn create(&self, number: FileNumber) -> Result<BlobWriter> {
        let plan = self.plan.as_ref().expect("only for values it takes");
        let options = OpenWrite {
            buffer_size: self.ctx.options.writable_file_max_buffer_size as usize,
            bytes_per_sync: self.ctx.options.bytes_per_sync,
            ..OpenWrite::default()
        };
        let file = self.ctx.env.fs.create(&file_name::blob(&self.ctx.path, number), options)?;
        let options = BlobWriterOptions {
            file_number: number.0,
            column_family_id: self.cf.id(),
            compression: plan.compression,
            compression_opts: plan.compression_opts.clone(),
        };
        BlobWriter::new(file, options)
    }

    fn finish_open(&mut self) -> Result<()> {
        let Some((number, mut writer)) = self.open.take() else { return Ok(()) };
        let summary = writer.finish()?;
        writer.sync_and_close(self.ctx.options.use_fsync)?;
        self.done.push(Arc::new(BlobFile {
            number,
            total_count: summary.count,
            total_bytes: summary.total_bytes,
            ..BlobFile::default()
        }));
        Ok(())
    }

    /// Completes the last file, durably: the new files, and the references to older ones. Directory entries are not
    /// synced.
    pub fn finish(mut self) -> Result<(Vec<Arc<BlobFile>>, BlobMeter)> {
        self.finish_open()?;
        Ok((self.done, self.kept))
    }
}

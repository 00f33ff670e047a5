//! Values that are not in tables: reading them from blob files, through a cache: `blob_cache`, or the block cache.
//!
//! Concurrency: a blob file is opened by the first reader that needs it and stays open as long as a version holds it.

use super::value::PinnedValue;
use crate::column_family::ColumnFamily;
use crate::table_cache::TableCache;
use outcrop_base::{Error, Result};
use outcrop_cache::{Cache, CacheKey, Kind, Priority};
use outcrop_env::IoKind;
use outcrop_manifest::{BlobFile, BlobFiles, FileNumber};
use outcrop_monitor::{HistogramKind, PerfMetric, Ticker, Watch};
use outcrop_table::Loading;
use outcrop_table::blob::{BlobIndex, record_len};

/// Where the value at `offset` of a blob file is in the cache.
pub fn cache_key(file: u64, offset: u64) -> CacheKey {
    CacheKey { file, offset: offset ^ ((Kind::Blob as u64) << 62) }
}

/// The value of `user_key` that a table refers to by `index`, in one of `files`.
///
/// # Errors
/// Corruption naming the file, or if it is not one of the version's; NotSupported for references this engine does not
/// know.
pub fn fetch(
    tables: &TableCache,
    cf: &ColumnFamily,
    files: &BlobFiles,
    user_key: &[u8],
    index: &[u8],
    loading: Loading,
) -> Result<PinnedValue> {
    let index = BlobIndex::decode(index)?;
    let watching = tables.monitor().begin();
    let watch = Watch::from(&watching);
    let file = find(files, index.file_number)?;
    let Some(cache) = cf.cache_of_blobs() else {
        begin_load(tables, loading, user_key, &index)?;
        return Ok(PinnedValue::owned(read(tables, cf, file, user_key, &index, (loading, watch))?));
    };
    let file_id = *file.cache_file_id.get_or_init(Cache::new_file_id);
    let key = cache_key(file_id, index.offset);
    if let Some(found) = cache.lookup(key) {
        watch.count(Ticker::BlobDbCacheHit, 1);
        watch.count(Ticker::BlobDbCacheBytesRead, found.len() as u64);
        watch.perf(PerfMetric::BlobCacheHitCount, 1);
        watch.perf(PerfMetric::BlobCacheReadByte, found.len() as u64);
        return Ok(PinnedValue::in_block(&found, &found));
    }
    watch.count(Ticker::BlobDbCacheMiss, 1);
    begin_load(tables, loading, user_key, &index)?;
    let value = read(tables, cf, file, user_key, &index, (loading, watch))?;
    if !loading.keeps() || value.is_empty() {
        return Ok(PinnedValue::owned(value));
    }
    let kept = cache.insert(key, Priority::Low, value.len(), |frame| frame.copy_from_slice(&value));
    watch.count(Ticker::BlobDbCacheAdd, 1);
    watch.count(Ticker::BlobDbCacheBytesWrite, kept.len() as u64);
    Ok(PinnedValue::in_block(&kept, &kept))
}

/// The blob file of that number, which an entry refers to.
///
/// # Errors
/// Corruption if the version does not have it.
pub fn find(files: &BlobFiles, number: FileNumber) -> Result<&BlobFile> {
    files.get(&number).map(|state| &*state.file).ok_or_else(|| {
        Error::corruption(format!(
            "an entry refers to blob file {:06}, which the MANIFEST does not have",
            number.0
        ))
    })
}

/// Asked before the value is read from its file.
fn begin_load(tables: &TableCache, loading: Loading, user_key: &[u8], index: &BlobIndex) -> Result<()> {
    loading.check_load(&*tables.monitor().clock)?;
    if let Some(pace) = loading.pace(tables.pace()) {
        pace.request(bytes_read(loading, user_key, index), IoKind::Read);
    }
    Ok(())
}

/// The bytes that are read for the value: the whole record, as the checksums are of it, or what is not verified alone.
fn bytes_read(loading: Loading, user_key: &[u8], index: &BlobIndex) -> u64 {
    if loading.verifies() { record_len(user_key.len(), index.size) } else { index.size }
}

fn read(
    tables: &TableCache,
    cf: &ColumnFamily,
    file: &BlobFile,
    user_key: &[u8],
    index: &BlobIndex,
    (loading, watch): (Loading, Watch<'_>),
) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    let reader = tables.open_blob_file(cf, file)?;
    let timer = watch.timer();
    match loading.verifies() {
        true => reader.get(user_key, index, &mut value)?,
        false => reader.get_unverified(index, &mut value)?,
    }
    timer.micros(HistogramKind::BlobDbBlobFileReadMicros);
    timer.perf_nanos(PerfMetric::BlobReadTime);
    let bytes = bytes_read(loading, user_key, index);
    watch.count(Ticker::BlobDbBlobFileBytesRead, bytes);
    // As in RocksDB: a blob file is of no level.
    watch.count(Ticker::NonLastLevelReadCount, 1);
    watch.count(Ticker::NonLastLevelReadBytes, bytes);
    watch.perf(PerfMetric::BlobReadCount, 1);
    watch.perf(PerfMetric::BlobReadByte, bytes);
    Ok(value)
}

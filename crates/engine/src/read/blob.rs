//! Values that are not in tables: reading them from blob files, through the block cache.
//!
//! Concurrency: a blob file is opened by the first reader that needs it and stays open as long as a version holds it.

use super::PinnedValue;
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::{Error, Result};
use outcrop_cache::{Cache, CacheKey, Priority};
use outcrop_env::{Access, DirectIo, OpenRead};
use outcrop_manifest::{BlobFile, BlobFiles, FileNumber, file_name};
use outcrop_table::FillCache;
use outcrop_table::blob::{BlobIndex, BlobReader};
use std::sync::Arc;

/// The value of `user_key` that a table refers to by `index`, in one of `files`.
///
/// # Errors
/// Corruption naming the file, or if it is not one of the version's; NotSupported for references this engine does not
/// know.
pub fn fetch(
    ctx: &DbContext,
    cf: &ColumnFamily,
    files: &BlobFiles,
    user_key: &[u8],
    index: &[u8],
    fill_cache: FillCache,
) -> Result<PinnedValue> {
    let index = BlobIndex::decode(index)?;
    let file = find(files, FileNumber(index.file_number))?;
    let Some(cache) = &cf.block_cache else {
        return Ok(PinnedValue::owned(read(ctx, cf, file, user_key, &index)?));
    };
    let file_id = *file.cache_file_id.get_or_init(Cache::new_file_id);
    let key = CacheKey { file: file_id, offset: index.offset };
    if let Some(found) = cache.lookup(key) {
        return Ok(PinnedValue::in_block(&found, &found));
    }
    let value = read(ctx, cf, file, user_key, &index)?;
    if fill_cache == FillCache::No || value.is_empty() {
        return Ok(PinnedValue::owned(value));
    }
    let kept = cache.insert(key, Priority::Low, value.len(), |frame| frame.copy_from_slice(&value));
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

fn read(
    ctx: &DbContext,
    cf: &ColumnFamily,
    file: &BlobFile,
    user_key: &[u8],
    index: &BlobIndex,
) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    open(ctx, cf, file)?.get(user_key, index, &mut value)?;
    Ok(value)
}

/// The open blob file, opening it if nobody has.
pub fn open<'f>(ctx: &DbContext, cf: &ColumnFamily, file: &'f BlobFile) -> Result<&'f Arc<BlobReader>> {
    if let Some(reader) = file.reader.get() {
        return Ok(reader);
    }
    let path = file_name::blob(&ctx.path, file.number);
    let io = if ctx.options.use_direct_reads { DirectIo::Direct } else { DirectIo::Buffered };
    let opened = ctx.env.fs.open_read(&path, OpenRead { io, access: Access::Random })?;
    let reader = Arc::new(BlobReader::open(opened, cf.id())?.ordered_by(cf.comparator.clone()));
    Ok(file.reader.get_or_init(|| reader))
}

//! Opening tables. An open table stays open as long as its metadata is referenced by a live version.

use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::{Error, Result};
use outcrop_env::{Access, DirectIo, OpenRead};
use outcrop_manifest::{FileMetaData, file_name};
use outcrop_table::{TableReader, TableReaderOptions};
use std::sync::Arc;

/// The open table of `file`, opening it if nobody has.
///
/// # Errors
/// Corruption if the file's size or contents are not what the MANIFEST says; NotSupported naming a feature
/// this engine cannot read.
pub fn open<'f>(ctx: &DbContext, cf: &ColumnFamily, file: &'f FileMetaData) -> Result<&'f Arc<TableReader>> {
    if let Some(table) = file.table.get() {
        return Ok(table);
    }
    let table = open_reader(ctx, cf, file)?;
    Ok(file.table.get_or_init(|| Arc::new(table)))
}

fn open_reader(ctx: &DbContext, cf: &ColumnFamily, file: &FileMetaData) -> Result<TableReader> {
    let path = file_name::table(&ctx.path, file.number);
    let io = if ctx.options.use_direct_reads { DirectIo::Direct } else { DirectIo::Buffered };
    let read_file = ctx.env.fs.open_read(&path, OpenRead { io, access: Access::Random })?;
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
            cache: cf.block_cache.clone(),
            cache_index_and_filter_blocks: table_options.cache_index_and_filter_blocks,
            expected_unique_id: file.unique_id,
            largest_seqno: file.largest_seq,
        },
    )?;
    check_supported(&path.display().to_string(), &reader, cf)?;
    Ok(reader)
}

/// Refuses by name what this engine would misread.
fn check_supported(path: &str, reader: &TableReader, cf: &ColumnFamily) -> Result<()> {
    let properties = reader.properties();
    if properties.num_range_deletions > 0 {
        return Err(Error::not_supported(format!("{path}: the table holds range tombstones (DeleteRange)")));
    }
    if properties.merge_operands > 0 && cf.merge_operator.is_none() {
        return Err(Error::invalid_argument(format!(
            "{path}: the table holds merge operands of operator {:?}; open the column family {} with it",
            properties.merge_operator_name,
            cf.name()
        )));
    }
    Ok(())
}

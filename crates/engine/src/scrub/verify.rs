//! Verifying a file: it is opened beside the caches, and read block by block.

use super::file::File;
use super::options::DamageInfo;
use super::scrubber::Rest;
use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::keys::user_key;
use outcrop_base::{Error, Result};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::TableFile;
use outcrop_table::blob::{self, BlobReader};
use outcrop_table::{TableReader, TableReaderOptions};
use std::path::PathBuf;
use std::sync::Arc;

impl File {
    /// Its path.
    pub fn path(&self, ctx: &DbContext) -> PathBuf {
        match self {
            File::Table(_, _, file) => file.path(&ctx.path),
            File::Blobs(_, file) => file.path(&ctx.path),
        }
    }

    /// Opens it beside the table cache: what is open there was verified when it was opened, not now.
    pub fn open(&self, ctx: &DbContext) -> Result<Rest> {
        let path = self.path(ctx);
        let open = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let opened = ctx.env.fs.open_read(&path, open)?;
        let expected = match self {
            File::Table(_, _, file) => file.size,
            File::Blobs(_, file) => blob::file_len(file.total_bytes),
        };
        if opened.size() != expected {
            let (size, path) = (opened.size(), path.display());
            return Err(Error::corruption(format!(
                "{path}: size is {size} bytes, the MANIFEST says {expected}"
            )));
        }
        match self {
            File::Table(cf, _, file) => {
                let table = Arc::new(TableReader::open(opened, reader_options(cf, file))?);
                Ok(Rest::Table(table.walk()?))
            }
            File::Blobs(cf, _) => Ok(Rest::Blobs(BlobReader::open(opened, cf.id().0)?, BlobReader::FIRST)),
        }
    }

    /// The damage as listeners are told of it.
    pub fn damage(&self, ctx: &DbContext, error: &Error) -> DamageInfo {
        let (cf, level, range) = match self {
            File::Table(cf, level, file) => {
                let range = (user_key(&file.smallest).to_vec(), user_key(&file.largest).to_vec());
                (cf, Some(*level), Some(range))
            }
            File::Blobs(cf, _) => (cf, None, None),
        };
        DamageInfo {
            cf_name: cf.name().to_string(),
            path: self.path(ctx),
            number: self.number().0,
            level,
            range,
            error: error.clone(),
        }
    }
}

/// How a table is opened whose blocks come from the file.
pub fn reader_options(cf: &ColumnFamily, file: &TableFile) -> TableReaderOptions {
    TableReaderOptions {
        expected_unique_id: file.unique_id,
        largest_seqno: file.largest_seq,
        ..TableReaderOptions::uncached(cf.comparator.clone())
    }
}

impl Rest {
    /// The bytes of the next block or record, and what is wrong with it; `None` at the end.
    pub fn verify_next(&mut self) -> Option<(u64, Result<()>)> {
        match self {
            Rest::Table(walk) => walk.verify_next(),
            Rest::Blobs(reader, offset) => match reader.verify_record(*offset) {
                Ok(None) => None,
                Ok(Some(end)) => {
                    let bytes = end - *offset;
                    *offset = end;
                    Some((bytes, Ok(())))
                }
                Err(error) => Some((0, Err(error))),
            },
        }
    }

    /// Reads what was read last again.
    pub fn verify_again(&mut self) -> Result<()> {
        match self {
            Rest::Table(walk) => walk.verify_again(),
            Rest::Blobs(reader, offset) => match reader.verify_record(*offset)? {
                Some(end) => {
                    *offset = end;
                    Ok(())
                }
                None => Ok(()),
            },
        }
    }
}

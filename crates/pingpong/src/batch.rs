//! Write batches and tables made outside a database: lists of changes.

use crate::call::{Outcome, c_string, call, parts, with_error};
use crate::database::Handle;
use crate::library::{Api, Errptr, Object};
use crate::options::Options;

/// One change of a write.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the names are RocksDB's")]
pub enum Change<'k> {
    Put(&'k [u8], &'k [u8]),
    Merge(&'k [u8], &'k [u8]),
    Delete(&'k [u8]),
    SingleDelete(&'k [u8]),
    DeleteRange(&'k [u8], &'k [u8]),
}

/// A write batch.
pub struct Batch<'a> {
    pub(crate) api: &'a Api,
    /// The object, as long as this lives.
    pub(crate) object: Object,
}

impl<'a> Batch<'a> {
    /// An empty batch.
    pub fn new(api: &'a Api) -> Outcome<Batch<'a>> {
        // SAFETY: no arguments.
        Ok(Batch { api, object: unsafe { call!(api, rocksdb_writebatch_create()) } })
    }

    /// The batch of these bytes, in RocksDB's wire form.
    pub fn from_bytes(api: &'a Api, bytes: &[u8]) -> Outcome<Batch<'a>> {
        let (b, bl) = parts(bytes);
        // SAFETY: a live slice, which is copied.
        Ok(Batch { api, object: unsafe { call!(api, rocksdb_writebatch_create_from(b, bl)) } })
    }

    /// Adds a change.
    pub fn add(&mut self, handle: Handle, change: Change<'_>) -> Outcome<()> {
        let (api, batch, cf) = (self.api, self.object, handle.0);
        // SAFETY: live objects and slices.
        unsafe {
            match change {
                Change::Put(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_writebatch_put_cf(batch, cf, k, kl, v, vl));
                }
                Change::Merge(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_writebatch_merge_cf(batch, cf, k, kl, v, vl));
                }
                Change::Delete(key) => {
                    let (k, kl) = parts(key);
                    call!(api, rocksdb_writebatch_delete_cf(batch, cf, k, kl));
                }
                Change::SingleDelete(key) => {
                    let (k, kl) = parts(key);
                    call!(api, rocksdb_writebatch_singledelete_cf(batch, cf, k, kl));
                }
                Change::DeleteRange(begin, end) => {
                    let ((b, bl), (k, kl)) = (parts(begin), parts(end));
                    call!(api, rocksdb_writebatch_delete_range_cf(batch, cf, b, bl, k, kl));
                }
            }
        }
        Ok(())
    }

    /// Adds bytes for the WAL.
    pub fn add_log_data(&mut self, data: &[u8]) -> Outcome<()> {
        let (b, bl) = parts(data);
        // SAFETY: a live object and slice.
        unsafe { call!(self.api, rocksdb_writebatch_put_log_data(self.object, b, bl)) };
        Ok(())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.api.rocksdb_writebatch_destroy {
            // SAFETY: ours, and destroyed once.
            unsafe { destroy(self.object) }
        }
    }
}

/// Writes a table outside a database.
pub fn write_table<'k>(
    api: &Api,
    path: &str,
    options: &Options<'_>,
    changes: impl Iterator<Item = Change<'k>>,
) -> Outcome<()> {
    let path = c_string(path)?;
    // SAFETY: live objects and slices; writer and environment options are destroyed after their one use.
    unsafe {
        let env = call!(api, rocksdb_envoptions_create());
        let writer = call!(api, rocksdb_sstfilewriter_create(env, options.object));
        let mut result = with_error(api, |e| {
            call!(api, rocksdb_sstfilewriter_open(writer, path.as_ptr(), e));
            Ok(())
        });
        for change in changes {
            result = result.and_then(|()| with_error(api, |e| add_to_table(api, writer, change, e)));
        }
        result = result.and_then(|()| {
            with_error(api, |e| {
                call!(api, rocksdb_sstfilewriter_finish(writer, e));
                Ok(())
            })
        });
        call!(api, rocksdb_sstfilewriter_destroy(writer));
        call!(api, rocksdb_envoptions_destroy(env));
        result
    }
}

/// Adds a change to a table that is being written.
///
/// # Safety
/// `writer` is a live table writer.
unsafe fn add_to_table(api: &Api, writer: Object, change: Change<'_>, e: Errptr) -> Outcome<()> {
    // SAFETY: the caller's promise; live slices.
    unsafe {
        match change {
            Change::Put(key, value) => {
                let ((k, kl), (v, vl)) = (parts(key), parts(value));
                call!(api, rocksdb_sstfilewriter_put(writer, k, kl, v, vl, e));
            }
            Change::Merge(key, value) => {
                let ((k, kl), (v, vl)) = (parts(key), parts(value));
                call!(api, rocksdb_sstfilewriter_merge(writer, k, kl, v, vl, e));
            }
            Change::Delete(key) => {
                let (k, kl) = parts(key);
                call!(api, rocksdb_sstfilewriter_delete(writer, k, kl, e));
            }
            Change::DeleteRange(begin, end) => {
                let ((b, bl), (k, kl)) = (parts(begin), parts(end));
                call!(api, rocksdb_sstfilewriter_delete_range(writer, b, bl, k, kl, e));
            }
            Change::SingleDelete(_) => return Err("tables are written without single deletes".into()),
        }
    }
    Ok(())
}

//! Iterators of a database.

use crate::call::{Outcome, call, parts, with_error};
use crate::library::{Api, Object};

/// An iterator. It must be dropped before its database is closed and before its snapshot is released.
pub struct Iter<'a> {
    pub(crate) api: &'a Api,
    pub(crate) object: Object,
    pub(crate) read: Object,
    pub(crate) _bounds: [Option<Box<[u8]>>; 2],
}

impl Iter<'_> {
    /// At a row.
    pub fn valid(&self) -> Outcome<bool> {
        // SAFETY: a live iterator.
        Ok(unsafe { call!(self.api, rocksdb_iter_valid(self.object)) } != 0)
    }

    /// Moves.
    pub fn seek_to_first(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator.
        unsafe { call!(self.api, rocksdb_iter_seek_to_first(self.object)) };
        Ok(())
    }

    /// Moves.
    pub fn seek_to_last(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator.
        unsafe { call!(self.api, rocksdb_iter_seek_to_last(self.object)) };
        Ok(())
    }

    /// Moves to the first row at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Outcome<()> {
        let (k, kl) = parts(key);
        // SAFETY: a live iterator and slice.
        unsafe { call!(self.api, rocksdb_iter_seek(self.object, k, kl)) };
        Ok(())
    }

    /// Moves to the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Outcome<()> {
        let (k, kl) = parts(key);
        // SAFETY: a live iterator and slice.
        unsafe { call!(self.api, rocksdb_iter_seek_for_prev(self.object, k, kl)) };
        Ok(())
    }

    /// Moves on; only at a row.
    #[allow(clippy::should_implement_trait, reason = "it is a cursor, as in the C API")]
    pub fn next(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator at a row.
        unsafe { call!(self.api, rocksdb_iter_next(self.object)) };
        Ok(())
    }

    /// Moves back; only at a row.
    pub fn prev(&mut self) -> Outcome<()> {
        // SAFETY: a live iterator at a row.
        unsafe { call!(self.api, rocksdb_iter_prev(self.object)) };
        Ok(())
    }

    /// Key and value of the row it is at.
    pub fn row(&self) -> Outcome<(&[u8], &[u8])> {
        let (mut kl, mut vl) = (0, 0);
        // SAFETY: a live iterator at a row; the slices are valid until it moves, which borrowing forbids.
        unsafe {
            let key = call!(self.api, rocksdb_iter_key(self.object, &raw mut kl));
            let value = call!(self.api, rocksdb_iter_value(self.object, &raw mut vl));
            Ok((std::slice::from_raw_parts(key.cast(), kl), std::slice::from_raw_parts(value.cast(), vl)))
        }
    }

    /// Why it is at no row, if that was an error.
    pub fn status(&self) -> Outcome<()> {
        with_error(self.api, |e| {
            // SAFETY: a live iterator.
            unsafe { call!(self.api, rocksdb_iter_get_error(self.object, e)) };
            Ok(())
        })
    }
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, and destroyed once.
        unsafe {
            if let Some(destroy) = self.api.rocksdb_iter_destroy {
                destroy(self.object);
            }
            if let Some(destroy) = self.api.rocksdb_readoptions_destroy {
                destroy(self.read);
            }
        }
    }
}

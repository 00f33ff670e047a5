//! Lookups of many keys in one call, in the best way that the library has.
//!
//! ```text
//! batched   rocksdb_batched_multi_get_cf   values stay where they are, pinned       what RocksDB recommends
//! copied    rocksdb_multi_get              every value is copied into an allocation of its own
//! single    rocksdb_get_pinned             key by key: the library (LevelDB) has neither
//! ```
//! Invariant: buffers are allocated once for each thread; a lookup allocates nothing here.
//! Next: `database.rs`.

use crate::Database;
use crate::database::take_error;
use crate::ffi::{Bytes, Object, RocksApi};
use libc::{c_char, size_t};
use std::ptr::null_mut;

/// How a library looks up many keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In one call that pins values.
    Batched,
    /// In one call that copies values.
    Copied,
    /// One by one.
    Single,
}

impl Way {
    /// The best way of `db` not above `batched`.
    pub fn of(db: &Database, batched: bool) -> Way {
        match &db.api {
            RocksApi { rocksdb_batched_multi_get_cf: Some(_), .. } if batched && db.default_cf.is_some() => {
                Way::Batched
            }
            RocksApi { rocksdb_multi_get: Some(_), .. } => Way::Copied,
            _ => Way::Single,
        }
    }

    /// A note for the reader, if it is not the way that was asked for.
    pub fn note(self, batched: bool) -> Option<String> {
        match self {
            Way::Batched => None,
            Way::Copied if !batched => None,
            Way::Copied => Some("values were copied: the library has no batched multi_get".to_string()),
            Way::Single => Some("keys were looked up one by one: the library has no multi_get".to_string()),
        }
    }
}

/// Buffers for lookups of a fixed number of keys.
pub struct MultiGet<'a> {
    db: &'a Database,
    way: Way,
    key_size: usize,
    /// The keys, one after the other.
    keys: Vec<u8>,
    starts: Vec<Bytes>,
    lens: Vec<size_t>,
    /// Pinned or copied values.
    values: Vec<Object>,
    value_lens: Vec<size_t>,
    errors: Vec<*mut c_char>,
}

impl<'a> MultiGet<'a> {
    /// Lookups of `count` keys of `key_size` bytes each.
    pub fn new(db: &'a Database, batched: bool, count: usize, key_size: usize) -> MultiGet<'a> {
        let keys = vec![0; count * key_size];
        MultiGet {
            db,
            way: Way::of(db, batched),
            key_size,
            starts: keys.chunks_exact(key_size).map(|key| key.as_ptr().cast()).collect(),
            keys,
            lens: vec![key_size; count],
            values: vec![null_mut(); count],
            value_lens: vec![0; count],
            errors: vec![null_mut(); count],
        }
    }

    /// The keys of the next lookup, to be written to.
    pub fn keys(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.keys.chunks_exact_mut(self.key_size)
    }

    /// Looks the keys up; gives how many are there. Their values are touched.
    ///
    /// # Errors
    /// The engine's message for the first key that failed.
    pub fn get(&mut self) -> Result<u64, String> {
        match self.way {
            Way::Batched => self.batched(),
            Way::Copied => self.copied(),
            Way::Single => {
                let keys = self.keys.chunks_exact(self.key_size);
                keys.map(|key| self.db.get(key).map(|len| u64::from(len.is_some()))).sum()
            }
        }
    }

    #[allow(unsafe_code, reason = "each call is one C function with live objects")]
    fn batched(&mut self) -> Result<u64, String> {
        let (db, mut found) = (self.db, 0);
        let api = &db.api;
        let (get, cf) = (api.rocksdb_batched_multi_get_cf, db.default_cf.as_ref());
        let (get, cf) = get.zip(cf).expect("the way was chosen since the library has both");
        // SAFETY: live objects; the arrays have one place for each key; each value is destroyed after its use.
        unsafe {
            let (keys, lens) = (self.starts.as_ptr(), self.lens.as_ptr());
            let (values, errors) = (self.values.as_mut_ptr(), self.errors.as_mut_ptr());
            get(db.db.0, db.read.0, cf.0, self.lens.len(), keys, lens, values, errors, false);
            for value in &mut self.values {
                let value = std::mem::replace(value, null_mut());
                if !value.is_null() {
                    found += 1;
                    let mut len = 0;
                    let bytes = (api.rocksdb_pinnableslice_value)(value, &raw mut len);
                    if len > 0 {
                        std::hint::black_box(*bytes);
                    }
                    (api.rocksdb_pinnableslice_destroy)(value);
                }
            }
        }
        self.first_error().map(|()| found)
    }

    #[allow(unsafe_code, reason = "each call is one C function with live objects")]
    fn copied(&mut self) -> Result<u64, String> {
        let (db, mut found) = (self.db, 0);
        let get = db.api.rocksdb_multi_get.expect("the way was chosen since the library has it");
        // SAFETY: live objects; the arrays have one place for each key; each value is freed once.
        unsafe {
            let (keys, lens) = (self.starts.as_ptr(), self.lens.as_ptr());
            let (values, errors) = (self.values.as_mut_ptr().cast(), self.errors.as_mut_ptr());
            let value_lens = self.value_lens.as_mut_ptr();
            get(db.db.0, db.read.0, self.lens.len(), keys, lens, values, value_lens, errors);
            for (value, len) in self.values.iter_mut().zip(&self.value_lens) {
                let value = std::mem::replace(value, null_mut());
                if !value.is_null() {
                    found += 1;
                    if *len > 0 {
                        std::hint::black_box(*value.cast::<u8>());
                    }
                    (db.api.rocksdb_free)(value);
                }
            }
        }
        self.first_error().map(|()| found)
    }

    /// The first message, with all of them freed.
    fn first_error(&mut self) -> Result<(), String> {
        let api = &self.db.api;
        let taken = self.errors.iter_mut().map(|error| take_error(api, std::mem::replace(error, null_mut())));
        taken.fold(Ok(()), Result::and)
    }
}

//! `rocksdb_slicetransform_*`: prefix extractors, RocksDB's own and those made of callbacks.
//!
//! Ownership as in RocksDB: options take one over; its destructor is called once nothing uses it.
//!
//! Concurrency: callbacks are called from any thread, several at once, as RocksDB calls them. A callback that unwinds is the panic of the C
//! function that called it, or of the background job.

use crate::callbacks::{Destructor, Name, State, bytes};
use crate::memory::{give_back, hand_out};
use libc::{c_char, c_uchar, c_void, size_t};
use outcrop::{PrefixExtractor, UserPrefixExtractor};
use std::sync::Arc;

pub struct rocksdb_slicetransform_t(pub(crate) PrefixExtractor);

type Transform =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t, *mut size_t) -> *mut c_char>;
type InDomain = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, size_t) -> c_uchar>;

/// A prefix extractor of the caller's.
struct CPrefixExtractor {
    state: State,
    transform: Transform,
    in_domain: InDomain,
}

impl UserPrefixExtractor for CPrefixExtractor {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn in_domain(&self, key: &[u8]) -> bool {
        let (start, len) = bytes(key);
        let (Some(in_domain), Some(_)) = (self.in_domain, self.transform) else { return false };
        // SAFETY: the contract of the C API: the function reads the key and nothing else.
        unsafe { in_domain(self.state.pointer, start, len) != 0 }
    }

    fn transform<'k>(&'k self, key: &'k [u8]) -> &'k [u8] {
        let (start, len) = bytes(key);
        let Some(transform) = self.transform else { return &[] };
        let mut prefix_len = 0;
        // SAFETY: as above; it sets the length.
        let prefix = unsafe { transform(self.state.pointer, start, len, &raw mut prefix_len) };
        if prefix.is_null() || prefix_len == 0 {
            return &[];
        }
        // SAFETY: the contract of the C API: a part of the key, or bytes that live as long as the state does.
        unsafe { std::slice::from_raw_parts(prefix.cast(), prefix_len) }
    }
}

/// A prefix extractor made of callbacks. Where one is null, which RocksDB would call, no key has a prefix.
///
/// Headers up to RocksDB 10 had an argument `in_range` in place of `name`, and `name` after it. Bindings pass null for `in_range`,
/// which no caller passes for a name: `older_name` is looked at only then, and no caller of today passes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Destructor,
    transform: Transform,
    in_domain: InDomain,
    name: Name,
    older_name: Name,
) -> *mut rocksdb_slicetransform_t {
    boundary!({
        let state = State::new(state, destructor, name.or(older_name));
        let extractor = CPrefixExtractor { state, transform, in_domain };
        hand_out(rocksdb_slicetransform_t(PrefixExtractor::User(Arc::new(extractor))))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_fixed_prefix(len: size_t) -> *mut rocksdb_slicetransform_t {
    boundary!(hand_out(rocksdb_slicetransform_t(PrefixExtractor::Fixed(len))))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_noop() -> *mut rocksdb_slicetransform_t {
    boundary!(hand_out(rocksdb_slicetransform_t(PrefixExtractor::Noop)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_slicetransform_destroy(transform: *mut rocksdb_slicetransform_t) {
    boundary!(give_back(transform))
}

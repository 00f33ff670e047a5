//! `rocksdb_iter_*`.

use crate::memory::{give_back, report, slice};
use libc::{c_char, c_uchar, size_t};
use outcrop::{DbIterator, Error};

pub struct rocksdb_iterator_t {
    iter: Option<DbIterator>,
    /// Why there is no iterator.
    failed: Option<Error>,
}

impl rocksdb_iterator_t {
    pub(crate) fn new(iter: outcrop::Result<DbIterator>) -> rocksdb_iterator_t {
        match iter {
            Ok(iter) => rocksdb_iterator_t { iter: Some(iter), failed: None },
            Err(error) => rocksdb_iterator_t { iter: None, failed: Some(error) },
        }
    }

    #[inline]
    fn valid(&self) -> bool {
        self.iter.as_ref().is_some_and(DbIterator::valid)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_destroy(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the C API.
    unsafe { give_back(iter) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_valid(iter: *const rocksdb_iterator_t) -> c_uchar {
    // SAFETY: the contract of the C API.
    c_uchar::from(unsafe { &*iter }.valid())
}

/// Moves without an argument; `next` and `prev` of an iterator that is not valid do nothing.
macro_rules! moves {
    ($($name:ident $method:ident $needs_valid:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *mut rocksdb_iterator_t) {
            // SAFETY: the contract of the C API.
            let this = unsafe { &mut *iter };
            if $needs_valid && !this.valid() {
                return;
            }
            if let Some(iter) = &mut this.iter {
                iter.$method();
            }
        }
    )*};
}

moves! {
    rocksdb_iter_seek_to_first seek_to_first false;
    rocksdb_iter_seek_to_last seek_to_last false;
    rocksdb_iter_next next true;
    rocksdb_iter_prev prev true;
}

macro_rules! seeks {
    ($($name:ident $method:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *mut rocksdb_iterator_t, key: *const c_char, len: size_t) {
            // SAFETY: the contract of the C API.
            unsafe {
                if let Some(iter) = &mut (*iter).iter {
                    iter.$method(slice(key, len));
                }
            }
        }
    )*};
}

seeks! {
    rocksdb_iter_seek seek;
    rocksdb_iter_seek_for_prev seek_for_prev;
}

/// Key or value; null with length 0 if the iterator is not valid.
macro_rules! reads {
    ($($name:ident $method:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *const rocksdb_iterator_t, len: *mut size_t) -> *const c_char {
            // SAFETY: the contract of the C API; the bytes stay valid until the iterator moves.
            unsafe {
                let this = &*iter;
                match &this.iter {
                    Some(iter) if iter.valid() => {
                        let bytes = iter.$method();
                        *len = bytes.len();
                        bytes.as_ptr().cast()
                    }
                    _ => {
                        *len = 0;
                        std::ptr::null()
                    }
                }
            }
        }
    )*};
}

reads! {
    rocksdb_iter_key key;
    rocksdb_iter_value value;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: *mut *mut c_char) {
    // SAFETY: the contract of the C API.
    unsafe {
        let this = &*iter;
        let status = match (&this.iter, &this.failed) {
            (Some(iter), _) => iter.status(),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(()),
        };
        report(errptr, status);
    }
}

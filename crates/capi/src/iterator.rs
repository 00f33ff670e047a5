//! `rocksdb_iter_*`.

use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, report, slice};
use crate::read_options::rocksdb_readoptions_t;
use crate::reads::rocksdb_slice_t;
use libc::{c_char, c_uchar, size_t};
use outcrop::{ColumnFamilyHandle, DbIterator, Error, ReadOptions};

pub struct rocksdb_iterator_t {
    iter: Option<DbIterator>,
    /// Why there is no iterator.
    failed: Option<Error>,
    /// What it was made from, to make it anew. The database outlives its iterators.
    db: *const rocksdb_t,
    cf: ColumnFamilyHandle,
    options: ReadOptions,
    tailing: bool,
}

impl rocksdb_iterator_t {
    pub(crate) fn new(
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        let made = options.get().and_then(|options| db.0.iter_cf(cf, options));
        let (iter, failed) = match made {
            Ok(iter) => (Some(iter), None),
            Err(error) => (None, Some(error)),
        };
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t { iter, failed, db, cf: cf.clone(), options, tailing }
    }

    /// `iter`, which was made from the rest.
    pub(crate) fn of(
        iter: DbIterator,
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t { iter: Some(iter), failed: None, db, cf: cf.clone(), options, tailing }
    }

    /// Makes the iterator see what the database holds now. Not positioned.
    unsafe fn refresh(&mut self) -> outcrop::Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // As in RocksDB a refreshed iterator reads the present, whatever snapshot it was made with.
        self.options.snapshot = None;
        // SAFETY: the contract of the C API: the database outlives its iterators.
        self.iter = Some(unsafe { &*self.db }.0.iter_cf(&self.cf, &self.options)?);
        Ok(())
    }

    /// A tailing iterator sees the present each time it is positioned.
    #[inline]
    unsafe fn follow(&mut self) {
        if self.tailing {
            // SAFETY: as for `refresh`.
            if let Err(error) = unsafe { self.refresh() } {
                (self.iter, self.failed) = (None, Some(error));
            }
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
            if $needs_valid {
                if !this.valid() {
                    return;
                }
            } else {
                // SAFETY: the contract of the C API.
                unsafe { this.follow() };
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
    rocksdb_iter_prev prev true;
}

/// As the moves above; a tailing iterator goes on in what the database holds now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_next(iter: *mut rocksdb_iterator_t) {
    // SAFETY: the contract of the C API.
    let this = unsafe { &mut *iter };
    if !this.valid() {
        return;
    }
    if this.tailing {
        let here = this.iter.as_ref().map(|iter| iter.key().to_vec()).unwrap_or_default();
        // SAFETY: the contract of the C API.
        unsafe { this.follow() };
        if let Some(iter) = &mut this.iter {
            iter.seek(&here);
            if iter.valid() && iter.key() == here {
                iter.next();
            }
        }
    } else if let Some(iter) = &mut this.iter {
        iter.next();
    }
}

macro_rules! seeks {
    ($($name:ident $method:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *mut rocksdb_iterator_t, key: *const c_char, len: size_t) {
            // SAFETY: the contract of the C API.
            unsafe {
                let this = &mut *iter;
                this.follow();
                if let Some(iter) = &mut this.iter {
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

/// Makes the iterator see the present; it has to be positioned then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_refresh(iter: *const rocksdb_iterator_t, errptr: Errptr) {
    // SAFETY: the contract of the C API, whose const does not mean that the iterator stays as it is.
    unsafe { report(errptr, (*iter.cast_mut()).refresh()) };
}

macro_rules! slices {
    ($($name:ident $function:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *const rocksdb_iterator_t) -> rocksdb_slice_t {
            let mut size = 0;
            // SAFETY: the contract of the C API.
            let data = unsafe { $function(iter, &mut size) };
            rocksdb_slice_t { data, size }
        }
    )*};
}

slices! {
    rocksdb_iter_key_slice rocksdb_iter_key;
    rocksdb_iter_value_slice rocksdb_iter_value;
    rocksdb_iter_timestamp_slice rocksdb_iter_timestamp;
}

/// Empty: there are no user-defined timestamps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_timestamp(
    _iter: *const rocksdb_iterator_t,
    len: *mut size_t,
) -> *const c_char {
    // SAFETY: the contract of the C API.
    unsafe { *len = 0 };
    c"".as_ptr()
}

//! `rocksdb_iter_*`.

use crate::boundary::{Told, as_result};
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
    cf: Option<ColumnFamilyHandle>,
    options: ReadOptions,
    tailing: bool,
}

impl rocksdb_iterator_t {
    pub(crate) fn new(
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        // The caller has no place for an error, and expects an iterator that has it.
        let made = as_result("rocksdb_create_iterator", || db.0.iter_cf(cf, options.get()?));
        let (iter, failed) = match made {
            Ok(iter) => (Some(iter), None),
            Err(error) => (None, Some(error)),
        };
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t { iter, failed, db, cf: Some(cf.clone()), options, tailing }
    }

    /// `iter`, which was made from the rest.
    pub(crate) fn of(
        iter: DbIterator,
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t { iter: Some(iter), failed: None, db, cf: Some(cf.clone()), options, tailing }
    }

    /// One that is never valid: its error says why.
    pub(crate) fn failed(error: Error) -> rocksdb_iterator_t {
        let options = ReadOptions::default();
        rocksdb_iterator_t {
            iter: None,
            failed: Some(error),
            db: std::ptr::null(),
            cf: None,
            options,
            tailing: false,
        }
    }

    /// Makes the iterator see what the database holds now. Not positioned.
    unsafe fn refresh(&mut self) -> outcrop::Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // As in RocksDB a refreshed iterator reads the present, whatever snapshot it was made with.
        self.options.snapshot = None;
        if let Some(cf) = &self.cf {
            // SAFETY: the contract of the C API: the database outlives its iterators.
            self.iter = Some(unsafe { &*self.db }.0.iter_cf(cf, &self.options)?);
        }
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

impl Told for *mut rocksdb_iterator_t {
    /// The iterator is where the panic left it, so it is given up.
    unsafe fn tell(self, error: &Error) {
        // SAFETY: the caller's contract.
        let this = unsafe { &mut *self };
        this.failed = Some(error.clone());
        this.iter = None;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_destroy(iter: *mut rocksdb_iterator_t) {
    boundary!(give_back(iter))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_valid(iter: *const rocksdb_iterator_t) -> c_uchar {
    boundary!(c_uchar::from((*iter).valid()))
}

/// Moves without an argument; `next` and `prev` of an iterator that is not valid do nothing.
macro_rules! moves {
    ($($name:ident $method:ident $needs_valid:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *mut rocksdb_iterator_t) {
            boundary!(iter, {
                let this = &mut *iter;
                if $needs_valid {
                    if !this.valid() {
                        return;
                    }
                } else {
                    this.follow();
                }
                if let Some(iter) = &mut this.iter {
                    iter.$method();
                }
            })
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
    boundary!(iter, {
        let this = &mut *iter;
        if !this.valid() {
            return;
        }
        if this.tailing {
            let here = this.iter.as_ref().map(|iter| iter.key().to_vec()).unwrap_or_default();
            this.follow();
            if let Some(iter) = &mut this.iter {
                iter.seek(&here);
                if iter.valid() && iter.key() == here {
                    iter.next();
                }
            }
        } else if let Some(iter) = &mut this.iter {
            iter.next();
        }
    })
}

macro_rules! seeks {
    ($($name:ident $method:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *mut rocksdb_iterator_t, key: *const c_char, len: size_t) {
            boundary!(iter, {
                let this = &mut *iter;
                this.follow();
                if let Some(iter) = &mut this.iter {
                    iter.$method(slice(key, len));
                }
            })
        }
    )*};
}

seeks! {
    rocksdb_iter_seek seek;
    rocksdb_iter_seek_for_prev seek_for_prev;
}

/// Key or value; null with length 0 if the iterator is not valid. The bytes stay valid until it moves.
macro_rules! reads {
    ($($name:ident $method:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *const rocksdb_iterator_t, len: *mut size_t) -> *const c_char {
            boundary!({
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
            })
        }
    )*};
}

reads! {
    rocksdb_iter_key key;
    rocksdb_iter_value value;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: *mut *mut c_char) {
    boundary!(errptr, {
        let this = &*iter;
        let status = match (&this.iter, &this.failed) {
            (Some(iter), _) => iter.status(),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(()),
        };
        report(errptr, status);
    })
}

/// Makes the iterator see the present; it has to be positioned then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_refresh(iter: *const rocksdb_iterator_t, errptr: Errptr) {
    boundary!(errptr, {
        // The header's const does not mean that the iterator stays as it is.
        report(errptr, (*iter.cast_mut()).refresh());
    })
}

macro_rules! slices {
    ($($name:ident $function:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *const rocksdb_iterator_t) -> rocksdb_slice_t {
            boundary!({
                let mut size = 0;
                let data = $function(iter, &mut size);
                rocksdb_slice_t { data, size }
            })
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
    boundary!({
        *len = 0;
        c"".as_ptr()
    })
}

//! `rocksdb_iter_*`.

use crate::boundary::{ErrorSink, as_result};
use crate::db::rocksdb_t;
use crate::memory::{Errptr, give_back, report, slice};
use crate::read_options::rocksdb_readoptions_t;
use crate::reads::rocksdb_slice_t;
use libc::{c_char, c_uchar, size_t};
use outcrop::{
    ColumnFamilyHandle, Cursor, Error, Overlay, ReadOptions, RowSource, Snapshot, split_ttl_value,
};
use std::cell::RefCell;

/// Bytes of the time at the end of a value.
const STAMP_LEN: usize = 4;

pub struct rocksdb_iterator_t {
    iter: Option<Cursor>,
    /// In its place one with a batch laid over it.
    over: Option<Box<Overlay<rocksdb_iterator_t>>>,
    /// Why there is no iterator.
    failed: Option<Error>,
    /// It could not be made anew when it was positioned last: it is tried again when it is positioned next.
    unfollowed: bool,
    /// The database it was made from, to make it anew. The database outlives its iterators.
    db: *const rocksdb_t,
    cf: Option<ColumnFamilyHandle>,
    options: ReadOptions,
    tailing: bool,
    /// Its values end with times, which are not shown.
    is_stamped: bool,
    /// The timestamp shown last, and the stored version: kept for as long as it does not move.
    shown: RefCell<(Vec<u8>, Vec<u8>)>,
    /// Under `pin_data`: the keys and values given so far, which stay where they are as long as the iterator lives.
    pinned: Option<RefCell<Vec<Box<[u8]>>>>,
}

impl rocksdb_iterator_t {
    pub(crate) fn new(
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        // The caller has no place for an error, and expects an iterator that has it.
        let made = as_result("rocksdb_create_iterator", || db.0.cursor_cf_with(cf, options.get()?));
        let (iter, failed) = match made {
            Ok(iter) => (Some(iter), None),
            Err(error) => (None, Some(error)),
        };
        let pinned = options.pins_data().then(RefCell::default);
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t {
            iter,
            over: None,
            failed,
            unfollowed: false,
            db,
            cf: Some(cf.clone()),
            options,
            tailing,
            is_stamped: db.1.is_some(),
            shown: RefCell::default(),
            pinned,
        }
    }

    /// `iter`, which was made from the rest.
    pub(crate) fn of(
        iter: Cursor,
        db: &rocksdb_t,
        cf: &ColumnFamilyHandle,
        options: &rocksdb_readoptions_t,
    ) -> rocksdb_iterator_t {
        let pinned = options.pins_data().then(RefCell::default);
        let (tailing, options) = (options.tailing, options.get().cloned().unwrap_or_default());
        rocksdb_iterator_t {
            iter: Some(iter),
            over: None,
            failed: None,
            unfollowed: false,
            db,
            cf: Some(cf.clone()),
            options,
            tailing,
            is_stamped: db.1.is_some(),
            shown: RefCell::default(),
            pinned,
        }
    }

    /// One with a batch laid over it.
    pub(crate) fn over(over: Overlay<rocksdb_iterator_t>) -> rocksdb_iterator_t {
        let options = ReadOptions::default();
        let over = Some(Box::new(over));
        rocksdb_iterator_t {
            iter: None,
            over,
            failed: None,
            unfollowed: false,
            db: std::ptr::null(),
            cf: None,
            options,
            tailing: false,
            is_stamped: false,
            shown: RefCell::default(),
            pinned: None,
        }
    }

    /// Where `bytes`, which it shows, stay for as long as they are to.
    fn lasting(&self, bytes: &[u8]) -> *const u8 {
        let Some(pinned) = &self.pinned else { return bytes.as_ptr() };
        let mut pinned = pinned.borrow_mut();
        // Asked for again: of the last two one is the key, one the value.
        match pinned.iter().rev().take(2).position(|known| **known == *bytes) {
            Some(back) => pinned[pinned.len() - 1 - back].as_ptr(),
            None => {
                pinned.push(bytes.into());
                pinned.last().map_or(bytes.as_ptr(), |copy| copy.as_ptr())
            }
        }
    }

    /// Makes the iterator see what the database holds now. Not positioned.
    unsafe fn refresh(&mut self) -> outcrop::Result<()> {
        // As in RocksDB it reads the present, whatever snapshot it was made with.
        // SAFETY: the caller's contract.
        unsafe { self.refresh_at(None) }
    }

    /// Makes the iterator see the moment of a snapshot of its database, the present for none. Not positioned.
    ///
    /// # Safety
    /// As the C API: the database is still open.
    ///
    /// # Errors
    /// Why there is no iterator; NotSupported over a batch.
    pub unsafe fn refresh_at(&mut self, snapshot: Option<Snapshot>) -> outcrop::Result<()> {
        if let Some(error) = self.failed.as_ref().filter(|_| !self.unfollowed) {
            return Err(error.clone());
        }
        if self.over.is_some() {
            return Err(Error::not_supported("Refresh() is not supported"));
        }
        self.options.snapshot = snapshot;
        if let Some(cf) = &self.cf {
            // SAFETY: the contract of the C API: the database outlives its iterators.
            self.iter = Some(unsafe { &*self.db }.0.cursor_cf_with(cf, &self.options)?);
            (self.failed, self.unfollowed) = (None, false);
        }
        Ok(())
    }

    /// A tailing iterator sees the present each time it is positioned.
    #[inline]
    unsafe fn follow(&mut self) {
        if self.tailing {
            // SAFETY: as for `refresh`.
            if let Err(error) = unsafe { self.refresh() } {
                // Why there never was an iterator, or that a panic ended it, stays.
                self.unfollowed |= self.failed.is_none();
                (self.iter, self.failed) = (None, Some(error));
            }
        }
    }

    #[inline]
    fn valid(&self) -> bool {
        match &self.iter {
            Some(iter) => iter.valid(),
            None => self.over.as_ref().is_some_and(|over| over.valid()),
        }
    }

    fn status(&self) -> outcrop::Result<()> {
        match (&self.iter, &self.over, &self.failed) {
            (Some(iter), ..) if self.is_stamped && iter.valid() && iter.value().len() < STAMP_LEN => {
                split_ttl_value(iter.value()).map(|_| ())
            }
            (Some(iter), ..) => iter.status(),
            (None, _, Some(error)) => Err(error.clone()),
            (None, Some(over), None) => over.status(),
            (None, None, None) => Ok(()),
        }
    }

    /// A key; where all versions are shown, with its timestamp and footer.
    #[inline]
    fn whole<'v>(&'v self, key: &'v [u8]) -> &'v [u8] {
        if self.options.iter_start_timestamp.is_some() { self.stored_version(key) } else { key }
    }

    #[cold]
    fn stored_version<'v>(&'v self, key: &'v [u8]) -> &'v [u8] {
        let Some(version) = self.iter.as_ref().and_then(Cursor::stored_version) else { return key };
        let mut shown = self.shown.borrow_mut();
        shown.1 = version;
        // SAFETY: the vector is only replaced by the next call; the C API's caller lets go of the bytes before that.
        unsafe { std::slice::from_raw_parts(shown.1.as_ptr(), shown.1.len()) }
    }

    /// The part of a value that is shown. As in RocksDB the time is not looked at here, as `get` does; a value that is too short for one is
    /// empty, and an error of the iterator.
    #[inline]
    fn unstamped<'v>(&self, stored: &'v [u8]) -> &'v [u8] {
        match self.is_stamped {
            true => &stored[..stored.len().saturating_sub(STAMP_LEN)],
            false => stored,
        }
    }

    #[cold]
    fn in_overlay(&mut self, act: impl FnOnce(&mut Overlay<rocksdb_iterator_t>)) {
        if let Some(over) = &mut self.over {
            act(over);
        }
    }
}

/// The iterator below a batch: any iterator, one with a batch over it too.
impl RowSource for rocksdb_iterator_t {
    fn valid(&self) -> bool {
        rocksdb_iterator_t::valid(self)
    }

    fn status(&self) -> outcrop::Result<()> {
        rocksdb_iterator_t::status(self)
    }

    fn key(&self) -> &[u8] {
        match (&self.iter, &self.over) {
            (Some(iter), _) => iter.key(),
            (None, Some(over)) => over.key(),
            (None, None) => &[],
        }
    }

    fn value(&self) -> &[u8] {
        match (&self.iter, &self.over) {
            (Some(iter), _) => self.unstamped(iter.value()),
            (None, Some(over)) => over.value(),
            (None, None) => &[],
        }
    }

    fn seek_to_first(&mut self) {
        // SAFETY: the database outlives its iterators; so for all that follows.
        unsafe { rocksdb_iter_seek_to_first(self) }
    }

    fn seek_to_last(&mut self) {
        // SAFETY: as above.
        unsafe { rocksdb_iter_seek_to_last(self) }
    }

    fn seek(&mut self, target: &[u8]) {
        // SAFETY: as above.
        unsafe { rocksdb_iter_seek(self, target.as_ptr().cast(), target.len()) }
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        // SAFETY: as above.
        unsafe { rocksdb_iter_seek_for_prev(self, target.as_ptr().cast(), target.len()) }
    }

    fn next(&mut self) {
        // SAFETY: as above.
        unsafe { rocksdb_iter_next(self) }
    }

    fn prev(&mut self) {
        // SAFETY: as above.
        unsafe { rocksdb_iter_prev(self) }
    }
}

impl ErrorSink for *mut rocksdb_iterator_t {
    /// The iterator is where the panic left it, so it is given up.
    unsafe fn tell(self, error: &Error) {
        // SAFETY: the caller's contract.
        let this = unsafe { &mut *self };
        (this.failed, this.unfollowed) = (Some(error.clone()), false);
        this.iter = None;
        this.over = None;
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
                if !$needs_valid {
                    this.follow();
                }
                match &mut this.iter {
                    Some(iter) if $needs_valid && !iter.valid() => {}
                    Some(iter) => iter.$method(),
                    None => this.in_overlay(|over| over.$method()),
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
        if this.iter.is_none() {
            this.in_overlay(RowSource::next);
        } else if !this.valid() {
        } else if this.tailing {
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
                match &mut this.iter {
                    Some(iter) => iter.$method(slice(key, len)),
                    None => this.in_overlay(|over| over.$method(slice(key, len))),
                }
            })
        }
    )*};
}

seeks! {
    rocksdb_iter_seek seek;
    rocksdb_iter_seek_for_prev seek_for_prev;
}

/// Key or value; null with length 0 if the iterator is not valid. The bytes stay valid until it moves; under `pin_data` as long as it
/// lives.
macro_rules! reads {
    ($($name:ident $method:ident $shown:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(iter: *const rocksdb_iterator_t, len: *mut size_t) -> *const c_char {
            boundary!({
                let this = &*iter;
                match &this.iter {
                    Some(iter) if iter.valid() => {
                        let bytes = this.$shown(iter.$method());
                        *len = bytes.len();
                        this.lasting(bytes).cast()
                    }
                    None if this.valid() => {
                        let bytes = RowSource::$method(this);
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
    rocksdb_iter_key key whole;
    rocksdb_iter_value value unstamped;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_get_error(iter: *const rocksdb_iterator_t, errptr: *mut *mut c_char) {
    boundary!(errptr, {
        report(errptr, (*iter).status());
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

/// The timestamp of the version shown; empty where keys have none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_iter_timestamp(
    iter: *const rocksdb_iterator_t,
    len: *mut size_t,
) -> *const c_char {
    boundary!({
        let this = &*iter;
        // A write of a batch that lies over the database has none that it could tell.
        let base = this.over.as_ref().map_or(Some(this), |over| over.shown_base());
        let iter = base.and_then(|base| base.iter.as_ref());
        let timestamp = iter.filter(|iter| iter.valid()).and_then(Cursor::timestamp);
        match timestamp {
            Some(timestamp) => {
                let mut shown = this.shown.borrow_mut();
                shown.0.clear();
                shown.0.extend_from_slice(timestamp.as_bytes());
                *len = shown.0.len();
                shown.0.as_ptr().cast()
            }
            None => {
                *len = 0;
                c"".as_ptr()
            }
        }
    })
}

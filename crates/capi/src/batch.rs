//! `rocksdb_writebatch_*`.

use crate::boundary::ErrorSink;
use crate::db::rocksdb_column_family_handle_t;
use crate::memory::{Errptr, give_back, hand_out, report, slice};
use crate::settings::{Fate, Note};
use libc::{c_char, c_int, c_void, size_t};
use outcrop::{
    CfId, ColumnFamily, Error, ErrorKind, Result, SavePoint, TIMESTAMP_LEN, Timestamp, WriteBatch,
};
use std::collections::BTreeSet;

#[derive(Default)]
pub struct rocksdb_writebatch_t {
    pub batch: WriteBatch,
    pub(crate) save_points: Vec<SavePoint>,
    /// A record that would make it longer is not added. Bytes; 0: no limit.
    pub max_bytes: usize,
    /// Keys without a timestamp in the default column family get one that is still to be set.
    default_stamped: bool,
    /// Bytes and records that are to be written to the WAL, of which those behind are not. For RocksJava: no C function has it.
    pub wal_end: Option<(usize, u32)>,
    /// Why it cannot be written.
    pub(crate) failed: Option<Error>,
    /// The bytes that it was made from, if they do not decode: it shows them, and has no record.
    undecoded: Option<Vec<u8>>,
}

impl rocksdb_writebatch_t {
    /// One with these writes.
    pub(crate) fn of(batch: WriteBatch) -> rocksdb_writebatch_t {
        rocksdb_writebatch_t { batch, ..Default::default() }
    }

    /// # Errors
    /// Corruption if it was made from bytes that are no batch; NotSupported if it was given timestamps, or has writes that are to be in
    /// no WAL.
    pub(crate) fn check(&self) -> Result<()> {
        if self.wal_end.is_some_and(|(bytes, _)| bytes < self.batch.size_bytes()) {
            return Err(Error::not_supported("writes behind the termination point of the WAL"));
        }
        self.whole()
    }

    /// # Errors
    /// If it may hold less than it was given: one that did not decode, or got too long.
    pub fn whole(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn bytes(&self) -> &[u8] {
        self.undecoded.as_deref().unwrap_or(self.batch.as_bytes())
    }

    /// As its header says, whether or not the rest decodes.
    fn count(&self) -> u32 {
        let count = |bytes: &Vec<u8>| bytes.get(8..)?.first_chunk().map(|count| u32::from_le_bytes(*count));
        self.undecoded.as_ref().map_or(self.batch.count(), |bytes| count(bytes).unwrap_or_default())
    }

    /// Adds to the batch, unless it gets too long by it. As in RocksDB's C functions nobody is told: they have no place for an error.
    #[inline]
    fn add<T>(&mut self, add: impl FnOnce(&mut WriteBatch) -> T) -> T {
        if self.max_bytes == 0 {
            return add(&mut self.batch);
        }
        let before = self.batch.save_point();
        let added = add(&mut self.batch);
        if self.batch.size_bytes() > self.max_bytes {
            self.batch.rollback_to(before);
        }
        added
    }

    /// Adds a write without a timestamp in `cf`, which has timestamps: it gets one that is still to be set. In the default column
    /// family nothing is added, as in RocksDB, if the batch was not made for its timestamps.
    #[cold]
    fn add_unset(&mut self, cf: &ColumnFamily, add: impl FnOnce(&mut WriteBatch)) {
        if cf.id() == CfId(0) && !self.default_stamped {
            return;
        }
        self.add(|batch| {
            add(batch);
            batch.await_timestamps();
        });
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.save_points.clear();
        self.wal_end = None;
        self.failed = None;
        self.undecoded = None;
    }
}

impl ErrorSink for *mut rocksdb_writebatch_t {
    /// A batch that may hold less than it was given is not written.
    unsafe fn tell(self, error: &Error) {
        // SAFETY: the caller's contract.
        unsafe { (*self).failed = Some(error.clone()) };
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t {
    boundary!(hand_out(rocksdb_writebatch_t::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t) {
    boundary!(give_back(batch))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t) {
    boundary!(batch, (*batch).clear())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_count(batch: *mut rocksdb_writebatch_t) -> c_int {
    boundary!((*batch).count() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_data(
    batch: *mut rocksdb_writebatch_t,
    len: *mut size_t,
) -> *const c_char {
    boundary!({
        // The bytes stay valid until the batch changes.
        let bytes = (*batch).bytes();
        *len = bytes.len();
        bytes.as_ptr().cast()
    })
}

/// The same, of writes that may have a timestamp.
macro_rules! stamped_key_value {
    ($($method:ident $method_at:ident $method_cf:ident $method_cf_at:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            boundary!(batch, {
                let (this, key, value) = (&mut *batch, slice(key, key_len), slice(value, value_len));
                if this.default_stamped {
                    return this.add(|batch| {
                        batch.$method_at(key, Timestamp::MIN, value);
                        batch.await_timestamps();
                    });
                }
                this.add(|batch| batch.$method(key, value))
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            boundary!(batch, {
                let (this, cf) = (&mut *batch, &(*cf).0);
                let (key, value) = (slice(key, key_len), slice(value, value_len));
                if cf.has_timestamps() {
                    return this.add_unset(cf, |batch| batch.$method_cf_at(cf, key, Timestamp::MIN, value));
                }
                this.add(|batch| batch.$method_cf(cf, key, value))
            })
        }
    )*};
}

/// Writes of key and value: to the default column family, and to a named one.
macro_rules! key_value {
    ($($method:ident $method_cf:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            boundary!(batch, (*batch).add(|batch| batch.$method(slice(key, key_len), slice(value, value_len))))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            value: *const c_char,
            value_len: size_t,
        ) {
            boundary!(batch, (*batch).add(|batch| batch.$method_cf(&(*cf).0, slice(key, key_len), slice(value, value_len))))
        }
    )*};
}

stamped_key_value! {
    put put_at put_cf put_cf_at: rocksdb_writebatch_put rocksdb_writebatch_put_cf;
}

key_value! {
    merge merge_cf: rocksdb_writebatch_merge rocksdb_writebatch_merge_cf;
    delete_range delete_range_cf: rocksdb_writebatch_delete_range rocksdb_writebatch_delete_range_cf;
}

/// Writes of a key alone.
macro_rules! key_only {
    ($($method:ident $method_at:ident $method_cf:ident $method_cf_at:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(batch: *mut rocksdb_writebatch_t, key: *const c_char, key_len: size_t) {
            boundary!(batch, {
                let (this, key) = (&mut *batch, slice(key, key_len));
                if this.default_stamped {
                    return this.add(|batch| {
                        batch.$method_at(key, Timestamp::MIN);
                        batch.await_timestamps();
                    });
                }
                this.add(|batch| batch.$method(key))
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
        ) {
            boundary!(batch, {
                let (this, cf, key) = (&mut *batch, &(*cf).0, slice(key, key_len));
                if cf.has_timestamps() {
                    return this.add_unset(cf, |batch| batch.$method_cf_at(cf, key, Timestamp::MIN));
                }
                this.add(|batch| batch.$method_cf(cf, key))
            })
        }
    )*};
}

key_only! {
    delete delete_at delete_cf delete_cf_at: rocksdb_writebatch_delete rocksdb_writebatch_delete_cf;
    single_delete single_delete_at single_delete_cf single_delete_cf_at:
        rocksdb_writebatch_singledelete rocksdb_writebatch_singledelete_cf;
}

/// A batch from its wire form. One that does not decode has no record and cannot be written: that write reports why.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_create_from(
    rep: *const c_char,
    size: size_t,
) -> *mut rocksdb_writebatch_t {
    boundary!({
        let bytes = slice(rep, size);
        hand_out(match WriteBatch::from_bytes(bytes) {
            Ok(batch) => rocksdb_writebatch_t { batch, ..Default::default() },
            Err(error) => rocksdb_writebatch_t {
                failed: Some(error),
                undecoded: Some(bytes.to_vec()),
                ..Default::default()
            },
        })
    })
}

/// Protection is not honoured: a batch is checked by the WAL.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_create_with_params(
    _reserved_bytes: size_t,
    max_bytes: size_t,
    _protection_bytes_per_key: size_t,
    default_cf_ts_sz: size_t,
) -> *mut rocksdb_writebatch_t {
    boundary!({
        let of_length =
            || Error::not_supported(format!("user-defined timestamps of {default_cf_ts_sz} bytes"));
        let failed = (default_cf_ts_sz != 0 && default_cf_ts_sz != TIMESTAMP_LEN).then(of_length);
        let default_stamped = default_cf_ts_sz == TIMESTAMP_LEN;
        hand_out(rocksdb_writebatch_t { max_bytes, default_stamped, failed, ..Default::default() })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_put_log_data(
    batch: *mut rocksdb_writebatch_t,
    blob: *const c_char,
    len: size_t,
) {
    boundary!(batch, (*batch).add(|batch| batch.put_log_data(slice(blob, len))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_set_save_point(batch: *mut rocksdb_writebatch_t) {
    boundary!(batch, {
        let batch = &mut *batch;
        batch.save_points.push(batch.batch.save_point());
    })
}

fn pop(batch: &mut rocksdb_writebatch_t) -> Result<SavePoint> {
    batch.save_points.pop().ok_or_else(|| Error::new(ErrorKind::NotFound, ""))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_rollback_to_save_point(
    batch: *mut rocksdb_writebatch_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let batch = &mut *batch;
        if let Some(point) = report(errptr, pop(batch)) {
            batch.batch.rollback_to(point);
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_pop_save_point(batch: *mut rocksdb_writebatch_t, errptr: Errptr) {
    boundary!(errptr, {
        report(errptr, pop(&mut *batch));
    })
}

/// Batches carry no checksums in memory, so that there is nothing to verify.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_verify_checksum(_batch: *mut rocksdb_writebatch_t, _errptr: Errptr) {}

/// The concatenation of `count` parts.
pub(crate) unsafe fn joined(count: c_int, parts: *const *const c_char, lens: *const size_t) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count.max(0) as usize {
        // SAFETY: the caller passes `count` parts with their lengths.
        bytes.extend_from_slice(unsafe { slice(*parts.add(i), *lens.add(i)) });
    }
    bytes
}

/// Writes whose key and value come in parts.
macro_rules! key_value_parts {
    ($($method:ident $method_cf:ident: $name:ident $name_cf:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_t,
            num_keys: c_int,
            keys: *const *const c_char,
            key_lens: *const size_t,
            num_values: c_int,
            values: *const *const c_char,
            value_lens: *const size_t,
        ) {
            boundary!(batch, {
                let (key, value) =
                    (joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
                (*batch).add(|batch| batch.$method(key, value));
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name_cf(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            num_keys: c_int,
            keys: *const *const c_char,
            key_lens: *const size_t,
            num_values: c_int,
            values: *const *const c_char,
            value_lens: *const size_t,
        ) {
            boundary!(batch, {
                let (key, value) =
                    (joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
                (*batch).add(|batch| batch.$method_cf(&(*cf).0, key, value));
            })
        }
    )*};
}

key_value_parts! {
    put put_cf: rocksdb_writebatch_putv rocksdb_writebatch_putv_cf;
    merge merge_cf: rocksdb_writebatch_mergev rocksdb_writebatch_mergev_cf;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_deletev(
    batch: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    keys: *const *const c_char,
    key_lens: *const size_t,
) {
    boundary!(batch, (*batch).add(|batch| batch.delete(joined(num_keys, keys, key_lens))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_deletev_cf(
    batch: *mut rocksdb_writebatch_t,
    cf: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    keys: *const *const c_char,
    key_lens: *const size_t,
) {
    boundary!(batch, (*batch).add(|batch| batch.delete_cf(&(*cf).0, joined(num_keys, keys, key_lens))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_delete_rangev(
    batch: *mut rocksdb_writebatch_t,
    num_keys: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    ends: *const *const c_char,
    end_lens: *const size_t,
) {
    boundary!(batch, {
        let (start, end) = (joined(num_keys, starts, start_lens), joined(num_keys, ends, end_lens));
        (*batch).add(|batch| batch.delete_range(start, end));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_delete_rangev_cf(
    batch: *mut rocksdb_writebatch_t,
    cf: *mut rocksdb_column_family_handle_t,
    num_keys: c_int,
    starts: *const *const c_char,
    start_lens: *const size_t,
    ends: *const *const c_char,
    end_lens: *const size_t,
) {
    boundary!(batch, {
        let (start, end) = (joined(num_keys, starts, start_lens), joined(num_keys, ends, end_lens));
        (*batch).add(|batch| batch.delete_range_cf(&(*cf).0, start, end));
    })
}

pub(crate) const BATCH_NOTES: &[Note] = &[
    Note {
        function: "rocksdb_writebatch_create_with_params",
        fate: Fate::Checked,
        why: "with timestamps of other lengths than 8 bytes the write of the batch fails; bytes to reserve and protection only tune",
    },
    Note {
        function: "rocksdb_writebatch_verify_checksum",
        fate: Fate::Accepted,
        why: "batches carry no checksums in memory",
    },
];

/// Writes in a column family with a timestamp, of a key and what comes after it. Where the timestamp does not fit nothing is added, and as
/// in RocksDB's C functions nobody is told.
macro_rules! writes_at {
    ($($method:ident: $name:ident ($($value:ident $value_len:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_t,
            cf: *mut rocksdb_column_family_handle_t,
            key: *const c_char,
            key_len: size_t,
            ts: *const c_char,
            ts_len: size_t,
            $($value: *const c_char, $value_len: size_t,)?
        ) {
            boundary!(batch, {
                let cf = &(*cf).0;
                if let Ok(ts) = cf.timestamp(slice(ts, ts_len)) {
                    (*batch).add(|batch| batch.$method(cf, slice(key, key_len), ts $(, slice($value, $value_len))?));
                }
            })
        }
    )*};
}

writes_at! {
    put_cf_at: rocksdb_writebatch_put_cf_with_ts (value value_len);
    delete_cf_at: rocksdb_writebatch_delete_cf_with_ts ();
    single_delete_cf_at: rocksdb_writebatch_singledelete_cf_with_ts ();
}

/// Tells the length of the timestamps of a column family, by its id: 0 for one without, the largest number for one that is not known.
pub(crate) type GetTsSize = unsafe extern "C-unwind" fn(*mut c_void, u32) -> size_t;

/// The timestamp of these bytes, and those of `families`, which are those of a batch's writes, that get it; `len_of` tells the length of
/// theirs.
///
/// # Errors
/// InvalidArgument if it is empty or of another length than theirs; NotFound if a column family is not known.
///
/// Source: RocksDB `TimestampUpdater`.
pub(crate) fn stamped_families(
    families: impl IntoIterator<Item = Result<CfId>>,
    ts: &[u8],
    len_of: impl Fn(u32) -> size_t,
) -> Result<(Timestamp, BTreeSet<CfId>)> {
    let mut stamped = BTreeSet::new();
    for cf in families {
        let cf = cf?;
        if ts.is_empty() {
            return Err(Error::invalid_argument("Timestamp is empty"));
        }
        match len_of(cf.0) {
            0 => {}
            size_t::MAX => return Err(Error::new(ErrorKind::NotFound, "")),
            len if len != ts.len() => return Err(Error::invalid_argument("timestamp size mismatch")),
            _ => {
                stamped.insert(cf);
            }
        }
    }
    // One of another length is for no column family here.
    let ts = if stamped.is_empty() { Timestamp::MIN } else { Timestamp::from_bytes(ts)? };
    Ok((ts, stamped))
}

/// Gives all writes of the column families whose timestamps are as long this one; `get_ts_size` tells the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_update_timestamps(
    batch: *mut rocksdb_writebatch_t,
    ts: *const c_char,
    ts_len: size_t,
    state: *mut c_void,
    get_ts_size: GetTsSize,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let batch = &mut (*batch).batch;
        let families = batch.iter().map(|record| Ok(record?.cf));
        let updated = stamped_families(families, slice(ts, ts_len), |cf| get_ts_size(state, cf))
            .and_then(|(ts, stamped)| batch.update_timestamps(ts, |cf| stamped.contains(&cf)));
        report(errptr, updated);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_do_not_decode_are_shown_and_not_written() {
        let mut whole = WriteBatch::new();
        whole.put("a", "1");
        let cut = &whole.as_bytes()[..whole.size_bytes() - 1];
        // SAFETY: the contract of the C API.
        unsafe {
            let batch = rocksdb_writebatch_create_from(cut.as_ptr().cast(), cut.len());
            let mut len = 0;
            let data = rocksdb_writebatch_data(batch, &raw mut len);
            assert_eq!(slice(data, len), cut);
            assert_eq!(rocksdb_writebatch_count(batch), 1);
            assert!((*batch).check().is_err() && (*batch).batch.is_empty());
            rocksdb_writebatch_clear(batch);
            assert!((*batch).check().is_ok());
            assert_eq!(rocksdb_writebatch_count(batch), 0);
            rocksdb_writebatch_destroy(batch);
        }
    }
}

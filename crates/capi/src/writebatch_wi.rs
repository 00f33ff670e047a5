//! `rocksdb_writebatch_wi_*`: write batches with an index.
//!
//! As in RocksDB, functions without `errptr` drop what is refused: the batch is as it was.

use crate::batch::{GetTsSize, joined, stamped_families};
use crate::batch_iterate::{Deleted, Put, iterate};
use crate::callbacks::rocksdb_comparator_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::iterator::rocksdb_iterator_t;
use crate::memory::{Errptr, give_back, hand_out, report, slice};
use crate::options::rocksdb_options_t;
use crate::read_options::rocksdb_readoptions_t;
use crate::reads::{pinned_out, rocksdb_pinnableslice_t, value_out};
use crate::settings::Flag;
use crate::write_options::rocksdb_writeoptions_t;
use libc::{c_char, c_int, c_void, size_t};
use outcrop::{Bounds, CfId, FamilyParts, IndexedBatch, IndexedBatchOptions, PinnedValue, Result};

/// Points to a batch: one of its own, or that of a transaction, whose wrapper is freed alone.
pub struct rocksdb_writebatch_wi_t {
    pub(crate) batch: *const IndexedBatch,
}

impl rocksdb_writebatch_wi_t {
    /// For a batch that somebody else has, and that lives longer.
    pub fn of(batch: *const IndexedBatch) -> rocksdb_writebatch_wi_t {
        rocksdb_writebatch_wi_t { batch }
    }

    /// The batch.
    ///
    /// # Safety
    /// It is alive, as the contract of the C API says of whatever it is of.
    pub unsafe fn get<'b>(&self) -> &'b IndexedBatch {
        // SAFETY: the caller's contract.
        unsafe { &*self.batch }
    }
}

/// A new batch, until `rocksdb_writebatch_wi_destroy`.
pub fn create_indexed(options: IndexedBatchOptions) -> *mut rocksdb_writebatch_wi_t {
    hand_out(rocksdb_writebatch_wi_t { batch: hand_out(IndexedBatch::new(options)) })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_writebatch_wi_create(
    _reserved_bytes: size_t,
    overwrite_keys: Flag,
) -> *mut rocksdb_writebatch_wi_t {
    boundary!(create_indexed(IndexedBatchOptions {
        overwrite_key: overwrite_keys.is_set(),
        ..IndexedBatchOptions::default()
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_with_params(
    backup_index_comparator: *mut rocksdb_comparator_t,
    _reserved_bytes: size_t,
    overwrite_key: Flag,
    max_bytes: size_t,
    _protection_bytes_per_key: size_t,
) -> *mut rocksdb_writebatch_wi_t {
    boundary!(create_indexed(IndexedBatchOptions {
        overwrite_key: overwrite_key.is_set(),
        max_bytes,
        backup_comparator: backup_index_comparator.as_ref().map_or_else(Default::default, |c| c.order()),
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_destroy(batch: *mut rocksdb_writebatch_wi_t) {
    boundary!({
        give_back((*batch).batch.cast_mut());
        give_back(batch);
    })
}

/// Functions that change the batch and tell nothing.
macro_rules! changes {
    ($($name:ident($($arg:ident: $type:ty),*) |$batch:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(batch: *mut rocksdb_writebatch_wi_t $(, $arg: $type)*) {
            boundary!({
                let $batch = (*batch).get();
                // A refused operation leaves the batch as it was, and nobody is told: as in RocksDB.
                let _ = $body;
            })
        }
    )*};
}

type Cf = *mut rocksdb_column_family_handle_t;
type Text = *const c_char;
type Texts = *const *const c_char;
type Lens = *const size_t;

changes! {
    rocksdb_writebatch_wi_clear() |b| b.clear();
    rocksdb_writebatch_wi_set_save_point() |b| b.set_save_point();
    rocksdb_writebatch_wi_put_log_data(blob: Text, len: size_t) |b| b.put_log_data(slice(blob, len));
    rocksdb_writebatch_wi_put(key: Text, klen: size_t, val: Text, vlen: size_t)
        |b| b.put(slice(key, klen), slice(val, vlen));
    rocksdb_writebatch_wi_put_cf(cf: Cf, key: Text, klen: size_t, val: Text, vlen: size_t)
        |b| b.put_cf(&(*cf).0, slice(key, klen), slice(val, vlen));
    rocksdb_writebatch_wi_merge(key: Text, klen: size_t, val: Text, vlen: size_t)
        |b| b.merge(slice(key, klen), slice(val, vlen));
    rocksdb_writebatch_wi_merge_cf(cf: Cf, key: Text, klen: size_t, val: Text, vlen: size_t)
        |b| b.merge_cf(&(*cf).0, slice(key, klen), slice(val, vlen));
    rocksdb_writebatch_wi_delete(key: Text, klen: size_t) |b| b.delete(slice(key, klen));
    rocksdb_writebatch_wi_delete_cf(cf: Cf, key: Text, klen: size_t)
        |b| b.delete_cf(&(*cf).0, slice(key, klen));
    rocksdb_writebatch_wi_singledelete(key: Text, klen: size_t)
        |b| b.single_delete(slice(key, klen));
    rocksdb_writebatch_wi_singledelete_cf(cf: Cf, key: Text, klen: size_t)
        |b| b.single_delete_cf(&(*cf).0, slice(key, klen));
    rocksdb_writebatch_wi_delete_range(start: Text, start_len: size_t, end: Text, end_len: size_t)
        |b| b.delete_range(slice(start, start_len), slice(end, end_len));
    rocksdb_writebatch_wi_delete_range_cf(cf: Cf, start: Text, start_len: size_t, end: Text, end_len: size_t)
        |b| b.delete_range_cf(&(*cf).0, slice(start, start_len), slice(end, end_len));
    rocksdb_writebatch_wi_putv(
        num_keys: c_int, keys: Texts, key_lens: Lens, num_values: c_int, values: Texts, value_lens: Lens)
        |b| b.put(joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
    rocksdb_writebatch_wi_putv_cf(cf: Cf,
        num_keys: c_int, keys: Texts, key_lens: Lens, num_values: c_int, values: Texts, value_lens: Lens)
        |b| b.put_cf(&(*cf).0, joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
    rocksdb_writebatch_wi_mergev(
        num_keys: c_int, keys: Texts, key_lens: Lens, num_values: c_int, values: Texts, value_lens: Lens)
        |b| b.merge(joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
    rocksdb_writebatch_wi_mergev_cf(cf: Cf,
        num_keys: c_int, keys: Texts, key_lens: Lens, num_values: c_int, values: Texts, value_lens: Lens)
        |b| b.merge_cf(&(*cf).0, joined(num_keys, keys, key_lens), joined(num_values, values, value_lens));
    rocksdb_writebatch_wi_deletev(num_keys: c_int, keys: Texts, key_lens: Lens)
        |b| b.delete(joined(num_keys, keys, key_lens));
    rocksdb_writebatch_wi_deletev_cf(cf: Cf, num_keys: c_int, keys: Texts, key_lens: Lens)
        |b| b.delete_cf(&(*cf).0, joined(num_keys, keys, key_lens));
    rocksdb_writebatch_wi_delete_rangev(
        num_keys: c_int, starts: Texts, start_lens: Lens, ends: Texts, end_lens: Lens)
        |b| b.delete_range(joined(num_keys, starts, start_lens), joined(num_keys, ends, end_lens));
    rocksdb_writebatch_wi_delete_rangev_cf(cf: Cf,
        num_keys: c_int, starts: Texts, start_lens: Lens, ends: Texts, end_lens: Lens)
        |b| b.delete_range_cf(&(*cf).0, joined(num_keys, starts, start_lens), joined(num_keys, ends, end_lens));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_count(batch: *mut rocksdb_writebatch_wi_t) -> c_int {
    boundary!((*batch).get().count() as c_int)
}

/// The bytes stay valid until the batch changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_data(
    batch: *mut rocksdb_writebatch_wi_t,
    size: *mut size_t,
) -> *const c_char {
    boundary!({
        let batch = (*batch).get().batch();
        *size = batch.size_bytes();
        batch.as_bytes().as_ptr().cast()
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_iterate(
    batch: *mut rocksdb_writebatch_wi_t,
    state: *mut c_void,
    put: Put,
    deleted: Deleted,
) {
    boundary!({
        // A copy: a callback may change the batch.
        let copy = (*batch).get().batch().clone();
        iterate(&copy, state, put, deleted, None)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_rollback_to_save_point(
    batch: *mut rocksdb_writebatch_wi_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        report(errptr, (*batch).get().rollback_to_save_point());
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_write_writebatch_wi(
    db: *mut rocksdb_t,
    options: *const rocksdb_writeoptions_t,
    batch: *mut rocksdb_writebatch_wi_t,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let written = (*options).get().and_then(|options| match &(*db).1 {
            None => (*batch).get().write_to_with(&(*db).0, options),
            Some(db) => db.write_with(&(*batch).get().batch(), options),
        });
        report(errptr, written);
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch(
    batch: *mut rocksdb_writebatch_wi_t,
    _options: *const rocksdb_options_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    errptr: Errptr,
) -> *mut c_char {
    boundary!(errptr, {
        let value = (*batch).get().get(slice(key, key_len));
        value_out(errptr, value_len, value)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_get_from_batch_cf(
    batch: *mut rocksdb_writebatch_wi_t,
    _options: *const rocksdb_options_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: *const c_char,
    key_len: size_t,
    value_len: *mut size_t,
    errptr: Errptr,
) -> *mut c_char {
    boundary!(errptr, {
        let value = (*batch).get().get_cf(&(*cf).0, slice(key, key_len));
        value_out(errptr, value_len, value)
    })
}

unsafe fn get_over(
    batch: *mut rocksdb_writebatch_wi_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_readoptions_t,
    cf: *mut rocksdb_column_family_handle_t,
    key: &[u8],
) -> Result<Option<PinnedValue>> {
    // SAFETY: the caller's contract.
    unsafe {
        let db = &(*db).0;
        let cf = cf.as_ref().map_or_else(|| db.default_column_family(), |cf| &cf.0);
        (*batch).get().get_over_cf_with(db, cf, key, (*options).get()?)
    }
}

/// Reads of batch and database, with and without a column family.
macro_rules! reads_over {
    ($($name:ident $pinned:ident ($($cf:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            batch: *mut rocksdb_writebatch_wi_t,
            db: *mut rocksdb_t,
            options: *const rocksdb_readoptions_t,
            $($cf: *mut rocksdb_column_family_handle_t,)?
            key: *const c_char,
            key_len: size_t,
            value_len: *mut size_t,
            errptr: Errptr,
        ) -> *mut c_char {
            boundary!(errptr, {
                let cf = std::ptr::null_mut();
                $(let _: *mut rocksdb_column_family_handle_t = cf; let cf = $cf;)?
                value_out(errptr, value_len, get_over(batch, db, options, cf, slice(key, key_len)))
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pinned(
            batch: *mut rocksdb_writebatch_wi_t,
            db: *mut rocksdb_t,
            options: *const rocksdb_readoptions_t,
            $($cf: *mut rocksdb_column_family_handle_t,)?
            key: *const c_char,
            key_len: size_t,
            errptr: Errptr,
        ) -> *mut rocksdb_pinnableslice_t {
            boundary!(errptr, {
                let cf = std::ptr::null_mut();
                $(let _: *mut rocksdb_column_family_handle_t = cf; let cf = $cf;)?
                pinned_out(errptr, get_over(batch, db, options, cf, slice(key, key_len)))
            })
        }
    )*};
}

reads_over! {
    rocksdb_writebatch_wi_get_from_batch_and_db rocksdb_writebatch_wi_get_pinned_from_batch_and_db ();
    rocksdb_writebatch_wi_get_from_batch_and_db_cf rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf (cf_given);
}

/// The iterator that is given belongs to the one that is made.
unsafe fn over(
    batch: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    // SAFETY: the caller's contract; the base came from `hand_out` and is nobody else's from here on.
    unsafe {
        let base = Box::from_raw(base);
        // Options that cannot be honoured fail the base already.
        let options = options.as_ref().and_then(|options| options.get().ok());
        let bounds = options.map_or_else(Bounds::default, |options| Bounds {
            lower: options.iterate_lower_bound.clone(),
            upper: options.iterate_upper_bound.clone(),
        });
        let family = cf.as_ref().map(|cf| FamilyParts::from(&cf.0));
        hand_out(rocksdb_iterator_t::over((*batch).get().overlay(family, *base, bounds)))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base(
    batch: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
) -> *mut rocksdb_iterator_t {
    boundary!(over(batch, base, std::ptr::null_mut(), std::ptr::null()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_readopts(
    batch: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    boundary!(over(batch, base, std::ptr::null_mut(), options))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf(
    batch: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
    cf: *mut rocksdb_column_family_handle_t,
) -> *mut rocksdb_iterator_t {
    boundary!(over(batch, base, cf, std::ptr::null()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
    batch: *mut rocksdb_writebatch_wi_t,
    base: *mut rocksdb_iterator_t,
    cf: *mut rocksdb_column_family_handle_t,
    options: *const rocksdb_readoptions_t,
) -> *mut rocksdb_iterator_t {
    boundary!(over(batch, base, cf, options))
}

/// As `rocksdb_writebatch_update_timestamps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_writebatch_wi_update_timestamps(
    batch: *mut rocksdb_writebatch_wi_t,
    ts: *const c_char,
    ts_len: size_t,
    state: *mut c_void,
    get_ts_size: GetTsSize,
    errptr: Errptr,
) {
    boundary!(errptr, {
        let batch = (*batch).get();
        // All of them first: a callback may call functions of the batch.
        let families: Vec<Result<CfId>> = batch.batch().iter().map(|record| Ok(record?.cf)).collect();
        let updated = stamped_families(families, slice(ts, ts_len), |cf| get_ts_size(state, cf))
            .and_then(|(ts, stamped)| batch.update_timestamps(ts, |cf| stamped.contains(&cf)));
        report(errptr, updated);
    })
}

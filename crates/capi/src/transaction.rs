//! `rocksdb_transaction_*`: transactions of both kinds.

use crate::batch::rocksdb_writebatch_t;
use crate::db::{rocksdb_column_family_handle_t, rocksdb_t};
use crate::iterator::rocksdb_iterator_t;
use crate::memory::{Errptr, copy_out, copy_out_text, give_back, hand_out, report, slice};
use crate::read_options::{rocksdb_readoptions_t, rocksdb_snapshot_t};
use crate::reads::{pinned_out, rocksdb_pinnableslice_t, value_out};
use crate::transaction_db::{rocksdb_optimistictransactiondb_t, rocksdb_transactiondb_t};
use crate::transaction_options::{rocksdb_optimistictransaction_options_t, rocksdb_transaction_options_t};
use crate::write_options::rocksdb_writeoptions_t;
use crate::writebatch_wi::rocksdb_writebatch_wi_t;
use libc::{c_char, c_uchar, c_void, size_t};
use outcrop::{
    Bounds, ColumnFamilyHandle, Error, FamilyParts, LockMode, PinnedValue, ReadOptions, Result, Transaction,
    WriteOptions,
};

pub struct rocksdb_transaction_t {
    txn: Transaction,
    /// For its iterators.
    base: rocksdb_t,
    /// Why it can do nothing: its options cannot be honoured.
    failed: Option<Error>,
}

impl rocksdb_transaction_t {
    /// The transaction, to be written to.
    ///
    /// # Errors
    /// NotSupported for options that cannot be honoured.
    pub fn get(&mut self) -> Result<&mut Transaction> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(&mut self.txn),
        }
    }
}

impl rocksdb_transactiondb_t {
    /// An object for a transaction of this database, as `rocksdb_transaction_begin` makes one.
    pub fn hold(&self, txn: Transaction) -> rocksdb_transaction_t {
        rocksdb_transaction_t { txn, base: base_of(&self.base), failed: None }
    }
}

fn base_of(base: &rocksdb_t) -> rocksdb_t {
    rocksdb_t::from(base.0.clone())
}

/// Options as they can be honoured, and why not all can.
fn write_options(options: &rocksdb_writeoptions_t) -> (WriteOptions, Option<Error>) {
    match options.get() {
        Ok(options) => (*options, None),
        Err(error) => (WriteOptions::default(), Some(error)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_begin(
    db: *mut rocksdb_transactiondb_t,
    options: *const rocksdb_writeoptions_t,
    transaction_options: *const rocksdb_transaction_options_t,
    old: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    boundary!({
        let (write_options, failed) = write_options(&*options);
        let transaction_options = (*transaction_options).get();
        match old.as_mut() {
            Some(known) => {
                known.txn.reinitialize_with(&write_options, transaction_options);
                known.failed = failed;
                old
            }
            None => {
                let txn = (*db).db.begin_with(&write_options, transaction_options);
                hand_out(rocksdb_transaction_t { txn, base: base_of(&(*db).base), failed })
            }
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_optimistictransaction_begin(
    db: *mut rocksdb_optimistictransactiondb_t,
    options: *const rocksdb_writeoptions_t,
    transaction_options: *const rocksdb_optimistictransaction_options_t,
    old: *mut rocksdb_transaction_t,
) -> *mut rocksdb_transaction_t {
    boundary!({
        let (write_options, failed) = write_options(&*options);
        let snapshot = (*transaction_options).snapshot();
        match old.as_mut() {
            Some(known) => {
                known.txn.reinitialize_optimistic_with(&write_options, snapshot);
                known.failed = failed;
                old
            }
            None => {
                let txn = (*db).db.begin_with(&write_options, snapshot);
                hand_out(rocksdb_transaction_t { txn, base: base_of(&(*db).base), failed })
            }
        }
    })
}

/// A `malloc`ed list of those that were prepared and not decided, which each have to be destroyed. One that cannot be made is told
/// of on standard error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transactiondb_get_prepared_transactions(
    db: *mut rocksdb_transactiondb_t,
    count: *mut size_t,
) -> *mut *mut rocksdb_transaction_t {
    boundary!({
        let db = &*db;
        *count = 0;
        let found = report(std::ptr::null_mut(), db.db.prepared_transactions()).unwrap_or_default();
        let list = libc::malloc(found.len().max(1) * size_of::<*mut rocksdb_transaction_t>())
            .cast::<*mut rocksdb_transaction_t>();
        if list.is_null() {
            return list;
        }
        for txn in found {
            list.add(*count).write(hand_out(db.hold(txn)));
            *count += 1;
        }
        list
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_destroy(txn: *mut rocksdb_transaction_t) {
    boundary!(give_back(txn))
}

type Txn = *mut rocksdb_transaction_t;
type Cf = *mut rocksdb_column_family_handle_t;
type Ro = *const rocksdb_readoptions_t;
type Text = *const c_char;
type Texts = *const *const c_char;
type Lens = *const size_t;
type Values = *mut *mut c_char;

/// Calls that may fail and give nothing.
macro_rules! calls {
    ($($name:ident($($arg:ident: $type:ty),*) |$txn:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(txn: Txn, $($arg: $type,)* errptr: Errptr) {
            boundary!(errptr, {
                let done = (*txn).get().and_then(|$txn| $body);
                report(errptr, done);
            })
        }
    )*};
}

fn default_family(txn: &rocksdb_transaction_t) -> ColumnFamilyHandle {
    txn.base.0.default_column_family().clone()
}

calls! {
    rocksdb_transaction_set_name(name: Text, len: size_t) |t| t.set_name(slice(name, len));
    rocksdb_transaction_prepare() |t| t.prepare();
    rocksdb_transaction_commit() |t| t.commit();
    rocksdb_transaction_rollback() |t| t.rollback();
    rocksdb_transaction_rollback_to_savepoint() |t| t.rollback_to_save_point();
    rocksdb_transaction_rebuild_from_writebatch(batch: *mut rocksdb_writebatch_t)
        |t| t.rebuild_from(&(*batch).batch);
    rocksdb_transaction_rebuild_from_writebatch_wi(batch: *mut rocksdb_writebatch_wi_t)
        |t| { let copy = (*batch).get().batch().clone(); t.rebuild_from(&copy) };
    rocksdb_transaction_put_cf(cf: Cf, key: Text, klen: size_t, value: Text, vlen: size_t)
        |t| t.put_cf(&(*cf).0, slice(key, klen), slice(value, vlen));
    rocksdb_transaction_merge_cf(cf: Cf, key: Text, klen: size_t, value: Text, vlen: size_t)
        |t| t.merge_cf(&(*cf).0, slice(key, klen), slice(value, vlen));
    rocksdb_transaction_delete_cf(cf: Cf, key: Text, klen: size_t) |t| t.delete_cf(&(*cf).0, slice(key, klen));
}

/// The same in the default column family.
macro_rules! in_default {
    ($($name:ident $method:ident (key $(, $value:ident)?);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            txn: Txn, key: Text, klen: size_t, $($value: Text, vlen: size_t,)? errptr: Errptr,
        ) {
            boundary!(errptr, {
                let done = (*txn).get().and_then(|t| t.$method(slice(key, klen) $(, slice($value, vlen))?));
                report(errptr, done);
            })
        }
    )*};
}

in_default! {
    rocksdb_transaction_put put(key, value);
    rocksdb_transaction_merge merge(key, value);
    rocksdb_transaction_delete delete(key);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_put_log_data(txn: Txn, blob: Text, len: size_t) {
    boundary!({
        // A batch that is too long for it is written without, as in RocksDB.
        let _ = (*txn).txn.put_log_data(slice(blob, len));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_set_savepoint(txn: Txn) {
    boundary!((*txn).txn.set_save_point())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_name(txn: Txn, len: *mut size_t) -> *mut c_char {
    boundary!({
        let name = (*txn).txn.name();
        *len = name.len();
        copy_out(name)
    })
}

/// A `malloc`ed copy of what points to the snapshot, which stays the transaction's: freed by `rocksdb_free`, and good for as long
/// as the transaction has the snapshot. Null if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_snapshot(txn: Txn) -> *const rocksdb_snapshot_t {
    boundary!({
        let Some(snapshot) = (*txn).txn.snapshot() else { return std::ptr::null() };
        let copy = libc::malloc(size_of::<rocksdb_snapshot_t>()).cast::<rocksdb_snapshot_t>();
        if !copy.is_null() {
            // Never dropped: `rocksdb_free` frees the memory alone, so that the count of holders stays right.
            std::ptr::copy_nonoverlapping(std::ptr::from_ref(snapshot).cast::<rocksdb_snapshot_t>(), copy, 1);
        }
        copy
    })
}

/// A `malloc`ed object for the transaction's batch: freed by `rocksdb_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_get_writebatch_wi(txn: Txn) -> *mut rocksdb_writebatch_wi_t {
    boundary!({
        let object = libc::malloc(size_of::<rocksdb_writebatch_wi_t>()).cast::<rocksdb_writebatch_wi_t>();
        if !object.is_null() {
            object.write(rocksdb_writebatch_wi_t::of((*txn).txn.batch()));
        }
        object
    })
}

/// How a key is read.
#[derive(Clone, Copy)]
enum Read {
    Plain,
    ForUpdate(LockMode),
}

fn for_update(exclusive: c_uchar) -> Read {
    Read::ForUpdate(if exclusive != 0 { LockMode::Exclusive } else { LockMode::Shared })
}

fn read(
    txn: &mut rocksdb_transaction_t,
    options: &rocksdb_readoptions_t,
    cf: Option<&ColumnFamilyHandle>,
    key: &[u8],
    how: Read,
) -> Result<Option<PinnedValue>> {
    let default = default_family(txn);
    let cf = cf.unwrap_or(&default);
    let options = options.get()?;
    match how {
        Read::Plain => txn.txn.get_cf_with(cf, key, options),
        Read::ForUpdate(mode) => txn.get()?.get_for_update_cf_with(cf, key, mode, options),
    }
}

/// Reads of one key, as a copy and pinned.
macro_rules! gets {
    ($($name:ident $pinned:ident ($($cf:ident)?) ($($exclusive:ident)?) $how:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            txn: Txn, options: Ro, $($cf: Cf,)? key: Text, klen: size_t, vlen: *mut size_t,
            $($exclusive: c_uchar,)? errptr: Errptr,
        ) -> *mut c_char {
            boundary!(errptr, {
                let cf: Option<&ColumnFamilyHandle> = None;
                $(let _ = cf; let cf = Some(&(*$cf).0);)?
                value_out(errptr, vlen, read(&mut *txn, &*options, cf, slice(key, klen), $how))
            })
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pinned(
            txn: Txn, options: Ro, $($cf: Cf,)? key: Text, klen: size_t,
            $($exclusive: c_uchar,)? errptr: Errptr,
        ) -> *mut rocksdb_pinnableslice_t {
            boundary!(errptr, {
                let cf: Option<&ColumnFamilyHandle> = None;
                $(let _ = cf; let cf = Some(&(*$cf).0);)?
                pinned_out(errptr, read(&mut *txn, &*options, cf, slice(key, klen), $how))
            })
        }
    )*};
}

gets! {
    rocksdb_transaction_get rocksdb_transaction_get_pinned () () Read::Plain;
    rocksdb_transaction_get_cf rocksdb_transaction_get_pinned_cf (cf_given) () Read::Plain;
    rocksdb_transaction_get_for_update rocksdb_transaction_get_pinned_for_update () (exclusive) for_update(exclusive);
    rocksdb_transaction_get_for_update_cf rocksdb_transaction_get_pinned_for_update_cf
        (cf_given) (exclusive) for_update(exclusive);
}

/// Reads of several keys; each gets a value or an error.
unsafe fn multi_read(
    txn: Txn,
    options: Ro,
    cfs: *const *const rocksdb_column_family_handle_t,
    (count, keys, key_lens): (size_t, Texts, Lens),
    (values, value_lens, errs): (Values, *mut size_t, Values),
    how: Read,
) {
    // SAFETY: the caller passes `count` keys, and as many places for each result.
    unsafe {
        let txn = &mut *txn;
        let default = default_family(txn);
        let family = |i: usize| if cfs.is_null() { &default } else { &(**cfs.add(i)).0 };
        let pairs: Vec<(&ColumnFamilyHandle, &[u8])> =
            (0..count).map(|i| (family(i), slice(*keys.add(i), *key_lens.add(i)))).collect();
        let read = |options: &ReadOptions| match how {
            Read::Plain => Ok(txn.txn.multi_get_pairs_with(&pairs, options)),
            Read::ForUpdate(_) => Ok(txn.get()?.multi_get_pairs_for_update_with(&pairs, options)),
        };
        let results = match (*options).get().and_then(read) {
            Ok(results) => results,
            Err(error) => pairs.iter().map(|_| Err(error.clone())).collect(),
        };
        for (i, result) in results.into_iter().enumerate() {
            (*values.add(i), *value_lens.add(i), *errs.add(i)) = match result {
                Ok(Some(value)) => (copy_out(&value), value.len(), std::ptr::null_mut()),
                Ok(None) => (std::ptr::null_mut(), 0, std::ptr::null_mut()),
                Err(error) => (std::ptr::null_mut(), 0, copy_out_text(&error.to_string())),
            };
        }
    }
}

macro_rules! multi_gets {
    ($($name:ident ($($cfs:ident)?) $how:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            txn: Txn, options: Ro, $($cfs: *const *const rocksdb_column_family_handle_t,)?
            count: size_t, keys: Texts, key_lens: Lens, values: Values, value_lens: *mut size_t, errs: Values,
        ) {
            boundary!({
                let cfs = std::ptr::null();
                $(let _: *const *const rocksdb_column_family_handle_t = cfs; let cfs = $cfs;)?
                multi_read(txn, options, cfs, (count, keys, key_lens), (values, value_lens, errs), $how)
            })
        }
    )*};
}

multi_gets! {
    rocksdb_transaction_multi_get () Read::Plain;
    rocksdb_transaction_multi_get_cf (cfs_given) Read::Plain;
    rocksdb_transaction_multi_get_for_update () Read::ForUpdate(LockMode::Exclusive);
    rocksdb_transaction_multi_get_for_update_cf (cfs_given) Read::ForUpdate(LockMode::Exclusive);
}

unsafe fn iterator(txn: Txn, options: Ro, cf: &ColumnFamilyHandle) -> *mut rocksdb_iterator_t {
    // SAFETY: the caller's contract: the transaction outlives its iterators.
    let (txn, options) = unsafe { (&*txn, &*options) };
    let base = rocksdb_iterator_t::new(&txn.base, cf, options);
    let bounds = options.get().map_or_else(
        |_| Bounds::default(),
        |options| Bounds {
            lower: options.iterate_lower_bound.clone(),
            upper: options.iterate_upper_bound.clone(),
        },
    );
    hand_out(rocksdb_iterator_t::over(txn.txn.batch().overlay(Some(FamilyParts::from(&**cf)), base, bounds)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_create_iterator(
    txn: Txn,
    options: Ro,
) -> *mut rocksdb_iterator_t {
    boundary!(iterator(txn, options, &default_family(&*txn)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_transaction_create_iterator_cf(
    txn: Txn,
    options: Ro,
    cf: Cf,
) -> *mut rocksdb_iterator_t {
    boundary!(iterator(txn, options, &(*cf).0))
}

refused! { TRANSACTION_TIMESTAMPS:
    "user-defined timestamps are not supported" {
        rocksdb_transaction_set_commit_timestamp(*mut c_void, u64);
        rocksdb_transaction_set_read_timestamp_for_validation(*mut c_void, u64);
    }
}

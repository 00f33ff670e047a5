//! Transactions beside RocksDB's: random calls on both libraries, each answer and error's text compared; and transactions that one
//! library prepares before its process is killed and the other decides.
//!
//! `OUTCROP_SEED=n` repeats one seed.

use crate::library::{Bytes, Errptr, Object, c_functions, error_text, outcrop_library, reference};
use libc::{c_char, c_int, c_uchar, c_void, size_t};
use outcrop_base::random::SplitMix;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

c_functions! {
    rocksdb_options_create: fn() -> Object;
    rocksdb_options_set_create_if_missing: fn(Object, c_uchar);
    rocksdb_options_set_create_missing_column_families: fn(Object, c_uchar);
    rocksdb_options_set_uint64add_merge_operator: fn(Object);
    rocksdb_transactiondb_options_create: fn() -> Object;
    rocksdb_transactiondb_options_set_transaction_lock_timeout: fn(Object, i64);
    rocksdb_transactiondb_options_set_default_lock_timeout: fn(Object, i64);
    rocksdb_transactiondb_options_set_max_num_locks: fn(Object, i64);
    rocksdb_transaction_options_create: fn() -> Object;
    rocksdb_transaction_options_set_set_snapshot: fn(Object, c_uchar);
    rocksdb_transaction_options_set_max_write_batch_size: fn(Object, size_t);
    rocksdb_transaction_options_set_skip_prepare: fn(Object, c_uchar);
    rocksdb_transactiondb_open_column_families: fn(Object, Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_transactiondb_close: fn(Object);
    rocksdb_transactiondb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transactiondb_delete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_transactiondb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_transactiondb_write: fn(Object, Object, Object, Errptr);
    rocksdb_transactiondb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_transactiondb_get_prepared_transactions: fn(Object, *mut size_t) -> *mut Object;
    rocksdb_optimistictransactiondb_options_create: fn() -> Object;
    rocksdb_optimistictransactiondb_options_set_validate_policy: fn(Object, c_int);
    rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options: fn(Object, Object, Bytes, c_int, *const Bytes, *const Object, *mut Object, Errptr) -> Object;
    rocksdb_optimistictransactiondb_get_base_db: fn(Object) -> Object;
    rocksdb_optimistictransactiondb_close_base_db: fn(Object);
    rocksdb_optimistictransactiondb_close: fn(Object);
    rocksdb_optimistictransactiondb_write: fn(Object, Object, Object, Errptr);
    rocksdb_optimistictransaction_options_create: fn() -> Object;
    rocksdb_optimistictransaction_options_set_set_snapshot: fn(Object, c_uchar);
    rocksdb_optimistictransaction_begin: fn(Object, Object, Object, Object) -> Object;
    rocksdb_put_cf: fn(Object, Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_delete_cf: fn(Object, Object, Object, Bytes, size_t, Errptr);
    rocksdb_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_flush_cf: fn(Object, Object, Object, Errptr);
    rocksdb_writebatch_create: fn() -> Object;
    rocksdb_writebatch_destroy: fn(Object);
    rocksdb_writebatch_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_merge_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_writebatch_delete_range_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t);
    rocksdb_flushoptions_create: fn() -> Object;
    rocksdb_writeoptions_create: fn() -> Object;
    rocksdb_readoptions_create: fn() -> Object;
    rocksdb_column_family_handle_destroy: fn(Object);
    rocksdb_transaction_begin: fn(Object, Object, Object, Object) -> Object;
    rocksdb_transaction_destroy: fn(Object);
    rocksdb_transaction_set_name: fn(Object, Bytes, size_t, Errptr);
    rocksdb_transaction_get_name: fn(Object, *mut size_t) -> *mut c_char;
    rocksdb_transaction_prepare: fn(Object, Errptr);
    rocksdb_transaction_commit: fn(Object, Errptr);
    rocksdb_transaction_rollback: fn(Object, Errptr);
    rocksdb_transaction_set_savepoint: fn(Object);
    rocksdb_transaction_rollback_to_savepoint: fn(Object, Errptr);
    rocksdb_transaction_put_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transaction_merge_cf: fn(Object, Object, Bytes, size_t, Bytes, size_t, Errptr);
    rocksdb_transaction_delete_cf: fn(Object, Object, Bytes, size_t, Errptr);
    rocksdb_transaction_put_log_data: fn(Object, Bytes, size_t);
    rocksdb_transaction_get_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, Errptr) -> *mut c_char;
    rocksdb_transaction_get_for_update_cf: fn(Object, Object, Object, Bytes, size_t, *mut size_t, c_uchar, Errptr) -> *mut c_char;
    rocksdb_transaction_rebuild_from_writebatch: fn(Object, Object, Errptr);
    rocksdb_transaction_get_writebatch_wi: fn(Object) -> Object;
    rocksdb_writebatch_wi_data: fn(Object, *mut size_t) -> Bytes;
    rocksdb_transaction_create_iterator_cf: fn(Object, Object, Object) -> Object;
    rocksdb_iter_seek_to_first: fn(Object);
    rocksdb_iter_valid: fn(Object) -> c_uchar;
    rocksdb_iter_next: fn(Object);
    rocksdb_iter_key: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_value: fn(Object, *mut size_t) -> Bytes;
    rocksdb_iter_get_error: fn(Object, Errptr);
    rocksdb_iter_destroy: fn(Object);
    rocksdb_free: fn(*mut c_void);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Locks,
    Serial,
    Parallel,
}

#[derive(Clone, Debug)]
enum Step {
    /// Transaction, whether anew in place, snapshot, longest batch, whether it can be committed unprepared.
    Begin(usize, bool, bool, usize, bool),
    Destroy(usize),
    Put(usize, usize, Vec<u8>, Vec<u8>),
    Merge(usize, usize, Vec<u8>, Vec<u8>),
    Delete(usize, usize, Vec<u8>),
    LogData(usize, Vec<u8>),
    Get(usize, usize, Vec<u8>),
    GetForUpdate(usize, usize, Vec<u8>, bool),
    Walk(usize, usize),
    Save(usize),
    RollbackToSave(usize),
    Name(usize, Vec<u8>),
    Prepare(usize),
    Commit(usize),
    Rollback(usize),
    Rebuild(usize, bool),
    /// Outside of transactions.
    PutOutside(usize, Vec<u8>, Vec<u8>),
    DeleteOutside(usize, Vec<u8>),
    WriteOutside(Vec<u8>, Vec<u8>, bool),
    GetOutside(usize, Vec<u8>),
    Flush(usize),
}

struct Random(SplitMix);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn key(&mut self) -> Vec<u8> {
        format!("k{}", self.below(8)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.below(1000).to_le_bytes().to_vec()
    }

    fn step(&mut self) -> Step {
        let (t, cf) = (self.below(3) as usize, self.below(2) as usize);
        match self.below(44) {
            0..3 => {
                let longest = if self.below(5) == 0 { 60 } else { 0 };
                Step::Begin(t, self.below(2) == 0, self.below(2) == 0, longest, self.below(5) > 0)
            }
            3 => Step::Destroy(t),
            4..10 => Step::Put(t, cf, self.key(), self.value()),
            10..12 => Step::Merge(t, cf, self.key(), self.value()),
            12..14 => Step::Delete(t, cf, self.key()),
            14 => Step::LogData(t, self.key()),
            15..18 => Step::Get(t, cf, self.key()),
            18..22 => Step::GetForUpdate(t, cf, self.key(), self.below(2) == 0),
            22 => Step::Walk(t, cf),
            23..25 => Step::Save(t),
            25 => Step::RollbackToSave(t),
            26 => {
                let len = [0, 3, 3, 3, 600][self.below(5) as usize];
                Step::Name(t, format!("{:>len$}", self.below(4)).as_bytes()[..len].to_vec())
            }
            27..29 => Step::Prepare(t),
            29..33 => Step::Commit(t),
            33 => Step::Rollback(t),
            34 => Step::Rebuild(t, self.below(4) == 0),
            35..37 => Step::PutOutside(cf, self.key(), self.value()),
            37 => Step::DeleteOutside(cf, self.key()),
            38 => Step::WriteOutside(self.key(), self.value(), self.below(4) == 0),
            39..42 => Step::GetOutside(cf, self.key()),
            _ => Step::Flush(cf),
        }
    }
}

struct Player<'a> {
    api: &'a Api,
    kind: Kind,
    db: Object,
    /// The database alone, of an optimistic one.
    base: Object,
    families: [Object; 2],
    write_options: Object,
    read_options: Object,
    transactions: [Object; 3],
    told: Vec<String>,
}

fn parts(bytes: &[u8]) -> (Bytes, size_t) {
    (bytes.as_ptr().cast(), bytes.len())
}

impl<'a> Player<'a> {
    unsafe fn new(api: &'a Api, dir: &Path, kind: Kind, max_num_locks: i64) -> Player<'a> {
        // SAFETY: live objects and NUL-terminated texts.
        unsafe {
            let path = CString::new(dir.to_str().unwrap()).unwrap();
            let options = (api.rocksdb_options_create)();
            (api.rocksdb_options_set_create_if_missing)(options, 1);
            (api.rocksdb_options_set_create_missing_column_families)(options, 1);
            (api.rocksdb_options_set_uint64add_merge_operator)(options);
            let (mut families, mut error) = ([null_mut(); 2], null_mut());
            let names = [c"default".as_ptr(), c"other".as_ptr()];
            let each = [options, options];
            let (db, base) = if kind == Kind::Locks {
                let transactions = (api.rocksdb_transactiondb_options_create)();
                (api.rocksdb_transactiondb_options_set_transaction_lock_timeout)(transactions, 0);
                (api.rocksdb_transactiondb_options_set_default_lock_timeout)(transactions, 0);
                (api.rocksdb_transactiondb_options_set_max_num_locks)(transactions, max_num_locks);
                let db = (api.rocksdb_transactiondb_open_column_families)(
                    options,
                    transactions,
                    path.as_ptr(),
                    2,
                    names.as_ptr(),
                    each.as_ptr(),
                    families.as_mut_ptr(),
                    &mut error,
                );
                (db, null_mut())
            } else {
                let transactions = (api.rocksdb_optimistictransactiondb_options_create)();
                let policy = c_int::from(kind == Kind::Parallel);
                (api.rocksdb_optimistictransactiondb_options_set_validate_policy)(transactions, policy);
                let db = (api.rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options)(
                    options,
                    transactions,
                    path.as_ptr(),
                    2,
                    names.as_ptr(),
                    each.as_ptr(),
                    families.as_mut_ptr(),
                    &mut error,
                );
                (db, if db.is_null() { db } else { (api.rocksdb_optimistictransactiondb_get_base_db)(db) })
            };
            assert!(error.is_null(), "{:?}", CStr::from_ptr(error));
            Player {
                api,
                kind,
                db,
                base,
                families,
                write_options: (api.rocksdb_writeoptions_create)(),
                read_options: (api.rocksdb_readoptions_create)(),
                transactions: [null_mut(); 3],
                told: Vec::new(),
            }
        }
    }

    unsafe fn error(&mut self, error: *mut c_char) -> bool {
        // SAFETY: null, or a message of the library.
        let text = unsafe { error_text(error, self.api.rocksdb_free) };
        self.told.extend(text.clone());
        text.is_some()
    }

    unsafe fn value(&mut self, value: *mut c_char, len: size_t, error: *mut c_char) {
        // SAFETY: null, or `len` bytes that the library allocated.
        unsafe {
            if self.error(error) {
                return;
            }
            self.told.push(match value.is_null() {
                true => "none".to_string(),
                false => format!("{:02x?}", std::slice::from_raw_parts(value.cast::<u8>(), len)),
            });
            (self.api.rocksdb_free)(value.cast());
        }
    }

    unsafe fn begin(&mut self, t: usize, in_place: bool, snapshot: bool, longest: usize, skip_prepare: bool) {
        let api = self.api;
        // SAFETY: live objects.
        unsafe {
            let old = self.transactions[t];
            let reused = if in_place { old } else { null_mut() };
            if !in_place && !old.is_null() {
                (api.rocksdb_transaction_destroy)(old);
            }
            self.transactions[t] = if self.kind == Kind::Locks {
                let options = (api.rocksdb_transaction_options_create)();
                (api.rocksdb_transaction_options_set_set_snapshot)(options, snapshot.into());
                (api.rocksdb_transaction_options_set_max_write_batch_size)(options, longest);
                (api.rocksdb_transaction_options_set_skip_prepare)(options, skip_prepare.into());
                (api.rocksdb_transaction_begin)(self.db, self.write_options, options, reused)
            } else {
                let options = (api.rocksdb_optimistictransaction_options_create)();
                (api.rocksdb_optimistictransaction_options_set_set_snapshot)(options, snapshot.into());
                (api.rocksdb_optimistictransaction_begin)(self.db, self.write_options, options, reused)
            };
        }
    }

    unsafe fn walk(&mut self, txn: Object, cf: Object) {
        let api = self.api;
        let (mut klen, mut vlen, mut error) = (0, 0, null_mut());
        // SAFETY: live objects.
        unsafe {
            let iter = (api.rocksdb_transaction_create_iterator_cf)(txn, self.read_options, cf);
            (api.rocksdb_iter_seek_to_first)(iter);
            while (api.rocksdb_iter_valid)(iter) != 0 {
                let key = (api.rocksdb_iter_key)(iter, &mut klen);
                let value = (api.rocksdb_iter_value)(iter, &mut vlen);
                let key = std::slice::from_raw_parts(key.cast::<u8>(), klen);
                let value = std::slice::from_raw_parts(value.cast::<u8>(), vlen);
                self.told.push(format!("{}={value:02x?}", String::from_utf8_lossy(key)));
                (api.rocksdb_iter_next)(iter);
            }
            (api.rocksdb_iter_get_error)(iter, &mut error);
            self.error(error);
            (api.rocksdb_iter_destroy)(iter);
        }
    }

    unsafe fn outside(&mut self, step: &Step) {
        let (api, wo, ro) = (self.api, self.write_options, self.read_options);
        let locks = self.kind == Kind::Locks;
        let (mut len, mut error) = (0, null_mut());
        // SAFETY: live objects.
        unsafe {
            match step {
                Step::PutOutside(cf, key, value) => {
                    let (cf, (key, klen), (value, vlen)) = (self.families[*cf], parts(key), parts(value));
                    match locks {
                        true => (api.rocksdb_transactiondb_put_cf)(
                            self.db, wo, cf, key, klen, value, vlen, &mut error,
                        ),
                        false => (api.rocksdb_put_cf)(self.base, wo, cf, key, klen, value, vlen, &mut error),
                    }
                }
                Step::DeleteOutside(cf, key) => {
                    let (cf, (key, klen)) = (self.families[*cf], parts(key));
                    match locks {
                        true => (api.rocksdb_transactiondb_delete_cf)(self.db, wo, cf, key, klen, &mut error),
                        false => (api.rocksdb_delete_cf)(self.base, wo, cf, key, klen, &mut error),
                    }
                }
                Step::WriteOutside(key, value, range) => {
                    let batch = (api.rocksdb_writebatch_create)();
                    let ((key, klen), (value, vlen)) = (parts(key), parts(value));
                    for cf in self.families {
                        (api.rocksdb_writebatch_put_cf)(batch, cf, key, klen, value, vlen);
                        (api.rocksdb_writebatch_merge_cf)(batch, cf, key, klen, value, vlen);
                    }
                    if *range {
                        let (end, end_len) = parts(b"z");
                        (api.rocksdb_writebatch_delete_range_cf)(
                            batch,
                            self.families[0],
                            key,
                            klen,
                            end,
                            end_len,
                        );
                    }
                    match locks {
                        true => (api.rocksdb_transactiondb_write)(self.db, wo, batch, &mut error),
                        false => (api.rocksdb_optimistictransactiondb_write)(self.db, wo, batch, &mut error),
                    }
                    (api.rocksdb_writebatch_destroy)(batch);
                }
                Step::GetOutside(cf, key) => {
                    let (cf, (key, klen)) = (self.families[*cf], parts(key));
                    let value = match locks {
                        true => (api.rocksdb_transactiondb_get_cf)(
                            self.db, ro, cf, key, klen, &mut len, &mut error,
                        ),
                        false => (api.rocksdb_get_cf)(self.base, ro, cf, key, klen, &mut len, &mut error),
                    };
                    return self.value(value, len, error);
                }
                Step::Flush(cf) => {
                    let options = (api.rocksdb_flushoptions_create)();
                    match locks {
                        true => (api.rocksdb_transactiondb_flush_cf)(
                            self.db,
                            options,
                            self.families[*cf],
                            &mut error,
                        ),
                        false => (api.rocksdb_flush_cf)(self.base, options, self.families[*cf], &mut error),
                    }
                }
                other => panic!("{other:?} is not outside"),
            }
            self.error(error);
        }
    }

    unsafe fn play(&mut self, step: &Step) {
        let api = self.api;
        let txn_of = |t: &usize| self.transactions[*t];
        let (mut len, mut error) = (0, null_mut());
        let txn = match step {
            Step::Begin(t, in_place, snapshot, longest, skip_prepare) => {
                // SAFETY: live objects.
                return unsafe { self.begin(*t, *in_place, *snapshot, *longest, *skip_prepare) };
            }
            Step::Destroy(t) => {
                if !self.transactions[*t].is_null() {
                    // SAFETY: a live transaction.
                    unsafe { (api.rocksdb_transaction_destroy)(self.transactions[*t]) };
                    self.transactions[*t] = null_mut();
                }
                return;
            }
            Step::Put(t, ..) | Step::Merge(t, ..) | Step::Delete(t, ..) | Step::LogData(t, ..) => txn_of(t),
            Step::Get(t, ..) | Step::GetForUpdate(t, ..) | Step::Walk(t, ..) | Step::Save(t) => txn_of(t),
            Step::RollbackToSave(t) | Step::Name(t, ..) | Step::Prepare(t) | Step::Commit(t) => txn_of(t),
            Step::Rollback(t) | Step::Rebuild(t, ..) => txn_of(t),
            // SAFETY: live objects.
            outside => return unsafe { self.outside(outside) },
        };
        if txn.is_null() {
            return;
        }
        // SAFETY: live objects.
        unsafe {
            match step {
                Step::Put(_, cf, key, value) => {
                    let ((key, klen), (value, vlen)) = (parts(key), parts(value));
                    (api.rocksdb_transaction_put_cf)(
                        txn,
                        self.families[*cf],
                        key,
                        klen,
                        value,
                        vlen,
                        &mut error,
                    );
                }
                Step::Merge(_, cf, key, value) => {
                    let ((key, klen), (value, vlen)) = (parts(key), parts(value));
                    (api.rocksdb_transaction_merge_cf)(
                        txn,
                        self.families[*cf],
                        key,
                        klen,
                        value,
                        vlen,
                        &mut error,
                    );
                }
                Step::Delete(_, cf, key) => {
                    let (key, klen) = parts(key);
                    (api.rocksdb_transaction_delete_cf)(txn, self.families[*cf], key, klen, &mut error);
                }
                Step::LogData(_, blob) => {
                    (api.rocksdb_transaction_put_log_data)(txn, parts(blob).0, blob.len())
                }
                Step::Get(_, cf, key) => {
                    let (cf, (key, klen)) = (self.families[*cf], parts(key));
                    let value = (api.rocksdb_transaction_get_cf)(
                        txn,
                        self.read_options,
                        cf,
                        key,
                        klen,
                        &mut len,
                        &mut error,
                    );
                    self.value(value, len, std::mem::replace(&mut error, null_mut()));
                }
                Step::GetForUpdate(_, cf, key, exclusive) => {
                    let (cf, (key, klen)) = (self.families[*cf], parts(key));
                    let exclusive = (*exclusive).into();
                    let value = (api.rocksdb_transaction_get_for_update_cf)(
                        txn,
                        self.read_options,
                        cf,
                        key,
                        klen,
                        &mut len,
                        exclusive,
                        &mut error,
                    );
                    self.value(value, len, std::mem::replace(&mut error, null_mut()));
                }
                Step::Walk(_, cf) => self.walk(txn, self.families[*cf]),
                Step::Save(_) => (api.rocksdb_transaction_set_savepoint)(txn),
                Step::RollbackToSave(_) => (api.rocksdb_transaction_rollback_to_savepoint)(txn, &mut error),
                Step::Name(_, name) => {
                    (api.rocksdb_transaction_set_name)(txn, parts(name).0, name.len(), &mut error)
                }
                Step::Prepare(_) => (api.rocksdb_transaction_prepare)(txn, &mut error),
                Step::Commit(_) => (api.rocksdb_transaction_commit)(txn, &mut error),
                Step::Rollback(_) => (api.rocksdb_transaction_rollback)(txn, &mut error),
                Step::Rebuild(_, range) => {
                    let batch = (api.rocksdb_writebatch_create)();
                    let ((key, klen), (value, vlen)) = (parts(b"k1"), parts(b"12345678"));
                    (api.rocksdb_writebatch_put_cf)(batch, self.families[1], key, klen, value, vlen);
                    if *range {
                        (api.rocksdb_writebatch_delete_range_cf)(
                            batch,
                            self.families[0],
                            key,
                            klen,
                            value,
                            vlen,
                        );
                    }
                    (api.rocksdb_transaction_rebuild_from_writebatch)(txn, batch, &mut error);
                    (api.rocksdb_writebatch_destroy)(batch);
                }
                other => panic!("{other:?} is outside"),
            }
            self.error(error);
            let batch = (api.rocksdb_transaction_get_writebatch_wi)(txn);
            let data = (api.rocksdb_writebatch_wi_data)(batch, &mut len);
            let data = std::slice::from_raw_parts(data.cast::<u8>(), len);
            // Without the sequence number, which a write may leave there.
            self.told.push(format!("{:02x?}", &data[8..]));
            (api.rocksdb_free)(batch);
        }
    }

    unsafe fn end(self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            for txn in self.transactions.into_iter().filter(|txn| !txn.is_null()) {
                (self.api.rocksdb_transaction_destroy)(txn);
            }
            self.families.iter().for_each(|cf| (self.api.rocksdb_column_family_handle_destroy)(*cf));
            if self.kind == Kind::Locks {
                (self.api.rocksdb_transactiondb_close)(self.db);
            } else {
                (self.api.rocksdb_optimistictransactiondb_close_base_db)(self.base);
                (self.api.rocksdb_optimistictransactiondb_close)(self.db);
            }
        }
    }
}

/// Steps that both libraries are meant to answer alike: what is done with a prepared transaction but deciding it is refused here,
/// and lost in a crash there (docs/transactions.md).
struct Drawn {
    prepared: [bool; 3],
}

impl Drawn {
    fn allows(&mut self, step: &Step) -> bool {
        match step {
            Step::Begin(t, ..) | Step::Destroy(t) | Step::Commit(t) | Step::Rollback(t) => {
                self.prepared[*t] = false;
                true
            }
            Step::Prepare(t) => {
                self.prepared[*t] = true;
                true
            }
            Step::Put(t, ..) | Step::Merge(t, ..) | Step::Delete(t, ..) | Step::Rebuild(t, ..) => {
                !self.prepared[*t]
            }
            // RocksDB's batch has the end of the prepared section in it.
            Step::LogData(t, ..) | Step::Save(t) | Step::RollbackToSave(t) | Step::Name(t, ..) => {
                !self.prepared[*t]
            }
            Step::Get(t, ..) | Step::GetForUpdate(t, ..) | Step::Walk(t, ..) => !self.prepared[*t],
            _ => true,
        }
    }
}

#[test]
fn transactions_answer_as_rocksdbs() {
    let Some(path) = reference() else { return };
    let (theirs, ours) = (Api::load(&path), Api::load(&outcrop_library()));
    let given = std::env::var("OUTCROP_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..60, |seed: u64| seed..seed + 1);
    let mut errors = BTreeSet::new();
    for seed in seeds {
        let mut random = Random(SplitMix::new(seed));
        let kind = [Kind::Locks, Kind::Locks, Kind::Serial, Kind::Parallel][random.below(4) as usize];
        let max_num_locks = if random.below(4) == 0 { 3 } else { -1 };
        let mut drawn = Drawn { prepared: [false; 3] };
        let steps: Vec<Step> = (0..200)
            .map(|_| random.step())
            .filter(|step| kind != Kind::Locks || drawn.allows(step))
            .collect();
        let dir = tempfile::tempdir().unwrap();
        // SAFETY: the players use their objects as the C API says.
        unsafe {
            let mut reference = Player::new(&theirs, &dir.path().join("theirs"), kind, max_num_locks);
            let mut outcrop = Player::new(&ours, &dir.path().join("ours"), kind, max_num_locks);
            for (number, step) in steps.iter().enumerate() {
                reference.play(step);
                outcrop.play(step);
                // Their batch ends with the mark while it is prepared.
                let is_prepare = matches!(step, Step::Prepare(_));
                if is_prepare {
                    reference.told.pop();
                    outcrop.told.pop();
                }
                let same = reference.told == outcrop.told;
                assert!(
                    same,
                    "seed {seed}, {kind:?}, step {number} {step:?}\nRocksDB {:#?}\nOutcrop {:#?}\nafter {:#?}",
                    reference.told,
                    outcrop.told,
                    &steps[number.saturating_sub(30)..number]
                );
                let is_error = |told: &String| told.contains(": ") && !told.contains('=');
                errors.extend(reference.told.drain(..).filter(is_error));
                outcrop.told.clear();
            }
            reference.end();
            outcrop.end();
        }
    }
    if given.is_none() {
        println!("{errors:#?}");
        for part in [
            "Resource busy: ",
            "Timeout waiting",
            "max_num_locks",
            "Memory limit",
            "Txn not prepared",
            "NotFound: ",
        ] {
            assert!(errors.iter().any(|error| error.contains(part)), "no call was told {part}");
        }
        assert!(errors.len() >= 16, "only {} texts of errors", errors.len());
    }
}

// ---- prepared by one, decided by the other

/// Set in the child: the library, the directory and the first number.
const CHILD: &str = "OUTCROP_PREPARE_TEST";

fn two_phase_name(i: u64) -> Vec<u8> {
    format!("txn{i:04}").into_bytes()
}

/// The child: prepares transactions, decides some, and is killed by its own hand.
#[test]
fn prepares_and_is_killed() {
    let Ok(given) = std::env::var(CHILD) else { return };
    let mut given = given.split('\n');
    let (library, dir) = (given.next().unwrap(), given.next().unwrap());
    let first: u64 = given.next().unwrap().parse().unwrap();
    let api = Api::load(Path::new(library));
    // SAFETY: live objects; the process ends without closing them.
    unsafe {
        let mut player = Player::new(&api, Path::new(dir), Kind::Locks, -1);
        for i in first..first + 12 {
            let name = two_phase_name(i);
            player.begin(0, false, false, 0, true);
            for cf in 0..2 {
                player.play(&Step::Put(0, cf, name.clone(), i.to_le_bytes().to_vec()));
                player.play(&Step::Merge(0, cf, b"sum".to_vec(), i.to_le_bytes().to_vec()));
            }
            // Locks end with the object, so that the next can have the sum.
            player.play(&Step::Name(0, name));
            player.play(&Step::Prepare(0));
            match i % 3 {
                0 => player.play(&Step::Commit(0)),
                1 => player.play(&Step::Rollback(0)),
                _ => {}
            }
            if i % 5 == 0 {
                player.play(&Step::Flush((i % 2) as usize));
            }
        }
        let errors: Vec<_> = player.told.iter().filter(|told| !told.starts_with('[')).collect();
        assert!(errors.is_empty(), "{errors:?}");
        libc::kill(libc::getpid(), libc::SIGKILL);
    }
}

#[test]
fn what_one_library_prepares_the_other_decides() {
    let Some(path) = reference() else { return };
    let (theirs, ours) = (Api::load(&path), Api::load(&outcrop_library()));
    let libraries = [(&path, &theirs), (&outcrop_library(), &ours)].map(|(path, api)| (path.clone(), api));
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let mut committed = Vec::new();
    for round in 0..6u64 {
        let writer = &libraries[(round % 2) as usize];
        let decider = &libraries[((round + if round < 4 { 1 } else { 0 }) % 2) as usize];
        let first = round * 100;
        let given = format!("{}\n{}\n{first}", writer.0.display(), dir.display());
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["transactions::prepares_and_is_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, given)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "it kills itself");
        committed.extend((first..first + 12).filter(|i| i % 3 == 0));
        // SAFETY: the player uses its objects as the C API says.
        unsafe {
            let mut player = Player::new(decider.1, &dir, Kind::Locks, -1);
            let api = decider.1;
            let (mut count, mut len) = (0, 0);
            let list = (api.rocksdb_transactiondb_get_prepared_transactions)(player.db, &mut count);
            let mut names = Vec::new();
            for place in 0..count {
                let txn = *list.add(place);
                let name = (api.rocksdb_transaction_get_name)(txn, &mut len);
                let text = std::slice::from_raw_parts(name.cast::<u8>(), len).to_vec();
                (api.rocksdb_free)(name.cast());
                let i: u64 = std::str::from_utf8(&text[3..]).unwrap().parse().unwrap();
                names.push(i);
                let mut error = null_mut();
                if i.is_multiple_of(2) {
                    (api.rocksdb_transaction_commit)(txn, &mut error);
                    committed.push(i);
                } else {
                    (api.rocksdb_transaction_rollback)(txn, &mut error);
                }
                player.error(error);
                (api.rocksdb_transaction_destroy)(txn);
            }
            (api.rocksdb_free)(list.cast());
            names.sort_unstable();
            let expected: Vec<u64> = (first..first + 12).filter(|i| i % 3 == 2).collect();
            assert_eq!(names, expected, "round {round}");
            assert!(player.told.is_empty(), "{:?}", player.told);
            player.end();
        }
        let sum: u64 = committed.iter().sum();
        // Both see the same, whoever opens next.
        for (_, api) in &libraries {
            // SAFETY: as above.
            unsafe {
                let mut player = Player::new(api, &dir, Kind::Locks, -1);
                for cf in 0..2 {
                    player.play(&Step::GetOutside(cf, b"sum".to_vec()));
                    assert_eq!(
                        player.told.pop(),
                        Some(format!("{:02x?}", sum.to_le_bytes())),
                        "round {round}"
                    );
                    for i in first..first + 12 {
                        player.play(&Step::GetOutside(cf, two_phase_name(i)));
                        let there = player.told.pop().unwrap() != "none";
                        assert_eq!(there, committed.contains(&i), "round {round}, transaction {i}");
                    }
                }
                player.end();
            }
        }
    }
}

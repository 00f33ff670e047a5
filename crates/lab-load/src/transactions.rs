//! `randomtransaction`: increments of counters in several sets, under transactions, and the proof that none was lost.
//!
//! ```text
//! one transaction:  set 1  key 0001-0000000417  + 38     one random key of each set is read for update and
//!                   set 2  key 0002-0000000093  + 38     incremented by the same random number
//!                   ...                                  commit
//! at the end:       the sums of all sets are equal
//! ```
//! A transaction that meets another one's lock or write is rolled back and counted as a conflict.
//! `overwritelocked` has single writes, without a transaction around them: each locks its key.
//!
//! Concurrency: one handle of the database for all threads; each transaction belongs to its thread.
//! Source: RocksDB `test_util/transaction_test_util.cc`, `tools/db_bench_tool.cc`, `RandomTransaction`.

use crate::database::{Durability, path_name, take_error, write_options};
use crate::ffi::{Object, RocksApi, Shared};
use crate::open::{OpenOptions, Opening};
use crate::rng::Mt19937_64;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::ptr::null_mut;

/// How conflicts are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concurrency {
    /// By locks, when a key is read.
    Pessimistic,
    /// By a check, at commit.
    Optimistic,
}

/// Why there is no database of transactions.
#[derive(Debug)]
pub enum Refusal {
    /// The library has no transactions.
    NotOffered(String),
    /// The library has them and failed.
    Failed(String),
}

/// The functions of one kind of transactions.
#[derive(Clone, Copy)]
struct Functions {
    close: unsafe extern "C" fn(Object),
    begin: unsafe extern "C" fn(Object, Object, Object, Object) -> Object,
    destroy_options: unsafe extern "C" fn(Object),
    get_for_update: unsafe extern "C" fn(
        Object,
        Object,
        crate::ffi::Bytes,
        usize,
        *mut usize,
        u8,
        crate::ffi::Errptr,
    ) -> *mut libc::c_char,
    put: unsafe extern "C" fn(Object, crate::ffi::Bytes, usize, crate::ffi::Bytes, usize, crate::ffi::Errptr),
    commit: unsafe extern "C" fn(Object, crate::ffi::Errptr),
    rollback: unsafe extern "C" fn(Object, crate::ffi::Errptr),
    destroy: unsafe extern "C" fn(Object),
    /// A write that takes the lock of its key by itself: of pessimistic databases.
    put_locked: Option<
        unsafe extern "C" fn(
            Object,
            Object,
            crate::ffi::Bytes,
            usize,
            crate::ffi::Bytes,
            usize,
            crate::ffi::Errptr,
        ),
    >,
    create_iterator: unsafe extern "C" fn(Object, Object) -> Object,
}

/// A database opened for transactions.
pub struct TransactionDatabase {
    pub(crate) api: RocksApi,
    functions: Functions,
    db: Shared,
    read: Shared,
    write: Shared,
    options: Shared,
    // The last field: options and cache go after the database that was opened with them.
    _opening: SharedOpening,
}

/// The opening of the database; touched only when it is dropped.
struct SharedOpening(#[allow(dead_code, reason = "kept for its destructor")] Opening);

#[allow(unsafe_code, reason = "options and caches may be used from any thread, by RocksDB's contract")]
// SAFETY: nothing reads it while threads share it.
unsafe impl Sync for SharedOpening {}
#[allow(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Send for SharedOpening {}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl TransactionDatabase {
    /// Opens the database at `path`, which may have been written without transactions. All writes are as durable as `durability` says.
    ///
    /// # Errors
    /// [`Refusal::NotOffered`] if the library has no transactions, by its functions or by its own word.
    pub fn open(
        api: RocksApi,
        path: &Path,
        settings: &OpenOptions,
        text: &str,
        concurrency: Concurrency,
        durability: Durability,
    ) -> Result<TransactionDatabase, Refusal> {
        let lacking = || Refusal::NotOffered("the library has no functions for transactions".to_string());
        let name = path_name(path).map_err(Refusal::Failed)?;
        let functions = functions(&api, concurrency).ok_or_else(lacking)?;
        let opening = Opening::new(api, settings, text).map_err(Refusal::Failed)?;
        let mut error = null_mut();
        // SAFETY: objects are created here and live until `drop`; the name is NUL-terminated.
        unsafe {
            let (db, options) = match concurrency {
                Concurrency::Pessimistic => {
                    let create = api.rocksdb_transactiondb_options_create.ok_or_else(lacking)?;
                    let destroy = api.rocksdb_transactiondb_options_destroy.ok_or_else(lacking)?;
                    let open = api.rocksdb_transactiondb_open.ok_or_else(lacking)?;
                    let options = api.rocksdb_transaction_options_create.ok_or_else(lacking)?;
                    let settings = create();
                    let db = open(opening.options, settings, name.as_ptr(), &raw mut error);
                    destroy(settings);
                    (db, options)
                }
                Concurrency::Optimistic => {
                    let open = api.rocksdb_optimistictransactiondb_open.ok_or_else(lacking)?;
                    let options = api.rocksdb_optimistictransaction_options_create.ok_or_else(lacking)?;
                    (open(opening.options, name.as_ptr(), &raw mut error), options)
                }
            };
            take_error(&api, error).map_err(|message| match message.strip_prefix("Not implemented: ") {
                Some(why) => Refusal::NotOffered(why.to_string()),
                None => Refusal::Failed(message),
            })?;
            Ok(TransactionDatabase {
                api,
                functions,
                db: Shared(db),
                read: Shared((api.rocksdb_readoptions_create)()),
                write: Shared(write_options(
                    &api,
                    i32::from(durability == Durability::NoWal),
                    u8::from(durability == Durability::Sync),
                )),
                options: Shared(options()),
                _opening: SharedOpening(opening),
            })
        }
    }

    /// One transaction over `sets` sets of `num` keys each; false if it met another and was rolled back.
    ///
    /// # Errors
    /// The engine's message, if it is about anything else than a conflict.
    pub fn increment(&self, sets: u32, num: u64, rng: &mut Mt19937_64) -> Result<bool, String> {
        let by = rng.next_u64() % 100 + 1;
        // SAFETY: live objects.
        let transaction =
            unsafe { (self.functions.begin)(self.db.0, self.write.0, self.options.0, null_mut()) };
        let mut done = Ok(());
        for set in 1..=sets {
            let key = counter_key(set, rng.next_u64() % num);
            done = done.and_then(|()| self.add(transaction, &key, by));
        }
        let mut error = null_mut();
        // SAFETY: live objects; the transaction is destroyed once.
        unsafe {
            done = done.and_then(|()| {
                (self.functions.commit)(transaction, &raw mut error);
                take_error(&self.api, error)
            });
            if done.is_err() {
                let mut error = null_mut();
                (self.functions.rollback)(transaction, &raw mut error);
                // The transaction is gone, whatever the error says.
                let _ = take_error(&self.api, error);
            }
            (self.functions.destroy)(transaction);
        }
        match done {
            Ok(()) => Ok(true),
            Err(message) if is_conflict(&message) => Ok(false),
            Err(message) => Err(message),
        }
    }

    /// Writes one key outside of any transaction, with its lock held.
    ///
    /// # Errors
    /// The engine's message.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let mut error = null_mut();
        let put = self.functions.put_locked.ok_or("the library locks nothing for single writes")?;
        // SAFETY: live objects and slices.
        unsafe {
            put(
                self.db.0,
                self.write.0,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut error,
            );
            take_error(&self.api, error)
        }
    }

    fn add(&self, transaction: Object, key: &str, by: u64) -> Result<(), String> {
        let (mut len, mut error) = (0, null_mut());
        let start = key.as_ptr().cast();
        // SAFETY: live objects and slices; the value is malloc'ed by the engine and freed after its use.
        unsafe {
            let value = (self.functions.get_for_update)(
                transaction,
                self.read.0,
                start,
                key.len(),
                &raw mut len,
                1,
                &raw mut error,
            );
            take_error(&self.api, error)?;
            let mut old = 0;
            if !value.is_null() {
                old = decimal(std::slice::from_raw_parts(value.cast(), len));
                (self.api.rocksdb_free)(value.cast());
            }
            let new = (old + by).to_string();
            (self.functions.put)(
                transaction,
                start,
                key.len(),
                new.as_ptr().cast(),
                new.len(),
                &raw mut error,
            );
            take_error(&self.api, error)
        }
    }

    /// The sum of all counters of each set.
    ///
    /// # Errors
    /// The engine's message.
    pub fn sums(&self, sets: u32) -> Result<Vec<u64>, String> {
        let mut error = null_mut();
        // SAFETY: live objects; keys and values are valid until the iterator moves.
        unsafe {
            let transaction = (self.functions.begin)(self.db.0, self.write.0, self.options.0, null_mut());
            let iter = (self.functions.create_iterator)(transaction, self.read.0);
            let sum = |set: u32| {
                let prefix = format!("{set:04}-");
                (self.api.rocksdb_iter_seek)(iter, prefix.as_ptr().cast(), prefix.len());
                let mut sum = 0u64;
                while (self.api.rocksdb_iter_valid)(iter) != 0 {
                    let (mut key_len, mut len) = (0, 0);
                    let key = (self.api.rocksdb_iter_key)(iter, &raw mut key_len).cast::<u8>();
                    if !std::slice::from_raw_parts(key, key_len).starts_with(prefix.as_bytes()) {
                        break;
                    }
                    let value = (self.api.rocksdb_iter_value)(iter, &raw mut len).cast::<u8>();
                    sum += decimal(std::slice::from_raw_parts(value, len));
                    (self.api.rocksdb_iter_next)(iter);
                }
                sum
            };
            let sums = (1..=sets).map(sum).collect();
            (self.api.rocksdb_iter_get_error)(iter, &raw mut error);
            (self.api.rocksdb_iter_destroy)(iter);
            (self.functions.destroy)(transaction);
            take_error(&self.api, error).map(|()| sums)
        }
    }
}

#[allow(unsafe_code, reason = "each call is one C function with live objects")]
impl Drop for TransactionDatabase {
    fn drop(&mut self) {
        // SAFETY: live objects, each destroyed once.
        unsafe {
            (self.functions.close)(self.db.0);
            (self.functions.destroy_options)(self.options.0);
            (self.api.rocksdb_readoptions_destroy)(self.read.0);
            (self.api.rocksdb_writeoptions_destroy)(self.write.0);
        }
    }
}

/// The functions for `concurrency`, if the library has all of them.
fn functions(api: &RocksApi, concurrency: Concurrency) -> Option<Functions> {
    let (close, begin, destroy_options) = match concurrency {
        Concurrency::Pessimistic => (
            api.rocksdb_transactiondb_close?,
            api.rocksdb_transaction_begin?,
            api.rocksdb_transaction_options_destroy?,
        ),
        Concurrency::Optimistic => (
            api.rocksdb_optimistictransactiondb_close?,
            api.rocksdb_optimistictransaction_begin?,
            api.rocksdb_optimistictransaction_options_destroy?,
        ),
    };
    Some(Functions {
        close,
        begin,
        destroy_options,
        get_for_update: api.rocksdb_transaction_get_for_update?,
        put: api.rocksdb_transaction_put?,
        commit: api.rocksdb_transaction_commit?,
        rollback: api.rocksdb_transaction_rollback?,
        destroy: api.rocksdb_transaction_destroy?,
        put_locked: match concurrency {
            Concurrency::Pessimistic => api.rocksdb_transactiondb_put,
            Concurrency::Optimistic => None,
        },
        create_iterator: api.rocksdb_transaction_create_iterator?,
    })
}

/// Key of a counter. No loaded key begins so: those begin with their number in big-endian.
fn counter_key(set: u32, number: u64) -> String {
    format!("{set:04}-{number:010}")
}

/// A counter; 0 if the value is none.
fn decimal(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether a message says that another transaction was in the way.
fn is_conflict(message: &str) -> bool {
    ["Resource busy", "Operation timed out", "Operation failed. Try again"]
        .iter()
        .any(|beginning| message.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_told_from_failures() {
        assert!(
            is_conflict("Resource busy: ") && is_conflict("Operation timed out: Timeout waiting to lock key")
        );
        assert!(!is_conflict("IO error: No space left on device") && !is_conflict("Corruption: x"));
    }

    #[test]
    fn counters_are_ordered_by_set_and_read_back() {
        assert!(counter_key(1, 999) < counter_key(2, 0));
        assert_eq!((decimal(b"41"), decimal(b""), decimal(b"\xff")), (41, 0, 0));
    }
}

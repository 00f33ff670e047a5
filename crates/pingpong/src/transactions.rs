//! Databases with transactions: a write in two phases, and what a crash leaves between them.

use crate::batch::Change;
use crate::call::{Outcome, c_string, call, parts, take_bytes, with_error};
use crate::database::{Database, Handle};
use crate::library::{Api, Errptr, Object};
use crate::options::Options;
use std::ptr::null_mut;

impl<'a> Database<'a> {
    /// Opens `path` as a database with transactions, whose other functions work as without.
    pub fn open_with_transactions(
        api: &'a Api,
        path: &str,
        families: Vec<(String, Options<'a>)>,
    ) -> Outcome<(Database<'a>, Vec<Handle>)> {
        let (mut database, handles) =
            Database::open_by(api, families, |options, count, names, all, handles, e| {
                let path = c_string(path)?;
                // SAFETY: live objects; as many names, options and places for handles as the count says.
                unsafe {
                    let of_transactions = call!(api, rocksdb_transactiondb_options_create());
                    let object = call!(
                        api,
                        rocksdb_transactiondb_open_column_families(
                            options,
                            of_transactions,
                            path.as_ptr(),
                            count,
                            names,
                            all,
                            handles,
                            e
                        )
                    );
                    call!(api, rocksdb_transactiondb_options_destroy(of_transactions));
                    Ok(object)
                }
            })?;
        // SAFETY: a live database.
        let base = unsafe { call!(api, rocksdb_transactiondb_get_base_db(database.object)) };
        database.transactions = Some(std::mem::replace(&mut database.object, base));
        Ok((database, handles))
    }

    fn transactions(&self) -> Outcome<Object> {
        self.transactions.ok_or_else(|| "the database was opened without transactions".to_string())
    }

    /// Makes the changes in a transaction that is prepared, and committed.
    pub fn write_in_two_phases(
        &self,
        name: &str,
        changes: &[(Handle, Change<'_>)],
        sync: bool,
    ) -> Outcome<()> {
        let transaction = self.begin(name, changes, sync)?;
        transaction.prepare()?;
        transaction.commit()
    }

    /// Begins a transaction of this name that makes the changes.
    pub fn begin(
        &self,
        name: &str,
        changes: &[(Handle, Change<'_>)],
        sync: bool,
    ) -> Outcome<Transaction<'a>> {
        let (api, database) = (self.api, self.transactions()?);
        let mut begun = None;
        self.with_write_options(sync, true, |write_options| {
            // SAFETY: live objects; the options are destroyed after their one use.
            unsafe {
                let options = call!(api, rocksdb_transaction_options_create());
                let object =
                    call!(api, rocksdb_transaction_begin(database, write_options, options, null_mut()));
                call!(api, rocksdb_transaction_options_destroy(options));
                begun = Some(Transaction { api, object });
            }
            Ok(())
        })?;
        let transaction = begun.ok_or_else(|| "no transaction was begun".to_string())?;
        let (n, nl) = parts(name.as_bytes());
        transaction.step(|object, e| {
            // SAFETY: a live object and slice.
            unsafe { call!(api, rocksdb_transaction_set_name(object, n, nl, e)) };
            Ok(())
        })?;
        for (handle, change) in changes {
            transaction.change(*handle, change)?;
        }
        Ok(transaction)
    }

    /// The transactions that were prepared and not decided, with their names.
    pub fn prepared(&self) -> Outcome<Vec<(String, Transaction<'a>)>> {
        let (api, database) = (self.api, self.transactions()?);
        let mut count = 0;
        // SAFETY: a live database; the list is ours, and freed once; each transaction is owned from here on.
        let transactions: Vec<Transaction<'a>> = unsafe {
            let list = call!(api, rocksdb_transactiondb_get_prepared_transactions(database, &raw mut count));
            let transactions =
                (0..count).map(|place| Transaction { api, object: *list.add(place) }).collect();
            if !list.is_null() {
                call!(api, rocksdb_free(list.cast()));
            }
            transactions
        };
        transactions.into_iter().map(|transaction| Ok((transaction.name()?, transaction))).collect()
    }

    /// Rolls back every transaction that was prepared and not decided; gives how many they were.
    pub fn roll_back_prepared(&self) -> Outcome<usize> {
        let prepared = self.prepared()?;
        prepared.iter().try_for_each(|(_, transaction)| transaction.roll_back())?;
        Ok(prepared.len())
    }
}

/// A transaction. It must be dropped before its database is closed; one that is prepared then stays prepared.
pub struct Transaction<'a> {
    api: &'a Api,
    object: Object,
}

impl Transaction<'_> {
    fn step(&self, step: impl FnOnce(Object, Errptr) -> Outcome<()>) -> Outcome<()> {
        with_error(self.api, |e| step(self.object, e))
    }

    fn change(&self, handle: Handle, change: &Change<'_>) -> Outcome<()> {
        let (api, cf) = (self.api, handle.0);
        // SAFETY: live objects and slices.
        self.step(|object, e| unsafe {
            match change {
                Change::Put(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_transaction_put_cf(object, cf, k, kl, v, vl, e));
                }
                Change::Merge(key, value) => {
                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                    call!(api, rocksdb_transaction_merge_cf(object, cf, k, kl, v, vl, e));
                }
                Change::Delete(key) => {
                    let (k, kl) = parts(key);
                    call!(api, rocksdb_transaction_delete_cf(object, cf, k, kl, e));
                }
                _ => return Err("no such change in a transaction".to_string()),
            }
            Ok(())
        })
    }

    fn name(&self) -> Outcome<String> {
        let mut len = 0;
        // SAFETY: a live object; the name is the library's allocation, and freed once.
        let name = unsafe { call!(self.api, rocksdb_transaction_get_name(self.object, &raw mut len)) };
        let bytes = take_bytes(self.api, name, len).unwrap_or_default();
        Ok(bytes.escape_ascii().to_string())
    }

    /// Prepares it.
    pub fn prepare(&self) -> Outcome<()> {
        self.step(|object, e| {
            // SAFETY: a live object.
            unsafe { call!(self.api, rocksdb_transaction_prepare(object, e)) };
            Ok(())
        })
    }

    /// Commits it.
    pub fn commit(&self) -> Outcome<()> {
        self.step(|object, e| {
            // SAFETY: a live object.
            unsafe { call!(self.api, rocksdb_transaction_commit(object, e)) };
            Ok(())
        })
    }

    /// Rolls it back.
    pub fn roll_back(&self) -> Outcome<()> {
        self.step(|object, e| {
            // SAFETY: a live object.
            unsafe { call!(self.api, rocksdb_transaction_rollback(object, e)) };
            Ok(())
        })
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.api.rocksdb_transaction_destroy {
            // SAFETY: ours, and destroyed once.
            unsafe { destroy(self.object) }
        }
    }
}

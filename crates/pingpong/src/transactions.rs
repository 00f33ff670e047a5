//! Databases with transactions: a write in two phases, and what a crash leaves between them.

use crate::batch::Change;
use crate::call::{Outcome, c_string, call, parts, with_error};
use crate::database::{Database, Handle};
use crate::library::{Api, Object};
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
        let (api, database) = (self.api, self.transactions()?);
        self.with_write_options(sync, true, |write_options| {
            // SAFETY: live objects and slices; options and transaction are destroyed after their one use.
            unsafe {
                let options = call!(api, rocksdb_transaction_options_create());
                let transaction =
                    call!(api, rocksdb_transaction_begin(database, write_options, options, null_mut()));
                call!(api, rocksdb_transaction_options_destroy(options));
                let run = || {
                    let (n, nl) = parts(name.as_bytes());
                    let step = |call: &dyn Fn(crate::library::Errptr) -> Outcome<()>| with_error(api, call);
                    step(&|e| {
                        call!(api, rocksdb_transaction_set_name(transaction, n, nl, e));
                        Ok(())
                    })?;
                    for (handle, change) in changes {
                        step(&|e| {
                            match change {
                                Change::Put(key, value) => {
                                    let ((k, kl), (v, vl)) = (parts(key), parts(value));
                                    call!(
                                        api,
                                        rocksdb_transaction_put_cf(transaction, handle.0, k, kl, v, vl, e)
                                    );
                                }
                                Change::Delete(key) => {
                                    let (k, kl) = parts(key);
                                    call!(
                                        api,
                                        rocksdb_transaction_delete_cf(transaction, handle.0, k, kl, e)
                                    );
                                }
                                _ => return Err("no such change in a transaction".to_string()),
                            }
                            Ok(())
                        })?;
                    }
                    step(&|e| {
                        call!(api, rocksdb_transaction_prepare(transaction, e));
                        Ok(())
                    })?;
                    step(&|e| {
                        call!(api, rocksdb_transaction_commit(transaction, e));
                        Ok(())
                    })
                };
                let outcome = run();
                call!(api, rocksdb_transaction_destroy(transaction));
                outcome
            }
        })
    }

    /// Rolls back every transaction that was prepared and not decided; gives how many they were.
    pub fn roll_back_prepared(&self) -> Outcome<usize> {
        let (api, database) = (self.api, self.transactions()?);
        let mut count = 0;
        // SAFETY: a live database; the list and its transactions are ours, and freed once.
        unsafe {
            let list = call!(api, rocksdb_transactiondb_get_prepared_transactions(database, &raw mut count));
            let mut outcome = Ok(());
            for place in 0..count {
                let transaction = *list.add(place);
                outcome = outcome.and_then(|()| {
                    with_error(api, |e| {
                        call!(api, rocksdb_transaction_rollback(transaction, e));
                        Ok(())
                    })
                });
                call!(api, rocksdb_transaction_destroy(transaction));
            }
            if !list.is_null() {
                call!(api, rocksdb_free(list.cast()));
            }
            outcome.map(|()| count)
        }
    }
}

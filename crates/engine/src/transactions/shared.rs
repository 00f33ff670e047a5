//! State that the transactions of a database have in common.

use super::buckets::LockBuckets;
use super::locks::{LockManager, Owner};
use super::options::{TransactionDbOptions, ValidatePolicy};
use crate::db::Db;
use outcrop_base::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The next number of a transaction, or of a database of optimistic ones.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number that nothing else has that asks here, in this process.
pub fn new_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A transaction of this name is there and not decided.
pub fn duplicate_name(name: &[u8]) -> Error {
    Error::invalid_argument(format!("Duplicate txn name {}", String::from_utf8_lossy(name)))
}

/// Of a [`super::database::TransactionDb`].
pub struct Pessimistic {
    /// The database.
    pub db: Arc<Db>,
    /// The transactions that hold each key.
    pub locks: LockManager,
    /// As it was opened.
    pub options: TransactionDbOptions,
    /// Names in use.
    pub names: Mutex<HashSet<Vec<u8>>>,
}

impl Pessimistic {
    /// Takes `name`, if it is free.
    pub fn register(&self, name: &[u8]) -> Result<()> {
        match self.names.lock().insert(name.to_vec()) {
            true => Ok(()),
            false => Err(duplicate_name(name)),
        }
    }

    /// `name` is free.
    pub fn unregister(&self, name: &[u8]) {
        self.names.lock().remove(name);
    }

    /// Microseconds since the epoch.
    pub fn now_micros(&self) -> u64 {
        self.db.core().ctx.env.clock.now_micros()
    }

    /// True once the transaction has expired.
    pub fn is_expired(&self, owner: &Owner) -> bool {
        owner.expires() > 0 && self.now_micros() >= owner.expires()
    }
}

/// Of an [`super::optimistic::OptimisticTransactionDb`].
pub struct Optimistic {
    /// The database.
    pub db: Arc<Db>,
    /// How transactions are checked.
    pub policy: ValidatePolicy,
    /// For those that are checked at the same time.
    pub buckets: Arc<LockBuckets>,
    /// Tells its keys from those of other databases with the same buckets.
    pub id: u64,
}

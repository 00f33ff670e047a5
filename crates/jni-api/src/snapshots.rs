//! Snapshots by number: a native that is given one which is gone throws, where RocksJava reads freed memory.
//!
//! ```text
//! RocksDB.getSnapshot      kept here until it is released or its database closes
//! Transaction.getSnapshot  kept by the transaction and by options that were given it; named here as long as one of them keeps it
//! ```
//! A number is never given again, so that one of the past finds nothing.

use crate::glue::{Answer, Thrown};
use jni_sys::jlong;
use outcrop::{Db, Snapshot, WeakSnapshot};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

enum Known {
    /// Of the database at this address.
    Database(usize, Snapshot),
    Transaction(WeakSnapshot),
}

#[derive(Default)]
struct Snapshots {
    last: jlong,
    by_number: HashMap<jlong, Known>,
    /// The number that a transaction's handle gave last.
    of_transactions: HashMap<jlong, jlong>,
}

impl Snapshots {
    fn add(&mut self, known: Known) -> jlong {
        self.last += 1;
        self.by_number.insert(self.last, known);
        self.last
    }
}

static SNAPSHOTS: Mutex<Option<Snapshots>> = Mutex::new(None);
/// How many transactions gave one: others do not take the lock when they are disposed.
static TRANSACTIONS: AtomicUsize = AtomicUsize::new(0);

fn with<T>(act: impl FnOnce(&mut Snapshots) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Snapshots>> =
        SNAPSHOTS.lock().unwrap_or_else(PoisonError::into_inner);
    act(guard.get_or_insert_default())
}

fn gone() -> Thrown {
    let text =
        "the snapshot was released, its transaction has another one or ended, or its database was closed";
    Thrown::Java("java/lang/IllegalStateException", text.into())
}

fn address(db: &Arc<Db>) -> usize {
    Arc::as_ptr(db) as usize
}

/// The number of a new snapshot.
pub(crate) fn take(db: &Arc<Db>) -> jlong {
    let snapshot = db.snapshot();
    with(|all| all.add(Known::Database(address(db), snapshot)))
}

/// Ends a snapshot of a database. The database's handle is not asked for: it may be closed.
pub(crate) fn release(number: jlong) -> Answer<()> {
    let ended = with(|all| match all.by_number.get(&number) {
        Some(Known::Database(..)) => all.by_number.remove(&number),
        _ => None,
    });
    match ended {
        Some(Known::Database(_, snapshot)) => {
            snapshot.release();
            Ok(())
        }
        _ => Err(gone()),
    }
}

/// The snapshots of a database that closes, which nobody released.
pub(crate) fn end_database(db: &Arc<Db>) {
    let owner = address(db);
    let ended: Vec<Known> = with(|all| {
        let of_it = |known: &Known| matches!(known, Known::Database(own, _) if *own == owner);
        all.by_number.extract_if(|_, known| of_it(known)).map(|(_, known)| known).collect()
    });
    for known in ended {
        if let Known::Database(_, snapshot) = known {
            snapshot.release();
        }
    }
}

/// The number of a transaction's snapshot: the same as before if it is the same one; an older one's finds nothing from here on.
pub(crate) fn of_transaction(txn: jlong, snapshot: &Snapshot) -> jlong {
    with(|all| {
        let before = all.of_transactions.get(&txn).copied();
        if let Some(number) = before {
            match all.by_number.get(&number) {
                Some(Known::Transaction(own)) if own.is_of(snapshot) => return number,
                _ => all.by_number.remove(&number),
            };
        } else {
            // Relaxed: nobody disposes `txn` while a call with it goes on, and what orders those orders this.
            TRANSACTIONS.fetch_add(1, Ordering::Relaxed);
        }
        let number = all.add(Known::Transaction(snapshot.downgrade()));
        all.of_transactions.insert(txn, number);
        number
    })
}

/// `txn` is disposed.
pub(crate) fn end_transaction(txn: jlong) {
    // Relaxed: see `of_transaction`.
    if TRANSACTIONS.load(Ordering::Relaxed) == 0 {
        return;
    }
    with(|all| {
        if let Some(number) = all.of_transactions.remove(&txn) {
            TRANSACTIONS.fetch_sub(1, Ordering::Relaxed);
            all.by_number.remove(&number);
        }
    });
}

/// Runs `act` with a number of `snapshot` that is good until it returns.
pub(crate) fn lend<T>(snapshot: &Snapshot, act: impl FnOnce(jlong) -> T) -> T {
    let number = with(|all| all.add(Known::Transaction(snapshot.downgrade())));
    let given = act(number);
    with(|all| all.by_number.remove(&number));
    given
}

/// The snapshot of a number.
pub(crate) fn get(number: jlong) -> Answer<Snapshot> {
    with(|all| match all.by_number.get(&number) {
        Some(Known::Database(_, snapshot)) => Ok(snapshot.clone()),
        Some(Known::Transaction(snapshot)) => snapshot.upgrade().ok_or_else(gone),
        None => Err(gone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop::Env;

    fn open(path: &str) -> Arc<Db> {
        Arc::new(Db::builder(path).env(Env::memory()).create_if_missing(true).open().unwrap())
    }

    fn held(db: &Db) -> u64 {
        db.property_int("rocksdb.num-snapshots").unwrap()
    }

    #[test]
    fn a_snapshot_is_released_once_and_ends_with_its_database() {
        let (db, other) = (open("/db"), open("/other"));
        let (first, second, third) = (take(&db), take(&db), take(&other));
        assert_eq!(get(first).ok().unwrap().sequence(), db.latest_sequence_number());
        release(first).ok().unwrap();
        assert!(release(first).is_err() && get(first).is_err());
        assert_eq!(held(&db), 1);
        end_database(&db);
        assert!(release(second).is_err() && get(second).is_err());
        assert_eq!((held(&db), held(&other)), (0, 1));
        release(third).ok().unwrap();
    }

    #[test]
    fn that_of_a_transaction_is_as_good_as_the_transaction_keeps_it() {
        let db = open("/db");
        let (txn, snapshot) = (-16, db.snapshot());
        let number = of_transaction(txn, &snapshot);
        assert_eq!(of_transaction(txn, &snapshot), number);
        assert!(get(number).is_ok() && release(number).is_err());
        // Another one at the same moment.
        let next = db.snapshot();
        let newer = of_transaction(txn, &next);
        assert!(newer != number && get(number).is_err());
        drop(snapshot);
        assert_eq!(held(&db), 1, "a number keeps nothing");
        drop(next);
        assert!(get(newer).is_err());
        end_transaction(txn);
        with(|all| assert!(!all.by_number.contains_key(&newer) && !all.of_transactions.contains_key(&txn)));
    }
}

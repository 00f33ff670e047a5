//! Transactions with names, for `TransactionDB.getTransactionByName` and `getAllPreparedTransactions`.
//!
//! Java is not to dispose the objects that these give. One that a program began is its own object. One that was left prepared becomes an
//! object when it is asked for, and goes with the database.

use crate::db::{JavaDb, Layer};
use crate::env::Env;
use crate::glue::{Answer, handle, illegal, object};
use crate::transactions::{self, engine};
use jni_sys::{jlong, jobject};
use outcrop::{Db, Transaction, TransactionState};
use outcrop_capi::{rocksdb_transaction_t, rocksdb_transactiondb_t};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Named {
    /// Address of the engine's database.
    db: usize,
    txn: jlong,
    name: Vec<u8>,
    /// Nobody else disposes it.
    lent: bool,
}

static NAMED: Mutex<Vec<Named>> = Mutex::new(Vec::new());

fn named() -> MutexGuard<'static, Vec<Named>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(db: &Arc<Db>) -> usize {
    Arc::as_ptr(db) as usize
}

pub(crate) fn set_name(env: Env, txn: jlong, name: jobject) -> Answer<()> {
    let (own, name) = (engine(txn)?, env.text(name)?.into_bytes());
    own.set_name(&name)?;
    named().push(Named { db: address(own.database()), txn, name, lent: false });
    Ok(())
}

/// `txn` is disposed, or begins anew without a name.
pub(crate) fn forget(txn: jlong) {
    // One without a name is not there, and most are without.
    if engine(txn).is_ok_and(|own| own.name().is_empty()) {
        return;
    }
    named().retain(|known| known.txn != txn);
}

/// Disposes what was lent of a database that closes.
pub(crate) fn end_database(db: &Arc<Db>) {
    let own = address(db);
    let ended: Vec<Named> = named().extract_if(.., |known| known.db == own && known.lent).collect();
    for lent in ended {
        // It cannot fail: what is prepared stays so.
        let _ = transactions::destroy(lent.txn);
    }
}

fn layer<'a>(db: jlong) -> Answer<&'a mut rocksdb_transactiondb_t> {
    match object::<JavaDb>(db).layer {
        // SAFETY: see `glue`.
        Layer::Transactional(own) => Ok(unsafe { &mut *own }),
        _ => Err(illegal("the database has no locks")),
    }
}

fn lend(db: &mut rocksdb_transactiondb_t, txn: Transaction) -> jlong {
    let (own, name) = (address(db.db.db()), txn.name().to_vec());
    let txn = handle::<rocksdb_transaction_t>(db.hold(txn));
    named().push(Named { db: own, txn, name, lent: true });
    txn
}

/// The undecided transaction of this name; 0 if there is none.
pub(crate) fn by_name(env: Env, db: jlong, name: jobject) -> Answer<jlong> {
    let (layer, name) = (layer(db)?, env.text(name)?);
    let own = address(layer.db.db());
    let is_it = |known: &&Named| {
        let is_undecided = |txn: &mut Transaction| txn.state() != TransactionState::Committed;
        known.db == own && known.name == name.as_bytes() && engine(known.txn).is_ok_and(is_undecided)
    };
    if let Some(known) = named().iter().find(is_it) {
        return Ok(known.txn);
    }
    Ok(layer.db.prepared_transaction(name)?.map_or(0, |txn| lend(layer, txn)))
}

/// The transactions that are prepared and not decided: those that recovery found, and those that were prepared since.
pub(crate) fn prepared(db: jlong) -> Answer<Vec<jlong>> {
    let layer = layer(db)?;
    for txn in layer.db.prepared_transactions()? {
        lend(layer, txn);
    }
    let own = address(layer.db.db());
    let is_prepared = |txn: &mut Transaction| txn.state() == TransactionState::Prepared;
    let of_it = |known: &&Named| known.db == own && engine(known.txn).is_ok_and(is_prepared);
    Ok(named().iter().filter(of_it).map(|known| known.txn).collect())
}

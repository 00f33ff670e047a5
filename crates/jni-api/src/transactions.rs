//! `TransactionDB`, `OptimisticTransactionDB` and their transactions.

use crate::args::{AsC, Bytes};
use crate::db::{self, Layer, Write, pinned_value};
use crate::env::Env;
use crate::glue::{Answer, Give, c_text, checked, illegal, not_implemented, object};
use crate::lent::{self, Part};
use crate::{named, snapshots};
use jni_sys::{jint, jlong, jobject, jvalue};
use outcrop::{ColumnFamilyHandle, Transaction};
use outcrop_capi as c;
use outcrop_capi::{
    rocksdb_column_family_handle_t, rocksdb_t, rocksdb_transaction_t, rocksdb_writebatch_t,
    rocksdb_writebatch_wi_t, rocksdb_writeoptions_t,
};
use std::ffi::{CString, c_char};

/// Opens one of the two kinds; gives the plain database, which is null on an error.
pub(crate) fn pessimistic(db: *mut c::rocksdb_transactiondb_t) -> (*mut rocksdb_t, Layer) {
    let base = match db.is_null() {
        true => std::ptr::null_mut(),
        // SAFETY: see `glue`.
        false => unsafe { c::rocksdb_transactiondb_get_base_db(db) },
    };
    (base, Layer::Transactional(db))
}

pub(crate) fn optimistic(db: *mut c::rocksdb_optimistictransactiondb_t) -> (*mut rocksdb_t, Layer) {
    let base = match db.is_null() {
        true => std::ptr::null_mut(),
        // SAFETY: see `glue`.
        false => unsafe { c::rocksdb_optimistictransactiondb_get_base_db(db) },
    };
    (base, Layer::Optimistic(db))
}

/// Opens the default column family with `open`, which gets the path and the place for an error.
pub(crate) fn open(
    env: Env,
    path: jobject,
    open: impl FnOnce(*const c_char, *mut *mut c_char) -> (*mut rocksdb_t, Layer),
) -> Answer<jlong> {
    let path: CString = c_text(env.text(path)?)?;
    let (base, layer) = checked(|error| open(path.as_ptr(), error))?;
    Ok(db::opened(base, layer, &path))
}

/// Begins a transaction, in place of `old` unless it is 0. `options` 0: RocksDB's defaults.
pub(crate) fn begin(db: jlong, write_options: jlong, options: jlong, old: jlong) -> Answer<jlong> {
    let write_options = db::write_options(write_options);
    if old != 0 {
        named::forget(old);
    }
    // SAFETY: see `glue`.
    let begun = unsafe {
        match object::<db::JavaDb>(db).layer {
            Layer::Transactional(db) => {
                let own =
                    if options == 0 { c::rocksdb_transaction_options_create() } else { options as *mut _ };
                let begun = c::rocksdb_transaction_begin(db, write_options, own, old as *mut _);
                if options == 0 {
                    c::rocksdb_transaction_options_destroy(own);
                }
                begun
            }
            Layer::Optimistic(db) => {
                let own = if options == 0 {
                    c::rocksdb_optimistictransaction_options_create()
                } else {
                    options as *mut _
                };
                let begun = c::rocksdb_optimistictransaction_begin(db, write_options, own, old as *mut _);
                if options == 0 {
                    c::rocksdb_optimistictransaction_options_destroy(own);
                }
                begun
            }
            Layer::Plain => return Err(illegal("the database has no transactions")),
        }
    };
    if old != 0 {
        take_back(old)?;
    }
    Ok(begun as jlong)
}

/// The engine's transaction.
pub(crate) fn engine<'a>(txn: jlong) -> Answer<&'a mut Transaction> {
    Ok(object::<rocksdb_transaction_t>(txn).get()?)
}

/// The snapshot, which is the transaction's; 0 if there is none.
pub(crate) fn snapshot(txn: jlong) -> Answer<jlong> {
    Ok(engine(txn)?.snapshot().map_or(0, |own| snapshots::of_transaction(txn, own)))
}

/// A pointer to the batch; it goes with the transaction, too.
pub(crate) fn batch(txn: jlong) -> Answer<jlong> {
    let own = std::ptr::from_ref(engine(txn)?.batch());
    Ok(lent::give(txn, Part::IndexedBatch, rocksdb_writebatch_wi_t::of(own)))
}

/// A copy of the options; Java's object of them is not to outlive the transaction.
pub(crate) fn write_options(txn: jlong) -> Answer<jlong> {
    let own = rocksdb_writeoptions_t::of(engine(txn)?.write_options());
    Ok(lent::give(txn, Part::WriteOptions, own))
}

pub(crate) fn set_write_options(txn: jlong, options: jlong) -> Answer<()> {
    let options = *object::<rocksdb_writeoptions_t>(options).get()?;
    engine(txn)?.set_write_options(&options);
    Ok(())
}

/// A batch in place of the transaction's, which gets its writes with [`hand_over`].
pub(crate) fn commit_time_batch(txn: jlong) -> Answer<jlong> {
    if let Some(own) = lent::given(txn, Part::PlainBatch) {
        return Ok(own);
    }
    let mut own = rocksdb_writebatch_t::default();
    own.batch.clone_from(engine(txn)?.commit_time_batch());
    Ok(lent::give(txn, Part::PlainBatch, own))
}

/// Commits or rolls back.
pub(crate) fn finish(txn: jlong, finish: impl FnOnce(&mut Transaction) -> outcrop::Result<()>) -> Answer<()> {
    let finished = finish(hand_over(txn)?);
    take_back(txn)?;
    Ok(finished?)
}

/// Empties the batch that Java has of the transaction, if its own is empty now.
fn take_back(txn: jlong) -> Answer<()> {
    if let Some(batch) = lent::given(txn, Part::PlainBatch)
        && engine(txn)?.commit_time_batch().is_empty()
    {
        // SAFETY: see `glue`.
        unsafe { c::rocksdb_writebatch_clear(batch as *mut _) };
    }
    Ok(())
}

/// Gives the transaction the writes of the batch that Java has of it, before it is prepared or committed.
pub(crate) fn hand_over<'a>(txn: jlong) -> Answer<&'a mut Transaction> {
    let own = engine(txn)?;
    if let Some(batch) = lent::given(txn, Part::PlainBatch) {
        own.commit_time_batch().clone_from(&object::<rocksdb_writebatch_t>(batch).batch);
    }
    Ok(own)
}

pub(crate) fn destroy(txn: jlong) -> Answer<()> {
    named::forget(txn);
    snapshots::end_transaction(txn);
    lent::end(txn);
    // SAFETY: see `glue`.
    unsafe { c::rocksdb_transaction_destroy(txn as *mut _) };
    Ok(())
}

fn family<'a>(handle: jlong) -> &'a ColumnFamilyHandle {
    &object::<rocksdb_column_family_handle_t>(handle).0
}

/// A write, to the default column family for 0. Untracked, it takes no note of who wrote the key before.
pub(crate) fn write(
    env: Env,
    txn: jlong,
    cf: jlong,
    (write, untracked): (Write, bool),
    key: Bytes,
    value: Option<Bytes>,
) -> Answer<()> {
    let key = key.get(env)?;
    let value = value.map_or(Ok(Default::default()), |value| value.named(env, "value"))?;
    put(txn, cf, (write, untracked), &key, &value)
}

/// The same with the bytes at hand.
fn put(txn: jlong, cf: jlong, (write, untracked): (Write, bool), key: &[u8], value: &[u8]) -> Answer<()> {
    let txn = engine(txn)?;
    let done = match (write, untracked, cf) {
        (Write::Put, false, 0) => txn.put(key, value),
        (Write::Put, false, cf) => txn.put_cf(family(cf), key, value),
        (Write::Put, true, 0) => txn.put_untracked(key, value),
        (Write::Put, true, cf) => txn.put_untracked_cf(family(cf), key, value),
        (Write::Merge, false, 0) => txn.merge(key, value),
        (Write::Merge, false, cf) => txn.merge_cf(family(cf), key, value),
        (Write::Merge, true, 0) => txn.merge_untracked(key, value),
        (Write::Merge, true, cf) => txn.merge_untracked_cf(family(cf), key, value),
        (Write::Delete, false, 0) => txn.delete(key),
        (Write::Delete, false, cf) => txn.delete_cf(family(cf), key),
        (Write::Delete, true, 0) => txn.delete_untracked(key),
        (Write::Delete, true, cf) => txn.delete_untracked_cf(family(cf), key),
        (Write::SingleDelete, false, 0) => txn.single_delete(key),
        (Write::SingleDelete, false, cf) => txn.single_delete_cf(family(cf), key),
        (Write::SingleDelete, true, _) => return not_implemented("Transaction.singleDeleteUntracked"),
        (Write::DeleteRange, ..) => return not_implemented("Transaction.deleteRange"),
    };
    Ok(done?)
}

/// A write whose key and value are given in parts, which are one after the other.
pub(crate) fn write_parts(
    env: Env,
    txn: jlong,
    cf: jlong,
    write: (Write, bool),
    keys: jobject,
    values: Option<jobject>,
) -> Answer<()> {
    let key = env.byte_arrays(keys)?.concat();
    let value =
        values.map_or(Ok(Vec::new()), |values| env.byte_arrays(values).map(|parts| parts.concat()))?;
    put(txn, cf, write, &key, &value)
}

/// How a transaction reads a key.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    Plain,
    /// With the lock of the key, exclusive or not; and whether it must not have been written since the snapshot.
    ForUpdate(bool, bool),
}

/// Lets `with` see the value of a key, `None` if it has none.
fn with_value<T>(
    (txn, options, cf): (jlong, jlong, jlong),
    how: Read,
    key: &[u8],
    with: impl FnOnce(Option<&[u8]>) -> Answer<T>,
) -> Answer<T> {
    let (txn, options, cf) = (
        txn as *mut rocksdb_transaction_t,
        db::read_options(options),
        cf as *mut rocksdb_column_family_handle_t,
    );
    let (k, kl) = (key.c(), key.len());
    if let Read::ForUpdate(_, false) = how {
        return not_implemented("Transaction.getForUpdate without doValidate");
    }
    // SAFETY: see `glue`.
    unsafe {
        let pinned = checked(|error| match (how, cf.is_null()) {
            (Read::Plain, true) => c::rocksdb_transaction_get_pinned(txn, options, k, kl, error),
            (Read::Plain, false) => c::rocksdb_transaction_get_pinned_cf(txn, options, cf, k, kl, error),
            (Read::ForUpdate(lock, _), true) => {
                c::rocksdb_transaction_get_pinned_for_update(txn, options, k, kl, lock.into(), error)
            }
            (Read::ForUpdate(lock, _), false) => {
                c::rocksdb_transaction_get_pinned_for_update_cf(txn, options, cf, k, kl, lock.into(), error)
            }
        })?;
        pinned_value(pinned, with)
    }
}

pub(crate) fn get(env: Env, from: (jlong, jlong, jlong), how: Read, key: Bytes) -> Answer<jobject> {
    with_value(from, how, &key.get(env)?, |value| value.give(env))
}

pub(crate) fn get_into(
    env: Env,
    from: (jlong, jlong, jlong),
    how: Read,
    key: Bytes,
    target: Bytes,
) -> Answer<jint> {
    let room = target.room(env)?;
    with_value(from, how, &key.get(env)?, |value| value.map_or(Ok(-1), |value| room.fill(env, value)))
}

/// One key after the other; null families: the default one.
pub(crate) fn multi_get(
    env: Env,
    (txn, options): (jlong, jlong),
    how: Read,
    keys: jobject,
    families: Option<jobject>,
) -> Answer<jobject> {
    let keys = env.byte_arrays(keys)?;
    let families = families.map_or(Ok(vec![0; keys.len()]), |families| env.longs(families))?;
    let values = keys.iter().zip(families).map(|(key, family)| {
        with_value((txn, options, family), how, key, |value| Ok(value.map(<[u8]>::to_vec)))
    });
    env.new_array("[B", values.collect::<Answer<Vec<_>>>()?)
}

pub(crate) fn iterator(txn: jlong, options: jlong, cf: jlong) -> Answer<jlong> {
    let (txn, options) = (txn as *mut rocksdb_transaction_t, db::read_options(options));
    // SAFETY: see `glue`.
    let iterator = unsafe {
        match cf {
            0 => c::rocksdb_transaction_create_iterator(txn, options),
            cf => c::rocksdb_transaction_create_iterator_cf(txn, options, cf as *mut _),
        }
    };
    Ok(iterator as jlong)
}

pub(crate) fn undo_get(env: Env, txn: jlong, cf: jlong, key: Bytes) -> Answer<()> {
    let key = key.get(env)?;
    match cf {
        0 => engine(txn)?.undo_get_for_update(&key),
        cf => engine(txn)?.undo_get_for_update_cf(family(cf), &key),
    }
    Ok(())
}

fn locking<'a>(db: jlong) -> Answer<&'a outcrop::TransactionDb> {
    match object::<db::JavaDb>(db).layer {
        // SAFETY: see `glue`.
        Layer::Transactional(own) => Ok(unsafe { &(*own).db }),
        _ => Err(illegal("the database has no locks")),
    }
}

fn ids(holders: &[u64]) -> Vec<jlong> {
    holders.iter().map(|id| *id as jlong).collect()
}

pub(crate) fn set_deadlock_buffer_size(db: jlong, count: jint) -> Answer<()> {
    locking(db)?.set_deadlock_buffer_size(usize::try_from(count).unwrap_or(0));
    Ok(())
}

/// `KeyLockInfo` by the numbers of column families: one for each that has locks, as in RocksJava.
pub(crate) fn locks(env: Env, db: jlong) -> Answer<jobject> {
    let locks = locking(db)?.locks();
    env.new_map(locks.iter().map(|lock| {
        let arguments = [
            jvalue { l: env.new_text(&String::from_utf8_lossy(&lock.key))? },
            jvalue { l: ids(&lock.holders).give(env)? },
            jvalue { z: lock.exclusive },
        ];
        let class = "org/rocksdb/TransactionDB$KeyLockInfo";
        let info = env.new_object(class, "(Ljava/lang/String;[JZ)V", &arguments)?;
        let family = [jvalue { j: lock.column_family.0.into() }];
        Ok((env.new_object("java/lang/Long", "(J)V", &family)?, info))
    }))
}

/// `DeadlockPath` of each deadlock that was found, the newest first.
pub(crate) fn deadlocks(env: Env, db: jlong) -> Answer<jobject> {
    let path = |deadlock: &outcrop::Deadlock| {
        let step = |step: &outcrop::DeadlockStep| {
            let arguments = [
                jvalue { j: step.transaction as jlong },
                jvalue { j: step.column_family.0.into() },
                jvalue { l: env.new_text(&String::from_utf8_lossy(&step.key))? },
                jvalue { z: step.exclusive },
            ];
            env.new_object("org/rocksdb/TransactionDB$DeadlockInfo", "(JJLjava/lang/String;Z)V", &arguments)
        };
        let steps: Answer<Vec<jobject>> = deadlock.steps.iter().map(step).collect();
        let steps = env.new_array("org/rocksdb/TransactionDB$DeadlockInfo", steps?)?;
        let signature = "([Lorg/rocksdb/TransactionDB$DeadlockInfo;Z)V";
        let arguments = [jvalue { l: steps }, jvalue { z: deadlock.limit_exceeded }];
        env.new_object("org/rocksdb/TransactionDB$DeadlockPath", signature, &arguments)
    };
    let paths: Answer<Vec<jobject>> = locking(db)?.deadlocks().iter().map(path).collect();
    env.new_array("org/rocksdb/TransactionDB$DeadlockPath", paths?)
}

/// `WaitingTransactions`: those that hold the lock the transaction waits for.
pub(crate) fn waiting(env: Env, txn: jlong) -> Answer<jobject> {
    let waiting = engine(txn)?.waiting();
    let (family, key, holders) = waiting.map_or((0, Vec::new(), Vec::new()), |waiting| {
        (waiting.column_family.0, waiting.key, waiting.holders)
    });
    let arguments = [
        jvalue { j: family.into() },
        jvalue { l: env.new_text(&String::from_utf8_lossy(&key))? },
        jvalue { l: ids(&holders).give(env)? },
    ];
    env.new_object("org/rocksdb/Transaction$WaitingTransactions", "(JLjava/lang/String;[J)V", &arguments)
}

/// The values of keys in one column family.
pub(crate) fn multi_get_of(
    env: Env,
    (txn, options): (jlong, jlong),
    own: jlong,
    keys: jobject,
) -> Answer<jobject> {
    let families = vec![own; env.length(keys)? as usize];
    multi_get(env, (txn, options), Read::Plain, keys, Some(families.give(env)?))
}

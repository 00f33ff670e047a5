//! Objects that a native gives and that the jar never disposes: RocksDB's are parts of the object they were asked of. Here they are kept
//! beside that one, made anew in place when they are asked for again, and go with it.
//!
//! ```text
//! Transaction.getWriteBatch            what points to its batch
//! Transaction.getWriteOptions          a copy of its options
//! Transaction.getCommitTimeWriteBatch  a batch that is handed over when the transaction is prepared, committed or asked
//! WriteBatchWithIndex.getWriteBatch    a copy of its writes
//! RocksDB.getEnv                       an object for its environment, unless that is the default one
//! OptimisticTransactionDB.getBaseDB    the database below it
//! ```

use crate::glue::{Answer, dispose, handle, object};
use jni_sys::jlong;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which part of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    IndexedBatch,
    PlainBatch,
    WriteOptions,
    Environment,
    Base,
}

/// A handle, and how its object is disposed.
type Own = (jlong, fn(jlong) -> Answer<()>);

/// By the handle of the object that they are of, and which part.
static LENT: Mutex<BTreeMap<(jlong, Part), Own>> = Mutex::new(BTreeMap::new());
/// How many there are: objects without any do not take the lock when they are disposed.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lent() -> MutexGuard<'static, BTreeMap<(jlong, Part), Own>> {
    LENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of a part of `owner`, whose object is `value` from now on; it stays the same until `owner` ends.
pub(crate) fn give<T>(owner: jlong, part: Part, value: T) -> jlong {
    let mut lent = lent();
    if let Some((own, _)) = lent.get(&(owner, part)) {
        let own = *own;
        let old = std::mem::replace(object::<T>(own), value);
        // Without the lock: the end of an object may take it for parts of its own.
        drop(lent);
        drop(old);
        return own;
    }
    insert(&mut lent, owner, part, value)
}

/// The same of a part that stays as `make` made it when it was asked for first: other threads may use it.
pub(crate) fn give_once<T>(owner: jlong, part: Part, make: impl FnOnce() -> T) -> jlong {
    let mut lent = lent();
    match lent.get(&(owner, part)) {
        Some((own, _)) => *own,
        None => insert(&mut lent, owner, part, make()),
    }
}

fn insert<T>(lent: &mut BTreeMap<(jlong, Part), Own>, owner: jlong, part: Part, value: T) -> jlong {
    let own = handle(value);
    lent.insert((owner, part), (own, dispose::<T>));
    // Relaxed: nobody disposes `owner` while a call with it goes on, and what orders those orders this.
    COUNT.fetch_add(1, Ordering::Relaxed);
    own
}

/// The handle of a part of `owner` that was given.
pub(crate) fn given(owner: jlong, part: Part) -> Option<jlong> {
    // Relaxed: see `give`.
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    lent().get(&(owner, part)).map(|(own, _)| *own)
}

/// Disposes the parts of `owner`, and theirs.
pub(crate) fn end(owner: jlong) {
    // Relaxed: see `give`.
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    for part in [Part::IndexedBatch, Part::PlainBatch, Part::WriteOptions, Part::Environment, Part::Base] {
        let taken = lent().remove(&(owner, part));
        if let Some((own, dispose)) = taken {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            end(own);
            // It cannot fail: nothing but memory goes.
            let _ = dispose(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_part_is_made_anew_in_place_and_goes_with_its_owner() {
        let (first, second, third) = (Arc::new(1), Arc::new(2), Arc::new(3));
        let owner = 16;
        let given = give(owner, Part::IndexedBatch, first.clone());
        let below = give(given, Part::PlainBatch, third.clone());
        assert_eq!(give(owner, Part::IndexedBatch, second.clone()), given, "the same handle");
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2), "the old object is gone");
        assert_ne!(below, given);
        let base = give_once(owner, Part::Base, || third.clone());
        assert_eq!(give_once(owner, Part::Base, || -> Arc<i32> { panic!("it is there") }), base);
        end(owner);
        assert_eq!((Arc::strong_count(&second), Arc::strong_count(&third)), (1, 1), "and so is all of it");
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}

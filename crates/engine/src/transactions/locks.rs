//! Point locks: which transaction holds which key, and who waits for it.
//!
//! ```text
//! column family -> stripe (by the key's hash) -> key -> holders, exclusive or shared, until when
//! ```
//! A lock that is held by others is waited for on its stripe: any unlock there wakes all that wait, and each tries again. A wait
//! that ends because of time tries once more. A lock whose holders have expired can be stolen, unless one of them has begun to
//! commit, was prepared, or has lost another lock so; then its end is waited for as if it did not expire.
//!
//! Invariant: a stripe's mutex is held for moments, never across IO; the waits of `waits.rs` are locked inside of it.
//! Source: RocksDB `utilities/transactions/lock/point/point_lock_manager.cc`.

use super::waits::{Deadlock, DeadlockStep, Waits};
use outcrop_base::hash::xxh3_64;
use outcrop_base::{CfId, Error, ErrorKind, Result};
use outcrop_env::Clock;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How far a transaction has come.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// assert_eq!(txn.state(), TransactionState::Started);
/// txn.rollback()?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionState {
    /// It takes writes.
    Started = 0,
    /// It is being prepared, or could not be.
    AwaitingPrepare = 1,
    /// It survives a crash, undecided.
    Prepared = 2,
    /// It is being committed, or could not be.
    AwaitingCommit = 3,
    /// Its writes are in the database.
    Committed = 4,
    /// It is being rolled back.
    AwaitingRollback = 5,
    /// It was prepared and never happens.
    RolledBack = 6,
    /// It expired and another took its locks.
    LocksStolen = 7,
}

impl TransactionState {
    fn of(number: u8) -> TransactionState {
        use TransactionState as S;
        [
            S::Started,
            S::AwaitingPrepare,
            S::Prepared,
            S::AwaitingCommit,
            S::Committed,
            S::AwaitingRollback,
            S::RolledBack,
            S::LocksStolen,
        ][number as usize]
    }
}

/// The part of a transaction that others look at.
pub struct Owner {
    /// Its number.
    pub id: u64,
    state: AtomicU8,
    /// Microseconds since the epoch after which its locks may be stolen; 0: never.
    expires: AtomicU64,
    /// How far deadlocks are searched when it waits; `None`: they are not.
    pub deadlock_depth: Option<usize>,
    waiting: Mutex<Option<Waiting>>,
}

/// The lock that a transaction waits for.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let txn = db.begin();
/// let waits_for: Option<Waiting> = txn.waiting();
/// assert!(waits_for.is_none());
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Column family of the key.
    pub column_family: CfId,
    /// The key.
    pub key: Vec<u8>,
    /// The transactions that hold it.
    pub holders: Vec<u64>,
}

impl Owner {
    /// A transaction that has begun.
    pub fn new(id: u64, expires: u64, deadlock_depth: Option<usize>) -> Arc<Owner> {
        let state = AtomicU8::new(TransactionState::Started as u8);
        Arc::new(Owner {
            id,
            state,
            expires: AtomicU64::new(expires),
            deadlock_depth,
            waiting: Mutex::new(None),
        })
    }

    /// Its state.
    pub fn state(&self) -> TransactionState {
        // Acquire: pairs with the Release of `set_state` and `change_state`.
        TransactionState::of(self.state.load(Ordering::Acquire))
    }

    /// Its state is `state` from here on.
    pub fn set_state(&self, state: TransactionState) {
        // Release: pairs with the Acquire in `state`.
        self.state.store(state as u8, Ordering::Release);
    }

    /// Goes from `from` to `to`; false if it is in another state.
    pub fn change_state(&self, from: TransactionState, to: TransactionState) -> bool {
        // AcqRel: a thief and the owner agree on who was first.
        self.state.compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// When it expires, in microseconds since the epoch; 0: never.
    pub fn expires(&self) -> u64 {
        // Relaxed: only its own thread changes it.
        self.expires.load(Ordering::Relaxed)
    }

    /// It does not expire any more.
    pub fn never_expires(&self) {
        self.expires.store(0, Ordering::Relaxed);
    }

    /// The lock that it waits for, or could not get in time when it last tried.
    pub fn waiting(&self) -> Option<Waiting> {
        self.waiting.lock().clone()
    }

    fn set_waiting(&self, waiting: Option<Waiting>) {
        *self.waiting.lock() = waiting;
    }
}

impl Waiting {
    fn of(request: LockRequest<'_>, holders: &[u64]) -> Waiting {
        Waiting { column_family: request.column_family, key: request.key.to_vec(), holders: holders.to_vec() }
    }
}

/// How the locks of a database are kept.
#[derive(Clone, Copy, Debug)]
pub struct LockOptions {
    /// Most keys of a column family that may be locked; 0 or less: no limit.
    pub max_num_locks: i64,
    /// Parts of a column family's keys that are locked apart.
    pub num_stripes: usize,
    /// Deadlocks that are remembered.
    pub max_num_deadlocks: usize,
}

/// A key to lock.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest<'k> {
    /// Column family of the key.
    pub column_family: CfId,
    /// The key.
    pub key: &'k [u8],
    /// Nobody else may hold it, not even to read.
    pub exclusive: bool,
}

/// A lock that somebody holds.
///
/// ```
/// # use outcrop::*;
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = TransactionDb::open_with(builder, TransactionDbOptions::default())?;
/// let mut txn = db.begin();
/// txn.put("apple", "red")?;
/// let locks = db.locks();
/// assert_eq!((&locks[0].key[..], locks[0].exclusive), (&b"apple"[..], true));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Column family of the key.
    pub column_family: CfId,
    /// The key.
    pub key: Vec<u8>,
    /// The transactions that hold it.
    pub holders: Vec<u64>,
    /// One holds it alone.
    pub exclusive: bool,
}

struct Lock {
    holders: Vec<u64>,
    exclusive: bool,
    /// Microseconds since the epoch; 0: never.
    expires: u64,
}

#[derive(Default)]
struct Stripe {
    keys: Mutex<HashMap<Vec<u8>, Lock>>,
    released: Condvar,
}

struct FamilyLocks {
    stripes: Vec<Stripe>,
    locked: AtomicI64,
}

/// The locks of a database.
pub struct LockManager {
    options: LockOptions,
    clock: Arc<dyn Clock>,
    families: RwLock<HashMap<CfId, Arc<FamilyLocks>>>,
    /// Transactions whose locks can expire.
    expirable: Mutex<HashMap<u64, Arc<Owner>>>,
    waits: Mutex<Waits>,
}

/// Why a lock was not granted at once.
enum Refused {
    /// Others hold it, and it may be stolen from this time on, if they still can be stolen from.
    Held(Vec<u64>, Option<u64>),
    /// Too many keys are locked.
    Limit,
}

/// Whether a lock can be taken away from its holders.
enum Steal {
    Stolen,
    /// From this time on, in microseconds since the epoch.
    From(u64),
    Never,
}

/// A wait for a lock was too long.
fn timed_out() -> Error {
    Error::new(ErrorKind::TimedOut, "Timeout waiting to lock key")
}

impl Refused {
    fn error(&self) -> Error {
        match self {
            Refused::Held(..) => timed_out(),
            Refused::Limit => {
                Error::new(ErrorKind::Aborted, "Failed to acquire lock due to max_num_locks limit")
            }
        }
    }
}

impl LockManager {
    /// No locks, of no column family.
    pub fn new(options: LockOptions, clock: Arc<dyn Clock>) -> LockManager {
        LockManager {
            options: LockOptions { num_stripes: options.num_stripes.max(1), ..options },
            clock,
            families: RwLock::default(),
            expirable: Mutex::default(),
            waits: Mutex::new(Waits::new(options.max_num_deadlocks)),
        }
    }

    /// Keys of column family `id` can be locked.
    pub fn add_family(&self, id: CfId) {
        let stripes = || (0..self.options.num_stripes).map(|_| Stripe::default()).collect();
        let new = || Arc::new(FamilyLocks { stripes: stripes(), locked: AtomicI64::new(0) });
        self.families.write().entry(id).or_insert_with(new);
    }

    /// Column family `id` is gone.
    pub fn remove_family(&self, id: CfId) {
        self.families.write().remove(&id);
    }

    /// The locks of `owner` may be stolen once it has expired.
    pub fn add_expirable(&self, owner: &Arc<Owner>) {
        self.expirable.lock().insert(owner.id, owner.clone());
    }

    /// `owner` is gone.
    pub fn remove_expirable(&self, owner: &Owner) {
        self.expirable.lock().remove(&owner.id);
    }

    fn family(&self, id: CfId) -> Result<Arc<FamilyLocks>> {
        let found = self.families.read().get(&id).cloned();
        found.ok_or_else(|| Error::invalid_argument(format!("Column family id not found: {id}")))
    }

    /// Locks a key for `owner`, waiting for at most `timeout_micros`: 0 not at all, below 0 for ever.
    ///
    /// # Errors
    /// TimedOut; Busy if the wait would be part of a deadlock; Aborted if too many keys are locked, after the same wait.
    pub fn lock(&self, owner: &Arc<Owner>, request: LockRequest<'_>, timeout_micros: i64) -> Result<()> {
        let family = self.family(request.column_family)?;
        let stripe = family.stripe(request.key);
        let mut keys = stripe.keys.lock();
        let deadline =
            (timeout_micros >= 0).then(|| self.clock.now_micros().saturating_add(timeout_micros as u64));
        let mut out_of_time = timeout_micros == 0;
        loop {
            let refused = match self.grant(&family, &mut keys, owner, request) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            if out_of_time {
                if let Refused::Held(holders, _) = &refused {
                    owner.set_waiting(Some(Waiting::of(request, holders)));
                }
                return Err(refused.error());
            }
            out_of_time = self.wait(stripe, &mut keys, owner, request, &refused, deadline)?;
        }
    }

    /// Waits until something of the stripe is unlocked, or the holders can be stolen from; true if `deadline` came first.
    fn wait(
        &self,
        stripe: &Stripe,
        keys: &mut MutexGuard<'_, HashMap<Vec<u8>, Lock>>,
        owner: &Owner,
        request: LockRequest<'_>,
        refused: &Refused,
        deadline: Option<u64>,
    ) -> Result<bool> {
        let stealable_from = match refused {
            Refused::Held(holders, stealable_from) => {
                self.begin_wait(owner, request, holders)?;
                *stealable_from
            }
            Refused::Limit => None,
        };
        let until = [deadline, stealable_from].into_iter().flatten().min();
        let timed_out = match until {
            None => {
                stripe.released.wait(keys);
                false
            }
            Some(until) => {
                let left = until.saturating_sub(self.clock.now_micros());
                left == 0 || stripe.released.wait_for(keys, Duration::from_micros(left)).timed_out()
            }
        };
        owner.set_waiting(None);
        if owner.deadlock_depth.is_some() {
            self.waits.lock().end(owner.id);
        }
        Ok(timed_out && until == deadline)
    }

    /// Takes note of the wait, if it would not be part of a deadlock.
    fn begin_wait(&self, owner: &Owner, request: LockRequest<'_>, holders: &[u64]) -> Result<()> {
        if let Some(depth) = owner.deadlock_depth {
            let step = DeadlockStep {
                transaction: owner.id,
                column_family: request.column_family,
                key: request.key.to_vec(),
                exclusive: request.exclusive,
            };
            let now = self.clock.now_micros() / 1_000_000;
            if self.waits.lock().begin(step, holders, depth, now) {
                return Err(Error::new(ErrorKind::Busy, "Deadlock"));
            }
        }
        owner.set_waiting(Some(Waiting::of(request, holders)));
        Ok(())
    }

    /// Grants the lock, if that can be now.
    fn grant(
        &self,
        family: &FamilyLocks,
        keys: &mut HashMap<Vec<u8>, Lock>,
        owner: &Owner,
        request: LockRequest<'_>,
    ) -> std::result::Result<(), Refused> {
        let LockRequest { key, exclusive, .. } = request;
        let Some(lock) = keys.get_mut(key) else {
            let limit = self.options.max_num_locks;
            // Relaxed: a limit that two threads reach at once may be passed by one, as in RocksDB.
            if limit > 0 && family.locked.load(Ordering::Relaxed) >= limit {
                return Err(Refused::Limit);
            }
            family.locked.fetch_add(1, Ordering::Relaxed);
            keys.insert(key.to_vec(), Lock { holders: vec![owner.id], exclusive, expires: owner.expires() });
            return Ok(());
        };
        if lock.holders == [owner.id] {
            (lock.exclusive, lock.expires) = (exclusive, owner.expires());
        } else if !lock.exclusive && !exclusive {
            if !lock.holders.contains(&owner.id) {
                lock.holders.push(owner.id);
            }
            lock.expires = lock.expires.max(owner.expires());
        } else {
            let stealable_from = match self.steal(lock, owner) {
                Steal::Stolen => {
                    *lock = Lock { holders: vec![owner.id], exclusive, expires: owner.expires() };
                    return Ok(());
                }
                Steal::From(time) => Some(time),
                Steal::Never => None,
            };
            let others = lock.holders.iter().copied().filter(|holder| *holder != owner.id).collect();
            return Err(Refused::Held(others, stealable_from));
        }
        Ok(())
    }

    /// Takes `lock` from its other holders, if all have expired and none of them goes on.
    fn steal(&self, lock: &Lock, thief: &Owner) -> Steal {
        if lock.expires == 0 {
            return Steal::Never;
        }
        if lock.expires > self.clock.now_micros() {
            return Steal::From(lock.expires);
        }
        let expirable = self.expirable.lock();
        let stolen = |holder: &u64| {
            *holder == thief.id
                || expirable.get(holder).is_none_or(|holder| {
                    holder.change_state(TransactionState::Started, TransactionState::LocksStolen)
                })
        };
        if lock.holders.iter().all(stolen) { Steal::Stolen } else { Steal::Never }
    }

    /// Unlocks `key` of column family `cf`, if `owner` holds it.
    pub fn unlock(&self, owner: &Owner, cf: CfId, key: &[u8]) {
        // One that was dropped has no locks.
        let Ok(family) = self.family(cf) else { return };
        let stripe = family.stripe(key);
        let mut keys = stripe.keys.lock();
        let Some(lock) = keys.get_mut(key) else { return };
        let Some(place) = lock.holders.iter().position(|holder| *holder == owner.id) else { return };
        lock.holders.swap_remove(place);
        if lock.holders.is_empty() {
            keys.remove(key);
            family.locked.fetch_sub(1, Ordering::Relaxed);
        }
        drop(keys);
        stripe.released.notify_all();
    }

    /// The locks that are held, by column family and key.
    pub fn locks(&self) -> Vec<LockInfo> {
        let families: Vec<_> = self.families.read().iter().map(|(id, locks)| (*id, locks.clone())).collect();
        let mut infos = Vec::new();
        for (column_family, family) in families {
            for stripe in &family.stripes {
                let info = |(key, lock): (&Vec<u8>, &Lock)| LockInfo {
                    column_family,
                    key: key.clone(),
                    holders: lock.holders.clone(),
                    exclusive: lock.exclusive,
                };
                infos.extend(stripe.keys.lock().iter().map(info));
            }
        }
        infos.sort_by(|a, b| (a.column_family, &a.key).cmp(&(b.column_family, &b.key)));
        infos
    }

    /// Remembers `count` deadlocks from here on.
    pub fn set_deadlock_buffer_size(&self, count: usize) {
        self.waits.lock().keep(count);
    }

    /// The deadlocks that are remembered, the last one first.
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        self.waits.lock().deadlocks()
    }
}

impl FamilyLocks {
    fn stripe(&self, key: &[u8]) -> &Stripe {
        &self.stripes[(xxh3_64(key) % self.stripes.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests;

//! Locks without a database: each rule of granting, waiting by events and by time.

use super::*;
use outcrop_base::CfId;
use outcrop_env::clock::{ManualClock, SystemClock};

const CF: CfId = CfId::DEFAULT;

fn manager(max_num_locks: i64, clock: Arc<dyn Clock>) -> LockManager {
    let locks = LockManager::new(LockOptions { max_num_locks, num_stripes: 0, max_num_deadlocks: 5 }, clock);
    locks.add_family(CF);
    locks
}

fn manual() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(1_000_000))
}

fn owner(id: u64) -> Arc<Owner> {
    Owner::new(id, 0, None)
}

fn request(key: &[u8], exclusive: bool) -> LockRequest<'_> {
    LockRequest { column_family: CF, key, exclusive }
}

fn text(result: Result<()>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "granted".into())
}

fn try_lock(locks: &LockManager, owner: &Arc<Owner>, key: &[u8], exclusive: bool) -> String {
    text(locks.lock(owner, request(key, exclusive), 0))
}

const TIMED_OUT: &str = "Operation timed out: Timeout waiting to lock key";
const LIMIT: &str = "Operation aborted: Failed to acquire lock due to max_num_locks limit";

#[test]
fn who_may_hold_a_key_beside_whom() {
    let locks = manager(0, manual());
    let (a, b, c) = (owner(1), owner(2), owner(3));
    assert_eq!(try_lock(&locks, &a, b"k", false), "granted");
    assert_eq!(try_lock(&locks, &b, b"k", false), "granted", "readers share");
    assert_eq!(try_lock(&locks, &c, b"k", true), TIMED_OUT);
    assert_eq!(try_lock(&locks, &a, b"k", true), TIMED_OUT, "not while another reads");
    locks.unlock(&b, CF, b"k");
    assert_eq!(try_lock(&locks, &a, b"k", true), "granted", "the only reader may write");
    assert_eq!(try_lock(&locks, &b, b"k", false), TIMED_OUT);
    assert_eq!(try_lock(&locks, &a, b"k", false), "granted", "and read again, which lets others in");
    assert_eq!(try_lock(&locks, &b, b"k", false), "granted");
    let held = locks.locks();
    assert_eq!((held.len(), &held[0].holders[..], held[0].exclusive), (1, &[1, 2][..], false));
    locks.unlock(&c, CF, b"k");
    assert_eq!(locks.locks()[0].holders, [1, 2], "whoever holds nothing unlocks nothing");
    locks.unlock(&a, CF, b"k");
    locks.unlock(&b, CF, b"k");
    assert!(locks.locks().is_empty());
}

#[test]
fn column_families_have_keys_of_their_own() {
    let locks = manager(0, manual());
    locks.add_family(CfId(7));
    assert_eq!(try_lock(&locks, &owner(1), b"k", true), "granted");
    let other = LockRequest { column_family: CfId(7), key: b"k", exclusive: true };
    assert_eq!(text(locks.lock(&owner(2), other, 0)), "granted");
    locks.remove_family(CfId(7));
    assert_eq!(text(locks.lock(&owner(2), other, 0)), "Invalid argument: Column family id not found: 7");
}

#[test]
fn a_limit_counts_keys_and_not_holders() {
    let locks = manager(2, manual());
    let (a, b) = (owner(1), owner(2));
    assert_eq!(try_lock(&locks, &a, b"x", false), "granted");
    assert_eq!(try_lock(&locks, &b, b"x", false), "granted");
    assert_eq!(try_lock(&locks, &a, b"y", true), "granted");
    assert_eq!(try_lock(&locks, &b, b"z", true), LIMIT);
    assert_eq!(text(locks.lock(&b, request(b"z", true), 1000)), LIMIT, "after the wait, too");
    locks.unlock(&a, CF, b"x");
    assert_eq!(try_lock(&locks, &b, b"z", true), LIMIT, "another holds x still");
    locks.unlock(&b, CF, b"x");
    assert_eq!(try_lock(&locks, &b, b"z", true), "granted");
}

#[test]
fn expired_locks_are_stolen_unless_their_owner_goes_on() {
    let clock = manual();
    let locks = manager(0, clock.clone());
    let expiring = |id: u64| {
        let owner = Owner::new(id, clock.now_micros() + 10_000, None);
        locks.add_expirable(&owner);
        owner
    };
    let (a, b, thief) = (expiring(1), expiring(2), owner(3));
    assert_eq!(try_lock(&locks, &a, b"a", true), "granted");
    assert_eq!(try_lock(&locks, &b, b"b", true), "granted");
    assert_eq!(try_lock(&locks, &thief, b"a", true), TIMED_OUT, "not before");
    clock.advance(Duration::from_millis(11));
    assert!(b.change_state(TransactionState::Started, TransactionState::AwaitingCommit));
    assert_eq!(try_lock(&locks, &thief, b"a", true), "granted");
    assert_eq!(a.state(), TransactionState::LocksStolen);
    assert_eq!(try_lock(&locks, &thief, b"b", true), TIMED_OUT, "it commits");
    locks.unlock(&a, CF, b"a");
    assert_eq!(locks.locks()[0].holders, [3], "whoever was stolen from has nothing to unlock");
}

#[test]
fn an_expired_holder_that_goes_on_is_waited_for() {
    let clock = manual();
    let locks = Arc::new(manager(0, clock.clone()));
    let holder = Owner::new(1, clock.now_micros() + 10_000, None);
    locks.add_expirable(&holder);
    assert_eq!(try_lock(&locks, &holder, b"k", true), "granted");
    assert!(holder.change_state(TransactionState::Started, TransactionState::AwaitingCommit));
    clock.advance(Duration::from_millis(11));
    let waiter = owner(2);
    let thread = {
        let (locks, waiter) = (locks.clone(), waiter.clone());
        std::thread::spawn(move || text(locks.lock(&waiter, request(b"k", true), -1)))
    };
    while waiter.waiting().is_none() && !thread.is_finished() {
        std::thread::yield_now();
    }
    locks.unlock(&holder, CF, b"k");
    assert_eq!(thread.join().unwrap(), "granted");
}

#[test]
fn a_transaction_that_was_too_late_says_what_for() {
    let locks = manager(0, manual());
    let (holder, late) = (owner(1), owner(2));
    assert_eq!(try_lock(&locks, &holder, b"k", true), "granted");
    for timeout_micros in [0, 1000] {
        assert_eq!(text(locks.lock(&late, request(b"k", true), timeout_micros)), TIMED_OUT);
        assert_eq!(late.waiting().map(|waiting| waiting.holders), Some(vec![1]));
    }
}

#[test]
fn a_wait_ends_when_the_key_is_unlocked() {
    let locks = Arc::new(manager(0, Arc::new(SystemClock::default())));
    let holder = owner(1);
    assert_eq!(try_lock(&locks, &holder, b"k", true), "granted");
    let waiter = owner(2);
    let thread = {
        let (locks, waiter) = (locks.clone(), waiter.clone());
        std::thread::spawn(move || text(locks.lock(&waiter, request(b"k", true), -1)))
    };
    while waiter.waiting().is_none() {
        std::thread::yield_now();
    }
    let waiting = Waiting { column_family: CF, key: b"k".to_vec(), holders: vec![1] };
    assert_eq!(waiter.waiting(), Some(waiting));
    locks.unlock(&holder, CF, b"k");
    assert_eq!(thread.join().unwrap(), "granted");
    assert_eq!(waiter.waiting(), None);
}

#[test]
fn whoever_closes_a_circle_is_told_and_the_others_go_on() {
    for length in [2u64, 3, 5] {
        let locks = Arc::new(manager(0, Arc::new(SystemClock::default())));
        let owners: Vec<_> = (1..=length).map(|id| Owner::new(id, 0, Some(50))).collect();
        let key = |id: u64| id.to_be_bytes();
        for owner in &owners {
            assert_eq!(try_lock(&locks, owner, &key(owner.id), true), "granted");
        }
        let threads: Vec<_> = owners[..owners.len() - 1]
            .iter()
            .map(|owner| {
                let (locks, owner) = (locks.clone(), owner.clone());
                std::thread::spawn(move || {
                    let result = text(locks.lock(&owner, request(&key(owner.id + 1), true), -1));
                    locks.unlock(&owner, CF, &key(owner.id + 1));
                    locks.unlock(&owner, CF, &key(owner.id));
                    result
                })
            })
            .collect();
        while owners[..owners.len() - 1].iter().any(|owner| owner.waiting().is_none()) {
            std::thread::yield_now();
        }
        let last = owners.last().unwrap();
        assert_eq!(text(locks.lock(last, request(&key(1), true), -1)), "Resource busy: Deadlock");
        let path: Vec<u64> = locks.deadlocks()[0].steps.iter().map(|step| step.transaction).collect();
        assert_eq!(path, (1..=length).collect::<Vec<_>>());
        assert_eq!(locks.deadlocks()[0].steps[0].key, key(2));
        locks.unlock(last, CF, &key(length));
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == "granted"));
    }
}

#[test]
fn two_readers_that_both_want_to_write_are_a_deadlock() {
    let locks = Arc::new(manager(0, Arc::new(SystemClock::default())));
    let (a, b) = (Owner::new(1, 0, Some(50)), Owner::new(2, 0, Some(50)));
    assert_eq!(try_lock(&locks, &a, b"k", false), "granted");
    assert_eq!(try_lock(&locks, &b, b"k", false), "granted");
    let thread = {
        let (locks, a) = (locks.clone(), a.clone());
        std::thread::spawn(move || text(locks.lock(&a, request(b"k", true), -1)))
    };
    while a.waiting().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(text(locks.lock(&b, request(b"k", true), -1)), "Resource busy: Deadlock");
    locks.unlock(&b, CF, b"k");
    assert_eq!(thread.join().unwrap(), "granted");
}

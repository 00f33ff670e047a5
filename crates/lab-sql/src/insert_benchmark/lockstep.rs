//! Keeps an inserter and its deleter together: neither is ever more than a few statements ahead.

use std::sync::{Condvar, Mutex};

/// Statements that one may be ahead of the other: as long as the queues of the published client are.
const AHEAD: u64 = 8;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Insert,
    Delete,
}

/// The result of waiting for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There was nothing to wait for.
    AtOnce,
    /// The other one had to get on first.
    Waited,
    /// There is no further turn.
    Over,
}

#[derive(Default)]
struct State {
    done: [u64; 2],
    over: bool,
}

/// The statements of both.
#[derive(Default)]
pub(super) struct Lockstep {
    state: Mutex<State>,
    changed: Condvar,
}

impl Lockstep {
    /// Waits until `side` may do its next statement.
    pub fn wait(&self, side: Side) -> Turn {
        let (own, other) = (side as usize, 1 - side as usize);
        let state = self.state.lock().expect("nobody panics with it");
        let must_wait = |state: &mut State| !state.over && state.done[own] >= state.done[other] + AHEAD;
        let mut waited = false;
        let looked = |state: &mut State| {
            let must = must_wait(state);
            waited |= must;
            must
        };
        let state = self.changed.wait_while(state, looked).expect("nobody panics with it");
        match (state.over, waited) {
            (true, _) => Turn::Over,
            (false, true) => Turn::Waited,
            (false, false) => Turn::AtOnce,
        }
    }

    /// Notes a statement of `side`.
    pub fn done(&self, side: Side) {
        self.state.lock().expect("nobody panics with it").done[side as usize] += 1;
        self.changed.notify_all();
    }

    /// Lets nobody wait any more.
    pub fn end(&self) {
        self.state.lock().expect("nobody panics with it").over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_turn_says_whether_it_was_waited_for() {
        let both = Lockstep::default();
        for _ in 0..AHEAD {
            assert_eq!(both.wait(Side::Insert), Turn::AtOnce);
            both.done(Side::Insert);
        }
        std::thread::scope(|scope| {
            let turn = scope.spawn(|| both.wait(Side::Insert));
            both.done(Side::Delete);
            // Whichever of them came first.
            assert_ne!(turn.join().unwrap(), Turn::Over);
        });
        let begun = std::sync::atomic::AtomicBool::new(false);
        both.done(Side::Insert);
        std::thread::scope(|scope| {
            let turn = scope.spawn(|| {
                begun.store(true, std::sync::atomic::Ordering::Relaxed);
                both.wait(Side::Insert)
            });
            while !begun.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::yield_now();
            }
            both.end();
            assert_eq!(turn.join().unwrap(), Turn::Over);
        });
    }

    #[test]
    fn nobody_is_more_than_a_few_statements_ahead() {
        let both = Lockstep::default();
        let ahead = Mutex::new((0u64, 0u64, 0u64));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert_ne!(both.wait(Side::Insert), Turn::Over);
                    let mut seen = ahead.lock().unwrap();
                    seen.0 += 1;
                    seen.2 = seen.2.max(seen.0.abs_diff(seen.1));
                    drop(seen);
                    both.done(Side::Insert);
                }
                both.end();
            });
            while both.wait(Side::Delete) != Turn::Over {
                let mut seen = ahead.lock().unwrap();
                seen.1 += 1;
                seen.2 = seen.2.max(seen.0.abs_diff(seen.1));
                drop(seen);
                both.done(Side::Delete);
            }
        });
        let (inserted, deleted, most) = *ahead.lock().unwrap();
        assert!(inserted == 1000 && deleted >= 1000 - AHEAD && most <= AHEAD + 1, "{deleted} {most}");
    }
}

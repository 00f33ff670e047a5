//! What keeps an inserter and its deleter together: neither is ever more than a few statements ahead.

use std::sync::{Condvar, Mutex};

/// Statements that one may be ahead of the other: as long as the queues of the published client are.
const AHEAD: u64 = 8;

/// Who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Insert,
    Delete,
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
    /// Waits until `side` may do its next statement; false once it is over.
    pub fn wait(&self, side: Side) -> bool {
        let (own, other) = (side as usize, 1 - side as usize);
        let state = self.state.lock().expect("nobody panics with it");
        let must_wait = |state: &mut State| !state.over && state.done[own] >= state.done[other] + AHEAD;
        let state = self.changed.wait_while(state, must_wait).expect("nobody panics with it");
        !state.over
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
    fn nobody_is_more_than_a_few_statements_ahead() {
        let both = Lockstep::default();
        let ahead = Mutex::new((0u64, 0u64, 0u64));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert!(both.wait(Side::Insert));
                    let mut seen = ahead.lock().unwrap();
                    seen.0 += 1;
                    seen.2 = seen.2.max(seen.0.abs_diff(seen.1));
                    drop(seen);
                    both.done(Side::Insert);
                }
                both.end();
            });
            while both.wait(Side::Delete) {
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

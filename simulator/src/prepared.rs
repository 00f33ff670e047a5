//! Transactions that were prepared: which of them may wait after an end, and which have to.
//!
//! ```text
//! Begun -> Prepared -> Committing -> (done: forgotten)
//!             '------> RollingBack -> (done: Over)
//! ```
//! Pure.

use crate::registers::Try;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being prepared.
    Begun,
    /// It is prepared, and not decided.
    Prepared,
    /// It is being committed.
    Committing,
    /// It is being rolled back.
    RollingBack,
    /// It is decided.
    Over,
}

/// One that was prepared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The try that it is.
    pub of: Try,
    /// Its records last once they are acknowledged.
    pub lasts: bool,
    /// How far it has come.
    pub state: State,
}

/// Those of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllPrepared {
    cycle: u64,
    all: Vec<Prepared>,
}

/// The decision on one that waited after an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The try that it is.
    pub of: Try,
    /// It can be committed; else it has to be rolled back, as its keys were written by others since, or could have been.
    pub may_commit: bool,
}

impl AllPrepared {
    /// A cycle begins.
    pub fn begin(&mut self, cycle: u64) {
        *self = AllPrepared { cycle, all: Vec::new() };
    }

    /// The name of a try.
    pub fn name(&self, of: Try) -> String {
        format!("c{}t{}i{}a{}", self.cycle, of.thread, of.index, of.attempt)
    }

    /// A try is about to be prepared.
    pub fn add(&mut self, of: Try, lasts: bool) {
        self.all.push(Prepared { of, lasts, state: State::Begun });
    }

    /// It has come so far.
    pub fn set(&mut self, of: Try, state: State) {
        self.all.iter_mut().filter(|prepared| prepared.of == of).for_each(|prepared| prepared.state = state);
    }

    /// Of one that waits after an end: what may be done with it, if threads had begun so many writes.
    ///
    /// # Errors
    /// It should not be there.
    pub fn waits(&self, name: &[u8], begun: &[u64], all_last: bool) -> Result<Waiting, String> {
        let found = self.all.iter().find(|prepared| self.name(prepared.of).as_bytes() == name);
        let told = String::from_utf8_lossy(name);
        let found =
            found.ok_or_else(|| format!("transaction {told} waits, which nobody prepared in this cycle"))?;
        if found.state == State::Over && (all_last || found.lasts) {
            return Err(format!("transaction {told} waits, which was decided"));
        }
        let of = found.of;
        let is_last = |other: &Prepared| !other.of.is_same_write(&of) || other.of.attempt <= of.attempt;
        let may_commit = begun.get(of.thread) == Some(&(of.index + 1))
            && self.all.iter().all(is_last)
            && matches!(found.state, State::Prepared | State::Committing);
        Ok(Waiting { of, may_commit })
    }

    /// Those that have to wait or to be committed: they were prepared for good, and nobody rolled them back.
    pub fn lasting(&self, all_last: bool) -> impl Iterator<Item = Try> {
        let lasts = move |prepared: &&Prepared| {
            matches!(prepared.state, State::Prepared | State::Committing) && (all_last || prepared.lasts)
        };
        self.all.iter().filter(lasts).map(|prepared| prepared.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_prepared_last_and_for_good_has_to_wait_and_may_be_committed() {
        let mut all = AllPrepared::default();
        all.begin(3);
        let (first, again) =
            (Try { thread: 1, index: 4, attempt: 0 }, Try { thread: 1, index: 4, attempt: 1 });
        let begun = [0, 5];
        all.add(first, false);
        let waits = |all: &AllPrepared, of: Try| all.waits(all.name(of).as_bytes(), &begun, false);
        assert!(!waits(&all, first).unwrap().may_commit, "it may be half there");
        assert_eq!(all.lasting(true).count(), 0);
        all.set(first, State::Prepared);
        assert!(waits(&all, first).unwrap().may_commit);
        assert!(
            !all.waits(all.name(first).as_bytes(), &[0, 6], false).unwrap().may_commit,
            "others came after it"
        );
        assert_eq!((all.lasting(true).count(), all.lasting(false).count()), (1, 0));
        all.set(first, State::Over);
        assert!(waits(&all, first).is_ok(), "its decision may be lost");
        assert!(all.waits(all.name(first).as_bytes(), &begun, true).is_err());
        all.add(again, true);
        all.set(again, State::Prepared);
        assert!(!waits(&all, first).unwrap().may_commit);
        assert_eq!(all.lasting(false).collect::<Vec<_>>(), [again]);
        assert!(all.waits(b"c2t1i4a0", &begun, false).is_err(), "of another cycle");
    }
}

//! The steps of a writer that finds the lead taken: spin, wait in line until it is served, or sleep for a
//! while.
//!
//! A put takes a microsecond, waking a sleeper 5 to 30: where threads put one after the other without a pause, each being
//! woken for each put is a convoy. There it is best that one of them writes while the others sleep, and that they take
//! turns. So a thread that keeps meeting another is patient: [`super::group`] wakes it when its turn comes. A thread that
//! meets another now and then spins, which is over before a sleep begins; so does one that works for longer between two writes
//! than a write takes, as the reads of a transaction: asleep, it could not do that work while others write.
//!
//! Concurrency: a thread's memory of waits is its own, for all databases together; it decides how to wait and nothing else.

use super::group::WriteQueue;
use super::options::WriteOptions;
use outcrop_env::Clock;
use std::cell::Cell;
use std::time::Duration;

/// A thread that found the lead taken so often ...
const MEETINGS: usize = 3;
/// ... within so long does nothing but write.
const HOT_NANOS: u64 = 20_000;
/// A meeting counts if the thread came there within so long of the end of its write before, which met another as well.
const BETWEEN_NANOS: u64 = 1_000;
/// A thread whose turn is over waits at the next meeting within so long, so that the thread it woke has its turn. That one may
/// have to wait for a processor first.
const STEP_BACK_NANOS: u64 = 5_000_000;
/// How long nobody writes until the first in line notices.
pub const PATIENCE: Duration = Duration::from_micros(500);

thread_local! {
    /// When this thread last found the lead taken, oldest first.
    static MET: Cell<[u64; MEETINGS - 1]> = const { Cell::new([0; MEETINGS - 1]) };
    /// When its last write ended that had found the lead taken.
    static ENDED: Cell<u64> = const { Cell::new(0) };
}

/// Notes that the lead was found taken at `now`; true if that happens again and again.
fn keeps_meeting(now: u64) -> bool {
    let [older, newer] = MET.get();
    let turn_is_over = older > now;
    if !turn_is_over && now.saturating_sub(ENDED.get()) > BETWEEN_NANOS {
        MET.set([0, now]);
        return false;
    }
    MET.set([newer, now]);
    now.saturating_sub(older) < HOT_NANOS
}

/// The caller's write, which had found the lead taken, ended at `now`.
pub fn ended(now: u64) {
    ENDED.set(now);
}

/// How to wait for the lead.
pub enum Contended {
    /// Not at all: the caller leads.
    Leads,
    /// In line: patiently, or until the leader is done.
    Waits {
        /// How long nobody may have written until the first in line calls; `None`: it calls at once.
        patience: Option<Duration>,
    },
}

/// The lead of `queue` is taken: gets it if that takes no longer than falling asleep, or says how to wait.
#[cold]
pub fn contend(queue: &WriteQueue, options: &WriteOptions, clock: &dyn Clock) -> Contended {
    // A writer that waits for a sync shares it with others in line, and is told when it is over.
    if !options.sync && keeps_meeting(clock.monotonic_nanos()) {
        return Contended::Waits { patience: Some(PATIENCE) };
    }
    match queue.spin_for_lead() {
        true => Contended::Leads,
        false => Contended::Waits { patience: None },
    }
}

/// The caller has waited in line: it is its turn.
pub fn was_served() {
    MET.set([0; MEETINGS - 1]);
}

/// The turn of the caller is over at `now`: at its next meeting it waits.
pub fn step_back(now: u64) {
    MET.set([now + STEP_BACK_NANOS; MEETINGS - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A meeting at `now`, of a write that follows right after the one before and takes 2 us.
    fn meets_at(now: u64) -> bool {
        ended(now - 500);
        keeps_meeting(now)
    }

    #[test]
    fn three_meetings_in_twenty_microseconds_make_patient() {
        was_served();
        assert!(!meets_at(1_000_000));
        assert!(!meets_at(1_007_000));
        assert!(meets_at(1_014_000));
        assert!(!meets_at(1_040_000), "it paused");
        step_back(1_050_000);
        assert!(keeps_meeting(1_053_000), "at the first meeting after it served");
        was_served();
        assert!(!meets_at(1_054_000));
    }

    #[test]
    fn a_thread_that_works_between_its_writes_is_not_patient() {
        was_served();
        for write in 1..100 {
            let now = write * 5_000;
            assert!(!keeps_meeting(now), "write {write}");
            // It waits and writes for 2 us, and works for 3.
            ended(now + 2_000);
        }
        assert!(!meets_at(502_500) && meets_at(503_500), "until it works no more");
    }
}

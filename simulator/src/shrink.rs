//! Makes a failing history smaller: fewer cycles, threads, writes and features, as long as some schedule of it still fails.

use crate::plan::{FEATURES, Limits};

/// Schedules that are tried of each smaller history: which thread goes on when is another one in any case.
const SCHEDULES: u64 = 12;

/// The smallest that is found with `fails`, which says whether a history fails; tried until `enough` says so.
pub fn shrink(failing: &Limits, mut fails: impl FnMut(&Limits) -> bool, enough: impl Fn() -> bool) -> Limits {
    let mut best = failing.clone();
    loop {
        let smaller = candidates(&best).into_iter().find_map(|candidate| {
            (0..SCHEDULES).filter(|_| !enough()).find_map(|more| {
                let schedule = candidate.schedule.wrapping_add(more);
                let tried = Limits { schedule, ..candidate.clone() };
                fails(&tried).then_some(tried)
            })
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Histories that are a little smaller, the smallest first.
fn candidates(limits: &Limits) -> Vec<Limits> {
    let mut all = Vec::new();
    for cycles in [1, 2, 4] {
        if cycles < limits.cycles {
            all.push(Limits { cycles, ..limits.clone() });
        }
    }
    for feature in FEATURES.iter().filter(|feature| limits.has(feature)) {
        let without = limits.without.iter().cloned().chain([(*feature).to_string()]).collect();
        all.push(Limits { without, ..limits.clone() });
    }
    for threads in [1, 2, 4] {
        if threads < limits.threads {
            all.push(Limits { threads, ..limits.clone() });
        }
    }
    for writes in [1, 3, 10, 30, 100] {
        if writes < limits.writes {
            all.push(Limits { writes, ..limits.clone() });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_goes() {
        let fails = |limits: &Limits| {
            limits.cycles >= 2 && limits.threads >= 2 && limits.has("faults") && limits.schedule % 3 == 1
        };
        let small = shrink(&Limits { schedule: 4, ..Limits::of(7) }, fails, || false);
        assert_eq!((small.cycles, small.threads, small.writes, small.seed), (2, 2, 1, 7));
        assert_eq!(small.without.len(), FEATURES.len() - 1);
        assert!(fails(&small) && small.has("faults"));
        let whole = Limits::of(7);
        assert_eq!(shrink(&whole, |_| true, || true), whole, "there is no time");
    }
}

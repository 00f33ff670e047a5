//! Makes a failing case small: drops phases, operations, records and options as long as it still fails.
//!
//! A dropped operation needs no care, because playing skips what became senseless (`rules.rs`). Failures that
//! depend on timing are tried several times before an attempt counts as passing.

use crate::case::{Access, Case, End};
use crate::operation::Operation;
use crate::run::{Failure, Kind, Pool, play};
use std::path::Path;
use std::time::{Duration, Instant};

/// A failing case, and how to see whether a smaller one fails too.
pub struct Shrinker<'s> {
    pool: &'s mut Pool,
    dir: &'s Path,
    signature: (Kind, String),
    attempts: u32,
    deadline: Instant,
}

/// The smallest case found within `limit` that fails in the same way, and its failure. A case that does not fail
/// again is given back as it was.
pub fn shrink(
    case: &Case,
    failure: &Failure,
    pool: &mut Pool,
    dir: &Path,
    limit: Duration,
) -> (Case, Failure) {
    let deadline = Instant::now() + limit;
    let mut shrinker = Shrinker { pool, dir, signature: failure.signature(), attempts: 1, deadline };
    let mut best = (case.clone(), failure.clone());
    // How often must it be tried? A failure that shows every time needs no second attempt later.
    // A case that hangs costs the whole time limit of a request each time.
    let failed = if failure.kind == Kind::Hangs {
        4
    } else {
        (0..4).filter(|_| shrinker.once(case).is_some()).count()
    };
    shrinker.attempts = match failed {
        4 => 1,
        2 | 3 => 4,
        1 => 8,
        _ => return best,
    };
    loop {
        let before = best.0.clone();
        shrinker.drop_phases(&mut best);
        shrinker.calm(&mut best);
        shrinker.drop_operations(&mut best);
        shrinker.drop_records(&mut best);
        shrinker.drop_options(&mut best);
        shrinker.drop_families(&mut best);
        if best.0 == before || shrinker.late() {
            return best;
        }
    }
}

impl Shrinker<'_> {
    fn late(&self) -> bool {
        Instant::now() >= self.deadline
    }

    fn once(&mut self, case: &Case) -> Option<Failure> {
        let _ = std::fs::remove_dir_all(self.dir);
        let failure = play(case, self.pool, self.dir).err();
        failure.filter(|failure| failure.signature() == self.signature)
    }

    /// Takes `smaller` if it fails too. Everything after the failure is cut off.
    fn take(&mut self, mut smaller: Case, best: &mut (Case, Failure)) -> bool {
        if self.late() || smaller.phases.is_empty() {
            return false;
        }
        let Some(failure) = (0..self.attempts).find_map(|_| self.once(&smaller)) else { return false };
        smaller.phases.truncate(failure.phase + 1);
        *best = (smaller, failure);
        true
    }

    fn drop_phases(&mut self, best: &mut (Case, Failure)) {
        let mut at = best.0.phases.len();
        while at > 0 {
            at = (at - 1).min(best.0.phases.len() - 1);
            let mut smaller = best.0.clone();
            smaller.phases.remove(at);
            self.take(smaller, best);
        }
        // Two turns of one engine may be one.
        let mut at = best.0.phases.len();
        while at > 1 {
            at = (at - 1).min(best.0.phases.len() - 1);
            if at == 0 {
                break;
            }
            let mut smaller = best.0.clone();
            let joined = smaller.phases.remove(at);
            if joined.engine == smaller.phases[at - 1].engine {
                smaller.phases[at - 1].operations.extend(joined.operations);
                smaller.phases[at - 1].end = joined.end;
                self.take(smaller, best);
            }
        }
    }

    /// Ends phases in order where SIGKILL is not what matters.
    fn calm(&mut self, best: &mut (Case, Failure)) {
        for end in [End::Close, End::Kill] {
            for at in 0..best.0.phases.len() {
                if best.0.phases.get(at).is_some_and(|phase| phase.end != End::Close && phase.end != end) {
                    let mut smaller = best.0.clone();
                    smaller.phases[at].end = end.clone();
                    self.take(smaller, best);
                }
            }
        }
    }

    fn drop_operations(&mut self, best: &mut (Case, Failure)) {
        let mut phase = 0;
        while phase < best.0.phases.len() {
            let mut size = best.0.phases[phase].operations.len().div_ceil(2);
            while size > 0 && phase < best.0.phases.len() {
                let mut at = 0;
                while phase < best.0.phases.len() && at < best.0.phases[phase].operations.len() {
                    let mut smaller = best.0.clone();
                    let operations = &mut smaller.phases[phase].operations;
                    operations.drain(at..(at + size).min(operations.len()));
                    if !self.take(smaller, best) {
                        at += size;
                    }
                    if self.late() {
                        return;
                    }
                }
                size /= 2;
            }
            phase += 1;
        }
    }

    fn drop_records(&mut self, best: &mut (Case, Failure)) {
        for phase in 0..best.0.phases.len() {
            let mut number = 0;
            while phase < best.0.phases.len() && number < best.0.phases[phase].operations.len() {
                self.drop_records_of(phase, number, best);
                number += 1;
            }
        }
    }

    fn drop_records_of(&mut self, phase: usize, number: usize, best: &mut (Case, Failure)) {
        let parts = |operation: &Operation| match operation {
            Operation::Write { records, .. }
            | Operation::Ingest { records, .. }
            | Operation::Transact { records, .. } => records.len(),
            Operation::Walk { moves, .. } | Operation::MoveIterator { moves, .. } => moves.len(),
            Operation::Get { keys, .. } => keys.len(),
            _ => 0,
        };
        let mut at = parts(&best.0.phases[phase].operations[number]);
        while at > 0 {
            at -= 1;
            let mut smaller = best.0.clone();
            match &mut smaller.phases[phase].operations[number] {
                Operation::Write { records, .. }
                | Operation::Ingest { records, .. }
                | Operation::Transact { records, .. }
                    if records.len() > 1 =>
                {
                    records.remove(at);
                }
                Operation::Walk { moves, .. } | Operation::MoveIterator { moves, .. } if moves.len() > 1 => {
                    moves.remove(at);
                }
                Operation::Get { keys, .. } if keys.len() > 1 => {
                    keys.remove(at);
                }
                _ => return,
            }
            self.take(smaller, best);
            if phase >= best.0.phases.len() || number >= best.0.phases[phase].operations.len() {
                return;
            }
        }
    }

    fn drop_options(&mut self, best: &mut (Case, Failure)) {
        for phase in 0..best.0.phases.len() {
            let mut at = best.0.phases.get(phase).map_or(0, |phase| phase.openings.len());
            while at > 0 {
                at -= 1;
                let mut smaller = best.0.clone();
                if smaller.phases.get(phase).is_some_and(|phase| at < phase.openings.len()) {
                    smaller.phases[phase].openings.remove(at);
                    self.take(smaller, best);
                }
            }
            let lists = 1 + best.0.families.len();
            for list in 0..lists {
                let mut at = options(&mut best.0.clone(), phase, list).map_or(0, |options| options.len());
                while at > 0 {
                    at -= 1;
                    let mut smaller = best.0.clone();
                    if let Some(options) = options(&mut smaller, phase, list)
                        && at < options.len()
                    {
                        // Without it, versions write formats that the others cannot read.
                        if options[at].starts_with("table.format_version") {
                            continue;
                        }
                        options.remove(at);
                        self.take(smaller, best);
                    }
                }
            }
        }
    }

    fn drop_families(&mut self, best: &mut (Case, Failure)) {
        // A failure that needs transactions is another one without them.
        if best.0.access != Access::Plain {
            self.take(Case { access: Access::Plain, ..best.0.clone() }, best);
        }
        for at in (1..best.0.initial.len()).rev() {
            let mut smaller = best.0.clone();
            smaller.initial.remove(at);
            self.take(smaller, best);
        }
        for family in 0..best.0.families.len() {
            let mut smaller = best.0.clone();
            smaller.families[family].prefix = None;
            if smaller != best.0 {
                self.take(smaller, best);
            }
        }
    }
}

/// The database's options of a phase (list 0) or those of a column family.
fn options(case: &mut Case, phase: usize, list: usize) -> Option<&mut Vec<String>> {
    let phase = case.phases.get_mut(phase)?;
    if list == 0 { Some(&mut phase.options) } else { phase.family_options.get_mut(list - 1) }
}

//! Where the wall time of sessions went: what the record has of steps, and what is left of the time from begin to end.

use crate::analysis::results::Results;
use serde::Serialize;

/// The names of the phases, in the order of [`Phases::seconds`].
pub const NAMES: [&str; 6] =
    ["load", "warm-up", "shaping", "measured steps", "waits for compaction", "elsewhere"];

/// Where the time of a target's sessions went, seconds in the mean over them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// Sessions that reached their end.
    pub sessions: usize,
    /// From begin to end of one.
    pub total: f64,
    /// Of that the phases of [`NAMES`]: steps that fill the database, in reports or not; that warm caches; others that are not in reports;
    /// those in reports; waits before steps; what nothing of these is.
    pub seconds: [f64; 6],
}

impl Phases {
    /// The share of a phase in the time. Begin and end are whole seconds: phases that are longer together than what lies between are
    /// shares of their sum.
    pub fn share(&self, phase: usize) -> f64 {
        let all = self.total.max(self.seconds.iter().sum());
        if all > 0.0 { self.seconds[phase] / all } else { 0.0 }
    }
}

/// Of `target`; `None` if no session of it ended with its times in the record.
pub fn of(results: &Results, target: usize) -> Option<Phases> {
    let ended = |session: &&crate::store::SessionRow| {
        session.target == target && session.block >= 0 && session.outcome == "done"
    };
    let times: Vec<(i64, f64)> = results
        .sessions
        .iter()
        .filter(ended)
        .filter_map(|session| Some((session.id, session.seconds?)))
        .collect();
    if times.is_empty() {
        return None;
    }
    let mut seconds = [0.0; 6];
    let steps = results.measured.iter().chain(&results.unreported);
    for row in steps.filter(|row| times.iter().any(|(id, _)| *id == row.session)) {
        let Some(planned) =
            results.experiment.plan.steps.iter().find(|planned| planned.step.name == row.name)
        else {
            continue;
        };
        let phase = match (planned.is_load(), planned.warms_up(), planned.report) {
            (true, ..) => 0,
            (_, true, _) => 1,
            (.., false) => 2,
            (.., true) => 3,
        };
        seconds[phase] += row.result.seconds;
        seconds[4] += row.metrics.get("waited").copied().unwrap_or(0.0);
    }
    let total: f64 = times.iter().map(|(_, seconds)| seconds).sum();
    // Begin and end are whole seconds: of a session of moments less than nothing would be left.
    seconds[5] = (total - seconds.iter().sum::<f64>()).max(0.0);
    let count = times.len() as f64;
    Some(Phases { sessions: times.len(), total: total / count, seconds: seconds.map(|sum| sum / count) })
}

/// Of every target, or nothing if there is none to tell of.
pub fn of_all(results: &Results) -> Option<Vec<Option<Phases>>> {
    let all: Vec<_> = (0..results.experiment.plan.targets.len()).map(|target| of(results, target)).collect();
    all.iter().any(Option::is_some).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake_record;

    #[test]
    fn the_phases_of_a_session_are_its_time() {
        let steps = ["fillseq", "warm", "flush_mt_l0", "readrandom", "overwrite"];
        let (_temp, store) = fake_record(2, &steps, 1, &mut |_| vec![("ops_sec", 10.0), ("waited", 0.5)]);
        let mut results = Results::load(&store, 1).unwrap();
        assert_eq!(of_all(&results), None, "sessions of this record have no times");
        results.sessions.iter_mut().for_each(|session| session.seconds = Some(20.0));
        // Each step took two seconds.
        let phases = Phases { sessions: 2, total: 20.0, seconds: [2.0, 2.0, 2.0, 4.0, 2.5, 7.5] };
        assert_eq!(of(&results, 1), Some(phases.clone()));
        results.sessions.iter_mut().filter(|session| session.target == 1).for_each(|session| {
            session.seconds = (session.block == 0).then_some(10.0);
        });
        let shorter = Phases { sessions: 1, total: 10.0, seconds: [2.0, 2.0, 2.0, 4.0, 2.5, 0.0] };
        assert_eq!((phases.share(3), shorter.share(3)), (0.2, 4.0 / 12.5), "shares are never more than all");
        assert_eq!(of(&results, 1), Some(shorter), "no phase is less than nothing");
        results.sessions.retain(|session| session.target != 0);
        let all = of_all(&results).unwrap();
        assert!(all[0].is_none() && all[2] == Some(phases));
    }
}

//! The states in which a server's connections were seen in a step: shares of all looks, and where those of two targets differ.

use crate::analysis::results::Results;
use serde::Serialize;
use std::collections::BTreeMap;

/// The name of what waits for nothing that the server knows of.
const RUNNING: &str = "running";
/// Share of all looks by which a wait must grow for a sentence.
const GROWN: f64 = 0.1;
/// Waits that an explanation lists.
const LISTED: usize = 6;

/// A state of connections, and its share of all looks at each of two targets; 0 where it was never seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// The server's name of it.
    pub what: String,
    /// Share of the base's looks.
    pub base: f64,
    /// Share of the target's.
    pub target: f64,
}

/// Shares of what a target's connections were seen doing in all blocks, the largest first; empty of engines.
pub fn shares(results: &Results, step: &str, target: usize) -> Vec<(String, f64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (what, count) in results.rows(step, target).flat_map(|row| &row.result.waits) {
        *counts.entry(what).or_default() += count;
    }
    let all: u64 = counts.values().sum();
    let mut shares: Vec<(String, f64)> =
        counts.into_iter().map(|(what, count)| (what.to_string(), count as f64 / all as f64)).collect();
    shares.sort_by(|(a_name, a), (b_name, b)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    shares
}

/// The states with the largest shares of either target, those that differ most first; empty unless both were looked at.
pub fn beside(results: &Results, step: &str, target: usize, base: usize) -> Vec<Wait> {
    let (theirs, ours) = (shares(results, step, base), shares(results, step, target));
    if theirs.is_empty() || ours.is_empty() {
        return Vec::new();
    }
    let share = |of: &[(String, f64)], what: &str| {
        of.iter().find(|(name, _)| name == what).map_or(0.0, |(_, share)| *share)
    };
    let mut names: Vec<&String> = ours.iter().chain(&theirs).map(|(what, _)| what).collect();
    names.sort();
    names.dedup();
    let wait =
        |what: &String| Wait { what: what.clone(), base: share(&theirs, what), target: share(&ours, what) };
    let mut waits: Vec<Wait> = names.into_iter().map(wait).collect();
    // The sort keeps the order of names among equals.
    waits.sort_by(|a, b| (b.target - b.base).abs().total_cmp(&(a.target - a.base).abs()));
    waits.truncate(LISTED);
    waits
}

/// A clause about the wait that grew most against the base; `None` unless it grew by a tenth of all looks.
pub fn sentence(results: &Results, step: &str, target: usize, base: usize) -> Option<String> {
    let waits = beside(results, step, target, base);
    let grown = waits.iter().filter(|wait| wait.what != RUNNING && wait.target - wait.base >= GROWN);
    let most = grown.max_by(|a, b| (a.target - a.base).total_cmp(&(b.target - b.base)))?;
    Some(format!(
        "its connections were seen in {} in {:.0} % of the looks, those of the base in {:.0} %",
        most.what,
        most.target * 100.0,
        most.base * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fake_record;

    fn results(waits: impl Fn(usize) -> Vec<(&'static str, u64)>) -> Results {
        let (_temp, store) = fake_record(2, &["fillseq"], 1, &mut |_| vec![("ops_sec", 10.0)]);
        let mut results = Results::load(&store, 1).unwrap();
        for row in &mut results.measured {
            row.result.waits =
                waits(row.target).into_iter().map(|(what, count)| (what.to_string(), count)).collect();
        }
        results
    }

    #[test]
    fn the_wait_that_grew_is_named_and_running_is_none() {
        let found = results(|target| match target {
            1 => vec![("LWLock:WALWrite", 6), ("running", 2), ("IO:WALSync", 2)],
            _ => vec![("running", 9), ("IO:WALSync", 1)],
        });
        let waits = beside(&found, "fillseq", 1, 0);
        assert_eq!(waits[0], Wait { what: "running".into(), base: 0.9, target: 0.2 });
        assert_eq!(waits[1], Wait { what: "LWLock:WALWrite".into(), base: 0.0, target: 0.6 });
        let said = sentence(&found, "fillseq", 1, 0).unwrap();
        assert!(
            said.contains("LWLock:WALWrite in 60 % of the looks") && said.ends_with("base in 0 %"),
            "{said}"
        );
        assert_eq!(sentence(&found, "fillseq", 0, 1), None, "what it no longer waits for is no cause");
        assert_eq!(sentence(&found, "fillseq", 2, 0), None, "the same");
    }

    #[test]
    fn of_engines_nothing_is_known() {
        let found = results(|_| Vec::new());
        assert_eq!((beside(&found, "fillseq", 1, 0), sentence(&found, "fillseq", 1, 0)), (Vec::new(), None));
    }
}

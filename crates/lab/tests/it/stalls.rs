//! Stalls in published results: found where they are, by the lab's own statistics.

use crate::imported::fixtures;
use outcrop_lab::analysis::judge::Word;
use outcrop_lab::import::{Archive, Report, TailChange};

/// The changes of all tables of a report.
pub fn changes(report: &Report) -> Vec<TailChange> {
    let archive = Archive::of(report, "t", None).unwrap();
    archive.tail_changes().into_iter().flatten().collect()
}

#[test]
fn the_end_of_long_stalls_is_found_though_rates_hardly_move() {
    let report = fixtures("stalls");
    let found = changes(&report);
    assert_eq!(found.len(), 1, "and nothing in the other step: {found:?}");
    let change = &found[0];
    assert_eq!((change.step.as_str(), change.metric.as_str()), ("overwriteandwait.t8.s0", "pmax"));
    assert_eq!((change.before.clone(), change.after.clone()), (("7.5.0".into(), 6), ("7.6.0".into(), 6)));
    assert_eq!(change.word, Word::Improvement);
    assert!(
        change.q_value < 0.05
            && change.p_value < change.q_value + 1e-12
            && change.medians.0 > 1000.0 * change.medians.1
    );
    let rates = change.rates.unwrap();
    assert!((rates.ratio - 1.03).abs() < 0.02, "{rates:?}");
    assert!(rates.spread.0 > 3.0 * rates.spread.1 && rates.p_value < 0.05, "{rates:?}");
    assert_eq!(change.amount(change.medians.0), "323 s");
}

#[test]
fn seconds_that_stood_still_are_counted_in_a_series_of_rates() {
    let archive = Archive::of(&fixtures("stalls"), "t", None).unwrap();
    assert_eq!(archive.standstills.len(), 1);
    let still = &archive.standstills[0];
    assert_eq!((still.seconds, still.stalled_seconds, still.longest_seconds), (20.0, 4.0, 3.0));
    assert_eq!(still.longest_at_seconds, Some(5.0));
}

#[test]
fn single_versions_are_never_judged() {
    // Three rows of the same step, one of them twice: too few to have a before and an after.
    assert!(changes(&fixtures("db_bench")).is_empty());
}

#[test]
fn an_archive_is_the_same_when_it_comes_back_from_the_record() {
    let report = fixtures("");
    let archive = Archive::of(&report, "all", None).unwrap();
    let json = serde_json::to_string(&archive).unwrap();
    assert!(serde_json::from_str::<Archive>(&json).unwrap() == archive);
    assert!(!json.contains("/fixtures/"), "directories of the importer's machine are not kept");
    assert!(Archive::of(&report, "all", Some("7.3.0")).is_ok());
    assert!(Archive::of(&report, "all", Some("1.2.3")).unwrap_err().contains("no table has a target"));
    assert!(Archive::of(&fixtures("broken"), "none", None).is_err() || !report.rejects.is_empty());
}

//! Published numbers beside one's own: steps that both have, one table for each group of steps.
//!
//! Invariants: nothing is judged. Published targets ran once on another machine, so a rate beside a rate says nothing; what
//! can be read across is what each says of its own base. A published number is marked as such in every cell.

use super::page::{breakable, breakable_option, breakable_step};
use crate::analysis::results::Results;
use crate::import::Group;
use crate::report::text::amount;
use crate::store::ArchiveRow;
use maud::{Markup, html};
use outcrop_lab_load::database::Durability;

/// File of the page.
pub(super) const FILE: &str = "beside.html";

/// Groups of steps, and the beginnings of their names; the first that fits is taken, the last takes all.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Loads", &["fill", "bulkload", "l.i0"]),
    ("Point lookups", &["read", "multiread", "point"]),
    ("Range queries", &["fwdrange", "revrange", "range", "seek", "qr"]),
    ("Writes", &["overwrite", "update", "append", "delete", "merge", "insert", "write"]),
    ("Others", &[""]),
];

/// The group of a step. Lookups beside a writer are lookups.
fn group_of(step: &str) -> usize {
    GROUPS.iter().position(|(_, starts)| starts.iter().any(|start| step.starts_with(start))).unwrap_or(4)
}

/// Whether a published step is one of ours: files add what it was run with after a dot, `overwrite.t8.s0` with eight threads and
/// without syncs. What was run otherwise, or with something unknown, is another step.
fn is_same(results: &Results, own: &str, published: &str) -> bool {
    let planned = results.experiment.plan.steps.iter().find(|planned| planned.step.name == own);
    let Some(step) = planned.map(|planned| &planned.step) else { return false };
    let fits = |part: &str| {
        let number = |letter: char| part.strip_prefix(letter)?.parse::<u64>().ok();
        match part {
            "wal_disabled" => step.durability == Durability::NoWal,
            "wal_enabled" => step.durability != Durability::NoWal,
            "s0" => step.durability != Durability::Sync,
            "s1" => step.durability == Durability::Sync,
            _ => number('t') == Some(step.threads.into()) || number('v') == Some(step.value_size as u64),
        }
    };
    let mut parts = published.split('.');
    own == published || (parts.next() == Some(own) && parts.all(fits))
}

/// A published row: its table, target, and place of the step.
struct Published<'a> {
    group: &'a Group,
    step: usize,
}

/// Published tables that have a step.
fn published<'a>(results: &Results, archives: &'a [ArchiveRow], step: &str) -> Vec<Published<'a>> {
    let groups = archives.iter().flat_map(|row| &row.archive.groups);
    groups
        .filter(|group| group.main_metric().relative_to.is_none())
        .flat_map(|group| {
            let same = group.steps.iter().enumerate().filter(|(_, name)| is_same(results, step, name));
            same.map(move |(step, _)| Published { group, step })
        })
        .collect()
}

/// The tables; `None` if no step is in both.
pub(super) fn tables(results: &Results, archives: &[ArchiveRow]) -> Option<Markup> {
    let shared: Vec<&String> =
        results.steps.iter().filter(|step| !published(results, archives, step).is_empty()).collect();
    if shared.is_empty() {
        return None;
    }
    let own_base = results.experiment.plan.base;
    Some(html! {
        p.small {
            "Own rates are medians of this run, and own ratios geometric means over pairs, as everywhere; rows marked " i { "published" } " are single runs of other people on their machines, of "
            @for (index, row) in archives.iter().enumerate() { @if index > 0 { ", " } "\u{201c}" (row.archive.title) "\u{201d}" }
            ". Rates of different machines cannot be compared; what each row is relative to its own base can, as far as a single run "
            "goes. Nothing here is judged."
        }
        @for (number, (name, _)) in GROUPS.iter().enumerate() {
            @let steps: Vec<&&String> = shared.iter().filter(|step| group_of(step) == number).collect();
            @if !steps.is_empty() {
                h2 { (name) }
                div.scroll { table.words {
                    thead { tr { th { "step" } th { "target" } th { "operations per second" } th { "to its base" } th { "its base" } } }
                    tbody { @for step in steps {
                        (own_rows(results, step, own_base))
                        @for row in published(results, archives, step) { (published_rows(&row)) }
                    } }
                } }
            }
        }
    })
}

fn own_rows(results: &Results, step: &str, base: usize) -> Markup {
    let names = results.labels();
    let median = |target: usize| results.median(step, target, "ops_sec");
    html! {
        @for target in crate::report::classic::real_targets(results) {
            @if let Some(rate) = median(target) {
                tr {
                    td { (breakable_step(step)) } td { (breakable(&names[target])) } td { (amount(rate)) }
                    td { @if let Some(ratio) = results.ratio(step, target, base, "ops_sec") { (format!("{ratio:.2}")) } }
                    td { (breakable(&names[base])) }
                }
            }
        }
    }
}

fn published_rows(row: &Published<'_>) -> Markup {
    let Published { group, step } = *row;
    let metric = group.main_metric();
    html! {
        @for (target, column) in group.targets.iter().enumerate() {
            @if let Some(rate) = metric.values[step][target] {
                tr.published {
                    td { (breakable_option(&group.steps[step])) }
                    td { (breakable_option(&column.name)) " " i { "published" } }
                    td { (amount(rate)) }
                    td { @if let Some(ratio) = metric.ratio(step, target, group.base) { (format!("{ratio:.2}")) } }
                    td { (breakable_option(&group.targets[group.base].name)) }
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::import::{Archive, ArchiveTarget, MetricTable};
    use crate::report::site::{Form, write_beside};

    pub(crate) fn archive(steps: &[&str]) -> Archive {
        let target = |name: &str| ArchiveTarget {
            name: name.to_string(),
            engine: "rocksdb".to_string(),
            version: name.to_string(),
            build: String::new(),
            configuration: String::new(),
        };
        let values = steps.iter().map(|_| vec![Some(1000.0), Some(1500.0)]).collect();
        let metric = MetricTable { name: "ops_sec".into(), unit: "ops/s".into(), relative_to: None, values };
        let group = Group {
            title: "byrx".to_string(),
            targets: vec![target("6.29.5"), target("10.8.3")],
            steps: steps.iter().map(ToString::to_string).collect(),
            base: 0,
            metrics: vec![metric],
        };
        Archive {
            title: "The post".to_string(),
            files: vec![],
            groups: vec![group],
            notes: vec![],
            rejects: vec![],
            standstills: vec![],
        }
    }

    #[test]
    fn steps_of_one_name_are_in_one_table_and_others_are_not() {
        let (temp, store) =
            crate::testing::fake_record(6, &["fillseq", "readrandom"], 1, &mut |_| vec![("ops_sec", 2000.0)]);
        let same = store.record_archive("d", &archive(&["fillseq.wal_disabled", "overwrite"])).unwrap();
        let other = store.record_archive("d", &archive(&["scan", "fillseqx"])).unwrap();
        let report = |beside: &[i64]| write_beside(&store, 1, temp.path(), Form::Full, beside);
        report(&[same]).unwrap();
        let html = std::fs::read_to_string(temp.path().join(FILE)).unwrap();
        assert!(html.contains("<h2>Loads</h2>") && !html.contains("<h2>Writes</h2>"), "{html}");
        assert_eq!(html.matches("<i>published</i></td>").count(), 2, "{html}");
        assert!(
            html.contains("<td>1.50</td>") && html.contains("The post") && !html.contains("readrandom</td>")
        );
        let index = std::fs::read_to_string(temp.path().join("index.html")).unwrap();
        assert!(index.contains("beside.html"));
        assert!(report(&[other]).unwrap_err().contains("no step"));
        assert!(report(&[99]).unwrap_err().contains("99"));
        assert!(report(&[1]).unwrap_err().contains("no imported"), "its own number is no archive");
    }

    #[test]
    fn a_step_that_was_run_otherwise_is_another_one() {
        let (_temp, store) =
            crate::testing::fake_record(2, &["fillseq", "overwrite"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let results = Results::load(&store, 1).unwrap();
        let planned = &results.experiment.plan.steps[1].step;
        assert_eq!((planned.threads, planned.durability), (1, Durability::Wal));
        let fits = |published: &str| is_same(&results, "overwrite", published);
        assert!(fits("overwrite") && fits("overwrite.t1") && fits("overwrite.t1.s0"));
        assert!(!fits("overwrite.t8.s0") && !fits("overwrite.t1.s1") && !fits("overwrite.wal_disabled"));
        assert!(!fits("overwrite.x") && !fits("overwritesome") && !fits("fillseq"));
        assert!(is_same(&results, "fillseq", "fillseq.wal_disabled"));
    }

    #[test]
    fn every_step_has_one_group() {
        for (step, name) in [
            ("fillseq", "Loads"),
            ("readwhilewriting", "Point lookups"),
            ("fwdrangewhilewriting", "Range queries"),
            ("overwriteandwait", "Writes"),
            ("compact", "Others"),
        ] {
            assert_eq!(GROUPS[group_of(step)].0, name, "{step}");
        }
    }
}

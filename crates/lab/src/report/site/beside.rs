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
use outcrop_lab_load::steps::Step;
use outcrop_lab_sql::sysbench;

/// File of the page.
pub(super) const FILE: &str = "beside.html";

/// Groups of steps, and the beginnings of their names; the longest that fits is taken, that of the last fits all.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Loads", &["fill", "bulkload", "load", "l."]),
    ("Point lookups", &["read", "multiread", "point", "random-points", "hot-points", "qp"]),
    ("Range queries", &["fwdrange", "revrange", "range", "seek", "scan", "qr"]),
    ("Range queries with aggregation", &["read-only"]),
    ("Writes", &["overwrite", "update", "append", "delete", "merge", "insert", "write", "read-write"]),
    ("Others", &[""]),
];

/// The group of a step. Lookups beside a writer are lookups.
fn group_of(step: &str) -> usize {
    let fit = |(_, starts): &(&str, &[&str])| {
        let fitting = starts.iter().filter(|start| step.starts_with(**start)).map(|start| start.len() + 1);
        fitting.max().unwrap_or(0)
    };
    let longest = GROUPS.iter().map(fit).max();
    GROUPS.iter().position(|group| Some(fit(group)) == longest).unwrap_or(GROUPS.len() - 1)
}

/// Whether a published step is one of ours: files add what it was run with after a dot, `overwrite.t8.s0` with eight threads and
/// without syncs. A step that was run otherwise, or with something unknown, is another one. sysbench's tests have whole names there;
/// `point-query.pre` is another test than `point-query`.
fn is_same(results: &Results, own: &str, published: &str) -> bool {
    if let Some(test) = sysbench::find(own).filter(|_| sysbench::find(published).is_some()) {
        return test.name == published;
    }
    let planned = results.experiment.plan.steps.iter().find(|planned| planned.step.name == own);
    is_run_alike(planned.map(|planned| &planned.step), own, published)
}

/// The same by what names add after a dot. Of a step that is none of an engine's only the name is known.
fn is_run_alike(step: Option<&Step>, own: &str, published: &str) -> bool {
    let fits = |part: &str| {
        let number = |letter: char| part.strip_prefix(letter)?.parse::<u64>().ok();
        // A step of the Insert Benchmark, and its place among its like.
        let Some(step) = step.filter(|_| number('L').is_none()) else { return number('L').is_some() };
        match part {
            "wal_disabled" => step.durability == Durability::NoWal,
            "wal_enabled" => step.durability != Durability::NoWal,
            "s0" => step.durability != Durability::Sync,
            "s1" => step.durability == Durability::Sync,
            _ => number('t') == Some(step.threads.into()) || number('v') == Some(step.value_size as u64),
        }
    };
    match published.strip_prefix(own) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('.').is_some_and(|parts| parts.split('.').all(fits)),
        None => false,
    }
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
                    thead { tr { th { "step" } th { "target" } th { "per second" } th { "to its base" } th { "its base" } } }
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
    let (metric, unit) = results.throughput(step);
    let median = |target: usize| results.median(step, target, metric);
    html! {
        @for target in crate::report::classic::real_targets(results) {
            @if let Some(rate) = median(target) {
                tr {
                    td { (breakable_step(step)) } td { (breakable(&names[target])) } td { (rate_text(rate, unit)) }
                    td { @if let Some(ratio) = results.ratio(step, target, base, metric) { (format!("{ratio:.2}")) } }
                    td { (breakable(&names[base])) }
                }
            }
        }
    }
}

/// A rate, with its unit unless that is operations per second.
fn rate_text(rate: f64, unit: Option<&str>) -> String {
    unit.map_or_else(|| amount(rate), |unit| format!("{} {unit}", amount(rate)))
}

fn published_rows(row: &Published<'_>) -> Markup {
    let Published { group, step } = *row;
    let metric = group.main_metric();
    let unit = Some(metric.unit_of(&group.steps[step])).filter(|unit| *unit != metric.unit);
    html! {
        @for (target, column) in group.targets.iter().enumerate() {
            @if let Some(rate) = metric.values[step][target] {
                tr.published {
                    td { (breakable_option(&group.steps[step])) }
                    td { (breakable_option(&column.name)) " " i { "published" } }
                    td { (rate_text(rate, unit)) }
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
        let metric = MetricTable {
            name: "ops_sec".into(),
            unit: "ops/s".into(),
            relative_to: None,
            bases: Vec::new(),
            values,
        };
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
    fn tests_of_sysbench_are_the_same_by_their_whole_names() {
        let (_temp, store) = crate::testing::fake_record(2, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let results = Results::load(&store, 1).unwrap();
        let fits = |own: &str, published: &str| is_same(&results, own, published);
        assert!(fits("point-query", "point-query_range=100") && fits("qr100", "qr100.L1"));
        assert!(fits("scan_range=100", "scan_range=100") && fits("l.i0", "l.i0"));
        assert!(!fits("point-query", "point-query.pre_range=100"));
        assert!(!fits("read-only_range=10", "read-only_range=100"));
        assert!(!fits("qr100", "qr1000.L1") && !fits("l.i0", "l.i01"));
    }

    #[test]
    fn every_step_has_one_group() {
        for (step, name) in [
            ("fillseq", "Loads"),
            ("readwhilewriting", "Point lookups"),
            ("fwdrangewhilewriting", "Range queries"),
            ("overwriteandwait", "Writes"),
            ("compact", "Others"),
            ("l.i1", "Loads"),
            ("l.x", "Loads"),
            ("qp1000.L6", "Point lookups"),
            ("qr100.L1", "Range queries"),
            ("random-points_range=10", "Point lookups"),
            ("hot-points_range=100", "Point lookups"),
            ("points-covered-si_range=100", "Point lookups"),
            ("scan_range=100", "Range queries"),
            ("range-covered-pk_range=100", "Range queries"),
            ("read-only-count_range=1000", "Range queries with aggregation"),
            ("read-write_range=10", "Writes"),
            ("write-only_range=10000", "Writes"),
        ] {
            assert_eq!(GROUPS[group_of(step)].0, name, "{step}");
        }
    }
}

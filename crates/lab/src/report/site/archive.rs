//! The pages of an imported experiment.
//!
//! ```text
//! index.html    what cannot be judged and what can, tables with their extremes, what was repaired
//! table-N.html  one table: ratios to the base, lines over versions, numbers of each metric
//! files.html    the files, and what could not be read
//! csv/table-N.csv
//! ```
//! Invariant: no cell has a verdict. Each target ran once, so its ratio has no interval; signs are the posts' fixed band,
//! and the cells are hatched. Only changes of the tail over many versions are judged, see `import/tails.rs`.

use super::charts::{self, VersionLine};
use super::csv::field;
use super::page::{breakable_option, breakable_step, whole};
use crate::analysis::judge::{Verdict, Word};
use crate::import::{Archive, Better, Group, MetricTable, Standstill, TailChange, by_base, post_colour};
use crate::report::text::amount;
use crate::store::ArchiveRow;
use maud::{Markup, html};
use std::fmt::Write;

/// Metrics of tables of their own, where a file has them; all others are in the CSV.
const SHOWN: [&str; 17] = [
    "ops_sec", "qps", "ips", "cpu_us/o", "cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "p99", "p99.99", "pmax",
    "w_amp", "c_wsecs", "c_csecs", "stall%", "maxop",
];

/// Name and text of every file.
pub(super) fn files(row: &ArchiveRow) -> Vec<(String, String)> {
    let archive = &row.archive;
    let names = names(archive);
    let changes: Vec<Vec<TailChange>> = archive.tail_changes();
    let mut files = vec![
        ("index.html".to_string(), page(row, "", "index.html", &index(archive, &names, &changes))),
        ("files.html".to_string(), page(row, "Files", "files.html", &sources(archive))),
    ];
    for (number, group) in archive.groups.iter().enumerate() {
        let file = table_file(number);
        let body = table_page(group, &changes[number], number, &names);
        files.push((file.clone(), page(row, &names[number], &file, &body)));
        files.push((format!("csv/table-{}.csv", number + 1), csv(group)));
    }
    files
}

fn table_file(number: usize) -> String {
    format!("table-{}.html", number + 1)
}

fn page(row: &ArchiveRow, heading: &str, here: &str, body: &Markup) -> String {
    let link = |file: &str, text: &str| {
        html! { @if file == here { b { (text) } } @else { a href=(file) { (text) } } " " }
    };
    let navigation = html! { nav { (link("index.html", "Summary")) (link("files.html", "Files")) } };
    let foot = html! {
        p { "Experiment " (row.id) ", imported " (row.created) " by Outcrop lab " (row.lab_version) ": other people's numbers, not measured here." }
    };
    whole(&row.archive.title, heading, &navigation, body, &foot)
}

/// Titles of the tables.
fn names(archive: &Archive) -> Vec<String> {
    archive.groups.iter().map(|group| group.title.clone()).collect()
}

fn index(archive: &Archive, names: &[String], changes: &[Vec<TailChange>]) -> Markup {
    let found: Vec<(usize, &TailChange)> = changes
        .iter()
        .enumerate()
        .flat_map(|(group, changes)| changes.iter().map(move |c| (group, c)))
        .collect();
    html! {
        p.question { (archive.files.len()) " published result files, in " (archive.groups.len()) " tables." }
        (not_judged(archive))
        h2 { "Stalls" }
        @if found.is_empty() && archive.standstills.is_empty() {
            p {
                "In no step that four versions or more have was a change of the longest operation found, by a factor of two and 100 ms from one "
                "stretch of versions to the next, and there are no rates by second to look at."
            }
        }
        @if !found.is_empty() { (stall_table(&found, Some(names))) }
        (standstills(&archive.standstills))
        h2 { "Tables" }
        div.scroll { table.words.stacked {
            thead { tr { th { "table" } th { "targets" } th { "steps" } th { "metric" } th { "lowest" } th { "highest" } } }
            tbody { @for (number, group) in archive.groups.iter().enumerate() {
                @let metric = group.main_metric();
                tr {
                    td data-of="table" { a href=(table_file(number)) { (breakable_option(&names[number])) } }
                    td data-of="targets" { (group.targets.len()) }
                    td data-of="steps" { (group.steps.len()) }
                    td data-of="metric" { (metric.name) }
                    @for (of, end) in ["lowest", "highest"].into_iter().zip(extremes(group, &metric)) { td data-of=(of) { (end) } }
                }
            } }
        } }
        p.small { "Lowest and highest ratio to the table's base, each from one run." }
        (repairs(archive))
    }
}

/// Why there are no verdicts, and what else makes the numbers weaker than they look.
fn not_judged(archive: &Archive) -> Markup {
    html! {
        div.caution {
            p { b { "Not judged" } }
            ul {
                li {
                    "Each target ran once, in one order. Without repetition a ratio has no interval, so no cell below is called a "
                    "regression or an improvement. The signs are the fixed band of the posts, whatever the scatter: "
                    b { "-" } " at most 0.95, " b { "+" } " at least 1.05, " b { "=" } " between (turned around where less is better). "
                    "Hatched cells are such single runs."
                }
                @for note in archive.notes.iter().filter(|note| !note.changed && note.name != "measured_once") {
                    li { (note.sentence) " " span.small { "(" (note.count) " x " (note.name) ")" } }
                }
                @if !archive.rejects.is_empty() {
                    li { (archive.rejects.len()) " files or lines could not be read: " a href="files.html" { "which and why" } "." }
                }
            }
        }
    }
}

fn repairs(archive: &Archive) -> Markup {
    html! {
        h2 { "Repairs" }
        @if archive.notes.iter().any(|note| note.changed) {
            div.scroll { table.words {
                thead { tr { th { "repair" } th { "places" } th { "what was wrong, and what was done" } th { "first" } } }
                tbody { @for note in archive.notes.iter().filter(|note| note.changed) {
                    tr {
                        td { (breakable_option(&note.name)) } td { (note.count) } td { (note.sentence) }
                        td { (breakable_option(&file_name(&note.first.0))) ":" (note.first.1) ", " (breakable_option(&note.first.2)) }
                    }
                } }
            } }
        } @else {
            p { "Nothing: every number is as it was printed." }
        }
    }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// Step, target and value of the lowest and the highest ratio.
fn extremes(group: &Group, metric: &MetricTable) -> [String; 2] {
    let mut all: Vec<(f64, String)> = Vec::new();
    for (step, name) in group.steps.iter().enumerate() {
        for (target, column) in group.targets.iter().enumerate() {
            if let Some(ratio) = metric.ratio(step, target, group.base) {
                all.push((ratio, format!("{ratio:.2} {name}, {}", short(&column.name))));
            }
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    [all.first(), all.last()].map(|end| end.map_or(String::new(), |(_, text)| text.clone()))
}

/// A target's name without what its table's title says anyway.
fn short(name: &str) -> &str {
    name.strip_prefix("x.").unwrap_or(name)
}

pub(super) fn stall_table(changes: &[(usize, &TailChange)], names: Option<&[String]>) -> Markup {
    html! {
        p.small {
            "Where the longest operation of a step was found to change by a factor of two and 100 ms from one stretch of versions to the next. One version beside one "
            "other says nothing; several before and several after do, by an exact rank test of the two stretches. Where one ends and the next begins "
            "was searched for, which cuts one of twenty histories without a change; p is corrected for all series of the archive. Means of "
            "throughput need not show such a change."
        }
        div.scroll { table.words.stacked {
            thead { tr {
                @if names.is_some() { th { "table" } }
                th { "step" } th { "verdict" } th { "before" } th { "after" } th { "p" } th { "rate, and its spread between versions" }
            } }
            tbody { @for (group, change) in changes {
                tr {
                    @if let Some(names) = names { td data-of="table" { a href=(table_file(*group)) { (breakable_option(&names[*group])) } } }
                    td data-of="step" { (step_name(&change.step)) small { (breakable_option(&change.line)) } }
                    td data-of="verdict" class=(change.word.word()) { span.whole { (change.word.sign()) " " (change.word.word()) } }
                    td data-of="before" { span.whole { (change.amount(change.medians.0)) } small { (change.before.1) " up to " (change.before.0) } }
                    td data-of="after" { span.whole { (change.amount(change.medians.1)) } small { (change.after.1) " from " (change.after.0) " on" } }
                    td data-of="p" { span.whole { (format!("{:.1e}", change.q_value)) } }
                    td data-of="rate" { @if let Some(rates) = change.rates {
                        (format!("x {:.2}, {:.1} % to {:.1} %", rates.ratio, rates.spread.0 * 100.0, rates.spread.1 * 100.0))
                        small { (format!("p {:.1e}", rates.p_value)) }
                    } }
                }
            } }
        } }
    }
}

fn standstills(all: &[Standstill]) -> Markup {
    html! {
        @if !all.is_empty() {
            p.small { "From rates by second: seconds below a tenth of the usual. One run of each target, so none is compared." }
            div.scroll { table.words.stacked {
                thead { tr { th { "target" } th { "step" } th { "rate" } th { "seconds" } th { "stalled" } th { "longest" } th { "from" } } }
                tbody { @for still in all { tr {
                    td data-of="target" { (breakable_option(&still.target)) }
                    td data-of="step" { (step_name(&still.step)) }
                    td data-of="rate" { (still.metric) }
                    td data-of="seconds" { (amount(still.seconds)) }
                    td data-of="stalled" { (amount(still.stalled_seconds)) }
                    td data-of="longest" { (amount(still.longest_seconds)) }
                    td data-of="from" { @if let Some(at) = still.longest_at_seconds { (amount(at)) } }
                } } }
            } }
        }
    }
}

fn table_page(group: &Group, changes: &[TailChange], number: usize, names: &[String]) -> Markup {
    let main = &*group.main_metric();
    let base = main.relative_to.clone().unwrap_or_else(|| group.targets[group.base].name.clone());
    let changes: Vec<(usize, &TailChange)> = changes.iter().map(|change| (number, change)).collect();
    html! {
        p.bases {
            @if number > 0 { a href=(table_file(number - 1)) { "Previous: " (breakable_option(&names[number - 1])) } }
            @if number + 1 < names.len() { a href=(table_file(number + 1)) { "Next: " (breakable_option(&names[number + 1])) } }
        }
        h2 { (main.name) " relative to " (breakable_option(short(&base))) }
        p.small {
            "One run of each target: no verdict. Signs are the posts' band: - at most 0.95, + at least 1.05"
            @if Better::of(&main.name) == Better::Lower { ", turned around since less is better" } ". "
            a href=(format!("csv/table-{}.csv", number + 1)) { "CSV" }
        }
        (bases(group, main))
        (grid(group, None, &|step, target| ratio_cell(main, step, target, group.base)))
        (super::archive_groups::table(group))
        (versions(group, main, &base))
        @if !changes.is_empty() { h2 { "Stalls" } (stall_table(&changes, None)) }
        @for metric in SHOWN.iter().filter_map(|name| group.metric(name)).filter(|metric| metric.relative_to.is_none()) {
            h2 { (metric.name) @if !metric.unit.is_empty() { " [" (metric.unit) "]" } }
            (grid(group, Some(metric), &|step, target| value_cell(metric, step, target, group.base)))
        }
    }
}

/// Which targets are relative to which base, of ratios to several.
fn bases(group: &Group, metric: &MetricTable) -> Markup {
    let pairs = group.targets.iter().zip(&metric.bases);
    let of_base = by_base(pairs.filter_map(|(target, base)| Some((base.as_deref()?, short(&target.name)))));
    html! {
        @if !of_base.is_empty() {
            p.small {
                "Each ratio is to the base of its own group: "
                @for (number, (base, targets)) in of_base.iter().enumerate() {
                    @if number > 0 { "; " }
                    (breakable_option(&targets.join(", "))) " to " (breakable_option(short(base)))
                }
                "."
            }
        }
    }
}

fn ratio_cell(metric: &MetricTable, step: usize, target: usize, base: usize) -> Markup {
    let Some(ratio) = metric.ratio(step, target, base) else { return html! { td.invalid { "NA" } } };
    if target == base && metric.relative_to.is_none() {
        return html! { td { "1" } };
    }
    let colour = Better::of(&metric.name).turn(post_colour(ratio));
    html! { td class={ "single " (super::classic::class(colour)) } { (format!("{ratio:.2} {}", colour.sign())) } }
}

fn value_cell(metric: &MetricTable, step: usize, target: usize, base: usize) -> Markup {
    let Some(value) = metric.values[step][target] else { return html! { td.invalid { "NA" } } };
    let ratio = metric.ratio(step, target, base).filter(|_| target != base);
    html! { td { (amount(value)) @if let Some(ratio) = ratio { small { (format!("x {ratio:.2}")) } } } }
}

/// A target's name; versions stay whole, longer names may be broken.
fn target_name(name: &str) -> Markup {
    if name.len() <= 12 {
        html! { span.whole { (name) } }
    } else {
        breakable_option(name)
    }
}

/// A step's name that may be broken between its words.
fn step_name(name: &str) -> Markup {
    html! { @for (index, part) in name.split_inclusive(['_', '.']).enumerate() { @if index > 0 { wbr; } (breakable_step(part)) } }
}

/// The cell of a step and a target.
type CellOf<'a> = &'a dyn Fn(usize, usize) -> Markup;

/// A table whose columns are the fewer of steps and targets. Steps whose values have another unit than the rest of `values` say so.
fn grid(group: &Group, values: Option<&MetricTable>, cell: CellOf<'_>) -> Markup {
    let (steps, targets) = (0..group.steps.len(), 0..group.targets.len());
    let step = |step: usize| {
        let name = &group.steps[step];
        let unit = values.filter(|table| table.unit_of(name) != table.unit).map(|table| table.unit_of(name));
        html! { (step_name(name)) @if let Some(unit) = unit { " [" (unit) "]" } }
    };
    let target = |target: usize| target_name(short(&group.targets[target].name));
    html! {
        div.scroll { table {
            @if targets.len() > steps.len() {
                thead { tr { th { "target" } @for number in steps.clone() { th { (step(number)) } } } }
                tbody { @for row in targets { tr { td { (target(row)) } @for column in steps.clone() { (cell(column, row)) } } } }
            } @else {
                thead { tr { th { "step" } @for number in targets.clone() { th { (target(number)) } } } }
                tbody { @for row in steps { tr { td { (step(row)) } @for column in targets.clone() { (cell(row, column)) } } } }
            }
        } }
    }
}

/// Ratios over versions, a chart for each step, where at least three versions differ in nothing else.
fn versions(group: &Group, metric: &MetricTable, base: &str) -> Markup {
    let lines: Vec<Vec<usize>> = group.lines().into_iter().filter(|line| line.len() > 2).collect();
    let mut order: Vec<usize> = lines.iter().flatten().copied().collect();
    order.sort_by_key(|target| crate::import::version_numbers(&group.targets[*target].version));
    let mut versions: Vec<String> =
        order.iter().map(|target| group.targets[*target].version.clone()).collect();
    versions.dedup();
    if versions.len() < 3 {
        return html! {};
    }
    let point = |step: usize, line: &[usize], version: &String| {
        let target = line.iter().find(|target| group.targets[**target].version == *version)?;
        let ratio = metric.ratio(step, *target, group.base)?;
        // No interval: one run.
        Some(Verdict { ratio, low: None, high: None, pairs: 1, q: None, word: Word::Unknown, why: "one run" })
    };
    let named: Vec<String> = lines.iter().map(|line| group.targets[line[0]].line()).collect();
    html! {
        h2 { "Over versions" }
        p.small {
            (metric.name) " relative to " (breakable_option(short(base))) ", one run of each; axes do not start at 0. "
            (charts::line_key(&named))
        }
        div.grid {
            @for (step, name) in group.steps.iter().enumerate() {
                @let curves = lines.iter().zip(&named).map(|(line, named)| {
                    (named.clone(), versions.iter().map(|version| point(step, line, version)).collect())
                }).collect::<Vec<VersionLine>>();
                (charts::of_versions(name, &versions, &curves))
            }
        }
    }
}

fn sources(archive: &Archive) -> Markup {
    html! {
        div.scroll { table.words {
            thead { tr { th { "file" } th { "format" } th { "values" } } }
            tbody { @for (file, format, rows) in &archive.files { tr { td { (breakable_path(file)) } td { (format) } td { (rows) } } } }
        } }
        h2 { "Not read" }
        @if archive.rejects.is_empty() {
            p { "Nothing was rejected." }
        } @else {
            div.scroll { table.words {
                thead { tr { th { "place" } th { "why" } } }
                tbody { @for (file, line, why) in &archive.rejects { tr {
                    td { (breakable_path(file)) @if *line > 0 { ":" (line) } } td { (why) }
                } } }
            } }
        }
    }
}

/// A path that may be broken after its directories.
fn breakable_path(path: &str) -> Markup {
    html! { @for (index, part) in path.split_inclusive('/').enumerate() { @if index > 0 { wbr; } (breakable_option(part)) } }
}

fn csv(group: &Group) -> String {
    let mut text = String::from("metric,unit,step,target,version,value,ratio,relative_to\n");
    for metric in &group.metrics {
        for (step, name) in group.steps.iter().enumerate() {
            for (target, column) in group.targets.iter().enumerate() {
                let Some(value) = metric.values[step][target] else { continue };
                let base = metric.base_of(target).unwrap_or(&group.targets[group.base].name);
                let ratio = metric
                    .ratio(step, target, group.base)
                    .map_or(String::new(), |ratio| format!("{ratio:.4}"));
                let value = if metric.relative_to.is_some() { String::new() } else { value.to_string() };
                let words =
                    [&metric.name, &metric.unit, name, &column.name, &column.version].map(|word| field(word));
                let _ = writeln!(text, "{},{value},{ratio},{}", words.join(","), field(base));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::site::beside::tests::archive;

    #[test]
    fn that_no_change_was_found_is_not_that_there_is_none() {
        let archive = archive(&["fillseq"]);
        let page = index(&archive, &names(&archive), &archive.tail_changes()).into_string();
        assert!(
            page.contains("was a change of the longest operation found, by a factor of two and 100 ms"),
            "{page}"
        );
    }

    #[test]
    fn ratios_to_several_bases_are_told_apart() {
        let mut archive = archive(&["fillseq"]);
        let group = &mut archive.groups[0];
        assert_eq!(bases(group, &group.metrics[0]).into_string(), "");
        let metric = &mut group.metrics[0];
        metric.relative_to = Some("5.0 and 9.0".to_string());
        metric.bases = vec![Some("5.0".to_string()), Some("9.0".to_string())];
        let said = bases(group, &group.metrics[0]).into_string().replace("<wbr>", "");
        assert!(
            said.contains("Each ratio is to the base of its own group: 6.29.5 to 5.0; 10.8.3 to 9.0."),
            "{said}"
        );
        let csv = csv(group);
        assert!(csv.contains("fillseq,6.29.5,6.29.5,,1000.0000,5.0\n"), "{csv}");
        assert!(csv.contains("fillseq,10.8.3,10.8.3,,1500.0000,9.0\n"), "{csv}");
    }
}

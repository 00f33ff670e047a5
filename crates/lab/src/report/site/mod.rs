//! The report: a directory of static pages, made from the record alone.
//!
//! ```text
//! index.html   sentences, ratios, bars, versions over time, absolute numbers, tails, hardware, where the time went, how to reproduce
//! charts.html  the bars again, cut and with an axis that does not start at 0
//! base-N.html  ratios to another target     step-N.html  one step: every second, every metric
//! classic.html the form of the posts: their colours, costs, text to paste
//! cpu.html     where processor time goes, if that was sampled; flames/ has its graphs
//! host.html    the machine, sessions, events     options.html  options that differ     aa.html  the base to itself
//! beside.html  published numbers beside one's own, if they were asked for
//! csv/         the numbers of the tables
//! report.html  all that fits on one page, in one file to send around
//! ```
//! An imported experiment has pages of its own: `archive.rs`.
//! Invariants: no scripts, nothing from elsewhere, no clock: the same record gives the same bytes. A colour never
//! says anything that a sign or word beside it does not.
//! Next: `sections.rs` and `background.rs` for the parts of pages, `charts.rs` for the drawings.

mod archive;
mod archive_groups;
mod background;
mod beside;
mod build_words;
mod builds;
mod charts;
mod classic;
mod cpu;
mod csv;
mod flames;
mod iostat;
mod page;
mod phases;
mod plans;
mod sections;
mod steps;
#[cfg(test)]
mod tests;
mod waits;
mod writers;

pub(crate) use sections::version_key;

use crate::analysis::results::Results;
use crate::report::{groups, insert_benchmark, insert_metrics};
use crate::store::{Store, StoreError};
use maud::{Markup, html};
use std::path::{Path, PathBuf};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All pages, with verdicts.
    Full,
    /// One page in the form of the posts, and the numbers.
    Classic,
}

/// Writes the pages of experiment `id` into `dir`; gives the path of the first.
///
/// # Errors
/// If the record cannot be read or a file not be written.
pub fn write(store: &Store, id: i64, dir: &Path, form: Form) -> Result<PathBuf, String> {
    if let Some(row) = store.archive(id)? {
        return write_files(dir, archive::files(&row));
    }
    write_view(store, &Results::load(store, id)?, dir, form, &[])
}

/// As [`write()`], with a page of the imported experiments `beside` where they have the same steps.
///
/// # Errors
/// As there, and if one of them is not imported or no step is in both.
pub fn write_beside(
    store: &Store,
    id: i64,
    dir: &Path,
    form: Form,
    beside: &[i64],
) -> Result<PathBuf, String> {
    if store.archive(id)?.is_some() {
        return Err(format!("experiment {id} is imported: --beside is for one that was measured here"));
    }
    write_view(store, &Results::load(store, id)?, dir, form, beside)
}

/// The page of imported experiments, if any are asked for.
fn published(store: &Store, results: &Results, beside: &[i64]) -> Result<Option<Markup>, String> {
    if beside.is_empty() {
        return Ok(None);
    }
    let rows: Result<Vec<_>, String> = beside
        .iter()
        .map(|id| store.archive(*id)?.ok_or_else(|| format!("there is no imported experiment {id}")))
        .collect();
    let page = beside::tables(results, &rows?);
    page.map(Some).ok_or_else(|| {
        format!(
            "no step of experiment {} is in what was imported: there is nothing to put beside it",
            results.experiment.id
        )
    })
}

/// As [`write_beside`], of a view of a measured experiment.
///
/// # Errors
/// As there.
pub fn write_view(
    store: &Store,
    results: &Results,
    dir: &Path,
    form: Form,
    beside: &[i64],
) -> Result<PathBuf, String> {
    let id = results.experiment.id;
    if results.measured.is_empty() {
        return Err(format!("experiment {id} has no measurements yet"));
    }
    let files = match form {
        Form::Full => files(store, results, published(store, results, beside)?)?,
        Form::Classic => classic_files(results),
    };
    write_files(dir, files)
}

/// Writes files of the given names below `dir`; gives the path of the first page.
fn write_files(dir: &Path, files: Vec<(String, String)>) -> Result<PathBuf, String> {
    for (name, text) in files {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(dir.join("index.html"))
}

/// Name and text of every file.
fn files(
    store: &Store,
    results: &Results,
    published: Option<Markup>,
) -> Result<Vec<(String, String)>, StoreError> {
    let base = results.experiment.plan.base;
    let table = results.table(base, "ops_sec");
    let mut files = vec![
        ("index.html".to_string(), index(results, base, &table, published.is_some())),
        (page::SINGLE.to_string(), single(results, base, &table)),
        ("classic.html".to_string(), classic::classic_page(results, base, &table, "classic.html")),
        ("charts.html".to_string(), charts_page(results, base, &table)),
        ("host.html".to_string(), page::page(results, "Host", "host.html", &background::host(results))),
        (
            "options.html".to_string(),
            page::page(results, "Options", "options.html", &background::options(results)),
        ),
    ];
    if results.experiment.plan.targets.iter().any(|target| target.twin_of.is_some()) {
        files.push(("aa.html".to_string(), page::page(results, "A/A", "aa.html", &background::aa(results))));
    }
    if let Some(body) = insert_metrics::page(results) {
        files.push((METRICS_PAGE.to_string(), page::page(results, "Metrics", METRICS_PAGE, &body)));
        files.extend(insert_metrics::files(results));
    }
    if let Some(body) = published {
        files.push((beside::FILE.to_string(), page::page(results, "Published", beside::FILE, &body)));
    }
    if cpu::is_known(results) {
        files.push((
            cpu::FILE.to_string(),
            page::page(results, "Processor time", cpu::FILE, &cpu::all(results, cpu::Graphs::Beside)),
        ));
        files.extend(flames::files(results));
    }
    for other in 0..results.experiment.plan.targets.len() {
        let other_table = results.table(other, "ops_sec");
        if other != base {
            files.push((page::base_file(results, other), base_page(results, other, &other_table)));
        }
        files.push((format!("csv/relative-{}.csv", other + 1), csv::relative(results, other, &other_table)));
    }
    for number in 0..results.steps.len() {
        files.push((page::step_file(number), steps::step_page(store, results, number)?));
        files.push((page::seconds_file(number), csv::seconds(results, &results.steps[number])));
    }
    files.extend(numbers(results, base));
    Ok(files)
}

/// As [`files`], in the form of the posts.
fn classic_files(results: &Results) -> Vec<(String, String)> {
    let base = results.experiment.plan.base;
    let table = results.table(base, "ops_sec");
    let mut files = vec![
        ("index.html".to_string(), classic::classic_page(results, base, &table, page::ALONE)),
        (format!("csv/relative-{}.csv", base + 1), csv::relative(results, base, &table)),
    ];
    files.extend(numbers(results, base));
    files
}

/// The numbers that every report has, and the files in the form of the posts: ratios and rates, as CSV and TSV.
fn numbers(results: &Results, base: usize) -> Vec<(String, String)> {
    let posts = classic::texts(results, base).into_iter().map(|text| (text.file.to_string(), text.text));
    let own = [("csv/metrics.csv", csv::metrics(results)), ("csv/summary.tsv", csv::summary(results))];
    own.map(|(name, text)| (name.to_string(), text)).into_iter().chain(posts).collect()
}

type Table = [Vec<Option<crate::analysis::results::Cell>>];

/// Page of the Insert Benchmark's metrics rows.
const METRICS_PAGE: &str = "metrics.html";

/// Parts of the first page that links lead to.
const CONTENTS: [(&str, &str); 6] = [
    ("relative", "ratios"),
    ("throughput", "throughput"),
    ("latency", "latency"),
    ("stalls", "stalls"),
    ("hardware", "hardware per operation"),
    ("reproduce", "how to reproduce"),
];

fn index(results: &Results, base: usize, table: &Table, published: bool) -> String {
    let plan = &results.experiment.plan;
    let body = html! {
        @if !plan.question.is_empty() { p.question { (plan.question) } }
        (sections::sentences(results, base, table))
        (sections::cautions(results))
        nav.contents {
            "On this page: "
            @for (id, words) in CONTENTS { a href=(format!("#{id}")) { (words) } " " }
            @if phases::is_known(results) { a href=(format!("#{}", phases::ID)) { "where the time went" } " " }
            @if published { a href=(beside::FILE) { "published numbers beside these" } }
        }
        h2 #relative { "Throughput relative to " (results.labels()[base]) }
        (page::base_links(results, base))
        (sections::relative(results, base, table))
        (sections::legend(results, base, true))
        (sections::explanations(results, base, table, "index.html"))
        (groups::tables(results, base))
        (insert_benchmark::tables(results, base))
        @if insert_benchmark::is_one(results) {
            p { a href=(METRICS_PAGE) { "All metrics of each step, and the rates of its tenths." } }
        }
        (charts::figure("Relative throughput, axis from 0", &charts::bars(results, base, table, charts::Axis::full(table))))
        p { a href="charts.html" { "The same with the axis cut, and with an axis that does not start at 0." } }
        (sections::versions(results, base, table))
        (builds::tables(results, base, table))
        h2 #throughput { "Throughput" }
        (sections::absolute(results))
        h2 #latency { "Latency" }
        (sections::tails(results))
        h2 #stalls { "Stalls" }
        (waits::stalled(results, base))
        (waits::tails(results, base))
        (waits::responses(results, base))
        h2 #hardware { "Hardware per operation" }
        (sections::hardware(results, base))
        (phases::table(results))
        h2 #reproduce { "How to reproduce" }
        (background::reproduce(results))
    };
    page::page(results, "", "index.html", &body)
}

/// The summary, the machine and the options on one page without links.
fn single(results: &Results, base: usize, table: &Table) -> String {
    let plan = &results.experiment.plan;
    let body = html! {
        @if !plan.question.is_empty() { p.question { (plan.question) } }
        (sections::sentences(results, base, table))
        (sections::cautions(results))
        h2 { "Throughput relative to " (results.labels()[base]) }
        (sections::relative(results, base, table))
        (sections::legend(results, base, false))
        (sections::explanations(results, base, table, page::SINGLE))
        (groups::tables(results, base))
        (insert_benchmark::tables(results, base))
        (charts::figure("Relative throughput, axis from 0", &charts::bars(results, base, table, charts::Axis::full(table))))
        (sections::versions(results, base, table))
        (builds::tables(results, base, table))
        h2 { "Throughput" }
        (sections::absolute(results))
        h2 { "Latency" }
        (sections::tails(results))
        h2 { "Stalls" }
        (waits::stalled(results, base))
        (waits::tails(results, base))
        (waits::responses(results, base))
        h2 { "Hardware per operation" }
        (sections::hardware(results, base))
        (phases::table(results))
        @if cpu::is_known(results) { h2 { "Processor time" } (cpu::all(results, cpu::Graphs::None)) }
        h2 { "Host" }
        (background::host(results))
        h2 { "Options" }
        (background::options(results))
        h2 { "How to reproduce" }
        (background::reproduce(results))
    };
    page::page(results, "", page::SINGLE, &body)
}

fn charts_page(results: &Results, base: usize, table: &Table) -> String {
    let (full, cut, around) =
        (charts::Axis::full(table), charts::Axis::cut(table), charts::Axis::around_one(table));
    let body = html! {
        p { "Throughput relative to " b { (results.labels()[base]) } ", three times, from the same "
            a href=(format!("csv/relative-{}.csv", base + 1)) { "numbers" } "." }
        (charts::figure("Axis from 0", &charts::bars(results, base, table, full)))
        (charts::figure(
            &format!("Axis from 0, cut at {:.2}: longer bars end in two strokes, and the value beside the name holds", cut.to),
            &charts::bars(results, base, table, cut)
        ))
        (charts::figure(
            &format!("The axis does not start at 0 but at {:.2}: bars grow from 1", around.from),
            &charts::bars(results, base, table, around)
        ))
    };
    page::page(results, "Charts", "charts.html", &body)
}

fn base_page(results: &Results, base: usize, table: &Table) -> String {
    let name = results.labels().swap_remove(base);
    let body: Markup = html! {
        (page::base_links(results, base))
        (sections::sentences(results, base, table))
        (sections::relative(results, base, table))
        (sections::legend(results, base, true))
        (charts::figure("Relative throughput, axis from 0", &charts::bars(results, base, table, charts::Axis::full(table))))
        h2 { "Hardware per operation" }
        (sections::hardware(results, base))
    };
    page::page(results, &format!("Relative to {name}"), &page::base_file(results, base), &body)
}

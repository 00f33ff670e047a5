//! The views of experiments in the terminal: lists, one experiment, its table of ratios. At most 80
//! columns.
//!
//! Next: `plan.rs` for what would run, `explain.rs` for one step of one target.

mod engine_log;
mod explain;
mod first;
mod plan;

pub use engine_log::engine_log;
pub use explain::{explain, explain_json};
pub use first::first_page;
pub use plan::plan;

use crate::analysis::judge::{Verdict, Word};
use crate::analysis::results::{Cell, Results};
use crate::analysis::{plans, position, stalls, tails};
use crate::report::summary_line::{self, Measured, ops_per_second, summary_line};
use crate::report::text::{WIDTH, align, align_within, amount, cut, paragraph};
use crate::report::{groups, insert_benchmark};
use crate::store::{SessionRow, Status, Store, StoreError};
use serde::Serialize;
use std::fmt::Write;

/// One line per experiment.
///
/// # Errors
/// If the store cannot be read.
pub fn list(store: &Store) -> Result<String, StoreError> {
    let mut rows = vec![["id", "begun", "sessions", "state", "title"].map(str::to_string).to_vec()];
    for id in store.experiments()? {
        let experiment = store.experiment(id)?;
        let done = store.sessions(id)?.len();
        rows.push(vec![
            id.to_string(),
            experiment.created[..10.min(experiment.created.len())].to_string(),
            format!("{done}/{}", experiment.plan.slots().len()),
            if experiment.status == Status::Done { "done" } else { "open" }.to_string(),
            cut(&experiment.plan.title, 40),
        ]);
    }
    for (id, created, title) in store.archives()? {
        let day = created[..10.min(created.len())].to_string();
        let cells = [id.to_string(), day, "-".to_string(), "imported".to_string(), cut(&title, 40)];
        rows.push(cells.to_vec());
    }
    rows[1..].sort_by_key(|row| row[0].parse::<i64>().unwrap_or(0));
    // The title is text and reads from the left.
    let widest = rows.iter().map(|row| row[4].chars().count()).max().unwrap_or(0);
    rows.iter_mut().for_each(|row| row[4] = format!("{:<widest$}", row[4]));
    Ok(align(&rows))
}

/// Everything about an experiment but its comparison.
pub fn show(results: &Results) -> String {
    let experiment = &results.experiment;
    let state =
        if experiment.status == Status::Done { "done" } else { "open: outcrop lab run FILE --resume" };
    let head = format!(
        "experiment {} of {} ({}), lab {}, {state}",
        experiment.id, experiment.created, experiment.file, experiment.lab_version
    );
    let mut text = paragraph("", &head, 0) + "\n" + &plan(&experiment.plan, &results.noise);
    let facts = &experiment.host.facts;
    let _ = writeln!(
        text,
        "\nhost     {}\n         {} cores, {} GB, {} on {}, Linux {}",
        facts.cpu,
        facts.cores,
        facts.memory_bytes >> 30,
        facts.filesystem,
        facts.device_name(),
        facts.kernel
    );
    text.push_str("\nsessions\n");
    let mut rows = vec![["target", "done", "failed", "skipped", "says it is"].map(str::to_string).to_vec()];
    for (index, name) in results.labels().into_iter().enumerate() {
        let own = || results.sessions.iter().filter(|session| session.target == index && session.block >= 0);
        let count = |outcome: &str| own().filter(|session| session.outcome == outcome).count().to_string();
        let says = own().map(SessionRow::engine).find(|text| !text.is_empty()).unwrap_or_default();
        rows.push(vec![name, count("done"), count("failed"), count("skipped"), says]);
    }
    text.push_str(&align(&rows));
    if !results.engine_logs.is_empty() {
        let command = format!("outcrop lab log {} TARGET [--block N]", experiment.id);
        let _ = writeln!(text, "logs of {} sessions: {command}", results.engine_logs.len());
    }
    let remarks = remarks(results);
    if !remarks.is_empty() {
        text.push_str("\nremarks\n");
        remarks.iter().for_each(|remark| text.push_str(&paragraph("  ", remark, 4)));
    }
    if !results.events.is_empty() {
        text.push_str("\nevents\n");
        let lines = results.events.iter().map(|(date, event)| paragraph(&format!("  {date}  "), event, 4));
        lines.for_each(|line| text.push_str(&line));
    }
    text
}

/// Labels of measurements by name: how many have it, and one of them.
pub fn remarks(results: &Results) -> Vec<String> {
    let names = results.labels();
    let mut counted: Vec<(&str, usize, String)> = Vec::new();
    for row in &results.measured {
        for label in &row.labels {
            match counted.iter_mut().find(|(name, ..)| *name == label.name) {
                Some((_, count, _)) => *count += 1,
                None => {
                    let example = format!("{}, {}: {}", row.name, names[row.target], label.text);
                    counted.push((&label.name, 1, example));
                }
            }
        }
    }
    let all = results.measured.len();
    let text =
        |(name, count, example)| format!("{name}: {count} of {all} measurements; the first: {example}");
    let mut remarks: Vec<String> = counted.into_iter().map(text).collect();
    remarks.extend(unequal_sizes(results));
    remarks.extend(other_versions(results));
    remarks.extend(wider_margins(results, results.experiment.plan.base));
    remarks.extend(plans::sentences(results, results.experiment.plan.base));
    remarks.extend(position::sentences(results, results.experiment.plan.base));
    remarks
}

/// Steps on which a change must be larger than the experiment asks, since equals differed by more on this machine.
fn wider_margins(results: &Results, base: usize) -> Vec<String> {
    let delta = results.experiment.plan.delta;
    let wider = |step: &String| {
        let noise = results.noise_of(step, "ops_sec", base)?;
        let margin = noise.margin(delta).call;
        (margin > delta).then(|| {
            format!(
                "{step}: a change must exceed {:.1} % for a verdict, not {:.1} %: of {} earlier experiments here one in \
                 twenty strayed as far, the base against itself",
                margin * 100.0,
                delta * 100.0,
                noise.whole
            )
        })
    };
    results.steps.iter().filter_map(wider).collect()
}

/// Targets whose data at the end are of another size than the base's: they did not store the same.
fn unequal_sizes(results: &Results) -> Vec<String> {
    /// Share by which sizes may differ.
    const SIZE: f64 = 0.1;
    let base = results.experiment.plan.base;
    let Some(step) = results.steps.last() else { return Vec::new() };
    let size = |target| results.median(step, target, "tables");
    let Some(usual) = size(base) else { return Vec::new() };
    let names = results.labels();
    let differs = |(target, name): (usize, &String)| {
        let own = size(target)?;
        ((own / usual - 1.0).abs() > SIZE).then(|| {
            format!("tables of {name} took {own:.0} MB after {step}, those of {} {usual:.0} MB", names[base])
        })
    };
    names.iter().enumerate().filter_map(differs).collect()
}

/// Targets that say they are another version than was asked for.
fn other_versions(results: &Results) -> Vec<String> {
    let (plan, names) = (&results.experiment.plan, results.labels());
    let differs = |(target, planned): (usize, &crate::planning::plan::PlannedTarget)| {
        let asked = planned.version.as_ref()?;
        let mut own = results.sessions.iter().filter(|session| session.target == target);
        let said = own.find_map(|session| session.engine_version.as_ref())?;
        // A packaging's fourth number is not the engine's.
        let same = asked == said || asked.starts_with(&format!("{said}."));
        (!same).then(|| format!("{} says it is version {said}", names[target]))
    };
    plan.targets.iter().enumerate().filter_map(differs).collect()
}

/// The 28 columns of each target: for each step those of the block with the median throughput.
pub fn summary(results: &Results) -> String {
    let mut text = String::new();
    for (target, name) in results.target_names().into_iter().enumerate() {
        let lines: Vec<_> = results
            .steps
            .iter()
            .filter_map(|step| {
                let mut rows: Vec<_> = results.rows(step, target).collect();
                rows.sort_by(|a, b| ops_per_second(&a.result).total_cmp(&ops_per_second(&b.result)));
                let row = rows.get(rows.len().saturating_sub(1) / 2)?;
                Some(summary_line(&Measured::of(results, row), name, &format!("block{}", row.block + 1)))
            })
            .collect();
        if !lines.is_empty() {
            let _ = write!(text, "\n{name}: the block with the median throughput of each step\n\n");
            text.push_str(&summary_line::summary_blocks(&lines));
        }
    }
    text
}

/// The ratios of a metric, targets in columns by number.
pub fn compare(results: &Results, base: usize, metric: &str) -> String {
    let names = results.labels();
    let plan = &results.experiment.plan;
    let what = format!("{} relative to {}; {} blocks", labelled(metric), names[base], results.blocks());
    let mut text = paragraph("", &plan.title, 0) + &paragraph("", &what, 0) + &key(results, base);
    for table in ratios(results, base, metric) {
        let _ = write!(text, "\n{table}");
    }
    text.push_str(LEGEND);
    let offset = results.offset(base);
    if metric == "ops_sec" {
        if offset.iter().any(Option::is_some) {
            text.push_str("all steps: what the steps of a session have in common, their offset\n");
        }
        wider_margins(results, base).iter().for_each(|line| text.push_str(&paragraph("", line, 4)));
        text.push_str(&responses(results, base));
        text.push_str(&stalls::text(results, base));
        text.push_str(&groups::text(results, base));
        text.push_str(&insert_benchmark::text(results, base));
        text.push_str(&longer_tails(results, base));
    }
    for step in &results.steps {
        for (target, name) in names.iter().enumerate() {
            if let Some(why) = results.invalid(step, target) {
                text.push_str(&paragraph("! ", &format!("{step}, {name}: {why}"), 4));
            }
        }
    }
    text
}

/// The meaning of the signs.
const LEGEND: &str = "\nratio, half width of the 95 % interval in %, verdict:\n\
                      + improvement   - regression   = same   ? unknown   ! invalid\n";

/// The table of a metric's ratios, in as many parts as fit the terminal.
fn ratios(results: &Results, base: usize, metric: &str) -> Vec<String> {
    let headers = results.headers();
    let table = results.table(base, metric);
    let offset = results.offset(base);
    let others: Vec<usize> = (0..headers.len()).filter(|target| *target != base).collect();
    // The base's throughput stands in the unit of its step; of other metrics there is one unit.
    let label = |step: &String| match metric {
        "ops_sec" => results.with_throughput_unit(step),
        _ => step.clone(),
    };
    let sections = groups::sections(results);
    let titles = sections.iter().filter_map(|section| section.title).map(str::len);
    let first = results.steps.iter().map(|step| label(step).len()).chain(titles).max().unwrap_or(4);
    /// Letters of one ratio: `1.23 ±12.3 =`, or `not offered`.
    const CELL: usize = 13;
    let widest = headers.iter().map(|header| header.chars().count()).max().unwrap_or(0);
    let per_block = ((WIDTH - first - 2 - widest.max(10)) / (2 + widest.max(CELL))).max(1);
    // A base alone still has its throughput.
    let alone: [&[usize]; 1] = [&[]];
    let blocks: Vec<&[usize]> =
        if others.is_empty() { alone.to_vec() } else { others.chunks(per_block).collect() };
    let mut parts = Vec::new();
    for columns in blocks {
        let mut rows = vec![vec!["step".to_string(), headers[base].clone()]];
        rows[0].extend(columns.iter().map(|column| headers[*column].clone()));
        for line in sections.iter().flat_map(groups::Section::lines) {
            let number = match line {
                groups::Line::Title(title) => {
                    let empty = vec![String::new(); columns.len() + 1];
                    rows.push(std::iter::once(title.to_string()).chain(empty).collect());
                    continue;
                }
                groups::Line::Step(number) => number,
            };
            let (step, cells) = (&results.steps[number], &table[number]);
            let median = match (metric, results.throughput(step).0) {
                ("ops_sec", shown) if shown != metric => results.median(step, base, shown),
                _ => cells[base].as_ref().map(|cell| cell.median),
            };
            let mut row = vec![label(step), median.map_or("NA".into(), amount)];
            row.extend(columns.iter().map(|column| {
                let offered = results.not_offered(step, *column).is_none();
                if offered { cell_text(cells[*column].as_ref()) } else { "not offered".to_string() }
            }));
            rows.push(row);
        }
        if metric == "ops_sec" && columns.iter().any(|column| offset[*column].is_some()) {
            let mut row = vec!["all steps".to_string(), String::new()];
            row.extend(
                columns.iter().map(|column| offset[*column].as_ref().map_or(String::new(), verdict_text)),
            );
            rows.push(row);
        }
        parts.push(align(&rows));
    }
    parts
}

/// Whole names of the targets where columns do not say them.
fn key(results: &Results, base: usize) -> String {
    let (names, headers) = (results.target_names(), results.headers());
    let is_said = |(name, header): (&&str, &String)| *name == header || header == "A/A";
    if names.iter().zip(&headers).all(is_said) {
        return String::new();
    }
    let mut text = "\n".to_string();
    for (index, (name, header)) in names.iter().zip(&headers).enumerate() {
        let mark = if index == base { " (base)" } else { "" };
        let name = cut(name, WIDTH - 3 - mark.len() - header.chars().count());
        let _ = writeln!(text, "{header} : {name}{mark}");
    }
    text
}

/// A metric with its unit.
fn labelled(metric: &str) -> String {
    match crate::probe::derive::metric(metric).map(|row| row.unit) {
        Some("1/s") => format!("{metric} (operations per second)"),
        Some(unit) if unit != "1" => format!("{metric} ({unit})"),
        _ => metric.to_string(),
    }
}

fn cell_text(cell: Option<&Cell>) -> String {
    match cell {
        None => "NA".to_string(),
        Some(cell) => match (&cell.invalid, &cell.verdict) {
            (Some(_), _) => "!".to_string(),
            (None, None) => "NA".to_string(),
            (None, Some(verdict)) => verdict_text(verdict),
        },
    }
}

fn verdict_text(verdict: &Verdict) -> String {
    let width = match verdict.half_width_percent() {
        // One pair has no scatter.
        None => String::new(),
        Some(half) if half >= 100.0 => "± >99".to_string(),
        Some(half) => format!("±{half:>4.1}"),
    };
    format!("{:.2} {width:>5} {}", verdict.ratio, verdict.word.sign())
}

/// Steps whose operations were due at their times, by the time an operation took from then; nothing without such steps.
fn responses(results: &Results, base: usize) -> String {
    let mut rows = vec![vec!["step".to_string(), "due/s".to_string(), "response".to_string()]];
    rows[0].extend(results.headers());
    for metric in ["response_p50", "response_p99", "response_p99.9"] {
        let table = results.table(base, metric);
        for (step, cells) in results.steps.iter().zip(&table) {
            let planned = results.experiment.plan.steps.iter().find(|planned| planned.step.name == *step);
            let Some(arrival) = planned.and_then(|planned| planned.step.arrival) else { continue };
            let name = metric.trim_start_matches("response_").to_string();
            let mut row = vec![step.clone(), amount(arrival.rate), format!("{name} [us]")];
            row.extend(cells.iter().map(|cell| match cell {
                None => "NA".to_string(),
                Some(cell) if cell.invalid.is_some() => "!".to_string(),
                Some(cell) => {
                    let sign = cell.verdict.map_or(' ', |verdict| verdict.word.sign());
                    format!("{} {sign}", amount(cell.median))
                }
            }));
            rows.push(row);
        }
    }
    match rows.len() {
        1 => String::new(),
        _ => format!(
            "\n{}response: from the time an operation was due; lower is better\n",
            align_within(&rows, 3)
        ),
    }
}

/// Tails that differ; nothing where none was called.
fn longer_tails(results: &Results, base: usize) -> String {
    let mut rows = vec![vec!["step".to_string(), "tail".to_string()]];
    rows[0].extend(results.headers());
    for row in tails::table(results, base).into_iter().filter(tails::TailRow::is_worth_a_line) {
        let mut line = vec![row.step.clone(), format!("{} [us]", row.measure)];
        line.extend(row.cells.iter().enumerate().map(|(target, verdict)| {
            let value = results.median(&row.step, target, row.measure).map_or("NA".to_string(), amount);
            format!("{value} {}", verdict.map_or(' ', |verdict| verdict.word.sign()))
        }));
        rows.push(line);
    }
    match rows.len() {
        1 => String::new(),
        _ => format!("\n{}tail: medians of service times; + is a shorter one\n", align_within(&rows, 2)),
    }
}

/// The comparison for programs.
pub fn compare_json(results: &Results, base: usize, metric: &str) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        step: &'a str,
        target: &'a str,
        #[serde(flatten)]
        cell: &'a Cell,
    }
    #[derive(Serialize)]
    struct Comparison<'a> {
        experiment: i64,
        title: &'a str,
        metric: &'a str,
        base: &'a str,
        cells: Vec<Row<'a>>,
        /// The difference that all steps share, for each target.
        offset: Vec<Option<Verdict>>,
        stalls: Vec<stalls::StallRow>,
        tails: Vec<tails::TailRow>,
    }
    let table = results.table(base, metric);
    let names = results.target_names();
    let cells = results.steps.iter().zip(&table).flat_map(|(step, cells)| {
        let names = &names;
        let row = move |(target, cell): (usize, &'_ Option<Cell>)| -> Option<(usize, Cell)> {
            Some((target, cell.clone()?))
        };
        cells.iter().enumerate().filter_map(row).map(move |(target, cell)| (step, names[target], cell))
    });
    let owned: Vec<(&String, &str, Cell)> = cells.collect();
    let comparison = Comparison {
        experiment: results.experiment.id,
        title: &results.experiment.plan.title,
        metric,
        base: names[base],
        cells: owned.iter().map(|(step, target, cell)| Row { step, target, cell }).collect(),
        offset: results.offset(base),
        stalls: stalls::table(results, base),
        tails: tails::table(results, base),
    };
    serde_json::to_string_pretty(&comparison).expect("plain data serialises")
}

/// The exit code of a comparison: 2 with a regression, else 3 with an unknown, else 0. Of throughput, regressions of stalls
/// and tails count too; that one of those is unknown is no reason to look again. The A/A twin does not count.
pub fn exit_code(results: &Results, base: usize, metric: &str) -> u8 {
    let targets = &results.experiment.plan.targets;
    let table = results.table(base, metric);
    let words: Vec<Word> = table
        .iter()
        .zip(&results.steps)
        .flat_map(|(cells, step)| cells.iter().enumerate().map(move |(target, cell)| (target, cell, step)))
        .filter(|(target, ..)| *target != base && targets[*target].twin_of.is_none())
        .filter(|(target, _, step)| {
            // A step that one of the two does not have is not unknown.
            results.not_offered(step, *target).or(results.not_offered(step, base)).is_none()
        })
        .map(|(_, cell, _)| cell.as_ref().and_then(|cell| cell.verdict).map_or(Word::Unknown, |v| v.word))
        .collect();
    let waits_longer = metric == "ops_sec" && regression_of_waiting(results, base);
    match words {
        words if waits_longer || words.contains(&Word::Regression) => 2,
        words if words.contains(&Word::Unknown) => 3,
        _ => 0,
    }
}

/// Whether a target that is no twin stalls more than the base, or has a longer tail.
fn regression_of_waiting(results: &Results, base: usize) -> bool {
    let real: Vec<usize> = (0..results.target_names().len())
        .filter(|target| *target != base && results.experiment.plan.targets[*target].twin_of.is_none())
        .collect();
    let stalled = stalls::table(results, base);
    let stalled = stalled.iter().flat_map(|row| real.iter().filter_map(|target| row.cells[*target]?.word));
    let tails = tails::table(results, base);
    let tails = tails.iter().flat_map(|row| real.iter().filter_map(|target| Some(row.cells[*target]?.word)));
    stalled.chain(tails).any(|word| word == Word::Regression)
}

//! What the terminal shows of experiments: lists, one experiment, its table of ratios. At most 80 columns.
//!
//! Next: `plan.rs` for what would run, `explain.rs` for one step of one target.

mod engine_log;
mod explain;
mod plan;

pub use engine_log::engine_log;
pub use explain::{explain, explain_json};
pub use plan::plan;

use crate::analysis::judge::{Verdict, Word};
use crate::analysis::results::{Cell, Results};
use crate::analysis::stalls;
use crate::report::summary_line::{self, Measured, ops_per_second, summary_line};
use crate::report::text::{WIDTH, align, amount, cut, paragraph};
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
    for (index, name) in results.target_names().into_iter().enumerate() {
        let own = || results.sessions.iter().filter(|session| session.target == index && session.block >= 0);
        let count = |outcome: &str| own().filter(|session| session.outcome == outcome).count().to_string();
        let says = own().map(SessionRow::engine).find(|text| !text.is_empty()).unwrap_or_default();
        rows.push(vec![cut(name, 34), count("done"), count("failed"), count("skipped"), says]);
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
    let names = results.target_names();
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
    remarks.extend(wider_margins(results));
    remarks
}

/// Steps on which a change must be larger than the experiment asks, since equals differed by more on this machine.
fn wider_margins(results: &Results) -> Vec<String> {
    let delta = results.experiment.plan.delta;
    let wider = |step: &String| {
        let noise = results.noise_of(step, "ops_sec")?;
        let margin = noise.margin(delta);
        (margin > delta).then(|| {
            format!(
                "{step}: a change must exceed {:.1} % for a verdict, not {:.1} %: in {} earlier experiments here the base \
                 strayed so far from itself",
                margin * 100.0,
                delta * 100.0,
                noise.experiments
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
    let names = results.target_names();
    let differs = |(target, name): (usize, &&str)| {
        let own = size(target)?;
        ((own / usual - 1.0).abs() > SIZE).then(|| {
            format!("tables of {name} took {own:.0} MB after {step}, those of {} {usual:.0} MB", names[base])
        })
    };
    names.iter().enumerate().filter_map(differs).collect()
}

/// Targets that say they are another version than was asked for.
fn other_versions(results: &Results) -> Vec<String> {
    let plan = &results.experiment.plan;
    let differs = |(target, planned): (usize, &crate::planning::plan::PlannedTarget)| {
        let asked = planned.version.as_ref()?;
        let mut own = results.sessions.iter().filter(|session| session.target == target);
        let said = own.find_map(|session| session.engine_version.as_ref())?;
        // A packaging's fourth number is not the engine's.
        let same = asked == said || asked.starts_with(&format!("{said}."));
        (!same).then(|| format!("{} says it is version {said}", planned.name))
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
    let names = results.target_names();
    let plan = &results.experiment.plan;
    let mut text = paragraph("", &plan.title, 0)
        + &paragraph(
            "",
            &format!("{} relative to {}; {} blocks", labelled(metric), names[base], results.blocks()),
            0,
        )
        + "\n";
    for (index, name) in names.iter().enumerate() {
        let mark = if index == base { " (base)" } else { "" };
        let name = cut(name, WIDTH - 8 - mark.len() - (index + 1).to_string().len());
        let _ = writeln!(text, "col-{} : {name}{mark}", index + 1);
    }
    let table = results.table(base, metric);
    let offset = results.offset(base);
    let others: Vec<usize> = (0..names.len()).filter(|target| *target != base).collect();
    let first = results.steps.iter().map(String::len).max().unwrap_or(4);
    /// Columns of one ratio: two blanks, `1.234 +-12.3 =`.
    const CELL: usize = 15;
    let per_block = ((WIDTH - first - 12) / CELL).max(1);
    // A base alone still has its throughput.
    let alone: [&[usize]; 1] = [&[]];
    let blocks: Vec<&[usize]> =
        if others.is_empty() { alone.to_vec() } else { others.chunks(per_block).collect() };
    for columns in blocks {
        let mut rows = vec![vec!["step".to_string(), format!("col-{}", base + 1)]];
        rows[0].extend(columns.iter().map(|column| format!("col-{}", column + 1)));
        for (step, cells) in results.steps.iter().zip(&table) {
            let median = cells[base].as_ref().map_or("NA".into(), |cell| amount(cell.median));
            let mut row = vec![step.clone(), median];
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
        let _ = write!(text, "\n{}", align(&rows));
    }
    text.push_str(
        "\nratio, half width of the 95 % interval in %, verdict:\n\
         + improvement   - regression   = same   ? unknown   ! invalid\n",
    );
    if metric == "ops_sec" {
        if offset.iter().any(Option::is_some) {
            text.push_str("all steps: what the steps of a session have in common, their offset\n");
        }
        wider_margins(results).iter().for_each(|line| text.push_str(&paragraph("", line, 4)));
        text.push_str(&responses(results, base));
        text.push_str(&stalls::text(results, base));
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
    let names = results.target_names();
    let mut rows = vec![vec!["step".to_string(), "due/s".to_string(), "response".to_string()]];
    rows[0].extend((1..=names.len()).map(|column| format!("col-{column}")));
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
        _ => format!("\n{}response: from the time an operation was due; lower is better\n", align(&rows)),
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
        /// What all steps have in common, for each target.
        offset: Vec<Option<Verdict>>,
        stalls: Vec<stalls::StallRow>,
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
    };
    serde_json::to_string_pretty(&comparison).expect("plain data serialises")
}

/// The exit code of a comparison: 2 with a regression, else 3 with an unknown, else 0. The A/A twin does not
/// count.
pub fn exit_code(results: &Results, base: usize, metric: &str) -> u8 {
    let targets = &results.experiment.plan.targets;
    let table = results.table(base, metric);
    let words: Vec<Word> = table
        .iter()
        .zip(&results.steps)
        .flat_map(|(cells, step)| cells.iter().enumerate().map(move |(target, cell)| (target, cell, step)))
        .filter(|(target, ..)| *target != base && targets[*target].twin_of.is_none())
        .filter(|(target, _, step)| {
            // What one of the two does not have is not unknown.
            results.not_offered(step, *target).or(results.not_offered(step, base)).is_none()
        })
        .map(|(_, cell, _)| cell.as_ref().and_then(|cell| cell.verdict).map_or(Word::Unknown, |v| v.word))
        .collect();
    match words {
        words if words.contains(&Word::Regression) => 2,
        words if words.contains(&Word::Unknown) => 3,
        _ => 0,
    }
}

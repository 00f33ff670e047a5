//! The parts of the pages that compare: sentences and tables.

use super::{Table, charts, page};
use crate::analysis::judge::{Verdict, Word};
use crate::analysis::results::{Cell, Results};
use crate::analysis::{plans, waits};
use crate::probe::derive::metric;
use crate::report::groups::{self, Line};
use crate::report::show;
use crate::report::text::amount;
use maud::{Markup, html};

/// A sentence for each target.
pub(super) fn sentences(results: &Results, base: usize, table: &Table) -> Markup {
    let plan = &results.experiment.plan;
    let names = results.labels();
    html! {
        ul {
            @for (target, name) in names.iter().enumerate() {
                @if target != base && plan.targets[target].twin_of.is_none() {
                    li { b { (name) } " " (sentence(results, base, table, target)) }
                }
            }
        }
    }
}

/// Steps that a sentence names of those that share a verdict.
const NAMED: usize = 8;

/// The results of a target in words, in the order in which a reader needs them: steps that got worse, better, that
/// are not known, that are the same; in each the largest difference first.
fn sentence(results: &Results, base: usize, table: &Table, target: usize) -> String {
    let mut all: Vec<(&str, Verdict)> = results
        .steps
        .iter()
        .zip(table)
        .filter_map(|(step, cells)| Some((step.as_str(), cells[target].as_ref()?.verdict?)))
        .collect();
    if all.is_empty() {
        return "has no step that can be compared.".to_string();
    }
    all.sort_by(|(_, a), (_, b)| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let list = |words: &str, word: Word| {
        let named = all.iter().filter(|(_, verdict)| verdict.word == word);
        let mut named: Vec<String> =
            named.map(|(step, verdict)| format!("{step} {:.2}X", verdict.ratio)).collect();
        let count = named.len();
        // The largest first; the table has all.
        if count > NAMED + 1 {
            named.truncate(NAMED);
            named.push(format!("and {} more", count - NAMED));
        }
        (count > 0).then(|| format!("{words} {count} of {} ({})", all.len(), named.join(", ")))
    };
    let base = &results.labels()[base];
    let parts: Vec<String> = [
        list(&format!("gets less QPS than {base} on"), Word::Regression),
        list(&format!("gets more QPS than {base} on"), Word::Improvement),
        list("is not decided on", Word::Unknown),
        list("is the same on", Word::Same),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mean = (all.iter().map(|(_, verdict)| verdict.ratio.ln()).sum::<f64>() / all.len() as f64).exp();
    format!("{}. Geometric mean {mean:.2}X.", parts.join("; "))
}

/// The remarks that make the numbers weaker than they look.
pub(super) fn cautions(results: &Results) -> Markup {
    let (plan, names) = (&results.experiment.plan, results.labels());
    let mut lines: Vec<String> = results
        .sessions
        .iter()
        .filter(|session| session.outcome == "failed")
        .map(|session| {
            let why = session.error.as_deref().unwrap_or("no reason recorded");
            format!("{} failed in block {}: {why}", names[session.target], session.block + 1)
        })
        .collect();
    lines.extend(plan.left_out.iter().map(|(name, why)| format!("{name} was left out: {why}")));
    lines.extend(plan.cautions());
    lines.extend(show::remarks(results));
    html! {
        @if !lines.is_empty() {
            div.caution { p { b { "Read with care" } } ul { @for line in &lines { li { (line) } } } }
        }
    }
}

/// A ratio with its interval and its word.
pub(super) fn ratio(cell: Option<&Cell>, is_base: bool) -> Markup {
    html! {
        @match cell {
            None => td.invalid { "NA" },
            Some(_) if is_base => td { "1" },
            Some(Cell { invalid: Some(why), .. }) => td.invalid title=(why) { "invalid" small { "see below" } },
            Some(Cell { verdict: None, .. }) => td.invalid { "NA" },
            Some(Cell { verdict: Some(verdict), .. }) => {
                // One pair is hatched, whatever it says.
                @let class = if verdict.pairs == 1 { format!("single {}", verdict.word.word()) } else { verdict.word.word().to_string() };
                td class=(class) title=(explained(verdict)) {
                    (format!("{:.2} {}", verdict.ratio, verdict.word.sign()))
                    @if let (Some(low), Some(high)) = (verdict.low, verdict.high) {
                        small { (interval(low, high)) " (" (verdict.pairs) ")" }
                    }
                }
            }
        }
    }
}

/// An interval as text; a limit that is far out is only said to be.
fn interval(low: f64, high: f64) -> String {
    let end = |value: f64| match value {
        v if v < 0.005 => "<0.01".to_string(),
        v if v >= 99.5 => ">99".to_string(),
        v => format!("{v:.2}"),
    };
    format!("{}..{}", end(low), end(high))
}

fn explained(verdict: &Verdict) -> String {
    let why = if verdict.why.is_empty() { String::new() } else { format!(": {}", verdict.why) };
    format!("{}{why}; {} pairs", verdict.word.word(), verdict.pairs)
}

pub(super) fn head(results: &Results, first: &str) -> Markup {
    html! { thead { tr { th { (first) } @for name in results.labels() { th { (page::breakable(&name)) } } } } }
}

/// Ratios of throughput.
pub(super) fn relative(results: &Results, base: usize, table: &Table) -> Markup {
    let invalid: Vec<String> = results
        .steps
        .iter()
        .flat_map(|step| (0..results.labels().len()).map(move |target| (step, target)))
        .filter_map(|(step, target)| {
            Some(format!("{step}, {}: {}", results.labels()[target], results.invalid(step, target)?))
        })
        .collect();
    html! {
        div.scroll { table {
            (head(results, "step"))
            tbody {
                @for line in groups::sections(results).iter().flat_map(groups::Section::lines) {
                    @match line {
                        Line::Title(title) => (step_row(results, title)),
                        Line::Step(step) => tr {
                            td { (page::breakable_step(&results.steps[step])) }
                            @for (target, cell) in table[step].iter().enumerate() { (ratio(cell.as_ref(), target == base)) }
                        },
                    }
                }
                (offset_row(results, base))
            }
        } }
        @if !invalid.is_empty() {
            p.small { "Invalid:" } ul.small { @for line in &invalid { li { (line) } } }
        }
    }
}

/// The difference that all steps of a session share: where the table has steps enough to tell.
fn offset_row(results: &Results, base: usize) -> Markup {
    let offset = results.offset(base);
    html! {
        @if offset.iter().any(Option::is_some) {
            tr {
                td title="what the steps of a session have in common" { i { "all steps" } }
                @for (target, verdict) in offset.iter().enumerate() {
                    @match verdict {
                        Some(verdict) => (ratio(Some(&Cell::of(*verdict)), false)),
                        None if target == base => td { "1" },
                        None => td.invalid { "NA" },
                    }
                }
            }
        }
    }
}

/// The meaning of signs and intervals; with `links` to the pages that say more.
pub(super) fn legend(results: &Results, base: usize, links: bool) -> Markup {
    let plan = &results.experiment.plan;
    // Without the digits that a share of hundredths is off by.
    let percent = (plan.delta * 1e8).round() / 1e6;
    html! {
        p.small {
            "Ratios are geometric means over pairs: a target and the base in the same block. Below them the 95 % interval and the "
            "number of pairs; a cell of one pair is hatched. "
            b { "+" } " improvement, " b { "-" } " regression: by more than " (percent) " %; " b { "=" } " same: within "
            (percent) " %; " b { "?" } " unknown: not decided, as where more blocks are needed, pairs contradict each other, a step was not steady, other "
            "programs worked beside one of the two, or so many cells have one such by chance. "
            "One pair alone is judged only where earlier experiments here say how far equals scatter. "
            @if let Some((calls, cells)) = results.false_calls() {
                "The base against itself: "
                @if links { a href="aa.html" { (calls) " of " (cells) " cells called" } }
                @else { (calls) " of " (cells) " cells called" }
                ". "
            }
            @if links { a href=(format!("csv/relative-{}.csv", base + 1)) { "CSV" } }
        }
    }
}

/// A clause as a sentence of its own. Names of metrics stay as they are.
fn as_sentence(clause: &str) -> String {
    let first = clause.split(' ').next().unwrap_or_default();
    let begin = match first.chars().all(char::is_alphabetic) {
        true => clause[..1].to_uppercase() + &clause[1..],
        false => clause.to_string(),
    };
    format!("{}.", begin.trim_end_matches('.'))
}

/// For each cell that was called, which costs moved with it, or that none did.
pub(super) fn explanations(results: &Results, base: usize, table: &Table, here: &str) -> Markup {
    // On the page that stands alone the samples are further down.
    let cpu = if here == page::SINGLE { "" } else { super::cpu::FILE };
    let targets = &results.experiment.plan.targets;
    let mut found = Vec::new();
    for (step, cells) in results.steps.iter().zip(table) {
        for (target, cell) in cells.iter().enumerate() {
            let called =
                cell.as_ref().and_then(|cell| cell.verdict).is_some_and(|verdict| verdict.word.is_call());
            if called
                && targets[target].twin_of.is_none()
                && let Some(explanation) = results.explain(step, target, base)
            {
                // Of a server: what it said of itself.
                let said = [
                    plans::sentence(results, step, target, base),
                    waits::sentence(results, step, target, base),
                ];
                let clauses = std::iter::once(explanation.sentence).chain(said.into_iter().flatten());
                let all: Vec<String> = clauses.map(|clause| as_sentence(&clause)).collect();
                let samples = super::cpu::anchor(results, step, target);
                found.push((step, results.labels().swap_remove(target), all.join(" "), samples));
            }
        }
    }
    html! {
        @if !found.is_empty() {
            h2 { "Costs beside the differences" }
            p.small {
                "For each ratio that was called: the costs per operation whose change takes most of the time there is to explain, or that nothing that was "
                "counted explains it. Costs that changed together are a hint, not a proof."
            }
            div.scroll { table.wrap {
                thead { tr { th { "step" } th { "target" } th { "finding" } } }
                tbody { @for (step, target, sentence, samples) in &found { tr {
                    td { (step) } td { (target) }
                    td {
                        (sentence)
                        @if let Some(at) = samples { " " a href=(format!("{cpu}#{at}")) { "Where its processor time goes" } "." }
                    }
                } } }
            } }
        }
    }
}

/// Ratios over versions, a chart for each step, if there are versions to speak of.
pub(super) fn versions(results: &Results, base: usize, table: &Table) -> Markup {
    let plan = &results.experiment.plan;
    let of_line = |line: &str| {
        let own = plan.targets.iter().filter(|target| target.line == line && target.twin_of.is_none());
        let mut versions: Vec<String> = own.filter_map(|target| target.version.clone()).collect();
        versions.sort_by_key(|version| version_key(version));
        versions.dedup();
        versions
    };
    let mut all: Vec<&str> = Vec::new();
    for target in plan.targets.iter().filter(|target| target.version.is_some()) {
        if !all.contains(&target.line.as_str()) {
            all.push(&target.line);
        }
    }
    // One version is no line.
    let (lines, alone): (Vec<&str>, Vec<&str>) = all.into_iter().partition(|line| of_line(line).len() > 1);
    let mut versions: Vec<String> = lines.iter().flat_map(|line| of_line(line)).collect();
    versions.sort_by_key(|version| version_key(version));
    versions.dedup();
    if versions.len() < 3 {
        return html! {};
    }
    let key: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let point = |step: usize, line: &str, version: &str| {
        let target = plan.targets.iter().position(|target| {
            target.line == line && target.version.as_deref() == Some(version) && target.twin_of.is_none()
        })?;
        if target == base {
            let one =
                Verdict { ratio: 1.0, low: None, high: None, pairs: 0, q: None, word: Word::Same, why: "" };
            return Some(one);
        }
        table[step][target].as_ref()?.verdict
    };
    html! {
        h2 { "Over versions" }
        p.small {
            "Throughput relative to " (results.labels()[base]) "; axes do not start at 0. "
            (charts::line_key(&key))
            @if !alone.is_empty() { " Of one version, so in the tables alone: " (alone.join(", ")) "." }
        }
        div.grid {
            @for (number, step) in results.steps.iter().enumerate() {
                @let curves = lines.iter().map(|line| {
                    let points = versions.iter().map(|version| point(number, line, version)).collect();
                    (line.to_string(), points)
                }).collect::<Vec<charts::VersionLine>>();
                (charts::of_versions(step, &versions, &curves))
            }
        }
    }
}

/// Numbers of a version, for sorting: 9.10 comes after 9.9.
pub(crate) fn version_key(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// Medians of throughput.
pub(super) fn absolute(results: &Results) -> Markup {
    html! {
        p.small { "Operations per second, unless the row has another unit; medians over blocks." }
        div.scroll { table {
            (head(results, "step"))
            tbody {
                @for line in groups::sections(results).iter().flat_map(groups::Section::lines) {
                    @match line {
                        Line::Title(title) => (step_row(results, title)),
                        Line::Step(step) => (absolute_row(results, &results.steps[step])),
                    }
                }
            }
        } }
    }
}

fn absolute_row(results: &Results, step: &str) -> Markup {
    let metric = results.throughput(step).0;
    html! { tr {
        td { (page::breakable_step(&results.with_throughput_unit(step))) }
        @for target in 0..results.labels().len() {
            td { (results.median(step, target, metric).map_or("NA".to_string(), amount)) }
        }
    } }
}

/// Percentiles and stalls.
pub(super) fn tails(results: &Results) -> Markup {
    const NAMES: [&str; 8] =
        ["p50", "p99", "p99.9", "p99.99", "pmax", "longest_op", "longest_gap", "stalled_seconds"];
    html! {
        p.small {
            "Service times of a closed loop, medians over blocks: how long operations took, not how long they would have "
            "waited at a fixed rate of arrival. Exact to three digits. In the median second the longest operation took "
            "longest_op. The longest gap is the longest time without a "
            "completion in any one thread; seconds are stalled that did less than a tenth of the usual."
        }
        (by_step(results, &NAMES, &|target, step, name| {
            html! { td { (results.median(step, target, name).map_or("NA".to_string(), amount)) } }
        }))
    }
}

/// A row that says what the rows below it are of: a step, or a group of steps.
pub(super) fn step_row(results: &Results, title: &str) -> Markup {
    html! { tr { th scope="rowgroup" colspan=(results.labels().len() + 1) { (title) } } }
}

/// The cell of a target, step and metric.
type CellOf<'a> = &'a dyn Fn(usize, &str, &str) -> Markup;

/// Metrics in columns, a block of rows for each step, a row for each target: the form of the posts. Metrics that
/// nobody has are left out.
fn by_step(results: &Results, names: &[&str], cell: CellOf<'_>) -> Markup {
    let targets = results.labels();
    let known = |name: &&&str| results.measured.iter().any(|row| row.metrics.contains_key(**name));
    let names: Vec<&str> = names.iter().filter(known).copied().collect();
    html! {
        div.scroll { table {
            thead { tr { th { "target" } @for name in &names { th { (with_unit(name)) } } } }
            @for step in &results.steps {
                tbody {
                    tr { th scope="rowgroup" colspan=(names.len() + 1) { (step) } }
                    @for (target, own) in targets.iter().enumerate() {
                        @if results.rows(step, target).next().is_some() {
                            tr { td { (own) } @for name in &names { (cell(target, step, name)) } }
                        }
                    }
                }
            }
        } }
    }
}

/// A metric's name with its unit; plain numbers have none.
pub(super) fn with_unit(name: &str) -> String {
    match metric(name).map_or("", |row| row.unit) {
        "" | "1" => name.to_string(),
        unit => format!("{name} [{unit}]"),
    }
}

/// Metrics of what an operation costs.
pub(super) const HARDWARE: [&str; 24] = [
    "cpu_us/o",
    "proc_cpu_us/o",
    "load_cpu_us/o",
    "back_cpu_us/o",
    "server_cpu_us/o",
    "client_cpu_us/o",
    "redo_KB/o",
    "sync/o",
    "cs/o",
    "vcs/o",
    "ivcs/o",
    "server_vcs/o",
    "server_ivcs/o",
    "r/o",
    "rKB/o",
    "w/o",
    "wKB/o",
    "fault/o",
    "write_amp",
    "rss",
    "rss_max",
    "delete_search",
    "dbgb1",
    "dbgb2",
];

/// Those of `names` that any measurement has: engines have no server, and servers no write amplification.
fn measured<'n>(results: &Results, names: &[&'n str]) -> Vec<&'n str> {
    let any = |name: &&&str| results.measured.iter().any(|row| row.metrics.contains_key(**name));
    names.iter().filter(any).copied().collect()
}

/// Costs per operation: medians, and relative to the base.
pub(super) fn hardware(results: &Results, base: usize) -> Markup {
    html! {
        p.small {
            "Totals over the step divided by its operations, medians over blocks; below, the ratio to "
            (results.labels()[base]) ". A cost that rose with a fall of throughput is where to look first."
        }
        (by_step(results, &measured(results, &HARDWARE), &|target, step, name| {
            cost(results.median(step, target, name), results.ratio(step, target, base, name))
        }))
    }
}

/// A value and its ratio to the base.
pub(super) fn cost(value: Option<f64>, relative: Option<f64>) -> Markup {
    html! {
        td { (value.map_or("NA".to_string(), amount)) @if let Some(ratio) = relative { small { (format!("x {ratio:.2}")) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_has_no_digits_that_the_margin_does_not_have() {
        let (_temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let mut results = Results::load(&store, 1).unwrap();
        let mut said = |delta: f64| {
            results.experiment.plan.delta = delta;
            legend(&results, 0, false).into_string()
        };
        assert!(
            said(0.07).contains("by more than 7 %") && said(0.025).contains("within 2.5 %"),
            "{}",
            said(0.07)
        );
        assert!(!said(0.02).contains("never a verdict"), "one pair may have one");
    }

    #[test]
    fn clauses_become_sentences_and_metrics_keep_their_names() {
        assert_eq!(
            as_sentence("its connections were seen in Commit"),
            "Its connections were seen in Commit."
        );
        assert_eq!(as_sentence("ops_sec 0.66x: more work."), "ops_sec 0.66x: more work.");
    }
}

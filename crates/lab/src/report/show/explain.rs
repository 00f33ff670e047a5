//! One step of one target against another: the counters that moved with its throughput, every metric, processor time,
//! of servers plans and waits, options.

use crate::analysis::options_diff::{Difference, differences};
use crate::analysis::results::Results;
use crate::analysis::{cpu, plans, waits};
use crate::probe::derive::METRICS;
use crate::report::text::{align, amount, paragraph, uncut};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Which costs moved with a step's throughput, for programs.
pub fn explain_json(results: &Results, step: &str, target: usize, base: usize) -> String {
    let metrics = |of: usize| -> BTreeMap<&str, f64> {
        let rows = METRICS.iter();
        rows.filter_map(|row| Some((row.name, results.median(step, of, row.name)?))).collect()
    };
    let names = results.target_names();
    let all = serde_json::json!({
        "step": step,
        "target": names[target],
        "base": names[base],
        "explanation": results.explain(step, target, base),
        "medians": { "target": metrics(target), "base": metrics(base) },
        "plans": plans::differing(results, step, target, base),
        "waits": waits::beside(results, step, target, base),
        "options": differences(results, base, target),
    });
    serde_json::to_string_pretty(&all).expect("plain data serialises")
}

/// Which costs moved with a step's throughput, for people.
pub fn explain(results: &Results, step: &str, target: usize, base: usize) -> String {
    let names = results.labels();
    let mut text = paragraph("", &format!("{step}: {} against {}", names[target], names[base]), 2);
    match results.explain(step, target, base) {
        Some(explanation) => text.push_str(&paragraph("", &explanation.sentence, 0)),
        None => text.push_str("fewer than two blocks have both: nothing can be said of what moved\n"),
    }
    text.push('\n');
    let mut rows = vec![["metric", "base", "target", "ratio", "unit"].map(str::to_string).to_vec()];
    for row in METRICS {
        let (Some(from), Some(to)) =
            (results.median(step, base, row.name), results.median(step, target, row.name))
        else {
            continue;
        };
        let ratio = match results.ratio(step, target, base, row.name) {
            None => "-".to_string(),
            Some(small) if small < 0.095 => format!("{small:.4}"),
            Some(ratio) => format!("{ratio:.2}"),
        };
        let unit = if row.unit == "1" { String::new() } else { row.unit.to_string() };
        rows.push(vec![row.name.to_string(), amount(from), amount(to), ratio, unit]);
    }
    // Units are text and read from the left.
    rows.iter_mut().for_each(|row| row[4] = format!("{:<5}", row[4]));
    text.push_str(&align(&rows));
    let time = cpu::text(results, step, &[base, target]);
    if !time.is_empty() {
        let _ = write!(text, "\n{time}");
        let command = format!("outcrop lab report {} -o DIR", results.experiment.id);
        text.push_str(&paragraph(
            "",
            &format!("flame graphs, and how they differ: {command}, DIR/cpu.html"),
            0,
        ));
    }
    text.push_str(&server(results, step, target, base));
    text.push_str(&options(&differences(results, base, target)));
    text
}

/// So many options that only one of two has are listed: an engine of its own in a server has two hundred.
const ALONE: usize = 12;

/// Options that differ, those that only one has counted where they are many.
fn options(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let (both, alone): (Vec<_>, Vec<_>) = differences.iter().partition(|difference| difference.is_of_both());
    let (base, target): (Vec<_>, Vec<_>) =
        alone.into_iter().partition(|difference| difference.base.is_some());
    let mut lines: Vec<String> = both.iter().map(ToString::to_string).collect();
    for (whose, alone) in [("base", base), ("target", target)] {
        match alone[..] {
            [first, .., last] if alone.len() > ALONE => lines.push(format!(
                "{} options that only the {whose} has, {} to {}: --json and the page Options have them",
                alone.len(),
                first.name,
                last.name
            )),
            _ => lines.extend(alone.iter().map(ToString::to_string)),
        }
    }
    let lines: String = lines.iter().map(|line| uncut("  ", line, 6)).collect();
    format!("\noptions that differ\n{lines}")
}

/// The information that servers gave meanwhile: statements that the two execute otherwise, and what their connections waited for.
/// Nothing of engines.
fn server(results: &Results, step: &str, target: usize, base: usize) -> String {
    let mut text = String::new();
    let others = plans::differing(results, step, target, base);
    if !others.is_empty() {
        text.push_str("\nstatements with another plan\n");
        for plans::OtherPlan { statement, base, target } in others {
            text.push_str(&paragraph("  ", &statement, 4));
            text.push_str(&paragraph("    base    ", &base, 12));
            text.push_str(&paragraph("    target  ", &target, 12));
        }
    }
    let waits = waits::beside(results, step, target, base);
    if !waits.is_empty() {
        let mut rows = vec![["connections were seen in", "base", "target"].map(str::to_string).to_vec()];
        for wait in waits {
            let share = |share: f64| format!("{:.0} %", share * 100.0);
            rows.push(vec![wait.what, share(wait.base), share(wait.target)]);
        }
        let _ = write!(text, "\n{}", align(&rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_only_one_has_are_counted_where_they_are_many() {
        let option = |name: &str, base: Option<&str>, target: Option<&str>| Difference {
            name: name.to_string(),
            base: base.map(str::to_string),
            target: target.map(str::to_string),
        };
        let mut all = vec![option("a", Some("1"), Some("2")), option("b", Some("3"), None)];
        all.extend((10..50).map(|number| option(&format!("c{number}"), None, Some("x"))));
        let text = options(&all);
        let lines: Vec<&str> = text.trim().lines().collect();
        assert_eq!(
            lines[..3],
            ["options that differ", "  a: 1 -> 2", "  b: 3, an option that only the base has"]
        );
        assert_eq!(
            lines[3],
            "  40 options that only the target has, c10 to c49: --json and the page Options"
        );
        assert_eq!((lines[4], lines.len()), ("      have them", 5));
        assert_eq!(options(&all[..3]).lines().last(), Some("  c10: x, an option that only the target has"));
        assert_eq!(options(&[]), "");
    }
}

//! The first page of a comparison: what a reader needs, on one screen of 80 columns and 40 lines.
//!
//! ```text
//! what was compared          worse, better, unknown, the same: per target, the largest difference first
//! stalls, tails, A/A         what the table does not show
//! the table of ratios        as many targets as there is room for
//! ```
//! Everything is in the full comparison too, with the same numbers.

use crate::analysis::judge::{Verdict, Word};
use crate::analysis::results::Results;
use crate::analysis::{stalls, tails};
use crate::report::text::{WIDTH, cut, paragraph, thousands};
use std::fmt::Write;

/// Lines of a screen.
pub const LINES: usize = 40;

/// The first page; at most `LINES` lines less `below`, which the caller adds.
pub fn first_page(results: &Results, base: usize, below: usize) -> String {
    let plan = &results.experiment.plan;
    let mut text = cut(&plan.title, WIDTH) + "\n";
    let sizes = format!(
        "{} blocks, {} keys, operations per second",
        results.blocks(),
        thousands(plan.sizes.keys as f64)
    );
    let _ = writeln!(text, "{}", cut(&format!("relative to {}; {sizes}", results.labels()[base]), WIDTH));
    text.push_str(&findings(results, base));
    let table = super::ratios(results, base, "ops_sec");
    let mut left = 0;
    for (index, part) in table.iter().enumerate() {
        let more = usize::from(index + 1 < table.len());
        let lines = text.lines().count() + 1 + part.lines().count() + super::LEGEND.lines().count() + more;
        if left > 0 || lines + below > LINES {
            left += 1;
            continue;
        }
        let _ = write!(text, "\n{part}");
    }
    text.push_str(super::LEGEND);
    if left > 0 {
        let _ = writeln!(text, "{left} more tables: outcrop lab compare {}", results.experiment.id);
    }
    text
}

/// The result of each target, of stalls, of tails and of the base against itself, a line each.
fn findings(results: &Results, base: usize) -> String {
    let plan = &results.experiment.plan;
    let labels = results.labels();
    let real = |target: &usize| *target != base && plan.targets[*target].twin_of.is_none();
    let real: Vec<usize> = (0..labels.len()).filter(real).collect();
    let table = results.table(base, "ops_sec");
    let mut lines = String::new();
    for target in &real {
        let verdicts: Vec<(&String, Verdict)> = results
            .steps
            .iter()
            .zip(&table)
            .filter_map(|(step, cells)| Some((step, cells[*target].as_ref()?.verdict?)))
            .collect();
        let name = if real.len() > 1 { format!("{} ", labels[*target]) } else { String::new() };
        for (word, said) in [
            (Word::Regression, "slower"),
            (Word::Improvement, "faster"),
            (Word::Unknown, "unknown"),
            (Word::Same, "the same"),
        ] {
            // Of several targets only what was called.
            if real.len() == 1 || word.is_call() {
                lines.push_str(&line(&format!("{name}{said}"), &of_word(&verdicts, word)));
            }
        }
    }
    let waits: Vec<String> = stalls::table(results, base)
        .iter()
        .flat_map(|row| real.iter().map(move |target| (row, *target)))
        .filter(|(row, target)| row.cells[*target].and_then(|cell| cell.word).is_some_and(Word::is_call))
        .map(|(row, target)| format!("{} {}", row.step, sign(row.cells[target].and_then(|cell| cell.word))))
        .collect();
    let longer: Vec<String> = tails::table(results, base)
        .iter()
        .flat_map(|row| real.iter().map(move |target| (row, *target)))
        .filter_map(|(row, target)| Some((row, row.cells[target].filter(|verdict| verdict.word.is_call())?)))
        .map(|(row, verdict)| format!("{} {} {:.2}", row.step, row.measure, verdict.ratio))
        .collect();
    lines.push_str(&line("stalls", &waits));
    lines.push_str(&line("tails", &longer));
    if let Some((called, cells)) = results.false_calls() {
        lines.push_str(&line("A/A", &[format!("the base against itself: {called} of {cells} steps called")]));
    }
    lines
}

fn sign(word: Option<Word>) -> char {
    word.map_or(' ', Word::sign)
}

/// Steps of one verdict with their ratios, the largest difference first.
fn of_word(verdicts: &[(&String, Verdict)], word: Word) -> Vec<String> {
    let mut own: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.word == word).collect();
    own.sort_by(|(_, a), (_, b)| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    own.into_iter().map(|(step, verdict)| format!("{step} {:.2}", verdict.ratio)).collect()
}

/// A name and as much of a list as two lines hold; nothing of an empty one.
fn line(name: &str, items: &[String]) -> String {
    const MOST: usize = 2;
    let mut shown = items.len();
    loop {
        if shown == 0 {
            return String::new();
        }
        let rest =
            if shown < items.len() { format!(", {} more", items.len() - shown) } else { String::new() };
        let text = paragraph(&format!("{name:<8} "), &format!("{}{rest}", items[..shown].join(", ")), 9);
        if text.lines().count() <= MOST {
            return text;
        }
        shown -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, fake_record};

    const STEPS: [&str; 8] = [
        "fillseq",
        "readrandom",
        "fwdrange",
        "revrange",
        "readwhilewriting",
        "fwdrangewhilewriting",
        "revrangewhilewriting",
        "overwriteandwait",
    ];

    #[test]
    fn the_first_page_is_a_screen_with_what_got_worse_first() {
        let mut noise = Noise::new(4);
        let (_temp, store) = fake_record(6, &STEPS, 4, &mut |session| {
            let factor = match (session.target, session.step) {
                (1, "readrandom") => 0.8,
                (1, "fwdrange") => 0.6,
                (1, "fillseq") => 1.5,
                _ => 1.0,
            };
            vec![("ops_sec", noise.around(1e5 * factor, 0.002)), ("stalled_seconds", 0.0)]
        });
        let results = Results::load(&store, 1).unwrap();
        let text = first_page(&results, 0, 4);
        assert!(text.lines().count() <= LINES - 4, "{} lines\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not in\n{text}"));
        assert!(at("slower   fwdrange 0.60, readrandom 0.80") < at("faster   fillseq 1.50"), "{text}");
        assert!(at("A/A      the base against itself: 0 of 8 steps called") < at("step  "), "{text}");
        assert!(at("faster") < at("the same") && at("the same") < at("step  "), "{text}");
    }
}

//! The answer of versions by builds in words: the effect of each build in each version, and whether it is another one in the newest.
//!
//! ```text
//! clang   In 6.28.2 more QPS than gcc on 2 of 7 (readrandom 1.10X, ..), the same on 5 of 7; geometric mean 1.04X.
//!         From 6.28.2 to 11.8.1 it gained on 1 of 7 (readrandom 1.06X), lost on 0, ..
//! ```
//! Whether an effect changed is judged as every ratio is: by the ratios of the two effects, block by block, all builds and steps
//! corrected together.

use super::builds::Grid;
use crate::analysis::judge::{self, Better, Question, Verdict, Word};
use crate::analysis::results::{Cell, Results};
use maud::{Markup, html};

/// Steps that a sentence names of those that share a verdict.
const NAMED: usize = 3;

/// Ratios of each version to its first build: for each version of the grid, if it has that build.
pub(super) type Own = [Option<Vec<Vec<Option<Cell>>>>];

/// One sentence or two for each build but the first.
pub(super) fn sentences(results: &Results, grid: &Grid, own: &Own) -> Markup {
    let changes = changes(results, grid);
    html! {
        ul {
            @for (line, name) in grid.lines.iter().enumerate().skip(1) {
                li {
                    b { (name) } " "
                    (effects(results, grid, own, line).join(" "))
                    @if let Some(change) = changes.iter().find(|change| change.line == line) { " " (change.sentence(grid)) }
                }
            }
        }
    }
}

/// A sentence for each version that has the build and the first one.
fn effects(results: &Results, grid: &Grid, own: &Own, line: usize) -> Vec<String> {
    let of_version = |version: usize| {
        let (target, table) = (grid.targets[version][line]?, own[version].as_ref()?);
        let verdicts: Vec<(&str, Verdict)> = results
            .steps
            .iter()
            .zip(table)
            .filter_map(|(step, cells)| Some((step.as_str(), cells[target].as_ref()?.verdict?)))
            .collect();
        let mean =
            verdicts.iter().map(|(_, verdict)| verdict.ratio.ln()).sum::<f64>() / verdicts.len() as f64;
        let first = &grid.lines[0];
        let words = [
            (Word::Improvement, format!("more QPS than {first} on")),
            (Word::Regression, format!("less QPS than {first} on")),
            (Word::Same, "the same on".to_string()),
            (Word::Unknown, "not decided on".to_string()),
        ];
        let said = listed(&verdicts, &words);
        (!verdicts.is_empty())
            .then(|| format!("In {}: {said}; geometric mean {:.2}X.", grid.versions[version], mean.exp()))
    };
    (0..grid.versions.len()).filter_map(of_version).collect()
}

/// `more on 2 of 7 (a 1.10X, b 1.05X); the same on 5 of 7`: the parts that have any step, the largest ratios first.
fn listed(verdicts: &[(&str, Verdict)], words: &[(Word, String)]) -> String {
    let part = |(word, said): &(Word, String)| {
        let mut own: Vec<_> = verdicts.iter().filter(|(_, verdict)| verdict.word == *word).collect();
        own.sort_by(|(_, a), (_, b)| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
        let mut named: Vec<String> = own
            .iter()
            .take(if *word == Word::Same { 0 } else { NAMED })
            .map(|(step, verdict)| format!("{step} {:.2}X", verdict.ratio))
            .collect();
        if !named.is_empty() && own.len() > NAMED {
            named.push(format!("and {} more", own.len() - NAMED));
        }
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        (!own.is_empty()).then(|| format!("{said} {} of {}{named}", own.len(), verdicts.len()))
    };
    words.iter().filter_map(part).collect::<Vec<_>>().join("; ")
}

/// How the effect of a build differs between the oldest and the newest version that have it.
struct Change<'a> {
    line: usize,
    versions: [usize; 2],
    verdicts: Vec<(&'a str, Verdict)>,
}

impl Change<'_> {
    fn sentence(&self, grid: &Grid) -> String {
        let [old, new] = self.versions.map(|version| &grid.versions[version]);
        let words = [
            (Word::Improvement, "larger on"),
            (Word::Regression, "smaller on"),
            (Word::Same, "the same on"),
            (Word::Unknown, "not decided on"),
        ];
        let words = words.map(|(word, said)| (word, said.to_string()));
        format!("Its effect in {new} over that in {old}: {}.", listed(&self.verdicts, &words))
    }
}

/// The changes of all builds, judged together.
fn changes<'a>(results: &'a Results, grid: &Grid) -> Vec<Change<'a>> {
    let (mut questions, mut asked, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for line in 1..grid.lines.len() {
        let pair = |version: usize| Some([grid.targets[version][line]?, grid.targets[version][0]?]);
        let mut have = (0..grid.versions.len()).filter(|version| pair(*version).is_some());
        let (Some(old), Some(new)) = (have.next(), have.next_back()) else { continue };
        let [before, after] = [old, new].map(|version| pair(version).expect("chosen for having both"));
        for step in &results.steps {
            let is_valid = |target: &usize| results.invalid(step, *target).is_none();
            if before.iter().chain(&after).all(is_valid) {
                asked.push((changes.len(), step.as_str()));
                questions.push(question(results, step, before, after));
            }
        }
        changes.push(Change { line, versions: [old, new], verdicts: Vec::new() });
    }
    for ((change, step), verdict) in asked.into_iter().zip(judge::judge("effect", Better::Higher, &questions))
    {
        changes[change].verdicts.extend(verdict.map(|verdict| (step, verdict)));
    }
    changes.retain(|change| !change.verdicts.is_empty());
    changes
}

/// Whether the ratio of the targets `after` differs from that of `before`, block by block.
fn question(results: &Results, step: &str, before: [usize; 2], after: [usize; 2]) -> Question {
    let effect = |[target, base]: [usize; 2], block: i64| {
        let value = |target: usize| results.values(step, target, "ops_sec").get(&block).copied();
        Some((value(target)?, value(base)?))
            .filter(|(own, base)| *own > 0.0 && *base > 0.0)
            .map(|(own, base)| own / base)
    };
    let blocks = 0..results.blocks() as i64;
    let name = &results.experiment.plan.targets[after[0]].name;
    Question {
        name: (step.to_string(), name.clone()),
        pairs: blocks.filter_map(|block| Some((effect(after, block)?, effect(before, block)?))).collect(),
        control: false,
        doubt: [before, after].iter().find_map(|[target, base]| results.doubts(step, *base)[*target]),
        delta: results.experiment.plan.delta,
        noise: None,
    }
}

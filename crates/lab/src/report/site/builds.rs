//! Versions by builds: the effect of a compiler, an allocator or a configuration in each version.
//!
//! ```text
//! version   gcc  clang  clang-lto   relative to gcc of the same version:  clang  clang-lto
//! ```
//! Columns are what targets are but for their version; the first set is relative to the base, the second to the first column's
//! target of the same version. Above them stands the answer in words: `build_words.rs`.

use super::sections::{ratio, version_key};
use super::{Table, build_words, page};
use crate::analysis::results::Results;
use maud::{Markup, html};

/// Rows and columns of the tables: targets by version and line.
pub(super) struct Grid {
    /// The versions, in order.
    pub versions: Vec<String>,
    /// Names of what the targets of a line share; the others are compared with the first.
    pub lines: Vec<String>,
    /// For each version, for each line.
    pub targets: Vec<Vec<Option<usize>>>,
}

impl Grid {
    /// `None` where there is nothing to compare: fewer than two lines or two versions of them.
    fn of(results: &Results) -> Option<Grid> {
        let targets = &results.experiment.plan.targets;
        let named = || targets.iter().filter(|target| target.version.is_some() && target.twin_of.is_none());
        let mut lines: Vec<String> = Vec::new();
        for target in named() {
            if !lines.contains(&target.line) {
                lines.push(target.line.clone());
            }
        }
        let mut versions: Vec<String> = named().filter_map(|target| target.version.clone()).collect();
        versions.sort_by_key(|version| version_key(version));
        versions.dedup();
        let place = |version: &String, line: &String| {
            targets.iter().position(|target| {
                target.twin_of.is_none() && target.version.as_ref() == Some(version) && target.line == *line
            })
        };
        let row = |version: &String| lines.iter().map(|line| place(version, line)).collect::<Vec<_>>();
        let targets: Vec<_> = versions.iter().map(row).collect();
        let pairs = targets.iter().filter(|row| row.iter().flatten().count() > 1).count();
        (lines.len() > 1 && pairs > 1).then_some(Grid { versions, lines, targets })
    }
}

/// A table for each step, if there are builds to compare.
pub(super) fn tables(results: &Results, base: usize, table: &Table) -> Markup {
    let Some(grid) = Grid::of(results) else { return html! {} };
    // Relative to the first line's target of each version; what a version lacks of it has no second set.
    let own: Vec<_> =
        grid.targets.iter().map(|row| row[0].map(|first| results.table(first, "ops_sec"))).collect();
    let first = &grid.lines[0];
    html! {
        h2 #builds { "Versions by builds" }
        p.small {
            "Throughput relative to " (results.labels()[base]) ", and then to " (first) " of the same version: what the build is "
            "worth in each. Signs and intervals as above."
        }
        (build_words::sentences(results, &grid, &own))
        @for (step, name) in results.steps.iter().enumerate() {
            h3 { (name) }
            div.scroll { table {
                thead { tr {
                    th { "version" }
                    @for line in &grid.lines { th { (page::breakable(line)) } }
                    @for line in &grid.lines[1..] { th { (page::breakable(line)) " / " (page::breakable(first)) } }
                } }
                tbody {
                    @for (version, (row, own)) in grid.versions.iter().zip(grid.targets.iter().zip(&own)) {
                        tr {
                            td { (version) }
                            @for target in row { (cell(*target, base, &table[step])) }
                            @for target in &row[1..] {
                                @match own { Some(own) => (cell(*target, usize::MAX, &own[step])), None => td.invalid { "NA" } }
                            }
                        }
                    }
                }
            } }
        }
    }
}

fn cell(target: Option<usize>, base: usize, cells: &[Option<crate::analysis::results::Cell>]) -> Markup {
    match target {
        Some(target) => ratio(cells[target].as_ref(), target == base),
        None => html! { td.invalid { "NA" } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Noise, fake_record};

    /// Two builds of two versions; gcc has done 1000 operations a second, clang 1200.
    fn of_builds(steps: &[&str]) -> Results {
        let mut noise = Noise::new(3);
        let (_temp, store) = fake_record(6, steps, 3, &mut |session| {
            vec![("ops_sec", noise.around(if session.target == 1 { 1200.0 } else { 1000.0 }, 0.002))]
        });
        let mut results = Results::load(&store, 1).unwrap();
        assert!(Grid::of(&results).is_none(), "targets without versions");
        // Each of the two measured stands for two of them.
        let plan = &mut results.experiment.plan;
        plan.targets.truncate(2);
        plan.targets.extend(plan.targets.clone());
        let named = [("9.10", "gcc"), ("9.10", "clang"), ("9.9", "gcc"), ("9.9", "clang")];
        for (target, (version, line)) in plan.targets.iter_mut().zip(named) {
            (target.version, target.line) = (Some(version.to_string()), line.to_string());
        }
        results.measured.retain(|row| row.target < 2);
        let mut twice = results.measured.clone();
        twice.iter_mut().for_each(|row| row.target += 2);
        results.measured.extend(twice);
        results
    }

    #[test]
    fn a_build_is_compared_with_the_first_of_the_same_version() {
        let results = of_builds(&["fillseq"]);
        let grid = Grid::of(&results).unwrap();
        assert_eq!(
            (grid.versions.clone(), grid.lines.clone()),
            (vec!["9.9".into(), "9.10".into()], vec!["gcc".into(), "clang".into()])
        );
        assert_eq!(grid.targets, [[Some(2), Some(3)], [Some(0), Some(1)]]);
        let page = tables(&results, 0, &results.table(0, "ops_sec")).into_string();
        let words = "<b>clang</b> In 9.9: more QPS than gcc on 1 of 1 (fillseq 1.20X); geometric mean 1.20X. In 9.10: more QPS \
                     than gcc on 1 of 1 (fillseq 1.20X); geometric mean 1.20X. Its effect in 9.10 over that in 9.9: the \
                     same on 1 of 1.";
        assert!(page.contains(words), "{page}");
        let row = page.split("<td>9.9</td>").nth(1).unwrap().split("</tr>").next().unwrap();
        assert_eq!((row.matches("1.00 =").count(), row.matches("1.20 +").count()), (1, 2), "{row}");
    }

    #[test]
    fn an_effect_that_only_the_newest_version_has_is_said_to_be_larger_there() {
        let (mut noise, mut results) = (Noise::new(5), of_builds(&["fillseq", "readrandom"]));
        for row in &mut results.measured {
            let factor = match (row.target, row.name.as_str()) {
                // clang of the newer version, and of both.
                (1, "fillseq") => 1.2,
                (1 | 3, "readrandom") => 0.9,
                _ => 1.0,
            };
            row.metrics.insert("ops_sec".to_string(), noise.around(1000.0 * factor, 0.002));
        }
        let page = tables(&results, 0, &results.table(0, "ops_sec")).into_string();
        let words = page.split("<b>clang</b> ").nth(1).unwrap().split("</li>").next().unwrap();
        let sentences: Vec<&str> = words.split_inclusive(". ").collect();
        assert!(
            sentences[0]
                .starts_with("In 9.9: less QPS than gcc on 1 of 2 (readrandom 0.90X); the same on 1 of 2;"),
            "{words}"
        );
        assert!(
            sentences[1].starts_with("In 9.10: more QPS than gcc on 1 of 2 (fillseq 1.20X); less QPS"),
            "{words}"
        );
        assert!(
            sentences[2].contains("over that in 9.9: larger on 1 of 2 (fillseq 1.20X); the same on 1 of 2."),
            "{words}"
        );
    }
}

//! Versions by builds: the effect of a compiler, an allocator or a configuration in each version.
//!
//! ```text
//! version   gcc  clang  clang-lto   relative to gcc of the same version:  clang  clang-lto
//! ```
//! Columns are what targets are but for their version; the first set is relative to the base, the second to the first column's
//! target of the same version.

use super::sections::{ratio, version_key};
use super::{Table, page};
use crate::analysis::results::Results;
use maud::{Markup, html};

/// Rows and columns of the tables: targets by version and line.
struct Grid {
    versions: Vec<String>,
    lines: Vec<String>,
    /// For each version, for each line.
    targets: Vec<Vec<Option<usize>>>,
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

    #[test]
    fn a_build_is_compared_with_the_first_of_the_same_version() {
        let mut noise = Noise::new(3);
        // Target 1 is 1.2 times as fast as target 0.
        let (_temp, store) = fake_record(6, &["fillseq"], 3, &mut |session| {
            vec![("ops_sec", noise.around(if session.target == 1 { 1200.0 } else { 1000.0 }, 0.002))]
        });
        let mut results = Results::load(&store, 1).unwrap();
        assert!(Grid::of(&results).is_none(), "targets without versions");
        // As if there were two builds of two versions: each of the two measured stands for two of them.
        let plan = &mut results.experiment.plan;
        plan.targets.truncate(2);
        plan.targets.extend(plan.targets.clone());
        for (target, (version, line)) in plan.targets.iter_mut().zip([
            ("9.10", "gcc"),
            ("9.10", "clang"),
            ("9.9", "gcc"),
            ("9.9", "clang"),
        ]) {
            (target.version, target.line) = (Some(version.to_string()), line.to_string());
        }
        results.measured.retain(|row| row.target < 2);
        let twice: Vec<_> = results
            .measured
            .iter()
            .cloned()
            .map(|mut row| {
                row.target += 2;
                row
            })
            .collect();
        results.measured.extend(twice);
        let grid = Grid::of(&results).unwrap();
        assert_eq!(
            (grid.versions.clone(), grid.lines.clone()),
            (vec!["9.9".into(), "9.10".into()], vec!["gcc".into(), "clang".into()])
        );
        assert_eq!(grid.targets, [[Some(2), Some(3)], [Some(0), Some(1)]]);
        let page = tables(&results, 0, &results.table(0, "ops_sec")).into_string();
        let row = page.split("<td>9.9</td>").nth(1).unwrap().split("</tr>").next().unwrap();
        assert_eq!((row.matches("1.00 =").count(), row.matches("1.20 +").count()), (1, 2), "{row}");
    }
}

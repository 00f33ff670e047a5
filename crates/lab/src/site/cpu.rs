//! The page of processor time: for each step that was sampled, groups of functions, and the largest functions.

use super::page;
use crate::cpu::{self, Rules, Table};
use crate::results::Results;
use crate::text::amount;
use maud::{Markup, html};

/// File of the page.
pub(super) const FILE: &str = "cpu.html";

/// Whether there is anything to show.
pub(super) fn is_known(results: &Results) -> bool {
    !results.profiles.is_empty()
}

/// Every step that was sampled.
pub(super) fn all(results: &Results) -> Markup {
    let rules = Rules::standard();
    let mut steps: Vec<&str> =
        results.experiment.plan.steps.iter().map(|step| step.step.name.as_str()).collect();
    steps.dedup();
    html! {
        p.small {
            "Per cent of the samples of processor time, of all threads of a session's process, background work included, in a short run "
            "of its own: nothing else was measured in it. A sample belongs to its innermost function that a rule knows; what no rule "
            "knows is " i { (cpu::OTHER) } "."
        }
        @for step in steps {
            @if let Some(table) = cpu::table(results, &rules, step) {
                h3 { (step) }
                (groups(results, &table))
                (functions(results, &table))
            }
        }
    }
}

fn groups(results: &Results, table: &Table<'_>) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "target" } @for group in &table.groups { th { (group) } } th { "samples" } } }
            tbody {
                @for (profile, shares) in &table.rows {
                    tr {
                        td { (page::breakable(results.target_names()[profile.target])) }
                        @for share in shares { td { (format!("{share:.1}")) } }
                        td { (profile.samples.count()) }
                    }
                }
            }
        } }
        @for (profile, _) in &table.rows {
            @let counted = profile.per_operation();
            @if !counted.is_empty() {
                p.small {
                    (results.target_names()[profile.target]) ": "
                    @for (name, value) in &counted { (name) " " (amount(*value)) " " }
                }
            }
        }
    }
}

fn functions(results: &Results, table: &Table<'_>) -> Markup {
    /// As many as a reader looks at.
    const MOST: usize = 8;
    html! {
        @for (profile, _) in &table.rows {
            details {
                summary { "Largest functions of " (results.target_names()[profile.target]) }
                ul.small.functions {
                    @for (name, share) in profile.functions(MOST) { li { (format!("{share:.1} % ")) (page::breakable_path(name)) } }
                }
            }
        }
    }
}

//! The plans and waits that servers report of a step: how they execute its statements, one row for each way with the
//! targets that take it, and what connections waited for.

use super::page;
use crate::analysis::plans::ways;
use crate::analysis::results::Results;
use crate::analysis::waits::shares;
use maud::{Markup, html};

/// The plans of a step's statements at its end; nothing of engines.
pub(super) fn table(results: &Results, step: &str) -> Markup {
    let (ways, names) = (ways(results, step), results.labels());
    html! {
        @if !ways.is_empty() {
            h2 { "Plans of statements" }
            p.small { "As the server explains them with literals at the end of the step, in the first block; numbers and texts are left out. "
                "The load prepares them: for that a server may choose otherwise." }
            div.scroll { table.words {
                thead { tr { th { "statement" } th { "targets" } th { "plan" } } }
                tbody {
                    @for (statement, ways) in &ways {
                        @for way in ways {
                            tr {
                                td { (page::breakable_path(statement)) }
                                td {
                                    @if way.targets.len() == names.len() { "all" } @else {
                                        @for (index, target) in way.targets.iter().enumerate() {
                                            @if index > 0 { ", " }
                                            (page::breakable(&names[*target]))
                                        }
                                    }
                                }
                                td { (page::breakable_path(&way.plan)) }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// The states in which the connections of each target were seen; nothing of engines.
pub(super) fn waits(results: &Results, step: &str) -> Markup {
    let of_target = |target| shares(results, step, target);
    let all: Vec<Vec<(String, f64)>> = (0..results.labels().len()).map(of_target).collect();
    html! {
        @if all.iter().any(|shares| !shares.is_empty()) {
            h2 { "What connections waited for" }
            p.small { "Seen ten times a second, all blocks; \"running\" waited for nothing that the server knows of." }
            div.scroll { table.words {
                thead { tr { th { "target" } th { "seen" } } }
                tbody {
                    @for (name, shares) in results.labels().iter().zip(&all) {
                        @if !shares.is_empty() { tr {
                            td { (page::breakable(name)) }
                            td {
                                @for (index, (what, share)) in shares.iter().enumerate() {
                                    @if index > 0 { ", " }
                                    (page::breakable_path(what)) " " (format!("{:.0} %", share * 100.0))
                                }
                            }
                        } }
                    }
                }
            } }
        }
    }
}

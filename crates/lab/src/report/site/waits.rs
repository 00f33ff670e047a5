//! The parts of the pages about waiting: stalls, and response times of open loops.

use super::sections::{head, ratio, step_row};
use crate::analysis::results::{Cell, Results};
use crate::analysis::{stalls, tails};
use crate::probe::derive::metric;
use crate::report::text::amount;
use maud::{Markup, html};

/// The targets that stood still, and whether that is a difference.
pub(super) fn stalled(results: &Results, base: usize) -> Markup {
    let Some(rows) = stalls::worth_a_line(results, base) else { return html! {} };
    html! {
        @if rows.is_empty() {
            p.small { "Nobody stood still: no gap of 100 ms without a completion, no operation of 100 ms, no second below a tenth of the usual." }
        } @else {
            p.small {
                "Means over blocks of the longest time without a completion, of the seconds in which an operation ended that "
                "took 100 ms or more (from when it was due, in an open loop), and of the seconds below a tenth of the median second, where some block "
                "has 100 ms of the first or a second of the others. The sign is the verdict of an exact test of the differences in pairs: a stall is judged where means "
                "and percentiles do not show it."
            }
            div.scroll { table {
                (head(results, "step"))
                tbody {
                    @for row in &rows {
                        tr {
                            td { (row.step) ", " (row.measure) " [" (row.unit) "]" }
                            @for cell in &row.cells {
                                @match cell {
                                    None => td.invalid { "NA" },
                                    Some(cell) => td class=(cell.word.map_or("", |word| word.word())) {
                                        (amount(cell.mean)) " " (cell.word.map_or(' ', |word| word.sign()))
                                    },
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// Tails of service times that differ, all of a report corrected together.
pub(super) fn tails(results: &Results, base: usize) -> Markup {
    let rows: Vec<_> =
        tails::table(results, base).into_iter().filter(tails::TailRow::is_worth_a_line).collect();
    html! {
        @if !rows.is_empty() {
            p.small {
                "Tails that differ: ratios of service times, with the verdict. A p99 must differ by 10 % and a p99.9 by 25 %; "
                "below is better."
            }
            div.scroll { table {
                (head(results, "step"))
                tbody {
                    @for row in &rows {
                        tr {
                            td { (row.step) ", " (row.measure) }
                            @for (target, verdict) in row.cells.iter().enumerate() {
                                (ratio(verdict.map(Cell::of).as_ref(), target == base))
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// Response times of steps whose operations were due at their times.
pub(super) fn responses(results: &Results, base: usize) -> Markup {
    let names = ["response_p50", "response_p99", "response_p99.9", "response_p99.99", "response_max", "late"];
    let open = |name: &str| {
        results.experiment.plan.steps.iter().any(|step| step.step.name == name && step.step.arrival.is_some())
    };
    let steps: Vec<usize> = (0..results.steps.len()).filter(|step| open(&results.steps[*step])).collect();
    html! {
        @if !steps.is_empty() {
            h2 { "Response times" }
            p.small {
                "Operations were due at their times, whether or not the engine was ready: the time from then to the end, "
                "medians over blocks, with the verdict on its ratio. Operations that were due and never started count with the "
                "time they had waited."
            }
            div.scroll { table {
                (head(results, "metric"))
                tbody {
                    @for step in &steps {
                        (step_row(results, &results.steps[*step]))
                        @for name in names {
                            @let cells = &results.table(base, name)[*step];
                            tr {
                                td { (name) " [" (metric(name).map_or("", |row| row.unit)) "]" }
                                @for cell in cells {
                                    @let verdict = cell.as_ref().and_then(|cell| cell.verdict);
                                    td class=(verdict.map_or("", |verdict| verdict.word.word())) {
                                        (cell.as_ref().map_or("NA".to_string(), |cell| amount(cell.median)))
                                        " " (verdict.map_or(' ', |verdict| verdict.word.sign()))
                                    }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

//! The part of the first page that says where the time of sessions went.

use super::sections::head;
use crate::analysis::phases::{self, NAMES};
use crate::analysis::results::Results;
use crate::experiment::Order;
use crate::report::text::amount;
use maud::{Markup, html};

/// Where links to it lead.
pub(super) const ID: &str = "time";

/// Whether the record has anything of it.
pub(super) fn is_known(results: &Results) -> bool {
    phases::of_all(results).is_some()
}

/// Seconds of a session of each target by phase, with their shares.
pub(super) fn table(results: &Results) -> Markup {
    let Some(all) = phases::of_all(results) else { return html! {} };
    let others = match results.experiment.plan.order {
        Order::Steps => "the turns of the other targets, ",
        Order::Sessions => "",
    };
    html! {
        h2 id=(ID) { "Where the time went" }
        p.small {
            "Seconds of a session from its begin to its end, means over those that ended, and shares of that time. Elsewhere: " (others)
            "opening and closing, run-ins, and waits after a step."
        }
        div.scroll { table {
            (head(results, "phase"))
            tbody {
                @for (number, name) in NAMES.into_iter().enumerate() {
                    tr {
                        td { (name) }
                        @for phases in &all {
                            @match phases {
                                None => td.invalid { "NA" },
                                Some(phases) => {
                                    @let seconds = phases.seconds[number];
                                    td { (amount(seconds)) small { (format!("{:.0} %", 100.0 * phases.share(number))) } }
                                }
                            }
                        }
                    }
                }
                tr {
                    td { "whole session" }
                    @for phases in &all {
                        @match phases {
                            None => td.invalid { "NA" },
                            Some(phases) => td { (amount(phases.total)) small { (format!("({})", phases.sessions)) } },
                        }
                    }
                }
            }
        } }
    }
}

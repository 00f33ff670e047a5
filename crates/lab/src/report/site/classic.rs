//! The page in the form of the posts: ratios in their colours, rates, costs per operation, text to paste.

use super::{charts, page};
use crate::analysis::results::Results;
use crate::import::{Colour, Output, post_colour};
use crate::report::classic::{absolute, real_targets, relative as relative_text, short_name};
use crate::report::text::amount;
use maud::{Markup, html};

/// The costs of the posts' tables, and the rate.
const COSTS: [&str; 6] = ["cpu_us/o", "cs/o", "r/o", "rKB/o", "wKB/o", "ops_sec"];

pub(super) fn classic_page(results: &Results, base: usize, judged: &super::Table, here: &str) -> String {
    let names = results.labels();
    let body = html! {
        p.small {
            "Relative QPS is (QPS of a target) / (QPS of " (names[base]) "), the geometric mean over the blocks that both have, of " (results.blocks())
            ", as on all pages. Colours by the fixed rule of the posts, whatever the scatter: "
            b.regression { "-" } " at most 0.95, " b.improvement { "+" } " at least 1.05, = between."
            @if here != page::ALONE { " The verdicts that the scatter allows are on the page " a href="index.html" { "Summary" } "." }
        }
        h2 { "Relative QPS" }
        (relative(results, base))
        (charts::figure(
            "Relative QPS, axis from 0: bars with 95 % intervals",
            &charts::bars(results, base, judged, charts::Axis::full(judged))
        ))
        h2 { "QPS" }
        (rates(results))
        h2 { "Costs per operation" }
        p.small { "Medians over blocks; below, the ratio to " (names[base]) "; o/s is the rate." }
        (costs(results, base))
        h2 { "As text" }
        @for pasted in texts(results, base) {
            h3 { a href=(pasted.file) { (pasted.title) } }
            pre { (pasted.text) }
        }
    };
    page::page(results, "Classic", here, &body)
}

fn head(results: &Results, first: &str) -> Markup {
    let names = results.labels();
    html! {
        thead { tr { th { (first) } @for target in real_targets(results) { th { (page::breakable(&names[target])) } } } }
    }
}

fn relative(results: &Results, base: usize) -> Markup {
    html! {
        div.scroll { table {
            (head(results, "test"))
            tbody {
                @for step in &results.steps {
                    tr {
                        td { (short_name(step)) }
                        @for target in real_targets(results) {
                            @let ratio = results.ratio(step, target, base, "ops_sec");
                            @match ratio {
                                Some(_) if target == base => td { "1.00" },
                                Some(ratio) => td class=(class(post_colour(ratio))) { (format!("{ratio:.2} {}", post_colour(ratio).sign())) },
                                None => td.invalid { "NA" },
                            }
                        }
                    }
                }
            }
        } }
    }
}

pub(super) fn class(colour: Colour) -> &'static str {
    match colour {
        Colour::Red => "regression",
        Colour::Green => "improvement",
        _ => "same",
    }
}

fn rates(results: &Results) -> Markup {
    html! {
        div.scroll { table {
            (head(results, "test [operations/s]"))
            tbody {
                @for step in &results.steps {
                    tr {
                        td { (short_name(&results.with_throughput_unit(step))) }
                        @for target in real_targets(results) {
                            td { (results.median(step, target, results.throughput(step).0).map_or("NA".into(), amount)) }
                        }
                    }
                }
            }
        } }
    }
}

fn costs(results: &Results, base: usize) -> Markup {
    let unit =
        |name: &str| if name == "ops_sec" { "o/s".to_string() } else { super::sections::with_unit(name) };
    html! {
        div.scroll { table {
            thead { tr { th { "target" } @for name in COSTS { th { (unit(name)) } } } }
            tbody {
                @for step in &results.steps {
                    tr { th scope="rowgroup" colspan=(COSTS.len() + 1) { (short_name(step)) } }
                    @for target in real_targets(results) {
                        tr {
                            td { (results.labels()[target]) }
                            @for name in COSTS {
                                (super::sections::cost(results.median(step, target, name), results.ratio(step, target, base, name)))
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// Text to paste, and the file it is in.
pub(super) struct Pasted {
    pub title: &'static str,
    pub file: &'static str,
    pub text: String,
}

/// Ratios and rates as text; rows without numbers are left out.
pub(super) fn texts(results: &Results, base: usize) -> Vec<Pasted> {
    let ratios = |output| relative_text(results, base, "ops_sec", output, false);
    let rates = |output| Ok(absolute(results, "ops_sec", output));
    let all = [
        ("Relative", "csv/posts-relative.tsv", ratios(Output::Tsv)),
        ("Relative, CSV", "csv/posts-relative.csv", ratios(Output::Csv)),
        ("Absolute", "csv/posts-absolute.tsv", rates(Output::Tsv)),
        ("Absolute, CSV", "csv/posts-absolute.csv", rates(Output::Csv)),
    ];
    all.into_iter().filter_map(|(title, file, text)| Some(Pasted { title, file, text: text.ok()? })).collect()
}

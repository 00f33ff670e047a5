//! The parts that all pages share: head, navigation, style, foot.

use crate::analysis::results::Results;
use crate::report::insert_benchmark;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// File of the page of ratios to target `base`.
pub(super) fn base_file(results: &Results, base: usize) -> String {
    if base == results.experiment.plan.base {
        "index.html".to_string()
    } else {
        format!("base-{}.html", base + 1)
    }
}

/// File of the page of step `number`.
pub(super) fn step_file(number: usize) -> String {
    format!("step-{}.html", number + 1)
}

/// File of every second of step `number`.
pub(super) fn seconds_file(number: usize) -> String {
    format!("csv/seconds-{}.csv", number + 1)
}

/// The page that stands alone: it links to no other.
pub(super) const SINGLE: &str = "report.html";

/// Stands for the file of a page that has only the numbers beside it.
pub(super) const ALONE: &str = "";

/// A whole page; `here` is its file.
pub(super) fn page(results: &Results, heading: &str, here: &str, body: &Markup) -> String {
    let experiment = &results.experiment;
    let twin = experiment.plan.targets.iter().any(|target| target.twin_of.is_some());
    let link = |file: &str, text: &str| {
        html! { @if file == here { b { (text) } } @else { a href=(file) { (text) } } " " }
    };
    let navigation = html! {
        @if here != SINGLE && here != ALONE { nav {
            (link("index.html", "Summary")) (link("charts.html", "Charts")) (link("classic.html", "Classic"))
            @for (number, step) in results.steps.iter().enumerate() {
                (link(&step_file(number), step))
            }
            @if super::cpu::is_known(results) { (link(super::cpu::FILE, "Processor time")) }
            @if insert_benchmark::is_one(results) { (link(super::METRICS_PAGE, "Metrics")) }
            (link("host.html", "Host")) (link("options.html", "Options"))
            @if twin { (link("aa.html", "A/A")) }
        } }
    };
    let foot = html! {
        p {
            "Experiment " (experiment.id) ", " (experiment.created) ", host " (experiment.host.facts.id)
            ", " (results.blocks()) " blocks, " (results.counted_sessions()) " sessions, Outcrop lab "
            (experiment.lab_version) "."
            @if here != SINGLE {
                " Numbers: " a href="csv/metrics.csv" { "metrics.csv" } ", "
                a href="csv/summary.tsv" { "summary.tsv" } "."
            }
        }
    };
    let body = html! { (key(results)) (body) };
    whole(&experiment.plan.title, heading, &navigation, &body, &foot)
}

/// Whole names of the targets whose short ones leave something out.
fn key(results: &Results) -> Markup {
    let labels = results.labels();
    let names = results.target_names().into_iter().zip(&labels);
    let cut: Vec<(&str, &String)> = names.filter(|(name, label)| name != label && *label != "A/A").collect();
    html! {
        @if !cut.is_empty() {
            p.small {
                "Short names: "
                @for (index, (name, label)) in cut.iter().enumerate() {
                    @if index > 0 { ", " }
                    b { (breakable(label)) } " is " (breakable(name))
                }
                "."
            }
        }
    }
}

/// A whole page of anything.
pub(super) fn whole(title: &str, heading: &str, navigation: &Markup, body: &Markup, foot: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) @if !heading.is_empty() { ": " (heading) } }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (PreEscaped(HATCH))
                header {
                    (navigation)
                    h1 { (title) @if !heading.is_empty() { ": " (heading) } }
                }
                main { (body) }
                footer { (foot) }
            }
        }
    };
    markup.into_string() + "\n"
}

/// A step's name that may be broken between its words.
pub(super) fn breakable_step(name: &str) -> Markup {
    let separator = if name.contains("while") { "while" } else { "overwriteand" };
    parts(name.split_inclusive(separator))
}

/// An option's name or value that may be broken between its words.
pub(super) fn breakable_option(text: &str) -> Markup {
    parts(text.split_inclusive(['_', '.', ';']))
}

fn parts<'a>(parts: impl Iterator<Item = &'a str>) -> Markup {
    html! { @for (index, part) in parts.enumerate() { @if index > 0 { wbr; } (part) } }
}

/// A path or the name of a function that may be broken after its parts.
pub(super) fn breakable_path(text: &str) -> Markup {
    parts(text.split_inclusive(['/', ':', '<', ',', ' ']))
}

/// A name that may be broken before the parts it is made of.
pub(super) fn breakable(name: &str) -> Markup {
    let (own, twin) = name.strip_suffix(" (A/A)").map_or((name, false), |own| (own, true));
    html! {
        @for (index, part) in own.split_inclusive(|_: char| true).enumerate() {
            @if index > 0 && matches!(part, "@" | "+" | "/") { wbr; }
            (part)
        }
        @if twin { " " span.whole { "(A/A)" } }
    }
}

/// Links to the pages with other bases.
pub(super) fn base_links(results: &Results, here: usize) -> Markup {
    html! {
        p.bases {
            "Relative to: "
            @for (target, name) in results.labels().into_iter().enumerate() {
                @if target == here { b { (breakable(&name)) } } @else { a href=(base_file(results, target)) { (breakable(&name)) } }
                " "
            }
        }
    }
}

/// Fills bars of which nothing is decided.
const HATCH: &str = "<svg class=\"hidden\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs><pattern id=\"hatch\" width=\"6\" \
    height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"stripe\" width=\"2\" \
    height=\"6\"/></pattern></defs></svg>";

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f1f3f5; --line: #c9d0d8; --dim: #59636e;
  --good: #12652d; --bad: #9c1f14; --plain: #4a5562; --bar-good: #4d9a66; --bar-bad: #cf6657; --bar-same: #9aa5b1;
  --link: #14508f; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171a; --soft: #20252a; --line: #3a424a;
  --dim: #9aa4ae; --good: #6ccf8b; --bad: #ff9486; --plain: #b4bdc7; --bar-good: #3f8457; --bar-bad: #b55244;
  --bar-same: #66717d; --link: #7fb0ea; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 64rem; padding: 1rem; overflow-wrap: break-word; }
a { color: var(--link); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.8rem 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.4rem; }
nav, .bases { font-size: 0.9rem; line-height: 1.9; }
.whole { white-space: nowrap; } .functions { overflow-wrap: anywhere; } .wrap td:last-child, .wrap td:nth-child(n+5) { min-width: 13rem; }
nav a, nav b, .bases a, .bases b { margin-right: 0.6rem; overflow-wrap: anywhere; }
.question { font-size: 1.05rem; color: var(--dim); margin-top: 0; }
.scroll { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: top; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
thead th { background: var(--soft); vertical-align: bottom; white-space: normal; overflow-wrap: normal; }
thead th:first-child { background: var(--soft); }
.wrap td, .wrap th { white-space: normal; text-align: left; min-width: 6rem; }
.words td, .words th { white-space: normal; text-align: left; min-width: 4.2rem; } .words td:last-child { min-width: 9rem; }
.options td { min-width: 9rem; max-width: 22rem; overflow-wrap: anywhere; }
td small { font-weight: 400; display: block; color: var(--dim); }
.improvement { color: var(--good); font-weight: 600; } .regression { color: var(--bad); font-weight: 600; }
.unknown, .same { color: var(--plain); } .invalid { color: var(--dim); }
.low { color: var(--bad); } .high { color: var(--good); } .missed { color: var(--dim); }
.unknown { text-decoration: underline dotted; }
.single { background-image: repeating-linear-gradient(135deg, transparent 0 5px, var(--soft) 5px 7px); }
.small, footer, figcaption { font-size: 0.85rem; color: var(--dim); }
figure { margin: 1rem 0; overflow-x: auto; } figure svg { min-width: 38rem; } .flames img { width: 100%; min-width: 56rem; height: auto; }
tbody th { text-align: left; background: var(--paper); padding-top: 0.9rem; }
 figcaption { margin-bottom: 0.3rem; }
svg { max-width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .dim { fill: var(--dim); }
svg .strong { font-weight: 600; }
svg .axis { stroke: var(--line); stroke-width: 1; } svg .one { stroke: var(--ink); stroke-width: 1; }
svg .whisker { stroke: var(--ink); stroke-width: 1.5; fill: none; }
svg .b-improvement { fill: var(--bar-good); } svg .b-regression { fill: var(--bar-bad); }
svg .b-same { fill: var(--bar-same); } svg .b-unknown { fill: url(#hatch); stroke: var(--bar-same); }
svg .stripe { fill: var(--bar-same); } svg.hidden { position: absolute; }
svg .cut { stroke: var(--paper); stroke-width: 2.5; }
svg .curve { fill: none; stroke: var(--ink); stroke-width: 1.5; } svg .thin { stroke-width: 1; opacity: 0.75; }
svg .mark { fill: var(--paper); stroke: var(--ink); stroke-width: 1.5; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 0.8rem; }
pre { background: var(--soft); padding: 0.6rem; overflow-x: auto; font-size: 0.85rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.2rem 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.caution { border-left: 4px solid var(--bar-bad); padding: 0.1rem 0.8rem; margin: 1rem 0; background: var(--soft); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
@media (max-width: 40rem) { td:first-child, tbody th { white-space: normal; max-width: 9.5rem; } dl { grid-template-columns: minmax(0, 1fr); } dt { font-weight: 600; } body { padding: 0.7rem; }
  .stacked thead { display: none; } .stacked, .stacked tbody { display: block; }
  .stacked tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .stacked td, .stacked td:first-child { display: block; position: relative; border: 0; max-width: none; padding: 0.1rem 0 0.1rem 5.5rem; }
  .stacked td:empty { display: none; }
  .stacked td::before { content: attr(data-of); position: absolute; left: 0; color: var(--dim); font-weight: 400; } }
@media print { body { max-width: none; font-size: 11px; padding: 0; } nav, .bases { display: none; }
  .scroll, figure { overflow: visible; } figure svg { min-width: 0; } figure, tr, pre { break-inside: avoid; } th:first-child, td:first-child { position: static; } }
";

//! Flame graphs: the samples of a step of a target, and how they differ from the base's.
//!
//! The first row above the root are the groups of `cpu-groups.toml`: they make up the whole, and are what two engines have in
//! common, whose functions have different names.
//! Invariants: a graph needs nothing from elsewhere; the same samples give the same bytes; it is drawn without scripts, and
//! scripts only zoom and search where it is opened by itself.

use super::page;
use crate::analysis::cpu::{Profile, Rules};
use crate::analysis::results::Results;
use inferno::flamegraph::{self, Options, color::BackgroundColor};
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Shares of the width below which a function is not drawn, in per cent.
const LEAST: f64 = 0.1;

/// The style that makes a graph readable on dark paper: frames keep their colours, and so dark letters.
const DARK: &str = "@media (prefers-color-scheme: dark) {\n\
    svg > rect:first-of-type { fill: #1d1f21; }\n\
    svg > text { fill: #e6e6e6; }\n\
    #frames text { fill: #000; }\n}\n";

/// The graphs of a step: of each target, and against the base.
pub(super) struct Graphs<'a> {
    results: &'a Results,
    base: Option<&'a Profile>,
    own: Vec<&'a Profile>,
}

/// The graphs of a step's samples; `None` without any.
pub(super) fn of<'a>(results: &'a Results, step: &str) -> Option<Graphs<'a>> {
    let sampled = |profile: &&Profile| profile.step == step && profile.samples.count() > 0;
    let own: Vec<&Profile> = results.profiles.iter().filter(sampled).collect();
    let base = own.iter().copied().find(|profile| profile.target == results.experiment.plan.base);
    (!own.is_empty()).then_some(Graphs { results, base, own })
}

/// Every graph of an experiment: names and texts of files.
pub(super) fn files(results: &Results) -> Vec<(String, String)> {
    let rules = Rules::of(&results.experiment.plan);
    let mut steps: Vec<&str> = results.profiles.iter().map(|profile| profile.step.as_str()).collect();
    steps.sort_unstable();
    steps.dedup();
    steps.into_iter().filter_map(|step| of(results, step)).flat_map(|graphs| graphs.files(&rules)).collect()
}

impl<'a> Graphs<'a> {
    fn file(&self, profile: &Profile, kind: &str) -> String {
        let steps = &self.results.experiment.plan.steps;
        let step = steps.iter().position(|planned| planned.step.name == profile.step).unwrap_or(0);
        format!("flames/{}-{}{kind}.svg", step + 1, profile.target + 1)
    }

    /// The base's profile, for those who are not the base.
    fn against(&self, profile: &Profile) -> Option<&'a Profile> {
        self.base.filter(|base| base.target != profile.target)
    }

    fn files(&self, rules: &Rules) -> Vec<(String, String)> {
        let names = self.results.labels();
        let mut files = Vec::new();
        for profile in &self.own {
            let name = &names[profile.target];
            let lines = folded(rules, profile);
            let title = format!("{}: {name}", profile.step);
            files.push((self.file(profile, ""), drawn(&title, &plain(&lines))));
            if let Some(base) = self.against(profile) {
                let lines = difference(&folded(rules, base), &lines);
                let title = format!("{title}, red: more than {}, blue: less", names[base.target]);
                files.push((self.file(profile, "-difference"), drawn(&title, &lines)));
            }
        }
        files
    }

    /// The graphs as parts of a page that lies beside their files.
    pub(super) fn shown(&self) -> Markup {
        let figure = |file: &str, words: &str| {
            html! {
                figure.flames {
                    figcaption { (words) ", " a href=(file) { "by itself" } }
                    div.scroll { a href=(file) { img src=(file) alt=(format!("flame graph: {words}")) loading="lazy"; } }
                }
            }
        };
        let names = self.results.labels();
        html! {
            @for profile in &self.own {
                details {
                    summary { "Flame graph of " (page::breakable(&names[profile.target])) }
                    (figure(&self.file(profile, ""), &format!("{} of {}", profile.step, names[profile.target])))
                    @if let Some(base) = self.against(profile) {
                        (figure(
                            &self.file(profile, "-difference"),
                            &format!("the same, red where it is more than in {}, blue where it is less", names[base.target]),
                        ))
                    }
                }
            }
        }
    }
}

/// Stacks under their groups, and how often.
fn folded(rules: &Rules, profile: &Profile) -> BTreeMap<String, u64> {
    let mut lines = BTreeMap::new();
    for (stack, count) in &profile.samples.stacks {
        *lines.entry(format!("{};{stack}", rules.group(stack))).or_default() += count;
    }
    lines
}

fn plain(lines: &BTreeMap<String, u64>) -> Vec<String> {
    lines.iter().map(|(stack, count)| format!("{stack} {count}")).collect()
}

/// Lines of a difference: as often as it was before, as if there had been as many samples then, and now.
fn difference(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let all = |lines: &BTreeMap<String, u64>| lines.values().sum::<u64>().max(1) as f64;
    let scale = all(after) / all(before);
    let mut both: BTreeMap<&str, (u64, u64)> = before
        .iter()
        .map(|(stack, count)| (stack.as_str(), ((*count as f64 * scale).round() as u64, 0)))
        .collect();
    for (stack, count) in after {
        both.entry(stack).or_default().1 = *count;
    }
    both.into_iter().map(|(stack, (before, after))| format!("{stack} {before} {after}")).collect()
}

/// A graph as SVG.
fn drawn(title: &str, lines: &[String]) -> String {
    let mut options = Options::default();
    options.title = title.to_string();
    options.count_name = "samples".to_string();
    options.deterministic = true;
    options.min_width = LEAST;
    options.image_width = Some(1200);
    options.bgcolors = Some(BackgroundColor::Flat((255, 255, 255).into()));
    options.font_type = "sans-serif".to_string();
    let mut svg = Vec::new();
    let written = flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg);
    // Lines without a single sample are refused; a graph of nothing is never asked for.
    written.expect("samples make a graph, and memory takes it");
    let svg = String::from_utf8(svg).expect("SVG is text");
    // It names where its form comes from: nothing is fetched, but nothing needs to be named either.
    let start = svg.find("<svg").unwrap_or(0);
    without_comments(&svg[start..]).replacen("</style>", &format!("{DARK}</style>"), 1)
}

fn without_comments(svg: &str) -> String {
    let mut parts = svg.split("<!--");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::cpu::Samples;

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let stacks = stacks.iter().map(|(stack, count)| (stack.to_string(), *count)).collect();
        Profile { samples: Samples { stacks, events: BTreeMap::new() }, ..Profile::default() }
    }

    /// Per cent that a graph says of a frame, by `(3 samples, 75.00%)`.
    fn share(svg: &str, frame: &str) -> Option<f64> {
        let (_, rest) = svg.split_once(&format!("<title>{frame} ("))?;
        let (_, rest) = rest.split_once("samples, ")?;
        rest.split('%').next()?.parse().ok()
    }

    const STACKS: [(&str, u64); 4] = [
        ("run (outcrop);rocksdb::crc32c::Extend (l.so)", 30),
        ("run (outcrop);rocksdb::DBImpl::Get<x> (l.so)", 10),
        ("run (outcrop);memcmp (libc.so.6)", 5),
        ("[unknown] (x.so)", 5),
    ];

    #[test]
    fn groups_are_the_first_row_and_make_a_hundred() {
        let rules = Rules::standard();
        let svg = drawn("a <b>", &plain(&folded(&rules, &profile(&STACKS))));
        let shares: Vec<f64> = rules.names().iter().filter_map(|name| share(&svg, name)).collect();
        assert_eq!(shares.len(), 4, "{svg}");
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.05, "{shares:?}");
        assert_eq!(share(&svg, "checksum"), Some(60.0));
        assert_eq!(svg, drawn("a <b>", &plain(&folded(&rules, &profile(&STACKS)))), "the same bytes");
        assert!(svg.contains("a &lt;b&gt;") && svg.contains("DBImpl::Get&lt;x&gt;"));
        for fetched in ["href=\"http", "src=", "url(http", "@import", "<!DOCTYPE"] {
            assert!(!svg.contains(fetched), "{fetched}");
        }
        assert!(svg.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_difference_is_of_shares_and_not_of_how_long_was_sampled() {
        let rules = Rules::standard();
        let before = folded(&rules, &profile(&STACKS.map(|(stack, count)| (stack, count * 7))));
        let after = folded(&rules, &profile(&STACKS));
        for line in difference(&before, &after) {
            let words: Vec<&str> = line.rsplitn(3, ' ').collect();
            assert_eq!(words[0], words[1], "seven times as many samples are no difference: {line}");
        }
        let more = folded(&rules, &profile(&[STACKS[0], ("run (outcrop);new (l.so)", 10)]));
        let lines = difference(&after, &more);
        assert!(lines.iter().any(|line| line.ends_with("crc32c::Extend (l.so) 24 30")), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with("new (l.so) 0 10")), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with("[unknown] (x.so) 4 0")), "{lines:?}");
        assert!(drawn("d", &lines).contains("; +"), "a frame says by how much it grew");
    }
}

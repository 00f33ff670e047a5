//! The page of processor time: for each step that was sampled, groups of functions, and the largest functions.

use super::{flames, page};
use crate::analysis::cpu::{self, Profile, Rules, Table};
use crate::analysis::results::Results;
use crate::report::text::amount;
use maud::{Markup, html};

/// File of the page.
pub(super) const FILE: &str = "cpu.html";

/// Whether there is anything to show.
pub(super) fn is_known(results: &Results) -> bool {
    results.profiles.iter().any(|profile| profile.samples.count() > 0)
}

/// The place of a step's samples on the page, if those of `target` were taken.
pub(super) fn anchor(results: &Results, step: &str, target: usize) -> Option<String> {
    let is_it = |profile: &Profile| profile.step == step && profile.target == target;
    let sampled = results.profiles.iter().any(|profile| is_it(profile) && profile.samples.count() > 0);
    let number = results.experiment.plan.steps.iter().position(|planned| planned.step.name == step)?;
    sampled.then(|| format!("cpu-{}", number + 1))
}

/// Whether a page shows flame graphs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Graphs {
    /// From the files beside it.
    Beside,
    /// Not at all: the page stands alone.
    None,
}

/// Every step that was sampled.
pub(super) fn all(results: &Results, graphs: Graphs) -> Markup {
    let rules = Rules::of(&results.experiment.plan);
    let mut steps: Vec<&str> =
        results.experiment.plan.steps.iter().map(|step| step.step.name.as_str()).collect();
    steps.dedup();
    html! {
        p.small {
            "Per cent of the samples of processor time, of all threads of a session's process, or of all processes of a server and not of its "
            "client, background work included, in a short run "
            "of its own: nothing else was measured in it. A sample belongs to its innermost function that a rule knows; what no rule "
            "knows is " i { (cpu::OTHER) } "."
        }
        @for step in steps {
            @if let Some(table) = cpu::table(results, &rules, step) {
                h3 id=[table.rows.iter().find_map(|(profile, _)| anchor(results, step, profile.target))] { (step) }
                (groups(results, &table))
                (functions(results, &table))
                @if let (Graphs::Beside, Some(flames)) = (graphs, flames::of(results, step)) { (flames.shown()) }
            }
        }
    }
}

fn groups(results: &Results, table: &Table<'_>) -> Markup {
    html! {
        div.scroll { table {
            thead { tr { th { "group" } @for (profile, _) in &table.rows { th { (page::breakable(&results.labels()[profile.target])) } } } }
            tbody {
                @for (index, group) in table.groups.iter().enumerate() {
                    tr { td { (group) } @for (_, shares) in &table.rows { td { (format!("{:.1}", shares[index])) } } }
                }
                tr { td { i { "samples" } } @for (profile, _) in &table.rows { td { (profile.samples.count()) } } }
            }
        } }
        @for (profile, _) in &table.rows {
            @let counted = profile.per_operation();
            @if !counted.is_empty() {
                p.small {
                    (results.labels()[profile.target]) ": "
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
                summary { "Largest functions of " (results.labels()[profile.target]) }
                ul.small.functions {
                    @for (name, share) in profile.functions(MOST) { li { (format!("{share:.1} % ")) (page::breakable_path(name)) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::analysis::cpu::{Profile, Samples};
    use crate::report::site::{Form, write};
    use std::collections::BTreeMap;

    #[test]
    fn what_was_sampled_has_a_page_and_a_table_in_explain_and_what_was_not_has_none() {
        let (temp, store) =
            crate::testing::fake_record(6, &["fillseq", "readrandom"], 1, &mut |_| vec![("ops_sec", 1000.0)]);
        let page = |name: &str| {
            write(&store, 1, temp.path(), Form::Full).unwrap();
            std::fs::read_to_string(temp.path().join(name))
        };
        assert!(page("cpu.html").is_err() && !page("index.html").unwrap().contains("cpu.html"));
        let stacks = [
            ("run (outcrop);rocksdb::crc32c::Extend (l.so)", 3),
            ("run (outcrop);rocksdb::DBImpl::Get<x> (l.so)", 1),
        ];
        let stacks: BTreeMap<String, u64> = stacks.map(|(stack, count)| (stack.to_string(), count)).into();
        let events = BTreeMap::from([("cycles".to_string(), 4000)]);
        let profile = Profile {
            target: 1,
            step: "readrandom".to_string(),
            date: "d".to_string(),
            ops: 1000,
            samples: Samples { stacks, events },
        };
        store.record_profile(1, &Profile::default()).unwrap();
        store.record_profile(1, &Profile { ops: 1, ..profile.clone() }).unwrap();
        store.record_profile(1, &profile).unwrap();
        assert_eq!(store.profiles(1).unwrap(), [Profile::default(), profile], "the later one counts");
        let html = page("cpu.html").unwrap();
        assert!(
            html.contains("<td>checksum</td><td>75.0</td>")
                && html.contains("<td>rest of engine</td><td>25.0</td>"),
            "{html}"
        );
        assert!(
            html.contains("cycles/o 4.000") && html.contains("DBImpl") && !html.contains(">fillseq</h3>"),
            "{html}"
        );
        assert!(
            page("index.html").unwrap().contains("cpu.html")
                && page("report.html").unwrap().contains("<td>checksum</td>")
        );
        let linked: Vec<&str> =
            html.split("<img src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(linked, ["flames/2-2.svg"], "of the base nothing was sampled: no difference");
        assert!(page(linked[0]).unwrap().starts_with("<svg"));
        assert!(!page("report.html").unwrap().contains("<img"), "one file to send around");
        let base = Profile { target: 0, ..store.profiles(1).unwrap()[1].clone() };
        store.record_profile(1, &base).unwrap();
        assert!(page("flames/2-2-difference.svg").unwrap().contains("red: more than"));
        let results = crate::analysis::results::Results::load(&store, 1).unwrap();
        let text = crate::report::show::explain(&results, "readrandom", 1, 0);
        assert!(
            text.contains("checksum") && text.contains("75.0") && text.contains("DIR/cpu.html"),
            "{text}"
        );
        assert!(!crate::report::show::explain(&results, "fillseq", 1, 0).contains("of samples"));
    }
}

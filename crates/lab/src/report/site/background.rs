//! The parts of the pages that say where the numbers come from: how to reproduce them, the machine, the options, the
//! base against itself.

use super::page::{breakable_option, breakable_step};
use super::sections::ratio;
use crate::analysis::judge::Word;
use crate::analysis::results::{Cell, Results};
use crate::analysis::{options_diff, position};
use crate::host::Status as CheckStatus;
use crate::planning::plan::PlannedTarget;
use crate::probe::derive::METRICS;
use crate::run::child::Source;
use crate::targets::servers::{ServerLocation, ServerSpec};
use maud::{Markup, html};

/// File, commands, seed and formulas.
pub(super) fn reproduce(results: &Results) -> Markup {
    let experiment = &results.experiment;
    let plan = &experiment.plan;
    let file = std::path::Path::new(&experiment.file);
    let name =
        file.file_name().map_or("experiment.toml".to_string(), |name| name.to_string_lossy().into_owned());
    let sizes = &plan.sizes;
    let flags = plan.scaled.as_ref().map_or(String::new(), |_| {
        format!(" --keys {} --seconds {} --rounds {}", sizes.keys, sizes.seconds, results.blocks().max(1))
    });
    html! {
        p { "Save this as " code { (name) } ", then:" }
        pre { (format!("outcrop lab run {name}{flags}\noutcrop lab report {} -o report", experiment.id)) }
        pre { (experiment.text) }
        dl {
            dt { "Seed" } dd { (plan.seed) " (set " code { "seed" } " in [design] for the same keys and orders)" }
            dt { "Order" } dd { (plan.order_sentence()) }
            dt { "Data" } dd {
                (crate::report::text::thousands(plan.sizes.keys as f64)) " keys of " (plan.sizes.key_size) " + "
                (plan.sizes.value_text()) " bytes, cache " (plan.sizes.cache >> 20) " MB, " (plan.sizes.threads)
                " thread(s), " (plan.sizes.background_jobs) " background jobs, " (plan.sizes.seconds) " s a step"
            }
            @for (index, target) in plan.targets.iter().enumerate() {
                @if target.twin_of.is_none() {
                    dt { (results.labels()[index]) }
                    dd {
                        (from_where(target))
                        ", allocator " (target.allocator)
                        @if target.built.bytes > 0 { "; " (target.built.words()) }
                        @if !target.options.is_empty() { ", " code { (target.options) } }
                    }
                }
            }
        }
        h3 { "Formulas" }
        div.scroll { table.wrap {
            thead { tr { th { "metric" } th { "unit" } th { "how" } } }
            tbody { @for row in METRICS { tr { td { (row.name) } td { (row.unit) } td { (row.formula) } } } }
        } }
    }
}

/// Where the program of a target comes from.
fn from_where(target: &PlannedTarget) -> Markup {
    let of_server = |spec: &ServerSpec| match &spec.place {
        ServerLocation::Own { basedir, .. } => format!("a server in {}", basedir.display()),
        ServerLocation::Remote(_) => "a server that somebody else started".to_string(),
    };
    html! {
        @match (&target.source, &target.sha256) {
            (Source::Library(_), Some(sum)) => { "library with SHA-256 " (checksum(sum)) },
            (Source::Server(_), Some(sum)) => { "a server of an archive with SHA-256 " (checksum(sum)) },
            (_, Some(sum)) => { "SHA-256 " (checksum(sum)) },
            (Source::InProcess, None) => "linked into the program",
            (Source::Library(path), None) => { "library " (path.display()) },
            (Source::Server(spec), None) => (of_server(spec)),
        }
    }
}

fn checksum(sum: &str) -> Markup {
    html! { code { (sum.get(..16).unwrap_or(sum)) "…" } }
}

/// The machine, what was checked, sessions and events.
pub(super) fn host(results: &Results) -> Markup {
    let experiment = &results.experiment;
    let (facts, canary) = (&experiment.host.facts, &experiment.host.canary);
    let names = results.labels();
    let facts = [
        ("Processor", facts.cpu.clone()),
        ("Cores", facts.cores.to_string()),
        ("Memory", format!("{:.1} GB", facts.memory_bytes as f64 / (1u64 << 30) as f64)),
        ("Kernel", facts.kernel.clone()),
        ("System", facts.system.clone()),
        ("File system", format!("{} ({})", facts.filesystem, facts.mount_options)),
        ("Device", facts.device_name()),
        ("Microcode", facts.microcode.clone()),
        ("C library", facts.libc.clone()),
        (
            "Canary",
            format!(
                "{:.2} ns arithmetic, {:.1} ns cache miss, {:.1} GB/s copy",
                canary.arithmetic_ns, canary.miss_ns, canary.copy_gb_per_second
            ),
        ),
    ];
    html! {
        dl { @for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) { dt { (name) } dd { (value) } } }
        h2 { "Settings" }
        div.scroll { table.wrap.stacked {
            thead { tr { th { "setting" } th { "is" } th { "wanted" } th { "state" } th { "why" } th { "fix" } } }
            tbody {
                @for check in &experiment.host.checks {
                    tr {
                        td data-of="setting" { (check.name) }
                        td data-of="is" { (check.value) }
                        td data-of="wanted" { (check.wanted) }
                        td data-of="state" { (check.status.word().trim()) }
                        td data-of="why" { (check.why) }
                        td data-of="fix" { @if matches!(check.status, CheckStatus::Warn | CheckStatus::Fail) { (check.fix) } }
                    }
                }
            }
        } }
        (noise(results))
        h2 { "Sessions" }
        div.scroll { table {
            thead { tr { th { "target" } th { "block" } th { "place" } th { "outcome" } th { "says it is" } th { "log [KB]" } th { "miss [ns]" } th { "copy [GB/s]" } } }
            tbody {
                @for session in &results.sessions {
                    tr {
                        td { (names[session.target]) }
                        td { @if session.block < 0 { "thrown away" } @else { (session.block + 1) } }
                        td { (session.position + 1) } td { (session.outcome) }
                        td { (session.engine()) }
                        td { (results.engine_logs.get(&session.id).map_or(String::new(), |bytes| bytes.div_ceil(1024).to_string())) }
                        td { (format!("{:.1}", session.canary.miss_ns)) }
                        td { (format!("{:.1}", session.canary.copy_gb_per_second)) }
                    }
                }
            }
        } }
        @if !results.engine_logs.is_empty() {
            p.small {
                "Logs are what the engines wrote about themselves; they are in the record, long ones without their middle: "
                code { (format!("outcrop lab log {} TARGET --block N", experiment.id)) }
            }
        }
        @if !results.events.is_empty() {
            h2 { "Events" }
            ul { @for (date, text) in &results.events { li { (date) " " (text) } } }
        }
    }
}

/// The noise of this machine in earlier experiments.
fn noise(results: &Results) -> Markup {
    let plan = &results.experiment.plan;
    let sights = results.noise.sights(plan, results.blocks());
    let known: Vec<_> = results
        .steps
        .iter()
        .filter_map(|step| Some((step, results.noise_of(step, "ops_sec", plan.base)?)))
        .collect();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    // Of one block alone none is known.
    let sees = |step: &str| match sights.iter().find(|sight| sight.step == step) {
        None => "-".to_string(),
        Some(sight) => sight.change.map_or("nothing".to_string(), percent),
    };
    html! {
        h2 { "Noise of this machine" }
        @if known.is_empty() {
            p.small {
                "Not known: no experiment with an A/A twin ended here before this one, or too few pairs. Margins are as asked for, and one "
                "pair alone has no verdict."
            }
        } @else {
            p.small {
                "From the base and its A/A twin in experiments that ended here before this one began. scatter: of a pair of equals; it "
                "gives an interval where there is one pair alone. stray: of a whole experiment, which equals stay within in 19 of 20; where that "
                "is more than the change asked for, a call must exceed it; nothing beyond the change asked for is ever the same. sees: the smallest slowdown that the rule of the verdict calls in 4 of 5 cases with "
                (results.blocks()) " blocks."
            }
            div.scroll { table {
                thead { tr { th { "step" } th { "pairs" } th { "experiments" } th { "scatter" } th { "stray" } th { "margin" } th { "sees" } } }
                tbody {
                    @for (step, noise) in &known {
                        tr {
                            td { (breakable_step(step)) } td { (noise.known.count) } td { (noise.experiments) }
                            td { (percent(noise.known.log_sd)) } td { (noise.stray.map_or("-".to_string(), percent)) }
                            td { (percent(noise.margin(plan.delta).call)) } td { (sees(step)) }
                        }
                    }
                }
            } }
        }
    }
}

/// Options that differ from the base's.
pub(super) fn options(results: &Results) -> Markup {
    let base = results.experiment.plan.base;
    let names = results.labels();
    html! {
        p { "Options as each engine wrote them after it opened its database, against " b { (names[base]) } "." }
        @for (target, name) in names.iter().enumerate() {
            @if target != base && results.experiment.plan.targets[target].twin_of.is_none() {
                h2 { (name) }
                @let (both, alone): (Vec<_>, Vec<_>) =
                    options_diff::differences(results, base, target).into_iter().partition(|difference| difference.is_of_both());
                @if both.is_empty() {
                    p { "No option that both have differs, or one of the two wrote none." }
                } @else {
                    div.scroll { table.wrap.options {
                        thead { tr { th { "option" } th { (names[base]) } th { (name) } } }
                        tbody {
                            @for difference in &both {
                                tr {
                                    td { (breakable_option(&difference.name)) }
                                    @for value in [&difference.base, &difference.target] {
                                        td { (breakable_option(value.as_deref().unwrap_or_default())) }
                                    }
                                }
                            }
                        }
                    } }
                }
                (options_of_one(&alone, &names[base], name))
            }
        }
    }
}

/// Options that only one of the two knows, with their values.
fn options_of_one(alone: &[options_diff::Difference], base: &str, name: &str) -> Markup {
    html! {
        @for (of_base, whose) in [(true, base), (false, name)] {
            @let own: Vec<_> = alone.iter().filter(|difference| difference.base.is_some() == of_base).collect();
            @if !own.is_empty() {
                details {
                    summary { (own.len()) " options that only " (whose) " has" }
                    div.scroll { table.wrap.options {
                        thead { tr { th { "option" } th { (whose) } } }
                        tbody {
                            @for difference in own {
                                tr {
                                    td { (breakable_option(&difference.name)) }
                                    td { (breakable_option(difference.base.as_deref().or(difference.target.as_deref()).unwrap_or_default())) }
                                }
                            }
                        }
                    } }
                }
            }
        }
    }
}

/// The base against itself.
pub(super) fn aa(results: &Results) -> Markup {
    const COMPARED: [&str; 6] = ["ops_sec", "p99", "p99.9", "cpu_us/o", "cs/o", "wKB/o"];
    let plan = &results.experiment.plan;
    let Some(twin) = plan.targets.iter().position(|target| target.twin_of.is_some()) else { return html! {} };
    let columns: Vec<Vec<Option<Cell>>> = COMPARED
        .iter()
        .map(|name| {
            results.table(plan.base, name).into_iter().map(|mut cells| cells.swap_remove(twin)).collect()
        })
        .collect();
    let judged: Vec<Word> = columns
        .iter()
        .flatten()
        .flatten()
        .filter_map(|cell| cell.verdict)
        .map(|verdict| verdict.word)
        .collect();
    let calls = judged.iter().filter(|word| word.is_call()).count();
    html! {
        p {
            "The base ran twice in each block under two names. Any difference between the two is noise: the intervals "
            "below are what this machine cannot tell apart, and every " b { "+" } " or " b { "-" } " is a false call. "
            (calls) " of " (judged.len()) " cells were called."
        }
        div.scroll { table {
            thead { tr { th { "step" } @for name in COMPARED { th { (name) } } } }
            tbody {
                @for (row, step) in results.steps.iter().enumerate() {
                    tr { td { (breakable_step(step)) } @for column in &columns { (ratio(column[row].as_ref(), false)) } }
                }
            }
        } }
        (places(results))
    }
}

/// Whether it mattered who worked first.
fn places(results: &Results) -> Markup {
    let base = results.experiment.plan.base;
    let rows = position::table(results, base);
    let names = results.labels();
    html! {
        @if !rows.is_empty() {
            h2 { "Order of work" }
            p.small {
                "Rate of who worked before the other of a pair over the rate it would have had after it, with the 95 % interval. "
                "Orders are balanced, so such an effect widens intervals and moves no ratio; where there is one, the host is not as quiet "
                "as it should be. Steps that are done in slices change places many times a block: there each block gives one estimate."
            }
            div.scroll { table {
                thead { tr { th { "step" } th { "beside the base" } th { "being first" } th { "first in" } th { "matters" } } }
                tbody {
                    @for row in &rows {
                        tr {
                            td { (breakable_step(&row.step)) }
                            td { (super::page::breakable(&names[row.target])) }
                            td {
                                (format!("{:.3}", row.effect.ratio))
                                small { (format!("{:.3}..{:.3}", row.effect.interval.low, row.effect.interval.high)) }
                            }
                            td {
                                (row.effect.earlier) " of " (row.effect.earlier + row.effect.later)
                                (if row.in_slices { " slices" } else { " blocks" })
                            }
                            td { (if row.is_finding() { "yes" } else { "not shown" }) }
                        }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::servers::Runner;
    use outcrop_lab_sql::address::{Address, Product};

    #[test]
    fn a_server_without_a_checksum_is_not_linked_into_the_program() {
        let (_temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let mut target = store.experiment(1).unwrap().plan.targets.remove(0);
        let mut said = |place: Option<ServerLocation>, sum: Option<&str>| {
            target.sha256 = sum.map(str::to_string);
            target.source = place.map_or(Source::InProcess, |place| {
                let name = "mysql".to_string();
                Source::Server(Box::new(ServerSpec {
                    name,
                    product: Product::MySql,
                    version: None,
                    place,
                    runner: Runner::Lab,
                }))
            });
            from_where(&target).into_string()
        };
        let own = || ServerLocation::Own { basedir: "/opt/mysql".into(), config: String::new(), port: None };
        assert_eq!(said(None, None), "linked into the program");
        assert_eq!(said(Some(own()), None), "a server in /opt/mysql");
        assert!(said(Some(own()), Some("0123")).contains("archive with SHA-256 <code>0123"));
        let remote = Address {
            product: Product::MySql,
            socket: None,
            host: "db".to_string(),
            port: 3306,
            user: "lab".to_string(),
            password: None,
            database: "t".to_string(),
        };
        assert_eq!(said(Some(ServerLocation::Remote(remote)), None), "a server that somebody else started");
    }
}

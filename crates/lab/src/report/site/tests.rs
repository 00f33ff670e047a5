//! The pages of a small record.

use super::*;
use crate::analysis::cpu::{Profile, Samples};
use crate::experiment::parse;
use crate::host::canary::Canary;
use crate::host::{Facts, Host};
use crate::planning::plan::{Plan, Slot};
use crate::probe::derive::Metrics;
use crate::store::{Outcome, StepRecord};
use crate::testing::{engine_of, fake_record, step_and_result};
use outcrop_lab_sql::insert_benchmark::{Phase, run::InsertStep};
use outcrop_lab_sql::{Load, SqlStep};
use std::collections::BTreeMap;

const EXPERIMENT: &str = "title = 'One < two'\nquestion = 'Which?'\nsteps = ['fillseq', 'readrandom']\n\
    [workload]\nkind = 'byrx'\nkeys = 1000\n[design]\nseed = 1\nrounds = 6\n\
    [[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\n";

/// A record in which target b is 1.2 times as fast as a.
fn record() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let mut store = Store::open(&temp.path().join("lab.sqlite")).unwrap();
    let plan: Plan =
        crate::planning::plan::plan(&parse("t.toml", EXPERIMENT).unwrap(), 1, 8 << 30, 4).unwrap();
    let host = Host { facts: Facts::default(), checks: vec![], canary: Canary::default() };
    let id = store.begin("2026-01-02T03:04:05Z", "dir/t.toml", EXPERIMENT, &plan, &host).unwrap();
    for (block, order) in plan.blocks.iter().enumerate() {
        for (position, &target) in order.iter().enumerate() {
            let slot = Slot { block: block as i64, position, target };
            let session = store.begin_session(id, slot, "d", &Canary::default()).unwrap();
            for (number, name) in ["fillseq", "readrandom"].into_iter().enumerate() {
                let (_, mut result) = step_and_result(name, 1000, 2.0);
                let speed = if target == 1 { 1.2 } else { 1.0 };
                let wobble = 1.0 + 0.001 * ((block * 7 + position * 3) % 5) as f64;
                let ops_sec = 500.0 * speed * wobble;
                result.per_second = vec![ops_sec as u64; 3];
                let tables = 100.0 + 20.0 * target as f64;
                let values = [("ops_sec", ops_sec), ("p99", 3.0), ("tables", tables)];
                let metrics: Metrics =
                    values.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
                let step = StepRecord {
                    number,
                    name,
                    date: "2026-01-02T03:04:05Z",
                    result: &result,
                    metrics: &metrics,
                    labels: &[],
                    readings: &[],
                    histogram: &[],
                    responses: &[],
                };
                store.record_step(session, &step).unwrap();
            }
            store.end_session(session, Outcome::Done, "d", None, &engine_of("1")).unwrap();
        }
    }
    store.finish(id).unwrap();
    (temp, store)
}

#[test]
fn the_pages_are_the_same_bytes_each_time_and_need_nothing_else() {
    let (temp, store) = record();
    let (one, two) = (temp.path().join("one"), temp.path().join("two"));
    write(&store, 1, &one, Form::Full).unwrap();
    write(&store, 1, &two, Form::Full).unwrap();
    let results = Results::load(&store, 1).unwrap();
    let names: Vec<String> =
        files(&store, &results, None).unwrap().into_iter().map(|(name, _)| name).collect();
    assert!(
        names.contains(&"aa.html".to_string()) && names.contains(&"step-2.html".to_string()),
        "{names:?}"
    );
    for name in names {
        let (a, b) = (
            std::fs::read_to_string(one.join(&name)).unwrap(),
            std::fs::read_to_string(two.join(&name)).unwrap(),
        );
        assert_eq!(a, b, "{name}");
        assert!(!a.contains("http") && !a.contains("<script"), "{name}");
        for link in a.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            let there = match link.strip_prefix('#') {
                Some(anchor) => a.contains(&format!("id=\"{anchor}\"")),
                None => match link.split_once('#') {
                    None => one.join(link).exists(),
                    Some((file, anchor)) => {
                        let text = std::fs::read_to_string(one.join(file)).unwrap_or_default();
                        text.contains(&format!("id=\"{anchor}\""))
                    }
                },
            };
            assert!(there, "{name} links to {link}");
        }
    }
}

#[test]
fn the_first_page_says_what_was_found_in_words() {
    let (temp, store) = record();
    let page =
        std::fs::read_to_string(write(&store, 1, &temp.path().join("site"), Form::Full).unwrap()).unwrap();
    assert!(page.contains("<h1>One &lt; two</h1>"));
    assert!(page.contains("<b>b</b> gets more QPS than a on 2 of 2 ("), "{page}");
    assert!(page.contains("1.20 +"));
    assert!(page.contains("tables of b took 120 MB after readrandom, those of a 100 MB"));
    assert!(page.contains("outcrop lab run t.toml"));
}

#[test]
fn an_experiment_without_measurements_has_no_pages() {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&temp.path().join("lab.sqlite")).unwrap();
    assert!(write(&store, 1, temp.path(), Form::Full).unwrap_err().contains("no experiment 1"));
}

#[test]
fn every_chart_has_its_numbers_in_a_file_and_the_posts_tables_are_files_too() {
    let (temp, store) = record();
    write(&store, 1, temp.path(), Form::Full).unwrap();
    let text = |name: &str| std::fs::read_to_string(temp.path().join(name)).unwrap();
    let seconds = text("csv/seconds-2.csv");
    assert!(seconds.starts_with("target,block,second,operations,longest_us\n"), "{seconds}");
    // Three targets, six blocks, three seconds.
    assert_eq!(seconds.lines().count(), 1 + 3 * 6 * 3);
    assert!(
        text("step-2.html").contains("csv/seconds-2.csv")
            && text("charts.html").contains("csv/relative-1.csv")
    );
    assert!(text("csv/posts-relative.csv").starts_with("test,"), "{}", text("csv/posts-relative.csv"));
    let absolute = text("csv/posts-absolute.csv");
    assert!(absolute.starts_with("test,outcrop/a,outcrop/b\nfillseq,5"), "{absolute}");
    assert!(
        text("csv/posts-absolute.tsv").contains("\ttest\n")
            && text("csv/posts-relative.tsv").contains("1.20")
    );
    assert!(text("index.html").contains("(6)</small>"), "cells carry the number of pairs");
}

#[test]
fn one_pair_is_hatched() {
    let (temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1000.0)]);
    let page = std::fs::read_to_string(write(&store, 1, temp.path(), Form::Full).unwrap()).unwrap();
    assert!(page.contains("class=\"single unknown\""), "{page}");
}

#[test]
fn a_ratio_is_the_same_on_every_page_in_every_file_and_on_the_terminal() {
    // Blocks of which the ratio of medians is 1.30 and the mean of the ratios 1.18.
    let (base, target) = ([100.0, 70.0, 60.0, 300.0, 290.0], [110.0, 130.0, 110.0, 190.0, 280.0]);
    let mut blocks = [0usize; 3];
    let (temp, store) = fake_record(5, &["fillseq", "readrandom"], 3, &mut |session| {
        let block = blocks[session.target] / 2;
        blocks[session.target] += 1;
        let values = if session.target == 1 { target } else { base };
        vec![("ops_sec", 1000.0 * values[block]), ("proc_cpu_us/o", 1e3 / values[block])]
    });
    let mut results = Results::load(&store, 1).unwrap();
    let ratio = results.ratio("fillseq", 1, 0, "ops_sec").unwrap();
    let mean =
        base.iter().zip(target).map(|(base, target): (&f64, f64)| (target / base).ln()).sum::<f64>() / 5.0;
    let medians =
        results.median("fillseq", 1, "ops_sec").unwrap() / results.median("fillseq", 0, "ops_sec").unwrap();
    assert!(
        (ratio - mean.exp()).abs() < 1e-9 && (medians - ratio).abs() > 0.05,
        "{ratio} and {medians} differ"
    );
    let (shown, wrong) = (format!("{ratio:.2}"), format!("{medians:.2}"));
    let site = temp.path().join("site");
    let archive =
        store.record_archive("d", &super::beside::tests::archive(&["fillseq", "readrandom"])).unwrap();
    write_beside(&store, 1, &site, Form::Full, &[archive]).unwrap();
    let file = |name: &str| std::fs::read_to_string(site.join(name)).unwrap();
    let texts = [
        file("beside.html"),
        file("index.html"),
        file("classic.html"),
        file("report.html"),
        file("csv/relative-1.csv"),
        file("csv/posts-relative.tsv"),
        file("csv/posts-relative.csv"),
        crate::report::show::compare(&results, 0, "ops_sec"),
        crate::report::show::explain(&results, "fillseq", 1, 0),
        crate::report::show::first_page(&results, 0, 0),
        crate::report::show::compare_json(&results, 0, "ops_sec"),
    ];
    // The tables of SQL alone: the same numbers as a test of a group, and as a step of the Insert Benchmark.
    let insert = InsertStep { phase: Phase::Fill, batch: 50 };
    let loads = [Load::Sysbench("point-query_range=100".to_string()), Load::Insert(insert)];
    for (planned, load) in results.experiment.plan.steps.iter_mut().zip(loads) {
        planned.sql = Some(SqlStep { load, tables: 1, rows: 9, engine: String::new() });
    }
    let sql = [
        groups::tables(&results, 0).into_string(),
        groups::text(&results, 0),
        insert_benchmark::tables(&results, 0).into_string(),
        insert_benchmark::text(&results, 0),
    ];
    let texts = texts.into_iter().chain(sql);
    for (number, text) in texts.enumerate() {
        // JSON and CSV have more digits.
        let found = text.contains(&shown)
            || text.contains(&format!("{ratio:.4}"))
            || text.contains(&ratio.to_string());
        assert!(found, "text {number} lacks {shown}\n{text}");
        let is_wrong = [format!(">{wrong}"), format!(" {wrong} "), format!(",{wrong}"), format!("\t{wrong}")];
        assert!(
            !is_wrong.iter().any(|wrong| text.contains(wrong)),
            "text {number}: the ratio of medians\n{text}"
        );
    }
}

#[test]
fn a_target_has_one_short_name_in_all_files_that_are_not_in_the_form_of_the_posts() {
    let (temp, store) = fake_record(6, &["fillseq", "readrandom"], 1, &mut |session| {
        vec![("ops_sec", if session.target == 1 { 800.0 } else { 1000.0 })]
    });
    let stacks = BTreeMap::from([("run (outcrop);rocksdb::crc32c::Extend (l.so)".to_string(), 3)]);
    for target in 0..2 {
        let samples = Samples { stacks: stacks.clone(), events: BTreeMap::new() };
        let (step, date) = ("readrandom".to_string(), "d".to_string());
        store.record_profile(1, &Profile { target, step, date, ops: 9, samples }).unwrap();
    }
    let archive = store.record_archive("d", &super::beside::tests::archive(&["fillseq"])).unwrap();
    write_beside(&store, 1, temp.path(), Form::Full, &[archive]).unwrap();
    // A difference that was called leads to its samples, and they are there.
    let file = |name: &str| std::fs::read_to_string(temp.path().join(name)).unwrap();
    assert!(file("index.html").contains("href=\"cpu.html#cpu-2\""), "{}", file("index.html"));
    assert!(!file("index.html").contains("#cpu-1"), "of the load nothing was sampled");
    assert!(file("report.html").contains("href=\"#cpu-2\"") && file("report.html").contains("id=\"cpu-2\""));
    assert!(file("cpu.html").contains("<h3 id=\"cpu-2\">readrandom</h3>"));
    let results = Results::load(&store, 1).unwrap();
    assert_eq!(results.labels(), ["a", "b", "A/A"]);
    let key = "Short names: <b>a</b> is outcrop<wbr>/a, <b>b</b> is outcrop<wbr>/b.";
    let published = published(&store, &results, &[archive]).unwrap();
    let mut names: Vec<String> =
        files(&store, &results, published).unwrap().into_iter().map(|(name, _)| name).collect();
    names.retain(|name| name != "classic.html" && !name.starts_with("csv/"));
    for wanted in ["beside.html", "cpu.html", "flames/2-2-difference.svg", "report.html"] {
        assert!(names.iter().any(|name| name == wanted), "{names:?}");
    }
    let pages = names.into_iter().map(|name| {
        let text = std::fs::read_to_string(temp.path().join(&name)).unwrap();
        assert!(name.ends_with(".svg") || text.contains(key), "{name}");
        (name, text.replace(key, ""))
    });
    // The plan that `show` begins with says the whole names.
    let shown = crate::report::show::show(&results);
    let sessions = shown[shown.find("\nsessions\n").unwrap()..].to_string();
    let explained = crate::report::show::explain(&results, "readrandom", 1, 0);
    let texts = [("show".to_string(), sessions), ("explain".to_string(), explained)];
    for (name, text) in pages.chain(texts) {
        let long = ["outcrop/a", "outcrop/b", "outcrop<wbr>/"].into_iter().find(|long| text.contains(long));
        assert_eq!(long, None, "{name}\n{text}");
    }
}

#[test]
fn a_heading_says_no_more_than_the_rows_below_it() {
    let (temp, store) = fake_record(6, &["fillseq"], 1, &mut |session| {
        vec![("ops_sec", if session.target == 1 { 800.0 } else { 1000.0 }), ("proc_cpu_us/o", 5.0)]
    });
    let page = std::fs::read_to_string(write(&store, 1, temp.path(), Form::Full).unwrap()).unwrap();
    let (_, found) = page.split_once("<h2>Costs beside the differences</h2>").unwrap();
    let found = &found[..found.find("</table>").unwrap()];
    assert!(found.contains("or that nothing that was counted explains it"), "{found}");
    assert!(found.contains("not explained"), "{found}");
}

#[test]
fn the_time_of_sessions_is_told_where_the_record_has_it() {
    let (_temp, store) =
        fake_record(2, &["fillseq", "warm", "readrandom"], 1, &mut |_| vec![("ops_sec", 1000.0)]);
    let mut results = Results::load(&store, 1).unwrap();
    let base = results.experiment.plan.base;
    let table = results.table(base, "ops_sec");
    let pages = |results: &Results| [index(results, base, &table, false), single(results, base, &table)];
    assert!(
        pages(&results).iter().all(|page| !page.contains("Where the time went") && !page.contains("#time"))
    );
    for session in &mut results.sessions {
        session.seconds = (session.target != 2).then_some(if session.target == 1 { 8.0 } else { 20.0 });
    }
    // Each of three steps took two seconds; of the twin the record says nothing.
    for page in pages(&results) {
        let (_, section) = page.split_once("Where the time went</h2>").unwrap();
        let section = &section[..section.find("</table>").unwrap()];
        for row in [
            "<td>load</td><td>2.000<small>10 %</small></td><td>2.000<small>25 %</small></td><td class=\"invalid\">NA</td>",
            "<td>warm-up</td><td>2.000<small>10 %</small>",
            "<td>shaping</td><td>0<small>0 %</small>",
            "<td>elsewhere</td><td>14.0<small>70 %</small></td><td>2.000<small>25 %</small></td>",
            "<td>whole session</td><td>20.0<small>(2)</small></td><td>8.000<small>(2)</small></td>",
        ] {
            assert!(section.contains(row), "{row}\n{section}");
        }
    }
    assert!(pages(&results)[0].contains("<a href=\"#time\">"), "the first page leads to it");
}

#[test]
fn every_sentence_begins_with_a_capital() {
    let (temp, store) = record();
    write(&store, 1, temp.path(), Form::Full).unwrap();
    let results = Results::load(&store, 1).unwrap();
    let mut pages: Vec<(String, String)> = files(&store, &results, None).unwrap();
    pages.retain(|(name, _)| name.ends_with(".html"));
    pages.push(("stalls of an archive".to_string(), super::archive::stall_table(&[], None).into_string()));
    for (name, page) in pages {
        for paragraph in page.split("<p class=\"small\">").skip(1) {
            let words: String =
                paragraph[..paragraph.find("</p>").unwrap()].replace("<b>", "").replace("</b>", "");
            // A column's name with its meaning keeps its letters.
            let is_broken = |rest: &str| {
                let word = rest.split(' ').next().unwrap_or_default();
                word.starts_with(char::is_lowercase) && !word.ends_with(':')
            };
            let broken = words.match_indices(". ").find(|(at, _)| is_broken(&words[at + 2..]));
            assert_eq!(broken, None, "{name}: {words}");
        }
    }
}

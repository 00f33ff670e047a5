//! What a mistake in an experiment is answered with, and that those in the tree have none.

use super::*;

const GOOD: &str = "title = 't'\n[workload]\nkind = 'byrx'\nkeys = 10\n[[target]]\nengine = 'outcrop'\n";

fn error(text: &str) -> String {
    parse("a.toml", text).unwrap_err()
}

#[test]
fn a_mistyped_key_is_answered_with_its_place_and_what_was_meant() {
    let wrong = GOOD.replace("keys = 10", "keyz = 10");
    assert_eq!(error(&wrong), "a.toml:4:1: unknown key \"keyz\"; did you mean \"keys\"?");
    let wrong = GOOD.replace("'byrx'", "'byrxx'");
    assert_eq!(error(&wrong), "a.toml:3:8: unknown value \"byrxx\"; did you mean \"byrx\"?");
    let wrong = format!("{GOOD}[design]\nround = 3\n");
    assert_eq!(error(&wrong), "a.toml:8:1: unknown key \"round\"; did you mean \"rounds\"?");
    let wrong = format!("{GOOD}configs = ['uni']\n[config.univ]\n");
    assert_eq!(error(&wrong), "a.toml:7:13: there is no [config.uni]; did you mean \"univ\"?");
    assert!(error("title = ").starts_with("a.toml:1:"));
    assert!(error("title = 't'").contains("workload"));
}

#[test]
fn a_mistyped_step_is_answered_with_what_was_meant() {
    let wrong = format!("steps = ['fillseq', 'readrandm']\n{GOOD}");
    assert!(error(&wrong).ends_with("unknown step \"readrandm\"; did you mean \"readrandom\"?"));
    let wrong = format!("steps = ['fillseq', 'fillseq']\n{GOOD}");
    assert!(error(&wrong).contains("twice"));
    let wrong = format!("{GOOD}[step.readseq]\nthreads = 1\n");
    assert!(error(&wrong).contains("not in steps"));
}

#[test]
fn targets_say_where_they_come_from() {
    assert!(error(&GOOD.replace("outcrop", "rocksdb")).contains("needs versions or library"));
    assert!(error(&format!("{GOOD}versions = ['1']\n")).contains("older builds by library"));
    assert!(error(&GOOD.replace("keys = 10", "keys = 0")).contains("above zero"));
    assert!(error(&GOOD.replace("keys = 10", "seconds = nan")).contains("above zero"));
    assert!(error(&format!("{GOOD}[design]\ndelta = 1.0\n")).contains("delta is a share"));
    assert!(error(&format!("{GOOD}[design]\nrounds = 100000\n")).contains("at most"));
    assert!(error(&format!("{GOOD}[step.readrandom]\nthreads = 0\n")).contains("above zero"));
}

#[test]
fn a_step_under_another_name_takes_its_kind_and_changes() {
    let text = format!(
        "steps = ['fillseq', 'readrandom', 'again']\n{GOOD}[step.again]\nkind = 'readrandom'\nnum = 3\n"
    );
    let experiment = parse("a.toml", &text).unwrap();
    let steps = experiment.planned_steps(&experiment.sizes(1 << 30, 2));
    assert_eq!(steps[2].step.kind, outcrop_lab_load::StepKind::ReadRandom);
    assert_eq!((steps[1].step.num, steps[2].step.num), (10, 3));
    assert!(steps[2].report && steps[2].wants_rest() && !steps[0].wants_rest());
}

#[test]
fn one_merge_operator_serves_all_steps_of_a_session() {
    let operators = |text: &str| -> Vec<String> {
        let experiment = parse("a.toml", text).unwrap();
        let steps = experiment.planned_steps(&experiment.sizes(1 << 30, 2));
        steps.into_iter().map(|planned| planned.step.merge_operator).collect()
    };
    let merging = format!("steps = ['fillseq', 'readwhilemerging']\n{GOOD}");
    assert_eq!(operators(&merging), ["put", "put"]);
    assert_eq!(operators(&merging.replace("keys", "merge_operator = 'max'\nkeys")), ["max", "max"]);
    assert_eq!(operators(&format!("steps = ['fillseq', 'updaterandom']\n{GOOD}")), ["", ""]);
    let wrong = format!("{merging}[step.readwhilemerging]\nmerge_percent = 101\n");
    assert!(error(&wrong).contains("at most 100"));
}

#[test]
fn sizes_of_values_are_one_or_a_range() {
    let with = |keys: &str| GOOD.replace("keys = 10", &format!("keys = 10\n{keys}"));
    let range = with("value_size_distribution = 'uniform'\nvalue_size_min = 100\nvalue_size_max = 300");
    let sizes = parse("a.toml", &range).unwrap().sizes(1 << 30, 2);
    assert_eq!((sizes.value_size, sizes.value_text()), (200, "100..300 (uniform)".to_string()));
    assert!(error(&with("value_size_min = 100")).contains("go together"));
    assert!(error(&range.replace("100", "400")).contains("above value_size_max"));
    assert!(error(&range.replace("value_size_min", "value_size = 5\nvalue_size_min")).contains("not both"));
}

#[test]
fn sizes_come_from_the_file_and_then_from_the_machine() {
    let experiment = parse("a.toml", &GOOD.replace("keys = 10\n", "")).unwrap();
    let sizes = experiment.sizes(8 << 30, 16);
    assert_eq!((sizes.keys, sizes.background_jobs), (2_000_000, 8));
    assert_eq!(experiment.sizes(1 << 30, 2).background_jobs, 3);
    assert!(sizes.cache as u64 > sizes.data_bytes());
}

#[test]
fn the_experiments_of_the_tree_parse() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".toml") && name != "engines.lock.toml" {
            read(&path).unwrap();
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen} experiments");
}

//! The answer to a mistake in an experiment on servers, and the steps of an experiment without one.

use super::*;
use outcrop_lab_sql::Load;

/// The Insert Benchmark of two clients.
const INSERT: &str = "title = 't'\n[workload]\nkind = 'insert-benchmark'\nrows = 1000\nwrite_rows = 500\nclients = 2\n\
    seconds = 2\n[[target]]\nserver = 'postgres@18.x'\n";

#[test]
fn the_insert_benchmark_has_its_steps_in_order() {
    let experiment = parse("t.toml", INSERT).unwrap();
    let steps = experiment.planned_steps(8);
    let ops: Vec<Option<u64>> = steps.iter().map(|step| step.step.ops).collect();
    assert_eq!(ops[..5], [Some(1000), Some(1), Some(400), Some(100), Some(1)]);
    assert!(ops[5..].iter().all(Option::is_none) && ops.len() == 11);
    assert!(steps[0].is_load() && steps.iter().all(|step| !step.may_be_sliced()));
    assert_eq!(steps[5].step.name, "qr100");
    assert!(!steps[5].oversubscribed && experiment.planned_steps(6)[5].oversubscribed);
    let error = parse("t.toml", &INSERT.replace("clients = 2", "tables = 2")).unwrap_err();
    assert!(error.contains("tables has no effect"), "{error}");
    let error =
        parse("t.toml", &INSERT.replace("seconds = 2", "seconds = 2\nwrite_seconds = 3")).unwrap_err();
    assert!(error.contains("write_seconds has no effect: rows decide"), "{error}");
}

const SMALL: &str = "title = 't'\nsteps = ['load', 'postwrite', 'point-query.warm', 'point-query', 'insert']\n\
    [workload]\nkind = 'sysbench'\nrows = 1000\nseconds = 2\n\
    [[target]]\nserver = 'postgres@18.x'\nconfigs = ['a']\n[config.a]\nsettings = 'work_mem = 4MB'\n";

#[test]
fn steps_have_the_times_of_their_kind() {
    let experiment = parse("t.toml", SMALL).unwrap();
    let steps = experiment.planned_steps(4);
    let seconds: Vec<f64> = steps.iter().map(|step| step.step.seconds).collect();
    assert_eq!(seconds[2..], [2.0, 2.0, 3.0], "writes take half as long again");
    assert_eq!(
        steps[1].sql.as_ref().unwrap().load,
        Load::Postwrite(60.001),
        "as long as published runs wait"
    );
    let report: Vec<bool> = steps.iter().map(|step| step.report).collect();
    assert_eq!(report, [true, false, false, true, true]);
    assert!(steps[0].is_load() && steps[2].warms_up() && steps[3].may_be_sliced());
    assert!(steps[4].writes() && !steps[4].may_be_sliced() && !steps[0].may_be_sliced());
    let scans = SMALL.replace("'point-query.warm'", "'scan.warmpre', 'scan.warm', 'scan'");
    let scans = parse("t.toml", &scans).unwrap().planned_steps(4);
    let seconds: Vec<f64> = scans[2..5].iter().map(|step| step.step.seconds).collect();
    assert_eq!(seconds, [0.2, 0.2, 2.0], "published runs warm caches for a tenth of a test's time");
    let standard = parse("t.toml", &SMALL.replace("steps =", "#")).unwrap();
    assert_eq!(standard.planned_steps(4).iter().filter(|step| step.report).count(), 1 + 32 + 2);
}

#[test]
fn an_experiment_on_servers_is_told_from_one_on_engines() {
    assert!(is_sql(SMALL));
    assert!(is_sql("[workload]\nkind = 'sysbench'\n"));
    assert!(is_sql("[[targets]]\nserver = 'x'\n"));
    assert!(!is_sql("[workload]\nkind = 'byrx'\n[[target]]\nengine = 'outcrop'\n"));
}

#[test]
fn mistakes_have_their_place_and_what_was_probably_meant() {
    for (from, to, expected) in [
        ("'point-query',", "'point-quary',", "t.toml:2:52: unknown step \"point-quary\"; did you mean"),
        ("rows = 1000", "rows = 0", "t.toml:5:1: rows must be above zero"),
        ("rows = 1000", "row = 1000", "unknown key \"row\"; did you mean \"rows\"?"),
        ("postgres@18.x", "postgras@18.x", "there is no server \"postgras\"; did you mean \"postgres\"?"),
        ("postgres@18.x", "postgres", "needs a version"),
        ("configs = ['a']", "configs = ['b']", "there is no [config.b]; did you mean \"a\"?"),
        ("configs = ['a']", "configs = ['a']\nurl = 'postgres://x@y/z'", "keeps its own settings"),
        ("postgres@18.x'\n", "mariadb'\nbasedir = '/usr'\nport = 3307\n", "users without a password"),
        ("seconds = 2", "seconds = 2\nengine = 'InnoDB'", "PostgreSQL's tables have none"),
        ("[[target]]", "[step.postwrite]\nclients = 2\n[[target]]", "clients has no effect: postwrite"),
        ("seconds = 2", "seconds = 2\nmemory_share = 2.0", "memory_share is a share"),
        ("[[target]]", "[step.scan]\nseconds = 1\n[[target]]", "changes a step that is not in steps"),
        ("'sysbench'", "'sysbanch'", "did you mean \"sysbench\"?"),
    ] {
        let error = parse("t.toml", &SMALL.replace(from, to)).expect_err(to);
        assert!(error.contains(expected), "{to}: {error}");
    }
}

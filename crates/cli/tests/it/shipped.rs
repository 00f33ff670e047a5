//! The experiments that come with the program, end to end at a tiny size.
//!
//! Engines that are not on this machine are left out as a run would leave them out; where the base itself is missing,
//! the file's first target that needs nothing takes its place.

use crate::lab::{Lab, count};
use std::path::{Path, PathBuf};

fn shipped(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The libraries that are here: exactly two versions, or none.
fn references() -> Option<PathBuf> {
    let dir = PathBuf::from(std::env::var_os("OUTCROP_REFERENCE_DIR")?);
    dir.is_dir().then_some(dir)
}

/// Every `rocksdb` target of `text` as a library of this machine, or as Outcrop under another name.
fn on_this_machine(text: &str) -> String {
    let mut value: toml::Value = toml::from_str(text).unwrap();
    let targets = value["target"].as_array_mut().unwrap();
    let mut replaced = Vec::new();
    for target in targets.drain(..) {
        let table = target.as_table().unwrap();
        let versions =
            table.get("versions").and_then(|versions| versions.as_array()).cloned().unwrap_or_default();
        if versions.is_empty() {
            replaced.push(target);
            continue;
        }
        // Targets that are made of sources here are compiled for too long: each build is that of the reference, under
        // its name.
        let builds = table.get("builds").and_then(|builds| builds.as_array()).cloned().unwrap_or_default();
        let builds: Vec<String> = builds.iter().map(|name| format!("-{}", name.as_str().unwrap())).collect();
        let builds = if builds.is_empty() { vec![String::new()] } else { builds };
        for (version, build) in versions.iter().flat_map(|version| builds.iter().map(move |b| (version, b))) {
            let version = version.as_str().unwrap().to_string();
            let mut own = table.clone();
            own.remove("versions");
            own.remove("builds");
            own.insert("build".into(), format!("{version}{build}").into());
            let library = references().map(|dir| dir.join(format!("librocksdb-{version}.so")));
            match library.filter(|library| library.exists()) {
                Some(library) => _ = own.insert("library".into(), library.display().to_string().into()),
                // The name stays, so that the file's base is still there.
                None => {
                    own.insert("engine".into(), "outcrop".into());
                    own.insert("build".into(), format!("as-{version}{build}").into());
                }
            }
            replaced.push(toml::Value::Table(own));
        }
    }
    *targets = replaced;
    value.as_table_mut().unwrap().remove("base");
    toml::to_string(&value).unwrap()
}

/// Runs a shipped experiment as small as it goes; gives what was recorded.
fn run(name: &str, keys: &str) -> [serde_json::Value; 4] {
    let lab = Lab::new(&on_this_machine(&shipped(name)));
    let sizes = ["--keys", keys, "--seconds", "0.1", "--rounds", "1"];
    let plan = lab.text(&[&["plan", "tiny.toml"], &sizes[..]].concat());
    // A file that is not here is named with its path, which may be long.
    assert!(plan.contains("scaled: ") && plan.contains("rounds"), "{plan}");
    lab.text(&[&["run", "tiny.toml"], &sizes[..]].concat());
    let recorded = lab.recorded();
    let [experiment, sessions, measured, events] = &recorded;
    assert_eq!(experiment["status"], "done");
    let bad = count(sessions, |session| session["outcome"] != "done");
    assert_eq!(bad, 0, "{name}: {events}");
    assert!(
        count(measured, |row| row["result"]["ops"].as_u64() == Some(0)) == 0,
        "{name}: a step did nothing"
    );
    let index = lab.text(&["report", "1", "-o", "site"]);
    let page = std::fs::read_to_string(lab.dir.path().join(index.trim())).unwrap();
    assert!(page.contains("scaled: ") && page.contains(&format!("--keys {keys} --seconds 0.1 --rounds 1")));
    recorded
}

#[test]
fn outcrop_vs_rocksdb_runs() {
    let [_, _, measured, _] = run("outcrop-vs-rocksdb.toml", "3000");
    assert_eq!(count(&measured, |row| row["name"] == "overwriteandwait"), 4, "three targets and the twin");
}

#[test]
fn leveled_universal_runs() {
    let [experiment, _, _, _] = run("leveled-universal.toml", "3000");
    let targets = experiment["plan"]["targets"].as_array().unwrap();
    assert!(targets.iter().any(|target| target["name"].as_str().unwrap().ends_with("/universal")));
}

#[test]
fn the_published_sequence_runs_on_every_shape_of_compaction() {
    let [experiment, _, measured, _] = run("published-sequence.toml", "3000");
    let targets = experiment["plan"]["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 6, "Outcrop, four shapes, the base again");
    assert_eq!(count(&measured, |row| row["name"] == "overwriteandwait"), 6);
}

#[test]
fn universal_compactions_are_timed() {
    let [_, _, measured, _] = run("universal-compaction.toml", "3000");
    assert_eq!(count(&measured, |row| row["name"] == "compact" && row["result"]["ops"] == 1), 6);
}

#[test]
fn shapes_of_the_tree_are_made_one_after_the_other() {
    let [experiment, _, measured, _] = run("shapes.toml", "20000");
    let steps = experiment["plan"]["steps"].as_array().unwrap();
    let without_wal = |step: &serde_json::Value| step["step"]["durability"] == "NoWal";
    assert_eq!(steps.iter().filter(|step| without_wal(step)).count(), steps.len());
    assert_eq!(count(&measured, |row| row["name"] == "ranges.2"), 4);
}

#[test]
fn many_writers_load_together_as_many_keys_as_one() {
    let [_, _, measured, _] = run("many-writers.toml", "2000");
    let ops = |name: &str| {
        let rows = measured.as_array().unwrap().iter().filter(|row| row["name"] == name);
        rows.map(|row| row["result"]["ops"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((ops("fillrandom"), ops("fillrandom.t2")), (vec![2000; 3], vec![2000; 3]));
    assert_eq!(ops("fillrandom.t64"), [2048; 3], "each writes a 64th, rounded up");
    assert_eq!(ops("overwrite.t64").len(), 3);
}

#[test]
fn skew_runs_and_finds_every_key() {
    let [_, _, measured, _] = run("skew.toml", "3000");
    let eights = |row: &&serde_json::Value| row["name"] == "readrandom.8";
    let rows: Vec<_> = measured.as_array().unwrap().iter().filter(eights).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["result"]["found"] == row["result"]["ops"]));
}

#[test]
fn io_efficiency_runs_from_copies() {
    let [_, _, measured, events] = run("io-efficiency.toml", "3000");
    assert_eq!(count(&measured, |row| row["name"] == "fillseq"), 0, "the load is shared");
    assert!(count(&events, |event| event[1].as_str().unwrap().contains("was loaded")) > 0);
}

#[test]
fn versions_and_allocators_run() {
    run("rocksdb-versions.toml", "2000");
    run("rocksdb-allocators.toml", "2000");
    let [experiment, ..] = run("rocksdb-builds.toml", "2000");
    let targets = experiment["plan"]["targets"].as_array().unwrap();
    assert!(
        targets.iter().any(|target| target["name"].as_str().unwrap().ends_with("11.8.1-clang-lto-native"))
    );
}

#[test]
fn the_first_lap_runs_on_one_thread_and_on_two() {
    for name in ["first-lap.toml", "first-lap-2.toml"] {
        let [experiment, _, measured, _] = run(name, "3000");
        assert_eq!(experiment["plan"]["order"], "steps", "{name}");
        // Only what the last load wrote is there, whatever the loads before it left.
        let found = |row: &serde_json::Value| {
            row["result"]["found"].as_f64().unwrap() / row["result"]["ops"].as_f64().unwrap()
        };
        let reads =
            |row: &serde_json::Value| row["name"] == "readrandom" && (0.58..0.69).contains(&found(row));
        assert_eq!(count(&measured, reads), 3, "{name}: {measured}");
    }
}

#[test]
fn every_shipped_experiment_fits_ten_minutes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Those on servers are tested where servers are: `tests/sql`.
        let on_servers = ["sysbench-", "insert-", "postgres-", "durability"];
        let on_servers = on_servers.iter().any(|begin| name.starts_with(begin));
        if !name.ends_with(".toml") || name.ends_with(".lock.toml") || on_servers {
            continue;
        }
        let lab = Lab::new(&on_this_machine(&shipped(&name)));
        let plan: serde_json::Value =
            serde_json::from_str(&lab.text(&["plan", "tiny.toml", "--budget", "10m", "--json"])).unwrap();
        assert_eq!(plan["budget_seconds"], 600, "{name}");
        assert!(plan["rounds"].as_u64().unwrap() >= 5, "{name}: fewer rounds decide nothing");
        assert!(plan["sizes"]["seconds"].as_f64().unwrap() >= 1.0, "{name}");
        seen += 1;
    }
    assert_eq!(seen, 19);
}

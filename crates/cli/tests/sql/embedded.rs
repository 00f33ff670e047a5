//! Embedded engines beside servers: the same step by their own operations, and syncs that several commits share.

use super::{Lab, both, experiment, servers};

/// An experiment on the first of each product and Outcrop, with synced commits of one and of eight clients.
fn text(servers: &[String]) -> String {
    let more = "configs = ['synced']\n[config.synced]\n[[embedded]]\nengine = 'outcrop'\n\
                [step.'update-nonindex.c8']\nkind = 'update-nonindex'\nclients = 8\n";
    let steps = "'load', 'postwrite', 'update-nonindex', 'update-nonindex.c8', 'scan'";
    experiment(servers, "sysbench", steps, 0.7, more)
}

#[test]
fn engines_do_steps_of_servers_and_say_what_a_commit_costs() {
    // The newest of each product count their syncs.
    let mut newest: Vec<String> = Vec::new();
    for name in ["mysql", "postgres"] {
        newest.extend(servers().into_iter().rfind(|server| server.split('@').next() == Some(name)));
    }
    if newest.is_empty() {
        return;
    }
    let lab = Lab::new(&text(&newest));
    let output = lab.output(&["run", "t.toml", "--progress", "json"]);
    assert!(output.status.success(), "{}", both(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    let progress: Vec<serde_json::Value> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [begin, progress @ .., end] = &progress[..] else { panic!("{said}") };
    assert!(begin["phase"] == "begin" && begin["done"] == 0.0 && begin["seconds_left"].is_f64(), "{begin}");
    assert!(end["phase"] == "end" && end["done"] == 1.0 && end["experiment"] == 1, "{end}");
    assert!(!progress.is_empty(), "{said}");
    for line in progress {
        let done = line["done"].as_f64().unwrap();
        assert!(line["experiment"] == 1 && line["block"] == 1 && (0.0..=1.0).contains(&done), "{line}");
        assert!(line["step"].is_string() && line["target"].is_string() && line["rate"].is_f64(), "{line}");
    }
    let [recorded, sessions, measured, events] = lab.recorded();
    assert_eq!(recorded["status"], "done");
    assert!(sessions.as_array().unwrap().iter().all(|session| session["outcome"] == "done"), "{events}");
    let rows = measured.as_array().unwrap();
    let embedded = newest.len() as u64;
    let row = |target: u64, step: &str| {
        rows.iter()
            .find(|row| row["target"] == target && row["name"] == step)
            .unwrap_or_else(|| panic!("{measured}"))
    };
    for target in 0..=embedded {
        let load = row(target, "load");
        assert_eq!(load["result"]["ops"], 2000, "{load}");
        let [alone, together] = ["update-nonindex", "update-nonindex.c8"].map(|step| row(target, step));
        assert!(together["result"]["ops"].as_u64().unwrap() > 0);
        let of_engine = |row: &serde_json::Value| row["result"]["ops"].as_u64().unwrap();
        let syncs = |row: &serde_json::Value| row["metrics"]["sync/o"].as_f64();
        if target == embedded {
            // A put that is alone has a sync of its own, and eight writers never need more than one each.
            // Beyond ten thousand the engine counts in thousands, which may be too coarse to be shown.
            let is = |row: &serde_json::Value, wanted: std::ops::RangeInclusive<f64>| match syncs(row) {
                Some(syncs) => wanted.contains(&syncs),
                None => of_engine(load) + of_engine(alone) + of_engine(together) >= 10_000,
            };
            assert!(is(alone, 0.95..=1.05), "{alone}");
            assert!(is(together, f64::MIN_POSITIVE..=1.05), "{together}");
            continue;
        }
        // PostgreSQL says it from version 15 on.
        let name = &newest[target as usize];
        if !["postgres@12", "postgres@13", "postgres@14"].iter().any(|old| name.starts_with(old)) {
            assert!(syncs(alone).is_some(), "{alone}");
        }
    }
    let scan = row(embedded, "scan");
    assert!(scan["labels"].to_string().contains("no operation that does what scan"), "{scan}");
    let page = lab.text(&["report", "1", "-o", "site"]);
    let page = std::fs::read_to_string(lab.dir.path().join(page.trim())).unwrap();
    assert!(page.contains("outcrop/synced"), "it is in the tables");
    assert!(lab.text(&["explain", "1", "update-nonindex", "outcrop/synced"]).contains("outcrop"));
}

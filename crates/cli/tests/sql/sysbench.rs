//! Every test on every server.

use super::{Lab, experiment, servers};
use outcrop_lab_sql::sysbench::{TESTS, script::statements};
use std::collections::BTreeMap;

#[test]
fn every_test_runs_on_every_server_and_is_reported_with_its_costs() {
    let servers = servers();
    if servers.is_empty() {
        return;
    }
    let names: Vec<String> = TESTS.iter().map(|test| format!("'{}'", test.name)).collect();
    let steps = format!("'load', 'postwrite', {}", names.join(", "));
    let lab = Lab::new(&experiment(&servers, "sysbench", &steps, 0.1, ""));
    lab.text(&["run", "t.toml"]);
    let [experiment, sessions, measured, events] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    let failed = sessions.as_array().unwrap().iter().find(|session| session["outcome"] != "done");
    assert!(failed.is_none(), "{failed:?} {events}");
    let rows = measured.as_array().unwrap();
    let reported = TESTS.iter().filter(|test| test.reported).count() + 1;
    assert_eq!(rows.len(), reported * servers.len());
    let mut events_of: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let (name, result) = (row["name"].as_str().unwrap(), &row["result"]);
        let ops = result["ops"].as_u64().unwrap();
        assert!(ops > 0, "{name} did nothing");
        if let Some(test) = TESTS.iter().find(|test| test.name == name) {
            let each = if name.starts_with("scan") { 2000 } else { statements(test) };
            assert_eq!(ops % each, 0, "{name}: {ops} are no whole events of {each}");
            events_of.entry(name).or_default().push(ops / each);
        }
        let metric = |name: &str| row["metrics"][name].as_f64();
        assert!(metric("server_cpu_us/o").is_some_and(|cost| cost >= 0.0), "{row}");
        assert!(metric("client_cpu_us/o").is_some_and(|cost| cost > 0.0), "{row}");
        assert!(metric("server_vcs/o").is_some() && metric("proc_rKB/o").is_some(), "{row}");
        if name.starts_with("insert") {
            // The writes of a server are dirty pages of its own: their device may be none, but it is told.
            assert!(metric("proc_wKB/o").is_some_and(|kilobytes| kilobytes >= 0.0), "{row}");
        }
    }
    assert_eq!(events_of.len(), reported - 1);
    // A point query finds its row; a scan finds none.
    let found = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        (row["result"]["found"].as_u64().unwrap(), row["result"]["ops"].as_u64().unwrap())
    };
    let (rows_found, asked) = found("point-query.pre_range=100");
    assert_eq!(rows_found, asked);
    assert_eq!(found("scan_range=100").0, 0);
    for (index, server) in servers.iter().enumerate() {
        let version = sessions[index]["engine_version"].as_str().unwrap();
        assert!(
            servers.iter().any(|server| server.contains(version.split('-').next().unwrap())),
            "{server} {version}"
        );
    }
}

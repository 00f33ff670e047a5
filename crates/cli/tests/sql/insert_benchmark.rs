//! Every step of the Insert Benchmark on every server.

use super::{Lab, experiment, servers};

#[test]
fn every_step_runs_on_every_server_and_keeps_or_misses_its_rate_in_words() {
    let servers = servers();
    if servers.is_empty() {
        return;
    }
    let lab = Lab::new(&experiment(&servers, "insert-benchmark", "", 0.5, ""));
    lab.text(&["run", "t.toml"]);
    let [_, sessions, measured, events] = lab.recorded();
    let failed = sessions.as_array().unwrap().iter().find(|session| session["outcome"] != "done");
    assert!(failed.is_none(), "{failed:?} {events}");
    let rows = measured.as_array().unwrap();
    assert_eq!(rows.len(), 10 * servers.len());
    for row in rows {
        let (name, ops) = (row["name"].as_str().unwrap(), row["result"]["ops"].as_u64().unwrap());
        // 2000 rows, and 2500 that are inserted and deleted.
        let exactly = match name {
            "l.i0" => Some(2000),
            "l.x" => Some(2100),
            "l.i1" => Some(2000),
            "l.i2" => Some(500),
            _ => None,
        };
        assert!(exactly.map_or(ops > 0, |exactly| ops == exactly), "{name}: {ops}");
        if name.starts_with('q') {
            let found = row["result"]["found"].as_u64().unwrap();
            assert!(found > 0 && found <= ops * 10, "{name}: {found} rows of {ops} queries");
            let note = row["result"]["note"].as_str().unwrap();
            assert!(note.contains("rows inserted and"), "{note}");
            let kept = row["result"]["writer_achieved"].as_f64().unwrap();
            let labels = row["labels"].as_array().unwrap();
            let missed = labels.iter().any(|label| label["name"] == "writer behind");
            assert_eq!(missed, kept < 0.95, "{name}: {kept} {labels:?}");
        }
    }
}

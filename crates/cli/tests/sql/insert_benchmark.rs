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
        let metric = |name: &str| row["metrics"][name].as_f64();
        let deletes = name.starts_with('q') || matches!(name, "l.i1" | "l.i2");
        assert_eq!(metric("delete_search").is_some_and(|seconds| seconds > 0.0), deletes, "{name}: {row}");
        let [database, files] = ["dbgb1", "dbgb2"].map(|name| metric(name).unwrap());
        assert!(database > 0.0 && database < files, "{name}: {database} of {files} GB");
        let beside = |of: usize| {
            let seconds = row["result"]["beside"][of]["rows_per_second"].as_array();
            seconds.map_or(0, |seconds| seconds.iter().map(|rows| rows.as_u64().unwrap()).sum())
        };
        let counted = if name.starts_with('q') { [0, 1] } else { [1, 1] };
        for of in counted {
            let rows = if deletes { row["result"]["rows"][of].as_u64().unwrap() } else { 0 };
            assert_eq!(beside(of), rows, "{name}: rows of all seconds are all rows");
        }
        if name.starts_with('q') {
            let found = row["result"]["found"].as_u64().unwrap();
            assert!(found > 0 && found <= ops * 10, "{name}: {found} rows of {ops} queries");
            let note = row["result"]["note"].as_str().unwrap();
            assert!(note.contains("rows inserted and"), "{note}");
            // Eight statements of 50 rows, and the one that each was at when the step ended.
            let rows = [0, 1].map(|of| row["result"]["rows"][of].as_u64().unwrap());
            assert!(rows[0].abs_diff(rows[1]) <= 10 * 50, "{name}: {rows:?}");
            let kept = row["result"]["writer_achieved"].as_f64().unwrap();
            let labels = row["labels"].as_array().unwrap();
            let missed = labels.iter().any(|label| label["name"] == "writer behind");
            assert_eq!(missed, kept < 0.95, "{name}: {kept} {labels:?}");
        }
    }
}

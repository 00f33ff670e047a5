//! A regression of known size on one of two equal servers is called, with its cause: of the client, and of the server.
//!
//! The planted cost is many times that of an event, and costs are compared by processor time: a machine that is busy with
//! something else can hide neither.

use super::{Lab, experiment, server};
use serde_json::Value;

/// Of six blocks the least p of a sign-flip test is 0.031: too much, once a second cell may be called. Eight give 0.008.
///
/// Runs point queries on `server` plain and with `slower` in its configuration; gives the verdict's word, processor time of the
/// server and of the client, each as the target's over the base's, whether connections of both were seen at work, and the explanation as text.
fn beside(server: &str, slower: &str) -> (String, [f64; 2], bool, String) {
    let more = format!("configs = ['plain', 'slower']\n[config.plain]\n[config.slower]\n{slower}\n");
    let text = experiment(&[server.to_string()], "sysbench", "'load', 'point-query'", 0.4, &more);
    let lab = Lab::new(&text.replace("rounds = 1", "rounds = 8"));
    lab.text(&["run", "t.toml"]);
    // It ends with a status of its own where something got slower.
    let compared: Value = serde_json::from_slice(&lab.output(&["compare", "1", "--json"]).stdout).unwrap();
    let of_queries = |cell: &&Value| cell["step"] == "point-query" && cell["verdict"].is_object();
    let cell = compared["cells"].as_array().unwrap().iter().find(of_queries).unwrap();
    let explained: Value =
        serde_json::from_str(&lab.text(&["explain", "1", "point-query", "slower", "--json"])).unwrap();
    let costs = ["server_cpu_us/o", "client_cpu_us/o"].map(|name| {
        let of = |side: &str| explained["medians"][side][name].as_f64().unwrap();
        of("target") / of("base")
    });
    let word = cell["verdict"]["word"].as_str().unwrap().to_string();
    let [_, _, measured, _] = lab.recorded();
    let was_seen = |target: u64| {
        let waits = |row: &&Value| row["result"]["waits"].as_object().is_some_and(|waits| !waits.is_empty());
        let rows = measured.as_array().unwrap().iter();
        rows.filter(|row| row["target"] == target && row["name"] == "point-query").any(|row| waits(&row))
    };
    let both_seen = was_seen(0) && was_seen(1);
    (word, costs, both_seen, lab.text(&["explain", "1", "point-query", "slower"]))
}

#[test]
fn a_planted_cost_is_called_with_its_cause() {
    let Some(server) = server("postgres") else { return };
    let (word, [of_server, of_client], _, explained) = beside(&server, "planted = 10.0");
    assert_eq!(word, "regression", "{explained}");
    assert!(of_client > 3.0 && of_client > 2.0 * of_server, "{explained}");
}

#[test]
fn a_cost_of_the_server_is_told_from_one_of_its_client() {
    let Some(server) = server("postgres") else { return };
    // Each execution of a prepared statement is planned anew, and parse trees and plans go to the log.
    let slow = "settings = '''\nplan_cache_mode = force_custom_plan\ndebug_print_parse = on\ndebug_print_rewritten = on\n\
                debug_print_plan = on\n'''";
    let (word, [of_server, of_client], both_seen, explained) = beside(&server, slow);
    assert_eq!(word, "regression", "{explained}");
    assert!(of_server > 3.0 && of_server > 2.0 * of_client, "{explained}");
    assert!(explained.contains("plan_cache_mode"), "an option that differs is named: {explained}");
    // Ten times a second somebody looks. On a busy machine looks are fewer, and may all have found the connection of the base idle.
    let shown = explained.contains("connections were seen in") && explained.contains("running");
    assert_eq!(shown, both_seen, "{explained}");
}

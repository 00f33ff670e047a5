//! Statements of an event, counted by the server itself.

use super::{Lab, experiment, server};

#[test]
fn the_server_counts_the_statements_that_the_client_does() {
    let Some(server) = server("postgres") else { return };
    let steps = "'load', 'read-write_range=10'";
    // Its own module counts; what it counted is written to the log when the server stops by a last statement of ours: the
    // settings of the session ask for it.
    let more = "configs = ['counted']\n[config.counted]\nsettings = '''\nlog_statement_stats = off\n\
        log_min_duration_statement = 0\n'''\n";
    let lab = Lab::new(&experiment(std::slice::from_ref(&server), "sysbench", steps, 0.2, more));
    lab.text(&["run", "t.toml"]);
    let log = lab.text(&["log", "1", &format!("{}/counted", resolved(&lab)), "--block", "1"]);
    let executed = |what: &str| {
        log.lines().filter(|line| line.contains("execute ") && line.contains(what)).count() as u64
    };
    // The log is cut in its middle when it is long: events that are there as a whole are compared.
    let begins = executed("BEGIN");
    assert!(begins > 10, "{log}");
    let ratio = |what: &str, each: f64| {
        let share = executed(what) as f64 / begins as f64 / each;
        assert!((0.95..1.05).contains(&share), "{what}: {} for {begins} transactions", executed(what));
    };
    ratio("SELECT c FROM sbtest1 WHERE id=$1", 10.0);
    ratio("SELECT SUM(k)", 1.0);
    ratio("SELECT DISTINCT c", 1.0);
    ratio("UPDATE sbtest1 SET k=k+1", 1.0);
    ratio("UPDATE sbtest1 SET c=$1", 1.0);
    ratio("DELETE FROM sbtest1", 1.0);
    ratio("INSERT INTO sbtest1 (id, k, c, pad)", 1.0);
    ratio("COMMIT", 1.0);
}

/// The name of the only target, without its configuration.
fn resolved(lab: &Lab) -> String {
    let [experiment, ..] = lab.recorded();
    let name = experiment["plan"]["targets"][0]["name"].as_str().unwrap().to_string();
    name.split('/').next().unwrap().to_string()
}

//! The requests that are refused, and in which words.

use super::foreign::{Foreign, PASSWORD, free_port};
use super::{Lab, experiment, server, servers};
use outcrop_lab::planning::plan::Plan;
use outcrop_lab_sql::Connection;
use std::net::TcpListener;
use std::path::Path;

#[test]
fn a_setting_that_the_version_does_not_know_is_refused_by_name_when_planned() {
    for (name, wrong, meant) in [
        ("postgres", "shared_bufers = 1GB", "shared_buffers"),
        ("mysql", "innodb_bufer_pool_size=1G", "innodb_buffer_pool_size"),
    ] {
        let Some(server) = server(name) else { continue };
        let more = format!("configs = ['a']\n[config.a]\nsettings = '''\n# one\n{wrong}\n'''\n");
        let lab = Lab::new(&experiment(&[server], "sysbench", "'load', 'scan'", 0.2, &more));
        let said = lab.refusal(&["plan", "t.toml"]);
        let named = wrong.split(['=', ' ']).next().unwrap();
        assert!(said.contains(&format!("knows no setting \"{named}\"")), "{said}");
        assert!(said.contains(&format!("did you mean \"{meant}\"")), "{said}");
    }
}

#[test]
fn a_server_that_does_not_come_up_is_shown_with_the_end_of_its_log() {
    let Some(server) = server("postgres") else { return };
    // A name that it knows, and a value that it does not.
    let more = "configs = ['a']\n[config.a]\nsettings = 'shared_buffers = many'\n";
    let lab = Lab::new(&experiment(&[server], "sysbench", "'load', 'scan'", 0.2, more));
    lab.output(&["run", "t.toml"]);
    let [_, sessions, ..] = lab.recorded();
    let why = sessions[0]["error"].as_str().unwrap();
    assert!(why.contains("did not come up") && why.contains("the end of its log"), "{why}");
    assert!(why.contains("shared_buffers"), "{why}");
}

#[test]
fn a_port_that_is_taken_fails_the_session() {
    let Some(server) = server("postgres") else { return };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let more = format!("port = {port}\n");
    let lab = Lab::new(&experiment(&[server], "sysbench", "'load', 'scan'", 0.2, &more));
    lab.output(&["run", "t.toml"]);
    let [_, sessions, ..] = lab.recorded();
    let why = sessions[0]["error"].as_str().unwrap();
    assert!(why.contains(&format!("port {port}")) && why.contains("in use"), "{why}");
}

#[test]
fn a_server_by_url_needs_its_password_and_keeps_schemas_that_are_not_the_lab_s() {
    let Some(server) = server("postgres") else { return };
    let steps = "'load', 'postwrite', 'read-only-sum', 'insert'";
    let foreign = Foreign::start(&server, &[]);
    let port = foreign.address.port;
    let more = format!("url = 'postgres://me@127.0.0.1:{port}/postgres'\n");
    let run = |password: &str| {
        let lab = Lab::new(&experiment(&["postgres".to_string()], "sysbench", steps, 0.2, &more));
        let output = lab.command(&["run", "t.toml"]).env("OUTCROP_SQL_PASSWORD", password).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains(PASSWORD), "{said}");
        let [_, sessions, measured, _] = lab.recorded();
        (sessions[0]["error"].as_str().unwrap_or_default().to_string(), measured)
    };
    let (why, _) = run("wrong");
    assert!(why.contains("password authentication failed"), "{why}");
    assert!(why.contains(&format!("me@127.0.0.1:{port}/postgres")), "{why}");

    let mut owner = Connection::open(&foreign.address).unwrap();
    owner.run("CREATE DATABASE outcrop_lab").unwrap();
    let precious = foreign.address.with_database("outcrop_lab");
    Connection::open(&precious).unwrap().run("CREATE TABLE sbtest1 (precious INTEGER)").unwrap();
    let (why, _) = run(PASSWORD);
    assert!(why.contains("outcrop_lab") && why.contains("not the lab's own"), "{why}");
    let column = Connection::open(&precious).unwrap().value("SELECT count(precious) FROM sbtest1").unwrap();
    assert_eq!(column.as_deref(), Some("0"), "it is still there");

    owner.run("DROP DATABASE outcrop_lab").unwrap();
    let (why, measured) = run(PASSWORD);
    assert_eq!(why, "");
    let rows = measured.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    // Processes of others are not looked at.
    assert!(rows.iter().all(|row| row["metrics"]["server_cpu_us/o"].is_null()), "{measured}");
}

#[test]
fn a_server_that_is_not_there_is_named_without_a_password() {
    let port = free_port();
    let more = format!("url = 'postgres://me@127.0.0.1:{port}/x'\n");
    let lab = Lab::new(&experiment(&["postgres".to_string()], "sysbench", "'load', 'scan'", 0.2, &more));
    lab.output(&["run", "t.toml"]);
    let [_, sessions, ..] = lab.recorded();
    let why = sessions[0]["error"].as_str().unwrap();
    assert!(why.contains(&format!("cannot connect to me@127.0.0.1:{port}/x")), "{why}");
}

#[test]
fn the_shipped_experiments_are_planned_with_settings_that_their_servers_know() {
    let here = servers();
    if here.is_empty() {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks");
    for (name, least) in
        [("sysbench-postgres", 4), ("insert-postgres", 3), ("sysbench-mysql", 2), ("durability", 9)]
    {
        let text = std::fs::read_to_string(dir.join(name).with_extension("toml")).unwrap();
        // Only of servers that are here; `18.x` is the newest 18.
        let mut value: toml::Value = toml::from_str(&text).unwrap();
        let is_here = |target: &toml::Value| {
            let wanted = target["server"].as_str().unwrap().trim_end_matches('x').to_string();
            here.iter().any(|server| server.starts_with(&wanted))
        };
        value["target"].as_array_mut().unwrap().retain(is_here);
        let base = value["base"].as_str().unwrap().split('/').next().unwrap().to_string();
        if !here.contains(&base) {
            value.as_table_mut().unwrap().remove("base");
        }
        for (_, config) in value["config"].as_table_mut().unwrap().iter_mut() {
            let file = dir.join(config["file"].as_str().unwrap()).display().to_string();
            config.as_table_mut().unwrap().insert("file".into(), file.into());
        }
        let lab = Lab::new(&toml::to_string(&value).unwrap());
        let plan = lab.text(&["plan", "t.toml", "--budget", "15m", "--json"]);
        let sized: Plan = serde_json::from_str(&plan).unwrap();
        let estimate = sized.estimate().seconds;
        assert!(estimate <= 901.0, "{name}: about {estimate:.0} s of 900");
        assert!(sized.steps.iter().all(|step| step.step.seconds > 0.0), "{name}: every step has some time");
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        assert_eq!(
            (&plan["left_out"], &plan["budget_seconds"]),
            (&serde_json::json!([]), &900.into()),
            "{name}"
        );
        let targets = plan["targets"].as_array().unwrap();
        assert_eq!(targets.len(), least, "{name}");
        assert!(targets.iter().all(|target| !target["options"].as_str().unwrap().contains("= {")), "{name}");
    }
}

//! Where sessions have their data, and who else can get there.

use super::foreign::free_port;
use super::{Lab, both, experiment, one_of_each};
use outcrop_lab_sql::{Address, Connection, Product};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn sessions_on_copied_data_are_measured_on_every_product() {
    let servers = one_of_each();
    if servers.is_empty() {
        return;
    }
    let text = experiment(&servers, "sysbench", "'load', 'postwrite', 'point-query', 'insert'", 0.3, "");
    let lab = Lab::new(&text.replace("rounds = 1", "rounds = 2\ndata = 'restored'"));
    lab.text(&["run", "t.toml"]);
    let [experiment, sessions, measured, events] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    let failed = sessions.as_array().unwrap().iter().find(|session| session["outcome"] != "done");
    assert!(failed.is_none(), "{failed:?} {events}");
    assert!(events.to_string().contains("the data set of"), "{events}");
    let queries: Vec<_> = measured
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["name"].as_str().unwrap().starts_with("point-query"))
        .collect();
    assert_eq!(queries.len(), 2 * servers.len());
    for row in queries {
        assert!(row["result"]["ops"].as_u64().unwrap() > 0, "{row}");
        assert_eq!(row["result"]["found"], row["result"]["ops"], "every row was copied: {row}");
    }
}

#[test]
fn a_server_on_a_port_lets_nobody_in_without_its_password() {
    for server in one_of_each() {
        let port = free_port();
        let more = format!("port = {port}\n");
        let lab = Lab::new(&experiment(
            std::slice::from_ref(&server),
            "sysbench",
            "'load', 'point-query'",
            1.0,
            &more,
        ));
        let (product, user, database) = match server.starts_with("postgres") {
            true => (Product::Postgres, "outcrop", "postgres"),
            false => (Product::MySql, "root", ""),
        };
        let stranger = |password: &str| Address {
            product,
            socket: None,
            host: "127.0.0.1".into(),
            port,
            user: user.into(),
            password: Some(password.to_string()),
            database: database.into(),
        };
        let mut run =
            lab.command(&["run", "t.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut refused = Vec::new();
        while run.try_wait().unwrap().is_none() {
            for password in ["", "guess"] {
                match Connection::open(&stranger(password)) {
                    Ok(_) => panic!("{server}: whoever asks is let in with {password:?}"),
                    Err(why) if why.contains("assword") => refused.push(why),
                    Err(_) => {}
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!refused.is_empty(), "{server} was not there to be asked");
        let [_, sessions, measured, events] = lab.recorded();
        assert_eq!(sessions[0]["outcome"], "done", "{server}: {sessions} {events}");
        assert_eq!(measured.as_array().unwrap().len(), 2, "the lab itself has the password: {measured}");
        let plan = both(&lab.output(&["plan", "t.toml"]));
        assert!(!plan.contains("password"), "{plan}");
    }
}

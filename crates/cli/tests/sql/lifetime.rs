//! Servers end with their sessions, however those end.

use super::{FAR, Lab, both, experiment, one_of_each, servers};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Processes whose command line or directory is below `dir`.
fn processes(dir: &Path) -> Vec<u32> {
    // It may not be there yet; that it has no links on its way is what temporary directories are like.
    let name = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf()).display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let place = std::fs::read_link(format!("/proc/{id}/cwd")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&name) || place.starts_with(&name)
    };
    ids.filter(of).filter(|id| *id != std::process::id()).collect()
}

/// Starts a run whose steps take long, and waits until its servers are at work.
fn at_work(lab: &Lab, data: &Path) -> Child {
    let data = data.to_str().unwrap();
    let mut run = lab
        .command(&["run", "t.toml", "--data", data])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + FAR;
    let loaded = |path: &Path| {
        // The first measured step is recorded once the load is over.
        std::fs::read_dir(path).is_ok_and(|entries| entries.count() > 1) && processes(path).len() > 5
    };
    while !loaded(Path::new(data)) {
        assert!(Instant::now() < deadline && run.try_wait().unwrap().is_none(), "the run did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    run
}

#[test]
fn a_killed_run_leaves_no_process_and_goes_on() {
    let servers = one_of_each();
    if servers.is_empty() {
        return;
    }
    let lab = Lab::new(&experiment(&servers, "sysbench", "'load', 'point-query', 'insert'", 1.5, ""));
    let data = lab.dir.path().join("data");
    let mut run = at_work(&lab, &data);
    run.kill().unwrap();
    run.wait().unwrap();
    let deadline = Instant::now() + FAR;
    while !processes(&data).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", processes(&data));
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = lab.output(&["run", "t.toml", "--data", data.to_str().unwrap(), "--resume"]);
    assert!(output.status.success(), "{}", both(&output));
    let [experiment, ..] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "nothing of either run is left");
}

#[test]
fn a_server_that_is_killed_fails_its_session_and_not_the_run() {
    let servers = servers();
    if servers.is_empty() {
        return;
    }
    let servers = &servers[..1];
    let lab = Lab::new(&experiment(servers, "sysbench", "'load', 'point-query', 'insert'", 1.5, ""));
    let data = lab.dir.path().join("data");
    let mut run = lab
        .command(&["run", "t.toml", "--data", data.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(run.stderr.take().unwrap());
    let deadline = Instant::now() + FAR;
    let server = loop {
        assert!(Instant::now() < deadline && run.try_wait().unwrap().is_none(), "the run did not begin");
        let ids = processes(&data);
        let is_server = |id: &&u32| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
            // Not one that makes a data directory: those have no socket.
            let listens = String::from_utf8_lossy(&line).contains("/socket");
            listens && (first.ends_with(b"/bin/postgres") || first.ends_with(b"/bin/mysqld"))
        };
        if let Some(id) = ids.iter().find(is_server) {
            break *id;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let killed = std::process::Command::new("kill").args(["-9", &server.to_string()]).status().unwrap();
    assert!(killed.success());
    run.wait().unwrap();
    let said: Vec<String> = said.lines().map_while(Result::ok).collect();
    let [experiment, sessions, _, events] = lab.recorded();
    assert_eq!(experiment["status"], "done", "the run goes on");
    assert_eq!(sessions[0]["outcome"], "failed", "{events}");
    let why = sessions[0]["error"].as_str().unwrap();
    assert!(why.contains("server") || why.contains("come up"), "{why} {said:?}");
    assert!(processes(&data).is_empty());
}

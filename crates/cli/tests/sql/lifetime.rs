//! Servers end with their sessions, however those end.

use super::{FAR, Lab, both, experiment, one_of_each, server};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
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

/// The files of `/dev/shm` that these processes map.
fn shared_memory(dir: &Path) -> Vec<PathBuf> {
    let maps = |id: u32| std::fs::read_to_string(format!("/proc/{id}/maps")).unwrap_or_default();
    let files = |maps: String| {
        let found = |line: &str| line.find("/dev/shm/PostgreSQL.").map(|at| PathBuf::from(&line[at..]));
        maps.lines().filter_map(found).collect::<Vec<_>>()
    };
    let mut all: Vec<PathBuf> = processes(dir).into_iter().map(maps).flat_map(files).collect();
    all.sort();
    all.dedup();
    all
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
    // Steps so long that a busy machine sees the servers at work.
    let lab = Lab::new(&experiment(&servers, "sysbench", "'load', 'point-query', 'insert'", 5.0, ""));
    let data = lab.dir.path().join("data");
    let mut run = at_work(&lab, &data);
    // PostgreSQL's processes share memory, perhaps not all of them yet.
    let deadline = Instant::now() + FAR;
    let mut shared = shared_memory(&data);
    while shared.is_empty() && servers.iter().any(|server| server.starts_with("postgres")) {
        assert!(Instant::now() < deadline, "no process of PostgreSQL has memory that is shared");
        assert!(run.try_wait().unwrap().is_none(), "the run is over, and nobody saw its shared memory");
        std::thread::sleep(Duration::from_millis(20));
        shared = shared_memory(&data);
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let deadline = Instant::now() + FAR;
    let left = || shared.iter().filter(|path| path.exists()).count();
    while !processes(&data).is_empty() || left() > 0 {
        assert!(Instant::now() < deadline, "left: {:?} of {shared:?}", processes(&data));
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = lab.output(&["run", "t.toml", "--data", data.to_str().unwrap(), "--resume"]);
    assert!(output.status.success(), "{}", both(&output));
    let [experiment, ..] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    assert!(!data.exists(), "the first run made it, and nothing of either run is left");
}

/// Number of the process of PostgreSQL's server below `session`, once it accepts connections.
fn ready(session: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(session.join("data/postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    (lines.last() == Some(&"ready")).then(|| lines[0].parse().unwrap())
}

#[test]
fn a_server_that_is_killed_fails_its_session_and_not_the_run() {
    let Some(server) = server("postgres") else { return };
    // Two targets, of which one goes on without the other, and two blocks, of which the second has both again.
    let more = "configs = ['one', 'two']\n[config.one]\n[config.two]\n";
    let steps = "'load', 'point-query', 'insert'";
    let text = experiment(std::slice::from_ref(&server), "sysbench", steps, 1.0, more);
    let lab = Lab::new(&text.replace("rounds = 1", "rounds = 2"));
    let data = lab.dir.path().join("data");
    let mut run = lab
        .command(&["run", "t.toml", "--data", data.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(run.stderr.take().unwrap());
    let deadline = Instant::now() + FAR;
    // The second is started once the first waits for its turns.
    let first = loop {
        assert!(Instant::now() < deadline && run.try_wait().unwrap().is_none(), "the run did not begin");
        match [0, 1].map(|session| ready(&data.join(format!("session-{session}")))) {
            [Some(first), Some(_)] => break first,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let memory = shared_memory(&data.join("session-0"));
    assert!(!memory.is_empty(), "it has some");
    let killed = std::process::Command::new("kill").args(["-9", &first.to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(run.wait().unwrap().success(), "the run goes on");
    let said: Vec<String> = said.lines().map_while(Result::ok).collect();
    let [experiment, sessions, measured, events] = lab.recorded();
    assert_eq!(experiment["status"], "done");
    let sessions = sessions.as_array().unwrap();
    let (failed, done): (Vec<_>, Vec<_>) =
        sessions.iter().partition(|session| session["outcome"] == "failed");
    assert_eq!((failed.len(), done.len()), (1, 3), "{events} {said:?}");
    assert_eq!(failed[0]["block"], 0);
    let why = failed[0]["error"].as_str().unwrap();
    assert!(why.starts_with("step "), "it was at work: {why}");
    // The other one of the block, and both of the next.
    let of_others = measured.as_array().unwrap().iter().filter(|row| row["session"] != failed[0]["id"]);
    assert_eq!(of_others.count(), 9, "{measured}");
    let remark = format!("block 1: {why}");
    assert!(events.to_string().contains(remark.split('\n').next().unwrap()), "{events}");
    assert!(said.iter().any(|line| line.contains("block 1: step ")), "{said:?}");
    let page = lab.text(&["report", "1", "-o", "site"]);
    let page = std::fs::read_to_string(lab.dir.path().join(page.trim())).unwrap();
    assert!(page.contains("failed in block 1: step "), "the page says so");
    assert!(processes(&data).is_empty());
    assert!(memory.iter().all(|file| !file.exists()), "{memory:?}");
}

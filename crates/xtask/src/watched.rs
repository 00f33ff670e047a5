//! Runs the tests, and ends them if they hang: a run that says which test it was is worth more than one that somebody ends from outside.

use outcrop_pingpong::progress::{Patience, Progress, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The patience with tests: nothing of them runs, or no line comes of so much processor time.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(300), work: Duration::from_secs(3600) };
/// How often they are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The tests and lines that were heard of.
#[derive(Default)]
struct Heard {
    lines: AtomicU64,
    /// Tests that take long, and have not ended.
    slow: Mutex<BTreeSet<String>>,
}

impl Heard {
    fn line(&self, line: &str) {
        // Relaxed: a number that is looked at from time to time.
        self.lines.fetch_add(1, Ordering::Relaxed);
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rest) = line.strip_prefix("test ") else {
            if line.starts_with("running ") {
                slow.clear();
            }
            return;
        };
        if let Some((name, _)) = rest.split_once(" has been running for over") {
            slow.insert(name.to_string());
        } else if let Some((name, _)) = rest.split_once(" ... ") {
            slow.remove(name);
        }
    }

    fn slow(&self) -> String {
        let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = slow.iter().map(String::as_str).collect();
        if names.is_empty() { "no test has said that it takes long".into() } else { names.join(", ") }
    }
}

/// Runs `command` to its end. Its standard output goes through here.
///
/// # Errors
/// It does not start, it ends with an error, or it hangs: with the tests that had not ended. The stacks of its processes are printed then, if
/// there is a debugger (`gdb`).
pub fn run(command: &mut Command) -> Result<(), String> {
    run_patiently(command, PATIENCE, LOOK)
}

fn run_patiently(command: &mut Command, patience: Patience, look: Duration) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| format!("{name}: {error}"))?;
    let output = child.stdout.take().expect("it is piped");
    let heard = Heard::default();
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                heard.line(&line);
            }
        });
        wait(&mut child, &heard, patience, look).inspect_err(|_| {
            let family = processes(child.id());
            family.keys().filter(|pid| **pid != child.id()).for_each(|pid| print_stacks(*pid));
            kill(&family);
            // Its error is that it was killed.
            let _ = child.wait();
        })
    });
    // Only now every line was heard.
    match ended {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{name} failed")),
        Err(how) => Err(format!("{name}: {how}; not ended: {}", heard.slow())),
    }
}

/// True if it ended well; the error says how it hangs.
fn wait(child: &mut Child, heard: &Heard, patience: Patience, look: Duration) -> Result<bool, String> {
    let start = Instant::now();
    let mut progress = Progress::new(patience);
    let mut most = BTreeMap::new();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status.success());
        }
        let family = processes(child.id());
        for (pid, process) in &family {
            let ticks = most.entry(*pid).or_insert(0);
            *ticks = process.ticks.max(*ticks);
        }
        let sample = Sample {
            ticks: most.values().sum(),
            wants_to_run: family.values().any(|process| process.wants_to_run),
            events: heard.lines.load(Ordering::Relaxed),
        };
        if let Some(how) = progress.look(start.elapsed(), sample) {
            return Err(how);
        }
        std::thread::sleep(look);
    }
}

/// A process at a moment.
#[derive(Clone, Copy, Debug)]
struct Process {
    /// Processor time, as `/proc` counts.
    ticks: u64,
    wants_to_run: bool,
}

/// A process and all that come of it, by their ids.
fn processes(of: u32) -> BTreeMap<u32, Process> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let line = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        all.extend(parent_and_process(&line).map(|(parent, process)| (pid, (parent, process))));
    }
    let mut family = BTreeMap::new();
    let mut wanted = vec![of];
    while let Some(pid) = wanted.pop() {
        let Some((_, process)) = all.get(&pid) else { continue };
        let runs = process.wants_to_run || any_thread_wants_to_run(pid);
        if family.insert(pid, Process { wants_to_run: runs, ..*process }).is_none() {
            wanted.extend(all.iter().filter(|(_, (parent, _))| *parent == pid).map(|(child, _)| *child));
        }
    }
    family
}

/// Of a line of `/proc/PID/stat`.
fn parent_and_process(line: &str) -> Option<(u32, Process)> {
    // The name before them may have anything in it.
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = number(11)? + number(12)?;
    Some((number(1)? as u32, Process { ticks, wants_to_run: is_busy(fields[0]) }))
}

/// Runs or would, or waits for a device.
fn is_busy(state: &str) -> bool {
    matches!(state, "R" | "D")
}

fn any_thread_wants_to_run(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let state = |path: &Path| {
        let line = std::fs::read_to_string(path.join("stat")).ok()?;
        let (_, rest) = line.rsplit_once(')')?;
        Some(is_busy(rest.split_whitespace().next()?))
    };
    threads.into_iter().any(|thread| state(&thread.path()).unwrap_or(false))
}

fn print_stacks(pid: u32) {
    println!(
        "== process {pid}: {}",
        std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default().display()
    );
    let pid = pid.to_string();
    let debugger = Command::new("gdb")
        .args(["-p", &pid, "-batch", "-ex", "thread apply all backtrace 40"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if debugger.is_err() {
        println!("there is no gdb to print its stacks");
    }
}

fn kill(family: &BTreeMap<u32, Process>) {
    let pids = family.keys().map(u32::to_string);
    // Best effort: one that ended meanwhile is no error.
    let _ = Command::new("kill").arg("-9").args(pids).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn one_that_ends_is_left_alone() {
        run(&mut shell("echo 'test a ... ok'")).unwrap();
        assert_eq!(run(&mut shell("exit 3")).unwrap_err(), "sh failed");
    }

    #[test]
    fn a_hanging_child_is_killed_with_all_that_came_of_it_and_its_test_is_named() {
        let script = "echo 'running 2 tests'; echo 'test b has been running for over 60 seconds'; \
                      echo 'test c has been running for over 60 seconds'; echo 'test c ... ok'; sleep 10000 & wait";
        let patience = Patience { idle: Duration::from_millis(300), ..PATIENCE };
        // It returns at all because the sleeping grandchild, which has the pipe, is killed too.
        let error = run_patiently(&mut shell(script), patience, Duration::from_millis(20)).unwrap_err();
        assert!(error.contains("nothing of it ran") && error.ends_with("not ended: b"), "{error}");
    }
}

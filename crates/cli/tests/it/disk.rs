//! A disk that fills up while an experiment runs: a small file system of its own, filled at a chosen moment.

use crate::lab::{Lab, TINY, count};
use std::process::Command;

/// Runs `script` with a file system of so many MB mounted on `small`, seen by nobody else. `None` where that is not allowed.
fn with_small_disk(lab: &Lab, megabytes: u32, script: &str) -> Option<(bool, String)> {
    std::fs::create_dir(lab.dir.path().join("small")).unwrap();
    let mount = format!("mount -t tmpfs -o size={megabytes}m none small || exit 77");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &format!("{mount}\n{script}")])
        .env("OUTCROP", env!("CARGO_BIN_EXE_outcrop"))
        .env("OUTCROP_DATA_DIRS", lab.dir.path().join("data-dirs"))
        .current_dir(lab.dir.path())
        .output();
    let said = |output: &std::process::Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    match output {
        Ok(output) if output.status.code() == Some(77) || said(&output).starts_with("unshare:") => {
            println!("skipped: a file system cannot be mounted here: {}", said(&output));
            None
        }
        Ok(output) => Some((output.status.success(), said(&output))),
        Err(error) => {
            println!("skipped: cannot run unshare: {error}");
            None
        }
    }
}

/// Megabytes that hold what three targets write in as long as the steps take, on a fast machine, too.
const ROOMY: u32 = 400;

/// Fills the disk as soon as the second block runs, and frees it after the run has stopped.
const FILL: &str = "
( while [ ! -e small/d/session-4 ]; do sleep 0.02; done; cat /dev/zero > small/filler ) 2>/dev/null &
trap \"kill $! 2>/dev/null\" EXIT
$OUTCROP lab run tiny.toml --data small/d --store STORE && exit 3
[ -s small/filler ] || exit 4
rm small/filler
$OUTCROP lab run tiny.toml --data small/d --store STORE --resume || exit 5
$OUTCROP lab list --store STORE
$OUTCROP lab show 1 --json --store STORE > shown.json
";

fn is_stopped_and_resumed(store: &str) {
    let lab = Lab::new(&TINY.replace("rounds = 2", "rounds = 3").replace("seconds = 0.15", "seconds = 0.4"));
    let Some((done, said)) = with_small_disk(&lab, ROOMY, &FILL.replace("STORE", store)) else { return };
    assert!(done, "{said}");
    assert!(said.contains("full") && said.contains("what was measured is kept"), "{said}");
    assert!(said.contains("go on with outcrop lab run tiny.toml --resume"), "{said}");
    assert!(said.contains("10/10") && said.contains("done"), "one experiment, to its end: {said}");
    let text = std::fs::read_to_string(lab.dir.path().join("shown.json")).unwrap();
    let [_, sessions, measured, _]: [serde_json::Value; 4] = serde_json::from_str(&text).unwrap();
    assert_eq!(count(&sessions, |session| session["outcome"] == "done"), 10, "nobody is blamed for the disk");
    assert_eq!(count(&measured, |_| true), 27, "three targets, three blocks, three steps");
}

#[test]
fn a_disk_that_fills_up_with_data_stops_the_run_and_it_resumes() {
    is_stopped_and_resumed("lab.sqlite");
}

#[test]
fn a_disk_that_fills_up_with_the_record_stops_the_run_and_it_resumes() {
    is_stopped_and_resumed("small/lab.sqlite");
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_runs() {
    let lab = Lab::new(&TINY.replace("keys = 2000", "keys = 200000"));
    let script = "$OUTCROP lab run tiny.toml --data small/d && exit 3; [ ! -e outcrop-lab.sqlite ]";
    let Some((done, said)) = with_small_disk(&lab, 48, script) else { return };
    assert!(done && said.contains("no space: small/d has 4"), "{said}");
}

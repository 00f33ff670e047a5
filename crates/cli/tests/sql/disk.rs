//! A disk that fills up below a server: a small file system of its own, filled at a chosen moment.

use super::{Lab, experiment, one_of_each};
use std::process::Command;

/// Megabytes that hold what one server writes in as long as the steps take.
const ROOMY: u32 = 900;

/// Fills the disk as soon as the second block runs, and frees it once the run has stopped.
const SCRIPT: &str = "
mount -t tmpfs -o size=SIZEm,mode=755 none small || exit 77
( while [ ! -e small/d/session-1 ]; do sleep 0.02; done; cat /dev/zero > small/filler ) 2>/dev/null &
trap \"kill $! 2>/dev/null\" EXIT
$OUTCROP lab run t.toml --data small/d && exit 3
[ -s small/filler ] || exit 4
rm small/filler
$OUTCROP lab run t.toml --data small/d --resume || exit 5
";

#[test]
fn a_disk_that_fills_up_stops_the_run_and_it_resumes() {
    for server in one_of_each() {
        // Two rounds of steps that write: a refusal of the full disk is seen at once.
        let text = experiment(
            std::slice::from_ref(&server),
            "sysbench",
            "'load', 'insert', 'update-index'",
            0.5,
            "",
        );
        let lab = Lab::new(&text.replace("rounds = 1", "rounds = 2"));
        std::fs::create_dir(lab.dir.path().join("small")).unwrap();
        let script = SCRIPT.replace("SIZE", &ROOMY.to_string());
        // Seen by nobody else. Without rights of its own a server cannot be given to another user, so this is for root.
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .env("OUTCROP", env!("CARGO_BIN_EXE_outcrop"))
            .env("OUTCROP_DATA_DIRS", lab.dir.path().join("data-dirs"))
            .current_dir(lab.dir.path())
            .output();
        let output = match output {
            Ok(output)
                if output.status.code() != Some(77) && !super::both(&output).starts_with("unshare:") =>
            {
                output
            }
            other => return println!("skipped: a file system cannot be mounted here: {other:?}"),
        };
        let said = super::both(&output);
        assert!(output.status.success(), "{server}: {said}");
        assert!(
            said.contains("full") && said.contains("go on with outcrop lab run t.toml --resume"),
            "{said}"
        );
        let [experiment, sessions, measured, _] = lab.recorded();
        assert_eq!(experiment["status"], "done", "{said}");
        let done = sessions.as_array().unwrap().iter().filter(|session| session["outcome"] == "done");
        assert_eq!((done.count(), measured.as_array().unwrap().len()), (2, 6), "{server}: {sessions}");
    }
}

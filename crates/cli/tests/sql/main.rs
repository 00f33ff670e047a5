//! The lab on real servers, as a user runs it. `cargo xtask sql` fetches them and names them in `OUTCROP_SERVERS`; without it
//! these tests skip themselves.

mod basedir;
#[path = "../it/browser.rs"]
mod browser;
mod data;
mod disk;
mod embedded;
mod foreign;
mod insert_benchmark;
mod lifetime;
#[path = "../it/look.rs"]
mod look;
mod pages;
mod planted;
mod refused;
mod statements;
mod sysbench;
mod upkeep;

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// How long anything is waited for: only what hangs takes as long, however busy the machine is.
const FAR: Duration = Duration::from_secs(3600);

/// Servers that are to be tested, each `name@version`.
fn servers() -> Vec<String> {
    let named = std::env::var("OUTCROP_SERVERS").unwrap_or_default();
    named.split_whitespace().map(str::to_string).collect()
}

/// A server of this name, if one is to be tested.
fn server(name: &str) -> Option<String> {
    servers().into_iter().find(|server| server.split('@').next() == Some(name))
}

/// The first of each product, where making a data directory of every one would only take time.
fn one_of_each() -> Vec<String> {
    ["postgres", "mysql"].into_iter().filter_map(server).collect()
}

/// A directory with an experiment in it, which servers can enter.
struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    fn new(experiment: &str) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(dir.path().join("t.toml"), experiment).unwrap();
        Lab { dir }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outcrop"));
        command.current_dir(self.dir.path()).arg("lab").args(arguments).stdin(Stdio::null());
        // The user's own runs are none of a test's business.
        command.env("OUTCROP_DATA_DIRS", self.dir.path().join("data-dirs"));
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", both(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The error of a command that must fail.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", both(&output));
        both(&output)
    }

    /// Experiment 1 as recorded: experiment, sessions, measurements, events.
    fn recorded(&self) -> [serde_json::Value; 4] {
        serde_json::from_str(&self.text(&["show", "1", "--json"])).unwrap()
    }
}

fn both(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A tiny experiment on `servers`, with `steps`, `seconds` each, and `more` at its end.
fn experiment(servers: &[String], kind: &str, steps: &str, seconds: f64, more: &str) -> String {
    let steps = if steps.is_empty() { String::new() } else { format!("steps = [{steps}]\n") };
    let mut text = format!(
        "title = 'Tiny'\n{steps}[workload]\nkind = '{kind}'\nrows = 2000\nseconds = {seconds}\n\
         postwrite_seconds = 0\n[design]\nrounds = 1\nseed = 5\nwarmup = false\naa = false\n\
         allow_oversubscription = true\n"
    );
    for server in servers {
        write!(text, "[[target]]\nserver = '{server}'\n").unwrap();
    }
    text + more
}

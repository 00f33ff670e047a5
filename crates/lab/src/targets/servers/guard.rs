//! The guard: a process of this program between a session and its server, which outlives neither.
//!
//! ```text
//! session --pipe--> guard --> server --> its children, all of them the guard's descendants
//!    |  lines on the guard's output: "pid N", then "ended STATUS"
//!    `-- closes the pipe, or is killed: everything below the guard is killed, and the guard ends
//! ```
//! A server's own children may be stopped, in sessions of their own, and without a parent: that they are found and killed in any
//! case takes a process that adopts them.

use super::group::Group;
use super::{PASSWORD, leftovers};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A program to guard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guarded {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, beside this program's.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Where what it prints is appended.
    pub log: PathBuf,
    /// The file it reads; nothing if absent.
    #[serde(default)]
    pub input: Option<PathBuf>,
    /// User and group it runs as, if not this program's.
    pub user: Option<(u32, u32)>,
}

/// The user a server runs as if this program runs as root: nobody.
pub const NOBODY: (u32, u32) = (65534, 65534);

impl Guarded {
    /// The command of the program itself.
    pub fn command(&self) -> std::io::Result<Command> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let input =
            self.input.as_ref().map_or(Ok(Stdio::null()), |file| File::open(file).map(Stdio::from))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            // The password of other servers is no business of this one.
            .env_remove(PASSWORD)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.directory)
            .stdin(input)
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        Ok(command)
    }

    /// The command of its guard, which is `outcrop lab-server JSON`.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn guard(&self) -> Result<Command, String> {
        let json = serde_json::to_string(self).map_err(|error| error.to_string())?;
        // The kernel's link, as for sessions.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("outcrop").arg("lab-server").arg(json).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.process_group(0).env_remove(PASSWORD);
        Ok(command)
    }
}

/// Guards the program given as JSON until it ends or the pipe is closed.
///
/// # Errors
/// If the program cannot be started.
pub fn run(json: &str) -> Result<(), String> {
    let guarded: Guarded = serde_json::from_str(json).map_err(|error| format!("lab-server: {error}"))?;
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))
        .map_err(|error| format!("a guard of servers cannot adopt processes: {error}"))?;
    let group = Arc::new(Mutex::new(Group::enter()));
    let leave = move || drop(group.lock().ok().and_then(|mut group| group.take()));
    let leave_too = leave.clone();
    let mut child = guarded
        .command()
        .and_then(|mut command| command.spawn())
        .map_err(|error| format!("cannot start {}: {error}", guarded.program.display()))?;
    say(&format!("pid {}", child.id()));
    std::thread::spawn(move || {
        let mut byte = [0];
        // A byte comes when the server is up; the end, when the session is gone.
        while matches!(std::io::stdin().read(&mut byte), Ok(1)) {
            leftovers::note(std::process::id());
            say(NOTED);
        }
        let _ = leftovers::kill(std::process::id());
        leave_too();
        std::process::exit(1);
    });
    let status = child.wait().map_err(|error| format!("waiting for a server: {error}"))?;
    // Processes that it left without a parent.
    let _ = leftovers::kill(std::process::id());
    leave();
    say(&format!("ended {status}"));
    Ok(())
}

/// The line that a guard prints once it has noted the server's memory.
pub(super) const NOTED: &str = "noted";

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The session may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_not_get_the_password_of_others() {
        let temp = tempfile::tempdir().unwrap();
        let guarded = Guarded {
            program: "env".into(),
            arguments: Vec::new(),
            environment: vec![("ITS_OWN".to_string(), "x".to_string())],
            directory: temp.path().to_path_buf(),
            log: temp.path().join("log"),
            input: None,
            user: None,
        };
        let removed =
            |command: &Command| command.get_envs().any(|(name, value)| name == PASSWORD && value.is_none());
        assert!(removed(&guarded.guard().unwrap()), "nor its guard");
        let mut command = guarded.command().unwrap();
        assert!(removed(&command));
        assert!(command.status().unwrap().success());
        let log = std::fs::read_to_string(temp.path().join("log")).unwrap();
        assert!(log.contains("ITS_OWN=x") && !log.contains(PASSWORD), "{log}");
    }
}

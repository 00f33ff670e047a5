//! The parent's end of a worker: requests go out, answers arrive in order, death is noticed.
//!
//! Invariant: a child never outlives its `Child`; only processes started here are ever killed, by their handle.
//!
//! Next: `worker.rs` is the other end.

use crate::worker::{Answer, Request};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A request that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A running worker.
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    answers: Receiver<Answer>,
    errors: File,
    /// The functions its library has.
    pub functions: Vec<String>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The process ended; how, and the last of what it printed.
    Died(String),
    /// It does not answer in time; the last of what it printed.
    Hangs(String),
}

impl Child {
    /// Starts `program worker --library library`.
    ///
    /// # Errors
    /// The program cannot be started, or the library cannot be loaded.
    pub fn start(program: &Path, library: &Path) -> Result<Child, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let errors = tempfile::tempfile().map_err(failed)?;
        let mut process = Command::new(program)
            .arg("worker")
            .arg("--library")
            .arg(library)
            // A panic's place says enough, and its message is what failures are compared by.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let input = process.stdin.take();
        let output = process.stdout.take().expect("piped above");
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // A line that is no answer was printed by the engine; half a line is what SIGKILL leaves.
                if let Ok(answer) = serde_json::from_str(&line)
                    && sender.send(answer).is_err()
                {
                    return;
                }
            }
        });
        let mut child = Child { process, input, answers, errors, functions: Vec::new() };
        match child.answer() {
            Ok(Answer::Functions(names)) => child.functions = names,
            other => return Err(format!("{}: no worker: {other:?}", library.display())),
        }
        Ok(child)
    }

    /// Sends a request without waiting for its answer. That the worker is dead shows when the answer is asked for.
    pub fn send(&mut self, request: &Request) {
        let mut line = serde_json::to_string(request).expect("a request is plain data");
        line.push('\n');
        if let Some(input) = &mut self.input {
            let _ = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        }
    }

    /// The next answer.
    pub fn answer(&mut self) -> Result<Answer, Lost> {
        let start = Instant::now();
        loop {
            match self.answers.recv_timeout(Duration::from_secs(1)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(Lost::Died(self.obituary())),
                // A thread that panicked may be what the others wait for.
                Err(RecvTimeoutError::Timeout) if self.printed().contains("panicked at") => {
                    self.kill();
                    return Err(Lost::Died(format!("a thread panicked: {}", self.printed())));
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= TIMEOUT => {
                    self.kill();
                    return Err(Lost::Hangs(self.printed()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks and waits.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, Lost> {
        self.send(request);
        self.answer()
    }

    /// SIGKILL. Gives the answers that had arrived and were not asked for.
    pub fn kill(&mut self) -> Vec<Answer> {
        self.input = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The reader ends at the end of the pipe, so this ends too.
        self.answers.iter().collect()
    }

    fn obituary(&mut self) -> String {
        let status = self.process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        format!("{status}; {}", self.printed())
    }

    /// The end of what it printed on standard error.
    fn printed(&mut self) -> String {
        let mut text = String::new();
        let _ = self.errors.seek(SeekFrom::Start(0)).and_then(|_| self.errors.read_to_string(&mut text));
        excerpt(&text)
    }
}

/// The part of a process's last words that a person needs: where it panicked and why, or the end.
fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let panics = lines.iter().enumerate().filter(|(_, line)| line.contains("panicked at"));
    let said: Vec<&str> = panics.flat_map(|(at, _)| lines[at..].iter().take(2).copied()).take(6).collect();
    if said.is_empty() { lines[lines.len().saturating_sub(10)..].join("\n") } else { said.join("\n") }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

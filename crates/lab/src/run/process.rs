//! The child of a session as its run sees it: told what to do, listened to, stopped and continued.
//!
//! ```text
//! spawn -> Ready -> [go_on] tell(step) -> messages ... Done -> [pause] -> ... -> end
//! ```
//! Invariants: a process is stopped only after it said `Ready`, since from then on it dies with this one, stopped or
//! not; a process that is dropped is killed.

use super::killed::KilledOnDrop;
use crate::run::child::{self, Assignment, Message, Slice};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a process may say nothing while it starts, stops or ends: one that waits for a server says now and then that the
/// server makes progress.
const PATIENCE: Duration = Duration::from_secs(600);

/// A child, killed when it is dropped.
pub(super) struct Process {
    child: KilledOnDrop,
    /// Its standard input; closed to let it end.
    orders: Option<ChildStdin>,
    messages: Receiver<Message>,
}

/// The result of waiting for a message.
pub(super) enum Heard {
    Message(Message),
    /// The process closed its output.
    Nothing,
    /// It said nothing for too long.
    Silence,
}

impl Process {
    /// Starts the child of `assignment`.
    ///
    /// # Errors
    /// A sentence if no process can be had.
    pub fn spawn(assignment: &Assignment) -> Result<Process, String> {
        let mut command = child::command(assignment)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a session: {error}"))?;
        let out = child.stdout.take().expect("its output is piped");
        let orders = child.stdin.take();
        let (sender, messages) = channel();
        // Ends with the child's output, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // Libraries may print lines of their own.
                if let Ok(message) = serde_json::from_str(&line)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        });
        Ok(Process { child: KilledOnDrop(child), orders, messages })
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is ready for a step; one that dies meanwhile is noticed when it is told to do one.
    ///
    /// # Errors
    /// The reason that the process gives for not starting.
    pub fn wait_until_ready(&self) -> Result<(), String> {
        loop {
            match self.hear(PATIENCE) {
                Heard::Message(Message::Failed(why)) => return Err(why),
                Heard::Message(Message::Alive) => {}
                Heard::Silence => return Err("the process did not start in time".to_string()),
                Heard::Message(_) | Heard::Nothing => return Ok(()),
            }
        }
    }

    /// Tells it to do a slice of a step. To a process that died this says nothing: its last messages are read next.
    pub fn tell(&mut self, step: usize, slice: Slice) {
        if let Some(orders) = &mut self.orders {
            let _ = writeln!(orders, "{step} {} {}", slice.number, slice.of).and_then(|()| orders.flush());
        }
    }

    /// The next message.
    pub fn hear(&self, patience: Duration) -> Heard {
        match self.messages.recv_timeout(patience) {
            Ok(message) => Heard::Message(message),
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => Heard::Nothing,
        }
    }

    /// Stops all its threads, and returns when they stand still or the process is gone.
    ///
    /// # Errors
    /// A sentence if it will not stop: a thread hangs in the kernel.
    pub fn pause(&self) -> Result<(), String> {
        let failed = |error| format!("stopping a process between its turns: {error}");
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).map_err(failed)?;
        // It stays to be waited for: only whether it stands still is asked.
        let asked =
            WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let deadline = Instant::now() + PATIENCE;
        while waitid(WaitId::Pid(pid), asked).map_err(failed)?.is_none() {
            if Instant::now() > deadline {
                return Err("the process could not be stopped between its turns".to_string());
            }
            // Usually a fraction of that: slices are short.
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Lets it go on after a pause.
    ///
    /// # Errors
    /// A sentence if the kernel refuses.
    pub fn go_on(&self) -> Result<(), String> {
        kill_process(Pid::from_child(&self.child), Signal::CONT)
            .map_err(|error| format!("continuing a process at its turn: {error}"))
    }

    /// Says that there is no further step, and waits for the end.
    ///
    /// # Errors
    /// The reason that the process gives, or a sentence if there is no end.
    pub fn end(&mut self) -> Result<ExitStatus, String> {
        drop(self.orders.take());
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            match self.messages.try_recv() {
                Ok(Message::Failed(why)) => return Err(why),
                Ok(_) => deadline = Instant::now() + PATIENCE,
                Err(_) => {}
            }
            match self.child.try_wait() {
                // Its last words may not be read yet.
                Ok(Some(status)) => return self.last_word().map_or(Ok(status), Err),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => return Err("the process did not end when its steps were done".to_string()),
                Err(error) => return Err(format!("waiting for the child: {error}")),
            }
        }
    }
}

impl Process {
    /// Why it failed, from the messages of a process that has ended.
    fn last_word(&self) -> Option<String> {
        self.messages.iter().find_map(|message| match message {
            Message::Failed(why) => Some(why),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_fails_at_its_end_says_why() {
        let child = std::process::Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let (sender, messages) = channel();
        sender.send(Message::Alive).unwrap();
        sender.send(Message::Failed("mysql did not stop".to_string())).unwrap();
        drop(sender);
        let mut process = Process { child: KilledOnDrop(child), orders: None, messages };
        assert_eq!(process.end().unwrap_err(), "mysql did not stop");
    }

    #[test]
    fn who_is_stopped_does_nothing_until_told_and_what_died_is_no_error() {
        let mut child =
            std::process::Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let orders = child.stdin.take();
        let mut process = Process { child: KilledOnDrop(child), orders, messages: channel().1 };
        process.pause().unwrap();
        let state = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        assert!(state.contains(") T "), "{state}");
        process.go_on().unwrap();
        assert!(process.end().unwrap().success());
        process.tell(1, Slice::WHOLE);
        assert!(matches!(process.hear(Duration::ZERO), Heard::Nothing));

        let child = std::process::Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let mut process = Process { child: KilledOnDrop(child), orders: None, messages: channel().1 };
        std::thread::sleep(Duration::from_millis(50));
        process.pause().unwrap();
        process.go_on().unwrap();
        assert!(process.end().unwrap().success(), "its end is still there to be waited for");
    }
}

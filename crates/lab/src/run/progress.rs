//! What a run says while it works: one line on standard error, overwritten where that is possible.

use crate::report::text::{WIDTH, cut, duration, thousands};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line on standard error: what runs, how fast, how long still.
pub(super) struct Progress {
    total: usize,
    /// Sessions of the plan that need not be run any more.
    pub done: usize,
    /// What is done of the sessions that run, in sessions.
    pub part: f64,
    start: Instant,
    /// Sessions that were done when this run began counting time.
    done_at_start: Option<usize>,
    said: Instant,
}

impl Progress {
    /// Time between lines where they cannot be overwritten.
    const BETWEEN_LINES: Duration = Duration::from_secs(10);

    pub fn new(total: usize) -> Progress {
        let now = Instant::now();
        Progress { total, done: 0, part: 0.0, start: now, done_at_start: None, said: now }
    }

    pub fn show(&mut self, what: &str, rate: f64) {
        let from = *self.done_at_start.get_or_insert(self.done) as f64;
        let here = (self.done as f64 + self.part).min(self.total as f64);
        let elapsed = self.start.elapsed().as_secs_f64();
        let left = if here - from > 0.2 {
            let seconds = elapsed / (here - from) * (self.total as f64 - here);
            format!("{} left", duration(seconds))
        } else {
            "...".to_string()
        };
        let head = format!("{:>3.0} %  ", here * 100.0 / self.total as f64);
        let tail = format!("  {}/s  {left}", thousands(rate));
        // A line that wraps cannot be overwritten.
        let room = (WIDTH - 1).saturating_sub(head.len() + tail.len());
        let line = format!("{head}{}{tail}", cut(what, room));
        let mut err = std::io::stderr().lock();
        // Nobody is worse off without the line.
        let _ = if err.is_terminal() {
            write!(err, "\r\x1b[K{line}").and_then(|()| err.flush())
        } else if self.said.elapsed() >= Self::BETWEEN_LINES {
            self.said = Instant::now();
            writeln!(err, "{line}")
        } else {
            Ok(())
        };
    }

    pub fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}

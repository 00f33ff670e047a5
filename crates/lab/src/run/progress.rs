//! The messages of a run while it works: one line on standard error, overwritten where that is possible.

use crate::report::status_line::StatusLine;
use crate::report::text::{WIDTH, cut, duration, thousands};
use std::time::Instant;

/// A line on standard error: the running step, how fast, how long still.
pub(super) struct Progress {
    total: usize,
    /// Sessions of the plan that need not be run any more.
    pub done: usize,
    /// The work done in the sessions that run, in sessions.
    pub part: f64,
    start: Instant,
    /// Sessions that were done when this run began counting time.
    done_at_start: Option<usize>,
    line: StatusLine,
}

impl Progress {
    pub fn new(total: usize) -> Progress {
        let (start, line) = (Instant::now(), StatusLine::new());
        Progress { total, done: 0, part: 0.0, start, done_at_start: None, line }
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
        let room = (WIDTH - 1).saturating_sub(head.len() + tail.len());
        self.line.show(&format!("{head}{}{tail}", cut(what, room)));
    }

    pub fn clear(&self) {
        self.line.clear();
    }
}

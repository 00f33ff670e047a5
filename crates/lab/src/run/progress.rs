//! The messages of a run while it works: one line on standard error, overwritten where that is possible, or JSON for programs.

use crate::report::status_line::StatusLine;
use crate::report::text::{WIDTH, cut, duration, thousands};
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, Instant};

/// How a run says how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressForm {
    /// A line for people: step, target, rate, time left.
    #[default]
    Text,
    /// A JSON object a line on standard error, once a second.
    Json,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct At<'a> {
    /// `load`, `warm-up` or `block`.
    pub phase: &'static str,
    /// Number of the block, from 1, if it is one.
    pub block: Option<i64>,
    /// Step.
    pub step: &'a str,
    /// Target.
    pub target: &'a str,
    /// Operations per second so far; 0 if it counts none.
    pub rate: f64,
}

/// A line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    experiment: i64,
    #[serde(flatten)]
    at: At<'a>,
    /// Share of all sessions that is done.
    done: f64,
    /// Seconds that the rest is thought to take; null until that can be told.
    seconds_left: Option<f64>,
}

/// The first and the last line of JSON.
#[derive(Serialize)]
struct Edge {
    experiment: i64,
    /// `begin` or `end`.
    phase: &'static str,
    done: f64,
    seconds_left: Option<f64>,
}

/// A message, as a line of JSON.
#[derive(Serialize)]
struct Told<'a> {
    experiment: i64,
    message: &'a str,
}

/// The running step, how fast, how long still.
pub(super) struct Progress {
    form: ProgressForm,
    experiment: i64,
    total: usize,
    /// Sessions of the plan that need not be run any more.
    pub done: usize,
    /// The work done in the sessions that run, in sessions.
    pub part: f64,
    start: Instant,
    /// Sessions that were done when this run began counting time.
    done_at_start: Option<usize>,
    /// When the last line of JSON was written.
    said: Option<Instant>,
    line: StatusLine,
}

impl Progress {
    pub fn new(form: ProgressForm, experiment: i64, total: usize) -> Progress {
        let (start, line) = (Instant::now(), StatusLine::new());
        Progress { form, experiment, total, done: 0, part: 0.0, start, done_at_start: None, said: None, line }
    }

    /// The run begins, and is thought to take that long.
    pub fn begin(&self, seconds: f64) {
        let (id, sessions) = (self.experiment, self.total);
        match self.form {
            ProgressForm::Text => {
                say(&format!("experiment {id}: {sessions} sessions, about {}", duration(seconds)));
            }
            ProgressForm::Json => self.edge("begin", 0.0, Some(seconds)),
        }
    }

    /// The run has ended, or was stopped.
    pub fn end(&self) {
        match self.form {
            ProgressForm::Text => self.line.clear(),
            ProgressForm::Json => self.edge("end", self.done as f64 / self.total.max(1) as f64, None),
        }
    }

    /// Something that does not end the run.
    pub fn tell(&self, message: &str) {
        match self.form {
            ProgressForm::Text => {
                self.line.clear();
                say(message);
            }
            ProgressForm::Json => say(&json(&Told { experiment: self.experiment, message })),
        }
    }

    fn edge(&self, phase: &'static str, done: f64, seconds_left: Option<f64>) {
        say(&json(&Edge { experiment: self.experiment, phase, done, seconds_left }));
    }

    pub fn show(&mut self, at: &At<'_>) {
        /// Between two lines of JSON.
        const EVERY: Duration = Duration::from_secs(1);
        let from = *self.done_at_start.get_or_insert(self.done) as f64;
        let here = (self.done as f64 + self.part).min(self.total as f64);
        let elapsed = self.start.elapsed().as_secs_f64();
        let left = (here - from > 0.2).then(|| elapsed / (here - from) * (self.total as f64 - here));
        let done = here / self.total.max(1) as f64;
        if self.form == ProgressForm::Text {
            return self.line.show(&text(at, done, left));
        }
        if self.said.is_none_or(|said| said.elapsed() >= EVERY) {
            self.said = Some(Instant::now());
            let line = Line { experiment: self.experiment, at: *at, done, seconds_left: left };
            say(&json(&line));
        }
    }
}

fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("plain data serialises")
}

fn say(line: &str) {
    // Nobody is worse off without it.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The line for people.
fn text(at: &At<'_>, done: f64, left: Option<f64>) -> String {
    let left = left.map_or("...".to_string(), |seconds| format!("{} left", duration(seconds)));
    let phase = match (at.block, at.phase) {
        (Some(block), _) => format!("block {block}"),
        (None, "load") => "data set".to_string(),
        (None, phase) => phase.to_string(),
    };
    let head = format!("{:>3.0} %  ", done * 100.0);
    // A step that has counted nothing has just begun, or counts no operations: a flush, a compaction.
    let rate = if at.rate > 0.0 { format!("  {}/s", thousands(at.rate)) } else { String::new() };
    let tail = format!("{rate}  {left}");
    let room = (WIDTH - 1).saturating_sub(head.len() + tail.len());
    format!("{head}{}{tail}", cut(&format!("{phase} {} {}", at.step, at.target), room))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: At<'static> =
        At { phase: "block", block: Some(2), step: "qr100", target: "postgres@18.1/x10b", rate: 1234.0 };

    #[test]
    fn people_get_a_line_that_fits_a_terminal() {
        let line = text(&AT, 0.341, Some(240.0));
        assert_eq!(line, " 34 %  block 2 qr100 postgres@18.1/x10b  1,234/s  4 min left");
        let flush = text(&At { step: "flush_mt_l0", rate: 0.0, ..AT }, 0.341, Some(240.0));
        assert_eq!(flush, " 34 %  block 2 flush_mt_l0 postgres@18.1/x10b  4 min left");
        let long = At { target: &"x".repeat(200), block: None, phase: "warm-up", ..AT };
        let line = text(&long, 0.0, None);
        assert!(
            line.chars().count() < WIDTH && line.contains("warm-up qr100 xxx") && line.ends_with("  ..."),
            "{line}"
        );
    }

    #[test]
    fn programs_get_an_object() {
        let line = Line { experiment: 3, at: AT, done: 0.5, seconds_left: None };
        let json = serde_json::to_string(&line).unwrap();
        assert_eq!(
            json,
            r#"{"experiment":3,"phase":"block","block":2,"step":"qr100","target":"postgres@18.1/x10b","rate":1234.0,"done":0.5,"seconds_left":null}"#
        );
    }
}

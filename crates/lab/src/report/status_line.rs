//! A line on standard error that says what runs: overwritten on a terminal, now and then a new one elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between lines where they cannot be overwritten.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The line, and when it was last written.
pub(crate) struct StatusLine {
    said: Instant,
}

impl StatusLine {
    /// A line that has not been written yet.
    pub fn new() -> StatusLine {
        StatusLine { said: Instant::now() }
    }

    /// Writes `line`, of less than a terminal's width: one that wraps cannot be overwritten.
    pub fn show(&mut self, line: &str) {
        let mut err = std::io::stderr().lock();
        // Nobody is worse off without the line.
        let _ = if err.is_terminal() {
            write!(err, "\r\x1b[K{line}").and_then(|()| err.flush())
        } else if self.said.elapsed() >= BETWEEN_LINES {
            self.said = Instant::now();
            writeln!(err, "{line}")
        } else {
            Ok(())
        };
    }

    /// Takes the line off a terminal.
    pub fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
    }
}

//! The messages of the tool while a step runs, on standard error.
//!
//! ```text
//! --stats_interval_seconds=N   every N seconds a line for each thread, as RocksDB's tool prints it, and the engine's
//!                              statistics with --stats_per_interval
//! neither, on a terminal       one line, overwritten, and removed before the result is printed
//! neither, to a file or pipe   nothing: scripts merge both outputs and look for lines that begin with a step's name
//! ```

use super::stats_text::for_scripts;
use crate::{Database, Progress};
use jiff::Timestamp;
use std::io::{IsTerminal, Write};

/// How the progress of steps is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Not at all.
    Silent,
    /// A line that is overwritten every second.
    Line,
    /// A line per thread after so many seconds, with the engine's statistics or without.
    Interval {
        /// Seconds between.
        seconds: u64,
        /// Print `rocksdb.stats` as well.
        stats: bool,
    },
}

impl Form {
    /// As the flags ask; `interval` in seconds.
    pub fn chosen(interval: u64, stats: bool, reports: bool) -> Form {
        match interval {
            _ if !reports => Form::Silent,
            0 if std::io::stderr().is_terminal() => Form::Line,
            0 => Form::Silent,
            seconds => Form::Interval { seconds, stats },
        }
    }
}

/// Reports the progress of one step.
pub(super) struct Reporter {
    form: Form,
    last_seconds: f64,
    last_ops: Vec<u64>,
}

impl Reporter {
    /// Before the step begins.
    pub fn new(form: Form) -> Reporter {
        Reporter { form, last_seconds: 0.0, last_ops: Vec::new() }
    }

    /// Takes news of the step; `db` is asked for statistics.
    pub fn observe(&mut self, progress: &Progress, db: Option<&Database>) {
        let since = progress.seconds - self.last_seconds;
        let mut err = std::io::stderr().lock();
        // A report that cannot be written stops no benchmark.
        let _ = match self.form {
            Form::Line if since >= 1.0 => {
                self.last_seconds = progress.seconds;
                write!(err, "\r\x1b[K... finished {} ops", progress.ops).and_then(|()| err.flush())
            }
            Form::Interval { seconds, stats } if since >= seconds as f64 => {
                let text = self.lines(progress, Timestamp::now());
                self.last_seconds = progress.seconds;
                self.last_ops = threads(progress);
                let stats = db.filter(|_| stats).map_or(String::new(), engine_stats);
                write!(err, "{text}{stats}")
            }
            _ => Ok(()),
        };
    }

    /// After the step: removes the line that was overwritten.
    pub fn end(&self) {
        if self.form == Form::Line && self.last_seconds > 0.0 {
            eprint!("\r\x1b[K");
        }
    }

    /// A line for each thread: operations since the last line and in all, and their rates.
    fn lines(&self, progress: &Progress, now: Timestamp) -> String {
        let since = progress.seconds - self.last_seconds;
        let mut text = String::new();
        for (index, ops) in threads(progress).iter().enumerate() {
            let new = ops - self.last_ops.get(index).copied().unwrap_or(0);
            text.push_str(&format!(
                "{} ... thread {index}: ({new},{ops}) ops and ({:.1},{:.1}) ops/second in ({since:.6},{:.6}) seconds\n",
                now.strftime("%Y/%m/%d-%H:%M:%S"),
                new as f64 / since,
                *ops as f64 / progress.seconds,
                progress.seconds
            ));
        }
        text
    }
}

/// Operations of all threads: a writer or a scan beside the counted ones is the first, as in RocksDB's tool.
fn threads(progress: &Progress) -> Vec<u64> {
    progress.beside.into_iter().chain(progress.threads.iter().copied()).collect()
}

/// The engine's statistics, as RocksDB's tool prints them with each interval.
fn engine_stats(db: &Database) -> String {
    let of = |name: &str| db.property(name).unwrap_or_default();
    format!(
        "{}num-running-compactions: {}\nnum-running-flushes: {}\n\n",
        for_scripts(&of("rocksdb.stats")),
        of("rocksdb.num-running-compactions"),
        of("rocksdb.num-running-flushes")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_a_line_for_each_thread() {
        let mut reporter = Reporter::new(Form::Interval { seconds: 2, stats: false });
        let at = Timestamp::from_second(1_795_235_645).unwrap();
        let first = Progress { ops: 30, seconds: 2.0, threads: vec![10, 20], beside: None };
        assert_eq!(
            reporter.lines(&first, at),
            "2026/11/21-04:34:05 ... thread 0: (10,10) ops and (5.0,5.0) ops/second in (2.000000,2.000000) seconds\n\
             2026/11/21-04:34:05 ... thread 1: (20,20) ops and (10.0,10.0) ops/second in (2.000000,2.000000) seconds\n"
        );
        reporter.observe(&first, None);
        let second = Progress { ops: 90, seconds: 4.0, threads: vec![40, 50], beside: None };
        let lines = reporter.lines(&second, at);
        assert!(
            lines.contains("thread 1: (30,50) ops and (15.0,12.5) ops/second in (2.000000,4.000000)"),
            "{lines}"
        );
    }

    #[test]
    fn the_writer_beside_readers_is_thread_0() {
        let mut reporter = Reporter::new(Form::Interval { seconds: 1, stats: false });
        let at = Timestamp::from_second(1_795_235_645).unwrap();
        let progress = |writes: u64, reads: u64| Progress {
            ops: reads,
            seconds: reads as f64,
            threads: vec![reads],
            beside: Some(writes),
        };
        reporter.observe(&progress(500, 1), None);
        let lines = reporter.lines(&progress(700, 2), at);
        assert!(
            lines.contains("thread 0: (200,700) ops") && lines.contains("thread 1: (1,2) ops"),
            "{lines}"
        );
    }

    #[test]
    fn a_script_hears_nothing_it_did_not_ask_for() {
        assert_eq!(Form::chosen(0, true, false), Form::Silent);
        assert_eq!(Form::chosen(20, true, true), Form::Interval { seconds: 20, stats: true });
        assert_eq!(Form::chosen(20, true, false), Form::Silent);
    }
}

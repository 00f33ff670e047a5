//! Whether a process still gets on: told by what it does, not by the time that passes, of which a busy machine takes what it likes.
//!
//! A process hangs if none of its threads wants a processor, next to no processor time is used and nothing comes of it, for a while in
//! which this process was there to look; or if it has used a lot of processor time and nothing came of it.
//! Threads that only look after something from time to time use next to nothing. [`Progress`] decides and is pure; [`Watchdog`] looks
//! into `/proc`.

use std::time::{Duration, Instant};

/// Clock ticks in a second of processor time, as `/proc` counts.
const TICKS: u64 = 100;
/// A look may count for so much, however long the last one is ago: this process was not there to look either.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Of an idle time one part in so many may be processor time.
const NEXT_TO_NOTHING: u64 = 100;

/// The patience with a process that does not get on.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time in which nothing of it runs.
    pub idle: Duration,
    /// Processor time.
    pub work: Duration,
}

/// How a process is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Processor time so far, in ticks.
    pub ticks: u64,
    /// A thread runs or would.
    pub wants_to_run: bool,
    /// Events that came of it so far.
    pub events: u64,
}

/// The looks at a process.
pub struct Progress {
    patience: Patience,
    last: Duration,
    events: u64,
    ticks_at_event: u64,
    idle: Duration,
    ticks_when_idle: u64,
}

impl Progress {
    /// Of one that has just begun.
    pub fn new(patience: Patience) -> Progress {
        Progress {
            patience,
            last: Duration::ZERO,
            events: 0,
            ticks_at_event: 0,
            idle: Duration::ZERO,
            ticks_when_idle: 0,
        }
    }

    /// A look at a time, counted from the begin; gives how it hangs.
    pub fn look(&mut self, at: Duration, sample: Sample) -> Option<String> {
        let mut since = at.saturating_sub(self.last).min(LONGEST_LOOK);
        self.last = at;
        if sample.events != self.events {
            since = Duration::ZERO;
            self.events = sample.events;
            self.ticks_at_event = sample.ticks;
            self.idle = Duration::ZERO;
        }
        let used = Duration::from_millis((sample.ticks - self.ticks_when_idle) * 1000 / TICKS);
        let runs = sample.wants_to_run || used > self.patience.idle / NEXT_TO_NOTHING as u32;
        if runs || self.idle.is_zero() {
            self.ticks_when_idle = sample.ticks;
        }
        self.idle = if runs { Duration::ZERO } else { self.idle + since };
        let work = Duration::from_millis((sample.ticks - self.ticks_at_event) * 1000 / TICKS);
        if self.idle >= self.patience.idle {
            return Some(format!("it hangs: nothing of it ran for {} s", self.patience.idle.as_secs()));
        }
        (work >= self.patience.work).then(|| {
            format!("it hangs: nothing came of {} s of processor time", self.patience.work.as_secs())
        })
    }
}

/// Looks at a child process.
pub struct Watchdog {
    pid: u32,
    start: Instant,
    progress: Progress,
}

impl Watchdog {
    /// Of the process with this id.
    pub fn new(pid: u32, patience: Patience) -> Watchdog {
        Watchdog { pid, start: Instant::now(), progress: Progress::new(patience) }
    }

    /// Looks; `events` is what came of it so far. Gives how it hangs. One that is gone does not.
    pub fn look(&mut self, events: u64) -> Option<String> {
        let (ticks, wants_to_run) = (ticks(self.pid)?, wants_to_run(self.pid));
        self.progress.look(self.start.elapsed(), Sample { ticks, wants_to_run, events })
    }
}

/// The fields of a line of `/proc/.../stat` from the state on: the name before them may have anything in it.
fn fields(line: &str) -> Vec<&str> {
    line.rsplit_once(')').map_or_else(Vec::new, |(_, rest)| rest.split_whitespace().collect())
}

fn ticks(pid: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = fields(&line);
    // Of the whole process: in user mode, and in the kernel.
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

fn wants_to_run(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let line = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // Runnable, or waiting for a device, which a busy one may take minutes for.
        matches!(fields(&line).first(), Some(&"R" | &"D"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const PATIENCE: Patience = Patience { idle: Duration::from_secs(60), work: Duration::from_secs(600) };

    /// Looks once a second for so many seconds; gives when it hangs.
    fn hangs(seconds: u64, at: impl Fn(u64) -> Sample) -> Option<u64> {
        let mut progress = Progress::new(PATIENCE);
        (1..=seconds).find(|second| progress.look(Duration::from_secs(*second), at(*second)).is_some())
    }

    #[test]
    fn one_that_waits_hangs_even_if_something_in_it_looks_round() {
        let waits = |_| Sample { ticks: 70, wants_to_run: false, events: 3 };
        assert_eq!(hangs(100, waits), Some(61), "from the first look on");
        let looks_round = |second: u64| Sample { ticks: second / 2, wants_to_run: false, events: 3 };
        assert!(hangs(100, looks_round).is_some());
    }

    #[test]
    fn one_that_is_starved_or_slow_does_not() {
        let starved = |_| Sample { ticks: 0, wants_to_run: true, events: 0 };
        assert_eq!(hangs(10_000, starved), None);
        let slow = |second: u64| Sample { ticks: second * 10, wants_to_run: false, events: 0 };
        assert_eq!(hangs(5_000, slow), None, "500 s of processor time");
        let waits_for_the_disk = |second: u64| Sample { ticks: 1, wants_to_run: false, events: second / 50 };
        assert_eq!(hangs(10_000, waits_for_the_disk), None);
    }

    #[test]
    fn one_that_goes_round_hangs_after_much_work() {
        let round = |second: u64| Sample { ticks: second * 200, wants_to_run: true, events: second.min(10) };
        assert_eq!(hangs(1000, round), Some(310));
    }

    #[test]
    fn time_in_which_nobody_looked_does_not_count() {
        let mut progress = Progress::new(PATIENCE);
        let still = Sample { ticks: 5, wants_to_run: false, events: 1 };
        for day in 1..50 {
            assert_eq!(progress.look(Duration::from_secs(86_400 * day), still), None, "day {day}");
        }
    }

    #[test]
    fn real_processes_are_told_apart() {
        let until = |script: &str, patience: Patience| {
            let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).spawn().unwrap();
            let mut dog = Watchdog::new(child.id(), patience);
            let told = loop {
                if let Some(told) = dog.look(0) {
                    break told;
                }
                std::thread::yield_now();
            };
            child.kill().unwrap();
            child.wait().unwrap();
            told
        };
        let short = Duration::from_millis(50);
        let waits = until("exec sleep 10000", Patience { idle: short, ..PATIENCE });
        assert!(waits.contains("nothing of it ran"), "{waits}");
        let round = until("while :; do :; done", Patience { work: short, ..PATIENCE });
        assert!(round.contains("processor time"), "{round}");
    }
}

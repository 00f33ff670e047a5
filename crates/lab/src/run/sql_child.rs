//! The child of a session on a server: it starts the server, and is its client.
//!
//! ```text
//! Server::start -> stopped -> Ready -> [order: go on, run in, step or slice, stop -> message] ... -> facts, orderly stop
//! ```
//! Invariants: outside its turns every process of the server stands still. The counters of the server cover the time
//! between the first and the last statement of a turn, and so do those of the host: `Started` is said just before,
//! and `Worked` just after.
//! Next: `child.rs`, whose protocol it speaks.

use super::child::{Assignment, Message, Slice, observer, order, say, say_done};
use super::sysbench;
use crate::experiment::steps::PlannedStep;
use crate::run::data_dir;
use crate::targets::servers::leftovers;
use crate::targets::servers::running::{Server, check_space};
use crate::targets::servers::{Runner, ServerSpec};
use outcrop_lab_load::process::{self, ProcessUsage};
use outcrop_lab_load::{Step, StepResult};
use outcrop_lab_sql::{Inside, Pool, step};
use std::io::BufRead;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Does the steps of `assignment` on the server of `spec`.
///
/// # Errors
/// The messages of the server or the system, for the parent.
pub(super) fn work(assignment: &Assignment, spec: &ServerSpec) -> Result<(), String> {
    let server = Server::start(spec, &assignment.dir, &mut || say(&Message::Alive))?;
    server.pause()?;
    let pool = Pool::new(server.address().clone());
    let mut worker = Worker {
        assignment,
        server: &server,
        runner: spec.runner,
        pool,
        inside: None,
        threads: 0,
        so_far: None,
    };
    say(&Message::Ready)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("what to do next: {error}"))?;
        let (number, slice) = order(&line).ok_or_else(|| format!("what to do next: {line:?}"))?;
        let planned = assignment.steps.get(number).ok_or_else(|| format!("there is no step {number}"))?;
        worker.turn(number, planned, slice).map_err(|error| {
            let gone = server.ended().map_or(String::new(), |why| format!("; {why}"));
            format!("step {}: {error}{gone}", planned.step.name)
        })?;
    }
    server.go_on()?;
    worker.pool.close();
    worker.inside = None;
    write_facts(&server, &assignment.dir)?;
    server.stop(&mut || say(&Message::Alive))
}

struct Worker<'a> {
    assignment: &'a Assignment,
    server: &'a Server,
    runner: Runner,
    pool: Pool,
    /// Looks at the server from beside the load, once a step has begun.
    inside: Option<Inside>,
    threads: u64,
    /// The slices of the current step that are done.
    so_far: Option<StepResult>,
}

impl Worker<'_> {
    /// Half way to the seed of the next step.
    const RUN_IN_SEED: u64 = 500;
    /// Seconds of a run-in between two slices of a step.
    const RUN_IN_AGAIN: f64 = 0.02;

    fn turn(&mut self, number: usize, planned: &PlannedStep, slice: Slice) -> Result<(), String> {
        let sql = planned.sql.as_ref().ok_or("it is a step of an engine, not of a server")?;
        // The steps of sysbench's own program: its tests. Loads and upkeep are the lab's.
        let theirs = sql.test().filter(|_| self.runner == Runner::Sysbench);
        if let Some(test) = theirs.filter(|test| sysbench::script(test).is_none()) {
            say(&Message::Started { step: number, waited: 0.0 })?;
            let why = format!("sysbench has no script that does what {} does", test.name);
            return say(&Message::NotOffered { step: number, why });
        }
        let before = Instant::now();
        self.server.go_on()?;
        if slice.is_first() && sql.is_load() {
            // Tables in use cannot be dropped, and statements of old tables are of no use.
            self.pool.close();
        }
        let waited = before.elapsed().as_secs_f64();
        let so_far = self.so_far.take();
        let run_in = self.assignment.run_in;
        let run_in = if planned.takes_run_in() { run_in } else { 0.0 };
        // sysbench's program runs in with connections of its own.
        if run_in > 0.0 && theirs.is_none() {
            let seed = planned.step.seed.wrapping_add(Self::RUN_IN_SEED);
            let seconds = if slice.is_first() { run_in } else { run_in.min(Self::RUN_IN_AGAIN) };
            let warm = Step { seconds, seed, ..planned.step.clone() };
            step::run_slice(&self.pool, &warm, sql, None, &mut self.threads.clone(), &mut |_| ())?;
        }
        let part = Step { seconds: planned.step.seconds / slice.of as f64, ..planned.step.clone() };
        // Questions to the server for the record lie outside the counted time: of it, of its client, and of the host.
        let inside = match &mut self.inside {
            Some(inside) => inside,
            none => none.insert(Inside::open(self.pool.address())?),
        };
        let plans_before = if slice.is_first() { inside.plans(sql)? } else { Vec::new() };
        let redo_before = inside.redo_bytes(&sql.engine)?;
        // Of a step that writes nothing it would be somebody else's.
        let counts_syncs = planned.writes();
        if counts_syncs {
            self.pool.report_statistics()?;
        }
        let syncs_before = if counts_syncs { inside.log_syncs(&sql.engine)? } else { None };
        let server = self.server;
        let mut used = None;
        let mut begin = || {
            used = server.usage();
            say(&Message::Started { step: number, waited })
        };
        let (pool, threads) = (&self.pool, &mut self.threads);
        let place = (self.assignment.dir.as_path(), self.server.guard());
        let (result, seen) = watched(inside, place, || match theirs {
            Some(test) => {
                let program = Path::new(sysbench::PROGRAM);
                let place = pool.address();
                sysbench::run(program, test, (&part, sql), run_in, place, &mut begin, &mut observer(number))
            }
            None => {
                begin()?;
                step::run_slice(pool, &part, sql, so_far, threads, &mut observer(number))
            }
        });
        say(&Message::Worked { step: number })?;
        let mut result = match (result, &seen) {
            // The cause comes before what it led to.
            (Err(error), Err(why)) if *why != error => return Err(format!("{why}; {error}")),
            (result, _) => result?,
        };
        for what in seen? {
            *result.waits.entry(what).or_default() += 1;
        }
        if let (Some(before), Some(after)) = (used, self.server.usage()) {
            let meanwhile = since(&after, &before);
            result.server = Some(match &result.server {
                None => meanwhile,
                Some(so_far) => so_far.followed_by(&meanwhile),
            });
        }
        if let Some((before, after)) = redo_before.zip(inside.redo_bytes(&sql.engine)?) {
            let written = after.saturating_sub(before);
            result.redo_bytes = Some(result.redo_bytes.unwrap_or(0) + written);
        }
        if let Some(before) = syncs_before {
            self.pool.report_statistics()?;
            let after = inside.log_syncs(&sql.engine)?;
            result.log_syncs = after.map(|after| after.saturating_sub(before));
        }
        if slice.is_first() {
            result.plans = Some([plans_before.clone(), plans_before]);
        }
        if let (Some([_, last]), true) = (&mut result.plans, slice.is_last()) {
            *last = inside.plans(sql)?;
        }
        if slice.is_last() {
            result.database_bytes = self.server.database_bytes(inside.database_bytes()?);
        }
        self.server.pause()?;
        if !planned.only_reads() {
            data_dir::write_out(&self.assignment.dir)?;
        }
        if slice.is_last() {
            return say_done(number, result);
        }
        self.so_far = Some(result);
        say(&Message::Interrupted { step: number })
    }
}

/// The state in which each connection of the load was seen.
type Seen = Result<Vec<String>, String>;

/// Does `work`, and looks at the server ten times a second meanwhile. Where `dir` has no space left the server below `guard` is
/// killed: it may wait for space without end, and its clients with it.
fn watched<T>(
    inside: &mut Inside,
    (dir, guard): (&Path, Option<u32>),
    work: impl FnOnce() -> T,
) -> (T, Seen) {
    const EVERY: Duration = Duration::from_millis(100);
    let (over, wait) = channel::<()>();
    std::thread::scope(|scope| {
        let looks = scope.spawn(move || -> Seen {
            let mut seen = Vec::new();
            while wait.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if let (Err(why), Some(guard)) = (check_space(dir), guard) {
                    leftovers::kill(guard)?;
                    return Err(why);
                }
                seen.extend(inside.waits()?);
            }
            Ok(seen)
        });
        let done = work();
        drop(over);
        (done, looks.join().expect("a look does not panic"))
    })
}

/// Usage between two looks; processes that ended meanwhile take their switches with them.
fn since(after: &ProcessUsage, before: &ProcessUsage) -> ProcessUsage {
    ProcessUsage {
        user_seconds: (after.user_seconds - before.user_seconds).max(0.0),
        system_seconds: (after.system_seconds - before.system_seconds).max(0.0),
        rss_bytes: after.rss_bytes,
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
        device_bytes: process::both(after.device_bytes, before.device_bytes, u64::saturating_sub),
        processor: after.processor,
    }
}

/// Leaves where the run looks for what engines say of themselves: version, settings, log.
fn write_facts(server: &Server, dir: &Path) -> Result<(), String> {
    let (version, settings) = server.facts()?;
    let log = std::fs::read(dir.join("server.log")).unwrap_or_default();
    let files = [
        ("OPTIONS-000001", format!("[settings]\n{}", comparable(&settings, dir))),
        ("LOG", format!("server version: {version}\n{}", String::from_utf8_lossy(&log))),
    ];
    files.into_iter().try_for_each(|(name, text)| {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    })
}

/// Settings without those that name the session's own directory: they differ between any two sessions.
fn comparable(settings: &str, dir: &Path) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf()).display().to_string();
    let kept = settings.lines().filter(|line| !line.contains(&dir));
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_the_session_are_left_out() {
        let settings = "a=1\ndata_directory=/x/session-3/data\nb=2\n";
        assert_eq!(comparable(settings, Path::new("/x/session-3")), "a=1\nb=2\n");
    }

    #[test]
    fn processes_that_ended_leave_no_negative_counts() {
        let usage = |seconds: f64, switches: u64| ProcessUsage {
            user_seconds: seconds,
            voluntary_switches: switches,
            device_bytes: Some([switches, 100 * switches]),
            ..ProcessUsage::default()
        };
        let used = since(&usage(2.0, 3), &usage(1.5, 10));
        assert_eq!((used.user_seconds, used.voluntary_switches, used.device_bytes), (0.5, 0, Some([0, 0])));
        assert_eq!(since(&usage(2.0, 5), &usage(1.5, 3)).device_bytes, Some([2, 200]));
    }
}

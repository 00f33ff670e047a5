//! The process that writes and is killed, and its parent's end.
//!
//! ```text
//! parent --the plan, one line of JSON--> child
//! parent <--'O'------------------------- child   the database is open
//! parent <--'B' thread / 'D' thread----- child   a write begins; it is acknowledged: two bytes, one write(2) each
//! ```
//! Two bytes reach a pipe as a whole, and stay readable when their writer is dead, so the order in which the parent reads them
//! is one that the threads could have seen: a write whose 'D' comes before another's 'B' was acknowledged before that began.

use super::Plan;
use crate::batch::{self, Batch};
use crate::database::{Database, Handle};
use crate::history::{Change, Event, Log};
use crate::library::Api;
use crate::progress::{Patience, Watchdog};
use crate::rows::open;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The patience with a writer until it has opened its database.
const PATIENCE: Patience = Patience { idle: Duration::from_secs(120), work: Duration::from_secs(600) };
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Writes of a thread at most, should nobody kill it.
const MOST_WRITES: u64 = 1_000_000;

/// The end of a writer.
pub struct Killed {
    /// The events that it told.
    pub log: Log,
    /// It had opened the database.
    pub opened: bool,
}

/// Starts a writer in `db` and kills it when the plan says.
///
/// # Errors
/// It ended by itself, or does not open the database in time.
pub fn kill(program: &Path, library: &Path, db: &Path, plan: &Plan) -> Result<Killed, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut errors = tempfile::tempfile().map_err(failed)?;
    let mut child = Command::new(program)
        .args([Path::new("kill-writer"), Path::new("--library"), library, Path::new("--dir"), db])
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let started = Instant::now();
    let mut input = child.stdin.take().expect("piped above");
    let mut output = child.stdout.take().expect("piped above");
    let line = serde_json::to_string(plan).expect("a plan is plain data");
    // A child that is gone is noticed below.
    let _ = writeln!(input, "{line}");
    let (tell_opened, opened) = channel();
    let threads = plan.threads;
    let reader = std::thread::spawn(move || {
        let mut log = Log::new(threads);
        let mut event = [0; 2];
        while output.read_exact(&mut event).is_ok() {
            match event {
                [b'O', _] => drop(tell_opened.send(())),
                [b'B', thread] => log.add(usize::from(thread), Event::Begun),
                [b'D', thread] => log.add(usize::from(thread), Event::Done),
                _ => break,
            }
        }
        log
    });
    let after = Duration::from_micros(plan.micros);
    let mut hangs = None;
    if plan.while_opening {
        std::thread::sleep(after.saturating_sub(started.elapsed()));
    } else {
        let mut dog = Watchdog::new(child.id(), PATIENCE);
        loop {
            match opened.recv_timeout(LOOK) {
                Ok(()) => std::thread::sleep(after),
                Err(RecvTimeoutError::Timeout) => {
                    hangs = dog.look(0);
                    if hangs.is_none() {
                        continue;
                    }
                }
                // It died, which is told below.
                Err(RecvTimeoutError::Disconnected) => {}
            }
            break;
        }
    }
    // One that ended before has no business to.
    let ended = child.try_wait().map_err(failed)?;
    let _ = child.kill();
    let status = child.wait().map_err(failed)?;
    let log = reader.join().map_err(|_| "the reader of events panicked".to_string())?;
    let was_open = !plan.while_opening || opened.try_recv().is_ok();
    drop(input);
    let mut printed = String::new();
    let _ = errors.seek(SeekFrom::Start(0)).and_then(|_| errors.read_to_string(&mut printed));
    if let Some(how) = hangs {
        return Err(format!("{} does not open: {how}; {printed}", plan.writer));
    }
    if ended.is_some() || printed.contains("panicked at") || printed.contains("kill-writer:") {
        return Err(format!("the writer {} ended by itself: {status}; {printed}", plan.writer));
    }
    Ok(Killed { log, opened: was_open })
}

/// The child.
///
/// # Errors
/// The library cannot be loaded, the database opened or written.
pub fn serve(library: &Path, dir: &Path) -> Result<(), String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| format!("kill-writer: {error}"))?;
    let plan: Plan = serde_json::from_str(&line).map_err(|error| format!("kill-writer: {error}"))?;
    let api = Api::load(library)?;
    // Not through the buffer of `stdout`: each event is one write(2).
    let events = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let events = events.map_err(|error| format!("kill-writer: {error}"))?;
    let (database, handles) = open(&api, &plan.options, plan.writing_mode(), dir, false)
        .map_err(|error| format!("kill-writer: opening: {error}"))?;
    tell(&events, *b"O ");
    let outcome = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let (database, handles, plan, events) = (&database, &handles, &plan, &events);
                scope.spawn(move || write(database, handles, plan, thread, events))
            })
            .collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"))
    });
    outcome.map_err(|error| format!("kill-writer: {error}"))?;
    // Until the kill, or the end of a parent that is gone.
    let _ = std::io::stdin().read_line(&mut line);
    Ok(())
}

/// Tells the parent; ends the process if there is none any more.
fn tell(mut events: &File, event: [u8; 2]) {
    if events.write_all(&event).is_err() {
        std::process::exit(0);
    }
}

fn write(
    database: &Database<'_>,
    handles: &[Handle],
    plan: &Plan,
    thread: usize,
    events: &File,
) -> Result<(), String> {
    let number = thread as u8;
    for index in 0..MOST_WRITES {
        let write = plan.shape.draw(thread, index);
        let mut batch = Batch::new(database.api)?;
        for change in &write.changes {
            let (family, change) = match change {
                Change::Put(family, key, value) => (family, batch::Change::Put(key, value)),
                Change::Merge(family, key, operand) => (family, batch::Change::Merge(key, operand)),
                Change::Delete(family, key) => (family, batch::Change::Delete(key)),
                Change::DeleteRange(family, begin, end) => (family, batch::Change::DeleteRange(begin, end)),
            };
            batch.add(handles[*family], change)?;
        }
        tell(events, [b'B', number]);
        database
            .write(&batch, write.sync, true)
            .map_err(|error| format!("write {index} of {thread}: {error}"))?;
        tell(events, [b'D', number]);
        if thread == 0 && index % 500 == 499 {
            database.flush_together(handles, true).map_err(|error| format!("flush: {error}"))?;
        }
    }
    Ok(())
}

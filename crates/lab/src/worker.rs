//! The child process: runs one session and reports each step on standard output.

use crate::session::{Message, Session, Source};
use outcrop_lab_load::{Database, RocksApi, StepKind, run_step};
use std::io::Write;
use std::time::{Duration, Instant};

/// Runs the session given as JSON. Errors of the engine are reported as a message, not as an exit code, so that
/// the parent can name the step.
///
/// # Errors
/// Only if the session does not parse or the parent is gone.
pub fn run(session: &str, in_process: RocksApi) -> Result<(), String> {
    let session: Session = serde_json::from_str(session).map_err(|error| format!("lab-worker: {error}"))?;
    if let Err(error) = run_session(&session, in_process) {
        say(&Message::Failed(error))?;
    }
    Ok(())
}

fn say(message: &Message) -> Result<(), String> {
    let line = serde_json::to_string(message).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("lab-worker: {error}"))
}

fn run_session(session: &Session, in_process: RocksApi) -> Result<(), String> {
    let api = match &session.target.source {
        Source::InProcess => in_process,
        Source::Library(path) => RocksApi::load(path)?,
    };
    let mut threads = 0;
    let mut db: Option<Database> = None;
    for (index, (step, _)) in session.steps().into_iter().enumerate() {
        let loading = step.kind == StepKind::FillSeq;
        // The load uses other memtables: the database is opened anew after it.
        if loading || index == 1 {
            drop(db.take());
            db = Some(Database::open(api, &session.dir, &session.open_options(loading))?);
        }
        let open = db.as_ref().expect("opened above");
        if matches!(step.kind, StepKind::ReadRandom | StepKind::Range { .. }) && !step.while_writing {
            outcrop_lab_load::steps::wait_for_compaction(open)?;
        }
        let mut said = Instant::now();
        let mut observe = |progress: outcrop_lab_load::Progress| {
            if said.elapsed() >= Duration::from_millis(250) {
                said = Instant::now();
                // A parent that is gone ends the session at the next step's message.
                let _ = say(&Message::Progress { step: index, ops: progress.ops, seconds: progress.seconds });
            }
        };
        let result = run_step(open, &step, &mut threads, &mut observe)
            .map_err(|error| format!("step {}: {error}", step.name))?;
        say(&Message::Done { step: index, result: Box::new(result) })?;
    }
    Ok(())
}

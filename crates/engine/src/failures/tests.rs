//! The effect of an error on the shared state, without a database.

use super::*;
use crate::testing::parts::Parts;
use outcrop_env::faulty::{EIO, ENOSPC};
use outcrop_options::DbOptions;

fn io(errno: i32) -> Error {
    Error::io("test", std::io::Error::from_raw_os_error(errno))
}

#[test]
fn an_error_that_may_pass_is_planned_to_be_tried_again() {
    let parts = Parts::new();
    parts.versions.fail_writes(io(EIO));
    let state = parts.versions.state.lock();
    assert_eq!(state.severity, Some(Severity::Hard));
    assert!(state.auto_resume.is_some_and(|plan| !plan.for_space && !plan.running));
    assert!(parts.versions.refuses_writes());
}

#[test]
fn the_worst_error_stays() {
    let parts = Parts::new();
    parts.versions.fail_writes(io(EIO));
    parts.versions.fail_writes(Error::corruption("worse"));
    parts.versions.fail_writes(io(ENOSPC));
    let state = parts.versions.state.lock();
    assert_eq!(state.severity, Some(Severity::Unrecoverable));
    assert_eq!(state.background_error.as_ref().map(Error::kind), Some(ErrorKind::Corruption));
    assert!(state.auto_resume.is_none(), "from corruption there is no way back");
}

#[test]
fn an_attempt_that_ended_by_a_panic_stands_in_no_ones_way() {
    let parts = Parts::new();
    parts.versions.fail_writes(io(EIO));
    assert!(parts.versions.next_resume(&mut parts.versions.state.lock()), "it is being tried");
    // It never says that it ended: the panic is all that is heard of it.
    parts.versions.fail_writes(Error::new(ErrorKind::Aborted, "a panic"));
    let mut state = parts.versions.state.lock();
    assert!(state.auto_resume.is_none());
    // The application resumes; the next error that may pass is tried again.
    (state.background_error, state.severity) = (None, None);
    drop(state);
    parts.versions.fail_writes(io(EIO));
    assert!(parts.versions.next_resume(&mut parts.versions.state.lock()));
}

#[test]
fn nobody_did_wrong_if_the_database_closes_or_the_column_family_is_gone() {
    let parts = Parts::new();
    for kind in [ErrorKind::ShutdownInProgress, ErrorKind::ColumnFamilyDropped] {
        assert_eq!(parts.versions.report_failure(Reason::Flush, "flush", &Error::new(kind, "test")), None);
    }
    assert!(!parts.versions.refuses_writes());
    assert_eq!(parts.versions.state.lock().background_errors, 0);
}

#[test]
fn without_attempts_nothing_is_tried() {
    let parts = Parts::of_db(DbOptions { max_bgerror_resume_count: 0, ..DbOptions::default() });
    parts.versions.fail_writes(io(EIO));
    assert!(parts.versions.state.lock().auto_resume.is_none());
}

#[test]
fn an_attempt_is_taken_once() {
    let parts = Parts::new();
    assert!(!parts.versions.next_resume(&mut parts.versions.state.lock()), "nothing failed");
    parts.versions.fail_writes(io(EIO));
    assert!(parts.versions.next_resume(&mut parts.versions.state.lock()));
    assert!(!parts.versions.next_resume(&mut parts.versions.state.lock()), "it is being tried");
}

#[test]
fn a_refused_writer_gets_the_error_or_is_told_of_the_closing_and_goes_on_after_resuming() {
    let parts = Parts::new();
    let refusal = || parts.versions.refusal().map(|error| error.kind());
    assert_eq!(refusal(), None);
    parts.versions.refuse_writes(true);
    assert_eq!(refusal(), Some(ErrorKind::ShutdownInProgress));
    parts.versions.fail_writes(io(EIO));
    assert_eq!(refusal(), Some(ErrorKind::IoError));
    // As `stopping::resume` does: the error goes first, and then writes go on.
    {
        let mut state = parts.versions.state.lock();
        (state.background_error, state.severity, state.resuming) = (None, None, true);
    }
    assert_eq!(refusal(), None, "it was not closed");
    parts.versions.state.lock().resuming = false;
    parts.versions.refuse_writes(false);
    assert_eq!(refusal(), None);
}

#[test]
fn compactions_rest_until_there_is_space() {
    let parts = Parts::new();
    parts.versions.pause_compactions(&io(ENOSPC), 1 << 40);
    parts.versions.look_for_retry();
    assert!(parts.versions.state.lock().compaction_pause.is_some(), "not due");
    let mut state = parts.versions.state.lock();
    let pause = state.compaction_pause.as_mut().unwrap();
    (pause.until_nanos, pause.needed_bytes) = (0, 0);
    drop(state);
    parts.versions.look_for_retry();
    assert!(parts.versions.state.lock().compaction_pause.is_none());
}

#[test]
fn what_must_be_free_to_resume_is_what_is_in_memory() {
    let parts = Parts::new();
    assert_eq!(parts.versions.bytes_to_resume(), 0);
    parts.put("a", "1");
    assert!(parts.versions.bytes_to_resume() > 0);
    assert!(parts.versions.has_space(1));
}

#[test]
fn whoever_resumes_waits_for_the_jobs_that_failed() {
    let parts = Parts::new();
    parts.versions.wait_for_failed_jobs();
    parts.versions.fail_writes(io(EIO));
    parts.versions.state.lock().running_flushes = 1;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| parts.versions.wait_for_failed_jobs());
        let mut state = parts.versions.state.lock();
        state.running_flushes = 0;
        parts.versions.job_ended(&mut state);
        drop(state);
        waiting.join().unwrap();
    });
}

#[test]
fn an_error_is_told_once_and_another_of_the_same_text_as_well() {
    let parts = Parts::new();
    let told = parts.listen_for_errors(false);
    let error = parts.versions.fail_writes(io(EIO));
    assert_eq!(told.take(), [format!("WriteCallback {error}")]);
    parts.versions.report_failure(Reason::Flush, "flush", &error);
    assert_eq!(told.take(), [""; 0], "the job ends with what was told where it was met");
    parts.versions.report_failure(Reason::Compaction, "compaction", &io(EIO));
    assert_eq!(told.take(), [format!("Compaction {error}")], "another failure");
    // The worse one is latched, and the first job ends only now.
    parts.versions.fail_writes(Error::corruption("worse"));
    told.take();
    parts.versions.report_failure(Reason::Flush, "flush", &error);
    assert_eq!(told.take(), [""; 0]);
}

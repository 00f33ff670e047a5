//! Waiting until nothing is left to do in the background.

use crate::core::Core;
use crate::events::reasons::FlushReason;
use crate::obsolete_files::may_purge;
use crate::state::DbState;
use outcrop_base::{CfId, Error, ErrorKind, Result};
use std::time::Duration;

/// Whether a call that starts background work returns at once.
///
/// ```
/// # use outcrop::{Db, Env, Wait};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// db.flush_cfs(&db.column_families(), Wait::UntilDone)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It returns when the work is done.
    UntilDone,
    /// It returns when the work is done and listeners have been told: not for listeners themselves.
    UntilTold,
    /// It returns at once.
    No,
}

/// Options of [`crate::Db::wait_for_compact`] besides waiting.
///
/// ```
/// # use outcrop::WaitForCompactOptions;
/// # use outcrop::{Db, Env};
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// let options = WaitForCompactOptions { flush: true, ..WaitForCompactOptions::default() };
/// db.wait_for_compact(&options)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitForCompactOptions {
    /// Return Aborted if background work is paused, rather than wait for it to go on. Default false.
    pub abort_on_pause: bool,
    /// Flush all column families first. Default false.
    pub flush: bool,
    /// Close the database afterwards: writes and what starts background work then fail; reads go on until the handle is dropped. Default false.
    pub close_db: bool,
    /// Give up with TimedOut after this long; `None`: never.
    pub timeout: Option<Duration>,
}

/// See [`crate::Db::wait_for_compact`].
pub fn wait_for_compact(core: &Core, options: &WaitForCompactOptions) -> Result<()> {
    let clock = &core.ctx.env.clock;
    // One that no clock reaches is one that never comes.
    let after = |timeout: Duration| {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        clock.monotonic_nanos().saturating_add(nanos)
    };
    let deadline = options.timeout.map(after);
    if options.flush {
        let ids: Vec<CfId> = core.column_family_ids();
        core.commit.flush(&ids, FlushReason::ManualFlush, false)?;
    }
    let mut state = core.versions.state.lock();
    let removes_files = |state: &DbState| !state.purges.is_empty() || may_purge(&core.ctx, state);
    if removes_files(&state) {
        core.versions.wake(&mut state);
    }
    while state.has_work() || removes_files(&state) {
        state.check_working()?;
        if state.paused > 0 && options.abort_on_pause {
            return Err(Error::new(ErrorKind::Aborted, "background work is paused"));
        }
        match deadline {
            None => core.versions.state_changed.wait(&mut state),
            Some(deadline) => {
                let now = clock.monotonic_nanos();
                if now >= deadline {
                    return Err(Error::new(ErrorKind::TimedOut, "waiting for compaction"));
                }
                core.versions.state_changed.wait_for(&mut state, Duration::from_nanos(deadline - now));
            }
        }
    }
    state.check_working()
}

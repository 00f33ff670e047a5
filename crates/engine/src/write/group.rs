//! Who writes: one leader at a time, which commits its own batch and those of others that wait for it.
//!
//! ```text
//! no syncs    A  leads, leads, leads, commits [B] too; finds B leading: waits .....................
//!             B  waits patiently ... calls ......... Done, leads, leads, leads, commits [A] too
//! syncs       A  leads, hands over to the first that waits ......
//!             B  waits ................................ Lead: gathers and commits [B, C], hands over
//!             C  waits ................................................................ Done
//! ```
//! A free lead is for whoever runs: it is not kept for those who sleep. How the others wait, the caller says (contention.rs):
//! until the leader is done, for which it is *called*; or patiently, and the leader is called when patience is over. A leader
//! that was called commits the batches of those in line up to the last that called, on its own thread, so that nothing waits
//! for a thread to wake up; if it cannot (other options, too many rounds), or if it syncs, it hands the lead to the first.
//! A group of synced writes is gathered by its leader when it starts, not when it is appointed: those who were told of the
//! group before come back in the time a leader takes to wake up, and a sync is shared by all of them.
//!
//! Invariants: there is at most one leader; only it touches the WAL, assigns sequence numbers and inserts. The line is in
//! order of arrival, and is served from its front. Whoever called is served before the lead is free again: a patient writer
//! is passed by others for as long as its patience lasts and one commit more, one that called by nobody who comes later.
//! Concurrency: a lone writer changes one word twice and moves nothing. A waiting writer's batch is moved into its
//! [`Writer`] so that the leader can read it without sharing the caller's memory. `models/` runs this file in every order
//! of steps.

use super::options::WriteOptions;
use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, SPINS, spin_loop};
use outcrop_base::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Batches are gathered into one group up to this many bytes, so that one writer's latency is bounded.
/// Source: RocksDB `max_write_batch_group_size_bytes`.
const MAX_GROUP_BYTES: usize = 1 << 20;
/// Groups of others that a leader commits before it goes back to its caller.
const MAX_ROUNDS: u32 = 2;

/// What one caller asks for.
pub struct Request {
    /// The batch in wire form.
    pub bytes: Vec<u8>,
    /// Its options.
    pub options: WriteOptions,
    /// It is committed by its own caller, in no group with others.
    pub alone: bool,
}

/// Writers that are committed together, in order.
pub type Group = Vec<(Arc<Writer>, Request)>;

/// A caller waiting in line.
pub struct Writer {
    state: Mutex<WriterState>,
    changed: Condvar,
    /// Not 0 once its turn has come, which is in the state: for those who spin.
    ended: AtomicU32,
}

enum WriterState {
    /// Nobody has taken the request.
    Waiting(Request),
    /// The leader works on the request.
    Taken,
    /// This writer must lead: its request comes back.
    Lead(Request),
    /// Committed or failed; the batch comes back.
    Done(Result<()>, Vec<u8>),
}

/// How a wait in line ended.
pub enum Turn {
    /// Lead, with the own request, and [gather](WriteQueue::gather) others.
    Lead(Request),
    /// A leader committed the batch, or failed to.
    Done(Result<()>, Vec<u8>),
}

impl Writer {
    fn new(request: Request) -> Arc<Writer> {
        let state = Mutex::new(WriterState::Waiting(request));
        Arc::new(Writer { state, changed: Condvar::new(), ended: AtomicU32::new(0) })
    }

    /// Waits until this writer must lead or its batch was dealt with; `None` if its patience, if any, is over before.
    fn wait(&self, patience: Option<Duration>) -> Option<Turn> {
        let mut state = self.state.lock();
        let mut patient = true;
        loop {
            let turn = state.turn();
            if turn.is_some() || !patient {
                return turn;
            }
            match patience {
                None => self.changed.wait(&mut state),
                Some(patience) => patient = !self.changed.wait_for(&mut state, patience).timed_out(),
            }
        }
    }

    /// The same, for a moment and without sleeping.
    fn spin(&self) -> Option<Turn> {
        (0..SPINS).find_map(|_| {
            spin_loop();
            if self.ended.load(Ordering::Relaxed) == 0 { None } else { self.state.lock().turn() }
        })
    }

    /// Takes the request of a waiting writer.
    fn take(&self) -> Request {
        match std::mem::replace(&mut *self.state.lock(), WriterState::Taken) {
            WriterState::Waiting(request) => request,
            _ => unreachable!("only the queue takes requests, and only once"),
        }
    }

    /// True if the request can commit in a group led by one with `leader`'s options.
    fn fits(&self, leader: &WriteOptions, group_bytes: usize) -> bool {
        match &*self.state.lock() {
            WriterState::Waiting(request) => {
                let options = &request.options;
                !request.alone
                    && options.disable_wal == leader.disable_wal
                    && (leader.sync || !options.sync)
                    && options.no_slowdown == leader.no_slowdown
                    && group_bytes + request.bytes.len() <= MAX_GROUP_BYTES
            }
            _ => false,
        }
    }

    /// True if it is to fail rather than wait for room.
    fn refuses_to_wait(&self) -> bool {
        matches!(&*self.state.lock(), WriterState::Waiting(request) if request.options.no_slowdown)
    }

    /// Ends the wait with `result`, giving the batch back.
    pub fn finish(&self, result: Result<()>, bytes: Vec<u8>) {
        self.end(WriterState::Done(result, bytes));
    }

    /// Makes the waiting writer leader.
    fn lead(&self) {
        let own = self.take();
        self.end(WriterState::Lead(own));
    }

    fn end(&self, how: WriterState) {
        *self.state.lock() = how;
        // Relaxed: whoever sees it locks the state.
        self.ended.store(1, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

impl WriterState {
    /// How the wait ended, if it did. To be taken once.
    fn turn(&mut self) -> Option<Turn> {
        match std::mem::replace(self, WriterState::Taken) {
            WriterState::Lead(own) => Some(Turn::Lead(own)),
            WriterState::Done(result, bytes) => Some(Turn::Done(result, bytes)),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Nobody leads. There may be patient writers in line.
const FREE: u32 = 0;
/// Somebody leads.
const LED: u32 = 1;
/// Somebody leads, and must look at the line before the lead is free again.
const CALLED: u32 = 2;

/// The line of writers.
#[derive(Default)]
pub struct WriteQueue {
    /// [`FREE`], [`LED`] or [`CALLED`]. The latter is set and cleared with the line locked.
    lead: AtomicU32,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// In order of arrival.
    waiting: VecDeque<Place>,
    /// The leader waits for room, which may take for ever.
    stalled: bool,
}

/// A place in line.
struct Place {
    writer: Arc<Writer>,
    /// It is to be served before the lead is free again.
    called: bool,
}

impl Line {
    fn is_called(&self) -> bool {
        self.waiting.iter().any(|place| place.called)
    }

    /// Takes the requests of the first `at_most` that can commit under `options`, up to the first that cannot.
    fn gather(&mut self, options: &WriteOptions, mut bytes: usize, at_most: usize) -> Group {
        let mut group = Vec::new();
        while group.len() < at_most
            && self.waiting.front().is_some_and(|place| place.writer.fits(options, bytes))
        {
            let writer = self.waiting.pop_front().expect("front exists").writer;
            let request = writer.take();
            bytes += request.bytes.len();
            group.push((writer, request));
        }
        group
    }
}

/// What a writer that asked not to wait is told when it would wait after one that does.
fn stalled() -> Error {
    Error::new(ErrorKind::Incomplete, "writes before this one are held back (no_slowdown is set)")
}

impl WriteQueue {
    /// Makes the caller leader if nobody is. Then [`WriteQueue::end_lead`] must follow.
    #[inline]
    pub fn try_lead(&self) -> bool {
        // Acquire: pairs with the Release of whoever led before.
        self.lead.compare_exchange(FREE, LED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The same, looking again for as long as falling asleep would take.
    pub fn spin_for_lead(&self) -> bool {
        (0..SPINS).any(|_| {
            spin_loop();
            self.lead.load(Ordering::Relaxed) == FREE && self.try_lead()
        })
    }

    /// Waits in line with `request`; a caller told to lead must call [`WriteQueue::end_lead`] after. It is served as soon as
    /// the leader is done, or, with `patience`, after that long for each one in line at the latest.
    pub fn wait_in_line(&self, request: Request, patience: Option<Duration>) -> Turn {
        let (writer, patience) = {
            let mut line = self.line.lock();
            if self.lead_or_call(patience.is_none()) {
                return Turn::Lead(request);
            }
            if line.stalled && request.options.no_slowdown {
                return Turn::Done(Err(stalled()), request.bytes);
            }
            let writer = Writer::new(request);
            line.waiting.push_back(Place { writer: writer.clone(), called: patience.is_none() });
            (writer, patience.map(|each| each * line.waiting.len() as u32))
        };
        let turn = writer.wait(patience).or_else(|| self.call(&writer));
        // The leader is called: mostly it serves the line sooner than a thread falls asleep.
        let turn = turn.or_else(|| writer.spin()).or_else(|| writer.wait(None));
        turn.expect("who has no patience waits for ever")
    }

    /// Calls for `writer`, whose patience is over. It leads if nobody does.
    #[cold]
    fn call(&self, writer: &Arc<Writer>) -> Option<Turn> {
        let mut line = self.line.lock();
        // If it is not there it is being served.
        let index = line.waiting.iter().position(|place| Arc::ptr_eq(&place.writer, writer))?;
        if self.lead_or_call(true) {
            line.waiting.remove(index);
            return Some(Turn::Lead(writer.take()));
        }
        line.waiting[index].called = true;
        None
    }

    /// True if nobody led and the caller does now. Else the leader is called if `call`. With the line locked.
    fn lead_or_call(&self, call: bool) -> bool {
        loop {
            if self.try_lead() {
                return true;
            }
            if !call {
                return false;
            }
            // Relaxed: what the leader has to see is in the line, which is locked.
            match self.lead.compare_exchange(LED, CALLED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) | Err(CALLED) => return false,
                // It was freed meanwhile.
                Err(_) => {}
            }
        }
    }

    /// Takes the requests that can commit with `own`, in order of arrival, up to the first that cannot. For the leader,
    /// who then owes each of them its [`Writer::finish`].
    pub fn gather(&self, own: &Request) -> Group {
        self.line.lock().gather(&own.options, own.bytes.len(), usize::MAX)
    }

    /// The leader waits for room from now on: those in line that asked not to wait fail, and so do those who come.
    /// Source: RocksDB `db/write_thread.cc`, `BeginWriteStall`.
    pub fn begin_stall(&self) {
        let mut failed = Vec::new();
        let mut line = self.line.lock();
        line.stalled = true;
        line.waiting.retain(|place| {
            let refused = place.writer.refuses_to_wait();
            if refused {
                let request = place.writer.take();
                failed.push((place.writer.clone(), request));
            }
            !refused
        });
        drop(line);
        for (writer, request) in failed {
            writer.finish(Err(stalled()), request.bytes);
        }
    }

    /// The leader does not wait any more.
    pub fn end_stall(&self) {
        self.line.lock().stalled = false;
    }

    /// Ends the caller's lead, whose own write had `options`. If it was called, it first has `commit` commit groups of others,
    /// unless `commit` is `None`, or hands the lead over. True if it committed any.
    #[inline]
    pub fn end_lead(
        &self,
        options: &WriteOptions,
        commit: Option<impl FnMut(&mut Group) -> Result<()>>,
    ) -> bool {
        // Release: pairs with the Acquire in `try_lead`; publishes what the leader wrote.
        let ended = self.lead.compare_exchange(LED, FREE, Ordering::Release, Ordering::Relaxed);
        ended.is_err() && self.serve_and_end_lead(options, commit)
    }

    #[cold]
    fn serve_and_end_lead(
        &self,
        options: &WriteOptions,
        mut commit: Option<impl FnMut(&mut Group) -> Result<()>>,
    ) -> bool {
        let mut served = Vec::new();
        for round in 0.. {
            let serves = !options.sync && round < MAX_ROUNDS;
            let Some((commit, mut group)) = commit
                .as_mut()
                .filter(|_| serves)
                .and_then(|commit| Some((commit, self.called_by(options)?)))
            else {
                break;
            };
            let result = commit(&mut group);
            served.extend(group.into_iter().map(|(writer, request)| (writer, request.bytes, result.clone())));
        }
        self.hand_over(options);
        let any = !served.is_empty();
        // Without the lead: a thread that is told takes microseconds to wake.
        for (writer, bytes, result) in served {
            writer.finish(result, bytes);
        }
        any
    }

    /// Takes the requests of those in line up to the last that called, if the first can be committed under `options`.
    fn called_by(&self, options: &WriteOptions) -> Option<Group> {
        let mut line = self.line.lock();
        let last = line.waiting.iter().rposition(|place| place.called)?;
        let group = line.gather(options, 0, last + 1);
        (!group.is_empty()).then_some(group)
    }

    /// Frees the lead, or makes the first in line leader if somebody called.
    fn hand_over(&self, options: &WriteOptions) {
        let mut line = self.line.lock();
        // Those who are patient share a sync, if there is one.
        let next = if line.is_called() || options.sync { line.waiting.pop_front() } else { None };
        let Some(next) = next else {
            // Release: as in `end_lead`. Only with the line locked is there anything but LED to overwrite.
            self.lead.store(FREE, Ordering::Release);
            return;
        };
        // Relaxed: the next leader sees what this one wrote through the lock of its state.
        self.lead.store(if line.is_called() { CALLED } else { LED }, Ordering::Relaxed);
        drop(line);
        next.writer.lead();
    }
}

#[cfg(test)]
// Said because `models/` compiles this file from elsewhere.
#[path = "group/tests.rs"]
mod tests;

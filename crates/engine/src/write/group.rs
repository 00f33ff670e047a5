//! The line of writers: one leader at a time, which commits its own batch and those of others that wait for
//! it.
//!
//! ```text
//! in turns    A  leads, leads, .. its turn is over: commits [B] too, leads until B is awake, waits in line ...........
//!             B  waits patiently ................ Done, leads, leads, .. its turn is over: commits [C] too ..
//!             C  waits patiently ........................................................ Done, leads, leads ..
//! called      A  leads: commits [B, C] too; leads ..
//!             B  waits ................... Done
//!             C  waits ................... Done
//! syncs       A  leads, hands over to the first that waits ......
//!             B  waits ................................ Lead: gathers and commits [B, C], hands over
//!             C  waits ................................................................ Done
//! ```
//! A free lead is for whoever runs: it is not kept for those who sleep. How the others wait, the caller says (contention.rs):
//! - until the leader is done, for which it is *called*. It then commits the batches of those who called itself, on its own
//!   thread, so that nothing waits for a thread to wake up; if it cannot (other options, too many rounds) it hands the lead over.
//! - or *patiently*, for a turn. While patient writers are in line, leaders count what they write. Once that makes a [`TURN`],
//!   the leader commits the batch of the first in line and wakes its writer, which goes on to write for a turn; the leader
//!   meets it and waits patiently in its turn. Until then it writes on, but for no more than [`GRACE`]: then the lead is *kept*,
//!   as a processor may be what the woken writer waits for. The first in line looks from time to time whether anybody writes,
//!   and calls or leads if not. So one patient writer is awake and one other looks after it, however long the line is.
//!
//! A leader that syncs hands its lead to the first in line, which gathers a group when it starts, not when it is appointed:
//! the writers of the group before call again in the time a leader takes to wake up, and a sync is shared by all.
//!
//! Invariants: there is at most one leader; only it touches the WAL, assigns sequence numbers and inserts. The line is in
//! order of arrival; those who called, and the patient ones, are each served in that order. Every writer that called
//! is served before the lead is free again. The first in line knows that it is the first. Concurrency: a lone writer
//! changes one word twice and moves nothing. A waiting writer's batch is moved into its [`Writer`] so that the leader
//! can read it without sharing the caller's memory. `models/` runs this file in every order of steps.

use super::options::WriteOptions;
use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, SPINS, TURN, spin_loop};
use outcrop_base::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Batches are gathered into one group up to this many bytes if nobody says otherwise, so that one writer's latency is bounded.
/// Source: RocksDB `max_write_batch_group_size_bytes`.
const MAX_GROUP_BYTES: usize = 1 << 20;
/// Groups of others that a leader commits before it goes back to its caller.
const MAX_ROUNDS: u32 = 2;

/// The write of one caller.
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
    Waiting {
        request: Request,
        /// It is the first in line: if nobody writes any more, it has to notice.
        first: bool,
    },
    /// The leader works on the request.
    Taken,
    /// This writer must lead: its request is returned.
    Lead(Request),
    /// Committed or failed; the batch is returned.
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
        let state = Mutex::new(WriterState::Waiting { request, first: false });
        Arc::new(Writer { state, changed: Condvar::new(), ended: AtomicU32::new(0) })
    }

    /// Waits until this writer must lead or its batch was dealt with.
    fn wait(&self) -> Turn {
        let mut state = self.state.lock();
        loop {
            if let Some(turn) = state.turn() {
                return turn;
            }
            self.changed.wait(&mut state);
        }
    }

    /// As [`Writer::wait`]; `None` once this writer is the first in line and `progress` has stood still for as long as `patience`.
    fn wait_in_turns(&self, patience: Duration, progress: impl Fn() -> u32) -> Option<Turn> {
        let mut state = self.state.lock();
        let mut seen = None;
        loop {
            if let Some(turn) = state.turn() {
                return Some(turn);
            }
            if !matches!(*state, WriterState::Waiting { first: true, .. }) {
                self.changed.wait(&mut state);
                continue;
            }
            let now = Some(progress());
            if seen == now {
                return None;
            }
            seen = now;
            self.changed.wait_for(&mut state, patience);
        }
    }

    /// As [`Writer::wait`], for a moment and without sleeping; `None` if it is not over by then.
    fn spin(&self) -> Option<Turn> {
        (0..SPINS).find_map(|_| {
            spin_loop();
            if self.ended.load(Ordering::Relaxed) == 0 { None } else { self.state.lock().turn() }
        })
    }

    /// Tells the writer that it is the first in line now.
    fn appoint(&self) {
        if let WriterState::Waiting { first, .. } = &mut *self.state.lock()
            && !std::mem::replace(first, true)
        {
            self.changed.notify_one();
        }
    }

    /// Takes the request of a waiting writer.
    fn take(&self) -> Request {
        match std::mem::replace(&mut *self.state.lock(), WriterState::Taken) {
            WriterState::Waiting { request, .. } => request,
            _ => unreachable!("only the queue takes requests, and only once"),
        }
    }

    /// True if the request can commit in a group led by one with `leader`'s options, beside whose writes there is room for `room` bytes.
    fn fits(&self, leader: &WriteOptions, room: usize) -> bool {
        match &*self.state.lock() {
            WriterState::Waiting { request, .. } => {
                let options = &request.options;
                !request.alone
                    && options.disable_wal == leader.disable_wal
                    && (leader.sync || !options.sync)
                    && options.no_slowdown == leader.no_slowdown
                    && options.rate_limiter_priority == leader.rate_limiter_priority
                    && request.bytes.len() <= room
            }
            _ => false,
        }
    }

    /// True if it is to fail rather than wait for room.
    fn refuses_to_wait(&self) -> bool {
        matches!(&*self.state.lock(), WriterState::Waiting { request, .. } if request.options.no_slowdown)
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
        // Relaxed: a thread that sees it locks the state.
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

/// Nobody leads and nobody is in line.
const FREE: u32 = 0;
/// Somebody leads.
const LED: u32 = 1;
/// Patient writers are in line: leaders count what they write.
const TURNS: u32 = 2;
/// Somebody leads, and must look at the line before the lead is free again.
const CALLED: u32 = 4;
/// Nobody leads, and the writer whose turn began is not awake yet: patient writers do not pass it.
const KEPT: u32 = 8;

/// The cost of the writes that a leader whose turn is over may add while the next wakes up.
const GRACE: u32 = TURN / 2;

/// The line of writers.
#[derive(Default)]
pub struct WriteQueue {
    /// The marks above. [`TURNS`] and [`CALLED`] are set and cleared with the line locked.
    lead: AtomicU32,
    /// The cost, by [`cost`], of the writes of leaders while patient writers were in line. Theirs alone to change.
    written: AtomicU32,
    /// The same when the turn began.
    turn_began: AtomicU32,
    /// 1 while a writer whose turn began is not awake yet.
    waking: AtomicU32,
    line: Mutex<Line>,
}

/// The cost of a write of so many bytes in a turn of [`TURN`].
fn cost(bytes: usize) -> u32 {
    1 + (bytes / 512) as u32
}

struct Line {
    /// In order of arrival.
    waiting: VecDeque<QueuedWriter>,
    /// The leader waits for room, which may take for ever.
    stalled: bool,
    /// Bytes of a group; a batch that is larger is written alone.
    max_group_bytes: usize,
}

impl Default for Line {
    fn default() -> Line {
        Line { waiting: VecDeque::new(), stalled: false, max_group_bytes: MAX_GROUP_BYTES }
    }
}

/// A place in line.
struct QueuedWriter {
    writer: Arc<Writer>,
    /// It is to be served before the lead is free again.
    called: bool,
}

impl Line {
    fn is_called(&self) -> bool {
        self.waiting.iter().any(|place| place.called)
    }

    /// Takes the requests of those who called (or of all, if a sync is shared) that can commit under `options`, up to the
    /// first that cannot.
    fn gather(&mut self, options: &WriteOptions, mut bytes: usize) -> Group {
        let mut group = Vec::new();
        let mut index = 0;
        while let Some(place) = self.waiting.get(index) {
            if !options.sync && !place.called {
                index += 1;
                continue;
            }
            if !place.writer.fits(options, self.max_group_bytes.saturating_sub(bytes)) {
                break;
            }
            let writer = self.waiting.remove(index).expect("it is there").writer;
            let request = writer.take();
            bytes += request.bytes.len();
            group.push((writer, request));
        }
        self.appoint_first();
        group
    }

    /// Adds the first in line to `group`, if it can commit with it under `options`. True if it does.
    fn add_first(&mut self, group: &mut Group, options: &WriteOptions) -> bool {
        let bytes: usize = group.iter().map(|(_, request)| request.bytes.len()).sum();
        let room = self.max_group_bytes.saturating_sub(bytes);
        if !self.waiting.front().is_some_and(|place| place.writer.fits(options, room)) {
            return false;
        }
        let place = self.waiting.pop_front().expect("front exists");
        self.appoint_first();
        let request = place.writer.take();
        group.push((place.writer, request));
        true
    }

    /// Whenever the line has changed: its first has to know.
    fn appoint_first(&self) {
        if let Some(place) = self.waiting.front() {
            place.writer.appoint();
        }
    }

    /// [`TURNS`] and [`CALLED`] as the line has it.
    fn marks(&self) -> u32 {
        let turns = if self.waiting.is_empty() { 0 } else { TURNS };
        turns | if self.is_called() { CALLED } else { 0 }
    }
}

/// The error of a writer that asked not to wait and would wait after one that does.
fn stalled() -> Error {
    Error::new(ErrorKind::Incomplete, "Write stall")
}

impl WriteQueue {
    /// A line of which at most so many bytes are written together; a batch that is larger is written alone.
    pub fn with_max_group_bytes(bytes: usize) -> WriteQueue {
        let queue = WriteQueue::default();
        queue.line.lock().max_group_bytes = bytes;
        queue
    }

    /// Makes the caller leader if nobody is. Then [`WriteQueue::end_lead`] must follow.
    #[inline]
    pub fn try_lead(&self) -> bool {
        // Acquire: pairs with the Release of whoever led before.
        let found = self.lead.compare_exchange(FREE, LED, Ordering::Acquire, Ordering::Relaxed);
        found.is_ok() || (found == Err(TURNS) && self.try_lead_in_turns())
    }

    /// The same, with patient writers in line: they are passed.
    fn try_lead_in_turns(&self) -> bool {
        // Acquire: as in `try_lead`.
        self.lead.compare_exchange(TURNS, TURNS | LED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The same, even if the lead is kept.
    fn try_lead_kept(&self) -> bool {
        let lead = self.lead.load(Ordering::Relaxed);
        // Acquire: as in `try_lead`.
        lead & LED == 0
            && self
                .lead
                .compare_exchange(lead, (lead & TURNS) | LED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// The same, looking again for as long as falling asleep would take.
    pub fn spin_for_lead(&self) -> bool {
        (0..SPINS).any(|_| {
            spin_loop();
            self.try_lead_kept()
        })
    }

    /// Waits in line with `request`; a caller told to lead must call [`WriteQueue::end_lead`] after. It is served as soon as
    /// the leader is done, or, with `patience`, when its turn comes; nobody writing for that long ends its patience.
    pub fn wait_in_line(&self, request: Request, patience: Option<Duration>) -> Turn {
        let writer = {
            let mut line = self.line.lock();
            if self.lead_or_mark(if patience.is_none() { TURNS | CALLED } else { TURNS }) {
                return Turn::Lead(request);
            }
            if line.stalled && request.options.no_slowdown {
                self.mark(&line);
                return Turn::Done(Err(stalled()), request.bytes);
            }
            let writer = Writer::new(request);
            line.waiting.push_back(QueuedWriter { writer: writer.clone(), called: patience.is_none() });
            line.appoint_first();
            writer
        };
        let turn = patience.and_then(|patience| {
            let progress = || self.written.load(Ordering::Relaxed);
            let turn = writer.wait_in_turns(patience, progress).or_else(|| self.call(&writer));
            // Relaxed: it decides when the next is woken, and nothing else.
            self.waking.store(0, Ordering::Relaxed);
            turn
        });
        // The leader is called: mostly it serves the line sooner than a thread falls asleep.
        turn.or_else(|| writer.spin()).unwrap_or_else(|| writer.wait())
    }

    /// Calls for `writer`, whose patience is over. It leads if nobody does.
    #[cold]
    fn call(&self, writer: &Arc<Writer>) -> Option<Turn> {
        let mut line = self.line.lock();
        // If it is not there it is being served.
        let index = line.waiting.iter().position(|place| Arc::ptr_eq(&place.writer, writer))?;
        if self.lead_or_mark(TURNS | CALLED) {
            line.waiting.remove(index);
            line.appoint_first();
            self.mark(&line);
            return Some(Turn::Lead(writer.take()));
        }
        line.waiting[index].called = true;
        None
    }

    /// True if nobody led and the caller does now. Else the lead has `marks`. With the line locked.
    fn lead_or_mark(&self, marks: u32) -> bool {
        loop {
            if marks & CALLED != 0 && self.try_lead_kept() || self.try_lead() {
                return true;
            }
            let lead = self.lead.load(Ordering::Relaxed);
            if lead & KEPT != 0 && marks & CALLED == 0 {
                return false;
            }
            // Relaxed: everything that the leader has to see is in the line, which is locked.
            if lead & LED != 0
                && self
                    .lead
                    .compare_exchange(lead, lead | marks, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                return false;
            }
        }
    }

    /// Makes the marks those of `line`. With the line locked, while somebody leads.
    fn mark(&self, line: &Line) {
        let marks = line.marks();
        loop {
            let lead = self.lead.load(Ordering::Relaxed);
            let marked = (lead & (LED | KEPT)) | marks;
            if self.lead.compare_exchange(lead, marked, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Takes the requests that can commit with `own`, in order of arrival, up to the first that cannot. For the leader,
    /// who then owes each of them its [`Writer::finish`].
    pub fn gather(&self, own: &Request) -> Group {
        self.line.lock().gather(&own.options, own.bytes.len())
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
        line.appoint_first();
        drop(line);
        for (writer, request) in failed {
            writer.finish(Err(stalled()), request.bytes);
        }
    }

    /// The leader does not wait any more.
    pub fn end_stall(&self) {
        self.line.lock().stalled = false;
    }

    /// Ends the caller's lead, whose own write had `bytes` and `options`. If it was called, or its turn is over, it first has
    /// `commit` commit those whose turn it is, unless `commit` is `None`, or hands the lead over. True if its turn is over.
    #[inline]
    pub fn end_lead(
        &self,
        options: &WriteOptions,
        bytes: usize,
        commit: Option<impl FnMut(&mut Group) -> Result<()>>,
    ) -> bool {
        !self.try_end_lead() && self.end_lead_of_turn(options, bytes, commit)
    }

    /// Ends the caller's lead if nobody is in line. Else [`WriteQueue::end_lead`] must follow.
    #[inline]
    pub fn try_end_lead(&self) -> bool {
        // Release: pairs with the Acquire in `try_lead`; publishes what the leader wrote.
        self.lead.compare_exchange(LED, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    fn end_lead_of_turn(
        &self,
        options: &WriteOptions,
        bytes: usize,
        commit: Option<impl FnMut(&mut Group) -> Result<()>>,
    ) -> bool {
        // Relaxed: only the leader changes it, and others only look whether it changes.
        let written = self.written.load(Ordering::Relaxed).wrapping_add(cost(bytes));
        self.written.store(written, Ordering::Relaxed);
        let turn = written.wrapping_sub(self.turn_began.load(Ordering::Relaxed));
        let waking = self.waking.load(Ordering::Relaxed) != 0;
        // Release: as in `end_lead`.
        if waking
            && turn >= GRACE
            && self
                .lead
                .compare_exchange(LED | TURNS, TURNS | KEPT, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return true;
        }
        let over = !waking && turn >= TURN;
        // Release: as in `end_lead`.
        if !over
            && !options.sync
            && self.lead.compare_exchange(LED | TURNS, TURNS, Ordering::Release, Ordering::Relaxed).is_ok()
        {
            return false;
        }
        self.serve_and_end_lead(options, over, commit);
        over
    }

    #[cold]
    fn serve_and_end_lead(
        &self,
        options: &WriteOptions,
        mut over: bool,
        mut commit: Option<impl FnMut(&mut Group) -> Result<()>>,
    ) {
        let mut served = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let Some(commit) = commit.as_mut().filter(|_| !options.sync) else { break };
            let mut line = self.line.lock();
            let mut group = line.gather(options, 0);
            if over && line.add_first(&mut group, options) {
                over = false;
                self.begin_turn();
                // Relaxed: see where it is cleared.
                self.waking.store(1, Ordering::Relaxed);
            }
            drop(line);
            if group.is_empty() {
                break;
            }
            let result = commit(&mut group);
            served.extend(group.into_iter().map(|(writer, request)| (writer, request.bytes, result.clone())));
        }
        self.hand_over(options, over);
        // Without the lead: a thread that is told takes microseconds to wake.
        for (writer, bytes, result) in served {
            writer.finish(result, bytes);
        }
    }

    /// The turn of the first in line begins. For the leader.
    fn begin_turn(&self) {
        // Relaxed: only leaders read it.
        self.turn_began.store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Frees the lead, or makes the first in line leader if somebody called, a sync is to be shared or its turn has come.
    fn hand_over(&self, options: &WriteOptions, over: bool) {
        let mut line = self.line.lock();
        let next = match line.waiting.iter().position(|place| place.called) {
            Some(called) if !options.sync => line.waiting.remove(called),
            None if !options.sync && !over => None,
            _ => {
                self.begin_turn();
                line.waiting.pop_front()
            }
        };
        line.appoint_first();
        let marks = line.marks();
        // Release: as in `end_lead`. Only with the line locked are there marks to overwrite. The next leader sees what this
        // one wrote through the lock of its state.
        self.lead.store(marks | if next.is_some() { LED } else { 0 }, Ordering::Release);
        drop(line);
        if let Some(next) = next {
            next.writer.lead();
        }
    }
}

#[cfg(test)]
// Said because `models/` compiles this file from elsewhere.
#[path = "group/tests.rs"]
mod tests;

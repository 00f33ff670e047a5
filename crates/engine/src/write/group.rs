//! Who writes: one leader at a time, which commits the batches of everyone who waits behind it.
//!
//! ```text
//! writer A  join -> Lead        commits [A], then hands over ------.
//! writer B  join -> waits ................................ Lead: gathers and commits [B, C]
//! writer C  join -> waits ........................................................... Done
//! ```
//! A group is gathered by its leader when it starts, not when it is appointed: those who were told of the group before
//! come back in the time a leader takes to wake up, and a sync is shared by all of them rather than by every other.
//!
//! Invariant: there is at most one leader; only it touches the WAL, assigns sequence numbers and inserts.
//! Concurrency: a lone writer takes the queue lock twice and moves nothing. A waiting writer's batch is
//! moved into its [`Writer`] so that the leader can read it without sharing the caller's memory. `models/` runs this file
//! in every order of steps.

use super::WriteOptions;
use crate::sync::{Condvar, Mutex};
use outcrop_base::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Batches are gathered into one group up to this many bytes, so that one writer's latency is bounded.
/// Source: RocksDB `max_write_batch_group_size_bytes`.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// What one caller asks for.
pub struct Request {
    /// The batch in wire form.
    pub bytes: Vec<u8>,
    /// Its options.
    pub options: WriteOptions,
}

/// A caller waiting in line.
pub struct Writer {
    state: Mutex<WriterState>,
    changed: Condvar,
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
        Arc::new(Writer { state: Mutex::new(WriterState::Waiting(request)), changed: Condvar::new() })
    }

    /// Waits until this writer must lead or its batch was dealt with.
    fn wait(&self) -> Turn {
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, WriterState::Taken) {
                WriterState::Lead(own) => return Turn::Lead(own),
                WriterState::Done(result, bytes) => return Turn::Done(result, bytes),
                other => *state = other,
            }
            self.changed.wait(&mut state);
        }
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
                options.disable_wal == leader.disable_wal
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
        *self.state.lock() = WriterState::Done(result, bytes);
        self.changed.notify_one();
    }

    /// Makes the waiting writer leader.
    fn lead(&self) {
        let own = self.take();
        *self.state.lock() = WriterState::Lead(own);
        self.changed.notify_one();
    }
}

/// The line of writers.
#[derive(Default)]
pub struct WriteQueue {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// Somebody leads.
    leading: bool,
    /// The leader waits for room, which may take for ever.
    stalled: bool,
    /// Those after it, in order of arrival.
    waiting: std::collections::VecDeque<Arc<Writer>>,
}

/// What a writer that asked not to wait is told when it would wait after one that does.
fn stalled() -> Error {
    Error::new(ErrorKind::Incomplete, "writes before this one are held back (no_slowdown is set)")
}

impl WriteQueue {
    /// Makes the caller leader if nobody is. Then [`WriteQueue::hand_over`] must follow.
    #[inline]
    pub fn try_lead(&self) -> bool {
        let mut line = self.line.lock();
        !std::mem::replace(&mut line.leading, true)
    }

    /// Waits in line with `request`; a caller told to lead must call [`WriteQueue::hand_over`] after.
    pub fn wait_in_line(&self, request: Request) -> Turn {
        let writer = {
            let mut line = self.line.lock();
            if !line.leading {
                line.leading = true;
                return Turn::Lead(request);
            }
            if line.stalled && request.options.no_slowdown {
                return Turn::Done(Err(stalled()), request.bytes);
            }
            let writer = Writer::new(request);
            line.waiting.push_back(writer.clone());
            writer
        };
        writer.wait()
    }

    /// Takes the requests that can commit with `own`, in order of arrival, up to the first that cannot. For the leader,
    /// who then owes each of them its [`Writer::finish`].
    pub fn gather(&self, own: &Request) -> Vec<(Arc<Writer>, Request)> {
        let mut line = self.line.lock();
        let mut bytes = own.bytes.len();
        let mut followers = Vec::new();
        while line.waiting.front().is_some_and(|writer| writer.fits(&own.options, bytes)) {
            let writer = line.waiting.pop_front().expect("front exists");
            let request = writer.take();
            bytes += request.bytes.len();
            followers.push((writer, request));
        }
        followers
    }

    /// The leader waits for room from now on: those in line that asked not to wait fail, and so do those who come.
    /// Source: RocksDB `db/write_thread.cc`, `BeginWriteStall`.
    pub fn begin_stall(&self) {
        let mut failed = Vec::new();
        let mut line = self.line.lock();
        line.stalled = true;
        line.waiting.retain(|writer| {
            let refused = writer.refuses_to_wait();
            if refused {
                failed.push(writer.clone());
            }
            !refused
        });
        drop(line);
        for writer in failed {
            let request = writer.take();
            writer.finish(Err(stalled()), request.bytes);
        }
    }

    /// The leader does not wait any more.
    pub fn end_stall(&self) {
        self.line.lock().stalled = false;
    }

    /// Ends the caller's leadership: the first in line leads next.
    #[inline]
    pub fn hand_over(&self) {
        let mut line = self.line.lock();
        let Some(next) = line.waiting.pop_front() else {
            line.leading = false;
            return;
        };
        drop(line);
        next.lead();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tag: u8, options: WriteOptions) -> Request {
        Request { bytes: vec![tag; 16], options }
    }

    #[test]
    fn waiting_writers_are_committed_by_the_next_leader_in_order() {
        let queue = Arc::new(WriteQueue::default());
        assert!(queue.try_lead());
        let threads: Vec<_> = (0..4u8)
            .map(|tag| {
                let queue_of_thread = queue.clone();
                let thread = std::thread::spawn(move || {
                    match queue_of_thread.wait_in_line(request(tag, WriteOptions::default())) {
                        Turn::Lead(own) => {
                            let followers = queue_of_thread.gather(&own);
                            let group: Vec<u8> = std::iter::once(own.bytes[0])
                                .chain(followers.iter().map(|(_, r)| r.bytes[0]))
                                .collect();
                            for (writer, request) in followers {
                                writer.finish(Ok(()), request.bytes);
                            }
                            queue_of_thread.hand_over();
                            group
                        }
                        Turn::Done(result, bytes) => {
                            result.unwrap();
                            assert_eq!(bytes, vec![tag; 16]);
                            Vec::new()
                        }
                    }
                });
                while queue.line.lock().waiting.len() <= tag as usize {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        queue.hand_over();
        let groups: Vec<Vec<u8>> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert_eq!(groups[0], [0, 1, 2, 3]);
        assert!(!queue.line.lock().leading);
    }

    #[test]
    fn a_sync_write_is_not_hidden_in_an_unsynced_group() {
        let queue = Arc::new(WriteQueue::default());
        assert!(queue.try_lead());
        let sync = WriteOptions { sync: true, ..WriteOptions::default() };
        let threads: Vec<_> = [WriteOptions::default(), sync]
            .into_iter()
            .enumerate()
            .map(|(i, options)| {
                let queue_of_thread = queue.clone();
                let thread = std::thread::spawn(move || {
                    let Turn::Lead(own) = queue_of_thread.wait_in_line(request(0, options)) else {
                        panic!("each must lead its own group");
                    };
                    let followers = queue_of_thread.gather(&own);
                    queue_of_thread.hand_over();
                    followers.len()
                });
                while queue.line.lock().waiting.len() <= i {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        queue.hand_over();
        assert!(threads.into_iter().all(|t| t.join().unwrap() == 0));
    }
}

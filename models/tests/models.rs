//! Models of two or three threads, run in every order.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use outcrop_models::cache_table::Slot;
use outcrop_models::write::WriteOptions;
use outcrop_models::write::group::{Request, Turn, WriteQueue};
use std::sync::Arc;

/// Runs `model` in every order with at most so many switches of threads that run on.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// What the leader alone may touch: loom fails if two threads do at a time, or one without seeing what the last did.
struct Log(UnsafeCell<Vec<u8>>);

// SAFETY: that accesses exclude each other is what the model proves; loom checks each.
unsafe impl Sync for Log {}

/// `DbInner::write`, with a log in place of WAL and memtable.
fn write(queue: &WriteQueue, log: &Log, tag: u8, sync: bool) {
    // SAFETY: as above.
    let commit = |tag: u8| log.0.with_mut(|log| unsafe { (*log).push(tag) });
    if queue.try_lead() {
        commit(tag);
        return queue.hand_over();
    }
    let options = WriteOptions { sync, ..WriteOptions::default() };
    match queue.wait_in_line(Request { bytes: vec![tag], options }) {
        Turn::Done(result, bytes) => {
            result.expect("the leader said so");
            assert_eq!(bytes, [tag], "each gets its own batch back");
        }
        Turn::Lead(own) => {
            let followers = queue.gather(&own);
            assert_eq!(own.bytes, [tag], "each gets its own batch back");
            commit(tag);
            for (writer, request) in followers {
                assert!(sync || !request.options.sync, "a synced write is not in a group that is not");
                commit(request.bytes[0]);
                writer.finish(Ok(()), request.bytes);
            }
            queue.hand_over();
        }
    }
}

#[test]
fn every_writer_is_committed_once_and_nobody_waits_for_ever() {
    explore(3, || {
        let shared = Arc::new((WriteQueue::default(), Log(UnsafeCell::new(Vec::new()))));
        let threads: Vec<_> = [(1, false), (2, true)]
            .into_iter()
            .map(|(tag, sync)| {
                let shared = shared.clone();
                thread::spawn(move || write(&shared.0, &shared.1, tag, sync))
            })
            .collect();
        write(&shared.0, &shared.1, 3, false);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: the threads have ended.
        let mut log = shared.1.0.with(|log| unsafe { (*log).clone() });
        log.sort_unstable();
        assert_eq!(log, [1, 2, 3]);
        assert!(shared.0.try_lead(), "nobody leads when all are done");
    });
}

/// A slot and the frame that belongs to it: contents that say which key they are of.
struct Cached {
    slot: Slot,
    frame: UnsafeCell<u64>,
}

// SAFETY: slots are atomics; that readers of the frame and its writer exclude each other is what the model proves.
unsafe impl Sync for Cached {}
// SAFETY: as above.
unsafe impl Send for Cached {}

impl Cached {
    /// A block of file 1 in the cache, not pinned.
    fn new() -> Arc<Cached> {
        let cached = Arc::new(Cached { slot: Slot::empty(), frame: UnsafeCell::new(0) });
        cached.write(1);
        cached.slot.release();
        cached
    }

    /// Writes the frame and makes the slot live for `file`, with one reference.
    fn write(&self, file: u64) {
        // SAFETY: nobody else has the frame, which loom checks.
        self.frame.with_mut(|frame| unsafe { *frame = file });
        self.slot.fill(file, 7, std::ptr::from_ref(&self.frame).cast_mut().cast(), 8, 0);
    }

    /// A lookup of file 1 that reads what it finds, and looks again at the end of its pin.
    fn read(&self) {
        let Some(hit) = self.slot.acquire(1, 7) else { return };
        let contents = || {
            let frame = hit.frame.cast::<UnsafeCell<u64>>();
            // SAFETY: the frame is there as long as `self`; that nobody writes it while it is pinned loom checks.
            unsafe { (*frame).with(|frame| *frame) }
        };
        assert_eq!(contents(), 1, "a frame of another block");
        self.slot.add_reference();
        self.slot.release();
        assert_eq!(contents(), 1, "the frame changes under a pin");
        self.slot.release();
    }

    /// Takes the frame for a block of file 2, if it is not pinned. As under the lock of the slabs.
    fn replace(&self) {
        if let Some((frame, 8)) = self.slot.evict(true).or_else(|| self.slot.evict(false)) {
            assert_eq!(frame.cast_const(), std::ptr::from_ref(&self.frame).cast());
            self.write(2);
            self.slot.release();
        }
    }
}

#[test]
fn a_pinned_frame_is_never_reused() {
    explore(4, || {
        let cached = Cached::new();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let cached = cached.clone();
                thread::spawn(move || cached.read())
            })
            .collect();
        cached.replace();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(!cached.slot.is_referenced(), "every reference was given back");
        assert_eq!(cached.slot.live_len(), Some(8));
    });
}

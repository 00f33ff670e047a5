//! Models of two or three threads, run in every order.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use outcrop_models::cache_table::Slot;
use outcrop_models::write::options::WriteOptions;
use outcrop_models::write::group::{Group, Request, Turn, WriteQueue};
use std::sync::Arc;
use std::time::Duration;

/// Runs `model` in every order with at most so many switches of threads that run on.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The part that the leader alone may touch: loom fails if two threads do at a time, or one without seeing what the
/// last did.
struct Log(UnsafeCell<Vec<u8>>);

// SAFETY: that accesses exclude each other is what the model proves; loom checks each.
unsafe impl Sync for Log {}

/// One who writes `tag`.
#[derive(Clone, Copy)]
struct Caller {
    tag: u8,
    sync: bool,
    patient: bool,
}

/// `CommitPipeline::write`, with a log in place of WAL and memtable.
fn write(queue: &WriteQueue, log: &Log, caller: Caller) {
    let Caller { tag, sync, patient } = caller;
    // SAFETY: as above.
    let commit = |tag: u8| log.0.with_mut(|log| unsafe { (*log).push(tag) });
    let serve = |group: &mut Group| {
        for (_, request) in group {
            assert!(!request.options.sync, "nobody serves who does not sync");
            commit(request.bytes[0]);
        }
        Ok(())
    };
    let options = WriteOptions { sync, ..WriteOptions::default() };
    if queue.try_lead() || (!patient && queue.spin_for_lead()) {
        commit(tag);
        queue.end_lead(&options, 1, Some(serve));
        return;
    }
    let patience = patient.then_some(Duration::ZERO);
    match queue.wait_in_line(Request { bytes: vec![tag], options, alone: false }, patience) {
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
            queue.end_lead(&options, 1, Some(serve));
        }
    }
}

/// Runs `callers` at once, `times` each, in every order.
fn all_write(preemptions: usize, times: usize, callers: [(bool, bool); 3]) {
    explore(preemptions, move || {
        let shared = Arc::new((WriteQueue::default(), Log(UnsafeCell::new(Vec::new()))));
        let [first, second, third] = std::array::from_fn(|index| {
            let (sync, patient) = callers[index];
            let (tag, shared) = (index as u8, shared.clone());
            move || (0..times).for_each(|_| write(&shared.0, &shared.1, Caller { tag, sync, patient }))
        });
        let threads = [thread::spawn(first), thread::spawn(second)];
        third();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: the threads have ended.
        let mut log = shared.1.0.with(|log| unsafe { (*log).clone() });
        log.sort_unstable();
        let once_each: Vec<u8> = (0..3).flat_map(|tag| std::iter::repeat_n(tag, times)).collect();
        assert_eq!(log, once_each);
        assert!(shared.0.try_lead(), "nobody leads when all are done");
    });
}

#[test]
fn every_writer_is_committed_once_and_nobody_waits_for_ever() {
    all_write(3, 1, [(false, false), (true, false), (false, false)]);
}

#[test]
fn patient_writers_are_committed_once_and_do_not_wait_for_ever() {
    all_write(2, 1, [(false, true), (false, true), (false, false)]);
}

#[test]
fn patient_writers_take_turns() {
    all_write(2, 3, [(false, true), (false, true), (false, true)]);
}

#[test]
fn a_patient_writer_shares_the_line_with_one_that_syncs() {
    all_write(2, 1, [(false, true), (true, false), (false, true)]);
}

#[test]
fn patient_writers_notice_when_one_that_syncs_has_handed_over() {
    all_write(2, 2, [(false, true), (true, false), (false, true)]);
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

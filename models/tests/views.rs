//! A model of what a read sees: one thread commits, seals the memtable, and drops what nobody can see any more; one reads.
//! The memtables are the product's. The cell of the current view is `arc_swap`'s in the product, here a pointer with the
//! orderings it promises; when a view is freed is its own affair, and no part of the model.
#![cfg(loom)]

use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use loom::thread;
use outcrop_base::{Comparator, LookupKey, SeqNum, ValueType};
use outcrop_models::memtable::MemTable;
use outcrop_models::pool::MemTablePool;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The newest first, as in `SuperVersion`.
struct View(Vec<Arc<MemTable>>);

struct Database {
    view: AtomicPtr<View>,
    visible_seq: AtomicU64,
}

fn memtable() -> Arc<MemTable> {
    Arc::new(MemTable::new(Comparator::Bytewise, 0, &Arc::new(MemTablePool)))
}

fn put(memtable: &MemTable, seq: u64) {
    memtable.insert(SeqNum(seq), ValueType::Value, b"k", &[seq as u8]);
}

impl Database {
    /// As `CfState::install_superversion`.
    fn install(&self, memtables: &[&Arc<MemTable>]) {
        let view = Box::new(View(memtables.iter().map(|memtable| (*memtable).clone()).collect()));
        self.view.swap(Box::into_raw(view), Ordering::AcqRel);
    }

    /// As the end of `CommitPipeline::lead`.
    fn publish(&self, seq: u64) {
        self.visible_seq.store(seq, Ordering::Release);
    }

    /// As a get (`read::one_moment`): the number it reads at, and what it finds.
    fn get(&self) -> (u64, Option<u64>) {
        let view = self.view.load(Ordering::Acquire);
        // After `view`: a flush in between could otherwise drop what this snapshot must see.
        let snapshot = self.visible_seq.load(Ordering::Acquire);
        let mut found = None;
        // SAFETY: views are freed by nobody.
        for memtable in unsafe { &(*view).0 } {
            memtable.get(&LookupKey::new(b"k"), SeqNum(snapshot), |seq, _, value| {
                assert_eq!(value, [seq.0 as u8]);
                found = Some(seq.0);
                ControlFlow::Break(())
            });
            if found.is_some() {
                break;
            }
        }
        (snapshot, found)
    }
}

#[test]
fn a_read_sees_the_newest_version_that_was_published_before_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.check(|| {
        let first = memtable();
        put(&first, 1);
        let view = Box::into_raw(Box::new(View(vec![first.clone()])));
        let database = Arc::new(Database { view: AtomicPtr::new(view), visible_seq: AtomicU64::new(1) });
        let database_of_thread = database.clone();
        let writer = thread::spawn(move || {
            let database = database_of_thread;
            let second = memtable();
            database.install(&[&second, &first]);
            put(&second, 2);
            database.publish(2);
            // Version 1 is hidden from all who come: a flush with a compaction leaves version 2 alone.
            let compacted = memtable();
            put(&compacted, 2);
            database.install(&[&compacted]);
        });
        let published = database.visible_seq.load(Ordering::Acquire);
        let (snapshot, found) = database.get();
        assert!(
            found.is_some_and(|seq| published <= seq && seq <= snapshot),
            "{published} {found:?} {snapshot}"
        );
        writer.join().unwrap();
        assert_eq!(database.get(), (2, Some(2)));
    });
}

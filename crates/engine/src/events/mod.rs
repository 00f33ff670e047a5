//! Reports the events of a database to listeners: flushes, compactions, ingestions, errors, stalls.
//!
//! ```text
//! flush/job, compaction/run, write/switch, failures, features/ingest -> DbContext::tell -> EventSink (listener.rs) -> listeners
//! ```
//! An event is reported on the thread that causes it, with none of the engine's locks held but the line of writers
//! where a writer seals a memtable, changes a stall or meets the error. Without a sink nothing is put together:
//! [`DbContext::listens`] is one load.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `db/event_helpers.cc`.

pub mod compaction;
pub mod flush;
pub mod info;
pub mod reasons;
pub mod sink;
pub mod table_files;

use crate::context::DbContext;
use info::WriteStallInfo;
use outcrop_env::thread_id;
pub use sink::{Event, EventSink};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl DbContext {
    /// Has `sink` told what happens from here on. The first one stays.
    pub fn set_event_sink(&self, sink: Arc<dyn EventSink>) {
        let _ = self.events.sink.set(sink);
    }

    /// True if it is worth putting an event together: somebody listens, and the database does not close.
    #[inline]
    pub fn listens(&self) -> bool {
        self.events.sink.get().is_some() && self.check_open().is_ok()
    }

    /// `event` happens; nobody is told once the database closes.
    pub fn tell(&self, event: Event<'_>) {
        if let Some(sink) = self.events.sink.get().filter(|_| self.check_open().is_ok()) {
            sink.tell(event);
        }
    }

    /// The number of another job, above 0.
    pub fn new_job_id(&self) -> i32 {
        // Relaxed: uniqueness is all that is asked.
        self.events.next_job.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Keeps a change of stalls for [`DbContext::tell_stalls`]: the state is locked.
    pub fn note_stall(&self, info: WriteStallInfo) {
        let mut stalls = self.events.stalls.lock();
        stalls.push(info);
        // Relaxed: the thread that changed it looks itself after it has released the state.
        self.events.waiting.store(stalls.len(), Ordering::Relaxed);
    }

    /// Tells what [`DbContext::note_stall`] kept. With no lock held but, where a writer or an ingestion calls it, the line of writers.
    #[inline]
    pub fn tell_stalls(&self) {
        if self.events.waiting.load(Ordering::Relaxed) > 0 {
            self.tell_waiting_stalls();
        }
    }

    #[cold]
    fn tell_waiting_stalls(&self) {
        let stalls = {
            let mut stalls = self.events.stalls.lock();
            self.events.waiting.store(0, Ordering::Relaxed);
            std::mem::take(&mut *stalls)
        };
        stalls.iter().for_each(|info| self.tell(Event::StallChanged(info)));
    }

    /// The number of the calling thread, for those who are told.
    pub fn thread_id(&self) -> u64 {
        thread_id()
    }
}

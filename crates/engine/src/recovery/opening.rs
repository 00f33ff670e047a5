//! Opens the tables of a database that is being opened, several at a time.
//!
//! Concurrency: threads take one table after the other, in the order of the list. The first error in that order is the one reported: whoever
//! finds one takes no further table, and those that come before it in the list were taken already.

use crate::column_family::ColumnFamily;
use crate::context::DbContext;
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_manifest::TableFile;
use outcrop_monitor::Purpose;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tables for which another thread is worth its start. Below, the order of reads is that of the list.
const TABLES_PER_THREAD: usize = 16;
/// Threads if no option says otherwise. Source: RocksDB `max_file_opening_threads`.
const THREADS: usize = 16;

struct Opening {
    ctx: DbContext,
    tables: Vec<(Arc<ColumnFamily>, Arc<TableFile>)>,
    /// The next table to take.
    next: AtomicUsize,
    /// The first table in the list that must not fail and did.
    failed: Mutex<Option<(usize, Error)>>,
}

/// Opens `tables`, on as many threads as `max_file_opening_threads` allows, this one included.
///
/// # Errors
/// Those of the first table that does not open, unless `paranoid_checks` is off; a table that this engine cannot read fails in any case.
pub fn open(ctx: DbContext, tables: Vec<(Arc<ColumnFamily>, Arc<TableFile>)>) -> Result<()> {
    let allowed =
        ctx.options.kept.get("max_file_opening_threads").map_or(Some(THREADS), |text| text.parse().ok());
    let threads = allowed.unwrap_or(1).min(tables.len() / TABLES_PER_THREAD);
    let opening = Arc::new(Opening { ctx, tables, next: AtomicUsize::new(0), failed: Mutex::new(None) });
    let mut others = Vec::new();
    for _ in 1..threads {
        let of_thread = opening.clone();
        match opening.ctx.env.threads.spawn("outcrop:open", Box::new(move || of_thread.work())) {
            Ok(thread) => others.push(thread),
            // Those that there are do it.
            Err(_) => break,
        }
    }
    opening.work();
    for thread in others {
        thread.join()?;
    }
    match opening.failed.lock().take() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

impl Opening {
    fn work(&self) {
        let _reading = Purpose::Open.begin();
        loop {
            // Relaxed: hands out numbers; what is opened is published by its own cell.
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((cf, file)) = self.tables.get(at) else { return };
            match self.ctx.tables.open(cf, file) {
                Err(error) if self.ctx.options.paranoid_checks || error.kind() == ErrorKind::NotSupported => {
                    self.next.store(self.tables.len(), Ordering::Relaxed);
                    let mut failed = self.failed.lock();
                    if failed.as_ref().is_none_or(|(before, _)| at < *before) {
                        *failed = Some((at, error));
                    }
                    return;
                }
                // Reads that need the table will fail.
                _ => {}
            }
        }
    }
}

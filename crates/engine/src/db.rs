//! The database: public methods, each a few lines that call the owner of its work.
//!
//! Here: its parts, its column families, its end. Opening: `builder.rs`. The rest by subject: `db/writes.rs`, `db/reads.rs`,
//! `db/scans.rs`, `db/maintenance.rs`; facts about its files: `inspect.rs`.

mod clip;
mod maintenance;
mod reads;
mod scans;
mod timestamps;
pub(crate) mod writes;

use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::core::Core;
use crate::features::column_families;
use crate::features::read_only::{self, Secondary};
use crate::info_log::{LogLevel, log_at};
use crate::snapshots::Snapshot;
use crate::stopping;
use outcrop_base::{CfId, Error, Result, SeqNum};
use std::sync::Arc;

/// An open database. All methods may be called from any number of threads; share it by reference or in an `Arc`. Dropping it closes it:
/// [`Db::close`] does the same and says what went wrong.
///
/// ```
/// use outcrop::{Db, Env};
///
/// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("apple", "red")?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// db.delete("apple")?;
/// assert!(db.get("apple")?.is_none());
/// db.close()?;
/// # outcrop::Result::Ok(())
/// ```
pub struct Db {
    core: Arc<Core>,
    default_cf: ColumnFamilyHandle,
    /// Given if it can follow a primary.
    secondary: Option<Secondary>,
    /// Dropping it closes the database: false for what callbacks are given.
    closes: bool,
}

impl Db {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn new(core: Arc<Core>, secondary: Option<Secondary>) -> Db {
        let default_cf = core.column_family(CfId::DEFAULT).expect("the default column family exists");
        Db { core, default_cf, secondary, closes: true }
    }

    /// A handle for a callback: dropping it does not close the database.
    pub(crate) fn borrowed(core: Arc<Core>) -> Db {
        let mut db = Db::new(core, None);
        db.closes = false;
        db
    }

    /// Shows readers what the primary has written since this was opened or called last. Iterators and values in use
    /// stay as they are. Snapshots taken here before do not keep what the primary compacts away: take new ones.
    ///
    /// # Errors
    /// NotSupported if this was not opened by [`crate::DbBuilder::open_secondary`]; otherwise those of
    /// [`crate::DbBuilder::open`], and readers go on with what they have: try again.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        match &self.secondary {
            Some(secondary) => read_only::catch_up(&self.core, secondary),
            None => Err(Error::not_supported("the database was not opened as a secondary")),
        }
    }

    /// The column family every database has.
    pub fn default_column_family(&self) -> &ColumnFamilyHandle {
        &self.default_cf
    }

    /// The open column family called `name`. Keep the handle: looking it up costs a walk over all of them.
    pub fn column_family(&self, name: &str) -> Option<ColumnFamilyHandle> {
        self.core.registry.load().values().find(|cf| cf.name() == name && !cf.is_dropped()).cloned()
    }

    /// All open column families, in the order they were created.
    pub fn column_families(&self) -> Vec<ColumnFamilyHandle> {
        self.core.registry.load().values().cloned().collect()
    }

    /// Creates a column family: a name, or a descriptor with settings. On return it is in the MANIFEST and survives a crash.
    ///
    /// # Errors
    /// InvalidArgument if one of that name exists. If the MANIFEST cannot be written, the column family does not exist and
    /// writes are refused until [`Db::resume`]; only after a crash before that it may be there.
    pub fn create_column_family(
        &self,
        family: impl Into<ColumnFamilyDescriptor>,
    ) -> Result<ColumnFamilyHandle> {
        column_families::create(&self.core, &family.into())
    }

    /// Drops a column family. On return that is in the MANIFEST and survives a crash. Handles stay valid for reading until
    /// dropped themselves; its files go with the last of them.
    ///
    /// An OPTIONS file that cannot be written does not undo it, and is no error: that is tried again.
    ///
    /// # Errors
    /// InvalidArgument for the default column family and one that was dropped before. If the MANIFEST cannot be written,
    /// the column family is there as before and writes are refused until [`Db::resume`]; only after a crash before that it
    /// may be gone.
    pub fn drop_column_family(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        column_families::drop_family(&self.core, cf)
    }

    /// A view of the database as it is now, for use in [`crate::ReadOptions`].
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// The sequence number of the last write readers see.
    pub fn latest_sequence_number(&self) -> SeqNum {
        self.core.versions.visible_seq()
    }

    /// Closes the database: flushes what is in no WAL (unless `avoid_flush_during_shutdown`), ends
    /// background work, hands the WAL to the operating system and releases the lock. Compactions that run are given up
    /// soon; their files are removed and nothing is lost.
    ///
    /// In a process that was forked from the one that opened the database nothing is done but that: files, lock and threads are
    /// the parent's.
    ///
    /// # Errors
    /// Data that could not be flushed or written is then lost if it is in no WAL. The database is closed
    /// anyway.
    pub fn close(self) -> Result<()> {
        stopping::close(&self.core)
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        if !self.closes {
            return;
        }
        if self.core.ctx.is_forked() {
            // Nothing of it is dropped: locks may be held by threads that are not here, and files are the parent's.
            std::mem::forget(self.core.clone());
        } else if let Err(error) = stopping::close(&self.core) {
            log_at!(self.core.ctx, LogLevel::Error, "closing failed: {error}");
        }
    }
}

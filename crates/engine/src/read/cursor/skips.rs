//! The limit of entries that one positioning call may pass over: `ReadOptions::max_skippable_internal_keys`.
//!
//! Going forward an entry is counted where it is passed over, so that rows that are shown cost nothing. Going backward every version that is
//! looked at is counted, as in RocksDB.
//! Source: RocksDB `db/db_iter.cc`, `DBIter::TooManyInternalKeysSkipped`.

use super::Cursor;
use outcrop_base::keys::split;
use outcrop_base::{Error, ErrorKind, Result};

impl Cursor {
    /// Ends a walk forward that passed over too many entries, if there are more within the bounds.
    #[cold]
    pub(super) fn fail_on_skips(&mut self) -> bool {
        if !self.merged.valid() {
            return false;
        }
        let user_key = split(self.merged.key()).0;
        let is_end = self.upper.as_deref().is_some_and(|upper| !self.before(user_key, upper))
            || (self.prefix_bound && self.left_prefix(user_key));
        if !is_end {
            self.status = Err(too_many_skipped());
        }
        !is_end
    }

    /// Counts an entry that going backward passes over, or shows, if it is `counted`.
    ///
    /// # Errors
    /// Incomplete if there were too many before it.
    #[cold]
    pub(super) fn count_skipped(&self, counted: bool, skipped: &mut u64) -> Result<()> {
        if counted && *skipped > self.max_skipped {
            return Err(too_many_skipped());
        }
        *skipped += u64::from(counted);
        Ok(())
    }
}

/// The error of an iterator that passed over more entries than it may, in RocksDB's words.
#[cold]
pub(super) fn too_many_skipped() -> Error {
    Error::new(ErrorKind::Incomplete, "Too many internal keys skipped.")
}

//! The limit of entries that one positioning call may pass over: `ReadOptions::max_skippable_internal_keys`.
//!
//! Going forward an entry is counted where it is passed over, so that rows that are shown cost nothing. Going backward the versions that are
//! looked at are counted, up to `max_sequential_skip_in_iterations` and one or two more of each key, after
//! which RocksDB seeks past the others and counts no more. Entries that a range tombstone
//! hides are not.
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
            || (self.prefixes.is_bound() && self.prefixes.is_outside(user_key));
        if !is_end {
            self.status = Err(too_many_skipped());
        }
        !is_end
    }

    /// True if there is a limit: entries are counted, and range tombstones asked of them.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        self.max_skipped != u64::MAX
    }

    /// True if a range tombstone hides the entry that the merging iterator is at: such entries are not counted.
    #[cold]
    pub(super) fn hides_entry(&mut self) -> bool {
        let (user_key, trailer) = split(self.merged.key());
        let seq = trailer.seq();
        seq <= self.snapshot && self.tombstones.hide(user_key, seq)
    }

    /// Counts the entry that going backward is at, which is version number `versions` of its key: of `most` versions, and
    /// none that is `hidden` by a range tombstone.
    ///
    /// # Errors
    /// Incomplete if there were too many before it.
    #[cold]
    pub(super) fn count_version(
        &self,
        hidden: bool,
        versions: &mut u64,
        most: u64,
        skipped: &mut u64,
    ) -> Result<()> {
        if *versions >= most || hidden {
            return Ok(());
        }
        if *skipped > self.max_skipped {
            return Err(too_many_skipped());
        }
        *versions += 1;
        *skipped += 1;
        Ok(())
    }
}

/// The error of an iterator that passed over more entries than it may, in RocksDB's words.
#[cold]
pub(super) fn too_many_skipped() -> Error {
    Error::new(ErrorKind::Incomplete, "Too many internal keys skipped.")
}

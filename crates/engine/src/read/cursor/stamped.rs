//! A cursor over keys with user-defined timestamps.
//!
//! ```text
//! stored      (a, 9) (a, 5) (a, 2)   (b, 7) (b, 3)            read at 6
//! newest             [a]                    [b]               one row for each key
//! from 3 on          [a, 5]                 [b, 3]            each version from `start` on, deletions too
//! ```
//! Invariant: the key shown is in `Cursor::key`, its value in `Cursor::value`. After a step forward the merging iterator stands on
//! the entry shown; after one backward it stands before all entries of it.
//! Source: RocksDB `db/db_iter.cc`.

use super::skips::too_many_skipped;
use super::{Cursor, Position, Shape, type_error};
use crate::read::cursor_stamps::Stamped;
use crate::read::stamped::too_short;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::timestamp::{split_timestamp, stored_key};
use outcrop_base::{Result, SeqNum, Timestamp, ValueType, wide_columns};

/// How an entry is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It may be shown.
    Visible,
    /// It is newer than what is read.
    Newer,
    /// It is older than the first that is shown.
    Older,
}

impl Cursor {
    /// The timestamp of the version shown; `None` where keys have none. Panics unless valid.
    pub fn timestamp(&self) -> Option<Timestamp> {
        assert!(self.valid(), "timestamp() of an iterator that is not valid");
        let stamped = self.stamped.as_ref()?;
        split_timestamp(&stamped.stored).map(|(_, timestamp)| timestamp)
    }

    /// True if the version shown is a deletion, as with [`crate::ReadOptions::iter_start_timestamp`] some are. Panics unless valid.
    pub fn is_deletion(&self) -> bool {
        assert!(self.valid(), "is_deletion() of an iterator that is not valid");
        self.stamped.as_ref().is_some_and(|stamped| is_deletion(stamped.trailer.value_type()))
    }

    /// The version shown as it is stored: key, timestamp, and the 8 bytes of sequence number and type, as RocksDB's iterators give it
    /// with `iter_start_ts`. `None` without [`crate::ReadOptions::iter_start_timestamp`]. Panics unless valid.
    pub fn stored_version(&self) -> Option<Vec<u8>> {
        assert!(self.valid(), "stored_version() of an iterator that is not valid");
        let stamped = self.stamped.as_ref().filter(|stamped| stamped.start.is_some())?;
        Some([&stamped.stored[..], &stamped.trailer.to_bytes()].concat())
    }

    pub(super) fn stamped_first(&mut self) {
        self.status = Ok(());
        self.prefixes.clear();
        match self.lower.take() {
            Some(lower) => {
                self.merged.seek(&lower, Trailer::MAX);
                self.lower = Some(lower);
            }
            None => self.merged.seek_to_first(),
        }
        self.find_version_forward(false);
        self.bind_to_prefix_shown();
    }

    pub(super) fn stamped_last(&mut self) {
        self.status = Ok(());
        self.prefixes.clear();
        match self.upper.take() {
            Some(upper) => {
                self.merged.seek_for_prev(&upper, Trailer::MAX);
                self.upper = Some(upper);
            }
            None => self.merged.seek_to_last(),
        }
        self.find_version_backward();
        self.bind_to_prefix_shown();
    }

    pub(super) fn stamped_seek(&mut self, target: &[u8]) {
        self.status = Ok(());
        self.prefixes.bind(target);
        let Some(stamped) = &self.stamped else { return };
        let target = stored_key(target, stamped.read);
        match self.lower.take() {
            Some(lower) if self.before(&target, &lower) => {
                self.merged.seek(&lower, Trailer::MAX);
                self.lower = Some(lower);
            }
            lower => {
                self.lower = lower;
                self.merged.seek(&target, Trailer::new(self.snapshot, ValueType::FOR_SEEK));
            }
        }
        self.find_version_forward(false);
    }

    pub(super) fn stamped_seek_for_prev(&mut self, target: &[u8]) {
        self.status = Ok(());
        let stored = stored_key(target, Timestamp::MAX);
        if self.upper.as_deref().is_some_and(|upper| !self.before(&stored, upper)) {
            self.stamped_last();
            self.prefixes.bind(target);
            if self.valid() && self.prefixes.is_outside(self.key()) {
                self.position = Position::Invalid;
            }
            return;
        }
        self.prefixes.bind(target);
        let stored = stored_key(target, Timestamp::MIN);
        self.merged.seek_for_prev(&stored, Trailer::new(SeqNum::ZERO, ValueType::FOR_SEEK_BACKWARD));
        self.find_version_backward();
    }

    pub(super) fn stamped_next(&mut self) {
        if let Some(stamped) = &self.stamped
            && stamped.backward
        {
            self.merged.seek(&stamped.stored, stamped.trailer);
        }
        self.find_version_forward(true);
    }

    pub(super) fn stamped_prev(&mut self) {
        if let Some(stamped) = &self.stamped
            && !stamped.backward
        {
            let before = match stamped.start {
                Some(_) => stamped.stored.clone(),
                None => self.cf.row_start(stamped.stored.clone()),
            };
            self.merged.seek_for_prev(&before, Trailer::MAX);
        }
        self.find_version_backward();
    }

    /// Shows the first version to show at or after the merging iterator's position; with `skip`, after those that go with the entry
    /// shown.
    fn find_version_forward(&mut self, mut skip: bool) {
        self.position = Position::Invalid;
        let Some(mut stamped) = self.stamped.take() else { return };
        stamped.backward = false;
        let (mut passed, mut skipped) = (0, 0);
        while self.merged.valid() {
            let (stored, trailer) = split(self.merged.key());
            let Some((key, timestamp)) = split_timestamp(stored) else {
                self.status = Err(too_short());
                break;
            };
            if self.upper.as_deref().is_some_and(|upper| !self.before(stored, upper))
                || self.prefixes.is_outside(key)
            {
                break;
            }
            let seen = self.seen(&stamped, timestamp, trailer);
            let skips = skip && self.goes_with(&stamped, stored);
            if seen != Seen::Visible || skips {
                (passed, skipped) = (passed + 1, skipped + 1);
                if skipped > self.max_skipped {
                    self.status = Err(too_many_skipped());
                    break;
                }
                if passed <= self.max_skip {
                    self.merged.next();
                    continue;
                }
                passed = 0;
                self.pass_versions(&stamped, seen, skips);
                continue;
            }
            stamped.stored.clear();
            stamped.stored.extend_from_slice(stored);
            stamped.trailer = trailer;
            self.key.clear();
            self.key.extend_from_slice(key);
            let value_type = trailer.value_type();
            if is_deletion(value_type) && stamped.start.is_none() {
                skip = true;
                continue;
            }
            let stored = std::mem::take(&mut stamped.stored);
            let shown = self.merged_version(&stored, value_type);
            stamped.stored = stored;
            self.show_version(shown);
            break;
        }
        self.stamped = Some(stamped);
    }

    /// Leaves versions that are not shown by a seek, after many of them.
    #[cold]
    fn pass_versions(&mut self, stamped: &Stamped, seen: Seen, skips: bool) {
        let row = split_timestamp(split(self.merged.key()).0).map_or(&[][..], |(key, _)| key);
        let (target, trailer) = match (seen, stamped.start) {
            // To the first that is old enough.
            (Seen::Newer, _) if !skips => {
                (stored_key(row, stamped.read), Trailer::new(self.snapshot, ValueType::FOR_SEEK))
            }
            // Past those of one timestamp.
            (_, Some(_)) if skips => (split(self.merged.key()).0.to_vec(), Trailer::MIN),
            _ => (stored_key(row, Timestamp::MIN), Trailer::MIN),
        };
        let moves = self.cf.comparator.compare_parts(split(self.merged.key()), (&target, trailer)).is_lt();
        if moves {
            self.merged.seek(&target, trailer);
        } else {
            self.merged.next();
        }
    }

    /// Shows the last version to show before or at the merging iterator's position.
    fn find_version_backward(&mut self) {
        self.position = Position::Invalid;
        let Some(mut stamped) = self.stamped.take() else { return };
        stamped.backward = true;
        let mut skipped = 0;
        while self.merged.valid() {
            stamped.stored.clear();
            stamped.stored.extend_from_slice(split(self.merged.key()).0);
            let Some((key, _)) = split_timestamp(&stamped.stored) else {
                self.status = Err(too_short());
                break;
            };
            let below = self.lower.as_deref().is_some_and(|lower| self.before(&stamped.stored, lower));
            if below || self.prefixes.is_outside(key) {
                break;
            }
            match self.newest_going_backward(&mut stamped, &mut skipped) {
                Ok(None) => {}
                Ok(Some(value_type)) if is_deletion(Some(value_type)) && stamped.start.is_none() => {}
                Ok(Some(_)) => {
                    let key = split_timestamp(&stamped.stored).map_or(&[][..], |(key, _)| key);
                    self.key.clear();
                    self.key.extend_from_slice(key);
                    self.position = Position::Stamped;
                    break;
                }
                Err(error) => {
                    self.status = Err(error);
                    break;
                }
            }
        }
        self.stamped = Some(stamped);
    }

    /// Walks backward over all entries that go with `stamped.stored`, and leaves the newest visible one in `stamped`, its value in `value`;
    /// gives its type.
    fn newest_going_backward(
        &mut self,
        stamped: &mut Stamped,
        skipped: &mut u64,
    ) -> Result<Option<ValueType>> {
        let mut newest = None;
        while self.merged.valid() {
            let (stored, trailer) = split(self.merged.key());
            if !self.goes_with(stamped, stored) {
                break;
            }
            let Some((_, timestamp)) = split_timestamp(stored) else { return Err(too_short()) };
            if self.seen(stamped, timestamp, trailer) == Seen::Visible {
                let value_type = trailer.value_type();
                stamped.stored.clear();
                stamped.stored.extend_from_slice(stored);
                stamped.trailer = trailer;
                self.shape = self.merged_version(&stamped.stored, value_type)?;
                newest = value_type;
            } else {
                *skipped += 1;
                if *skipped > self.max_skipped {
                    return Err(too_many_skipped());
                }
            }
            self.merged.prev();
        }
        // A newer version may be what could not be read.
        self.merged.status()?;
        Ok(newest)
    }

    /// Whether an entry may be shown.
    fn seen(&self, stamped: &Stamped, timestamp: Timestamp, trailer: Trailer) -> Seen {
        let order = &self.cf.comparator;
        if trailer.seq() > self.snapshot || order.compare_timestamps(timestamp, stamped.read).is_gt() {
            return Seen::Newer;
        }
        match stamped.start {
            Some(start) if order.compare_timestamps(timestamp, start).is_lt() => Seen::Older,
            _ => Seen::Visible,
        }
    }

    /// True if at most one of `stored` and the entry shown is shown: they are versions of one key, or, where all of these are shown,
    /// writes of one version.
    fn goes_with(&self, stamped: &Stamped, stored: &[u8]) -> bool {
        match stamped.start {
            Some(_) => self.cf.comparator.same(stored, &stamped.stored),
            None => self.cf.rows.same(stored, &stamped.stored),
        }
    }

    /// Copies the value under the merging iterator to `value`, and gives its shape.
    fn merged_version(&mut self, stored: &[u8], value_type: Option<ValueType>) -> Result<Shape> {
        let bytes = self.merged.value();
        let (value, shape) = match value_type {
            Some(ValueType::Value) => (bytes.to_vec(), Shape::Fetched),
            Some(ValueType::BlobIndex) => (self.fetch(stored, bytes)?, Shape::Fetched),
            Some(ValueType::WideColumnEntity) => (self.with_values(stored, bytes)?, Shape::FetchedEntity),
            deletion if is_deletion(deletion) => (Vec::new(), Shape::Fetched),
            other => return Err(type_error(other)),
        };
        if shape == Shape::FetchedEntity {
            wide_columns::default_column(&value)?;
        }
        self.value = value;
        Ok(shape)
    }

    fn show_version(&mut self, shown: Result<Shape>) {
        match shown {
            Ok(shape) => (self.position, self.shape) = (Position::Stamped, shape),
            Err(error) => self.status = Err(error),
        }
    }
}

fn is_deletion(value_type: Option<ValueType>) -> bool {
    matches!(
        value_type,
        Some(ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp)
    )
}

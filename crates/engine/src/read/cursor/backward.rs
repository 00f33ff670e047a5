//! Going backward: the oldest version of a key comes first, so each key is read to its newest visible version before it is shown.

use super::skips::too_many_skipped;
use super::{Cursor, Held, Position, Shape, type_error};
use crate::read::merge::{Base, MergeOperands};
use outcrop_base::keys::split;
use outcrop_base::{Result, ValueType, wide_columns};

/// The outcome of the versions of one key, going backward.
enum Resolved {
    /// A live value of this shape, in `Cursor::value`.
    Value(Shape),
    /// Operands over a base.
    Merged(Base<'static>, MergeOperands),
    /// Deleted, or not visible.
    Hidden,
}

impl Cursor {
    /// Moves the merging iterator backward until it is before every version of `key`; gives the steps.
    ///
    /// # Errors
    /// Incomplete if they are more than may be passed over.
    pub(super) fn step_before_saved_key(&mut self) -> Result<u64> {
        let (mut stepped, mut versions) = (0, 0);
        while self.merged.valid() && !self.before(split(self.merged.key()).0, &self.key) {
            if self.is_limited() {
                let hidden = self.hides_entry();
                self.count_version(hidden, &mut versions, self.max_skip.saturating_add(1), &mut stepped)?;
            }
            self.merged.prev();
        }
        Ok(stepped)
    }

    /// Shows the last live key at or before the merging iterator's position, after `skipped` entries were passed over.
    pub(super) fn find_backward(&mut self, mut skipped: u64) {
        self.position = Position::Invalid;
        while self.merged.valid() {
            let user_key = split(self.merged.key()).0;
            if self.lower.as_deref().is_some_and(|lower| self.before(user_key, lower))
                || self.prefixes.is_outside(user_key)
            {
                return;
            }
            self.key.clear();
            self.key.extend_from_slice(user_key);
            match self.resolve_backward(&mut skipped) {
                Ok(Resolved::Value(shape)) => {
                    self.shape = shape;
                    self.position = Position::SavedBackward;
                    return;
                }
                Ok(Resolved::Merged(base, operands)) => {
                    return self.show_merged(&base, &operands, Position::SavedBackward);
                }
                Ok(Resolved::Hidden) if skipped > self.max_skipped => {
                    self.status = Err(too_many_skipped());
                    return;
                }
                Ok(Resolved::Hidden) => {}
                Err(error) => {
                    self.status = Err(error);
                    return;
                }
            }
        }
    }

    /// Walks backward over all versions of `key`, leaving its newest visible value in `value`.
    fn resolve_backward(&mut self, skipped: &mut u64) -> Result<Resolved> {
        // The newest live version so far: the shape of its bytes in `value` or `held`.
        let mut live: Option<ValueType> = None;
        let mut held = false;
        let mut operands = MergeOperands::default();
        let mut versions = 0;
        while self.merged.valid() {
            let (user_key, trailer) = split(self.merged.key());
            if !self.is_key(user_key) {
                break;
            }
            if self.is_limited() {
                let seq = trailer.seq();
                let hidden = seq <= self.snapshot && self.tombstones.hide(user_key, seq);
                // One more than above: RocksDB counts the newest version again when it steps before the key.
                self.count_version(hidden, &mut versions, self.max_skip.saturating_add(2), skipped)?;
            }
            if trailer.seq() <= self.snapshot {
                match trailer.value_type() {
                    Some(_) if self.tombstones.hide(user_key, trailer.seq()) => {
                        live = None;
                        operands.clear();
                    }
                    Some(found @ (ValueType::Value | ValueType::WideColumnEntity | ValueType::BlobIndex)) => {
                        held = found == ValueType::Value && self.hold();
                        if !held {
                            self.value.clear();
                            self.value.extend_from_slice(self.merged.value());
                        }
                        live = Some(found);
                        operands.clear();
                    }
                    Some(ValueType::Deletion | ValueType::SingleDeletion) => {
                        live = None;
                        operands.clear();
                    }
                    Some(ValueType::Merge) => operands.push_newer(self.merged.value()),
                    other => return Err(type_error(other)),
                }
            }
            self.merged.prev();
        }
        // A newer version may be what could not be read.
        self.merged.status()?;
        if live == Some(ValueType::BlobIndex) {
            self.value = self.fetch(&self.key, &self.value)?;
        }
        if live == Some(ValueType::WideColumnEntity) {
            if wide_columns::may_have_blobs(&self.value) {
                self.value = self.with_values(&self.key, &self.value)?;
            }
            wide_columns::default_column(&self.value)?;
        }
        if !operands.is_empty() {
            let base = match live {
                None => Base::None,
                Some(ValueType::WideColumnEntity) => Base::Entity(std::mem::take(&mut self.value).into()),
                Some(_) if held => Base::Plain(self.held_value().to_vec().into()),
                Some(_) => Base::Plain(std::mem::take(&mut self.value).into()),
            };
            return Ok(Resolved::Merged(base, operands));
        }
        Ok(match live {
            None => Resolved::Hidden,
            Some(ValueType::WideColumnEntity) => Resolved::Value(Shape::Entity),
            Some(_) if held => Resolved::Value(Shape::Held),
            Some(_) => Resolved::Value(Shape::Plain),
        })
    }

    /// Keeps the block of the merging iterator's value instead of a copy of it. False if it is in none that can be kept.
    #[inline]
    fn hold(&mut self) -> bool {
        let Some((block, value)) = self.merged.value_in_block() else { return false };
        match &mut self.held {
            // Most keys are in the block of the one before.
            Some(held) if std::ptr::eq(held.block.as_ptr(), block.as_ptr()) => held.value = value,
            held => *held = Some(Held { block: block.clone(), value }),
        }
        true
    }
}

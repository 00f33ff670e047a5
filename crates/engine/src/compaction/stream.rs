//! The output of flush and compaction: the merged input without the entries no reader can see.
//!
//! A *stripe* is the set of sequence numbers between two snapshots; entries of one key in one stripe look
//! alike to every reader, so only the newest of them can matter. The rules in the order in which `decide` asks them, by the
//! letters of `docs/format/compaction.md`:
//!
//! 1. H says which entries are versions of one key. With user-defined timestamps, versions below the low timestamp are, for
//!    rules A to D and G, and rule G makes the timestamp of the last of them the oldest there is; every other version is a key of its own, to
//!    which only rule A applies.
//! 2. A: an entry is dropped if a newer entry of its key is in its stripe, unless it is a single deletion.
//! 3. E: an entry is dropped if a newer range tombstone over it is in its stripe. Tombstones go under rules A and B.
//!
//! Then by type. Of a value, the application's filter decides first:
//!
//! 4. G: a value in the oldest stripe at the bottommost level gets sequence number 0.
//!
//! Of a deletion:
//!
//! 5. B: in the oldest stripe it is dropped if the key cannot exist below the output.
//! 6. C: at the bottommost level it is dropped together with the older versions in its stripe, unless an older
//!    stripe has a version for it to hide.
//!
//! Of a single deletion:
//!
//! 7. D: it and the value it meets in its stripe are dropped together, unless a transaction's snapshot is older: it
//!    could not tell then that the key was written. One that meets none goes if nothing of the key lies below the output, else it stays,
//!    even under a newer value: a newer single deletion may take that value away, and the older value below the output would be seen again.
//!    For a key that was merged it is not meant: it goes with all that it hides if nothing of the key lies below the output.
//!
//! Of a merge operand, the application's filter decides first unless a snapshot sees it:
//!
//! 8. F: operands of a stripe are combined where their base is known; with user-defined timestamps they are kept as they are.
//!
//! Source: RocksDB `db/compaction/compaction_iterator.cc`, `db/merge_helper.cc`.

use super::blobs::{BlobInput, BlobMeter, Fetched};
use super::stamps::{StampRules, forget_timestamp};
use crate::read::counts;
use crate::read::merge::{Base, MergeOperands, Merged};
use crate::read::merging_iter::MergingIter;
use crate::snapshots::LiveSnapshots;
use outcrop_base::keys::{Trailer, append_internal_key, split};
use outcrop_base::{
    CompactionFilter, Comparator, Error, FilterDecision, Fragment, Fragments, MergeOperator, Result, SeqNum,
    ValueType, wide_columns,
};
use outcrop_manifest::TableFile;
use outcrop_monitor::{Monitor, Watch};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// The entries that may be dropped, given where the output goes.
pub struct DropRules {
    /// Live snapshots.
    pub snapshots: LiveSnapshots,
    /// No older data for the whole key range lies below the output.
    pub bottommost: bool,
    /// Deletions may go once nothing lies below them: false for flush.
    pub drop_deletions: bool,
    /// Tables below the output level, by level, sorted.
    pub below: Vec<Arc<[Arc<TableFile>]>>,
    /// Range tombstones of the inputs.
    pub tombstones: Fragments,
    /// The filter, which decides about the newest version of each key, and the level that it is given.
    pub filter: Option<(Arc<dyn CompactionFilter>, usize)>,
    /// Where values that are not in tables come from.
    pub blobs: Option<BlobInput>,
    /// The part of the input to show; `tombstones` lie within it.
    pub range: KeyRange,
    /// If keys have user-defined timestamps.
    pub stamps: Option<StampRules>,
    /// Counts the work of the merge operator.
    pub monitor: Monitor,
}

impl DropRules {
    /// The rules of a flush: only what is hidden goes.
    pub fn for_flush(snapshots: LiveSnapshots, tombstones: Fragments) -> DropRules {
        DropRules {
            snapshots,
            bottommost: false,
            drop_deletions: false,
            below: Vec::new(),
            tombstones,
            filter: None,
            blobs: None,
            range: KeyRange::default(),
            stamps: None,
            monitor: Monitor::none(),
        }
    }
}

/// Numbers of one run of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStats {
    /// Entries read.
    pub records_in: u64,
    /// Entries written.
    pub records_out: u64,
    /// Entries dropped because a newer entry or a range tombstone hides them.
    pub dropped_hidden: u64,
    /// Of those, by range tombstones.
    pub dropped_range_del: u64,
    /// Deletions dropped because nothing is left that they hide, and what they hid in the input.
    pub dropped_obsolete: u64,
    /// Of those deletions, above the bottommost level.
    pub dropped_optimized: u64,
    /// Values that the application's filter removed.
    pub dropped_by_filter: u64,
    /// Values that were moved out of their blob files.
    pub blobs_moved: u64,
    /// Their bytes.
    pub blob_bytes_moved: u64,
    /// Single deletions dropped because there is nothing left of their key.
    pub single_deletions_alone: u64,
    /// Single deletions that met another deletion or a merge operand, not a value.
    pub single_deletions_mismatched: u64,
}

impl StreamStats {
    /// Adds those of another part of the input.
    pub fn add(&mut self, more: &StreamStats) {
        self.records_in += more.records_in;
        self.records_out += more.records_out;
        self.dropped_hidden += more.dropped_hidden;
        self.dropped_range_del += more.dropped_range_del;
        self.dropped_obsolete += more.dropped_obsolete;
        self.dropped_optimized += more.dropped_optimized;
        self.dropped_by_filter += more.dropped_by_filter;
        self.blobs_moved += more.blobs_moved;
        self.blob_bytes_moved += more.blob_bytes_moved;
        self.single_deletions_alone += more.single_deletions_alone;
        self.single_deletions_mismatched += more.single_deletions_mismatched;
    }
}

/// The entries to write, in internal key order.
pub struct CompactionStream {
    input: Input,
    comparator: Comparator,
    merge_operator: Option<Arc<dyn MergeOperator>>,
    snapshots: Vec<SeqNum>,
    conflict_boundary: Option<SeqNum>,
    bottommost: bool,
    below: Option<BelowOutput>,
    tombstones: Fragments,
    filter: Option<(Arc<dyn CompactionFilter>, usize)>,
    blobs: Option<BlobInput>,
    stamps: Option<StampRules>,
    monitor: Monitor,
    /// The input stands on the newest version of `user_key`.
    is_newest: bool,
    /// User key of the last entry looked at.
    user_key: Vec<u8>,
    has_user_key: bool,
    /// Stripe of the last entry of `user_key` that was kept or that hides older ones.
    hiding_stripe: Option<SeqNum>,
    /// The input stands on the entry shown and must move before the next is looked at.
    must_advance: bool,
    /// Entries already decided, to be shown before the input is looked at again.
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
    shown: Shown,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Numbers so far.
    pub stats: StreamStats,
    /// Bytes of the entries read so far, keys and values, if somebody wants to know.
    pub payload: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// The input's entry as it is.
    Input,
    /// `key` with the input's value.
    Rekeyed,
    /// `key` and `value`.
    Own,
}

/// How to treat an entry.
enum Decision {
    Drop,
    Show,
}

impl CompactionStream {
    /// The stream of `input`, which is positioned here at its first entry.
    pub fn new(
        input: MergingIter,
        comparator: Comparator,
        merge_operator: Option<Arc<dyn MergeOperator>>,
        rules: DropRules,
    ) -> CompactionStream {
        let input = Input::new(input, comparator.clone(), rules.range);
        let below = rules.drop_deletions.then(|| BelowOutput::new(rules.below));
        CompactionStream {
            input,
            comparator,
            merge_operator,
            snapshots: rules.snapshots.sequences,
            conflict_boundary: rules.snapshots.conflict_boundary,
            bottommost: rules.bottommost,
            below,
            tombstones: rules.tombstones,
            filter: rules.filter,
            blobs: rules.blobs,
            stamps: rules.stamps,
            monitor: rules.monitor,
            is_newest: false,
            user_key: Vec::new(),
            has_user_key: false,
            hiding_stripe: None,
            must_advance: false,
            ready: VecDeque::new(),
            shown: Shown::Nothing,
            key: Vec::new(),
            value: Vec::new(),
            stats: StreamStats::default(),
            payload: None,
        }
    }

    /// The internal key shown by the last [`CompactionStream::advance`].
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.shown {
            Shown::Input => self.input.key(),
            _ => &self.key,
        }
    }

    /// The value shown by the last [`CompactionStream::advance`].
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Own => &self.value,
            _ => self.input.value(),
        }
    }

    /// Moves to the next entry to write; false at the end.
    ///
    /// # Errors
    /// Those of the input, Corruption for an entry that makes no sense, and those of the merge operator.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some((key, value)) = self.ready.pop_front() {
                self.key = key;
                self.value = value;
                self.shown = Shown::Own;
                self.stats.records_out += 1;
                return Ok(true);
            }
            if std::mem::take(&mut self.must_advance) {
                self.step()?;
            }
            if !self.input.valid() {
                self.input.status()?;
                self.shown = Shown::Nothing;
                return Ok(false);
            }
            match self.decide()? {
                Decision::Show => {
                    self.must_advance = true;
                    self.stats.records_out += 1;
                    return Ok(true);
                }
                Decision::Drop => {}
            }
        }
    }

    /// Decides about the input's entry. `Drop` means that the loop goes on: either `must_advance` is set or
    /// the input has moved already.
    fn decide(&mut self) -> Result<Decision> {
        let (user_key, trailer) = split(self.input.key());
        if self.stamps.as_ref().is_some_and(|stamps| stamps.is_trimmed(user_key)) {
            self.must_advance = true;
            self.stats.dropped_obsolete += 1;
            return Ok(Decision::Drop);
        }
        if !self.has_user_key || !self.comparator.same(user_key, &self.user_key) {
            let continues = |stamps: &StampRules| stamps.continues(&self.user_key, user_key);
            if !(self.has_user_key && self.stamps.as_ref().is_some_and(continues)) {
                self.hiding_stripe = None;
            }
            self.user_key.clear();
            self.user_key.extend_from_slice(user_key);
            self.has_user_key = true;
            self.is_newest = true;
        } else {
            self.is_newest = false;
        }
        let seq = trailer.seq();
        let stripe = self.stripe(seq);
        let value_type = trailer.value_type().ok_or_else(|| {
            Error::corruption(format!("compaction input has value type {:#04x}", trailer.type_byte()))
        })?;
        let hidden = self.hiding_stripe == Some(stripe) && value_type != ValueType::SingleDeletion;
        if hidden || self.is_covered(seq, stripe) {
            self.must_advance = true;
            self.stats.dropped_hidden += 1;
            self.stats.dropped_range_del += u64::from(!hidden);
            return Ok(Decision::Drop);
        }
        match value_type {
            ValueType::Value | ValueType::WideColumnEntity | ValueType::BlobIndex => {
                self.hiding_stripe = Some(stripe);
                match self.filter_value(value_type)? {
                    FilterDecision::Keep if value_type == ValueType::BlobIndex => self.show_blob(seq),
                    FilterDecision::Keep if value_type == ValueType::WideColumnEntity => {
                        self.show_entity(seq)
                    }
                    FilterDecision::Keep => self.show_value(seq, value_type),
                    FilterDecision::ChangeValue(value) => self.show_changed(seq, ValueType::Value, value),
                    FilterDecision::Remove => Ok(self.show_removed(seq)),
                }
            }
            ValueType::Deletion | ValueType::DeletionWithTimestamp | ValueType::SingleDeletion
                if !self.may_collapse() =>
            {
                self.hiding_stripe = Some(stripe);
                self.shown = Shown::Input;
                Ok(Decision::Show)
            }
            ValueType::Deletion | ValueType::DeletionWithTimestamp => {
                self.hiding_stripe = Some(stripe);
                if self.nothing_below(seq) {
                    self.must_advance = true;
                    self.stats.dropped_obsolete += 1;
                    self.stats.dropped_optimized += u64::from(!self.bottommost);
                    return Ok(Decision::Drop);
                }
                if self.bottommost {
                    self.bottommost_deletion(stripe)?;
                    return Ok(Decision::Drop);
                }
                self.shown = Shown::Input;
                Ok(Decision::Show)
            }
            ValueType::SingleDeletion => {
                self.single_deletion(seq, stripe)?;
                Ok(Decision::Drop)
            }
            ValueType::Merge if self.stamps.is_some() => {
                self.shown = Shown::Input;
                Ok(Decision::Show)
            }
            ValueType::Merge => {
                self.merge(seq, stripe)?;
                Ok(Decision::Drop)
            }
            other => Err(crate::read::merge::unsupported_type(other)),
        }
    }

    /// True if only the newest version of a row matters, as far as timestamps tell: always without them.
    #[inline]
    fn may_collapse(&self) -> bool {
        self.stamps.as_ref().is_none_or(|stamps| stamps.is_history(&self.user_key))
    }

    /// True if `user_key` is of the key that is looked at, or of its history.
    #[inline]
    fn is_same(&self, user_key: &[u8]) -> bool {
        match &self.stamps {
            Some(stamps) => stamps.same_row(user_key, &self.user_key),
            None => self.comparator.same(user_key, &self.user_key),
        }
    }

    /// The type of entries that delete their key.
    fn deletion(&self) -> ValueType {
        if self.stamps.is_some() { ValueType::DeletionWithTimestamp } else { ValueType::Deletion }
    }

    /// Shows the input's value, with sequence number 0 where rule G allows.
    #[inline]
    fn show_value(&mut self, seq: SeqNum, value_type: ValueType) -> Result<Decision> {
        if self.bottommost && seq != SeqNum::ZERO && self.in_oldest_stripe(seq) && self.may_collapse() {
            if self.stamps.is_some() {
                let value = self.input.value().to_vec();
                return self.show_history(seq, value_type, value);
            }
            self.key.clear();
            // In its own bytes, if the order calls others the same: a blob file counts what the record takes with them.
            let user_key = split(self.input.key()).0;
            append_internal_key(&mut self.key, user_key, Trailer::new(SeqNum::ZERO, value_type));
            self.shown = Shown::Rekeyed;
        } else {
            self.shown = Shown::Input;
        }
        Ok(Decision::Show)
    }

    /// Rule G, with user-defined timestamps. The input moves past the version, which gets this value, and what it hides in its stripe.
    ///
    /// It forgets its timestamp only if no other version of its row comes next: one that was written after a snapshot, though its timestamp is
    /// smaller, would be out of order then.
    #[inline(never)]
    fn show_history(&mut self, seq: SeqNum, value_type: ValueType, value: Vec<u8>) -> Result<Decision> {
        let stripe = self.stripe(seq);
        let mut key = Vec::with_capacity(self.input.key().len());
        let user_key = split(self.input.key()).0;
        append_internal_key(&mut key, user_key, Trailer::new(seq, value_type));
        let len = user_key.len();
        let forgets = loop {
            self.step()?;
            if !self.input.valid() {
                break true;
            }
            let (next_key, next) = split(self.input.key());
            if !self.is_same(next_key) {
                break true;
            }
            let is_hidden = self.stripe(next.seq()) == stripe
                && next.value_type().is_some_and(|value_type| value_type != ValueType::SingleDeletion);
            if !is_hidden {
                break false;
            }
            self.stats.dropped_hidden += 1;
        };
        if forgets {
            key.truncate(len);
            forget_timestamp(&mut key);
            key.extend_from_slice(&Trailer::new(SeqNum::ZERO, value_type).to_bytes());
        }
        self.ready.push_back((key, value));
        Ok(Decision::Drop)
    }

    /// The filter's decision on the input's value.
    #[inline]
    fn filter_value(&self, value_type: ValueType) -> Result<FilterDecision> {
        let Some((filter, level)) = self.filter.as_ref().filter(|_| self.is_newest) else {
            return Ok(FilterDecision::Keep);
        };
        Ok(match value_type {
            ValueType::Value => filter.filter(*level, &self.user_key, self.input.value()),
            ValueType::BlobIndex => filter.filter(*level, &self.user_key, &self.fetch_blob()?),
            // Filters here know values only; entities are kept, as RocksDB keeps them for such filters.
            _ => FilterDecision::Keep,
        })
    }

    /// The value that the input's entry refers to.
    fn fetch_blob(&self) -> Result<Vec<u8>> {
        self.fetch_blob_of(self.input.value())
    }

    fn fetch_blob_of(&self, index: &[u8]) -> Result<Vec<u8>> {
        match &self.blobs {
            Some(blobs) => blobs.fetch(&self.user_key, index),
            None => Err(Error::corruption("an entry refers to a blob file, and the version has none")),
        }
    }

    /// Shows a reference to a blob file, or the value itself if it is to move out of its file.
    fn show_blob(&mut self, seq: SeqNum) -> Result<Decision> {
        let moves = match &self.blobs {
            Some(blobs) => blobs.moves_out(self.input.value())?,
            None => false,
        };
        if !moves {
            return self.show_value(seq, ValueType::BlobIndex);
        }
        let value = self.fetch_blob()?;
        self.stats.blobs_moved += 1;
        self.stats.blob_bytes_moved += value.len() as u64;
        self.show_changed(seq, ValueType::Value, value)
    }

    /// Shows an entity as it is, or with its values in it if one of them is to move out of its blob file.
    fn show_entity(&mut self, seq: SeqNum) -> Result<Decision> {
        let mut moves = false;
        if let Some(blobs) = &self.blobs {
            wide_columns::each_blob(self.input.value(), |index| {
                moves |= blobs.moves_out(index)?;
                Ok(())
            })?;
        }
        if !moves {
            return self.show_value(seq, ValueType::WideColumnEntity);
        }
        let entity = self.entity_with_values()?;
        self.show_changed(seq, ValueType::WideColumnEntity, entity)
    }

    /// The input's entity with the values that are in blob files.
    fn entity_with_values(&self) -> Result<Vec<u8>> {
        wide_columns::with_values(self.input.value(), |index| self.fetch_blob_of(index)).map(Cow::into_owned)
    }

    fn show_changed(&mut self, seq: SeqNum, value_type: ValueType, value: Vec<u8>) -> Result<Decision> {
        let zeroed = self.bottommost && self.in_oldest_stripe(seq) && self.may_collapse();
        if zeroed && self.stamps.is_some() {
            return self.show_history(seq, value_type, value);
        }
        let seq = if zeroed { SeqNum::ZERO } else { seq };
        self.key.clear();
        append_internal_key(&mut self.key, &self.user_key, Trailer::new(seq, value_type));
        self.value = value;
        self.shown = Shown::Own;
        Ok(Decision::Show)
    }

    /// A value that the filter removed is a deletion from here on.
    fn show_removed(&mut self, seq: SeqNum) -> Decision {
        self.stats.dropped_by_filter += 1;
        if self.may_collapse() && self.nothing_below(seq) {
            self.must_advance = true;
            return Decision::Drop;
        }
        let deletion = self.deletion();
        self.key.clear();
        append_internal_key(&mut self.key, &self.user_key, Trailer::new(seq, deletion));
        self.value.clear();
        self.shown = Shown::Own;
        Decision::Show
    }

    /// Rule C. The input moves past the deletion and what it hides in its stripe.
    fn bottommost_deletion(&mut self, stripe: SeqNum) -> Result<()> {
        let key = self.input.key().to_vec();
        loop {
            self.step()?;
            if !self.input.valid() {
                return Ok(());
            }
            let (next_key, next_trailer) = split(self.input.key());
            if !self.is_same(next_key) {
                return Ok(());
            }
            if self.stripe(next_trailer.seq()) != stripe {
                self.ready.push_back((key, Vec::new()));
                return Ok(());
            }
            self.stats.dropped_hidden += 1;
        }
    }

    /// Rule D. The input moves past the single deletion, and past the value it meets.
    fn single_deletion(&mut self, seq: SeqNum, stripe: SeqNum) -> Result<()> {
        let key = self.input.key().to_vec();
        self.step()?;
        if self.input.valid() {
            let (next_key, next_trailer) = split(self.input.key());
            let same_stripe = self.is_same(next_key) && self.stripe(next_trailer.seq()) == stripe;
            match next_trailer.value_type() {
                Some(ValueType::Value | ValueType::WideColumnEntity | ValueType::BlobIndex)
                    if same_stripe =>
                {
                    if self.conflict_boundary.is_some_and(|boundary| boundary < seq) {
                        // A transaction must see that the key was written after its snapshot: both stay.
                        self.ready.push_back((key, Vec::new()));
                        return Ok(());
                    }
                    // Both go. Older entries of the stripe are hidden by the value.
                    self.hiding_stripe = Some(stripe);
                    self.must_advance = true;
                    self.stats.dropped_hidden += 1;
                    self.stats.dropped_obsolete += 1;
                    return Ok(());
                }
                Some(ValueType::SingleDeletion | ValueType::Deletion | ValueType::DeletionWithTimestamp)
                    if same_stripe =>
                {
                    // The older deletion does what this one would: it is looked at next.
                    self.stats.dropped_obsolete += 1;
                    self.stats.single_deletions_mismatched += 1;
                    return Ok(());
                }
                Some(ValueType::Merge) if same_stripe => {
                    self.stats.single_deletions_mismatched += 1;
                    if self.nothing_below(seq) {
                        // It goes, and so does what it hid.
                        self.hiding_stripe = Some(stripe);
                        self.stats.dropped_obsolete += 1;
                        self.stats.dropped_optimized += u64::from(!self.bottommost);
                    } else {
                        self.ready.push_back((key, Vec::new()));
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        if self.nothing_below(seq) {
            self.stats.dropped_obsolete += 1;
            self.stats.dropped_optimized += u64::from(!self.bottommost);
            self.stats.single_deletions_alone += 1;
        } else {
            self.ready.push_back((key, Vec::new()));
        }
        Ok(())
    }

    /// Rule F. Collects the operands of one stripe and decides what to write for them.
    fn merge(&mut self, newest: SeqNum, stripe: SeqNum) -> Result<()> {
        let (mut operands, mut seqs) = (MergeOperands::default(), Vec::new());
        // `None` while it may lie outside the input.
        let mut base = None;
        while self.input.valid() {
            let (user_key, trailer) = split(self.input.key());
            if !self.comparator.same(user_key, &self.user_key) {
                base = self.nothing_below(newest).then_some(Base::None);
                break;
            }
            let seq = trailer.seq();
            if self.stripe(seq) != stripe {
                break;
            }
            if self.is_covered(seq, stripe) {
                // As in RocksDB an operand that is deleted does not say that nothing is below it, and any other entry does.
                if trailer.value_type() != Some(ValueType::Merge) {
                    base = Some(Base::None);
                    break;
                }
                self.step()?;
                continue;
            }
            match trailer.value_type() {
                Some(ValueType::Merge) => {
                    let operand = match self.filter_operand(seq) {
                        FilterDecision::Keep => Some(self.input.value().to_vec()),
                        FilterDecision::ChangeValue(operand) => Some(operand),
                        FilterDecision::Remove => None,
                    };
                    if let Some(operand) = operand {
                        operands.push_older(operand);
                        seqs.push(seq);
                    }
                }
                Some(ValueType::Value) => {
                    base = Some(Base::Plain(self.input.value().to_vec().into()));
                    break;
                }
                Some(ValueType::BlobIndex) => {
                    base = Some(Base::Plain(self.fetch_blob()?.into()));
                    break;
                }
                Some(ValueType::WideColumnEntity) => {
                    base = Some(Base::Entity(self.entity_with_values()?.into()));
                    break;
                }
                Some(ValueType::Deletion | ValueType::SingleDeletion) => {
                    base = Some(Base::None);
                    break;
                }
                _ => break,
            }
            self.step()?;
        }
        if !self.input.valid() {
            self.input.status()?;
            if self.nothing_below(newest) {
                base = Some(Base::None);
            }
        }
        self.write_merged(newest, stripe, (operands, seqs), base)
    }

    /// The filter's decision on the input's merge operand. One that a snapshot sees stays, as in RocksDB, whatever the filter says.
    fn filter_operand(&self, seq: SeqNum) -> FilterDecision {
        let is_seen = self.snapshots.last().is_some_and(|newest| seq <= *newest);
        match &self.filter {
            Some((filter, level)) if !is_seen => {
                filter.filter_merge_operand(*level, &self.user_key, self.input.value())
            }
            _ => FilterDecision::Keep,
        }
    }

    /// Writes what the operands, which have `seqs`, come to over `base`, or themselves if that is not known.
    fn write_merged(
        &mut self,
        newest: SeqNum,
        stripe: SeqNum,
        (mut operands, seqs): (MergeOperands, Vec<SeqNum>),
        base: Option<Base<'_>>,
    ) -> Result<()> {
        if operands.is_empty() {
            // The filter took them all; the base is looked at on its own.
            return Ok(());
        }
        let watching = self.monitor.begin();
        let watch = Watch::from(&watching);
        if let (Some(operator), None) = (&self.merge_operator, &base) {
            counts::merging(watch, || {
                operands.combine(&**operator, &self.user_key);
                Ok(())
            })?;
        }
        let (Some(operator), Some(base)) = (&self.merge_operator, &base) else {
            // Every operand stays, and so does what they apply to.
            for (operand, seq) in operands.newest_first().zip(seqs) {
                self.ready.push_back((self.output_key(seq, ValueType::Merge), operand.to_vec()));
            }
            self.hiding_stripe = None;
            return Ok(());
        };
        let apply = || operands.apply(Some(&**operator), &self.user_key, base);
        let (value_type, merged) = match counts::merging(watch, apply)? {
            Merged::Entity(entity) => (ValueType::WideColumnEntity, entity),
            Merged::Plain(value) => (ValueType::Value, value),
        };
        let seq = if self.bottommost && self.in_oldest_stripe(newest) { SeqNum::ZERO } else { newest };
        self.ready.push_back((self.output_key(seq, value_type), merged));
        // The base, and anything older in the stripe, is now hidden by the merged value.
        self.hiding_stripe = Some(stripe);
        Ok(())
    }

    /// The internal key of an entry of the current user key.
    fn output_key(&self, seq: SeqNum, value_type: ValueType) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.user_key.len() + 8);
        append_internal_key(&mut key, &self.user_key, Trailer::new(seq, value_type));
        key
    }

    /// Moves the input past its entry.
    #[inline]
    fn step(&mut self) -> Result<()> {
        if let Some(blobs) = &mut self.blobs {
            let (user_key, trailer) = split(self.input.key());
            if trailer.type_byte() == ValueType::BlobIndex as u8 {
                blobs.read.count(user_key, self.input.value())?;
            } else if trailer.type_byte() == ValueType::WideColumnEntity as u8 {
                wide_columns::each_blob(self.input.value(), |index| {
                    blobs.read.count(user_key, index).map(|_| ())
                })?;
            }
        }
        if let Some(bytes) = &mut self.payload {
            *bytes += (self.input.key().len() + self.input.value().len()) as u64;
        }
        self.input.next();
        self.stats.records_in += 1;
        Ok(())
    }

    /// Blobs that the entries read so far refer to.
    pub fn blobs_read(&self) -> Option<&BlobMeter> {
        self.blobs.as_ref().map(|blobs| &blobs.read)
    }

    /// The values that were fetched of them.
    pub fn blobs_fetched(&self) -> Fetched {
        self.blobs.as_ref().map_or(Fetched::default(), BlobInput::fetched)
    }

    /// The smallest snapshot at or above `seq`; [`SeqNum::MAX`] above all.
    #[inline]
    fn stripe(&self, seq: SeqNum) -> SeqNum {
        if self.snapshots.is_empty() {
            return SeqNum::MAX;
        }
        let index = self.snapshots.partition_point(|snapshot| *snapshot < seq);
        self.snapshots.get(index).copied().unwrap_or(SeqNum::MAX)
    }

    /// Rule E: true if a range tombstone hides the version `seq` of `user_key` from every reader of its stripe.
    #[inline]
    fn is_covered(&self, seq: SeqNum, stripe: SeqNum) -> bool {
        !self.tombstones.is_empty()
            && self.tombstones.covering(&self.comparator, &self.user_key, stripe) > seq
    }

    /// The range tombstones to write: the newest of each stripe, without those that have nothing left to hide.
    pub fn kept_tombstones(&self) -> Vec<Fragment> {
        let kept = |fragment: &Fragment| {
            let mut seqs: Vec<SeqNum> = fragment.seqs.to_vec();
            seqs.dedup_by_key(|seq| self.stripe(*seq));
            let obsolete = self.below.as_ref().is_some_and(|below| {
                self.bottommost || !below.may_overlap(&self.comparator, &fragment.begin, &fragment.end)
            });
            seqs.retain(|seq| !(obsolete && self.in_oldest_stripe(*seq)));
            (!seqs.is_empty()).then(|| Fragment { seqs: seqs.into(), ..fragment.clone() })
        };
        self.tombstones.iter().filter_map(kept).collect()
    }

    /// True if every snapshot sees `seq`.
    #[inline]
    fn in_oldest_stripe(&self, seq: SeqNum) -> bool {
        self.snapshots.first().is_none_or(|oldest| seq <= *oldest)
    }

    /// True if no reader can see a version of `user_key` older than `seq` from below the output.
    fn nothing_below(&mut self, seq: SeqNum) -> bool {
        if !self.in_oldest_stripe(seq) {
            return false;
        }
        match &mut self.below {
            Some(below) => {
                let rows = self.stamps.as_ref().map_or(&self.comparator, StampRules::rows);
                !below.may_hold(rows, &self.user_key)
            }
            None => false,
        }
    }
}

/// User keys from `begin`, inclusive, to `end`, exclusive; `None` is unbounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first.
    pub begin: Option<Vec<u8>>,
    /// Behind the last.
    pub end: Option<Vec<u8>>,
}

/// The merged input, up to the end of a key range.
struct Input {
    merged: MergingIter,
    comparator: Comparator,
    end: Option<Vec<u8>>,
    at_end: bool,
}

impl Input {
    fn new(mut merged: MergingIter, comparator: Comparator, range: KeyRange) -> Input {
        match &range.begin {
            Some(begin) => merged.seek(begin, Trailer::MAX),
            None => merged.seek_to_first(),
        }
        let mut input = Input { merged, comparator, end: range.end, at_end: false };
        input.check_end();
        input
    }

    #[inline]
    fn check_end(&mut self) {
        if let Some(end) = &self.end {
            self.at_end =
                self.merged.valid() && self.comparator.compare(split(self.merged.key()).0, end).is_ge();
        }
    }

    #[inline]
    fn valid(&self) -> bool {
        !self.at_end && self.merged.valid()
    }

    fn status(&self) -> Result<()> {
        self.merged.status()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.merged.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.merged.value()
    }

    #[inline]
    fn next(&mut self) {
        self.merged.next();
        self.check_end();
    }
}

/// The tables below the output. Keys are asked for in ascending order, so each level keeps its place.
struct BelowOutput {
    levels: Vec<(Arc<[Arc<TableFile>]>, usize)>,
}

impl BelowOutput {
    fn new(levels: Vec<Arc<[Arc<TableFile>]>>) -> BelowOutput {
        BelowOutput { levels: levels.into_iter().map(|files| (files, 0)).collect() }
    }

    /// True if some table has keys in `begin..end`.
    fn may_overlap(&self, comparator: &Comparator, begin: &[u8], end: &[u8]) -> bool {
        self.levels.iter().any(|(files, _)| {
            let first = files.partition_point(|file| file.ends_before(comparator, begin));
            files.get(first).is_some_and(|file| comparator.compare(split(&file.smallest).0, end).is_lt())
        })
    }

    /// True if some table's key range holds `user_key`.
    fn may_hold(&mut self, comparator: &Comparator, user_key: &[u8]) -> bool {
        for (files, place) in &mut self.levels {
            while let Some(file) = files.get(*place) {
                if comparator.compare(user_key, split(&file.largest).0) != Ordering::Greater {
                    if comparator.compare(user_key, split(&file.smallest).0) != Ordering::Less {
                        return true;
                    }
                    break;
                }
                *place += 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;

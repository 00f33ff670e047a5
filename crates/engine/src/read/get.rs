//! Point lookup.
//!
//! Invariant: sources are asked newest first, so the first entry that decides the key ends the lookup.
//! Concurrency: no lock, and no write to memory shared between threads.

use super::merge::{self, Base, MergeOperands, Merged, unsupported_type};
use super::value::{FoundValue, PinnedValue, WideColumns};
use super::view::ReadView;
use super::{counts, stamped};
use crate::column_family::ColumnFamily;
use crate::column_family::enables_timestamp;
use crate::superversion::SuperVersion;
use crate::table_cache::{TableCache, TableRef};
use outcrop_base::keys::{Trailer, user_key};
use outcrop_base::{Comparator, Error, Fragments, LookupKey, Result, SeqNum, ValueType, wide_columns};
use outcrop_cache::Pinned;
use outcrop_manifest::{Level, TableFile, Version};
use outcrop_memtable::MemTable;
use outcrop_monitor::{Counting, PerfMetric, ReadCount, Watch};
use outcrop_table::{Reading, TableReader};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// The value of `key`, or `None`.
pub fn get(view: &ReadView<'_>, key: &[u8]) -> Result<Option<PinnedValue>> {
    match view.is_stamped() {
        true => Ok(stamped::get(view, key)?.map(|(value, _)| value)),
        false => get_plain(view, key),
    }
}

/// The same, where the caller knows that keys have no timestamps and that the options have none.
pub fn get_plain(view: &ReadView<'_>, key: &[u8]) -> Result<Option<PinnedValue>> {
    debug_assert!(!view.is_stamped());
    let lookup_key = LookupKey::new(key);
    let mut lookup = Lookup::of(view, &lookup_key);
    ask(view, &mut lookup)?;
    lookup.finish_value(view)
}

/// The columns of `key`; see [`crate::Db::get_entity_cf`].
pub fn get_entity(view: &ReadView<'_>, key: &[u8]) -> Result<Option<WideColumns>> {
    if view.is_stamped() {
        return stamped::get_entity(view, key);
    }
    match look_up(view, key)? {
        Some(FoundValue::Plain(value)) => Ok(Some(WideColumns::plain(&value))),
        Some(FoundValue::Entity(entity)) => {
            let fetch = |index: &[u8]| view.fetch(key, index);
            WideColumns::decode(&wide_columns::with_values(&entity, fetch)?).map(Some)
        }
        None => Ok(None),
    }
}

/// The value of `key`; `None` if it has none, or is an entity, or with `in_memory` the memtables do not tell.
pub fn plain_value(view: &ReadView<'_>, key: &[u8], in_memory: bool) -> Result<Option<PinnedValue>> {
    if view.is_stamped() {
        return Err(enables_timestamp(view.cf));
    }
    if in_memory {
        let lookup_key = LookupKey::new(key);
        let mut lookup = Lookup::of(view, &lookup_key);
        lookup.memtables(view.sources);
        if !lookup.is_decided() || matches!(lookup.outcome, Outcome::Blob(_)) {
            return Ok(None);
        }
    }
    match look_up(view, key)? {
        Some(FoundValue::Plain(value)) => Ok(Some(value)),
        Some(FoundValue::Entity(_)) | None => Ok(None),
    }
}

fn look_up(view: &ReadView<'_>, key: &[u8]) -> Result<Option<FoundValue>> {
    let lookup_key = LookupKey::new(key);
    let mut lookup = Lookup::of(view, &lookup_key);
    ask(view, &mut lookup)?;
    lookup.finish(view, |index: &[u8]| view.fetch(key, index))
}

/// Asks the sources, until the lookup is decided.
#[inline(always)]
fn ask(view: &ReadView<'_>, lookup: &mut Lookup<'_>) -> Result<()> {
    if view.watch.is_on() {
        lookup.watched_memtables(view);
    } else {
        lookup.memtables(view.sources);
    }
    if lookup.is_decided() {
        view.counting.add(ReadCount::MemtableHit, 1);
        return Ok(());
    }
    view.counting.add(ReadCount::MemtableMiss, 1);
    get_from_tables(view, lookup)
}

#[inline(always)]
fn get_from_tables(view: &ReadView<'_>, lookup: &mut Lookup<'_>) -> Result<()> {
    let timer = view.watch.perf_timer();
    let reading = view.reading();
    let mut search = Search::default();
    search.begin(&view.sources.version, view.cf, lookup);
    while let Some(table) = search.next_table(view.tables, view.cf, lookup, reading)? {
        let mut matched = false;
        table.get(lookup.key, lookup.snapshot, reading, |seq, value_type, value, block| {
            matched = true;
            lookup.visit(seq, value_type, value, Some(block))
        })?;
        if matched {
            search.count_found(&table, lookup, reading.counting);
        }
    }
    timer.nanos(PerfMetric::GetFromOutputFilesTime);
    Ok(())
}

/// The number of the newest record of the key in tables.
pub(crate) fn newest_in_tables(
    tables: &TableCache,
    cf: &ColumnFamily,
    version: &Version,
    key: &LookupKey<'_>,
) -> Result<Option<SeqNum>> {
    let mut lookup = Lookup::new(key, SeqNum::MAX);
    let mut search = Search::default();
    search.begin(version, cf, &lookup);
    let mut newest = None;
    Counting::off(|counting| {
        while let Some(table) = search.next_table(tables, cf, &mut lookup, counting.into())? {
            table.get(key, SeqNum::MAX, counting, |seq, _, _, _| {
                newest = Some(seq);
                ControlFlow::Break(())
            })?;
            if newest.is_some() {
                break;
            }
        }
        Ok(newest)
    })
}

/// The tables a lookup has still to ask, newest first.
#[derive(Default)]
pub(crate) struct Search<'v> {
    candidates: Candidates<'v>,
    next: usize,
    /// How many of the candidates are in L0; they are the first.
    in_l0: usize,
    /// How many are in L0 or L1.
    to_l1: usize,
    /// Those below L0 after which versions of the key go on in the next, of the same level, by bits ([`Search::bit`]): hardly ever any.
    split: u64,
}

impl<'v> Search<'v> {
    /// Finds the tables whose key range holds the key, and asks for their filters' lines.
    #[inline]
    pub(crate) fn begin(&mut self, version: &'v Version, cf: &ColumnFamily, lookup: &Lookup<'_>) {
        let comparator = &cf.comparator;
        let key = lookup.key.user_key;
        let covers = |file: &TableFile| {
            comparator.compare(user_key(&file.smallest), key) != Ordering::Greater
                && comparator.compare(user_key(&file.largest), key) != Ordering::Less
        };
        for file in version.levels[0].files.iter() {
            if covers(file) {
                self.add(file, lookup.key.hash);
            }
        }
        self.in_l0 = self.candidates.len;
        let mut levels = version.levels.iter().skip(1);
        if let Some(l1) = levels.next() {
            self.add_level(l1, comparator, lookup);
        }
        self.to_l1 = self.candidates.len;
        levels.for_each(|level| self.add_level(level, comparator, lookup));
    }

    /// Adds the tables of a level below L0 whose key range holds the key.
    #[inline(always)]
    fn add_level(&mut self, level: &'v Level, comparator: &Comparator, lookup: &Lookup<'_>) {
        if level.files.is_empty() {
            return;
        }
        let key = lookup.key.user_key;
        let trailer = Trailer::new(lookup.snapshot, ValueType::FOR_SEEK);
        // All of these end at or after the key. Versions of one key may continue in the next file: then it starts with the key this
        // one ends with.
        for (place, file) in level.files[level.find(comparator, key, trailer)..].iter().enumerate() {
            if comparator.compare(user_key(&file.smallest), key) == Ordering::Greater {
                break;
            }
            if place > 0 {
                self.split |= self.bit(self.candidates.len - 1);
            }
            self.add(file, lookup.key.hash);
            if comparator.compare(user_key(&file.largest), key) != Ordering::Equal {
                break;
            }
        }
    }

    #[inline]
    fn add(&mut self, file: &'v TableFile, hash: u64) {
        // The filters of all candidates are fetched before the first is tested.
        if let Some(table) = file.runtime.table.get() {
            table.prefetch_filter(hash);
        }
        self.candidates.push(file);
    }

    /// The table that was named last.
    pub(super) fn last_asked(&self) -> Option<&'v TableFile> {
        self.candidates.get(self.next.checked_sub(1)?)
    }

    /// Versions of the key were found in the table that was named last.
    #[inline(always)]
    pub(super) fn count_found(&self, table: &TableReader, lookup: &Lookup<'_>, counting: Counting<'_>) {
        table.count_true_positive(counting);
        if lookup.has_value() {
            let hit = if self.next > self.to_l1 {
                ReadCount::HitL2AndUp
            } else if self.next > self.in_l0 {
                ReadCount::HitL1
            } else {
                ReadCount::HitL0
            };
            counting.add(hit, 1);
        }
    }

    /// The next table whose filter does not rule the key out; none if the lookup is decided.
    ///
    /// Inlined always, so that nothing is left of what counts where nobody watches.
    #[inline(always)]
    pub(crate) fn next_table(
        &mut self,
        tables: &TableCache,
        cf: &ColumnFamily,
        lookup: &mut Lookup<'_>,
        reading: Reading<'_>,
    ) -> Result<Option<TableRef<'v>>> {
        while !lookup.is_decided() {
            let Some(file) = self.candidates.get(self.next) else { return Ok(None) };
            self.next += 1;
            let table = tables.open(cf, file)?;
            if let Some(tombstones) = tables.range_tombstones(cf, file)? {
                lookup.ended |= lookup.cover(tombstones, &cf.comparator);
            }
            if self.split != 0 {
                self.cover_by_following(tables, cf, lookup)?;
            }
            if table.may_contain(lookup.key.hash, reading) {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }
}

impl Search<'_> {
    /// The bit of a table in `split`: one each for the first below L0, one for all after them. None of a table of L0.
    fn bit(&self, number: usize) -> u64 {
        number.checked_sub(self.in_l0).map_or(0, |place| 1 << place.min(63))
    }

    /// Where the versions of the key go on in the next table, the tombstones over all of them are in the last of these tables. A table of
    /// these that does not open fails the lookup: whether the key was deleted is not known.
    #[cold]
    fn cover_by_following(
        &self,
        tables: &TableCache,
        cf: &ColumnFamily,
        lookup: &mut Lookup<'_>,
    ) -> Result<()> {
        let mut number = self.next;
        while self.split & self.bit(number - 1) != 0
            && let Some(file) = self.candidates.get(number)
        {
            if let Some(tombstones) = tables.range_tombstones(cf, file)? {
                lookup.cover(tombstones, &cf.comparator);
            }
            number += 1;
        }
        Ok(())
    }
}

/// The tables that may hold a key, newest first. Room for the usual number without allocation.
#[derive(Default)]
struct Candidates<'v> {
    few: [Option<&'v TableFile>; 12],
    len: usize,
    more: Vec<&'v TableFile>,
}

impl<'v> Candidates<'v> {
    #[inline]
    fn push(&mut self, file: &'v TableFile) {
        match self.few.get_mut(self.len) {
            Some(slot) => *slot = Some(file),
            None => self.more.push(file),
        }
        self.len += 1;
    }

    #[inline]
    fn get(&self, number: usize) -> Option<&'v TableFile> {
        match self.few.get(number) {
            Some(slot) => *slot,
            None => self.more.get(number - self.few.len()).copied(),
        }
    }
}

/// One point lookup under way.
pub(crate) struct Lookup<'k> {
    pub(crate) key: &'k LookupKey<'k>,
    pub(crate) snapshot: SeqNum,
    /// The newest range tombstone known to be over the key; zero if there is none.
    covered: SeqNum,
    /// A source that was asked has one: all entries of older sources are hidden.
    ended: bool,
    /// Range tombstones count for nothing.
    ignores_ranges: bool,
    /// Merge operands met so far, if any: apart, as few lookups have some.
    operands: Option<Box<MergeOperands>>,
    outcome: Outcome,
    memtables_asked: u32,
}

/// The result of the entries seen so far.
enum Outcome {
    /// Older sources must be asked.
    Open,
    /// The base value.
    Value(PinnedValue),
    /// The base is a wide-column entity.
    Entity(PinnedValue),
    /// The base value is in a blob file: the reference to it.
    Blob(PinnedValue),
    /// Deleted: there is no base.
    Deleted,
    /// An entry this engine cannot read.
    Failed(Error),
}

impl<'k> Lookup<'k> {
    /// A lookup that has not begun.
    #[inline]
    pub(crate) fn new(key: &'k LookupKey<'k>, snapshot: SeqNum) -> Lookup<'k> {
        Lookup {
            key,
            snapshot,
            covered: SeqNum::ZERO,
            ended: false,
            ignores_ranges: false,
            operands: None,
            outcome: Outcome::Open,
            memtables_asked: 0,
        }
    }

    /// One in `view`, that has not begun.
    #[inline]
    pub(crate) fn of(view: &ReadView<'_>, key: &'k LookupKey<'k>) -> Lookup<'k> {
        let mut lookup = Lookup::new(key, view.seq);
        lookup.ignores_ranges = view.options.ignore_range_deletions;
        lookup
    }

    /// True if older sources do not matter: an entry decided, or a range tombstone hides whatever they have.
    #[inline]
    pub(crate) fn is_decided(&self) -> bool {
        self.ended || !matches!(self.outcome, Outcome::Open)
    }

    /// How many memtables of `sources` were asked; nothing is looked for in an empty one.
    pub(super) fn asked(&self, sources: &SuperVersion) -> u64 {
        u64::from(self.memtables_asked).saturating_sub(u64::from(sources.memtable.is_empty()))
    }

    /// True if a value was found, in a table or a blob file.
    pub(crate) fn has_value(&self) -> bool {
        matches!(self.outcome, Outcome::Value(_) | Outcome::Entity(_) | Outcome::Blob(_))
    }

    /// [`Lookup::memtables`], which is counted for the thread's perf context.
    #[cold]
    fn watched_memtables(&mut self, view: &ReadView<'_>) {
        let timer = view.watch.perf_timer();
        self.memtables(view.sources);
        timer.nanos(PerfMetric::GetFromMemtableTime);
        view.counting.add(ReadCount::MemtablesAsked, self.asked(view.sources));
    }

    #[inline]
    pub(crate) fn memtables(&mut self, view: &SuperVersion) {
        self.memtable(&view.memtable);
        for memtable in &view.sealed {
            if self.is_decided() {
                return;
            }
            self.memtable(memtable);
        }
    }

    #[inline]
    fn memtable(&mut self, memtable: &MemTable) {
        self.memtables_asked += 1;
        self.cover_by(memtable.covering(self.key.user_key, self.snapshot));
        let (key, snapshot) = (self.key, self.snapshot);
        memtable.get(key, snapshot, |seq, value_type, value| self.visit(seq, value_type, value, None));
    }

    /// Takes range tombstones into account, before the entries of their source; true if one is over the key.
    #[cold]
    fn cover(&mut self, tombstones: &Fragments, comparator: &Comparator) -> bool {
        if self.ignores_ranges {
            return false;
        }
        let seq = tombstones.covering(comparator, self.key.user_key, self.snapshot);
        self.covered = self.covered.max(seq);
        seq != SeqNum::ZERO
    }

    /// As [`Lookup::cover`], by the newest tombstone over the key in a source that is asked now; zero if it has none.
    #[inline]
    fn cover_by(&mut self, seq: SeqNum) {
        if seq != SeqNum::ZERO && !self.ignores_ranges {
            self.covered = self.covered.max(seq);
            self.ended = true;
        }
    }

    /// Takes one entry of the key, newest first, into account.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        seq: SeqNum,
        value_type: ValueType,
        value: &[u8],
        block: Option<&Pinned>,
    ) -> ControlFlow<()> {
        if seq < self.covered {
            self.outcome = Outcome::Deleted;
            return ControlFlow::Break(());
        }
        let pinned = || match block {
            Some(block) => PinnedValue::in_block(block, value),
            // Copied: pinning the memtable would write a reference count all readers share.
            None => PinnedValue::owned(value.to_vec()),
        };
        self.outcome = match value_type {
            ValueType::Value => Outcome::Value(pinned()),
            ValueType::WideColumnEntity => Outcome::Entity(pinned()),
            ValueType::BlobIndex => Outcome::Blob(pinned()),
            ValueType::Deletion | ValueType::SingleDeletion => Outcome::Deleted,
            ValueType::Merge => {
                self.operands.get_or_insert_default().push_older(value);
                return ControlFlow::Continue(());
            }
            other => Outcome::Failed(unsupported_type(other)),
        };
        ControlFlow::Break(())
    }

    /// [`Lookup::finish`], where the value is wanted: what is usual goes straight to the caller.
    #[inline(always)]
    pub(crate) fn finish_value(self, view: &ReadView<'_>) -> Result<Option<PinnedValue>> {
        match self {
            Lookup { outcome: Outcome::Value(value), operands: None, .. } => Ok(Some(value)),
            Lookup { outcome: Outcome::Open | Outcome::Deleted, operands: None, .. } => Ok(None),
            lookup => lookup.finish_unusual(view),
        }
    }

    #[cold]
    fn finish_unusual(self, view: &ReadView<'_>) -> Result<Option<PinnedValue>> {
        let key = self.key.user_key;
        let fetch = |index: &[u8]| view.fetch(key, index);
        self.finish(view, fetch)?.map(|found| found.value(fetch)).transpose()
    }

    /// The result, once all sources that matter were asked.
    pub(crate) fn finish(
        self,
        view: &ReadView<'_>,
        fetch: impl Fn(&[u8]) -> Result<PinnedValue>,
    ) -> Result<Option<FoundValue>> {
        let base = match self.outcome {
            Outcome::Failed(error) => return Err(error),
            Outcome::Value(value) => Some(FoundValue::Plain(value)),
            Outcome::Blob(index) => Some(FoundValue::Plain(fetch(&index)?)),
            Outcome::Entity(entity) => Some(FoundValue::Entity(entity)),
            Outcome::Open | Outcome::Deleted => None,
        };
        let Some(operands) = self.operands else { return Ok(base) };
        let base = match &base {
            Some(FoundValue::Entity(entity)) => Base::Entity(wide_columns::with_values(entity, fetch)?),
            Some(FoundValue::Plain(value)) => Base::Plain(value[..].into()),
            None => Base::None,
        };
        let apply = || operands.apply(merge::operator_of(view.cf), self.key.user_key, &base);
        let watching = view.watching();
        Ok(Some(match counts::merged(Watch::from(&watching), operands.len(), apply)? {
            Merged::Entity(entity) => FoundValue::Entity(PinnedValue::owned(entity)),
            Merged::Plain(value) => FoundValue::Plain(PinnedValue::owned(value)),
        }))
    }
}

#[cfg(test)]
mod tests;

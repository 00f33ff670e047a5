//! Merges sorted sources into one sorted stream of internal keys.
//!
//! Run-length emission: the winner is followed, without looking at the other sources, for as long as its
//! key stays before the runner-up's. With most data in one level, most steps touch one source only.
//! Key prefixes are cached as numbers; full keys are compared only when prefixes tie.
//!
//! Invariant: going forward every source is at its first entry after the current position, going backward
//! at its last entry before it.

use super::level_iter::LevelIter;
use outcrop_base::keys::split;
use outcrop_base::{Comparator, PrefixExtractor, Result, SeqNum};
use outcrop_cache::Pinned;
use outcrop_env::read_batch;
use outcrop_memtable::MemTableIter;
use outcrop_table::TableIter;
use std::cell::RefCell;
use std::cmp::Ordering;

/// One sorted source.
pub enum Source {
    /// A memtable.
    Mem(MemTableIter),
    /// One table, as in L0, and the largest sequence number in it.
    Table(TableIter, SeqNum),
    /// The tables of one level.
    Level(LevelIter),
}

/// A prefix, and how keys are asked for theirs.
pub struct Within<'p> {
    /// Gives a key's prefix.
    pub extractor: PrefixExtractor,
    /// The prefix.
    pub prefix: &'p [u8],
}

impl Within<'_> {
    /// True if `user_key` has the prefix.
    pub fn has(&self, user_key: &[u8]) -> bool {
        self.extractor.transform(user_key) == Some(self.prefix)
    }
}

/// Calls the same method on whichever source it is.
macro_rules! on_source {
    ($source:expr, $iter:ident => $call:expr) => {
        match $source {
            Source::Mem($iter) => $call,
            Source::Table($iter, _) => $call,
            Source::Level($iter) => $call,
        }
    };
}

impl Source {
    #[inline]
    fn valid(&self) -> bool {
        on_source!(self, iter => iter.valid())
    }

    #[inline]
    fn key(&self) -> &[u8] {
        on_source!(self, iter => iter.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        on_source!(self, iter => iter.value())
    }

    #[inline]
    fn next(&mut self) {
        on_source!(self, iter => iter.next())
    }

    #[inline]
    fn prev(&mut self) {
        on_source!(self, iter => iter.prev())
    }

    fn seek(&mut self, user_key: &[u8], packed: u64) {
        on_source!(self, iter => iter.seek(user_key, packed))
    }

    /// First step of a seek; the next ones are those of `table`, and `finish_seek` is the last. What is in memory goes
    /// there at once.
    fn approach(&mut self, user_key: &[u8], packed: u64) {
        match self {
            Source::Mem(iter) => iter.seek(user_key, packed),
            Source::Table(iter, _) => iter.approach(user_key, packed),
            Source::Level(iter) => iter.approach(user_key, packed),
        }
    }

    /// The table's iterator that the source stands in.
    fn table(&mut self) -> Option<&mut TableIter> {
        match self {
            Source::Mem(_) => None,
            Source::Table(iter, _) => Some(iter),
            Source::Level(iter) => iter.table_mut(),
        }
    }

    fn finish_seek(&mut self, user_key: &[u8], packed: u64) {
        match self {
            Source::Mem(_) => {}
            Source::Table(iter, _) => iter.finish_seek(user_key, packed),
            Source::Level(iter) => iter.finish_seek(user_key, packed),
        }
    }

    /// As `seek`; false if filters know that no key has the prefix of `user_key`: the source then has no entry.
    fn seek_within(&mut self, user_key: &[u8], packed: u64, within: &Within<'_>) -> bool {
        match self {
            Source::Mem(iter) => iter.seek_within(user_key, packed, within.extractor, within.prefix),
            Source::Table(iter, _) => iter.seek_within(user_key, packed, within.prefix),
            Source::Level(iter) => iter.seek_within(user_key, packed, within),
        }
    }

    fn seek_for_prev(&mut self, user_key: &[u8], packed: u64) {
        on_source!(self, iter => iter.seek_for_prev(user_key, packed))
    }

    /// Moves a forward source to `end` if everything it would pass is older than `seq`; false if it stays.
    fn skip_older(&mut self, end: &[u8], seq: SeqNum) -> bool {
        match self {
            // What a memtable holds is not known without reading it.
            Source::Mem(_) => false,
            Source::Table(iter, largest_seq) => {
                let skip = *largest_seq < seq;
                if skip {
                    iter.seek(end, u64::MAX);
                }
                skip
            }
            Source::Level(iter) => iter.skip_older(end, seq),
        }
    }

    /// True if nothing is added to it: its neighbours stay neighbours.
    fn is_fixed(&self) -> bool {
        !matches!(self, Source::Mem(_))
    }

    /// From the first entry on one side of a place to the first on the other side, one `step` away; past the end on its side it
    /// goes to that `end`.
    fn step_over(&mut self, step: impl Fn(&mut Source), end: impl Fn(&mut Source)) {
        if self.valid() {
            step(self);
        } else if self.status().is_ok() {
            end(self);
        }
    }

    fn seek_to_first(&mut self) {
        on_source!(self, iter => iter.seek_to_first())
    }

    fn seek_to_last(&mut self) {
        on_source!(self, iter => iter.seek_to_last())
    }

    fn status(&self) -> Result<()> {
        match self {
            Source::Mem(_) => Ok(()),
            Source::Table(iter, _) => iter.status(),
            Source::Level(iter) => iter.status(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// No source.
const NONE: usize = usize::MAX;

/// Iterator over the union of its sources, in internal key order.
pub struct MergingIter {
    comparator: Comparator,
    sources: Vec<Source>,
    /// [`Comparator::prefix`] of each valid source's user key; out of date for a winner without a runner-up.
    prefixes: Vec<u64>,
    /// The source positioned on the current entry.
    winner: usize,
    /// The source that would be current without the winner.
    runner_up: usize,
    direction: Direction,
    /// Sources that the last seek left out.
    excluded: Vec<usize>,
    /// Sources were moved past entries that are of no interest: they may stand further away than the invariant says.
    skipped: bool,
    status: Result<()>,
}

thread_local! {
    /// The memory of the last iterator of this thread. Sources are large: their list is more than the allocator keeps at
    /// hand, and seeks are often one of a new iterator each.
    static SPARE: RefCell<(Vec<Source>, Vec<u64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// More sources than are worth keeping memory for.
const SPARE_SOURCES: usize = 64;

impl MergingIter {
    /// An empty list for the sources of a new iterator.
    pub fn list_for_sources() -> Vec<Source> {
        SPARE.try_with(|spare| std::mem::take(&mut spare.borrow_mut().0)).unwrap_or_default()
    }

    /// Merges `sources`. Not positioned.
    pub fn new(comparator: Comparator, sources: Vec<Source>) -> MergingIter {
        let mut prefixes =
            SPARE.try_with(|spare| std::mem::take(&mut spare.borrow_mut().1)).unwrap_or_default();
        prefixes.clear();
        prefixes.resize(sources.len(), 0);
        MergingIter {
            comparator,
            sources,
            prefixes,
            winner: NONE,
            runner_up: NONE,
            direction: Direction::Forward,
            excluded: Vec::new(),
            skipped: false,
            status: Ok(()),
        }
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.winner != NONE
    }

    /// Why the iterator is invalid, if not for the end: the first error of any source.
    pub fn status(&self) -> Result<()> {
        self.status.clone()
    }

    /// The internal key. Panics unless valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.sources[self.winner].key()
    }

    /// The value. Panics unless valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.sources[self.winner].value()
    }

    /// The cached block that the value lies in, if it is in one. Panics unless valid.
    pub fn pinned_block(&self) -> Option<&Pinned> {
        match &self.sources[self.winner] {
            Source::Mem(_) => None,
            Source::Table(iter, _) => iter.pinned_block(),
            Source::Level(iter) => iter.pinned_block(),
        }
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.position(Direction::Forward, Source::seek_to_first);
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.position(Direction::Backward, Source::seek_to_last);
    }

    /// To the first entry at or after (`user_key`, `packed`). In steps, each for all tables before the next: see
    /// [`TableIter`].
    pub fn seek(&mut self, user_key: &[u8], packed: u64) {
        // Tables first: what they ask for arrives while memtables are searched.
        self.sources.iter_mut().rev().for_each(|source| source.approach(user_key, packed));
        self.tables().for_each(|table| table.approach_slot());
        let missing = self.tables().map(|table| !table.arrive()).filter(|missing| *missing).count();
        if missing > 1 {
            self.read_missing();
        }
        self.tables().for_each(|table| table.approach_entry(user_key));
        self.position(Direction::Forward, |source| source.finish_seek(user_key, packed));
    }

    fn tables(&mut self) -> impl Iterator<Item = &mut TableIter> {
        self.sources.iter_mut().filter_map(Source::table)
    }

    /// Reads the blocks that were not cached, all in one batch. What fails is read again by its table, which reports it.
    #[cold]
    fn read_missing(&mut self) {
        let mut tables: Vec<&mut TableIter> = self.tables().collect();
        let (of, reads): (Vec<usize>, Vec<_>) = tables
            .iter()
            .enumerate()
            .filter_map(|(index, table)| Some((index, table.missing_block()?)))
            .unzip();
        let mut loaded: Vec<(usize, Pinned)> = Vec::with_capacity(reads.len());
        read_batch(&reads, &mut |number, stored| {
            let index = of[number];
            loaded.extend(stored.ok().and_then(|stored| Some((index, tables[index].loaded_block(stored)?))));
        });
        for (index, block) in loaded {
            tables[index].take_block(block);
        }
    }

    /// As [`MergingIter::seek`], but sources are left out that by their filters hold no key with the prefix of `user_key`.
    /// Going forward, the entries are complete within the prefix; beyond it only once
    /// [`MergingIter::include_excluded`] was called.
    pub fn seek_within(&mut self, user_key: &[u8], packed: u64, within: &Within<'_>) {
        self.direction = Direction::Forward;
        self.status = Ok(());
        self.excluded.clear();
        self.skipped = false;
        for index in 0..self.sources.len() {
            if !self.sources[index].seek_within(user_key, packed, within) {
                self.excluded.push(index);
            }
            self.refresh(index);
        }
        self.choose();
    }

    /// True if the entries ahead are not complete.
    pub fn has_excluded(&self) -> bool {
        !self.excluded.is_empty()
    }

    /// Puts the sources that were left out at their first entry at or after (`user_key`, `packed`), where the seek went.
    pub fn include_excluded(&mut self, user_key: &[u8], packed: u64) {
        let excluded = std::mem::take(&mut self.excluded);
        if excluded.is_empty() {
            return;
        }
        for index in excluded {
            self.sources[index].seek(user_key, packed);
            self.refresh(index);
        }
        self.choose();
    }

    /// To the last entry at or before (`user_key`, `packed`).
    pub fn seek_for_prev(&mut self, user_key: &[u8], packed: u64) {
        self.position(Direction::Backward, |source| source.seek_for_prev(user_key, packed));
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        if self.direction == Direction::Backward {
            self.turn(Direction::Forward);
            if !self.valid() {
                return;
            }
        }
        let winner = self.winner;
        self.sources[winner].next();
        self.settle(winner);
    }

    /// To the next entry, leaving out entries before `end` in sources where everything is older than `seq`.
    /// Panics unless valid.
    pub fn skip_older(&mut self, end: &[u8], seq: SeqNum) {
        self.next();
        let comparator = self.comparator.clone();
        let mut moved = false;
        for index in 0..self.sources.len() {
            let source = &mut self.sources[index];
            let before_end =
                source.valid() && comparator.compare(split(source.key()).0, end) == Ordering::Less;
            if before_end && source.skip_older(end, seq) {
                self.refresh(index);
                self.skipped = true;
                moved = true;
            }
        }
        if moved {
            self.choose();
        }
    }

    /// To the previous entry. Panics unless valid.
    #[inline]
    pub fn prev(&mut self) {
        if self.direction == Direction::Forward {
            self.turn(Direction::Backward);
            if !self.valid() {
                return;
            }
        }
        let winner = self.winner;
        self.sources[winner].prev();
        self.settle(winner);
    }

    fn position(&mut self, direction: Direction, mut place: impl FnMut(&mut Source)) {
        self.direction = direction;
        self.status = Ok(());
        self.excluded.clear();
        self.skipped = false;
        for index in 0..self.sources.len() {
            place(&mut self.sources[index]);
            self.refresh(index);
        }
        self.choose();
    }

    /// After `moved`, the winner, moved: keeps it if it is still first, else chooses anew.
    #[inline]
    fn settle(&mut self, moved: usize) {
        // Alone, it needs no prefix: `choose` makes up for it.
        let stays = match self.runner_up {
            NONE => self.sources[moved].valid(),
            runner_up => self.refresh(moved) && self.goes_first(moved, runner_up),
        };
        if !stays {
            self.choose();
        }
    }

    /// Updates the cached prefix of a source; false if the source ended.
    #[inline]
    fn refresh(&mut self, index: usize) -> bool {
        let source = &self.sources[index];
        if source.valid() {
            self.prefixes[index] = self.comparator.prefix(split(source.key()).0);
            return true;
        }
        if let Err(error) = source.status() {
            self.status = Err(error);
        }
        false
    }

    /// True if source `a` comes before source `b` in the current direction.
    #[inline]
    fn goes_first(&self, a: usize, b: usize) -> bool {
        let order = self.prefixes[a]
            .cmp(&self.prefixes[b])
            .then_with(|| self.comparator.compare_internal(self.sources[a].key(), self.sources[b].key()));
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }

    /// Finds winner and runner-up among all sources. After an error there is none: an iterator that went on
    /// without a source would show a hole as if it were the truth.
    fn choose(&mut self) {
        if self.winner != NONE {
            // It moved without its prefix while it was alone.
            self.refresh(self.winner);
        }
        self.winner = NONE;
        self.runner_up = NONE;
        if self.status.is_err() {
            return;
        }
        for index in 0..self.sources.len() {
            if !self.sources[index].valid() {
                continue;
            }
            if self.winner == NONE || self.goes_first(index, self.winner) {
                self.runner_up = self.winner;
                self.winner = index;
            } else if self.runner_up == NONE || self.goes_first(index, self.runner_up) {
                self.runner_up = index;
            }
        }
    }

    /// Turns around at the current entry: every other source moves to the far side of it. Invalid if one fails.
    #[cold]
    fn turn(&mut self, direction: Direction) {
        let here = self.key().to_vec();
        let (user_key, packed) = split(&here);
        let winner = self.winner;
        for index in (0..self.sources.len()).filter(|&index| index != winner) {
            let beside = !self.skipped && !self.excluded.contains(&index);
            let source = &mut self.sources[index];
            // Internal keys are unique, so no other source holds `here`: "at or" never applies.
            match direction {
                Direction::Forward if beside && source.is_fixed() => {
                    source.step_over(Source::next, Source::seek_to_first)
                }
                Direction::Backward if beside && source.is_fixed() => {
                    source.step_over(Source::prev, Source::seek_to_last)
                }
                Direction::Forward => source.seek(user_key, packed),
                Direction::Backward => source.seek_for_prev(user_key, packed),
            }
            self.refresh(index);
        }
        self.direction = direction;
        self.excluded.clear();
        self.skipped = false;
        self.choose_runner_up(winner);
    }

    fn choose_runner_up(&mut self, winner: usize) {
        self.runner_up = NONE;
        for index in (0..self.sources.len()).filter(|&index| index != winner) {
            if self.sources[index].valid()
                && (self.runner_up == NONE || self.goes_first(index, self.runner_up))
            {
                self.runner_up = index;
            }
        }
        if self.status.is_err() {
            self.winner = NONE;
        }
    }
}

impl Drop for MergingIter {
    fn drop(&mut self) {
        self.sources.clear();
        if self.sources.capacity() <= SPARE_SOURCES {
            let memory = (std::mem::take(&mut self.sources), std::mem::take(&mut self.prefixes));
            // Not where the thread ends.
            let _ = SPARE.try_with(|spare| spare.replace(memory));
        }
    }
}

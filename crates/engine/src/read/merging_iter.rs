//! Merges sorted sources into one sorted stream of internal keys.
//!
//! Run-length emission: the winner is followed, without looking at the other sources, for as long as its
//! key stays before the runner-up's. With most data in one level, most steps touch one source only.
//! Key prefixes are cached as numbers; full keys are compared only when prefixes tie.
//!
//! Invariant: going forward every source is at its first entry after the current position, going backward
//! at its last entry before it.

use super::source::{Direction, Source};
use super::within::Within;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Result, SeqNum};
use outcrop_cache::Pinned;
use outcrop_env::read_batch;
use outcrop_table::TableIter;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Range;

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

    /// How many sources there are, and how many of them are memtables.
    pub fn sources(&self) -> (u64, u64) {
        let memtables = self.sources.iter().filter(|source| matches!(source, Source::Mem(_)));
        (self.sources.len() as u64, memtables.count() as u64)
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

    /// The length of the value. Panics unless valid.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.sources[self.winner].value_len()
    }

    /// The cached block that the value lies in, if it is in one. Panics unless valid.
    pub fn pinned_block(&self) -> Option<&Pinned> {
        self.sources[self.winner].pinned_block()
    }

    /// As [`TableIter::value_in_block`]. Panics unless valid.
    #[inline]
    pub fn value_in_block(&self) -> Option<(&Pinned, Range<usize>)> {
        self.sources[self.winner].value_in_block()
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.position(Direction::Forward, Source::seek_to_first);
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.position(Direction::Backward, Source::seek_to_last);
    }

    /// To the first entry at or after (`user_key`, `trailer`). In steps, each for all tables before the next: see
    /// [`TableIter`].
    pub fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        // Tables first: their blocks arrive while memtables are searched.
        self.sources.iter_mut().rev().for_each(|source| source.begin_seek(user_key, trailer));
        self.tables().for_each(|table| table.prefetch_slot());
        let missing = self.tables().map(|table| !table.enter_if_cached()).filter(|missing| *missing).count();
        if missing > 1 {
            self.read_missing();
        }
        // Most rows are in the last level: the entry found there is the most likely to be read.
        let last = self.sources.len().wrapping_sub(1);
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(table) = source.table() {
                table.prefetch_entry(user_key, index == last);
            }
        }
        self.position(Direction::Forward, |source| source.finish_seek(user_key, trailer));
    }

    fn tables(&mut self) -> impl Iterator<Item = &mut TableIter> {
        self.sources.iter_mut().filter_map(Source::table)
    }

    /// Reads the blocks that were not cached, all in one batch. The table of a read that fails reads the block again,
    /// and reports the error.
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
    pub fn seek_within(&mut self, user_key: &[u8], trailer: Trailer, within: &Within<'_>) {
        self.direction = Direction::Forward;
        self.status = Ok(());
        self.excluded.clear();
        self.skipped = false;
        for index in 0..self.sources.len() {
            if !self.sources[index].seek_within(user_key, trailer, within) {
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

    /// Puts the sources that were left out at their first entry at or after (`user_key`, `trailer`), where the seek went.
    pub fn include_excluded(&mut self, user_key: &[u8], trailer: Trailer) {
        let excluded = std::mem::take(&mut self.excluded);
        if excluded.is_empty() {
            return;
        }
        for index in excluded {
            self.sources[index].seek(user_key, trailer);
            self.refresh(index);
        }
        self.choose();
    }

    /// To the last entry at or before (`user_key`, `trailer`).
    pub fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.position(Direction::Backward, |source| source.seek_for_prev(user_key, trailer));
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        if self.direction == Direction::Backward {
            self.switch_direction(Direction::Forward);
            if !self.valid() {
                return;
            }
        }
        let winner = self.winner;
        self.sources[winner].next();
        self.update_winner(winner);
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
            self.switch_direction(Direction::Backward);
            if !self.valid() {
                return;
            }
        }
        let winner = self.winner;
        self.sources[winner].prev();
        self.update_winner(winner);
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
    fn update_winner(&mut self, moved: usize) {
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
    fn switch_direction(&mut self, direction: Direction) {
        let here = self.key().to_vec();
        let (user_key, trailer) = split(&here);
        let winner = self.winner;
        if direction == Direction::Backward {
            // All together; the current source is likely to go on.
            for (index, source) in self.sources.iter_mut().enumerate() {
                if let Some(table) = source.table() {
                    table.look_back(index == winner);
                }
            }
        }
        for index in (0..self.sources.len()).filter(|&index| index != winner) {
            let beside = !self.skipped && !self.excluded.contains(&index);
            let source = &mut self.sources[index];
            // Internal keys are unique, so no other source holds `here`: "at or" never applies.
            match direction {
                _ if beside && source.is_fixed() => source.step_over(direction),
                Direction::Forward => source.seek(user_key, trailer),
                Direction::Backward => source.seek_for_prev(user_key, trailer),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnFamilyDescriptor, ColumnFamilyParts, Db, DbOptions, ReadOptions};
    use outcrop_base::PrefixExtractor;
    use outcrop_env::Env;
    use outcrop_env::memory::MemoryFs;
    use outcrop_env::random::{Random, SeededRandom};
    use outcrop_options::{ColumnFamilyOptions, FilterPolicy};
    use std::sync::Arc;

    /// Versions of a few keys in a level, three tables of L0 and the memtable.
    fn database(random: &SeededRandom) -> Db {
        let env = Env::with_file_system(Arc::new(MemoryFs::new()));
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let mut own =
            ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
        own.table.block_size = 100;
        let default = ColumnFamilyDescriptor::default_with(own, ColumnFamilyParts::default());
        let db = Db::builder("/db").options(options).env(env).column_family(default).open().unwrap();
        let cf = db.default_column_family().clone();
        // Versions stay in the level for it.
        let _snapshot = db.snapshot();
        for source in 0..5 {
            for _ in 0..40 {
                let key = format!("{:02}", random.next_u64() % 60);
                db.put(key.as_bytes(), b"value").unwrap();
            }
            match source {
                0 => db.compact_range_cf(&cf, None, None).unwrap(),
                4 => {}
                _ => db.flush_cf(&cf).unwrap(),
            }
        }
        db
    }

    fn place(merged: &MergingIter, rows: &[Vec<u8>]) -> Option<usize> {
        merged.valid().then(|| rows.iter().position(|row| row == merged.key()).expect("a row there is"))
    }

    #[test]
    fn moves_in_all_directions_show_every_row_and_turns_after_leaving_out_show_all_again() {
        for seed in 1..20 {
            let random = SeededRandom::new(seed);
            let db = database(&random);
            let cf = db.default_column_family();
            let view = cf.superversion.load_full();
            let mut merged =
                crate::read::cursor::merge_view(&db.core().ctx, &view, cf, &ReadOptions::default()).unwrap();
            let mut rows: Vec<Vec<u8>> = Vec::new();
            merged.seek_to_first();
            while merged.valid() {
                rows.push(merged.key().to_vec());
                merged.next();
            }
            assert!(
                rows.len() > 120 && rows.is_sorted_by(|a, b| cf.comparator.compare_internal(a, b).is_lt())
            );
            let mut at: Option<usize> = None;
            for _ in 0..400 {
                match (random.next_u64() % 7, at) {
                    (0..=2, Some(here)) => {
                        merged.next();
                        at = Some(here + 1).filter(|&next| next < rows.len());
                    }
                    (3 | 4, Some(here)) => {
                        merged.prev();
                        at = here.checked_sub(1);
                    }
                    (5, Some(here)) => {
                        // The rows that are left out depend on how rows lie in tables: all of them are before
                        // `end` and older.
                        let end = split(&rows[random.next_u64() as usize % rows.len()]).0.to_vec();
                        let seq = SeqNum(random.next_u64() % 210);
                        if merged.direction == Direction::Forward && split(&rows[here]).0 < end.as_slice() {
                            merged.skip_older(&end, seq);
                            let to = place(&merged, &rows).unwrap_or(rows.len());
                            for left_out in &rows[here + 1..to] {
                                let (user_key, trailer) = split(left_out);
                                assert!(user_key < end.as_slice() && trailer.seq().0 < seq.0, "seed {seed}");
                            }
                            if merged.valid() {
                                merged.prev();
                            }
                            at = (to < rows.len()).then(|| to - 1);
                        }
                    }
                    _ => {
                        let target = random.next_u64() as usize % rows.len();
                        let (user_key, trailer) = split(&rows[target]);
                        if random.next_u64().is_multiple_of(2) {
                            merged.seek(user_key, trailer);
                        } else {
                            merged.seek_for_prev(user_key, trailer);
                        }
                        at = Some(target);
                    }
                }
                assert_eq!(place(&merged, &rows), at, "seed {seed}");
            }
        }
    }

    #[test]
    fn what_is_written_behind_the_place_of_a_turn_is_not_taken_for_what_is_before_it() {
        let env = Env::with_file_system(Arc::new(MemoryFs::new()));
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let db = Db::builder("/db").options(options).env(env).open().unwrap();
        let cf = db.default_column_family().clone();
        let put = |key: &str| db.put(key.as_bytes(), b"value").unwrap();
        put("a");
        put("c");
        db.flush_cf(&cf).unwrap();
        put("m");
        let view = cf.superversion.load_full();
        let mut merged =
            crate::read::cursor::merge_view(&db.core().ctx, &view, &cf, &ReadOptions::default()).unwrap();
        merged.seek(b"c", Trailer::MAX);
        put("d");
        merged.prev();
        assert_eq!(split(merged.key()).0, b"a");
    }

    #[test]
    fn a_table_that_a_seek_left_out_is_before_the_place_of_a_turn_like_the_others() {
        let extractor = PrefixExtractor::Fixed(1);
        let mut own = ColumnFamilyOptions {
            prefix_extractor: Some(extractor.clone()),
            ..ColumnFamilyOptions::default()
        };
        own.table.filter_policy = FilterPolicy::Bloom { bits_per_key: 10.0 };
        let env = Env::with_file_system(Arc::new(MemoryFs::new()));
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let default = ColumnFamilyDescriptor::default_with(own, ColumnFamilyParts::default());
        let db = Db::builder("/db").options(options).env(env).column_family(default).open().unwrap();
        let cf = db.default_column_family().clone();
        for keys in [["a1", "a3"], ["b1", "b9"]] {
            for key in keys {
                db.put(key.as_bytes(), b"value").unwrap();
            }
            db.flush_cf(&cf).unwrap();
        }
        let view = cf.superversion.load_full();
        let mut merged =
            crate::read::cursor::merge_view(&db.core().ctx, &view, &cf, &ReadOptions::default()).unwrap();
        merged.seek_within(b"a2", Trailer::MAX, &Within { extractor: &extractor, prefix: b"a" });
        assert!(merged.has_excluded() && split(merged.key()).0 == b"a3");
        merged.prev();
        assert_eq!(split(merged.key()).0, b"a1");
        merged.next();
        merged.next();
        assert_eq!(split(merged.key()).0, b"b1", "it is no longer left out");
    }
}

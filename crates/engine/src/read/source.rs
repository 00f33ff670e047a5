//! The sorted sources that a merge is made of.

use super::level_iter::LevelIter;
use super::within::Within;
use outcrop_base::keys::Trailer;
use outcrop_base::{Result, SeqNum};
use outcrop_cache::Pinned;
use outcrop_memtable::MemTableIter;
use outcrop_table::TableIter;
use std::ops::Range;

/// Which way an iterator goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// To larger keys.
    Forward,
    /// To smaller keys.
    Backward,
}

/// One sorted source. Its kind is a byte of its own, which each call looks at: the compiler would hide it in a field of one of the kinds, from
/// where it takes several instructions more.
#[repr(u8)]
pub enum Source {
    /// A memtable.
    Mem(MemTableIter),
    /// One table, as in L0, and the largest sequence number in it.
    Table(TableIter, SeqNum),
    /// The tables of one level.
    Level(LevelIter),
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
    pub(super) fn valid(&self) -> bool {
        on_source!(self, iter => iter.valid())
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        on_source!(self, iter => iter.key())
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        on_source!(self, iter => iter.value())
    }

    #[inline(always)]
    pub(super) fn value_len(&self) -> usize {
        match self {
            Source::Mem(iter) => iter.value().len(),
            Source::Table(iter, _) => iter.value_len(),
            Source::Level(iter) => iter.value_len(),
        }
    }

    /// The cached block that the value lies in, if it is in one.
    pub(super) fn pinned_block(&self) -> Option<&Pinned> {
        match self {
            Source::Mem(_) => None,
            Source::Table(iter, _) => iter.pinned_block(),
            Source::Level(iter) => iter.pinned_block(),
        }
    }

    /// As [`TableIter::value_in_block`].
    #[inline]
    pub(super) fn value_in_block(&self) -> Option<(&Pinned, Range<usize>)> {
        match self {
            Source::Mem(_) => None,
            Source::Table(iter, _) => iter.value_in_block(),
            Source::Level(iter) => iter.value_in_block(),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) {
        on_source!(self, iter => iter.next())
    }

    #[inline]
    pub(super) fn prev(&mut self) {
        on_source!(self, iter => iter.prev())
    }

    pub(super) fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        on_source!(self, iter => iter.seek(user_key, trailer))
    }

    /// First step of a seek; the next ones are those of `table`, and `finish_seek` is the last. Sources in memory are
    /// positioned at once.
    pub(super) fn begin_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        match self {
            Source::Mem(iter) => iter.seek(user_key, trailer),
            Source::Table(iter, _) => iter.begin_seek(user_key, trailer),
            Source::Level(iter) => iter.begin_seek(user_key, trailer),
        }
    }

    /// The table's iterator that the source stands in.
    pub(super) fn table(&mut self) -> Option<&mut TableIter> {
        match self {
            Source::Mem(_) => None,
            Source::Table(iter, _) => Some(iter),
            Source::Level(iter) => iter.table_mut(),
        }
    }

    pub(super) fn finish_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        match self {
            Source::Mem(_) => {}
            Source::Table(iter, _) => iter.finish_seek(user_key, trailer),
            Source::Level(iter) => iter.finish_seek(user_key, trailer),
        }
    }

    /// As `seek`; false if filters know that no key has the prefix of `user_key`: the source then has no entry.
    pub(super) fn seek_within(&mut self, user_key: &[u8], trailer: Trailer, within: &Within<'_>) -> bool {
        match self {
            Source::Mem(iter) => iter.seek_within(user_key, trailer, within.extractor, within.prefix),
            Source::Table(iter, _) => iter.seek_within(user_key, trailer, within.extractor, within.prefix),
            Source::Level(iter) => iter.seek_within(user_key, trailer, within),
        }
    }

    pub(super) fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        on_source!(self, iter => iter.seek_for_prev(user_key, trailer))
    }

    /// Moves a forward source to `end` if everything it would pass is older than `seq`; false if it stays.
    pub(super) fn skip_older(&mut self, end: &[u8], seq: SeqNum) -> bool {
        match self {
            // The numbers of a memtable's entries are not known without reading them.
            Source::Mem(_) => false,
            Source::Table(iter, largest_seq) => {
                let skip = *largest_seq < seq;
                if skip {
                    iter.seek(end, Trailer::MAX);
                }
                skip
            }
            Source::Level(iter) => iter.skip_older(end, seq),
        }
    }

    /// True if nothing is added to it: its neighbours stay neighbours.
    pub(super) fn is_fixed(&self) -> bool {
        !matches!(self, Source::Mem(_))
    }

    /// From the first entry on one side of a place to the first on its other side, which is one step away, or at the end where
    /// there was none on the one side.
    pub(super) fn step_over(&mut self, direction: Direction) {
        match (direction, self.valid()) {
            (Direction::Forward, true) => self.next(),
            (Direction::Backward, true) => self.prev(),
            (Direction::Forward, false) => self.seek_to_first(),
            (Direction::Backward, false) => self.seek_to_last(),
        }
    }

    pub(super) fn seek_to_first(&mut self) {
        on_source!(self, iter => iter.seek_to_first())
    }

    pub(super) fn seek_to_last(&mut self) {
        on_source!(self, iter => iter.seek_to_last())
    }

    pub(super) fn status(&self) -> Result<()> {
        match self {
            Source::Mem(_) => Ok(()),
            Source::Table(iter, _) => iter.status(),
            Source::Level(iter) => iter.status(),
        }
    }
}

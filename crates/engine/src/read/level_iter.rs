//! Iterates over one sorted run of several tables: a level below L0, or a compaction's inputs.
//!
//! Tables are opened as the position enters them, and are then checked against the range that the MANIFEST gives for
//! them. After an error the iterator is invalid and [`LevelIter::status`] says why.

use super::within::Within;
use crate::column_family::ColumnFamily;
use crate::table_cache::TableCache;
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Error, Result, SeqNum};
use outcrop_cache::Pinned;
use outcrop_manifest::TableFile;
use outcrop_table::{TableIter, TableIterOptions};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Iterator over non-overlapping tables in key order.
pub struct LevelIter {
    tables: Arc<TableCache>,
    cf: Arc<ColumnFamily>,
    files: Arc<[Arc<TableFile>]>,
    options: TableIterOptions,
    /// Index of the table `table` iterates over.
    index: usize,
    table: Option<TableIter>,
    status: Result<()>,
}

impl LevelIter {
    /// An iterator over `files`, which are sorted and do not overlap. Not positioned.
    pub fn new(
        tables: Arc<TableCache>,
        cf: Arc<ColumnFamily>,
        files: Arc<[Arc<TableFile>]>,
        options: TableIterOptions,
    ) -> LevelIter {
        LevelIter { tables, cf, files, options, index: usize::MAX, table: None, status: Ok(()) }
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::valid)
    }

    /// Why the iterator is invalid, if not for the end.
    pub fn status(&self) -> Result<()> {
        self.status.clone()?;
        self.table.as_ref().map_or(Ok(()), TableIter::status)
    }

    /// The internal key. Panics unless valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.table.as_ref().expect("valid iterator").key()
    }

    /// The value. Panics unless valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.table.as_ref().expect("valid iterator").value()
    }

    /// The length of the value. Meaningful while valid.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.table.as_ref().map_or(0, TableIter::value_len)
    }

    /// The cached block that the value lies in, if it is in one.
    pub fn pinned_block(&self) -> Option<&Pinned> {
        self.table.as_ref()?.pinned_block()
    }

    /// As [`TableIter::value_in_block`].
    #[inline]
    pub fn value_in_block(&self) -> Option<(&Pinned, Range<usize>)> {
        self.table.as_ref()?.value_in_block()
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.enter_first(0);
        self.skip_empty_forward();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        self.enter_last(self.files.len().wrapping_sub(1));
        self.skip_empty_backward();
    }

    /// To the first entry at or after (`user_key`, `trailer`).
    pub fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.enter(self.find(user_key, trailer));
        self.on_table(|table| table.seek(user_key, trailer));
        self.skip_empty_forward();
    }

    /// First step of a seek, to the table where it ends; the following ones are those of [`LevelIter::table_mut`].
    pub fn begin_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.enter(self.find(user_key, trailer));
        self.on_table(|table| table.begin_seek(user_key, trailer));
    }

    /// The current table's iterator.
    pub fn table_mut(&mut self) -> Option<&mut TableIter> {
        self.table.as_mut()
    }

    /// Last step of a seek to the key that [`LevelIter::begin_seek`] was given.
    pub fn finish_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        self.on_table(|table| table.finish_seek(user_key, trailer));
        self.skip_empty_forward();
    }

    /// The first table that may have an entry at or after (`user_key`, `trailer`).
    fn find(&self, user_key: &[u8], trailer: Trailer) -> usize {
        let comparator = &self.cf.comparator;
        self.files.partition_point(|file| {
            comparator.compare_parts(split(&file.largest), (user_key, trailer)) == Ordering::Less
        })
    }

    /// As [`LevelIter::seek`]; false if filters know that no key has the prefix of `user_key`: the iterator is then not
    /// positioned.
    pub fn seek_within(&mut self, user_key: &[u8], trailer: Trailer, within: &Within<'_>) -> bool {
        let index = self.find(user_key, trailer);
        // Keys with a prefix follow each other, so others of them can only be where the next table begins.
        let goes_on = self.files.get(index + 1).is_some_and(|next| within.has(split(&next.smallest).0));
        if let Some(file) = self.files.get(index).filter(|_| !goes_on)
            && let Ok(table) = self.tables.open(&self.cf, file)
            && !table.may_contain_prefix(within.extractor, within.prefix, self.options.loading)
        {
            (self.index, self.table, self.status) = (usize::MAX, None, Ok(()));
            return false;
        }
        self.seek(user_key, trailer);
        true
    }

    /// To the last entry at or before (`user_key`, `trailer`).
    pub fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        let comparator = &self.cf.comparator;
        let after = self.files.partition_point(|file| {
            comparator.compare_parts(split(&file.smallest), (user_key, trailer)) != Ordering::Greater
        });
        self.enter(after.wrapping_sub(1));
        self.on_table(|table| table.seek_for_prev(user_key, trailer));
        self.skip_empty_backward();
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        let table = self.table.as_mut().expect("valid iterator");
        table.next();
        if !table.valid() {
            self.skip_empty_forward();
        }
    }

    /// To the previous entry. Panics unless valid.
    #[inline]
    pub fn prev(&mut self) {
        let table = self.table.as_mut().expect("valid iterator");
        table.prev();
        if !table.valid() {
            self.skip_empty_backward();
        }
    }

    /// Moves forward to `end` if everything on the way is older than `seq`; false if nothing was passed.
    pub fn skip_older(&mut self, end: &[u8], seq: SeqNum) -> bool {
        let comparator = &self.cf.comparator;
        let mut index = self.index;
        while self.files.get(index).is_some_and(|file| file.largest_seq < seq) {
            if comparator.compare(split(&self.files[index].largest).0, end) != Ordering::Less {
                break;
            }
            index += 1;
        }
        let inside = self.files.get(index).is_some_and(|file| file.largest_seq < seq);
        if index == self.index && !inside {
            return false;
        }
        if inside {
            self.enter(index);
            self.on_table(|table| table.seek(end, Trailer::MAX));
        } else {
            // A table with newer entries: they have to be looked at.
            self.enter_first(index);
        }
        self.skip_empty_forward();
        true
    }

    fn on_table(&mut self, position: impl FnOnce(&mut TableIter)) {
        if let Some(table) = &mut self.table {
            position(table);
        }
    }

    /// Makes `index` the current table; past either end there is none.
    fn enter(&mut self, index: usize) {
        self.status = Ok(());
        if index == self.index && self.table.is_some() {
            return;
        }
        self.index = index;
        self.table = None;
        let Some(file) = self.files.get(index) else { return };
        match self.tables.open(&self.cf, file) {
            Ok(table) => self.table = Some(table.iter(self.options.clone())),
            Err(error) => self.status = Err(error),
        }
    }

    /// To the first entry of table `index`.
    fn enter_first(&mut self, index: usize) {
        self.enter(index);
        self.on_table(TableIter::seek_to_first);
        self.check_bound(|file| &file.smallest, Ordering::Less);
    }

    /// To the last entry of table `index`.
    fn enter_last(&mut self, index: usize) {
        self.enter(index);
        self.on_table(TableIter::seek_to_last);
        self.check_bound(|file| &file.largest, Ordering::Greater);
    }

    /// Fails if the first or last key of a table is `beyond` the bound that the MANIFEST gives for it: lookups would
    /// pass the table by, and the run would not be in order.
    fn check_bound(&mut self, bound: impl FnOnce(&TableFile) -> &[u8], beyond: Ordering) {
        if !self.valid() {
            return;
        }
        let file = &self.files[self.index];
        let order = self.cf.comparator.compare(split(self.key()).0, split(bound(file)).0);
        if order == beyond {
            let path = file.path(self.tables.dir());
            let what = "a key lies outside of the range that the MANIFEST gives for the table";
            self.status = Err(Error::corruption(format!("{}: {what}", path.display())));
            self.table = None;
        }
    }

    /// Enters following tables until one has an entry, the run ends, or an error stops it.
    fn skip_empty_forward(&mut self) {
        while !self.valid() && self.status().is_ok() && self.index < self.files.len() {
            self.enter_first(self.index + 1);
        }
    }

    fn skip_empty_backward(&mut self) {
        while !self.valid() && self.status().is_ok() && self.index < self.files.len() {
            self.enter_last(self.index.wrapping_sub(1));
        }
    }
}

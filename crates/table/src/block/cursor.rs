//! A position in a block that moves both ways.

use super::entry::decode_entry;
use super::prefetch::{AHEAD, DIRECTORY_LINES, LINE, fetch_key, fetch_value};
use super::view::View;
use crate::prefixes::{Place, place};
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Error, Result};
use std::cmp::Ordering;
use std::ops::{Deref, Range};

/// A position in a block.
pub struct Cursor<F> {
    frame: F,
    /// Number of the current entry; known only if every entry is an anchor.
    index: usize,
    /// How many entries there are, if every entry is an anchor.
    count: Option<usize>,
    /// Offset of the current entry; the end of the entries if there is none.
    at: usize,
    next_at: usize,
    /// Where the entries are in the frame.
    entries: (usize, usize),
    /// Where the value is in the frame.
    value: (usize, usize),
    key: Vec<u8>,
    valid: bool,
    corrupt: bool,
}

impl<F: Deref<Target = [u8]>> Cursor<F> {
    /// A cursor over `frame`. Not positioned.
    pub fn new(frame: F) -> Cursor<F> {
        Cursor::with_key_buffer(frame, Vec::new())
    }

    /// As [`Cursor::new`], building keys in `key`.
    pub fn with_key_buffer(frame: F, key: Vec<u8>) -> Cursor<F> {
        let view = View::new(&frame);
        let entries = (view.restarts_at - view.entries.len(), view.restarts_at);
        let count = view.per_entry.then_some(view.anchors);
        Cursor {
            frame,
            index: 0,
            count,
            at: 0,
            next_at: 0,
            entries,
            value: (0, 0),
            key,
            valid: false,
            corrupt: false,
        }
    }

    /// The frame and the key buffer, for reuse.
    pub fn into_parts(self) -> (F, Vec<u8>) {
        (self.frame, self.key)
    }

    /// The frame.
    pub fn frame(&self) -> &F {
        &self.frame
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Corruption if an entry did not decode.
    pub fn status(&self) -> Result<()> {
        if self.corrupt {
            return Err(Error::corruption(format!("entry at byte {} of a block does not decode", self.at)));
        }
        Ok(())
    }

    /// The internal key. Meaningful while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value. Meaningful while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.frame[self.value.0..self.value.1]
    }

    /// Where the value lies in the frame. Meaningful while valid.
    #[inline]
    pub fn value_range(&self) -> Range<usize> {
        self.value.0..self.value.1
    }

    /// Where the current entry lies among the entries; empty if there is none.
    pub fn entry_range(&self) -> Range<usize> {
        if self.valid { self.at..self.next_at } else { self.at..self.at }
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.index = 0;
        self.next_at = 0;
        self.key.clear();
        self.decode_next();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        let view = View::new(&self.frame);
        if view.entries.is_empty() {
            self.valid = false;
            return;
        }
        if view.per_entry {
            let last = view.anchors - 1;
            return self.jump(last);
        }
        let (restart, end) = (view.restart(view.num_restarts - 1), view.entries.len());
        self.walk(restart, |cursor| cursor.next_at < end);
    }

    /// To the next entry. Must be valid.
    ///
    /// Asks for the key of a later one, if entries go on as long as the last, and for the value of the one after: where each
    /// takes several lines the processor does not see the pattern, and a scan would wait for memory once for each.
    #[inline]
    pub fn next(&mut self) {
        self.index += 1;
        let step = self.next_at - self.at;
        if step >= LINE {
            fetch_key(self.address(self.next_at + AHEAD * step), self.key_end());
        }
        self.decode_next();
        fetch_value(self.address(self.next_at), self.next_at - self.at);
    }

    /// Where the entry at `offset` is, if there is one.
    #[inline]
    fn address(&self, offset: usize) -> *const u8 {
        self.frame.as_ptr().wrapping_add(self.entries.0 + offset)
    }

    /// Bytes from the start of the current entry to the last one of its key.
    #[inline]
    fn key_end(&self) -> usize {
        self.value.0.saturating_sub(self.entries.0 + self.at + 1)
    }

    /// Where a scan looks first in the frame of a block whose entries are as long as the current one, which is the first of
    /// this block.
    #[inline]
    pub fn prefetch_offsets_forward(&self) -> [usize; 3 + 2 * AHEAD] {
        let (step, key_end) = (self.next_at.saturating_sub(self.at), self.key_end());
        std::array::from_fn(|look| match look.checked_sub(1) {
            None => 0,
            Some(look) => self.entries.0 + look / 2 * step + look % 2 * key_end,
        })
    }

    /// Where a walk backward looks first in the frame of a block whose entries are where those of this one are.
    #[inline]
    pub fn prefetch_offsets_backward(&self) -> [usize; DIRECTORY_LINES + 4] {
        let view = View::new(&self.frame);
        let key_end = self.key_end();
        std::array::from_fn(|look| match look.checked_sub(DIRECTORY_LINES) {
            None => look * LINE,
            Some(look) => {
                let number = view.anchors.saturating_sub(1 + look / 2);
                self.entries.0 + view.anchor_offset(number) + look % 2 * key_end
            }
        })
    }

    /// Entries before the current one and after it, if that is known.
    #[inline]
    pub fn around(&self) -> Option<(usize, usize)> {
        self.count.map(|count| (self.index, count.saturating_sub(self.index + 1)))
    }

    /// Asks for the keys of the last `entries` entries before the current one.
    #[inline]
    pub fn fetch_before(&self, entries: usize) {
        if self.valid && self.count.is_some() {
            let view = View::new(&self.frame);
            for number in self.index.saturating_sub(entries)..self.index {
                fetch_key(self.address(view.anchor_offset(number)), self.key_end());
            }
        }
    }

    /// To the previous entry. Must be valid.
    pub fn prev(&mut self) {
        if self.at == 0 {
            self.valid = false;
            return;
        }
        let view = View::new(&self.frame);
        if view.per_entry {
            let before = self.index - 1;
            if before >= AHEAD {
                fetch_key(self.address(view.anchor_offset(before - AHEAD)), self.key_end());
            }
            if before >= 1 {
                let start = view.anchor_offset(before - 1);
                fetch_value(self.address(start), view.anchor_offset(before) - start);
            }
            return self.jump(before);
        }
        let end = self.at;
        let restart = view.restart(view.restart_before(end - 1));
        self.walk(restart, |cursor| cursor.next_at < end);
    }

    /// To the first entry at or after (`user_key`, `trailer`).
    pub fn seek(&mut self, comparator: &Comparator, user_key: &[u8], trailer: Trailer) {
        let view = View::new(&self.frame);
        let target = (user_key, trailer);
        if view.anchors == 0 {
            return self.seek_by_restarts(comparator, target, 0..view.num_restarts);
        }
        let number = match place(view.common, user_key) {
            Place::Before => return self.seek_to_first(),
            Place::After => {
                self.valid = false;
                self.at = view.entries.len();
                return;
            }
            Place::Among(number) => number,
        };
        let range = view.prefixes().equal_range(number);
        let anchors = view.anchors;
        if !view.per_entry {
            return self.seek_by_restarts(comparator, target, range);
        }
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let mid = (low + high) / 2;
            self.jump(mid);
            if !self.valid {
                return;
            }
            if self.is_before(comparator, target) { low = mid + 1 } else { high = mid }
        }
        if low == anchors {
            self.valid = false;
            self.at = View::new(&self.frame).entries.len();
        } else if !(self.valid && self.index == low) {
            self.jump(low);
        }
    }

    /// Finds the place among restart points `range` by their keys; those before it are known to be smaller
    /// than the target, those after it to be larger. Then walks.
    fn seek_by_restarts(&mut self, comparator: &Comparator, target: (&[u8], Trailer), range: Range<usize>) {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let mid = (low + high) / 2;
            self.walk(View::new(&self.frame).restart(mid), |_| false);
            if !self.valid {
                return;
            }
            if self.is_before(comparator, target) { low = mid + 1 } else { high = mid }
        }
        let start = View::new(&self.frame).restart(low.saturating_sub(1));
        self.walk(start, |_| false);
        while self.valid && self.is_before(comparator, target) {
            self.next();
        }
    }

    #[inline]
    fn is_before(&self, comparator: &Comparator, target: (&[u8], Trailer)) -> bool {
        self.key.len() >= Trailer::LEN && comparator.compare_parts(split(&self.key), target) == Ordering::Less
    }

    /// From the restart point at `restart`, goes on while `more` says so.
    fn walk(&mut self, restart: usize, more: impl Fn(&Self) -> bool) {
        self.next_at = restart;
        self.key.clear();
        self.decode_next();
        while self.valid && more(self) {
            self.decode_next();
        }
    }

    /// To entry number `index`; every entry is an anchor.
    #[inline]
    fn jump(&mut self, index: usize) {
        let view = View::new(&self.frame);
        let at = view.anchor_offset(index);
        let Some(entry) = decode_entry(view.entries, at) else { return self.fail(at) };
        let known = view.common.len() + 8;
        let suffix = &view.entries[entry.suffix.0..entry.suffix.1];
        let within_user_key = suffix.len() >= Trailer::LEN;
        if entry.shared == 0 || (entry.shared <= known && within_user_key) {
            let number = view.prefixes().get(index).to_be_bytes();
            self.key.clear();
            self.key.extend_from_slice(&view.common[..entry.shared.min(view.common.len())]);
            self.key.extend_from_slice(&number[..entry.shared.saturating_sub(view.common.len())]);
            self.key.extend_from_slice(suffix);
            self.at = at;
            self.next_at = entry.value.1;
            self.value = (self.entries.0 + entry.value.0, self.entries.0 + entry.value.1);
            self.valid = self.key.len() >= Trailer::LEN;
            self.corrupt = !self.valid;
        } else {
            let restart = view.restart(view.restart_before(at));
            self.walk(restart, |cursor| cursor.at < at);
        }
        self.index = index;
    }

    /// Decodes the entry at `next_at`, whose predecessor's key is in `key`.
    #[inline]
    fn decode_next(&mut self) {
        let entries = &self.frame[self.entries.0..self.entries.1];
        let at = self.next_at;
        if at >= entries.len() {
            self.at = entries.len();
            self.valid = false;
            return;
        }
        match decode_entry(entries, at) {
            Some(entry) if entry.shared <= self.key.len() => {
                self.key.truncate(entry.shared);
                self.key.extend_from_slice(&entries[entry.suffix.0..entry.suffix.1]);
                self.at = at;
                self.next_at = entry.value.1;
                self.value = (self.entries.0 + entry.value.0, self.entries.0 + entry.value.1);
                self.valid = self.key.len() >= Trailer::LEN;
                self.corrupt = !self.valid;
            }
            _ => self.fail(at),
        }
    }

    #[cold]
    fn fail(&mut self, at: usize) {
        self.at = at;
        self.valid = false;
        self.corrupt = true;
    }
}

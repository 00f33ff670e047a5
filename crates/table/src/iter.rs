//! Iterates over one table, block by block.
//!
//! Sequential access reads ahead (`readahead.rs`): once blocks are loaded one after the other, a growing stretch of the
//! file is read at once and the following blocks are taken from it.
//!
//! A seek that is one of several, over the runs of a database, goes in steps, each for all tables before the next: the
//! cache misses of one table then overlap with those of the others, and missing blocks are read together.
//! ```text
//! begin_seek (index) -> prefetch_slot -> enter_if_cached -> missing_block, loaded_block, take_block -> prefetch_entry -> finish_seek
//! ```

use crate::block::{self, AHEAD, Cursor, write_plain_frame};
use crate::format::BlockHandle;
use crate::index::IndexView;
use crate::readahead::Readahead;
use crate::reader::{BlockPlace, Loading, Reading, TableReader, over_strict_capacity};
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Error, PrefixExtractor, Result};
use outcrop_cache::{Charge, Pinned, Role};
use outcrop_env::{BatchRead, Pace};
use outcrop_monitor::{Purpose, Watch};
use std::cmp::Ordering;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// How a table is iterated over.
#[derive(Clone, Debug, Default)]
pub struct TableIterOptions {
    /// Whether loaded blocks are cached.
    pub loading: Loading,
    /// Bytes read at once from the start; 0: grows with sequential access.
    pub readahead_bytes: usize,
    /// Reads ahead wait for their tokens.
    pub pace: Option<Arc<Pace>>,
    /// A job of the database's iterates. A cache that is charged for iterators then makes room for this one, which fails otherwise if
    /// there is none.
    pub for_job: bool,
}

/// Bytes that an iterator takes beside its buffers: it, and its place among the sources of a merged iterator.
const ITERATOR_BYTES: usize = size_of::<TableIter>() + 512;
/// Of a cache that is charged for what is read ahead, the part that a stretch of it may take.
const READAHEAD_PART: usize = 512;

/// Room for a key from the start: longer than most.
const KEY_BYTES: usize = 64;
/// Steps before the end of a block in which what entering its neighbour touches is asked for.
const NEIGHBOUR_STEPS: usize = 3;

/// Memory of the current block.
enum Frame {
    Pinned(Pinned),
    /// The iterator's own, for blocks that are only passed through.
    Own(Vec<u8>),
}

impl Deref for Frame {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Frame::Pinned(pinned) => pinned,
            Frame::Own(bytes) => bytes,
        }
    }
}

/// A seek in steps, under way.
#[derive(Clone, Copy)]
struct PendingSeek {
    /// The block where the target is, or after which; the number of blocks if all keys are before it.
    block: usize,
    /// Where that block lies, until the iterator has entered it. None from the start if it is the current one or there is none.
    place: Option<BlockPlace>,
}

/// Iterator over a table in internal key order.
pub struct TableIter {
    options: TableIterOptions,
    index: Result<Pinned>,
    /// Number of the current block; the number of blocks if there is none.
    block: usize,
    cursor: Option<Cursor<Frame>>,
    status: Result<()>,
    readahead: Readahead,
    /// Buffers of the last own frame, for reuse.
    spare: (Vec<u8>, Vec<u8>),
    /// Last key of the block before, while the next one is entered.
    last_key: Vec<u8>,
    /// The block that was entered last by moving on from the one before it.
    moved_to: usize,
    /// The block in which what entering the next ones touches was asked for.
    prefetched: usize,
    /// The seek that goes in steps, between the first of them and the last.
    pending: Option<PendingSeek>,
    /// Its memory, if the cache is charged for it.
    charge: Option<Charge>,
    /// Bytes of it that are for a block of its own.
    own_bytes: usize,
    /// The entry that it was positioned at in its block, if an estimate of read amplification wants to know.
    seen: Option<Range<usize>>,
    /// The last field: it may hold the cache that the blocks above are pinned in, which has to outlive their pins.
    table: Arc<TableReader>,
}

impl TableIter {
    pub(crate) fn new(table: Arc<TableReader>, options: TableIterOptions) -> TableIter {
        let role = if options.for_job { Role::Jobs } else { Role::Iterators };
        let mut charge = table.source().cache.as_ref().and_then(|cache| Charge::of(cache, role));
        let has_room = charge.as_mut().is_none_or(|charge| charge.try_set(ITERATOR_BYTES));
        let index = if has_room {
            let loading = options.loading;
            table.source().monitor.counted(|counting| table.pin_index(Reading { loading, counting }))
        } else {
            Err(over_strict_capacity())
        };
        let most = charge.as_ref().map(|charge| charge.cache().capacity() / READAHEAD_PART);
        let paced = || options.loading.pace(table.source().pace.as_deref()).map(Arc::new);
        let pace = options.pace.clone().or_else(paced);
        let readahead = Readahead::new(options.readahead_bytes, table.auto_readahead(), pace)
            .at_most(most.unwrap_or(usize::MAX));
        TableIter {
            table,
            options,
            index,
            block: 0,
            cursor: None,
            status: Ok(()),
            readahead,
            spare: (Vec::new(), Vec::with_capacity(KEY_BYTES)),
            last_key: Vec::new(),
            moved_to: usize::MAX,
            prefetched: usize::MAX,
            pending: None,
            charge,
            own_bytes: 0,
            seen: None,
        }
    }

    /// Charges what it needs to read ahead. Without room for that it drops the bytes that it had read ahead, and does not.
    fn may_read_ahead(&mut self) -> bool {
        let Some(charge) = &mut self.charge else { return true };
        let bytes = ITERATOR_BYTES + self.own_bytes;
        let direct = self.table.source().file.is_direct();
        if charge.try_set_spare(bytes + self.readahead.bytes_to_come(direct)) {
            return true;
        }
        self.readahead.stop();
        charge.set(bytes);
        false
    }

    /// Counts a block that it is to be on, if that is one of the cache's. False if iterators keep too many.
    #[cold]
    fn may_pin(&mut self, frame: &Frame) -> bool {
        let bytes = match frame {
            Frame::Pinned(pinned) if !pinned.is_standalone() || self.options.loading.keeps() => pinned.len(),
            Frame::Pinned(_) | Frame::Own(_) => 0,
        };
        self.charge.as_mut().is_none_or(|charge| charge.try_pin(bytes))
    }

    /// Charges the memory of a block that is in no cache, and is as large as any that it had.
    fn charge_own(&mut self, frame: &Frame) {
        let len = match frame {
            Frame::Pinned(pinned) if pinned.is_standalone() && !self.options.loading.keeps() => pinned.len(),
            Frame::Own(bytes) => bytes.capacity(),
            Frame::Pinned(_) => 0,
        };
        if let Some(charge) = self.charge.as_mut().filter(|_| len > self.own_bytes) {
            charge.set(charge.bytes() - self.own_bytes + len);
            self.own_bytes = len;
        }
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::valid)
    }

    /// Why the iterator is invalid, if not for the end: Corruption or an IO error, naming the file.
    pub fn status(&self) -> Result<()> {
        self.status.clone()
    }

    /// The internal key. Panics unless valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.cursor.as_ref().expect("valid iterator").key()
    }

    /// The value. Panics unless valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.cursor.as_ref().expect("valid iterator").value()
    }

    /// The length of the value. Meaningful while valid.
    #[inline(always)]
    pub fn value_len(&self) -> usize {
        self.cursor.as_ref().map_or(0, |cursor| cursor.value_range().len())
    }

    /// The cached block the value lies in, if it is in one.
    pub fn pinned_block(&self) -> Option<&Pinned> {
        match self.cursor.as_ref()?.frame() {
            Frame::Pinned(pinned) => Some(pinned),
            Frame::Own(_) => None,
        }
    }

    /// The cached block, and where the value lies in it, if it lies in one. Meaningful while valid.
    #[inline]
    pub fn value_in_block(&self) -> Option<(&Pinned, Range<usize>)> {
        let cursor = self.cursor.as_ref()?;
        match cursor.frame() {
            Frame::Pinned(pinned) => Some((pinned, cursor.value_range())),
            Frame::Own(_) => None,
        }
    }

    fn num_blocks(&self) -> usize {
        self.index.as_ref().map_or(0, |index| IndexView::new(index).len())
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        if self.enter(0) {
            self.on_cursor(Cursor::seek_to_first);
        }
        self.skip_forward();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        if self.enter(self.num_blocks().wrapping_sub(1)) {
            self.on_cursor(Cursor::seek_to_last);
        }
        self.skip_backward();
    }

    /// To the first entry at or after (`user_key`, `trailer`).
    pub fn seek(&mut self, user_key: &[u8], trailer: Trailer) {
        let comparator = self.table.comparator().clone();
        let Ok(index) = &self.index else { return self.fail_on_index() };
        let block = IndexView::new(index).find(&comparator, user_key, trailer);
        self.seek_from(block, &comparator, user_key, trailer);
    }

    /// First step of a seek: finds the block, and asks for the cache's tags of it.
    #[inline]
    pub fn begin_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        let Ok(index) = &self.index else { return };
        let view = IndexView::new(index);
        let number = view.find(self.table.comparator(), user_key, trailer);
        let elsewhere = number != self.block || self.cursor.is_none();
        let place =
            (elsewhere && number < view.len()).then(|| BlockPlace { number, handle: view.handle(number) });
        if let Some(place) = place {
            self.table.prefetch_tags(place);
        }
        self.pending = Some(PendingSeek { block: number, place });
    }

    /// Second step of a seek: asks for the cache's slot of the block.
    #[inline]
    pub fn prefetch_slot(&self) {
        if let Some(place) = self.block_to_enter() {
            self.table.prefetch_slot(place);
        }
    }

    /// Third step of a seek: enters the block if it is cached, and asks for its directory. False if it must be read.
    #[inline]
    pub fn enter_if_cached(&mut self) -> bool {
        let Some(place) = self.block_to_enter() else { return true };
        let table = &self.table;
        let found = table.source().monitor.counted(|counting| table.cached_at(place, counting));
        let Some(found) = found else { return false };
        block::prefetch_directory(&found);
        self.enter_pending(place, found);
        true
    }

    /// The read that fetches the block, if [`TableIter::enter_if_cached`] said that it is missing. None if it is to
    /// be read in another way.
    pub fn missing_block(&self) -> Option<BatchRead<'_>> {
        let place = self.block_to_enter().filter(|_| self.options.readahead_bytes == 0)?;
        self.table.read_at(place, self.options.loading.into()).ok()
    }

    /// The missing block, from what was read. None after an error: the last step then reads it again and reports its own.
    pub fn loaded_block(&self, stored: &[u8]) -> Option<Pinned> {
        let place = self.block_to_enter()?;
        let loading = self.options.loading;
        self.table
            .source()
            .monitor
            .counted(|counting| self.table.loaded_at(place, stored, Reading { loading, counting }).ok())
    }

    /// Enters the block that was missing.
    pub fn take_block(&mut self, block: Pinned) {
        if let Some(place) = self.block_to_enter() {
            self.enter_pending(place, block);
        }
    }

    /// Enters the block of the seek in steps, which lies at `place`.
    #[inline]
    fn enter_pending(&mut self, place: BlockPlace, block: Pinned) {
        if let Some(pending) = &mut self.pending {
            pending.place = None;
        }
        self.take(place.number, Frame::Pinned(block));
    }

    /// Fourth step of a seek: asks for the entry's key and those after it; `whole` for its value as well.
    #[inline]
    pub fn prefetch_entry(&self, user_key: &[u8], whole: bool) {
        if let Some(cursor) = &self.cursor {
            block::prefetch_entries_from(cursor.frame(), user_key, whole);
        }
    }

    /// Last step of a seek, to the key that [`TableIter::begin_seek`] was given.
    pub fn finish_seek(&mut self, user_key: &[u8], trailer: Trailer) {
        // Begun steps are only missing where the index could not be read.
        let Some(pending) = self.pending.take() else { return self.fail_on_index() };
        let comparator = self.table.comparator().clone();
        self.seek_from(pending.block, &comparator, user_key, trailer);
    }

    /// The block that a seek in steps has yet to enter.
    #[inline]
    fn block_to_enter(&self) -> Option<BlockPlace> {
        self.pending?.place
    }

    /// To the first entry at or after (`user_key`, `trailer`), which is in `block` or after it.
    #[inline]
    fn seek_from(&mut self, block: usize, comparator: &Comparator, user_key: &[u8], trailer: Trailer) {
        if self.enter(block) {
            self.on_cursor(|cursor| cursor.seek(comparator, user_key, trailer));
        }
        if !self.valid() {
            self.skip_forward();
            // A seek whose caller wants to get on must not be taken back, or the caller never ends.
            let target = (user_key, trailer);
            if self.valid() && comparator.compare_parts(split(self.key()), target).is_lt() {
                self.fail_on_order();
            }
        }
    }

    /// As [`TableIter::seek`]; false if the table's filter knows that no key has `prefix`, which `user_key` has by `extractor`: the
    /// iterator is then not positioned.
    pub fn seek_within(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
        extractor: &PrefixExtractor,
        prefix: &[u8],
    ) -> bool {
        if self.table.may_contain_prefix(extractor, prefix, self.options.loading) {
            self.seek(user_key, trailer);
            return true;
        }
        self.drop_block();
        self.status = Ok(());
        false
    }

    /// To the last entry at or before (`user_key`, `trailer`).
    pub fn seek_for_prev(&mut self, user_key: &[u8], trailer: Trailer) {
        self.seek(user_key, trailer);
        if self.valid() {
            let order = self.table.comparator().compare_parts(split(self.key()), (user_key, trailer));
            if order.is_gt() {
                self.prev();
            }
        } else if self.status.is_ok() {
            self.seek_to_last();
        }
    }

    /// To the next entry. Panics unless valid.
    #[inline]
    pub fn next(&mut self) {
        let cursor = self.cursor.as_mut().expect("valid iterator");
        cursor.next();
        if !cursor.valid() {
            self.leave_block(TableIter::skip_forward, Ordering::Less);
        } else if let Some((_, left @ 1..=NEIGHBOUR_STEPS)) = cursor.around() {
            self.near_next(left);
        }
    }

    /// To the previous entry. Panics unless valid.
    #[inline]
    pub fn prev(&mut self) {
        let cursor = self.cursor.as_mut().expect("valid iterator");
        cursor.prev();
        if !cursor.valid() {
            self.leave_block(TableIter::skip_backward, Ordering::Greater);
        } else if let Some((left @ 1..=NEIGHBOUR_STEPS, _)) = cursor.around() {
            self.near_previous(left);
        }
    }

    /// Before a turn backward: asks for the key of the entry before the current one; `goes_on` for those of a few more.
    #[inline]
    pub fn look_back(&self, goes_on: bool) {
        if let Some(cursor) = &self.cursor {
            cursor.fetch_before(if goes_on { AHEAD } else { 1 });
        }
    }

    /// `left` steps before the last entry of the block: asks for what entering the next one will touch.
    #[inline]
    fn near_next(&self, left: usize) {
        if self.prefetched != self.block {
            self.prefetch_neighbour(self.block + 1, left, |cursor| cursor.prefetch_offsets_forward());
        }
    }

    /// As [`TableIter::near_next`], before the first entry.
    #[inline]
    fn near_previous(&self, left: usize) {
        self.prefetch_neighbour(self.block.wrapping_sub(1), left, |cursor| {
            cursor.prefetch_offsets_backward()
        });
    }

    /// Entering a block touches the cache's tags, its slot and lines of its frame, each found by the one before: they are asked
    /// for one step of the iterator after the other.
    #[inline]
    fn prefetch_neighbour<const N: usize>(
        &self,
        number: usize,
        left: usize,
        looks: impl FnOnce(&Cursor<Frame>) -> [usize; N],
    ) {
        let (Ok(index), Some(cursor)) = (&self.index, &self.cursor) else { return };
        let view = IndexView::new(index);
        if number >= view.len() {
            return;
        }
        let place = BlockPlace { number, handle: view.handle(number) };
        match left {
            3 => self.table.prefetch_tags(place),
            2 => self.table.prefetch_slot(place),
            _ => self.table.prefetch_frame(place, &looks(cursor)),
        }
    }

    /// Goes on in the next block, whose keys must go on where those of the last ended.
    fn leave_block(&mut self, skip: impl FnOnce(&mut TableIter), order: Ordering) {
        let mut last_key = std::mem::take(&mut self.last_key);
        last_key.clear();
        // Past its end, a cursor keeps the key it was on.
        last_key.extend_from_slice(self.key());
        skip(self);
        if self.valid() && self.table.comparator().compare_internal(&last_key, self.key()) != order {
            self.fail_on_order();
        }
        self.last_key = last_key;
    }

    #[cold]
    fn fail_on_order(&mut self) {
        let offset = self.index.as_ref().map_or(0, |index| IndexView::new(index).handle(self.block).offset);
        let error = Error::corruption("the keys of blocks do not follow each other as in its index");
        self.status = Err(self.table.source().block_error(BlockHandle { offset, size: 0 }, &error));
        self.drop_block();
    }

    #[inline]
    fn on_cursor(&mut self, position: impl FnOnce(&mut Cursor<Frame>)) {
        if self.seen.is_some() {
            self.mark_seen();
        }
        if let Some(cursor) = &mut self.cursor {
            position(cursor);
            if self.table.source().read_amp.is_some() {
                self.begin_seeing();
            }
        }
    }

    /// The entries that the iterator passes in its block count from here on.
    #[cold]
    fn begin_seeing(&mut self) {
        self.seen = self.cursor.as_ref().map(Cursor::entry_range);
    }

    /// Tells the estimate of read amplification, if there is one, what the iterator passed in its block since it was positioned there.
    #[cold]
    fn mark_seen(&mut self) {
        let Some(seen) = self.seen.take() else { return };
        let (Ok(index), Some(cursor)) = (&self.index, &self.cursor) else { return };
        let (view, now) = (IndexView::new(index), cursor.entry_range());
        if let Some(read_amp) = self.table.source().read_amp.as_ref().filter(|_| self.block < view.len()) {
            let bytes = seen.start.min(now.start)..seen.end.max(now.end);
            read_amp.useful(view.handle(self.block).offset, bytes);
        }
    }

    fn fail_on_index(&mut self) {
        self.drop_block();
        if let Err(error) = &self.index {
            self.status = Err(error.clone());
        }
    }

    /// Makes block `number` current. False past either end, or if it cannot be read.
    fn enter(&mut self, number: usize) -> bool {
        if number == self.block && self.cursor.is_some() && self.status.is_ok() {
            return true;
        }
        self.status = Ok(());
        let Ok(index) = &self.index else {
            self.fail_on_index();
            return false;
        };
        let view = IndexView::new(index);
        if number >= view.len() {
            let end = view.len();
            self.drop_block();
            self.block = end;
            return false;
        }
        let handle = view.handle(number);
        self.drop_block();
        self.block = number;
        match self.load(number, handle) {
            Ok(frame) => {
                self.take(number, frame);
                self.cursor.is_some()
            }
            Err(error) => {
                self.status = Err(error);
                false
            }
        }
    }

    /// Makes `frame` current, which is block `number`.
    #[inline]
    fn take(&mut self, number: usize, frame: Frame) {
        self.drop_block();
        self.status = Ok(());
        self.block = number;
        if self.charge.is_some() && !self.may_pin(&frame) {
            self.status = Err(over_strict_capacity());
            return;
        }
        self.readahead.entered(number);
        let key = std::mem::take(&mut self.spare.1);
        self.cursor = Some(Cursor::with_key_buffer(frame, key));
    }

    /// Lets the current block go, keeping its buffers.
    fn drop_block(&mut self) {
        if self.seen.is_some() {
            self.mark_seen();
        }
        if let Some(cursor) = self.cursor.take() {
            let (frame, key) = cursor.into_parts();
            self.spare.1 = key;
            if let Frame::Own(bytes) = frame {
                self.spare.0 = bytes;
            }
        }
    }

    fn load(&mut self, number: usize, handle: BlockHandle) -> Result<Frame> {
        let table = &self.table;
        let found = table.source().monitor.counted(|counting| table.cached_block(handle, counting));
        match found {
            Some(found) => Ok(Frame::Pinned(found)),
            None => {
                let frame = self.load_missing(number, handle)?;
                self.charge_own(&frame);
                Ok(frame)
            }
        }
    }

    #[cold]
    fn load_missing(&mut self, number: usize, handle: BlockHandle) -> Result<Frame> {
        let _reading = Purpose::Iterate.begin_if_none();
        let loading = self.options.loading;
        let wanted = self.readahead.is_wanted(number) && self.may_read_ahead();
        let monitor = &self.table.source().monitor;
        if !wanted {
            let block =
                monitor.counted(|counting| self.table.load_block(handle, Reading { loading, counting }))?;
            return Ok(Frame::Pinned(block));
        }
        self.table.source().check_load(loading)?;
        let watching = monitor.begin();
        let watch = Watch::from(&watching);
        let index = IndexView::new(self.index.as_ref().map_err(Error::clone)?);
        let stored = self.readahead.stored(self.table.source(), &index, number, watch)?;
        if loading.keeps() {
            return Ok(Frame::Pinned(self.table.frame_stored(handle, stored, loading, watch)?));
        }
        let mut own = std::mem::take(&mut self.spare.0);
        let mut buffer = Vec::new();
        let contents = self.table.source().unpack(handle, stored, &mut buffer, (loading, watch))?;
        write_plain_frame(contents, &mut own)
            .map_err(|error| self.table.source().block_error(handle, &error))?;
        self.table.source().data_loaded(handle, &own);
        Ok(Frame::Own(own))
    }

    /// Enters following blocks until one has an entry, the table ends, or an error stops it.
    fn skip_forward(&mut self) {
        while !self.valid() && self.check_cursor() && self.block < self.num_blocks() {
            let scans = self.moved_to == self.block;
            if self.enter(self.block + 1) {
                self.on_cursor(Cursor::seek_to_first);
                self.moved_to = self.block;
                if scans {
                    self.prefetched = self.block;
                    self.prefetch_next();
                }
            }
        }
    }

    /// Asks for what the scan will touch when it moves on: in a cache much larger than the processor's, a block is four
    /// misses one after the other.
    fn prefetch_next(&self) {
        if let (Ok(index), Some(cursor)) = (&self.index, &self.cursor) {
            let view = IndexView::new(index);
            let handle = |number: usize| (number < view.len()).then(|| view.handle(number));
            self.table.prefetch_next(
                [1, 2, 3].map(|ahead| handle(self.block + ahead)),
                &cursor.prefetch_offsets_forward(),
            );
        }
    }

    fn skip_backward(&mut self) {
        while !self.valid() && self.check_cursor() && self.block < self.num_blocks() {
            if self.enter(self.block.wrapping_sub(1)) {
                self.on_cursor(|cursor| {
                    cursor.seek_to_last();
                    cursor.fetch_before(AHEAD);
                });
            }
        }
    }

    /// False if there was an error; one in the block's contents becomes the status.
    fn check_cursor(&mut self) -> bool {
        if let Some(Err(error)) = self.cursor.as_ref().map(Cursor::status) {
            let offset =
                self.index.as_ref().map_or(0, |index| IndexView::new(index).handle(self.block).offset);
            let handle = BlockHandle { offset, size: 0 };
            self.status = Err(self.table.source().block_error(handle, &error));
        }
        self.status.is_ok()
    }
}

impl Drop for TableIter {
    fn drop(&mut self) {
        if self.seen.is_some() {
            self.mark_seen();
        }
    }
}

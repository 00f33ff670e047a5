//! An open table: point lookups, and loading blocks for iterators.
//!
//! ```text
//! get: may_contain (filter) -> find the block (index view) -> cache, or load -> search in the frame
//! ```
//! Opening reads and verifies footer, metaindex, properties, index and filter. A data block is verified when
//! it is loaded, and never again while it stays in memory; one that is loaded unverified leaves memory with its reader.
//!
//! Concurrency: everything is immutable after opening; blocks are shared through the cache.

use crate::block::{self, Directory, Searched};
use crate::compress::Dictionary;
use crate::counts::{self, Asked};
use crate::filter::TableFilter;
use crate::format::{BlockHandle, Footer, corruption};
use crate::index::{IndexCoding, IndexEntries, IndexView};
use crate::iter::{TableIter, TableIterOptions};
use crate::meta_blocks::{
    MetaBlocks, check_features, check_identity, global_seqno, open_filter, read_properties,
    read_range_tombstones,
};
use crate::placement::Placement;
use crate::properties::TableProperties;
use crate::range_del::RangeTombstone;
use crate::read_amp::ReadAmp;
use crate::readahead::AutoReadahead;
use crate::source::{BlockSource, Form, Meta, MetaRef};
use outcrop_base::keys::{Trailer, split};
use outcrop_base::xxph3::xxph3_64;
use outcrop_base::{Comparator, Error, ErrorKind, LookupKey, PrefixExtractor, Result, SeqNum, ValueType};
use outcrop_cache::{Cache, Charge, Pinned, Priority, Role, standalone};
use outcrop_env::{BatchRead, Clock, IoPriority, Pace, ReadFile};
use outcrop_monitor::{Counting, Monitor, ReadCount, Watch};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Whether a read may load blocks, at which pace, and whether it keeps them in the cache. One word, as it goes down with every
/// read: from the lowest bit, whether loaded blocks are not kept, whether none are loaded, whether their checksums are not compared,
/// three bits of the priority at the rate limiter and one (0: it is not asked), and the deadline for loading, in microseconds since
/// the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loading(u64);

const UNVERIFIED: u64 = 4;
const PRIORITY_AT: u32 = 3;
const DEADLINE_AT: u32 = 6;

#[allow(non_upper_case_globals, reason = "they are what variants would be, but for the deadline")]
impl Loading {
    /// Loaded blocks are kept.
    pub const Kept: Loading = Loading(0);
    /// Loaded blocks are not kept; blocks that are cached already are still used.
    pub const NotKept: Loading = Loading(1);
    /// Nothing is loaded: a block that is not cached ends the read with Incomplete.
    pub const Never: Loading = Loading(2);
}

impl Loading {
    /// The same, but from `deadline` on, in microseconds since the Unix epoch, nothing is loaded: a block that is not cached ends the
    /// read with TimedOut. 0: there is none.
    pub fn until(self, deadline: u64) -> Loading {
        Loading((deadline.min(u64::MAX >> DEADLINE_AT) << DEADLINE_AT) | (self.0 & ((1 << DEADLINE_AT) - 1)))
    }

    /// The same, but what is loaded waits for tokens of the rate limiter, at this priority.
    pub fn paced(self, priority: IoPriority) -> Loading {
        Loading((self.0 & !(7 << PRIORITY_AT)) | ((priority as u64 + 1) << PRIORITY_AT))
    }

    /// The same, but checksums of what is loaded are not compared. It is not kept either: a read that verifies would find it in the
    /// cache and trust it.
    pub fn unverified(self) -> Loading {
        Loading(self.0 | UNVERIFIED | Loading::NotKept.0)
    }

    /// True if the checksums of what is loaded are compared.
    pub fn verifies(self) -> bool {
        self.0 & UNVERIFIED == 0
    }

    /// The priority at the rate limiter, if it is asked.
    #[inline]
    fn priority(self) -> Option<IoPriority> {
        match (self.0 >> PRIORITY_AT) & 7 {
            1 => Some(IoPriority::Low),
            2 => Some(IoPriority::Mid),
            3 => Some(IoPriority::High),
            4 => Some(IoPriority::User),
            _ => None,
        }
    }

    /// How what is loaded waits for tokens, of those of `pace`; `None` if it does not wait.
    #[inline]
    pub fn pace(self, pace: Option<&Pace>) -> Option<Pace> {
        Some(pace?.at(self.priority()?))
    }

    /// True if loaded blocks are kept.
    #[inline]
    pub fn keeps(self) -> bool {
        self.0 & 3 == 0
    }

    /// True if there is a deadline, and it has passed.
    #[inline]
    pub fn is_late(self, clock: &dyn Clock) -> bool {
        let deadline = self.0 >> DEADLINE_AT;
        deadline != 0 && clock.now_micros() >= deadline
    }

    /// Every read of a file asks this first.
    ///
    /// # Errors
    /// Incomplete if nothing may be loaded; TimedOut after the deadline.
    ///
    /// Source: RocksDB `file/file_util.h`, `PrepareIOFromReadOptions`.
    #[inline]
    pub fn check_load(self, clock: &dyn Clock) -> Result<()> {
        if self.0 & Loading::Never.0 != 0 {
            return Err(Error::new(ErrorKind::Incomplete, "no blocking io"));
        }
        if self.is_late(clock) { Err(Error::new(ErrorKind::TimedOut, "Deadline exceeded")) } else { Ok(()) }
    }
}

/// How blocks are read.
#[derive(Clone, Copy)]
pub struct Reading<'w> {
    /// Whether they may be loaded, and are kept in the cache then.
    pub loading: Loading,
    /// Counts the blocks that are found. Those that are loaded are counted by the table's own monitor, unless nobody counts here.
    pub counting: Counting<'w>,
}

impl<'w> From<Counting<'w>> for Reading<'w> {
    #[inline]
    fn from(counting: Counting<'w>) -> Reading<'w> {
        Reading { loading: Loading::Kept, counting }
    }
}

impl From<Loading> for Reading<'static> {
    fn from(loading: Loading) -> Reading<'static> {
        Reading { loading, counting: Counting::OFF }
    }
}

/// How a table is opened.
pub struct TableReaderOptions {
    /// Key order.
    pub comparator: Comparator,
    /// Cache for blocks; `None`: every read loads its block.
    pub cache: Option<Arc<Cache>>,
    /// This table's part of cache keys, from [`Cache::new_file_id`]: blocks stay findable when the table is closed
    /// and opened again.
    pub cache_file_id: u64,
    /// Index and filter count against the cache; always, if it is charged for the tables. They stay pinned while the table is open as long as such pins
    /// take at most half of the cache; those of further tables may be evicted.
    pub cache_index_and_filter_blocks: bool,
    /// Then they stay pinned whatever they take.
    pub hold_in_cache: bool,
    /// The identity the MANIFEST has for the file; a table with another is refused.
    pub expected_unique_id: Option<[u64; 2]>,
    /// The largest sequence number the MANIFEST has for the file: that of all its keys if it was ingested.
    /// [`SeqNum::MAX`] if there is no MANIFEST.
    pub largest_seqno: SeqNum,
    /// Filters of prefixes are asked if they were built with this extractor.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// How iterators read ahead that are not told how far.
    pub auto_readahead: AutoReadahead,
    /// Counts reads of the table.
    pub monitor: Monitor,
    /// Where it is, by which they are told apart.
    pub placement: Placement,
    /// Reads that have a priority at the rate limiter wait for its tokens.
    pub pace: Option<Arc<Pace>>,
    /// Bytes of data blocks that a bit of the estimate of read amplification stands for; 0: there is none.
    pub read_amp_bytes_per_bit: u32,
}

impl TableReaderOptions {
    /// Whether index and filter count against the cache.
    pub(crate) fn caches_meta_blocks(&self) -> bool {
        self.cache_index_and_filter_blocks || self.cache.as_ref().is_some_and(|cache| cache.is_charged())
    }
}

impl TableReaderOptions {
    /// Of a table that is read past the cache and counted by nobody, with what no MANIFEST says of it.
    pub fn uncached(comparator: Comparator) -> TableReaderOptions {
        TableReaderOptions {
            comparator,
            cache: None,
            cache_file_id: 0,
            cache_index_and_filter_blocks: false,
            hold_in_cache: false,
            expected_unique_id: None,
            largest_seqno: SeqNum::MAX,
            prefix_extractor: None,
            auto_readahead: AutoReadahead::default(),
            monitor: Monitor::none(),
            placement: Placement::default(),
            pace: None,
            read_amp_bytes_per_bit: 0,
        }
    }
}

/// An open table.
pub struct TableReader {
    properties: TableProperties,
    comparator: Comparator,
    coding: IndexCoding,
    index_handle: BlockHandle,
    index: Meta,
    filter: Option<TableFilter>,
    /// The count of a lookup that found its key here: the filter, if there is one, was right.
    right: ReadCount,
    range_tombstones: Vec<RangeTombstone>,
    auto_readahead: AutoReadahead,
    /// The last field: it may hold the cache that the blocks above are pinned in, which has to outlive their pins.
    source: BlockSource,
    /// Its memory, if the cache is charged for it.
    charge: Option<Charge>,
}

/// A block of a table, as the step of a lookup.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlace {
    /// In the index.
    pub(crate) number: usize,
    pub(crate) handle: BlockHandle,
}

impl BlockPlace {
    /// Where the block starts in the file.
    pub fn offset(self) -> u64 {
        self.handle.offset
    }
}

/// Asks for the directory of a block that a lookup goes on in.
#[inline]
pub fn prefetch_directory(block: &Pinned) {
    block::prefetch_directory(block);
}

/// Asks for the entry of the key, after [`prefetch_directory`] had time.
#[inline]
pub fn prefetch_entry(block: &Pinned, key: &LookupKey<'_>) {
    block::prefetch_entry(block, key.user_key);
}

/// Buffers for loading a block, kept per thread.
#[derive(Default)]
struct Scratch {
    stored: Vec<u8>,
    contents: Vec<u8>,
    directory: Directory,
}

/// Bytes that an open table takes beside its blocks: it, its properties, its file, and what the MANIFEST says of it. An estimate.
const TABLE_BYTES: usize = 4 << 10;

/// Bytes of a buffer that stays allocated for the next block.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;

impl Scratch {
    /// Frees what only an unusually large block took.
    fn trim(&mut self) {
        for buffer in [&mut self.stored, &mut self.contents] {
            if buffer.capacity() > SCRATCH_KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// In RocksDB's words (`Status::MemoryLimit`, `cache/lru_cache.cc`).
#[cold]
pub(crate) fn over_strict_capacity() -> Error {
    Error::new(ErrorKind::Aborted, "Memory limit reached: Insert failed due to LRU cache being full.")
}

impl TableReader {
    /// Opens the table in `file`.
    ///
    /// # Errors
    /// Corruption naming file and offset; NotSupported naming what this reader lacks.
    pub fn open(file: Arc<dyn ReadFile>, options: TableReaderOptions) -> Result<TableReader> {
        let footer = Footer::read(&*file)?;
        let caches_meta_blocks = options.caches_meta_blocks();
        let mut source = BlockSource {
            file,
            footer,
            cache: options.cache.clone(),
            file_id: options.cache_file_id,
            dictionary: None,
            global_seqno: None,
            monitor: options.monitor.clone(),
            placement: options.placement.clone(),
            pace: options.pace.clone(),
            read_amp: ReadAmp::new(options.read_amp_bytes_per_bit, &options.monitor),
        };
        counts::read_at_end(Watch::from(&options.monitor.begin()), &source.placement);
        let blocks = MetaBlocks::read(&source)?;
        let properties = read_properties(&source, &blocks)?;
        let file = &*source.file;
        check_identity(file, &properties, options.expected_unique_id)?;
        check_features(file, &properties)?;
        source.global_seqno = global_seqno(file, &properties, options.largest_seqno)?;
        if let Some(handle) = blocks.find("rocksdb.compression_dict") {
            let watching = options.monitor.begin();
            let dictionary = Dictionary::new(source.read_meta(handle, Watch::from(&watching))?);
            source.dictionary = Some(dictionary.map_err(|error| source.block_error(handle, &error))?);
        }
        let index_handle = footer
            .index
            .or_else(|| blocks.find("rocksdb.index"))
            .ok_or_else(|| corruption(&*source.file, footer.metaindex.offset, "no index block"))?;
        let coding = IndexCoding {
            key_is_user_key: properties.index_key_is_user_key,
            value_is_delta: properties.index_value_is_delta_encoded,
            has_first_key: properties.index_type == Some(3),
        };
        let range_tombstones = read_range_tombstones(&source, &blocks, &options.comparator)?;
        let filter = open_filter(&source, &blocks, &properties, coding, &options)?;
        let mut table = TableReader {
            source,
            properties,
            comparator: options.comparator,
            coding,
            index_handle,
            index: Meta::Cached,
            right: counts::right(filter.as_ref().map(TableFilter::has_whole_keys)),
            filter,
            range_tombstones,
            auto_readahead: options.auto_readahead,
            charge: options.cache.as_ref().and_then(|cache| Charge::of(cache, Role::Tables)),
        };
        let index =
            options.monitor.counted(|counting| table.load_index(caches_meta_blocks, counting.into()))?;
        table.index = table.source.keep(index, options.hold_in_cache);
        if let Some(mut charge) = table.charge.take() {
            charge.set(TABLE_BYTES + table.memory_usage());
            table.charge = Some(charge);
        }
        Ok(table)
    }

    /// The properties of the table.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// The version of the format, from the footer.
    pub fn format_version(&self) -> u32 {
        self.source.footer.version
    }

    /// The range tombstones, as stored: they may overlap and reach outside the file's boundaries.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// Its identity, as the MANIFEST stores it.
    pub fn unique_id(&self) -> [u64; 2] {
        let properties = &self.properties;
        crate::unique_id::table_unique_id(
            &properties.db_id,
            &properties.session_id,
            properties.original_file_number,
        )
    }

    /// The key order.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// The file.
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.source.file
    }

    /// Bytes of index, filter, dictionary and range tombstones that are held outside the cache.
    pub fn memory_usage(&self) -> usize {
        let tombstone_bytes = |tombstone: &RangeTombstone| {
            size_of::<RangeTombstone>() + tombstone.begin.capacity() + tombstone.end.capacity()
        };
        self.index.memory_usage()
            + self.filter.as_ref().map_or(0, TableFilter::memory_usage)
            + self.source.dictionary.as_ref().map_or(0, Dictionary::memory_usage)
            + self.range_tombstones.iter().map(tombstone_bytes).sum::<usize>()
    }

    /// Asks for what [`TableReader::may_contain`] of this hash touches.
    #[inline]
    pub fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// False if no key with this hash is in the table. Filters that need the key itself say true here;
    /// [`TableReader::get`] asks them.
    #[inline(always)]
    pub fn may_contain<'w>(&self, hash: u64, reading: impl Into<Reading<'w>>) -> bool {
        let Some(filter) = &self.filter else { return true };
        let reading = reading.into();
        let may_contain = filter.may_contain_hash(&self.source, hash, reading);
        if !filter.wants_key() {
            counts::asked_filter(reading.counting, Asked::Key, may_contain);
        }
        may_contain
    }

    /// A lookup found versions of its key here: counts that the filter, if there is one, was right not to rule the table out.
    #[inline]
    pub fn count_true_positive(&self, counting: Counting<'_>) {
        counting.add(self.right, 1);
    }

    /// False if no key with this prefix by `extractor` is in the table. True if its filter does not know prefixes by that one, which
    /// may have changed since the table was opened.
    pub fn may_contain_prefix(&self, extractor: &PrefixExtractor, prefix: &[u8], loading: Loading) -> bool {
        let Some(filter) = &self.filter else { return true };
        self.source.monitor.counted(|counting| {
            let reading = Reading { loading, counting };
            let subject = (extractor, prefix);
            let answer = filter.may_contain_prefix(&self.source, &self.comparator, subject, reading);
            if let Some(may_contain) = answer {
                counts::asked_filter_of_seek(counting, &self.source.placement, may_contain);
            }
            answer.unwrap_or(true)
        })
    }

    /// False if no version of `key`, which `stored` is with a timestamp, is in the table from `stored` on.
    pub fn may_contain_row(&self, stored: &[u8], key: &[u8], reading: Reading<'_>) -> bool {
        let Some(filter) = &self.filter else { return true };
        if !filter.wants_key() {
            return filter.may_contain_hash(&self.source, xxph3_64(key), reading);
        }
        filter.may_contain_row(&self.source, &self.comparator, (stored, key), reading).unwrap_or(true)
    }

    /// Passes the versions of the key at or below `snapshot` to `visit`, newest first, until it breaks. The
    /// value lies in the block that is passed with it.
    ///
    /// # Errors
    /// Corruption naming file and offset, and IO errors.
    #[inline]
    pub fn get<'w>(
        &self,
        key: &LookupKey<'_>,
        snapshot: SeqNum,
        reading: impl Into<Reading<'w>>,
        visit: impl FnMut(SeqNum, ValueType, &[u8], &Pinned) -> ControlFlow<()>,
    ) -> Result<()> {
        let reading = reading.into();
        match self.find(key, snapshot, reading)? {
            Some(place) => {
                let block = self.block(place.handle, reading)?;
                // Its lines are then fetched together, not each when the one before has told of it.
                block::prefetch_directory(&block);
                self.get_from(place, block, key, snapshot, reading, visit)
            }
            None => Ok(()),
        }
    }

    /// The first block that may hold versions of the key at or below `snapshot`. First step of a
    /// [`TableReader::get`] that is one of many.
    ///
    /// # Errors
    /// Those of loading the index, if it is not in memory.
    #[inline(always)]
    pub fn find(
        &self,
        key: &LookupKey<'_>,
        snapshot: SeqNum,
        reading: Reading<'_>,
    ) -> Result<Option<BlockPlace>> {
        if let Some(filter) = &self.filter
            && filter.wants_key()
        {
            let answer = filter.may_contain_key(&self.source, &self.comparator, key.user_key, reading);
            if let Some(may_contain) = answer {
                let about = if filter.has_whole_keys() { Asked::Key } else { Asked::PrefixOfKey };
                counts::asked_filter(reading.counting, about, may_contain);
            }
            if answer == Some(false) {
                return Ok(None);
            }
        }
        let index = self.index(reading)?;
        let view = IndexView::new(&index);
        let number = view.find(&self.comparator, key.user_key, Trailer::as_of(snapshot));
        Ok((number < view.len()).then(|| BlockPlace { number, handle: view.handle(number) }))
    }

    /// Asks for what looking for the block in the cache touches first.
    #[inline]
    pub fn prefetch_tags(&self, place: BlockPlace) {
        if let Some(cache) = &self.source.cache {
            cache.prefetch(self.source.cache_key(place.handle, Form::Data));
        }
    }

    /// Asks for what it touches next, after [`TableReader::prefetch_tags`] had time.
    #[inline]
    pub fn prefetch_slot(&self, place: BlockPlace) {
        if let Some(cache) = &self.source.cache {
            cache.prefetch_slot(self.source.cache_key(place.handle, Form::Data));
        }
    }

    /// Asks for what is at `looks` in the block's frame, after [`TableReader::prefetch_slot`] had time.
    #[inline]
    pub(crate) fn prefetch_frame(&self, place: BlockPlace, looks: &[usize]) {
        if let Some(cache) = &self.source.cache {
            cache.prefetch_frame(self.source.cache_key(place.handle, Form::Data), looks);
        }
    }

    /// For a scan that has just entered the block before `next`: asks for what entering the next three will touch, each
    /// as far as what was asked for on the last calls allows. In the frame of the first, that is what is at `looks`.
    #[inline]
    pub(crate) fn prefetch_next(&self, next: [Option<BlockHandle>; 3], looks: &[usize]) {
        let Some(cache) = &self.source.cache else { return };
        let key = |handle| self.source.cache_key(handle, Form::Data);
        let [frame, slot, tags] = next;
        frame.into_iter().for_each(|handle| cache.prefetch_frame(key(handle), looks));
        slot.into_iter().for_each(|handle| cache.prefetch_slot(key(handle)));
        tags.into_iter().for_each(|handle| cache.prefetch(key(handle)));
    }

    /// The block, if it is cached.
    #[inline]
    pub fn cached_at(&self, place: BlockPlace, counting: Counting<'_>) -> Option<Pinned> {
        // A miss is counted when the block is loaded.
        let found = self.source.cached(place.handle, Form::Data, Counting::OFF);
        if let Some(found) = &found {
            counts::hit(counting, Form::Data, found.len());
        }
        found
    }

    /// The read that fetches the block.
    ///
    /// # Errors
    /// Corruption if it does not lie within the file; those of [`Loading::check_load`].
    pub fn read_at(&self, place: BlockPlace, reading: Reading<'_>) -> Result<BatchRead<'_>> {
        let len = self.source.stored_len(place.handle)?;
        self.source.begin_load(reading.loading, place.handle)?;
        Ok(BatchRead { file: &self.source.file, offset: place.handle.offset, len })
    }

    /// The block, from what was read.
    ///
    /// # Errors
    /// Corruption naming file and offset.
    pub fn loaded_at(&self, place: BlockPlace, stored: &[u8], reading: Reading<'_>) -> Result<Pinned> {
        let watching = self.source.watching(reading);
        let watch = Watch::from(&watching);
        if self.source.cache.is_some() {
            counts::miss(watch, Form::Data);
        }
        counts::read_in_batch(watch, &self.source.placement, stored.len());
        self.frame_stored(place.handle, stored, reading.loading, watch)
    }

    /// [`TableReader::get`] from the block that [`TableReader::find`] named.
    ///
    /// # Errors
    /// As [`TableReader::get`].
    #[inline]
    pub fn get_from(
        &self,
        mut place: BlockPlace,
        mut block: Pinned,
        key: &LookupKey<'_>,
        snapshot: SeqNum,
        reading: Reading<'_>,
        mut visit: impl FnMut(SeqNum, ValueType, &[u8], &Pinned) -> ControlFlow<()>,
    ) -> Result<()> {
        loop {
            let mut pass = |trailer: Trailer, value: &[u8]| {
                let value_type = trailer.value_type().unwrap_or(ValueType::RangeDeletion);
                visit(trailer.seq(), value_type, value, &block)
            };
            let found = block::get(&block, &self.comparator, key.user_key, snapshot, &mut pass);
            if let Some(read_amp) = &self.source.read_amp {
                let mark = &mut |bytes| read_amp.useful(place.handle.offset, bytes);
                block::each_looked_at(&block, &self.comparator, key.user_key, snapshot, mark);
            }
            let searched = found.map_err(|error| self.source.block_error(place.handle, &error))?;
            if searched == Searched::Decided {
                return Ok(());
            }
            // Only if separators are internal keys can the next block go on with this one's last user key.
            let index = self.index(reading)?;
            let view = IndexView::new(&index);
            if view.key_is_user_key()
                || self.comparator.compare(split(view.separator(place.number)).0, key.user_key).is_gt()
                || place.number + 1 == view.len()
            {
                return Ok(());
            }
            place = BlockPlace { number: place.number + 1, handle: view.handle(place.number + 1) };
            block = self.block(place.handle, reading)?;
        }
    }

    /// How its iterators read ahead that are not told how far.
    pub(crate) fn auto_readahead(&self) -> AutoReadahead {
        self.auto_readahead
    }

    /// An iterator over the table. Not positioned.
    pub fn iter(self: &Arc<Self>, options: TableIterOptions) -> TableIter {
        TableIter::new(self.clone(), options)
    }

    /// Where in the file, in bytes from its start, a key at or after `user_key` would be.
    pub fn approximate_offset_of(&self, user_key: &[u8]) -> Result<u64> {
        let index = self.index(Loading::Kept.into())?;
        let view = IndexView::new(&index);
        let number = view.find(&self.comparator, user_key, Trailer::MAX);
        if number < view.len() { Ok(view.handle(number).offset) } else { Ok(self.properties.data_size) }
    }

    /// At most `count` user keys, ascending, that split the table into parts of about the same size.
    pub fn anchors(&self, count: usize) -> Result<Vec<Vec<u8>>> {
        let index = self.index(Loading::Kept.into())?;
        let view = IndexView::new(&index);
        let wanted = count.min(view.len());
        let key = |part: usize| {
            let separator = view.separator(part * view.len() / wanted);
            let user_key = if view.key_is_user_key() { separator } else { split(separator).0 };
            user_key.to_vec()
        };
        Ok((0..wanted).map(key).collect())
    }

    /// The index frame.
    #[inline]
    pub(crate) fn index<'t>(&'t self, reading: Reading<'_>) -> Result<MetaRef<'t>> {
        match &self.index {
            Meta::Held(pinned, _) => Ok(MetaRef::Held(pinned)),
            Meta::Cached => Ok(MetaRef::Taken(self.load_index(true, reading)?)),
        }
    }

    /// A pin on the index frame, for iterators.
    pub(crate) fn pin_index(&self, reading: Reading<'_>) -> Result<Pinned> {
        match &self.index {
            Meta::Held(pinned, _) => Ok(pinned.clone()),
            Meta::Cached => self.load_index(true, reading),
        }
    }

    /// The frame of the data block at `handle`: from the cache, or loaded.
    #[inline]
    pub(crate) fn block(&self, handle: BlockHandle, reading: Reading<'_>) -> Result<Pinned> {
        if let Some(found) = self.cached_block(handle, reading.counting) {
            return Ok(found);
        }
        self.load_block(handle, reading)
    }

    /// The frame of the data block at `handle`, if it is cached.
    #[inline]
    pub(crate) fn cached_block(&self, handle: BlockHandle, counting: Counting<'_>) -> Option<Pinned> {
        self.source.cached(handle, Form::Data, counting)
    }

    /// The frame of the data block at `handle`, which is not cached.
    #[cold]
    pub(crate) fn load_block(&self, handle: BlockHandle, reading: Reading<'_>) -> Result<Pinned> {
        self.source.begin_load(reading.loading, handle)?;
        let watching = self.source.watching(reading);
        let watch = Watch::from(&watching);
        SCRATCH.with(|scratch| {
            let mut scratch = scratch.borrow_mut();
            let Scratch { stored, contents, directory } = &mut *scratch;
            let read = self.source.read_stored(handle, stored, watch);
            let how = (reading.loading, watch);
            let framed = read.and_then(|_| self.frame_block(handle, stored, contents, directory, how));
            scratch.trim();
            framed
        })
    }

    /// The frame of a data block whose stored bytes, with trailer, were read already.
    pub(crate) fn frame_stored(
        &self,
        handle: BlockHandle,
        stored: &[u8],
        loading: Loading,
        watch: Watch<'_>,
    ) -> Result<Pinned> {
        SCRATCH.with(|scratch| {
            let mut scratch = scratch.borrow_mut();
            let Scratch { contents, directory, .. } = &mut *scratch;
            let framed = self.frame_block(handle, stored, contents, directory, (loading, watch));
            scratch.trim();
            framed
        })
    }

    fn frame_block(
        &self,
        handle: BlockHandle,
        stored: &[u8],
        buffer: &mut Vec<u8>,
        directory: &mut Directory,
        (loading, watch): (Loading, Watch<'_>),
    ) -> Result<Pinned> {
        let contents = self.source.unpack(handle, stored, buffer, (loading, watch))?;
        counts::loaded_data(watch, stored.len());
        directory
            .build(contents, &self.comparator)
            .map_err(|error| self.source.block_error(handle, &error))?;
        let len = directory.frame_len(contents);
        let write = |frame: &mut [u8]| directory.write_frame(contents, frame);
        let block = match &self.source.cache {
            Some(cache) if loading.keeps() => {
                let key = self.source.cache_key(handle, Form::Data);
                let block = cache.insert(key, Priority::Low, len, write);
                counts::inserted(watch, Form::Data, &block);
                if cache.refuses(&block) {
                    return Err(over_strict_capacity());
                }
                block
            }
            _ => standalone(len, write),
        };
        self.source.data_loaded(handle, &block);
        Ok(block)
    }

    /// The filter, if it can be asked anything.
    #[cfg(test)]
    pub(crate) fn filter(&self) -> Option<&TableFilter> {
        self.filter.as_ref()
    }

    /// Where blocks come from.
    pub(crate) fn source(&self) -> &BlockSource {
        &self.source
    }

    /// The index frame, from the cache or from the file. The partitions of a two-level index become one frame:
    /// a lookup then searches once, without a second block.
    fn load_index(&self, charged: bool, reading: Reading<'_>) -> Result<Pinned> {
        if charged && let Some(found) = self.source.cached(self.index_handle, Form::Index, reading.counting) {
            return Ok(found);
        }
        self.source.begin_load(reading.loading, self.index_handle)?;
        let watching = self.source.watching(reading);
        let watch = Watch::from(&watching);
        let mut entries = IndexEntries::default();
        let broken = |handle: BlockHandle| move |error: Error| self.source.block_error(handle, &error);
        let timer = watch.perf_timer();
        let top = self.source.read_meta(self.index_handle, watch)?;
        if self.properties.index_type == Some(2) {
            let mut partitions = IndexEntries::default();
            partitions.add_block(&top, self.coding).map_err(broken(self.index_handle))?;
            if let [first, .., last] = partitions.handles() {
                // Partitions stand one after the other: one readahead instead of a read for each.
                let span =
                    last.offset.saturating_sub(first.offset) as usize + self.source.stored_len(*last)?;
                self.source.file.prefetch(first.offset, span);
            }
            for handle in partitions.handles() {
                self.source.begin_load(reading.loading, *handle)?;
                let block = self.source.read_meta(*handle, watch)?;
                entries.add_block(&block, self.coding).map_err(broken(*handle))?;
            }
        } else {
            entries.add_block(&top, self.coding).map_err(broken(self.index_handle))?;
        }
        counts::read_meta(watch, timer, Form::Index);
        for handle in entries.handles() {
            self.source.stored_len(*handle)?;
        }
        let user_keys = self.coding.key_is_user_key;
        let len = entries.frame_len(user_keys);
        let write = |frame: &mut [u8]| entries.write_frame(user_keys, &self.comparator, frame);
        Ok(self.source.place_meta((self.index_handle, Form::Index), charged, len, watch, write))
    }
}

impl Drop for TableReader {
    fn drop(&mut self) {
        self.source.end_hold(&self.index);
        if let Some(filter) = &self.filter {
            filter.end_hold(&self.source);
        }
    }
}

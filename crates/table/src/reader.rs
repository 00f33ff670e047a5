//! An open table: point lookups, and loading blocks for iterators.
//!
//! ```text
//! get: may_contain (filter) -> find the block (index view) -> cache, or load -> search in the frame
//! ```
//! Opening reads and verifies footer, metaindex, properties, index and filter. A data block is verified when
//! it is loaded, and never again while it stays in memory.
//!
//! Concurrency: everything is immutable after opening; blocks are shared through the cache.

use crate::block::{self, Directory, Searched};
use crate::compress::decompress;
use crate::filter::FilterKind;
use crate::format::{BlockHandle, Footer, TRAILER_LEN, corruption, not_supported, verify_block};
use crate::index::{IndexCoding, IndexEntries, IndexView};
use crate::iter::{TableIter, TableIterOptions};
use crate::properties::{TableProperties, decode_pairs};
use crate::range_del::{self, RangeTombstone};
use crate::unique_id::table_unique_id;
use outcrop_base::coding::Decoder;
use outcrop_base::keys::{packed_seq, split};
use outcrop_base::{Comparator, Error, LookupKey, Result, SeqNum, ValueType};
use outcrop_cache::{Cache, CacheKey, Pinned, Priority, standalone};
use outcrop_env::ReadFile;
use std::cell::RefCell;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

/// Whether blocks a read loads are kept in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillCache {
    /// They are.
    #[default]
    Yes,
    /// They are not; blocks that are cached already are still used.
    No,
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
    /// Index and filter count against the cache. They stay pinned while the table is open as long as such pins
    /// take at most half of the cache; those of further tables may be evicted.
    pub cache_index_and_filter_blocks: bool,
    /// Then they stay pinned whatever they take.
    pub hold_in_cache: bool,
    /// The identity the MANIFEST has for the file; a table with another is refused.
    pub expected_unique_id: Option<[u64; 2]>,
    /// The largest sequence number the MANIFEST has for the file.
    pub largest_seqno: SeqNum,
}

/// An open table.
pub struct TableReader {
    file: Arc<dyn ReadFile>,
    footer: Footer,
    properties: TableProperties,
    comparator: Comparator,
    cache: Option<Arc<Cache>>,
    /// This file's part of cache keys.
    file_id: u64,
    coding: IndexCoding,
    index_handle: BlockHandle,
    index: Meta,
    filter: Option<(BlockHandle, FilterKind, Meta)>,
    range_tombstones: Vec<RangeTombstone>,
}

/// A block about the table.
enum Meta {
    /// In memory for as long as the table is open; the bytes of the cache's promise for it.
    Held(Pinned, usize),
    /// In the cache, or to be loaded again.
    Cached,
}

/// A block about the table, for the time it is used.
enum MetaRef<'t> {
    Held(&'t Pinned),
    Taken(Pinned),
}

impl Deref for MetaRef<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            MetaRef::Held(pinned) => pinned,
            MetaRef::Taken(pinned) => pinned,
        }
    }
}

/// Buffers for loading a block, kept per thread.
#[derive(Default)]
struct Scratch {
    stored: Vec<u8>,
    contents: Vec<u8>,
    directory: Directory,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl TableReader {
    /// Opens the table in `file`.
    ///
    /// # Errors
    /// Corruption naming file and offset; NotSupported naming what this reader lacks.
    pub fn open(file: Arc<dyn ReadFile>, options: TableReaderOptions) -> Result<TableReader> {
        let footer = Footer::read(&*file)?;
        let metaindex = read_block(&*file, &footer, footer.metaindex)?;
        let blocks = meta_blocks(&*file, footer.metaindex, &metaindex)?;
        let find = |name: &str| blocks.iter().find(|(n, _)| n == name).map(|(_, handle)| *handle);
        let properties_handle = find("rocksdb.properties")
            .ok_or_else(|| corruption(&*file, footer.metaindex.offset, "no properties block"))?;
        let properties_block = read_block(&*file, &footer, properties_handle)?;
        let properties = TableProperties::decode(&properties_block)
            .map_err(|error| corruption(&*file, properties_handle.offset, error))?;
        check_identity(&*file, &properties, options.expected_unique_id)?;
        check_features(&*file, &properties, &blocks, options.largest_seqno)?;
        let index_handle = footer
            .index
            .or_else(|| find("rocksdb.index"))
            .ok_or_else(|| corruption(&*file, footer.metaindex.offset, "no index block"))?;
        let coding = IndexCoding {
            key_is_user_key: properties.index_key_is_user_key,
            value_is_delta: properties.index_value_is_delta_encoded,
            has_first_key: properties.index_type == Some(3),
        };
        let range_tombstones = match find("rocksdb.range_del") {
            Some(handle) => range_del::decode(&read_block(&*file, &footer, handle)?, &options.comparator)
                .map_err(|error| corruption(&*file, handle.offset, error))?,
            None => Vec::new(),
        };
        let filter_handle = find("fullfilter.rocksdb.BuiltinBloomFilter");
        let mut table = TableReader {
            file,
            footer,
            properties,
            comparator: options.comparator,
            cache: options.cache,
            file_id: options.cache_file_id,
            coding,
            index_handle,
            index: Meta::Cached,
            filter: None,
            range_tombstones,
        };
        let charged = options.cache_index_and_filter_blocks;
        let hold = options.hold_in_cache;
        table.index = table.keep(table.load_index(charged)?, hold);
        if let Some(handle) = filter_handle.filter(|_| table.properties.whole_key_filtering) {
            let block = table.load_filter(handle, charged)?;
            let kind = FilterKind::of(&block);
            table.filter = Some((handle, kind, table.keep(block, hold)));
        }
        Ok(table)
    }

    /// Holds on to a block about the table, if it is the table's own or the cache allows it.
    fn keep(&self, block: Pinned, hold: bool) -> Meta {
        if block.is_standalone() {
            return Meta::Held(block, 0);
        }
        match &self.cache {
            Some(cache) if cache.try_hold(block.len(), hold) => {
                let promised = block.len();
                Meta::Held(block, promised)
            }
            _ => Meta::Cached,
        }
    }

    /// What the table says of itself.
    pub fn properties(&self) -> &TableProperties {
        &self.properties
    }

    /// The range tombstones, as stored: they may overlap and reach outside the file's boundaries.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// The key order.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// The file.
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.file
    }

    /// Bytes of index and filter that are held outside the cache.
    pub fn memory_usage(&self) -> usize {
        let held = |meta: &Meta| match meta {
            Meta::Held(pinned, 0) => pinned.len(),
            Meta::Held(..) => 0,
            Meta::Cached => 0,
        };
        held(&self.index) + self.filter.as_ref().map_or(0, |(_, _, meta)| held(meta))
    }

    /// Asks for what [`TableReader::may_contain`] of this hash touches.
    #[inline]
    pub fn prefetch_filter(&self, hash: u64) {
        if let Some((_, kind, Meta::Held(block, _))) = &self.filter
            && let Some(offset) = kind.line_offset(hash)
        {
            prefetch(&block[offset..]);
        }
    }

    /// False if no key with this hash is in the table.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        let Some((handle, kind, meta)) = &self.filter else { return true };
        match meta {
            Meta::Held(block, _) => kind.may_contain(block, hash),
            Meta::Cached => match self.load_filter(*handle, true) {
                Ok(block) => kind.may_contain(&block, hash),
                // The lookup goes on to the data, where an error that matters shows again.
                Err(_) => true,
            },
        }
    }

    /// Passes the versions of the key at or below `snapshot` to `visit`, newest first, until it breaks. The
    /// value lies in the block that is passed with it.
    ///
    /// # Errors
    /// Corruption naming file and offset, and IO errors.
    #[inline]
    pub fn get(
        &self,
        key: &LookupKey<'_>,
        snapshot: SeqNum,
        fill_cache: FillCache,
        mut visit: impl FnMut(SeqNum, ValueType, &[u8], &Pinned) -> ControlFlow<()>,
    ) -> Result<()> {
        let index = self.index()?;
        let view = IndexView::new(&index);
        let packed = (snapshot.0 << 8) | 0xFF;
        let mut number = view.find(&self.comparator, key.user_key, packed);
        while number < view.len() {
            let handle = view.handle(number);
            let block = self.block(handle, fill_cache)?;
            let mut pass = |packed: u64, value: &[u8]| {
                let value_type = ValueType::from_byte(packed as u8).unwrap_or(ValueType::RangeDeletion);
                visit(packed_seq(packed), value_type, value, &block)
            };
            let searched = block::get(&block, &self.comparator, key.user_key, snapshot, &mut pass)
                .map_err(|error| corruption(&*self.file, handle.offset, error))?;
            // Only if separators are internal keys can the next block go on with this one's last user key.
            if searched == Searched::Decided
                || view.key_is_user_key()
                || self.comparator.compare(split(view.separator(number)).0, key.user_key).is_gt()
            {
                return Ok(());
            }
            number += 1;
        }
        Ok(())
    }

    /// An iterator over the table. Not positioned.
    pub fn iter(self: &Arc<Self>, options: TableIterOptions) -> TableIter {
        TableIter::new(self.clone(), options)
    }

    /// Where in the file, in bytes from its start, a key at or after `user_key` would be.
    pub fn approximate_offset_of(&self, user_key: &[u8]) -> Result<u64> {
        let index = self.index()?;
        let view = IndexView::new(&index);
        let number = view.find(&self.comparator, user_key, u64::MAX);
        if number < view.len() { Ok(view.handle(number).offset) } else { Ok(self.properties.data_size) }
    }

    /// The index frame.
    #[inline]
    pub(crate) fn index(&self) -> Result<impl Deref<Target = [u8]> + '_> {
        match &self.index {
            Meta::Held(pinned, _) => Ok(MetaRef::Held(pinned)),
            Meta::Cached => Ok(MetaRef::Taken(self.load_index(true)?)),
        }
    }

    /// A pin on the index frame, for iterators.
    pub(crate) fn pin_index(&self) -> Result<Pinned> {
        match &self.index {
            Meta::Held(pinned, _) => Ok(pinned.clone()),
            Meta::Cached => self.load_index(true),
        }
    }

    /// The frame of the data block at `handle`: from the cache, or loaded.
    #[inline]
    pub(crate) fn block(&self, handle: BlockHandle, fill_cache: FillCache) -> Result<Pinned> {
        if let Some(found) = self.cached_block(handle) {
            return Ok(found);
        }
        self.load_block(handle, fill_cache)
    }

    /// The frame of the data block at `handle`, if it is cached.
    #[inline]
    pub(crate) fn cached_block(&self, handle: BlockHandle) -> Option<Pinned> {
        self.cache.as_ref()?.lookup(self.cache_key(handle))
    }

    #[inline]
    fn cache_key(&self, handle: BlockHandle) -> CacheKey {
        CacheKey { file: self.file_id, offset: handle.offset }
    }

    #[cold]
    fn load_block(&self, handle: BlockHandle, fill_cache: FillCache) -> Result<Pinned> {
        SCRATCH.with(|scratch| {
            let Scratch { stored, contents, directory } = &mut *scratch.borrow_mut();
            self.read_stored(handle, stored)?;
            self.frame_block(handle, stored, contents, directory, fill_cache)
        })
    }

    /// The frame of a data block whose stored bytes, with trailer, were read already.
    pub(crate) fn frame_stored(
        &self,
        handle: BlockHandle,
        stored: &[u8],
        fill_cache: FillCache,
    ) -> Result<Pinned> {
        SCRATCH.with(|scratch| {
            let Scratch { contents, directory, .. } = &mut *scratch.borrow_mut();
            self.frame_block(handle, stored, contents, directory, fill_cache)
        })
    }

    fn frame_block(
        &self,
        handle: BlockHandle,
        stored: &[u8],
        buffer: &mut Vec<u8>,
        directory: &mut Directory,
        fill_cache: FillCache,
    ) -> Result<Pinned> {
        let contents = self.unpack(handle, stored, buffer)?;
        directory.build(contents, &self.comparator).map_err(|error| self.block_error(handle, &error))?;
        let len = directory.frame_len(contents);
        let write = |frame: &mut [u8]| directory.write_frame(contents, frame);
        Ok(match &self.cache {
            Some(cache) if fill_cache == FillCache::Yes => {
                cache.insert(self.cache_key(handle), Priority::Low, len, write)
            }
            _ => standalone(len, write),
        })
    }

    /// Verifies stored bytes and gives the contents, decompressed into `buffer` if need be.
    pub(crate) fn unpack<'b>(
        &self,
        handle: BlockHandle,
        stored: &'b [u8],
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8]> {
        let (contents, codec) = verify_block(&*self.file, &self.footer, handle.offset, stored)?;
        if codec == 0 {
            return Ok(contents);
        }
        decompress(codec, None, contents, buffer).map_err(|error| self.block_error(handle, &error))?;
        Ok(buffer)
    }

    /// The error of a block's contents, with file and offset.
    pub(crate) fn block_error(&self, handle: BlockHandle, error: &Error) -> Error {
        error.within(format!("{}: offset {}", self.file.path().display(), handle.offset))
    }

    fn read_stored(&self, handle: BlockHandle, stored: &mut Vec<u8>) -> Result<()> {
        let len = self.stored_len(handle)?;
        if stored.len() < len {
            stored.resize(len, 0);
        }
        stored.truncate(len);
        self.file.read_exact_at(handle.offset, stored)
    }

    /// Bytes of a block with its trailer, if it lies within the file.
    pub(crate) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        stored_len(&*self.file, handle)
    }

    fn load_index(&self, charged: bool) -> Result<Pinned> {
        if let Some(found) = self.cached_block(self.index_handle).filter(|_| charged) {
            return Ok(found);
        }
        let mut entries = IndexEntries::default();
        let broken = |handle: BlockHandle| move |error: Error| self.block_error(handle, &error);
        let top = read_block(&*self.file, &self.footer, self.index_handle)?;
        if self.properties.index_type == Some(2) {
            let mut partitions = IndexEntries::default();
            partitions.add_block(&top, self.coding).map_err(broken(self.index_handle))?;
            for handle in partitions.handles() {
                let block = read_block(&*self.file, &self.footer, *handle)?;
                entries.add_block(&block, self.coding).map_err(broken(*handle))?;
            }
        } else {
            entries.add_block(&top, self.coding).map_err(broken(self.index_handle))?;
        }
        for handle in entries.handles() {
            self.stored_len(*handle)?;
        }
        let user_keys = self.coding.key_is_user_key;
        let len = entries.frame_len(user_keys);
        let write = |frame: &mut [u8]| entries.write_frame(user_keys, &self.comparator, frame);
        Ok(self.place_meta(self.index_handle, charged, len, write))
    }

    fn load_filter(&self, handle: BlockHandle, charged: bool) -> Result<Pinned> {
        if let Some(found) = self.cached_block(handle).filter(|_| charged) {
            return Ok(found);
        }
        let block = read_block(&*self.file, &self.footer, handle)?;
        Ok(self.place_meta(handle, charged, block.len(), |frame| frame.copy_from_slice(&block)))
    }

    fn place_meta(
        &self,
        handle: BlockHandle,
        charged: bool,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Pinned {
        match &self.cache {
            Some(cache) if charged => cache.insert(self.cache_key(handle), Priority::High, len, write),
            _ => standalone(len, write),
        }
    }
}

impl Drop for TableReader {
    fn drop(&mut self) {
        let filter = self.filter.as_ref().map(|(_, _, meta)| meta);
        for meta in [Some(&self.index), filter].into_iter().flatten() {
            if let (Meta::Held(_, promised), Some(cache)) = (meta, &self.cache) {
                cache.end_hold(*promised);
            }
        }
    }
}

fn stored_len(file: &dyn ReadFile, handle: BlockHandle) -> Result<usize> {
    match handle.end() {
        Some(end) if end <= file.size() => Ok(handle.size as usize + TRAILER_LEN),
        _ => Err(corruption(
            file,
            handle.offset,
            format!("a block of {} bytes runs past the end of the file", handle.size),
        )),
    }
}

/// Reads, verifies and decompresses a block about the table.
fn read_block(file: &dyn ReadFile, footer: &Footer, handle: BlockHandle) -> Result<Vec<u8>> {
    let mut stored = vec![0; stored_len(file, handle)?];
    file.read_exact_at(handle.offset, &mut stored)?;
    let (contents, codec) = verify_block(file, footer, handle.offset, &stored)?;
    let mut block = Vec::new();
    decompress(codec, None, contents, &mut block)
        .map_err(|error| error.within(format!("{}: offset {}", file.path().display(), handle.offset)))?;
    Ok(block)
}

fn meta_blocks(file: &dyn ReadFile, at: BlockHandle, metaindex: &[u8]) -> Result<Vec<(String, BlockHandle)>> {
    let broken = |error: &dyn std::fmt::Display| corruption(file, at.offset, error);
    let pairs = decode_pairs(metaindex).map_err(|error| broken(&error))?;
    let handle_of = |(name, value): (Vec<u8>, &[u8])| {
        let handle = BlockHandle::decode(&mut Decoder::new(value))
            .ok_or_else(|| broken(&"a handle in the metaindex does not decode"))?;
        Ok((String::from_utf8_lossy(&name).into_owned(), handle))
    };
    pairs.into_iter().map(handle_of).collect()
}

fn check_identity(
    file: &dyn ReadFile,
    properties: &TableProperties,
    expected: Option<[u64; 2]>,
) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let actual = table_unique_id(&properties.db_id, &properties.session_id, properties.original_file_number);
    if actual == expected {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "{}: it is another file than the MANIFEST names: unique id {:016X}-{:016X}, expected {:016X}-{:016X}",
        file.path().display(),
        actual[0],
        actual[1],
        expected[0],
        expected[1]
    )))
}

/// Refuses by name what this reader would misread.
fn check_features(
    file: &dyn ReadFile,
    properties: &TableProperties,
    blocks: &[(String, BlockHandle)],
    largest_seqno: SeqNum,
) -> Result<()> {
    match properties.index_type {
        Some(0..=3) => {}
        None => return Err(corruption(file, 0, "the index type property is missing")),
        Some(other) => return Err(not_supported(file, format!("index type {other}"))),
    }
    if blocks.iter().any(|(name, _)| name == "rocksdb.compression_dict") {
        return Err(not_supported(file, "blocks compressed with a dictionary"));
    }
    if properties.external_version.is_some() && largest_seqno != SeqNum::ZERO {
        return Err(not_supported(file, "an ingested file with a global sequence number"));
    }
    for name in ["rocksdb.embedded.blob.stats", "rocksdb.timestamp_min"] {
        if properties.others.contains_key(name) {
            return Err(not_supported(file, format!("the feature behind the property {name}")));
        }
    }
    let codecs = &properties.compression_name;
    if codecs == "Xpress" {
        return Err(not_supported(file, "compression Xpress"));
    }
    Ok(())
}

/// Asks the processor for the line `bytes` starts in.
#[inline]
fn prefetch(bytes: &[u8]) {
    // Without unsafe code a real load is the nearest thing; the processor does not wait for its result.
    std::hint::black_box(bytes.first());
}

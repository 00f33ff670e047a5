//! Where the blocks of an open table come from: the file, and the cache before it.
//!
//! A block leaves here verified (data blocks only if the read wants it), decompressed, and in the one form the rest of the crate knows (`rewrite.rs`).
//! Blocks about the table are frames as well: held for as long as the table is open, or taken from the cache.

use crate::block;
use crate::compress::{Dictionary, decompress};
use crate::counts;
use crate::format::{BlockHandle, Footer, TRAILER_LEN, corruption, split_trailer, verify_block};
use crate::placement::Placement;
use crate::read_amp::ReadAmp;
use crate::reader::{Loading, Reading};
use crate::rewrite;
use outcrop_base::checksum::ChecksumType;
use outcrop_base::{Error, Result, SeqNum};
use outcrop_cache::{Cache, CacheKey, Kind, Pinned, Priority, standalone};
use outcrop_env::{IoKind, Pace, ReadFile};
use outcrop_monitor::{Counting, Monitor, Watch, Watching};
use outcrop_options::CompressionType;
use std::ops::Deref;
use std::sync::Arc;

/// A table's file, and how its blocks are read.
pub struct BlockSource {
    pub file: Arc<dyn ReadFile>,
    pub footer: Footer,
    pub cache: Option<Arc<Cache>>,
    /// This file's part of cache keys.
    pub file_id: u64,
    /// Of data blocks.
    pub dictionary: Option<Dictionary>,
    /// The number that every key of data blocks is to carry instead of the one stored.
    pub global_seqno: Option<SeqNum>,
    /// Counts what is loaded, and the reads that are made without a watcher of their own.
    pub monitor: Monitor,
    /// By which reads are told apart.
    pub placement: Placement,
    /// The limiter for blocks that are loaded with a priority at it.
    pub pace: Option<Arc<Pace>>,
    /// Sees which bytes of data blocks are looked at, if somebody wants to know.
    pub read_amp: Option<ReadAmp>,
}

/// A block about the table.
pub enum Meta {
    /// In memory for as long as the table is open; the bytes of the cache's promise for it.
    Held(Pinned, usize),
    /// In the cache, or to be loaded again.
    Cached,
}

/// A block about the table, for the time it is used.
pub enum MetaRef<'t> {
    /// The table holds it.
    Held(&'t Pinned),
    /// Pinned by this reference.
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

impl Meta {
    /// Bytes held outside the cache.
    pub fn memory_usage(&self) -> usize {
        match self {
            Meta::Held(pinned, 0) => pinned.len(),
            Meta::Held(..) | Meta::Cached => 0,
        }
    }
}

/// The form of a block in the cache. Part of its key: a forged handle may name a block that is cached in
/// another form.
#[derive(Clone, Copy)]
pub enum Form {
    /// A data block after its directory.
    Data = Kind::Data as isize,
    /// A whole index.
    Index = Kind::Index as isize,
    /// A filter, or a part of one, as it is.
    Plain = Kind::Filter as isize,
}

impl BlockSource {
    /// Of a table that is read past the cache and counted by nobody.
    pub fn uncached(file: Arc<dyn ReadFile>, footer: Footer) -> BlockSource {
        BlockSource {
            file,
            footer,
            cache: None,
            file_id: 0,
            dictionary: None,
            global_seqno: None,
            monitor: Monitor::none(),
            placement: Placement::default(),
            pace: None,
            read_amp: None,
        }
    }

    /// The frame of the block at `handle`, if it is cached.
    #[inline]
    pub fn cached(&self, handle: BlockHandle, form: Form, counting: Counting<'_>) -> Option<Pinned> {
        let found = self.cache.as_ref()?.lookup(self.cache_key(handle, form));
        match &found {
            Some(found) => counts::hit(counting, form, found.len()),
            None => self.count_miss(form, counting),
        }
        found
    }

    #[cold]
    fn count_miss(&self, form: Form, counting: Counting<'_>) {
        if counting.is_on() {
            counts::miss(Watch::from(&self.monitor.begin()), form);
        }
    }

    /// The watchers of blocks that are loaded: none if nobody counts the read.
    #[inline]
    pub fn watching(&self, reading: Reading<'_>) -> Option<Watching<'_>> {
        if reading.counting.is_on() { self.monitor.begin() } else { None }
    }

    #[inline]
    pub fn cache_key(&self, handle: BlockHandle, form: Form) -> CacheKey {
        // No file is so long that the upper bits of an offset within it are in use.
        CacheKey { file: self.file_id, offset: handle.offset ^ ((form as u64) << 62) }
    }

    /// True if blocks have checksums.
    pub fn has_checksums(&self) -> bool {
        self.footer.checksum != ChecksumType::None
    }

    /// Bytes of a block with its trailer, if it lies within the file.
    pub fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        match handle.end() {
            Some(end) if end <= self.file.size() => Ok(handle.size as usize + TRAILER_LEN),
            _ => Err(corruption(
                &*self.file,
                handle.offset,
                format!("a block of {} bytes runs past the end of the file", handle.size),
            )),
        }
    }

    /// Asked before a block is loaded.
    ///
    /// # Errors
    /// Those of [`crate::Loading::check_load`].
    #[inline]
    pub fn check_load(&self, loading: Loading) -> Result<()> {
        loading.check_load(&*self.monitor.clock)
    }

    /// Asked before the block at `handle` is loaded: waits for tokens of the rate limiter, if the read is to.
    ///
    /// # Errors
    /// Those of [`crate::Loading::check_load`].
    ///
    /// Source: RocksDB `file/random_access_file_reader.cc`, `RandomAccessFileReader::Read`.
    #[inline]
    pub fn begin_load(&self, loading: Loading, handle: BlockHandle) -> Result<()> {
        self.check_load(loading)?;
        if let Some(pace) = loading.pace(self.pace.as_deref()) {
            pace.request(handle.size.saturating_add(TRAILER_LEN as u64), IoKind::Read);
        }
        Ok(())
    }

    /// Reads a block with its trailer into `stored`.
    pub fn read_stored(&self, handle: BlockHandle, stored: &mut Vec<u8>, watch: Watch<'_>) -> Result<()> {
        let len = self.stored_len(handle)?;
        if stored.len() < len {
            stored.resize(len, 0);
        }
        stored.truncate(len);
        self.read_at(handle.offset, stored, watch)
    }

    /// Fills `bytes` from the file.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8], watch: Watch<'_>) -> Result<()> {
        let timer = watch.timer();
        let read = self.file.read_exact_at(offset, bytes);
        counts::read(watch, timer, &self.placement, bytes.len());
        read
    }

    /// The contents of a block with its trailer, once its checksum was compared, and how they are compressed.
    fn verify<'b>(&self, handle: BlockHandle, stored: &'b [u8], watch: Watch<'_>) -> Result<(&'b [u8], u8)> {
        let timer = watch.perf_timer();
        let verified = verify_block(&*self.file, &self.footer, handle.offset, stored);
        counts::verified(watch, timer, verified.is_ok());
        verified
    }

    /// The contents of a block with its trailer, and how they are compressed.
    fn split_unverified<'b>(&self, handle: BlockHandle, stored: &'b [u8]) -> Result<(&'b [u8], u8)> {
        let (contents, codec) = split_trailer(stored);
        // In a block that verifies it is a newer version's; here it is damage.
        match CompressionType::from_byte(codec) {
            Ok(_) => Ok((contents, codec)),
            Err(_) => {
                let what = format!("no compression type is {codec:#04x}");
                Err(corruption(&*self.file, handle.offset, what))
            }
        }
    }

    /// Verifies the stored bytes of a data block, if the read is to, and gives its contents, made in `buffer` if needed.
    ///
    /// Source: RocksDB `table/block_fetcher.cc`, `BlockFetcher::ProcessTrailerIfPresent`.
    pub fn unpack<'b>(
        &self,
        handle: BlockHandle,
        stored: &'b [u8],
        buffer: &'b mut Vec<u8>,
        (loading, watch): (Loading, Watch<'_>),
    ) -> Result<&'b [u8]> {
        let (contents, codec) = match loading.verifies() {
            true => self.verify(handle, stored, watch)?,
            false => self.split_unverified(handle, stored)?,
        };
        let in_buffer = codec != 0;
        if in_buffer {
            let timer = watch.detailed_timer();
            decompress(codec, self.dictionary.as_ref(), contents, buffer)
                .map_err(|error| self.block_error(handle, &error))?;
            counts::decompressed(watch, timer, contents.len(), buffer.len());
        }
        let unpacked = if in_buffer { buffer.as_slice() } else { contents };
        if rewrite::is_needed(unpacked, self.global_seqno) {
            let rewritten = rewrite::rewrite(unpacked, self.global_seqno)
                .map_err(|error| self.block_error(handle, &error))?;
            *buffer = rewritten;
            return Ok(buffer);
        }
        Ok(if in_buffer { buffer } else { contents })
    }

    /// The data block at `handle` was loaded, as `frame`.
    #[inline]
    pub fn data_loaded(&self, handle: BlockHandle, frame: &[u8]) {
        if let Some(read_amp) = &self.read_amp {
            read_amp.loaded(handle.offset, block::entries_len(frame));
        }
    }

    /// Reads, verifies and decompresses a block about the table.
    pub fn read_meta(&self, handle: BlockHandle, watch: Watch<'_>) -> Result<Vec<u8>> {
        let mut stored = Vec::new();
        self.read_stored(handle, &mut stored, watch)?;
        let (contents, codec) = self.verify(handle, &stored, watch)?;
        if codec == 0 {
            let len = contents.len();
            stored.truncate(len);
            return Ok(stored);
        }
        let mut block = Vec::new();
        decompress(codec, None, contents, &mut block).map_err(|error| self.block_error(handle, &error))?;
        Ok(block)
    }

    /// The error of a block's contents, with file and offset.
    pub fn block_error(&self, handle: BlockHandle, error: &Error) -> Error {
        error.within(format!("{}: offset {}", self.file.path().display(), handle.offset))
    }

    /// A frame for a block about the table: in the cache if it is `charged` there.
    pub fn place_meta(
        &self,
        (handle, form): (BlockHandle, Form),
        charged: bool,
        len: usize,
        watch: Watch<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> Pinned {
        match &self.cache {
            Some(cache) if charged => {
                let placed = cache.insert(self.cache_key(handle, form), Priority::High, len, write);
                counts::inserted(watch, form, &placed);
                placed
            }
            _ => standalone(len, write),
        }
    }

    /// A block about the table, as it is, from the cache or loaded.
    pub fn load_meta(&self, handle: BlockHandle, charged: bool, reading: Reading<'_>) -> Result<Pinned> {
        if charged && let Some(found) = self.cached(handle, Form::Plain, reading.counting) {
            return Ok(found);
        }
        self.begin_load(reading.loading, handle)?;
        let watching = self.watching(reading);
        let watch = Watch::from(&watching);
        let timer = watch.perf_timer();
        let block = self.read_meta(handle, watch)?;
        counts::read_meta(watch, timer, Form::Plain);
        let place = (handle, Form::Plain);
        Ok(self.place_meta(place, charged, block.len(), watch, |frame| frame.copy_from_slice(&block)))
    }

    /// Holds on to a block about the table, if it is the table's own or the cache allows it.
    pub fn keep(&self, block: Pinned, insist: bool) -> Meta {
        match self.cache.as_ref().filter(|cache| cache.is_charged() || !block.is_standalone()) {
            None => Meta::Held(block, 0),
            // A cache that everybody is charged by keeps its promise to all of them.
            Some(cache) if cache.try_hold(block.len(), insist && !cache.is_charged()) => {
                let promised = block.len();
                Meta::Held(block, promised)
            }
            Some(_) => Meta::Cached,
        }
    }

    /// Gives the cache's promise for a kept block back.
    pub fn end_hold(&self, meta: &Meta) {
        if let (Meta::Held(_, promised), Some(cache)) = (meta, &self.cache) {
            cache.end_hold(*promised);
        }
    }
}

//! Collects separators and handles while a table is written, and gives its index blocks.
//!
//! ```text
//! entry = v32 shared | v32 non_shared | [v32 value length] | key suffix | handle | [LP(first key)]
//! two-level: partitions of such entries, then a block of (last separator, handle) of each partition
//! hash search: prefixes one after the other | v32 length, v32 first block, v32 blocks of each prefix
//! ```
//! Only when all keys are known is it clear whether separators can be user keys, so that nothing is encoded
//! before the end.
//! Source: RocksDB `table/block_based/index_builder.cc`.

use crate::block_builder::BlockBuilder;
use crate::format::{BlockHandle, TRAILER_LEN};
use outcrop_base::coding::{put_length_prefixed, put_varint32, put_zigzag64};
use outcrop_base::keys::Trailer;
use outcrop_base::{PrefixExtractor, Result};
use outcrop_options::{BlockBasedTableOptions, IndexType};

/// How index blocks are coded.
#[derive(Clone, Copy)]
pub struct IndexFormat {
    /// Separators lose the footers of internal keys.
    pub user_keys: bool,
    /// Handles are delta-encoded and have no length.
    pub delta: bool,
    /// Entries between restart points.
    pub restart_interval: u32,
}

/// The facts about a written index.
#[derive(Default)]
pub struct WrittenIndex {
    /// The block that the footer or the metaindex names.
    pub handle: BlockHandle,
    /// Bytes of all blocks with trailers, uncompressed.
    pub size: u64,
    /// Partitions of a two-level index.
    pub partitions: u64,
    /// Bytes of the block above them with trailer, uncompressed.
    pub top_level_size: u64,
}

/// Collects the index of one table.
pub struct IndexWriter {
    kind: IndexType,
    partition_size: usize,
    /// Internal keys, one for each data block whose successor is known.
    separators: Vec<Vec<u8>>,
    /// Handles of the data blocks written.
    handles: Vec<BlockHandle>,
    /// First internal key of each block, if the index keeps them.
    first_keys: Vec<Vec<u8>>,
    prefixes: Option<PrefixRuns>,
    /// Two blocks share a user key: separators must be internal keys.
    splits_user_key: bool,
}

/// One entry of an index block.
struct IndexEntry<'e> {
    separator: &'e [u8],
    handle: BlockHandle,
    first_key: Option<&'e [u8]>,
}

impl IndexWriter {
    /// The index of a table with these options.
    pub fn new(options: &BlockBasedTableOptions, extractor: Option<PrefixExtractor>) -> IndexWriter {
        let prefixes = match options.index_type {
            IndexType::HashSearch => extractor.map(PrefixRuns::new),
            _ => None,
        };
        IndexWriter {
            kind: options.index_type,
            partition_size: options.metadata_block_size as usize,
            separators: Vec::new(),
            handles: Vec::new(),
            first_keys: Vec::new(),
            prefixes,
            splits_user_key: false,
        }
    }

    /// True if [`IndexWriter::on_key`] wants to see every key.
    #[inline]
    pub fn wants_keys(&self) -> bool {
        self.prefixes.is_some()
    }

    /// A key goes into data block number `block`.
    pub fn on_key(&mut self, user_key: &[u8], block: u64) {
        if let Some(prefixes) = &mut self.prefixes {
            prefixes.add(user_key, block);
        }
    }

    /// A data block begins with this internal key.
    pub fn on_first_key(&mut self, key: &[u8]) {
        if self.kind == IndexType::BinarySearchWithFirstKey {
            self.first_keys.push(key.to_vec());
        }
    }

    /// A data block ends; `splits_user_key` if the next one goes on with its last user key.
    pub fn add_separator(&mut self, separator: Vec<u8>, splits_user_key: bool) {
        self.separators.push(separator);
        self.splits_user_key |= splits_user_key;
    }

    /// A data block was written.
    pub fn add_handle(&mut self, handle: BlockHandle) {
        self.handles.push(handle);
    }

    /// Whether separators must be internal keys.
    pub fn splits_user_key(&self) -> bool {
        self.splits_user_key
    }

    /// Prefixes and their metadata, for a hash search index whose keys all had prefixes.
    pub fn hash_blocks(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.prefixes.take()?.finish()
    }

    /// Writes the index blocks through `append`.
    pub fn write(
        &self,
        format: IndexFormat,
        mut append: impl FnMut(&[u8]) -> Result<BlockHandle>,
    ) -> Result<WrittenIndex> {
        assert_eq!(self.separators.len(), self.handles.len(), "each data block has a separator");
        // The metadata of a hash search index counts restart points: one for each data block.
        let restart_interval = if self.kind == IndexType::HashSearch { 1 } else { format.restart_interval };
        let format = IndexFormat { restart_interval, ..format };
        let mut written = WrittenIndex::default();
        let mut blocks = Blocks::new(format);
        // Last separator and handle of each partition.
        let mut partitions: Vec<(&[u8], BlockHandle)> = Vec::new();
        for (number, (separator, handle)) in self.separators.iter().zip(&self.handles).enumerate() {
            let first_key = self.first_keys.get(number).map(Vec::as_slice);
            blocks.add(&IndexEntry { separator, handle: *handle, first_key });
            if self.kind == IndexType::TwoLevel && blocks.size() >= self.partition_size {
                partitions.push((separator, append_block(&mut blocks, &mut written, &mut append)?));
            }
        }
        if self.kind != IndexType::TwoLevel {
            written.handle = append_block(&mut blocks, &mut written, &mut append)?;
            return Ok(written);
        }
        if let (Some(separator), false) = (self.separators.last(), blocks.is_empty()) {
            partitions.push((separator, append_block(&mut blocks, &mut written, &mut append)?));
        }
        written.partitions = partitions.len() as u64;
        let below = written.size;
        for (separator, handle) in partitions {
            blocks.add(&IndexEntry { separator, handle, first_key: None });
        }
        written.handle = append_block(&mut blocks, &mut written, &mut append)?;
        written.top_level_size = written.size - below;
        Ok(written)
    }
}

fn append_block(
    blocks: &mut Blocks,
    written: &mut WrittenIndex,
    append: &mut impl FnMut(&[u8]) -> Result<BlockHandle>,
) -> Result<BlockHandle> {
    let block = blocks.finish();
    written.size += (block.len() + TRAILER_LEN) as u64;
    append(&block)
}

/// The index block of filter partitions: (separator as internal key, handle) of each.
pub fn partition_index(format: IndexFormat, partitions: &[(Vec<u8>, BlockHandle)]) -> Vec<u8> {
    let mut blocks = Blocks::new(format);
    for (separator, handle) in partitions {
        blocks.add(&IndexEntry { separator, handle: *handle, first_key: None });
    }
    blocks.finish()
}

/// Encodes entries into one block after the other.
struct Blocks {
    format: IndexFormat,
    builder: BlockBuilder,
    previous: BlockHandle,
}

impl Blocks {
    fn new(format: IndexFormat) -> Blocks {
        let builder = BlockBuilder::new(format.restart_interval);
        Blocks { format, builder, previous: BlockHandle::default() }
    }

    fn add(&mut self, entry: &IndexEntry<'_>) {
        let separator = entry.separator;
        let key = match self.format.user_keys {
            true => &separator[..separator.len() - Trailer::LEN],
            false => separator,
        };
        let value = |handle_in_full: bool| {
            let mut value = Vec::new();
            if handle_in_full {
                entry.handle.encode(&mut value);
            } else {
                put_zigzag64(&mut value, entry.handle.size as i64 - self.previous.size as i64);
            }
            if let Some(first_key) = entry.first_key {
                put_length_prefixed(&mut value, first_key);
            }
            value
        };
        if self.format.delta {
            // A difference says that the block follows the one before without a gap.
            let follows = self.previous.end() == Some(entry.handle.offset);
            self.builder.add_index(key, follows, value);
        } else {
            self.builder.add(key, &value(true));
        }
        self.previous = entry.handle;
    }

    fn size(&self) -> usize {
        self.builder.size()
    }

    fn is_empty(&self) -> bool {
        self.builder.is_empty()
    }

    fn finish(&mut self) -> Vec<u8> {
        let block = self.builder.finish().to_vec();
        self.builder.reset();
        self.previous = BlockHandle::default();
        block
    }
}

/// Which blocks each prefix is in, for a hash search index.
struct PrefixRuns {
    extractor: PrefixExtractor,
    prefixes: Vec<u8>,
    metadata: Vec<u8>,
    /// The prefix under way: where it starts in `prefixes`, its first block, its last block.
    run: Option<(usize, u64, u64)>,
    /// A key had no prefix: RocksDB would not find it through the hash.
    incomplete: bool,
}

impl PrefixRuns {
    fn new(extractor: PrefixExtractor) -> PrefixRuns {
        PrefixRuns { extractor, prefixes: Vec::new(), metadata: Vec::new(), run: None, incomplete: false }
    }

    fn add(&mut self, user_key: &[u8], block: u64) {
        let Some(prefix) = self.extractor.transform(user_key) else {
            self.incomplete = true;
            return;
        };
        match &mut self.run {
            Some((start, _, last)) if self.prefixes[*start..] == *prefix => *last = block,
            run => {
                end_run(run.take(), &self.prefixes, &mut self.metadata);
                *run = Some((self.prefixes.len(), block, block));
                self.prefixes.extend_from_slice(prefix);
            }
        }
    }

    fn finish(mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        end_run(self.run.take(), &self.prefixes, &mut self.metadata);
        (!self.incomplete).then_some((self.prefixes, self.metadata))
    }
}

/// Writes down the blocks of the last of `prefixes`, if there is one.
fn end_run(run: Option<(usize, u64, u64)>, prefixes: &[u8], metadata: &mut Vec<u8>) {
    if let Some((start, first, last)) = run {
        put_varint32(metadata, (prefixes.len() - start) as u32);
        put_varint32(metadata, first as u32);
        put_varint32(metadata, (last - first + 1) as u32);
    }
}

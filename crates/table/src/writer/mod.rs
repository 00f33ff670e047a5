//! Writes one table, front to back.
//!
//! ```text
//! add -> data block full? -> compress, checksum, append -> note separator and handle
//! finish -> filter, index, dictionary, range tombstones, properties, metaindex, footer
//! ```
//! Keys come in ascending internal key order; others are refused, since they come from damaged tables. Nothing is
//! synced before [`TableWriter::sync_and_close`].
//!
//! A table with a dictionary keeps its first data blocks in memory until there are samples enough
//! (`compress/samples.rs`): separators are noted at once, handles when the blocks are written.
//! Next: `finish.rs` for everything after the data blocks.
//! Source: RocksDB `table/block_based/block_based_table_builder.cc`.

mod finish;
mod options;

pub use options::{TableSummary, TableWriterOptions, check_options};

use crate::block_builder::{BlockBuilder, DataBlockForm};
use crate::block_sink::BlockSink;
use crate::compress::{Compressor, Sampler, build_dictionary};
use crate::filter::FilterWriter;
use crate::hash_index::HashIndexBuilder;
use crate::index_writer::IndexWriter;
use crate::properties::{COLLECTORS, TableProperties};
use crate::range_del::RangeTombstone;
use outcrop_base::hash::xxh3_64;
use outcrop_base::keys::{Trailer, split, user_key};
use outcrop_base::timestamp::{TIMESTAMP_LEN, split_timestamp};
use outcrop_base::{Comparator, Error, Result, SeqNum, Timestamp, ValueType};
use outcrop_env::WriteFile;
use outcrop_options::{BlockBasedTableOptions, DataBlockIndexType, IndexShortening};
use std::cmp::Ordering;

/// Data blocks are not aligned to more than this, in bytes: a page of memory.
const ALIGNMENT_LIMIT: u64 = 4096;

/// Bytes of an entry of the index beside its key, while the table is written.
const INDEX_ENTRY_BYTES: u64 = 48;

/// Writes one table.
pub struct TableWriter {
    sink: BlockSink,
    options: TableWriterOptions,
    data: BlockBuilder,
    compressor: Compressor,
    /// Data blocks that wait for a dictionary.
    sampler: Option<Sampler>,
    dictionary: Vec<u8>,
    index: IndexWriter,
    filter: Option<FilterWriter>,
    properties: TableProperties,
    smallest: Vec<u8>,
    smallest_seq: u64,
    largest_seq: u64,
    /// A data block was finished; its separator waits for the next key.
    separator_due: bool,
    last_key: Vec<u8>,
    range_tombstones: Vec<RangeTombstone>,
    /// If its keys have user-defined timestamps.
    stamps: Option<Stamps>,
}

impl TableWriter {
    /// Starts a table in the empty `file`.
    ///
    /// Options that cannot be written are refused by [`TableWriter::finish`]; [`check_options`] tells before.
    pub fn new(file: Box<dyn WriteFile>, options: TableWriterOptions) -> TableWriter {
        let table = &options.table;
        let filter = match options.omit_filter {
            true => None,
            false => FilterWriter::new(table, options.level, options.prefix_extractor.clone()),
        };
        let compressor = Compressor::new(options.compression, &options.compression_opts);
        TableWriter {
            sink: BlockSink::new(file, table.checksum, base_context_checksum(&options)),
            data: data_builder(table, &options.comparator),
            compressor: compressor.verifying(table.verify_compression),
            sampler: Sampler::new(options.compression, &options.compression_opts),
            dictionary: Vec::new(),
            index: IndexWriter::new(table, options.prefix_extractor.clone()),
            filter,
            properties: TableProperties::default(),
            smallest: Vec::new(),
            smallest_seq: u64::MAX,
            largest_seq: 0,
            separator_due: false,
            last_key: Vec::new(),
            range_tombstones: Vec::new(),
            stamps: Stamps::of(&options.comparator),
            options,
        }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// Those of the file; Corruption if the key is not larger than the one before: a table out of order would return
    /// wrong rows. The table is then to be thrown away.
    ///
    /// Source of the check: RocksDB `check_flush_compaction_key_order`.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let comparator = &self.options.comparator;
        if !self.last_key.is_empty() && comparator.compare_internal(&self.last_key, key) != Ordering::Less {
            return Err(self.out_of_order(key));
        }
        if !self.data.is_empty() && self.should_cut(key, value) {
            self.finish_data_block()?;
        }
        if self.data.is_empty() {
            self.start_data_block(key);
        }
        self.add_to_filter_and_index(key);
        self.data.add(key, value);
        self.count(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    #[cold]
    fn out_of_order(&self, key: &[u8]) -> Error {
        Error::corruption(format!("table keys out of order: {:?} then {key:?}", self.last_key))
    }

    /// Notes what the index wants to know of the block that `key` begins and of the one before it.
    fn start_data_block(&mut self, key: &[u8]) {
        if self.smallest.is_empty() {
            self.smallest.extend_from_slice(key);
        }
        if self.separator_due {
            self.separator_due = false;
            let separator = match self.options.table.index_shortening {
                IndexShortening::None => self.last_key.clone(),
                _ => self.options.comparator.internal_separator(&self.last_key, key),
            };
            let shared = self.options.comparator.same(user_key(&self.last_key), user_key(key));
            self.index.add_separator(separator, shared);
        }
        self.index.on_first_key(key);
    }

    #[inline]
    fn add_to_filter_and_index(&mut self, key: &[u8]) {
        let stamps = self.stamps.as_ref().map_or(0, |_| TIMESTAMP_LEN);
        // Filters know keys as users give them: all versions of a row are one.
        let row = |key| without_stamp(user_key(key), stamps);
        let new = row(key);
        if let Some(filter) = &mut self.filter {
            if filter.is_full() && !self.last_key.is_empty() && row(&self.last_key) != new {
                let separator = self.options.comparator.internal_separator(&self.last_key, key);
                filter.cut(separator, row(&self.last_key), new);
            }
            filter.add(new);
        }
        if self.index.wants_keys() {
            self.index.on_key(new, self.properties.num_data_blocks);
        }
    }

    /// Adds a range tombstone: keys in `begin..end` older than `seq` are hidden. At any time before
    /// [`TableWriter::finish`], in any order. RocksDB's readers accept overlapping ones, but are fastest with
    /// fragments: ranges that are disjoint or the same.
    pub fn add_range_tombstone(&mut self, begin: &[u8], seq: SeqNum, end: &[u8]) {
        let properties = &mut self.properties;
        properties.num_entries += 1;
        properties.num_deletions += 1;
        properties.num_range_deletions += 1;
        properties.raw_key_size += (begin.len() + Trailer::LEN) as u64;
        properties.raw_value_size += end.len() as u64;
        self.smallest_seq = self.smallest_seq.min(seq.0);
        self.largest_seq = self.largest_seq.max(seq.0);
        self.range_tombstones.push(RangeTombstone { begin: begin.to_vec(), end: end.to_vec(), seq });
    }

    /// Source of the rule: RocksDB `flush_block_policy.cc`.
    #[inline]
    fn should_cut(&self, key: &[u8], value: &[u8]) -> bool {
        let table = &self.options.table;
        let (size, limit) = (self.data.size() as u64, table.block_size);
        if size >= limit {
            return true;
        }
        if !(1..=100).contains(&table.block_size_deviation) {
            return false;
        }
        let nearly = (limit * (100 - table.block_size_deviation) as u64).div_ceil(100);
        size > nearly && self.data.size_after(key, value) as u64 > limit
    }

    #[inline]
    fn count(&mut self, key: &[u8], value: &[u8]) {
        let (_, trailer) = split(key);
        let properties = &mut self.properties;
        properties.num_entries += 1;
        properties.raw_key_size += key.len() as u64;
        properties.raw_value_size += value.len() as u64;
        match trailer.value_type() {
            Some(ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp) => {
                properties.num_deletions += 1;
            }
            Some(ValueType::Merge) => properties.merge_operands += 1,
            _ => {}
        }
        let seq = trailer.seq().0;
        self.smallest_seq = self.smallest_seq.min(seq);
        self.largest_seq = self.largest_seq.max(seq);
        if let Some(stamps) = &mut self.stamps {
            stamps.add(&self.options.comparator, key);
        }
    }

    fn finish_data_block(&mut self) -> Result<()> {
        let block = self.data.finish();
        self.properties.num_data_blocks += 1;
        self.separator_due = true;
        let enough = match &mut self.sampler {
            Some(sampler) => sampler.add(block),
            None => {
                let handle = self.sink.append_compressed(block, &mut self.compressor)?;
                self.index.add_handle(handle);
                if self.options.table.block_align {
                    self.sink.pad_to(self.options.table.block_size.min(ALIGNMENT_LIMIT))?;
                }
                false
            }
        };
        self.data.reset();
        if enough { self.stop_sampling() } else { Ok(()) }
    }

    /// Builds the dictionary and writes the data blocks that waited for it.
    fn stop_sampling(&mut self) -> Result<()> {
        let Some(sampler) = self.sampler.take() else { return Ok(()) };
        let blocks = sampler.into_blocks();
        let (codec, settings) = (self.options.compression, &self.options.compression_opts);
        self.dictionary = build_dictionary(codec, settings, &blocks);
        if !self.dictionary.is_empty() {
            self.compressor = Compressor::with_dictionary(codec, settings, self.dictionary.clone())
                .verifying(self.options.table.verify_compression);
        }
        for block in blocks {
            let handle = self.sink.append_compressed(&block, &mut self.compressor)?;
            self.index.add_handle(handle);
        }
        Ok(())
    }

    /// Size of the file if it were finished now, in bytes, without the tail.
    #[inline]
    pub fn estimated_size(&self) -> u64 {
        let waiting = self.sampler.as_ref().map_or(0, Sampler::bytes);
        self.sink.offset + waiting + self.data.size() as u64
    }

    /// Bytes that it keeps in memory until the table is finished, and takes for that: of filter, index and range tombstones, and blocks that
    /// wait for a dictionary. Estimated from numbers and average lengths.
    pub fn memory_usage(&self) -> usize {
        let properties = &self.properties;
        let key_bytes = properties.raw_key_size / properties.num_entries.max(1);
        // Kept apart, and once more in the block that is made of them.
        let index = properties.num_data_blocks * 2 * (key_bytes + INDEX_ENTRY_BYTES);
        let ranges = properties.num_range_deletions * 2 * (key_bytes + size_of::<RangeTombstone>() as u64);
        let waiting = self.sampler.as_ref().map_or(0, Sampler::bytes);
        self.filter.as_ref().map_or(0, FilterWriter::memory_usage) + (index + ranges + waiting) as usize
    }

    /// Bytes of the blocks that are complete and written, with their trailers.
    pub fn size_of_blocks(&self) -> u64 {
        self.sink.offset
    }

    /// Adds a property of the application's. Names that begin with `rocksdb.` are the table's own: they are left out.
    pub fn add_property(&mut self, name: String, value: Vec<u8>) {
        if !name.starts_with("rocksdb.") {
            self.properties.others.insert(name, value);
        }
    }

    /// Names what told the table of properties, as `[name,name]`.
    pub fn set_collectors(&mut self, names: String) {
        self.properties.others.insert(COLLECTORS.to_string(), names.into_bytes());
    }

    /// Entries added, range tombstones included.
    pub fn num_entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// True before the first entry.
    pub fn is_empty(&self) -> bool {
        self.properties.num_entries == 0
    }

    /// Makes the file durable and closes it. Its name is durable only once its directory is synced.
    pub fn sync_and_close(&mut self, use_fsync: bool) -> Result<()> {
        let file = &mut self.sink.file;
        if use_fsync {
            file.sync_all()?;
        } else {
            file.sync()?;
        }
        file.close()
    }
}

/// The salt of block checksums, different for each table so that a block of another one does not verify.
fn base_context_checksum(options: &TableWriterOptions) -> u32 {
    if options.table.format_version < 6 {
        return 0;
    }
    let [a, b] = options.unique_id();
    let hash = xxh3_64(&[a.to_le_bytes(), b.to_le_bytes()].concat()) as u32;
    hash.max(1)
}

/// `user_key` without the `len` bytes at its end.
#[inline]
fn without_stamp(user_key: &[u8], len: usize) -> &[u8] {
    &user_key[..user_key.len().saturating_sub(len)]
}

/// The oldest and the newest user-defined timestamp of a table.
#[derive(Default)]
pub(crate) struct Stamps {
    bounds: Option<(Timestamp, Timestamp)>,
}

impl Stamps {
    /// None yet, if keys in this order have some.
    fn of(comparator: &Comparator) -> Option<Stamps> {
        (comparator.timestamp_len() > 0).then(Stamps::default)
    }

    #[cold]
    fn add(&mut self, comparator: &Comparator, key: &[u8]) {
        let Some((_, new)) = split_timestamp(user_key(key)) else { return };
        let (oldest, newest) = self.bounds.get_or_insert((new, new));
        if comparator.compare_timestamps(new, *oldest).is_lt() {
            *oldest = new;
        }
        if comparator.compare_timestamps(new, *newest).is_gt() {
            *newest = new;
        }
    }
}

/// Entries between restart points, as asked for: at least one.
fn restarts(interval: i32) -> u32 {
    interval.max(1) as u32
}

fn data_builder(table: &BlockBasedTableOptions, comparator: &Comparator) -> BlockBuilder {
    // Only if different bytes are different keys can a hash of them stand for the key.
    let by_bytes = matches!(comparator, Comparator::Bytewise | Comparator::ReverseBytewise);
    let wanted = table.data_block_index_type == DataBlockIndexType::BinaryAndHash;
    let hash_index =
        (by_bytes && wanted).then(|| HashIndexBuilder::new(table.data_block_hash_table_util_ratio));
    BlockBuilder::for_data(DataBlockForm {
        restart_interval: restarts(table.block_restart_interval),
        share_prefixes: table.use_delta_encoding,
        separate_values: table.separate_key_value_in_data_block,
        hash_index,
    })
}

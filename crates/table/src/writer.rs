//! Writes one table, front to back.
//!
//! ```text
//! add -> data block full? -> compress, checksum, append -> note separator and handle
//! finish -> filter, index, dictionary, range tombstones, properties, metaindex, footer
//! ```
//! Keys come in ascending internal key order, which is asserted. Nothing is synced before
//! [`TableWriter::sync_and_close`].
//!
//! A table with a dictionary keeps its first data blocks in memory until there are samples enough
//! (`compress/samples.rs`): separators are noted at once, handles when the blocks are written.
//! Source: RocksDB `table/block_based/block_based_table_builder.cc`.

use crate::block_builder::BlockBuilder;
use crate::block_sink::BlockSink;
use crate::compress::{self, Compressor, Sampler, build_dictionary};
use crate::filter::{FilterOutput, FilterWriter};
use crate::format::{BlockHandle, Footer};
use crate::hash_index::HashIndexBuilder;
use crate::index_writer::{IndexFormat, IndexWriter, partition_index};
use crate::properties::TableProperties;
use crate::range_del::{self, RangeTombstone};
use crate::unique_id::table_unique_id;
use outcrop_base::hash::xxh3_64;
use outcrop_base::keys::{FOOTER_LEN, packed_seq, split, user_key};
use outcrop_base::{Comparator, Error, PrefixExtractor, Result, SeqNum, ValueType};
use outcrop_env::WriteFile;
use outcrop_options::{
    BlockBasedTableOptions, CompressionOptions, CompressionType, DataBlockIndexType, FilterPolicy,
    IndexShortening, IndexType,
};
use std::cmp::Ordering;

/// Format versions that can be written.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=7;
/// Version of files made for ingestion.
const EXTERNAL_VERSION: u32 = 2;

/// What a table is to be like, and what it says of itself.
#[derive(Clone)]
pub struct TableWriterOptions {
    /// Key order.
    pub comparator: Comparator,
    /// Block sizes, format version, checksum, filter.
    pub table: BlockBasedTableOptions,
    /// Codec of data and index blocks.
    pub compression: CompressionType,
    /// Settings of the codec.
    pub compression_opts: CompressionOptions,
    /// Column family id.
    pub column_family_id: u32,
    /// Column family name.
    pub column_family_name: String,
    /// Name of the merge operator, if there is one.
    pub merge_operator_name: Option<String>,
    /// Identity of the database.
    pub db_id: String,
    /// Identity of the session.
    pub session_id: String,
    /// The file's number.
    pub file_number: u64,
    /// Time of the oldest data's first write, seconds since the epoch.
    pub creation_time: u64,
    /// Oldest key's time, seconds since the epoch; 0 unknown.
    pub oldest_key_time: u64,
    /// Newest key's time, seconds since the epoch; 0 unknown.
    pub newest_key_time: u64,
    /// When the file is written, seconds since the epoch.
    pub file_creation_time: u64,
    /// Write no filter even if the policy has one.
    pub omit_filter: bool,
    /// Prefixes of keys go into the filter, and into a hash search index.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// The level the table is made for, -1 by flush; `None`: unknown, as good as the last. Ribbon policies
    /// differ by it.
    pub level: Option<i32>,
    /// The table is made for ingestion: keys carry sequence number 0 and take on the number that the MANIFEST
    /// of the ingesting database gives the file.
    pub external: bool,
}

/// What a finished table is.
#[derive(Clone, Debug)]
pub struct TableSummary {
    /// Bytes of the file.
    pub file_size: u64,
    /// First internal key; the begin of a range tombstone counts.
    pub smallest: Vec<u8>,
    /// Last internal key; the end of a range tombstone counts as (end, largest sequence number, 0x0F).
    pub largest: Vec<u8>,
    /// Smallest sequence number.
    pub smallest_seq: SeqNum,
    /// Largest sequence number.
    pub largest_seq: SeqNum,
    /// Bytes behind the last data block.
    pub tail_size: u64,
    /// What the properties block says.
    pub properties: TableProperties,
    /// Identity, as the MANIFEST stores it.
    pub unique_id: [u64; 2],
}

/// Refuses what cannot be written.
///
/// # Errors
/// InvalidArgument naming the option.
pub fn check_options(
    table: &BlockBasedTableOptions,
    prefix_extractor: Option<PrefixExtractor>,
) -> Result<()> {
    let version = table.format_version;
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        return Err(Error::invalid_argument(format!(
            "format_version {version} is not one of {first} to {last}"
        )));
    }
    if table.index_type == IndexType::HashSearch && prefix_extractor.is_none() {
        return Err(Error::invalid_argument("index_type kHashSearch needs a prefix_extractor"));
    }
    let ratio = table.data_block_hash_table_util_ratio;
    if table.data_block_index_type == DataBlockIndexType::BinaryAndHash && !(ratio > 0.0 && ratio <= 1.0) {
        return Err(Error::invalid_argument(format!(
            "data_block_hash_table_util_ratio {ratio} is not above 0 and at most 1"
        )));
    }
    Ok(())
}

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
}

impl TableWriter {
    /// Starts a table in the empty `file`.
    ///
    /// Options that cannot be written are refused by [`TableWriter::finish`]; [`check_options`] tells before.
    pub fn new(file: Box<dyn WriteFile>, options: TableWriterOptions) -> TableWriter {
        let table = &options.table;
        let filter = match options.omit_filter {
            true => None,
            false => FilterWriter::new(table, options.level, options.prefix_extractor),
        };
        let compressor = Compressor::new(options.compression, &options.compression_opts);
        TableWriter {
            sink: BlockSink::new(file, table.checksum, base_context_checksum(&options)),
            data: data_builder(table, &options.comparator),
            compressor: compressor.verifying(table.verify_compression),
            sampler: Sampler::new(options.compression, &options.compression_opts),
            dictionary: Vec::new(),
            index: IndexWriter::new(table, options.prefix_extractor),
            filter,
            properties: TableProperties::default(),
            smallest: Vec::new(),
            smallest_seq: u64::MAX,
            largest_seq: 0,
            separator_due: false,
            last_key: Vec::new(),
            range_tombstones: Vec::new(),
            options,
        }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// Those of the file; the table is then to be thrown away.
    ///
    /// # Panics
    /// If the key is not larger than the one before: a table out of order would return wrong rows.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let comparator = &self.options.comparator;
        assert!(
            self.last_key.is_empty() || comparator.compare_internal(&self.last_key, key) == Ordering::Less,
            "table keys out of order: {:?} then {key:?}",
            self.last_key
        );
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
            self.index.add_separator(separator, user_key(&self.last_key) == user_key(key));
        }
        self.index.on_first_key(key);
    }

    #[inline]
    fn add_to_filter_and_index(&mut self, key: &[u8]) {
        let new = user_key(key);
        if let Some(filter) = &mut self.filter {
            if filter.is_full() && user_key(&self.last_key) != new {
                let separator = self.options.comparator.internal_separator(&self.last_key, key);
                filter.cut(separator, user_key(&self.last_key), new);
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
        properties.raw_key_size += (begin.len() + FOOTER_LEN) as u64;
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
        let nearly = (limit * u64::from(100 - table.block_size_deviation)).div_ceil(100);
        size > nearly && self.data.size_after(key, value) as u64 > limit
    }

    #[inline]
    fn count(&mut self, key: &[u8], value: &[u8]) {
        let (_, packed) = split(key);
        let properties = &mut self.properties;
        properties.num_entries += 1;
        properties.raw_key_size += key.len() as u64;
        properties.raw_value_size += value.len() as u64;
        match ValueType::from_byte(packed as u8) {
            Some(ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp) => {
                properties.num_deletions += 1;
            }
            Some(ValueType::Merge) => properties.merge_operands += 1,
            _ => {}
        }
        let seq = packed_seq(packed).0;
        self.smallest_seq = self.smallest_seq.min(seq);
        self.largest_seq = self.largest_seq.max(seq);
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

    /// Entries added, range tombstones included.
    pub fn num_entries(&self) -> u64 {
        self.properties.num_entries
    }

    /// True before the first entry.
    pub fn is_empty(&self) -> bool {
        self.properties.num_entries == 0
    }

    /// Writes what remains and hands everything to the operating system; nothing is synced.
    ///
    /// # Errors
    /// InvalidArgument for an empty table or options that cannot be written, and those of the file.
    pub fn finish(&mut self) -> Result<TableSummary> {
        if self.is_empty() {
            return Err(Error::invalid_argument("a table without entries cannot be finished"));
        }
        check_options(&self.options.table, self.options.prefix_extractor)?;
        self.finish_data()?;
        self.properties.data_size = self.sink.offset;
        self.properties.tail_start_offset = self.sink.offset;
        let mut metaindex: Vec<(&str, BlockHandle)> = Vec::new();
        let format = self.index_format();
        // Without point keys there is nothing to filter, and no separator for a partition.
        let has_keys = !self.last_key.is_empty();
        if let Some(filter) = self.filter.take().filter(|_| has_keys) {
            metaindex.push(self.append_filter(filter, format)?);
        }
        let index = self.append_index(format, &mut metaindex)?;
        if !self.dictionary.is_empty() {
            metaindex.push(("rocksdb.compression_dict", self.sink.append_plain(&self.dictionary)?));
        }
        if !self.range_tombstones.is_empty() {
            let block = range_del::encode(&mut self.range_tombstones, &self.options.comparator);
            metaindex.push(("rocksdb.range_del", self.sink.append_plain(&block)?));
        }
        let version = self.options.table.format_version;
        self.complete_properties();
        let properties = self.properties.encode(version);
        metaindex.push(("rocksdb.properties", self.sink.append_plain(&properties)?));
        if version >= 6 {
            metaindex.push(("rocksdb.index", index));
        }
        let metaindex = self.append_metaindex(metaindex)?;
        self.append_footer(metaindex, index)?;
        self.sink.file.flush()?;
        Ok(self.summary())
    }

    /// Writes the last data block and notes its separator.
    fn finish_data(&mut self) -> Result<()> {
        if !self.data.is_empty() {
            self.finish_data_block()?;
        }
        self.stop_sampling()?;
        if self.separator_due {
            self.separator_due = false;
            let separator = match self.options.table.index_shortening {
                IndexShortening::SeparatorsAndSuccessor => {
                    self.options.comparator.internal_successor(&self.last_key)
                }
                _ => self.last_key.clone(),
            };
            self.index.add_separator(separator, false);
        }
        Ok(())
    }

    fn index_format(&mut self) -> IndexFormat {
        let table = &self.options.table;
        let format = IndexFormat {
            user_keys: table.format_version >= 3 && !self.index.splits_user_key(),
            delta: table.format_version >= 4,
            restart_interval: table.index_block_restart_interval,
        };
        self.properties.index_key_is_user_key = format.user_keys;
        self.properties.index_value_is_delta_encoded = format.delta;
        format
    }

    /// Writes the filter; gives its entry in the metaindex.
    fn append_filter(
        &mut self,
        filter: FilterWriter,
        format: IndexFormat,
    ) -> Result<(&'static str, BlockHandle)> {
        self.properties.num_filter_entries = filter.num_entries();
        match filter.finish(&self.last_key) {
            FilterOutput::Full(block) => {
                self.properties.filter_size = block.len() as u64;
                Ok(("fullfilter.rocksdb.BuiltinBloomFilter", self.sink.append_plain(&block)?))
            }
            FilterOutput::Partitioned(partitions) => {
                self.properties.decoupled_partitioned_filters = true;
                let mut entries = Vec::new();
                for (separator, block) in partitions {
                    self.properties.filter_size += block.len() as u64;
                    entries.push((separator, self.sink.append_plain(&block)?));
                }
                let top = partition_index(format, &entries);
                self.properties.filter_size += top.len() as u64;
                Ok(("partitionedfilter.rocksdb.BuiltinBloomFilter", self.sink.append_plain(&top)?))
            }
        }
    }

    /// Writes the index, and what a hash search index has besides.
    fn append_index(
        &mut self,
        format: IndexFormat,
        metaindex: &mut Vec<(&'static str, BlockHandle)>,
    ) -> Result<BlockHandle> {
        if let Some((prefixes, metadata)) = self.index.hash_blocks() {
            let mut compressor = self.index_compressor();
            for (name, block) in
                [("rocksdb.hashindex.prefixes", prefixes), ("rocksdb.hashindex.metadata", metadata)]
            {
                metaindex.push((name, self.sink.append_compressed(&block, &mut compressor)?));
            }
        }
        let mut compressor = self.index_compressor();
        let sink = &mut self.sink;
        let written = self.index.write(format, |block| sink.append_compressed(block, &mut compressor))?;
        self.properties.index_size = written.size;
        self.properties.index_partitions = written.partitions;
        self.properties.top_level_index_size = written.top_level_size;
        Ok(written.handle)
    }

    /// The compressor of index blocks: they never follow the dictionary.
    fn index_compressor(&self) -> Compressor {
        let options = &self.options;
        let codec = match options.table.enable_index_compression {
            true => options.compression,
            false => CompressionType::None,
        };
        Compressor::new(codec, &options.compression_opts).verifying(options.table.verify_compression)
    }

    fn append_metaindex(&mut self, mut blocks: Vec<(&str, BlockHandle)>) -> Result<BlockHandle> {
        blocks.sort_unstable_by_key(|(name, _)| *name);
        let mut builder = BlockBuilder::new(1);
        for (name, handle) in blocks {
            let mut value = Vec::new();
            handle.encode(&mut value);
            builder.add(name.as_bytes(), &value);
        }
        self.sink.append_plain(builder.finish())
    }

    fn append_footer(&mut self, metaindex: BlockHandle, index: BlockHandle) -> Result<()> {
        let footer = Footer {
            checksum: self.sink.checksum,
            version: self.options.table.format_version,
            base_context_checksum: self.sink.base_context_checksum,
            metaindex,
            index: Some(index),
        };
        let mut bytes = Vec::new();
        footer.encode(self.sink.offset, &mut bytes);
        self.sink.file.append(&bytes)?;
        self.sink.offset += bytes.len() as u64;
        Ok(())
    }

    fn complete_properties(&mut self) {
        let options = &self.options;
        let properties = &mut self.properties;
        let name_of = |name: Option<String>| name.unwrap_or_else(|| "nullptr".to_string());
        properties.index_type = Some(options.table.index_type as u32);
        properties.whole_key_filtering = options.table.whole_key_filtering;
        properties.prefix_filtering = options.prefix_extractor.is_some();
        properties.prefix_extractor_name =
            name_of(options.prefix_extractor.map(|extractor| extractor.name().into_owned()));
        properties.column_family_id = u64::from(options.column_family_id);
        properties.column_family_name.clone_from(&options.column_family_name);
        properties.comparator_name = options.comparator.name().to_string();
        properties.merge_operator_name = name_of(options.merge_operator_name.clone());
        if properties.filter_size > 0 {
            properties.filter_policy_name = match options.table.filter_policy {
                FilterPolicy::Ribbon { .. } => "ribbonfilter".to_string(),
                _ => "bloomfilter".to_string(),
            };
        }
        properties.compression_name = compression_name(options, self.sink.codecs_used);
        properties.compression_options = compress::property_options(&options.compression_opts);
        properties.creation_time = options.creation_time;
        properties.oldest_key_time = options.oldest_key_time;
        properties.newest_key_time = options.newest_key_time;
        properties.file_creation_time = options.file_creation_time;
        properties.smallest_seqno = self.smallest_seq;
        properties.largest_seqno = self.largest_seq;
        properties.db_id.clone_from(&options.db_id);
        properties.session_id.clone_from(&options.session_id);
        properties.original_file_number = options.file_number;
        if options.external {
            properties.external_version = Some(EXTERNAL_VERSION);
            properties.global_seqno = Some(0);
        }
    }

    fn summary(&self) -> TableSummary {
        let (smallest, largest) = self.bounds();
        TableSummary {
            file_size: self.sink.offset,
            smallest,
            largest,
            smallest_seq: SeqNum(self.smallest_seq),
            largest_seq: SeqNum(self.largest_seq),
            tail_size: self.sink.offset - self.properties.tail_start_offset,
            properties: self.properties.clone(),
            unique_id: unique_id(&self.options),
        }
    }

    /// First and last internal key, range tombstones included.
    fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        let order = |a: &Vec<u8>, b: &Vec<u8>| self.options.comparator.compare_internal(a, b);
        let points = |key: &Vec<u8>| Some(key.clone()).filter(|key| !key.is_empty());
        let starts = self.range_tombstones.iter().map(RangeTombstone::start_key);
        let ends = self.range_tombstones.iter().map(RangeTombstone::end_key);
        let smallest = points(&self.smallest).into_iter().chain(starts).min_by(order);
        let largest = points(&self.last_key).into_iter().chain(ends).max_by(order);
        (smallest.unwrap_or_default(), largest.unwrap_or_default())
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

fn unique_id(options: &TableWriterOptions) -> [u64; 2] {
    table_unique_id(&options.db_id, &options.session_id, options.file_number)
}

/// The salt of block checksums, different for each table so that a block of another one does not verify.
fn base_context_checksum(options: &TableWriterOptions) -> u32 {
    if options.table.format_version < 6 {
        return 0;
    }
    let [a, b] = unique_id(options);
    let hash = xxh3_64(&[a.to_le_bytes(), b.to_le_bytes()].concat()) as u32;
    hash.max(1)
}

fn data_builder(table: &BlockBasedTableOptions, comparator: &Comparator) -> BlockBuilder {
    // Only if different bytes are different keys can a hash of them stand for the key.
    let by_bytes = matches!(comparator, Comparator::Bytewise | Comparator::ReverseBytewise);
    let wanted = table.data_block_index_type == DataBlockIndexType::BinaryAndHash;
    let hash_index =
        (by_bytes && wanted).then(|| HashIndexBuilder::new(table.data_block_hash_table_util_ratio));
    BlockBuilder::for_data(table.block_restart_interval, table.use_delta_encoding, hash_index)
}

/// The codec property: before format_version 7 the codec asked for, from then on the ones used.
fn compression_name(options: &TableWriterOptions, used: u64) -> String {
    if options.table.format_version < 7 {
        return compress::property_name(options.compression).to_string();
    }
    let manager = if options.compression == CompressionType::None { "" } else { "BuiltinV2" };
    let numbers: String =
        (1..8).filter(|codec| used & 1 << codec != 0).map(|codec| format!("{codec:02X}")).collect();
    format!("{manager};{numbers};")
}

//! Writes one table, front to back.
//!
//! ```text
//! add -> data block full? -> compress, checksum, append -> note separator and handle
//! finish -> filter, index, properties, metaindex, footer
//! ```
//! Keys come in ascending internal key order, which is asserted. Nothing is synced before
//! [`TableWriter::sync_and_close`].
//! Source: RocksDB `table/block_based/block_based_table_builder.cc`.

use crate::block_builder::BlockBuilder;
use crate::compress::{self, Compressor};
use crate::filter::BloomBuilder;
use crate::format::{BlockHandle, Footer, TRAILER_LEN, trailer};
use crate::properties::TableProperties;
use crate::range_del::{self, RangeTombstone};
use crate::unique_id::table_unique_id;
use outcrop_base::coding::put_zigzag64;
use outcrop_base::keys::{FOOTER_LEN, packed_seq, split, user_key};
use outcrop_base::xxph3::xxph3_64;
use outcrop_base::{Comparator, Error, Result, SeqNum, ValueType};
use outcrop_env::WriteFile;
use outcrop_options::{BlockBasedTableOptions, CompressionOptions, CompressionType, FilterPolicy};
use std::cmp::Ordering;

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

/// Writes one table.
pub struct TableWriter {
    file: Box<dyn WriteFile>,
    options: TableWriterOptions,
    offset: u64,
    data: BlockBuilder,
    index: IndexWriter,
    filter: Option<BloomBuilder>,
    properties: TableProperties,
    smallest: Vec<u8>,
    smallest_seq: u64,
    largest_seq: u64,
    compressor: Compressor,
    compressed: Vec<u8>,
    /// A data block was finished; its separator waits for the next key.
    pending: Option<BlockHandle>,
    last_key: Vec<u8>,
    range_tombstones: Vec<RangeTombstone>,
}

/// Separators and handles, until it is known what kind of keys the index has.
#[derive(Default)]
struct IndexWriter {
    separators: Vec<Vec<u8>>,
    handles: Vec<BlockHandle>,
    /// Two blocks share a user key: separators must be internal keys.
    splits_user_key: bool,
}

impl TableWriter {
    /// Starts a table in the empty `file`.
    ///
    /// # Errors
    /// None here; options that cannot be written are refused by [`TableWriter::finish`] of the first block.
    pub fn new(file: Box<dyn WriteFile>, options: TableWriterOptions) -> TableWriter {
        let filter = match options.table.filter_policy {
            FilterPolicy::Bloom { bits_per_key }
                if !options.omit_filter
                    && options.table.whole_key_filtering
                    && options.table.format_version >= 5 =>
            {
                Some(BloomBuilder::new(bits_per_key))
            }
            _ => None,
        };
        let data = BlockBuilder::new(options.table.block_restart_interval);
        TableWriter {
            file,
            offset: 0,
            data,
            index: IndexWriter::default(),
            filter,
            properties: TableProperties::default(),
            smallest: Vec::new(),
            smallest_seq: u64::MAX,
            largest_seq: 0,
            compressor: Compressor::new(options.compression, &options.compression_opts),
            compressed: Vec::new(),
            pending: None,
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
        if let Some(handle) = self.pending.take() {
            self.index.add(self.options.comparator.internal_separator(&self.last_key, key), handle);
            self.index.splits_user_key |= user_key(&self.last_key) == user_key(key);
        }
        if self.smallest.is_empty() {
            self.smallest.extend_from_slice(key);
        }
        self.data.add(key, value);
        self.count(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
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
        let nearly = limit * u64::from(100 - table.block_size_deviation.min(100)) / 100;
        size > nearly && self.data.size_after(key, value) as u64 > limit
    }

    #[inline]
    fn count(&mut self, key: &[u8], value: &[u8]) {
        let (user_key, packed) = split(key);
        if let Some(filter) = &mut self.filter {
            filter.add(xxph3_64(user_key));
        }
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
        let contents = self.data.finish();
        let codec = self.compressor.compress(contents, &mut self.compressed)?;
        let stored = if codec == CompressionType::None { contents } else { &self.compressed };
        let handle = append_block(&mut *self.file, &mut self.offset, &self.options, stored, codec as u8)?;
        self.pending = Some(handle);
        self.properties.num_data_blocks += 1;
        self.data.reset();
        Ok(())
    }

    /// Size of the file if it were finished now, in bytes, without the tail.
    #[inline]
    pub fn estimated_size(&self) -> u64 {
        self.offset + self.data.size() as u64
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
    /// InvalidArgument for an empty table or a format this writer does not produce, and those of the file.
    pub fn finish(&mut self) -> Result<TableSummary> {
        if self.is_empty() {
            return Err(Error::invalid_argument("a table without entries cannot be finished"));
        }
        let version = self.options.table.format_version;
        if !(2..=5).contains(&version) {
            return Err(Error::invalid_argument(format!("format_version {version} is not one of 2 to 5")));
        }
        if !self.data.is_empty() {
            self.finish_data_block()?;
        }
        if let Some(handle) = self.pending.take() {
            self.index.add(self.last_key.clone(), handle);
        }
        self.properties.data_size = self.offset;
        self.properties.tail_start_offset = self.offset;
        let mut metaindex: Vec<(&str, BlockHandle)> = Vec::new();
        if let Some(filter) = self.filter.take() {
            self.properties.num_filter_entries = filter.num_keys() as u64;
            let block = filter.finish();
            self.properties.filter_size = block.len() as u64;
            metaindex.push(("fullfilter.rocksdb.BuiltinBloomFilter", self.append_plain(&block)?));
        }
        let index = self.append_index()?;
        if !self.range_tombstones.is_empty() {
            let block = range_del::encode(&mut self.range_tombstones, &self.options.comparator);
            metaindex.push(("rocksdb.range_del", self.append_plain(&block)?));
        }
        self.complete_properties();
        let properties = self.properties.encode(version);
        metaindex.push(("rocksdb.properties", self.append_plain(&properties)?));
        let metaindex = self.append_metaindex(metaindex)?;
        let mut footer = Vec::new();
        Footer {
            checksum: self.options.table.checksum,
            version,
            base_context_checksum: 0,
            metaindex,
            index: Some(index),
        }
        .encode(&mut footer);
        self.file.append(&footer)?;
        self.offset += footer.len() as u64;
        self.file.flush()?;
        Ok(self.summary())
    }

    fn append_index(&mut self) -> Result<BlockHandle> {
        let table = &self.options.table;
        let user_keys = table.format_version >= 3 && !self.index.splits_user_key;
        let delta = table.format_version >= 4;
        self.properties.index_key_is_user_key = user_keys;
        self.properties.index_value_is_delta_encoded = delta;
        let block = self.index.block(table.index_block_restart_interval, user_keys, delta);
        self.properties.index_size = (block.len() + TRAILER_LEN) as u64;
        let codec = self.compressor.compress(&block, &mut self.compressed)?;
        let stored = if codec == CompressionType::None { &block } else { &self.compressed };
        append_block(&mut *self.file, &mut self.offset, &self.options, stored, codec as u8)
    }

    fn append_plain(&mut self, block: &[u8]) -> Result<BlockHandle> {
        append_block(&mut *self.file, &mut self.offset, &self.options, block, 0)
    }

    fn append_metaindex(&mut self, mut blocks: Vec<(&str, BlockHandle)>) -> Result<BlockHandle> {
        blocks.sort_unstable_by_key(|(name, _)| *name);
        let mut builder = BlockBuilder::new(1);
        for (name, handle) in blocks {
            let mut value = Vec::new();
            handle.encode(&mut value);
            builder.add(name.as_bytes(), &value);
        }
        let block = builder.finish().to_vec();
        self.append_plain(&block)
    }

    fn complete_properties(&mut self) {
        let options = &self.options;
        let properties = &mut self.properties;
        properties.index_type = Some(options.table.index_type as u32);
        properties.whole_key_filtering = options.table.whole_key_filtering;
        properties.column_family_id = u64::from(options.column_family_id);
        properties.column_family_name.clone_from(&options.column_family_name);
        properties.comparator_name = options.comparator.name().to_string();
        properties.merge_operator_name =
            options.merge_operator_name.clone().unwrap_or_else(|| "nullptr".to_string());
        if properties.filter_size > 0 {
            properties.filter_policy_name = "bloomfilter".to_string();
        }
        properties.compression_name = compress::property_name(options.compression).to_string();
        properties.compression_options = format!("level={};", options.compression_opts.level);
        properties.creation_time = options.creation_time;
        properties.oldest_key_time = options.oldest_key_time;
        properties.newest_key_time = options.newest_key_time;
        properties.file_creation_time = options.file_creation_time;
        properties.smallest_seqno = self.smallest_seq;
        properties.largest_seqno = self.largest_seq;
        properties.db_id.clone_from(&options.db_id);
        properties.session_id.clone_from(&options.session_id);
        properties.original_file_number = options.file_number;
    }

    fn summary(&self) -> TableSummary {
        let options = &self.options;
        let (smallest, largest) = self.bounds();
        TableSummary {
            file_size: self.offset,
            smallest,
            largest,
            smallest_seq: SeqNum(self.smallest_seq),
            largest_seq: SeqNum(self.largest_seq),
            tail_size: self.offset - self.properties.tail_start_offset,
            properties: self.properties.clone(),
            unique_id: table_unique_id(&options.db_id, &options.session_id, options.file_number),
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
        if use_fsync {
            self.file.sync_all()?;
        } else {
            self.file.sync()?;
        }
        self.file.close()
    }
}

fn append_block(
    file: &mut dyn WriteFile,
    offset: &mut u64,
    options: &TableWriterOptions,
    stored: &[u8],
    codec: u8,
) -> Result<BlockHandle> {
    let handle = BlockHandle { offset: *offset, size: stored.len() as u64 };
    file.append(stored)?;
    file.append(&trailer(options.table.checksum, 0, stored, codec, *offset))?;
    *offset += handle.size + TRAILER_LEN as u64;
    Ok(handle)
}

impl IndexWriter {
    fn add(&mut self, separator: Vec<u8>, handle: BlockHandle) {
        self.separators.push(separator);
        self.handles.push(handle);
    }

    fn block(&self, restart_interval: u32, user_keys: bool, delta: bool) -> Vec<u8> {
        let mut builder = BlockBuilder::new(restart_interval);
        let mut previous = BlockHandle::default();
        for (separator, handle) in self.separators.iter().zip(&self.handles) {
            let key = if user_keys { &separator[..separator.len() - FOOTER_LEN] } else { &separator[..] };
            let full = || {
                let mut value = Vec::new();
                handle.encode(&mut value);
                value
            };
            if delta {
                builder.add_index(key, |shares_nothing| {
                    if shares_nothing {
                        return full();
                    }
                    let mut value = Vec::new();
                    put_zigzag64(&mut value, handle.size as i64 - previous.size as i64);
                    value
                });
            } else {
                builder.add(key, &full());
            }
            previous = *handle;
        }
        builder.finish().to_vec()
    }
}

//! Everything after the data blocks: filter, index, dictionary, range tombstones, properties, metaindex, footer.

use super::{TableSummary, TableWriter, TableWriterOptions, check_options, restarts};
use crate::block_builder::BlockBuilder;
use crate::compress::{self, Compressor};
use crate::filter::{FilterOutput, FilterWriter};
use crate::format::{BlockHandle, Footer};
use crate::index_writer::{IndexFormat, partition_index};
use crate::properties::{NEWEST_TIMESTAMP, OLDEST_TIMESTAMP};
use crate::range_del::{self, RangeTombstone};
use outcrop_base::{Error, Result, SeqNum};
use outcrop_options::{CompressionType, FilterPolicy, IndexShortening, IndexType};

/// Version of files made for ingestion.
const EXTERNAL_VERSION: u32 = 2;

impl TableWriter {
    /// Writes what remains and hands everything to the operating system; nothing is synced.
    ///
    /// # Errors
    /// InvalidArgument for an empty table or options that cannot be written, and those of the file.
    pub fn finish(&mut self) -> Result<TableSummary> {
        if self.is_empty() {
            return Err(Error::invalid_argument("a table without entries cannot be finished"));
        }
        check_options(&self.options.table, self.options.prefix_extractor.as_ref())?;
        if self.options.external && self.largest_seq > 0 {
            return Err(Error::invalid_argument(
                "a table for ingestion with keys that have sequence numbers",
            ));
        }
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
            // Sizes alone give the offsets only of blocks without gaps between them.
            delta: table.format_version >= 4 && !table.block_align,
            restart_interval: restarts(table.index_block_restart_interval),
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
            let mut compressor = index_compressor(&self.options);
            for (name, block) in
                [("rocksdb.hashindex.prefixes", prefixes), ("rocksdb.hashindex.metadata", metadata)]
            {
                metaindex.push((name, self.sink.append_compressed(&block, &mut compressor)?));
            }
        }
        // The compressor of data blocks serves, unless it has the dictionary that index blocks never follow.
        let mut own = None;
        let compressor = match self.dictionary.is_empty() && self.options.table.enable_index_compression {
            true => &mut self.compressor,
            false => own.insert(index_compressor(&self.options)),
        };
        let sink = &mut self.sink;
        let written = self.index.write(format, |block| sink.append_compressed(block, compressor))?;
        self.properties.index_size = written.size;
        self.properties.index_partitions = written.partitions;
        self.properties.top_level_index_size = written.top_level_size;
        Ok(written.handle)
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
        properties.data_block_restart_interval = u64::from(restarts(options.table.block_restart_interval));
        properties.index_block_restart_interval = match options.table.index_type {
            IndexType::HashSearch => 1,
            _ => u64::from(restarts(options.table.index_block_restart_interval)),
        };
        properties.separate_key_value_in_data_block = options.table.separate_key_value_in_data_block;
        properties.whole_key_filtering = options.table.whole_key_filtering;
        properties.prefix_filtering = options.prefix_extractor.is_some();
        properties.prefix_extractor_name =
            name_of(options.prefix_extractor.as_ref().map(|extractor| extractor.name().into_owned()));
        properties.column_family_id = u64::from(options.column_family_id);
        properties.column_family_name.clone_from(&options.column_family_name);
        properties.comparator_name = options.comparator.name().to_string();
        properties.merge_operator_name = name_of(options.merge_operator_name.clone());
        if properties.filter_size > 0 {
            properties.filter_policy_name = match options.table.filter_policy {
                FilterPolicy::Ribbon { .. } => "ribbonfilter".to_string(),
                FilterPolicy::LegacyBloom { .. } => "rocksdb.internal.LegacyBloomFilter".to_string(),
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
        properties.host_id.clone_from(&options.host_id);
        properties.original_file_number = options.file_number;
        if let Some((oldest, newest)) = self.stamps.as_ref().and_then(|stamps| stamps.bounds) {
            properties.others.insert(OLDEST_TIMESTAMP.to_string(), oldest.as_bytes().to_vec());
            properties.others.insert(NEWEST_TIMESTAMP.to_string(), newest.as_bytes().to_vec());
        }
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
            unique_id: self.options.unique_id(),
            stored: self.sink.stored,
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
}

/// A compressor for blocks about the table.
fn index_compressor(options: &TableWriterOptions) -> Compressor {
    let codec = match options.table.enable_index_compression {
        true => options.compression,
        false => CompressionType::None,
    };
    Compressor::new(codec, &options.compression_opts).verifying(options.table.verify_compression)
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

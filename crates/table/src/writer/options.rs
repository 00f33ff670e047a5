//! The settings of a table, the facts about the finished one, and the entries that cannot be written.

use crate::block_sink::StoredBlocks;
use crate::properties::TableProperties;
use crate::unique_id::table_unique_id;
use outcrop_base::{Comparator, Error, PrefixExtractor, Result, SeqNum};
use outcrop_options::{
    BlockBasedTableOptions, CompressionOptions, CompressionType, DataBlockIndexType, IndexType,
};

/// Format versions that can be written.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=7;

/// The settings of a table, and the properties it records.
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
    /// Name of the host, if the table is to have it; else empty.
    pub host_id: String,
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

/// The facts about a finished table.
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
    /// Bytes after the last data block.
    pub tail_size: u64,
    /// The contents of the properties block.
    pub properties: TableProperties,
    /// Identity, as the MANIFEST stores it.
    pub unique_id: [u64; 2],
    /// How its blocks were stored.
    pub stored: StoredBlocks,
}

/// Refuses what cannot be written.
///
/// # Errors
/// InvalidArgument naming the option.
pub fn check_options(
    table: &BlockBasedTableOptions,
    prefix_extractor: Option<&PrefixExtractor>,
) -> Result<()> {
    let version = table.format_version;
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        return Err(Error::invalid_argument(format!(
            "format_version {version} is not one of {first} to {last}"
        )));
    }
    if table.block_align && !table.block_size.is_power_of_two() {
        return Err(Error::invalid_argument(format!(
            "block_align needs a power of 2 as block_size, not {}",
            table.block_size
        )));
    }
    if table.index_type == IndexType::HashSearch && prefix_extractor.is_none() {
        return Err(Error::invalid_argument("index_type kHashSearch needs a prefix_extractor"));
    }
    let ratio = table.data_block_hash_table_util_ratio;
    if table.data_block_index_type == DataBlockIndexType::BinaryAndHash && !(ratio > 0.0 && ratio.is_finite())
    {
        return Err(Error::invalid_argument(format!(
            "data_block_hash_table_util_ratio {ratio} is not above 0"
        )));
    }
    Ok(())
}

impl TableWriterOptions {
    /// The identity of the table, as the MANIFEST stores it.
    pub fn unique_id(&self) -> [u64; 2] {
        table_unique_id(&self.db_id, &self.session_id, self.file_number)
    }
}

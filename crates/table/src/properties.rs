//! The properties block: facts about a table, written with it.
//!
//! Source: RocksDB `table/meta_blocks.cc`, `include/rocksdb/table_properties.h`; names in
//! `docs/format/table.md`.

use crate::block::{Contents, decode_entry};
use crate::block_builder::BlockBuilder;
use outcrop_base::coding::{get_varint64, put_varint64};
use outcrop_base::{Error, Result, Timestamp};
use std::collections::BTreeMap;

/// The properties of a table. Numbers that are absent are 0.
///
/// ```
/// # use outcrop_table as outcrop;
/// fn average_key(table: &outcrop::TableProperties) -> u64 {
///     table.raw_key_size / table.num_entries.max(1)
/// }
/// # assert_eq!(average_key(&outcrop::TableProperties::default()), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableProperties {
    /// Entries, range tombstones included.
    pub num_entries: u64,
    /// Deletions of any kind, range tombstones included.
    pub num_deletions: u64,
    /// Merge operands.
    pub merge_operands: u64,
    /// Range tombstones.
    pub num_range_deletions: u64,
    /// Bytes of internal keys, uncompressed.
    pub raw_key_size: u64,
    /// Bytes of values, uncompressed.
    pub raw_value_size: u64,
    /// Data blocks.
    pub num_data_blocks: u64,
    /// Bytes of the file before its tail.
    pub data_size: u64,
    /// Bytes of the index block with trailer, uncompressed.
    pub index_size: u64,
    /// Bytes of the filter block.
    pub filter_size: u64,
    /// Keys in the filter.
    pub num_filter_entries: u64,
    /// 0 binary search, 1 hash, 2 two-level, 3 binary search with first keys; `None`: absent.
    pub index_type: Option<u32>,
    /// Separators in the index are user keys.
    pub index_key_is_user_key: bool,
    /// Handles in the index are delta-encoded.
    pub index_value_is_delta_encoded: bool,
    /// Whole user keys are in the filter; absent means yes.
    pub whole_key_filtering: bool,
    /// Prefixes are in the filter; absent means yes.
    pub prefix_filtering: bool,
    /// Name of the prefix extractor, or `nullptr`.
    pub prefix_extractor_name: String,
    /// Partitions of a two-level index.
    pub index_partitions: u64,
    /// Bytes of the top block of a two-level index with trailer, uncompressed.
    pub top_level_index_size: u64,
    /// Filter partitions are cut where they are full, wherever those of the index end.
    pub decoupled_partitioned_filters: bool,
    /// Entries between restart points of data blocks.
    pub data_block_restart_interval: u64,
    /// Entries between restart points of index blocks.
    pub index_block_restart_interval: u64,
    /// Data blocks hold keys and values apart. RocksDB then divides by the restart interval: it must be there.
    pub separate_key_value_in_data_block: bool,
    /// Column family id; 0x7FFFFFFF unknown.
    pub column_family_id: u64,
    /// Column family name.
    pub column_family_name: String,
    /// Name of the key order.
    pub comparator_name: String,
    /// Name of the merge operator, or `nullptr`.
    pub merge_operator_name: String,
    /// Name of the filter policy.
    pub filter_policy_name: String,
    /// Codec.
    pub compression_name: String,
    /// Settings of the codec, for people.
    pub compression_options: String,
    /// Time of the oldest data's first write, seconds since the epoch.
    pub creation_time: u64,
    /// Oldest key's time, seconds since the epoch.
    pub oldest_key_time: u64,
    /// Newest key's time, seconds since the epoch.
    pub newest_key_time: u64,
    /// When the file was written, seconds since the epoch.
    pub file_creation_time: u64,
    /// Offset just past the last data block.
    pub tail_start_offset: u64,
    /// Smallest sequence number of any entry; `u64::MAX` in tables that do not say.
    pub smallest_seqno: u64,
    /// Largest sequence number of any entry; `u64::MAX` in tables that do not say.
    pub largest_seqno: u64,
    /// Identity of the database that wrote it.
    pub db_id: String,
    /// Session of that database.
    pub session_id: String,
    /// Host it was written on.
    pub host_id: String,
    /// Its number then.
    pub original_file_number: u64,
    /// Present in files made for ingestion.
    pub external_version: Option<u32>,
    /// The sequence number of all keys, in files made for ingestion; 0: the MANIFEST says it.
    pub global_seqno: Option<u64>,
    /// Everything else, as stored.
    pub others: BTreeMap<String, Vec<u8>>,
}

/// A numeric property: its name and where it is kept.
type NumberRow = (&'static str, fn(&mut TableProperties) -> &mut u64);
/// A text property.
type TextRow = (&'static str, fn(&mut TableProperties) -> &mut String);

/// Numbers stored as varints.
const NUMBERS: &[NumberRow] = &[
    ("rocksdb.column.family.id", |p| &mut p.column_family_id),
    ("rocksdb.data.block.restart.interval", |p| &mut p.data_block_restart_interval),
    ("rocksdb.index.block.restart.interval", |p| &mut p.index_block_restart_interval),
    ("rocksdb.creation.time", |p| &mut p.creation_time),
    ("rocksdb.data.size", |p| &mut p.data_size),
    ("rocksdb.deleted.keys", |p| &mut p.num_deletions),
    ("rocksdb.file.creation.time", |p| &mut p.file_creation_time),
    ("rocksdb.filter.size", |p| &mut p.filter_size),
    ("rocksdb.index.size", |p| &mut p.index_size),
    ("rocksdb.key.largest.seqno", |p| &mut p.largest_seqno),
    ("rocksdb.key.smallest.seqno", |p| &mut p.smallest_seqno),
    ("rocksdb.merge.operands", |p| &mut p.merge_operands),
    ("rocksdb.newest.key.time", |p| &mut p.newest_key_time),
    ("rocksdb.num.data.blocks", |p| &mut p.num_data_blocks),
    ("rocksdb.num.entries", |p| &mut p.num_entries),
    ("rocksdb.num.filter_entries", |p| &mut p.num_filter_entries),
    ("rocksdb.num.range-deletions", |p| &mut p.num_range_deletions),
    ("rocksdb.oldest.key.time", |p| &mut p.oldest_key_time),
    ("rocksdb.original.file.number", |p| &mut p.original_file_number),
    ("rocksdb.raw.key.size", |p| &mut p.raw_key_size),
    ("rocksdb.raw.value.size", |p| &mut p.raw_value_size),
    ("rocksdb.tail.start.offset", |p| &mut p.tail_start_offset),
];

/// Texts stored as they are.
const TEXTS: &[TextRow] = &[
    ("rocksdb.column.family.name", |p| &mut p.column_family_name),
    ("rocksdb.comparator", |p| &mut p.comparator_name),
    ("rocksdb.compression", |p| &mut p.compression_name),
    ("rocksdb.compression_options", |p| &mut p.compression_options),
    ("rocksdb.creating.db.identity", |p| &mut p.db_id),
    ("rocksdb.creating.host.identity", |p| &mut p.host_id),
    ("rocksdb.creating.session.identity", |p| &mut p.session_id),
    ("rocksdb.filter.policy", |p| &mut p.filter_policy_name),
    ("rocksdb.merge.operator", |p| &mut p.merge_operator_name),
    ("rocksdb.prefix.extractor.name", |p| &mut p.prefix_extractor_name),
];

const INDEX_TYPE: &str = "rocksdb.block.based.table.index.type";
const WHOLE_KEY: &str = "rocksdb.block.based.table.whole.key.filtering";
const PREFIX_FILTERING: &str = "rocksdb.block.based.table.prefix.filtering";
const KEY_IS_USER_KEY: &str = "rocksdb.index.key.is.user.key";
const VALUE_IS_DELTA: &str = "rocksdb.index.value.is.delta.encoded";
const DECOUPLED: &str = "rocksdb.block.based.table.decoupled.partitioned.filters";
const INDEX_PARTITIONS: &str = "rocksdb.index.partitions";
const TOP_LEVEL_INDEX_SIZE: &str = "rocksdb.top-level.index.size";
const SEPARATED: &str = "rocksdb.separate.key.value.in.data.block";
const EXTERNAL_VERSION: &str = "rocksdb.external_sst_file.version";
/// The oldest user-defined timestamp of a table, of those that have some.
pub const OLDEST_TIMESTAMP: &str = "rocksdb.timestamp_min";
/// The newest user-defined timestamp of a table, of those that have some.
pub const NEWEST_TIMESTAMP: &str = "rocksdb.timestamp_max";
/// Names of the collectors of the table, as `[name,name]`.
pub const COLLECTORS: &str = "rocksdb.property.collectors";
/// Eight bytes, so that ingestion can write the number into a finished file.
pub const GLOBAL_SEQNO: &str = "rocksdb.external_sst_file.global_seqno";

impl TableProperties {
    /// Decodes the contents of a properties block.
    ///
    /// # Errors
    /// Corruption if the block does not decode.
    pub fn decode(block: &[u8]) -> Result<TableProperties> {
        let mut properties = TableProperties {
            whole_key_filtering: true,
            prefix_filtering: true,
            smallest_seqno: u64::MAX,
            largest_seqno: u64::MAX,
            ..TableProperties::default()
        };
        for (name, value) in decode_pairs(block)? {
            properties.set(name, value);
        }
        Ok(properties)
    }

    /// The newest user-defined timestamp of the table; `None`: it has none, or does not say.
    pub fn newest_timestamp(&self) -> Option<Timestamp> {
        Timestamp::from_bytes(self.others.get(NEWEST_TIMESTAMP)?).ok()
    }

    fn set(&mut self, name: Vec<u8>, value: &[u8]) {
        let name = String::from_utf8_lossy(&name).into_owned();
        let number = || get_varint64(value).map(|(number, _)| number);
        let fixed64 = || value.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let fixed32 = || value.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
        if let Some((_, field)) = NUMBERS.iter().find(|(known, _)| *known == name) {
            // A number that does not decode is passed over, as RocksDB does.
            if let Some(number) = number() {
                *field(self) = number;
            }
        } else if let Some((_, field)) = TEXTS.iter().find(|(known, _)| *known == name) {
            *field(self) = String::from_utf8_lossy(value).into_owned();
        } else {
            match name.as_str() {
                INDEX_TYPE => self.index_type = fixed32(),
                WHOLE_KEY => self.whole_key_filtering = value == b"1",
                KEY_IS_USER_KEY => self.index_key_is_user_key = number() == Some(1),
                VALUE_IS_DELTA => self.index_value_is_delta_encoded = number() == Some(1),
                PREFIX_FILTERING => self.prefix_filtering = value == b"1",
                DECOUPLED => self.decoupled_partitioned_filters = value == b"1",
                INDEX_PARTITIONS => self.index_partitions = number().unwrap_or(0),
                TOP_LEVEL_INDEX_SIZE => self.top_level_index_size = number().unwrap_or(0),
                SEPARATED => self.separate_key_value_in_data_block = number() == Some(1),
                EXTERNAL_VERSION => self.external_version = fixed32(),
                GLOBAL_SEQNO => self.global_seqno = fixed64(),
                _ => {
                    self.others.insert(name, value.to_vec());
                }
            }
        }
    }

    /// The contents of a properties block.
    pub fn encode(&self, format_version: u32) -> Vec<u8> {
        let mut builder = BlockBuilder::new(u32::MAX);
        for (name, value) in self.to_pairs(format_version) {
            builder.add(name.as_bytes(), &value);
        }
        builder.finish().to_vec()
    }

    /// Every property by its name, as it is stored. `format_version` is said where the table itself did not.
    pub fn to_pairs(&self, format_version: u32) -> BTreeMap<String, Vec<u8>> {
        let varint = |number: u64| {
            let mut bytes = Vec::new();
            put_varint64(&mut bytes, number);
            bytes
        };
        let mut copy = self.clone();
        let mut pairs: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for (name, field) in NUMBERS {
            pairs.insert(name, varint(*field(&mut copy)));
        }
        for (name, field) in TEXTS {
            pairs.insert(name, field(&mut copy).clone().into_bytes());
        }
        pairs.insert(INDEX_TYPE, self.index_type.unwrap_or(0).to_le_bytes().to_vec());
        let flag = |set: bool| if set { b"1".to_vec() } else { b"0".to_vec() };
        pairs.insert(WHOLE_KEY, flag(self.whole_key_filtering));
        pairs.insert(PREFIX_FILTERING, flag(self.prefix_filtering));
        if self.decoupled_partitioned_filters {
            pairs.insert(DECOUPLED, flag(true));
        }
        if self.index_type == Some(2) {
            pairs.insert(INDEX_PARTITIONS, varint(self.index_partitions));
            pairs.insert(TOP_LEVEL_INDEX_SIZE, varint(self.top_level_index_size));
        }
        if self.separate_key_value_in_data_block {
            pairs.insert(SEPARATED, varint(1));
        }
        if let Some(version) = self.external_version {
            pairs.insert(EXTERNAL_VERSION, version.to_le_bytes().to_vec());
        }
        if let Some(seqno) = self.global_seqno {
            pairs.insert(GLOBAL_SEQNO, seqno.to_le_bytes().to_vec());
        }
        pairs.insert(KEY_IS_USER_KEY, varint(u64::from(self.index_key_is_user_key)));
        pairs.insert(VALUE_IS_DELTA, varint(u64::from(self.index_value_is_delta_encoded)));
        pairs.insert("rocksdb.format.version", varint(u64::from(format_version)));
        pairs.insert("rocksdb.fixed.key.length", varint(0));
        pairs.insert(COLLECTORS, b"[]".to_vec());
        for (name, value) in &self.others {
            pairs.insert(name, value.clone());
        }
        pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }
}

/// The entries of a block of names and values.
pub fn decode_pairs(block: &[u8]) -> Result<Vec<(Vec<u8>, &[u8])>> {
    let contents = Contents::parse(block)?;
    let mut pairs = Vec::new();
    let mut key: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < contents.entries.len() {
        let entry = decode_entry(contents.entries, at)
            .filter(|entry| entry.shared <= key.len())
            .ok_or_else(|| Error::corruption(format!("meta block entry at byte {at} does not decode")))?;
        key.truncate(entry.shared);
        key.extend_from_slice(&contents.entries[entry.suffix.0..entry.suffix.1]);
        pairs.push((key.clone(), &contents.entries[entry.value.0..entry.value.1]));
        at = entry.value.1;
    }
    Ok(pairs)
}

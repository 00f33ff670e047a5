//! The blocks that are read and checked once, when a table is opened: metaindex, properties, features,
//! sequence numbers, range tombstones, filter.

use crate::filter::{FILTER_NAME, FilterContents, Residence, TableFilter};
use crate::format::{BlockHandle, TRAILER_LEN, corruption, not_supported, verify_block};
use crate::index::IndexCoding;
use crate::properties::{GLOBAL_SEQNO, TableProperties, decode_pairs};
use crate::range_del::{self, RangeTombstone};
use crate::reader::TableReaderOptions;
use crate::source::BlockSource;
use crate::unique_id::table_unique_id;
use outcrop_base::coding::Decoder;
use outcrop_base::{Comparator, Error, Result, SeqNum};
use outcrop_env::ReadFile;
use outcrop_monitor::Watch;

/// Names in the properties of tables whose codecs mean what they mean here.
const COMPRESSION_MANAGERS: [&str; 2] = ["", "BuiltinV2"];
/// Codec numbers from here on are those of custom managers.
const CUSTOM_CODECS: u8 = 0x80;

/// The metaindex: names and handles of the blocks about the table.
pub struct MetaBlocks(Vec<(String, BlockHandle)>);

impl MetaBlocks {
    /// Reads the metaindex that the footer names.
    pub fn read(source: &BlockSource) -> Result<MetaBlocks> {
        let at = source.footer.metaindex;
        let broken = |error: &dyn std::fmt::Display| corruption(&*source.file, at.offset, error);
        let watching = source.monitor.begin();
        let metaindex = source.read_meta(at, Watch::from(&watching))?;
        let pairs = decode_pairs(&metaindex).map_err(|error| broken(&error))?;
        let handle_of = |(name, value): (Vec<u8>, &[u8])| {
            let handle = BlockHandle::decode(&mut Decoder::new(value))
                .ok_or_else(|| broken(&"a handle in the metaindex does not decode"))?;
            Ok((String::from_utf8_lossy(&name).into_owned(), handle))
        };
        pairs.into_iter().map(handle_of).collect::<Result<_>>().map(MetaBlocks)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &(String, BlockHandle)> {
        self.0.iter()
    }

    /// The block with this name.
    pub fn find(&self, name: &str) -> Option<BlockHandle> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, handle)| *handle)
    }
}

/// Reads the properties block.
pub fn read_properties(source: &BlockSource, blocks: &MetaBlocks) -> Result<TableProperties> {
    let handle = blocks
        .find("rocksdb.properties")
        .ok_or_else(|| corruption(&*source.file, source.footer.metaindex.offset, "no properties block"))?;
    let mut stored = Vec::new();
    let watching = source.monitor.begin();
    source.read_stored(handle, &mut stored, Watch::from(&watching))?;
    let verified = verify_block(&*source.file, &source.footer, handle.offset, &stored);
    if let Err(error) = verified {
        verify_with_seqno_zeroed(source, handle, &stored).ok_or(error)?;
    }
    let contents = &stored[..stored.len() - TRAILER_LEN];
    TableProperties::decode(contents).map_err(|error| source.block_error(handle, &error))
}

/// Ingestion of old wrote the global sequence number into the finished file: the checksum is then that of the
/// block with zeros in its place.
fn verify_with_seqno_zeroed(source: &BlockSource, handle: BlockHandle, stored: &[u8]) -> Option<()> {
    let contents = &stored[..stored.len() - TRAILER_LEN];
    let (_, value) =
        decode_pairs(contents).ok()?.into_iter().find(|(name, _)| name == GLOBAL_SEQNO.as_bytes())?;
    let at = value.as_ptr() as usize - contents.as_ptr() as usize;
    let mut zeroed = stored.to_vec();
    zeroed[at..at + value.len()].fill(0);
    verify_block(&*source.file, &source.footer, handle.offset, &zeroed).ok().map(|_| ())
}

/// Notices a file that is not the one the MANIFEST names.
pub fn check_identity(
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
pub fn check_features(file: &dyn ReadFile, properties: &TableProperties) -> Result<()> {
    match properties.index_type {
        Some(0..=3) => {}
        None => return Err(corruption(file, 0, "the index type property is missing")),
        Some(other) => return Err(not_supported(file, format!("index type {other}"))),
    }
    let name = "rocksdb.embedded.blob.stats";
    if properties.others.contains_key(name) {
        return Err(not_supported(file, format!("the feature behind the property {name}")));
    }
    // Written only where it is false: the keys have no timestamps then.
    if properties.others.contains_key("rocksdb.user.defined.timestamps.persisted") {
        return Err(not_supported(file, "user-defined timestamps that are not persisted"));
    }
    let codecs = properties.compression_name.as_str();
    if codecs == "Xpress" {
        return Err(not_supported(file, "compression Xpress"));
    }
    // From format_version 7 on: "manager;hexadecimal codec numbers;".
    if let Some((manager, rest)) = codecs.split_once(';') {
        let numbers = rest.trim_end_matches(';').as_bytes().chunks(2);
        let custom = numbers
            .filter_map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
            .any(|codec| codec >= CUSTOM_CODECS);
        if custom || !COMPRESSION_MANAGERS.contains(&manager) {
            return Err(not_supported(file, format!("the compression manager {manager:?}")));
        }
    }
    Ok(())
}

/// The sequence number of all keys of a table that was ingested; `None` if keys carry their own.
///
/// Source: RocksDB `table/block_based/block_based_table_reader.cc`, `GetGlobalSequenceNumber`.
pub fn global_seqno(
    file: &dyn ReadFile,
    properties: &TableProperties,
    largest_seqno: SeqNum,
) -> Result<Option<SeqNum>> {
    let stored = properties.global_seqno;
    match (properties.external_version, stored) {
        (None, None) | (Some(1), None) => return Ok(None),
        (None | Some(0..2), _) => {
            return Err(corruption(file, 0, "a global sequence number in a file that cannot have one"));
        }
        (Some(_), _) => {}
    }
    let stored = stored.unwrap_or(0);
    if stored > SeqNum::MAX.0 {
        return Err(corruption(file, 0, format!("global sequence number {stored} is too large")));
    }
    let seqno = match (stored, largest_seqno) {
        (stored, SeqNum::MAX) => stored,
        (0, largest) => largest.0,
        (stored, largest) if stored == largest.0 => stored,
        (stored, largest) => {
            return Err(corruption(
                file,
                0,
                format!("global sequence number {stored}, the MANIFEST says {largest}"),
            ));
        }
    };
    // The number in the keys is 0 already.
    Ok(Some(SeqNum(seqno)).filter(|seqno| *seqno != SeqNum::ZERO))
}

/// Reads the range tombstones.
pub fn read_range_tombstones(
    source: &BlockSource,
    blocks: &MetaBlocks,
    comparator: &Comparator,
) -> Result<Vec<RangeTombstone>> {
    let Some(handle) = blocks.find("rocksdb.range_del") else { return Ok(Vec::new()) };
    let watching = source.monitor.begin();
    let mut tombstones = range_del::decode(&source.read_meta(handle, Watch::from(&watching))?, comparator)
        .map_err(|error| source.block_error(handle, &error))?;
    if let Some(seq) = source.global_seqno {
        tombstones.iter_mut().for_each(|tombstone| tombstone.seq = seq);
    }
    Ok(tombstones)
}

/// Opens the filter, if the table has one that this reader can ask anything.
pub fn open_filter(
    source: &BlockSource,
    blocks: &MetaBlocks,
    properties: &TableProperties,
    coding: IndexCoding,
    options: &TableReaderOptions,
) -> Result<Option<TableFilter>> {
    let same_extractor =
        |extractor: &&outcrop_base::PrefixExtractor| extractor.name() == properties.prefix_extractor_name;
    let prefixes = options.prefix_extractor.as_ref().filter(|_| properties.prefix_filtering);
    let contents = FilterContents {
        whole_keys: properties.whole_key_filtering,
        prefixes: prefixes.filter(same_extractor).cloned(),
    };
    if !contents.whole_keys && contents.prefixes.is_none() {
        return Ok(None);
    }
    let residence = Residence { charged: options.caches_meta_blocks(), insist: options.hold_in_cache };
    if let Some(handle) = blocks.find(&format!("fullfilter.{FILTER_NAME}")) {
        return TableFilter::full(source, handle, contents, residence).map(Some);
    }
    match blocks.find(&format!("partitionedfilter.{FILTER_NAME}")) {
        Some(handle) => {
            let order = (coding, &options.comparator);
            TableFilter::partitioned(source, handle, contents, residence, order).map(Some)
        }
        None => Ok(None),
    }
}

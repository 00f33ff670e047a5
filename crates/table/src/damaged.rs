//! Reading all that is whole of a table that may be damaged: its blocks one by one, past those that do not verify.
//!
//! ```text
//! index whole:    its blocks, as it names them
//! index damaged:  from the first byte on; a block ends where a checksum holds and entries decode (`search.rs`)
//! ```
//! Footer, metaindex, properties and the rest of the tail are taken as far as each of them is whole: where data ends is in the properties, and
//! in the MANIFEST. Nothing that does not verify is given on, with one exception: tables without checksums, whose blocks only have to decode.
//!
//! Invariant: entries come in strictly ascending order; a block that would break it counts as damaged.

mod search;

use crate::block::{Contents, decode_entry};
use crate::compress::Dictionary;
use crate::filter::FILTER_NAME;
use crate::format::{BlockHandle, Footer, TRAILER_LEN, verify_block};
use crate::index::{IndexCoding, IndexEntries, IndexView};
use crate::meta_blocks::{MetaBlocks, check_features, global_seqno, read_properties, read_range_tombstones};
use crate::properties::TableProperties;
use crate::range_del::RangeTombstone;
use crate::reader::Loading;
use crate::source::BlockSource;
use outcrop_base::keys::{ParsedKey, split};
use outcrop_base::{Comparator, Error, ErrorKind, Result, SeqNum};
use outcrop_cache::{Pinned, standalone};
use outcrop_env::ReadFile;
use outcrop_monitor::Watch;
use search::Search;
use std::sync::Arc;

/// The facts that a MANIFEST has of a table, for where the table does not say them any more.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedTable {
    /// Smallest and largest sequence number in it.
    pub seqs: Option<(SeqNum, SeqNum)>,
    /// Bytes after its last data block; 0: unknown.
    pub tail_size: u64,
}

/// A table that may be damaged.
pub struct DamagedTable {
    properties: Option<TableProperties>,
    comparator: Comparator,
    range_tombstones: Vec<RangeTombstone>,
    lost_tombstones: bool,
    damage: Vec<String>,
    blocks: Blocks,
    source: BlockSource,
}

/// Where its data blocks are.
enum Blocks {
    /// The index says it.
    Indexed(Pinned),
    /// They are searched for, up to here.
    Searched(u64),
}

/// A part of a table's data.
pub enum TablePart<'p> {
    /// The entries of a block.
    Whole(&'p TableEntries),
    /// Bytes that hold no whole block.
    Damaged {
        /// Where they begin in the file.
        offset: u64,
        /// How many they are, a block's trailer with them.
        bytes: u64,
        /// A user key that none of their entries is after; `None`: unknown.
        until: Option<&'p [u8]>,
        /// Why they cannot be read.
        reason: String,
    },
}

/// Entries of one block, in order.
#[derive(Default)]
pub struct TableEntries {
    bytes: Vec<u8>,
    /// Where key and value end.
    ends: Vec<(usize, usize)>,
}

impl TableEntries {
    /// Internal keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        starts.zip(&self.ends).map(|(start, (key, end))| (&self.bytes[start..*key], &self.bytes[*key..*end]))
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn last_key(&self) -> Option<&[u8]> {
        let (key, _) = *self.ends.last()?;
        let start = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before].1);
        Some(&self.bytes[start..key])
    }

    /// Takes the entries of a block, which come after the key `last` if there is one.
    fn decode(&mut self, block: &[u8], comparator: &Comparator, last: &[u8]) -> Result<()> {
        self.clear();
        let contents = Contents::parse(block)?;
        let broken =
            |at: usize, what: &str| Error::corruption(format!("entry at byte {at} of a block {what}"));
        let (mut key, mut at) = (last.to_vec(), 0);
        let mut next: Vec<u8> = Vec::new();
        while at < contents.entries.len() {
            let shares = |shared: usize| shared <= if at == 0 { 0 } else { key.len() };
            let entry = decode_entry(contents.entries, at).filter(|entry| shares(entry.shared));
            let entry = entry.ok_or_else(|| broken(at, "does not decode"))?;
            next.clear();
            next.extend_from_slice(&key[..entry.shared]);
            next.extend_from_slice(&contents.entries[entry.suffix.0..entry.suffix.1]);
            ParsedKey::parse(&next).map_err(|_| broken(at, "has no internal key"))?;
            if !key.is_empty() && comparator.compare_internal(&key, &next).is_ge() {
                return Err(broken(at, "is not after the one before"));
            }
            std::mem::swap(&mut key, &mut next);
            self.bytes.extend_from_slice(&key);
            let end_of_key = self.bytes.len();
            self.bytes.extend_from_slice(&contents.entries[entry.value.0..entry.value.1]);
            self.ends.push((end_of_key, self.bytes.len()));
            at = entry.value.1;
        }
        Ok(())
    }
}

/// True of errors that say something of a file. That there is no memory, or no descriptor, does not.
fn is_damage(error: &Error) -> bool {
    /// A device that cannot read its medium.
    const EIO: i32 = 5;
    error.io_source().is_none_or(|source| source.raw_os_error() == Some(EIO))
}

/// The outcome, or what is wrong with the file.
///
/// # Errors
/// Those that say nothing of the file, and NotSupported.
fn or_damage<T>(outcome: Result<T>, damage: &mut Vec<String>) -> Result<Option<T>> {
    match outcome {
        Ok(outcome) => Ok(Some(outcome)),
        Err(error) if is_damage(&error) && error.kind() != ErrorKind::NotSupported => {
            damage.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl DamagedTable {
    /// Reads of `file` what is there beside data. `expected` is what the MANIFEST has of it.
    ///
    /// # Errors
    /// Corruption if nobody can say where its data is; NotSupported for what this reader lacks; of the file system.
    pub fn open(
        file: Arc<dyn ReadFile>,
        comparator: Comparator,
        expected: ExpectedTable,
    ) -> Result<DamagedTable> {
        let mut damage = Vec::new();
        let data_end = |data_size: u64| {
            let known = Some(data_size).filter(|size| *size > 0);
            let told = file.size().checked_sub(expected.tail_size).filter(|_| expected.tail_size > 0);
            known.filter(|end| *end <= file.size()).or(told)
        };
        let footer = match Footer::read(&*file) {
            Ok(footer) => footer,
            Err(error) if is_damage(&error) => {
                damage.push(error.to_string());
                // A version that there is not may be damage, too.
                search::footer(&file, data_end(0), &comparator)?.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        let mut source = BlockSource::uncached(file.clone(), footer);
        let blocks = or_damage(MetaBlocks::read(&source), &mut damage)?;
        let properties = blocks.as_ref().map(|blocks| read_properties(&source, blocks));
        let properties = or_damage(properties.transpose(), &mut damage)?.flatten();
        if let Some(properties) = &properties {
            or_damage(check_features(&*file, properties), &mut damage)?;
        }
        source.global_seqno = match (&properties, expected.seqs) {
            (Some(properties), None) => global_seqno(&*file, properties, SeqNum::MAX)?,
            (Some(properties), Some((_, largest))) => {
                // It is outside of checksums: the MANIFEST is right.
                let told = global_seqno(&*file, properties, largest);
                or_damage(told, &mut damage)?.unwrap_or(Some(largest))
            }
            (None, Some((smallest, largest))) => {
                Some(largest).filter(|seq| *seq == smallest && *seq != SeqNum::ZERO)
            }
            (None, None) => None,
        };
        if let Some(handle) = blocks.as_ref().and_then(|blocks| blocks.find("rocksdb.compression_dict")) {
            let read = source.read_meta(handle, Watch::OFF).and_then(Dictionary::new);
            source.dictionary = or_damage(read, &mut damage)?;
        }
        let tombstones = blocks.as_ref().map(|blocks| read_range_tombstones(&source, blocks, &comparator));
        let tombstones = or_damage(tombstones.transpose(), &mut damage)?.flatten();
        let coding = properties.as_ref().map(|properties| IndexCoding {
            key_is_user_key: properties.index_key_is_user_key,
            value_is_delta: properties.index_value_is_delta_encoded,
            has_first_key: properties.index_type == Some(3),
        });
        if let (Some(blocks), Some(coding)) = (&blocks, coding) {
            check_others(&source, blocks, coding, &mut damage)?;
        }
        let handle = source.footer.index.or_else(|| blocks.as_ref()?.find("rocksdb.index"));
        let index = match (handle, coding) {
            (Some(handle), Some(coding)) => {
                let partitioned = properties.as_ref().is_some_and(|one| one.index_type == Some(2));
                let read = read_index(&source, handle, partitioned, coding, &comparator);
                or_damage(read, &mut damage)?
            }
            (None, Some(_)) => {
                damage.push(format!("{}: there is no index", file.path().display()));
                None
            }
            (_, None) => None,
        };
        let blocks = match index {
            Some(index) => Blocks::Indexed(index),
            None => {
                let data_size = properties.as_ref().map_or(0, |properties| properties.data_size);
                let end = data_end(data_size).filter(|_| source.has_checksums());
                Blocks::Searched(end.ok_or_else(|| Error::corruption(damage.join("; ")))?)
            }
        };
        let lost_tombstones = tombstones.is_none();
        let range_tombstones = tombstones.unwrap_or_default();
        Ok(DamagedTable { properties, comparator, range_tombstones, lost_tombstones, damage, blocks, source })
    }

    /// Its properties, unless they are damaged.
    pub fn properties(&self) -> Option<&TableProperties> {
        self.properties.as_ref()
    }

    /// Its identity, as the MANIFEST stores it, unless its properties are damaged.
    pub fn unique_id(&self) -> Option<[u64; 2]> {
        let properties = self.properties.as_ref()?;
        let (db_id, session_id) = (&properties.db_id, &properties.session_id);
        Some(crate::unique_id::table_unique_id(db_id, session_id, properties.original_file_number))
    }

    /// Its range tombstones, as stored.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        &self.range_tombstones
    }

    /// True if it may have had range tombstones that cannot be read any more.
    pub fn lost_tombstones(&self) -> bool {
        self.lost_tombstones
    }

    /// The damage of all that is no data: footer, index, properties, filter and others.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Passes its data to `visit`, part by part in the order of keys.
    ///
    /// # Errors
    /// Those of `visit`, and of the file system.
    pub fn each_part(&self, mut visit: impl FnMut(TablePart<'_>) -> Result<()>) -> Result<()> {
        let (mut entries, mut last) = (TableEntries::default(), Vec::new());
        let mut buffers = Buffers::default();
        match &self.blocks {
            Blocks::Indexed(index) => {
                let view = IndexView::new(index);
                for number in 0..view.len() {
                    let handle = view.handle(number);
                    let read = self.read_block(handle, &mut buffers, &last, &mut entries);
                    match read {
                        Ok(()) => {
                            if let Some(key) = entries.last_key() {
                                last.clear();
                                last.extend_from_slice(key);
                            }
                            visit(TablePart::Whole(&entries))?;
                        }
                        Err(error) if is_damage(&error) => {
                            let separator = view.separator(number);
                            let user_key =
                                if view.key_is_user_key() { separator } else { split(separator).0 };
                            visit(TablePart::Damaged {
                                offset: handle.offset,
                                bytes: handle.size + TRAILER_LEN as u64,
                                until: Some(user_key),
                                reason: error.to_string(),
                            })?;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
            Blocks::Searched(end) => {
                let average = |known: &TableProperties| known.data_size.checked_div(known.num_data_blocks);
                let typical = self.properties.as_ref().and_then(average);
                Search::new(&self.source, *end, typical).run(&self.comparator, &mut visit)
            }
        }
    }

    fn read_block(
        &self,
        handle: BlockHandle,
        buffers: &mut Buffers,
        last: &[u8],
        entries: &mut TableEntries,
    ) -> Result<()> {
        self.source.read_stored(handle, &mut buffers.stored, Watch::OFF)?;
        let contents = self.source.unpack(
            handle,
            &buffers.stored,
            &mut buffers.contents,
            (Loading::NotKept, Watch::OFF),
        )?;
        let decoded = entries.decode(contents, &self.comparator, last);
        decoded.map_err(|error| self.source.block_error(handle, &error))
    }
}

#[derive(Default)]
struct Buffers {
    stored: Vec<u8>,
    contents: Vec<u8>,
}

/// The frame of the whole index.
fn read_index(
    source: &BlockSource,
    handle: BlockHandle,
    partitioned: bool,
    coding: IndexCoding,
    comparator: &Comparator,
) -> Result<Pinned> {
    let mut entries = IndexEntries::default();
    let add = |handle: BlockHandle, entries: &mut IndexEntries| {
        let block = source.read_meta(handle, Watch::OFF)?;
        entries.add_block(&block, coding).map_err(|error| source.block_error(handle, &error))
    };
    add(handle, &mut entries)?;
    if partitioned {
        let top = std::mem::take(&mut entries);
        top.handles().iter().try_for_each(|handle| add(*handle, &mut entries))?;
    }
    entries.handles().iter().try_for_each(|handle| source.stored_len(*handle).map(drop))?;
    let user_keys = coding.key_is_user_key;
    let write = |frame: &mut [u8]| entries.write_frame(user_keys, comparator, frame);
    Ok(standalone(entries.frame_len(user_keys), write))
}

/// Verifies the blocks that nothing is read of here: a filter that is damaged loses no data, but the file is not whole.
fn check_others(
    source: &BlockSource,
    blocks: &MetaBlocks,
    coding: IndexCoding,
    damage: &mut Vec<String>,
) -> Result<()> {
    let partitioned_filter = format!("partitionedfilter.{FILTER_NAME}");
    let verify = |handle: BlockHandle| {
        let mut stored = Vec::new();
        source.read_stored(handle, &mut stored, Watch::OFF)?;
        verify_block(&*source.file, &source.footer, handle.offset, &stored).map(drop)
    };
    for (name, handle) in blocks.iter().filter(|(name, _)| name != "rocksdb.properties") {
        let whole = or_damage(verify(*handle), damage)?.is_some();
        if whole && *name == partitioned_filter {
            let coding = IndexCoding { has_first_key: false, ..coding };
            let mut entries = IndexEntries::default();
            let read = source.read_meta(*handle, Watch::OFF);
            let read = read.and_then(|block| entries.add_block(&block, coding));
            or_damage(read, damage)?;
            for partition in entries.handles() {
                or_damage(verify(*partition), damage)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

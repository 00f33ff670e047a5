//! One change to the set of tables, as a record of the MANIFEST.
//!
//! ```text
//! edit = (v32 tag | payload) ...
//! ```
//! Every tag of RocksDB up to 11.9 is known. A field that this engine does not use but may ignore is kept
//! in `preserved` and written again; a field that must not be ignored is refused by name.
//! Source: RocksDB `db/version_edit.cc`; tags in `docs/format/manifest.md`.

use crate::blob_file::{BlobFile, Garbage};
use crate::{FileNumber, TableFile, TableMeta};
use outcrop_base::coding::{Decoder, put_length_prefixed, put_varint32, put_varint64};
use outcrop_base::keys::{Trailer, internal_key, split};
use outcrop_base::{CfId, Error, Result, SeqNum, Timestamp, ValueType};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

mod tag {
    pub const COMPARATOR: u32 = 1;
    pub const LOG_NUMBER: u32 = 2;
    pub const NEXT_FILE_NUMBER: u32 = 3;
    pub const LAST_SEQUENCE: u32 = 4;
    pub const COMPACT_CURSOR: u32 = 5;
    pub const DELETED_FILE: u32 = 6;
    pub const NEW_FILE: u32 = 7;
    pub const PREV_LOG_NUMBER: u32 = 9;
    pub const MIN_LOG_NUMBER_TO_KEEP: u32 = 10;
    pub const NEW_FILE2: u32 = 100;
    pub const NEW_FILE3: u32 = 102;
    pub const NEW_FILE4: u32 = 103;
    pub const COLUMN_FAMILY: u32 = 200;
    pub const COLUMN_FAMILY_ADD: u32 = 201;
    pub const COLUMN_FAMILY_DROP: u32 = 202;
    pub const MAX_COLUMN_FAMILY: u32 = 203;
    pub const IN_ATOMIC_GROUP: u32 = 300;
    pub const BLOB_FILE_ADDITION: u32 = 400;
    pub const BLOB_FILE_GARBAGE: u32 = 401;
    /// Tags with this bit are length-prefixed and may be skipped.
    pub const IGNORABLE: u32 = 1 << 13;
    pub const DB_ID: u32 = 8193;
    pub const BLOB_FILE_ADDITION_OLD: u32 = 8194;
    pub const BLOB_FILE_GARBAGE_OLD: u32 = 8195;
    pub const WAL_ADDITION: u32 = 8196;
    pub const WAL_DELETION: u32 = 8197;
    pub const FULL_HISTORY_TS_LOW: u32 = 8198;
    pub const WAL_ADDITION2: u32 = 8199;
    pub const WAL_DELETION2: u32 = 8200;
    pub const PERSIST_TIMESTAMPS: u32 = 8201;
}

pub(crate) mod field {
    pub const TERMINATE: u32 = 1;
    pub const NEED_COMPACTION: u32 = 2;
    pub const MIN_LOG_NUMBER_TO_KEEP: u32 = 3;
    pub const OLDEST_BLOB_FILE: u32 = 4;
    pub const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub const CREATION_TIME: u32 = 6;
    pub const CHECKSUM: u32 = 7;
    pub const CHECKSUM_FUNCTION: u32 = 8;
    pub const TEMPERATURE: u32 = 9;
    pub const MIN_TIMESTAMP: u32 = 10;
    pub const MAX_TIMESTAMP: u32 = 11;
    pub const UNIQUE_ID: u32 = 12;
    pub const EPOCH: u32 = 13;
    pub const TAIL_SIZE: u32 = 15;
    pub const TIMESTAMPS_PERSISTED: u32 = 16;
    pub const PATH_ID: u32 = 65;
    /// Fields with this bit must not be skipped.
    pub const MUST_UNDERSTAND: u32 = 1 << 6;
}

/// No column family has more paths.
const MOST_PATHS: u8 = 4;

mod blob_field {
    pub const END: u32 = 0;
}

mod wal_field {
    pub const TERMINATE: u32 = 1;
    pub const SYNCED_SIZE: u32 = 2;
}

/// A WAL that the MANIFEST keeps track of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalAddition {
    /// Its file number.
    pub number: FileNumber,
    /// Bytes of it that are durable; absent if only its existence was written down.
    pub synced_bytes: Option<u64>,
}

/// One change. Fields that are absent change nothing.
#[derive(Clone, Debug, Default)]
pub struct VersionEdit {
    /// Identity of the database.
    pub db_id: Option<String>,
    /// Name of the column family's key order.
    pub comparator: Option<String>,
    /// Whether the column family keeps user timestamps in tables; written beside the comparator.
    pub persist_timestamps: Option<bool>,
    /// Versions of a key with timestamps below this may be gone but for the newest.
    pub full_history_low: Option<Timestamp>,
    /// All data of the column family in older WALs is in tables.
    pub log_number: Option<FileNumber>,
    /// Above every file number in use.
    pub next_file_number: Option<FileNumber>,
    /// At or above every sequence number in tables.
    pub last_sequence: Option<SeqNum>,
    /// Older WALs are not needed by any column family.
    pub min_log_number_to_keep: Option<FileNumber>,
    /// Highest column family id given out.
    pub max_column_family: Option<CfId>,
    /// The column family the edit is about.
    pub column_family: CfId,
    /// Creates the column family under this name.
    pub column_family_add: Option<String>,
    /// Drops the column family.
    pub column_family_drop: bool,
    /// Edits of the same atomic group that still follow.
    pub remaining_in_group: Option<u32>,
    /// Where the next round-robin compaction of a level begins: (level, internal key).
    pub compact_cursors: Vec<(u32, Vec<u8>)>,
    /// Tables that leave: (level, number).
    pub deleted_files: Vec<(u32, FileNumber)>,
    /// Tables that come: (level, table).
    pub new_files: Vec<(u32, Arc<TableFile>)>,
    /// Blob files that come.
    pub new_blob_files: Vec<Arc<BlobFile>>,
    /// Blobs that became garbage, by file.
    pub blob_garbage: Vec<(FileNumber, Garbage)>,
    /// WALs that are tracked from here on. RocksDB reads an edit that has these for nothing else but numbers of files
    /// and sequences.
    pub wal_additions: Vec<WalAddition>,
    /// WALs below this number are tracked no more; as with `wal_additions`, in an edit of its own.
    pub wal_deletion: Option<FileNumber>,
    /// Ignorable records this engine does not use, as read: (tag, payload).
    pub preserved: Vec<(u32, Vec<u8>)>,
}

impl VersionEdit {
    /// An edit about column family `id`.
    pub fn for_column_family(id: CfId) -> VersionEdit {
        VersionEdit { column_family: id, ..VersionEdit::default() }
    }

    /// True if tables come or leave.
    pub fn changes_tables(&self) -> bool {
        !self.new_files.is_empty()
            || !self.deleted_files.is_empty()
            || !self.new_blob_files.is_empty()
            || !self.blob_garbage.is_empty()
    }

    /// Appends the edit, in RocksDB's order of fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(id) = &self.db_id {
            put_varint32(out, tag::DB_ID);
            put_length_prefixed(out, id.as_bytes());
        }
        if let Some(name) = &self.comparator {
            put_varint32(out, tag::COMPARATOR);
            put_length_prefixed(out, name.as_bytes());
        }
        let mut number = |tag: u32, value: Option<u64>| {
            if let Some(value) = value {
                put_varint32(out, tag);
                put_varint64(out, value);
            }
        };
        number(tag::LOG_NUMBER, self.log_number.map(|number| number.0));
        number(tag::NEXT_FILE_NUMBER, self.next_file_number.map(|number| number.0));
        number(tag::MAX_COLUMN_FAMILY, self.max_column_family.map(|id| u64::from(id.0)));
        number(tag::MIN_LOG_NUMBER_TO_KEEP, self.min_log_number_to_keep.map(|number| number.0));
        number(tag::LAST_SEQUENCE, self.last_sequence.map(|seq| seq.0));
        for (level, key) in &self.compact_cursors {
            put_varint32(out, tag::COMPACT_CURSOR);
            put_varint32(out, *level);
            put_length_prefixed(out, key);
        }
        for (level, file) in &self.deleted_files {
            put_varint32(out, tag::DELETED_FILE);
            put_varint32(out, *level);
            put_varint64(out, file.0);
        }
        // Of two files of a level that share a user key an edit has both or none: whoever writes or moves one takes the other along.
        let ends_with_deletion =
            |file: &TableMeta| split(&file.largest).1.type_byte() == ValueType::Deletion as u8;
        let deletions = self.new_files.iter().filter(|(_, file)| ends_with_deletion(file));
        let ends: BTreeSet<(u32, &[u8])> = deletions.map(|(level, file)| (*level, &*file.largest)).collect();
        for (level, file) in &self.new_files {
            encode_new_file(out, *level, file, |bound| ends.contains(&(*level, bound)));
        }
        for file in &self.new_blob_files {
            put_varint32(out, tag::BLOB_FILE_ADDITION);
            put_varint64(out, file.number.0);
            put_varint64(out, file.total_count);
            put_varint64(out, file.total_bytes);
            put_length_prefixed(out, &file.checksum.0);
            put_length_prefixed(out, &file.checksum.1);
            put_varint32(out, blob_field::END);
        }
        for (number, garbage) in &self.blob_garbage {
            put_varint32(out, tag::BLOB_FILE_GARBAGE);
            put_varint64(out, number.0);
            put_varint64(out, garbage.count);
            put_varint64(out, garbage.bytes);
            put_varint32(out, blob_field::END);
        }
        if self.column_family != CfId::DEFAULT {
            put_varint32(out, tag::COLUMN_FAMILY);
            put_varint32(out, self.column_family.0);
        }
        if let Some(name) = &self.column_family_add {
            put_varint32(out, tag::COLUMN_FAMILY_ADD);
            put_length_prefixed(out, name.as_bytes());
        }
        if self.column_family_drop {
            put_varint32(out, tag::COLUMN_FAMILY_DROP);
        }
        if let Some(remaining) = self.remaining_in_group {
            put_varint32(out, tag::IN_ATOMIC_GROUP);
            put_varint32(out, remaining);
        }
        if let Some(persist) = self.persist_timestamps {
            put_varint32(out, tag::PERSIST_TIMESTAMPS);
            put_length_prefixed(out, &[u8::from(persist)]);
        }
        if let Some(low) = &self.full_history_low {
            put_varint32(out, tag::FULL_HISTORY_TS_LOW);
            put_length_prefixed(out, low.as_bytes());
        }
        for wal in &self.wal_additions {
            put_varint32(out, tag::WAL_ADDITION2);
            put_length_prefixed(out, &encode_wal_addition(wal));
        }
        if let Some(number) = self.wal_deletion {
            let mut payload = Vec::new();
            put_varint64(&mut payload, number.0);
            put_varint32(out, tag::WAL_DELETION2);
            put_length_prefixed(out, &payload);
        }
        for (tag, payload) in &self.preserved {
            put_varint32(out, *tag);
            put_length_prefixed(out, payload);
        }
    }

    /// Decodes an edit.
    ///
    /// # Errors
    /// Corruption if it does not decode; NotSupported naming a feature that must not be ignored.
    pub fn decode(bytes: &[u8]) -> Result<VersionEdit> {
        let mut edit = VersionEdit::default();
        let mut decoder = Decoder::new(bytes);
        while !decoder.is_empty() {
            let tag = decoder.varint32();
            match tag.and_then(|tag| edit.decode_field(tag, &mut decoder)) {
                Some(outcome) => outcome?,
                None => {
                    let tag = tag.map_or("a tag".to_string(), |tag| format!("tag {tag}"));
                    return Err(Error::corruption(format!("version edit: {tag} does not decode")));
                }
            }
        }
        Ok(edit)
    }

    /// Decodes what follows `tag`; `None` if it does not decode.
    fn decode_field(&mut self, tag: u32, decoder: &mut Decoder<'_>) -> Option<Result<()>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match tag {
            tag::COMPARATOR => self.comparator = Some(text(decoder.length_prefixed()?)),
            tag::LOG_NUMBER => self.log_number = Some(FileNumber(decoder.varint64()?)),
            tag::NEXT_FILE_NUMBER => self.next_file_number = Some(FileNumber(decoder.varint64()?)),
            tag::LAST_SEQUENCE => self.last_sequence = Some(sequence(decoder)?),
            tag::COMPACT_CURSOR => {
                let level = decoder.varint32()?;
                let key = decoder.length_prefixed()?;
                // Shorter ones hold no sequence number, and could not be compared.
                if key.len() < 8 {
                    return None;
                }
                self.compact_cursors.push((level, key.to_vec()));
            }
            tag::DELETED_FILE => {
                let level = decoder.varint32()?;
                self.deleted_files.push((level, FileNumber(decoder.varint64()?)));
            }
            tag::NEW_FILE | tag::NEW_FILE2 | tag::NEW_FILE3 | tag::NEW_FILE4 => {
                return self.decode_new_file(tag, decoder);
            }
            tag::PREV_LOG_NUMBER => {
                decoder.varint64()?;
            }
            tag::MIN_LOG_NUMBER_TO_KEEP => self.keep_logs_from(FileNumber(decoder.varint64()?)),
            tag::COLUMN_FAMILY => self.column_family = CfId(decoder.varint32()?),
            tag::COLUMN_FAMILY_ADD => self.column_family_add = Some(text(decoder.length_prefixed()?)),
            tag::COLUMN_FAMILY_DROP => self.column_family_drop = true,
            tag::MAX_COLUMN_FAMILY => self.max_column_family = Some(CfId(decoder.varint32()?)),
            tag::IN_ATOMIC_GROUP => self.remaining_in_group = Some(decoder.varint32()?),
            tag::BLOB_FILE_ADDITION | tag::BLOB_FILE_ADDITION_OLD => {
                let mut file = BlobFile {
                    number: FileNumber(decoder.varint64()?),
                    total_count: decoder.varint64()?,
                    total_bytes: decoder.varint64()?,
                    ..BlobFile::default()
                };
                file.checksum = (decoder.length_prefixed()?.to_vec(), decoder.length_prefixed()?.to_vec());
                self.new_blob_files.push(Arc::new(file));
                return skip_blob_fields(decoder);
            }
            tag::BLOB_FILE_GARBAGE | tag::BLOB_FILE_GARBAGE_OLD => {
                let number = FileNumber(decoder.varint64()?);
                let garbage = Garbage { count: decoder.varint64()?, bytes: decoder.varint64()? };
                self.blob_garbage.push((number, garbage));
                return skip_blob_fields(decoder);
            }
            tag::DB_ID => self.db_id = Some(text(decoder.length_prefixed()?)),
            // Early WAL tracking has no length around it.
            tag::WAL_ADDITION => self.wal_additions.push(decode_wal_addition(decoder)?),
            tag::WAL_ADDITION2 => {
                let mut payload = Decoder::new(decoder.length_prefixed()?);
                self.wal_additions.push(decode_wal_addition(&mut payload)?);
            }
            tag::WAL_DELETION => self.wal_deletion = Some(FileNumber(decoder.varint64()?)),
            tag::WAL_DELETION2 => {
                self.wal_deletion = Some(FileNumber(Decoder::new(decoder.length_prefixed()?).varint64()?));
            }
            tag::FULL_HISTORY_TS_LOW => {
                let low = decoder.length_prefixed()?;
                let of_length = || format!("user-defined timestamps of {} bytes", low.len());
                match Timestamp::from_bytes(low) {
                    Ok(low) => self.full_history_low = Some(low),
                    Err(_) => return Some(Err(Error::not_supported(of_length()))),
                }
            }
            tag::PERSIST_TIMESTAMPS => {
                self.persist_timestamps = Some(decoder.length_prefixed()?.first()? != &0);
            }
            other if other & tag::IGNORABLE != 0 => {
                self.preserved.push((other, decoder.length_prefixed()?.to_vec()));
            }
            other => return Some(Err(Error::corruption(format!("version edit: unknown tag {other}")))),
        }
        Some(Ok(()))
    }

    fn keep_logs_from(&mut self, number: FileNumber) {
        self.min_log_number_to_keep = self.min_log_number_to_keep.max(Some(number));
    }

    fn decode_new_file(&mut self, tag: u32, decoder: &mut Decoder<'_>) -> Option<Result<()>> {
        let level = decoder.varint32()?;
        let number = FileNumber(decoder.varint64()?);
        let mut file = TableMeta { number, ..TableMeta::default() };
        if tag == tag::NEW_FILE3 {
            file.path_id = decoder.varint32().filter(|path| *path < u32::from(MOST_PATHS))?;
        }
        file.size = decoder.varint64()?;
        file.smallest = decoder.length_prefixed()?.into();
        file.largest = decoder.length_prefixed()?.into();
        if file.smallest.len() < Trailer::LEN || file.largest.len() < Trailer::LEN {
            return None;
        }
        if tag == tag::NEW_FILE {
            file.largest_seq = SeqNum::MAX;
        } else {
            file.smallest_seq = sequence(decoder)?;
            file.largest_seq = sequence(decoder)?;
        }
        if tag == tag::NEW_FILE4 {
            loop {
                let field = decoder.varint32()?;
                if field == field::TERMINATE {
                    break;
                }
                let value = decoder.length_prefixed()?;
                if let Err(error) = self.custom_field(&mut file, field, value)? {
                    return Some(Err(error));
                }
            }
        }
        self.new_files.push((level, Arc::new(file.into())));
        Some(Ok(()))
    }

    fn custom_field(&mut self, file: &mut TableMeta, field: u32, value: &[u8]) -> Option<Result<()>> {
        let varint = || Decoder::new(value).varint64();
        let fixed = || Decoder::new(value).fixed64();
        match field {
            field::NEED_COMPACTION => file.marked_for_compaction = value == [1],
            field::MIN_LOG_NUMBER_TO_KEEP => self.keep_logs_from(FileNumber(fixed()?)),
            field::OLDEST_BLOB_FILE => {
                file.oldest_blob_file = Some(FileNumber(varint()?)).filter(|n| n.0 != 0)
            }
            field::OLDEST_ANCESTOR_TIME => file.oldest_ancestor_time = varint()?,
            field::CREATION_TIME => file.creation_time = varint()?,
            field::TIMESTAMPS_PERSISTED if value == [0] => {
                return Some(Err(Error::not_supported("user-defined timestamps that are not persisted")));
            }
            field::TIMESTAMPS_PERSISTED => {}
            field::UNIQUE_ID => {
                let mut decoder = Decoder::new(value);
                let id = [decoder.fixed64()?, decoder.fixed64()?];
                file.unique_id = (id != [0, 0]).then_some(id);
            }
            field::EPOCH => file.epoch = varint()?,
            field::TAIL_SIZE => file.tail_size = varint()?,
            field::PATH_ID => match value {
                [path @ 0..MOST_PATHS] => file.path_id = u32::from(*path),
                _ => return None,
            },
            other if other & field::MUST_UNDERSTAND != 0 => {
                return Some(Err(Error::corruption(format!("version edit: unknown table field {other}"))));
            }
            other => file.preserved.push((other, value.to_vec())),
        }
        Some(Ok(()))
    }
}

/// Passes over the custom fields of a blob file's record.
fn skip_blob_fields(decoder: &mut Decoder<'_>) -> Option<Result<()>> {
    loop {
        match decoder.varint32()? {
            blob_field::END => return Some(Ok(())),
            other if other & field::MUST_UNDERSTAND != 0 => {
                return Some(Err(Error::corruption(format!(
                    "version edit: unknown blob file field {other}"
                ))));
            }
            _ => {
                decoder.length_prefixed()?;
            }
        }
    }
}

/// A sequence number, which has 56 bits.
fn sequence(decoder: &mut Decoder<'_>) -> Option<SeqNum> {
    Some(SeqNum(decoder.varint64()?)).filter(|seq| *seq <= SeqNum::MAX)
}

/// A WAL's number and sizes.
fn decode_wal_addition(decoder: &mut Decoder<'_>) -> Option<WalAddition> {
    let mut wal = WalAddition { number: FileNumber(decoder.varint64()?), synced_bytes: None };
    loop {
        match decoder.varint32()? {
            wal_field::TERMINATE => return Some(wal),
            wal_field::SYNCED_SIZE => wal.synced_bytes = Some(decoder.varint64()?),
            _ => return None,
        }
    }
}

fn encode_wal_addition(wal: &WalAddition) -> Vec<u8> {
    let mut payload = Vec::new();
    put_varint64(&mut payload, wal.number.0);
    if let Some(bytes) = wal.synced_bytes {
        put_varint32(&mut payload, wal_field::SYNCED_SIZE);
        put_varint64(&mut payload, bytes);
    }
    put_varint32(&mut payload, wal_field::TERMINATE);
    payload
}

/// A file's smallest key, as every reader understands it.
///
/// Where a range tombstone begins in the file before, RocksDB 8.11 gives the bound the type that sorts first, which means
/// nothing else, but which older readers do not know: RocksDB up to 7.10 refuses the whole MANIFEST for it. The bound
/// is then written with the next larger sequence number: it comes before the same keys of this file, and after what the
/// file before may hold of the user key, unless that ends with a deletion of just this number: `is_taken` knows, and the bound stays as it is.
/// Older versions that knew entities had their type sort first, so a bound of an entity may be one that they made up, too.
fn lower_bound(smallest: &[u8], is_taken: impl FnOnce(&[u8]) -> bool) -> Cow<'_, [u8]> {
    let (user_key, trailer) = split(smallest);
    let seq = trailer.seq();
    if trailer.type_byte() <= ValueType::DeletionWithTimestamp as u8 || seq == SeqNum::MAX {
        return Cow::Borrowed(smallest);
    }
    let lower = internal_key(user_key, seq.plus(1), ValueType::Deletion);
    if is_taken(&lower) { Cow::Borrowed(smallest) } else { Cow::Owned(lower) }
}

fn encode_new_file(out: &mut Vec<u8>, level: u32, file: &TableMeta, is_taken: impl FnOnce(&[u8]) -> bool) {
    put_varint32(out, tag::NEW_FILE4);
    put_varint32(out, level);
    put_varint64(out, file.number.0);
    put_varint64(out, file.size);
    put_length_prefixed(out, &lower_bound(&file.smallest, is_taken));
    put_length_prefixed(out, &file.largest);
    put_varint64(out, file.smallest_seq.0);
    put_varint64(out, file.largest_seq.0);
    let mut varint = |field: u32, value: u64| {
        let mut bytes = Vec::new();
        put_varint64(&mut bytes, value);
        put_varint32(out, field);
        put_length_prefixed(out, &bytes);
    };
    varint(field::OLDEST_ANCESTOR_TIME, file.oldest_ancestor_time);
    varint(field::CREATION_TIME, file.creation_time);
    if file.epoch != 0 {
        varint(field::EPOCH, file.epoch);
    }
    if let Some(number) = file.oldest_blob_file {
        let mut bytes = Vec::new();
        put_varint64(&mut bytes, number.0);
        put_varint32(out, field::OLDEST_BLOB_FILE);
        put_length_prefixed(out, &bytes);
    }
    if file.marked_for_compaction {
        put_varint32(out, field::NEED_COMPACTION);
        put_length_prefixed(out, &[1]);
    }
    if let Some(id) = file.unique_id {
        let mut bytes = id[0].to_le_bytes().to_vec();
        bytes.extend_from_slice(&id[1].to_le_bytes());
        put_varint32(out, field::UNIQUE_ID);
        put_length_prefixed(out, &bytes);
    }
    if file.tail_size != 0 {
        let mut bytes = Vec::new();
        put_varint64(&mut bytes, file.tail_size);
        put_varint32(out, field::TAIL_SIZE);
        put_length_prefixed(out, &bytes);
    }
    if file.path_id != 0 {
        put_varint32(out, field::PATH_ID);
        put_length_prefixed(out, &[file.path_id as u8]);
    }
    for (field, value) in &file.preserved {
        put_varint32(out, *field);
        put_length_prefixed(out, value);
    }
    put_varint32(out, field::TERMINATE);
}

//! A batch of writes, held in the wire form the WAL stores.
//!
//! ```text
//! | u64 sequence | u32 count | record ... |      record = tag, [v32 column family], LP(key), [LP(value)]
//! ```
//! The sequence is filled in by the write group. Bytes: `docs/format/write_batch.md`.
//! Source: RocksDB `db/write_batch.cc`.

use super::stamp_count::Stamps;
use outcrop_base::coding::{Decoder, fixed32_at, fixed64_at, put_length_prefixed, put_varint32};
use outcrop_base::{CfId, Error, Result, SeqNum, wide_columns};

/// Length of the header: sequence and count.
pub const HEADER_LEN: usize = 12;

/// Longest key a batch takes: the internal key's length must fit in 32 bits.
const MAX_KEY_LEN: usize = u32::MAX as usize - 8;

/// Writes that become durable and visible together, across column families: all of them or, if the write fails, none.
///
/// Building a batch touches no database; [`crate::Db::write`] applies it and leaves it as it is. Of a handle it keeps
/// the id: written to another database than the handle's, it means the column family that has that id there. Keys and values are copied
/// into one buffer.
///
/// ```
/// # use outcrop::{Db, Env, WriteBatch};
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// # let db = builder.column_family("names").create_missing_column_families(true).open()?;
/// let names = db.column_family("names").expect("it was opened");
/// let mut batch = WriteBatch::new();
/// batch.put("7", "ann");
/// batch.put_cf(&names, "ann", "7");
/// batch.delete("8");
/// db.write(&mut batch)?;
/// assert_eq!(batch.count(), 3);
/// assert_eq!(db.get_cf(&names, "ann")?.as_deref(), Some(&b"7"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct WriteBatch {
    rep: Vec<u8>,
    pub(super) stamps: Stamps,
}

impl Default for WriteBatch {
    fn default() -> Self {
        WriteBatch::new()
    }
}

impl WriteBatch {
    /// An empty batch.
    pub fn new() -> WriteBatch {
        WriteBatch { rep: vec![0; HEADER_LEN], stamps: Stamps::NONE }
    }

    /// A batch from its wire form, as RocksDB's `WriteBatch::Data()` gives it.
    ///
    /// # Errors
    /// Corruption if it does not decode, NotSupported if it holds a record this engine does not implement.
    pub fn from_bytes(bytes: &[u8]) -> Result<WriteBatch> {
        let mut counted = 0;
        for record in records(bytes)? {
            record?;
            counted += 1;
        }
        if counted != count_of(bytes) {
            return Err(Error::corruption("WriteBatch has wrong count"));
        }
        Ok(WriteBatch { rep: bytes.to_vec(), stamps: Stamps::UNKNOWN })
    }

    /// The wire form.
    pub fn as_bytes(&self) -> &[u8] {
        &self.rep
    }

    /// Number of writes in the batch.
    pub fn count(&self) -> u32 {
        count_of(&self.rep)
    }

    /// True if the batch writes nothing.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Size of the wire form in bytes.
    pub fn size_bytes(&self) -> usize {
        self.rep.len()
    }

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        self.rep.truncate(HEADER_LEN);
        self.rep[..HEADER_LEN].fill(0);
        self.stamps = Stamps::NONE;
    }

    /// Sets `key` to `value` in column family `cf`.
    pub(crate) fn put_id(&mut self, cf: CfId, key: &[u8], value: &[u8]) {
        self.start(cf, tag::PUT, tag::CF_PUT);
        put_length_prefixed(&mut self.rep, key);
        put_length_prefixed(&mut self.rep, value);
    }

    /// Deletes `key` in column family `cf`.
    pub(crate) fn delete_id(&mut self, cf: CfId, key: &[u8]) {
        self.start(cf, tag::DELETE, tag::CF_DELETE);
        put_length_prefixed(&mut self.rep, key);
    }

    /// Deletes the single earlier put of `key`; the caller promises that there is at most one since the
    /// last delete.
    pub(crate) fn single_delete_id(&mut self, cf: CfId, key: &[u8]) {
        self.start(cf, tag::SINGLE_DELETE, tag::CF_SINGLE_DELETE);
        put_length_prefixed(&mut self.rep, key);
    }

    /// Deletes every key from `begin` up to `end`, exclusive, in column family `cf`.
    pub(crate) fn delete_range_id(&mut self, cf: CfId, begin: &[u8], end: &[u8]) {
        self.start(cf, tag::DELETE_RANGE, tag::CF_DELETE_RANGE);
        put_length_prefixed(&mut self.rep, begin);
        put_length_prefixed(&mut self.rep, end);
    }

    /// Sets `key` to the wide-column entity of `columns`, (name, value) each, in column family `cf`.
    ///
    /// # Errors
    /// InvalidArgument if a name comes twice, or columns together are longer than 4 GiB.
    pub(crate) fn put_entity_id(&mut self, cf: CfId, key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<()> {
        // Before anything is copied.
        let add = |total: usize, (name, value): &(&[u8], &[u8])| {
            total.saturating_add(name.len()).saturating_add(value.len())
        };
        check_value_len(columns.iter().fold(0, add))?;
        let mut sorted = columns.to_vec();
        sorted.sort_by_key(|(name, _)| *name);
        let mut entity = Vec::new();
        wide_columns::encode(&sorted, &mut entity)?;
        check_sizes(key, &entity)?;
        self.start(cf, tag::PUT_ENTITY, tag::CF_PUT_ENTITY);
        put_length_prefixed(&mut self.rep, key);
        put_length_prefixed(&mut self.rep, &entity);
        Ok(())
    }

    /// Sets `key` to a wide-column entity in its stored form.
    pub(crate) fn put_encoded_entity_id(&mut self, cf: CfId, key: &[u8], entity: &[u8]) {
        self.start(cf, tag::PUT_ENTITY, tag::CF_PUT_ENTITY);
        put_length_prefixed(&mut self.rep, key);
        put_length_prefixed(&mut self.rep, entity);
    }

    /// Adds `operand` for the column family's merge operator to `key`.
    pub(crate) fn merge_id(&mut self, cf: CfId, key: &[u8], operand: &[u8]) {
        self.start(cf, tag::MERGE, tag::CF_MERGE);
        put_length_prefixed(&mut self.rep, key);
        put_length_prefixed(&mut self.rep, operand);
    }

    /// Adds a blob that goes to the WAL only; it takes no sequence number.
    ///
    /// # Panics
    /// If it is longer than 4 GiB; the batch is as it was.
    pub fn put_log_data(&mut self, blob: &[u8]) {
        assert!(check_value_len(blob.len()).is_ok(), "log data of {} bytes is longer than 4 GiB", blob.len());
        self.rep.push(tag::LOG_DATA);
        put_length_prefixed(&mut self.rep, blob);
    }

    /// Adds a write that another batch has, as [`WriteBatch::iter`] gives it, in the column family that has its id.
    ///
    /// # Panics
    /// If a key, value or operand is longer than 4 GiB; the batch is as it was.
    pub fn push(&mut self, record: Record<'_>) {
        let cf = record.cf;
        if let Err(error) = record.op.check_sizes() {
            panic!("{error}");
        }
        match record.op {
            Op::Put { key, value } => self.put_id(cf, key, value),
            Op::Delete { key } => self.delete_id(cf, key),
            Op::SingleDelete { key } => self.single_delete_id(cf, key),
            Op::DeleteRange { begin, end } => self.delete_range_id(cf, begin, end),
            Op::Merge { key, operand } => self.merge_id(cf, key, operand),
            Op::PutEntity { key, entity } => self.put_encoded_entity_id(cf, key, entity),
        }
    }

    /// Appends the writes of `other`.
    pub fn append(&mut self, other: &WriteBatch) {
        let count = self.count() + other.count();
        self.rep.extend_from_slice(&other.rep[HEADER_LEN..]);
        self.stamps = self.stamps.and(other.stamps);
        self.rep[8..12].copy_from_slice(&count.to_le_bytes());
    }

    /// The writes in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Record<'_>>> {
        records(&self.rep).expect("a batch in memory has its header")
    }

    /// Moves the wire form out. Until [`WriteBatch::restore_bytes`] puts it back the batch has not even a header.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rep)
    }

    /// Puts back what [`WriteBatch::take_bytes`] took.
    pub(crate) fn restore_bytes(&mut self, rep: Vec<u8>) {
        self.rep = rep;
    }

    /// The wire form, to change keys in their places.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.rep
    }

    fn start(&mut self, cf: CfId, default_tag: u8, cf_tag: u8) {
        let count = self.count() + 1;
        self.rep[8..12].copy_from_slice(&count.to_le_bytes());
        if cf == CfId::DEFAULT {
            self.rep.push(default_tag);
        } else {
            self.rep.push(cf_tag);
            put_varint32(&mut self.rep, cf.0);
        }
    }
}

impl WriteBatch {
    /// Begins an empty batch with a no-op, which the mark of a prepared transaction can take the place of.
    pub(crate) fn reserve_marker(&mut self) {
        debug_assert_eq!(self.rep.len(), HEADER_LEN);
        self.rep.push(tag::NOOP);
    }
}

/// The WAL record, not numbered, that prepares `writes` as the transaction `name`.
pub fn prepared_record(writes: &WriteBatch, name: &[u8]) -> Vec<u8> {
    let (header, body) = writes.rep.split_at(HEADER_LEN);
    let body = body.strip_prefix(&[tag::NOOP]).unwrap_or(body);
    let mut record = Vec::with_capacity(writes.rep.len() + name.len() + 8);
    record.extend_from_slice(header);
    record.push(tag::BEGIN_PREPARE);
    record.extend_from_slice(body);
    record.push(tag::END_PREPARE);
    put_length_prefixed(&mut record, name);
    record
}

/// The log data that says of a WAL record that it prepares again what an older WAL has: RocksDB passes over log data.
const PREPARED_AGAIN: &[u8] = b"outcrop: prepared again";

/// [`prepared_record`] of a transaction that an older WAL has, too, see [`is_prepared_again`].
pub fn prepared_again_record(writes: &WriteBatch, name: &[u8]) -> Vec<u8> {
    let record = prepared_record(writes, name);
    let (header, body) = record.split_at(HEADER_LEN);
    let mut again = Vec::with_capacity(record.len() + PREPARED_AGAIN.len() + 2);
    again.extend_from_slice(header);
    again.push(tag::LOG_DATA);
    put_length_prefixed(&mut again, PREPARED_AGAIN);
    again.extend_from_slice(body);
    again
}

/// True if `record` prepares again what an older WAL has: for a replay that begins after that one. No batch of an application
/// is like it: log data of a transaction comes after the mark that it is prepared.
pub fn is_prepared_again(record: &[u8]) -> bool {
    let Ok(mut rest) = records(record) else { return false };
    rest.next_log_data() == Some(PREPARED_AGAIN)
        && matches!(rest.next_item(), Some(Ok(Item::Marker(Marker::BeginPrepare))))
}

/// The WAL record, not numbered, of `writes` and then `marker`, which decides a prepared transaction.
pub fn marker_record(writes: &WriteBatch, marker: Marker<'_>) -> Vec<u8> {
    let (tag, name) = match marker {
        Marker::Commit(name) => (tag::COMMIT, name),
        Marker::Rollback(name) => (tag::ROLLBACK, name),
        Marker::EndPrepare(_) | Marker::BeginPrepare => unreachable!("{marker:?} decides nothing"),
    };
    let mut record = writes.rep.clone();
    record.push(tag);
    put_length_prefixed(&mut record, name);
    record
}

/// Checks what the wire form cannot hold.
///
/// # Errors
/// InvalidArgument naming the length.
pub fn check_sizes(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY_LEN {
        return Err(Error::invalid_argument(format!("key of {} bytes is longer than 4 GiB", key.len())));
    }
    check_value_len(value.len())
}

/// The same of a value alone.
///
/// # Errors
/// InvalidArgument naming the length.
#[inline]
pub fn check_value_len(len: usize) -> Result<()> {
    match u32::try_from(len) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::invalid_argument(format!("value of {len} bytes is longer than 4 GiB"))),
    }
}

/// The record tags of the wire form.
mod tag {
    pub const DELETE: u8 = 0x00;
    pub const PUT: u8 = 0x01;
    pub const MERGE: u8 = 0x02;
    pub const LOG_DATA: u8 = 0x03;
    pub const CF_DELETE: u8 = 0x04;
    pub const CF_PUT: u8 = 0x05;
    pub const CF_MERGE: u8 = 0x06;
    pub const SINGLE_DELETE: u8 = 0x07;
    pub const CF_SINGLE_DELETE: u8 = 0x08;
    pub const BEGIN_PREPARE: u8 = 0x09;
    pub const END_PREPARE: u8 = 0x0A;
    pub const COMMIT: u8 = 0x0B;
    pub const ROLLBACK: u8 = 0x0C;
    pub const NOOP: u8 = 0x0D;
    pub const CF_DELETE_RANGE: u8 = 0x0E;
    pub const DELETE_RANGE: u8 = 0x0F;
    pub const PUT_ENTITY: u8 = 0x16;
    pub const CF_PUT_ENTITY: u8 = 0x17;
}

/// One counted write of a batch.
///
/// ```
/// # use outcrop::{CfId, Op, WriteBatch};
/// # let mut batch = WriteBatch::new();
/// # batch.put("a", "1");
/// // The records of a batch, as a program that replicates it sees them.
/// for record in batch.iter() {
///     let record = record?;
///     assert_eq!((record.cf, record.op), (CfId::DEFAULT, Op::Put { key: b"a", value: b"1" }));
/// }
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Column family id.
    pub cf: CfId,
    /// The operation.
    pub op: Op<'a>,
}

/// The effect of one write.
///
/// ```
/// # use outcrop::{CfId, Op, WriteBatch};
/// # let mut batch = WriteBatch::new();
/// # batch.delete_range("a", "f");
/// let keys = |op: &Op<'_>| match *op {
///     Op::Put { key, .. } | Op::Delete { key } | Op::SingleDelete { key } => format!("{key:?}"),
///     Op::DeleteRange { begin, end } => format!("from {begin:?} to {end:?}"),
///     Op::Merge { key, .. } | Op::PutEntity { key, .. } => format!("{key:?}"),
/// };
/// let record = batch.iter().next().expect("one was added")?;
/// assert_eq!(keys(&record.op), "from [97] to [102]");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Set the key.
    Put {
        /// User key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Delete the key.
    Delete {
        /// User key.
        key: &'a [u8],
    },
    /// Delete the one earlier put of the key.
    SingleDelete {
        /// User key.
        key: &'a [u8],
    },
    /// Delete every key from `begin` up to `end`, exclusive.
    DeleteRange {
        /// First user key.
        begin: &'a [u8],
        /// The user key after the last.
        end: &'a [u8],
    },
    /// Set the key to a set of named columns.
    PutEntity {
        /// User key.
        key: &'a [u8],
        /// The columns, encoded.
        entity: &'a [u8],
    },
    /// Add a merge operand.
    Merge {
        /// User key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
}

impl Op<'_> {
    /// [`check_sizes`] of what is in it.
    fn check_sizes(&self) -> Result<()> {
        match *self {
            Op::Put { key, value } => check_sizes(key, value),
            Op::Delete { key } | Op::SingleDelete { key } => check_sizes(key, &[]),
            Op::DeleteRange { begin, end } => check_sizes(begin, end),
            Op::PutEntity { key, entity } => check_sizes(key, entity),
            Op::Merge { key, operand } => check_sizes(key, operand),
        }
    }
}

/// The sequence number in a batch's header.
pub fn sequence_of(bytes: &[u8]) -> SeqNum {
    SeqNum(fixed64_at(bytes, 0))
}

/// The count in a batch's header.
pub fn count_of(bytes: &[u8]) -> u32 {
    fixed32_at(bytes, 8)
}

/// The counted writes of a wire-form batch, in order; log data and no-ops are passed over.
///
/// # Errors
/// Corruption if there is no header. Each item: Corruption if it does not decode, NotSupported naming the
/// feature of a record this engine does not implement.
pub fn records(bytes: &[u8]) -> Result<Records<'_>> {
    if bytes.len() < HEADER_LEN {
        return Err(Error::corruption("malformed WriteBatch (too small)"));
    }
    Ok(Records { decoder: Decoder::new(&bytes[HEADER_LEN..]) })
}

/// The same from `offset` bytes on, where a record starts.
pub fn records_from(bytes: &[u8], offset: usize) -> Records<'_> {
    Records { decoder: Decoder::new(&bytes[offset..]) }
}

/// Iterator over the counted writes of a batch.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    decoder: Decoder<'a>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record<'a>>> {
        match self.next_put() {
            Some(put) => Some(Ok(put)),
            None if self.decoder.is_empty() => None,
            None => self.next_write(),
        }
    }
}

impl<'a> Records<'a> {
    /// The next record, if it is a put. Most are; inlined, it is taken apart in registers.
    #[inline(always)]
    fn next_put(&mut self) -> Option<Record<'a>> {
        let mut decoder = self.decoder;
        let cf = match decoder.byte()? {
            tag::PUT => CfId::DEFAULT,
            tag::CF_PUT => CfId(decoder.varint32()?),
            _ => return None,
        };
        let op = Op::Put { key: decoder.length_prefixed()?, value: decoder.length_prefixed()? };
        self.decoder = decoder;
        Some(Record { cf, op })
    }

    fn next_write(&mut self) -> Option<Result<Record<'a>>> {
        match self.next_item()? {
            Ok(Item::Write(record)) => Some(Ok(record)),
            Ok(Item::Marker(_)) => {
                self.decoder = Decoder::new(&[]);
                Some(Err(Error::not_supported("the write batch uses two-phase transactions")))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// An entry of a batch in a WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A counted write.
    Write(Record<'a>),
    /// A mark of two-phase commit.
    Marker(Marker<'a>),
}

/// Marks of two-phase commit, with the transaction's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker<'a> {
    /// The writes up to the next end are prepared, not committed.
    BeginPrepare,
    /// Ends what was prepared.
    EndPrepare(&'a [u8]),
    /// The batch that was prepared under the name is committed here.
    Commit(&'a [u8]),
    /// The batch that was prepared under the name is rolled back.
    Rollback(&'a [u8]),
}

impl<'a> Records<'a> {
    /// Bytes that were not looked at yet.
    pub fn rest_len(&self) -> usize {
        self.decoder.rest().len()
    }

    /// The log data that comes next, if it does.
    pub fn next_log_data(&mut self) -> Option<&'a [u8]> {
        let mut decoder = self.decoder;
        if decoder.byte()? != tag::LOG_DATA {
            return None;
        }
        let blob = decoder.length_prefixed()?;
        self.decoder = decoder;
        Some(blob)
    }

    /// True if a no-op comes next, which is passed over then.
    pub fn next_noop(&mut self) -> bool {
        let mut decoder = self.decoder;
        let is_noop = decoder.byte() == Some(tag::NOOP);
        if is_noop {
            self.decoder = decoder;
        }
        is_noop
    }

    /// The next write or marker.
    pub fn next_item(&mut self) -> Option<Result<Item<'a>>> {
        while !self.decoder.is_empty() {
            let tag = self.decoder.byte()?;
            match self.item(tag) {
                Some(Ok(None)) => continue,
                Some(Ok(Some(item))) => return Some(Ok(item)),
                failed => {
                    self.decoder = Decoder::new(&[]);
                    let error = match failed {
                        Some(Err(error)) => error,
                        _ => cut_short(tag),
                    };
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Decodes what follows `tag`: `None` if cut short, `Some(Ok(None))` for a record that means nothing.
    fn item(&mut self, tag: u8) -> Option<Result<Option<Item<'a>>>> {
        let decoder = &mut self.decoder;
        let cf = match tag {
            tag::CF_PUT | tag::CF_DELETE | tag::CF_SINGLE_DELETE | tag::CF_MERGE => CfId(decoder.varint32()?),
            tag::CF_DELETE_RANGE | tag::CF_PUT_ENTITY => CfId(decoder.varint32()?),
            _ => CfId::DEFAULT,
        };
        let op = match tag {
            tag::PUT | tag::CF_PUT => {
                Op::Put { key: decoder.length_prefixed()?, value: decoder.length_prefixed()? }
            }
            tag::DELETE | tag::CF_DELETE => Op::Delete { key: decoder.length_prefixed()? },
            tag::SINGLE_DELETE | tag::CF_SINGLE_DELETE => {
                Op::SingleDelete { key: decoder.length_prefixed()? }
            }
            tag::MERGE | tag::CF_MERGE => {
                Op::Merge { key: decoder.length_prefixed()?, operand: decoder.length_prefixed()? }
            }
            tag::DELETE_RANGE | tag::CF_DELETE_RANGE => {
                Op::DeleteRange { begin: decoder.length_prefixed()?, end: decoder.length_prefixed()? }
            }
            tag::PUT_ENTITY | tag::CF_PUT_ENTITY => {
                Op::PutEntity { key: decoder.length_prefixed()?, entity: decoder.length_prefixed()? }
            }
            tag::LOG_DATA => {
                decoder.length_prefixed()?;
                return Some(Ok(None));
            }
            tag::NOOP => return Some(Ok(None)),
            tag::BEGIN_PREPARE => return Some(Ok(Some(Item::Marker(Marker::BeginPrepare)))),
            tag::END_PREPARE | tag::COMMIT | tag::ROLLBACK => {
                let name = decoder.length_prefixed()?;
                return Some(Ok(Some(Item::Marker(match tag {
                    tag::END_PREPARE => Marker::EndPrepare(name),
                    tag::COMMIT => Marker::Commit(name),
                    _ => Marker::Rollback(name),
                }))));
            }
            other => return Some(Err(unsupported(other))),
        };
        Some(Ok(Some(Item::Write(Record { cf, op }))))
    }
}

/// Source: RocksDB `db/write_batch.cc`, `MemTableInserter::MarkBeginPrepare`.
const OTHER_POLICY: &str = "WritePrepared/WriteUnprepared txn tag when write_after_commit_ is enabled (in default WriteCommitted \
    mode). If it is not due to corruption, the WAL must be emptied before changing the WritePolicy.";
/// The error for a record that is cut short. Source: RocksDB `ReadRecordFromWriteBatch`.
fn cut_short(tag: u8) -> Error {
    Error::corruption(match tag {
        tag::PUT | tag::CF_PUT => "bad WriteBatch Put",
        tag::DELETE | tag::CF_DELETE | tag::SINGLE_DELETE | tag::CF_SINGLE_DELETE => "bad WriteBatch Delete",
        tag::DELETE_RANGE | tag::CF_DELETE_RANGE => "bad WriteBatch DeleteRange",
        tag::MERGE | tag::CF_MERGE => "bad WriteBatch Merge",
        tag::PUT_ENTITY | tag::CF_PUT_ENTITY => "bad WriteBatch PutEntity",
        tag::END_PREPARE => "bad EndPrepare XID",
        tag::COMMIT => "bad Commit XID",
        tag::ROLLBACK => "bad Rollback XID",
        _ => "bad WriteBatch Blob",
    })
}

/// The error for a record that exists in RocksDB but not here, or nowhere.
fn unsupported(tag: u8) -> Error {
    let feature = match tag {
        0x12 | 0x13 => return Error::not_supported(OTHER_POLICY),
        0x15 => "commits with a timestamp",
        0x10 | 0x11 => "blob files",
        0x18 | 0x19 => "TimedPut",
        other => return Error::corruption(format!("unknown WriteBatch tag: {other}")),
    };
    Error::not_supported(format!("the write batch uses {feature} (tag {tag:#04x})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_column_family_uses_the_short_tags() {
        let mut batch = WriteBatch::new();
        batch.put_id(CfId::DEFAULT, b"apple", b"red");
        batch.delete_id(CfId(7), b"x");
        assert_eq!(batch.count(), 2);
        assert_eq!(&batch.as_bytes()[HEADER_LEN..], b"\x01\x05apple\x03red\x04\x07\x01x");
    }

    #[test]
    fn records_come_back_in_order_without_log_data() {
        let mut batch = WriteBatch::new();
        batch.put_id(CfId::DEFAULT, b"a", b"1");
        batch.put_log_data(b"note");
        batch.merge_id(CfId(3), b"m", b"+");
        batch.single_delete_id(CfId::DEFAULT, b"s");
        batch.delete_range_id(CfId(2), b"a", b"f");
        let ops: Vec<_> = batch.iter().map(|r| r.unwrap()).collect();
        assert_eq!(
            ops,
            [
                Record { cf: CfId(0), op: Op::Put { key: b"a", value: b"1" } },
                Record { cf: CfId(3), op: Op::Merge { key: b"m", operand: b"+" } },
                Record { cf: CfId(0), op: Op::SingleDelete { key: b"s" } },
                Record { cf: CfId(2), op: Op::DeleteRange { begin: b"a", end: b"f" } },
            ]
        );
    }

    #[test]
    fn a_transaction_that_is_prepared_again_is_known_by_it_and_by_nothing_that_an_application_writes() {
        let mut writes = WriteBatch::new();
        writes.put_id(CfId::DEFAULT, b"a", b"1");
        let again = prepared_again_record(&writes, b"t");
        assert!(is_prepared_again(&again));
        let items = |record: &[u8]| -> Vec<String> {
            let mut records = records(record).unwrap();
            std::iter::from_fn(|| records.next_item()).map(|item| format!("{:?}", item.unwrap())).collect()
        };
        assert_eq!(items(&again), items(&prepared_record(&writes, b"t")), "log data aside");
        let mark = HEADER_LEN + 2 + PREPARED_AGAIN.len();
        assert!((0..=mark).all(|len| !is_prepared_again(&again[..len])));
        let mut noted = WriteBatch::new();
        noted.put_log_data(PREPARED_AGAIN);
        noted.put_id(CfId::DEFAULT, b"a", b"1");
        for record in [
            prepared_record(&noted, b"t"),
            noted.as_bytes().to_vec(),
            marker_record(&noted, Marker::Commit(b"t")),
        ] {
            assert!(!is_prepared_again(&record), "{}", record.escape_ascii());
        }
    }

    #[test]
    fn every_truncation_is_an_error_or_a_shorter_count() {
        let mut batch = WriteBatch::new();
        batch.put_id(CfId(5), b"key", b"value");
        batch.delete_id(CfId::DEFAULT, b"other");
        let bytes = batch.as_bytes();
        for len in 0..bytes.len() {
            assert!(WriteBatch::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
        }
        assert!(WriteBatch::from_bytes(bytes).is_ok());
    }

    #[test]
    fn unsupported_records_are_refused_by_name() {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[8] = 1;
        bytes.extend_from_slice(b"\x18\x01p\x01q");
        let error = WriteBatch::from_bytes(&bytes).unwrap_err();
        assert!(error.to_string().contains("TimedPut"), "{error}");
    }
}

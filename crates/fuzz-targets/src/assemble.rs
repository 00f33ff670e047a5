//! Builds a table around parts of it, so that one decoder at a time gets bytes that nobody wrote.
//!
//! ```text
//! [data block][part under test ...][index][properties][metaindex][footer]     format_version 5, XXH3
//! ```
//! Everything but the part under test is as small as it can be, and valid.
//! Source: `docs/format/table.md`.

use outcrop_base::SeqNum;
use outcrop_base::ValueType;
use outcrop_base::checksum::ChecksumType;
use outcrop_base::coding::{put_varint32, put_varint64};
use outcrop_base::keys::internal_key;

/// The last 8 bytes of a table.
pub const MAGIC: u64 = 0x88E2_41B7_85F4_CFF7;
const INDEX_TYPE: &[u8] = b"rocksdb.block.based.table.index.type";

/// How the index of the table is coded.
#[derive(Clone, Copy, Default)]
pub struct IndexKind {
    /// The property `index.type`.
    pub index_type: u8,
    /// Separators are user keys.
    pub user_keys: bool,
    /// Handles are deltas.
    pub deltas: bool,
}

/// A table in the making.
pub struct Assembly {
    file: Vec<u8>,
    meta: Vec<(Vec<u8>, Vec<u8>)>,
    index: Option<Vec<u8>>,
    kind: IndexKind,
    properties: Option<Vec<u8>>,
    /// Handle of the data block.
    data: Vec<u8>,
}

/// A block whose every entry is a restart point.
pub fn block(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut restarts) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        restarts.push(out.len() as u32);
        put_varint32(&mut out, 0);
        put_varint32(&mut out, key.len() as u32);
        put_varint32(&mut out, value.len() as u32);
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
    if restarts.is_empty() {
        restarts.push(0);
    }
    restarts.iter().for_each(|restart| out.extend_from_slice(&restart.to_le_bytes()));
    out.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
    out
}

/// A few rows.
pub fn small_block() -> Vec<u8> {
    let row =
        |key: &str| (internal_key(key.as_bytes(), SeqNum(3), ValueType::Value), key.as_bytes().to_vec());
    block(&["apple", "banana", "cherry"].map(row))
}

impl Assembly {
    /// Starts with a data block stored with `codec`.
    pub fn new(data: &[u8], codec: u8) -> Assembly {
        let mut assembly = Assembly {
            file: Vec::new(),
            meta: Vec::new(),
            index: None,
            kind: IndexKind::default(),
            properties: None,
            data: Vec::new(),
        };
        assembly.data = assembly.store(data, codec);
        assembly
    }

    /// Adds a block that the metaindex names.
    pub fn meta(mut self, name: &[u8], contents: &[u8]) -> Assembly {
        let handle = self.store(contents, 0);
        self.meta.push((name.to_vec(), handle));
        self
    }

    /// Takes `contents` for the index block.
    pub fn index(mut self, contents: &[u8], kind: IndexKind) -> Assembly {
        (self.index, self.kind) = (Some(contents.to_vec()), kind);
        self
    }

    /// Takes `contents` for the properties block.
    pub fn properties(mut self, contents: &[u8]) -> Assembly {
        self.properties = Some(contents.to_vec());
        self
    }

    /// The file, its metaindex as it has to be.
    pub fn finish(mut self) -> Vec<u8> {
        let index = self.finish_index();
        let mut entries = std::mem::take(&mut self.meta);
        let properties = self.properties.take().unwrap_or_else(|| properties(self.kind));
        entries.push((b"rocksdb.properties".to_vec(), self.store(&properties, 0)));
        entries.sort();
        let metaindex = self.store(&block(&entries), 0);
        self.footer(&metaindex, &index)
    }

    /// The file with `metaindex` for its metaindex.
    pub fn finish_with_metaindex(mut self, metaindex: &[u8]) -> Vec<u8> {
        let index = self.finish_index();
        let metaindex = self.store(metaindex, 0);
        self.footer(&metaindex, &index)
    }

    fn finish_index(&mut self) -> Vec<u8> {
        let last = internal_key(&[0xFF; 24], SeqNum(0), ValueType::Deletion);
        let index = self.index.take().unwrap_or_else(|| block(&[(last, self.data.clone())]));
        self.store(&index, 0)
    }

    fn footer(mut self, metaindex: &[u8], index: &[u8]) -> Vec<u8> {
        let start = self.file.len();
        self.file.push(ChecksumType::Xxh3 as u8);
        self.file.extend_from_slice(metaindex);
        self.file.extend_from_slice(index);
        self.file.resize(start + 41, 0);
        self.file.extend_from_slice(&5u32.to_le_bytes());
        self.file.extend_from_slice(&MAGIC.to_le_bytes());
        self.file
    }

    /// Appends a block and its trailer; gives its handle.
    fn store(&mut self, contents: &[u8], codec: u8) -> Vec<u8> {
        let mut handle = Vec::new();
        put_varint64(&mut handle, self.file.len() as u64);
        put_varint64(&mut handle, contents.len() as u64);
        self.file.extend_from_slice(contents);
        self.file.push(codec);
        self.file.extend_from_slice(&ChecksumType::Xxh3.compute(contents, codec).to_le_bytes());
        handle
    }
}

fn properties(kind: IndexKind) -> Vec<u8> {
    let flag = |set: bool| vec![u8::from(set)];
    block(&[
        (INDEX_TYPE.to_vec(), vec![kind.index_type, 0, 0, 0]),
        (b"rocksdb.block.based.table.prefix.filtering".to_vec(), b"1".to_vec()),
        (b"rocksdb.block.based.table.whole.key.filtering".to_vec(), b"1".to_vec()),
        (b"rocksdb.index.key.is.user.key".to_vec(), flag(kind.user_keys)),
        (b"rocksdb.index.value.is.delta.encoded".to_vec(), flag(kind.deltas)),
        (b"rocksdb.prefix.extractor.name".to_vec(), b"rocksdb.FixedPrefix.3".to_vec()),
    ])
}

/// Splits off a length-prefixed part; everything if the length does not fit.
pub fn split_part(input: &[u8]) -> (&[u8], &[u8]) {
    match input.split_first() {
        Some((len, rest)) if usize::from(*len) <= rest.len() => rest.split_at(usize::from(*len)),
        _ => (input, &[]),
    }
}

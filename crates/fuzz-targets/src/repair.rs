//! Makes the checksums of a mutated file match what they cover, so that the code behind them is reached.
//!
//! Structures that cannot be followed are left as they are: no repair reads outside the bytes or fails.

use crate::assemble::MAGIC;
use outcrop_base::checksum::{ChecksumType, context_modifier, crc32c, mask};
use outcrop_base::coding::{Decoder, fixed32_at, fixed64_at};

/// Checksums of the physical records of a log.
pub fn log(bytes: &mut [u8]) {
    const BLOCK: usize = 32 << 10;
    const HEADER: usize = 7;
    for block in bytes.chunks_mut(BLOCK) {
        let mut at = 0;
        while let Some(header) = block.get(at..at + HEADER) {
            let (len, kind) = (usize::from(u16::from_le_bytes([header[4], header[5]])), header[6]);
            let recyclable = matches!(kind, 5..=8 | 11 | 131);
            let end = at + HEADER + if recyclable { 4 } else { 0 } + len;
            let Some(covered) = block.get(at + 6..end) else { break };
            let crc = mask(crc32c(covered));
            block[at..at + 4].copy_from_slice(&crc.to_le_bytes());
            at = end;
        }
    }
}

/// Checksums of a blob file: footer, and every record that follows from the lengths before it.
pub fn blob(bytes: &mut [u8]) {
    const HEADER: usize = 30;
    const RECORD_HEADER: usize = 32;
    const FOOTER: usize = 32;
    let Some(limit) = bytes.len().checked_sub(FOOTER) else { return };
    let crc = mask(crc32c(&bytes[limit..limit + 28]));
    bytes[limit + 28..].copy_from_slice(&crc.to_le_bytes());
    let mut at = HEADER;
    while at + RECORD_HEADER <= limit {
        let header_crc = mask(crc32c(&bytes[at..at + 24]));
        bytes[at + 24..at + 28].copy_from_slice(&header_crc.to_le_bytes());
        let (key_len, value_len) = (fixed64_at(bytes, at), fixed64_at(bytes, at + 8));
        let start = at + RECORD_HEADER;
        let end = key_len.checked_add(value_len).and_then(|len| len.checked_add(start as u64));
        let Some(end) = end.filter(|end| *end <= limit as u64) else { return };
        let crc = mask(crc32c(&bytes[start..end as usize]));
        bytes[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
        at = end as usize;
    }
}

/// The inputs of block trailers.
#[derive(Clone, Copy)]
struct Salt {
    checksum: ChecksumType,
    base: u32,
}

type Handle = (u64, u64);
/// Takes a block's name, stored contents and codec.
type Visit<'v> = &'v mut dyn FnMut(&[u8], &[u8], u8);

/// Where the parts of a table begin to be found.
struct Frame {
    salt: Salt,
    metaindex: Handle,
    index: Option<Handle>,
}

/// Makes the end of a table's file that of a table, and reads it.
fn frame(bytes: &mut [u8]) -> Option<Frame> {
    const FOOTER: usize = 53;
    let at = bytes.len().checked_sub(FOOTER)?;
    bytes[at + 45..].copy_from_slice(&MAGIC.to_le_bytes());
    let version = fixed32_at(bytes, at + 41);
    let mut salt = Salt { checksum: ChecksumType::from_byte(bytes[at]).ok()?, base: 0 };
    if version < 6 {
        let mut handles = Decoder::new(&bytes[at + 1..at + 41]);
        return Some(Frame { salt, metaindex: handle(&mut handles)?, index: handle(&mut handles) });
    }
    salt.base = fixed32_at(bytes, at + 9);
    bytes[at + 5..at + 9].fill(0);
    let sum = salt.checksum.compute(&bytes[at..at + FOOTER - 1], bytes[at + FOOTER - 1]);
    let sum = sum.wrapping_add(context_modifier(salt.base, at as u64));
    bytes[at + 5..at + 9].copy_from_slice(&sum.to_le_bytes());
    let size = u64::from(fixed32_at(bytes, at + 13));
    let offset = (at as u64).checked_sub(size + 5)?;
    Some(Frame { salt, metaindex: (offset, size), index: None })
}

/// Checksums of a table: its footer, and every block that metaindex, index and partitions name.
pub fn table(bytes: &mut [u8]) {
    for_each_block(bytes, &mut |_, _, _| {});
}

/// As [`table`]; passes every block to `visit`. Data blocks and partitions have no name.
pub fn for_each_block(bytes: &mut [u8], visit: Visit<'_>) {
    let Some(Frame { salt, metaindex, mut index }) = frame(bytes) else { return };
    let Some((contents, codec)) = seal(bytes, salt, metaindex) else { return };
    visit(b"metaindex", &contents, codec);
    let (mut coding, mut partitioned_filter) = (Coding::default(), None);
    for (name, value) in entries(&contents) {
        let Some(named) = handle(&mut Decoder::new(&value)) else { continue };
        let Some((contents, codec)) = seal(bytes, salt, named) else { continue };
        if name == b"rocksdb.index" {
            index = Some(named);
            continue;
        }
        if name == b"rocksdb.properties" {
            coding = Coding::of(&contents);
        }
        visit(&name, &contents, codec);
        partitioned_filter = partitioned_filter.or(name.starts_with(b"partitionedfilter").then_some(named));
    }
    if let Some(filter) = partitioned_filter {
        seal_all(bytes, salt, (filter, coding), visit);
    }
    let Some(index) = index else { return };
    let Some((contents, codec)) = seal(bytes, salt, index) else { return };
    visit(b"rocksdb.index", &contents, codec);
    if coding.two_levels {
        for partition in seal_all(bytes, salt, (index, coding), &mut |_, _, _| {}) {
            seal_all(bytes, salt, (partition, coding), visit);
        }
    } else {
        seal_all(bytes, salt, (index, coding), visit);
    }
}

/// How index blocks are coded, as the properties say.
#[derive(Clone, Copy, Default)]
struct Coding {
    two_levels: bool,
    deltas: bool,
}

impl Coding {
    fn of(properties: &[u8]) -> Coding {
        // Names share beginnings: only their ends stand in the block for sure.
        let behind = |name: &[u8]| {
            let at = properties.windows(name.len()).position(|bytes| bytes == name)?;
            properties.get(at + name.len()).copied()
        };
        Coding { two_levels: behind(b"index.type") == Some(2), deltas: behind(b"delta.encoded") == Some(1) }
    }
}

fn handle(decoder: &mut Decoder<'_>) -> Option<Handle> {
    Some((decoder.varint64()?, decoder.varint64()?))
}

/// Makes the trailer of a block match; gives its contents and codec.
fn seal(bytes: &mut [u8], salt: Salt, (offset, size): Handle) -> Option<(Vec<u8>, u8)> {
    let end = offset.checked_add(size)?;
    if end.checked_add(5)? > bytes.len() as u64 {
        return None;
    }
    let (start, end) = (offset as usize, end as usize);
    let sum = salt.checksum.compute(&bytes[start..end], bytes[end]);
    let sum = sum.wrapping_add(context_modifier(salt.base, offset));
    bytes[end + 1..end + 5].copy_from_slice(&sum.to_le_bytes());
    Some((bytes[start..end].to_vec(), bytes[end]))
}

/// Seals the blocks that the index block at `index` names; gives their handles.
fn seal_all(
    bytes: &mut [u8],
    salt: Salt,
    (index, coding): (Handle, Coding),
    visit: Visit<'_>,
) -> Vec<Handle> {
    let Some((contents, _)) = seal(bytes, salt, index) else { return Vec::new() };
    let handles: Vec<Handle> = match coding.deltas {
        true => delta_handles(&contents),
        false => {
            entries(&contents).iter().filter_map(|(_, value)| handle(&mut Decoder::new(value))).collect()
        }
    };
    for named in &handles {
        if let Some((contents, codec)) = seal(bytes, salt, *named) {
            visit(b"", &contents, codec);
        }
    }
    handles
}

/// Entries of a block, keys without what they share, as far as they decode.
fn entries(block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut decoder = Decoder::new(body(block));
    let mut next = || {
        decoder.varint32()?;
        let (key_len, value_len) = (decoder.varint32()?, decoder.varint32()?);
        Some((decoder.bytes(key_len as usize)?.to_vec(), decoder.bytes(value_len as usize)?.to_vec()))
    };
    while let Some(entry) = next() {
        found.push(entry);
    }
    found
}

/// Handles of an index block that stores sizes as differences.
fn delta_handles(block: &[u8]) -> Vec<Handle> {
    let mut found: Vec<Handle> = Vec::new();
    let mut decoder = Decoder::new(body(block));
    let mut next = |previous: Option<Handle>| {
        let shared = decoder.varint32()?;
        let key_len = decoder.varint32()?;
        decoder.bytes(key_len as usize)?;
        if shared == 0 {
            return handle(&mut decoder);
        }
        let (offset, size) = previous?;
        let size_change = decoder.zigzag64()?;
        Some((offset.checked_add(size)?.checked_add(5)?, size.checked_add_signed(size_change)?))
    };
    while let Some(handle) = next(found.last().copied()) {
        found.push(handle);
    }
    found
}

/// A block without its restart points, if it has them.
fn body(block: &[u8]) -> &[u8] {
    let Some(last) = block.len().checked_sub(4) else { return block };
    let restarts = fixed32_at(block, last) as usize & 0x0FFF_FFFF;
    restarts.checked_mul(4).and_then(|len| last.checked_sub(len)).map_or(block, |end| &block[..end])
}

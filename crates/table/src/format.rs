//! The frame of the file: block handles, footers, block trailers.

use outcrop_base::checksum::{ChecksumType, context_modifier};
use outcrop_base::coding::{Decoder, fixed32_at, fixed64_at, put_varint64};
use outcrop_base::{Error, Result};
use outcrop_env::ReadFile;

/// Bytes after every block: compression type and checksum.
pub const TRAILER_LEN: usize = 5;
/// Bytes of the footer.
pub const FOOTER_LEN: usize = 53;
/// The bytes that an extended footer has where older ones have the metaindex handle.
const EXTENDED_MARKER: [u8; 4] = [0x3E, 0x00, 0x7A, 0x00];
/// The last 8 bytes of a block-based table.
const MAGIC: u64 = 0x88E2_41B7_85F4_CFF7;
const LEGACY_MAGIC: u64 = 0xDB47_7524_8B80_FB57;
const PLAIN_TABLE_MAGICS: [u64; 2] = [0x8242_2296_63BF_9564, 0x4F34_18EB_7A8F_13B8];
const CUCKOO_MAGIC: u64 = 0x9267_89D0_C5F1_7873;

/// Where a block is. The size excludes the trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHandle {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes of the stored contents.
    pub size: u64,
}

impl BlockHandle {
    /// Appends the handle.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// Reads a handle.
    pub fn decode(decoder: &mut Decoder<'_>) -> Option<BlockHandle> {
        Some(BlockHandle { offset: decoder.varint64()?, size: decoder.varint64()? })
    }

    /// Offset just past the block's trailer; `None` if no file can be that long.
    pub fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.size)?.checked_add(TRAILER_LEN as u64)
    }
}

/// The contents of the end of the file.
#[derive(Clone, Copy, Debug)]
pub struct Footer {
    /// How blocks are checksummed.
    pub checksum: ChecksumType,
    /// Format version.
    pub version: u32,
    /// Salt of block checksums from version 6 on; else 0.
    pub base_context_checksum: u32,
    /// The metaindex block.
    pub metaindex: BlockHandle,
    /// The index block; from version 6 on it is named in the metaindex.
    pub index: Option<BlockHandle>,
}

/// An error about `file` at `offset`.
pub fn corruption(file: &dyn ReadFile, offset: u64, what: impl std::fmt::Display) -> Error {
    Error::corruption(format!("{}: offset {offset}: {what}", file.path().display()))
}

/// A refusal of `file`.
pub fn not_supported(file: &dyn ReadFile, what: impl std::fmt::Display) -> Error {
    Error::not_supported(format!("{}: {what}", file.path().display()))
}

impl Footer {
    /// Appends the footer, which will stand at `offset` of the file.
    pub fn encode(&self, offset: u64, out: &mut Vec<u8>) {
        let start = out.len();
        if self.version >= 6 {
            return self.encode_extended(offset, out);
        }
        out.push(self.checksum as u8);
        self.metaindex.encode(out);
        self.index.unwrap_or_default().encode(out);
        out.resize(start + 41, 0);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&MAGIC.to_le_bytes());
    }

    /// The footer of versions 6 and 7. The metaindex stands right before it.
    fn encode_extended(&self, offset: u64, out: &mut Vec<u8>) {
        let mut bytes = [0; FOOTER_LEN];
        bytes[0] = self.checksum as u8;
        bytes[1..5].copy_from_slice(&EXTENDED_MARKER);
        bytes[9..13].copy_from_slice(&self.base_context_checksum.to_le_bytes());
        bytes[13..17].copy_from_slice(&(self.metaindex.size as u32).to_le_bytes());
        bytes[41..45].copy_from_slice(&self.version.to_le_bytes());
        bytes[45..].copy_from_slice(&MAGIC.to_le_bytes());
        let sum = footer_checksum(self.checksum, self.base_context_checksum, offset, &bytes);
        bytes[5..9].copy_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    /// Reads the footer of `file`.
    ///
    /// # Errors
    /// Corruption for what is no table, NotSupported for kinds and versions of tables this reader lacks.
    pub fn read(file: &dyn ReadFile) -> Result<Footer> {
        let size = file.size();
        if size < FOOTER_LEN as u64 {
            return Err(corruption(file, 0, format!("{size} bytes are too few for a table")));
        }
        let at = size - FOOTER_LEN as u64;
        let mut bytes = [0; FOOTER_LEN];
        file.read_exact_at(at, &mut bytes)?;
        check_magic(file, at, fixed64_at(&bytes, 45))?;
        let version = fixed32_at(&bytes, 41);
        if !(2..=7).contains(&version) {
            return Err(not_supported(file, format!("format_version {version}")));
        }
        let checksum = ChecksumType::from_byte(bytes[0]).map_err(|error| corruption(file, at, error))?;
        let footer = if version < 6 {
            let mut decoder = Decoder::new(&bytes[1..41]);
            let metaindex = BlockHandle::decode(&mut decoder);
            let index = BlockHandle::decode(&mut decoder);
            let (Some(metaindex), Some(index)) = (metaindex, index) else {
                return Err(corruption(file, at, "the footer's block handles do not decode"));
            };
            Footer { checksum, version, base_context_checksum: 0, metaindex, index: Some(index) }
        } else {
            Footer::decode_extended(file, at, &bytes, checksum, version)?
        };
        for handle in [Some(footer.metaindex), footer.index].into_iter().flatten() {
            if handle.end().is_none_or(|end| end > at) {
                return Err(corruption(file, at, "the footer names a block outside the file"));
            }
        }
        Ok(footer)
    }

    /// The footer of versions 6 and 7: checksummed, and without the index handle.
    fn decode_extended(
        file: &dyn ReadFile,
        at: u64,
        bytes: &[u8; FOOTER_LEN],
        checksum: ChecksumType,
        version: u32,
    ) -> Result<Footer> {
        if bytes[1..5] != EXTENDED_MARKER {
            return Err(corruption(file, at, "the extended footer lacks its marker"));
        }
        let stored = fixed32_at(bytes, 5);
        let base = fixed32_at(bytes, 9);
        if stored != footer_checksum(checksum, base, at, bytes) {
            return Err(corruption(file, at, "the footer's checksum does not match"));
        }
        if bytes[33..41] != [0; 8] {
            return Err(not_supported(file, "a footer feature of a newer format"));
        }
        let size = u64::from(fixed32_at(bytes, 13));
        let offset = at
            .checked_sub(TRAILER_LEN as u64 + size)
            .ok_or_else(|| corruption(file, at, "the metaindex is larger than the file"))?;
        let metaindex = BlockHandle { offset, size };
        Ok(Footer { checksum, version, base_context_checksum: base, metaindex, index: None })
    }
}

/// The checksum of an extended footer at `offset`, its own place counting as zeros.
fn footer_checksum(checksum: ChecksumType, base: u32, offset: u64, bytes: &[u8; FOOTER_LEN]) -> u32 {
    let mut covered = *bytes;
    covered[5..9].fill(0);
    let (last, data) = covered.split_last().expect("footer is not empty");
    checksum.compute(data, *last).wrapping_add(context_modifier(base, offset))
}

fn check_magic(file: &dyn ReadFile, at: u64, magic: u64) -> Result<()> {
    match magic {
        MAGIC => Ok(()),
        LEGACY_MAGIC => Err(not_supported(file, "format_version 0")),
        CUCKOO_MAGIC => Err(not_supported(file, "a cuckoo table")),
        magic if PLAIN_TABLE_MAGICS.contains(&magic) => Err(not_supported(file, "a plain table")),
        other => Err(corruption(file, at, format!("bad table magic number {other:#018x}"))),
    }
}

/// The trailer of a block stored at `offset`.
pub fn trailer(
    checksum: ChecksumType,
    base: u32,
    contents: &[u8],
    codec: u8,
    offset: u64,
) -> [u8; TRAILER_LEN] {
    let sum = checksum.compute(contents, codec).wrapping_add(context_modifier(base, offset));
    let mut trailer = [codec, 0, 0, 0, 0];
    trailer[1..].copy_from_slice(&sum.to_le_bytes());
    trailer
}

/// Checks the trailer of a stored block: `stored` is contents and trailer. Gives contents and codec.
pub fn verify_block<'b>(
    file: &dyn ReadFile,
    footer: &Footer,
    offset: u64,
    stored: &'b [u8],
) -> Result<(&'b [u8], u8)> {
    let tail = &stored[stored.len() - TRAILER_LEN..];
    let (contents, codec) = split_trailer(stored);
    if footer.checksum != ChecksumType::None {
        let expected = trailer(footer.checksum, footer.base_context_checksum, contents, codec, offset);
        if expected != tail {
            return Err(corruption(
                file,
                offset,
                format!("block checksum mismatch ({} bytes, {})", contents.len(), footer.checksum.name()),
            ));
        }
    }
    Ok((contents, codec))
}

/// Contents and codec of a stored block, which is contents and trailer.
pub fn split_trailer(stored: &[u8]) -> (&[u8], u8) {
    let (contents, tail) = stored.split_at(stored.len() - TRAILER_LEN);
    (contents, tail[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{fixture, put_file};
    use outcrop_env::{FileSystem, OpenRead};

    #[test]
    fn footers_are_written_as_rocksdb_writes_them() {
        for name in ["6.29.5-basic", "10.4.2-basic", "11.8.1-basic", "11.8.1-fv2-bloom10"] {
            let bytes = fixture(&format!("{name}/000009.sst"));
            let (fs, path) = put_file(&bytes);
            let footer = Footer::read(&*fs.open_read(&path, OpenRead::default()).unwrap()).unwrap();
            let at = bytes.len() - FOOTER_LEN;
            let mut written = Vec::new();
            footer.encode(at as u64, &mut written);
            assert_eq!(written, bytes[at..], "{name}");
        }
    }
}

//! Blob files: large values, kept out of tables so that compaction does not copy them.
//!
//! ```text
//! header: u32 magic | u32 version 1 | u32 column family | u8 flags | u8 codec | u64 0 | u64 0
//! record: u64 key length | u64 value length | u64 0 | u32 header crc | u32 blob crc | key | value
//! footer: u32 magic | u64 number of blobs | u64 0 | u64 0 | u32 crc
//! ```
//! Crcs are masked crc32c. Values are stored with the codec of the header, framed like blocks of a table. The
//! table holds a [`BlobIndex`] in place of the value.
//!
//! Files whose records expire (TTL) are refused by name: only an older kind of blob database writes them.
//! Next: `writer.rs`, `reader.rs`. Source: RocksDB `db/blob/blob_log_format.h`, `db/blob/blob_index.h`.

mod reader;
mod records;
mod writer;

pub use reader::BlobReader;
pub use records::{BlobRecord, column_family_of};
pub use writer::{BlobSummary, BlobWriter, BlobWriterOptions};

use outcrop_base::coding::{Decoder, put_varint64};
use outcrop_base::{Error, FileNumber, Result};
use outcrop_options::CompressionType;

const MAGIC: u32 = 0x0024_8F37;
const VERSION: u32 = 1;
/// Flag: records expire.
const HAS_TTL: u8 = 1;
const HEADER_LEN: usize = 30;
const RECORD_HEADER_LEN: usize = 32;
const FOOTER_LEN: usize = 32;

/// Bytes that a blob file grows by with a pair whose value is stored in `value_len` bytes; the unit of the
/// MANIFEST's totals and garbage.
pub fn record_len(key_len: usize, value_len: u64) -> u64 {
    RECORD_HEADER_LEN as u64 + key_len as u64 + value_len
}

/// Bytes of a whole blob file with so many bytes of records. Source: RocksDB `BlobTableFile::GetBlobFileSize`.
pub fn file_len(record_bytes: u64) -> u64 {
    record_bytes + (HEADER_LEN + FOOTER_LEN) as u64
}

/// Where a value is: a table stores this in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobIndex {
    /// Number of the blob file.
    pub file_number: FileNumber,
    /// Offset of the stored value in it.
    pub offset: u64,
    /// Bytes of the stored value.
    pub size: u64,
    /// How it is stored.
    pub codec: CompressionType,
}

impl BlobIndex {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(1);
        put_varint64(out, self.file_number.0);
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
        out.push(self.codec as u8);
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Corruption if it does not decode; NotSupported for values that expire, and for values in the table's
    /// own file.
    pub fn decode(bytes: &[u8]) -> Result<BlobIndex> {
        let broken = || Error::corruption(format!("a blob index of {} bytes does not decode", bytes.len()));
        let mut decoder = Decoder::new(bytes);
        match decoder.byte().ok_or_else(broken)? {
            0 => return Err(Error::not_supported("a blob index of kind kInlinedTTL")),
            1 => {}
            2 => return Err(Error::not_supported("a blob index of kind kBlobTTL")),
            other => return Err(Error::corruption(format!("blob index kind {other}"))),
        }
        let mut parts = || {
            let place = (decoder.varint64()?, decoder.varint64()?, decoder.varint64()?);
            Some((place, decoder.byte()?))
        };
        let ((file_number, offset, size), codec) = parts().ok_or_else(broken)?;
        if !decoder.is_empty() {
            return Err(broken());
        }
        if file_number == 0 {
            return Err(Error::not_supported("a blob within the table's own file"));
        }
        Ok(BlobIndex {
            file_number: FileNumber(file_number),
            offset,
            size,
            codec: CompressionType::from_byte(codec)?,
        })
    }
}

#[cfg(test)]
mod tests;

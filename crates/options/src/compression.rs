//! Block compression: codec and its settings.

use outcrop_base::{Error, Result};

/// The codec of a block; the discriminant is the byte stored behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CompressionType {
    /// Stored as is.
    None = 0,
    /// Snappy.
    Snappy = 1,
    /// Raw deflate.
    Zlib = 2,
    /// bzip2.
    BZip2 = 3,
    /// LZ4 block format.
    Lz4 = 4,
    /// LZ4 block format from the high-compression encoder.
    Lz4hc = 5,
    /// Zstandard.
    Zstd = 7,
}

impl CompressionType {
    /// Decodes the byte behind a block.
    ///
    /// # Errors
    /// NotSupported for codecs that exist elsewhere (XPRESS, custom managers).
    pub fn from_byte(byte: u8) -> Result<CompressionType> {
        Ok(match byte {
            0 => CompressionType::None,
            1 => CompressionType::Snappy,
            2 => CompressionType::Zlib,
            3 => CompressionType::BZip2,
            4 => CompressionType::Lz4,
            5 => CompressionType::Lz4hc,
            7 => CompressionType::Zstd,
            other => return Err(Error::not_supported(format!("compression type {other:#04x}"))),
        })
    }
}

/// Settings of the codec.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionOptions {
    /// Level of the codec; 32767 means the codec's own default.
    /// Source: RocksDB `compression_opts.level`.
    pub level: i32,
    /// A block whose compressed form is larger than this many bytes per KiB is stored uncompressed; 0 to
    /// 1023; default 896. Source: RocksDB `compression_opts.max_compressed_bytes_per_kb`.
    pub max_compressed_bytes_per_kb: u32,
}

impl Default for CompressionOptions {
    fn default() -> Self {
        CompressionOptions { level: 32767, max_compressed_bytes_per_kb: 896 }
    }
}

//! Block compression: codec and its settings.

use outcrop_base::{Error, Result};

/// The codec of a block; the discriminant is the byte stored after it.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{ColumnFamilyOptions, CompressionType};
///
/// // Fast above, small at the bottom, where most of the data is.
/// let options = ColumnFamilyOptions {
///     compression: CompressionType::Lz4,
///     bottommost_compression: Some(CompressionType::Zstd),
///     ..ColumnFamilyOptions::default()
/// };
/// # assert_eq!(options.compression, CompressionType::Lz4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CompressionType {
    /// Stored as is.
    #[default]
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
    /// Decodes the byte after a block.
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

/// Settings of the codec. Source: RocksDB `compression_opts`, under these names.
///
/// ```
/// # mod outcrop { pub use outcrop_options as options; }
/// use outcrop::options::{ColumnFamilyOptions, CompressionOptions, CompressionType};
///
/// let options = ColumnFamilyOptions {
///     compression: CompressionType::Zstd,
///     compression_opts: CompressionOptions { level: 6, ..CompressionOptions::default() },
///     ..ColumnFamilyOptions::default()
/// };
/// # assert_eq!(options.compression_opts.level, 6);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CompressionOptions {
    /// Window of Zlib as a power of two, negative for streams without header, which is what tables hold.
    /// -14 to -9; default -14. More than 14 counts as 14: RocksDB reads with no larger window.
    pub window_bits: i32,
    /// Level of the codec (Zlib, LZ4HC, ZSTD); default 32767, which means the codec's own default.
    pub level: i32,
    /// Largest size of a table's dictionary for Zlib, LZ4, LZ4HC and ZSTD, in bytes; default 0: none.
    pub max_dict_bytes: u32,
    /// Bytes of samples from which a ZSTD dictionary is trained; default 0: the samples themselves, up to
    /// `max_dict_bytes`, are the dictionary.
    pub zstd_max_train_bytes: u32,
    /// Bytes of data blocks kept in memory to take samples from before the first is written; default 0: as
    /// many as there are bytes of samples.
    pub max_dict_buffer_bytes: u64,
    /// A block whose compressed form is larger than this many bytes per KiB is stored uncompressed; 0 to
    /// 1023; default 896.
    pub max_compressed_bytes_per_kb: u32,
    /// ZSTD frames carry a checksum of their own; default false.
    pub checksum: bool,
    /// Strategy of Zlib. Kept only: blocks are compressed by the default one.
    pub strategy: i32,
    /// Threads that compress one table's blocks. Kept only: the thread that writes a table compresses them. Default 1.
    pub parallel_threads: u32,
    /// As `bottommost_compression_opts`: these settings hold where `bottommost_compression` is used; otherwise those of
    /// `compression_opts` do. Default false.
    pub enabled: bool,
    /// How RocksDB makes dictionaries from samples. Kept only: here they are trained. Default true.
    pub use_zstd_dict_trainer: bool,
}

impl Default for CompressionOptions {
    fn default() -> Self {
        CompressionOptions {
            window_bits: -14,
            level: 32767,
            max_dict_bytes: 0,
            zstd_max_train_bytes: 0,
            max_dict_buffer_bytes: 0,
            max_compressed_bytes_per_kb: 896,
            checksum: false,
            strategy: 0,
            parallel_threads: 1,
            enabled: false,
            use_zstd_dict_trainer: true,
        }
    }
}

//! Checksums of log records and table blocks. Bytes: `docs/format/checksums.md`.

use crate::error::{Error, Result};

/// crc32c of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// crc32c of the concatenation of what `crc` covers and `bytes`.
#[inline]
pub fn crc32c_extend(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// Disguises a crc that is stored beside the data it covers, so that a crc of data holding crcs stays useful.
#[inline]
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// The inverse of [`mask`].
#[inline]
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(0xA282_EAD8).rotate_left(15)
}

/// The checksum a table uses for its blocks; the discriminant is the byte in the footer.
///
/// ```
/// # mod outcrop { pub mod options { pub use outcrop_base::checksum::ChecksumType; } }
/// use outcrop::options::ChecksumType;
///
/// assert_eq!(ChecksumType::Xxh3 as u8, 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChecksumType {
    /// Blocks are not verified.
    None = 0,
    /// Masked crc32c.
    Crc32c = 1,
    /// XXH32.
    XxHash = 2,
    /// Low half of XXH64.
    XxHash64 = 3,
    /// Low half of XXH3-64; the default.
    Xxh3 = 4,
}

impl ChecksumType {
    /// Decodes the footer's byte.
    ///
    /// # Errors
    /// Corruption for a number no RocksDB writes.
    pub fn from_byte(byte: u8) -> Result<ChecksumType> {
        Ok(match byte {
            0 => ChecksumType::None,
            1 => ChecksumType::Crc32c,
            2 => ChecksumType::XxHash,
            3 => ChecksumType::XxHash64,
            4 => ChecksumType::Xxh3,
            other => return Err(Error::corruption(format!("unknown checksum type {other}"))),
        })
    }

    /// The name RocksDB's options use.
    pub fn name(self) -> &'static str {
        match self {
            ChecksumType::None => "kNoChecksum",
            ChecksumType::Crc32c => "kCRC32c",
            ChecksumType::XxHash => "kxxHash",
            ChecksumType::XxHash64 => "kxxHash64",
            ChecksumType::Xxh3 => "kXXH3",
        }
    }

    /// The checksum of `data` followed by the byte `last` (for blocks, the compression type).
    ///
    /// Source: RocksDB `table/format.cc`, `ComputeBuiltinChecksumWithLastByte`.
    pub fn compute(self, data: &[u8], last: u8) -> u32 {
        match self {
            ChecksumType::None => 0,
            ChecksumType::Crc32c => mask(crc32c_extend(crc32c(data), &[last])),
            ChecksumType::XxHash => {
                let mut hasher = xxhash_rust::xxh32::Xxh32::new(0);
                hasher.update(data);
                hasher.update(&[last]);
                hasher.digest()
            }
            ChecksumType::XxHash64 => {
                let mut hasher = xxhash_rust::xxh64::Xxh64::new(0);
                hasher.update(data);
                hasher.update(&[last]);
                hasher.digest() as u32
            }
            ChecksumType::Xxh3 => {
                xxhash_rust::xxh3::xxh3_64(data) as u32 ^ u32::from(last).wrapping_mul(0x6B90_83D9)
            }
        }
    }
}

/// The number that format_version 6 and later add to a block's checksum, so that a block moved to another
/// file or offset does not verify. `base` is the footer's `base_context_checksum`; 0 means none.
#[inline]
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ (offset as u32).wrapping_add((offset >> 32) as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_and_mask_match_the_published_vectors() {
        assert_eq!(crc32c(b"hello world"), 0xc994_65aa);
        assert_eq!(mask(crc32c(b"hello world")), 0x6dd8_7e00);
        assert_eq!(unmask(mask(0x1234_5678)), 0x1234_5678);
    }

    #[test]
    fn block_checksums_match_rocksdb() {
        use ChecksumType::*;
        let expected = [
            (Crc32c, 0x838f_a897, 0x71b6_1d62),
            (XxHash, 0x76c3_f8e8, 0x86d0_3457),
            (XxHash64, 0x2fec_4e26, 0x76de_3e36),
            (Xxh3, 0x5c62_dcfd, 0xf220_d399),
        ];
        for (kind, with_0, with_4) in expected {
            assert_eq!(kind.compute(b"hello", 0), with_0, "{kind:?}");
            assert_eq!(kind.compute(b"hello", 4), with_4, "{kind:?}");
        }
    }

    #[test]
    fn context_modifier_matches_rocksdb() {
        assert_eq!(context_modifier(0x2418_6084, 93), 0x2418_60d9);
        assert_eq!(context_modifier(0x2418_6084, 5 * (1 << 32) + 7), 0x2418_6088);
        assert_eq!(context_modifier(0, 93), 0);
    }
}

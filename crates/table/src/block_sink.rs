//! Appends blocks to the file of a table: compression, checksum, trailer.

use crate::compress::Compressor;
use crate::format::{BlockHandle, TRAILER_LEN, trailer};
use outcrop_base::Result;
use outcrop_base::checksum::ChecksumType;
use outcrop_env::WriteFile;
use outcrop_options::CompressionType;

/// How blocks of a table were stored, and their bytes before compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBlocks {
    /// Compressed.
    pub compressed: u64,
    /// Their bytes.
    pub compressed_from: u64,
    /// Their bytes after it.
    pub compressed_to: u64,
    /// As they are, as they did not get small enough.
    pub rejected: u64,
    /// Their bytes.
    pub rejected_bytes: u64,
    /// As they are, as nothing was to be compressed.
    pub bypassed: u64,
    /// Their bytes.
    pub bypassed_bytes: u64,
}

impl StoredBlocks {
    fn note(&mut self, block: &[u8], compressed: Option<&[u8]>, tried: bool) {
        let bytes = block.len() as u64;
        match compressed {
            Some(compressed) => {
                self.compressed += 1;
                self.compressed_from += bytes;
                self.compressed_to += compressed.len() as u64;
            }
            None if tried => {
                self.rejected += 1;
                self.rejected_bytes += bytes;
            }
            None => {
                self.bypassed += 1;
                self.bypassed_bytes += bytes;
            }
        }
    }
}

/// The file of a table under construction.
pub struct BlockSink {
    pub file: Box<dyn WriteFile>,
    /// Bytes appended.
    pub offset: u64,
    pub checksum: ChecksumType,
    /// Salt of block checksums from format_version 6 on; else 0.
    pub base_context_checksum: u32,
    /// Codecs that blocks were stored with, one bit each.
    pub codecs_used: u64,
    /// How those blocks were stored that a compressor was asked for.
    pub stored: StoredBlocks,
    buffer: Vec<u8>,
}

impl BlockSink {
    /// Appends to the empty `file`.
    pub fn new(file: Box<dyn WriteFile>, checksum: ChecksumType, base_context_checksum: u32) -> BlockSink {
        BlockSink {
            file,
            offset: 0,
            checksum,
            base_context_checksum,
            codecs_used: 0,
            stored: StoredBlocks::default(),
            buffer: Vec::new(),
        }
    }

    /// Appends a block as it is.
    pub fn append_plain(&mut self, block: &[u8]) -> Result<BlockHandle> {
        self.append(block, CompressionType::None, None)
    }

    /// Appends a block, compressed if that makes it small enough.
    pub fn append_compressed(&mut self, block: &[u8], compressor: &mut Compressor) -> Result<BlockHandle> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let codec = compressor.compress(block, &mut buffer)?;
        let stored = (codec != CompressionType::None).then_some(buffer.as_slice());
        self.stored.note(block, stored, compressor.tries(block));
        let handle = self.append(block, codec, stored);
        self.buffer = buffer;
        handle
    }

    /// Appends zeros up to a multiple of `alignment`, a power of two.
    pub fn pad_to(&mut self, alignment: u64) -> Result<()> {
        let padding = self.offset.next_multiple_of(alignment) - self.offset;
        self.file.append(&vec![0; padding as usize])?;
        self.offset += padding;
        Ok(())
    }

    fn append(
        &mut self,
        block: &[u8],
        codec: CompressionType,
        compressed: Option<&[u8]>,
    ) -> Result<BlockHandle> {
        let stored = compressed.unwrap_or(block);
        let handle = BlockHandle { offset: self.offset, size: stored.len() as u64 };
        self.file.append(stored)?;
        let tail = trailer(self.checksum, self.base_context_checksum, stored, codec as u8, self.offset);
        self.file.append(&tail)?;
        self.offset += handle.size + TRAILER_LEN as u64;
        self.codecs_used |= 1 << codec as u8;
        Ok(handle)
    }
}

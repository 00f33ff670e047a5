//! Appends blocks to the file of a table: compression, checksum, trailer.

use crate::compress::Compressor;
use crate::format::{BlockHandle, TRAILER_LEN, trailer};
use outcrop_base::Result;
use outcrop_base::checksum::ChecksumType;
use outcrop_env::WriteFile;
use outcrop_options::CompressionType;

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
    buffer: Vec<u8>,
}

impl BlockSink {
    /// Appends to the empty `file`.
    pub fn new(file: Box<dyn WriteFile>, checksum: ChecksumType, base_context_checksum: u32) -> BlockSink {
        BlockSink { file, offset: 0, checksum, base_context_checksum, codecs_used: 0, buffer: Vec::new() }
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

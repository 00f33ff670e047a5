//! Where a table's dictionary comes from: samples of its own first data blocks.
//!
//! While samples are gathered, data blocks wait in memory uncompressed; when there are enough, the dictionary
//! is built, the waiting blocks are written with it, and so are all that follow.
//! Source: RocksDB `table/block_based/block_based_table_builder.cc`, `EnterUnbuffered`.

use outcrop_options::{CompressionOptions, CompressionType};
use zstd::zstd_safe;

/// A prime: steps of it modulo the number of blocks reach every block, in an order that samples all parts.
const STRIDE: u64 = 545_055_921_143;

/// Data blocks waiting for the dictionary.
pub struct Sampler {
    /// Bytes that are enough.
    limit: u64,
    bytes: u64,
    blocks: Vec<Vec<u8>>,
}

impl Sampler {
    /// A sampler for tables with these options; `None` if they ask for no dictionary.
    pub fn new(codec: CompressionType, options: &CompressionOptions) -> Option<Sampler> {
        if options.max_dict_bytes == 0 || !super::has_dictionary(codec) {
            return None;
        }
        let limit = match options.max_dict_buffer_bytes {
            0 => u64::from(sample_bytes(codec, options)),
            bytes => bytes,
        };
        Some(Sampler { limit, bytes: 0, blocks: Vec::new() })
    }

    /// Keeps a block. True if there are enough.
    pub fn add(&mut self, block: &[u8]) -> bool {
        self.bytes += block.len() as u64;
        self.blocks.push(block.to_vec());
        self.bytes >= self.limit
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The waiting blocks, in order.
    pub fn into_blocks(self) -> Vec<Vec<u8>> {
        self.blocks
    }
}

/// Bytes of samples to take.
fn sample_bytes(codec: CompressionType, options: &CompressionOptions) -> u32 {
    match options.zstd_max_train_bytes {
        bytes if bytes > 0 && codec == CompressionType::Zstd => bytes,
        _ => options.max_dict_bytes,
    }
}

/// The dictionary for tables starting with `blocks`; empty if they do not give one.
pub fn build_dictionary(codec: CompressionType, options: &CompressionOptions, blocks: &[Vec<u8>]) -> Vec<u8> {
    let wanted = sample_bytes(codec, options) as usize;
    let mut samples: Vec<u8> = Vec::new();
    let mut sizes: Vec<usize> = Vec::new();
    let count = blocks.len();
    let stride = (STRIDE % count.max(1) as u64) as usize;
    let mut at = count / 2;
    for _ in 0..count {
        if samples.len() >= wanted {
            break;
        }
        let block = &blocks[at];
        let len = block.len().min(wanted - samples.len());
        samples.extend_from_slice(&block[..len]);
        sizes.push(len);
        at = (at + stride) % count;
    }
    if codec != CompressionType::Zstd || options.zstd_max_train_bytes == 0 {
        return samples;
    }
    let mut dictionary = vec![0; samples.len().min(options.max_dict_bytes as usize)];
    // Training refuses samples that are few or all alike; the table then does without a dictionary.
    let len = zstd_safe::train_from_buffer(&mut dictionary[..], &samples, &sizes).unwrap_or(0);
    dictionary.truncate(len);
    dictionary
}

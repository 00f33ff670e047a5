//! The bloom filter of format_version 4 and older: a 32-bit hash, and lines of the writer's cache line size.
//!
//! ```text
//! lines | probes: u8 | number of lines: u32
//! ```
//! Source: RocksDB `util/bloom_impl.h`, `LegacyLocalityBloomImpl`.

use outcrop_base::hash::legacy_hash;

/// Seed of the hash.
const SEED: u32 = 0xBC9F_1D34;
/// Bits of a line this writer makes.
const LINE_BITS: u64 = 512;
/// The most bits a filter has.
const MOST_BITS: u64 = 0xFFFF_0000;

/// The hash of a key in such filters.
#[inline]
pub fn hash(key: &[u8]) -> u32 {
    legacy_hash(key, SEED)
}

/// The bits of a key: offset of its line, then each bit within the line.
#[inline]
fn bits_of(hash: u32, lines: u32, line_len: u32, probes: u8) -> (usize, impl Iterator<Item = usize>) {
    let start = (hash % lines) as usize * line_len as usize;
    let step = hash.rotate_right(17);
    let mask = line_len * 8 - 1;
    let mut h = hash;
    let bits = (0..probes).map(move |_| {
        let bit = h & mask;
        h = h.wrapping_add(step);
        bit as usize
    });
    (start, bits)
}

/// False if the key with this hash was not added. `line_len` is a power of two.
#[inline]
pub fn may_contain(bytes: &[u8], lines: u32, line_len: u32, probes: u8, hash: u32) -> bool {
    let (start, mut bits) = bits_of(hash, lines, line_len, probes);
    bits.all(|bit| bytes[start + bit / 8] & (1 << (bit % 8)) != 0)
}

/// The filter block of keys with these hashes.
pub fn build(hashes: &[u64], millibits_per_key: u64) -> Vec<u8> {
    let bits = (hashes.len() as u64 * millibits_per_key / 1000).min(MOST_BITS);
    // An odd number: more bits of the hash then choose the line.
    let lines = (bits.div_ceil(LINE_BITS) | 1) as u32;
    let line_len = (LINE_BITS / 8) as u32;
    let probes = (millibits_per_key * 69 / 100_000).clamp(1, 30) as u8;
    let mut block = vec![0; lines as usize * line_len as usize];
    for hash in hashes {
        let (start, bits) = bits_of(*hash as u32, lines, line_len, probes);
        bits.for_each(|bit| block[start + bit / 8] |= 1 << (bit % 8));
    }
    block.push(probes);
    block.extend_from_slice(&lines.to_le_bytes());
    block
}

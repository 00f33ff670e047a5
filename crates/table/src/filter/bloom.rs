//! FastLocalBloom: the probes of one key stay within one cache line.
//!
//! ```text
//! lines of 64 bytes | 0xFF | 0 | probes | 0 0
//! ```
//! Source: RocksDB `util/bloom_impl.h`, `FastLocalBloomImpl`.

use outcrop_base::hash::fastrange32;

/// Bytes of a line.
pub const LINE: usize = 64;
/// Multiplier between probes.
const STEP: u32 = 0x9E37_79B9;
/// The largest filter, in bytes.
const LARGEST: u64 = 0xFFFF_FFC0;

/// Offset of the line that a key with this hash is in.
#[inline]
pub fn line_offset(lines: u32, hash: u64) -> usize {
    fastrange32(hash as u32, lines) as usize * LINE
}

/// False if the key with this hash was not added.
#[inline]
pub fn may_contain(bytes: &[u8], lines: u32, probes: u8, hash: u64) -> bool {
    let start = line_offset(lines, hash);
    let line: &[u8; LINE] = bytes[start..start + LINE].try_into().expect("a line");
    let mut x = (hash >> 32) as u32;
    for _ in 0..probes {
        let bit = x >> 23;
        if line[(bit >> 3) as usize] & (1 << (bit & 7)) == 0 {
            return false;
        }
        x = x.wrapping_mul(STEP);
    }
    true
}

/// Bytes of filter bits for this many keys.
pub fn len_for(keys: usize, millibits_per_key: u64) -> usize {
    let bytes = (keys as u64 * millibits_per_key).div_ceil(8000);
    bytes.next_multiple_of(LINE as u64).min(LARGEST) as usize
}

/// The filter block of keys with these hashes.
pub fn build(hashes: &[u64], millibits_per_key: u64) -> Vec<u8> {
    let len = len_for(hashes.len(), millibits_per_key);
    let probes = probes_for(millibits_per_key);
    let lines = (len / LINE) as u32;
    let mut block = vec![0; len];
    for hash in hashes {
        let start = line_offset(lines, *hash);
        let line = &mut block[start..start + LINE];
        let mut x = (hash >> 32) as u32;
        for _ in 0..probes {
            let bit = x >> 23;
            line[(bit >> 3) as usize] |= 1 << (bit & 7);
            x = x.wrapping_mul(STEP);
        }
    }
    block.extend_from_slice(&[0xFF, 0, probes, 0, 0]);
    block
}

/// Bits to test per key, for the lowest false-positive rate at this size.
fn probes_for(millibits: u64) -> u8 {
    const LIMITS: [(u64, u8); 12] = [
        (2080, 1),
        (3580, 2),
        (5100, 3),
        (6640, 4),
        (8300, 5),
        (10_070, 6),
        (11_720, 7),
        (14_001, 8),
        (16_050, 9),
        (18_300, 10),
        (22_001, 11),
        (25_501, 12),
    ];
    match LIMITS.iter().find(|(limit, _)| millibits <= *limit) {
        Some((_, probes)) => *probes,
        None if millibits > 50_000 => 24,
        None => ((millibits - 1) / 2000 - 1) as u8,
    }
}

/// How often, as a fraction, a filter of this size says yes to a stranger.
///
/// Source: RocksDB `util/bloom_impl.h`, `BloomMath::CacheLocalFpRate`.
pub fn false_positive_rate(millibits_per_key: u64) -> f64 {
    let probes = f64::from(probes_for(millibits_per_key));
    let rate = |bits_per_key: f64| (1.0 - (-probes / bits_per_key).exp()).powf(probes);
    let line_bits = (LINE * 8) as f64;
    let keys_per_line = line_bits * 1000.0 / millibits_per_key as f64;
    // Keys fall on lines unevenly: one deviation more, and one fewer, stand for all.
    let deviation = keys_per_line.sqrt();
    (rate(line_bits / (keys_per_line + deviation)) + rate(line_bits / (keys_per_line - deviation))) / 2.0
}

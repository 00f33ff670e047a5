//! The hashes other than XXPH3 that RocksDB's files depend on.

use crate::coding::fixed32_at;

/// XXH3-64 of `bytes`, seed 0.
#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// XXH3-128 of `bytes` with `seed`: (high half, low half).
pub fn xxh3_128(bytes: &[u8], seed: u64) -> (u64, u64) {
    let hash = xxhash_rust::xxh3::xxh3_128_with_seed(bytes, seed);
    ((hash >> 64) as u64, hash as u64)
}

/// LevelDB's 32-bit hash: legacy filters use seed 0xBC9F1D34, data-block hash indexes seed 397.
///
/// The tail bytes are sign-extended, as the original's `char` was.
/// Source: RocksDB `util/hash.cc`, `Hash`.
pub fn legacy_hash(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xC6A4_A793;
    let mut h = seed ^ (bytes.len() as u32).wrapping_mul(M);
    let words = bytes.len() / 4;
    for word in 0..words {
        h = h.wrapping_add(fixed32_at(bytes, word * 4)).wrapping_mul(M);
        h ^= h >> 16;
    }
    let tail = &bytes[words * 4..];
    for (i, &byte) in tail.iter().enumerate().rev() {
        h = h.wrapping_add(((byte as i8) as u32) << (8 * i));
    }
    if !tail.is_empty() {
        h = h.wrapping_mul(M);
        h ^= h >> 24;
    }
    h
}

/// Maps a 32-bit hash evenly onto `0..range` without division.
#[inline]
pub fn fastrange32(hash: u32, range: u32) -> u32 {
    ((u64::from(hash) * u64::from(range)) >> 32) as u32
}

/// Maps a 64-bit hash evenly onto `0..range` without division.
#[inline]
pub fn fastrange64(hash: u64, range: u64) -> u64 {
    ((u128::from(hash) * u128::from(range)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_hash_matches_rocksdb() {
        let seq = |n: usize| (0..n).map(|i| i as u8).collect::<Vec<_>>();
        let cases: [(Vec<u8>, u32, u32); 7] = [
            (b"".to_vec(), 0x0000_018d, 0xbc9f_1d34),
            (b"a".to_vec(), 0x5c84_73b1, 0x286e_9db0),
            (b"ab".to_vec(), 0xe77f_7d03, 0x39ac_a330),
            (b"abc".to_vec(), 0x1d9a_a392, 0x855d_012f),
            (vec![0xFF, 0xFE, 0xFD], 0xfc8b_11b5, 0x644d_6f00),
            (seq(20), 0xb74e_40e3, 0x141e_a634),
            (seq(1100), 0xc697_668a, 0xe3a1_1f3b),
        ];
        for (input, block_index, bloom) in cases {
            assert_eq!(legacy_hash(&input, 397), block_index, "{} bytes", input.len());
            assert_eq!(legacy_hash(&input, 0xBC9F_1D34), bloom, "{} bytes", input.len());
        }
    }

    #[test]
    fn xxh3_128_matches_rocksdb_unique_ids() {
        let (hi, lo) = xxh3_128(b"77f5e21b-adfc-4e28-b5d1-7c2b1a2dbe15", 0x0000_000c_3cfb_3b38);
        assert_eq!((hi, lo), (0xcb04_3733_db77_1bae, 0xe1d3_c127_b3e2_2f3f));
    }
}

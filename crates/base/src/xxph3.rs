//! XXPH3: the frozen preview of XXH3 that RocksDB's filters hash with.
//!
//! It is not XXH3: results differ at every length. RocksDB keeps it because filters on disk depend on it.
//! Source: RocksDB `util/xxph3.h`; algorithm and vectors in `docs/format/filters.md`.

const P32_1: u64 = 0x9E37_79B1;
const P32_2: u64 = 0x85EB_CA77;
const P32_3: u64 = 0xC2B2_AE3D;
const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// The default secret of XXH3.
static SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde,
    0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79,
    0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46,
    0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb,
    0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2,
    0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c,
    0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59,
    0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3,
    0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3,
    0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8,
    0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb,
    0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

#[inline]
fn r32(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")))
}

#[inline]
fn r64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 37;
    h = h.wrapping_mul(P3);
    h ^ (h >> 32)
}

/// The mix of the 16 bytes of `input` with those of the secret at `secret`.
#[inline]
fn mix(input: &[u8; 16], secret: usize) -> u64 {
    let (low, high) = (r64(input, 0), r64(input, 8));
    fold(low ^ r64(&SECRET, secret), high ^ r64(&SECRET, secret + 8))
}

#[inline]
fn mix16(input: &[u8], at: usize, secret: usize) -> u64 {
    fold(r64(input, at) ^ r64(&SECRET, secret), r64(input, at + 8) ^ r64(&SECRET, secret + 8))
}

/// XXPH3-64 of `input` with seed 0: RocksDB's `GetSliceHash64`.
#[inline]
pub fn xxph3_64(input: &[u8]) -> u64 {
    let n = input.len();
    let len = n as u64;
    match n {
        0 => fold(r64(&SECRET, 0), P2),
        1..=3 => {
            let combined = u64::from(input[0])
                | u64::from(input[n / 2]) << 8
                | u64::from(input[n - 1]) << 16
                | len << 24;
            avalanche((combined ^ r32(&SECRET, 0)).wrapping_mul(P1))
        }
        4..=8 => {
            let x = r32(input, 0) | r32(input, n - 4) << 32;
            let k = x ^ r64(&SECRET, 0);
            let m = len.wrapping_add((k ^ (k >> 51)).wrapping_mul(P32_1));
            avalanche((m ^ (m >> 47)).wrapping_mul(P2))
        }
        9..=16 => {
            let lo = r64(input, 0) ^ r64(&SECRET, 0);
            let hi = r64(input, n - 8) ^ r64(&SECRET, 8);
            avalanche(len.wrapping_add(lo).wrapping_add(hi).wrapping_add(fold(lo, hi)))
        }
        17..=128 => {
            // From both ends to the middle; the first step has its places in the secret known.
            let (front, _) = input.as_chunks::<16>();
            let (_, back) = input.as_rchunks::<16>();
            let first = mix(&front[0], 0).wrapping_add(mix(&back[back.len() - 1], 16));
            let mut acc = len.wrapping_mul(P1).wrapping_add(first);
            for step in 1..(n - 1) / 32 + 1 {
                acc = acc.wrapping_add(mix(&front[step], 32 * step));
                acc = acc.wrapping_add(mix(&back[back.len() - 1 - step], 32 * step + 16));
            }
            avalanche(acc)
        }
        129..=240 => {
            let mut acc = len.wrapping_mul(P1);
            for i in 0..8 {
                acc = acc.wrapping_add(mix16(input, 16 * i, 16 * i));
            }
            acc = avalanche(acc);
            for i in 8..n / 16 {
                acc = acc.wrapping_add(mix16(input, 16 * i, 16 * (i - 8) + 3));
            }
            avalanche(acc.wrapping_add(mix16(input, n - 16, 119)))
        }
        _ => long(input),
    }
}

fn long(input: &[u8]) -> u64 {
    let n = input.len();
    let mut acc = [P32_3, P1, P2, P3, P4, P32_2, P5, P32_1];
    let stripe = |acc: &mut [u64; 8], at: usize, secret: usize| {
        for (i, lane) in acc.iter_mut().enumerate() {
            let data = r64(input, at + 8 * i);
            let key = data ^ r64(&SECRET, secret + 8 * i);
            *lane = lane.wrapping_add(data).wrapping_add((key & 0xFFFF_FFFF).wrapping_mul(key >> 32));
        }
    };
    let blocks = n / 1024;
    for block in 0..blocks {
        for j in 0..16 {
            stripe(&mut acc, block * 1024 + j * 64, 8 * j);
        }
        for (i, lane) in acc.iter_mut().enumerate() {
            *lane = (*lane ^ (*lane >> 47) ^ r64(&SECRET, 128 + 8 * i)).wrapping_mul(P32_1);
        }
    }
    for j in 0..(n % 1024) / 64 {
        stripe(&mut acc, blocks * 1024 + j * 64, 8 * j);
    }
    if !n.is_multiple_of(64) {
        stripe(&mut acc, n - 64, 121);
    }
    let mut result = (n as u64).wrapping_mul(P1);
    for i in 0..4 {
        let lo = acc[2 * i] ^ r64(&SECRET, 11 + 16 * i);
        let hi = acc[2 * i + 1] ^ r64(&SECRET, 19 + 16 * i);
        result = result.wrapping_add(fold(lo, hi));
    }
    avalanche(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the algorithm is written down, step by step from the middle to the ends.
    fn of_up_to_128(input: &[u8]) -> u64 {
        let n = input.len();
        let mut acc = (n as u64).wrapping_mul(P1);
        for step in (0..(n - 1) / 32 + 1).rev() {
            acc = acc.wrapping_add(mix16(input, 16 * step, 32 * step));
            acc = acc.wrapping_add(mix16(input, n - 16 * (step + 1), 32 * step + 16));
        }
        avalanche(acc)
    }

    #[test]
    fn lengths_up_to_128_are_mixed_from_both_ends() {
        let bytes: Vec<u8> = (0..128u32).map(|i| (i * 37 + 11) as u8).collect();
        for n in 17..=128 {
            assert_eq!(xxph3_64(&bytes[..n]), of_up_to_128(&bytes[..n]), "{n} bytes");
        }
    }

    #[test]
    fn matches_rocksdb_at_every_length_class() {
        let seq = |n: usize| (0..n).map(|i| i as u8).collect::<Vec<_>>();
        let cases: [(Vec<u8>, u64); 13] = [
            (b"".to_vec(), 0x5342_c301_0fe1_dd04),
            (b"a".to_vec(), 0x88d8_68bf_6076_81c7),
            (b"ab".to_vec(), 0x885d_dfe7_af63_10e5),
            (b"abc".to_vec(), 0xd39e_eb71_bb53_42e8),
            (b"foo".to_vec(), 0x2540_784d_970d_de34),
            (b"key1".to_vec(), 0x6568_09c4_f775_fbc3),
            (b"hello world".to_vec(), 0xe5f7_b821_56a0_7a14),
            (vec![0xFF, 0xFE, 0xFD], 0x74a2_ee6c_dedd_0f48),
            (seq(20), 0xac38_32b4_ca24_c68d),
            (seq(100), 0xb625_9f52_ac0f_6ddc),
            (seq(200), 0xd860_7562_8129_a666),
            (seq(300), 0x5095_a23a_4df1_cad4),
            (seq(1100), 0x886f_b366_3275_f0fb),
        ];
        for (input, expected) in cases {
            assert_eq!(xxph3_64(&input), expected, "{} bytes", input.len());
        }
    }
}

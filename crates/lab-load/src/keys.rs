//! Keys: how a number becomes a key, and which number comes next where some are asked for more than others.
//!
//! ```text
//! rocksdb-be64                 | number, 8 bytes big-endian | '0' ...            |    byte order is numeric order
//! rocksdb-be64 with a prefix   | number mod prefixes, '0' ... | number | '0' ... |    keys of a prefix lie together
//! leveldb-dec16                | 'a' ... | number, 16 decimal digits             |
//! ```
//! Invariant: every engine of an experiment gets the same layout, and every step that of the load.
//! Source: RocksDB `tools/db_bench_tool.cc`, `GenerateKeyFromInt` and `GetRandomKey`; LevelDB `benchmarks/db_bench.cc`.

use serde::{Deserialize, Serialize};

/// The tool whose keys are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generator {
    /// RocksDB's db_bench: big-endian binary.
    #[default]
    #[serde(rename = "rocksdb-be64")]
    RocksDbBe64,
    /// LevelDB's db_bench: sixteen decimal digits at the end.
    #[serde(rename = "leveldb-dec16")]
    LevelDbDec16,
}

impl Generator {
    /// As experiments and records say it.
    pub fn name(self) -> &'static str {
        match self {
            Generator::RocksDbBe64 => "rocksdb-be64",
            Generator::LevelDbDec16 => "leveldb-dec16",
        }
    }
}

/// The prefix that keys of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPrefix {
    /// Its bytes.
    pub size: usize,
    /// Number of different prefixes: keys over keys per prefix.
    pub count: u64,
}

/// How numbers become keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyLayout {
    /// The tool whose keys are made.
    pub generator: Generator,
    /// The prefix that keys of a group share; `None`: none.
    pub prefix: Option<KeyPrefix>,
}

/// Decimal digits of a key of LevelDB's.
const DIGITS: usize = 16;

impl KeyLayout {
    /// The mistake in it for keys of `key_size` bytes, if there is one.
    ///
    /// # Errors
    /// A clause.
    pub fn check(self, key_size: usize) -> Result<(), String> {
        match self {
            KeyLayout { generator: Generator::LevelDbDec16, prefix: Some(_) } => {
                Err("keys of leveldb-dec16 have no prefix_size and keys_per_prefix".to_string())
            }
            KeyLayout { generator: Generator::LevelDbDec16, .. } if key_size < DIGITS => {
                Err(format!("keys of leveldb-dec16 have {DIGITS} digits: key_size must be at least that"))
            }
            KeyLayout { prefix: Some(prefix), .. } if prefix.size >= key_size => {
                Err("prefix_size must be below key_size: the number follows the prefix".to_string())
            }
            KeyLayout { prefix: Some(prefix), .. } if prefix.count == 0 => {
                Err("keys_per_prefix is above the number of keys: there would be no prefix".to_string())
            }
            _ => Ok(()),
        }
    }

    /// Writes the key of `number` into `key`, whose length is the key size.
    #[inline]
    pub fn write(self, number: u64, key: &mut [u8]) {
        match self {
            KeyLayout { generator: Generator::RocksDbBe64, prefix: None } => write_number(number, key),
            KeyLayout { generator: Generator::RocksDbBe64, prefix: Some(prefix) } => {
                let (head, body) = key.split_at_mut(prefix.size);
                write_number(number % prefix.count, head);
                write_number(number, body);
            }
            KeyLayout { generator: Generator::LevelDbDec16, .. } => write_digits(number, key),
        }
    }
}

/// Writes `number` big-endian into the first 8 bytes, and `'0'` into the others; shorter keys keep the low bytes.
#[inline]
fn write_number(number: u64, key: &mut [u8]) {
    let bytes = number.to_be_bytes();
    let len = key.len().min(8);
    key[..len].copy_from_slice(&bytes[8 - len..]);
    key[len..].fill(b'0');
}

fn write_digits(mut number: u64, key: &mut [u8]) {
    let (head, digits) = key.split_at_mut(key.len() - DIGITS);
    head.fill(b'a');
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A number below `num` made of the uniform `random`: few of them most often, the more so the larger `range` is, and
/// scattered over all so that the frequent ones are no neighbours. Some numbers may never come.
pub fn exponential(random: u64, range: f64, num: u64) -> u64 {
    const BITS: u64 = 1 << 62;
    /// Multiplied with, modulo 2^64: it only scatters.
    const SCATTER: u64 = 0x5bd1_e995;
    let order = -((random % BITS) as f64 / BITS as f64) * range;
    ((order.exp() * num as f64) as u64).wrapping_mul(SCATTER) % num
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(layout: KeyLayout, number: u64, size: usize) -> Vec<u8> {
        let mut key = vec![0; size];
        layout.write(number, &mut key);
        key
    }

    fn prefixed(size: usize, count: u64) -> KeyLayout {
        KeyLayout { prefix: Some(KeyPrefix { size, count }), ..KeyLayout::default() }
    }

    #[test]
    fn keys_are_those_of_db_bench() {
        let plain = KeyLayout::default();
        assert_eq!(key(plain, 0x0102, 20), b"\0\0\0\0\0\0\x01\x02000000000000");
        assert_eq!(key(plain, 0x0102_0304_0506, 4), b"\x03\x04\x05\x06");
        assert_eq!(key(plain, 7, 10), b"\0\0\0\0\0\0\0\x0700");
    }

    #[test]
    fn keys_of_a_group_begin_with_its_prefix() {
        // 1000 keys, 10 to a prefix: number 517 has prefix 17 of 100.
        assert_eq!(key(prefixed(4, 100), 517, 16), b"\0\0\0\x11\0\0\0\0\0\0\x02\x050000");
        assert_eq!(key(prefixed(10, 100), 517, 20), b"\0\0\0\0\0\0\0\x1100\0\0\0\0\0\0\x02\x0500");
        assert_eq!(key(prefixed(4, 100), 517, 16)[..4], key(prefixed(4, 100), 617, 16)[..4]);
        // The bytes left after the prefix keep the low bytes.
        assert_eq!(key(prefixed(6, 100), 0x0001_0203, 8), b"\0\0\0\0\0\x33\x02\x03");
    }

    #[test]
    fn leveldbs_keys_are_decimal_behind_their_common_beginning() {
        let layout = KeyLayout { generator: Generator::LevelDbDec16, prefix: None };
        assert_eq!(key(layout, 417, 16), b"0000000000000417");
        assert_eq!(key(layout, 417, 19), b"aaa0000000000000417");
        assert!(layout.check(15).is_err() && layout.check(16).is_ok());
        let grouped = KeyLayout { prefix: Some(KeyPrefix { size: 1, count: 5 }), ..layout };
        assert!(grouped.check(20).is_err());
        assert!(prefixed(20, 5).check(20).is_err() && prefixed(8, 0).check(20).is_err());
        assert!(prefixed(8, 1).check(20).is_ok());
    }

    #[test]
    fn an_exponential_range_makes_few_numbers_frequent() {
        // By the formula: u = 0 gives num, u = 1/2 of a range of 2 gives num / e.
        assert_eq!(exponential(0, 2.0, 1000), 0);
        assert_eq!(exponential(1 << 61, 2.0, 1000), 367 * 0x5bd1_e995 % 1000);
        assert_eq!(
            exponential((1 << 62) + 5, 2.0, 1000),
            exponential(5, 2.0, 1000),
            "the high bits fall away"
        );
        let hottest = |range: f64| {
            let mut counts = vec![0u32; 1000];
            (0..100_000u64)
                .for_each(|i| counts[exponential(i * ((1 << 62) / 100_000), range, 1000) as usize] += 1);
            *counts.iter().max().unwrap()
        };
        // At 10, numbers below 1 come with probability 1 - ln(1000) / 10.
        assert!((30_000..32_000).contains(&hottest(10.0)), "{}", hottest(10.0));
        assert!(hottest(0.001) > 90_000, "nearly everything is num - 1");
        assert!(hottest(2.0) < 1_500, "{}", hottest(2.0));
    }
}

//! Bloom filters: FastLocalBloom, whose probes of one key stay within one cache line.
//!
//! ```text
//! filter block = lines of 64 bytes | 0xFF | 0 | probes | 0 0
//! ```
//! Kinds of filters this reader does not know say "may contain", as RocksDB's own reader does.
//! Source: RocksDB `util/bloom_impl.h`; bytes in `docs/format/filters.md`.

use outcrop_base::hash::fastrange32;

/// Bytes behind the filter bits.
const METADATA_LEN: usize = 5;
/// Bytes of a line.
const LINE: usize = 64;
/// Multiplier between probes.
const STEP: u32 = 0x9E37_79B9;

/// How a filter block is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// It excludes everything: there are no keys.
    Empty,
    /// It excludes nothing, or is of a kind unknown here.
    PassAll,
    /// FastLocalBloom of `lines` lines with `probes` probes.
    Bloom {
        /// Lines of 64 bytes.
        lines: u32,
        /// Bits tested per key.
        probes: u8,
    },
}

impl FilterKind {
    /// What the filter block `bytes` is.
    pub fn of(bytes: &[u8]) -> FilterKind {
        let Some(len) = bytes.len().checked_sub(METADATA_LEN).filter(|len| *len > 0) else {
            return FilterKind::Empty;
        };
        let metadata = &bytes[len..];
        let probes = metadata[2] & 0x1F;
        let known = metadata[0] == 0xFF
            && metadata[1] == 0
            && metadata[2] >> 5 == 0
            && metadata[3..] == [0, 0]
            && (1..=30).contains(&probes)
            && len.is_multiple_of(LINE);
        match u32::try_from(len / LINE) {
            Ok(lines) if known => FilterKind::Bloom { lines, probes },
            _ => FilterKind::PassAll,
        }
    }

    /// Offset of the line that a key with this hash is in.
    #[inline]
    pub fn line_offset(self, hash: u64) -> Option<usize> {
        match self {
            FilterKind::Bloom { lines, .. } => Some(fastrange32(hash as u32, lines) as usize * LINE),
            _ => None,
        }
    }

    /// False if the key with this hash is certainly not in the table whose filter block is `bytes`.
    #[inline]
    pub fn may_contain(self, bytes: &[u8], hash: u64) -> bool {
        let FilterKind::Bloom { lines, probes } = self else { return self == FilterKind::PassAll };
        let start = fastrange32(hash as u32, lines) as usize * LINE;
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
}

/// Collects key hashes and writes the filter block.
pub struct BloomBuilder {
    millibits_per_key: u64,
    hashes: Vec<u64>,
}

impl BloomBuilder {
    /// A filter with `bits_per_key` bits for each key.
    pub fn new(bits_per_key: f64) -> BloomBuilder {
        BloomBuilder {
            millibits_per_key: (bits_per_key * 1000.0).round().max(1000.0) as u64,
            hashes: Vec::new(),
        }
    }

    /// Adds a key by its [`outcrop_base::xxph3::xxph3_64`]. A repeat of the last one is dropped.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Number of keys added.
    pub fn num_keys(&self) -> usize {
        self.hashes.len()
    }

    /// The filter block.
    pub fn finish(self) -> Vec<u8> {
        if self.hashes.is_empty() {
            return vec![0; METADATA_LEN];
        }
        const LARGEST: u64 = 0xFFFF_FFC0;
        let bytes = (self.hashes.len() as u64 * self.millibits_per_key).div_ceil(8000);
        let len = bytes.next_multiple_of(LINE as u64).min(LARGEST) as usize;
        let probes = probes_for(self.millibits_per_key);
        let lines = (len / LINE) as u32;
        let mut block = vec![0; len + METADATA_LEN];
        for hash in &self.hashes {
            let start = fastrange32(*hash as u32, lines) as usize * LINE;
            let line = &mut block[start..start + LINE];
            let mut x = (hash >> 32) as u32;
            for _ in 0..probes {
                let bit = x >> 23;
                line[(bit >> 3) as usize] |= 1 << (bit & 7);
                x = x.wrapping_mul(STEP);
            }
        }
        block[len] = 0xFF;
        block[len + 2] = probes;
        block
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::xxph3::xxph3_64;

    #[test]
    fn keys_are_found_and_strangers_rarely() {
        let mut builder = BloomBuilder::new(10.0);
        let hash = |i: u64| xxph3_64(&i.to_be_bytes());
        (0..10_000).for_each(|i| builder.add(hash(i)));
        let block = builder.finish();
        let kind = FilterKind::of(&block);
        assert!((0..10_000).all(|i| kind.may_contain(&block, hash(i))));
        let false_positives = (10_000..110_000).filter(|&i| kind.may_contain(&block, hash(i))).count();
        assert!(false_positives < 1200, "{false_positives} of 100000");
    }

    #[test]
    fn rocksdbs_own_filter_is_understood() {
        let table = include_bytes!("../../../fixtures/11.8.1-basic/000009.sst");
        let block = &table[93..162];
        let kind = FilterKind::of(block);
        assert_eq!(kind, FilterKind::Bloom { lines: 1, probes: 24 });
        for key in ["apple", "banana", "cherry", "count"] {
            assert!(kind.may_contain(block, xxph3_64(key.as_bytes())), "{key}");
        }
        assert!(!kind.may_contain(block, xxph3_64(b"missing")));
    }

    #[test]
    fn odd_blocks_exclude_nothing_they_should_not() {
        assert_eq!(FilterKind::of(&[]), FilterKind::Empty);
        assert_eq!(FilterKind::of(&[0; 6]), FilterKind::PassAll);
        assert_eq!(FilterKind::of(&[0xFF; 70]), FilterKind::PassAll);
        assert_eq!(FilterKind::of(&BloomBuilder::new(10.0).finish()), FilterKind::Empty);
    }
}

//! A bloom filter of the prefixes in a memtable, for seeks within a prefix (`memtable_prefix_bloom_size_ratio`).
//!
//! ```text
//! lines of 512 bits; a hash chooses the line and PROBES bits in it
//! ```
//! Invariant: a prefix's bits are set before the first key with it is in the list. Concurrency: bits are only ever set,
//! by any number of threads; a reader that may see a key sees its bits, because both were published with its sequence number.
//! Source: RocksDB `memory/`, `util/dynamic_bloom.h`.

use crate::sync::{AtomicU64, Ordering};
use outcrop_base::PrefixExtractor;
use outcrop_base::xxph3::xxph3_64;

const LINE_WORDS: usize = 8;
const PROBES: usize = 6;

/// The filter.
pub struct PrefixBloom {
    extractor: PrefixExtractor,
    words: Box<[AtomicU64]>,
}

impl PrefixBloom {
    /// An empty filter of about `bytes`, at least one line.
    pub fn new(extractor: PrefixExtractor, bytes: usize) -> PrefixBloom {
        let lines = (bytes / (LINE_WORDS * 8)).max(1);
        PrefixBloom { extractor, words: (0..lines * LINE_WORDS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds the prefix of `user_key`, if it has one.
    pub fn add(&self, user_key: &[u8]) {
        let Some(prefix) = self.extractor.transform(user_key) else { return };
        for (word, bit) in self.bits(xxph3_64(prefix)) {
            // Relaxed: see the module about who may see what.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// False if no key has `prefix`; true if it was asked by another extractor than it was built with.
    pub fn may_contain(&self, extractor: &PrefixExtractor, prefix: &[u8]) -> bool {
        *extractor != self.extractor
            || self.bits(xxph3_64(prefix)).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Bytes it takes.
    pub fn size_bytes(&self) -> usize {
        self.words.len() * 8
    }

    fn bits(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let lines = (self.words.len() / LINE_WORDS) as u64;
        let line = ((u128::from(hash) * u128::from(lines)) >> 64) as usize;
        let words = &self.words[line * LINE_WORDS..][..LINE_WORDS];
        // 9 bits for each probe, from the low end: the high end chose the line.
        (0..PROBES).map(move |probe| {
            let place = (hash >> (probe * 9)) as usize & 511;
            (&words[place / 64], 1 << (place % 64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_and_little_else() {
        let bloom = PrefixBloom::new(PrefixExtractor::Fixed(4), 2000);
        for i in 0..1000u32 {
            bloom.add(&[&i.to_be_bytes()[..], b"rest"].concat());
        }
        bloom.add(b"abc");
        let found = |i: u32| bloom.may_contain(&PrefixExtractor::Fixed(4), &i.to_be_bytes());
        assert!((0..1000).all(found));
        let wrong = (1000..11_000).filter(|&i| found(i)).count();
        assert!(wrong < 500, "{wrong} of 10,000 at 16 bits a prefix");
        assert!(bloom.may_contain(&PrefixExtractor::Fixed(3), b"xyz"), "another extractor");
        assert_eq!(PrefixBloom::new(PrefixExtractor::Noop, 0).size_bytes(), 64);
    }
}

//! Collects the keys of a table and builds its filter.
//!
//! A partitioned filter is cut only between different user keys. With prefixes, a partition also holds the
//! prefix of the next one's first key and of the previous one's last: whichever partition a seek within a
//! prefix ends in, it knows the prefix.
//! Source: RocksDB `table/block_based/filter_policy.cc`, `partitioned_filter_block.cc`.

use super::{METADATA_LEN, bloom, legacy_bloom, ribbon};
use outcrop_base::PrefixExtractor;
use outcrop_base::xxph3::xxph3_64;
use outcrop_options::{BlockBasedTableOptions, FilterPolicy, IndexType};

/// Below this many slots a bloom filter may be the smaller one.
const RIBBON_MIN_KEYS: usize = 1000;
/// Above this many keys a ribbon filter is not built.
const RIBBON_MAX_KEYS: usize = 950_000_000;

/// Bytes that building a ribbon filter takes for each key: an equation, and its solution.
const RIBBON_BYTES_PER_KEY: usize = 24;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    FastLocalBloom,
    Ribbon,
    LegacyBloom,
}

/// A finished filter.
pub enum FilterOutput {
    /// One block.
    Full(Vec<u8>),
    /// Blocks, each with a separator: an internal key at or after its last key and before the next one's
    /// first.
    Partitioned(Vec<(Vec<u8>, Vec<u8>)>),
}

/// Collects keys, gives filter blocks.
pub struct FilterWriter {
    kind: Kind,
    millibits_per_key: u64,
    whole_keys: bool,
    prefixes: Option<PrefixExtractor>,
    /// Hashes of the filter or partition under construction.
    hashes: Vec<u64>,
    last_prefix: Option<u64>,
    /// Hashes at which a partition is full; a filter that is one block is never full.
    most_hashes: usize,
    partitions: Vec<(Vec<u8>, Vec<u8>)>,
    /// Hashes in finished partitions.
    finished: u64,
}

impl FilterWriter {
    /// The writer for a table of these options; `None` if it gets no filter. `level` is where the table will
    /// be: -1 for flush, `None` if unknown.
    pub fn new(
        options: &BlockBasedTableOptions,
        level: Option<i32>,
        prefixes: Option<PrefixExtractor>,
    ) -> Option<FilterWriter> {
        let (bits_per_key, kind) = match options.filter_policy {
            FilterPolicy::None => return None,
            FilterPolicy::Bloom { bits_per_key } if options.format_version < 5 => {
                (bits_per_key, Kind::LegacyBloom)
            }
            FilterPolicy::Bloom { bits_per_key } => (bits_per_key, Kind::FastLocalBloom),
            FilterPolicy::LegacyBloom { bits_per_key } => (bits_per_key, Kind::LegacyBloom),
            // RocksDB too lets the policy alone decide, whatever the version.
            FilterPolicy::Ribbon { bits_per_key, bloom_before_level } => {
                let is_below = level.unwrap_or(i32::MAX) < bloom_before_level;
                (bits_per_key, if is_below { Kind::FastLocalBloom } else { Kind::Ribbon })
            }
        };
        if !options.whole_key_filtering && prefixes.is_none() {
            return None;
        }
        // Source: RocksDB `filter_policy.cc`, `BloomLikeFilterPolicy`: less than a half is no filter.
        if bits_per_key < 0.5 {
            return None;
        }
        let bits_per_key = if bits_per_key.is_nan() { 100.0 } else { bits_per_key };
        let millibits_per_key = (bits_per_key * 1000.0).round().clamp(1000.0, 100_000.0) as u64;
        let partitioned = options.partition_filters && options.index_type == IndexType::TwoLevel;
        let most_hashes = match partitioned {
            true => (options.metadata_block_size.saturating_mul(8000) / millibits_per_key).max(1) as usize,
            false => usize::MAX,
        };
        Some(FilterWriter {
            kind,
            millibits_per_key,
            whole_keys: options.whole_key_filtering,
            prefixes,
            hashes: Vec::new(),
            last_prefix: None,
            most_hashes,
            partitions: Vec::new(),
            finished: 0,
        })
    }

    /// Adds a user key. A repeat of the last one is dropped.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        if self.prefixes.is_some() {
            self.add_prefix(user_key);
        }
        if self.whole_keys {
            let hash = self.hash(user_key);
            self.push(hash);
        }
    }

    fn add_prefix(&mut self, user_key: &[u8]) {
        let Some(prefix) = self.prefixes.as_ref().and_then(|extractor| extractor.transform(user_key)) else {
            return;
        };
        let hash = self.hash(prefix);
        if self.last_prefix != Some(hash) {
            self.last_prefix = Some(hash);
            self.push(hash);
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        if self.kind == Kind::LegacyBloom { u64::from(legacy_bloom::hash(key)) } else { xxph3_64(key) }
    }

    #[inline]
    fn push(&mut self, hash: u64) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// Bytes that it takes, and will take to build the filter of what was added.
    pub fn memory_usage(&self) -> usize {
        // Of a ribbon filter the equations, and what is to be solved of each.
        let to_build = match self.kind {
            Kind::Ribbon => RIBBON_BYTES_PER_KEY,
            Kind::FastLocalBloom | Kind::LegacyBloom => self.millibits_per_key as usize / 8000 + 1,
        };
        let partitions: usize =
            self.partitions.iter().map(|(key, filter)| key.len() + filter.len() + 64).sum();
        self.hashes.capacity() * size_of::<u64>() + self.hashes.len() * to_build + partitions
    }

    /// True if the partition should end before the next different user key.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.hashes.len() >= self.most_hashes
    }

    /// Ends a partition between the user keys `last` and `next`.
    pub fn cut(&mut self, separator: Vec<u8>, last: &[u8], next: &[u8]) {
        self.add_prefix(next);
        self.finish_partition(separator);
        self.add_prefix(last);
    }

    fn finish_partition(&mut self, separator: Vec<u8>) {
        self.finished += self.hashes.len() as u64;
        let block = self.build();
        self.partitions.push((separator, block));
        self.hashes.clear();
        self.last_prefix = None;
    }

    /// Number of entries added.
    pub fn num_entries(&self) -> u64 {
        self.finished + self.hashes.len() as u64
    }

    /// The filter of a table that ends with the internal key `last`.
    pub fn finish(mut self, last: &[u8]) -> FilterOutput {
        if self.most_hashes == usize::MAX {
            return FilterOutput::Full(self.build());
        }
        self.finish_partition(last.to_vec());
        FilterOutput::Partitioned(self.partitions)
    }

    fn build(&self) -> Vec<u8> {
        if self.hashes.is_empty() {
            return vec![0; METADATA_LEN];
        }
        let (hashes, millibits) = (self.hashes.as_slice(), self.millibits_per_key);
        match self.kind {
            Kind::LegacyBloom => return legacy_bloom::build(hashes, millibits),
            Kind::Ribbon if hashes.len() <= RIBBON_MAX_KEYS => {
                let rate = bloom::false_positive_rate(millibits);
                let smaller =
                    || ribbon::len_for(hashes.len(), rate) < bloom::len_for(hashes.len(), millibits);
                if (hashes.len() >= RIBBON_MIN_KEYS || smaller())
                    && let Some(block) = ribbon::build(hashes, rate)
                {
                    return block;
                }
            }
            _ => {}
        }
        bloom::build(hashes, millibits)
    }
}

//! The hash table of user keys after a data block's restart points.
//!
//! ```text
//! bucket: u8 ... | number of buckets: u16      bucket = restart point's number, 255 empty, 254 several
//! ```
//! RocksDB's lookups use it to skip the search among restart points. Ours pass over it: the directory of a
//! frame (`block.rs`) finds the entry itself.
//! Source: RocksDB `table/block_based/data_block_hash_index.cc`.

use outcrop_base::hash::legacy_hash;

const SEED: u32 = 397;
const EMPTY: u8 = 255;
const SEVERAL: u8 = 254;
/// The largest number of a restart point that a bucket can hold.
const LARGEST_RESTART: usize = 253;
/// Larger blocks have no hash table.
const LARGEST_BLOCK: usize = 64 << 10;

/// Collects the keys of one block.
pub struct HashIndexBuilder {
    buckets_per_key: f64,
    buckets: f64,
    entries: Vec<(u32, u8)>,
    /// False once a restart point's number was too large.
    valid: bool,
}

impl HashIndexBuilder {
    /// A hash table with `keys_per_bucket`, above 0.
    pub fn new(keys_per_bucket: f64) -> HashIndexBuilder {
        HashIndexBuilder {
            buckets_per_key: 1.0 / keys_per_bucket,
            buckets: 0.0,
            entries: Vec::new(),
            valid: true,
        }
    }

    /// Adds a user key whose entry follows restart point `restart`.
    pub fn add(&mut self, user_key: &[u8], restart: usize) {
        if restart > LARGEST_RESTART {
            self.valid = false;
            return;
        }
        self.buckets += self.buckets_per_key;
        self.entries.push((legacy_hash(user_key, SEED), restart as u8));
    }

    /// An odd number.
    fn num_buckets(&self) -> u16 {
        (self.buckets as u16).max(1) | 1
    }

    /// Bytes of the table, if there will be one.
    pub fn size(&self) -> usize {
        if self.valid { usize::from(self.num_buckets()) + 2 } else { 0 }
    }

    /// Appends the table to a block that is `block_size` bytes with it. False if it cannot have one.
    pub fn append(&self, block_size: usize, out: &mut Vec<u8>) -> bool {
        if !self.valid || block_size > LARGEST_BLOCK {
            return false;
        }
        let count = self.num_buckets();
        let start = out.len();
        out.resize(start + usize::from(count), EMPTY);
        for (hash, restart) in &self.entries {
            let bucket = &mut out[start + (hash % u32::from(count)) as usize];
            if *bucket == EMPTY {
                *bucket = *restart;
            } else if *bucket != *restart {
                *bucket = SEVERAL;
            }
        }
        out.extend_from_slice(&count.to_le_bytes());
        true
    }

    /// Starts over for the next block.
    pub fn reset(&mut self) {
        self.buckets = 0.0;
        self.entries.clear();
        self.valid = true;
    }
}

//! Locks that the keys of optimistic transactions are distributed to while these are checked and written.

use outcrop_base::hash::xxh3_64;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;

/// Fewest buckets. Source: RocksDB `OccLockBucketsImpl`.
const FEWEST: usize = 16;

/// Locks of keys, which several databases may share.
///
/// ```
/// # use outcrop::*;
/// # use std::sync::Arc;
/// let shared = Arc::new(LockBuckets::new(1 << 10));
/// let of_each = OptimisticTransactionDbOptions { shared_lock_buckets: Some(shared), ..OptimisticTransactionDbOptions::default() };
/// # let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
/// # let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// let db = OptimisticTransactionDb::open_with(builder, of_each)?;
/// # outcrop::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct LockBuckets {
    buckets: Vec<Mutex<()>>,
}

impl LockBuckets {
    /// So many, but no fewer than 16.
    pub fn new(count: usize) -> LockBuckets {
        LockBuckets { buckets: (0..count.max(FEWEST)).map(|_| Mutex::new(())).collect() }
    }

    /// Bytes they take.
    pub fn memory_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Mutex<()>>()
    }

    /// The bucket of `key`, of what is called `seed`.
    pub fn bucket_of(&self, seed: u64, key: &[u8]) -> usize {
        ((xxh3_64(key) ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) % self.buckets.len() as u64) as usize
    }

    /// Locks `buckets`, in ascending order: whoever locks several does it in this order, so that nobody waits in a circle.
    pub fn lock(&self, buckets: &BTreeSet<usize>) -> Vec<MutexGuard<'_, ()>> {
        buckets.iter().map(|bucket| self.buckets[*bucket].lock()).collect()
    }
}

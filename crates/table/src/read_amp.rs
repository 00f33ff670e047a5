//! Read amplification, as an estimate: which bytes of the data blocks that were read somebody looked at.
//!
//! A bit stands for some bytes of a block, and is set when the entry with a certain one of them is looked at: which one, each block
//! chooses anew, so that entries count by their sizes. A block that is loaded again begins anew, as its entries do in RocksDB.
//!
//! The bits are kept beside the cache, by where a block lies in its file, until the table is closed.
//! Source: RocksDB `table/block_based/block.h`, `BlockReadAmpBitmap`.

use outcrop_base::xxph3::xxph3_64;
use outcrop_monitor::{Monitor, Ticker, Watch};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The blocks of one table that were read, and the bytes of them that were looked at.
pub struct ReadAmp {
    /// A bit stands for 2 to this bytes.
    shift: u32,
    monitor: Monitor,
    /// By offset in the file.
    blocks: Mutex<HashMap<u64, Vec<u64>>>,
}

impl ReadAmp {
    /// With a bit for `bytes_per_bit` bytes, or the next smaller power of 2. `None` if that is 0, or if there are no statistics.
    pub fn new(bytes_per_bit: u32, monitor: &Monitor) -> Option<ReadAmp> {
        let shift = bytes_per_bit.checked_ilog2()?;
        monitor.statistics.as_ref()?;
        Some(ReadAmp { shift, monitor: monitor.clone(), blocks: Mutex::default() })
    }

    /// The block at `offset` was loaded, with entries of `len` bytes.
    pub fn loaded(&self, offset: u64, len: usize) {
        if len == 0 {
            return;
        }
        let bits = ((len - 1) >> self.shift) + 1;
        self.lock().insert(offset, vec![0; bits.div_ceil(64)]);
        Watch::from(&self.monitor.begin()).count(Ticker::ReadAmpTotalReadBytes, len as u64);
    }

    /// The entries in `bytes` of the block at `offset` were looked at.
    pub fn useful(&self, offset: u64, bytes: Range<usize>) {
        if bytes.is_empty() {
            return;
        }
        let unit = 1usize << self.shift;
        let chosen = xxph3_64(&offset.to_le_bytes()) as usize & (unit - 1);
        // The bits whose byte lies in `bytes`.
        let of = |at: usize| (at + unit - chosen - 1) >> self.shift;
        let mut blocks = self.lock();
        let Some(bits) = blocks.get_mut(&offset) else { return };
        let mut set = 0;
        for bit in of(bytes.start)..of(bytes.end).min(bits.len() * 64) {
            let (word, mask) = (&mut bits[bit / 64], 1 << (bit % 64));
            set += u64::from(*word & mask == 0);
            *word |= mask;
        }
        drop(blocks);
        Watch::from(&self.monitor.begin()).count(Ticker::ReadAmpEstimateUsefulBytes, set << self.shift);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Vec<u64>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_env::SystemClock;
    use outcrop_monitor::Statistics;
    use std::sync::Arc;

    fn monitor() -> Monitor {
        Monitor { statistics: Some(Arc::new(Statistics::new())), clock: Arc::new(SystemClock::default()) }
    }

    fn counts(monitor: &Monitor) -> (u64, u64) {
        let statistics = monitor.statistics.as_ref().unwrap();
        let ticker = |ticker| statistics.ticker(ticker);
        (ticker(Ticker::ReadAmpEstimateUsefulBytes), ticker(Ticker::ReadAmpTotalReadBytes))
    }

    #[test]
    fn bytes_count_once_for_each_time_their_block_is_loaded() {
        let monitor = monitor();
        let read_amp = ReadAmp::new(1, &monitor).unwrap();
        read_amp.useful(7, 0..10);
        assert_eq!(counts(&monitor), (0, 0), "nothing is known of that block");
        read_amp.loaded(7, 100);
        read_amp.useful(7, 0..10);
        read_amp.useful(7, 5..15);
        read_amp.useful(7, 99..100);
        read_amp.useful(7, 50..50);
        assert_eq!(counts(&monitor), (16, 100));
        read_amp.loaded(7, 100);
        read_amp.useful(7, 0..10);
        assert_eq!(counts(&monitor), (26, 200));
    }

    #[test]
    fn entries_count_by_their_sizes() {
        let monitor = monitor();
        // 63 is taken for 32.
        let read_amp = ReadAmp::new(63, &monitor).unwrap();
        for block in 0..1000 {
            read_amp.loaded(block * 4096, 4096);
            read_amp.useful(block * 4096, 100..124);
        }
        let (useful, total) = counts(&monitor);
        assert_eq!(total, 4_096_000);
        assert!((20_000..28_000).contains(&useful), "{useful}");
        read_amp.useful(0, 0..4096);
        assert!(counts(&monitor).0 <= useful + 4096, "no more than there is");
    }

    #[test]
    fn nobody_asks_without_bytes_or_statistics() {
        assert!(ReadAmp::new(0, &monitor()).is_none());
        assert!(ReadAmp::new(32, &Monitor { statistics: None, ..monitor() }).is_none());
    }
}

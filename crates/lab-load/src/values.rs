//! Values: windows of one buffer of compressible bytes, the same in every process.

use crate::rng::MinimalStandard;

/// Bytes of one fragment of the buffer.
const FRAGMENT: usize = 100;
/// db_bench's seed for value bytes.
const SEED: u32 = 301;

/// Gives values one after the other.
pub struct Values {
    buffer: Vec<u8>,
    at: usize,
}

impl Values {
    /// Values of up to `value_size` bytes that compress to about `compression_ratio`.
    pub fn new(compression_ratio: f64, value_size: usize) -> Values {
        let mut rng = MinimalStandard::new(SEED);
        let wanted = value_size.max(1 << 20);
        let mut buffer = Vec::with_capacity(wanted + FRAGMENT);
        while buffer.len() < wanted {
            let raw_len = ((FRAGMENT as f64 * compression_ratio) as usize).max(1);
            let raw: Vec<u8> = (0..raw_len).map(|_| (rng.next_u31() % 127) as u8).collect();
            buffer.extend(raw.iter().cycle().take(FRAGMENT));
        }
        Values { buffer, at: 0 }
    }

    /// The next value.
    #[inline]
    pub fn next(&mut self, len: usize) -> &[u8] {
        if self.at + len > self.buffer.len() {
            self.at = 0;
        }
        self.at += len;
        &self.buffer[self.at - len..self.at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_each_fragment_repeats() {
        let mut values = Values::new(0.5, 400);
        let first = values.next(400).to_vec();
        assert_eq!(first[..50], first[50..100]);
        assert_ne!(first[..50], first[100..150]);
        assert_ne!(first, values.next(400));
        assert!(first.iter().all(|byte| *byte < 127));
    }
}

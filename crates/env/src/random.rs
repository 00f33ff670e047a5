//! Randomness for identities and session ids; not for cryptography.

use crate::sys;
use outcrop_base::random::{STEP, mix};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random numbers.
pub trait Random: Send + Sync {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        sys::random_bytes(&mut bytes).expect("the operating system gives randomness");
        u64::from_ne_bytes(bytes)
    }
}

/// A sequence that a seed repeats: that of [`outcrop_base::random::SplitMix`]. For tests.
#[derive(Debug)]
pub struct SeededRandom {
    state: AtomicU64,
}

impl SeededRandom {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom { state: AtomicU64::new(seed) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        mix(self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }
}

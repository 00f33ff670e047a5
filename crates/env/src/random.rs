//! Randomness for identities and session ids; not for cryptography.

/// A source of random numbers.
pub trait Random: Send + Sync {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

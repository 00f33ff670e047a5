//! Random numbers that a seed repeats: SplitMix64, for tests, fuzzing and drawn histories.
//!
//! Seeds in CI, committed corpora and written-down cases depend on the sequence: it never changes.
//! Next: `outcrop_env::random` for identities. The lab has a generator of its own in `lab-stats`, as it imports no engine crate.
//!
//! Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.

/// Added to the state with each number: 2^64 divided by the golden ratio, made odd.
pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that the generator gives as its state becomes `state`.
pub fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A generator that a seed repeats. Every seed is good, also 0. Not for cryptography.
///
/// Numbers below a bound are remainders: for bounds that are small beside 2^64 as even as tests need.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends, and no iterator adaptor is wanted")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// The state, which each number changes; it names the rest of the sequence, as a seed.
    pub fn state(&self) -> u64 {
        self.0
    }

    /// Below `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// An index into something of `len` elements.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `n` times.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `of`.
    ///
    /// # Panics
    /// If `of` is empty.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_reference_program() {
        // The first numbers of Vigna's splitmix64.c for the seed 1234567.
        let mut random = SplitMix::new(1_234_567);
        let numbers: Vec<u64> = (0..5).map(|_| random.next()).collect();
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn a_seed_repeats_its_numbers_and_another_has_others() {
        let draw = |seed| {
            let mut random = SplitMix::new(seed);
            (0..10).map(|_| random.next()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

//! The generators db_bench uses: MT19937-64 for keys, the 31-bit minimal standard for value bytes.

const N: usize = 312;
const M: usize = 156;

/// MT19937-64 (Matsumoto and Nishimura).
pub struct Mt19937_64 {
    state: [u64; N],
    index: usize,
}

impl Mt19937_64 {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Mt19937_64 {
        let mut state = [0; N];
        state[0] = seed;
        for i in 1..N {
            let previous: u64 = state[i - 1];
            state[i] =
                6_364_136_223_846_793_005u64.wrapping_mul(previous ^ (previous >> 62)).wrapping_add(i as u64);
        }
        Mt19937_64 { state, index: N }
    }

    fn refill(&mut self) {
        const UPPER: u64 = 0xFFFF_FFFF_8000_0000;
        const MATRIX: u64 = 0xB502_6F5A_A966_19E9;
        for i in 0..N {
            let x = (self.state[i] & UPPER) | (self.state[(i + 1) % N] & !UPPER);
            let mixed = (x >> 1) ^ if x & 1 == 1 { MATRIX } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ mixed;
        }
        self.index = 0;
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.index == N {
            self.refill();
        }
        let mut x = self.state[self.index];
        self.index += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71D6_7FFF_EDA6_0000;
        x ^= (x << 37) & 0xFFF7_EEE0_0000_0000;
        x ^ (x >> 43)
    }
}

/// The 31-bit "minimal standard" generator of LevelDB.
pub struct MinimalStandard(u32);

impl MinimalStandard {
    /// The sequence of `seed`.
    pub fn new(seed: u32) -> MinimalStandard {
        let seed = seed & 0x7FFF_FFFF;
        MinimalStandard(if matches!(seed, 0 | 0x7FFF_FFFF) { 1 } else { seed })
    }

    /// The next number below 2^31 - 1.
    pub fn next_u31(&mut self) -> u32 {
        self.0 = ((u64::from(self.0) * 16807) % 0x7FFF_FFFF) as u32;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mt19937_64_gives_its_published_numbers() {
        let mut rng = Mt19937_64::new(5489);
        assert_eq!(rng.next_u64(), 14_514_284_786_278_117_030);
        assert_eq!(rng.next_u64(), 4_620_546_740_167_642_908);
        // The C++ standard's check: the 10000th number of the default seed.
        let mut rng = Mt19937_64::new(5489);
        let last = (0..10_000).map(|_| rng.next_u64()).last();
        assert_eq!(last, Some(9_981_545_732_273_789_042));
    }

    #[test]
    fn the_minimal_standard_generator_gives_its_published_number() {
        let mut rng = MinimalStandard::new(1);
        let last = (0..10_000).map(|_| rng.next_u31()).last();
        assert_eq!(last, Some(1_043_618_065));
    }
}

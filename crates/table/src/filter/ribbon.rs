//! Ribbon filters: as few false positives as a bloom filter, in 30 % less space, for more work to build.
//!
//! ```text
//! segments of 16 bytes | 0xFE | seed | number of blocks: u24
//! block of 128 slots = U segments, or U - 1 in the first blocks; segment i holds bit i of each slot
//! ```
//! A key hashes to a start slot, 128 coefficient bits and U result bits. The filter is the solution of one
//! linear equation over GF(2) per key: the sum of the slots that its coefficients choose is its result. A
//! stranger's equation holds by chance, once in 2^U.
//!
//! Building inserts each equation into a band matrix, which is then solved backwards. It fails if the matrix
//! is singular; another seed, then a few more slots, are tried.
//! Source: RocksDB `util/ribbon_impl.h`, `util/ribbon_alg.h`.

use outcrop_base::hash::fastrange64;

/// Slots of a block, and coefficient bits of a key.
const WIDTH: u32 = 128;
/// Bytes of a segment.
const SEGMENT: usize = 16;
/// Result bits of a key.
const MOST_COLUMNS: u32 = 32;
/// Blocks the metadata can say.
const MOST_BLOCKS: u32 = (1 << 24) - 1;
/// Seeds tried before slots are added.
const SEEDS_PER_SIZE: u32 = 8;

/// How the segments of a filter are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    blocks: u32,
    /// Columns of all but the first blocks.
    columns: u32,
    /// Blocks at the front with one column fewer.
    short_blocks: u32,
    seed: u8,
}

/// The equation that a key must satisfy.
struct Equation {
    start: u64,
    coefficients: u128,
    result: u32,
}

impl Shape {
    /// The shape that `len` bytes of segments and the metadata give; `None` if there is no such filter.
    pub fn of(len: usize, seed: u8, blocks: u32) -> Option<Shape> {
        if blocks < 2 {
            return None;
        }
        let segments = u32::try_from(len / SEGMENT).ok()?;
        let columns = segments.div_ceil(blocks);
        if columns > MOST_COLUMNS {
            return Some(Shape { blocks, columns: MOST_COLUMNS, short_blocks: 0, seed });
        }
        Some(Shape { blocks, columns, short_blocks: columns * blocks - segments, seed })
    }

    fn slots(&self) -> u64 {
        u64::from(self.blocks) * u64::from(WIDTH)
    }

    fn columns_of(&self, block: u32) -> u32 {
        if block < self.short_blocks { self.columns - 1 } else { self.columns }
    }

    /// Number of the first segment of a block.
    fn segment_of(&self, block: u32) -> usize {
        block as usize * self.columns as usize - block.min(self.short_blocks) as usize
    }

    #[inline]
    fn equation(&self, hash: u64) -> Equation {
        let mut seed = u64::from(self.seed).wrapping_mul(0xC782_19A2_3EEA_DD03);
        seed ^= (seed & 0xF0F0_F0F0_F0F0_F0F0) >> 4;
        let h = (hash ^ u64::from(seed as u32)).wrapping_mul(0x6193_D459_236A_3A0D);
        let a = h.wrapping_mul(0xC28F_8282_2B65_0BED);
        Equation {
            start: fastrange64(h, self.slots() - u64::from(WIDTH) + 1),
            coefficients: (u128::from(a) << 64) | u128::from(a ^ 0xC367_844A_6E52_731D) | 1,
            result: a.swap_bytes() as u32,
        }
    }

    /// Offset of the first segment that a key with this hash is in.
    #[inline]
    pub fn offset(&self, hash: u64) -> usize {
        self.segment_of((self.equation(hash).start / u64::from(WIDTH)) as u32) * SEGMENT
    }

    /// False if the key with this hash was not added.
    #[inline]
    pub fn may_contain(&self, bytes: &[u8], hash: u64) -> bool {
        let equation = self.equation(hash);
        let block = (equation.start / u64::from(WIDTH)) as u32;
        let shift = (equation.start % u64::from(WIDTH)) as u32;
        let columns = self.columns_of(block);
        let first = self.segment_of(block);
        let segment = |number: usize| {
            let at = number * SEGMENT;
            u128::from_le_bytes(bytes[at..at + SEGMENT].try_into().expect("a segment"))
        };
        for column in 0..columns {
            let mut chosen = segment(first + column as usize) & (equation.coefficients << shift);
            if shift > 0 {
                let next = segment(first + (columns + column) as usize);
                chosen ^= next & (equation.coefficients >> (WIDTH - shift));
            }
            if chosen.count_ones() & 1 != (equation.result >> column) & 1 {
                return false;
            }
        }
        true
    }
}

/// The band matrix: row `i` starts at slot `i`; a row of zeros is free.
struct Band {
    coefficients: Vec<u128>,
    results: Vec<u32>,
}

impl Band {
    fn new(slots: u64) -> Band {
        Band { coefficients: vec![0; slots as usize], results: vec![0; slots as usize] }
    }

    /// False if the equation contradicts those before.
    fn insert(&mut self, equation: Equation) -> bool {
        let Equation { start, mut coefficients, mut result } = equation;
        let mut row = start as usize;
        loop {
            if self.coefficients[row] == 0 {
                self.coefficients[row] = coefficients;
                self.results[row] = result;
                return true;
            }
            coefficients ^= self.coefficients[row];
            result ^= self.results[row];
            if coefficients == 0 {
                return result == 0;
            }
            let zeros = coefficients.trailing_zeros();
            coefficients >>= zeros;
            row += zeros as usize;
        }
    }

    /// The segments of the solution.
    fn solve(&self, shape: &Shape) -> Vec<u8> {
        let segments = shape.segment_of(shape.blocks);
        let mut bytes = vec![0; segments * SEGMENT];
        let mut state = [0u128; MOST_COLUMNS as usize];
        for block in (0..shape.blocks).rev() {
            let columns = shape.columns_of(block) as usize;
            for row in (block * WIDTH..(block + 1) * WIDTH).rev() {
                let (coefficients, result) = (self.coefficients[row as usize], self.results[row as usize]);
                for (column, state) in state[..columns].iter_mut().enumerate() {
                    let known = *state << 1;
                    let parity = (known & coefficients).count_ones() ^ (result >> column);
                    *state = known | u128::from(parity & 1);
                }
            }
            let first = shape.segment_of(block);
            for (column, state) in state[..columns].iter().enumerate() {
                let at = (first + column) * SEGMENT;
                bytes[at..at + SEGMENT].copy_from_slice(&state.to_le_bytes());
            }
        }
        bytes
    }
}

/// Blocks for this many keys: 3 % more slots than keys for few, 5 % for many.
///
/// Source of the figures: the inverse of RocksDB's `util/ribbon_config.cc`, rounded up.
fn blocks_for(keys: usize) -> u64 {
    let percent = if keys < 100_000 { 103 } else { 105 };
    (keys as u64 * percent).div_ceil(100 * u64::from(WIDTH)).max(2)
}

/// A shape of `blocks` with a false-positive rate near `rate`.
fn shape_for(blocks: u32, rate: f64, seed: u8) -> Shape {
    let columns = ((-rate.log2()).ceil() as u32).clamp(1, MOST_COLUMNS);
    // A share `short` of blocks has one column fewer: (1 - short) + 2 short = rate * 2^columns.
    let short = (rate * f64::from(columns).exp2() - 1.0).clamp(0.0, 1.0);
    Shape { blocks, columns, short_blocks: (short * f64::from(blocks)) as u32, seed }
}

/// Bytes of segments for this many keys.
pub fn len_for(keys: usize, rate: f64) -> usize {
    let blocks = blocks_for(keys).min(u64::from(MOST_BLOCKS)) as u32;
    shape_for(blocks, rate, 0).segment_of(blocks) * SEGMENT
}

/// The filter block of keys with these hashes, with this false-positive rate. `None` if no size that the
/// metadata can say has a solution.
pub fn build(hashes: &[u64], rate: f64) -> Option<Vec<u8>> {
    let mut blocks = blocks_for(hashes.len());
    for attempt in 0.. {
        if attempt > 0 && attempt % SEEDS_PER_SIZE == 0 {
            blocks += blocks / 64 + 1;
        }
        if blocks > u64::from(MOST_BLOCKS) {
            return None;
        }
        let shape = shape_for(blocks as u32, rate, attempt as u8);
        let mut band = Band::new(shape.slots());
        if hashes.iter().all(|hash| band.insert(shape.equation(*hash))) {
            let mut block = band.solve(&shape);
            block.extend_from_slice(&[0xFE, shape.seed]);
            block.extend_from_slice(&shape.blocks.to_le_bytes()[..3]);
            return Some(block);
        }
    }
    None
}

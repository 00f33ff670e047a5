//! Random changes to inputs, of the kinds that decoders trip over. A seed repeats them.

use outcrop_base::random::SplitMix;

/// A generator that a seed repeats.
pub struct Rng(SplitMix);

impl Rng {
    /// The generator of case `case` of a target under `seed`.
    pub fn of_case(seed: u64, target: &str, case: u64) -> Rng {
        let mut rng = SplitMix::new(seed);
        for byte in target.bytes() {
            rng = SplitMix::new(rng.next() ^ u64::from(byte));
        }
        Rng(SplitMix::new(rng.next() ^ case.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    #[expect(clippy::should_implement_trait, reason = "never ends")]
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }
}

/// Inputs never grow beyond this many bytes.
const MAX_LEN: usize = 96 << 10;
/// Numbers at the edges of what fits somewhere.
const EDGES: [u64; 14] = [
    0,
    1,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    1 << 56,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// One of `inputs`, changed in a few places.
///
/// # Panics
/// If there are no inputs.
pub fn mutate(inputs: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let bytes = inputs[rng.below(inputs.len())].clone();
    let other = &inputs[rng.below(inputs.len())];
    changed(bytes, other, rng)
}

/// `bytes`, changed in a few places; pieces of `other` may be put in.
pub fn changed(mut bytes: Vec<u8>, other: &[u8], rng: &mut Rng) -> Vec<u8> {
    // Mostly one or two changes: more leave little of the structure.
    for _ in 0..=rng.next().trailing_zeros().min(6) {
        change(&mut bytes, other, rng);
    }
    bytes.truncate(MAX_LEN);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let at = rng.below(bytes.len() + 1);
    let len = 1 + rng.below(8);
    let end = (at + len).min(bytes.len());
    match rng.below(12) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        2 | 3 if at < bytes.len() => bytes[at] = rng.next() as u8,
        4 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(if rng.below(2) == 0 { 1 } else { 255 }),
        5 => {
            // A number of some width, at an edge.
            let edge = EDGES[rng.below(EDGES.len())].to_le_bytes();
            let width = [1, 2, 4, 8][rng.below(4)];
            for (byte, edge) in bytes.iter_mut().skip(at).zip(&edge[..width]) {
                *byte = *edge;
            }
        }
        6 => {
            // A varint in place of a byte: lengths grow without what they count.
            let mut varint = Vec::new();
            let mut value = EDGES[rng.below(EDGES.len())];
            while value >= 0x80 {
                varint.push(value as u8 | 0x80);
                value >>= 7;
            }
            varint.push(value as u8);
            bytes.splice(at..(at + 1).min(bytes.len()), varint);
        }
        7 => drop(bytes.drain(at..end)),
        8 => {
            let copy = bytes[at..end].to_vec();
            let to = rng.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        9 => bytes.truncate(at),
        10 => bytes.splice(at..at, (0..len).map(|_| rng.next() as u8)).for_each(drop),
        _ if !other.is_empty() => {
            let start = rng.below(other.len());
            let stop = start + 1 + rng.below((other.len() - start).min(64));
            let over = if rng.below(2) == 0 { (at + stop - start).min(bytes.len()) } else { at };
            bytes.splice(at..over, other[start..stop.min(other.len())].iter().copied());
        }
        _ => bytes.push(rng.next() as u8),
    }
}

/// Removes what it can from an input that `fails`, within `most` tries.
pub fn reduce(mut input: Vec<u8>, most: usize, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut tries = 0;
    let mut piece = (input.len() / 2).max(1);
    while piece > 0 && tries < most {
        let mut at = 0;
        while at < input.len() && tries < most {
            let mut shorter = input.clone();
            shorter.drain(at..(at + piece).min(input.len()));
            tries += 1;
            if fails(&shorter) { input = shorter } else { at += piece }
        }
        piece /= 2;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_repeated_by_its_seed() {
        let inputs = vec![b"some input".to_vec(), vec![7; 100], Vec::new()];
        let case = |seed, number| mutate(&inputs, &mut Rng::of_case(seed, "block", number));
        assert!((0..1000).all(|number| case(5, number) == case(5, number)));
        assert!((0..20).any(|number| case(5, number) != case(6, number)));
    }

    #[test]
    fn reducing_keeps_what_fails() {
        let input: Vec<u8> = (0..200).collect();
        let reduced = reduce(input, 10_000, |bytes| bytes.contains(&17) && bytes.contains(&170));
        assert_eq!(reduced, [17, 170]);
    }
}

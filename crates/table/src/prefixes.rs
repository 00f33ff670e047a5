//! Sorted arrays of key prefixes, searched without touching keys.
//!
//! All keys of a sorted set start with what its first and last key have in common. The 8 bytes after that,
//! as a big-endian number, decide most comparisons; the array holds one such number per key.

use outcrop_base::coding::fixed64_at;
use outcrop_base::keys::prefix_u64;
use std::cmp::Ordering;
use std::ops::Range;

/// A view of `len` numbers stored little-endian in `bytes`.
#[derive(Clone, Copy)]
pub struct Prefixes<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Prefixes<'a> {
    /// The first `len` numbers of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], len: usize) -> Prefixes<'a> {
        Prefixes { bytes: &bytes[..len * 8], len }
    }

    /// Number `index`.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        fixed64_at(self.bytes, index * 8)
    }

    /// How many numbers are below `target`. No branch depends on the numbers.
    #[inline]
    pub fn lower_bound(&self, target: u64) -> usize {
        let mut base = 0;
        let mut size = self.len;
        while size > 1 {
            let half = size / 2;
            base += if self.get(base + half - 1) < target { half } else { 0 };
            size -= half;
        }
        base + usize::from(size == 1 && self.get(base) < target)
    }

    /// The numbers equal to `target`, as a range that is empty at its place if there are none.
    #[inline]
    pub fn equal_range(&self, target: u64) -> Range<usize> {
        let start = self.lower_bound(target);
        let mut end = start;
        // Ties are few in practice: a step costs less than a second search.
        const STEPS: usize = 4;
        while end < self.len && self.get(end) == target {
            end += 1;
            if end == start + STEPS {
                return start..match target.checked_add(1) {
                    Some(next) => self.lower_bound(next),
                    None => self.len,
                };
            }
        }
        start..end
    }
}

/// Where a key lies relative to keys that all start with `common`.
pub enum Place {
    /// Before all of them.
    Before,
    /// After all of them.
    After,
    /// Among them, with this number.
    Among(u64),
}

/// Places `key`.
#[inline]
pub fn place(common: &[u8], key: &[u8]) -> Place {
    let len = common.len().min(key.len());
    match key[..len].cmp(&common[..len]) {
        Ordering::Less => Place::Before,
        Ordering::Greater => Place::After,
        Ordering::Equal if key.len() < common.len() => Place::Before,
        Ordering::Equal => Place::Among(prefix_u64(&key[common.len()..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_agree_with_a_linear_search() {
        for len in 0..40u64 {
            let numbers: Vec<u64> = (0..len).map(|i| (i / 3) * 2).collect();
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            let prefixes = Prefixes::new(&bytes, numbers.len());
            for target in 0..30 {
                let start = numbers.iter().filter(|&&n| n < target).count();
                let end = numbers.iter().filter(|&&n| n <= target).count();
                assert_eq!(prefixes.lower_bound(target), start);
                assert_eq!(prefixes.equal_range(target), start..end, "{len} {target}");
            }
        }
        let same: Vec<u8> = [u64::MAX; 9].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(Prefixes::new(&same, 9).equal_range(u64::MAX), 0..9);
    }
}

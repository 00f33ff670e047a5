//! Orders of targets that are balanced: each target comes as often at each place, and as often right after each other one.
//!
//! ```text
//! even, 4 targets      odd, 3 targets: the square and its mirror image
//! A B D C              A B C   C B A
//! B C A D              B C A   A C B
//! C D B A              C A B   B A C
//! D A C B
//! ```
//! An order drawn anew for each block lets one of two targets go first five times in five in 6 of 100 runs. Here it goes
//! first twice or three times in five. Which target is which letter, and which row comes when, is drawn from a seed.
//! Invariants: rows in a row, from the first, never let a target be at one place more than once more often than another as
//! far as whole squares go; a row depends on the seed and its number alone, so a run that is resumed goes on with it.
//!
//! Source: Williams, "Experimental designs balanced for the estimation of residual effects of treatments" (1949).

use outcrop_lab_stats::rng::Rng;

/// The order of `targets` in row `number` of the design that `seed` names.
pub(crate) fn order(targets: usize, number: usize, seed: u64) -> Vec<usize> {
    if targets < 2 {
        return (0..targets).collect();
    }
    // A square is the unit: every target at every place once. Odd numbers of targets take two of them for their neighbours.
    let square = number / targets;
    let mirrored = targets % 2 == 1 && square % 2 == 1;
    let pair = if targets % 2 == 1 { square / 2 } else { square };
    let mut rng = Rng::new(seed ^ (pair as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut letters: Vec<usize> = (0..targets).collect();
    rng.shuffle(&mut letters);
    let mut rows: Vec<usize> = (0..targets).collect();
    rng.shuffle(&mut rows);
    if mirrored {
        rng.shuffle(&mut rows);
    }
    let shift = rows[number % targets];
    let mut order: Vec<usize> = zigzag(targets).map(|place| letters[(place + shift) % targets]).collect();
    if mirrored {
        order.reverse();
    }
    order
}

/// 0, 1, n-1, 2, n-2, ..: neighbours differ by every amount, each once if `n` is even and each twice with the mirror image.
fn zigzag(n: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |place| if place % 2 == 1 { place.div_ceil(2) } else { (n - place / 2) % n })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn rows(targets: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
        (0..count).map(|number| order(targets, number, seed)).collect()
    }

    #[test]
    fn every_target_is_at_every_place_and_after_every_other_equally_often() {
        for targets in 2..=9 {
            let cycle = if targets % 2 == 0 { targets } else { 2 * targets };
            let (mut places, mut after) = (BTreeMap::new(), BTreeMap::new());
            for row in rows(targets, cycle, 11) {
                let mut sorted = row.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..targets).collect::<Vec<_>>());
                row.iter().enumerate().for_each(|at| *places.entry((at.0, *at.1)).or_insert(0) += 1);
                row.windows(2).for_each(|pair| *after.entry((pair[0], pair[1])).or_insert(0) += 1);
            }
            assert_eq!((places.len(), after.len()), (targets * targets, targets * (targets - 1)));
            assert!(places.values().all(|times| *times == cycle / targets), "{targets}: {places:?}");
            assert!(after.values().all(|times| *times == cycle / targets), "{targets}: {after:?}");
        }
    }

    #[test]
    fn however_many_blocks_there_are_no_target_is_at_a_place_more_than_one_time_more_than_another() {
        for targets in 2..=6 {
            for seed in 0..50 {
                let mut places = vec![vec![0i32; targets]; targets];
                for row in rows(targets, 23, seed) {
                    row.iter().enumerate().for_each(|(place, target)| places[place][*target] += 1);
                    for times in &places {
                        assert!(times.iter().max().unwrap() - times.iter().min().unwrap() <= 1, "{places:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn of_two_targets_in_five_blocks_none_goes_first_every_time_and_either_may_begin() {
        let firsts = |seed| rows(2, 5, seed).iter().filter(|row| row[0] == 0).count();
        let all: Vec<usize> = (0..200).map(firsts).collect();
        assert!(all.iter().all(|times| [2, 3].contains(times)), "{all:?}");
        assert!(all.contains(&2) && all.contains(&3), "the seed draws which of the two it is");
    }
}

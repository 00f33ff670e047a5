//! E-divisive: change points of a long series of single runs, such as one per night.
//!
//! The best split is where the energy distance between left and right is largest; it is accepted if few permutations
//! of the series reach as much, and both halves are searched again. Blocks of neighbours are permuted together, so
//! that slow drift of the host is in the null distribution too: permuting single values calls every drift a change.
//!
//! For a history of versions with several sessions each use `history.rs`: there the noise is known from the sessions.
//!
//! Source: Matteson and James, "A nonparametric approach for multiple change point analysis" (2014).

use crate::autocorrelation::phi_from_differences;
use crate::error::{ErrorKind, Result, check, check_probability, check_range, error};
use crate::rng::Rng;
use crate::summary::median;
use serde::{Deserialize, Serialize};

/// Longest series that is searched: the cost is `permutations` times its square.
pub const MAX_LENGTH: usize = 2_000;

/// How a series is searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// p-value up to which a split is accepted. Default 0.05.
    pub alpha: f64,
    /// Permutations per split. Default 199.
    pub permutations: usize,
    /// Fewest values on each side of a split. Default 5.
    pub least: usize,
    /// Values permuted together; `None` takes the length from the dependence of the series.
    pub block: Option<usize>,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for Search {
    fn default() -> Search {
        Search { alpha: 0.05, permutations: 199, least: 5, block: None, seed: 0 }
    }
}

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub index: usize,
    /// Median of the stretch before, up to the previous change.
    pub before: f64,
    /// Median of the stretch after, up to the next change.
    pub after: f64,
    /// p-value of the split when it was found.
    pub p_value: f64,
}

/// The change points of `values`, in order.
///
/// # Errors
/// Fewer than twice `least` values, more than [`MAX_LENGTH`], one that is not finite, `least` below 2, no
/// permutations, a block of 0, or `alpha` outside (0, 1).
pub fn find_changes(values: &[f64], search: &Search) -> Result<Vec<ChangePoint>> {
    check_range("least", search.least as f64, search.least > 1, "at least 2")?;
    check("values", values, 2 * search.least)?;
    check_probability("alpha", search.alpha)?;
    check_range("permutations", search.permutations as f64, search.permutations > 0, "at least 1")?;
    let block = search.block.unwrap_or_else(|| usual_block(values));
    check_range("block", block as f64, block > 0, "at least 1")?;
    if values.len() > MAX_LENGTH {
        return Err(error(ErrorKind::OutOfDomain, format!("{} values, at most {MAX_LENGTH}", values.len())));
    }
    let mut rng = Rng::new(search.seed);
    let mut edges = vec![0, values.len()];
    let mut found: Vec<(usize, f64)> = Vec::new();
    while let Some(split) = best_of_all(values, &edges, search.least) {
        let reached = (0..search.permutations)
            .filter(|_| {
                let shuffled = permute_blocks(values, &edges, block, &mut rng);
                best_of_all(&shuffled, &edges, search.least).is_some_and(|other| other.energy >= split.energy)
            })
            .count();
        let p_value = (reached + 1) as f64 / (search.permutations + 1) as f64;
        if p_value > search.alpha {
            break;
        }
        found.push((split.index, p_value));
        edges.push(split.index);
        edges.sort_unstable();
    }
    found.sort_unstable_by_key(|(index, _)| *index);
    let stretch = |edge: usize| median(&values[edges[edge]..edges[edge + 1]]);
    let describe = |(order, (index, p_value)): (usize, (usize, f64))| ChangePoint {
        index,
        before: stretch(order),
        after: stretch(order + 1),
        p_value,
    };
    Ok(found.into_iter().enumerate().map(describe).collect())
}

/// A block length that keeps the dependence of a first-order autoregression inside blocks; 1 for independent values.
fn usual_block(values: &[f64]) -> usize {
    let phi = phi_from_differences(values);
    // Below this the estimate from a few dozen values is noise.
    if phi < 0.2 {
        return 1;
    }
    let length = (2.0 * phi / (1.0 - phi * phi)).powf(2.0 / 3.0) * (values.len() as f64).cbrt();
    (length.ceil() as usize).clamp(1, (values.len() / 4).max(1))
}

#[derive(Clone, Copy)]
struct Split {
    index: usize,
    energy: f64,
}

/// The best split over all stretches between `edges`; `None` if none is long enough or nothing differs.
fn best_of_all(values: &[f64], edges: &[usize], least: usize) -> Option<Split> {
    edges
        .windows(2)
        .filter_map(|edge| {
            let split = best_split(&values[edge[0]..edge[1]], least)?;
            Some(Split { index: edge[0] + split.index, ..split })
        })
        .max_by(|a, b| a.energy.total_cmp(&b.energy))
}

/// The split of one stretch with the largest scaled energy distance.
fn best_split(values: &[f64], least: usize) -> Option<Split> {
    let count = values.len();
    let distances_to =
        |others: &[f64], value: f64| others.iter().map(|other| (other - value).abs()).sum::<f64>();
    // Sums of distances from each value to those before it and to those after it.
    let before: Vec<f64> = (0..count).map(|k| distances_to(&values[..k], values[k])).collect();
    let after: Vec<f64> = (0..count).map(|k| distances_to(&values[k + 1..], values[k])).collect();
    let total: f64 = before.iter().sum();
    let (mut within_left, mut within_right) = (0.0, total);
    let mut best: Option<Split> = None;
    for index in 1..count {
        within_left += before[index - 1];
        within_right -= after[index - 1];
        if index < least || count - index < least {
            continue;
        }
        let energy = energy(index as f64, (count - index) as f64, within_left, within_right, total);
        if energy > best.map_or(0.0, |split| split.energy) {
            best = Some(Split { index, energy });
        }
    }
    best
}

fn energy(left: f64, right: f64, within_left: f64, within_right: f64, total: f64) -> f64 {
    let between = total - within_left - within_right;
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let distance = 2.0 * between / (left * right) - within_left / pairs(left) - within_right / pairs(right);
    distance * left * right / (left + right)
}

/// Permutes blocks within each stretch. Each stretch is first rotated by a random offset, so that block edges do not
/// always fall on the same values.
fn permute_blocks(values: &[f64], edges: &[usize], block: usize, rng: &mut Rng) -> Vec<f64> {
    let mut shuffled = Vec::with_capacity(values.len());
    for edge in edges.windows(2) {
        let mut stretch = values[edge[0]..edge[1]].to_vec();
        let offset = rng.below(stretch.len());
        stretch.rotate_left(offset);
        let mut blocks: Vec<&[f64]> = stretch.chunks(block).collect();
        rng.shuffle(&mut blocks);
        shuffled.extend(blocks.concat());
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use super::{best_split, permute_blocks};
    use crate::rng::Rng;

    #[test]
    fn energy_of_a_split_is_that_of_its_definition() {
        let values = [1.0, 4.0, 2.0, 9.0, 7.0, 8.0];
        let pairs = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().map(|x| b.iter().map(|y| (x - y).abs()).sum::<f64>()).sum()
        };
        let by_definition = |cut: usize| {
            let (a, b) = values.split_at(cut);
            let (n, m) = (a.len() as f64, b.len() as f64);
            let distance =
                2.0 * pairs(a, b) / (n * m) - pairs(a, a) / (n * (n - 1.0)) - pairs(b, b) / (m * (m - 1.0));
            distance * n * m / (n + m)
        };
        let best = best_split(&values, 2).unwrap();
        let cut = (2..=4).max_by(|a, b| by_definition(*a).total_cmp(&by_definition(*b))).unwrap();
        assert_eq!(best.index, cut);
        assert!((best.energy - by_definition(cut)).abs() < 1e-12);
    }

    #[test]
    fn blocks_move_as_a_whole_and_stay_in_their_stretch() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let shuffled = permute_blocks(&values, &[0, 12, 20], 4, &mut Rng::new(3));
        let in_first = |value: &f64| *value < 12.0;
        assert!(shuffled[..12].iter().all(in_first) && !shuffled[12..].iter().any(in_first));
        let kept = shuffled.windows(2).filter(|pair| pair[1] - pair[0] == 1.0).count();
        assert!(kept >= 13, "blocks of 4 keep 3 neighbours each, but for the rotation: {shuffled:?}");
    }
}

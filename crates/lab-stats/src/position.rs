//! Whether it matters who works first: the place of a target before or after the base, as a factor of its log ratios.
//!
//! ```text
//! block 1: base, target    ln ratio  0.031     target later:    mean  0.030
//! block 2: target, base    ln ratio -0.012     target earlier:  mean -0.011     later is worth 2.1 % of speed, twice over
//! ```
//! Where a block is done in slices, the two means are those of its slices, and each block gives one such effect.
//!
//! With balanced orders such an effect falls out of the mean and stays in the scatter. It is told, since a host on which
//! the second of two is faster is a host to be looked at.

use crate::distributions::{t_critical, t_two_sided};
use crate::error::{Result, check, check_pair, check_probability};
use crate::interval::{Interval, t_interval, t_test};
use crate::paired::Settings;
use crate::summary::{mean, variance};
use serde::{Deserialize, Serialize};

/// The gain of working before the other of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionEffect {
    /// Rate of who is earlier over the rate the same would have later: below 1 if it is better to be later.
    pub ratio: f64,
    /// Its interval.
    pub interval: Interval,
    /// Two-sided p-value of no effect.
    pub p_value: f64,
    /// Pairs, or slices, in which the target was earlier than the base.
    pub earlier: usize,
    /// Those in which it was later.
    pub later: usize,
}

/// Estimates the effect from the log ratios of a target to the base, and whether the target was `earlier` in each.
/// `None` with fewer than two pairs of either kind.
///
/// # Errors
/// Different lengths, a value that is not finite, or settings outside their domain.
pub fn position_effect(
    log_ratios: &[f64],
    earlier: &[bool],
    settings: &Settings,
) -> Result<Option<PositionEffect>> {
    let places: Vec<f64> = earlier.iter().map(|earlier| f64::from(u8::from(*earlier))).collect();
    check_pair("log_ratios and places", log_ratios, &places)?;
    check("log_ratios", log_ratios, 0)?;
    check_probability("level", settings.level)?;
    let (first, second) = by_place(log_ratios, earlier);
    if first.len() < 2 || second.len() < 2 {
        return Ok(None);
    }
    let (n, m) = (first.len() as f64, second.len() as f64);
    let df = n + m - 2.0;
    let pooled = (variance(&first) * (n - 1.0) + variance(&second) * (m - 1.0)) / df;
    // The effect is in the log ratio with one sign if the target is earlier and with the other if it is later.
    let effect = (mean(&first) - mean(&second)) / 2.0;
    let error = (pooled * (1.0 / n + 1.0 / m)).sqrt() / 2.0;
    let reach = t_critical(settings.level, df) * error;
    let p_value = if effect == 0.0 { 1.0 } else { t_two_sided(effect / error, df) };
    let interval = Interval { low: effect - reach, high: effect + reach, level: settings.level }.exp();
    Ok(Some(PositionEffect {
        ratio: effect.exp(),
        interval,
        p_value,
        earlier: first.len(),
        later: second.len(),
    }))
}

fn by_place(log_ratios: &[f64], earlier: &[bool]) -> (Vec<f64>, Vec<f64>) {
    let of = |wanted: bool| {
        log_ratios.iter().zip(earlier).filter(|(_, is)| **is == wanted).map(|(log, _)| *log).collect()
    };
    (of(true), of(false))
}

/// Estimates the effect from blocks that were done in slices: of each block the log ratio of every slice, and whether the target was
/// earlier in it. Slices of a block resemble each other, so a block is one observation. `None` with fewer than two blocks that
/// have slices of both kinds.
///
/// # Errors
/// As [`position_effect`].
pub fn position_effect_of_slices(
    blocks: &[(Vec<f64>, Vec<bool>)],
    settings: &Settings,
) -> Result<Option<PositionEffect>> {
    let (mut effects, mut counts) = (Vec::new(), [0; 2]);
    for (log_ratios, earlier) in blocks {
        let places: Vec<f64> = earlier.iter().map(|earlier| f64::from(u8::from(*earlier))).collect();
        check_pair("log_ratios and places", log_ratios, &places)?;
        check("log_ratios", log_ratios, 0)?;
        let (first, second) = by_place(log_ratios, earlier);
        if !first.is_empty() && !second.is_empty() {
            effects.push((mean(&first) - mean(&second)) / 2.0);
            counts = [counts[0] + first.len(), counts[1] + second.len()];
        }
    }
    if effects.len() < 2 {
        return Ok(None);
    }
    Ok(Some(PositionEffect {
        ratio: mean(&effects).exp(),
        interval: t_interval(&effects, settings.level)?.exp(),
        p_value: t_test(&effects)?,
        earlier: counts[0],
        later: counts[1],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_of_place_is_told_from_one_of_the_target() {
        // As much of it in the first places as in the second.
        let noise = [0.001, -0.002, 0.0015, 0.0, 0.001, -0.0015, 0.0005, -0.0005];
        let earlier = [true, false, false, true, false, true, true, false];
        let of = |place: f64, target: f64| {
            let log =
                |(noise, earlier): (&f64, &bool)| target + noise + if *earlier { place } else { -place };
            let logs: Vec<f64> = noise.iter().zip(&earlier).map(log).collect();
            position_effect(&logs, &earlier, &Settings::default()).unwrap().unwrap()
        };
        let both = of(-0.02, 0.05);
        assert!((both.ratio.ln() + 0.02).abs() < 0.001 && both.p_value < 1e-5, "{both:?}");
        assert!(both.interval.contains((-0.02f64).exp()) && !both.interval.contains(1.0), "{both:?}");
        assert_eq!((both.earlier, both.later), (4, 4));
        let target_alone = of(0.0, 0.05);
        assert!(target_alone.p_value > 0.3 && target_alone.interval.contains(1.0), "{target_alone:?}");
        // Two samples of the same numbers, by hand: t = 0.
        let none = position_effect(&[0.1, 0.2, 0.1, 0.2], &[true, true, false, false], &Settings::default());
        assert_eq!(none.unwrap().unwrap().p_value, 1.0);
    }

    #[test]
    fn one_pair_of_a_kind_tells_nothing() {
        let of = |earlier: &[bool]| position_effect(&[0.1, 0.2, 0.3], earlier, &Settings::default());
        assert_eq!(of(&[true, true, false]).unwrap(), None);
        assert!(of(&[true]).is_err());
    }

    #[test]
    fn slices_of_a_block_are_one_observation() {
        let noise = [0.003, -0.002, 0.001, 0.0];
        let blocks = |place: f64| -> Vec<(Vec<f64>, Vec<bool>)> {
            let block = |(number, noise): (usize, &f64)| {
                // Ten times the same in each block: that makes nobody surer.
                let earlier: Vec<bool> = (0..20).map(|slice| (slice + number) % 2 == 0).collect();
                let log = |earlier: &bool| 0.05 + if *earlier { place + noise } else { -place - noise };
                (earlier.iter().map(log).collect(), earlier)
            };
            noise.iter().enumerate().map(block).collect()
        };
        let of = |place| position_effect_of_slices(&blocks(place), &Settings::default()).unwrap().unwrap();
        let first_is_slower = of(-0.02);
        assert!((first_is_slower.ratio.ln() + 0.0195).abs() < 1e-9, "{first_is_slower:?}");
        assert!(first_is_slower.p_value < 1e-3 && !first_is_slower.interval.contains(1.0));
        assert_eq!((first_is_slower.earlier, first_is_slower.later), (40, 40));
        let none = of(0.0);
        assert!(none.p_value > 0.3 && none.interval.contains(1.0), "{none:?}");
        let lone = &blocks(0.1)[..1];
        assert_eq!(position_effect_of_slices(lone, &Settings::default()).unwrap(), None);
        let one_kind = vec![(vec![0.1, 0.2], vec![true, true]); 5];
        assert_eq!(position_effect_of_slices(&one_kind, &Settings::default()).unwrap(), None);
    }
}

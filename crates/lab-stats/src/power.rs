//! The differences that an experiment can see: how often the verdict's own rule calls a change of a given
//! size.
//!
//! ```text
//! world: log ratios of the cell = change + sd * normal      p-values of the other cells: of equals
//!            |  estimate, judge                                   |
//!        a regression?                    and        it stands among all cells?       -> called, in how many worlds of all
//! ```
//! The rule is not a t test: the whole interval must lie beyond the margin, the second opinion must agree, and the cell must
//! stand among all of its report. So the rule itself is carried out, on simulated pairs, with a fixed seed. A t test of 5
//! pairs that scatter by 1.5 % promises 2.5 % in 4 of 5 cases; the rule calls that in 1 of 10.
//!
//! Effects are shares, as in 0.05 for 5 % slower; noise is the standard deviation of a pair's log ratio
//! ([`crate::paired::PairedRatio::log_sd`]).

use crate::error::{ErrorKind, Result, check_above_zero, check_probability, check_range, error};
use crate::interval::t_test;
use crate::paired::estimate;
use crate::rng::Rng;
use crate::table::{Policy, stands_among};
use crate::verdict::{Better, Margin, Verdict, judge};

/// Worlds simulated: a probability of 0.8 is known within 0.025 (two standard deviations of a binomial).
const WORLDS: usize = 1_000;

/// The shape of a report whose cells have equal numbers of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// Pairs of each cell.
    pub pairs: usize,
    /// Cells that are corrected together; one of them has changed.
    pub cells: usize,
    /// The limits of small and large.
    pub margin: Margin,
    /// How the report is judged.
    pub policy: Policy,
}

/// Randomness of one world, for any size of noise and change.
struct World {
    /// Standard normal numbers, one per pair.
    noise: Vec<f64>,
    /// p-values of the cells that did not change; they do not depend on the size of their noise.
    others: Vec<f64>,
}

/// A design with its worlds.
pub struct Simulation {
    design: Design,
    worlds: Vec<World>,
}

impl Simulation {
    /// # Errors
    /// Fewer than 2 pairs, more than [`crate::rank::MAX_EXACT`], no cells, or a margin or policy outside its domain.
    pub fn new(design: Design) -> Result<Simulation> {
        if design.pairs < 2 || design.cells == 0 {
            let context =
                format!("{} pairs of {} cells, 2 pairs of one are needed", design.pairs, design.cells);
            return Err(error(ErrorKind::TooFewValues, context));
        }
        design.margin.check()?;
        check_probability("false_discovery_rate", design.policy.false_discovery_rate)?;
        let mut rng = Rng::new(0);
        let mut pairs = || (0..design.pairs).map(|_| normal(&mut rng)).collect::<Vec<f64>>();
        let mut world = || {
            let noise = pairs();
            let others = (1..design.cells).map(|_| t_test(&pairs())).collect::<Result<_>>()?;
            Ok(World { noise, others })
        };
        Ok(Simulation { design, worlds: (0..WORLDS).map(|_| world()).collect::<Result<_>>()? })
    }

    /// Probability that a target that is slower by the share `change` is called so.
    ///
    /// # Errors
    /// A `change` outside \[0, 1), or `log_sd` not above 0.
    pub fn power(&self, change: f64, log_sd: f64) -> Result<f64> {
        check_range("change", change, (0.0..1.0).contains(&change), "at least 0 and below 1")?;
        check_above_zero("log_sd", log_sd)?;
        let mut called = 0;
        for world in &self.worlds {
            called += usize::from(self.is_called(world, (-change).ln_1p(), log_sd)?);
        }
        Ok(called as f64 / self.worlds.len() as f64)
    }

    /// The smallest slowdown, a share, that is called with probability `power`; `None` if not even one by nine tenths is.
    ///
    /// # Errors
    /// `log_sd` not above 0, or a `power` outside (0, 1).
    pub fn smallest_detectable(&self, log_sd: f64, power: f64) -> Result<Option<f64>> {
        const MOST: f64 = 0.9;
        check_probability("power", power)?;
        let (mut low, mut high) = (0.0, self.design.margin.call);
        while self.power(high, log_sd)? < power {
            if high >= MOST {
                return Ok(None);
            }
            (low, high) = (high, (2.0 * high).min(MOST));
        }
        while high - low > 0.01 * high {
            let middle = f64::midpoint(low, high);
            if self.power(middle, log_sd)? < power { low = middle } else { high = middle }
        }
        Ok(Some(high))
    }

    fn is_called(&self, world: &World, shift: f64, log_sd: f64) -> Result<bool> {
        let Design { margin, policy, .. } = &self.design;
        let pairs: Vec<f64> = world.noise.iter().map(|unit| shift + log_sd * unit).collect();
        let ratio = estimate(&pairs, &policy.settings)?;
        if judge(&ratio, Better::Higher, *margin)?.verdict != Verdict::Regression {
            return Ok(false);
        }
        let mut family = vec![ratio.p_value];
        family.extend(&world.others);
        Ok(stands_among(&family, policy.false_discovery_rate)?[0].1)
    }
}

/// A standard normal number, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * rng.unit().ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

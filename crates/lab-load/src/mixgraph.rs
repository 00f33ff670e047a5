//! The mixed workload of a social graph: which key, which operation, how large a value, how long a scan.
//!
//! ```text
//! number in [0, num) --+-- power law or key ranges ----> key
//!   (one per query)    +-- modulo 1000, by the ratios --> get, put or seek
//!                      +-- u = number / num ------------> bytes of a value, rows of a scan (generalised Pareto)
//! ```
//! One uniform number decides everything about a query, as in RocksDB's tool: hot keys therefore have values and scans
//! of their own sizes.
//! Source: RocksDB `tools/db_bench_tool.cc`, `MixGraph`; Cao et al., FAST 2020.

use crate::rng::Mt19937_64;
use serde::{Deserialize, Serialize};

/// The parameters of the mix, under db_bench's names and with its defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MixParameters {
    /// Weights of gets, puts and seeks.
    pub mix_get_ratio: f64,
    #[allow(missing_docs, reason = "as the one above")]
    pub mix_put_ratio: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub mix_seek_ratio: f64,
    /// Rows of a scan are reduced modulo this.
    pub mix_max_scan_len: u64,
    /// Bytes of a value above this are reduced modulo it.
    pub mix_max_value_size: u64,
    /// How hot keys are, `f(x) = a * x^b`; uniform if one of the two is 0.
    pub key_dist_a: f64,
    #[allow(missing_docs, reason = "as the one above")]
    pub key_dist_b: f64,
    /// How hot ranges of keys are, `f(x) = a * e^(b x) + c * e^(d x)`; one range if all are 0.
    pub keyrange_dist_a: f64,
    #[allow(missing_docs, reason = "as the one above")]
    pub keyrange_dist_b: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub keyrange_dist_c: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub keyrange_dist_d: f64,
    /// Number of ranges.
    pub keyrange_num: u64,
    /// Bytes of a value: generalised Pareto distribution.
    pub value_theta: f64,
    #[allow(missing_docs, reason = "as the one above")]
    pub value_k: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub value_sigma: f64,
    /// Rows of a scan: generalised Pareto distribution.
    pub iter_theta: f64,
    #[allow(missing_docs, reason = "as the one above")]
    pub iter_k: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub iter_sigma: f64,
    /// Whether the rate follows `a * sin(b * seconds + c) + d` operations per second, over all threads.
    pub sine_mix_rate: bool,
    #[allow(missing_docs, reason = "as the one above")]
    pub sine_a: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub sine_b: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub sine_c: f64,
    #[allow(missing_docs, reason = "as the ones above")]
    pub sine_d: f64,
    /// Milliseconds for which a rate is kept before it is computed again.
    pub sine_mix_rate_interval_milliseconds: u64,
}

impl Default for MixParameters {
    fn default() -> MixParameters {
        MixParameters {
            mix_get_ratio: 1.0,
            mix_put_ratio: 0.0,
            mix_seek_ratio: 0.0,
            mix_max_scan_len: 10_000,
            mix_max_value_size: 1024,
            key_dist_a: 0.0,
            key_dist_b: 0.0,
            keyrange_dist_a: 0.0,
            keyrange_dist_b: 0.0,
            keyrange_dist_c: 0.0,
            keyrange_dist_d: 0.0,
            keyrange_num: 1,
            value_theta: 0.0,
            value_k: 0.2615,
            value_sigma: 25.45,
            iter_theta: 0.0,
            iter_k: 2.517,
            iter_sigma: 14.236,
            sine_mix_rate: false,
            sine_a: 1.0,
            sine_b: 1.0,
            sine_c: 0.0,
            sine_d: 1.0,
            sine_mix_rate_interval_milliseconds: 10_000,
        }
    }
}

/// Names of the sets of parameters that were published with the workload.
pub const PRESETS: [&str; 4] = ["all_random", "all_dist", "prefix_random", "prefix_dist"];

impl MixParameters {
    /// A published set by name: gets, puts and seeks at 0.83, 0.14 and 0.03; hot keys in `*_dist`, hot ranges of keys
    /// in `prefix_*`. The published `prefix_random` gives no power law, and RocksDB's tool then draws keys uniformly.
    pub fn preset(name: &str) -> Option<MixParameters> {
        let base = MixParameters {
            mix_get_ratio: 0.83,
            mix_put_ratio: 0.14,
            mix_seek_ratio: 0.03,
            ..Default::default()
        };
        let hot_keys =
            |mix: MixParameters| MixParameters { key_dist_a: 0.002_312, key_dist_b: 0.3467, ..mix };
        let hot_ranges = |mix: MixParameters| MixParameters {
            keyrange_dist_a: 14.18,
            keyrange_dist_b: -2.917,
            keyrange_dist_c: 0.0164,
            keyrange_dist_d: -0.080_82,
            keyrange_num: 30,
            ..mix
        };
        Some(match name {
            "all_random" => base,
            "all_dist" => hot_keys(base),
            "prefix_random" => hot_ranges(base),
            "prefix_dist" => hot_ranges(hot_keys(base)),
            _ => return None,
        })
    }

    /// Operations per second at `seconds` after the start, if the mix has a rate. Never below 1.
    pub fn rate_at(&self, seconds: f64) -> Option<f64> {
        let sine = self.sine_a * (self.sine_b * seconds + self.sine_c).sin() + self.sine_d;
        self.sine_mix_rate.then(|| sine.max(1.0))
    }

    /// Refuses parameters that describe no distribution.
    ///
    /// # Errors
    /// One sentence that names them.
    pub fn check(&self) -> Result<(), String> {
        let ratios = [self.mix_get_ratio, self.mix_put_ratio, self.mix_seek_ratio];
        if ratios.iter().any(|ratio| ratio.is_nan() || *ratio < 0.0) || ratios.iter().sum::<f64>() <= 0.0 {
            return Err(
                "mix_get_ratio, mix_put_ratio and mix_seek_ratio must be weights, one above zero".into()
            );
        }
        if self.mix_max_scan_len == 0 || self.mix_max_value_size == 0 || self.keyrange_num == 0 {
            return Err("mix_max_scan_len, mix_max_value_size and keyrange_num must be above zero".into());
        }
        Ok(())
    }
}

/// The kind of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Looks the key up.
    Get,
    /// Sets it to a value of so many bytes.
    Put(usize),
    /// Seeks it and reads so many rows.
    Seek(u64),
}

/// Draws queries.
pub struct Mix {
    parameters: MixParameters,
    num: u64,
    /// Ends of gets and puts among the residues of 1000.
    ends: [u64; 2],
    ranges: Option<KeyRanges>,
}

impl Mix {
    /// Queries on `num` keys.
    pub fn new(parameters: &MixParameters, num: u64) -> Mix {
        let p = parameters;
        let sum = p.mix_get_ratio + p.mix_put_ratio + p.mix_seek_ratio;
        let end = |share: f64| (1000.0 * share / sum).ceil() as u64;
        let by_range = [p.keyrange_dist_a, p.keyrange_dist_b, p.keyrange_dist_c, p.keyrange_dist_d]
            .iter()
            .any(|x| *x != 0.0);
        Mix {
            num,
            ends: [end(p.mix_get_ratio), end(p.mix_get_ratio) + end(p.mix_put_ratio)],
            ranges: by_range.then(|| KeyRanges::new(p, num)).filter(|ranges| ranges.weight > 0),
            parameters: parameters.clone(),
        }
    }

    /// The query of the uniform `number` below `num`: number of the key, and what is done with it.
    pub fn query(&self, number: u64) -> (u64, Action) {
        let p = &self.parameters;
        let u = number as f64 / self.num as f64;
        let key = match &self.ranges {
            _ if p.key_dist_a == 0.0 || p.key_dist_b == 0.0 => number,
            Some(ranges) => ranges.key(number, p),
            None => hashed(power_law(u, p), self.num),
        };
        let action = match number % 1000 {
            residue if residue < self.ends[0] => Action::Get,
            residue if residue < self.ends[1] => {
                let size = pareto(u, p.value_theta, p.value_k, p.value_sigma);
                Action::Put(match size {
                    size if size < LEAST_VALUE => LEAST_VALUE as usize,
                    size if size as u64 > p.mix_max_value_size => {
                        (size as u64 % p.mix_max_value_size) as usize
                    }
                    size => size as usize,
                })
            }
            _ => {
                let rows = pareto(u, p.iter_theta, p.iter_k, p.iter_sigma).max(0) as u64;
                Action::Seek(rows % p.mix_max_scan_len)
            }
        };
        (key, action)
    }
}

/// Bytes of the smallest value.
const LEAST_VALUE: i64 = 10;

/// The inverse of the power law: which seed a key comes from.
fn power_law(u: f64, p: &MixParameters) -> u64 {
    (u / p.key_dist_a).powf(1.0 / p.key_dist_b).ceil() as u64
}

/// The number below `num` that a seed stands for: scatters hot keys over all of them.
fn hashed(seed: u64, num: u64) -> u64 {
    Mt19937_64::new(seed).next_u64() % num
}

/// The inverse of the generalised Pareto distribution, rounded up.
fn pareto(u: f64, theta: f64, k: f64, sigma: f64) -> i64 {
    let value = if k == 0.0 { theta - sigma * u.ln() } else { theta + sigma * (u.powf(-k) - 1.0) / k };
    value.ceil() as i64
}

/// Ranges of equally many keys, each with a weight.
struct KeyRanges {
    /// Where each range begins on the line of weights.
    starts: Vec<u64>,
    /// All weights.
    weight: u64,
    /// Keys of a range.
    keys: u64,
}

impl KeyRanges {
    fn new(p: &MixParameters, num: u64) -> KeyRanges {
        let hotness = |x: u64| {
            let x = x as f64;
            p.keyrange_dist_a * (p.keyrange_dist_b * x).exp()
                + p.keyrange_dist_c * (p.keyrange_dist_d * x).exp()
        };
        // From the coldest: it gets a weight of about one.
        let shares =
            (1..=p.keyrange_num).rev().map(hotness).map(|share| if share < 1e-16 { 0.0 } else { share });
        let shares: Vec<f64> = shares.collect();
        let scale =
            shares.iter().find(|share| **share > 0.0).map_or(0.0, |share| (1.0 / share).floor() + 1.0);
        let mut weights: Vec<u64> = shares.iter().map(|share| (scale * share).floor() as u64).collect();
        let weight = weights.iter().sum();
        // The shuffle depends on the weights alone, so equal parameters give equal hot spots.
        let mut rng = Mt19937_64::new(weight);
        for index in 0..weights.len() {
            let other = (rng.next_u64() % weights.len() as u64) as usize;
            weights.swap(index, other);
        }
        let mut at = 0;
        let mut begin = |weight: &u64| {
            at += weight;
            at - weight
        };
        let starts = weights.iter().map(&mut begin).collect();
        KeyRanges { starts, weight, keys: (num / p.keyrange_num).max(1) }
    }

    fn key(&self, number: u64, p: &MixParameters) -> u64 {
        let at = number % self.weight;
        let range = self.starts.partition_point(|start| *start <= at).saturating_sub(1) as u64;
        let u = (number % self.keys) as f64 / self.keys as f64;
        range * self.keys + hashed(power_law(u, p), self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries of every number in turn.
    fn all(preset: &str, num: u64) -> Vec<(u64, Action)> {
        let mix = Mix::new(&MixParameters::preset(preset).unwrap(), num);
        (0..num).map(|number| mix.query(number)).collect()
    }

    #[test]
    fn operations_come_in_their_ratio_and_sizes_stay_in_their_bounds() {
        for preset in PRESETS {
            let queries = all(preset, 10_000);
            let count =
                |wanted: fn(&Action) -> bool| queries.iter().filter(|(_, action)| wanted(action)).count();
            assert_eq!(count(|action| *action == Action::Get), 8300, "{preset}");
            assert_eq!(count(|action| matches!(action, Action::Put(_))), 1400);
            assert_eq!(count(|action| matches!(action, Action::Seek(_))), 300);
            for (key, action) in queries {
                assert!(key < 10_000, "{preset}: {key}");
                match action {
                    // A size above 1024 is reduced modulo 1024, so may end below 10.
                    Action::Put(bytes) => assert!(bytes <= 1024),
                    Action::Seek(rows) => assert!(rows < 10_000),
                    Action::Get => {}
                }
            }
        }
    }

    #[test]
    fn values_follow_the_pareto_distribution() {
        // The mean of a generalised Pareto distribution is theta + sigma / (1 - k).
        let n = 100_000;
        let sum: f64 = (1..n).map(|i| pareto(f64::from(i) / f64::from(n), 0.0, 0.2615, 25.45) as f64).sum();
        let mean = sum / f64::from(n - 1);
        assert!((mean / (25.45 / (1.0 - 0.2615) + 0.5) - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(pareto(0.5, 1.0, 0.0, 2.0), (1.0 - 2.0 * 0.5f64.ln()).ceil() as i64);
    }

    #[test]
    fn values_are_never_smaller_than_ten_bytes_nor_larger_than_the_most() {
        // Near u = 1 the distribution gives 0; at u = 0.5, 25.45 * (2^0.2615 - 1) / 0.2615 = 19.3.
        let puts = MixParameters { mix_get_ratio: 0.0, mix_put_ratio: 1.0, ..MixParameters::default() };
        let mix = Mix::new(&puts, 1_000_000);
        assert_eq!(mix.query(999_999).1, Action::Put(10));
        assert_eq!(mix.query(500_000).1, Action::Put(20));
        let small = Mix::new(&MixParameters { mix_max_value_size: 12, ..puts }, 1_000_000);
        assert_eq!(small.query(500_000).1, Action::Put(8), "20 modulo 12");
    }

    #[test]
    fn hot_keys_and_hot_ranges_take_most_queries() {
        let share_of_hottest = |keys: Vec<u64>, bucket: u64, count: usize| {
            let mut counts = std::collections::BTreeMap::<u64, u64>::new();
            keys.iter().for_each(|key| *counts.entry(key / bucket).or_default() += 1);
            let mut counts: Vec<u64> = counts.into_values().collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts.iter().take(count).sum::<u64>() as f64 / keys.len() as f64
        };
        let keys = |preset: &str| all(preset, 30_000).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert!(share_of_hottest(keys("all_random"), 1, 300) < 0.02);
        // u = a x^b: at x = 100 keys, 0.0023 * 100^0.35 = 0.0114; the law is flat enough to be spread, yet skewed.
        assert!(share_of_hottest(keys("all_dist"), 1, 300) > 0.03);
        // The hottest of 30 ranges has 0.78 of all weights.
        let shares = share_of_hottest(keys("prefix_dist"), 1000, 1);
        assert!((0.6..0.9).contains(&shares), "{shares}");
    }

    #[test]
    fn rates_follow_the_sine_and_nonsense_is_refused() {
        let mix = MixParameters {
            sine_mix_rate: true,
            sine_a: 10.0,
            sine_b: 1.0,
            sine_d: 20.0,
            ..Default::default()
        };
        assert_eq!(mix.rate_at(0.0), Some(20.0));
        assert!((mix.rate_at(std::f64::consts::FRAC_PI_2).unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(MixParameters::default().rate_at(1.0), None);
        assert!(mix.check().is_ok());
        assert!(MixParameters { mix_get_ratio: 0.0, ..mix.clone() }.check().is_err());
        assert!(MixParameters { keyrange_num: 0, ..mix }.check().is_err());
    }
}

//! A benchmark host whose truth is known: the noise the lab measured on real ones, added up.
//!
//! ln(rate) = effect of the target + offset of the session (shared by its tests) + drift of the host + state of a
//! two-state test + noise of the test. Sizes are those found between point releases that should be equal.

use outcrop_lab_stats::paired::log_ratios;
use outcrop_lab_stats::rng::Rng;

/// Noise of one test.
#[derive(Clone, Copy)]
pub struct TestNoise {
    /// Standard deviation of a log rate.
    pub sd: f64,
    /// Probability of the slow state, 11 % below, in a session.
    pub slow_state: f64,
}

/// A host.
pub struct World {
    /// Its tests.
    pub tests: Vec<TestNoise>,
    /// Standard deviation of what a session's tests share.
    pub session_sd: f64,
    /// Change of the log rate from one session to the next.
    pub drift: f64,
    /// The addition to the log rate of the first session after loading.
    pub first_run: f64,
    /// Randomness.
    pub rng: Rng,
}

/// In which order sessions run.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// Each block holds every target once, in random order, after a session that is thrown away.
    Interleaved,
    /// All sessions of one target, then all of the next: how it is usually done.
    OneAfterAnother,
}

impl World {
    /// Twenty tests between 0.3 and 2.2 % of noise, 1 % per session, a drift of 0.1 % per session, 3 % first run.
    pub fn new(seed: u64) -> World {
        let test = |index: usize| TestNoise { sd: 0.003 + 0.001 * index as f64, slow_state: 0.0 };
        World {
            tests: (0..20).map(test).collect(),
            session_sd: 0.01,
            drift: -0.001,
            first_run: 0.03,
            rng: Rng::new(seed),
        }
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.rng.unit().ln()).sqrt() * (std::f64::consts::TAU * self.rng.unit()).cos()
    }

    /// Log ratios to target 0, `[target - 1][test][block]`, where `effect(target, test)` is the true log ratio.
    pub fn measure(
        &mut self,
        targets: usize,
        blocks: usize,
        order: Order,
        effect: impl Fn(usize, usize) -> f64,
    ) -> Vec<Vec<Vec<f64>>> {
        let mut rates = vec![vec![vec![0.0; blocks]; self.tests.len()]; targets];
        for (position, (target, block)) in self.schedule(targets, blocks, order).into_iter().enumerate() {
            let thrown_away = usize::from(order == Order::Interleaved);
            let first = if position + thrown_away == 0 { self.first_run } else { 0.0 };
            let shared = self.session_sd * self.normal() + self.drift * position as f64 + first;
            for (test, TestNoise { sd, slow_state }) in self.tests.clone().into_iter().enumerate() {
                let state = if self.rng.unit() < slow_state { -0.11 } else { 0.0 };
                let log = shared + state + sd * self.normal() + effect(target, test);
                rates[target][test][block] = 1e5 * log.exp();
            }
        }
        (1..targets)
            .map(|target| {
                (0..self.tests.len())
                    .map(|test| log_ratios(&rates[target][test], &rates[0][test]).unwrap())
                    .collect()
            })
            .collect()
    }

    fn schedule(&mut self, targets: usize, blocks: usize, order: Order) -> Vec<(usize, usize)> {
        if order == Order::OneAfterAnother {
            return (0..targets).flat_map(|target| (0..blocks).map(move |block| (target, block))).collect();
        }
        let mut schedule = Vec::new();
        for block in 0..blocks {
            let mut targets: Vec<usize> = (0..targets).collect();
            self.rng.shuffle(&mut targets);
            schedule.extend(targets.into_iter().map(|target| (target, block)));
        }
        schedule
    }
}

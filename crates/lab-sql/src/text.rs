//! Random numbers and the texts of rows.

use outcrop_lab_load::rng::Mt19937_64;

/// Random numbers of one thread.
pub struct Random(Mt19937_64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Random {
        Random(Mt19937_64::new(seed))
    }

    /// A number below `bound`, which is above zero; the bias of the remainder is below one in 2^32 for tables of the lab.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound.max(1)
    }

    /// A number in `[from, to]`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// A number in `[0, 1)`.
    pub fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Writes `groups` groups of eleven random digits, joined by `-`, over `text`.
    pub fn digits(&mut self, groups: usize, text: &mut String) {
        const EACH: u64 = 100_000_000_000;
        text.clear();
        for group in 0..groups {
            if group > 0 {
                text.push('-');
            }
            let mut number = self.below(EACH);
            let mut digits = [b'0'; 11];
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
            digits.iter().for_each(|digit| text.push(char::from(*digit)));
        }
    }
}

/// Zipf's distribution over `[1, n]`, as sysbench draws it.
///
/// Source: sysbench `src/sb_rand.c`, after Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions" (1996).
pub struct Zipf {
    n: f64,
    exponent: f64,
    h_x1: f64,
    h_n: f64,
    s: f64,
}

impl Zipf {
    /// The exponent that sysbench has unless told otherwise.
    pub const USUAL: f64 = 0.8;

    /// Over `[1, n]`, with `exponent` above zero and other than 1.
    pub fn new(n: u64, exponent: f64) -> Zipf {
        let n = n.max(1) as f64;
        let mut zipf = Zipf { n, exponent, h_x1: 0.0, h_n: 0.0, s: 0.0 };
        zipf.h_x1 = zipf.integral(1.5) - 1.0;
        zipf.h_n = zipf.integral(n + 0.5);
        zipf.s = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent));
        zipf
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent)
    }

    fn inverse(&self, x: f64) -> f64 {
        (x * (1.0 - self.exponent) + 1.0).max(0.0).powf(1.0 / (1.0 - self.exponent))
    }

    /// A number in `[1, n]`; 1 comes most often.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.h_n + random.share() * (self.h_x1 - self.h_n);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.s || u >= self.integral(k + 0.5) - k.powf(-self.exponent) {
                return k as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_digits_have_the_widths_of_the_columns() {
        let (mut random, mut text) = (Random::new(1), String::new());
        for (groups, width) in [(10, 119), (5, 59)] {
            random.digits(groups, &mut text);
            assert_eq!(text.len(), width);
            assert_eq!(text.split('-').filter(|group| group.len() == 11).count(), groups);
            assert!(text.chars().all(|c| c == '-' || c.is_ascii_digit()));
        }
    }

    #[test]
    fn zipf_s_numbers_come_as_often_as_its_law_says() {
        const DRAWS: u64 = 200_000;
        let (zipf, mut random) = (Zipf::new(1000, Zipf::USUAL), Random::new(7));
        let mut counts = vec![0u64; 1001];
        (0..DRAWS).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
        let all: f64 = (1..=1000).map(|k| f64::from(k).powf(-Zipf::USUAL)).sum();
        for k in [1usize, 2, 3, 10, 100] {
            let expected = (k as f64).powf(-Zipf::USUAL) / all * DRAWS as f64;
            let off = (counts[k] as f64 - expected).abs() / expected.sqrt();
            assert!(off < 5.0, "{k}: {} of {expected:.0}", counts[k]);
        }
        assert_eq!(counts[0], 0);
        assert_eq!(Zipf::new(1, Zipf::USUAL).draw(&mut random), 1);
    }
}

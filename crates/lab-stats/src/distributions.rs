//! Probabilities and quantiles of the few distributions the verdicts rest on.
//!
//! The incomplete beta and the error function come from `statrs`; quantiles are polished by Newton steps, because
//! an interval end is compared against SciPy to ten digits.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};
use statrs::function::beta::beta_reg;

/// P(Z <= z) of the standard normal distribution.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// P(|T| >= |t|) for Student's t with `df` degrees of freedom. Exact in the far tail; 0 for infinite `t`.
pub(crate) fn t_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { beta_reg(df / 2.0, 0.5, df / (df + t * t)) }
}

/// The t with P(|T| <= t) = `level`, for `level` in (0, 1).
pub(crate) fn t_critical(level: f64, df: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are above 0");
    let mut t = student.inverse_cdf(0.5 + level / 2.0);
    for _ in 0..3 {
        t += (t_two_sided(t, df) - (1.0 - level)) / (2.0 * student.pdf(t));
    }
    t
}

/// P(F >= f) for Fisher's F.
pub(crate) fn f_upper_tail(f: f64, df1: f64, df2: f64) -> f64 {
    if f <= 0.0 { 1.0 } else { beta_reg(df2 / 2.0, df1 / 2.0, df2 / (df2 + df1 * f)) }
}

/// The x with P(B <= x) = `p` for the beta distribution, by bisection: slow and exact, called once per report.
pub(crate) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if beta_reg(a, b, middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn assert_rows(name: &str, ours: impl Fn(&[f64]) -> f64) {
        let golden: Value = serde_json::from_str(include_str!("../golden/golden.json")).unwrap();
        let rows = golden["tails"][name].as_array().unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            let row: Vec<f64> = row.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
            let (expected, arguments) = row.split_last().unwrap();
            let ours = ours(arguments);
            let allowed = 1e-10 * expected.abs() + 1e-14;
            assert!((ours - expected).abs() <= allowed, "{name} {arguments:?}: {ours}, SciPy {expected}");
        }
    }

    #[test]
    fn quantiles_and_tails_are_those_of_scipy() {
        assert_rows("t", |row| t_critical(row[0], row[1]));
        assert_rows("t_p", |row| t_two_sided(row[0], row[1]));
        assert_rows("f_p", |row| f_upper_tail(row[0], row[1], row[2]));
    }
}

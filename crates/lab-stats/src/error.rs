//! The errors of statistics, and the checks every public function starts with.
//!
//! Nothing here is repaired silently: a NaN that slipped into a report would come out as "same".

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why an input was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The statistic does not exist for so few values. Collect more.
    TooFewValues,
    /// A value is NaN or infinite: a step failed or a division went wrong upstream.
    NotFinite,
    /// A value or a setting lies outside its domain, such as the logarithm of zero.
    OutOfDomain,
    /// Two inputs that belong together have different lengths.
    LengthMismatch,
}

/// A refused input, with what was refused in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The class of the error, by which a caller decides how to react.
    pub kind: ErrorKind,
    /// Which input, which index, which value.
    pub context: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ErrorKind::TooFewValues => "Too few values",
            ErrorKind::NotFinite => "Not finite",
            ErrorKind::OutOfDomain => "Out of domain",
            ErrorKind::LengthMismatch => "Length mismatch",
        };
        write!(formatter, "{kind}: {}", self.context)
    }
}

impl std::error::Error for Error {}

/// The result of a statistic.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn error(kind: ErrorKind, context: impl Into<String>) -> Error {
    Error { kind, context: context.into() }
}

/// At least `least` values, all finite.
pub(crate) fn check(name: &str, values: &[f64], least: usize) -> Result<()> {
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(error(ErrorKind::NotFinite, format!("{name}[{index}] is {}", values[index])));
    }
    if values.len() < least {
        let context = format!("{name} has {} values, {least} are needed", values.len());
        return Err(error(ErrorKind::TooFewValues, context));
    }
    Ok(())
}

/// [`check`], and all values above zero.
pub(crate) fn check_positive(name: &str, values: &[f64], least: usize) -> Result<()> {
    check(name, values, least)?;
    match values.iter().position(|value| *value <= 0.0) {
        Some(index) => Err(error(
            ErrorKind::OutOfDomain,
            format!("{name}[{index}] is {}, which has no logarithm", values[index]),
        )),
        None => Ok(()),
    }
}

/// [`check`], and no value below zero.
pub(crate) fn check_not_negative(name: &str, values: &[f64], least: usize) -> Result<()> {
    check(name, values, least)?;
    match values.iter().position(|value| *value < 0.0) {
        Some(index) => {
            Err(error(ErrorKind::OutOfDomain, format!("{name}[{index}] is {}, below 0", values[index])))
        }
        None => Ok(()),
    }
}

/// Two inputs of one length.
pub(crate) fn check_pair(name: &str, a: &[f64], b: &[f64]) -> Result<()> {
    if a.len() == b.len() {
        return Ok(());
    }
    Err(error(ErrorKind::LengthMismatch, format!("{name}: {} and {} values", a.len(), b.len())))
}

/// A probability strictly between 0 and 1.
pub(crate) fn check_probability(name: &str, value: f64) -> Result<()> {
    check_range(name, value, value > 0.0 && value < 1.0, "strictly between 0 and 1")
}

/// A number above zero.
pub(crate) fn check_above_zero(name: &str, value: f64) -> Result<()> {
    check_range(name, value, value > 0.0 && value.is_finite(), "finite and above 0")
}

pub(crate) fn check_range(name: &str, value: f64, inside: bool, range: &str) -> Result<()> {
    if inside {
        return Ok(());
    }
    Err(error(ErrorKind::OutOfDomain, format!("{name} is {value}, it must be {range}")))
}

//! The statistics of the performance laboratory: from one value per session to a verdict and a sentence.
//!
//! ```text
//! samples of a step    steady, warm_up, stalls, histogram, open_loop        which part counts, and its tail
//!        |  one value per session
//! pairs of a block     paired (interval, rank), offset                      ratio to the base, and how well known
//!        |
//! cells of a report    verdict, table (multiple), power                     what may be called, what can be seen
//!        |
//! what it means        explain, history (segments), position                what it is made of, since which version, who was first
//! beside the device    io_efficiency                                        reads reached, time unexplained
//! ```
//! Invariants: no IO, no clock; randomness only from a seed handed in, so equal inputs give equal bytes in a report.
//! The session is the unit: nothing here takes samples within a run for independent. Numbers that are not finite are
//! refused with an error that names them. All results are plain data that go into reports.
//! Concurrency: plain functions of their arguments.
//!
//! Every routine is held to SciPy and statsmodels by `golden/golden.json` (`golden/make.py` writes it); coverage, false
//! calls and power are measured by `tests/it/simulation.rs`. Why these estimators: `docs/design/0002-judgement.md`.
//!
//! Next: `paired.rs`, then `verdict.rs`.
#![forbid(unsafe_code)]

pub mod autocorrelation;
mod distributions;
pub mod error;
pub mod explain;
pub mod histogram;
pub mod history;
pub mod interval;
pub mod io_efficiency;
pub mod multiple;
pub mod offset;
pub mod open_loop;
pub mod paired;
pub mod position;
pub mod power;
pub mod rank;
pub mod rng;
pub mod segments;
pub mod spread;
pub mod stalls;
pub mod steady;
pub mod summary;
pub mod table;
pub mod verdict;
pub mod warm_up;

pub use error::{Error, ErrorKind, Result};
pub use explain::{Explanation, explain};
pub use interval::Interval;
pub use paired::{PairedRatio, Settings, estimate, log_ratios};
pub use table::{Cell, JudgedTable, Policy, judge_table};
pub use verdict::{Better, Judgement, Margin, Reason, Verdict};

//! What a record says: cells of step and target, judged against a base, with the remarks that a reader needs first.
//!
//! `results` assembles the cells; `judge` asks `lab-stats`; `noise` is what earlier experiments of this machine say;
//! `labels` marks measurements that deserve doubt; `stalls` judges standstills; `view` selects targets; `options_diff`
//! and `cpu` look for reasons.

#[cfg(test)]
mod acceptance;
pub mod cpu;
pub mod judge;
pub mod labels;
pub mod noise;
pub mod options_diff;
pub mod results;
pub mod stalls;
pub mod view;

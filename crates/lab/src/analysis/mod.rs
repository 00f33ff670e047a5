//! The results of a record: cells of step and target, judged against a base, with the remarks that a reader needs
//! first.
//!
//! `results` assembles the cells; `judge` asks `lab-stats`; `noise` is what earlier experiments of this machine say;
//! `labels` marks measurements that deserve doubt; `stalls` and `tails` judge standstills and slow operations; `position` asks
//! whether it matters who works first; `view` selects targets; `options_diff`, `plans`, `waits` and `cpu` look for
//! reasons; `phases` says where the time went.

#[cfg(test)]
mod acceptance;
#[cfg(test)]
mod attacks;
pub mod cpu;
pub mod judge;
pub mod labels;
pub mod names;
pub mod noise;
pub mod options_diff;
pub mod phases;
pub mod plans;
pub mod position;
pub mod results;
pub mod stalls;
pub mod tails;
pub mod view;
pub mod waits;

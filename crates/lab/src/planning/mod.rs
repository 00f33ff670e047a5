//! From an experiment to a plan: which sessions run, in what order, at what size, and whether the machine has the memory.

pub(crate) mod balanced;
pub mod memory;
pub mod order;
pub mod plan;
pub mod scale;
pub mod sql;

//! The scrubber: reads every table and blob file again from time to time, in the background and at a low rate, so that damage is
//! found while there is a copy to restore it from.
//!
//! ```text
//! upkeep, once a second: is it due? -> lane for compactions, if no compaction wants the thread -> a step (step.rs): some MiB
//!   plan.rs: which file is next, how much may be read      scrubber.rs: options, figures, what `Db` and the scheduler ask
//! ```
//! Off, which is the default, it costs one load where a thread for compactions finds nothing to do, and one a second.
//! The design is in `docs/design/0044`.

pub mod file;
pub mod options;
pub mod plan;
pub mod scrubber;
pub mod step;
pub mod verify;

//! The scheduler: decides what runs next in the background, and runs it on the environment's threads.
//!
//! The threads are those of the environment, which all its databases share (`outcrop_env::scheduler`), in lanes: flushes, so
//! that a long compaction never delays one, compactions, upkeep, which is slow and nobody waits for, and resuming. A quarter
//! of `max_background_jobs`, at least one, may be flushes at once, the others compactions.
//!
//! ```text
//! threads.rs (a lane asks) -> next_job.rs (picks, with the state locked) -> job.rs (runs, without)
//! ```

pub mod job;
pub mod next_job;
pub mod threads;
mod upkeep;

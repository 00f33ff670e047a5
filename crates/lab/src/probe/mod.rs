//! The counters of the operating system while a step runs: processors, device, memory, pressure, and the
//! process.
//!
//! ```text
//! sources.rs: one reading = one number for each SERIES    sampler.rs: a reading a second, and one at each edge
//! derive.rs: two readings and a result -> numbers per operation
//! ```
//! Read straight from `/proc` and `/sys`, never from the text of another program: header lines that repeat
//! there have been counted as samples of zero before.

pub mod derive;
pub mod sampler;
pub mod sources;

pub use sampler::{Reading, Sampler, joined};
pub use sources::{SERIES, SeriesRow, series_index};

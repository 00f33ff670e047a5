//! The engine's counters: tickers and histograms of a database, and the counts of one thread, under RocksDB's
//! names.
//!
//! ```text
//! operation --Watch--> Local (the thread's shard of Statistics) -- add: a plain store, no line shared with other threads
//!                  `-> perf context of the thread
//! reader of a ticker: the sum of all shards
//! ```
//! An operation asks once whether anybody watches ([`Monitor::asked`], or [`Monitor::begin`]). Lookups add to a [`Counting`]
//! without asking; elsewhere each place that counts costs one comparison, and layers pass the answer on as a [`Watch`].
//!
//! Invariant: a shard that belongs to a thread is written by it alone. Threads beyond the 64th share one, with atomic additions.
//!
//! Next: `statistics.rs`, then `watch.rs`.
#![forbid(unsafe_code)]

mod counted;
mod histogram;
mod histograms;
mod io_stats;
mod perf;
mod perf_metrics;
mod purpose;
mod read_counts;
mod statistics;
mod tickers;
mod watch;

pub use histogram::HistogramData;
pub use histograms::HistogramKind;
pub use io_stats::IoStats;
pub use perf::{PerfContext, PerfLevel};
pub use perf_metrics::PerfMetric;
pub use purpose::{ForPurpose, Purpose};
pub use read_counts::{Counting, ReadCount};
pub use statistics::{Counter, Local, Statistics, StatsLevel};
pub use tickers::Ticker;
pub use watch::{Asked, DetailedTimer, Monitor, PerfTimer, RestTimer, StatsTimer, Timer, Watch, Watching};

/// An enumeration whose values have names, numbered from 0.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($value:ident = $name:literal,)* }) => {
        $(#[$doc])*
        ///
        /// ```
        #[doc = concat!("use outcrop_monitor::", stringify!($type), ";")]
        ///
        #[doc = concat!("let first = ", stringify!($type), "::ALL[0];")]
        #[doc = concat!("assert_eq!(", stringify!($type), "::by_name(first.name()), Some(first));")]
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $type {
            $(
                #[doc = concat!("`", $name, "`")]
                $value,
            )*
        }

        impl $type {
            /// All, in the order of their numbers.
            pub const ALL: &[$type] = &[$($type::$value),*];

            /// How many there are.
            pub const COUNT: usize = $type::ALL.len();

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                const NAMES: &[&str] = &[$($name),*];
                NAMES[self as usize]
            }

            /// The one with RocksDB's name `name`.
            pub fn by_name(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}
pub(crate) use names;

#[cfg(test)]
mod tests;

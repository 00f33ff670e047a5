//! sysbench's microbenchmarks: one table design, and tests that differ in the statements of an event.
//!
//! ```text
//! tests.rs (names, shapes) -> script.rs (statements of an event, and what their parameters are drawn from)
//!     -> client.rs (a connection that does events)          load.rs: tables and rows
//! ```
//! Source: sysbench `src/lua/oltp_*.lua`, and the scripts of the published reports.

pub mod client;
pub mod load;
pub mod script;
pub mod tests;

pub use tests::{Group, TESTS, Test, find};

/// Name of table `number`, from 1.
pub fn table_name(number: u32) -> String {
    format!("sbtest{number}")
}

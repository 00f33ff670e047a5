//! Load for SQL servers: schemas, rows, statements and workloads of sysbench and the Insert Benchmark.
//!
//! ```text
//! address.rs (where a server listens) -> connection.rs over postgres/, mysql.rs (prepared statements, counted)
//! pool.rs: connections that outlive steps
//! text.rs: random digits and letters        upkeep.rs: what follows a load
//! inside.rs: what the server says of itself: redo bytes, plans of statements
//! insert_benchmark/: its tables, its steps
//! sysbench/: its table, its tests           step.rs: what a session asks for -> outcrop_lab_load::StepResult
//! ```
//! Threads, histograms, per-second series and open loops are those of `outcrop-lab-load`: a statement is measured as
//! an engine's operation is. One connection a thread, statements prepared once for each connection.
//! Next: `step.rs`.
#![forbid(unsafe_code)]

pub mod address;
pub mod connection;
pub mod insert_benchmark;
pub mod inside;
mod myrocks;
mod mysql;
pub mod pool;
mod postgres;
pub mod step;
pub mod sysbench;
pub mod text;
pub mod upkeep;

pub use address::{Address, Product};
pub use connection::Connection;
pub use inside::Inside;
pub use pool::Pool;
pub use step::{Load, SqlStep};

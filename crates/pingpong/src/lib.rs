//! The judge of the engine: Outcrop and real RocksDB versions take turns on one database directory.
//!
//! ```text
//! generate(seed) -> Case -> run: phase 0 by outcrop, close -> phase 1 by RocksDB 6.29.5, SIGKILL -> ...
//!                             |    after each opening: every row of every column family == model
//!                             +--> worker (child process, one per engine) --dlopen--> the engine's library
//! ```
//! Both sides of the ball are RocksDB's C API: an engine is a shared library, loaded by a child process, and this
//! crate links none. Each engine's abilities are tried out first; a feature is exercised only where every engine
//! of a case can read it. A failing case is shrunk and written to a file that replays it.
//!
//! Read in this order: `case.rs`, `operation.rs` (the language), `run.rs` (the game), `model.rs` and `rules.rs`
//! (what must happen), `mistake.rs` (what must fail, and how), `generate.rs` with `choices.rs` and `features.rs` (what is drawn), `trials.rs` (who can
//! what), `worker.rs`, `database.rs`, `library.rs` (the child), `campaign.rs` and `shrink.rs` (the long run),
//! `history.rs` with `rows.rs`, and `kills/` (writers that are killed), `power/` (file systems that lose power), `stress/` (many threads, all calls), `extremes/` (every option at its extremes), `calls/` (the same calls on two engines, compared to the letter), `timestamps/` (databases with user-defined timestamps), `expiry/` (values that expire), `compatibility.rs` (the table of who reads what), `tools.rs` (RocksDB's own), `fixtures.rs` (databases for other
//! crates' tests).

mod again;
mod backups;
mod batch;
mod call;
pub mod calls;
pub mod campaign;
pub mod case;
pub mod child;
pub mod choices;
pub mod compatibility;
mod database;
pub mod expiry;
pub mod extremes;
pub mod features;
pub mod fixtures;
pub mod generate;
pub mod history;
mod iter;
pub mod kills;
pub mod known;
mod library;
mod merge;
pub mod mistake;
mod mistaken;
pub mod model;
pub mod operation;
mod options;
mod options_file;
pub mod power;
pub mod progress;
mod rows;
pub mod rules;
pub mod run;
pub mod scratch;
pub mod shrink;
pub mod stress;
pub mod timestamps;
pub mod tools;
mod transactions;
pub mod trials;
mod wire;
pub mod worker;

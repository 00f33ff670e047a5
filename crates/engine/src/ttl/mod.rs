//! Databases whose values expire: RocksDB's `DBWithTTL`, a layer above `Db` that no other database pays for.
//!
//! ```text
//! stored value or operand = the application's bytes | seconds since the epoch when it was written: i32, little-endian
//! ```
//! Invariant: all values in the database end with a stamp. Writes add it (`batch.rs`), reads take it off (`stamp.rs`, `rows.rs`), and the
//! application's compaction filter and merge operator see values without it (`filter.rs`, `merge.rs`). A value goes when a compaction
//! meets it after its time; until then it is read.
//! Source: RocksDB `utilities/ttl/`.

mod batch;
pub mod database;
mod filter;
mod merge;
pub mod rows;
pub mod stamp;

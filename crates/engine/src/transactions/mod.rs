//! Transactions: with locks (`database.rs`, `pessimistic.rs`, `locks.rs`), or checked when they are committed (`optimistic.rs`,
//! `validation.rs`). Both have one front, `transaction.rs` with
//! `writes.rs` and `reads.rs`.

pub mod buckets;
pub mod database;
pub mod locks;
pub mod optimistic;
pub mod options;
mod pessimistic;
mod read_through;
mod reads;
pub mod rows;
mod shared;
mod tracking;
pub mod transaction;
mod validation;
pub mod waits;
mod writes;

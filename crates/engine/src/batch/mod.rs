//! Write batches: the form the WAL stores, and what is done with them without a database.

pub mod apply;
pub mod codec;
pub mod entries;
pub mod indexed;
pub mod key_index;
pub mod overlay;
pub mod save_point;
pub mod scratch;
mod stamp_count;
pub mod stamps;
pub mod wal_items;
pub mod writes;

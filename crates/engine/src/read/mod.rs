//! The read path: point lookups ([`get`]), cursors ([`cursor`]) and iterators of rows ([`rows`]) over memtables and tables.
//!
//! ```text
//! get:  SuperVersion -> memtable -> sealed memtables -> L0 newest first -> L1 .. Ln (one file each)
//! scan: the same sources, merged in key order (merging_iter.rs), versions resolved (cursor.rs), given as rows (rows.rs)
//! ```

pub mod blob;
pub mod counts;
pub mod cursor;
mod cursor_counts;
mod cursor_stamps;
pub mod ends;
pub mod get;
pub mod hiding_ranges;
pub mod key_range;
pub mod layer;
pub mod level_iter;
pub mod merge;
pub mod merging_iter;
pub mod multi_get;
pub mod one_moment;
pub mod options;
pub mod rows;
pub mod source;
pub mod stamped;
pub mod tier;
pub mod value;
pub mod versions;
pub mod view;
pub mod within;

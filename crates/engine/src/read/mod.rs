//! The read path: point lookups ([`get`]) and iterators ([`iter`]) over memtables and tables.
//!
//! ```text
//! get:  SuperVersion -> memtable -> sealed memtables -> L0 newest first -> L1 .. Ln (one file each)
//! iter: the same sources, merged in key order (merging_iter.rs), versions resolved (iter.rs)
//! ```

pub mod blob;
pub mod get;
pub mod hiding_ranges;
pub mod iter;
pub mod layer;
pub mod level_iter;
pub mod merge;
pub mod merging_iter;
pub mod multi_get;
pub mod one_moment;
pub mod options;
pub mod source;
pub mod value;
pub mod view;
pub mod within;

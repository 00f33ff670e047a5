//! Types and functions that every other engine crate uses: errors, keys, coding, hashes and checksums.
//!
//! Invariant: this crate is pure. It opens no file, reads no clock, spawns no thread and holds no lock.
//! Next: [`keys`] for what a stored key looks like, [`coding`] for how numbers are laid out.
#![forbid(unsafe_code)]

pub mod builtin_merge;
pub mod checksum;
pub mod coding;
pub mod compaction_filter;
pub mod comparator;
pub mod error;
pub mod hash;
pub mod keys;
pub mod merge_operator;
mod numbers;
pub mod prefix_extractor;
pub mod random;
pub mod range_tombstone;
pub mod timestamp;
pub mod wide_columns;
pub mod xxph3;

pub use compaction_filter::{CompactionFilter, CompactionFilterFactory, FilterContext, FilterDecision};
pub use comparator::{Comparator, UserComparator};
pub use error::{Error, ErrorKind, Result};
pub use keys::{LookupKey, ParsedKey, SeqNum, ValueType};
pub use merge_operator::MergeOperator;
pub use numbers::{CfId, FileNumber};
pub use prefix_extractor::{PrefixExtractor, UserPrefixExtractor};
pub use range_tombstone::{Bound, Fragment, Fragments, RangeTombstone, Span};
pub use timestamp::Timestamp;

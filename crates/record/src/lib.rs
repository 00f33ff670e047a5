//! The log format shared by WAL and MANIFEST: records of any length in blocks of 32 KiB.
//!
//! ```text
//! |<-------------- 32 KiB -------------->|   header = crc:u32 length:u16 type:u8 [log number:u32]
//! | header FULL data | header FIRST .... | header LAST data |
//! ```
//! The crc (masked crc32c) covers everything from the type byte on. A record that does not fit in the rest
//! of a block is cut into FIRST, MIDDLE and LAST fragments. Bytes: `docs/format/log.md`.
//! Next: `writer.rs`, then `reader.rs`, where damage is told apart.
#![forbid(unsafe_code)]

mod predecessor;
mod reader;
mod writer;

pub use predecessor::Predecessor;
pub use reader::{Damage, DamageKind, LogReader, ReadOutcome};
pub use writer::{LogOffset, LogWriter};

/// Size of a block, in bytes.
pub const BLOCK_SIZE: usize = 32 << 10;
/// Header of an ordinary fragment, in bytes.
pub const HEADER_LEN: usize = 7;
/// Header of a fragment in a recycled file, in bytes.
pub const RECYCLABLE_HEADER_LEN: usize = 11;

/// The byte that fills the space ahead of a log: wherever a reader looks, it finds the header of another log's
/// record.
pub const FILLER: u8 = kind::FULL + kind::RECYCLABLE;

/// True if a record of type `kind` carries the number of its log after its header's first [`HEADER_LEN`] bytes.
pub fn is_recyclable(kind: u8) -> bool {
    matches!(kind, 5..=8 | kind::RECYCLABLE_TIMESTAMP_SIZE | kind::RECYCLABLE_PREDECESSOR)
}

/// Type bytes of physical records.
pub(crate) mod kind {
    pub const ZERO: u8 = 0;
    pub const FULL: u8 = 1;
    pub const FIRST: u8 = 2;
    pub const MIDDLE: u8 = 3;
    pub const LAST: u8 = 4;
    /// Added to the four above when the header carries the log number.
    pub const RECYCLABLE: u8 = 4;
    pub const SET_COMPRESSION: u8 = 9;
    pub const TIMESTAMP_SIZE: u8 = 10;
    pub const RECYCLABLE_TIMESTAMP_SIZE: u8 = 11;
    pub const PREDECESSOR: u8 = 130;
    pub const RECYCLABLE_PREDECESSOR: u8 = 131;
    /// Readers that do not know a type with this bit skip it.
    pub const IGNORABLE: u8 = 0x80;
}

#[cfg(test)]
mod tests;

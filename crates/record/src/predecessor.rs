//! A log as the log after it names it, so that a reader notices that it is gone or lost its end.
//!
//! ```text
//! number:u64 size:u64 last record:u64        little-endian, in one physical record before the first that holds data
//! ```
//! Source: RocksDB `db/dbformat.h`, `PredecessorWALInfo`.

use outcrop_base::FileNumber;
use outcrop_base::coding::fixed64_at;

/// A log that was closed before another was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub number: FileNumber,
    /// Its length, in bytes.
    pub size_bytes: u64,
    /// The first eight bytes of its last record: the sequence number of its last batch.
    pub last_sequence: u64,
}

/// Length of one in a log, in bytes.
const LEN: usize = 24;

impl Predecessor {
    /// Its bytes in a log.
    pub(crate) fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let fields = [self.number.0, self.size_bytes, self.last_sequence];
        for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// The one that `bytes` are; `None` if they are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Predecessor> {
        (bytes.len() == LEN).then(|| Predecessor {
            number: FileNumber(fixed64_at(bytes, 0)),
            size_bytes: fixed64_at(bytes, 8),
            last_sequence: fixed64_at(bytes, 16),
        })
    }
}

//! The state of a cursor over keys with user-defined timestamps. The cursor's use of it is in `cursor/stamped.rs`.

use outcrop_base::Timestamp;
use outcrop_base::keys::Trailer;

/// The state of a cursor that is about timestamps.
pub struct Stamped {
    /// Newer versions are not seen.
    pub read: Timestamp,
    /// All versions from this on are shown.
    pub start: Option<Timestamp>,
    /// The stored key of the entry shown.
    pub stored: Vec<u8>,
    /// Its sequence number and type.
    pub trailer: Trailer,
    /// The last step went backward.
    pub backward: bool,
}

impl Stamped {
    /// Reads at `read`; with `start`, all versions from that on.
    pub fn new(read: Timestamp, start: Option<Timestamp>) -> Box<Stamped> {
        Box::new(Stamped { read, start, stored: Vec::new(), trailer: Trailer::MIN, backward: false })
    }
}

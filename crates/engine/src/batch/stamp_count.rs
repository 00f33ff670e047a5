//! Which writes of a batch have user-defined timestamps: a count, as the wire form does not tell. The writes: `stamps.rs`.

/// Which writes of a batch have timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// Writes that were given one.
    pub with: u32,
    /// Some of them are still to be set.
    pub unset: bool,
    /// The batch came as bytes: its keys are taken to have one where the column family wants it.
    pub unknown: bool,
}

impl Stamps {
    /// No write has one.
    pub const NONE: Stamps = Stamps { with: 0, unset: false, unknown: false };
    /// Those of a batch that came as bytes.
    pub const UNKNOWN: Stamps = Stamps { with: 0, unset: false, unknown: true };

    /// Those of a batch with the writes of both.
    pub fn and(self, other: Stamps) -> Stamps {
        Stamps {
            with: self.with + other.with,
            unset: self.unset || other.unset,
            unknown: self.unknown || other.unknown,
        }
    }
}

//! How writers are held back: one value that the state, its readers and listeners share.

/// How writers are held back now. The numbers are this engine's own: RocksDB's are 2, 0 and 1.
///
/// ```
/// use outcrop::StallCondition;
/// assert!(StallCondition::Stopped > StallCondition::Delayed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StallCondition {
    /// Not at all.
    Normal = 0,
    /// Slowed to a rate.
    Delayed = 1,
    /// Until a flush or compaction finishes.
    Stopped = 2,
}

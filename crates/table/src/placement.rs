//! [`Placement`]: where a table is in its tree, as far as reads of its file are told apart by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by those who place a table and by its reader, which counts by it. Not in the last level until somebody says so.
///
/// ```
/// use outcrop_table::Placement;
///
/// let placed = Placement::default();
/// let known_to_reader = placed.clone();
/// placed.set_in_last_level(true);
/// assert!(known_to_reader.is_in_last_level());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Placement(Arc<AtomicBool>);

// All relaxed: it orders nothing, and a count may be of the level before.
impl Placement {
    /// The table comes to the last of the levels there are, or to another.
    pub fn set_in_last_level(&self, is_last: bool) {
        if self.is_in_last_level() != is_last {
            self.0.store(is_last, Ordering::Relaxed);
        }
    }

    /// True if it is in the last of the levels there are.
    #[inline]
    pub fn is_in_last_level(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

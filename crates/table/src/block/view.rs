//! A frame, taken apart: the inverse of what `directory` writes.

use super::directory::HEADER_LEN;
use crate::prefixes::Prefixes;
use outcrop_base::coding::fixed32_at;

/// A frame, taken apart.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    frame: &'a [u8],
    /// The entries.
    pub entries: &'a [u8],
    /// Where the restart array is in the frame.
    pub restarts_at: usize,
    /// Number of restart points.
    pub num_restarts: usize,
    /// Number of anchors.
    pub anchors: usize,
    /// Every entry is an anchor.
    pub per_entry: bool,
    /// The bytes that all user keys of the block start with.
    pub common: &'a [u8],
}

/// Bytes of the entries in `frame`.
pub fn entries_len(frame: &[u8]) -> usize {
    View::new(frame).entries.len()
}

impl<'a> View<'a> {
    /// Takes `frame` apart.
    #[inline]
    pub fn new(frame: &'a [u8]) -> View<'a> {
        let field = |index: usize| fixed32_at(frame, index * 4) as usize;
        let (contents_at, entries_len) = (field(0), field(1));
        let (common_at, common_len) = (field(5), field(6));
        View {
            frame,
            entries: &frame[contents_at..contents_at + entries_len],
            restarts_at: contents_at + entries_len,
            num_restarts: field(2),
            anchors: field(3),
            per_entry: field(4) != 0,
            common: &frame[common_at..common_at + common_len],
        }
    }

    /// The prefixes of the anchors.
    #[inline]
    pub fn prefixes(&self) -> Prefixes<'a> {
        Prefixes::new(&self.frame[HEADER_LEN..], self.anchors)
    }

    /// Offset of anchor `index` among the entries.
    #[inline]
    pub fn anchor_offset(&self, index: usize) -> usize {
        fixed32_at(self.frame, HEADER_LEN + self.anchors * 8 + index * 4) as usize
    }

    /// Offset of restart point `index` among the entries.
    pub fn restart(&self, index: usize) -> usize {
        fixed32_at(self.frame, self.restarts_at + index * 4) as usize
    }

    /// The last restart point at or before `at`.
    pub fn restart_before(&self, at: usize) -> usize {
        let (mut low, mut high) = (0, self.num_restarts);
        while low + 1 < high {
            let mid = (low + high) / 2;
            if self.restart(mid) <= at { low = mid } else { high = mid }
        }
        low
    }
}

//! Lines that searches and scans ask memory for ahead of reading them. Nothing here changes an answer.

use super::view::View;
use crate::prefixes::{Place, place};
use outcrop_env::prefetch;

/// Lines that a search in an 8 KiB block of large entries touches first: header, directory, and the first key, for what all
/// keys share.
pub(super) const DIRECTORY_LINES: usize = 5;
/// Lines of an entry worth having before it is read: the processor fetches the rest in order.
const ENTRY_LINES: usize = 3;
/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// Lines of an entry that are asked for before its value is; the processor sees the pattern in a longer one.
const WHOLE_LINES: usize = 16;
/// Entries between one that is decoded and one that is fetched meanwhile.
pub const AHEAD: usize = 3;

/// Asks for the start of a frame.
#[inline]
pub fn prefetch_directory(frame: &[u8]) {
    for line in frame.chunks(LINE).take(DIRECTORY_LINES) {
        prefetch(line.as_ptr());
    }
}

/// Asks for the entry that [`super::get`] would look at.
#[inline]
pub fn prefetch_entry(frame: &[u8], user_key: &[u8]) {
    let view = View::new(frame);
    if let Some(first) = first_look(&view, user_key) {
        let entry = view.entries.get(view.anchor_offset(first)..).unwrap_or_default();
        for line in entry.chunks(LINE).take(ENTRY_LINES) {
            prefetch(line.as_ptr());
        }
    }
}

/// As [`prefetch_entry`], and for the keys of those that a scan from there looks at next; `whole` asks for the first two with
/// their values.
#[inline]
pub fn prefetch_entries_from(frame: &[u8], user_key: &[u8], whole: bool) {
    let view = View::new(frame);
    if let Some(first) = first_look(&view, user_key) {
        for number in first..(first + 1 + AHEAD).min(view.anchors) {
            fetch_key(view.entries.as_ptr().wrapping_add(view.anchor_offset(number)), LINE / 2);
        }
        if whole {
            let start = view.anchor_offset(first);
            let end =
                if first + 2 < view.anchors { view.anchor_offset(first + 2) } else { view.entries.len() };
            fetch_value(view.entries.as_ptr().wrapping_add(start), end - start);
        }
    }
}

/// Asks for the key of the entry at `entry`, which may lie across two lines. Wherever that is: nothing is read.
#[inline]
pub(super) fn fetch_key(entry: *const u8, key_end: usize) {
    prefetch(entry);
    prefetch(entry.wrapping_add(key_end));
}

/// Asks for what follows the first line of an entry of `len` bytes: a walk over entries reads their values, and would wait for
/// each of them.
#[inline]
pub(super) fn fetch_value(entry: *const u8, len: usize) {
    for line in 1..(len / LINE + 1).min(WHOLE_LINES) {
        prefetch(entry.wrapping_add(line * LINE));
    }
}

/// The first entry that a search for `user_key` looks at, if the directory tells.
#[inline]
fn first_look(view: &View<'_>, user_key: &[u8]) -> Option<usize> {
    if !view.per_entry {
        return None;
    }
    let Place::Among(number) = place(view.common, user_key) else { return None };
    Some(view.prefixes().equal_range(number).start).filter(|&first| first < view.anchors)
}

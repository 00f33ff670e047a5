//! Looking for one key in a block.

use super::cursor::Cursor;
use super::entry::decode_entry;
use super::view::View;
use crate::prefixes::{Place, place};
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Result, SeqNum, ValueType};
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

/// Where a lookup in one block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// The visitor broke off, or a larger key was met: no other block matters.
    Decided,
    /// The block ended first.
    BlockEnded,
}

/// Passes the versions of `user_key` in the block at or below `snapshot` to `visit`, newest first.
///
/// # Errors
/// Corruption if the block does not decode.
#[inline]
pub fn get(
    frame: &[u8],
    comparator: &Comparator,
    user_key: &[u8],
    snapshot: SeqNum,
    visit: &mut impl FnMut(Trailer, &[u8]) -> ControlFlow<()>,
) -> Result<Searched> {
    let view = View::new(frame);
    if view.per_entry {
        let number = match place(view.common, user_key) {
            Place::Before => return Ok(Searched::Decided),
            Place::After => return Ok(Searched::BlockEnded),
            Place::Among(number) => number,
        };
        let range = view.prefixes().equal_range(number);
        // Long runs of ties are searched by whole keys instead.
        if range.len() <= 4
            && let Some(searched) = get_among_ties(&view, user_key, snapshot, range, visit)
        {
            return Ok(searched);
        }
    }
    get_by_cursor(frame, comparator, user_key, snapshot, visit)
}

/// Looks at the entries whose prefix ties with the key's. `None` if one of them cannot be compared without
/// decoding its neighbours.
#[inline]
fn get_among_ties(
    view: &View<'_>,
    user_key: &[u8],
    snapshot: SeqNum,
    range: Range<usize>,
    visit: &mut impl FnMut(Trailer, &[u8]) -> ControlFlow<()>,
) -> Option<Searched> {
    let known = view.common.len() + 8;
    let last = range.end == view.anchors;
    for index in range.clone() {
        let entry = decode_entry(view.entries, view.anchor_offset(index))?;
        // Known to agree with the key: what the tie covers. The suffix must hold the rest, and the footer.
        let suffix_len = entry.suffix.1 - entry.suffix.0;
        if entry.shared > known.min(user_key.len()) || suffix_len < Trailer::LEN {
            return None;
        }
    }
    for index in range {
        let entry = decode_entry(view.entries, view.anchor_offset(index))?;
        let suffix = &view.entries[entry.suffix.0..entry.suffix.1];
        let (suffix, trailer) = split(suffix);
        let key_len = entry.shared + suffix.len();
        if key_len != user_key.len() {
            // A tie between keys of which one is the other, cut or padded with zeros: not the key.
            continue;
        }
        if suffix != &user_key[entry.shared..] {
            continue;
        }
        if trailer.seq() <= snapshot && visit(trailer, &view.entries[entry.value.0..entry.value.1]).is_break()
        {
            return Some(Searched::Decided);
        }
    }
    Some(if last { Searched::BlockEnded } else { Searched::Decided })
}

/// Tells `mark` where each entry lies among the entries that [`get`] has looked at for a lookup that ends with the first that is no
/// merge operand.
#[cold]
pub fn each_looked_at(
    frame: &[u8],
    comparator: &Comparator,
    user_key: &[u8],
    snapshot: SeqNum,
    mark: &mut dyn FnMut(Range<usize>),
) {
    let mut cursor = Cursor::new(frame);
    cursor.seek(comparator, user_key, Trailer::as_of(snapshot));
    while cursor.valid() {
        mark(cursor.entry_range());
        let (found, trailer) = split(cursor.key());
        if comparator.compare(found, user_key) != Ordering::Equal
            || trailer.value_type() != Some(ValueType::Merge)
        {
            return;
        }
        cursor.next();
    }
}

fn get_by_cursor(
    frame: &[u8],
    comparator: &Comparator,
    user_key: &[u8],
    snapshot: SeqNum,
    visit: &mut impl FnMut(Trailer, &[u8]) -> ControlFlow<()>,
) -> Result<Searched> {
    let mut cursor = Cursor::new(frame);
    cursor.seek(comparator, user_key, Trailer::as_of(snapshot));
    while cursor.valid() {
        let (found, trailer) = split(cursor.key());
        if comparator.compare(found, user_key) != Ordering::Equal || visit(trailer, cursor.value()).is_break()
        {
            return Ok(Searched::Decided);
        }
        cursor.next();
    }
    cursor.status().map(|()| Searched::BlockEnded)
}

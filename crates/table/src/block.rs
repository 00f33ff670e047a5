//! A data block in memory: its contents behind a directory that finds entries without walking.
//!
//! ```text
//! frame = header: 10 x u32 | prefix: u64 ... | entry offset: u32 ... | contents as uncompressed
//! ```
//! *Anchors* are the entries the directory knows: every entry if entries are large, the restart points if they
//! are small. For each anchor it has the 8 key bytes behind what all keys of the block share, and the entry's
//! offset. With values of 400 bytes this saves the walk over up to 16 entries, each of which is a cache miss.
//!
//! The directory is built once, when the block is loaded and its checksum was verified; the walk that builds
//! it also checks that every entry lies within the block, and that keys ascend: searches in a block whose keys do
//! not would miss rows without a word. Keys under an order other than bytewise have no prefixes: their blocks are
//! searched by restart keys. Under an order of the application they are not compared, which takes calls.
//!
//! Invariant: decoding never reads outside the frame and never panics, whatever the contents are.

use crate::block_builder::shared_prefix;
use crate::prefixes::{Place, Prefixes, place};
use outcrop_base::coding::{fixed32_at, get_varint32};
use outcrop_base::keys::{FOOTER_LEN, packed_seq, prefix_u64, split};
use outcrop_base::{Comparator, Error, Result, SeqNum, ValueType};
use outcrop_env::prefetch;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Deref, Range};

/// Bytes of the frame's header.
const HEADER_LEN: usize = 40;
/// Entries at least this large on average each get an anchor: 12 bytes are then under a fifth.
const ENTRY_BYTES_PER_ANCHOR: usize = 64;

/// Feature bits of a block's last word.
pub const HASH_INDEX_BIT: u32 = 1 << 31;
const RESERVED_BIT: u32 = 1 << 30;
const UNIFORM_BIT: u32 = 1 << 29;
pub const SEPARATED_BIT: u32 = 1 << 28;

/// The last word of a block: number of restart points and feature bits.
#[inline]
pub fn packed_word(block: &[u8]) -> Option<u32> {
    block.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
}

/// One decoded entry header.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Bytes of the key shared with the entry before.
    pub shared: usize,
    /// Where the rest of the key is.
    pub suffix: (usize, usize),
    /// Where the value is.
    pub value: (usize, usize),
}

/// Decodes the entry at `at` of `entries`; `None` if it does not fit.
#[inline]
pub fn decode_entry(entries: &[u8], at: usize) -> Option<Entry> {
    let bytes = entries.get(at..)?;
    let (shared, non_shared, value_len, header) = match bytes {
        [a, b, c, ..] if (a | b | c) < 0x80 => (u32::from(*a), u32::from(*b), u32::from(*c), 3),
        [a, b, c, d, ..] if (a | b | d) < 0x80 => {
            (u32::from(*a), u32::from(*b), u32::from(*c & 0x7F) | u32::from(*d) << 7, 4)
        }
        _ => {
            let (shared, n1) = get_varint32(bytes)?;
            let (non_shared, n2) = get_varint32(&bytes[n1..])?;
            let (value_len, n3) = get_varint32(&bytes[n1 + n2..])?;
            (shared, non_shared, value_len, n1 + n2 + n3)
        }
    };
    let suffix = at + header;
    let value = suffix.checked_add(non_shared as usize)?;
    let end = value.checked_add(value_len as usize)?;
    if end > entries.len() {
        return None;
    }
    Some(Entry { shared: shared as usize, suffix: (suffix, value), value: (value, end) })
}

/// The parts of a block's contents.
pub struct Contents<'a> {
    /// The entries.
    pub entries: &'a [u8],
    /// The restart array.
    pub restarts: &'a [u8],
}

impl<'a> Contents<'a> {
    /// Takes a block apart.
    ///
    /// # Errors
    /// Corruption, or NotSupported for a block feature this reader lacks.
    pub fn parse(block: &'a [u8]) -> Result<Contents<'a>> {
        let broken = |what: &str| Error::corruption(format!("block of {} bytes: {what}", block.len()));
        let Some(packed_at) = block.len().checked_sub(4) else { return Err(broken("too short")) };
        let packed = fixed32_at(block, packed_at);
        if packed & RESERVED_BIT != 0 {
            return Err(broken("a reserved feature bit is set"));
        }
        if packed & SEPARATED_BIT != 0 {
            return Err(broken("keys and values apart, which only data blocks have"));
        }
        let count = (packed & !(HASH_INDEX_BIT | UNIFORM_BIT)) as usize;
        let mut end = packed_at;
        if packed & HASH_INDEX_BIT != 0 {
            // Bucket bytes and their number stand behind the restart array; a search needs neither.
            let at = end.checked_sub(2).ok_or_else(|| broken("no room for its hash index"))?;
            let buckets = usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
            end = at.checked_sub(buckets).ok_or_else(|| broken("no room for its hash index"))?;
        }
        let restarts_at = count
            .checked_mul(4)
            .and_then(|len| end.checked_sub(len))
            .ok_or_else(|| broken("no room for its restart points"))?;
        if count == 0 {
            return Err(broken("no restart point"));
        }
        // Going back looks for the last restart point before an entry: there must be one.
        if restarts_at > 0 && fixed32_at(block, restarts_at) != 0 {
            return Err(broken("its first entry is no restart point"));
        }
        Ok(Contents { entries: &block[..restarts_at], restarts: &block[restarts_at..end] })
    }

    /// Number of restart points.
    pub fn num_restarts(&self) -> usize {
        self.restarts.len() / 4
    }

    /// Offset of restart point `index`.
    pub fn restart(&self, index: usize) -> usize {
        fixed32_at(self.restarts, index * 4) as usize
    }
}

/// The directory of one block, ready to be written in front of it.
#[derive(Default)]
pub struct Directory {
    /// (prefix, offset) of every entry.
    entries: Vec<(u64, u32)>,
    /// Which of them are restart points.
    restarts: Vec<u32>,
    common: (usize, usize),
    per_entry: bool,
    key: Vec<u8>,
    /// A key that must be compared as a whole.
    next_key: Vec<u8>,
}

impl Directory {
    /// Walks over `block`, checking every entry, and builds its directory.
    ///
    /// # Errors
    /// Corruption saying what is wrong with the block.
    pub fn build(&mut self, block: &[u8], comparator: &Comparator) -> Result<()> {
        let contents = Contents::parse(block)?;
        let broken =
            |at: usize, what: &str| Error::corruption(format!("entry at byte {at} of a block: {what}"));
        self.entries.clear();
        self.restarts.clear();
        self.common = self.common_prefix(&contents).ok_or_else(|| broken(0, "its keys do not decode"))?;
        let (bytewise, unordered) = (comparator.is_bytewise(), comparator.is_user());
        self.key.clear();
        let (mut at, mut next_restart) = (0, 0);
        while at < contents.entries.len() {
            let entry =
                decode_entry(contents.entries, at).ok_or_else(|| broken(at, "it runs past the end"))?;
            if entry.shared > self.key.len() {
                return Err(broken(at, "it shares more than the key before it has"));
            }
            if next_restart < contents.num_restarts() && contents.restart(next_restart) == at {
                if entry.shared != 0 {
                    return Err(broken(at, "a restart point shares a prefix"));
                }
                self.restarts.push(self.entries.len() as u32);
                next_restart += 1;
            }
            let suffix = &contents.entries[entry.suffix.0..entry.suffix.1];
            // A writer shares as much as it can: almost always the first byte behind decides.
            let ascends = match (self.key.get(entry.shared), suffix.first()) {
                (Some(before), Some(byte))
                    if before != byte
                        && self.key.len() > entry.shared + FOOTER_LEN
                        && suffix.len() > FOOTER_LEN =>
                {
                    (before < byte) == bytewise
                }
                _ => self.ascends(comparator, entry.shared, suffix),
            };
            if !ascends && !unordered {
                return Err(broken(at, "its key is not larger than the one before"));
            }
            self.key.truncate(entry.shared);
            self.key.extend_from_slice(suffix);
            if self.key.len() < FOOTER_LEN
                || ValueType::from_byte(self.key[self.key.len() - FOOTER_LEN]).is_none()
            {
                return Err(broken(at, "its key is no internal key"));
            }
            let user_key = &self.key[..self.key.len() - FOOTER_LEN];
            let prefix = if bytewise { prefix_u64(user_key.get(self.common.1..).unwrap_or(&[])) } else { 0 };
            self.entries.push((prefix, at as u32));
            at = entry.value.1;
        }
        if next_restart != contents.num_restarts() && !self.entries.is_empty() {
            return Err(broken(at, "restart points do not match the entries"));
        }
        self.per_entry = bytewise && contents.entries.len() >= ENTRY_BYTES_PER_ANCHOR * self.entries.len();
        if !bytewise {
            self.restarts.clear();
        }
        Ok(())
    }

    /// True if the key of `shared` bytes of the one before and `suffix` is larger than it, or no internal key.
    #[cold]
    fn ascends(&mut self, comparator: &Comparator, shared: usize, suffix: &[u8]) -> bool {
        if self.key.is_empty() || shared + suffix.len() < FOOTER_LEN || comparator.is_user() {
            return true;
        }
        let rest = &self.key[shared..];
        if rest.len() >= FOOTER_LEN && suffix.len() >= FOOTER_LEN {
            return comparator.compare_parts(split(rest), split(suffix)) == Ordering::Less;
        }
        self.next_key.clear();
        self.next_key.extend_from_slice(&self.key[..shared]);
        self.next_key.extend_from_slice(suffix);
        comparator.compare_internal(&self.key, &self.next_key) == Ordering::Less
    }

    /// (offset of the first key in the block, length of what all user keys start with).
    fn common_prefix(&mut self, contents: &Contents<'_>) -> Option<(usize, usize)> {
        if contents.entries.is_empty() {
            return Some((0, 0));
        }
        let first = decode_entry(contents.entries, 0)?;
        self.key.clear();
        let mut at = contents.restart(contents.num_restarts() - 1);
        while at < contents.entries.len() {
            let entry = decode_entry(contents.entries, at)?;
            if entry.shared > self.key.len() {
                return None;
            }
            self.key.truncate(entry.shared);
            self.key.extend_from_slice(&contents.entries[entry.suffix.0..entry.suffix.1]);
            at = entry.value.1;
        }
        let first_key = &contents.entries[first.suffix.0..first.suffix.1];
        let first_user_key = &first_key[..first_key.len().checked_sub(FOOTER_LEN)?];
        let last_user_key = &self.key[..self.key.len().checked_sub(FOOTER_LEN)?];
        Some((first.suffix.0, shared_prefix(first_user_key, last_user_key)))
    }

    fn anchors(&self) -> usize {
        if self.per_entry { self.entries.len() } else { self.restarts.len() }
    }

    /// Bytes of the frame for `block`.
    pub fn frame_len(&self, block: &[u8]) -> usize {
        HEADER_LEN + self.anchors() * 12 + block.len()
    }

    /// Writes the frame.
    pub fn write_frame(&self, block: &[u8], frame: &mut [u8]) {
        let anchors = self.anchors();
        let offsets_at = HEADER_LEN + anchors * 8;
        let contents_at = offsets_at + anchors * 4;
        write_header(
            frame,
            block,
            contents_at,
            Anchors {
                count: anchors,
                per_entry: self.per_entry,
                common: (contents_at + self.common.0, self.common.1),
            },
        );
        let mut put = |index: usize, (prefix, offset): (u64, u32)| {
            let at = HEADER_LEN + index * 8;
            frame[at..at + 8].copy_from_slice(&prefix.to_le_bytes());
            let at = offsets_at + index * 4;
            frame[at..at + 4].copy_from_slice(&offset.to_le_bytes());
        };
        if self.per_entry {
            self.entries.iter().enumerate().for_each(|(index, entry)| put(index, *entry));
        } else {
            self.restarts
                .iter()
                .enumerate()
                .for_each(|(index, &entry)| put(index, self.entries[entry as usize]));
        }
        frame[contents_at..contents_at + block.len()].copy_from_slice(block);
    }
}

struct Anchors {
    count: usize,
    per_entry: bool,
    common: (usize, usize),
}

fn write_header(frame: &mut [u8], block: &[u8], contents_at: usize, anchors: Anchors) {
    let contents = Contents::parse(block).expect("checked by the caller");
    let fields = [
        contents_at,
        contents.entries.len(),
        contents.num_restarts(),
        anchors.count,
        usize::from(anchors.per_entry),
        anchors.common.0,
        anchors.common.1,
    ];
    for (index, field) in fields.into_iter().enumerate() {
        frame[index * 4..index * 4 + 4].copy_from_slice(&(field as u32).to_le_bytes());
    }
}

/// Makes `frame` a frame of `block` without anchors, for a block that is only walked over.
pub fn write_plain_frame(block: &[u8], frame: &mut Vec<u8>) -> Result<()> {
    Contents::parse(block)?;
    frame.clear();
    frame.resize(HEADER_LEN, 0);
    frame.extend_from_slice(block);
    write_header(frame, block, HEADER_LEN, Anchors { count: 0, per_entry: false, common: (0, 0) });
    Ok(())
}

/// A frame, taken apart.
#[derive(Clone, Copy)]
struct View<'a> {
    frame: &'a [u8],
    entries: &'a [u8],
    restarts_at: usize,
    num_restarts: usize,
    anchors: usize,
    per_entry: bool,
    common: &'a [u8],
}

impl<'a> View<'a> {
    #[inline]
    fn new(frame: &'a [u8]) -> View<'a> {
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

    #[inline]
    fn prefixes(&self) -> Prefixes<'a> {
        Prefixes::new(&self.frame[HEADER_LEN..], self.anchors)
    }

    #[inline]
    fn anchor_offset(&self, index: usize) -> usize {
        fixed32_at(self.frame, HEADER_LEN + self.anchors * 8 + index * 4) as usize
    }

    fn restart(&self, index: usize) -> usize {
        fixed32_at(self.frame, self.restarts_at + index * 4) as usize
    }

    /// The last restart point at or before `at`.
    fn restart_before(&self, at: usize) -> usize {
        let (mut low, mut high) = (0, self.num_restarts);
        while low + 1 < high {
            let mid = (low + high) / 2;
            if self.restart(mid) <= at { low = mid } else { high = mid }
        }
        low
    }
}

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
    visit: &mut impl FnMut(u64, &[u8]) -> ControlFlow<()>,
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

/// Lines that a search in an 8 KiB block of large entries touches first: header, directory, and the first key, for what all
/// keys share.
const DIRECTORY_LINES: usize = 5;
/// Lines of an entry worth having before it is read: the processor fetches the rest in order.
const ENTRY_LINES: usize = 3;
const LINE: usize = 64;
/// Lines of an entry that are asked for before its value is; the processor sees the pattern in a longer one.
const WHOLE_LINES: usize = 16;
/// Entries between one that is decoded and one that is fetched meanwhile.
pub(crate) const AHEAD: usize = 3;

/// Asks for the start of a frame.
#[inline]
pub fn prefetch_directory(frame: &[u8]) {
    for line in frame.chunks(LINE).take(DIRECTORY_LINES) {
        prefetch(line.as_ptr());
    }
}

/// Asks for the entry that [`get`] would look at.
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
fn fetch_key(entry: *const u8, key_end: usize) {
    prefetch(entry);
    prefetch(entry.wrapping_add(key_end));
}

/// Asks for what follows the first line of an entry of `len` bytes: who walks over entries reads their values, and would wait
/// for each of them.
#[inline]
fn fetch_value(entry: *const u8, len: usize) {
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

/// Looks at the entries whose prefix ties with the key's. `None` if one of them cannot be compared without
/// decoding its neighbours.
#[inline]
fn get_among_ties(
    view: &View<'_>,
    user_key: &[u8],
    snapshot: SeqNum,
    range: Range<usize>,
    visit: &mut impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Option<Searched> {
    let known = view.common.len() + 8;
    let last = range.end == view.anchors;
    for index in range.clone() {
        let entry = decode_entry(view.entries, view.anchor_offset(index))?;
        // Known to agree with the key: what the tie covers. The suffix must hold the rest, and the footer.
        let suffix_len = entry.suffix.1 - entry.suffix.0;
        if entry.shared > known.min(user_key.len()) || suffix_len < FOOTER_LEN {
            return None;
        }
    }
    for index in range {
        let entry = decode_entry(view.entries, view.anchor_offset(index))?;
        let suffix = &view.entries[entry.suffix.0..entry.suffix.1];
        let (suffix, packed) = split(suffix);
        let key_len = entry.shared + suffix.len();
        if key_len != user_key.len() {
            // A tie between keys of which one is the other, cut or padded with zeros: not the key.
            continue;
        }
        if suffix != &user_key[entry.shared..] {
            continue;
        }
        if packed_seq(packed) <= snapshot
            && visit(packed, &view.entries[entry.value.0..entry.value.1]).is_break()
        {
            return Some(Searched::Decided);
        }
    }
    Some(if last { Searched::BlockEnded } else { Searched::Decided })
}

fn get_by_cursor(
    frame: &[u8],
    comparator: &Comparator,
    user_key: &[u8],
    snapshot: SeqNum,
    visit: &mut impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<Searched> {
    let mut cursor = Cursor::new(frame);
    cursor.seek(comparator, user_key, (snapshot.0 << 8) | 0xFF);
    while cursor.valid() {
        let (found, packed) = split(cursor.key());
        if comparator.compare(found, user_key) != Ordering::Equal || visit(packed, cursor.value()).is_break()
        {
            return Ok(Searched::Decided);
        }
        cursor.next();
    }
    cursor.status().map(|()| Searched::BlockEnded)
}

/// A position in a block.
pub struct Cursor<F> {
    frame: F,
    /// Number of the current entry; known only if every entry is an anchor.
    index: usize,
    /// How many entries there are, if every entry is an anchor.
    count: Option<usize>,
    /// Offset of the current entry; the end of the entries if there is none.
    at: usize,
    next_at: usize,
    /// Where the entries are in the frame.
    entries: (usize, usize),
    /// Where the value is in the frame.
    value: (usize, usize),
    key: Vec<u8>,
    valid: bool,
    corrupt: bool,
}

impl<F: Deref<Target = [u8]>> Cursor<F> {
    /// A cursor over `frame`. Not positioned.
    pub fn new(frame: F) -> Cursor<F> {
        Cursor::with_key_buffer(frame, Vec::new())
    }

    /// As [`Cursor::new`], building keys in `key`.
    pub fn with_key_buffer(frame: F, key: Vec<u8>) -> Cursor<F> {
        let view = View::new(&frame);
        let entries = (view.restarts_at - view.entries.len(), view.restarts_at);
        let count = view.per_entry.then_some(view.anchors);
        Cursor {
            frame,
            index: 0,
            count,
            at: 0,
            next_at: 0,
            entries,
            value: (0, 0),
            key,
            valid: false,
            corrupt: false,
        }
    }

    /// The frame and the key buffer, for reuse.
    pub fn into_parts(self) -> (F, Vec<u8>) {
        (self.frame, self.key)
    }

    /// The frame.
    pub fn frame(&self) -> &F {
        &self.frame
    }

    /// True if positioned on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// Corruption if an entry did not decode.
    pub fn status(&self) -> Result<()> {
        if self.corrupt {
            return Err(Error::corruption(format!("entry at byte {} of a block does not decode", self.at)));
        }
        Ok(())
    }

    /// The internal key. Meaningful while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value. Meaningful while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.frame[self.value.0..self.value.1]
    }

    /// To the first entry.
    pub fn seek_to_first(&mut self) {
        self.index = 0;
        self.next_at = 0;
        self.key.clear();
        self.decode_next();
    }

    /// To the last entry.
    pub fn seek_to_last(&mut self) {
        let view = View::new(&self.frame);
        if view.entries.is_empty() {
            self.valid = false;
            return;
        }
        if view.per_entry {
            let last = view.anchors - 1;
            return self.jump(last);
        }
        let (restart, end) = (view.restart(view.num_restarts - 1), view.entries.len());
        self.walk(restart, |cursor| cursor.next_at < end);
    }

    /// To the next entry. Must be valid.
    ///
    /// Asks for the key of a later one, if entries go on as long as the last, and for the value of the one after: where each
    /// takes several lines the processor does not see the pattern, and a scan would wait for memory once for each.
    #[inline]
    pub fn next(&mut self) {
        self.index += 1;
        let step = self.next_at - self.at;
        if step >= LINE {
            fetch_key(self.address(self.next_at + AHEAD * step), self.key_end());
        }
        self.decode_next();
        fetch_value(self.address(self.next_at), self.next_at - self.at);
    }

    /// Where the entry at `offset` is, if there is one.
    #[inline]
    fn address(&self, offset: usize) -> *const u8 {
        self.frame.as_ptr().wrapping_add(self.entries.0 + offset)
    }

    /// Bytes from the start of the current entry to the last one of its key.
    #[inline]
    fn key_end(&self) -> usize {
        self.value.0.saturating_sub(self.entries.0 + self.at + 1)
    }

    /// Where a scan looks first in the frame of a block whose entries are as long as the current one, which is the first of
    /// this block.
    #[inline]
    pub fn prefetch_offsets_forward(&self) -> [usize; 3 + 2 * AHEAD] {
        let (step, key_end) = (self.next_at.saturating_sub(self.at), self.key_end());
        std::array::from_fn(|look| match look.checked_sub(1) {
            None => 0,
            Some(look) => self.entries.0 + look / 2 * step + look % 2 * key_end,
        })
    }

    /// Where a walk backward looks first in the frame of a block whose entries are where those of this one are.
    #[inline]
    pub fn prefetch_offsets_backward(&self) -> [usize; DIRECTORY_LINES + 4] {
        let view = View::new(&self.frame);
        let key_end = self.key_end();
        std::array::from_fn(|look| match look.checked_sub(DIRECTORY_LINES) {
            None => look * LINE,
            Some(look) => {
                let number = view.anchors.saturating_sub(1 + look / 2);
                self.entries.0 + view.anchor_offset(number) + look % 2 * key_end
            }
        })
    }

    /// Entries in front of the current one and behind it, if that is known.
    #[inline]
    pub fn around(&self) -> Option<(usize, usize)> {
        self.count.map(|count| (self.index, count.saturating_sub(self.index + 1)))
    }

    /// Asks for the keys of the last `entries` entries before the current one.
    #[inline]
    pub fn fetch_before(&self, entries: usize) {
        if self.valid && self.count.is_some() {
            let view = View::new(&self.frame);
            for number in self.index.saturating_sub(entries)..self.index {
                fetch_key(self.address(view.anchor_offset(number)), self.key_end());
            }
        }
    }

    /// To the previous entry. Must be valid.
    pub fn prev(&mut self) {
        if self.at == 0 {
            self.valid = false;
            return;
        }
        let view = View::new(&self.frame);
        if view.per_entry {
            let before = self.index - 1;
            if before >= AHEAD {
                fetch_key(self.address(view.anchor_offset(before - AHEAD)), self.key_end());
            }
            if before >= 1 {
                let start = view.anchor_offset(before - 1);
                fetch_value(self.address(start), view.anchor_offset(before) - start);
            }
            return self.jump(before);
        }
        let end = self.at;
        let restart = view.restart(view.restart_before(end - 1));
        self.walk(restart, |cursor| cursor.next_at < end);
    }

    /// To the first entry at or after (`user_key`, `packed`).
    pub fn seek(&mut self, comparator: &Comparator, user_key: &[u8], packed: u64) {
        let view = View::new(&self.frame);
        let target = (user_key, packed);
        if view.anchors == 0 {
            return self.seek_by_restarts(comparator, target, 0..view.num_restarts);
        }
        let number = match place(view.common, user_key) {
            Place::Before => return self.seek_to_first(),
            Place::After => {
                self.valid = false;
                self.at = view.entries.len();
                return;
            }
            Place::Among(number) => number,
        };
        let range = view.prefixes().equal_range(number);
        let anchors = view.anchors;
        if !view.per_entry {
            return self.seek_by_restarts(comparator, target, range);
        }
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let mid = (low + high) / 2;
            self.jump(mid);
            if !self.valid {
                return;
            }
            if self.is_before(comparator, target) { low = mid + 1 } else { high = mid }
        }
        if low == anchors {
            self.valid = false;
            self.at = View::new(&self.frame).entries.len();
        } else if !(self.valid && self.index == low) {
            self.jump(low);
        }
    }

    /// Finds the place among restart points `range` by their keys; those before it are known to be smaller
    /// than the target, those behind it to be larger. Then walks.
    fn seek_by_restarts(&mut self, comparator: &Comparator, target: (&[u8], u64), range: Range<usize>) {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let mid = (low + high) / 2;
            self.walk(View::new(&self.frame).restart(mid), |_| false);
            if !self.valid {
                return;
            }
            if self.is_before(comparator, target) { low = mid + 1 } else { high = mid }
        }
        let start = View::new(&self.frame).restart(low.saturating_sub(1));
        self.walk(start, |_| false);
        while self.valid && self.is_before(comparator, target) {
            self.next();
        }
    }

    #[inline]
    fn is_before(&self, comparator: &Comparator, target: (&[u8], u64)) -> bool {
        self.key.len() >= FOOTER_LEN && comparator.compare_parts(split(&self.key), target) == Ordering::Less
    }

    /// From the restart point at `restart`, goes on while `more` says so.
    fn walk(&mut self, restart: usize, more: impl Fn(&Self) -> bool) {
        self.next_at = restart;
        self.key.clear();
        self.decode_next();
        while self.valid && more(self) {
            self.decode_next();
        }
    }

    /// To entry number `index`; every entry is an anchor.
    #[inline]
    fn jump(&mut self, index: usize) {
        let view = View::new(&self.frame);
        let at = view.anchor_offset(index);
        let Some(entry) = decode_entry(view.entries, at) else { return self.fail(at) };
        let known = view.common.len() + 8;
        let suffix = &view.entries[entry.suffix.0..entry.suffix.1];
        let within_user_key = suffix.len() >= FOOTER_LEN;
        if entry.shared == 0 || (entry.shared <= known && within_user_key) {
            let number = view.prefixes().get(index).to_be_bytes();
            self.key.clear();
            self.key.extend_from_slice(&view.common[..entry.shared.min(view.common.len())]);
            self.key.extend_from_slice(&number[..entry.shared.saturating_sub(view.common.len())]);
            self.key.extend_from_slice(suffix);
            self.at = at;
            self.next_at = entry.value.1;
            self.value = (self.entries.0 + entry.value.0, self.entries.0 + entry.value.1);
            self.valid = self.key.len() >= FOOTER_LEN;
            self.corrupt = !self.valid;
        } else {
            let restart = view.restart(view.restart_before(at));
            self.walk(restart, |cursor| cursor.at < at);
        }
        self.index = index;
    }

    /// Decodes the entry at `next_at`, whose predecessor's key is in `key`.
    #[inline]
    fn decode_next(&mut self) {
        let entries = &self.frame[self.entries.0..self.entries.1];
        let at = self.next_at;
        if at >= entries.len() {
            self.at = entries.len();
            self.valid = false;
            return;
        }
        match decode_entry(entries, at) {
            Some(entry) if entry.shared <= self.key.len() => {
                self.key.truncate(entry.shared);
                self.key.extend_from_slice(&entries[entry.suffix.0..entry.suffix.1]);
                self.at = at;
                self.next_at = entry.value.1;
                self.value = (self.entries.0 + entry.value.0, self.entries.0 + entry.value.1);
                self.valid = self.key.len() >= FOOTER_LEN;
                self.corrupt = !self.valid;
            }
            _ => self.fail(at),
        }
    }

    #[cold]
    fn fail(&mut self, at: usize) {
        self.at = at;
        self.valid = false;
        self.corrupt = true;
    }
}

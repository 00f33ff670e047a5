//! Building the directory of a block, and writing the frame that it begins.

use super::entry::{Contents, decode_entry};
use crate::block_builder::shared_prefix;
use outcrop_base::keys::{Trailer, prefix_u64, split};
use outcrop_base::{Comparator, Error, Result, ValueType};
use std::cmp::Ordering;

/// Bytes of the frame's header.
pub(super) const HEADER_LEN: usize = 40;
/// Entries at least this large on average each get an anchor: 12 bytes are then under a fifth.
const ENTRY_BYTES_PER_ANCHOR: usize = 64;

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
            // A writer shares as much as it can: almost always the first byte after that decides.
            let ascends = match (self.key.get(entry.shared), suffix.first()) {
                (Some(before), Some(byte))
                    if before != byte
                        && self.key.len() > entry.shared + Trailer::LEN
                        && suffix.len() > Trailer::LEN =>
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
            if self.key.len() < Trailer::LEN
                || ValueType::from_byte(self.key[self.key.len() - Trailer::LEN]).is_none()
            {
                return Err(broken(at, "its key is no internal key"));
            }
            let user_key = &self.key[..self.key.len() - Trailer::LEN];
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
        if self.key.is_empty() || shared + suffix.len() < Trailer::LEN || comparator.is_user() {
            return true;
        }
        let rest = &self.key[shared..];
        if rest.len() >= Trailer::LEN && suffix.len() >= Trailer::LEN {
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
        let first_user_key = &first_key[..first_key.len().checked_sub(Trailer::LEN)?];
        let last_user_key = &self.key[..self.key.len().checked_sub(Trailer::LEN)?];
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

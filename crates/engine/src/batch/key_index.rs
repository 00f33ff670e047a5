//! The records of a batch in the order of their keys.
//!
//! ```text
//! batch:  | put b | put a | merge b | ...        one entry per record: where it starts, where its key is
//! index:  [ a@9 | b@17 b@1 ] [ ... ]             ascending by key, newest record of a key first
//! ```
//! Entries are kept in chunks, so that an insertion moves one chunk's entries and not all. Keys stay in the batch: whoever
//! asks passes its bytes.
//!
//! Invariant: no chunk is empty, and none has more than [`CHUNK`] entries.

use outcrop_base::Comparator;
use std::cmp::Ordering;

/// Entries of a chunk before it is divided.
const CHUNK: usize = 128;

/// Where a record of the batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it starts, in bytes from the start of the batch.
    pub offset: usize,
    /// Bytes from there to its key.
    key_skip: u32,
    key_len: u32,
}

impl Entry {
    /// The record at `offset`, whose key, without a timestamp, is `key`, a slice of `rep`.
    pub fn new(rep: &[u8], offset: usize, key: &[u8]) -> Entry {
        let start = key.as_ptr() as usize - rep.as_ptr() as usize;
        Entry { offset, key_skip: (start - offset) as u32, key_len: key.len() as u32 }
    }

    /// Its key in the batch `rep`, without a timestamp.
    pub fn key<'r>(&self, rep: &'r [u8]) -> &'r [u8] {
        let start = self.offset + self.key_skip as usize;
        &rep[start..start + self.key_len as usize]
    }
}

/// The entries of one column family.
pub struct KeyIndex {
    /// Order of the keys.
    pub comparator: Comparator,
    /// In the batch keys have timestamps; entries are of the keys before them.
    pub stamped: bool,
    chunks: Vec<Vec<Entry>>,
}

/// Before an entry, or after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    chunk: usize,
    slot: usize,
}

impl KeyIndex {
    /// An empty index in the order of `comparator`, whose keys have timestamps in the batch or not.
    pub fn new(comparator: Comparator, stamped: bool) -> KeyIndex {
        KeyIndex { comparator, stamped, chunks: Vec::new() }
    }

    /// Before the first entry whose key is `key` or after it.
    pub fn at_or_after(&self, rep: &[u8], key: &[u8]) -> Position {
        self.first_not(|entry| self.comparator.compare(entry.key(rep), key) == Ordering::Less)
    }

    /// Before the first entry whose key is after `key`.
    pub fn after(&self, rep: &[u8], key: &[u8]) -> Position {
        self.first_not(|entry| self.comparator.compare(entry.key(rep), key) != Ordering::Greater)
    }

    /// Before the first entry.
    pub fn start(&self) -> Position {
        Position { chunk: 0, slot: 0 }
    }

    /// After the last entry.
    pub fn end(&self) -> Position {
        Position { chunk: self.chunks.len(), slot: 0 }
    }

    /// The entry after `position`.
    pub fn entry(&self, position: Position) -> Option<Entry> {
        self.chunks.get(position.chunk).map(|chunk| chunk[position.slot])
    }

    /// The entry before `position`.
    pub fn entry_before(&self, position: Position) -> Option<Entry> {
        match position {
            Position { chunk: 0, slot: 0 } => None,
            Position { chunk, slot: 0 } => self.chunks[chunk - 1].last().copied(),
            Position { chunk, slot } => Some(self.chunks[chunk][slot - 1]),
        }
    }

    /// The entries from `position` on.
    pub fn entries_from(&self, position: Position) -> impl Iterator<Item = Entry> {
        let first = self.chunks.get(position.chunk).map_or(&[][..], |chunk| &chunk[position.slot..]);
        let later = self.chunks.iter().skip(position.chunk + 1);
        first.iter().chain(later.flatten()).copied()
    }

    /// `count` entries after `position`.
    pub fn advanced(&self, position: Position, count: usize) -> Position {
        let Position { mut chunk, mut slot } = position;
        slot += count;
        while self.chunks.get(chunk).is_some_and(|entries| slot >= entries.len()) {
            slot -= self.chunks[chunk].len();
            chunk += 1;
        }
        Position { chunk, slot }
    }

    /// Adds `entry` at `position`.
    pub fn insert(&mut self, position: Position, entry: Entry) {
        let Position { mut chunk, mut slot } = position;
        if slot == 0 && chunk > 0 {
            // At the end of the one before, so that keys in ascending order fill chunks.
            chunk -= 1;
            slot = self.chunks[chunk].len();
        }
        match self.chunks.get_mut(chunk) {
            None => self.chunks.push(vec![entry]),
            Some(entries) => {
                entries.insert(slot, entry);
                if entries.len() > CHUNK {
                    let at = if slot + 1 == entries.len() { CHUNK } else { CHUNK / 2 };
                    let upper = entries.split_off(at);
                    self.chunks.insert(chunk + 1, upper);
                }
            }
        }
    }

    /// Points the entry after `position` to another record of the same key.
    pub fn replace(&mut self, position: Position, entry: Entry) {
        self.chunks[position.chunk][position.slot] = entry;
    }

    /// Before the first entry that `before` does not hold for; it holds for none after that.
    fn first_not(&self, before: impl Fn(&Entry) -> bool) -> Position {
        let chunk = self.chunks.partition_point(|chunk| before(&chunk[chunk.len() - 1]));
        let slot = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(before));
        Position { chunk, slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_in_order_however_they_come() {
        for step in [1usize, 389, 1000 - 1] {
            let keys: Vec<[u8; 2]> = (0..1000).map(|i| ((i * step % 1000) as u16).to_be_bytes()).collect();
            let rep: Vec<u8> = keys.iter().flatten().copied().collect();
            let mut index = KeyIndex::new(Comparator::Bytewise, false);
            for (number, key) in keys.iter().enumerate() {
                let entry = Entry::new(&rep, number * 2, &rep[number * 2..][..2]);
                let position = index.at_or_after(&rep, key);
                index.insert(position, entry);
            }
            let sorted: Vec<u16> = index
                .entries_from(index.start())
                .map(|entry| u16::from_be_bytes(entry.key(&rep).try_into().unwrap()))
                .collect();
            assert!(sorted.iter().copied().eq(0..1000), "step {step}: {sorted:?}");
            let found = index.entry_before(index.at_or_after(&rep, &500u16.to_be_bytes())).unwrap();
            assert_eq!(found.key(&rep), 499u16.to_be_bytes());
            assert_eq!(index.entry(index.after(&rep, &999u16.to_be_bytes())), None);
            assert_eq!(index.entry_before(index.start()), None);
        }
    }
}

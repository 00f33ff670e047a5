//! A disk in memory, the log of everything that was asked of it, and what a loss of power may leave of it.
//!
//! ```text
//! log:   W W F  W M W M | W          W write, F flush, M mark: something that a program said at this moment
//!            ^          ^
//!            |          the power goes here
//!            all before the last flush is there, of what came after it any part
//! ```
//! Invariant: a write that the disk answered before it was asked to flush is in front of that flush. This is pure: who writes to
//! the log is `fuse.rs`.

use outcrop_base::random::SplitMix as Random;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are kept together.
const BLOCK: u64 = 4096;
/// The least that a disk writes whole.
const SECTOR: usize = 512;

/// A disk. Copies share what neither has written since.
#[derive(Clone, Default)]
pub struct Disk {
    size: u64,
    blocks: HashMap<u64, Arc<[u8; BLOCK as usize]>>,
}

impl Disk {
    /// A disk of zeros.
    pub fn new(size: u64) -> Disk {
        Disk { size, blocks: HashMap::new() }
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The bytes from `offset` on, fewer than `len` at its end.
    pub fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let end = (offset + len as u64).min(self.size);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        for (block, start, piece) in pieces(offset, bytes.len()) {
            if let Some(there) = self.blocks.get(&block) {
                let len = piece.len();
                bytes[piece].copy_from_slice(&there[start..start + len]);
            }
        }
        bytes
    }

    /// Writes it to a file, with holes where it is zeros.
    ///
    /// # Errors
    /// The file's.
    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.size)?;
        self.blocks.iter().try_for_each(|(block, bytes)| file.write_all_at(&bytes[..], block * BLOCK))
    }

    /// Writes `bytes`; what is beyond the end is not written.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.size.saturating_sub(offset) as usize)];
        for (block, start, piece) in pieces(offset, bytes.len()) {
            let there = self.blocks.entry(block).or_insert_with(|| Arc::new([0; BLOCK as usize]));
            Arc::make_mut(there)[start..start + piece.len()].copy_from_slice(&bytes[piece]);
        }
    }

    /// Makes zeros of a range.
    pub fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            let (from, to) = (offset.max(block * BLOCK), end.min((block + 1) * BLOCK));
            if to - from == BLOCK {
                self.blocks.remove(&block);
            } else if let Some(there) = self.blocks.get_mut(&block) {
                Arc::make_mut(there)[(from % BLOCK) as usize..][..(to - from) as usize].fill(0);
            }
        }
    }
}

/// The blocks that a range touches: each with the place in it, and the part of the range.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % BLOCK) as usize;
        let take = (BLOCK as usize - start).min(len - done);
        done += take;
        (take > 0).then(|| (at / BLOCK, start, done - take..done))
    })
}

/// One thing that was asked of the disk, or said beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Bytes at an offset.
    Write(u64, Arc<[u8]>),
    /// Zeros from an offset on, so many.
    Zero(u64, u64),
    /// All that was written before is to last.
    Flush,
    /// Words of a program.
    Mark(Vec<u8>),
}

/// Which writes after the last flush are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them: the disk has no cache of its own.
    All,
    /// None.
    Nothing,
    /// One in so many.
    OneIn(u64),
    /// All but one in so many.
    AllBut(u64),
}

/// A moment at which the power goes, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Records before it.
    pub point: usize,
    /// Writes that are there.
    pub keep: Keep,
    /// Of the writes that are there, some have only a part of their sectors.
    pub torn: bool,
}

impl Cut {
    /// Draws a cut of a log with so many records.
    pub fn draw(random: &mut Random, records: usize) -> Cut {
        let keep = match random.below(8) {
            0 | 1 => Keep::All,
            2 => Keep::Nothing,
            3 | 4 => Keep::OneIn(2),
            5 => Keep::OneIn(8),
            6 => Keep::AllBut(8),
            _ => Keep::AllBut(40),
        };
        Cut { point: random.below(records as u64 + 1) as usize, keep, torn: random.one_in(4) }
    }

    /// The disk that is left, if it does as it is told in all but the last `ignored` flushes; the draw of the same cut with the
    /// same `seed` is the same.
    pub fn leave(&self, base: &Disk, log: &[Record], ignored: usize, seed: u64) -> Disk {
        let mut random = Random::new(seed);
        let log = &log[..self.point];
        let flushes = log.iter().enumerate().rev().filter(|(_, record)| **record == Record::Flush);
        let flushed = flushes.map(|(place, _)| place).nth(ignored).unwrap_or(0);
        let mut disk = base.clone();
        for (place, record) in log.iter().enumerate() {
            let lasts = place < flushed;
            let kept = lasts
                || match self.keep {
                    Keep::All => true,
                    Keep::Nothing => false,
                    Keep::OneIn(count) => random.one_in(count),
                    Keep::AllBut(count) => !random.one_in(count),
                };
            match record {
                Record::Write(offset, bytes) if kept => {
                    if !lasts && self.torn && random.one_in(4) {
                        tear(&mut disk, *offset, bytes, &mut random);
                    } else {
                        disk.write(*offset, bytes);
                    }
                }
                Record::Zero(offset, len) if kept => disk.zero(*offset, *len),
                _ => {}
            }
        }
        disk
    }
}

/// Writes a part of the sectors of a write, in the middle or from its begin.
fn tear(disk: &mut Disk, offset: u64, bytes: &[u8], random: &mut Random) {
    let sectors = bytes.chunks(SECTOR).count();
    let whole = random.index(sectors + 1);
    let scattered = random.one_in(2);
    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
        if (scattered && random.one_in(2)) || (!scattered && number < whole) {
            disk.write(offset + (number * SECTOR) as u64, sector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_what_was_written_and_zeros() {
        let mut disk = Disk::new(10_000);
        disk.write(4000, &[7; 5000]);
        let copy = disk.clone();
        disk.zero(4090, 4106);
        let mut expected = vec![0; 10_000];
        expected[4000..9000].fill(7);
        assert_eq!(copy.read(0, 20_000), expected);
        expected[4090..8196].fill(0);
        assert_eq!(disk.read(0, 20_000), expected);
        disk.write(9_990, &[1; 100]);
        assert_eq!(disk.read(9_985, 100), [[0; 5].to_vec(), [1; 10].to_vec()].concat());
        assert!(disk.read(10_000, 10).is_empty());
    }

    fn write(place: u8) -> Record {
        Record::Write(u64::from(place) * 1024, vec![place + 1; 1024].into())
    }

    /// A flushed write is there in every state, one after the cut in none, and one between them in some.
    #[test]
    fn a_cut_keeps_what_was_flushed_and_any_part_of_the_rest() {
        let log = [write(0), write(1), Record::Flush, write(2), Record::Mark(vec![1]), write(3), write(4)];
        let base = Disk::new(1 << 16);
        let there =
            |disk: &Disk, place: u8| disk.read(u64::from(place) * 1024, 1024) == vec![place + 1; 1024];
        let mut seen = [0; 5];
        let mut random = Random::new(1);
        let mut cuts = 0;
        for seed in 0..400 {
            let cut = Cut { point: 6, torn: false, ..Cut::draw(&mut random, log.len()) };
            let disk = cut.leave(&base, &log, 0, seed);
            (0..5).for_each(|place| seen[usize::from(place)] += u32::from(there(&disk, place)));
            cuts += 1;
        }
        assert_eq!((seen[0], seen[1], seen[4]), (cuts, cuts, 0));
        let nothing = Cut { point: 6, keep: Keep::Nothing, torn: false };
        assert!(!there(&nothing.leave(&base, &log, 1, 1), 0), "a flush that is ignored");
        assert!(seen[2] > 0 && seen[2] < cuts && seen[3] > 0 && seen[3] < cuts, "{seen:?}");
    }

    #[test]
    fn a_torn_write_has_whole_sectors() {
        let log = [Record::Write(0, vec![9; 4096].into())];
        let mut parts = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let cut = Cut { point: 1, keep: Keep::All, torn: true };
            let bytes = cut.leave(&Disk::new(1 << 16), &log, 0, seed).read(0, 4096);
            let sectors: Vec<bool> = bytes.chunks(SECTOR).map(|sector| sector == [9; SECTOR]).collect();
            assert!(bytes.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            parts.insert(sectors);
        }
        assert!(parts.len() > 10, "{}", parts.len());
    }
}

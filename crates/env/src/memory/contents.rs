//! The contents of one file in memory: the bytes that reads see, those that are durable, and the effect of a loss of power on the rest.
//!
//! ```text
//! durable  |AAAAAAAA|                 after the last sync
//! current  |AAAABBBB|BBBBBBBB|ffff|   appended or written over since (f: filler of space ahead)
//! left     |AAAABBBB|00000000|ffff|   each page as it was durable, as it is, or as it was in between; what was never
//!                                     written back reads as zeros, whatever the size says
//! ```
//! A page is what the file system writes at a time: 512 bytes, 1 KiB or 4 KiB, drawn for each crash.
//! Next: [`Loss`], which says how much of this one crash does.

use std::ops::Range;

/// The contents of one file, shared by its names and open handles.
#[derive(Debug, Default)]
pub struct FileBytes {
    /// The bytes that reads see.
    pub bytes: Vec<u8>,
    /// So many of `bytes` are durable, unless the file is written over.
    synced: usize,
    /// If more than appends to its end happens to it.
    over: Option<Over>,
    /// The longest it was since the last sync.
    longest: usize,
    /// Where each write since the last sync ended.
    writes: Vec<usize>,
    /// Files created before have smaller numbers.
    order: u64,
}

/// A file that is written over what it holds: a reused one, or one with space ahead.
#[derive(Debug)]
struct Over {
    /// Bytes appended, with what was to follow them.
    written: usize,
    /// The bytes that are on the disk for certain.
    durable: Vec<u8>,
    /// Fills the space ahead, if there is some.
    filler: Option<u8>,
}

/// Bytes of space made at a time: small, so that short tests meet its edges.
const CHUNK: usize = 4096;

impl FileBytes {
    /// An empty file, the `order`th that was created; with `ahead` it has space ahead, filled with that byte.
    pub fn new(order: u64, ahead: Option<u8>) -> FileBytes {
        let over = ahead.map(|filler| Over { written: 0, durable: Vec::new(), filler: Some(filler) });
        FileBytes { over, order, ..FileBytes::default() }
    }

    /// A file all of which is durable.
    fn durable(bytes: Vec<u8>, order: u64) -> FileBytes {
        FileBytes { synced: bytes.len(), bytes, order, ..FileBytes::default() }
    }

    /// Goes on from the start of the file, over what it holds.
    pub fn write_over(&mut self, order: u64, ahead: Option<u8>) {
        let durable = match self.over.take() {
            Some(over) => over.durable,
            None => self.bytes[..self.synced].to_vec(),
        };
        self.over = Some(Over { written: 0, durable, filler: ahead });
        self.synced = 0;
        self.longest = self.bytes.len();
        self.order = order;
    }

    /// Appends `bytes`, and puts `end` behind them in a file with space ahead.
    pub fn append(&mut self, bytes: &[u8], end: &[u8]) {
        let Some(over) = &mut self.over else {
            self.bytes.extend_from_slice(bytes);
            self.longest = self.longest.max(self.bytes.len());
            self.writes.push(self.bytes.len());
            return;
        };
        // As on the real file system, where only a file with space ahead has a mark.
        let end = if over.filler.is_some() { end } else { &[] };
        let (start, stop) = (over.written, over.written + bytes.len());
        let needed = stop + end.len();
        if needed > self.bytes.len() {
            let len = if over.filler.is_some() { needed.next_multiple_of(CHUNK) } else { needed };
            self.bytes.resize(len, over.filler.unwrap_or(0));
        }
        self.bytes[start..stop].copy_from_slice(bytes);
        self.bytes[stop..needed].copy_from_slice(end);
        over.written = stop;
        self.longest = self.longest.max(self.bytes.len());
    }

    /// Everything so far becomes durable.
    pub fn sync(&mut self) {
        self.longest = self.bytes.len();
        self.writes.clear();
        match &mut self.over {
            None => self.synced = self.bytes.len(),
            Some(over) => {
                // Nothing before the last sync has changed but what followed its end.
                let same = self.synced.min(over.durable.len()).min(self.bytes.len());
                over.durable.truncate(same);
                over.durable.extend_from_slice(&self.bytes[same..]);
                self.synced = over.written;
            }
        }
    }

    /// Gives the file the length that was appended.
    pub fn cut(&mut self) {
        if let Some(over) = &self.over {
            self.bytes.truncate(over.written);
        }
    }

    /// Cuts the file as damage would.
    pub fn damage_end(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.synced = self.synced.min(len);
    }

    /// The file as a loss of power leaves it: a file of its own.
    pub fn survivor(&self, loss: &mut Loss) -> FileBytes {
        let durable: &[u8] = match &self.over {
            Some(over) => &over.durable,
            None => &self.bytes[..self.synced],
        };
        let Some(len) = loss.len(self.order, durable.len(), self.bytes.len(), self.longest) else {
            return FileBytes::durable(durable.to_vec(), self.order);
        };
        let filler = self.over.as_ref().and_then(|over| over.filler);
        let mut left = vec![0; len];
        let old = durable.len().min(len);
        left[..old].copy_from_slice(&durable[..old]);
        let first = if self.over.is_some() { 0 } else { old / loss.page };
        for page in first..len.div_ceil(loss.page) {
            let range = page * loss.page..((page + 1) * loss.page).min(len);
            match loss.draw_page(filler.is_some()) {
                Page::Durable => {}
                Page::Filled => left[range.start.max(old)..range.end.max(old)].fill(filler.unwrap_or(0)),
                Page::Current => self.keep(&mut left, range.start, range.end),
                Page::Between => {
                    let end = self.between(&range, loss);
                    self.keep(&mut left, range.start, end);
                }
            }
        }
        FileBytes::durable(left, self.order)
    }

    /// Copies what the range holds.
    fn keep(&self, left: &mut [u8], start: usize, end: usize) {
        let end = end.min(self.bytes.len());
        if start < end {
            left[start..end].copy_from_slice(&self.bytes[start..end]);
        }
    }

    /// How far a page had been written when it went to the disk before it was whole: by stores, which no writeback waits for,
    /// anywhere; else up to the end of a write.
    fn between(&self, page: &Range<usize>, loss: &mut Loss) -> usize {
        if self.over.is_some() {
            return page.start + loss.draw(page.len());
        }
        let within: Vec<usize> = self.writes.iter().copied().filter(|end| page.contains(end)).collect();
        if within.is_empty() { page.end } else { within[loss.draw(within.len() - 1)] }
    }
}

/// How one page is found after a crash.
enum Page {
    /// As it was at the last sync; zeros where the file had not reached.
    Durable,
    /// As the space ahead was made.
    Filled,
    /// As it is.
    Current,
    /// As it was when a part of what was written since had been.
    Between,
}

/// The damage that one loss of power does to bytes that were not synced, drawn from a seed.
///
/// Where space is allocated as files grow, sizes are entries of one journal: files reach them in the order in which they were created,
/// and their pages in any order. Where it is allocated when data is written back (ext4 with delayed allocation, XFS), a size is
/// entered once the data below it is on the disk, for each file by itself: the end of a newer file is there, and that of an older one
/// not.
#[derive(Debug)]
pub struct Loss {
    state: u64,
    page: usize,
    how: How,
    /// Files created before this one have their whole size, later ones that of the last sync.
    newest: u64,
    /// The point from which this file loses its pages: they are not written.
    pages_left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Nothing that was not synced is there.
    All,
    /// Files end early.
    Ends,
    /// Sizes are there, and from some page on no data.
    Data,
    /// Sizes are there, and any pages are not.
    Pages,
    /// Each file ends where it will, with its data up to there, whatever others have.
    Apart,
}

impl Loss {
    /// Of everything that was not synced.
    pub fn everything() -> Loss {
        Loss { state: 1, page: 4096, how: How::All, newest: 0, pages_left: 0 }
    }

    /// Drawn from `seed`, among files of which `created` were created.
    pub fn drawn(seed: u64, created: u64) -> Loss {
        // Seeds that differ little give crashes that differ much.
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (seed >> 29) | 1;
        let mut loss = Loss { state, page: 4096, how: How::All, newest: 0, pages_left: 0 };
        loss.draw(7);
        loss.page = [512, 1024, 4096][loss.draw(2)];
        loss.how = [How::Ends, How::Data, How::Pages, How::Pages][loss.draw(3)];
        // Mostly one of the last files, which have something to lose.
        let back = if loss.draw(2) == 0 { created as usize } else { 3.min(created as usize) };
        loss.newest = created - loss.draw(back) as u64;
        loss
    }

    /// The same, where each file ends by itself.
    pub fn apart(seed: u64, created: u64) -> Loss {
        Loss { how: How::Apart, ..Loss::drawn(seed, created) }
    }

    /// A number of `0..=most`.
    pub fn draw(&mut self, most: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 8) as usize % (most + 1)
    }

    /// The length that a file is found with; `None`: all of it is as at the last sync.
    fn len(&mut self, order: u64, durable: usize, current: usize, longest: usize) -> Option<usize> {
        if self.how == How::All || (order > self.newest && self.how != How::Apart) {
            return None;
        }
        let (least, most) = (durable.min(current), durable.max(longest));
        if self.how == How::Apart {
            return Some([least, least + self.draw(most - least), most][self.draw(2)]);
        }
        let len = match (self.how, order == self.newest) {
            (How::Ends, true) => least + self.draw(most - least),
            (_, true) if self.draw(2) == 0 => least + self.draw(most - least),
            // A cut that followed may not have reached the disk.
            _ => [current.max(durable.min(most)), current, most][self.draw(2)],
        };
        self.pages_left = if self.how == How::Data { self.draw(len / self.page + 1) } else { usize::MAX };
        Some(len)
    }

    fn draw_page(&mut self, filled: bool) -> Page {
        match self.how {
            How::All => Page::Durable,
            How::Ends | How::Apart => Page::Current,
            How::Data if self.pages_left == 0 => Page::Durable,
            How::Data => {
                self.pages_left -= 1;
                Page::Current
            }
            How::Pages => match self.draw(7) {
                0 | 1 => Page::Durable,
                2 if filled => Page::Filled,
                3 => Page::Between,
                _ => Page::Current,
            },
        }
    }
}

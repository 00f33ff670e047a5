//! The blocks that an iterator reads of its table before it gets there.
//!
//! ```text
//! | stretch in memory: the current block is in it | next stretch: under way |
//! ```
//! Stretches end where blocks end, and grow while access stays sequential. While the blocks of one are worked on, the next
//! is being read. A file that the operating system caches is read by it as far ahead as the user asked for, and
//! copied from there in stretches that stay in the processor's caches.

use crate::counts;
use crate::format::BlockHandle;
use crate::index::IndexView;
use crate::source::BlockSource;
use outcrop_base::Result;
use outcrop_env::{IoKind, Pace, PendingRead};
use outcrop_monitor::Watch;
use outcrop_options::BlockBasedTableOptions;
use std::sync::Arc;

/// First size of a stretch, in bytes, if no option says otherwise.
const MIN_BYTES: usize = 16 << 10;
/// Largest stretch read at a time from a direct file, whatever is asked for.
const MOST_DIRECT: usize = 64 << 20;
/// Largest size it grows to on its own if no option says otherwise, and largest of a buffered file, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// From this size on the next stretch is read before it is wanted: an iterator that came so far goes on.
const AHEAD_FROM: usize = 64 << 10;
/// Sequential loads before reading ahead starts, if no option says otherwise.
const LOADS_BEFORE: u64 = 2;

/// How iterators read ahead that nobody told how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoReadahead {
    /// First size of a stretch, in bytes; 0: none is read ahead.
    first: usize,
    /// Largest size, in bytes; 0: none is read ahead.
    most: usize,
    /// Sequential loads before.
    loads_before: u64,
}

impl Default for AutoReadahead {
    fn default() -> AutoReadahead {
        AutoReadahead { first: MIN_BYTES, most: MAX_BYTES, loads_before: LOADS_BEFORE }
    }
}

impl AutoReadahead {
    /// As the options of tables say: `initial_auto_readahead_size`, `max_auto_readahead_size`, `num_file_reads_for_auto_readahead`.
    pub fn of(table: &BlockBasedTableOptions) -> AutoReadahead {
        let number = |name, default: usize| {
            table.kept.number(name).map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let most = number("max_auto_readahead_size", MAX_BYTES).min(MOST_DIRECT);
        AutoReadahead {
            first: number("initial_auto_readahead_size", MIN_BYTES).min(most),
            most,
            loads_before: table.kept.number("num_file_reads_for_auto_readahead").unwrap_or(LOADS_BEFORE),
        }
    }

    fn is_off(&self) -> bool {
        self.first == 0 || self.most == 0
    }
}

/// The stretches of one iterator.
#[derive(Default)]
pub struct Readahead {
    /// Bytes of a stretch that the user asked for; 0: grows with sequential access.
    asked: usize,
    /// How it grows.
    auto: AutoReadahead,
    /// Bytes of the last stretch.
    size: usize,
    bytes: Vec<u8>,
    start: u64,
    next: Option<Next>,
    /// Up to where the operating system was asked to read a buffered file.
    hinted: u64,
    /// Block that follows the last one entered, and how many were loaded in a row.
    expected: usize,
    in_a_row: u64,
    /// Reads ahead wait for its tokens.
    pace: Option<Arc<Pace>>,
}

struct Next {
    start: u64,
    len: usize,
    read: PendingRead,
}

/// Blocks that follow each other in the file.
struct Stretch {
    start: u64,
    len: usize,
    /// Number of the block after it.
    end: usize,
}

impl Readahead {
    /// Reads stretches of `asked` bytes from the first block on; 0: once access is sequential, and growing, as `auto` says.
    pub fn new(asked: usize, auto: AutoReadahead, pace: Option<Arc<Pace>>) -> Readahead {
        Readahead { asked, auto, pace, ..Readahead::default() }
    }

    /// Block `number` was entered.
    #[inline]
    pub fn entered(&mut self, number: usize) {
        self.expected = number + 1;
    }

    /// Whether block `number`, which must be loaded, is to come from a stretch.
    pub fn is_wanted(&mut self, number: usize) -> bool {
        self.in_a_row = if number == self.expected { self.in_a_row + 1 } else { 0 };
        self.asked > 0 || (self.in_a_row >= self.auto.loads_before && !self.auto.is_off())
    }

    /// Bytes of its buffers once the next stretch, and the one after it, are in memory.
    pub fn bytes_to_come(&self, direct: bool) -> usize {
        let size = self.size.max(self.auto.first).saturating_mul(2).min(self.auto.most);
        let (stretch, stretches) = match self.asked {
            0 => (size, if size >= AHEAD_FROM { 2 } else { 1 }),
            asked if direct => (asked.min(MOST_DIRECT), 2),
            asked => (asked.min(MAX_BYTES), 1),
        };
        stretches * stretch.max(self.bytes.capacity())
    }

    /// The same, in stretches of at most `bytes`, or of one block.
    pub fn at_most(self, bytes: usize) -> Readahead {
        let auto = AutoReadahead { most: self.auto.most.min(bytes), ..self.auto };
        Readahead { asked: self.asked.min(bytes), auto, ..self }
    }

    /// Drops the bytes that were read ahead, and begins anew.
    pub fn stop(&mut self) {
        (self.bytes, self.start, self.next, self.size) = (Vec::new(), 0, None, 0);
    }

    /// The stored bytes of block `number`, with its trailer.
    pub fn stored(
        &mut self,
        source: &BlockSource,
        index: &IndexView<'_>,
        number: usize,
        watch: Watch<'_>,
    ) -> Result<&[u8]> {
        let handle = index.handle(number);
        let len = source.stored_len(handle)?;
        if !self.holds(handle, len) {
            self.advance(source, index, number, watch)?;
        }
        let at = (handle.offset - self.start) as usize;
        Ok(&self.bytes[at..at + len])
    }

    fn holds(&self, handle: BlockHandle, len: usize) -> bool {
        handle.offset >= self.start && handle.offset + len as u64 <= self.start + self.bytes.len() as u64
    }

    /// Makes the stretch that begins with block `number` the current one, and starts to read the one after it.
    fn advance(
        &mut self,
        source: &BlockSource,
        index: &IndexView<'_>,
        number: usize,
        watch: Watch<'_>,
    ) -> Result<()> {
        let stretch = self.stretch(source, index, number)?;
        if let Some(pace) = &self.pace {
            pace.request(stretch.len as u64, IoKind::Read);
        }
        // Nothing is known of the buffer after an error.
        self.start = 0;
        let next = self.next.take().filter(|next| next.start == stretch.start && next.len == stretch.len);
        let read = match next {
            Some(next) => {
                let timer = watch.timer();
                let read = next.read.finish(&mut self.bytes);
                counts::read(watch, timer, &source.placement, self.bytes.len());
                read
            }
            None => {
                self.bytes.reserve_exact(stretch.len.saturating_sub(self.bytes.len()));
                self.bytes.resize(stretch.len, 0);
                source.read_at(stretch.start, &mut self.bytes, watch)
            }
        };
        if let Err(error) = read {
            self.bytes.clear();
            return Err(error);
        }
        self.start = stretch.start;
        self.grow();
        if self.asked > 0 && !source.file.is_direct() {
            self.hint(source, stretch.start + stretch.len as u64);
        } else if stretch.end < index.len() && (self.asked > 0 || self.size >= AHEAD_FROM) {
            let Stretch { start, len, .. } = self.stretch(source, index, stretch.end)?;
            self.next = Some(Next { start, len, read: PendingRead::start(&source.file, start, len) });
        }
        Ok(())
    }

    /// Has at least as many bytes after `end` read as the user asked for, twice as many at a time.
    fn hint(&mut self, source: &BlockSource, end: u64) {
        let asked = self.asked as u64;
        if self.hinted < end.saturating_add(asked) {
            let from = self.hinted.max(end);
            self.hinted = end.saturating_add(asked.saturating_mul(2));
            let to = self.hinted.min(source.file.size());
            if from < to {
                source.file.prefetch(from, (to - from) as usize);
            }
        }
    }

    fn grow(&mut self) {
        self.size = self.size.max(self.auto.first).saturating_mul(2).min(self.auto.most);
    }

    /// As many blocks from `number` on as a stretch takes, at least one.
    fn stretch(&self, source: &BlockSource, index: &IndexView<'_>, number: usize) -> Result<Stretch> {
        let wanted = match self.asked {
            0 => self.size.max(self.auto.first),
            asked if !source.file.is_direct() => asked.min(MAX_BYTES),
            // Memory is taken for a whole stretch.
            asked => asked.min(MOST_DIRECT),
        };
        let first = index.handle(number);
        let mut stretch = Stretch { start: first.offset, len: source.stored_len(first)?, end: number + 1 };
        while stretch.end < index.len() {
            let handle = index.handle(stretch.end);
            // Damage of a block is reported when the block is entered.
            let Ok(len) = source.stored_len(handle) else { break };
            if handle.offset != stretch.start + stretch.len as u64 || stretch.len + len > wanted {
                break;
            }
            stretch.len += len;
            stretch.end += 1;
        }
        Ok(stretch)
    }
}

//! Appends records to a log file. The WAL and the MANIFEST are both such logs.
//!
//! Invariant: fewer bytes left in a block than a header takes are zero-filled, never a header.
//! Concurrency: one writer at a time (`&mut self`), no lock inside.
//! Next: `reader.rs`; bytes and fixtures in `docs/format/log.md`.

use crate::{BLOCK_SIZE, HEADER_LEN, Predecessor, RECYCLABLE_HEADER_LEN, kind};
use outcrop_base::checksum::{crc32c, crc32c_extend, mask};
use outcrop_base::{CfId, Error, Result};
use outcrop_env::{RetiredWindow, WriteFile};

/// A position in a log file, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogOffset(pub u64);

/// Bytes of a record that are framed and appended at once; of larger records it takes several appends. They stay allocated.
const LARGEST_APPEND: usize = 1 << 20;

/// Bytes that name one column family and the length of its timestamps.
const SIZE_LEN: usize = 6;
/// Column families that one record names at most: it must fit in a block.
const SIZES_PER_RECORD: usize = 4096;

/// Writes one log file.
pub struct LogWriter {
    file: Box<dyn WriteFile>,
    /// The log number's low half, if each header carries it.
    recyclable: Option<u32>,
    /// For each kind of fragment, the checksum of what headers of this log hold after the length.
    crc_of_headers: [u32; kind::LAST as usize + 1],
    /// Header of an empty record of another log: where readers find it, this log ends.
    end: [u8; RECYCLABLE_HEADER_LEN],
    /// Offset in the current block.
    block_offset: usize,
    /// Length of the file.
    len: u64,
    /// One record, framed, or as much of it as is appended at once; reused.
    frame: Vec<u8>,
    compression: Option<Compression>,
    /// Column families, with the length of their timestamps, that the log has yet to name before its next record.
    stamped: Vec<(CfId, u16)>,
    /// The log before it, that it has yet to name before its first record.
    predecessor: Option<Predecessor>,
    /// Records are not compressed, and nothing has to come before the next.
    plain: bool,
}

/// Records are compressed, each into a zstd frame of its own.
struct Compression {
    context: zstd::bulk::Compressor<'static>,
    /// The record that says so was written.
    announced: bool,
    plain: Vec<u8>,
}

impl LogWriter {
    /// Writes the log `log_number` to the start of `file`. With `recyclable` each fragment carries the log
    /// number, and a mark follows the last: the file may hold other things after it, such as an earlier log.
    pub fn new(file: Box<dyn WriteFile>, log_number: u64, recyclable: bool) -> LogWriter {
        let recyclable = recyclable.then_some(log_number as u32);
        LogWriter {
            file,
            recyclable,
            crc_of_headers: std::array::from_fn(|kind| crc_of_header(kind as u8, recyclable)),
            end: end_mark(log_number as u32),
            block_offset: 0,
            len: 0,
            frame: Vec::new(),
            compression: None,
            stamped: Vec::new(),
            predecessor: None,
            plain: true,
        }
    }

    /// The same log with its records compressed by zstd.
    ///
    /// # Errors
    /// If zstd has no memory for it.
    pub fn compressed(mut self) -> Result<LogWriter> {
        let context = zstd::bulk::Compressor::new(zstd::DEFAULT_COMPRESSION_LEVEL);
        let context = context.map_err(|error| Error::io("zstd", error))?;
        self.compression = Some(Compression { context, announced: false, plain: Vec::new() });
        self.plain = false;
        Ok(self)
    }

    /// Has the log say, before its next record, that keys of these column families end with timestamps of so many bytes. Each
    /// is to be named once in a log.
    pub fn name_timestamp_sizes(&mut self, sizes: &[(CfId, u16)]) {
        self.stamped.extend_from_slice(sizes);
        self.plain &= sizes.is_empty();
    }

    /// Has the log name, before its first record, the one that was closed before it. RocksDB 6.29
    /// cannot read such a log.
    pub fn name_predecessor(&mut self, predecessor: Predecessor) {
        self.predecessor = Some(predecessor);
        self.plain = false;
    }

    /// Appends `record` and returns the offset just past it.
    ///
    /// The bytes reach the file's buffer (the operating system, if it has none), not the disk: call
    /// [`LogWriter::sync`] for that.
    ///
    /// # Errors
    /// IoError or NoSpace if the file system refuses the write. The tail is then unknown, so every later
    /// call fails too; the caller opens a new log.
    ///
    /// Source: RocksDB `db/log_writer.cc`, `Writer::AddRecord`.
    pub fn append(&mut self, record: &[u8]) -> Result<LogOffset> {
        self.append_parts(&[record])
    }

    /// Appends the concatenation of `parts` as one record, with one append to the file if it is no larger than a MiB or so.
    pub fn append_parts(&mut self, parts: &[&[u8]]) -> Result<LogOffset> {
        self.frame.clear();
        if !self.plain {
            return self.append_announced(parts);
        }
        self.append_record(parts)
    }

    #[inline(never)]
    fn append_announced(&mut self, parts: &[&[u8]]) -> Result<LogOffset> {
        if let Some(compression) = &mut self.compression
            && !std::mem::replace(&mut compression.announced, true)
        {
            self.announce_compression();
        }
        if let Some(predecessor) = self.predecessor.take() {
            self.announce([kind::PREDECESSOR, kind::RECYCLABLE_PREDECESSOR], &predecessor.encode());
        }
        for some in std::mem::take(&mut self.stamped).chunks(SIZES_PER_RECORD) {
            self.announce_timestamp_sizes(some);
        }
        self.plain = self.compression.is_none();
        self.append_compressed(parts)
    }

    fn append_compressed(&mut self, parts: &[&[u8]]) -> Result<LogOffset> {
        let Some(mut compression) = self.compression.take() else { return self.append_record(parts) };
        compression.plain.clear();
        parts.iter().for_each(|part| compression.plain.extend_from_slice(part));
        let packed = compression.context.compress(&compression.plain);
        if compression.plain.capacity() > LARGEST_APPEND {
            compression.plain = Vec::new();
        }
        self.compression = Some(compression);
        let packed = packed.map_err(|error| Error::io("zstd", error))?;
        self.append_record(&[&packed])
    }

    /// The record at the start of a log that says how the others are compressed.
    fn announce_compression(&mut self) {
        const ZSTD: u32 = 7;
        let payload = ZSTD.to_le_bytes();
        let kind = kind::SET_COMPRESSION;
        let crc = mask(crc32c_extend(crc32c(&[kind]), &payload));
        self.frame.extend_from_slice(&crc.to_le_bytes());
        self.frame.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        self.frame.push(kind);
        self.frame.extend_from_slice(&payload);
        self.block_offset += HEADER_LEN + payload.len();
    }

    /// The record that names column families whose keys end with timestamps.
    ///
    /// Source: RocksDB `db/log_writer.cc`, `MaybeAddUserDefinedTimestampSizeRecord`.
    fn announce_timestamp_sizes(&mut self, sizes: &[(CfId, u16)]) {
        let mut payload = Vec::with_capacity(sizes.len() * SIZE_LEN);
        for (cf, len) in sizes {
            payload.extend_from_slice(&cf.0.to_le_bytes());
            payload.extend_from_slice(&len.to_le_bytes());
        }
        self.announce([kind::TIMESTAMP_SIZE, kind::RECYCLABLE_TIMESTAMP_SIZE], &payload);
    }

    /// A record about the log, of the first of `kinds` or, if headers carry its number, of the second. It lies within one block.
    fn announce(&mut self, kinds: [u8; 2], payload: &[u8]) {
        let room = BLOCK_SIZE - self.block_offset;
        if room < self.header_len() + payload.len() {
            self.frame.resize(self.frame.len() + room, 0);
            self.block_offset = 0;
        }
        let (kind, number) = match self.recyclable {
            None => (kinds[0], None),
            Some(number) => (kinds[1], Some(number.to_le_bytes())),
        };
        let number = number.as_ref().map_or(&[][..], |number| &number[..]);
        let crc = mask(crc32c_extend(crc32c_extend(crc32c(&[kind]), number), payload));
        self.frame.extend_from_slice(&crc.to_le_bytes());
        self.frame.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        self.frame.push(kind);
        self.frame.extend_from_slice(number);
        self.frame.extend_from_slice(payload);
        self.block_offset += self.header_len() + payload.len();
    }

    /// Frames the concatenation of `parts` after what `frame` holds, and appends it.
    #[inline]
    fn append_record(&mut self, parts: &[&[u8]]) -> Result<LogOffset> {
        match parts {
            [record] if self.header_len() + record.len() <= BLOCK_SIZE - self.block_offset => {
                self.frame_whole(record);
            }
            _ => self.frame_in_fragments(parts)?,
        }
        // Where no header fits in the rest of the block, readers look at the start of the next one, which is as it was.
        let marked = self.recyclable.is_some() && BLOCK_SIZE - self.block_offset >= RECYCLABLE_HEADER_LEN;
        self.file.append_marked(&self.frame, if marked { &self.end } else { &[] })?;
        self.len = self.file.len();
        Ok(LogOffset(self.len))
    }

    #[inline]
    fn header_len(&self) -> usize {
        if self.recyclable.is_some() { RECYCLABLE_HEADER_LEN } else { HEADER_LEN }
    }

    /// Frames `record` as one fragment, for which there is room in the block: what nearly every record is.
    #[inline]
    fn frame_whole(&mut self, record: &[u8]) {
        let crc = mask(crc32c_extend(self.crc_of_headers[kind::FULL as usize], record));
        self.push_header(kind::FULL, record.len(), crc);
        self.frame.extend_from_slice(record);
        self.block_offset += self.header_len() + record.len();
    }

    /// Frames the concatenation of `parts` block by block, and appends what of it is large.
    #[inline(never)]
    fn frame_in_fragments(&mut self, parts: &[&[u8]]) -> Result<()> {
        let header_len = self.header_len();
        let mut left: usize = parts.iter().map(|part| part.len()).sum();
        let mut source = Parts { parts, part: 0, offset: 0 };
        let mut first = true;
        loop {
            let room = BLOCK_SIZE - self.block_offset;
            if room < header_len {
                self.frame.resize(self.frame.len() + room, 0);
                self.block_offset = 0;
                continue;
            }
            let len = left.min(room - header_len);
            left -= len;
            let kind = match (first, left == 0) {
                (true, true) => kind::FULL,
                (true, false) => kind::FIRST,
                (false, false) => kind::MIDDLE,
                (false, true) => kind::LAST,
            };
            self.frame_fragment(kind, len, &mut source);
            self.block_offset += header_len + len;
            first = false;
            if left == 0 {
                return Ok(());
            }
            if self.frame.len() >= LARGEST_APPEND {
                // Its last fragment ends a block. Readers take what follows for an end: the record has none yet.
                self.file.append_marked(&self.frame, &[])?;
                self.len = self.file.len();
                self.frame.clear();
            }
        }
    }

    /// Appends one fragment of `len` bytes from `source` to the frame.
    fn frame_fragment(&mut self, kind: u8, len: usize, source: &mut Parts<'_>) {
        let start = self.frame.len();
        self.push_header(kind, len, 0);
        let payload = self.frame.len();
        source.copy(len, &mut self.frame);
        let crc = mask(crc32c_extend(self.crc_of_headers[kind as usize], &self.frame[payload..]));
        self.frame[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Appends the header of a fragment of `len` bytes to the frame.
    #[inline]
    fn push_header(&mut self, kind: u8, len: usize, crc: u32) {
        let mut header = [0; RECYCLABLE_HEADER_LEN];
        header[..4].copy_from_slice(&crc.to_le_bytes());
        header[4..6].copy_from_slice(&(len as u16).to_le_bytes());
        match self.recyclable {
            None => {
                header[6] = kind;
                self.frame.extend_from_slice(&header[..HEADER_LEN]);
            }
            Some(number) => {
                header[6] = kind + kind::RECYCLABLE;
                header[HEADER_LEN..].copy_from_slice(&number.to_le_bytes());
                self.frame.extend_from_slice(&header);
            }
        }
    }

    /// Hands everything appended to the operating system.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }

    /// Makes everything appended durable.
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }

    /// See [`WriteFile::retired_window`].
    pub fn retired_window(&mut self) -> Option<RetiredWindow> {
        self.file.retired_window()
    }

    /// Flushes and closes the file.
    pub fn close(&mut self) -> Result<()> {
        self.file.close()
    }

    /// Length of the log, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The checksum of what a header holds after the length: the kind, and the log's number if it carries that.
fn crc_of_header(kind: u8, recyclable: Option<u32>) -> u32 {
    match recyclable {
        None => crc32c(&[kind]),
        Some(number) => crc32c_extend(crc32c(&[kind + kind::RECYCLABLE]), &number.to_le_bytes()),
    }
}

/// The mark after the last record of log `number`. The next record is written over all of it but its first bytes before
/// those: what it then looks like belongs to another log as well.
fn end_mark(number: u32) -> [u8; RECYCLABLE_HEADER_LEN] {
    let mut mark = [0; RECYCLABLE_HEADER_LEN];
    mark[HEADER_LEN - 1] = kind::FULL + kind::RECYCLABLE;
    mark[HEADER_LEN..].copy_from_slice(&(!number).to_le_bytes());
    mark
}

/// A cursor over the concatenation of slices.
struct Parts<'a> {
    parts: &'a [&'a [u8]],
    part: usize,
    offset: usize,
}

impl Parts<'_> {
    /// Appends the next `len` bytes to `out`.
    fn copy(&mut self, mut len: usize, out: &mut Vec<u8>) {
        while len > 0 {
            let rest = &self.parts[self.part][self.offset..];
            let now = rest.len().min(len);
            out.extend_from_slice(&rest[..now]);
            len -= now;
            self.offset += now;
            if self.offset == self.parts[self.part].len() {
                self.part += 1;
                self.offset = 0;
            }
        }
    }
}

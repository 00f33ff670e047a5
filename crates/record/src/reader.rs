//! Reads a log file front to back, telling its kinds of damage apart.
//!
//! [`LogReader::next`] gives each logical record. Damage is returned as [`ReadOutcome::Damaged`] if the
//! recovery mode reports it; damage that a mode tolerates ends or continues the log silently. After damage the next
//! call goes on after it, which is what skipping corrupt records means.
//!
//! Invariant: a record is returned only if the checksums of all its fragments match.
//! Source: RocksDB `db/log_reader.cc`; the table of outcomes is in `docs/format/log.md`.

use crate::{BLOCK_SIZE, HEADER_LEN, Predecessor, RECYCLABLE_HEADER_LEN, is_recyclable, kind};
use outcrop_base::checksum::{crc32c, crc32c_extend, unmask};
use outcrop_base::coding::{Decoder, fixed32_at};
use outcrop_base::{CfId, Error, Result};
use outcrop_env::ReadFile;
use outcrop_options::WalRecoveryMode;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

/// The kind of damage of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends inside a record, as a crash leaves it.
    TornTail,
    /// A checksum does not match.
    Checksum,
    /// A length runs past its block.
    Length,
    /// Fragments do not fit together.
    Fragments,
    /// A record type this reader must not skip.
    UnknownType,
    /// A record about the log itself does not decode.
    Undecodable,
    /// Of a MANIFEST: a sector of it reads as zeros, as if its last write had not reached the disk as a whole. The
    /// intact records of the rest follow, one by one.
    TornWrite,
}

/// One piece of damage.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The kind of damage.
    pub kind: DamageKind,
    /// Where it is, in bytes from the start of the file.
    pub offset: u64,
    /// Corruption naming file and offset.
    pub error: Error,
}

/// The next thing in a log.
#[derive(Debug)]
pub enum ReadOutcome<'a> {
    /// A logical record, and the offset it starts at.
    Record(&'a [u8], u64),
    /// Damage that the recovery mode reports.
    Damaged(Damage),
    /// The end, clean or tolerated.
    End,
}

/// Reads one log file.
pub struct LogReader {
    file: Arc<dyn ReadFile>,
    /// Low half of the log number that recyclable headers must carry.
    log_number: u32,
    mode: WalRecoveryMode,
    block: Vec<u8>,
    /// File offset of `block`.
    block_start: u64,
    /// Offset in `block` of the next physical record.
    position: usize,
    /// `block` is the last of the file.
    last_block: bool,
    /// A recyclable header was seen.
    recycled: bool,
    /// A fragment with an ordinary header was seen, so that none of an earlier log can follow.
    ordinary: bool,
    /// Nothing may be left out before the last record, whatever the mode tolerates at the end.
    gapless: bool,
    /// Bytes were passed over that nothing was written to.
    unwritten: bool,
    /// It ended before the end of its file.
    ends_open: bool,
    /// File offset of the header read last.
    header_at: u64,
    /// A write was torn: of what follows, only what is intact counts.
    salvaging: bool,
    /// Fragments are zstd-compressed.
    compressed: bool,
    record: Vec<u8>,
    ended: bool,
    /// Lengths of timestamps that the log has named so far, by column family.
    timestamp_sizes: BTreeMap<CfId, u16>,
    /// The log before it, as it names it.
    predecessor: Option<Predecessor>,
    /// Offset just past the last intact physical record, in bytes from the start of the file.
    end_offset: u64,
    /// Offset just past the last logical record that was given, in bytes from the start of the file.
    record_end: u64,
}

/// One physical record, or why there is none.
enum Physical {
    /// Type without the recyclable bit, and the payload's range in the block.
    Fragment(u8, std::ops::Range<usize>),
    /// Between records.
    EndOfFile,
    /// The file ends inside a header or payload.
    Torn(&'static str),
    /// Written by an earlier owner of a recycled file.
    OldLog,
    /// Zeros: nothing was written here; the rest of the block is skipped.
    Unwritten,
    Damaged(DamageKind, String),
    /// To be skipped without a word.
    Ignored,
}

impl LogReader {
    /// Reads `file`, the log `log_number`, under the rules of `mode`.
    pub fn new(file: Arc<dyn ReadFile>, log_number: u64, mode: WalRecoveryMode) -> LogReader {
        LogReader {
            file,
            log_number: log_number as u32,
            mode,
            block: Vec::new(),
            block_start: 0,
            position: 0,
            last_block: false,
            recycled: false,
            ordinary: false,
            gapless: false,
            unwritten: false,
            ends_open: false,
            header_at: 0,
            salvaging: false,
            compressed: false,
            record: Vec::new(),
            ended: false,
            timestamp_sizes: BTreeMap::new(),
            predecessor: None,
            end_offset: 0,
            record_end: 0,
        }
    }

    /// Reads `file`, a MANIFEST: as RocksDB does, a record that the file ends in is left out. Other than there,
    /// that is damage if intact records follow: a broken length would otherwise hide them all.
    pub fn of_manifest(file: Arc<dyn ReadFile>) -> LogReader {
        let mode = WalRecoveryMode::TolerateCorruptedTailRecords;
        LogReader { gapless: true, ..LogReader::new(file, 0, mode) }
    }

    /// Goes back to just after the last record that [`LogReader::next`] gave, so that records that were appended since come next. For a
    /// MANIFEST that somebody else writes; a record that was half there is read again.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn resume(&mut self) -> Result<()> {
        let within = self.record_end % BLOCK_SIZE as u64;
        self.block.clear();
        self.block_start = self.record_end - within;
        (self.last_block, self.ended, self.ends_open) = (false, false, false);
        (self.unwritten, self.salvaging) = (false, false);
        self.read_block()?;
        self.position = (within as usize).min(self.block.len());
        Ok(())
    }

    /// True once [`LogReader::next`] has ended a log in front of something: records of another log, filler, or zeros. The
    /// writer cuts that off when it starts another log, and syncs the cut before the other log is durable: if there is
    /// another, this one may have lost its end with the power.
    pub fn ends_open(&self) -> bool {
        self.ended && (self.ends_open || self.unwritten)
    }

    /// The next logical record.
    ///
    /// # Errors
    /// Those of reading the file. Damage in its contents is an outcome, not an error.
    #[expect(clippy::should_implement_trait, reason = "lends its buffer")]
    pub fn next(&mut self) -> Result<ReadOutcome<'_>> {
        let mut in_record = false;
        let mut record_start = 0;
        self.record.clear();
        while !self.ended {
            let physical = if self.salvaging { self.salvage()? } else { self.physical()? };
            let offset = self.header_at;
            match physical {
                Physical::Fragment(kind, range) if self.salvaging => {
                    if matches!(kind, kind::FULL | kind::FIRST) {
                        (record_start, in_record) = (offset, true);
                        self.record.clear();
                    }
                    self.record.extend_from_slice(&self.block[range]);
                    if in_record && matches!(kind, kind::FULL | kind::LAST) {
                        return self.finish_record(record_start);
                    }
                }
                Physical::Fragment(kind, range) => {
                    if self.unwritten && (self.gapless || self.reports_torn_tail()) {
                        let what = "a record after bytes nothing was written to";
                        self.ended = true;
                        return Ok(ReadOutcome::Damaged(self.damage(DamageKind::Fragments, offset, what)));
                    }
                    let begins = matches!(kind, kind::FULL | kind::FIRST);
                    if begins == in_record {
                        let what = if begins {
                            "a record starts inside another"
                        } else {
                            "a fragment without its start"
                        };
                        let damage = self.damage(DamageKind::Fragments, offset, what);
                        if begins {
                            // The interrupted record is lost; this one is read by the next call.
                            self.position = (offset - self.block_start) as usize;
                        }
                        return Ok(ReadOutcome::Damaged(damage));
                    }
                    if begins {
                        record_start = offset;
                        in_record = true;
                    }
                    self.record.extend_from_slice(&self.block[range]);
                    if matches!(kind, kind::FULL | kind::LAST) {
                        return self.finish_record(record_start);
                    }
                }
                Physical::EndOfFile => {
                    self.ended = true;
                    if in_record && self.reports_torn_tail() {
                        let damage =
                            self.damage(DamageKind::TornTail, record_start, "the last record is cut short");
                        return Ok(ReadOutcome::Damaged(damage));
                    }
                }
                Physical::Torn(what) => {
                    self.ended = true;
                    if self.reports_torn_tail() {
                        return Ok(ReadOutcome::Damaged(self.damage(DamageKind::TornTail, offset, what)));
                    }
                }
                Physical::OldLog => {
                    if self.mode == WalRecoveryMode::SkipAnyCorruptedRecords {
                        in_record = false;
                        self.record.clear();
                        continue;
                    }
                    (self.ended, self.ends_open) = (true, true);
                    if in_record && self.reports_torn_tail() {
                        let damage =
                            self.damage(DamageKind::TornTail, record_start, "the last record is cut short");
                        return Ok(ReadOutcome::Damaged(damage));
                    }
                }
                Physical::Unwritten if in_record => {
                    let kind = self.or_torn_write(DamageKind::Fragments, offset)?;
                    return Ok(ReadOutcome::Damaged(self.damage(kind, offset, "zeros inside a record")));
                }
                Physical::Unwritten => {
                    let what = "zeros where a record should be";
                    if self.or_torn_write(DamageKind::Fragments, offset)? == DamageKind::TornWrite {
                        return Ok(ReadOutcome::Damaged(self.damage(DamageKind::TornWrite, offset, what)));
                    }
                    self.unwritten = true;
                }
                Physical::Ignored => {}
                Physical::Damaged(kind, what) => {
                    let tolerated = self.recycled
                        && self.mode == WalRecoveryMode::TolerateCorruptedTailRecords
                        && matches!(kind, DamageKind::Checksum | DamageKind::Length);
                    if !tolerated {
                        let kind = self.or_torn_write(kind, offset)?;
                        return Ok(ReadOutcome::Damaged(self.damage(kind, offset, &what)));
                    }
                    self.ended = true;
                }
            }
        }
        Ok(ReadOutcome::End)
    }

    /// True if a log that ends inside a record is worth a report.
    fn reports_torn_tail(&self) -> bool {
        matches!(self.mode, WalRecoveryMode::AbsoluteConsistency | WalRecoveryMode::PointInTimeRecovery)
    }

    /// The kind of damage of the record at `offset`. In a MANIFEST, of which each write is synced before the next, a
    /// sector of zeros may be what a loss of power left of the last write; what follows shows whether it was the
    /// last.
    fn or_torn_write(&mut self, kind: DamageKind, offset: u64) -> Result<DamageKind> {
        if !self.gapless || !self.a_sector_is_lost(offset)? {
            return Ok(kind);
        }
        self.salvaging = true;
        self.position = (offset + 1 - self.block_start) as usize;
        Ok(DamageKind::TornWrite)
    }

    /// True if from `offset` on a whole sector, or what there is of it, is zero.
    fn a_sector_is_lost(&self, offset: u64) -> Result<bool> {
        /// The least that a disk writes.
        const SECTOR: u64 = 512;
        let mut start = offset;
        let mut buf = [0; SECTOR as usize];
        loop {
            let end = (start / SECTOR + 1) * SECTOR;
            let got = self.file.read_at(start, &mut buf[..(end - start) as usize])?;
            if got == 0 {
                return Ok(false);
            }
            if buf[..got].iter().all(|byte| *byte == 0) {
                return Ok(true);
            }
            start = end;
        }
    }

    /// The next intact fragment, wherever it starts.
    fn salvage(&mut self) -> Result<Physical> {
        loop {
            let found =
                (self.position..self.block.len()).find(|&at| intact_fragment(&self.block[at..]).is_some());
            if let Some(at) = found {
                let len = intact_fragment(&self.block[at..]).unwrap_or(HEADER_LEN);
                self.header_at = self.block_start + at as u64;
                self.position = at + len;
                return Ok(Physical::Fragment(self.block[at + 6], at + HEADER_LEN..at + len));
            }
            if !self.read_block()? {
                return Ok(Physical::EndOfFile);
            }
        }
    }

    fn damage(&self, kind: DamageKind, offset: u64, what: &str) -> Damage {
        let error = Error::corruption(format!("{}: offset {offset}: {what}", self.file.path().display()));
        Damage { kind, offset, error }
    }

    fn finish_record(&mut self, start: u64) -> Result<ReadOutcome<'_>> {
        if self.compressed {
            match decompress(&self.record) {
                Some(plain) => self.record = plain,
                None => {
                    let what = "a compressed record does not decompress";
                    return Ok(ReadOutcome::Damaged(self.damage(DamageKind::Undecodable, start, what)));
                }
            }
        }
        if !self.salvaging {
            self.record_end = self.end_offset;
        }
        Ok(ReadOutcome::Record(&self.record, start))
    }

    /// Reads the next block; false at the end of the file.
    fn read_block(&mut self) -> Result<bool> {
        if self.last_block {
            return Ok(false);
        }
        self.block_start += self.block.len() as u64;
        self.block.resize(BLOCK_SIZE, 0);
        let got = self.file.read_at(self.block_start, &mut self.block)?;
        self.block.truncate(got);
        self.last_block = got < BLOCK_SIZE;
        self.position = 0;
        Ok(got > 0)
    }

    fn physical(&mut self) -> Result<Physical> {
        let left = self.block.len() - self.position;
        if left < HEADER_LEN {
            self.header_at = self.block_start + self.position as u64;
            if !self.last_block || left == 0 {
                return if self.read_block()? { self.physical() } else { Ok(Physical::EndOfFile) };
            }
            self.position = self.block.len();
            return Ok(Physical::Torn("the file ends inside a record header"));
        }
        self.header_at = self.block_start + self.position as u64;
        let header = &self.block[self.position..];
        let stored_crc = unmask(fixed32_at(header, 0));
        let len = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let kind = header[6];
        let recyclable = is_recyclable(kind);
        let header_len = if recyclable { RECYCLABLE_HEADER_LEN } else { HEADER_LEN };
        if left < header_len {
            if self.last_block {
                self.position = self.block.len();
                return Ok(Physical::Torn("the file ends inside a record header"));
            }
            // The tail of a block in a recycled file: too short for its headers.
            return if self.read_block()? { self.physical() } else { Ok(Physical::EndOfFile) };
        }
        if left < RECYCLABLE_HEADER_LEN && header.iter().all(|byte| *byte == 0) {
            // The tail of a block that a header with a log number did not fit in.
            self.position = self.block.len();
            return Ok(Physical::Ignored);
        }
        if kind == kind::ZERO && len == 0 {
            let hides = (self.gapless || self.reports_torn_tail()) && self.record_follows();
            self.position = self.block.len();
            if hides {
                return Ok(Physical::Damaged(DamageKind::Fragments, "zeros before a record".into()));
            }
            return Ok(Physical::Unwritten);
        }
        if recyclable && self.ordinary {
            self.position = self.block.len();
            let what = "a record of a recycled log in a log that is none";
            return Ok(Physical::Damaged(DamageKind::UnknownType, what.into()));
        }
        if recyclable {
            if fixed32_at(header, HEADER_LEN) != self.log_number {
                if self.is_of_this_log(header, len) {
                    self.position = self.block.len();
                    return Ok(Physical::Damaged(
                        DamageKind::Checksum,
                        "a record's log number is wrong".into(),
                    ));
                }
                return Ok(self.skip_old_record(header_len + len));
            }
            self.recycled = true;
        }
        if header_len + len > left {
            // The last record of a file, intact but for its length, is no torn one either.
            let whole = crc32c(&header[6..]) == stored_crc;
            let torn = self.last_block && !whole && !(self.gapless && self.record_follows());
            self.position = self.block.len();
            if torn {
                return Ok(Physical::Torn("the file ends inside a record"));
            }
            return Ok(Physical::Damaged(DamageKind::Length, "a record's length runs past its block".into()));
        }
        if crc32c(&header[6..header_len + len]) != stored_crc {
            self.position = self.block.len();
            return Ok(Physical::Damaged(DamageKind::Checksum, "a record's checksum does not match".into()));
        }
        let start = self.position + header_len;
        self.position = start + len;
        self.end_offset = self.block_start + self.position as u64;
        Ok(self.classify(kind, start..start + len))
    }

    /// True if the checksum of a recyclable record matches once it carries this log's number: the number was
    /// damaged, and it is no leftover that ends the log.
    fn is_of_this_log(&self, header: &[u8], len: usize) -> bool {
        let Some(payload) = header.get(RECYCLABLE_HEADER_LEN..RECYCLABLE_HEADER_LEN + len) else {
            return false;
        };
        let crc = crc32c_extend(crc32c(&header[6..7]), &self.log_number.to_le_bytes());
        crc32c_extend(crc, payload) == unmask(fixed32_at(header, 0))
    }

    /// True if an intact fragment of this log starts anywhere after `position` in the block.
    fn record_follows(&self) -> bool {
        let rest = &self.block[self.position + 1..];
        (0..rest.len()).any(|at| {
            intact_fragment(&rest[at..]).is_some_and(|len| len > HEADER_LEN)
                || intact_recyclable_fragment(&rest[at..], self.log_number)
        })
    }

    fn skip_old_record(&mut self, len: usize) -> Physical {
        self.position = (self.position + len).min(self.block.len());
        Physical::OldLog
    }

    /// Lengths of the timestamps that keys end with, in bytes, by column family, as far as the log has named them before the
    /// record that was read last. The keys of the others have none.
    pub fn timestamp_sizes(&self) -> &BTreeMap<CfId, u16> {
        &self.timestamp_sizes
    }

    /// The log before it, if this one has named it so far and nobody has taken that yet.
    pub fn take_predecessor(&mut self) -> Option<Predecessor> {
        self.predecessor.take()
    }

    /// Offset just past the last intact physical record so far, in bytes from the start of the file: of a log that was read to its
    /// end, its length when it was closed.
    pub fn end_offset(&self) -> u64 {
        self.end_offset
    }

    /// Adds to what the log has named; `None` if one comes twice.
    fn take_timestamp_sizes(&mut self, sizes: Vec<(CfId, u16)>) -> Option<()> {
        for (cf, len) in sizes {
            if self.timestamp_sizes.insert(cf, len).is_some() {
                return None;
            }
        }
        // The writer leaves the rest of a block that has no room for such a record.
        self.unwritten = false;
        Some(())
    }

    /// The purpose of an intact physical record.
    fn classify(&mut self, kind: u8, range: std::ops::Range<usize>) -> Physical {
        let payload = &self.block[range.clone()];
        match kind {
            kind::FULL..=kind::LAST => {
                self.ordinary = true;
                Physical::Fragment(kind, range)
            }
            5..=8 => Physical::Fragment(kind - kind::RECYCLABLE, range),
            kind::SET_COMPRESSION => match Decoder::new(payload).fixed32() {
                Some(0) => Physical::Ignored,
                Some(7) => {
                    self.compressed = true;
                    Physical::Ignored
                }
                _ => Physical::Damaged(DamageKind::Undecodable, "unknown WAL compression type".into()),
            },
            kind::TIMESTAMP_SIZE | kind::RECYCLABLE_TIMESTAMP_SIZE => {
                let sizes = decode_timestamp_sizes(payload);
                match sizes.and_then(|sizes| self.take_timestamp_sizes(sizes)) {
                    Some(()) => Physical::Ignored,
                    None => {
                        let what = "a record of timestamp sizes does not decode";
                        Physical::Damaged(DamageKind::Undecodable, what.into())
                    }
                }
            }
            kind::PREDECESSOR | kind::RECYCLABLE_PREDECESSOR => match Predecessor::decode(payload) {
                Some(predecessor) => {
                    self.predecessor = Some(predecessor);
                    Physical::Ignored
                }
                None => {
                    Physical::Damaged(DamageKind::Undecodable, "a predecessor record does not decode".into())
                }
            },
            other if other & kind::IGNORABLE != 0 => Physical::Ignored,
            other => Physical::Damaged(DamageKind::UnknownType, format!("unknown record type {other}")),
        }
    }
}

/// The pairs of a record of timestamp sizes: column family, u32, and length, u16 and not 0.
fn decode_timestamp_sizes(payload: &[u8]) -> Option<Vec<(CfId, u16)>> {
    let mut pairs = payload.chunks_exact(6);
    let pair = |pair: &[u8]| (CfId(fixed32_at(pair, 0)), u16::from_le_bytes([pair[4], pair[5]]));
    let sizes: Vec<_> = pairs.by_ref().map(pair).collect();
    (pairs.remainder().is_empty() && sizes.iter().all(|(_, len)| *len != 0)).then_some(sizes)
}

/// The length of the fragment with an ordinary header that `bytes` start with, if it is intact.
fn intact_fragment(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < HEADER_LEN || !matches!(bytes[6], kind::FULL..=kind::LAST) {
        return None;
    }
    let end = HEADER_LEN + usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    (end <= bytes.len() && crc32c(&bytes[6..end]) == unmask(fixed32_at(bytes, 0))).then_some(end)
}

/// True if `bytes` start with an intact fragment of log `number` whose header says so.
fn intact_recyclable_fragment(bytes: &[u8], number: u32) -> bool {
    if bytes.len() < RECYCLABLE_HEADER_LEN
        || !matches!(bytes[6], 5..=8)
        || fixed32_at(bytes, HEADER_LEN) != number
    {
        return false;
    }
    let end = RECYCLABLE_HEADER_LEN + usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
    end <= bytes.len() && crc32c(&bytes[6..end]) == unmask(fixed32_at(bytes, 0))
}

/// The contents of one zstd frame; `None` if it is damaged or larger than any batch can be.
fn decompress(frame: &[u8]) -> Option<Vec<u8>> {
    const LARGEST: u64 = 4 << 30;
    let mut plain = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(frame).ok()?;
    decoder.take(LARGEST).read_to_end(&mut plain).ok()?;
    Some(plain)
}

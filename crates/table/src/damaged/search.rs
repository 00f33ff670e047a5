//! Finding the blocks of a table whose index is damaged.
//!
//! Data blocks stand one after the other from the first byte of the file on, but nothing before a block says how long it is. So every length is
//! tried: a block ends where its checksum holds, it decompresses, and its entries decode and come after those before. Within damage
//! every byte is tried as the first of a block.
//!
//! A block of a codec costs a checksum for each place that could be its trailer, so the work grows with the square of its length:
//! [`LONGEST`] and a budget bound it. Data that is not found within them is reported as damaged.

use super::{TableEntries, TablePart, is_damage};
use crate::block::{HASH_INDEX_BIT, SEPARATED_BIT, packed_word};
use crate::compress::decompress;
use crate::format::{BlockHandle, FOOTER_LEN, Footer, TRAILER_LEN, trailer, verify_block};
use crate::properties::decode_pairs;
use crate::reader::Loading;
use crate::source::BlockSource;
use outcrop_base::checksum::ChecksumType;
use outcrop_base::coding::{Decoder, fixed32_at};
use outcrop_base::{Comparator, Result};
use outcrop_env::ReadFile;
use outcrop_monitor::Watch;
use outcrop_options::CompressionType;
use std::sync::Arc;

/// The longest block that is found, in bytes as stored.
const LONGEST: usize = 1 << 20;
/// The longest that is looked for before any was found.
const FIRST: usize = 64 << 10;
/// Bytes of checksums for each byte of the file, and at least.
const BUDGET: u64 = 1024;
const LEAST_BUDGET: u64 = 256 << 20;
/// Bits of the last word of a block that are not its number of restart points.
const FLAGS: u32 = HASH_INDEX_BIT | SEPARATED_BIT | 3 << 29;

/// A search under way.
pub struct Search<'s> {
    source: &'s BlockSource,
    end: u64,
    /// Bytes of checksums that may still be computed.
    budget: u64,
    /// The longest block so far, or the bytes of most blocks; 0: unknown.
    longest: usize,
}

impl<'s> Search<'s> {
    /// Of the blocks that end before `end`; most have `typical` bytes, if that is known.
    pub fn new(source: &'s BlockSource, end: u64, typical: Option<u64>) -> Search<'s> {
        let budget = source.file.size().saturating_mul(BUDGET).max(LEAST_BUDGET);
        let longest = typical.map_or(0, |bytes| bytes.clamp(64, LONGEST as u64) as usize);
        Search { source, end, budget, longest }
    }

    /// Passes all that is found to `visit`, and what lies between.
    ///
    /// # Errors
    /// Those of `visit`, and of the file system.
    pub fn run(
        mut self,
        comparator: &Comparator,
        visit: &mut impl FnMut(TablePart<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut gap) = (0, None);
        let (mut last, mut entries) = (Vec::new(), TableEntries::default());
        while at < self.end {
            let found = match self.budget {
                0 => None,
                _ => self.block_at(at, comparator, &last, &mut entries)?,
            };
            match found {
                Some(len) => {
                    if let Some(from) = gap.take() {
                        visit(damaged(from, at))?;
                    }
                    if let Some(key) = entries.last_key() {
                        last = key.to_vec();
                    }
                    visit(TablePart::Whole(&entries))?;
                    at += len as u64;
                }
                None => {
                    gap.get_or_insert(at);
                    at = if self.budget == 0 { self.end } else { at + 1 };
                }
            }
        }
        gap.map_or(Ok(()), |from| visit(damaged(from, self.end)))
    }

    /// The bytes of the block at `at`, its trailer among them, with its entries; `None`: none begins there.
    fn block_at(
        &mut self,
        at: u64,
        comparator: &Comparator,
        last: &[u8],
        entries: &mut TableEntries,
    ) -> Result<Option<usize>> {
        let reach = if self.longest == 0 { FIRST } else { LONGEST.min(self.longest.saturating_mul(4)) };
        let reach = (reach as u64).min(self.end - at) as usize;
        let mut bytes = vec![0; reach];
        match self.source.read_at(at, &mut bytes, Watch::OFF) {
            Ok(()) => {}
            Err(error) if is_damage(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let (footer, mut buffer) = (&self.source.footer, Vec::new());
        for len in 4..=reach.saturating_sub(TRAILER_LEN) {
            let codec = bytes[len];
            if CompressionType::from_byte(codec).is_err() || (codec == 0 && !may_be_block(&bytes[..len])) {
                continue;
            }
            self.budget = self.budget.saturating_sub(len as u64);
            let base = footer.base_context_checksum;
            let expected = trailer(footer.checksum, base, &bytes[..len], codec, at);
            if bytes[len..len + TRAILER_LEN] == expected {
                let handle = BlockHandle { offset: at, size: len as u64 };
                let stored = &bytes[..len + TRAILER_LEN];
                let contents =
                    self.source.unpack(handle, stored, &mut buffer, (Loading::NotKept, Watch::OFF));
                let decoded = contents.and_then(|contents| entries.decode(contents, comparator, last));
                if decoded.is_ok() {
                    self.longest = self.longest.max(len);
                    return Ok(Some(len + TRAILER_LEN));
                }
            }
            if self.budget == 0 {
                break;
            }
        }
        Ok(None)
    }
}

fn damaged(from: u64, to: u64) -> TablePart<'static> {
    let reason = "no block that is whole is found there, and the index is damaged".to_string();
    TablePart::Damaged { offset: from, bytes: to - from, until: None, reason }
}

/// True if the end of what would be an uncompressed block may be that of one.
fn may_be_block(contents: &[u8]) -> bool {
    let Some(word) = packed_word(contents) else { return false };
    let restarts =
        u64::from(if word & SEPARATED_BIT != 0 || word & HASH_INDEX_BIT != 0 { 0 } else { word & !FLAGS });
    restarts * 4 + 4 <= contents.len() as u64
}

/// A footer by which blocks of the file verify, where its own does not decode: all but one of its fields may be whole. `data_end` is where
/// data ends, if that is known.
///
/// # Errors
/// Of the file system.
pub fn footer(
    file: &Arc<dyn ReadFile>,
    data_end: Option<u64>,
    comparator: &Comparator,
) -> Result<Option<Footer>> {
    let Some(at) = file.size().checked_sub(FOOTER_LEN as u64) else { return Ok(None) };
    let mut bytes = [0; FOOTER_LEN];
    match file.read_exact_at(at, &mut bytes) {
        Err(error) if is_damage(&error) => return Ok(None),
        read => read?,
    }
    let all = [ChecksumType::Xxh3, ChecksumType::Crc32c, ChecksumType::XxHash64, ChecksumType::XxHash];
    let named = ChecksumType::from_byte(bytes[0]).ok().filter(|named| *named != ChecksumType::None);
    let checksums: Vec<ChecksumType> = named.into_iter().chain(all).collect();
    let candidates = |version: u32| checksums.iter().map(move |checksum| (*checksum, version));
    let stored = fixed32_at(&bytes, 41);
    let versions: &[u32] = if (2..6).contains(&stored) { &[5, 6] } else { &[6, 5] };
    let candidates: Vec<Footer> = versions
        .iter()
        .flat_map(|version| candidates(*version).collect::<Vec<_>>())
        .map(|(checksum, version)| guessed(&bytes, at, checksum, version))
        .collect();
    for footer in &candidates {
        if has_metaindex(&**file, footer) {
            return Ok(Some(*footer));
        }
    }
    let Some(end) = data_end else { return Ok(None) };
    for footer in candidates {
        let source = BlockSource::uncached(file.clone(), footer);
        let mut entries = TableEntries::default();
        if Search::new(&source, end, None).block_at(0, comparator, &[], &mut entries)?.is_some() {
            return Ok(Some(footer));
        }
    }
    Ok(None)
}

/// The footer that `bytes` are if this is its checksum and version.
fn guessed(bytes: &[u8; FOOTER_LEN], at: u64, checksum: ChecksumType, version: u32) -> Footer {
    if version >= 6 {
        let size = u64::from(fixed32_at(bytes, 13));
        let offset = at.saturating_sub(size.saturating_add(TRAILER_LEN as u64));
        let metaindex = BlockHandle { offset, size };
        let base_context_checksum = fixed32_at(bytes, 9);
        return Footer { checksum, version, base_context_checksum, metaindex, index: None };
    }
    let mut decoder = Decoder::new(&bytes[1..41]);
    let metaindex = BlockHandle::decode(&mut decoder).unwrap_or_default();
    let index = BlockHandle::decode(&mut decoder);
    Footer { checksum, version, base_context_checksum: 0, metaindex, index }
}

/// True if the block verifies that the footer names as the metaindex, and is one.
fn has_metaindex(file: &dyn ReadFile, footer: &Footer) -> bool {
    let handle = footer.metaindex;
    if handle.size < 4 || handle.end().is_none_or(|end| end > file.size()) {
        return false;
    }
    let mut stored = vec![0; handle.size as usize + TRAILER_LEN];
    let read = file.read_exact_at(handle.offset, &mut stored);
    let Ok((contents, codec)) = read.and_then(|()| verify_block(file, footer, handle.offset, &stored)) else {
        return false;
    };
    let mut block = Vec::new();
    decompress(codec, None, contents, &mut block).and_then(|()| decode_pairs(&block).map(drop)).is_ok()
}

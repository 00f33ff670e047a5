//! Reads values from a finished blob file. Each read verifies the whole record, but for those that say that they do not.
//!
//! Concurrency: immutable after opening.

use super::{BlobIndex, FOOTER_LEN, HAS_TTL, HEADER_LEN, MAGIC, RECORD_HEADER_LEN, VERSION};
use crate::compress::decompress;
use crate::format::{corruption, not_supported};
use outcrop_base::checksum::{crc32c, mask};
use outcrop_base::coding::{fixed32_at, fixed64_at};
use outcrop_base::{Comparator, Error, ErrorKind, Result};
use outcrop_env::ReadFile;
use outcrop_monitor::IoStats;
use outcrop_options::CompressionType;
use std::sync::Arc;

/// An open blob file.
pub struct BlobReader {
    pub(super) file: Arc<dyn ReadFile>,
    pub(super) codec: CompressionType,
    /// Where records end.
    pub(super) end: u64,
    count: u64,
    comparator: Comparator,
}

/// Under an order of the application, which may call keys of different lengths the same: bytes before a value that are
/// searched for its record's header, which is then not where the length of the sought key says.
const LONGEST_SEARCH: u64 = 1 << 20;

impl BlobReader {
    /// Opens the blob file in `file`, which belongs to this column family.
    ///
    /// # Errors
    /// Corruption naming file and offset for what is no finished blob file of this column family;
    /// NotSupported for files whose records expire.
    pub fn open(file: Arc<dyn ReadFile>, column_family_id: u32) -> Result<BlobReader> {
        if file.size() < (HEADER_LEN + FOOTER_LEN) as u64 {
            return Err(corruption(&*file, 0, format!("{} bytes are too few for a blob file", file.size())));
        }
        let codec = read_header(&*file, column_family_id)?;
        let count = read_footer(&*file)?;
        let end = file.size() - FOOTER_LEN as u64;
        Ok(BlobReader { file, codec, end, count, comparator: Comparator::Bytewise })
    }

    /// Of a file whose header and footer may be damaged, for values that are stored with `codec`. Records verify by themselves.
    pub fn of_damaged(file: Arc<dyn ReadFile>, codec: CompressionType) -> BlobReader {
        let end = file.size();
        BlobReader { file, codec, end, count: 0, comparator: Comparator::Bytewise }
    }

    /// The same, for keys in the order of `comparator`: which of them are the same, it says.
    pub fn ordered_by(self, comparator: Comparator) -> BlobReader {
        BlobReader { comparator, ..self }
    }

    /// The same blob file read through `file`, which has the same bytes.
    pub fn reading_from(&self, file: Arc<dyn ReadFile>) -> BlobReader {
        BlobReader { file, comparator: self.comparator.clone(), ..*self }
    }

    /// Blobs in the file.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The file.
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.file
    }

    /// Reads the value of `user_key` that a table refers to by `index` into `value` (cleared first). The record may have the
    /// key in other bytes, if they are the same to the order.
    ///
    /// # Errors
    /// Corruption naming file and offset if `index` is not that of such a record, or the record does not
    /// verify; and IO errors.
    pub fn get(&self, user_key: &[u8], index: &BlobIndex, value: &mut Vec<u8>) -> Result<()> {
        let read = self.read(user_key.len(), user_key, index, value);
        match (&self.comparator, &read) {
            (Comparator::User(_), Err(error)) if error.kind() == ErrorKind::Corruption => {
                match self.length_of_key(index)? {
                    Some(len) if len != user_key.len() => self.read(len, user_key, index, value),
                    _ => read,
                }
            }
            _ => read,
        }
    }

    /// Reads the bytes of the value that `index` refers to, and nothing around them: neither checksum nor key is compared.
    ///
    /// # Errors
    /// Corruption naming file and offset if `index` points outside the file, or the bytes do not decompress; and IO errors.
    ///
    /// Source: RocksDB `db/blob/blob_file_reader.cc`, `BlobFileReader::GetBlob`.
    pub fn get_unverified(&self, index: &BlobIndex, value: &mut Vec<u8>) -> Result<()> {
        let stored = self.read_span(0, index, value)?;
        self.decode(index, &stored, value).map(|compressed| {
            if !compressed {
                *value = stored;
            }
        })
    }

    /// Reads what a table refers to by `index`, and the `before` bytes before it. The memory is that of `value`.
    fn read_span(&self, before: u64, index: &BlobIndex, value: &mut Vec<u8>) -> Result<Vec<u8>> {
        value.clear();
        let broken = |what: &str| corruption(&*self.file, index.offset, what);
        if index.codec != self.codec {
            return Err(broken("the blob index names another codec than the file's header"));
        }
        let start = index.offset.checked_sub(before).filter(|start| *start >= HEADER_LEN as u64);
        let end = index.offset.checked_add(index.size);
        let (Some(start), Some(end)) = (start, end.filter(|end| *end <= self.end)) else {
            return Err(broken("the blob index points outside the file"));
        };
        let mut record = std::mem::take(value);
        record.resize((end - start) as usize, 0);
        self.file.read_exact_at(start, &mut record)?;
        IoStats::add_read(end - start);
        Ok(record)
    }

    /// Decompresses the value `stored` into `value`; false if it is not compressed.
    fn decode(&self, index: &BlobIndex, stored: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        if self.codec == CompressionType::None {
            return Ok(false);
        }
        let within =
            |error: Error| error.within(format!("{}: offset {}", self.file.path().display(), index.offset));
        decompress(self.codec as u8, None, stored, value).map_err(within)?;
        Ok(true)
    }

    /// As [`BlobReader::get`], if the record's key has `key_len` bytes.
    fn read(&self, key_len: usize, user_key: &[u8], index: &BlobIndex, value: &mut Vec<u8>) -> Result<()> {
        let broken = |what: &str| corruption(&*self.file, index.offset, what);
        let before = RECORD_HEADER_LEN + key_len;
        let mut record = self.read_span(before as u64, index, value)?;
        let (header, blob) = record.split_at(RECORD_HEADER_LEN);
        if fixed32_at(header, 24) != mask(crc32c(&header[..24])) {
            return Err(broken("the checksum of a blob record's header does not match"));
        }
        if (fixed64_at(header, 0), fixed64_at(header, 8)) != (key_len as u64, index.size) {
            return Err(broken("a blob record has other lengths than its index"));
        }
        if fixed32_at(header, 28) != mask(crc32c(blob)) {
            return Err(broken("the checksum of a blob does not match"));
        }
        let (key, stored) = blob.split_at(key_len);
        if !self.comparator.same(key, user_key) {
            return Err(broken("a blob record has another key than its index"));
        }
        if !self.decode(index, stored, value)? {
            record.drain(..before);
            *value = record;
        }
        Ok(())
    }

    /// The length of the key before the value at `index`, by the header that says that it is the value's; `None` if there is
    /// none in reach.
    #[cold]
    fn length_of_key(&self, index: &BlobIndex) -> Result<Option<usize>> {
        let from = index.offset.saturating_sub(LONGEST_SEARCH).max(HEADER_LEN as u64);
        let last = index.offset.min(self.file.size()).saturating_sub(RECORD_HEADER_LEN as u64);
        if last < from {
            return Ok(None);
        }
        let mut bytes = vec![0; (last - from) as usize + RECORD_HEADER_LEN];
        self.file.read_exact_at(from, &mut bytes)?;
        let is_header = |len: &usize| {
            let header = &bytes[bytes.len() - RECORD_HEADER_LEN - len..][..RECORD_HEADER_LEN];
            (fixed64_at(header, 0), fixed64_at(header, 8)) == (*len as u64, index.size)
                && fixed32_at(header, 24) == mask(crc32c(&header[..24]))
        };
        // From short keys to long ones: a header within another record's bytes lies further away than the value's own.
        Ok((0..=(last - from) as usize).find(is_header))
    }
}

fn read_header(file: &dyn ReadFile, column_family_id: u32) -> Result<CompressionType> {
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(0, &mut header)?;
    if fixed32_at(&header, 0) != MAGIC {
        return Err(corruption(file, 0, "bad blob file magic number"));
    }
    let version = fixed32_at(&header, 4);
    if version != VERSION {
        return Err(not_supported(file, format!("blob file version {version}")));
    }
    let family = fixed32_at(&header, 8);
    if family != column_family_id {
        let what = format!("the blob file is of column family {family}, not {column_family_id}");
        return Err(corruption(file, 8, what));
    }
    if header[12] & HAS_TTL != 0 || header[14..] != [0; 16] {
        return Err(not_supported(file, "a blob file whose records expire (TTL)"));
    }
    CompressionType::from_byte(header[13]).map_err(|error| not_supported(file, error))
}

/// Checks the footer; gives the number of blobs.
fn read_footer(file: &dyn ReadFile) -> Result<u64> {
    let at = file.size() - FOOTER_LEN as u64;
    let mut footer = [0; FOOTER_LEN];
    file.read_exact_at(at, &mut footer)?;
    if fixed32_at(&footer, 28) != mask(crc32c(&footer[..28])) {
        return Err(corruption(file, at, "the checksum of the blob file's footer does not match"));
    }
    if fixed32_at(&footer, 0) != MAGIC {
        return Err(corruption(file, at, "bad blob file magic number in the footer"));
    }
    if footer[12..28] != [0; 16] {
        return Err(not_supported(file, "a blob file whose records expire (TTL)"));
    }
    Ok(fixed64_at(&footer, 4))
}

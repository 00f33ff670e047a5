//! Walking a blob file record by record, as tools do that have no table to say where values are.

use super::{BlobReader, HEADER_LEN, RECORD_HEADER_LEN};
use crate::compress::decompress;
use crate::format::corruption;
use outcrop_base::Result;
use outcrop_base::checksum::{crc32c, mask};
use outcrop_base::coding::{fixed32_at, fixed64_at};
use outcrop_env::ReadFile;
use outcrop_options::CompressionType;

/// A key with its value in a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRecord<'r> {
    /// Where the record begins in the file.
    pub offset: u64,
    /// The key.
    pub key: &'r [u8],
    /// The value as it is stored.
    pub stored: &'r [u8],
    /// The value.
    pub value: &'r [u8],
}

/// The column family whose blob file this says it is.
///
/// # Errors
/// Corruption if the file is too short to say; of reading it.
pub fn column_family_of(file: &dyn ReadFile) -> Result<u32> {
    if file.size() < HEADER_LEN as u64 {
        return Err(corruption(file, 0, "too short for the header of a blob file"));
    }
    let mut header = [0; HEADER_LEN];
    file.read_exact_at(0, &mut header)?;
    Ok(fixed32_at(&header, 8))
}

impl BlobReader {
    /// How values are stored.
    pub fn codec(&self) -> CompressionType {
        self.codec
    }

    /// Calls `each` for every record, in the order of the file, verified.
    ///
    /// # Errors
    /// Corruption naming file and offset of the first record that does not verify; of reading; those of `each`.
    pub fn each_record(&self, mut each: impl FnMut(&BlobRecord<'_>) -> Result<()>) -> Result<()> {
        let file = &*self.file;
        let (mut offset, mut blob, mut value) = (BlobReader::FIRST, Vec::new(), Vec::new());
        while let Some((key_len, end)) = self.read_record(offset, &mut blob)? {
            let (key, stored) = blob.split_at(key_len);
            let value = match self.codec {
                CompressionType::None => stored,
                codec => {
                    value.clear();
                    let at = |error: outcrop_base::Error| {
                        error.within(format!("{}: offset {offset}", file.path().display()))
                    };
                    decompress(codec as u8, None, stored, &mut value).map_err(at)?;
                    &value
                }
            };
            each(&BlobRecord { offset, key, stored, value })?;
            offset = end;
        }
        Ok(())
    }

    /// Where the first record is.
    pub const FIRST: u64 = HEADER_LEN as u64;

    /// Verifies the record at `offset`; gives where it ends, `None` if the records end before it.
    ///
    /// # Errors
    /// As [`BlobReader::each_record`].
    pub fn verify_record(&self, offset: u64) -> Result<Option<u64>> {
        Ok(self.read_record(offset, &mut Vec::new())?.map(|(_, end)| end))
    }

    /// Reads the record at `offset`, key and stored value, into `blob` and verifies it; gives the length of its key, and where it ends.
    fn read_record(&self, offset: u64, blob: &mut Vec<u8>) -> Result<Option<(usize, u64)>> {
        let file = &*self.file;
        let limit = self.end;
        if offset >= limit {
            return Ok(None);
        }
        let broken = |what: &str| corruption(file, offset, what);
        let mut header = [0; RECORD_HEADER_LEN];
        let body = offset + RECORD_HEADER_LEN as u64;
        if body > limit {
            return Err(broken("the file ends within a blob record's header"));
        }
        file.read_exact_at(offset, &mut header)?;
        if fixed32_at(&header, 24) != mask(crc32c(&header[..24])) {
            return Err(broken("the checksum of a blob record's header does not match"));
        }
        let (key_len, stored_len) = (fixed64_at(&header, 0), fixed64_at(&header, 8));
        let end = body.checked_add(key_len).and_then(|end| end.checked_add(stored_len));
        let Some(end) = end.filter(|end| *end <= limit) else {
            return Err(broken("the file ends within a blob record"));
        };
        blob.resize((end - body) as usize, 0);
        file.read_exact_at(body, blob)?;
        if fixed32_at(&header, 28) != mask(crc32c(blob)) {
            return Err(broken("the checksum of a blob does not match"));
        }
        Ok(Some((key_len as usize, end)))
    }
}

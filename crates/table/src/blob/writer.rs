//! Writes one blob file, front to back.

use super::{BlobIndex, FOOTER_LEN, HEADER_LEN, MAGIC, RECORD_HEADER_LEN, VERSION, record_len};
use crate::compress::Compressor;
use outcrop_base::checksum::{crc32c, crc32c_extend, mask};
use outcrop_base::{Error, FileNumber, Result};
use outcrop_env::WriteFile;
use outcrop_options::{CompressionOptions, CompressionType};

/// The settings of a blob file.
#[derive(Clone, Debug)]
pub struct BlobWriterOptions {
    /// The file's number.
    pub file_number: FileNumber,
    /// The column family it belongs to.
    pub column_family_id: u32,
    /// Codec of all its values.
    pub compression: CompressionType,
    /// Settings of the codec.
    pub compression_opts: CompressionOptions,
}

/// The facts about a finished blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobSummary {
    /// Blobs in it.
    pub count: u64,
    /// Bytes of their records: the MANIFEST's `total_blob_bytes`.
    pub total_bytes: u64,
    /// Bytes of the file.
    pub file_size: u64,
}

/// Writes one blob file.
pub struct BlobWriter {
    file: Box<dyn WriteFile>,
    options: BlobWriterOptions,
    compressor: Compressor,
    buffer: Vec<u8>,
    count: u64,
    total_bytes: u64,
}

impl BlobWriter {
    /// Starts a blob file in the empty `file`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(mut file: Box<dyn WriteFile>, options: BlobWriterOptions) -> Result<BlobWriter> {
        let mut header = [0; HEADER_LEN];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&VERSION.to_le_bytes());
        header[8..12].copy_from_slice(&options.column_family_id.to_le_bytes());
        header[13] = options.compression as u8;
        file.append(&header)?;
        let compressor = Compressor::new(options.compression, &options.compression_opts);
        Ok(BlobWriter { file, options, compressor, buffer: Vec::new(), count: 0, total_bytes: 0 })
    }

    /// Appends a pair; gives what the table stores in place of the value.
    ///
    /// # Errors
    /// Those of the file and the codec; the file is then to be thrown away.
    pub fn add(&mut self, user_key: &[u8], value: &[u8]) -> Result<BlobIndex> {
        let compressed = self.options.compression != CompressionType::None;
        if compressed {
            self.compressor.encode(value, &mut self.buffer)?;
        }
        let stored = if compressed { self.buffer.as_slice() } else { value };
        let mut header = [0; RECORD_HEADER_LEN];
        header[..8].copy_from_slice(&(user_key.len() as u64).to_le_bytes());
        header[8..16].copy_from_slice(&(stored.len() as u64).to_le_bytes());
        let header_crc = mask(crc32c(&header[..24]));
        header[24..28].copy_from_slice(&header_crc.to_le_bytes());
        let blob_crc = mask(crc32c_extend(crc32c(user_key), stored));
        header[28..].copy_from_slice(&blob_crc.to_le_bytes());
        let index = BlobIndex {
            file_number: self.options.file_number,
            offset: self.size() + (RECORD_HEADER_LEN + user_key.len()) as u64,
            size: stored.len() as u64,
            codec: self.options.compression,
        };
        for part in [&header[..], user_key, stored] {
            self.file.append(part)?;
        }
        self.count += 1;
        self.total_bytes += record_len(user_key.len(), index.size);
        Ok(index)
    }

    /// Bytes written.
    pub fn size(&self) -> u64 {
        HEADER_LEN as u64 + self.total_bytes
    }

    /// Blobs written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the footer and hands everything to the operating system; nothing is synced.
    ///
    /// # Errors
    /// InvalidArgument for a file without blobs, and those of the file.
    pub fn finish(&mut self) -> Result<BlobSummary> {
        if self.count == 0 {
            return Err(Error::invalid_argument("a blob file without blobs cannot be finished"));
        }
        let mut footer = [0; FOOTER_LEN];
        footer[..4].copy_from_slice(&MAGIC.to_le_bytes());
        footer[4..12].copy_from_slice(&self.count.to_le_bytes());
        let crc = mask(crc32c(&footer[..28]));
        footer[28..].copy_from_slice(&crc.to_le_bytes());
        self.file.append(&footer)?;
        self.file.flush()?;
        Ok(BlobSummary {
            count: self.count,
            total_bytes: self.total_bytes,
            file_size: self.size() + FOOTER_LEN as u64,
        })
    }

    /// Makes the file durable and closes it. Its name is durable only once its directory is synced.
    pub fn sync_and_close(&mut self, use_fsync: bool) -> Result<()> {
        if use_fsync {
            self.file.sync_all()?;
        } else {
            self.file.sync()?;
        }
        self.file.close()
    }
}

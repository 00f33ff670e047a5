//! Writing a table outside any database, to be ingested into one.
//!
//! Keys come in ascending order and carry no sequence number; the ingesting database gives the whole file one.
//! Source: RocksDB `table/sst_file_writer.cc`, `include/rocksdb/sst_file_writer.h`.

use crate::collectors::Collectors;
use crate::column_family::ColumnFamilyDescriptor;
use crate::file_checksum::{FileChecksum, WrittenChecksum, while_written};
use crate::in_force::{resolve_objects, sanitize_column_family};
use outcrop_base::keys::internal_key;
use outcrop_base::timestamp::{TIMESTAMP_LEN, stored_key};
use outcrop_base::{CfId, Comparator, Error, Result, SeqNum, Timestamp, ValueType};
use outcrop_env::{Env, OpenWrite};
use outcrop_options::{DbOptions, derive, validate};
use outcrop_table::{TableWriter, TableWriterOptions, unique_id};
use std::path::{Path, PathBuf};

/// The identity RocksDB gives to databases that are none.
const DB_ID: &str = "SST Writer";
/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// The facts about a finished file.
///
/// ```
/// # use outcrop::{ColumnFamilyDescriptor, Env, SstFileWriter};
/// # let env = Env::memory();
/// # env.fs.create_dir_all(std::path::Path::new("/files"))?;
/// let mut writer = SstFileWriter::create("/files/1.sst", &env, &ColumnFamilyDescriptor::default())?;
/// writer.put(b"a", b"1")?;
/// let info = writer.finish()?;
/// assert_eq!((info.num_entries, &info.smallest_key[..]), (1, &b"a"[..]));
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct ExternalFileInfo {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes.
    pub file_size: u64,
    /// Entries in it, range tombstones included.
    pub num_entries: u64,
    /// Its first user key; the begin of a range tombstone counts.
    pub smallest_key: Vec<u8>,
    /// Its last user key, or the end of its last range tombstone.
    pub largest_key: Vec<u8>,
    /// Its checksum as a whole, if [`SstFileWriter::create_with`] was told to make one.
    pub file_checksum: Option<FileChecksum>,
}

/// Writes one table file for [`crate::Db::ingest_external_files`].
///
/// ```
/// # use outcrop::{ColumnFamilyDescriptor, Env, SstFileWriter};
/// # let env = Env::memory();
/// # env.fs.create_dir_all(std::path::Path::new("/files"))?;
/// // As the column family is that it is for; keys in its order.
/// let mut writer = SstFileWriter::create("/files/1.sst", &env, &ColumnFamilyDescriptor::default())?;
/// writer.put(b"a", b"1")?;
/// writer.put(b"b", b"2")?;
/// let file = writer.finish()?.path;
///
/// let db = outcrop::Db::builder("/db").env(env).create_if_missing(true).open()?;
/// db.ingest_external_files(&[file])?;
/// assert_eq!(db.iter().count(), 2);
/// # outcrop::Result::Ok(())
/// ```
pub struct SstFileWriter {
    path: PathBuf,
    comparator: Comparator,
    writer: TableWriter,
    last_key: Option<Vec<u8>>,
    collectors: Option<Collectors>,
    checksum: Option<WrittenChecksum>,
}

impl SstFileWriter {
    /// Creates the file `path`, for a column family like `descriptor` (its name does not matter).
    pub fn create(
        path: impl AsRef<Path>,
        env: &Env,
        descriptor: &ColumnFamilyDescriptor,
    ) -> Result<SstFileWriter> {
        SstFileWriter::create_with(path, env, descriptor, &DbOptions::default())
    }

    /// [`SstFileWriter::create`] for a database of these options: their `file_checksum_gen_factory` counts.
    pub fn create_with(
        path: impl AsRef<Path>,
        env: &Env,
        descriptor: &ColumnFamilyDescriptor,
        db: &DbOptions,
    ) -> Result<SstFileWriter> {
        let mut descriptor = descriptor.clone();
        resolve_objects(&mut descriptor)?;
        validate::table(&descriptor.options.table)?;
        sanitize_column_family(&mut descriptor, db);
        let (options, parts) = (&descriptor.options, &descriptor.parts);
        let write = OpenWrite { buffer_size: BUFFER_BYTES, ..OpenWrite::default() };
        let file = env.fs.create(path.as_ref(), write)?;
        let (file, checksum) = while_written(file, db.file_checksum_gen_factory);
        let bottom = options.num_levels as usize - 1;
        let writer = TableWriter::new(
            file,
            TableWriterOptions {
                comparator: parts.comparator.clone(),
                table: options.table.clone(),
                compression: derive::compression_for_level(options, bottom, true),
                compression_opts: options.compression_opts.clone(),
                column_family_id: CfId::UNKNOWN.0,
                column_family_name: String::new(),
                merge_operator_name: parts.merge_operator.as_ref().map(|o| o.name().to_string()),
                db_id: DB_ID.to_string(),
                session_id: unique_id::session_id(env.random.next_u64(), env.random.next_u64() | 1),
                host_id: String::new(),
                file_number: 1,
                creation_time: 0,
                oldest_key_time: 0,
                newest_key_time: 0,
                file_creation_time: env.clock.now_micros() / 1_000_000,
                omit_filter: false,
                prefix_extractor: options.prefix_extractor.clone(),
                level: None,
                external: true,
            },
        );
        let comparator = parts.comparator.clone();
        let collectors = Collectors::new(&parts.collectors, CfId::UNKNOWN, None);
        let path = path.as_ref().to_path_buf();
        Ok(SstFileWriter { path, comparator, writer, last_key: None, collectors, checksum })
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// InvalidArgument unless `key` comes after the key before.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.add_plain(ValueType::Value, key, value)
    }

    /// Sets `key` to `value` from `timestamp` on, in the order of a comparator with user-defined timestamps.
    ///
    /// # Errors
    /// InvalidArgument unless (`key`, `timestamp`) comes after the one before, or if keys have no timestamps.
    pub fn put_at(&mut self, key: &[u8], timestamp: Timestamp, value: &[u8]) -> Result<()> {
        self.add_at(ValueType::Value, key, timestamp, value)
    }

    /// Deletes `key` from `timestamp` on. Errors as for [`SstFileWriter::put_at`].
    pub fn delete_at(&mut self, key: &[u8], timestamp: Timestamp) -> Result<()> {
        self.add_at(ValueType::DeletionWithTimestamp, key, timestamp, &[])
    }

    /// Adds an operand for the merge operator to `key`. Errors as for [`SstFileWriter::put`].
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add_plain(ValueType::Merge, key, operand)
    }

    /// Deletes `key` in what the ingesting database had before. Errors as for [`SstFileWriter::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.add_plain(ValueType::Deletion, key, &[])
    }

    /// Deletes every key from `begin` up to `end`, exclusive, in what the ingesting database had before; keys of this
    /// file stay. In any order.
    ///
    /// # Errors
    /// InvalidArgument if `end` comes before `begin`.
    pub fn delete_range(&mut self, begin: &[u8], end: &[u8]) -> Result<()> {
        if self.comparator.timestamp_len() > 0 {
            return Err(size_mismatch());
        }
        match self.comparator.compare(begin, end) {
            std::cmp::Ordering::Greater => Err(Error::invalid_argument("end key comes before start key")),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => {
                self.writer.add_range_tombstone(begin, SeqNum::ZERO, end);
                if let Some(collectors) = &mut self.collectors {
                    collectors.add_range_tombstone(begin, SeqNum::ZERO, end, &self.writer);
                }
                Ok(())
            }
        }
    }

    fn add_plain(&mut self, value_type: ValueType, key: &[u8], value: &[u8]) -> Result<()> {
        if self.comparator.timestamp_len() > 0 {
            return Err(size_mismatch());
        }
        self.add(value_type, key, value)
    }

    fn add_at(
        &mut self,
        value_type: ValueType,
        key: &[u8],
        timestamp: Timestamp,
        value: &[u8],
    ) -> Result<()> {
        if self.comparator.timestamp_len() != TIMESTAMP_LEN {
            return Err(size_mismatch());
        }
        self.add(value_type, &stored_key(key, timestamp), value)
    }

    fn add(&mut self, value_type: ValueType, key: &[u8], value: &[u8]) -> Result<()> {
        if self.last_key.as_ref().is_some_and(|last| self.comparator.compare(last, key).is_ge()) {
            return Err(Error::invalid_argument("Keys must be added in strict ascending order."));
        }
        let internal = internal_key(key, SeqNum::ZERO, value_type);
        self.writer.add(&internal, value)?;
        if let Some(collectors) = &mut self.collectors {
            collectors.add(&internal, value, &self.writer);
        }
        let last = self.last_key.get_or_insert_with(Vec::new);
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    /// Bytes written so far, about; 0 as long as nothing was added.
    pub fn file_size(&self) -> u64 {
        if self.writer.num_entries() == 0 { 0 } else { self.writer.estimated_size() }
    }

    /// Completes the file, durably.
    ///
    /// # Errors
    /// InvalidArgument if nothing was added.
    pub fn finish(mut self) -> Result<ExternalFileInfo> {
        if self.writer.num_entries() == 0 {
            return Err(Error::invalid_argument("Cannot create sst file with no entries"));
        }
        let num_entries = self.writer.num_entries();
        if let Some(collectors) = self.collectors.take() {
            // A file that is ingested is not marked: its properties alone go with it. There is no LOG to tell of collectors that failed.
            let _ = collectors.finish(&mut self.writer);
        }
        let summary = self.writer.finish()?;
        self.writer.sync_and_close(true)?;
        let user_key = |key: &[u8]| outcrop_base::keys::user_key(key).to_vec();
        Ok(ExternalFileInfo {
            path: self.path,
            file_size: summary.file_size,
            num_entries,
            smallest_key: user_key(&summary.smallest),
            largest_key: user_key(&summary.largest),
            file_checksum: self.checksum.map(|sum| sum.finish()),
        })
    }
}

/// In RocksDB's words (`SstFileWriter::Rep::Add`).
fn size_mismatch() -> Error {
    Error::invalid_argument("Timestamp size mismatch")
}

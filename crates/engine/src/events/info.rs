//! The events as listeners receive them.
//!
//! Source: RocksDB `include/rocksdb/listener.h`, `include/rocksdb/compaction_job_stats.h`.

use super::reasons::{CompactionReason, FlushReason, TableFileCreationReason};
use crate::write::stall_condition::StallCondition;
use outcrop_base::{CfId, Error, SeqNum};
use outcrop_options::CompressionType;
use outcrop_table::TableProperties;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A flush of one column family.
///
/// ```
/// use outcrop::FlushJobInfo;
///
/// fn entries_per_byte(flush: &FlushJobInfo) -> f64 {
///     flush.properties.num_entries as f64 / flush.properties.data_size.max(1) as f64
/// }
/// ```
#[derive(Clone, Debug)]
pub struct FlushJobInfo {
    /// Id of the column family.
    pub cf_id: CfId,
    /// Its name.
    pub cf_name: String,
    /// The new table.
    pub file_path: PathBuf,
    /// Its number.
    pub file_number: u64,
    /// The oldest blob file it refers to; 0 if there is none.
    pub oldest_blob_file_number: u64,
    /// The thread that flushes.
    pub thread_id: u64,
    /// Number of the job; that of the end is that of the begin.
    pub job_id: i32,
    /// There are so many tables in L0 that writers are slowed.
    pub triggered_writes_slowdown: bool,
    /// There are so many tables in L0 that writers are stopped.
    pub triggered_writes_stop: bool,
    /// Smallest sequence number in the table; the largest there can be at the begin.
    pub smallest_seqno: SeqNum,
    /// Largest sequence number in the table; 0 at the begin.
    pub largest_seqno: SeqNum,
    /// The table's properties; empty when its writing begins.
    pub properties: Arc<TableProperties>,
    /// Why.
    pub reason: FlushReason,
    /// Codec of blob files; `None` at the begin.
    pub blob_compression: CompressionType,
    /// New blob files; none at the begin.
    pub blob_files: Vec<BlobFileAdditionInfo>,
}

/// A blob file that a job wrote.
///
/// ```
/// fn average(blobs: &outcrop::BlobFileAdditionInfo) -> u64 {
///     blobs.total_blob_bytes / blobs.total_blob_count.max(1)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobFileAdditionInfo {
    /// Where it is.
    pub path: PathBuf,
    /// Its number.
    pub number: u64,
    /// Values in it.
    pub total_blob_count: u64,
    /// Bytes of their records.
    pub total_blob_bytes: u64,
}

/// Values that a compaction left unreferenced in an older blob file.
///
/// ```
/// fn garbage(of: &[outcrop::BlobFileGarbageInfo]) -> u64 {
///     of.iter().map(|file| file.garbage_blob_bytes).sum()
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobFileGarbageInfo {
    /// Where it is.
    pub path: PathBuf,
    /// Its number.
    pub number: u64,
    /// Values that nothing refers to any more.
    pub garbage_blob_count: u64,
    /// Bytes of their records.
    pub garbage_blob_bytes: u64,
}

/// A table that a compaction reads or writes.
///
/// ```
/// fn lowest(files: &[outcrop::CompactionFileInfo]) -> Option<usize> {
///     files.iter().map(|file| file.level).max()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionFileInfo {
    /// Its level. RocksDB gives the place of the level among those of the inputs for inputs.
    pub level: usize,
    /// Its number.
    pub file_number: u64,
    /// The oldest blob file it refers to; 0 if there is none.
    pub oldest_blob_file_number: u64,
}

/// A compaction.
///
/// ```
/// use outcrop::CompactionJobInfo;
///
/// fn saved(compaction: &CompactionJobInfo) -> i64 {
///     compaction.stats.total_input_bytes as i64 - compaction.stats.total_output_bytes as i64
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CompactionJobInfo {
    /// Id of the column family.
    pub cf_id: CfId,
    /// Its name.
    pub cf_name: String,
    /// The error, if it failed.
    pub status: Option<Error>,
    /// The thread that runs it.
    pub thread_id: u64,
    /// Number of the job; that of the end is that of the begin.
    pub job_id: i32,
    /// Tables in L0.
    pub num_l0_files: usize,
    /// The newest level it takes tables from.
    pub base_input_level: usize,
    /// Where the outputs go.
    pub output_level: usize,
    /// The tables it reads, by level.
    pub input_files: Vec<PathBuf>,
    /// The same, in the same order.
    pub input_file_infos: Vec<CompactionFileInfo>,
    /// The tables it wrote, or moved; none at the begin.
    pub output_files: Vec<PathBuf>,
    /// The same, in the same order.
    pub output_file_infos: Vec<CompactionFileInfo>,
    /// The properties of all these tables, by their paths.
    pub table_properties: BTreeMap<PathBuf, Arc<TableProperties>>,
    /// Why.
    pub reason: CompactionReason,
    /// Codec of the outputs.
    pub compression: CompressionType,
    /// Figures; at the begin those of the inputs alone.
    pub stats: CompactionJobStats,
    /// Codec of blob files.
    pub blob_compression: CompressionType,
    /// New blob files.
    pub blob_files: Vec<BlobFileAdditionInfo>,
    /// Values that are no longer referred to in older ones.
    pub blob_garbage: Vec<BlobFileGarbageInfo>,
    /// It was given up as all compactions were.
    pub aborted: bool,
}

/// A part of a compaction that runs on a thread of its own. There is one at least, unless tables are only moved or dropped.
///
/// ```
/// fn label(part: &outcrop::SubcompactionJobInfo) -> String {
///     format!("{}.{}", part.job_id, part.subcompaction_job_id)
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SubcompactionJobInfo {
    /// Id of the column family.
    pub cf_id: CfId,
    /// Its name.
    pub cf_name: String,
    /// The error, if it failed.
    pub status: Option<Error>,
    /// The thread that runs it.
    pub thread_id: u64,
    /// Number of the compaction.
    pub job_id: i32,
    /// Which part: from 0, in the order of the keys.
    pub subcompaction_job_id: i32,
    /// The newest level the compaction takes tables from.
    pub base_input_level: usize,
    /// Where the outputs go.
    pub output_level: usize,
    /// Why.
    pub reason: CompactionReason,
    /// Codec of the outputs.
    pub compression: CompressionType,
    /// Figures of this part, at its end.
    pub stats: CompactionJobStats,
    /// Codec of blob files.
    pub blob_compression: CompressionType,
}

/// Figures of a compaction.
///
/// ```
/// let stats = outcrop::CompactionJobStats { num_input_records: 10, num_output_records: 7, ..Default::default() };
/// assert_eq!(stats.num_input_records - stats.num_output_records, 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionJobStats {
    /// Microseconds it took.
    pub elapsed_micros: u64,
    /// Microseconds of processor time of all its threads.
    pub cpu_micros: u64,
    /// Entries read.
    pub num_input_records: u64,
    /// Values read from blob files, or from a cache of them: for a filter, to merge over them, or to move them.
    pub num_blobs_read: u64,
    /// Tables read.
    pub num_input_files: usize,
    /// Those of them on the output level.
    pub num_input_files_at_output_level: usize,
    /// Tables moved as they are.
    pub num_input_files_trivially_moved: usize,
    /// Entries written.
    pub num_output_records: u64,
    /// Tables written.
    pub num_output_files: usize,
    /// Blob files written.
    pub num_output_files_blob: usize,
    /// It reads all tables of the column family.
    pub is_full_compaction: bool,
    /// Somebody asked for it.
    pub is_manual_compaction: bool,
    /// Bytes of the tables read.
    pub total_input_bytes: u64,
    /// Bytes of the records of `num_blobs_read`.
    pub total_blob_bytes_read: u64,
    /// Bytes of the tables written.
    pub total_output_bytes: u64,
    /// Bytes of the blob files written.
    pub total_output_bytes_blob: u64,
    /// Entries that newer ones hid.
    pub num_records_replaced: u64,
    /// Bytes of the keys read.
    pub total_input_raw_key_bytes: u64,
    /// Bytes of the values read.
    pub total_input_raw_value_bytes: u64,
    /// Deletions of single keys read.
    pub num_input_deletion_records: u64,
    /// Deletions that had nothing left to hide.
    pub num_expired_deletion_records: u64,
    /// Single deletions dropped because there was nothing left of their key.
    pub num_single_del_fallthru: u64,
    /// Single deletions that met another deletion or a merge operand of their key, not a value.
    pub num_single_del_mismatch: u64,
    /// Nanoseconds in which bytes were handed to the operating system; 0 without `report_bg_io_stats`.
    pub file_write_nanos: u64,
    /// Nanoseconds in which writeback was begun, see `bytes_per_sync`; 0 without `report_bg_io_stats`.
    pub file_range_sync_nanos: u64,
    /// Nanoseconds in which files were synced; 0 without `report_bg_io_stats`.
    pub file_fsync_nanos: u64,
    /// The first 8 bytes of the smallest user key written.
    pub smallest_output_key_prefix: Vec<u8>,
    /// The first 8 bytes of the largest user key written.
    pub largest_output_key_prefix: Vec<u8>,
}

/// A memtable that is about to take no more writes.
///
/// ```
/// fn mostly_deletions(memtable: &outcrop::MemTableInfo) -> bool {
///     memtable.num_deletes * 2 > memtable.num_entries
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemTableInfo {
    /// Name of its column family.
    pub cf_name: String,
    /// Sequence number of its first entry.
    pub first_seqno: SeqNum,
    /// All its entries have larger ones.
    pub earliest_seqno: SeqNum,
    /// Entries.
    pub num_entries: u64,
    /// Deletions among them.
    pub num_deletes: u64,
}

/// A file that was ingested.
///
/// ```
/// fn is_global(file: &outcrop::ExternalFileIngestionInfo) -> bool {
///     file.global_seqno.0 > 0
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ExternalFileIngestionInfo {
    /// Name of the column family.
    pub cf_name: String,
    /// Where it came from.
    pub external_file_path: PathBuf,
    /// Where it is now.
    pub internal_file_path: PathBuf,
    /// The sequence number of all its keys; 0 if they need none.
    pub global_seqno: SeqNum,
    /// Its properties.
    pub properties: Arc<TableProperties>,
}

/// How writers of a column family are held back.
///
/// ```
/// use outcrop::StallCondition;
///
/// fn stops(stall: &outcrop::WriteStallInfo) -> bool {
///     stall.current == StallCondition::Stopped && stall.previous != StallCondition::Stopped
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteStallInfo {
    /// Name of the column family.
    pub cf_name: String,
    /// Now.
    pub current: StallCondition,
    /// Before.
    pub previous: StallCondition,
}

/// How a database got over an error that stopped writes, or did not. Source: RocksDB `BackgroundErrorRecoveryInfo`.
///
/// ```
/// fn takes_writes(recovery: &outcrop::BackgroundErrorRecoveryInfo) -> bool {
///     recovery.new_bg_error.is_none()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct BackgroundErrorRecoveryInfo {
    /// The error that stopped writes.
    pub old_bg_error: Error,
    /// `None`: the database has resumed. Else it tries no more by itself, and this is why writes are refused.
    pub new_bg_error: Option<Error>,
}

/// A table that is about to be written.
///
/// ```
/// use outcrop::{TableFileCreationReason, TableFileCreationStartedInfo};
///
/// fn is_of_flush(table: &TableFileCreationStartedInfo) -> bool {
///     table.reason == TableFileCreationReason::Flush
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TableFileCreationStartedInfo {
    /// The database's directory.
    pub db_path: PathBuf,
    /// Name of the column family.
    pub cf_name: String,
    /// The table.
    pub file_path: PathBuf,
    /// Number of the job.
    pub job_id: i32,
    /// Why.
    pub reason: TableFileCreationReason,
}

/// A table that was written, or was to be.
///
/// ```
/// use outcrop::TableFileCreationInfo;
///
/// fn entries(table: &TableFileCreationInfo) -> Option<u64> {
///     table.status.is_none().then_some(table.properties.num_entries)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TableFileCreationInfo {
    /// As it was told when it began.
    pub started: TableFileCreationStartedInfo,
    /// Its size in bytes; 0 if it failed.
    pub file_size: u64,
    /// Its properties; empty if it failed.
    pub properties: Arc<TableProperties>,
    /// Why it failed.
    pub status: Option<Error>,
}

/// A table that is removed.
///
/// ```
/// use outcrop::TableFileDeletionInfo;
///
/// fn is_left_behind(table: &TableFileDeletionInfo) -> bool {
///     table.status.is_some()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct TableFileDeletionInfo {
    /// The database's directory.
    pub db_path: PathBuf,
    /// The table.
    pub file_path: PathBuf,
    /// Number of the job; 0: of none.
    pub job_id: i32,
    /// Why it is still there.
    pub status: Option<Error>,
}

//! Settings of the whole database.

use crate::kept::Kept;
use crate::{CompressionType, DbPath};
use std::path::PathBuf;

/// How recovery treats a damaged WAL.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{DbOptions, WalRecoveryMode};
///
/// // Nothing may be missing from a WAL: a database that lost power while it wrote does not open.
/// let strict = WalRecoveryMode::AbsoluteConsistency;
/// let options = DbOptions { wal_recovery_mode: strict, ..DbOptions::default() };
/// # assert_ne!(options.wal_recovery_mode, DbOptions::default().wal_recovery_mode);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum WalRecoveryMode {
    /// An incomplete last record is dropped; any other damage fails the open.
    TolerateCorruptedTailRecords = 0,
    /// Any damage fails the open.
    AbsoluteConsistency = 1,
    /// Replay stops at the first damage: RocksDB's default.
    #[default]
    PointInTimeRecovery = 2,
    /// Damaged records are skipped.
    SkipAnyCorruptedRecords = 3,
}

/// The function that checksums of whole files are made by: the one that RocksDB has.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::{DbOptions, FileChecksumGenFactory};
///
/// let factory = Some(FileChecksumGenFactory::Crc32c);
/// let options = DbOptions { file_checksum_gen_factory: factory, ..DbOptions::default() };
/// # assert_ne!(options, DbOptions::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChecksumGenFactory {
    /// CRC-32C. Source: RocksDB `util/file_checksum_helper.h`, `FileChecksumGenCrc32cFactory`.
    Crc32c,
}

impl FileChecksumGenFactory {
    /// Its name in an OPTIONS file.
    pub fn name(self) -> &'static str {
        match self {
            FileChecksumGenFactory::Crc32c => "FileChecksumGenCrc32cFactory",
        }
    }

    /// The name of its function, which the MANIFEST has beside each checksum.
    pub fn function(self) -> &'static str {
        match self {
            FileChecksumGenFactory::Crc32c => "FileChecksumCrc32c",
        }
    }
}

/// Settings of the whole database: plain data, written to the OPTIONS file.
///
/// ```
/// # use outcrop_options as outcrop;
/// use outcrop::DbOptions;
///
/// let options = DbOptions { max_background_jobs: 4, bytes_per_sync: 1 << 20, ..DbOptions::default() };
/// # assert_eq!(options.max_background_jobs, 4);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DbOptions {
    /// Create the database if it does not exist; default false.
    pub create_if_missing: bool,
    /// Create column families that are named at open but do not exist; default false.
    pub create_missing_column_families: bool,
    /// Fail if the database exists; default false.
    pub error_if_exists: bool,
    /// A damaged or missing table fails the open, and stops writes where a compaction meets it; false lets the rest be read and written:
    /// reads of what is damaged fail, and compactions leave the table alone. Default true.
    pub paranoid_checks: bool,
    /// Files kept open, 10 of them not tables; -1: all. Reads of tables that are not limited take no lock. Default -1.
    pub max_open_files: i32,
    /// Total WAL size that forces flushes. Bytes; 0: 4 x the memtables' total.
    pub max_total_wal_size: u64,
    /// Concurrent flushes and compactions of the database, on threads that all databases of its environment share;
    /// default 2.
    pub max_background_jobs: i32,
    /// After an error that may pass, such as of IO or of space, writes are refused until the database has resumed by itself.
    /// So many attempts are made; 0 or less: none, it is resumed by the application. While space is short is no attempt.
    /// Default 2147483647.
    pub max_bgerror_resume_count: i32,
    /// Microseconds between two attempts to resume, but for want of space: that is looked at every 5 s. Default 1000000.
    pub bgerror_resume_retry_interval: u64,
    /// Threads one compaction may be split over; default 1.
    pub max_subcompactions: u32,
    /// Directory of WAL files; `None`: the database's own.
    pub wal_dir: Option<PathBuf>,
    /// The MANIFEST says how much of each closed WAL is durable; a WAL that is missing or shorter fails the open.
    /// Default false.
    pub track_and_verify_wals_in_manifest: bool,
    /// Each WAL names the one before it, with its length and its last sequence number, so that recovery notices one that is gone or
    /// lost its end though nobody had synced it. A WAL so named is verified whatever this is when the database is opened. RocksDB
    /// 6.29 and others before 9.10 cannot read such a WAL. Default false.
    pub track_and_verify_wals: bool,
    /// How recovery treats a damaged WAL.
    pub wal_recovery_mode: WalRecoveryMode,
    /// Table files are pushed to the device each time this many bytes were written; 0: at the end. Bytes.
    pub bytes_per_sync: u64,
    /// The same for WAL files. Bytes.
    pub wal_bytes_per_sync: u64,
    /// Use fsync instead of fdatasync; default false.
    pub use_fsync: bool,
    /// Read tables with O_DIRECT; default false.
    pub use_direct_reads: bool,
    /// Map table and blob files, and copy blocks from there: a block that the block cache does not have, but the operating system has, costs no call.
    /// Not together with `use_direct_reads`. A page that the device fails to read, or that somebody cut from the file while it is open, ends the
    /// process by SIGBUS in place of an error. A file that cannot be mapped is read with calls. Default false.
    pub allow_mmap_reads: bool,
    /// WAL files get their space ahead of what is written: records are then stored into mapped memory rather than
    /// written one by one, and syncs find their blocks allocated. Only with point-in-time recovery, the default, and
    /// without `manual_wal_flush`. Default true; false where others may cut the WAL, or a RocksDB follows the database as a
    /// secondary instance.
    pub allow_fallocate: bool,
    /// Flush and compaction read and write with O_DIRECT; default false.
    pub use_direct_io_for_flush_and_compaction: bool,
    /// Rate that slowed writes are held to. Bytes/s; 0: 16 MiB/s. Source: `delayed_write_rate`.
    pub delayed_write_rate: u64,
    /// WAL records stay in a user-space buffer until `flush_wal`: they are lost with the process, and with a WAL that cannot be written
    /// if tables cannot be either. Default false.
    pub manual_wal_flush: bool,
    /// WAL files kept to be written over by later ones, which is cheaper to sync than making new files longer. Only
    /// with a `wal_recovery_mode` that stops at or skips damage. Default 0.
    pub recycle_log_file_num: u64,
    /// WALs that are not needed any more go into the directory `archive` below that of the WALs, and from there once they were written last
    /// longer ago than this. Seconds; 0: not for their age. With both this and `wal_size_limit_mb` 0, the default, they are removed at
    /// once. Source: `WAL_ttl_seconds`.
    pub wal_ttl_seconds: u64,
    /// The same, the oldest once as many of the largest size would be more than this. MiB; 0: not for their size. Source:
    /// `WAL_size_limit_MB`.
    pub wal_size_limit_mb: u64,
    /// Codec of WAL records: none or zstd. Default none.
    pub wal_compression: CompressionType,
    /// Closing does not flush data written without WAL; default false.
    pub avoid_flush_during_shutdown: bool,
    /// A MANIFEST larger than this is replaced by a fresh one. Bytes; default 1 GiB.
    pub max_manifest_file_size: u64,
    /// Old info logs kept; default 1000.
    pub keep_log_file_num: u64,
    /// Readahead of compaction inputs. Bytes; default 2 MiB.
    pub compaction_readahead_size: u64,
    /// Buffer of table writers. Bytes; default 1 MiB.
    pub writable_file_max_buffer_size: u64,
    /// Column families are flushed together and become durable in one step, so that after a crash what was written
    /// without WAL is there up to one point of time in all of them. Default false.
    pub atomic_flush: bool,
    /// Total memtable memory over all column families that forces flushes. Bytes; 0: no limit.
    pub db_write_buffer_size: u64,
    /// Seconds between statistics in the info log; 0: never. Default 600.
    pub stats_dump_period_sec: u32,
    /// Files may be ingested behind all data, in every column family. Default false.
    pub allow_ingest_behind: bool,
    /// The MANIFEST holds the database's identity. Default true.
    pub write_dbid_to_manifest: bool,
    /// The file IDENTITY holds the database's identity. One of the two must. Default true.
    pub write_identity_file: bool,
    /// The MANIFEST has a checksum of each table and blob file that is written from here on, as a whole, for backups and for
    /// programs that copy the files. Costs one pass over the bytes as they are written. Default `None`: it has none.
    pub file_checksum_gen_factory: Option<FileChecksumGenFactory>,
    /// Where tables and blob files are, of column families without `cf_paths`: four at most. Blob files and new tables go to the first; compactions
    /// put the deeper levels, or the larger runs, into the next as one is full. The order must stay, and paths may only be added at the end: the
    /// MANIFEST has their numbers, and no OPTIONS file has them. With more than one `level_compaction_dynamic_level_bytes` is off, and
    /// compaction must be leveled or universal. Default: none, which is the database's own directory.
    pub db_paths: Vec<DbPath>,
    /// Settings that have no field here.
    pub kept: Kept,
}

impl Default for DbOptions {
    fn default() -> Self {
        DbOptions {
            create_if_missing: false,
            create_missing_column_families: false,
            error_if_exists: false,
            paranoid_checks: true,
            max_open_files: -1,
            max_total_wal_size: 0,
            max_background_jobs: 2,
            max_bgerror_resume_count: i32::MAX,
            bgerror_resume_retry_interval: 1_000_000,
            max_subcompactions: 1,
            wal_dir: None,
            track_and_verify_wals_in_manifest: false,
            track_and_verify_wals: false,
            wal_recovery_mode: WalRecoveryMode::default(),
            bytes_per_sync: 0,
            wal_bytes_per_sync: 0,
            use_fsync: false,
            allow_fallocate: true,
            use_direct_reads: false,
            allow_mmap_reads: false,
            use_direct_io_for_flush_and_compaction: false,
            delayed_write_rate: 0,
            manual_wal_flush: false,
            recycle_log_file_num: 0,
            wal_ttl_seconds: 0,
            wal_size_limit_mb: 0,
            wal_compression: CompressionType::None,
            avoid_flush_during_shutdown: false,
            max_manifest_file_size: 1 << 30,
            keep_log_file_num: 1000,
            compaction_readahead_size: 2 << 20,
            writable_file_max_buffer_size: 1 << 20,
            atomic_flush: false,
            db_write_buffer_size: 0,
            stats_dump_period_sec: 600,
            allow_ingest_behind: false,
            write_dbid_to_manifest: true,
            write_identity_file: true,
            file_checksum_gen_factory: None,
            db_paths: Vec::new(),
            kept: Kept::default(),
        }
    }
}

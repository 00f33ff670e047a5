//! One table: the MANIFEST's facts about it, and its state while a database is open.

use crate::edit::field;
use crate::file_name;
use outcrop_base::keys::user_key;
use outcrop_base::range_tombstone::is_tombstone_end;
use outcrop_base::{Comparator, FileNumber, Fragments, SeqNum};
use outcrop_table::{Placement, TableReader};
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The MANIFEST's facts about one table.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TableMeta {
    /// Its number.
    pub number: FileNumber,
    /// Size of the file in bytes; the file is refused if it has another.
    pub size: u64,
    /// At or before its first internal key.
    pub smallest: Box<[u8]>,
    /// At or after its last internal key.
    pub largest: Box<[u8]>,
    /// Smallest sequence number in it.
    pub smallest_seq: SeqNum,
    /// Largest sequence number in it.
    pub largest_seq: SeqNum,
    /// Orders tables of L0: of two that overlap, the one with the higher epoch is newer. 0 is unknown.
    pub epoch: u64,
    /// Time of its oldest data's first write, seconds since the epoch; 0 unknown.
    pub oldest_ancestor_time: u64,
    /// When it was written, seconds since the epoch; 0 unknown.
    pub creation_time: u64,
    /// Bytes after its last data block; 0 unknown.
    pub tail_size: u64,
    /// Its identity, checked when it is opened.
    pub unique_id: Option<[u64; 2]>,
    /// The oldest blob file that an entry refers to.
    pub oldest_blob_file: Option<FileNumber>,
    /// It asked to be compacted.
    pub marked_for_compaction: bool,
    /// Which of the paths of its column family it is in.
    pub path_id: u32,
    /// The directory of that path; `None`: the database's. Not written down: whoever opens a database says where its paths are.
    pub dir: Option<Arc<Path>>,
    /// Custom fields this engine does not use, as read: (tag, value).
    pub preserved: Vec<(u32, Vec<u8>)>,
}

/// An open database's own facts about a table: nothing of it is written down.
#[derive(Default)]
pub struct TableRuntime {
    /// The open table, if open tables are not limited in number.
    pub table: OnceLock<Arc<TableReader>>,
    /// Its range tombstones, clipped to its boundaries; `None` if it has none. Set when it is first opened.
    pub range_tombstones: OnceLock<Option<Arc<Fragments>>>,
    /// Its part of block cache keys.
    pub cache_file_id: OnceLock<u64>,
    /// A flush wrote it, so that `pin_l0_filter_and_index_blocks_in_cache` is about it.
    pub from_flush: AtomicBool,
    /// Whether it is in the last level, by which reads of it are told apart. Set when it comes into a version.
    pub placement: Placement,
    /// Dropped when nobody holds the file any more, after everything else of it: an object that tells so.
    pub at_end: OnceLock<Box<dyn Send + Sync>>,
}

/// One table, shared by all versions that hold it. The fields of its `meta` read as its own.
#[derive(Default)]
pub struct TableFile {
    /// The persisted part. Changed only before the table is shared.
    pub meta: TableMeta,
    /// The part that is not persisted.
    pub runtime: TableRuntime,
}

impl From<TableMeta> for TableFile {
    fn from(meta: TableMeta) -> TableFile {
        TableFile { meta, runtime: TableRuntime::default() }
    }
}

impl Deref for TableFile {
    type Target = TableMeta;

    #[inline]
    fn deref(&self) -> &TableMeta {
        &self.meta
    }
}

impl DerefMut for TableFile {
    fn deref_mut(&mut self) -> &mut TableMeta {
        &mut self.meta
    }
}

impl TableFile {
    /// A table of which only the essentials are known.
    pub fn new(number: FileNumber, size: u64, smallest: Vec<u8>, largest: Vec<u8>) -> TableFile {
        TableMeta { number, size, smallest: smallest.into(), largest: largest.into(), ..TableMeta::default() }
            .into()
    }
}

impl TableMeta {
    /// The file, of a database in `db_dir`.
    pub fn path(&self, db_dir: &Path) -> PathBuf {
        file_name::table(self.dir.as_deref().unwrap_or(db_dir), self.number)
    }

    /// The kind of storage it is meant for, by RocksDB's numbers; 0 unknown.
    pub fn temperature(&self) -> u8 {
        self.preserved(field::TEMPERATURE).first().copied().unwrap_or(0)
    }

    /// Name of the function that a checksum of the whole file was made by, and the checksum; both empty if there is none.
    pub fn checksum(&self) -> (&[u8], &[u8]) {
        (self.preserved(field::CHECKSUM_FUNCTION), self.preserved(field::CHECKSUM))
    }

    /// Notes name and value of such a checksum.
    pub fn set_checksum(&mut self, function: &[u8], checksum: &[u8]) {
        self.preserved.retain(|(tag, _)| *tag != field::CHECKSUM && *tag != field::CHECKSUM_FUNCTION);
        self.preserved.push((field::CHECKSUM, checksum.to_vec()));
        self.preserved.push((field::CHECKSUM_FUNCTION, function.to_vec()));
    }

    /// Notes the oldest and the newest user-defined timestamp in it.
    pub fn set_timestamps(&mut self, oldest: &[u8], newest: &[u8]) {
        self.preserved.push((field::MIN_TIMESTAMP, oldest.to_vec()));
        self.preserved.push((field::MAX_TIMESTAMP, newest.to_vec()));
    }

    fn preserved(&self, tag: u32) -> &[u8] {
        self.preserved.iter().find(|(of, _)| *of == tag).map_or(&[], |(_, value)| value)
    }

    /// Where it ends: its largest user key, and whether an entry of that key can be in it.
    pub fn end(&self) -> (&[u8], bool) {
        (user_key(&self.largest), !is_tombstone_end(&self.largest))
    }

    /// True if all of it lies before `key`.
    pub fn ends_before(&self, comparator: &Comparator, key: &[u8]) -> bool {
        let (end, included) = self.end();
        match comparator.compare(end, key) {
            Ordering::Less => true,
            Ordering::Equal => !included,
            Ordering::Greater => false,
        }
    }

    /// True if all of it lies after `key`.
    pub fn starts_after(&self, comparator: &Comparator, key: &[u8]) -> bool {
        comparator.compare(user_key(&self.smallest), key) == Ordering::Greater
    }
}

impl std::fmt::Debug for TableMeta {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", crate::version::Drawn(self))
    }
}

impl std::fmt::Debug for TableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.meta.fmt(f)
    }
}

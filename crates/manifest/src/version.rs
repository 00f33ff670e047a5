//! A version: which tables are on which level. Immutable, shared by everyone who reads it.

use crate::blob_file::BlobFiles;
use crate::{TableFile, TableMeta};
use outcrop_base::Comparator;
use outcrop_base::keys::split;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The tables of one level: L0 newest first, others sorted by key and without overlap.
#[derive(Clone, Default)]
pub struct Level {
    /// The tables.
    pub files: Arc<[Arc<TableFile>]>,
    /// Bytes of all of them.
    pub size: u64,
    /// [`Comparator::prefix`] of each table's largest user key: found without touching keys.
    largest_prefixes: Box<[u64]>,
}

impl Level {
    /// A level of `files`, already in order.
    pub(crate) fn new(files: Vec<Arc<TableFile>>, comparator: &Comparator) -> Level {
        let largest_prefixes = files.iter().map(|file| comparator.prefix(split(&file.largest).0)).collect();
        Level { size: files.iter().map(|file| file.size).sum(), files: files.into(), largest_prefixes }
    }

    /// The first table that ends at or after (`user_key`, `packed`); for levels other than L0.
    #[inline]
    pub fn find(&self, comparator: &Comparator, user_key: &[u8], packed: u64) -> usize {
        let number = comparator.prefix(user_key);
        let mut low = self.largest_prefixes.partition_point(|&prefix| prefix < number);
        let mut high = self.largest_prefixes.len();
        if self.largest_prefixes.get(low).is_none_or(|&prefix| prefix > number) {
            return low;
        }
        while low < high {
            let mid = (low + high) / 2;
            let largest = split(&self.files[mid].largest);
            if comparator.compare_parts(largest, (user_key, packed)) == Ordering::Less {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        low
    }

    /// The tables, shared.
    pub fn shared_files(&self) -> Arc<[Arc<TableFile>]> {
        self.files.clone()
    }
}

/// Which tables are on which level.
#[derive(Clone, Default)]
pub struct Version {
    /// The levels, L0 first.
    pub levels: Vec<Level>,
    /// The blob files its tables refer to.
    pub blob_files: BlobFiles,
    /// By level, where its next round-robin compaction begins: an internal key.
    pub compact_cursors: BTreeMap<u32, Vec<u8>>,
}

impl Version {
    /// A version without tables.
    pub fn empty(num_levels: usize) -> Version {
        Version { levels: vec![Level::default(); num_levels], ..Version::default() }
    }

    /// All tables with their levels.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.levels.iter().enumerate().flat_map(|(level, l)| l.files.iter().map(move |file| (level, file)))
    }

    /// Number of tables.
    pub fn num_files(&self) -> usize {
        self.levels.iter().map(|level| level.files.len()).sum()
    }

    /// Bytes of all tables.
    pub fn total_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.size).sum()
    }
}

/// A table as it is drawn.
pub(crate) struct Drawn<'f>(pub &'f TableMeta);

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0;
        let key = |ikey: &[u8]| String::from_utf8_lossy(split(ikey).0).into_owned();
        write!(
            f,
            "{}[{}..{}]@{}-{},size={},epoch={}",
            file.number.0,
            key(&file.smallest),
            key(&file.largest),
            file.smallest_seq,
            file.largest_seq,
            file.size,
            file.epoch
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, tables) in self.levels.iter().enumerate().filter(|(_, l)| !l.files.is_empty()) {
            write!(f, "L{level}:")?;
            for file in tables.files.iter() {
                write!(f, " {}", Drawn(file))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

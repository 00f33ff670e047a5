//! A version: which tables are on which level. Immutable, shared by everyone who reads it.

use crate::blob_file::{BlobFileState, BlobFiles};
use crate::{FileNumber, TableFile, TableMeta};
use outcrop_base::keys::{Trailer, split};
use outcrop_base::{Comparator, Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
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

    /// The first table that ends at or after (`user_key`, `trailer`); for levels other than L0.
    #[inline]
    pub fn find(&self, comparator: &Comparator, user_key: &[u8], trailer: Trailer) -> usize {
        let number = comparator.prefix(user_key);
        let mut low = self.largest_prefixes.partition_point(|&prefix| prefix < number);
        let mut high = self.largest_prefixes.len();
        if self.largest_prefixes.get(low).is_none_or(|&prefix| prefix > number) {
            return low;
        }
        while low < high {
            let mid = (low + high) / 2;
            let largest = split(&self.files[mid].largest);
            if comparator.compare_parts(largest, (user_key, trailer)) == Ordering::Less {
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

    /// The same, with its tables and blob files in the directories of `dirs`, which are the paths of its column family.
    ///
    /// # Errors
    /// InvalidArgument naming a table in a path that is not there.
    pub fn located(self, dirs: &[Arc<Path>], comparator: &Comparator) -> Result<Version> {
        let beyond = self.files().find(|(_, file)| file.path_id as usize >= dirs.len().max(1));
        if let Some((_, file)) = beyond {
            return Err(Error::invalid_argument(format!(
                "table {} is in path {}, and {} are given: open it with the db_paths or cf_paths that it was written with",
                file.number.0,
                file.path_id,
                dirs.len()
            )));
        }
        let Some(first) = dirs.first() else { return Ok(self) };
        let located = |file: &Arc<TableFile>| {
            let dir = Some(dirs[file.path_id as usize].clone());
            Arc::new(TableFile::from(TableMeta { dir, ..file.meta.clone() }))
        };
        let levels = self.levels.iter().map(|level| level.files.iter().map(located).collect());
        let blob_files = self.blob_files.iter().map(|(number, state)| {
            let file = Arc::new(state.file.located(first));
            (*number, BlobFileState { file, garbage: state.garbage })
        });
        Ok(Version {
            levels: levels.map(|files: Vec<_>| Level::new(files, comparator)).collect(),
            blob_files: blob_files.collect(),
            compact_cursors: self.compact_cursors.clone(),
        })
    }

    /// The same, with the files of `open` in place of those that are equal: what is open of them stays open, and their blocks are found in the
    /// cache. `open` is an earlier version of the same column family in the same directories.
    pub fn reusing(self, open: &Version, comparator: &Comparator) -> Version {
        let known: HashMap<FileNumber, &Arc<TableFile>> =
            open.files().map(|(_, file)| (file.number, file)).collect();
        let levels = self.levels.iter().map(|level| {
            let files = level.files.iter().map(|file| match known.get(&file.number) {
                Some(open) if open.meta == file.meta => (*open).clone(),
                _ => file.clone(),
            });
            Level::new(files.collect(), comparator)
        });
        let blob_files = self.blob_files.iter().map(|(number, state)| {
            let open = open.blob_files.get(number).filter(|open| open.file.is_same(&state.file));
            let file = open.map_or(&state.file, |open| &open.file).clone();
            (*number, BlobFileState { file, garbage: state.garbage })
        });
        let version = Version {
            levels: levels.collect(),
            blob_files: blob_files.collect(),
            compact_cursors: self.compact_cursors.clone(),
        };
        let last = version.levels.len().saturating_sub(1);
        version.files().for_each(|(level, file)| file.runtime.placement.set_in_last_level(level == last));
        version
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

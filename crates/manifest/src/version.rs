//! A version: which tables are on which level. Immutable, shared by everyone who reads it.

use crate::blob_file::BlobFiles;
use crate::{FileMetaData, FileNumber};
use outcrop_base::keys::{internal_key, split};
use outcrop_base::{Comparator, SeqNum, ValueType};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The tables of one level: L0 newest first, others sorted by key and without overlap.
#[derive(Clone, Default)]
pub struct Level {
    /// The tables.
    pub files: Arc<[Arc<FileMetaData>]>,
    /// Bytes of all of them.
    pub size: u64,
    /// [`Comparator::prefix`] of each table's largest user key: found without touching keys.
    largest_prefixes: Box<[u64]>,
}

impl Level {
    /// A level of `files`, already in order.
    pub(crate) fn new(files: Vec<Arc<FileMetaData>>, comparator: &Comparator) -> Level {
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
    pub fn shared_files(&self) -> Arc<[Arc<FileMetaData>]> {
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
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMetaData>)> {
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

    /// A version from a drawing, for tests: one line per level, one table per word.
    ///
    /// ```text
    /// L0: 8[c..z]@11-20 7[a..m]@1-10
    /// L1: 3[a..f]@1-9,size=100,epoch=2 4[g..p]
    /// ```
    /// A table is `number[smallest..largest]`, then optionally `@seq` or `@first-last` and `,size=BYTES`,
    /// `,epoch=N`. Without them: sequence 1, size 1, epoch = number. L0 is drawn newest first.
    ///
    /// # Panics
    /// If the drawing does not parse.
    pub fn parse(drawing: &str, num_levels: usize) -> Version {
        let mut version = Version::empty(num_levels);
        for line in drawing.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (level, tables) = line.split_once(':').expect("a line is L<n>: tables");
            let level: usize = level.trim().strip_prefix('L').and_then(|n| n.parse().ok()).expect("L<n>");
            let files = tables.split_whitespace().map(|word| Arc::new(parse_table(word))).collect();
            version.levels[level] = Level::new(files, &Comparator::Bytewise);
        }
        version
    }
}

fn parse_table(word: &str) -> FileMetaData {
    let (number, rest) = word.split_once('[').expect("number[");
    let (range, rest) = rest.split_once(']').expect("[smallest..largest]");
    let (smallest, largest) = range.split_once("..").expect("smallest..largest");
    let number = number.parse().expect("a table number");
    let (mut first, mut last, mut size, mut epoch) = (1, 1, 1, number);
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        if let Some(seqs) = part.strip_prefix('@') {
            let (a, b) = seqs.split_once('-').unwrap_or((seqs, seqs));
            (first, last) = (a.parse().expect("sequence"), b.parse().expect("sequence"));
        } else if let Some(text) = part.strip_prefix("size=") {
            size = text.parse().expect("size");
        } else if let Some(text) = part.strip_prefix("epoch=") {
            epoch = text.parse().expect("epoch");
        } else {
            panic!("unknown part {part:?} of table {word:?}");
        }
    }
    let key = |text: &str, seq| internal_key(text.as_bytes(), SeqNum(seq), ValueType::Value);
    let mut file = FileMetaData::new(FileNumber(number), size, key(smallest, last), key(largest, first));
    (file.smallest_seq, file.largest_seq, file.epoch) = (SeqNum(first), SeqNum(last), epoch);
    file
}

/// A table as it is drawn.
pub(crate) struct Drawn<'f>(pub &'f FileMetaData);

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

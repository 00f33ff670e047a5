//! The report of a salvage: which files are damaged, and which keys are doubtful for that.

use crate::repair::report::{RepairReport, StructureFound};
use std::fmt;
use std::path::{Path, PathBuf};

/// The outcome of copying what is whole of a damaged database into a new one: [`crate::DbBuilder::salvage`].
///
/// ```
/// # use outcrop::{Db, Env, SalvageOptions};
/// # let env = Env::memory();
/// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
/// # db.put("apple", "red")?;
/// # db.close()?;
/// let report = Db::builder("/db").env(env).salvage("/new", &SalvageOptions::default())?;
/// assert!(report.is_whole());
/// assert_eq!(report.made.families[0].name, "default");
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The new database: its column families, the WALs that were read for it, and how far the MANIFEST was of use.
    pub made: RepairReport,
    /// Files of the damaged database of which not everything was taken over as it is, by path.
    pub files: Vec<SalvagedFile>,
    /// The keys that may have another value than the last that was written, or be there though they were deleted, or be missing: those that
    /// damage may have touched. All others are as they were.
    pub doubtful: Vec<DoubtfulRange>,
    /// Files that were copied as they are.
    pub copied: u64,
    /// Bytes of them.
    pub copied_bytes: u64,
}

/// A file of which a salvage did not take over everything as it is.
///
/// ```
/// fn lost(report: &outcrop::SalvageReport) -> Vec<&std::path::Path> {
///     report.files.iter().filter(|file| file.entries.is_none()).map(|file| &*file.path).collect()
/// }
/// # assert!(lost(&outcrop::SalvageReport::default()).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedFile {
    /// The file.
    pub path: PathBuf,
    /// Its column family, if that is known.
    pub family: Option<String>,
    /// The level of a table, if that is known.
    pub level: Option<u32>,
    /// Entries of a table, range tombstones among them, or values of a blob file that were written anew; `None`: nothing was taken over.
    pub entries: Option<u64>,
    /// The damage.
    pub damage: Vec<String>,
}

/// Keys that damage may have touched.
///
/// ```
/// fn may_be_touched(range: &outcrop::DoubtfulRange, key: &[u8]) -> bool {
///     range.begin.as_deref().is_none_or(|begin| begin <= key) && range.end.as_deref().is_none_or(|end| key <= end)
/// }
/// # let mut range = outcrop::DoubtfulRange { family: None, file: "7.sst".into(), level: None, begin: None, end: None, reason: String::new() };
/// # assert!(may_be_touched(&range, b"k"));
/// # range.end = Some(b"j".to_vec());
/// # assert!(!may_be_touched(&range, b"k"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulRange {
    /// Their column family; `None`: any.
    pub family: Option<String>,
    /// The file that is damaged, or missing.
    pub file: PathBuf,
    /// Its level, if it is a table of which that is known.
    pub level: Option<u32>,
    /// The first key; `None`: there is none before.
    pub begin: Option<Vec<u8>>,
    /// The last key, which is one of them; `None`: there is none after.
    pub end: Option<Vec<u8>>,
    /// Why.
    pub reason: String,
}

impl SalvageReport {
    /// True if no key is doubtful, and the MANIFEST was whole: the new database has all that the other one had.
    pub fn is_whole(&self) -> bool {
        self.doubtful.is_empty() && self.made.structure == StructureFound::Whole && self.made.is_lossless()
    }
}

/// Bytes of a key that are shown at most.
const SHOWN: usize = 32;

/// A key as text, if it is some, else in hexadecimal.
fn shown(key: &[u8]) -> String {
    let part = &key[..key.len().min(SHOWN)];
    let text = match part.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        true => format!("\"{}\"", String::from_utf8_lossy(part)),
        false => part.iter().fold("0x".to_string(), |text, byte| text + &format!("{byte:02X}")),
    };
    if part.len() < key.len() { format!("{text}... ({} bytes)", key.len()) } else { text }
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

impl fmt::Display for DoubtfulRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.begin, &self.end) {
            (Some(begin), Some(end)) if begin == end => write!(f, "key {}", shown(begin))?,
            (Some(begin), Some(end)) => write!(f, "keys {} to {}", shown(begin), shown(end))?,
            (Some(begin), None) => write!(f, "keys from {} on", shown(begin))?,
            (None, Some(end)) => write!(f, "keys up to {}", shown(end))?,
            (None, None) => write!(f, "all keys")?,
        }
        match &self.family {
            Some(family) => write!(f, " of {family}")?,
            None => write!(f, " of all column families")?,
        }
        write!(f, ", {}", name(&self.file))?;
        if let Some(level) = self.level {
            write!(f, ", level {level}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for SalvagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", name(&self.path))?;
        if let Some(family) = &self.family {
            write!(f, " of {family}")?;
        }
        if let Some(level) = self.level {
            write!(f, ", level {level}")?;
        }
        match self.entries {
            Some(1) => write!(f, ": 1 entry kept"),
            Some(entries) => write!(f, ": {entries} entries kept"),
            None => write!(f, ": lost"),
        }
    }
}

impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.made.structure {
            StructureFound::Missing => writeln!(f, "MANIFEST: none that could be used")?,
            StructureFound::Part(why) => writeln!(f, "MANIFEST: used in part: {why}")?,
            StructureFound::Whole => writeln!(f, "MANIFEST: read whole")?,
        }
        for family in &self.made.families {
            let order = if family.levels_kept { "levels kept" } else { "all in level 0" };
            let (tables, entries) = (family.tables, family.entries);
            writeln!(f, "column family {}: {tables} tables, {entries} entries, {order}", family.name)?;
        }
        writeln!(f, "copied as they are: {} files, {} bytes", self.copied, self.copied_bytes)?;
        for file in &self.files {
            writeln!(f, "damaged: {file}")?;
            file.damage.iter().try_for_each(|damage| writeln!(f, "  {damage}"))?;
        }
        for wal in &self.made.wals {
            writeln!(f, "{:06}.log: {} writes, {} taken over", wal.number, wal.writes, wal.recovered)?;
            if wal.homeless > 0 {
                writeln!(f, "  to unknown column families, left out: {}", wal.homeless)?;
            }
        }
        for name in &self.made.prepared {
            writeln!(f, "prepared and not decided: {}", String::from_utf8_lossy(name))?;
        }
        self.doubtful.iter().try_for_each(|range| writeln!(f, "doubtful: {range}"))?;
        match (self.doubtful.is_empty(), &self.made.structure) {
            (true, StructureFound::Whole) => writeln!(f, "no key is doubtful"),
            (true, _) => writeln!(f, "no other damage was found; tables that are gone are not known"),
            (false, _) => {
                writeln!(f, "doubtful keys may be missing, have an older value, or be deleted ones")
            }
        }
    }
}

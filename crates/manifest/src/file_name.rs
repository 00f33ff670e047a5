//! Names of the files in a database directory.
//!
//! Numbers have at least six digits. Names that parse to nothing here are not ours and are never touched.
//! Source: RocksDB `file/filename.cc`; table in `docs/format/directory.md`.

use crate::FileNumber;
use std::path::{Path, PathBuf};

/// The kind of a file in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Names the current MANIFEST.
    Current,
    /// Held by whoever has the database open.
    Lock,
    /// The database's identity, as text.
    Identity,
    /// The info log.
    InfoLog,
    /// An info log of an earlier opening, with its time in microseconds.
    OldInfoLog(u64),
    /// A MANIFEST.
    Manifest(FileNumber),
    /// A write-ahead log.
    Wal(FileNumber),
    /// A table.
    Table(FileNumber),
    /// A blob file.
    Blob(FileNumber),
    /// An OPTIONS file.
    Options(FileNumber),
    /// A file on its way to another name.
    Temp(FileNumber),
}

/// The highest number a file can have: above it counters could run over, and no database gets there.
pub const MAX_FILE_NUMBER: u64 = 1 << 62;

/// False for numbers that no database gets to, half the way to [`MAX_FILE_NUMBER`] and above: a file with one that no MANIFEST names was put
/// there by somebody else. Numbers that are given out above such a one would come to that end.
pub fn is_plausible(number: FileNumber) -> bool {
    number.0 <= MAX_FILE_NUMBER / 2
}

/// The kind of the file called `name`; `None` for a name that is not ours.
pub fn parse(name: &str) -> Option<FileKind> {
    match name {
        "CURRENT" => return Some(FileKind::Current),
        "LOCK" => return Some(FileKind::Lock),
        "IDENTITY" => return Some(FileKind::Identity),
        "LOG" => return Some(FileKind::InfoLog),
        _ => {}
    }
    if let Some(rest) = name.strip_prefix("MANIFEST-") {
        return number(rest).map(FileKind::Manifest);
    }
    if let Some(rest) = name.strip_prefix("LOG.old.") {
        return number(rest).map(|number| FileKind::OldInfoLog(number.0));
    }
    if let Some(rest) = name.strip_prefix("OPTIONS-") {
        return match rest.strip_suffix(".dbtmp") {
            Some(rest) => number(rest).map(FileKind::Temp),
            None => number(rest).map(FileKind::Options),
        };
    }
    let (stem, extension) = name.split_once('.')?;
    let number = number(stem)?;
    match extension {
        "log" => Some(FileKind::Wal(number)),
        "sst" | "ldb" => Some(FileKind::Table(number)),
        "blob" => Some(FileKind::Blob(number)),
        "dbtmp" => Some(FileKind::Temp(number)),
        _ => None,
    }
}

fn number(digits: &str) -> Option<FileNumber> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|number| *number <= MAX_FILE_NUMBER).map(FileNumber)
}

/// `dir/CURRENT`.
pub fn current(dir: &Path) -> PathBuf {
    dir.join("CURRENT")
}

/// `dir/LOCK`.
pub fn lock(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

/// `dir/IDENTITY`.
pub fn identity(dir: &Path) -> PathBuf {
    dir.join("IDENTITY")
}

/// The name of a MANIFEST, without directory.
pub fn manifest_name(number: FileNumber) -> String {
    format!("MANIFEST-{:06}", number.0)
}

/// Path of a MANIFEST.
pub fn manifest(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(manifest_name(number))
}

/// Path of a write-ahead log.
pub fn wal(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{:06}.log", number.0))
}

/// Path of a table.
pub fn table(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{:06}.sst", number.0))
}

/// A blob file.
pub fn blob(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{:06}.blob", number.0))
}

/// Path of an OPTIONS file.
pub fn options(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("OPTIONS-{:06}", number.0))
}

/// Path of a temporary file.
pub fn temp(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{:06}.dbtmp", number.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_what_they_are() {
        let n = FileNumber(123);
        let dir = Path::new("d");
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
        assert_eq!(parse(&name(manifest(dir, n))), Some(FileKind::Manifest(n)));
        assert_eq!(parse(&name(wal(dir, n))), Some(FileKind::Wal(n)));
        assert_eq!(parse(&name(table(dir, n))), Some(FileKind::Table(n)));
        assert_eq!(parse(&name(options(dir, n))), Some(FileKind::Options(n)));
        assert_eq!(parse(&name(temp(dir, n))), Some(FileKind::Temp(n)));
        assert_eq!(parse("1234567890.sst"), Some(FileKind::Table(FileNumber(1_234_567_890))));
        for foreign in
            ["", "foo", "12a.sst", ".sst", "000001.sst.bak", "MANIFEST-", "OPTIONS-x", "000001.txt"]
        {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }
}

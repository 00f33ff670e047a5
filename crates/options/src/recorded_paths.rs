//! The directories of tables in an OPTIONS file, as comments: RocksDB's loader takes no paths from one, and passes over comments.
//!
//! ```text
//! [DBOptions]
//!   # db_path 10737418240 /fast/db
//!   # db_path 18446744073709551615 .          the database's own directory, wherever it is
//! [CFOptions "users"]
//!   # cf_path 18446744073709551615 /users     only of one whose paths are others than the database's
//! ```

use crate::file::{escape, unescape};
use crate::{ColumnFamilyOptions, DbPath};
use std::fmt::Write;
use std::path::Path;

/// The first line of a file that has all paths there are: one of RocksDB's, or of an earlier version of this engine, has none, wherever its tables are.
pub const WRITTEN_BY: &str = "# This file is written by Outcrop, with paths of tables as comments, and read by RocksDB's option loader.";
/// The database's own directory.
pub const OWN: &str = ".";

const OF_DATABASE: &str = "# db_path ";
const OF_FAMILY: &str = "# cf_path ";

/// The directories of tables that a database was opened with, as its OPTIONS file has them.
///
/// ```
/// # mod outcrop { pub use outcrop_options::{DbPath, recorded_paths::RecordedPaths}; }
/// use outcrop::{DbPath, RecordedPaths};
///
/// let db_paths = vec![DbPath::new("/fast/db", 10 << 30), DbPath::new("/large/db", u64::MAX)];
/// let paths = RecordedPaths { db_paths, ..RecordedPaths::default() };
/// assert_eq!(paths.of("users").len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedPaths {
    /// Of column families without paths of their own.
    pub db_paths: Vec<DbPath>,
    /// Column families with paths of their own.
    pub cf_paths: Vec<(String, Vec<DbPath>)>,
}

impl RecordedPaths {
    /// The paths of a column family.
    pub fn of(&self, family: &str) -> &[DbPath] {
        let own = self.cf_paths.iter().find(|(name, _)| name == family);
        own.map_or(&self.db_paths, |(_, paths)| paths)
    }

    /// Each path once for each time that it is named.
    pub fn all(&self) -> impl Iterator<Item = &DbPath> {
        self.db_paths.iter().chain(self.cf_paths.iter().flat_map(|(_, paths)| paths))
    }

    /// The paths in the text of an OPTIONS file, whatever else is in it; `None` if the file would not have them.
    pub fn parse(text: &str) -> Option<RecordedPaths> {
        let mut paths = RecordedPaths::default();
        let mut family = None;
        let mut lines = text.lines().map(str::trim);
        if lines.next() != Some(WRITTEN_BY) {
            return None;
        }
        for line in lines {
            if line.starts_with('[') {
                let name = line.strip_prefix("[CFOptions \"").and_then(|rest| rest.strip_suffix("\"]"));
                family = name.map(unescape);
            } else if let Some(path) = line.strip_prefix(OF_DATABASE) {
                paths.db_paths.extend(path_of(path));
            } else if let (Some(path), Some(family)) = (line.strip_prefix(OF_FAMILY), &family) {
                match paths.cf_paths.last_mut() {
                    Some((name, of_family)) if name == family => of_family.extend(path_of(path)),
                    _ => paths.cf_paths.push((family.clone(), path_of(path).into_iter().collect())),
                }
            }
        }
        Some(paths)
    }
}

fn path_of(text: &str) -> Option<DbPath> {
    let (size, path) = text.split_once(' ')?;
    Some(DbPath::new(unescape(path), size.parse().ok()?))
}

fn print(text: &mut String, start: &str, paths: &[DbPath]) {
    for DbPath { path, target_size } in paths {
        let _ = writeln!(text, "  {start}{target_size} {}", escape(&path.to_string_lossy()));
    }
}

/// Those of the database.
pub fn print_of_database(text: &mut String, db_paths: &[DbPath]) {
    print(text, OF_DATABASE, db_paths);
}

/// Those of a column family, unless they are the database's.
pub fn print_of_family(text: &mut String, options: &ColumnFamilyOptions, db_paths: &[DbPath]) {
    if options.cf_paths != db_paths {
        print(text, OF_FAMILY, &options.cf_paths);
    }
}

/// True if a path is the database's own directory.
pub fn is_own(path: &Path) -> bool {
    path == Path::new(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DbOptions, file};

    #[test]
    fn paths_are_read_as_they_were_written_and_no_loader_takes_them_for_options() {
        let db_paths = vec![DbPath::new("/fast = 1/d#b\\", 10), DbPath::new(OWN, u64::MAX)];
        let db = DbOptions { db_paths: db_paths.clone(), ..DbOptions::default() };
        let with = |cf_paths: &[DbPath]| ColumnFamilyOptions {
            cf_paths: cf_paths.to_vec(),
            ..ColumnFamilyOptions::default()
        };
        let own = vec![DbPath::new("/a\nb", 3), DbPath::new("/c", 4)];
        let families = [
            ("default".to_string(), with(&db_paths)),
            ("a \"]#\n".to_string(), with(&own)),
            ("c".to_string(), with(&own[..1])),
        ];
        let text = file::print(&db, &families);
        let paths = RecordedPaths::parse(&text).unwrap();
        assert_eq!(paths.db_paths, db_paths);
        assert_eq!(paths.of("default"), db_paths);
        assert_eq!(paths.of("a \"]#\n"), own);
        assert_eq!(paths.of("c"), &own[..1]);
        let loaded = file::parse(&text).unwrap();
        assert!(loaded.ignored.is_empty() && loaded.db.db_paths.is_empty(), "{loaded:?}");
        assert_eq!(loaded.families[1].1.cf_paths, []);
    }

    #[test]
    fn a_file_of_rocksdb_says_nothing_of_paths_and_one_of_ours_that_there_are_none() {
        assert_eq!(RecordedPaths::parse("# This is a RocksDB option file.\n[DBOptions]\n"), None);
        let default = [("default".to_string(), ColumnFamilyOptions::default())];
        let ours = file::print(&DbOptions::default(), &default);
        assert_eq!(RecordedPaths::parse(&ours), Some(RecordedPaths::default()));
        let damaged = format!("{WRITTEN_BY}\n# cf_path 1 /a\n# db_path x /b\n# db_path 1\nno option\n");
        assert_eq!(RecordedPaths::parse(&damaged), Some(RecordedPaths::default()));
    }
}

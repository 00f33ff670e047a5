//! Where the tables of a database are, as far as its directory says: a MANIFEST has the numbers of paths, and nothing of RocksDB's has the paths.
//!
//! This engine's OPTIONS file has them as comments. It travels with copies, which have their tables beside them; so it holds for a database whose
//! name is in a directory of them, or that misses tables which are there. Of a database of RocksDB's, or of an earlier version of this engine, nobody knows
//! the paths; but then its MANIFEST names tables, and there is none.

use super::find::Found;
use super::structure::Structure;
use crate::path_owners::{self, Belongs};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::Env;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_manifest::{FileNumber, TableMeta};
use outcrop_options::{DbPath, RecordedPaths, recorded_paths};
use std::collections::BTreeSet;
use std::path::Path;

/// Where tables are.
#[derive(Debug)]
pub enum Tables {
    /// In the directory of the database, if they are anywhere.
    Beside,
    /// In these.
    In(RecordedPaths),
    /// No table is in the directory of the database, the MANIFEST names so many, and nothing says where they are, or that they are lost.
    Nowhere(usize),
    /// The MANIFEST says that they are in more than one directory, and nothing says in which.
    InSeveral,
}

/// Looks for the tables of the database in `path`. Nothing is written.
pub fn look(path: &Path, env: &Env, found: &Found, structure: &Structure) -> Result<Tables> {
    let live = || structure.tables.iter().map(|(number, table)| (*number, &table.file.meta));
    let is_here =
        |(number, meta): (FileNumber, &TableMeta)| meta.path_id == 0 && found.tables.contains(&number);
    let mut has_no_other = false;
    if let Some((paths, is_newest)) = recorded(path, env, found) {
        let missing: BTreeSet<FileNumber> =
            live().filter(|table| !is_here(*table)).map(|(number, _)| number).collect();
        // Without a MANIFEST nobody knows which are missing.
        let any = structure.number.is_none() && found.tables.is_empty();
        let is_missing = |there: &BTreeSet<FileNumber>| match any {
            true => !there.is_empty(),
            false => missing.iter().any(|number| there.contains(number)),
        };
        let others = others(path, env, &paths);
        has_no_other = is_newest && others.is_empty();
        let mut holds = false;
        for dir in others {
            let found = match path_owners::whose(env, path, dir) {
                Ok(Belongs::ToIt) => Ok(true),
                Ok(Belongs::ToAnother) => Ok(false),
                Ok(Belongs::Unsaid) => data_in(env, dir, false).map(|there| is_missing(&there)),
                Err(error) => Err(error),
            };
            // A directory that cannot be looked into concerns no copy that has all its tables beside it.
            holds |= if any || !missing.is_empty() { found? } else { found.unwrap_or(false) };
        }
        if holds {
            return Ok(Tables::In(paths));
        }
    }
    if live().any(|(_, meta)| meta.path_id != 0) {
        return Ok(Tables::InSeveral);
    }
    // One that the MANIFEST does not know is one, too: a MANIFEST that was cut between two records looks whole.
    match structure.tables.len() {
        count if count > 0 && found.tables.is_empty() && !has_no_other => Ok(Tables::Nowhere(count)),
        _ => Ok(Tables::Beside),
    }
}

/// Those of `paths` that are not the database's own directory.
fn others<'p>(path: &Path, env: &Env, paths: &'p RecordedPaths) -> BTreeSet<&'p Path> {
    let own = env.fs.canonical(path);
    let dirs = paths.all().map(|dir| dir.path.as_path());
    dirs.filter(|dir| env.fs.canonical(dir) != own).collect()
}

/// The paths in the newest OPTIONS file that is this engine's, even one that does not parse, and whether RocksDB has written none since.
fn recorded(path: &Path, env: &Env, found: &Found) -> Option<(RecordedPaths, bool)> {
    for number in found.options.iter().rev() {
        // One that cannot be read says nothing; a process beside may have removed it.
        let Ok(bytes) = env.fs.read_all(&file_name::options(path, *number)) else { continue };
        if let Some(mut paths) = RecordedPaths::parse(&String::from_utf8_lossy(&bytes)) {
            let families = paths.cf_paths.iter_mut().flat_map(|(_, paths)| paths);
            for DbPath { path: dir, .. } in paths.db_paths.iter_mut().chain(families) {
                if recorded_paths::is_own(dir) {
                    *dir = path.to_path_buf();
                }
            }
            return Some((paths, found.options.last() == Some(number)));
        }
    }
    None
}

/// Tables in a directory, or with `blobs` blob files, too.
fn data_in(env: &Env, dir: &Path, blobs: bool) -> Result<BTreeSet<FileNumber>> {
    let names = if env.fs.exists(dir)? { env.fs.list(dir)? } else { Vec::new() };
    let numbers = names.iter().filter_map(|name| match file_name::parse(name)? {
        FileKind::Table(number) => Some(number),
        FileKind::Blob(number) if blobs => Some(number),
        _ => None,
    });
    Ok(numbers.collect())
}

/// Refuses by name `doing`, which works in one directory, unless all that is left of the database is there.
///
/// # Errors
/// NotSupported, and a way to go.
pub fn refuse(doing: &str, path: &Path, env: &Env, found: &Found, structure: &Structure) -> Result<()> {
    match look(path, env, found, structure)? {
        Tables::Beside => Ok(()),
        Tables::In(paths) => {
            let mut dirs = BTreeSet::new();
            for dir in others(path, env, &paths) {
                // There are none where somebody has moved them to the database.
                if !data_in(env, dir, true)?.is_empty() {
                    dirs.insert(dir);
                }
            }
            if dirs.is_empty() { Ok(()) } else { Err(refused(doing, path, &dirs)) }
        }
        Tables::InSeveral => Err(refused(doing, path, &BTreeSet::new())),
        Tables::Nowhere(count) => Err(Error::not_supported(format!(
            "{doing} of {}: none of the {count} tables that its MANIFEST names is there. If they are in other directories (db_paths, \
             cf_paths), {}. If they are lost, move CURRENT and the MANIFESTs away, and try again",
            path.display(),
            way_to_go(doing)
        ))),
    }
}

/// The refusal of a database that is said to have tables in `dirs`.
pub fn refused(doing: &str, path: &Path, dirs: &BTreeSet<&Path>) -> Error {
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    let said = if dirs.is_empty() { String::new() } else { format!(": {}", dirs.join(", ")) };
    Error::not_supported(format!(
        "{doing} of {}, which has tables in several directories (db_paths, cf_paths{said}): {}",
        path.display(),
        way_to_go(doing)
    ))
}

fn way_to_go(doing: &str) -> String {
    format!("copy all its files but CURRENT and the MANIFESTs into one new directory, and {doing} that")
}

/// See [`crate::Db::recorded_paths_in`].
pub fn recorded_paths(path: &Path, env: &Env) -> Result<Option<RecordedPaths>> {
    if !env.fs.exists(path)? {
        return Ok(None);
    }
    let mut found = match Found::look(path, path, env) {
        // Nothing is there, or nothing that can be opened: opening says so.
        Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported) => {
            return Ok(None);
        }
        found => found?,
    };
    let structure = Structure::read(path, env, &found);
    // A process beside has made tables since, and removed others.
    found.tables.extend(data_in(env, path, false)?);
    let unknown = |tables: &str| {
        Err(Error::not_supported(format!(
            "{}: {tables}, and nothing says in which (db_paths, cf_paths). A program that opens it with them can make a checkpoint or a \
             backup of it, which has all tables in one directory",
            path.display()
        )))
    };
    match look(path, env, &found, &structure)? {
        Tables::Beside => Ok(None),
        Tables::In(paths) => Ok(Some(paths)),
        Tables::InSeveral => unknown("its tables are in several directories"),
        Tables::Nowhere(count) => {
            unknown(&format!("none of its {count} tables is there: they are lost, or in other directories"))
        }
    }
}

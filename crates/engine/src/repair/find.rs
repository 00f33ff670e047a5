//! The files of a database, by what their names say.

use outcrop_base::{Error, Result};
use outcrop_env::Env;
use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name::{self, FileKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files of a database.
#[derive(Default)]
pub struct Found {
    /// Tables.
    pub tables: BTreeSet<FileNumber>,
    /// WALs.
    pub wals: BTreeSet<FileNumber>,
    /// Blob files.
    pub blobs: BTreeSet<FileNumber>,
    /// MANIFESTs.
    pub manifests: BTreeSet<FileNumber>,
    /// OPTIONS files.
    pub options: BTreeSet<FileNumber>,
    /// There is a CURRENT.
    pub has_current: bool,
    /// The highest number that a file has which may be the database's.
    pub highest: FileNumber,
}

impl Found {
    /// Looks into the directories of the database.
    ///
    /// # Errors
    /// Corruption if there is nothing of a database; NotSupported for tables named as LevelDB did; of listing.
    pub fn look(path: &Path, wal_dir: &Path, env: &Env) -> Result<Found> {
        let mut found = Found::default();
        let mut any = false;
        for name in env.fs.list(path)? {
            any |= !matches!(name.as_str(), "LOCK" | "LOG");
            found.add(&name, true)?;
        }
        if wal_dir != path && env.fs.exists(wal_dir)? {
            for name in env.fs.list(wal_dir)? {
                any = true;
                found.add(&name, false)?;
            }
        }
        match any {
            true => Ok(found),
            false => Err(Error::corruption(format!("{}: repair found no files", path.display()))),
        }
    }

    fn add(&mut self, name: &str, of_database: bool) -> Result<()> {
        let (set, number) = match file_name::parse(name) {
            Some(FileKind::Wal(number)) => (&mut self.wals, number),
            Some(FileKind::Table(number)) if name.ends_with(".sst") => (&mut self.tables, number),
            Some(FileKind::Table(_)) => {
                return Err(Error::not_supported(format!("{name}: a table named as LevelDB names them")));
            }
            Some(FileKind::Blob(number)) => (&mut self.blobs, number),
            Some(FileKind::Manifest(number)) => (&mut self.manifests, number),
            Some(FileKind::Options(number)) => (&mut self.options, number),
            Some(FileKind::Temp(number)) => {
                self.count(number);
                return Ok(());
            }
            Some(FileKind::Current) => {
                self.has_current = of_database;
                return Ok(());
            }
            _ => return Ok(()),
        };
        set.insert(number);
        self.count(number);
        Ok(())
    }

    fn count(&mut self, number: FileNumber) {
        if file_name::is_plausible(number) {
            self.highest = self.highest.max(number);
        }
    }
}

/// OPTIONS files that do not parse, and why.
pub fn unreadable_options(path: &Path, env: &Env, found: &Found) -> Vec<(PathBuf, String)> {
    let check = |number: &FileNumber| {
        let name = file_name::options(path, *number);
        let read = env.fs.read_all(&name).and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            outcrop_options::file::parse(&text).map(|_| ())
        });
        Some((name, read.err()?.to_string()))
    };
    found.options.iter().filter_map(check).collect()
}

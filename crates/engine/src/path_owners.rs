//! Which database the other directories of `db_paths` and `cf_paths` belong to, so that a copy of a database which is opened with the paths
//! of its source neither writes over the source's tables nor removes them.
//!
//! ```text
//! LOCK     held while the database is open, as in its own directory
//! OWNER    outcrop                     names of neither kind mean anything to RocksDB, which opens
//!          /path/of/the/database       the directory all the same
//!          its identity
//!          first file number
//!          /path/of/this/directory     one that was copied names nobody
//!          number of the database's directory in its file system, or -
//! ```
//! Files below the first number were there when the directory was claimed, and are never removed as leftovers: nobody knows whose they are.
//! A directory changes hands where its owner is gone: it was moved, or destroyed. A copy that was put in the place of its source has
//! another number, and leaves the files alone that it does not know.

use crate::claim::Claim;
use crate::context::DbContext;
use crate::info_log::{LogLevel, log_at};
use outcrop_base::{Error, Result};
use outcrop_env::Env;
use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name::{self, FileKind};
use std::path::{Path, PathBuf};

const MAGIC: &str = "outcrop";
const OWNER: &str = "OWNER";

/// The contents of an OWNER file.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    path: PathBuf,
    db_id: String,
    owned_from: FileNumber,
    /// The directory that is owned.
    dir: PathBuf,
    /// Of the database's directory.
    inode: Option<u64>,
}

/// Device and number of a directory.
type Identity = Option<(u64, u64)>;

impl Owner {
    /// That of `dir`; `None` if there is none. One that does not parse names nobody.
    fn read(env: &Env, dir: &Path) -> Result<Option<Owner>> {
        let file = dir.join(OWNER);
        if !env.fs.exists(&file)? {
            return Ok(None);
        }
        Ok(Owner::parse(&String::from_utf8_lossy(&env.fs.read_all(&file)?)))
    }

    fn parse(text: &str) -> Option<Owner> {
        let mut lines = text.lines();
        let is_owner = lines.next()? == MAGIC;
        let (path, db_id, number) = (lines.next()?, lines.next()?, lines.next()?);
        let owned_from = FileNumber(number.parse().ok()?);
        let dir = lines.next()?.into();
        let inode = match lines.next()? {
            "-" => None,
            inode => Some(inode.parse().ok()?),
        };
        is_owner.then(|| Owner { path: path.into(), db_id: db_id.into(), owned_from, dir, inode })
    }

    fn print(&self) -> String {
        let inode = self.inode.map_or_else(|| "-".to_string(), |inode| inode.to_string());
        let Owner { path, db_id, owned_from, dir, .. } = self;
        format!("{MAGIC}\n{}\n{db_id}\n{}\n{}\n{inode}\n", path.display(), owned_from.0, dir.display())
    }

    /// True if `path`, whose directory has the number `here`, is where the owner is: under the name that it had, or another one.
    fn is_at(&self, path: &Path, here: Identity, env: &Env) -> bool {
        let same_number = match (self.inode, here) {
            (Some(inode), Some((_, now))) => inode == now,
            _ => true,
        };
        match self.path == path {
            true => same_number,
            false => here.is_some() && env.fs.identity(&self.path) == here,
        }
    }

    /// True if `dir` belongs to the owner, which still is where it was, and that is not `path`.
    fn keeps_out(&self, dir: &Path, path: &Path, env: &Env) -> bool {
        let here = env.fs.identity(path);
        // An owner that cannot be looked at is there.
        let exists = || env.fs.exists(&file_name::current(&self.path)).unwrap_or(true);
        self.dir == dir && self.path != path && !self.is_at(path, here, env) && exists()
    }

    /// InvalidArgument that says what to do.
    fn refuse(&self, dir: &Path) -> Error {
        Error::invalid_argument(format!(
            "{}: has the files of the database in {}: a copy of that one needs db_paths and cf_paths of its own \
             (if it no longer uses the directory, remove {})",
            dir.display(),
            self.path.display(),
            dir.join(OWNER).display()
        ))
    }
}

impl DbContext {
    /// Claims `dir`, which exists, for this database, before a file is made in it or removed.
    ///
    /// # Errors
    /// InvalidArgument if it belongs to another database; IoError if one has it open.
    pub fn claim(&self, dir: &Path) -> Result<()> {
        let fs = &self.env.fs;
        let (own, canonical) = (fs.canonical(&self.path), fs.canonical(dir));
        // Locked until it is claimed: of two calls with one directory the second finds it.
        let mut claims = self.claims.lock();
        if canonical == own || claims.iter().any(|claim| claim.dir == canonical) {
            return Ok(());
        }
        let lock = fs.lock(&file_name::lock(dir))?;
        let here = fs.identity(&own);
        let is_ours = |owner: &Owner| {
            owner.dir == canonical && owner.db_id == self.db_id && owner.is_at(&own, here, &self.env)
        };
        let owned_from = match Owner::read(&self.env, dir)? {
            Some(owner) if is_ours(&owner) => owner.owned_from,
            Some(owner) if owner.keeps_out(&canonical, &own, &self.env) => return Err(owner.refuse(dir)),
            _ => {
                // Numbers of files are given out above all that are there: none of them is written over.
                let numbers = fs.list(dir)?;
                let numbers = numbers.iter().filter_map(|name| data_number(name));
                let highest = numbers.filter(|number| file_name::is_plausible(*number)).max();
                let owned_from = highest.map_or(FileNumber::NONE, |highest| self.number_files_above(highest));
                let (db_id, dir_there) = (self.db_id.clone(), canonical.clone());
                let inode = here.map(|(_, inode)| inode);
                let owner = Owner { path: own, db_id, owned_from, dir: dir_there, inode };
                let temporary = dir.join(format!("{OWNER}.dbtmp"));
                fs.replace(&dir.join(OWNER), &temporary, owner.print().as_bytes())?;
                owned_from
            }
        };
        claims.push(Claim { dir: canonical, owned_from, lock });
        Ok(())
    }

    /// Files in `dir` that have this number or a higher one are this database's.
    pub fn owned_from(&self, dir: &Path) -> FileNumber {
        let canonical = self.env.fs.canonical(dir);
        let claims = self.claims.lock();
        claims.iter().find(|claim| claim.dir == canonical).map_or(FileNumber::NONE, |claim| claim.owned_from)
    }

    /// Says in LOG that `files` in `dir` are left where they are.
    pub fn log_left_alone(&self, dir: &Path, files: usize) {
        if files > 0 {
            log_at!(
                self,
                LogLevel::Warn,
                "{}: {files} tables and blob files that the database does not know were there before it, and stay",
                dir.display()
            );
        }
    }
}

fn data_number(name: &str) -> Option<FileNumber> {
    match file_name::parse(name)? {
        FileKind::Table(number) | FileKind::Blob(number) => Some(number),
        _ => None,
    }
}

/// Before the database in `path` is opened, or destroyed, with its files in `dir`: so far nothing was written or removed.
///
/// # Errors
/// InvalidArgument if the directory belongs to another database, which exists.
pub fn check_owned(env: &Env, path: &Path, dir: &Path) -> Result<()> {
    let own = env.fs.canonical(path);
    match Owner::read(env, dir)? {
        Some(owner) if owner.keeps_out(&env.fs.canonical(dir), &own, env) => Err(owner.refuse(dir)),
        _ => Ok(()),
    }
}

/// Whose the files in a directory of tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// To the database that was asked about.
    ToIt,
    /// To another one, which is there.
    ToAnother,
    /// Nobody says.
    Unsaid,
}

/// Whose `dir` is, asked about the database in `path`. Nothing is written.
pub fn whose(env: &Env, path: &Path, dir: &Path) -> Result<Belongs> {
    let (own, canonical) = (env.fs.canonical(path), env.fs.canonical(dir));
    let here = env.fs.identity(&own);
    Ok(match Owner::read(env, dir)? {
        Some(owner) if owner.keeps_out(&canonical, &own, env) => Belongs::ToAnother,
        Some(owner) if owner.dir == canonical && owner.is_at(&own, here, env) => Belongs::ToIt,
        _ => Belongs::Unsaid,
    })
}

/// Removes what says whose `dir` is.
pub fn disown(env: &Env, dir: &Path) -> Result<()> {
    for file in [dir.join(OWNER), file_name::lock(dir)] {
        if env.fs.exists(&file)? {
            env.fs.remove_file(&file)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_read_as_it_was_written_and_anything_else_is_none() {
        for inode in [None, Some(12)] {
            let (path, dir) = ("/a b/db".into(), "/ssd".into());
            let owner = Owner { path, db_id: "id".into(), owned_from: FileNumber(7), dir, inode };
            assert_eq!(Owner::parse(&owner.print()), Some(owner));
        }
        for text in [
            "",
            "outcrop\n/db\nid\n7\n/ssd\n",
            "outcrop\n/db\nid\nseven\n/ssd\n1\n",
            "outcrop\n/db\nid\n7\n/ssd\none\n",
            "other\n/db\nid\n7\n/ssd\n1\n",
        ] {
            assert_eq!(Owner::parse(text), None, "{text:?}");
        }
    }
}

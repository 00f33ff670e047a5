//! Which database the other directories of `db_paths` and `cf_paths` belong to, so that a copy of a database which is opened with the paths
//! of its source neither writes over the source's tables nor removes them.
//!
//! ```text
//! LOCK     held while the database is open, as in its own directory
//! OWNER    outcrop                     names of neither kind mean anything to RocksDB, which opens
//!          /path/of/the/database       the directory all the same
//!          its identity
//!          first file number
//! ```
//! Files below the first number were there when the directory was claimed, and are never removed as leftovers: nobody knows whose they are.
//! A directory changes hands where its owner is gone: it was moved, or destroyed.

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
}

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
        is_owner.then(|| Owner { path: path.into(), db_id: db_id.into(), owned_from })
    }

    fn print(&self) -> String {
        format!("{MAGIC}\n{}\n{}\n{}\n", self.path.display(), self.db_id, self.owned_from.0)
    }

    /// Whether there still is a database where the owner was.
    fn exists(&self, env: &Env) -> Result<bool> {
        env.fs.exists(&file_name::current(&self.path))
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
        if canonical == own || self.claims.lock().iter().any(|claim| claim.dir == canonical) {
            return Ok(());
        }
        let lock = fs.lock(&file_name::lock(dir))?;
        let found = Owner::read(&self.env, dir)?;
        let is_ours = |owner: &Owner| owner.path == own && owner.db_id == self.db_id;
        let owned_from = match found {
            Some(owner) if is_ours(&owner) => owner.owned_from,
            Some(owner) if owner.path != own && owner.exists(&self.env)? => return Err(owner.refuse(dir)),
            _ => {
                let foreign = fs.list(dir)?.iter().any(|name| is_data(name));
                let owned_from = if foreign { self.next_file_number() } else { FileNumber::NONE };
                let owner = Owner { path: own, db_id: self.db_id.clone(), owned_from };
                let temporary = dir.join(format!("{OWNER}.dbtmp"));
                fs.replace(&dir.join(OWNER), &temporary, owner.print().as_bytes())?;
                owned_from
            }
        };
        self.claims.lock().push(Claim { dir: canonical, owned_from, lock });
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

fn is_data(name: &str) -> bool {
    matches!(file_name::parse(name), Some(FileKind::Table(_) | FileKind::Blob(_)))
}

/// Before the database in `path` is opened, or destroyed, with its files in `dir`: so far nothing was written or removed.
///
/// # Errors
/// InvalidArgument if the directory belongs to another database, which exists.
pub fn check_owned(env: &Env, path: &Path, dir: &Path) -> Result<()> {
    let own = env.fs.canonical(path);
    match Owner::read(env, dir)? {
        Some(owner) if owner.path != own && owner.exists(env)? => Err(owner.refuse(dir)),
        _ => Ok(()),
    }
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
        let owner = Owner { path: "/a b/db".into(), db_id: "id".into(), owned_from: FileNumber(7) };
        assert_eq!(Owner::parse(&owner.print()), Some(owner));
        for text in ["", "outcrop\n/db\nid\n", "outcrop\n/db\nid\nseven\n", "other\n/db\nid\n7\n"] {
            assert_eq!(Owner::parse(text), None, "{text:?}");
        }
    }
}

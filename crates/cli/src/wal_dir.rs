//! The directory of a database's WALs, for tools that have nobody to ask but its OPTIONS file.
//!
//! A tool that looks in the wrong directory misses what was not flushed; one that writes there too makes the next opening miss it, or
//! takes the WALs of another database for its own. The OPTIONS file is right for the database that wrote it, and wrong for its copies: a
//! checkpoint and a restored backup have their WALs beside their tables, and the OPTIONS file of where they come from.

use outcrop::{Env, Error};
use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name::{self, FileKind};
use std::path::{Path, PathBuf};

/// The purpose that the database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing is changed: a doubt is said on standard error.
    Read,
    /// WALs are replayed and removed: a doubt is refused.
    Write,
}

/// Where the WALs of the database in `db` are, whose OPTIONS file says `stored`; `None` if beside its tables.
///
/// # Errors
/// InvalidArgument, to write: both directories have WALs that may be its, or neither has.
///
/// Source: RocksDB `tools/ldb_cmd.cc`, `LDBCommand::PrepareOptions`, which passes over a directory that is not there, and looks no further.
pub fn locate(
    env: &Env,
    db: &Path,
    stored: Option<PathBuf>,
    purpose: Purpose,
) -> Result<Option<PathBuf>, Error> {
    let Some(stored) = stored.filter(|stored| !is_same(stored, db)) else { return Ok(None) };
    let shown = stored.display();
    let logs = Logs::of(env, db)?;
    let doubt = |why: &str| match purpose {
        Purpose::Read => {
            eprintln!("{why}; its WALs are looked for in {}", db.display());
            Ok(None)
        }
        Purpose::Write => {
            Err(Error::invalid_argument(format!("{why}; say with --wal_dir where its WALs are")))
        }
    };
    if !env.fs.exists(&stored)? || env.fs.exists(&file_name::current(&stored))? {
        let what = if env.fs.exists(&stored)? { "is another database" } else { "does not exist" };
        if logs.any {
            eprintln!("wal_dir {shown} of the OPTIONS file {what}; the WALs in {} are taken", db.display());
            return Ok(None);
        }
        return doubt(&format!("wal_dir {shown} of the OPTIONS file {what}"));
    }
    if !logs.needed {
        return Ok(Some(stored));
    }
    if Logs::in_dir(env, &stored, logs.oldest_needed)?.needed {
        return doubt(&format!(
            "there are WALs in wal_dir {shown} of the OPTIONS file and beside the tables"
        ));
    }
    eprintln!("wal_dir {shown} of the OPTIONS file has no WAL; those in {} are taken", db.display());
    Ok(None)
}

/// Whether `stored`, the `wal_dir` of the OPTIONS file in `db`, is another directory that has WALs.
pub fn has_wals_elsewhere(env: &Env, db: &Path, stored: &Path) -> Result<bool, Error> {
    Ok(!is_same(stored, db) && Logs::in_dir(env, stored, FileNumber::NONE)?.any)
}

/// WALs of a directory.
struct Logs {
    /// There is one.
    any: bool,
    /// There is one that is not empty, with writes that tables need not have.
    needed: bool,
    oldest_needed: FileNumber,
}

impl Logs {
    /// Beside the tables of the database in `db`. Of a damaged MANIFEST every WAL counts as needed.
    fn of(env: &Env, db: &Path) -> Result<Logs, Error> {
        let recovered = outcrop_manifest::recover(&*env.fs, db, &|_| None, &|_| 64, false);
        let oldest_needed = recovered.map_or(FileNumber::NONE, |recovered| {
            let families = recovered.column_families.iter().map(|family| family.log_number);
            families.min().unwrap_or_default().max(recovered.min_log_number_to_keep)
        });
        Logs::in_dir(env, db, oldest_needed)
    }

    fn in_dir(env: &Env, dir: &Path, oldest_needed: FileNumber) -> Result<Logs, Error> {
        let mut logs = Logs { any: false, needed: false, oldest_needed };
        let names = if env.fs.exists(dir)? { env.fs.list(dir)? } else { Vec::new() };
        for name in names {
            let Some(FileKind::Wal(number)) = file_name::parse(&name) else { continue };
            logs.any = true;
            // One that a process beside has removed meanwhile is none.
            let size = env.fs.file_size(&dir.join(&name)).unwrap_or(0);
            logs.needed |= number >= oldest_needed && size > 0;
        }
        Ok(logs)
    }
}

/// Whether both paths lead to one directory.
fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect());
    real(a) == real(b)
}

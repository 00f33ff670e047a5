//! Copies of a loaded database, so that sessions start from equal data without loading it again.
//!
//! Directories and files keep their modes: a server's are closed to others, and it refuses those that are not.
//!
//! A file is cloned where the file system shares blocks; else tables, which engines never change in place, are
//! linked, and everything else is copied.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;

/// How files were carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Files that share blocks.
    pub cloned: usize,
    /// Files that are the same file.
    pub linked: usize,
    /// Files that were copied.
    pub copied: usize,
}

/// Whether engines write a file of this name once and never again.
fn is_immutable(name: &OsStr) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    matches!(extension, Some("sst" | "ldb" | "blob"))
}

/// Makes the empty directory `to` a copy of the database `from`.
///
/// # Errors
/// A sentence naming the file.
pub fn restore(from: &Path, to: &Path) -> Result<Copied, String> {
    let mut count = Copied::default();
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(from).map_err(|error| failed(from, error))? {
        let entry = entry.map_err(|error| failed(from, error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| failed(&source, error))?;
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|error| failed(&target, error))?;
            let inner = restore(&source, &target)?;
            // PostgreSQL refuses a directory that others can enter.
            let mode = entry.metadata().map_err(|error| failed(&source, error))?.permissions();
            fs::set_permissions(&target, mode).map_err(|error| failed(&target, error))?;
            count.cloned += inner.cloned;
            count.linked += inner.linked;
            count.copied += inner.copied;
        } else if clone(&source, &target).is_ok() {
            count.cloned += 1;
        } else if is_immutable(&entry.file_name()) && fs::hard_link(&source, &target).is_ok() {
            count.linked += 1;
        } else {
            fs::copy(&source, &target).map_err(|error| failed(&target, error))?;
            count.copied += 1;
        }
    }
    Ok(count)
}

/// Shares the blocks of `source`. Leaves nothing behind where the file system cannot.
fn clone(source: &Path, target: &Path) -> std::io::Result<()> {
    let (from, to) = (File::open(source)?, File::create_new(target)?);
    let shared = rustix::fs::ioctl_ficlone(&to, &from).map_err(std::io::Error::from);
    shared.and_then(|()| to.set_permissions(from.metadata()?.permissions())).inspect_err(|_| {
        let _ = fs::remove_file(target);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_was_closed_to_others_stays_so() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        fs::create_dir_all(from.join("data/base")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("data/server-key.pem"), "secret").unwrap();
        let set = |name: &str, mode| {
            fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set("data", 0o700);
        set("data/base", 0o750);
        set("data/server-key.pem", 0o600);
        restore(&from, &to).unwrap();
        let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(["data", "data/base", "data/server-key.pem"].map(mode), [0o700, 0o750, 0o600]);
    }

    #[test]
    fn what_changes_later_is_not_shared_and_tables_are_not_copied() {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        fs::create_dir_all(from.join("archive")).unwrap();
        fs::create_dir(&to).unwrap();
        for name in ["000001.sst", "MANIFEST-000002", "archive/000003.log"] {
            fs::write(from.join(name), name).unwrap();
        }
        let count = restore(&from, &to).unwrap();
        assert_eq!(count.cloned + count.linked + count.copied, 3);
        fs::write(to.join("MANIFEST-000002"), "changed").unwrap();
        fs::remove_file(to.join("000001.sst")).unwrap();
        assert_eq!(fs::read_to_string(from.join("MANIFEST-000002")).unwrap(), "MANIFEST-000002");
        assert_eq!(fs::read_to_string(from.join("000001.sst")).unwrap(), "000001.sst");
        assert_eq!(fs::read_to_string(to.join("archive/000003.log")).unwrap(), "archive/000003.log");
    }
}

//! A directory that is built under another name, `NAME.tmp`, and gets its own once it is whole.
//!
//! Invariant: nothing is under the target's name before everything in it is durable; an incomplete directory is removed, by the
//! attempt itself or by the next one.

use outcrop_base::{Error, Result};
use outcrop_env::FileSystem;
use outcrop_env::file_system::parent_of;
use outcrop_manifest::file_name::{self, FileKind};
use std::path::{Path, PathBuf};

/// The directory while it is built. Removed with the files in it unless [`Staging::install`] gave it its name.
pub struct Staging<'f> {
    fs: &'f dyn FileSystem,
    dir: PathBuf,
    target: PathBuf,
    installed: bool,
}

impl<'f> Staging<'f> {
    /// An empty directory beside `target`, in place of one that an earlier attempt left.
    ///
    /// # Errors
    /// InvalidArgument if there is one with something in it that no attempt puts there: another's file, or a database; IoError.
    pub fn new(fs: &'f dyn FileSystem, target: &Path) -> Result<Staging<'f>> {
        let mut name = target.as_os_str().to_owned();
        name.push(".tmp");
        let dir = PathBuf::from(name);
        let left = if fs.exists(&dir)? { fs.list(&dir)? } else { Vec::new() };
        let is_foreign = |name: &&String| match file_name::parse(name) {
            None
            | Some(FileKind::Lock | FileKind::InfoLog | FileKind::OldInfoLog(_) | FileKind::Identity) => true,
            Some(_) => false,
        };
        if let Some(foreign) = left.iter().find(is_foreign) {
            return Err(Error::invalid_argument(format!(
                "{} is in the way: no earlier attempt left it, so the directory is not replaced",
                dir.join(foreign).display()
            )));
        }
        for name in left {
            fs.remove_file(&dir.join(name))?;
        }
        fs.create_dir_all_durably(parent_of(target))?;
        fs.create_dir_all(&dir)?;
        Ok(Staging { fs, dir, target: target.to_path_buf(), installed: false })
    }

    /// Where files are to be put.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives it its name. Contents of the files must be durable before; their names are on return, and so is the directory's.
    ///
    /// # Errors
    /// IoError. If the name was given and could not be made durable, the directory stays.
    pub fn install(mut self) -> Result<()> {
        self.fs.sync_dir(&self.dir)?;
        self.fs.rename(&self.dir, &self.target)?;
        self.installed = true;
        self.fs.sync_dir(parent_of(&self.target))
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        if self.installed {
            return;
        }
        for name in self.fs.list(&self.dir).unwrap_or_default() {
            // The next attempt removes a file that stays, or fails with its name.
            let _ = self.fs.remove_file(&self.dir.join(name));
        }
        let _ = self.fs.remove_dir(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::ErrorKind;
    use outcrop_env::memory::MemoryFs;
    use outcrop_env::{Env, OpenWrite};
    use std::sync::Arc;

    fn write(env: &Env, path: &str) {
        let mut file = env.fs.create(Path::new(path), OpenWrite::default()).unwrap();
        file.append(b"x").unwrap();
        file.close().unwrap();
    }

    #[test]
    fn it_is_there_whole_or_not_at_all() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d/t.tmp")).unwrap();
        write(&env, "/d/t.tmp/000001.sst");
        let staging = Staging::new(&*env.fs, Path::new("/d/t")).unwrap();
        assert_eq!(env.fs.list(staging.dir()).unwrap(), [""; 0]);
        write(&env, "/d/t.tmp/000002.sst");
        drop(staging);
        assert!(!env.fs.exists(Path::new("/d/t.tmp")).unwrap());

        let staging = Staging::new(&*env.fs, Path::new("/d/t")).unwrap();
        write(&env, "/d/t.tmp/000003.sst");
        staging.install().unwrap();
        assert_eq!(env.fs.list(Path::new("/d/t")).unwrap(), ["000003.sst"]);
        assert!(!env.fs.exists(Path::new("/d/t.tmp")).unwrap());
    }

    #[test]
    fn a_directory_of_others_is_not_touched() {
        let env = Env::memory();
        env.fs.create_dir_all(Path::new("/d/t.tmp")).unwrap();
        write(&env, "/d/t.tmp/000001.sst");
        // The last three are of a database that somebody called so.
        for name in ["notes", "LOCK", "LOG", "IDENTITY"] {
            write(&env, &format!("/d/t.tmp/{name}"));
            let error = Staging::new(&*env.fs, Path::new("/d/t")).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(name), "{error}");
            assert_eq!(env.fs.list(Path::new("/d/t.tmp")).unwrap().len(), 2);
            env.fs.remove_file(&Path::new("/d/t.tmp").join(name)).unwrap();
        }
    }

    #[test]
    fn directories_above_it_are_durable_with_it() {
        let fs = MemoryFs::new();
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let staging = Staging::new(&*env.fs, Path::new("/new/deep/t")).unwrap();
        let path = staging.dir().join("000001.sst");
        let mut file = env.fs.create(&path, OpenWrite::default()).unwrap();
        file.append(b"x").unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        staging.install().unwrap();
        fs.crash();
        assert!(env.fs.exists(Path::new("/new/deep/t/000001.sst")).unwrap());
    }
}

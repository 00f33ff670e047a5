//! The calls that a file system of the tests passes on to the one that it wraps.

/// In an `impl FileSystem`: all but opening and creating files goes to the field `inner`.
macro_rules! passed_on {
    () => {
        fn exists(&self, path: &Path) -> Result<bool> {
            self.inner.exists(path)
        }

        fn file_size(&self, path: &Path) -> Result<u64> {
            self.inner.file_size(path)
        }

        fn list(&self, dir: &Path) -> Result<Vec<String>> {
            self.inner.list(dir)
        }

        fn create_dir_all(&self, dir: &Path) -> Result<()> {
            self.inner.create_dir_all(dir)
        }

        fn remove_file(&self, path: &Path) -> Result<()> {
            self.inner.remove_file(path)
        }

        fn remove_dir(&self, dir: &Path) -> Result<()> {
            self.inner.remove_dir(dir)
        }

        fn rename(&self, source: &Path, target: &Path) -> Result<()> {
            self.inner.rename(source, target)
        }

        fn hard_link(&self, source: &Path, target: &Path) -> Result<()> {
            self.inner.hard_link(source, target)
        }

        fn sync_file(&self, path: &Path) -> Result<()> {
            self.inner.sync_file(path)
        }

        fn sync_dir(&self, dir: &Path) -> Result<()> {
            self.inner.sync_dir(dir)
        }

        fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
            self.inner.lock(path)
        }

        fn free_space(&self, dir: &Path) -> Result<Option<u64>> {
            self.inner.free_space(dir)
        }
    };
}
pub(crate) use passed_on;

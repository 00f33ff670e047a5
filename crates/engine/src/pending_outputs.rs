//! The files a running job writes: removed if it fails, kept if a MANIFEST may name them.

use crate::context::DbContext;
use outcrop_base::{ErrorKind, Result};
use outcrop_manifest::{FileNumber, file_name};
use parking_lot::Mutex;
use std::sync::Arc;

/// The files, tables or blob files, a job has started to write. Dropped without [`PendingOutputs::install_or_remove`], it removes the files:
/// they are of a job that failed.
pub struct PendingOutputs {
    ctx: Arc<DbContext>,
    numbers: Mutex<Vec<FileNumber>>,
    /// Complete, and about to be installed.
    kept: Mutex<Vec<FileNumber>>,
}

impl PendingOutputs {
    /// None yet.
    pub fn new(ctx: &Arc<DbContext>) -> PendingOutputs {
        PendingOutputs { ctx: ctx.clone(), numbers: Mutex::default(), kept: Mutex::default() }
    }

    /// A number for a new output.
    pub fn reserve(&self) -> FileNumber {
        let number = self.ctx.new_file_number();
        self.numbers.lock().push(number);
        number
    }

    /// The outputs are complete and about to be installed. From here on they are not removed on failure, before another MANIFEST
    /// is in charge: a write of this one that failed may still have reached the disk.
    pub fn disarm(&self) {
        self.kept.lock().append(&mut self.numbers.lock());
    }

    /// After [`PendingOutputs::disarm`]: they belong to the database.
    pub fn installed(&self) {
        self.kept.lock().clear();
    }

    /// Installs the outputs, which are complete. Only if `install` finds their column family dropped before anything was
    /// written are they removed at once: a MANIFEST write that failed, or that a panic followed, may still have reached the disk.
    pub fn install_or_remove(&self, install: impl FnOnce() -> Result<()>) -> Result<()> {
        self.disarm();
        let installed = install();
        match &installed {
            Ok(()) => self.installed(),
            Err(error) if error.kind() == ErrorKind::ColumnFamilyDropped => {
                self.numbers.lock().append(&mut self.kept.lock());
            }
            Err(_) => {}
        }
        installed
    }
}

impl Drop for PendingOutputs {
    fn drop(&mut self) {
        self.ctx.doubtful_outputs.lock().append(&mut self.kept.lock());
        for number in self.numbers.lock().drain(..) {
            // Best effort: the scan at the next open finds a file that stays.
            for dir in self.ctx.data_dirs.load().iter() {
                for path in [file_name::table(dir, number), file_name::blob(dir, number)] {
                    let _ = self.ctx.env.fs.remove_file(&path);
                    self.ctx.file_removed(&path);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::Parts;
    use outcrop_base::Error;
    use outcrop_env::OpenWrite;

    /// A file of a job, empty.
    fn written(parts: &Parts, pending: &PendingOutputs) -> FileNumber {
        let number = pending.reserve();
        let path = file_name::table(&parts.ctx.path, number);
        parts.ctx.env.fs.create(&path, OpenWrite::default()).unwrap().close().unwrap();
        number
    }

    fn failed(kind: ErrorKind) -> Result<()> {
        Err(Error::new(kind, "test"))
    }

    #[test]
    fn the_files_of_a_job_that_fails_are_removed() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        written(&parts, &pending);
        pending.reserve();
        assert_eq!(parts.files(".sst").len(), 1);
        drop(pending);
        assert_eq!(parts.files(".sst"), [""; 0]);
        assert!(parts.ctx.doubtful_outputs.lock().is_empty());
    }

    #[test]
    fn what_is_installed_stays() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        written(&parts, &pending);
        pending.install_or_remove(|| Ok(())).unwrap();
        drop(pending);
        assert_eq!(parts.files(".sst").len(), 1);
        assert!(parts.ctx.doubtful_outputs.lock().is_empty());
    }

    #[test]
    fn what_a_failed_manifest_may_name_is_set_aside() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        let number = written(&parts, &pending);
        pending.install_or_remove(|| failed(ErrorKind::IoError)).unwrap_err();
        drop(pending);
        assert_eq!(parts.files(".sst").len(), 1);
        assert_eq!(*parts.ctx.doubtful_outputs.lock(), [number]);
    }

    #[test]
    fn so_it_is_after_a_panic() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        written(&parts, &pending);
        let panicked = crate::panic::caught("test", || pending.install_or_remove(|| panic!("in the middle")));
        assert!(panicked.is_err());
        drop(pending);
        assert_eq!((parts.files(".sst").len(), parts.ctx.doubtful_outputs.lock().len()), (1, 1));
    }

    #[test]
    fn outputs_of_a_dropped_column_family_are_removed_at_once() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        written(&parts, &pending);
        pending.install_or_remove(|| failed(ErrorKind::ColumnFamilyDropped)).unwrap_err();
        drop(pending);
        assert_eq!(parts.files(".sst"), [""; 0]);
    }

    #[test]
    fn numbers_are_given_once() {
        let parts = Parts::new();
        let pending = PendingOutputs::new(&parts.ctx);
        let (first, second) = (pending.reserve(), pending.reserve());
        assert!(first < second && second < parts.ctx.next_file_number());
    }
}

//! Writing a MANIFEST: a snapshot of everything first, then edits as they happen.

use crate::file_name;
use crate::{FileNumber, VersionEdit};
use outcrop_base::{Error, Result};
use outcrop_env::{FileSystem, OpenWrite, WriteFile};
use outcrop_record::LogWriter;
use std::path::Path;

/// The MANIFEST being written. After an error its tail is unknown, and every later call fails too.
pub struct ManifestWriter {
    writer: LogWriter,
    number: FileNumber,
}

impl ManifestWriter {
    /// Creates MANIFEST `number` in `dir`, holding `snapshot`, and makes CURRENT name it. Durable on return.
    ///
    /// A crash on the way leaves the old CURRENT and MANIFEST in charge.
    ///
    /// # Errors
    /// The error of the file system. The file is removed, unless CURRENT names it: whether that is durable is not
    /// known then.
    pub fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        number: FileNumber,
        snapshot: &[VersionEdit],
    ) -> Result<ManifestWriter> {
        let created = ManifestWriter::write(fs, dir, number, snapshot);
        if created.is_err() {
            let ours = format!("{}\n", file_name::manifest_name(number)).into_bytes();
            let current = fs.read_all(&file_name::current(dir));
            let missing = current.as_ref().is_err_and(Error::is_missing_file);
            if missing || current.is_ok_and(|current| current != ours) {
                // Best effort: the scan at the next open finds a file that stays.
                let _ = fs.remove_file(&file_name::manifest(dir, number));
                let _ = fs.remove_file(&file_name::temp(dir, number));
            }
        }
        created
    }

    fn write(
        fs: &dyn FileSystem,
        dir: &Path,
        number: FileNumber,
        snapshot: &[VersionEdit],
    ) -> Result<ManifestWriter> {
        let file = fs.create(&file_name::manifest(dir, number), OpenWrite::default())?;
        let mut manifest = ManifestWriter { writer: LogWriter::new(file, 0, false), number };
        for edit in snapshot {
            manifest.append_one(edit)?;
        }
        manifest.sync()?;
        fs.sync_dir(dir)?;
        let contents = format!("{}\n", file_name::manifest_name(number));
        fs.replace(&file_name::current(dir), &file_name::temp(dir, number), contents.as_bytes())?;
        Ok(manifest)
    }

    /// The MANIFEST of a database that is only read: every append to `file` fails.
    pub fn nowhere(file: Box<dyn WriteFile>) -> ManifestWriter {
        ManifestWriter { writer: LogWriter::new(file, 0, false), number: FileNumber(0) }
    }

    /// Its number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.writer.len()
    }

    /// Appends `edits`; more than one become an atomic group. Durable only after [`ManifestWriter::sync`].
    pub fn append(&mut self, edits: &[VersionEdit]) -> Result<()> {
        if let [edit] = edits {
            return self.append_one(edit);
        }
        for (index, edit) in edits.iter().enumerate() {
            let mut edit = edit.clone();
            edit.remaining_in_group = Some((edits.len() - 1 - index) as u32);
            self.append_one(&edit)?;
        }
        Ok(())
    }

    fn append_one(&mut self, edit: &VersionEdit) -> Result<()> {
        let mut record = Vec::new();
        edit.encode(&mut record);
        self.writer.append(&record).map(|_| ())
    }

    /// Makes everything appended durable.
    pub fn sync(&mut self) -> Result<()> {
        self.writer.sync()
    }
}

//! Looking whether a backup is whole.

use super::directory::{Backups, StoredFile};
use super::parallel;
use super::store::Store;
use outcrop_base::{Error, ErrorKind, Result};

/// How closely it is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Sizes.
    Sizes,
    /// Contents.
    Checksums,
}

/// See [`crate::BackupEngine::verify_backup`].
pub fn verify(store: &Store, backups: &Backups, id: u32, how: How) -> Result<()> {
    let backup = match backups.get(id) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::not_found("")),
        found => found?,
    };
    for file in &backup.files {
        store.layout.check_size(file)?;
    }
    if how == How::Sizes {
        return Ok(());
    }
    let reader = store.reader();
    let layout = store.layout.clone();
    let check = move |file: StoredFile| {
        let path = layout.path(&file.meta.name);
        let found = reader.checksum(&*layout.fs, &path, file.size)?;
        Ok(file.meta.crc.filter(|crc| *crc != found.crc).map(|expected| {
            Error::corruption(format!(
                "File corruption! Checksum mismatch for {}. Expected: {expected:08X}, got: {:08X}",
                path.display(),
                found.crc
            ))
        }))
    };
    let threads = store.options.max_background_operations;
    let found = parallel::for_each(&*store.env.threads, threads, backup.files.clone(), check)?;
    found.into_iter().flatten().next().map_or(Ok(()), Err)
}

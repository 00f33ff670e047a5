//! Reading a MANIFEST back that was written.

use crate::{FileNumber, VersionEdit, file_name};
use outcrop_base::{Error, Result};
use outcrop_env::{Access, FileSystem, OpenRead};
use outcrop_record::{LogReader, ReadOutcome};
use std::path::Path;

/// Reads MANIFEST `number` in `dir`, of which `size` bytes were written.
///
/// # Errors
/// Corruption if it is shorter, or if one of its records is damaged or is no edit.
pub fn verify(fs: &dyn FileSystem, dir: &Path, number: FileNumber, size: u64) -> Result<()> {
    let path = file_name::manifest(dir, number);
    let file = fs.open_read(&path, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
    let found = file.size();
    if found < size {
        let message = format!("{}: size is {found} bytes, {size} were written", path.display());
        return Err(Error::corruption(message));
    }
    let mut reader = LogReader::of_manifest(file);
    loop {
        match reader.next()? {
            ReadOutcome::End => return Ok(()),
            ReadOutcome::Damaged(damage) => return Err(damage.error),
            ReadOutcome::Record(bytes, offset) => {
                let named = |error: Error| error.within(format!("{}: offset {offset}", path.display()));
                VersionEdit::decode(bytes).map_err(named)?;
            }
        }
    }
}

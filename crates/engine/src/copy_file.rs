//! Another name, or a copy, of a file that is whole.

use outcrop_base::{ErrorKind, Result};
use outcrop_env::{Access, FileSystem, OpenRead, OpenWrite};
use std::path::Path;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Another name for a file that never changes; a copy where the file system has no such thing.
pub fn link_or_copy(fs: &dyn FileSystem, source: &Path, target: &Path) -> Result<()> {
    match fs.hard_link(source, target) {
        Err(error) if error.kind() == ErrorKind::NotSupported => {
            copy_file(fs, source, target, fs.file_size(source)?)
        }
        result => result,
    }
}

/// Copies the first `len` bytes, durably.
pub fn copy_file(fs: &dyn FileSystem, source: &Path, target: &Path, len: u64) -> Result<()> {
    let input = fs.open_read(source, OpenRead { access: Access::Sequential, ..OpenRead::default() })?;
    let mut output = fs.create(target, OpenWrite::default())?;
    let mut buffer = vec![0; COPY_BYTES.min(len.max(1) as usize)];
    let mut done = 0;
    while done < len {
        let part = buffer.len().min((len - done) as usize);
        input.read_exact_at(done, &mut buffer[..part])?;
        output.append(&buffer[..part])?;
        done += part as u64;
    }
    output.sync()?;
    output.close()
}

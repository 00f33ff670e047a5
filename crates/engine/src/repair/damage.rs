//! Which errors are damage of a file.

use outcrop_base::{Error, Result};

/// Passes errors on that are no damage of a file: that there is no memory, or no descriptor, says nothing of it.
///
/// # Errors
/// The error, unless it is damage.
pub fn refuse_unless_damage(error: &Error) -> Result<()> {
    /// A device that cannot read its medium.
    const EIO: i32 = 5;
    match error.io_source() {
        Some(source) if source.raw_os_error() != Some(EIO) => Err(error.clone()),
        _ => Ok(()),
    }
}

//! The report.
use crate::store::Store;
use std::path::{Path, PathBuf};
/// Writes.
pub fn write(_store: &Store, _id: i64, _dir: &Path) -> Result<PathBuf, String> {
    Err(String::new())
}

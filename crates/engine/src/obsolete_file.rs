//! One table or blob file to remove: enough to find it, and its blocks, once its metadata is gone.
//!
//! Next: `background.rs` lists those that nobody holds, `obsolete_files.rs` removes them.

use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A table or blob file that no version has.
pub struct ObsoleteFile {
    pub number: FileNumber,
    /// Its directory; `None`: the database's.
    pub dir: Option<Arc<Path>>,
    /// The size of a table; `None`: it is a blob file.
    pub table_size: Option<u64>,
    /// Its part of block cache keys.
    pub cache_file_id: u64,
}

impl ObsoleteFile {
    /// Where it is, if the database is in `db_dir`.
    pub fn path(&self, db_dir: &Path) -> PathBuf {
        let dir = self.dir.as_deref().unwrap_or(db_dir);
        match self.table_size {
            Some(_) => file_name::table(dir, self.number),
            None => file_name::blob(dir, self.number),
        }
    }
}

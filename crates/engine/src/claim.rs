//! A directory of `db_paths` or `cf_paths` that an open database has claimed: see `path_owners.rs`.

use outcrop_env::FileLock;
use outcrop_manifest::FileNumber;
use std::path::PathBuf;

/// One directory, until it is dropped.
pub struct Claim {
    /// In one spelling.
    pub dir: PathBuf,
    /// Files from this number on are the database's.
    pub owned_from: FileNumber,
    /// Held.
    #[expect(dead_code, reason = "held to be dropped")]
    pub lock: Box<dyn FileLock>,
}

//! The names of files, the edits that change the set of tables, and its versions.
//!
//! ```text
//! CURRENT -> MANIFEST = VersionEdit, VersionEdit, ...      (a log, see outcrop-record)
//! Version + VersionEdit --VersionBuilder--> Version        (immutable, shared by readers)
//! ```
//! Bytes: `docs/format/manifest.md`. Next: `edit.rs`, `version.rs`, `builder.rs`, `wal_set.rs`, `recover.rs`,
//! `writer.rs`, `verify.rs`.
#![forbid(unsafe_code)]

mod blob_file;
mod builder;
#[cfg(any(test, feature = "drawing"))]
mod drawing;
mod edit;
pub mod file_name;
mod recover;
mod table_file;
mod verify;
mod version;
mod wal_set;
mod writer;

pub use blob_file::{BlobFile, BlobFileState, BlobFiles, Garbage};
pub use builder::VersionBuilder;
pub use edit::{VersionEdit, WalAddition};
pub use outcrop_base::{CfId, FileNumber};
pub use recover::{ManifestReader, RecoveredColumnFamily, RecoveredManifest, list_column_families, recover};
pub use table_file::{TableFile, TableMeta, TableRuntime};
pub use verify::verify;
pub use version::{Level, Version};
pub use wal_set::WalSet;
pub use writer::ManifestWriter;

#[cfg(test)]
mod tests;

//! Backups: copies of a database in a directory of their own, each complete, sharing the tables that they have in common.
//!
//! ```text
//! DIR/meta/N                       what backup N consists of: meta.rs
//! DIR/private/N/                   its CURRENT, MANIFEST, OPTIONS and WALs
//! DIR/shared_checksum/             tables and blob files, named by what they are, so that equal names are equal files
//! DIR/shared/                      the same, named by number alone: `share_files_with_checksum` off
//! create.rs   live files -> which are there already, intact? -> copy.rs the others -> meta
//! restore.rs  check the backup -> remove the old database -> copy.rs -> CURRENT last
//! collect.rs  deleting backups, and what none of them needs
//! ```
//! The directory is RocksDB's, so that either engine goes on with the other's backups. Invariant: a backup exists once its meta
//! file has its name; everything it lists is durable by then, and is removed only after it.
//!
//! Concurrency: an engine does one thing at a time; [`engine::BackupEngine::stop_backup`] alone does not wait.
//! Operations that write also take the directory's lock and list the backups again, so that several engines may be
//! open.
//! Built on the public methods of [`crate::Db`].
//! Source: RocksDB `utilities/backup/backup_engine.cc`; differences in `docs/backups.md`.

mod collect;
mod copy;
mod create;
mod directory;
pub mod engine;
pub mod info;
pub mod meta;
pub mod options;
mod parallel;
mod plan;
mod restore;
mod store;
mod verify;

//! The archive of WALs: with `WAL_ttl_seconds` or `WAL_size_limit_MB` a WAL that is not needed any more is moved into `archive/` rather
//! than removed, so that [`crate::Db::updates_since`] can go on reading it.
//!
//! ```text
//! obsolete_files, open -> discard -> archive/NNNNNN.log -> purge: files that are too old, then the oldest while there is too much
//! ```
//! It is never replayed. Invariant: a WAL is in one of the two directories at any time, so that who looks into the WAL directory first,
//! and into the archive then, finds it.
//!
//! Source: RocksDB `db/wal_manager.cc`, `ArchiveWALFile`, `PurgeObsoleteWALFiles`.

use crate::context::DbContext;
use crate::copy_file::copy_file;
use crate::info_log::log_line;
use outcrop_base::Result;
use outcrop_env::FileSystem;
use outcrop_manifest::FileNumber;
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_options::DbOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// How often the archive is looked at, at least. Seconds.
const LONGEST_INTERVAL: u64 = 600;

/// True if WALs are archived.
pub fn is_on(options: &DbOptions) -> bool {
    options.wal_ttl_seconds > 0 || options.wal_size_limit_mb > 0
}

/// Where archived WALs of the directory `wal_dir` are.
pub fn dir(wal_dir: &Path) -> PathBuf {
    wal_dir.join("archive")
}

/// Makes the directory, if WALs are to be archived.
pub fn prepare(ctx: &DbContext) -> Result<()> {
    if is_on(&ctx.options) { ctx.env.fs.create_dir_all_durably(&dir(&ctx.wal_dir)) } else { Ok(()) }
}

/// WAL `number` is not needed any more: it is archived or removed. Best effort: the next open finds a file that stays.
pub fn discard(ctx: &DbContext, number: FileNumber) {
    let path = file_name::wal(&ctx.wal_dir, number);
    if !is_on(&ctx.options) {
        match ctx.env.fs.remove_file(&path) {
            Ok(()) => {
                ctx.failed_writes.forget_record(number);
                log_line!(ctx, "removed {}", path.display())
            }
            Err(error) => log_line!(ctx, "could not remove {}: {error}", path.display()),
        }
        return;
    }
    let archived = file_name::wal(&dir(&ctx.wal_dir), number);
    let done = match ctx.failed_writes.record_in(number) {
        None => ctx.env.fs.rename(&path, &archived),
        Some(len) => archive_beginning(&*ctx.env.fs, &path, &archived, len),
    };
    match done {
        Ok(()) => {
            ctx.failed_writes.forget_record(number);
            log_line!(ctx, "archived {}", path.display())
        }
        Err(error) => log_line!(ctx, "could not archive {}: {error}", path.display()),
    }
}

/// Archives the first `len` bytes of a WAL: what follows is the record of a write that failed.
fn archive_beginning(fs: &dyn FileSystem, path: &Path, archived: &Path, len: u64) -> Result<()> {
    let len = len.min(fs.file_size(path)?);
    copy_file(fs, path, archived, len)?;
    fs.remove_file(path)
}

/// Numbers of the WALs that are in the archive, or on their way there, ascending. `live` are those in use, ascending, which the caller has
/// asked for before.
pub fn numbers(ctx: &DbContext, live: &[FileNumber]) -> Result<Vec<FileNumber>> {
    let is_past = |number: &FileNumber| !live.contains(number) && Some(number) < live.last();
    // The archive after the directory that they are moved from.
    let leaving = if is_on(&ctx.options) { numbers_in(ctx, &ctx.wal_dir)? } else { Vec::new() };
    let mut numbers = archived(ctx)?;
    numbers.extend(leaving.into_iter().filter(is_past));
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Numbers of the WALs in the archive, ascending; none if there is no archive.
fn archived(ctx: &DbContext) -> Result<Vec<FileNumber>> {
    let dir = dir(&ctx.wal_dir);
    if ctx.env.fs.exists(&dir)? { numbers_in(ctx, &dir) } else { Ok(Vec::new()) }
}

fn numbers_in(ctx: &DbContext, dir: &Path) -> Result<Vec<FileNumber>> {
    let names = ctx.env.fs.list(dir)?;
    let number = |name: String| match file_name::parse(&name) {
        Some(FileKind::Wal(number)) => Some(number),
        _ => None,
    };
    let mut numbers: Vec<FileNumber> = names.into_iter().filter_map(number).collect();
    // Directories list names in any order.
    numbers.sort_unstable();
    Ok(numbers)
}

/// One archived WAL.
#[derive(Clone, Copy, Debug)]
struct Archived {
    number: FileNumber,
    bytes: u64,
    /// When it was written last, seconds since the epoch, if the file system knows.
    modified: Option<u64>,
}

/// Removes what is too old, or too much, unless it was looked at lately.
pub fn purge(ctx: &DbContext) {
    if !is_on(&ctx.options) {
        return;
    }
    let now = ctx.env.clock.now_micros() / 1_000_000;
    let interval = match ctx.options.wal_ttl_seconds {
        0 => LONGEST_INTERVAL,
        ttl => (ttl / 2).clamp(1, LONGEST_INTERVAL),
    };
    // Relaxed: two that look at once remove the same files.
    let last = ctx.archive_purged.load(Ordering::Relaxed);
    if last.saturating_add(interval) > now {
        return;
    }
    ctx.archive_purged.store(now, Ordering::Relaxed);
    let dir = dir(&ctx.wal_dir);
    let found = archived(ctx).unwrap_or_default().into_iter().filter_map(|number| {
        let path = file_name::wal(&dir, number);
        let bytes = ctx.env.fs.file_size(&path).ok()?;
        let modified = ctx.env.fs.modified_seconds(&path).unwrap_or(None);
        Some(Archived { number, bytes, modified })
    });
    let found: Vec<Archived> = found.collect();
    for number in surplus(&found, now, &ctx.options) {
        let path = file_name::wal(&dir, number);
        match ctx.env.fs.remove_file(&path) {
            Ok(()) => log_line!(ctx, "removed {} from the archive", path.display()),
            Err(error) => log_line!(ctx, "could not remove {}: {error}", path.display()),
        }
    }
}

/// The files of `found`, ascending, that are to go at second `now`.
fn surplus(found: &[Archived], now: u64, options: &DbOptions) -> Vec<FileNumber> {
    let ttl = options.wal_ttl_seconds;
    let expired = |file: &Archived| ttl > 0 && file.modified.is_some_and(|at| at <= now && now - at > ttl);
    let (mut gone, mut left): (Vec<Archived>, Vec<Archived>) = found.iter().partition(|file| expired(file));
    if options.wal_size_limit_mb > 0 {
        gone.extend(left.extract_if(.., |file| file.bytes == 0));
        if let Some(largest) = left.iter().map(|file| file.bytes).max() {
            let kept = options.wal_size_limit_mb.saturating_mul(1 << 20) / largest;
            let kept = usize::try_from(kept).unwrap_or(usize::MAX);
            gone.extend(left.drain(..left.len().saturating_sub(kept)));
        }
    }
    gone.iter().map(|file| file.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(ttl: u64, limit: u64, found: &[(u64, u64, Option<u64>)]) -> Vec<u64> {
        let options = DbOptions { wal_ttl_seconds: ttl, wal_size_limit_mb: limit, ..DbOptions::default() };
        let found: Vec<Archived> = found
            .iter()
            .map(|(number, bytes, modified)| Archived {
                number: FileNumber(*number),
                bytes: *bytes,
                modified: *modified,
            })
            .collect();
        surplus(&found, 1000, &options).iter().map(|number| number.0).collect()
    }

    #[test]
    fn what_is_older_than_the_ttl_goes() {
        let files = [(1, 5, Some(899)), (2, 5, Some(900)), (3, 5, Some(1500)), (4, 5, None)];
        assert_eq!(gone(100, 0, &files), [1]);
        assert_eq!(gone(10_000, 0, &files), [0; 0]);
        // Empty files stay for their time.
        assert_eq!(gone(100, 0, &[(1, 0, Some(950))]), [0; 0]);
    }

    #[test]
    fn the_oldest_go_while_as_many_of_the_largest_would_be_too_much() {
        let mib = 1 << 20;
        let files = [(1, mib, None), (2, 2 * mib, None), (3, 0, None), (4, mib, None)];
        assert_eq!(gone(0, 4, &files), [3, 1]);
        assert_eq!(gone(0, 6, &files), [3]);
        assert_eq!(gone(0, 1, &files), [3, 1, 2, 4]);
        assert_eq!(gone(0, 1, &[(1, 0, None)]), [1]);
        assert_eq!(gone(0, u64::MAX, &files), [3]);
    }

    #[test]
    fn what_is_too_old_does_not_count_for_the_limit() {
        let mib = 1 << 20;
        let files = [(1, 3 * mib, Some(1)), (2, mib, Some(999)), (3, mib, Some(999))];
        assert_eq!(gone(100, 2, &files), [1]);
    }
}

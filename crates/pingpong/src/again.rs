//! Lives that are played again because of what RocksDB does to itself.
//!
//! A process of RocksDB, in which nothing of Outcrop's is loaded, now and then dies of an exception that nothing in it catches: "terminate called after
//! throwing an instance of 'std::system_error', what(): Invalid argument", once in 32 plays of one case. That says nothing of the files, so
//! the life is played again from a copy of the directory as it was. If the files are to blame it dies each time, and that is a failure.
//!
//! A checkpoint or backup of RocksDB beside a flush that nobody waits for fails now and then: the flush removes a WAL between the moment it is listed
//! and the moment it is measured (by itself 4 times in 1,686 in 9.11.2, once in 1,661 in 11.8.1). Such a life is played again, too.
//!
//! Outcrop's process is never excused: whatever ends it, or fails in it, is its own.

use crate::features::OUTCROP;
use std::path::{Path, PathBuf};

/// A life is played again at most so often.
pub const MOST: u64 = 3;

/// True if the process of `engine`, which died like this, may have died of itself.
pub fn is_excused(engine: &str, how: &str) -> bool {
    engine != OUTCROP && how.contains("std::system_error")
}

/// True if `engine` failed like this because a flush of its own removed a WAL that it was about to copy.
pub fn lost_a_wal_to_a_flush(engine: &str, how: &str) -> bool {
    let measured = how.split_once("while stat a file for size: ");
    engine != OUTCROP && measured.is_some_and(|(_, path)| path.ends_with(".log: No such file or directory"))
}

/// Plays a life; after a failure that is `excused`, goes `back` to where it began and plays it again, at most [`MOST`] times. Gives how often.
///
/// # Errors
/// The first failure that is not excused, or the last.
pub fn live<G, E>(
    game: &mut G,
    play: impl Fn(&mut G) -> Result<(), E>,
    excused: impl Fn(&G, &E) -> bool,
    mut back: impl FnMut(&mut G) -> Result<(), E>,
) -> Result<u64, E> {
    for again in 0..=MOST {
        match play(game) {
            Ok(()) => return Ok(again),
            Err(error) if again == MOST || !excused(game, &error) => return Err(error),
            Err(_) => back(game)?,
        }
    }
    unreachable!("the last play ends it")
}

/// A directory as it was when a life began; it may not have been there.
pub struct Before {
    dir: PathBuf,
    copy: PathBuf,
}

impl Before {
    /// Copies `dir` to `copy`, in place of what is there.
    ///
    /// # Errors
    /// The directory cannot be copied.
    pub fn of(dir: &Path, copy: &Path) -> Result<Before, String> {
        let before = Before { dir: dir.to_path_buf(), copy: copy.to_path_buf() };
        replace(dir, copy)?;
        Ok(before)
    }

    /// Makes the directory what it was.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn restore(&self) -> Result<(), String> {
        replace(&self.copy, &self.dir)
    }
}

/// Makes `target` a copy of `source`, or nothing if there is no such directory.
fn replace(source: &Path, target: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(target);
    if !source.exists() {
        return Ok(());
    }
    copy_dir(source, target).map_err(|error| format!("the harness cannot copy {}: {error}", source.display()))
}

/// Copies a directory with those in it; tables and blob files are never changed, so they are linked.
pub fn copy_dir(source: &Path, target: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(target)?;
    for entry in std::fs::read_dir(source)? {
        let path = entry?.path();
        let to = target.join(path.file_name().expect("an entry has a name"));
        let fixed = path.extension().is_some_and(|extension| extension == "sst" || extension == "blob");
        if path.is_dir() {
            copy_dir(&path, &to)?;
        } else if !fixed || std::fs::hard_link(&path, &to).is_err() {
            std::fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEATH: &str = "signal: 6 (SIGABRT); terminate called after throwing an instance of 'std::system_error'\n  \
                         what():  Invalid argument";

    #[test]
    fn only_rocksdb_may_die_of_itself_and_only_so() {
        assert!(is_excused("11.8.1", DEATH));
        assert!(!is_excused(OUTCROP, DEATH));
        assert!(!is_excused("11.8.1", "signal: 6 (SIGABRT); Assertion failed"));
        assert!(!is_excused("11.8.1", "signal: 11 (SIGSEGV)"));
    }

    #[test]
    fn only_rocksdb_may_miss_a_wal_that_it_copies() {
        let missing = |name: &str| {
            format!(
                "IO error: No such file or directory: while stat a file for size: {name}: No such file or directory"
            )
        };
        assert!(lost_a_wal_to_a_flush("9.11.2", &missing("/db/000125.log")));
        assert!(!lost_a_wal_to_a_flush(OUTCROP, &missing("/db/000125.log")));
        assert!(!lost_a_wal_to_a_flush("9.11.2", &missing("/db/000125.sst")));
        assert!(!lost_a_wal_to_a_flush("9.11.2", "IO error: No such file or directory: While open a file"));
    }

    /// Plays that end like this, one after the other; gives the result, how many there were, and how often it went back.
    fn played(ends: &[Result<(), &str>], engine: &str) -> (Result<u64, String>, usize, usize) {
        let mut back = 0;
        let mut plays = 0;
        let result = live(
            &mut plays,
            |plays: &mut usize| {
                *plays += 1;
                ends[*plays - 1].map_err(String::from)
            },
            |_, how: &String| is_excused(engine, how),
            |_| {
                back += 1;
                Ok(())
            },
        );
        (result, plays, back)
    }

    #[test]
    fn a_life_is_played_again_so_often_and_no_more() {
        assert_eq!(played(&[Ok(())], "7.10.2"), (Ok(0), 1, 0));
        assert_eq!(played(&[Err(DEATH), Err(DEATH), Ok(())], "7.10.2"), (Ok(2), 3, 2));
        assert_eq!(played(&[Err(DEATH); 4], "7.10.2"), (Err(DEATH.into()), 4, 3));
        assert_eq!(played(&[Err(DEATH), Err("rows differ")], "7.10.2"), (Err("rows differ".into()), 2, 1));
        assert_eq!(played(&[Err(DEATH)], OUTCROP), (Err(DEATH.into()), 1, 0));
    }

    #[test]
    fn a_directory_is_what_it_was() {
        let root = tempfile::tempdir().unwrap();
        let (db, copy) = (root.path().join("db"), root.path().join("before"));
        let write = |name: &str, text: &str| std::fs::write(db.join(name), text).unwrap();
        let read = |name: &str| std::fs::read_to_string(db.join(name)).ok();
        let none = Before::of(&db, &copy).unwrap();
        std::fs::create_dir_all(db.join("archive")).unwrap();
        write("000001.sst", "table");
        write("CURRENT", "old");
        write("archive/000002.log", "wal");
        let before = Before::of(&db, &copy).unwrap();
        std::fs::remove_file(db.join("000001.sst")).unwrap();
        std::fs::remove_file(db.join("archive/000002.log")).unwrap();
        write("CURRENT", "new");
        write("000003.sst", "another");
        before.restore().unwrap();
        assert_eq!(
            ["CURRENT", "000001.sst", "archive/000002.log", "000003.sst"].map(read),
            [Some("old".into()), Some("table".into()), Some("wal".into()), None]
        );
        // The second life begins as the first did.
        before.restore().unwrap();
        assert_eq!(read("CURRENT").as_deref(), Some("old"));
        std::fs::remove_dir_all(&copy).unwrap();
        none.restore().unwrap();
        assert!(!db.exists());
    }
}

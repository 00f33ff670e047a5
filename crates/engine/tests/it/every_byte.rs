//! Every byte of every kind of file, damaged one at a time: the answer is an error that names the file and where in it,
//! or exactly what was written.
//!
//! ```text
//! small database of one shape -> one byte of one file changed, or the file cut there
//!     -> open, scan both ways, get every key -> Corruption naming the file | all rows | (logs) what their mode promises
//! ```
//! The databases are small enough that no byte is left out. Each is opened only to be read, which checks what a writer
//! checks (`recovery.rs` serves both) and leaves the files as they are. `damage.rs` has larger ones, and writers.
//!
//! Harmless is only damage in bytes that no reader uses; [`unused`] lists them, and a byte that stops being checked fails
//! the test. `OUTCROP_DAMAGE=all` changes every bit instead of one of each byte.
//! Next: `every_byte/shapes.rs` for the databases.

mod logs;
mod shapes;

use crate::damage::{Rows, read};
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FAMILY: &str = "default";

/// A database that nobody has open.
struct Small {
    what: String,
    fs: MemoryFs,
    options: ColumnFamilyOptions,
    rows: Rows,
    /// Every key that ever had a value.
    keys: BTreeSet<(String, Vec<u8>)>,
    cache: Arc<Cache>,
}

/// The result of reading a damaged database.
enum Outcome {
    Refused(Error),
    Read(Rows),
}

impl Small {
    fn read(&self, mode: WalRecoveryMode) -> Outcome {
        let env = Env::with_file_system(Arc::new(self.fs.clone()));
        let options = DbOptions { wal_recovery_mode: mode, ..DbOptions::default() };
        let mut family = crate::harness::descriptor(FAMILY, &self.options);
        family.parts.block_cache = Some(self.cache.clone());
        let rows =
            Db::builder("/db").options(options).env(env).column_family(family).open_read_only().and_then(
                |db| read(&db, &[FAMILY.to_string()], &self.keys, &|_, key, value| self.wrote(key, value)),
            );
        match rows {
            Ok(rows) => Outcome::Read(rows),
            Err(error) => Outcome::Refused(error),
        }
    }

    /// True if that is the value of `key`; each key has one, or none.
    fn wrote(&self, key: &[u8], value: &[u8]) -> bool {
        self.rows.get(&(FAMILY.to_string(), key.to_vec())).is_some_and(|row| row == value)
    }

    /// The names and contents of the files that `wanted` accepts.
    fn files(&self, wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
        let all =
            self.fs.files().into_iter().map(|(path, _)| (name(&path), self.fs.read_all(&path).unwrap()));
        all.filter(|(name, _)| wanted(name)).collect()
    }

    fn write(&self, name: &str, contents: &[u8]) {
        let mut file = self.fs.create(&Path::new("/db").join(name), OpenWrite::default()).unwrap();
        file.append(contents).unwrap();
        file.close().unwrap();
    }

    /// Judges the database with each byte of `name` at `offsets` changed in turn, and the file cut there. Returns where
    /// `judge` accepted the change as harmless.
    fn each_damage(
        &self,
        name: &str,
        contents: &[u8],
        offsets: &[usize],
        mode: WalRecoveryMode,
        mut judge: impl FnMut(Damage, Outcome) -> bool,
    ) -> Vec<usize> {
        let mut harmless = Vec::new();
        let path = Path::new("/db").join(name);
        for &at in offsets {
            for mask in masks(at) {
                self.fs.flip_byte(&path, at, mask);
                let outcome = self.read(mode);
                self.fs.flip_byte(&path, at, mask);
                if judge(Damage::Flip { at, mask }, outcome) && harmless.last() != Some(&at) {
                    harmless.push(at);
                }
            }
            self.write(name, &contents[..at]);
            judge(Damage::Cut(at), self.read(mode));
            self.write(name, contents);
        }
        harmless
    }
}

#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the mask is for messages")]
enum Damage {
    /// These bits of the byte at this offset changed.
    Flip { at: usize, mask: u8 },
    /// So many bytes are left.
    Cut(usize),
}

/// Whether each bit is changed.
fn is_thorough() -> bool {
    std::env::var("OUTCROP_DAMAGE").is_ok_and(|value| value == "all")
}

/// How to change the byte at `at`.
fn masks(at: usize) -> Vec<u8> {
    match is_thorough() {
        true => (0..8).map(|bit| 1 << bit).collect(),
        false => vec![1 << (at * 5 % 8)],
    }
}

/// Judges damage in a file all of which is checked: an error that names it, or all rows; whether the latter.
fn all_or_error(small: &Small, name: &str, damage: Damage, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Read(rows) => {
            assert_eq!(rows, small.rows, "{}: {name}: {damage:?}", small.what);
            true
        }
        Outcome::Refused(error) => {
            let text = error.to_string();
            let wrong_size = matches!(damage, Damage::Cut(_)) && text.contains("bytes");
            let placed = text.contains("offset") || wrong_size || error.kind() != ErrorKind::Corruption;
            assert!(text.contains(name) && placed, "{}: {name}: {damage:?}: {text}", small.what);
            false
        }
    }
}

/// Consecutive offsets as ranges.
fn ranges(offsets: &[usize]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &at in offsets {
        match ranges.last_mut() {
            Some((_, end)) if *end == at => *end += 1,
            _ => ranges.push((at, at + 1)),
        }
    }
    ranges
}

/// Bytes of the footer that fill it up: handles were once allowed to be longer. Since format version 6 there are none.
fn footer_padding(table: &[u8]) -> usize {
    let footer = &table[table.len() - 53..];
    match footer[41] {
        0..6 => footer[1..41].iter().rev().take_while(|byte| **byte == 0).count(),
        _ => 0,
    }
}

#[test]
fn no_byte_of_a_table_is_trusted() {
    let mode = WalRecoveryMode::PointInTimeRecovery;
    for (small, unused) in shapes::tables() {
        for (name, contents) in small.files(|name| name.ends_with(".sst") || name.ends_with(".blob")) {
            let offsets: Vec<usize> = (0..contents.len()).collect();
            let mut harmless = small.each_damage(&name, &contents, &offsets, mode, |damage, outcome| {
                let kept = all_or_error(&small, &name, damage, outcome);
                assert!(!kept || matches!(damage, Damage::Flip { .. }), "{}: {name}: {damage:?}", small.what);
                kept
            });
            // Versions 2 to 5 are read alike: one that becomes another is seen nowhere else.
            let version = contents.len() - 12;
            harmless.retain(|at| *at != version || name.ends_with(".blob"));
            let expected = match name.ends_with(".sst") {
                true => unused + footer_padding(&contents),
                // Bits of the header's flags that mean nothing.
                false => 1,
            };
            let what = &small.what;
            assert_eq!(harmless.len(), expected, "{what}: {name}: harmless at {:?}", ranges(&harmless));
        }
    }
}

//! Logs and the files that lead to them: WALs of each kind under each recovery mode, MANIFEST, CURRENT, notes.
//!
//! The result of a damaged WAL is exact: in the modes that stop, the writes before the damaged record; cut off, the
//! writes whose records are whole. A MANIFEST that is cut off describes the database as it was; any changed byte is
//! refused.

use super::{Damage, FAMILY, Outcome, Small, all_or_error, is_thorough};
use crate::damage::Rows;
use crate::harness::{creating, descriptor};
use WalRecoveryMode::*;
use outcrop::*;
use outcrop_env::memory::MemoryFs;
use outcrop_env::{FileSystem, OpenWrite};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A WAL with one write per record, in a database that has nothing else unflushed.
struct Wal {
    small: Small,
    name: String,
    contents: Vec<u8>,
    /// Where the record of each write starts, and where the last one ends.
    starts: Vec<usize>,
    /// The rows after as many writes.
    states: Vec<Rows>,
    modes: &'static [WalRecoveryMode],
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn small(what: &str, live: &MemoryFs, rows: Rows) -> Small {
    // As a killed process leaves them: the bytes that the next writer's log would cut off are still there.
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).unwrap();
    for (path, _) in live.files() {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        // An obsolete file may go while the others are copied.
        let Ok(bytes) = live.read_all(&path) else { continue };
        if name != "LOCK" && !name.starts_with("LOG") {
            let mut file = fs.create(&path, OpenWrite::default()).unwrap();
            file.append(&bytes).unwrap();
            file.close().unwrap();
        }
    }
    Small {
        what: what.to_string(),
        fs,
        options: options(),
        keys: (0..60).map(|number| (FAMILY.to_string(), key(number))).collect(),
        rows,
        cache: Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 }),
    }
}

fn options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        write_buffer_size: 128 << 10,
        disable_auto_compactions: true,
        ..ColumnFamilyOptions::default()
    }
}

/// Writes until the WAL is one that was written over another, then `lens` values more.
fn wal(what: &str, options: DbOptions, lens: &[usize], modes: &'static [WalRecoveryMode]) -> Wal {
    let recycled = options.recycle_log_file_num > 0;
    let header = if recycled || options.allow_fallocate { 11 } else { 7 };
    let live = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(live.clone()));
    let db = Db::builder("/db")
        .options(options)
        .env(env)
        .column_family(descriptor(FAMILY, &self::options()))
        .open()
        .unwrap();
    let cf = db.default_column_family().clone();
    let (mut rows, mut number) = (Rows::new(), 0);
    let mut put = |rows: &mut Rows, len: usize| {
        let value = vec![b'a' + (number % 26) as u8; len];
        db.put(key(number), &value).unwrap();
        rows.insert((FAMILY.to_string(), key(number)), value);
        number += 1;
    };
    for _ in 0..if recycled { 4 } else { 1 } {
        // More than is written over it, so that old records stand behind.
        (0..12).for_each(|_| put(&mut rows, 60));
        db.flush_cf(&cf).unwrap();
    }
    let mut states = vec![rows.clone()];
    for &len in lens {
        put(&mut rows, len);
        states.push(rows.clone());
    }
    let small = small(what, &live, rows);
    let (name, contents) = small.files(|name| name.ends_with(".log")).pop().unwrap();
    let starts = starts(&contents, header, states.len() - 1);
    Wal { small, name, contents, starts, states, modes }
}

/// Where the records of `writes` start, after those about the log, and where the last one ends.
fn starts(log: &[u8], header: usize, writes: usize) -> Vec<usize> {
    let number = |at: usize| &log[at + 7..at + header];
    let (mut starts, mut at) = (Vec::new(), 0);
    while at + header <= log.len() && number(at) == number(0) {
        // FULL and FIRST, ordinary and recyclable.
        if matches!(log[at + 6], 1 | 2 | 5 | 6) {
            starts.push(at);
        }
        at += header + usize::from(u16::from_le_bytes([log[at + 4], log[at + 5]]));
        if (32 << 10) - at % (32 << 10) < header {
            at = at.next_multiple_of(32 << 10);
        }
    }
    starts.push(at);
    assert_eq!(starts.len(), writes + 1, "a record for each write");
    starts
}

impl Wal {
    /// Number of writes whose records end at or before `at`.
    fn whole(&self, at: usize) -> usize {
        self.starts[1..].iter().filter(|&&end| end <= at).count()
    }

    /// True if a record's length is at `at`.
    fn is_length(&self, at: usize) -> bool {
        // 0: the record that says that the log is compressed.
        [0].iter().chain(&self.starts).any(|start| at == start + 4 || at == start + 5)
    }

    /// Offsets to damage: all, but of the inside of long values only some.
    fn offsets(&self) -> Vec<usize> {
        let near = |at: usize| {
            let in_block = at % (32 << 10);
            !(32..(32 << 10) - 32).contains(&in_block) || self.starts.iter().any(|&s| at.abs_diff(s) < 40)
        };
        (0..self.contents.len())
            .filter(|&at| self.contents.len() < 8 << 10 || near(at) || at % 701 == 0)
            .collect()
    }

    fn judge(&self, mode: WalRecoveryMode, damage: Damage, outcome: Outcome) {
        let what = format!("{}: {}: {damage:?}, {mode:?}", self.small.what, self.name);
        let (at, flipped) = match damage {
            Damage::Flip { at, .. } => (at, true),
            Damage::Cut(at) => (at, false),
        };
        let kept = self.whole(at);
        let behind = at >= *self.starts.last().unwrap();
        let boundary = behind || self.starts.contains(&at) || at == 0;
        let refused = match mode {
            AbsoluteConsistency => flipped || !boundary,
            // A length that reaches past the end is what a torn record has.
            TolerateCorruptedTailRecords if self.is_length(at) => {
                flipped && !matches!(outcome, Outcome::Read(_))
            }
            TolerateCorruptedTailRecords => flipped,
            _ => false,
        };
        match outcome {
            Outcome::Refused(error) => {
                assert!(refused, "{what}: {error}");
                let text = error.to_string();
                assert!(text.contains(&self.name) && text.contains("offset"), "{what}: {text}");
            }
            Outcome::Read(_) if refused => panic!("{what}: nothing was said"),
            Outcome::Read(rows) if mode == SkipAnyCorruptedRecords && flipped => {
                let all = self.states.last().unwrap();
                assert!(
                    self.states[kept].iter().all(|row| rows.get(row.0) == Some(row.1)),
                    "{what}: too few rows"
                );
                assert!(rows.iter().all(|row| all.get(row.0) == Some(row.1)), "{what}: wrong rows");
            }
            Outcome::Read(rows) => {
                let state = self.states.iter().position(|state| *state == rows);
                assert_eq!(state, Some(kept), "{what}: {} rows; records at {:?}", rows.len(), self.starts);
            }
        }
    }
}

fn wals() -> Vec<Wal> {
    const ALL: &[WalRecoveryMode] =
        &[AbsoluteConsistency, TolerateCorruptedTailRecords, PointInTimeRecovery, SkipAnyCorruptedRecords];
    let short = [0, 40, 300, 1, 90];
    // Written only for the modes that forgive what stands after the end.
    const FORGIVING: &[WalRecoveryMode] = &[PointInTimeRecovery, SkipAnyCorruptedRecords];
    let plain = || DbOptions { allow_fallocate: false, ..creating() };
    let recycling = |options| DbOptions { recycle_log_file_num: 2, ..options };
    let compressing = DbOptions { wal_compression: CompressionType::Zstd, ..plain() };
    let long = [30, 80 << 10, 30];
    vec![
        wal("plain", plain(), &short, ALL),
        wal("with space ahead", creating(), &short, FORGIVING),
        wal("recycled", recycling(plain()), &short, FORGIVING),
        wal("recycled, with space ahead", recycling(creating()), &short, FORGIVING),
        wal("compressed", compressing, &short, ALL),
        wal("in fragments", plain(), &long, &[AbsoluteConsistency, PointInTimeRecovery]),
        wal("in fragments, with space ahead", creating(), &long, &[PointInTimeRecovery]),
    ]
}

#[test]
fn no_byte_of_a_wal_is_trusted() {
    for wal in wals() {
        for (number, &mode) in wal.modes.iter().enumerate() {
            match wal.small.read(mode) {
                Outcome::Read(rows) => assert_eq!(rows, wal.small.rows, "{}", wal.small.what),
                Outcome::Refused(error) => panic!("{}: {mode:?}: {error}", wal.small.what),
            }
            let judge = |damage, outcome| {
                wal.judge(mode, damage, outcome);
                false
            };
            // In the first mode every byte; each of the others goes through its own third.
            let mut offsets = wal.offsets();
            offsets.retain(|at| number == 0 || is_thorough() || (at + number) % 3 == 0);
            wal.small.each_damage(&wal.name, &wal.contents, &offsets, mode, judge);
        }
    }
}

/// A MANIFEST of several flushes, whose tables hold the rows after each.
#[test]
fn no_byte_of_a_manifest_is_trusted() {
    let live = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(live.clone()));
    let db = Db::builder("/db")
        .options(creating())
        .env(env)
        .column_family(descriptor(FAMILY, &options()))
        .open()
        .unwrap();
    let cf = db.default_column_family().clone();
    let (mut rows, mut states) = (Rows::new(), vec![Rows::new()]);
    for number in 0..4 {
        db.put(key(number), b"value").unwrap();
        rows.insert((FAMILY.to_string(), key(number)), b"value".to_vec());
        db.flush_cf(&cf).unwrap();
        states.push(rows.clone());
    }
    let small = small("flushed", &live, rows);
    // One that was not removed yet would be replayed over the older state.
    for (wal, _) in small.files(|name| name.ends_with(".log")) {
        small.fs.remove_file(&Path::new("/db").join(wal)).unwrap();
    }
    let (name, contents) = small.files(|name| name.starts_with("MANIFEST")).pop().unwrap();
    let offsets: Vec<usize> = (0..contents.len()).collect();
    let mut seen = BTreeSet::new();
    small.each_damage(&name, &contents, &offsets, PointInTimeRecovery, |damage, outcome| {
        match (damage, outcome) {
            (Damage::Flip { .. }, Outcome::Read(_)) => panic!("{damage:?}: nothing was said"),
            (Damage::Cut(_), Outcome::Read(rows)) => {
                let state = states.iter().position(|state| *state == rows);
                seen.insert(state.unwrap_or_else(|| panic!("{damage:?}: wrong rows {rows:?}")));
            }
            (_, Outcome::Refused(error)) => assert!(error.to_string().contains(&name), "{damage:?}: {error}"),
        }
        false
    });
    assert!(seen.contains(&0) && seen.contains(&3), "states of cut MANIFESTs: {seen:?}");
}

#[test]
fn current_is_checked_and_notes_are_harmless() {
    let wal = wal("plain", creating(), &[10], &[]);
    let small = &wal.small;
    let mode = PointInTimeRecovery;
    for (name, contents) in small.files(|name| !name.contains('.') && !name.starts_with("MANIFEST")) {
        let offsets: Vec<usize> = (0..contents.len()).collect();
        small.each_damage(&name, &contents, &offsets, mode, |damage, outcome| match outcome {
            Outcome::Refused(error) if name == "CURRENT" => {
                // A name that is well-formed leads to a file that is missing.
                let text = error.to_string();
                assert!(text.contains("CURRENT") || text.contains("MANIFEST-"), "{damage:?}: {text}");
                false
            }
            Outcome::Read(_) if name == "CURRENT" => panic!("{damage:?}: nothing was said"),
            outcome => {
                assert!(all_or_error(small, &name, damage, outcome), "{name}: {damage:?}: a note was needed");
                true
            }
        });
    }
}

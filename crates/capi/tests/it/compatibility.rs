//! One directory, two engines: ours and a reference RocksDB take turns, after clean closes and after crashes,
//! and after every turn both must see exactly the rows of a model.
//!
//! A reference RocksDB opens a *copy* first: current versions open a tree they find illegal as empty and
//! delete its files without an error, so success alone says nothing and the original must survive.

use crate::library::{Api, Database, FamilyRows, Setup, outcrop_library, reference_libraries};
use outcrop_base::random::SplitMix;
use outcrop_env::{Env, OpenRead};
use outcrop_manifest::VersionEdit;
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::path::{Path, PathBuf};

struct Rng(SplitMix);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn key(&mut self) -> Vec<u8> {
        let n = self.below(2000);
        match self.below(3) {
            0 => n.to_be_bytes().to_vec(),
            1 => format!("user:{n:08}:profile").into_bytes(),
            _ => format!("k{n}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = [0, 20, 400, 3000][self.below(4) as usize];
        let byte = self.below(256) as u8;
        (0..len).map(|i| byte ^ (i as u8 & 0x0F)).collect()
    }
}

/// Writes `count` random operations to the database and the model.
fn write_some(db: &Database<'_>, model: &mut FamilyRows, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let family = rng.below(2) as usize;
        match rng.below(100) {
            0..55 => {
                let (key, value) = (rng.key(), rng.value());
                db.put(family, &key, &value);
                model[family].insert(key, value);
            }
            55..75 => {
                let key = rng.key();
                db.delete(family, &key);
                model[family].remove(&key);
            }
            75..85 => {
                let (key, number) = (format!("count{}", rng.below(50)).into_bytes(), rng.below(1000));
                db.add(family, &key, number);
                let sum =
                    model[family].get(&key).map_or(0, |v| u64::from_le_bytes(v[..].try_into().unwrap()));
                model[family].insert(key, (sum + number).to_le_bytes().to_vec());
            }
            85..98 => {
                let puts: Vec<_> = (0..3).map(|_| (rng.below(2) as usize, rng.key(), rng.value())).collect();
                let deletes = [(rng.below(2) as usize, rng.key())];
                db.batch(&puts, &deletes);
                for (family, key, value) in puts {
                    model[family].insert(key, value);
                }
                for (family, key) in deletes {
                    model[family].remove(&key);
                }
            }
            98 => db.flush(family),
            _ if rng.below(8) == 0 => db.compact(family),
            _ => {}
        }
    }
}

/// Copies a directory as it is at one moment: begins again if an obsolete file is removed meanwhile, since jobs remove theirs
/// after they no longer count as running.
fn copy_dir(source: &Path, target: &Path) {
    while let Err(error) = copy_files(source, target) {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        assert!(source.exists(), "{} is missing", source.display());
    }
}

fn copy_files(source: &Path, target: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(target);
    std::fs::create_dir_all(target)?;
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        std::fs::copy(entry.path(), target.join(entry.file_name()))?;
    }
    Ok(())
}

fn assert_equal(found: &FamilyRows, model: &FamilyRows, what: &str) {
    for family in 0..2 {
        assert_eq!(found[family].len(), model[family].len(), "{what}: rows in column family {family}");
        assert!(found[family] == model[family], "{what}: contents of column family {family} differ");
    }
}

/// Opens a copy of `dir`, compares all rows, compacts everything and compares again.
fn check_on_copy(api: &Api, dir: &Path, setup: &Setup, model: &FamilyRows, what: &str) {
    let copy = dir.with_extension("copy");
    copy_dir(dir, &copy);
    let db = Database::open(api, &copy, setup).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_equal(&db.contents(), model, what);
    db.compact(0);
    db.compact(1);
    assert_equal(&db.contents(), model, &format!("{what}, compacted"));
}

fn setups(version: &str) -> Vec<Setup> {
    let base = Setup {
        write_buffer_size: 256 << 10,
        block_size: 8192,
        bloom: true,
        compression: 0,
        dynamic_level_bytes: true,
        defaults: false,
        styles: &[0],
        turn: 0,
        round_robin: false,
    };
    let round_robin = Setup {
        write_buffer_size: 64 << 10,
        dynamic_level_bytes: false,
        // Versions from 7 on have it.
        round_robin: version.starts_with("11"),
        ..base.clone()
    };
    vec![
        base.clone(),
        round_robin,
        Setup { defaults: true, ..base.clone() },
        Setup { compression: 4, block_size: 1024, ..base.clone() },
        Setup {
            compression: 7,
            dynamic_level_bytes: version.starts_with("11"),
            bloom: false,
            ..base.clone()
        },
        Setup { compression: 1, write_buffer_size: 64 << 10, ..base.clone() },
        Setup { styles: &[1], write_buffer_size: 64 << 10, ..base.clone() },
        Setup { styles: &[2], ..base.clone() },
        Setup { styles: &[0, 1, 1, 0, 1], write_buffer_size: 64 << 10, dynamic_level_bytes: false, ..base },
    ]
}

fn take_turns(outcrop: &Api, reference: &Api, version: &str, setup: &Setup, seed: u64, turns: usize) {
    let temp = tempfile::tempdir().unwrap();
    let dir: PathBuf = temp.path().join("db");
    let mut rng = Rng(SplitMix::new(seed));
    let mut model = FamilyRows::default();
    let mut cursors = [0, 0];
    for turn in 0..turns {
        let ours = turn % 2 == 0;
        let setup = &Setup { turn, ..setup.clone() };
        let (writer, reader) = if ours { (outcrop, reference) } else { (reference, outcrop) };
        let who = if ours { "outcrop" } else { version };
        let what = format!("RocksDB {version}, seed {seed}, turn {turn}, written by {who}, {setup:?}");
        let db = Database::open(writer, &dir, setup).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_equal(&db.contents(), &model, &what);
        write_some(&db, &mut model, &mut rng, 400);
        db.wait_until_idle();
        // As a killed process would leave it: the files as they are while the database is open.
        let crashed = dir.with_extension("crashed");
        copy_dir(&dir, &crashed);
        check_on_copy(reader, &crashed, setup, &model, &format!("{what}, killed"));
        drop(db);
        cursors[turn % 2] += compact_cursors(&dir);
        check_on_copy(reader, &dir, setup, &model, &format!("{what}, closed"));
    }
    let there = cursors.map(|cursors| cursors > 0);
    assert_eq!(there, [setup.round_robin; 2], "compact cursors in MANIFESTs: {cursors:?}, {setup:?}");
}

/// How many compact cursors the edits of the MANIFEST have.
fn compact_cursors(dir: &Path) -> usize {
    let current = std::fs::read_to_string(dir.join("CURRENT")).unwrap();
    let file = Env::posix().fs.open_read(&dir.join(current.trim()), OpenRead::default()).unwrap();
    let mut reader = LogReader::new(file, 0, WalRecoveryMode::AbsoluteConsistency);
    let mut cursors = 0;
    while let ReadOutcome::Record(edit, _) = reader.next().unwrap() {
        cursors += VersionEdit::decode(edit).unwrap().compact_cursors.len();
    }
    cursors
}

#[test]
fn engines_take_turns_on_one_directory() {
    let outcrop = Api::load(&outcrop_library());
    let seed = std::env::var("OUTCROP_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("seed {seed} (replay with OUTCROP_SEED={seed})");
    for (version, path) in reference_libraries() {
        let reference = Api::load(&path);
        for (index, setup) in setups(&version).iter().enumerate() {
            take_turns(&outcrop, &reference, &version, setup, seed + index as u64, 6);
        }
    }
}

//! The databases of `fixtures/made`: one per feature and RocksDB version, each with the rows that must be found.

use crate::harness::{Rows, contents};
use outcrop::*;
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One column family of `rows.txt`.
struct Expected {
    descriptor: ColumnFamilyDescriptor,
    rows: Rows,
}

/// The files of the database in `dir`, under `/db`.
pub fn load(dir: &Path) -> MemoryFs {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() != "rows.txt" {
            let mut file =
                fs.create(&Path::new("/db").join(entry.file_name()), OpenWrite::default()).unwrap();
            file.append(&std::fs::read(entry.path()).unwrap()).unwrap();
            file.close().unwrap();
        }
    }
    fs
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'\\', [b'x', high, low, tail @ ..]) => {
                let digits = [*high, *low];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                rest = tail;
            }
            (b'\\', [b't', tail @ ..]) => {
                out.push(b'\t');
                rest = tail;
            }
            (b'\\', [b'n', tail @ ..]) => {
                out.push(b'\n');
                rest = tail;
            }
            (b'\\', [b'r', tail @ ..]) => {
                out.push(b'\r');
                rest = tail;
            }
            (b'\\', [quoted, tail @ ..]) => {
                out.push(*quoted);
                rest = tail;
            }
            (byte, _) => out.push(*byte),
        }
    }
    out
}

fn expected(dir: &Path) -> Vec<Expected> {
    let text = std::fs::read_to_string(dir.join("rows.txt")).unwrap();
    let mut families: Vec<Expected> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(header) = line.strip_prefix('[') {
            let (name, settings) = header.split_once(']').unwrap();
            let merge_operator = match settings {
                s if s.contains("merge=Add") => Some("uint64add".to_string()),
                s if s.contains("merge=Append") => Some("stringappend".to_string()),
                _ => None,
            };
            let reverse = settings.contains("reverse=true");
            let comparator = if reverse { Comparator::ReverseBytewise } else { Comparator::Bytewise };
            families.push(Expected {
                descriptor: ColumnFamilyDescriptor {
                    name: name.to_string(),
                    options: ColumnFamilyOptions { merge_operator, ..ColumnFamilyOptions::default() },
                    parts: ColumnFamilyParts { comparator, ..ColumnFamilyParts::default() },
                },
                rows: Rows::new(),
            });
            continue;
        }
        let (key, value) = line.split_once('\t').unwrap();
        families.last_mut().unwrap().rows.insert(unescape(key), unescape(value));
    }
    families
}

fn check(db: &Db, families: &[Expected], name: &str) {
    for family in families {
        let cf = db.column_family(&family.descriptor.name).unwrap();
        assert_eq!(contents(db, &cf, &ReadOptions::default()), family.rows, "{name}: {}", cf.name());
        for (key, value) in &family.rows {
            let got = db.get_cf(&cf, key).unwrap();
            assert_eq!(got.as_deref(), Some(&value[..]), "{name}: {} {key:?}", cf.name());
        }
    }
}

#[test]
fn every_database_made_by_rocksdb_is_read_compacted_and_reopened() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/made");
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    dirs.retain(|dir| dir.is_dir());
    dirs.sort();
    assert!(dirs.len() > 100, "{} databases", dirs.len());
    for dir in dirs {
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let families = expected(&dir);
        assert!(!families.is_empty() && !families[0].rows.is_empty(), "{name}: rows.txt says nothing");
        let env = Env::with_file_system(Arc::new(load(&dir)));
        let open = || {
            let descriptors = families.iter().map(|family| &family.descriptor);
            Db::builder("/db")
                .options(DbOptions::default())
                .env(env.clone())
                .column_families(descriptors)
                .open()
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let db = open();
        check(&db, &families, &name);
        for family in &families {
            let cf = db.column_family(&family.descriptor.name).unwrap();
            db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        }
        check(&db, &families, &name);
        db.close().unwrap();
        check(&open(), &families, &name);
    }
}

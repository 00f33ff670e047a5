//! Damaged databases, salvaged: of every key that is not named as doubtful the new database has exactly the last value.
//!
//! ```text
//! drawn operations -> files, model -> damage -> salvage -> the damaged files are as they were
//!                                                       -> open the new one, verify, read; compact, read
//! ```
//! A doubtful key has one of the values that it ever had, or none; a merged one any part of its operands. The databases are those of
//! `repair.rs`: several levels and column families, with deletions, range tombstones, merges, blob files and what is only in WALs.
//! `OUTCROP_SEED=n` repeats one seed, `OUTCROP_SALVAGES=n` tries n from there.

use crate::harness::{Rng, creating, seed};
use crate::repair::{
    Case, FAMILIES, Files, KEYS, Place, build, builder, damaged, key, repair_options, write_files,
};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn options() -> SalvageOptions {
    SalvageOptions { repair: repair_options(), progress: None }
}

/// All files below a directory.
fn snapshot(fs: &MemoryFs, dir: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with(dir));
    paths.map(|path| (path.clone(), fs.read_all(&path).unwrap())).collect()
}

/// Salvages `files` into /new; the source has to stay as it is.
fn salvaged(files: &Files, seed: u64, what: &str) -> (Env, SalvageReport) {
    let fs = MemoryFs::new();
    write_files(&fs, files);
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let before = snapshot(&fs, "/db");
    let report = builder(&env, seed, DbOptions::default()).salvage("/new", &options());
    let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(snapshot(&fs, "/db") == before, "{what}: the damaged database was changed");
    (env, report)
}

fn open(env: &Env, what: &str) -> Db {
    let names = Db::list_column_families_in("/new", env).unwrap();
    let describe = |name: String| {
        ColumnFamilyDescriptor::new(name).with_merge_operator(Arc::new(crate::harness::Append))
    };
    Db::builder("/new")
        .env(env.clone())
        .column_families(names.into_iter().map(describe))
        .open()
        .unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn is_doubtful(report: &SalvageReport, (family, key): &Place) -> bool {
    let family = FAMILIES[*family];
    report.doubtful.iter().any(|range| {
        range.family.as_deref().is_none_or(|of| of == family)
            && range.begin.as_deref().is_none_or(|begin| begin <= &key[..])
            && range.end.as_deref().is_none_or(|end| &key[..] <= end)
    })
}

/// Compares every key; gives the rows.
fn judge(case: &Case, report: &SalvageReport, db: &Db, exact: bool, what: &str) -> BTreeMap<Place, Vec<u8>> {
    let mut rows = BTreeMap::new();
    for (index, name) in FAMILIES.iter().enumerate().take(3) {
        let Some(cf) = db.column_family(name) else {
            assert!(!exact, "{what}: {name} is not there");
            continue;
        };
        for number in 0..KEYS {
            let place = (index, key(number));
            let got = db.get_cf(&cf, &place.1).unwrap_or_else(|error| panic!("{what}: {place:?}: {error}"));
            let got = got.as_deref().map(<[u8]>::to_vec);
            let last = case.rows.get(&place);
            let had = case.values.get(&place).cloned().unwrap_or_default();
            let parts = |value: &Vec<u8>| {
                value.split(|byte| *byte == b',').map(<[u8]>::to_vec).collect::<BTreeSet<_>>()
            };
            let operands: BTreeSet<Vec<u8>> = had.iter().flat_map(parts).collect();
            let fine = match &got {
                got if got.as_ref() == last => true,
                _ if exact && !is_doubtful(report, &place) => false,
                None => true,
                Some(got) if index == 1 => parts(got).is_subset(&operands),
                Some(got) => had.contains(got),
            };
            let text =
                |bytes: Option<&Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            assert!(fine, "{what}: {place:?} is {:?}, was {:?}\n{report}", text(got.as_ref()), text(last));
            if let Some(got) = got {
                rows.insert(place, got);
            }
        }
    }
    rows
}

/// Salvages, and looks at the new database.
fn try_one(case: &Case, files: &Files, seed: u64, exact: bool, what: &str) -> (SalvageReport, usize) {
    let (env, report) = salvaged(files, seed, what);
    let db = open(&env, what);
    let read = judge(case, &report, &db, exact, what);
    db.verify_checksums().unwrap_or_else(|error| panic!("{what}: {error}\n{report}"));
    for cf in db.column_families() {
        db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into())
            .unwrap_or_else(|error| panic!("{what}: {error}\n{report}"));
    }
    assert!(judge(case, &report, &db, exact, what) == read, "{what}: compaction changes rows\n{report}");
    drop(db);
    // The new one is whole.
    let again = builder_at("/new", &env).salvage("/newer", &options()).unwrap();
    assert!(again.is_whole(), "{what}: {again}");
    (report, read.len())
}

fn builder_at(path: &str, env: &Env) -> DbBuilder {
    let describe = |name: &&str| {
        ColumnFamilyDescriptor::new(*name).with_merge_operator(Arc::new(crate::harness::Append))
    };
    Db::builder(path).env(env.clone()).column_families(FAMILIES.iter().map(describe))
}

fn with(files: &Files, name: &str, bytes: Option<Vec<u8>>) -> Files {
    let mut files = files.clone();
    match bytes {
        Some(bytes) => drop(files.insert(name.to_string(), bytes)),
        None => drop(files.remove(name)),
    }
    files
}

fn names(files: &Files, kinds: &[&str]) -> Vec<String> {
    files.keys().filter(|name| kinds.iter().any(|kind| name.contains(kind))).cloned().collect()
}

#[test]
fn a_whole_database_is_copied() {
    for seed in 1..6 {
        let case = build(seed);
        let (report, rows) = try_one(&case, &case.files, seed, true, "whole");
        assert!(report.is_whole() && report.files.is_empty(), "{report}");
        assert!(report.made.families.iter().all(|family| family.levels_kept), "{report}");
        assert_eq!(rows, case.rows.len());
        assert!(report.to_string().ends_with("no key is doubtful\n"), "{report}");
    }
}

#[test]
fn a_damaged_block_makes_its_own_keys_doubtful_and_no_other() {
    for seed in [2, 5] {
        let case = build(seed);
        let mut rng = Rng::new(seed);
        for name in names(&case.files, &[".sst", ".blob"]) {
            let bytes = &case.files[&name];
            for part in 0..4u64 {
                let mut broken = bytes.clone();
                let at = (bytes.len() as u64 * part / 4 + rng.below(bytes.len() as u64 / 4 + 1)) as usize;
                let at = at.min(bytes.len() - 1);
                broken[at] ^= 1 << rng.below(8);
                let what = format!("seed {seed}, byte {at} of {} of {name}", bytes.len());
                let (report, _) = try_one(&case, &with(&case.files, &name, Some(broken)), seed, true, &what);
                for range in &report.doubtful {
                    let file = range.file.file_name().unwrap().to_str().unwrap();
                    assert!(file.ends_with(".sst") || file.ends_with(".log"), "{what}: {range}");
                }
            }
        }
    }
}

#[test]
fn drawn_damages_leave_what_they_did_not_touch() {
    let first = seed("salvage", 1);
    let count = std::env::var("OUTCROP_SALVAGES").ok().and_then(|n| n.parse().ok()).unwrap_or(25);
    let count = if std::env::var("OUTCROP_SEED").is_ok() && count == 25 { 1 } else { count };
    for seed in first..first + count {
        let case = build(seed);
        for round in 0..4u64 {
            let mut rng = Rng::new(seed * 1000 + round);
            let (mut files, mut exact, mut what) = (case.files.clone(), true, Vec::new());
            for _ in 0..1 + rng.below(3) {
                let kinds = [".sst", ".sst", ".sst", ".log", ".blob", "OPTIONS", "MANIFEST"];
                let all = names(&files, &[kinds[rng.below(7) as usize]]);
                if all.is_empty() {
                    continue;
                }
                let name = rng.pick(&all);
                let after = damaged(&files[&name], &mut rng);
                // Without any table nobody knows whether they are elsewhere: `paths.rs`.
                if name.ends_with(".sst") && all.len() == 1 && after.is_none() {
                    continue;
                }
                what.push(format!("{name}: {:?} of {}", after.as_ref().map(Vec::len), files[&name].len()));
                // Without all of the MANIFEST nobody knows which tables there were, and which WALs were needed.
                exact &= !name.contains("MANIFEST");
                // Damage of a WAL is named, and makes all keys doubtful, or looks like its end.
                exact &= !name.contains(".log");
                files = with(&files, &name, after);
            }
            try_one(&case, &files, seed, exact, &format!("seed {seed} round {round}: {what:?}"));
        }
    }
}

#[test]
fn without_a_manifest_whole_tables_come_over() {
    for seed in 1..6 {
        let case = build(seed);
        let mut files = case.files.clone();
        files.retain(|name, _| !name.starts_with("MANIFEST") && name != "CURRENT");
        let (report, rows) = try_one(&case, &files, seed, false, "no MANIFEST");
        assert_eq!(report.made.structure, StructureFound::Missing);
        assert!(rows * 2 > case.rows.len() && !report.is_whole(), "{report}");
    }
}

/// Two levels of one column family, all of it in tables.
fn two_levels(env: &Env) -> Db {
    let mut family = ColumnFamilyOptions { disable_auto_compactions: true, ..ColumnFamilyOptions::default() };
    family.table.block_size = 512;
    family.compression = outcrop::options::CompressionType::None;
    let db = Db::builder("/db").env(env.clone()).options(creating()).default_column_family(family);
    let db = db.open().unwrap();
    for (value, only_even) in [("old", false), ("new", true)] {
        for row in (0..400u32).filter(|row| !only_even || row % 2 == 0) {
            db.put(format!("k{row:04}"), format!("{value}{row}")).unwrap();
        }
        db.delete(format!("k{:04}", if only_even { 100 } else { 500 })).unwrap();
        db.flush().unwrap();
        if !only_even {
            db.compact_range(None, None).unwrap();
        }
    }
    db
}

#[test]
fn an_older_value_comes_back_only_where_it_is_named() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    drop(two_levels(&env));
    let newest = fs.files().into_iter().map(|(path, _)| path);
    let newest = newest.filter(|path| path.to_string_lossy().ends_with(".sst")).max().unwrap();
    let mut bytes = fs.read_all(&newest).unwrap();
    bytes[1000] ^= 1;
    let mut file = fs.create(&newest, Default::default()).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let progress = told.clone();
    let options = SalvageOptions {
        progress: Some(Arc::new(move |done, of| progress.lock().unwrap().push((done, of)))),
        ..SalvageOptions::default()
    };
    let report = Db::builder("/db").env(env.clone()).salvage("/new", &options).unwrap();
    let told = told.lock().unwrap().clone();
    assert!(told.len() == 2 && told[0].0 < told[1].0 && told[1].0 == told[1].1, "{told:?}");
    assert_eq!((report.doubtful.len(), report.files.len(), report.copied), (1, 1, 1), "{report}");
    let range = &report.doubtful[0];
    assert_eq!((range.level, &*range.file), (Some(0), &*newest));
    let (begin, end) = (range.begin.clone().unwrap(), range.end.clone().unwrap());
    let text = report.to_string();
    assert!(text.contains("level 0: offset ") && text.contains("checksum mismatch"), "{text}");
    let db = Db::builder("/new").env(env.clone()).open().unwrap();
    let (mut old, mut new) = (0, 0);
    for row in 0..400u32 {
        let key = format!("k{row:04}");
        let got = db.get(&key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
        let (was_old, was_new) = (Some(format!("old{row}")), Some(format!("new{row}")));
        if row % 2 == 1 {
            assert_eq!(got, was_old);
        } else if (&begin[..]..=&end[..]).contains(&key.as_bytes()) {
            assert!(got == was_old || got == was_new, "{key}: {got:?}");
            old += usize::from(got == was_old);
        } else {
            assert_eq!(got, if row == 100 { None } else { was_new.clone() }, "{key}");
            new += usize::from(got == was_new);
        }
    }
    assert!(old > 5 && new > 150, "{old} old values, {new} new ones");
}

#[test]
fn places_that_are_not_empty_and_databases_in_use_are_refused() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = two_levels(&env);
    let salvage = |to: &str| Db::builder("/db").env(env.clone()).salvage(to, &SalvageOptions::default());
    let open = salvage("/new").unwrap_err();
    assert!(open.kind() == ErrorKind::IoError && open.to_string().contains("LOCK"), "{open}");
    drop(db);
    for within in ["/db", "/db/new"] {
        assert!(salvage(within).unwrap_err().to_string().contains("outside"), "{within}");
    }
    fs.create_dir_all(Path::new("/full")).unwrap();
    fs.create(Path::new("/full/file"), Default::default()).unwrap().close().unwrap();
    assert!(salvage("/full").unwrap_err().to_string().contains("empty"));
    fs.create_dir_all(Path::new("/empty")).unwrap();
    assert!(salvage("/empty").unwrap().is_whole());
    let strict = SalvageOptions { repair: RepairOptions { unknown_families: None }, progress: None };
    assert!(Db::builder("/db").env(env.clone()).salvage("/strict", &strict).unwrap().is_whole());
}

#[test]
fn timestamps_are_refused_by_name() {
    let env = Env::memory();
    let stamped = || {
        Db::builder("/db")
            .env(env.clone())
            .options(creating())
            .comparator(Comparator::bytewise_with_timestamps())
    };
    drop(stamped().open().unwrap());
    let refused = stamped().salvage("/new", &SalvageOptions::default()).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::NotSupported && refused.to_string().contains("timestamps"),
        "{refused}"
    );
}

#[test]
fn a_salvage_that_fails_leaves_nothing() {
    let case = build(4);
    for change in (0..).step_by(5) {
        let memory = MemoryFs::new();
        write_files(&memory, &case.files);
        let before = snapshot(&memory, "/db");
        let faulty = Arc::new(FaultyFs::new(memory.clone()));
        let env = Env::with_file_system(faulty.clone());
        faulty.faults().fail_at(faulty.faults().changes() + change, EIO, false);
        let made = builder(&env, 4, DbOptions::default()).salvage("/new", &options());
        let reached = faulty.faults().changes() > change;
        faulty.faults().heal();
        assert!(snapshot(&memory, "/db") == before, "change {change}");
        match made {
            Ok(report) => assert!(report.is_whole(), "{report}"),
            Err(_) => {
                let again = builder(&env, 4, DbOptions::default()).salvage("/new", &options());
                assert!(again.unwrap_or_else(|error| panic!("change {change}: {error}")).is_whole());
            }
        }
        if !reached {
            break;
        }
    }
}

#[test]
fn a_damaged_record_of_a_wal_makes_all_keys_doubtful_and_other_blocks_come_over() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = Db::builder("/db").env(env.clone()).options(creating()).open().unwrap();
    // A checksum that is wrong costs the rest of its block of 32 KiB: the lengths there are not to be trusted.
    let filler = "f".repeat(40 << 10);
    for (key, value) in [("a", "first"), ("b", "second"), ("filler", &filler), ("c", "third")] {
        db.put(key, value).unwrap();
    }
    drop(db);
    let (wal, _) = fs.files().into_iter().find(|(path, _)| path.to_string_lossy().ends_with(".log")).unwrap();
    let mut bytes = fs.read_all(&wal).unwrap();
    let at = bytes.windows(6).position(|bytes| bytes == b"second").unwrap();
    bytes[at] ^= 1;
    let mut file = fs.create(&wal, Default::default()).unwrap();
    file.append(&bytes).unwrap();
    file.close().unwrap();
    let report = Db::builder("/db").env(env.clone()).salvage("/new", &SalvageOptions::default()).unwrap();
    let range = &report.doubtful[0];
    assert_eq!((&*range.file, &range.family, &range.begin, &range.end), (&*wal, &None, &None, &None));
    assert!(range.to_string().starts_with("all keys of all column families, "), "{range}");
    let db = Db::builder("/new").env(env).open().unwrap();
    let value = |key: &str| db.get(key).unwrap().map(|value| value.to_vec());
    assert_eq!((value("a"), value("b"), value("c")), (Some(b"first".into()), None, Some(b"third".into())));
}

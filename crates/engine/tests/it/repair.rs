//! Damaged databases, repaired: what is read then is what was written, and whatever no damage touched is there.
//!
//! ```text
//! drawn operations -> files, model -> drawn damages -> repair -> open, read, write, compact -> repair again -> read
//! ```
//! A key is touched if a damaged table has it in its range, or it was written since its column family was flushed and a WAL is
//! damaged. Other keys have their last value. Touched ones have one of their values or none, merged ones any part of them, each once. With
//! the MANIFEST damaged nobody can always tell which is the last value, or whether an operand is in a table already: every key that is not
//! touched has a value, one that it had, and where that is not the last the report names the key as doubtful.
//! `OUTCROP_SEED=n` repeats one seed, `OUTCROP_REPAIRS=n` tries n from there.

use crate::harness::{Append, Rng, creating, descriptor, seed};
use crate::made::load;
use outcrop::options::{ColumnFamilyOptions, CompressionType, DbOptions};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_env::faulty::{EIO, FaultyFs};
use outcrop_env::memory::MemoryFs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const FAMILIES: [&str; 4] = ["default", "merges", "blobs", "empty"];
pub const KEYS: u64 = 80;

pub type Files = BTreeMap<String, Vec<u8>>;
/// (index of the column family, key).
pub type Place = (usize, Vec<u8>);

/// A database in files, and what is known of it.
#[derive(Clone)]
pub struct Case {
    pub files: Files,
    pub rows: BTreeMap<Place, Vec<u8>>,
    /// Every value a key ever had.
    pub values: BTreeMap<Place, BTreeSet<Vec<u8>>>,
    /// Written since the last flush of the column family.
    unflushed: BTreeSet<Place>,
    /// All that happened, with the keys it was about.
    history: Vec<(BTreeSet<Place>, String)>,
    /// Names of tables, with their column family and range.
    pub tables: BTreeMap<String, (usize, Vec<u8>, Vec<u8>)>,
}

pub fn options(index: usize, seed: u64) -> ColumnFamilyOptions {
    let mut options = ColumnFamilyOptions {
        write_buffer_size: 64 << 10,
        level0_file_num_compaction_trigger: 3,
        target_file_size_base: 4 << 10,
        max_bytes_for_level_base: 16 << 10,
        compression: [CompressionType::None, CompressionType::Snappy, CompressionType::Zstd]
            [seed as usize % 3],
        enable_blob_files: index == 2,
        min_blob_size: 40,
        ..ColumnFamilyOptions::default()
    };
    options.table.block_size = 512;
    options
}

pub fn builder(env: &Env, seed: u64, options_of_db: DbOptions) -> DbBuilder {
    let describe = |(index, name): (usize, &&str)| {
        ColumnFamilyDescriptor::new(*name)
            .with_options(options(index, seed))
            .with_merge_operator(Arc::new(Append))
    };
    Db::builder("/db")
        .options(options_of_db)
        .env(env.clone())
        .column_families(FAMILIES.iter().enumerate().map(describe))
}

pub fn key(n: u64) -> Vec<u8> {
    format!("key{n:03}").into_bytes()
}

pub fn build(seed: u64) -> Case {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let mut rng = Rng::new(seed);
    let db_options = DbOptions { recycle_log_file_num: rng.below(2) * 2, ..creating() };
    let db = builder(&env, seed, db_options).open().unwrap();
    let handles: Vec<ColumnFamilyHandle> =
        FAMILIES.iter().map(|name| db.column_family(name).unwrap()).collect();
    let mut case = Case {
        files: Files::new(),
        rows: BTreeMap::new(),
        values: BTreeMap::new(),
        unflushed: BTreeSet::new(),
        history: Vec::new(),
        tables: BTreeMap::new(),
    };
    for i in 0..400 + rng.below(400) {
        step(&db, &handles, &mut case, &mut rng, i);
        // So that a seed gives the same files each time.
        db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    }
    db.wait_for_compact(&WaitForCompactOptions::default()).unwrap();
    for file in db.live_files() {
        let family = FAMILIES.iter().position(|name| *name == file.column_family).unwrap();
        let name = file.name.trim_start_matches('/').to_string();
        case.tables.insert(name, (family, file.smallest_key, file.largest_key));
    }
    drop(handles);
    drop(db);
    case.files = files_of(&fs);
    case
}

fn step(db: &Db, handles: &[ColumnFamilyHandle], case: &mut Case, rng: &mut Rng, i: u64) {
    let family = rng.below(3) as usize;
    let (cf, key_of) = (&handles[family], key(rng.below(KEYS)));
    let place = (family, key_of.clone());
    let value = format!("{i:04}-{}", "v".repeat(rng.below(90) as usize)).into_bytes();
    match rng.below(40) {
        0 => {
            db.flush_cf(cf).unwrap();
            case.flushed(db, "flush", &[family]);
        }
        1 => {
            db.flush_cfs(handles, Wait::UntilDone).unwrap();
            case.flushed(db, "flush", &[0, 1, 2, 3]);
        }
        2 if rng.one_in(3) => {
            db.compact_range_cf_with(cf, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
            case.flushed(db, "compact", &[family]);
        }
        3 => {
            let (begin, len) = (rng.below(KEYS), 1 + rng.below(8));
            db.delete_range_cf(cf, key(begin), key(begin + len)).unwrap();
            (begin..begin + len).for_each(|n| case.set(db, "delete range", (family, key(n)), None));
        }
        4..=9 => {
            db.delete_cf(cf, &key_of).unwrap();
            case.set(db, "delete", place, None);
        }
        10..=20 if family == 1 => {
            let old = case.rows.get(&place).cloned();
            db.merge_cf(cf, &key_of, &value).unwrap();
            let merged = old.map_or(value.clone(), |old| [&old[..], b",", &value].concat());
            case.set(db, "merge", place, Some(merged));
        }
        _ => {
            db.put_cf(cf, &key_of, &value).unwrap();
            case.set(db, "put", place, Some(value));
        }
    }
}

impl Case {
    fn set(&mut self, db: &Db, how: &str, place: Place, value: Option<Vec<u8>>) {
        let event = format!("{how}, sequence number {}", db.latest_sequence_number());
        self.history.push((BTreeSet::from([place.clone()]), event));
        self.unflushed.insert(place.clone());
        match value {
            Some(value) => {
                self.values.entry(place.clone()).or_default().insert(value.clone());
                self.rows.insert(place, value);
            }
            None => drop(self.rows.remove(&place)),
        }
    }

    fn flushed(&mut self, db: &Db, how: &str, families: &[usize]) {
        self.unflushed.retain(|(of, _)| !families.contains(of));
        for family in families {
            let files = db.live_files();
            let files = files.iter().filter(|file| file.column_family == FAMILIES[*family]);
            let files: Vec<String> = files
                .map(|file| {
                    let seqs = (file.smallest_seq, file.largest_seq);
                    format!("{} on {} with {seqs:?}", file.name, file.level)
                })
                .collect();
            let places = (0..KEYS).map(|n| (*family, key(n))).collect();
            self.history.push((places, format!("{how}: {}", files.join(", "))));
        }
    }

    /// The events that concern a key, a line each.
    fn history_of(&self, place: &Place) -> String {
        let events = self.history.iter().filter(|(places, _)| places.contains(place));
        events.map(|(_, event)| format!("  {event}\n")).collect()
    }
}

fn files_of(fs: &MemoryFs) -> Files {
    let wanted = |name: &str| !name.starts_with("LOCK") && !name.starts_with("LOG");
    let files = fs.files().into_iter().map(|(path, _)| {
        let name = path.strip_prefix("/db").unwrap().to_str().unwrap().to_string();
        (name, fs.read_all(&path).unwrap())
    });
    files.filter(|(name, _)| wanted(name)).collect()
}

pub fn write_files(fs: &dyn FileSystem, files: &Files) {
    fs.create_dir_all(Path::new("/db")).unwrap();
    for (name, contents) in files {
        let path = Path::new("/db").join(name);
        let mut file = fs.create(&path, Default::default()).unwrap();
        file.append(contents).unwrap();
        file.sync().unwrap();
        file.close().unwrap();
    }
    fs.sync_dir(Path::new("/db")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
}

/// A file's bytes after a damage; `None`: it is gone.
pub fn damaged(bytes: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let at = rng.below(bytes.len().max(1) as u64) as usize;
    match rng.below(5) {
        0 => return None,
        1 => bytes.truncate(at),
        2 => bytes.iter_mut().skip(at).take(1 + rng.below(600) as usize).for_each(|byte| *byte = 0),
        3 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
        _ => bytes.iter_mut().skip(at).take(40).for_each(|byte| *byte = byte.wrapping_mul(37) ^ 0x5A),
    }
    Some(bytes)
}

/// The parts of a database that damages may have touched.
#[derive(Default, Debug)]
struct Touched {
    manifest: bool,
    wal: bool,
    blob: bool,
    tables: Vec<(usize, Vec<u8>, Vec<u8>)>,
    what: Vec<String>,
}

impl Touched {
    fn touches(&self, case: &Case, place: &Place) -> bool {
        let in_table = |(family, first, last): &(usize, Vec<u8>, Vec<u8>)| {
            *family == place.0 && *first <= place.1 && place.1 <= *last
        };
        self.tables.iter().any(in_table) || (self.wal && case.unflushed.contains(place))
    }
}

fn damage(case: &Case, rng: &mut Rng) -> (Files, Touched) {
    let (mut files, mut touched) = (case.files.clone(), Touched::default());
    for _ in 0..1 + rng.below(3) {
        let kind = ["MANIFEST", "CURRENT", "OPTIONS", ".sst", ".log", ".blob"][rng.below(6) as usize];
        let names: Vec<String> = files.keys().filter(|name| name.contains(kind)).cloned().collect();
        if names.is_empty() {
            continue;
        }
        let name = rng.pick(&names);
        let after = damaged(&files[&name], rng);
        // Without any table nobody knows whether they are elsewhere: `paths.rs`.
        if kind == ".sst" && names.len() == 1 && after.is_none() {
            continue;
        }
        touched.what.push(format!(
            "{name}: {:?} of {} bytes",
            after.as_ref().map(Vec::len),
            files[&name].len()
        ));
        match kind {
            "MANIFEST" => touched.manifest = true,
            ".log" => touched.wal = true,
            ".blob" => touched.blob = true,
            ".sst" => touched.tables.extend(case.tables.get(&name).cloned()),
            _ => {}
        }
        match after {
            Some(bytes) => drop(files.insert(name, bytes)),
            None => drop(files.remove(&name)),
        }
    }
    (files, touched)
}

/// Judges every key of the repaired database; gives what was read.
fn judge(case: &Case, touched: &Touched, named: &Named, db: &Db, what: &str) -> BTreeMap<Place, Vec<u8>> {
    let mut read = BTreeMap::new();
    for (index, name) in FAMILIES.iter().enumerate() {
        // A column family without tables is known by the MANIFEST alone.
        let Some(cf) = db.column_family(name) else { continue };
        for n in 0..KEYS {
            let place = (index, key(n));
            let got = match db.get_cf(&cf, &place.1) {
                Ok(got) => got,
                Err(error) => {
                    assert!(touched.blob && index == 2, "{what}: {place:?}: {error}");
                    continue;
                }
            };
            let got = got.map(|got| got.to_vec());
            judge_one(case, touched, named, &place, got.as_deref(), what);
            read.extend(got.map(|got| (place, got)));
        }
        let mut iter = db.cursor_cf(&cf).unwrap();
        iter.seek_to_first();
        while iter.valid() {
            let place = (index, iter.key().to_vec());
            assert_eq!(
                read.get(&place).map(Vec::as_slice),
                Some(iter.value()),
                "{what}: scan and get of {place:?}"
            );
            iter.next();
        }
        match iter.status() {
            Ok(()) => {}
            Err(error) => assert!(touched.blob && index == 2, "{what}: {error}"),
        }
    }
    read
}

/// The keys that a report calls doubtful.
enum Named {
    /// Any may be: the report of the repair that left them doubtful is not there.
    Any,
    /// These, and all keys of these column families.
    These(BTreeSet<Place>, BTreeSet<usize>),
}

impl Named {
    fn by(report: &RepairReport) -> Named {
        let index = |name: &str| FAMILIES.iter().position(|known| *known == name).unwrap();
        let keys = report.wals.iter().flat_map(|wal| &wal.doubtful_keys);
        let unclear = report.families.iter().filter(|family| family.order_unclear);
        Named::These(
            keys.map(|(family, key)| (index(family), key.clone())).collect(),
            unclear.map(|family| index(&family.name)).collect(),
        )
    }

    fn has(&self, place: &Place) -> bool {
        match self {
            Named::Any => true,
            Named::These(keys, families) => keys.contains(place) || families.contains(&place.0),
        }
    }
}

fn judge_one(case: &Case, touched: &Touched, named: &Named, place: &Place, got: Option<&[u8]>, what: &str) {
    let last = case.rows.get(place).map(Vec::as_slice);
    if got == last || may_be(case, touched, named, place, got) {
        return;
    }
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let history = case.history_of(place);
    panic!("{what}: {place:?} is {:?}, was {:?}\n{touched:#?}\n{history}", text(got), text(last));
}

/// Whether the damage excuses another value than the last.
fn may_be(case: &Case, touched: &Touched, named: &Named, place: &Place, got: Option<&[u8]>) -> bool {
    let is_touched = touched.touches(case, place);
    let had = |got: &[u8]| case.values.get(place).is_some_and(|values| values.contains(got));
    let parts_of = |value| <[u8]>::split(value, |byte| *byte == b',');
    let operands: BTreeSet<&[u8]> =
        case.values.get(place).into_iter().flatten().flat_map(|value| parts_of(value)).collect();
    match got {
        // Deleted or overwritten long ago, and the WAL that says so is gone.
        Some(_) if !is_touched && case.rows.contains_key(place) && !named.has(place) => false,
        // Parts of what was merged, each once and in order: they begin with their numbers.
        Some(got) if place.0 == 1 && is_touched && !touched.manifest => {
            parts_of(got).all(|part| operands.contains(part)) && parts_of(got).is_sorted_by(|a, b| a < b)
        }
        // Only the MANIFEST says which WALs were needed. Without it, and where a compaction took the numbers from the entries of a table,
        // the table may have what a WAL has, or not: an operand can be counted twice or be missing, and an older value hide the last one.
        Some(got) if place.0 == 1 && touched.manifest => parts_of(got).all(|part| operands.contains(part)),
        Some(got) if is_touched || touched.manifest => had(got),
        Some(_) => false,
        // With newer WALs gone as well, a deletion that was followed by another write may seem to be the last: it is named.
        None => is_touched || (touched.manifest && touched.wal && named.has(place)),
    }
}

/// Every file there was is there still, or in `lost/`, as it was.
fn nothing_is_deleted(before: &Files, fs: &MemoryFs, what: &str) {
    let after = files_of(fs);
    for (name, contents) in before.iter().filter(|(name, _)| *name != "CURRENT") {
        let kept = after.iter().any(|(other, bytes)| other.contains(name.as_str()) && bytes == contents);
        assert!(kept, "{what}: {name} is gone; there are {:?}", after.keys());
    }
}

pub fn repair_options() -> RepairOptions {
    let unknown = ColumnFamilyDescriptor::new("").with_merge_operator(Arc::new(Append));
    RepairOptions { unknown_families: Some(unknown) }
}

/// Opens the repaired database with the column families it has.
fn reopen(env: &Env, seed: u64) -> Db {
    let names = Db::list_column_families_in("/db", env).unwrap();
    let describe = |name: String| {
        let index = FAMILIES.iter().position(|known| *known == name).unwrap();
        ColumnFamilyDescriptor::new(name)
            .with_options(options(index, seed))
            .with_merge_operator(Arc::new(Append))
    };
    Db::builder("/db").env(env.clone()).column_families(names.into_iter().map(describe)).open().unwrap()
}

#[test]
fn damaged_databases_are_repaired() {
    let first = seed("repair", 1);
    let count = std::env::var("OUTCROP_REPAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let count = if std::env::var("OUTCROP_SEED").is_ok() && count == 60 { 1 } else { count };
    for seed in first..first + count {
        let case = build(seed);
        for round in 0..4u64 {
            let mut rng = Rng::new(seed * 1000 + round);
            let (files, touched) = damage(&case, &mut rng);
            let what = format!("seed {seed} round {round}");
            let fs = MemoryFs::new();
            write_files(&fs, &files);
            let env = Env::with_file_system(Arc::new(fs.clone()));
            let report = builder(&env, seed, DbOptions::default()).repair(&repair_options());
            let report = report.unwrap_or_else(|error| panic!("{what}: {error}\n{touched:#?}"));
            nothing_is_deleted(&files, &fs, &what);
            let db = reopen(&env, seed);
            let named = Named::by(&report);
            let read = judge(&case, &touched, &named, &db, &format!("{what}\n{report}"));
            for cf in db.column_families() {
                // No value is read for it, so a lost blob file is none of its business.
                db.compact_range_cf_with(&cf, None, None, &BottommostLevelCompaction::Force.into())
                    .unwrap_or_else(|error| panic!("{what}: {error}\n{touched:#?}\n{report}"));
            }
            drop(db);
            if !touched.blob {
                let db = reopen(&env, seed);
                assert!(
                    judge(&case, &touched, &named, &db, &what) == read,
                    "{what}: compaction changes rows\n{report}"
                );
                drop(db);
                let again = builder(&env, seed, DbOptions::default()).repair(&repair_options()).unwrap();
                assert!(again.is_lossless(), "{what}: {again}");
                let db = reopen(&env, seed);
                assert!(
                    judge(&case, &touched, &named, &db, &what) == read,
                    "{what}: another repair changes rows"
                );
            }
        }
    }
}

#[test]
fn an_undamaged_database_stays_as_it_is() {
    for seed in 1..8 {
        let case = build(seed);
        let fs = MemoryFs::new();
        write_files(&fs, &case.files);
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let report = builder(&env, seed, DbOptions::default()).repair(&RepairOptions::default()).unwrap();
        assert!(report.is_lossless(), "{report}");
        assert_eq!(report.structure, StructureFound::Whole);
        assert!(report.families.iter().all(|family| family.levels_kept), "{report}");
        let names: Vec<&str> = report.families.iter().map(|family| &family.name[..]).collect();
        assert_eq!(names, FAMILIES);
        let db = reopen(&env, seed);
        assert_eq!(judge(&case, &Touched::default(), &Named::by(&report), &db, "nothing damaged"), case.rows);
    }
}

/// Each change of files that a repair makes fails once, or fails with all that follow and the power goes, or both: another repair
/// finds everything.
#[test]
fn a_repair_that_fails_can_be_run_again() {
    for seed in [3, 11, 20] {
        let case = build(seed);
        let mut rng = Rng::new(seed);
        let (files, touched) = damage(&case, &mut rng);
        for kind in 0..3 {
            let mut failed = 0;
            for change in 0.. {
                let memory = MemoryFs::new();
                write_files(&memory, &files);
                let faulty = Arc::new(FaultyFs::new(memory.clone()));
                let env = Env::with_file_system(faulty.clone());
                faulty.faults().fail_at(faulty.faults().changes() + change, EIO, kind > 0);
                let first = builder(&env, seed, DbOptions::default()).repair(&repair_options());
                let reached = faulty.faults().changes() > change;
                faulty.faults().heal();
                failed += u64::from(first.is_err());
                if kind == 2 {
                    memory.crash();
                }
                let what = format!("seed {seed} kind {kind} change {change}");
                nothing_is_deleted(&files, &memory, &what);
                let second = builder(&env, seed, DbOptions::default()).repair(&repair_options());
                let second = second.unwrap_or_else(|error| panic!("{what}: {error} after {first:?}"));
                nothing_is_deleted(&files, &memory, &what);
                let db = reopen(&env, seed);
                judge(&case, &touched, &Named::Any, &db, &format!("{what}\n{second}"));
                if !reached {
                    break;
                }
            }
            assert!(failed > 3, "changes fail");
        }
    }
}

fn small(env: &Env) -> Db {
    let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open().unwrap();
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    db.put("b", "2").unwrap();
    db
}

#[test]
fn nothing_is_changed_where_repair_is_refused() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = small(&env);
    let open = Db::builder("/db").env(env.clone()).repair(&RepairOptions::default()).unwrap_err();
    assert_eq!(open.kind(), ErrorKind::IoError, "{open}");
    let cf = db.create_column_family("other").unwrap();
    db.put_cf(&cf, "c", "3").unwrap();
    drop(cf);
    drop(db);
    let before = files_of(&fs);
    let strict = RepairOptions { unknown_families: None };
    let unnamed = Db::builder("/db").env(env.clone()).repair(&strict).unwrap_err();
    assert!(unnamed.to_string().contains("Column families not opened: other"), "{unnamed}");
    let order = Db::builder("/db").env(env.clone()).comparator(Comparator::ReverseBytewise);
    let order = order.repair(&RepairOptions::default()).unwrap_err();
    assert_eq!(order.kind(), ErrorKind::InvalidArgument, "{order}");
    assert!(files_of(&fs) == before);
    fs.create_dir_all(Path::new("/nothing")).unwrap();
    let nothing = Db::builder("/nothing").env(env).repair(&RepairOptions::default()).unwrap_err();
    assert_eq!(nothing.to_string(), "Corruption: /nothing: repair found no files");
}

#[test]
fn transactions_stay_prepared_committed_and_rolled_back() {
    for lost in [false, true] {
        let fs = MemoryFs::new();
        let env = Env::with_file_system(Arc::new(fs.clone()));
        let builder = Db::builder("/db").env(env.clone()).create_if_missing(true);
        let db = TransactionDb::open_with(builder, TransactionDbOptions::default()).unwrap();
        let cf = db.db().default_column_family().clone();
        for (name, key) in [("committed", "c"), ("rolled back", "r"), ("prepared", "p")] {
            let mut transaction = db.begin();
            transaction.set_name(name.as_bytes()).unwrap();
            transaction.put(key.as_bytes(), name.as_bytes()).unwrap();
            transaction.prepare().unwrap();
            match name {
                "committed" => transaction.commit().unwrap(),
                "rolled back" => transaction.rollback().unwrap(),
                _ => {}
            }
        }
        drop(cf);
        drop(db);
        if lost {
            let manifest = files_of(&fs).into_keys().find(|name| name.starts_with("MANIFEST")).unwrap();
            fs.remove_file(&Path::new("/db").join(manifest)).unwrap();
        }
        let report = Db::builder("/db").env(env.clone()).repair(&RepairOptions::default()).unwrap();
        assert_eq!(report.prepared, [b"prepared"]);
        let db =
            TransactionDb::open_with(Db::builder("/db").env(env), TransactionDbOptions::default()).unwrap();
        assert_eq!(db.db().get("c").unwrap().as_deref(), Some(&b"committed"[..]));
        assert!(db.db().get("r").unwrap().is_none() && db.db().get("p").unwrap().is_none());
        let mut waiting = db.prepared_transactions().unwrap();
        assert_eq!(waiting.len(), 1);
        waiting[0].commit().unwrap();
        assert_eq!(db.db().get("p").unwrap().as_deref(), Some(&b"prepared"[..]));
    }
}

#[test]
fn names_in_lost_are_never_replaced() {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    drop(small(&env));
    fs.create_dir_all(Path::new("/db/lost")).unwrap();
    let mine: Vec<PathBuf> = fs.files().into_iter().map(|(path, _)| path).collect();
    for path in &mine {
        let mut file =
            fs.create(&Path::new("/db/lost").join(path.file_name().unwrap()), Default::default()).unwrap();
        file.append(b"mine").unwrap();
        file.close().unwrap();
    }
    let report = Db::builder("/db").env(env).repair(&RepairOptions::default()).unwrap();
    assert!(!report.moved.is_empty());
    for path in mine {
        let kept = fs.read_all(&Path::new("/db/lost").join(path.file_name().unwrap())).unwrap();
        assert_eq!(kept, b"mine");
    }
    assert!(report.moved.iter().all(|file| file.now.to_string_lossy().ends_with(".1")), "{report}");
}

/// Blob files to which wide columns alone refer, as RocksDB 11.8.1 writes them, are in use.
#[test]
fn values_of_wide_columns_in_blob_files_stay() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/made/11.8.1-put-entity-in-blob");
    let env = Env::with_file_system(Arc::new(load(&dir)));
    let builder = || {
        let family = descriptor("default", &ColumnFamilyOptions::default());
        Db::builder("/db").env(env.clone()).column_family(family)
    };
    let columns = || {
        let db = builder().open().unwrap();
        ["wide0", "wide1", "wide2"].map(|key| {
            let entity = db.get_entity_cf_with(db.default_column_family(), key, &ReadOptions::default());
            let columns = entity.unwrap().unwrap();
            columns.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>()
        })
    };
    let before = columns();
    let db = builder().open().unwrap();
    let plain = db.iter().map(|row| row.unwrap().0.to_vec()).filter(|key| !key.starts_with(b"wide"));
    plain.collect::<Vec<_>>().iter().for_each(|key| db.delete(key).unwrap());
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    drop(db);
    for name in env.fs.list(Path::new("/db")).unwrap() {
        if name == "CURRENT" || name.starts_with("MANIFEST") {
            env.fs.remove_file(&Path::new("/db").join(name)).unwrap();
        }
    }
    builder().repair(&RepairOptions::default()).unwrap();
    assert_eq!(columns(), before);
}

/// Files of a database after `write`, which gets the column family of merges. Column family default has a write that is not flushed, so that
/// all WALs stay.
fn files_with_all_wals(write: impl FnOnce(&Db, &ColumnFamilyHandle)) -> Files {
    let fs = MemoryFs::new();
    let env = Env::with_file_system(Arc::new(fs.clone()));
    let db = builder(&env, 0, creating()).open().unwrap();
    db.put("keeps", "all WALs").unwrap();
    let merges = db.column_family("merges").unwrap();
    write(&db, &merges);
    drop(merges);
    drop(db);
    files_of(&fs)
}

fn repaired(files: &Files) -> Db {
    let fs = MemoryFs::new();
    write_files(&fs, files);
    let env = Env::with_file_system(Arc::new(fs));
    builder(&env, 0, DbOptions::default()).repair(&repair_options()).unwrap();
    reopen(&env, 0)
}

#[test]
fn an_operand_after_a_range_deletion_that_is_in_a_table_counts_once() {
    let mut files = files_with_all_wals(|db, merges| {
        db.put_cf(merges, "a", "1").unwrap();
        db.flush_cf(merges).unwrap();
        db.delete_range_cf(merges, "a", "b").unwrap();
        db.merge_cf(merges, "a", "2").unwrap();
        db.flush_cf(merges).unwrap();
        db.put_cf(merges, "a", "3").unwrap();
        db.compact_range_cf_with(merges, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
        // Its number shows that all before it is in tables.
        db.put_cf(merges, "z", "4").unwrap();
        db.flush_cf(merges).unwrap();
    });
    files.retain(|name, _| !name.contains("MANIFEST") && !name.contains("CURRENT"));
    let wals: Vec<String> = files.keys().filter(|name| name.ends_with(".log")).cloned().collect();
    assert_eq!(wals.len(), 5);
    // That of the put: it was recycled, and the older ones wait for it.
    files.remove(&wals[2]);
    let db = repaired(&files);
    let merges = db.column_family("merges").unwrap();
    assert_eq!(db.get_cf(&merges, "a").unwrap().as_deref(), Some(&b"3"[..]));
    assert_eq!(db.get("keeps").unwrap().as_deref(), Some(&b"all WALs"[..]));
}

#[test]
fn for_the_only_table_wals_bring_back_keys_of_its_range_alone() {
    let mut files = files_with_all_wals(|db, merges| {
        db.put_cf(merges, "a", "1").unwrap();
        db.put_cf(merges, "b", "2").unwrap();
        db.flush_cf(merges).unwrap();
        db.delete_cf(merges, "b").unwrap();
        db.compact_range_cf_with(merges, None, None, &BottommostLevelCompaction::Force.into()).unwrap();
    });
    let tables: Vec<&mut Vec<u8>> =
        files.iter_mut().filter(|(name, _)| name.ends_with(".sst")).map(|(_, bytes)| bytes).collect();
    assert_eq!(tables.len(), 1);
    tables.into_iter().for_each(|table| table.truncate(10));
    let db = repaired(&files);
    let merges = db.column_family("merges").unwrap();
    assert_eq!(db.get_cf(&merges, "a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get_cf(&merges, "b").unwrap().as_deref(), None);
}

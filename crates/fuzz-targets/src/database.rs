//! A whole database: its files opened, read, written to, compacted, closed and opened again.
//!
//! ```text
//! input = (length of name: u8, name, length: u32, contents) ...      the files of /db, in memory
//! ```
//! Contents that carry checksums which match may say anything: about each other, about what is in a table. Wrong rows
//! cannot be told from right ones then. The checks: nothing panics, in background jobs either; nothing hangs or takes
//! memory without bound; two scans in a row show the same.

use crate::repair;
use outcrop::{
    BottommostLevelCompaction, Cache, CacheOptions, ColumnFamilyDescriptor, ColumnFamilyHandle,
    ColumnFamilyOptions, ColumnFamilyParts, Db, DbOptions, Env, Error, Result,
};
use outcrop_env::{FileSystem, OpenWrite, memory::MemoryFs};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Column families that are opened; a MANIFEST may name thousands.
const MOST_FAMILIES: usize = 6;
/// Rows that are looked at in a column family.
const MOST_ROWS: usize = 5_000;
/// Of them, looked up.
const LOOKUPS: usize = 40;

/// The files of a database as one input.
pub fn pack<'f>(files: impl IntoIterator<Item = (&'f str, &'f [u8])>) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, contents) in files {
        packed.push(name.len() as u8);
        packed.extend_from_slice(name.as_bytes());
        packed.extend_from_slice(&(contents.len() as u32).to_le_bytes());
        packed.extend_from_slice(contents);
    }
    packed
}

/// Names and places of the files in an input; the last may be cut short.
fn files(input: &[u8]) -> Vec<(String, Range<usize>)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(name_len) = input.get(at) {
        let start = at + 1 + usize::from(*name_len);
        let Some(len) = input.get(start..start + 4) else { break };
        let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
        let end = (start + 4).saturating_add(len).min(input.len());
        let name = String::from_utf8_lossy(&input[at + 1..start]).into_owned();
        found.push((name, start + 4..end));
        at = end;
    }
    found
}

/// Makes the checksums of each file match.
pub fn repair(input: &mut [u8]) {
    for (name, range) in files(input) {
        let contents = &mut input[range];
        match name.rsplit('.').next().unwrap_or_default() {
            "log" => repair::log(contents),
            "sst" => repair::table(contents),
            "blob" => repair::blob(contents),
            other if other.starts_with("MANIFEST") => repair::log(contents),
            _ => {}
        }
    }
}

/// The files of a database, one after the other.
pub fn database(input: &[u8]) {
    let fs = MemoryFs::new();
    fs.create_dir_all(Path::new("/db")).expect("in memory");
    for (name, range) in files(input) {
        // A name that would be a path is not put into the directory.
        if !name.is_empty() && !name.contains(['/', '\0']) && name != ".." && name != "." {
            let mut file = fs.create(&Path::new("/db").join(name), OpenWrite::default()).expect("in memory");
            file.append(&input[range]).expect("in memory");
            file.close().expect("in memory");
        }
    }
    let env = Env::with_file_system(Arc::new(fs));
    let _ = Db::load_latest_options_in("/db", &env);
    // The second time on what the first has left.
    for round in 0..2 {
        if let Err(error) = live(&env, round == 0) {
            refuse_panics(&error);
            return;
        }
    }
}

/// A job that panics leaves that as its error.
fn refuse_panics(error: &Error) {
    assert!(!error.to_string().contains("panicked"), "{error}");
}

fn open(env: &Env) -> Result<Db> {
    let mut names = Db::list_column_families_in("/db", env)?;
    names.truncate(MOST_FAMILIES);
    let cache = Cache::new(CacheOptions { capacity: 1 << 20, estimated_entry_charge: 0 });
    let describe = |name: String| ColumnFamilyDescriptor {
        name,
        options: ColumnFamilyOptions {
            write_buffer_size: 64 << 10,
            merge_operator: Some("stringappend".to_string()),
            ..ColumnFamilyOptions::default()
        },
        parts: ColumnFamilyParts { block_cache: Some(cache.clone()), ..ColumnFamilyParts::default() },
    };
    let options = DbOptions { create_if_missing: false, ..DbOptions::default() };
    Db::builder("/db")
        .options(options)
        .env(env.clone())
        .column_families(names.into_iter().map(describe))
        .open()
}

/// Opens the database and uses it; `write`: also changes it.
fn live(env: &Env, write: bool) -> Result<()> {
    let db = open(env)?;
    for cf in db.column_families() {
        // A column family that cannot be read may still be compacted, and the other way round.
        let read = look(&db, &cf);
        let written = if write { change(&db, &cf) } else { Ok(()) };
        for error in [read.err(), written.err(), db.background_error()].into_iter().flatten() {
            refuse_panics(&error);
        }
    }
    db.close()
}

/// Reads a column family in every way there is.
fn look(db: &Db, cf: &ColumnFamilyHandle) -> Result<()> {
    let mut rows = Vec::new();
    let mut iter = db.cursor_cf(cf)?;
    iter.seek_to_first();
    while iter.valid() && rows.len() < MOST_ROWS {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()?;
    iter.seek_to_first();
    for (key, value) in &rows {
        assert!(iter.valid() && (iter.key(), iter.value()) == (key, value), "a second scan shows other rows");
        iter.next();
    }
    iter.seek_to_last();
    let mut left = MOST_ROWS;
    while iter.valid() && left > 0 {
        left -= 1;
        iter.prev();
    }
    iter.status()?;
    let few = || rows.iter().take(LOOKUPS);
    for (key, _) in few() {
        db.get_cf(cf, key)?;
        iter.seek(key);
        iter.seek_for_prev(key);
    }
    let keys: Vec<&[u8]> = few().map(|(key, _)| &key[..]).collect();
    db.multi_get_cf(cf, &keys).into_iter().try_for_each(|got| got.map(drop))
}

/// Writes a row, and has everything written anew.
fn change(db: &Db, cf: &ColumnFamilyHandle) -> Result<()> {
    db.put_cf(cf, b"a new key", b"value")?;
    db.flush_cf(cf)?;
    db.compact_range_cf_with(cf, None, None, &BottommostLevelCompaction::Force.into())
}

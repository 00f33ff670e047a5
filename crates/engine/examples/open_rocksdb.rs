//! Opens a database that RocksDB made: `cargo run -p outcrop --example open_rocksdb [DIR]`, where DIR defaults to a copy of one that RocksDB
//! 11.8.1 left behind.
//!
//! ```text
//! made by RocksDB 11.8.1, column families: default
//! apple = red
//! cherry = dark
//! count = 5
//! date = brown
//! changed: count = 6
//! ```

use outcrop::{Db, Error, Result};
use std::path::{Path, PathBuf};

/// A copy of a database that RocksDB made, for what follows changes it.
fn copy_of_fixture(to: &Path) -> std::io::Result<PathBuf> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/11.8.1-basic");
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(to.to_path_buf())
}

fn shown(value: &[u8]) -> String {
    match <[u8; 8]>::try_from(value) {
        Ok(number) => u64::from_le_bytes(number).to_string(),
        Err(_) => String::from_utf8_lossy(value).into_owned(),
    }
}

fn main() -> Result<()> {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => copy_of_fixture(temp.path()).map_err(|error| Error::io("copy the fixture", error))?,
    };

    // To look without writing anything, even beside a process that has it open.
    let stored = Db::load_latest_options(&path)?;
    let families = Db::list_column_families(&path)?;
    println!("made by RocksDB {}, column families: {}", stored.rocksdb_version, families.join(", "));
    let reader = Db::builder(&path).stored_options()?.open_read_only()?;
    for row in reader.iter() {
        let (key, value) = row?;
        println!("{} = {}", String::from_utf8_lossy(&key), shown(&value));
    }
    drop(reader);

    // To use it: settings, column families and built-in merge operators are those of its OPTIONS file. RocksDB opens it afterwards.
    let db = Db::builder(&path).stored_options()?.open()?;
    db.merge("count", 1u64.to_le_bytes())?;
    let count = db.get("count")?.expect("it was just merged to");
    println!("changed: count = {}", shown(&count));
    db.close()
}

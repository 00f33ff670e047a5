//! Loads OPTIONS files by RocksDB's own loader.
//!
//! 6.29.5 has no function for it in its C API. There every statement of the file is given to the parser of option strings,
//! which is the loader's.

use crate::call::{Outcome, c_string, call, with_error};
use crate::library::Api;
use crate::options::Options;
use std::path::Path;
use std::ptr::null_mut;

/// Loads the newest OPTIONS file of a database; gives the number of column families in it. `lenient`: names that are unknown
/// to this version are passed over.
pub fn load(api: &Api, dir: &str, lenient: bool) -> Outcome<usize> {
    if api.rocksdb_load_latest_options.is_none() {
        return load_by_statements(api, dir, lenient);
    }
    let dir = c_string(dir)?;
    let (mut database, mut names, mut families, mut count) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: live objects; places for what is loaded, which is destroyed by its own function.
    unsafe {
        let env = call!(api, rocksdb_create_default_env());
        let cache = call!(api, rocksdb_cache_create_lru(1 << 20));
        let result = with_error(api, |e| {
            call!(
                api,
                rocksdb_load_latest_options(
                    dir.as_ptr(),
                    env,
                    lenient,
                    cache,
                    &raw mut database,
                    &raw mut count,
                    &raw mut names,
                    &raw mut families,
                    e
                )
            );
            Ok(())
        });
        if result.is_ok() {
            call!(api, rocksdb_load_latest_options_destroy(database, names, families, count));
        }
        call!(api, rocksdb_cache_destroy(cache));
        call!(api, rocksdb_env_destroy(env));
        result.map(|()| count)
    }
}

fn load_by_statements(api: &Api, dir: &str, lenient: bool) -> Outcome<usize> {
    let text = newest(Path::new(dir))
        .map_err(|error| format!("the harness cannot read OPTIONS in {dir}: {error}"))?;
    let (mut families, mut section) = (0, "");
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line;
            families += usize::from(line.starts_with("[CFOptions"));
            continue;
        }
        // Of the file itself, and of the kind of tables, whose options have a section of their own.
        if section == "[Version]" || line.starts_with("table_factory=") {
            continue;
        }
        let table = section.starts_with("[TableOptions/BlockBasedTable");
        let setting = if table { format!("table.{line}") } else { line.to_string() };
        if let Err(error) = Options::new(api, &[setting])
            && !lenient
        {
            return Err(format!("{section}: {error}"));
        }
    }
    Ok(families)
}

fn newest(dir: &Path) -> std::io::Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.starts_with("OPTIONS-").then_some(name));
    }
    let name = names.iter().max().ok_or(std::io::ErrorKind::NotFound)?;
    std::fs::read_to_string(dir.join(name))
}

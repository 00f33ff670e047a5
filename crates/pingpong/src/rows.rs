//! Databases of a history (`history.rs`): opened with its column families, read as a whole, copied.

use crate::database::{Database, Handle, ReadView, list_families};
use crate::history::{FAMILIES, Rows};
use crate::library::Api;
use crate::options::Options;
use std::path::Path;

/// Options of the database and each column family, with what is missing made. Column families that a history does not write to
/// come after those it does.
///
/// # Errors
/// The engine's.
pub fn open<'a>(
    api: &'a Api,
    settings: &[String],
    mode: &str,
    db: &Path,
    transactions: bool,
) -> Result<(Database<'a>, Vec<Handle>), String> {
    let mut settings = settings.to_vec();
    settings.push(format!("wal_recovery_mode={mode}"));
    let path = db.to_string_lossy();
    // Of a database that is not there yet, none.
    let stored = list_families(api, &path).unwrap_or_default();
    let others = stored.into_iter().filter(|name| !FAMILIES.contains(&name.as_str()));
    let families = FAMILIES
        .iter()
        .map(ToString::to_string)
        .chain(others)
        .map(|name| {
            let options = Options::new(api, &settings)?;
            options.create_missing()?;
            Ok((name, options))
        })
        .collect::<Result<Vec<_>, String>>()?;
    if transactions {
        Database::open_with_transactions(api, &path, families)
    } else {
        Database::open(api, &path, families)
    }
}

/// Reads all rows of the column families that histories write to.
///
/// # Errors
/// The engine's.
pub fn rows(database: &Database<'_>, handles: &[Handle]) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for (family, handle) in handles.iter().enumerate().take(FAMILIES.len()) {
        let mut iter = database.iter(*handle, &ReadView::default())?;
        iter.seek_to_first()?;
        while iter.valid()? {
            let (key, value) = iter.row()?;
            rows.insert((family, key.to_vec()), value.to_vec());
            iter.next()?;
        }
        iter.status()?;
    }
    Ok(rows)
}

/// Opens the database, reads all of it, and closes it.
///
/// # Errors
/// The engine's.
pub fn read(api: &Api, settings: &[String], mode: &str, db: &Path) -> Result<Rows, String> {
    let (database, handles) = open(api, settings, mode, db, false)?;
    let rows = rows(&database, &handles)?;
    close(database, &handles)?;
    Ok(rows)
}

/// Closes a database and its handles.
///
/// # Errors
/// The library lacks a function.
pub fn close(database: Database<'_>, handles: &[Handle]) -> Result<(), String> {
    handles.iter().try_for_each(|handle| database.destroy_handle(*handle))?;
    database.close()
}

/// Copies a directory with all in it over what another had; one that is not there is empty.
///
/// # Errors
/// A file cannot be read or written.
pub fn copy(source: &Path, target: &Path) -> Result<(), String> {
    copy_files(source, target).map_err(|error| format!("copying {}: {error}", source.display()))
}

/// The same, with the system's error.
///
/// # Errors
/// As there.
pub fn copy_files(source: &Path, target: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(target);
    std::fs::create_dir_all(target)?;
    if !source.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_files(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

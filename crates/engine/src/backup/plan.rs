//! Deciding for each file of a database whether a backup copies it or has it already.
//!
//! A name in `shared_checksum` says which file it is: the same name is the same file, unless it is damaged. In `shared` it does
//! not, so that contents are compared. Nothing is taken over that was not looked at: [`SharedFileCheck`].

use super::copy::{Mover, Source};
use super::directory::{Layout, StoredFile};
use super::options::{SharedFileCheck, SharedFileNaming};
use crate::live_files::{LiveFileStorage, StorageFileKind};
use outcrop_base::{Comparator, Error, Result};
use outcrop_env::{Access, FileSystem, OpenRead};
use outcrop_options::FileChecksumGenFactory;
use outcrop_table::{TableReader, TableReaderOptions};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Names of kinds of storage, by RocksDB's numbers. Source: RocksDB `temperature_to_string`.
const TEMPERATURES: &[(u8, &str)] = &[(4, "kHot"), (8, "kWarm"), (10, "kCool"), (12, "kCold"), (16, "kIce")];

/// How a backup obtains one file.
pub enum Plan {
    /// It is copied.
    Copy(Copying),
    /// It is there.
    Share(StoredFile),
}

/// A file to copy.
pub struct Copying {
    /// Where it comes from.
    pub source: Source,
    /// Its name in the backup.
    pub name: String,
    /// Its checksum, if something says what it must be.
    pub expected: Option<Expected>,
    /// The kind of storage it is meant for.
    pub temperature: Option<String>,
    /// It takes the place of a damaged one.
    pub mends: bool,
}

/// The checksum that is expected, and where it comes from.
pub struct Expected {
    /// The checksum.
    pub crc: u32,
    /// Where it is from.
    pub by: String,
}

/// Decides.
pub struct Planner {
    /// Where backups are.
    pub layout: Layout,
    /// The file system of the database.
    pub db_fs: Arc<dyn FileSystem>,
    /// The backup that is made.
    pub id: u32,
    /// The directory of shared files, if there are any.
    pub shared_dir: Option<&'static str>,
    /// How they are named.
    pub naming: SharedFileNaming,
    /// How closely those that are there are looked at.
    pub check: SharedFileCheck,
    /// Files that whole backups have, by name.
    pub stored: HashMap<String, StoredFile>,
    /// Reads files.
    pub reader: Mover,
}

impl Planner {
    /// Decides how the backup obtains `file`.
    ///
    /// # Errors
    /// Corruption if it, and not only its copy in the backups, is damaged; IoError.
    pub fn plan(&self, file: &LiveFileStorage) -> Result<Plan> {
        let kind = file.kind;
        match (kind, self.shared_dir) {
            (StorageFileKind::Table | StorageFileKind::Blob, Some(dir)) => self.plan_shared(file, dir),
            _ => {
                let name = format!("private/{}/{}", self.id, file.name);
                Ok(Plan::Copy(self.copy(file, name, recorded(file))))
            }
        }
    }

    fn plan_shared(&self, file: &LiveFileStorage, dir: &str) -> Result<Plan> {
        let path = file.directory.join(&file.name);
        let actual = self.db_fs.file_size(&path)?;
        if actual != file.size {
            return Err(Error::corruption(format!(
                "{}: it has {actual} bytes, the MANIFEST says {}",
                path.display(),
                file.size
            )));
        }
        let (name, crc) = self.shared_name(file, &path, dir)?;
        let Some(stored) = self.stored.get(&name) else {
            // A file of that name that no backup needs is written over.
            return Ok(Plan::Copy(self.copy(file, name, recorded(file))));
        };
        if !self.is_intact(stored, file.size)? {
            let by = format!("the backup {}", self.layout.root.display());
            let expected = stored.meta.crc.map(|crc| Expected { crc, by });
            let copy = self.copy(file, name, recorded(file).or(expected));
            return Ok(Plan::Copy(Copying { mends: true, ..copy }));
        }
        if dir == "shared" {
            let crc = crc.map_or_else(|| self.crc_of(&path, file.size), Ok)?;
            if stored.meta.crc.is_some_and(|stored| stored != crc) {
                return Err(Error::corruption(format!(
                    "{}: a backup has another file of this number. Use share_files_with_checksum, or another directory",
                    path.display()
                )));
            }
        }
        Ok(Plan::Share(StoredFile { size: file.size, meta: stored.meta.clone() }))
    }

    fn copy(&self, file: &LiveFileStorage, name: String, expected: Option<Expected>) -> Copying {
        let path = file.directory.join(&file.name);
        let source = match file.replacement_contents.is_empty() {
            true => Source::File(self.db_fs.clone(), path, file.size),
            false => Source::Bytes(file.replacement_contents.clone()),
        };
        let temperature = TEMPERATURES.iter().find(|(number, _)| *number == file.temperature);
        let temperature = temperature.map(|(_, name)| (*name).to_string());
        Copying { source, name, expected, temperature, mends: false }
    }

    /// The name of the file among the shared ones, and its checksum where that had to be known.
    fn shared_name(&self, file: &LiveFileStorage, path: &Path, dir: &str) -> Result<(String, Option<u32>)> {
        if dir == "shared" {
            return Ok((format!("{dir}/{}", file.name), None));
        }
        let (stem, extension) = file.name.rsplit_once('.').unwrap_or((&file.name, "sst"));
        if self.naming != SharedFileNaming::Checksum && file.kind == StorageFileKind::Table {
            let session = table_session(&*self.db_fs, path)?;
            if !session.is_empty() {
                return Ok((session_name(dir, stem, &session, file.size, extension, self.naming), None));
            }
        }
        let crc = recorded(file).map(|recorded| recorded.crc);
        let crc = crc.map_or_else(|| self.crc_of(path, file.size), Ok)?;
        Ok((format!("{dir}/{stem}_{crc}_{}.{extension}", file.size), Some(crc)))
    }

    fn crc_of(&self, path: &Path, size: u64) -> Result<u32> {
        Ok(self.reader.checksum(&*self.db_fs, path, size)?.crc)
    }

    /// True if a backup can rely on the shared file as it is.
    fn is_intact(&self, stored: &StoredFile, size: u64) -> Result<bool> {
        if self.layout.size(&stored.meta.name)? != Some(size) {
            return Ok(false);
        }
        match (self.check, stored.meta.crc) {
            (SharedFileCheck::Checksum, Some(crc)) => {
                let path = self.layout.path(&stored.meta.name);
                Ok(self.reader.checksum(&*self.layout.fs, &path, size)?.crc == crc)
            }
            _ => Ok(true),
        }
    }
}

/// The name of a table with a session.
fn session_name(
    dir: &str,
    stem: &str,
    session: &str,
    size: u64,
    extension: &str,
    naming: SharedFileNaming,
) -> String {
    match naming {
        SharedFileNaming::SessionId => format!("{dir}/{stem}_s{session}.{extension}"),
        _ => format!("{dir}/{stem}_s{session}_{size}.{extension}"),
    }
}

/// The name a table has among shared ones by default.
///
/// # Errors
/// Of reading the table.
pub fn default_name(fs: &dyn FileSystem, path: &Path, size: u64) -> Result<Option<String>> {
    let session = table_session(fs, path)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let naming = SharedFileNaming::SessionIdAndSize;
    Ok((!session.is_empty()).then(|| session_name("shared_checksum", &stem, &session, size, "sst", naming)))
}

/// The session that a table was written in; empty for tables of old versions. It goes into a file name, so that one that could
/// lead elsewhere is damage.
fn table_session(fs: &dyn FileSystem, path: &Path) -> Result<String> {
    let file = fs.open_read(path, OpenRead { access: Access::Random, ..OpenRead::default() })?;
    let table = TableReader::open(
        file,
        // No key is compared.
        TableReaderOptions::uncached(Comparator::Bytewise),
    )?;
    let session = table.properties().session_id.clone();
    if session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Ok(session);
    }
    Err(Error::corruption(format!("{}: {session:?} is no session id", path.display())))
}

/// The checksum that the MANIFEST has of a whole file, if it is one of ours.
fn recorded(file: &LiveFileStorage) -> Option<Expected> {
    let ours = file.checksum_function == FileChecksumGenFactory::Crc32c.function();
    let crc = <[u8; 4]>::try_from(&file.checksum[..]).ok().filter(|_| ours);
    crc.map(|bytes| Expected { crc: u32::from_be_bytes(bytes), by: "the MANIFEST".to_string() })
}

impl Plan {
    /// The file's name below the directory of backups.
    pub fn name(&self) -> &str {
        match self {
            Plan::Copy(copying) => &copying.name,
            Plan::Share(file) => &file.meta.name,
        }
    }
}

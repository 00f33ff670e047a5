//! The directory of backups: where its files are, and what is in it.

use super::meta::{BackupMeta, MetaFile};
use outcrop_base::{Error, ErrorKind, Result};
use outcrop_env::FileSystem;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where files of backups are.
#[derive(Clone)]
pub struct Layout {
    /// The directory.
    pub root: PathBuf,
    /// Its file system.
    pub fs: Arc<dyn FileSystem>,
}

impl Layout {
    /// A file or directory by its name below the directory of backups.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The meta file of backup `id`.
    pub fn meta(&self, id: u32) -> PathBuf {
        self.path(&format!("meta/{id}"))
    }

    /// The name of the meta file until it is complete.
    pub fn meta_temporary(&self, id: u32) -> PathBuf {
        self.path(&format!("meta/.{id}.tmp"))
    }

    /// Where the files are that only backup `id` has.
    pub fn private(&self, id: u32) -> PathBuf {
        self.path(&format!("private/{id}"))
    }

    /// The name of a shared file until it is complete.
    pub fn shared_temporary(&self, name: &str) -> PathBuf {
        let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
        self.path(&format!("{dir}/.{file}.tmp"))
    }

    /// Names in a directory; none if there is none.
    pub fn list(&self, name: &str) -> Result<Vec<String>> {
        list_if_there(&*self.fs, &self.path(name))
    }

    /// That a file of a backup is there, as long as it was.
    ///
    /// # Errors
    /// NotFound, Corruption.
    pub fn check_size(&self, file: &StoredFile) -> Result<()> {
        let path = self.path(&file.meta.name);
        match self.size(&file.meta.name)? {
            None => Err(Error::not_found(format!("File missing: {}", path.display()))),
            Some(found) if found != file.size => Err(Error::corruption(format!(
                "File corrupted: File size mismatch for {}: Expected file size is {} while found file size is {found}",
                path.display(),
                file.size
            ))),
            Some(_) => Ok(()),
        }
    }

    /// The size of a file, if it is there.
    pub fn size(&self, name: &str) -> Result<Option<u64>> {
        match self.fs.file_size(&self.path(name)) {
            Ok(size) => Ok(Some(size)),
            Err(error) if error.is_missing_file() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The ids of the backups that have a meta file, ascending.
    pub fn ids(&self) -> Result<Vec<u32>> {
        let names = self.fs.list(&self.path("meta"))?;
        let mut ids: Vec<u32> = names.iter().filter_map(|name| backup_id(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The number that a name is, written as RocksDB writes it.
pub fn backup_id(name: &str) -> Option<u32> {
    name.parse::<u32>().ok().filter(|id| *id > 0 && id.to_string() == name)
}

/// A backup whose meta file was read.
#[derive(Clone, Debug)]
pub struct Backup {
    /// When it was made, seconds since the epoch.
    pub timestamp: i64,
    /// The last write in it.
    pub sequence_number: u64,
    /// Metadata that the application gave with it.
    pub app_metadata: Vec<u8>,
    /// Its files.
    pub files: Vec<StoredFile>,
    /// Files that were left out of it.
    pub excluded: Vec<String>,
}

impl Backup {
    /// True if its meta file says what `meta` says.
    fn is_of(&self, meta: &BackupMeta) -> bool {
        (self.timestamp, self.sequence_number) == (meta.timestamp, meta.sequence_number)
            && self.files.iter().map(|file| &file.meta).eq(&meta.files)
    }
}

/// A file of a backup, and how long it is.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// As the meta file has it.
    pub meta: MetaFile,
    /// Bytes that it has, or should have.
    pub size: u64,
}

/// A backup that cannot be restored.
pub struct Corrupt {
    /// Why not.
    pub error: Error,
    /// The files that it names, as far as its meta file can be read.
    pub names: Vec<String>,
}

/// All backups in the directory.
#[derive(Default)]
pub struct Backups {
    /// Those that are whole, as far as the sizes of files tell.
    pub valid: BTreeMap<u32, Backup>,
    /// The others.
    pub corrupt: BTreeMap<u32, Corrupt>,
    /// The highest id that a backup has had as far as is known.
    pub latest: u32,
}

impl Backups {
    /// Looks at every backup, newest first, until `limit` whole ones were found.
    ///
    /// # Errors
    /// Of the file system. A backup that is damaged is no error: it is set aside.
    pub fn load(layout: &Layout, limit: usize) -> Result<Backups> {
        let mut backups = Backups::default();
        let mut sizes = Sizes::default();
        for id in layout.ids()?.into_iter().rev() {
            backups.latest = backups.latest.max(id);
            if backups.valid.len() >= limit {
                break;
            }
            backups.load_one(layout, id, &mut sizes)?;
        }
        Ok(backups)
    }

    fn load_one(&mut self, layout: &Layout, id: u32, sizes: &mut Sizes) -> Result<()> {
        let path = layout.meta(id);
        let text = match layout.fs.read_all(&path) {
            // Deleted meanwhile.
            Err(error) if error.is_missing_file() => return Ok(()),
            Err(error) if is_of_backup(&error) => {
                self.corrupt.insert(id, Corrupt { error, names: Vec::new() });
                return Ok(());
            }
            text => text?,
        };
        let parsed = BackupMeta::parse(&text, &path.display().to_string());
        let names = parsed
            .as_ref()
            .map_or_else(|_| Vec::new(), |meta| meta.files.iter().map(|file| file.name.clone()).collect());
        match parsed.and_then(|meta| with_sizes(layout, meta, sizes)) {
            Ok(backup) => drop(self.valid.insert(id, backup)),
            Err(error) if is_of_backup(&error) => {
                self.corrupt.insert(id, Corrupt { error, names });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads anew what backup `id` is, if it is known: another engine may have deleted it, and made another of that id.
    pub fn refresh(&mut self, layout: &Layout, id: u32) -> Result<()> {
        let path = layout.meta(id);
        if let Some(known) = self.valid.get(&id) {
            let text = layout.fs.read_all(&path).unwrap_or_default();
            let found = BackupMeta::parse(&text, &path.display().to_string());
            if found.is_ok_and(|found| known.is_of(&found)) {
                // With the sizes that its files had: one that was cut since is found by them.
                return Ok(());
            }
        } else if !self.corrupt.contains_key(&id) {
            return Ok(());
        }
        self.valid.remove(&id);
        self.corrupt.remove(&id);
        self.load_one(layout, id, &mut Sizes::new())
    }

    /// The newest whole backup.
    pub fn newest(&self) -> Option<u32> {
        self.valid.keys().next_back().copied()
    }

    /// The backup `id`.
    ///
    /// # Errors
    /// Why it cannot be used; NotFound if there is none.
    pub fn get(&self, id: u32) -> Result<&Backup> {
        if let Some(corrupt) = self.corrupt.get(&id) {
            return Err(corrupt.error.clone());
        }
        self.valid.get(&id).ok_or_else(|| Error::not_found("Backup not found"))
    }

    /// The files that backups need, damaged ones included, by name; of those that a whole backup has, what it says of them.
    pub fn referenced(&self) -> HashMap<&str, Option<&StoredFile>> {
        let corrupt = self.corrupt.values().flat_map(|backup| &backup.names);
        let mut all: HashMap<&str, Option<&StoredFile>> = corrupt.map(|name| (name.as_str(), None)).collect();
        let valid = self.valid.values().flat_map(|backup| &backup.files);
        all.extend(valid.map(|file| (file.meta.name.as_str(), Some(file))));
        all
    }
}

/// True if the error is of one backup, which is set aside, and not of the directory of backups.
fn is_of_backup(error: &Error) -> bool {
    use std::io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory};
    let odd_path = |io: &std::io::Error| matches!(io.kind(), InvalidFilename | IsADirectory | NotADirectory);
    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::NotSupported)
        || error.io_source().is_some_and(odd_path)
}

/// Sizes of shared files that were asked for before.
type Sizes = HashMap<String, Option<u64>>;

/// Puts down how long each file is.
fn with_sizes(layout: &Layout, meta: BackupMeta, sizes: &mut Sizes) -> Result<Backup> {
    let mut files = Vec::with_capacity(meta.files.len());
    for file in meta.files {
        let found = match sizes.get(&file.name) {
            Some(size) => *size,
            None => {
                let size = layout.size(&file.name)?;
                if file.is_shared() {
                    sizes.insert(file.name.clone(), size);
                }
                size
            }
        };
        let Some(actual) = found else {
            return Err(Error::corruption(format!(
                "Pathname in meta file not found on disk: {}",
                layout.path(&file.name).display()
            )));
        };
        if let Some(expected) = file.size.filter(|size| *size != actual) {
            return Err(Error::corruption(format!(
                "For file {} expected size {expected} but found size {actual}",
                file.name
            )));
        }
        files.push(StoredFile { size: actual, meta: file });
    }
    Ok(Backup {
        timestamp: meta.timestamp,
        sequence_number: meta.sequence_number,
        app_metadata: meta.app_metadata,
        files,
        excluded: meta.excluded,
    })
}

/// Creates the directories that are missing. With `sync` those of backups are durable on return, also if an engine without it created
/// them; the directories above the root only if this call created them.
pub fn create_dirs(layout: &Layout, shared: Option<&str>, sync: bool) -> Result<()> {
    create_dir(&*layout.fs, &layout.root, sync)?;
    for name in ["private", "meta"].into_iter().chain(shared) {
        layout.fs.create_dir_all(&layout.path(name))?;
    }
    if sync { layout.fs.sync_dir(&layout.root) } else { Ok(()) }
}

/// Creates a directory and those above it, as far as they are missing. With `sync` their names are durable on return.
pub fn create_dir(fs: &dyn FileSystem, dir: &Path, sync: bool) -> Result<()> {
    if sync { fs.create_dir_all_durably(dir) } else { fs.create_dir_all(dir) }
}

/// Names in a directory; none if there is none.
pub fn list_if_there(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<String>> {
    match fs.list(dir) {
        Err(error) if error.is_missing_file() => Ok(Vec::new()),
        listed => listed,
    }
}

/// Removes a file; one that is not there is no error.
pub fn remove_if_there(fs: &dyn FileSystem, path: &Path) -> Result<()> {
    match fs.remove_file(path) {
        Err(error) if !error.is_missing_file() => Err(error),
        _ => Ok(()),
    }
}

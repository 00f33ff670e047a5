//! The blob files of a database that is salvaged: one that is whole is copied, of another each value is fetched by itself.

use super::reason::{is_damage, without_path};
use super::report::{SalvageReport, SalvagedFile};
use crate::copy_file::copy_file;
use outcrop_base::{CfId, Comparator, Error, Result};
use outcrop_env::{Access, Env, OpenRead, ReadFile};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_table::blob::{BlobIndex, BlobReader};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Blob files that tables refer to.
#[derive(Default)]
pub struct Blobs {
    files: BTreeMap<FileNumber, Blob>,
}

struct Blob {
    /// The file, if it can be opened.
    file: Option<Arc<dyn ReadFile>>,
    /// The reason why it is not copied.
    damage: Option<String>,
    /// Where the values are that were taken out of it.
    taken: BTreeSet<u64>,
}

impl Blobs {
    /// True if the file that `index` refers to is whole, and its values stay there.
    ///
    /// # Errors
    /// Of the file system; damage if `index` does not decode.
    pub fn is_whole(&mut self, (from, env): (&Path, &Env), id: CfId, index: &[u8]) -> Result<bool> {
        let number = BlobIndex::decode(index)?.file_number;
        Ok(self.blob((from, env), id, number)?.damage.is_none())
    }

    fn blob(&mut self, (from, env): (&Path, &Env), id: CfId, number: FileNumber) -> Result<&mut Blob> {
        Ok(match self.files.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(verify(from, env, id, number)?),
        })
    }

    /// The value that `index` of `key` refers to.
    ///
    /// # Errors
    /// Of the file system; damage if it cannot be read.
    pub fn fetch(
        &mut self,
        (from, env): (&Path, &Env),
        (id, comparator): (CfId, &Comparator),
        key: &[u8],
        index: &[u8],
    ) -> Result<Vec<u8>> {
        let index = BlobIndex::decode(index)?;
        let blob = self.blob((from, env), id, index.file_number)?;
        let damage = blob.damage.as_deref().unwrap_or_default();
        let lost = || Error::corruption(format!("{:06}.blob: {damage}", index.file_number.0));
        let reader = BlobReader::of_damaged(blob.file.clone().ok_or_else(lost)?, index.codec);
        let mut value = Vec::new();
        reader.ordered_by(comparator.clone()).get(key, &index, &mut value)?;
        blob.taken.insert(index.offset);
        Ok(value)
    }

    /// Copies the whole ones; gives their numbers, and the others to the report.
    ///
    /// # Errors
    /// Of the file system.
    pub fn copy(
        &self,
        (from, to): (&Path, &Path),
        env: &Env,
        report: &mut SalvageReport,
    ) -> Result<Vec<FileNumber>> {
        let mut copied = Vec::new();
        for (number, blob) in &self.files {
            let path = file_name::blob(from, *number);
            if let Some(damage) = &blob.damage {
                let (level, family, damage) = (None, None, vec![damage.clone()]);
                let entries = Some(blob.taken.len() as u64).filter(|taken| *taken > 0);
                report.files.push(SalvagedFile { path, family, level, entries, damage });
                continue;
            }
            let len = env.fs.file_size(&path)?;
            copy_file(&*env.fs, &path, &file_name::blob(to, *number), len)?;
            report.copied += 1;
            report.copied_bytes += len;
            copied.push(*number);
        }
        Ok(copied)
    }
}

/// Reads every record of a blob file.
fn verify(from: &Path, env: &Env, id: CfId, number: FileNumber) -> Result<Blob> {
    let path = file_name::blob(from, number);
    let damaged = |file, error: &Error| {
        let damage = match error.is_missing_file() {
            true => "it is missing".to_string(),
            false => without_path(&path, &error.to_string()),
        };
        Blob { file, damage: Some(damage), taken: BTreeSet::new() }
    };
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let file = match env.fs.open_read(&path, read) {
        Ok(file) => file,
        Err(error) if error.is_missing_file() || is_damage(&error) => return Ok(damaged(None, &error)),
        Err(error) => return Err(error),
    };
    let whole = BlobReader::open(file.clone(), id.0).and_then(|reader| {
        let (mut at, mut count) = (BlobReader::FIRST, 0);
        while let Some(next) = reader.verify_record(at)? {
            (at, count) = (next, count + 1);
        }
        match count == reader.count() {
            true => Ok(()),
            false => Err(Error::corruption(format!("it has {count} values and says {}", reader.count()))),
        }
    });
    match whole {
        Ok(()) => Ok(Blob { file: Some(file), damage: None, taken: BTreeSet::new() }),
        Err(error) if is_damage(&error) => Ok(damaged(Some(file), &error)),
        Err(error) => Err(error),
    }
}

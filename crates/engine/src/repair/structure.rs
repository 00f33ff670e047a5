//! The contents that MANIFESTs still have: as much of the best of them as decodes.
//!
//! Other than recovery, which refuses damage, this reads up to it: what is before was true once. Tables that left and column families
//! that were dropped stay known, so that their files do not come back to life.

use super::find::Found;
use outcrop_base::{CfId, SeqNum};
use outcrop_env::{Access, Env, OpenRead};
use outcrop_manifest::file_name::{self, FileKind, MAX_FILE_NUMBER};
use outcrop_manifest::{FileNumber, TableFile, VersionEdit};
use outcrop_record::{LogReader, ReadOutcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A column family as a MANIFEST has it.
pub struct KnownFamily {
    /// Its name.
    pub name: String,
    /// Name of its order of keys.
    pub comparator: Option<String>,
    /// All its data in older WALs is in tables.
    pub log_number: FileNumber,
}

/// A table as a MANIFEST has it.
pub struct KnownTable {
    /// Id of its column family.
    pub family: CfId,
    /// Its level.
    pub level: u32,
    /// The whole of its description.
    pub file: Arc<TableFile>,
}

/// The contents of a MANIFEST, up to its end or to damage.
#[derive(Default)]
pub struct Structure {
    /// Its number; `None`: there is none.
    pub number: Option<FileNumber>,
    /// Why it was not read to its end.
    pub damage: Option<String>,
    /// Column families, by id.
    pub families: BTreeMap<CfId, KnownFamily>,
    /// Tables, by number.
    pub tables: BTreeMap<FileNumber, KnownTable>,
    /// Tables that left.
    pub gone: BTreeSet<FileNumber>,
    /// Column families that were dropped.
    pub dropped: BTreeSet<CfId>,
    /// Identity of the database.
    pub db_id: Option<String>,
    /// At or above every sequence number in tables.
    pub last_sequence: SeqNum,
    /// Above every file number in use.
    pub next_file_number: FileNumber,
    /// Highest column family id ever given out.
    pub max_column_family: CfId,
    /// Older WALs are not needed; 0: not said.
    pub min_log_number_to_keep: FileNumber,
}

impl Structure {
    /// Of the MANIFEST that CURRENT names if it can be read to its end; else of the one that knows most of the tables there are.
    pub fn read(path: &Path, env: &Env, found: &Found) -> Structure {
        let current = current(path, env);
        if let Some(number) = current.filter(|number| found.manifests.contains(number)) {
            let named = Structure::of(path, env, number);
            if named.damage.is_none() && !named.families.is_empty() {
                return named;
            }
        }
        let known = |structure: &Structure| {
            found.tables.iter().filter(|number| structure.tables.contains_key(number)).count()
        };
        let all = found.manifests.iter().map(|number| Structure::of(path, env, *number));
        all.filter(|structure| !structure.families.is_empty())
            .max_by_key(|structure| (known(structure), structure.number))
            .unwrap_or_default()
    }

    fn of(path: &Path, env: &Env, number: FileNumber) -> Structure {
        let mut structure = Structure { number: Some(number), ..Structure::default() };
        let name = file_name::manifest(path, number);
        let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
        let mut group: Vec<VersionEdit> = Vec::new();
        let outcome = env.fs.open_read(&name, read).map_err(|error| error.to_string()).and_then(|file| {
            let mut reader = LogReader::of_manifest(file);
            loop {
                let (bytes, offset) = match reader.next().map_err(|error| error.to_string())? {
                    ReadOutcome::End => return Ok(()),
                    ReadOutcome::Damaged(damage) => return Err(damage.error.to_string()),
                    ReadOutcome::Record(bytes, offset) => (bytes, offset),
                };
                let at = |what: String| format!("{}: offset {offset}: {what}", name.display());
                let edit = VersionEdit::decode(bytes).map_err(|error| at(error.to_string()))?;
                let remaining = edit.remaining_in_group.unwrap_or(0);
                group.push(edit);
                if remaining == 0 {
                    for edit in std::mem::take(&mut group) {
                        structure.apply(&edit).map_err(at)?;
                    }
                }
            }
        });
        structure.damage = outcome.err();
        structure
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<(), String> {
        let id = edit.column_family;
        if self.families.is_empty() {
            self.add_family(CfId(0), "default");
        }
        if let Some(name) = &edit.column_family_add {
            self.add_family(id, name);
        }
        self.db_id = edit.db_id.clone().or(self.db_id.take());
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or_default());
        let next = edit.next_file_number.unwrap_or_default();
        if next.0 > MAX_FILE_NUMBER {
            return Err(format!("file {next} is said to be next"));
        }
        self.next_file_number = self.next_file_number.max(next);
        self.max_column_family = self.max_column_family.max(edit.max_column_family.unwrap_or_default());
        self.min_log_number_to_keep =
            self.min_log_number_to_keep.max(edit.min_log_number_to_keep.unwrap_or_default());
        if edit.column_family_drop {
            self.families.remove(&id);
            self.dropped.insert(id);
            self.tables.retain(|number, table| {
                let stays = table.family != id;
                if !stays {
                    self.gone.insert(*number);
                }
                stays
            });
            return Ok(());
        }
        let family =
            self.families.get_mut(&id).ok_or("an edit is about a column family that is not there")?;
        family.comparator = edit.comparator.clone().or(family.comparator.take());
        family.log_number = family.log_number.max(edit.log_number.unwrap_or_default());
        for (_, number) in &edit.deleted_files {
            self.tables.remove(number);
            self.gone.insert(*number);
        }
        for (level, file) in &edit.new_files {
            self.gone.remove(&file.number);
            self.tables.insert(file.number, KnownTable { family: id, level: *level, file: file.clone() });
        }
        Ok(())
    }

    fn add_family(&mut self, id: CfId, name: &str) {
        self.dropped.remove(&id);
        let family = KnownFamily { name: name.to_string(), comparator: None, log_number: FileNumber::NONE };
        self.families.insert(id, family);
        self.max_column_family = self.max_column_family.max(id);
    }
}

/// The MANIFEST that CURRENT names, if it names one.
pub fn current(path: &Path, env: &Env) -> Option<FileNumber> {
    let contents = env.fs.read_all(&file_name::current(path)).ok()?;
    match file_name::parse(std::str::from_utf8(&contents).ok()?.trim_end_matches('\n'))? {
        FileKind::Manifest(number) => Some(number),
        _ => None,
    }
}

//! The note that a repair is under way: `lost/unfinished`.
//!
//! A repair that ends early can leave whole tables behind, and the next one could not tell them from tables that a MANIFEST lost. So before
//! the first table is written, a note says from which number on files are the repair's own, and which MANIFESTs there were. As long as these
//! are as they were and in charge, nobody but a repair wrote such files: what they hold is still where they took it from.

use super::find::Found;
use super::structure::Structure;
use outcrop_base::Result;
use outcrop_env::{Env, OpenWrite};
use outcrop_manifest::{FileNumber, file_name};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const NAME: &str = "unfinished";

fn path_of(path: &Path) -> PathBuf {
    path.join(super::lost::LOST).join(NAME)
}

/// The MANIFESTs below `from`, with their sizes.
fn manifests(path: &Path, env: &Env, found: &Found, from: FileNumber) -> Result<String> {
    let mut text = String::new();
    for number in found.manifests.iter().filter(|number| **number < from) {
        let size = env.fs.file_size(&file_name::manifest(path, *number))?;
        let _ = writeln!(text, "{} {size}", number.0);
    }
    Ok(text)
}

/// The number from which on files are those of a repair that ended early.
pub fn read(path: &Path, env: &Env, found: &Found, current: Option<FileNumber>) -> Option<FileNumber> {
    let text = String::from_utf8(env.fs.read_all(&path_of(path)).ok()?).ok()?;
    let (first, noted) = text.split_once('\n')?;
    let from = FileNumber(first.strip_prefix("from ")?.parse().ok()?);
    let in_charge = match current {
        Some(current) => current < from,
        None => found.manifests.iter().all(|number| *number < from),
    };
    let same = manifests(path, env, found, from).is_ok_and(|now| now == noted);
    (in_charge && same).then_some(from)
}

/// Leaves the note, durably.
///
/// # Errors
/// Of the file system.
pub fn write(path: &Path, env: &Env, found: &Found, from: FileNumber) -> Result<()> {
    let note = path_of(path);
    let dir = note.parent().unwrap_or(path);
    env.fs.create_dir_all_durably(dir)?;
    let text = format!("from {}\n{}", from.0, manifests(path, env, found, from)?);
    let mut file = env.fs.create(&note, OpenWrite::default())?;
    file.append(text.as_bytes())?;
    file.sync()?;
    file.close()?;
    env.fs.sync_dir(dir)
}

/// Takes the note away; one that stays says nothing once another MANIFEST is in charge.
pub fn remove(path: &Path, env: &Env) {
    let _ = env.fs.remove_file(&path_of(path));
}

/// Takes the tables and WALs from the number `unfinished` on, that the MANIFEST does not know, out of `found`.
pub fn take_leftovers(found: &mut Found, unfinished: Option<FileNumber>, structure: &Structure) -> Found {
    let Some(from) = unfinished else { return Found::default() };
    let (tables, wals) = (found.tables.split_off(&from), found.wals.split_off(&from));
    let (mut known, tables) = tables.into_iter().partition(|number| structure.tables.contains_key(number));
    found.tables.append(&mut known);
    Found { tables, wals, ..Found::default() }
}

//! A repair between looking and acting.

use super::families::Family;
use super::find::Found;
use super::lost::Moves;
use super::report::StructureFound;
use super::scan::Scanned;
use super::structure::Structure;
use crate::context::DbContext;
use outcrop_base::{CfId, SeqNum};
use outcrop_manifest::{FileNumber, TableFile, file_name};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A repair under way: what was found.
pub struct Repair<'a> {
    pub ctx: &'a Arc<DbContext>,
    pub found: Found,
    pub structure: Structure,
    pub families: BTreeMap<CfId, Family>,
    pub scanned: BTreeMap<CfId, Vec<Scanned>>,
    /// Column families of which a table is lost.
    pub incomplete: BTreeSet<CfId>,
    /// Those tables by column family, as far as the MANIFEST knows them.
    pub lost: BTreeMap<CfId, Vec<Arc<TableFile>>>,
    /// Column families with tables that the MANIFEST does not know.
    pub surprised: BTreeSet<CfId>,
    pub structure_found: StructureFound,
    /// Column families that WALs write to, and the last number there.
    pub written_to: BTreeSet<CfId>,
    pub last_seq: SeqNum,
    /// The oldest WAL from which on no number is missing.
    pub first_in_line: FileNumber,
    /// Where the WALs are that are read: elsewhere, of a database that is salvaged.
    pub wal_dir: PathBuf,
    pub moves: Moves,
    pub missing: Vec<String>,
    /// Files from this number on are those of a repair that ended early.
    pub unfinished: Option<FileNumber>,
}

impl Repair<'_> {
    /// True if CURRENT may name another MANIFEST than there was before.
    pub fn is_in_charge(&self) -> bool {
        let contents = self.ctx.env.fs.read_all(&file_name::current(&self.ctx.path));
        let known = |name: &str| {
            self.found.manifests.iter().any(|number| file_name::manifest_name(*number) == name.trim_end())
        };
        match contents {
            Ok(contents) => {
                let name = String::from_utf8_lossy(&contents).into_owned();
                name.starts_with("MANIFEST-") && !known(&name)
            }
            Err(error) => !error.is_missing_file(),
        }
    }
}

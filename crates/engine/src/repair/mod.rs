//! Making a database of what is left of one.
//!
//! ```text
//! look:    lock -> names of files -> MANIFEST as far as it decodes -> every entry of every table -> every record of the WALs
//! act:     WALs to tables of level 0 -> second names in lost/ -> new MANIFEST and CURRENT -> first names of what was replaced go
//! ```
//! Invariants: nothing is deleted: what the database does not use any more has a name in `lost/`. Until CURRENT names the new MANIFEST
//! the database is as it was, but for links in `lost/` and tables that are removed again if writing fails; so a repair can always be
//! run again. A feature that a repair does not support (user timestamps, transactions of other write policies) is no damage: it is
//! refused before anything is written. So are tables in other directories than the database's (`elsewhere.rs`): a database that did not know
//! them any more would remove them.
//!
//! Where RocksDB's repair (`db/repair.cc`) goes other ways: levels are kept if the MANIFEST knows all tables; tables that left, and
//! those of dropped column families, do not come back; transactions stay prepared or rolled back; blob files keep their places; column
//! families without tables stay; WALs that were in tables already do not count twice; and the report says what is lost.
//! Read next: `structure.rs` (MANIFEST), `scan.rs` (tables), `logs.rs` (WALs), `order.rs` (level 0), `install.rs`.

mod damage;
pub mod elsewhere;
mod evidence;
mod families;
mod find;
mod install;
mod known;
mod logs;
mod lost;
mod order;
mod records;
pub mod report;
pub mod salvage;
mod scan;
mod structure;
mod under_way;
mod unfinished;

use crate::column_family::ColumnFamilyDescriptor;
use crate::context::DbContext;
use crate::identity::new_db_id;
use crate::in_force::{OptionsInForce, in_force, memtable_pool};
use crate::info_log::{InfoLog, LogLevel, log_at, log_line};
use crate::objects::DbObjects;
use crate::pending_outputs::PendingOutputs;
use damage::refuse_unless_damage;
use families::{Family, Named};
use find::Found;
use known::{KnownTables, Tables};
use logs::{Conversion, Transactions};
use lost::Moves;
use outcrop_base::{CfId, Result};
use outcrop_env::Env;
use outcrop_manifest::{FileNumber, TableFile, file_name};
use outcrop_options::DbOptions;
use outcrop_table::unique_id;
use report::{RepairReport, RepairedWal, StructureFound};
use scan::{Opened, Scanned};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use structure::Structure;
use under_way::Repair;

/// How a database is repaired: [`crate::DbBuilder::repair`].
///
/// ```
/// use outcrop::{ColumnFamilyDescriptor, RepairOptions};
///
/// let strict = RepairOptions { unknown_families: None };
/// let like_logs = RepairOptions { unknown_families: Some(ColumnFamilyDescriptor::new("")) };
/// # assert!(strict.unknown_families.is_none() && like_logs.unknown_families.is_some());
/// ```
#[derive(Clone)]
pub struct RepairOptions {
    /// Settings and objects of column families that the builder does not name; the name in it means nothing, and a built-in order
    /// of keys is found by itself. `None`: they are refused by name, and nothing is changed; RocksDB moves their tables away. Default:
    /// default settings.
    pub unknown_families: Option<ColumnFamilyDescriptor>,
}

impl Default for RepairOptions {
    fn default() -> Self {
        RepairOptions { unknown_families: Some(ColumnFamilyDescriptor::default()) }
    }
}

/// Why a file is moved that an earlier repair made.
const LEFTOVER: &str = "left by a repair that did not end: what it holds is still where it was taken from";
/// Tables that are open at the same time.
const OPEN_FILES: i32 = 256;

/// See [`crate::DbBuilder::repair`].
pub fn repair(
    path: &Path,
    options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
    objects: DbObjects,
    repair: &RepairOptions,
) -> Result<RepairReport> {
    let OptionsInForce { db: mut options, descriptors, .. } = in_force(path, options, column_families)?;
    options.max_open_files = OPEN_FILES;
    refuse_given_paths("repair", path, &descriptors)?;
    let lock = env.fs.lock(&file_name::lock(path))?;
    let wal_dir = options.wal_dir.clone().unwrap_or_else(|| path.to_path_buf());
    let mut found = Found::look(path, &wal_dir, &env)?;
    let structure = Structure::read(path, &env, &found);
    elsewhere::refuse("repair", path, &env, &found, &structure)?;
    let unfinished = unfinished::read(path, &env, &found, structure::current(path, &env));
    let leftovers = unfinished::take_leftovers(&mut found, unfinished, &structure);
    let objects = objects.complete(&options, &env.clock);
    let pool = memtable_pool(&descriptors, &objects);
    let info_log = InfoLog::create(&env, path, &options, objects.logger.as_ref())?;
    let session_id = unique_id::session_id(env.random.next_u64(), env.random.next_u64() | 1);
    let db_id = identity(path, &env, &structure);
    let next_file = structure.next_file_number.max(found.highest.next());
    let ctx =
        DbContext::new(env, path.to_path_buf(), options, (db_id, session_id), info_log, pool, next_file);
    let ctx = Arc::new(ctx.with_objects(objects));
    log_line!(ctx, "Repair: searching path {}", path.display());
    let repaired = Repair::look(&ctx, &descriptors, repair, found, structure).and_then(|mut repair| {
        repair.unfinished = unfinished;
        for number in leftovers.tables {
            repair.moves.add(file_name::table(path, number), LEFTOVER, false);
        }
        for number in leftovers.wals {
            repair.moves.add(file_name::wal(&ctx.wal_dir, number), LEFTOVER, false);
        }
        repair.act()
    });
    match &repaired {
        Ok(report) => log_repaired(&ctx, report),
        Err(error) => log_at!(ctx, LogLevel::Error, "Repair failed: {error}"),
    }
    drop(lock);
    repaired
}

/// Refuses `doing` where the caller gives paths.
fn refuse_given_paths(doing: &str, path: &Path, descriptors: &[ColumnFamilyDescriptor]) -> Result<()> {
    let given = descriptors.iter().flat_map(|descriptor| &descriptor.options.cf_paths);
    let dirs: BTreeSet<&Path> = given.map(|dir| dir.path.as_path()).collect();
    if dirs.is_empty() { Ok(()) } else { Err(elsewhere::refused(doing, path, &dirs)) }
}

/// In RocksDB's words, then in ours.
fn log_repaired(ctx: &DbContext, report: &RepairReport) {
    let files: usize = report.families.iter().map(|family| family.tables).sum();
    let bytes: u64 = report.families.iter().map(|family| family.bytes).sum();
    let lost =
        if report.is_lossless() { "No data is known to be lost." } else { "Some data may have been lost." };
    log_at!(
        ctx,
        LogLevel::Warn,
        "**** Repaired rocksdb {}; recovered {files} files; {bytes} bytes. {lost} ****",
        ctx.path.display()
    );
    report.to_string().lines().for_each(|line| log_line!(ctx, "Repair: {line}"));
}

/// The database's identity: as the MANIFEST has it, as its file has it, or a new one.
fn identity(path: &Path, env: &Env, structure: &Structure) -> String {
    let stored = env.fs.read_all(&file_name::identity(path)).ok();
    let stored =
        stored.and_then(|bytes| Some(String::from_utf8(bytes).ok()?.trim_end_matches('\n').to_string()));
    let stored = stored.filter(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()));
    structure.db_id.clone().or(stored).unwrap_or_else(|| new_db_id(env))
}

impl<'a> Repair<'a> {
    /// Reads everything. Nothing is written.
    fn look(
        ctx: &'a Arc<DbContext>,
        descriptors: &[ColumnFamilyDescriptor],
        options: &RepairOptions,
        found: Found,
        structure: Structure,
    ) -> Result<Repair<'a>> {
        let (mut moves, mut missing) = (Moves::default(), Vec::new());
        // A table that a whole MANIFEST does not know was never in use: a job, or a repair, ended before it was complete.
        let whole = structure.number.is_some() && structure.damage.is_none();
        let was_in_use = |level: Option<u32>| level.is_some() || !whole;
        let mut lose = |number: FileNumber, reason: String, held_data: bool| {
            log_at!(ctx, LogLevel::Warn, "Table #{}: ignoring {reason}", number.0);
            moves.add(file_name::table(&ctx.path, number), reason, held_data);
        };
        let mut opened: Vec<Opened> = Vec::new();
        let mut incomplete: BTreeSet<CfId> = BTreeSet::new();
        let mut lost: BTreeMap<CfId, Vec<Arc<TableFile>>> = BTreeMap::new();
        // One that does not say whose it was may have been any column family's.
        let mut lost_of_any = false;
        let live = found.tables.iter().filter(|number| !structure.gone.contains(number));
        for number in live {
            let known = structure.tables.get(number);
            match scan::look_into(&ctx.path, &ctx.env, *number, known) {
                Ok(table) => opened.push(table),
                Err(error) => {
                    refuse_unless_damage(&error)?;
                    match known {
                        Some(known) => lost.entry(known.family).or_default().push(known.file.clone()),
                        None => lost_of_any |= !whole,
                    }
                    lose(*number, error.to_string(), was_in_use(known.map(|known| known.level)));
                }
            }
        }
        // One that was read in part says what was there once: its tables may have become others, and left.
        let gone = structure.tables.iter().filter(|(number, _)| whole && !found.tables.contains(number));
        for (number, known) in gone {
            lost.entry(known.family).or_default().push(known.file.clone());
            missing.push(format!("table {}", file_name::table(&ctx.path, *number).display()));
        }
        let unnamed = options.unknown_families.as_ref();
        let named = Named { descriptors, unknown: unnamed, options: &ctx.options, pool: &ctx.memtable_pool };
        let (families, refused) = families::resolve(&structure, &mut opened, &named)?;
        refused.into_iter().for_each(|(number, reason)| lose(number, reason, true));
        let mut scanned: BTreeMap<CfId, Vec<Scanned>> = BTreeMap::new();
        let mut surprised = BTreeSet::new();
        opened.sort_by_key(|table| table.number);
        for table in &opened {
            match scan::scan(ctx, &families[&table.family].cf, table) {
                Ok(done) => {
                    log_line!(ctx, "Table #{}: {} entries OK", table.number.0, done.entries);
                    if table.level.is_none() {
                        surprised.insert(table.family);
                    }
                    scanned.entry(table.family).or_default().push(done);
                }
                Err(error) => {
                    refuse_unless_damage(&error)?;
                    let was_in_use = was_in_use(table.level);
                    if was_in_use {
                        incomplete.insert(table.family);
                    }
                    if let Some(known) = structure.tables.get(&table.number) {
                        lost.entry(table.family).or_default().push(known.file.clone());
                    }
                    lose(table.number, error.to_string(), was_in_use);
                }
            }
        }
        incomplete.extend(lost.keys());
        if lost_of_any {
            incomplete.extend(families.keys());
        }
        let strangers = scanned.values().flatten().filter(|table| table.level.is_none()).count();
        let structure_found = match (&structure.number, &structure.damage) {
            (None, _) => StructureFound::Missing,
            (_, Some(damage)) => StructureFound::Part(damage.clone()),
            (_, None) if strangers > 0 => {
                StructureFound::Part(format!("it does not know {strangers} tables"))
            }
            _ => StructureFound::Whole,
        };
        for number in found.tables.iter().filter(|number| structure.gone.contains(number)) {
            moves.add(
                file_name::table(&ctx.path, *number),
                "obsolete: the MANIFEST says that it left",
                false,
            );
        }
        let last_seq = structure.last_sequence;
        let mut survey = records::Survey::default();
        for number in &found.wals {
            survey.read(&ctx.env, &ctx.wal_dir, *number)?;
        }
        Ok(Repair {
            ctx,
            found,
            structure,
            families,
            scanned,
            incomplete,
            lost,
            surprised,
            structure_found,
            first_in_line: survey.line_begins(),
            wal_dir: ctx.wal_dir.clone(),
            last_seq: survey.last_seq.max(last_seq),
            written_to: survey.families,
            moves,
            missing,
            unfinished: None,
        })
    }

    /// Writes the new structure and puts it in charge.
    fn act(mut self) -> Result<RepairReport> {
        if self.unfinished.is_none() && !self.moves.are_of_copies() {
            let from = self.ctx.next_file_number();
            unfinished::write(&self.ctx.path, &self.ctx.env, &self.found, from)?;
        }
        let outputs = PendingOutputs::new(self.ctx);
        let trusted = self.structure_found == StructureFound::Whole;
        let mut vanished: BTreeMap<CfId, Vec<Arc<TableFile>>> = BTreeMap::new();
        for (_, table) in
            self.structure.tables.iter().filter(|(number, _)| !self.found.tables.contains(number))
        {
            vanished.entry(table.family).or_default().push(table.file.clone());
        }
        let tables = |(id, _): (&CfId, &Family)| {
            let scanned: &[Scanned] = self.scanned.get(id).map_or(&[], Vec::as_slice);
            // A table that cannot be opened does not say whose it was.
            let incomplete = self.incomplete.contains(id);
            let lost: &[Arc<TableFile>] = self.lost.get(id).map_or(&[], Vec::as_slice);
            let vanished: &[Arc<TableFile>] = vanished.get(id).map_or(&[], Vec::as_slice);
            (*id, Tables { scanned, incomplete, lost, vanished })
        };
        let mut conversion = Conversion {
            ctx: self.ctx,
            outputs: &outputs,
            known: KnownTables {
                ctx: self.ctx,
                families: &self.families,
                found: self.families.iter().map(tables).collect(),
                made: BTreeMap::new(),
            },
            written_to: self.written_to.clone(),
            dropped: &self.structure.dropped,
            trusted,
            evidence: BTreeMap::new(),
            first_in_line: self.first_in_line,
            last_wal: self.found.wals.last().copied().unwrap_or_default(),
            new_blobs: BTreeMap::new(),
            wal_dir: self.wal_dir.clone(),
            last_seq: self.last_seq,
            kept_from: self.structure.min_log_number_to_keep,
            transactions: Transactions::default(),
            obsolete: Transactions::default(),
        };
        let needed = self.oldest_needed_wal(trusted);
        if needed == FileNumber::NONE {
            let wals = self.found.wals.iter().copied().filter(|number| *number >= self.first_in_line);
            conversion.evidence = evidence::gather(&conversion.known, &self.wal_dir, wals)?;
        }
        let mut wals: Vec<RepairedWal> = Vec::new();
        for number in &self.found.wals {
            let path = file_name::wal(&self.wal_dir, *number);
            if *number < needed {
                self.moves.add(path, "obsolete: the MANIFEST says that it is not needed", false);
                continue;
            }
            let report = conversion.convert(*number)?;
            let whole = report.damage.is_empty() && report.homeless == 0 && report.unclear == 0;
            self.moves.add(path, "converted to tables", !whole);
            wals.push(report);
        }
        let prepared_wal = conversion.write_prepared()?;
        let prepared = conversion.transactions.prepared.names().map(<[u8]>::to_vec).collect();
        let Conversion { known: KnownTables { made: new_tables, .. }, new_blobs, last_seq, .. } = conversion;
        let made = install::Made { new_tables, new_blobs, last_seq, prepared_wal };
        let installed = self.install(made, &outputs);
        if let (Err(_), Some(number)) = (&installed, prepared_wal)
            && !self.is_in_charge()
        {
            // Best effort: another repair would read it.
            let _ = self.ctx.env.fs.remove_file(&file_name::wal(&self.ctx.wal_dir, number));
        }
        let mut report = installed?;
        report.wals = wals;
        report.prepared = prepared;
        report.structure = self.structure_found;
        report.moved = self.moves.finish(&*self.ctx.env.fs)?;
        unfinished::remove(&self.ctx.path, &self.ctx.env);
        Ok(report)
    }

    /// The oldest WAL that has to be replayed.
    fn oldest_needed_wal(&self, trusted: bool) -> FileNumber {
        if !trusted || !self.incomplete.is_empty() {
            return FileNumber::NONE;
        }
        match self.structure.min_log_number_to_keep {
            FileNumber::NONE => {
                self.families.values().map(|family| family.log_number).min().unwrap_or_default()
            }
            kept => kept,
        }
    }
}

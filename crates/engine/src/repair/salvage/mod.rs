//! Copying what is whole of a damaged database into a new one. The damaged one is only read.
//!
//! ```text
//! look:   names of files -> MANIFEST as far as it decodes -> what tables say of themselves            (as a repair)
//! stage:  each table whole: copied; else its whole blocks into a table of the same number and level   `tables.rs`
//!         each blob file whole: copied; else its whole values into the tables that refer to them      `blobs.rs`
//! make:   the rest of a repair on the copies: WALs to tables, levels or an order of level 0, MANIFEST
//! ```
//! A table is never more than before: its entries keep their numbers, its range tombstones stay within its boundaries, and it keeps its
//! level. So the newest version that is left wins, wherever it was. Where something is missing an older version may win, or one that was
//! deleted: each such range of keys is in the report.
//!
//! Invariant: nothing of the damaged database is written, created or locked for writing but LOCK, and that only if it is there. The new one has
//! no CURRENT until all of it is durable, and is removed again if that fails.

mod blobs;
mod reason;
pub mod report;
mod tables;

use super::damage::refuse_unless_damage;
use super::families::{self, Named};
use super::find::Found;
use super::lost::Moves;
use super::report::StructureFound;
use super::scan::{self, Scanned};
use super::structure::Structure;
use super::under_way::Repair;
use super::{OPEN_FILES, RepairOptions, elsewhere, identity, records, refuse_given_paths};
use crate::column_family::ColumnFamilyDescriptor;
use crate::context::DbContext;
use crate::identity::write_identity;
use crate::in_force::{OptionsInForce, in_force, memtable_pool};
use crate::info_log::{InfoLog, LogLevel, log_at, log_line};
use crate::objects::DbObjects;
use outcrop_base::keys::{internal_key, user_key};
use outcrop_base::{CfId, Error, Result, SeqNum, ValueType};
use outcrop_env::{Env, FileLock};
use outcrop_manifest::{FileNumber, TableFile, file_name};
use outcrop_options::{ColumnFamilyOptions, DbOptions, file as options_file};
use outcrop_table::unique_id;
use reason::without_path;
use report::{DoubtfulRange, SalvageReport, SalvagedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tables::{Gap, Staged, Tables};

/// Told how many bytes of tables were read, and how many there are.
///
/// ```
/// use outcrop::SalvageProgress;
///
/// let progress: SalvageProgress = std::sync::Arc::new(|done, of| assert!(done <= of));
/// progress(1 << 20, 1 << 30);
/// ```
pub type SalvageProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How a database is salvaged: [`crate::DbBuilder::salvage`].
///
/// ```
/// use outcrop::SalvageOptions;
/// use std::sync::Arc;
///
/// let told = SalvageOptions {
///     progress: Some(Arc::new(|done, of| eprintln!("{done} of {of} bytes"))),
///     ..SalvageOptions::default()
/// };
/// # assert!(told.progress.is_some());
/// ```
#[derive(Clone, Default)]
pub struct SalvageOptions {
    /// Which column families there may be beside those that the builder names.
    pub repair: RepairOptions,
    /// Told after each table.
    pub progress: Option<SalvageProgress>,
}

/// See [`crate::DbBuilder::salvage`].
pub fn salvage(
    (from, to): (&Path, &Path),
    options: DbOptions,
    env: Env,
    column_families: Vec<ColumnFamilyDescriptor>,
    objects: DbObjects,
    salvage: &SalvageOptions,
) -> Result<SalvageReport> {
    let OptionsInForce { db: mut options, descriptors, .. } = in_force(from, options, column_families)?;
    refuse_given_paths("salvage", from, &descriptors)?;
    let wal_dir = options.wal_dir.take().unwrap_or_else(|| from.to_path_buf());
    check_target(&env, from, &wal_dir, to)?;
    let lock = lock_if_possible(&env, from)?;
    let found = Found::look(from, &wal_dir, &env)?;
    let structure = Structure::read(from, &env, &found);
    elsewhere::refuse("salvage", from, &env, &found, &structure)?;
    let was_there = env.fs.exists(to)?;
    env.fs.create_dir_all_durably(to)?;
    let made = make((from, to), &wal_dir, options, &env, &descriptors, objects, salvage, (found, structure));
    if made.is_err() {
        // Best effort: all of it was made here.
        for name in env.fs.list(to).unwrap_or_default() {
            let _ = env.fs.remove_file(&to.join(name));
        }
        if !was_there {
            let _ = env.fs.remove_dir(to);
        }
    }
    drop(lock);
    made
}

/// Refuses a place for the new database that has something, or is of the damaged one.
fn check_target(env: &Env, from: &Path, wal_dir: &Path, to: &Path) -> Result<()> {
    let refused = |what: &str| Err(Error::invalid_argument(format!("{}: {what}", to.display())));
    let (place, source) = (env.fs.canonical(to), env.fs.canonical(from));
    if place.starts_with(&source) || place == env.fs.canonical(wal_dir) {
        return refused("the new database has to be outside of the damaged one");
    }
    if env.fs.exists(to)? && !env.fs.list(to)?.is_empty() {
        return refused("the directory of the new database has to be empty, or not be there");
    }
    Ok(())
}

/// The lock of the damaged database, if it has one that can be taken without making it: nobody is to write beside the salvage.
fn lock_if_possible(env: &Env, from: &Path) -> Result<Option<Box<dyn FileLock>>> {
    let path = file_name::lock(from);
    if !env.fs.exists(&path)? {
        return Ok(None);
    }
    match env.fs.lock(&path) {
        Ok(lock) => Ok(Some(lock)),
        // Held by somebody, in whose way it is. Others, such as a medium that cannot be written, are in nobody's.
        Err(error) if is_held(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_held(error: &Error) -> bool {
    error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::WouldBlock)
}

/// Makes the new database.
#[allow(clippy::too_many_arguments, reason = "each is a part of what there is")]
fn make(
    (from, to): (&Path, &Path),
    wal_dir: &Path,
    options: DbOptions,
    env: &Env,
    descriptors: &[ColumnFamilyDescriptor],
    objects: DbObjects,
    salvage: &SalvageOptions,
    (found, structure): (Found, Structure),
) -> Result<SalvageReport> {
    let lock = env.fs.lock(&file_name::lock(to))?;
    let objects = objects.complete(&options, &env.clock);
    let pool = memtable_pool(descriptors, &objects);
    let info_log = InfoLog::create(env, to, &options, objects.logger.as_ref())?;
    let session_id = unique_id::session_id(env.random.next_u64(), env.random.next_u64() | 1);
    let db_id = identity(from, env, &structure);
    let next_file = structure.next_file_number.max(found.highest.next());
    let limited = DbOptions { max_open_files: OPEN_FILES, ..options.clone() };
    let identity = (db_id, session_id);
    let ctx = DbContext::new(env.clone(), to.to_path_buf(), limited, identity, info_log, pool, next_file);
    let ctx = Arc::new(ctx.with_objects(objects));
    log_line!(ctx, "Salvage: copying what is whole of {}", from.display());
    let mut report = SalvageReport::default();
    let made = stage((from, wal_dir), &ctx, descriptors, salvage, (found, structure), &mut report).and_then(
        |repair| {
            write_identity(to, env, &ctx.db_id)?;
            let families: Vec<(String, ColumnFamilyOptions)> = repair
                .families
                .values()
                .map(|family| (family.cf.name().to_string(), (**family.cf.options.load()).clone()))
                .collect();
            let number = ctx.new_file_number();
            let temporary = file_name::temp(to, number);
            let text = options_file::print(&options, &families);
            env.fs.replace(&file_name::options(to, number), &temporary, text.as_bytes())?;
            repair.act()
        },
    );
    match made {
        Ok(made) => report.made = made,
        Err(error) => {
            log_at!(ctx, LogLevel::Error, "Salvage failed: {error}");
            return Err(error);
        }
    }
    doubt_wals(wal_dir, &mut report);
    for family in report.made.families.iter().filter(|family| family.order_unclear) {
        report.doubtful.push(DoubtfulRange {
            family: Some(family.name.clone()),
            file: file_name::current(from),
            level: None,
            begin: None,
            end: None,
            reason: "the levels are not known, and tables say contrary things about which is newer"
                .to_string(),
        });
    }
    report.to_string().lines().for_each(|line| log_line!(ctx, "Salvage: {line}"));
    drop(lock);
    Ok(report)
}

/// Brings tables and blob files over; gives the repair that makes a database of them.
fn stage<'a>(
    (from, wal_dir): (&Path, &Path),
    ctx: &'a Arc<DbContext>,
    descriptors: &[ColumnFamilyDescriptor],
    salvage: &SalvageOptions,
    (mut found, structure): (Found, Structure),
    report: &mut SalvageReport,
) -> Result<Repair<'a>> {
    let whole = structure.number.is_some() && structure.damage.is_none();
    // Those that a whole MANIFEST does not know were never in use.
    let in_use = |number: &FileNumber| {
        !structure.gone.contains(number) && (!whole || structure.tables.contains_key(number))
    };
    let mut lost = Lost { from, structure: &structure, ranges: BTreeMap::new(), of_any: false };
    let mut opened = Vec::new();
    for number in found.tables.iter().copied().filter(in_use) {
        match tables::look_into(from, &ctx.env, number, &structure) {
            Ok(table) => opened.push(table),
            Err(error) => {
                refuse_unless_damage(&error)?;
                lost.add(number, None, &error.to_string(), report);
            }
        }
    }
    for number in structure.tables.keys().filter(|number| !found.tables.contains(number)) {
        let why = match whole {
            true => "it is missing",
            false => "it is missing; the MANIFEST is damaged after saying that it was there",
        };
        lost.add(*number, None, why, report);
    }
    let unnamed = salvage.repair.unknown_families.as_ref();
    let named = Named { descriptors, unknown: unnamed, options: &ctx.options, pool: &ctx.memtable_pool };
    let (families, refused) = families::resolve(&structure, &mut opened, &named)?;
    for (number, reason) in refused {
        lost.add(number, None, &reason, report);
    }
    let mut staging = Tables::new(from, ctx, &structure);
    let mut scanned: BTreeMap<CfId, Vec<Scanned>> = BTreeMap::new();
    let mut surprised = BTreeSet::new();
    opened.sort_by_key(|table| table.number);
    let sizes: Vec<u64> = opened
        .iter()
        .map(|table| ctx.env.fs.file_size(&file_name::table(from, table.number)).unwrap_or_default())
        .collect();
    let (mut done, total) = (0, sizes.iter().sum());
    for (table, size) in opened.iter().zip(sizes) {
        let cf = &families[&table.family].cf;
        let name = cf.name().to_string();
        let Staged { copy, gaps, file } = staging.stage(table, cf)?;
        for gap in &gaps {
            lost.doubt(table.number, table.family, Some(&name), gap, report);
        }
        if copy.is_none() && file.is_none() {
            continue;
        }
        match file {
            Some(file) => report.files.push(SalvagedFile { family: Some(name.clone()), ..file }),
            None => {
                report.copied += 1;
                report.copied_bytes += size;
            }
        }
        if let Some(copy) = copy {
            match scan::scan(ctx, cf, &copy) {
                Ok(read) => {
                    if copy.level.is_none() {
                        surprised.insert(copy.family);
                    }
                    scanned.entry(copy.family).or_default().push(read);
                }
                Err(error) => {
                    refuse_unless_damage(&error)?;
                    lost.add(table.number, Some(&name), &error.to_string(), report);
                    ctx.env.fs.remove_file(&file_name::table(&ctx.path, table.number))?;
                }
            }
        }
        done += size;
        if let Some(progress) = &salvage.progress {
            progress(done, total);
        }
    }
    found.blobs = staging.copy_blobs(report)?;
    ctx.env.fs.sync_dir(&ctx.path)?;
    let strangers = scanned.values().flatten().filter(|table| table.level.is_none()).count();
    let structure_found = match (&structure.number, &structure.damage) {
        (None, _) => StructureFound::Missing,
        (_, Some(damage)) => StructureFound::Part(damage.clone()),
        (_, None) if strangers > 0 => StructureFound::Part(format!("it does not know {strangers} tables")),
        _ => StructureFound::Whole,
    };
    let Lost { ranges, of_any, .. } = lost;
    let mut incomplete: BTreeSet<CfId> = ranges.keys().copied().collect();
    if of_any {
        incomplete.extend(families.keys());
    }
    let mut survey = records::Survey::default();
    for number in &found.wals {
        survey.read(&ctx.env, wal_dir, *number)?;
    }
    // They stay where they are.
    found.manifests.clear();
    found.options.clear();
    report.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Repair {
        ctx,
        found,
        families,
        scanned,
        incomplete,
        lost: ranges,
        surprised,
        structure_found,
        first_in_line: survey.line_begins(),
        wal_dir: wal_dir.to_path_buf(),
        last_seq: survey.last_seq.max(structure.last_sequence),
        structure,
        written_to: survey.families,
        moves: Moves::of_copies(ctx.path.clone()),
        missing: Vec::new(),
        unfinished: None,
    })
}

/// The parts that are lost, so far.
struct Lost<'a> {
    from: &'a Path,
    structure: &'a Structure,
    /// The ranges of keys by column family, each as the table it would be.
    ranges: BTreeMap<CfId, Vec<Arc<TableFile>>>,
    /// A table is lost that does not say whose it was.
    of_any: bool,
}

impl Lost<'_> {
    /// A table of which nothing is taken over.
    fn add(&mut self, number: FileNumber, family: Option<&str>, why: &str, report: &mut SalvageReport) {
        let known = self.structure.tables.get(&number);
        let path = file_name::table(self.from, number);
        let named = known.and_then(|known| self.structure.families.get(&known.family));
        let family = family.or(named.map(|family| family.name.as_str()));
        let level = known.map(|known| known.level);
        let reason = without_path(&path, why);
        report.files.push(SalvagedFile {
            path,
            family: family.map(String::from),
            level,
            entries: None,
            damage: vec![reason.clone()],
        });
        let gap = Gap {
            begin: known.map(|known| user_key(&known.file.smallest).to_vec()),
            end: known.map(|known| user_key(&known.file.largest).to_vec()),
            reason,
        };
        match known {
            Some(known) => self.doubt(number, known.family, family, &gap, report),
            None => {
                self.of_any = true;
                self.tell(number, family, &gap, report);
            }
        }
    }

    /// A range of keys of a table.
    fn doubt(
        &mut self,
        number: FileNumber,
        id: CfId,
        family: Option<&str>,
        gap: &Gap,
        report: &mut SalvageReport,
    ) {
        let whole = self.structure.tables.get(&number).map(|known| known.file.clone());
        let part = match (&gap.begin, &gap.end) {
            (Some(begin), Some(end)) => {
                let bound = |key: &[u8], seq| internal_key(key, seq, ValueType::Value);
                let (smallest, largest) = (bound(begin, SeqNum::MAX), bound(end, SeqNum::ZERO));
                Some(Arc::new(TableFile::new(number, 0, smallest, largest)))
            }
            _ => whole,
        };
        self.ranges.entry(id).or_default().extend(part);
        self.tell(number, family, gap, report);
    }

    fn tell(&self, number: FileNumber, family: Option<&str>, gap: &Gap, report: &mut SalvageReport) {
        report.doubtful.push(DoubtfulRange {
            family: family.map(String::from),
            file: file_name::table(self.from, number),
            level: self.structure.tables.get(&number).map(|known| known.level),
            begin: gap.begin.clone(),
            end: gap.end.clone(),
            reason: gap.reason.clone(),
        });
    }
}

/// The ranges that damage of WALs makes doubtful: all, as a record may be about any key.
fn doubt_wals(wal_dir: &Path, report: &mut SalvageReport) {
    for wal in &report.made.wals {
        let file = file_name::wal(wal_dir, FileNumber(wal.number));
        let range = |family: Option<&String>, key: Option<&Vec<u8>>, reason: &str| DoubtfulRange {
            family: family.cloned(),
            file: file.clone(),
            level: None,
            begin: key.cloned(),
            end: key.cloned(),
            reason: without_path(&file, reason),
        };
        report.doubtful.extend(wal.damage.iter().map(|damage| range(None, None, damage)));
        let unclear = "nobody can tell whether tables have this write already, or a later one";
        let keys = wal.doubtful_keys.iter().map(|(family, key)| range(Some(family), Some(key), unclear));
        report.doubtful.extend(keys);
    }
}

//! The tables of a database that is salvaged: one that is whole is copied, of another the whole blocks become a table of the same number.

use super::blobs::Blobs;
use super::reason::{is_damage, without_path};
use super::report::{SalvageReport, SalvagedFile};
use crate::column_family::ColumnFamily;
use crate::compaction::output::{OutputPlan, TakeEntry, write_as_is};
use crate::context::DbContext;
use crate::copy_file::copy_file;
use crate::repair::scan::Opened;
use crate::repair::structure::{KnownTable, Structure};
use outcrop_base::keys::{Trailer, append_internal_key, split, user_key};
use outcrop_base::{
    CfId, Comparator, Error, Fragment, Fragments, RangeTombstone, Result, ValueType, wide_columns,
};
use outcrop_env::{Access, Env, OpenRead};
use outcrop_manifest::{FileNumber, TableFile, file_name};
use outcrop_options::derive;
use outcrop_table::{DamagedTable, ExpectedTable, TablePart};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Keys of a table whose entries are lost, or some of them: both ends are among them, `None` is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub begin: Option<Vec<u8>>,
    pub end: Option<Vec<u8>>,
    pub reason: String,
}

/// A table that was brought over.
pub struct Staged {
    /// The table as it is now; `None`: nothing of it is left.
    pub copy: Option<Opened>,
    /// The parts that are lost.
    pub gaps: Vec<Gap>,
    /// For the report, if it is not a copy of the whole.
    pub file: Option<SalvagedFile>,
}

/// Damage of one table that the report describes at most.
const DESCRIBED: usize = 8;

/// Tables on their way.
pub struct Tables<'a> {
    from: &'a Path,
    ctx: &'a Arc<DbContext>,
    structure: &'a Structure,
    blobs: Blobs,
}

/// The table as far as it can be read.
fn open(
    from: &Path,
    env: &Env,
    number: FileNumber,
    known: Option<&KnownTable>,
    comparator: Comparator,
) -> Result<DamagedTable> {
    let read = OpenRead { access: Access::Sequential, ..OpenRead::default() };
    let file = env.fs.open_read(&file_name::table(from, number), read)?;
    let expected = ExpectedTable {
        seqs: known.map(|known| (known.file.smallest_seq, known.file.largest_seq)),
        tail_size: known.map_or(0, |known| known.file.tail_size),
    };
    let table = DamagedTable::open(file, comparator, expected)?;
    let named = known.and_then(|known| known.file.unique_id);
    match (table.unique_id(), named) {
        (Some(is), Some(named)) if is != named => {
            Err(Error::corruption("it is another file than the MANIFEST names"))
        }
        _ => Ok(table),
    }
}

/// The facts that a table says of itself; the MANIFEST, where it does not any more.
///
/// # Errors
/// Why nothing of it can be read.
pub fn look_into(from: &Path, env: &Env, number: FileNumber, structure: &Structure) -> Result<Opened> {
    let known = structure.tables.get(&number);
    let table = open(from, env, number, known, Comparator::Bytewise)?;
    let of_family = known.and_then(|known| structure.families.get(&known.family));
    let properties = table.properties();
    let unknown = || Error::corruption(format!("nothing says whose it is; {}", table.damage().join("; ")));
    let (family, family_name) = match (known, properties) {
        (Some(known), _) => (known.family, None),
        (None, None) => return Err(unknown()),
        (None, Some(properties)) if properties.column_family_id == u64::from(CfId::UNKNOWN.0) => {
            (CfId::DEFAULT, None)
        }
        (None, Some(properties)) => {
            let id = u32::try_from(properties.column_family_id).map_err(|_| unknown())?;
            (CfId(id), Some(properties.column_family_name.clone()))
        }
    };
    let of_family = of_family.and_then(|family| family.comparator.clone());
    let comparator = properties.map(|properties| properties.comparator_name.clone()).or(of_family);
    Ok(Opened {
        number,
        family,
        family_name,
        comparator: comparator.unwrap_or_else(|| Comparator::Bytewise.name().to_string()),
        level: known.map(|known| known.level),
        known: known.map(|known| known.file.clone()),
    })
}

impl<'a> Tables<'a> {
    /// Of the database in `from`, into that of `ctx`.
    pub fn new(from: &'a Path, ctx: &'a Arc<DbContext>, structure: &'a Structure) -> Tables<'a> {
        Tables { from, ctx, structure, blobs: Blobs::default() }
    }

    /// Brings one table over.
    ///
    /// # Errors
    /// Of the file systems.
    pub fn stage(&mut self, opened: &Opened, cf: &ColumnFamily) -> Result<Staged> {
        let path = file_name::table(self.from, opened.number);
        let known = self.structure.tables.get(&opened.number);
        let opening = open(self.from, &self.ctx.env, opened.number, known, cf.comparator.clone());
        let bounds = Bounds::of(known);
        let table = match opening {
            Ok(table) => table,
            Err(error) if is_damage(&error) => {
                let reason = without_path(&path, &error.to_string());
                return Ok(lost(&path, opened, vec![bounds.gap(reason)]));
            }
            Err(error) => return Err(error),
        };
        let tombstones = fragments(table.range_tombstones(), &cf.comparator, known);
        let mut pass = Pass::new(&bounds);
        let source = (self.from, &self.ctx.env);
        let blobs = &mut self.blobs;
        table.each_part(|part| pass.take(part, &path, (opened.family, &cf.comparator), source, blobs))?;
        let mut gaps = pass.finish();
        if table.lost_tombstones() {
            gaps.push(bounds.gap("its range tombstones cannot be read".to_string()));
        }
        let said = table.properties().map_or(0, |properties| properties.num_entries);
        let found = pass.entries + table.range_tombstones().len() as u64;
        if gaps.is_empty() && found < said {
            gaps.push(bounds.gap(format!("it has {found} entries and says {said}")));
        }
        if gaps.is_empty() && table.damage().is_empty() && pass.moved == 0 {
            let len = self.ctx.env.fs.file_size(&path)?;
            let target = file_name::table(&self.ctx.path, opened.number);
            copy_file(&*self.ctx.env.fs, &path, &target, len)?;
            return Ok(Staged { copy: Some(as_opened(opened, opened.known.clone())), gaps, file: None });
        }
        let mut damage: Vec<String> =
            table.damage().iter().map(|damage| without_path(&path, damage)).collect();
        damage.extend(gaps.iter().map(|gap| gap.reason.clone()));
        if pass.moved > 0 {
            damage.push(format!("{} of its values are in damaged blob files", pass.moved));
        }
        let more = damage.len().saturating_sub(DESCRIBED);
        damage.truncate(DESCRIBED);
        if more > 0 {
            damage.push(format!("and {more} others"));
        }
        if pass.kept == 0 && tombstones.is_empty() {
            let file = SalvagedFile { damage, ..file(&path, opened, None) };
            return Ok(Staged { copy: None, gaps, file: Some(file) });
        }
        let mut kept = tombstones.len() as u64;
        let written = self.write(opened, cf, &table, tombstones, &mut kept)?;
        let file = SalvagedFile { damage, ..file(&path, opened, Some(kept)) };
        Ok(Staged { copy: Some(as_opened(opened, Some(Arc::new(written)))), gaps, file: Some(file) })
    }

    /// Writes the whole entries of a table into one of the same number.
    fn write(
        &mut self,
        opened: &Opened,
        cf: &ColumnFamily,
        table: &DamagedTable,
        tombstones: Vec<Fragment>,
        kept: &mut u64,
    ) -> Result<TableFile> {
        let known = opened.known.as_deref();
        let options = cf.options.load();
        let level = opened.level.unwrap_or(0);
        let now = self.ctx.env.clock.now_micros() / 1_000_000;
        let plan = OutputPlan {
            epoch: known.map_or(0, |known| known.epoch),
            compression: derive::compression_for_level(&options, level as usize, false),
            compression_opts: options.compression_opts.clone(),
            table: options.table.clone(),
            prefix_extractor: options.prefix_extractor.clone(),
            level: i32::try_from(level).unwrap_or(0),
            path_id: 0,
            dir: None,
            blobs: None,
            version: None,
            paranoid_checks: false,
            omit_filter: false,
            oldest_ancestor_time: known.map_or(now, |known| known.oldest_ancestor_time),
            target_file_size: u64::MAX,
            grandparents: None,
            partitioner: None,
            canceled: None,
            write_times: None,
            job_id: 0,
        };
        let (source, blobs) = ((self.from, &self.ctx.env), &mut self.blobs);
        let of = (opened.family, &cf.comparator);
        let fill = &mut |take: TakeEntry<'_>| {
            let mut moved_key = Vec::new();
            table.each_part(|part| {
                let TablePart::Whole(entries) = part else { return Ok(()) };
                for (key, value) in entries.iter() {
                    match here(source, of, blobs, key, value) {
                        Ok(Here::AsIs) => take(key, value)?,
                        Ok(Here::Moved(kind, value)) => {
                            let (user_key, trailer) = split(key);
                            moved_key.clear();
                            append_internal_key(&mut moved_key, user_key, Trailer::new(trailer.seq(), kind));
                            take(&moved_key, &value)?;
                        }
                        Err(error) if is_damage(&error) => continue,
                        Err(error) => return Err(error),
                    }
                    *kept += 1;
                }
                Ok(())
            })
        };
        let mut written = write_as_is(self.ctx, cf, &plan, opened.number, tombstones, fill)?;
        if let Some(known) = known {
            // It may have had others: the least that is known of their numbers stays true.
            written.meta.smallest_seq = written.smallest_seq.min(known.smallest_seq);
            written.meta.largest_seq = written.largest_seq.max(known.largest_seq);
        }
        Ok(written)
    }

    /// Copies the blob files that are whole; gives their numbers.
    ///
    /// # Errors
    /// Of the file systems.
    pub fn copy_blobs(&self, report: &mut SalvageReport) -> Result<BTreeSet<FileNumber>> {
        let copied = self.blobs.copy((self.from, &self.ctx.path), &self.ctx.env, report)?;
        Ok(copied.into_iter().collect())
    }
}

fn as_opened(opened: &Opened, known: Option<Arc<TableFile>>) -> Opened {
    Opened {
        number: opened.number,
        family: opened.family,
        family_name: opened.family_name.clone(),
        comparator: opened.comparator.clone(),
        level: opened.level,
        known,
    }
}

fn file(path: &Path, opened: &Opened, entries: Option<u64>) -> SalvagedFile {
    SalvagedFile { path: path.to_path_buf(), family: None, level: opened.level, entries, damage: Vec::new() }
}

fn lost(path: &Path, opened: &Opened, gaps: Vec<Gap>) -> Staged {
    let damage = gaps.iter().map(|gap| gap.reason.clone()).collect();
    Staged { copy: None, gaps, file: Some(SalvagedFile { damage, ..file(path, opened, None) }) }
}

/// The range tombstones of a table, within its boundaries: outside they are other tables' business.
fn fragments(
    tombstones: &[RangeTombstone],
    comparator: &Comparator,
    known: Option<&KnownTable>,
) -> Vec<Fragment> {
    let fragments = match known {
        Some(known) => Fragments::clipped(tombstones, comparator, &known.file.smallest, &known.file.largest),
        None => Fragments::new(tombstones, comparator),
    };
    fragments.iter().cloned().collect()
}

/// The first and the last user key of a table, as the MANIFEST has them.
struct Bounds {
    smallest: Option<Vec<u8>>,
    largest: Option<Vec<u8>>,
}

impl Bounds {
    fn of(known: Option<&KnownTable>) -> Bounds {
        let key = |bound: fn(&TableFile) -> &[u8]| Some(user_key(bound(&known?.file)).to_vec());
        Bounds { smallest: key(|file| &file.smallest), largest: key(|file| &file.largest) }
    }

    fn gap(&self, reason: String) -> Gap {
        Gap { begin: self.smallest.clone(), end: self.largest.clone(), reason }
    }
}

/// Where the value of an entry is in the new database.
enum Here<'v> {
    /// Where it was.
    AsIs,
    /// In the table, with this type.
    Moved(ValueType, Cow<'v, [u8]>),
}

/// An entry as it is written; damage if its value cannot be read.
fn here<'v>(
    source: (&Path, &Env),
    of: (CfId, &Comparator),
    blobs: &mut Blobs,
    key: &[u8],
    value: &'v [u8],
) -> Result<Here<'v>> {
    let (user_key, trailer) = split(key);
    match trailer.value_type() {
        Some(ValueType::BlobIndex) if !blobs.is_whole(source, of.0, value)? => {
            let value = blobs.fetch(source, of, user_key, value)?;
            Ok(Here::Moved(ValueType::Value, Cow::Owned(value)))
        }
        Some(ValueType::WideColumnEntity) if wide_columns::may_have_blobs(value) => {
            let mut stays = true;
            wide_columns::each_blob(value, |index| {
                stays &= blobs.is_whole(source, of.0, index)?;
                Ok(())
            })?;
            if stays {
                return Ok(Here::AsIs);
            }
            let entity = wide_columns::with_values(value, |index| blobs.fetch(source, of, user_key, index))?;
            Ok(Here::Moved(ValueType::WideColumnEntity, Cow::Owned(entity.into_owned())))
        }
        _ => Ok(Here::AsIs),
    }
}

/// Looking through a table once, for what of it is whole.
struct Pass<'b> {
    bounds: &'b Bounds,
    /// Entries that were read.
    entries: u64,
    /// Entries that are kept.
    kept: u64,
    /// Of them, those whose value leaves its blob file.
    moved: u64,
    last: Option<Vec<u8>>,
    gaps: Vec<Gap>,
    /// The last of them goes on to the next key that is there.
    is_open: bool,
}

impl Pass<'_> {
    fn new(bounds: &Bounds) -> Pass<'_> {
        Pass { bounds, entries: 0, kept: 0, moved: 0, last: None, gaps: Vec::new(), is_open: false }
    }

    fn take(
        &mut self,
        part: TablePart<'_>,
        path: &Path,
        of: (CfId, &Comparator),
        source: (&Path, &Env),
        blobs: &mut Blobs,
    ) -> Result<()> {
        let entries = match part {
            TablePart::Whole(entries) => entries,
            TablePart::Damaged { offset, bytes, until, reason } => {
                let reason = without_path(path, &reason);
                let reason = match reason.starts_with("offset ") {
                    true => reason,
                    false => format!("offset {offset}, {bytes} bytes: {reason}"),
                };
                self.damaged(until, reason);
                return Ok(());
            }
        };
        for (key, value) in entries.iter() {
            let user_key = split(key).0;
            if std::mem::take(&mut self.is_open)
                && let Some(gap) = self.gaps.last_mut()
            {
                gap.end = Some(user_key.to_vec());
            }
            self.entries += 1;
            match here(source, of, blobs, key, value) {
                Ok(as_is) => {
                    self.kept += 1;
                    self.moved += u64::from(matches!(as_is, Here::Moved(..)));
                }
                Err(error) if is_damage(&error) => {
                    let reason = without_path(path, &error.to_string());
                    let (begin, end) = (Some(user_key.to_vec()), Some(user_key.to_vec()));
                    self.gaps.push(Gap { begin, end, reason });
                }
                Err(error) => return Err(error),
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(user_key);
        }
        Ok(())
    }

    /// A part is damaged whose keys are after the last, and up to `until`.
    fn damaged(&mut self, until: Option<&[u8]>, reason: String) {
        if !self.is_open {
            let begin = self.last.clone().or_else(|| self.bounds.smallest.clone());
            self.gaps.push(Gap { begin, end: None, reason });
            self.is_open = true;
        }
        if let (Some(until), Some(gap)) = (until, self.gaps.last_mut()) {
            // It may be all of the block, of which the next begins with the same key.
            gap.end = Some(until.to_vec());
        }
    }

    fn finish(&mut self) -> Vec<Gap> {
        if std::mem::take(&mut self.is_open)
            && let Some(gap) = self.gaps.last_mut()
        {
            gap.end.clone_from(&self.bounds.largest);
        }
        std::mem::take(&mut self.gaps)
    }
}

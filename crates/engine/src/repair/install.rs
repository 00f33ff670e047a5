//! The new structure: levels or an order of level 0, blob files and what of them is garbage, and the MANIFEST that says so.

use super::damage::refuse_unless_damage;
use super::families::Family;
use super::find::unreadable_options;
use super::order;
use super::report::{RepairReport, RepairedFamily};
use super::scan::Scanned;
use super::under_way::Repair;
use crate::info_log::log_line;
use crate::pending_outputs::PendingOutputs;
use outcrop_base::{CfId, Result, SeqNum};
use outcrop_env::{Access, OpenRead};
use outcrop_manifest::{
    BlobFile, FileNumber, Garbage, ManifestWriter, TableFile, TableMeta, Version, VersionBuilder,
    VersionEdit, file_name,
};
use outcrop_table::blob::{BlobReader, file_len};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The files that were made of the WALs.
pub struct Made {
    /// New tables by column family, oldest first, with their entries.
    pub new_tables: BTreeMap<CfId, Vec<(Arc<TableFile>, u64)>>,
    /// New blob files by column family.
    pub new_blobs: BTreeMap<CfId, Vec<Arc<BlobFile>>>,
    /// The highest number in WALs and MANIFEST.
    pub last_seq: SeqNum,
    /// The WAL of what is prepared.
    pub prepared_wal: Option<FileNumber>,
}

/// Blob files that tables refer to.
#[derive(Default)]
struct Blobs {
    /// By number: the file, and what of it is garbage.
    files: BTreeMap<FileNumber, (Arc<BlobFile>, Garbage)>,
    /// Values whose file is gone.
    lost: u64,
}

/// A level and a table in it.
type Placed = (u32, Arc<TableFile>);

impl Repair<'_> {
    /// Puts a new MANIFEST in charge. The files that it replaces have a second name in `lost/` then.
    pub fn install(&mut self, made: Made, outputs: &PendingOutputs) -> Result<RepairReport> {
        let mut report = RepairReport { last_sequence: self.last_seq(&made), ..RepairReport::default() };
        let log_number = made.prepared_wal.unwrap_or_else(|| self.ctx.new_file_number());
        let mut edits = vec![VersionEdit {
            db_id: self.ctx.options.write_dbid_to_manifest.then(|| self.ctx.db_id.clone()),
            ..VersionEdit::default()
        }];
        let mut used = BTreeSet::new();
        let ids: Vec<CfId> = self.families.keys().copied().collect();
        for id in ids {
            let (edit, family) = self.family(id, &made, log_number, &mut used, &mut report)?;
            edits.extend(edit);
            report.families.push(family);
        }
        for number in self.found.blobs.iter().filter(|number| !used.contains(number)) {
            self.moves.add(
                file_name::blob(&self.ctx.path, *number),
                "obsolete: no table refers to it",
                false,
            );
        }
        let manifest = self.ctx.new_file_number();
        let highest = ids_end(&self.families, self.structure.max_column_family, &self.written_to);
        edits.push(VersionEdit {
            next_file_number: Some(self.ctx.next_file_number()),
            last_sequence: Some(report.last_sequence),
            max_column_family: Some(highest),
            min_log_number_to_keep: Some(log_number),
            ..VersionEdit::default()
        });
        for number in &self.found.manifests {
            self.moves.add(file_name::manifest(&self.ctx.path, *number), "replaced by a new one", false);
        }
        for (path, why) in unreadable_options(&self.ctx.path, &self.ctx.env, &self.found) {
            self.moves.add(path, why, false);
        }
        let fs = &*self.ctx.env.fs;
        self.moves.link(fs)?;
        let in_charge = outputs
            .install_or_remove(|| ManifestWriter::create(fs, &self.ctx.path, manifest, &edits).map(drop));
        if in_charge.is_err() && !self.is_in_charge() {
            self.moves.unlink(fs);
        }
        in_charge?;
        log_line!(self.ctx, "Repair: {} is in charge", file_name::manifest_name(manifest));
        report.missing.append(&mut self.missing);
        Ok(report)
    }

    fn last_seq(&self, made: &Made) -> SeqNum {
        let tables = self.scanned.values().flatten().map(|table| table.file.largest_seq);
        tables.max().unwrap_or_default().max(made.last_seq)
    }

    /// The edits that make one column family.
    fn family(
        &mut self,
        id: CfId,
        made: &Made,
        log_number: FileNumber,
        used: &mut BTreeSet<FileNumber>,
        report: &mut RepairReport,
    ) -> Result<(Vec<VersionEdit>, RepairedFamily)> {
        let blobs = self.blobs(id, made, report)?;
        used.extend(blobs.files.keys());
        report.blob_values_lost += blobs.lost;
        let (levels, levels_kept, order_unclear) = self.levels(id, made, &blobs)?;
        let family = &self.families[&id];
        let mut create = VersionEdit::for_column_family(id);
        create.column_family_add = (id != CfId::DEFAULT).then(|| family.cf.name().to_string());
        create.comparator = Some(family.cf.comparator.name().to_string());
        create.persist_timestamps = Some(true);
        let mut contents = VersionEdit::for_column_family(id);
        contents.log_number = Some(log_number);
        contents.new_blob_files = blobs.files.values().map(|(file, _)| file.clone()).collect();
        let garbage = blobs.files.iter().filter(|(_, (_, garbage))| garbage.count > 0);
        contents.blob_garbage = garbage.map(|(number, (_, garbage))| (*number, *garbage)).collect();
        let mut repaired = RepairedFamily {
            id,
            name: family.cf.name().to_string(),
            tables: levels.len(),
            levels_kept,
            order_unclear,
            ..RepairedFamily::default()
        };
        repaired.bytes = levels.iter().map(|(_, file)| file.size).sum();
        let old = self.scanned.get(&id).into_iter().flatten().map(|table| table.entries);
        let new = made.new_tables.get(&id).into_iter().flatten().map(|(_, entries)| *entries);
        repaired.entries = old.chain(new).sum();
        contents.new_files = levels;
        Ok((vec![create, contents], repaired))
    }

    /// The tables of a column family with their levels and epochs, whether these levels are those they had, and whether the order in
    /// level 0 is unclear.
    fn levels(&self, id: CfId, made: &Made, blobs: &Blobs) -> Result<(Vec<Placed>, bool, bool)> {
        let family = &self.families[&id];
        let old: &[Scanned] = self.scanned.get(&id).map_or(&[], Vec::as_slice);
        let new = made.new_tables.get(&id).into_iter().flatten().map(|(file, _)| file);
        let options = family.cf.options.load();
        let mut epoch = u64::from(options.allow_ingest_behind);
        let oldest_blob = |file: &TableFile| {
            let refers = old.iter().find(|table| table.file.number == file.number);
            let named = refers.map(|table| table.blobs.keys().copied().collect::<Vec<_>>());
            let named = named.unwrap_or_else(|| file.oldest_blob_file.into_iter().collect());
            named.into_iter().filter(|number| blobs.files.contains_key(number)).min()
        };
        let as_is = |file: &TableFile, epoch: u64| {
            let meta = TableMeta { epoch, oldest_blob_file: oldest_blob(file), ..file.meta.clone() };
            Arc::new(TableFile::from(meta))
        };
        if let Some(kept) = self.kept_levels(id, &options) {
            let mut files: Vec<(u32, Arc<TableFile>)> =
                kept.iter().map(|(level, file)| (*level, as_is(file, file.epoch))).collect();
            epoch = files.iter().map(|(_, file)| file.epoch).max().unwrap_or(0).max(epoch);
            for file in new.clone() {
                epoch += 1;
                files.push((0, as_is(file, epoch)));
            }
            let mut edit = VersionEdit::for_column_family(id);
            edit.new_files.clone_from(&files);
            edit.new_blob_files = blobs.files.values().map(|(file, _)| file.clone()).collect();
            let levels = options.num_levels as usize;
            let mut builder = VersionBuilder::new(&Version::empty(levels), &family.cf.comparator, levels);
            if builder.apply(&edit).and_then(|()| builder.build(true)).is_ok() {
                return Ok((files, true, false));
            }
            epoch = u64::from(options.allow_ingest_behind);
        }
        let files: Vec<Arc<TableFile>> = old.iter().map(|table| table.file.clone()).collect();
        let ordered = order::newest_first(self.ctx, &family.cf, &files)?;
        let mut placed = Vec::new();
        for file in ordered.files.iter().rev().chain(new) {
            epoch += 1;
            placed.push((0, as_is(file, epoch)));
        }
        Ok((placed, false, ordered.unclear))
    }

    /// The tables on the levels that the MANIFEST gives them, if it knows them all.
    fn kept_levels(
        &self,
        id: CfId,
        options: &outcrop_options::ColumnFamilyOptions,
    ) -> Option<Vec<(u32, Arc<TableFile>)>> {
        let old = self.scanned.get(&id).map_or(&[][..], Vec::as_slice);
        if !self.structure.families.contains_key(&id) || self.surprised.contains(&id) {
            return None;
        }
        let fits = |level: u32| i64::from(level) < i64::from(options.num_levels);
        let kept =
            old.iter().map(|table| Some((table.level.filter(|level| fits(*level))?, table.file.clone())));
        let kept: Vec<_> = kept.collect::<Option<_>>()?;
        // Tables of very old versions have none.
        kept.iter().all(|(_, file)| file.epoch != 0).then_some(kept)
    }

    /// Opens the blob files that tables of a column family refer to.
    fn blobs(&mut self, id: CfId, made: &Made, report: &mut RepairReport) -> Result<Blobs> {
        let mut referred: BTreeMap<FileNumber, Garbage> = BTreeMap::new();
        for table in self.scanned.get(&id).into_iter().flatten() {
            for (number, refers) in &table.blobs {
                let sum = referred.entry(*number).or_default();
                sum.count += refers.count;
                sum.bytes = sum.bytes.saturating_add(refers.bytes);
            }
        }
        let mut blobs = Blobs::default();
        for file in made.new_blobs.get(&id).into_iter().flatten() {
            blobs.files.insert(file.number, (file.clone(), Garbage::default()));
        }
        for (number, refers) in referred {
            let path = file_name::blob(&self.ctx.path, number);
            if !self.found.blobs.contains(&number) {
                report.missing.push(format!("blob file {}", path.display()));
                blobs.lost += refers.count;
                continue;
            }
            let read = OpenRead { access: Access::Random, ..OpenRead::default() };
            let opened = self.ctx.env.fs.open_read(&path, read).and_then(|file| BlobReader::open(file, id.0));
            match opened {
                Ok(reader) => {
                    let bytes = reader.file().size().saturating_sub(file_len(0));
                    // Tables that were not removed yet refer to a value twice: compactions count it as garbage twice.
                    let total =
                        Garbage { count: reader.count().max(refers.count), bytes: bytes.max(refers.bytes) };
                    let garbage =
                        Garbage { count: total.count - refers.count, bytes: total.bytes - refers.bytes };
                    let file = BlobFile {
                        number,
                        total_count: total.count,
                        total_bytes: total.bytes,
                        ..BlobFile::default()
                    };
                    blobs.files.insert(number, (Arc::new(file), garbage));
                }
                Err(error) => {
                    refuse_unless_damage(&error)?;
                    self.moves.add(path, error.to_string(), true);
                    // Not to be moved a second time, as one that nothing refers to.
                    self.found.blobs.remove(&number);
                    blobs.lost += refers.count;
                }
            }
        }
        Ok(blobs)
    }
}

/// The highest id of a column family that was ever given out, as far as is known.
fn ids_end(families: &BTreeMap<CfId, Family>, known: CfId, written_to: &BTreeSet<CfId>) -> CfId {
    let last = families.keys().last().copied().unwrap_or_default();
    let written = written_to.last().copied().unwrap_or_default();
    // A WAL's record can name any id; one that leaves no room for others is none that was given out.
    let written = if written.0 < u32::MAX / 2 { written } else { CfId::DEFAULT };
    last.max(known).max(written)
}

//! Creating and dropping column families, changing their options, and recovering from background errors:
//! the changes that exclude writers.

use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::db::{DbInner, Registry, refuse_if_dropped};
use crate::info_log::log_line;
use crate::open::{
    add_default_cache, check_column_family_options, resolve_objects, sanitize_column_family, snapshot_edits,
};
use crate::recovery::new_column_family_state;
use crate::state::LiveWal;
use crate::versions::Manifest;
use crate::write::wal::Wal;
use crate::write::{Target, WriteCore};
use outcrop_base::{Error, Result, SeqNum};
use outcrop_manifest::{FileNumber, ManifestWriter, Version, VersionEdit, file_name};
use outcrop_options::{ColumnFamilyOptions, file as options_file};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl DbInner {
    /// See [`crate::Db::create_column_family`].
    pub(crate) fn create_column_family(
        &self,
        descriptor: &ColumnFamilyDescriptor,
    ) -> Result<ColumnFamilyHandle> {
        if descriptor.name.is_empty() {
            return Err(Error::invalid_argument("a column family needs a name"));
        }
        let mut descriptor = descriptor.clone();
        check_column_family_options(&descriptor, &self.ctx.options)?;
        add_default_cache(&mut descriptor);
        resolve_objects(&mut descriptor)?;
        for correction in sanitize_column_family(&mut descriptor, &self.ctx.options) {
            log_line!(self.ctx, "{correction}");
        }
        // HOLDS write_core: no write may see the column family before it is complete.
        let mut core = self.write_core.lock();
        let id = {
            let state = self.state.lock();
            if let Some(error) = &state.background_error {
                return Err(error.clone());
            }
            if state.column_families.values().any(|cf| cf.cf.name() == descriptor.name) {
                return Err(Error::invalid_argument(format!(
                    "column family {} already exists",
                    descriptor.name
                )));
            }
            state.max_column_family + 1
        };
        let wal = core.wal.number();
        let version = Arc::new(Version::empty(descriptor.options.num_levels as usize));
        let cf_state = {
            let first_epoch = 1 + u64::from(descriptor.options.allow_ingest_behind);
            new_column_family_state(id, &descriptor, version, wal, first_epoch, &self.ctx.memtable_pool)
        };
        let handle = cf_state.cf.clone();
        let target = Target::new(handle.clone(), cf_state.memtable.clone());
        let mut edit = VersionEdit::for_column_family(id);
        edit.column_family_add = Some(descriptor.name.clone());
        edit.comparator = Some(descriptor.parts.comparator.name().to_string());
        edit.persist_timestamps = Some(true);
        edit.log_number = Some(wal);
        edit.max_column_family = Some(id);
        self.log_and_apply(vec![edit], |state| {
            state.max_column_family = id;
            state.column_families.insert(id, cf_state);
        })?;
        core.targets.push(target);
        self.change_registry(|registry| {
            registry.insert(id, handle.clone());
        });
        drop(core);
        handle.block_cache.iter().for_each(|cache| self.background.keep(cache));
        log_line!(self.ctx, "created column family {} ({id})", descriptor.name);
        self.note_options();
        Ok(handle)
    }

    /// See [`crate::Db::drop_column_family`].
    pub(crate) fn drop_column_family(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        if cf.id() == 0 {
            return Err(Error::invalid_argument("the default column family cannot be dropped"));
        }
        let mut core = self.write_core.lock();
        if cf.is_dropped() {
            return Err(Error::invalid_argument(format!("column family {} is dropped already", cf.name())));
        }
        let mut edit = VersionEdit::for_column_family(cf.id());
        edit.column_family_drop = true;
        self.log_and_apply(vec![edit], |state| {
            if let Some(dropped) = state.column_families.remove(&cf.id()) {
                state.obsolete_tables.extend(dropped.version.files().map(|(_, file)| file.clone()));
                let blobs = dropped.version.blob_files.values().map(|blob| blob.file.clone());
                state.obsolete_blobs.extend(blobs);
                state.purge_wanted = true;
            }
        })?;
        cf.mark_dropped();
        core.targets.remove(cf.id());
        self.change_registry(|registry| {
            registry.remove(&cf.id());
        });
        drop(core);
        log_line!(self.ctx, "dropped column family {} ({})", cf.name(), cf.id());
        self.purge_obsolete_files();
        self.note_options();
        Ok(())
    }

    /// Writes an OPTIONS file after a change that the MANIFEST has made durable. An error is not the caller's: the change
    /// stands. Until the file is written, which upkeep and closing try again, people's tools read of the column families
    /// as they were.
    pub(crate) fn note_options(&self) {
        let written = self.write_options_file();
        // Relaxed: nothing is published through it.
        self.options_outdated.store(written.is_err(), Ordering::Relaxed);
        if let Err(error) = written {
            log_line!(self.ctx, "the OPTIONS file is out of date: {error}");
        }
    }

    /// Writes the OPTIONS file that could not be written before.
    pub(crate) fn note_options_if_outdated(&self) {
        // Relaxed: as in `note_options`.
        if self.options_outdated.load(Ordering::Relaxed) {
            self.note_options();
        }
    }

    fn change_registry(&self, change: impl FnOnce(&mut Registry)) {
        let mut registry = (**self.registry.load()).clone();
        change(&mut registry);
        self.registry.store(Arc::new(registry));
    }

    /// See [`crate::Db::set_options`].
    pub(crate) fn set_options(&self, cf: &ColumnFamilyHandle, options: &[(&str, &str)]) -> Result<()> {
        self.refuse_if_read_only()?;
        refuse_if_dropped(cf)?;
        let mut changed = (**cf.options.load()).clone();
        for (name, value) in options {
            options_file::set_mutable(&mut changed, name, value)?;
        }
        let mut descriptor = ColumnFamilyDescriptor {
            name: cf.name().to_string(),
            options: changed,
            ..ColumnFamilyDescriptor::default()
        };
        descriptor.parts.compaction_filter.clone_from(&cf.compaction_filter);
        descriptor.parts.compaction_filter_factory.clone_from(&cf.compaction_filter_factory);
        check_column_family_options(&descriptor, &self.ctx.options)?;
        for correction in sanitize_column_family(&mut descriptor, &self.ctx.options) {
            log_line!(self.ctx, "{correction}");
        }
        cf.options.store(Arc::new(descriptor.options));
        {
            let mut state = self.state.lock();
            if let Some(cf) = state.column_families.get_mut(&cf.id()) {
                cf.refresh_debt();
            }
            self.stall.update(&state);
            self.background.wake(&mut state);
            self.state_changed.notify_all();
        }
        self.write_options_file()
    }

    /// Writes a new OPTIONS file and removes all but the newest two.
    pub(crate) fn write_options_file(&self) -> Result<()> {
        self.write_options_to(&self.ctx.path)?;
        self.remove_old_options_files()
    }

    /// Writes an OPTIONS file into `dir`.
    pub(crate) fn write_options_to(&self, dir: &Path) -> Result<()> {
        let families: Vec<(String, ColumnFamilyOptions)> = self
            .registry
            .load()
            .values()
            .map(|cf| (cf.name().to_string(), (**cf.options.load()).clone()))
            .collect();
        let text = options_file::print(&self.ctx.options, &families);
        let number = FileNumber(self.ctx.new_file_number());
        let path = file_name::options(dir, number);
        let temporary = dir.join(format!("OPTIONS-{:06}.dbtmp", number.0));
        self.ctx.env.fs.replace(&path, &temporary, text.as_bytes())
    }

    fn remove_old_options_files(&self) -> Result<()> {
        let names = self.ctx.env.fs.list(&self.ctx.path)?;
        let mut numbers: Vec<FileNumber> = names
            .iter()
            .filter_map(|name| match file_name::parse(name) {
                Some(file_name::FileKind::Options(number)) => Some(number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        numbers.truncate(numbers.len().saturating_sub(2));
        for number in numbers {
            self.ctx.env.fs.remove_file(&file_name::options(&self.ctx.path, number))?;
        }
        Ok(())
    }

    /// Replaces the MANIFEST by a fresh one that describes the current state: after a failed write its tail is
    /// unknown.
    pub(crate) fn restart_manifest(&self) -> Result<()> {
        // HOLDS manifest across IO: as in `log_and_apply`.
        let mut manifest = self.manifest.lock();
        self.replace_manifest(&mut manifest)
    }

    /// Writes the present state as a new MANIFEST and goes on with that one.
    pub(crate) fn replace_manifest(&self, manifest: &mut Manifest) -> Result<()> {
        let number = FileNumber(self.ctx.new_file_number());
        let mut snapshot = {
            let state = self.state.lock();
            let last_seq = SeqNum(self.visible_seq.load(Ordering::Acquire)).max(manifest.last_sequence);
            let min_wal = state.min_wal_needed(self.current_wal_number());
            snapshot_edits(&self.ctx, &state, last_seq, min_wal)
        };
        snapshot.extend(manifest.wals.snapshot());
        let created = ManifestWriter::create(&*self.ctx.env.fs, &self.ctx.path, number, &snapshot);
        let old = manifest.writer.number();
        manifest.writer = match created {
            Ok(writer) => writer,
            Err(error) => {
                // CURRENT may name either: an edit in one would be missing from the other.
                manifest.failed = Some(error.clone());
                return Err(self.fail_writes(error));
            }
        };
        manifest.failed = None;
        // Best effort: what stays behind is found by the scan at the next open.
        let _ = self.ctx.env.fs.remove_file(&file_name::manifest(&self.ctx.path, old));
        Ok(())
    }

    /// Starts a new WAL in place of one whose tail is unknown. A record that failed may still be in the old
    /// file: its sequence numbers are not used again, and the caller flushes everything and then calls
    /// [`DbInner::leave_old_wals`], so that the old file is never replayed.
    pub(crate) fn replace_failed_wal(&self, core: &mut WriteCore) -> Result<()> {
        self.closed_wals.clear();
        core.seal_wanted = false;
        if core.wal.is_untouched() {
            // That of an attempt to resume that failed later on.
            return Ok(());
        }
        let number = self.ctx.new_file_number();
        let fresh = Wal::create(&self.ctx, number, None).map_err(|error| self.fail_writes(error))?;
        core.wal = fresh;
        let mut state = self.state.lock();
        state.live_wals.push_back(LiveWal { number, size_bytes: 0 });
        self.current_wal.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Makes durable that WALs before the current one are not needed: all they hold is in tables. A column family that
    /// had nothing to flush would else still name one whose tail is unknown, and recovery would stop there.
    pub(crate) fn leave_old_wals(&self) -> Result<()> {
        let wal = self.current_wal_number();
        let edits = || {
            let state = self.state.lock();
            let needed = wal.min(state.prepared.oldest_wal().unwrap_or(u64::MAX));
            let edit = |id: &u32| VersionEdit {
                log_number: Some(wal),
                min_log_number_to_keep: Some(needed),
                ..VersionEdit::for_column_family(*id)
            };
            // Acquire: as in `log_and_apply`.
            let last_seq = SeqNum(self.visible_seq.load(Ordering::Acquire));
            Ok((state.column_families.keys().map(edit).collect(), last_seq))
        };
        self.log_prepared(edits, |_| {})
    }
}

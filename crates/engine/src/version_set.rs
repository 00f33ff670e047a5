//! The version set: the structure of an open database, and the one way it changes durably. Edits are appended to the
//! MANIFEST and synced, then the new versions are installed for readers.
//!
//! Concurrency: [`VersionSet::manifest`] serialises these changes and is held across the append and sync, because
//! the next change builds on this one. The state lock is taken twice for moments, never across IO.

use crate::background::Background;
use crate::background_errors::StoppedWrites;
use crate::context::DbContext;
use crate::events::info::WriteStallInfo;
use crate::events::reasons::BackgroundErrorReason;
use crate::info_log::{LogLevel, log_at};
use crate::manifest_file::{Manifest, snapshot_edits};
use crate::state::{CfState, DbState};
use crate::write::stall::{WriteStall, condition_of};
use outcrop_base::{CfId, Error, ErrorKind, Result, SeqNum};
use outcrop_manifest::{FileNumber, ManifestWriter, Version, VersionBuilder, VersionEdit, file_name};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The structure of one open database, and how it changes.
pub struct VersionSet {
    /// Its surroundings.
    pub ctx: Arc<DbContext>,
    /// The last sequence number readers see. Alone on its cache line: writers store to it for every group.
    visible_seq: CacheLine<AtomicU64>,
    /// Writes fail: there is a background error, or the database closes.
    write_refused: AtomicBool,
    current_wal: AtomicU64,
    /// Readers of WAL files: while there are any, no WAL is recycled.
    pub wal_readers: AtomicUsize,
    /// How writers are held back.
    pub stall: WriteStall,
    /// The MANIFEST; serialises changes of the structure.
    pub manifest: Mutex<Manifest>,
    /// Memtables, versions, jobs, errors.
    pub state: Mutex<DbState>,
    /// Signalled, with the state lock, when a job ended or an error was set.
    pub state_changed: Condvar,
}

/// Why the structure is as it was.
pub enum Unchanged {
    /// Nothing was written.
    Refused(Error),
    /// The MANIFEST's tail is unknown, or which MANIFEST is in charge: writes stop already. For
    /// [`VersionSet::report_unchanged`].
    ManifestFailed(StoppedWrites),
}

impl From<Error> for Unchanged {
    fn from(error: Error) -> Unchanged {
        Unchanged::Refused(error)
    }
}

/// A value with a cache line to itself.
#[repr(align(64))]
struct CacheLine<T>(T);

impl VersionSet {
    /// The structure `state`, with `current_wal` being written and everything up to `last_seq` visible.
    pub fn new(
        ctx: Arc<DbContext>,
        state: DbState,
        manifest: Manifest,
        last_seq: SeqNum,
        current_wal: FileNumber,
    ) -> VersionSet {
        let stall = WriteStall::new(ctx.options.delayed_write_rate, ctx.pacing.urgent.clone());
        stall.update(&state);
        VersionSet {
            visible_seq: CacheLine(AtomicU64::new(last_seq.0)),
            write_refused: AtomicBool::new(false),
            current_wal: AtomicU64::new(current_wal.0),
            wal_readers: AtomicUsize::new(0),
            stall,
            manifest: Mutex::new(manifest),
            state: Mutex::new(state),
            state_changed: Condvar::new(),
            ctx,
        }
    }

    /// The last sequence number readers see.
    #[inline]
    pub fn visible_seq(&self) -> SeqNum {
        // Acquire: pairs with the Release in publish(); the published entries are in the memtables.
        SeqNum(self.visible_seq.0.load(Ordering::Acquire))
    }

    /// Shows readers everything up to `seq`. For the leader of the write group, or with writers excluded.
    #[inline]
    pub fn publish(&self, seq: SeqNum) {
        // Release: pairs with the Acquire in visible_seq(); publishes what was inserted under numbers up to this.
        self.visible_seq.0.store(seq.0, Ordering::Release);
    }

    /// True if writes fail: there is a background error, or the database closes.
    #[inline]
    pub fn refuses_writes(&self) -> bool {
        // Relaxed: set under the state lock before the failure is reported; a write that slips by fails on
        // its own or is as good as one that came before.
        self.write_refused.load(Ordering::Relaxed)
    }

    /// Lets writes fail from here on, or go on.
    pub fn refuse_writes(&self, refused: bool) {
        self.write_refused.store(refused, Ordering::Relaxed);
    }

    /// The WAL being written.
    pub fn current_wal(&self) -> FileNumber {
        FileNumber(self.current_wal.load(Ordering::Relaxed))
    }

    /// Another WAL is being written. Takes the state to show that it is locked.
    pub fn set_current_wal(&self, number: FileNumber, _state: &mut DbState) {
        // Relaxed: read only to compute which WALs may go, under the state lock.
        self.current_wal.store(number.0, Ordering::Relaxed);
    }

    /// The error of whatever would write, if the database is only read.
    pub fn refuse_if_read_only(&self) -> Result<()> {
        self.ctx.check_not_closed()?;
        match &self.state.lock().background_error {
            Some(error) if error.kind() == ErrorKind::NotSupported => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The error of what only brings to the file system what was written before: an error of background work is none.
    pub fn refuse_if_read_only_or_closed(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        let failed = self.state.lock().background_error.is_some();
        self.refusal().filter(|_| !failed).map_or(Ok(()), Err)
    }

    /// True if closed WALs must be durable before a flush is: a batch can span column families, or they hold what was prepared
    /// and is undecided or in a memtable.
    pub fn needs_synced_wals(&self) -> bool {
        let state = self.state.lock();
        let in_memtable = |cf: &CfState| cf.oldest_prepared_wal(|_| true) != FileNumber::MAX;
        state.column_families.len() > 1
            || !state.prepared.is_empty()
            || state.column_families.values().any(in_memtable)
    }

    /// Makes `edits` durable, each for the column family it names, then installs them and runs `then` on the
    /// state in the same step. They bring no sequence number with them that the MANIFEST does not have yet.
    ///
    /// # Errors
    /// If the MANIFEST cannot be written its tail is unknown: the database refuses writes until resumed. A
    /// version that breaks the rules of the LSM tree is Corruption, a column family that was dropped meanwhile is
    /// ColumnFamilyDropped, and nothing was written.
    pub fn log_and_apply(&self, edits: Vec<VersionEdit>, then: impl FnOnce(&mut DbState)) -> Result<()> {
        self.log_prepared(|| Ok((edits, SeqNum::default())), then)
    }

    /// As [`VersionSet::log_and_apply`], with edits that are made once no other change can come between, and the last
    /// sequence number in the tables they bring. Entries that were written since stay out of the MANIFEST: recovery
    /// takes its last number for one that is durable with all before it, and goes on after it with a WAL that may
    /// follow a lost one.
    pub fn log_prepared(
        &self,
        prepare: impl FnOnce() -> Result<(Vec<VersionEdit>, SeqNum)>,
        then: impl FnOnce(&mut DbState),
    ) -> Result<()> {
        let changed = self.log_locked(prepare, then).map_err(|failure| self.report_unchanged(failure));
        self.ctx.tell_stalls();
        changed
    }

    /// Stops writes with `error` of `manifest`, which is locked: [`VersionSet::restart_manifest`] comes after this, and the error is
    /// cleared after that. Were it latched later, it would stop a database that has resumed.
    pub fn manifest_failed(&self, manifest: &Manifest, error: Error) -> Unchanged {
        debug_assert!(manifest.failed.is_some());
        Unchanged::ManifestFailed(self.stop_writes_untold(BackgroundErrorReason::ManifestWrite, error))
    }

    /// Tells listeners and LOG if the MANIFEST failed: the caller has unlocked it, as they may call the database.
    pub fn report_unchanged(&self, failure: Unchanged) -> Error {
        match failure {
            Unchanged::Refused(error) => error,
            Unchanged::ManifestFailed(stopped) => self.tell_stopped(stopped),
        }
    }

    fn log_locked(
        &self,
        prepare: impl FnOnce() -> Result<(Vec<VersionEdit>, SeqNum)>,
        then: impl FnOnce(&mut DbState),
    ) -> std::result::Result<(), Unchanged> {
        // HOLDS manifest across IO: see the module doc.
        let mut manifest = self.manifest.lock();
        self.ctx.check_not_closed().map_err(Unchanged::Refused)?;
        if let Some(error) = manifest.failed.clone() {
            return Err(self.manifest_failed(&manifest, error));
        }
        if manifest.writer.size() > self.ctx.live.load().max_manifest_file_size {
            self.replace_manifest(&mut manifest)?;
        }
        let (mut edits, last_seq) = prepare()?;
        self.check_families(&edits)?;
        // Numbers that an earlier edit brought stay.
        let last_seq = last_seq.max(manifest.last_sequence);
        manifest.last_sequence = last_seq;
        let versions = self.build_versions(&edits)?;
        for edit in &mut edits {
            edit.next_file_number = Some(self.ctx.next_file_number());
            edit.last_sequence = Some(last_seq);
        }
        manifest.log(&edits, &self.ctx.monitor).map_err(|error| self.manifest_failed(&manifest, error))?;
        self.install(&edits, versions, then);
        Ok(())
    }

    /// A job may end after its column family was dropped: an edit that names a dropped one would make the MANIFEST
    /// unreadable.
    fn check_families(&self, edits: &[VersionEdit]) -> Result<()> {
        let state = self.state.lock();
        let gone = edits.iter().find(|edit| {
            edit.column_family_add.is_none() && !state.column_families.contains_key(&edit.column_family)
        });
        match gone {
            Some(edit) => Err(Error::new(
                ErrorKind::ColumnFamilyDropped,
                format!("column family {} was dropped meanwhile", edit.column_family),
            )),
            None => Ok(()),
        }
    }

    fn install(
        &self,
        edits: &[VersionEdit],
        versions: Vec<(CfId, Arc<Version>)>,
        then: impl FnOnce(&mut DbState),
    ) {
        let mut state = self.state.lock();
        for (cf_id, version) in versions {
            install_version(&self.ctx.background, &mut state, cf_id, version);
        }
        for edit in edits {
            if let (Some(log_number), Some(cf)) =
                (edit.log_number, state.column_families.get_mut(&edit.column_family))
            {
                cf.log_number = cf.log_number.max(log_number);
                cf.manifest_log_number = cf.manifest_log_number.max(log_number);
            }
            if let (Some(low), Some(cf)) =
                (edit.full_history_low, state.column_families.get(&edit.column_family))
            {
                cf.cf.full_history_low.store(Some(Arc::new(low)));
            }
        }
        then(&mut state);
        for edit in edits.iter().filter(|edit| edit.changes_tables()) {
            if let Some(cf) = state.column_families.get_mut(&edit.column_family) {
                cf.mark_new(&edit.new_files);
            }
        }
        for cf in state.column_families.values_mut() {
            cf.refresh_debt();
        }
        // Readers are told how far their history goes back once some of it may be gone, as in RocksDB.
        for edit in edits.iter().filter(|edit| edit.full_history_low.is_none()) {
            if let Some(cf) = state.column_families.get_mut(&edit.column_family) {
                cf.install_superversion();
            }
        }
        self.structure_changed(&mut state);
    }

    /// The versions that result from `edits`. Only the holder of the manifest lock changes versions, so they
    /// stay right until installed.
    fn build_versions(&self, edits: &[VersionEdit]) -> Result<Vec<(CfId, Arc<Version>)>> {
        let state = self.state.lock();
        let mut versions = Vec::new();
        for edit in edits.iter().filter(|edit| edit.changes_tables()) {
            let Some(cf) = state.column_families.get(&edit.column_family) else { continue };
            let base = cf.version.clone();
            let mut builder = VersionBuilder::new(&base, &cf.cf.comparator, base.levels.len());
            builder.apply(edit)?;
            let check = cf.cf.options.load().force_consistency_checks;
            versions.push((edit.column_family, Arc::new(builder.build(check)?)));
        }
        Ok(versions)
    }

    /// Replaces the MANIFEST by a fresh one that describes the current state: after a failed write its tail is
    /// unknown.
    pub fn restart_manifest(&self) -> Result<()> {
        // HOLDS manifest across IO: as in `log_and_apply`.
        let replaced = {
            let mut manifest = self.manifest.lock();
            self.ctx
                .check_not_closed()
                .map_err(Unchanged::Refused)
                .and_then(|()| self.replace_manifest(&mut manifest))
        };
        replaced.map_err(|failure| self.report_unchanged(failure))
    }

    /// With `verify_manifest_content_on_close`: reads the MANIFEST back, and writes another if it is damaged. For a database that closes.
    ///
    /// # Errors
    /// The other could not be written: CURRENT may name the damaged one. Source: RocksDB `VersionSet::Close`.
    pub fn verify_manifest(&self) -> Result<()> {
        if !self.ctx.live.load().kept.flag("verify_manifest_content_on_close", false) {
            return Ok(());
        }
        let replaced = {
            // HOLDS manifest across IO: as in `log_and_apply`.
            let mut manifest = self.manifest.lock();
            if manifest.failed.is_some() {
                // Its tail is not known, which the database has told of.
                return Ok(());
            }
            let (number, size) = (manifest.writer.number(), manifest.writer.size());
            match outcrop_manifest::verify(&*self.ctx.env.fs, &self.ctx.path, number, size) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    log_at!(
                        self.ctx,
                        LogLevel::Error,
                        "the MANIFEST is damaged, another is written: {error}"
                    );
                    self.replace_manifest(&mut manifest)
                }
            }
        };
        replaced.map_err(|failure| self.report_unchanged(failure))
    }

    /// Writes the present state as a new MANIFEST and goes on with that one.
    fn replace_manifest(&self, manifest: &mut Manifest) -> std::result::Result<(), Unchanged> {
        let number = self.ctx.new_file_number();
        let mut snapshot = {
            let state = self.state.lock();
            let last_seq = manifest.last_sequence;
            let min_wal = state.min_wal_needed(self.current_wal()).max(manifest.wals_kept_from);
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
                return Err(self.manifest_failed(manifest, error));
            }
        };
        manifest.failed = None;
        {
            let mut state = self.state.lock();
            if state.keeps_files() {
                // Somebody may copy it.
                state.obsolete_manifests.push(old);
                state.purge_wanted = true;
                return Ok(());
            }
        }
        // Best effort: the scan at the next open finds a file that stays.
        let _ = self.ctx.env.fs.remove_file(&file_name::manifest(&self.ctx.path, old));
        Ok(())
    }

    /// Makes durable that WALs before the current one are not needed: all they hold is in tables. A column family that
    /// had nothing to flush would else still name one whose tail is unknown, and recovery would stop there.
    pub fn advance_min_wal(&self) -> Result<()> {
        let wal = self.current_wal();
        let edits = || {
            let state = self.state.lock();
            let needed = state.prepared.oldest_needed(wal);
            let edit = |id: &CfId| VersionEdit {
                log_number: Some(wal),
                min_log_number_to_keep: Some(needed),
                ..VersionEdit::for_column_family(*id)
            };
            Ok((state.column_families.keys().map(edit).collect(), self.visible_seq()))
        };
        self.log_prepared(edits, |state| state.prepared.leave_before(wal))
    }

    /// Asks for a flush of what column families `ids` have sealed.
    pub fn request_flush(&self, ids: &[CfId]) {
        let mut state = self.state.lock();
        for id in ids {
            if let Some(cf) = state.column_families.get_mut(id) {
                cf.flush_requested |= !cf.sealed.is_empty();
            }
        }
        self.wake(&mut state);
    }

    /// Waits until the memtables of `ids` that are sealed now are in tables.
    ///
    /// # Errors
    /// The background error; ShutdownInProgress once the database closes.
    pub fn wait_for_flush(&self, ids: &[CfId]) -> Result<()> {
        let mut state = self.state.lock();
        let newest: Vec<_> = ids
            .iter()
            .filter_map(|id| Some((*id, state.column_families.get(id)?.sealed.last()?.memtable.clone())))
            .collect();
        loop {
            let waiting = newest.iter().any(|(id, memtable)| {
                state
                    .column_families
                    .get(id)
                    .is_some_and(|cf| cf.sealed.iter().any(|s| Arc::ptr_eq(&s.memtable, memtable)))
            });
            if !waiting {
                return Ok(());
            }
            state.check_working()?;
            self.state_changed.wait(&mut state);
        }
    }

    /// Waits for the end of the flushes of `ids` that run: their tables may be installed, and listeners not told yet.
    pub fn wait_for_told_flushes(&self, ids: &[CfId]) {
        let mut state = self.state.lock();
        let running = |state: &DbState, id: &CfId| {
            state.column_families.get(id).filter(|cf| cf.flush_running).map(|cf| (*id, cf.flushes_ended))
        };
        let before: Vec<_> = ids.iter().filter_map(|id| running(&state, id)).collect();
        while before.iter().any(|(id, ended)| running(&state, id) == Some((*id, *ended))) {
            self.state_changed.wait(&mut state);
        }
    }

    /// A job ended: others may start, and whoever waits looks again.
    pub fn job_ended(&self, state: &mut DbState) {
        self.structure_changed(state);
    }

    /// The state that stalls writers, or that jobs and waiters look at, has changed.
    pub fn structure_changed(&self, state: &mut DbState) {
        self.update_stalls(state);
        self.wake(state);
        self.state_changed.notify_all();
    }

    /// Recomputes how writers are held back; changes are told by whoever releases the state.
    pub fn update_stalls(&self, state: &mut DbState) {
        self.stall.update(state);
        if !self.ctx.listens() {
            return;
        }
        for cf in state.column_families.values_mut() {
            let current = condition_of(cf).0;
            let previous = std::mem::replace(&mut cf.stall_told, current);
            if current != previous {
                let cf_name = cf.cf.name().to_string();
                self.ctx.note_stall(WriteStallInfo { cf_name, current, previous });
            }
        }
    }

    /// Lets the background threads look for work. Takes the state to show that it is locked.
    pub fn wake(&self, _state: &mut DbState) {
        self.ctx.background.wake();
    }
}

fn install_version(background: &Background, state: &mut DbState, cf_id: CfId, version: Arc<Version>) {
    let Some(cf) = state.column_families.get_mut(&cf_id) else { return };
    let old = std::mem::replace(&mut cf.version, version);
    let kept: std::collections::HashSet<_> = cf.version.files().map(|(_, file)| file.number).collect();
    let gone = old.files().filter(|(_, file)| !kept.contains(&file.number));
    gone.for_each(|(_, file)| background.mark_obsolete_table(file));
    let blobs_gone = old.blob_files.iter().filter(|(number, _)| !cf.version.blob_files.contains_key(number));
    blobs_gone.for_each(|(_, blob)| background.mark_obsolete_blob(&blob.file));
    state.old_versions.retain(|(_, weak)| weak.strong_count() > 0);
    state.old_versions.push((cf_id, Arc::downgrade(&old)));
    state.purge_wanted = true;
}

#[cfg(test)]
mod tests;

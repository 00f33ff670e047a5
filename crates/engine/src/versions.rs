//! The one way the structure of the database changes durably: append edits to the MANIFEST, sync it, then
//! install the new versions for readers.
//!
//! Concurrency: `DbInner::manifest` serialises these changes and is held across the append and sync, because
//! the next change builds on this one. The state lock is taken twice for moments, never across IO.

use crate::db::DbInner;
use crate::state::DbState;
use outcrop_base::{Error, ErrorKind, Result, SeqNum};
use outcrop_manifest::{ManifestWriter, Version, VersionBuilder, VersionEdit, WalSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The MANIFEST being written.
pub struct Manifest {
    /// Its writer.
    pub writer: ManifestWriter,
    /// The last sequence number written to it: recovery takes the last one it finds, so they never go down.
    pub last_sequence: SeqNum,
    /// The WALs it keeps track of.
    pub wals: WalSet,
    /// Which MANIFEST is in charge is not known, or what its tail is: nothing is appended before it was replaced.
    pub failed: Option<Error>,
}

impl Manifest {
    /// Goes on with `writer`.
    pub fn new(writer: ManifestWriter, last_sequence: SeqNum, wals: WalSet) -> Manifest {
        Manifest { writer, last_sequence, wals, failed: None }
    }

    /// Appends `edits` as one change, durable on return.
    ///
    /// # Errors
    /// What the file system met, and from then on that again.
    pub fn log(&mut self, edits: &[VersionEdit]) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let written = self.writer.append(edits).and_then(|()| self.writer.sync());
        written.inspect_err(|error| self.failed = Some(error.clone()))
    }
}

impl DbInner {
    /// Makes `edits` durable, each for the column family it names, then installs them and runs `then` on the
    /// state in the same step.
    ///
    /// # Errors
    /// If the MANIFEST cannot be written its tail is unknown: the database refuses writes until resumed. A
    /// version that breaks the rules of the LSM tree is Corruption, a column family that was dropped meanwhile is
    /// ColumnFamilyDropped, and nothing was written.
    pub fn log_and_apply(&self, edits: Vec<VersionEdit>, then: impl FnOnce(&mut DbState)) -> Result<()> {
        self.log_prepared(|| Ok((edits, self.last_allocated_seq())), then)
    }

    /// As [`DbInner::log_and_apply`], with edits that are made once no other change can come between, and the last
    /// sequence number in use with them.
    pub fn log_prepared(
        &self,
        prepare: impl FnOnce() -> Result<(Vec<VersionEdit>, SeqNum)>,
        then: impl FnOnce(&mut DbState),
    ) -> Result<()> {
        // HOLDS manifest across IO: see the module doc.
        let mut manifest = self.manifest.lock();
        if let Some(error) = &manifest.failed {
            return Err(error.clone());
        }
        if manifest.writer.size() > self.ctx.options.max_manifest_file_size {
            self.replace_manifest(&mut manifest)?;
        }
        let (mut edits, last_seq) = prepare()?;
        self.check_families(&edits)?;
        // An ingestion uses numbers before they are visible: an edit logged meanwhile must not take them back.
        let last_seq = last_seq.max(manifest.last_sequence);
        manifest.last_sequence = last_seq;
        let versions = self.build_versions(&edits)?;
        for edit in &mut edits {
            edit.next_file_number = Some(self.ctx.next_file_number());
            edit.last_sequence = Some(last_seq);
        }
        manifest.log(&edits).map_err(|error| self.fail_writes(error))?;
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
        versions: Vec<(u32, Arc<Version>)>,
        then: impl FnOnce(&mut DbState),
    ) {
        let mut state = self.state.lock();
        for (cf_id, version) in versions {
            install_version(&mut state, cf_id, version);
        }
        for edit in edits {
            if let (Some(log_number), Some(cf)) =
                (edit.log_number, state.column_families.get_mut(&edit.column_family))
            {
                cf.log_number = cf.log_number.max(log_number);
            }
        }
        then(&mut state);
        for cf in state.column_families.values_mut() {
            cf.refresh_debt();
        }
        for edit in edits {
            if let Some(cf) = state.column_families.get_mut(&edit.column_family) {
                cf.install_superversion();
            }
        }
        self.stall.update(&state);
        self.background.wake(&mut state);
        self.state_changed.notify_all();
    }

    /// The versions that result from `edits`. Only the holder of the manifest lock changes versions, so they
    /// stay right until installed.
    fn build_versions(&self, edits: &[VersionEdit]) -> Result<Vec<(u32, Arc<Version>)>> {
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

    /// The last sequence number that may be in any table or memtable.
    fn last_allocated_seq(&self) -> SeqNum {
        // Acquire: everything in tables was published before it was sealed.
        SeqNum(self.visible_seq.load(Ordering::Acquire))
    }
}

fn install_version(state: &mut DbState, cf_id: u32, version: Arc<Version>) {
    let Some(cf) = state.column_families.get_mut(&cf_id) else { return };
    let old = std::mem::replace(&mut cf.version, version);
    let kept: std::collections::HashSet<_> = cf.version.files().map(|(_, file)| file.number).collect();
    let gone = old.files().filter(|(_, file)| !kept.contains(&file.number)).map(|(_, file)| file.clone());
    let blobs_gone = old.blob_files.iter().filter(|(number, _)| !cf.version.blob_files.contains_key(number));
    let blobs_gone: Vec<_> = blobs_gone.map(|(_, blob)| blob.file.clone()).collect();
    state.obsolete_tables.extend(gone);
    state.obsolete_blobs.extend(blobs_gone);
    state.old_versions.retain(|(_, weak)| weak.strong_count() > 0);
    state.old_versions.push((cf_id, Arc::downgrade(&old)));
    state.purge_wanted = true;
}

//! The MANIFEST being written, and the edits that begin one.

use crate::context::DbContext;
use crate::state::DbState;
use outcrop_base::{CfId, Error, Result, SeqNum};
use outcrop_manifest::{FileNumber, ManifestWriter, VersionEdit, WalSet};
use outcrop_monitor::{HistogramKind, Monitor, Watch};

/// The MANIFEST being written.
pub struct Manifest {
    /// Its writer.
    pub writer: ManifestWriter,
    /// The last sequence number written to it: recovery takes the last one it finds, so they never go down.
    pub last_sequence: SeqNum,
    /// The WALs it keeps track of.
    pub wals: WalSet,
    /// It was told that older WALs than this one may be gone. That never goes down, though a column family which had nothing in memory
    /// may have a lower number of its own.
    pub wals_kept_from: FileNumber,
    /// Which MANIFEST is in charge is not known, or what its tail is: nothing is appended before it was replaced.
    pub failed: Option<Error>,
}

impl Manifest {
    /// Goes on with `writer`.
    pub fn new(writer: ManifestWriter, last_sequence: SeqNum, wals: WalSet) -> Manifest {
        Manifest { writer, last_sequence, wals, wals_kept_from: FileNumber::NONE, failed: None }
    }

    /// The same, that begins with WALs from `number` on.
    pub fn keeping_wals_from(self, number: FileNumber) -> Manifest {
        Manifest { wals_kept_from: number, ..self }
    }

    /// Appends `edits` as one change, durable on return.
    ///
    /// # Errors
    /// The error that the file system gave; every later call fails with it again.
    pub fn log(&mut self, edits: &[VersionEdit], monitor: &Monitor) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let watching = monitor.begin();
        let sync = |writer: &mut ManifestWriter| {
            let timer = Watch::from(&watching).stats_timer();
            writer.sync()?;
            timer.micros(HistogramKind::ManifestFileSyncMicros);
            Ok(())
        };
        let written = self.writer.append(edits).and_then(|()| sync(&mut self.writer));
        written.inspect_err(|error| self.failed = Some(error.clone()))?;
        let kept_from = edits.iter().filter_map(|edit| edit.min_log_number_to_keep).max();
        self.wals_kept_from = self.wals_kept_from.max(kept_from.unwrap_or_default());
        Ok(())
    }
}

/// The edits that describe the whole database, for the start of a MANIFEST.
pub fn snapshot_edits(
    ctx: &DbContext,
    state: &DbState,
    last_seq: SeqNum,
    min_wal: FileNumber,
) -> Vec<VersionEdit> {
    let mut edits = Vec::new();
    if ctx.options.write_dbid_to_manifest {
        edits.push(VersionEdit { db_id: Some(ctx.db_id.clone()), ..VersionEdit::default() });
    }
    for (id, cf) in &state.column_families {
        let mut edit = VersionEdit::for_column_family(*id);
        edit.column_family_add = (*id != CfId::DEFAULT).then(|| cf.cf.name().to_string());
        edit.comparator = Some(cf.cf.comparator.name().to_string());
        edit.persist_timestamps = Some(true);
        edits.push(edit);
        let mut tables = VersionEdit::for_column_family(*id);
        tables.log_number = Some(cf.manifest_log_number);
        tables.full_history_low = cf.cf.full_history_low.load().as_deref().copied();
        tables.new_blob_files = cf.version.blob_files.values().map(|blob| blob.file.clone()).collect();
        tables.blob_garbage = cf
            .version
            .blob_files
            .iter()
            .filter(|(_, blob)| blob.garbage.count > 0)
            .map(|(number, blob)| (*number, blob.garbage))
            .collect();
        tables.compact_cursors =
            cf.version.compact_cursors.iter().map(|(level, key)| (*level, key.clone())).collect();
        tables.new_files = cf.version.files().map(|(level, file)| (level as u32, file.clone())).collect();
        if *id == CfId::DEFAULT {
            tables.next_file_number = Some(ctx.next_file_number());
            tables.last_sequence = Some(last_seq);
            tables.max_column_family = Some(state.max_column_family);
            tables.min_log_number_to_keep = Some(min_wal);
        }
        edits.push(tables);
    }
    edits
}

//! Writing down in the MANIFEST how much of each closed WAL is durable (`track_and_verify_wals_in_manifest`), so that
//! an open notices a WAL that went missing or lost its end; and from which WAL on all are there, which those that name their
//! predecessor (`track_and_verify_wals`) are compared with.
//!
//! ```text
//! a closed WAL is synced   -> WalAddition(number, bytes)      then: as before
//! WALs are not needed      -> WalDeletion(first kept)         then: their files are removed or recycled
//!                             MinLogNumberToKeep(first kept), of these and of prepared transactions
//! a new MANIFEST           -> WalAddition of each still tracked, MinLogNumberToKeep
//! ```
//! Invariant: as in `outcrop_manifest::WalSet`: the deletion is durable before the file goes, and nothing is added that a
//! deletion has passed. Concurrency: the MANIFEST's lock orders additions and deletions.
//! Source: RocksDB `db/db_impl/db_impl.cc`, `MarkLogsSynced` and `ApplyWALToManifest`.

use crate::manifest_file::Manifest;
use crate::version_set::{Unchanged, VersionSet};
use outcrop_base::{CfId, Result};
use outcrop_manifest::{FileNumber, VersionEdit, WalAddition};

impl VersionSet {
    /// Writes down that of each WAL, by number, so many bytes are durable.
    pub fn track_synced_wals(&self, synced: &[(FileNumber, u64)]) -> Result<()> {
        if synced.is_empty() || !self.ctx.options.track_and_verify_wals_in_manifest {
            return Ok(());
        }
        self.log_additions(synced).map_err(|failure| self.report_unchanged(failure))
    }

    fn log_additions(&self, synced: &[(FileNumber, u64)]) -> std::result::Result<(), Unchanged> {
        // HOLDS manifest across IO: as in `log_and_apply`.
        let mut manifest = self.manifest.lock();
        self.ctx.check_not_closed().map_err(Unchanged::Refused)?;
        let needed = {
            let state = self.state.lock();
            state.min_wal_needed(self.current_wal())
        };
        // Files of WALs that were not needed may be gone, even if one would be needed by now: a column family that had nothing in memory has.
        let kept = synced.iter().filter(|(number, _)| *number >= needed && manifest.wals.keeps(*number));
        let wal_additions: Vec<WalAddition> =
            kept.map(|&(number, bytes)| WalAddition { number, synced_bytes: Some(bytes) }).collect();
        if wal_additions.is_empty() {
            return Ok(());
        }
        self.log_wals(&mut manifest, VersionEdit { wal_additions, ..VersionEdit::default() })
    }

    /// Writes down that WALs below `needed` may go, if one of them is tracked, or the next one names its predecessor, or something was
    /// prepared: of two WALs that go the newer one may be gone and the older one not, be it to be recycled or by a loss of power, and a
    /// transaction that was rolled back in the newer one would wait again.
    pub fn untrack_wals(&self, needed: FileNumber) -> Result<()> {
        let options = &self.ctx.options;
        let tracks = options.track_and_verify_wals_in_manifest || options.track_and_verify_wals;
        if !tracks && !self.state.lock().prepared.has_any() {
            return Ok(());
        }
        self.log_deletion(needed).map_err(|failure| self.report_unchanged(failure))
    }

    /// The oldest WAL that is needed once column family `gone` is dropped, if that makes one obsolete.
    pub fn wals_needed_without(&self, gone: CfId) -> Option<FileNumber> {
        let (state, current) = (self.state.lock(), self.current_wal());
        let needed = state.min_wal_needed_without(Some(gone), current);
        (needed > state.min_wal_needed(current)).then_some(needed)
    }

    fn log_deletion(&self, needed: FileNumber) -> std::result::Result<(), Unchanged> {
        // HOLDS manifest across IO: as in `log_and_apply`.
        let mut manifest = self.manifest.lock();
        self.ctx.check_not_closed().map_err(Unchanged::Refused)?;
        self.log_deletion_in(&mut manifest, needed)
    }

    /// The same as [`VersionSet::untrack_wals`], for a caller that holds the MANIFEST. A failure is to be reported without it.
    pub fn log_deletion_in(
        &self,
        manifest: &mut Manifest,
        needed: FileNumber,
    ) -> std::result::Result<(), Unchanged> {
        let options = &self.ctx.options;
        let wal_deletion = (options.track_and_verify_wals_in_manifest && manifest.wals.tracks_before(needed))
            .then_some(needed);
        // A column family that nothing was written to needs none of these, and the number of its own in the MANIFEST is older.
        let says_from = options.track_and_verify_wals || self.state.lock().prepared.has_any();
        let min_log_number_to_keep = (says_from && needed > manifest.wals_kept_from).then_some(needed);
        if wal_deletion.is_none() && min_log_number_to_keep.is_none() {
            manifest.wals.delete_before(needed);
            return Ok(());
        }
        let edit = VersionEdit { wal_deletion, min_log_number_to_keep, ..VersionEdit::default() };
        self.log_wals(manifest, edit)
    }

    fn log_wals(&self, manifest: &mut Manifest, mut edit: VersionEdit) -> std::result::Result<(), Unchanged> {
        edit.next_file_number = Some(self.ctx.next_file_number());
        edit.last_sequence = Some(manifest.last_sequence);
        manifest
            .log(std::slice::from_ref(&edit), &self.ctx.monitor)
            .map_err(|error| self.manifest_failed(manifest, error))?;
        Ok(manifest.wals.apply(&edit)?)
    }
}

//! Taking back what a write group that failed left in memtables.
//!
//! A group fails after its first insert only by a panic of a comparator or merge operator. Its entries have sequence
//! numbers that were never published, so no read sees them; but the next group would publish higher ones. Nothing is
//! removed from a memtable, so before writes go on, such memtables are replaced by copies of what was published.
//!
//! Concurrency: with `CommitPipeline::core` held and writes refused, so that nothing was numbered since. Readers keep the view they
//! have.

use super::pipeline::{CommitPipeline, WriteCore};
use crate::column_family::new_memtable;
use crate::panic::caught;
use outcrop_base::Result;

impl CommitPipeline {
    /// Replaces the active memtables that hold more than was published.
    ///
    /// # Errors
    /// Aborted if a comparator panics again. Those replaced so far stay so; it can be tried again.
    pub fn discard_unpublished(&self, core: &mut WriteCore) -> Result<()> {
        let published = self.versions.visible_seq();
        if core.last_seq == published {
            return Ok(());
        }
        for index in 0..core.targets.len() {
            let target = &core.targets[index];
            if !target.memtable.holds_newer_than(published) {
                continue;
            }
            let fresh =
                new_memtable(&target.cf.options.load(), &target.cf.comparator, &self.ctx.memtable_pool);
            caught("resume", || {
                target.memtable.copy_up_to(published, &fresh);
                fresh.note_prepared_wal(target.memtable.oldest_prepared_wal());
                target.memtable.born().into_iter().for_each(|born| fresh.set_born(born));
                Ok(())
            })?;
            let mut state = self.versions.state.lock();
            let id = target.cf.id();
            core.targets.replace(index, fresh.clone());
            let Some(cf) = state.column_families.get_mut(&id) else { continue };
            cf.memtable = fresh;
            cf.install_superversion();
        }
        Ok(())
    }
}

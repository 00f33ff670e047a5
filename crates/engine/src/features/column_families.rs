//! Creating and dropping column families: changes that exclude writers.

use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::core::Core;
use crate::in_force::{
    add_default_cache, check_column_family_options, resolve_objects, sanitize_column_family,
};
use crate::info_log::log_line;
use crate::obsolete_files::purge_obsolete_files;
use crate::options_file;
use crate::state::CfState;
use crate::write::targets::Target;
use outcrop_base::timestamp::TIMESTAMP_LEN;
use outcrop_base::{CfId, Error, Result, SeqNum};
use outcrop_manifest::{Version, VersionEdit};
use std::sync::Arc;

/// See [`crate::Db::create_column_family`].
pub fn create(core: &Core, descriptor: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
    if descriptor.name.is_empty() {
        return Err(Error::invalid_argument("Column family name cannot be the empty string"));
    }
    let mut descriptor = descriptor.clone();
    check_column_family_options(&descriptor, &core.ctx.options)?;
    if let Some(budget) = &core.ctx.objects.memory_budget {
        budget.govern(&mut descriptor)?;
    }
    add_default_cache(&mut descriptor);
    resolve_objects(&mut descriptor)?;
    for correction in sanitize_column_family(&mut descriptor, &core.ctx.options) {
        log_line!(core.ctx, "{correction}");
    }
    core.ctx.add_data_dirs(&descriptor.options.cf_paths)?;
    // HOLDS CommitPipeline::core: no write may see the column family before it is complete.
    let mut writing = core.commit.exclude_writers();
    let id = {
        let state = core.versions.state.lock();
        if let Some(error) = &state.background_error {
            return Err(error.clone());
        }
        if state.column_families.values().any(|cf| cf.cf.name() == descriptor.name) {
            return Err(Error::invalid_argument("Column family already exists"));
        }
        next_id(state.max_column_family)?
    };
    let wal = writing.wal.number();
    let version = Arc::new(Version::empty(descriptor.options.num_levels as usize));
    let cf_state = {
        let first_epoch = 1 + u64::from(descriptor.options.allow_ingest_behind);
        CfState::new(id, &descriptor, version, wal, first_epoch, &core.ctx.memtable_pool)
    };
    let handle = cf_state.cf.clone();
    // Numbers above this are of writes that failed.
    cf_state.memtable.set_born(core.versions.visible_seq());
    let target = Target::new(handle.clone(), cf_state.memtable.clone());
    let mut edit = VersionEdit::for_column_family(id);
    edit.column_family_add = Some(descriptor.name.clone());
    edit.comparator = Some(descriptor.parts.comparator.name().to_string());
    edit.persist_timestamps = Some(true);
    edit.log_number = Some(wal);
    edit.max_column_family = Some(id);
    core.versions.log_and_apply(vec![edit], |state| {
        state.max_column_family = id;
        state.column_families.insert(id, cf_state);
    })?;
    writing.targets.push(target);
    if handle.has_timestamps() {
        writing.wal.name_timestamps(&[(id, TIMESTAMP_LEN as u16)]);
    }
    core.change_registry(|registry| {
        registry.insert(id, handle.clone());
    });
    drop(writing);
    handle.caches().for_each(|cache| core.ctx.background.watch_growth(cache));
    log_line!(core.ctx, "created column family {} ({id})", descriptor.name);
    options_file::note(core);
    Ok(handle)
}

/// The id after the highest that was ever given out. The last number there is stands for no column family, in RocksDB.
fn next_id(highest: CfId) -> Result<CfId> {
    match highest.0.checked_add(1) {
        Some(id) if id < u32::MAX => Ok(CfId(id)),
        _ => Err(Error::invalid_argument("no id is left for another column family")),
    }
}

/// See [`crate::Db::drop_column_family`].
pub fn drop_family(core: &Core, cf: &ColumnFamilyHandle) -> Result<()> {
    core.ctx.check_owns(cf)?;
    if cf.id() == CfId::DEFAULT {
        return Err(Error::invalid_argument("Can't drop default column family"));
    }
    let mut writing = core.commit.exclude_writers();
    if cf.is_dropped() {
        return Err(Error::invalid_argument("Column family already dropped!\n"));
    }
    let edits = || {
        let mut edit = VersionEdit::for_column_family(cf.id());
        edit.column_family_drop = true;
        // WALs that only its memtables need are obsolete with it, synced or not: a replay that met one would stop before writes that were
        // synced later.
        edit.min_log_number_to_keep = core.versions.wals_needed_without(cf.id());
        Ok((vec![edit], SeqNum::default()))
    };
    // Dropped once nothing is locked: it may be the last to hold memtables and open tables.
    let mut removed = None;
    core.versions.log_prepared(edits, |state| {
        removed = state.column_families.remove(&cf.id());
        if let Some(dropped) = &removed {
            let background = &core.ctx.background;
            dropped.version.files().for_each(|(_, file)| background.mark_obsolete_table(file));
            dropped.version.blob_files.values().for_each(|blob| background.mark_obsolete_blob(&blob.file));
            state.purge_wanted = true;
        }
    })?;
    cf.mark_dropped();
    let target = writing.targets.remove(cf.id());
    core.change_registry(|registry| {
        registry.remove(&cf.id());
    });
    drop(writing);
    drop((removed, target));
    log_line!(core.ctx, "dropped column family {} ({})", cf.name(), cf.id());
    purge_obsolete_files(&core.jobs);
    options_file::note(core);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::DbObjects;
    use crate::superversion::SuperVersion;
    use crate::{open, stopping};
    use outcrop_env::Env;
    use outcrop_manifest::{FileNumber, TableFile};
    use outcrop_options::DbOptions;
    use std::path::Path;
    use std::sync::Weak;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// Goes with a table: closing one may take long.
    struct Closed {
        core: Weak<Core>,
        times: Arc<AtomicU32>,
    }

    impl Drop for Closed {
        fn drop(&mut self) {
            let core = self.core.upgrade().expect("it is open");
            // Another thread may have them for a moment.
            let moment = Duration::from_secs(600);
            assert!(core.versions.state.try_lock_for(moment).is_some(), "the state is locked");
            assert!(core.versions.manifest.try_lock_for(moment).is_some(), "the MANIFEST is locked");
            self.times.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_views_of_a_dropped_family_are_dropped_with_nothing_locked() {
        let options = DbOptions { create_if_missing: true, ..DbOptions::default() };
        let family = |name: &str| ColumnFamilyDescriptor::new(name);
        let (objects, watched) = (DbObjects::default(), (Vec::new(), None));
        let core =
            open::open(Path::new("/db"), options, Env::memory(), vec![family("default")], objects, watched)
                .unwrap();
        let cf = create(&core, &family("dropped")).unwrap();
        let times = Arc::new(AtomicU32::new(0));
        {
            let mut state = core.versions.state.lock();
            let family = state.column_families.get_mut(&cf.id()).unwrap();
            let table = TableFile::new(FileNumber(1), 1, Vec::new(), Vec::new());
            let closed = Closed { core: Arc::downgrade(&core), times: times.clone() };
            assert!(table.runtime.at_end.set(Box::new(closed)).is_ok());
            let mut version = Version::empty(7);
            version.levels[0].files = vec![Arc::new(table)].into();
            let view = SuperVersion::new(family.memtable.clone(), Vec::new(), Arc::new(version));
            family.retired.push(Arc::new(view));
        }
        drop_family(&core, &cf).unwrap();
        // Perhaps it is upkeep that drops them, which ends with the database.
        stopping::close(&core).unwrap();
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }
}

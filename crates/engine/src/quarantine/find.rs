//! Finding out which tables are damaged, and telling of them.

use crate::compaction::job::CompactionJob;
use crate::context::DbContext;
use crate::core::Core;
use crate::events::Event;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::jobs::JobContext;
use crate::read::blob;
use crate::scrub::file::File;
use crate::scrub::options::DamageInfo;
use crate::state::{CfState, DbState};
use crate::table_cache::read_back;
use crate::version_set::VersionSet;
use outcrop_base::keys::split;
use outcrop_base::{Error, ErrorKind, Result, ValueType, wide_columns};
use outcrop_env::{IoKind, IoPriority};
use outcrop_manifest::TableFile;
use outcrop_table::blob::BlobIndex;
use std::sync::Arc;

/// A table, and what is wrong with it.
pub struct Damaged {
    file: File,
    error: Error,
    /// [`hold`] has put it into quarantine.
    is_held: bool,
}

/// True if errors like `error` come from damaged tables, and damage is to stop nothing.
fn applies(ctx: &DbContext, error: &Error) -> bool {
    !ctx.options.paranoid_checks && (error.kind() == ErrorKind::Corruption || error.is_missing_file())
}

/// Those inputs of `job` that are damaged, or have values that are, in blob files; it has failed with `error`.
pub fn damaged_inputs(jobs: &JobContext, job: &CompactionJob, error: &Error) -> Vec<Damaged> {
    if !applies(&jobs.ctx, error) {
        return Vec::new();
    }
    let found = inputs_that_fail(jobs, job, |file, _| verify(&jobs.ctx, file));
    match found.is_empty() {
        true => inputs_that_fail(jobs, job, |_, table| verify_values(&jobs.ctx, job, table)),
        false => found,
    }
}

/// The inputs of which `check` finds that they are damaged.
fn inputs_that_fail(
    jobs: &JobContext,
    job: &CompactionJob,
    check: impl Fn(&File, &TableFile) -> Result<()>,
) -> Vec<Damaged> {
    let levels = job.compaction.inputs.iter();
    let files = levels.flat_map(|level| level.files.iter().map(|file| (level.level, file)));
    let damaged = files.filter_map(|(level, table)| {
        let file = File::Table(job.cf.clone(), level, table.clone());
        let error = check(&file, table).err().filter(|error| applies(&jobs.ctx, error))?;
        Some(Damaged { file, error, is_held: false })
    });
    damaged.collect()
}

/// Reads all values that a table has in blob files, past the cache: compactions do so. One that fails is read twice. One whose file is lost
/// is as good as damaged only to a compaction that needs it, and such a one has failed.
fn verify_values(ctx: &DbContext, job: &CompactionJob, table: &TableFile) -> Result<()> {
    let pace = ctx.pacing.of(IoPriority::Low).filter(|pace| pace.limiter.limits(IoKind::Read));
    let mut value = Vec::new();
    let mut check = |user_key: &[u8], index: &[u8]| {
        ctx.check_open()?;
        let index = BlobIndex::decode(index)?;
        if let Some(pace) = &pace {
            pace.request(index.size, IoKind::Read);
        }
        let mut read = || {
            let file = blob::find(&job.version.blob_files, index.file_number)?;
            ctx.tables.open_blob_file(&job.cf, file)?.get(user_key, &index, &mut value)
        };
        read().or_else(|_| read()).map_err(|error| error.within("a value that it refers to"))
    };
    let reader = ctx.tables.open(&job.cf, table)?;
    let mut outcome = Ok(());
    read_back(&reader, |key, value| {
        if outcome.is_err() {
            return;
        }
        let (user_key, trailer) = split(key);
        outcome = match trailer.value_type() {
            Some(ValueType::BlobIndex) => check(user_key, value),
            Some(ValueType::WideColumnEntity) => {
                wide_columns::each_blob(value, |index| check(user_key, index))
            }
            _ => Ok(()),
        };
    })?;
    outcome
}

/// Reads all of a table. A block that fails is read twice.
fn verify(ctx: &DbContext, file: &File) -> Result<()> {
    let mut rest = file.open(ctx)?;
    let pace = ctx.pacing.of(IoPriority::Low).filter(|pace| pace.limiter.limits(IoKind::Read));
    while let Some((bytes, verified)) = rest.verify_next() {
        ctx.check_open()?;
        if let Some(pace) = &pace {
            pace.request(bytes, IoKind::Read);
        }
        if verified.is_err() {
            rest.verify_again()?;
        }
    }
    Ok(())
}

/// Puts tables into quarantine, which no job has any more. None is dropped here: the last holder of a table's metadata has its file removed.
pub fn hold(state: &mut DbState, damaged: &mut [Damaged]) {
    for Damaged { file, error, is_held } in damaged {
        *is_held = hold_one(state, file, error);
    }
}

/// True unless it is there already, a job has it, or it is no table of the newest version.
fn hold_one(state: &mut DbState, file: &File, error: &Error) -> bool {
    let File::Table(cf, _, table) = file else { return false };
    let cf = state.column_families.get_mut(&cf.id());
    cf.is_some_and(|cf| cf.quarantine(table.number, error.clone()))
}

/// Tells LOG of tables that are in quarantine from here on, and listeners.
pub fn tell(ctx: &DbContext, damaged: &[Damaged]) {
    for Damaged { file, error, .. } in damaged.iter().filter(|damaged| damaged.is_held) {
        log_held(ctx, file, error);
        if ctx.listens() {
            ctx.tell(Event::DamageFound(&file.damage(ctx, error)));
        }
    }
}

fn log_held(ctx: &DbContext, file: &File, error: &Error) {
    let path = file.path(ctx);
    log_at!(ctx, LogLevel::Error, "quarantine: compactions leave {} alone: {error}", path.display());
}

/// The scrubber has found damage in a file, and tells listeners itself.
pub fn after_scrub(jobs: &JobContext, file: &File, error: &Error) {
    if !applies(&jobs.ctx, error) {
        return;
    }
    let is_held = {
        let mut state = jobs.versions.state.lock();
        let is_held = hold_one(&mut state, file, error);
        // A request that needs the table looks again.
        jobs.versions.wake(&mut state);
        is_held
    };
    if is_held {
        log_held(&jobs.ctx, file, error);
    }
}

/// Lets compactions try the tables again.
pub fn release_all(versions: &VersionSet) {
    let released: usize = {
        let mut state = versions.state.lock();
        let released = state.column_families.values_mut().map(CfState::release_quarantine).sum();
        versions.wake(&mut state);
        released
    };
    if released > 0 {
        log_line!(versions.ctx, "quarantine: {released} tables are tried again");
    }
}

/// See [`crate::Db::quarantined_tables`].
pub fn tables(core: &Core) -> Vec<DamageInfo> {
    let found: Vec<(File, Error)> = {
        let state = core.versions.state.lock();
        let of = |cf: &CfState| {
            let held = |(level, file): (usize, &Arc<TableFile>)| {
                let error = cf.quarantined.get(&file.number)?.clone();
                Some((File::Table(cf.cf.clone(), level, file.clone()), error))
            };
            cf.version.files().filter_map(held).collect::<Vec<_>>()
        };
        state.column_families.values().flat_map(of).collect()
    };
    found.iter().map(|(file, error)| file.damage(&core.ctx, error)).collect()
}

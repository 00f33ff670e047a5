//! The OPTIONS file of an open database, and changing options while it is open.
//!
//! Concurrency: [`Core::options_file`] makes changes and files one after the other; it is taken before the state.

use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::core::Core;
use crate::in_force::{check_column_family_options, sanitize_column_family};
use crate::info_log::{LogLevel, log_at, log_line};
use outcrop_base::Result;
use outcrop_manifest::{FileNumber, file_name};
use outcrop_options::recorded_paths::OWN;
use outcrop_options::{ColumnFamilyOptions, DbPath, file as options_file};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes an OPTIONS file after a change that the MANIFEST has made durable. An error is not the caller's: the change
/// stands. Until the file is written, which upkeep and closing try again, people's tools read of the column families
/// as they were.
pub fn note(core: &Core) {
    let written = write(core);
    // Relaxed: nothing is published through it.
    core.options_outdated.store(written.is_err(), Ordering::Relaxed);
    if let Err(error) = written {
        log_at!(core.ctx, LogLevel::Warn, "the OPTIONS file is out of date: {error}");
    }
}

/// Writes the OPTIONS file that could not be written before.
pub fn note_if_outdated(core: &Core) {
    // Relaxed: as in `note`.
    if core.options_outdated.load(Ordering::Relaxed) {
        note(core);
    }
}

/// See [`crate::Db::set_options`].
pub fn set_options(core: &Core, cf: &ColumnFamilyHandle, options: &[(&str, &str)]) -> Result<()> {
    core.ctx.check_owns(cf)?;
    core.versions.refuse_if_read_only()?;
    cf.refuse_if_dropped()?;
    // HOLDS options_file across the write: two changes at once would each begin from what the other replaces, and remove
    // each other's files.
    let _one_at_a_time = core.options_file.lock();
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
    check_column_family_options(&descriptor, &core.ctx.options)?;
    for correction in sanitize_column_family(&mut descriptor, &core.ctx.options) {
        log_line!(core.ctx, "{correction}");
    }
    cf.options.store(Arc::new(descriptor.options));
    {
        let mut state = core.versions.state.lock();
        if let Some(cf) = state.column_families.get_mut(&cf.id()) {
            cf.refresh_debt();
        }
        core.versions.structure_changed(&mut state);
    }
    write_locked(core)
}

/// Writes a new OPTIONS file and removes all but the newest two.
pub fn write(core: &Core) -> Result<()> {
    // HOLDS options_file across the write: the newest file says what the newest change was.
    let _one_at_a_time = core.options_file.lock();
    write_locked(core)
}

/// The same, for who holds [`Core::options_file`].
pub fn write_locked(core: &Core) -> Result<()> {
    core.ctx.check_not_closed()?;
    write_to(core, &core.ctx.path)?;
    remove_old(core)
}

/// Writes an OPTIONS file into `dir`.
pub fn write_to(core: &Core, dir: &Path) -> Result<()> {
    let mut db = (**core.ctx.live.load()).clone();
    let mut families: Vec<(String, ColumnFamilyOptions)> = core
        .registry
        .load()
        .values()
        .map(|cf| (cf.name().to_string(), (**cf.options.load()).clone()))
        .collect();
    record_paths(core, dir, &mut db.db_paths);
    families.iter_mut().for_each(|(_, options)| record_paths(core, dir, &mut options.cf_paths));
    let text = options_file::print(&db, &families);
    let number = core.ctx.new_file_number();
    let path = file_name::options(dir, number);
    let temporary = dir.join(format!("OPTIONS-{:06}.dbtmp", number.0));
    core.ctx.env.fs.replace(&path, &temporary, text.as_bytes())
}

/// The paths as the file in `dir` has them: whoever reads it need not be where the database was opened. A checkpoint has its tables beside it.
fn record_paths(core: &Core, dir: &Path, paths: &mut Vec<DbPath>) {
    let fs = &core.ctx.env.fs;
    let own = fs.canonical(&core.ctx.path);
    if dir != core.ctx.path {
        paths.clear();
    }
    for DbPath { path, .. } in paths {
        let canonical = fs.canonical(path);
        *path = if canonical == own { OWN.into() } else { canonical };
    }
}

fn remove_old(core: &Core) -> Result<()> {
    // Somebody may copy one of them. They go with the next file that is written.
    if core.versions.state.lock().keeps_files() {
        return Ok(());
    }
    let names = core.ctx.env.fs.list(&core.ctx.path)?;
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
        core.ctx.env.fs.remove_file(&file_name::options(&core.ctx.path, number))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Db;
    use crate::testing::parts::plain_options;
    use outcrop_env::Env;
    use outcrop_manifest::file_name::{self, FileKind};
    use std::path::Path;

    fn open(env: &Env) -> Db {
        Db::builder("/db")
            .env(env.clone())
            .create_if_missing(true)
            .default_column_family(plain_options())
            .open()
            .unwrap()
    }

    fn options_files(env: &Env) -> usize {
        let names = env.fs.list(Path::new("/db")).unwrap();
        names.iter().filter(|name| matches!(file_name::parse(name), Some(FileKind::Options(_)))).count()
    }

    #[test]
    fn changes_from_several_threads_are_all_kept_and_written() {
        let env = Env::memory();
        let db = open(&env);
        let cf = db.default_column_family().clone();
        let names =
            ["max_write_buffer_number", "level0_file_num_compaction_trigger", "max_bytes_for_level_base"];
        let value_of = |name: &str| {
            let options = cf.options();
            match name {
                "max_write_buffer_number" => options.max_write_buffer_number as u64,
                "level0_file_num_compaction_trigger" => options.level0_file_num_compaction_trigger as u64,
                _ => options.max_bytes_for_level_base,
            }
        };
        std::thread::scope(|scope| {
            for name in names {
                let (db, value_of) = (&db, &value_of);
                scope.spawn(move || {
                    for value in 2..200u64 {
                        db.set_options(&[(name, &value.to_string())]).unwrap();
                        assert_eq!(
                            value_of(name),
                            value,
                            "{name}: another thread took an acknowledged change back"
                        );
                    }
                });
            }
        });
        let loaded = Db::load_latest_options_in("/db", &env).unwrap();
        let (_, written) = &loaded.families[0];
        assert_eq!(*written, *cf.options(), "the newest file says what holds");
        assert_eq!(options_files(&env), 2);
    }

    #[test]
    fn what_options_gave_does_not_change() {
        let env = Env::memory();
        let db = open(&env);
        let cf = db.default_column_family().clone();
        let before = cf.options();
        db.set_options(&[("max_write_buffer_number", "7")]).unwrap();
        assert_ne!(before.max_write_buffer_number, 7);
        assert_eq!(cf.options().max_write_buffer_number, 7);
    }

    #[test]
    fn a_change_that_is_refused_changes_nothing() {
        let env = Env::memory();
        let db = open(&env);
        let cf = db.default_column_family().clone();
        let before = cf.options();
        for wrong in [("max_write_buffer_number", "none"), ("no_such_option", "1"), ("num_levels", "3")] {
            db.set_options(&[("write_buffer_size", "1000000"), wrong]).unwrap_err();
            assert_eq!(*cf.options(), *before, "{wrong:?}");
        }
    }

    #[test]
    fn two_files_are_kept() {
        let env = Env::memory();
        let db = open(&env);
        for value in ["3", "4", "5", "6"] {
            db.set_options(&[("max_write_buffer_number", value)]).unwrap();
            assert_eq!(options_files(&env), 2);
        }
    }
}

//! Opening a database: a path, what differs from the defaults, and the ways to open, repair and salvage it.

use crate::column_family::{ColumnFamilyDescriptor, DEFAULT_COLUMN_FAMILY};
use crate::db::Db;
use crate::features::read_only;
use crate::listener::EventListener;
use crate::objects::DbObjects;
use crate::open;
use crate::panic::caught;
use crate::repair::report::RepairReport;
use crate::repair::salvage::report::SalvageReport;
use crate::repair::salvage::{self, SalvageOptions};
use crate::repair::{self, RepairOptions};
use crate::scrub::options::ScrubOptions;
use outcrop_base::{CompactionFilter, Comparator, Error, ErrorKind, MergeOperator, Result, Timestamp};
use outcrop_cache::Cache;
use outcrop_env::{Clock, Env};
use outcrop_manifest::file_name::{self, FileKind};
use outcrop_monitor::Statistics;
use outcrop_options::file::LoadedOptions;
use outcrop_options::{ColumnFamilyOptions, DbOptions, RecordedPaths};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a database is opened: [`Db::builder`]. Nothing is touched before one of the `open` methods.
///
/// Every column family that the database has must be named to [`DbBuilder::open`]; "default" is there without being named.
/// [`DbBuilder::stored_options`] names them as the database itself has them written down.
///
/// ```
/// use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, Db, Env};
///
/// let log = ColumnFamilyOptions { write_buffer_size: 8 << 20, ..ColumnFamilyOptions::default() };
/// let db = Db::builder("/db")
///     .env(Env::memory()) // Left out, it is files on disk.
///     .create_if_missing(true)
///     .create_missing_column_families(true)
///     .column_family("users")
///     .column_family(ColumnFamilyDescriptor::new("log").with_options(log))
///     .open()?;
/// assert_eq!(db.column_families().len(), 3);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct DbBuilder {
    path: PathBuf,
    env: Env,
    options: DbOptions,
    default: Option<ColumnFamilyDescriptor>,
    /// A descriptor for it was given.
    names_default: bool,
    families: Vec<ColumnFamilyDescriptor>,
    /// As the OPTIONS file has them, until they are named.
    stored: Vec<ColumnFamilyDescriptor>,
    block_cache: Option<Arc<Cache>>,
    error_if_wal_file_exists: bool,
    objects: DbObjects,
    listeners: Vec<Arc<dyn EventListener>>,
    statistics: Option<Arc<Statistics>>,
    scrub: Option<ScrubOptions>,
}

impl Db {
    /// Opens the database at `path`, which must exist and have no column family but "default", under default options. For all else
    /// there is [`Db::builder`].
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::builder(path).open()
    }

    /// How to open, or create, the database at `path`.
    pub fn builder(path: impl AsRef<Path>) -> DbBuilder {
        DbBuilder {
            path: path.as_ref().to_path_buf(),
            env: Env::posix(),
            options: DbOptions::default(),
            default: None,
            names_default: false,
            families: Vec::new(),
            stored: Vec::new(),
            block_cache: None,
            error_if_wal_file_exists: false,
            objects: DbObjects::default(),
            listeners: Vec::new(),
            statistics: None,
            scrub: None,
        }
    }
}

impl DbBuilder {
    /// Create the database if there is none. Default false.
    pub fn create_if_missing(mut self, create: bool) -> DbBuilder {
        self.options.create_if_missing = create;
        self
    }

    /// Fail if there is a database. Default false.
    pub fn error_if_exists(mut self, fail: bool) -> DbBuilder {
        self.options.error_if_exists = fail;
        self
    }

    /// Create the column families that are named and that the database has not. Default false: that is an error.
    pub fn create_missing_column_families(mut self, create: bool) -> DbBuilder {
        self.options.create_missing_column_families = create;
        self
    }

    /// All settings of the database as a whole, in place of those made so far.
    pub fn options(mut self, options: DbOptions) -> DbBuilder {
        self.options = options;
        self
    }

    /// Where files, time, randomness and threads come from. Default [`Env::posix`].
    pub fn env(mut self, env: Env) -> DbBuilder {
        self.env = env;
        self
    }

    /// Opens a column family too: a name, or a [`ColumnFamilyDescriptor`] with settings. One that the builder knows already, from
    /// [`DbBuilder::stored_options`] or, if it is "default", from other methods, is changed by it: settings that are not all defaults
    /// replace those from before, and so does each object that it brings.
    pub fn column_family(mut self, family: impl Into<ColumnFamilyDescriptor>) -> DbBuilder {
        let family = family.into();
        if family.name == DEFAULT_COLUMN_FAMILY && !self.names_default {
            self.names_default = true;
            let known = self.default.take();
            self.default = Some(known.map_or(family.clone(), |known| known.changed_by(family)));
            return self;
        }
        let known = self.stored.iter().position(|stored| stored.name == family.name);
        self.families.push(match known {
            Some(known) => self.stored.remove(known).changed_by(family),
            None => family,
        });
        self
    }

    /// [`DbBuilder::column_family`] for each.
    pub fn column_families<F: Into<ColumnFamilyDescriptor>>(
        self,
        families: impl IntoIterator<Item = F>,
    ) -> DbBuilder {
        families.into_iter().fold(self, |builder, family| builder.column_family(family))
    }

    /// Settings of the default column family.
    pub fn default_column_family(mut self, options: ColumnFamilyOptions) -> DbBuilder {
        self.default_mut().options = options;
        self
    }

    /// Key order of the default column family: the one it was created with.
    pub fn comparator(mut self, comparator: Comparator) -> DbBuilder {
        self.default_mut().parts.comparator = comparator;
        self
    }

    /// Rule for merge operands in the default column family.
    pub fn merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> DbBuilder {
        self.default_mut().parts.merge_operator = Some(operator);
        self
    }

    /// The filter that is asked about each key that a compaction of the default column family writes.
    pub fn compaction_filter(mut self, filter: Arc<dyn CompactionFilter>) -> DbBuilder {
        self.default_mut().parts.compaction_filter = Some(filter);
        self
    }

    /// The cache of all column families that bring none of their own. Default: 32 MiB for each.
    pub fn block_cache(mut self, cache: Arc<Cache>) -> DbBuilder {
        self.block_cache = Some(cache);
        self
    }

    /// Objects that it may share with other databases: limits, and a logger. Without effect on a database that is only read, but for the
    /// memory budget: it writes nothing that they limit, and no LOG.
    pub fn objects(mut self, objects: DbObjects) -> DbBuilder {
        self.objects = objects;
        self
    }

    /// Has `listener` told what happens in the database, after those that were given before. A database that is only read tells nothing.
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> DbBuilder {
        self.listeners.push(listener);
        self
    }

    /// Counts what is done to the database, also to others that are opened with the same object. Default: nothing is counted, which
    /// is asked once for each operation and tested where it would be counted.
    pub fn statistics(mut self, statistics: impl Into<Option<Arc<Statistics>>>) -> DbBuilder {
        self.statistics = statistics.into();
        self
    }

    /// Has every table and blob file read and verified from time to time, in the background: [`ScrubOptions`]. Default: off. Without effect on
    /// a database that is only read.
    pub fn scrub(mut self, scrub: impl Into<Option<ScrubOptions>>) -> DbBuilder {
        self.scrub = scrub.into();
        self
    }

    /// For [`DbBuilder::open_read_only`]: fail if a WAL has data, which would have to be replayed. Default false.
    pub fn error_if_wal_file_exists(mut self, fail: bool) -> DbBuilder {
        self.error_if_wal_file_exists = fail;
        self
    }

    /// Takes settings and column families from the newest OPTIONS file of the database, with built-in comparators and merge operators:
    /// what is needed to open a database, RocksDB's or this engine's own, that others configured. This replaces all
    /// earlier settings, but for `create_if_missing`, `error_if_exists` and `create_missing_column_families`; later
    /// settings count.
    ///
    /// A comparator or merge operator that is not built in is named in the file only. Bring it by naming its column family again,
    /// without settings: those stay as they are stored.
    ///
    /// ```
    /// # use outcrop::{ColumnFamilyDescriptor, ColumnFamilyOptions, Db, Env, MergeOperator};
    /// # use std::sync::Arc;
    /// struct Longest;
    ///
    /// impl MergeOperator for Longest {
    ///     fn name(&self) -> &str {
    ///         "my.Longest"
    ///     }
    ///
    ///     fn full_merge(&self, _key: &[u8], old: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
    ///         old.iter().chain(operands).max_by_key(|value| value.len()).map(|value| value.to_vec())
    ///     }
    /// }
    ///
    /// let users = || ColumnFamilyDescriptor::new("users").with_merge_operator(Arc::new(Longest));
    /// # let env = Env::memory();
    /// # let small = ColumnFamilyOptions { write_buffer_size: 1 << 20, ..ColumnFamilyOptions::default() };
    /// # let builder = Db::builder("/db").env(env.clone()).create_if_missing(true).create_missing_column_families(true);
    /// # drop(builder.column_family(users().with_options(small)).open()?);
    /// let db = Db::builder("/db").env(env).stored_options()?.column_family(users()).open()?;
    /// assert_eq!(db.column_family("users").expect("it is named").options().write_buffer_size, 1 << 20);
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::load_latest_options`]. InvalidArgument on opening if the file names a comparator or merge operator that is
    /// not built in and that nothing brings.
    pub fn stored_options(mut self) -> Result<DbBuilder> {
        let mut stored = Db::load_latest_options_in(&self.path, &self.env)?;
        let to_bring: Vec<(String, String)> = stored
            .merge_operators_to_bring()
            .map(|(family, operator)| (family.to_string(), operator))
            .collect();
        for (family, operator) in to_bring {
            let named = stored.families.iter_mut().filter(|(name, _)| *name == family);
            named.for_each(|(_, options)| options.merge_operator = Some(operator.clone()));
        }
        self.options = DbOptions {
            create_if_missing: self.options.create_if_missing,
            error_if_exists: self.options.error_if_exists,
            create_missing_column_families: self.options.create_missing_column_families,
            ..stored.db
        };
        (self.default, self.names_default) = (None, false);
        self.families.clear();
        self.stored.clear();
        for (name, options) in stored.families {
            let descriptor = ColumnFamilyDescriptor::new(name).with_options(options);
            match descriptor.name == DEFAULT_COLUMN_FAMILY {
                true => self.default = Some(descriptor),
                false => self.stored.push(descriptor),
            }
        }
        Ok(self)
    }

    /// Opens the database for reading and writing. On return what it had acknowledged is readable, and its directory is locked until it is
    /// closed.
    ///
    /// # Errors
    /// - InvalidArgument: it does not exist, or exists against `error_if_exists`; it has column families that were not named, or
    ///   lacks one that was; a comparator differs; a setting has no such value, or contradicts a memory budget. Change what is asked for.
    /// - IoError naming the LOCK file: it is open elsewhere. Close it there. Any other IoError: the file system refused.
    /// - Corruption naming file and offset: its files are damaged. Restore it; opening again will not help.
    /// - NotSupported naming a feature: it uses one that this engine lacks.
    ///
    /// In all these cases nothing of the database was changed.
    pub fn open(mut self) -> Result<Db> {
        let objects = self.objects.clone();
        let watched = (std::mem::take(&mut self.listeners), self.statistics.clone());
        let scrub = self.scrub;
        scrub.as_ref().map_or(Ok(()), ScrubOptions::check)?;
        let (path, options, env, families) = self.into_parts()?;
        let db = Db::new(open::open(&path, options, env, families, objects, watched)?, None);
        if scrub.is_some() {
            db.set_scrub(scrub)?;
        }
        Ok(db)
    }

    /// Opens the database, and drops what was written with timestamps above `newest`, in all column families that have timestamps: as if it
    /// had never been written. Everything in them is rewritten before this returns.
    ///
    /// # Errors
    /// As [`DbBuilder::open`]; InvalidArgument with `avoid_flush_during_recovery`; those of compactions, after which part may be
    /// trimmed: open it so again.
    ///
    /// Source: RocksDB `DB::OpenAndTrimHistory`.
    pub fn open_and_trim_history(self, newest: Timestamp) -> Result<Db> {
        if self.options.kept.get("avoid_flush_during_recovery") == Some("true") {
            let what = "avoid_flush_during_recovery incompatible with OpenAndTrimHistory";
            return Err(Error::invalid_argument(what));
        }
        let db = self.open()?;
        for cf in db.column_families().into_iter().filter(|cf| cf.has_timestamps()) {
            db.trim_history(&cf, newest)?;
        }
        Ok(db)
    }

    /// Opens the database for reading only. Takes no lock and writes nothing, so it can be beside a process that writes; what that one
    /// does later is not seen. Column families that are not named are left out.
    ///
    /// # Errors
    /// As [`DbBuilder::open`]; Corruption if a WAL has data and `error_if_wal_file_exists` is set.
    pub fn open_read_only(self) -> Result<Db> {
        let (strict, statistics) = (self.error_if_wal_file_exists, self.statistics.clone());
        let limiter = self.objects.rate_limiter.clone();
        let (path, options, env, families) = self.into_parts()?;
        let (core, _) = read_only::open(&path, options, env, families, limiter, (strict, statistics))?;
        Ok(Db::new(core, None))
    }

    /// Opens the database for reading, as one that follows the process that writes it: [`Db::try_catch_up_with_primary`]. Keep
    /// `max_open_files` at -1, so that files the primary removes stay readable.
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open_secondary(self) -> Result<Db> {
        let (limiter, statistics) = (self.objects.rate_limiter.clone(), self.statistics.clone());
        let (path, options, env, families) = self.into_parts()?;
        let (core, secondary) = read_only::open(&path, options, env, families, limiter, (false, statistics))?;
        Ok(Db::new(core, Some(secondary)))
    }

    /// Makes a database of what is left of a damaged one, which must not be open: of every table that can be read to its end, every
    /// intact record of its WALs, and as much of its MANIFEST as decodes. On return the database opens; what it does not use any more
    /// is in `lost/` beside it, never deleted, and the report says what is lost and why. Settings and column families are those given
    /// so far; those of other column families are in `options`.
    ///
    /// Values that were deleted or overwritten may come back where what deleted them is lost. Writes behind damage in a WAL are taken
    /// over though earlier ones are missing, as in RocksDB. Of a blob file only header and footer are looked at.
    ///
    /// ```
    /// # use outcrop::{Db, Env, RepairOptions};
    /// # use std::path::Path;
    /// # let env = Env::memory();
    /// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
    /// # db.put("apple", "red")?;
    /// # db.close()?;
    /// env.fs.remove_file(Path::new("/db/CURRENT"))?;
    /// assert!(Db::builder("/db").env(env.clone()).open().is_err());
    ///
    /// let report = Db::builder("/db").env(env.clone()).repair(&RepairOptions::default())?;
    /// print!("{report}");
    /// let db = Db::builder("/db").env(env).open()?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// - IoError naming the LOCK file: it is open.
    /// - Corruption: there are no files.
    /// - InvalidArgument: a column family is in another order of keys than given, or not named and `options` refuses such.
    /// - NotSupported: user timestamps, transactions that are not `WRITE_COMMITTED`, tables named as by LevelDB, or in several paths.
    /// - IoError of reading or writing. Repair again: what was there is there still, or is in `lost/` and was taken over.
    ///
    /// But for the last case nothing was changed.
    ///
    /// Source: RocksDB `db/repair.cc`, from which it differs as `docs/design/0022` says.
    pub fn repair(self, options: &RepairOptions) -> Result<RepairReport> {
        let objects = self.objects.clone();
        let (path, db_options, env, families) = self.into_parts()?;
        caught("repair", || repair::repair(&path, db_options, env, families, objects, options))
    }

    /// Copies all that is whole of a damaged database, which must not be open, into a new one in `to`: of tables every block that verifies, of
    /// WALs every record, of blob files every value. The damaged one is only read. `to` must be empty, or not be there. Settings and
    /// column families are those given so far; those of other column families are in `options`.
    ///
    /// Of what is left the newest version wins. Where something is missing that may be an older one, or one that was deleted: the report names
    /// every range of keys of which that may be, with the file. Every other key is as it was.
    ///
    /// ```
    /// # use outcrop::{Db, Env, SalvageOptions};
    /// # let env = Env::memory();
    /// # let db = Db::builder("/db").env(env.clone()).create_if_missing(true).open()?;
    /// # db.put("apple", "red")?;
    /// # db.close()?;
    /// let report = Db::builder("/db").env(env.clone()).salvage("/new", &SalvageOptions::default())?;
    /// for range in &report.doubtful {
    ///     println!("{range}");
    /// }
    /// let db = Db::builder("/new").env(env).open()?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`DbBuilder::repair`], and InvalidArgument if `to` has files or is within the damaged database. The new one is removed again
    /// then, as far as possible.
    pub fn salvage(self, to: impl AsRef<Path>, options: &SalvageOptions) -> Result<SalvageReport> {
        let objects = self.objects.clone();
        let (path, db_options, env, families) = self.into_parts()?;
        let places = (&*path, to.as_ref());
        caught("salvage", || salvage::salvage(places, db_options, env, families, objects, options))
    }

    /// The settings of the database as a whole so far.
    pub(crate) fn db_options(&self) -> &DbOptions {
        &self.options
    }

    /// The same, to be changed.
    pub(crate) fn db_options_mut(&mut self) -> &mut DbOptions {
        &mut self.options
    }

    /// Changes each column family that is known, "default" among them.
    pub(crate) fn with_families(mut self, change: impl Fn(&mut [ColumnFamilyDescriptor])) -> DbBuilder {
        change(std::slice::from_mut(self.default_mut()));
        change(&mut self.stored);
        change(&mut self.families);
        self
    }

    /// As [`DbBuilder::with_families`], each by itself, where that may fail.
    pub(crate) fn try_with_families(
        mut self,
        mut change: impl FnMut(&mut ColumnFamilyDescriptor) -> Result<()>,
    ) -> Result<DbBuilder> {
        self.default_mut();
        let mut families = self.default.iter_mut().chain(&mut self.stored).chain(&mut self.families);
        families.try_for_each(&mut change)?;
        Ok(self)
    }

    /// Where the time comes from.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.env.clock.clone()
    }

    /// The descriptor of "default", however it was named.
    fn default_mut(&mut self) -> &mut ColumnFamilyDescriptor {
        self.default.get_or_insert_with(|| ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY))
    }

    /// The arguments of `open`. "default" is in the list if anything was said of it.
    ///
    /// # Errors
    /// InvalidArgument naming what contradicts a memory budget.
    fn into_parts(self) -> Result<(PathBuf, DbOptions, Env, Vec<ColumnFamilyDescriptor>)> {
        let mut families: Vec<_> = self.default.into_iter().chain(self.stored).chain(self.families).collect();
        if self.block_cache.is_some() || self.objects.memory_budget.is_some() {
            if !families.iter().any(|family| family.name == DEFAULT_COLUMN_FAMILY) {
                families.push(ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY));
            }
            for family in &mut families {
                family.parts.block_cache = family.parts.block_cache.take().or(self.block_cache.clone());
            }
        }
        if let Some(budget) = &self.objects.memory_budget {
            self.objects.check_budget(&self.options)?;
            families.iter_mut().try_for_each(|family| budget.govern(family))?;
        }
        Ok((self.path, self.options, self.env, families))
    }
}

/// Questions and operations that need no open database.
impl Db {
    /// The names of the column families of the database at `path`, without opening it.
    ///
    /// # Errors
    /// IoError if it does not exist or cannot be read; Corruption naming the damaged place of its MANIFEST.
    pub fn list_column_families(path: impl AsRef<Path>) -> Result<Vec<String>> {
        Db::list_column_families_in(path, &Env::posix())
    }

    /// [`Db::list_column_families`] in the files of `env`.
    ///
    /// # Errors
    /// As there.
    pub fn list_column_families_in(path: impl AsRef<Path>, env: &Env) -> Result<Vec<String>> {
        outcrop_manifest::list_column_families(&*env.fs, path.as_ref())
    }

    /// The options in the newest OPTIONS file of the database at `path`.
    ///
    /// # Errors
    /// NotFound if there is none; InvalidArgument naming the line that does not parse.
    pub fn load_latest_options(path: impl AsRef<Path>) -> Result<LoadedOptions> {
        Db::load_latest_options_in(path, &Env::posix())
    }

    /// [`Db::load_latest_options`] in the files of `env`.
    ///
    /// # Errors
    /// As there.
    pub fn load_latest_options_in(path: impl AsRef<Path>, env: &Env) -> Result<LoadedOptions> {
        let dir = path.as_ref();
        let names = if env.fs.exists(dir)? { env.fs.list(dir)? } else { Vec::new() };
        let newest = names.into_iter().filter_map(|name| match file_name::parse(&name) {
            Some(FileKind::Options(number)) => Some((number, name)),
            _ => None,
        });
        let Some((_, name)) = newest.max() else {
            return Err(Error::new(ErrorKind::NotFound, format!("{}: no OPTIONS file", dir.display())));
        };
        let text = String::from_utf8_lossy(&env.fs.read_all(&dir.join(&name))?).into_owned();
        outcrop_options::file::parse(&text)
            .map_err(|error| error.within(dir.join(&name).display().to_string()))
    }

    /// The directories that the tables of the database at `path` are in, if its newest OPTIONS file has them as its own: a copy's names those of
    /// its source. `None`: in its own directory. For tools that have nobody to ask; nothing is written.
    ///
    /// # Errors
    /// NotSupported if tables are in other directories and nothing says in which, as of a database of RocksDB's (`docs/paths.md`).
    pub fn recorded_paths_in(path: impl AsRef<Path>, env: &Env) -> Result<Option<RecordedPaths>> {
        repair::elsewhere::recorded_paths(path.as_ref(), env)
    }

    /// Repairs the database at `path` under default settings: see [`DbBuilder::repair`].
    ///
    /// # Errors
    /// As there.
    pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
        Db::builder(path).repair(&RepairOptions::default())
    }

    /// Removes the database at `path`, which must not be open: every file in it that a database owns, then the directory if it is
    /// empty. Files of other names stay. No database is no error.
    ///
    /// # Errors
    /// IoError naming the LOCK file if it is open, or the file that cannot be removed: the rest may be gone. Try again.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        Db::destroy_in(path, &DbOptions::default(), &Env::posix())
    }

    /// [`Db::destroy`] in the files of `env`, of a database opened with `options`: they say where its WALs are, and in which `db_paths` its
    /// tables.
    ///
    /// # Errors
    /// As there. InvalidArgument, and nothing was removed, if one of these belongs to another database (`docs/paths.md`).
    pub fn destroy_in(path: impl AsRef<Path>, options: &DbOptions, env: &Env) -> Result<()> {
        open::destroy(path.as_ref(), options, env)
    }
}

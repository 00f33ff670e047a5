//! Opening a database for `outcrop ldb`: under its own OPTIONS file.

use super::LdbArguments;
use crate::wal_dir::{self, Purpose};
use outcrop::options::LoadedOptions;
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyHandle, ColumnFamilyOptions, ColumnFamilyParts, Db, DbOptions, Env,
    Error,
};
use outcrop_base::{Comparator, ErrorKind, builtin_merge};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Tables that are open at the same time while a database is read.
const OPEN_FILES: i32 = 256;

/// Flags about options.
#[derive(clap::Args, Default)]
#[command(rename_all = "snake_case")]
pub struct OptionArguments {
    /// Take options from the newest OPTIONS file. Default true.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    try_load_options: Option<bool>,
    /// Directory of the WALs, in place of the one in the OPTIONS file.
    #[arg(long)]
    pub(super) wal_dir: Option<PathBuf>,
}

impl LdbArguments {
    /// Opens it to write.
    pub(super) fn open(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        let env = Env::posix();
        let names = match Db::list_column_families_in(&self.db, &env) {
            Ok(names) => names,
            Err(error) if error.is_missing_file() && self.create_if_missing => vec!["default".to_string()],
            Err(error) => return Err(error),
        };
        let (options, families) = self.settings(&env, names, Purpose::Write)?;
        let options = DbOptions {
            create_if_missing: self.create_if_missing,
            error_if_exists: false,
            create_missing_column_families: false,
            ..options
        };
        let db = Db::builder(&self.db).options(options).env(env).column_families(families).open()?;
        self.named_family(db)
    }

    /// Opens it to read: tables are opened when they are needed, so that a damaged one hides no other.
    pub(super) fn open_to_read(&self) -> Result<(Db, ColumnFamilyHandle), Error> {
        let env = Env::posix();
        let names = Db::list_column_families_in(&self.db, &env)?;
        let (options, families) = self.settings(&env, names, Purpose::Read)?;
        let options = DbOptions { max_open_files: OPEN_FILES, ..options };
        self.named_family(
            Db::builder(&self.db).options(options).env(env).column_families(families).open_read_only()?,
        )
    }

    fn named_family(&self, db: Db) -> Result<(Db, ColumnFamilyHandle), Error> {
        let cf = db.column_family(&self.column_family).ok_or_else(|| {
            Error::invalid_argument(format!("column family {} does not exist", self.column_family))
        })?;
        Ok((db, cf))
    }

    /// The settings of the newest OPTIONS file, with WALs where they are, and the column families `names` with theirs, in the key order
    /// that the MANIFEST names; all as far as it is built in.
    fn settings(
        &self,
        env: &Env,
        names: Vec<String>,
        purpose: Purpose,
    ) -> Result<(DbOptions, Vec<ColumnFamilyDescriptor>), Error> {
        let LoadedOptions { mut db, families, .. } = self.stored_options(env)?;
        db.wal_dir = match &self.options.wal_dir {
            Some(dir) => Some(dir.clone()),
            None => wal_dir::locate(env, &self.db, db.wal_dir, purpose)?,
        };
        let orders = key_orders(env, &self.db);
        let mut loaded: BTreeMap<String, ColumnFamilyOptions> = families.into_iter().collect();
        let descriptor = |name: String| {
            let mut options = loaded.remove(&name).unwrap_or_default();
            options.merge_operator =
                options.merge_operator.filter(|name| builtin_merge::by_name(name).is_some());
            options.comparator = None;
            let comparator = orders.get(&name).cloned().unwrap_or_default();
            let parts = ColumnFamilyParts { comparator, ..ColumnFamilyParts::default() };
            ColumnFamilyDescriptor { name, options, parts }
        };
        Ok((db, names.into_iter().map(descriptor).collect()))
    }

    /// What the newest OPTIONS file says; defaults if there is none. One that cannot be read is an error: it may say that WALs are
    /// elsewhere.
    fn stored_options(&self, env: &Env) -> Result<LoadedOptions, Error> {
        if !self.options.try_load_options.unwrap_or(true) {
            return Ok(LoadedOptions::default());
        }
        match Db::load_latest_options_in(&self.db, env) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(LoadedOptions::default()),
            Err(error) => {
                Err(error.within("--try_load_options=false opens it without its OPTIONS file; it fails"))
            }
            loaded => loaded,
        }
    }
}

/// Built-in key orders by column family; a database that cannot be read has none, and opening it says why.
fn key_orders(env: &Env, db: &Path) -> BTreeMap<String, Comparator> {
    let recovered = outcrop_manifest::recover(&*env.fs, db, &|_| None, &|_| 64, false);
    let families = recovered.map_or_else(|_| Vec::new(), |recovered| recovered.column_families);
    let order_of =
        |name: Option<String>| name.and_then(|name| Comparator::by_name(&name)).unwrap_or_default();
    families.into_iter().map(|family| (family.name, order_of(family.comparator_name))).collect()
}

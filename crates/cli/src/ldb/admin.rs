//! `outcrop ldb` verbs about a database as a whole.

use super::LdbArguments;
use crate::inspect::open_table;
use crate::wal_dir::Purpose;
use outcrop::{
    ColumnFamilyDescriptor, ColumnFamilyParts, Db, DbBuilder, DbObjects, Env, Error, LogLevel, Logger,
    ReadOptions, RepairOptions,
};
use outcrop_base::{Comparator, ErrorKind, SeqNum};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Prints what a repair writes to LOG on standard error, as the tool does.
struct ToStandardError(LogLevel);

impl Logger for ToStandardError {
    fn level(&self) -> LogLevel {
        self.0
    }

    fn log(&self, _: LogLevel, text: &str) {
        eprintln!("{text}");
    }
}

impl LdbArguments {
    /// Prints what can be said of the database without having been there when it was used.
    pub(super) fn metrics(&self) -> Result<(), Error> {
        let (db, _) = self.open_to_read()?;
        print!("{}", db.metrics());
        Ok(())
    }

    /// A property, with its name before it: line by line where it is a map.
    /// Source: RocksDB `tools/ldb_cmd.cc`, `GetPropertyCommand::DoCommand`.
    pub(super) fn get_property(&self, name: &str) -> Result<(), Error> {
        let (db, cf) = self.open_all_to_read()?;
        if let Some(map) = db.property_map_cf(&cf, name) {
            for (key, value) in map {
                println!("{name}.{key}: {value}");
            }
            return Ok(());
        }
        let missing = || Error::new(ErrorKind::NotFound, format!("failed to get property: {name}"));
        let value = db.property_cf(&cf, name).ok_or_else(missing)?;
        println!("{name}: {value}");
        Ok(())
    }

    pub(super) fn list_column_families(&self) -> Result<(), Error> {
        let names = Db::list_column_families_in(self.dir()?, &Env::posix())?;
        println!("Column families in {}: \n{{{}}}", self.dir()?.display(), names.join(", "));
        Ok(())
    }

    pub(super) fn create_column_family(&self, name: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        let created = db.create_column_family(name);
        created.map_err(|error| error.within("Fail to create new column family"))?;
        println!("OK");
        drop(cf);
        db.close()
    }

    pub(super) fn drop_column_family(&self, name: &str) -> Result<(), Error> {
        let (db, cf) = self.open()?;
        let missing = || Error::invalid_argument(format!("column family: {name} doesn't exist in db."));
        let doomed = db.column_family(name).ok_or_else(missing)?;
        db.drop_column_family(&doomed).map_err(|error| error.within("Fail to drop column family"))?;
        println!("OK");
        drop((cf, doomed));
        db.close()
    }

    /// Opens the database and reads every row of every column family.
    pub(super) fn check_consistency(&self) -> Result<(), Error> {
        let (db, _) = self.open_to_read()?;
        for cf in db.column_families() {
            let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
            let mut iter = db.cursor_cf_with(&cf, &options)?;
            iter.seek_to_first();
            while iter.valid() {
                iter.next();
            }
            iter.status()?;
        }
        println!("OK");
        Ok(())
    }

    pub(super) fn compact(&self) -> Result<(), Error> {
        let bounds = self.bounds()?;
        let (db, cf) = self.open()?;
        db.compact_range_cf(
            &cf,
            bounds.iterate_lower_bound.as_deref(),
            bounds.iterate_upper_bound.as_deref(),
        )?;
        drop(cf);
        db.close()
    }

    pub(super) fn approximate_size(&self) -> Result<(), Error> {
        let bounds = self.bounds()?;
        let need = |key: Option<Vec<u8>>, name: &str| {
            key.ok_or_else(|| {
                Error::invalid_argument(format!("{name} must be specified for approxsize command"))
            })
        };
        let (from, to) = (need(bounds.iterate_lower_bound, "from")?, need(bounds.iterate_upper_bound, "to")?);
        let (db, cf) = self.open_to_read()?;
        let what = outcrop::SizeApproximation::default();
        let sizes = db.approximate_sizes_cf_with(&cf, &[(&from[..], &to[..])], what)?;
        println!("{}", sizes.first().copied().unwrap_or(0));
        Ok(())
    }

    /// Makes a database of what is left. Says on standard output what it kept, and on standard error what it lost.
    pub(super) fn repair(&self) -> Result<(), Error> {
        let (builder, repair) = self.damaged()?;
        let report = builder.repair(&repair)?;
        if self.verbose || !report.is_lossless() {
            eprint!("{report}");
        }
        println!("OK");
        Ok(())
    }

    /// A damaged database with what is known of its settings, and the settings of other column families.
    pub(super) fn damaged(&self) -> Result<(DbBuilder, RepairOptions), Error> {
        let (env, dir) = (Env::posix(), self.dir()?);
        // Names and settings as far as the OPTIONS file has them; of other column families those of "default".
        let names = self.stored_options(&env)?.families.into_iter().map(|(name, _)| name).collect();
        let level = if self.verbose { LogLevel::Info } else { LogLevel::Warn };
        let objects = DbObjects { logger: Some(Arc::new(ToStandardError(level))), ..DbObjects::default() };
        let (options, families) = self.settings(&env, names, "", Purpose::Write)?;
        // Without a MANIFEST only the tables say in which order keys are.
        let orders = orders_of_tables(&env, dir)?;
        let default = ColumnFamilyDescriptor::new("default");
        let mut families = families;
        if !families.iter().any(|family| family.name == default.name) {
            families.push(default);
        }
        for family in &mut families {
            if let Some(order) = orders.get(&family.name) {
                family.parts.comparator = order.clone();
            }
        }
        let mut template =
            families.iter().find(|family| family.name == "default").cloned().unwrap_or_default();
        template.parts = ColumnFamilyParts::default();
        let repair = RepairOptions { unknown_families: Some(template) };
        let builder = Db::builder(dir).options(options).env(env).objects(objects);
        Ok((builder.column_families(families), repair))
    }
}

/// Built-in orders of keys by column family, as tables have them that can be opened.
fn orders_of_tables(env: &Env, dir: &Path) -> Result<BTreeMap<String, Comparator>, Error> {
    let mut orders = BTreeMap::new();
    for name in env.fs.list(dir)?.iter().filter(|name| name.ends_with(".sst")) {
        let Ok(table) = open_table(env, &dir.join(name), SeqNum::MAX) else { continue };
        let properties = table.properties();
        if let Some(order) = Comparator::by_name(&properties.comparator_name) {
            orders.insert(properties.column_family_name.clone(), order);
        }
    }
    Ok(orders)
}

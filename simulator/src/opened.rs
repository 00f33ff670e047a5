//! An open database of each kind: without transactions, with those that lock, with those that are checked at the end.

use crate::disk::Disk;
use crate::harness::descriptor;
use crate::plan::{Cycle, Transactions};
use crate::races;
use crate::surroundings::{SimulatedClock, SimulatedThreads};
use outcrop::*;
use outcrop_env::FileSystem;
use outcrop_env::random::SeededRandom;
use outcrop_pingpong::history::{FAMILIES, Rows};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where the database is.
pub const DATABASE: &str = "/db";

/// Rows of a column family of its own.
pub type FamilyRows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Makes environments of a simulation.
#[derive(Clone)]
pub struct Surroundings {
    /// The disk.
    pub disk: Disk,
    /// The clock.
    pub clock: Arc<SimulatedClock>,
    /// Random numbers of the engine.
    pub random: Arc<SeededRandom>,
}

impl Surroundings {
    /// Of a seed.
    pub fn new(seed: u64) -> Surroundings {
        Surroundings {
            disk: Disk::default(),
            clock: Arc::default(),
            random: Arc::new(SeededRandom::new(seed)),
        }
    }

    /// With the disk as it is.
    pub fn env(&self) -> Env {
        self.env_on(Arc::new(self.disk.clone()))
    }

    /// With the same files, of which all can be read and written at once, without faults.
    pub fn calm_env(&self) -> Env {
        self.env_on(Arc::new(self.disk.memory().clone()))
    }

    fn env_on(&self, fs: Arc<dyn FileSystem>) -> Env {
        Env {
            fs,
            clock: self.clock.clone(),
            random: self.random.clone(),
            threads: Arc::new(SimulatedThreads),
            scheduler: Arc::default(),
        }
    }

    /// How to open the database in `dir`, or what is a copy of it: with all of its column families.
    pub fn builder(&self, dir: &Path, env: Env, cycle: &Cycle) -> Result<DbBuilder> {
        let mut families: Vec<_> =
            FAMILIES.iter().zip(&cycle.families).map(|(name, options)| descriptor(name, options)).collect();
        if cycle.drawn.families && self.disk.memory().exists(&dir.join("CURRENT"))? {
            let names = Db::list_column_families_in(dir, &self.calm_env())?;
            let more = names.iter().filter(|name| !FAMILIES.contains(&name.as_str()));
            families.extend(more.map(|name| descriptor(name, &cycle.families[1])));
        }
        Ok(Db::builder(dir).options(cycle.db.clone()).env(env).column_families(families))
    }

    /// Opens the database.
    pub fn open(&self, cycle: &Cycle) -> Result<Opened> {
        let mut builder = self.builder(Path::new(DATABASE), self.env(), cycle)?;
        if cycle.drawn.listener {
            builder = builder.listener(Arc::new(races::Background));
        }
        Ok(match cycle.drawn.transactions {
            Transactions::None => Opened::Plain(builder.open()?),
            Transactions::Locking => {
                Opened::Locking(TransactionDb::open_with(builder, TransactionDbOptions::default())?)
            }
            Transactions::Optimistic(validate_policy) => {
                // Few buckets, so that keys have some in common.
                let options = OptimisticTransactionDbOptions {
                    validate_policy,
                    occ_lock_buckets: 16,
                    ..OptimisticTransactionDbOptions::default()
                };
                Opened::Optimistic(OptimisticTransactionDb::open_with(builder, options)?)
            }
        })
    }
}

/// An open database.
pub enum Opened {
    /// Without transactions.
    Plain(Db),
    /// With transactions that lock keys.
    Locking(TransactionDb),
    /// With transactions that are checked when they are committed.
    Optimistic(OptimisticTransactionDb),
}

impl Opened {
    /// The database itself.
    pub fn db(&self) -> &Db {
        match self {
            Opened::Plain(db) => db,
            Opened::Locking(db) => db.db(),
            Opened::Optimistic(db) => db.db(),
        }
    }

    /// Closes it. Nobody else has it any more.
    ///
    /// # Errors
    /// As [`Db::close`].
    pub fn close(self) -> Result<()> {
        let db = match self {
            Opened::Plain(db) => return db.close(),
            Opened::Locking(db) => db.db().clone(),
            Opened::Optimistic(db) => db.db().clone(),
        };
        Arc::into_inner(db).expect("nobody else has it").close()
    }

    /// Its column families that are always there.
    pub fn families(&self) -> Vec<ColumnFamilyHandle> {
        FAMILIES.iter().map(|name| self.db().column_family(name).expect("it was opened with them")).collect()
    }

    /// Its other column families, by name.
    pub fn more_families(&self) -> Result<BTreeMap<String, FamilyRows>> {
        more_families(self.db())
    }

    /// Creates a column family.
    pub fn create(&self, family: &ColumnFamilyDescriptor) -> Result<ColumnFamilyHandle> {
        match self {
            Opened::Plain(db) => db.create_column_family(family.clone()),
            Opened::Locking(db) => db.create_column_family(family),
            Opened::Optimistic(db) => db.create_column_family(family),
        }
    }

    /// Drops a column family.
    pub fn drop_family(&self, family: &ColumnFamilyHandle) -> Result<()> {
        match self {
            Opened::Locking(db) => db.drop_column_family(family),
            Opened::Plain(_) | Opened::Optimistic(_) => self.db().drop_column_family(family),
        }
    }
}

/// All rows of one column family, forward.
pub fn rows_of_family(db: &Db, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<FamilyRows> {
    let mut rows = FamilyRows::new();
    let mut cursor = db.cursor_cf_with(cf, options)?;
    cursor.seek_to_first();
    while cursor.valid() {
        rows.insert(cursor.key().to_vec(), cursor.value().to_vec());
        cursor.next();
    }
    cursor.status()?;
    Ok(rows)
}

/// All rows of the column families that are always there.
pub fn rows_of(db: &Db, families: &[ColumnFamilyHandle], options: &ReadOptions) -> Result<Rows> {
    let mut rows = Rows::new();
    for (family, cf) in families.iter().enumerate() {
        rows.extend(rows_of_family(db, cf, options)?.into_iter().map(|(key, value)| ((family, key), value)));
    }
    Ok(rows)
}

/// The rows of all other column families, by name.
pub fn more_families(db: &Db) -> Result<BTreeMap<String, FamilyRows>> {
    let more = db.column_families().into_iter().filter(|cf| !FAMILIES.contains(&&*cf.name()));
    more.map(|cf| Ok((cf.name().to_string(), rows_of_family(db, &cf, &ReadOptions::default())?))).collect()
}

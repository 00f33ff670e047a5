//! A database whose values expire.

use super::batch::stamped_batch;
use super::filter::{TtlFilter, TtlFilterFactory};
use super::merge::TtlMergeOperator;
use super::rows::{TtlRows, value_of};
use super::stamp::{Ttl, now, stamped};
use crate::batch::codec::WriteBatch;
use crate::builder::DbBuilder;
use crate::column_family::{ColumnFamilyDescriptor, ColumnFamilyHandle};
use crate::db::Db;
use crate::forms::shorter_forms;
use crate::in_force::resolve_objects;
use crate::read::key_range::KeyRange;
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use crate::write::options::WriteOptions;
use outcrop_base::{CfId, Result};
use outcrop_env::Clock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A database whose values expire some time after they were written; RocksDB's `DBWithTTL`, whose files it shares.
///
/// Each value is stored with the second it was written in. A compaction drops those that are older than the TTL of their column
/// family; **until one meets them they are still read**, also after the time is over, and a flush drops nothing. A value
/// that a merge operator makes is as old as that moment; operands do not expire before they are merged. TTLs are not stored: the one
/// given at an opening holds for all data.
///
/// Values must be written and read through this object. For all that has no values (deletions, flushes, compactions,
/// snapshots, properties) there is [`TtlDb::db`]; the values that it reads end with the stamp: [`crate::split_ttl_value`]. The application's compaction filter and
/// merge operator, in the builder's descriptors, see values without stamps.
///
/// ```
/// use outcrop::{Db, Env, TtlDb};
///
/// let builder = Db::builder("/db").env(Env::memory()).create_if_missing(true);
/// let sessions = TtlDb::open(builder, 3600)?; // An hour.
/// sessions.put("ann", "token")?;
/// assert_eq!(sessions.get("ann")?.as_deref(), Some(&b"token"[..]));
/// sessions.db().delete("ann")?;
/// assert!(sessions.get("ann")?.is_none());
/// # outcrop::Result::Ok(())
/// ```
///
/// # Errors of reads
/// Beside those of [`Db`]: Corruption if a value has no stamp, or one from before 2013. It was written past this layer.
///
/// Source: RocksDB `include/rocksdb/utilities/db_ttl.h`.
pub struct TtlDb {
    db: Arc<Db>,
    clock: Arc<dyn Clock>,
    /// By the id of the column family.
    ttls: Mutex<BTreeMap<CfId, Arc<Ttl>>>,
}

/// How `descriptor` stores values that live `ttl`.
fn wrap(descriptor: &mut ColumnFamilyDescriptor, ttl: &Arc<Ttl>, clock: &Arc<dyn Clock>) -> Result<()> {
    // The merge operator may be known by name only.
    resolve_objects(descriptor)?;
    let (parts, ttl) = (&mut descriptor.parts, ttl.clone());
    match parts.compaction_filter.take() {
        Some(user) => {
            let filter = TtlFilter { ttl, clock: clock.clone(), user: Some(user) };
            parts.compaction_filter = Some(Arc::new(filter));
        }
        None => {
            let user = parts.compaction_filter_factory.take();
            let factory = TtlFilterFactory { ttl, clock: clock.clone(), user };
            parts.compaction_filter_factory = Some(Arc::new(factory));
        }
    }
    if let Some(user) = parts.merge_operator.take() {
        parts.merge_operator = Some(Arc::new(TtlMergeOperator { user, clock: clock.clone() }));
    }
    Ok(())
}

impl TtlDb {
    /// Opens what `builder` says; values of all its column families live `ttl` seconds. 0 and less: for ever.
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open(builder: DbBuilder, ttl: i32) -> Result<TtlDb> {
        TtlDb::open_with(builder, |_| ttl)
    }

    /// As [`TtlDb::open`]; values of the column family called NAME live `ttl(NAME)` seconds.
    ///
    /// # Errors
    /// As [`DbBuilder::open`].
    pub fn open_with(builder: DbBuilder, ttl: impl Fn(&str) -> i32) -> Result<TtlDb> {
        TtlDb::opened(builder, ttl, DbBuilder::open)
    }

    /// As [`TtlDb::open`], for reading only. Nothing expires, as nothing is compacted.
    ///
    /// # Errors
    /// As [`DbBuilder::open_read_only`].
    pub fn open_read_only(builder: DbBuilder) -> Result<TtlDb> {
        TtlDb::opened(builder, |_| 0, DbBuilder::open_read_only)
    }

    fn opened(
        builder: DbBuilder,
        ttl: impl Fn(&str) -> i32,
        open: impl FnOnce(DbBuilder) -> Result<Db>,
    ) -> Result<TtlDb> {
        let clock = builder.clock();
        let mut named = BTreeMap::new();
        let builder = builder.try_with_families(|descriptor| {
            let ttl = Arc::new(Ttl::new(ttl(&descriptor.name)));
            wrap(descriptor, &ttl, &clock)?;
            named.insert(descriptor.name.clone(), ttl);
            Ok(())
        })?;
        let db = Arc::new(open(builder)?);
        let of = |cf: &ColumnFamilyHandle| Some((cf.id(), named.get(cf.name())?.clone()));
        let ttls = db.column_families().iter().filter_map(of).collect();
        Ok(TtlDb { db, clock, ttls: Mutex::new(ttls) })
    }

    /// The database below, for all that neither reads nor writes values. Those that it reads end with the stamp, and those that it writes
    /// have none, so that they cannot be read through this object.
    pub fn db(&self) -> &Arc<Db> {
        &self.db
    }

    /// Creates a column family whose values live `ttl` seconds, as [`Db::create_column_family`]; 0 and less: for ever.
    ///
    /// # Errors
    /// As there.
    pub fn create_column_family(
        &self,
        family: impl Into<ColumnFamilyDescriptor>,
        ttl: i32,
    ) -> Result<ColumnFamilyHandle> {
        let mut descriptor = family.into();
        let ttl = Arc::new(Ttl::new(ttl));
        wrap(&mut descriptor, &ttl, &self.clock)?;
        let handle = self.db.create_column_family(descriptor)?;
        self.ttls.lock().insert(handle.id(), ttl);
        Ok(handle)
    }

    /// How many seconds values of `cf` live; 0 and less: for ever. `None` if it is none of this database's.
    pub fn ttl(&self, cf: &ColumnFamilyHandle) -> Option<i32> {
        self.ttls.lock().get(&cf.id()).map(|ttl| ttl.get())
    }

    /// Values of `cf` live `ttl` seconds from now on, those that are there too; compactions that run take it up. Not stored.
    pub fn set_ttl(&self, cf: &ColumnFamilyHandle, ttl: i32) {
        if let Some(known) = self.ttls.lock().get(&cf.id()) {
            known.set(ttl);
        }
    }

    fn default_family(&self) -> &ColumnFamilyHandle {
        self.db.default_column_family()
    }

    /// `value` with the time at its end.
    fn stamped(&self, value: &[u8]) -> Vec<u8> {
        stamped(value, now(&*self.clock))
    }

    shorter_forms! {
        /// Sets `key` to `value`, as [`Db::put`].
        ///
        /// # Errors
        /// As there.
        TtlDb: put, put_cf, put_with
            => put_cf_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`TtlDb::put`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn put_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.db.put_cf_with(cf, key, self.stamped(value.as_ref()), options)
    }

    shorter_forms! {
        /// Adds `operand` to `key`, as [`Db::merge`].
        ///
        /// # Errors
        /// As there.
        TtlDb: merge, merge_cf, merge_with
            => merge_cf_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`TtlDb::merge`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn merge_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.db.merge_cf_with(cf, key, self.stamped(operand.as_ref()), options)
    }

    /// Commits what `batch` holds, which it keeps as it is, as [`Db::write`].
    ///
    /// # Errors
    /// As there; NotSupported for entities.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// [`TtlDb::write`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn write_with(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.db.write_with(&mut stamped_batch(batch, now(&*self.clock))?, options)
    }

    shorter_forms! {
        /// The value of `key`, as [`Db::get`].
        ///
        /// # Errors
        /// [Those of reads](#errors-of-reads).
        TtlDb: get, get_cf, get_with
            => get_cf_with(&self, key: impl AsRef<[u8]>; ReadOptions) -> Result<Option<PinnedValue>>
    }

    /// [`TtlDb::get`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        TtlDb::without_stamp(self.db.get_cf_with(cf, key, options))
    }

    /// The result of a read of [`TtlDb::db`], without the time at the end of its value.
    ///
    /// # Errors
    /// [Those of reads](#errors-of-reads).
    pub fn without_stamp(read: Result<Option<PinnedValue>>) -> Result<Option<PinnedValue>> {
        read?.map(|stored| value_of(&stored)).transpose()
    }

    /// The values of `keys`, as [`Db::multi_get`].
    ///
    /// # Errors
    /// [Those of reads](#errors-of-reads), each by itself.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedValue>>> {
        without_stamps(self.db.multi_get(keys))
    }

    /// [`TtlDb::multi_get`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[K],
    ) -> Vec<Result<Option<PinnedValue>>> {
        without_stamps(self.db.multi_get_cf(cf, keys))
    }

    /// [`TtlDb::multi_get`] under `options`. Takes slices, so that none need be collected.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_with(&self, keys: &[&[u8]], options: &ReadOptions) -> Vec<Result<Option<PinnedValue>>> {
        without_stamps(self.db.multi_get_with(keys, options))
    }

    /// [`TtlDb::multi_get`] in column family `cf` under `options`. Takes slices, so that none need be collected.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        without_stamps(self.db.multi_get_cf_with(cf, keys, options))
    }

    shorter_forms! {
        /// All rows, in key order.
        TtlDb: iter, iter_cf, iter_with => iter_cf_with(&self; ReadOptions) -> TtlRows
    }

    /// [`TtlDb::iter`] in column family `cf` under `options`, whose bounds hold.
    pub fn iter_cf_with(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> TtlRows {
        TtlRows::new(self.db.iter_cf_with(cf, options))
    }

    shorter_forms! {
        /// The rows of a range of keys, as [`Db::range`].
        TtlDb: range, range_cf, range_with => range_cf_with(&self, range: impl KeyRange; ReadOptions) -> TtlRows
    }

    /// [`TtlDb::range`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn range_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        range: impl KeyRange,
        options: &ReadOptions,
    ) -> TtlRows {
        TtlRows::new(self.db.range_cf_with(cf, range, options))
    }

    shorter_forms! {
        /// The rows whose keys begin with `prefix`, as [`Db::prefix`].
        TtlDb: prefix, prefix_cf, prefix_with => prefix_cf_with(&self, prefix: impl AsRef<[u8]>; ReadOptions) -> TtlRows
    }

    /// [`TtlDb::prefix`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn prefix_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        prefix: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> TtlRows {
        TtlRows::new(self.db.prefix_cf_with(cf, prefix, options))
    }
}

fn without_stamps(read: Vec<Result<Option<PinnedValue>>>) -> Vec<Result<Option<PinnedValue>>> {
    read.into_iter().map(TtlDb::without_stamp).collect()
}

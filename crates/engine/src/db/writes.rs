//! Writes: each in the default column family and in another, under default options and under others.

use super::Db;
use crate::batch::codec::{Op, WriteBatch, check_sizes};
use crate::batch::scratch::with_scratch_batch;
use crate::batch::stamps::check_stamped;
use crate::column_family::enables_timestamp;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::core::Core;
use crate::forms::shorter_forms;
use crate::write::options::WriteOptions;
use outcrop_base::{Error, Result, SeqNum, wide_columns};

/// # Writing
///
/// When a write returns, every read that begins afterwards sees it. It survives a crash of the process; whether it survives one of the machine,
/// [`WriteOptions::sync`] says.
///
/// Each write has four forms: `put(key, value)` in the default column family, `put_cf(&cf, key, value)` in another, and both with
/// options last: `put_with`, `put_cf_with`.
///
/// # Errors of writes
/// All of them fail, with nothing written, by:
/// - InvalidArgument: key or value is longer than 4 GiB, the column family was dropped or is of another database, or the options exclude
///   each other.
/// - Incomplete: `no_slowdown` is set and the write would have to wait. Try again later.
/// - ShutdownInProgress: the database is closing. NotSupported: it was opened to be read.
/// - Any other: an earlier write, flush or compaction failed, or this one did, and writes are refused until the database has recovered by
///   itself or by [`Db::resume`]. Of the write that failed nothing is visible; after a crash it may be there.
impl Db {
    shorter_forms! {
        /// Sets `key` to `value`.
        ///
        /// # Errors
        /// [Those of all writes](#errors-of-writes).
        Db: put, put_cf, put_with
            => put_cf_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::put`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all writes](#errors-of-writes).
    #[inline]
    pub fn put_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.put_slices(cf, key.as_ref(), value.as_ref(), options)
    }

    #[inline]
    pub(super) fn default_family(&self) -> &ColumnFamilyHandle {
        &self.default_cf
    }

    /// The condition of every write to `cf`.
    #[inline]
    fn check_alive(&self, cf: &ColumnFamilyHandle) -> Result<()> {
        self.core.ctx.check_owns(cf)?;
        if !cf.is_plain() {
            check_dropped(cf)?;
            return Err(enables_timestamp(cf));
        }
        Ok(())
    }

    fn put_slices(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        check_sizes(key, value)?;
        self.check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.put_id(cf.id(), key, value),
            |batch| self.core.commit.write(options, batch),
        )
    }

    shorter_forms! {
        /// Deletes `key`; that it does not exist is no error.
        ///
        /// # Errors
        /// [Those of all writes](#errors-of-writes).
        Db: delete, delete_cf, delete_with
            => delete_cf_with(&self, key: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::delete`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all writes](#errors-of-writes).
    pub fn delete_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        check_sizes(key, &[])?;
        self.check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.delete_id(cf.id(), key),
            |batch| self.core.commit.write(options, batch),
        )
    }

    shorter_forms! {
        /// Deletes the one earlier put of `key`: see [`WriteBatch::single_delete`] for what the caller promises.
        ///
        /// # Errors
        /// [Those of all writes](#errors-of-writes).
        Db: single_delete, single_delete_cf, single_delete_with
            => single_delete_cf_with(&self, key: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::single_delete`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all writes](#errors-of-writes).
    pub fn single_delete_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        check_sizes(key, &[])?;
        self.check_alive(cf)?;
        with_scratch_batch(
            |batch| batch.single_delete_id(cf.id(), key),
            |batch| self.core.commit.write(options, batch),
        )
    }

    shorter_forms! {
        /// Deletes every key from `begin` up to `end`, exclusive, in one write whatever the number of keys.
        ///
        /// # Errors
        /// InvalidArgument if `end` comes before `begin`; [those of all writes](#errors-of-writes).
        Db: delete_range, delete_range_cf, delete_range_with
            => delete_range_cf_with(&self, begin: impl AsRef<[u8]>, end: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::delete_range`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn delete_range_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        check_sizes(begin, end)?;
        self.check_alive(cf)?;
        check_range(cf, begin, end)?;
        with_scratch_batch(
            |batch| batch.delete_range_id(cf.id(), begin, end),
            |batch| self.core.commit.write(options, batch),
        )
    }

    shorter_forms! {
        /// Adds `operand` to `key`, for the column family's merge operator.
        ///
        /// # Errors
        /// NotSupported if the column family has no merge operator; of a batch it is InvalidArgument, as in RocksDB.
        /// [Those of all writes](#errors-of-writes).
        Db: merge, merge_cf, merge_with
            => merge_cf_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::merge`] in column family `cf` under `options`.
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
        let (key, operand) = (key.as_ref(), operand.as_ref());
        check_sizes(key, operand)?;
        self.check_alive(cf)?;
        if cf.merge_operator.is_none() {
            return Err(Error::not_supported("Provide a merge_operator when opening DB"));
        }
        with_scratch_batch(
            |batch| batch.merge_id(cf.id(), key, operand),
            |batch| self.core.commit.write(options, batch),
        )
    }

    shorter_forms! {
        /// Sets `key` to a wide-column entity: a set of named columns, (name, value) each. The column with the empty name is what
        /// readers of plain values see.
        ///
        /// # Errors
        /// InvalidArgument if a name comes twice, or the columns together are longer than 4 GiB; [those of all writes](#errors-of-writes).
        Db: put_entity, put_entity_cf, put_entity_with
            => put_entity_cf_with(&self, key: impl AsRef<[u8]>, columns: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)]; WriteOptions) -> Result<()>
    }

    /// [`Db::put_entity`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn put_entity_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        columns: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)],
        options: &WriteOptions,
    ) -> Result<()> {
        check_sizes(key.as_ref(), &[])?;
        self.check_alive(cf)?;
        let mut batch = WriteBatch::new();
        batch.put_entity_cf(cf, key, columns)?;
        self.core.commit.write(options, &mut batch)
    }

    /// Commits `batch`: all its writes become visible, and after a crash are there, together.
    ///
    /// On return, also after an error, the batch holds the writes it held before, in the same order; the sequence number in its header
    /// ([`WriteBatch::as_bytes`]) is what the engine left there. Write it again, add to it, or [`WriteBatch::clear`] it: that keeps its
    /// memory. An empty batch writes nothing.
    ///
    /// # Errors
    /// InvalidArgument if it names a column family that does not exist, merges where there is no merge operator, or has a
    /// range that ends before it begins; [those of all writes](#errors-of-writes). Nothing is then visible.
    pub fn write(&self, batch: &mut WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::default())
    }

    /// [`Db::write`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn write_with(&self, batch: &mut WriteBatch, options: &WriteOptions) -> Result<()> {
        check_batch(&self.core, batch, options)?;
        self.core.commit.write(options, batch)
    }

    /// Commits `batch`, if `admit` lets it in: that is asked when no other write can come between, with the sequence number of the last
    /// write, and before anything of the batch is written. It may read the database, and must not write to it; other writers wait for
    /// it.
    ///
    /// # Errors
    /// As [`Db::write`]; the error of `admit`. Nothing is then written, and the batch holds what it held.
    ///
    /// Source: RocksDB `DB::WriteWithCallback`.
    pub fn write_if(
        &self,
        batch: &mut WriteBatch,
        options: &WriteOptions,
        admit: impl FnOnce(SeqNum) -> Result<()>,
    ) -> Result<()> {
        check_batch(&self.core, batch, options)?;
        self.core.commit.write_if(options, batch, |group| admit(group.last_seq))
    }
}

/// Refuses a column family that was dropped.
#[cold]
pub(super) fn check_dropped(cf: &ColumnFamily) -> Result<()> {
    match cf.is_dropped() {
        true => Err(Error::invalid_argument(format!("column family {} was dropped", cf.name()))),
        false => Ok(()),
    }
}

fn check_range(cf: &ColumnFamily, begin: &[u8], end: &[u8]) -> Result<()> {
    if cf.comparator.compare(begin, end).is_gt() {
        return Err(Error::invalid_argument("end key comes before start key"));
    }
    Ok(())
}

fn needs_merge_operator(cf: &ColumnFamilyHandle) -> String {
    format!("column family {}: Merge requires `ColumnFamilyOptions::merge_operator != nullptr`", cf.name())
}

fn check_merge(cf: &ColumnFamilyHandle) -> Result<()> {
    if cf.merge_operator.is_none() {
        return Err(Error::invalid_argument(needs_merge_operator(cf)));
    }
    Ok(())
}

/// Checks that every column family a batch names exists and can take its records.
pub(crate) fn check_batch(core: &Core, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
    let registry = core.registry.load();
    let (mut stamped, mut all) = (0, true);
    for record in batch.iter() {
        let record = record?;
        let Some(cf) = registry.get(&record.cf).filter(|cf| cf.is_plain()) else {
            if let Some(cf) = registry.get(&record.cf).filter(|cf| !cf.is_dropped()) {
                check_stamped(cf, &record.op)?;
                stamped += 1;
                if let Op::PutEntity { entity, .. } = record.op {
                    wide_columns::decode(entity)?;
                }
                continue;
            }
            if options.ignore_missing_column_families {
                all = false;
                continue;
            }
            return Err(Error::invalid_argument(format!(
                "the write batch names column family {}, which does not exist",
                record.cf
            )));
        };
        match record.op {
            Op::Merge { .. } => check_merge(cf)?,
            Op::DeleteRange { begin, end } => check_range(cf, begin, end)?,
            Op::PutEntity { entity, .. } => {
                wide_columns::decode(entity)?;
            }
            _ => {}
        }
    }
    batch.check_stamps(stamped, all)
}

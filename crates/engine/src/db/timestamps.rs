//! Writes and reads of column families whose keys have user-defined timestamps, and how far back their history reaches.

use super::Db;
use super::writes::check_dropped;
use crate::batch::codec::{WriteBatch, check_sizes};
use crate::batch::scratch::with_scratch_batch;
use crate::batch::stamps::no_timestamps;
use crate::column_family::ColumnFamilyHandle;
use crate::compaction::manual;
use crate::history;
use crate::read::options::ReadOptions;
use crate::read::stamped;
use crate::read::value::PinnedValue;
use crate::write::options::WriteOptions;
use outcrop_base::timestamp::TIMESTAMP_LEN;
use outcrop_base::{Error, Result, Timestamp};
use outcrop_monitor::Watch;

/// # User-defined timestamps
///
/// A column family whose comparator has timestamps ([`Comparator::bytewise_with_timestamps`](crate::Comparator::bytewise_with_timestamps), or
/// one of the application's) keeps versions of each key. Every write names the timestamp from which its version holds, every read the one it
/// reads at: [`ReadOptions::timestamp`]. Writes of a key must come in the order of their timestamps. Iterators, cursors, snapshots and batches
/// work as in other column families; merges, range deletions and transactions are refused. See `docs/timestamps.md`.
///
/// # Errors of writes and reads with timestamps
/// InvalidArgument if the column family has none, or, of methods without a timestamp, if it has them; [those of all
/// writes](#errors-of-writes); [those of all reads](#errors-of-reads).
impl Db {
    /// Sets `key` to `value` from `timestamp` on.
    ///
    /// ```
    /// use outcrop::{ColumnFamilyDescriptor, Comparator, Db, Env, ReadOptions};
    ///
    /// let prices = ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    /// let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(prices).open()?;
    /// db.put_at("apple", 10.into(), "3")?;
    /// db.put_at("apple", 20.into(), "4")?;
    /// let at = |time: u64| ReadOptions::at_timestamp(time.into());
    /// assert_eq!(db.get_with("apple", &at(15))?.as_deref(), Some(&b"3"[..]));
    /// assert_eq!(db.iter_with(&at(20)).count(), 1);
    /// assert!(db.get("apple").is_err()); // At which time?
    /// # outcrop::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
    pub fn put_at(&self, key: impl AsRef<[u8]>, timestamp: Timestamp, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf_at_with(&self.default_cf, key, timestamp, value, &WriteOptions::default())
    }

    /// [`Db::put_at`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn put_cf_at(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_cf_at_with(cf, key, timestamp, value, &WriteOptions::default())
    }

    /// [`Db::put_at`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn put_cf_at_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.write_at(cf, key, value, options, |batch| batch.put_id_at(cf.id(), key, timestamp, value))
    }

    /// Deletes `key` from `timestamp` on: reads at older ones see it still. That it does not exist is no error.
    ///
    /// # Errors
    /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
    pub fn delete_at(&self, key: impl AsRef<[u8]>, timestamp: Timestamp) -> Result<()> {
        self.delete_cf_at_with(&self.default_cf, key, timestamp, &WriteOptions::default())
    }

    /// [`Db::delete_at`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn delete_cf_at(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
    ) -> Result<()> {
        self.delete_cf_at_with(cf, key, timestamp, &WriteOptions::default())
    }

    /// [`Db::delete_at`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn delete_cf_at_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.write_at(cf, key, &[], options, |batch| batch.delete_id_at(cf.id(), key, timestamp))
    }

    /// Deletes the one earlier put of `key` from `timestamp` on: see [`WriteBatch::single_delete`] for what the caller promises.
    ///
    /// # Errors
    /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
    pub fn single_delete_at(&self, key: impl AsRef<[u8]>, timestamp: Timestamp) -> Result<()> {
        self.single_delete_cf_at_with(&self.default_cf, key, timestamp, &WriteOptions::default())
    }

    /// [`Db::single_delete_at`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn single_delete_cf_at(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
    ) -> Result<()> {
        self.single_delete_cf_at_with(cf, key, timestamp, &WriteOptions::default())
    }

    /// [`Db::single_delete_at`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn single_delete_cf_at_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
        options: &WriteOptions,
    ) -> Result<()> {
        let key = key.as_ref();
        self.write_at(cf, key, &[], options, |batch| batch.single_delete_id_at(cf.id(), key, timestamp))
    }

    fn write_at(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        value: &[u8],
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch),
    ) -> Result<()> {
        check_sizes(key, value)?;
        let room = key.len() + TIMESTAMP_LEN;
        if room > u32::MAX as usize - 8 {
            return Err(Error::invalid_argument(format!("key of {room} bytes is longer than 4 GiB")));
        }
        self.core.ctx.check_owns(cf)?;
        check_dropped(cf)?;
        if !cf.has_timestamps() {
            return Err(no_timestamps(cf));
        }
        with_scratch_batch(fill, |batch| self.core.commit.write(options, batch))
    }

    /// The value of `key` at [`ReadOptions::timestamp`], and the timestamp of the version that holds there.
    ///
    /// # Errors
    /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
    pub fn get_version(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<(PinnedValue, Timestamp)>> {
        self.get_version_cf(&self.default_cf, key, options)
    }

    /// [`Db::get_version`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn get_version_cf(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<(PinnedValue, Timestamp)>> {
        let sources = cf.superversion.load();
        let view = self.view(cf, &sources, options, Watch::OFF)?;
        if !cf.has_timestamps() {
            return Err(no_timestamps(cf));
        }
        stamped::get(&view, key.as_ref())
    }

    /// [`Db::get_version_cf`] of each of `keys`, all as of one moment.
    ///
    /// # Errors
    /// Each key has its own: as there.
    pub fn multi_get_versions_cf(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<(PinnedValue, Timestamp)>>> {
        let sources = cf.superversion.load();
        let view = self.view(cf, &sources, options, Watch::OFF);
        let view = view.and_then(|view| match cf.has_timestamps() {
            true => Ok(view),
            false => Err(no_timestamps(cf)),
        });
        match view {
            Ok(view) => keys.iter().map(|key| stamped::get(&view, key)).collect(),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Lets go of history: of versions of `cf` with timestamps below `low`, compactions keep the newest of each key, from now on. Durable on
    /// return. Reads at older timestamps fail once some versions may be gone: after the next flush or compaction of the column family.
    ///
    /// # Errors
    /// InvalidArgument if `cf` has no timestamps, or the low is higher already; TryAgain if another thread raises it higher meanwhile; those of
    /// writing the MANIFEST.
    ///
    /// Source: RocksDB `DB::IncreaseFullHistoryTsLow`.
    pub fn increase_full_history_low(&self, cf: &ColumnFamilyHandle, low: Timestamp) -> Result<()> {
        self.core.ctx.check_owns(cf)?;
        self.core.versions.refuse_if_read_only_or_closed()?;
        history::increase_low(&self.core.versions, cf, low)
    }

    /// The timestamp that [`Db::increase_full_history_low`] set; `None` if it never did.
    ///
    /// # Errors
    /// InvalidArgument if `cf` has no timestamps.
    ///
    /// Source: RocksDB `DB::GetFullHistoryTsLow`.
    pub fn full_history_low(&self, cf: &ColumnFamilyHandle) -> Result<Option<Timestamp>> {
        self.core.ctx.check_owns(cf)?;
        history::low_of(cf)
    }

    /// Rewrites all tables of `cf` without the versions whose timestamps are above `newest`: as if they had never been written.
    ///
    /// # Errors
    /// InvalidArgument if `cf` has no timestamps; those of [`Db::compact_range`].
    pub(crate) fn trim_history(&self, cf: &ColumnFamilyHandle, newest: Timestamp) -> Result<()> {
        if !cf.has_timestamps() {
            return Err(no_timestamps(cf));
        }
        manual::trim_history(&self.core, cf, newest)
    }
}

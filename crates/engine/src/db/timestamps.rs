//! Writes and reads of column families whose keys have user-defined timestamps, and how far back their history reaches.

use super::Db;
use super::writes::check_dropped;
use crate::batch::codec::{WriteBatch, check_sizes};
use crate::batch::scratch::with_scratch_batch;
use crate::column_family::ColumnFamilyHandle;
use crate::column_family::no_timestamps;
use crate::compaction::manual;
use crate::forms::shorter_forms;
use crate::history;
use crate::read::counts;
use crate::read::options::ReadOptions;
use crate::read::value::PinnedValue;
use crate::read::view::ReadView;
use crate::read::{stamped, tier};
use crate::superversion::SuperVersion;
use crate::write::options::WriteOptions;
use outcrop_base::timestamp::TIMESTAMP_LEN;
use outcrop_base::{Error, Result, Timestamp};
use outcrop_monitor::{Counting, Watch};

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
    shorter_forms! {
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
        Db: put_at, put_cf_at, put_at_with
            => put_cf_at_with(&self, key: impl AsRef<[u8]>, timestamp: Timestamp, value: impl AsRef<[u8]>; WriteOptions) -> Result<()>
    }

    /// [`Db::put_at`] in column family `cf` under `options`, with the same errors.
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

    shorter_forms! {
        /// Deletes `key` from `timestamp` on: reads at older ones see it still. That it does not exist is no error.
        ///
        /// # Errors
        /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
        Db: delete_at, delete_cf_at, delete_at_with
            => delete_cf_at_with(&self, key: impl AsRef<[u8]>, timestamp: Timestamp; WriteOptions) -> Result<()>
    }

    /// [`Db::delete_at`] in column family `cf` under `options`, with the same errors.
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

    shorter_forms! {
        /// Deletes the one earlier put of `key` from `timestamp` on: see [`WriteBatch::single_delete`] for what the caller promises.
        ///
        /// # Errors
        /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
        Db: single_delete_at, single_delete_cf_at, single_delete_at_with
            => single_delete_cf_at_with(&self, key: impl AsRef<[u8]>, timestamp: Timestamp; WriteOptions) -> Result<()>
    }

    /// [`Db::single_delete_at`] in column family `cf` under `options`, with the same errors.
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

    /// The value of `key` at [`ReadOptions::timestamp`], and the timestamp of the version that holds there. There is no form without
    /// options: they say the time.
    ///
    /// # Errors
    /// [Those with timestamps](#errors-of-writes-and-reads-with-timestamps).
    pub fn get_version_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<(PinnedValue, Timestamp)>> {
        self.get_version_cf_with(&self.default_cf, key, options)
    }

    /// [`Db::get_version_with`] in column family `cf`, with the same errors.
    pub fn get_version_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<(PinnedValue, Timestamp)>> {
        let watching = self.core.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let all = cf.superversion.load();
        let some = tier::of_lookups(&self.core.ctx, cf, &all, options);
        let sources = some.as_ref().unwrap_or(&all);
        let found = watch.counted(|counting| {
            stamped::get(&self.view_of_versions(cf, sources, options, (counting, watch))?, key.as_ref())
        });
        let version = found.as_ref().ok().and_then(Option::as_ref);
        counts::key_read_watched(watch, timer, version.map(|(value, _)| value.len()));
        found
    }

    /// [`Db::get_version_with`] of each of `keys` in column family `cf`, all as of one moment.
    ///
    /// # Errors
    /// Each key has its own: as there.
    pub fn multi_get_versions_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<(PinnedValue, Timestamp)>>> {
        let watching = self.core.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let all = cf.superversion.load();
        let some = tier::of_lookups(&self.core.ctx, cf, &all, options);
        let sources = some.as_ref().unwrap_or(&all);
        let results: Vec<_> =
            watch.counted(|counting| match self.view_of_versions(cf, sources, options, (counting, watch)) {
                Ok(view) => keys.iter().map(|key| stamped::get(&view, key)).collect(),
                Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
            });
        counts::keys_read(watch, timer, &results, |(value, _)| value.len());
        results
    }

    fn view_of_versions<'v>(
        &'v self,
        cf: &'v ColumnFamilyHandle,
        sources: &'v SuperVersion,
        options: &'v ReadOptions,
        counted: (Counting<'v>, Watch<'v>),
    ) -> Result<ReadView<'v>> {
        let view = self.view(cf, sources, options, counted)?;
        if cf.has_timestamps() { Ok(view) } else { Err(no_timestamps(cf)) }
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

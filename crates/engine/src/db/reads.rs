//! Reads of single keys and of many.

use super::Db;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle};
use crate::forms::shorter_forms;
use crate::read::options::{ReadOptions, ReadTier};
use crate::read::value::{PinnedValue, WideColumns};
use crate::read::view::ReadView;
use crate::read::{counts, get, multi_get, one_moment, tier};
use crate::superversion::SuperVersion;
use outcrop_base::Result;
use outcrop_monitor::{Asked, Counting, HistogramKind, Watch};

/// # Reading
///
/// A read sees every write that returned before it began, or the moment of [`ReadOptions::snapshot`]. A value is not copied where it lies in a
/// cached block: [`PinnedValue`]. A key that does not exist is `None`, not an error.
///
/// # Errors of reads
/// - Corruption naming file and offset: a block does not decode or fails its checksum. Other keys may be readable.
/// - IoError: the file system refused. It may pass.
/// - InvalidArgument: the snapshot was released; it or the column family is of another database; or a merge operand has no merge operator to be applied by.
/// - NotSupported: the column family is of a kind that does not do this.
impl Db {
    #[inline]
    pub(super) fn view<'v>(
        &'v self,
        cf: &'v ColumnFamily,
        sources: &'v SuperVersion,
        options: &'v ReadOptions,
        (counting, watch): (Counting<'v>, Watch<'v>),
    ) -> Result<ReadView<'v>> {
        self.core.ctx.check_owns(cf)?;
        let seq = options.seq(&self.core.snapshots, || self.core.versions.visible_seq())?;
        Ok(ReadView { tables: &self.core.ctx.tables, cf, sources, seq, options, counting, watch })
    }

    shorter_forms! {
        /// The value of `key`.
        ///
        /// # Errors
        /// [Those of all reads](#errors-of-reads).
        Db: get, get_cf, get_with
            => get_cf_with(&self, key: impl AsRef<[u8]>; ReadOptions) -> Result<Option<PinnedValue>>
    }

    /// [`Db::get`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all reads](#errors-of-reads).
    #[inline]
    pub fn get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        self.get_slice(cf, key.as_ref(), options)
    }

    fn get_slice(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        // One branch for all that most reads do not have.
        let is_plain =
            !(cf.has_timestamps() | options.timestamp.is_some() | (options.tier == ReadTier::Persisted));
        let stats = match self.core.ctx.monitor.asked() {
            Asked::Nobody if is_plain => None,
            Asked::Counts(stats) if is_plain => Some(stats),
            _ => return self.get_with_more(cf, key, options),
        };
        let sources = cf.superversion.load();
        Counting::of(stats, |counting| {
            let found = get::get_plain(&self.view(cf, &sources, options, (counting, Watch::OFF))?, key);
            if let Some(stats) = stats {
                let value = found.as_ref().ok().and_then(Option::as_ref);
                counts::key_read(stats, value.map(PinnedValue::size_bytes));
            }
            found
        })
    }

    /// Of a read that is measured, of keys with timestamps, or of what is durable alone.
    #[cold]
    fn get_with_more(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        let monitor = &self.core.ctx.monitor;
        if let Asked::Times(stats) = monitor.asked() {
            let began = monitor.clock.monotonic_nanos();
            let found =
                Counting::of(Some(stats), |counting| self.get_any(cf, key, options, (counting, Watch::OFF)));
            let value = found.as_ref().ok().and_then(Option::as_ref);
            counts::key_read(stats, value.map(PinnedValue::size_bytes));
            let nanos = monitor.clock.monotonic_nanos().saturating_sub(began);
            stats.record_time(HistogramKind::DbGet, nanos / 1000);
            return found;
        }
        let watching = monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let found = watch.counted(|counting| self.get_any(cf, key, options, (counting, watch)));
        let value = found.as_ref().ok().and_then(Option::as_ref);
        counts::key_read_watched(watch, timer, value.map(PinnedValue::size_bytes));
        found
    }

    #[inline(never)]
    fn get_any(
        &self,
        cf: &ColumnFamilyHandle,
        key: &[u8],
        options: &ReadOptions,
        counted: (Counting<'_>, Watch<'_>),
    ) -> Result<Option<PinnedValue>> {
        let all = cf.superversion.load();
        let some = tier::of_lookups(&self.core.ctx, cf, &all, options);
        let sources = some.as_ref().unwrap_or(&all);
        get::get(&self.view(cf, sources, options, counted)?, key)
    }

    /// The value of each of `keys`, all as of one moment. Much faster than as many [`Db::get`]: the keys wait for memory and for the
    /// device together. They may come in any order.
    ///
    /// # Errors
    /// Each key has its own: [those of all reads](#errors-of-reads).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_cf(&self.default_cf, keys)
    }

    /// [`Db::multi_get`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf<K: AsRef<[u8]>>(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[K],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        self.multi_get_cf_with(cf, &keys, ReadOptions::by_default())
    }

    /// [`Db::multi_get`] under `options`. Takes slices, so that none need be collected.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_with(&self, keys: &[&[u8]], options: &ReadOptions) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_cf_with(&self.default_cf, keys, options)
    }

    /// [`Db::multi_get`] in column family `cf` under `options`. Takes slices, so that none need be collected.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let watching = self.core.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let all = cf.superversion.load();
        let some = tier::of_lookups(&self.core.ctx, cf, &all, options);
        let sources = some.as_ref().unwrap_or(&all);
        let results = watch.counted(|counting| match self.view(cf, sources, options, (counting, watch)) {
            Ok(view) => multi_get::multi_get(&view, keys),
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        });
        if watch.is_on() {
            counts::keys_read(watch, timer, &results, PinnedValue::size_bytes);
        }
        results
    }

    /// The value of each (column family, key), all as of one moment.
    ///
    /// # Errors
    /// Each key has its own: [those of all reads](#errors-of-reads).
    ///
    /// Source: RocksDB `DB::MultiGet` over several column families.
    pub fn multi_get_pairs(
        &self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_pairs_with(pairs, ReadOptions::by_default())
    }

    /// [`Db::multi_get_pairs`] under `options`.
    ///
    /// # Errors
    /// As there.
    pub fn multi_get_pairs_with(
        &self,
        pairs: &[(&ColumnFamilyHandle, &[u8])],
        options: &ReadOptions,
    ) -> Vec<Result<Option<PinnedValue>>> {
        one_moment::multi_get_pairs(&self.core.versions, &self.core.snapshots, options, pairs)
    }

    shorter_forms! {
        /// The columns of `key`, copied. A plain value is one column with the empty name.
        ///
        /// # Errors
        /// [Those of all reads](#errors-of-reads).
        Db: get_entity, get_entity_cf, get_entity_with
            => get_entity_cf_with(&self, key: impl AsRef<[u8]>; ReadOptions) -> Result<Option<WideColumns>>
    }

    /// [`Db::get_entity`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all reads](#errors-of-reads).
    pub fn get_entity_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<WideColumns>> {
        let watching = self.core.ctx.monitor.begin();
        let watch = Watch::from(&watching);
        let timer = watch.stats_timer();
        let all = cf.superversion.load();
        let some = tier::of_lookups(&self.core.ctx, cf, &all, options);
        let sources = some.as_ref().unwrap_or(&all);
        let found = watch.counted(|counting| {
            get::get_entity(&self.view(cf, sources, options, (counting, watch))?, key.as_ref())
        });
        if watch.is_on() {
            let bytes =
                |columns: &WideColumns| columns.iter().map(|(name, value)| name.len() + value.len()).sum();
            counts::key_read_watched(watch, timer, found.as_ref().ok().and_then(Option::as_ref).map(bytes));
        }
        found
    }
}

//! Scans: iterators of rows over everything, a range or a prefix, and cursors.

use super::Db;
use crate::column_family::ColumnFamilyHandle;
use crate::forms::shorter_forms;
use crate::read::cursor::Cursor;
use crate::read::ends::within_prefix;
use crate::read::key_range::{KeyBounds, KeyRange};
use crate::read::one_moment;
use crate::read::options::ReadOptions;
use crate::read::rows::{Committed, Iter};
use crate::read::versions::{self, KeyVersion};
use outcrop_base::{Error, Result, SeqNum};
use std::ops::{Bound, ControlFlow};

/// # Scanning
///
/// [`Iter`] is an `Iterator` from both ends of `Result<(key, value)>`; [`Cursor`] seeks and moves both ways, and copies no row. Both see the
/// moment of the call that made them, or that of [`ReadOptions::snapshot`], whatever is written meanwhile.
///
/// # Errors of scans
/// Those of [reads](#errors-of-reads). An [`Iter`] gives an error as its last item, also one met when it was made; a [`Cursor`] becomes
/// invalid, and [`Cursor::status`] says why.
impl Db {
    /// Calls `each` for every entry of column family `cf` from `from` on, in the order of keys and of one key from the newest: also those
    /// that are overwritten, deletions and merge operands, as long as they are stored; but not range deletions. For tools: see
    /// RocksDB's `GetAllKeyVersions`.
    ///
    /// # Errors
    /// [Those of all scans](#errors-of-scans).
    pub fn each_key_version_cf(
        &self,
        cf: &ColumnFamilyHandle,
        from: Option<&[u8]>,
        each: impl FnMut(&KeyVersion<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        versions::each(&self.core.ctx, cf, from, each)
    }

    shorter_forms! {
        /// All rows, in key order.
        Db: iter, iter_cf, iter_with
            => iter_cf_with(&self; ReadOptions) -> Iter
    }

    /// [`Db::iter`] in column family `cf` under `options`, whose bounds hold.
    pub fn iter_cf_with(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Iter {
        self.scan(cf, Ok((Bound::Unbounded, Bound::Unbounded)), options)
    }

    shorter_forms! {
        /// The rows of a range of keys, as `"a".."b"` or `..=key`, in key order.
        Db: range, range_cf, range_with
            => range_cf_with(&self, range: impl KeyRange; ReadOptions) -> Iter
    }

    /// [`Db::range`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn range_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        range: impl KeyRange,
        options: &ReadOptions,
    ) -> Iter {
        self.scan(cf, Ok(range.into_bounds()), options)
    }

    shorter_forms! {
        /// The rows whose keys begin with `prefix`, in key order. Needs no prefix extractor; one lets it leave out tables.
        ///
        /// Under a comparator of the application's own such keys need not lie together: its only item is then a NotSupported error.
        Db: prefix, prefix_cf, prefix_with
            => prefix_cf_with(&self, prefix: impl AsRef<[u8]>; ReadOptions) -> Iter
    }

    /// [`Db::prefix`] in column family `cf` under `options`, whose bounds hold as well.
    pub fn prefix_cf_with(
        &self,
        cf: &ColumnFamilyHandle,
        prefix: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Iter {
        let (bounds, options) = within_prefix(cf, prefix.as_ref(), options);
        self.scan(cf, bounds, &options)
    }

    fn scan(&self, cf: &ColumnFamilyHandle, bounds: Result<KeyBounds>, options: &ReadOptions) -> Iter {
        let (committed, begun) = self.committed(cf, options);
        Iter::new(committed, begun.and(bounds), options)
    }

    /// The rows that a scan of `cf` sees if it begins now; an error says why it may not.
    pub(crate) fn committed(
        &self,
        cf: &ColumnFamilyHandle,
        options: &ReadOptions,
    ) -> (Committed, Result<()>) {
        let ctx = &self.core.ctx;
        let view = cf.superversion.load_full();
        let seq = options.seq(&self.core.snapshots, || self.core.versions.visible_seq());
        let owned = ctx.check_owns(cf).and_then(|()| match options.iter_start_timestamp {
            Some(_) => Err(Error::not_supported("iter_start_timestamp of an iterator: a cursor has it")),
            None => Ok(()),
        });
        let (seq, begun) = match owned.and(seq) {
            Ok(seq) => (seq, Ok(())),
            Err(error) => (SeqNum::ZERO, Err(error)),
        };
        (Committed::new(ctx, cf, view, seq), begun)
    }

    shorter_forms! {
        /// A cursor, not yet positioned.
        ///
        /// # Errors
        /// [Those of all scans](#errors-of-scans).
        Db: cursor, cursor_cf, cursor_with
            => cursor_cf_with(&self; ReadOptions) -> Result<Cursor>
    }

    /// [`Db::cursor`] in column family `cf` under `options`.
    ///
    /// # Errors
    /// [Those of all scans](#errors-of-scans).
    pub fn cursor_cf_with(&self, cf: &ColumnFamilyHandle, options: &ReadOptions) -> Result<Cursor> {
        self.core.ctx.check_owns(cf)?;
        let view = cf.superversion.load_full();
        let seq = options.seq(&self.core.snapshots, || self.core.versions.visible_seq())?;
        Cursor::new(&self.core.ctx, view, seq, cf, options)
    }

    /// A cursor over each of `column_families`, all seeing one moment.
    ///
    /// # Errors
    /// [Those of all scans](#errors-of-scans); there is then no cursor at all.
    pub fn cursors(&self, column_families: &[&ColumnFamilyHandle]) -> Result<Vec<Cursor>> {
        self.cursors_with(column_families, ReadOptions::by_default())
    }

    /// [`Db::cursors`] under `options`.
    ///
    /// # Errors
    /// As there.
    ///
    /// Source: RocksDB `DB::NewIterators`.
    pub fn cursors_with(
        &self,
        column_families: &[&ColumnFamilyHandle],
        options: &ReadOptions,
    ) -> Result<Vec<Cursor>> {
        one_moment::cursors(&self.core.versions, &self.core.snapshots, column_families, options)
    }
}

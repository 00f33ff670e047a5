//! `clip_column_family`: only a range of keys stays.
//!
//! ```text
//! flush -> drop tables that lie outside -> delete what is left outside -> compact, so that nothing of it is on disk
//! ```
//! Source: RocksDB `DBImpl::ClipColumnFamily`.

use super::Db;
use crate::column_family::ColumnFamilyHandle;
use crate::compaction::manual_request::{BottommostLevelCompaction, CompactRangeOptions};
use crate::compaction::requests::RangeEnd;
use outcrop_base::keys::user_key;
use outcrop_base::{Error, Result};

impl Db {
    /// Leaves of column family `cf` the keys from `begin` up to `end`, exclusive, and frees the space of all others. On return they are
    /// in no table. Snapshots are not respected where whole tables are dropped. Keys that others write outside the range meanwhile may stay.
    ///
    /// # Errors
    /// InvalidArgument if `end` comes before `begin`, or the column family has timestamps; those of [`Db::flush`], [`Db::delete_range`] and
    /// [`Db::compact_range`]: some of the keys are gone then.
    ///
    /// ```
    /// # use outcrop::{Db, Env};
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
    /// for key in ["a", "b", "c", "d"] {
    ///     db.put(key, "1")?;
    /// }
    /// db.clip_column_family(db.default_column_family(), "b", "d")?;
    /// let left: Vec<_> = db.iter().map(|row| row.map(|(key, _)| key)).collect::<Result<_, _>>()?;
    /// assert_eq!(left, [b"b", b"c"]);
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn clip_column_family(
        &self,
        cf: &ColumnFamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (begin, end) = (begin.as_ref(), end.as_ref());
        self.core.ctx.check_owns(cf)?;
        if cf.has_timestamps() {
            return Err(Error::invalid_argument("a column family with timestamps cannot be clipped"));
        }
        if cf.comparator.compare(begin, end).is_gt() {
            return Err(Error::invalid_argument("the end of the range comes before its begin"));
        }
        self.flush_cf(cf)?;
        let outside = [(None, Some(begin)), (Some(end), None)];
        self.delete_files_in_ranges_cf(cf, &outside, RangeEnd::Exclusive)?;
        let Some((smallest, largest)) = key_range(cf) else { return Ok(()) };
        if cf.comparator.compare(&smallest, begin).is_lt() {
            self.delete_range_cf(cf, &smallest, begin)?;
        }
        if cf.comparator.compare(end, &largest).is_le() {
            self.delete_range_cf(cf, end, &largest)?;
            self.delete_cf(cf, &largest)?;
        }
        let options = CompactRangeOptions {
            exclusive_manual_compaction: true,
            ..BottommostLevelCompaction::Force.into()
        };
        self.compact_range_cf_with(cf, None, None, &options)
    }
}

/// The smallest and the largest user key in the tables; `None` without tables.
fn key_range(cf: &ColumnFamilyHandle) -> Option<(Vec<u8>, Vec<u8>)> {
    let version = cf.superversion.load_full().version.clone();
    let by_order = |a: &Vec<u8>, b: &Vec<u8>| cf.comparator.compare(a, b);
    let smallest = version.files().map(|(_, file)| user_key(&file.smallest).to_vec()).min_by(by_order)?;
    let largest = version.files().map(|(_, file)| user_key(&file.largest).to_vec()).max_by(by_order)?;
    Some((smallest, largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_base::ErrorKind;
    use outcrop_env::Env;

    fn keys(db: &Db) -> Vec<Vec<u8>> {
        db.iter().map(|row| row.unwrap().0.to_vec()).collect()
    }

    #[test]
    fn only_the_range_stays_and_its_tables_have_nothing_else() {
        let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open().unwrap();
        let cf = db.default_column_family();
        // Tables below L0: one left of the range, one across its begin, one inside, one across its end, one right of it.
        for keys in [["a", "b"], ["c", "e"], ["f", "g"], ["h", "m"], ["x", "y"]] {
            for key in keys {
                db.put(key, "1").unwrap();
            }
            db.compact_range(Some(keys[0].as_bytes()), Some(keys[1].as_bytes())).unwrap();
        }
        db.put("d", "in memory").unwrap();
        db.put("z", "in memory").unwrap();
        db.clip_column_family(cf, "d", "m").unwrap();
        assert_eq!(keys(&db), [b"d", b"e", b"f", b"g", b"h"]);
        let rows: u64 = db.live_files().iter().map(|file| file.num_entries).sum();
        let deletions: u64 = db.live_files().iter().map(|file| file.num_deletions).sum();
        assert_eq!((rows, deletions), (5, 0));
        db.clip_column_family(cf, "p", "q").unwrap();
        assert!(keys(&db).is_empty() && db.live_files().is_empty());
        let refused = db.clip_column_family(cf, "q", "p").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    }
}

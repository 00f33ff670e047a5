//! Many point lookups at once.

use super::{PinnedValue, ReadOptions};
use crate::column_family::ColumnFamily;
use crate::db::DbInner;
use outcrop_base::Result;
use outcrop_base::xxph3::xxph3_64;

impl DbInner {
    /// The value of each key, all read from one consistent view.
    pub fn multi_get(
        &self,
        cf: &ColumnFamily,
        options: &ReadOptions,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<PinnedValue>>> {
        let view = cf.superversion.load();
        let snapshot = options.snapshot.unwrap_or_else(|| self.visible_seq());
        for key in keys {
            // The memtable is asked first for every key: fetch its index lines together.
            view.memtable.prefetch(xxph3_64(key));
        }
        keys.iter().map(|key| self.get_from(&view, cf, options, key, snapshot)).collect()
    }
}

//! Entries as they are stored: every version of every key, deletions and operands too.

use super::cursor::merge_view;
use super::options::ReadOptions;
use crate::column_family::ColumnFamilyHandle;
use crate::context::DbContext;
use outcrop_base::keys::{ParsedKey, Trailer};
use outcrop_base::{Result, SeqNum};
use std::ops::ControlFlow;

/// One entry of a key, as it is stored: [`crate::Db::each_key_version_cf`].
///
/// ```
/// # use outcrop::{Db, Env};
/// # use std::ops::ControlFlow;
/// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).open()?;
/// db.put("a", "1")?;
/// db.delete("a")?;
/// let mut types = Vec::new();
/// db.each_key_version_cf(db.default_column_family(), None, |version| {
///     types.push((version.seq.0, version.value_type));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(types, [(2, 0), (1, 1)]);
/// # outcrop::Result::Ok(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyVersion<'e> {
    /// The key.
    pub user_key: &'e [u8],
    /// When it was written.
    pub seq: SeqNum,
    /// RocksDB's number for what was written: 0 a deletion, 1 a value, 2 a merge operand, 17 a reference into a blob file.
    pub value_type: u8,
    /// The stored bytes.
    pub value: &'e [u8],
}

/// See [`crate::Db::each_key_version_cf`].
pub fn each(
    ctx: &DbContext,
    cf: &ColumnFamilyHandle,
    from: Option<&[u8]>,
    mut each: impl FnMut(&KeyVersion<'_>) -> ControlFlow<()>,
) -> Result<()> {
    ctx.check_owns(cf)?;
    let view = cf.superversion.load_full();
    let mut iter = merge_view(ctx, &view, cf, ReadOptions::by_default())?;
    match from {
        Some(from) => iter.seek(from, Trailer::MAX),
        None => iter.seek_to_first(),
    }
    while iter.valid() {
        let key = ParsedKey::parse(iter.key())?;
        let version = KeyVersion {
            user_key: key.user_key,
            seq: key.seq,
            value_type: key.value_type as u8,
            value: iter.value(),
        };
        if each(&version).is_break() {
            return Ok(());
        }
        iter.next();
    }
    iter.status()
}

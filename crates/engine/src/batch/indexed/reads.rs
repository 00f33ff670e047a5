//! Reading an indexed batch alone. Over a database: `transactions/read_through.rs`.

use super::{BatchValue, Family, IndexedBatch};
use outcrop_base::{Error, ErrorKind, Result};

/// # Reading the batch alone
///
/// `get(key)` and `look_up(key)` read the default column family, of which the batch knows no merge operator; `get_cf(&cf, key)` and
/// `look_up_cf(&cf, key)` another, or the default one by its handle.
impl IndexedBatch {
    /// The effect of the batch alone on `key`.
    ///
    /// # Errors
    /// InvalidArgument if it needs a merge operator that is not there; Corruption if an entity does not decode.
    pub fn look_up(&self, key: impl AsRef<[u8]>) -> Result<BatchValue> {
        self.look_up_slice(Family::DEFAULT, key.as_ref())
    }

    /// [`IndexedBatch::look_up`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn look_up_cf<'f>(&self, cf: impl Into<Family<'f>>, key: impl AsRef<[u8]>) -> Result<BatchValue> {
        self.look_up_slice(cf.into(), key.as_ref())
    }

    fn look_up_slice(&self, family: Family<'_>, key: &[u8]) -> Result<BatchValue> {
        // Not under the lock: the operator may take its time.
        let found = self.contents.read().find(family.id, key);
        found.value(family, key)
    }

    /// The value of `key` as the batch alone has it.
    ///
    /// # Errors
    /// MergeInProgress if there are merge operands and nothing below them; InvalidArgument if they need an operator that is
    /// not there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_slice(Family::DEFAULT, key.as_ref())
    }

    /// [`IndexedBatch::get`] in column family `cf`.
    ///
    /// # Errors
    /// As there.
    pub fn get_cf<'f>(&self, cf: impl Into<Family<'f>>, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_slice(cf.into(), key.as_ref())
    }

    fn get_slice(&self, family: Family<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.look_up_slice(family, key)? {
            BatchValue::Value(value) => Ok(Some(value)),
            BatchValue::Absent | BatchValue::Deleted => Ok(None),
            BatchValue::Merging(_) => Err(Error::new(ErrorKind::MergeInProgress, "")),
        }
    }
}

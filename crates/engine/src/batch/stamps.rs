//! Writes of a batch with user-defined timestamps, and which of its writes have one.
//!
//! In the wire form a timestamp is the end of the key, and nothing tells the two apart. So a batch counts the writes that were given one:
//! what is written to a column family with timestamps must have one, and nothing else may.

use super::codec::{Op, WriteBatch, check_sizes};
use super::stamp_count::Stamps;
use crate::column_family::{ColumnFamily, ColumnFamilyHandle, enables_timestamp};
use outcrop_base::timestamp::{TIMESTAMP_LEN, stored_key};
use outcrop_base::{CfId, Error, Result, Timestamp};

/// # Writes with timestamps
/// For column families whose comparator has user-defined timestamps. Those without a handle are in the default column family. Writes of a
/// key should come in the order of their timestamps: lookups take the newest write to have the newest timestamp, as RocksDB's do.
///
/// # Panics
/// Each method panics if a key or value is longer than 4 GiB, which a batch cannot hold.
impl WriteBatch {
    /// Sets `key` to `value` from `timestamp` on.
    ///
    /// ```
    /// # use outcrop::{ColumnFamilyDescriptor, Comparator, Db, Env, ReadOptions, Timestamp, WriteBatch};
    /// # let family = ColumnFamilyDescriptor::new("default").with_comparator(Comparator::bytewise_with_timestamps());
    /// # let db = Db::builder("/db").env(Env::memory()).create_if_missing(true).column_family(family).open()?;
    /// let mut batch = WriteBatch::new();
    /// batch.put_at("price", Timestamp::from(10), "99");
    /// batch.delete_at("price", Timestamp::from(20));
    /// db.write(&mut batch)?;
    /// let at = |time: u64| db.get_with("price", &ReadOptions::at_timestamp(time.into()));
    /// assert_eq!(at(15)?.as_deref(), Some(&b"99"[..]));
    /// assert!(at(20)?.is_none());
    /// # outcrop::Result::Ok(())
    /// ```
    pub fn put_at(&mut self, key: impl AsRef<[u8]>, timestamp: Timestamp, value: impl AsRef<[u8]>) {
        self.put_id_at(CfId(0), key.as_ref(), timestamp, value.as_ref());
    }

    /// [`WriteBatch::put_at`] in column family `cf`.
    pub fn put_cf_at(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
        value: impl AsRef<[u8]>,
    ) {
        self.put_id_at(cf.id(), key.as_ref(), timestamp, value.as_ref());
    }

    /// Deletes `key` from `timestamp` on; that it does not exist is no error.
    pub fn delete_at(&mut self, key: impl AsRef<[u8]>, timestamp: Timestamp) {
        self.delete_id_at(CfId(0), key.as_ref(), timestamp);
    }

    /// [`WriteBatch::delete_at`] in column family `cf`.
    pub fn delete_cf_at(&mut self, cf: &ColumnFamilyHandle, key: impl AsRef<[u8]>, timestamp: Timestamp) {
        self.delete_id_at(cf.id(), key.as_ref(), timestamp);
    }

    /// Deletes the single earlier put of `key` from `timestamp` on: see [`WriteBatch::single_delete`] for what the caller promises.
    pub fn single_delete_at(&mut self, key: impl AsRef<[u8]>, timestamp: Timestamp) {
        self.single_delete_id_at(CfId(0), key.as_ref(), timestamp);
    }

    /// [`WriteBatch::single_delete_at`] in column family `cf`.
    pub fn single_delete_cf_at(
        &mut self,
        cf: &ColumnFamilyHandle,
        key: impl AsRef<[u8]>,
        timestamp: Timestamp,
    ) {
        self.single_delete_id_at(cf.id(), key.as_ref(), timestamp);
    }

    /// Says that writes were given timestamps that are not theirs: the batch cannot be written before
    /// [`WriteBatch::update_timestamps`].
    pub fn await_timestamps(&mut self) {
        self.stamps.unset = true;
    }

    /// Gives all writes in column families that `has_timestamps` names, by id, this timestamp.
    ///
    /// # Errors
    /// Corruption if a key is too short for one; nothing is then changed.
    ///
    /// Source: RocksDB `WriteBatch::UpdateTimestamps`.
    pub fn update_timestamps(
        &mut self,
        timestamp: Timestamp,
        has_timestamps: impl Fn(CfId) -> bool,
    ) -> Result<()> {
        let start = self.as_bytes().as_ptr() as usize;
        let mut places = Vec::new();
        for record in self.iter() {
            let record = record?;
            if !has_timestamps(record.cf) {
                continue;
            }
            let mut note = |key: &[u8]| match key.len().checked_sub(TIMESTAMP_LEN) {
                Some(at) => {
                    places.push(key.as_ptr() as usize - start + at);
                    Ok(())
                }
                None => Err(Error::corruption("a key of the write batch is shorter than its timestamp")),
            };
            match record.op {
                Op::Put { key, .. } | Op::Delete { key } | Op::SingleDelete { key } => note(key)?,
                Op::Merge { key, .. } | Op::PutEntity { key, .. } => note(key)?,
                Op::DeleteRange { begin, end } => {
                    note(begin)?;
                    note(end)?;
                }
            }
        }
        let bytes = self.bytes_mut();
        for place in places {
            bytes[place..place + TIMESTAMP_LEN].copy_from_slice(timestamp.as_bytes());
        }
        self.stamps.unset = false;
        Ok(())
    }

    pub(crate) fn put_id_at(&mut self, cf: CfId, key: &[u8], timestamp: Timestamp, value: &[u8]) {
        let stored = self.stamped(key, timestamp, value);
        self.put_id(cf, &stored, value);
    }

    pub(crate) fn delete_id_at(&mut self, cf: CfId, key: &[u8], timestamp: Timestamp) {
        let stored = self.stamped(key, timestamp, &[]);
        self.delete_id(cf, &stored);
    }

    pub(crate) fn single_delete_id_at(&mut self, cf: CfId, key: &[u8], timestamp: Timestamp) {
        let stored = self.stamped(key, timestamp, &[]);
        self.single_delete_id(cf, &stored);
    }

    /// The stored key of a write that has a timestamp.
    #[track_caller]
    fn stamped(&mut self, key: &[u8], timestamp: Timestamp, value: &[u8]) -> Vec<u8> {
        let stored = stored_key(key, timestamp);
        if let Err(error) = check_sizes(&stored, value) {
            panic!("{error}");
        }
        self.stamps.with += 1;
        stored
    }

    /// Checks the batch, `stamped` of whose writes are in column families with timestamps. `all`: all its column families are known.
    ///
    /// # Errors
    /// InvalidArgument if some lack theirs, or have one that is not wanted.
    pub(crate) fn check_stamps(&self, stamped: u32, all: bool) -> Result<()> {
        let Stamps { with, unset, unknown } = self.stamps;
        if unset || (!unknown && with < stamped) {
            return Err(Error::invalid_argument("write batch must have timestamp(s) set"));
        }
        if !unknown && all && with > stamped {
            let what = "a write with a timestamp is in a column family that does not enable timestamp";
            return Err(Error::invalid_argument(what));
        }
        Ok(())
    }
}

/// Checks a write in `cf`, which has timestamps.
///
/// # Errors
/// InvalidArgument if its key is too short for one; NotSupported if writes of its kind cannot have one.
pub(crate) fn check_stamped(cf: &ColumnFamily, op: &Op<'_>) -> Result<()> {
    let key = match op {
        Op::Put { key, .. } | Op::Delete { key } | Op::SingleDelete { key } | Op::PutEntity { key, .. } => {
            key
        }
        Op::Merge { .. } => return Err(Error::not_supported("Merge with user-defined timestamps")),
        Op::DeleteRange { .. } => {
            return Err(Error::not_supported("DeleteRange with user-defined timestamps"));
        }
    };
    if key.len() < TIMESTAMP_LEN {
        return Err(enables_timestamp(cf));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(batch: &WriteBatch) -> Vec<Vec<u8>> {
        let key = |op: &Op<'_>| match *op {
            Op::Put { key, .. } | Op::Delete { key } | Op::SingleDelete { key } => key.to_vec(),
            _ => Vec::new(),
        };
        batch.iter().map(|record| key(&record.unwrap().op)).collect()
    }

    #[test]
    fn timestamps_are_the_end_of_the_key_and_can_be_changed_in_place() {
        let mut batch = WriteBatch::new();
        batch.put_at("a", 7.into(), "1");
        batch.put("plain", "2");
        batch.delete_at("b", 8.into());
        batch.single_delete_id_at(CfId(3), b"c", 9.into());
        let of = |key: &[u8], timestamp: u64| stored_key(key, timestamp.into());
        assert_eq!(keys(&batch), [of(b"a", 7), b"plain".to_vec(), of(b"b", 8), of(b"c", 9)]);
        let mut other = WriteBatch::new();
        other.delete_id_at(CfId(3), b"d", 1.into());
        batch.append(&other);
        batch.update_timestamps(77.into(), |cf| cf == CfId(3)).unwrap();
        assert_eq!(keys(&batch)[2..], [of(b"b", 8), of(b"c", 77), of(b"d", 77)]);
        batch.check_stamps(4, true).unwrap();
    }

    #[test]
    fn a_key_without_room_for_a_timestamp_changes_nothing() {
        let mut batch = WriteBatch::new();
        batch.put_at("a", 7.into(), "1");
        batch.put("short", "2");
        let before = batch.as_bytes().to_vec();
        batch.update_timestamps(9.into(), |_| true).unwrap_err();
        assert_eq!(batch.as_bytes(), before);
    }

    #[test]
    fn what_has_a_timestamp_is_counted_through_save_points() {
        let mut batch = WriteBatch::new();
        batch.put_at("a", 7.into(), "1");
        let point = batch.save_point();
        batch.put_at("b", 7.into(), "1");
        batch.await_timestamps();
        assert!(batch.check_stamps(2, true).is_err(), "not set");
        batch.rollback_to(point);
        batch.check_stamps(1, true).unwrap();
        assert!(batch.check_stamps(2, true).is_err(), "one lacks its timestamp");
        assert!(batch.check_stamps(0, true).is_err(), "one has a timestamp too many");
        WriteBatch::from_bytes(batch.as_bytes()).unwrap().check_stamps(1, true).unwrap();
        batch.clear();
        batch.check_stamps(0, true).unwrap();
    }
}

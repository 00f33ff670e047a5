//! Save points of a write batch: places to return to.

use super::codec::WriteBatch;
use super::stamp_count::Stamps;

/// How much of a batch there was at some moment.
///
/// ```
/// # use outcrop::WriteBatch;
/// let mut batch = WriteBatch::new();
/// batch.put("a", "1");
/// let point = batch.save_point();
/// batch.put("b", "2");
/// batch.rollback_to(point);
/// assert_eq!(batch.count(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    len: usize,
    count: u32,
    stamps: Stamps,
}

impl WriteBatch {
    /// The place the batch is at.
    pub fn save_point(&self) -> SavePoint {
        SavePoint { len: self.size_bytes(), count: self.count(), stamps: self.stamps }
    }

    /// Takes back what was added since `point`, which is one of this batch and not of before it was cleared.
    ///
    /// # Panics
    /// If the batch is shorter than it was at `point`.
    pub fn rollback_to(&mut self, point: SavePoint) {
        assert!(point.len <= self.size_bytes(), "the save point is of {} bytes", point.len);
        let mut bytes = self.take_bytes();
        bytes.truncate(point.len);
        bytes[8..12].copy_from_slice(&point.count.to_le_bytes());
        self.restore_bytes(bytes);
        self.stamps = point.stamps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_takes_back_records_and_their_count() {
        let mut batch = WriteBatch::new();
        batch.put_id(CfId::DEFAULT, b"a", b"1");
        let (point, before) = (batch.save_point(), batch.as_bytes().to_vec());
        batch.delete_id(CfId(3), b"b");
        batch.put_log_data(b"note");
        batch.rollback_to(point);
        assert_eq!(batch.as_bytes(), before);
        assert_eq!(batch.count(), 1);
    }
}

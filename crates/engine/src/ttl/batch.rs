//! A batch as it is stored: its values and operands with stamps, all else as it is.
//!
//! Source: RocksDB `DBWithTTLImpl::Write`.

use super::stamp::{STAMP_LEN, stamped};
use crate::batch::codec::{Op, Record, WriteBatch, check_value_len, records};
use outcrop_base::{Error, Result};

/// The writes of `batch`, stamped.
///
/// # Errors
/// NotSupported for entities, which have no place for a stamp. InvalidArgument if a value is longer than 4 GiB with its stamp.
pub fn stamped_batch(batch: &WriteBatch, stamp: [u8; STAMP_LEN]) -> Result<WriteBatch> {
    let mut out = WriteBatch::new();
    let mut rest = records(batch.as_bytes())?;
    loop {
        while let Some(blob) = rest.next_log_data() {
            out.put_log_data(blob);
        }
        let Some(record) = rest.next() else { return Ok(out) };
        let Record { cf, op } = record?;
        match op {
            Op::Put { key, value } => {
                check_value_len(value.len().saturating_add(STAMP_LEN))?;
                out.put_id(cf, key, &stamped(value, stamp));
            }
            Op::Merge { key, operand } => {
                check_value_len(operand.len().saturating_add(STAMP_LEN))?;
                out.merge_id(cf, key, &stamped(operand, stamp));
            }
            Op::PutEntity { .. } => return Err(Error::not_supported("PutEntityCF not implemented")),
            Op::Delete { .. } | Op::SingleDelete { .. } | Op::DeleteRange { .. } => {
                out.push(Record { cf, op });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_value_is_stamped_and_all_else_stays_in_its_place() {
        let (mut batch, mut expected) = (WriteBatch::new(), WriteBatch::new());
        let fill = |batch: &mut WriteBatch, stamp: &str| {
            batch.put_log_data(b"one");
            batch.put_id(CfId::DEFAULT, b"a", format!("1{stamp}").as_bytes());
            batch.put_log_data(b"");
            batch.put_log_data(b"two");
            batch.merge_id(CfId(7), b"a", stamp.as_bytes());
            batch.delete_id(CfId::DEFAULT, b"b");
            batch.single_delete_id(CfId(7), b"c");
            batch.delete_range_id(CfId::DEFAULT, b"d", b"e");
            batch.put_log_data(b"three");
        };
        fill(&mut batch, "");
        fill(&mut expected, "TIME");
        assert_eq!(stamped_batch(&batch, *b"TIME").unwrap().as_bytes(), expected.as_bytes());
        batch.put_encoded_entity_id(CfId::DEFAULT, b"e", b"");
        let error = stamped_batch(&batch, *b"TIME").unwrap_err();
        assert_eq!(error.to_string(), "Not implemented: PutEntityCF not implemented");
    }
}

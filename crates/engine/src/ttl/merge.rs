//! The application's merge operator on values with stamps. A value that it makes is as old as that moment.
//!
//! Source: RocksDB `utilities/ttl/db_ttl_impl.cc`, `TtlMergeOperator`.

use super::stamp::{STAMP_LEN, now};
use outcrop_base::MergeOperator;
use outcrop_env::Clock;
use std::sync::Arc;

pub struct TtlMergeOperator {
    pub user: Arc<dyn MergeOperator>,
    pub clock: Arc<dyn Clock>,
}

fn without_stamp(stored: &[u8]) -> Option<&[u8]> {
    stored.split_last_chunk::<STAMP_LEN>().map(|(value, _)| value)
}

fn without_stamps<'v>(stored: &[&'v [u8]]) -> Option<Vec<&'v [u8]>> {
    stored.iter().map(|stored| without_stamp(stored)).collect()
}

impl TtlMergeOperator {
    fn stamped(&self, mut value: Vec<u8>) -> Vec<u8> {
        value.extend_from_slice(&now(&*self.clock));
        value
    }
}

impl MergeOperator for TtlMergeOperator {
    fn name(&self) -> &str {
        "TtlMergeOperator"
    }

    fn full_merge(&self, key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let existing = match existing {
            Some(stored) => Some(without_stamp(stored)?),
            None => None,
        };
        let merged = self.user.full_merge(key, existing, &without_stamps(operands)?)?;
        Some(self.stamped(merged))
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let merged = self.user.partial_merge(key, &without_stamps(operands)?)?;
        Some(self.stamped(merged))
    }
}

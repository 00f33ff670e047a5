//! Merging an operand when it is written (`max_successive_merges`), so that readers of a key that is merged again and
//! again do not have to apply a long row of operands.
//!
//! The WAL holds the operand; only the memtable gets a value in its place, which reads the same.
//! Source: RocksDB `db/write_batch.cc`, `MemTableInserter::MergeCF`.

use super::pipeline::CommitPipeline;
use super::targets::Target;
use crate::read::get::plain_value;
use crate::read::merge;
use crate::read::view::ReadView;
use outcrop_base::{LookupKey, SeqNum, ValueType};
use outcrop_memtable::MemTable;
use std::ops::ControlFlow;

impl CommitPipeline {
    /// The value to write under `seq` in place of `operand`: the merged value, if the memtable has as many operands
    /// of `key` as the option allows. `None` leaves the operand, also where the value cannot be had.
    pub(crate) fn merge_early(
        &self,
        target: &Target,
        seq: SeqNum,
        key: &[u8],
        operand: &[u8],
    ) -> Option<Vec<u8>> {
        let options = target.cf.options.load();
        if options.max_successive_merges == 0
            || !has_operands(&target.memtable, key, options.max_successive_merges)
        {
            return None;
        }
        let operator = merge::operator_of(&target.cf)?;
        let before = SeqNum(seq.0 - 1);
        let in_memory = !options.strict_max_successive_merges;
        // A value that cannot be read now is a problem of whoever reads it.
        let sources = target.cf.superversion.load();
        let view = ReadView {
            tables: &self.ctx.tables,
            cf: &target.cf,
            sources: &sources,
            seq: before,
            options: crate::read::options::ReadOptions::by_default(),
            counting: outcrop_monitor::Counting::OFF,
            watch: outcrop_monitor::Watch::OFF,
        };
        let existing = plain_value(&view, key, in_memory).ok()??;
        operator.full_merge(key, Some(&existing), &[operand])
    }
}

/// True if the newest `count` entries of `key` are operands.
fn has_operands(memtable: &MemTable, key: &[u8], count: u64) -> bool {
    let mut operands = 0;
    memtable.get(&LookupKey::new(key), SeqNum::MAX, |_, value_type, _| {
        if value_type != ValueType::Merge {
            return ControlFlow::Break(());
        }
        operands += 1;
        if operands < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    operands >= count
}

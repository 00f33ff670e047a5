//! Well-formed use: which operations make sense in a state.
//!
//! RocksDB leaves the outcome of some calls open (a single delete of a key that was put twice), and others need
//! something that must exist first. The rules are asked again whenever a case runs, so shrinking may drop any
//! operation without care: operations that lost their sense are skipped.
//!
//! Keys are divided by their first byte, so that the rules need no history:
//!
//! | first byte | what is done to them |
//! |---|---|
//! | `s` | put when absent, single-deleted when present, covered by range deletions; never overwritten |
//! | `n` | numbers: put, merged by the adding operator, deleted |
//! | other | everything else |

use crate::case::Merge;
use crate::model::Model;
use crate::operation::{Durability, Key, Operation, Record, Value};
use std::collections::BTreeSet;

/// The first byte of keys that are put once and single-deleted.
pub const SINGLE: u8 = b's';
/// The first byte of keys whose values are numbers.
pub const NUMBER: u8 = b'n';

/// Whether `operation` may be done now.
pub fn admits(model: &Model, operation: &Operation) -> bool {
    let exists = |family: &usize| model.existing().contains(family);
    match operation {
        Operation::Write { records, durability, .. } => {
            admits_records(model, records)
                && (*durability == Durability::Unlogged || !model.is_flushed_together())
                && (*durability != Durability::Unlogged || records.iter().all(|record| !logs_data(record)))
        }
        Operation::Get { view, .. } | Operation::Walk { view, .. } => {
            exists(&view.family) && view.snapshot.is_none_or(|slot| model.has_snapshot(slot))
        }
        Operation::OpenIterator { slot, view } => {
            exists(&view.family)
                && !model.has_iterator(*slot)
                && view.snapshot.is_none_or(|slot| model.has_snapshot(slot))
        }
        Operation::MoveIterator { slot, .. } | Operation::CloseIterator { slot } => model.has_iterator(*slot),
        Operation::TakeSnapshot { slot } => !model.has_snapshot(*slot),
        // An iterator may look at the snapshot.
        Operation::ReleaseSnapshot { slot } => model.has_snapshot(*slot) && !model.has_iterators(),
        Operation::Flush { family, .. }
        | Operation::CompactRange { family, .. }
        | Operation::SetOptions { family, .. } => exists(family),
        Operation::Ingest { family, records, .. } => {
            // A table is durable at once; earlier writes must not be less so.
            exists(family)
                && !model.has_buffered()
                && !model.is_flushed_together()
                && ascending(model, *family, records)
                && admits_records(model, records)
        }
        Operation::CreateFamily { family } => !exists(family),
        Operation::DropFamily { family } => {
            let of_family = |record: &Record| record.family() == Some(*family);
            let awaited = model.prepared().values().flatten().any(of_family);
            *family != 0 && exists(family) && !model.has_iterators() && !awaited
        }
        Operation::Transact { name, records, .. } => {
            !model.prepared().contains_key(name)
                && !model.is_flushed_together()
                && admits_records(model, records)
                && records.iter().all(|record| may_be_in_transaction(model, record))
        }
        Operation::Resolve { name, .. } => {
            model.prepared().contains_key(name) && !model.is_flushed_together()
        }
        // As with a checkpoint.
        Operation::Backup { flush } => *flush || (!model.has_unflushed() && !model.has_buffered()),
        Operation::Restore { .. } | Operation::PurgeBackups { .. } => true,
        // A checkpoint that does not flush has nothing but files and WAL.
        Operation::Checkpoint { log_size_for_flush } => *log_size_for_flush == 0 || !model.has_unflushed(),
        Operation::Mistake(mistake) => mistake.admitted(model),
        Operation::FlushWal { .. } | Operation::Wait | Operation::OpenTwice | Operation::CompareAll => true,
    }
}

/// A change of one key that no prepared transaction has locked, and whose outcome does not depend on when it is committed.
fn may_be_in_transaction(model: &Model, record: &Record) -> bool {
    let (Record::Put(family, key, _) | Record::Delete(family, key) | Record::Merge(family, key, _)) = record
    else {
        return false;
    };
    let locks = |other: &Record| match other {
        Record::Put(of, locked, _) | Record::Delete(of, locked) | Record::Merge(of, locked, _) => {
            of == family && locked == key
        }
        _ => false,
    };
    key.0.first() != Some(&SINGLE) && !model.prepared().values().flatten().any(locks)
}

fn logs_data(record: &Record) -> bool {
    matches!(record, Record::LogData(_))
}

/// The records of a table ascend strictly and are for one family.
fn ascending(model: &Model, family: usize, records: &[Record]) -> bool {
    let reverse = model.family(family).reverse;
    let mut last: Option<&Key> = None;
    !records.is_empty()
        && records.iter().all(|record| {
            let key = match record {
                Record::Put(of, key, _) | Record::Delete(of, key) | Record::Merge(of, key, _)
                    if *of == family =>
                {
                    key
                }
                _ => return false,
            };
            let after = last.is_none_or(|last| if reverse { key < last } else { key > last });
            last = Some(key);
            after && key.0.first() != Some(&SINGLE)
        })
}

/// Whether each record may be written after those before it.
fn admits_records(model: &Model, records: &[Record]) -> bool {
    let existing: BTreeSet<usize> = model.existing().into_iter().collect();
    // A batch's changes to single-delete keys show in the state only when it is applied; one such key must
    // therefore not be touched twice by a batch.
    let mut touched = BTreeSet::new();
    let mut covered: Vec<(usize, &Key, &Key)> = Vec::new();
    !records.is_empty()
        && records.iter().all(|record| {
            let Some(family) = record.family() else { return true };
            if !existing.contains(&family) {
                return false;
            }
            let is_covered = |key: &Key| {
                covered.iter().any(|(of, b, e)| *of == family && model.between(family, key, Some(b), Some(e)))
            };
            match record {
                Record::Put(_, key, _) | Record::SingleDelete(_, key)
                    if key.0.first() == Some(&SINGLE) && is_covered(key) =>
                {
                    false
                }
                Record::Put(_, key, value) => match key.0.first() {
                    Some(&SINGLE) => {
                        model.get(family, key).is_none() && touched.insert((family, key.clone()))
                    }
                    Some(&NUMBER) => matches!(value, Value::Number(_)),
                    _ => true,
                },
                Record::SingleDelete(_, key) => {
                    key.0.first() == Some(&SINGLE)
                        && model.get(family, key).is_some()
                        && touched.insert((family, key.clone()))
                }
                Record::Delete(_, key) => key.0.first() != Some(&SINGLE),
                Record::PutEntity(_, key, _) => !matches!(key.0.first(), Some(&SINGLE | &NUMBER)),
                Record::Merge(_, key, operand) => match (model.family(family).merge, key.0.first()) {
                    (Merge::None, _) | (_, Some(&SINGLE)) => false,
                    (Merge::Add, first) => first == Some(&NUMBER) && matches!(operand, Value::Number(_)),
                    (Merge::Append, first) => first != Some(&NUMBER),
                },
                Record::DeleteRange(_, begin, end) => {
                    let covers_touched = touched
                        .iter()
                        .any(|(of, key)| *of == family && model.between(family, key, Some(begin), Some(end)));
                    covered.push((family, begin, end));
                    !covers_touched && ordered(model, family, begin, end)
                }
                Record::Fill { prefix, .. } => !matches!(prefix.0.first(), Some(&SINGLE | &NUMBER)),
                Record::LogData(_) => true,
            }
        })
}

/// Begin is before end in the family's order.
fn ordered(model: &Model, family: usize, begin: &Key, end: &Key) -> bool {
    if model.family(family).reverse { begin > end } else { begin < end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Family;

    fn key(text: &str) -> Key {
        Key(text.into())
    }

    fn write(records: Vec<Record>) -> Operation {
        Operation::Write { records, durability: Durability::Logged, direct: false }
    }

    #[test]
    fn a_single_delete_needs_one_put_and_no_overwrite() {
        let mut model = Model::new(&[Family::plain("default")], &[0]);
        let put = write(vec![Record::Put(0, key("s1"), Value::Number(1))]);
        let delete = write(vec![Record::SingleDelete(0, key("s1"))]);
        let both =
            write(vec![Record::Put(0, key("s1"), Value::Number(1)), Record::SingleDelete(0, key("s1"))]);
        assert!(admits(&model, &put) && !admits(&model, &delete) && !admits(&model, &both));
        model.apply(&put);
        assert!(!admits(&model, &put) && admits(&model, &delete));
        let covered =
            write(vec![Record::DeleteRange(0, key("a"), key("z")), Record::SingleDelete(0, key("s1"))]);
        assert!(!admits(&model, &covered));
        assert!(!admits(&model, &write(vec![Record::Delete(0, key("s1"))])));
    }

    #[test]
    fn what_does_not_exist_is_not_used() {
        let model = Model::new(&[Family::plain("default"), Family::plain("one")], &[0]);
        assert!(!admits(&model, &write(vec![Record::Delete(1, key("k"))])));
        assert!(admits(&model, &Operation::CreateFamily { family: 1 }));
        assert!(!admits(&model, &Operation::DropFamily { family: 0 }));
        assert!(!admits(&model, &Operation::ReleaseSnapshot { slot: 0 }));
        assert!(!admits(&model, &write(vec![Record::Merge(0, key("k"), Value::Number(1))])));
        assert!(!admits(&model, &write(vec![Record::DeleteRange(0, key("b"), key("a"))])));
    }
}

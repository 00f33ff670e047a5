//! The records in WALs: the physical records that logs hold beside writes, and the kinds of writes.

use super::rules::Feature;
use outcrop::{Error, Op, Record, WalItem, wal_items};
use outcrop_base::ErrorKind;
use outcrop_env::{Env, OpenRead};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{LogReader, ReadOutcome};
use std::collections::BTreeSet;
use std::path::Path;

const BLOCK: usize = 32 * 1024;
/// crc, length, type; recyclable records add the low half of the log's number.
const HEADER: usize = 7;
const RECYCLABLE_HEADER: usize = 11;

/// The features of one log.
///
/// # Errors
/// The file cannot be read. Damage is no error: the bytes after it are not read.
pub fn features(env: &Env, path: &Path, number: u64) -> Result<BTreeSet<Feature>, Error> {
    let mut found = BTreeSet::new();
    let (types, goes_on) = physical_types(&env.fs.read_all(path)?, number as u32);
    if goes_on {
        found.extend([Feature::WalGoesOn, Feature::WalGoesOnForSecondary]);
    }
    for kind in types {
        match kind {
            9 => found.insert(Feature::CompressedWal),
            10 | 11 => found.insert(Feature::TimestampSizes),
            130 | 131 => found.insert(Feature::PredecessorInfo),
            _ => false,
        };
    }
    let file = env.fs.open_read(path, OpenRead::default())?;
    let mut reader = LogReader::new(file, number, WalRecoveryMode::PointInTimeRecovery);
    while let ReadOutcome::Record(bytes, offset) = reader.next()? {
        let is_entity =
            |item: &WalItem<'_>| matches!(item, WalItem::Write(Record { op: Op::PutEntity { .. }, .. }));
        let items: Result<Vec<WalItem<'_>>, Error> = wal_items(bytes).and_then(Iterator::collect);
        match items {
            Ok(items) if items.iter().any(is_entity) => {
                found.insert(Feature::EntityInWal);
            }
            Ok(_) => {}
            Err(error) if error.to_string().contains("TimedPut") => {
                found.insert(Feature::TimedPutInWal);
            }
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                found.insert(Feature::Unreadable(format!("offset {offset}: {error}")));
            }
            Err(_) => break,
        }
    }
    Ok(found)
}

/// The types of a log's records, up to its end or to what is not of this log; and whether there is such: what an earlier
/// log left in the file, or space ahead, which is filled to look the same.
fn physical_types(bytes: &[u8], number: u32) -> (BTreeSet<u8>, bool) {
    let mut types = BTreeSet::new();
    for block in bytes.chunks(BLOCK) {
        let mut rest = block;
        while rest.len() >= HEADER {
            let (length, kind) = (usize::from(u16::from_le_bytes([rest[4], rest[5]])), rest[6]);
            if kind == 0 && length == 0 {
                break;
            }
            let recyclable = matches!(kind, 5..=8 | 11 | 131);
            if recyclable && rest.get(HEADER..RECYCLABLE_HEADER) != Some(&number.to_le_bytes()) {
                return (types, rest.len() >= RECYCLABLE_HEADER);
            }
            let header = if recyclable { RECYCLABLE_HEADER } else { HEADER };
            let Some(behind) = rest.get(header + length..) else { return (types, false) };
            types.insert(kind);
            rest = behind;
        }
    }
    (types, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_end_where_another_log_begins() {
        let record = |kind: u8, number: Option<u32>, payload: &[u8]| {
            let mut bytes = vec![0; 4];
            bytes.extend_from_slice(&(payload.len() as u16).to_le_bytes());
            bytes.push(kind);
            bytes.extend(number.into_iter().flat_map(u32::to_le_bytes));
            bytes.extend_from_slice(payload);
            bytes
        };
        let log =
            [record(5, Some(7), b"ours"), record(131, Some(7), b"x"), record(5, Some(6), b"old")].concat();
        assert_eq!(physical_types(&log, 7), (BTreeSet::from([5, 131]), true));
        assert_eq!(physical_types(&log, 6), (BTreeSet::new(), true));
        let whole = record(5, Some(7), b"ours");
        assert_eq!(physical_types(&whole, 7), (BTreeSet::from([5]), false));
        let ahead = [whole, vec![outcrop_record::FILLER; 100]].concat();
        assert_eq!(physical_types(&ahead, 7), (BTreeSet::from([5]), true));
        let mut blocks = record(9, None, b"abcd");
        blocks.resize(BLOCK, 0);
        blocks.extend(record(1, None, b"second block"));
        blocks.extend([1, 2, 3]);
        assert_eq!(physical_types(&blocks, 0), (BTreeSet::from([1, 9]), false));
        assert_eq!(physical_types(&record(1, None, b"cut off")[..10], 0), (BTreeSet::new(), false));
    }
}

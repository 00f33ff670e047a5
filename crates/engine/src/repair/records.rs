//! Reading WALs: every record that is intact, and what all of them write to.

use super::damage::refuse_unless_damage;
use crate::batch::codec::{self, Item, Marker};
use outcrop_base::{CfId, Error, ErrorKind, Result, SeqNum};
use outcrop_env::{Access, Env, OpenRead};
use outcrop_manifest::{FileNumber, file_name};
use outcrop_options::WalRecoveryMode;
use outcrop_record::{DamageKind, LogReader, ReadOutcome};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Calls `each` with every record of a WAL that is intact, and `damaged` with what is not.
///
/// # Errors
/// NotSupported for records with user timestamps; those of `each`.
pub fn each_record(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    mut each: impl FnMut(&[u8], u64) -> Result<()>,
    mut damaged: impl FnMut(String),
) -> Result<()> {
    let path = file_name::wal(dir, number);
    let file = match env.fs.open_read(&path, OpenRead { access: Access::Sequential, ..OpenRead::default() }) {
        Ok(file) => file,
        Err(error) => {
            refuse_unless_damage(&error)?;
            damaged(error.to_string());
            return Ok(());
        }
    };
    let mut reader = LogReader::new(file, number.0, WalRecoveryMode::SkipAnyCorruptedRecords);
    loop {
        match reader.next() {
            Ok(ReadOutcome::End) => return Ok(()),
            Ok(ReadOutcome::Record(record, offset)) => each(record, offset)?,
            Ok(ReadOutcome::Damaged(damage)) => {
                let text = damage.error.to_string();
                if damage.kind == DamageKind::UnknownType && text.contains("timestamps") {
                    return Err(Error::not_supported(text));
                }
                damaged(text);
            }
            Err(error) => {
                refuse_unless_damage(&error)?;
                damaged(error.to_string());
                return Ok(());
            }
        }
    }
}

/// The facts known of WALs before they are converted.
#[derive(Default)]
pub struct Survey {
    /// Ids of column families that are written to.
    pub families: BTreeSet<CfId>,
    /// The last sequence number.
    pub last_seq: SeqNum,
    /// The WAL from which on no number is missing; the first if numbers are missing within a WAL, too.
    pub first_in_line: FileNumber,
    /// The number of the next write.
    next: Option<SeqNum>,
    /// Writes of what is prepared, by name.
    prepared: BTreeMap<Vec<u8>, u64>,
    /// Some writes are in no WAL, so that missing numbers say nothing.
    has_unlogged: bool,
    /// There was damage since the last record: numbers that are missing after it may be those of what was damaged.
    excused: bool,
}

impl Survey {
    /// Reads one more WAL, which comes after the others, for what it writes to.
    ///
    /// # Errors
    /// NotSupported for transactions of another write policy and for user timestamps: these are not damage.
    pub fn read(&mut self, env: &Env, dir: &Path, number: FileNumber) -> Result<()> {
        let mut first_record = true;
        let damaged = Cell::new(self.excused);
        let each = |record: &[u8], _| match parse_batch(record) {
            Ok(batch) => {
                let used = self.used(record)?;
                self.families.extend(batch.writes.keys());
                if used > 0 {
                    let excused = damaged.take();
                    let gap = self.next.is_some_and(|next| batch.first > next) && !excused;
                    match first_record {
                        true if gap => self.first_in_line = number,
                        false if gap => self.has_unlogged = true,
                        _ => {}
                    }
                    first_record = false;
                    let end = SeqNum(batch.first.0.saturating_add(used).min(SeqNum::MAX.0));
                    self.next = Some(end);
                    self.last_seq = self.last_seq.max(SeqNum(end.0.saturating_sub(1)));
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotSupported => {
                Err(error.within(file_name::wal(dir, number).display()))
            }
            Err(_) => {
                damaged.set(true);
                Ok(())
            }
        };
        each_record(env, dir, number, each, |_| damaged.set(true))?;
        self.excused = damaged.get();
        Ok(())
    }

    /// The WAL before which others may be missing.
    pub fn line_begins(&self) -> FileNumber {
        if self.has_unlogged { FileNumber(0) } else { self.first_in_line }
    }

    /// How many numbers a batch uses: those of what it commits are not in it.
    fn used(&mut self, record: &[u8]) -> Result<u64> {
        let (mut used, mut preparing) = (0, None);
        let mut items = codec::records(record)?;
        while let Some(item) = items.next_item() {
            match (item?, &mut preparing) {
                (Item::Write(_), Some(count)) => *count += 1,
                (Item::Write(_), None) => used += 1,
                (Item::Marker(Marker::BeginPrepare), _) => preparing = Some(0),
                (Item::Marker(Marker::EndPrepare(name)), _) => {
                    self.prepared.insert(name.to_vec(), preparing.take().unwrap_or(0));
                }
                (Item::Marker(Marker::Commit(name)), _) => used += self.prepared.remove(name).unwrap_or(0),
                (Item::Marker(Marker::Rollback(name)), _) => drop(self.prepared.remove(name)),
            }
        }
        Ok(used)
    }
}

/// A batch that decodes whole.
pub struct Batch {
    /// Its number.
    pub first: SeqNum,
    /// Writes by column family.
    pub writes: BTreeMap<CfId, u64>,
    /// The transaction that it prepares.
    pub prepares: Option<Vec<u8>>,
}

/// Checks a whole batch before any of it is applied.
///
/// # Errors
/// Corruption if it does not decode; NotSupported naming the feature of a record this engine does not implement.
pub fn parse_batch(record: &[u8]) -> Result<Batch> {
    let mut records = codec::records(record)?;
    let (first, stated) = (codec::sequence_of(record), codec::count_of(record));
    let (mut writes, mut count, mut prepares) = (BTreeMap::new(), 0u32, None);
    while let Some(item) = records.next_item() {
        match item? {
            Item::Write(write) => {
                *writes.entry(write.cf).or_default() += 1;
                count += 1;
            }
            Item::Marker(Marker::EndPrepare(name)) => prepares = Some(name.to_vec()),
            Item::Marker(Marker::BeginPrepare | Marker::Commit(_) | Marker::Rollback(_)) => {}
        }
    }
    if count != stated {
        return Err(Error::corruption(format!("a write batch says {stated} records but holds {count}")));
    }
    match first.0.checked_add(u64::from(count)).filter(|end| *end <= SeqNum::MAX.0) {
        Some(_) => Ok(Batch { first, writes, prepares }),
        None => Err(Error::corruption(format!("a write batch has sequence number {first}"))),
    }
}

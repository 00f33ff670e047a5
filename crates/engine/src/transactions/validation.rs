//! Whether a key was written after a sequence number.
//!
//! Memtables tell, those too that are in tables already and are kept for this (`SuperVersion::history`). Where they do not
//! reach back far enough, tables are asked, or the answer is that nobody knows.
//!
//! Invariant: the newest record of a key decides, whatever it is. A deletion of a range counts as far as memtables have it.
//! Source: RocksDB `utilities/transactions/transaction_util.cc`.

use crate::column_family::ColumnFamily;
use crate::read::get::newest_in_tables;
use crate::superversion::SuperVersion;
use crate::table_cache::TableCache;
use outcrop_base::{Error, ErrorKind, LookupKey, Result, SeqNum};
use std::ops::ControlFlow;

/// Where a check may look.
#[derive(Clone, Copy)]
pub enum Reach<'t> {
    /// In memory alone.
    Memory,
    /// In tables, too.
    Tables(&'t TableCache),
}

/// Fails if `key` was written after `since`.
///
/// # Errors
/// Busy if it was; TryAgain if memory does not reach back to `since`, and nothing else may be asked.
pub fn check_unchanged(
    cf: &ColumnFamily,
    sources: &SuperVersion,
    key: &[u8],
    since: SeqNum,
    reach: Reach<'_>,
) -> Result<()> {
    let covered = sources.memtables_since().is_some_and(|from| from <= since);
    if let (Reach::Memory, false) = (reach, covered) {
        return Err(too_new(sources.memtables_since(), since));
    }
    let lookup = LookupKey::new(key);
    let newest = newest_in_memory(sources, &lookup);
    let newest = match (newest, reach) {
        (None, Reach::Tables(tables)) if !covered => newest_in_tables(tables, cf, &sources.version, &lookup)?,
        (newest, _) => newest,
    };
    match newest {
        Some(seq) if seq > since => Err(Error::new(ErrorKind::Busy, "")),
        _ => Ok(()),
    }
}

/// The number of the newest record of the key in memtables.
fn newest_in_memory(sources: &SuperVersion, key: &LookupKey<'_>) -> Option<SeqNum> {
    sources.memtables().find_map(|memtable| {
        let mut newest = None;
        memtable.get(key, SeqNum::MAX, |seq, _, _| {
            newest = Some(seq);
            ControlFlow::Break(())
        });
        let range = memtable.covering(key.user_key, SeqNum::MAX);
        newest.max((range > SeqNum::ZERO).then_some(range))
    })
}

fn too_new(reaches_to: Option<SeqNum>, since: SeqNum) -> Error {
    let text = match reaches_to {
        Some(from) => format!(
            "Transaction could not check for conflicts for operation at SequenceNumber {since} as the MemTable only contains \
             changes newer than SequenceNumber {from}.  Increasing the value of the max_write_buffer_size_to_maintain option \
             could reduce the frequency of this error."
        ),
        None => format!(
            "Transaction could not check for conflicts as the MemTable does not contain a long enough history to check write at \
             SequenceNumber: {since}"
        ),
    };
    Error::new(ErrorKind::TryAgain, text)
}

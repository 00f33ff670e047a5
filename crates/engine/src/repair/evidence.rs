//! Up to which number the writes in WALs are in tables, where no MANIFEST says so.
//!
//! A compaction takes the number from an entry that nothing lies below, so a table can hold what was merged into it without showing.
//! But memtables are flushed whole and in order: one write that a table shows proves the earlier ones of its column family, and one that
//! a table would have to show and does not, proves that the later ones are in none.

use super::known::{Known, KnownTables};
use super::records::{each_record, parse_batch};
use crate::batch::codec::{self, Item, Marker, Op};
use outcrop_base::xxph3::xxph3_64;
use outcrop_base::{CfId, Comparator, Result, SeqNum};
use outcrop_manifest::FileNumber;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The evidence that WALs and tables of one column family give together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// Writes up to here are in tables: numbers in tables say so.
    pub flushed: SeqNum,
    /// Writes up to here seem to be: a table without numbers has the value. It may have been written twice.
    pub seem_flushed: SeqNum,
    /// Writes from here on seem to be in none: a table would have to show one. A later write may have changed what it shows, in a WAL
    /// that is gone.
    pub unflushed: Option<SeqNum>,
}

impl Evidence {
    /// Whether tables have the write of this number, as far as it seems; `None` if nothing says so, or contrary things do.
    pub fn seems_flushed(&self, seq: SeqNum) -> Option<bool> {
        let in_none = self.unflushed.is_some_and(|first| first <= seq);
        let contrary = self.unflushed.is_some_and(|first| first <= self.seem_flushed.max(self.flushed));
        match (seq <= self.seem_flushed, in_none) {
            _ if contrary => None,
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

/// The last write to a key in all WALs.
#[derive(Clone, Copy)]
struct Last {
    seq: SeqNum,
    write: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// With the hash of its value.
    Put(u64),
    Merge,
    Delete,
}

/// The writes of one column family.
#[derive(Default)]
struct Writes {
    last: HashMap<Vec<u8>, Last>,
    ranges: Vec<(Vec<u8>, Vec<u8>, SeqNum)>,
}

/// Looks at `wals`, which are in `wal_dir`. Older ones than those are to be left out: keys in them may have been written once more in others, which are gone.
///
/// # Errors
/// Of reading tables.
pub fn gather(
    tables: &KnownTables<'_>,
    wal_dir: &Path,
    wals: impl Iterator<Item = FileNumber>,
) -> Result<BTreeMap<CfId, Evidence>> {
    let mut written: BTreeMap<CfId, Writes> = BTreeMap::new();
    for number in wals {
        let each = |record: &[u8], _| {
            if parse_batch(record).is_ok() {
                take(record, &mut written)?;
            }
            Ok(())
        };
        each_record(&tables.ctx.env, wal_dir, number, each, |_| {})?;
    }
    let mut found = BTreeMap::new();
    for (id, writes) in &written {
        if tables.families.contains_key(id) && tables.has_tables(*id) {
            found.insert(*id, of_family(tables, *id, writes)?);
        }
    }
    Ok(found)
}

fn take(record: &[u8], written: &mut BTreeMap<CfId, Writes>) -> Result<()> {
    let (mut seq, mut preparing) = (codec::sequence_of(record), false);
    let mut items = codec::records(record)?;
    while let Some(item) = items.next_item() {
        match item? {
            Item::Marker(marker) => preparing = marker == Marker::BeginPrepare,
            Item::Write(_) if preparing => {}
            Item::Write(write) => {
                let writes = written.entry(write.cf).or_default();
                let (key, kind) = match write.op {
                    Op::Put { key, value } => (key, Kind::Put(xxph3_64(value))),
                    Op::PutEntity { key, .. } | Op::Delete { key } | Op::SingleDelete { key } => {
                        (key, Kind::Delete)
                    }
                    Op::Merge { key, .. } => (key, Kind::Merge),
                    Op::DeleteRange { begin, end } => {
                        writes.ranges.push((begin.to_vec(), end.to_vec(), seq));
                        seq = seq.plus(1);
                        continue;
                    }
                };
                writes.last.insert(key.to_vec(), Last { seq, write: kind });
                seq = seq.plus(1);
            }
        }
    }
    Ok(())
}

fn of_family(tables: &KnownTables<'_>, id: CfId, writes: &Writes) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    let order = tables.order(id);
    for (key, last) in &writes.last {
        let known = tables.of_key(id, key)?;
        match shows(last, &known, writes.hides(&order, key, last.seq)) {
            Shown::ByNumber => evidence.flushed = evidence.flushed.max(last.seq),
            Shown::ByValue => evidence.seem_flushed = evidence.seem_flushed.max(last.seq),
            Shown::Not => {
                let first = evidence.unflushed.map_or(last.seq, |first| first.min(last.seq));
                evidence.unflushed = Some(first);
            }
            Shown::Nothing => {}
        }
    }
    Ok(evidence)
}

/// How tables show a write.
enum Shown {
    /// They have it or a later one.
    ByNumber,
    /// An entry without a number has its value.
    ByValue,
    /// They would have to, and do not.
    Not,
    /// They need not.
    Nothing,
}

/// How tables show the write.
fn shows(last: &Last, known: &Known, hidden: bool) -> Shown {
    if known.newest.is_some_and(|newest| newest >= last.seq) || known.hidden_below > last.seq {
        return Shown::ByNumber;
    }
    match (last.write, known.found) {
        // A deletion leaves nothing to be shown.
        _ if hidden => Shown::Nothing,
        (Kind::Delete, _) => Shown::Nothing,
        (Kind::Put(hash), Some(SeqNum::ZERO)) => match known.value {
            Some(value) if value == hash => Shown::ByValue,
            Some(_) => Shown::Not,
            None => Shown::Nothing,
        },
        (Kind::Merge, Some(SeqNum::ZERO)) => Shown::Nothing,
        (Kind::Put(_) | Kind::Merge, _) => Shown::Not,
    }
}

impl Writes {
    /// True if a range that was deleted later has the key.
    fn hides(&self, order: &Comparator, key: &[u8], seq: SeqNum) -> bool {
        self.ranges.iter().any(|(begin, end, deleted)| {
            *deleted > seq && order.compare(begin, key).is_le() && order.compare(key, end).is_lt()
        })
    }
}

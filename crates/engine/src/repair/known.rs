//! The entries that tables have of a key: tables that were found, and tables that were made of WALs since.

use super::families::Family;
use super::scan::Scanned;
use crate::context::DbContext;
use outcrop_base::keys::{Trailer, split, user_key};
use outcrop_base::xxph3::xxph3_64;
use outcrop_base::{CfId, Comparator, RangeTombstone, Result, SeqNum, ValueType};
use outcrop_manifest::{FileNumber, TableFile};
use outcrop_table::{Loading, TableIterOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The known facts about the newest entry that tables have of a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Its number; `None`: there is none.
    pub newest: Option<SeqNum>,
    /// The same of tables that were found, without those made of WALs.
    pub found: Option<SeqNum>,
    /// The hash of the value of `found`, if it is a plain one.
    pub value: Option<u64>,
    /// The youngest found table that has `found`.
    pub table: FileNumber,
    /// A range tombstone over it has this number.
    pub hidden_below: SeqNum,
}

/// Tables of one column family, for questions of what they have.
pub struct Tables<'a> {
    /// Those that can be read.
    pub scanned: &'a [Scanned],
    /// Some could not, or are missing.
    pub incomplete: bool,
    /// Those, as far as the MANIFEST knows them.
    pub lost: &'a [Arc<TableFile>],
    /// Those that a MANIFEST which was read in part knows and that are not there: they may have become others, or be lost.
    pub vanished: &'a [Arc<TableFile>],
}

/// The tables of all column families.
pub struct KnownTables<'a> {
    /// Opens them.
    pub ctx: &'a Arc<DbContext>,
    /// The column families.
    pub families: &'a BTreeMap<CfId, Family>,
    /// Tables that were found.
    pub found: BTreeMap<CfId, Tables<'a>>,
    /// New tables by column family, oldest first, with their entries.
    pub made: BTreeMap<CfId, Vec<(Arc<TableFile>, u64)>>,
}

impl KnownTables<'_> {
    /// True if there are tables of the column family, or were made.
    pub fn has_tables(&self, id: CfId) -> bool {
        self.found.get(&id).is_some_and(|tables| !tables.scanned.is_empty())
            || self.made.get(&id).is_some_and(|tables| !tables.is_empty())
    }

    /// The order of keys of the column family.
    pub fn order(&self, id: CfId) -> Comparator {
        self.families[&id].cf.comparator.clone()
    }

    /// Tables of the column family, those made of WALs last.
    pub fn files(&self, id: CfId) -> impl Iterator<Item = &Arc<TableFile>> {
        let old =
            self.found.get(&id).map_or(&[][..], |tables| tables.scanned).iter().map(|table| &table.file);
        old.chain(self.made.get(&id).into_iter().flatten().map(|(file, _)| file))
    }

    /// The facts that tables have of a key.
    ///
    /// # Errors
    /// Of reading them.
    pub fn of_key(&self, id: CfId, key: &[u8]) -> Result<Known> {
        let cf = &self.families[&id].cf;
        let order = &cf.comparator;
        let mut known = Known::default();
        let found = self.found.get(&id).map_or(0, |tables| tables.scanned.len());
        for (index, file) in self.files(id).enumerate() {
            if file.starts_after(order, key) || file.ends_before(order, key) {
                continue;
            }
            let options = TableIterOptions { loading: Loading::NotKept, ..TableIterOptions::default() };
            let mut iter = self.ctx.tables.open(cf, file)?.iter(options);
            iter.seek(key, Trailer::MAX);
            iter.status()?;
            if iter.valid() && order.compare(user_key(iter.key()), key).is_eq() {
                let (_, trailer) = split(iter.key());
                let seq = Some(trailer.seq());
                known.newest = known.newest.max(seq);
                if index < found && (seq, file.number) >= (known.found, known.table) {
                    (known.found, known.table) = (seq, file.number);
                    let plain = trailer.value_type() == Some(ValueType::Value);
                    known.value = plain.then(|| xxph3_64(iter.value()));
                }
            }
            if let Some(fragments) = self.ctx.tables.range_tombstones(cf, file)? {
                known.hidden_below = known.hidden_below.max(fragments.covering(order, key, SeqNum::MAX));
            }
        }
        Ok(known)
    }

    /// True if a table is lost that had the key in its range, as far as the MANIFEST knows.
    pub fn may_be_lost(&self, id: CfId, key: &[u8]) -> bool {
        self.found.get(&id).is_some_and(|tables| self.any_has(id, tables.lost, key))
    }

    /// True if a table is not there that had the key in its range, lost or become another.
    pub fn may_have_vanished(&self, id: CfId, key: &[u8]) -> bool {
        self.found.get(&id).is_some_and(|tables| self.any_has(id, tables.vanished, key))
    }

    /// True if one of `files` has the key in its range.
    fn any_has(&self, id: CfId, files: &[Arc<TableFile>], key: &[u8]) -> bool {
        let order = &self.families[&id].cf.comparator;
        files.iter().any(|file| !file.starts_after(order, key) && !file.ends_before(order, key))
    }

    /// True if tables of the column family are lost.
    pub fn are_incomplete(&self, id: CfId) -> bool {
        self.found.get(&id).is_some_and(|tables| tables.incomplete)
    }

    /// True if there is a table of the column family that was begun after the WAL: only such tables can have writes of it.
    pub fn any_is_younger(&self, id: CfId, wal: FileNumber) -> bool {
        self.found.get(&id).is_some_and(|tables| tables.scanned.iter().any(|table| table.file.number > wal))
    }

    /// The number above which no write is in tables of the column family. A table from whose entries a compaction took the numbers can
    /// have any.
    pub fn newest(&self, id: CfId) -> SeqNum {
        let newest = |file: &Arc<TableFile>| match file.smallest_seq {
            SeqNum::ZERO => SeqNum::MAX,
            _ => file.largest_seq,
        };
        self.files(id).map(newest).max().unwrap_or_default()
    }

    /// The keys that tables have in a range, each once.
    ///
    /// # Errors
    /// Of reading them.
    pub fn keys_in(&self, id: CfId, range: &RangeTombstone) -> Result<Vec<Vec<u8>>> {
        let cf = &self.families[&id].cf;
        let order = &cf.comparator;
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for file in self.files(id) {
            if file.ends_before(order, &range.begin) || file.starts_after(order, &range.end) {
                continue;
            }
            let options = TableIterOptions { loading: Loading::NotKept, ..TableIterOptions::default() };
            let mut iter = self.ctx.tables.open(cf, file)?.iter(options);
            iter.seek(&range.begin, Trailer::MAX);
            while iter.valid() && order.compare(user_key(iter.key()), &range.end).is_lt() {
                keys.push(user_key(iter.key()).to_vec());
                iter.next();
            }
            iter.status()?;
        }
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup_by(|a, b| order.compare(a, b).is_eq());
        Ok(keys)
    }
}

//! WALs become tables of level 0. The contents of a WAL are taken over record by record, each whole or not at all; damage is passed over.
//!
//! A WAL can outlive what it was for: its writes may be in tables long since, and merged, moved below newer ones, or deleted there. Where
//! the MANIFEST says which WALs were needed, the others are left out. Where it does not, a write is left out if a table has its key with
//! the same number or a later one; a second copy of a merge operand would count twice, and an older write in a newer table would hide
//! what came after.
//! Transactions that are prepared and not decided stay so: they are written to a WAL of their own.

use super::evidence::Evidence;
use super::known::{Known, KnownTables};
use super::records::{each_record, parse_batch};
use super::report::RepairedWal;
use crate::batch::codec;
use crate::context::DbContext;
use crate::flush::job::write_l0;
use crate::info_log::{LogLevel, log_at, log_line};
use crate::pending_outputs::PendingOutputs;
use crate::prepared::PreparedTransactions;
use outcrop_base::keys::{LookupKey, split, user_key};
use outcrop_base::{CfId, Error, RangeTombstone, Result, SeqNum, ValueType};
use outcrop_env::OpenWrite;
use outcrop_manifest::{BlobFile, FileNumber, file_name};
use outcrop_memtable::MemTable;
use outcrop_record::LogWriter;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of memtables at which they become tables in the middle of a WAL.
const MEMORY: usize = 64 << 20;
/// The size that a memtable here starts with, in bytes.
const MEMTABLE: u64 = 1 << 20;

/// Keys that the report of one WAL names at most.
const DOUBTFUL_KEYS: usize = 1000;

/// Whether tables have a write that a WAL has.
#[derive(Clone, Copy)]
enum Verdict {
    /// Proven.
    InTables,
    /// Proven.
    InNone,
    /// So it is if the newest WALs are among those that are there.
    SeemsInTables,
    /// The same.
    SeemsInNone,
    /// Nobody can tell.
    Unclear,
}

impl Verdict {
    fn is_in_tables(self) -> Option<bool> {
        match self {
            Verdict::InTables | Verdict::SeemsInTables => Some(true),
            Verdict::InNone | Verdict::SeemsInNone => Some(false),
            Verdict::Unclear => None,
        }
    }
}

/// WALs on their way into tables.
pub struct Conversion<'a> {
    /// Where tables are written.
    pub ctx: &'a Arc<DbContext>,
    /// Numbers of the new tables.
    pub outputs: &'a PendingOutputs,
    /// The column families with their tables.
    pub known: KnownTables<'a>,
    /// Those that are written to.
    pub written_to: BTreeSet<CfId>,
    /// Those that were dropped.
    pub dropped: &'a BTreeSet<CfId>,
    /// The MANIFEST says which WALs a column family needs.
    pub trusted: bool,
    /// Where it does not: what WALs and tables say together.
    pub evidence: BTreeMap<CfId, Evidence>,
    /// The WAL that was written last: nothing in it was flushed.
    pub last_wal: FileNumber,
    /// Between older WALs and this one numbers are missing: others were there, and are removed only after the older ones were not
    /// needed any more. Or writes went past the WAL.
    pub first_in_line: FileNumber,
    /// New blob files by column family.
    pub new_blobs: BTreeMap<CfId, Vec<Arc<BlobFile>>>,
    /// Where the WALs are.
    pub wal_dir: PathBuf,
    /// The highest number of a write.
    pub last_seq: SeqNum,
    /// Older WALs are not needed: those with what is prepared begin here.
    pub kept_from: FileNumber,
    /// Transactions of the WALs from there on.
    pub transactions: Transactions,
    /// Those of older WALs, which lost tables alone bring back: they are decided, or in a newer WAL again.
    pub obsolete: Transactions,
}

/// Transactions of WALs.
#[derive(Default)]
pub struct Transactions {
    /// Those that are prepared and not decided.
    pub prepared: PreparedTransactions,
    /// All that were prepared, decided or not.
    prepared_before: BTreeSet<Vec<u8>>,
}

impl Conversion<'_> {
    /// Converts one WAL; the older ones were before.
    ///
    /// # Errors
    /// Of writing tables.
    pub fn convert(&mut self, number: FileNumber) -> Result<RepairedWal> {
        let mut report = RepairedWal { number: number.0, ..RepairedWal::default() };
        let mut memtables = self.empty_memtables();
        let mut next_seq: Option<SeqNum> = None;
        let mut damage = Vec::new();
        let (ctx, wal_dir, outcome) = (self.ctx.clone(), self.wal_dir.clone(), &mut report);
        let each = |record: &[u8], offset: u64| {
            match self.apply(record, number, &memtables, &mut next_seq, outcome) {
                Ok(()) => {}
                Err(error) => {
                    let path = file_name::wal(&self.wal_dir, number);
                    outcome.damage.push(format!("{}: offset {offset}: {error}", path.display()));
                }
            }
            let bytes: usize = memtables.values().map(|memtable| memtable.memory_usage()).sum();
            if bytes > MEMORY {
                let full = std::mem::replace(&mut memtables, self.empty_memtables());
                next_seq = None;
                self.write(number, full, outcome)?;
            }
            Ok(())
        };
        each_record(&ctx.env, &wal_dir, number, each, |text| damage.push(text))?;
        self.write(number, memtables, &mut report)?;
        report.damage.append(&mut damage);
        for text in &report.damage {
            log_at!(self.ctx, LogLevel::Error, "Log #{}: dropping bytes; {text}", number.0);
        }
        Ok(report)
    }

    fn empty_memtables(&self) -> BTreeMap<CfId, Arc<MemTable>> {
        let of = |id: &CfId| {
            let order = self.known.families.get(id)?.cf.comparator.clone();
            Some((*id, Arc::new(MemTable::new(order, MEMTABLE, &self.ctx.memtable_pool))))
        };
        self.written_to.iter().filter_map(of).collect()
    }

    /// True if the MANIFEST says that the column family's writes in the WAL are in tables, and they are.
    fn is_done(&self, id: CfId, wal: FileNumber) -> bool {
        self.trusted && !self.known.are_incomplete(id) && self.known.families[&id].log_number > wal
    }

    /// The same of one key, where tables of other keys are lost.
    fn is_done_with(&self, id: CfId, wal: FileNumber, key: &[u8]) -> bool {
        self.trusted && self.known.families[&id].log_number > wal && !self.known.may_be_lost(id, key)
    }

    fn apply(
        &mut self,
        record: &[u8],
        wal: FileNumber,
        memtables: &BTreeMap<CfId, Arc<MemTable>>,
        next_seq: &mut Option<SeqNum>,
        report: &mut RepairedWal,
    ) -> Result<()> {
        let batch = parse_batch(record)?;
        let count: u64 = batch.writes.values().sum();
        if count > 0 && next_seq.is_some_and(|next| batch.first < next) {
            return Err(Error::corruption(format!("sequence number {} is replayed twice", batch.first)));
        }
        let done: BTreeSet<CfId> = memtables.keys().copied().filter(|id| self.is_done(*id, wal)).collect();
        let memtable_of = |id: CfId| match done.contains(&id) {
            true => None,
            false => memtables.get(&id).map(|memtable| &**memtable),
        };
        let Transactions { prepared, prepared_before } =
            if wal < self.kept_from { &mut self.obsolete } else { &mut self.transactions };
        // An older WAL has it, and what was decided there.
        let is_there = batch.prepares.is_some_and(|name| !prepared_before.insert(name))
            && codec::is_prepared_again(record);
        let used = if is_there { 0 } else { prepared.replay(record, batch.first, wal, memtable_of)? };
        let next = batch.first.plus(used);
        *next_seq = Some(next);
        self.last_seq = self.last_seq.max(SeqNum(next.0.saturating_sub(1)));
        report.writes += count;
        let homeless = |id: &CfId| !self.known.families.contains_key(id) && !self.dropped.contains(id);
        report.homeless +=
            batch.writes.iter().filter(|(id, _)| homeless(id)).map(|(_, count)| *count).sum::<u64>();
        Ok(())
    }

    /// Writes the tables of one WAL, or of a part of it.
    fn write(
        &mut self,
        wal: FileNumber,
        memtables: BTreeMap<CfId, Arc<MemTable>>,
        report: &mut RepairedWal,
    ) -> Result<()> {
        for (id, memtable) in memtables.into_iter().filter(|(_, memtable)| !memtable.is_empty()) {
            let family = &self.known.families[&id];
            let needed = self.trusted && family.log_number <= wal;
            let memtable = match needed {
                true => memtable,
                false => self.without_known(id, wal, &memtable, report)?,
            };
            if memtable.is_empty() {
                continue;
            }
            let entries = memtable.num_entries();
            let reserve = || self.outputs.reserve();
            let written = write_l0(self.ctx, &family.cf, &[&memtable], Default::default(), (0, 0), &reserve)?;
            report.recovered += entries;
            for table in &written.tables {
                log_line!(self.ctx, "Log #{}: {entries} ops saved to Table #{} OK", wal.0, table.number.0);
            }
            let tables = written.tables.into_iter().map(|table| (table, entries));
            self.known.made.entry(id).or_default().extend(tables);
            self.new_blobs.entry(id).or_default().extend(written.blob_files);
        }
        Ok(())
    }

    /// The entries of `memtable` that no table has, or has a later one of the same key than.
    fn without_known(
        &self,
        id: CfId,
        wal: FileNumber,
        memtable: &Arc<MemTable>,
        report: &mut RepairedWal,
    ) -> Result<Arc<MemTable>> {
        let newest = self.known.newest(id);
        let order = memtable.comparator().clone();
        let left = Arc::new(MemTable::new(order.clone(), MEMTABLE, &self.ctx.memtable_pool));
        let tombstones = memtable.range_tombstones();
        for tombstone in tombstones.iter().flat_map(|set| set.tombstones().collect::<Vec<_>>()) {
            // One that the MANIFEST says is in tables is to hide nothing but what lost tables had.
            if tombstone.seq > newest && !self.trusted {
                left.insert_range_tombstone(tombstone.seq, &tombstone.begin, &tombstone.end);
            } else {
                self.delete_keys(id, wal, &tombstone, &left, report)?;
            }
        }
        let mut iter = memtable.iter();
        iter.seek_to_first();
        while iter.valid() {
            let key = user_key(iter.key()).to_vec();
            let mut versions = Vec::new();
            while iter.valid() && order.compare(user_key(iter.key()), &key).is_eq() {
                let (this, trailer) = split(iter.key());
                let kind = trailer.value_type();
                versions.push((this.to_vec(), trailer.seq(), kind, iter.value().to_vec()));
                iter.next();
            }
            if self.is_done_with(id, wal, &key) {
                continue;
            }
            let merges = versions.iter().any(|(_, _, kind, _)| *kind == Some(ValueType::Merge));
            let known = match versions.iter().any(|(_, seq, ..)| *seq <= newest) || merges {
                true => self.known.of_key(id, &key)?,
                false => Known::default(),
            };
            // From the oldest on: what is merged onto a write of this WAL does not ask what is below.
            let mut has_base = false;
            let last = versions.first().map(|(_, seq, ..)| *seq);
            for (key, seq, kind, value) in versions.into_iter().rev() {
                let hidden = known.hidden_below.max(memtable.covering(&key, SeqNum::MAX));
                let superseded = known.newest.is_some_and(|known| known >= seq) || hidden > seq;
                let Some(kind) = kind.filter(|_| !superseded) else { continue };
                has_base |= is_deleted_in(&left, &key, seq);
                if !has_base {
                    let verdict = match seq > newest {
                        true => Verdict::InNone,
                        false => self.verdict(id, wal, (&key, seq), &known),
                    };
                    self.tell(id, &key, verdict, report);
                    // An operand would count twice, and a deletion that nothing follows hide what was written later.
                    let hides =
                        matches!(kind, ValueType::Deletion | ValueType::SingleDeletion) && last == Some(seq);
                    let left_out = kind == ValueType::Merge || hides || wal < self.first_in_line;
                    if verdict.is_in_tables().unwrap_or(left_out) {
                        continue;
                    }
                }
                has_base |= kind != ValueType::Merge;
                left.insert(seq, kind, &key, &value);
            }
        }
        Ok(left)
    }

    /// Whether tables have a write of this key and number though the entry they have of the key is older, or has no number.
    fn verdict(&self, id: CfId, wal: FileNumber, (key, seq): (&[u8], SeqNum), known: &Known) -> Verdict {
        let incomplete = self.known.are_incomplete(id);
        // Of a MANIFEST that was read in part: numbers of WALs that are needed only grow.
        let was_flushed = self.known.families[&id].log_number > wal;
        if was_flushed && !incomplete && !self.known.may_have_vanished(id, key) {
            return Verdict::InTables;
        }
        if !self.known.any_is_younger(id, wal) {
            return Verdict::InNone;
        }
        match known.found {
            // They may have had it, and its deletion.
            None if wal != self.last_wal => return Verdict::SeemsInNone,
            Some(SeqNum::ZERO) if known.table >= wal => {}
            _ => return Verdict::InNone,
        }
        if wal == self.last_wal {
            return Verdict::SeemsInNone;
        }
        let evidence = self.evidence.get(&id).copied().unwrap_or_default();
        if seq <= evidence.flushed {
            return Verdict::InTables;
        }
        // A table that is lost may have had what no other shows.
        let may_be_lost = wal < self.first_in_line || incomplete;
        match evidence.seems_flushed(seq) {
            Some(true) => Verdict::SeemsInTables,
            Some(false) if !may_be_lost => Verdict::SeemsInNone,
            _ => Verdict::Unclear,
        }
    }

    /// Notes in the report what is not certain.
    fn tell(&self, id: CfId, key: &[u8], verdict: Verdict, report: &mut RepairedWal) {
        match verdict {
            Verdict::InTables | Verdict::InNone => return,
            Verdict::SeemsInTables | Verdict::SeemsInNone => report.presumed += 1,
            Verdict::Unclear => report.unclear += 1,
        }
        let doubtful = (self.known.families[&id].cf.name().to_string(), key.to_vec());
        if report.doubtful_keys.len() < DOUBTFUL_KEYS && report.doubtful_keys.last() != Some(&doubtful) {
            report.doubtful_keys.push(doubtful);
        }
    }

    /// Deletes the keys that tables have in a range, one by one: a table with the range, above newer entries, would hide these.
    fn delete_keys(
        &self,
        id: CfId,
        wal: FileNumber,
        range: &RangeTombstone,
        left: &MemTable,
        report: &mut RepairedWal,
    ) -> Result<()> {
        for key in self.known.keys_in(id, range)? {
            if self.is_done_with(id, wal, &key) {
                continue;
            }
            let known = self.known.of_key(id, &key)?;
            let older =
                known.newest.is_some_and(|newest| newest < range.seq) && known.hidden_below < range.seq;
            if !older {
                continue;
            }
            let verdict = self.verdict(id, wal, (&key, range.seq), &known);
            self.tell(id, &key, verdict, report);
            // In doubt the keys stay.
            if verdict.is_in_tables() == Some(false) {
                left.insert(range.seq, ValueType::Deletion, &key, &[]);
            }
        }
        Ok(())
    }

    /// Writes what is prepared and not decided to a WAL of its own; its number, if there is anything.
    ///
    /// # Errors
    /// Of writing it.
    pub fn write_prepared(&self) -> Result<Option<FileNumber>> {
        let Transactions { prepared, .. } = &self.transactions;
        if prepared.is_empty() {
            return Ok(None);
        }
        let number = self.ctx.new_file_number();
        let path = file_name::wal(&self.ctx.wal_dir, number);
        let written = (|| {
            let file = self.ctx.env.fs.create(&path, OpenWrite::default())?;
            let mut writer = LogWriter::new(file, number.0, false);
            for (name, writes) in prepared.list() {
                let mut record = codec::prepared_record(&writes, &name);
                record[..8].copy_from_slice(&self.last_seq.plus(1).0.to_le_bytes());
                writer.append(&record)?;
            }
            writer.sync()?;
            writer.close()?;
            self.ctx.env.fs.sync_dir(&self.ctx.wal_dir)
        })();
        if written.is_err() {
            // Best effort: another repair would read it.
            let _ = self.ctx.env.fs.remove_file(&path);
        }
        written.map(|()| Some(number))
    }
}

/// True if the key is deleted in the memtable below this number, alone or with a range.
fn is_deleted_in(memtable: &MemTable, key: &[u8], seq: SeqNum) -> bool {
    let mut deleted = memtable.covering(key, seq) > SeqNum::ZERO;
    memtable.get(&LookupKey::new(key), seq, |_, kind, _| {
        deleted |= kind == ValueType::Deletion;
        ControlFlow::Break(())
    });
    deleted
}

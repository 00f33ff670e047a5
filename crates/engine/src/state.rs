//! The database's shared structure, all inside one lock.
//!
//! Invariant: everything that says which memtables, tables, WALs and jobs exist is here, behind
//! `VersionSet::state`. The lock is never held across IO. A function that needs it takes `&mut DbState`.

use crate::background_errors::{AutoResume, CompactionPause, Severity};
use crate::column_family::{ColumnFamily, ColumnFamilyDescriptor, new_memtable};
use crate::compaction::RunningCompaction;
use crate::compaction::manual_request::ManualCompaction;
use crate::compaction::marks::{self, MarkContext, Marks};
use crate::compaction::pick::{self, Debt, PickInput};
use crate::compaction::stamps::StampRules;
use crate::context::{closing_error, foreign_error};
use crate::events::reasons::FlushReason;
use crate::prepared::PreparedTransactions;
use crate::superversion::SuperVersion;
use crate::write::stall_condition::StallCondition;
use outcrop_base::{CfId, Error, ErrorKind, Result, SeqNum};
use outcrop_manifest::{FileNumber, TableFile, Version};
use outcrop_memtable::{MemTable, MemTablePool};
use outcrop_options::ColumnFamilyOptions;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// A memtable that takes no more writes.
#[derive(Clone)]
pub struct SealedMemTable {
    /// Its contents.
    pub memtable: Arc<MemTable>,
    /// The first WAL that holds none of its data: once it is flushed, older WALs are not needed for it.
    pub next_wal: FileNumber,
    /// The last sequence number that was given when it was sealed: entries with it or a smaller one are in older WALs.
    pub last_seq: SeqNum,
    /// Why it was sealed.
    pub reason: FlushReason,
}

/// Structure of one column family.
pub struct CfState {
    /// The shared part.
    pub cf: Arc<ColumnFamily>,
    /// The memtable that receives writes.
    pub memtable: Arc<MemTable>,
    /// Memtables to flush, oldest first.
    pub sealed: Vec<SealedMemTable>,
    /// Memtables that are in tables, oldest first, kept while `max_write_buffer_size_to_maintain` allows.
    pub history: VecDeque<Arc<MemTable>>,
    /// Its tables.
    pub version: Arc<Version>,
    /// All data in WALs below this number is in tables.
    pub log_number: FileNumber,
    /// The same as the MANIFEST was told: lower where a column family had nothing in memory when a WAL began. Those WALs are not synced, and if
    /// one is lost in part, the MANIFEST must not say that this column family is beyond it.
    pub manifest_log_number: FileNumber,
    /// Epoch of the next flush.
    pub next_epoch: u64,
    /// A flush job owns the front of `sealed`.
    pub flush_running: bool,
    /// Flush jobs that have ended.
    pub flushes_ended: u64,
    /// Flush even if fewer than `min_write_buffer_number_to_merge` memtables are sealed.
    pub flush_requested: bool,
    /// How far the tables are from the shape they should have.
    pub debt: Debt,
    /// Tables that want to be compacted for other reasons than size.
    pub marks: Marks,
    /// Tables that a caller suggested to compact.
    pub suggested: BTreeSet<FileNumber>,
    /// Tables of the last level that were written while a snapshot kept garbage in them.
    pub held_back: BTreeSet<FileNumber>,
    /// Tables that a job has: no other gets them.
    pub busy: BTreeSet<FileNumber>,
    /// Of those that are `busy`, damaged ones that no job has: see `quarantine`.
    pub quarantined: BTreeMap<FileNumber, Error>,
    /// Compactions that run, by what they may write.
    pub running: Vec<RunningCompaction>,
    /// Ingestions under way; no compaction starts meanwhile.
    pub ingesting: usize,
    /// How its writers were held back when listeners were last told.
    pub stall_told: StallCondition,
    /// Views installed so far.
    pub superversion_number: u64,
    /// Views that were replaced. Dropping the last holder of a memtable unmaps it, which takes milliseconds: a
    /// background thread does it, outside the lock.
    pub retired: Vec<Arc<SuperVersion>>,
}

impl CfState {
    /// A column family with these tables and nothing in memory: its data is in tables and in WALs from `log_number` on.
    pub fn new(
        id: CfId,
        descriptor: &ColumnFamilyDescriptor,
        version: Arc<Version>,
        log_number: FileNumber,
        next_epoch: u64,
        pool: &Arc<MemTablePool>,
    ) -> CfState {
        let memtable = new_memtable(&descriptor.options, &descriptor.parts.comparator, pool);
        let view = Arc::new(SuperVersion::new(memtable.clone(), Vec::new(), version.clone()));
        CfState {
            cf: ColumnFamily::new(id, descriptor, view, pool),
            memtable,
            sealed: Vec::new(),
            history: VecDeque::new(),
            version,
            log_number,
            manifest_log_number: log_number,
            next_epoch,
            flush_running: false,
            flushes_ended: 0,
            flush_requested: false,
            debt: Debt::default(),
            marks: Marks::default(),
            suggested: BTreeSet::new(),
            held_back: BTreeSet::new(),
            busy: BTreeSet::new(),
            quarantined: BTreeMap::new(),
            running: Vec::new(),
            ingesting: 0,
            stall_told: StallCondition::Normal,
            superversion_number: 0,
            retired: Vec::new(),
        }
    }

    /// Memtables not yet in tables, counting the active one if it holds anything.
    pub fn unflushed_memtables(&self) -> usize {
        self.sealed.len() + 1
    }

    /// Publishes the current memtables and version to readers.
    pub fn install_superversion(&mut self) {
        let sealed = self.sealed.iter().rev().map(|sealed| sealed.memtable.clone()).collect();
        let history = self.history.iter().rev().cloned().collect();
        let low = self.cf.full_history_low.load().as_deref().copied();
        let view = SuperVersion::new(self.memtable.clone(), sealed, self.version.clone())
            .with_history(history)
            .with_history_from(low);
        let replaced = self.cf.superversion.swap(Arc::new(view));
        self.superversion_number += 1;
        self.retired.push(replaced);
    }

    /// The oldest `count` sealed memtables are in tables.
    pub fn retire_sealed(&mut self, count: usize) {
        let flushed = self.sealed.drain(..count).map(|sealed| sealed.memtable);
        self.history.extend(flushed.inspect(|memtable| memtable.count_flushed()));
        self.trim_history();
    }

    /// Lets go of the oldest history, as far as all memtables but the oldest make up what is to be kept.
    ///
    /// Source: RocksDB `db/memtable_list.cc`, `MemTableListVersion::TrimHistory`.
    pub fn trim_history(&mut self) {
        let kept = self.cf.options.load().max_write_buffer_size_to_maintain.max(0) as u64;
        let usage = |memtable: &Arc<MemTable>| memtable.memory_usage() as u64;
        let unflushed =
            usage(&self.memtable) + self.sealed.iter().map(|sealed| usage(&sealed.memtable)).sum::<u64>();
        let mut newer = unflushed + self.history.iter().skip(1).map(usage).sum::<u64>();
        while newer >= kept && self.history.pop_front().is_some() {
            // The next is the oldest now, and does not count.
            newer -= self.history.front().map_or(0, usage);
        }
    }

    /// Drops all history.
    pub fn drop_history(&mut self) {
        if !self.history.is_empty() {
            self.history.clear();
            self.install_superversion();
        }
    }

    /// The oldest WAL that is needed for writes of prepared transactions in memtables that `counts`; [`FileNumber::MAX`] if there is none.
    pub fn oldest_prepared_wal(&self, counts: impl Fn(&Arc<MemTable>) -> bool) -> FileNumber {
        let sealed = self.sealed.iter().map(|sealed| &sealed.memtable);
        let memtables = sealed.chain([&self.memtable]).filter(|memtable| counts(memtable));
        memtables.map(|memtable| memtable.oldest_prepared_wal()).min().unwrap_or(FileNumber::MAX)
    }

    /// The input of a picker, under `options`.
    pub fn pick_input<'a>(&'a self, options: &'a ColumnFamilyOptions) -> PickInput<'a> {
        PickInput {
            cf_id: self.cf.id(),
            version: &self.version,
            comparator: &self.cf.rows,
            options,
            marks: &self.marks,
            busy: &self.busy,
            quarantined: &self.quarantined,
            running: &self.running,
        }
    }

    /// Recomputes what compaction has to do, after the tables or the options changed.
    pub fn refresh_debt(&mut self) {
        let options = self.cf.options.load();
        self.marks.blob_garbage = marks::blob_garbage(&self.version, &options);
        // A comparator that panics would leave a change of the structure half made, were the panic let through here. The
        // thread that picks for this debt meets it again, and stops writes.
        let debt = catch_unwind(AssertUnwindSafe(|| pick::debt(&self.pick_input(&options))));
        self.debt = debt.unwrap_or(Debt { needs_compaction: true, ..Debt::default() });
        if !self.quarantined.is_empty() && self.running.is_empty() {
            // The compaction that is due may need a table that no job will let go of.
            let picked = || pick::pick(&self.pick_input(&options)).is_some();
            self.debt.needs_compaction &= catch_unwind(AssertUnwindSafe(picked)).unwrap_or(true);
        }
        self.debt.needs_compaction &= !options.disable_auto_compactions;
    }

    /// Marks the tables that asked to be compacted, after `new` ones came: those too that are marked already, as one may have moved, or
    /// others gone, so that it has nowhere to go.
    pub fn mark_new(&mut self, new: &[(u32, Arc<TableFile>)]) {
        if self.marks.requested.is_empty() && !new.iter().any(|(_, file)| file.marked_for_compaction) {
            return;
        }
        let deepest = self.version.levels.iter().rposition(|level| !level.files.is_empty()).unwrap_or(0);
        let wanted = self.version.files().filter(|(level, file)| {
            marks::wants_compaction(file, *level, deepest) || self.suggested.contains(&file.number)
        });
        self.marks.requested = wanted.map(|(_, file)| file.number).collect();
    }

    /// Recomputes which tables want to be compacted for other reasons than size.
    pub fn refresh_marks(&mut self, now_seconds: u64, offpeak_seconds: u64, oldest_snapshot: SeqNum) {
        let options = self.cf.options.load();
        if !self.suggested.is_empty() || !self.held_back.is_empty() {
            let live: BTreeSet<FileNumber> = self.version.files().map(|(_, file)| file.number).collect();
            self.suggested.retain(|number| live.contains(number));
            self.held_back.retain(|number| live.contains(number));
        }
        let stamps = StampRules::of(&self.cf, None);
        let context = MarkContext {
            comparator: &self.cf.rows,
            now: now_seconds,
            offpeak_seconds,
            has_filter: self.cf.compaction_filter.is_some() || self.cf.compaction_filter_factory.is_some(),
            oldest_snapshot,
            stamps: stamps.as_ref(),
            suggested: &self.suggested,
            held_back: &self.held_back,
        };
        self.marks = Marks::of(&self.version, &options, &context);
        self.refresh_debt();
    }

    /// True if a flush should start.
    pub fn wants_flush(&self) -> bool {
        let enough = self.cf.options.load().min_write_buffer_number_to_merge.max(1) as usize;
        !self.flush_running
            && !self.sealed.is_empty()
            && (self.flush_requested || self.sealed.len() >= enough)
    }
}

/// A WAL that may still be needed.
#[derive(Clone, Copy, Debug)]
pub struct LiveWal {
    /// Its file number.
    pub number: FileNumber,
    /// Bytes written to it so far; exact once it is closed.
    pub size_bytes: u64,
    /// It is of this opening. The records of others may not carry its number: in a recycled file they would count as those of the next WAL.
    pub is_own: bool,
}

/// Everything structural, inside `VersionSet::state`.
pub struct DbState {
    /// Live column families by id.
    pub column_families: BTreeMap<CfId, CfState>,
    /// Highest id ever given out.
    pub max_column_family: CfId,
    /// WALs not yet deleted, oldest first; the last is being written.
    pub live_wals: VecDeque<LiveWal>,
    /// Transactions found prepared and not decided.
    pub prepared: PreparedTransactions,
    /// Obsolete WALs, whose files later ones recycle.
    pub recyclable_wals: Vec<FileNumber>,
    /// Once set, writes are refused and background work rests, until resumed.
    pub background_error: Option<Error>,
    /// How bad the background error is; nothing without one.
    pub severity: Option<Severity>,
    /// Errors that jobs have met.
    pub background_errors: u64,
    /// Errors that listeners were told where they were met: not again when the job ends with one. Since the last attempt to resume.
    pub told_errors: Vec<Error>,
    /// The database will clear the background error by itself.
    pub auto_resume: Option<AutoResume>,
    /// The background error is being cleared: all memtables are flushed at once, or none.
    pub resuming: bool,
    /// Automatic compactions rest.
    pub compaction_pause: Option<CompactionPause>,
    /// Until when flushes rest, by the monotonic clock, after one has failed with an error that a listener took away.
    pub flush_pause: Option<u64>,
    /// MANIFESTs that were replaced while deletions were disabled.
    pub obsolete_manifests: Vec<FileNumber>,
    /// Superseded versions that readers may still hold, by column family, for properties.
    pub old_versions: Vec<(CfId, Weak<Version>)>,
    /// Flush jobs running.
    pub running_flushes: usize,
    /// Compaction jobs running.
    pub running_compactions: usize,
    /// Of them, those on background threads.
    pub pool_compactions: usize,
    /// Manual compactions waiting or running, in order of arrival.
    pub manual: VecDeque<Arc<ManualCompaction>>,
    /// `pause_background_work` minus `continue_background_work`.
    pub paused: usize,
    /// `disable_manual_compaction` minus `enable_manual_compaction`.
    pub manual_disabled: usize,
    /// No job starts any more.
    pub shutting_down: bool,
    /// File deletions are on hold (`disable_file_deletions`).
    pub deletions_disabled: usize,
    /// Copies of the database that are being made: they need its files, whatever the application enables.
    pub deletion_holds: usize,
    /// Obsolete files may have become deletable.
    pub purge_wanted: bool,
    /// Removals of obsolete files that run, each by its number.
    pub purges: BTreeSet<u64>,
    /// The number of the next one.
    pub next_purge: u64,
}

impl DbState {
    /// A database with nothing in it.
    pub fn empty() -> DbState {
        DbState {
            column_families: BTreeMap::new(),
            max_column_family: CfId::DEFAULT,
            live_wals: VecDeque::new(),
            prepared: PreparedTransactions::default(),
            recyclable_wals: Vec::new(),
            background_error: None,
            severity: None,
            background_errors: 0,
            told_errors: Vec::new(),
            auto_resume: None,
            resuming: false,
            compaction_pause: None,
            flush_pause: None,
            obsolete_manifests: Vec::new(),
            old_versions: Vec::new(),
            running_flushes: 0,
            running_compactions: 0,
            pool_compactions: 0,
            manual: VecDeque::new(),
            paused: 0,
            manual_disabled: 0,
            shutting_down: false,
            deletions_disabled: 0,
            deletion_holds: 0,
            purge_wanted: false,
            purges: BTreeSet::new(),
            next_purge: 0,
        }
    }

    /// The oldest WAL any column family still needs, given that `current_wal` is being written.
    ///
    /// A column family with nothing in memory needs none.
    pub fn min_wal_needed(&self, current_wal: FileNumber) -> FileNumber {
        self.min_wal_needed_without(None, current_wal)
    }

    /// The same, if column family `gone` were dropped.
    pub fn min_wal_needed_without(&self, gone: Option<CfId>, current_wal: FileNumber) -> FileNumber {
        let needed = |cf: &CfState| {
            if cf.sealed.is_empty() && cf.memtable.is_empty() {
                return current_wal;
            }
            cf.log_number.min(cf.oldest_prepared_wal(|_| true))
        };
        let left = self.column_families.values().filter(|cf| Some(cf.cf.id()) != gone);
        let oldest = left.map(needed).min().unwrap_or(current_wal);
        oldest.min(current_wal).min(self.prepared.oldest_wal().unwrap_or(FileNumber::MAX))
    }
}

impl DbState {
    /// The state of column family `cf`.
    ///
    /// # Errors
    /// ColumnFamilyDropped if it is gone; InvalidArgument if it is of another database.
    pub fn cf_mut(&mut self, cf: &ColumnFamily) -> Result<&mut CfState> {
        match self.column_families.get_mut(&cf.id()) {
            Some(found) if std::ptr::eq(&*found.cf, cf) => Ok(found),
            Some(_) => Err(foreign_error(cf)),
            None => Err(Error::new(ErrorKind::ColumnFamilyDropped, cf.name().to_string())),
        }
    }

    /// Fails with what keeps jobs from starting: the background error, or that the database closes.
    pub fn check_working(&self) -> Result<()> {
        if let Some(error) = &self.background_error {
            return Err(error.clone());
        }
        if self.shutting_down { Err(closing_error()) } else { Ok(()) }
    }

    /// True while a job runs, or one will start without anybody asking.
    pub fn has_work(&self) -> bool {
        // A sealed memtable that waits for others to be flushed with starts nothing.
        let pending = |cf: &CfState| cf.flush_running || cf.wants_flush() || cf.debt.needs_compaction;
        self.running_flushes > 0
            || self.running_compactions > 0
            || !self.manual.is_empty()
            || self.column_families.values().any(pending)
    }

    /// True while no file of the database may be removed: somebody may be copying them.
    pub fn keeps_files(&self) -> bool {
        self.deletions_disabled + self.deletion_holds > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parts::{FIRST_WAL, Parts, plain_options};

    #[test]
    fn the_oldest_wal_with_rows_in_memory_is_needed() {
        let parts = Parts::new();
        let needed = |current| parts.versions.state.lock().min_wal_needed(current);
        assert_eq!(needed(FileNumber(9)), FileNumber(9), "nothing is in memory");
        parts.put("a", "1");
        assert_eq!(needed(FileNumber(9)), FIRST_WAL);
        parts.seal(&[CfId::DEFAULT]);
        assert_eq!(needed(parts.versions.current_wal()), FIRST_WAL);
        parts.flush();
        let current = parts.versions.current_wal();
        assert_eq!(needed(current), current);
    }

    #[test]
    fn installing_a_view_retires_the_one_before() {
        let parts = Parts::new();
        let before = parts.cf(CfId::DEFAULT).superversion.load_full();
        let mut state = parts.versions.state.lock();
        let cf = state.column_families.get_mut(&CfId(0)).unwrap();
        cf.install_superversion();
        assert_eq!((cf.superversion_number, cf.retired.len()), (1, 1));
        assert!(Arc::ptr_eq(&cf.retired[0], &before));
        assert!(!Arc::ptr_eq(&cf.cf.superversion.load_full(), &before));
    }

    #[test]
    fn work_is_what_runs_what_is_due_and_what_was_asked_for() {
        let parts = Parts::new();
        let has_work = || parts.versions.state.lock().has_work();
        assert!(!has_work());
        parts.versions.state.lock().running_flushes = 1;
        assert!(has_work());
        parts.versions.state.lock().running_flushes = 0;
        parts.put("a", "1");
        assert!(!has_work(), "a memtable that is not sealed is no work");
        parts.seal(&[CfId::DEFAULT]);
        assert!(has_work());
    }

    #[test]
    fn a_panic_of_the_comparator_leaves_the_debt_to_who_picks() {
        struct Panics;
        impl outcrop_base::UserComparator for Panics {
            fn name(&self) -> &str {
                "panics"
            }
            fn compare(&self, _: &[u8], _: &[u8]) -> std::cmp::Ordering {
                panic!("a comparator")
            }
        }
        let objects = crate::column_family::ColumnFamilyParts {
            comparator: outcrop_base::Comparator::User(Arc::new(Panics)),
            ..Default::default()
        };
        let parts = Parts::with(Default::default(), vec![(plain_options(), objects)]);
        let mut state = parts.versions.state.lock();
        let cf = state.column_families.get_mut(&CfId(0)).unwrap();
        cf.version =
            Arc::new(outcrop_manifest::Version::parse("L0: 5[a..c] 4[a..c] 3[a..c] 2[b..c] 1[a..z]", 7));
        cf.refresh_debt();
        assert!(cf.debt.needs_compaction, "whoever picks meets the panic, and stops writes");
    }

    #[test]
    fn a_column_family_that_is_gone_is_dropped() {
        let parts = Parts::new();
        let cf = parts.cf(CfId::DEFAULT);
        let mut state = parts.versions.state.lock();
        assert!(state.cf_mut(&cf).is_ok());
        state.column_families.clear();
        assert_eq!(state.cf_mut(&cf).err().unwrap().kind(), ErrorKind::ColumnFamilyDropped);
    }

    #[test]
    fn errors_come_before_the_closing() {
        let mut state = DbState::empty();
        state.check_working().unwrap();
        state.shutting_down = true;
        assert_eq!(state.check_working().unwrap_err().kind(), ErrorKind::ShutdownInProgress);
        state.background_error = Some(Error::new(ErrorKind::IoError, "test"));
        assert_eq!(state.check_working().unwrap_err().kind(), ErrorKind::IoError);
    }
}

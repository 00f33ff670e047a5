//! The child process of one engine: does what standard input says, answers on standard output.
//!
//! ```text
//! parent --{"open":{...}}\n--> worker    one line of JSON per request
//! parent <--"done"\n--------- worker    one line of JSON per answer, in order
//! ```
//! A process of its own, because a library cannot be unloaded, because a crash must end only its side, and
//! because SIGKILL is one of the things under test. One worker opens many databases, one at a time.
//!
//! Next: `child.rs` is the parent's end.

use crate::backups;
use crate::batch::{Batch, Change, write_table};
use crate::call::Outcome;
use crate::case::{Access, Family};
use crate::database::{Database, Handle, Ingestion, ReadView, SnapshotHandle, list_families};
use crate::iter::Iter;
use crate::library::Api;
use crate::mistake::{Mistake, Opening};
use crate::mistaken::{open_wrongly, refused};
use crate::operation::{Durability, Ending, Key, Lookup, Move, Operation, Record, View, shown};
use crate::options::Options;
use crate::options_file;
use crate::timestamps;
use crate::transactions::Transaction;
use crate::wire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

/// A request to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Which of these option texts does the engine take?
    Options(Vec<String>),
    /// Names of the column families of a database that is not open.
    ListFamilies(String),
    /// Load the newest OPTIONS file of a database.
    LoadOptions {
        /// Its directory.
        path: String,
        /// Names that are unknown to this version are passed over.
        lenient: bool,
    },
    /// Open a database.
    Open(OpenRequest),
    /// An operation that one engine can do alone.
    Do(Operation),
    /// Every row of a column family, in order; the keys are looked up as well.
    Rows {
        /// Its index.
        family: usize,
        /// Keys that may or may not be there.
        keys: Vec<Key>,
    },
    /// Write a table outside the database.
    WriteTable {
        /// Its file.
        path: String,
        /// Of the column family it is for.
        family: Family,
        /// Options of that column family.
        options: Vec<String>,
        /// In key order.
        records: Vec<Record>,
    },
    /// Ingest a table.
    IngestTable {
        /// Into which column family.
        family: usize,
        /// Its file.
        path: String,
        /// Move it instead of copying.
        move_file: bool,
    },
    /// Flush all column families in one step.
    FlushTogether {
        /// Until it is done.
        wait: bool,
    },
    /// Make a checkpoint.
    Checkpoint {
        /// Directory that does not exist yet.
        path: String,
        /// WAL bytes from which on it flushes.
        log_size_for_flush: u64,
    },
    /// The names of the transactions that are prepared.
    Prepared,
    /// Make a backup.
    Backup {
        /// The directory of backups.
        dir: String,
        /// Flush before.
        flush: bool,
    },
    /// Verify every backup of a directory, and give the ids.
    VerifyBackups(String),
    /// Restore a backup.
    Restore {
        /// The directory of backups.
        dir: String,
        /// Which.
        id: u32,
        /// The directory of the database.
        to: String,
    },
    /// Delete old backups.
    PurgeBackups {
        /// The directory of backups.
        dir: String,
        /// So many are kept.
        keep: u32,
    },
    /// Make a mistake, in a directory that is empty where it needs files.
    Mistake {
        /// Which.
        mistake: Mistake,
        /// The directory.
        scratch: String,
    },
    /// Open a database in a way that fails.
    OpenWrongly {
        /// How it would not fail.
        request: OpenRequest,
        /// The difference.
        opening: Opening,
        /// An empty directory.
        empty: String,
    },
    /// Something of a database with timestamps.
    Stamped(timestamps::Request),
    /// Close the database.
    Close,
}

/// How to open a database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenRequest {
    /// Its directory.
    pub path: String,
    /// As what.
    #[serde(default)]
    pub access: Access,
    /// Seconds after which values of column families expire, of a DBWithTTL; where there are none, they do not within a run.
    #[serde(default)]
    pub ttls: Vec<i32>,
    /// Database options.
    pub options: Vec<String>,
    /// All column families of the case, with options.
    pub families: Vec<(Family, Vec<String>)>,
    /// Which of them to open.
    pub existing: Vec<usize>,
}

/// The answer of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first line: the functions the library has.
    Functions(Vec<String>),
    /// For each option.
    Accepted(Vec<bool>),
    /// Column families.
    Names(Vec<String>),
    /// How many there are.
    Count(usize),
    /// Backups.
    Ids(Vec<u32>),
    /// It worked.
    Done,
    /// Values of keys.
    Values(Vec<Option<String>>),
    /// Where an iterator was after each move.
    Positions(Vec<Option<(String, String)>>),
    /// Rows of a column family, and the values of the keys that were asked for.
    Rows(Vec<(String, String)>, Vec<Option<String>>),
    /// Versions of a database with timestamps, one for each key or move.
    Entries(Vec<Option<timestamps::Entry>>),
    /// The timestamp below which history may be gone, if it may.
    Low(Option<u64>),
    /// It failed, as it should.
    Refused(String),
    /// It did not work.
    Error(String),
}

/// An open database with what was opened in it.
pub(crate) struct Open<'a> {
    pub(crate) database: Database<'a>,
    pub(crate) request: OpenRequest,
    handles: BTreeMap<usize, Handle>,
    snapshots: BTreeMap<usize, SnapshotHandle>,
    iterators: BTreeMap<usize, Iter<'a>>,
    /// By name.
    prepared: BTreeMap<String, Transaction<'a>>,
}

/// The worker's loop: ends with its input.
///
/// # Errors
/// The library cannot be loaded, or the parent is gone.
pub fn serve(library: &Path) -> Result<(), String> {
    let api = Api::load(library)?;
    let mut open: Option<Open<'_>> = None;
    let mut stamped = timestamps::Session::new(&api);
    let mut out = std::io::stdout().lock();
    let mut send = |answer: &Answer| -> Result<(), String> {
        let mut line = serde_json::to_string(answer).expect("an answer is plain data");
        line.push('\n');
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
    };
    send(&Answer::Functions(api.names()))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let request = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        let answer = match request {
            Request::Stamped(request) => stamped.handle(request),
            other => handle(&api, &mut open, other),
        };
        send(&answer.unwrap_or_else(Answer::Error))?;
    }
    Ok(())
}

/// Does what is asked of the engine.
pub(crate) fn handle<'a>(api: &'a Api, open: &mut Option<Open<'a>>, request: Request) -> Outcome<Answer> {
    let no_database = || "no database is open".to_string();
    match request {
        Request::Options(texts) => {
            let accepted = |text: &String| Options::new(api, std::slice::from_ref(text)).is_ok();
            Ok(Answer::Accepted(texts.iter().map(accepted).collect()))
        }
        Request::ListFamilies(path) => list_families(api, &path).map(Answer::Names),
        Request::LoadOptions { path, lenient } => options_file::load(api, &path, lenient).map(Answer::Count),
        Request::WriteTable { path, family, options, records } => {
            let options = Options::for_family(api, &options, &family)?;
            let expanded = expand(&records)?;
            let changes = expanded.iter().map(|(_, change)| change.borrow());
            write_table(api, &path, &options, changes)?;
            Ok(Answer::Done)
        }
        Request::Open(request) => {
            if open.is_some() {
                return Err("a database is open already".into());
            }
            *open = Some(Open::new(api, request)?);
            Ok(Answer::Done)
        }
        Request::OpenWrongly { request, opening, empty } => {
            refused(open_wrongly(api, request, &opening, &empty))
        }
        Request::VerifyBackups(dir) => backups::verify(api, &dir).map(Answer::Ids),
        Request::Restore { dir, id, to } => {
            backups::restore_any(api, &dir, &to, Some(id))?;
            Ok(Answer::Done)
        }
        Request::PurgeBackups { dir, keep } => {
            backups::purge(api, &dir, keep)?;
            Ok(Answer::Done)
        }
        Request::Close => {
            open.take().ok_or_else(no_database)?.close()?;
            Ok(Answer::Done)
        }
        other => open.as_mut().ok_or_else(no_database)?.handle(api, other),
    }
}

/// A change that owns its bytes.
pub(crate) enum OwnedChange {
    Put(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    SingleDelete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl OwnedChange {
    pub(crate) fn borrow(&self) -> Change<'_> {
        match self {
            OwnedChange::Put(key, value) => Change::Put(key, value),
            OwnedChange::Merge(key, value) => Change::Merge(key, value),
            OwnedChange::Delete(key) => Change::Delete(key),
            OwnedChange::SingleDelete(key) => Change::SingleDelete(key),
            OwnedChange::DeleteRange(begin, end) => Change::DeleteRange(begin, end),
        }
    }
}

/// The changes of records, with their column families.
pub(crate) fn expand(records: &[Record]) -> Outcome<Vec<(usize, OwnedChange)>> {
    let mut changes = Vec::new();
    for record in records {
        match record.clone() {
            Record::Put(family, key, value) => changes.push((family, OwnedChange::Put(key.0, value.bytes()))),
            Record::Merge(family, key, value) => {
                changes.push((family, OwnedChange::Merge(key.0, value.bytes())))
            }
            Record::Delete(family, key) => changes.push((family, OwnedChange::Delete(key.0))),
            Record::SingleDelete(family, key) => changes.push((family, OwnedChange::SingleDelete(key.0))),
            Record::DeleteRange(family, begin, end) => {
                changes.push((family, OwnedChange::DeleteRange(begin.0, end.0)));
            }
            Record::Fill { family, prefix, first, count, len, seed } => {
                for (key, value) in Record::filled(&prefix, first, count, len, seed) {
                    changes.push((family, OwnedChange::Put(key.0, value.bytes())));
                }
            }
            Record::PutEntity(..) | Record::LogData(_) => {
                return Err(format!("{record:?} has no function of its own"));
            }
        }
    }
    Ok(changes)
}

impl<'a> Open<'a> {
    fn new(api: &'a Api, request: OpenRequest) -> Outcome<Open<'a>> {
        let mut families = Vec::new();
        for &index in &request.existing {
            let (family, settings) = &request.families[index];
            let mut all = settings.clone();
            if index == 0 {
                all.extend(request.options.iter().cloned());
            }
            let options = Options::for_family(api, &all, family)?;
            options.create_missing()?;
            families.push((family.name.clone(), options));
        }
        let path = &request.path;
        let (database, handles) = match request.access {
            Access::Plain => Database::open(api, path, families),
            Access::Transactions => Database::open_with_transactions(api, path, families),
            Access::Ttl => Database::open_with_ttl(api, path, families, &request.ttls),
        }?;
        let prepared = match request.access {
            Access::Transactions => database.prepared()?.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let handles = request.existing.iter().copied().zip(handles).collect();
        let (snapshots, iterators) = (BTreeMap::new(), BTreeMap::new());
        Ok(Open { database, request, handles, snapshots, iterators, prepared })
    }

    fn close(mut self) -> Outcome<()> {
        self.iterators.clear();
        self.prepared.clear();
        for snapshot in self.snapshots.values() {
            self.database.release(*snapshot)?;
        }
        for handle in self.handles.values() {
            self.database.destroy_handle(*handle)?;
        }
        self.database.close()
    }

    pub(crate) fn family(&self, index: usize) -> Outcome<Handle> {
        self.handles.get(&index).copied().ok_or_else(|| format!("column family {index} is not open"))
    }

    fn view<'v>(&self, view: &'v View) -> Outcome<ReadView<'v>> {
        let snapshot = match view.snapshot {
            None => None,
            Some(slot) => Some(*self.snapshots.get(&slot).ok_or_else(|| format!("no snapshot {slot}"))?),
        };
        Ok(ReadView {
            snapshot,
            lower: view.lower.as_ref().map(|key| &key.0[..]),
            upper: view.upper.as_ref().map(|key| &key.0[..]),
            same_prefix: view.same_prefix,
        })
    }

    fn handle(&mut self, api: &'a Api, request: Request) -> Outcome<Answer> {
        match request {
            Request::Do(operation) => self.operate(api, operation),
            Request::Rows { family, keys } => self.rows(family, &keys),
            Request::IngestTable { family, path, move_file } => {
                let how = Ingestion { move_files: move_file, ..Ingestion::default() };
                self.database.ingest(self.family(family)?, &[&path], &how)?;
                Ok(Answer::Done)
            }
            Request::Checkpoint { path, log_size_for_flush } => {
                self.database.checkpoint(&path, log_size_for_flush)?;
                Ok(Answer::Done)
            }
            Request::Prepared => Ok(Answer::Names(self.prepared.keys().cloned().collect())),
            Request::Backup { dir, flush } => {
                backups::add(&self.database, &dir, flush)?;
                Ok(Answer::Done)
            }
            Request::FlushTogether { wait } => {
                let handles: Vec<Handle> = self.handles.values().copied().collect();
                self.database.flush_together(&handles, wait)?;
                Ok(Answer::Done)
            }
            Request::Mistake { mistake, scratch } => refused(self.mistake(api, &mistake, &scratch)),
            other => Err(format!("not a request to an open database: {other:?}")),
        }
    }

    fn operate(&mut self, api: &'a Api, operation: Operation) -> Outcome<Answer> {
        match operation {
            Operation::Write { records, durability, direct } => {
                self.write(api, &records, durability, direct)?;
            }
            Operation::Get { view, keys, by } => return self.get(&view, &keys, by).map(Answer::Values),
            Operation::Walk { view, moves } => {
                let mut iter = self.database.iter(self.family(view.family)?, &self.view(&view)?)?;
                return walk(&mut iter, &moves).map(Answer::Positions);
            }
            Operation::OpenIterator { slot, view } => {
                let iter = self.database.iter(self.family(view.family)?, &self.view(&view)?)?;
                self.iterators.insert(slot, iter);
            }
            Operation::MoveIterator { slot, moves } => {
                let iter = self.iterators.get_mut(&slot).ok_or_else(|| format!("no iterator {slot}"))?;
                return walk(iter, &moves).map(Answer::Positions);
            }
            Operation::CloseIterator { slot } => {
                self.iterators.remove(&slot);
            }
            Operation::TakeSnapshot { slot } => {
                let snapshot = self.database.snapshot()?;
                if let Some(old) = self.snapshots.insert(slot, snapshot) {
                    self.database.release(old)?;
                }
            }
            Operation::ReleaseSnapshot { slot } => {
                if let Some(old) = self.snapshots.remove(&slot) {
                    self.database.release(old)?;
                }
            }
            Operation::Flush { family, wait } => self.database.flush(self.family(family)?, wait)?,
            Operation::FlushWal { sync } => self.database.flush_wal(sync)?,
            Operation::CompactRange { family, begin, end, bottommost, exclusive } => {
                let bound = |key: &'_ Option<Key>| key.as_ref().map(|key| key.0.clone());
                let (begin, end) = (bound(&begin), bound(&end));
                let handle = self.family(family)?;
                self.database.compact_range(
                    handle,
                    begin.as_deref(),
                    end.as_deref(),
                    bottommost,
                    exclusive,
                )?;
                self.check_background_errors(handle)?;
            }
            Operation::Wait => self.wait()?,
            Operation::CreateFamily { family } => {
                let (described, settings) = &self.request.families[family];
                let options = Options::for_family(api, settings, described)?;
                let handle = self.database.create_family(&described.name, options)?;
                self.handles.insert(family, handle);
            }
            Operation::DropFamily { family } => {
                let handle = self.family(family)?;
                self.database.drop_family(handle)?;
                self.handles.remove(&family);
                self.database.destroy_handle(handle)?;
            }
            Operation::SetOptions { family, name, value } => {
                self.database.set_options(self.family(family)?, &name, &value)?;
            }
            Operation::Transact { name, records, synced, end } => {
                self.transact(&name, &records, synced, end)?;
            }
            Operation::Resolve { name, commit } => {
                let transaction = self
                    .prepared
                    .remove(&name)
                    .ok_or_else(|| format!("no transaction {name} is prepared"))?;
                if commit { transaction.commit() } else { transaction.roll_back() }?;
            }
            Operation::Backup { .. }
            | Operation::Restore { .. }
            | Operation::PurgeBackups { .. }
            | Operation::Ingest { .. }
            | Operation::Checkpoint { .. }
            | Operation::OpenTwice
            | Operation::Mistake(_)
            | Operation::CompareAll => return Err(format!("the parent's operation: {operation:?}")),
        }
        Ok(Answer::Done)
    }

    fn transact(&mut self, name: &str, records: &[Record], synced: bool, end: Ending) -> Outcome<()> {
        let owned = expand(records)?;
        let mut changes = Vec::new();
        for (family, change) in &owned {
            changes.push((self.family(*family)?, change.borrow()));
        }
        let transaction = self.database.begin(name, &changes, synced)?;
        match end {
            Ending::Commit => transaction.commit()?,
            Ending::RollBack => transaction.roll_back()?,
            Ending::BothPhases => {
                transaction.prepare()?;
                transaction.commit()?;
            }
            Ending::Prepare => {
                transaction.prepare()?;
                self.prepared.insert(name.to_string(), transaction);
            }
        }
        Ok(())
    }

    fn check_background_errors(&self, handle: Handle) -> Outcome<()> {
        match self.database.property(handle, c"rocksdb.background-errors")? {
            0 => Ok(()),
            count => Err(format!("{count} background errors")),
        }
    }

    fn write(&self, api: &'a Api, records: &[Record], durability: Durability, direct: bool) -> Outcome<()> {
        let (sync, wal) = (durability == Durability::Synced, durability != Durability::Unlogged);
        if records.iter().any(|record| matches!(record, Record::PutEntity(..))) {
            let bytes = wire::batch(records, |family| self.database.family_id(self.family(family)?))?;
            return self.database.write(&Batch::from_bytes(api, &bytes)?, sync, wal);
        }
        if direct
            && !matches!(records, [Record::Fill { .. } | Record::LogData(_)])
            && let [(family, change)] = &expand(records)?[..]
        {
            return self.database.write_one(self.family(*family)?, change.borrow(), sync, wal);
        }
        let mut batch = Batch::new(api)?;
        for record in records {
            if let Record::LogData(data) = record {
                batch.add_log_data(&data.0)?;
                continue;
            }
            for (family, change) in expand(std::slice::from_ref(record))? {
                batch.add(self.family(family)?, change.borrow())?;
            }
        }
        self.database.write(&batch, sync, wal)
    }

    fn get(&self, view: &View, keys: &[Key], by: Lookup) -> Outcome<Vec<Option<String>>> {
        let (handle, read) = (self.family(view.family)?, self.view(view)?);
        let slices: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
        let values = match by {
            Lookup::Get => slices.iter().map(|key| self.database.get(handle, &read, key)).collect(),
            Lookup::GetPinned => {
                slices.iter().map(|key| self.database.get_pinned(handle, &read, key)).collect()
            }
            Lookup::MultiGet => self.database.multi_get(handle, &read, &slices),
            Lookup::BatchedMultiGet => self.database.batched_multi_get(handle, &read, &slices),
        };
        Ok(values?.into_iter().map(|value| value.map(|bytes| shown(&bytes))).collect())
    }

    /// Waits until nothing runs or is due, two seconds at most: with compactions turned off they stay due.
    fn wait(&self) -> Outcome<()> {
        let busy = [
            c"rocksdb.num-running-compactions",
            c"rocksdb.num-running-flushes",
            c"rocksdb.compaction-pending",
            c"rocksdb.mem-table-flush-pending",
        ];
        let mut quiet = 0;
        for _ in 0..2000 {
            let mut any = false;
            for handle in self.handles.values() {
                for name in busy {
                    any |= self.database.property(*handle, name)? != 0;
                }
            }
            quiet = if any { 0 } else { quiet + 1 };
            if quiet == 3 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Every row by a forward scan, which a backward scan and lookups must confirm.
    fn rows(&self, family: usize, keys: &[Key]) -> Outcome<Answer> {
        let handle = self.family(family)?;
        self.check_background_errors(handle)?;
        let mut iter = self.database.iter(handle, &ReadView::default())?;
        let mut forward = Vec::new();
        iter.seek_to_first()?;
        while iter.valid()? {
            let (key, value) = iter.row()?;
            forward.push((Key(key.to_vec()), shown(value)));
            iter.next()?;
        }
        iter.status()?;
        iter.seek_to_last()?;
        for (key, value) in forward.iter().rev() {
            if !iter.valid()? {
                iter.status()?;
                return Err(format!("family {family}: a scan backwards ends before {key:?}"));
            }
            let (found, found_value) = iter.row()?;
            if found != key.0 || shown(found_value) != *value {
                let (found, found_value) = (found.escape_ascii(), shown(found_value));
                return Err(format!(
                    "family {family}: a scan backwards finds {found}: {found_value}, forwards {key:?}: {value}"
                ));
            }
            iter.prev()?;
        }
        if iter.valid()? {
            let extra = iter.row()?.0.escape_ascii().to_string();
            return Err(format!("family {family}: a scan backwards finds one row more: {extra}"));
        }
        iter.status()?;
        for (key, value) in &forward {
            let found = self.database.get(handle, &ReadView::default(), &key.0)?.map(|bytes| shown(&bytes));
            if found.as_ref() != Some(value) {
                return Err(format!("family {family}: get of {key:?} finds {found:?}, a scan {value}"));
            }
        }
        let asked = self.get(&View { family, ..View::default() }, keys, Lookup::Get)?;
        Ok(Answer::Rows(forward.into_iter().map(|(key, value)| (key.text(), value)).collect(), asked))
    }
}

fn walk(iter: &mut Iter<'_>, moves: &[Move]) -> Outcome<Vec<Option<(String, String)>>> {
    let mut positions = Vec::new();
    for step in moves {
        match step {
            Move::First => iter.seek_to_first()?,
            Move::Last => iter.seek_to_last()?,
            Move::Seek(key) => iter.seek(&key.0)?,
            Move::SeekForPrev(key) => iter.seek_for_prev(&key.0)?,
            Move::Next if iter.valid()? => iter.next()?,
            Move::Prev if iter.valid()? => iter.prev()?,
            Move::Next | Move::Prev => {}
        }
        positions.push(if iter.valid()? {
            let (key, value) = iter.row()?;
            Some((key.escape_ascii().to_string(), shown(value)))
        } else {
            iter.status()?;
            None
        });
    }
    Ok(positions)
}

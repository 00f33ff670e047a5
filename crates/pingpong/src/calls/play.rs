//! Makes calls to one engine and records the answers.

use super::draw::{Call, Case, Item, families};
use crate::batch::{Batch, Change, write_table};
use crate::call::Outcome;
use crate::case::{Access, Merge};
use crate::database::{Ingestion, ReadView};
use crate::library::Api;
use crate::options::Options;
use crate::worker::{Answer, Open, OpenRequest, Request, expand, handle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The answer of an engine to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallAnswer {
    /// Of each part of the call.
    pub answers: Vec<String>,
    /// The latest sequence number after it, if the database is open.
    pub number: Option<u64>,
    /// Every update that there is after it, from the first, from the middle and after the last.
    pub updates: Vec<String>,
}

/// An engine with its database.
pub struct Player<'a> {
    api: &'a Api,
    dir: PathBuf,
    request: OpenRequest,
    open: Option<Open<'a>>,
    tables: u32,
}

impl<'a> Player<'a> {
    /// With a new database in `dir/name`.
    pub fn new(api: &'a Api, case: &Case, dir: &Path, name: &str) -> Outcome<Player<'a>> {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let settings = |family: usize| {
            let own = case.family_options.iter().filter(move |(of, _)| *of == family);
            own.map(|(_, option)| option.clone()).collect()
        };
        let families = families().into_iter().enumerate();
        let request = OpenRequest {
            access: Access::Plain,
            path: dir.join("db").display().to_string(),
            ttls: Vec::new(),
            options: case.options.clone(),
            families: families.map(|(number, family)| (family, settings(number))).collect(),
            existing: vec![0, 1, 2],
        };
        let mut player = Player { api, dir, request, open: None, tables: 0 };
        player.reopen()?;
        Ok(player)
    }

    fn reopen(&mut self) -> Outcome<()> {
        self.close()?;
        handle(self.api, &mut self.open, Request::Open(self.request.clone())).map(drop)
    }

    fn close(&mut self) -> Outcome<()> {
        match self.open {
            Some(_) => handle(self.api, &mut self.open, Request::Close).map(drop),
            None => Ok(()),
        }
    }

    /// Does the call.
    pub fn told(&mut self, call: &Call) -> CallAnswer {
        let answers = self.answers(call);
        let answers = answers.into_iter().map(|answer| match answer {
            Ok(text) => self.plain(&text),
            Err(error) => format!("error: {}", self.plain(&error)),
        });
        let answers = answers.collect();
        let (number, updates) = self.history(call);
        CallAnswer { answers, number, updates }
    }

    fn history(&self, after: &Call) -> (Option<u64>, Vec<String>) {
        let Some(open) = &self.open else { return (None, Vec::new()) };
        let Ok(number) = open.database.latest_sequence_number() else { return (None, Vec::new()) };
        // RocksDB takes a compressed WAL without a batch for one that begins with number 1, and reads from there. A WAL that is
        // flushed by hand Outcrop hands over before an ingestion, too.
        let incomparable =
            |option: &String| option.starts_with("wal_compression") || option.starts_with("manual_wal_flush");
        if after.stops_writes() || self.request.options.iter().any(incomparable) {
            return (Some(number), Vec::new());
        }
        // WALs that became obsolete go in the background; after an error there is no background work to wait for.
        if let Err(error) = open.database.wait_for_background_work() {
            return (Some(number), vec![format!("error: {}", self.plain(&error))]);
        }
        let since = |number: u64| match open.database.updates_since(number) {
            Ok(updates) => self.plain(&updates),
            Err(error) => format!("error: {}", self.plain(&error)),
        };
        (Some(number), [0, number / 2, number, number + 1].map(since).to_vec())
    }

    /// `text` without what is this engine's own: its directory, and the numbers of its files.
    fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.dir.display().to_string(), "DIR");
        let mut plain = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        let mut at = 0;
        for (start, part) in
            text.match_indices('/').chain(text.match_indices('-')).collect::<BTreeMap<_, _>>()
        {
            let digits = bytes[start + part.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = start + part.len() + digits;
            if digits >= 6 && start + 1 >= at {
                plain.push_str(&text[at..start + 1]);
                plain.push('N');
                at = end;
            }
        }
        plain.push_str(&text[at..]);
        plain
    }

    fn answers(&mut self, call: &Call) -> Vec<Outcome<String>> {
        match call {
            Call::Ask(request) => {
                let asked = self.placed(request);
                vec![asked.and_then(|request| handle(self.api, &mut self.open, request)).map(said)]
            }
            Call::OpenWrongly(opening) => {
                let mut answers = vec![self.close().map(|()| String::new())];
                let request = self.request.clone();
                let asked = self.empty().map(|empty| Request::OpenWrongly {
                    request,
                    opening: opening.clone(),
                    empty,
                });
                answers.push(asked.and_then(|request| handle(self.api, &mut self.open, request)).map(said));
                answers.push(self.reopen().map(|()| "opened".into()));
                answers
            }
            Call::Batch { items, sync, wal } => self.batch(items, *sync, *wal),
            Call::Bytes(bytes) => vec![self.with(|open, api| {
                open.database.write(&Batch::from_bytes(api, bytes)?, false, true).map(|()| "written".into())
            })],
            Call::Ingest { family, records, behind, no_sequence } => {
                vec![self.ingest(*family, records, *behind, *no_sequence)]
            }
            Call::Reopen => vec![self.reopen().map(|()| "opened".into())],
            Call::Mergeless => {
                let kept = self.request.clone();
                // RocksDB drops from a WAL what it cannot merge and all that follows, or does not survive it. Records stay in the WAL if they
                // cannot be flushed, because the family's own operator refuses an operand.
                let flushed = handle(self.api, &mut self.open, Request::FlushTogether { wait: true });
                if flushed.is_err() {
                    return vec![flushed.map(said)];
                }
                let mut answers = vec![flushed.map(said)];
                answers.extend((0..3).flat_map(|family| self.rows(family, false)));
                self.request.families.iter_mut().for_each(|(family, _)| family.merge = Merge::None);
                answers.push(self.reopen().map(|()| "opened".into()));
                // RocksDB does not survive going backwards over operands without their operator, nor getting one of a table
                // (`GetContext::MergeWithNoBaseValue`).
                answers.extend((0..3).flat_map(|family| self.rows(family, false)));
                self.request = kept;
                answers.push(self.reopen().map(|()| "opened".into()));
                answers
            }
            Call::Rows(family) => self.rows(*family, true),
            Call::Set { family, name, value } => vec![self.with(|open, _| {
                open.database.set_options(open.family(*family)?, name, value).map(|()| "set".into())
            })],
        }
    }

    fn with(&self, act: impl FnOnce(&Open<'a>, &'a Api) -> Outcome<String>) -> Outcome<String> {
        act(self.open.as_ref().ok_or("it is not open")?, self.api)
    }

    /// A request with this engine's directories.
    fn placed(&mut self, request: &Request) -> Outcome<Request> {
        Ok(match request.clone() {
            Request::Mistake { mistake, .. } => Request::Mistake { mistake, scratch: self.empty()? },
            Request::Checkpoint { log_size_for_flush, .. } => {
                Request::Checkpoint { path: format!("{}/copy", self.empty()?), log_size_for_flush }
            }
            other => other,
        })
    }

    /// A new directory with nothing in it.
    fn empty(&mut self) -> Outcome<String> {
        self.tables += 1;
        let path = self.dir.join(format!("empty{}", self.tables));
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
    }

    fn batch(&self, items: &[Item], sync: bool, wal: bool) -> Vec<Outcome<String>> {
        let Some(open) = &self.open else { return vec![Err("it is not open".into())] };
        let mut answers = Vec::new();
        let mut make = || -> Outcome<Batch<'a>> {
            let mut batch = Batch::new(self.api)?;
            for item in items {
                let done = match item {
                    Item::Record(record) => expand(std::slice::from_ref(record))?
                        .iter()
                        .try_for_each(|(family, change)| batch.add(open.family(*family)?, change.borrow())),
                    Item::LogData(data) => batch.add_log_data(data),
                    Item::SavePoint => batch.set_save_point(),
                    Item::Rollback => batch.rollback(),
                    Item::Pop => batch.pop_save_point(),
                    Item::Clear => batch.clear(),
                };
                answers.push(done.map(|()| String::new()));
            }
            answers.push(batch.bytes().map(|bytes| bytes.escape_ascii().to_string()));
            Ok(batch)
        };
        let written = make().and_then(|batch| open.database.write(&batch, sync, wal));
        answers.push(written.map(|()| "written".into()));
        answers
    }

    fn ingest(&mut self, family: usize, keys: &[String], behind: bool, no_sequence: bool) -> Outcome<String> {
        let path = format!("{}/table", self.empty()?);
        let (described, settings) = &self.request.families[family];
        let options = Options::for_family(self.api, settings, described)?;
        let changes = keys.iter().map(|key| Change::Put(key.as_bytes(), b"ingested"));
        write_table(self.api, &path, &options, changes)?;
        let how = Ingestion { move_files: false, no_sequence, behind };
        self.with(|open, _| {
            open.database.ingest(open.family(family)?, &[&path], &how).map(|()| "ingested".into())
        })
    }

    /// Every row, forwards, and unless only that is wanted, backwards, and each of some keys.
    fn rows(&self, family: usize, all_ways: bool) -> Vec<Outcome<String>> {
        let Some(open) = &self.open else { return vec![Err("it is not open".into())] };
        let scan = |backwards: bool| -> Outcome<String> {
            let mut iter = open.database.iter(open.family(family)?, &ReadView::default())?;
            let mut told = String::new();
            if backwards {
                iter.seek_to_last()?
            } else {
                iter.seek_to_first()?
            }
            while iter.valid()? {
                let (key, value) = iter.row()?;
                told += &format!("{}={} ", key.escape_ascii(), value.escape_ascii());
                if backwards { iter.prev()? } else { iter.next()? }
            }
            let error = iter.status().err();
            Ok(told + &error.map_or_else(String::new, |error| format!("error: {error}")))
        };
        let mut answers = vec![scan(false)];
        if !all_ways {
            return answers;
        }
        answers.push(scan(true));
        for key in super::draw::keys() {
            answers.push(open.family(family).and_then(|handle| {
                let value = open.database.get(handle, &ReadView::default(), key.as_bytes())?;
                Ok(value.map_or_else(|| "none".into(), |value| value.escape_ascii().to_string()))
            }));
        }
        answers
    }
}

impl Drop for Player<'_> {
    fn drop(&mut self) {
        // It is thrown away; an error of closing was told if a call closed it.
        let _ = self.close();
    }
}

fn said(answer: Answer) -> String {
    match answer {
        Answer::Refused(error) | Answer::Error(error) => format!("error: {error}"),
        other => format!("{other:?}"),
    }
}

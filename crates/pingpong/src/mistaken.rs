//! Makes mistakes: the worker's side of `mistake.rs`.
//!
//! Each function does what its mistake says and gives the engine's error, or none if there was none.

use crate::batch::{Batch, Change, write_table};
use crate::call::{Outcome, c_string, call, with_error};
use crate::case::Family;
use crate::database::{Database, Handle, Ingestion, list_families};
use crate::library::Api;
use crate::mistake::{BadTable, BadTarget, Gone, Mistake, Opening, Stopping};
use crate::operation::Key;
use crate::options::Options;
use crate::options_file;
use crate::worker::{Answer, Open, OpenRequest};

/// The answer: the error that was wanted, that there was none, or that the mistake could not be made.
pub fn refused(made: Outcome<()>) -> Outcome<Answer> {
    match made {
        Ok(()) => Ok(Answer::Done),
        Err(error) if error.starts_with("the harness") || error.starts_with("the library has no") => {
            Err(error)
        }
        // An option's text is refused before there is a database.
        Err(error) => {
            Ok(Answer::Refused(match error.strip_prefix("option ").and_then(|rest| rest.split_once(": ")) {
                Some((_, error)) => error.to_string(),
                None => error,
            }))
        }
    }
}

impl<'a> Open<'a> {
    /// Makes a mistake.
    pub(crate) fn mistake(&mut self, api: &'a Api, mistake: &Mistake, scratch: &str) -> Outcome<()> {
        let change = Change::Put(b"mistake", b"x");
        match mistake {
            Mistake::CreateExisting { family } => {
                let (described, settings) = &self.request.families[*family];
                let options = Options::for_family(api, settings, described)?;
                self.database.create_family(&described.name.clone(), options).map(|_| ())
            }
            Mistake::CreateNameless => self.database.create_family("", Options::new(api, &[])?).map(|_| ()),
            Mistake::DropDefault => self.database.drop_family(self.family(0)?),
            Mistake::AfterDrop(gone) => self.after_drop(api, *gone, scratch),
            Mistake::SetOption { family, name, value } => {
                self.database.set_options(self.family(*family)?, name, value)
            }
            Mistake::MergeWithoutOperator { family } => {
                let merge = Change::Merge(b"mistake", b"x");
                self.database.write_one(self.family(*family)?, merge, false, true)
            }
            Mistake::SyncedUnlogged { family } => {
                self.database.write_one(self.family(*family)?, change, true, false)
            }
            Mistake::UnloggedRecycled { family } => {
                self.database.write_one(self.family(*family)?, change, false, false)
            }
            Mistake::RangeBackwards { family, begin, end } => {
                let range = Change::DeleteRange(&begin.0, &end.0);
                self.database.write_one(self.family(*family)?, range, false, true)
            }
            Mistake::Ingest { family, table, key } => self.ingest_wrongly(api, *family, *table, key, scratch),
            Mistake::Checkpoint(target) => self.database.checkpoint(&bad_target(*target, scratch)?, 0),
            Mistake::UpdatesOfTheFuture => self.database.updates_of_the_future(),
            Mistake::Timestamp { family } => self.database.put_with_timestamp(self.family(*family)?),
            Mistake::Destroy => destroy(api, &self.request.path),
        }
    }

    fn after_drop(&mut self, api: &'a Api, gone: Gone, scratch: &str) -> Outcome<()> {
        let handle = self.database.create_family("made to be dropped", Options::new(api, &[])?)?;
        self.database.write_one(handle, Change::Put(b"mistake", b"x"), false, true)?;
        let dropped =
            self.database.drop_family(handle).map_err(|error| format!("the harness cannot drop: {error}"));
        let result = dropped.and_then(|()| match gone {
            Gone::Drop => self.database.drop_family(handle),
            Gone::Put => self.database.write_one(handle, Change::Put(b"mistake", b"y"), false, true),
            Gone::Flush => self.database.flush(handle, true),
            Gone::SetOptions => self.database.set_options(handle, "write_buffer_size", "100000"),
            Gone::Ingest => {
                let table = format!("{scratch}/table");
                make_table(api, &table, &Family::plain("dropped"), &[], b"k")?;
                self.database.ingest(handle, &[&table], &Ingestion::default())
            }
        });
        self.database.destroy_handle(handle)?;
        result
    }

    fn ingest_wrongly(
        &self,
        api: &Api,
        family: usize,
        table: BadTable,
        key: &Key,
        scratch: &str,
    ) -> Outcome<()> {
        let (described, settings) = &self.request.families[family];
        let mut described = described.clone();
        described.reverse ^= table == BadTable::OtherOrder;
        let path = format!("{scratch}/table");
        let missing = format!("{scratch}/no table");
        let failed = |error: std::io::Error| format!("the harness cannot make a bad table: {error}");
        make_table(api, &path, &described, settings, &key.0)?;
        match table {
            BadTable::Empty => std::fs::write(&path, "").map_err(failed)?,
            BadTable::Garbage => std::fs::write(&path, "no table at all".repeat(100)).map_err(failed)?,
            BadTable::Half => {
                let bytes = std::fs::read(&path).map_err(failed)?;
                std::fs::write(&path, &bytes[..bytes.len() / 2]).map_err(failed)?;
            }
            _ => {}
        }
        let paths: &[&str] = match table {
            BadTable::Missing => &[&missing],
            BadTable::OneMissing => &[&path, &missing],
            BadTable::Directory => &[scratch],
            _ => &[&path],
        };
        let how = Ingestion {
            move_files: false,
            no_sequence: table == BadTable::Overlapping,
            behind: table == BadTable::Behind,
        };
        self.database.ingest(self.family(family)?, paths, &how)
    }
}

fn make_table(api: &Api, path: &str, family: &Family, settings: &[String], key: &[u8]) -> Outcome<()> {
    let made = Options::for_family(api, settings, family)
        .and_then(|options| write_table(api, path, &options, std::iter::once(Change::Put(key, b"mistake"))));
    made.map_err(|error| format!("the harness cannot make a table: {error}"))
}

fn bad_target(target: BadTarget, scratch: &str) -> Outcome<String> {
    let path = format!("{scratch}/checkpoint");
    let made = match target {
        BadTarget::Directory => std::fs::create_dir(&path),
        BadTarget::File => std::fs::write(&path, ""),
        BadTarget::Nameless => return Ok(String::new()),
        BadTarget::NoParent => return Ok(format!("{path}/no/such/parent")),
    };
    made.map_err(|error| format!("the harness cannot make {path}: {error}"))?;
    Ok(path)
}

fn destroy(api: &Api, path: &str) -> Outcome<()> {
    let options = Options::new(api, &[])?;
    let path = c_string(path)?;
    // SAFETY: live objects; a NUL-terminated path.
    with_error(api, |e| unsafe {
        call!(api, rocksdb_destroy_db(options.object, path.as_ptr(), e));
        Ok(())
    })
}

/// Opens a database in a way that fails.
pub fn open_wrongly(api: &Api, mut request: OpenRequest, opening: &Opening, empty: &str) -> Outcome<()> {
    match opening {
        Opening::New(stopping) => return stop(api, *stopping, empty),
        Opening::ListMissing => return list_families(api, &format!("{empty}/none")).map(|_| ()),
        Opening::LoadMissing => return options_file::load(api, &format!("{empty}/none"), false).map(|_| ()),
        Opening::OtherOrder => request.families[0].0.reverse ^= true,
        Opening::UnknownFamily => {
            request.existing.push(request.families.len());
            request.families.push((Family::plain("nobody"), Vec::new()));
        }
        Opening::FamilyLeftOut => {
            request.existing.pop();
        }
        Opening::WithoutDefault => request.existing.retain(|family| *family != 0),
        Opening::ErrorIfExists => request.options.push("error_if_exists=true".into()),
        Opening::NotCreated => request.path = empty.to_string(),
        Opening::ReadOnlyMissing => request.path = format!("{empty}/none"),
        Opening::Options(given) => {
            request.options.clone_from(given);
            request.families.iter_mut().for_each(|(_, settings)| settings.clear());
        }
        Opening::ReadOnlyPut | Opening::ReadOnlyFlush => {}
    }
    let read_only =
        matches!(opening, Opening::ReadOnlyPut | Opening::ReadOnlyFlush | Opening::ReadOnlyMissing);
    let mut families = Vec::new();
    for &index in &request.existing {
        let (family, settings) = &request.families[index];
        let mut all = settings.clone();
        if families.is_empty() {
            all.extend(request.options.iter().cloned());
        }
        families.push((family.name.clone(), Options::for_family(api, &all, family)?));
    }
    let (database, handles) = if read_only {
        Database::open_for_read_only(api, &request.path, families)?
    } else {
        Database::open(api, &request.path, families)?
    };
    let result = match opening {
        Opening::ReadOnlyPut => database.write_one(handles[0], Change::Put(b"mistake", b"x"), false, true),
        Opening::ReadOnlyFlush => database.flush(handles[0], true),
        _ => Ok(()),
    };
    close(database, &handles)?;
    result
}

/// Makes a database and does to it what fails. Outcrop and RocksDB differ in what they do afterwards.
fn stop(api: &Api, stopping: Stopping, path: &str) -> Outcome<()> {
    let options = Options::new(api, &[])?;
    options.create_missing()?;
    let failed = |error: String| format!("the harness cannot make a database: {error}");
    let (database, mut handles) =
        Database::open(api, path, vec![("default".into(), options)]).map_err(failed)?;
    let result = match (stopping, stopping.batch()) {
        (_, Some(batch)) => database.write(&Batch::from_bytes(api, &batch)?, false, true),
        (Stopping::RangeBackwards, None) => {
            database.write_one(handles[0], Change::DeleteRange(b"b", b"a"), false, true)
        }
        (_, None) => {
            let dropped = database.create_family("dropped", Options::new(api, &[])?).map_err(failed)?;
            handles.push(dropped);
            database.drop_family(dropped).map_err(failed)?;
            database.write_one(dropped, Change::Put(b"k", b"v"), false, true)
        }
    };
    close(database, &handles)?;
    result
}

fn close(database: Database<'_>, handles: &[Handle]) -> Outcome<()> {
    handles.iter().try_for_each(|handle| database.destroy_handle(*handle))?;
    database.close()
}

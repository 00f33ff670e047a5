//! The child process that opens and uses databases under extreme options, and the parent's watch over it.
//!
//! ```text
//! parent --{"dir":...,"case":...}\n--> child     one line of JSON per case
//! parent <--~what it is about to do---- child     any number of lines, each a sign of life
//! parent <--{"refused":...}------------ child     the report
//! ```

use super::Case;
use crate::batch::Change;
use crate::call::Outcome;
use crate::database::{Database, Handle, ReadView};
use crate::library::Api;
use crate::options::Options;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The outcome of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Why it was not opened.
    pub refused: Option<String>,
    /// Its OPTIONS file, once it was open.
    pub options_file: Option<String>,
    /// The error of each change, if any.
    pub changes: Vec<Option<String>>,
    /// Where the script ended early, and why.
    pub failed: Option<String>,
}

/// How a child ended its case.
#[derive(Clone, Debug)]
pub enum End {
    /// With a report.
    Said(Report),
    /// It is gone; the last it said, and what it printed.
    Died(String),
    /// It says nothing any more; the last it said, and what it printed.
    Hangs(String),
}

#[derive(Serialize, Deserialize)]
struct Request {
    dir: PathBuf,
    case: Case,
}

/// Children of one engine, one after the other.
pub struct Runner {
    program: PathBuf,
    library: PathBuf,
    hang: Duration,
    child: Option<Child>,
}

struct Child {
    process: std::process::Child,
    input: ChildStdin,
    said: Receiver<String>,
    errors: std::fs::File,
}

/// A child that holds more memory than this is ended: the machine is needed for the next case. Bytes.
const MOST_MEMORY: u64 = 4 << 30;

impl Runner {
    /// Of the engine in `library`; `hang` without a word is too long.
    pub fn new(program: &Path, library: &Path, hang: Duration) -> Runner {
        Runner { program: program.to_path_buf(), library: library.to_path_buf(), hang, child: None }
    }

    /// Runs a case in an empty directory `dir`.
    pub fn run(&mut self, case: &Case, dir: &Path) -> End {
        let _ = std::fs::remove_dir_all(dir);
        let end = match self.try_run(case, dir) {
            Ok(end) => end,
            Err(error) => End::Died(error),
        };
        if !matches!(end, End::Said(_)) {
            self.end_child();
        }
        let _ = std::fs::remove_dir_all(dir);
        end
    }

    fn try_run(&mut self, case: &Case, dir: &Path) -> Result<End, String> {
        if self.child.is_none() {
            self.child = Some(Child::start(&self.program, &self.library)?);
        }
        let child = self.child.as_mut().expect("just started");
        let request = Request { dir: dir.to_path_buf(), case: case.clone() };
        let mut line = serde_json::to_string(&request).map_err(|error| error.to_string())?;
        line.push('\n');
        child.input.write_all(line.as_bytes()).map_err(|error| error.to_string())?;
        let (mut last_word, mut heard) = (String::from("started"), Instant::now());
        loop {
            match child.said.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => match line.strip_prefix('~') {
                    Some(word) => (last_word, heard) = (word.to_string(), Instant::now()),
                    None => match serde_json::from_str(&line) {
                        Ok(report) => return Ok(child.without_panics(report, &last_word)),
                        // The engine printed it.
                        Err(_) => continue,
                    },
                },
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(End::Died(format!("at {last_word}: {}", child.printed())));
                }
                Err(RecvTimeoutError::Timeout) if child.printed().contains("panicked at") => {
                    return Ok(End::Died(format!("at {last_word}: {}", child.printed())));
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() >= self.hang => {
                    return Ok(End::Hangs(format!("at {last_word}: {}", child.printed())));
                }
                Err(RecvTimeoutError::Timeout) if child.memory() > MOST_MEMORY => {
                    return Ok(End::Died(format!("at {last_word}: it takes more than {MOST_MEMORY} bytes")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn end_child(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.process.kill();
            let _ = child.process.wait();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end_child();
    }
}

impl Child {
    fn start(program: &Path, library: &Path) -> Result<Child, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let errors = tempfile::tempfile().map_err(failed)?;
        let mut process = Command::new(program)
            .arg("options-worker")
            .arg("--library")
            .arg(library)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(failed)?)
            .spawn()
            .map_err(failed)?;
        let input = process.stdin.take().expect("piped above");
        let output = process.stdout.take().expect("piped above");
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Child { process, input, said, errors })
    }

    /// A panic of a thread that nobody waited for counts, too.
    fn without_panics(&mut self, report: Report, last_word: &str) -> End {
        let printed = self.printed();
        if printed.contains("panicked at") {
            End::Died(format!("by {last_word}: {printed}"))
        } else {
            End::Said(report)
        }
    }

    /// Bytes that it holds in memory.
    fn memory(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.process.id())).unwrap_or_default();
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.unwrap_or(0).saturating_mul(4096)
    }

    /// The panics on its standard error, or the end of what is there.
    fn printed(&mut self) -> String {
        use std::io::{Read, Seek, SeekFrom};
        let mut text = String::new();
        let _ = self.errors.seek(SeekFrom::Start(0)).and_then(|_| self.errors.read_to_string(&mut text));
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.iter().position(|line| line.contains("panicked at"));
        let from = from.unwrap_or(lines.len().saturating_sub(3));
        lines[from..].iter().take(3).copied().collect::<Vec<_>>().join(" ")
    }
}

/// The child: cases come on standard input until it ends.
///
/// # Errors
/// The library cannot be loaded, or the parent is gone.
pub fn serve(library: &Path) -> Result<(), String> {
    let api = Api::load(library)?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let request: Request = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let report = do_case(&api, &request);
        println!("{}", serde_json::to_string(&report).map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// A sign of life.
fn about_to(what: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone, which ends this process soon.
    let _ = writeln!(out, "~{what}").and_then(|()| out.flush());
}

fn do_case(api: &Api, request: &Request) -> Report {
    let mut report = Report::default();
    let (database, handle) = match open(api, request) {
        Ok(opened) => opened,
        Err(error) => return Report { refused: Some(error), ..report },
    };
    about_to("reading OPTIONS");
    report.options_file = newest_options_file(&request.dir);
    let mut database = Some(database);
    report.failed = go_on(api, request, &mut database, handle, &mut report.changes).err();
    if let Some(database) = database {
        about_to("closing");
        let _ = database.destroy_handle(handle);
        let _ = database.close();
    }
    report
}

fn open<'a>(api: &'a Api, request: &Request) -> Outcome<(Database<'a>, Handle)> {
    about_to("setting options");
    let options = Options::new(api, &request.case.options)?;
    options.create_missing()?;
    about_to("opening");
    let path = request.dir.to_string_lossy();
    let (database, handles) = Database::open(api, &path, vec![("default".to_string(), options)])?;
    Ok((database, handles[0]))
}

fn newest_options_file(dir: &Path) -> Option<String> {
    let names = std::fs::read_dir(dir).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let newest = names.filter(|name| name.starts_with("OPTIONS-") && !name.ends_with("dbtmp")).max()?;
    std::fs::read_to_string(dir.join(newest)).ok()
}

/// Flushes, which is more than there are tables in L0 before writers stop by default, and a part that stays in memory.
const PARTS: u64 = 43;
/// Rows of one part; with [`VALUE`] bytes each, all parts together are a megabyte.
const ROWS: u64 = 100;
const VALUE: usize = 240;
/// Rows between two signs of life: 4 KiB.
const ROWS_PER_WORD: u64 = 16;
/// Different keys: each is overwritten once or so.
const KEYS: u64 = 2000;

fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    let key = format!("key{:06}", n.wrapping_mul(0x9E37_79B9) % KEYS);
    let value = format!("{n:08}").repeat(VALUE / 8);
    (key.into_bytes(), value.into_bytes())
}

fn go_on<'a>(
    api: &'a Api,
    request: &Request,
    database: &mut Option<Database<'a>>,
    mut handle: Handle,
    changes: &mut Vec<Option<String>>,
) -> Outcome<()> {
    let db = database.as_ref().expect("open");
    for (name, value) in &request.case.changes {
        about_to(format!("changing {name}"));
        changes.push(db.set_options(handle, name, value).err());
    }
    if !request.case.script {
        return Ok(());
    }
    let mut rows = std::collections::BTreeMap::new();
    for part in 0..PARTS {
        for n in part * ROWS..(part + 1) * ROWS {
            if n % ROWS_PER_WORD == 0 {
                about_to(format!("putting row {n}"));
            }
            let (key, value) = row(n);
            db.write_one(handle, Change::Put(&key, &value), false, true)
                .map_err(|error| format!("put: {error}"))?;
            rows.insert(key, value);
        }
        if part + 1 < PARTS {
            about_to(format!("flush {part}"));
            db.flush(handle, true).map_err(|error| format!("flush: {error}"))?;
        }
    }
    // FIFO compaction and its ttl delete rows as they are asked to.
    let deletes = request.case.options.iter().any(|option| option == "compaction_style=kCompactionStyleFIFO");
    let expected = if deletes { None } else { Some(&rows) };
    compare(db, handle, expected).map_err(|error| format!("after the puts: {error}"))?;
    about_to("the last flush");
    db.flush(handle, true).map_err(|error| format!("flush: {error}"))?;
    about_to("compacting");
    db.compact_range(handle, None, None, 0, true).map_err(|error| format!("compact_range: {error}"))?;
    compare(db, handle, expected).map_err(|error| format!("after compact_range: {error}"))?;
    about_to("closing");
    let db = database.take().expect("open");
    db.destroy_handle(handle)?;
    db.close()?;
    let (reopened, again) = open(api, request).map_err(|error| format!("reopening: {error}"))?;
    handle = again;
    let result = compare(&reopened, handle, expected).map_err(|error| format!("reopened: {error}"));
    about_to("closing again");
    reopened.destroy_handle(handle)?;
    reopened.close()?;
    result
}

/// Every key has its newest value; where rows may be deleted, each read succeeds.
fn compare(
    db: &Database<'_>,
    handle: Handle,
    expected: Option<&std::collections::BTreeMap<Vec<u8>, Vec<u8>>>,
) -> Outcome<()> {
    for n in 0..KEYS {
        if n % 64 == 0 {
            about_to(format!("getting key {n}"));
        }
        let key = format!("key{n:06}").into_bytes();
        let found = db.get(handle, &ReadView::default(), &key)?;
        if let Some(expected) = expected
            && found.as_ref() != expected.get(&key)
        {
            let shown =
                |value: Option<&Vec<u8>>| value.map(|value| String::from_utf8_lossy(value).into_owned());
            return Err(format!(
                "Wrong: key{n:06} is {:?}, not {:?}",
                shown(found.as_ref()),
                shown(expected.get(&key))
            ));
        }
    }
    Ok(())
}

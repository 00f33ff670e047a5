//! Imports published result files into one model, naming every repair.
//!
//! ```text
//! paths -> source.rs (bounded text) -> format.rs (told by contents) -> a parser -> sink.rs
//!       -> report.rs: rows, series, repairs, rejects, as text or JSON
//!       -> classic.rs: the relative tables and colours of the posts
//!       -> archive.rs: what the record keeps; tails.rs: what can be judged of it
//! ```
//! Parsers: `summary_line`, `version_table`, `db_bench_log` with `benchmark_sh` (db_bench); `sysbench`, `query_table`, `hardware`
//! (sysbench); `insert_benchmark`; `samplers` (vmstat, iostat); `fio`.
//!
//! Invariants: a file or line that does not parse is listed with its reason and the rest goes on; a value that
//! a repair replaced keeps the printed one beside it; nothing is read that was not asked for, except the files
//! beside a table that name its columns.
//! Next: `model.rs` for what a row is, `repair.rs` for the defects; `docs/lab-import.md` for users.

mod archive;
mod benchmark_sh;
mod classic;
mod colours;
mod db_bench_log;
mod fio;
mod format;
mod hardware;
mod insert_benchmark;
mod layout;
mod model;
mod names;
mod query_table;
mod repair;
mod report;
mod samplers;
mod sink;
mod source;
mod summary_line;
mod sysbench;
mod tails;
mod target;
mod version_table;

pub use archive::{Archive, ArchiveTarget, Group, MetricTable, Note};
pub(crate) use classic::by_base;
pub use classic::{Classic, Output, View, classic, classic_with};
pub use colours::{Better, Colour, meets_sla, page_absolute_colours, page_colour, post_colour};
pub use format::Format;
pub use model::{Reject, Row, Series, Target, Text, Value};
pub use repair::{Effect, Repair, Repaired};
pub use report::{FileSummary, Report};
pub(crate) use summary_line::OWN_START;
pub use tails::{RateChange, Standstill, TailChange};
pub(crate) use target::version_numbers;

use crate::store::Store;
use sink::Sink;
use source::Source;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Flags of `lab import`.
#[derive(Clone, Debug, clap::Args)]
pub struct ImportArguments {
    /// Result files, or directories to search for them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Print rows, series, repairs and rejects as JSON.
    #[arg(long)]
    pub json: bool,
    /// Print tables of this metric (ops_sec, qps, cpu/o, ips, pmax) instead of the summary.
    #[arg(long, value_name = "METRIC", conflicts_with = "json")]
    pub table: Option<String>,
    /// Name or version of the target that tables and pages are relative to [default: the first].
    #[arg(long, value_name = "TARGET")]
    pub base: Option<String>,
    /// Colours and numbers of tables.
    #[arg(long, value_enum, default_value = "posts", requires = "table")]
    pub view: View,
    /// Layout of tables.
    #[arg(long, value_enum, default_value = "text", requires = "table")]
    pub output: Output,
    /// Keep the numbers in the record, so that `outcrop lab report` makes pages of them.
    #[arg(long, conflicts_with_all = ["json", "table"])]
    pub record: bool,
    /// The title of the pages [default: the last parts of the paths].
    #[arg(long, value_name = "TITLE", requires = "record")]
    pub title: Option<String>,
}

/// Deepest directory searched below a path.
const MAX_DEPTH: usize = 32;

/// Runs `lab import`.
///
/// # Errors
/// One sentence: a path that cannot be read, or a table that no file has.
pub fn run_command(store: &Path, arguments: &ImportArguments) -> Result<(), String> {
    if arguments.record {
        return record(store, arguments);
    }
    let colours = std::io::stdout().is_terminal();
    run_to(arguments, colours, &mut BufWriter::new(std::io::stdout().lock()))
}

/// Imports into the record.
fn record(store: &Path, arguments: &ImportArguments) -> Result<(), String> {
    let report = run(&arguments.paths)?;
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let names: Vec<String> = arguments.paths.iter().map(name).collect();
    let title = arguments.title.clone().unwrap_or_else(|| names.join(", "));
    let archive = Archive::of(&report, &title, arguments.base.as_deref())?;
    let id = Store::open(store)?
        .record_archive(&crate::report::text::rfc3339(crate::run::unix_seconds()), &archive)?;
    print!("{report}");
    println!("\nexperiment {id}: outcrop lab report {id} -o DIRECTORY  writes the pages");
    Ok(())
}

/// Runs `lab import` with another place to write to.
///
/// # Errors
/// As [`run_command`].
pub fn run_to(arguments: &ImportArguments, colours: bool, out: &mut dyn Write) -> Result<(), String> {
    if arguments.base.is_some() && arguments.table.is_none() {
        return Err("--base needs --table or --record".to_string());
    }
    let report = run(&arguments.paths)?;
    let written = if arguments.json {
        serde_json::to_writer(&mut *out, &report).map_err(std::io::Error::from).and_then(|()| writeln!(out))
    } else if let Some(metric) = &arguments.table {
        let request = Classic {
            metric: metric.clone(),
            base: arguments.base.clone(),
            view: arguments.view,
            output: arguments.output,
            colours,
        };
        let tables = report.tables(&request)?;
        writeln!(out, "{}", tables.join("\n"))
    } else {
        write!(out, "{report}")
    };
    match written.and_then(|()| out.flush()) {
        // A reader that has seen enough, such as `head`, is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| format!("cannot write: {error}")),
    }
}

/// Imports files and directories.
///
/// # Errors
/// A path that does not exist or a directory that cannot be listed. Files that are not results are no error:
/// the report lists them.
pub fn run(paths: &[PathBuf]) -> Result<Report, String> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if metadata.is_dir() {
            walk(path, 0, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    let mut report = Report::default();
    for file in files {
        import_file(&file, &mut report);
    }
    report.tell_repeated_targets_apart();
    Ok(report)
}

/// Adds the files below `directory`, sorted. Hidden files and links to directories are left out.
fn walk(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    if depth > MAX_DEPTH {
        return Err(format!("{}: deeper than {MAX_DEPTH} directories", directory.display()));
    }
    let mut entries =
        std::fs::read_dir(directory).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries.into_iter().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")) {
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            walk(&entry.path(), depth + 1, files)?;
        } else if kind.is_file() || entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn import_file(path: &Path, report: &mut Report) {
    let shown = Text::from(path.to_string_lossy().as_ref());
    match Source::read(path) {
        Ok(source) => import_source(&source, report),
        Err(reason) => report.rejects.push(Reject { file: shown, line: 0, reason }),
    }
}

fn import_source(source: &Source, report: &mut Report) {
    let Some(format) = Format::of(source) else {
        let reason = if source.is_empty() { "the file is empty" } else { "no format that is known" };
        let reason = reason.to_string();
        report.rejects.push(Reject { file: source.shown.clone(), line: 0, reason });
        return;
    };
    let mut sink = Sink::new(source.shown.clone());
    format.parse(source, &mut sink);
    let (rows, series) = (sink.rows.len(), sink.series.len());
    report.files.push(FileSummary { file: source.shown.clone(), format, rows, series });
    report.rows.append(&mut sink.rows);
    report.series.append(&mut sink.series);
    report.repairs.append(&mut sink.repairs);
    report.rejects.append(&mut sink.rejects);
}

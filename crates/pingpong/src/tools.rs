//! RocksDB's own tools look at Outcrop's files: `ldb` and `sst_dump` of an installed package.
//!
//! For each option that changes the format, Outcrop writes a database with tables and a WAL. Of those that checkcompat
//! says the tools' version reads, the tools must find every table valid, the MANIFEST readable, the set of files
//! consistent and exactly the model's rows.

use crate::case::{Case, Family};
use crate::choices::{CHOICES, title};
use crate::features::OUTCROP;
use crate::model::Model;
use crate::rules::admits;
use crate::run::{Pool, play};
use crate::scratch::Scratch;
use crate::trials::{abilities, trial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations of trials whose rows `ldb` shows without being given anything.
const OPERATIONS: [&str; 6] =
    ["single delete", "delete range", "log data", "unlogged", "ingest", "ingest deletes"];

/// The programs and files of the check.
pub struct Looking {
    /// This crate's binary.
    pub program: PathBuf,
    /// Outcrop's library.
    pub library: PathBuf,
    /// The binary `outcrop`, for checkcompat.
    pub outcrop: PathBuf,
    /// The version of the tools.
    pub version: String,
}

/// Makes the databases and lets the tools look; gives how many there were.
///
/// # Errors
/// The first database in which a tool finds something else, or the harness cannot work.
pub fn run(looking: &Looking) -> Result<usize, String> {
    let scratch = Scratch::new(&std::env::temp_dir(), "tools")?;
    let libraries = BTreeMap::from([(OUTCROP.to_string(), looking.library.clone())]);
    let (engines, _) = abilities(&looking.program, &libraries, None, scratch.path())?;
    let mut pool = Pool::new(&looking.program, &libraries);
    let written = &engines[OUTCROP].writes;
    let choices = CHOICES.iter().filter(|choice| choice.format).flat_map(|choice| choice.answers);
    let features = OPERATIONS.iter().map(ToString::to_string).chain(choices.map(|answer| title(answer)));
    let mut looked_at = 0;
    for feature in features.filter(|feature| written.contains(feature)) {
        let player = (OUTCROP, &engines[OUTCROP].options);
        let mut case = trial(&feature, player, player);
        case.phases.truncate(1);
        let dir = scratch.path().join("tools");
        let _ = std::fs::remove_dir_all(&dir);
        play(&case, &mut pool, &dir).map_err(|failure| format!("{feature}: {failure}"))?;
        let db = dir.join("db");
        if is_for(looking, &db)? {
            look(&case, &db).map_err(|error| format!("{feature}: {error}"))?;
            looked_at += 1;
        }
    }
    Ok(looked_at)
}

/// Whether the tools' version reads the database, by checkcompat.
fn is_for(looking: &Looking, db: &Path) -> Result<bool, String> {
    let arguments = ["checkcompat".to_string(), format!("--with={}", looking.version)];
    let status = Command::new(&looking.outcrop)
        .arg("ldb")
        .arg(format!("--db={}", db.display()))
        .args(arguments)
        .output()
        .map_err(|error| format!("{}: {error}", looking.outcrop.display()))?
        .status;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("checkcompat: {status}")),
    }
}

fn look(case: &Case, db: &Path) -> Result<(), String> {
    let at = format!("--db={}", db.display());
    // That is what loaders ask for if an option is set that they do not know; they still refuse what old files say.
    let lenient = "--ignore_unknown_options";
    let tables = format!("--file={}", db.display());
    let verified = said("sst_dump", &[&tables, "--command=verify"])?;
    let count = verified.matches("The file is ok").count();
    let expected = tables_in(db)?;
    if count != expected {
        return Err(format!("sst_dump finds {count} of {expected} tables valid: {verified}"));
    }
    said("ldb", &[&at, "checkconsistency", lenient])?;
    let manifest = said("ldb", &["manifest_dump", &at])?;
    if !manifest.contains("last_sequence") {
        return Err(format!("ldb manifest_dump does not reach the end: {manifest}"));
    }
    let found: Vec<String> = said("ldb", &[&at, "scan", "--hex", lenient])?
        .lines()
        .filter(|line| line.starts_with("0x"))
        .map(|line| line.trim_end().to_string())
        .collect();
    match rows(case).iter().zip(&found).position(|(a, b)| a != b) {
        Some(row) => Err(format!("ldb scan, row {row}: {} instead of {}", found[row], rows(case)[row])),
        None if rows(case).len() != found.len() => {
            Err(format!("ldb scan finds {} rows instead of {}", found.len(), rows(case).len()))
        }
        None => Ok(()),
    }
}

fn tables_in(db: &Path) -> Result<usize, String> {
    let entries = std::fs::read_dir(db).map_err(|error| error.to_string())?;
    Ok(entries.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "sst")).count())
}

/// The output of a tool that finds nothing wrong.
fn said(tool: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(tool).args(arguments).output().map_err(|error| format!("{tool}: {error}"))?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let unhappy =
        ["Corruption", "Failed", "error:", "Not implemented"].iter().any(|word| text.contains(word));
    if output.status.success() && !unhappy {
        Ok(text)
    } else {
        Err(format!("{tool} {}: {}: {text}", arguments.join(" "), output.status))
    }
}

/// The rows of the default column family, as `ldb scan --hex` prints them.
fn rows(case: &Case) -> Vec<String> {
    let families: Vec<Family> = case.families.clone();
    let mut model = Model::new(&families, &case.initial);
    for operation in case.phases.iter().flat_map(|phase| &phase.operations) {
        if admits(&model, operation) {
            model.apply(operation);
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    model.rows(0).iter().map(|(key, value)| format!("0x{} : 0x{}", hex(&key.0), hex(value))).collect()
}

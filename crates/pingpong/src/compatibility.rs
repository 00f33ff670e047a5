//! The table of `docs/compatibility.md`: which version reads what of which, found out by trying.
//!
//! ```text
//! per feature and version:  the version uses it, Outcrop reads, compacts, writes on    (theirs)
//!                           Outcrop uses it, the version does the same                 (ours)
//! ```
//! `outcrop ldb checkcompat` foretells the second half; that it is right is part of what is checked here, and its
//! sentences are the table's notes.
//!
//! Invariant: the text depends on the engines alone, not on where or when it is made.

use crate::case::{Case, Phase};
use crate::choices::{CHOICES, title};
use crate::features::{CALLS, Engines, OPERATIONS, OUTCROP};
use crate::known::Known;
use crate::run::{Failure, Kind, Pool, play};
use crate::scratch::Scratch;
use crate::trials::{self, DEFAULTS, Player, abilities, attempt, by_age, refuses, trial};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs and directories of the trials.
pub struct Trying {
    /// This crate's binary.
    pub program: PathBuf,
    /// Engines by name.
    pub libraries: BTreeMap<String, PathBuf>,
    /// The binary `outcrop`, for checkcompat.
    pub outcrop: PathBuf,
}

/// How one side's files fare with the other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Cell {
    /// They are read.
    Yes,
    /// They are not, and why.
    No(String),
    /// The side does not write the feature, and why.
    NotWritten(String),
}

/// The verdicts of checkcompat on a database: for each version whether it is refused, and the sentences.
type Foretold = BTreeMap<String, (bool, String)>;

/// The results of the trials.
pub struct Compatibility {
    /// The document.
    pub text: String,
    /// Results that contradict the expectation: a failure that is no refusal, a wrong foretelling.
    pub findings: Vec<String>,
}

/// Tries everything, but which features the `known` engines write.
///
/// # Errors
/// The harness itself cannot work.
pub fn run(trying: &Trying, known: Option<&Engines>) -> Result<Compatibility, String> {
    let scratch = Scratch::new(&std::env::temp_dir(), "compatibility")?;
    let (engines, lacking) = abilities(&trying.program, &trying.libraries, known, scratch.path())?;
    let features = features_on_disk();
    let foretold = foretell_all(trying, &engines, &features, scratch.path())?;
    let versions = by_age(&trying.libraries);
    let columns = std::thread::scope(|scope| {
        let running: Vec<_> = versions
            .iter()
            .map(|version| {
                let (engines, features, foretold) = (&engines, &features, &foretold);
                let mut judge =
                    Judge { trying, engines, lacking: &lacking, foretold, version, findings: Vec::new() };
                let dir = scratch.path().join(version);
                scope.spawn(move || {
                    let cells = judge.column(features, &dir);
                    (cells, judge.findings)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a trial does not panic")).collect::<Vec<_>>()
    });
    let findings = columns.iter().flat_map(|(_, findings)| findings.clone()).collect();
    let columns: Vec<_> = columns.into_iter().map(|(cells, _)| cells).collect();
    Ok(Compatibility { text: document(&versions, &features, &columns), findings })
}

/// Plays the trials that ping-pong begins with, on all engines; gives what they show of the versions of RocksDB.
///
/// # Errors
/// The harness itself cannot work.
pub fn of_versions(trying: &Trying) -> Result<Known, String> {
    let scratch = Scratch::new(&std::env::temp_dir(), "compatibility")?;
    Ok(Known::of(&trials::run(&trying.program, &trying.libraries, None, scratch.path())?.engines))
}

/// Features that leave something of their own on disk.
fn features_on_disk() -> Vec<String> {
    let operations = OPERATIONS.iter().map(|(name, _)| *name).filter(|name| !CALLS.contains(name));
    let choices = CHOICES.iter().filter(|choice| choice.format).flat_map(|choice| choice.answers);
    let mut features = vec![DEFAULTS.to_string()];
    features.extend(operations.map(String::from));
    features.extend(choices.map(|answer| title(answer)));
    features
}

/// Asks checkcompat about a database of every feature that Outcrop writes.
fn foretell_all(
    trying: &Trying,
    engines: &Engines,
    features: &[String],
    scratch: &Path,
) -> Result<BTreeMap<String, Foretold>, String> {
    let mut pool = Pool::new(&trying.program, &trying.libraries);
    let player: Player<'_> = (OUTCROP, &engines[OUTCROP].options);
    let dir = scratch.join("foretold");
    let mut all = BTreeMap::new();
    for feature in features.iter().filter(|feature| writes(engines, OUTCROP, feature)) {
        let mut case = trial(feature, player, player);
        case.phases.truncate(1);
        let _ = std::fs::remove_dir_all(&dir);
        play(&case, &mut pool, &dir).map_err(|failure| format!("{feature}: {failure}"))?;
        all.insert(feature.clone(), foretell(trying, &dir.join("db"))?);
    }
    Ok(all)
}

fn foretell(trying: &Trying, db: &Path) -> Result<Foretold, String> {
    let versions = by_age(&trying.libraries);
    let output = Command::new(&trying.outcrop)
        .arg("ldb")
        .arg(format!("--db={}", db.display()))
        .args(["checkcompat", "--json", &format!("--with={}", versions.join(","))])
        .output()
        .map_err(|error| format!("{}: {error}", trying.outcrop.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("checkcompat: {error}; {said}"))?;
    let verdicts = report["versions"].as_array().ok_or("checkcompat: no versions")?;
    let sentences = |verdict: &serde_json::Value| {
        let findings = verdict["findings"].as_array().into_iter().flatten();
        let serious = findings.filter(|finding| finding["effect"] != "note");
        let texts: Vec<String> = serious
            .map(|finding| {
                let text = |name: &str| finding[name].as_str().unwrap_or_default().to_string();
                format!("{} ({}): {}", text("feature"), text("effect"), text("text"))
            })
            .collect();
        texts.join("; ")
    };
    Ok(verdicts
        .iter()
        .map(|verdict| {
            let version = verdict["version"].as_str().unwrap_or_default().to_string();
            (version, (verdict["refused"] == true, sentences(verdict)))
        })
        .collect())
}

fn writes(engines: &Engines, engine: &str, feature: &str) -> bool {
    feature == DEFAULTS || engines[engine].writes.contains(feature)
}

/// Tries out one version.
struct Judge<'a> {
    trying: &'a Trying,
    engines: &'a Engines,
    lacking: &'a BTreeMap<String, String>,
    foretold: &'a BTreeMap<String, Foretold>,
    version: &'a str,
    findings: Vec<String>,
}

impl Judge<'_> {
    /// Theirs and ours of every feature.
    fn column(&mut self, features: &[String], dir: &Path) -> Vec<(Cell, Cell)> {
        let mut pool = Pool::new(&self.trying.program, &self.trying.libraries);
        features
            .iter()
            .map(|feature| (self.theirs(feature, &mut pool, dir), self.ours(feature, &mut pool, dir)))
            .collect()
    }

    fn case(&self, feature: &str, writer: &str, reader: &str) -> Case {
        let player = |name: &'_ str| {
            let (name, abilities) = self.engines.get_key_value(name).expect("every engine was tried");
            (name.as_str(), &abilities.options)
        };
        trial(feature, player(writer), player(reader))
    }

    fn theirs(&mut self, feature: &str, pool: &mut Pool, dir: &Path) -> Cell {
        if !writes(self.engines, self.version, feature) {
            return Cell::NotWritten("this version has no such feature".to_string());
        }
        let case = self.case(feature, self.version, OUTCROP);
        match attempt(&case, pool, dir) {
            Ok(()) => Cell::Yes,
            Err(failure) => {
                if !refuses(&failure) {
                    self.findings.push(format!("{} uses {feature}: {failure}", self.version));
                }
                Cell::No(format!("Outcrop: {}", without_places(&failure.message)))
            }
        }
    }

    fn ours(&mut self, feature: &str, pool: &mut Pool, dir: &Path) -> Cell {
        if !writes(self.engines, OUTCROP, feature) {
            let why = self.lacking.get(feature).map_or("", String::as_str);
            return Cell::NotWritten(format!("Outcrop does not write it: {}", without_places(why)));
        }
        let case = self.case(feature, OUTCROP, self.version);
        let outcome = attempt(&case, pool, dir);
        let (refused, sentences) =
            self.foretold[feature].get(self.version).cloned().expect("checkcompat answers for every version");
        if let Some(wrong) = contradiction(&outcome, refused, &case.phases) {
            self.findings.push(format!("Outcrop uses {feature}, {} reads: {wrong}", self.version));
        }
        match outcome {
            Ok(()) => Cell::Yes,
            Err(_) => Cell::No(sentences),
        }
    }
}

/// The contradiction between an outcome and what checkcompat foretold, if there is one.
fn contradiction(outcome: &Result<(), Failure>, refused: bool, phases: &[Phase]) -> Option<String> {
    match outcome {
        Ok(()) if refused => Some("checkcompat says that it does not read it, but it does".to_string()),
        Ok(()) => None,
        Err(failure) if phases[failure.phase].engine == OUTCROP => Some(failure.to_string()),
        Err(failure) if matches!(failure.kind, Kind::Died | Kind::Hangs) => Some(failure.to_string()),
        Err(_) if refused => None,
        Err(failure) => Some(format!("checkcompat says that it reads it: {failure}")),
    }
}

/// A message without file names and numbers of files.
fn without_places(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let words = first.split(' ').filter(|word| !word.starts_with('/'));
    words.collect::<Vec<_>>().join(" ")
}

const HEAD: &str = "# Compatibility, feature by feature

Generated by `cargo xtask compatibility` from trials with the real libraries; `cargo xtask ci` makes it again and fails if
this file differs. In each trial one side uses the feature in three rounds of writes (two flushed, one in the WAL) and
closes; the other opens, compares every row with a model, compacts and compares again; the first goes on on that, and the
other once more. Databases that the six versions wrote in the past are in `fixtures/made`.

A cell is *their files are read by Outcrop / Outcrop's files are read by them*; `–` means that the side does not write it.
A file that is not read has a note. `outcrop ldb checkcompat --with=VERSION` says the same of a database at hand, and the trials
check that it is right. Options that leave no trace of their own on disk are not listed.

User-defined timestamps and values that expire are not in the table: they have hand-overs of their own, `cargo xtask timestamps` and `cargo xtask
expiry`, with 7.10.2 and later; of databases with timestamps 7.10.2 takes only what was flushed and closed. See [timestamps.md](timestamps.md), [ttl.md](ttl.md).

Two things depend on how the reader opens. 6.29.5 and 7.10.2 never finish opening under
`wal_recovery_mode=kSkipAnyCorruptedRecords` what a killed process has left, if its WAL was recycled (RocksDB's own too) or, of
Outcrop's, has space ahead of its end. Outcrop makes no such space under that mode, nor with `allow_fallocate=false`. And a
RocksDB that opens the directory as a secondary instance while such a WAL is in it never finishes, with its own recycled WALs
either: a live or killed Outcrop wants `allow_fallocate=false` for that, Outcrop's own secondary instances do not. `checkcompat`
has a note of both where such a WAL is.

";

fn document(versions: &[String], features: &[String], columns: &[Vec<(Cell, Cell)>]) -> String {
    let mut notes: Vec<String> = Vec::new();
    let mut cell = |cell: &Cell| -> String {
        let mut note = |text: &str| {
            let at = notes.iter().position(|known| known == text).unwrap_or_else(|| {
                notes.push(text.to_string());
                notes.len() - 1
            });
            at + 1
        };
        match cell {
            Cell::Yes => "yes".to_string(),
            Cell::No(why) => format!("**no** [{}]", note(why)),
            Cell::NotWritten(why) if why.starts_with("Outcrop") => format!("– [{}]", note(why)),
            Cell::NotWritten(_) => "–".to_string(),
        }
    };
    let mut text =
        format!("{HEAD}| feature | {} |\n|---|{}\n", versions.join(" | "), "---|".repeat(versions.len()));
    for (row, feature) in features.iter().enumerate() {
        let shown = if feature.contains('=') { format!("`{feature}`") } else { feature.clone() };
        let cells: Vec<String> = columns
            .iter()
            .map(|column| format!("{} / {}", cell(&column[row].0), cell(&column[row].1)))
            .collect();
        let _ = writeln!(text, "| {shown} | {} |", cells.join(" | "));
    }
    text.push_str("\n## Notes\n\n");
    for (number, note) in notes.iter().enumerate() {
        let _ = writeln!(text, "{}. {note}", number + 1);
    }
    text
}

/// The first line in which the committed document differs from the one just made.
pub fn first_difference(committed: &str, made: &str) -> Option<String> {
    let (mut old, mut new) = (committed.lines(), made.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(format!("- {}\n+ {}", a.unwrap_or_default(), b.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_numbers_each_note_once() {
        let no = || Cell::No("why".to_string());
        let absent = Cell::NotWritten("Outcrop does not write it: x is refused".to_string());
        let columns = vec![vec![(Cell::Yes, no()), (no(), absent)]];
        let text = document(&["1.0".to_string()], &["a=b".to_string(), "c".to_string()], &columns);
        assert!(text.contains("| `a=b` | yes / **no** [1] |\n| c | **no** [1] / – [2] |\n"), "{text}");
        assert!(text.ends_with("1. why\n2. Outcrop does not write it: x is refused\n"));
    }

    #[test]
    fn differences_are_found_at_both_ends() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\n", "a\nb\n").unwrap(), "- \n+ b");
        assert_eq!(first_difference("a\nb\n", "a\n").unwrap(), "- b\n+ ");
    }

    #[test]
    fn messages_lose_their_places() {
        assert_eq!(
            without_places("Corruption: in /tmp/x/000001.sst bad block\nmore"),
            "Corruption: in bad block"
        );
    }

    #[test]
    fn every_feature_on_disk_is_listed_once() {
        let features = features_on_disk();
        let distinct: std::collections::BTreeSet<&String> = features.iter().collect();
        assert_eq!(distinct.len(), features.len());
        assert!(features.iter().any(|feature| feature == "put entity"));
        assert!(!features.iter().any(|feature| feature == "multi get"));
    }

    #[test]
    fn trials_know_the_defaults() {
        let none = std::collections::BTreeSet::new();
        let case = trial(DEFAULTS, ("a", &none), ("b", &none));
        assert!(!case.phases[0].family_options[0].iter().any(|option| option.contains("format_version")));
    }
}

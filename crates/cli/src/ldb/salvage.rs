//! `outcrop ldb salvage`: copies what is whole of a damaged database into a new one, and says which keys are doubtful.

use super::{LdbArguments, to_hex};
use outcrop::{DoubtfulRange, Error, SalvageOptions, SalvageReport, SalvagedFile, StructureFound};
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Columns of the text.
const COLUMNS: usize = 80;

impl LdbArguments {
    /// Makes the new database. The report is on standard output, how far it is on standard error if that is a terminal.
    pub(super) fn salvage(&self) -> Result<(), Error> {
        let missing = || Error::invalid_argument("salvage needs --to=DIR, the directory of the new database");
        let to = self.to.as_deref().ok_or_else(missing)?;
        let (builder, repair) = self.damaged()?;
        let shows = std::io::stderr().is_terminal();
        let shown = AtomicU64::new(u64::MAX);
        let progress = move |done: u64, total: u64| {
            let percent = (done * 100).checked_div(total).unwrap_or(100);
            // Relaxed: one thread counts.
            if shown.swap(percent, Ordering::Relaxed) != percent {
                eprint!("\rsalvage: {percent} % of {} MB of tables", total / 1_000_000);
                let _ = std::io::stderr().flush();
            }
        };
        let options =
            SalvageOptions { repair, progress: if shows { Some(Arc::new(progress)) } else { None } };
        let made = builder.salvage(to, &options);
        if shows {
            eprint!("\r{:50}\r", "");
        }
        let report = made?;
        match self.json {
            true => println!("{}", as_json(self.dir()?, to, &report)),
            false => print!("{}", folded(&report.to_string(), COLUMNS)),
        }
        Ok(())
    }
}

fn as_json(from: &Path, to: &str, report: &SalvageReport) -> Value {
    let made = &report.made;
    let manifest = match &made.structure {
        StructureFound::Missing => json!({"used": "none"}),
        StructureFound::Part(why) => json!({"used": "part", "why": why}),
        StructureFound::Whole => json!({"used": "whole"}),
    };
    let family = |family: &outcrop::RepairedFamily| {
        json!({
            "name": family.name, "tables": family.tables, "entries": family.entries, "bytes": family.bytes,
            "levels_kept": family.levels_kept,
        })
    };
    let wal = |wal: &outcrop::RepairedWal| json!({"number": wal.number, "writes": wal.writes, "taken_over": wal.recovered, "left_out": wal.homeless});
    let file = |file: &SalvagedFile| {
        json!({
            "file": file.path.display().to_string(), "column_family": file.family, "level": file.level,
            "entries_kept": file.entries, "damage": file.damage,
        })
    };
    let range = |range: &DoubtfulRange| {
        json!({
            "column_family": range.family, "file": range.file.display().to_string(), "level": range.level,
            "begin": range.begin.as_deref().map(to_hex), "end": range.end.as_deref().map(to_hex),
            "reason": range.reason,
        })
    };
    json!({
        "from": from.display().to_string(),
        "to": to,
        "whole": report.is_whole(),
        "manifest": manifest,
        "column_families": made.families.iter().map(family).collect::<Vec<_>>(),
        "copied_files": report.copied,
        "copied_bytes": report.copied_bytes,
        "damaged": report.files.iter().map(file).collect::<Vec<_>>(),
        "wals": made.wals.iter().map(wal).collect::<Vec<_>>(),
        "prepared": made.prepared.iter().map(|name| to_hex(name)).collect::<Vec<_>>(),
        "last_sequence": made.last_sequence.0,
        "doubtful": report.doubtful.iter().map(range).collect::<Vec<_>>(),
    })
}

/// Text in lines of so many columns, those that go on indented. A word that is longer stays whole.
fn folded(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut column = 0;
        for word in line.split_whitespace() {
            let len = word.chars().count();
            if column > 0 && column + 1 + len > columns {
                out.push('\n');
                column = 0;
                out.push_str(&" ".repeat(indent + 4));
                column += indent + 4;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            } else {
                out.push_str(&" ".repeat(indent));
                column += indent;
            }
            out.push_str(word);
            column += len;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_between_words() {
        let text = "doubtful: keys of a range\n  of a block\n\nx\n";
        assert_eq!(folded(text, 80), text);
        assert_eq!(folded("a bb ccc dddd", 8), "a bb ccc\n    dddd\n");
        assert_eq!(folded("  word averyverylongword", 10), "  word\n      averyverylongword\n");
    }
}

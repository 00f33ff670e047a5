//! Runs the drawings of `testdata/compaction`: a version, a command with options, the compaction it gives.
//!
//! ```text
//! # comment
//! version                 pick name=value;...        take 7 8
//! L0: 7[a..m] 8[c..z]     ----                       ----
//! ----                    L0 -> L1: inputs ...
//! ```
//! `pick` also understands `marks=expired:7+8,asked:9` and `cursor=1:k`, where the round of L1 goes on. With `REWRITE=1` the answers are written instead of compared.

use super::*;
use crate::compaction::marks::Marks;
use outcrop_base::keys::{internal_key, user_key};
use outcrop_base::{Comparator, SeqNum, ValueType};
use outcrop_manifest::{FileNumber, Version};
use outcrop_options::{ColumnFamilyOptions, DbOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic;

const LEVELS: usize = 7;

fn marks(text: &str) -> Marks {
    let mut marks = Marks::default();
    for group in text.split(',').filter(|group| !group.is_empty()) {
        let (kind, numbers) = group.split_once(':').expect("kind:numbers");
        let numbers: BTreeSet<FileNumber> =
            numbers.split('+').map(|n| FileNumber(n.parse().expect("a table number"))).collect();
        match kind {
            "expired" => marks.expired = numbers,
            "periodic" => marks.periodic = numbers,
            "bottommost" => marks.bottommost = numbers,
            "asked" => marks.asked = numbers,
            other => panic!("unknown mark {other}"),
        }
    }
    marks
}

fn cursors(text: &str) -> BTreeMap<u32, Vec<u8>> {
    let (level, key) = text.split_once(':').expect("level:key");
    let key = internal_key(key.as_bytes(), SeqNum::MAX, ValueType::Value);
    BTreeMap::from([(level.parse().expect("a level"), key)])
}

fn answer(version: &Version, arguments: &str, base: &ColumnFamilyOptions) -> String {
    let (mut options, mut marked) = (base.clone(), Marks::default());
    let mut version = version.clone();
    for pair in arguments.split_whitespace() {
        match pair.split_once('=') {
            Some(("marks", text)) => marked = marks(text),
            Some(("cursor", text)) => version.compact_cursors = cursors(text),
            _ => {
                outcrop_options::file::set_from_string(&mut DbOptions::default(), &mut options, pair).unwrap()
            }
        }
    }
    let version = &version;
    let comparator = Comparator::Bytewise;
    let input = PickInput { cf_id: 0, version, comparator: &comparator, options: &options, marks: &marked };
    let debt = debt(&input);
    let picked = pick(&input);
    let runs = version.files().any(|(_, file)| taken(file));
    assert!(
        debt.due == picked.is_some() || (debt.due && runs),
        "what is due is picked, as long as nothing runs"
    );
    picked.map_or("none".into(), |compaction| {
        let codec =
            if compaction.compression == outcrop_options::CompressionType::None { " (plain)" } else { "" };
        let next = compaction.next_cursor.as_ref();
        let next =
            next.map_or(String::new(), |key| format!(", next {}", String::from_utf8_lossy(user_key(key))));
        format!("{compaction}{codec}{next}")
    })
}

fn run(name: &str, style: CompactionStyle) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/compaction").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let base = ColumnFamilyOptions { compaction_style: style, ..ColumnFamilyOptions::default() };
    let mut version = Version::empty(LEVELS);
    let mut rewritten = String::new();
    for block in text.split("\n\n") {
        let (question, expected) = block.split_once("----").unwrap_or_else(|| panic!("no ---- in {block:?}"));
        let comments: String =
            question.lines().filter(|line| line.starts_with('#')).map(|l| format!("{l}\n")).collect();
        let mut lines = question.lines().filter(|line| !line.starts_with('#'));
        let command = lines.next().expect("a command");
        let body: Vec<&str> = lines.collect();
        let got = match command.split_once(' ').unwrap_or((command, "")) {
            ("version", _) => {
                version = Version::parse(&body.join("\n"), LEVELS);
                String::new()
            }
            ("take", numbers) => {
                for number in numbers.split_whitespace() {
                    let number = FileNumber(number.parse().unwrap());
                    let (_, file) = version.files().find(|(_, file)| file.number == number).unwrap();
                    file.being_compacted.store(true, atomic::Ordering::Relaxed);
                }
                String::new()
            }
            ("pick", arguments) => answer(&version, arguments, &base),
            (other, _) => panic!("unknown command {other}"),
        };
        if std::env::var_os("REWRITE").is_none() {
            assert_eq!(got, expected.trim(), "{name}: {question}");
        }
        let body: String = body.iter().map(|line| format!("{line}\n")).collect();
        rewritten += &format!("{comments}{command}\n{body}----\n{got}\n\n").replace("\n\n\n", "\n\n");
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, rewritten.trim_end().to_string() + "\n").unwrap();
    }
}

#[test]
fn leveled() {
    run("leveled", CompactionStyle::Level);
}

#[test]
fn universal() {
    run("universal", CompactionStyle::Universal);
}

#[test]
fn fifo() {
    run("fifo", CompactionStyle::Fifo);
}

#[test]
fn nothing_is_picked_without_a_style() {
    let version = Version::parse("L0: 9[a..z] 8[a..z] 7[a..z] 6[a..z] 5[a..z]", LEVELS);
    let base =
        ColumnFamilyOptions { compaction_style: CompactionStyle::None, ..ColumnFamilyOptions::default() };
    assert_eq!(answer(&version, "marks=asked:9", &base), "none");
}

#[test]
fn everything_goes_to_the_last_level_or_back_into_it() {
    let options = ColumnFamilyOptions { compaction_style: CompactionStyle::Universal, ..Default::default() };
    let marks = Marks::default();
    let all = |drawing: &str| {
        let version = Version::parse(drawing, LEVELS);
        let comparator = Comparator::Bytewise;
        let input = PickInput {
            cf_id: 0,
            version: &version,
            comparator: &comparator,
            options: &options,
            marks: &marks,
        };
        everything(&input).map_or("none".into(), |compaction| compaction.to_string())
    };
    assert_eq!(all("L0: 9[a..c] 8[a..z]\nL5: 3[b..d]"), "L0 -> L6: inputs 9 8 + 3 [Manual] (bottommost)");
    assert_eq!(all("L6: 3[b..d] 4[e..f]"), "L6 -> L6: inputs 3 4 [Manual] (bottommost)");
    assert_eq!(all(""), "none");
}

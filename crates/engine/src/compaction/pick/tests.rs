//! Runs the drawings of `testdata/compaction`: a version, a command with options, the compaction it gives.
//!
//! ```text
//! # comment
//! version                 pick name=value;...        take 7 8        running 6 b y
//! L0: 7[a..m] 8[c..z]     ----                       ----            ----
//! ----                    L0 -> L1: inputs ...
//! ```
//! `take` says that another job has the tables, `running 6 b y` that one writes the range from b to y to L6.
//! `pick` also understands `marks=expired:7+8,requested:9` and `cursor=1:k`, where the round of L1 goes on. With `REWRITE=1` the answers are written instead of compared.

use super::*;
use crate::compaction::RunningCompaction;
use crate::compaction::marks::Marks;
use crate::testing::cases;
use outcrop_base::keys::{internal_key, user_key};
use outcrop_base::{CfId, Comparator, Error, SeqNum, ValueType};
use outcrop_manifest::{FileNumber, Version};
use outcrop_options::{ColumnFamilyOptions, DbOptions};
use std::collections::{BTreeMap, BTreeSet};

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
            "requested" => marks.requested = numbers,
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

fn answer(
    version: &Version,
    busy: &BTreeSet<FileNumber>,
    arguments: &str,
    base: &ColumnFamilyOptions,
) -> String {
    answer_beside(version, busy, &BTreeMap::new(), &[], arguments, base)
}

/// [`answer`], with damaged tables, and beside running compactions.
fn answer_beside(
    version: &Version,
    busy: &BTreeSet<FileNumber>,
    quarantined: &BTreeMap<FileNumber, Error>,
    running: &[RunningCompaction],
    arguments: &str,
    base: &ColumnFamilyOptions,
) -> String {
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
    let input = PickInput {
        cf_id: CfId(0),
        version,
        comparator: &comparator,
        options: &options,
        marks: &marked,
        busy,
        quarantined,
        running,
    };
    let debt = debt(&input);
    let picked = pick(&input);
    let runs = !busy.is_empty() || !running.is_empty();
    assert!(
        debt.needs_compaction == picked.is_some() || (debt.needs_compaction && runs),
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
    let base = ColumnFamilyOptions { compaction_style: style, ..ColumnFamilyOptions::default() };
    let mut version = Version::empty(LEVELS);
    let (mut busy, mut quarantined, mut running) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    cases::run(&format!("compaction/{name}"), |case| match case.command {
        "version" => {
            version = Version::parse(&case.body.join("\n"), LEVELS);
            busy.clear();
            quarantined.clear();
            running.clear();
            String::new()
        }
        "quarantine" => {
            let number = FileNumber(case.arguments.parse().expect("a table number"));
            busy.insert(number);
            quarantined.insert(number, Error::corruption("damaged"));
            String::new()
        }
        "take" => {
            let numbers = case.arguments.split_whitespace();
            busy.extend(numbers.map(|number| FileNumber(number.parse().expect("a table number"))));
            String::new()
        }
        "running" => {
            let words: Vec<&str> = case.arguments.split_whitespace().collect();
            let [level, begin, end] = words[..] else { panic!("running LEVEL BEGIN END") };
            running.push(RunningCompaction {
                output_level: level.parse().expect("a level"),
                begin: begin.into(),
                end: end.into(),
            });
            String::new()
        }
        "pick" => answer_beside(&version, &busy, &quarantined, &running, case.arguments, &base),
        other => panic!("unknown command {other}"),
    });
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
    assert_eq!(answer(&version, &BTreeSet::new(), "marks=requested:9", &base), "none");
}

#[test]
fn tables_are_merged_in_l0_where_data_behind_has_the_only_other_level() {
    let none = BTreeSet::new();
    for dynamic in [false, true] {
        let base = ColumnFamilyOptions {
            allow_ingest_behind: true,
            level_compaction_dynamic_level_bytes: dynamic,
            // Bytes make nothing due that would not make them less.
            max_bytes_for_level_base: 1,
            ..ColumnFamilyOptions::default()
        };
        let picked = |drawing: &str, arguments: &str| {
            answer(&Version::parse(drawing, 2), &none, arguments, &base).replace(" (plain)", "")
        };
        let three = "L0: 9[a..z],size=1 8[a..z],size=1 7[a..z],size=100\nL1: 3[a..z]";
        let (few, many) = ("level0_file_num_compaction_trigger=2", "level0_file_num_compaction_trigger=4");
        assert_eq!(picked(three, few), "L0 -> L0: inputs 9 8 [L0Files]");
        assert_eq!(picked(three, many), "none");
        assert_eq!(picked(three, "level0_file_num_compaction_trigger=-1"), "none");
        let marked = |kind: &str| format!("{many} marks={kind}:8");
        assert_eq!(picked(three, &marked("requested")), "L0 -> L0: inputs 9 8 7 [Marked]");
        assert_eq!(picked(three, &marked("periodic")), "L0 -> L0: inputs 9 8 7 [Periodic]");
        assert_eq!(picked(three, &marked("expired")), "none");
        // One table is as few as there can be.
        let one = "L0: 8[a..z]";
        assert_eq!(picked(one, "level0_file_num_compaction_trigger=1"), "none");
        assert_eq!(picked(one, &marked("requested")), "none");
        assert_eq!(picked(one, &marked("periodic")), "L0 -> L0: inputs 8 [Periodic] (bottommost)");
    }
}

#[test]
fn everything_goes_to_the_last_level_or_back_into_it() {
    let options = ColumnFamilyOptions { compaction_style: CompactionStyle::Universal, ..Default::default() };
    let marks = Marks::default();
    let all = |drawing: &str| {
        let version = Version::parse(drawing, LEVELS);
        let comparator = Comparator::Bytewise;
        let input = PickInput {
            cf_id: CfId(0),
            version: &version,
            comparator: &comparator,
            options: &options,
            marks: &marks,
            busy: &BTreeSet::new(),
            quarantined: &BTreeMap::new(),
            running: &[],
        };
        universal::everything(&input).map_or("none".into(), |compaction| compaction.to_string())
    };
    assert_eq!(all("L0: 9[a..c] 8[a..z]\nL5: 3[b..d]"), "L0 -> L6: inputs 9 8 + 3 [Manual] (bottommost)");
    assert_eq!(all("L6: 3[b..d] 4[e..f]"), "L6 -> L6: inputs 3 4 [Manual] (bottommost)");
    assert_eq!(all(""), "none");
}

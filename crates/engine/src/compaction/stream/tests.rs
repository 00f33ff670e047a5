//! Runs the drawings of `testdata/stream`: entries, the rules, and the entries that are written.
//!
//! ```text
//! stream snapshots=3,7 bottom deletions below=k..m operator=stringappend filter
//! a@3 put v        a@2 del        a@1 single        a@4 merge x        b..d@5 range
//! ```

use super::*;
use crate::read::source::Source;
use crate::snapshots::LiveSnapshots;
use crate::testing::cases::{self, Case};
use outcrop_base::{RangeTombstone, builtin_merge};
use outcrop_manifest::{FileNumber, Version};
use outcrop_memtable::{MemTable, MemTablePool};

/// The entries and range tombstones of a drawing.
fn drawn(case: &Case<'_>) -> (MemTable, Vec<RangeTombstone>) {
    let memtable = MemTable::new(Comparator::Bytewise, 1 << 16, &Arc::new(MemTablePool::new(0)));
    let mut ranges = Vec::new();
    for line in &case.body {
        let (place, what) = line.split_once(' ').expect("key@seq what");
        let (key, seq) = place.split_once('@').expect("key@seq");
        let seq = SeqNum(seq.parse().expect("a number"));
        let (kind, value) = what.split_once(' ').unwrap_or((what, ""));
        let value_type = match kind {
            "put" => ValueType::Value,
            "del" => ValueType::Deletion,
            "single" => ValueType::SingleDeletion,
            "merge" => ValueType::Merge,
            "range" => {
                let (begin, end) = key.split_once("..").expect("begin..end");
                ranges.push(RangeTombstone { begin: begin.into(), end: end.into(), seq });
                continue;
            }
            other => panic!("unknown entry {other}"),
        };
        memtable.insert(seq, value_type, key.as_bytes(), value.as_bytes());
    }
    (memtable, ranges)
}

/// Takes the elements that begin with `-` from the front of operands, which are lists with commas between; keeps values.
struct Front;

impl CompactionFilter for Front {
    fn name(&self) -> &str {
        "test.Front"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        FilterDecision::Keep
    }

    fn filter_merge_operand(&self, _level: usize, _key: &[u8], operand: &[u8]) -> FilterDecision {
        let list = std::str::from_utf8(operand).expect("it was drawn");
        let left: Vec<&str> = list.split(',').skip_while(|element| element.starts_with('-')).collect();
        match left.join(",") {
            left if left.is_empty() => FilterDecision::Remove,
            left if left == list => FilterDecision::Keep,
            left => FilterDecision::ChangeValue(left.into_bytes()),
        }
    }
}

/// One table below the output from `range`, which is `first..last`.
fn below(range: &str) -> Arc<[Arc<TableFile>]> {
    let version = Version::parse(&format!("L1: 9[{range}]"), 2);
    let file = &version.levels[1].files[0];
    assert_eq!(file.number, FileNumber(9));
    version.levels[1].shared_files()
}

fn answer(case: &Case<'_>) -> String {
    assert_eq!(case.command, "stream");
    let (memtable, ranges) = drawn(case);
    let mut rules =
        DropRules::for_flush(LiveSnapshots::default(), Fragments::new(&ranges, &Comparator::Bytewise));
    let mut operator = None;
    for word in case.arguments.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("snapshots", numbers) => {
                rules.snapshots.sequences =
                    numbers.split(',').map(|n| SeqNum(n.parse().expect("a number"))).collect();
            }
            ("boundary", number) => {
                rules.snapshots.conflict_boundary = Some(SeqNum(number.parse().expect("a number")));
            }
            ("bottom", _) => rules.bottommost = true,
            ("deletions", _) => rules.drop_deletions = true,
            ("below", range) => rules.below.push(below(range)),
            ("from", key) => rules.range.begin = Some(key.into()),
            ("to", key) => rules.range.end = Some(key.into()),
            ("operator", name) => operator = builtin_merge::by_name(name),
            ("filter", _) => rules.filter = Some((Arc::new(Front), 0)),
            (other, _) => panic!("unknown rule {other}"),
        }
    }
    let memtable = Arc::new(memtable);
    let input = MergingIter::new(Comparator::Bytewise, vec![Source::Mem(memtable.iter())]);
    let mut stream = CompactionStream::new(input, Comparator::Bytewise, operator, rules);
    let mut lines = Vec::new();
    loop {
        match stream.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                lines.push(format!("error: {error}"));
                break;
            }
        }
        let (user_key, trailer) = split(stream.key());
        let kind = match trailer.value_type() {
            Some(ValueType::Value) => "put",
            Some(ValueType::Deletion) => "del",
            Some(ValueType::SingleDeletion) => "single",
            Some(ValueType::Merge) => "merge",
            other => panic!("{other:?} is shown"),
        };
        let (key, value) = (String::from_utf8_lossy(user_key), String::from_utf8_lossy(stream.value()));
        lines.push(format!("{key}@{} {kind} {value}", trailer.seq().0).trim_end().to_string());
    }
    for fragment in stream.kept_tombstones() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for seq in fragment.seqs.iter() {
            lines.push(format!("{}..{}@{} range", text(&fragment.begin), text(&fragment.end), seq.0));
        }
    }
    if lines.is_empty() { "nothing".into() } else { lines.join("\n") }
}

#[test]
fn versions_and_snapshots() {
    cases::run("stream/versions", answer);
}

#[test]
fn deletions() {
    cases::run("stream/deletions", answer);
}

#[test]
fn single_deletions() {
    cases::run("stream/single_deletions", answer);
}

#[test]
fn merges() {
    cases::run("stream/merges", answer);
}

#[test]
fn range_tombstones() {
    cases::run("stream/ranges", answer);
}

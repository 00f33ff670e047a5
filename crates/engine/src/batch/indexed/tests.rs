//! Runs `testdata/batch/indexed`, and random operations against a batch without an index.

use super::*;
use crate::batch::overlay::{Bounds, FamilyParts, Overlay, RowSource};
use outcrop_base::CfId;
use std::fmt::Write as _;
use std::path::Path;

/// Puts operands after the base, with commas between.
struct Joins;

impl MergeOperator for Joins {
    fn name(&self) -> &str {
        "joins"
    }

    fn full_merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        Some(parts.join(&b","[..]))
    }

    fn partial_merge(&self, _key: &[u8], _operands: &[&[u8]]) -> Option<Vec<u8>> {
        None
    }
}

/// Sorted rows as a base.
struct Rows {
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
    bounds: Bounds,
}

impl Rows {
    fn go(&mut self, at: Option<usize>) {
        self.at = at.filter(|at| {
            self.rows.get(*at).is_some_and(|(key, _)| {
                self.bounds.lower.as_ref().is_none_or(|lower| key >= lower)
                    && self.bounds.upper.as_ref().is_none_or(|upper| key < upper)
            })
        });
    }
}

impl RowSource for Rows {
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }

    fn key(&self) -> &[u8] {
        &self.rows[self.at.unwrap()].0
    }

    fn value(&self) -> &[u8] {
        &self.rows[self.at.unwrap()].1
    }

    fn seek_to_first(&mut self) {
        let lower = self.bounds.lower.clone().unwrap_or_default();
        self.go(Some(self.rows.partition_point(|(key, _)| *key < lower)));
    }

    fn seek_to_last(&mut self) {
        let count = match &self.bounds.upper {
            Some(upper) => self.rows.partition_point(|(key, _)| key < upper),
            None => self.rows.len(),
        };
        self.go(count.checked_sub(1));
    }

    fn seek(&mut self, target: &[u8]) {
        let target = target.max(self.bounds.lower.as_deref().unwrap_or_default());
        self.go(Some(self.rows.partition_point(|(key, _)| &key[..] < target)));
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        if self.bounds.upper.as_deref().is_some_and(|upper| target >= upper) {
            return self.seek_to_last();
        }
        self.go(self.rows.partition_point(|(key, _)| &key[..] <= target).checked_sub(1));
    }

    fn next(&mut self) {
        self.go(self.at.map(|at| at + 1));
    }

    fn prev(&mut self) {
        self.go(self.at.and_then(|at| at.checked_sub(1)));
    }
}

fn family<'f>(comparator: &'f Comparator) -> Family<'f> {
    Family::new(CfId(0), comparator, Some(&Joins))
}

fn overlay(batch: &IndexedBatch, rows: &[(Vec<u8>, Vec<u8>)], bounds: Bounds) -> Overlay<Rows> {
    let parts =
        FamilyParts { id: CfId(0), comparator: Comparator::Bytewise, operator: Some(Arc::new(Joins)) };
    let base = Rows { rows: rows.to_vec(), at: None, bounds: bounds.clone() };
    batch.overlay(Some(parts), base, bounds)
}

fn shown(iter: &impl RowSource) -> String {
    match (iter.valid(), iter.status()) {
        (true, _) => {
            format!("{}={}", String::from_utf8_lossy(iter.key()), String::from_utf8_lossy(iter.value()))
        }
        (false, Ok(())) => "end".into(),
        (false, Err(error)) => error.to_string(),
    }
}

/// Does one line of the file; gives what it says.
fn line(batch: &IndexedBatch, rows: &[(Vec<u8>, Vec<u8>)], line: &str) -> String {
    let comparator = Comparator::Bytewise;
    let words: Vec<&str> = line.split(' ').collect();
    let done = match words[..] {
        ["put", key, value] => batch.put_cf(family(&comparator), key.as_bytes(), value.as_bytes()),
        ["merge", key, operand] => batch.merge_cf(family(&comparator), key.as_bytes(), operand.as_bytes()),
        ["delete", key] => batch.delete_cf(family(&comparator), key.as_bytes()),
        ["single_delete", key] => batch.single_delete_cf(family(&comparator), key.as_bytes()),
        ["delete_range", begin, end] => {
            batch.delete_range_cf(family(&comparator), begin.as_bytes(), end.as_bytes())
        }
        ["log", blob] => batch.put_log_data(blob.as_bytes()),
        ["save"] => {
            batch.set_save_point();
            Ok(())
        }
        ["rollback"] => batch.rollback_to_save_point(),
        ["pop"] => batch.pop_save_point(),
        ["count"] => return format!("{}\n", batch.count()),
        ["get", key] => {
            return match batch.get_cf(family(&comparator), key.as_bytes()) {
                Ok(value) => {
                    format!("{}\n", value.map_or("none".into(), |v| String::from_utf8_lossy(&v).into_owned()))
                }
                Err(error) => format!("{error}\n"),
            };
        }
        ["walk", ref steps @ ..] => {
            let mut iter = overlay(batch, rows, Bounds::default());
            return steps.iter().fold(String::new(), |mut out, step| {
                match step.split_once(':').unwrap_or((step, "")) {
                    ("first", _) => iter.seek_to_first(),
                    ("last", _) => iter.seek_to_last(),
                    ("seek", key) => iter.seek(key.as_bytes()),
                    ("back", key) => iter.seek_for_prev(key.as_bytes()),
                    ("next", _) => iter.next(),
                    ("prev", _) => iter.prev(),
                    other => panic!("{other:?}"),
                }
                let _ = writeln!(out, "{}", shown(&iter));
                out
            });
        }
        _ => panic!("unknown line {line}"),
    };
    done.map_or_else(|error| format!("{error}\n"), |()| String::new())
}

#[test]
fn the_file_of_examples() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/batch/indexed");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut rewritten = String::new();
    for block in text.trim_end().split("\n\n") {
        let (question, expected) = block.split_once("----\n").unwrap_or((block.trim_end_matches("----"), ""));
        let answers = [false, true].map(|overwrite_key| {
            let options = IndexedBatchOptions { overwrite_key, ..IndexedBatchOptions::default() };
            let batch = IndexedBatch::new(options);
            let mut rows = Vec::new();
            let mut answer = String::new();
            for text in question.lines().filter(|text| !text.starts_with('#')) {
                if let Some(row) = text.strip_prefix("row ") {
                    let (key, value) = row.split_once(' ').unwrap();
                    rows.push((key.as_bytes().to_vec(), value.as_bytes().to_vec()));
                } else {
                    answer += &line(&batch, &rows, text);
                }
            }
            answer
        });
        assert_eq!(answers[0], answers[1], "what is read does not depend on overwrite_key: {question}");
        if std::env::var_os("REWRITE").is_none() {
            assert_eq!(answers[0].trim_end(), expected.trim_end(), "{question}");
        }
        let _ = writeln!(rewritten, "{}----\n{}", question, answers[0]);
    }
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, rewritten.trim_end().to_string() + "\n").unwrap();
    }
}

#[test]
fn without_a_column_family_nothing_is_merged() {
    let batch = IndexedBatch::default();
    batch.put(b"k", b"v").unwrap();
    batch.merge(b"k", b"w").unwrap();
    let error = batch.get(b"k").unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: Must provide a column family");
    let plain = Family::new(CfId(0), &Comparator::Bytewise, None);
    let error = batch.get_cf(plain, b"k").unwrap_err();
    assert_eq!(error.to_string(), "Invalid argument: Merge operator must be set for column family");
}

#[test]
fn a_full_batch_takes_nothing_more() {
    let batch = IndexedBatch::new(IndexedBatchOptions { max_bytes: 20, ..IndexedBatchOptions::default() });
    batch.put(b"a", b"1").unwrap();
    let error = batch.put(b"b", b"22222222").unwrap_err();
    assert_eq!(error.to_string(), "Operation aborted: Memory limit reached");
    assert_eq!((batch.count(), batch.get(b"b").unwrap()), (1, None));
    assert!(batch.put_log_data(b"12345678").is_err());
    assert_eq!(batch.size_bytes(), 17);
}

/// Rows as a batch without an index would leave them.
fn model(rows: &[(Vec<u8>, Vec<u8>)], records: &[(u8, Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut map: BTreeMap<Vec<u8>, Vec<u8>> = rows.iter().cloned().collect();
    for (kind, key, value) in records {
        match kind {
            0..=3 => {
                map.insert(key.clone(), value.clone());
            }
            4 => {
                let merged = Joins.full_merge(key, map.get(key).map(Vec::as_slice), &[value]).unwrap();
                map.insert(key.clone(), merged);
            }
            _ => {
                map.remove(key);
            }
        }
    }
    map.into_iter().collect()
}

#[test]
fn random_batches_read_as_if_they_were_written() {
    let mut state = 7u64;
    let mut draw = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for case in 0..if cfg!(miri) { 5 } else { 400 } {
        let options = IndexedBatchOptions { overwrite_key: case % 2 == 0, ..IndexedBatchOptions::default() };
        let batch = IndexedBatch::new(options);
        let key = |n: u64| format!("k{n:02}").into_bytes();
        let rows: Vec<_> = (0..30).filter(|_| draw(2) == 0).map(|n| (key(n), b"row".to_vec())).collect();
        let (mut records, mut saved) = (Vec::new(), Vec::new());
        let comparator = Comparator::Bytewise;
        for number in 0..draw(120) {
            let (name, value) = (key(draw(30)), number.to_string().into_bytes());
            let kind = draw(9) as u8;
            match kind {
                0..=3 => batch.put_cf(family(&comparator), &name, &value).unwrap(),
                4 => batch.merge_cf(family(&comparator), &name, &value).unwrap(),
                5 => batch.delete_cf(family(&comparator), &name).unwrap(),
                6 => batch.single_delete_cf(family(&comparator), &name).unwrap(),
                7 => {
                    batch.set_save_point();
                    saved.push(records.len());
                }
                _ => {
                    let point = saved.pop();
                    assert_eq!(batch.rollback_to_save_point().is_ok(), point.is_some());
                    records.truncate(point.unwrap_or(records.len()));
                }
            }
            if kind < 7 {
                records.push((kind, name, value));
            }
        }
        assert_eq!(batch.count() as usize, records.len());
        let bounds = Bounds {
            lower: (draw(2) == 0).then(|| key(draw(15))),
            upper: (draw(2) == 0).then(|| key(15 + draw(15))),
        };
        let mut expected = model(&rows, &records);
        expected.retain(|(key, _)| {
            bounds.lower.as_ref().is_none_or(|l| key >= l) && bounds.upper.as_ref().is_none_or(|u| key < u)
        });
        let mut reference = Rows { rows: expected, at: None, bounds: bounds.clone() };
        let mut iter = overlay(&batch, &rows, bounds);
        for _ in 0..60 {
            let target = key(draw(30));
            match draw(8) {
                0 => (iter.seek_to_first(), reference.seek_to_first()),
                1 => (iter.seek_to_last(), reference.seek_to_last()),
                2 => (iter.seek(&target), reference.seek(&target)),
                3 => (iter.seek_for_prev(&target), reference.seek_for_prev(&target)),
                _ if !iter.valid() => continue,
                4 | 5 => (iter.next(), reference.next()),
                _ => (iter.prev(), reference.prev()),
            };
            assert_eq!(shown(&iter), shown(&reference), "case {case}");
        }
    }
}

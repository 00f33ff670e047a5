//! The iterator over memtables and tables, without a database.

use super::*;
use crate::testing::parts::{Parts, plain_options};
use outcrop_base::{CfId, ErrorKind, PrefixExtractor};
use outcrop_options::ColumnFamilyOptions;

fn text(iter: &Cursor) -> String {
    if !iter.valid() {
        return "end".into();
    }
    format!("{}={}", String::from_utf8_lossy(iter.key()), String::from_utf8_lossy(iter.value()))
}

fn forward(iter: &mut Cursor) -> String {
    let mut rows = Vec::new();
    while iter.valid() {
        rows.push(text(iter));
        iter.next();
    }
    iter.status().unwrap();
    rows.join(" ")
}

fn backward(iter: &mut Cursor) -> String {
    let mut rows = Vec::new();
    while iter.valid() {
        rows.push(text(iter));
        iter.prev();
    }
    iter.status().unwrap();
    rows.join(" ")
}

/// Rows in a table, in a sealed memtable and in the active one.
fn three_sources() -> Parts {
    let parts = Parts::new();
    [("a", "1"), ("c", "1"), ("e", "1")].into_iter().for_each(|(key, value)| parts.put(key, value));
    parts.flush();
    [("b", "2"), ("c", "2")].into_iter().for_each(|(key, value)| parts.put(key, value));
    parts.seal(&[CfId::DEFAULT]);
    parts.delete("e");
    parts.put("f", "3");
    parts
}

#[test]
fn rows_of_all_sources_come_in_order_both_ways() {
    let parts = three_sources();
    let mut iter = parts.iter(&ReadOptions::default());
    assert!(!iter.valid(), "not positioned");
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "a=1 b=2 c=2 f=3");
    iter.seek_to_last();
    assert_eq!(backward(&mut iter), "f=3 c=2 b=2 a=1");
}

#[test]
fn a_seek_finds_the_next_key_and_one_for_prev_the_last() {
    let parts = three_sources();
    let mut iter = parts.iter(&ReadOptions::default());
    for (target, after, before) in [
        ("", "a=1", "end"),
        ("b", "b=2", "b=2"),
        ("d", "f=3", "c=2"),
        ("e", "f=3", "c=2"),
        ("g", "end", "f=3"),
    ] {
        iter.seek(target.as_bytes());
        assert_eq!(text(&iter), after, "seek {target}");
        iter.seek_for_prev(target.as_bytes());
        assert_eq!(text(&iter), before, "seek_for_prev {target}");
    }
}

#[test]
fn it_turns_around_at_any_row() {
    let parts = three_sources();
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek(b"b");
    iter.next();
    assert_eq!(text(&iter), "c=2");
    iter.prev();
    assert_eq!(text(&iter), "b=2");
    iter.prev();
    iter.next();
    assert_eq!(text(&iter), "b=2");
    iter.seek_to_last();
    iter.prev();
    iter.next();
    assert_eq!(text(&iter), "f=3");
}

#[test]
fn bounds_end_it_both_ways() {
    let parts = three_sources();
    let options = ReadOptions {
        iterate_lower_bound: Some(b"b".to_vec()),
        iterate_upper_bound: Some(b"f".to_vec()),
        ..ReadOptions::default()
    };
    let mut iter = parts.iter(&options);
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "b=2 c=2");
    iter.seek_to_last();
    assert_eq!(backward(&mut iter), "c=2 b=2");
    iter.seek(b"a");
    assert_eq!(text(&iter), "b=2");
    iter.seek_for_prev(b"z");
    assert_eq!(text(&iter), "c=2");
}

#[test]
fn it_sees_the_moment_it_was_made_at() {
    let parts = three_sources();
    let mut iter = parts.iter(&ReadOptions::default());
    parts.put("a", "later");
    parts.put("aa", "later");
    parts.flush();
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "a=1 b=2 c=2 f=3");
}

#[test]
fn it_sees_what_a_snapshot_sees() {
    let parts = three_sources();
    let snapshot = parts.jobs.snapshots.take(0, || parts.versions.visible_seq());
    parts.delete("a");
    parts.put("b", "later");
    let mut iter = parts.iter(&ReadOptions::at(&snapshot));
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "a=1 b=2 c=2 f=3");
    assert_eq!(parts.rows(), "b=later c=2 f=3");
}

#[test]
fn range_tombstones_hide_what_is_older_in_whatever_source() {
    let parts = three_sources();
    parts.write(|batch| batch.delete_range_id(CfId::DEFAULT, b"a", b"c")).unwrap();
    assert_eq!(parts.rows(), "c=2 f=3");
    parts.put("b", "again");
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek_to_last();
    assert_eq!(backward(&mut iter), "f=3 c=2 b=again");
    parts.flush();
    assert_eq!(parts.rows(), "b=again c=2 f=3");
}

#[test]
fn more_versions_of_a_key_than_are_passed_one_by_one_are_passed_by_a_seek() {
    let parts = Parts::of(ColumnFamilyOptions { max_sequential_skip_in_iterations: 2, ..plain_options() });
    for i in 0..20 {
        parts.put("a", &i.to_string());
        parts.put("b", &i.to_string());
    }
    let early = ReadOptions::at(&parts.jobs.snapshots.take(0, || SeqNum(4)));
    let mut iter = parts.iter(&early);
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "a=1 b=1");
    iter.seek_to_last();
    assert_eq!(backward(&mut iter), "b=1 a=1");
}

#[test]
fn a_prefix_ends_it_if_it_is_to_stay() {
    let options =
        ColumnFamilyOptions { prefix_extractor: Some(PrefixExtractor::Fixed(1)), ..plain_options() };
    let parts = Parts::of(options);
    ["a1", "a2", "b1", "b2"].into_iter().for_each(|key| parts.put(key, "v"));
    parts.flush();
    let stay = ReadOptions { prefix_same_as_start: true, ..ReadOptions::default() };
    let mut iter = parts.iter(&stay);
    iter.seek(b"a");
    assert_eq!(forward(&mut iter), "a1=v a2=v");
    iter.seek_for_prev(b"bz");
    assert_eq!(backward(&mut iter), "b2=v b1=v");
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek(b"a2");
    assert_eq!(forward(&mut iter), "a2=v b1=v b2=v", "it leaves the prefix and takes all in");
}

#[test]
fn operands_are_merged_both_ways_and_need_their_operator() {
    let merge_operator = outcrop_base::builtin_merge::by_name("stringappend");
    assert!(merge_operator.is_some());
    let objects = crate::column_family::ColumnFamilyParts { merge_operator, ..Default::default() };
    let parts = Parts::with(Default::default(), vec![(plain_options(), objects)]);
    parts.put("a", "1");
    parts.flush();
    for operand in ["2", "3"] {
        parts.write(|batch| batch.merge_id(CfId::DEFAULT, b"a", operand.as_bytes())).unwrap();
    }
    parts.write(|batch| batch.merge_id(CfId::DEFAULT, b"b", b"x")).unwrap();
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek_to_first();
    assert_eq!(forward(&mut iter), "a=1,2,3 b=x");
    iter.seek_to_last();
    assert_eq!(backward(&mut iter), "b=x a=1,2,3");
    let without = Parts::new();
    without.write(|batch| batch.merge_id(CfId::DEFAULT, b"a", b"x")).unwrap();
    let mut iter = without.iter(&ReadOptions::default());
    iter.seek_to_first();
    assert!(!iter.valid());
    assert_eq!(iter.status().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_damaged_table_ends_it_with_an_error_that_names_the_file() {
    let parts = Parts::new();
    (0..500).for_each(|i| parts.put(&format!("{i:03}"), &"v".repeat(100)));
    parts.flush();
    let name = parts.files(".sst").remove(0);
    let path = std::path::Path::new(crate::testing::parts::DIR).join(&name);
    parts.fs.memory().flip_byte(&path, 20_000, 1);
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek_to_first();
    while iter.valid() {
        iter.next();
    }
    let error = iter.status().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn an_entity_shows_its_default_column_and_all_of_them() {
    let parts = Parts::new();
    parts
        .write(|batch| batch.put_entity_id(CfId::DEFAULT, b"e", &[(b"", b"default"), (b"x", b"1")]).unwrap())
        .unwrap();
    parts.put("p", "plain");
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek_to_first();
    assert_eq!(text(&iter), "e=default");
    assert_eq!(
        iter.columns().unwrap().iter().collect::<Vec<_>>(),
        [(&b""[..], &b"default"[..]), (b"x", b"1")]
    );
    iter.next();
    assert_eq!(iter.columns().unwrap().iter().collect::<Vec<_>>(), [(&b""[..], &b"plain"[..])]);
}

#[test]
fn an_empty_column_family_has_no_rows() {
    let parts = Parts::new();
    let mut iter = parts.iter(&ReadOptions::default());
    iter.seek_to_first();
    assert!(!iter.valid() && iter.status().is_ok());
    iter.seek_to_last();
    assert!(!iter.valid() && iter.status().is_ok());
}

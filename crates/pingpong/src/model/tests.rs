//! The model is what engines are judged by, so it is judged by hand.

use super::*;
use crate::operation::Value;

fn key(text: &str) -> Key {
    Key(text.into())
}

fn text(value: &str) -> Value {
    Value::Text(key(value))
}

fn write(records: Vec<Record>) -> Operation {
    Operation::Write { records, durability: Durability::Logged, direct: false }
}

fn put(k: &str, v: &str) -> Operation {
    write(vec![Record::Put(0, key(k), text(v))])
}

fn model_of(family: Family) -> Model {
    let mut model = Model::new(&[family], &[0]);
    model.open(&Phase::idle("any", 1));
    model
}

fn rows(model: &Model) -> Vec<String> {
    model.shown_rows(0, u64::MAX).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn every_record_changes_what_it_should() {
    let mut model = model_of(Family { merge: Merge::Append, ..Family::plain("default") });
    model.apply(&write(vec![
        Record::Put(0, key("a"), text("1")),
        Record::Put(0, key("b"), text("2")),
        Record::Put(0, key("c"), text("3")),
        Record::Merge(0, key("a"), text("x")),
        Record::Merge(0, key("new"), text("y")),
        Record::DeleteRange(0, key("b"), key("c")),
        Record::PutEntity(0, key("e"), vec![(key(""), text("default")), (key("n"), text("other"))]),
        Record::PutEntity(0, key("f"), vec![(key("n"), text("other"))]),
        Record::LogData(key("ignored")),
    ]));
    assert_eq!(rows(&model), ["a=1,x", "c=3", "e=default", "f=", "new=y"]);
    model.apply(&write(vec![Record::Delete(0, key("c")), Record::Delete(0, key("nothing"))]));
    assert_eq!(model.absent_keys(0, 10), [key("b"), key("c"), key("nothing")]);
}

#[test]
fn adding_counts_what_is_no_number_as_zero() {
    let mut model = model_of(Family { merge: Merge::Add, ..Family::plain("default") });
    for number in [5, u64::MAX] {
        model.apply(&write(vec![Record::Merge(0, key("n"), Value::Number(number))]));
    }
    assert_eq!(model.get(0, &key("n")).unwrap()[..], 4u64.to_le_bytes());
}

#[test]
fn snapshots_and_iterators_keep_what_they_saw() {
    let mut model = model_of(Family::plain("default"));
    model.apply(&put("a", "old"));
    model.apply(&Operation::TakeSnapshot { slot: 1 });
    model.apply(&Operation::OpenIterator { slot: 0, view: View::default() });
    model.apply(&put("a", "new"));
    model.apply(&put("b", "new"));
    let past = View { snapshot: Some(1), ..View::default() };
    assert_eq!(model.values(&past, &[key("a"), key("b")]), [Some("old".to_string()), None]);
    let moves = [Move::First, Move::Next, Move::Next];
    assert_eq!(model.move_iterator(0, &moves), [Some(("a".into(), "old".into())), None, None]);
    let now = model.walk(&View::default(), &[Move::Last, Move::Prev]);
    assert_eq!(now, [Some(("b".into(), "new".into())), Some(("a".into(), "new".into()))]);
}

#[test]
fn bounds_and_order_limit_a_walk() {
    for reverse in [false, true] {
        let mut model = model_of(Family { reverse, ..Family::plain("default") });
        ["a", "b", "c", "d"].iter().for_each(|k| model.apply(&put(k, "")));
        let (lower, upper) = if reverse { ("c", "a") } else { ("b", "d") };
        let view = View { lower: Some(key(lower)), upper: Some(key(upper)), ..View::default() };
        let moves = [
            Move::First,
            Move::Last,
            Move::Seek(key(if reverse { "z" } else { "" })),
            Move::SeekForPrev(key(upper)),
            Move::Seek(key(upper)),
        ];
        let keys: Vec<_> = model.walk(&view, &moves).into_iter().map(|row| row.map(|(key, _)| key)).collect();
        let at = |key: &str| Some(key.to_string());
        let (first, last) = if reverse { ("c", "b") } else { ("b", "c") };
        assert_eq!(keys, [at(first), at(last), at(first), at(last), None]);
    }
}

#[test]
fn a_prefix_walk_ends_with_the_prefix() {
    let family = Family { prefix: Some("rocksdb.FixedPrefix.3".into()), ..Family::plain("default") };
    let mut model = model_of(family);
    ["abc1", "abc2", "abd1"].iter().for_each(|k| model.apply(&put(k, "")));
    let view = View { same_prefix: true, ..View::default() };
    let found = model.walk(&view, &[Move::Seek(key("abc")), Move::Next, Move::Next, Move::Next]);
    assert_eq!(found.iter().filter(|row| row.is_some()).count(), 2);
    assert_eq!(model.walk(&view, &[Move::Seek(key("abb"))]), [None]);
}

fn found(model: &Model) -> BTreeMap<usize, Vec<Row>> {
    BTreeMap::from([(0, model.shown_rows(0, u64::MAX))])
}

#[test]
fn a_crash_may_lose_only_what_nobody_was_promised() {
    let mut model = model_of(Family::plain("default"));
    model.apply(&put("a", "1"));
    let before = found(&model);
    let mut promised = model.clone();
    promised.apply(&put("a", "2"));
    assert!(promised.clone().recover(&before).unwrap_err().contains("at no point"));
    promised.recover(&found(&promised.clone())).unwrap();

    let mut unanswered = model.clone();
    unanswered.apply_unanswered(&put("a", "2"));
    let after = found(&unanswered);
    unanswered.clone().recover(&after).unwrap();
    unanswered.recover(&before).unwrap();
    assert_eq!(rows(&unanswered), ["a=1"]);
}

#[test]
fn a_wal_flushed_by_hand_may_lose_its_buffer_and_nothing_before() {
    let mut model = model_of(Family::plain("default"));
    model.open(&Phase { options: vec!["manual_wal_flush=true".into()], ..Phase::idle("any", 1) });
    let mut states = vec![found(&model)];
    for step in 0..4 {
        model.apply(&put(&format!("k{step}"), ""));
        if step == 1 {
            model.apply(&Operation::FlushWal { sync: false });
        }
        states.push(found(&model));
    }
    for (count, state) in states.iter().enumerate() {
        assert_eq!(model.clone().recover(state).is_ok(), count >= 2, "{count} of 4 writes");
    }
}

#[test]
fn all_families_go_back_to_one_point_of_the_log() {
    let mut model = Model::new(&[Family::plain("default"), Family::plain("one")], &[0, 1]);
    model.open(&Phase::idle("any", 2));
    let both = |n: &str| write(vec![Record::Put(0, key(n), text("")), Record::Put(1, key(n), text(""))]);
    let rows_of = |model: &Model, family| model.shown_rows(family, u64::MAX);
    let before = rows_of(&model, 0);
    model.apply_unanswered(&both("a"));
    let after = rows_of(&model, 0);
    for (first, second, possible) in
        [(&before, &before, true), (&after, &after, true), (&before, &after, false), (&after, &before, false)]
    {
        let found = BTreeMap::from([(0, first.clone()), (1, second.clone())]);
        assert_eq!(model.clone().recover(&found).is_ok(), possible);
    }
}

#[test]
fn what_is_flushed_together_goes_back_to_one_point_after_the_last_flush() {
    let mut model = Model::new(&[Family::plain("default"), Family::plain("one")], &[0, 1]);
    let options = vec!["atomic_flush=true".into()];
    model.open(&Phase { options, unlogged: true, ..Phase::idle("any", 2) });
    let put = |family, n: u64| Operation::Write {
        records: vec![Record::Put(family, key(&format!("{n}")), text(""))],
        durability: Durability::Unlogged,
        direct: true,
    };
    let mut states = Vec::new();
    for n in 0..6 {
        model.apply(&put((n % 2) as usize, n));
        if n == 2 {
            model.apply(&Operation::Flush { family: 1, wait: true });
        }
        states.push([0, 1].map(|family| model.shown_rows(family, u64::MAX)));
    }
    assert!(!model.has_unlogged() && model.has_unflushed());
    let explained = |first: usize, second: usize| {
        let found = BTreeMap::from([(0, states[first][0].clone()), (1, states[second][1].clone())]);
        model.clone().recover(&found).is_ok()
    };
    for n in 0..6 {
        assert_eq!(explained(n, n), n >= 2, "point {n}");
    }
    assert!(!explained(5, 2) && !explained(2, 5), "one column family is ahead of the other");
}

#[test]
fn differences_are_named() {
    let row = |k: &str, v: &str| (k.to_string(), v.to_string());
    assert_eq!(difference(&[row("a", "1")], &[row("a", "1")]), None);
    let text = difference(&[row("a", "1"), row("b", "2")], &[row("b", "3"), row("c", "4")]).unwrap();
    assert!(text.contains("the first a: 1") && text.contains("the first c: 4"), "{text}");
    assert!(text.contains("b: 2 expected, 3 found"), "{text}");
    assert!(difference(&[row("a", "1")], &[row("a", "1"), row("a", "1")]).unwrap().contains("twice"));
}

//! The versions that there must be, and the judgement of answers.
//!
//! ```text
//! a key's versions      2 | 5    8         low = 6: what reads at 6 or later see is exact; 2 may be gone at any time, 5 is what a read
//!                                ^ now     at 6 sees, but may have forgotten its timestamp (it is 0 then), or be gone if it is a deletion
//! ```
//! Reads below `low` are refused once the engine has told its readers: from the next change of the tables on. When it does that by itself
//! is its own affair, so between `refuses_below`, where it must have, and `low` it may refuse or must answer exactly.
//!
//! A write of the same key and timestamp replaces the one before. Where a compaction makes the older of the two forget its timestamp while
//! the newer lies above its output and has not, the older is shown again at 0, below the newer. RocksDB does so too, wherever the tables of
//! the last level are compacted without those above: reads at `low` and later never see it.

use super::language::{BACKWARDS, Change, Entry, FAMILIES, Move, PLAIN, Request, View, Write};
use crate::mistake::class_of;
use crate::worker::Answer;
use std::collections::BTreeMap;

/// The class of error by which reads of the past, and ways back to it, are refused.
const REFUSED: &str = "Invalid argument";

/// A version's timestamp and its value; none is a deletion.
type Version<'m> = (u64, &'m Option<String>);

/// The state of a database.
#[derive(Clone, Debug)]
pub struct Model {
    plain: BTreeMap<String, String>,
    stamped: Vec<Stamped>,
}

/// A column family with timestamps.
#[derive(Clone, Debug)]
struct Stamped {
    reverse: bool,
    versions: BTreeMap<String, BTreeMap<u64, Option<String>>>,
    /// Values that a write of the same key and timestamp replaced, by key.
    replaced: BTreeMap<String, Vec<(u64, String)>>,
    low: Option<u64>,
    /// A read below it must be refused.
    refuses_below: u64,
    /// It was written to since `low` was raised: the next flush changes its tables, if none has by now.
    written: bool,
}

impl Default for Model {
    fn default() -> Model {
        let stamped = |family| Stamped {
            reverse: family == BACKWARDS,
            versions: BTreeMap::new(),
            replaced: BTreeMap::new(),
            low: None,
            refuses_below: 0,
            written: false,
        };
        Model {
            plain: BTreeMap::new(),
            stamped: (0..FAMILIES.len()).filter(|family| *family != PLAIN).map(stamped).collect(),
        }
    }
}

impl Model {
    fn family(&self, family: usize) -> &Stamped {
        &self.stamped[family - 1]
    }

    /// The timestamp below which history may be gone.
    pub fn low(&self, family: usize) -> u64 {
        self.family(family).low.unwrap_or(0)
    }

    /// Every key that was ever written to a column family with timestamps.
    pub fn keys(&self, family: usize) -> Vec<String> {
        self.family(family).versions.keys().cloned().collect()
    }

    /// Writes are there from now on.
    pub fn write(&mut self, writes: &[Write]) {
        for Write { family, key, at, change } in writes {
            let value = match change {
                Change::Put(value) => Some(value.clone()),
                Change::Delete | Change::SingleDelete => None,
            };
            if *family != PLAIN {
                let family = &mut self.stamped[family - 1];
                let before = family.versions.entry(key.clone()).or_default().insert(*at, value);
                if let Some(before) = before.flatten() {
                    family.replaced.entry(key.clone()).or_default().push((*at, before));
                }
                family.written = true;
            } else if let Some(value) = value {
                self.plain.insert(key.clone(), value);
            } else {
                self.plain.remove(key);
            }
        }
    }

    /// The database was opened: readers know how far the past reaches.
    pub fn opened(&mut self) {
        for family in &mut self.stamped {
            (family.written, family.refuses_below) = (false, family.low.unwrap_or(0));
        }
    }

    /// Versions newer than `newest` were never written, where there are timestamps.
    pub fn trim(&mut self, newest: u64) {
        for family in &mut self.stamped {
            family.versions.values_mut().for_each(|versions| versions.retain(|at, _| *at <= newest));
            family.replaced.values_mut().for_each(|values| values.retain(|(at, _)| *at <= newest));
        }
    }

    /// Judges an answer, and does to the model what the request did to the database.
    ///
    /// # Errors
    /// How the answer is wrong.
    pub fn judge(&mut self, request: &Request, answer: &Answer) -> Result<(), String> {
        match (request, answer) {
            (Request::Raise(family, low), Answer::Error(error)) if *low < self.low(*family) => refusal(error),
            (Request::Raise(family, low), Answer::Done) if *low < self.low(*family) => {
                Err(format!("goes back from {} to {low}", self.low(*family)))
            }
            (_, Answer::Error(error)) => match self.refused_read(request) {
                true => refusal(error),
                false => Err(format!("error: {error}")),
            },
            (Request::Write { writes, .. }, Answer::Done) => {
                self.write(writes);
                Ok(())
            }
            (Request::Raise(family, low) | Request::Compact(family, Some(low)), Answer::Done) => {
                let family = &mut self.stamped[family - 1];
                (family.low, family.written) = (Some(*low), false);
                Ok(())
            }
            (Request::Flush(family), Answer::Done) => {
                let family = family.checked_sub(1).map(|family| &mut self.stamped[family]);
                if let Some(family) = family.filter(|family| family.written) {
                    (family.written, family.refuses_below) = (false, family.low.unwrap_or(0));
                }
                Ok(())
            }
            (Request::Compact(_, None) | Request::CompactLast(_) | Request::Close, Answer::Done) => Ok(()),
            (Request::Low(family), Answer::Low(low)) => same(low, &self.family(*family).low),
            (Request::Plain, Answer::Entries(rows)) => {
                let expected = self.plain.iter().map(|(key, value)| {
                    Some(Entry { key: key.clone(), at: None, value: Some(value.clone()) })
                });
                same(rows, &expected.collect())
            }
            (_, Answer::Entries(entries)) => self.judge_read(request, entries),
            (_, other) => Err(format!("no answer to that: {other:?}")),
        }
    }

    /// The column family and the timestamp that a request reads at.
    fn read(request: &Request) -> Option<(usize, u64)> {
        match request {
            Request::Get { family, at, .. } | Request::Versions { family, at, .. } => Some((*family, *at)),
            Request::Walk(view, _) | Request::Forward(view) | Request::Backward(view) => {
                Some((view.family, view.at))
            }
            _ => None,
        }
    }

    /// True if the request reads where the past may be gone.
    fn refused_read(&self, request: &Request) -> bool {
        Model::read(request).is_some_and(|(family, at)| at < self.low(family))
    }

    fn judge_read(&self, request: &Request, entries: &[Option<Entry>]) -> Result<(), String> {
        let Some((family, at)) = Model::read(request) else { return Err("no answer to that".into()) };
        let family = self.family(family);
        if at < family.refuses_below {
            return Err(format!("reads at {at}, below {}", family.refuses_below));
        }
        match request {
            Request::Get { keys, .. } => family.judge(entries, keys.iter().map(|key| family.newest(key, at))),
            Request::Walk(view, moves) => {
                let mut positions = Positions { rows: family.rows(view), family, place: None };
                let expected: Vec<_> = moves.iter().map(|one| positions.step(one)).collect();
                family.judge(entries, expected.into_iter())
            }
            Request::Forward(view) => family.judge(entries, family.rows(view).into_iter().map(Some)),
            Request::Backward(view) => family.judge(entries, family.rows(view).into_iter().rev().map(Some)),
            Request::Versions { from, .. } => family.judge_versions(entries, at, *from),
            _ => Err("no answer to that".into()),
        }
    }
}

impl Stamped {
    /// The value that a read at `at` sees, with its key and timestamp.
    fn newest<'m>(&'m self, key: &'m str, at: u64) -> Option<(&'m str, Version<'m>)> {
        let (stamp, value) = self.versions.get(key)?.range(..=at).next_back()?;
        value.is_some().then_some((key, (*stamp, value)))
    }

    /// True if `a` comes before `b`.
    fn is_before(&self, a: &str, b: &str) -> bool {
        if self.reverse { a > b } else { a < b }
    }

    /// Keys in their order.
    fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.versions.keys().map(String::as_str).collect();
        if self.reverse {
            keys.reverse();
        }
        keys
    }

    /// The rows that an iterator shows.
    fn rows(&self, view: &View) -> Vec<(&str, Version<'_>)> {
        let keys = self.keys().into_iter().filter(|key| {
            view.lower.as_ref().is_none_or(|lower| !self.is_before(key, lower))
                && view.upper.as_ref().is_none_or(|upper| self.is_before(key, upper))
        });
        keys.filter_map(|key| self.newest(key, view.at)).collect()
    }

    /// True if the entry is this version.
    fn is(&self, entry: &Entry, (key, (stamp, value)): (&str, Version<'_>)) -> bool {
        let forgot = self.low.is_some_and(|low| stamp < low);
        entry.key == key
            && entry.value == *value
            && entry.at.is_none_or(|at| at == stamp || (forgot && at == 0))
    }

    /// True if the entry is a value of the key that was replaced at its own timestamp, and forgot it.
    fn is_replaced(&self, entry: &Entry, key: &str) -> bool {
        let low = self.low.unwrap_or(0);
        let replaced = self.replaced.get(key).into_iter().flatten();
        entry.key == key
            && entry.at == Some(0)
            && replaced.into_iter().any(|(at, value)| *at < low && entry.value.as_ref() == Some(value))
    }

    fn judge<'m>(
        &self,
        entries: &[Option<Entry>],
        expected: impl Iterator<Item = Option<(&'m str, Version<'m>)>>,
    ) -> Result<(), String> {
        let expected: Vec<_> = expected.collect();
        for (place, wanted) in expected.iter().enumerate() {
            let entry = entries.get(place).cloned().flatten();
            let right = match (&entry, wanted) {
                (None, None) => true,
                (Some(entry), Some(wanted)) => self.is(entry, *wanted),
                _ => false,
            };
            if !right {
                return Err(format!("number {place}: {entry:?}; expected {wanted:?}"));
            }
        }
        if entries.len() > expected.len() {
            return Err(format!("{} more: {:?}", entries.len() - expected.len(), entries[expected.len()]));
        }
        Ok(())
    }

    /// All versions: those that may be gone are there or not.
    fn judge_versions(&self, entries: &[Option<Entry>], at: u64, from: u64) -> Result<(), String> {
        let low = self.low.unwrap_or(0);
        let mut entries = entries.iter().flatten().peekable();
        for key in self.keys() {
            for (&stamp, value) in self.versions[key].range(from.min(at)..=at).rev() {
                let version = (key, (stamp, value));
                // The version that a read at `low` sees is there; if it has forgotten its timestamp, only where that is shown.
                let seen = from == 0 && self.newest(key, low) == Some(version);
                if entries.next_if(|entry| self.is(entry, version)).is_none() && (stamp >= low || seen) {
                    return Err(format!("{version:?} is missing; next is {:?}", entries.peek()));
                }
            }
            if from == 0 {
                entries.next_if(|entry| self.is_replaced(entry, key));
            }
        }
        entries.next().map_or(Ok(()), |entry| Err(format!("{entry:?} should not be there")))
    }
}

/// An iterator of the model.
struct Positions<'m> {
    rows: Vec<(&'m str, Version<'m>)>,
    family: &'m Stamped,
    place: Option<usize>,
}

impl<'m> Positions<'m> {
    fn step(&mut self, to: &Move) -> Option<(&'m str, Version<'m>)> {
        let rows = self.rows.len();
        let before = |key: &String| self.rows.partition_point(|(row, _)| self.family.is_before(row, key));
        let through = |key: &String| self.rows.partition_point(|(row, _)| !self.family.is_before(key, row));
        self.place = match to {
            Move::First => Some(0),
            Move::Last => rows.checked_sub(1),
            Move::Seek(key) => Some(before(key)),
            Move::SeekForPrev(key) => through(key).checked_sub(1),
            Move::Next => self.place.map(|place| place + 1),
            Move::Prev => self.place.and_then(|place| place.checked_sub(1)),
        };
        self.place = self.place.filter(|place| *place < rows);
        self.place.map(|place| self.rows[place])
    }
}

fn refusal(error: &str) -> Result<(), String> {
    if class_of(error) == REFUSED { Ok(()) } else { Err(format!("refused by another class: {error}")) }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?}; expected {expected:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamps::language::{How, Lookup};

    fn put(key: &str, at: u64, value: &str) -> Write {
        Write { family: 1, key: key.into(), at, change: Change::Put(value.into()) }
    }

    fn entry(key: &str, at: u64, value: Option<&str>) -> Option<Entry> {
        Some(Entry { key: key.into(), at: Some(at), value: value.map(String::from) })
    }

    /// k at 3, 5 and 8, deleted at 9; m at 4. History may be gone below 6, and readers know it.
    fn model() -> Model {
        let delete = Write { family: 1, key: "k".into(), at: 9, change: Change::Delete };
        let writes = vec![put("k", 3, "a"), put("k", 5, "b"), put("k", 8, "c"), delete, put("m", 4, "d")];
        let mut model = Model::default();
        model.judge(&Request::Write { writes, how: How::Batch }, &Answer::Done).unwrap();
        model.judge(&Request::Raise(1, 6), &Answer::Done).unwrap();
        model.opened();
        model
    }

    fn judged(request: &Request, entries: Vec<Option<Entry>>) -> Result<(), String> {
        model().judge(request, &Answer::Entries(entries))
    }

    #[test]
    fn a_read_sees_the_newest_version_of_its_time() {
        let get = |at| Request::Get { family: 1, keys: vec!["k".into()], at, by: Lookup::GetWithTs };
        judged(&get(6), vec![entry("k", 5, Some("b"))]).unwrap();
        judged(&get(6), vec![entry("k", 0, Some("b"))]).expect("it forgot when");
        judged(&get(8), vec![entry("k", 8, Some("c"))]).unwrap();
        judged(&get(9), vec![None]).unwrap();
        judged(&get(6), vec![entry("k", 3, Some("a"))]).unwrap_err();
        judged(&get(8), vec![entry("k", 0, Some("c"))]).unwrap_err();
        judged(&get(9), vec![entry("k", 8, Some("c"))]).unwrap_err();
        judged(&get(6), vec![None]).unwrap_err();
    }

    #[test]
    fn the_past_is_refused_and_nothing_else_is() {
        let get = |at| Request::Get { family: 1, keys: vec!["k".into()], at, by: Lookup::Get };
        let refused = Answer::Error("Invalid argument: too old".into());
        model().judge(&get(5), &refused).unwrap();
        model().judge(&get(6), &refused).unwrap_err();
        model().judge(&get(5), &Answer::Error("Corruption: too old".into())).unwrap_err();
        model().judge(&get(5), &Answer::Entries(vec![entry("k", 5, Some("b"))])).unwrap_err();
        model().judge(&Request::Raise(1, 5), &refused).unwrap();
        model().judge(&Request::Raise(1, 5), &Answer::Done).unwrap_err();
        model().judge(&Request::Raise(1, 7), &refused).unwrap_err();
        model().judge(&Request::Low(1), &Answer::Low(Some(6))).unwrap();
        model().judge(&Request::Low(1), &Answer::Low(None)).unwrap_err();
    }

    #[test]
    fn a_past_that_readers_may_not_know_of_is_refused_or_exact() {
        let mut model = model();
        model.judge(&Request::Raise(1, 9), &Answer::Done).unwrap();
        let get = Request::Get { family: 1, keys: vec!["k".into()], at: 8, by: Lookup::GetWithTs };
        let exact = Answer::Entries(vec![entry("k", 8, Some("c"))]);
        model.judge(&get, &Answer::Error("Invalid argument: too old".into())).unwrap();
        model.judge(&get, &exact).unwrap();
        model.judge(&get, &Answer::Entries(vec![None])).unwrap_err();
        model.judge(&Request::Flush(1), &Answer::Done).unwrap();
        model.judge(&get, &exact).expect("there was nothing to flush");
        model.write(&[put("m", 12, "e")]);
        model.judge(&Request::Flush(1), &Answer::Done).unwrap();
        model.judge(&get, &exact).unwrap_err();
    }

    #[test]
    fn versions_are_all_there_but_for_the_past() {
        let all = |from| Request::Versions { family: 1, at: 20, from };
        let (deletion, c) = (entry("k", 9, None), entry("k", 8, Some("c")));
        let (b, a, d) = (entry("k", 5, Some("b")), entry("k", 3, Some("a")), entry("m", 4, Some("d")));
        judged(&all(0), vec![deletion.clone(), c.clone(), b.clone(), a.clone(), d.clone()]).unwrap();
        let forgotten = [entry("k", 0, Some("b")), entry("m", 0, Some("d"))];
        judged(&all(0), [vec![deletion.clone(), c.clone()], forgotten.to_vec()].concat()).unwrap();
        judged(&all(4), vec![deletion.clone(), c.clone()]).expect("what is below is not shown any more");
        judged(&all(0), vec![deletion.clone(), c.clone(), a.clone(), d.clone()]).unwrap_err();
        judged(&all(6), vec![deletion.clone()]).unwrap_err();
        judged(&all(6), vec![c.clone()]).unwrap_err();
        judged(&all(6), vec![c.clone(), deletion.clone()]).unwrap_err();
        judged(&all(6), vec![deletion, c, d]).unwrap_err();
    }

    #[test]
    fn a_value_replaced_at_its_timestamp_may_be_back_without_it() {
        let mut model = model();
        model.write(&[put("k", 5, "B"), put("k", 8, "C")]);
        let all = |entries: &[Option<Entry>]| {
            let rest = [entry("k", 9, None), entry("k", 8, Some("C"))];
            let entries = [&rest, entries, &[entry("m", 4, Some("d"))]].concat();
            let all = Request::Versions { family: 1, at: 20, from: 0 };
            model.clone().judge(&all, &Answer::Entries(entries))
        };
        let (newest, older) = (entry("k", 5, Some("B")), entry("k", 0, Some("b")));
        all(std::slice::from_ref(&newest)).unwrap();
        all(&[newest.clone(), older.clone()]).expect("the older has forgotten its timestamp");
        all(std::slice::from_ref(&older)).expect_err("a read at 6 sees the newer");
        all(&[older, newest.clone()]).unwrap_err();
        all(&[newest.clone(), entry("k", 5, Some("b"))]).expect_err("replaced where timestamps are kept");
        all(&[newest, entry("k", 0, Some("c"))]).expect_err("8 is not below 6");
    }

    #[test]
    fn trimmed_versions_were_never_there() {
        let mut model = model();
        model.trim(8);
        let get = |at| Request::Get { family: 1, keys: vec!["k".into()], at, by: Lookup::GetWithTs };
        let found = |entry| Answer::Entries(vec![entry]);
        model.judge(&get(9), &found(entry("k", 8, Some("c")))).unwrap();
        model.judge(&get(9), &found(None)).unwrap_err();
        let all = Request::Versions { family: 1, at: 20, from: 6 };
        model.judge(&all, &found(entry("k", 8, Some("c")))).unwrap();
        model.judge(&all, &Answer::Entries(vec![entry("k", 9, None), entry("k", 8, Some("c"))])).unwrap_err();
    }

    #[test]
    fn iterators_keep_to_bounds_in_either_order() {
        let writes: Vec<Write> = ["a", "b", "c", "d"]
            .iter()
            .flat_map(|key| [1, 2].map(|family| Write { family, ..put(key, 5, key) }))
            .collect();
        let mut model = Model::default();
        model.write(&writes);
        let bounds = |family, lower: &str, upper: &str| View {
            family,
            at: 5,
            lower: Some(lower.into()),
            upper: Some(upper.into()),
        };
        let rows = |keys: &str| -> Answer {
            let entry = |key: char| (key != '-').then(|| key.to_string()).map(|key| (key.clone(), key));
            let entry = |key| entry(key).map(|(key, value)| Entry { key, at: Some(5), value: Some(value) });
            Answer::Entries(keys.chars().map(entry).collect())
        };
        model.judge(&Request::Forward(bounds(1, "b", "d")), &rows("bc")).unwrap();
        model.judge(&Request::Backward(bounds(1, "b", "d")), &rows("cb")).unwrap();
        model.judge(&Request::Forward(bounds(2, "c", "a")), &rows("cb")).unwrap();
        model.judge(&Request::Forward(bounds(2, "c", "a")), &rows("bc")).unwrap_err();
        let moves = [
            Move::Seek("a".into()),
            Move::Next,
            Move::Next,
            Move::SeekForPrev("x".into()),
            Move::Prev,
            Move::Prev,
        ];
        let walk = Request::Walk(bounds(1, "b", "d"), moves.to_vec());
        model.judge(&walk, &rows("bc-cb-")).unwrap();
        model.judge(&walk, &rows("abccb-")).unwrap_err();
    }
}

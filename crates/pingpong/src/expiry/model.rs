//! The rows of a database whose values expire, and what must be left of them.
//!
//! ```text
//! clock    first <= the second that is stored <= last        begun <= the clock of a compaction <= ended
//! fate     gone:  last + ttl < begun        there: first + ttl >= ended        else: either
//! ```
//! The engines' clock is the system's, of which seconds are cut; a row that a compaction may have dropped or not is settled by the next look.
//!
//! A merge makes a value as old as the moment at which something merges: a flush that has the value below or its deletion in the same memtable, else a
//! compaction. Operands that are not merged never expire. Which flush had both is known only if the value below was surely in a table before.

use crate::operation::shown;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The kernel's coarse clock, which `time(2)` reads, is behind by so much at most.
const COARSE: Duration = Duration::from_millis(50);

/// Seconds of the clock between which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Not before it.
    pub begun: i64,
    /// Not after it.
    pub ended: i64,
}

impl Moment {
    /// That of `act`.
    pub fn of<T>(act: impl FnOnce() -> T) -> (T, Moment) {
        let begun = seconds(COARSE);
        let result = act();
        (result, Moment { begun, ended: seconds(Duration::ZERO) })
    }
}

/// The clock, so much ago.
pub fn seconds(ago: Duration) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(ago).as_secs() as i64
}

/// The second before which every engine's clock is by now.
pub fn surely_past() -> i64 {
    seconds(COARSE)
}

/// How a row is stored until the next compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A value that was written, or merged, in its moment.
    Value,
    /// Operands, for the compaction to merge.
    Operands,
    /// Operands, or a value that a flush merged since its moment began.
    Either,
}

/// A value and when it was written.
#[derive(Clone, Debug)]
struct Row {
    value: String,
    written: Moment,
    form: Form,
    /// It is in tables, all of it.
    flushed: bool,
    /// A compaction may have dropped it.
    unsure: bool,
}

/// Fates of rows in compactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Surely expired.
    pub gone: u64,
    /// Surely not.
    pub there: u64,
    /// Expired or not, by the clock.
    pub either: u64,
    /// Those that the compaction merged, and that are as old as it, whatever they were.
    pub merged: u64,
}

impl Fates {
    /// Adds others.
    pub fn add(&mut self, other: Fates) {
        self.gone += other.gone;
        self.there += other.there;
        self.either += other.either;
        self.merged += other.merged;
    }
}

/// One column family.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: BTreeMap<String, Row>,
    /// Keys that are not there, and were; whether that is known from tables.
    gone: BTreeMap<String, bool>,
}

impl Rows {
    /// Writes a row.
    pub fn put(&mut self, key: &str, value: &str, written: Moment) {
        self.gone.remove(key);
        let row = Row { value: value.to_string(), written, form: Form::Value, flushed: false, unsure: false };
        self.rows.insert(key.to_string(), row);
    }

    /// True if it is not known whether a row is there.
    pub fn is_unsure(&self, key: &str) -> bool {
        self.rows.get(key).is_some_and(|row| row.unsure)
    }

    /// Appends an operand to a row of which it is known whether it is there.
    pub fn merge(&mut self, key: &str, operand: &str, written: Moment) {
        let gone_in_table = self.gone.remove(key);
        let (value, form) = match self.rows.get(key) {
            Some(row) if row.flushed || row.form == Form::Operands => {
                (format!("{},{operand}", row.value), Form::Operands)
            }
            Some(row) => (format!("{},{operand}", row.value), Form::Either),
            None if gone_in_table == Some(false) => (operand.to_string(), Form::Either),
            None => (operand.to_string(), Form::Operands),
        };
        self.rows.insert(key.to_string(), Row { value, written, form, flushed: false, unsure: false });
    }

    /// A flush ended in this second: everything is in tables.
    pub fn flushed(&mut self, ended: i64) {
        for row in self.rows.values_mut() {
            row.flushed = true;
            if row.form == Form::Either {
                row.written.ended = row.written.ended.max(ended);
            }
        }
        self.gone.values_mut().for_each(|in_table| *in_table = true);
    }

    /// Deletes one.
    pub fn delete(&mut self, key: &str) {
        self.rows.remove(key);
        self.gone.insert(key.to_string(), false);
    }

    /// Every key that is or was there.
    pub fn keys(&self) -> Vec<String> {
        self.rows.keys().chain(self.gone.keys()).cloned().collect()
    }

    /// The last second in which one of them may have been written.
    pub fn newest(&self) -> i64 {
        self.rows.values().map(|row| row.written.ended).max().unwrap_or(0)
    }

    /// A compaction met all rows.
    pub fn compacted(&mut self, ttl: i32, when: Moment) -> Fates {
        let mut fates = Fates::default();
        let ttl = i64::from(ttl);
        let mut dropped = Vec::new();
        // It begins with a flush.
        self.flushed(when.ended);
        for (key, row) in &mut self.rows {
            let form = std::mem::replace(&mut row.form, Form::Value);
            match form {
                Form::Value => {}
                Form::Operands => {
                    fates.merged += 1;
                    row.written = when;
                }
                // It may be merged only now.
                Form::Either => row.written.ended = when.ended,
            }
            if ttl <= 0 || row.written.begun + ttl >= when.ended {
                fates.there += 1;
            } else if row.written.ended + ttl < when.begun {
                fates.gone += 1;
                dropped.push(key.clone());
            } else {
                fates.either += 1;
                row.unsure = true;
            }
        }
        dropped.into_iter().for_each(|key| self.dropped(key));
        fates
    }

    /// A compaction dropped the row: of that no memtable tells.
    fn dropped(&mut self, key: String) {
        self.rows.remove(&key);
        self.gone.insert(key, true);
    }

    /// Compares what is there, as answers show it, and settles what was unsure.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&mut self, found: &[(String, String)]) -> Result<(), String> {
        let found: BTreeMap<&str, &str> =
            found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut settled = Vec::new();
        for (key, row) in &mut self.rows {
            match found.get(key.as_str()) {
                Some(value) if *value == shown(row.value.as_bytes()) => row.unsure = false,
                None if row.unsure => settled.push(key.clone()),
                other => return Err(format!("{key}: {other:?}; expected {row:?}")),
            }
        }
        settled.into_iter().for_each(|key| self.dropped(key));
        match found.keys().find(|key| !self.rows.contains_key(**key)) {
            Some(key) => Err(format!("{key} is there: it was deleted, never written, or expired")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begun: i64, ended: i64) -> Moment {
        Moment { begun, ended }
    }

    fn rows(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect()
    }

    /// `old` was written in second 10, `slow` between 10 and 12.
    fn model() -> Rows {
        let mut model = Rows::default();
        model.put("old", "1", at(10, 10));
        model.put("slow", "2", at(10, 12));
        model
    }

    #[test]
    fn what_has_expired_is_gone_after_a_compaction_and_not_before() {
        let mut model = model();
        model.compare(&rows(&[("old", "1"), ("slow", "2")])).unwrap();
        model.clone().compare(&rows(&[("slow", "2")])).unwrap_err();
        assert_eq!(model.compacted(2, at(12, 12)), Fates { there: 2, ..Fates::default() });
        assert_eq!(model.compacted(0, at(90, 90)), Fates { there: 2, ..Fates::default() });
        assert_eq!(model.compacted(2, at(13, 13)), Fates { gone: 1, either: 1, ..Fates::default() });
        model.clone().compare(&rows(&[("old", "1"), ("slow", "2")])).unwrap_err();
        model.clone().compare(&rows(&[("slow", "3")])).unwrap_err();
        model.clone().compare(&rows(&[])).unwrap();
        model.compare(&rows(&[("slow", "2")])).unwrap();
        model.compare(&rows(&[])).expect_err("it was seen after the compaction");
        assert_eq!(model.keys(), ["slow", "old"]);
    }

    #[test]
    fn a_merge_over_a_table_is_as_old_as_the_compaction() {
        let mut model = model();
        model.flushed(12);
        model.merge("old", "3", at(14, 14));
        model.merge("new", "4", at(14, 14));
        model.delete("slow");
        model.compare(&rows(&[("old", "1,3"), ("new", "4")])).unwrap();
        assert_eq!(model.compacted(2, at(90, 90)), Fates { there: 2, merged: 2, ..Fates::default() });
        model.clone().compare(&rows(&[("old", "1,3"), ("new", "4")])).unwrap();
        model.clone().compare(&rows(&[("new", "4")])).expect_err("operands do not expire");
        assert_eq!(model.compacted(2, at(93, 93)), Fates { gone: 2, ..Fates::default() });
        // Of a key that a compaction dropped the operand is alone.
        model.merge("old", "5", at(94, 94));
        assert_eq!(model.compacted(2, at(99, 99)), Fates { there: 1, merged: 1, ..Fates::default() });
        model.compare(&rows(&[("old", "5")])).unwrap();
    }

    #[test]
    fn a_merge_over_what_is_in_memory_may_be_as_old_as_any_flush_since() {
        let mut model = model();
        model.merge("old", "3", at(14, 14));
        model.delete("slow");
        model.merge("slow", "4", at(14, 14));
        model.flushed(20);
        assert_eq!(model.newest(), 20);
        assert_eq!(model.compacted(2, at(90, 90)), Fates { either: 2, ..Fates::default() });
        assert!(model.is_unsure("old"));
        model.clone().compare(&rows(&[])).unwrap();
        model.compare(&rows(&[("old", "1,3"), ("slow", "4")])).unwrap();
        assert_eq!(model.compacted(2, at(92, 92)), Fates { either: 2, ..Fates::default() });
        assert_eq!(model.compacted(2, at(93, 93)), Fates { gone: 2, ..Fates::default() });
    }

    #[test]
    fn long_values_are_compared_as_they_are_shown() {
        let mut model = Rows::default();
        let value = "v".repeat(50);
        model.put("long", &value, at(10, 10));
        model.compare(&rows(&[("long", &shown(value.as_bytes()))])).unwrap();
        model.compare(&rows(&[("long", &shown("v".repeat(51).as_bytes()))])).unwrap_err();
    }

    #[test]
    fn a_slow_compaction_leaves_it_open() {
        let mut model = model();
        assert_eq!(model.compacted(2, at(12, 13)), Fates { either: 2, ..Fates::default() });
        model.compare(&rows(&[("old", "1")])).unwrap();
        model.compare(&rows(&[("old", "1"), ("slow", "2")])).unwrap_err();
        model.put("slow", "4", at(20, 20));
        model.compare(&rows(&[("old", "1"), ("slow", "4")])).unwrap();
    }
}

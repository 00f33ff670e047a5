//! The rows of a database whose values expire, and what must be left of them.
//!
//! ```text
//! clock    first <= the second that is stored <= last        begun <= the clock of a compaction <= ended
//! fate     gone:  last + ttl < begun        there: first + ttl >= ended        else: either
//! ```
//! The engines' clock is the system's, of which seconds are cut; a row that a compaction may have dropped or not is settled by the next look.

use std::collections::{BTreeMap, BTreeSet};
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

/// A value and when it was written.
#[derive(Clone, Debug)]
struct Row {
    value: String,
    written: Moment,
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
}

/// One column family.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: BTreeMap<String, Row>,
    /// Keys that are not there, and were.
    gone: BTreeSet<String>,
}

impl Rows {
    /// Writes a row.
    pub fn put(&mut self, key: &str, value: &str, written: Moment) {
        self.gone.remove(key);
        self.rows.insert(key.to_string(), Row { value: value.to_string(), written, unsure: false });
    }

    /// Deletes one.
    pub fn delete(&mut self, key: &str) {
        self.rows.remove(key);
        self.gone.insert(key.to_string());
    }

    /// Every key that is or was there.
    pub fn keys(&self) -> Vec<String> {
        self.rows.keys().chain(&self.gone).cloned().collect()
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
        for (key, row) in &mut self.rows {
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
        dropped.iter().for_each(|key| self.delete(key));
        fates
    }

    /// Compares what is there, and settles what was unsure.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(&mut self, found: &[(String, String)]) -> Result<(), String> {
        let found: BTreeMap<&str, &str> =
            found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut settled = Vec::new();
        for (key, row) in &mut self.rows {
            match found.get(key.as_str()) {
                Some(value) if *value == row.value => row.unsure = false,
                None if row.unsure => settled.push(key.clone()),
                other => return Err(format!("{key}: {other:?}; expected {row:?}")),
            }
        }
        settled.iter().for_each(|key| self.delete(key));
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
        assert_eq!(model.compacted(2, at(13, 13)), Fates { gone: 1, either: 1, there: 0 });
        model.clone().compare(&rows(&[("old", "1"), ("slow", "2")])).unwrap_err();
        model.clone().compare(&rows(&[("slow", "3")])).unwrap_err();
        model.clone().compare(&rows(&[])).unwrap();
        model.compare(&rows(&[("slow", "2")])).unwrap();
        model.compare(&rows(&[])).expect_err("it was seen after the compaction");
        assert_eq!(model.keys(), ["slow", "old"]);
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

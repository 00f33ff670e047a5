//! Column families that come and go: each thread has one, or none, and writes a row of it along with its other writes.
//!
//! So what the judge says of a thread's own keys says which rows such a family has. It has to be there once it was created, and to be
//! gone once it was dropped, whatever the end.
//!
//! Pure: `application.rs` makes and drops them.

use crate::opened::FamilyRows;
use std::collections::BTreeMap;

/// Whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being created.
    Creating,
    /// It is.
    There,
    /// It is being dropped.
    Dropping,
}

/// A column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub state: State,
    base: FamilyRows,
    /// The writes of its thread that have a row of it.
    writes: Vec<u64>,
}

impl Family {
    /// One that is being created.
    pub fn new(name: String) -> Family {
        Family { name, state: State::Creating, base: FamilyRows::new(), writes: Vec::new() }
    }

    /// The next write of its thread writes a row of it, too.
    pub fn write(&mut self, index: u64) {
        self.writes.push(index);
    }

    /// Its rows after the first `there` writes of its thread in this cycle.
    pub fn rows(&self, cycle: u64, there: u64) -> FamilyRows {
        let mut rows = self.base.clone();
        rows.extend(self.writes.iter().filter(|index| **index < there).map(|index| row(cycle, *index)));
        rows
    }
}

/// The row of a write.
pub fn row(cycle: u64, index: u64) -> (Vec<u8>, Vec<u8>) {
    (format!("f-{}", index % 7).into_bytes(), format!("c{cycle}i{index}").into_bytes())
}

/// Those of all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coming {
    by_thread: BTreeMap<usize, Family>,
}

impl Coming {
    /// That of a thread.
    pub fn of(&self, thread: usize) -> Option<&Family> {
        self.by_thread.get(&thread)
    }

    /// That of a thread.
    pub fn of_mut(&mut self, thread: usize) -> Option<&mut Family> {
        self.by_thread.get_mut(&thread)
    }

    /// A thread creates one.
    pub fn create(&mut self, thread: usize, name: String) {
        self.by_thread.insert(thread, Family::new(name));
    }

    /// That of a thread is dropped.
    pub fn dropped(&mut self, thread: usize) {
        self.by_thread.remove(&thread);
    }

    /// Those that were there at both times, and still have their names.
    pub fn stable(&self, later: &Coming) -> Coming {
        let is_stable = |(thread, family): &(&usize, &Family)| {
            let before = self.by_thread.get(*thread);
            family.state == State::There
                && before.is_some_and(|before| before.state == State::There && before.name == family.name)
        };
        Coming { by_thread: later.by_thread.iter().filter(is_stable).map(|(t, f)| (*t, f.clone())).collect() }
    }

    /// Whether `found` has each with the rows of the first `there` writes of its thread.
    ///
    /// # Errors
    /// How it has not.
    pub fn judge(
        &self,
        cycle: u64,
        found: &BTreeMap<String, FamilyRows>,
        there: &[u64],
    ) -> Result<(), String> {
        for (thread, family) in &self.by_thread {
            let name = &family.name;
            let Some(found) = found.get(name) else {
                match family.state {
                    State::There => return Err(format!("column family {name} is not there")),
                    State::Creating | State::Dropping => continue,
                }
            };
            let there = there.get(*thread).copied().unwrap_or(0);
            let expected = family.rows(cycle, there);
            if *found != expected {
                return Err(format!(
                    "column family {name}, after {there} writes, has {found:?}, and should have {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether `found` has no other, after an end; those that are there are what the next cycle begins with.
    ///
    /// # Errors
    /// One that is there and should not be.
    pub fn begin(&mut self, mut found: BTreeMap<String, FamilyRows>) -> Result<(), String> {
        let families = std::mem::take(&mut self.by_thread);
        self.by_thread = families
            .into_iter()
            .filter_map(|(thread, family)| {
                let base = found.remove(&family.name)?;
                Some((thread, Family { base, state: State::There, writes: Vec::new(), ..family }))
            })
            .collect();
        match found.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("column family {name} is there, which was dropped or never created")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_there_with_the_rows_of_its_writes() {
        let mut coming = Coming::default();
        coming.create(1, "x".to_string());
        let none = BTreeMap::new();
        assert_eq!(coming.judge(2, &none, &[0, 0]), Ok(()), "it may come");
        let family = coming.of_mut(1).unwrap();
        family.state = State::There;
        family.write(3);
        family.write(10);
        assert!(coming.judge(2, &none, &[0, 0]).unwrap_err().contains("not there"));
        let found = |rows: &[u64]| -> BTreeMap<String, FamilyRows> {
            [("x".to_string(), rows.iter().map(|index| row(2, *index)).collect())].into()
        };
        assert_eq!(coming.judge(2, &found(&[]), &[0, 3]), Ok(()));
        assert_eq!(coming.judge(2, &found(&[3]), &[0, 4]), Ok(()));
        assert_eq!(coming.judge(2, &found(&[10]), &[0, 11]), Ok(()), "the same key");
        assert!(coming.judge(2, &found(&[3]), &[0, 11]).is_err());
        assert!(coming.judge(2, &found(&[3]), &[0, 3]).is_err());
        let mut next = coming.clone();
        assert_eq!(next.begin(found(&[3])), Ok(()));
        assert_eq!(next.of(1).unwrap().rows(3, 50), found(&[3])["x"]);
        coming.dropped(1);
        assert!(coming.begin(found(&[3])).unwrap_err().contains("was dropped"));
    }
}

//! Keys that all threads write, in transactions that read them first: what their values may be.
//!
//! ```text
//! a transaction reads version 7 of a key and writes version 8; so the versions of a key are one row, each written by one transaction
//! committed:   no other that is committed wrote version 8, and version 7 was the newest when its commit began
//! a snapshot, or what an end leaves: of the writes of threads that are there (`history::judge`), the newest version of each key
//! ```
//! A transaction that writes such keys has the next write of its thread in it too. So what the judge says of the thread's own keys says
//! which transactions are there, and these keys have to agree, to the byte.
//!
//! Pure: `transacting.rs` asks and tells.

use outcrop_pingpong::history::{FAMILIES, Place, Rows};
use std::collections::BTreeMap;

/// The number of such keys.
pub const KEYS: usize = 4;

/// One try to make a write of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Try {
    /// The thread.
    pub thread: usize,
    /// The number of its write.
    pub index: u64,
    /// The number of the try.
    pub attempt: u32,
}

impl Try {
    /// Whether both are tries of one write.
    pub fn is_same_write(&self, other: &Try) -> bool {
        (self.thread, self.index) == (other.thread, other.index)
    }
}

/// A version of a key, which a transaction is about to write.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Update {
    of: Try,
    key: usize,
    version: u64,
    value: Vec<u8>,
    done: bool,
}

/// A key that a transaction has read, and the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The key's number.
    pub key: usize,
    /// Its version; 0: it was not there.
    pub version: u64,
}

/// All versions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    cycle: u64,
    /// As they were when the cycle began.
    base: BTreeMap<usize, Vec<u8>>,
    updates: Vec<Update>,
    /// All tries of writes that may be in force.
    tries: Vec<Try>,
}

/// The place of a key.
pub fn place(key: usize) -> Place {
    (key % FAMILIES.len(), format!("s-{key}").into_bytes())
}

/// Takes these keys out of all rows.
pub fn split(rows: &mut Rows) -> BTreeMap<usize, Vec<u8>> {
    (0..KEYS).filter_map(|key| Some((key, rows.remove(&place(key))?))).collect()
}

/// The version that a value has; none if it is no such value.
fn version_of(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.strip_prefix('v')?.split_once('c')?.0.parse().ok()
}

fn told(value: Option<&[u8]>) -> String {
    value.map_or("nothing".to_string(), |value| {
        String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned()
    })
}

impl Registers {
    /// A cycle begins with these values.
    pub fn begin(&mut self, cycle: u64, base: BTreeMap<usize, Vec<u8>>) {
        *self = Registers { cycle, base, ..Registers::default() };
    }

    /// The value that a try writes as this version.
    pub fn value(&self, of: Try, version: u64) -> Vec<u8> {
        format!("v{version}c{}t{}i{}a{}", self.cycle, of.thread, of.index, of.attempt).into_bytes()
    }

    /// The newest version of a key that is known to be committed.
    pub fn newest(&self, key: usize) -> u64 {
        let done = self.updates.iter().filter(|update| update.key == key && update.done);
        let base = self.base.get(&key).and_then(|value| version_of(value));
        done.map(|update| update.version).max().into_iter().chain(base).max().unwrap_or(0)
    }

    /// A transaction has read a key, of which `newest` was committed before it did. Gives the version.
    ///
    /// # Errors
    /// It was not written, or is older than that.
    pub fn read(&self, key: usize, value: Option<&[u8]>, newest: u64) -> Result<u64, String> {
        let written = |value: &[u8]| {
            self.base.get(&key).is_some_and(|base| base == value)
                || self.updates.iter().any(|update| update.key == key && update.value == value)
        };
        let version = match value {
            None => 0,
            Some(value) if written(value) => version_of(value).unwrap_or(0),
            Some(value) => {
                return Err(format!("shared key {key} is {}, which nobody wrote", told(Some(value))));
            }
        };
        if version < newest {
            return Err(format!(
                "shared key {key} is {}, and version {newest} was committed before",
                told(value)
            ));
        }
        Ok(version)
    }

    /// A transaction is about to be prepared or committed, which writes these.
    pub fn begin_commit(&mut self, of: Try, writes: &[Seen]) {
        self.tries.push(of);
        for Seen { key, version } in writes {
            let value = self.value(of, *version);
            self.updates.push(Update { of, key: *key, version: *version, value, done: false });
        }
    }

    /// It is committed; it had read these when they were the newest of `newest`.
    ///
    /// # Errors
    /// Another wrote the same version, or what it read was old when its commit began.
    pub fn committed(&mut self, of: Try, read: &[Seen], newest: &[u64]) -> Result<(), String> {
        for (Seen { key, version }, newest) in read.iter().zip(newest) {
            if newest > version {
                return Err(format!(
                    "{of:?} is committed, which read version {version} of shared key {key}, after version {newest} was"
                ));
            }
        }
        let own: Vec<(usize, u64)> = self.of(of).map(|update| (update.key, update.version)).collect();
        for (key, version) in own {
            let same = |update: &&Update| update.done && update.key == key && update.version == version;
            if let Some(other) = self.updates.iter().find(same) {
                return Err(format!(
                    "{of:?} and {:?} both wrote version {version} of shared key {key}",
                    other.of
                ));
            }
        }
        self.updates.iter_mut().filter(|update| update.of == of).for_each(|update| update.done = true);
        Ok(())
    }

    /// A try that came to nothing, for sure.
    pub fn gone(&mut self, of: Try) {
        self.updates.retain(|update| update.of != of);
        self.tries.retain(|other| *other != of);
    }

    /// A transaction that an end left prepared is committed now.
    pub fn decided(&mut self, of: Try) {
        // Other tries of the same write came to nothing.
        self.updates.retain(|update| update.of == of || !update.of.is_same_write(&of));
        self.updates.iter_mut().filter(|update| update.of == of).for_each(|update| update.done = true);
    }

    fn of(&self, of: Try) -> impl Iterator<Item = &Update> {
        self.updates.iter().filter(move |update| update.of == of)
    }

    /// Whether `found` is what there is after the first `there` writes of each thread.
    ///
    /// # Errors
    /// How it is not.
    pub fn judge(&self, found: &BTreeMap<usize, Vec<u8>>, there: &[u64]) -> Result<(), String> {
        let is_there =
            |update: &&Update| there.get(update.of.thread).is_some_and(|there| update.of.index < *there);
        for key in 0..KEYS {
            let there: Vec<&Update> =
                self.updates.iter().filter(|update| update.key == key).filter(is_there).collect();
            let value = found.get(&key).map(Vec::as_slice);
            let base = self.base.get(&key).map(Vec::as_slice);
            // A write that was tried again may be there by the try that failed.
            let sole = |update: &Update| {
                self.tries.iter().all(|other| *other == update.of || !other.is_same_write(&update.of))
            };
            let certain =
                there.iter().filter(|update| update.done || sole(update)).map(|update| update.version).max();
            let newest = certain.into_iter().chain(base.and_then(version_of)).max().unwrap_or(0);
            let known = there.iter().any(|update| Some(&update.value[..]) == value) || value == base;
            if !known || value.and_then(version_of).unwrap_or(0) < newest {
                return Err(format!(
                    "shared key {key} is {}, and version {newest} is there by the writes that are",
                    told(value)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Try = Try { thread: 0, index: 0, attempt: 0 };
    const SECOND: Try = Try { thread: 1, index: 0, attempt: 0 };

    fn wrote(key: usize, version: u64) -> Seen {
        Seen { key, version }
    }

    #[test]
    fn a_lost_update_is_seen() {
        let mut registers = Registers::default();
        registers.begin_commit(FIRST, &[wrote(2, 1)]);
        registers.begin_commit(SECOND, &[wrote(2, 1)]);
        assert_eq!(registers.committed(FIRST, &[wrote(2, 0)], &[0]), Ok(()));
        assert!(registers.committed(SECOND, &[wrote(2, 0)], &[0]).unwrap_err().contains("both wrote"));
        assert!(registers.committed(SECOND, &[wrote(3, 0)], &[1]).unwrap_err().contains("after version 1"));
    }

    #[test]
    fn a_read_is_of_a_version_that_is_committed_and_not_old() {
        let mut registers = Registers::default();
        registers.begin(1, [(2, b"v3c0t0i0a0".to_vec())].into());
        assert_eq!(registers.newest(2), 3);
        assert_eq!(registers.read(2, Some(b"v3c0t0i0a0"), 3), Ok(3));
        assert!(registers.read(2, Some(b"v3c0t0i0a1"), 3).unwrap_err().contains("nobody wrote"));
        assert!(registers.read(2, None, 3).unwrap_err().contains("before"));
        registers.begin_commit(FIRST, &[wrote(2, 4)]);
        assert_eq!(registers.read(2, Some(&registers.value(FIRST, 4)), 3), Ok(4), "it is about to be told");
        registers.gone(FIRST);
        assert!(registers.read(2, Some(&registers.value(FIRST, 4)), 3).is_err());
    }

    #[test]
    fn what_is_left_agrees_with_the_writes_that_are() {
        let mut registers = Registers::default();
        let later = Try { index: 1, ..FIRST };
        registers.begin_commit(FIRST, &[wrote(0, 1), wrote(1, 1)]);
        registers.committed(FIRST, &[], &[]).unwrap();
        registers.begin_commit(SECOND, &[wrote(1, 2)]);
        registers.committed(SECOND, &[], &[]).unwrap();
        registers.begin_commit(later, &[wrote(0, 2)]);
        let found = |of: &[(usize, Try, u64)]| -> BTreeMap<usize, Vec<u8>> {
            of.iter().map(|(key, of, version)| (*key, registers.value(*of, *version))).collect()
        };
        assert_eq!(registers.judge(&found(&[]), &[0, 0]), Ok(()));
        let all = found(&[(0, later, 2), (1, SECOND, 2)]);
        assert_eq!(registers.judge(&all, &[2, 1]), Ok(()));
        assert!(registers.judge(&all, &[1, 1]).is_err(), "the last is not there");
        let half = found(&[(0, FIRST, 1), (1, SECOND, 2)]);
        assert_eq!(registers.judge(&half, &[1, 1]), Ok(()));
        assert!(registers.judge(&half, &[2, 1]).is_err(), "half of the last is there");
        assert!(registers.judge(&half, &[1, 0]).is_err(), "the second is not there");
        registers.begin_commit(Try { attempt: 1, ..later }, &[]);
        assert_eq!(registers.judge(&half, &[2, 1]), Ok(()), "it may have been made by the second try");
    }
}

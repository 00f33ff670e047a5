//! The writes of the stress, and the rows there are at each moment of a writer.
//!
//! ```text
//! write n of a writer:  head = n in every column family; and some of its rows put, deleted, deleted as a range
//! a moment:             the head says n, so that all rows of the writer have to be those after its first n writes
//! ```
//! Writers have keys of their own. So every read of several parts that finds one head can be judged exactly, however many threads write
//! beside it: one number stands in all column families, as each write is one batch, and the heads of all writers are a clock with
//! one hand for each. This is pure; who reads and writes is `worker.rs`.

use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;

/// Column families that writes go to.
pub const FAMILIES: [&str; 3] = ["default", "one", "two"];
/// Rows of a writer in each of them, beside its head.
const ROWS: u64 = 8;

/// The rows of a writer in one column family.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// One change of a write, in a column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A row.
    Put(u64),
    /// A row is deleted.
    Delete(u64),
    /// Rows from the first, before the second.
    DeleteRange(u64, u64),
}

/// The writes of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Where they are drawn from.
    pub seed: u64,
    /// Bytes of the longest values.
    pub longest: u64,
}

impl Shape {
    /// The changes of a write: numbers of column families, and what is done there.
    pub fn draw(&self, writer: usize, number: u64) -> Vec<(usize, Change)> {
        let mut random = Random::new(self.seed ^ (writer as u64) << 48 ^ number << 8);
        let count = 1 + random.index(4);
        (0..count)
            .map(|_| {
                let family = random.index(FAMILIES.len());
                let row = random.below(ROWS);
                let change = match random.below(9) {
                    0 | 1 => Change::Delete(row),
                    2 => Change::DeleteRange(row, row + 1 + random.below(3)),
                    _ => Change::Put(row),
                };
                (family, change)
            })
            .collect()
    }

    /// The value that a write puts into a row.
    pub fn value(&self, writer: usize, number: u64, family: usize, row: u64) -> Vec<u8> {
        let mut random = Random::new(self.seed ^ number << 16 ^ row << 4 ^ family as u64);
        let len = random.pick(&[8, 60, self.longest / 8, self.longest]) as usize;
        let mut value = format!("w{writer}n{number}f{family}r{row}-").into_bytes();
        value.resize(value.len() + len, b'a' + (number % 26) as u8);
        value
    }

    /// The rows of a writer in a column family after its first `count` writes.
    pub fn rows(&self, writer: usize, family: usize, count: u64) -> Rows {
        let mut rows = Rows::new();
        let mut open: Vec<u64> = (0..ROWS).collect();
        for number in (0..count).rev() {
            // The last change of a row is the one that counts.
            for (of, change) in self.draw(writer, number).into_iter().rev().filter(|(of, _)| *of == family) {
                match change {
                    Change::Put(row) if open.contains(&row) => {
                        rows.insert(key(writer, row), self.value(writer, number, of, row));
                        open.retain(|other| *other != row);
                    }
                    Change::Put(_) => {}
                    Change::Delete(row) => open.retain(|other| *other != row),
                    Change::DeleteRange(from, to) => open.retain(|row| *row < from || *row >= to),
                }
            }
            if open.is_empty() {
                break;
            }
        }
        if count > 0 {
            rows.insert(head_key(writer), head(writer, count - 1));
        }
        rows
    }

    /// Whether `found`, all rows of a writer in column families, are of one moment; gives its number of writes.
    ///
    /// # Errors
    /// What contradicts itself.
    pub fn judge(&self, writer: usize, found: &[(usize, Rows)]) -> Result<u64, String> {
        let mut counts =
            found.iter().map(|(_, rows)| rows.get(&head_key(writer)).map_or(Some(0), |head| count(head)));
        let first = counts.next().flatten().ok_or("a head that nobody wrote")?;
        if let Some(other) = counts.find(|count| *count != Some(first)) {
            return Err(format!("two moments of writer {writer}: {first} and {other:?} writes"));
        }
        for (family, rows) in found {
            let expected = self.rows(writer, *family, first);
            let places = expected.keys().chain(rows.keys());
            if let Some(key) = places.into_iter().find(|key| expected.get(*key) != rows.get(*key)) {
                let start = |rows: &Rows| {
                    rows.get(key)
                        .map(|value| String::from_utf8_lossy(&value[..value.len().min(24)]).into_owned())
                };
                return Err(format!(
                    "after {first} writes {}/{} is {:?}, and should be {:?}",
                    FAMILIES[*family],
                    String::from_utf8_lossy(key),
                    start(rows),
                    start(&expected)
                ));
            }
        }
        Ok(first)
    }
}

/// The key of a row.
pub fn key(writer: usize, row: u64) -> Vec<u8> {
    format!("w{writer:02}-{row:02}").into_bytes()
}

/// The key of the head, after all rows of a writer.
pub fn head_key(writer: usize) -> Vec<u8> {
    format!("w{writer:02}-head").into_bytes()
}

/// The keys of a writer.
pub fn keys(writer: usize) -> Vec<Vec<u8>> {
    (0..ROWS).map(|row| key(writer, row)).chain([head_key(writer)]).collect()
}

/// The range of a writer's keys.
pub fn range(writer: usize) -> (Vec<u8>, Vec<u8>) {
    (format!("w{writer:02}-").into_bytes(), format!("w{writer:02}.").into_bytes())
}

/// The head that a write puts.
pub fn head(writer: usize, number: u64) -> Vec<u8> {
    format!("HEAD{writer:02}:{number:012}").into_bytes()
}

/// The writes that a head says there are.
fn count(head: &[u8]) -> Option<u64> {
    std::str::from_utf8(head.get(7..)?).ok()?.parse().ok().map(|number: u64| number + 1)
}

/// The heads in the bytes of a batch: writer and number of each.
pub fn heads_of(batch: &[u8]) -> Vec<(usize, u64)> {
    let mut heads = Vec::new();
    let mut rest = batch;
    while let Some(place) = rest.windows(4).position(|bytes| bytes == b"HEAD") {
        let text = rest.get(place + 4..place + 19).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let parsed = text.and_then(|text| {
            let (writer, number) = text.split_once(':')?;
            Some((writer.parse().ok()?, number.parse().ok()?))
        });
        heads.extend(parsed);
        rest = &rest[place + 4..];
    }
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { seed: 5, longest: 100 };

    /// Looking back from the end gives what going forward gives.
    #[test]
    fn rows_are_those_after_the_writes() {
        let mut rows = vec![Rows::new(); FAMILIES.len()];
        for number in 0..200 {
            for (family, change) in SHAPE.draw(1, number) {
                let rows = &mut rows[family];
                match change {
                    Change::Put(row) => drop(rows.insert(key(1, row), SHAPE.value(1, number, family, row))),
                    Change::Delete(row) => drop(rows.remove(&key(1, row))),
                    Change::DeleteRange(from, to) => {
                        rows.retain(|at, _| *at == head_key(1) || *at < key(1, from) || *at >= key(1, to));
                    }
                }
            }
            for (family, rows) in rows.iter_mut().enumerate() {
                rows.insert(head_key(1), head(1, number));
                assert_eq!(*rows, SHAPE.rows(1, family, number + 1), "{family} after {number}");
            }
        }
    }

    #[test]
    fn one_moment_is_accepted_and_two_are_not() {
        let at = |counts: [u64; 3]| -> Vec<(usize, Rows)> {
            counts
                .into_iter()
                .enumerate()
                .map(|(family, count)| (family, SHAPE.rows(0, family, count)))
                .collect()
        };
        assert_eq!(SHAPE.judge(0, &at([40, 40, 40])), Ok(40));
        assert_eq!(SHAPE.judge(0, &at([0, 0, 0])), Ok(0));
        assert!(SHAPE.judge(0, &at([40, 41, 40])).unwrap_err().contains("two moments"));
        let mut without = at([40, 40, 40]);
        let first = without[0].1.keys().next().cloned().unwrap();
        without[0].1.remove(&first);
        assert!(SHAPE.judge(0, &without).unwrap_err().contains("should be"));
    }

    #[test]
    fn heads_are_found_in_batches() {
        let batch = [b"\x01key".to_vec(), head(3, 17), b"..".to_vec(), head(12, 4)].concat();
        assert_eq!(heads_of(&batch), [(3, 17), (12, 4)]);
    }
}

//! Whether rows are those of some writes, each there as a whole or not at all.
//!
//! A value names its write, so that a row that is there says: this write is in, and none is in that changes the row later. A key that is
//! not there says less: the last write that is in and touches it deletes it, or none touches it. The writes that the first
//! kind leaves open are taken as out, and one of them is tried where a key of the second kind needs its deletion.
//! Merge operands make a value depend on all writes before: of histories that have them it says no.

use super::{Change, Place, Rows, Shape, apply};
use std::collections::BTreeMap;
use std::ops::Range;

/// Choices after which the search gives up: then it says no. Histories that were met need none, or a few.
const CHOICES: u32 = 100_000;

/// The writes that touch a key, oldest first: each with the value that it leaves, none if it deletes.
type Touches = Vec<(usize, Option<Vec<u8>>)>;

/// True if `found` is what is there after the writes of `thread` before `open` and some of those in `open`, all in their order.
pub fn some_writes(shape: &Shape, thread: usize, base: &Rows, found: &Rows, open: Range<u64>) -> bool {
    if shape.merge_one_in > 0 {
        return false;
    }
    let mut before = base.clone();
    (0..open.start).for_each(|index| apply(&mut before, &shape.draw(thread, index)));
    let touched = touches(shape, thread, &[&before, found], open.clone());
    let mut search =
        Search { is_in: vec![None; (open.end - open.start) as usize], gone: Vec::new(), choices: CHOICES };
    for (place, touches) in &touched {
        let there = found.get(place);
        let settled = match there {
            None => {
                let deletes = touches.iter().map(|(index, value)| (*index, value.is_none())).collect();
                search.gone.push(Gone { was_there: before.contains_key(place), deletes });
                true
            }
            Some(value) if before.get(place) == Some(value) => {
                touches.iter().all(|(index, _)| search.put(*index, false))
            }
            Some(value) => {
                let made = touches.iter().position(|(_, left)| left.as_ref() == Some(value));
                made.is_some_and(|made| {
                    search.put(touches[made].0, true)
                        && touches[made + 1..].iter().all(|(index, _)| search.put(*index, false))
                })
            }
        };
        if !settled {
            return false;
        }
    }
    search.settle()
}

/// The keys that are there or that a write in `open` touches, with these writes, counted from the first of them.
fn touches(shape: &Shape, thread: usize, rows: &[&Rows], open: Range<u64>) -> BTreeMap<Place, Touches> {
    let writes: Vec<_> = open.map(|index| shape.draw(thread, index)).collect();
    let mut touched: BTreeMap<Place, Touches> =
        rows.iter().flat_map(|rows| rows.keys()).map(|place| (place.clone(), Vec::new())).collect();
    for change in writes.iter().flat_map(|write| &write.changes) {
        if let Change::Put(family, key, _) | Change::Delete(family, key) = change {
            touched.entry((*family, key.clone())).or_default();
        }
    }
    for (index, write) in writes.iter().enumerate() {
        for change in &write.changes {
            match change {
                Change::Put(family, key, value) => {
                    leave(touched.get_mut(&(*family, key.clone())), index, Some(value));
                }
                Change::Delete(family, key) => leave(touched.get_mut(&(*family, key.clone())), index, None),
                Change::DeleteRange(family, begin, end) if begin < end => touched
                    .range_mut((*family, begin.clone())..(*family, end.clone()))
                    .for_each(|(_, touches)| leave(Some(touches), index, None)),
                Change::DeleteRange(..) | Change::Merge(..) => {}
            }
        }
    }
    touched
}

/// Notes what a write leaves of a key: its last change of it counts.
fn leave(touches: Option<&mut Touches>, index: usize, value: Option<&Vec<u8>>) {
    let touches = touches.expect("all keys are in the map");
    touches.retain(|(other, _)| *other != index);
    touches.push((index, value.cloned()));
}

/// A key that is not there.
struct Gone {
    was_there: bool,
    /// Each write that touches it, and whether it deletes it.
    deletes: Vec<(usize, bool)>,
}

struct Search {
    /// Of each write, if it is known.
    is_in: Vec<Option<bool>>,
    gone: Vec<Gone>,
    choices: u32,
}

impl Search {
    /// Puts a write in or out; false if it is the other already.
    fn put(&mut self, index: usize, is_in: bool) -> bool {
        *self.is_in[index].get_or_insert(is_in) == is_in
    }

    /// Whether writes that are still open can be chosen so that every key that is not there is deleted.
    fn settle(&mut self) -> bool {
        let there = self.gone.iter().find_map(|gone| {
            let last = gone.deletes.iter().rposition(|(index, _)| self.is_in[*index] == Some(true));
            let is_there = last.map_or(gone.was_there, |last| !gone.deletes[last].1);
            is_there.then(|| gone.deletes[last.map_or(0, |last| last + 1)..].to_vec())
        });
        let Some(later) = there else { return true };
        for (index, deletes) in later {
            if !deletes || self.is_in[index].is_some() {
                continue;
            }
            if self.choices == 0 {
                return false;
            }
            self.choices -= 1;
            self.is_in[index] = Some(true);
            if self.settle() {
                return true;
            }
            self.is_in[index] = None;
        }
        false
    }
}

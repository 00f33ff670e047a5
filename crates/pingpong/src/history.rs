//! Histories of several threads, each of which writes keys of its own, and what a crash may leave of them.
//!
//! ```text
//! draw(thread, index) -> a write: puts and deletions in some column families, one atomic batch; its values name its index
//! thread 0:  begun done | begun done | begun          each with its place in one order of all threads' events
//! thread 1:        begun  done  | begun done
//! judge: the rows of a thread are those after its first n writes, whole; n reaches what had to last; and no write is there
//!        that began after one was done that is not (no gap)
//! ```
//! Both sides draw the same write from the same numbers, so that only events go from the writer to the judge. This is pure: who
//! writes, by threads or processes, and how it crashes, is elsewhere (`kills/`, and the simulator).

use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;

/// The column families that histories write to.
pub const FAMILIES: [&str; 3] = ["default", "one", "two"];

/// The number of a column family, and a key in it.
pub type Place = (usize, Vec<u8>);

/// All rows.
pub type Rows = BTreeMap<Place, Vec<u8>>;

/// One change of a write. The number is that of the column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key and its value.
    Put(usize, Vec<u8>, Vec<u8>),
    /// A key.
    Delete(usize, Vec<u8>),
    /// From a key, before a key.
    DeleteRange(usize, Vec<u8>, Vec<u8>),
}

/// A batch, which is there as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// In their order.
    pub changes: Vec<Change>,
    /// It is durable once it is acknowledged, with all before it.
    pub sync: bool,
}

/// The kind of writes that are drawn.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    /// Names the crash that ends this history, so that its values are told from older ones.
    pub cycle: u64,
    /// Where writes are drawn from.
    pub seed: u64,
    /// One write in so many is synced; 0: none.
    pub sync_one_in: u64,
    /// Keys of each thread in each column family.
    pub keys: u64,
    /// The longest filler of a value, in bytes.
    pub longest: u64,
}

impl Shape {
    /// The write of a thread with this number.
    pub fn draw(&self, thread: usize, index: u64) -> Write {
        let mut random = Random::new(self.seed ^ (thread as u64) << 48 ^ index << 8 ^ self.cycle);
        let mut changes = Vec::new();
        if random.one_in(4) {
            let family = random.index(FAMILIES.len());
            let first = random.below(self.keys);
            let end = key(thread, first + 1 + random.below(4));
            changes.push(match random.one_in(3) {
                true => Change::DeleteRange(family, key(thread, first), end),
                false => Change::Delete(family, key(thread, first)),
            });
        }
        // The last change is a put, so that rows say which write was the last.
        for _ in 0..random.pick(&[1, 1, 1, 2, 5]) {
            let len = random.pick(&[8, 100, self.longest / 4, self.longest]) as usize;
            let mut value = format!("c{}i{index}-", self.cycle).into_bytes();
            value.resize(value.len() + len, b'a' + (index % 26) as u8);
            changes.push(Change::Put(
                random.index(FAMILIES.len()),
                key(thread, random.below(self.keys)),
                value,
            ));
        }
        Write { changes, sync: self.sync_one_in > 0 && random.one_in(self.sync_one_in) }
    }
}

/// The begin of all keys of a thread.
pub fn prefix_of(thread: usize) -> Vec<u8> {
    format!("t{thread:02}-").into_bytes()
}

/// A key behind all keys of a thread.
pub fn prefix_end(thread: usize) -> Vec<u8> {
    format!("t{thread:02}.").into_bytes()
}

/// A key of a thread.
pub fn key(thread: usize, number: u64) -> Vec<u8> {
    format!("t{thread:02}-{number:04}").into_bytes()
}

/// The thread of a key; none if no thread has such keys.
fn thread_of(key: &[u8]) -> Option<usize> {
    std::str::from_utf8(key).ok()?.strip_prefix('t')?.split_once('-')?.0.parse().ok()
}

/// The write that a value is of, if it is of this cycle.
fn index_of(value: &[u8], cycle: u64) -> Option<u64> {
    let end = value.iter().position(|byte| *byte == b'-')?;
    let (of, index) = std::str::from_utf8(&value[..end]).ok()?.strip_prefix('c')?.split_once('i')?;
    (of.parse() == Ok(cycle)).then(|| index.parse().ok())?
}

/// Makes the changes of a write.
pub fn apply(rows: &mut Rows, write: &Write) {
    for change in &write.changes {
        match change {
            Change::Put(family, key, value) => drop(rows.insert((*family, key.clone()), value.clone())),
            Change::Delete(family, key) => drop(rows.remove(&(*family, key.clone()))),
            Change::DeleteRange(family, begin, end) => {
                rows.retain(|(of, key), _| of != family || key < begin || key >= end);
            }
        }
    }
}

/// The writes of one thread: when each began and, if it was acknowledged, when that was, in the order of all threads' events.
#[derive(Clone, Debug, Default)]
pub struct ThreadLog {
    begun: Vec<u64>,
    done: Vec<u64>,
}

/// Whether a write began or was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is about to be made.
    Begun,
    /// It was acknowledged.
    Done,
}

/// The events of all threads.
#[derive(Clone, Debug, Default)]
pub struct Log {
    threads: Vec<ThreadLog>,
    events: u64,
}

impl Log {
    /// Of so many threads, which have done nothing.
    pub fn new(threads: usize) -> Log {
        Log { threads: vec![ThreadLog::default(); threads], events: 0 }
    }

    /// Takes in the next event: of a thread's next write, or of the one it is at.
    pub fn add(&mut self, thread: usize, event: Event) {
        self.events += 1;
        let log = &mut self.threads[thread];
        match event {
            Event::Begun => log.begun.push(self.events),
            Event::Done => log.done.push(self.events),
        }
    }

    /// The log for a look at the database that began at `earlier` and ended now: it has to show all that was acknowledged then, and
    /// may show all that has begun.
    pub fn acknowledged_by(mut self, earlier: &Log) -> Log {
        for (log, earlier) in self.threads.iter_mut().zip(&earlier.threads) {
            log.done.truncate(earlier.done.len());
        }
        self
    }

    /// Writes that were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.threads.iter().map(|log| log.done.len() as u64).sum()
    }
}

/// The writes that last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// All that were acknowledged.
    Acknowledged,
    /// Those that were synced, with all that were acknowledged before one began.
    Synced,
}

/// Looks whether `found` is what a crash may leave of `log`, whose writes were made on top of `base`; gives the number of
/// each thread's writes that are there.
///
/// # Errors
/// What is missing, or there and should not be.
pub fn judge(
    shape: &Shape,
    log: &Log,
    base: &Rows,
    found: &Rows,
    lasting: Lasting,
) -> Result<Vec<u64>, String> {
    let mut by_thread: Vec<(Rows, Rows)> = vec![Default::default(); log.threads.len().max(threads_of(base))];
    for (place, value) in base {
        let thread = thread_of(&place.1).expect("rows of before were judged");
        by_thread[thread].0.insert(place.clone(), value.clone());
    }
    for (place, value) in found {
        let thread = thread_of(&place.1).filter(|thread| *thread < by_thread.len());
        let thread = thread.ok_or_else(|| format!("a key that nobody wrote: {}", told(place)))?;
        by_thread[thread].1.insert(place.clone(), value.clone());
    }
    let nothing = ThreadLog::default();
    let mut there = Vec::new();
    for (thread, (base, found)) in by_thread.into_iter().enumerate() {
        let log = log.threads.get(thread).unwrap_or(&nothing);
        there.push(judge_thread(shape, thread, log, base, &found, lasting)?);
    }
    for (thread, count) in there.iter().enumerate().filter(|(_, count)| **count > 0) {
        let began = log.threads[thread].begun[*count as usize - 1];
        for (other, log) in log.threads.iter().enumerate() {
            let before = log.done.partition_point(|done| *done < began) as u64;
            if there[other] < before {
                return Err(format!(
                    "a gap: write {} of thread {thread} is there, which began when {before} writes of thread {other} \
                     were acknowledged, of which {} are there",
                    count - 1,
                    there[other]
                ));
            }
        }
    }
    Ok(there)
}

/// The weaker question: whether every row is one that had to last, or one of a later write that began. A crash that leaves a gap
/// passes here, and one that loses a synced write does not.
///
/// # Errors
/// The row that is neither.
pub fn keeps_synced(shape: &Shape, log: &Log, base: &Rows, found: &Rows) -> Result<(), String> {
    let mut lasting = base.clone();
    let least: Vec<u64> = (0..)
        .zip(&log.threads)
        .map(|(thread, log)| least_synced(shape, thread, log.done.len() as u64))
        .collect();
    for (thread, least) in least.iter().enumerate() {
        (0..*least).for_each(|index| apply(&mut lasting, &shape.draw(thread, index)));
    }
    let mut possible: BTreeMap<Place, Vec<Option<Vec<u8>>>> =
        lasting.into_iter().map(|(place, value)| (place, vec![Some(value)])).collect();
    for (thread, least) in least.iter().enumerate() {
        for index in *least..log.threads[thread].begun.len() as u64 {
            for change in shape.draw(thread, index).changes {
                match change {
                    Change::Put(family, key, value) => {
                        possible.entry((family, key)).or_insert_with(|| vec![None]).push(Some(value));
                    }
                    Change::Delete(family, key) => {
                        possible.entry((family, key)).or_insert_with(|| vec![None]).push(None);
                    }
                    Change::DeleteRange(family, begin, end) => possible
                        .range_mut((family, begin)..(family, end))
                        .for_each(|(_, values)| values.push(None)),
                }
            }
        }
    }
    let foreign = found.keys().find(|place| !possible.contains_key(*place));
    let other = possible
        .iter()
        .find(|(place, values)| !values.iter().any(|value| value.as_ref() == found.get(*place)))
        .map(|(place, _)| place);
    match foreign.or(other) {
        None => Ok(()),
        Some(place) => Err(format!("{} is neither what had to last nor of a later write", told(place))),
    }
}

/// Writes of a thread that had to last when so many were acknowledged: up to the last that was synced.
fn least_synced(shape: &Shape, thread: usize, done: u64) -> u64 {
    (0..done).rev().find(|index| shape.draw(thread, *index).sync).map_or(0, |index| index + 1)
}

/// Threads that have rows.
fn threads_of(rows: &Rows) -> usize {
    rows.keys().filter_map(|(_, key)| thread_of(key)).max().map_or(0, |most| most + 1)
}

fn judge_thread(
    shape: &Shape,
    thread: usize,
    log: &ThreadLog,
    base: Rows,
    found: &Rows,
    lasting: Lasting,
) -> Result<u64, String> {
    let newest = found.values().filter_map(|value| index_of(value, shape.cycle)).max();
    let count = newest.map_or(0, |newest| newest + 1);
    if count > log.begun.len() as u64 {
        return Err(format!("thread {thread}: write {} is there, which never began", count - 1));
    }
    let done = log.done.len() as u64;
    let least = match lasting {
        Lasting::Acknowledged => done,
        Lasting::Synced => least_synced(shape, thread, done),
    };
    if count < least {
        return Err(format!("thread {thread}: {count} writes are there, and {least} had to last"));
    }
    let mut expected = base;
    (0..count).for_each(|index| apply(&mut expected, &shape.draw(thread, index)));
    if expected == *found {
        return Ok(count);
    }
    let places = expected.keys().chain(found.keys());
    let place =
        places.into_iter().find(|place| expected.get(*place) != found.get(*place)).expect("they differ");
    let start = |value: Option<&Vec<u8>>| {
        value.map(|value| String::from_utf8_lossy(&value[..value.len().min(24)]).into_owned())
    };
    Err(format!(
        "thread {thread}: after {count} writes {} is {:?} of {:?} bytes, and should be {:?} of {:?}",
        told(place),
        start(found.get(place)),
        found.get(place).map(Vec::len),
        start(expected.get(place)),
        expected.get(place).map(Vec::len)
    ))
}

fn told((family, key): &(usize, Vec<u8>)) -> String {
    format!("{}/{}", FAMILIES[*family], String::from_utf8_lossy(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { cycle: 3, seed: 9, sync_one_in: 4, keys: 6, longest: 40 }
    }

    fn rows(counts: &[u64]) -> Rows {
        let mut rows = Rows::new();
        for (thread, count) in counts.iter().enumerate() {
            (0..*count).for_each(|index| apply(&mut rows, &shape().draw(thread, index)));
        }
        rows
    }

    /// Two threads whose writes alternate, the last of the second unacknowledged.
    fn log(each: usize) -> Log {
        let mut log = Log::new(2);
        for round in 0..each {
            for thread in 0..2 {
                log.add(thread, Event::Begun);
                if round + 1 < each || thread == 0 {
                    log.add(thread, Event::Done);
                }
            }
        }
        log
    }

    #[test]
    fn a_prefix_is_accepted_and_nothing_else() {
        let judged = |found: &Rows, lasting| judge(&shape(), &log(20), &Rows::new(), found, lasting);
        assert_eq!(judged(&rows(&[20, 20]), Lasting::Acknowledged), Ok(vec![20, 20]));
        assert_eq!(judged(&rows(&[20, 19]), Lasting::Acknowledged), Ok(vec![20, 19]));
        let refused = |found: &Rows| judged(found, Lasting::Acknowledged).unwrap_err();
        assert!(refused(&rows(&[19, 19])).contains("had to last"));
        assert!(refused(&rows(&[20, 18])).contains("had to last"));
        assert!(refused(&rows(&[21, 20])).contains("never began"));
        let mut foreign = rows(&[20, 20]);
        foreign.insert((0, b"x".to_vec()), Vec::new());
        assert!(refused(&foreign).contains("nobody wrote"));
        for (place, value) in rows(&[20, 20]) {
            let mut without = rows(&[20, 20]);
            without.remove(&place);
            assert!(judged(&without, Lasting::Acknowledged).is_err(), "{}", told(&place));
            let mut other = rows(&[20, 20]);
            other.insert(place, [&value[..], b"!"].concat());
            assert!(judged(&other, Lasting::Acknowledged).is_err());
        }
    }

    #[test]
    fn writes_that_are_not_synced_may_go_from_the_end_alone() {
        let synced = (0..19).rev().find(|index| shape().draw(0, *index).sync).unwrap() + 1;
        let judged = |found: &Rows| judge(&shape(), &log(20), &Rows::new(), found, Lasting::Synced);
        assert!(synced < 18, "the draw leaves something to lose: {synced}");
        let least = rows(&[synced - 1, synced - 1]);
        assert!(judged(&least).unwrap_err().contains("had to last"));
        assert_eq!(judged(&rows(&[19, 18])), Ok(vec![19, 18]));
        // Nineteen of the first, but not the eighteenth of the second, which was done before that began.
        assert!(judged(&rows(&[19, 17])).unwrap_err().contains("a gap"), "{:?}", judged(&rows(&[19, 17])));
    }

    #[test]
    fn a_gap_keeps_what_was_synced() {
        let never = Shape { sync_one_in: 0, ..shape() };
        let mut gap = Rows::new();
        apply(&mut gap, &never.draw(0, 19));
        assert!(judge(&never, &log(20), &Rows::new(), &gap, Lasting::Synced).is_err(), "it is a gap");
        assert_eq!(keeps_synced(&never, &log(20), &Rows::new(), &gap), Ok(()));
        gap.insert((0, b"t00-9999".to_vec()), Vec::new());
        assert!(keeps_synced(&never, &log(20), &Rows::new(), &gap).is_err());
        let always = Shape { sync_one_in: 1, ..shape() };
        let all = rows(&[20, 19]);
        assert_eq!(keeps_synced(&always, &log(20), &Rows::new(), &all), Ok(()));
        for place in all.keys().filter(|place| thread_of(&place.1) == Some(0)) {
            let mut without = all.clone();
            without.remove(place);
            assert!(keeps_synced(&always, &log(20), &Rows::new(), &without).is_err(), "{}", told(place));
        }
    }

    #[test]
    fn rows_of_before_count() {
        let base = rows(&[7, 7]);
        let later = Shape { cycle: 4, ..shape() };
        let mut found = base.clone();
        apply(&mut found, &later.draw(0, 0));
        let mut log = Log::new(1);
        log.add(0, Event::Begun);
        assert_eq!(judge(&later, &log, &base, &found, Lasting::Acknowledged), Ok(vec![1, 0]));
        assert_eq!(judge(&later, &log, &base, &base, Lasting::Acknowledged), Ok(vec![0, 0]));
        let place = base.keys().next_back().unwrap();
        found.remove(place);
        assert!(judge(&later, &log, &base, &found, Lasting::Acknowledged).is_err());
    }
}

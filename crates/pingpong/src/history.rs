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

mod whole;

use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::fmt;

/// The column families that histories write to.
pub const FAMILIES: [&str; 3] = ["default", "one", "two"];

/// The longest filler of a merge operand, in bytes: a key may collect the operands of a whole history.
const LONGEST_OPERAND: usize = 100;

/// The number of a column family, and a key in it.
pub type Place = (usize, Vec<u8>);

/// All rows.
pub type Rows = BTreeMap<Place, Vec<u8>>;

/// One change of a write. The number is that of the column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key and its value.
    Put(usize, Vec<u8>, Vec<u8>),
    /// A key and an operand, which is appended to the value behind a comma.
    Merge(usize, Vec<u8>, Vec<u8>),
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
    /// One value in so many is a merge operand; 0: none.
    pub merge_one_in: u64,
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
        // The last change is a put or a merge, so that rows say which write was the last.
        for _ in 0..random.pick(&[1, 1, 1, 2, 5]) {
            let len = random.pick(&[8, 100, self.longest / 4, self.longest]) as usize;
            let mut value = format!("c{}i{index}-", self.cycle).into_bytes();
            let merges = self.merge_one_in > 0 && random.one_in(self.merge_one_in);
            let len = if merges { len.min(LONGEST_OPERAND) } else { len };
            value.resize(value.len() + len, b'a' + (index % 26) as u8);
            let (family, key) = (random.index(FAMILIES.len()), key(thread, random.below(self.keys)));
            changes.push(match merges {
                true => Change::Merge(family, key, value),
                false => Change::Put(family, key, value),
            });
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

/// The write that a value is of, or its last operand, if that is of this cycle.
fn index_of(value: &[u8], cycle: u64) -> Option<u64> {
    // As text: values are long, and the standard library is optimized where this crate is not.
    let value = std::str::from_utf8(value).ok()?;
    let last = value.rfind(',').map_or(value, |comma| &value[comma + 1..]);
    let (of, index) = last.split_once('-')?.0.strip_prefix('c')?.split_once('i')?;
    (of.parse() == Ok(cycle)).then(|| index.parse().ok())?
}

/// Makes the changes of a write.
pub fn apply(rows: &mut Rows, write: &Write) {
    for change in &write.changes {
        match change {
            Change::Put(family, key, value) => drop(rows.insert((*family, key.clone()), value.clone())),
            Change::Merge(family, key, operand) => {
                let value =
                    rows.entry((*family, key.clone())).and_modify(|value| value.push(b',')).or_default();
                value.extend_from_slice(operand);
            }
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

    /// How many writes each thread has begun.
    pub fn begun(&self) -> Vec<u64> {
        self.threads.iter().map(|log| log.begun.len() as u64).collect()
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

/// How rows are not what a crash may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Every batch is there as a whole or not at all, and all that had to last is there; but a write is missing that was acknowledged
    /// before another began that is there.
    Gap(String),
    /// Anything else: what had to last is missing, half a batch is there, or rows that nobody wrote.
    Wrong(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Broken::Gap(why) | Broken::Wrong(why)) = self;
        f.write_str(why)
    }
}

impl From<Broken> for String {
    fn from(broken: Broken) -> String {
        broken.to_string()
    }
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
) -> Result<Vec<u64>, Broken> {
    let mut by_thread: Vec<(Rows, Rows)> = vec![Default::default(); log.threads.len().max(threads_of(base))];
    for (place, value) in base {
        let thread = thread_of(&place.1).expect("rows of before were judged");
        by_thread[thread].0.insert(place.clone(), value.clone());
    }
    for (place, value) in found {
        let thread = thread_of(&place.1).filter(|thread| *thread < by_thread.len());
        let thread =
            thread.ok_or_else(|| Broken::Wrong(format!("a key that nobody wrote: {}", told(place))))?;
        by_thread[thread].1.insert(place.clone(), value.clone());
    }
    let nothing = ThreadLog::default();
    let least = least(shape, log, lasting);
    let (mut there, mut gap) = (Vec::new(), None);
    for (thread, (base, found)) in by_thread.into_iter().enumerate() {
        let of_thread = log.threads.get(thread).unwrap_or(&nothing);
        let least = least.get(thread).copied().unwrap_or(0);
        match judge_thread(shape, thread, of_thread, base, &found, least) {
            Ok(count) => there.push(count),
            Err(Broken::Gap(why)) => gap = gap.or(Some(why)),
            Err(wrong) => return Err(wrong),
        }
    }
    if let Some(why) = gap {
        return Err(Broken::Gap(why));
    }
    for (thread, count) in there.iter().enumerate().filter(|(_, count)| **count > 0) {
        let began = log.threads[thread].begun[*count as usize - 1];
        for (other, log) in log.threads.iter().enumerate() {
            let before = log.done.partition_point(|done| *done < began) as u64;
            if there[other] < before {
                return Err(Broken::Gap(format!(
                    "a gap: write {} of thread {thread} is there, which began when {before} writes of thread {other} \
                     were acknowledged, of which {} are there",
                    count - 1,
                    there[other]
                )));
            }
        }
    }
    Ok(there)
}

/// Writes of each thread that have to be there. A synced write lasts with all that was acknowledged before it began, by any thread: a
/// sync takes the WALs before its own along.
fn least(shape: &Shape, log: &Log, lasting: Lasting) -> Vec<u64> {
    let done = log.threads.iter().map(|log| log.done.len() as u64);
    if lasting == Lasting::Acknowledged {
        return done.collect();
    }
    let synced = |thread: usize, done: u64| (0..done).rev().find(|index| shape.draw(thread, *index).sync);
    let last: Vec<Option<u64>> = done.enumerate().map(|(thread, done)| synced(thread, done)).collect();
    let mut least: Vec<u64> = last.iter().map(|last| last.map_or(0, |index| index + 1)).collect();
    for (thread, index) in last.iter().enumerate().filter_map(|(thread, last)| Some((thread, (*last)?))) {
        let began = log.threads[thread].begun[index as usize];
        for (least, other) in least.iter_mut().zip(&log.threads) {
            *least = (*least).max(other.done.partition_point(|done| *done < began) as u64);
        }
    }
    least
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
    least: u64,
) -> Result<u64, Broken> {
    let newest = found.values().filter_map(|value| index_of(value, shape.cycle)).max();
    let count = newest.map_or(0, |newest| newest + 1);
    if count > log.begun.len() as u64 {
        let why = format!("thread {thread}: write {} is there, which never began", count - 1);
        return Err(Broken::Wrong(why));
    }
    if count < least {
        let why = format!("thread {thread}: {count} writes are there, and {least} had to last");
        return Err(Broken::Wrong(why));
    }
    let mut expected = base.clone();
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
    let why = format!(
        "thread {thread}: after {count} writes {} is {:?} of {:?} bytes, and should be {:?} of {:?}",
        told(place),
        start(found.get(place)),
        found.get(place).map(Vec::len),
        start(expected.get(place)),
        expected.get(place).map(Vec::len)
    );
    match whole::some_writes(shape, thread, &base, found, least..log.begun.len() as u64) {
        true => Err(Broken::Gap(why)),
        false => Err(Broken::Wrong(why)),
    }
}

fn told((family, key): &(usize, Vec<u8>)) -> String {
    format!("{}/{}", FAMILIES[*family], String::from_utf8_lossy(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { cycle: 3, seed: 9, sync_one_in: 4, keys: 6, longest: 40, merge_one_in: 0 }
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
        let refused = |found: &Rows| judged(found, Lasting::Acknowledged).unwrap_err().to_string();
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
        assert!(judged(&least).unwrap_err().to_string().contains("had to last"));
        assert_eq!(judged(&rows(&[19, 18])), Ok(vec![19, 18]));
        // Nineteen of the first, but not the eighteenth of the second, which was done before that began.
        let judged = judged(&rows(&[19, 17]));
        assert!(matches!(&judged, Err(Broken::Gap(why)) if why.contains("a gap")), "{judged:?}");
    }

    #[test]
    fn a_gap_is_whole_writes_with_all_that_was_synced() {
        let never = Shape { sync_one_in: 0, ..shape() };
        let mut gap = Rows::new();
        apply(&mut gap, &never.draw(0, 19));
        let judged = |shape: &Shape, found: &Rows| {
            judge(shape, &log(20), &Rows::new(), found, Lasting::Synced).unwrap_err()
        };
        assert!(matches!(judged(&never, &gap), Broken::Gap(_)), "it is a gap");
        // Of a write with two rows one is missing: half a batch is no gap.
        let two = |index: &u64| {
            let mut rows = Rows::new();
            apply(&mut rows, &never.draw(0, *index));
            rows.len() > 1
        };
        let index = (0..20).rev().find(two).expect("the draw has a batch of two rows");
        let mut whole = Rows::new();
        apply(&mut whole, &never.draw(0, index));
        assert!(matches!(judged(&never, &whole), Broken::Gap(_)));
        for place in whole.keys() {
            let mut half = whole.clone();
            half.remove(place);
            assert!(matches!(judged(&never, &half), Broken::Wrong(_)), "{}", told(place));
        }
        gap.insert((0, b"t00-9999".to_vec()), Vec::new());
        assert!(matches!(judged(&never, &gap), Broken::Wrong(_)));
        let always = Shape { sync_one_in: 1, ..shape() };
        let mut all = Rows::new();
        for (thread, count) in [20, 19].into_iter().enumerate() {
            (0..count).for_each(|index| apply(&mut all, &always.draw(thread, index)));
        }
        assert!(judge(&always, &log(20), &Rows::new(), &all, Lasting::Synced).is_ok());
        for place in all.keys().filter(|place| thread_of(&place.1) == Some(0)) {
            let mut without = all.clone();
            without.remove(place);
            assert!(matches!(judged(&always, &without), Broken::Wrong(_)), "{}", told(place));
        }
    }

    /// The first thread's synced write lasts, and so do the second's that were done before it began.
    #[test]
    fn a_synced_write_takes_those_of_other_threads_along() {
        let shape = Shape { sync_one_in: 6, ..shape() };
        let synced = |thread, done: u64| (0..done).rev().find(|index| shape.draw(thread, *index).sync);
        let (first, second) = (synced(0, 20).unwrap(), synced(1, 19).map_or(0, |index| index + 1));
        assert!(second < first, "the draw: {second} {first}");
        let wanted = least(&shape, &log(20), Lasting::Synced);
        assert_eq!(wanted, [first + 1, first]);
        let mut found = Rows::new();
        (0..=first).for_each(|index| apply(&mut found, &shape.draw(0, index)));
        (0..first - 1).for_each(|index| apply(&mut found, &shape.draw(1, index)));
        let judged = judge(&shape, &log(20), &Rows::new(), &found, Lasting::Synced);
        assert!(matches!(&judged, Err(Broken::Wrong(why)) if why.contains("had to last")), "{judged:?}");
    }

    #[test]
    fn operands_count_once_and_in_their_order() {
        let shape = Shape { merge_one_in: 2, ..shape() };
        let rows = |counts: [u64; 2]| {
            let mut rows = Rows::new();
            for (thread, count) in counts.into_iter().enumerate() {
                (0..count).for_each(|index| apply(&mut rows, &shape.draw(thread, index)));
            }
            rows
        };
        let judged = |found: &Rows| judge(&shape, &log(20), &Rows::new(), found, Lasting::Acknowledged);
        assert_eq!(judged(&rows([20, 19])), Ok(vec![20, 19]));
        let mut merged = 0;
        for (place, value) in rows([20, 19]) {
            let Some(comma) = value.iter().position(|byte| *byte == b',') else { continue };
            merged += 1;
            let (first, rest) = (&value[..comma], &value[comma + 1..]);
            for wrong in [first.to_vec(), [&value[..], b",", rest].concat(), [rest, b",", first].concat()] {
                let mut found = rows([20, 19]);
                found.insert(place.clone(), wrong);
                assert!(judged(&found).is_err(), "{}", told(&place));
            }
        }
        assert!(merged > 3, "the draw merges: {merged}");
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

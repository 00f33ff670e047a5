//! Draws the life of a database with timestamps.

use super::language::{Change, FAMILIES, How, Lookup, Move, PLAIN, Request, View, Write};
use crate::case::End;
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;

/// One engine's turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its name.
    pub engine: String,
    /// Options of the database and each column family.
    pub options: Vec<String>,
    /// The opening drops what is newer than this timestamp.
    pub trim: Option<u64>,
    /// How far before the newest timestamp reads are that compare everything after the opening.
    pub looks: Vec<u64>,
    /// Requests, each compared.
    pub steps: Vec<Request>,
    /// How it ends; of a kill while writing the writes are the last steps.
    pub end: End,
}

/// The life of one database.
#[derive(Clone, Debug)]
pub struct Case {
    /// Turns.
    pub turns: Vec<Turn>,
    /// The newest timestamp of each turn.
    pub newest: Vec<u64>,
}

/// Options that differ from turn to turn.
const OPTIONS: &[&str] = &[
    CALM,
    "level0_file_num_compaction_trigger=2",
    "compaction_style=kCompactionStyleUniversal",
    "compression=kLZ4Compression",
    SKIPS,
    "memtable_whole_key_filtering=true",
    "table.filter_policy=bloomfilter:10:false",
    "table.index_type=kTwoLevelIndexSearch",
    "table.block_restart_interval=1",
    UNFLUSHED,
    "write_buffer_size=65536",
    "target_file_size_base=8192",
    "enable_pipelined_write=true",
];

/// No compaction begins by itself. RocksDB trims by a manual compaction, which leaves tables alone that another one made since it began: 11.8.1
/// kept a version that was to go, in one of 200 turns.
pub const CALM: &str = "disable_auto_compactions=true";

/// Iterators pass few versions before they seek. Only for Outcrop: with an iterator over all versions, RocksDB 8.11.4 and 11.8.1 seek past
/// the older versions of a key once one timestamp of it was written more often than this.
const SKIPS: &str = "max_sequential_skip_in_iterations=1";

/// Option of databases that keep all history: where a compaction takes the timestamp from a version, RocksDB itself cannot read its value from
/// a blob file any more ("Key mismatch when reading blob": the blob has the key with its timestamp).
const BLOBS: &str = "enable_blob_files=true";

/// Option of databases that are closed with what is only in their WAL.
const UNFLUSHED: &str = "avoid_flush_during_shutdown=true";

/// Draws steps; knows what the timestamps are at each.
struct Drawing<'d> {
    random: &'d mut Random,
    other: Abilities,
    /// All history is kept.
    keeps: bool,
    /// Only compactions that are asked for are done in this turn.
    calm: bool,
    now: u64,
    low: BTreeMap<usize, u64>,
    /// Keys that are put once and then deleted once, by a single deletion; so many there were.
    singles: u64,
    /// Those that are put and not deleted yet, with the timestamp of the put.
    puts: Vec<(usize, String, u64)>,
    values: u64,
}

/// The abilities of a version of RocksDB.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// The functions that write.
    pub ways: &'static [How],
    /// Its WALs say which keys have timestamps. Without, only databases that are flushed and closed go from one to the other.
    pub stamped_wals: bool,
    /// Its iterators find values in blob files going backward, too.
    pub blobs_backward: bool,
    /// It opens databases so that what is newer than a timestamp is dropped.
    pub trims: bool,
    /// It compacts the files that it is told.
    pub compacts_files: bool,
}

/// A life in turns of `outcrop`, which has all abilities, and `other`.
pub fn case(random: &mut Random, outcrop: &str, (other, can): (&str, Abilities)) -> Case {
    let count = 4 + random.below(3);
    let outcrop_begins = random.below(2);
    let keeps = random.one_in(4);
    let mut drawing = Drawing {
        random,
        other: can,
        keeps,
        calm: false,
        now: 10,
        low: BTreeMap::new(),
        singles: 0,
        puts: Vec::new(),
        values: 0,
    };
    let mut case = Case { turns: Vec::new(), newest: Vec::new() };
    for turn in 0..count {
        let engine = if turn % 2 == outcrop_begins { other } else { outcrop };
        // The last two compare what is there.
        let steps = if turn + 2 < count { 25 + drawing.random.below(25) } else { 0 };
        let can_trim = turn > 0 && (engine == outcrop || can.trims);
        let trim = (can_trim && drawing.random.one_in(4)).then(|| drawing.trim());
        let mut next = Turn { trim, ..drawing.turn(engine, engine == outcrop, steps) };
        if trim.is_some() && engine != outcrop && !next.options.iter().any(|option| option == CALM) {
            next.options.push(CALM.to_string());
        }
        case.turns.push(next);
        case.newest.push(drawing.now);
    }
    case
}

impl Drawing<'_> {
    fn turn(&mut self, engine: &str, is_outcrop: bool, steps: u64) -> Turn {
        let mut options: Vec<String> =
            ["table.block_size=256", "table.format_version=5"].map(String::from).into();
        for option in OPTIONS {
            let plays = match *option {
                UNFLUSHED => self.other.stamped_wals,
                SKIPS => is_outcrop,
                _ => true,
            };
            if self.random.one_in(3) && plays {
                options.push((*option).to_string());
            }
        }
        if self.keeps && self.other.blobs_backward && self.random.one_in(2) {
            options.push(BLOBS.to_string());
        }
        self.calm = options.iter().any(|option| option == CALM);
        let looks = (0..2).map(|_| self.random.below(20)).collect();
        let mut steps: Vec<Request> = (0..steps).map(|_| self.step()).collect();
        let end = match self.random.below(3) {
            _ if !self.other.stamped_wals => {
                steps.extend((0..FAMILIES.len()).map(Request::Flush));
                End::Close
            }
            0 => End::Close,
            1 => End::Kill,
            _ if steps.is_empty() => End::Kill,
            _ => {
                let writes = 1 + self.random.index(6);
                steps.extend((0..writes).map(|_| self.write()));
                End::KillWriting { writes, after_micros: self.random.below(2000) }
            }
        };
        Turn { engine: engine.to_string(), options, trim: None, looks, steps, end }
    }

    /// Goes back to a timestamp, from which on writes come again. No further than history may be gone.
    fn trim(&mut self) -> u64 {
        let low = self.low.values().copied().max().unwrap_or(5);
        let newest = self.now.saturating_sub(self.random.below(15)).max(low);
        self.now = newest;
        self.puts.retain(|(_, _, at)| *at <= newest);
        newest
    }

    /// A column family with timestamps.
    fn stamped(&mut self) -> usize {
        1 + self.random.index(FAMILIES.len() - 1)
    }

    /// Some keys are beginnings of others, which the timestamps behind them must not matter to.
    fn key(&mut self) -> String {
        let number = self.random.below(20);
        match self.random.below(4) {
            0 => "k".repeat(1 + number as usize % 4),
            1 => format!("k\u{1}{}", number % 4),
            2 => format!("k{number}"),
            _ => format!("a-longer-key-{number:04}"),
        }
    }

    fn value(&mut self) -> String {
        self.values += 1;
        let pad = if self.random.one_in(8) { 1500 } else { self.random.index(30) };
        format!("v{}{}", self.values, "x".repeat(pad))
    }

    /// A timestamp that can be read at.
    fn readable(&mut self, family: usize) -> u64 {
        let low = self.low.get(&family).copied().unwrap_or(5);
        if self.random.one_in(12) {
            return self.random.below(low);
        }
        if self.random.one_in(12) {
            u64::MAX
        } else {
            low + self.random.below(self.now - low.min(self.now) + 2)
        }
    }

    fn one_write(&mut self, at: u64) -> Write {
        if self.random.one_in(4) {
            let (key, value) = (self.key(), self.value());
            let change = if self.random.one_in(3) { Change::Delete } else { Change::Put(value) };
            return Write { family: PLAIN, key, at, change };
        }
        let family = self.stamped();
        let (key, value) = (self.key(), self.value());
        let change = if self.random.one_in(4) { Change::Delete } else { Change::Put(value) };
        Write { family, key, at, change }
    }

    /// Timestamps go up; now and then two writes have the same.
    fn write(&mut self) -> Request {
        self.now += self.random.below(4);
        if self.random.one_in(6) {
            return self.single();
        }
        let how = self.random.pick(self.other.ways);
        let count = if how == How::Direct { 1 } else { 1 + self.random.below(6) };
        let mut writes = Vec::new();
        for _ in 0..count {
            if how == How::Batch {
                self.now += self.random.below(2);
            }
            writes.push(self.one_write(self.now));
        }
        Request::Write { writes, how }
    }

    /// A key of its own is put, or one that was is deleted.
    fn single(&mut self) -> Request {
        self.now += 1;
        let how = self.random.pick(self.other.ways);
        let (family, key, change) = match self.puts.pop() {
            Some((family, key, _)) if self.random.one_in(2) => (family, key, Change::SingleDelete),
            _ => {
                self.singles += 1;
                let (family, key) = (self.stamped(), format!("once-{:03}", self.singles));
                self.puts.push((family, key.clone(), self.now));
                (family, key, Change::Put(self.value()))
            }
        };
        Request::Write { writes: vec![Write { family, key, at: self.now, change }], how }
    }

    fn view(&mut self) -> View {
        let family = self.stamped();
        let at = self.readable(family);
        let mut bound = || self.random.one_in(4).then(|| self.key());
        let (lower, upper) = (bound(), bound());
        View { family, at, lower, upper }
    }

    fn moves(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        for _ in 0..4 {
            moves.push(match self.random.below(6) {
                0 => Move::First,
                1 => Move::Last,
                2 | 3 => Move::Seek(self.key()),
                _ => Move::SeekForPrev(self.key()),
            });
            for _ in 0..self.random.below(5) {
                moves.push(self.random.pick(&[Move::Next, Move::Next, Move::Prev]));
            }
        }
        moves
    }

    fn step(&mut self) -> Request {
        let family = self.stamped();
        match self.random.below(40) {
            0..18 => self.write(),
            18..21 => {
                let keys = (0..1 + self.random.below(6)).map(|_| self.key()).collect();
                let by = self.random.pick(&[Lookup::Get, Lookup::GetWithTs, Lookup::MultiGetWithTs]);
                Request::Get { family, keys, at: self.readable(family), by }
            }
            21..24 => {
                let view = self.view();
                Request::Walk(view, self.moves())
            }
            24 | 25 => Request::Forward(self.view()),
            26 | 27 => Request::Backward(self.view()),
            28 | 29 => {
                let at = self.readable(family);
                Request::Versions { family, at, from: self.random.below(self.now.min(at) + 1) }
            }
            30 => Request::Plain,
            31..34 => Request::Flush(self.random.index(FAMILIES.len())),
            // Files that a compaction has are not given to another.
            34 if self.calm && self.other.compacts_files => Request::CompactLast(family),
            34 | 35 => Request::Compact(family, None),
            36 if !self.keeps => {
                let low = self.raised(family);
                Request::Compact(family, Some(low))
            }
            37 if !self.keeps => {
                let low = self.raised(family);
                Request::Raise(family, low)
            }
            38 => {
                // Now and then back, which is refused.
                let low = self.low.get(&family).map_or(0, |low| low.saturating_sub(1));
                if low == 0 { Request::Low(family) } else { Request::Raise(family, low) }
            }
            _ => Request::Low(family),
        }
    }

    /// A timestamp below which history may go from now on.
    fn raised(&mut self, family: usize) -> u64 {
        let last = self.low.get(&family).copied().unwrap_or(5);
        let low = (self.now.saturating_sub(self.random.below(15))).max(last);
        self.low.insert(family, low);
        low
    }
}

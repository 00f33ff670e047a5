//! Steps that bring a tree into a known shape: flushes, waits, compactions of everything and of single
//! levels.
//!
//! ```text
//! compact0   all tables of L0 into the first level below that has any
//! compact1   all tables of the first level below L0 that has any, into the next one that has any
//! ```
//! Where a library cannot compact chosen tables, the nearest that it can is done, and the step's note says so:
//! ```text
//! compact0   level0_file_num_compaction_trigger = 1 until L0 is empty: what the engine then does of itself
//! compact1   a suggestion to compact everything above the last level one level down
//! both       everything, where there is not even that (LevelDB)
//! ```
//! Source: RocksDB `tools/db_bench_tool.cc`, `CompactLevelHelper`; `tools/benchmark.sh`, `run_lsm`.

use super::StepKind;
use crate::Database;
use crate::tree::{Tables, Unable, shape};
use std::time::{Duration, Instant};

/// A level to be compacted into the next one that has tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// L0.
    Zero,
    /// The first level below L0 that has tables.
    First,
}

/// Does what `kind` says, once; gives what a reader must know about it.
pub(super) fn run(db: &Database, kind: StepKind) -> Result<Option<String>, String> {
    /// The time that RocksDB's scripts sleep after a flush where waiting for compaction may never end.
    const PAUSE: Duration = Duration::from_secs(10);
    let before = db.tables();
    let said = match kind {
        StepKind::Flush => db.flush().map(|()| Vec::new())?,
        StepKind::FlushAndWait => {
            db.flush()?;
            wait_for_compaction(db).map(|()| Vec::new())?
        }
        StepKind::FlushAndPause => {
            db.flush()?;
            std::thread::sleep(PAUSE);
            Vec::new()
        }
        StepKind::WaitForCompaction => wait_for_compaction(db).map(|()| Vec::new())?,
        StepKind::Compact => {
            db.compact();
            Vec::new()
        }
        StepKind::Compact0 => vec![compact_level(db, From::Zero)?],
        StepKind::Compact1 => vec![compact_level(db, From::First)?],
        StepKind::Settle => {
            db.flush()?;
            levels_in_turn(db, &[From::Zero])?
        }
        StepKind::CompactLevels => {
            db.flush()?;
            let said = levels_in_turn(db, &[From::Zero, From::First])?;
            db.compact();
            wait_for_compaction(db)?;
            said
        }
        _ => return Err(format!("{kind:?} is no upkeep")),
    };
    let tables = before
        .zip(db.tables())
        .map(|(before, after)| format!("tables before: {}; after: {}", shape(&before), shape(&after)));
    let sentences: Vec<String> = said.into_iter().chain(tables).collect();
    Ok((!sentences.is_empty()).then(|| sentences.join("; ")))
}

/// Compacts `levels` one after the other, with quiet before and after each.
fn levels_in_turn(db: &Database, levels: &[From]) -> Result<Vec<String>, String> {
    wait_for_compaction(db)?;
    let compact = |from: &From| {
        let said = compact_level(db, *from)?;
        wait_for_compaction(db).map(|()| said)
    };
    levels.iter().map(compact).collect()
}

/// From which level to which, or why nothing is to be done.
fn levels_of(tables: &Tables, from: From) -> Result<(i32, i32), String> {
    let mut below = tables.keys().copied().filter(|level| *level > 0);
    let source = match from {
        From::Zero => tables.contains_key(&0).then_some(0),
        From::First => below.next(),
    };
    let source = source.ok_or_else(|| format!("{} found nothing to compact", from.name()))?;
    let target = below.next().ok_or_else(|| format!("{} found nothing below L{source}", from.name()))?;
    Ok((source, target))
}

impl From {
    /// In db_bench's words.
    fn name(self) -> &'static str {
        match self {
            From::Zero => "compact0",
            From::First => "compact1",
        }
    }
}

fn compact_level(db: &Database, from: From) -> Result<String, String> {
    /// RocksDB's tool tries for ever; what fails so often is not a table that was just compacted away.
    const TRIES: usize = 20;
    let name = from.name();
    let Some(mut tables) = db.tables() else { return compact_everything(db, from) };
    let mut last = String::new();
    for _ in 0..TRIES {
        let (source, target) = match levels_of(&tables, from) {
            Ok(levels) => levels,
            Err(nothing) => return Ok(nothing),
        };
        let names = &tables[&source];
        match db.compact_files(names, target) {
            Ok(()) => return Ok(format!("{name}: {} tables of L{source} into L{target}", names.len())),
            Err(Unable::NotOffered) => return nearest(db, from),
            Err(Unable::Failed(why)) => last = why,
        }
        wait_for_compaction(db)?;
        tables = db.tables().unwrap_or_default();
    }
    Err(format!("{name} failed {TRIES} times: {last}"))
}

/// The call that comes nearest to compacting chosen tables.
fn nearest(db: &Database, from: From) -> Result<String, String> {
    let done = match from {
        From::Zero => empty_level_zero(db),
        From::First => one_level_down(db),
    };
    match done {
        Ok(true) => Ok(match from {
            From::Zero => {
                "compact0: no compaction of chosen tables in this library; L0 was emptied by its own \
                           compactions, at a trigger of 1 table"
            }
            From::First => {
                "compact1: no compaction of chosen tables in this library; all levels but the last were \
                            suggested for compaction into the next"
            }
        }
        .to_string()),
        Ok(false) | Err(Unable::NotOffered) => compact_everything(db, from),
        Err(Unable::Failed(why)) => Err(format!("{}: {why}", from.name())),
    }
}

fn compact_everything(db: &Database, from: From) -> Result<String, String> {
    db.compact();
    wait_for_compaction(db)?;
    Ok(format!("{}: everything was compacted, since this library cannot do less", from.name()))
}

/// Lets the engine compact every table of L0 as it would compact many; false if it does not.
fn empty_level_zero(db: &Database) -> Result<bool, Unable> {
    let is_empty = || db.tables().is_some_and(|tables| !tables.contains_key(&0));
    with_own_compactions(db, 1, || {
        let mut idle = Idle::new();
        while !is_empty() && !idle.for_long(db) {
            std::thread::sleep(Idle::LOOK);
        }
    })?;
    Ok(is_empty())
}

/// Lets the engine compact every level but the last into the next one.
fn one_level_down(db: &Database) -> Result<bool, Unable> {
    let mut waited = Ok(());
    let mut suggested = Ok(());
    with_own_compactions(db, db.level_zero_trigger, || {
        suggested = db.suggest_compact_range();
        waited = wait_for_compaction(db);
    })?;
    suggested?;
    waited.map(|()| true).map_err(Unable::Failed)
}

/// Does `work` while the engine compacts of itself, L0 from `trigger` tables on; then things are as they were.
fn with_own_compactions(db: &Database, trigger: i32, work: impl FnOnce()) -> Result<(), Unable> {
    let options = |trigger: i32, off: bool| {
        [
            ("level0_file_num_compaction_trigger", trigger.to_string()),
            ("disable_auto_compactions", off.to_string()),
        ]
    };
    db.set_options(&options(trigger, false))?;
    work();
    db.set_options(&options(db.level_zero_trigger, db.auto_compactions_off))
}

/// Whether a database has had nothing to do for long enough that it will not begin of itself.
struct Idle(Instant);

impl Idle {
    const LOOK: Duration = Duration::from_millis(10);
    /// The time that RocksDB's tool gives background threads to wake up.
    const LONG: Duration = Duration::from_secs(5);

    fn new() -> Idle {
        Idle(Instant::now())
    }

    fn for_long(&mut self, db: &Database) -> bool {
        if is_working(db) {
            self.0 = Instant::now();
        }
        self.0.elapsed() >= Idle::LONG
    }
}

fn any(db: &Database, names: &[&str]) -> bool {
    names.iter().any(|name| db.property_int(name).unwrap_or(0) != 0)
}

fn is_working(db: &Database) -> bool {
    any(
        db,
        &[
            "rocksdb.num-running-compactions",
            "rocksdb.num-running-flushes",
            "rocksdb.mem-table-flush-pending",
        ],
    )
}

/// Waits until nothing runs and nothing is due: by the library's own call if it has one, then by looking.
///
/// A compaction that is due for five seconds while nothing runs is not waited for: automatic compactions may be off, and
/// universal compaction of old RocksDB versions says so for ever.
///
/// # Errors
/// After 600 seconds, and if a background job has failed.
pub fn wait_for_compaction(db: &Database) -> Result<(), String> {
    const AT_MOST: Duration = Duration::from_secs(600);
    /// Looks in a row that must find quiet.
    const LOOKS: u32 = 10;
    let deadline = Instant::now() + AT_MOST;
    if let Err(Unable::Failed(why)) = db.wait_for_compact(AT_MOST) {
        return Err(format!("waiting for compaction: {why}"));
    }
    let (mut quiet, mut idle) = (0, Idle::new());
    while quiet < LOOKS {
        let stuck = idle.for_long(db);
        let due = !stuck && any(db, &["rocksdb.compaction-pending"]);
        quiet = if due || is_working(db) { 0 } else { quiet + 1 };
        if Instant::now() > deadline {
            return Err(format!("compaction was not done after {} s", AT_MOST.as_secs()));
        }
        std::thread::sleep(Idle::LOOK);
    }
    match db.property_int("rocksdb.background-errors") {
        Some(errors) if errors > 0 => Err("the engine reports a background error".to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(levels: &[i32]) -> Tables {
        levels.iter().map(|level| (*level, Vec::new())).collect()
    }

    #[test]
    fn a_level_goes_into_the_next_one_that_has_tables() {
        assert_eq!(levels_of(&tables(&[0, 4, 6]), From::Zero), Ok((0, 4)));
        assert_eq!(levels_of(&tables(&[0, 4, 6]), From::First), Ok((4, 6)));
        assert_eq!(levels_of(&tables(&[5, 6]), From::First), Ok((5, 6)));
    }

    #[test]
    fn where_nothing_is_below_nothing_is_done() {
        let why = |levels: &[i32], from| levels_of(&tables(levels), from).unwrap_err();
        assert_eq!(why(&[4, 6], From::Zero), "compact0 found nothing to compact");
        assert_eq!(why(&[0], From::Zero), "compact0 found nothing below L0");
        assert_eq!(why(&[0], From::First), "compact1 found nothing to compact");
        assert_eq!(why(&[0, 6], From::First), "compact1 found nothing below L6");
    }
}

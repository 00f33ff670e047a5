//! One state of a disk: mounted, its databases copied, opened and judged.

use super::disk::{Disk, Record};
use super::fuse::Served;
use super::mounts::{Kind, Unmounted};
use super::scenarios::{Made, NO_GAP, Plan, Upkeep};
use super::told::{Family, Story};
use crate::backups;
use crate::database::list_families;
use crate::features::OUTCROP;
use crate::history::{Broken, Lasting, Rows, judge};
use crate::library::Api;
use crate::rows::{close, copy_files, open, rows};
use outcrop_base::random::SplitMix as Random;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Figures of a campaign.
#[derive(Default)]
pub struct Tally {
    states: u64,
    acknowledged: u64,
    lost: u64,
    /// States that their file system does not mount, and such as it mounts and has unreadable files in.
    unmountable: u64,
    unreadable: u64,
    gaps: u64,
    /// Of databases that Outcrop wrote.
    reference_breaks: u64,
    reference_refuses: u64,
    /// Of databases that RocksDB wrote itself.
    own_breaks: u64,
    differ: u64,
    crossed: u64,
    copies: u64,
    cycles: u64,
    writes: u64,
    flushes: u64,
    by_kind: BTreeMap<&'static str, u64>,
    scenarios: std::collections::BTreeSet<&'static str>,
}

impl Tally {
    /// Counts a log.
    pub fn recorded(&mut self, log: &[Record]) {
        self.flushes += log.iter().filter(|record| **record == Record::Flush).count() as u64;
        self.writes += log.iter().filter(|record| matches!(record, Record::Write(..))).count() as u64;
    }

    /// Counts a cycle.
    pub fn cycle(&mut self, kind: &'static str, scenario: &'static str) {
        self.cycles += 1;
        *self.by_kind.entry(kind).or_insert(0) += 1;
        self.scenarios.insert(scenario);
    }

    /// Prints them.
    pub fn report(&self, took: Duration) {
        println!(
            "block-crashes: {} cases in {:.0} s, {:.1} a second; {} cycles of {} scenarios, {} writes of blocks and {} flushes recorded; \
             {} writes acknowledged before the cuts, {} of them not synced and lost",
            self.states,
            took.as_secs_f64(),
            self.states as f64 / took.as_secs_f64(),
            self.cycles,
            self.scenarios.len(),
            self.writes,
            self.flushes,
            self.acknowledged,
            self.lost
        );
        println!(
            "  {} states that the file system cannot mount, {} with files that it cannot read; {} gaps among unsynced writes that both \
             engines show; RocksDB: {} states not as promised, {} refused, {} of its own not as promised, {} with other rows than \
             Outcrop's, both allowed; {} opened by the one after the other, {} checkpoints and backups",
            self.unmountable,
            self.unreadable,
            self.gaps,
            self.reference_breaks,
            self.reference_refuses,
            self.own_breaks,
            self.differ,
            self.crossed,
            self.copies
        );
        let kinds: Vec<String> = self.by_kind.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  cycles on: {}", kinds.join(", "));
    }
}

/// Excuses that a campaign may use for its states, before they are no excuse: a file system that refuses what it should
/// recover, RocksDB that refuses what Outcrop wrote. In 6,238 states there were two of the first kind and one of the second.
fn excuses(states: u64) -> u64 {
    2 + states / 500
}

impl Tally {
    /// More states were excused than chance explains.
    ///
    /// # Errors
    /// Which.
    pub fn check(&self) -> Result<(), String> {
        let most = excuses(self.states);
        let counts = [
            (
                self.unmountable + self.unreadable,
                "the file systems do not mount, or have unreadable files in",
            ),
            (self.reference_refuses, "RocksDB refuses, though Outcrop opens them"),
        ];
        match counts.iter().find(|(count, _)| *count > most) {
            Some((count, what)) => {
                Err(format!("{count} states of {} that {what}: {most} may be", self.states))
            }
            None => Ok(()),
        }
    }
}

/// Why a state is not judged.
#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    /// The file system does not mount it.
    Refused(String),
    /// It is mounted, and has files that cannot be read.
    Unreadable(String),
    /// Not the state is at fault.
    Failed(String),
}

impl From<Unmounted> for Unusable {
    fn from(unmounted: Unmounted) -> Unusable {
        match unmounted {
            Unmounted::Refused(why) => Unusable::Refused(why),
            Unmounted::Failed(why) => Unusable::Failed(why),
        }
    }
}

impl Unusable {
    /// A copy that failed: of its errors three are the file system's word on what it has on its disk.
    fn copying(what: &Path, error: &std::io::Error) -> Unusable {
        let why = format!("copying {}: {error}", what.display());
        match error.raw_os_error() {
            Some(libc::EIO | libc::EUCLEAN | libc::EBADMSG) => Unusable::Unreadable(why),
            _ => Unusable::Failed(why),
        }
    }
}

/// All that a state is judged by.
pub struct Seen<'s> {
    /// Both engines.
    pub engines: &'s BTreeMap<&'s str, Api>,
    /// Where disks are.
    pub served: &'s Served,
    /// Where they are mounted, and copied to.
    pub scratch: &'s Path,
    /// The file system.
    pub kind: &'s Kind,
    /// The history.
    pub plan: &'s Plan,
    /// It was written by Outcrop, whose promises are judged; otherwise only what Outcrop makes of it is.
    pub ours: bool,
    /// Rows before the history.
    pub before: &'s Rows,
    /// The log until the power goes.
    pub log: &'s [Record],
    /// The disk has all of it, in its order: no file system has an excuse then.
    pub whole: bool,
    /// Decides what is done beside.
    pub random: Random,
}

impl Seen<'_> {
    /// Opens what is left; gives the rows that Outcrop finds. None: the file system does not mount it.
    ///
    /// # Errors
    /// A promise that is broken.
    pub fn judge(mut self, left: &Disk, tally: &mut Tally) -> Result<Option<Rows>, String> {
        let story = Story::of(self.log, self.plan.threads);
        match self.copy_out(left, &story) {
            Ok(()) => {}
            Err(Unusable::Failed(why)) => return Err(why),
            Err(Unusable::Refused(why) | Unusable::Unreadable(why)) if self.whole => {
                return Err(format!(
                    "{} does not take what it wrote itself, with nothing lost: {why}",
                    self.kind.name
                ));
            }
            Err(Unusable::Refused(why)) => {
                tally.unmountable += 1;
                println!("block-crashes: a state that {} cannot mount: {why}", self.kind.name);
                return Ok(None);
            }
            Err(Unusable::Unreadable(why)) => {
                tally.unreadable += 1;
                println!("block-crashes: a state that {} cannot read: {why}", self.kind.name);
                return Ok(None);
            }
        }
        tally.states += 1;
        tally.acknowledged += story.log.acknowledged();
        let (ours, theirs) = (self.scratch.join("outcrop"), self.scratch.join("reference"));
        let reference = *self.engines.keys().find(|name| **name != OUTCROP).expect("two engines");
        let of_reference = self.read(reference, &theirs);
        let found = self.read(OUTCROP, &ours).map_err(|error| {
            let how = of_reference.as_ref().map_or_else(Clone::clone, |rows| format!("{} rows", rows.len()));
            format!("Outcrop does not open it: {error}; {reference}: {how}")
        })?;
        self.judge_rows(&story, &found, of_reference.as_ref(), reference, tally)?;
        self.families(&story, &ours)?;
        // RocksDB has to open what it refuses once Outcrop has recovered it.
        if self.random.one_in(3) || (self.ours && of_reference.is_err()) {
            tally.crossed += 1;
            let again = self.read(reference, &ours);
            let again = again.map_err(|error| format!("{reference} after Outcrop: {error}"))?;
            same(&found, &again).map_err(|why| format!("{reference} after Outcrop: {why}"))?;
        } else if let Ok(expected) = &of_reference
            && self.random.one_in(3)
        {
            tally.crossed += 1;
            let again = self.read(OUTCROP, &theirs);
            let again = again.map_err(|error| format!("Outcrop after {reference}: {error}"))?;
            same(expected, &again).map_err(|why| format!("Outcrop after {reference}: {why}"))?;
        }
        if self.ours {
            self.copies(&story, tally)?;
        }
        Ok(Some(found))
    }

    /// Mounts the disk and copies what is wanted.
    fn copy_out(&self, left: &Disk, story: &Story) -> Result<(), Unusable> {
        let file = self.served.add(left.clone());
        let copied = self.copy_mounted(&file, story);
        self.served.take(&file);
        copied?;
        let ours = self.scratch.join("outcrop");
        copy_files(&ours, &self.scratch.join("reference"))
            .map_err(|error| Unusable::Failed(format!("copying {}: {error}", ours.display())))
    }

    fn copy_mounted(&self, file: &Path, story: &Story) -> Result<(), Unusable> {
        let mounted_at = self.scratch.join("mounted");
        let _mounted = self.kind.mount(file, &mounted_at)?;
        let copy_of = |name: &str, to: &str| {
            let from = mounted_at.join(name);
            copy_files(&from, &self.scratch.join(to)).map_err(|error| Unusable::copying(&from, &error))
        };
        copy_of("db", "outcrop")?;
        if let Some(checkpoint) = story.checkpoints.last() {
            let name = format!("checkpoint-{}-{}", self.plan.shape.cycle, checkpoint.number);
            copy_of(&name, "checkpoint")?;
        }
        if self.plan.upkeep == Upkeep::Backup {
            copy_of(&format!("backups-{}", self.plan.shape.cycle), "backups")?;
        }
        Ok(())
    }

    fn read(&self, engine: &str, db: &Path) -> Result<Rows, String> {
        let api = &self.engines[engine];
        let transactions = self.plan.made == Made::TwoPhases;
        let (database, handles) = open(api, &self.plan.options, "kPointInTimeRecovery", db, transactions)?;
        if transactions {
            // A transaction that was prepared and not decided is not there.
            database.roll_back_prepared()?;
        }
        let found = rows(&database, &handles)?;
        close(database, &handles)?;
        Ok(found)
    }

    fn judge_rows(
        &self,
        story: &Story,
        found: &Rows,
        of_reference: Result<&Rows, &String>,
        reference: &str,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let (shape, log) = (&self.plan.shape, &story.log);
        let judged = |rows: &Rows| judge(shape, log, self.before, rows, Lasting::Synced);
        let theirs = of_reference.map(judged);
        match (&theirs, of_reference) {
            (Err(why), _) if self.ours && !why.starts_with("Corruption") => {
                return Err(format!("{reference} does not open it, and not for damage: {why}"));
            }
            (Err(why), _) if self.ours => {
                tally.reference_refuses += 1;
                println!("block-crashes: a state that {reference} refuses: {why}");
            }
            (Err(_) | Ok(Err(_)), _) if !self.ours => tally.own_breaks += 1,
            (Ok(Err(_)), _) => tally.reference_breaks += 1,
            (Ok(Ok(_)), Ok(rows)) => tally.differ += u64::from(rows != found && judged(found).is_ok()),
            (Ok(Ok(_)) | Err(_), _) => {}
        }
        let why = match judged(found) {
            Ok(there) => {
                tally.lost += log.acknowledged().saturating_sub(there.iter().sum());
                return Ok(());
            }
            Err(why) => why,
        };
        if excused(self.ours, &why, found, of_reference, self.never_a_gap()) {
            tally.gaps += 1;
            if tally.gaps <= 3 {
                println!("block-crashes: both engines show a gap on {}: {why}", self.kind.name);
            }
            return Ok(());
        }
        let how = match &theirs {
            Err(refused) => (*refused).clone(),
            Ok(Err(broken)) => broken.to_string(),
            Ok(Ok(there)) => format!("as promised, {there:?}"),
        };
        Err(format!("{why}; {reference}: {how}"))
    }

    fn never_a_gap(&self) -> bool {
        self.plan.options.iter().any(|option| option == NO_GAP)
    }

    /// Column families that were created are there, and those that were dropped are not.
    fn families(&self, story: &Story, db: &Path) -> Result<(), String> {
        if story.families.is_empty() || !self.ours {
            return Ok(());
        }
        let stored = list_families(&self.engines[OUTCROP], &db.to_string_lossy())?;
        for (number, state) in &story.families {
            let name = format!("family-{}-{number}", self.plan.shape.cycle);
            let there = stored.contains(&name);
            if there != (*state == Family::There) && *state != Family::Between {
                return Err(format!("column family {name} is {there}, and should be {state:?}"));
            }
        }
        Ok(())
    }

    /// The newest checkpoint and the newest backup that were made.
    fn copies(&self, story: &Story, tally: &mut Tally) -> Result<(), String> {
        let lasting = match self.plan.options.iter().any(|option| option == "manual_wal_flush=true") {
            true => Lasting::Synced,
            false => Lasting::Acknowledged,
        };
        if let Some(checkpoint) = story.checkpoints.last() {
            let judged = self
                .read(OUTCROP, &self.scratch.join("checkpoint"))
                .and_then(|rows| Ok(judge(&self.plan.shape, &checkpoint.log, self.before, &rows, lasting)?));
            judged.map_err(|why| format!("checkpoint {}: {why}", checkpoint.number))?;
            tally.copies += 1;
        }
        if let Some(backup) = story.backups.last() {
            let (from, to) = (self.scratch.join("backups"), self.scratch.join("restored"));
            let _ = std::fs::remove_dir_all(&to);
            // One that was under way may be there as a whole.
            let log = match story.backing_up {
                true => story.log.clone().acknowledged_by(&backup.log),
                false => backup.log.clone(),
            };
            let judged =
                backups::restore(&self.engines[OUTCROP], &from.to_string_lossy(), &to.to_string_lossy())
                    .and_then(|()| self.read(OUTCROP, &to))
                    .and_then(|rows| Ok(judge(&self.plan.shape, &log, self.before, &rows, lasting)?));
            judged.map_err(|why| format!("backup {}: {why}", backup.number))?;
            tally.copies += 1;
        }
        Ok(())
    }
}

/// The exception of docs/reliability.md: a gap among writes that nobody synced, of whole batches, that RocksDB finds as well: in what Outcrop
/// wrote the same rows, unless WALs name each other; in what RocksDB wrote itself a gap at least.
fn excused(
    ours: bool,
    why: &Broken,
    found: &Rows,
    of_reference: Result<&Rows, &String>,
    never_a_gap: bool,
) -> bool {
    matches!(why, Broken::Gap(_)) && of_reference == Ok(found) && !(ours && never_a_gap)
}

fn same(expected: &Rows, found: &Rows) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let places = expected.keys().chain(found.keys());
    let differs =
        places.into_iter().find(|place| expected.get(*place) != found.get(*place)).expect("they differ");
    let (family, key) = differs;
    Err(format!(
        "{} rows, and {} before; {family}/{} is another",
        found.len(),
        expected.len(),
        String::from_utf8_lossy(key)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gap_of_whole_batches_that_both_show_is_excused() {
        let rows = Rows::from([((0, b"t00-0001".to_vec()), b"c0i3-aaa".to_vec())]);
        let (gap, wrong) = (Broken::Gap("a gap".into()), Broken::Wrong("half a batch".into()));
        let refused = "Corruption".to_string();
        assert!(excused(true, &gap, &rows, Ok(&rows), false));
        assert!(excused(false, &gap, &rows, Ok(&rows), true), "RocksDB's own");
        assert!(!excused(true, &gap, &rows, Ok(&rows), true), "WALs name each other");
        assert!(!excused(true, &wrong, &rows, Ok(&rows), false), "RocksDB shows the same, and it is no gap");
        assert!(!excused(false, &wrong, &rows, Ok(&rows), false));
        assert!(!excused(true, &gap, &rows, Ok(&Rows::new()), false), "RocksDB has other rows");
        assert!(!excused(true, &gap, &rows, Err(&refused), false));
    }

    #[test]
    fn a_state_that_cannot_be_copied_is_told_from_a_harness_that_fails() {
        let of = |errno| Unusable::copying(Path::new("/m/db"), &std::io::Error::from_raw_os_error(errno));
        assert!(matches!(of(libc::EIO), Unusable::Unreadable(_)));
        assert!(matches!(of(libc::ENOSPC), Unusable::Failed(_)), "the copy's own directory is full");
        assert!(matches!(of(libc::EMFILE), Unusable::Failed(_)));
    }

    #[test]
    fn excuses_are_few() {
        let tally = |unmountable, reference_refuses| Tally {
            states: 500,
            unmountable,
            reference_refuses,
            ..Tally::default()
        };
        assert_eq!(tally(3, 3).check(), Ok(()));
        assert!(tally(4, 0).check().unwrap_err().contains("do not mount"));
        assert!(tally(0, 4).check().unwrap_err().contains("RocksDB refuses"));
        assert!(Tally { unreadable: 2, ..tally(2, 0) }.check().is_err(), "they count together");
    }
}

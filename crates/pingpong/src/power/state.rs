//! One state of a disk: mounted, its databases copied, opened and judged.

use super::disk::{Disk, Record};
use super::fuse::Served;
use super::mounts::Kind;
use super::scenarios::{Made, NO_GAP, Plan, Upkeep};
use super::told::{Family, Story};
use crate::backups;
use crate::database::list_families;
use crate::features::OUTCROP;
use crate::history::{Lasting, Rows, judge, keeps_synced};
use crate::library::Api;
use crate::rows::{close, copy, open, rows};
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
    unmountable: u64,
    gaps: u64,
    reference_breaks: u64,
    reference_refuses: u64,
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
            "  {} states that the file system cannot mount; {} gaps among unsynced writes that both engines show; RocksDB: {} states not \
             as promised, {} refused, {} with other rows than Outcrop's, both allowed; {} opened by the one after the other, {} checkpoints \
             and backups",
            self.unmountable,
            self.gaps,
            self.reference_breaks,
            self.reference_refuses,
            self.differ,
            self.crossed,
            self.copies
        );
        let kinds: Vec<String> = self.by_kind.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  cycles on: {}", kinds.join(", "));
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
        if let Err(why) = self.copy_out(left, &story) {
            tally.unmountable += 1;
            if tally.unmountable <= 3 {
                println!("block-crashes: a state that {} cannot mount: {why}", self.kind.name);
            }
            return Ok(None);
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
        if self.random.one_in(3) {
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
    fn copy_out(&self, left: &Disk, story: &Story) -> Result<(), String> {
        let file = self.served.add(left.clone());
        let mounted_at = self.scratch.join("mounted");
        let copied = self.kind.mount(&file, &mounted_at).and_then(|_mounted| {
            let copy_of = |name: &str, to: &str| copy(&mounted_at.join(name), &self.scratch.join(to));
            copy_of("db", "outcrop")?;
            if let Some(checkpoint) = story.checkpoints.last() {
                let name = format!("checkpoint-{}-{}", self.plan.shape.cycle, checkpoint.number);
                copy_of(&name, "checkpoint")?;
            }
            if self.plan.upkeep == Upkeep::Backup {
                copy_of(&format!("backups-{}", self.plan.shape.cycle), "backups")?;
            }
            Ok(())
        });
        self.served.take(&file);
        copied.and_then(|()| copy(&self.scratch.join("outcrop"), &self.scratch.join("reference")))
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
        match of_reference {
            Err(_) => tally.reference_refuses += 1,
            Ok(rows) => {
                tally.reference_breaks += u64::from(judged(rows).is_err());
                tally.differ += u64::from(rows != found && judged(rows).is_ok() && judged(found).is_ok());
            }
        }
        match judged(found) {
            Ok(there) => {
                tally.lost += log.acknowledged().saturating_sub(there.iter().sum());
                Ok(())
            }
            // The exception of docs/reliability.md, or a database that RocksDB wrote and reads as Outcrop does.
            Err(why) if of_reference == Ok(found) && !(self.ours && self.never_a_gap()) => {
                keeps_synced(shape, log, self.before, found)
                    .or_else(|lost| if self.ours { Err(format!("{lost}; {why}")) } else { Ok(()) })?;
                tally.gaps += 1;
                if tally.gaps <= 3 {
                    println!("block-crashes: both engines show a gap on {}: {why}", self.kind.name);
                }
                Ok(())
            }
            Err(why) if self.ours => {
                let how = of_reference.map_or_else(Clone::clone, |rows| {
                    judged(rows).map_or_else(|why| why, |there| format!("as promised, {there:?}"))
                });
                Err(format!("{why}; {reference}: {how}"))
            }
            Err(_) => Ok(()),
        }
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
                .and_then(|rows| judge(&self.plan.shape, &checkpoint.log, self.before, &rows, lasting));
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
                    .and_then(|rows| judge(&self.plan.shape, &log, self.before, &rows, lasting));
            judged.map_err(|why| format!("backup {}: {why}", backup.number))?;
            tally.copies += 1;
        }
        Ok(())
    }
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

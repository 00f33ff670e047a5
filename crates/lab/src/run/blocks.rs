//! The blocks of a run: sessions of a block one after the other, or all of them taking turns step by step.
//!
//! ```text
//! together(slots of a block, or one slot):
//!     memory made present, canary -> data and child of each slot, stopped
//!     for each turn of the plan, and each slice of it, in balanced orders of targets: continue, step, stop
//!     children end -> outcomes, all at once
//! ```
//! Before it, if something ran, the plan's rest.
//! Invariants: at most one child of a run is not stopped. Data that a turn wrote is on the device before the next
//! begins. A child that fails ends its own session; outcomes of those that reach the end are recorded together, so
//! that a run that is killed does a block's sessions anew side by side.
//! Next: `session.rs`.

use super::engine_files::engine_facts;
use super::now;
use super::progress::{Progress, ProgressForm};
use super::session::{self, Ended, Session, Setting};
use crate::analysis::results::Results;
use crate::experiment::Order;
use crate::host::canary::{self, Canary};
use crate::planning::memory;
use crate::planning::plan::Slot;
use crate::report::text::duration;
use crate::run::child::Slice;
use crate::run::data_dir::{self, DataDir};
use crate::run::restore;
use crate::store::{EngineIdentity, Outcome, StepRecord, Store, StoreError};
use outcrop_lab_stats::verdict::MIN_PAIRS;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sessions in a row that may fail before a target's others are skipped.
const FAILURES: usize = 2;
/// Free bytes below which a failure is attributed to the disk.
const DISK_FULL: u64 = 64 << 20;
/// Number of the directory of target 0's data set; sessions have lower ones.
const DATASETS: usize = 1_000_000;

/// Why a run ends before its plan does.
fn disk_full(what: &str) -> String {
    format!("the disk is full ({what}); free space")
}

/// Whether a budget of `budget` seconds has no room for a block that would end at `end`, after `blocks` of them. Half a block
/// is worth nothing, so one that would end too late is not begun. The first always is, and those without which nothing is
/// decided may exceed the budget by half.
fn is_spent(budget: u64, blocks: usize, end: Duration) -> bool {
    let most = budget as f64 * if blocks < MIN_PAIRS { 1.5 } else { 1.0 };
    blocks > 0 && end.as_secs_f64() >= most
}

/// A run under way.
pub(super) struct Run<'a> {
    setting: Setting<'a>,
    /// The experiment.
    id: i64,
    data: &'a DataDir,
    /// Directories of the data sets that sessions copy.
    datasets: HashMap<usize, PathBuf>,
    /// Sessions in a row that failed, by target.
    failures: HashMap<usize, usize>,
    progress: Progress,
    /// The canary of the first session.
    usual: Option<Canary>,
    /// Something was run, and its data removed.
    worked: bool,
}

/// A session of a block whose child runs, with its place in the record and in the data directory.
struct Member<'a> {
    place: SessionPlace,
    session: Session<'a>,
}

/// Where a session is recorded, and where its data are.
struct SessionPlace {
    slot: Slot,
    id: i64,
    /// Number of its directory.
    number: usize,
    dir: PathBuf,
}

impl<'a> Run<'a> {
    /// A run of experiment `id` with databases in `data`, which says how far it is in `form`.
    pub fn new(setting: Setting<'a>, id: i64, data: &'a DataDir, form: ProgressForm) -> Run<'a> {
        Run {
            setting,
            id,
            data,
            datasets: HashMap::new(),
            failures: HashMap::new(),
            progress: Progress::new(form, id, setting.plan.estimate().sessions),
            usual: None,
            worked: false,
        }
    }

    /// How far it is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Runs what is not done yet.
    ///
    /// # Errors
    /// Why it stopped before its end.
    pub fn all(&mut self, store: &mut Store) -> Result<(), String> {
        let begun = Instant::now();
        let sessions = store.sessions(self.id)?;
        self.usual = sessions.first().map(|session| session.canary);
        let counted: HashSet<(i64, usize)> =
            sessions.iter().map(|session| (session.block, session.position)).collect();
        let slots = self.setting.plan.slots();
        let mut block_began = Duration::ZERO;
        for block in slots.chunk_by(|one, other| one.block == other.block) {
            let number = block[0].block;
            if number >= 0 {
                // As long as the last one: a block that was done before a resume takes no time and says nothing.
                let end = begun.elapsed() + (begun.elapsed() - block_began);
                if let Some(why) = self.enough(store, number as usize, end)? {
                    store.event(self.id, &now(), &why)?;
                    return Ok(());
                }
                block_began = begun.elapsed();
            }
            let is_left = |slot: &&Slot| !counted.contains(&(slot.block, slot.position));
            let left: Vec<Slot> = block.iter().filter(is_left).copied().collect();
            self.progress.done += block.len() - left.len();
            match self.setting.plan.order {
                Order::Sessions => left.chunks(1).try_for_each(|slot| self.rested(store, slot))?,
                Order::Steps if left.is_empty() => {}
                Order::Steps => self.rested(store, &left)?,
            }
        }
        Ok(())
    }

    /// Why no further block is needed after `blocks` of them, if none is; the next would end at `end`.
    fn enough(&self, store: &Store, blocks: usize, end: Duration) -> Result<Option<String>, String> {
        if let Some(budget) = self.setting.plan.budget_seconds.filter(|budget| is_spent(*budget, blocks, end))
        {
            let budget = duration(budget as f64);
            return Ok(Some(format!("the budget of {budget} had no room for another block after {blocks}")));
        }
        if blocks < self.setting.plan.rounds {
            return Ok(None);
        }
        let results = Results::load(store, self.id)?;
        let widest = results.widest_interval();
        Ok(match widest {
            Some(width) if width <= self.setting.plan.width => Some(format!(
                "after {blocks} blocks every interval was within {:.1} %",
                self.setting.plan.width * 100.0
            )),
            _ => None,
        })
    }

    /// As [`Run::together`], after the rest that the plan asks for if something was run before.
    fn rested(&mut self, store: &mut Store, slots: &[Slot]) -> Result<(), String> {
        if std::mem::replace(&mut self.worked, true) {
            std::thread::sleep(Duration::from_secs_f64(self.setting.plan.rest_seconds));
        }
        self.together(store, slots)
    }

    /// Runs the sessions of `slots` side by side, all of one block.
    fn together(&mut self, store: &mut Store, slots: &[Slot]) -> Result<(), String> {
        let (skipped, slots): (Vec<Slot>, Vec<Slot>) = slots.iter().partition(|slot| self.is_hopeless(slot));
        for slot in skipped {
            self.skip(store, slot)?;
        }
        if slots.is_empty() {
            return Ok(());
        }
        let sizes = &self.setting.plan.sizes;
        memory::make_present(memory::of_sessions(sizes, slots.len()));
        // Once, before any of them: between turns it would cost more time than it has to tell, and empty the caches.
        let canary = canary::run();
        self.notice_slowness(store, &canary)?;
        let pauses = slots.len() > 1;
        let first = self.progress.done;
        let mut members = Vec::new();
        for (index, slot) in slots.into_iter().enumerate() {
            members.extend(self.member(store, slot, first + index, &canary, pauses)?);
        }
        self.take_turns(store, &mut members, pauses)?;
        self.end(store, members, pauses)
    }

    /// Whether a target failed too often to be tried again.
    fn is_hopeless(&self, slot: &Slot) -> bool {
        self.failures.get(&slot.target).is_some_and(|failures| *failures >= FAILURES)
    }

    fn skip(&mut self, store: &Store, slot: Slot) -> Result<(), String> {
        let id = store.begin_session(self.id, slot, &now(), &Canary::default())?;
        let why = format!("{} failed {FAILURES} times in a row", self.setting.plan.targets[slot.target].name);
        store.end_session(id, Outcome::Skipped, &now(), Some(&why), &EngineIdentity::default())?;
        self.progress.done += 1;
        Ok(())
    }

    /// A session with its data and its child, which waits; `None` if it failed already.
    fn member(
        &mut self,
        store: &Store,
        slot: Slot,
        number: usize,
        canary: &Canary,
        pauses: bool,
    ) -> Result<Option<Member<'a>>, String> {
        let dir = self.data.session(number)?;
        let prepared = self.prepare(store, slot, &dir);
        let place =
            SessionPlace { slot, id: store.begin_session(self.id, slot, &now(), canary)?, number, dir };
        let plan = self.setting.plan;
        let started = prepared.and_then(|()| {
            let steps = plan.shared_steps()..plan.steps.len();
            let session = Session::start(self.setting, slot, steps, &place.dir)?;
            if pauses {
                session.pause()?;
                // The copied files.
                data_dir::write_out(&place.dir).map_err(Ended::Failed)?;
            }
            Ok(session)
        });
        match started {
            Ok(session) => Ok(Some(Member { place, session })),
            Err(ended) => self.close(store, &place, ended).map(|()| None),
        }
    }

    /// Every turn of the plan; a session that fails leaves `members`.
    fn take_turns(
        &mut self,
        store: &mut Store,
        members: &mut Vec<Member<'a>>,
        pauses: bool,
    ) -> Result<(), String> {
        let plan = self.setting.plan;
        let turns = plan.turns();
        for (number, steps) in turns.iter().enumerate() {
            let Some(block) = members.first().map(|member| member.place.slot.block) else { break };
            let orders = plan.turn_orders(block, steps);
            let all = orders.len() * plan.targets.len();
            let slices = orders.len();
            let each = orders.into_iter().enumerate().flat_map(|(number, order)| {
                order.into_iter().map(move |target| (Slice { number, of: slices }, target))
            });
            for (before, (slice, target)) in each.enumerate() {
                let Some(at) = members.iter().position(|member| member.place.slot.target == target) else {
                    continue;
                };
                let share = before as f64 / all as f64;
                self.progress.part = (number as f64 + share) / turns.len() as f64 * members.len() as f64;
                if let Err(ended) = self.turn(store, &mut members[at], steps, slice, pauses) {
                    let Member { place, session } = members.remove(at);
                    // Its child is gone before the next turn begins.
                    drop(session);
                    self.close(store, &place, ended)?;
                }
            }
        }
        self.progress.part = 0.0;
        Ok(())
    }

    /// One turn of one member, or a slice of it, and what it wrote brought to the device.
    fn turn(
        &mut self,
        store: &mut Store,
        member: &mut Member<'_>,
        steps: &Range<usize>,
        slice: Slice,
        pauses: bool,
    ) -> Result<(), Ended> {
        let id = member.place.id;
        let mut record = |step: &StepRecord<'_>| store.record_step(id, step);
        member.session.turn(steps.clone(), slice, pauses, &mut self.progress, &mut record)?;
        // Also after steps that only read: they may have waited for a compaction first.
        let may_have_written = slice.is_first() || !self.setting.plan.steps[steps.end - 1].only_reads();
        if pauses && may_have_written {
            data_dir::write_out(&member.place.dir).map_err(Ended::Failed)?;
        }
        Ok(())
    }

    /// Lets every child end, and records how.
    fn end(&mut self, store: &Store, members: Vec<Member<'a>>, pauses: bool) -> Result<(), String> {
        let ended: Vec<(SessionPlace, Ended)> =
            members.into_iter().map(|member| (member.place, member.session.end(pauses))).collect();
        let mut places = Vec::new();
        store.all_or_nothing(|| {
            for (place, ended) in ended {
                self.conclude(store, &place, ended)?;
                places.push(place);
            }
            Ok::<(), String>(())
        })?;
        places.iter().try_for_each(|place| self.data.remove(place.number))
    }

    /// Records the end of one session and removes its data.
    fn close(&mut self, store: &Store, place: &SessionPlace, ended: Ended) -> Result<(), String> {
        self.conclude(store, place, ended)?;
        self.data.remove(place.number)
    }

    /// Puts the target's data into `dir`, if sessions of this plan do not load their own.
    fn prepare(&mut self, store: &Store, slot: Slot, dir: &Path) -> Result<(), Ended> {
        if self.setting.plan.shared_steps() == 0 {
            return Ok(());
        }
        // The A/A twin starts from the base's own data: the two then differ in nothing.
        let owner = self.setting.plan.targets[slot.target].twin_of.unwrap_or(slot.target);
        if !self.datasets.contains_key(&owner) {
            let home = self.data.session(DATASETS + owner).map_err(Ended::Failed)?;
            self.load(owner, &home)?;
            let name = &self.setting.plan.targets[owner].name;
            let text = format!("the data set of {name} was loaded");
            store.event(self.id, &now(), &text).map_err(Ended::Store)?;
            self.datasets.insert(owner, home);
        }
        restore::restore(&self.datasets[&owner], dir).map(|_| ()).map_err(Ended::Failed)
    }

    /// Loads the data set of `owner` into `home`.
    fn load(&mut self, owner: usize, home: &Path) -> Result<(), Ended> {
        let slot = Slot { block: session::DATASET, position: 0, target: owner };
        let steps = 0..self.setting.plan.shared_steps();
        let load = || -> Result<Ended, Ended> {
            let mut session = Session::start(self.setting, slot, steps.clone(), home)?;
            for step in steps {
                session.turn(step..step + 1, Slice::WHOLE, false, &mut self.progress, &mut |_| Ok(()))?;
            }
            Ok(session.end(false))
        };
        match load().unwrap_or_else(|ended| ended) {
            Ended::Done => Ok(()),
            Ended::Failed(error) => Err(Ended::Failed(format!("loading the data set: {error}"))),
            ended => Err(ended),
        }
    }

    fn conclude(&mut self, store: &Store, place: &SessionPlace, ended: Ended) -> Result<(), String> {
        let (slot, id) = (place.slot, place.id);
        let facts = engine_facts(&place.dir);
        self.progress.done += 1;
        let identity = EngineIdentity { version: facts.version, git_sha: facts.git_sha };
        let keep_log = || facts.log.as_ref().map_or(Ok(()), |log| store.record_engine_log(id, log));
        match ended {
            Ended::Done => {
                self.failures.remove(&slot.target);
                if let Some(options) = &facts.options {
                    store.record_options(self.id, slot.target, options)?;
                }
                keep_log()?;
                Ok(store.end_session(id, Outcome::Done, &now(), None, &identity)?)
            }
            Ended::Store(StoreError::Full(text)) => Err(disk_full(&text)),
            Ended::Store(error) => Err(error.to_string()),
            Ended::NotStarted(error) => Err(error),
            Ended::Failed(error) => {
                if self.data.free().is_ok_and(|free| free < DISK_FULL) {
                    return Err(disk_full(&error));
                }
                *self.failures.entry(slot.target).or_default() += 1;
                let name = &self.setting.plan.targets[slot.target].name;
                // Blocks have numbers from 1 for people.
                let text = match slot.block {
                    block if block < 0 => format!("{name}, warm-up: {error}"),
                    block => format!("{name}, block {}: {error}", block + 1),
                };
                self.progress.tell(&text);
                store.event(self.id, &now(), &text)?;
                keep_log()?;
                Ok(store.end_session(id, Outcome::Failed, &now(), Some(&error), &identity)?)
            }
        }
    }

    fn notice_slowness(&mut self, store: &Store, canary: &Canary) -> Result<(), String> {
        /// Share by which a machine may be slower than at the first session.
        const SLOWER: f64 = 0.25;
        let usual = *self.usual.get_or_insert(*canary);
        let slower = canary.slower_than(&usual);
        if slower > SLOWER {
            let text = format!("the machine was {:.0} % slower than at the start", slower * 100.0);
            store.event(self.id, &now(), &text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_exceeded_for_a_verdict_and_for_nothing_else() {
        let spent = |blocks, seconds| is_spent(100, blocks, Duration::from_secs(seconds));
        assert!(!spent(0, 1000), "the first block is begun whatever it takes");
        assert!(!spent(1, 99) && !spent(MIN_PAIRS, 99));
        assert!(!spent(1, 149) && !spent(MIN_PAIRS - 1, 149), "fewer decide nothing");
        assert!(spent(1, 150) && spent(MIN_PAIRS - 1, 150));
        assert!(spent(MIN_PAIRS, 100));
    }
}

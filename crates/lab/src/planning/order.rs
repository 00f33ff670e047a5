//! In what order the targets of a block work (`balanced.rs` draws it), what that takes of memory, and whether this machine has it.
//!
//! ```text
//! sessions   A: load read write close | B: load read write close | C: ...
//! steps      A B C load | C A B read | B C A write | all close       who is not at work is stopped
//! slices     A B C load | B A C read, A C B read, ... | B C A write | all close
//! ```
//! A machine's speed moves within minutes, so two targets are best compared by what they did seconds apart: by steps. It
//! moves within seconds where it is shared, so steps that read are done in slices.
//! But then all of them are in memory at once, which they must fit, and share a page cache, which must hold all files
//! or none.
//! Invariant: whether targets fit is decided by the plan alone, before anything runs; a resumed run keeps the order.
//! Next: `run/blocks.rs`, which carries it out.

use crate::experiment::{Design, Experiment, Order, WorkloadKind};
use crate::planning::balanced;
use crate::planning::plan::{Plan, PlannedTarget, drawn_orders};
use crate::planning::scale::{self, Machine};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Seconds that a reading step runs unmeasured where targets take turns: the first tenth of a second after a pause is
/// not like the rest. Source: measured, `docs/design/0002-judgement.md`.
const RUN_IN: f64 = 0.2;

/// Seconds of a slice, unless the experiment says otherwise. Source: measured, `docs/design/0002-judgement.md`.
const SLICE: f64 = 0.2;

/// Share of the machine's memory that targets may fill: the rest is the system's, the lab's and other people's.
const USABLE: f64 = 0.8;

/// Keys below which an experiment that leaves them to the machine is not made smaller to fit memory.
const LEAST_KEYS: u64 = 200_000;

/// The whole that the plan of a view is a part of: what its orders are made from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Whole {
    /// How many targets it has.
    pub targets: usize,
    /// The order of all of them in each block.
    pub blocks: Vec<Vec<usize>>,
    /// The number in it of each target of the view.
    pub kept: Vec<usize>,
}

impl Plan {
    /// Leaves only the targets `kept`, which then are counted from 0 in this order. Places and turns stay as they were.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        let new = |target: usize| kept.iter().position(|index| *index == target);
        self.base = new(self.base).expect("the base is kept");
        let whole = Whole {
            targets: self.all_targets(),
            blocks: self.all_blocks().to_vec(),
            kept: kept.iter().map(|target| self.number_of_all(*target)).collect(),
        };
        self.targets = kept.iter().map(|index| self.targets[*index].clone()).collect();
        for target in &mut self.targets {
            target.twin_of = target.twin_of.and_then(new);
        }
        for block in &mut self.blocks {
            *block = block.iter().filter_map(|target| new(*target)).collect();
        }
        self.whole = Some(whole);
    }

    /// How many targets took turns, those included that are not in view.
    fn all_targets(&self) -> usize {
        self.whole.as_ref().map_or(self.targets.len(), |whole| whole.targets)
    }

    /// The blocks with all targets that took turns.
    fn all_blocks(&self) -> &[Vec<usize>] {
        self.whole.as_ref().map_or(&self.blocks, |whole| &whole.blocks)
    }

    /// The number of `target` among all that took turns.
    fn number_of_all(&self, target: usize) -> usize {
        self.whole.as_ref().map_or(target, |whole| whole.kept[target])
    }

    /// The steps of a session in the pieces that are done without a break: each step, with the one that warms caches
    /// for it before it.
    pub fn turns(&self) -> Vec<Range<usize>> {
        let (first, end) = (self.shared_steps(), self.steps.len());
        // A turn ends after each step that is no warm-up, and after the last.
        let ends =
            (first..end).filter(|step| !self.steps[*step].warms_up() || step + 1 == end).map(|step| step + 1);
        let starts = std::iter::once(first).chain(ends.clone());
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }

    /// The plan's targets in the order in which they take the turn of `steps`, for each slice of it.
    pub fn turn_orders(&self, block: i64, steps: &Range<usize>) -> Vec<Vec<usize>> {
        let orders = self.orders_of_all(block, steps);
        let Some(whole) = &self.whole else { return orders };
        let new = |target: usize| whole.kept.iter().position(|kept| *kept == target);
        orders.into_iter().map(|order| order.into_iter().filter_map(new).collect()).collect()
    }

    /// As [`Plan::turn_orders`], of all targets that took turns, by their numbers then.
    fn orders_of_all(&self, block: i64, steps: &Range<usize>) -> Vec<Vec<usize>> {
        let targets = self.all_targets();
        let slices = self.slices(steps.end - 1);
        if !self.balanced {
            let seed = self.block_seed(block).wrapping_add(steps.start as u64 * 1000 + 999);
            return drawn_orders(targets, slices, seed);
        }
        // A design for each step, whose rows are its blocks one after the other, and within them its slices.
        let seed = self.seed.wrapping_add(steps.start as u64 * 1000 + 999);
        let first = block.max(0) as usize * slices;
        (first..first + slices).map(|row| balanced::order(targets, row, seed)).collect()
    }

    /// At which place of its turn a target works in a step and block; `None` where it has no one place, in slices, and
    /// where the record does not say. Targets that are not in view count: it is the place that the session had.
    pub fn place(&self, step: usize, target: usize, block: i64) -> Option<usize> {
        let target = self.number_of_all(target);
        match self.order {
            Order::Sessions => {
                self.all_blocks().get(usize::try_from(block).ok()?)?.iter().position(|other| *other == target)
            }
            Order::Steps => {
                let turn = self.turns().into_iter().find(|turn| turn.contains(&step))?;
                let orders = self.orders_of_all(block, &turn);
                let [order] = orders.as_slice() else { return None };
                order.iter().position(|other| *other == target)
            }
        }
    }

    /// In how many slices a step is done.
    pub fn slices(&self, step: usize) -> usize {
        let step = &self.steps[step];
        if self.slice_seconds <= 0.0 || !step.may_be_sliced() {
            return 1;
        }
        ((step.step.seconds / self.slice_seconds).round() as usize).max(1)
    }

    /// Bytes of memory that are in use at once: block caches, memtables, processes, and files in the page cache.
    pub fn memory_bytes(&self) -> u64 {
        let each = self.targets.iter().map(|target| self.memory_of(target));
        match self.order {
            Order::Steps => each.sum(),
            Order::Sessions => each.max().unwrap_or(0),
        }
    }

    fn memory_of(&self, target: &PlannedTarget) -> u64 {
        /// Memory of a process beside block cache and memtables: code, stacks, table readers.
        const BESIDE: u64 = 64 << 20;
        let open = &target.open;
        let memtables = open.write_buffer_size as u64 * open.max_write_buffer_number.max(1) as u64;
        let files = if open.direct_io { 0 } else { self.sizes.data_bytes() };
        open.cache_size as u64 + memtables + files + BESIDE
    }

    /// A line about the steps that are sliced, if any are.
    pub fn slices_sentence(&self) -> Option<String> {
        let seconds = self.slice_seconds;
        let any = (0..self.steps.len()).any(|step| self.slices(step) > 1);
        any.then(|| format!("steps that read are done in slices of {seconds} s, in turn"))
    }

    /// How targets take turns, for reports; the reason, if it is not as usual.
    pub fn order_sentence(&self) -> String {
        let why =
            self.order_reason.as_ref().map_or(String::new(), |why| format!("; not by steps since {why}"));
        match self.order {
            Order::Steps => {
                let slices = self.slices_sentence().map_or(String::new(), |text| format!("; {text}"));
                let order = self.order.meaning();
                let how = if self.balanced { "balanced orders" } else { "an order drawn anew" };
                format!("{order}, in {how}; who is not at work is stopped{slices}")
            }
            Order::Sessions => format!("{}{why}", self.order.meaning()),
        }
    }

    /// Why its targets cannot take turns, if they cannot.
    fn cannot_take_turns(&self) -> Option<String> {
        if self.kind == WorkloadKind::Iobuf {
            let why = "files that do not fit into memory would push each other out of the page cache";
            return Some(why.to_string());
        }
        let bytes = self.memory_bytes();
        (bytes as f64 > self.memory as f64 * USABLE).then(|| {
            format!(
                "{} targets in memory at once would take {:.1} of {:.1} GB, and {:.0} % is the most",
                self.targets.len(),
                gigabytes(bytes),
                gigabytes(self.memory),
                USABLE * 100.0
            )
        })
    }
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// The order that is tried first, its run-in, and the seconds of a slice.
pub(crate) fn tried(design: &Design) -> (Order, f64, f64) {
    match design.order {
        Some(Order::Sessions) => (Order::Sessions, 0.0, 0.0),
        Some(Order::Steps) | None => (Order::Steps, RUN_IN, design.slice_seconds.unwrap_or(SLICE)),
    }
}

/// Takes fewer keys, where they are left to the machine, if its targets then can take turns.
pub(crate) fn fit_keys(plan: &mut Plan, experiment: &Experiment, machine: Machine) {
    let free = experiment.workload.keys.is_none() && experiment.workload.profile.is_none();
    if !free || plan.order == Order::Sessions {
        return;
    }
    let mut smaller = plan.clone();
    while smaller.cannot_take_turns().is_some() {
        let keys = smaller.sizes.keys / 10 * 9;
        if keys < LEAST_KEYS {
            return;
        }
        scale::set_keys_of(&mut smaller, experiment, keys, machine);
    }
    *plan = smaller;
}

/// Decides the order of a plan whose sizes are final.
///
/// # Errors
/// A sentence if the experiment asks for steps and they cannot be had.
pub(crate) fn decide_order(plan: &mut Plan, experiment: &Experiment) -> Result<(), String> {
    decide_order_as_asked(plan, experiment.design.order)
}

/// As [`decide_order`], for an experiment that asks for this order, if for any.
///
/// # Errors
/// As [`decide_order`].
pub(crate) fn decide_order_as_asked(plan: &mut Plan, asked: Option<Order>) -> Result<(), String> {
    if plan.order == Order::Sessions {
        return Ok(());
    }
    match plan.cannot_take_turns() {
        None => Ok(()),
        Some(why) if asked.is_some() => {
            Err(format!("order = \"steps\" cannot be had: {why}; use fewer keys, or order = \"sessions\""))
        }
        Some(why) => {
            (plan.order, plan.order_reason) = (Order::Sessions, Some(why));
            (plan.run_in, plan.slice_seconds) = (0.0, 0.0);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::planning::plan::plan;

    const SMALL: &str = "title = 't'\nsteps = ['fillseq', 'warm', 'readrandom', 'overwritesome', 'fwdrange']\n\
        [workload]\nkind = 'byrx'\n[design]\nrounds = 3\nseed = 7\n\
        [[target]]\nengine = 'outcrop'\nconfigs = ['a', 'b']\n[config.a]\n[config.b]\n";

    fn planned(text: &str, memory: u64) -> Result<Plan, String> {
        plan(&parse("t.toml", text).unwrap(), 1, memory, 4)
    }

    #[test]
    fn targets_take_turns_and_a_warm_up_stays_with_the_step_it_warms_for() {
        let plan = planned(SMALL, 8 << 30).unwrap();
        assert_eq!((plan.order, plan.run_in), (Order::Steps, RUN_IN));
        assert_eq!(plan.turns(), [0..1, 1..3, 3..4, 4..5]);
        let order_of = |block, step: usize| plan.turn_orders(block, &(step..step + 1)).remove(0);
        let order = order_of(0, 1);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!((sorted, order_of(0, 1)), (vec![0, 1, 2], order));
        let firsts = |target| (0..60).any(|block| order_of(block, 3)[0] == target);
        assert!((0..3).all(firsts), "all come first at times");
        let other = |step| (0..60).any(|block| order_of(block, 0) != order_of(block, step));
        assert!(other(1) && other(3), "each step has an order of its own");
    }

    #[test]
    fn in_each_step_each_target_is_as_often_at_each_place() {
        let plan = planned(SMALL, 8 << 30).unwrap();
        for step in [0, 3] {
            let place = |target, block| plan.place(step, target, block).unwrap();
            for target in 0..3 {
                let places: Vec<usize> = (0..6).map(|block| place(target, block)).collect();
                let times = |wanted| places.iter().filter(|place| **place == wanted).count();
                assert_eq!(
                    [times(0), times(1), times(2)],
                    [2; 3],
                    "step {step}, target {target}: {places:?}"
                );
            }
        }
        assert_eq!(plan.place(4, 0, 0), None, "slices have no one place");
        let old = Plan { balanced: false, ..plan.clone() };
        assert_eq!(old.turn_orders(0, &(3..4)), old.turn_orders(0, &(3..4)));
        assert!((0..60).any(|block| old.turn_orders(block, &(3..4)) != plan.turn_orders(block, &(3..4))));
    }

    #[test]
    fn a_view_leaves_places_and_the_order_of_those_that_are_in_it_as_they_were() {
        for order in ["", "order = 'sessions'"] {
            let more = SMALL.replace("seed = 7", &format!("seed = 7\n{order}"));
            let mut whole = planned(&more, 8 << 30).unwrap();
            for balanced in [true, false] {
                whole.balanced = balanced;
                let mut view = whole.clone();
                view.keep(&[0, 2]);
                let mut narrower = view.clone();
                narrower.keep(&[0]);
                for (step, block) in
                    [0, 2, 3].into_iter().flat_map(|step| (0..3).map(move |block| (step, block)))
                {
                    for (new, old) in [0, 2].into_iter().enumerate() {
                        assert_eq!(view.place(step, new, block), whole.place(step, old, block));
                    }
                    assert_eq!(narrower.place(step, 0, block), whole.place(step, 0, block));
                }
                let turn = 1..3;
                let first = |plan: &Plan, one, other| -> Vec<bool> {
                    let at = |order: &[usize], wanted| order.iter().position(|target| *target == wanted);
                    let orders = plan.turn_orders(1, &turn);
                    orders.iter().map(|order| at(order, one) < at(order, other)).collect()
                };
                assert_eq!(first(&view, 0, 1), first(&whole, 0, 2), "slices");
                assert!(view.turn_orders(0, &turn).iter().all(|order| order.len() == 2));
                assert_eq!(view.targets[1].twin_of, Some(0));
            }
        }
    }

    #[test]
    fn steps_that_read_until_time_ends_them_are_done_in_slices() {
        let slices = |more: &str| {
            let plan = planned(&SMALL.replace("seed = 7", &format!("seed = 7\n{more}")), 8 << 30).unwrap();
            (0..plan.steps.len()).map(|step| plan.slices(step)).collect::<Vec<_>>()
        };
        assert_eq!(slices("slice_seconds = 2.0")[3..], [1, 30], "a minute of reads");
        assert_eq!(slices("slice_seconds = 0.0"), [1; 5]);
        assert_eq!(slices("order = 'sessions'"), [1; 5]);
        let plan = planned(SMALL, 8 << 30).unwrap();
        let orders = plan.turn_orders(0, &(1..3));
        assert_eq!(orders.len(), plan.slices(2));
        assert!(orders.iter().any(|order| *order != orders[0]), "each slice has an order of its own");
        let due = format!("{SMALL}[step.readrandom]\narrival_rate = 10\n");
        assert_eq!(planned(&due, 8 << 30).unwrap().slices(2), 1);
    }

    #[test]
    fn all_targets_count_and_keys_that_are_the_machines_are_made_to_fit() {
        let sessions = SMALL.replace("seed = 7", "seed = 7\norder = 'sessions'");
        let (one, three) = (planned(&sessions, 64 << 30).unwrap(), planned(SMALL, 64 << 30).unwrap());
        assert_eq!((one.order, one.run_in), (Order::Sessions, 0.0));
        assert_eq!(three.memory_bytes(), 3 * one.memory_bytes());
        let fitted = planned(SMALL, 8 << 30).unwrap();
        assert_eq!(three.sizes.keys, 2_000_000);
        assert!(
            fitted.sizes.keys < 2_000_000
                && fitted.memory_bytes() as f64 <= 0.8 * f64::from(8 << 20) * 1024.0
        );
        assert_eq!(fitted.targets[2].open.cache_size, fitted.sizes.cache, "the cache follows the keys");
        assert_eq!(planned(&sessions, 8 << 30).unwrap().sizes.keys, 2_000_000, "one at a time fits");
    }

    #[test]
    fn what_does_not_fit_goes_by_sessions_and_says_so_or_is_refused() {
        let large = SMALL.replace("kind = 'byrx'", "kind = 'byrx'\nkeys = 2000000");
        let plan = planned(&large, 4 << 30).unwrap();
        assert_eq!((plan.order, plan.run_in, plan.sizes.keys), (Order::Sessions, 0.0, 2_000_000));
        let said = plan.order_sentence();
        assert!(
            said.contains("3 targets in memory at once would take") && said.contains("of 4.0 GB"),
            "{said}"
        );
        assert_eq!(plan.cautions().iter().filter(|caution| caution.contains("3 targets")).count(), 1);
        let asked = |text: &str| text.replace("seed = 7", "seed = 7\norder = 'steps'");
        let error = planned(&asked(&large), 4 << 30).unwrap_err();
        assert!(error.contains("fewer keys, or order = \"sessions\""), "{error}");
        let buffered = SMALL.replace("byrx", "iobuf");
        assert!(planned(&buffered, 64 << 30).unwrap().order_sentence().contains("page cache"));
        assert!(planned(&asked(&buffered), 64 << 30).unwrap_err().contains("page cache"));
    }
}

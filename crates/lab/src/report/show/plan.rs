//! A plan as text: the steps, their time, and the differences that could be seen.

use crate::analysis::noise::{NoiseModel, Sight};
use crate::analysis::stalls;
use crate::experiment::Order;
use crate::experiment::steps::PlannedStep;
use crate::planning::plan::Plan;
use crate::report::text::{WIDTH, cut, duration, fold, paragraph, thousands};
use outcrop_lab_stats::verdict::MIN_PAIRS;
use std::fmt::Write;

/// A plan for people, on a machine whose noise is known as `noise` says.
pub fn plan(plan: &Plan, noise: &NoiseModel) -> String {
    let estimate = plan.estimate();
    let mut text = paragraph("", &plan.title, 0);
    if !plan.question.is_empty() {
        text.push_str(&paragraph("", &plan.question, 0));
    }
    text.push_str("\ntargets\n");
    for (index, target) in plan.targets.iter().enumerate() {
        let mark = match (index == plan.base, target.twin_of) {
            (true, _) => "  base",
            (false, Some(_)) => "  base again: shows the noise",
            _ => "",
        };
        let _ = writeln!(text, "  {}{mark}", cut(&target.name, WIDTH - 2 - mark.chars().count()));
    }
    for (name, why) in &plan.left_out {
        text.push_str(&paragraph(&format!("  {name}  "), &format!("left out: {why}"), 6));
    }
    let sizes = &plan.sizes;
    let _ = writeln!(
        text,
        "\ndata     {} keys of {} + {} B, {} MB; {} MB cache; {} thread(s)\nsteps    {}",
        thousands(sizes.keys as f64),
        sizes.key_size,
        sizes.value_text(),
        sizes.data_bytes() >> 20,
        sizes.cache >> 20,
        sizes.threads,
        fold(&plan.steps.iter().map(|step| step.step.name.as_str()).collect::<Vec<_>>(), ", ", 9)
    );
    let most = plan.blocks.len();
    let blocks =
        if most > plan.rounds { format!("{} to {most}", plan.rounds) } else { plan.rounds.to_string() };
    let _ = writeln!(
        text,
        "blocks   {blocks}, each target once in each, balanced, from seed {}\n\
         order    {}\n\
         sessions {}, about {}; {} GB of disk and {} of memory at once",
        plan.seed,
        plan.order.meaning(),
        estimate.sessions,
        duration(estimate.seconds),
        estimate.disk_bytes.div_ceil(1 << 30),
        estimate.memory_bytes.div_ceil(1 << 30),
    );
    if let Some(slices) = plan.slices_sentence() {
        let _ = writeln!(text, "slices   {slices}");
    }
    if plan.rest_seconds > 0.0 {
        let before = if plan.order == Order::Steps { "block" } else { "session" };
        let _ = writeln!(text, "rest     {} before each {before}", duration(plan.rest_seconds));
    }
    let judged = judged_alone(plan, noise);
    text.push_str(&paragraph("sees     ", &sight(&noise.sights(plan, plan.rounds), judged), 9));
    if let Some(said) = few_blocks(plan, judged.0) {
        text.push_str(&paragraph("few      ", &said, 9));
    }
    text.push('\n');
    text.push_str(&first_orders(plan));
    for caution in plan.cautions() {
        text.push_str(&paragraph("\n", &caution, 0));
    }
    text
}

/// The smallest changes that `sights` tell: where earlier experiments know the scatter, on a usual step and on the one that scatters
/// most; and on a usual one of the others. With one block there are none, and `judged` steps of so many have verdicts.
fn sight(sights: &[Sight], (judged, all): (usize, usize)) -> String {
    let of = |sight: &Sight| sight.change.unwrap_or(f64::INFINITY);
    let mut ordered: Vec<&Sight> = sights.iter().collect();
    ordered.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let (known, assumed): (Vec<&Sight>, Vec<&Sight>) =
        ordered.into_iter().partition(|sight| sight.pairs.is_some());
    let change = |what: &str, sight: &Sight| {
        sight.change.map_or("nothing".to_string(), |change| format!("{what} of {:.1} %", change * 100.0))
    };
    let percent = |sight: &Sight| format!("{:.1}", sight.log_sd * 100.0);
    let rule = "by the rule of the verdict, one step of all having changed";
    let of_others = assumed.get(assumed.len() / 2);
    match (&known[..], of_others) {
        ([], None) if judged > 0 => {
            format!(
                "one block has no scatter of its own: {judged} of {all} steps are judged by that of equals on this machine"
            )
        }
        ([], None) => "nothing: one block has no scatter to judge by".to_string(),
        ([], Some(usual)) if usual.change.is_none() => {
            "nothing in 4 of 5 cases: too few blocks for the scatter of pairs".to_string()
        }
        ([], Some(usual)) => {
            let change = change("a slowdown", usual);
            format!("{change} in 4 of 5 cases, if pairs scatter by {} %; {rule}", percent(usual))
        }
        (known, of_others) => {
            let (usual, worst) = (known[known.len() / 2], known[known.len() - 1]);
            let pairs: usize = known.iter().filter_map(|sight| sight.pairs).sum();
            let found = change("a slowdown", usual);
            let mut text = if known.len() == 1 {
                let name = &usual.step;
                format!(
                    "{found} on {name} in 4 of 5 cases: pairs of equals scattered by {} % on this machine, in {pairs} pairs",
                    percent(usual)
                )
            } else {
                format!(
                    "{found} on a usual step and {} on {} in 4 of 5 cases: pairs of equals scattered by {} and {} % on this \
                     machine, in {pairs} pairs of {} steps",
                    change("one", worst),
                    worst.step,
                    percent(usual),
                    percent(worst),
                    known.len()
                )
            };
            if let Some(other) = of_others {
                let _ = write!(
                    text,
                    "; {} on others, if pairs scatter by {} % there",
                    change("one", other),
                    percent(other)
                );
            }
            let _ = write!(text, "; {rule}");
            text
        }
    }
}

/// Of the steps in reports, those of which a single pair is judged, and all.
fn judged_alone(plan: &Plan, noise: &NoiseModel) -> (usize, usize) {
    let reported = plan.reported();
    let steps = plan.steps.iter().filter(|step| reported.contains(&step.step.name));
    (steps.filter(|step| noise.of(plan, step).is_some()).count(), reported.len())
}

/// The verdicts that six blocks or fewer cannot give, and how many blocks can; nothing of more blocks.
///
/// Throughput and tails are judged by intervals, from [`MIN_PAIRS`] on. Stalls have an exact test: of n pairs it knows no probability
/// below 2 / 2^n, which a report corrects for its cells: the measures of each step whose operations are many. Of `judged` steps one pair
/// alone is judged.
fn few_blocks(plan: &Plan, judged: usize) -> Option<String> {
    const FEW: usize = 6;
    const ALPHA: f64 = 0.05;
    let (blocks, reported, others) = (plan.rounds, plan.reported(), plan.targets.len() - 1);
    if blocks > FEW || reported.is_empty() || others == 0 {
        return None;
    }
    if blocks == 1 && judged > 0 {
        return Some(format!(
            "one block has no verdict on other steps, and none on tails and stalls: --rounds {MIN_PAIRS}"
        ));
    }
    if blocks < MIN_PAIRS {
        return Some(format!("below {MIN_PAIRS} blocks every verdict is unknown: --rounds {MIN_PAIRS}"));
    }
    let is_many =
        |step: &&PlannedStep| step.step.kind.has_many_operations() && reported.contains(&step.step.name);
    let measures = stalls::MEASURES.len();
    let cells = plan.steps.iter().filter(is_many).count() * others * measures;
    if cells == 0 {
        return None;
    }
    let least = |blocks: usize| 2.0 / (blocks as f64).exp2();
    let enough = (FEW + 1..).find(|more| least(*more) * cells as f64 <= ALPHA)?;
    let stalls = if least(blocks) > ALPHA {
        "no stall"
    } else {
        "stalls only where most of the cells that stalled differ"
    };
    let alike =
        if blocks > MIN_PAIRS { ", of throughput only a change on which all of them agree" } else { "" };
    Some(format!(
        "{blocks} blocks can call {stalls}{alike}: the exact test of so few pairs gives no p below {:.3}. If all of the \
         {cells} cells here stall ({measures} measures of each step), it takes {enough} to call the one that differs: --rounds {enough}",
        least(blocks)
    ))
}

/// The orders that come first: of blocks, or of the steps of the first block.
fn first_orders(plan: &Plan) -> String {
    let names = |order: &[usize]| {
        let names: Vec<&str> = order.iter().map(|target| plan.targets[*target].name.as_str()).collect();
        fold(&names, ", ", 5)
    };
    let mut text = String::new();
    match plan.order {
        Order::Sessions => {
            text.push_str("first blocks\n");
            for (number, block) in plan.blocks.iter().take(3).enumerate() {
                let _ = writeln!(text, "  {}  {}", number + 1, names(block));
            }
        }
        Order::Steps => {
            text.push_str("first turns\n");
            for (number, turn) in plan.turns().iter().take(3).enumerate() {
                let _ = writeln!(text, "  {}  {}", number + 1, names(&plan.turn_orders(0, turn)[0]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcrop_lab_load::StepKind;

    #[test]
    fn few_blocks_are_told_what_they_cannot_decide_and_how_many_can() {
        let (_temp, store) =
            crate::testing::fake_record(1, &["fillseq", "readrandom"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let mut made = store.experiment(1).unwrap().plan;
        let mut said = |rounds: usize| {
            made.rounds = rounds;
            let text = plan(&made, &NoiseModel::default());
            // Lines are folded.
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // Three measures of two steps of two targets beside the base are twelve cells: 2 / 2^9 * 12 is 0.047, 2 / 2^8 * 12 is 0.094.
        assert!(said(3).contains("below 5 blocks every verdict is unknown"), "{}", said(3));
        // Throughput is judged by its interval from five on: only stalls need more.
        let five = said(5);
        assert!(five.contains("5 blocks can call no stall: the exact test"), "{five}");
        assert!(
            five.contains(
                "If all of the 12 cells here stall (3 measures of each step), it takes 9 to call the one that differs: --rounds 9"
            ),
            "{five}"
        );
        assert!(!five.contains("throughput"), "{five}");
        let six = said(6);
        assert!(
            six.contains("only a change on which all of them agree") && six.contains("--rounds 9"),
            "{six}"
        );
        assert!(!said(7).contains("--rounds"));
        // One that takes the step's whole time is not judged for stalls.
        made.steps[1].step.kind = StepKind::ReadSeq;
        made.rounds = 5;
        assert!(few_blocks(&made, 0).unwrap().contains("all of the 6 cells"), "{:?}", few_blocks(&made, 0));
    }

    fn sight_of(step: &str, log_sd: f64, pairs: Option<usize>) -> Sight {
        Sight { step: step.to_string(), log_sd, change: Some(2.0 * log_sd), pairs }
    }

    #[test]
    fn scatter_of_history_is_said_of_the_steps_that_have_it() {
        let assumed = |step: &str| sight_of(step, 0.015, None);
        let mixed = [sight_of("readrandom", 0.004, Some(105)), assumed("fillseq"), assumed("overwrite")];
        assert_eq!(
            sight(&mixed, (1, 3)),
            "a slowdown of 0.8 % on readrandom in 4 of 5 cases: pairs of equals scattered by 0.4 % on this machine, in 105 \
             pairs; one of 3.0 % on others, if pairs scatter by 1.5 % there; by the rule of the verdict, one step of all having \
             changed"
        );
        let two = [
            sight_of("readrandom", 0.004, Some(105)),
            sight_of("fillseq", 0.02, Some(105)),
            assumed("overwrite"),
        ];
        let said = sight(&two, (2, 3));
        assert!(
            said.contains(
                "scattered by 2.0 and 2.0 % on this machine, in 210 pairs of 2 steps; one of 3.0 % on others"
            ),
            "{said}"
        );
    }

    #[test]
    fn one_block_has_verdicts_where_history_knows_the_noise() {
        assert_eq!(sight(&[], (0, 2)), "nothing: one block has no scatter to judge by");
        assert!(sight(&[], (1, 2)).contains("1 of 2 steps are judged"));
        let (_temp, store) = crate::testing::fake_record(1, &["fillseq"], 1, &mut |_| vec![("ops_sec", 1.0)]);
        let plan = store.experiment(1).unwrap().plan;
        assert!(few_blocks(&plan, 0).unwrap().starts_with("below 5 blocks every verdict is unknown"));
        assert!(few_blocks(&plan, 1).unwrap().starts_with("one block has no verdict on other steps"));
    }
}

//! A plan as text: the steps, their time, and the differences that could be seen.

use crate::analysis::noise::{NoiseModel, Sight};
use crate::experiment::Order;
use crate::planning::plan::{ASSUMED_NOISE, Plan};
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
    text.push_str(&paragraph("sees     ", &sight(&noise.sights(plan, plan.rounds)), 9));
    if let Some(said) = few_blocks(plan) {
        text.push_str(&paragraph("few      ", &said, 9));
    }
    text.push('\n');
    text.push_str(&first_orders(plan));
    for caution in plan.cautions() {
        text.push_str(&paragraph("\n", &caution, 0));
    }
    text
}

/// The smallest changes that `sights` tell, on a usual step and on the one that scatters most.
fn sight(sights: &[Sight]) -> String {
    let of = |sight: &Sight| sight.change.unwrap_or(f64::INFINITY);
    let mut ordered: Vec<&Sight> = sights.iter().collect();
    ordered.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let (Some(usual), Some(worst)) = (ordered.get(ordered.len() / 2), ordered.last()) else {
        return "nothing: one block has no scatter to judge by".to_string();
    };
    if of(usual).is_infinite() {
        return "nothing in 4 of 5 cases: too few blocks for the scatter of pairs".to_string();
    }
    let known: Vec<usize> = sights.iter().filter_map(|sight| sight.pairs).collect();
    let (change, scatter) = (of(usual) * 100.0, usual.log_sd * 100.0);
    let rule = "by the rule of the verdict, one step of all having changed";
    if known.is_empty() {
        return format!(
            "a slowdown of {change:.1} % in 4 of 5 cases, if pairs scatter by {scatter:.1} %; {rule}"
        );
    }
    let worst_change =
        worst.change.map_or("nothing".to_string(), |change| format!("one of {:.1} %", change * 100.0));
    let mut text = format!(
        "a slowdown of {change:.1} % on a usual step and {worst_change} on {} in 4 of 5 cases: pairs of equals scattered \
         by {scatter:.1} and {:.1} % on this machine, in {} pairs of {} steps",
        worst.step,
        worst.log_sd * 100.0,
        known.iter().sum::<usize>(),
        known.len()
    );
    if known.len() < sights.len() {
        let _ = write!(text, "; {:.1} % is assumed of the others", ASSUMED_NOISE * 100.0);
    }
    let _ = write!(text, "; {rule}");
    text
}

/// The verdicts that six blocks or fewer cannot give, and how many blocks can; nothing of more blocks.
///
/// Throughput and tails are judged by intervals, from [`MIN_PAIRS`] on. Stalls have an exact test: of n pairs it knows no probability
/// below 2 / 2^n, which a report corrects for its cells.
fn few_blocks(plan: &Plan) -> Option<String> {
    const FEW: usize = 6;
    const ALPHA: f64 = 0.05;
    let (blocks, cells) = (plan.rounds, plan.reported().len() * (plan.targets.len() - 1));
    if blocks > FEW || cells == 0 {
        return None;
    }
    if blocks < MIN_PAIRS {
        return Some(format!("below {MIN_PAIRS} blocks every verdict is unknown: --rounds {MIN_PAIRS}"));
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
         {cells} cells here stall, it takes {enough} to call the one that differs: --rounds {enough}",
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
        // Two steps of two targets beside the base are four cells: 2 / 2^8 * 4 is 0.031, 2 / 2^7 * 4 is 0.062.
        assert!(said(3).contains("below 5 blocks every verdict is unknown"), "{}", said(3));
        // Throughput is judged by its interval from five on: only stalls need more.
        let five = said(5);
        assert!(five.contains("5 blocks can call no stall: the exact test"), "{five}");
        assert!(
            five.contains(
                "If all of the 4 cells here stall, it takes 8 to call the one that differs: --rounds 8"
            ),
            "{five}"
        );
        assert!(!five.contains("throughput"), "{five}");
        let six = said(6);
        assert!(
            six.contains("only a change on which all of them agree") && six.contains("--rounds 8"),
            "{six}"
        );
        assert!(!said(7).contains("--rounds"));
    }
}

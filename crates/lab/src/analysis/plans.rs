//! How servers execute the statements of a step: where that differs between targets, and where it changed within a step.
//!
//! A difference in speed that comes with another plan is another finding than one that comes with the same: a page says so.

use crate::analysis::results::Results;
use crate::run::child::Source;
use outcrop_lab_load::steps::StatementPlan;
use outcrop_lab_sql::Product;
use serde::Serialize;

/// One way to execute a statement, and the targets that take it at the end of the step.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// The server's plan.
    pub plan: String,
    /// Numbers of targets.
    pub targets: Vec<usize>,
}

/// The ways in which targets execute the statements of `step`; empty where no server was asked.
pub fn ways(results: &Results, step: &str) -> Vec<(String, Vec<Way>)> {
    let mut all: Vec<(String, Vec<Way>)> = Vec::new();
    for target in 0..results.experiment.plan.targets.len() {
        for StatementPlan { statement, plan } in last(results, step, target) {
            let at = match all.iter().position(|(known, _)| *known == statement) {
                Some(at) => at,
                None => {
                    all.push((statement, Vec::new()));
                    all.len() - 1
                }
            };
            match all[at].1.iter_mut().find(|way| way.plan == plan) {
                Some(way) => way.targets.push(target),
                None => all[at].1.push(Way { plan, targets: vec![target] }),
            }
        }
    }
    all
}

/// A statement that two targets execute otherwise at the end of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherPlan {
    /// The statement.
    pub statement: String,
    /// The base's plan.
    pub base: String,
    /// The target's.
    pub target: String,
}

/// The statements of `step` that `target` executes otherwise than `base`. Texts of different products differ in any case: of
/// those there is nothing.
pub fn differing(results: &Results, step: &str, target: usize, base: usize) -> Vec<OtherPlan> {
    if product(results, target) != product(results, base) {
        return Vec::new();
    }
    let pairs = last(results, step, target).into_iter().zip(last(results, step, base));
    pairs
        .filter(|(own, base)| own.plan != base.plan)
        .map(|(own, base)| OtherPlan { statement: own.statement, base: base.plan, target: own.plan })
        .collect()
}

/// A clause about the statements that `target` executes otherwise than `base` in a step; `None` if there are none.
pub fn sentence(results: &Results, step: &str, target: usize, base: usize) -> Option<String> {
    let all = last(results, step, target).len();
    let others = differing(results, step, target, base);
    let first = others.first()?;
    Some(format!(
        "another plan for {} of {all} statements: {}: {}; the base: {}",
        others.len(),
        first.statement,
        first.target,
        first.base
    ))
}

/// The plans at the end of a target's first session.
fn last(results: &Results, step: &str, target: usize) -> Vec<StatementPlan> {
    let first = results.rows(step, target).find_map(|row| row.result.plans.as_ref());
    first.map(|[_, end]| end.clone()).unwrap_or_default()
}

/// The first statement of a step of a target that was executed otherwise at its end than at its start, with the number of the
/// block from 1.
fn changed_within(results: &Results, step: &str, target: usize) -> Option<(i64, String)> {
    results.rows(step, target).find_map(|row| {
        let [start, end] = row.result.plans.as_ref()?;
        let (was, is) = start.iter().zip(end).find(|(was, is)| was != is)?;
        Some((row.block + 1, format!("{}: first {}, then {}", was.statement, was.plan, is.plan)))
    })
}

/// The product of a target's server: plans of different products are different texts in any case.
fn product(results: &Results, target: usize) -> Option<Product> {
    match &results.experiment.plan.targets[target].source {
        Source::Server(spec) => Some(spec.product),
        _ => None,
    }
}

/// A sentence for each target with other plans than `base`, if both are of one product, and for each whose plans changed while a
/// step ran.
pub fn sentences(results: &Results, base: usize) -> Vec<String> {
    let names = results.labels();
    let mut sentences = Vec::new();
    for (target, name) in names.iter().enumerate() {
        let within: Vec<(&String, (i64, String))> = results
            .steps
            .iter()
            .filter_map(|step| Some((step, changed_within(results, step, target)?)))
            .collect();
        if let Some((step, (block, how))) = within.first() {
            sentences.push(format!(
                "plan changed within a step: {name} on {} of {} steps; the first: {step}, block {block}, {how}",
                within.len(),
                results.steps.len()
            ));
        }
        let differ: Vec<(&String, OtherPlan)> = results
            .steps
            .iter()
            .filter_map(|step| Some((step, differing(results, step, target, base).into_iter().next()?)))
            .collect();
        if let Some((step, OtherPlan { statement, base: theirs, target: own })) = differ.first() {
            sentences.push(format!(
                "plan changed: {name} executes statements of {} of {} steps otherwise than {}; the first: {step}, \
                 {statement}: {own}; there: {theirs}",
                differ.len(),
                results.steps.len(),
                names[base]
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::targets::servers::{Runner, ServerLocation, ServerSpec};
    use crate::testing::fake_record;

    fn plan(text: &str) -> StatementPlan {
        StatementPlan { statement: "SELECT c".to_string(), plan: text.to_string() }
    }

    /// Three targets; the plans of each are given by its number.
    fn results(plans: impl Fn(usize) -> Option<[Vec<StatementPlan>; 2]>) -> Results {
        let (_temp, store): (_, Store) = fake_record(2, &["fillseq"], 1, &mut |_| vec![("ops_sec", 10.0)]);
        let mut results = Results::load(&store, 1).unwrap();
        results.measured.iter_mut().for_each(|row| row.result.plans = plans(row.target));
        results
    }

    #[test]
    fn another_plan_than_the_base_has_is_said_once_for_a_target() {
        let by_index =
            |target: usize| Some([vec![plan("by index")], vec![plan(["by index", "scan"][target % 2])]]);
        let found = results(|target| if target == 1 { by_index(1) } else { by_index(0) });
        let said = sentences(&found, 0);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("plan changed within a step: ") && said[0].contains("on 1 of 1 steps"));
        assert!(said[0].ends_with("block 1, SELECT c: first by index, then scan"), "{}", said[0]);
        assert!(said[1].ends_with("fillseq, SELECT c: scan; there: by index"), "{}", said[1]);
        let said = sentence(&found, "fillseq", 1, 0).unwrap();
        assert_eq!(said, "another plan for 1 of 1 statements: SELECT c: scan; the base: by index");
        assert_eq!(sentence(&found, "fillseq", 2, 0), None);
        let explained = crate::report::show::explain(&found, "fillseq", 1, 0);
        let lines: Vec<&str> = explained.lines().map(str::trim).collect();
        assert!(
            lines.windows(3).any(|at| at == ["SELECT c", "base    by index", "target  scan"]),
            "{explained}"
        );
        let json = crate::report::show::explain_json(&found, "fillseq", 1, 0);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["plans"][0]["target"], "scan");
        let ways = ways(&found, "fillseq");
        assert_eq!(ways.len(), 1);
        let targets: Vec<&[usize]> = ways[0].1.iter().map(|way| way.targets.as_slice()).collect();
        assert_eq!(targets, [&[0, 2][..], &[1]]);
    }

    #[test]
    fn servers_of_different_products_are_not_compared() {
        let mut found = results(|target| {
            let words = ["by index", "range PRIMARY"][target % 2];
            Some([vec![plan(words)], vec![plan(words)]])
        });
        assert_eq!(sentences(&found, 0).len(), 1);
        let products = [Product::Postgres, Product::MySql, Product::Postgres];
        for (target, product) in found.experiment.plan.targets.iter_mut().zip(products) {
            let place = ServerLocation::Own { basedir: "/".into(), config: String::new(), port: None };
            let spec =
                ServerSpec { name: "server".to_string(), product, version: None, place, runner: Runner::Lab };
            target.source = Source::Server(Box::new(spec));
        }
        assert_eq!(sentences(&found, 0), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_said_of_equal_plans_and_of_engines() {
        let equal = results(|_| Some([vec![plan("by index")], vec![plan("by index")]]));
        assert_eq!(sentences(&equal, 0), Vec::<String>::new());
        let engines = results(|_| None);
        assert_eq!((sentences(&engines, 0), ways(&engines, "fillseq")), (Vec::new(), Vec::new()));
    }
}

//! An experiment in the form of the posts: one ratio by test and target, coloured by a fixed band. It is the ratio of all
//! other pages; rates are medians.
//!
//! Their readers find their tables here. The lab's own view of the same numbers, with intervals and verdicts, is in
//! `show/` and `site/`.

use crate::analysis::results::Results;
use crate::import::{Classic, Output, Row, Target, Text, Value, View, classic_with};
use crate::probe::derive::metric;
use std::sync::Arc;

/// The posts' name of a step.
pub fn short_name(step: &str) -> String {
    if step == "overwriteandwait" {
        return "overwrite".to_string();
    }
    step.replace("whilewriting", "ww")
}

/// The relative table of a metric: ratios to `base`.
///
/// # Errors
/// A clause if nothing has the metric.
pub fn relative(
    results: &Results,
    base: usize,
    name: &str,
    output: Output,
    colours: bool,
) -> Result<String, String> {
    let rows = rows(results, base, name);
    let base = results.target_names()[base];
    let runs = format!(
        "Ratios to {base}, geometric means over the blocks that both have, of {}; verdicts without --classic. ",
        results.blocks()
    );
    let metric = name.to_string();
    let request = Classic { metric, base: Some(base.to_string()), view: View::Posts, output, colours };
    classic_with(&rows, &request, Some(&runs))
}

/// Ratios to `base` as rows of one file, in which the base is 1.
fn rows(results: &Results, base: usize, name: &str) -> Vec<Row> {
    let plan = &results.experiment.plan;
    let unit = metric(name).map_or("", |row| row.unit);
    let mut rows = Vec::new();
    for (index, planned) in plan.targets.iter().enumerate().filter(|(_, planned)| planned.twin_of.is_none()) {
        let text = |text: &str| Text::from(text);
        let target = Arc::new(Target {
            name: text(&planned.name),
            engine: text(&planned.engine),
            version: text(planned.version.as_deref().unwrap_or_default()),
            build: Text::default(),
            configuration: text(&planned.config),
        });
        for (line, step) in results.steps.iter().enumerate() {
            let Some(value) = results.ratio(step, index, base, name) else { continue };
            rows.push(Row {
                target: Arc::clone(&target),
                step: text(&short_name(step)),
                metric: text(name),
                value: Value::Number(value),
                published: None,
                unit,
                relative_to: None,
                file: text(&results.experiment.file),
                line: line as u32 + 1,
            });
        }
    }
    rows
}

/// The absolute table of a metric, of throughput in the unit that each step has in published tables: as TSV numbered columns, values first and the test last; as CSV the test first.
pub fn absolute(results: &Results, name: &str, output: Output) -> String {
    let targets: Vec<usize> = real_targets(results);
    let names = results.target_names();
    let shown = |step: &str| if name == "ops_sec" { results.throughput(step).0 } else { name };
    let value =
        |step: &str, target: usize| results.median(step, target, shown(step)).map_or("NA".into(), printed);
    let values = |step: &str| targets.iter().map(|target| value(step, *target)).collect::<Vec<_>>();
    if output == Output::Csv {
        let head: Vec<&str> = targets.iter().map(|target| names[*target]).collect();
        let lines =
            results.steps.iter().map(|step| format!("{},{}\n", short_name(step), values(step).join(",")));
        return std::iter::once(format!("test,{}\n", head.join(","))).chain(lines).collect();
    }
    let mut text: String = targets
        .iter()
        .enumerate()
        .map(|(column, target)| format!("col-{} : {}\n", column + 1, names[*target]))
        .collect();
    text.push('\n');
    let head = (1..=targets.len()).map(|column| format!("col-{column}"));
    text.push_str(&(head.collect::<Vec<_>>().join("\t") + "\ttest\n"));
    for step in &results.steps {
        text.push_str(&format!("{}\t{}\n", values(step).join("\t"), short_name(step)));
    }
    text
}

/// Whole numbers for rates, as the posts print them; small ones keep their digits.
fn printed(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { crate::report::text::amount(value) }
}

/// Every target but the base's second name.
pub fn real_targets(results: &Results) -> Vec<usize> {
    let targets = results.experiment.plan.targets.iter().enumerate();
    targets.filter(|(_, target)| target.twin_of.is_none()).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_the_names_of_the_posts() {
        let names = [
            "fillseq",
            "revrangewhilewriting",
            "readwhilewriting",
            "overwriteandwait",
            "readwhilewriting.64",
        ];
        assert_eq!(names.map(short_name), ["fillseq", "revrangeww", "readww", "overwrite", "readww.64"]);
        assert_eq!([285_248.4, 0.01234, 99.5].map(printed), ["285248", "0.01234", "99.5"]);
    }
}

//! Mistakes that only show after decoding, each with its place.

use super::{ServerSet, SqlExperiment, SqlKind, embedded, steps};
use crate::experiment::check::{Checked, check_design, did_you_mean, wrong, wrong_value};
use crate::targets::servers::Runner;
use outcrop_lab_sql::Load;

/// More than any published run has.
const MOST_TABLES: u32 = 1000;
const MOST_CLIENTS: u32 = 10_000;
/// PostgreSQL counts rows of these tables in 31 bits.
pub(crate) const MOST_ROWS: u64 = 2_000_000_000;

/// The first mistake of `experiment`, if it has any.
pub(super) fn check(experiment: &SqlExperiment) -> Checked {
    if experiment.target.is_empty() {
        return wrong("", "target", "an experiment needs at least one [[target]]");
    }
    experiment.target.iter().try_for_each(|target| check_target(target, experiment))?;
    experiment.embedded.iter().try_for_each(embedded::check)?;
    if let Some(set) = experiment.embedded.first().filter(|_| experiment.workload.kind != SqlKind::Sysbench) {
        return wrong_value("embedded", &set.engine, "embedded engines have no Insert Benchmark".to_string());
    }
    for (name, config) in &experiment.config {
        if config.planted.is_some_and(|share| !share.is_finite() || share < 0.0) {
            let text = format!("config {name}: planted is a share, 0 or above");
            return wrong(&format!("config.{name}"), "planted", text);
        }
    }
    check_workload(experiment)?;
    check_design(&experiment.design)?;
    check_steps(experiment)
}

fn check_target(target: &ServerSet, experiment: &SqlExperiment) -> Checked {
    let named = target.server.as_str();
    let says_version = named.contains('@');
    let (name, version) = named.split_once('@').unwrap_or((named, ""));
    if target.basedir.is_some() && target.url.is_some() {
        return wrong_value("target", named, format!("target {named}: give basedir or url, not both"));
    }
    if target.url.is_some() && !target.configs.is_empty() {
        let text = format!("target {named}: a server by url keeps its own settings: leave configs out");
        return wrong_value("target", named, text);
    }
    if target.url.is_some() && target.port.is_some() {
        return wrong_value("target", named, format!("target {named}: the port is in the url"));
    }
    if target.runner == Runner::Sysbench {
        check_sysbench(target, experiment)?;
    }
    let old = ["5.5", "5.6"].iter().any(|old| version.starts_with(old));
    if target.port.is_some() && (name == "mariadb" || (name == "mysql" && old)) {
        let text = format!(
            "target {named}: it makes users without a password, so that it listens on a socket only: leave port out"
        );
        return wrong_value("target", named, text);
    }
    if target.basedir.is_none() && target.url.is_none() && !says_version {
        let text = format!("target {named} needs a version as in {named}@18.x, or basedir, or url");
        return wrong_value("target", named, text);
    }
    if !["postgres", "mysql", "mariadb"].contains(&name) {
        let hint = did_you_mean(name, ["postgres", "mysql", "mariadb"].into_iter());
        return wrong_value("target", named, format!("there is no server \"{name}\"{hint}"));
    }
    match target.configs.iter().find(|config| !experiment.config.contains_key(*config)) {
        Some(config) => {
            let hint = did_you_mean(config, experiment.config.keys().map(String::as_str));
            wrong_value("target", config, format!("there is no [config.{config}]{hint}"))
        }
        None => Ok(()),
    }
}

/// Refuses a target that sysbench's program cannot be the client of.
fn check_sysbench(target: &ServerSet, experiment: &SqlExperiment) -> Checked {
    let refused = |why: &str| wrong_value("target", "sysbench", format!("target {}: {why}", target.server));
    if experiment.workload.kind != SqlKind::Sysbench {
        return refused("runner = \"sysbench\" is for kind = \"sysbench\": it has no Insert Benchmark");
    }
    if target.url.is_some() || target.port.is_some() {
        return refused(
            "runner = \"sysbench\" needs a server of the lab on a socket: it would show a password on its command line",
        );
    }
    let config = |name: &String| experiment.config.get(name).and_then(|config| config.planted);
    if target.configs.iter().filter_map(config).any(|planted| planted > 0.0) {
        return refused("planted burns time in the lab's own client: leave out runner = \"sysbench\"");
    }
    if experiment.step.values().any(|change| change.arrival_rate.is_some()) {
        return refused("arrival_rate is for the lab's own client: leave out runner = \"sysbench\"");
    }
    Ok(())
}

fn check_workload(experiment: &SqlExperiment) -> Checked {
    let (workload, table) = (&experiment.workload, "workload");
    let positive = [
        ("tables", f64::from(workload.tables.unwrap_or(1))),
        ("write_rows", workload.write_rows.unwrap_or(1) as f64),
        ("rows", workload.rows as f64),
        ("clients", f64::from(workload.clients)),
        ("seconds", workload.seconds),
        ("write_seconds", workload.write_seconds.unwrap_or(1.0)),
        ("memory_share", workload.memory_share.unwrap_or(1.0)),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        return wrong(table, name, format!("{name} must be above zero"));
    }
    if workload.postwrite_seconds.is_some_and(|seconds| !(0.0..=86_400.0).contains(&seconds)) {
        return wrong(table, "postwrite_seconds", "postwrite_seconds is between 0 and 86400");
    }
    if workload.memory_share.is_some_and(|share| share > 1.0) {
        return wrong(table, "memory_share", "memory_share is a share: at most 1");
    }
    let most = [
        ("tables", u64::from(workload.tables.unwrap_or(1)), u64::from(MOST_TABLES)),
        ("clients", u64::from(workload.clients), u64::from(MOST_CLIENTS)),
        ("rows", workload.rows, MOST_ROWS),
    ];
    if let Some((name, _, most)) = most.iter().find(|(_, value, most)| value > most) {
        return wrong(table, name, format!("{name} is at most {most}"));
    }
    let of_other = [
        (
            "tables",
            workload.tables.is_some(),
            SqlKind::Sysbench,
            "each client of the Insert Benchmark has a table",
        ),
        (
            "write_rows",
            workload.write_rows.is_some(),
            SqlKind::InsertBenchmark,
            "sysbench's tests end with their time",
        ),
        (
            "write_seconds",
            workload.write_seconds.is_some(),
            SqlKind::Sysbench,
            "rows decide how long the Insert Benchmark writes",
        ),
    ];
    if let Some((key, _, _, why)) =
        of_other.iter().find(|(_, given, kind, _)| *given && workload.kind != *kind)
    {
        return wrong(table, key, format!("{key} has no effect: {why}"));
    }
    let postgres = |target: &ServerSet| target.server.split('@').next() == Some("postgres");
    if !workload.engine.is_empty() && experiment.target.iter().all(postgres) {
        return wrong(table, "engine", "engine has no effect: PostgreSQL's tables have none");
    }
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric());
    if !plain(&workload.engine) {
        return wrong(table, "engine", "engine is a name such as InnoDB");
    }
    Ok(())
}

fn check_steps(experiment: &SqlExperiment) -> Checked {
    let names = experiment.step_names();
    for (index, name) in names.iter().enumerate() {
        let own = experiment.step.get(name).and_then(|change| change.kind.as_ref());
        let kind = own.unwrap_or(name);
        if steps::find(experiment.workload.kind, kind).is_none() {
            let hint = did_you_mean(kind, steps::names(experiment.workload.kind).into_iter());
            let message = format!("unknown step \"{kind}\"{hint}");
            return match own {
                Some(kind) => wrong_value(&format!("step.{name}"), kind, message),
                None => wrong_value("", name, message),
            };
        }
        if names[..index].contains(name) {
            let text = format!("step \"{name}\" is there twice; name the second otherwise and give it kind");
            return wrong_value("", name, text);
        }
    }
    for (name, change) in &experiment.step {
        let table = format!("step.{name}");
        if !names.contains(name) {
            return wrong(&table, "", format!("[{table}] changes a step that is not in steps"));
        }
        let timed = steps::is_timed(experiment.workload.kind, change.kind.as_ref().unwrap_or(name));
        let given = [("seconds", change.seconds.is_some()), ("arrival_rate", change.arrival_rate.is_some())];
        if let Some((key, _)) = given.into_iter().find(|(_, given)| *given && !timed) {
            return wrong(&table, key, format!("{key} has no effect: {name} ends when its work is done"));
        }
        if change.clients.is_some() && experiment.workload.kind == SqlKind::InsertBenchmark {
            return wrong(
                &table,
                "clients",
                "clients has no effect: each client of the workload has its table",
            );
        }
        let kind = steps::find(experiment.workload.kind, change.kind.as_ref().unwrap_or(name));
        if change.clients.is_some() && matches!(kind, Some(Load::Postwrite(_))) {
            let text = format!("clients has no effect: {name} has a connection for each of a few tables");
            return wrong(&table, "clients", text);
        }
        let positive = [
            ("clients", change.clients.map(f64::from)),
            ("seconds", change.seconds),
            ("arrival_rate", change.arrival_rate),
        ];
        let bad = |number: Option<f64>| number.is_some_and(|number| !number.is_finite() || number <= 0.0);
        if let Some((key, _)) = positive.into_iter().find(|(_, number)| bad(*number)) {
            return wrong(&table, key, format!("{key} must be above zero"));
        }
        if !matches!(change.arrival_spacing.as_deref(), None | Some("fixed" | "poisson")) {
            return wrong(&table, "arrival_spacing", "arrival_spacing is fixed or poisson");
        }
        if change.arrival_spacing.is_some() && change.arrival_rate.is_none() {
            return wrong(&table, "arrival_spacing", "arrival_spacing needs arrival_rate");
        }
    }
    Ok(())
}

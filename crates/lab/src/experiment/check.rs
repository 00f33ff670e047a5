//! The rules that types cannot state: the values that an experiment may have, and the settings that go
//! together.
//!
//! Every function answers with the first [`Mistake`] it finds; `parse.rs` says where in the file that is.

use super::parse::nearest;
use super::vocabulary::{self, StepRow};
use super::{
    Config, Design, Experiment, Order, SKEWS, StepChange, TargetSet, Workload, WorkloadKind, compaction,
    profiles,
};
use outcrop_lab_load::StepKind;
use outcrop_lab_load::mixgraph::{MixParameters, PRESETS};

/// Something wrong in a file.
pub(super) struct Mistake {
    /// The table, such as `step.readrandom`; empty for the top of the file.
    pub table: String,
    /// The key.
    pub key: String,
    /// The value of the key, where more than one table has it, or more than one value.
    pub value: Option<String>,
    /// The advice to the user.
    pub message: String,
}

pub(super) type Checked = Result<(), Mistake>;

pub(super) fn wrong(table: &str, key: &str, message: impl Into<String>) -> Checked {
    Err(Mistake { table: table.to_string(), key: key.to_string(), value: None, message: message.into() })
}

pub(super) fn wrong_value(table: &str, value: &str, message: String) -> Checked {
    Err(Mistake { table: table.to_string(), key: String::new(), value: Some(value.to_string()), message })
}

/// More pairs than the exact tests of `outcrop_lab_stats::rank` take would be refused there.
const MAX_ROUNDS: usize = outcrop_lab_stats::rank::MAX_EXACT;

/// Longer than any rest that was ever published, in seconds.
const MAX_REST: f64 = 86_400.0;
/// Seconds of a slice: the background writer's rate is kept by tenths of a second, and more than a minute is no slice.
const LEAST_SLICE: f64 = 0.1;
const MOST_SLICE: f64 = 60.0;

/// The first mistake of `experiment`, if it has any.
pub(super) fn check(experiment: &Experiment) -> Checked {
    if experiment.target.is_empty() {
        return wrong("", "target", "an experiment needs at least one [[target]]");
    }
    experiment.target.iter().try_for_each(|target| check_target(target, experiment))?;
    let kind = experiment.workload.kind.place();
    experiment.config.iter().try_for_each(|(name, config)| check_config(name, config, kind))?;
    check_workload(&experiment.workload)?;
    check_design(&experiment.design)?;
    for (name, change) in &experiment.step {
        let row = vocabulary::find(change.kind.as_ref().unwrap_or(name));
        check_change(&format!("step.{name}"), change, row)?;
    }
    check_steps(experiment)
}

pub(super) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |known| format!("; did you mean \"{known}\"?"))
}

fn check_target(target: &TargetSet, experiment: &Experiment) -> Checked {
    let named = target.engine.as_str();
    let says_version = target.versions.len() == 1 && target.build.is_some();
    if target.library.is_some() && !target.versions.is_empty() && !says_version {
        let why = "has both library and versions: a library is one version, and then takes a build's name";
        return wrong_value("target", named, format!("target {named} {why}"));
    }
    if !target.builds.is_empty() {
        check_builds(target, experiment)?;
    }
    if named != "outcrop" && target.library.is_none() && target.versions.is_empty() {
        return wrong_value("target", named, format!("target {named} needs versions or library"));
    }
    if named == "outcrop" && !target.versions.is_empty() {
        let why = "target outcrop is this program: give older builds by library";
        return wrong("target", "versions", why);
    }
    match target.configs.iter().find(|config| !experiment.config.contains_key(*config)) {
        Some(config) => {
            let hint = did_you_mean(config, experiment.config.keys().map(String::as_str));
            wrong_value("target", config, format!("there is no [config.{config}]{hint}"))
        }
        None => Ok(()),
    }
}

fn check_builds(target: &TargetSet, experiment: &Experiment) -> Checked {
    let named = target.engine.as_str();
    if target.library.is_some() || target.build.is_some() {
        let why = "has builds, which are made here, and library or build, which say where one is";
        return wrong_value("target", named, format!("target {named} {why}"));
    }
    if named != "rocksdb" && named != "outcrop" {
        let why = "cannot be built here: rocksdb and outcrop can; give your build by library";
        return wrong_value("target", named, format!("target {named} {why}"));
    }
    for name in &target.builds {
        let Some(build) = experiment.build.get(name) else {
            // It may have been made by the verb.
            let made = |version: Option<&str>| crate::targets::build::named(named, version, name).is_some();
            let all_made = match &target.versions[..] {
                [] => made(None),
                versions => versions.iter().all(|version| made(Some(version))),
            };
            if all_made {
                continue;
            }
            let hint = did_you_mean(name, experiment.build.keys().map(String::as_str));
            let why =
                format!("there is no [build.{name}]{hint}, and lab engines build has made none of that name");
            return wrong_value("target", name, why);
        };
        if named == "outcrop" && build.source.is_none() {
            let why = "outcrop is built from a checkout: say where it is with source";
            return wrong(&format!("build.{name}"), "compiler", why);
        }
    }
    Ok(())
}

fn check_codec(table: &str, key: &str, codec: Option<&String>) -> Checked {
    match codec {
        Some(codec) if compaction::compression_number(codec).is_none() => {
            wrong(table, key, format!("{key} is none, snappy, lz4 or zstd, not {codec}"))
        }
        _ => Ok(()),
    }
}

fn check_config(name: &str, config: &Config, kind: WorkloadKind) -> Checked {
    let table = &format!("config.{name}");
    let given = [
        ("compaction", config.compaction.is_some()),
        ("block_size", config.block_size.is_some()),
        ("bloom_bits", config.bloom_bits.is_some()),
        ("compression", config.compression.is_some()),
        ("bottommost_compression", config.bottommost_compression.is_some()),
        ("write_buffer_size", config.write_buffer_size.is_some()),
        ("level0_triggers", config.level0_triggers.is_some()),
        ("num_levels", config.num_levels.is_some()),
        ("background_jobs", config.background_jobs.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, given)| *given && config.defaults) {
        let why = "defaults leaves it to each engine; what is to differ can be said as text, in options";
        return wrong(table, key, format!("config {name}: {key} has no effect: {why}"));
    }
    if config.defaults && kind == WorkloadKind::Iodir {
        return wrong(
            table,
            "defaults",
            format!("config {name}: direct IO is no engine's default: take kind byrx, byos or iobuf"),
        );
    }
    check_codec(table, "compression", config.compression.as_ref())?;
    check_codec(table, "bottommost_compression", config.bottommost_compression.as_ref())?;
    if let Some(unknown) = config.compaction.as_ref().filter(|name| compaction::find(name).is_none()) {
        let names = || compaction::COMPACTIONS.iter().map(|compaction| compaction.name);
        let known = names().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(unknown, names());
        return wrong(
            table,
            "compaction",
            format!("there is no compaction \"{unknown}\"{hint}; there are {known}"),
        );
    }
    if config.planted.is_some_and(|share| !share.is_finite() || share < 0.0) {
        return wrong(table, "planted", format!("config {name}: planted is a share, 0 or above"));
    }
    Ok(())
}

fn check_workload(workload: &Workload) -> Checked {
    let table = "workload";
    let positive = [
        ("seconds", workload.seconds),
        ("threads", f64::from(workload.threads)),
        ("key_size", workload.key_size as f64),
        ("value_size", workload.mean_value_size() as f64),
        ("keys", workload.keys.unwrap_or(1) as f64),
        ("prefix_size", workload.prefix_size.unwrap_or(1) as f64),
        ("keys_per_prefix", workload.keys_per_prefix.unwrap_or(1) as f64),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        return wrong(table, name, format!("{name} must be above zero"));
    }
    if let Err(why) = workload.value_sizes() {
        let key = ["value_size_distribution", "value_size_min", "value_size_max"].into_iter().zip([
            workload.value_size_distribution.is_some(),
            workload.value_size_min.is_some(),
            workload.value_size_max.is_some(),
        ]);
        let key = key.filter(|(_, given)| *given).map(|(key, _)| key).next();
        return wrong(table, key.unwrap_or("value_size"), why);
    }
    if workload.prefix_size.is_some() != workload.keys_per_prefix.is_some() {
        let key = if workload.prefix_size.is_some() { "prefix_size" } else { "keys_per_prefix" };
        return wrong(table, key, "prefix_size and keys_per_prefix go together");
    }
    if workload.keys_per_prefix.zip(workload.keys).is_some_and(|(group, keys)| group > keys) {
        return wrong(table, "keys_per_prefix", "keys_per_prefix is above keys: there would be no prefix");
    }
    if let Err(why) = workload.layout(u64::MAX).check(workload.key_size) {
        let key = if workload.prefix_size.is_some() { "prefix_size" } else { "generator" };
        return wrong(table, key, why);
    }
    if let Err(why) = workload.redundancy().check() {
        let key = why.split(' ').next().unwrap_or_default().to_string();
        return wrong(table, &key, why);
    }
    check_codec(table, "compression", workload.compression.as_ref())?;
    check_codec(table, "bottommost_compression", workload.bottommost_compression.as_ref())?;
    if let Some(skew) = workload.skew.as_ref().filter(|skew| !SKEWS.iter().any(|known| known.0 == **skew)) {
        let known = SKEWS.map(|skew| skew.0).join(", ");
        return wrong(table, "skew", format!("there is no skew \"{skew}\"; there are {known}"));
    }
    match &workload.profile {
        Some(profile) if profiles::find(profile, 1 << 30, 2).is_none() => {
            let known = profiles::names().join(", ");
            let text = format!("there is no profile \"{profile}\"; there are {known}; bcN changes the cache");
            wrong(table, "profile", text)
        }
        _ => Ok(()),
    }
}

pub(super) fn check_design(design: &Design) -> Checked {
    let table = "design";
    let positive = [("rounds", design.rounds as f64), ("width", design.width)];
    if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        return wrong(table, name, format!("{name} must be above zero"));
    }
    if !(0.0..=MAX_REST).contains(&design.rest_seconds) {
        return wrong(table, "rest_seconds", format!("rest_seconds is between 0 and {MAX_REST}"));
    }
    if let Some(seconds) = design.slice_seconds {
        if seconds != 0.0 && !(LEAST_SLICE..=MOST_SLICE).contains(&seconds) {
            let text = format!("slice_seconds is 0 or between {LEAST_SLICE} and {MOST_SLICE}");
            return wrong(table, "slice_seconds", text);
        }
        if design.order == Some(Order::Sessions) {
            let text = "slice_seconds needs order = \"steps\": by sessions nobody takes turns";
            return wrong(table, "slice_seconds", text);
        }
    }
    if !(design.delta > 0.0 && design.delta < 1.0) {
        return wrong(table, "delta", "delta is a share: above 0 and below 1");
    }
    let key = if design.max_rounds.is_some() { "max_rounds" } else { "rounds" };
    if design.max_rounds.unwrap_or(design.rounds) > MAX_ROUNDS {
        return wrong(table, key, format!("at most {MAX_ROUNDS} rounds can be judged"));
    }
    if design.max_rounds.is_some_and(|max| max < design.rounds) {
        return wrong(table, "max_rounds", "max_rounds is below rounds");
    }
    Ok(())
}

/// The changes to one step, which is `row` if there is such a step.
fn check_change(table: &str, change: &StepChange, row: Option<&StepRow>) -> Checked {
    let positive = [
        ("threads", change.threads.map(f64::from)),
        ("num", change.num.map(|num| num as f64)),
        ("seconds", change.seconds),
        ("batch_size", change.batch_size.map(f64::from)),
        ("transaction_sets", change.transaction_sets.map(f64::from)),
        ("arrival_rate", change.arrival_rate),
        ("read_random_exp_range", change.read_random_exp_range),
        ("write_rate", change.write_rate.map(|rate| rate as f64)),
        ("writer_num", change.writer_num.map(|num| num as f64)),
    ];
    let bad = |number: Option<f64>| number.is_some_and(|number| !number.is_finite() || number <= 0.0);
    if let Some((name, _)) = positive.into_iter().find(|(_, number)| bad(*number)) {
        return wrong(table, name, format!("{name} must be above zero"));
    }
    if change.merge_percent.is_some_and(|percent| percent > 100) {
        return wrong(table, "merge_percent", "merge_percent is at most 100");
    }
    match change.arrival_spacing.as_deref() {
        None | Some("fixed" | "poisson") => {}
        Some(_) => return wrong(table, "arrival_spacing", "arrival_spacing is fixed or poisson"),
    }
    if change.arrival_spacing.is_some() && change.arrival_rate.is_none() {
        return wrong(table, "arrival_spacing", "arrival_spacing needs arrival_rate");
    }
    if change.wal == Some(false) && change.sync.or(row.map(|row| row.sync)) == Some(true) {
        return wrong(table, "wal", "synced writes need the WAL: drop wal = false");
    }
    if change.write_rate.is_some() && change.arrival_rate.is_some() {
        return wrong(
            table,
            "write_rate",
            "give write_rate or arrival_rate: both say when an operation starts",
        );
    }
    if let Some(row) = row {
        check_fits(table, change, row)?;
    }
    match &change.mix_preset {
        Some(_) if change.mix.is_some() => {
            return wrong(table, "mix_preset", "give mix or mix_preset, not both");
        }
        Some(name) if MixParameters::preset(name).is_none() => {
            let text = format!("there is no mix \"{name}\"; there are {}", PRESETS.join(", "));
            return wrong(table, "mix_preset", text);
        }
        _ => {}
    }
    match change.mix.as_ref().map(MixParameters::check) {
        Some(Err(why)) => wrong(&format!("{table}.mix"), "", why),
        _ => Ok(()),
    }
}

/// Whether a step of the kind of `row` has what is changed.
fn check_fits(table: &str, change: &StepChange, row: &StepRow) -> Checked {
    let kind = row.kind;
    let is_transaction = kind == StepKind::RandomTransaction;
    let writes = row.while_writing || !(kind.only_reads() || kind.is_upkeep());
    let fits = [
        ("read_random_exp_range", change.read_random_exp_range.is_some(), kind.is_lookup(), "look up"),
        ("write_rate", change.write_rate.is_some(), kind.is_put(), "load or overwrite"),
        ("writer_rate", change.writer_rate.is_some(), row.while_writing, "run beside a writer"),
        ("writer_num", change.writer_num.is_some(), row.while_writing, "run beside a writer"),
        ("wal", change.wal.is_some(), writes, "write"),
        ("sync", change.sync.is_some(), writes, "write"),
        ("transactions", change.transactions.is_some(), is_transaction, "have transactions"),
        ("transaction_sets", change.transaction_sets.is_some(), is_transaction, "have transactions"),
        ("merge_percent", change.merge_percent.is_some(), kind == StepKind::ReadOrMerge, "merge or look up"),
        ("mix_preset", change.mix_preset.is_some(), kind == StepKind::MixGraph, "mix operations"),
        ("mix", change.mix.is_some(), kind == StepKind::MixGraph, "mix operations"),
        ("seek_nexts", change.seek_nexts.is_some(), matches!(kind, StepKind::Range { .. }), "seek"),
        (
            "batch_size",
            change.batch_size.is_some(),
            kind.is_put() || kind == StepKind::MultiRead,
            "load, overwrite or look up many keys together",
        ),
    ];
    match fits.into_iter().find(|(_, given, fits, _)| *given && !fits) {
        Some((key, _, _, which)) => {
            wrong(table, key, format!("{key} is for steps that {which}, and {} does not", row.name))
        }
        None => Ok(()),
    }
}

/// Every step is one of the vocabulary, is there once, and every change is of a step that is there.
fn check_steps(experiment: &Experiment) -> Checked {
    let names = experiment.step_names();
    for (index, name) in names.iter().enumerate() {
        let own = experiment.step.get(name).and_then(|change| change.kind.as_ref());
        let kind = own.unwrap_or(name);
        if vocabulary::find(kind).is_none() {
            let hint = did_you_mean(kind, vocabulary::STEPS.iter().map(|step| step.name));
            let message = format!("unknown step \"{kind}\"{hint}");
            return match own {
                Some(kind) => wrong_value(&format!("step.{name}"), kind, message),
                None => wrong_value("", name, message),
            };
        }
        let change = experiment.step.get(name);
        let syncs = change.and_then(|change| change.sync).or(vocabulary::find(kind).map(|row| row.sync));
        if experiment.workload.wal == Some(false)
            && change.is_none_or(|change| change.wal.is_none())
            && syncs == Some(true)
        {
            let message = format!("synced writes need the WAL: drop wal = false, or give wal to step {name}");
            return wrong("workload", "wal", message);
        }
        if names[..index].contains(name) {
            let message =
                format!("step \"{name}\" is there twice; name the second otherwise and give it kind");
            return wrong_value("", name, message);
        }
    }
    match experiment.step.keys().find(|name| !names.contains(name)) {
        Some(name) => {
            let table = format!("step.{name}");
            let message = format!("[{table}] changes a step that is not in steps");
            wrong(&table, "", message)
        }
        None => Ok(()),
    }
}

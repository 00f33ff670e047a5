//! From text to an experiment. A mistake is answered with file, line, column and what was probably meant.

use super::{Experiment, StepChange, profiles, steps};
use outcrop_lab_load::mixgraph::MixParameters;
use outcrop_lab_load::mixgraph::PRESETS;
use std::path::Path;

/// Reads the experiment in `path`; gives it with its text.
///
/// # Errors
/// One sentence that names the place.
pub fn read(path: &Path) -> Result<(Experiment, String), String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let experiment = parse(&path.display().to_string(), &text)?;
    Ok((experiment, text))
}

/// Parses the experiment `text`; `file` is its name in messages.
///
/// # Errors
/// One sentence that names the place.
pub fn parse(file: &str, text: &str) -> Result<Experiment, String> {
    let experiment: Experiment = toml::from_str(text).map_err(|error| explain(file, text, &error))?;
    check(file, text, &experiment)?;
    Ok(experiment)
}

fn explain(file: &str, text: &str, error: &toml::de::Error) -> String {
    let (line, column) = place(text, error.span().map_or(0, |span| span.start));
    let message = error.message().trim();
    let what = if message.starts_with("unknown variant") { "value" } else { "key" };
    let hint = match unknown_and_known(message) {
        Some((unknown, known)) => match nearest(&unknown, known.iter().map(String::as_str)) {
            Some(meant) => format!("unknown {what} \"{unknown}\"; did you mean \"{meant}\"?"),
            None => format!("unknown {what} \"{unknown}\"; known here: {}", known.join(", ")),
        },
        None => message.replace('\n', " "),
    };
    format!("{file}:{line}:{column}: {hint}")
}

/// Line and column, from 1, of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// What the decoder did not know and what it did, from "unknown field `a`, expected one of `b`, `c`".
fn unknown_and_known(message: &str) -> Option<(String, Vec<String>)> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_string);
    Some((quoted.next()?, quoted.collect()))
}

/// The candidate closest to `word`, if any is close enough to be meant.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.len().max(3) / 2 + 1;
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, candidate)| candidate)
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// More pairs than the exact tests of `outcrop_lab_stats::rank` take would be refused there.
const MAX_ROUNDS: usize = outcrop_lab_stats::rank::MAX_EXACT;

/// What types cannot say.
fn check(file: &str, text: &str, experiment: &Experiment) -> Result<(), String> {
    let wrong = |what: &str, message: String| {
        // The first mention of the thing is the best place known after decoding.
        let (line, column) = place(text, text.find(what).unwrap_or(0));
        Err(format!("{file}:{line}:{column}: {message}"))
    };
    if experiment.target.is_empty() {
        return wrong("target", "an experiment needs at least one [[target]]".to_string());
    }
    for target in &experiment.target {
        let named = target.engine.as_str();
        let says_version = target.versions.len() == 1 && target.build.is_some();
        if target.library.is_some() && !target.versions.is_empty() && !says_version {
            let why =
                "has both library and versions: a library is one version, and then takes a build's name";
            return wrong(named, format!("target {named} {why}"));
        }
        if named != "outcrop" && target.library.is_none() && target.versions.is_empty() {
            return wrong(named, format!("target {named} needs versions or library"));
        }
        if named == "outcrop" && !target.versions.is_empty() {
            let why = "target outcrop is this program: give older builds by library";
            return wrong("versions", why.to_string());
        }
        for config in &target.configs {
            if !experiment.config.contains_key(config) {
                let known = nearest(config, experiment.config.keys().map(String::as_str));
                let hint = known.map_or(String::new(), |known| format!("; did you mean \"{known}\"?"));
                return wrong(config, format!("there is no [config.{config}]{hint}"));
            }
        }
    }
    for (name, config) in &experiment.config {
        if let Some(codec) = &config.compression
            && steps::compression_number(codec).is_none()
        {
            return wrong(codec, format!("config {name}: compression is none, snappy, lz4 or zstd"));
        }
    }
    if let Some((name, _)) = experiment
        .config
        .iter()
        .find(|(_, config)| config.planted.is_some_and(|share| !share.is_finite() || share < 0.0))
    {
        return wrong("planted", format!("config {name}: planted is a share, 0 or above"));
    }
    let design = &experiment.design;
    let positive = [
        ("rounds", design.rounds as f64),
        ("seconds", experiment.workload.seconds),
        ("threads", f64::from(experiment.workload.threads)),
        ("width", design.width),
        ("key_size", experiment.workload.key_size as f64),
        ("value_size", experiment.workload.mean_value_size() as f64),
        ("keys", experiment.workload.keys.unwrap_or(1) as f64),
    ];
    if let Some((name, _)) = positive.iter().find(|(_, value)| value.is_nan() || *value <= 0.0) {
        return wrong(name, format!("{name} must be above zero"));
    }
    if let Err(why) = experiment.workload.value_sizes() {
        return wrong("value_size", why);
    }
    if !(design.delta > 0.0 && design.delta < 1.0) {
        return wrong("delta", "delta is a share: above 0 and below 1".to_string());
    }
    if design.max_rounds.unwrap_or(design.rounds) > MAX_ROUNDS {
        return wrong("rounds", format!("at most {MAX_ROUNDS} rounds can be judged"));
    }
    for (name, change) in &experiment.step {
        if let Err(why) = check_change(change) {
            return wrong(&format!("step.{name}"), why);
        }
    }
    if let Some(profile) = &experiment.workload.profile
        && profiles::find(profile, 1 << 30, 2).is_none()
    {
        let known = profiles::names().join(", ");
        return wrong(
            profile,
            format!("there is no profile \"{profile}\"; there are {known}; bcN changes the cache"),
        );
    }
    if design.max_rounds.is_some_and(|max| max < design.rounds) {
        return wrong("max_rounds", "max_rounds is below rounds".to_string());
    }
    check_steps(experiment).or_else(|(what, message)| wrong(&what, message))
}

/// What types cannot say of the changes to one step.
fn check_change(change: &StepChange) -> Result<(), String> {
    let above_zero = |number: Option<f64>| number.is_none_or(|number| number.is_finite() && number > 0.0);
    let counts =
        [change.threads, change.batch_size, change.transaction_sets].map(|count| count.map(f64::from));
    if change.num == Some(0)
        || !counts.into_iter().chain([change.seconds, change.arrival_rate]).all(above_zero)
    {
        let names = "threads, num, seconds, batch_size, transaction_sets and arrival_rate";
        return Err(format!("{names} must be above zero"));
    }
    if change.merge_percent.is_some_and(|percent| percent > 100) {
        return Err("merge_percent is at most 100".to_string());
    }
    match change.arrival_spacing.as_deref() {
        None | Some("fixed" | "poisson") => {}
        Some(_) => return Err("arrival_spacing is fixed or poisson".to_string()),
    }
    if change.arrival_spacing.is_some() && change.arrival_rate.is_none() {
        return Err("arrival_spacing needs arrival_rate".to_string());
    }
    match &change.mix_preset {
        Some(_) if change.mix.is_some() => return Err("give mix or mix_preset, not both".to_string()),
        Some(name) if MixParameters::preset(name).is_none() => {
            return Err(format!("there is no mix \"{name}\"; there are {}", PRESETS.join(", ")));
        }
        _ => {}
    }
    change.mix.as_ref().map_or(Ok(()), MixParameters::check)
}

/// Every step is one of the vocabulary, is there once, and every change is of a step that is there.
fn check_steps(experiment: &Experiment) -> Result<(), (String, String)> {
    let names = experiment.step_names();
    for (index, name) in names.iter().enumerate() {
        let kind = experiment.step.get(name).and_then(|change| change.kind.as_ref()).unwrap_or(name);
        if steps::find(kind).is_none() {
            let known = nearest(kind, steps::STEPS.iter().map(|step| step.name));
            let hint = known.map_or(String::new(), |known| format!("; did you mean \"{known}\"?"));
            return Err((kind.clone(), format!("unknown step \"{kind}\"{hint}")));
        }
        if names[..index].contains(name) {
            let message =
                format!("step \"{name}\" is there twice; name the second otherwise and give it kind");
            return Err((name.clone(), message));
        }
    }
    for name in experiment.step.keys() {
        if !names.contains(name) {
            return Err((
                format!("step.{name}"),
                format!("[step.{name}] changes a step that is not in steps"),
            ));
        }
    }
    Ok(())
}

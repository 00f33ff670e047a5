//! From text to an experiment. A mistake is answered with file, line, column and what was probably meant.

use super::Experiment;
use super::check::{Mistake, check};
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
    match check(&experiment) {
        Ok(()) => Ok(experiment),
        Err(mistake) => Err(wrong(file, text, &mistake)),
    }
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

/// Where `key` stands in `[table]`, which is empty for the top of the file, or `value` if that is given; or else the
/// table, or else the beginning.
fn offset(text: &str, table: &str, key: &str, value: Option<&str>) -> usize {
    let (mut current, mut header, mut at) = (String::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let (start, bare) = (at, line.trim());
        at += line.len();
        let quoted =
            |value: &str| ['"', '\''].iter().find_map(|quote| line.find(&format!("{quote}{value}{quote}")));
        if bare.starts_with('[') {
            current = bare.split(']').next().unwrap_or("").replace(['[', '"', '\''], "").trim().to_string();
            if current == table {
                header = start;
            }
        }
        if current != table {
            continue;
        }
        if let Some(column) = value.and_then(quoted) {
            return start + column + 1;
        }
        if value.is_none() && bare.split('=').next().is_some_and(|name| name.trim() == key) {
            return start + (line.len() - line.trim_start().len());
        }
    }
    header
}

/// The message for a mistake that only shows after decoding.
pub(super) fn wrong(file: &str, text: &str, mistake: &Mistake) -> String {
    let (line, column) = place(text, offset(text, &mistake.table, &mistake.key, mistake.value.as_deref()));
    format!("{file}:{line}:{column}: {}", mistake.message)
}

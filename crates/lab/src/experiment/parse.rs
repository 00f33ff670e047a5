//! From text to an experiment. A mistake is answered with file, line, column and what was probably meant.

use super::Experiment;
use super::check::{Mistake, check};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

pub(super) fn explain(file: &str, text: &str, error: &toml::de::Error) -> String {
    let (line, column) = place(text, error.span().map_or(0, |span| span.start));
    let message = error.message().trim();
    let what = if message.starts_with("unknown variant") { "value" } else { "key" };
    let unknown = error.span().and_then(|span| text.get(span)).unwrap_or("").trim_matches(['"', '\'']);
    let hint = match known_words(message) {
        Some(known) => match nearest(unknown, known.iter().map(String::as_str)) {
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

/// The words that the decoder would have known, from "unknown field `a`, expected one of `b`, `c`".
fn known_words(message: &str) -> Option<Vec<String>> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    Some(message.split('`').skip(1).step_by(2).skip(1).map(str::to_string).collect())
}

/// The candidate closest to `word`, if any is close enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = word.len().max(3) / 2 + 1;
    candidates
        .map(|candidate| (strsim::levenshtein(word, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, candidate)| candidate)
}

/// Where `key` stands in `[table]`, which is empty for the top of the file, or `value` if that is given; or else the
/// table, or else the beginning.
fn offset(text: &str, table: &str, key: &str, value: Option<&str>) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 0 };
    let mut tables = Vec::new();
    collect_tables("", 0, document.get_ref(), &mut tables);
    let named: Vec<_> = tables.iter().filter(|found| found.path == table).collect();
    let find = |found: &&Table<'_>| match value {
        Some(value) => found.keys.values().find_map(|item| offset_of_string(item, value)),
        None => found.keys.keys().find(|name| name.get_ref() == key).map(|name| name.span().start),
    };
    let header = || named.last().map_or(0, |found| text[..found.start].rfind('\n').map_or(0, |at| at + 1));
    named.iter().copied().find_map(|found| find(&found)).unwrap_or_else(header)
}

/// A table of a document.
struct Table<'t> {
    /// Its name, parts joined by dots; that of the array for a table in one.
    path: String,
    /// Offset of its name.
    start: usize,
    keys: &'t DeTable<'t>,
}

/// Adds `keys` and the tables in it to `tables`, in the order of their names.
fn collect_tables<'t>(path: &str, start: usize, keys: &'t DeTable<'t>, tables: &mut Vec<Table<'t>>) {
    tables.push(Table { path: path.to_string(), start, keys });
    for (name, item) in keys {
        let inner =
            if path.is_empty() { name.get_ref().to_string() } else { format!("{path}.{}", name.get_ref()) };
        match item.get_ref() {
            DeValue::Table(table) => collect_tables(&inner, name.span().start, table, tables),
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(table) = item.get_ref() {
                        collect_tables(&inner, item.span().start, table, tables);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Where the string `value` begins, after its quote, if `item` is it or a list that has it.
fn offset_of_string(item: &Spanned<DeValue<'_>>, value: &str) -> Option<usize> {
    match item.get_ref() {
        DeValue::String(text) if text == value => Some(item.span().start + 1),
        DeValue::Array(items) => items.iter().find_map(|item| offset_of_string(item, value)),
        _ => None,
    }
}

/// The message for a mistake that only shows after decoding.
pub(super) fn wrong(file: &str, text: &str, mistake: &Mistake) -> String {
    let (line, column) = place(text, offset(text, &mistake.table, &mistake.key, mistake.value.as_deref()));
    format!("{file}:{line}:{column}: {}", mistake.message)
}

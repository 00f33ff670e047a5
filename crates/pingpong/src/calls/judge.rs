//! Where two engines told different things of one call, and where they do so on purpose.

use super::draw::{Call, Case};
use super::play::CallAnswer;
use crate::mistake::Opening;

/// Something that differs.
pub struct Difference {
    /// In words.
    pub told: String,
    /// Later answers differ, too.
    pub lasting: bool,
}

/// Texts that differ on purpose: a part of RocksDB's, a part of Outcrop's, and the reason.
pub const ON_PURPOSE: &[(&str, &str, &str)] = &[
    (
        "Can't ingest_behind file in ColumnFamily %s",
        "ingest_behind needs",
        "RocksDB's has a placeholder in it",
    ),
    (
        "Can't ingest_behind file as it doesn't fit at the last level!",
        "the last level has keys of its range",
        "says why it does not fit",
    ),
    ("Invalid column family specified in write batch", "was dropped", "says which"),
    ("Invalid column family specified in write batch", "does not exist", "says which"),
    ("Column family not found", "column family not found", "says which option would make it"),
    ("Bad table magic number", "bad table magic number", "names the file first"),
    ("While opening a file for sequentially reading", "open ", "has the system's word once"),
    ("Unrecognized option: ", " cannot be ", "says the whole value"),
    ("is too short (", "are too few for a table", "names the file first"),
    ("while stat a file for size", "open ", "opens the file before it asks for its size"),
    ("Extra option not recognized", "is one of the database", "says whose option it is"),
    ("Error parsing", " cannot be ", "says the value"),
    ("Extra option not recognized", "unknown option", "says which of those in braces"),
    ("Could not find option", "unknown option", "says what it may have meant"),
    ("Option not changeable", "cannot change while the database is open", "says when it can"),
    (
        "lock hold by current process",
        "the database is open in this process",
        "RocksDB's has times and threads in it",
    ),
    ("does not match existing comparator", "its comparator is", "of a table, and says of which"),
    ("invalid checkpoint directory name", "is no name of a directory", "says which"),
    ("Is a directory", "Is a directory", "does not say at which offset it began to read"),
    ("No options files found in the DB directory", "no OPTIONS file", "names the directory first"),
];

/// Everything that differs and should not.
pub fn differences(case: &Case, call: &Call, theirs: &CallAnswer, ours: &CallAnswer) -> Vec<Difference> {
    let mut found = Vec::new();
    for (number, their) in theirs.answers.iter().enumerate() {
        let our = ours.answers.get(number).map_or("", String::as_str);
        let excused = || {
            is_on_purpose(their, our)
                || are_refused_options(call, their, our)
                || has_room_behind(call, their, our)
        };
        if their != our && !excused() {
            let lasting = is_error(their) != is_error(our);
            found.push(Difference { told: format!("RocksDB: {their}\n    Outcrop: {our}"), lasting });
        }
    }
    // RocksDB publishes the number of a write before it inserts it there, and so of one that then fails.
    let unordered = case.options.iter().any(|option| option == "unordered_write=true");
    if theirs.number != ours.number && !(unordered && call.stops_writes()) {
        let told = format!("latest sequence number: RocksDB {:?}, Outcrop {:?}", theirs.number, ours.number);
        found.push(Difference { told, lasting: true });
    }
    for (their, our) in theirs.updates.iter().zip(&ours.updates) {
        if their != our && !(is_error(their) && is_on_purpose(their, our)) {
            let told = format!("updates: RocksDB:\n{their}\n    Outcrop:\n{our}");
            found.push(Difference { told, lasting: !is_error(their) || !is_error(our) });
        }
    }
    found
}

/// True if both refuse to open with some options, with the same class: Outcrop names the option and its column family.
fn are_refused_options(call: &Call, their: &str, our: &str) -> bool {
    matches!(call, Call::OpenWrongly(Opening::Options(_)))
        && is_error(their)
        && class_of(their) == class_of(our)
}

/// True if a file is ingested behind, for which RocksDB has no room: with `allow_ingest_behind`, too, its compactions write to the last level, where
/// levels are sized dynamically. Outcrop's leave that level free. Rows differ from then on.
fn has_room_behind(call: &Call, their: &str, our: &str) -> bool {
    matches!(call, Call::Ingest { behind: true, .. })
        && their.contains("Can't ingest_behind file as it doesn't fit at the last level!")
        && our == "ingested"
}

/// The class of an error, with the word that stands before it.
fn class_of(answer: &str) -> Option<&str> {
    answer.split(": ").nth(1)
}

fn is_error(answer: &str) -> bool {
    answer.starts_with("error: ")
}

/// True if what differs is listed, or Outcrop only says before RocksDB's text where it was: the file, the column family.
fn is_on_purpose(their: &str, our: &str) -> bool {
    let parts = |text: &str| -> Option<(String, String)> {
        let (class, message) = text.strip_prefix("error: ")?.split_once(": ")?;
        Some((class.to_string(), message.to_string()))
    };
    if let (Some((their_class, their)), Some((our_class, our))) = (parts(their), parts(our))
        && their_class == our_class
        && our.ends_with(&their)
    {
        return true;
    }
    class_of(their) == class_of(our)
        && ON_PURPOSE.iter().any(|(of_their, of_our, _)| their.contains(of_their) && our.contains(of_our))
}

/// True if RocksDB has stopped over operands that cannot be merged, or lacks what depends on them: Outcrop keeps operands as
/// they are where it flushes and recovers, and says so to those who read them.
pub fn is_lost_to_a_merge(theirs: &CallAnswer, ours: &CallAnswer) -> bool {
    let lost = |their: &String| {
        their.contains("Merge operator failed") || their.contains("data beyond the point of corruption")
    };
    theirs.answers.iter().zip(&ours.answers).any(|(their, our)| their != our && lost(their))
}

/// True if the engines differ on purpose in what they did, so that what follows cannot be compared.
pub fn part(theirs: &CallAnswer, ours: &CallAnswer) -> bool {
    theirs.answers.iter().zip(&ours.answers).any(|(their, our)| is_error(their) != is_error(our))
}

/// A text without its numbers.
pub fn shape(text: &str) -> String {
    let mut shape: String = text.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    while shape.contains("##") {
        shape = shape.replace("##", "#");
    }
    shape
}

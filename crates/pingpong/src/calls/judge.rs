//! Where two engines told different things of one call, and where they do so on purpose.

use super::play::Told;

/// Something that differs.
pub struct Difference {
    /// In words.
    pub told: String,
    /// What follows differs, too.
    pub lasting: bool,
}

/// Texts that differ on purpose: a part of RocksDB's, a part of Outcrop's, and the reason.
pub const ON_PURPOSE: &[(&str, &str, &str)] = &[
    (
        "Can't ingest_behind file in ColumnFamily %s",
        "ingest_behind needs",
        "RocksDB's has a placeholder in it",
    ),
    ("Invalid column family specified in write batch", "was dropped", "says which"),
    ("that does not enable timestamp", "timestamps and TTL are not supported", "there are none"),
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
pub fn differences(theirs: &Told, ours: &Told) -> Vec<Difference> {
    let mut found = Vec::new();
    for (number, their) in theirs.answers.iter().enumerate() {
        let our = ours.answers.get(number).map_or("", String::as_str);
        if their != our && !is_on_purpose(their, our) {
            let lasting = is_error(their) != is_error(our);
            found.push(Difference { told: format!("RocksDB: {their}\n    Outcrop: {our}"), lasting });
        }
    }
    if theirs.number != ours.number {
        let told = format!("latest sequence number: RocksDB {:?}, Outcrop {:?}", theirs.number, ours.number);
        found.push(Difference { told, lasting: true });
    }
    for (their, our) in theirs.updates.iter().zip(&ours.updates) {
        if their != our && !is_on_purpose(their, our) {
            let told = format!("updates: RocksDB:\n{their}\n    Outcrop:\n{our}");
            found.push(Difference { told, lasting: !is_error(their) || !is_error(our) });
        }
    }
    found
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
    ON_PURPOSE.iter().any(|(of_their, of_our, _)| their.contains(of_their) && our.contains(of_our))
}

/// True if the engines differ on purpose in what they did, so that what follows cannot be compared.
pub fn part(theirs: &Told, ours: &Told) -> bool {
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

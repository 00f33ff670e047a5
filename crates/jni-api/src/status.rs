//! `Status` as RocksJava's exceptions carry it, made from the text of an error.
//!
//! The C functions give errors as texts, `class: subclass: message`. RocksJava has numbers for class and subclass.

/// Code, subcode and state of `org.rocksdb.Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: i8,
    pub(crate) subcode: i8,
    /// `None` if there is nothing but the class.
    pub(crate) state: Option<String>,
}

/// RocksDB's words for a class and RocksJava's number, by `Status.Code`.
const CODES: [(&str, i8); 15] = [
    ("NotFound", 1),
    ("Corruption", 2),
    ("Not implemented", 3),
    ("Invalid argument", 4),
    ("IO error", 5),
    ("Merge in progress", 6),
    ("Result incomplete", 7),
    ("Shutdown in progress", 8),
    ("Operation timed out", 9),
    ("Operation aborted", 10),
    ("Resource busy", 11),
    ("Operation expired", 12),
    ("Operation failed. Try again.", 13),
    ("Compaction too large", UNDEFINED),
    ("Column family dropped", UNDEFINED),
];

/// The same of `Status.SubCode`.
const SUBCODES: [(&str, i8); 10] = [
    ("Timeout Acquiring Mutex", 1),
    ("Timeout waiting to lock key", 2),
    ("Failed to acquire lock due to max_num_locks limit", 3),
    ("No space left on device", 4),
    ("Deadlock", 5),
    ("Stale file handle", 6),
    ("Memory limit reached", 7),
    ("Space limit reached", UNDEFINED),
    ("No such file or directory", UNDEFINED),
    ("Merge operator failed", UNDEFINED),
];

const UNDEFINED: i8 = 0x7F;

impl Status {
    /// From RocksDB's text; of an unknown class, the whole text is the state.
    pub(crate) fn parse(text: &str) -> Status {
        let (code, rest) = after(&CODES, text).unwrap_or((UNDEFINED, Some(text)));
        let (subcode, rest) = rest.and_then(|rest| after(&SUBCODES, rest)).unwrap_or((0, rest));
        Status { code, subcode, state: rest.filter(|rest| !rest.is_empty()).map(ToString::to_string) }
    }
}

/// The number of the word that `text` begins with, and the text after it, if there is some.
fn after<'a>(words: &[(&str, i8)], text: &'a str) -> Option<(i8, Option<&'a str>)> {
    words.iter().find_map(|(word, number)| match text.strip_prefix(word)? {
        "" => Some((*number, None)),
        rest => Some((*number, Some(rest.strip_prefix(": ")?))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_class_subclass_and_state() {
        let status = |code, subcode, state: Option<&str>| Status {
            code,
            subcode,
            state: state.map(ToString::to_string),
        };
        assert_eq!(Status::parse("Corruption: bad block"), status(2, 0, Some("bad block")));
        assert_eq!(Status::parse("IO error: No space left on device: a.log"), status(5, 4, Some("a.log")));
        assert_eq!(Status::parse("Operation timed out: Timeout waiting to lock key"), status(9, 2, None));
        assert_eq!(Status::parse("Resource busy: "), status(11, 0, None));
        assert_eq!(Status::parse("IO error: Deadlocked"), status(5, 0, Some("Deadlocked")));
        assert_eq!(Status::parse("no class"), status(UNDEFINED, 0, Some("no class")));
    }
}

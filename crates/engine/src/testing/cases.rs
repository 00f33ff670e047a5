//! Runs the drawings in `testdata`: questions and their answers.
//!
//! ```text
//! # comment
//! command arguments
//! body, any number of lines
//! ----
//! answer
//! ```
//! Blocks are separated by empty lines. With `REWRITE=1` answers are written instead of compared; the difference is read.

use std::path::Path;

/// One question.
pub struct Case<'t> {
    /// The first word.
    pub command: &'t str,
    /// The words after it.
    pub arguments: &'t str,
    /// The lines below.
    pub body: Vec<&'t str>,
}

impl Case<'_> {
    /// The argument `name=value`; the default if it is not given.
    pub fn argument(&self, name: &str, default: u64) -> u64 {
        let found =
            self.arguments.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}: no number")))
    }
}

/// Asks `answer` each question of `testdata/<file>`, in order.
pub fn run(file: &str, mut answer: impl FnMut(&Case<'_>) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let rewrite = std::env::var_os("REWRITE").is_some();
    let mut rewritten = String::new();
    for block in text.trim_end().split("\n\n") {
        let (question, expected) = block.split_once("----").unwrap_or_else(|| panic!("no ---- in {block:?}"));
        let comments: String =
            question.lines().filter(|line| line.starts_with('#')).map(|l| format!("{l}\n")).collect();
        let mut lines = question.lines().filter(|line| !line.starts_with('#'));
        let first = lines.next().expect("a command");
        let (command, arguments) = first.split_once(' ').unwrap_or((first, ""));
        let case = Case { command, arguments, body: lines.collect() };
        let got = answer(&case);
        let got = got.trim_end();
        assert!(!got.contains("\n\n"), "{file}: {question}: an answer has an empty line");
        if !rewrite {
            assert_eq!(got, expected.trim(), "{file}: {question}");
        }
        let body: String = case.body.iter().map(|line| format!("{line}\n")).collect();
        rewritten += &format!("{comments}{first}\n{body}----\n{got}\n\n").replace("\n\n\n", "\n\n");
    }
    if rewrite {
        std::fs::write(&path, rewritten.trim_end().to_string() + "\n").unwrap();
    }
}

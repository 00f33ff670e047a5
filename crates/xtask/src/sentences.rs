//! No sentence of a comment or a document names its subject by a riddle: it begins neither with "What" nor with "Who", unless it asks.

use crate::tidy::{read, rust_files};
use std::path::{Path, PathBuf};

/// Words that stand for a thing or a person which has a name.
const RIDDLES: [&str; 4] = ["What", "Whatever", "Who", "Whoever"];

/// The documents outside of the code. Notes of changes that were published stay as they are.
const DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs"];

pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let mut violations = Vec::new();
    let mut check = |path: &Path, text: &str| {
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        violations
            .extend(riddles(text).map(|sentence| format!("{shown}: name the subject of \"{sentence}\"")));
    };
    let mut code = Vec::new();
    rust_files(&root.join("crates"), &mut code)?;
    for path in code {
        check(&path, &comments(&read(&path)?));
    }
    let mut documents = Vec::new();
    DOCUMENTS.iter().try_for_each(|name| markdown(&root.join(name), &mut documents))?;
    for path in documents {
        check(&path, &prose(&read(&path)?));
    }
    Ok(violations)
}

fn markdown(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        files.extend(path.extension().is_some_and(|extension| extension == "md").then(|| path.to_path_buf()));
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    entries.iter().try_for_each(|entry| markdown(entry, files))
}

/// The comments of a file, those of neighbouring lines joined; a line of code ends a sentence.
fn comments(text: &str) -> String {
    let lines = text.lines().map(|line| match line.trim_start().split_once("//") {
        Some(("", comment)) => comment.trim_start_matches(['/', '!']).trim().to_string() + " ",
        Some((_, comment)) if !comment.contains('"') => format!("\n{}\n", comment.trim()),
        _ => "\n".to_string(),
    });
    lines.collect()
}

/// A document without its examples and headings; cells of tables and items are sentences of their own.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines().map(str::trim) {
        fenced ^= line.starts_with("```");
        let begins = line.is_empty() || line.starts_with(['#', '|', '-', '*', '>']);
        if fenced || begins {
            prose.push('\n');
        }
        if !fenced && !line.starts_with('#') {
            prose.push_str(&line.replace('|', "\n"));
            prose.push(' ');
        }
    }
    prose
}

/// The beginnings of sentences that begin with a riddle.
fn riddles(text: &str) -> impl Iterator<Item = &str> {
    let sentences =
        text.split('\n').flat_map(|part| part.split_inclusive(['.', '?', '!', ':', ';'])).map(str::trim);
    sentences.filter(|sentence| {
        let sentence = sentence.trim_start_matches(['#', '-', '*', '>', ' ', '(']);
        let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        RIDDLES.contains(&first) && !sentence.ends_with('?')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        riddles(text).collect()
    }

    #[test]
    fn a_sentence_names_its_subject_or_asks() {
        assert_eq!(found("What is left goes. The rest stays."), ["What is left goes."]);
        assert_eq!(found("It ends: Whoever waits is woken."), ["Whoever waits is woken."]);
        assert_eq!(found("What is left? It says what is left."), [""; 0]);
        assert_eq!(found("Whatsoever is another word."), [""; 0]);
    }

    #[test]
    fn comments_are_read_over_their_lines_and_code_is_not() {
        let text =
            "/// It is so. What\n/// does not fit stays.\nfn f() {} // Who waits\nlet s = \"a // What b\";\n";
        assert_eq!(found(&comments(text)), ["What does not fit stays.", "Who waits"]);
    }

    #[test]
    fn documents_are_read_without_their_examples_and_headings() {
        let text = "# What it is\n\nA. What\nb c.\n\n| What goes | x |\n```\n// What d.\n```\n- Who reads\n  this.\n";
        let prose = prose(text);
        assert_eq!(found(&prose), ["What b c.", "What goes", "- Who reads this."]);
    }
}

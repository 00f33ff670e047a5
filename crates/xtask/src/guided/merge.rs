//! `cargo xtask fuzz --merge`: the corpus of a target becomes the fewest inputs that reach what all of them reach.
//!
//! Looked at are the corpus, inputs that were found if they are short, and the fixtures, which stay whatever they reach. libFuzzer
//! chooses: an input after the other, each time the one that reaches most counters that none before did; how often it counts is not
//! looked at. For tables, ones beyond the default length reach 3 % more counters with ten times the bytes.

use super::session::{command, whole_fixtures};
use super::{dir, make_dir};
use crate::root;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of an input that was found, at most, where nothing else is asked for.
pub const LARGEST: u64 = 1500;
/// Letters of a hash that name an input.
const NAME: usize = 16;

/// Changes the corpus of `target`, and says how; of what was found, inputs of `largest` bytes at most are looked at.
///
/// # Errors
/// The fuzzer fails on an input, or a file cannot be read or written. The corpus is what it was then, but for files that could not be
/// written.
pub fn run(program: &Path, target: &str, largest: u64) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(target);
    let (found, short) = (dir().join("found").join(target), dir().join("short").join(target));
    let chosen = dir().join("merged").join(target);
    for dir in [&short, &chosen] {
        // An earlier run may have left some; where it cannot be removed, writing fails.
        let _ = std::fs::remove_dir_all(dir);
        make_dir(dir)?;
    }
    make_dir(&found)?;
    for (bytes, name) in contents(&found)?.iter().filter(|(bytes, _)| bytes.len() as u64 <= largest) {
        write(&short.join(name), bytes)?;
    }
    let fixtures = contents(&whole_fixtures(program, target)?)?;
    for (bytes, name) in &fixtures {
        write(&chosen.join(name), bytes)?;
    }
    let output = command(program, target)
        .args(["-set_cover_merge=1", "-use_counters=0", "-timeout=20", "-rss_limit_mb=4096"])
        .args([&chosen, &corpus, &short])
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || said.contains("caused a failure") {
        return Err(format!("{target}: merging: {}: {said}", output.status));
    }
    let before = contents(&corpus)?;
    let mut after = contents(&chosen)?;
    after.retain(|bytes, _| !fixtures.contains_key(bytes));
    for (bytes, name) in &after {
        if !before.contains_key(bytes) {
            write(&corpus.join(&name[..name.len().min(NAME)]), bytes)?;
        }
    }
    for (_, name) in before.iter().filter(|(bytes, _)| !after.contains_key(*bytes)) {
        let path = corpus.join(name);
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("{}", describe(target, &before, &after));
    Ok(())
}

/// Files by what is in them.
type Contents = BTreeMap<Vec<u8>, String>;

fn contents(dir: &Path) -> Result<Contents, String> {
    let named = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut contents = Contents::new();
    for entry in std::fs::read_dir(dir).map_err(named)? {
        let entry = entry.map_err(named)?;
        let bytes = std::fs::read(entry.path()).map_err(named)?;
        contents.insert(bytes, entry.file_name().to_string_lossy().into_owned());
    }
    Ok(contents)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn describe(target: &str, before: &Contents, after: &Contents) -> String {
    let size = |contents: &Contents| contents.keys().map(Vec::len).sum::<usize>();
    let new = after.keys().filter(|bytes| !before.contains_key(*bytes)).count();
    format!(
        "guided: {target}: {} -> {} inputs ({new} new), {} -> {} bytes",
        before.len(),
        after.len(),
        size(before),
        size(after)
    )
}
